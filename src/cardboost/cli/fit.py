"""`cardboost fit`: a table in; a model, a card, C and a log out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from cardboost.cli.config import config_text
from cardboost.cli.files import INTERRUPTED, OK, BadInput, counted, make_folder, one_file, say, shell_line
from cardboost.cli.options import (
    DATA,
    FORMAT,
    HOLDOUT,
    POINTS,
    ROLES,
    TARGET,
    estimator_parameters,
    model_options,
    names_in,
    output,
)
from cardboost.cli.parameters import CLASSIFIER
from cardboost.cli.verb import Verb
from cardboost.model.printable import printable, printable_lines

if TYPE_CHECKING:
    from cardboost.cli.inferred import ColumnFacts
    from cardboost.cli.run import Rows, Run
    from cardboost.cli.values import Kind, Labels

#: a card longer than this is not shown on the screen
_LONGEST_CARD = 20


def run(arguments: SimpleNamespace) -> int:
    from cardboost.cli.inferred import describe
    from cardboost.cli.progress import Interrupt
    from cardboost.cli.run import fit_rows
    from cardboost.problem.budget import Budget

    budget = Budget.of(arguments.time)
    if arguments.hot_start == 0 and not arguments.reselect:
        raise BadInput("--hot-start 0 needs --reselect: without it there is no candidate to select from.")
    rows, classes, facts = read_rows(arguments)
    folder = make_folder(arguments.out)
    columns = describe(rows.table)
    test = None
    if arguments.holdout:
        rows, test = _split(rows, arguments, facts)
    if not arguments.quiet:
        say_what_was_read(facts, columns, arguments.json)
    options = model_parameters(arguments, classes)
    with Interrupt().listening() as interrupt:
        quiet = arguments.quiet
        outcome = fit_rows(
            rows, classes, options, facts,
            test=test, interrupt=interrupt, quiet=quiet, points=_points(arguments), budget=budget,
        )  # fmt: skip
        outcome = replace(outcome, config=config_text(command, arguments, folder))
        written = outcome.write(folder)
    if arguments.json:
        print(json.dumps(_document(outcome, columns, [str(path) for path in written]), indent=2))
    elif not quiet:
        print(printable_lines(_summary(outcome, facts, arguments, [str(path) for path in written])))
    if interrupt.asked:
        partly = "the best model so far" if outcome.interrupted else "the complete model"
        print(f"Interrupted: {partly} was written to {printable(str(folder))}.", file=sys.stderr)
        return INTERRUPTED
    return OK


def model_parameters(
    arguments: SimpleNamespace, classes: tuple[Any, Any], leave_out: Sequence[str] = ()
) -> dict[str, Any]:
    """Parameters of the classifier, whose labels are 0 and 1 for these classes."""
    options = estimator_parameters(arguments, CLASSIFIER, leave_out)
    if options.get("validation_fraction") is not None and options["random_state"] is None:
        options["random_state"] = 0  # else other rows are held out every time
    if isinstance(arguments.class_weight, dict):
        options["class_weight"] = _factors(arguments.class_weight, classes)
    return options


def _factors(given: dict[str, float], classes: tuple[Any, Any]) -> dict[int, float]:
    from cardboost.cli.values import same_label

    factors = {}
    for text, factor in given.items():
        codes = [code for code, label in enumerate(classes) if same_label(text, label)]
        if not codes:
            raise BadInput(f"--class-weight {text}: the classes are {classes[0]!r} and {classes[1]!r}.")
        factors[codes[0]] = factor
    return factors


def _points(arguments: SimpleNamespace) -> dict[str, Any] | None:
    """Options of ``scorecard``; None if there is to be none."""
    asked = {
        "points": arguments.points,
        "base_score": arguments.base_score,
        "base_odds": arguments.base_odds,
        "points_to_double_odds": arguments.double_odds,
        "max_bytes": arguments.max_bytes,
    }
    if all(value is None for value in asked.values()):
        return None
    if arguments.max_terms is None and not arguments.l0:
        raise BadInput("whole points need --max-terms or --l0: they are chosen together with the terms.")
    return asked


def read_rows(arguments: SimpleNamespace, verb: str = "fit") -> tuple[Rows, tuple[Any, Any], dict[str, Any]]:
    """Features, labels and weights from the file, and what is to be said about them."""
    from cardboost.cli.run import Rows
    from cardboost.cli.tables import open_table

    target, weight, path = arguments.target.strip(), arguments.weight, one_file(arguments.data)
    _refuse_what_is_not_there(arguments)
    with open_table(path, arguments.delimiter) as source:
        categorical = names_in(arguments.categorical, source.names)
        drop = names_in(arguments.drop, source.names)
        for name in (target, *([weight] if weight is not None else []), *categorical):
            source.where(name)
        for name in drop:
            source.require(name)
        apart = {target, *drop}
        if weight is not None and weight.strip() in apart:
            raise BadInput(f"--weight {weight}: this column is the target or is dropped.")
        if target in drop:
            raise BadInput(f"--drop {target}: this column is the target.")
        for name in categorical:
            if name in apart or (weight is not None and name == weight.strip()):
                raise BadInput(f"--categorical {name}: this column is the target, the weight or is dropped.")
        wanted = [name for name in source.names if name not in apart]
        if "" in wanted:
            at = source.names.index("") + 1
            raise BadInput(f"{path}: column {at} has no name; name it, or leave it out with --drop ''.")
        kinds: dict[str, Kind] = dict.fromkeys(categorical, "categories")
        if weight is not None:
            kinds[weight.strip()] = "numbers"
        table, labels = source.read(wanted, target, kinds)
        form, remark = source.form, source.remark
    say(None if arguments.quiet else remark, verb)
    assert labels is not None
    weights = None
    if weight is not None:
        weights = table.take_out(weight.strip())
        _check_weights(weights, weight)
    if not table.data:
        raise BadInput(f"{path} has no column besides the target to learn from.")
    if table.n_rows == 1:
        raise BadInput(f"{path} has only one row: a model needs rows of both classes.")
    classes = _order(labels, target, arguments.positive)
    rows = Rows(table, labels.equal(classes[1]), weights)
    facts: dict[str, Any] = {
        "file": os.path.basename(path),
        **form,
        "target": target,
        "weight": None if weight is None else weight.strip(),
        "rows": table.n_rows,
        "features": len(table.data),
        "categories": table.categories,
        "missing": table.n_missing,
        "classes": {str(label): int(labels.equal(label).sum()) for label in classes},
        "holdout": None,
    }
    return rows, classes, facts


def _refuse_what_is_not_there(arguments: SimpleNamespace) -> None:
    for name in ("numeric", "id", "date", "group", "decimal", "thousands", "holdout_by"):
        if getattr(arguments, name, None):
            raise BadInput(f"--{name.replace('_', '-')} is not there yet.")
    if arguments.task not in ("auto", "binary"):
        raise BadInput(f"--task {arguments.task} is not there yet.")


def say_what_was_read(
    facts: dict[str, Any], columns: list[ColumnFacts], as_json: bool, verb: str = "fit"
) -> None:
    """The columns on stdout, unless that is for JSON; remarks on stderr."""
    from cardboost.cli.inferred import column_lines, remark_lines

    if not as_json:
        counts = ", ".join(
            f"{count:,} of class {printable(label)}" for label, count in facts["classes"].items()
        )
        features = counted(facts["features"], "feature")
        print(f"{printable(facts['file'])}: {facts['rows']:,} rows ({counts}), {features}\n")
        print("\n".join(column_lines(columns)) + "\n", flush=True)
    for line in remark_lines(columns, f"cardboost {verb}"):
        print(printable(line), file=sys.stderr)


def _document(run: Run, columns: list[ColumnFacts], written: list[str]) -> dict[str, Any]:
    """What --json prints."""
    from cardboost import __version__

    return {
        "cardboost": __version__,
        **run.result(),
        "parameters": run.parameters,
        "data": run.data,
        "columns": [own.to_dict() for own in columns],
        "card": run.card,
        "header": {"format": run.headers.format, "remark": run.headers.remark},
        "files": written,
    }


def _order(labels: Labels, target: str, wanted: str | None) -> tuple[Any, Any]:
    """The two classes, the positive one last."""
    from cardboost.cli.values import same_label

    classes = labels.classes()
    if len(classes) < 2:
        raise BadInput(f"the target {target!r} has only one class: every label is {classes[0]!r}.")
    if wanted is None or same_label(wanted, classes[1]):
        return classes[0], classes[1]
    if same_label(wanted, classes[0]):
        return classes[1], classes[0]
    raise BadInput(f"--positive {wanted}: the classes of {target!r} are {classes[0]!r} and {classes[1]!r}.")


def _check_weights(weights: Any, name: str) -> None:
    if (weights != weights).any():
        raise BadInput(f"the weight column {name!r} has missing values: every row needs a weight.")
    if (weights < 0).any():
        raise BadInput(f"the weight column {name!r} holds {weights.min():g}: weights must not be negative.")
    if not (weights > 0).any():
        raise BadInput(f"the weight column {name!r} is zero in every row.")


def _split(rows: Rows, arguments: SimpleNamespace, facts: dict[str, Any]) -> tuple[Rows, Rows]:
    from cardboost.cli.run import kept_rows

    seed = arguments.seed or 0
    keep = kept_rows(rows.positive, arguments.holdout, seed)
    if keep.all() or len(set(rows.positive[keep].tolist())) < 2:
        raise BadInput(
            f"--holdout {arguments.holdout:g} of {len(keep)} rows leaves no rows for the test, or not both "
            "classes to train on."
        )
    facts["holdout"] = {"fraction": arguments.holdout, "seed": seed, "rows": int((~keep).sum())}
    return rows.take(keep), rows.take(~keep)


def _summary(run: Run, facts: dict[str, Any], arguments: SimpleNamespace, written: list[str]) -> str:
    from cardboost.cli.run import certificate_lines, files_lines, score_line

    if run.ensemble.n_terms <= _LONGEST_CARD:
        text = run.card
    else:
        text = "\n".join(
            [
                f"{run.ensemble.n_terms} terms: see {written[1]} for the card.",
                "",
                "Certificate",
                *certificate_lines(run.certificate),
                "",
            ]
        )
    lines = [text]
    lines += [score_line(name, scores) for name, scores in run.scores.items()]
    stop = "" if run.trace.status in ("column limit", "optimal", "exhausted") else f"; {run.trace.message}"
    lines.append(
        f"fitted in  {run.seconds:.2f} s, {counted(run.trace[-1].n_columns, 'candidate term')}{stop}"
    )
    lines += files_lines(run, written)
    extra = [] if arguments.delimiter is None else ["--delimiter", arguments.delimiter]
    check = ["certify", written[0], *arguments.data, "--target", facts["target"]]
    check += [] if facts["weight"] is None else ["--weight", facts["weight"]]
    lines.append(shell_line("predict", written[0], *arguments.data, *extra))
    lines.append(shell_line(*check, *extra))
    return "\n".join(lines)


_MODEL_OPTIONS = model_options()
command = Verb(
    "fit",
    run,
    {
        "The table": [DATA, TARGET, *ROLES, *FORMAT, *HOLDOUT],
        **_MODEL_OPTIONS,
        "Whole points (any of these makes the model a scorecard)": POINTS,
        "Output": output("run", "result"),
    },
    description="Train a small certified model on a table: CSV with a header, or Parquet.",
    examples="""\
cardboost fit patients.csv --target died --max-terms 8 --out run
cardboost fit loans.parquet --target status --positive default --drop id
cardboost fit sensors.csv.gz --target fault --holdout 0.3 --time 60
cardboost fit shops.csv --target closed --categorical region,zip
cardboost fit patients.csv --target died --monotonic age=increasing
cardboost fit loans.csv --target paid --points 5
cardboost fit loans.csv --target paid --base-score 600 --double-odds 20
cardboost fit motor.csv --target fault --max-bytes 96
cardboost fit --config card.toml --max-terms 5
""",
    notes="""Writes model.json, card.txt, card.h (the model as C), test_vectors.h, log.jsonl
and config.toml (these options) into the folder --out. CSV may be compressed
(.gz, .zst); Parquet and .zst need an extra package, which a message names.

Every column that is not the target, the weight or dropped is a feature: of
numbers if all its cells are (true and false count as 1 and 0), else of
categories. An empty cell, NA, NaN, null and ? are missing values. Several names
are written as a,b,c, or the option is given again.

Ctrl-C keeps and writes the best model so far; a second Ctrl-C aborts.

Exit codes: 0 written, 2 bad usage or input, 70 a bug, 130 interrupted (the
best model so far is written, unless Ctrl-C came before the fit or twice).""",
)

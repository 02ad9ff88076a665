"""`cardboost fit`: a table in; a model, a card, C and a log out."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from cardboost.cli.checks import amount
from cardboost.cli.config import config_text
from cardboost.cli.files import INTERRUPTED, OK, BadInput, make_folder, next_lines, refuse_to_replace, say
from cardboost.cli.options import (
    DATA,
    FORMAT,
    HOLDOUT,
    POINTS,
    ROLES,
    TARGET,
    estimator_parameters,
    model_options,
    output,
    pairs_in,
)
from cardboost.cli.parameters import CLASSIFIER, REGRESSOR
from cardboost.cli.verb import Verb
from cardboost.data.sentences import counted, listed
from cardboost.model.printable import printable, printable_lines

if TYPE_CHECKING:
    from cardboost.boosting.cross_validation import Regularisation
    from cardboost.cli.rows import Rows, Target
    from cardboost.cli.run import Run
    from cardboost.cli.training_table import TrainingTable

#: a card longer than this is not shown on the screen
_LONGEST_CARD = 20


def run(arguments: SimpleNamespace) -> int:
    from cardboost.cli.progress import Interrupt
    from cardboost.cli.run import FILES, fit_rows
    from cardboost.cli.training_table import read_training_table
    from cardboost.problem.budget import Budget

    budget = Budget.of(arguments.time)
    if arguments.hot_start == 0 and not arguments.reselect:
        raise BadInput("--hot-start 0 needs --reselect: without it there is no candidate to select from.")
    if arguments.holdout_by and not arguments.holdout:
        raise BadInput("--holdout-by needs --holdout: the part of the rows that is kept for the test.")
    read = read_training_table(arguments)
    rows, target, facts, test = read.rows, read.target, read.facts, None
    folder = make_folder(arguments.out)
    refuse_to_replace([folder / name for name in FILES], arguments.data)
    if arguments.holdout:
        rows, test = _hold_out(rows, target, arguments, facts)
    options, points = model_parameters(arguments, target), _points(arguments, target)
    say_what_was_read(read, arguments)
    with Interrupt().listening() as interrupt:
        quiet = arguments.quiet
        outcome = fit_rows(
            rows, target, options, facts,
            test=test, interrupt=interrupt, quiet=quiet, points=points, budget=budget,
        )  # fmt: skip
        outcome = replace(outcome, config=config_text(command, arguments, folder))
        written = outcome.write(folder)
    if arguments.json:
        print(json.dumps(_document(outcome, read, [str(path) for path in written]), indent=2))
    elif not quiet:
        print(printable_lines(_summary(outcome, facts, arguments, [str(path) for path in written])))
    if interrupt.asked:
        partly = "the best model so far" if outcome.interrupted else "the complete model"
        print(f"Interrupted: {partly} was written to {printable(str(folder))}.", file=sys.stderr)
        return INTERRUPTED
    return OK


def model_parameters(
    arguments: SimpleNamespace, target: Target, leave_out: Sequence[str] = ()
) -> dict[str, Any]:
    """Parameters of the estimator for a target; of two classes the labels are 0 and 1."""
    options = estimator_parameters(arguments, CLASSIFIER if target.classes else REGRESSOR, leave_out)
    if options.get("validation_fraction") is not None and options["random_state"] is None:
        options["random_state"] = 0  # else other rows are held out every time
    if arguments.class_weight and target.classes is None:
        raise BadInput("--class-weight is for classes; this is regression.")
    if getattr(arguments, "threshold", None) is not None and target.task != "binary":
        raise BadInput(f"--threshold is for two classes; this is {target.task}.")
    if isinstance(arguments.class_weight, dict) and target.classes is not None:
        known = list(map(str, target.classes))
        arguments.class_weight = pairs_in(arguments.class_weight, known, amount, "--class-weight")
        options["class_weight"] = _factors(arguments.class_weight, target)
    return options


def _factors(given: dict[str, float], target: Target) -> dict[Any, float]:
    """Class weights by the labels that the estimator is given."""
    from cardboost.model.predictions import label_text

    assert target.classes is not None
    factors: dict[Any, float] = {}
    known = list(map(label_text, target.classes))
    for text, factor in given.items():
        codes = [k for k, label in enumerate(target.classes) if label_text(label) == label_text(text.strip())]
        if not codes:
            raise BadInput(
                f"--class-weight {text}={factor:g}: there is no such class; they are {listed(known)}."
            )
        factors[codes[0] if target.task == "binary" else target.classes[codes[0]]] = factor
    return factors


def _points(arguments: SimpleNamespace, target: Target) -> dict[str, Any] | None:
    """Options of ``scorecard``; None if there is to be none."""
    from cardboost.model.ensemble import LOG_ODDS

    asked = {
        "points": arguments.points,
        "base_score": arguments.base_score,
        "base_odds": arguments.base_odds,
        "points_to_double_odds": arguments.double_odds,
        "max_bytes": arguments.max_bytes,
    }
    if all(value is None for value in asked.values()):
        return None
    if target.task != "binary":
        raise BadInput(f"whole points are for two classes; this is {target.task}.")
    if arguments.loss not in (None, *LOG_ODDS):
        raise BadInput(f"whole points are log-odds, and need --loss {' or '.join(LOG_ODDS)}.")
    if arguments.max_terms is None and not arguments.l0:
        raise BadInput("whole points need --max-terms or --l0: they are chosen together with the terms.")
    return asked


def say_what_was_read(read: TrainingTable, arguments: SimpleNamespace, verb: str = "fit") -> None:
    """The columns on stdout, unless that is for JSON; what was left out and other remarks on stderr."""
    from cardboost.data.roles import left_out_lines, role_lines

    if arguments.quiet:
        return
    facts = read.facts
    if not arguments.json:
        counts = [
            f"{count:,} of class {printable(label)}" for label, count in (facts["classes"] or {}).items()
        ]
        shown = f" ({', '.join(counts[:6])}{', ...' if len(counts) > 6 else ''})" if counts else ""
        features = counted(facts["features"], "feature")
        print(f"{printable(facts['file'])}: {facts['rows']:,} rows{shown}, {features}\n")
        print("\n".join(role_lines(read.roles, printable)) + "\n", flush=True)
    for remark in (*left_out_lines(read.roles, printable), *read.remarks):
        say(remark, verb)


def _document(run: Run, read: TrainingTable, written: list[str]) -> dict[str, Any]:
    """What --json prints."""
    from cardboost import __version__

    return {
        "cardboost": __version__,
        **run.result(),
        "parameters": run.parameters,
        "data": run.data,
        "columns": [column.to_dict() for column in read.roles],
        "remarks": list(read.remarks),
        "card": run.card,
        "header": {"format": run.headers.format, "remark": run.headers.remark},
        "files": written,
    }


def _hold_out(
    rows: Rows, target: Target, arguments: SimpleNamespace, facts: dict[str, Any]
) -> tuple[Rows, Rows]:
    """Rows to train on and rows to test on; notes in ``facts`` how they were split."""
    from cardboost.cli.rows import kept_rows

    seed = arguments.seed or 0
    keep = kept_rows(rows, arguments.holdout, seed)
    few = target.classes is not None and len(set(rows.target[keep].tolist())) < len(target.classes)
    if keep.all() or not keep.any() or few:
        raise BadInput(
            f"--holdout {arguments.holdout:g} of {len(keep):,} rows leaves no rows for the test, or not all "
            "classes to train on."
        )
    facts["holdout"] = {
        "fraction": arguments.holdout,
        "seed": seed,
        "by": arguments.holdout_by or arguments.group,
        "latest": rows.split is not None and rows.split.dtype.kind == "M",
        "rows": int((~keep).sum()),
    }
    return rows.take(keep), rows.take(~keep)


def _summary(run: Run, facts: dict[str, Any], arguments: SimpleNamespace, written: list[str]) -> str:
    from cardboost.cli.run import USUAL_ENDINGS, certificate_lines, files_lines, score_line

    if run.ensemble.n_terms <= _LONGEST_CARD:
        text = run.card
    else:
        text = "\n".join(
            [
                f"{run.ensemble.n_terms} terms: see {written[1]} for the card.",
                "",
                "Certificate",
                *(line for certificate in run.certificates for line in certificate_lines(certificate)),
                "",
            ]
        )
    lines = [text]
    lines += [score_line(name, scores) for name, scores in run.scores.items()]
    stop = "" if run.ending.status in USUAL_ENDINGS else f"; {run.ending.message}"
    lines.append(_regularisation_line(run.regularisation, arguments))
    n_candidates = sum(trace[-1].n_columns for trace in run.traces)
    lines.append(f"fitted in  {run.seconds:.2f} s, {counted(n_candidates, 'candidate term')}{stop}")
    lines += files_lines(run, written)
    form = format_words(arguments)
    verbs = ("predict", "evaluate", "certify")
    lines += next_lines(((verb, written[0], *arguments.data, *form) for verb in verbs), arguments.data)
    return "\n".join(lines)


def _regularisation_line(chosen: Regularisation, arguments: SimpleNamespace) -> str:
    """What was decided of l2 and the number of terms, and how: "l2 0.03, chosen by cross-validation"."""
    terms = f"at most {counted(chosen.max_terms or 0, 'term')}, " if arguments.max_terms == "auto" else ""
    return f"l2         {chosen.l2:g}, {terms}{chosen.reason}"


def format_words(arguments: SimpleNamespace) -> list[str]:
    """The options that say how a table is read, for the commands that come next."""
    words = []
    for name in ("delimiter", "decimal", "thousands"):
        value = getattr(arguments, name)
        words += [] if value is None else [f"--{name}", value]
    return words


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
    description="Train a small certified model on a table: CSV with a header, Parquet, Arrow or Excel.",
    examples="""\
cardboost fit patients.csv --target died --max-terms 8 --out run
cardboost fit loans.parquet --target status --positive default --drop id
cardboost fit sensors.csv.gz --target fault --holdout 0.3 --time 60
cardboost fit shops.csv --target closed --categorical region,zip
cardboost fit homes.csv --target price --date sold=year,month
cardboost fit visits.csv --target ill --holdout 0.3 --group patient
cardboost fit patients.csv --target died --monotonic age=increasing
cardboost fit loans.csv --target paid --points 5
cardboost fit loans.csv --target paid --base-score 600 --double-odds 20
cardboost fit motor.csv --target fault --max-bytes 96
cardboost fit --config card.toml --max-terms 5
""",
    notes="""Writes model.json, card.txt, card.h (the model as C), test_vectors.h, log.jsonl
and config.toml (these options) into the folder --out.

Every column gets a role, which is shown. Features are columns of numbers (true
and false count as 1 and 0) and of categories. Identifiers, constants and dates
are left out: --numeric or --categorical takes a column all the same, and --date
derives features. An empty cell, NA, NaN, null and ? are missing values. Several
names are written as a,b,c, or the option is given again.

Ctrl-C keeps and writes the best model so far; a second Ctrl-C aborts.

Exit codes: 0 written, 2 bad usage or input, 70 a bug, 130 interrupted (the
best model so far is written, unless Ctrl-C came before the fit or twice).""",
)

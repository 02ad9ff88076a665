"""`cardboost pareto`: a CSV file in; score against number of terms, with a model for every size, out."""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardboost.cli.files import (
    INTERRUPTED,
    OK,
    BadInput,
    command,
    counted,
    make_folder,
    write_together,
)
from cardboost.cli.options import (
    add_columns,
    add_data_options,
    add_delimiter,
    add_price_options,
    bins,
    count,
    positive,
    sizes,
    whole,
)
from cardboost.model.printable import printable, printable_lines

if TYPE_CHECKING:
    from cardboost.cli.progress import Interrupt
    from cardboost.cli.run import Rows
    from cardboost.pareto.front import ParetoFront, SizePoint
    from cardboost.problem.budget import Budget

EXAMPLE = """\
examples:
  cardboost pareto patients.csv --target died --out front
  cardboost pareto loans.csv --target paid --sizes 1-10,15,20 --scoring roc_auc
  cardboost pareto motor.csv --target fault --pick knee --jobs 2

For every size the mean score on held-out rows, its standard error, and a model
of all rows with its certificate. Writes front.json, table.csv, front.svg,
index.html (one page, nothing is fetched) and, of the size that --pick names,
model.json and card.txt into the folder --out. The data are read as by fit.
Ctrl-C keeps and writes the folds that are done; a second Ctrl-C aborts.

exit codes: 0 written, 2 bad usage or input, 70 a bug, 130 interrupted (what is
done is written, unless Ctrl-C came before the first fold or twice)
"""
FRONT, TABLE, FIGURE, PAGE, MODEL, CARD = (
    "front.json",
    "table.csv",
    "front.svg",
    "index.html",
    "model.json",
    "card.txt",
)


def add_parser(verbs: Any, **style: Any) -> None:
    parser = verbs.add_parser(
        "pareto",
        help="score against number of terms, by cross-validation",
        description="Score against number of terms by cross-validation, with a model for every size.",
        epilog=EXAMPLE,
        **style,
    )
    parser.set_defaults(run=run)
    add_data_options(parser, out="front", shown="table")

    front = parser.add_argument_group("the front")
    front.add_argument(
        "--sizes", type=sizes, default=tuple(range(1, 21)), metavar="LIST", help="terms (default: 1-20)"
    )
    front.add_argument("--folds", type=_folds, default=5, metavar="N", help="2 or more (default: 5)")
    front.add_argument(
        "--scoring",
        default="neg_log_loss",
        metavar="NAME",
        help="a scorer of scikit-learn (default: neg_log_loss)",
    )
    front.add_argument(
        "--pick",
        type=_pick,
        default="1se",
        metavar="RULE",
        help="the model to write: 1se, knee, best or a size (default: 1se)",
    )
    front.add_argument("--seed", type=count, default=0, metavar="N", help="which rows are where (default: 0)")
    front.add_argument("--time", type=positive, metavar="SECONDS", help="for all, the proofs included")
    front.add_argument("--jobs", type=whole, default=1, metavar="N", help="folds at once (default: 1)")
    front.add_argument("--threads", type=whole, metavar="N", help="threads (default: all cores; same result)")

    model = parser.add_argument_group("the models")
    add_price_options(model)
    model.add_argument(
        "--hot-start", type=whole, default=40, metavar="N", help="candidates to choose from (default: 40)"
    )
    model.add_argument(
        "--max-bins", type=bins, default=255, metavar="N", help="bins per feature, 2 to 255 (default: 255)"
    )

    data = parser.add_argument_group("the data")
    add_columns(data)
    add_delimiter(data)


def _folds(text: str) -> int:
    found = whole(text)
    if found < 2:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 2, got {text!r}")
    return found


def _pick(text: str) -> str | int:
    from cardboost.pareto.picking import RULES

    if text in RULES:
        return text
    try:
        return whole(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"expected {', '.join(RULES)} or a size, got {text!r}") from None


def run(arguments: argparse.Namespace) -> int:
    from cardboost.cli.fit import read_rows, say_what_was_read
    from cardboost.cli.inferred import describe
    from cardboost.cli.progress import Interrupt
    from cardboost.problem.budget import Budget

    budget = Budget.of(arguments.time)
    if isinstance(arguments.pick, int) and arguments.pick not in arguments.sizes:
        raise BadInput(f"--pick {arguments.pick}: this size is not among --sizes.")
    rows, classes, facts = read_rows(arguments, "pareto")
    folder = make_folder(arguments.out)
    if not arguments.quiet:
        say_what_was_read(facts, describe(rows.table), arguments.json, "pareto")
    started = time.perf_counter()
    with Interrupt().listening() as interrupt:
        front = _with_classes(_compute(rows, arguments, interrupt, budget), classes)
        pick = arguments.pick
        point = front.at(pick) if isinstance(pick, int) else front.picked(pick)
        seconds = time.perf_counter() - started
        written = write_together(folder, _contents(front, point, facts))
    if arguments.json:
        print(json.dumps(_document(front, point, facts, seconds, written), indent=2))
    elif not arguments.quiet:
        print(printable_lines(_summary(front, point, facts, arguments, seconds, written)))
    if interrupt.asked:
        partly = "all" if front.status == "complete" else f"{front.n_folds_done} of {front.n_folds}"
        print(
            f"Interrupted: the front of {partly} folds was written to {printable(str(folder))}.",
            file=sys.stderr,
        )
        return INTERRUPTED
    return OK


def _compute(rows: Rows, arguments: argparse.Namespace, interrupt: Interrupt, budget: Budget) -> ParetoFront:
    from cardboost.cli.progress import Progress
    from cardboost.estimators.card_boost import CardBoostClassifier
    from cardboost.pareto.compute import FrontWork

    names = ("l0", "l1", "l2", "loss", "hot_start", "max_bins")
    options = {name: getattr(arguments, name) for name in names} | {"n_jobs": arguments.threads}
    progress = Progress(0, arguments.quiet)
    try:
        progress.begin("reading")
        # labels go in as 0 and 1, so that either class can be the positive one
        work = FrontWork.make(
            rows.table, rows.positive.astype(int), arguments.sizes, arguments.folds, arguments.scoring,
            CardBoostClassifier(**options), rows.weight, arguments.jobs, arguments.seed,
        )  # fmt: skip

        def say(stage: str, model: Any = None) -> None:
            if model is None:
                progress.begin(stage)
            else:
                own = model.certificate_
                progress.proved(stage, model.max_terms, own.objective, own.lower_bound, own.guarantee)

        return work.run(replace(budget, stopped=lambda: interrupt.asked), say)
    except (ValueError, TypeError) as error:
        raise BadInput(str(error)) from None
    finally:
        progress.close()


def _with_classes(front: ParetoFront, classes: tuple[Any, Any]) -> ParetoFront:
    """The front with the labels of the file in place of 0 and 1."""
    from cardboost.model.base import label_array

    points = []
    for point in front:
        model = copy.copy(point.model)
        model.classes_ = label_array(classes)
        model.ensemble_ = replace(model.ensemble_, classes=classes)
        model.certificate_ = replace(model.certificate_, positive=classes[1])
        points.append(replace(point, model=model))
    return replace(front, points=tuple(points))


def _contents(front: ParetoFront, point: SizePoint, facts: dict[str, Any]) -> dict[str, bytes | None]:
    """The files by name."""
    from cardboost.model.files import model_bytes, parameters_to_json
    from cardboost.pareto.file import front_bytes
    from cardboost.pareto.pages import csv_table, figure, page

    model = point.model
    training = {"parameters": parameters_to_json(model), "data": facts}
    target = f"{facts['target']} = {model.classes_[1]}"
    said = f"{facts['file']}: {counted(facts['rows'], 'row')}, {counted(facts['features'], 'feature')}."
    said += f" High scores mean {target}."
    try:
        contents = {
            FRONT: front_bytes(front),
            MODEL: model_bytes(model.ensemble_, model.certificate_.to_dict(), training),
        }
    except ValueError as error:
        raise BadInput(f"the front cannot be written: {error}.") from None
    texts = {
        TABLE: csv_table(front),
        FIGURE: figure(front).svg(),
        PAGE: page(front, point, said),
        CARD: model.card(),
    }
    return contents | {name: text.encode() for name, text in texts.items()}


def _document(
    front: ParetoFront, point: SizePoint, facts: dict[str, Any], seconds: float, written: list[Path]
) -> dict[str, Any]:
    """What --json prints."""
    from cardboost import __version__

    return {
        "cardboost": __version__,
        "scoring": front.scoring,
        "folds": front.n_folds_done,
        "folds_asked_for": front.n_folds,
        "status": front.status,
        "picked": point.size,
        "table": front.table(),
        "stability": front.stability(point.size),
        "data": facts,
        "seconds": round(seconds, 3),
        "files": [str(path) for path in written],
    }


def _summary(
    front: ParetoFront,
    point: SizePoint,
    facts: dict[str, Any],
    arguments: argparse.Namespace,
    seconds: float,
    written: list[Path],
) -> str:
    paths = {path.name: str(path) for path in written}
    extra = [] if arguments.delimiter is None else ["--delimiter", arguments.delimiter]
    check = ["certify", paths[MODEL], arguments.data, "--target", facts["target"]]
    check += [] if facts["weight"] is None else ["--weight", facts["weight"]]
    done = counted(len(front), "size")
    return "\n".join(
        [
            str(front),
            "",
            f"{done} in {seconds:.1f} s; {MODEL} and {CARD} are those of {counted(point.size, 'term')}.",
            "",
            "The files:",
            *(f"  {path}" for path in paths.values()),
            "",
            "Next:",
            command("cardboost", "predict", paths[MODEL], arguments.data, *extra),
            command("cardboost", *check, *extra),
        ]
    )

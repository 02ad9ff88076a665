"""`cardboost pareto`: a table in; score against number of terms, with a model for every size, out."""

from __future__ import annotations

import copy
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from cardboost.cli.checks import Value, count, folds, number, positive, sizes, text, unexpected, whole
from cardboost.cli.config import CONFIG, config_text
from cardboost.cli.files import (
    INTERRUPTED,
    OK,
    BadInput,
    make_folder,
    next_lines,
    refuse_to_replace,
    write_together,
)
from cardboost.cli.options import DATA, FORMAT, ROLES, TARGET, in_options, model_options, option, output
from cardboost.cli.verb import Verb, did_you_mean
from cardboost.data.sentences import counted
from cardboost.model.printable import printable, printable_lines

if TYPE_CHECKING:
    from cardboost.cli.progress import Interrupt
    from cardboost.cli.rows import Rows, Target
    from cardboost.pareto.front import ParetoFront, SizePoint
    from cardboost.problem.budget import Budget

FRONT, TABLE, FIGURE, PAGE, MODEL, CARD = (
    "front.json",
    "table.csv",
    "front.svg",
    "index.html",
    "model.json",
    "card.txt",
)


def run(arguments: SimpleNamespace) -> int:
    from cardboost.cli.fit import say_what_was_read
    from cardboost.cli.progress import Interrupt
    from cardboost.cli.training_table import read_training_table
    from cardboost.problem.budget import Budget

    budget = Budget.of(arguments.time)
    if isinstance(arguments.pick, int) and arguments.pick not in arguments.sizes:
        raise BadInput(f"--pick {arguments.pick}: this size is not among --sizes.")
    read = read_training_table(arguments)
    facts, target = read.facts, read.target
    _check_scoring(arguments.scoring, target)
    folder = make_folder(arguments.out)
    files = (FRONT, TABLE, FIGURE, PAGE, MODEL, CARD, CONFIG)
    refuse_to_replace([folder / name for name in files], arguments.data)
    say_what_was_read(read, arguments, "pareto")
    started = time.perf_counter()
    with Interrupt().listening() as interrupt:
        front = _compute(read.rows, target, arguments, interrupt, budget)
        front = _with_classes(front, target) if target.task == "binary" else front
        pick = arguments.pick
        point = front.at(pick) if isinstance(pick, int) else front.picked(pick)
        seconds = time.perf_counter() - started
        contents = _contents(front, point, facts)
        contents[CONFIG] = config_text(command, arguments, folder).encode()
        written = write_together(folder, contents)
    if arguments.json:
        print(json.dumps(_document(front, point, facts, seconds, written), indent=2))
    elif not arguments.quiet:
        print(_shown(front), end="\n\n")
        print(printable_lines(_summary(front, point, facts, arguments, seconds, written)))
    if interrupt.asked:
        partly = "all" if front.status == "complete" else f"{front.n_folds_done} of {front.n_folds}"
        print(
            f"Interrupted: the front of {partly} folds was written to {printable(str(folder))}.",
            file=sys.stderr,
        )
        return INTERRUPTED
    return OK


def _check_scoring(name: str | None, target: Target) -> None:
    from sklearn.metrics import get_scorer_names  # many modules

    from cardboost.pareto.folds import REGRESSION_SCORERS

    if name is not None and name not in (names := get_scorer_names()):
        hint = did_you_mean(name, names) or "; accuracy is one of them."
        raise BadInput(f"--scoring {name}: scikit-learn has no scorer of this name{hint}")
    if name is not None and target.classes is None and name not in REGRESSION_SCORERS:
        raise BadInput(
            f"--scoring {name} is for classes; this is regression, for which there are "
            f"{', '.join(REGRESSION_SCORERS)}."
        )


def _compute(
    rows: Rows, target: Target, arguments: SimpleNamespace, interrupt: Interrupt, budget: Budget
) -> ParetoFront:
    from cardboost.cli.fit import model_parameters
    from cardboost.cli.progress import Progress
    from cardboost.estimators.base import certificates_of
    from cardboost.estimators.card_boost import CardBoostClassifier, CardBoostRegressor
    from cardboost.pareto.compute import FrontWork

    options = model_parameters(arguments, target, _OF_THE_FRONT)
    estimator = CardBoostClassifier(**options) if target.classes else CardBoostRegressor(**options)
    left = budget.left if budget.limited else None
    progress = Progress(0, arguments.quiet, seconds=left, interrupt=interrupt)
    try:
        progress.begin("reading")
        work = FrontWork.make(
            rows.table, rows.labels(target), arguments.sizes, _folds(rows, target, arguments),
            arguments.scoring, estimator, rows.weight, arguments.jobs, arguments.seed,
        )  # fmt: skip

        def say(stage: str, model: Any = None) -> None:
            if model is None:
                progress.begin(stage)
            else:
                for proof in certificates_of(model):
                    progress.proved(
                        stage, model.max_terms, proof.objective, proof.lower_bound, proof.guarantee
                    )

        return work.run(replace(budget, stopped=lambda: interrupt.asked), say)
    except (ValueError, TypeError) as error:
        raise BadInput(in_options(str(error)).replace("cv=", "--folds ", 1)) from None
    finally:
        progress.close()


def _folds(rows: Rows, target: Target, arguments: SimpleNamespace) -> Any:
    """How many folds, or the splits themselves where rows of one group stay together."""
    if rows.split is None:
        counts = target.counts(rows.target if rows.weight is None else rows.target[rows.weight > 0])
        for label, n in (counts or {}).items():
            if n < arguments.folds:
                raise BadInput(f"--folds {arguments.folds}: class {label} has only {counted(n, 'row')}.")
        return arguments.folds
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    n_groups = len(set(rows.split.tolist()))
    if n_groups < arguments.folds:
        raise BadInput(
            f"--folds {arguments.folds}: --group {arguments.group} has only {counted(n_groups, 'group')}."
        )
    kind = StratifiedGroupKFold if target.classes else GroupKFold
    splitter = kind(arguments.folds, shuffle=True, random_state=arguments.seed)
    return list(splitter.split(rows.target, rows.target, rows.split))


def _with_classes(front: ParetoFront, target: Target) -> ParetoFront:
    """The front with the labels of the file in place of 0 and 1."""
    from cardboost.cli.run import relabelled
    from cardboost.model.base import label_array

    points = []
    for point in front:
        model = copy.copy(point.model)
        model.classes_ = label_array(target.classes or ())
        model.ensemble_, (model.certificate_,) = relabelled(model.ensemble_, model.certificate_, target)
        points.append(replace(point, model=model))
    return replace(front, points=tuple(points))


def _contents(front: ParetoFront, point: SizePoint, facts: dict[str, Any]) -> dict[str, bytes | None]:
    """The files by name."""
    from cardboost.cli.run import certificate_content, with_left_out
    from cardboost.estimators.base import certificates_of
    from cardboost.model.files import model_bytes, training_notes
    from cardboost.pareto.file import front_bytes
    from cardboost.pareto.pages import csv_table, figure, page

    model = point.model
    training = {**training_notes(model), "data": facts}
    said = f"{facts['file']}: {counted(facts['rows'], 'row')}, {counted(facts['features'], 'feature')}."
    if facts["task"] == "binary":
        said += f" High scores mean {facts['target']} = {model.classes_[1]}."
    try:
        contents: dict[str, bytes | None] = {
            FRONT: front_bytes(front),
            MODEL: model_bytes(model.ensemble_, certificate_content(certificates_of(model)), training),
        }
    except ValueError as error:
        raise BadInput(f"the front cannot be written: {error}.") from None
    texts = {
        TABLE: csv_table(front),
        FIGURE: figure(front).svg(),
        PAGE: page(front, point, said),
        CARD: with_left_out(model.card(), facts),
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


def _shown(front: ParetoFront) -> str:
    """The table as the screen likes it."""
    from cardboost.cli.screen import table_lines
    from cardboost.pareto.pages import HEADER, LAST, rows_of_text, text_table

    return text_table(front, table_lines(HEADER, rows_of_text(front), LAST))


def _summary(
    front: ParetoFront,
    point: SizePoint,
    facts: dict[str, Any],
    arguments: SimpleNamespace,
    seconds: float,
    written: list[Path],
) -> str:
    paths = {path.name: str(path) for path in written}
    from cardboost.cli.fit import format_words

    form = format_words(arguments)
    done = counted(len(front), "size")
    return "\n".join(
        [
            f"{done} in {seconds:.1f} s; {MODEL} and {CARD} are those of {counted(point.size, 'term')}.",
            "",
            "The files:",
            *(f"  {path}" for path in paths.values()),
            *next_lines(
                ((verb, paths[MODEL], *arguments.data, *form) for verb in ("predict", "certify")),
                arguments.data,
            ),
        ]
    )


def _pick(word: str) -> str | int:
    from cardboost.pareto.picking import RULES

    if word in RULES:
        return word
    try:
        return int(whole(word))
    except ValueError:
        raise unexpected(f"{', '.join(RULES)} or a size", word) from None


#: parameters of the estimator that are the front's own: its sizes, its time, its seed, its held-out rows
_OF_THE_FRONT = ("max_terms", "time_limit", "random_state", "validation_fraction", "threshold")
command = Verb(
    "pareto",
    run,
    {
        "The table": [DATA, TARGET, *ROLES, *FORMAT],
        "The front": [
            option(
                "sizes",
                Value(sizes, "LIST", show=lambda own: ",".join(map(str, own))),
                "numbers of terms",
                "1-20",
            ),
            option("folds", number(folds), "parts of the rows, each held out once", 5),
            option(
                "scoring",
                text("NAME"),
                "a scorer of scikit-learn",
                shown="neg_log_loss; for regression neg_mean_squared_error",
            ),
            option("pick", Value(_pick, "RULE"), "the model to write: 1se, knee, best or a size", "1se"),
            option("seed", number(count), "decides which rows are in which fold", 0),
            option("time", number(positive, "SECONDS"), "for all, the proofs included", shown="no limit"),
            option("jobs", number(whole), "folds that are computed at once", 1),
        ],
        **model_options(leave_out=_OF_THE_FRONT),
        "Output": output("front", "table"),
    },
    description="Score against number of terms by cross-validation, with a model for every size.",
    examples="""\
cardboost pareto patients.csv --target died --out front
cardboost pareto loans.csv --target paid --sizes 1-10,15,20 \\
    --scoring roc_auc
cardboost pareto motor.csv --target fault --pick knee --jobs 2
""",
    instead={
        "--max-terms": "--sizes names the numbers of terms",
        "--holdout": "--folds says into how many parts the rows are split",
        "--holdout-by": "--group keeps rows of one group in one fold",
        "--validation-fraction": "--folds says into how many parts the rows are split",
    },
    notes="""For every size the mean score on held-out rows, its standard error, and a model
of all rows with its certificate. Writes front.json, table.csv, front.svg,
index.html (one page, nothing is fetched), config.toml and, of the size that
--pick names, model.json and card.txt into the folder --out. The data are read
as by fit.

Ctrl-C keeps and writes the folds that are done; a second Ctrl-C aborts.

Exit codes: 0 written, 2 bad usage or input, 70 a bug, 130 interrupted (what is
done is written, unless Ctrl-C came before the first fold or twice).""",
)

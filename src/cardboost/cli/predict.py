"""`cardboost predict`: scores, probabilities and classes for the rows of a CSV file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any

from cardboost.cli.checks import PathText
from cardboost.cli.files import (
    OK,
    BadInput,
    binary_ensemble,
    closest,
    listed,
    one_file,
    read_model_file,
    replacing,
    say,
)
from cardboost.cli.options import DATA, DELIMITER, MODEL, flag, option
from cardboost.cli.verb import Verb
from cardboost.model.printable import printable

if TYPE_CHECKING:
    from cardboost.cli.source import Source
    from cardboost.cli.values import Kind
    from cardboost.data.frame import Frame
    from cardboost.model.ensemble import Ensemble

_ROWS_AT_ONCE = 65_536


def run(arguments: SimpleNamespace) -> int:
    from cardboost.cli.tables import open_table

    ensemble = binary_ensemble(read_model_file(arguments.model), arguments.model)
    used = [ensemble.feature_name(j) for j in ensemble.features_used]
    with open_table(one_file(arguments.data), arguments.delimiter) as source:
        require_columns(source, used, named=ensemble.feature_names is not None)
        frame, _ = source.read(used, kinds=known_kinds(ensemble, used))
        say(source.remark, "predict")
    labels = _cells(ensemble.classes or (), arguments.raw)
    if arguments.out == "-":
        shown = printable if sys.stdout.isatty() else str
        _write(sys.stdout, ensemble, frame, arguments.contributions, labels, shown)
        sys.stdout.flush()
    else:
        with replacing(Path(arguments.out)) as file:
            _write(file, ensemble, frame, arguments.contributions, labels)
    return OK


def _cells(classes: Sequence[Any], raw: bool) -> list[str]:
    """The labels of the classes as cells: text that a spreadsheet would take for a formula begins with '."""
    cells = [str(label) for label in classes]
    risky = [] if raw else [k for k, label in enumerate(classes) if _is_formula(label)]
    for k in risky:
        cells[k] = f"'{cells[k]}"
    if risky:
        say(
            f"labels that a spreadsheet would take for formulas are written with a quote in front, such as "
            f"{cells[risky[0]]!r}; --raw writes them as they are.",
            "predict",
        )
    return cells


def _is_formula(label: Any) -> bool:
    if not isinstance(label, str) or not label.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
        return False
    try:
        float(label)
    except ValueError:
        return True
    return False


def known_kinds(ensemble: Ensemble, names: list[str]) -> dict[str, Kind]:
    """How to read these columns for a model: text where its categories are text, else numbers."""
    kinds: dict[str, Kind] = dict.fromkeys(names, "numbers")
    for j, own in ensemble.categories.items():
        if any(isinstance(label, str) for label in (*own.kept[:1], *own.rare[:1])):
            kinds[ensemble.feature_name(j)] = "text"
    return kinds


def require_columns(source: Source, names: list[str], named: bool) -> None:
    """Say which columns of the model the file lacks."""
    lacking = [name for name in names if name.strip() not in source.names]
    if not lacking:
        return
    if not named:
        raise BadInput(
            f"the model was trained on columns without names: call them x0, x1, ... in {source.path} "
            f"({lacking[0]} is needed)."
        )
    if len(lacking) == 1:
        free = [name for name in source.names if name and name not in names]
        hint = closest(lacking[0], free)
        raise BadInput(f"{source.path} has no column {lacking[0]!r}, which the model needs: {hint}")
    raise BadInput(f"{source.path} lacks columns that the model needs: {listed(lacking)}.")


def _write(
    file: IO[str], ensemble: Ensemble, frame: Frame, contributions: bool, labels: Sequence[str],
    shown: Callable[[str], str] = str,
) -> None:  # fmt: skip
    """``labels``: the cells of the two classes. ``shown``: how names and labels are written."""
    writer = csv.writer(file, lineterminator="\n")
    used = list(ensemble.features_used)
    likely = ensemble.has_probabilities
    header = ["score", "probability", "class"] if likely else ["score", "class"]
    if contributions:
        header += ["contribution:(intercept)", *(f"contribution:{ensemble.feature_name(j)}" for j in used)]
    writer.writerow(map(shown, header))
    classes = [shown(label) for label in labels]
    for start in range(0, frame.n_rows, _ROWS_AT_ONCE):
        table = _model_rows(ensemble, frame, start, start + _ROWS_AT_ONCE)
        score = ensemble.decision_function(table)
        predicted = [classes[k] for k in (score > 0).astype(int).tolist()]
        chance = [ensemble.predict_proba(table)[:, 1].tolist()] if likely else []
        columns = [score.tolist(), *chance, predicted]
        if contributions:
            columns.append([ensemble.intercept] * len(score))
            columns += ensemble.contributions(table)[:, used].T.tolist()
        writer.writerows(zip(*columns, strict=True))


def _model_rows(ensemble: Ensemble, frame: Frame, start: int, stop: int) -> Frame:
    """Some rows with all columns of the model; those that it does not use count as missing."""
    import numpy as np

    from cardboost.data.frame import Frame

    stop = min(stop, frame.n_rows)
    absent = np.full(stop - start, np.nan)
    names = [ensemble.feature_name(j) for j in range(ensemble.n_features)]
    return Frame({n: frame.data[n][start:stop] if n in frame.data else absent for n in names}, stop - start)


command = Verb(
    "predict",
    run,
    {
        "What is scored": [MODEL, DATA, DELIMITER],
        "What is written": [
            option("out", PathText("FILE"), "where to write", "-", shown="-, the screen"),
            flag("contributions", "also what each used feature adds to the score"),
            flag("raw", "labels as they are, also those that a spreadsheet would run"),
        ],
    },
    description="Score the rows of a table with a model file.",
    examples="""\
cardboost predict run/model.json new.csv
cardboost predict run/model.json new.csv --out scores.csv --contributions
""",
    notes="""One line per row: score, probability (of the class that high scores stand for;
not with the hinge loss) and class. Columns are found by their names, in any
order; columns that the model does not use may be absent, and all others are
ignored.""",
)

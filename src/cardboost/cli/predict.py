"""`cardboost predict`: points, scores, probabilities, predictions and reasons for the rows of a table."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any

from cardboost.cli.checks import PathText, count, number
from cardboost.cli.files import OK, BadInput, read_model_file, refuse_to_replace, replacing, say
from cardboost.cli.options import DATA, FORMAT, MODEL, columns, flag, names_in, option
from cardboost.cli.verb import Verb
from cardboost.model.printable import printable

if TYPE_CHECKING:
    from cardboost.data.frame import Frame
    from cardboost.data.reader import Kind
    from cardboost.model.files import Model

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # how cells begin that a spreadsheet would run


def run(arguments: SimpleNamespace) -> int:
    from cardboost.cli.model_rows import ModelColumns, training_marks
    from cardboost.cli.rows import opened
    from cardboost.cli.unfamiliar import Unfamiliar

    refuse_to_replace([arguments.out], [arguments.model, *arguments.data])
    model = read_model_file(arguments.model)
    unfamiliar = Unfamiliar(model)
    needed = ModelColumns.of(model, arguments.model, used=True)
    with opened(arguments, training_marks(model)) as source:
        needed.require(source, model)
        keep = names_in(arguments.keep, source.names)
        for name in keep:
            source.require(name)
        kinds: dict[str, Kind] = {**dict.fromkeys(keep, "text"), **needed.kinds}
        batches = source.batches(list(kinds), kinds)
        cells = _Cells(raw=arguments.raw or arguments.json)
        parts = ((frame, unfamiliar.look(needed.features(frame))) for frame in batches)
        tables = (_columns(model, frame, features, keep, arguments, cells) for frame, features in parts)
        try:
            if arguments.out == "-":
                shown = printable if sys.stdout.isatty() else str
                _write(sys.stdout, tables, arguments.json, shown)
                sys.stdout.flush()
            else:
                with replacing(Path(arguments.out)) as file:
                    _write(file, tables, arguments.json)
        except OSError:  # the screen is closed, which Python says by an error that is a ValueError too
            raise
        except ValueError as error:
            raise BadInput(str(error)) from None
        for remark in (*source.remarks, *unfamiliar.remarks()):
            say(remark, "predict")
    if arguments.reasons and arguments.contributions:
        say(
            "contributions add up to the score; reasons do not, as they are measured from the least that a "
            "feature can add.",
            "predict",
        )
    if cells.quoted is not None:
        say(
            "cells that a spreadsheet would take for formulas are written with a quote in front, such as "
            f"{cells.quoted!r}; --raw writes them as they are.",
            "predict",
        )
    return OK


class _Cells:
    """Text as cells: what a spreadsheet would take for a formula begins with a quote, unless ``raw``."""

    def __init__(self, raw: bool) -> None:
        self.raw = raw
        self.quoted: str | None = None

    def __call__(self, text: Any) -> Any:
        if self.raw or not _is_formula(text):
            return text
        self.quoted = self.quoted or f"'{text}"
        return f"'{text}"


def _is_formula(text: Any) -> bool:
    if not isinstance(text, str) or not text.startswith(_FORMULA):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def _columns(
    model: Model,
    frame: Frame,
    features: Frame,
    keep: Sequence[str],
    arguments: SimpleNamespace,
    cells: _Cells,
) -> dict[str, list[Any]]:
    """What is written of some rows: columns of cells by their headings."""
    from cardboost.model.predictions import model_frame, model_predictions, top_reasons

    predictions = model_predictions(model, features)
    table: dict[str, list[Any]] = {cells(name): _kept(frame, name, cells) for name in keep}
    if predictions.points is not None:
        table["points"] = predictions.points.tolist()
    if predictions.task == "regression":
        table["prediction"] = predictions.predicted.tolist()
    elif predictions.task == "binary":
        if predictions.points is None:
            table["score"] = predictions.score.tolist()
        if predictions.probability is not None:
            table["probability"] = predictions.probability[:, 1].tolist()
    else:
        values = predictions.score if predictions.probability is None else predictions.probability
        what = "score" if predictions.probability is None else "probability"
        for k, label in enumerate(predictions.classes or ()):
            table[f"{what}:{label}"] = values[:, k].tolist()
    if predictions.classes is not None:
        table["class"] = [cells(label) for label in predictions.predicted.tolist()]
    if arguments.contributions:
        table |= _contributions(model, model_frame(model.ensemble, features))
    if arguments.reasons:
        reasons = top_reasons(model, features, arguments.reasons)
        for k in range(arguments.reasons):
            texts = [f"{row[k].name} {row[k].text}" if k < len(row) else None for row in reasons]
            table[f"reason {k + 1}"] = [None if text is None else cells(text) for text in texts]
            table[f"reason {k + 1} adds"] = [row[k].points if k < len(row) else None for row in reasons]
    return table


def _kept(frame: Frame, name: str, cells: _Cells) -> list[Any]:
    """The cells of a column as they stand in the table; missing ones are empty."""
    from cardboost.data.cells import plain

    values = frame[name].to_numpy()
    if values.dtype.kind == "O":
        return [cells(value) for value in values.tolist()]
    return [plain(value) for value in values.tolist()]


def _contributions(model: Model, table: Any) -> dict[str, list[Any]]:
    """What the intercept and each feature in use add to the score; to that of each of several classes.

    Of a scorecard these are points, and what every case begins with.
    """
    from cardboost.model.predictions import scorecard_of

    ensemble, card = model.ensemble, scorecard_of(model)
    if card is not None:
        points = card.points(table)
        given = {f"points:{ensemble.feature_name(j)}": points[:, j].tolist() for j in ensemble.features_used}
        return {"points:(start)": [card.start] * len(points), **given}
    added = ensemble.contributions(table)
    names = ensemble.classes if len(ensemble.parts) > 1 else (None,)
    columns: dict[str, list[Any]] = {}
    for k, (label, part) in enumerate(zip(names or (None,), ensemble.parts, strict=True)):
        head = "contribution" if label is None else f"contribution to {label}"
        values = added[:, :, k] if added.ndim == 3 else added
        columns[f"{head}:(intercept)"] = [part.intercept] * len(values)
        for feature in part.features_used:
            columns[f"{head}:{ensemble.feature_name(feature)}"] = values[:, feature].tolist()
    return columns


def _write(
    file: IO[str], tables: Iterator[dict[str, list[Any]]], as_json: bool, shown: Callable[[str], str] = str
) -> None:
    """Rows of CSV under one heading, or one JSON object a line. ``shown``: how text is written."""

    def plain(value: Any) -> Any:
        return shown(value) if isinstance(value, str) else value

    writer = csv.writer(file, lineterminator="\n")
    for k, table in enumerate(tables):
        rows = zip(*table.values(), strict=True)
        if as_json:
            file.writelines(json.dumps(dict(zip(table, row, strict=True))) + "\n" for row in rows)
            continue
        if k == 0:
            writer.writerow(map(shown, table))
        writer.writerows(map(plain, row) for row in rows)


command = Verb(
    "predict",
    run,
    {
        "The model and the rows": [MODEL, DATA, *FORMAT],
        "What is written": [
            option("out", PathText("FILE"), "where to write", "-", shown="-, the screen"),
            columns("keep", "columns of the table to carry through"),
            option("reasons", number(count), "so many features that speak most for the prediction", 0),
            flag("contributions", "what the intercept and each used feature add"),
            flag("json", "one JSON object a line in place of CSV"),
            flag("raw", "text as it is, also what a spreadsheet would run"),
        ],
    },
    description="Score the rows of a table with a model file.",
    examples="""\
cardboost predict run/model.json new.csv
cardboost predict run/model.json new.csv --out scores.csv --keep id
cardboost predict run/model.json new.csv --reasons 3
""",
    notes="""One line per row. Two classes: the score, or of a scorecard its total of points,
probability (of the class that high scores stand for; not with the hinge loss)
and class. More classes: a probability for each, and the class. Regression: the
prediction.

Contributions are the parts of the score: with the intercept they add up to it.
Of a scorecard they are points, and with the start they add up to the total.
A reason says how much a feature speaks for the prediction, counted from the
least that it could add (for the first of two classes from the most, for a
number from the middle), in points on a card of whole points. Reasons do not add
up to the score.

Columns are found by their names, in any order; columns that the model does not
use may be absent, and all others are ignored. Large files are read and written
a part at a time.""",
)

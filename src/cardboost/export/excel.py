"""A model as a workbook that scores rows with formulas: inputs on the left, one case per row.

The sheet "Score" has a column for every used feature, then its contributions, the total, the probability and
the class, with formulas in all prepared rows that can be filled down. The sheet "Card" holds the lines of the
card, which the formulas read: names and labels are text in cells and never part of a formula.

Spreadsheets compare numbers with ``<=`` to about 15 digits only. FREQUENCY compares them exactly, and by the
rule of a cut: it counts a value in the first bin that is not below it.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardboost.export.plan import Input, Plan, check_text
from cardboost.model.printable import printable
from cardboost.model.reasons import interval_texts

_HEAD = 3  # the row of the headings
_MOST_ROWS = 1_048_576  # of a sheet
_MOST_COLUMNS = 16_384
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")  # what XML or a cell cannot hold
_LONGEST = 32_767  # characters of a cell
_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")  # a cell would show the character with this number
_ACCENT, _SOFT, _INPUT = "1F4E78", "DDEBF7", "FFF9E5"


def export_excel(ensemble: Any, *, rows: int = 100) -> bytes:
    """The workbook, for Excel, LibreOffice and others that read .xlsx.

    An empty cell is a missing value; a row without any value stays empty. Labels are compared letter by
    letter, and one that the model does not know counts as missing; text in place of a number gives #N/A.

    Parameters
    ----------
    ensemble : Ensemble, MulticlassEnsemble or Scorecard
        A scorecard is added up in its points.
    rows : int, default 100
        How many rows have formulas; these can be filled down for more.

    Returns
    -------
    bytes
    """
    try:
        from openpyxl import Workbook
        from openpyxl.worksheet.properties import PageSetupProperties
    except ImportError:
        raise ImportError("the format 'excel' needs openpyxl: pip install 'cardboost[excel]'.") from None
    plan = Plan.of(ensemble)
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= _MOST_ROWS - _HEAD:
        raise ValueError(f"rows: expected a whole number from 1 to {_MOST_ROWS - _HEAD}, found {rows!r}.")
    if len(plan.inputs) * (1 + plan.n_scores) + 2 * plan.n_scores + 1 > _MOST_COLUMNS:
        raise ValueError(f"ensemble: a sheet has {_MOST_COLUMNS} columns, and the model needs more.")
    book = Workbook()
    sheet = book.active
    sheet.title = "Score"
    tables = _Card(book.create_sheet("Card"), plan).write()
    _Score(sheet, plan, tables, rows).write()
    for page in book:
        page.page_setup.orientation = "landscape"
        page.page_setup.fitToHeight = 0
        page.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    stream = io.BytesIO()
    book.save(stream)
    return _without_clock(stream)


def _without_clock(workbook: io.BytesIO) -> bytes:
    """The same workbook without the time of its making: equal models give equal files."""
    out = io.BytesIO()
    with zipfile.ZipFile(workbook) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "docProps/core.xml":
                data = re.sub(rb"\d{4}-\d\d-\d\dT[\d:.]+Z", b"1980-01-01T00:00:00Z", data)
            target.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


@dataclass(frozen=True)
class _Table:
    """Where the lines of an input are: absolute addresses in the sheet with the card."""

    keys: str  # cuts, or labels; nothing where there are none
    levels: tuple[str, ...]  # one range for every score
    missing: tuple[str, ...]  # one cell for every score


@dataclass(frozen=True)
class _Tables:
    inputs: tuple[_Table, ...]
    starts: tuple[str, ...]
    classes: tuple[str, ...]


class _Card:
    """The sheet with the lines of the card."""

    def __init__(self, sheet: Any, plan: Plan) -> None:
        self.sheet, self.plan, self.row = sheet, plan, 1

    def write(self) -> _Tables:
        plan, sheet = self.plan, self.sheet
        _title(sheet.cell(1, 1), plan.description())
        self.row = 3
        self._headings(["every case", *self._scores()])
        self.row += 1
        _text(sheet.cell(self.row, 1), "starts with")
        for k, value in enumerate(plan.intercepts.tolist()):
            _number(sheet.cell(self.row, 2 + k), value)
        starts = self._cells(self.row)
        classes: tuple[str, ...] = ()
        if plan.classes is not None:
            self.row += 2
            self._headings(["class", "means"])
            first = self.row + 1
            for k, label in enumerate(plan.classes):
                self.row += 1
                _label(sheet.cell(self.row, 1), label)
                _text(sheet.cell(self.row, 2), self._meaning(k))
            classes = tuple(f"Card!$A${first + k}" for k in range(len(plan.classes)))
        inputs = tuple(self._input(source) for source in plan.inputs)
        sheet.column_dimensions["A"].width = 34
        for letter in "BCDEFGH":
            sheet.column_dimensions[letter].width = 14
        return _Tables(inputs, starts, classes)

    def _meaning(self, k: int) -> str:
        if self.plan.n_scores > 1:
            return "the highest score, of equal ones the first"
        sign, limit = self.plan.decision
        what = "total" if self.plan.in_points else "score"
        return f"{what} {sign} {limit:g}" if k else "any other"

    def _scores(self) -> list[str]:
        """What levels are added to."""
        if self.plan.n_scores > 1:
            return list(map(str, self.plan.classes or ()))
        return ["points" if self.plan.in_points else "adds"]

    def _headings(self, texts: list[str]) -> None:
        from openpyxl.styles import Font, PatternFill

        for k, text in enumerate(texts):
            cell = _text(self.sheet.cell(self.row, 1 + k), text)
            cell.font = Font(bold=True)
            cell.fill = PatternFill("solid", fgColor=_SOFT)

    def _cells(self, row: int) -> tuple[str, ...]:
        return tuple(f"Card!${_column(2 + k)}${row}" for k in range(self.plan.n_scores))

    def _input(self, source: Input) -> _Table:
        """A heading, then lines: the key in the first column, then levels, then the line in words."""
        from openpyxl.styles import Alignment

        plan, sheet = self.plan, self.sheet
        self.row += 2
        last = 2 + plan.n_scores
        self._headings([source.name, *self._scores(), "if the value is"])
        if source.categories is None:
            steps = source.steps()
            keys, table = [*steps.cuts, None], steps.table
            words = [*interval_texts(steps.cuts), "missing"]
        else:
            pairs = source.labels()
            keys = [label for label, _ in pairs]
            _check_numbers(keys)
            words = ["exactly this label"] * len(keys) + ["missing, or another label"]
            table = np.array([*(levels for _, levels in pairs), source.missing])
        first = self.row + 1
        for key, levels, text in zip([*keys, None], table, words, strict=True):
            self.row += 1
            if key is not None and source.categories is None:
                _number(sheet.cell(self.row, 1), key)
            elif key is not None:
                _label(sheet.cell(self.row, 1), key)
            for k, level in enumerate(levels.tolist()):
                _number(sheet.cell(self.row, 2 + k), level)
            _text(sheet.cell(self.row, last), text).alignment = Alignment(indent=1)
        end = self.row - 1  # the last line is for missing values
        letters = [_column(2 + k) for k in range(plan.n_scores)]
        n_keys = sum(key is not None for key in keys)
        return _Table(
            f"Card!$A${first}:$A${first + n_keys - 1}" if n_keys else "",
            tuple(f"Card!${letter}${first}:${letter}${end}" for letter in letters),
            tuple(f"Card!${letter}${self.row}" for letter in letters),
        )


class _Score:
    """The sheet with one case per row."""

    def __init__(self, sheet: Any, plan: Plan, tables: _Tables, rows: int) -> None:
        self.sheet, self.plan, self.tables, self.rows = sheet, plan, tables, rows

    def write(self) -> None:
        from openpyxl.styles import Alignment, Font, PatternFill

        plan, sheet = self.plan, self.sheet
        n_inputs = len(plan.inputs)
        columns = self._columns()
        title = f"{plan.description()} Fill in the yellow cells, one case per row; an empty cell is missing."
        _title(sheet.cell(1, 1), title)
        for k, source in enumerate(plan.inputs):
            _text(sheet.cell(_HEAD, 1 + k), source.name)
        for k, (heading, _, _) in enumerate(columns):
            _text(sheet.cell(_HEAD, n_inputs + 1 + k), heading)
        for k in range(n_inputs + len(columns)):
            cell = sheet.cell(_HEAD, 1 + k)
            cell.font = Font(bold=True, color="FFFFFF")
            cell.fill = PatternFill("solid", fgColor=_ACCENT)
            cell.alignment = Alignment("center", "top", wrap_text=True)
            sheet.column_dimensions[_column(1 + k)].width = 14
        middle = Alignment("center")
        yellow = PatternFill("solid", fgColor=_INPUT)
        for row in range(_HEAD + 1, _HEAD + 1 + self.rows):
            for k in range(n_inputs):
                sheet.cell(row, 1 + k).fill = yellow
            for k, (_, formula, shown) in enumerate(columns):
                filled = "=" + formula.replace("{row}", str(row))
                cell = sheet.cell(row, n_inputs + 1 + k, filled)
                cell.number_format = shown
                if shown == "General":
                    cell.alignment = middle
        sheet.freeze_panes = sheet.cell(_HEAD + 1, 1)
        sheet.row_dimensions[_HEAD].height = 48
        self._validate()

    def _columns(self) -> list[tuple[str, str, str]]:
        """Headings, formulas with {row} for the number of the row, and how their values are shown."""
        columns = [*self._added(), *self._totals()]
        if not self.plan.inputs:
            return columns
        block = f"$A{{row}}:${_column(len(self.plan.inputs))}{{row}}"
        return [(text, f'IF(COUNTA({block})=0,"",{formula})', shown) for text, formula, shown in columns]

    @property
    def _names(self) -> list[str]:
        return list(map(str, self.plan.classes or ()))

    @property
    def _decimals(self) -> str:
        return "0" if self.plan.in_points else "0.0000"

    def _added(self) -> Iterator[tuple[str, str, str]]:
        plan = self.plan
        for k in range(plan.n_scores):
            what = self._names[k] if plan.n_scores > 1 else "points" if plan.in_points else "adds"
            for j, (source, table) in enumerate(zip(plan.inputs, self.tables.inputs, strict=True)):
                formula = _lookup(source, table, k, f"${_column(1 + j)}{{row}}")
                yield f"{source.name}: {what}", formula, self._decimals

    def _totals(self) -> Iterator[tuple[str, str, str]]:
        """Scores, probabilities and the class."""
        plan, names, n_inputs = self.plan, self._names, len(self.plan.inputs)
        several = plan.n_scores > 1
        what = "points" if plan.in_points else "score" if plan.decides else "prediction"
        for k, start in enumerate(self.tables.starts):
            parts = [f"{_column(n_inputs * (1 + k) + 1 + j)}{{row}}" for j in range(n_inputs)]
            yield f"{what}: {names[k]}" if several else what, "+".join([start, *parts]), self._decimals
        if not plan.decides:
            return
        cells = [f"{_column(n_inputs * (1 + plan.n_scores) + 1 + k)}{{row}}" for k in range(plan.n_scores)]
        chances = [_chance(plan, cell) for cell in cells]
        if chances[0] and not several:
            yield f"probability of {names[1]}", chances[0], "0.0%"
        elif chances[0]:
            total = f"({'+'.join(chances)})"
            for name, chance in zip(names, chances, strict=True):
                yield f"probability of {name}", f"IF({total}>0,{chance}/{total},1/{len(names)})", "0.0%"
        first, *_, last = self.tables.classes
        if several:
            block = f"{cells[0]}:{cells[-1]}"
            labels = f"{first}:{last.removeprefix('Card!')}"
            yield "class", f"INDEX({labels},MATCH(MAX({block}),{block},0))", "General"
        else:
            sign, limit = plan.decision
            yield "class", f"IF({cells[0]}{sign}{limit!r},{last},{first})", "General"

    def _validate(self) -> None:
        """Numbers only where numbers are read; a list to choose from for labels."""
        from openpyxl.worksheet.datavalidation import DataValidation

        for k, (source, table) in enumerate(zip(self.plan.inputs, self.tables.inputs, strict=True)):
            if source.categories is None:
                rule = DataValidation(
                    "decimal", operator="between", formula1="-1E+307", formula2="1E+307", allow_blank=True
                )
                rule.error, rule.showErrorMessage = "A number, or nothing where it is missing.", True
            else:
                rule = DataValidation("list", formula1=table.keys, allow_blank=True, showErrorMessage=False)
            letter = _column(1 + k)
            rule.add(f"{letter}{_HEAD + 1}:{letter}{_HEAD + self.rows}")
            self.sheet.add_data_validation(rule)


def _lookup(source: Input, table: _Table, k: int, cell: str) -> str:
    """The formula of what an input adds to a score."""
    levels, missing = table.levels[k], table.missing[k]
    if source.categories is None:
        value = f"SUMPRODUCT(FREQUENCY({cell},{table.keys}),{levels})" if table.keys else levels.split(":")[0]
        return f'IF({cell}="",{missing},IF(ISNUMBER({cell}),{value},NA()))'
    text = isinstance((*source.categories.kept, *source.categories.rare)[0], str)
    same = f"--EXACT({cell},{table.keys})" if text else f"--({table.keys}*1={cell}*1)"
    known = f"IF(SUMPRODUCT({same})=0,{missing},SUMPRODUCT({same},{levels}))"
    return f'IF({cell}="",{missing},{known if text else f"IFERROR({known},{missing})"})'


def _chance(plan: Plan, cell: str) -> str:
    """The formula of a probability; nothing where scores have none."""
    if plan.log_odds is not None:
        base, slope = plan.log_odds
        odds = cell if (base, slope) == (0, 1) else f"({base!r}+{slope!r}*{cell})"
        return f"IF({odds}>=0,1/(1+EXP(-{odds})),EXP({odds})/(1+EXP({odds})))"
    if plan.loss == "squared_hinge":
        return f"MIN(MAX(0.5+0.5*{cell},0),1)"
    return ""


def _check_numbers(labels: list[Any]) -> None:
    """Refuse numbers that a spreadsheet takes for equal, or does not hold."""
    seen: dict[str, Any] = {}
    for label in labels:
        if isinstance(label, str):
            continue
        if isinstance(label, int) and int(float(label)) != label:
            raise ValueError(f"categories: the label {label} has more digits than numbers in Excel.")
        other = seen.setdefault(f"{float(label):.13g}", label)
        if other is not label:
            raise ValueError(f"categories: Excel does not tell {other!r} from {label!r}.")


def _label(cell: Any, label: Any) -> None:
    """A label as a cell: text as it is, never a formula."""
    if isinstance(label, bool):
        cell.value = label
        return
    if not isinstance(label, str):
        _number(cell, label)
        return
    check_text(label, "categories, classes", "Excel")
    if _CONTROL.search(label) or len(label) > _LONGEST:
        shown = printable(label[:40])
        raise ValueError(f"categories, classes: {shown!r} holds a character that Excel cannot.")
    _string(cell, label)


def _number(cell: Any, value: float) -> None:
    """All digits of a number: of a float openpyxl writes 16."""
    cell.value = repr(value)
    cell.data_type = "n"


def _text(cell: Any, text: str) -> Any:
    """A text to read."""
    return _string(cell, printable(text)[:_LONGEST])


def _title(cell: Any, text: str) -> None:
    from openpyxl.styles import Font

    _text(cell, text).font = Font(bold=True, size=12, color=_ACCENT)


def _string(cell: Any, text: str) -> Any:
    cell.value = _ESCAPED.sub("_x005F_", text)
    cell.data_type = "s"  # also where it begins like a formula, or like an error
    cell.quotePrefix = True  # and when it is edited
    return cell


def _column(number: int) -> str:
    """The letters of a column."""
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(number))

"""Tables in files, whatever their format: names first, then the columns that are asked for.

What a file is shows in its first bytes. pyarrow reads all formats; it is loaded when a file is opened.

text_table.py   delimited text
typed_table.py  Parquet, Arrow IPC, spreadsheets
cells.py        what cells mean, and columns as they come in
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import IO, Any

from cardboost.data.cells import LOCALES, MOSTLY, Column, Kind, Marks, Points, TableError, settle, viable
from cardboost.data.frame import Frame
from cardboost.data.sentences import as_categories, closest, counted, listed, reason, short
from cardboost.data.text_table import TextTable
from cardboost.data.typed_table import TypedTable, spreadsheet_to_text

__all__ = ["Kind", "TableError", "TableFile", "TableFormat", "open_table"]

_LEAST_CHANGED = 10  # numbers before text that get a remark

_GZIP, _ZSTD, _ZIP, _XLS = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_PARQUET, _ARROW, _ARROW_STREAM, _FEATHER_1 = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", b"FEA1"


@dataclass(frozen=True)
class TableFormat:
    """How text is written; None: found out.

    Parameters
    ----------
    delimiter : str, optional
        Between cells.
    decimal : str, optional
        ``"."`` or ``","``.
    thousands : str, optional
        Between groups of digits; a space stands for all kinds of spaces, ``""`` for no mark.
    usual : Marks, optional
        How numbers are written in the table that a model was trained on: what is looked for first, and what
        decides where a table leaves it open.
    """

    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    usual: Marks | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise TableError(f"the decimal mark must be '.' or ',', found {self.decimal!r}.")
        mark = self.thousands
        if mark and (len(mark) != 1 or mark.isalnum() or mark in "+-" or mark == self.decimal):
            raise TableError(
                f"the mark of thousands must be one sign other than the decimal mark, found {mark!r}."
            )

    def ways(self) -> tuple[Marks, ...]:
        """All ways to write numbers; those that agree with what is given come first, then the usual ones."""
        mark = self.thousands or None
        given = [Marks(decimal, mark) for decimal in ".," if mark is not None and decimal != mark]
        usual = self.usual or Marks()

        def order(way: Marks) -> tuple[Any, ...]:
            return not self.allows(way), way != usual, way.decimal != usual.decimal, *_rank(way)

        return tuple(sorted({*LOCALES, *given, usual}, key=order))

    def allows(self, way: Marks) -> bool:
        """Whether a way to write numbers agrees with what is given."""
        decimal = self.decimal is None or way.decimal == self.decimal
        return decimal and (self.thousands is None or way.thousands == (self.thousands or None))


def _rank(way: Marks) -> tuple[int, str]:
    return LOCALES.index(way) if way in LOCALES else len(LOCALES), way.decimal


# ------------------------------------------------------------------------------------------------ opening


@contextlib.contextmanager
def open_table(paths: str | Sequence[str], form: TableFormat | None = None) -> Iterator[TableFile]:
    """Open one file, or several of one schema, with the names read.

    Parameters
    ----------
    paths : str or sequence of str
        Files, patterns such as ``"2024-*.csv"``, or ``"-"`` for the standard input.
    form : TableFormat, optional
        What is known about files of text.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise TableError(
            "reading tables needs one more package, pyarrow: pip install 'cardboost[cli]'."
        ) from None
    form = form or TableFormat()
    with contextlib.ExitStack() as stack:
        parts = [_open_part(path, form, stack) for path in _expanded(paths)]
        yield TableFile(parts, form)


def _expanded(paths: str | Sequence[str]) -> list[str]:
    expanded: list[str] = []
    for path in [paths] if isinstance(paths, str) else paths:
        is_pattern = glob.has_magic(path) and not os.path.exists(path)
        matches = sorted(glob.glob(path, recursive=True)) if is_pattern else [path]
        if not matches:
            raise TableError(f"no file matches {path!r}.")
        expanded += matches
    if not expanded:
        raise TableError("name a file to read.")
    return expanded


def _open_part(path: str, form: TableFormat, stack: contextlib.ExitStack) -> TextTable | TypedTable:
    """One file, by its first bytes."""
    shown = "standard input" if path == "-" else path
    with _system_faults(shown):
        file = _regular(path, stack)
        with open(file, "rb") as opened:
            head = opened.read(8)
        size = os.path.getsize(file)
        if head.startswith(_PARQUET):
            return TypedTable(shown, file, "parquet")
        if head.startswith(_ARROW):
            return TypedTable(shown, file, "arrow")
        if head.startswith(_ARROW_STREAM):
            return TypedTable(shown, file, "arrow stream")
        if head.startswith(_FEATHER_1):
            raise TableError(f"{shown} is a Feather file of the first version: write it again as Feather 2.")
        if head.startswith(_XLS):
            raise TableError(f"{shown} is an old spreadsheet (.xls): save the table as .xlsx or CSV.")
        if head.startswith(_ZIP):
            with _temporary(stack, "w", encoding="utf-8", newline="") as copy:
                remarks = spreadsheet_to_text(shown, file, copy)
            table = TextTable(shown, copy.name, size, None, ",", unit="row", format="excel", marks_fixed=True)
            table.sheets = remarks
            return table
        compression = {_GZIP: "gzip", _ZSTD: "zstd"}.get(head[:2] if head[:2] == _GZIP else head[:4])
        return TextTable(shown, file, size, compression, form.delimiter)


def _regular(path: str, stack: contextlib.ExitStack) -> str:
    """A file that can be read twice: what comes through a pipe is copied to the disk first."""
    if path != "-":
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise TableError(f"{path!r} is a folder: name a file in it.")
        if stat.S_ISREG(mode):
            return path
    with contextlib.ExitStack() as closing, _temporary(stack, "wb") as copy:
        source = sys.stdin.buffer if path == "-" else closing.enter_context(open(path, "rb"))
        shutil.copyfileobj(source, copy)
    return copy.name


def _temporary(stack: contextlib.ExitStack, mode: str, **options: Any) -> IO[Any]:
    """A new file that is removed in the end."""
    file = tempfile.NamedTemporaryFile(mode, prefix="cardboost-", delete=False, **options)  # noqa: SIM115
    stack.callback(os.unlink, file.name)
    return file


@contextlib.contextmanager
def _system_faults(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TableError(f"cannot read {path!r}: {reason(error)}.") from None


# ------------------------------------------------------------------------------------------------ reading


class TableFile:
    """Open files of one schema, which can be read any number of times.

    Attributes
    ----------
    path : str
        What messages call it.
    names : list of str
        The columns, without spaces around their names; names may be empty or equal.
    """

    def __init__(self, parts: Sequence[TextTable | TypedTable], form: TableFormat) -> None:
        self.parts = parts
        others = "" if len(parts) == 1 else f" and {counted(len(parts) - 1, 'more file')}"
        self.path = parts[0].path + others
        self.names = parts[0].names
        self._times = Counter(self.names)
        for part in parts[1:]:
            self._require_same_names(part)
        self.given = TableFormat(decimal=".", thousands="") if all(p.marks_fixed for p in parts) else form
        self.ways = self.given.ways()
        self.possible = allowed = [way for way in self.ways if self.given.allows(way)]
        for part in parts:
            agreed = part.survey(allowed)
            self.possible = [way for way in self.possible if way in agreed] or allowed
        self._points: dict[str, Points] = {}  # of the columns that were read
        self._changes: dict[str, str] = {}  # remarks on columns that begin with numbers and end with text
        self.units: dict[str, str] = {}  # signs that were left out of columns of numbers
        self._guessed_with = allowed[0].decimal
        self._use(Marks() if self._ambiguous(self.possible) else self.possible[0])

    def _require_same_names(self, part: TextTable | TypedTable) -> None:
        first = self.parts[0].path
        times = Counter(part.names)
        differences = {"lacks": list(self._times - times), "also has": list(times - self._times)}
        what = " and ".join(f"{verb} {listed(names)}" for verb, names in differences.items() if names)
        if what:
            raise TableError(f"{part.path} has other columns than {first}: it {what}.")

    def _use(self, marks: Marks) -> None:
        """Read numbers with these marks from now on."""
        self.marks = marks
        if marks.decimal != self._guessed_with:
            self._guessed_with = marks.decimal
            for part in self.parts:
                part.guess_types(marks)

    @property
    def form(self) -> dict[str, str | None]:
        """Format, compression, encoding, delimiter, decimal, thousands: for logs."""
        keys = ("format", "compression", "encoding", "delimiter")
        form = {key: self.parts[0].form.get(key) for key in keys}
        if form["format"] == "csv":
            form |= {"decimal": self.marks.decimal, "thousands": self.marks.thousands}
        return form

    @property
    def remarks(self) -> list[str]:
        """What the user should know about how it was read, a sentence each."""
        remarks = [remark for part in self.parts for remark in part.remarks]
        usual = self.given.usual
        is_other = usual is not None and self.marks != usual
        if (self.marks != Marks() or is_other) and not (self.given.decimal and self.given.thousands):
            other = f"; the table of the model had {usual.words}" if usual is not None and is_other else ""
            remarks.append(f"{self.path} was read with {self.marks.words}{other}.")
        if self.marks == Marks() and Marks(",", ".") in self.possible:
            remarks += self._doubts()
        remarks += self._changes.values()
        if self.units:
            remarks.append(self._without_units())
        return list(dict.fromkeys(remarks))

    def _without_units(self) -> str:
        """A remark on the columns of numbers with a sign such as $ beside them."""
        columns: dict[str, list[str]] = {}
        for name, sign in self.units.items():
            columns.setdefault(sign, []).append(name)
        (sign, names), *others = columns.items()
        were = "was" if len(names) == 1 else "were"
        parts = [f"{listed(names)} {were} read as numbers without {sign!r}"]
        parts += [f"{listed(names)} without {sign!r}" for sign, names in others]
        return f"{self.path}: {', '.join(parts)}{' (20.5% is 20.5)' if '%' in columns else ''}."

    def _doubts(self) -> list[str]:
        """A remark on columns in which all points may stand between thousands, where none tells otherwise."""
        doubts = {name: points for name, points in self._points.items() if points.doubtful}
        if not doubts or any(points.decimal for points in self._points.values()):
            return []
        points = next(iter(doubts.values()))
        columns = f"column{'s' if len(doubts) > 1 else ''} {listed(list(doubts))}"
        return [
            f"{self.path}: the points in {columns} were read as decimal marks ({points.with_point!r} beside "
            f"{points.without!r}); if they stand between thousands, say so with --thousands . (if not, "
            "--decimal . ends this remark)."
        ]

    def zero_padded(self) -> dict[str, str]:
        """Columns of codes such as 03136, each with an example; all files agree on them."""
        first, *others = (part.zero_padded() for part in self.parts)
        return {name: example for name, example in first.items() if all(name in other for other in others)}

    def require(self, name: str, unique: bool = True) -> None:
        """Refuse a name that is not in the header, with suggestions, or there more than once."""
        if name.strip() not in self._times:
            known = [other for other in self.names if other]
            raise TableError(f"{self.path} has no column {name!r}: {closest(name, known)}")
        if unique and self._times[name.strip()] > 1:
            raise TableError(
                f"{self.path} has more than one column named {name.strip()!r}: names must differ."
            )

    def place(self, row: int) -> str:
        """Where a data row (from 0) stands: "line 17", "row 17", "b.csv, line 3". Reads the file again."""
        if len(self.parts) == 1:
            return self.parts[0].place(row)
        for part in self.parts:
            n_rows = sum(len(columns[0]) for columns in part.batches({}, self.marks))
            if row < n_rows:
                return f"{part.path}, {part.place(row)}"
            row -= n_rows
        raise IndexError(row)

    def _at(self, row: int) -> str:
        return self.place(row) if len(self.parts) > 1 else f"{self.path}, {self.place(row)}"

    def read(self, names: Sequence[str], kinds: Mapping[str, Kind] | None = None) -> Frame:
        """These columns, under the names asked for.

        Parameters
        ----------
        names : sequence of str
            Columns, by their names in the header.
        kinds : mapping, optional
            What to make of a column: ``"auto"`` (the default), ``"numbers"``, ``"categories"``, ``"text"``.
        """
        wanted = self._wanted(names, kinds)
        columns, n_rows = self._collected(wanted, keep=True)
        late: dict[str, Kind] = {column.name: column.kind for column in columns if column.late}
        if late:
            again = {column.name: column for column in self._pass(late, True, set(late))[0]}
            columns = [again.get(column.name, column) for column in columns]
        data = {column.name: column.finish(column.is_numbers) for column in columns}
        return Frame(data, n_rows)

    def batches(self, names: Sequence[str], kinds: Mapping[str, Kind] | None = None) -> Iterator[Frame]:
        """The same rows in batches; labels of a column may differ from batch to batch.

        Columns of kind auto or categories are read once before, to find out what they hold.
        """
        wanted = self._wanted(names, kinds)
        unknown = {name: kind for name, kind in wanted.items() if kind in ("auto", "categories")}
        text = {name for name, kind in wanted.items() if kind == "text"}
        if unknown:
            text |= {column.name for column in self._collected(unknown, False)[0] if not column.is_numbers}
        n_rows = 0
        self._points |= {name: Points() for name in wanted}
        units: dict[str, int | None] = {}
        for arrays, typed in self._arrays(wanted, text):
            columns = self._columns(wanted, n_rows)
            for column in columns:
                column.points = self._points[column.name]
                column.unit = units.get(column.name, column.unit)
            for column, array in zip(columns, arrays, strict=False):
                column.add(array, typed)
            settle(columns)
            units = {column.name: column.unit for column in columns}
            self._note_units(column for column in columns if column.name not in text)
            self._refuse_text([column for column in columns if column.name not in text])
            yield Frame(
                {column.name: column.finish(column.name not in text) for column in columns}, len(arrays[0])
            )
            n_rows += len(arrays[0])
        if n_rows == 0:
            raise self._no_rows()

    def _wanted(self, names: Sequence[str], kinds: Mapping[str, Kind] | None) -> dict[str, Kind]:
        for name in names:
            self.require(name)
        return {name: (kinds or {}).get(name, "auto") for name in names}

    def _columns(
        self, wanted: Mapping[str, Kind], offset: int = 0, keep: bool = True, room: int = 0
    ) -> list[Column]:
        current = self.ways.index(self.marks)
        return [Column(name, kind, self.ways, current, offset, keep, room) for name, kind in wanted.items()]

    def _arrays(self, wanted: Mapping[str, Kind], text: Set[str]) -> Iterator[tuple[list[Any], bool]]:
        """Arrow arrays of these columns, or of any if none is wanted, batch by batch."""
        with _system_faults(self.path):
            for part in self.parts:
                position = {name: k for k, name in enumerate(part.names)}
                kinds: dict[int, Kind] = {
                    position[name.strip()]: "text" if name in text else kind for name, kind in wanted.items()
                }
                for arrays in part.batches(kinds, self.marks):
                    yield arrays, part.typed

    def _pass(self, wanted: Mapping[str, Kind], keep: bool, text: Set[str]) -> tuple[list[Column], int]:
        """All rows once. ``text``: columns to be read as text, whatever they hold."""
        room = sum(part.n_rows_guess for part in self.parts) if keep else 0
        columns, n_rows = self._columns(wanted, 0, keep, room), 0
        for arrays, typed in self._arrays(wanted, text):
            n_rows += len(arrays[0])
            for column, array in zip(columns, arrays, strict=False):
                column.add(array, typed)
        settle(columns)
        return columns, n_rows

    def _collected(self, wanted: Mapping[str, Kind], keep: bool) -> tuple[list[Column], int]:
        """All rows, once more if they show other marks than the first ones; faults are refused."""
        text = {name for name, kind in wanted.items() if kind == "text"}
        columns, n_rows = self._pass(wanted, keep, text)
        while (marks := self._settled_marks(columns)) != self.marks:
            self._use(marks)
            columns, n_rows = self._pass(wanted, keep, text)
        if n_rows == 0:
            raise self._no_rows()
        self._refuse_text(columns)
        self._refuse_mistakes(columns)
        self._points |= {column.name: column.points for column in columns if column.is_numbers}
        self._note_units(columns)
        self._note_changes(columns)
        return columns, n_rows

    def _note_changes(self, columns: Iterable[Column]) -> None:
        """Columns with numbers in the first rows, and with text alone in the others."""
        for column in columns:
            if column.kind != "auto" or column.first is None or column.alternates:
                continue
            numbers = int(column.n_numbers()[column.current])
            text = column.n_known - numbers
            if text and numbers >= max(_LEAST_CHANGED, (1.0 - MOSTLY) * column.n_known):
                what = f"numbers in {counted(numbers, 'row')} and text in {text:,}"
                self._changes[column.name] = (
                    f"{self.path}: column {column.name!r} holds {what}, from {self.place(column.first[0])} "
                    "on: it was read as text."
                )

    def _note_units(self, columns: Iterable[Column]) -> None:
        for column in columns:
            if column.is_numbers and column.unit_sign is not None:
                self.units[column.name] = column.unit_sign

    # -------------------------------------------------------------------------------------------- decisions

    def _settled_marks(self, columns: Sequence[Column]) -> Marks:
        """The marks with which all columns of numbers can be read."""
        marks, possible = self.marks, self.possible
        for column in columns:
            if column.kind not in ("auto", "numbers") or column.strange is None:
                continue
            ways = viable(column.n_numbers(), column.n_known, self.ways)
            if ways is None:
                continue
            row, cell = column.strange
            possible = [way for way in possible if way in ways]
            if not possible:
                raise self._unlike(column)
            if self._ambiguous(possible):
                raise TableError(
                    f"{self._at(row)}: column {column.name!r} holds {short(cell)}, which may be a decimal "
                    "number or one of thousands: say which with --decimal ',' or --thousands ','."
                )
            marks = possible[0]
        self.possible = possible
        return marks

    def _refuse_text(self, columns: Sequence[Column]) -> None:
        """Infinite numbers, and text where numbers must be; all such columns are named together."""
        faults = [column for column in columns if column.kind == "numbers" and column.first is not None]
        if faults:
            row, cell = faults[0].first or (0, "")
            others = [column.name for column in faults[1:]]
            also = f" (so do{'es' if len(others) == 1 else ''} {listed(others)})" if others else ""
            where = f"{self._at(row)}: column {faults[0].name!r}"
            raise TableError(f"{where} holds {short(cell)}, which is not a number{also}.")
        for column in columns:
            if column.is_numbers and column.infinite is not None:
                row, cell = column.infinite
                raise TableError(
                    f"{self._at(row)}: column {column.name!r} holds {cell}; numbers must be finite, or left "
                    "empty where they are missing."
                )

    def _refuse_mistakes(self, columns: Sequence[Column]) -> None:
        """Rare text in columns that otherwise hold numbers."""
        for column in columns:
            if column.kind != "auto" or column.first is None or column.n_known == 0:
                continue
            row, cell = column.first
            numbers = int(column.n_numbers()[column.current])
            if numbers >= MOSTLY * column.n_known:
                count = f"{numbers:,} of its {column.n_known:,} cells are numbers"
                count += "" if column.unit_sign is None else f" with {column.unit_sign!r}"
                raise TableError(
                    f"{self._at(row)}: column {column.name!r} holds {short(cell)}, but {count}: correct "
                    f"what is not, or {as_categories(column.name)}."
                )
            if column.n_anyhow + column.known_parsed >= MOSTLY * column.n_known:
                raise self._unlike(column)

    def _unlike(self, column: Column) -> TableError:
        """Numbers that are written in more than one way."""
        row, cell = column.strange or (0, "")
        return TableError(
            f"{self._at(row)}: column {column.name!r} holds {short(cell)}, but other numbers are written "
            f"like {self.marks.example!r}: write all alike, or {as_categories(column.name)}."
        )

    def _ambiguous(self, ways: Sequence[Marks]) -> bool:
        """Whether a comma may be the decimal mark as well as that of thousands."""
        plainer = Marks() in ways or self.given.usual in ways
        return not plainer and Marks(",") in ways and Marks(".", ",") in ways

    def _no_rows(self) -> TableError:
        return TableError(f"{self.path} has a header but no rows.")

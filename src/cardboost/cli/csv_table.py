"""Reading CSV: a header, then rows of numbers and text, into columns of numbers and of categories.

Rows are read in blocks, and only the columns asked for are kept, as numbers or as codes of their distinct
texts, so the text of the file is never held as a whole. A column is one of numbers if all of its cells are;
text among numbers is taken for a mistake as long as it is rare. Everything that is wrong with a file is said
in one sentence with the line and the column.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.cli import fast_csv
from cardboost.cli.files import BadInput, counted, listed
from cardboost.cli.source import Source
from cardboost.cli.text_file import FALLBACK, SHOWN, TextFile, is_regular, open_text
from cardboost.cli.values import (
    MISSING,
    TRUTH,
    Kind,
    Labels,
    check_target,
    number_of,
    plain,
    short,
    unlabelled,
)
from cardboost.data.frame import Array, Coded, Frame

DELIMITERS = ",;\t|"
_WORDS = {
    form: value
    for word, value in (*((word, math.nan) for word in MISSING), *TRUTH.items())
    for form in (word, word.upper(), word.capitalize())
} | {"NaN": math.nan}
_CELLS_PER_BLOCK = 400_000
_SNIFFED_LINES = 50
#: a line behind the last one of every file; none of a file can be equal, as NUL is refused
_END = "\0"
#: a column with so many numbers among its cells is one of numbers, and what is not a number is a mistake
_MOSTLY = 0.95
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


# ------------------------------------------------------------------------------------------------ the file


@contextlib.contextmanager
def open_csv(path: str, delimiter: str | None = None, encoding: str | None = None) -> Iterator[CsvFile]:
    """A CSV file with its header read; the delimiter and the encoding found out if they are not given."""
    with contextlib.ExitStack() as stack:
        text, first = _first_lines(path, encoding, stack)
        if not any(line.strip() for line in first):
            raise BadInput(f"{path} is empty: a header with column names is needed.")
        found = delimiter if delimiter is not None else _sniff(first)
        reader = csv.reader(itertools.chain(first, text.lines, [_END]), delimiter=found)
        with _csv_faults(path, reader):
            header = next(row for row in reader if row)
        _refuse_open_quote(path, reader, header)
        form = {
            "format": "csv",
            "delimiter": found,
            "encoding": SHOWN[text.encoding],
            "compression": text.compression,
        }
        names = [name.strip() for name in header]
        yield CsvFile(path, names, form, reader, found, text.encoding, first)


def _first_lines(path: str, encoding: str | None, stack: contextlib.ExitStack) -> tuple[TextFile, list[str]]:
    """The open file and its first lines, in the first encoding that can read these."""
    while True:
        with contextlib.ExitStack() as own:
            try:
                text = own.enter_context(open_text(path, encoding))
                first = list(itertools.islice(text.lines, _SNIFFED_LINES))
            except UnicodeDecodeError:
                encoding = FALLBACK.get(encoding or "utf-8")
                if encoding is None or not is_regular(path):
                    raise _no_text(path) from None
                continue
            stack.push(own.pop_all())
            return text, first


@contextlib.contextmanager
def _csv_faults(path: str, reader: Any) -> Iterator[None]:
    """What the reader says about a line, as one sentence."""
    try:
        yield
    except csv.Error as error:
        at, limit = f"{path}, line {reader.line_num}", csv.field_size_limit()
        if "field limit" in str(error):
            why = f"a cell has more than {limit:,} characters; perhaps a quote before it is not closed"
            raise BadInput(f"{at}: {why}.") from None
        raise BadInput(f"{at}: this is not CSV ({error}).") from None


def _refuse_open_quote(path: str, reader: Any, row: list[str]) -> None:
    """A quote that nothing closes makes one cell of the rest of the file, with the mark of its end."""
    if row and row[-1].endswith(_END):
        breaks = sum(cell.count("\n") for cell in row)
        line = reader.line_num - breaks - (not row[-1].removesuffix(_END).endswith("\n"))
        raise BadInput(f"{path}, line {line}: a quote is opened here that nothing closes.")


def _no_text(path: str) -> BadInput:
    return BadInput(f"{path} is not a text file in UTF-8: save it as CSV UTF-8.")


def _sniff(lines: Sequence[str]) -> str:
    """The delimiter that gives the most columns in the header, above all the same number in every line."""

    def merit(delimiter: str) -> tuple[bool, int]:
        with contextlib.suppress(csv.Error):
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
            complete = widths[:-1] if len(widths) > 2 else widths  # the last record may be cut off
            return len(set(complete)) == 1 and widths[0] > 1, widths[0]
        return False, 0

    return max(DELIMITERS, key=merit)


@dataclass
class _Block:
    """Some rows, and the line of the file that each ends on."""

    rows: list[list[str]]
    after: int  # the line before the first of them
    raw: list[list[str]]  # with the blank lines

    def line(self, row: int) -> int:
        seen = -1
        line = self.after
        for cells in self.raw:
            line += 1 + sum(cell.count("\n") for cell in cells)
            seen += bool(cells)
            if seen == row:
                break
        return line


@dataclass
class CsvFile(Source):
    """An open file after its header."""

    reader: Any = None
    delimiter: str = ","
    encoding: str = "utf-8"
    first: list[str] = field(default_factory=list)
    _seen: dict[str, int] = field(default_factory=dict)
    _lines: list[int] = field(default_factory=list)

    def read(
        self, names: Sequence[str], label: str | None = None, kinds: Mapping[str, Kind] | None = None
    ) -> tuple[Frame, Labels | None]:
        try:
            return fast_csv.read(self, names, label, kinds or {}) or self._read(names, label, kinds)
        except UnicodeDecodeError:
            with open_csv(self.path, self.delimiter, self._next_encoding()) as again:
                found = again.read(names, label, kinds)
                self.form = again.form
                return found

    def _next_encoding(self) -> str:
        """What to read the file in when its text is not in the encoding of its first lines."""
        other = FALLBACK.get(self.encoding)
        if other is None or not is_regular(self.path):
            raise _no_text(self.path)
        if self.encoding == "utf-8" and not all(line.isascii() for line in self.first):
            at = f"{self.path}, after line {self.reader.line_num}"
            raise BadInput(f"{at}: not UTF-8, which the file begins with: save it as CSV UTF-8.")
        return other

    def _read(
        self, names: Sequence[str], label: str | None = None, kinds: Mapping[str, Kind] | None = None
    ) -> tuple[Frame, Labels | None]:
        kinds = kinds or {}
        places = [self.where(name) for name in names]
        columns = [Incoming(name, kinds.get(name, "auto")) for name in names]
        label_place = None if label is None else self.where(label)
        codes: list[NDArray[np.int32]] = []
        n_rows = 0
        for block in self._blocks():
            cells = list(zip(*block.rows, strict=True))
            if label_place is not None:
                codes.append(self._codes(cells[label_place], str(label), block))
            self._add(columns, [cells[place] for place in places], block)
            n_rows += len(block.rows)
        if n_rows == 0:
            raise BadInput(f"{self.path} has a header but no rows.")
        self._refuse_mistakes(columns)
        again = self._read_again([column for column in columns if column.late], n_rows)
        data = {own.name: again[own.name] if own.late else own.finish() for own in columns}
        lines = tuple(f"line {line}" for line in self._lines)
        labels = Labels(tuple(self._seen), lines, np.concatenate(codes)) if codes else None
        return Frame(data, n_rows), labels

    def _blocks(self) -> Iterator[_Block]:
        width = len(self.names)
        size = max(1, _CELLS_PER_BLOCK // width)
        while True:
            after = self.reader.line_num
            with _csv_faults(self.path, self.reader):
                raw = list(itertools.islice(self.reader, size))
            if raw and raw[-1] == [_END]:
                raw.pop()
            if not raw:
                return
            _refuse_open_quote(self.path, self.reader, raw[-1])
            rows = raw if all(raw) else [row for row in raw if row]
            block = _Block(rows, after, raw)
            if not set(map(len, rows)) <= {width}:
                k = next(k for k, row in enumerate(rows) if len(row) != width)
                cells = counted(len(rows[k]), "cell")
                at = f"{self.path}, line {block.line(k)}"
                raise BadInput(f"{at}: {cells}, but the header has {width} columns.")
            if rows:
                yield block

    def _add(self, columns: list[Incoming], cells: list[tuple[str, ...]], block: _Block) -> None:
        """Append a block to every column; all that must hold numbers and do not are named together."""
        faults: list[Incoming] = []
        for column, own in zip(columns, cells, strict=True):
            infinite = column.add(own, block)
            if infinite is not None:
                raise BadInput(
                    f"{self.path}, line {block.line(infinite)}: column {column.name!r} holds "
                    f"{own[infinite].strip()}; numbers must be finite, or left empty where they are missing."
                )
            if column.kind == "numbers" and column.first is not None:
                faults.append(column)
        if faults:
            others = [other.name for other in faults[1:]]
            also = f" (so do{'es' if len(others) == 1 else ''} {listed(others)})" if others else ""
            _, text = faults[0].first or (0, "")
            if _DECIMAL_COMMA.fullmatch(text):
                raise BadInput(f"{self._at(faults[0])}: write decimals with a point.")
            raise BadInput(f"{self._at(faults[0])}, which is not a number{also}.")

    def _at(self, column: Incoming) -> str:
        """The first cell of a column that is no number."""
        assert column.first is not None
        line, text = column.first
        return f"{self.path}, line {line}: column {column.name!r} holds {short(text)}"

    def _refuse_mistakes(self, columns: list[Incoming]) -> None:
        """Text in columns that otherwise hold numbers."""
        for column in columns:
            if column.kind != "auto" or column.first is None:
                continue
            known, numbers, decimals = column.counts()
            commas = _DECIMAL_COMMA.fullmatch(column.first[1]) is not None
            if numbers + (decimals if commas else 0) < _MOSTLY * known:
                continue
            force = f"make categories of all with --categorical {shlex.quote(column.name)}"
            if commas:
                raise BadInput(f"{self._at(column)}: write decimals with a point, or {force}.")
            count = f"{numbers:,} of its {known:,} cells are numbers"
            raise BadInput(f"{self._at(column)}, but {count}: correct what is not, or {force}.")

    def _read_again(self, late: list[Incoming], n_rows: int) -> dict[str, Array | Coded]:
        """Columns in which text came after some blocks of numbers, whose cells are gone by now."""
        if not late:
            return {}
        if not is_regular(self.path):
            raise BadInput(
                f"{self._at(late[0])} after many numbers, and this input cannot be read twice: name the "
                f"column with --categorical {shlex.quote(late[0].name)}."
            )
        names = [column.name for column in late]
        with open_csv(self.path, self.delimiter, self.encoding) as again:
            frame, _ = again.read(names, kinds=dict.fromkeys(names, "text"))
        if frame.n_rows != n_rows:
            raise BadInput(f"{self.path} changed while it was read.")
        return frame.data

    def _codes(self, cells: tuple[str, ...], name: str, block: _Block) -> NDArray[np.int32]:
        """Labels as numbers in the order in which they were first seen."""
        seen = self._seen
        for text in dict.fromkeys(cells):
            if text in seen:
                continue
            line = block.line(cells.index(text))
            if text.strip().lower() in MISSING:
                raise unlabelled(f"{self.path}, line {line}", name, text)
            seen[text] = len(seen)
            self._lines.append(line)
            check_target(name, seen)
        return np.fromiter(map(seen.__getitem__, cells), dtype=np.int32, count=len(cells))


class Incoming:
    """A column as it comes in, block by block: numbers as long as all cells are, then codes of texts."""

    def __init__(self, name: str, kind: Kind) -> None:
        self.name, self.kind = name, kind
        self.numbers: list[Array] = []
        self.codes: list[NDArray[np.int32]] = []
        self.texts: defaultdict[str, int] = defaultdict(itertools.count().__next__)
        self.first: tuple[int, str] | None = None  # line and text of the first cell that is no number

    @property
    def late(self) -> bool:
        """Text came after blocks that were kept as numbers only."""
        return bool(self.numbers and self.codes)

    def add(self, cells: tuple[str, ...], block: _Block) -> int | None:
        """Append these cells. The position of a number that is infinite, or None."""
        if self.kind in ("auto", "numbers") and self.first is None:
            values = _numbers(cells)
            if not isinstance(values, int):
                infinite = np.flatnonzero(np.isinf(values))
                if len(infinite):
                    return int(infinite[0])
                self.numbers.append(values)
                return None
            self.first = (block.line(values), cells[values].strip())
        if self.kind != "numbers":
            codes = np.fromiter(map(self.texts.__getitem__, cells), dtype=np.int32, count=len(cells))
            self.codes.append(codes)
        return None

    def counts(self) -> tuple[int, int, int]:
        """How many cells are not missing, numbers, and numbers but for a decimal comma."""
        known = numbers = sum(int(np.count_nonzero(~np.isnan(part))) for part in self.numbers)
        decimals = 0
        times = np.bincount(np.concatenate(self.codes), minlength=len(self.texts)).tolist()
        for text, own in zip(self.texts, times, strict=True):
            number = number_of(text)
            known += 0 if number is not None and math.isnan(number) else own
            numbers += 0 if number is None or math.isnan(number) else own
            decimals += own if _DECIMAL_COMMA.fullmatch(text.strip()) else 0
        return known, numbers, decimals

    def mostly_numbers(self) -> bool:
        """Whether text may be a mistake here."""
        known, numbers, decimals = self.counts()
        return numbers + decimals >= _MOSTLY * known

    def finish(self) -> Array | Coded:
        """All blocks as one; they are let go."""
        numbers, self.numbers = self.numbers, []
        if not self.codes:
            return np.concatenate(numbers)
        texts = [text.strip() for text in self.texts]
        labels: list[Any] = [None if text.lower() in MISSING else text for text in texts]
        values = [value for text in texts if (value := number_of(text)) is not None]
        if self.kind == "categories" and len(values) == len(texts):
            if any(map(math.isinf, values)):
                raise BadInput(f"column {self.name!r} holds an infinite number; numbers must be finite.")
            labels = [plain(value) for value in values]
        known = sorted({label for label in labels if label is not None})
        place = {label: k for k, label in enumerate(known)} | {None: -1}
        into = np.array([place[label] for label in labels], dtype=np.int32)
        return Coded(tuple(known), into[np.concatenate(self.codes)])


def _numbers(cells: tuple[str, ...]) -> Array | int:
    """The numbers of a column, or the position of the first cell that is none."""
    count = len(cells)
    if "_" not in "".join(cells):  # Python would read 1_000 as a number
        with contextlib.suppress(ValueError):
            return np.fromiter(map(float, cells), dtype=np.float64, count=count)
        words = _WORDS
        with contextlib.suppress(ValueError):
            return np.array([words[cell] if cell in words else float(cell) for cell in cells])
    values = np.empty(count)
    for k, cell in enumerate(cells):
        number = number_of(cell)
        if number is None:
            return k
        values[k] = number
    return values

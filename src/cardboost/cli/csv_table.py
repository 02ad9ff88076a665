"""Reading CSV: a header, then rows of numbers, into one float64 array per column.

Rows are read in blocks, and only the columns asked for are kept, so the text of the file is never held as a
whole. Everything that is wrong with a file is said in one sentence with the line and the column.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.cli.files import BadInput, closest, counted, listed, reason

Array = NDArray[np.float64]

DELIMITERS = ",;\t|"
MISSING = frozenset(("", "na", "nan", "null", "?"))
_TRUTH = {"true": 1.0, "false": 0.0}
_WORDS = {
    form: value
    for word, value in (*((word, math.nan) for word in MISSING), *_TRUTH.items())
    for form in (word, word.upper(), word.capitalize())
} | {"NaN": math.nan}
_CELLS_PER_BLOCK = 400_000
_SNIFFED_LINES = 50
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


# ------------------------------------------------------------------------------------------------ values


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a frame, with what readers of frames ask of it."""

    values: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    def to_numpy(self) -> Array:
        return self.values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)


@dataclass(frozen=True, eq=False)
class Frame:
    """Named columns of equal length, readable wherever a data frame is; no frame library is needed."""

    data: dict[str, Array]
    n_rows: int

    @property
    def columns(self) -> list[str]:
        return list(self.data)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, len(self.data)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> Column:
        return Column(self.data[name])

    def take(self, rows: NDArray[np.bool_]) -> Frame:
        return Frame({name: values[rows] for name, values in self.data.items()}, int(np.count_nonzero(rows)))


@dataclass(frozen=True, eq=False)
class Labels:
    """The target: for every row the number of its label in ``texts``; texts as they stand in the file."""

    texts: tuple[str, ...]
    lines: tuple[int, ...]  # where each of them stands first
    codes: NDArray[np.int32]

    def classes(self) -> list[Any]:
        return _classes(self.texts)

    def equal(self, label: Any) -> NDArray[np.bool_]:
        """Which rows have this label."""
        same = np.array([same_label(text, label) for text in self.texts], dtype=bool)
        return same[self.codes]


def _classes(texts: Iterable[str]) -> list[Any]:
    """Distinct labels, sorted: integers if all of them are whole numbers, otherwise text."""
    texts = [text.strip() for text in texts]
    numbers = [_whole(text) for text in texts]
    return sorted(set(texts)) if None in numbers else sorted(set(numbers))


def _whole(text: str) -> int | None:
    try:
        number = float(text)
        whole = number == math.floor(number) and abs(number) < 2.0**53 and "_" not in text
        return int(number) if whole else None
    except (ValueError, OverflowError):
        return None


def same_label(text: str, label: Any) -> bool:
    """Whether the text of a cell means a label of a model (text, a number or a truth value)."""
    text = text.strip()
    if isinstance(label, str):
        return text == label.strip()
    if isinstance(label, bool) and text.lower() in _TRUTH:
        return _TRUTH[text.lower()] == label
    try:
        return float(text) == label
    except ValueError:
        return False


# ------------------------------------------------------------------------------------------------ the file


@contextlib.contextmanager
def open_csv(path: str, delimiter: str | None = None) -> Iterator[CsvFile]:
    """A CSV file with its header read: UTF-8, the delimiter found out if it is not given."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            first = list(itertools.islice(file, _SNIFFED_LINES))
            if not any(line.strip() for line in first):
                raise BadInput(f"{path} is empty: a header with column names is needed.")
            found = delimiter if delimiter is not None else _sniff(first)
            reader = csv.reader(itertools.chain(first, file), delimiter=found)
            header = next(row for row in reader if row)
            names = [name.strip() for name in header]
            yield CsvFile(path, names, reader)
    except OSError as error:
        raise BadInput(f"cannot read {path!r}: {reason(error)}.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not a text file in UTF-8: save it as CSV UTF-8.") from None


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
class CsvFile:
    """An open file after its header."""

    path: str
    names: list[str]
    reader: Any
    _seen: dict[str, int] = field(default_factory=dict)
    _lines: list[int] = field(default_factory=list)

    def where(self, name: str) -> int:
        """The position of a column, or a sentence that suggests others."""
        if name.strip() not in self.names:
            known = [own for own in self.names if own]
            raise BadInput(f"{self.path} has no column {name!r}: {closest(name, known)}")
        if self.names.count(name.strip()) > 1:
            raise BadInput(f"{self.path} has more than one column named {name.strip()!r}: names must differ.")
        return self.names.index(name.strip())

    def read(self, numbers: Sequence[str], label: str | None = None) -> tuple[Frame, Labels | None]:
        """These columns as numbers, under the names asked for, and one column as labels."""
        places = [self.where(name) for name in numbers]
        label_place = None if label is None else self.where(label)
        parts: list[list[Array]] = [[] for _ in places]
        codes: list[NDArray[np.int32]] = []
        n_rows = 0
        for block in self._blocks():
            columns = list(zip(*block.rows, strict=True))
            if label_place is not None:
                codes.append(self._codes(columns[label_place], str(label), block))
            self._convert([columns[place] for place in places], numbers, parts, block)
            n_rows += len(block.rows)
        if n_rows == 0:
            raise BadInput(f"{self.path} has a header but no rows.")
        data = {}
        for name in numbers:
            data[name] = np.concatenate(parts[0]) if n_rows else np.empty(0)
            del parts[0]
        labels = Labels(tuple(self._seen), tuple(self._lines), np.concatenate(codes)) if codes else None
        return Frame(data, n_rows), labels

    def _blocks(self) -> Iterator[_Block]:
        width = len(self.names)
        size = max(1, _CELLS_PER_BLOCK // width)
        while True:
            after = self.reader.line_num
            try:
                raw = list(itertools.islice(self.reader, size))
            except csv.Error as error:
                at = f"{self.path}, line {self.reader.line_num}"
                raise BadInput(f"{at}: this is not CSV ({error}).") from None
            if not raw:
                return
            rows = raw if all(raw) else [row for row in raw if row]
            block = _Block(rows, after, raw)
            if not set(map(len, rows)) <= {width}:
                k = next(k for k, row in enumerate(rows) if len(row) != width)
                cells = counted(len(rows[k]), "cell")
                at = f"{self.path}, line {block.line(k)}"
                raise BadInput(f"{at}: {cells}, but the header has {width} columns.")
            if rows:
                yield block

    def _convert(
        self, cells: list[tuple[str, ...]], names: Sequence[str], parts: list[list[Array]], block: _Block
    ) -> None:
        """Append one array to every column; all columns that hold text are named together."""
        faults: list[tuple[str, int]] = []
        for own, name, part in zip(cells, names, parts, strict=True):
            values = _numbers(own)
            if isinstance(values, int):
                faults.append((name, values))
                continue
            infinite = np.flatnonzero(np.isinf(values))
            if len(infinite):
                k = int(infinite[0])
                raise BadInput(
                    f"{self.path}, line {block.line(k)}: column {name!r} holds {own[k].strip()}; "
                    "numbers must be finite, or left empty where they are missing."
                )
            part.append(values)
        if faults:
            name, k = faults[0]
            text = cells[list(names).index(name)][k].strip()
            at = f"{self.path}, line {block.line(k)}: column {name!r} holds {_short(text)}"
            if _DECIMAL_COMMA.fullmatch(text):
                raise BadInput(f"{at}: write decimals with a point.")
            others = [other for other, _ in faults[1:]]
            also = f" (so do{'es' if len(others) == 1 else ''} {listed(others)})" if others else ""
            raise BadInput(
                f"{at}, which is not a number{also}: categories are not available yet, and --drop leaves a "
                "column out."
            )

    def _codes(self, cells: tuple[str, ...], name: str, block: _Block) -> NDArray[np.int32]:
        """Labels as numbers in the order in which they were first seen."""
        seen = self._seen
        for text in dict.fromkeys(cells):
            if text in seen:
                continue
            line = block.line(cells.index(text))
            if text.strip().lower() in MISSING:
                what = f"holds {_short(text.strip())}, a missing value" if text.strip() else "is empty"
                at = f"{self.path}, line {line}"
                raise BadInput(f"{at}: the target {name!r} {what}; every row needs a label.")
            seen[text] = len(seen)
            self._lines.append(line)
            if len(classes := _classes(seen)) > 2:
                raise BadInput(
                    f"the target {name!r} has more than two classes ({listed([str(c) for c in classes])}); "
                    "only two are supported yet."
                )
        return np.fromiter(map(seen.__getitem__, cells), dtype=np.int32, count=len(cells))


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
        word = cell.strip().lower()
        try:
            values[k] = math.nan if word in MISSING else _TRUTH[word] if word in _TRUTH else float(word)
        except ValueError:
            return k
        if "_" in word:
            return k
    return values


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")

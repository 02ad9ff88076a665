"""What cells of text mean: numbers with the marks of any locale, missing values, truth values.

All of it works on Arrow arrays of distinct texts, without a loop over cells. Which mark is the decimal one is
decided for a whole file: for every column it is counted how many cells are numbers with each pair of marks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardboost.data.frame import Array, Coded

#: auto: numbers, or categories where the cells are text; numbers: nothing else; text: labels as they stand;
#: categories: numbers as labels where all cells are numbers, else text
Kind = Literal["auto", "numbers", "categories", "text"]

#: words for a missing value, in any case; "none" is a label, as in a column of garages
MISSING = ("", "na", "n/a", "#n/a", "#na", "nan", "null", "?")
#: missing among numbers only: as a label "-" may be a blood group
DASHES = ("-", ".")
#: a column with so many numbers among its cells is one of numbers, and what is not a number is a mistake
MOSTLY = 0.95
SHORT = 1_000  # texts of a column; a call costs as much as so many of them
TRUTH = {"true": 1.0, "false": 0.0}
_INFINITE = {
    sign + word: math.copysign(math.inf, -1.0 if sign == "-" else 1.0)
    for word in ("inf", "infinity")
    for sign in ("", "+", "-")
}
_WORDS = dict.fromkeys((*MISSING, *DASHES), math.nan) | TRUTH | _INFINITE
_SPACES, _APOSTROPHES = "\u00a0\u202f\u2009", "\u2019"
#: signs beside the numbers of a column; one and the same in all cells
UNITS = ("$", "€", "£", "¥", "%", "USD", "EUR", "GBP", "CHF", "JPY")
NO_UNIT = -1


class TableError(ValueError):
    """One sentence: what is wrong with a file, and where."""


@dataclass(frozen=True)
class Marks:
    """How numbers are written: 1234.5 by default. A space stands for every kind of space."""

    decimal: str = "."
    thousands: str | None = None

    @property
    def example(self) -> str:
        return f"1{self.thousands or ''}234{self.decimal}5"

    @property
    def words(self) -> str:
        """How a remark calls them."""
        thousands = "" if self.thousands is None else f" and {self.thousands!r} as the mark of thousands"
        return f"{self.decimal!r} as the decimal mark{thousands}"

    @property
    def pattern(self) -> str:
        """A regular expression for numbers. Groups have three digits; between commas also two (1,23,456)."""
        whole = r"\d+"
        if self.thousands is not None:
            mark = re.escape(self.thousands)
            inner = r"\d{2,3}" if self.thousands == "," else r"\d{3}"
            whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{mark}{inner})*{mark}\d{{3}})"
        point = re.escape(self.decimal)
        return rf"^[+-]?(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?$"


#: the plainest first, which is taken where several give the same numbers
LOCALES = tuple(Marks(decimal, thousands) for thousands in (None, ",", ".", " ", "'") for decimal in ".,"
                if decimal != thousands)  # fmt: skip


@dataclass
class Points:
    """Whether all points of a column may stand between thousands, as in 9.042 beside 840."""

    possible: bool = True
    decimal: bool = False  # a point that cannot stand between thousands was seen
    with_point: str | None = None  # the first of each
    without: str | None = None

    def add(self, numerals: Any) -> None:
        """Look at an Arrow array of texts that are numbers with a decimal point."""
        import pyarrow.compute as compute

        if self.decimal or len(numerals) == 0:
            return
        trimmed = compute.utf8_trim_whitespace(numerals)
        alike = compute.match_substring_regex(trimmed, r"^[+-]?(?:\d{1,3}|[1-9]\d{0,2}\.\d{3})$")
        points = compute.match_substring(trimmed, ".")
        self.decimal = compute.any(compute.and_not(points, alike)).as_py()
        self.possible &= compute.all(alike).as_py()
        if self.possible:
            self.with_point = self.with_point or _first_text(trimmed.filter(points))
            self.without = self.without or _first_text(trimmed.filter(compute.invert(points)))

    def add_parsed(self, values: NDArray[Any], whole: bool) -> None:
        """Numbers without their text, not all of them NaN; of ``whole`` ones it is known."""
        if whole and self.possible:
            least, most = np.fmin.reduce(values), np.fmax.reduce(values)
            self.possible = bool(least > -1000 and most < 1000)
            self.without = self.without or f"{least:.0f}"
        elif not whole:
            self.possible = False
            some = values[:1000]
            self.decimal = self.decimal or bool((np.floor(some) < some).any())

    @property
    def doubtful(self) -> bool:
        return self.possible and self.with_point is not None and self.without is not None


def _first_text(texts: Any) -> str | None:
    return texts[0].as_py() if len(texts) else None


@dataclass(frozen=True)
class Meaning:
    """Distinct texts as numbers, each as with one of the ways to write them."""

    values: Array  # NaN where a text is missing or no number
    missing: NDArray[np.bool_]
    matches: NDArray[np.bool_]  # (ways, texts); words that stand for numbers match all of them
    units: NDArray[np.int8]  # of each text the place of its sign in UNITS, or NO_UNIT

    def part(self, start: int, end: int) -> Meaning:
        matches, units = self.matches[:, start:end], self.units[start:end]
        return Meaning(self.values[start:end], self.missing[start:end], matches, units)

    def main_unit(self, times: NDArray[np.int64]) -> int:
        """The unit of the most numbers, where each text occurs so many times."""
        times = np.where(self.matches.any(axis=0), times, 0)
        return int(np.bincount(self.units + 1, times, len(UNITS) + 1).argmax()) - 1

    def with_unit(self, unit: int) -> Meaning:
        """The same where numbers of other units are text."""
        other = self.units != unit
        if not other.any():
            return self
        other &= ~self.missing
        return replace(self, values=np.where(other, math.nan, self.values), matches=self.matches & ~other)


@cache
def _looks_like_number(thousands: frozenset[str]) -> str:
    inside = rf"\d.,'{_APOSTROPHES} {_SPACES}" + "".join(re.escape(mark) for mark in thousands)
    return rf"^[+\-−]?[{inside}]*\d[{inside}]*(?:[eE][+-]?\d+)?$"


@cache
def _with_unit(thousands: frozenset[str]) -> str:
    """A number with a sign before or after it, such as $1,810.08, 12.50 EUR, -3 % or ($12.00)."""
    space = f"[ {_SPACES}]*"
    marks = "".join(re.escape(mark) for mark in thousands)
    number = rf"[.,]?\d[\d.,'{_APOSTROPHES} {_SPACES}{marks}]*(?:[eE][+-]?\d+)?"
    sign, unit = "[+\\-−]?", "|".join(map(re.escape, UNITS))
    return (
        rf"^(?P<open>\(?)(?P<sign>{sign}){space}(?P<before>(?:{unit})?){space}"
        rf"(?P<number>{sign}{number}){space}(?P<after>(?:{unit})?)(?P<close>\)?)$"
    )


def without_units(texts: Any, thousands: frozenset[str] = frozenset()) -> tuple[Any, NDArray[np.int8]]:
    """Texts of numbers without the signs of units, and the units; other texts are as they were."""
    import pyarrow as arrow
    import pyarrow.compute as compute

    units = np.full(len(texts), NO_UNIT, dtype=np.int8)
    pattern = _with_unit(thousands)
    like = compute.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    if not like.any():
        return texts, units
    parts = compute.extract_regex(texts, pattern)
    opens, sign, before, number, after, closes = (
        parts.field(k).fill_null("") for k in range(parts.type.num_fields)
    )
    unit = compute.index_in(compute.binary_join_element_wise(before, after, ""), arrow.array(UNITS))
    like &= compute.equal(compute.binary_length(opens), compute.binary_length(closes)).to_numpy(
        zero_copy_only=False
    )
    units[like] = unit.fill_null(NO_UNIT).to_numpy(zero_copy_only=False)[like]
    negative = compute.if_else(compute.equal(opens, "("), "-", "")
    bare = compute.binary_join_element_wise(negative, sign, compute.utf8_trim_whitespace(number), "")
    return compute.if_else(arrow.array(units != NO_UNIT), bare, texts), units


def meaning(texts: Any, ways: Sequence[Marks], current: int) -> Meaning:
    """What an Arrow array of texts means; ``values`` are those of ``ways[current]``."""
    import pyarrow as arrow
    import pyarrow.compute as compute

    trimmed = compute.utf8_trim_whitespace(texts)
    word = compute.index_in(compute.utf8_lower(trimmed), arrow.array(list(_WORDS)))
    word = word.fill_null(-1).to_numpy(zero_copy_only=False)
    values = np.array([*_WORDS.values(), math.nan])[word]
    missing = (word >= 0) & np.isnan(values)
    matches = np.repeat(((word >= 0) & ~missing)[None], len(ways), axis=0)
    odd = frozenset(way.thousands for way in ways if way.thousands is not None)
    looks = compute.match_substring_regex(trimmed, _looks_like_number(odd))
    like = looks.to_numpy(zero_copy_only=False)
    units = np.full(len(texts), NO_UNIT, dtype=np.int8)
    others = np.flatnonzero(~like & (word < 0))
    if len(others):
        bare, units[others] = without_units(trimmed.take(arrow.array(others)), odd)
        if (units != NO_UNIT).any():
            like = like | (units != NO_UNIT)
            mask = np.zeros(len(texts), dtype=bool)
            mask[others] = True
            trimmed = compute.replace_with_mask(trimmed, arrow.array(mask), bare)
    places = np.flatnonzero(like)
    if len(places):
        numerals = trimmed.take(arrow.array(places))
        if not compute.all(compute.string_is_ascii(numerals)).as_py():
            for pattern, plain in ((f"[{_SPACES}]", " "), (_APOSTROPHES, "'"), ("−", "-")):
                numerals = compute.replace_substring_regex(numerals, pattern, plain)
        for k, way in enumerate(ways):
            match = compute.match_substring_regex(numerals, way.pattern)
            matches[k, places] = match.to_numpy(zero_copy_only=False)
            if k == current:
                values[places] = _cast(compute.if_else(match, numerals, None), way)
    return Meaning(values, missing, matches, units)


def meanings(texts: Sequence[Any], ways: Sequence[Marks], current: int) -> Iterator[Meaning]:
    """The same for the texts of several columns; short ones are looked up together."""
    import pyarrow as arrow

    short = [column for column in texts if len(column) <= SHORT]
    together = meaning(arrow.concat_arrays(short), ways, current) if short else None
    start = 0
    for column in texts:
        if together is None or len(column) > SHORT:
            yield meaning(column, ways, current)
        else:
            yield together.part(start, start + len(column))
            start += len(column)


def _cast(numerals: Any, way: Marks) -> Array:
    import pyarrow.compute as compute

    if way.thousands is not None:
        numerals = compute.replace_substring(numerals, way.thousands, "")
    if way.decimal != ".":
        numerals = compute.replace_substring(numerals, way.decimal, ".")
    values: Array = numerals.cast("float64").to_numpy(zero_copy_only=False)
    return values


def ways_of(columns: Sequence[Any], ways: Sequence[Marks]) -> Iterator[list[Marks] | None]:
    """With which marks columns of texts are numbers; None if with none, or if all is missing."""
    coded = [texts.dictionary_encode() for texts in columns]
    found = meanings([column.dictionary for column in coded], ways, 0)
    for column, means in zip(coded, found, strict=True):
        times = np.bincount(column.indices)
        means = means.with_unit(means.main_unit(times))
        yield viable(means.matches @ times, int(times[~means.missing].sum()), ways)


def viable(counts: NDArray[np.int64], n_known: int, ways: Sequence[Marks]) -> list[Marks] | None:
    """The ways with which the most cells are numbers, if that is most of all cells."""
    if n_known == 0 or counts.max() < MOSTLY * n_known:
        return None
    return [way for way, count in zip(ways, counts, strict=True) if count == counts.max()]


def plain(number: float) -> int | float | None:
    """A number as a label: whole ones without a point; None if it is missing."""
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2.0**53 else number


# ------------------------------------------------------------------------------------------------ a column


class Numbers:
    """Float64 values that grow: memory is touched only where there are values."""

    def __init__(self, room: int = 0) -> None:
        self.room: Array = np.empty(room)
        self.count = 0

    def append(self, values: Array) -> None:
        end = self.count + len(values)
        if end > len(self.room):
            room = np.empty(end if self.count == 0 else 2 * end)
            room[: self.count] = self.values
            self.room = room
        self.room[self.count : end] = values
        self.count = end

    @property
    def values(self) -> Array:
        return self.room[: self.count]


class Column:
    """One column as it comes in: numbers, and codes of texts where there is text.

    What texts mean is looked up by :meth:`settle`, for as many batches at once as memory allows.

    Parameters
    ----------
    ways : sequence of Marks
        The ways to write numbers that are counted; ``ways[current]`` is the one that is read.
    offset : int
        The number of the first row.
    keep : bool
        Whether the values are kept, or only counted.
    room : int
        About how many rows there will be.
    """

    def __init__(
        self, name: str, kind: Kind, ways: Sequence[Marks], current: int, offset: int, keep: bool, room: int
    ) -> None:
        self.name, self.kind, self.ways, self.current, self.keep = name, kind, ways, current, keep
        self.n_rows = offset
        self.numbers = Numbers(room)  # of all rows, as long as all cells are numbers
        self.texts: list[Any] = []  # Arrow arrays of texts, and for every row the number of its own
        self.codes: list[NDArray[np.int32]] = []
        self.pending: list[
            tuple[Any, NDArray[np.int32]]
        ] = []  # the same, of the latest rows: not yet counted
        self.are_words = True  # text stands for missing values too; not in files with types
        self.known = 0  # cells that came as text and are not missing
        self.n_parsed = 0  # rows that came as numbers, without their text
        self.known_parsed = 0
        self.whole = True  # all numbers that were let go are whole
        self.matches = np.zeros(len(ways), dtype=np.int64)  # of cells that came as text
        self.n_anyhow = 0  # cells of text that are numbers with any of the ways
        self.first: tuple[int, str] | None = None  # row and text of the first cell that is no number
        self.alternates = False  # there are numbers after the first cell that is none
        self.infinite: tuple[int, str] | None = None
        self.strange: tuple[int, str] | None = None  # a cell that is a number only with other marks
        self.points = Points()
        self.unit: int | None = NO_UNIT if kind == "categories" else None  # None: no number was seen

    @property
    def late(self) -> bool:
        """Whether text came in other batches than numbers, of which the text is not here."""
        return self.first is not None and self.n_parsed > 0

    def add(self, array: Any, typed: bool) -> None:
        """Append a batch: numbers, truth values or a dictionary of text, never of numbers if ``typed``."""
        if hasattr(array, "dictionary"):
            self._add_text(array, typed)
        else:
            if self.pending:
                self.settle()
            self._add_numbers(array)
        self.n_rows += len(array)

    def _add_numbers(self, array: Any) -> None:
        import pyarrow as arrow

        array = array.cast("float64") if array.type == arrow.bool_() else array
        values = array.to_numpy(zero_copy_only=False)
        self.known_parsed += len(array) - array.null_count
        self.n_parsed += len(array)
        self.alternates |= self.first is not None and array.null_count < len(array)
        if self.unit is None and self.known_parsed:
            self.unit = NO_UNIT
        if array.null_count < len(array):
            self.points.add_parsed(values, array.type == arrow.int64())
        if self.infinite is None and values.dtype.kind == "f" and (infinite := np.isinf(values)).any():
            place = int(np.argmax(infinite))
            self.infinite = (self.n_rows + place, f"{values[place]:g}")
        self.numbers.append(values)
        if self.first is not None or not self.keep:
            self._release()

    def _add_text(self, array: Any, typed: bool) -> None:
        self.are_words &= not typed
        texts = array.dictionary
        indices = array.indices if array.null_count == 0 else array.indices.fill_null(-1)
        codes = indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
        if self.kind == "text" or (typed and self.kind != "numbers"):
            self.settle()
            if self.kind != "text":
                self.first = self.first or (self.n_rows, "")
            self._keep_text(texts, codes)
            return
        if not self.keep or self.kind == "numbers" or self.n_parsed:
            self.settle()  # one batch at a time
        self.pending.append((texts, codes))

    def settle(self) -> None:
        """Find out what the texts of the latest rows mean."""
        settle([self])

    def take_pending(self) -> tuple[Any, NDArray[np.int32]]:
        texts, codes = zip(*self.pending, strict=True)
        self.pending = []
        return _joined(texts, codes)

    def _keep_text(self, texts: Any, codes: NDArray[np.int32]) -> None:
        if self.first is not None or not self.keep:
            self._release()
        if self.keep and self.kind != "numbers":
            self.texts.append(texts)
            self.codes.append(codes)

    def _release(self) -> None:
        """Let go of the numbers."""
        values = self.numbers.values
        self.whole = self.whole and not (np.floor(values) < values).any()
        self.numbers = Numbers()

    def count(self, texts: Any, codes: NDArray[np.int32], found: Meaning) -> None:
        """How many cells of the latest rows are numbers, and the first one that is not."""
        if not (found.missing.any() or found.matches.any()) and codes.min(initial=0) >= 0:
            self.known += len(codes)
            self.first = self.first or (self.n_rows - len(codes), texts[int(codes[0])].as_py().strip())
            self._keep_text(texts, codes)
            return
        times = np.bincount(codes + 1, minlength=len(texts) + 1)[1:]  # without the missing ones, -1
        if self.unit is None and (found.matches.any(axis=0) & (times > 0)).any():
            self.unit = found.main_unit(times)
        found = found.with_unit(NO_UNIT if self.unit is None else self.unit)
        self.known += int(times[~found.missing].sum())
        self.matches += found.matches @ times
        anyhow = found.matches.any(axis=0)
        self.n_anyhow += int(times[anyhow].sum())
        text = ~found.missing & ~found.matches[self.current]
        strange = text & anyhow
        self.first = self.first or self._first_of(text & (times > 0), texts, codes)
        if self.first is not None and not self.alternates and found.matches[self.current].any():
            numbers = np.append(found.matches[self.current], False)[codes]
            self.alternates = bool(numbers[max(0, self.first[0] - self.n_rows + len(codes)) :].any())
        self.strange = self.strange or self._first_of(strange & (times > 0), texts, codes)
        infinite = np.isinf(found.values) & (times > 0)
        self.infinite = self.infinite or self._first_of(infinite, texts, codes)
        if self.first is None and self.ways[self.current] == Marks():
            import pyarrow as arrow
            import pyarrow.compute as compute

            numerals = texts.filter(arrow.array(found.matches[self.current] & (times > 0)))
            if self.unit_sign is not None:
                numerals = without_units(compute.utf8_trim_whitespace(numerals))[0]
            self.points.add(numerals)
        if self.first is None:
            self.numbers.append(np.append(found.values, math.nan)[codes])
        self._keep_text(texts, codes)

    def _first_of(
        self, which: NDArray[np.bool_], texts: Any, codes: NDArray[np.int32]
    ) -> tuple[int, str] | None:
        """Row and text of the first cell with one of these texts."""
        if not which.any():
            return None
        row = int(np.argmax(np.append(which, False)[codes]))
        return self.n_rows - len(codes) + row, texts[int(codes[row])].as_py().strip()

    @property
    def is_numbers(self) -> bool:
        """Whether all cells so far are numbers or missing, and are to be taken for numbers."""
        return self.kind != "text" and self.first is None

    @property
    def unit_sign(self) -> str | None:
        """The sign of the unit that stands beside all numbers."""
        return None if self.unit is None or self.unit == NO_UNIT else UNITS[self.unit]

    @property
    def n_known(self) -> int:
        return self.known + self.known_parsed

    def n_numbers(self) -> NDArray[np.int64]:
        """How many cells are numbers with each of the ways; whole ones are written alike with all."""
        alike = np.array([self.whole or way.decimal == self.ways[self.current].decimal for way in self.ways])
        return self.matches + alike * self.known_parsed

    def finish(self, as_numbers: bool) -> Array | Coded:
        """All batches as one column. ``as_numbers``: every cell is a number or missing."""
        if as_numbers:
            values = self.numbers.values
            return number_labels(values) if self.kind == "categories" else values
        texts, codes = _joined(self.texts, self.codes)
        self.texts, self.codes = [], []
        return _text_labels(texts, codes, self.are_words)


def settle(columns: Sequence[Column]) -> None:
    """Find out what the texts of the latest rows of columns of one table mean."""
    waiting = [column for column in columns if column.pending]
    if not waiting:
        return
    batches = [column.take_pending() for column in waiting]
    found = meanings([texts for texts, _ in batches], waiting[0].ways, waiting[0].current)
    for column, (texts, codes), means in zip(waiting, batches, found, strict=True):
        column.count(texts, codes, means)


def _joined(texts: Sequence[Any], codes: Sequence[NDArray[np.int32]]) -> tuple[Any, NDArray[np.int32]]:
    """Batches of texts with their codes as one; a text may then be there more than once."""
    import pyarrow as arrow

    if len(texts) == 1:
        return texts[0], codes[0]
    joined, offset, start = np.empty(sum(map(len, codes)), dtype=np.int32), 0, 0
    for some, part in zip(texts, codes, strict=True):
        own = joined[start : start + len(part)]
        np.add(part, offset, out=own)
        if part.min(initial=0) < 0:
            own[part < 0] = -1
        offset, start = offset + len(some), start + len(part)
    return arrow.concat_arrays(texts), joined


def number_labels(values: Array) -> Coded:
    """Numbers as labels, whole ones as int."""
    known, codes = np.unique(values, return_inverse=True)
    n_known = int(np.count_nonzero(~np.isnan(known)))
    labels = tuple(plain(value) for value in known[:n_known].tolist())
    return Coded(labels, np.where(codes >= n_known, -1, codes).astype(np.int32))


def _text_labels(texts: Any, codes: NDArray[np.int32], are_words: bool) -> Coded:
    """Texts as labels: only those that occur, ascending."""
    import pyarrow as arrow
    import pyarrow.compute as compute

    used = np.zeros(len(texts) + 1, dtype=bool)
    used[codes] = True
    known = arrow.array(used[:-1])
    if are_words:
        texts = compute.utf8_trim_whitespace(texts)
        missing = compute.is_in(compute.utf8_lower(texts), arrow.array(MISSING))
        known = compute.and_(known, compute.invert(missing))
    labels = compute.unique(texts.filter(known))
    labels = labels.take(compute.array_sort_indices(labels))
    into = compute.index_in(texts, labels).fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(tuple(labels.to_pylist()), np.append(into, -1).astype(np.int32)[codes])

"""What each column of a table is: a feature, or an identifier, a date, a constant that training leaves out.

The values decide. Where they leave it open, the name counts as well: six digits that repeat may be anything,
but a column ``custno`` of them is an identifier, and 44197 is a day in a column ``opened_date`` alone. Where
a table has many rows, a sample tells of most columns that they are plain features; only the others are
looked at as a whole.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import MAX_CODES, shown
from cardboost.data.column_names import KeyName, key_name, names_day
from cardboost.data.dates import find_form, find_number_form, may_be_date
from cardboost.data.frame import Array, Coded, Frame
from cardboost.data.leaks import determining, separating

_SAMPLE = 10_000  # rows
_CELLS_AT_ONCE = 2**20
_COUNTED = 1000  # different numbers of a large table are counted up to here
_WHOLE_LIMIT = 2.0**53  # up to here a float64 holds every whole number

_LEAST_ROWS = 10  # with fewer nothing is an identifier
_UNLIKELY = 5.0  # standard deviations: one column in three million has so many different values by chance
_UNLIKELY_IN_ORDER = 3.0  # the same for numbers that rise or fall from row to row
_YEARS = (1900, 2100)
_LONG = 8  # digits
_LONG_IF_NAMED = 5  # digits of numbers in a column that is named after someone: customer, patient
_LARGE = 100.0  # numbers of something are not all below this: those may be counts
_LEAST_LONG = 20  # rows
_VOCABULARY = 500  # labels: more are an identifier, if most rows differ
_ROWS_OF_KEY = 3  # at most, on average, of a code such as CUST-000123, or of a key by its name
_CODE_DIGITS = 4  # of such a code; with fewer it may be a name such as town17
_WORDS = 4  # of a label that is free text
_TELLING = (10, 0.01)  # rows, and share of them, that are missing or not: with fewer this tells nothing
_LOOKED_AT = 1000  # labels whose shape is compared
_FEW_ROWS, _FEW_OF_CLASS = 50, 10


class ColumnRoleWarning(UserWarning):
    """A data frame has columns that look like identifiers, dates or constants. They are used all the same."""


class Role(StrEnum):
    """What a column is for."""

    NUMERIC = "numeric"
    CATEGORICAL = "categorical"
    IDENTIFIER = "identifier"
    DATE = "date"
    CONSTANT = "constant"
    EMPTY = "empty"
    TARGET = "target"
    WEIGHT = "weight"
    GROUP = "group"
    DROPPED = "dropped"


LEFT_OUT = (Role.IDENTIFIER, Role.DATE, Role.CONSTANT, Role.EMPTY)
_PLAIN = {Role.NUMERIC: "holds numbers", Role.CATEGORICAL: "holds labels"}


@dataclass(frozen=True)
class ColumnRole:
    """One column.

    Parameters
    ----------
    name : str
        Its name.
    role : Role
        What it is.
    reason : str or None
        Why, as the rest of a sentence that begins with its name; None where the user has said so.
    distinct : int or None
        How many values differ; None where there are more than 1,000 numbers in a large table.
    missing : int
        How many rows have no value.
    example : str, number or None
        The first value.
    date_parts : tuple of str
        What can be derived from a date.
    """

    name: str
    role: Role
    reason: str | None
    distinct: int | None
    missing: int
    example: Any
    date_parts: tuple[str, ...] = ()

    @property
    def is_feature(self) -> bool:
        return self.role in _PLAIN

    @property
    def is_left_out(self) -> bool:
        """Whether training leaves it out, and not because the user has said so."""
        return self.role in LEFT_OUT and self.reason is not None

    @property
    def has_remark(self) -> bool:
        """Whether there is more to say than that it holds numbers or labels."""
        return self.reason is not None and self.reason != _PLAIN.get(self.role)

    def to_dict(self) -> dict[str, Any]:
        entries = vars(self) | {"role": str(self.role)}
        del entries["date_parts"]
        return entries


def assign_roles(frame: Frame, given: Mapping[str, Role]) -> tuple[ColumnRole, ...]:
    """The role of every column, in the order of the table.

    Parameters
    ----------
    frame : Frame
        The table.
    given : mapping from names to roles
        What the user has said; it always wins. Names that the table does not have do not matter.

    Returns
    -------
    tuple of ColumnRole
    """
    numbers = {name: values for name, values in frame.data.items() if not isinstance(values, Coded)}
    roles = dict(_number_roles(numbers, frame.n_rows))
    for name, values in frame.data.items():
        if isinstance(values, Coded):
            roles[name] = _text_role(name, values)
    return tuple(
        roles[name] if name not in given else _as_given(roles[name], given[name]) for name in frame.data
    )


def _as_given(found: ColumnRole, role: Role) -> ColumnRole:
    return ColumnRole(found.name, Role(role), None, found.distinct, found.missing, found.example)


def _constant(missing: int, n_rows: int) -> str | None:
    """Why one value alone is a constant; None where missing or not may tell something."""
    if min(missing, n_rows - missing) >= max(_TELLING[0], _TELLING[1] * n_rows):
        return None
    return f"has the same value in every row{' that has one' if missing else ''}"


# ------------------------------------------------------------------------------------------------ numbers


@dataclass(frozen=True)
class _Sampled:
    """What a sample of the rows tells of a column of numbers."""

    n: int  # that are not missing
    distinct: int
    whole: bool
    median: float

    def is_plain(self, name: str) -> bool:
        """Whether the column of this name is a feature, whatever its other rows hold."""
        differs = self.whole and (2 * self.distinct >= self.n or key_name(name) is not KeyName.NONE)
        return self.distinct > 1 and not differs and not names_day(name) and not may_be_date(self.median)


def _number_roles(columns: Mapping[str, Array], n_rows: int) -> Iterator[tuple[str, ColumnRole]]:
    for (name, values), sampled in zip(columns.items(), _sampled(columns, n_rows), strict=True):
        yield name, _number_role(name, values, sampled)


def _sampled(columns: Mapping[str, Array], n_rows: int) -> Iterator[_Sampled]:
    """Many columns at once: a table may have many of few rows."""
    rows: Any = slice(None) if n_rows <= _SAMPLE else np.linspace(0, n_rows - 1, _SAMPLE).astype(np.intp)
    arrays = list(columns.values())
    step = max(1, _CELLS_AT_ONCE // max(1, min(n_rows, _SAMPLE)))
    for k in range(0, len(arrays), step):
        cells = np.array([values[rows] for values in arrays[k : k + step]], dtype=np.float64)
        cells.sort(axis=1)  # missing ones are the last
        present = np.count_nonzero(cells == cells, axis=1)
        distinct = np.count_nonzero(cells[:, 1:] > cells[:, :-1], axis=1) + (present > 0)
        whole = ((cells == np.rint(cells)) | np.isnan(cells)).all(axis=1)
        median = cells[np.arange(len(cells)), present // 2] if n_rows else np.full(len(cells), np.nan)
        yield from map(_Sampled, present.tolist(), distinct.tolist(), whole.tolist(), median.tolist())


def _number_role(name: str, values: Array, sampled: _Sampled) -> ColumnRole:
    n_rows = len(values)
    here = values == values
    n = int(np.count_nonzero(here))
    example = _plain_number(float(values[np.argmax(here)])) if n else None

    def column(role: Role, reason: str, distinct: int | None) -> ColumnRole:
        return ColumnRole(name, role, reason, distinct, n_rows - n, example)

    if n == 0:
        return column(Role.EMPTY, "has no values", 0)
    if sampled.is_plain(name):
        return column(Role.NUMERIC, _PLAIN[Role.NUMERIC], _count(values, here, sampled))
    present = values if n == n_rows else values[here]
    different = np.unique(present).astype(np.float64)
    distinct = len(different)
    if distinct == 1:
        reason = _constant(n_rows - n, n_rows)
        return column(Role.NUMERIC if reason is None else Role.CONSTANT, reason or "has one value or none", 1)
    form = find_number_form(different, n, named=names_day(name))
    if form is not None:
        date = column(Role.DATE, form.reason(example), distinct)
        return replace(date, date_parts=form.usual_parts)
    reason = _number_key(name, present, different)
    if reason is not None:
        return column(Role.IDENTIFIER, reason, distinct)
    reason = _PLAIN[Role.NUMERIC]
    if sampled.whole and _WHOLE_LIMIT < np.abs(different).max() < 2.0**64:
        reason = "has numbers above 2^53, whose last digits are rounded"
    shown_count = distinct if n_rows <= _SAMPLE or distinct <= _COUNTED else None
    return column(Role.NUMERIC, reason, shown_count)


def _count(values: Array, here: NDArray[np.bool_], sampled: _Sampled) -> int | None:
    """How many numbers differ, if that is quick to say or they are few."""
    if len(values) <= _SAMPLE:
        return sampled.distinct
    if sampled.distinct > _COUNTED:
        return None
    present = values if here.all() else values[here]
    low, high = float(present.min()), float(present.max())
    if sampled.whole and high - low <= 100 * _COUNTED and (present == np.rint(present)).all():
        distinct = int(np.count_nonzero(np.bincount((present - low).astype(np.intp))))
    else:
        distinct = len(np.unique(present))
    return distinct if distinct <= _COUNTED else None


def _number_key(name: str, present: Array, different: Array) -> str | None:
    """Why numbers are an identifier, or None. ``different``: the different ones, ascending."""
    largest = max(-float(different[0]), float(different[-1]))
    if len(present) < _LEAST_ROWS or largest >= 2.0**64 or not (np.rint(different) == different).all():
        return None
    reason = _made_to_differ(present, different)
    if reason is not None:
        return f"{reason} and looks like an identifier"
    return _named_key(name, len(present), different)


def _made_to_differ(present: Array, different: Array) -> str | None:
    """Why whole numbers are an identifier by themselves: measurements would repeat more often."""
    n, distinct = len(present), len(different)
    low, high = float(different[0]), float(different[-1])
    if 2 * distinct < n or (low >= _YEARS[0] and high <= _YEARS[1]):
        return None
    step = np.gcd.reduce(np.diff(different).astype(np.int64)) if high - low < 2.0**63 else 1
    slots = (high - low) / float(step) + 1.0
    surprise = _surprise(n, distinct, slots)
    if distinct == n and surprise >= _UNLIKELY_IN_ORDER:
        rises = np.diff(present.astype(np.float64, copy=False))
        if (rises > 0).all() or (rises < 0).all():
            return "counts the rows"
    if surprise >= _UNLIKELY:
        return f"has another whole number in {'every row' if distinct == n else 'most rows'}, with few gaps,"
    if n >= _LEAST_LONG and _are_long(different, _LONG):
        return "has long whole numbers that differ in most rows"
    return None


def _named_key(name: str, n: int, different: Array) -> str | None:
    """Why the name makes an identifier of whole numbers; None where they may measure something.

    A key has few rows, or more values than a category can have: its size then says nothing. Numbers below
    100 that repeat may be counts unless the name says ID.
    """
    said, distinct = key_name(name), len(different)
    few_rows = distinct >= _LEAST_ROWS and _ROWS_OF_KEY * distinct >= n
    if said is KeyName.NONE or different[0] < 0 or not (few_rows or distinct > MAX_CODES):
        return None
    if said is KeyName.ENTITY and not (few_rows and _are_long(different, _LONG_IF_NAMED)):
        return None
    if said is KeyName.NUMBER and different[-1] < _LARGE and distinct < n:
        return None
    return f"{_AS_NAMED} {distinct:,} different whole numbers in {n:,} rows"


_AS_NAMED = "has the name of an identifier and"


def _surprise(n: int, distinct: int, slots: float) -> float:
    """How many standard deviations above what n random draws from so many whole numbers would give.

    Measurements cluster, which makes fewer values differ. Only keys, which are made to differ, are above.
    """
    load = n / slots
    expected = -slots * math.expm1(-load)
    variance = slots * math.exp(-load) * (-math.expm1(-load) - load * math.exp(-load))
    return (distinct - expected) / math.sqrt(max(variance, 1e-12))


def _are_long(different: Array, least: int) -> bool:
    """Whether numbers have so many digits, nearly all as many, and are not rounded as amounts are."""
    size = np.abs(different)
    digits = np.floor(np.log10(np.maximum(size, 1.0))) + 1.0
    longest = float(np.quantile(digits, 0.9))
    alike = float(np.mean(digits >= longest - 1.0)) >= 0.95
    rounded = 1000.0 if least >= _LONG else 100.0
    return longest >= least and alike and float(np.mean(size % rounded == 0.0)) < 0.05


def _plain_number(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) < _WHOLE_LIMIT else number


# ------------------------------------------------------------------------------------------------ text


def _text_role(name: str, column: Coded) -> ColumnRole:
    n_rows, labels = len(column), column.labels
    occurs = np.zeros(len(labels) + 1, dtype=bool)
    occurs[column.codes] = True  # -1: the last entry
    held = np.flatnonzero(occurs[:-1])
    missing = column.n_missing if occurs[-1] else 0
    distinct, n = len(held), n_rows - missing
    example = labels[column.codes[int(np.argmax(column.codes >= 0))]] if distinct else None

    def role(role: Role, reason: str) -> ColumnRole:
        return ColumnRole(name, role, reason, distinct, missing, example)

    if distinct == 0:
        return role(Role.EMPTY, "has no values")
    if distinct == 1:
        reason = _constant(missing, n_rows)
        return role(Role.CATEGORICAL if reason is None else Role.CONSTANT, reason or "has one label or none")
    if isinstance(example, str):
        some = [labels[k] for k in held[np.linspace(0, distinct - 1, min(distinct, _LOOKED_AT)).astype(int)]]
        form = find_form(some)
        if form is not None:
            return replace(role(Role.DATE, form.reason(example)), date_parts=form.usual_parts)
        reason = _text_key(name, some, n, distinct, example)
        if reason is not None:
            return role(Role.IDENTIFIER, reason)
    if distinct > MAX_CODES:
        return role(
            Role.CATEGORICAL, f"has {distinct:,} labels, of which the {MAX_CODES - 1} most frequent count"
        )
    return role(Role.CATEGORICAL, _PLAIN[Role.CATEGORICAL])


_UUID = re.compile(r"\{?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\}?", re.IGNORECASE)
_HEX = re.compile(r"(0x)?[0-9a-f]{12,}", re.IGNORECASE)
_CODE = re.compile(r"[^\W\d_][^\s\d]*#")  # such as CUST-000123, with # for digits in a row


def _text_key(name: str, some: Sequence[str], n: int, distinct: int, example: str) -> str | None:
    """Why text is an identifier, or None. ``some``: labels of a column with so many rows and labels."""
    if n < _LEAST_ROWS:
        return None
    if distinct >= _LEAST_ROWS and _ROWS_OF_KEY * distinct >= n:
        shape = _key_shape(some, n, distinct)
        if shape is not None:
            return f"holds {shape} such as {shown(example)} and looks like an identifier"
        if key_name(name) in (KeyName.ID, KeyName.NUMBER):
            return f"{_AS_NAMED} {distinct:,} different values in {n:,} rows"
    # As many repetitions as random draws from n^2 / (2 repeated) labels would give.
    if 2 * distinct < n or n * n < 2 * _VOCABULARY * (n - distinct):
        return None
    differs = f"{distinct:,} different values in {n:,} rows"
    if sum(len(label.split()) for label in some) >= _WORDS * len(some):
        return f"holds free text, {differs}"
    return f"has {differs} and looks like an identifier"


def _key_shape(some: Sequence[str], n: int, distinct: int) -> str | None:
    """What to call labels that all have the shape of a key; None for others."""
    if all(map(_UUID.fullmatch, some)):
        return "UUIDs"
    if len(set(map(len, some))) == 1 and all(map(_HEX.fullmatch, some)):
        return "long numbers" if all(map(str.isdigit, some)) else "hexadecimal keys"
    shapes = {re.sub(r"\d+", "#", label) for label in some}
    if len(shapes) > 1 or not _CODE.fullmatch(shapes.pop()):
        return None
    digits = [re.sub(r"\D", "", label) for label in some]
    if sum(map(len, digits)) < _CODE_DIGITS * len(some):
        slots = max(map(int, digits)) - min(map(int, digits)) + 1
        if _surprise(n, distinct, float(slots)) < _UNLIKELY_IN_ORDER:
            return None
    return "numbered codes"


# ------------------------------------------------------------------------------------------------ warnings


def leak_warnings(
    frame: Frame, roles: Sequence[ColumnRole], target: NDArray[Any], *, classification: bool
) -> list[str]:
    """A sentence for every feature that alone predicts the target nearly perfectly; at most a dozen.

    Parameters
    ----------
    frame : Frame
        The table.
    roles : sequence of ColumnRole
        Which of its columns are features.
    target : ndarray
        For every row the number of its class, or the number to predict.
    classification : bool
        Which of the two.

    Returns
    -------
    list of str
    """
    features = {own.name: frame.data[own.name] for own in roles if own.is_feature and own.name in frame.data}
    if classification:
        leaks, does = separating(features, target), "separates the target almost perfectly"
    else:
        leaks, does = determining(features, target), "gives the target almost exactly"
    sentences = [
        f"column {name!r} alone {does}: is it known before the outcome? "
        f"--drop {shlex.quote(name)} leaves it out."
        for name in leaks
    ]
    return _at_most(sentences, "there are {:,} more columns of which each alone gives the target away.")


def size_warnings(n_rows: int, class_counts: Mapping[Any, int] | None) -> list[str]:
    """Sentences for a table of few rows, and for classes of few rows.

    Parameters
    ----------
    n_rows : int
        How many rows there are to train on.
    class_counts : mapping or None
        How many of them each class has; None for regression.
    """
    sentences = []
    if n_rows < _FEW_ROWS:
        sentences.append(f"there are only {n_rows} rows: with fewer than {_FEW_ROWS}, much is chance.")
    few = {label: count for label, count in (class_counts or {}).items() if count < _FEW_OF_CLASS}
    classes = [
        f"class {shown(label)} has only {count} row{'s' if count != 1 else ''}: with fewer than "
        f"{_FEW_OF_CLASS}, much of what is learned about it is chance."
        for label, count in few.items()
    ]
    return sentences + _at_most(classes, "there are {:,} more classes of so few rows.")


# ------------------------------------------------------------------------------------------------ lines

_MOST_LINES = 12
_SHOWN = 30
_WIDTH = 79
Printable = Callable[[str], str]


def role_lines(roles: Sequence[ColumnRole], printable: Printable) -> list[str]:
    """The table of the columns for people, 79 characters wide.

    Parameters
    ----------
    roles : sequence of ColumnRole
        All columns. Of many, the first thirty are shown and others with something to say, up to sixty.
    printable : callable
        Makes a name safe to show on one line.
    """
    chosen = [own for k, own in enumerate(roles) if k < _SHOWN or own.has_remark][: 2 * _SHOWN]
    cells = [("column", "role", "distinct", "missing", "example")]
    for own in chosen:
        distinct = f"over {_COUNTED:,}" if own.distinct is None else f"{own.distinct:,}"
        example = "" if own.example is None else str(own.example)
        cells.append((own.name, str(own.role), distinct, f"{own.missing:,}", example))
    width = min(28, max(len(_cut(row[0], 28, printable)) for row in cells))
    lines = []
    for name, role, distinct, missing, example in cells:
        head = f"{_cut(name, width, printable):<{width}}  {role:<11}  {distinct:>10}  {missing:>9}  "
        lines.append((head + _cut(example, _WIDTH - len(head), printable)).rstrip())
    if len(chosen) < len(roles):
        lines.append(f"... and {len(roles) - len(chosen):,} more columns")
    return lines


def left_out_lines(roles: Sequence[ColumnRole], printable: Printable) -> list[str]:
    """A line for every column that is left out, and how to keep it; at most a dozen and then a count."""
    lines = [
        printable(f"left out: {own.name!r} {own.reason}{_how_to_keep(own)}.")
        for own in roles
        if own.is_left_out
    ]
    return _at_most(lines, "left out: {:,} more columns.")


def _how_to_keep(own: ColumnRole) -> str:
    if own.role is Role.IDENTIFIER:
        kind = "categorical" if isinstance(own.example, str) else "numeric"
        return f"; --{kind} {shlex.quote(own.name)} keeps it"
    if own.role is Role.DATE:
        parts = ",".join(own.date_parts)
        return f"; --date {shlex.quote(f'{own.name}={parts}')} derives features"
    return ""


def _cut(text: str, width: int, printable: Printable) -> str:
    text = printable(" ".join(text.split()))
    return text if len(text) <= width else text[: width - 3] + "..."


def _at_most(lines: list[str], more: str) -> list[str]:
    """A dozen lines, and how many more there are."""
    rest = len(lines) - _MOST_LINES
    return lines if rest <= 0 else [*lines[:_MOST_LINES], more.format(rest)]

"""Categories: labels that are text or numbers, their codes in a model, and columns that hold them.

A label is text, a truth value or a finite number. The labels of one column are all text or all numbers, and
numbers are equal across their types as in Python: ``1 == 1.0 == True``. A number that is whole is kept as an
int, so that the same values read from an int column, a float column or a file are the same labels.
"""

from __future__ import annotations

import datetime
import enum
import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Label = str | int | float | bool

#: bins are bytes, and the last one is for missing values
MAX_CODES = 255
#: what counts as a number (bool is an int)
NUMBERS = (int, float, np.bool_, np.integer, np.floating, Decimal, Fraction)
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_MISSING_TYPES = frozenset(("NoneType", "NAType", "NaTType"))  # None and what pandas has besides
_WHOLE_LIMIT = 2.0**53  # below it a float holds every whole number


class Other(enum.Enum):
    """All labels of a column that are too rare for a code of their own. There is one: ``OTHER``."""

    OTHER = "other"

    def __repr__(self) -> str:
        return "other"

    __str__ = __repr__


OTHER = Other.OTHER


def is_missing(value: Any) -> bool:
    """None, NaN of any type, and what pandas has for missing values."""
    if type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float | np.floating | Decimal) and math.isnan(value)


def plain_label(value: Any, where: str = "a column") -> Label | None:
    """A value as the label that a model keeps, or None if it is missing."""
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        whole = int(value)
        if abs(whole) < 2**1023:  # as a float64 it is finite
            return whole
    elif isinstance(value, NUMBERS):
        number = float(value)
        if math.isfinite(number):
            return int(number) if number.is_integer() and abs(number) < _WHOLE_LIMIT else number
    else:
        raise wrong_entry(value, where)
    raise ValueError(
        f"{where} holds {shown(value)} as a category: only text and finite numbers are accepted."
    )


def wrong_entry(value: Any, where: str) -> Exception:
    """What to raise for an entry that is neither text nor a number."""
    if isinstance(value, _DATES):
        return dates_fault(where, shown(value))
    if isinstance(value, complex | np.complexfloating):
        return ValueError(f"Complex data not supported: {where} holds {shown(value)}.")
    return TypeError(
        f"{where} holds {shown(value)} of type {type(value).__name__}: each entry of the argument must be a "
        "string, a number or missing."
    )


def dates_fault(where: str, example: str) -> ValueError:
    """What to raise for dates and times."""
    return ValueError(
        f"{where} holds dates or times ({example}): convert them to numbers, for example to the days since a "
        "fixed date."
    )


def shown(value: Any) -> str:
    """A value for a message."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 40 else text[:37] + "..."


# ------------------------------------------------------------------------------------------------ of a model


@dataclass(frozen=True)
class Categories:
    """The codes of a model for the labels of one feature.

    ``kept`` are the labels with a code of their own, ascending (text by code point, numbers by value): the
    code is the position. ``rare`` are the others of the fit, which share the code ``len(kept)``.
    """

    kept: tuple[Label, ...]
    rare: tuple[Label, ...] = ()

    def __post_init__(self) -> None:
        for field in ("kept", "rare"):
            object.__setattr__(self, field, _check_labels(field, getattr(self, field)))
        if self.n_codes > MAX_CODES:
            raise ValueError(f"kept: expected at most {MAX_CODES} codes, found {self.n_codes}")
        both = (*self.kept[:1], *self.rare[:1])
        if len({isinstance(label, str) for label in both}) > 1:
            raise ValueError(f"rare: expected labels of one kind, found {both[1]!r} beside {both[0]!r}")
        if self.rare and (double := set(self.kept) & set(self.rare)):
            raise ValueError(f"rare: expected labels that are not kept, found {min(double)!r}")

    @property
    def n_codes(self) -> int:
        return len(self.kept) + bool(self.rare)

    def label(self, code: int) -> Label | Other:
        """The label of a code."""
        if not 0 <= code < self.n_codes:
            raise ValueError(f"there is no category with the code {code!r}: there are {self.n_codes}.")
        return self.kept[code] if code < len(self.kept) else OTHER

    def code(self, label: Label | Other) -> int:
        """The code of a label."""
        if isinstance(label, Other):
            if self.rare:
                return len(self.kept)
        elif label in self._codes:
            return self._codes[label]
        raise ValueError(f"{label!r} is none of the {len(self.kept) + len(self.rare)} categories.")

    def codes_of(self, labels: Sequence[Label]) -> NDArray[np.float64]:
        """The code of every label, NaN for those that were not seen at the fit."""
        return np.array([self._codes.get(label, math.nan) for label in labels], dtype=np.float64)

    @cached_property
    def _codes(self) -> dict[Label, int]:
        codes = {label: code for code, label in enumerate(self.kept)}
        return codes | dict.fromkeys(self.rare, len(self.kept))


def _check_labels(field: str, labels: Any) -> tuple[Label, ...]:
    """Labels of one kind, strictly ascending. Messages start with the field, for readers of files."""
    labels = tuple(labels)
    if set(map(type, labels)) == {str} and all(one < two for one, two in pairwise(labels)):
        return labels
    for k, label in enumerate(labels):
        if type(label) not in (str, int, float, bool):
            raise ValueError(f"{field}[{k}]: expected text or a number, found {shown(label)}")
        if isinstance(label, float) and not math.isfinite(label):
            raise ValueError(f"{field}[{k}]: expected a finite number, found {label}")
        if k and isinstance(label, str) != isinstance(labels[0], str):
            raise ValueError(
                f"{field}[{k}]: expected labels of one kind, found {shown(label)} beside {shown(labels[0])}"
            )
        if k and not labels[k - 1] < label:
            raise ValueError(
                f"{field}[{k}]: expected labels in ascending order, found {shown(label)} after "
                f"{shown(labels[k - 1])}"
            )
    return labels


# ------------------------------------------------------------------------------------------------ of a table


@dataclass(frozen=True, eq=False)
class CategoricalColumn:
    """A column of a table: the labels that occur, ascending, and for every row the position of its label."""

    labels: tuple[Label, ...]
    codes: NDArray[np.int32]  # -1: missing

    @classmethod
    def make(
        cls, values: Iterable[Any], codes: NDArray[Any], where: str = "a column", *, as_text: bool = False
    ) -> CategoricalColumn:
        """From any distinct values and, for every row, the position of its value or -1.

        Values that no row has do not count. ``as_text``: values that are neither text nor numbers (intervals,
        for example) are taken as their text instead of being refused.
        """
        values = list(values)
        present = _present(codes, len(values)).tolist()
        plain: list[Any] = [value if occurs else None for value, occurs in zip(values, present, strict=True)]
        if not set(map(type, plain)) <= {str, NoneType}:
            plain = [_as_label(value, where, as_text) for value in plain]
        labels = _one_kind({label for label in plain if label is not None}, where)
        code_of: dict[Any, int] = {label: k for k, label in enumerate(labels)} | {None: -1}
        return cls(labels, np.array([code_of[label] for label in (*plain, None)], dtype=np.int32)[codes])

    @classmethod
    def from_numbers(cls, values: NDArray[Any], where: str = "a column") -> CategoricalColumn:
        """Numbers as labels; NaN is missing."""
        distinct, codes = np.unique(values, return_inverse=True)  # one NaN, and the last
        return cls.make(distinct.tolist(), codes.astype(np.int32), where)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def is_text(self) -> bool:
        return bool(self.labels) and isinstance(self.labels[0], str)

    def take(self, rows: NDArray[Any]) -> CategoricalColumn:
        """The rows with a true mark (or of these numbers); labels that no longer occur are gone."""
        codes = self.codes[rows]
        present = _present(codes, len(self.labels))
        if present.all():
            return CategoricalColumn(self.labels, codes)
        code_of = np.where(present, np.cumsum(present) - 1, -1)
        labels = tuple(self.labels[k] for k in np.flatnonzero(present).tolist())
        return CategoricalColumn(labels, np.append(code_of, -1).astype(np.int32)[codes])

    def encode(self, categories: Categories) -> NDArray[np.float64]:
        """The codes that a model has for these labels; NaN where the label is missing or unseen."""
        return np.append(categories.codes_of(self.labels), math.nan)[self.codes]

    def digest_values(self) -> NDArray[np.float64]:
        """A number per row that stands for its label in digests of the table; NaN where it is missing.

        The label's text is ``s:`` and the text itself, or ``n:`` and ``repr(float(label))``, so that 1, 1.0
        and True agree. BLAKE2b with a digest of 8 bytes is taken of its UTF-8 bytes, and the number is its
        first 53 bits: the digest as a big-endian integer, shifted right by 11, as a float64 (exact).
        """
        return np.array([*map(_digest_value, self.labels), math.nan], dtype=np.float64)[self.codes]


def _digest_value(label: Label) -> float:
    text = f"s:{label}" if isinstance(label, str) else f"n:{float(label)!r}"
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(digest, "big") >> 11)


def _present(codes: NDArray[Any], n: int) -> NDArray[np.bool_]:
    """Which of the codes 0 .. n-1 occur."""
    present = np.zeros(n + 1, dtype=bool)
    present[codes] = True  # -1 marks the entry behind the last
    return present[:n]


def _as_label(value: Any, where: str, as_text: bool) -> Label | None:
    if as_text and not isinstance(value, NUMBERS) and not is_missing(value):
        return str(value)
    return plain_label(value, where)


def _one_kind(labels: set[Label], where: str) -> tuple[Label, ...]:
    """The labels, ascending: all text or all numbers."""
    kinds = set(map(type, labels))
    if str in kinds and len(kinds) > 1:
        text = min(label for label in labels if isinstance(label, str))
        raise mixed_fault(where, text, min(label for label in labels if not isinstance(label, str)))
    if bool in kinds and len(kinds) > 1:
        labels = {int(label) if isinstance(label, bool) else label for label in labels}
    return tuple(sorted(labels))


def mixed_fault(where: str, text: Any, number: Any) -> ValueError:
    """What to raise for text and numbers in one column."""
    return ValueError(
        f"{where} holds both text ({shown(text)}) and numbers ({shown(number)}): make its entries all "
        "text or all numbers."
    )

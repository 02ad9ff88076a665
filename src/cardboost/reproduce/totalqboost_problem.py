"""One training problem of the experiments on cardinality penalisation: a split of a set, its stumps, scores.

Exponential loss, stumps without an intercept. Equal rows of the training part are merged, with their number
as the weight: all sums are those of the rows one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.binning import apply_cuts, bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.stumps import StumpDictionary, StumpPool, Stumps
from cardboost.problem.losses import Exponential
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

VALIDATION = 0.2


def split_rows(X: Array, number: int, share: float = VALIDATION) -> tuple[Rows, Rows]:
    """Rows for training and for validation, at random; equal rows are on the same side.

    Groups of equal rows are taken in a random order, and each goes to the validation part if it still has
    room there. ``number``: which of the random splits.
    """
    _, group = np.unique(X, axis=0, return_inverse=True)
    group = group.reshape(-1)
    sizes = np.bincount(group)
    room = round(share * len(X))
    held = np.zeros(len(sizes), dtype=bool)
    for g in np.random.default_rng([20_14, number]).permutation(len(sizes)):
        if sizes[g] <= room:
            held[g] = True
            room -= int(sizes[g])
    outside = held[group]
    return np.flatnonzero(~outside), np.flatnonzero(outside)


@dataclass(frozen=True, eq=False)
class Part:
    """Rows on which ensembles are judged: their bins, labels and numbers."""

    bins: NDArray[np.uint8]
    positive: NDArray[np.bool_]
    count: NDArray[np.int64]

    def error(self, stumps: Stumps, weights: Array) -> float:
        """The share of rows on the wrong side; a score of 0 is negative."""
        used = np.flatnonzero(weights)
        score = np.zeros(len(self.positive))
        signs = stumps.signs()
        for j in used:
            score += weights[j] * signs[j][self.bins[stumps.feature[j]]]
        wrong = (score > 0.0) != self.positive
        return int(self.count[wrong].sum()) / int(self.count.sum())


@dataclass(frozen=True, eq=False)
class Problem:
    """The stumps over the training rows, the risk there, and both parts."""

    dictionary: StumpDictionary
    risk: EmpiricalRisk
    training: Part
    validation: Part

    @classmethod
    def make(cls, X: Array, y: NDArray[np.int8], number: int, max_bins: int) -> Problem:
        """The problem of one split."""
        train, held = split_rows(X, number)
        both = np.column_stack([X[train], y[train]])
        rows, count = np.unique(both, axis=0, return_counts=True)
        inner, sign = np.ascontiguousarray(rows[:, :-1]), rows[:, -1].astype(np.int8)
        if len(np.unique(sign)) < 2:
            raise ValueError(f"split {number} has training rows of one class only: there are too few rows.")
        weights = RowWeights.make(len(sign), count.astype(np.float64))
        table = read_table(inner)
        matrix = bin_table(table, weights, max_bins, 1)
        bins = apply_cuts(read_table(np.ascontiguousarray(X[held])), matrix.cuts, 1)
        return cls(
            StumpDictionary(matrix, sign, 1, intercept=False),
            EmpiricalRisk(Exponential(), weights, sign, 1),
            Part(matrix.bins, sign > 0, count.astype(np.int64)),
            Part(bins, y[held] > 0, np.ones(len(held), dtype=np.int64)),
        )

    @property
    def rows(self) -> int:
        """Training rows, equal ones counted one by one."""
        return int(self.training.count.sum())

    def pool(self, columns: list[list[int]]) -> StumpPool:
        """A pool of columns as :func:`plain_columns` writes them."""
        pool = self.dictionary.pool()
        if columns:
            feature, cut, polarity, missing_left = np.array(columns).T
            pool.append(self.dictionary.stumps(feature, cut, polarity, missing_left.astype(bool)))
        return pool


def plain_columns(stumps: Stumps) -> list[list[int]]:
    """Stumps on numbers as plain lists: feature, cut, polarity, side of missing values."""
    parts: list[Any] = [stumps.feature, stumps.cut, stumps.polarity, stumps.missing_left]
    return np.stack([np.asarray(part, dtype=np.int64) for part in parts], axis=1).tolist()

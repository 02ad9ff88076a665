"""One training problem of the experiments on cardinality penalisation: a split of a set, its stumps, prices.

Exponential loss, stumps without an intercept. Equal rows of the training part are merged, with their number
as the weight: all sums are those of the rows one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
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
Indices = NDArray[np.intp]

VALIDATION_SHARE = 0.2  # of the rows


def split_rows(X: Array, number: int, share: float = VALIDATION_SHARE) -> tuple[Indices, Indices]:
    """Split rows at random into training and validation; equal rows are on the same side.

    Groups of equal rows are taken in a random order, and each goes to the validation part if that still has
    room. ``number``: which of the random splits.
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
    validation = held[group]
    return np.flatnonzero(~validation), np.flatnonzero(validation)


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Rows on which errors are counted: their bins, labels, and how often each occurs."""

    bins: NDArray[np.uint8]
    positive: NDArray[np.bool_]
    count: NDArray[np.int64]

    def error(self, stumps: Stumps, weights: Array) -> float:
        """The share of rows on the wrong side; a score of 0 is negative."""
        score = np.zeros(len(self.positive))
        signs = stumps.signs()
        for j in np.flatnonzero(weights):
            score += weights[j] * signs[j][self.bins[stumps.feature[j]]]
        wrong = (score > 0.0) != self.positive
        return int(self.count[wrong].sum()) / int(self.count.sum())


@dataclass(frozen=True, eq=False)
class SplitProblem:
    """The stumps over the training rows, the risk there, and the rows of both parts."""

    dictionary: StumpDictionary
    risk: EmpiricalRisk
    training: JudgedRows
    validation: JudgedRows

    @classmethod
    def make(cls, X: Array, y: NDArray[np.int8], number: int, max_bins: int) -> SplitProblem:
        """The problem of one split."""
        train, held = split_rows(X, number)
        rows, count = np.unique(np.column_stack([X[train], y[train]]), axis=0, return_counts=True)
        inner, sign = np.ascontiguousarray(rows[:, :-1]), rows[:, -1].astype(np.int8)
        if len(np.unique(sign)) < 2:
            raise ValueError(f"split {number} has training rows of one class only: there are too few rows.")
        weights = RowWeights.make(len(sign), count.astype(np.float64))
        matrix = bin_table(read_table(inner), weights, max_bins, 1)
        bins = apply_cuts(read_table(np.ascontiguousarray(X[held])), matrix.cuts, 1)
        return cls(
            StumpDictionary(matrix, sign, 1, intercept=False),
            EmpiricalRisk(Exponential(), weights, sign, 1),
            JudgedRows(matrix.bins, sign > 0, count.astype(np.int64)),
            JudgedRows(bins, y[held] > 0, np.ones(len(held), dtype=np.int64)),
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
    """Columns as plain lists: feature, cut, polarity, side of missing values."""
    parts: list[Any] = [stumps.feature, stumps.cut, stumps.polarity, stumps.missing_left]
    return np.stack([np.asarray(part, dtype=np.int64) for part in parts], axis=1).tolist()


def hull(risks: Sequence[float]) -> list[int]:
    """The sizes on the lower convex hull of ``risks[k]``, k = 0, 1, ..., down to the least risk."""
    end = min(range(len(risks)), key=lambda k: risks[k])
    sizes: list[int] = []
    for k in range(end + 1):
        while len(sizes) > 1 and _slope(risks, sizes[-2], sizes[-1]) <= _slope(risks, sizes[-1], k):
            sizes.pop()
        sizes.append(k)
    return sizes


def _slope(risks: Sequence[float], first: int, second: int) -> float:
    """The drop of the risk per term between two sizes."""
    return (risks[first] - risks[second]) / (second - first)


def spread_prices(risks: Sequence[float], least: float, count: int) -> list[float]:
    """``count`` prices of a term, falling to ``least``, at which ensembles of many sizes are the best.

    The paper takes "a variety" of prices. With a price lambda the best ensemble has the size k that minimises
    r(k) + lambda k, where r(k) is the least risk of k terms: only sizes on the lower convex hull of r are
    ever the best, each between the slopes of the hull on its two sides. Sizes are spread by the ratio of
    neighbours. Where there are fewer sizes than prices, the widest gaps between prices get more.
    """
    sizes = hull(risks)
    slopes = [_slope(risks, a, b) for a, b in pairwise(sizes)]
    if not slopes or count < 1:
        raise ValueError("no column lowers the risk: there is nothing to choose from.")
    least = min(max(least, 1e-9 * slopes[0]), 0.5 * slopes[0])
    lower = [*slopes[1:], 0.0]
    priced = [
        (math.sqrt(above * max(below, least)), float(size))
        for above, below, size in zip(slopes, lower, sizes[1:], strict=True)
        if above > least
    ]
    last = priced[-1][1]
    for price, size in ((2.0 * least, 1.25 * last), (least, 1.5 * last)):  # for sizes beyond the last
        if priced[-1][0] > price:
            priced.append((price, size))
    while len(priced) > max(count, 2):
        gaps = [priced[k + 1][1] / priced[k - 1][1] for k in range(1, len(priced) - 1)]
        del priced[1 + gaps.index(min(gaps))]
    prices = [price for price, _ in priced[:count]]
    while len(prices) < count:
        ratios = [a / b for a, b in pairwise(prices)]
        widest = ratios.index(max(ratios))
        prices.insert(widest + 1, math.sqrt(prices[widest] * prices[widest + 1]))
    return prices

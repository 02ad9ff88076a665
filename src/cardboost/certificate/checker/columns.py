"""Columns of a certificate on the rows of a table. Part of the checker; imports NumPy only.

Rows that are equal in all columns of the pool are one row with the sum of their shares: leaves are then
bounded on distinct rows, many leaves at a time. Columns of the dictionary that are not in the pool are never
made: their edges are sums over bins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cardboost.certificate.checker.data import Floats, Table
from cardboost.certificate.checker.format import limits_features

Indices = npt.NDArray[np.intp]

BLOCK_WORK = 200_000  # multiplications of a product: for so few no library starts threads


def row_blocks(rows: int, work: int) -> Iterator[slice]:
    """Parts of the rows for products that take so much work per row."""
    step = max(1, BLOCK_WORK // max(1, work))
    for first in range(0, rows, step):
        yield slice(first, first + step)


@dataclass(frozen=True)
class Rows:
    """Distinct rows of a pool: a_ij with the label multiplied in, what the intercept is multiplied with, s_i.

    ``target``: t of a regression, else zeros. ``group``: for every row of the table the row here that equals
    it; None where each is one of its own.
    """

    a: npt.NDArray[Any]
    free: Floats
    share: Floats
    target: Floats
    group: Indices | None = None

    @cached_property
    def largest_entries(self) -> Floats:
        """The largest |a_ij| of every column."""
        return np.asarray(np.max(np.abs(self.a), axis=0, initial=0), dtype=np.float64)

    def margins(self, intercept: Floats, weights: Floats) -> Floats:
        """F, a column for each column of ``weights``."""
        margins = np.outer(self.free, intercept)
        for block in row_blocks(len(self.a), weights.size):
            margins[block] += self.a[block].astype(np.float64, copy=False) @ weights
        return margins

    def edges(self, u: Floats) -> Floats:
        """sum_i u_i a_ij: a row for each column of ``u``."""
        edges = np.zeros((u.shape[1], self.a.shape[1]))
        for block in row_blocks(len(self.a), edges.size):
            edges += u[block].T @ self.a[block].astype(np.float64, copy=False)
        return edges


def merge_rows(a: npt.NDArray[np.int8], free: Floats, share: Floats) -> Rows:
    """Rows of columns of -1 and 1 that are equal in all of them and in ``free`` become one."""
    planes = np.column_stack([a > 0, free > 0])
    packed = np.packbits(planes, axis=1)
    words = np.zeros((len(a), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    words[:, : packed.shape[1]] = packed
    keys = words.view(np.uint64)
    order = np.lexsort(keys.T)
    new = np.append(True, (keys[order[1:]] != keys[order[:-1]]).any(axis=1))
    group = np.empty(len(a), dtype=np.intp)
    group[order] = np.cumsum(new) - 1
    first = order[new]
    total = np.bincount(group, share, len(first)).astype(np.float64)
    return Rows(a[first], free[first], total, np.zeros(len(first)), group)


@dataclass(frozen=True)
class Bins:
    """A feature in bins, the last one for missing values.

    A numeric feature has in bin k the values in (cut k-1, cut k], a categorical one those of category k. For
    the sets of a categorical feature bin k has the category at place k of the order: the first k of them are
    on the left as the values below a cut are, and only sets of two or more, but not all, count.
    """

    codes: Indices
    n: int
    categorical: bool
    sets: bool = False

    def left(self, k: int, missing_left: int) -> npt.NDArray[np.bool_]:
        """Which bins are on the left of a stump."""
        bins = np.arange(self.n)
        left = bins == k if self.categorical else bins <= k
        left[-1] = missing_left
        return left

    def left_sums(self, histogram: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sums over the left side of every stump: [k, missing values on the left]."""
        values = histogram[:-1] if self.categorical else np.cumsum(histogram[:-1])
        return np.stack([values, values + histogram[-1]], axis=1)

    def open(self) -> npt.NDArray[np.bool_]:
        """Which of these stumps there are: [k, missing values on the left]."""
        size = np.arange(1, self.n)
        exists = (size >= 2) & (size < self.n - 1) if self.sets else np.ones(self.n - 1, dtype=bool)
        return np.stack([exists, exists], axis=1)


Question = tuple[int, bool]  # a feature, and whether its sets are meant


@dataclass(frozen=True)
class Stumps:
    """Stumps over binned features. ``y``: what the stumps are multiplied with, 1 for a regression."""

    y: Floats
    bins: dict[Question, Bins]
    pool: list[tuple[Question, int, int, int]]  # question, (last) bin on the left, polarity, missing left
    unseen: dict[Question, npt.NDArray[np.bool_]]  # per question: [polarity +/-, k, missing side]
    features: int

    def pool_columns(self) -> npt.NDArray[np.int8]:
        """The columns of the pool, the label multiplied in."""
        a = np.empty((len(self.y), len(self.pool)), dtype=np.int8)
        sign = self.y.astype(np.int8)
        for j, (question, k, polarity, missing_left) in enumerate(self.pool):
            bins = self.bins[question]
            table = np.where(bins.left(k, missing_left), polarity, -polarity).astype(np.int8)
            a[:, j] = table[bins.codes] * sign
        return a

    @property
    def any_unseen(self) -> bool:
        """Whether the dictionary has a stump that is not in the pool."""
        return any(exists.any() for exists in self.unseen.values())

    def unseen_edges(self, u: Floats) -> Floats:
        """For every feature the largest edge of its stumps that are not in the pool."""
        uy, most = u * self.y, np.full(self.features, -math.inf)
        for question, exists in self.unseen.items():
            bins = self.bins[question]
            histogram = np.bincount(bins.codes, weights=uy, minlength=bins.n)
            edge = 2.0 * bins.left_sums(histogram) - histogram.sum()
            feature = question[0]
            most[feature] = np.max(np.stack([edge, -edge]), where=exists, initial=most[feature])
        return most


def bin_stumps(certificate: dict[str, Any], table: Table, keep: Indices) -> Stumps:
    """The stumps of a certificate on the rows ``keep`` of a table."""
    columns, dictionary = certificate["columns"], certificate["dictionary"]
    categories = certificate["categories"] or [None] * table.features
    cuts: dict[int, set[float]] = {}
    if dictionary is not None:
        cuts = {feature: set(values) for feature, values in enumerate(dictionary["cuts"])}
    for feature, cut in zip(columns["feature"], columns["cut"], strict=True):
        cuts.setdefault(feature, set()).update([] if cut is None else [cut])
    edges = {feature: np.array(sorted(values), dtype=np.float64) for feature, values in cuts.items()}
    bins: dict[Question, Bins] = {}
    for feature, edge in edges.items():
        labels = categories[feature]
        if labels is not None:
            bins[feature, False] = by_label = _bin_labels(table, feature, labels, keep)
            order = labels.get("order")
            if order is not None:
                position = np.append(np.argsort(order), len(order))
                bins[feature, True] = Bins(position[by_label.codes], by_label.n, False, True)
            continue
        values = table.column(feature)[keep]
        codes = np.where(np.isnan(values), len(edge) + 1, np.searchsorted(edge, values, side="left"))
        bins[feature, False] = Bins(codes, len(edge) + 2, False)
    fields = (columns[key] for key in ("feature", "cut", "category", "polarity", "missing_left"))
    sets = columns.get("first", [None] * len(columns["feature"]))
    pool = []
    for f, cut, category, polarity, side, first in zip(*fields, sets, strict=True):
        if first is not None:
            k = first - 1
        elif category is None:
            k = len(edges[f]) if cut is None else int(np.searchsorted(edges[f], cut))
        else:
            kept = categories[f]["kept"]
            k = len(kept) if isinstance(category, dict) else kept.index(category)
        pool.append(((f, first is not None), k, polarity, int(side)))
    y = np.ones(len(keep)) if table.target is not None else np.where(table.positive[keep], 1.0, -1.0)
    stumps = Stumps(y, bins, pool, {}, table.features)
    if dictionary is not None:
        stumps.unseen.update(_unseen(stumps, limits_features(certificate["problem"])))
        for feature, direction in enumerate(dictionary["monotonic"] or []):
            if direction:  # of those with a cut only stumps that rise (polarity -1) or only those that fall
                stumps.unseen[feature, False][0 if direction > 0 else 1, :-1] = False
        _leave_out(stumps.unseen, certificate["problem"])
    return stumps


def _leave_out(unseen: dict[Question, npt.NDArray[np.bool_]], problem: dict[str, Any]) -> None:
    """Without the stumps that the problem forbids: [polarity +/-, k, missing side]."""
    excluded, missing = problem.get("excluded") or (), problem.get("missing")
    for (feature, _), exists in unseen.items():
        side = 0 if missing is None else missing[feature]
        if feature in excluded:
            exists[:] = False
        elif side:  # missing values on the left have the polarity, on the right its opposite
            left = 0 if side > 0 else 1  # the polarity that has them on the left
            exists[left, :, 0] = exists[1 - left, :, 1] = False


def _bin_labels(table: Table, feature: int, labels: dict[str, Any], keep: Indices) -> Bins:
    """Kept labels have the bin of their position, rare ones share the next; others count as missing."""
    codes, distinct = table.labels(feature)
    kept = {label: k for k, label in enumerate(labels["kept"])}
    n = len(kept) + labels["rare"]
    other = len(kept) if labels["rare"] else n
    bin_of_code = np.array([*(kept.get(label, other) for label in distinct), n], dtype=np.intp)
    return Bins(bin_of_code[codes[keep]], n + 1, True)


def _unseen(stumps: Stumps, by_feature: bool) -> dict[Question, npt.NDArray[np.bool_]]:
    """Which stumps of the dictionary are neither constant nor equal, row by row, to a column of the pool.

    A set of rows is identified by the wrapping sum of a random word per row, by histograms as for the edges.
    The words are drawn afresh, so no file can be prepared against them; two sets agree with chance 2^-64.
    ``by_feature``: a column of another feature is another column.
    """
    m = len(stumps.y)
    word = np.random.default_rng().integers(2**64, size=m, dtype=np.uint64)
    total, name, exists = word.sum(), {}, {}
    for question, bins in stumps.bins.items():
        sums = np.zeros(bins.n, dtype=np.uint64)
        np.add.at(sums, bins.codes, word)
        left, count = bins.left_sums(sums), bins.left_sums(np.bincount(bins.codes, minlength=bins.n))
        name[question] = np.stack([left, np.full_like(left, total) - left])  # the rows where it says +1
        exists[question] = (count > 0) & (count < m) & bins.open()
    feature = np.array([f for (f, _), _, _, _ in stumps.pool])
    pool = np.array([name[q][(1 - p) // 2, k, side] for q, k, p, side in stumps.pool], dtype=np.uint64)
    return {
        question: exists[question] & ~np.isin(names, pool[feature == question[0]] if by_feature else pool)
        for question, names in name.items()
    }

"""The evidence: rows, their digest, and columns with margins and edges. Part of the checker.

Imports NumPy and the standard library only.

The rows are named by ``data_digest``, which does not depend on their order:

    Rows of weight zero are dropped. All arithmetic is on uint64 and wraps. Per row, h = 0x9E3779B97F4A7C15;
    for every feature in order, with b the bits of the float64 value (any NaN: 0x7ff8000000000000; -0.0: 0):
        h ^= b;  h *= 0xBF58476D1CE4E5B9;  h ^= h >> 29
    then, with p = 1 for a positive label and 0 for a negative one (no labels: 1):
        h ^= p;  h *= 0x94D049BB133111EB;  h ^= h >> 32
    If all weights are integers with a sum below 2^53, the row counts w times. Otherwise it counts once and
        h ^= bits(w);  h *= 0x9E3779B97F4A7C15;  h ^= h >> 30
    lane1 = sum of count * h;  lane2 = sum of count * mix(h),  mix(h) = (h ^ (h >> 31)) * 0xD6E8FEB86659FD93
    The digest is lane1 and lane2, each as 16 lower-case hexadecimal digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

_ROW_BLOCK = 65_536


@dataclass(frozen=True)
class Table:
    """The rows as given: columns are read one at a time as float64; weights are raw."""

    rows: int
    features: int
    column: Callable[[int], Floats]
    positive: npt.NDArray[np.bool_]
    weight: Floats


def read(X: Any, y: Any, sample_weight: Any) -> Table:
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        names = list(X.columns)
        rows, features = len(X), len(names)
        column = lambda j: np.asarray(X[names[j]], dtype=np.float64)  # noqa: E731
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(f"X must have two dimensions, found {array.ndim}")
        rows, features = array.shape
        column = lambda j: np.asarray(array[:, j], dtype=np.float64)  # noqa: E731
    label = np.ones(rows) if y is None else np.asarray(y, dtype=np.float64)
    values = set(np.unique(label).tolist())
    if label.shape != (rows,) or not (values <= {0.0, 1.0} or values <= {-1.0, 1.0}):
        raise ValueError("y must hold one label per row: booleans, 0 and 1, or -1 and 1")
    weight = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (rows,) or not np.all(np.isfinite(weight)) or np.any(weight < 0) or not np.any(weight):
        raise ValueError("sample_weight must hold one finite number >= 0 per row, not all zero")
    return Table(rows, features, column, label > 0, weight)


def _bits(values: Floats) -> Words:
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # adding 0.0 turns -0.0 into 0.0
    return np.where(np.isnan(values), np.uint64(0x7FF8000000000000), bits)


def _stir(state: Words, word: Words, factor: int, shift: int) -> Words:
    mixed = (state ^ word) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(shift))


def data_digest(X: Any, y_positive: Any = None, sample_weight: Any = None) -> str:
    """32 hexadecimal digits that stand for the rows in any order; the module's first lines define them."""
    return table_digest(read(X, y_positive, sample_weight))


def table_digest(table: Table) -> str:
    keep = np.flatnonzero(table.weight > 0)
    weight, positive = table.weight[keep], table.positive[keep].astype(np.uint64)
    blocks = [slice(a, a + _ROW_BLOCK) for a in range(0, len(keep), _ROW_BLOCK)]
    state = np.full(len(keep), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for j in range(table.features):
        values = table.column(j)
        for block in blocks:
            state[block] = _stir(state[block], _bits(values[keep[block]]), 0xBF58476D1CE4E5B9, 29)
    counted = (
        bool(np.all(weight == np.floor(weight)))
        and bool(weight.max() < 2.0**53)
        and math.fsum(weight / 2.0) < 2.0**52
    )
    lanes = [0, 0]
    for block in blocks:
        h = _stir(state[block], positive[block], 0x94D049BB133111EB, 32)
        if not counted:
            h = _stir(h, _bits(weight[block]), 0x9E3779B97F4A7C15, 30)
        count = weight[block].astype(np.uint64) if counted else np.ones(len(h), dtype=np.uint64)
        lanes[0] += int(np.sum(h * count))
        lanes[1] += int(np.sum((h ^ (h >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93) * count))
    return "".join(f"{lane % 2**64:016x}" for lane in lanes)


@dataclass(frozen=True)
class Matrix:
    """Columns given as numbers a_ij, the label multiplied in."""

    a: Floats

    def margins(self, intercept: float, weights: list[Any]) -> Floats:
        index = [j for j, _ in weights]
        return self.a[:, index] @ np.array([w for _, w in weights], dtype=np.float64)

    def edges(self, u: Floats) -> tuple[Floats, float]:
        return u @ self.a, -math.inf


def _left_sums(histogram: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sums over the left side of every stump of a feature: [cut, missing values on the left]."""
    values = np.cumsum(histogram[:-1])
    return np.stack([values, values + histogram[-1]], axis=1)


@dataclass(frozen=True)
class Stumps:
    """Stumps over binned features: bin k holds the values in (cut k-1, cut k], the last bin the missing."""

    y: Floats
    codes: dict[int, npt.NDArray[np.intp]]
    bins: dict[int, int]
    pool: list[tuple[int, int, int, int]]  # feature, last bin on the left, polarity, missing on the left
    unseen: dict[int, npt.NDArray[np.bool_]]  # per feature: [polarity +/-, cut, missing side]

    def margins(self, intercept: float, weights: list[Any]) -> Floats:
        tables: dict[int, Floats] = {}
        for j, w in weights:
            feature, last, polarity, missing_left = self.pool[j]
            table = tables.setdefault(feature, np.zeros(self.bins[feature]))
            left = np.arange(len(table)) <= last
            left[-1] = missing_left
            table += w * polarity * np.where(left, 1.0, -1.0)
        score = np.full(len(self.y), float(intercept))
        for feature, table in tables.items():
            score += table[self.codes[feature]]
        return self.y * score

    def edges(self, u: Floats) -> tuple[Floats, float]:
        """The edges of the pool, and the largest edge of any dictionary stump that is not in it."""
        uy, unseen_edge, above = u * self.y, -math.inf, {}
        for feature, codes in self.codes.items():
            histogram = np.bincount(codes, weights=uy, minlength=self.bins[feature])
            above[feature] = edge = 2.0 * _left_sums(histogram) - histogram.sum()
            if feature in self.unseen:
                both = np.stack([edge, -edge])
                unseen_edge = float(np.max(both, where=self.unseen[feature], initial=unseen_edge))
        return np.array([p * above[f][k, side] for f, k, p, side in self.pool], dtype=np.float64), unseen_edge


def bin_stumps(certificate: dict[str, Any], table: Table, keep: npt.NDArray[np.intp]) -> Stumps:
    columns, dictionary = certificate["columns"], certificate["dictionary"]
    cuts: dict[int, set[float]] = {}
    if dictionary is not None:
        cuts = {feature: set(values) for feature, values in enumerate(dictionary["cuts"])}
    for feature, cut in zip(columns["feature"], columns["cut"], strict=True):
        cuts.setdefault(feature, set()).update([] if cut is None else [cut])
    edges = {feature: np.array(sorted(values), dtype=np.float64) for feature, values in cuts.items()}
    codes = {}
    for feature, edge in edges.items():
        values = table.column(feature)[keep]
        codes[feature] = np.where(np.isnan(values), len(edge) + 1, np.searchsorted(edge, values, side="left"))
    fields = (columns[key] for key in ("feature", "cut", "polarity", "missing_left"))
    pool = [
        (f, len(edges[f]) if cut is None else int(np.searchsorted(edges[f], cut)), p, int(side))
        for f, cut, p, side in zip(*fields, strict=True)
    ]
    bins = {feature: len(edge) + 2 for feature, edge in edges.items()}
    stumps = Stumps(np.where(table.positive[keep], 1.0, -1.0), codes, bins, pool, {})
    if dictionary is not None:
        stumps.unseen.update(_unseen(stumps))
    return stumps


def _unseen(stumps: Stumps) -> dict[int, npt.NDArray[np.bool_]]:
    """Which stumps of the dictionary are neither constant nor equal, row by row, to a column of the pool.

    A set of rows is known by the wrapping sum of a random word per row, from histograms as for the edges.
    The words are drawn afresh, so no file can be prepared against them; two sets agree with chance 2^-64.
    """
    m = len(stumps.y)
    word = np.random.default_rng().integers(2**64, size=m, dtype=np.uint64)
    total, name, constant = word.sum(), {}, {}
    for feature, codes in stumps.codes.items():
        sums = np.zeros(stumps.bins[feature], dtype=np.uint64)
        np.add.at(sums, codes, word)
        left, count = _left_sums(sums), _left_sums(np.bincount(codes, minlength=len(sums)))
        name[feature] = np.stack([left, np.full_like(left, total) - left])  # the rows where the stump says +1
        constant[feature] = (count == 0) | (count == m)
    seen = np.array([name[f][(1 - p) // 2, k, side] for f, k, p, side in stumps.pool], dtype=np.uint64)
    return {feature: ~constant[feature] & ~np.isin(name[feature], seen) for feature in name}

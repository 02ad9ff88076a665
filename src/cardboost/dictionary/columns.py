"""Columns that are given as such, of classes with y multiplied in: int8 where entries allow, else float64.

Serves the solvers on plain matrices and stores the outputs of learners that are not stumps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.dictionary.base import ColumnPool, Criterion, Dictionary, Proposals
from cardboost.problem.risk import RiskPoint

Array = NDArray[np.float64]
_QUICK = 2.0**51
_SHARED = 1e-3  # of the largest entry: real columns are added up in the same fixed point
_ROW_BLOCK = 256  # rows turned at a time: their entries stay in the cache


def column_lines(matrix: NDArray[Any]) -> NDArray[Any]:
    """The columns of a matrix one after the other; a copy only where they are not so already."""
    if matrix.flags.f_contiguous:
        return matrix.T
    lines = np.empty(matrix.shape[::-1], dtype=matrix.dtype)
    for begin in range(0, len(matrix), _ROW_BLOCK):
        lines[:, begin : begin + _ROW_BLOCK] = matrix[begin : begin + _ROW_BLOCK].T
    return lines


def largest_entries(lines: NDArray[Any]) -> NDArray[Any]:
    """The largest size of an entry in every line of numbers; of an empty line 0."""
    return np.maximum(lines.max(axis=1, initial=0), -lines.min(axis=1, initial=0))


class ColumnStore:
    """Columns one after the other, as int8 when every entry is -1, 0 or 1, else as float64; growing."""

    def __init__(self, columns: NDArray[Any], threads: int = 1) -> None:
        self.threads = threads
        self._hold(_compact(np.asarray(columns)))

    def __len__(self) -> int:
        return self.values.shape[0]

    def append(self, columns: NDArray[Any]) -> None:
        """More columns, each a row of ``columns``."""
        self._hold(np.concatenate([self.values, _compact(np.asarray(columns))]))

    def _hold(self, values: NDArray[Any]) -> None:
        """Keep these columns and what the kernels must know: whether all are signs, and the largest entry."""
        small = values.dtype == np.int8
        self.values = values
        self.signs = small and bool(values.all())
        sizes = np.ones(len(values)) if small else largest_entries(values)
        self.largest = float(sizes.max(initial=0.0)) if not small else 1.0
        self.sizes = sizes if small else sizes + _SHARED * self.largest

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[1])

    def margins(self, which: NDArray[np.int32], weights: Array) -> Array:
        return _kernels.dense_margins(self.values, which, weights, self.threads)

    def edges(self, which: NDArray[np.int32], point: RiskPoint) -> Array:
        if self.values.dtype == np.int8:
            lane = point.fixed.edge_lane
            sums = _kernels.dense_edges(self.values, self.signs, which, lane, self.threads)
            return sums.astype(np.float64) * point.fixed.edge_unit
        value, count, scale, unit = self._real(point, 0, self.largest)
        largest = max(float(value.max(initial=0.0)), -float(value.min(initial=0.0)))
        quick = scale * self.largest * largest < _QUICK
        sums = _kernels.dense_edges_real(self.values, which, value, count, scale, quick, self.threads)
        return sums.astype(np.float64) * unit

    def gram(self, left: NDArray[np.int32], which: NDArray[np.int32], point: RiskPoint) -> Array:
        if self.values.dtype == np.int8:
            lane = point.fixed.curvature_lane
            sums = _kernels.dense_gram(self.values, self.signs, left, which, lane, self.threads)
            return sums.astype(np.float64) * point.fixed.curvature_unit
        value, count, scale, unit = self._real(point, 1, self.largest**2)
        quick = scale * self.largest**2 * float(value.max(initial=0.0)) < _QUICK
        sums = _kernels.dense_gram_real(self.values, left, which, value, count, scale, quick, self.threads)
        return sums.astype(np.float64) * unit

    def squares(self, which: NDArray[np.int32], point: RiskPoint) -> Array:
        """The diagonal of the Gram matrix, without the rest of it."""
        every = np.arange(len(which), dtype=np.int32)
        if self.values.dtype == np.int8:
            lane = point.fixed.curvature_lane
            if self.signs:
                return np.full(len(which), float(lane.sum()) * point.fixed.curvature_unit)
            sums = _kernels.dense_edges(np.abs(self.values[which]), False, every, lane, self.threads)
            return sums.astype(np.float64) * point.fixed.curvature_unit
        value, count, scale, unit = self._real(point, 1, self.largest**2)
        quick = scale * self.largest**2 * float(value.max(initial=0.0)) < _QUICK
        squared = self.values[which] ** 2
        sums = _kernels.dense_edges_real(squared, every, value, count, scale, quick, self.threads)
        return sums.astype(np.float64) * unit

    def _real(
        self, point: RiskPoint, lane: int, largest: float
    ) -> tuple[Array, NDArray[np.int64] | None, float, float]:
        """Row weights for real columns: products are rounded, so the scale leaves room for the entries."""
        w = point.risk.weights
        value = point.rows[lane] if w.factor is None else point.rows[lane] * w.factor
        total = (point.derivative_sum, point.curvature_sum)[lane]
        scale = _kernels.fixed_scale(total * max(largest, 1e-300) * (1 + 1e-9), w.total_count)
        return value, w.count, scale, point.factor / scale / w.total


def least(slopes: Array, most: int) -> NDArray[np.int32]:
    """At most so many columns of least slope, the least first; infinite ones are left out."""
    if len(slopes) > most:
        near = np.argpartition(slopes, most - 1)[:most]
        near = near[np.lexsort((near, slopes[near]))]
    else:
        near = np.argsort(slopes, kind="stable")
    return near[: int(np.searchsorted(slopes[near], np.inf))].astype(np.int32)


class WholeStore:
    """All columns of a store by number."""

    estimates = False

    def __init__(self, store: ColumnStore) -> None:
        self.store, self.n_rows = store, store.n_rows
        self._every = np.arange(len(store), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.store)

    def choose(self, slopes: Array, most: int) -> NDArray[np.int32]:
        return least(slopes, most)

    def block(self, which: NDArray[np.int32]) -> StoreBlock:
        return StoreBlock(self.store, which)

    def every_edge(self, point: RiskPoint) -> Array:
        return self.store.edges(self._every, point)

    def margins(self, weights: Array) -> Array:
        used = np.flatnonzero(weights).astype(np.int32)
        return self.store.margins(used, np.ascontiguousarray(weights[used]))


@dataclass(frozen=True, eq=False)
class StoreBlock:
    """A few columns of a store."""

    store: ColumnStore
    which: NDArray[np.int32]

    def margins(self, weights: Array) -> Array:
        return self.store.margins(self.which, weights)

    def edges(self, point: RiskPoint) -> Array:
        return self.store.edges(self.which, point)

    def gram(self, point: RiskPoint) -> Array:
        return self.store.gram(self.which, self.which, point)

    def estimate(self, point: RiskPoint, slopes: Array) -> None:
        return None


class MatrixDictionary(Dictionary):
    """Every column of a given matrix; the search looks at all of them."""

    exact = True

    def __init__(self, columns: NDArray[Any], threads: int = 1) -> None:
        self.store = ColumnStore(columns, threads)

    def pool(self) -> MatrixPool:
        return MatrixPool(self.store)

    def best_columns(
        self,
        point: RiskPoint,
        k: int,
        exclude: ColumnPool,
        criterion: Criterion = "edge",
        l1: float | Array = 0.0,
        l2: float | Array = 0.0,
    ) -> Proposals:
        """The columns whose edge exceeds their price ``l1`` most."""
        assert isinstance(exclude, MatrixPool)
        unseen = np.ones(len(self.store), dtype=bool)
        unseen[exclude.which] = False
        candidates = np.flatnonzero(unseen).astype(np.int32)
        edges = self.store.edges(candidates, point)
        excess = edges - (l1[candidates] if isinstance(l1, np.ndarray) else l1)
        bound = float(edges.max(initial=-np.inf))
        best = np.argsort(-excess, kind="stable")[:k]
        return Proposals(candidates[best], edges[best], bound)

    def unseen_edges(self, point: RiskPoint, exclude: ColumnPool) -> Array:
        assert isinstance(exclude, MatrixPool)
        edges = self.store.edges(np.arange(len(self.store), dtype=np.int32), point)
        edges[exclude.which] = -np.inf
        return edges


class MatrixPool(ColumnPool):
    """Some of the columns of a store."""

    cheap_gram = True

    def __init__(self, store: ColumnStore, which: NDArray[np.int32] | None = None) -> None:
        self.store = store
        self.which = np.empty(0, dtype=np.int32) if which is None else np.asarray(which, dtype=np.int32)

    @property
    def n_columns(self) -> int:
        return len(self.which)

    @property
    def n_free(self) -> int:
        return 0

    @property
    def features(self) -> NDArray[np.int32]:
        return self.which

    @property
    def sizes(self) -> Array:
        return self.store.sizes[self.which]

    def append(self, atoms: NDArray[np.int32]) -> None:
        self.which = np.concatenate([self.which, np.asarray(atoms, dtype=np.int32)])

    def subset(self, columns: NDArray[np.intp]) -> MatrixPool:
        return MatrixPool(self.store, self.which[columns])

    def margins(self, weights: Array) -> Array:
        used = np.flatnonzero(weights)
        return self.store.margins(self.which[used], np.ascontiguousarray(weights[used]))

    def edges(self, point: RiskPoint) -> Array:
        return self.store.edges(self.which, point)

    def gram(self, point: RiskPoint, left: NDArray[np.intp] | None = None, exact: bool = False) -> Array:
        return self.store.gram(self.which if left is None else self.which[left], self.which, point)

    @property
    def lines(self) -> NDArray[Any]:
        """The columns one after the other; those of the store itself where the pool has all of them."""
        if np.array_equal(self.which, np.arange(len(self.store))):
            return self.store.values
        return self.store.values[self.which]

    def dense(self) -> NDArray[Any]:
        return self.lines.T


def _compact(columns: NDArray[Any]) -> NDArray[Any]:
    """int8 where every entry is -1, 0 or 1."""
    small = columns.size == 0 or (columns.min() >= -1 and columns.max() <= 1)
    if small and columns.dtype != np.int8:
        small = bool((columns == np.rint(columns)).all()) if columns.dtype.kind == "f" else True
    return np.ascontiguousarray(columns, dtype=np.int8 if small else np.float64)

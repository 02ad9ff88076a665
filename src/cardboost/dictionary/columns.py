"""Columns that are given as such, of classes with y multiplied in: int8 where entries allow, else float64.

Serves the solvers on plain matrices and stores the outputs of learners that are not stumps.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.dictionary.base import ColumnPool
from cardboost.problem.risk import RiskPoint

Array = NDArray[np.float64]
#: derivatives of rows, counts of rows, scale, and whether the sums fit a quicker way
RealRows = tuple[Array, NDArray[np.int64] | None, float, bool]
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
        return self._sums(self.values, which, point, 0)

    def gram(self, left: NDArray[np.int32], which: NDArray[np.int32], point: RiskPoint) -> Array:
        if self.values.dtype == np.int8:
            lane, unit = point.fixed.curvature_lane, point.fixed.curvature_unit
            sums = _kernels.dense_gram(self.values, self.signs, left, which, lane, self.threads)
        else:
            rows, unit = self._real(point, 1)
            sums = _kernels.dense_gram_real(self.values, left, which, *rows, self.threads)
        return sums.astype(np.float64) * unit

    def squares(self, which: NDArray[np.int32], point: RiskPoint) -> Array:
        """The diagonal of the Gram matrix, without the rest of it."""
        if self.signs:
            total = float(point.fixed.curvature_lane.sum())
            return np.full(len(which), total * point.fixed.curvature_unit)
        return self._sums(self.values[which] ** 2, np.arange(len(which), dtype=np.int32), point, 1)

    def _sums(
        self, values: NDArray[Any], which: NDArray[np.int32], point: RiskPoint, order: Literal[0, 1]
    ) -> Array:
        """Sums of columns times the first derivatives (order 0) of the rows, or the second (order 1)."""
        if values.dtype == np.int8:
            fixed = point.fixed
            lane = fixed.curvature_lane if order else fixed.edge_lane
            unit = fixed.curvature_unit if order else fixed.edge_unit
            sums = _kernels.dense_edges(values, self.signs, which, lane, self.threads)
        else:
            rows, unit = self._real(point, order)
            sums = _kernels.dense_edges_real(values, which, *rows, self.threads)
        return sums.astype(np.float64) * unit

    def _real(self, point: RiskPoint, order: Literal[0, 1]) -> tuple[RealRows, float]:
        """Derivatives of the rows for real columns, as the kernels take them, and the unit of the sums.

        Products are rounded, so the scale leaves room for the entries.
        """
        w, largest = point.risk.weights, self.largest ** (1 + order)
        value = point.rows[order] if w.factor is None else point.rows[order] * w.factor
        total = (point.derivative_sum, point.curvature_sum)[order]
        scale = _kernels.fixed_scale(total * max(largest, 1e-300) * (1 + 1e-9), w.total_count)
        largest_value = max(float(value.max(initial=0.0)), -float(value.min(initial=0.0)))
        quick = scale * largest * largest_value < _QUICK
        return (value, w.count, scale, quick), point.factor / scale / w.total


def spread(weights: Array, columns: NDArray[Any], n: int) -> Array:
    """Weights of some columns as weights of all ``n``, the others 0."""
    wide = np.zeros(n)
    wide[columns] = weights
    return wide


def least(slopes: Array, most: int) -> NDArray[np.int32]:
    """At most so many columns of least slope, the least first; infinite ones are left out."""
    if len(slopes) > most:
        near = np.argpartition(slopes, most - 1)[:most]
        near = near[np.lexsort((near, slopes[near]))]
    else:
        near = np.argsort(slopes, kind="stable")
    return near[: int(np.searchsorted(slopes[near], np.inf))].astype(np.int32)


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
    def features(self) -> NDArray[np.int32]:
        """Every column has its own."""
        return np.maximum(self.which - self.n_free, -1)

    @property
    def sizes(self) -> Array:
        return self.store.sizes[self.which]

    def append(self, atoms: Any) -> None:
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

    def dense(self) -> NDArray[Any]:
        """A view of the store where the pool has all of its columns."""
        whole = np.array_equal(self.which, np.arange(len(self.store)))
        return (self.store.values if whole else self.store.values[self.which]).T

    def estimate(self, point: RiskPoint, slopes: Array) -> None:
        """No Hessian from some of the rows: all of them cost little."""


class WholeStore(MatrixPool):
    """All columns of a store by number, as solvers on the simplex take them."""

    estimates = False

    def __init__(self, store: ColumnStore) -> None:
        super().__init__(store, np.arange(len(store), dtype=np.int32))
        self.n_rows = store.n_rows

    def __len__(self) -> int:
        return len(self.store)

    def choose(self, slopes: Array, most: int) -> NDArray[np.int32]:
        return least(slopes, most)

    def block(self, which: NDArray[np.int32]) -> MatrixPool:
        return MatrixPool(self.store, which)

    def every_edge(self, point: RiskPoint) -> Array:
        return self.edges(point)


def _compact(columns: NDArray[Any]) -> NDArray[Any]:
    """int8 where every entry is -1, 0 or 1."""
    small = columns.size == 0 or (columns.min() >= -1 and columns.max() <= 1)
    if small and columns.dtype != np.int8:
        small = bool((columns == np.rint(columns)).all()) if columns.dtype.kind == "f" else True
    return np.ascontiguousarray(columns, dtype=np.int8 if small else np.float64)

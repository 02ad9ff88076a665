"""Projected limited-memory BFGS over all columns at once, for l2 > 0.

With l2 > 0 the optimum may use hundreds of similar columns; a Newton step on them costs a large dense
factorisation. Here a step costs two products with the matrix. The steps themselves are one kernel; this
module holds its state between calls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.dictionary.columns import ColumnStore
from cardboost.dictionary.signs import SignMatrix
from cardboost.problem.prices import Prices
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]

_PAIRS = 60  # of steps and changes of the gradient that make up the metric
_ENDS = ("limit", "look", "precision")  # why the kernel returns, by its code


class ProjectedLbfgs:
    """Weights of all columns, from zero on, with their margins ``F`` and edges.

    A column and its opposite are one weight with a price and a limit on either side of zero: at an optimum
    no more than one of the two is in use.
    """

    def __init__(self, matrix: SignMatrix | ColumnStore, risk: EmpiricalRisk, prices: Prices) -> None:
        self.matrix, self.risk = matrix, risk
        if isinstance(matrix, SignMatrix):
            self._sides = matrix.sides
        else:
            columns = np.arange(len(prices), dtype=np.int32)
            self._sides = np.stack([columns, np.full_like(columns, -1)])
        self._open = self._sides >= 0
        n = self._sides.shape[1]
        self._l1, self._l2, self._limit = (
            np.where(self._open, price[self._sides], 0.0)
            for price in (prices.l1, prices.l2, prices.max_weight)
        )
        self._z, self.F, self._edges = np.zeros(n), np.zeros(risk.weights.n_rows), np.zeros(n)
        self._pairs = np.empty((2, _PAIRS, n))
        self._numbers, self._counts = np.zeros(2), np.zeros(4, dtype=np.int64)

    @property
    def x(self) -> Array:
        """The weight of every column."""
        return self._per_column(np.maximum(self._z, 0.0), np.maximum(-self._z, 0.0))

    @property
    def edges(self) -> Array:
        """The edge of every column."""
        return self._per_column(self._edges, -self._edges)

    def _per_column(self, plus: Array, minus: Array) -> Array:
        """One value per column from those of either side of zero."""
        values = np.empty(np.count_nonzero(self._open))
        for columns, present, side in zip(self._sides, self._open, (plus, minus), strict=True):
            values[columns[present]] = side[present]
        return values

    def advance(self, most: int, tol: float) -> tuple[str, Array]:
        """Take steps, the first point of all being the start.

        Parameters
        ----------
        most : int
            The most points.
        tol : float
            Relative duality gap at which to return.

        Returns
        -------
        end : str
            "limit" after ``most`` points, "look" where the gap seems to be at most ``tol`` or nothing was
            gained, "precision" where no step lowers the objective.
        records : array
            A row per point: objective, largest edge, weights in use, seconds.
        """
        matrix, w = self.matrix, self.risk.weights
        common = (
            self.risk.loss.code, w.count, w.factor, w.totals, self._l1, self._l2, self._limit, self._z,
            self.F, self._edges, self._pairs, self._numbers, self._counts, tol, most, self.risk.threads,
        )  # fmt: skip
        if isinstance(matrix, SignMatrix):
            end, points, records = _kernels.lbfgs_signs(matrix.by_column, matrix.by_row, *common)
        else:
            end, points, records = _kernels.lbfgs_dense(matrix.values, matrix.signs, matrix.largest, *common)
        return _ENDS[end], records[:points]

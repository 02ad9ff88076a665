"""The columns of a task by number, as solvers on the simplex know them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.path import BoostingPath
from cardboost.dictionary.base import Dictionary
from cardboost.dictionary.stump_store import StumpStore
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.master.simplex import Columns, DictionaryOracle, MatrixOracle, soft_point
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]


class NumberedColumns:
    """The columns of a dictionary by number, and the pool of those in use.

    Columns are generated on the way, and their number is their place in the pool.
    """

    def __init__(self, dictionary: Dictionary, risk: EmpiricalRisk) -> None:
        self.oracle: Any = DictionaryOracle(dictionary, risk)
        self.pool: Any = self.oracle.pool

    def start(self, radius: float, earlier: BoostingPath | None = None) -> tuple[Columns, Array]:
        """Columns and weights to begin with: those of an earlier model, or the best column alone."""
        none = np.empty(0, dtype=np.int32)
        _, point = self.oracle.at(none, np.empty(0))
        best = self.oracle.look(point, none, 1).new
        if len(best) == 0:
            raise ValueError("dictionary: no learner tells rows apart, and there is no intercept.")
        return best, np.array([radius])

    def weights(self, columns: Columns, weights: Array) -> Array:
        """Weights over the pool, into which new columns come."""
        full = np.zeros(self.pool.n_columns)
        full[columns] = weights
        return full

    def terms(self, columns: Columns) -> Columns:
        """Those of these columns that are not the intercept's."""
        return columns[columns >= self.pool.n_free]


class StumpNumbers(NumberedColumns):
    """All distinct stumps of a table by number; the intercept's columns come behind them."""

    def __init__(self, dictionary: StumpDictionary, risk: EmpiricalRisk) -> None:
        self.store = StumpStore(dictionary, risk.weights)
        self.oracle = MatrixOracle(self.store, risk)
        self.pool = dictionary.pool()
        self._index = {self.store.n_stumps + k: k for k in range(self.pool.n_free)}

    def start(self, radius: float, earlier: BoostingPath | None = None) -> tuple[Columns, Array]:
        store = self.store
        if earlier is not None:
            pool = store.dictionary.pool()
            weights = earlier.restart(pool)
            constants = store.n_stumps + np.arange(pool.n_free)
            numbers = np.append(constants, store.numbers(pool.stumps[pool.n_free :])).astype(np.int32)
            columns = np.unique(numbers)
            summed = np.bincount(np.searchsorted(columns, numbers), weights, len(columns))
            if summed.any():
                used = summed > 0
                return columns[used], summed[used] * (radius / summed.sum())
        if len(store) == 0:
            raise ValueError("X has no column that tells rows apart, and there is no intercept.")
        _, point = soft_point(self.oracle.risk, np.zeros(store.n_rows))
        best = int(np.argmin(self.oracle.every_slope(point)))
        return np.array([best], dtype=np.int32), np.array([radius])

    def weights(self, columns: Columns, weights: Array) -> Array:
        new = np.array([number for number in columns.tolist() if number not in self._index], dtype=np.int32)
        if len(new):
            first = self.pool.n_columns
            self._index.update(zip(new.tolist(), range(first, first + len(new)), strict=True))
            self.pool.append(self.store.stumps(new))
        full = np.zeros(self.pool.n_columns)
        full[[self._index[number] for number in columns.tolist()]] = weights
        return full

    def terms(self, columns: Columns) -> Columns:
        return columns[columns < self.store.n_stumps]

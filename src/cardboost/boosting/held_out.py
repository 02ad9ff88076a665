"""Rows that are not trained on: they say when further columns no longer help."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.dictionary.stumps import StumpPool
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]

#: columns without a better held-out loss after which generation ends: at least, and relative to the best size
PATIENCE, PATIENCE_SHARE = 10, 0.25


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Bins of the rows that were set aside, under the cuts of the others, and their risk."""

    bins: NDArray[np.uint8]
    risk: EmpiricalRisk

    def margins(self, pool: StumpPool, weights: Array) -> Array:
        """Of a model on these rows: scores times labels."""
        features, tables, base = pool.tables(weights)
        return _kernels.margins(self.bins, features, tables, base, self.risk.sign, self.risk.threads)

    def loss(self, pool: StumpPool, weights: Array) -> float:
        """The mean loss of a model on these rows."""
        return self.risk.evaluate(self.margins(pool, weights)).value


class EarlyStop:
    """Remembers the best stage and says when to give up on a better one."""

    def __init__(self, held_out: HeldOut) -> None:
        self.held_out = held_out
        self.losses: list[float] = []
        self.best = 0
        self._columns_at_best = 0

    def see(self, pool: StumpPool, weights: Array) -> bool:
        """Note one more stage; true when the best one lies far enough back."""
        self.losses.append(self.held_out.loss(pool, weights))
        columns = pool.n_columns - pool.n_free
        if self.losses[-1] < self.losses[self.best]:
            self.best, self._columns_at_best = len(self.losses) - 1, columns
        return columns - self._columns_at_best >= max(PATIENCE, PATIENCE_SHARE * self._columns_at_best)

"""Rows that are not trained on: they say when further rounds no longer help."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.dictionary.base import ColumnPool
from cardboost.dictionary.stumps import StumpPool
from cardboost.problem.risk import EmpiricalRisk
from cardboost.problem.trace import Status

Array = NDArray[np.float64]

#: columns without a lower held-out loss after which a run ends: at least so many ...
PATIENCE = 10
#: ... and at least this share of the columns at the lowest loss: long runs improve in longer intervals
PATIENCE_SHARE = 0.25


class EarlyStopping:
    """Remembers the round with the lowest held-out loss, and says when to give up on a lower one.

    Parameters
    ----------
    patience : int
        Columns without a lower loss after which the run ends.
    patience_share : float
        The same relative to the number of columns at the lowest loss; the larger of both counts.
    """

    def __init__(self, patience: int = PATIENCE, patience_share: float = PATIENCE_SHARE) -> None:
        self.patience, self.patience_share = patience, patience_share
        self.losses: list[float] = []
        self.best_round = 0
        self.n_columns_at_best = 0

    def see(self, loss: float, n_columns: int) -> bool:
        """Note the held-out loss of a model; true when the lowest one lies far enough back."""
        self.losses.append(loss)
        if len(self.losses) == 1 or loss < self.losses[self.best_round]:
            self.best_round, self.n_columns_at_best = len(self.losses) - 1, n_columns
        waited = n_columns - self.n_columns_at_best
        return waited >= max(self.patience, self.patience_share * self.n_columns_at_best)

    def status(self, loss: float | None, n_columns: int) -> Status | None:
        """:meth:`see` as a reason to stop."""
        return Status.VALIDATION if loss is not None and self.see(loss, n_columns) else None


@dataclass(frozen=True, eq=False)
class HeldOutBins:
    """Bins of the held-out rows, under the cuts of the training rows, and the risk over them."""

    bins: NDArray[np.uint8]
    risk: EmpiricalRisk

    def margins(self, pool: ColumnPool, weights: Array) -> Array:
        """Of a model on these rows: scores times labels."""
        assert isinstance(pool, StumpPool)
        features, tables, base = pool.tables(weights)
        return _kernels.margins(self.bins, features, tables, base, self.risk.sign, self.risk.threads)

    def loss(self, pool: ColumnPool, weights: Array) -> float:
        """The mean loss of a model on these rows."""
        return self.risk.evaluate(self.margins(pool, weights)).value


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Held-out rows as the user passed them, for learners that read them, and the risk over them."""

    X: object
    risk: EmpiricalRisk

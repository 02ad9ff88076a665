"""Choosing few columns of a pool: the problem.

min  sum s_i loss(F_i) + sum nu_j w_j + mu_j w_j^2 / 2 + lambda_j [w_j > 0],    0 <= w_j <= M_j,
with at most ``max_terms`` charged columns in use, and with :class:`FeatureLimits` at most so many features,
each paid for once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardboost.dictionary.base import ColumnPool
from cardboost.master.newton import Master
from cardboost.problem.prices import FeatureLimits, Prices
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]
Support = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class SelectionProblem:
    """Columns, loss, prices and the limits on charged columns and on features.

    ``groups``: the feature of every column, -1 for those that are not charged; needed with ``limits``.
    ``curved``: whether bounds may set curvature aside. ``distinct``: whether rows are merged already and
    columns stored (:func:`cardboost.selection.merge.merge_rows`).
    """

    pool: ColumnPool
    risk: EmpiricalRisk
    prices: Prices
    max_terms: int | None
    groups: NDArray[np.int32] | None = None
    limits: FeatureLimits | None = None
    curved: bool = True
    distinct: bool = False

    def __post_init__(self) -> None:
        if self.limits is not None and self.groups is None:
            raise ValueError("groups are needed with limits on features.")
        if self.groups is not None and ((self.groups >= 0) != self.prices.charged).any():
            raise ValueError("groups: the columns with a feature must be those that are charged.")

    def objective(self, risk_value: float, weights: Array) -> float:
        return risk_value + self.prices.cost(weights) + self.feature_cost(np.flatnonzero(weights))

    def feature_cost(self, columns: NDArray[np.intp]) -> float:
        """What the features of these columns cost together."""
        if self.limits is None or self.limits.costs is None or self.groups is None:
            return 0.0
        return self.limits.cost(self.groups[columns])

    def allows(self, columns: NDArray[np.intp]) -> bool:
        """Whether these columns may be in use together."""
        if self.max_terms is not None and np.count_nonzero(self.prices.charged[columns]) > self.max_terms:
            return False
        return self.limits is None or self.groups is None or self.limits.allow(self.groups[columns])

    def with_box(self, max_weight: float) -> SelectionProblem:
        """The same with no charged weight above ``max_weight``."""
        p = self.prices
        box = np.where(p.charged, np.minimum(p.max_weight, max_weight), p.max_weight)
        return replace(self, prices=replace(p, max_weight=box))

    def part(self, columns: NDArray[np.intp]) -> SelectionProblem:
        """The same with these columns only."""
        groups = None if self.groups is None else self.groups[columns]
        return replace(
            self, pool=self.pool.subset(columns), prices=self.prices[columns], groups=groups, distinct=False
        )

    def refit_prices(self, support: Support) -> Prices:
        """Convex prices under which only these charged columns (and the free ones) may be used."""
        p = self.prices
        allowed = ~p.charged
        allowed[support] = True
        return replace(p.convex(), max_weight=np.where(allowed, p.max_weight, 0.0))

    def master(self) -> Master:
        return Master(self.pool, self.risk, lambda pool: self.prices.convex())

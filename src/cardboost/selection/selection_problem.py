"""The problem of choosing few columns of a pool, and what every search hands to the next one.

min  sum s_i loss(F_i) + sum nu_j w_j + mu_j w_j^2 / 2 + lambda_j [w_j > 0],    0 <= w_j <= M_j,
with at most ``max_terms`` charged columns in use, and with :class:`FeatureLimits` at most so many features,
each paid for once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cardboost.dictionary.base import ColumnPool
from cardboost.master.newton import Master
from cardboost.problem.bound import Leaf
from cardboost.problem.prices import FeatureLimits, Prices
from cardboost.problem.risk import EmpiricalRisk, RiskPoint

if TYPE_CHECKING:  # parts of a result, which their searches define
    from cardboost.selection.qubo import SamplingRecord
    from cardboost.selection.relaxation import Relaxation
    from cardboost.selection.tabu import TabuRecord

Array = NDArray[np.float64]
Support = NDArray[np.intp]
Result = TypeVar("Result", bound=Any)


@dataclass(frozen=True, eq=False)
class Incumbent:
    """A support with its refitted weights (over all columns) and true objective."""

    support: Support
    weights: Array
    objective: float

    @property
    def key(self) -> tuple[int, ...]:
        """The support as something to look up."""
        return tuple(self.support.tolist())


def best_of(results: Iterable[Result]) -> Result:
    """The first of these, incumbents or other results with an objective, whose objective is least."""
    return min(results, key=lambda result: result.objective)


def require(refusal: str | None) -> None:
    """Raise what a selector's ``accepts(problem)`` says against a problem."""
    if refusal is not None:
        raise ValueError(refusal)


@dataclass(frozen=True, eq=False)
class SelectionProblem:
    """Columns, loss, regularisation and the limits on charged columns and on features.

    Parameters
    ----------
    pool : ColumnPool
        The candidate columns.
    risk : EmpiricalRisk
        Loss and row weights.
    prices : Prices
        l1, l2, l0 and the box of every column, and which columns are charged.
    max_terms : int or None
        The most charged columns in use.
    groups : array of int or None
        The feature of every column, -1 for columns that are not charged; needed with ``limits``.
    limits : FeatureLimits or None
        Limit on the number of features, and their costs.
    curved : bool
        Whether bounds may use curvature (kernels/nodes.h).
    distinct : bool
        Whether rows are merged already and columns stored: see :func:`.merge.merge_rows`.
    """

    pool: ColumnPool
    risk: EmpiricalRisk
    prices: Prices
    max_terms: int | None
    groups: NDArray[np.int32] | None = None
    limits: FeatureLimits | None = None
    curved: bool = True
    distinct: bool = False

    @cached_property
    def usable(self) -> Support:
        """The charged columns that may have a weight."""
        return np.flatnonzero(self.prices.charged & (self.prices.max_weight > 0))

    def point(self, weights: Array) -> RiskPoint:
        """The risk at these weights, with its row weights."""
        return self.risk.evaluate(self.pool.margins(weights))

    def objective(self, risk_value: float, weights: Array) -> float:
        """The objective, given the risk at these weights."""
        return risk_value + self.prices.cost(weights) + self.feature_cost(np.flatnonzero(weights))

    def objective_of(self, weights: Array) -> float:
        """The objective, recomputed from the weights alone."""
        return self.objective(self.point(weights).value, weights)

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

    def master(self) -> Master:
        """The convex problem over all columns, from weights 0."""
        return Master(self.pool, self.risk, lambda pool: self.prices.convex())


@dataclass(frozen=True, eq=False)
class Selection:
    """The result of a search: the best choice of columns, and how much better any choice can be.

    Parameters
    ----------
    problem : SelectionProblem
        The problem over distinct rows, with the box that the bound holds for.
    incumbent : Incumbent
        The best choice.
    lower_bound : float
        No choice within the box has a lower objective; -inf where nothing was proven.
    status : str
        "optimal", "node limit" or "time limit", or "feasible" where no proof was attempted.
    leaves : tuple of Leaf
        They cover all choices, and their bounds prove the lower bound. Those of the first nodes only where
        there would be too many: then ``lower_bound``, that of the whole search, is more than they prove.
    centre : array or None
        The weights from which the caps of margins follow that leaves with a curve rely on.
    nodes, open_nodes : int
        Nodes of exact search, and how many of them are not closed.
    root : Relaxation or None
        The relaxation of the root; None where a few nodes after a quick choice were enough.
    sampling, tabu : SamplingRecord or None, TabuRecord or None
        What a sampler and tabu search did.
    """

    problem: SelectionProblem
    incumbent: Incumbent
    lower_bound: float = -math.inf
    status: str = "feasible"
    leaves: tuple[Leaf, ...] = ()
    centre: Array | None = None
    nodes: int = 0
    open_nodes: int = 0
    root: Relaxation | None = None
    sampling: SamplingRecord | None = None
    tabu: TabuRecord | None = None

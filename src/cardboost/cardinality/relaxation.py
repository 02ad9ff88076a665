"""The convex relaxation of a cardinality problem and the bound it proves.

A limit of k columns enters through its multiplier tau, which raises the price of using a column; for every
row weights met on the way the bound with "the k largest terms" holds, and the best one is kept. The price of
a feature, its cost and the multiplier sigma of a limit on features, is split among its columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardboost.cardinality.merge import merge_rows, sketch_rows
from cardboost.cardinality.problem import CardinalityProblem
from cardboost.certificate.bounds import Leaf, dual_bound
from cardboost.dictionary.base import Dictionary, Proposals
from cardboost.master.newton import Master
from cardboost.master.problem import PriceRule, Prices
from cardboost.risk import RiskPoint

Array = NDArray[np.float64]

_TOL = 1e-7
_PATIENCE = 6  # rounds without a better bound before giving up
_BALANCING = 24  # steps of the multipliers of a limit on features


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The best leaf found for the root, the relaxed weights and the multipliers of the limits.

    ``tau`` is that of the terms, ``sigma`` of the features, ``split`` how columns share the price of theirs.
    """

    leaf: Leaf
    weights: Array
    tau: float
    sigma: float
    split: Array


class RelaxationSolver:
    """Solves the relaxation for a pool that may grow. With a ``dictionary`` every bound covers all of it."""

    def __init__(
        self,
        problem: CardinalityProblem,
        start: Array | None = None,
        dictionary: Dictionary | None = None,
        rule: PriceRule | None = None,
        per_round: int = 8,
        late: Callable[[], bool] = lambda: False,
    ) -> None:
        self.problem = problem
        self.late = late
        self.dictionary, self.rule, self.per_round = dictionary, rule, per_round
        self.tau = self.sigma = 0.0
        self.split = np.zeros(0)
        self._steps = 0
        self.best = Leaf(np.zeros(problem.pool.n_columns), 0.0, 0.0)
        self.proposals: Proposals | None = None
        self.master = Master(problem.pool, problem.risk, lambda pool: self._prices())
        if start is not None:
            self.master.move_to(np.minimum(start, self.master.prices.max_weight))

    def _plain(self) -> Prices:
        pool = self.problem.pool
        return self.problem.prices if self.rule is None else self.rule.prices(pool.n_columns, pool.n_free)

    def _groups(self) -> NDArray[np.int32] | None:
        if self.problem.limits is None or self.rule is None:
            return self.problem.groups
        return self.problem.pool.features

    def _prices(self) -> Prices:
        plain = self._plain()
        l0 = plain.l0 + np.where(plain.charged, self.tau, 0.0)
        if self.problem.limits is not None:
            l0 += self._feature_prices() * self._shared(self.split)
        return plain.with_l0(l0)

    def _feature_prices(self) -> Array:
        """What the feature of each column costs, with the multiplier of the limit."""
        limits, groups = self.problem.limits, self._groups()
        assert limits is not None
        assert groups is not None
        costs = 0.0 if limits.costs is None else limits.costs[np.maximum(groups, 0)]
        return np.where(groups >= 0, self.sigma + costs, 0.0)

    def _shared(self, split: Array) -> Array:
        """Shares that add up to 1 in every feature; columns that are new take an even part."""
        groups = self._groups()
        assert groups is not None
        charged = groups >= 0
        own = groups[charged]
        count = np.bincount(own)
        share = 1.0 / np.maximum(1, count[np.maximum(groups, 0)]) if len(own) else np.ones(len(groups))
        share[: len(split)] = np.maximum(split, 1e-4 * share[: len(split)])
        total = np.bincount(own, share[charged])
        share[charged] /= total[own]
        return np.where(charged, share, 0.0)

    def _solve(self, tau: float) -> float:
        """Relaxed weights at this multiplier; returns by how much they exceed the size limit."""
        self.tau = tau
        self.master.reprice(lambda pool: self._prices())
        self.master.solve(tol=_TOL, max_iter=60)
        self._note()
        k = self.problem.max_terms
        return -1.0 if k is None else float(np.sum(self._shares())) - k

    def _shares(self) -> Array:
        """How far each charged column is in use, from 0 to 1, in the relaxed solution."""
        p, w = self.master.prices, self.master.weights
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(p.knee > 0, np.minimum(1.0, w / np.where(p.knee > 0, p.knee, 1.0)), w > 0)
        return np.where(p.charged, share, 0.0)

    def _note(self) -> None:
        """Keep the bound at the present row weights if it is the best so far."""
        bound, theta = self._bound_at(self.master.point)
        if bound > self.best.bound:
            self.best = Leaf(self.master.weights.copy(), theta, bound)

    def _bound_at(self, point: RiskPoint) -> tuple[float, float]:
        problem, pool = self.problem, self.problem.pool
        unseen_edge: float | Array = -np.inf
        unseen = None
        if self.dictionary is not None and self.rule is not None:
            self.proposals = self.dictionary.best_columns(
                point, self.per_round, pool, "edge", self.rule.l1, 0.0
            )
            unseen_edge, unseen = self.proposals.bound, self.rule.prices(1, 0)
            if problem.limits is not None:
                unseen_edge = self.dictionary.unseen_edges(point, pool)
        return dual_bound(
            point, pool.edges(point), self._plain(), problem.max_terms, unseen_edge, unseen,
            self._groups(), problem.limits,
        )  # fmt: skip

    def solve(self, rounds: int = 14) -> None:
        """Find the multiplier at which the relaxed weights just meet the size limit."""
        excess = self._solve(self.tau)
        if excess > 0:
            low, high = self.tau, max(2 * self.tau, 1e-4)
            while not self.late() and self._solve(high) > 0 and high < 1e6:
                low, high = high, 4 * high
        elif self.tau > 0:
            low, high = self.tau / 4, self.tau
            while not self.late() and low > 1e-12 and self._solve(low) <= 0:
                low, high = low / 4, low
        else:
            low = high = 0.0
        for _ in range(rounds):
            if high - low <= 1e-3 * high or self.late():
                break
            middle = float(np.sqrt(low * high)) if low > 0 else high / 4
            if self._solve(middle) > 0:
                low = middle
            else:
                high = middle

    def like(self, other: Relaxation) -> None:
        """Take over the multipliers of a similar problem."""
        self.tau, self.sigma, self.split = other.tau, other.sigma, other.split
        self._steps = _BALANCING

    def balance(self, steps: int) -> None:
        """All multipliers at once, for limits on features.

        Exponentiated gradient ascent: what is used too much gets dearer, and of the columns of a feature
        those that are in use most come to carry its price.
        """
        limits, k = self.problem.limits, self.problem.max_terms
        assert limits is not None
        f, stale = limits.max_features, 0
        if f is not None and self.sigma == 0.0:
            self.sigma = max(self.tau, 1e-4)
        for _ in range(steps):
            before = self.best.bound
            self._solve(self.tau)
            stale = stale + 1 if self.best.bound <= before + 1e-4 * abs(before) else 0
            if self.late() or stale >= _PATIENCE - 2:
                break
            groups, used = self._groups(), self._shares()
            assert groups is not None
            self._steps += 1
            step = self._steps**-0.3
            split = self._shared(self.split)
            if f is not None:
                self.sigma *= math.exp(step * _pull(float(np.sum(used * split)), f))
            if k is not None:
                self.tau = max(self.tau, 1e-9) * math.exp(step * _pull(float(np.sum(used)), k))
            most = np.zeros(int(groups.max(initial=0)) + 1)
            np.maximum.at(most, np.maximum(groups, 0), used)
            own = most[np.maximum(groups, 0)]
            relative = np.where(own > 0, used / np.where(own > 0, own, 1.0), 1.0)
            self.split = split * np.exp(0.5 * step * (relative - 1.0))

    def grow(self) -> bool:
        """Add the columns last proposed by the dictionary; False when none could lower the bound."""
        found = self.proposals
        if found is None or self.rule is None or len(found) == 0 or found.bound <= self.rule.l1:
            return False
        self.problem.pool.append(found.atoms)
        self.master.extend()
        return True

    def result(self) -> Relaxation:
        """The best leaf, with its bound over the pool as it is now."""
        pool, best = self.problem.pool, self.best
        if len(best.weights) < pool.n_columns:
            weights = np.concatenate([best.weights, np.zeros(pool.n_columns - len(best.weights))])
            best = replace(best, weights=weights)
            if best.theta > 0:
                bound, theta = self._bound_at(self.problem.risk.evaluate(pool.margins(weights)))
                best = Leaf(weights, theta, bound)
        split = self.split if self.problem.limits is None else self._shared(self.split)
        return Relaxation(best, self.master.weights.copy(), self.tau, self.sigma, split)


def _pull(used: float, limit: int) -> float:
    """By how much a multiplier is to change: the share by which the limit is exceeded, within reason."""
    if limit == 0:
        return 2.0 if used > 0 else 0.0
    return min(max((used - limit) / limit, -1.0), 2.0)


def pool_relaxation(
    problem: CardinalityProblem, start: Array | None = None, late: Callable[[], bool] = lambda: False
) -> Relaxation:
    """The root bound over the columns of the pool.

    On large tables the multiplier is found on some of the rows; the bound itself is always over all of them.
    """
    merged = merge_rows(problem)
    smaller = sketch_rows(merged)
    solver = RelaxationSolver(smaller, start, late=late)
    solver.solve()
    if problem.limits is not None:
        solver.balance(_BALANCING)
    if smaller is not merged:
        found = solver
        solver = RelaxationSolver(merged, found.master.weights, late=late)
        solver.like(found.result())
        if problem.limits is None:
            solver.solve(rounds=2)
        else:
            solver.balance(4)
    return solver.result()


def dictionary_relaxation(
    problem: CardinalityProblem,
    dictionary: Dictionary,
    rule: PriceRule,
    start: Array,
    rounds: int,
    late: Callable[[], bool] = lambda: False,
) -> Relaxation:
    """The root bound over the whole dictionary: columns are added to ``problem.pool`` while that helps."""
    solver = RelaxationSolver(problem, start, dictionary, rule, late=late)
    solver.solve()
    stale = 0
    for _ in range(rounds):
        before = solver.best.bound
        if late() or stale >= _PATIENCE or not solver.grow():
            break
        excess = solver._solve(solver.tau)
        if stale or abs(excess) > 0.1 * (problem.max_terms or 1):
            solver.solve(rounds=3)
        stale = stale + 1 if solver.best.bound <= before + 1e-4 * abs(before) else 0
    # without max_terms and l0 unseen columns may not gain anything, whatever their features cost
    balanced = problem.limits is None or (problem.max_terms is None and rule.l0 == 0.0)
    stale = 0
    while not balanced and stale < _PATIENCE - 2 and not late():
        before = solver.best.bound
        solver.balance(3)
        balanced = not solver.grow()
        stale = stale + 1 if solver.best.bound <= before + 1e-4 * abs(before) else 0
    return solver.result()

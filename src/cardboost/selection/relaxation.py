"""The convex relaxation of a cardinality problem and the bound it proves.

A limit of k columns enters through its multiplier tau, which raises the price of using a column; for every
row weights met on the way the bound with "the k largest terms" holds, and the best one is kept. What is found
at one multiplier limits what any other can give, so the search for the best one knows when to end. The price
of a feature, its cost and the multiplier sigma of a limit on features, is split among its columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardboost.dictionary.base import Dictionary, Proposals
from cardboost.master.newton import Master
from cardboost.problem.bound import Leaf, dual_bound
from cardboost.problem.prices import PriceRule, Prices
from cardboost.problem.risk import RiskPoint
from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.selection_problem import SelectionProblem

Array = NDArray[np.float64]

_TOL = 1e-10  # gap, as a share of the bound, at which a search for the multiplier ends
_FAR_TOL = 1e-5  # gap of the relaxation while the multiplier is far from its best value
_GROWTH_TOL = 1e-7  # gap that will do while columns are added
_ROUNDS = 40  # multipliers tried at most
_LEAST = 1e-6  # least multiplier tried besides 0
_STRIDE = 16.0  # largest ratio of one multiplier to the next
_PATIENCE = 6  # rounds without a better bound before giving up
_GROWTHS = 100  # rounds of new columns at most; the bound is closed after about ten
_MANY = 256  # columns, beyond which the relaxation is solved over those that it uses
_JOINING = 64  # columns that join them at a time
_BALANCING_WORK = 300  # Newton steps after which a limit on features is balanced no further
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


@dataclass(frozen=True)
class Tangent:
    """The relaxation at a multiplier. Its optimum less k tau is concave in tau, and nowhere above this line,
    whatever the weights: their relaxed price is concave in tau too.

    ``excess``, the slope: the shares of the charged columns in use, less k. ``proven``: a lower bound of the
    optimum less k tau at this multiplier.
    """

    tau: float
    value: float
    excess: float
    proven: float

    def crossing(self, other: Tangent) -> tuple[float, float]:
        """Where a rising and a falling line meet: multiplier and value."""
        below = other.value + other.excess * (self.tau - other.tau) - self.value
        ahead = below / (self.excess - other.excess)
        return self.tau + ahead, self.value + self.excess * ahead


class RelaxationSolver:
    """Solves the relaxation for a pool that may grow. With a ``dictionary`` every bound covers all of it."""

    def __init__(
        self,
        problem: SelectionProblem,
        start: Array | None = None,
        dictionary: Dictionary | None = None,
        rule: PriceRule | None = None,
        per_round: int = 8,
        tau: float = 0.0,
        late: Callable[[], bool] = lambda: False,
    ) -> None:
        self.problem = problem
        self.late = late
        self.dictionary, self.rule, self.per_round = dictionary, rule, per_round
        self.tau, self.sigma = tau, 0.0
        self.split = np.zeros(0)
        self._steps = 0
        self.best = Leaf(np.zeros(problem.pool.n_columns), 0.0, 0.0)
        self.work = 0  # Newton steps so far
        self.ceiling = np.inf  # no bound that covers the pool can be above
        self.proposals: Proposals | None = None
        self.master = Master(problem.pool, problem.risk, lambda pool: self._prices())
        if start is not None:
            self.master.move_to(np.minimum(start, self.master.prices.max_weight))
        self._start_value = self.master.objective

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

    def at(self, tau: float, tol: float) -> Tangent:
        """Solve the relaxation at this multiplier and note the bound."""
        self.tau = tau
        self.master.reprice(lambda pool: self._prices())
        found = self.master.solve(tol=tol, max_iter=60, late=self.late)
        self.work += found.n_iter
        self._note()
        k = self.problem.max_terms
        if k is None:
            return Tangent(tau, found.objective, -1.0, found.lower_bound)
        excess = float(np.sum(self._shares())) - k
        return Tangent(tau, found.objective - k * tau, excess, found.lower_bound - k * tau)

    def _shares(self) -> Array:
        """How far each charged column is in use, from 0 to 1, in the relaxed solution."""
        p, w = self.master.prices, self.master.weights
        # a knee at the box stays there however small the price is
        knee = np.where(p.l2 > 0, p.knee, p.max_weight)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(knee > 0, np.minimum(1.0, w / knee), w > 0)
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
            self._groups(), problem.limits, pool.sizes,
        )  # fmt: skip

    def solve(self, tol: float = _TOL, rounds: int = _ROUNDS, at: Tangent | None = None) -> None:
        """Find the multiplier with the largest bound: there the relaxed weights just meet the size limit.

        Ends when no multiplier can raise the bound by more than ``tol`` of it. ``at``: the relaxation at the
        present multiplier, if that has been solved.
        """
        far = tol if self.problem.max_terms is None else max(tol, _FAR_TOL)
        low: Tangent | None = None  # the last line that rises
        high: Tangent | None = None  # and the last that falls
        gap, proven, stride, within = np.inf, -np.inf, 1.0, far
        for _ in range(rounds):
            at = self.at(self.tau, far) if at is None else at
            low, high = (at, high) if at.excess > 0 else (low, at)
            if high is not None and high.tau == 0.0:
                tau, ceiling = 0.0, high.value
            elif low is not None and high is not None:
                tau, ceiling = low.crossing(high)
            else:
                (tau, stride), ceiling = self._beyond(at, stride), np.inf
            self.ceiling, proven = min(self.ceiling, ceiling), max(proven, at.proven)
            last, gap = gap, ceiling - proven
            if gap <= tol * abs(proven) or (gap >= last and within <= tol) or self.late():
                return
            if low is not None and high is not None:
                if gap <= 0.5 * last:
                    tau = self._between(low, high, tau)
                tau = float(np.clip(tau, low.tau, high.tau))
            within = float(np.clip(0.1 * gap / max(abs(proven), 1e-300), tol, far))
            at = self.at(tau, within)

    def _beyond(self, at: Tangent, stride: float) -> tuple[float, float]:
        """A multiplier that is likely beyond the best one, and how many times larger or smaller it is."""
        if at.tau == 0.0:
            # a guess: twice as far as where the line reaches the objective of the start
            return max(2.0 * (self._start_value - at.value) / at.excess, _LEAST), stride
        k = self.problem.max_terms or 0
        shares = at.excess + k
        ratio = max(shares, k) / max(min(shares, k), 1e-100)
        stride = min(max(ratio * ratio, stride * stride), _STRIDE)
        if at.excess > 0:
            return at.tau * stride, stride
        return (at.tau / stride if stride < _STRIDE else 0.0), stride

    def _between(self, low: Tangent, high: Tangent, otherwise: float) -> float:
        """The best multiplier if the shares in use are a power of it."""
        k = self.problem.max_terms or 0
        if k == 0 or low.tau == 0.0 or high.excess + k <= 0:
            return otherwise
        above, below = np.log1p(low.excess / k), np.log1p(high.excess / k)
        return float(low.tau * (high.tau / low.tau) ** (above / (above - below)))

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
            self.at(self.tau, _GROWTH_TOL)
            stale = stale + 1 if self.best.bound <= before + 1e-4 * abs(before) else 0
            if self.late() or stale >= _PATIENCE - 2 or self.work > _BALANCING_WORK:
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
    problem: SelectionProblem, start: Array | None = None, late: Callable[[], bool] = lambda: False
) -> Relaxation:
    """The root bound over the columns of the pool.

    On large tables the multiplier is found on some of the rows; the bound itself is always over all of them.
    """
    merged = merge_rows(problem)
    if problem.limits is None and problem.pool.n_columns > _MANY:
        return _wide_relaxation(merged, np.zeros(len(problem.prices)) if start is None else start, late)
    smaller = sketch_rows(merged)
    solver = RelaxationSolver(smaller, start, late=late)
    if smaller is not merged:
        solver.solve(_GROWTH_TOL)
        if problem.limits is not None:
            solver.balance(_BALANCING)
        found = solver.result()
        solver = RelaxationSolver(merged, found.weights, tau=found.tau, late=late)
        solver.like(found)
    if problem.limits is None or smaller is merged:
        solver.solve()
    if problem.limits is not None:
        solver.balance(4 if smaller is not merged else _BALANCING)
    return solver.result()


def _wide_relaxation(merged: SelectionProblem, start: Array, late: Callable[[], bool]) -> Relaxation:
    """The same for many columns: solved over those that the relaxation uses, which others join while their
    edge exceeds their price. The bound is always over all of them."""
    prices, k = merged.prices, merged.max_terms
    inside = (start > 0) | ~prices.charged
    weights, tau = np.minimum(start, prices.max_weight), 0.0
    best = Leaf(np.zeros(len(prices)), 0.0, 0.0)
    edges, dear = merged.pool.edges(merged.risk.evaluate(merged.pool.margins(weights))), prices.l1
    for _ in range(_ROUNDS):
        lacking = np.flatnonzero(~inside & (prices.max_weight > 0) & (edges > dear + 1e-9 * np.abs(dear)))
        order = np.argsort(dear[lacking] - edges[lacking], kind="stable")
        inside[lacking[order[:_JOINING]]] = True
        columns = np.flatnonzero(inside)
        solver = RelaxationSolver(merged.part(columns), weights[columns], tau=tau, late=late)
        solver.solve(_TOL if len(lacking) == 0 else _GROWTH_TOL)
        found = solver.result()
        tau, weights = found.tau, np.zeros(len(prices))
        weights[columns] = found.leaf.weights
        point = merged.risk.evaluate(merged.pool.margins(weights))
        edges = merged.pool.edges(point)
        bound, theta = dual_bound(point, edges, prices, k, sizes=merged.pool.sizes)
        if bound > best.bound:
            best = Leaf(weights.copy(), theta, bound)
        weights[columns] = found.weights
        dear = prices.with_l0(prices.l0 + np.where(prices.charged, tau, 0.0)).slope
        if late() or len(lacking) == 0:
            break
    return Relaxation(best, weights, tau, 0.0, np.zeros(0))


def dictionary_relaxation(
    problem: SelectionProblem,
    dictionary: Dictionary,
    rule: PriceRule,
    root: Relaxation,
    late: Callable[[], bool] = lambda: False,
) -> Relaxation:
    """The root bound over the whole dictionary: columns are added to ``problem.pool`` while that helps.

    ``root``: the relaxation over the pool, where the search starts.
    """
    solver = RelaxationSolver(problem, root.weights, dictionary, rule, tau=root.tau, late=late)
    at, stale = solver.at(root.tau, _GROWTH_TOL), 0
    for _ in range(_GROWTHS):
        before = solver.best.bound
        # the multiplier is left alone while unseen columns cost more than it is likely to
        if stale or at.tau == 0.0 or abs(at.excess) * at.tau >= at.value - before:
            solver.solve(_GROWTH_TOL, 5, at)
        closed = solver.best.bound >= (1.0 - _GROWTH_TOL) * solver.ceiling
        if closed or late() or stale >= _PATIENCE or not solver.grow():
            break
        at = solver.at(solver.tau, _GROWTH_TOL)
        stale = stale + 1 if solver.best.bound <= before + 1e-4 * abs(before) else 0
    # without max_terms and l0 unseen columns may not gain anything, whatever their features cost
    balanced = problem.limits is None or (problem.max_terms is None and rule.l0 == 0.0)
    stale = 0
    if not balanced:
        solver.like(root)
    while not balanced and stale < _PATIENCE - 2 and solver.work <= _BALANCING_WORK and not late():
        before = solver.best.bound
        solver.balance(3)
        balanced = not solver.grow()
        stale = stale + 1 if solver.best.bound <= before + 1e-4 * abs(before) else 0
    return solver.result()

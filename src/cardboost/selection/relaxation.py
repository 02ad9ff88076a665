"""The convex relaxation of a selection problem and the bound it proves.

A limit of k columns enters through its multiplier tau, which raises the price of using a column; for all row
weights on the way the bound with "the k largest terms" holds, and the best one is kept. The solution at one
multiplier limits the bound at any other, so the search for the best one knows when to end. The price of a
feature, its cost plus the multiplier sigma of a limit on features, is split among its columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardboost.dictionary.base import Dictionary, Proposals, Scoring
from cardboost.dictionary.columns import spread
from cardboost.master.newton import Master
from cardboost.problem.bound import Leaf, dual_bound
from cardboost.problem.budget import Late, never
from cardboost.problem.prices import PriceRule, Prices
from cardboost.problem.risk import RiskPoint
from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.selection_problem import Array, SelectionProblem

_TOL = 1e-10  # gap, as a share of the bound, at which a search for the multiplier ends
_FAR_TOL = 1e-5  # gap of the relaxation while the multiplier is far from its best value
_GROWTH_TOL = 1e-7  # gap that will do while columns are added
_ROUNDS = 40  # multipliers at most
_LEAST = 1e-6  # the least multiplier besides 0
_STRIDE = 16.0  # largest ratio of one multiplier to the next
_PATIENCE = 6  # rounds of new columns without a better bound before giving up
_BALANCING_PATIENCE = 4  # the same for steps that balance a limit on features
_STALE = 1e-4  # share of the bound that a round must gain
_COLUMNS_PER_ROUND = 8  # that the dictionary proposes
_GROWTHS = 100  # rounds of new columns at most; the bound is closed after about ten
_GROWTH_WORK = 1500  # Newton steps after which no columns are added; twelve real tables take up to 520
_MANY_COLUMNS = 256  # beyond them, the relaxation is solved over the columns that it uses
_JOINING = 64  # columns that join these at a time
_BALANCING_WORK = 300  # Newton steps after which a limit on features is balanced no further
_BALANCING = 24  # steps of the multipliers of a limit on features
_REBALANCING = 4  # the same on all rows, after balancing on some of them


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The best leaf for the root, the relaxed weights and the multipliers of the limits.

    ``tau`` is that of the limit on terms, ``sigma`` of that on features, ``split`` the share of every column
    in the price of its feature.
    """

    leaf: Leaf
    weights: Array
    tau: float
    sigma: float
    split: Array


@dataclass(frozen=True)
class Tangent:
    """The relaxation at a multiplier tau: its optimum less k tau is concave in tau, and this its tangent.

    It lies nowhere below the optimum, whatever the weights: their relaxed price is concave in tau too.
    ``excess``, the slope: the shares of the charged columns in use, less k. ``proven``: a lower bound of the
    optimum less k tau at this multiplier.
    """

    tau: float
    value: float
    excess: float
    proven: float

    def crossing(self, other: Tangent) -> tuple[float, float]:
        """Where a rising and a falling tangent meet: multiplier and value."""
        below = other.value + other.excess * (self.tau - other.tau) - self.value
        ahead = below / (self.excess - other.excess)
        return self.tau + ahead, self.value + self.excess * ahead


class RelaxationSolver:
    """Solves the relaxation for a pool that may grow. With a ``dictionary`` every bound covers all of it."""

    def __init__(
        self, problem: SelectionProblem, start: Array | None = None, dictionary: Dictionary | None = None,
        rule: PriceRule | None = None, tau: float = 0.0, late: Late = never,
    ) -> None:  # fmt: skip
        self.problem, self.dictionary, self.rule, self.late = problem, dictionary, rule, late
        self.tau, self.sigma, self.split = tau, 0.0, np.zeros(0)
        self._balancing_steps = 0
        self.best = Leaf(np.zeros(problem.pool.n_columns), 0.0, 0.0)
        self.work = 0  # Newton steps so far
        self.ceiling = np.inf  # no bound that covers the pool can be above
        self.proposals: Proposals | None = None
        self.master = Master(problem.pool, problem.risk, lambda pool: self._prices())
        if start is not None:
            self.master.move_to(np.minimum(start, self.master.prices.max_weight))
        self._start_value = self.master.objective

    def _plain(self) -> Prices:
        """Prices without multipliers."""
        pool = self.problem.pool
        return self.problem.prices if self.rule is None else self.rule.prices(pool.n_columns, pool.n_free)

    def _groups(self) -> NDArray[np.int32]:
        """The feature of every column of the pool as it is now, where features are limited."""
        groups = self.problem.groups if self.rule is None else self.problem.pool.features
        assert groups is not None
        return groups

    def _prices(self) -> Prices:
        """Prices with the multipliers."""
        plain, limits = self._plain(), self.problem.limits
        l0 = plain.l0 + np.where(plain.charged, self.tau, 0.0)
        if limits is not None:
            groups = self._groups()
            costs = 0.0 if limits.costs is None else limits.costs[np.maximum(groups, 0)]
            l0 += np.where(groups >= 0, self.sigma + costs, 0.0) * self._normalised_split()
        return plain.with_l0(l0)

    def _normalised_split(self) -> Array:
        """Shares that add up to 1 in every feature; columns that are new take an even part."""
        groups, split = self._groups(), self.split
        charged = groups >= 0
        features = groups[charged]
        count = np.bincount(features)
        share = 1.0 / np.maximum(1, count[np.maximum(groups, 0)]) if len(features) else np.ones(len(groups))
        share[: len(split)] = np.maximum(split, 1e-4 * share[: len(split)])
        share[charged] /= np.bincount(features, share[charged])[features]
        return np.where(charged, share, 0.0)

    def solve_at(self, tau: float, tol: float) -> Tangent:
        """Solve the relaxation at this multiplier, and keep its bound if it is the best so far."""
        self.tau = tau
        self.master.reprice(lambda pool: self._prices())
        solution = self.master.solve(tol=tol, max_iter=60, late=self.late)
        self.work += solution.n_iter
        bound, theta = self._bound_at(self.master.point)
        if bound > self.best.bound:
            self.best = Leaf(self.master.weights.copy(), theta, bound)
        k = self.problem.max_terms
        if k is None:
            return Tangent(tau, solution.objective, -1.0, solution.lower_bound)
        excess = float(np.sum(self._shares())) - k
        return Tangent(tau, solution.objective - k * tau, excess, solution.lower_bound - k * tau)

    def _shares(self) -> Array:
        """How far each charged column is in use, from 0 to 1, in the relaxed solution."""
        p, w = self.master.prices, self.master.weights
        # a knee at the box stays there however small the price is
        knee = np.where(p.l2 > 0, p.knee, p.max_weight)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(knee > 0, np.minimum(1.0, w / knee), w > 0)
        return np.where(p.charged, share, 0.0)

    def _bound_at(self, point: RiskPoint) -> tuple[float, float]:
        """The bound at these row weights and its theta, over the dictionary where there is one."""
        problem, pool = self.problem, self.problem.pool
        unseen_edge: float | Array = -np.inf
        unseen = None
        if self.dictionary is not None and self.rule is not None:
            scoring = Scoring("edge", self.rule.l1)
            self.proposals = self.dictionary.best_columns(point, _COLUMNS_PER_ROUND, pool, scoring)
            unseen_edge, unseen = self.proposals.bound, self.rule.prices(1, 0)
            if problem.limits is not None:
                unseen_edge = self.dictionary.unseen_edges(point, pool)
        return dual_bound(
            point, pool.edges(point), self._plain(), problem.max_terms, unseen_edge, unseen,
            problem.groups if problem.limits is None else self._groups(), problem.limits, pool.sizes,
        )  # fmt: skip

    def solve(self, tol: float = _TOL, rounds: int = _ROUNDS, tangent: Tangent | None = None) -> None:
        """Find the multiplier with the largest bound: there the relaxed weights just meet the size limit.

        Ends when no multiplier can raise the bound by more than ``tol`` of it. ``tangent``: the
        relaxation at the present multiplier, if that has been solved.
        """
        far = tol if self.problem.max_terms is None else max(tol, _FAR_TOL)
        low: Tangent | None = None  # the last one that rises
        high: Tangent | None = None  # and the last one that falls
        gap, proven, stride, within = np.inf, -np.inf, 1.0, far
        for _ in range(rounds):
            tangent = self.solve_at(self.tau, far) if tangent is None else tangent
            low, high = (tangent, high) if tangent.excess > 0 else (low, tangent)
            if high is not None and high.tau == 0.0:
                tau, ceiling = 0.0, high.value
            elif low is not None and high is not None:
                tau, ceiling = low.crossing(high)
            else:
                (tau, stride), ceiling = self._beyond(tangent, stride), np.inf
            self.ceiling, proven = min(self.ceiling, ceiling), max(proven, tangent.proven)
            last, gap = gap, ceiling - proven
            if gap <= tol * abs(proven) or (gap >= last and within <= tol) or self.late():
                return
            if low is not None and high is not None:
                if gap <= 0.5 * last:
                    tau = self._between(low, high, tau)
                tau = float(np.clip(tau, low.tau, high.tau))
            within = float(np.clip(0.1 * gap / max(abs(proven), 1e-300), tol, far))
            tangent = self.solve_at(tau, within)

    def _beyond(self, tangent: Tangent, stride: float) -> tuple[float, float]:
        """A multiplier that is likely beyond the best one, and its ratio to the present one."""
        if tangent.tau == 0.0:
            # a guess: twice as far as where the tangent reaches the objective of the start
            return max(2.0 * (self._start_value - tangent.value) / tangent.excess, _LEAST), stride
        k = self.problem.max_terms or 0
        shares = tangent.excess + k
        ratio = max(shares, k) / max(min(shares, k), 1e-100)
        stride = min(max(ratio * ratio, stride * stride), _STRIDE)
        if tangent.excess > 0:
            return tangent.tau * stride, stride
        return (tangent.tau / stride if stride < _STRIDE else 0.0), stride

    def _between(self, low: Tangent, high: Tangent, otherwise: float) -> float:
        """The best multiplier if the shares in use are a power of it."""
        k = self.problem.max_terms or 0
        if k == 0 or low.tau == 0.0 or high.excess + k <= 0:
            return otherwise
        above, below = np.log1p(low.excess / k), np.log1p(high.excess / k)
        return float(low.tau * (high.tau / low.tau) ** (above / (above - below)))

    def resume(self, other: Relaxation) -> None:
        """Take over the balanced multipliers of a similar problem."""
        self.tau, self.sigma, self.split = other.tau, other.sigma, other.split
        self._balancing_steps = _BALANCING

    def balance(self, steps: int) -> None:
        """Improve all multipliers at once, where features are limited.

        Exponentiated gradient ascent: what is used too much gets dearer, and of the columns of a feature
        those that are in use most come to carry its price.
        """
        limits, k = self.problem.limits, self.problem.max_terms
        assert limits is not None
        groups, f, stale = self._groups(), limits.max_features, 0
        if f is not None and self.sigma == 0.0:
            self.sigma = max(self.tau, 1e-4)
        for _ in range(steps):
            before = self.best.bound
            self.solve_at(self.tau, _GROWTH_TOL)
            stale = 0 if self.improved_on(before) else stale + 1
            if self.late() or stale >= _BALANCING_PATIENCE or self.work > _BALANCING_WORK:
                break
            used, split = self._shares(), self._normalised_split()
            self._balancing_steps += 1
            step = self._balancing_steps**-0.3
            if f is not None:
                self.sigma *= math.exp(step * _pull(float(np.sum(used * split)), f))
            if k is not None:
                self.tau = max(self.tau, 1e-9) * math.exp(step * _pull(float(np.sum(used)), k))
            most = np.zeros(int(groups.max(initial=0)) + 1)
            np.maximum.at(most, np.maximum(groups, 0), used)
            largest = most[np.maximum(groups, 0)]
            relative = np.where(largest > 0, used / np.where(largest > 0, largest, 1.0), 1.0)
            self.split = split * np.exp(0.5 * step * (relative - 1.0))

    def improved_on(self, before: float) -> bool:
        """Whether the best bound is now clearly above an earlier one."""
        return self.best.bound > before + _STALE * abs(before)

    def grow(self) -> bool:
        """Add the columns last proposed by the dictionary; False when none could lower the bound."""
        new = self.proposals
        if new is None or self.rule is None or len(new) == 0 or new.bound <= self.rule.l1:
            return False
        self.problem.pool.append(new.atoms)
        self.master.extend()
        return True

    def result(self) -> Relaxation:
        """The best leaf, with its bound over the pool as it is now."""
        pool, best = self.problem.pool, self.best
        if len(best.weights) < pool.n_columns:
            weights = np.concatenate([best.weights, np.zeros(pool.n_columns - len(best.weights))])
            best = replace(best, weights=weights)
            if best.theta > 0:
                bound, theta = self._bound_at(self.problem.point(weights))
                best = Leaf(weights, theta, bound)
        split = self.split if self.problem.limits is None else self._normalised_split()
        return Relaxation(best, self.master.weights.copy(), self.tau, self.sigma, split)


def _pull(used: float, limit: int) -> float:
    """The logarithmic step of a multiplier: the share by which the limit is exceeded, from -1 to 2."""
    if limit == 0:
        return 2.0 if used > 0 else 0.0
    return min(max((used - limit) / limit, -1.0), 2.0)


def pool_relaxation(problem: SelectionProblem, start: Array | None = None, late: Late = never) -> Relaxation:
    """The root bound over the columns of the pool.

    On large tables the multipliers come from some of the rows; the bound itself is always over all of them.

    Parameters
    ----------
    problem : SelectionProblem
        The problem to relax.
    start : array, optional
        Weights to start from.
    late : callable
        Asked between Newton steps whether to stop.

    Returns
    -------
    Relaxation
        The best bound with the weights that prove it.
    """
    merged = merge_rows(problem)
    if problem.limits is None and problem.pool.n_columns > _MANY_COLUMNS:
        return _wide_relaxation(merged, np.zeros(len(problem.prices)) if start is None else start, late)
    smaller = sketch_rows(merged)
    solver = RelaxationSolver(smaller, start, late=late)
    if smaller is not merged:
        solver.solve(_GROWTH_TOL)
        if problem.limits is not None:
            solver.balance(_BALANCING)
        relaxation = solver.result()
        solver = RelaxationSolver(merged, relaxation.weights, tau=relaxation.tau, late=late)
        solver.resume(relaxation)
    if problem.limits is None or smaller is merged:
        solver.solve()
    if problem.limits is not None:
        solver.balance(_BALANCING if smaller is merged else _REBALANCING)
    return solver.result()


def _wide_relaxation(merged: SelectionProblem, start: Array, late: Late) -> Relaxation:
    """The same for many columns: solved over those that the relaxation uses, which others join while their
    edge exceeds their price. The bound is always over all of them."""
    prices, k = merged.prices, merged.max_terms
    inside = (start > 0) | ~prices.charged
    weights, tau = np.minimum(start, prices.max_weight), 0.0
    best = Leaf(np.zeros(len(prices)), 0.0, 0.0)
    edges, price = merged.pool.edges(merged.point(weights)), prices.l1
    for _ in range(_ROUNDS):
        lacking = np.flatnonzero(~inside & (prices.max_weight > 0) & (edges > price + 1e-9 * np.abs(price)))
        order = np.argsort(price[lacking] - edges[lacking], kind="stable")
        inside[lacking[order[:_JOINING]]] = True
        columns = np.flatnonzero(inside)
        solver = RelaxationSolver(merged.part(columns), weights[columns], tau=tau, late=late)
        solver.solve(_TOL if len(lacking) == 0 else _GROWTH_TOL)
        part = solver.result()
        tau, weights = part.tau, spread(part.leaf.weights, columns, len(prices))
        point = merged.point(weights)
        edges = merged.pool.edges(point)
        bound, theta = dual_bound(point, edges, prices, k, sizes=merged.pool.sizes)
        if bound > best.bound:
            best = Leaf(weights, theta, bound)
        weights = spread(part.weights, columns, len(prices))
        price = prices.with_l0(prices.l0 + np.where(prices.charged, tau, 0.0)).slope
        if late() or len(lacking) == 0:
            break
    return Relaxation(best, weights, tau, 0.0, np.zeros(0))


def dictionary_relaxation(
    problem: SelectionProblem, dictionary: Dictionary, rule: PriceRule, root: Relaxation, late: Late = never
) -> Relaxation:
    """The root bound over the whole dictionary: columns are added to the pool while that helps.

    Parameters
    ----------
    problem : SelectionProblem
        Over the columns generated so far; its pool grows.
    dictionary : Dictionary
        All columns there could be; its bounds on unseen edges must be exact.
    rule : PriceRule
        The regularisation of every column.
    root : Relaxation
        The relaxation over the pool, where the search starts.
    late : callable
        Asked between Newton steps whether to stop.

    Returns
    -------
    Relaxation
        Its bound holds for every choice from the dictionary.
    """
    solver = RelaxationSolver(problem, root.weights, dictionary, rule, tau=root.tau, late=late)
    tangent, stale = solver.solve_at(root.tau, _GROWTH_TOL), 0
    for _ in range(_GROWTHS):
        before = solver.best.bound
        # the multiplier is left alone while unseen columns cost more than it is likely to
        if stale or tangent.tau == 0.0 or abs(tangent.excess) * tangent.tau >= tangent.value - before:
            solver.solve(_GROWTH_TOL, 5, tangent)
        closed = solver.best.bound >= (1.0 - _GROWTH_TOL) * solver.ceiling
        spent = stale >= _PATIENCE or solver.work > _GROWTH_WORK
        if closed or spent or late() or not solver.grow():
            break
        tangent = solver.solve_at(solver.tau, _GROWTH_TOL)
        stale = 0 if solver.improved_on(before) else stale + 1
    # without max_terms and l0 unseen columns may not gain anything, whatever their features cost
    balanced = problem.limits is None or (problem.max_terms is None and rule.l0 == 0.0)
    stale = 0
    if not balanced:
        solver.resume(root)
    while not balanced and stale < _BALANCING_PATIENCE and solver.work <= _BALANCING_WORK and not late():
        before = solver.best.bound
        solver.balance(3)
        balanced = not solver.grow()
        stale = 0 if solver.improved_on(before) else stale + 1
    return solver.result()

"""The convex master: all weights of the pool at once, by Newton steps on a remembered Hessian.

The Hessian is kept at an anchor point and scaled to the present curvature; a new column adds one row to it,
which costs a pass over the features in use. It is made anew when the steps it gives fall short. Each
iteration solves a small quadratic with the box inside (kernels/quadratic.cpp) and checks the true objective.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.certificate.bounds import dual_bound
from cardboost.dictionary.base import ColumnPool
from cardboost.master.problem import MasterSolution, Prices
from cardboost.risk import EmpiricalRisk, RiskPoint

Array = NDArray[np.float64]

_SHORTFALL = 0.25  # share of the promised drop below which the Hessian is made anew
_PATIENCE = 8  # slow rounds before an estimated Hessian gives way to the exact one
_ROUNDING = 4e-15  # share of the objective below which a drop cannot be seen
_UNSEEN = 5  # steps whose gain cannot be seen before the solve ends
_SLOW = 0.2  # ratio of successive drops above which convergence counts as slow


class Master:
    """Weights over a pool that grows; :meth:`solve` makes them optimal for the present columns."""

    def __init__(
        self,
        pool: ColumnPool,
        risk: EmpiricalRisk,
        prices: Callable[[ColumnPool], Prices],
        weights: Array | None = None,
        point: RiskPoint | None = None,
    ) -> None:
        self.pool = pool
        self.risk = risk
        self._prices = prices
        self.prices = prices(pool)
        self.weights = np.zeros(pool.n_columns) if weights is None else weights
        self.point = risk.evaluate(pool.margins(self.weights)) if point is None else point
        self._gram = np.empty((0, 0))
        self._anchor: RiskPoint | None = None
        self._anchor_columns = 0
        self._exact = not pool.sketches

    @property
    def objective(self) -> float:
        return self.point.value + self.prices.relaxed_cost(self.weights)

    def extend(self) -> None:
        """Take note of columns that were appended to the pool: their weights start at 0."""
        n, old = self.pool.n_columns, len(self.weights)
        self.weights = np.concatenate([self.weights, np.zeros(n - old)])
        self.prices = self._prices(self.pool)

    def reprice(self, prices: Callable[[ColumnPool], Prices]) -> None:
        """Same columns, other prices; weights outside the new box are clipped."""
        self._prices = prices
        self.prices = prices(self.pool)
        self.move_to(np.minimum(self.weights, self.prices.max_weight))

    def move_to(self, weights: Array) -> None:
        if not np.array_equal(weights, self.weights):
            self.weights = weights
            self.point = self.risk.evaluate(self.pool.margins(weights))

    def gram(self) -> Array:
        """The Hessian at the anchor, complete for the present columns."""
        n, known = self.pool.n_columns, len(self._gram)
        if self._anchor is None:
            return self.renew_gram()
        if known < n:
            rows = self.pool.gram(self._anchor, np.arange(known, n), exact=self._exact)
            grown = np.empty((n, n))
            grown[:known, :known] = self._gram
            grown[known:] = rows
            grown[:known, known:] = rows[:, :known].T
            self._gram = grown
        return self._gram

    def renew_gram(self) -> Array:
        self._anchor = self.point
        self._gram = self.pool.gram(self.point, exact=self._exact)
        self._anchor_columns = self.pool.n_columns
        return self._gram

    def solve(self, tol: float | None = 1e-8, max_iter: int = 100) -> MasterSolution:
        """Newton steps until the relative gap over the pool is at most ``tol``; None: just ``max_iter`` steps."""
        status, bound, steps = "iteration limit", -np.inf, 0
        last_drop = last_promise = np.inf
        slow_rounds = unseen_rounds = 0
        bound_at: RiskPoint | None = None
        if self._anchor_columns and self.pool.n_columns >= 2 * self._anchor_columns + 4:
            self._anchor = None
        while tol is not None or steps < max_iter:
            edges = self.pool.edges(self.point)
            # far from the end the promised drop tells as much as the bound, which costs a pass over the rows
            if tol is not None and (
                last_promise <= 100 * tol * abs(self.objective) or steps in (0, max_iter)
            ):
                bound, bound_at = max(bound, dual_bound(self.point, edges, self.prices)[0]), self.point
                if self.objective - bound <= tol * max(abs(self.objective), 1e-300):
                    status = "optimal"
                    break
            if steps >= max_iter:
                break
            start = self.point
            taken, promised, got = self._step(edges)
            steps += 1
            if not taken:
                fresh = self._anchor is start
                if promised <= 0.0 or tol is None or (fresh and self._exact):
                    status = "stalled"
                    break
                self._exact |= fresh
                self._anchor = None
                continue
            # near the optimum the objective no longer shows what a step gains; the bound still does
            unseen_rounds = unseen_rounds + 1 if got <= _ROUNDING * abs(self.objective) else 0
            if unseen_rounds > _UNSEEN:
                status = "stalled"
                break
            if got < _SHORTFALL * promised or (tol is not None and got > _SLOW * last_drop):
                slow_rounds += 1
                self._exact |= slow_rounds >= _PATIENCE and self._anchor is start
                self._anchor = None
            last_drop, last_promise = got, promised
        if tol is not None and bound_at is not self.point:
            bound = max(bound, dual_bound(self.point, self.pool.edges(self.point), self.prices)[0])
            if self.objective - bound <= tol * max(abs(self.objective), 1e-300):
                status = "optimal"
        objective = self.objective
        return MasterSolution(self.weights, objective, bound, objective - bound, status, steps)

    def _step(self, edges: Array) -> tuple[bool, float, float]:
        """One Newton step from the present weights; returns (taken, promised drop, true drop)."""
        if self.pool.cheap_gram and self._anchor is not self.point:
            self._anchor = None
        gram = self.gram()
        assert self._anchor is not None
        if self._anchor is not self.point and self._anchor.curvature > 0:
            gram = gram * (self.point.curvature / self._anchor.curvature)
        p, w = self.prices, self.weights
        gradient = -edges
        slope = gradient + p.slope + p.l2 * np.maximum(0.0, w - p.knee)
        free = ((w > 0) | (slope < 0)) & ((w < p.max_weight) | (slope > 0))
        violation = float(np.max(np.abs(slope[free]), initial=0.0))
        if violation == 0.0:
            return False, 0.0, 0.0
        target, promised, _ = _kernels.minimise_quadratic(
            gram, gradient, w, p.slope, p.knee, p.l2, p.max_weight, 1e-5 * violation, 60
        )
        if not promised > 0.0:
            return False, promised, 0.0
        before = self.objective
        point = self.risk.evaluate(self.pool.margins(target))
        after = point.value + p.relaxed_cost(target)
        if before - after >= 0.1 * promised - _ROUNDING * abs(before):
            self.weights, self.point = target, point
            return True, promised, before - after
        return self._search(target, promised, before)

    def _search(self, target: Array, promised: float, before: float) -> tuple[bool, float, float]:
        """Shorten a step whose end did not lower the objective as promised."""
        p, w = self.prices, self.weights
        direction = target - w
        D = self.pool.margins(direction)
        best, best_value, step = 0.0, before, 0.5
        for _ in range(40):
            value = self.risk.along(self.point.F, D, step)[0] + p.relaxed_cost(w + step * direction)
            if value < best_value:
                best, best_value = step, value
            elif best > 0.0:
                break
            step *= 0.5
        if best == 0.0:
            return False, promised, 0.0
        self.move_to(w + best * direction)
        return True, promised, before - self.objective

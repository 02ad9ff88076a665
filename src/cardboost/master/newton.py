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
from cardboost.dictionary.base import ColumnPool
from cardboost.problem.bound import dual_bound
from cardboost.problem.budget import Late, never
from cardboost.problem.losses import Loss
from cardboost.problem.prices import MasterSolution, Prices
from cardboost.problem.risk import EmpiricalRisk, RiskPoint
from cardboost.problem.trace import Status

Array = NDArray[np.float64]

_SHORTFALL = 0.25  # share of the promised drop below which the Hessian is made anew
_PATIENCE = 6  # slow steps in a row before the Hessian is made anew, and exactly if it was new
_FARTHER = 1.5  # times the promised drop, above which a step was too short
_ROUNDING = 4e-15  # share of the objective below which a drop cannot be seen
_UNSEEN = 5  # steps whose gain cannot be seen before the solve ends
_SLOW = 0.2  # ratio of successive drops above which convergence counts as slow


def _fixed_order_product(matrix: Array, x: Array) -> Array:
    """A matrix times a vector without BLAS, whose order of additions depends on its threads."""
    return np.einsum("ij,j->i", matrix, x, optimize=False)


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
        self.pool, self.risk, self._prices, self.prices = pool, risk, prices, prices(pool)
        self.weights = np.zeros(pool.n_columns) if weights is None else weights
        self.point = risk.evaluate(pool.margins(self.weights)) if point is None else point
        self._gram = np.empty((0, 0))
        self._anchor: RiskPoint | None = None
        self._anchor_columns = 0
        self._metric: Array | None = None  # the Hessian as the steps use it
        self._exact = not pool.sketches

    @property
    def objective(self) -> float:
        """The convex objective at the present weights."""
        return self.point.value + self.prices.relaxed_cost(self.weights)

    def extend(self) -> None:
        """Take note of columns that were appended to the pool: their weights start at 0."""
        self.weights = np.append(self.weights, np.zeros(self.pool.n_columns - len(self.weights)))
        self._metric, self.prices = None, self._prices(self.pool)

    def reprice(self, prices: Callable[[ColumnPool], Prices]) -> None:
        """Same columns, other prices; weights outside the new box are clipped."""
        self._prices, self.prices = prices, prices(self.pool)
        self.move_to(np.minimum(self.weights, self.prices.max_weight))

    def move_to(self, weights: Array) -> None:
        """Go to these weights, whatever the objective is there."""
        if not np.array_equal(weights, self.weights):
            self.weights = weights
            self.point = self.risk.evaluate(self.pool.margins(weights))

    def try_weights(self, weights: Array) -> None:
        """Go to these weights if that lowers the objective."""
        weights = np.clip(weights, 0.0, self.prices.max_weight)
        point = self.risk.evaluate(self.pool.margins(weights))
        if point.value + self.prices.relaxed_cost(weights) < self.objective:
            self.weights, self.point = weights, point

    def gram(self) -> Array:
        """The Hessian at the anchor, complete for the present columns."""
        n, done = self.pool.n_columns, len(self._gram)
        if self._anchor is None:
            return self.renew_gram()
        if self.risk.loss.quadratic:  # the same at any point, and the sums of this one are there already
            self._anchor = self.point
        if done < n:
            rows = self.pool.gram(self._anchor, np.arange(done, n), exact=self._exact)
            self._gram = np.ascontiguousarray(np.block([[self._gram, rows[:, :done].T], [rows]]))
        return self._gram

    def renew_gram(self) -> Array:
        """The Hessian at the present point, which becomes the anchor."""
        self._anchor, self._anchor_columns = self.point, self.pool.n_columns
        self._gram = self.pool.gram(self.point, exact=self._exact)
        return self._gram

    def solve(
        self, tol: float | None = 1e-8, max_iter: int = 100, certified: bool = True, late: Late = never
    ) -> MasterSolution:
        """Newton steps until the relative gap over the pool is small.

        Parameters
        ----------
        tol : float or None
            The gap; None: ``max_iter`` steps.
        max_iter : int
            The most steps.
        certified : bool
            False: stop when the drop that the quadratic model still promises is that small, which takes fewer
            steps where ``l1`` is tiny and the bound therefore loose.
        late : callable
            Asked between steps whether to stop.

        Returns
        -------
        MasterSolution
            Its status is ``OPTIMAL``, ``PRECISION`` (rounding hides any progress) or ``ITERATION_LIMIT``.
        """
        status, steps = Status.ITERATION_LIMIT, 0
        bound, bounded_at = -np.inf, None  # the best bound of this solve, and the point of the last one
        last_drop, promised = np.inf, np.inf
        slow = unseen = 0
        before: tuple[Array, Array] | None = None  # weights and edges one step ago
        if self._anchor_columns and self.pool.n_columns >= 2 * self._anchor_columns + 4:
            self._forget()

        def closed(edges: Array) -> bool:
            nonlocal bound, bounded_at
            bound, bounded_at = max(bound, dual_bound(self.point, edges, self.prices)[0]), self.point
            return tol is not None and self.objective - bound <= tol * max(abs(self.objective), 1e-300)

        while tol is not None or steps < max_iter:
            edges = self.pool.edges(self.point)
            if before is not None:
                self._learn(self.weights - before[0], before[1] - edges)
            small = tol is not None and promised <= (100 if certified else 1) * tol * abs(self.objective)
            # far from the end the promised drop tells as much as the bound, which costs a pass over the rows
            look = tol is not None and certified and (small or steps in (0, max_iter))
            if closed(edges) if look else small:
                status = Status.OPTIMAL
                break
            if steps >= max_iter or late():
                break
            start, before = self.point, (self.weights, edges)
            taken, promised, drop = self._step(edges)
            steps += 1
            if not taken:
                before = None
                fresh = self._fresh(start)
                if promised <= 0.0 or tol is None or (fresh and self._exact):
                    status = Status.PRECISION
                    break
                self._forget(exact=fresh)
                continue
            # near the optimum the objective no longer shows what a step gains; the bound still does
            unseen = unseen + 1 if drop <= _ROUNDING * abs(self.objective) else 0
            if unseen > _UNSEEN:
                status = Status.PRECISION
                break
            slow = slow + 1 if tol is not None and drop > _SLOW * last_drop else 0
            if drop < _SHORTFALL * promised or slow >= _PATIENCE:
                self._forget(exact=slow >= _PATIENCE and self._fresh(start))
                slow = 0
            last_drop = drop
        if tol is not None and certified and bounded_at is not self.point:
            status = Status.OPTIMAL if closed(self.pool.edges(self.point)) else status
        return MasterSolution(self.weights, self.objective, bound, status, steps)

    def _fresh(self, point: RiskPoint) -> bool:
        """Whether the Hessian at the anchor is that of this point."""
        return self._anchor is point or (self._anchor is not None and self.risk.loss.quadratic)

    def _forget(self, exact: bool = False) -> None:
        """Make the Hessian anew when it is next needed; with ``exact``, from all rows from now on."""
        if not self.risk.loss.quadratic or (exact and not self._exact):
            self._anchor = None
        self._exact |= exact
        self._metric = None

    def _learn(self, step: Array, change: Array) -> None:
        """Correct the metric along the last step by the change of the gradient there (BFGS)."""
        if self._metric is None or len(self._metric) != len(step) or self.pool.cheap_gram:
            return
        if self._exact and self.risk.loss.quadratic:
            return
        expected = _fixed_order_product(self._metric, step)
        model, true = float(np.sum(step * expected)), float(np.sum(step * change))
        if model > 0.0 and true > 1e-3 * model:
            correction = change[:, None] * (change / true)
            self._metric = self._metric - expected[:, None] * (expected / model) + correction

    def _step(self, edges: Array) -> tuple[bool, float, float]:
        """One Newton step from the present weights; returns (taken, promised drop, true drop)."""
        if self.pool.cheap_gram and not self._fresh(self.point):
            self._forget()
        if self._metric is None or len(self._metric) != self.pool.n_columns:
            gram = self.gram()
            assert self._anchor is not None
            if self._anchor is not self.point and self._anchor.curvature > 0:
                gram = gram * (self.point.curvature / self._anchor.curvature)
            self._metric = gram
        p, w = self.prices, self.weights
        gradient = -edges
        slope = gradient + p.slope + p.l2 * np.maximum(0.0, w - p.knee)
        free = ((w > 0) | (slope < 0)) & ((w < p.max_weight) | (slope > 0))
        violation = float(np.max(np.abs(slope[free]), initial=0.0))
        if violation == 0.0:
            return False, 0.0, 0.0
        target, promised, _ = _kernels.minimise_quadratic(
            self._metric, gradient, w, p.slope, p.knee, p.l2, p.max_weight, 1e-5 * violation, 60
        )
        before = self.objective
        if np.array_equal(target, w) or not promised > -_ROUNDING * abs(before):
            return False, promised, 0.0
        promised = max(promised, 1e-300)  # near the optimum rounding may hide the sign of a tiny drop
        point = self.risk.evaluate(self.pool.margins(target))
        after = point.value + p.relaxed_cost(target)
        if before - after >= 0.1 * promised - _ROUNDING * abs(before):
            self.weights, self.point = target, point
            if before - after > _FARTHER * promised and type(self.risk.loss).bend is not Loss.bend:
                self._lengthen(w)
            return True, promised, before - self.objective
        return self._search(target, promised, before)

    def _lengthen(self, start: Array) -> None:
        """Go on in the direction of the last step, twice as far each time, while the objective falls.

        Where the curvature of the steps is that of a parabola above the loss, steps are too short: along a
        straight piece of the hinge by any factor.
        """
        p, direction = self.prices, self.weights - start
        room = np.where(direction > 0, p.max_weight - start, start)
        moving = direction != 0
        most = float(np.min(room[moving] / np.abs(direction[moving])))
        D, F = self.pool.margins(direction), self.point.F - self.pool.margins(direction)
        best, value = 1.0, self.objective
        while best < most:
            step = min(2.0 * best, most)
            further = self.risk.along(F, D, step)[0] + p.relaxed_cost(start + step * direction)
            if not further < value:
                break
            best, value = step, further
        if best > 1.0:
            self.move_to(np.clip(start + best * direction, 0.0, p.max_weight))

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

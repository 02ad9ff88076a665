"""Projected limited-memory BFGS over all columns at once, for l2 > 0.

With l2 > 0 the optimum may use hundreds of columns that pull alike; a Newton step on them costs a large
dense factorisation. Here a step costs two products with the matrix. Weights at a bound that their gradient
holds there are left out of the step, and the pairs of steps and gradient changes are cut down to the others
(two-metric projection); the step is then projected onto the box.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.master.problem import Prices
from cardboost.risk import EmpiricalRisk, RiskPoint

Array = NDArray[np.float64]

_PAIRS = 60
_ARMIJO = 1e-4
_FIRST_STEP = 0.1
_HALVINGS = 40
#: changes of the objective below this share of it are rounding; steps that only make such changes may still
#: sharpen the bound, so some are allowed
_ROUNDING = 4e-16
_FLAT_STEPS = 5


class Products(Protocol):
    """A matrix by what it does: ``A w``, and ``A' u`` for the row weights of a point."""

    def margins(self, weights: Array) -> Array: ...

    def edges(self, point: RiskPoint) -> Array: ...


def projected_lbfgs(
    products: Products,
    risk: EmpiricalRisk,
    prices: Prices,
    stop: Callable[[Array, RiskPoint, Array, float, float], str | None],
) -> tuple[Array, RiskPoint, str]:
    """Weights, the risk there, and why it stopped.

    ``stop(weights, point, edges, objective, gained)`` is asked after every step; ``gained`` is the share
    of the objective that the last step took off.
    """
    n = len(prices)
    l1, l2, upper = prices.l1, prices.l2, prices.max_weight
    pairs = _Pairs(n)
    x = np.zeros(n)
    point = risk.evaluate(np.zeros(len(risk.weights.normalised)))
    edges = products.edges(point)
    gradient, objective, gained, flat = l1 - edges, point.value, np.inf, 0
    while True:
        status = stop(x, point, edges, objective, gained)
        if status is not None:
            return x, point, status
        direction, step = pairs.direction(x, upper, gradient), 1.0
        room = _ROUNDING * abs(objective) if flat < _FLAT_STEPS else 0.0
        for _ in range(_HALVINGS):
            trial, moved, price, slope = _kernels.project_step(x, direction, step, gradient, l1, l2, upper)
            found = risk.evaluate(products.margins(trial))
            value = found.value + price
            if value <= objective + _ARMIJO * slope + room:
                break
            step *= 0.5
        flat = flat + 1 if value >= objective else 0
        if value > objective + room or not moved.any():
            if len(pairs) == 0:
                return x, point, "precision"
            pairs.clear()
            continue
        if flat > _FLAT_STEPS:
            return x, point, "precision"
        edges = products.edges(found)
        next_gradient = l1 + l2 * trial - edges
        pairs.add(moved, next_gradient - gradient)
        gained = (objective - value) / abs(objective) if objective else 0.0
        x, point, gradient, objective = trial, found, next_gradient, value


class _Pairs:
    """The last steps and gradient changes, oldest first."""

    def __init__(self, n: int) -> None:
        self.steps, self.changes = np.empty((2 * _PAIRS, n)), np.empty((2 * _PAIRS, n))
        self.begin = self.end = 0

    def __len__(self) -> int:
        return self.end - self.begin

    def clear(self) -> None:
        self.begin = self.end = 0

    def add(self, step: Array, change: Array) -> None:
        if self.end == len(self.steps):
            for lines in (self.steps, self.changes):
                lines[:_PAIRS] = lines[-_PAIRS:]
            self.begin, self.end = 0, _PAIRS
        self.steps[self.end], self.changes[self.end] = step, change
        self.end += 1
        self.begin = max(self.begin, self.end - _PAIRS)

    def direction(self, x: Array, upper: Array, gradient: Array) -> Array:
        own = slice(self.begin, self.end)
        d = _kernels.lbfgs_direction(self.steps[own], self.changes[own], x, upper, gradient)
        if self.begin == self.end:
            d *= _FIRST_STEP / max(float(np.max(np.abs(d), initial=0.0)), 1e-300)
        return d

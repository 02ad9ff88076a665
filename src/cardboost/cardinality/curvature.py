"""How large margins can be in a choice that is better than the best one known (exponential loss).

At weights w with row weights u the loss is at least its tangent plus sum u_i h(a_i (v - w)), h(x) = exp(-x) - 1
+ x, and the tangent with the prices is at least the bound D(u). So every better v has sum u_i h(...) below the
gap. Where margins stay under caps, h(x) >= q(cap - F) x^2 / 2 with q(x) = 2 h(x) / x^2, which makes that set an
ellipsoid around w; its width in the direction of a row caps the row's margin, and lower caps narrow the
ellipsoid. The first caps are those of the box.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cardboost.cardinality.problem import CardinalityProblem
from cardboost.certificate.bounds import dual_bound

Array = NDArray[np.float64]

ROUNDS = 4
ROOM = 1e-9  # for rounding
RIDGE = 1e-10  # share of the mean curvature of a column, added so that an inverse exists


def margin_caps(problem: CardinalityProblem, centre: Array, objective: float) -> Array | None:
    """A cap for the margin of every row, from the ellipsoid around ``centre``; None where there is none."""
    A, p = problem.pool.dense().astype(np.float64), problem.prices
    F = A @ centre
    point = problem.risk.evaluate(F)
    u = problem.risk.weights.normalised * np.exp(-F)
    bound = dual_bound(point, A.T @ u, p, problem.max_terms)[0]
    room = objective - bound + ROOM * (1.0 + abs(objective))
    caps = np.maximum(A, 0.0) @ p.max_weight
    if not np.isfinite(u).all() or not np.isfinite(caps).all():
        return None
    for _ in range(ROUNDS):
        H = (A * (u * curvature_left(caps - F))[:, None]).T @ A
        ridge = RIDGE * float(np.trace(H)) / len(H)
        try:
            factor = np.linalg.cholesky(H + ridge * np.eye(len(H)))
        except np.linalg.LinAlgError:
            break
        spans = np.sum(np.linalg.solve(factor, A.T) ** 2, axis=0)
        boxes = float(np.sum(np.maximum(p.max_weight, np.abs(centre)) ** 2))
        caps = np.minimum(caps, F + np.sqrt(spans * (2.0 * room + ridge * boxes)) * (1.0 + ROOM))
    return caps


def curvature_left(x: Array) -> Array:
    """q(x): the least share of the curvature at a margin up to one that is x larger."""
    near = np.abs(x) < 1e-2
    y = np.where(near, 1.0, x)
    far = 2.0 * (np.expm1(-y) + y) / (y * y)
    return np.where(near, 1.0 - x * (1.0 / 3.0 - x * (1.0 / 12.0 - x / 60.0)), far)

"""How large margins can be in a choice that is better than the best one known (exponential loss).

At weights w with row weights u the loss is its tangent plus sum u_i h(a_i (v - w)), h(x) = exp(-x) - 1 + x,
and the tangent with the prices is at least the bound D(u). So every better v has sum u_i h(...) below the
gap. Where margins stay under caps, h(x) >= q(cap - F) x^2 / 2 with q(x) = 2 h(x) / x^2, which makes that set
an ellipsoid around w; its width in the direction of a row caps the row's margin, and lower caps narrow the
ellipsoid. The first caps are those of the box.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cardboost.cardinality.problem import CardinalityProblem
from cardboost.certificate.bounds import dual_bound

Array = NDArray[np.float64]

REPEATS, PLAIN, ASIDE = 0, 1, 2  # what curvature may do with a column (kernels/nodes.h)

ROUNDS = 4
ROOM = 1e-9  # for rounding
WIDER = 1e-6  # the same, for widths that come from an inverse
PIVOT = 1e-8  # share of a column's curvature that no others make up, at least


def column_roles(problem: CardinalityProblem) -> NDArray[np.uint8]:
    """Columns that repeat an earlier one or its opposite add no direction; with a repeated one nothing can be
    set aside for any of them."""
    A = problem.pool.dense()
    signs = np.sign(A[np.argmax(A != 0, axis=0), np.arange(A.shape[1])])
    _, first, group, count = np.unique(
        A * signs, axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    group = group.reshape(-1)
    role = np.where(problem.prices.charged & (count[group] == 1), ASIDE, PLAIN)
    role[first[group] != np.arange(len(group))] = REPEATS
    role[~A.any(axis=0)] = REPEATS
    return role.astype(np.uint8)


def margin_caps(
    problem: CardinalityProblem, role: NDArray[np.uint8], centre: Array, objective: float
) -> Array | None:
    """A cap for the margin of every row, from the ellipsoid around ``centre``; None where there is none."""
    A, p = problem.pool.dense().astype(np.float64), problem.prices
    F = A @ centre
    point = problem.risk.evaluate(F)
    u = problem.risk.weights.normalised * np.exp(-F)
    bound = dual_bound(point, A.T @ u, p, problem.max_terms)[0]
    room = objective - bound + ROOM * (1.0 + abs(objective))
    caps = np.maximum(A, 0.0) @ p.max_weight
    if not (np.isfinite(u).all() and np.isfinite(caps).all() and room > 0.0):
        return None
    basis = A[:, role != REPEATS]
    for _ in range(ROUNDS):
        H = (basis * (u * curvature_left(caps - F))[:, None]).T @ basis
        try:
            factor = np.linalg.cholesky(H)
        except np.linalg.LinAlgError:
            return None
        if (np.diag(factor) ** 2 <= PIVOT * np.diag(H)).any():
            return None
        spans = np.sum(np.linalg.solve(factor, basis.T) ** 2, axis=0)
        caps = np.minimum(caps, F + np.sqrt(spans * 2.0 * room) * (1.0 + WIDER))
    return caps


def curvature_left(x: Array) -> Array:
    """q(x): the least share of the curvature at a margin up to one that is x larger."""
    near = np.abs(x) < 1e-2
    y = np.where(near, 1.0, x)
    far = 2.0 * (np.expm1(-y) + y) / (y * y)
    return np.where(near, 1.0 - x * (1.0 / 3.0 - x * (1.0 / 12.0 - x / 60.0)), far)

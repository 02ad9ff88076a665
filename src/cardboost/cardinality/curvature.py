"""How far margins can be from a point in a choice that is better than the best one known.

At weights w with row weights u the loss is its tangent plus sum s_i b_i(a_i (v - w)), where b_i(x) is
loss(F_i + x) - loss(F_i) - loss'(F_i) x, and the tangent with the prices is at least the bound D(u). So
every better v has sum s_i b_i below the gap. Where margins stay between floors and caps, b_i(x) is at least
k_i x^2 / 2 with the curvature k_i that is left there, which makes that set an ellipsoid around w; its width
in the direction of a row narrows the row's floor and cap, and narrower ones leave more curvature. The first
are those of the box.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cardboost.cardinality.merge import equal_columns
from cardboost.cardinality.problem import CardinalityProblem
from cardboost.certificate.bounds import dual_bound
from cardboost.threads import blas_threads

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
    first = equal_columns(A * signs)
    count = np.bincount(first, minlength=len(first))
    role = np.where(problem.prices.charged & (count[first] == 1), ASIDE, PLAIN)
    role[first != np.arange(len(first))] = REPEATS
    role[~A.any(axis=0)] = REPEATS
    return role.astype(np.uint8)


@blas_threads(1)  # for equal bits with any number of threads
def margin_limits(
    problem: CardinalityProblem, role: NDArray[np.uint8], centre: Array, objective: float
) -> tuple[Array, Array] | None:
    """A floor and a cap for every row's margin, from the ellipsoid around ``centre``; None without one."""
    if not problem.curved:
        return None
    A, p, share = problem.pool.dense().astype(np.float64), problem.prices, problem.risk.weights.normalised
    F = A @ centre
    point = problem.risk.evaluate(F)
    bound = dual_bound(point, problem.pool.edges(point), p, problem.max_terms)[0]
    room = objective - bound + ROOM * (1.0 + abs(objective))
    floors, caps = np.minimum(A, 0.0) @ p.max_weight, np.maximum(A, 0.0) @ p.max_weight
    if not (np.isfinite(F).all() and np.isfinite(caps - floors).all() and room > 0.0):
        return None
    basis = A[:, role != REPEATS]
    for _ in range(ROUNDS):
        left = share * curvature_left(problem.risk.loss.name, F, floors, caps)
        H = (basis * left[:, None]).T @ basis
        try:
            factor = np.linalg.cholesky(H)
        except np.linalg.LinAlgError:
            return None
        if not (np.diag(factor) ** 2 > PIVOT * np.diag(H)).all():
            return None
        width = np.sqrt(2.0 * room * np.sum(np.linalg.solve(factor, basis.T) ** 2, axis=0)) * (1.0 + WIDER)
        floors, caps = np.maximum(floors, F - width), np.minimum(caps, F + width)
    return floors, caps


def curvature_left(loss: str, F: Array, floors: Array, caps: Array) -> Array:
    """The most k with loss(z) >= loss(F) + loss'(F) (z - F) + k (z - F)^2 / 2 for z from floor to cap."""
    with np.errstate(over="ignore"):
        if loss == "exponential":
            return np.asarray(np.exp(-F) * _exponential_share(caps - F))
        p = 1.0 / (1.0 + np.exp(F))
    own = p * (1.0 - p)
    return np.minimum(own, np.minimum(_to_end(F, p, own, floors), _to_end(F, p, own, caps)))


def _exponential_share(x: Array) -> Array:
    near = np.abs(x) < 1e-2
    y = np.where(near, 1.0, x)
    far = 2.0 * (np.expm1(-y) + y) / (y * y)
    return np.where(near, 1.0 - x * (1.0 / 3.0 - x * (1.0 / 12.0 - x / 60.0)), far)


def _to_end(F: Array, p: Array, own: Array, end: Array) -> Array:
    x = end - F
    near = np.abs(x) < 1e-2
    y = np.where(near, 1.0, x)
    far = 2.0 * (np.logaddexp(0.0, -F - y) - np.logaddexp(0.0, -F) + p * y) / (y * y)
    return np.where(near, own * (1.0 - np.abs(x) / 3.0), far)

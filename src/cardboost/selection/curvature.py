"""How far margins can be from a point in a choice that is better than the best one known.

At weights w with row weights u the loss is its tangent plus sum s_i b_i(a_i (v - w)), where b_i(x) is
loss(F_i + x) - loss(F_i) - loss'(F_i) x, and the tangent with the prices is at least the bound D(u). So
every better v has sum s_i b_i below the gap. Where margins stay between floors and caps, b_i(x) is at least
k_i x^2 / 2 with the curvature k_i that is left there, which makes that set an ellipsoid around w; its width
in the direction of a row narrows the row's floor and cap, and narrower ones leave more curvature. The first
are those of the box.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardboost.data.threads import blas_threads
from cardboost.problem.bound import gain_terms
from cardboost.selection.merge import equal_columns
from cardboost.selection.selection_problem import SelectionProblem

Array = NDArray[np.float64]

ZERO, PLAIN, ASIDE = 0, 1, 2  # what curvature may do with a column (kernels/nodes.h)

ROUNDS = 4
ROOM = 1e-9  # for rounding
WIDER = 1e-6  # the same, for widths that come from an inverse
PIVOT = 1e-8  # share of a column's curvature that no others make up, at least


class ColumnRoles(NamedTuple):
    """What curvature may do with each column, and its twin: the first column equal or opposite to it.

    Twins share one direction, so nothing can be set aside for any of them. Which of them stands for the
    direction depends on the node: one that is not forced out.
    """

    role: NDArray[np.uint8]
    twin: NDArray[np.int32]

    @property
    def basis(self) -> NDArray[np.bool_]:
        """One column for every direction, where no column is out."""
        return (self.role != ZERO) & (self.twin == np.arange(len(self.twin)))


def column_roles(problem: SelectionProblem) -> ColumnRoles:
    A = problem.pool.dense()
    signs = np.sign(A[np.argmax(A != 0, axis=0), np.arange(A.shape[1])])
    twin = equal_columns(A * signs)
    count = np.bincount(twin, minlength=len(twin))
    role = np.where(problem.prices.charged & (count[twin] == 1), ASIDE, PLAIN)
    role[~A.any(axis=0)] = ZERO
    return ColumnRoles(role.astype(np.uint8), twin.astype(np.int32))


@blas_threads(1)  # for equal bits with any number of threads
def margin_limits(
    problem: SelectionProblem, roles: ColumnRoles, centre: Array, objective: float
) -> tuple[Array, Array] | None:
    """A floor and a cap for every row's margin, from the ellipsoid around ``centre``; None without one."""
    if not problem.curved:
        return None
    A, p, share = problem.pool.dense().astype(np.float64), problem.prices, problem.risk.weights.normalised
    F = A @ centre
    point = problem.risk.evaluate(F)
    # as in the check: row weights as they are, also where scaled ones would prove more
    bound = point.dual(1.0) - gain_terms(problem.pool.edges(point), p, problem.max_terms)
    room = objective - bound + ROOM * (1.0 + abs(objective))
    floors, caps = np.minimum(A, 0.0) @ p.max_weight, np.maximum(A, 0.0) @ p.max_weight
    if not (np.isfinite(F).all() and np.isfinite(caps - floors).all() and room > 0.0):
        return None
    basis = A[:, roles.basis]
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

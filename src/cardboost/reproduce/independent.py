"""The soft margin in NumPy and SciPy alone, to check the solvers.

The problem: least ``ln(sum_i exp(-(A w)_i))`` over ``w >= 0`` with ``sum w = R``.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, linprog, minimize
from scipy.special import entr, logsumexp, softmax

Array = NDArray[np.float64]

_NEW_COLUMNS = 40  # that SLSQP gets in a round
_MAX_ROUNDS = 30  # of SLSQP, each with the columns that the last one lacked


def soft_margin(A: Array, w: Array) -> tuple[float, Array]:
    """The value of the soft margin, and the share p of every row in it."""
    losses = -(A @ w)
    return float(logsumexp(losses)), softmax(losses)


def dual_value(A: Array, p: Array, radius: float) -> float:
    """A lower bound on the soft margin over the simplex, from any p >= 0 with sum 1."""
    return float(entr(p).sum() - radius * np.max(A.T @ p))


def kkt(A: Array, w: Array, radius: float) -> dict[str, float]:
    """The amounts by which a point violates the conditions of Karush, Kuhn and Tucker.

    ``spread``: the most by which the slopes of weights in use differ from their mean. ``below``: the most by
    which a slope of a weight that is 0 is below that mean. ``negative``: the most by which a weight is below
    0. ``sum_error``: by how much their sum is not R.
    """
    slopes = -(A.T @ soft_margin(A, w)[1])
    used = w > 0
    mean = slopes[used].mean()
    return {
        "spread": float(np.abs(slopes[used] - mean).max()),
        "below": float(np.max(mean - slopes[~used], initial=0.0)),
        "negative": max(0.0, -float(w.min())),
        "sum_error": abs(float(w.sum()) - radius),
    }


def hard_margin(A: Array) -> float:
    """The largest least margin of weights with sum 1: a linear programme."""
    m, n = A.shape
    result = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=np.column_stack([-A, np.ones(m)]),
        b_ub=np.zeros(m),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n + [(None, None)],
        method="highs",
    )
    if not result.success:
        raise ArithmeticError(f"the linear programme of the hard margin was not solved: {result.message}")
    return -float(result.fun or 0.0) + 0.0


def by_slsqp(A: Array, radius: float, tol: float = 1e-6) -> float:
    """SciPy's SLSQP on few columns: those in use and those with the least slopes, until no other is missing.

    Its cost grows with the cube of the columns, so that all of them at once would take too long.
    """
    w = np.zeros(A.shape[1])
    least, p = soft_margin(A, w)
    for _ in range(_MAX_ROUNDS):
        new = np.argsort(-(A.T @ p), kind="stable")[:_NEW_COLUMNS]
        used = np.union1d(np.flatnonzero(w), new)
        columns = np.ascontiguousarray(A[:, used])

        def value(v: Array, columns: Array = columns) -> tuple[float, Array]:
            least, p = soft_margin(columns, v)
            return least, -(columns.T @ p)

        result: Any = minimize(
            value,
            w[used] if w.any() else np.full(len(used), radius / len(used)),
            jac=True,
            method="SLSQP",
            bounds=[(0.0, None)] * len(used),
            constraints=LinearConstraint(np.ones((1, len(used))), radius, radius),
            options={"maxiter": 500, "ftol": 1e-13},
        )
        w = np.zeros(A.shape[1])
        w[used] = np.maximum(result.x, 0.0)
        w *= radius / w.sum()
        least, p = soft_margin(A, w)
        if least - dual_value(A, p, radius) <= tol:
            break
    return least


def by_cone(A: Array, radius: float) -> float | None:
    """Clarabel, an interior-point solver for cones, through CVXPY; None without an answer."""
    try:
        import clarabel  # noqa: F401
        import cvxpy
    except ImportError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w = cvxpy.Variable(A.shape[1], nonneg=True)
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.log_sum_exp(-A @ w)), [cvxpy.sum(w) == radius])
        try:
            return float(problem.solve(solver=cvxpy.CLARABEL))
        except cvxpy.SolverError:
            return None

"""Proximal gradient steps of length 1 / L, plain, or accelerated with restarts.

L = curvature * lambda_max(X' diag(s) X) + l2, with the intercept as a column of ones and curvature 1/4 for
the
logistic loss and 1 for the squared loss: for l2 = 0 the step of the logistic loss is 4 / lambda_max. Power
iteration gives lambda_max with an allowance; should a step break the bound that L promises, L is doubled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cardboost.linear.problem import Fit, LinearProblem, is_close

Array = NDArray[np.float64]


def largest_eigenvalue(problem: LinearProblem, most: int = 200) -> float:
    """An upper bound, as a rule close, on lambda_max(X' diag(s) X) with the intercept as a column of ones."""
    design, s = problem.design, problem.s
    trace = float(design.second_moments(s).sum()) + float(problem.intercept)
    v = np.random.default_rng(0).standard_normal(design.columns + 1)
    v[-1] *= problem.intercept
    length, value = float(np.linalg.norm(v)), 0.0
    for _ in range(most):
        if length == 0.0:
            return trace
        v /= length
        weighted = s * (design.scores(v[:-1]) + v[-1])
        image = np.append(design.sums(weighted), float(weighted.sum()) * problem.intercept)
        rest = float(np.linalg.norm(image - (v @ image) * v))
        value = float(v @ image)
        if rest <= 1e-3 * value:
            return min(trace, value + rest)
        v, length = image, float(np.linalg.norm(image))
    return min(trace, 1.1 * value)


def gradient(
    problem: LinearProblem,
    tol: float,
    max_iter: int,
    coef: Array | None = None,
    b: float = 0.0,
    accelerate: bool = True,
) -> Fit:
    """The optimum to a relative gap of ``tol``, by first-order steps."""
    null = problem.null()
    z = np.append(np.zeros(problem.design.columns), null[0]) if coef is None else np.append(coef, b)
    smooth = (0.25 if problem.curved else 1.0) * largest_eigenvalue(problem)
    smooth = smooth if smooth > 0.0 else 1.0
    status, steps = "iteration limit", 0
    point, momentum = z, 1.0
    objective = np.inf
    while True:
        f = problem.scores(point[:-1], float(point[-1]))
        losses = problem.rows(f)
        sums = problem.design.sums(losses.pull)
        slope = np.append(-sums, -float(losses.pull.sum()) if problem.intercept else 0.0)
        while True:
            after = _proximal(problem, point, slope, smooth)
            move = after - point
            reached = problem.rows(problem.scores(after[:-1], float(after[-1])))
            bound = losses.loss + float(slope @ move) + 0.5 * smooth * float(move @ move)
            if reached.loss <= bound * (1.0 + 1e-12) + 1e-300:
                break
            smooth *= 2.0
        steps += 1
        now = reached.loss + problem.penalty(after[:-1])
        if accelerate:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            if float((point - after) @ (after - z)) > 0.0 or now > objective:  # restart
                following, point = 1.0, after
            else:
                point = after + (momentum - 1.0) / following * (after - z)
            momentum = following
        else:
            point = after
        z, objective = after, now
        if steps % 10 == 0 or steps >= max_iter:
            z[-1], objective, lower = problem.certified(z[:-1], float(z[-1]))
            if is_close(objective, lower, tol, null[1]):
                status = "optimal"
                break
            if steps >= max_iter:
                break
    return Fit(z[:-1], float(z[-1]), objective, lower, steps, status)


def _proximal(problem: LinearProblem, z: Array, slope: Array, smooth: float) -> Array:
    step = z - slope / smooth
    coef_step = step[:-1]
    shrunk = np.sign(coef_step) * np.maximum(np.abs(coef_step) - problem.l1 / smooth, 0.0)
    return np.append(shrunk / (1.0 + problem.l2 / smooth), step[-1])

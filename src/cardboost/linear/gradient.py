"""Proximal gradient steps of length 1 / L, plain, or accelerated with restarts.

L = curvature * lambda_max(X' diag(s) X) + l2, with the intercept as a column of ones and curvature 1/4 for
the logistic loss, 1/2 for softmax and 1 for the squared loss: for l2 = 0 the step of the logistic loss is
4 / lambda_max. Power iteration gives lambda_max with an allowance; should a step break the bound that L
promises, L is doubled.
"""

from __future__ import annotations

import numpy as np

from cardboost.linear.design import Array
from cardboost.linear.problem import Coefficients, Fit, Point, ScoreProblem, SoftmaxProblem, is_close
from cardboost.problem.trace import Status


def largest_eigenvalue(problem: ScoreProblem | SoftmaxProblem) -> float:
    """An upper bound, as a rule close, on lambda_max(X' diag(s) X) with the intercept as a column of ones."""
    design, s = problem.design, problem.s
    trace = float(design.second_moments(s).sum()) + float(problem.intercept)
    v = np.random.default_rng(0).standard_normal(design.columns + 1)
    v[-1] *= problem.intercept
    length, value = float(np.linalg.norm(v)), 0.0
    for _ in range(200):
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
    problem: ScoreProblem | SoftmaxProblem,
    tol: float,
    max_iter: int,
    before: Coefficients | None,
    accelerate: bool,
) -> Fit:
    """The optimum to a relative gap of ``tol``, by first-order steps."""
    b, null = problem.null()
    smooth = problem.steepest * largest_eigenvalue(problem) or 1.0
    current = point = Point(problem, problem.start(before, b))
    momentum, objective, status = 1.0, np.inf, Status.ITERATION_LIMIT
    for steps in range(1, max_iter + 1):
        while True:
            after = Point(problem, _proximal(problem, point, smooth))
            move = (after.z - point.z).ravel()
            bound = point.losses.loss + float(point.slope.ravel() @ move) + 0.5 * smooth * float(move @ move)
            if after.losses.loss <= bound * (1.0 + 1e-12) + 1e-300:
                break
            smooth *= 2.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        turned = float((point.z - after.z).ravel() @ (after.z - current.z).ravel()) > 0.0
        if not accelerate or turned or after.objective > objective:  # restart
            following, point = 1.0, after
        else:
            point = Point(problem, after.z + (momentum - 1.0) / following * (after.z - current.z))
        current, objective, momentum = after, after.objective, following
        if steps % 10 == 0 or steps == max_iter:
            settled, objective, lower = problem.settled(current)
            current, point = settled, settled if point is current else point
            if is_close(objective, lower, tol, null):
                status = Status.OPTIMAL
                break
    return Fit(current.z[..., :-1], current.z[..., -1], objective, lower, steps, status)


def _proximal(problem: ScoreProblem | SoftmaxProblem, point: Point, smooth: float) -> Array:
    z = point.z - point.slope / smooth
    coef = z[..., :-1]
    shrunk = np.sign(coef) * np.maximum(np.abs(coef) - problem.l1 / smooth, 0.0)
    coef[...] = shrunk / (1.0 + problem.l2 / smooth)
    return z

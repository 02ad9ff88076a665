"""Solvers of multinomial logistic regression: Newton steps by conjugate gradients (l1 = 0), and prox-Newton
steps class by class. Proximal gradients are in ``gradient.py``.

    min  sum s_i (log sum_k exp f_ik - f_i,y_i) + l1 |W|_1 + (l2 / 2) |W|_2^2,    f = X W' + b
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cardboost.linear.problem import Coefficients, Fit, Point, SoftmaxProblem, is_close

Array = NDArray[np.float64]


def solve_softmax(
    problem: SoftmaxProblem, solver: str, tol: float, max_iter: int, before: Coefficients | None
) -> Fit:
    """The optimum to a relative gap of ``tol``."""
    b, null = problem.null()
    start = Point(problem, problem.start(before, b))
    run = {"newton": _newton, "prox-newton": _proximal}[solver]
    point, steps, status = run(problem, start, tol, max_iter, null)
    bound = problem.dual(point.losses.shares)
    return Fit(point.z[:, :-1], point.z[:, -1], point.objective, bound, max(1, steps), status)


def _newton(
    problem: SoftmaxProblem, current: Point, tol: float, max_iter: int, null: float
) -> tuple[Point, int, str]:
    s = problem.s[:, None]
    squares = np.append(problem.design.second_moments(problem.s), 1.0)
    for steps in range(max_iter + 1):
        shares = current.losses.shares
        if is_close(current.objective, problem.dual(shares), tol, null):
            return current, steps, "optimal"
        small = problem.l2 == 0.0 and current.objective <= 1e-8 * null
        if small and (current.f.argmax(axis=1) == problem.y).all():
            return current, steps, "separable"
        if steps == max_iter:
            break
        slope = current.gradient

        def product(v: Array, shares: Array = shares) -> Array:
            f = problem.scores(v[:, :-1], v[:, -1])
            q = shares * f
            q = s * (q - shares * q.sum(axis=1)[:, None])
            image = np.column_stack([problem.design.sums(q), q.sum(axis=0) * problem.intercept])
            image[:, :-1] += problem.l2 * v[:, :-1]
            return image

        curve = (problem.s @ (shares * (1.0 - shares)))[:, None] * squares + problem.l2
        curve[curve <= 0.0] = 1.0
        size = float(np.sqrt((slope * slope / curve).sum()))
        d = _conjugate_gradients(product, -slope, curve, min(0.1, size) * size)
        promised, before = float((slope * d).sum()), current
        shift, rounding = problem.scores(d[:, :-1], d[:, -1]), 2e-15 * before.objective
        current = _backtrack(before, before.z + d, d, shift, promised, rounding)
        if current is before or not (current.objective < before.objective or promised > -rounding):
            return before, steps + 1, "precision"
    return current, max_iter, "iteration limit"


def _conjugate_gradients(
    product: Callable[[Array], Array], right: Array, curve: Array, target: float
) -> Array:
    """Solve with a positive semidefinite matrix until the rest is small, in the norm of its diagonal."""
    x, rest = np.zeros_like(right), right.copy()
    z = rest / curve
    p, rho = z.copy(), float((rest * z).sum())
    for _ in range(500):
        if np.sqrt(max(rho, 0.0)) <= target:
            break
        image = product(p)
        bend = float((p * image).sum())
        if bend <= 1e-300:
            break
        length = rho / bend
        x += length * p
        rest -= length * image
        z = rest / curve
        rho, before = float((rest * z).sum()), rho
        p = z + rho / before * p
    return x


def _backtrack(point: Point, z: Array, d: Array, shift: Array, promised: float, rounding: float) -> Point:
    """``z``, or the first point on the way there that is low enough; ``point`` if there is none.

    ``d``, ``shift``: how the step moves coefficients and scores. ``promised``: the fall of the model.
    """
    length = 1.0
    for _ in range(40):
        after = Point(point.problem, z, f=point.f + length * shift)
        if after.objective <= point.objective + 1e-4 * length * min(promised, 0.0) + rounding:
            return after
        length *= 0.5
        z = point.z + length * d
    return point


def _proximal(
    problem: SoftmaxProblem, current: Point, tol: float, max_iter: int, null: float
) -> tuple[Point, int, str]:
    """Cycles over the classes, each with the quadratic model of its own scores; a joint line search."""
    last, stuck = np.inf, 0
    for steps in range(max_iter + 1):
        if steps % 5 == 0 or steps == max_iter:
            if is_close(current.objective, problem.dual(current.losses.shares), tol, null):
                return current, steps, "optimal"
            if steps == max_iter:
                break
        before = current
        for k in range(problem.n_classes):
            current = _one_class(problem, current, k, tol)
        current = _extrapolated(problem, before, current)
        stuck = stuck + 1 if current.objective >= last * (1.0 - 1e-16) else 0
        last = current.objective
        if stuck >= 30:
            return current, steps + 1, "precision"
    return current, max_iter, "iteration limit"


def _one_class(problem: SoftmaxProblem, current: Point, k: int, tol: float) -> Point:
    """A prox-Newton step of the coefficients of one class."""
    design, share = problem.design, current.losses.shares[:, k]
    w = problem.s * share * (1.0 - share)
    pull = problem.s * (problem.truth[:, k] - share)
    beta = current.z[k, :-1].copy()
    shift, b, _ = design.sweep(
        np.arange(design.columns, dtype=np.int32), w, -design.sums(pull), beta,
        l1=problem.l1, l2=problem.l2, intercept=problem.intercept, g0=-float(pull.sum()),
        tolerance=1e-3 * max(tol, 1e-12), most=30,
    )  # fmt: skip
    d, shifts = np.zeros_like(current.z), np.zeros_like(current.f)
    d[k], shifts[:, k] = np.append(beta - current.z[k, :-1], b), shift + b
    z = current.z + d
    z[k, :-1] = beta
    promised = float(-(pull @ (shift + b))) + problem.penalty(beta) - problem.penalty(current.z[k, :-1])
    return _backtrack(current, z, d, shifts, promised, 1e-15 * current.objective)


def _extrapolated(problem: SoftmaxProblem, before: Point, current: Point) -> Point:
    """Further along the way of the last cycle, while the objective falls; zeros stay."""
    move = current.z - before.z
    move[:, :-1][current.z[:, :-1] == 0.0] = 0.0
    for factor in (8.0, 2.0, 0.5):
        z = current.z + factor * move
        flipped = np.sign(z[:, :-1]) * np.sign(current.z[:, :-1]) < 0
        z[:, :-1][flipped] = 0.0
        after = Point(problem, z)
        if after.objective < current.objective:
            return after
    return current

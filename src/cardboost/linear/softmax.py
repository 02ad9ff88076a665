"""Solvers of multinomial logistic regression: Newton steps by conjugate gradients (l1 = 0), and prox-Newton
steps class by class. Proximal gradients are in ``gradient.py``.

    min  sum s_i (log sum_k exp f_ik - f_i,y_i) + l1 |W|_1 + (l2 / 2) |W|_2^2,    f = X W' + b
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cardboost.linear.design import Array
from cardboost.linear.problem import Coefficients, Fit, Point, SoftmaxProblem, is_close
from cardboost.problem.trace import Status


def solve_softmax(
    problem: SoftmaxProblem, solver: str, tol: float, max_iter: int, before: Coefficients | None
) -> Fit:
    """The optimum to a relative gap of ``tol``."""
    b, null = problem.null()
    current = Point(problem, problem.start(before, b))
    newton = solver == "newton"
    squares = np.append(problem.design.second_moments(problem.s), 1.0)
    every, patience = (1, 1) if newton else (5, 30)  # steps from proof to proof, and in vain before the end
    status, steps, stuck = Status.ITERATION_LIMIT, 0, 0
    while True:
        due = steps % every == 0 or steps >= max_iter
        if due and is_close(current.objective, problem.dual(current.losses.shares), tol, null):
            status = Status.OPTIMAL
            break
        small = problem.l1 == 0.0 == problem.l2 and current.objective <= 1e-8 * null
        if small and (current.f.argmax(axis=1) == problem.y).all():
            status = Status.SEPARABLE
            break
        if steps >= max_iter:
            break
        current, lower = _newton_step(current, squares) if newton else _cycle(current, tol)
        steps, stuck = steps + 1, 0 if lower else stuck + 1
        if stuck >= patience:
            status = Status.PRECISION
            break
    bound = problem.dual(current.losses.shares)
    return Fit(current.z[:, :-1], current.z[:, -1], current.objective, bound, max(1, steps), status)


def _newton_step(current: Point, squares: Array) -> tuple[Point, bool]:
    """The point after a step by conjugate gradients, and whether it lowers the objective: if not, the same.

    ``squares``: the mean square of every column, and of the intercept.
    """
    problem = current.problem
    s, slope, shares = problem.s[:, None], current.gradient, current.losses.shares

    def product(v: Array) -> Array:
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
    promised, rounding = float((slope * d).sum()), 2e-15 * current.objective
    shift = problem.scores(d[:, :-1], d[:, -1])
    after = _backtrack(current, current.z + d, d, shift, promised, rounding)
    lower = after is not current and (after.objective < current.objective or promised > -rounding)
    return after if lower else current, lower


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


def _cycle(before: Point, tol: float) -> tuple[Point, bool]:
    """The point after a cycle over the classes, each with the quadratic model of its own scores, and whether
    it lowers the objective."""
    current = before
    for k in range(len(before.z)):
        current = _one_class(current, k, tol)
    current = _extrapolated(before, current)
    return current, current.objective < before.objective * (1.0 - 1e-16)


def _one_class(current: Point, k: int, tol: float) -> Point:
    """A prox-Newton step of the coefficients of one class."""
    problem, share = current.problem, current.losses.shares[:, k]
    design = problem.design
    w = problem.s * share * (1.0 - share)
    pull = problem.s * (problem.truth[:, k] - share)
    beta = current.z[k, :-1].copy()
    model = problem.quadratic(pull) | {"tolerance": 1e-3 * max(tol, 1e-12)}
    which = np.arange(design.columns, dtype=np.int32)
    shift, b = design.sweep(which, w, -design.sums(pull), beta, **model)
    d, shifts = np.zeros_like(current.z), np.zeros_like(current.f)
    d[k], shifts[:, k] = np.append(beta - current.z[k, :-1], b), shift + b
    z = current.z + d
    z[k, :-1] = beta
    promised = float(-(pull @ (shift + b))) + problem.penalty(beta) - problem.penalty(current.z[k, :-1])
    return _backtrack(current, z, d, shifts, promised, 1e-15 * current.objective)


def _extrapolated(before: Point, current: Point) -> Point:
    """Further along the way of the last cycle, while the objective falls; zeros stay."""
    move = current.z - before.z
    move[:, :-1][current.z[:, :-1] == 0.0] = 0.0
    for factor in (8.0, 2.0, 0.5):
        z = current.z + factor * move
        flipped = np.sign(z[:, :-1]) * np.sign(current.z[:, :-1]) < 0
        z[:, :-1][flipped] = 0.0
        after = Point(current.problem, z)
        if after.objective < current.objective:
            return after
    return current

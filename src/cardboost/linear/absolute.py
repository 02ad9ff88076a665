"""Least absolute deviations, with l1 and l2.

    min  sum s_i |y_i - x_i beta - b| + l1 |beta|_1 + (l2 / 2) |beta|_2^2

Without l2 it is a linear program: HiGHS gives a vertex and its dual. With l2 it is a quadratic program,
solved by an interior-point method whose steps are weighted least squares. Either way u, the multipliers of
the rows with |u_i| <= s_i, are the dual point: u' y less what the features can gain is the lower bound.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog

from cardboost.linear.design import Array
from cardboost.linear.problem import AbsoluteProblem, Fit, is_close
from cardboost.problem.trace import Status

Solution = tuple[
    Array, float, Array, int, Status
]  # coefficients, intercept, row weights, steps, why it ended


def least_absolute(problem: AbsoluteProblem, tol: float, max_iter: int) -> Fit:
    """The optimum and its row weights."""
    unit = float(np.abs(problem.y).max(initial=0.0)) or 1.0
    # targets of size 1: the tolerances of the solvers are absolute
    scaled = replace(
        problem, y=problem.y / unit, l2=problem.l2 * unit, target_size=problem.size_of_targets() / unit
    )
    solve = _interior if problem.l2 > 0.0 else _linear_program
    coef, b, u, steps, status = solve(scaled, tol, max_iter)
    coef, b = coef * unit, b * unit
    u, bound = problem.dual(u)
    objective = problem.objective(coef, b)
    if is_close(objective, bound, tol, problem.null()[1]):
        status = Status.OPTIMAL
    return Fit(coef, b, objective, bound, max(1, steps), status, u)


def _linear_program(problem: AbsoluteProblem, tol: float, max_iter: int) -> Solution:
    """A vertex by HiGHS. Rows are scaled to weights near 1, as its tolerances are absolute."""
    m, n = problem.design.rows, problem.design.columns
    matrix, eye = sparse.csc_array(problem.design.matrix), sparse.eye_array(m, format="csc")
    split, ends = problem.l1 > 0.0, int(problem.intercept)
    features = 2 * n if split else n
    blocks = [matrix, -matrix] if split else [matrix]
    blocks += [sparse.csc_array(np.ones((m, 1)))] * ends
    scale = 1.0 / float(problem.s.max())
    prices = np.full(features, problem.l1 * scale)
    least = np.concatenate([np.full(features, 0.0 if split else -np.inf), [-np.inf] * ends, np.zeros(2 * m)])
    bounds: Any = np.column_stack([least, np.full(len(least), np.inf)])
    result = linprog(
        np.concatenate([prices, np.zeros(ends), np.tile(problem.s * scale, 2)]),
        A_eq=sparse.hstack([*blocks, eye, -eye], format="csc"),
        b_eq=problem.y,
        bounds=bounds,
        method="highs",
        options={"maxiter": max_iter * 100, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        return np.zeros(n), problem.null()[0], np.zeros(m), int(result.nit), Status.ITERATION_LIMIT
    coef = result.x[:n] - result.x[n : 2 * n] if split else result.x[:n]
    b = float(result.x[features]) if problem.intercept else 0.0
    status = Status.ITERATION_LIMIT if result.status == 1 else Status.PRECISION
    return coef, b, np.asarray(result.eqlin.marginals) / scale, int(result.nit), status


def _interior(problem: AbsoluteProblem, tol: float, max_iter: int) -> Solution:
    """Primal-dual interior-point steps. Row weights, and products within l1, stay strictly inside."""
    design, s, y = problem.design, problem.s, problem.y
    l1, l2, split = problem.l1, problem.l2, problem.l1 > 0.0
    b, null = problem.null()
    m, n = design.rows, design.columns
    u, size = np.zeros(m), max(null, 1e-12)
    up, down = np.maximum(y - b, 0.0) + size, np.maximum(b - y, 0.0) + size  # residual = up - down
    plus, minus = np.full(n, size), np.full(n, size)  # coefficients = plus - minus
    coef = np.zeros(n)
    best = (np.inf, coef, b, u)
    sums = np.zeros(n)
    for steps in range(1, min(max_iter, 200) + 1):
        above, below = s - u, s + u
        if not min(above.min(), below.min()) > 0.0:
            return *best[1:], steps, Status.PRECISION
        over, under = l1 + l2 * coef - sums, l1 - l2 * coef + sums
        pairs = float(up @ above + down @ below) + (float(plus @ over + minus @ under) if split else 0.0)
        count = 2 * m + (2 * n if split else 0)
        rest = y - design.scores(coef) - b - (up - down)
        centre = 0.1 * pairs / count
        ratio_up, ratio_down = up / above, down / below
        d = ratio_up + ratio_down
        e = (centre / above - up) - (centre / below - down)
        right = design.sums((rest - e) / d)
        h = design.bordered_gram(1.0 / d, problem.intercept)
        diagonal = np.full(n, l2)
        if split:
            spread = plus / over + minus / under
            shift = (centre / over - plus) - (centre / under - minus)
            diagonal += 1.0 / spread
            right += shift / spread
        else:
            right += sums - l2 * coef
        right = np.append(right, float(((rest - e) / d).sum()) + float(u.sum()))
        h[np.arange(n), np.arange(n)] += diagonal
        if not problem.intercept:
            right[-1] = 0.0
        if not (np.isfinite(h).all() and np.isfinite(right).all()):
            return *best[1:], steps, Status.PRECISION
        move = _solve(h, right)
        d_coef, d_b = move[:-1], float(move[-1])
        d_u = (rest - e - design.scores(d_coef) - d_b) / d
        d_sums = design.sums(d_u)
        d_up = centre / above - up + ratio_up * d_u
        d_down = centre / below - down - ratio_down * d_u
        limits = [(up, d_up), (down, d_down), (above, -d_u), (below, d_u)]
        if split:
            d_over = l2 * d_coef - d_sums
            d_plus = centre / over - plus - plus / over * d_over
            d_minus = centre / under - minus + minus / under * d_over
            limits += [(plus, d_plus), (minus, d_minus), (over, d_over), (under, -d_over)]
        length = min(1.0, *(0.99 * _room(value, change) for value, change in limits))
        up, down, u, b = up + length * d_up, down + length * d_down, u + length * d_u, b + length * d_b
        coef = coef + length * d_coef
        if split:
            plus, minus = plus + length * d_plus, minus + length * d_minus
        sums = design.sums(u)
        value, bound = problem.objective(coef, b), problem.dual(u)[1]
        if value - bound < best[0]:
            best = (value - bound, coef, b, u)
            if split:  # coefficients whose price is not reached are 0, up to the barrier
                rounded = np.where((plus < over) & (minus < under), 0.0, coef)
                if problem.objective(rounded, b) <= value + 0.3 * tol * value:
                    best = (value - bound, rounded, b, u)
        if value - bound <= 0.1 * tol * value or value <= 1e-14:
            return *best[1:], steps, Status.OPTIMAL
        if pairs <= 1e-17 * size or not np.isfinite(pairs):
            return *best[1:], steps, Status.PRECISION
    return *best[1:], steps, Status.ITERATION_LIMIT


def _room(value: Array, change: Array) -> float:
    """How far one may go until a number becomes 0; more than 1 counts as 1."""
    falling = change < 0.0
    return float(np.min(-value[falling] / change[falling], initial=2.0))


def _solve(h: Array, right: Array) -> Array:
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(h), 1e-300))
    h = h * scale[:, None] * scale
    ridge = 0.0
    while True:
        try:
            h[np.arange(len(h)), np.arange(len(h))] = 1.0 + ridge
            return scale * cho_solve(cho_factor(h, lower=True), scale * right)
        except np.linalg.LinAlgError:
            ridge = max(1e-14, 100.0 * ridge)

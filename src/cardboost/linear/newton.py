"""Newton's method for l1 = 0: iteratively reweighted least squares.

A step solves (X' W X + l2) d = X' u - l2 beta with W the curvature of the rows. On tall dense tables the
matrix
is made of some of the rows, or is kept from an earlier point, and quasi-Newton pairs correct it: a step is
then
one pass over the rows. Where that is slow the matrix is made again, of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from cardboost import _kernels
from cardboost.linear.design import Design
from cardboost.linear.problem import Fit, LinearProblem, Rows

Array = NDArray[np.float64]

LARGEST_FACTOR = 2500  # columns whose X' W X is factorised; with more its diagonal has to do
_CHEAP = 2e8  # rows times columns squared: a new matrix for every step
_PAIRS = 10
_SAMPLE = 20  # rows per column that the first matrix is made of
_SINGULAR = 1e-6  # a smaller pivot, with all columns of length 1, is none
_FAST = 0.7  # by which a step shrinks the gradient, in its own norm
SEPARATED = 1e-8  # share of the loss without features at which separated rows are left alone


@dataclass(frozen=True, eq=False)
class _Point:
    """Coefficients with the intercept last, and everything that one pass over the rows shows there."""

    z: Array
    f: Array
    at: Rows
    sums: Array
    objective: float
    gradient: Array

    @classmethod
    def make(cls, problem: LinearProblem, z: Array) -> _Point:
        coef, b = z[:-1], float(z[-1])
        design = problem.design
        if design.by_rows:
            out = np.empty((3, design.rows))
            squared = problem.loss == "squared"
            loss, sums = _kernels.rows_pass(
                design.matrix, coef, b, squared, problem.y, problem.s, out, design.threads
            )
            f, at = out[0], Rows(loss, out[1], out[2])
        else:
            f = problem.scores(coef, b)
            at = problem.rows(f)
            sums = design.sums(at.pull)
        slope = -float(at.pull.sum()) if problem.intercept else 0.0
        gradient = np.append(problem.l2 * coef - sums, slope)
        return cls(z, f, at, sums, at.loss + problem.penalty(coef), gradient)


class _Metric:
    """X' W X + l2 in a form that can be solved with, and pairs of steps and gradients that correct it."""

    def __init__(self, problem: LinearProblem, design: Design, w: Array) -> None:
        self.pairs: list[tuple[Array, Array, float]] = []
        moments = design.sums(w)
        total = float(w.sum())
        self.factor: Any = None
        if design.columns > LARGEST_FACTOR:
            self.diagonal = np.append(design.second_moments(w) + problem.l2, total)
            self.diagonal[self.diagonal <= 0.0] = 1.0
            return
        h = np.empty((design.columns + 1, design.columns + 1))
        h[:-1, :-1] = design.gram(w)
        h[-1, :-1] = h[:-1, -1] = moments if problem.intercept else 0.0
        h[-1, -1] = total if problem.intercept and total > 0.0 else 1.0
        h[np.arange(design.columns), np.arange(design.columns)] += problem.l2
        diagonal = np.diagonal(h).copy()
        diagonal[diagonal <= 0.0] = 1.0
        self.scale = 1.0 / np.sqrt(diagonal)
        h *= self.scale[:, None] * self.scale
        try:
            self.factor = cho_factor(h, lower=True, check_finite=False)
            if np.diagonal(self.factor[0]).min() > _SINGULAR:
                return
        except np.linalg.LinAlgError:
            pass
        values, vectors = np.linalg.eigh(h)  # of many solutions of a singular system the shortest
        held = values > _SINGULAR**2 * values[-1]
        self.factor = vectors[:, held] / np.sqrt(values[held])

    def solve(self, g: Array) -> Array:
        """The step against this gradient's direction: two loops over the pairs around the matrix."""
        q, shares = g.copy(), []
        for step, change, product in reversed(self.pairs):
            share = float(step @ q) / product
            shares.append(share)
            q -= share * change
        if self.factor is None:
            q /= self.diagonal
        elif isinstance(self.factor, np.ndarray):
            q = self.scale * (self.factor @ (self.factor.T @ (self.scale * q)))
        else:
            q = self.scale * cho_solve(self.factor, self.scale * q, check_finite=False)
        for (step, change, product), share in zip(self.pairs, reversed(shares), strict=True):
            q += (share - float(change @ q) / product) * step
        return q

    def learn(self, step: Array, change: Array) -> None:
        product = float(step @ change)
        if product > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.pairs = [*self.pairs[-(_PAIRS - 1) :], (step, change, product)]


def newton(
    problem: LinearProblem, tol: float, max_iter: int, coef: Array | None = None, b: float = 0.0
) -> Fit:
    """The optimum for l1 = 0 to a relative gap of ``tol``."""
    null = problem.null()
    design = problem.design
    z = np.append(np.zeros(design.columns), null[0]) if coef is None else np.append(coef, b)
    tall = design.rows * design.columns**2 > _CHEAP and design.columns <= LARGEST_FACTOR
    point, metric = None, None
    if tall and design.by_rows and design.rows >= 2 * _SAMPLE * design.columns:
        z, metric = _on_a_sample(problem, z)
    point = _Point.make(problem, z)
    status, steps, stuck, bound = "iteration limit", 0, 0, 0.0
    limit = problem.box() if problem.l2 == 0.0 else None
    last = np.inf
    done = False
    while True:
        if not tall or last <= 1e4 * tol * point.objective or steps % 5 == 0 or steps >= max_iter:
            point, bound, done = _proof(problem, point, tol, null[1])
        if done:
            status = "optimal"
            break
        if limit is not None and _separated(problem, point, null[1], limit):
            status = "separable"
            break
        if steps >= max_iter:
            break
        if metric is None or (not tall and problem.curved):
            metric = _Metric(problem, design, point.at.curvature)
        d = -metric.solve(point.gradient)
        if not problem.intercept:
            d[-1] = 0.0
        decrement = -float(d @ point.gradient)
        if tall and metric is not None and decrement > _FAST**2 * last and metric.pairs:
            metric, last = None, np.inf  # too slow: a new matrix, of all rows
            stuck += 1
            if stuck < 8:
                continue
            metric = _Metric(problem, design, point.at.curvature)
            d = -metric.solve(point.gradient)
            decrement = -float(d @ point.gradient)
        last = decrement
        after = _step(problem, point, d, decrement)
        steps += 1
        if after is None:
            if metric.pairs:
                metric = None
                continue
            status = "precision"
            break
        if tall or design.columns > LARGEST_FACTOR:
            metric.learn(after.z - point.z, after.gradient - point.gradient)
        point = after
    coef, b, objective = point.z[:-1], float(point.z[-1]), point.objective
    if status != "optimal":
        b, objective, bound = problem.certified(coef, b)
        if status == "precision" and problem.close(objective, bound, tol, null[1]):
            status = "optimal"
    return Fit(coef, b, objective, bound, steps, status)


def _step(problem: LinearProblem, point: _Point, d: Array, decrement: float) -> _Point | None:
    """The point after a step that lowers the objective, or None."""
    rounding = 1e-15 * abs(point.objective)
    length = 1.0
    for _ in range(40):
        after = _Point.make(problem, point.z + length * d)
        if after.objective <= point.objective - 1e-4 * length * decrement:
            return after
        small = decrement <= 10.0 * rounding and after.objective <= point.objective + rounding
        if small and np.linalg.norm(after.gradient) < 0.5 * np.linalg.norm(point.gradient):
            return after  # the objective cannot tell any more, the gradient can
        length *= 0.5
        if decrement <= rounding:
            break
    return None


def _proof(problem: LinearProblem, point: _Point, tol: float, null: float) -> tuple[_Point, float, bool]:
    """The bound at this point; where it is close, with the intercept made exact first."""
    guess = problem.dual(point.at.pull, point.sums)
    if not problem.close(point.objective, guess, 2.0 * tol, null):
        return point, 0.0, False
    pull = point.at.pull
    if problem.intercept and abs(float(pull.sum())) > 1e-16:
        f, b, at = problem.balance(point.f, float(point.z[-1]))
        z = np.append(point.z[:-1], b)
        pull = problem.balanced_pull(at.pull)
        sums = problem.design.sums(pull)
        coef = z[:-1]
        gradient = np.append(problem.l2 * coef - sums, -float(at.pull.sum()))
        point = _Point(z, f, at, sums, at.loss + problem.penalty(coef), gradient)
    bound = problem.dual(pull, point.sums)
    return point, bound, problem.close(point.objective, bound, tol, null)


def _separated(problem: LinearProblem, point: _Point, null: float, limit: Array) -> bool:
    """Whether there is no end to the coefficients: rows all on their side, or the box left."""
    if not problem.curved:
        return False
    if (np.abs(point.z[:-1]) > limit).any():
        return True
    return point.objective <= SEPARATED * null and bool((problem.y * point.f > 0.0).all())


def _on_a_sample(problem: LinearProblem, z: Array) -> tuple[Array, _Metric]:
    """A start and a matrix from some of the rows."""
    design = problem.design
    wanted = max(2048, _SAMPLE * design.columns)
    rows = np.sort(np.random.default_rng(0).choice(design.rows, min(wanted, design.rows), replace=False))
    part = design.take(rows)
    own = replace(problem, design=part, y=problem.y[rows], s=problem.s[rows] / problem.s[rows].sum())
    point = _Point.make(own, z)
    metric = _Metric(own, part, point.at.curvature)
    for _ in range(12):
        d = -metric.solve(point.gradient)
        if not problem.intercept:
            d[-1] = 0.0
        decrement = -float(d @ point.gradient)
        after = _step(own, point, d, decrement)
        if after is None:
            break
        metric.learn(after.z - point.z, after.gradient - point.gradient)
        point = after
        if decrement < 1e-3 * point.objective:
            break
    return point.z, _Metric(own, part, point.at.curvature)

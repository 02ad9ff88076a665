"""Newton's method for l1 = 0: iteratively reweighted least squares.

A step solves (X' W X + l2) d = X' u - l2 beta with W the curvature of the rows. On small tables the matrix is
computed for every step. On large ones it is kept, and quasi-Newton pairs correct it, so that a step is one
pass over the rows. Dense tables with many rows start from the optimum of a sample, with the matrix of the
sample, or with its diagonal where that is enough. Where convergence is slow the matrix of all rows is
computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from cardboost import _kernels
from cardboost.linear.design import Design
from cardboost.linear.problem import Fit, LinearProblem, RowLosses, is_close

Array = NDArray[np.float64]

LARGEST_FACTOR = 2500  # columns whose X' W X is factorised; with more its diagonal has to do
_CHEAP = 2e8  # rows times columns squared: a new matrix for every step
_WORTH_SAMPLE = 5e5  # rows times columns squared from which a start on a sample pays
_PAIRS = 10
_SAMPLE = 30  # rows per column of a sample, at least
_SMALLEST_SAMPLE = 500
_SAMPLE_SHARE = 0.1  # of the rows, at least
_CHEAP_GRAM = 25.0  # share of the rows times columns: the matrix of a sample costs less than two passes
_SAMPLE_STEPS = 8  # with the diagonal alone; correlated columns need more, and the matrix
_SAMPLE_PRECISION = 1e-2  # of the objective: a decrement below what a sample can tell about all rows
_SINGULAR = 1e-6  # a smaller pivot, with all columns of length 1, is none
_FAST = 0.7  # by which a step shrinks the gradient, in its own norm
_SLOW_STEPS = 2  # in a row after which the matrix is computed again
SEPARATED = 1e-8  # share of the loss without features at which separated rows are left alone


@dataclass(frozen=True, eq=False)
class _Point:
    """Coefficients with the intercept last, and everything that one pass over the rows shows there."""

    z: Array
    f: Array
    losses: RowLosses
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
            f, losses = out[0], RowLosses(loss, out[1], out[2])
        else:
            f = problem.scores(coef, b)
            losses = problem.rows(f)
            sums = design.sums(losses.pull)
        slope = -float(losses.pull.sum()) if problem.intercept else 0.0
        gradient = np.append(problem.l2 * coef - sums, slope)
        return cls(z, f, losses, sums, losses.loss + problem.penalty(coef), gradient)


class _Metric:
    """X' W X + l2, or its diagonal, to solve with; pairs of steps and gradients correct it."""

    def __init__(self, problem: LinearProblem, design: Design, w: Array, diagonal: bool = False) -> None:
        self.pairs: list[tuple[Array, Array, float]] = []
        self.intercept = problem.intercept
        self.replaceable = design.columns <= LARGEST_FACTOR  # by the matrix of all rows
        self.factor: Array | None = None  # of Cholesky's method, lower
        self.root: Array | None = None  # of a singular matrix's pseudoinverse
        total = float(w.sum())
        if diagonal or design.columns > LARGEST_FACTOR:
            squares = np.append(design.second_moments(w) + problem.l2, total)
            self.scale = 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))
            return
        h = np.empty((design.columns + 1, design.columns + 1))
        h[:-1, :-1] = design.gram(w)
        h[-1, :-1] = h[:-1, -1] = design.sums(w) if problem.intercept else 0.0
        h[-1, -1] = total if problem.intercept and total > 0.0 else 1.0
        h[np.arange(design.columns), np.arange(design.columns)] += problem.l2
        squares = np.diagonal(h)
        self.scale = 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))
        h *= self.scale[:, None] * self.scale
        self.factor, singular = lapack.dpotrf(h, lower=1)
        if singular or np.diagonal(self.factor).min() <= _SINGULAR:
            values, vectors = np.linalg.eigh(h)  # of many solutions of a singular system the shortest
            positive = values > _SINGULAR**2 * values[-1]
            self.root = vectors[:, positive] / np.sqrt(values[positive])

    def direction(self, gradient: Array) -> Array:
        """The step downhill: two loops over the pairs around the matrix."""
        q, shares = -gradient, []
        for step, change, product in reversed(self.pairs):
            shares.append(float(step @ q) / product)
            q -= shares[-1] * change
        q *= self.scale
        if self.root is not None:
            q = self.root @ (self.root.T @ q)
        elif self.factor is not None:
            q = lapack.dpotrs(self.factor, q, lower=1)[0]
        q *= self.scale
        for (step, change, product), share in zip(self.pairs, reversed(shares), strict=True):
            q += (share - float(change @ q) / product) * step
        if not self.intercept:
            q[-1] = 0.0
        return q

    def learn(self, before: _Point, after: _Point) -> None:
        step, change = after.z - before.z, after.gradient - before.gradient
        product = float(step @ change)
        if product > 1e-12 * math.sqrt(float(step @ step) * float(change @ change)):
            self.pairs = [*self.pairs[-(_PAIRS - 1) :], (step, change, product)]


def newton(
    problem: LinearProblem, tol: float, max_iter: int, coef: Array | None = None, b: float = 0.0
) -> Fit:
    """The optimum for l1 = 0 to a relative gap of ``tol``."""
    null = problem.null()
    design = problem.design
    z = np.append(np.zeros(design.columns), null[0]) if coef is None else np.append(coef, b)
    work = design.rows * design.columns**2
    metric = None
    if work > _WORTH_SAMPLE and design.by_rows and 2 * _sample_size(design) <= design.rows:
        z, metric = _start_on_sample(problem, z)
    fresh = metric is None and work <= _CHEAP and design.columns <= LARGEST_FACTOR  # a matrix for every step
    point = _Point.make(problem, z)
    status, steps, slow, bound = "iteration limit", 0, 0, 0.0
    limit = problem.box if problem.l2 == 0.0 else None
    last = np.inf
    done = False
    while True:
        if fresh or last <= 1e4 * tol * point.objective or steps % 5 == 0 or steps >= max_iter:
            point, bound, done = _proof(problem, point, tol, null[1])
        if done:
            status = "optimal"
            break
        if limit is not None and _separated(problem, point, null[1], limit):
            status = "separable"
            break
        if steps >= max_iter:
            break
        if metric is None or (fresh and problem.curved) or slow == _SLOW_STEPS:
            metric, slow = _Metric(problem, design, point.losses.curvature), 0
        d = metric.direction(point.gradient)
        decrement = -float(d @ point.gradient)
        after = _step(problem, point, d, decrement)
        steps += 1
        if after is None:
            if metric.pairs:
                metric = None
                continue
            status = "precision"
            break
        if not fresh:
            metric.learn(point, after)
            slow = slow + 1 if decrement > _FAST**2 * last and metric.replaceable else 0
        point, last = after, decrement
    coef, b, objective = point.z[:-1], float(point.z[-1]), point.objective
    if status != "optimal":
        b, objective, bound = problem.certified(coef, b)
        if status == "precision" and is_close(objective, bound, tol, null[1]):
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
    """The bound at this point; where it is close, with the intercept made exact first.

    With an exact intercept the gap is |gradient|^2 / (2 l2), or at least (box - |coef|)' |gradient|: no pass
    over the rows is needed to see that a point is not close.
    """
    slope = point.gradient[:-1]
    if problem.l2 > 0.0:
        gap = float(slope @ slope) / (2.0 * problem.l2)
    else:
        gap = float((problem.box - np.abs(point.z[:-1])) @ np.abs(slope))
    if not is_close(point.objective, point.objective - gap, 2.0 * tol, null):
        return point, 0.0, False
    pull = point.losses.pull
    if problem.intercept and abs(float(pull.sum())) > 1e-16:
        f, b, losses = problem.balance(point.f, float(point.z[-1]), point.losses)
        z = np.append(point.z[:-1], b)
        pull = problem.balanced_pull(losses.pull)
        sums = problem.design.sums(pull)
        coef = z[:-1]
        gradient = np.append(problem.l2 * coef - sums, -float(losses.pull.sum()))
        point = _Point(z, f, losses, sums, losses.loss + problem.penalty(coef), gradient)
    bound = problem.dual(pull, point.sums)
    return point, bound, is_close(point.objective, bound, tol, null)


def _separated(problem: LinearProblem, point: _Point, null: float, limit: Array) -> bool:
    """Whether there is no end to the coefficients: rows all on their side, or the box left."""
    if not problem.curved:
        return False
    if (np.abs(point.z[:-1]) > limit).any():
        return True
    return point.objective <= SEPARATED * null and bool((problem.y * point.f > 0.0).all())


def _sample_size(design: Design) -> int:
    return max(_SMALLEST_SAMPLE + _SAMPLE * design.columns, int(_SAMPLE_SHARE * design.rows))


def _start_on_sample(problem: LinearProblem, z: Array) -> tuple[Array, _Metric]:
    """The optimum of some of the rows, roughly, and a metric for all rows that is made of them."""
    design = problem.design
    rows = np.sort(np.random.default_rng(0).choice(design.rows, _sample_size(design), replace=False))
    part = design.take(rows)
    sample = replace(problem, design=part, y=problem.y[rows], s=problem.s[rows] / problem.s[rows].sum())
    diagonal = len(rows) / design.rows * design.columns > _CHEAP_GRAM
    point = _Point.make(sample, z)
    metric = _Metric(sample, part, point.losses.curvature, diagonal=True)
    for step in range(1, 2 * _SAMPLE_STEPS):
        d = metric.direction(point.gradient)
        decrement = -float(d @ point.gradient)
        after = _step(sample, point, d, decrement)
        if after is None:
            break
        metric.learn(point, after)
        point = after
        if decrement < _SAMPLE_PRECISION * point.objective:
            break
        if step == _SAMPLE_STEPS:
            diagonal = False
            metric = _Metric(sample, part, point.losses.curvature)
    return point.z, _Metric(sample, part, point.losses.curvature, diagonal)

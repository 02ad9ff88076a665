"""Newton's method for l1 = 0: iteratively reweighted least squares.

A step solves (X' W X + l2) d = X' u - l2 beta with W the curvature of the rows. On small tables the matrix is
computed for every step. On large ones it is kept, and quasi-Newton pairs correct it, so that a step is one
pass over the rows. Dense tables with many rows start from the optimum of a sample, with the matrix of the
sample, or with its diagonal where that is enough. Where convergence is slow the matrix of all rows is
computed.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from cardboost import _kernels
from cardboost.linear.design import Array, Design
from cardboost.linear.problem import Coefficients, Fit, Point, RowLosses, ScoreProblem, is_close
from cardboost.problem.trace import Status

LARGEST_FACTOR = 2500  # columns whose X' W X is factorised; with more its diagonal has to do
_CHEAP = 2e8  # rows times columns squared: a new matrix for every step
_WORTH_SAMPLE = 5e5  # rows times columns squared from which a start on a sample pays
_PAIRS = 10
_SAMPLE = 30  # rows per column of a sample, at least
_SMALLEST_SAMPLE = 500
_GOLDEN = 0.6180339887498949
_SAMPLE_SHARE = 0.1  # of the rows, at least
_CHEAP_GRAM = 25.0  # share of the rows times columns: the matrix of a sample costs less than two passes
_SAMPLE_STEPS = 8  # with the diagonal alone; correlated columns need more, and the matrix
_SAMPLE_PRECISION = 1e-2  # of the objective: a decrement below what a sample can tell about all rows
_SINGULAR = 1e-6  # a smaller pivot, with all columns of length 1, is none
_NEARLY = 1.2  # a proof costs more than a step: it is tried where the exact intercept is likely to do
_FAST = 0.7  # by which a step shrinks the gradient, in its own norm
_SLOW_STEPS = 2  # in a row after which the matrix is computed again
SEPARATED = 1e-8  # share of the loss without features at which separated rows are left alone


def _point(problem: ScoreProblem, z: Array) -> Point:
    """A point, with everything that one pass over the rows of a dense table shows there."""
    design = problem.design
    if not design.by_rows:
        return Point(problem, z)
    f, pull, curvature = out = np.empty((3, design.rows))
    loss, objective, (slope, gradient) = _kernels.rows_pass(
        design.matrix, z, problem.l2, problem.intercept, problem.loss == "squared", problem.y, problem.s,
        out, design.threads,
    )  # fmt: skip
    losses = RowLosses(loss, pull, curvature)
    return Point(problem, z, f=f, losses=losses, slope=slope, objective=objective, gradient=gradient)


class _Metric:
    """X' W X + l2, or its diagonal, to solve with; pairs of steps and gradients correct it."""

    def __init__(self, problem: ScoreProblem, design: Design, w: Array, diagonal: bool = False) -> None:
        self.pairs = np.empty((_PAIRS, 2, design.columns + 1))  # the oldest first
        self.held = 0
        self.intercept = problem.intercept
        self.replaceable = design.columns <= LARGEST_FACTOR  # by the matrix of all rows
        self.factor: Array | None = None  # of Cholesky's method, upper
        self.root: Array | None = None  # of a singular matrix's pseudoinverse
        total = float(w.sum())
        if diagonal or design.columns > LARGEST_FACTOR:
            squares = np.append(design.second_moments(w) + problem.l2, total)
            self.scale = 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))
            return
        h = design.bordered_gram(w, problem.intercept)
        h[-1, -1] = total if problem.intercept and total > 0.0 else 1.0
        h[np.arange(design.columns), np.arange(design.columns)] += problem.l2
        squares = np.diagonal(h)
        self.scale = 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))
        h *= self.scale[:, None] * self.scale
        lower, singular = lapack.dpotrf(h, lower=1)
        self.factor = lower.T
        if singular or np.diagonal(lower).min() <= _SINGULAR:
            self.factor = None
            values, vectors = np.linalg.eigh(h)  # of many solutions of a singular system the shortest
            positive = values > _SINGULAR**2 * values[-1]
            self.root = vectors[:, positive] / np.sqrt(values[positive])

    def direction(self, gradient: Array) -> Array:
        """The step downhill."""
        d = _kernels.quasi_newton(gradient, self.scale, self.factor, self.root, self.pairs, self.held)
        if not self.intercept:
            d[-1] = 0.0
        return d

    def learn(self, before: Point, after: Point) -> None:
        if self.held == _PAIRS:
            self.pairs[:-1] = self.pairs[1:]
            self.held -= 1
        step, change = self.pairs[self.held]
        np.subtract(after.z, before.z, out=step)
        np.subtract(after.gradient, before.gradient, out=change)
        if step @ change > 1e-12 * math.sqrt(step @ step) * math.sqrt(change @ change):
            self.held += 1


def newton(problem: ScoreProblem, tol: float, max_iter: int, before: Coefficients | None = None) -> Fit:
    """The optimum for l1 = 0 to a relative gap of ``tol``."""
    b, null = problem.null()
    design = problem.design
    z = problem.start(before, b)
    work = design.rows * design.columns**2
    metric = None
    if work > _WORTH_SAMPLE and design.by_rows and 2 * _sample_size(design) <= design.rows:
        z, metric = _start_on_sample(problem, z)
    fresh = metric is None and work <= _CHEAP and design.columns <= LARGEST_FACTOR  # a matrix for every step
    point = _point(problem, z)
    status: Status | None = None
    steps, slow, bound, last, done = 0, 0, 0.0, np.inf, False
    while status is None:
        if fresh or last <= 1e4 * tol * point.objective or steps % 5 == 0 or steps >= max_iter:
            point, bound, done = _proof(problem, point, tol, null)
        if done:
            status = Status.OPTIMAL
        elif _separated(problem, point, null):
            status = Status.SEPARABLE
        elif steps >= max_iter:
            status = Status.ITERATION_LIMIT
        if status is not None:
            break
        if metric is None or (fresh and problem.curved) or slow == _SLOW_STEPS:
            metric, slow = _Metric(problem, design, point.losses.curvature), 0
        d = metric.direction(point.gradient)
        decrement = -float(d @ point.gradient)
        after = _step(problem, point, d, decrement)
        steps += 1
        if after is None:
            status = None if metric.held else Status.PRECISION
            metric = None
            continue
        if not fresh:
            metric.learn(point, after)
            slow = slow + 1 if decrement > _FAST**2 * last and metric.replaceable else 0
        point, last = after, decrement
    z, objective = point.z, point.objective
    if status is not Status.OPTIMAL:
        settled, objective, bound = problem.settled(Point(problem, z))
        z = settled.z
        if status is Status.PRECISION and is_close(objective, bound, tol, null):
            status = Status.OPTIMAL
    return Fit(z[:-1], float(z[-1]), objective, bound, steps, status)


def _step(problem: ScoreProblem, point: Point, d: Array, decrement: float) -> Point | None:
    """The point after a step that lowers the objective, or None."""
    rounding = 1e-15 * abs(point.objective)
    length = 1.0
    for _ in range(40):
        after = _point(problem, point.z + length * d)
        if decrement > rounding and after.objective <= point.objective - 1e-4 * length * decrement:
            return after
        small = decrement <= 10.0 * rounding and after.objective <= point.objective + rounding
        if small and np.linalg.norm(after.gradient) < 0.5 * np.linalg.norm(point.gradient):
            return after  # the objective cannot tell any more, the gradient can
        length *= 0.5
        if decrement <= rounding:
            break
    return None


def _proof(problem: ScoreProblem, point: Point, tol: float, null: float) -> tuple[Point, float, bool]:
    """The bound at this point; where it is close, with the intercept made exact first.

    With an exact intercept the gap is |gradient|^2 / (2 l2), or at least (box - |coef|)' |gradient|: no pass
    over the rows is needed to see that a point is not close.
    """
    slope = point.gradient[:-1]
    if problem.l2 > 0.0:
        gap = float(slope @ slope) / (2.0 * problem.l2)
    else:
        gap = float((problem.box - np.abs(point.z[:-1])) @ np.abs(slope))
    if not is_close(point.objective, point.objective - gap, _NEARLY * tol, null):
        return point, 0.0, False
    pull = point.losses.pull
    if problem.intercept and abs(float(pull.sum())) > 1e-16:
        f, b, losses = problem.balance(point.f, float(point.z[-1]), point.losses)
        pull = problem.balanced_pull(losses.pull)
        slope = np.append(-problem.design.sums(pull), -float(losses.pull.sum()))
        point = Point(problem, np.append(point.z[:-1], b), f=f, losses=losses, slope=slope)
    bound = problem.dual(pull, point.slope[:-1])
    return point, bound, is_close(point.objective, bound, tol, null)


def _separated(problem: ScoreProblem, point: Point, null: float) -> bool:
    """Whether there is no end to the coefficients: rows all on their side, or the box left."""
    if not problem.curved or problem.l2 > 0.0:
        return False
    if (np.abs(point.z[:-1]) > problem.box).any():
        return True
    return point.objective <= SEPARATED * null and bool((problem.y * point.f > 0.0).all())


def _sample_size(design: Design) -> int:
    return max(_SMALLEST_SAMPLE + _SAMPLE * design.columns, int(_SAMPLE_SHARE * design.rows))


def _sample(rows: int, size: int) -> NDArray[np.int64]:
    """One row of each of ``size`` parts of the rows, at places in them that have no period."""
    ends = np.arange(size + 1) * rows // size
    places = np.modf(_GOLDEN * np.arange(size))[0]
    return ends[:-1] + (places * np.diff(ends)).astype(np.int64)


def _start_on_sample(problem: ScoreProblem, z: Array) -> tuple[Array, _Metric]:
    """The optimum of some of the rows, roughly, and a metric for all rows that is made of them."""
    design = problem.design
    rows = _sample(design.rows, _sample_size(design))
    part = design.take(rows)
    sample = replace(problem, design=part, y=problem.y[rows], s=problem.s[rows] / problem.s[rows].sum())
    diagonal = len(rows) / design.rows * design.columns > _CHEAP_GRAM
    point = _point(sample, z)
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

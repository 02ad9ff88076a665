"""Boosting stage by stage over all stumps of a table."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.boosting.early_stopping import HeldOutBins
from cardboost.boosting.stagewise import (
    CONSTANT,
    MAX_TRIES,
    MIN_GAIN,
    Direction,
    Move,
    StageSettings,
    Step,
    StepSearch,
    first_constant,
)
from cardboost.boosting.stagewise_path import Course, StumpPath
from cardboost.boosting.steps import best_step
from cardboost.boosting.stump_task import StumpTask
from cardboost.dictionary.stumps import StumpPool, Stumps
from cardboost.problem.risk import RiskPoint
from cardboost.problem.trace import Status

Array = NDArray[np.float64]


class StumpSteps(StepSearch):
    """What rounds over stumps have in common: the distinct stumps so far, and their columns."""

    def __init__(self, task: StumpTask) -> None:
        self.task, self.dictionary, self.risk = task, task.dictionary, task.risk
        self.held_out: HeldOutBins | None = task.held_out
        self.held_out_risk = None if task.held_out is None else task.held_out.risk
        self.pool = StumpPool(task.dictionary)
        self._index: dict[tuple[int, int, int, bool], int] = {}

    def n_terms(self) -> int:
        return len(self._index)

    def index_of(self, stump: Stumps) -> int:
        """The column of a stump, which joins the pool where it is new."""
        line = int(self.dictionary.line_of(stump)[0])
        key = line, int(stump.cut[0]), int(stump.polarity[0]), bool(stump.missing_left[0])
        if key not in self._index:
            self._index[key] = self.pool.n_columns - self.pool.n_free
            self.pool.append(stump)
        return self._index[key]

    def column(self, stump: Stumps) -> Array:
        """Its value in every row, times the label where there are labels."""
        d = self.dictionary
        table = stump.signs().astype(np.float64)
        return _kernels.margins(d.matrix.bins, stump.feature, table, 0.0, d.sign, d.threads)

    def fresh_margins(self, course: Course) -> Array:
        d, total = self.dictionary, np.zeros(self.pool.n_columns)
        for column, weight in zip(course.columns, course.weights, strict=True):
            if column != CONSTANT:
                total[self.pool.n_free + column] += weight
        features, tables, _ = self.pool.tables(total)
        return _kernels.margins(d.matrix.bins, features, tables, course.intercept, d.sign, d.threads)

    def held_out_change(self, move: Move) -> Array:
        assert self.held_out is not None
        risk = self.held_out.risk
        if move.column == CONSTANT:
            assert risk.sign is not None
            return move.shift * risk.sign.astype(np.float64)
        j = self.pool.n_free + move.column
        feature = self.pool.stumps.feature[j : j + 1]
        table = move.weight * self.pool.signs[j : j + 1].astype(np.float64)
        return _kernels.margins(self.held_out.bins, feature, table, move.shift, risk.sign, risk.threads)

    def path(self, course: Course) -> StumpPath:
        return StumpPath.of_pool(self.task.frame, self.pool, course)


class ClassificationSteps(StumpSteps):
    """Two classes: the rule of largest edge, a stump or one of the two constants, and one step along it.

    A constant goes before a stump whose error is smaller by no more than tol / 2: what such a stump knows
    better is rows of next to no weight, and its step, made for the others, would decide these rows for good.
    """

    def __init__(self, task: StumpTask, settings: StageSettings, fit_intercept: bool) -> None:
        super().__init__(task)
        assert task.sign is not None
        self.settings, self.sign = settings, task.sign
        self.start = first_constant(self.risk, self.sign) if fit_intercept else 0.0

    def first_margins(self) -> Array:
        return self.start * self.sign.astype(np.float64)

    def best_move(self, point: RiskPoint) -> Move | Status:
        tries = MAX_TRIES if self.risk.loss.piecewise_linear else 1
        proposals = self.dictionary.largest_edges(point, tries)
        edges = [*proposals.edges.tolist(), abs(proposals.constant)]
        wrong = [*proposals.wrong[:-1], proposals.wrong[-1] - 0.5 * self.settings.tol * proposals.total]
        step: Step | Status = Status.NO_EDGE
        for k in sorted(range(len(edges)), key=wrong.__getitem__)[:tries]:
            stump = proposals.atoms[k : k + 1]
            column = self.column(stump) if len(stump) else self._constant(proposals.constant)
            direction = Direction(column, edges[k], proposals.wrong[k], proposals.total, signs=True)
            step = direction.step(point, self.settings)
            if step is not Status.STUCK:
                break
        if isinstance(step, Status):
            return step
        if len(stump):
            return step.as_move(self.index_of(stump))
        return step.as_move(CONSTANT, math.copysign(step.weight, proposals.constant))

    def _constant(self, side: float) -> Array:
        """The column of the rule "positive" for every row, or "negative" where ``side`` is below 0."""
        return math.copysign(1.0, side) * self.sign.astype(np.float64)


class RegressionSteps(StumpSteps):
    """A number: every round adds a step function with two free levels.

    A stump is chosen by the drop of least squares on the negative derivatives of the loss (the residuals
    themselves for the squared loss, their signs for the absolute one). Its two levels are then the best for
    the loss: means of residuals, weighted medians, or the end of a line search on either side.
    """

    def __init__(self, task: StumpTask, settings: StageSettings) -> None:
        super().__init__(task)
        self.learning_rate = settings.learning_rate
        self._empty_pool = StumpPool(task.dictionary)
        rows = np.zeros(task.dictionary.matrix.n_rows)
        self.start = self._best_level(rows, np.ones(len(rows)))

    def first_margins(self) -> Array:
        return np.full(self.dictionary.matrix.n_rows, self.start)

    def best_move(self, point: RiskPoint) -> Move | Status:
        proposals = self.dictionary.best_columns(point, MAX_TRIES, self._empty_pool, "gain")
        least = point.value * (1.0 - MIN_GAIN)
        for k in range(len(proposals)):
            stump, edge = proposals.atoms[k : k + 1], float(proposals.edges[k])
            column = self.column(stump)
            left, right = (
                self._best_level(point.F, (column * way > 0.0).astype(np.float64)) for way in (1, -1)
            )
            weight = 0.5 * self.learning_rate * (left - right)
            shift = 0.5 * self.learning_rate * (left + right)
            if weight < 0.0:
                turned = _turned(stump)
                if not self._allowed(turned):
                    continue
                stump, column, weight = turned, -column, -weight
            if weight == 0.0:
                continue
            margins = point.F + (shift + weight * column)
            if self.risk.evaluate(margins).value < least:
                return Move(self.index_of(stump), weight, shift, margins, edge, math.nan)
        return Status.STUCK if len(proposals) else Status.NO_EDGE

    def _allowed(self, stump: Stumps) -> bool:
        """Whether no direction of a feature forbids it."""
        side = 2 * int(stump.missing_left[0]) + (int(stump.polarity[0]) < 0)
        closed = self.dictionary.closed[self.dictionary.line_of(stump)[0], stump.cut[0]]
        return not closed & (1 << side)

    def _best_level(self, F: Array, inside: Array) -> float:
        """What is best added to the predictions of the rows inside."""
        risk = self.risk
        if risk.loss.quadratic:
            assert risk.target is not None
            sums = risk.weights.sums(np.where(inside > 0.0, risk.target - F, 0.0))
            weight = risk.weights.share(inside > 0.0) * risk.weights.total
            return float(sums[0]) / weight if weight > 0.0 else 0.0
        return best_step(risk, F, inside)


def _turned(stump: Stumps) -> Stumps:
    """The opposite of a single stump."""
    sets = {0: np.flatnonzero(stump.left[0])} if stump.one_of[0] else None
    return Stumps.make(stump.feature, stump.cut, -stump.polarity, stump.missing_left, stump.equals, sets)

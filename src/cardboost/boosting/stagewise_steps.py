"""The searches of boosting stage by stage: the best learner of a round, and the best step along it.

Two classes or a number, over all stumps of a table or over any weak learners.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.boosting.learner_task import LearnerTask
from cardboost.boosting.path import Course, LearnerPath, ModelFrame, StumpPath
from cardboost.boosting.stagewise import CONSTANT, Move, StageSettings, StepSearch
from cardboost.boosting.steps import adaboost_step, best_step
from cardboost.boosting.stump_task import StumpTask
from cardboost.boosting.task import HeldOutRows
from cardboost.dictionary.base import Scoring
from cardboost.dictionary.learners import LearnerPool, fit_clone
from cardboost.dictionary.resolve import FittedLearners, Part, ToFit
from cardboost.dictionary.stump_arrays import NO_STUMPS, Stumps
from cardboost.dictionary.stump_pool import StumpPool
from cardboost.model.fitted_learner import FittedLearner, method_of
from cardboost.model.learners import LearnerEnsemble, WeightedLearner
from cardboost.problem.losses import Exponential
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk, RiskPoint
from cardboost.problem.trace import Status

Array = NDArray[np.float64]

_MAX_TRIES = 8  # learners that are tried in a round where the best one does not lower a loss with corners
_MIN_GAIN = 1e-15  # share of the loss that a round must save
_CHANCE = 1e-12  # an error this close to 1/2 is one half and rounding
_CONSTANT_SHARE = 1e-24  # of its squared mean: a column that varies by less is a constant
_BY_GAIN = Scoring("gain")


def first_constant(task: StumpTask | LearnerTask) -> float:
    """The best constant score; where one class has next to no weight, as far as an intercept may go."""
    assert task.sign is not None
    best = task.risk.loss.best_constant(task.risk.weights.share(task.sign > 0))
    return min(max(best, -PriceRule.intercept_box), PriceRule.intercept_box)


def class_step(
    point: RiskPoint, column: Array, edge: float, wrong: int, total: int, signs: bool, settings: StageSettings
) -> Move | Status:
    """How far to go along a column, or why not; the number of the column is left open.

    Parameters
    ----------
    point : RiskPoint
        Where the round begins.
    column : array
        One number per row, labels multiplied in.
    edge : float
        At the present row weights.
    wrong, total : int
        Row weights, as whole numbers, of the rows that the learner gets wrong, and of all.
    signs : bool
        Whether the column has no other values than -1 and 1.
    settings : StageSettings
        Learning rate and tolerance.
    """
    risk = point.risk
    if wrong == 0 and bool((column > 0.0).all()):
        return Move(CONSTANT, 1.0, 0.0, column.copy(), edge, 0.0, alone=True)
    if not edge > 0.0 or (signs and 2 * wrong >= total * (1.0 - _CHANCE)):
        return Status.NO_EDGE
    if edge <= settings.tol:
        return Status.TOLERANCE
    if signs and type(risk.loss) is Exponential:
        step = adaboost_step(total - wrong, wrong)
    else:
        step = best_step(risk, point.F, column)
    if not step > 0.0:
        return Status.STUCK
    weight = settings.learning_rate * step
    margins = point.F + weight * column
    if risk.loss.piecewise_linear and not _lower(point, margins):
        return Status.STUCK
    return Move(CONSTANT, weight, 0.0, margins, edge, wrong / total)


def _lower(point: RiskPoint, margins: Array) -> bool:
    """Whether the loss at these margins is visibly lower."""
    return point.risk.evaluate(margins).value < point.value * (1.0 - _MIN_GAIN)


# ------------------------------------------------------------------------------------------------ stumps


class StumpSteps(StepSearch):
    """What rounds over stumps have in common: the distinct stumps so far, and their columns."""

    def __init__(self, task: StumpTask, settings: StageSettings, start: float) -> None:
        super().__init__(task, settings, start)
        self.dictionary, self.pool = task.dictionary, StumpPool(task.dictionary)
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
        d, n_free = self.dictionary, self.pool.n_free
        total = course.totals(range(self.pool.n_columns - n_free))
        features, tables, _ = self.pool.tables(np.append(np.zeros(n_free), total))
        return _kernels.margins(d.matrix.bins, features, tables, course.intercept, d.sign, d.threads)

    def held_out_change(self, move: Move) -> Array:
        risk, j = self.held_out.risk, self.pool.n_free + move.column
        if move.column == CONSTANT:
            return move.shift * risk.sign.astype(np.float64)
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

    def best_move(self, point: RiskPoint) -> Move | Status:
        tries = _MAX_TRIES if self.risk.loss.piecewise_linear else 1
        proposals = self.dictionary.largest_edges(point, tries)
        total, constant = proposals.total, proposals.constant
        edges = [*proposals.edges.tolist(), abs(constant)]
        wrong = [*proposals.wrong[:-1], proposals.wrong[-1] - 0.5 * self.settings.tol * total]
        move: Move | Status = Status.NO_EDGE
        for k in sorted(range(len(edges)), key=wrong.__getitem__)[:tries]:
            stump = proposals.atoms[k : k + 1]
            column = self.column(stump) if len(stump) else math.copysign(1.0, constant) * self.signs
            move = class_step(point, column, edges[k], proposals.wrong[k], total, True, self.settings)
            if move is not Status.STUCK:
                break
        if isinstance(move, Status):
            return move
        if len(stump):
            return replace(move, column=self.index_of(stump))
        return replace(move, shift=math.copysign(move.weight, constant))


class RegressionSteps(StumpSteps):
    """A number: every round adds a step function with two free levels.

    A stump is chosen by the drop of least squares on the negative derivatives of the loss (the residuals
    themselves for the squared loss, their signs for the absolute one). Its two levels are then the best for
    the loss: means of residuals, weighted medians, or the end of a line search on either side.
    """

    def __init__(self, task: StumpTask, settings: StageSettings) -> None:
        rows = np.zeros(task.dictionary.matrix.n_rows)
        super().__init__(task, settings, _best_level(task.risk, rows, np.ones(len(rows))))
        self._empty_pool = StumpPool(task.dictionary)

    def best_move(self, point: RiskPoint) -> Move | Status:
        proposals = self.dictionary.best_columns(point, _MAX_TRIES, self._empty_pool, _BY_GAIN)
        rate = 0.5 * self.settings.learning_rate
        for k in range(len(proposals)):
            stump, edge = proposals.atoms[k : k + 1], float(proposals.edges[k])
            column = self.column(stump)
            sides = ((column * way > 0.0).astype(np.float64) for way in (1, -1))
            left, right = (_best_level(self.risk, point.F, side) for side in sides)
            weight, shift = rate * (left - right), rate * (left + right)
            if weight < 0.0:
                stump = replace(stump, polarity=-stump.polarity)
                if not self.dictionary.allows(stump):
                    continue
                column, weight = -column, -weight
            margins = point.F + (shift + weight * column)
            if weight != 0.0 and _lower(point, margins):
                return Move(self.index_of(stump), weight, shift, margins, edge, math.nan)
        return Status.STUCK if len(proposals) else Status.NO_EDGE


def _best_level(risk: EmpiricalRisk, F: Array, inside: Array) -> float:
    """What is best added to the predictions of the rows inside."""
    if not risk.loss.quadratic:
        return best_step(risk, F, inside)
    assert risk.target is not None
    sums = risk.weights.sums(np.where(inside > 0.0, risk.target - F, 0.0))
    weight = risk.weights.share(inside > 0.0) * risk.weights.total
    return float(sums[0]) / weight if weight > 0.0 else 0.0


# ------------------------------------------------------------------------------------------------ learners


class ClassifierSteps(StepSearch):
    """Two classes: in every round a classifier is fitted to the row weights, or the best of a list is taken.

    It may be one that was taken before, and it may say the same of every row.
    """

    def __init__(self, task: LearnerTask, settings: StageSettings, start: float) -> None:
        super().__init__(task, settings, start)
        self.pool = LearnerPool(task.sign, False, self.risk.threads, repeats=True)

    def n_terms(self) -> int:
        return len({candidate.identity for candidate in self.pool.candidates})

    def best_move(self, point: RiskPoint) -> Move | Status:
        proposals = self.task.dictionary.best_columns(point, 1, self.pool, _BY_GAIN)
        if len(proposals) == 0 or not proposals.edges[0] > 0.0:
            return Status.NO_EDGE
        column = proposals.atoms[0].column.astype(np.float64)
        lane = np.abs(self.risk.edge_rows(point)[0][:, 0])
        wrong, signs = int(lane[column < 0.0].sum()), bool((np.abs(column) == 1.0).all())
        edge = float(proposals.edges[0])
        move = class_step(point, column, edge, wrong, int(lane.sum()), signs, self.settings)
        if isinstance(move, Status):
            return move
        self.pool.append(proposals.atoms)
        return replace(move, column=len(self.pool.candidates) - 1)

    def held_out_change(self, move: Move) -> Array:
        learner = self.task.fitted(self.pool.candidates[move.column])
        return move.weight * (learner.numbers(self.held_out.X) * self.held_out.risk.sign)

    def path(self, course: Course) -> LearnerPath:
        """A learner that was taken more than once has the sum of its weights."""
        candidates, task = self.pool.candidates, self.task
        total = course.totals([candidate.identity for candidate in candidates])
        model = task.ensemble(self.pool, total, start=course.start)
        return LearnerPath(model, tuple(task.fitted(candidates[j]) for j in course.columns), course)


@dataclass(frozen=True, eq=False)
class RegressorTask:
    """Regressors on the rows that they are fitted to, and the units of the target.

    Parameters
    ----------
    parts : tuple
        What the ``dictionary`` parameter stands for.
    X, risk
        The rows, and the mean loss over them.
    sample_weight : array or None
        That of the user, for learners that are fitted.
    frame : ModelFrame
        What the models are called, and the units of the target.
    seed : int
        Every ``random_state`` of a learner that is fitted here follows from it.
    held_out : HeldOutRows or None
        Rows that end the rounds early.
    """

    parts: tuple[Part, ...]
    X: Any
    risk: EmpiricalRisk
    sample_weight: Array | None
    frame: ModelFrame
    seed: int
    held_out: HeldOutRows | None = None
    sign: None = None


class RegressorSteps(StepSearch):
    """A number: in every round a clone is fitted to the negative derivatives of the loss (the residuals
    themselves for the squared loss, their signs for the absolute one), or the best of a list is taken.

    The step along its predictions less their mean, of either sign, is the best one for the loss: the
    intercept goes along.
    """

    def __init__(self, task: RegressorTask, settings: StageSettings) -> None:
        n_rows = task.risk.weights.n_rows
        super().__init__(task, settings, best_step(task.risk, np.zeros(n_rows), np.ones(n_rows)))
        self.learners: list[FittedLearner] = []
        listed = [part.learners for part in task.parts if isinstance(part, FittedLearners)]
        fitted = [FittedLearner(learner, None, method_of(learner)) for part in listed for learner in part]
        self._listed = [(learner, learner.numbers(task.X)) for learner in fitted]

    def n_terms(self) -> int:
        return len({id(fitted.learner) for fitted in self.learners})

    def best_move(self, point: RiskPoint) -> Move | Status:
        proposals = sorted(self._proposals(point), key=lambda proposal: -proposal[-1])[:_MAX_TRIES]
        for learner, mean, column, edge, _ in proposals:
            weight = self.settings.learning_rate * self._best_weight(point, column)
            margins = point.F + weight * column
            if weight != 0.0 and _lower(point, margins):
                self.learners.append(learner)
                return Move(len(self.learners) - 1, weight, -weight * mean, margins, abs(edge), math.nan)
        return Status.STUCK if proposals else Status.NO_EDGE

    def _proposals(self, point: RiskPoint) -> Iterator[tuple[FittedLearner, float, Array, float, float]]:
        """Learner, mean of its predictions, these less the mean, their edge, and the drop of least squares on
        the negative derivatives."""
        weights, derivatives = self.risk.weights, point.v
        for learner, predicted in (*self._listed, *self._fit(derivatives)):
            mean = weights.mean(predicted)
            column = predicted - mean
            edge, square = weights.mean(derivatives * column), weights.mean(column * column)
            if square > _CONSTANT_SHARE * mean * mean and edge != 0.0:
                yield learner, mean, column, edge, edge * edge / square

    def _fit(self, target: Array) -> Iterator[tuple[FittedLearner, Array]]:
        """The learners that are fitted in every round, with their predictions."""
        task = self.task
        for number, part in enumerate(task.parts):
            if isinstance(part, ToFit):
                seed, n_before = (task.seed, number), len(self.learners)
                clone = fit_clone(part.estimator, task.X, target, task.sample_weight, seed, n_before)
                learner = FittedLearner(clone, None, method_of(clone))
                yield learner, learner.numbers(task.X)

    def _best_weight(self, point: RiskPoint, column: Array) -> float:
        if self.risk.loss.quadratic:
            _, slope, curvature = self.risk.along(point.F, column, 0.0)
            return -slope / curvature if curvature > 0.0 else 0.0
        return best_step(self.risk, point.F, column)

    def held_out_change(self, move: Move) -> Array:
        return move.shift + move.weight * self.learners[move.column].numbers(self.held_out.X)

    def path(self, course: Course) -> LearnerPath:
        """In the units of the target; a learner that was taken more than once has the sum of its weights."""
        frame = self.task.frame
        course = Course(
            course.columns,
            tuple(weight * frame.scale for weight in course.weights),
            tuple(shift * frame.scale for shift in course.shifts),
            frame.mean + frame.scale * course.start,
        )
        total = course.totals([id(fitted.learner) for fitted in self.learners])
        pairs = zip(self.learners, total.tolist(), strict=True)
        kept = tuple(WeightedLearner(learner, weight) for learner, weight in pairs if weight)
        empty = frame.ensemble(NO_STUMPS, np.empty(0), 0)
        model = LearnerEnsemble(replace(empty, intercept=course.intercept), kept)
        return LearnerPath(model, tuple(self.learners[j] for j in course.columns), course)

"""Boosting stage by stage over weak learners that are not, or not only, stumps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.early_stopping import HeldOutRows
from cardboost.boosting.learner_task import LearnerTask
from cardboost.boosting.stagewise import (
    MAX_TRIES,
    MIN_GAIN,
    Direction,
    Move,
    StageSettings,
    StepSearch,
    first_constant,
)
from cardboost.boosting.stagewise_path import Course, LearnerPath
from cardboost.boosting.steps import best_step
from cardboost.dictionary.estimators import fit_clone
from cardboost.dictionary.learner_pool import Candidate, RoundPool
from cardboost.dictionary.resolve import FittedLearners, Part, ToFit
from cardboost.dictionary.stumps import Stumps
from cardboost.model.ensemble import Ensemble
from cardboost.model.fitted_learner import FittedLearner, method_of
from cardboost.model.learners import LearnerEnsemble, WeightedLearner
from cardboost.problem.risk import EmpiricalRisk, RiskPoint
from cardboost.problem.trace import Status

Array = NDArray[np.float64]

_CONSTANT_SHARE = 1e-24  # of its squared mean: a column that varies by less is a constant


class ClassifierSteps(StepSearch):
    """Two classes: in every round a classifier is fitted to the row weights, or the best of a list is taken.

    It may be one that was taken before, and it may say the same of every row.
    """

    def __init__(self, task: LearnerTask, settings: StageSettings, fit_intercept: bool) -> None:
        self.task, self.risk, self.settings, self.held_out = task, task.risk, settings, task.held_out
        self.start = first_constant(task.risk, task.sign) if fit_intercept else 0.0
        self.held_out_risk = None if task.held_out is None else task.held_out.risk
        self.pool = RoundPool(task.sign, task.risk.threads)

    def first_margins(self) -> Array:
        return self.start * self.task.sign.astype(np.float64)

    def n_terms(self) -> int:
        return len({_identity(candidate) for candidate in self.pool.candidates})

    def best_move(self, point: RiskPoint) -> Move | Status:
        proposals = self.task.dictionary.best_columns(point, 1, self.pool, "gain")
        if len(proposals) == 0 or not proposals.edges[0] > 0.0:
            return Status.NO_EDGE
        (candidate,), edge = proposals.atoms, float(proposals.edges[0])
        column = candidate.column.astype(np.float64)
        lane = np.abs(self.risk.edge_rows(point)[0][:, 0])
        wrong, total = int(lane[column < 0.0].sum()), int(lane.sum())
        direction = Direction(column, edge, wrong, total, signs=bool((np.abs(column) == 1.0).all()))
        step = direction.step(point, self.settings)
        if isinstance(step, Status):
            return step
        self.pool.append([candidate])
        return step.as_move(len(self.pool.candidates) - 1)

    def held_out_change(self, move: Move) -> Array:
        assert self.held_out is not None
        assert self.held_out.risk.sign is not None
        learner = self.task.models.fitted(self.pool.candidates[move.column])
        return move.weight * (learner.numbers(self.held_out.X) * self.held_out.risk.sign)

    def path(self, course: Course) -> LearnerPath:
        """A learner that was taken more than once has the sum of its weights."""
        candidates, models = self.pool.candidates, self.task.models
        keys = [_identity(candidate) for candidate in candidates]
        first = dict(zip(reversed(keys), reversed(candidates), strict=True))
        total = course.totals(keys)
        pool = RoundPool(self.task.sign, self.risk.threads)
        pool.append([first[key] for key in total])
        model = models.ensemble(pool, np.array(list(total.values())), course.start)
        return LearnerPath(model, tuple(models.fitted(candidates[j]) for j in course.columns), course)


def _identity(candidate: Candidate) -> Any:
    """Equal for the same stump and for the same fitted learner; learners that only agree here differ."""
    learner = candidate.learner
    if isinstance(learner, Stumps):
        sides = int(learner.polarity[0]), bool(learner.missing_left[0])
        return int(learner.feature[0]), learner.left[0].tobytes(), *sides
    return id(learner)


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
    empty : Ensemble
        The model without a learner, in the units of the target.
    mean, scale : float
        The target of the risk is ``(target - mean) / scale``.
    seed : int
        Every ``random_state`` of a learner that is fitted here follows from it.
    held_out : HeldOutRows or None
        Rows that end the rounds early.
    """

    parts: tuple[Part, ...]
    X: Any
    risk: EmpiricalRisk
    sample_weight: Array | None
    empty: Ensemble
    mean: float
    scale: float
    seed: int
    held_out: HeldOutRows | None = None


class RegressorSteps(StepSearch):
    """A number: in every round a clone is fitted to the negative derivatives of the loss (the residuals
    themselves for the squared loss, their signs for the absolute one), or the best of a list is taken.

    The step along its predictions less their mean, of either sign, is the best one for the loss: the
    intercept goes along.
    """

    def __init__(self, task: RegressorTask, settings: StageSettings) -> None:
        self.task, self.risk, self.learning_rate = task, task.risk, settings.learning_rate
        self.held_out_risk = None if task.held_out is None else task.held_out.risk
        self.learners: list[FittedLearner] = []
        n_rows = self.risk.weights.n_rows
        self.start = best_step(self.risk, np.zeros(n_rows), np.ones(n_rows))
        listed = [part.learners for part in task.parts if isinstance(part, FittedLearners)]
        fitted = [FittedLearner(learner, None, method_of(learner)) for part in listed for learner in part]
        self._listed = [(learner, learner.numbers(task.X)) for learner in fitted]

    def first_margins(self) -> Array:
        return np.full(self.risk.weights.n_rows, self.start)

    def n_terms(self) -> int:
        return len({id(fitted.learner) for fitted in self.learners})

    def best_move(self, point: RiskPoint) -> Move | Status:
        proposals = sorted(self._proposals(point), key=lambda proposal: -proposal[-1])[:MAX_TRIES]
        least = point.value * (1.0 - MIN_GAIN)
        for learner, mean, column, edge, _ in proposals:
            weight = self.learning_rate * self._best_weight(point, column)
            margins = point.F + weight * column
            if weight != 0.0 and self.risk.evaluate(margins).value < least:
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
        assert self.task.held_out is not None
        return move.shift + move.weight * self.learners[move.column].numbers(self.task.held_out.X)

    def path(self, course: Course) -> LearnerPath:
        """In the units of the target; a learner that was taken more than once has the sum of its weights."""
        task = self.task
        course = Course(
            course.columns,
            tuple(weight * task.scale for weight in course.weights),
            tuple(shift * task.scale for shift in course.shifts),
            task.mean + task.scale * course.start,
        )
        keys = [id(fitted.learner) for fitted in self.learners]
        first = dict(zip(reversed(keys), reversed(self.learners), strict=True))
        kept = (WeightedLearner(first[key], total) for key, total in course.totals(keys).items() if total)
        model = LearnerEnsemble(replace(task.empty, intercept=course.intercept), tuple(kept))
        return LearnerPath(model, tuple(self.learners[j] for j in course.columns), course)

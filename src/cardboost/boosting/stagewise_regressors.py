"""Boosting stage by stage for a number, over regressors of any kind.

In every round a clone is fitted to the negative derivatives of the loss (the residuals themselves for the
squared loss, their signs for the absolute one), or the best of a list of fitted ones is taken. The step along
its predictions less their mean, of either sign, is the best one for the loss: the intercept goes along.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.resolve import FittedLearners, Part, ToFit
from cardboost.boosting.stagewise import LEAST, TRIES, Boosting, Course, Move, Stages, StageSettings
from cardboost.boosting.stagewise_learners import HeldRows, StageLearners
from cardboost.boosting.steps import best_step
from cardboost.dictionary.estimators import fit_clone
from cardboost.model.ensemble import Ensemble
from cardboost.model.fitted_learner import FittedLearner, method_of
from cardboost.model.learners import LearnerEnsemble, WeightedLearner
from cardboost.problem.risk import EmpiricalRisk, RiskPoint

Array = NDArray[np.float64]

_CONSTANT = 1e-24  # of its squared mean: a column that varies by less is a constant


@dataclass(frozen=True, eq=False)
class RegressorTask:
    """Learners on the rows that they are fitted to, and the units of the target.

    ``sample_weight``: that of the user, for learners that are fitted. ``empty``: the model without a learner,
    in the units of the target, in which the risk's target is ``(t - mean) / scale``.
    """

    parts: tuple[Part, ...]
    X: Any
    risk: EmpiricalRisk
    sample_weight: Array | None
    empty: Ensemble
    mean: float
    scale: float
    seed: int
    held: HeldRows | None = None


class RegressorStages(Stages):
    """One learner a round, with its predictions as the column."""

    def __init__(self, task: RegressorTask, learning_rate: float) -> None:
        self.task, self.risk, self.learning_rate = task, task.risk, learning_rate
        self.held_risk = None if task.held is None else task.held.risk
        self.learners: list[FittedLearner] = []
        rows = self.risk.weights.n_rows
        self.start = best_step(self.risk, np.zeros(rows), np.ones(rows))
        given = [own for part in task.parts if isinstance(part, FittedLearners) for own in part.learners]
        fitted = [FittedLearner(own, None, method_of(own)) for own in given]
        self._known = [(own, own.numbers(task.X)) for own in fitted]

    def first_margins(self) -> Array:
        return np.full(self.risk.weights.n_rows, self.start)

    def n_terms(self) -> int:
        return len({id(own.learner) for own in self.learners})

    def move(self, point: RiskPoint) -> Move | str:
        found = sorted(self._proposals(point), key=lambda own: -own[-1])[:TRIES]
        least = point.value * (1.0 - LEAST)
        for learner, mean, column, edge, _ in found:
            weight = self.learning_rate * self._best(point, column)
            margins = point.F + weight * column
            if weight != 0.0 and self.risk.evaluate(margins).value < least:
                self.learners.append(learner)
                return Move(len(self.learners) - 1, weight, -weight * mean, margins, abs(edge), math.nan)
        return "stuck" if found else "no edge"

    def _proposals(self, point: RiskPoint) -> Iterator[tuple[FittedLearner, float, Array, float, float]]:
        """Learner, mean of its predictions, these less the mean, their edge, and the drop of least squares on
        the negative derivatives."""
        weights, wanted = self.risk.weights, point.v
        for learner, predicted in (*self._known, *self._fitted(wanted)):
            mean = weights.mean(predicted)
            column = predicted - mean
            edge, square = weights.mean(wanted * column), weights.mean(column * column)
            if square > _CONSTANT * mean * mean and edge != 0.0:
                yield learner, mean, column, edge, edge * edge / square

    def _fitted(self, wanted: Array) -> Iterator[tuple[FittedLearner, Array]]:
        task = self.task
        for number, part in enumerate(task.parts):
            if isinstance(part, ToFit):
                seed = (task.seed, number)
                made = fit_clone(part.estimator, task.X, wanted, task.sample_weight, seed, len(self.learners))
                learner = FittedLearner(made, None, method_of(made))
                yield learner, learner.numbers(task.X)

    def _best(self, point: RiskPoint, column: Array) -> float:
        if self.risk.loss.quadratic:
            _, slope, bend = self.risk.along(point.F, column, 0.0)
            return -slope / bend if bend > 0.0 else 0.0
        return best_step(self.risk, point.F, column)

    def held_change(self, move: Move) -> Array:
        assert self.task.held is not None
        return move.shift + move.weight * self.learners[move.column].numbers(self.task.held.X)

    def ensemble(self, course: Course) -> LearnerEnsemble:
        """A learner that was taken more than once has the sum of its weights."""
        total: dict[int, float] = {}
        first: dict[int, FittedLearner] = {}
        for column, weight in zip(course.columns, self.scaled(course.weights), strict=True):
            learner = self.learners[column]
            key = id(learner.learner)
            total[key] = total.get(key, 0.0) + weight
            first.setdefault(key, learner)
        kept = tuple(WeightedLearner(first[key], own) for key, own in total.items() if own != 0.0)
        intercept = self.first(course) + math.fsum(self.scaled(course.shifts))
        return LearnerEnsemble(replace(self.task.empty, intercept=intercept), kept)

    def scaled(self, values: tuple[float, ...]) -> tuple[float, ...]:
        """Weights or shifts in the units of the target."""
        return tuple(value * self.task.scale for value in values)

    def first(self, course: Course) -> float:
        """The intercept before the first round, in these units."""
        return self.task.mean + self.task.scale * course.start


def train_regressors(task: RegressorTask, settings: StageSettings) -> StageLearners:
    """An ensemble of regressors; the constant alone where none of them helps."""
    stages = RegressorStages(task, settings.learning_rate)
    course = Boosting(stages, settings, stages.ensemble).run()
    learners = tuple(stages.learners[j] for j in course.columns)
    return StageLearners(
        stages.ensemble(course), course.trace, learners, stages.scaled(course.weights),
        stages.scaled(course.shifts), stages.first(course), course.held_out,
    )  # fmt: skip

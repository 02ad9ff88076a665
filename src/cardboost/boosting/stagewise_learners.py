"""Boosting stage by stage over weak learners that are not, or not only, stumps.

In every round a classifier is fitted to the row weights, or the best of a list is taken; it may be one that
was taken before, and it may say the same of every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.column_generation import Trace
from cardboost.boosting.learners import LearnerTask
from cardboost.boosting.stagewise import (
    Along,
    Boosting,
    Course,
    Move,
    Stages,
    StageSettings,
    first_constant,
    refuse_empty,
)
from cardboost.dictionary.learner_pool import Candidate, RoundPool
from cardboost.dictionary.stumps import Stumps
from cardboost.model.fitted_learner import FittedLearner, count_rows
from cardboost.model.learners import LearnerEnsemble
from cardboost.problem.losses import Loss
from cardboost.problem.risk import EmpiricalRisk, RiskPoint

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows that are not trained on, as the user gave them, and their risk."""

    X: Any
    risk: EmpiricalRisk


@dataclass(frozen=True, eq=False)
class StageLearners:
    """``learners`` and ``weights``: of every round, in their order.

    ``start`` is the intercept before the first round, ``shifts`` what every round added to it. ``held_out``:
    the loss on held-out rows after every round, if there were any.
    """

    ensemble: LearnerEnsemble
    trace: Trace
    learners: tuple[FittedLearner, ...]
    weights: tuple[float, ...]
    shifts: tuple[float, ...]
    start: float
    held_out: tuple[float, ...] | None = None

    def scores(self, X: Any) -> Iterator[Array]:
        """After every round."""
        score = np.full(count_rows(X), self.start)
        for learner, weight, shift in zip(self.learners, self.weights, self.shifts, strict=True):
            score = score + (shift + weight * learner.scores(X))
            yield score


class LearnerStages(Stages):
    """One learner a round. ``pool`` has a column for each of them."""

    def __init__(
        self, task: LearnerTask, settings: StageSettings, start: float, held: HeldRows | None
    ) -> None:
        self.task, self.risk, self.settings, self.start = task, task.risk, settings, start
        self.held, self.held_risk = held, None if held is None else held.risk
        self.pool = RoundPool(task.sign, task.risk.threads)

    def first_margins(self) -> Array:
        return self.start * self.task.sign.astype(np.float64)

    def n_terms(self) -> int:
        return len({identity(own) for own in self.pool.candidates})

    def move(self, point: RiskPoint) -> Move | str:
        found = self.task.source.best_columns(point, 1, self.pool, "gain")
        if len(found) == 0 or not found.edges[0] > 0.0:
            return "no edge"
        (candidate,), edge = found.atoms, float(found.edges[0])
        column = candidate.column.astype(np.float64)
        lane = np.abs(self.risk.edge_rows(point)[0][:, 0])
        wrong, total = int(lane[column < 0.0].sum()), int(lane.sum())
        along = Along(column, edge, wrong, total, signs=bool((np.abs(column) == 1.0).all()))
        made = along.step(point, self.settings)
        if isinstance(made, str):
            return made
        self.pool.append([candidate])
        return made.of(len(self.pool.candidates) - 1)

    def held_change(self, move: Move) -> Array:
        assert self.held is not None
        assert self.held.risk.sign is not None
        learner = self.task.models.fitted(self.pool.candidates[move.column])
        return move.weight * (learner.numbers(self.held.X) * self.held.risk.sign)

    def ensemble(self, course: Course) -> LearnerEnsemble:
        """A learner that was taken more than once has the sum of its weights."""
        total: dict[Any, float] = {}
        last: dict[Any, Candidate] = {}
        for column, weight in zip(course.columns, course.weights, strict=True):
            candidate = self.pool.candidates[column]
            key = identity(candidate)
            total[key] = total.get(key, 0.0) + weight
            last.setdefault(key, candidate)
        pool = RoundPool(self.task.sign, self.risk.threads)
        pool.append(list(last.values()))
        return self.task.models.ensemble(pool, np.array(list(total.values())), course.start)


def identity(candidate: Candidate) -> Any:
    """Equal for the same stump and for the same fitted learner; learners that only agree here differ."""
    own = candidate.learner
    if isinstance(own, Stumps):
        sides = int(own.polarity[0]), bool(own.missing_left[0])
        return int(own.feature[0]), own.left[0].tobytes(), *sides
    return id(own)


def train_stagewise_learners(
    dictionary: Any,
    X: Any,
    sign: NDArray[np.int8],
    loss: Loss,
    settings: StageSettings,
    fit_intercept: bool,
    threads: int,
    held: HeldRows | None = None,
    **data: Any,
) -> StageLearners:
    """See :func:`cardboost.boosting.learners.train_learners` for the arguments."""
    task = LearnerTask.make(dictionary, X, sign, loss, False, threads, **data)
    start = first_constant(task.risk, sign) if fit_intercept else 0.0
    stages = LearnerStages(task, settings, start, held)
    course = Boosting(stages, settings, stages.ensemble).run()
    refuse_empty(course)
    learners = tuple(task.models.fitted(stages.pool.candidates[j]) for j in course.columns)
    return StageLearners(
        stages.ensemble(course), course.trace, learners, course.weights, course.shifts, course.start,
        course.held_out,
    )  # fmt: skip

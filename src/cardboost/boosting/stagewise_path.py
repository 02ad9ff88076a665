"""The rounds of boosting stage by stage: which learner got how much weight, and the models on the way."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.path import ModelFrame
from cardboost.data.binning import apply_cuts
from cardboost.dictionary.stumps import StumpPool, Stumps
from cardboost.model.ensemble import Ensemble
from cardboost.model.fitted_learner import FittedLearner, count_rows
from cardboost.model.learners import LearnerEnsemble

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Course:
    """For every round the column that was chosen, its weight, and what the intercept gained.

    ``start`` is the intercept before the first round. The column of a constant rule is -1, and its weight is
    what the intercept gained, or minus that.
    """

    columns: tuple[int, ...]
    weights: tuple[float, ...]
    shifts: tuple[float, ...]
    start: float = 0.0

    def __len__(self) -> int:
        return len(self.columns)

    def extended(self, column: int, weight: float, shift: float) -> Course:
        """With one more round."""
        return Course((*self.columns, column), (*self.weights, weight), (*self.shifts, shift), self.start)

    def first(self, rounds: int) -> Course:
        """As it was after so many rounds."""
        return Course(self.columns[:rounds], self.weights[:rounds], self.shifts[:rounds], self.start)

    def totals(self, keys: list[Any]) -> dict[Any, float]:
        """The weights of all rounds added up by the key of their column, in the order of the rounds."""
        total: dict[Any, float] = {}
        for column, weight in zip(self.columns, self.weights, strict=True):
            total[keys[column]] = total.get(keys[column], 0.0) + weight
        return total

    @property
    def intercept(self) -> float:
        """After all rounds."""
        return self.start + math.fsum(self.shifts)


class StagewisePath(ABC):
    """The rounds of a run with their learners."""

    course: Course

    def __len__(self) -> int:
        return len(self.course)

    @abstractmethod
    def ensemble(self) -> Any:
        """The model of all rounds."""

    @abstractmethod
    def scores(self, rows: Any, threads: int) -> Iterator[Array]:
        """The scores of rows after every round, each from the one before."""


@dataclass(frozen=True, eq=False)
class StumpPath(StagewisePath):
    """Rounds over distinct stumps."""

    frame: ModelFrame
    stumps: Stumps
    course: Course

    @classmethod
    def of_pool(cls, frame: ModelFrame, pool: StumpPool, course: Course) -> StumpPath:
        """The columns of a pool, with missing values, where there were none in training, on the side of most
        rows. The pool stays as it is."""
        pool = pool.subset(np.arange(pool.n_columns))
        used = np.zeros(pool.n_columns)
        used[[pool.n_free + column for column in course.columns if column >= 0]] = 1.0
        pool.place_missing(used)
        return cls(frame, pool.stumps[pool.n_free :], course)

    def first(self, rounds: int) -> StumpPath:
        """The path as it was after so many rounds."""
        return replace(self, course=self.course.first(rounds))

    def ensemble(self) -> Ensemble:
        """The model of all rounds: a stump that was chosen again, or turned round, is one term."""
        course, stumps = self.course, self.stumps
        total = np.zeros(len(stumps))
        for column, weight in zip(course.columns, course.weights, strict=True):  # in the order of the rounds
            if column >= 0:
                total[column] += weight
        net: dict[tuple[Any, ...], float] = {}
        first: dict[tuple[Any, ...], int] = {}
        for j in np.flatnonzero(total).tolist():
            question = int(stumps.feature[j]), stumps.left[j].tobytes(), bool(stumps.missing_left[j])
            first.setdefault(question, j)
            net[question] = net.get(question, 0.0) + int(stumps.polarity[j]) * float(total[j])
        weights, polarity = np.zeros(len(stumps)), stumps.polarity.copy()
        for question, j in first.items():
            weights[j], polarity[j] = abs(net[question]), 1 if net[question] > 0.0 else -1
        intercept = course.start
        for shift in course.shifts:
            intercept += shift
        free = np.array([max(intercept, 0.0), max(-intercept, 0.0)])
        constant = Stumps.make([-1, -1], [255, 255], [1, -1], [True, True])
        turned = replace(stumps, polarity=polarity)
        return self.frame.ensemble(constant + turned, np.concatenate([free, weights]), 2)

    def scores(self, rows: Any, threads: int) -> Iterator[Array]:
        frame, course = self.frame, self.course
        bins = apply_cuts(rows, frame.cuts, threads, frame.categories)
        signs, score = self.stumps.signs(), np.full(bins.shape[1], course.start)
        for column, weight, shift in zip(course.columns, course.weights, course.shifts, strict=True):
            if column >= 0:
                score = score + (shift + weight * signs[column][bins[self.stumps.feature[column]]])
            else:
                score = score + shift
            yield score * frame.scale + frame.mean


@dataclass(frozen=True, eq=False)
class LearnerPath(StagewisePath):
    """Rounds over fitted learners; ``course`` has one column for each of ``learners``."""

    model: LearnerEnsemble
    learners: tuple[FittedLearner, ...]
    course: Course

    def ensemble(self) -> LearnerEnsemble:
        return self.model

    def scores(self, rows: Any, threads: int) -> Iterator[Array]:
        course, score = self.course, np.full(count_rows(rows), self.course.start)
        for learner, weight, shift in zip(self.learners, course.weights, course.shifts, strict=True):
            score = score + (shift + weight * learner.scores(rows))
            yield score

"""The models that boosting went through: the columns in their order, and the weights after every round.

A :class:`BoostingPath` has the weights of all columns after every round. Of a run stage by stage, a
:class:`Course` has the one column of every round and its weight.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.certificate.writer import intercept_of
from cardboost.data.binning import apply_cuts
from cardboost.data.categories import Categories, Label, Other
from cardboost.dictionary.base import ColumnPool
from cardboost.dictionary.stump_arrays import CONSTANT, CONSTANTS, Stumps
from cardboost.dictionary.stump_pool import StumpPool
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.model.ensemble import Ensemble, Term
from cardboost.model.fitted_learner import FittedLearner, count_rows
from cardboost.model.learners import LearnerEnsemble

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ModelFrame:
    """What every model of one training shares: names, classes, cuts, and the units of the target."""

    loss: str
    n_features: int
    feature_names: tuple[str, ...] | None
    classes: tuple[Any, Any] | None
    cuts: tuple[Array, ...]
    categories: tuple[Categories | None, ...]
    mean: float = 0.0
    scale: float = 1.0
    missing_in_training: tuple[int, ...] | None = None

    def ensemble(self, stumps: Stumps, weights: Array, n_free: int, unit: float | None = None) -> Ensemble:
        """The weighted sum of these columns, in the units of the target; ``unit``: of whole points."""
        terms = []
        for j in np.flatnonzero(weights):
            if j < n_free:
                continue
            terms.append(self._term(stumps, int(j), float(weights[j])))
        used = {term.feature: self.categories[term.feature] for term in terms}
        return Ensemble(
            loss=self.loss,
            intercept=intercept_of(weights, n_free) * self.scale + self.mean,
            terms=tuple(terms),
            feature_names=self.feature_names,
            n_features=self.n_features,
            classes=self.classes,
            categories={f: labels for f, labels in used.items() if labels is not None},
            unit=unit,
            missing_in_training=self.missing_in_training,
        )

    def _term(self, stumps: Stumps, j: int, weight: float) -> Term:
        """One of these stumps with a weight."""
        feature, cut = int(stumps.feature[j]), int(stumps.cut[j])
        labels = self.categories[feature]
        where: dict[str, Any] = {"cut": None}
        if labels is None:
            where["cut"] = cut_value(self.cuts[feature], cut)
        elif stumps.one_of[j]:
            where["one_of"] = tuple(labels.label(code) for code in np.flatnonzero(stumps.left[j]).tolist())
        else:
            where["category"] = labels.label(cut)
        where |= {"polarity": int(stumps.polarity[j]), "missing_left": bool(stumps.missing_left[j])}
        return Term(feature, weight=weight * self.scale, **where)


def cut_value(cuts: Array, cut: int) -> float:
    """The number at a cut; behind the last one lies infinity: all values that are not missing."""
    return float(cuts[cut]) if cut < len(cuts) else np.inf


@dataclass(frozen=True, eq=False)
class BoostingPath:
    """One model per round; ``stages[r]`` weighs the first columns, as many as there were then."""

    frame: ModelFrame
    stumps: Stumps
    n_free: int
    stages: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.stages)

    def ensembles(self) -> Iterator[Ensemble]:
        for weights in self.stages:
            yield self.frame.ensemble(self.stumps[: len(weights)], weights, self.n_free)

    def restart(self, pool: ColumnPool) -> Array:
        """Put the columns of the last stage into an empty pool over other rows; returns their weights there.

        A cut that the new table does not have goes to its nearest one, and a set of labels to the one that
        differs from it in the fewest; what no longer exists is left out.
        """
        assert isinstance(pool, StumpPool)
        weights = self.stages[-1]
        dictionary = pool.dictionary
        kept: dict[tuple[int, int, int, bool], float] = {}
        for j in range(self.n_free, len(weights)):
            place = self._at_home(j, dictionary)
            if place is None:
                continue
            polarity, missing_left = int(self.stumps.polarity[j]), bool(self.stumps.missing_left[j])
            if dictionary.closed[place] & (1 << (2 * int(missing_left) + (polarity < 0))):
                continue
            one = (*place, polarity, missing_left)
            kept[one] = kept.get(one, 0.0) + float(weights[j])
        if kept:
            pool.append(dictionary.stumps(*(np.array(part) for part in zip(*kept, strict=True))))
        free = weights[: self.n_free] if pool.n_free == self.n_free else np.zeros(pool.n_free)
        return np.concatenate([free, list(kept.values())])

    def _at_home(self, j: int, dictionary: StumpDictionary) -> tuple[int, int] | None:
        """Column j as line and cut of another dictionary."""
        feature, cut = int(self.stumps.feature[j]), int(self.stumps.cut[j])
        if feature == CONSTANT:
            return None
        matrix = dictionary.matrix
        old, new = self.frame.categories[feature], matrix.categories[feature]
        if old is None and new is None:
            value, cuts = cut_value(self.frame.cuts[feature], cut), matrix.cuts[feature]
            if np.isinf(value):
                return feature, len(cuts)
            return (feature, int(np.argmin(np.abs(cuts - value)))) if len(cuts) else None
        if old is None or new is None:
            return None
        if self.stumps.one_of[j]:
            codes = _codes(new, [old.label(code) for code in np.flatnonzero(self.stumps.left[j]).tolist()])
            order = dictionary.orders[feature] if dictionary.orders else None
            if order is None or not codes:
                return None
            # the set of the first k + 1 differs in those of them that are not in it, and those left over
            outside = np.cumsum(np.where(np.isin(order, codes), -1, 1))
            return int(dictionary.set_line[feature]), 1 + int(np.argmin(outside[1:-2]))
        codes = _codes(new, [old.label(cut)])
        return (feature, codes[0]) if codes else None


def _codes(categories: Categories, labels: Iterable[Label | Other]) -> list[int]:
    """The codes of those labels that are known."""
    codes = []
    for label in labels:
        with contextlib.suppress(ValueError):
            codes.append(categories.code(label))
    return codes


# ---------------------------------------------------------------------------------------- stage by stage


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

    @property
    def intercept(self) -> float:
        """After all rounds."""
        return self.start + math.fsum(self.shifts)

    def totals(self, learners: Sequence[Any]) -> Array:
        """The weights of all rounds of every column, added up in their order.

        ``learners``: what each column is; columns of the same one have their sum at the first of them.
        """
        first: dict[Any, int] = {}
        place = [first.setdefault(learner, j) for j, learner in enumerate(learners)]
        total = np.zeros(len(place))
        for column, weight in zip(self.columns, self.weights, strict=True):
            if column >= 0:
                total[place[column]] += weight
        return total


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

    def ensemble(self) -> Ensemble:
        """The model of all rounds: a stump that was chosen again, or turned round, is one term."""
        course, stumps = self.course, self.stumps
        total = course.totals(range(len(stumps)))
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
        turned = replace(stumps, polarity=polarity)
        return self.frame.ensemble(CONSTANTS + turned, np.concatenate([free, weights]), 2)

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

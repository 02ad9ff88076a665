"""Measures of predictions on weighted rows, and their bootstrap intervals.

Rows are sorted, and equal rows merged, once. All measures of a task are then one vector of numbers as a
function of the row weights, so that a resample is nothing but other weights. Sums run in the order of the
sorted rows: the order in which they came does not show in any bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

CALIBRATION_GROUPS = 10  # at most
MOST_ROWS = 100_000  # that a resample draws, unless few of the rows differ
FEW_DISTINCT = 10_000  # different rows, of which any number is quickly resampled
LEVEL = 0.95  # of the intervals
_ROUNDING = 1e-12  # a share of the weight below which two sums are the same


def merge_rows(keys: Sequence[NDArray[Any]]) -> tuple[Indices, NDArray[np.int64]]:
    """The different rows in ascending order of the first key, then of the second and so on.

    Parameters
    ----------
    keys : sequence of array of shape (n_rows,)
        What makes rows equal.

    Returns
    -------
    rows : array of int
        The index of one row of each kind.
    count : array of int
        How many there are of it.
    """
    order = np.lexsort(tuple(reversed(keys)))
    first = _first_of_equal(*(key[order] for key in keys))
    return order[first], np.diff(first, append=len(order))


def _first_of_equal(*keys: NDArray[Any]) -> Indices:
    """Where sorted rows differ from the one before."""
    differs = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.flatnonzero(np.concatenate([[True], differs]))


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows sorted by a score, those of equal score side by side: ``starts`` has the first of each."""

    order: Indices
    event: Array
    starts: Indices
    score: Array

    @classmethod
    def of(cls, score: Array, event: NDArray[np.bool_]) -> Ranking:
        order = np.argsort(score, kind="stable")
        ranked = score[order]
        starts = _first_of_equal(ranked)
        return cls(order, event[order].astype(np.float64), starts, ranked[starts])

    def auc_and_ks(self, weight: Array) -> tuple[float, float, int]:
        """Area under the ROC curve, largest distance of the two distributions, and the position of it.

        NaN where a class has no weight.
        """
        weight = weight[self.order]
        events = weight * self.event
        others = np.add.reduceat(weight - events, self.starts)
        events = np.add.reduceat(events, self.starts)
        others_up_to, events_up_to = np.cumsum(others), np.cumsum(events)
        area = (events * (others_up_to - 0.5 * others)).sum()
        distance = np.abs(others_up_to / others_up_to[-1] - events_up_to / events_up_to[-1])
        largest = int(np.argmax(distance >= distance.max() - _ROUNDING))  # the first of equal ones
        auc = np.minimum(1.0, area / (others_up_to[-1] * events_up_to[-1]))
        return float(auc), float(np.minimum(1.0, distance[largest])), largest


def calibration_groups(prediction: Array, weight: Array) -> Indices:
    """For every row the number of its group: groups of nearly equal weight by ascending prediction.

    Equal predictions are in one group.
    """
    _, place = np.unique(prediction, return_inverse=True)
    held = np.bincount(place, weight)
    middle = np.cumsum(held) - 0.5 * held
    part = np.floor(CALIBRATION_GROUPS * (middle / held.sum() + _ROUNDING))
    part = np.minimum(part, CALIBRATION_GROUPS - 1)  # a last one of next to no weight is not alone
    return np.unique(part, return_inverse=True)[1][place]


def group_means(group: Indices, values: NDArray[Any], weight: Array, n_groups: int) -> Array:
    """The weighted mean of the values of every group."""
    return np.bincount(group, weight * values, n_groups) / np.bincount(group, weight, n_groups)


def weighted_median(ordered: Array, weight: Array) -> float:
    """The median of ascending values; where half of the weight ends between two of them, their middle."""
    held = np.cumsum(weight)
    half = 0.5 * held[-1]
    below = np.searchsorted(held, half * (1.0 - _ROUNDING), side="left")
    above = np.searchsorted(held, half * (1.0 + _ROUNDING), side="right")
    return float(0.5 * (ordered[below] + ordered[above]))


# ------------------------------------------------------------------------------------------------ tasks


@dataclass(frozen=True, eq=False)
class Measures(ABC):
    """What is measured of some rows: every array has an entry for each of them."""

    names: ClassVar[tuple[str, ...]]  # of the first values; others follow

    @property
    def n_rankings(self) -> int:
        """How many times the rows are ranked, which is most of the work."""
        return 1

    def values(self, weight: Array) -> Array:
        """All measures of the rows with these weights; NaN for those that are not defined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._values(weight)

    @abstractmethod
    def _values(self, weight: Array) -> Array: ...

    def take(self, rows: Indices) -> Self:
        """The same of some of the rows."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{k: v[rows] for k, v in arrays.items() if isinstance(v, np.ndarray)})


@dataclass(frozen=True, eq=False)
class BinaryMeasures(Measures):
    """``event``: which rows are of the positive class; ``positive``: which are predicted to be.

    After the named values come the shares of events in the calibration groups.
    """

    names: ClassVar[tuple[str, ...]] = (
        "event_share",
        "auc",
        "gini",
        "ks",
        "log_loss",
        "brier",
        "calibration_in_the_large",
        "accuracy",
        "sensitivity",
        "specificity",
        "precision",
    )

    event: NDArray[np.bool_]
    positive: NDArray[np.bool_]
    score: Array
    probability: Array | None
    group: Indices | None
    n_groups: int

    @cached_property
    def ranking(self) -> Ranking:
        return Ranking.of(self.score, self.event)

    @cached_property
    def _cell(self) -> Indices:
        """Of the confusion table, row by row."""
        return 2 * self.event.astype(np.intp) + self.positive

    @cached_property
    def _loss(self) -> Array:
        assert self.probability is not None
        return surprise(np.where(self.event, self.probability, 1.0 - self.probability))

    def _values(self, weight: Array) -> Array:
        rejected, alarms, misses, hits = np.bincount(self._cell, weight, 4)
        others, events = rejected + alarms, misses + hits
        total = others + events
        auc, ks, _ = self.ranking.auc_and_ks(weight)
        log_loss = brier = large = np.nan
        observed = np.empty(0)
        if self.probability is not None and self.group is not None:
            log_loss = (weight * self._loss).sum() / total
            brier = (weight * (self.probability - self.event) ** 2).sum() / total
            large = (weight * (self.probability - self.event)).sum() / total
            observed = group_means(self.group, self.event, weight, self.n_groups)
        named = [events / total, auc, 2.0 * auc - 1.0, ks, log_loss, brier, large]
        named += [(hits + rejected) / total, hits / events, rejected / others, hits / (hits + alarms)]
        return np.concatenate([named, observed])


@dataclass(frozen=True, eq=False)
class MulticlassMeasures(Measures):
    """``label``, ``predicted``: codes of classes; ``rank``: what the classes are ranked by, (rows, classes).

    After the named values come the share, recall, precision and AUC of every class, measure by measure.
    """

    names: ClassVar[tuple[str, ...]] = ("accuracy", "log_loss", "auc")
    of_class: ClassVar[tuple[str, ...]] = ("share", "recall", "precision", "auc")

    label: Indices
    predicted: Indices
    rank: Array
    probability: Array | None
    occurs: tuple[bool, ...]  # the classes that some row has

    @property
    def n_rankings(self) -> int:
        return len(self.occurs)

    @cached_property
    def rankings(self) -> list[Ranking]:
        return [Ranking.of(self.rank[:, k], self.label == k) for k in range(self.n_rankings)]

    @cached_property
    def _loss(self) -> Array:
        assert self.probability is not None
        return surprise(self.probability[np.arange(len(self.label)), self.label])

    def _values(self, weight: Array) -> Array:
        k, total = self.n_rankings, weight.sum()
        table = np.bincount(self.label * k + self.predicted, weight, k * k).reshape(k, k)
        hits, held, predicted = np.diag(table), table.sum(axis=1), table.sum(axis=0)
        auc = np.array([ranking.auc_and_ks(weight)[0] for ranking in self.rankings])
        log_loss = np.nan if self.probability is None else (weight * self._loss).sum() / total
        named = [hits.sum() / total, log_loss, auc[list(self.occurs)].mean()]
        return np.concatenate([named, held / total, hits / held, hits / predicted, auc])


@dataclass(frozen=True, eq=False)
class RegressionMeasures(Measures):
    """After the named values come the mean targets of the calibration groups."""

    names: ClassVar[tuple[str, ...]] = ("rmse", "mae", "median_absolute_error", "r2", "bias")

    target: Array
    prediction: Array
    group: Indices
    n_groups: int

    @cached_property
    def _by_error(self) -> Indices:
        return np.argsort(np.abs(self.target - self.prediction), kind="stable")

    def _values(self, weight: Array) -> Array:
        total, error = weight.sum(), self.prediction - self.target
        size = np.abs(error)
        squares = (weight * error**2).sum()
        centred = self.target - (weight * self.target).sum() / total
        present = self.target[weight > 0.0]
        spread = (weight * centred**2).sum() if (present != present[0]).any() else np.nan
        median = weighted_median(size[self._by_error], weight[self._by_error])
        named = [np.sqrt(squares / total), (weight * size).sum() / total, median]
        named += [1.0 - squares / spread, (weight * error).sum() / total]
        return np.concatenate([named, group_means(self.group, self.target, weight, self.n_groups)])


def surprise(probability: Array) -> Array:
    """-log of the probability of what happened; that of the impossible is finite, as in scikit-learn."""
    return -np.log(np.maximum(probability, np.finfo(np.float64).eps))


# ------------------------------------------------------------------------------------------------ bootstrap


def bootstrap(
    measures: Measures, count: NDArray[np.int64], weight: Array, n_resamples: int, seed: int
) -> tuple[Array, Array, int]:
    """Percentile intervals of all measures.

    Of very many different rows only a part is resampled. Its intervals are then as much narrower, and
    around the values of all rows, as those of all rows would be.

    Parameters
    ----------
    measures : Measures
        What is measured, of the merged rows.
    count : array of int
        How many rows there are of each kind.
    weight : array
        The weight of one of them.
    n_resamples : int
        Number of resamples.
    seed : int
        Equal seeds give equal intervals.

    Returns
    -------
    low, high : array
        Ends of the intervals; NaN where more than half of the resamples leave a measure undefined.
    n_rows : int
        How many rows were resampled.
    """
    random = np.random.default_rng(seed)
    values = measures.values(count * weight)
    n_rows, n_used = int(count.sum()), max(1000, MOST_ROWS // measures.n_rankings)
    part = n_rows > n_used and len(count) * measures.n_rankings > FEW_DISTINCT
    if part:
        chosen = np.sort(random.choice(n_rows, n_used, replace=False, shuffle=False))
        kinds, count = np.unique(np.searchsorted(np.cumsum(count), chosen, side="right"), return_counts=True)
        measures, weight = measures.take(kinds), weight[kinds]
    drawn = np.array([measures.values(c * weight) for c in resampled_counts(count, n_resamples, random)])
    low, high = np.full((2, len(values)), np.nan)
    known = np.isfinite(drawn).sum(axis=0) > n_resamples / 2
    if known.any():
        ends = (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)
        low[known], high[known] = np.nanquantile(drawn[:, known], ends, axis=0)
    if part:
        centre, ratio = measures.values(count * weight), np.sqrt(n_used / n_rows)
        # never beyond all that was drawn: a share stays between 0 and 1
        least, most = np.fmin.reduce(drawn), np.fmax.reduce(drawn)
        low = np.maximum(values + ratio * (low - centre), np.minimum(values, least))
        high = np.minimum(values + ratio * (high - centre), np.maximum(values, most))
    return low, high, int(count.sum())


def resampled_counts(
    count: NDArray[np.int64], n_resamples: int, random: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """How many rows of each kind a resample has; as many in all as there are rows."""
    n_rows = int(count.sum())
    if 5 * len(count) < n_rows:
        for _ in range(n_resamples):
            yield random.multinomial(n_rows, count / n_rows)
        return
    kind = np.repeat(np.arange(len(count)), count)
    for _ in range(n_resamples):
        yield np.bincount(kind[random.integers(0, n_rows, n_rows)], minlength=len(count))

"""The rounds of boosting stage by stage: which column got how much weight, and the models on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.column_generation import TraceRecord
from cardboost.boosting.path import ModelFrame
from cardboost.dictionary.stumps import StumpPool, Stumps
from cardboost.model.ensemble import Ensemble

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StageRecord(TraceRecord):
    """The state after one round of boosting stage by stage.

    ``edge`` is that of the learner at the row weights before the round, ``error`` the share of these weights
    on rows that it gets wrong (NaN for a number as target), and ``weight`` what it got.
    """

    error: float
    weight: float


@dataclass(frozen=True, eq=False)
class StagewisePath:
    """Distinct stumps, and for every round the stump that was chosen, its weight, and what the intercept
    gained. ``start`` is the intercept before the first round.

    The column of a constant rule is -1, and its weight is what the intercept gained, or minus that."""

    frame: ModelFrame
    stumps: Stumps
    columns: tuple[int, ...]
    weights: tuple[float, ...]
    shifts: tuple[float, ...]
    start: float = 0.0

    def __len__(self) -> int:
        return len(self.columns)

    def first(self, rounds: int) -> StagewisePath:
        """The path as it was after so many rounds."""
        return replace(
            self, columns=self.columns[:rounds], weights=self.weights[:rounds], shifts=self.shifts[:rounds]
        )

    def ensemble(self) -> Ensemble:
        """The model of all rounds: a stump that was chosen again, or turned round, is one term."""
        total = np.zeros(len(self.stumps))
        for column, weight in zip(self.columns, self.weights, strict=True):  # in the order of the rounds
            if column >= 0:
                total[column] += weight
        net: dict[tuple[Any, ...], float] = {}
        first: dict[tuple[Any, ...], int] = {}
        for j in np.flatnonzero(total).tolist():
            question = self._question(j)
            first.setdefault(question, j)
            net[question] = net.get(question, 0.0) + int(self.stumps.polarity[j]) * float(total[j])
        weights, polarity = np.zeros(len(self.stumps)), self.stumps.polarity.copy()
        for question, j in first.items():
            weights[j], polarity[j] = abs(net[question]), 1 if net[question] > 0.0 else -1
        return self._model(replace(self.stumps, polarity=polarity), weights)

    def ensembles(self) -> Iterator[Ensemble]:
        for rounds in range(1, len(self) + 1):
            yield self.first(rounds).ensemble()

    def scores(self, bins: NDArray[np.uint8]) -> Iterator[Array]:
        """The scores of rows in these bins after every round, each from the one before."""
        signs, frame = self.stumps.signs(), self.frame
        score = np.full(bins.shape[1], self.start)
        for column, weight, shift in zip(self.columns, self.weights, self.shifts, strict=True):
            if column >= 0:
                score = score + (shift + weight * signs[column][bins[self.stumps.feature[column]]])
            else:
                score = score + shift
            yield score * frame.scale + frame.mean

    def _model(self, stumps: Stumps, weights: Array) -> Ensemble:
        intercept = self.start
        for shift in self.shifts:
            intercept += shift
        free = np.array([max(intercept, 0.0), max(-intercept, 0.0)])
        constant = Stumps.make([-1, -1], [255, 255], [1, -1], [True, True])
        return self.frame.ensemble(constant + stumps, np.concatenate([free, weights]), 2)

    def _question(self, j: int) -> tuple[Any, ...]:
        """What a stump asks: the same for a stump and its opposite."""
        own = self.stumps
        return int(own.feature[j]), own.left[j].tobytes(), bool(own.missing_left[j])


def place_missing(path: StagewisePath, pool: StumpPool) -> StagewisePath:
    """Missing values, where there were none in training, on the side of most rows."""
    used = np.zeros(pool.n_columns)
    used[[pool.n_free + column for column in path.columns if column >= 0]] = 1.0
    pool.place_missing(used)
    return replace(path, stumps=pool.stumps[pool.n_free :])

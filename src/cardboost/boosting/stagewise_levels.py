"""Boosting stage by stage for a number: every round adds a step function with two free levels.

A stump is chosen by the drop of least squares on the negative derivatives of the loss (the residuals
themselves for the squared loss, their signs for the absolute one). Its two levels are then the best for the
loss: means of residuals, weighted medians, or the end of a line search on either side.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.held_out import HeldOut
from cardboost.boosting.stagewise import LEAST, TRIES, Move, StageResult, StageSettings, StumpStages, finish
from cardboost.boosting.steps import best_step
from cardboost.boosting.training import TrainingTask
from cardboost.dictionary.stumps import StumpPool, Stumps
from cardboost.problem.risk import RiskPoint

Array = NDArray[np.float64]


class LevelStages(StumpStages):
    """Rounds for a number."""

    def __init__(self, task: TrainingTask, learning_rate: float, held: HeldOut | None) -> None:
        super().__init__(task.dictionary, task.risk, held)
        self.learning_rate = learning_rate
        self._nothing = StumpPool(task.dictionary)
        rows = np.zeros(task.dictionary.matrix.n_rows)
        self.start = self._best_level(rows, np.ones(len(rows)))

    def first_margins(self) -> Array:
        return np.full(self.dictionary.matrix.n_rows, self.start)

    def move(self, point: RiskPoint) -> Move | str:
        found = self.dictionary.best_columns(point, TRIES, self._nothing, "gain")
        least = point.value * (1.0 - LEAST)
        for k in range(len(found)):
            stump, edge = found.atoms[k : k + 1], float(found.edges[k])
            column = self.column(stump)
            left, right = (
                self._best_level(point.F, (column * way > 0.0).astype(np.float64)) for way in (1, -1)
            )
            weight = 0.5 * self.learning_rate * (left - right)
            shift = 0.5 * self.learning_rate * (left + right)
            if weight < 0.0:
                turned = Stumps.make(
                    stump.feature, stump.cut, -stump.polarity, stump.missing_left, stump.equals,
                    {0: np.flatnonzero(stump.left[0])} if stump.one_of[0] else None,
                )  # fmt: skip
                if not self._allowed(turned):
                    continue
                stump, column, weight = turned, -column, -weight
            if weight == 0.0:
                continue
            margins = point.F + (shift + weight * column)
            if self.risk.evaluate(margins).value < least:
                return Move(self.place(stump), weight, shift, margins, edge, math.nan)
        return "stuck" if len(found) else "no edge"

    def _allowed(self, stump: Stumps) -> bool:
        side = 2 * int(stump.missing_left[0]) + (int(stump.polarity[0]) < 0)
        closed = self.dictionary.closed[self.dictionary.line_of(stump)[0], stump.cut[0]]
        return not closed & (1 << side)

    def _best_level(self, F: Array, inside: Array) -> float:
        """What is best added to the predictions of the rows inside."""
        risk = self.risk
        if risk.loss.quadratic:
            assert risk.target is not None
            sums = risk.weights.sums(np.where(inside > 0.0, risk.target - F, 0.0))
            held = risk.weights.share(inside > 0.0) * risk.weights.total
            return float(sums[0]) / held if held > 0.0 else 0.0
        return best_step(risk, F, inside)


def train_levels(task: TrainingTask, settings: StageSettings) -> StageResult:
    """An ensemble of stumps for a number; the constant alone where no stump helps."""
    return finish(LevelStages(task, settings.learning_rate, task.held_out), task, settings)

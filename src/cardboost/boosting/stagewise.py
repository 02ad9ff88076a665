"""Boosting stage by stage (forward stagewise additive modelling): one weight a round.

    f_0 = a constant;   round m:  (b_m, G_m) = argmin of the risk of f_{m-1} + b G,   f_m = f_{m-1} + b_m G_m

Only the new learner gets a weight; the others keep theirs. With the exponential loss this is AdaBoost
(docs/stagewise.md). Margins change by one number per row and round, from the new learner alone: the same for
any number of threads. Now and then they are computed from all learners, so that rounding does not add up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.loop import EarlyStopping, StopRule, Weighting, boost
from cardboost.boosting.path import Course, StagewisePath
from cardboost.boosting.task import RoundCallback, TrainingResult
from cardboost.problem.budget import Budget
from cardboost.problem.risk import RiskPoint
from cardboost.problem.trace import Record, Status

Array = NDArray[np.float64]

CONSTANT = -1  # in place of a column: the rule that says the same of every row
_FRESH_MARGINS_EVERY = 100  # rounds


@dataclass(frozen=True)
class StageSettings:
    """The parameters of the Stagewise estimators, checked and resolved."""

    max_iter: int
    learning_rate: float
    tol: float = 0.0  # the largest edge at which rounds end
    callback: RoundCallback | None = None
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, eq=False)
class Move:
    """What a round does.

    Parameters
    ----------
    column : int
        Of the learner; ``CONSTANT`` for a constant rule, whose weight or minus its weight is ``shift``.
    weight : float
        What the learner gets.
    shift : float
        What the intercept gains.
    margins : array
        Of all rows afterwards.
    edge, error : float
        Of the learner at the row weights before; the error is a share of these.
    alone : bool
        Whether the learner makes no mistake, and is the whole model.
    """

    column: int
    weight: float
    shift: float
    margins: Array
    edge: float
    error: float
    alone: bool = False

    def __len__(self) -> int:
        return 1


class StepSearch(ABC):
    """What is boosted stage by stage: learners, and the best step along the best of them.

    Parameters
    ----------
    task
        What is trained on, with its risk, its labels (None for a number) and its held-out rows.
    settings : StageSettings
        How.
    start : float
        The intercept before the first round.
    """

    def __init__(self, task: Any, settings: StageSettings, start: float) -> None:
        self.task, self.risk, self.settings, self.start = task, task.risk, settings, start
        self.held_out = task.held_out
        self.signs: Any = None if task.sign is None else task.sign.astype(np.float64)

    def first_margins(self) -> Array:
        """Margins of the constant alone."""
        n_rows = self.risk.weights.n_rows
        return np.full(n_rows, self.start) if self.signs is None else self.start * self.signs

    @abstractmethod
    def best_move(self, point: RiskPoint) -> Move | Status:
        """The next round, or why there is none."""

    @abstractmethod
    def n_terms(self) -> int:
        """Distinct learners so far."""

    def fresh_margins(self, course: Course) -> Array | None:
        """Margins from all learners; None where that is not worth it."""
        return None

    @abstractmethod
    def held_out_change(self, move: Move) -> Array:
        """By how much the margins of the held-out rows change."""

    @abstractmethod
    def path(self, course: Course) -> StagewisePath:
        """The rounds with their learners, and the models on the way."""


class Stagewise(Weighting):
    """Only the new learner gets a weight."""

    def __init__(self, steps: StepSearch, settings: StageSettings) -> None:
        self.risk, self.steps, self.settings = steps.risk, steps, settings
        self.course = Course((), (), (), steps.start)
        self.point = steps.risk.evaluate(steps.first_margins())
        self.last: Move | None = None
        self._rounds = 0

    def search(self, dictionary: StepSearch, n_columns: int) -> Move | Status:
        if n_columns <= 0:
            return Status.ITERATION_LIMIT
        return dictionary.best_move(self.point) if self.point.derivative_sum > 0.0 else Status.NO_LOSS

    def update(self, proposals: Move) -> Record:
        move = self.last = proposals
        before = Course((), (), (), 0.0) if move.alone else self.course
        self.course = before.extended(move.column, move.weight, move.shift)
        margins = move.margins
        if len(self.course) % _FRESH_MARGINS_EVERY == 0:
            fresh = self.steps.fresh_margins(self.course)
            margins = move.margins if fresh is None else fresh
        self.point = self.risk.evaluate(margins)
        self._rounds += 1
        return Record(
            n_columns=self._rounds,
            n_terms=1 if move.alone else self.steps.n_terms(),
            objective=self.point.value,
            lower_bound=0.0,
            edge=move.edge,
            seconds=self.settings.budget.elapsed,
            weight=move.weight,
            error=move.error,
        )

    def reason(self) -> Status | None:
        return Status.PERFECT if self.last is not None and self.last.alone else None


class _HeldOut:
    """Held-out rows of a stagewise run: their loss after every round."""

    def __init__(self, steps: StepSearch, weighting: Stagewise) -> None:
        self.steps, self.weighting, self.risk = steps, weighting, steps.held_out.risk
        self.early = EarlyStopping()
        sign = 1.0 if self.risk.sign is None else self.risk.sign
        self._margins = np.full(self.risk.weights.n_rows, steps.start) * sign

    def see(self, record: Record) -> Status | None:
        move = self.weighting.last
        assert move is not None
        if move.alone:
            self.early, self._margins = EarlyStopping(), np.zeros_like(self._margins)
        self._margins = self._margins + self.steps.held_out_change(move)
        loss = self.risk.evaluate(self._margins).value
        return self.early.status(loss, len(self.early.losses) + 1)


def train_stagewise(steps: StepSearch, settings: StageSettings) -> TrainingResult:
    """Boost stage by stage.

    Raises
    ------
    ValueError
        There is nothing to begin with: no constant, and no learner that is better than chance.
    """
    weighting = Stagewise(steps, settings)
    held_out = None if steps.held_out is None else _HeldOut(steps, weighting)

    def tell(record: Record) -> bool:
        model = lambda: steps.path(weighting.course).ensemble()  # noqa: E731
        callback = settings.callback
        return (callback is not None and bool(callback(record, model))) or settings.budget.stopped()

    stop = StopRule(settings.max_iter, at_limit=Status.ITERATION_LIMIT)
    observers = [tell] if held_out is None else [tell, held_out.see]
    trace = boost(steps, weighting, stop, observers)
    course = weighting.course
    if held_out is not None and held_out.early.losses:
        course = course.first(held_out.early.best_round + 1)
    path = steps.path(course)
    losses = None if held_out is None else tuple(held_out.early.losses)
    return TrainingResult(path.ensemble(), trace, len(path), path, losses)


def refuse_empty(result: TrainingResult) -> None:
    """Say why there is no model, where the first round has found none and there is no constant."""
    if len(result.path) or result.path.course.start != 0.0:
        return
    if result.trace.status is Status.NO_LOSS:
        raise ValueError("The loss of the constant is 0: there is nothing to learn.")
    raise ValueError(
        "The first learner is no better than chance: no weak learner of the dictionary has an error below "
        "1/2 on these rows, and boosting has nothing to begin with. Are all features constant, or are other "
        "learners needed?"
    )

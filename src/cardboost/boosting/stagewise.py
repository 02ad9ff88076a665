"""Boosting stage by stage (forward stagewise additive modelling), over all stumps of a table.

    f_0 = a constant;   round m:  (b_m, G_m) = argmin of the risk of f_{m-1} + b G,   f_m = f_{m-1} + b_m G_m

Only the new learner gets a weight; the others keep theirs. With the exponential loss this is AdaBoost
(docs/stagewise.md). Margins change by one number per row and round, from the new stump alone: the same for
any number of threads. Now and then they are made anew from all stumps, so that rounding does not add up.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.boosting.column_generation import Trace
from cardboost.boosting.held_out import PATIENCE, PATIENCE_SHARE, HeldOut
from cardboost.boosting.path import ModelFrame
from cardboost.boosting.stagewise_path import StageRecord, StagewisePath, place_missing
from cardboost.boosting.steps import adaboost_step, best_step
from cardboost.boosting.training import TrainingTask
from cardboost.dictionary.stumps import StumpDictionary, StumpPool, Stumps
from cardboost.model.ensemble import Ensemble
from cardboost.problem.losses import Exponential
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk, RiskPoint

Array = NDArray[np.float64]

TRIES = 8  # learners that are tried in a round where the best one does not lower a loss with corners
_AFRESH = 100  # rounds after which margins are made anew
CONSTANT = -1  # in place of a column: the rule that says the same of every row
LEAST = 1e-15  # share of the loss that a round must save
_CHANCE = 1e-12  # an error this close to 1/2 is one half and rounding


@dataclass(frozen=True)
class StageSettings:
    """What the user asked for, resolved. ``callback``: as in training by selection."""

    max_iter: int
    learning_rate: float
    started: float
    tol: float = 0.0  # the largest edge at which rounds end
    callback: Callable[[StageRecord, Callable[[], Any]], object] | None = None
    stopped: Callable[[], bool] = lambda: False


@dataclass(frozen=True, eq=False)
class Move:
    """What a round does: a column of the pool, its weight, what the intercept gains, and the margins then.

    A constant rule has no column (CONSTANT): what the intercept gains is its weight, or minus its weight.
    ``alone``: the column makes no mistake, and is the whole model.
    """

    column: int
    weight: float
    shift: float
    margins: Array
    edge: float
    error: float
    alone: bool = False


class Stages(ABC):
    """Finds the next move, and knows the models that moves make."""

    risk: EmpiricalRisk
    held_risk: EmpiricalRisk | None = None  # of the rows that were held out
    start: float = 0.0

    @abstractmethod
    def first_margins(self) -> Array: ...

    @abstractmethod
    def move(self, point: RiskPoint) -> Move | str:
        """The next round, or why there is none."""

    @abstractmethod
    def n_terms(self) -> int:
        """Distinct learners so far."""

    def afresh(self, columns: list[int], weights: list[float], intercept: float) -> Array | None:
        """Margins from all columns; None where that is not worth it."""
        return None

    @abstractmethod
    def held_change(self, move: Move) -> Array:
        """By how much the margins of the held-out rows change."""


@dataclass(frozen=True, eq=False)
class Course:
    """All rounds: the columns and their weights, what the intercept gained, and how it went."""

    columns: tuple[int, ...]
    weights: tuple[float, ...]
    shifts: tuple[float, ...]
    start: float
    trace: Trace
    held_out: tuple[float, ...] | None = None


class Boosting:
    """The loop. ``model`` makes the model of the rounds so far, for callbacks."""

    def __init__(self, stages: Stages, settings: StageSettings, model: Callable[[Course], Any]) -> None:
        self.stages, self.settings, self.model, self.held = stages, settings, model, stages.held_risk
        self.columns: list[int] = []
        self.weights: list[float] = []
        self.shifts: list[float] = []
        self.records: list[StageRecord] = []
        self.losses: list[float] = []
        self.start = stages.start
        self._best = 0
        if self.held is not None:
            rows, sign = self.held.weights.n_rows, self.held.sign
            self._held_margins = np.full(rows, self.start) * (1.0 if sign is None else sign)

    def run(self) -> Course:
        stages, settings = self.stages, self.settings
        point = stages.risk.evaluate(stages.first_margins())
        status = "iteration limit"
        for _ in range(settings.max_iter):
            move = stages.move(point) if point.derivative_sum > 0.0 else "no loss"
            if isinstance(move, str):
                status = move
                break
            self._note(move)
            margins = move.margins
            if len(self.columns) % _AFRESH == 0:
                made = stages.afresh(self.columns, self.weights, self.start + math.fsum(self.shifts))
                margins = move.margins if made is None else made
            point = stages.risk.evaluate(margins)
            asked = self._tell(move, point)
            if move.alone:
                status = "perfect"
            elif asked or settings.stopped():
                status = "stopped"
            elif self._late(move):
                status = "validation"
            else:
                continue
            break
        return self.course(status)

    def course(self, status: str) -> Course:
        kept = len(self.columns) if self.held is None or not self.losses else self._best + 1
        return Course(
            tuple(self.columns[:kept]),
            tuple(self.weights[:kept]),
            tuple(self.shifts[:kept]),
            self.start,
            Trace(tuple(self.records), status),
            None if self.held is None else tuple(self.losses),
        )

    def _note(self, move: Move) -> None:
        if move.alone:
            self.columns, self.weights, self.shifts, self.start = [], [], [], 0.0
            self.losses, self._best = [], 0
        self.columns.append(move.column)
        self.weights.append(move.weight)
        self.shifts.append(move.shift)

    def _tell(self, move: Move, point: RiskPoint) -> bool:
        terms = 1 if move.alone else self.stages.n_terms()
        record = StageRecord(
            len(self.records) + 1, terms, point.value, 0.0, move.edge,
            time.perf_counter() - self.settings.started, move.error, move.weight,
        )  # fmt: skip
        self.records.append(record)
        if self.settings.callback is None:
            return False
        return bool(self.settings.callback(record, lambda: self.model(self.course("iteration limit"))))

    def _late(self, move: Move) -> bool:
        """Whether the held-out rows have not gained for long."""
        if self.held is None:
            return False
        self._held_margins = self._held_margins + self.stages.held_change(move)
        self.losses.append(self.held.evaluate(self._held_margins).value)
        if self.losses[-1] < self.losses[self._best]:
            self._best = len(self.losses) - 1
        return len(self.losses) - 1 - self._best >= max(PATIENCE, PATIENCE_SHARE * (self._best + 1))


class StumpStages(Stages):
    """What rounds over stumps have in common: the distinct stumps so far, and their columns."""

    def __init__(self, dictionary: StumpDictionary, risk: EmpiricalRisk, held: HeldOut | None) -> None:
        self.dictionary, self.risk, self.held = dictionary, risk, held
        self.held_risk = None if held is None else held.risk
        self.pool = StumpPool(dictionary)
        self._place: dict[tuple[int, int, int, bool], int] = {}

    def n_terms(self) -> int:
        return len(self._place)

    def place(self, stump: Stumps) -> int:
        """The column of a stump, which joins the pool where it is new."""
        line = int(self.dictionary.line_of(stump)[0])
        key = line, int(stump.cut[0]), int(stump.polarity[0]), bool(stump.missing_left[0])
        if key not in self._place:
            self._place[key] = self.pool.n_columns - self.pool.n_free
            self.pool.append(stump)
        return self._place[key]

    def column(self, stump: Stumps) -> Array:
        """Its value in every row, times the label where there are labels."""
        d = self.dictionary
        table = stump.signs().astype(np.float64)
        return _kernels.margins(d.matrix.bins, stump.feature, table, 0.0, d.sign, d.threads)

    def afresh(self, columns: list[int], weights: list[float], intercept: float) -> Array:
        d, total = self.dictionary, np.zeros(self.pool.n_columns)
        for column, weight in zip(columns, weights, strict=True):
            if column != CONSTANT:
                total[self.pool.n_free + column] += weight
        features, tables, _ = self.pool.tables(total)
        return _kernels.margins(d.matrix.bins, features, tables, intercept, d.sign, d.threads)

    def held_change(self, move: Move) -> Array:
        assert self.held is not None
        if move.column == CONSTANT:
            assert self.held.risk.sign is not None
            return move.shift * self.held.risk.sign.astype(np.float64)
        at = self.pool.n_free + move.column
        feature = self.pool.stumps.feature[at : at + 1]
        table = move.weight * self.pool.signs[at : at + 1].astype(np.float64)
        risk = self.held.risk
        return _kernels.margins(self.held.bins, feature, table, move.shift, risk.sign, risk.threads)

    def path(self, frame: ModelFrame, course: Course) -> StagewisePath:
        """What the rounds did; the pool of the fit stays as it is."""
        pool = self.pool.subset(np.arange(self.pool.n_columns))
        path = StagewisePath(
            frame, pool.stumps[pool.n_free :], course.columns, course.weights, course.shifts, course.start
        )
        return place_missing(path, pool)


class MarginStages(StumpStages):
    """Two classes: the rule of largest edge, a stump or one of the two constants, and one step along it.

    A constant goes before a stump whose error is smaller by no more than tol / 2: what such a stump knows
    better is rows of next to no weight, and its step, made for the others, would decide these rows for good.
    """

    def __init__(self, task: TrainingTask, settings: StageSettings, start: float) -> None:
        super().__init__(task.dictionary, task.risk, task.held_out)
        self.settings, self.start = settings, start

    def first_margins(self) -> Array:
        assert self.risk.sign is not None
        return self.start * self.risk.sign.astype(np.float64)

    def move(self, point: RiskPoint) -> Move | str:
        tries = TRIES if self.risk.loss.piecewise_linear else 1
        found = self.dictionary.largest_edges(point, tries)
        edges = [*found.edges.tolist(), abs(found.constant)]
        wrong = [*found.wrong[:-1], found.wrong[-1] - 0.5 * self.settings.tol * found.total]
        made: Step | str = "no edge"
        for k in sorted(range(len(edges)), key=wrong.__getitem__)[:tries]:
            stump = found.atoms[k : k + 1]
            column = self.column(stump) if len(stump) else self._constant(found.constant)
            made = Along(column, edges[k], found.wrong[k], found.total, signs=True).step(point, self.settings)
            if made != "stuck":
                break
        if isinstance(made, str):
            return made
        if len(stump):
            return made.of(self.place(stump))
        return made.of(CONSTANT, math.copysign(made.weight, found.constant))

    def _constant(self, side: float) -> Array:
        """The column of the rule "positive" for every row, or "negative" where ``side`` is below 0."""
        assert self.risk.sign is not None
        return math.copysign(1.0, side) * self.risk.sign.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Step:
    """A move along a column that has no place yet."""

    weight: float
    margins: Array
    edge: float
    error: float
    alone: bool = False

    def of(self, column: int, shift: float = 0.0) -> Move:
        return Move(column, self.weight, shift, self.margins, self.edge, self.error, self.alone)


@dataclass(frozen=True, eq=False)
class Along:
    """A column with its edge and, as whole numbers, the row weights that it gets wrong, and all of them.

    ``signs``: it has no other values than -1 and 1.
    """

    column: Array
    edge: float
    wrong: int
    total: int
    signs: bool

    def step(self, point: RiskPoint, settings: StageSettings) -> Step | str:
        """How far to go, or why not."""
        risk, column = point.risk, self.column
        if self.wrong == 0 and bool((column > 0.0).all()):
            return Step(1.0, column.copy(), self.edge, 0.0, alone=True)
        if not self.edge > 0.0 or (self.signs and 2 * self.wrong >= self.total * (1.0 - _CHANCE)):
            return "no edge"
        if self.edge <= settings.tol:
            return "tolerance"
        if self.signs and type(risk.loss) is Exponential:
            step = adaboost_step(self.total - self.wrong, self.wrong)
        else:
            step = best_step(risk, point.F, column)
        if not step > 0.0:
            return "stuck"
        weight = settings.learning_rate * step
        margins = point.F + weight * column
        if risk.loss.piecewise_linear and not risk.evaluate(margins).value < point.value * (1.0 - LEAST):
            return "stuck"
        return Step(weight, margins, self.edge, self.wrong / self.total)


@dataclass(frozen=True, eq=False)
class StageResult:
    """``held_out``: the loss on held-out rows after every round, if there were any."""

    ensemble: Ensemble
    trace: Trace
    path: StagewisePath
    held_out: tuple[float, ...] | None = None


def train_stagewise(task: TrainingTask, settings: StageSettings, fit_intercept: bool) -> StageResult:
    """An ensemble of stumps for two classes; a ValueError where the first stump is no better than chance."""
    risk = task.risk
    assert risk.sign is not None
    start = first_constant(risk, risk.sign) if fit_intercept else 0.0
    stages = MarginStages(task, settings, start)
    return finish(stages, task, settings)


def first_constant(risk: EmpiricalRisk, sign: NDArray[np.int8]) -> float:
    """The best constant score; where one class has next to no weight, as far as an intercept may go."""
    best, box = risk.loss.best_constant(risk.weights.share(sign > 0)), PriceRule.intercept_box
    return min(max(best, -box), box)


def finish(stages: StumpStages, task: TrainingTask, settings: StageSettings) -> StageResult:
    """Run all rounds and make the model of them."""
    course = Boosting(stages, settings, lambda course: stages.path(task.frame, course).ensemble()).run()
    if isinstance(stages, MarginStages):
        refuse_empty(course)
    path = stages.path(task.frame, course)
    return StageResult(path.ensemble(), course.trace, path, course.held_out)


def refuse_empty(course: Course) -> None:
    """Say why there is no model, where the first round has found none and there is no constant."""
    status = course.trace.status
    if course.columns or course.start != 0.0:
        return
    if status == "no loss":
        raise ValueError("The loss of the constant is 0: there is nothing to learn.")
    raise ValueError(
        "The first learner is no better than chance: no weak learner of the dictionary has an error below "
        "1/2 on these rows, and boosting has nothing to begin with. Are all features constant, or are other "
        "learners needed?"
    )

"""Soft margins: weights of a given sum, the *radius* or inverse temperature, over all columns.

The Frank-Wolfe gap over the dictionary is the proof: no weights of that sum have a larger soft margin than
the ones found by more than it (docs/soft_margin.md).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.loop import StopRule, Weighting, boost
from cardboost.boosting.task import NumberedColumns, RoundCallback, TrainingResult, TrainingTask
from cardboost.dictionary.base import ColumnPool
from cardboost.master.mprp import mprp_on_simplex
from cardboost.master.simplex import (
    Columns,
    Look,
    MatrixOracle,
    Oracle,
    SimplexNewton,
    SimplexSolution,
    SubStore,
    newton_by_radius,
    newton_on_simplex,
    soft_point,
    start_by_radius,
)
from cardboost.problem.budget import Budget
from cardboost.problem.prices import PriceRule
from cardboost.problem.trace import Record, Status, Trace

Array = NDArray[np.float64]

SOFT_MARGIN = "soft margin"
MAX_STEPS = 10_000  # of Newton
_MAX_STAGES = 200  # models of rounds that are kept
_TRIAL_TOL = 1e-4  # gap of weights on fewer columns


@dataclass(frozen=True)
class SoftMarginSettings:
    """The parameters of `SoftMarginClassifier`, checked and resolved."""

    radius: float
    method: str
    tol: float
    max_iter: int  # looks at the dictionary, or steps of "mprp"
    slack: float = 0.0  # share of the improvement that fewer terms may cost
    callback: RoundCallback | None = None
    budget: Budget = field(default_factory=Budget)


class _Rounds:
    """Sees every round: keeps its weights and the columns that were in use, and tells the caller."""

    def __init__(self, task: TrainingTask, settings: SoftMarginSettings) -> None:
        self.task, self.columns, self.settings = task, task.numbered_columns(), settings
        self.stages: list[tuple[Columns, Array]] = []
        self._in_use: set[int] = set()
        self.stopped = False

    def record(self, columns: Columns, weights: Array, value: float, gap: float, slope: float) -> Record:
        """Keep the weights of a round; ``slope``: the least one of all columns."""
        used = weights > 0
        self.stages.append((columns[used], weights[used]))
        terms = self.columns.terms(columns[used]).tolist()
        self._in_use.update(terms)
        seconds = self.settings.budget.elapsed
        return Record(len(self._in_use), len(terms), value, value - gap, -slope, seconds, exact_gap=gap)

    def tell(self, record: Record) -> bool:
        """Whether the caller asks to stop."""
        stage, callback = self.stages[-1], self.settings.callback
        model = lambda: self.task.ensemble(self.columns.pool, self.columns.weights(*stage))  # noqa: E731
        self.stopped = callback is not None and bool(callback(record, model))
        return self.stopped

    def kept_stages(self) -> list[tuple[Columns, Array]]:
        """All stages, or evenly some of many, with the first and the last."""
        n = len(self.stages)
        kept = np.unique(np.linspace(0, n - 1, min(n, _MAX_STAGES)).round().astype(int))
        return [self.stages[k] for k in kept]


class OnSimplex(Weighting):
    """All weights on the simplex, by Newton steps on the columns in use.

    Parameters
    ----------
    newton : SimplexNewton
        The columns in use, their weights and the steps.
    rounds : _Rounds
        Makes the records.
    max_rounds : int
        Looks at the dictionary at most.
    """

    def __init__(self, newton: SimplexNewton, rounds: _Rounds, max_rounds: int) -> None:
        self.newton, self.rounds, self.max_rounds = newton, rounds, max_rounds

    def search(self, dictionary: Oracle, n_columns: int) -> Look | Status:
        newton = self.newton
        proposals = newton.look()
        self._record = self.rounds.record(
            newton.columns, newton.weights, newton.value, newton.gap, newton.least_slope
        )
        if newton.gap > newton.tol and len(self.rounds.stages) >= self.max_rounds:
            return Status.ITERATION_LIMIT
        return newton.reason() or proposals

    def look(self) -> Record:
        return self._record

    def update(self, proposals: Look) -> None:
        self.newton.step()


def train_soft_margin(task: TrainingTask, settings: SoftMarginSettings) -> TrainingResult:
    """The ensemble with the largest soft margin, and its certificate."""
    rounds = _Rounds(task, settings)
    columns = rounds.columns
    solve = _newton if settings.method == "newton" else _conjugate_gradients
    solution, trace = solve(columns.start(settings.radius, task.earlier), rounds)
    stages = tuple(columns.weights(*stage) for stage in rounds.kept_stages())
    pool = columns.pool
    best = pool.netted(columns.weights(solution.columns, solution.weights))
    weights = best
    rule = PriceRule(0.0, 0.0, intercept_box=settings.radius)
    value = lambda margins: soft_point(task.risk, margins)[0]  # noqa: E731
    constant = task.constant_weights(task.dictionary.pool(), rule)
    if settings.slack > 0.0:
        null_objective = value(task.dictionary.pool().margins(constant))
        weights = pool.netted(columns.weights(*_fewer(columns, solution, null_objective, settings)))
    pool.place_missing(weights)
    proof = task.prove_on_simplex(pool, weights, best, settings.radius)
    null = task.null_model(constant, value)
    model, certificate = task.ensemble(pool, weights), task.certificate(proof, SOFT_MARGIN, null)
    return TrainingResult(model, trace, len(trace), task.path(pool, stages), certificate=certificate)


def _newton(start: tuple[Columns, Array], rounds: _Rounds) -> tuple[SimplexSolution, Trace]:
    """Newton steps on the columns in use, in the loop."""
    oracle, settings = rounds.columns.oracle, rounds.settings
    radius, late = settings.radius, settings.budget.late
    start, steps = start_by_radius(oracle, radius, start, max_iter=MAX_STEPS, late=late)
    most = max(0, MAX_STEPS - steps)
    newton = SimplexNewton(oracle, radius, start, tol=settings.tol, max_steps=most, late=late)
    weighting = OnSimplex(newton, rounds, settings.max_iter)
    trace = boost(oracle, weighting, StopRule(sys.maxsize), [rounds.tell])
    return newton.solution(trace.status), trace


def _conjugate_gradients(start: tuple[Columns, Array], rounds: _Rounds) -> tuple[SimplexSolution, Trace]:
    """The paper's method on all stumps at once, which is a solver on a matrix."""
    columns, settings = rounds.columns, rounds.settings
    full = np.zeros(len(columns.oracle.store))
    full[start[0]] = start[1]
    records: list[Record] = []

    def see(record: Record, used: Columns, weights: Array) -> bool:
        records.append(rounds.record(used, weights, record.objective, record.gap, -record.edge))
        return rounds.tell(records[-1]) or (len(records) >= settings.max_iter and record.gap > settings.tol)

    solution = mprp_on_simplex(
        columns.oracle, settings.radius, full,
        tol=settings.tol, max_iter=settings.max_iter, callback=see, late=settings.budget.late,
    )  # fmt: skip
    status = solution.status
    if status is Status.STOPPED and not rounds.stopped:
        status = Status.ITERATION_LIMIT
    return solution, Trace(tuple(records), status)


def _fewer(
    columns: NumberedColumns, solution: SimplexSolution, null_objective: float, settings: SoftMarginSettings
) -> tuple[Columns, Array]:
    """Fewer columns that keep all but ``slack`` of the improvement over the empty model.

    The smallest weights go, a fifth of them at a time and fewer where that is too many, and those left are
    weighed anew, until no single one of the smallest can go.
    """
    store, risk = columns.oracle.store, columns.oracle.risk
    used, weights, objective = solution.columns, solution.weights, solution.objective
    limit = objective + settings.slack * max(0.0, null_objective - objective)
    share = 0.2
    while len(used) > 1 and not settings.budget.late():
        n_out = max(1, int(share * len(used)))
        keep = np.sort(np.argsort(weights, kind="stable")[n_out:])
        part = SubStore(store, used[keep])
        start = weights[keep] * (settings.radius / weights[keep].sum())
        trial = newton_on_simplex(
            MatrixOracle(part, risk), settings.radius, (np.arange(len(keep), dtype=np.int32), start),
            tol=min(_TRIAL_TOL, 0.1 * (limit - objective)), max_iter=MAX_STEPS, late=settings.budget.late,
        )  # fmt: skip
        if trial.objective <= limit:
            used, weights = part.columns[trial.columns], trial.weights
        elif n_out == 1:
            break
        else:
            share *= 0.5
    return used, weights


def soft_margin_path(
    task: TrainingTask, radii: Sequence[float], tol: float, late: Callable[[], bool] = lambda: False
) -> Iterator[tuple[Array, ColumnPool]]:
    """The solutions for these radii (best in ascending order), each from the last one.

    Yields the weights over the pool so far, and that pool.
    """
    columns = task.numbered_columns()
    oracle = columns.oracle
    last: tuple[Columns, Array] | None = None
    for radius in radii:
        if last is None:
            start = columns.start(radius)
            solution = newton_by_radius(oracle, radius, start, tol=tol, max_iter=MAX_STEPS, late=late)
        else:
            scaled = last[0], last[1] * (radius / last[1].sum())
            solution = newton_on_simplex(oracle, radius, scaled, tol=tol, max_iter=MAX_STEPS, late=late)
        last = solution.columns, solution.weights
        weights = columns.weights(*last)
        yield columns.pool.netted(weights), columns.pool

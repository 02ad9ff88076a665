"""Columns for a training: the loop with its pace and stop rule, round by round, and TotalQBoost after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.column_generation import Pace, StopRule, Trace, TraceRecord, generate
from cardboost.boosting.held_out import EarlyStop
from cardboost.boosting.scouting import Scout
from cardboost.boosting.totalqboost import ReselectRule, reselect
from cardboost.budget import Stage
from cardboost.dictionary.base import ColumnPool, Dictionary
from cardboost.dictionary.stumps import StumpPool
from cardboost.master.newton import Master
from cardboost.master.problem import PriceRule
from cardboost.risk import EmpiricalRisk

if TYPE_CHECKING:
    from cardboost.boosting.training import TrainingSettings, TrainingTask

Array = NDArray[np.float64]

#: beyond which an intercept means nothing; the free columns need a box for the bound to be finite
INTERCEPT_BOX = {"logistic": 30.0, "exponential": 15.0, "squared_hinge": 15.0, "smooth_hinge": 15.0}


def pace_for(settings: TrainingSettings) -> Pace:
    """One column a round for the edge criterion (the papers' loop) and before a selection, which needs a good
    pool; otherwise more as the pool grows."""
    if settings.criterion == "edge":
        return Pace(newton_steps=50)
    if settings.selects:
        return Pace(newton_steps=2)
    return Pace(
        columns=lambda n: max(1, min(8, n // 4)),
        newton_steps=1,
        full_search_every=2,
        bound_growth=1.2,
        final_tol=0.1 * settings.tol if 0 < settings.tol < 1e-4 else 1e-5,
        certified=settings.tol > 0,
    )


def price_rule(settings: TrainingSettings) -> PriceRule:
    """Prices while columns are generated: what a term costs outright is left to the selection."""
    box = np.inf if settings.max_weight is None else settings.max_weight
    free = settings.intercept_box
    return PriceRule(
        settings.l1, settings.l2, 0.0, box, INTERCEPT_BOX[settings.loss.name] if free is None else free
    )


def stop_rule(settings: TrainingSettings, known: int = 0) -> StopRule:
    """When to stop generating, with ``known`` columns to begin with."""
    limit = min(settings.hot_start, settings.max_iter) if settings.selects else settings.max_iter
    if settings.max_terms is not None and not settings.reselects:
        limit = min(settings.max_iter, max(limit, settings.max_terms))
    columns, weights = Stage.COLUMNS, Stage.WEIGHTS
    if settings.selects:
        columns = Stage.HOT_START if settings.reselects else Stage.CANDIDATES
        weights = Stage.CANDIDATE_WEIGHTS
    return StopRule(
        max(0, limit - known), 0.0 if settings.selects else settings.tol,
        lambda: settings.budget.up(columns), lambda: settings.budget.up(weights),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Grown:
    """Columns that were generated for a task, with their convex weights: what a choice begins from."""

    pool: StumpPool
    weights: Array
    constant: Array  # those of the intercept's columns in the empty model
    master: Master
    trace: Trace
    stages: tuple[Array, ...]  # the weights after every round
    losses: tuple[float, ...]  # on held-out rows after every round
    asked: bool  # whether the caller has ended it

    def copy(self) -> Grown:
        """The same with a pool of its own, for what adds columns to it."""
        return replace(self, pool=self.pool.subset(np.arange(self.pool.n_columns)))


class _Rounds:
    """Keeps the weights of all rounds and tells the caller of each; held-out rows may end them."""

    def __init__(self, task: TrainingTask, settings: TrainingSettings, pool: StumpPool) -> None:
        self.task, self.settings, self.pool = task, settings, pool
        self.early = None if task.held_out is None else EarlyStop(task.held_out)
        self.stages: list[Array] = []
        self.asked = False

    def after(self, record: TraceRecord, weights: Array) -> bool:
        self.stages.append(weights.copy())
        late = self.early is not None and self.early.see(self.pool, weights)
        if self.settings.callback is not None:
            pool = self.pool
            model = lambda: self.task.frame.ensemble(pool.stumps, weights, pool.n_free)  # noqa: E731
            self.asked = bool(self.settings.callback(record, model))
        return self.asked or late


def grow(task: TrainingTask, settings: TrainingSettings) -> Grown:
    """Generate columns; with ``reselect`` those of the hot start."""
    dictionary, risk, rule = task.dictionary, task.risk, price_rule(settings)
    pool = dictionary.pool()
    constant = constant_weights(pool, risk, rule)
    start = constant if task.known is None else task.known.restart(pool)
    start = np.minimum(start, rule.prices(pool.n_columns, pool.n_free).max_weight)
    known = pool.n_columns - pool.n_free
    master = Master(pool, risk, lambda own: rule.prices(own.n_columns, own.n_free), start)
    if known:  # of other rows, or with other prices, the empty model may be better
        master.try_weights(np.concatenate([constant, np.zeros(known)]))
        start = master.weights
    pace = pace_for(settings)
    rounds = _Rounds(task, settings, pool)
    fine = settings.criterion == "edge" or rounds.early is not None
    scout = None if fine else Scout.make(dictionary, risk, rule, pace)
    find = None
    if scout is not None:
        pace = replace(pace, columns=lambda n: 20 + 2 * n, newton_steps=1)
        find = lambda own, w, k: scout.propose(own, w, k, settings.criterion)  # noqa: E731
    found, trace, stop = start, Trace((), "column limit"), stop_rule(settings, known)
    stages = rounds.stages
    losses: tuple[float, ...] = ()
    if stop.max_columns > 0 or not settings.reselects:
        _, solution, trace = generate(
            dictionary, master, stop,
            criterion=settings.criterion, l1=settings.l1, l2=settings.l2, unseen=rule.prices(1, 0),
            pace=pace, callback=lambda record: rounds.after(record, master.weights),
            started=settings.budget.started, scout=find, known=known,
        )  # fmt: skip
        found = solution.weights
        if rounds.early is not None:
            losses = tuple(rounds.early.losses)
            stages = stages[: rounds.early.best + 1]
            pool = pool.subset(np.arange(len(stages[-1])))
            master = Master(pool, risk, lambda own: rule.prices(own.n_columns, own.n_free), stages[-1])
            found = master.solve(pace.final_tol, 200, pace.certified, stop.settled).weights
    return Grown(pool, found, constant, master, trace, tuple(stages), losses, rounds.asked)


def regrow(task: TrainingTask, settings: TrainingSettings, grown: Grown) -> Grown:
    """With ``reselect``: go on from a hot start, choosing again after every column; ``weights`` are chosen.

    The pool grows in place.
    """
    pool, rounds = grown.pool, _Rounds(task, settings, grown.pool)
    found, trace = go_on(
        task.dictionary, pool, task.risk, price_rule(settings), settings, grown.weights, grown.trace,
        rounds.after,
    )  # fmt: skip
    stages, losses = rounds.stages, grown.losses
    if rounds.early is not None:
        losses = (*losses, *rounds.early.losses)
        stages = stages[: rounds.early.best + 1]
        found = stages[-1]
        pool = pool.subset(np.arange(len(found)))
    return replace(
        grown, pool=pool, weights=found, trace=trace, stages=(*grown.stages, *stages), losses=losses
    )


def go_on(
    dictionary: Dictionary,
    pool: ColumnPool,
    risk: EmpiricalRisk,
    rule: PriceRule,
    settings: TrainingSettings,
    start: Array,
    before: Trace,
    callback: Callable[[TraceRecord, Array], object],
    per_round: int = 1,
) -> tuple[Array, Trace]:
    """Choose from the columns of a hot start, then again after every further column."""
    limits = ReselectRule(
        replace(rule, l0=settings.l0),
        settings.max_terms,
        settings.max_iter,
        settings.criterion,
        settings.search,
        per_round,
        settings.budget.end_of(Stage.RESELECTION),
        lambda: settings.budget.up(Stage.RESELECTION),
    )
    # what bounds the convex problem bounds one in which terms cost more, or are fewer
    known = before[-1].lower_bound if len(before) else -np.inf
    weights, trace = reselect(
        dictionary, pool, risk, limits, start,
        lower_bound=known, callback=callback, started=settings.budget.started,
    )  # fmt: skip
    return weights, Trace((*before.records, *trace.records), trace.status)


def constant_weights(pool: ColumnPool, risk: EmpiricalRisk, rule: PriceRule) -> Array:
    """Weights of the intercept's two columns in the empty model."""
    if pool.n_free and risk.target is not None:  # 0, but for the rounding of the mean that was subtracted
        best = risk.weights.mean(risk.target)
    elif pool.n_free and risk.sign is not None:
        fewer = 1 if risk.weights.share(risk.sign > 0) < 0.5 else -1  # whose small share keeps its digits
        best = fewer * risk.loss.best_constant(risk.weights.share(risk.sign == fewer))
    else:
        return np.zeros(pool.n_columns)
    return np.minimum(np.array([max(best, 0.0), max(-best, 0.0)]), rule.intercept_box)

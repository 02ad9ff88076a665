"""Columns for a training: totally corrective rounds, and TotalQBoost after them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.early_stopping import EarlyStopping
from cardboost.boosting.loop import StopRule, boost
from cardboost.boosting.reselecting import Reselecting, ReselectRule
from cardboost.boosting.scout import Scout
from cardboost.boosting.task import TrainingSettings, TrainingTask, padded
from cardboost.boosting.totally_corrective import Pace, TotallyCorrective
from cardboost.dictionary.base import ColumnPool, Dictionary
from cardboost.master.newton import Master
from cardboost.problem.budget import Stage
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk
from cardboost.problem.trace import Record, Status, Trace

Array = NDArray[np.float64]


def pace_for(settings: TrainingSettings, dictionary: Dictionary) -> Pace:
    """One column a round for the edge criterion (the papers' loop) and before a selection, which needs a good
    pool; otherwise more as the pool grows. Learners that are fitted in the loop propose one column each: a
    fit is too dear to be thrown away."""
    if settings.criterion == "edge":
        pace = Pace(newton_steps=50)
    elif settings.selects:
        pace = Pace(newton_steps=2)
    else:
        pace = Pace(
            columns=lambda n: max(1, min(8, n // 4)),
            newton_steps=1,
            full_search_every=2,
            bound_growth=1.2,
            final_tol=0.1 * settings.tol if 0 < settings.tol < 1e-4 else 1e-5,
            certified=settings.tol > 0,
        )
    if dictionary.exact:
        return pace
    steps = max(2, pace.newton_steps)
    return replace(pace, columns=lambda n: dictionary.batch, full_search_every=1, newton_steps=steps)


def stop_rule(settings: TrainingSettings, n_earlier: int = 0) -> StopRule:
    """When to stop generating, with ``n_earlier`` columns to begin with."""
    limit = min(settings.hot_start, settings.max_iter) if settings.selects else settings.max_iter
    if settings.max_terms is not None and not settings.reselects:
        limit = min(settings.max_iter, max(limit, settings.max_terms))
    stage = Stage.COLUMNS
    if settings.selects:
        stage = Stage.HOT_START if settings.reselects else Stage.CANDIDATES
    tol = 0.0 if settings.selects else settings.tol
    return StopRule(max(0, limit - n_earlier), tol, lambda: settings.budget.up(stage))


@dataclass(frozen=True, eq=False)
class Grown:
    """Columns that were generated for a task, with their convex weights: what a choice begins from.

    Parameters
    ----------
    pool, weights
        The columns, and the weights of all of them.
    constant : array
        Weights of the intercept's columns in the empty model.
    master : Master
        The convex problem over the pool.
    trace : Trace
        One record per round.
    stages : tuple of array
        The weights after every round.
    held_out : tuple of float
        The loss on held-out rows after every round, if there are any.
    stopped : bool
        Whether the caller has ended the run.
    """

    pool: ColumnPool
    weights: Array
    constant: Array
    master: Master
    trace: Trace
    stages: tuple[Array, ...] = ()
    held_out: tuple[float, ...] = ()
    stopped: bool = False

    def copy(self) -> Grown:
        """The same with a pool of its own, for what adds columns to it."""
        return replace(self, pool=self.pool.subset(np.arange(self.pool.n_columns)))


class _Watch:
    """Sees every round: keeps its weights, asks the held-out rows, tells the caller."""

    def __init__(self, task: TrainingTask, settings: TrainingSettings, pool: ColumnPool) -> None:
        self.task, self.settings, self.pool = task, settings, pool
        self.early = None if task.held_out is None else EarlyStopping()
        self.stages: list[Array] = []
        self.stopped = False

    def see(self, record: Record, weights: Array) -> Status | bool | None:
        """One more round with these weights; the reason to stop, if there is one."""
        pool, held_out, callback = self.pool, self.task.held_out, self.settings.callback
        self.stages.append(weights.copy())
        reason = None
        if self.early is not None and held_out is not None:
            reason = self.early.status(held_out.loss(pool, weights), pool.n_columns - pool.n_free)
        if callback is not None:
            self.stopped = bool(callback(record, lambda: self.task.ensemble(pool, weights)))
        return self.stopped or reason

    @property
    def held_out_losses(self) -> tuple[float, ...]:
        return () if self.early is None else tuple(self.early.losses)

    def kept_stages(self) -> list[Array]:
        """The weights of all rounds, up to that of the lowest loss on held-out rows."""
        return self.stages if self.early is None else self.stages[: self.early.best_round + 1]


def _master(pool: ColumnPool, risk: EmpiricalRisk, rule: PriceRule, weights: Array) -> Master:
    return Master(pool, risk, lambda pool: rule.prices(pool.n_columns, pool.n_free), weights)


def grow(task: TrainingTask, settings: TrainingSettings) -> Grown:
    """Generate columns; with ``reselect`` those of the hot start."""
    dictionary, risk, rule = task.dictionary, task.risk, settings.price_rule
    pool = dictionary.pool()
    constant = task.constant_weights(pool, rule)
    start = constant if task.earlier is None else task.earlier.restart(pool)
    start = np.minimum(start, rule.prices(pool.n_columns, pool.n_free).max_weight)
    n_earlier = pool.n_columns - pool.n_free
    master = _master(pool, risk, rule, start)
    if n_earlier:  # of other rows, or with other prices, the empty model may be better
        master.try_weights(padded(constant, pool))
        start = master.weights
    stop = stop_rule(settings, n_earlier)
    if stop.max_columns == 0 and settings.reselects:
        return Grown(pool, start, constant, master, Trace((), Status.COLUMN_LIMIT))
    watch, pace = _Watch(task, settings, pool), pace_for(settings, dictionary)
    scout = None
    if settings.criterion == "gain" and watch.early is None:
        scout = Scout.make(dictionary, risk, rule, pace, settings.criterion)
    if scout is not None:
        pace = replace(pace, columns=lambda n: 20 + 2 * n, newton_steps=1)
    weighting = TotallyCorrective(
        master, stop, criterion=settings.criterion, l1=settings.l1, l2=settings.l2,
        unseen=rule.prices(1, 0) if dictionary.exact else None, pace=pace,
        scout=None if scout is None else scout.propose, n_earlier=n_earlier, started=settings.budget.started,
    )  # fmt: skip
    trace = boost(dictionary, weighting, stop, [lambda record: watch.see(record, master.weights)])
    last_stage = Stage.CANDIDATE_WEIGHTS if settings.selects else Stage.WEIGHTS
    weights = weighting.finish(lambda: settings.budget.up(last_stage)).weights
    stages = watch.kept_stages()
    if watch.early is not None:
        pool = pool.subset(np.arange(len(stages[-1])))
        weighting.master = master = _master(pool, risk, rule, stages[-1])
        weights = weighting.finish(lambda: settings.budget.up(last_stage)).weights
    return Grown(pool, weights, constant, master, trace, tuple(stages), watch.held_out_losses, watch.stopped)


def regrow(task: TrainingTask, settings: TrainingSettings, grown: Grown) -> Grown:
    """With ``reselect``: go on from a hot start, choosing again after every column; ``weights`` are chosen.

    The pool grows in place.
    """
    pool, watch, budget = grown.pool, _Watch(task, settings, grown.pool), settings.budget
    rule = ReselectRule(
        replace(settings.price_rule, l0=settings.l0),
        settings.max_terms,
        settings.max_iter,
        settings.criterion,
        settings.search,
        task.dictionary.batch,
        budget.end_of(Stage.RESELECTION),
        lambda: budget.up(Stage.RESELECTION),
    )
    # what bounds the convex problem bounds one in which terms cost more, or are fewer
    lower_bound = grown.trace[-1].lower_bound if len(grown.trace) else -np.inf
    stop = rule.stop_rule(pool)
    weighting = Reselecting(
        pool, task.risk, rule, grown.weights, lower_bound=lower_bound, started=budget.started
    )
    trace = boost(task.dictionary, weighting, stop, [lambda record: watch.see(record, weighting.weights)])
    weights, stages = weighting.weights, watch.kept_stages()
    if watch.early is not None:
        weights = stages[-1]
        pool = pool.subset(np.arange(len(weights)))
    return replace(
        grown,
        pool=pool,
        weights=weights,
        trace=Trace((*grown.trace.records, *trace.records), trace.status),
        stages=(*grown.stages, *stages),
        held_out=(*grown.held_out, *watch.held_out_losses),
    )

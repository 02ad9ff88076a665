"""Soft margins: all weights at once on the simplex, over all stumps of a table, with the gap as the proof.

    min  log sum s_i exp(-F_i)    over  w >= 0,  sum w = R = 1/T

A look at the whole dictionary (one histogram pass) gives the gap and new columns; Newton steps on the columns
in use, or conjugate gradients over all of them, do the rest (docs/soft_margin.md). The rule "always this
class" is one of the columns where there is an intercept, and is paid from the same sum.

Both a stump and its opposite are columns, so that a part of R can cancel: margins of sum R are those of sum R
or less. Models are written without such pairs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.column_generation import Trace, TraceRecord
from cardboost.boosting.path import BoostingPath
from cardboost.boosting.proof import netted, null_model, stump_problem, whole_dictionary_fits
from cardboost.boosting.training import TrainingResult, TrainingTask, constant_weights
from cardboost.certificate.bounds import ROUNDING, Leaf
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import ProvenScope, write_certificate
from cardboost.dictionary.base import ColumnPool
from cardboost.dictionary.stumps import StumpPool
from cardboost.master.problem import PriceRule
from cardboost.master.simplex import (
    Columns,
    DictionaryOracle,
    SimplexRecord,
    newton_by_radius,
    newton_on_simplex,
    soft_point,
)

Array = NDArray[np.float64]

SOFT_MARGIN = "soft margin"
SOFT_STEPS = 10_000  # of Newton, at most


@dataclass(frozen=True)
class SoftMarginSettings:
    """What the user asked for, resolved. ``callback``: as in training by selection."""

    radius: float
    method: str
    tol: float
    max_iter: int  # rounds: looks at the dictionary, or steps of "mprp"
    started: float
    time_limit: float = math.inf
    callback: Callable[[TraceRecord, Callable[[], Any]], object] | None = None
    stopped: Callable[[], bool] = lambda: False

    def late(self, share: float = 1.0) -> bool:
        """Whether this share of the time is up, or the caller has asked to stop."""
        return time.perf_counter() >= self.started + share * self.time_limit or self.stopped()

    def shared(self, among: int) -> SoftMarginSettings:
        """What is left of the time, shared among so many trainings."""
        now = time.perf_counter()
        left = max(1e-3, self.started + self.time_limit - now)
        return replace(self, started=now, time_limit=left / among)


class Rounds:
    """Sees every round of a solver: keeps its weights and a record, tells the caller, ends it in time."""

    def __init__(self, pool: ColumnPool, settings: SoftMarginSettings, model: Callable[[Array], Any]) -> None:
        """``model`` makes the model of weights over the pool."""
        self.pool, self.settings, self.model = pool, settings, model
        self.stages: list[Array] = []
        self.records: list[TraceRecord] = []
        self.asked = False

    def see(self, record: SimplexRecord, columns: Columns, weights: Array) -> bool:
        pool, settings = self.pool, self.settings
        full = full_weights(pool, columns, weights)
        self.stages.append(full)
        terms = int(np.count_nonzero(full[pool.n_free :]))
        own = pool.n_columns - pool.n_free, terms, record.objective, record.objective - record.gap
        self.records.append(TraceRecord(*own, -record.slope, time.perf_counter() - settings.started))
        if settings.callback is not None:
            self.asked = bool(settings.callback(self.records[-1], lambda: self.model(full)))
        return self.asked or (len(self.records) >= settings.max_iter and record.gap > settings.tol)

    def trace(self, status: str) -> Trace:
        if status == "stopped" and not self.asked:
            status = "iteration limit"
        return Trace(tuple(self.records), status)


def train_soft_margin(task: TrainingTask, settings: SoftMarginSettings) -> TrainingResult:
    """The ensemble of stumps with the largest soft margin, and its certificate."""
    oracle = DictionaryOracle(task.dictionary, task.risk)
    pool = oracle.pool
    assert isinstance(pool, StumpPool)
    rounds = Rounds(pool, settings, lambda weights: task.frame.ensemble(pool.stumps, weights, pool.n_free))
    found = newton_by_radius(
        oracle, settings.radius, first_columns(oracle, settings.radius, task.known),
        tol=settings.tol, max_iter=SOFT_STEPS, callback=rounds.see, late=settings.late,
    )  # fmt: skip
    weights = netted(pool, full_weights(pool, found.columns, found.weights))
    pool.place_missing(weights)
    path = BoostingPath(task.frame, pool.stumps, pool.n_free, tuple(rounds.stages))
    ensemble = task.frame.ensemble(pool.stumps, weights, pool.n_free)
    certificate = Certificate(_proof(task, pool, weights, settings.radius), task.positive)
    return TrainingResult(ensemble, certificate, rounds.trace(found.status), path)


def soft_margin_path(
    task: TrainingTask, radii: Sequence[float], tol: float, late: Callable[[], bool] = lambda: False
) -> Iterator[tuple[float, Array, StumpPool]]:
    """The solutions for these radii (best in ascending order), each from the last one: radius, weights over
    the pool so far, and that pool."""
    oracle = DictionaryOracle(task.dictionary, task.risk)
    pool = oracle.pool
    assert isinstance(pool, StumpPool)
    start: tuple[Columns, Array] | None = None
    for radius in radii:
        if start is None:
            start = first_columns(oracle, radius, None)
            found = newton_by_radius(oracle, radius, start, tol=tol, max_iter=SOFT_STEPS, late=late)
        else:
            columns, weights = start
            scaled = columns, weights * (radius / weights.sum())
            found = newton_on_simplex(oracle, radius, scaled, tol=tol, max_iter=SOFT_STEPS, late=late)
        start = found.columns, found.weights
        yield radius, netted(pool, full_weights(pool, *start)), pool


def full_weights(pool: ColumnPool, columns: Columns, weights: Array) -> Array:
    """Weights over the whole pool."""
    full = np.zeros(pool.n_columns)
    full[columns] = weights
    return full


def first_columns(
    oracle: DictionaryOracle, radius: float, known: BoostingPath | None
) -> tuple[Columns, Array]:
    """Columns and weights to begin with: those of an earlier model, or the best column alone."""
    pool = oracle.pool
    if known is not None:
        assert isinstance(pool, StumpPool)
        weights = known.restart(pool)
        if weights.any():
            used = np.flatnonzero(weights)
            return used.astype(np.int32), weights[used] * (radius / weights.sum())
    _, point = oracle.at(np.empty(0, dtype=np.int32), np.empty(0))
    best, _ = oracle.search(point, np.empty(0, dtype=np.int32), 1)
    if len(best) == 0:
        raise ValueError("X has no column that tells rows apart, and there is no intercept.")
    return best, np.array([radius])


def _proof(task: TrainingTask, pool: StumpPool, weights: Array, radius: float) -> dict[str, Any]:
    """The content of the certificate: p of the solution bounds every other one."""
    risk, dictionary = task.risk, task.dictionary
    value, point = soft_point(risk, pool.margins(weights))
    edges = pool.edges(point) / point.value
    pool_bound = soft_bound(value, float(weights @ edges), float(edges.max(initial=0.0)), radius)
    bounds = [ProvenScope("pool", pool.n_columns, [Leaf(weights, 1.0, pool_bound)])]
    if whole_dictionary_fits(dictionary):
        unseen = dictionary.best_columns(point, 1, pool, "edge").bound / point.value
        most = max(float(edges.max(initial=0.0)), unseen)
        bound = soft_bound(value, float(weights @ edges), most, radius)
        bounds.insert(0, ProvenScope("dictionary", pool.n_columns, [Leaf(weights, 1.0, bound)]))
    rule = PriceRule(0.0, 0.0, intercept_box=radius)
    null = null_model(pool, constant_weights(pool, risk, rule), lambda F: soft_point(risk, F)[0])
    problem = stump_problem(pool, rule, task.facts, SOFT_MARGIN, radius=radius)
    return write_certificate(problem, weights, value, null, bounds)


def soft_bound(value: float, mean_margin: float, edge: float, radius: float) -> float:
    """What no weights of sum ``radius`` at most are below: -sum p log(p / s) - radius * (largest edge), from
    the value and the mean margin (by p) at the weights that p belongs to."""
    most = radius * max(0.0, edge)
    return value + mean_margin - most - ROUNDING * (1.0 + abs(value) + abs(mean_margin) + most)

"""Soft margins: all weights at once on the simplex, over all stumps of a table, with the gap as the proof.

    min  log sum s_i exp(-F_i)    over  w >= 0,  sum w = R = 1/T

A look at the whole dictionary (one histogram pass) gives the gap and new columns; Newton steps on the columns
in use, or conjugate gradients over all of them, do the rest (docs/soft_margin.md). The rule "always this
class" is one of the columns where there is an intercept, and is paid from the same sum.

Both a stump and its opposite are columns, so that a part of R can cancel: margins of sum R are those of sum R
or less. Models are written without such pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.column_generation import Trace, TraceRecord
from cardboost.boosting.growing import constant_weights
from cardboost.boosting.path import BoostingPath
from cardboost.boosting.proof import netted, null_model, stump_problem, whole_dictionary_fits
from cardboost.boosting.training import TrainingResult, TrainingTask
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import ProvenScope, write_certificate
from cardboost.dictionary.stump_store import StumpStore
from cardboost.dictionary.stumps import StumpPool
from cardboost.master.mprp import MatrixAlong, mprp_on_simplex
from cardboost.master.simplex import (
    Columns,
    MatrixOracle,
    SimplexRecord,
    SimplexSolution,
    SubStore,
    newton_by_radius,
    newton_on_simplex,
    soft_point,
)
from cardboost.model.ensemble import Ensemble
from cardboost.problem.bound import ROUNDING, Leaf
from cardboost.problem.budget import Budget
from cardboost.problem.prices import PriceRule

Array = NDArray[np.float64]

SOFT_MARGIN = "soft margin"
SOFT_STEPS = 10_000  # of Newton, at most
_STAGES = 200  # whose models are kept
_TRIED = 1e-4  # gap of weights on fewer columns


@dataclass(frozen=True)
class SoftMarginSettings:
    """What the user asked for, resolved. ``callback``: as in training by selection."""

    radius: float
    method: str
    tol: float
    max_iter: int  # rounds: looks at the dictionary, or steps of "mprp"
    slack: float = 0.0  # share of the improvement that fewer terms may cost
    callback: Callable[[TraceRecord, Callable[[], Any]], object] | None = None
    budget: Budget = field(default_factory=Budget)


class Rounds:
    """Sees every round of a solver: keeps its weights and a record, tells the caller, ends it in time."""

    def __init__(
        self,
        settings: SoftMarginSettings,
        terms: Callable[[Columns], Columns],
        model: Callable[[Columns, Array], Any],
    ) -> None:
        """``terms``: those of these columns that are not the intercept's. ``model``: the model of columns and
        their weights."""
        self.settings, self.terms, self.model = settings, terms, model
        self.stages: list[tuple[Columns, Array]] = []
        self.records: list[TraceRecord] = []
        self.seen: set[int] = set()
        self.asked = False

    def see(self, record: SimplexRecord, columns: Columns, weights: Array) -> bool:
        used, settings = weights > 0, self.settings
        columns, weights = columns[used], weights[used]
        self.stages.append((columns, weights))
        terms = self.terms(columns).tolist()
        self.seen.update(terms)
        own = len(self.seen), len(terms), record.objective, record.objective - record.gap
        self.records.append(TraceRecord(*own, -record.slope, settings.budget.elapsed))
        if settings.callback is not None:
            self.asked = bool(settings.callback(self.records[-1], lambda: self.model(columns, weights)))
        return self.asked or (len(self.records) >= settings.max_iter and record.gap > settings.tol)

    def trace(self, status: str) -> Trace:
        if status == "stopped" and not self.asked:
            status = "iteration limit"
        return Trace(tuple(self.records), status)

    def kept_stages(self) -> list[tuple[Columns, Array]]:
        """All stages, or evenly some of many, with the first and the last."""
        n = len(self.stages)
        return [self.stages[k] for k in np.unique(np.linspace(0, n - 1, min(n, _STAGES)).round().astype(int))]


class _Columns:
    """Stumps by number, and the pool of those that are wanted, behind the intercept's."""

    def __init__(self, task: TrainingTask) -> None:
        self.frame, self.store = task.frame, StumpStore(task.dictionary, task.risk.weights)
        self.pool = task.dictionary.pool()
        n = self.store.n_stumps
        self._places = {n + k: k for k in range(self.pool.n_free)}

    def terms(self, columns: Columns) -> Columns:
        return columns[columns < self.store.n_stumps]

    def weights(self, columns: Columns, weights: Array) -> Array:
        """Weights over the pool, into which new columns come."""
        new = np.array([own for own in columns.tolist() if own not in self._places], dtype=np.int32)
        if len(new):
            first = self.pool.n_columns
            self._places.update(zip(new.tolist(), range(first, first + len(new)), strict=True))
            self.pool.append(self.store.stumps(new))
        full = np.zeros(self.pool.n_columns)
        full[[self._places[own] for own in columns.tolist()]] = weights
        return full

    def ensemble(self, columns: Columns, weights: Array) -> Ensemble:
        full = self.weights(columns, weights)
        return self.frame.ensemble(self.pool.stumps, full, self.pool.n_free)

    def start(self, oracle: MatrixOracle, radius: float, known: BoostingPath | None) -> tuple[Columns, Array]:
        """Columns and weights to begin with: those of an earlier model, or the best column alone."""
        if known is not None:
            pool = self.store.dictionary.pool()
            weights = known.restart(pool)
            numbers = np.append(
                self.store.n_stumps + np.arange(pool.n_free),
                self.store.numbers(pool.stumps[pool.n_free :]),
            ).astype(np.int32)
            columns = np.unique(numbers)
            summed = np.bincount(np.searchsorted(columns, numbers), weights, len(columns))
            if summed.any():
                used = summed > 0
                return columns[used], summed[used] * (radius / summed.sum())
        if len(self.store) == 0:
            raise ValueError("X has no column that tells rows apart, and there is no intercept.")
        _, point = soft_point(oracle.risk, np.zeros(self.store.n_rows))
        best = int(np.argmin(oracle.every_slope(point)))
        return np.array([best], dtype=np.int32), np.array([radius])


def train_soft_margin(task: TrainingTask, settings: SoftMarginSettings) -> TrainingResult:
    """The ensemble of stumps with the largest soft margin, and its certificate."""
    columns = _Columns(task)
    oracle = MatrixOracle(columns.store, task.risk)
    start = columns.start(oracle, settings.radius, task.known)
    rounds = Rounds(settings, columns.terms, columns.ensemble)
    if settings.method == "newton":
        found = newton_by_radius(
            oracle, settings.radius, start,
            tol=settings.tol, max_iter=SOFT_STEPS, callback=rounds.see, late=settings.budget.late,
        )  # fmt: skip
    else:
        full = np.zeros(len(columns.store))
        full[start[0]] = start[1]
        found = mprp_on_simplex(
            MatrixAlong(oracle), settings.radius, full,
            tol=settings.tol, max_iter=settings.max_iter, callback=rounds.see, late=settings.budget.late,
        )  # fmt: skip
    stages = [columns.weights(*own) for own in rounds.kept_stages()]
    pool = columns.pool
    best = netted(pool, columns.weights(found.columns, found.weights))
    weights = best
    if settings.slack > 0.0:
        few = _fewer(oracle, task, found, settings)
        weights = netted(pool, columns.weights(*few))
    pool.place_missing(weights)
    path = BoostingPath(task.frame, pool.stumps, pool.n_free, tuple(stages))
    ensemble = task.frame.ensemble(pool.stumps, weights, pool.n_free)
    certificate = Certificate(_proof(task, pool, weights, best, settings.radius), task.positive)
    return TrainingResult(ensemble, certificate, rounds.trace(found.status), path)


def _fewer(
    oracle: MatrixOracle, task: TrainingTask, found: SimplexSolution, settings: SoftMarginSettings
) -> tuple[Columns, Array]:
    """Fewer columns that keep all but ``slack`` of the improvement over the empty model.

    The smallest weights go, a fifth of them at a time and fewer where that is too many, and those left are
    weighed anew, until no single one of the smallest can go.
    """
    columns, weights = found.columns, found.weights
    null = _null(task, settings.radius)[1]
    limit, share = found.objective + settings.slack * max(0.0, null - found.objective), 0.2
    while len(columns) > 1 and not settings.budget.late():
        out = max(1, int(share * len(columns)))
        keep = np.sort(np.argsort(weights, kind="stable")[out:])
        part = SubStore(oracle.store, columns[keep])
        start = weights[keep] * (settings.radius / weights[keep].sum())
        tried = newton_on_simplex(
            MatrixOracle(part, task.risk), settings.radius, (np.arange(len(keep), dtype=np.int32), start),
            tol=min(_TRIED, 0.1 * (limit - found.objective)), max_iter=SOFT_STEPS, late=settings.budget.late,
        )  # fmt: skip
        if tried.objective <= limit:
            columns, weights = part.columns[tried.columns], tried.weights
        elif out == 1:
            break
        else:
            share *= 0.5
    return columns, weights


def soft_margin_path(
    task: TrainingTask, radii: Sequence[float], tol: float, late: Callable[[], bool] = lambda: False
) -> Iterator[tuple[float, Array, StumpPool]]:
    """The solutions for these radii (best in ascending order), each from the last one: radius, weights over
    the pool so far, and that pool."""
    columns = _Columns(task)
    oracle = MatrixOracle(columns.store, task.risk)
    start: tuple[Columns, Array] | None = None
    for radius in radii:
        if start is None:
            start = columns.start(oracle, radius, None)
            found = newton_by_radius(oracle, radius, start, tol=tol, max_iter=SOFT_STEPS, late=late)
        else:
            scaled = start[0], start[1] * (radius / start[1].sum())
            found = newton_on_simplex(oracle, radius, scaled, tol=tol, max_iter=SOFT_STEPS, late=late)
        start = found.columns, found.weights
        weights = columns.weights(*start)
        yield radius, netted(columns.pool, weights), columns.pool


def _null(task: TrainingTask, radius: float) -> tuple[float, float]:
    """Intercept and objective of the empty model."""
    pool, rule = task.dictionary.pool(), PriceRule(0.0, 0.0, intercept_box=radius)
    start = constant_weights(pool, task.risk, rule)
    return null_model(pool, start, lambda F: soft_point(task.risk, F)[0])


def _proof(task: TrainingTask, pool: StumpPool, weights: Array, best: Array, radius: float) -> dict[str, Any]:
    """The content of the certificate: p of the ``best`` weights found bounds all others."""
    risk, dictionary = task.risk, task.dictionary
    objective = soft_point(risk, pool.margins(weights))[0]
    value, point = soft_point(risk, pool.margins(best))
    edges = pool.edges(point) / point.value
    mean, most = float(best @ edges), float(edges.max(initial=0.0))
    bounds = [ProvenScope("pool", pool.n_columns, [Leaf(best, 1.0, soft_bound(value, mean, most, radius))])]
    if whole_dictionary_fits(dictionary):
        most = max(most, dictionary.best_columns(point, 1, pool, "edge").bound / point.value)
        leaf = Leaf(best, 1.0, soft_bound(value, mean, most, radius))
        bounds.insert(0, ProvenScope("dictionary", pool.n_columns, [leaf]))
    rule = PriceRule(0.0, 0.0, intercept_box=radius)
    problem = stump_problem(pool, rule, task.facts, SOFT_MARGIN, radius=radius)
    return write_certificate(problem, weights, objective, _null(task, radius), bounds)


def soft_bound(value: float, mean_margin: float, edge: float, radius: float) -> float:
    """What no weights of sum ``radius`` at most are below: -sum p log(p / s) - radius * (largest edge), from
    the value and the mean margin (by p) at the weights that p belongs to."""
    most = radius * max(0.0, edge)
    return value + mean_margin - most - ROUNDING * (1.0 + abs(value) + abs(mean_margin) + most)

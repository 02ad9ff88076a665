"""From a table to a certified ensemble: generate columns, choose some, prove how good the choice is.

This is "generate, then select once". Without a limit on terms and without a price per term there is nothing
to choose: the convex solution is the model, and its gap over the whole dictionary is the certificate.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.column_generation import Pace, StopRule, Trace, TraceRecord, generate
from cardboost.boosting.scouting import Scout
from cardboost.cardinality.deepening import deepen
from cardboost.cardinality.polish import polish
from cardboost.cardinality.problem import CardinalityProblem
from cardboost.cardinality.relaxation import dictionary_relaxation, pool_relaxation
from cardboost.certificate.bounds import Leaf, dual_bound
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import CertifiedProblem, ProvenScope, intercept_of, write_certificate
from cardboost.data.binning import BinnedMatrix
from cardboost.data.weights import RowWeights
from cardboost.dictionary.base import Criterion
from cardboost.dictionary.stumps import StumpDictionary, StumpPool
from cardboost.losses import Loss
from cardboost.master.newton import Master
from cardboost.master.problem import FeatureLimits, PriceRule
from cardboost.model.ensemble import Ensemble, Term
from cardboost.risk import EmpiricalRisk

Array = NDArray[np.float64]

#: log-odds beyond which an intercept means nothing; the free columns need a box for the bound to be finite
INTERCEPT_BOX = {"logistic": 30.0, "exponential": 15.0}
_CUTS_IN_FILE = 200_000


@dataclass(frozen=True)
class TrainingSettings:
    """What the user asked for, resolved."""

    loss: Loss
    max_terms: int | None
    l0: float
    l1: float
    l2: float
    criterion: Criterion
    hot_start: int
    max_iter: int
    max_weight: float | None
    tol: float
    fit_intercept: bool
    threads: int
    time_limit: float
    started: float
    callback: Callable[[TraceRecord], object] | None = None
    stopped: Callable[[], bool] = lambda: False
    max_features: int | None = None
    feature_costs: Array | None = None  # one per feature of the table

    def late(self, share: float = 1.0) -> bool:
        """Whether this share of the time is up, or the caller has asked to stop."""
        return time.perf_counter() >= self.started + share * self.time_limit or self.stopped()

    @property
    def selects(self) -> bool:
        return self.max_terms is not None or self.l0 > 0 or self.limits is not None

    @property
    def limits(self) -> FeatureLimits | None:
        return FeatureLimits.make(self.max_features, self.feature_costs)


@dataclass(frozen=True)
class DataFacts:
    """What the certificate says of the data."""

    n_rows: int
    n_features: int
    digest: Callable[[], str]
    class_weight: tuple[float, float]


@dataclass(frozen=True, eq=False)
class TrainingResult:
    ensemble: Ensemble
    certificate: Certificate
    trace: Trace


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


def train(
    matrix: BinnedMatrix,
    sign: NDArray[np.int8],
    weights: RowWeights,
    settings: TrainingSettings,
    facts: DataFacts,
    feature_names: tuple[str, ...] | None,
    classes: tuple[Any, Any],
) -> TrainingResult:
    """Fit a binary ensemble of stumps and its certificate."""
    limited = settings.limits is not None
    dictionary = StumpDictionary(matrix, sign, settings.threads, settings.fit_intercept, weights, limited)
    risk = EmpiricalRisk(settings.loss, weights, sign, settings.threads)
    box = np.inf if settings.max_weight is None else settings.max_weight
    rule = PriceRule(settings.l1, settings.l2, 0.0, box, INTERCEPT_BOX[settings.loss.name])
    pool = dictionary.pool()
    start = _constant_weights(pool, risk, rule)
    master = Master(pool, risk, lambda own: rule.prices(own.n_columns, own.n_free), start)
    limit = min(settings.hot_start, settings.max_iter) if settings.selects else settings.max_iter
    if settings.max_terms is not None:
        limit = min(settings.max_iter, max(limit, settings.max_terms))
    # with a time limit half of it is for generating where a selection and its proof follow
    deadline = settings.started + settings.time_limit * (0.5 if settings.selects else 0.9)
    pace = pace_for(settings)
    scout = None if settings.criterion == "edge" else Scout.make(dictionary, risk, rule, pace)
    find = None
    if scout is not None:
        pace = replace(pace, columns=lambda n: 20 + 2 * n, newton_steps=1)
        find = lambda own, w, k: scout.propose(own, w, k, settings.criterion)  # noqa: E731
    _, solution, trace = generate(
        dictionary, master,
        StopRule(limit, 0.0 if settings.selects else settings.tol, deadline),
        criterion=settings.criterion, l1=settings.l1, l2=settings.l2, unseen=rule.prices(1, 0),
        pace=pace, callback=settings.callback, started=settings.started, scout=find,
    )  # fmt: skip
    null = _null_model(pool, risk, start)
    proof = _Proof(dictionary, pool, risk, settings, facts, null)
    if settings.selects:
        certified, weights_found = proof.select(rule, solution.weights)
    else:
        master.move_to(_netted(pool, master.weights))
        weights_found = master.weights
        certified = proof.convex(rule, master)
    ensemble = _ensemble(pool, weights_found, matrix, settings.loss, feature_names, classes)
    return TrainingResult(ensemble, Certificate(certified, classes[1]), trace)


def _constant_weights(pool: StumpPool, risk: EmpiricalRisk, rule: PriceRule) -> Array:
    """Weights of the intercept's two columns in the empty model."""
    if not pool.n_free or risk.sign is None:
        return np.zeros(pool.n_columns)
    best = risk.loss.best_constant(risk.weights.share(risk.sign > 0))
    return np.minimum(np.array([max(best, 0.0), max(-best, 0.0)]), rule.intercept_box)


def _null_model(pool: StumpPool, risk: EmpiricalRisk, start: Array) -> tuple[float, float]:
    """Intercept and objective of the empty model."""
    empty = pool.subset(np.arange(pool.n_free))
    return intercept_of(start, pool.n_free), risk.evaluate(empty.margins(start)).value


def _netted(pool: StumpPool, weights: Array) -> Array:
    """Without opposite stumps that cancel: the scores are the same and no price is higher."""
    place: dict[tuple[int, int, bool, int], int] = {}
    out, stumps = weights.copy(), pool.stumps
    for j in np.flatnonzero(weights):
        cut = (int(stumps.feature[j]), int(stumps.cut[j]), bool(stumps.missing_left[j]))
        other = place.get((*cut, -int(stumps.polarity[j])))
        if other is None:
            place[(*cut, int(stumps.polarity[j]))] = int(j)
        else:
            shared = min(out[j], out[other])
            out[j] -= shared
            out[other] -= shared
    return out


@dataclass(frozen=True, eq=False)
class _Proof:
    """Gathers what the certificate needs."""

    dictionary: StumpDictionary
    pool: StumpPool
    risk: EmpiricalRisk
    settings: TrainingSettings
    facts: DataFacts
    null: tuple[float, float]

    @property
    def _whole_dictionary_fits(self) -> bool:
        return sum(len(cuts) for cuts in self.dictionary.matrix.cuts) <= _CUTS_IN_FILE

    def convex(self, rule: PriceRule, master: Master) -> dict[str, Any]:
        """No choice was made: the gap over the dictionary is the proof."""
        point, pool = master.point, self.pool
        edges = pool.edges(point)
        bounds = []
        if self._whole_dictionary_fits:
            unseen_edge = self.dictionary.best_columns(point, 1, pool, "edge").bound
            bound, theta = dual_bound(point, edges, master.prices, None, unseen_edge, rule.prices(1, 0))
            bounds.append(ProvenScope("dictionary", pool.n_columns, [Leaf(master.weights, theta, bound)]))
        bound, theta = dual_bound(point, edges, master.prices)
        bounds.append(ProvenScope("pool", pool.n_columns, [Leaf(master.weights, theta, bound)]))
        return self._write(pool, rule, master.weights, master.objective, bounds)

    def select(self, rule: PriceRule, start: Array) -> tuple[dict[str, Any], Array]:
        """Choose columns of the pool, then bound any choice in the pool or the dictionary."""
        pool, settings = self.pool, self.settings
        rule = replace(rule, l0=settings.l0)
        limits = settings.limits
        problem = CardinalityProblem(
            pool, self.risk, rule.prices(pool.n_columns, pool.n_free), settings.max_terms,
            None if limits is None else pool.features, limits,
        )  # fmt: skip
        found, _ = polish(problem, start, lambda: settings.late(0.65 if limits else 0.75))
        if limits is not None:
            problem, found = deepen(problem, found, self.dictionary, rule, lambda: settings.late(0.75))
        weights = found.weights
        if settings.max_weight is None:
            largest = float(np.max(weights[pool.n_free :], initial=0.0))
            rule = replace(rule, max_weight=2.0 * largest if largest > 0 else 1.0)
            problem = problem.with_box(rule.max_weight)
        objective = problem.objective(self.risk.evaluate(pool.margins(weights)).value, weights)
        root = pool_relaxation(problem, weights, lambda: settings.late(0.85))
        bounds = [ProvenScope("pool", pool.n_columns, [root.leaf])]
        everything = pool
        if self._whole_dictionary_fits:
            everything = pool.subset(np.arange(pool.n_columns))
            wide = replace(problem, pool=everything)
            outer = dictionary_relaxation(
                wide, self.dictionary, rule, root.weights, settings.max_iter // 4, lambda: settings.late(0.95)
            )
            bounds.append(ProvenScope("dictionary", everything.n_columns, [outer.leaf]))
            if outer.leaf.bound > root.leaf.bound:  # what bounds the dictionary bounds the pool
                point = self.risk.evaluate(everything.margins(outer.leaf.weights))
                edges = everything.edges(point)[: pool.n_columns]
                bound, theta = dual_bound(
                    point, edges, problem.prices, problem.max_terms, groups=problem.groups, limits=limits
                )
                bounds[0] = ProvenScope("pool", pool.n_columns, [Leaf(outer.leaf.weights, theta, bound)])
        return self._write(everything, rule, weights, objective, bounds), weights

    def _write(
        self,
        pool: StumpPool,
        rule: PriceRule,
        weights: Array,
        objective: float,
        bounds: list[ProvenScope],
    ) -> dict[str, Any]:
        free, cuts = pool.n_free, self.dictionary.matrix.cuts
        stumps, limits = pool.stumps[free:], self.settings.limits
        problem = CertifiedProblem(
            kind="stumps",
            loss=self.settings.loss.name,
            max_terms=self.settings.max_terms,
            columns={
                "feature": stumps.feature.tolist(),
                "cut": [_cut(cuts, f, c) for f, c in zip(stumps.feature, stumps.cut, strict=True)],
                "polarity": stumps.polarity.tolist(),
                "missing_left": stumps.missing_left.tolist(),
            },
            prices=rule.prices(len(stumps), 0),
            rows=self.facts.n_rows,
            features=self.facts.n_features,
            digest=self.facts.digest(),
            n_free=free,
            intercept_box=rule.intercept_box if free else None,
            class_weight=self.facts.class_weight,
            unseen=rule.prices(1, 0),
            cuts=cuts,
            max_features=None if limits is None else limits.max_features,
            feature_costs=None if limits is None else limits.costs,
        )
        return write_certificate(problem, weights, objective, self.null, bounds)


def _cut(cuts: tuple[Array, ...], feature: int, cut: int) -> float | None:
    return float(cuts[feature][cut]) if cut < len(cuts[feature]) else None


def _ensemble(
    pool: StumpPool,
    weights: Array,
    matrix: BinnedMatrix,
    loss: Loss,
    feature_names: tuple[str, ...] | None,
    classes: tuple[Any, Any],
) -> Ensemble:
    terms = []
    for j in np.flatnonzero(weights):
        if j < pool.n_free:
            continue
        feature, cut = int(pool.stumps.feature[j]), int(pool.stumps.cut[j])
        at = _cut(matrix.cuts, feature, cut)
        terms.append(
            Term(
                feature,
                np.inf if at is None else at,
                int(pool.stumps.polarity[j]),
                bool(pool.stumps.missing_left[j]),
                float(weights[j]),
            )
        )
    return Ensemble(
        loss=loss.name,
        intercept=intercept_of(weights, pool.n_free),
        terms=tuple(terms),
        feature_names=feature_names,
        n_features=matrix.n_features,
        classes=classes,
    )

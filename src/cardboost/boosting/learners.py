"""From any weak learners to a certified ensemble: loop and selection of ``training`` on stored columns.

A certificate of learners is one of a matrix: its columns are the intercept's two, uncharged, and the outputs
of the candidates times the label. :func:`verify_learners` makes that matrix anew and asks the checker.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.column_generation import Pace, Trace, TraceRecord, generate
from cardboost.boosting.growing import constant_weights, go_on, pace_for, price_rule, stop_rule
from cardboost.boosting.path import ModelFrame
from cardboost.boosting.resolve import bind_dictionary, resolve_dictionary
from cardboost.boosting.training import TrainingSettings, choose
from cardboost.budget import Stage
from cardboost.cardinality.relaxation import dictionary_relaxation
from cardboost.cardinality.select import SearchOptions
from cardboost.certificate.bounds import Leaf, dual_bound, guarantee
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.checker import data_digest
from cardboost.certificate.writer import CertifiedProblem, ProvenScope, intercept_of, write_certificate
from cardboost.data.binning import BinnedMatrix
from cardboost.data.exact import refuse_mask, unmasked
from cardboost.data.weights import RowWeights
from cardboost.dictionary.estimators import LearnerDictionary, LearningRows, UnionDictionary, stumps_of
from cardboost.dictionary.learner_pool import Candidate, LearnerPool
from cardboost.dictionary.stumps import StumpDictionary, StumpPool, Stumps
from cardboost.losses import Loss
from cardboost.master.newton import Master
from cardboost.master.problem import PriceRule
from cardboost.model.ensemble import Ensemble, model_loss
from cardboost.model.learners import LearnerEnsemble, WeightedLearner
from cardboost.outputs import FittedLearner, count_rows
from cardboost.risk import EmpiricalRisk, risk_of

Array = NDArray[np.float64]

_ROUNDING = 1e-9  # by which the margins of a model may differ from those of its certificate


@dataclass(frozen=True, eq=False)
class Candidates:
    """The learners that a certificate is about, and how rows and labels become its matrix."""

    learners: tuple[FittedLearner, ...]
    intercept: bool
    classes: tuple[Any, Any]
    class_weight: tuple[float, float]

    def matrix(self, X: Any, y: Any) -> NDArray[Any]:
        """Rows by columns: the intercept's two, if there is one, and the candidates', label multiplied in."""
        X = unmasked(X)
        sign = self._sign(X, y)
        columns = [sign, -sign] if self.intercept else []
        columns += [own.scores(X) * sign for own in self.learners]
        return np.stack(columns, axis=1) if columns else np.empty((len(sign), 0))

    def view(self, X: Any, y: Any, sample_weight: Any) -> tuple[NDArray[Any], None, Array | None]:
        """What the certificate is about: the matrix and the weights of its rows."""
        return self.matrix(X, y), None, self.weight(X, y, sample_weight)

    def weight(self, X: Any, y: Any, sample_weight: Any = None) -> Array | None:
        """Weights of the matrix's rows: those of the class included."""
        return row_weight(self._sign(X, y), sample_weight, self.class_weight)

    def _sign(self, X: Any, y: Any) -> NDArray[np.int8]:
        refuse_mask(y, "y")
        labels = np.asarray(y)
        if labels.shape != (count_rows(X),):
            raise ValueError(f"y must hold {count_rows(X)} labels; found shape {labels.shape}.")
        return np.where(labels == self.classes[1], 1, -1).astype(np.int8)


def row_weight(sign: NDArray[np.int8], sample_weight: Any, class_weight: tuple[float, float]) -> Array | None:
    """Row weights times class weights; None where all are 1."""
    refuse_mask(sample_weight, "sample_weight")
    if class_weight == (1.0, 1.0):
        return None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    factor = np.where(sign > 0, class_weight[1], class_weight[0])
    return factor if sample_weight is None else np.asarray(sample_weight, dtype=np.float64) * factor


def learner_faults(
    candidates: Candidates,
    certificate: Certificate,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    ensemble: LearnerEnsemble | None = None,
) -> list[str]:
    """Every claim that the data contradict, in sentences; empty when all hold.

    Every candidate is asked again for its output on ``X``, and the independent checker recomputes each number
    of the certificate from there. With ``ensemble``, also whether it is the model that the certificate means.
    """
    A = candidates.matrix(X, y)
    faults = replace(certificate, view=None).faults(A, None, candidates.weight(X, y, sample_weight))
    if ensemble is not None and not faults:
        pairs = certificate.to_dict()["solution"]["weights"]
        weights = np.zeros(A.shape[1])
        for column, weight in pairs:
            weights[column] = weight
        claimed, found = A @ weights, candidates._sign(X, y) * ensemble.decision_function(unmasked(X))
        if not np.allclose(claimed, found, rtol=_ROUNDING, atol=_ROUNDING):
            worst = float(np.max(np.abs(claimed - found)))
            faults.append(f"solution.weights: the margins of the model differ from theirs by up to {worst:g}")
    return faults


def verify_learners(
    candidates: Candidates,
    certificate: Certificate,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    ensemble: LearnerEnsemble | None = None,
) -> bool:
    """Whether every claim of the certificate holds for these rows (see :func:`learner_faults`)."""
    return not learner_faults(candidates, certificate, X, y, sample_weight, ensemble)


@dataclass(frozen=True, eq=False)
class LearnerResult:
    """A fitted ensemble of learners with its proof.

    ``null_objective`` is the objective of the intercept alone. A certificate of a matrix measures its own
    guarantee from the model without any column; :attr:`guarantee` measures from the intercept alone, which is
    never more.
    """

    ensemble: LearnerEnsemble
    certificate: Certificate
    trace: Trace
    candidates: Candidates
    null_objective: float

    @property
    def guarantee(self) -> float:
        """At least this share of the improvement over the intercept alone that the candidates allow."""
        return guarantee(self.null_objective, self.certificate.objective, self.certificate.lower_bound)

    def faults(self, X: Any, y: Any, sample_weight: Any = None) -> list[str]:
        return learner_faults(self.candidates, self.certificate, X, y, sample_weight, self.ensemble)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> bool:
        return not self.faults(X, y, sample_weight)


@dataclass(frozen=True, eq=False)
class LearnerTask:
    """Weak learners on the rows that they are fitted to, and what their models are called."""

    source: LearnerDictionary
    risk: EmpiricalRisk
    sign: NDArray[np.int8]
    models: LearnerModels
    sample_weight: Array | None
    class_weight: tuple[float, float]

    @classmethod
    def make(
        cls,
        dictionary: Any,
        X: Any,
        sign: NDArray[np.int8],
        loss: Loss,
        intercept: bool,
        threads: int,
        *,
        n_features: int,
        sample_weight: Array | None = None,
        class_weight: tuple[float, float] = (1.0, 1.0),
        classes: tuple[Any, Any] = (False, True),
        feature_names: tuple[str, ...] | None = None,
        matrix: BinnedMatrix | None = None,
        seed: int = 0,
    ) -> LearnerTask:
        """See :func:`train_learners` for the arguments."""
        parts = resolve_dictionary(dictionary)
        if count_rows(X) != len(sign):
            raise ValueError(f"X has {count_rows(X)} rows, but there are {len(sign)} labels.")
        rows = LearningRows(X, sign, classes, intercept, threads)
        factor = None if class_weight == (1.0, 1.0) else np.where(sign > 0, class_weight[1], class_weight[0])
        weights = RowWeights.make(len(sign), sample_weight, factor)
        source = bind_dictionary(parts, rows, matrix, weights, seed)
        models = LearnerModels(stumps_of(source), loss, n_features, feature_names, classes)
        risk = risk_of(loss, weights, None, threads)
        return cls(source, risk, sign, models, sample_weight, class_weight)

    def candidates(self, pool: LearnerPool) -> Candidates:
        """What a certificate about the columns of this pool is about."""
        learners = tuple(self.models.fitted(own) for own in pool.candidates)
        return Candidates(learners, pool.n_free > 0, self.models.classes, self.class_weight)

    def constant(self, pool: LearnerPool, rule: PriceRule) -> Array:
        """Weights of the intercept's two columns in the empty model."""
        return constant_weights(pool, replace(self.risk, sign=self.sign), rule)

    def result(
        self, pool: LearnerPool, weights: Array, content: dict[str, Any], trace: Trace, null: float
    ) -> LearnerResult:
        candidates = self.candidates(pool)
        certificate = Certificate(content, self.models.classes[1], candidates.view)
        return LearnerResult(self.models.ensemble(pool, weights), certificate, trace, candidates, null)

    def problem(self, pool: LearnerPool, rule: PriceRule, loss: str, **limits: Any) -> CertifiedProblem:
        """What the certificate says of the columns of this pool."""
        A = pool.dense()
        weight = row_weight(self.sign, self.sample_weight, self.class_weight)
        return CertifiedProblem(
            kind="matrix",
            loss=loss,
            columns={"feature": list(range(pool.n_columns))},
            prices=rule.prices(pool.n_columns, pool.n_free),
            rows=len(A),
            features=pool.n_columns,
            digest=data_digest(A, None, weight),
            candidates=self.source.remaining(pool) is None,
            largest_entry=float(np.max(np.abs(A), initial=0.0)),
            **limits,
        )


def train_learners(
    dictionary: Any, X: Any, sign: NDArray[np.int8], settings: TrainingSettings, **data: Any
) -> LearnerResult:
    """Generate columns from the dictionary, choose some, and prove how good the choice is.

    Parameters
    ----------
    dictionary : what the user gave; see :func:`resolve_dictionary`.
    X : the rows as the user gave them, handed on to the learners; those without weight already gone
        (``outputs.take_rows``).
    sign : +1 for ``classes[1]`` and -1 for ``classes[0]``, one per row of X.
    n_features : of X.
    sample_weight : raw and positive, one per row, or None. ``class_weight``: factors of the two classes.
    classes, feature_names : what they are called.
    matrix : the binned table of the same rows; needed where the dictionary has "stumps".
    seed : every ``random_state`` of a learner that is fitted here follows from it.

    A list of fitted learners is bounded as a whole: the certificate covers every one of them, generated or
    not. Where learners are fitted in the loop, or stumps take part, it covers the columns generated.
    """
    task = LearnerTask.make(
        dictionary, X, sign, settings.loss, settings.fit_intercept, settings.threads, **data
    )
    source, risk, models = task.source, task.risk, task.models
    rule, pool = price_rule(settings), source.pool()
    start = task.constant(pool, rule)
    master = Master(pool, risk, lambda own: rule.prices(own.n_columns, own.n_free), start)
    null = risk.evaluate(pool.margins(start)).value
    asked = False

    def after_round(record: TraceRecord, weights: Array) -> bool:
        nonlocal asked
        # a model is for the columns that there were in its round
        model = lambda: models.ensemble(pool, padded(weights, pool))  # noqa: E731
        asked = settings.callback is not None and bool(settings.callback(record, model))
        return asked

    found, trace, stop = start, Trace((), "column limit"), stop_rule(settings)
    if stop.max_columns > 0 or not settings.reselects:
        _, solution, trace = generate(
            source, master, stop,
            criterion=settings.criterion, l1=settings.l1, l2=settings.l2,
            unseen=rule.prices(1, 0) if source.exact else None, pace=_pace(settings, source),
            callback=lambda record: after_round(record, master.weights), started=settings.budget.started,
        )  # fmt: skip
        found = solution.weights
    if settings.reselects and not asked:
        found, trace = go_on(
            source, pool, risk, rule, settings, found, trace, after_round, _per_round(source)
        )
    if settings.selects:
        proven = _selected(source, pool, risk, rule, settings, found)
    else:
        proven = _convex(source, pool, master, rule)
    problem = task.problem(proven.pool, proven.rule, settings.loss.name, max_terms=settings.max_terms)
    nothing = risk.evaluate(np.zeros(len(sign))).value
    bounds = [ProvenScope("pool", proven.pool.n_columns, proven.leaves, proven.centre)]
    content = write_certificate(problem, proven.weights, proven.objective, (0.0, nothing), bounds)
    return task.result(proven.pool, proven.weights, content, trace, null)


# ------------------------------------------------------------------------------------ parts of a fit


def _pace(settings: TrainingSettings, source: LearnerDictionary) -> Pace:
    """Learners that are fitted in the loop propose one column each; a fit is too dear to be thrown away."""
    pace = pace_for(settings)
    if source.exact:
        return pace
    several = _per_round(source)
    return replace(
        pace, columns=lambda n: several, full_search_every=1, newton_steps=max(2, pace.newton_steps)
    )


def _per_round(source: LearnerDictionary) -> int:
    """How many columns join the pool at a time where each is weighed by itself."""
    return len(source.parts) if isinstance(source, UnionDictionary) and not source.exact else 1


@dataclass(frozen=True, eq=False)
class _Proven:
    """A pool with the model found on it and the leaves that bound every model."""

    pool: LearnerPool
    rule: PriceRule
    weights: Array
    objective: float
    leaves: tuple[Leaf, ...]
    centre: Array | None = None  # from which the caps follow that leaves with a curve rely on


def _selected(
    source: LearnerDictionary,
    pool: LearnerPool,
    risk: EmpiricalRisk,
    rule: PriceRule,
    settings: TrainingSettings,
    start: Array,
) -> _Proven:
    whole = source.remaining(pool) is not None  # the bound covers learners outside of the pool too
    if whole:
        settings = replace(settings, search=SearchOptions("polish"))
    choice = choose(pool, risk, rule, settings, start)
    leaves, rule, everything, centre = choice.search.leaves, choice.rule, pool, choice.search.centre
    if whole:
        root = choice.search.root
        assert root is not None  # local search came first
        everything = pool.subset(np.arange(pool.n_columns))
        outer = dictionary_relaxation(
            replace(choice.problem, pool=everything), source, rule, root,
            settings.budget.end_of(Stage.DICTIONARY),
        )  # fmt: skip
        everything.append(source.remaining(everything) or ())
        wide = [_widened(own, everything, risk, rule, settings.max_terms) for own in (root.leaf, outer.leaf)]
        leaves = (max(wide, key=lambda own: own.bound),)
    return _Proven(everything, rule, padded(choice.weights, everything), choice.objective, leaves, centre)


def _convex(source: LearnerDictionary, pool: LearnerPool, master: Master, rule: PriceRule) -> _Proven:
    """Nothing was chosen: the gap of the convex problem is the proof."""
    objective = master.objective
    pool.append(source.remaining(pool) or ())
    weights = padded(master.weights, pool)
    leaf = _widened(Leaf(weights, 1.0, 0.0), pool, master.risk, rule, None)
    return _Proven(pool, rule, weights, objective, (leaf,))


def padded(weights: Array, pool: LearnerPool) -> Array:
    """Weights over the first columns of a pool, over all of them."""
    return np.concatenate([weights, np.zeros(pool.n_columns - len(weights))])


def _widened(
    leaf: Leaf, pool: LearnerPool, risk: EmpiricalRisk, rule: PriceRule, max_terms: int | None
) -> Leaf:
    """The bound of a leaf's row weights over all columns of a pool."""
    weights = padded(leaf.weights, pool)
    if leaf.theta == 0.0:
        return replace(leaf, weights=weights)
    point = risk.evaluate(pool.margins(weights))
    prices = rule.prices(pool.n_columns, pool.n_free)
    bound, theta = dual_bound(point, pool.edges(point), prices, max_terms, sizes=pool.sizes)
    return Leaf(weights, theta, bound)


@dataclass(frozen=True, eq=False)
class LearnerModels:
    """Makes models of candidates: stumps become terms of an ensemble, learners stay what they are."""

    stumps: StumpDictionary | None
    loss: Loss
    n_features: int
    feature_names: tuple[str, ...] | None
    classes: tuple[Any, Any]

    def fitted(self, candidate: Candidate) -> FittedLearner:
        """A candidate as a learner that can be asked about other rows."""
        if isinstance(candidate.learner, Stumps):
            return FittedLearner(self._stumps([candidate.learner], [1.0], 0.0), None, "decision_function")
        return candidate.learner

    def ensemble(self, pool: LearnerPool, weights: Array, start: float = 0.0) -> LearnerEnsemble:
        """``start``: a part of the intercept that no column stands for."""
        free, stumps, stump_weights = pool.n_free, [], []
        learners = []
        for candidate, weight in zip(pool.candidates, weights[free:].tolist(), strict=True):
            if weight > 0.0 and isinstance(candidate.learner, Stumps):
                stumps.append(candidate.learner)
                stump_weights.append(weight)
            elif weight > 0.0:
                learners.append(WeightedLearner(candidate.learner, weight))
        model = self._stumps(stumps, stump_weights, intercept_of(weights, free) + start)
        return LearnerEnsemble(model, tuple(learners))

    def _stumps(self, stumps: list[Stumps], weights: list[float], intercept: float) -> Ensemble:
        if not stumps:
            return Ensemble(
                model_loss(self.loss), intercept, (), self.feature_names, self.n_features, self.classes
            )
        assert self.stumps is not None
        pool = StumpPool(self.stumps)
        for own in stumps:
            pool.append(own)
        free = [max(intercept, 0.0), max(-intercept, 0.0)][: pool.n_free]
        matrix = self.stumps.matrix
        frame = ModelFrame(
            model_loss(self.loss), self.n_features, self.feature_names, self.classes, matrix.cuts,
            matrix.categories,
        )  # fmt: skip
        return replace(
            frame.ensemble(pool.stumps, np.array([*free, *weights]), pool.n_free), intercept=intercept
        )

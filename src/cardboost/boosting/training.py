"""From a table to a certified ensemble: generate columns, choose some, prove how good the choice is.

Columns are generated and then selected once, or, with ``reselect``, again after every further column. Without
a limit on terms and without a price per term there is nothing to choose: the convex solution is the model,
and its gap over the whole dictionary is the certificate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.candidates import Candidates
from cardboost.boosting.column_generation import Trace, TraceRecord
from cardboost.boosting.growing import Grown, grow, price_rule, regrow
from cardboost.boosting.held_out import HeldOut
from cardboost.boosting.path import BoostingPath, ModelFrame
from cardboost.boosting.proof import DataFacts, netted, null_model, stump_problem, whole_dictionary_fits
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import ProvenScope, write_certificate
from cardboost.dictionary.base import ColumnPool, Criterion
from cardboost.dictionary.stumps import StumpDictionary, StumpPool
from cardboost.master.newton import Master
from cardboost.model.ensemble import Ensemble
from cardboost.problem.bound import Leaf, dual_bound
from cardboost.problem.budget import Budget, Stage
from cardboost.problem.losses import Loss
from cardboost.problem.prices import FeatureLimits, PriceRule
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection.deepening import deepen
from cardboost.selection.merge import merge_rows, over_rows_of
from cardboost.selection.polish import polish
from cardboost.selection.relaxation import dictionary_relaxation
from cardboost.selection.select import EMPTY_BOX, SearchOptions, Selection, select
from cardboost.selection.selection_problem import Incumbent, SelectionProblem

Array = NDArray[np.float64]


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
    #: sees every round, with a way to get the model of that round; ends generation by returning true
    callback: Callable[[TraceRecord, Callable[[], Any]], object] | None = None
    budget: Budget = field(default_factory=Budget)
    max_features: int | None = None
    feature_costs: Array | None = None  # one per feature of the table
    intercept_box: float | None = None  # None: that of the loss
    search: SearchOptions = field(default_factory=SearchOptions)
    reselect: bool = False  # choose again after every column that is generated beyond ``hot_start``

    @property
    def selects(self) -> bool:
        return self.max_terms is not None or self.l0 > 0 or self.limits is not None

    @property
    def reselects(self) -> bool:
        """Whether there is anything to choose again."""
        return self.reselect and self.selects

    @property
    def limits(self) -> FeatureLimits | None:
        return FeatureLimits.make(self.max_features, self.feature_costs)


@dataclass(frozen=True, eq=False)
class TrainingTask:
    """One ensemble to train: the stumps over its rows, the risk there, and what its models are called.

    ``known``: the path of an earlier training to go on from. ``held_out``: rows that end generation early.
    """

    dictionary: StumpDictionary
    risk: EmpiricalRisk
    facts: DataFacts
    frame: ModelFrame
    known: BoostingPath | None = None
    held_out: HeldOut | None = None

    @property
    def positive(self) -> Any:
        """The label of the positive rows."""
        return None if self.frame.classes is None else self.frame.classes[1]


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """``held_out``: the loss on held-out rows after every round, if there were any.

    ``candidates``: what was chosen from, where there was a choice.
    """

    ensemble: Ensemble
    certificate: Certificate
    trace: Trace
    path: BoostingPath
    held_out: tuple[float, ...] | None = None
    candidates: Candidates | None = None


def train(task: TrainingTask, settings: TrainingSettings) -> TrainingResult:
    """Fit an ensemble of stumps and its certificate."""
    return finish(task, settings, grow(task, settings))


def finish(
    task: TrainingTask,
    settings: TrainingSettings,
    grown: Grown,
    known: Incumbent | None = None,
    before: Candidates | None = None,
) -> TrainingResult:
    """Choose among the columns, where there is a choice, and prove how good the model is.

    ``known``: the choice of a local search, which is then not made again. ``before``: those of another choice
    among the same columns. The pool of ``grown`` may grow.
    """
    if settings.reselects and not grown.asked and known is None:
        grown = regrow(task, settings, grown)
    pool, master, rule = grown.pool, grown.master, price_rule(settings)
    if before is None:
        null = null_model(pool, grown.constant, lambda margins: task.risk.evaluate(margins).value)
    else:
        null = before.certified["null"]["intercept"], before.certified["null"]["objective"]
    proof = _Proof(task.dictionary, pool, task.risk, settings, task.facts, task.frame, null)
    candidates = None
    if settings.selects:
        certified, weights, problem, complete = proof.select(rule, grown.weights, known, before)
        stumps, n_free = pool.stumps, pool.n_free
        make = lambda weights, unit: task.frame.ensemble(stumps, weights, n_free, unit)  # noqa: E731
        loss = task.frame.loss
        candidates = Candidates(make, loss, task.positive, n_free, problem, weights, certified, complete)
    else:
        master.move_to(netted(pool, master.weights))
        weights = master.weights
        pool.place_missing(weights)
        certified = proof.convex(rule, master)
    last = (grown.weights if settings.selects else master.weights).copy()
    path = BoostingPath(task.frame, pool.stumps, pool.n_free, (*grown.stages, last))
    ensemble = task.frame.ensemble(pool.stumps, weights, pool.n_free)
    held_out = None if task.held_out is None else grown.losses
    return TrainingResult(
        ensemble, Certificate(certified, task.positive), grown.trace, path, held_out, candidates
    )


@dataclass(frozen=True, eq=False)
class Choice:
    """Columns of a pool chosen within a box that is now fixed, and the search that bounds any choice."""

    rule: PriceRule
    problem: SelectionProblem
    weights: Array
    objective: float
    search: Selection


def selection_problem(
    pool: ColumnPool, risk: EmpiricalRisk, rule: PriceRule, settings: TrainingSettings
) -> SelectionProblem:
    """Which of these columns to keep; ``rule`` has the price of a term."""
    limits = settings.limits
    return SelectionProblem(
        pool, risk, rule.prices(pool.n_columns, pool.n_free), settings.max_terms,
        None if limits is None else pool.features, limits,
    )  # fmt: skip


def choose(
    pool: ColumnPool,
    risk: EmpiricalRisk,
    rule: PriceRule,
    settings: TrainingSettings,
    start: Array,
    dictionary: StumpDictionary | None = None,
    known: Incumbent | None = None,
    same_rows: SelectionProblem | None = None,
) -> Choice:
    """Local search for the columns to keep; without ``max_weight`` the box is twice the largest weight.

    Where features are limited, ``dictionary`` brings more columns of those that were chosen into the pool.
    ``known``: what a local search has found already; there is then no other. ``same_rows``: another choice
    among these columns, over distinct rows.
    """
    rule, limits = replace(rule, l0=settings.l0), settings.limits
    problem = selection_problem(pool, risk, rule, settings)
    merged = merge_rows(problem) if same_rows is None else over_rows_of(same_rows, problem)
    found, budget = known, settings.budget
    if found is None:
        stage = Stage.LOCAL_SEARCH if limits is None else Stage.FEATURE_SEARCH
        # convex weights of all columns are found by the search itself, also for fewer columns
        found, _ = polish(merged, start if settings.reselects else None, budget.end_of(stage))
    if limits is not None and dictionary is not None and known is None:
        deeper, found = deepen(problem, found, dictionary, rule, budget.end_of(Stage.LOCAL_SEARCH))
        if deeper is not problem:
            problem, merged = deeper, merge_rows(deeper)
    boxed = settings.max_weight is not None
    chosen = select(merged, found, settings.search, budget.within(Stage.SELECTION), boxed)
    problem = replace(problem, prices=chosen.problem.prices)
    if not boxed:
        boxes = problem.prices.max_weight[pool.n_free :]
        rule = replace(rule, max_weight=float(np.max(boxes)) if len(boxes) else EMPTY_BOX)
    if chosen.sampling is not None and chosen.sampling.fallback is not None:
        warnings.warn(
            f"The columns are those of the built-in search. {chosen.sampling.fallback}", stacklevel=2
        )
    weights = chosen.incumbent.weights
    objective = problem.objective(risk.evaluate(pool.margins(weights)).value, weights)
    return Choice(rule, problem, weights, objective, chosen)


@dataclass(frozen=True, eq=False)
class _Proof:
    """Gathers what the certificate needs."""

    dictionary: StumpDictionary
    pool: StumpPool
    risk: EmpiricalRisk
    settings: TrainingSettings
    facts: DataFacts
    frame: ModelFrame
    null: tuple[float, float]

    def convex(self, rule: PriceRule, master: Master) -> dict[str, Any]:
        """No choice was made: the gap over the dictionary is the proof."""
        point, pool = master.point, self.pool
        edges = pool.edges(point)
        bounds = []
        if whole_dictionary_fits(self.dictionary):
            unseen_edge = self.dictionary.best_columns(point, 1, pool, "edge").bound
            bound, theta = dual_bound(point, edges, master.prices, None, unseen_edge, rule.prices(1, 0))
            bounds.append(ProvenScope("dictionary", pool.n_columns, [Leaf(master.weights, theta, bound)]))
        bound, theta = dual_bound(point, edges, master.prices)
        bounds.append(ProvenScope("pool", pool.n_columns, [Leaf(master.weights, theta, bound)]))
        return self._write(pool, rule, master.weights, master.objective, bounds)

    def select(
        self,
        rule: PriceRule,
        start: Array,
        known: Incumbent | None = None,
        before: Candidates | None = None,
    ) -> tuple[dict[str, Any], Array, SelectionProblem, bool]:
        """Choose columns of the pool, then bound any choice in the pool or the dictionary.

        Also gives the problem over distinct rows, from which can be chosen again, and whether the pool holds
        every stump. ``before``: as for :func:`finish`.
        """
        pool, settings = self.pool, self.settings
        same_rows = None if before is None else before.problem
        choice = choose(pool, self.risk, rule, settings, start, self.dictionary, known, same_rows)
        rule, problem, weights, root = choice.rule, choice.problem, choice.weights, choice.search.root
        assert root is not None  # local search came first
        limits = problem.limits
        pool.place_missing(np.ones(pool.n_columns))  # of all columns: another choice may use them
        bounds = [ProvenScope("pool", pool.n_columns, choice.search.leaves, choice.search.centre)]
        everything = pool
        complete = self._exhausted() if before is None else before.complete
        if complete:
            bounds.append(replace(bounds[0], scope="dictionary"))  # every stump is in the pool
        elif whole_dictionary_fits(self.dictionary):
            everything = pool.subset(np.arange(pool.n_columns))
            wide = replace(problem, pool=everything)
            outer = dictionary_relaxation(
                wide, self.dictionary, rule, root, settings.budget.end_of(Stage.DICTIONARY)
            )
            bounds.append(ProvenScope("dictionary", everything.n_columns, [outer.leaf]))
            if outer.leaf.bound > min(
                leaf.bound for leaf in choice.search.leaves
            ):  # what bounds the dictionary bounds the pool
                point = self.risk.evaluate(everything.margins(outer.leaf.weights))
                edges = everything.edges(point)[: pool.n_columns]
                bound, theta = dual_bound(
                    point, edges, problem.prices, problem.max_terms, groups=problem.groups, limits=limits
                )
                if bound < outer.leaf.bound:  # with the scale of before, fewer columns prove no less
                    bound, theta = outer.leaf.bound, outer.leaf.theta
                bounds[0] = ProvenScope("pool", pool.n_columns, [Leaf(outer.leaf.weights, theta, bound)])
        certified = self._write(everything, rule, weights, choice.objective, bounds)
        return certified, weights, choice.search.problem, complete

    def _exhausted(self) -> bool:
        """Whether the pool holds every stump that there is, and a file can name all of them."""
        if not whole_dictionary_fits(self.dictionary):
            return False
        point = self.risk.evaluate(np.zeros(self.dictionary.matrix.n_rows))
        return self.dictionary.best_columns(point, 1, self.pool, "edge").bound == -np.inf

    def _write(
        self,
        pool: StumpPool,
        rule: PriceRule,
        weights: Array,
        objective: float,
        bounds: list[ProvenScope],
    ) -> dict[str, Any]:
        settings = self.settings
        problem = stump_problem(
            pool, rule, self.facts, settings.loss.name, max_terms=settings.max_terms, limits=settings.limits
        )
        return write_certificate(problem, weights, objective, self.null, bounds)

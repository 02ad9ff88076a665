"""From a table to a certified ensemble: generate columns, choose some, prove how good the choice is.

Columns are generated and then selected once, or, with ``reselect``, again after every further column. Without
a limit on terms and without a price per term there is nothing to choose: the convex solution is the model,
and its gap over the whole dictionary is the certificate.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.candidates import Candidates
from cardboost.boosting.growing import Grown, grow, regrow
from cardboost.boosting.path import BoostingPath
from cardboost.boosting.task import Choice, TrainingSettings, TrainingTask
from cardboost.certificate.certificate import Certificate
from cardboost.dictionary.base import ColumnPool
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.problem.budget import Stage
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk
from cardboost.problem.trace import Trace
from cardboost.selection.deepening import deepen
from cardboost.selection.merge import merge_rows, over_rows_of
from cardboost.selection.polish import polish
from cardboost.selection.select import EMPTY_BOX, select
from cardboost.selection.selection_problem import Incumbent, SelectionProblem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained model with its proof.

    Attributes
    ----------
    ensemble
        The model.
    certificate : Certificate
        What is claimed of it.
    trace : Trace
        One record per round.
    path : BoostingPath or None
        The models of all rounds, for stumps.
    held_out : tuple of float or None
        The loss on held-out rows after every round, if there were any.
    candidates : Candidates or None
        What was chosen from, where there was a choice among stumps.
    """

    ensemble: Any
    certificate: Certificate
    trace: Trace
    path: BoostingPath | None = None
    held_out: tuple[float, ...] | None = None
    candidates: Candidates | None = None


def train(task: TrainingTask, settings: TrainingSettings) -> TrainingResult:
    """Fit an ensemble and its certificate."""
    return finish(task, settings, grow(task, settings))


def finish(
    task: TrainingTask,
    settings: TrainingSettings,
    grown: Grown,
    incumbent: Incumbent | None = None,
    before: Candidates | None = None,
) -> TrainingResult:
    """Choose among the columns, where there is a choice, and prove how good the model is.

    Parameters
    ----------
    task, settings
        What is trained, and how.
    grown : Grown
        The columns; their pool may grow.
    incumbent : Incumbent or None
        The choice of a local search, which is then not made again.
    before : Candidates or None
        Those of another choice among the same columns.
    """
    if settings.reselects and not grown.stopped and incumbent is None:
        grown = regrow(task, settings, grown)
    pool, rule = grown.pool, settings.price_rule
    null = _null_model(task, grown.constant) if before is None else before.null_model
    last_weights = grown.weights
    if settings.selects:
        rows = None if before is None else before.problem
        choice = choose(task, pool, rule, settings, grown.weights, incumbent, rows)
        proof = task.prove_choice(choice, settings, None if before is None else before.complete)
        weights = choice.weights
    else:
        master = grown.master
        master.move_to(pool.netted(master.weights))
        weights = last_weights = master.weights
        pool.place_missing(weights)
        proof = task.prove_convex(master, rule)
    limits = {"max_terms": settings.max_terms, "limits": settings.limits}
    certificate = task.certificate(proof, settings.loss.name, null, **limits)
    candidates = task.candidates(pool, choice, proof, certificate) if settings.selects else None
    return TrainingResult(
        task.ensemble(pool, weights),
        certificate,
        grown.trace,
        task.path(pool, (*grown.stages, last_weights.copy())),
        None if task.held_out is None else grown.held_out,
        candidates,
    )


def _null_model(task: TrainingTask, constant: Array) -> tuple[float, float]:
    return task.null_model(constant, lambda margins: task.risk.evaluate(margins).value)


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
    task: TrainingTask,
    pool: ColumnPool,
    rule: PriceRule,
    settings: TrainingSettings,
    start: Array,
    incumbent: Incumbent | None = None,
    same_rows: SelectionProblem | None = None,
) -> Choice:
    """Select the columns to keep; without ``max_weight`` the box is twice the largest weight.

    Where features are limited, the dictionary brings more columns of those that were chosen into the pool.

    Parameters
    ----------
    task, pool, rule, settings
        What is chosen from, and how.
    start : array
        Weights over the pool, from which local search begins after TotalQBoost.
    incumbent : Incumbent or None
        What a local search has come to; there is then no other.
    same_rows : SelectionProblem or None
        Another choice among these columns, over distinct rows.
    """
    rule, limits, budget = replace(rule, l0=settings.l0), settings.limits, settings.budget
    risk, search = task.risk, task.search_options(pool, settings.search)
    problem = selection_problem(pool, risk, rule, settings)
    merged = merge_rows(problem) if same_rows is None else over_rows_of(same_rows, problem)
    if incumbent is None:
        stage = Stage.LOCAL_SEARCH if limits is None else Stage.FEATURE_SEARCH
        # local search itself finds convex weights of all columns, also for fewer columns
        incumbent, _ = polish(merged, start if settings.reselects else None, budget.end_of(stage))
        if limits is not None:
            late = budget.end_of(Stage.LOCAL_SEARCH)
            assert isinstance(task.dictionary, StumpDictionary)
            deeper, incumbent = deepen(problem, incumbent, task.dictionary, rule, late)
            if deeper is not problem:
                problem, merged = deeper, merge_rows(deeper)
    boxed = settings.max_weight is not None
    selection = select(merged, incumbent, search, budget.within(Stage.SELECTION), boxed)
    problem = replace(problem, prices=selection.problem.prices)
    if not boxed:
        boxes = problem.prices.max_weight[pool.n_free :]
        rule = replace(rule, max_weight=float(np.max(boxes)) if len(boxes) else EMPTY_BOX)
    if selection.sampling is not None and selection.sampling.fallback is not None:
        warnings.warn(
            f"The columns are those of the built-in search. {selection.sampling.fallback}", stacklevel=2
        )
    weights = selection.incumbent.weights
    objective = problem.objective(risk.evaluate(pool.margins(weights)).value, weights)
    return Choice(rule, problem, weights, objective, selection)

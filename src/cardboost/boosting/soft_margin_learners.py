"""Soft margins over weak learners that are not, or not only, stumps.

A list of fitted learners is covered as a whole by the certificate. Where learners are fitted on the way, one
in every round to the row weights p, it covers those that were generated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.learners import LearnerResult, LearnerTask
from cardboost.boosting.soft_margin import (
    SOFT_MARGIN,
    SOFT_STEPS,
    Rounds,
    SoftMarginSettings,
    soft_bound,
)
from cardboost.certificate.checker.claims import LARGEST_MARGIN
from cardboost.certificate.writer import ProvenScope, write_certificate
from cardboost.dictionary.learner_pool import LearnerPool
from cardboost.master.simplex import Columns, DictionaryOracle, newton_by_radius, soft_point
from cardboost.problem.bound import Leaf
from cardboost.problem.losses import get_loss
from cardboost.problem.prices import PriceRule

Array = NDArray[np.float64]


def train_soft_learners(
    dictionary: Any,
    X: Any,
    sign: NDArray[np.int8],
    settings: SoftMarginSettings,
    intercept: bool,
    threads: int,
    **data: Any,
) -> LearnerResult:
    """See :func:`cardboost.boosting.learners.train_learners` for the arguments."""
    task = LearnerTask.make(dictionary, X, sign, get_loss("exponential"), intercept, threads, **data)
    oracle = DictionaryOracle(task.source, task.risk)
    pool, radius = oracle.pool, settings.radius
    assert isinstance(pool, LearnerPool)
    full = lambda columns, weights: _full(pool, columns, weights)  # noqa: E731
    rounds = Rounds(
        settings,
        lambda columns: columns[columns >= pool.n_free],
        lambda columns, weights: task.models.ensemble(pool, full(columns, weights)),
    )
    found = newton_by_radius(
        oracle, radius, _start(oracle, radius),
        tol=settings.tol, max_iter=SOFT_STEPS, callback=rounds.see, late=settings.budget.late,
    )  # fmt: skip
    pool.append(task.source.remaining(pool) or ())
    weights = full(found.columns, found.weights)
    value, point = soft_point(task.risk, pool.margins(weights))
    edges = pool.edges(point) / point.value
    bound = soft_bound(value, float(weights @ edges), float(edges.max(initial=0.0)), radius)
    if radius * float(np.max(np.abs(pool.dense()), initial=0.0)) > LARGEST_MARGIN:
        raise ValueError(
            "the outputs of the learners are too large for this temperature: divide them by a constant, or "
            "raise it."
        )
    rule = PriceRule(0.0, 0.0, intercept_box=np.inf)
    problem = task.problem(pool, rule, SOFT_MARGIN, max_terms=None, radius=radius)
    bounds = [ProvenScope("pool", pool.n_columns, [Leaf(weights, 1.0, bound)])]
    content = write_certificate(problem, weights, value, (0.0, 0.0), bounds)
    null = soft_point(task.risk, _empty_margins(task, radius))[0]
    return task.result(pool, weights, content, rounds.trace(found.status), null)


def _full(pool: LearnerPool, columns: Columns, weights: Array) -> Array:
    """Weights over the whole pool."""
    found = np.zeros(pool.n_columns)
    found[columns] = weights
    return found


def _start(oracle: DictionaryOracle, radius: float) -> tuple[Columns, Array]:
    """The best column alone."""
    none = np.empty(0, dtype=np.int32)
    _, point = oracle.at(none, np.empty(0))
    best = oracle.look(point, none, 1).new
    if len(best) == 0:
        raise ValueError("dictionary: no learner tells rows apart, and there is no intercept.")
    return best, np.array([radius])


def _empty_margins(task: LearnerTask, radius: float) -> Array:
    """Of the intercept alone."""
    pool = task.source.pool()
    return pool.margins(task.constant(pool, PriceRule(0.0, 0.0, intercept_box=radius)))

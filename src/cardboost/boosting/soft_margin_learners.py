"""Soft margins over weak learners that are not, or not only, stumps.

A list of fitted learners is covered as a whole by the certificate. Where learners are fitted on the way, one
in every round to the row weights p, it covers those that were generated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.learners import LearnerResult, LearnerTask, padded
from cardboost.boosting.soft_margin import (
    SOFT_MARGIN,
    SOFT_STEPS,
    Rounds,
    SoftMarginSettings,
    first_columns,
    full_weights,
    soft_bound,
)
from cardboost.certificate.bounds import Leaf
from cardboost.certificate.writer import ProvenScope, write_certificate
from cardboost.dictionary.learner_pool import LearnerPool
from cardboost.losses import get_loss
from cardboost.master.problem import PriceRule
from cardboost.master.simplex import DictionaryOracle, newton_by_radius, soft_point


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
    rounds = Rounds(pool, settings, lambda weights: task.models.ensemble(pool, padded(weights, pool)))
    found = newton_by_radius(
        oracle, radius, first_columns(oracle, radius, None),
        tol=settings.tol, max_iter=SOFT_STEPS, callback=rounds.see, late=settings.late,
    )  # fmt: skip
    pool.append(task.source.remaining(pool) or ())
    weights = full_weights(pool, found.columns, found.weights)
    value, point = soft_point(task.risk, pool.margins(weights))
    edges = pool.edges(point) / point.value
    bound = soft_bound(value, float(weights @ edges), float(edges.max(initial=0.0)), radius)
    rule = PriceRule(0.0, 0.0, intercept_box=np.inf)
    problem = task.problem(pool, rule, SOFT_MARGIN, max_terms=None, radius=radius)
    bounds = [ProvenScope("pool", pool.n_columns, [Leaf(weights, 1.0, bound)])]
    content = write_certificate(problem, weights, value, (0.0, 0.0), bounds)
    null = soft_point(task.risk, _empty_margins(task, radius))[0]
    return task.result(pool, weights, content, rounds.trace(found.status), null)


def _empty_margins(task: LearnerTask, radius: float) -> NDArray[np.float64]:
    """Of the intercept alone."""
    pool = task.source.pool()
    return pool.margins(task.constant(pool, PriceRule(0.0, 0.0, intercept_box=radius)))

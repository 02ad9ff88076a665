"""Operating points of classifiers: scores of rows that a model was not trained on, and rules on them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardboost.boosting.task import TrainingSettings
from cardboost.boosting.training import train, train_sizes
from cardboost.data.folds import deal_folds, row_hashes
from cardboost.data.table import read_table
from cardboost.estimators.rows import TrainingRows, training_tasks
from cardboost.model.learners import LearnerEnsemble
from cardboost.model.operating_point import LabelledScores, OperatingPoint, Rule, probability_score
from cardboost.problem.budget import Budget
from cardboost.problem.trace import Status

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class GivenRows:
    """The labelled rows of ``set_threshold``."""

    X: Any
    y: Any
    sample_weight: Any


def out_of_fold_scores(
    estimator: Any, rows: TrainingRows, settings: TrainingSettings, budget: Budget
) -> LabelledScores:
    """The scores of the training rows by models of the other folds, chosen as the model is, without a proof.

    Parameters
    ----------
    estimator : classifier
        Its parameters say what the columns are.
    rows : TrainingRows
        Of two classes.
    settings : TrainingSettings
        Of the fit.
    budget : Budget
        The time for all folds.
    """
    table = rows.table if rows.table.n_features else read_table(rows.X)
    hashes = row_hashes(table, settings.search.seed)
    counts = deal_folds(hashes, rows.y, N_FOLDS)[1]
    n_folds = min(N_FOLDS, int(counts.min()))
    if n_folds < 2:
        raise ValueError(
            "threshold: a rule is applied to folds of the training rows, and a class has only one distinct "
            "row; set_threshold takes other rows."
        )
    fold, _ = deal_folds(hashes, rows.y, n_folds)
    score, cut_short = np.empty(len(rows.y)), False
    for k in range(n_folds):
        held = np.flatnonzero(fold == k)
        kept = np.flatnonzero(fold != k)
        part = replace(settings, budget=budget.part(k, n_folds), callback=None)
        score[held], late = _scores(estimator, rows.take(kept), rows.take(held), part)
        cut_short = cut_short or late
    if cut_short:
        warnings.warn(
            "threshold: time was up before the models of all folds were complete; the rule is applied to the "
            "scores of what they were by then.",
            stacklevel=5,
        )
    name = f"out-of-fold scores of {len(rows.y):,} training rows ({n_folds} folds)"
    return LabelledScores(score, rows.y == 1, rows.raw, name)


def _scores(
    estimator: Any, kept: TrainingRows, held: TrainingRows, settings: TrainingSettings
) -> tuple[Any, bool]:
    """The scores of rows by a model of other rows, and whether time was up before it was complete."""
    # in a part of the rows a feature that has to be used may have no stump
    limits = None if settings.limits is None else replace(settings.limits, must_include=())
    tasks = training_tasks(estimator, kept, None, settings.loss, None, limits)
    ((_, task),) = tasks
    if settings.max_terms is not None and kept.X is None:
        training = train_sizes(task, settings, (settings.max_terms,))
        ensemble, trace = training.ensembles()[0], training.choices[0].grown.trace
    else:
        quick = replace(settings.search, max_nodes=1)
        result = train(task, replace(settings, search=quick))
        ensemble, trace = result.ensemble, result.trace
    rows = held.X if isinstance(ensemble, LearnerEnsemble) else held.table
    return ensemble.decision_function(rows), trace.status is Status.TIME_LIMIT


def operating_point(rule: Rule, loss: str, scores: LabelledScores | None) -> OperatingPoint:
    """What a rule makes of scores; a probability needs none."""
    if not rule.needs_rows:
        return OperatingPoint(probability_score(loss, rule.value), str(rule))
    assert scores is not None
    return scores.point(rule)


def with_operating_point(ensemble: Any, point: OperatingPoint | None) -> Any:
    """The model with another threshold."""
    if isinstance(ensemble, LearnerEnsemble):
        return replace(ensemble, stumps=replace(ensemble.stumps, operating_point=point))
    return replace(ensemble, operating_point=point)

"""Operating points of classifiers: scores of rows that a model was not trained on, and rules on them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardboost.boosting.task import TrainingSettings
from cardboost.boosting.training import train, train_sizes
from cardboost.data.folds import deal_rows, fewest_distinct, row_hashes
from cardboost.data.table import read_table
from cardboost.estimators.rows import TrainingRows, training_tasks
from cardboost.model.card import score_range
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
    hashes = row_hashes(table)
    n_folds = min(N_FOLDS, fewest_distinct(hashes, rows.y))
    if n_folds < 2:
        raise ValueError(
            "threshold: a rule is applied to folds of the training rows, and a class has only one distinct "
            "row; set_threshold takes other rows."
        )
    fold = deal_rows(hashes, rows.y, n_folds, settings.search.seed)
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


def warn_of_one_class(ensemble: Any) -> None:
    """Warn where no score, or every score, of a model of stumps is above its threshold."""
    if isinstance(ensemble, LearnerEnsemble) or ensemble.operating_point is None:
        return
    low, high = score_range(ensemble)
    if not low <= ensemble.threshold < high:
        which = "first" if high <= ensemble.threshold else "second"
        warnings.warn(
            f"threshold: by {ensemble.operating_point.rule} every row is of the {which} class: scores of "
            f"the model run from {low:.4g} to {high:.4g}, and the threshold is {ensemble.threshold:.4g}.",
            stacklevel=5,
        )


def with_operating_point(ensemble: Any, point: OperatingPoint | None) -> Any:
    """The model with another threshold."""
    if isinstance(ensemble, LearnerEnsemble):
        return replace(ensemble, stumps=replace(ensemble.stumps, operating_point=point))
    return replace(ensemble, operating_point=point)

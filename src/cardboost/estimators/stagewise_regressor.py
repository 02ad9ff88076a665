"""Boosting stage by stage for a number: least squares, least absolute deviations, or a loss of one's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from cardboost.boosting.resolve import Part, ToFit, resolve_dictionary
from cardboost.boosting.stagewise import StageSettings
from cardboost.boosting.stagewise_learners import HeldRows
from cardboost.boosting.stagewise_levels import train_levels
from cardboost.boosting.stagewise_regressors import RegressorTask, train_regressors
from cardboost.data.exact import unmasked
from cardboost.data.threads import usable_threads
from cardboost.data.weights import RowWeights
from cardboost.estimators.base import Progress
from cardboost.estimators.callbacks import Rounds, with_callbacks
from cardboost.estimators.classes import shape_of
from cardboost.estimators.numbers import RegressorCards
from cardboost.estimators.stagewise import binned, stage_settings
from cardboost.estimators.validation import real_targets, sample_weights, split_rows
from cardboost.model.ensemble import Ensemble, model_loss
from cardboost.model.fitted_learner import count_rows, name_of, take_rows
from cardboost.model.learners import LearnerEnsemble
from cardboost.problem.losses import Loss, stagewise_loss
from cardboost.problem.risk import risk_of

Array = NDArray[np.float64]


class StagewiseRegressor(RegressorCards):
    """Boosting stage by stage for a number: every round adds a step function of one feature with two levels.

    The levels are means of residuals for the squared loss and weighted medians for the absolute one. There is
    no certificate (docs/stagewise.md).

    Parameters
    ----------
    loss : {"squared", "absolute"} or a Loss of your own, of the residual
    dictionary : "stumps", a scikit-learn regressor, or a list of regressors
        What rounds choose from. A regressor is fitted anew in every round, to the residuals or their signs;
        of a list, those that are fitted already are taken as they are.
    max_iter : int
        At most so many rounds.
    learning_rate : float
        By which the levels of every round are multiplied.
    validation_fraction : float or None
        A share of the rows that is held out, and ends the rounds when its loss no longer falls. The model is
        that of its best round.
    max_bins, categorical_features, monotonic_cst, random_state, n_jobs, verbose
        As in :class:`StagewiseClassifier`.

    Attributes
    ----------
    ensemble_ : Ensemble
        The fitted model in the units of the target.
    trace_ : Trace
        One record per round; for the losses named above the objective is that of the standardised target.
    n_iter_ : int
        Rounds of the model.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cardboost import StagewiseRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = StagewiseRegressor(loss="absolute", max_iter=50).fit(X, y)
    >>> bool(abs(model.predict(X) - y).mean() < 45)
    True
    """

    fit_intercept = True  # the levels of a stump are free on both sides

    def __init__(
        self,
        *,
        loss: str | Loss = "squared",
        dictionary: Any = "stumps",
        max_iter: int = 100,
        learning_rate: float = 1.0,
        validation_fraction: float | None = None,
        random_state: Any = None,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.dictionary = dictionary
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StagewiseRegressor:
        """Train on a table of numbers and categories, with missing values, and a number per row."""
        return self._fit(X, y, sample_weight)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        callback: Progress | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> StagewiseRegressor:
        """``callback`` sees every round and ends the fit by returning true; so does ``stopped``."""
        loss = stagewise_loss(self.loss, of_residual=True)
        settings = stage_settings(self, time.perf_counter(), stopped)
        parts = resolve_dictionary(self.dictionary, regression=True)
        if parts != ("stumps",):
            return self._fit_learners(X, y, sample_weight, loss, settings, parts, callback)
        table = self._read_for_fit(X)
        rows = self._number_rows(table, y, sample_weight)
        rounds = Rounds(self, X, y)
        fitted = self._reconstruction(rows.table)
        result = train_levels(
            self._task(rows, loss), replace(settings, callback=self._after_round(rounds, callback, fitted))
        )
        self._remember_features(table)
        self._stage_paths = (result.path,)
        self.ensemble_: Any = result.ensemble
        self.trace_ = result.trace
        self.n_iter_ = len(result.path)
        if result.held_out is not None:
            self.validation_losses_ = [result.held_out]
        rounds.end()
        return self

    def _fit_learners(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        loss: Loss,
        settings: StageSettings,
        parts: tuple[Part, ...],
        callback: Progress | None,
    ) -> StagewiseRegressor:
        """The same with regressors of any kind."""
        if self.monotonic_cst is not None:
            raise ValueError("monotonic_cst is for stumps only; with other learners leave it at None.")
        rounds = Rounds(self, X, y)
        task = self._learner_task(X, y, sample_weight, loss, parts)
        own = replace(settings, callback=self._after_round(rounds, callback, None))
        result = train_regressors(task, own)
        self._remember_names(task.empty.n_features, task.empty.feature_names)
        self._learners = result
        self.ensemble_ = result.ensemble
        self.trace_ = result.trace
        self.n_iter_ = len(result.weights)
        if result.held_out is not None:
            self.validation_losses_ = [result.held_out]
        rounds.end()
        return self

    def _learner_task(
        self, X: Any, y: Any, sample_weight: Any, loss: Loss, parts: tuple[Part, ...]
    ) -> RegressorTask:
        """The rows with a weight to train on, as they were given, and those held out."""
        X = unmasked(X)
        target = real_targets(y, count_rows(X))
        raw = sample_weights(sample_weight, len(target))
        fitted_to_weights(parts, raw)
        n_features, names = shape_of(X)
        kept = np.arange(len(target)) if raw is None else np.flatnonzero(raw > 0)
        aside = None
        if self.validation_fraction is not None:
            inside, outside = split_rows(self.validation_fraction, None, len(kept), self.random_state)
            kept, aside = kept[inside], kept[outside]
        threads = usable_threads(self.n_jobs)

        def part(rows: NDArray[np.intp]) -> tuple[Any, Array, Array | None, RowWeights]:
            own = None if raw is None else raw[rows]
            return take_rows(X, rows), target[rows], own, RowWeights.make(len(rows), own)

        rows, values, weight, weights = part(kept)
        mean, scale = self._units(loss, weights, values)
        held = None
        if aside is not None:
            other, wanted, _, own = part(aside)
            held = HeldRows(other, risk_of(loss, own, None, threads, (wanted - mean) / scale))
        risk = risk_of(loss, weights, None, threads, (values - mean) / scale)
        empty = Ensemble(model_loss(loss), 0.0, (), names, n_features, None)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return RegressorTask(parts, rows, risk, weight, empty, mean, scale, seed, held)

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after every round."""
        rows, threads = self._rows(X), usable_threads(self.n_jobs)
        if isinstance(self.ensemble_, LearnerEnsemble):
            scores = self._learners.scores(rows)
        else:
            (path,) = self._stage_paths
            scores = path.scores(binned(rows, path.frame, threads))
        for k, score in enumerate(scores, 1):
            yield self.ensemble_.decision_function(rows, threads) if k == self.n_iter_ else score


def fitted_to_weights(parts: tuple[Part, ...], raw: Array | None) -> None:
    """Refuse row weights where a learner that is to be fitted would not see them."""
    for part in parts if raw is not None else ():
        if isinstance(part, ToFit) and not has_fit_parameter(part.estimator, "sample_weight"):
            raise ValueError(
                f"dictionary: the fit of {name_of(part.estimator)} does not accept sample_weight, and rows "
                "have weights. Take a learner that does, or leave sample_weight out."
            )

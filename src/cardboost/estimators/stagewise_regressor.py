"""Boosting stage by stage for a number: least squares, least absolute deviations, or a loss of one's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from cardboost.boosting.proof import DataFacts
from cardboost.boosting.stagewise_levels import train_levels
from cardboost.boosting.training import TrainingTask
from cardboost.data.table import Table
from cardboost.data.weights import RowWeights
from cardboost.estimators.base import BoostedCards, Progress
from cardboost.estimators.callbacks import Rounds, with_callbacks
from cardboost.estimators.stagewise import binned, stage_settings
from cardboost.estimators.validation import real_targets, sample_weights, split_rows
from cardboost.losses import Loss, stagewise_loss
from cardboost.model.ensemble import OWN_LOSS, Ensemble, model_loss
from cardboost.risk import risk_of
from cardboost.threads import usable_threads

Array = NDArray[np.float64]


class StagewiseRegressor(RegressorMixin, BoostedCards):
    """Boosting stage by stage for a number: every round adds a step function of one feature with two levels.

    The levels are means of residuals for the squared loss and weighted medians for the absolute one. There is
    no certificate (docs/stagewise.md).

    Parameters
    ----------
    loss : {"squared", "absolute"} or a Loss of your own, of the residual
    dictionary : "stumps"
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
        if not isinstance(self.dictionary, str) or self.dictionary != "stumps":
            raise ValueError(f"dictionary={self.dictionary!r}: only 'stumps' is available for regression.")
        table = self._read_for_fit(X)
        target = real_targets(y, table.n_rows)
        raw = sample_weights(sample_weight, table.n_rows)
        if raw is not None and not (raw > 0).all():
            keep = raw > 0
            table, target, raw = table.take(keep), target[keep], raw[keep]
        rounds = Rounds(self, X, y)
        fitted = self._reconstruction(table)
        task = self._task(table, target, raw, loss)
        result = train_levels(task, replace(settings, callback=self._after_round(rounds, callback, fitted)))
        self._remember_features(table)
        self._stage_paths = (result.path,)
        self.ensemble_ = result.ensemble
        self.trace_ = result.trace
        self.n_iter_ = len(result.path)
        if result.held_out is not None:
            self.validation_losses_ = [result.held_out]
        rounds.end()
        return self

    def _task(self, table: Table, target: Array, raw: Array | None, loss: Loss) -> TrainingTask:
        """The rows to train on, and those held out."""
        everything, aside, threads = (table, target, raw), None, usable_threads(self.n_jobs)
        if self.validation_fraction is not None:
            kept, aside = split_rows(self.validation_fraction, None, table.n_rows, self.random_state)
            table, target = table.take(kept), target[kept]
            raw = None if raw is None else raw[kept]
        weights = RowWeights.make(table.n_rows, raw)
        # a loss of the user's own is in the units of the target
        own = model_loss(loss) == OWN_LOSS
        mean, scale = (0.0, 1.0) if own else weights.mean_and_deviation(target)
        standard = (target - mean) / scale
        dictionary = self._dictionary(table, None, weights, threads, standard)
        risk = risk_of(loss, weights, None, threads, standard)
        held_out = None
        if aside is not None:
            held = everything[0].take(aside)
            other = RowWeights.make(held.n_rows, None if everything[2] is None else everything[2][aside])
            wanted = (everything[1][aside] - mean) / scale
            held_out = self._held_out(held, dictionary.matrix, risk_of(loss, other, None, threads, wanted))
        facts = DataFacts(
            table.n_rows, table.n_features, lambda: table.digest(None, raw, threads, target=target)
        )
        frame = self._frame(model_loss(loss), table, dictionary.matrix, None, mean=mean, scale=scale)
        return TrainingTask(dictionary, risk, facts, frame, None, held_out)

    def _reconstruction(self, table: Table) -> Callable[[Ensemble], dict[str, Any]]:
        names = {} if table.names is None else {"feature_names_in_": np.array(table.names, dtype=object)}
        known = {"n_features_in_": table.n_features, "_categorical": table.categorical}
        return lambda ensemble: {"ensemble_": ensemble, **known, **names}

    def predict(self, X: Any) -> Array:
        """Intercept plus one number per feature, in the units of the target."""
        table = self._table(X)
        return self.ensemble_.decision_function(table, usable_threads(self.n_jobs))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after every round."""
        table, threads = self._table(X), usable_threads(self.n_jobs)
        (path,) = self._stage_paths
        for k, score in enumerate(path.scores(binned(table, path.frame, threads)), 1):
            yield self.ensemble_.decision_function(table, threads) if k == len(path) else score

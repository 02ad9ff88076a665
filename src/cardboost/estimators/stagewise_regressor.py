"""Boosting stage by stage for a number: least squares, least absolute deviations, or a loss of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from cardboost.boosting.early_stopping import HeldOutRows
from cardboost.boosting.stagewise import StepSearch, train_stagewise
from cardboost.boosting.stagewise_steps import RegressionSteps, RegressorSteps, RegressorTask
from cardboost.data.exact import unmasked
from cardboost.data.labels import real_targets, sample_weights, split_rows
from cardboost.data.threads import usable_threads
from cardboost.data.weights import RowWeights
from cardboost.dictionary.resolve import Part, ToFit, resolve_dictionary
from cardboost.estimators.base import PreparedFit, store_parameters
from cardboost.estimators.callbacks import Reporter, with_callbacks
from cardboost.estimators.classification import shape_of
from cardboost.estimators.regression import RegressorCards
from cardboost.estimators.stagewise import stage_settings
from cardboost.model.ensemble import Ensemble, model_loss
from cardboost.model.fitted_learner import count_rows, name_of, take_rows
from cardboost.problem.losses import Loss, stagewise_loss
from cardboost.problem.risk import risk_of

Array = NDArray[np.float64]


class StagewiseRegressor(RegressorCards):
    """Boosting stage by stage for a number: every round adds a step function of one feature with two levels.

    The levels are means of residuals for the squared loss and weighted medians for the absolute one. There is
    no certificate (docs/stagewise.md).

    Parameters
    ----------
    loss : {"squared", "absolute"} or Loss, default="squared"
        Loss of the residual, by name or of your own.
    dictionary : "stumps", a scikit-learn regressor, or a list of regressors, default="stumps"
        What rounds choose from. A regressor is fitted anew in every round, to the residuals or their signs;
        of a list, those that are fitted already are taken as they are.
    max_iter : int, default=100
        At most so many rounds.
    learning_rate : float, default=1.0
        Factor by which the levels of every round are multiplied.
    validation_fraction : float or None, default=None
        A share of the rows that is held out, and ends the rounds when its loss no longer falls. The model is
        that of its best round.
    random_state : int, RandomState or None, default=None
        Decides which rows are held out, and what learners draw.
    max_bins : int, default=255
        At most so many bins per feature (2 to 255), not counting the one for missing values.
    categorical_features : "from_dtype", sequence or None, default="from_dtype"
        Which features hold categories: names, positions or a boolean mask. "from_dtype": columns of text and
        of categories. None: no feature.
    monotonic_cst : sequence, dict or None, default=None
        For every feature 1 if the prediction may only rise with it, -1 if it may only fall, and 0 otherwise;
        a sequence, or a dict by name or position. Not available for categories; for stumps only.
    n_jobs : int or None, default=None
        Number of threads. None: all cores that joblib and threadpoolctl allow; -1: all cores. Results do not
        depend on it.
    verbose : int, default=0
        1 prints a line per round.

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
        store_parameters(self, locals())

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Any = None) -> StagewiseRegressor:
        """Train on a table of numbers and categories, with missing values, and a number per row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        y : array-like of shape (n_samples,)
            Numbers.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the rows. A weight of 2 is the row twice.
        callback : FitCallback, callable or None
            Follows the fit and may end it: see :class:`cardboost.FitCallback`.

        Returns
        -------
        self
        """
        reporter = Reporter(self, X, y, callback)
        loss = stagewise_loss(self.loss, of_residual=True)
        settings = stage_settings(self, reporter)
        parts = resolve_dictionary(self.dictionary, regression=True)
        if parts == ("stumps",):
            prepared, stumps = self._number_task(X, y, sample_weight, loss)
            steps: StepSearch = RegressionSteps(stumps, settings)
        else:
            prepared, task = self._learner_task(X, y, sample_weight, loss, parts)
            steps = RegressorSteps(task, settings)
        reporter.begin()
        after = reporter.after_round(prepared.reconstruction())
        result = train_stagewise(steps, replace(settings, callback=after))
        self._remember(prepared, [result])
        self.n_iter_ = len(result.path)
        reporter.end()
        return self

    def _learner_task(
        self, X: Any, y: Any, sample_weight: Any, loss: Loss, parts: tuple[Part, ...]
    ) -> tuple[PreparedFit, RegressorTask]:
        """The rows with a weight to train on, as the user passed them, and those held out."""
        if self.monotonic_cst is not None:
            raise ValueError("monotonic_cst is for stumps only; with other learners leave it at None.")
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
            weight = None if raw is None else raw[rows]
            return take_rows(X, rows), target[rows], weight, RowWeights.make(len(rows), weight)

        rows, values, weight, weights = part(kept)
        mean, scale = self._units(loss, weights, values)
        held_out = None
        if aside is not None:
            other, numbers, _, other_weights = part(aside)
            other_risk = risk_of(loss, other_weights, None, threads, (numbers - mean) / scale)
            held_out = HeldOutRows(other, other_risk)
        risk = risk_of(loss, weights, None, threads, (values - mean) / scale)
        empty = Ensemble(model_loss(loss), 0.0, (), names, n_features, None)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        task = RegressorTask(parts, rows, risk, weight, empty, mean, scale, seed, held_out)
        return PreparedFit(n_features, names, (), iter([("", task)])), task

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after every round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Yields
        ------
        array of shape (n_samples,)
            Predicted targets.
        """
        rows, threads = self._rows(X), usable_threads(self.n_jobs)
        (path,) = self._paths
        for k, score in enumerate(path.scores(rows, threads), 1):
            yield self.ensemble_.decision_function(rows, threads) if k == self.n_iter_ else score


def fitted_to_weights(parts: tuple[Part, ...], raw: Array | None) -> None:
    """Refuse row weights where a learner that is to be fitted would not see them."""
    for part in parts if raw is not None else ():
        if isinstance(part, ToFit) and not has_fit_parameter(part.estimator, "sample_weight"):
            raise ValueError(
                f"dictionary: the fit of {name_of(part.estimator)} does not accept sample_weight, and rows "
                "have weights. Take a learner that does, or leave sample_weight out."
            )

"""The regressor: the same loop with squared loss."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from cardboost.boosting.proof import DataFacts
from cardboost.boosting.training import TrainingTask, train
from cardboost.cardinality.exact import Progress as Proving
from cardboost.data.weights import RowWeights
from cardboost.estimators.base import Progress
from cardboost.estimators.callbacks import Rounds, with_callbacks
from cardboost.estimators.selecting import SelectingCards
from cardboost.estimators.validation import real_targets, sample_weights, split_rows
from cardboost.losses import SQUARED
from cardboost.model.ensemble import Ensemble
from cardboost.risk import EmpiricalRisk
from cardboost.threads import usable_threads

Array = NDArray[np.float64]


class CardBoostRegressor(RegressorMixin, SelectingCards):
    """A small boosted ensemble for a number, with a certificate of how good it can be.

    The sum of two-level steps, one feature each, that minimises squared error with at most ``max_terms`` of
    them. Prices are in units of the standardised target: ``l1=0.01`` means the same for metres and for
    kilometres.

    Parameters
    ----------
    max_terms : int or None, default=10
        At most so many terms; the intercept is free. None with ``l0=0``: no selection, up to ``max_iter``
        terms.
    l0, l1, l2 : float
        Price of a term, of a unit of weight, and of half a squared weight, where the target has standard
        deviation 1 and the loss is half the squared error.
    loss : {"squared"}
    categorical_features, monotonic_cst, max_features, feature_costs, validation_fraction, warm_start
        As in :class:`CardBoostClassifier`, like all other parameters.

    Attributes
    ----------
    ensemble_ : Ensemble
        The fitted model in the units of the target.
    certificate_ : Certificate
        Objective, lower bound, guarantee and proof, for the standardised target.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cardboost import CardBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CardBoostRegressor(max_terms=5).fit(X, y)
    >>> model.ensemble_.n_terms
    5
    >>> model.certificate_.verify(X, y)
    True
    """

    def __init__(
        self,
        *,
        max_terms: int | None = 10,
        l0: float = 0.0,
        l1: float = 1e-4,
        l2: float = 0.01,
        loss: str = "squared",
        dictionary: Any = "stumps",
        criterion: str = "gain",
        selector: Any = "auto",
        hot_start: int = 40,
        reselect: bool = False,
        max_iter: int = 100,
        max_nodes: int = 20_000,
        max_weight: float | None = None,
        bits: int | str = 6,
        max_bins: int = 255,
        tol: float = 1e-4,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        max_features: int | None = None,
        feature_costs: Any = None,
        validation_fraction: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_terms = max_terms
        self.l0 = l0
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.dictionary = dictionary
        self.criterion = criterion
        self.selector = selector
        self.hot_start = hot_start
        self.reselect = reselect
        self.max_iter = max_iter
        self.max_nodes = max_nodes
        self.max_weight = max_weight
        self.bits = bits
        self.max_bins = max_bins
        self.tol = tol
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.max_features = max_features
        self.feature_costs = feature_costs
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CardBoostRegressor:
        """Train on a table of numbers and categories, with missing values, and a number per row."""
        return self._fit(X, y, sample_weight)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        callback: Progress | None = None,
        stopped: Callable[[], bool] = lambda: False,
        proving: Proving | None = None,
    ) -> CardBoostRegressor:
        """``callback`` sees every round and ends generation by returning true; ``stopped`` ends searches;
        ``proving`` is told how far the exact search is."""
        started = time.perf_counter()
        if self.loss != "squared":
            raise ValueError(f"loss must be 'squared'; got {self.loss!r}.")
        if self.dictionary != "stumps":
            raise ValueError(f"dictionary={self.dictionary!r}: only 'stumps' is available for regression.")
        table = self._read_for_fit(X)
        settings = self._settings(SQUARED, table, started, stopped)
        target = real_targets(y, table.n_rows)
        raw = sample_weights(sample_weight, table.n_rows)
        if raw is not None and not (raw > 0).all():
            keep = raw > 0
            table, target, raw = table.take(keep), target[keep], raw[keep]
        everything, aside = (table, target, raw), None
        if self.validation_fraction is not None:
            kept, aside = split_rows(self.validation_fraction, None, table.n_rows, self.random_state)
            table, target = table.take(kept), target[kept]
            raw = None if raw is None else raw[kept]
        weights = RowWeights.make(table.n_rows, raw)
        mean, scale = weights.mean_and_deviation(target)
        standard = (target - mean) / scale
        # one term that isolates an outlier needs an intercept of half its size
        box = max(30.0, 10.0 * float(np.abs(standard).max()))
        settings = replace(settings, intercept_box=box)
        dictionary = self._dictionary(
            table, None, weights, settings.threads, standard, settings.limits is not None
        )
        risk = EmpiricalRisk(settings.loss, weights, None, settings.threads, target=standard)
        held_out = None
        if aside is not None:
            held = everything[0].take(aside)
            own = None if everything[2] is None else everything[2][aside]
            other = EmpiricalRisk(
                settings.loss, RowWeights.make(held.n_rows, own), None, settings.threads,
                target=(everything[1][aside] - mean) / scale,
            )  # fmt: skip
            held_out = self._held_out(held, dictionary.matrix, other)
        facts = DataFacts(
            table.n_rows,
            table.n_features,
            lambda: table.digest(None, raw, settings.threads, target=target),
            target=(mean, scale),
        )
        earlier = self._earlier()
        frame = self._frame("squared", table, dictionary.matrix, None, mean=mean, scale=scale)
        task = TrainingTask(dictionary, risk, facts, frame, None if earlier is None else earlier[0], held_out)
        rounds = Rounds(self, X, y)
        names = {} if table.names is None else {"feature_names_in_": np.array(table.names, dtype=object)}

        def fitted(ensemble: Ensemble) -> dict[str, Any]:
            known = {"n_features_in_": table.n_features, "_categorical": table.categorical}
            return {"ensemble_": ensemble, **known, **names}

        result = train(task, self._reporting(settings, rounds, callback, fitted, proving))
        self._remember_features(table)
        self._paths = (result.path,)
        self.ensemble_ = result.ensemble
        self.certificate_ = result.certificate
        self.trace_ = result.trace
        self.n_iter_ = result.trace[-1].n_columns
        if held_out is not None:
            self.validation_losses_ = [result.held_out]
        rounds.end()
        return self

    def predict(self, X: Any) -> Array:
        """Intercept plus one number per feature, in the units of the target."""
        table = self._table(X)
        return self.ensemble_.decision_function(table, usable_threads(self.n_jobs))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after every round of generation, and last those of the final model."""
        for ensemble, table in self._staged(X):
            yield ensemble.decision_function(table, usable_threads(self.n_jobs))

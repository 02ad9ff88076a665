"""The regressor: the same loop with squared loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.task import TrainingSettings
from cardboost.data.threads import usable_threads
from cardboost.estimators.base import PreparedFit, store_parameters
from cardboost.estimators.regression import RegressorCards
from cardboost.estimators.selecting import SelectingCards
from cardboost.estimators.validation import real_targets, sample_weights
from cardboost.problem.budget import Budget
from cardboost.problem.losses import SQUARED
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]


#: box times mean absolute target: above it, the rounding of a sum over rows would show in the bound
_LARGEST_BOX = 1e5


def _boxed(settings: TrainingSettings, risk: EmpiricalRisk) -> TrainingSettings:
    """With a box for the intercept; for the weights too where targets of next to no weight could ask for more
    than double precision carries."""
    assert risk.target is not None
    size = np.abs(risk.target)
    # one term that isolates an outlier needs an intercept of half its size
    box, most = 10.0 * float(size.max()), _LARGEST_BOX / max(risk.weights.mean(size), 1e-300)
    given = settings.max_weight
    if box > most:
        given = most if given is None else min(given, most)
    return replace(settings, intercept_box=max(30.0, min(box, most)), max_weight=given)


class CardBoostRegressor(SelectingCards, RegressorCards):
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
        store_parameters(self, locals())

    def _prepare(self, X: Any, y: Any, sample_weight: Any, budget: Budget) -> PreparedFit:
        if self.loss != "squared":
            raise ValueError(f"loss must be 'squared'; got {self.loss!r}.")
        if self.dictionary != "stumps":
            raise ValueError(f"dictionary={self.dictionary!r}: only 'stumps' is available for regression.")
        settings, earlier = self._settings(SQUARED, budget), self._earlier()
        before = None if earlier is None else earlier[0]
        prepared, task = self._number_task(X, y, sample_weight, SQUARED, before)
        return self._with_settings(prepared, _boxed(settings, task.risk))

    def _certified_rows(
        self, y: Any, sample_weight: Any, n_rows: int
    ) -> tuple[list[NDArray[Any]], NDArray[Any] | None, NDArray[np.intp] | None]:
        return [real_targets(y, n_rows)], sample_weights(sample_weight, n_rows), None

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after every round of generation, and last those of the final model."""
        for ensemble, table in self._staged(X):
            yield ensemble.decision_function(table, usable_threads(self.n_jobs))

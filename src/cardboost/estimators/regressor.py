"""The regressor: the same loop with squared loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.task import TrainingSettings
from cardboost.data.labels import real_targets, sample_weights
from cardboost.estimators.base import PreparedFit, TableParameters
from cardboost.estimators.predictions import NumberPredictions
from cardboost.estimators.rows import TrainingRows
from cardboost.estimators.selecting import SelectingCards
from cardboost.problem.budget import Budget
from cardboost.problem.losses import SQUARED, Loss

#: box times mean absolute target: above it, the rounding of a sum over rows would show in the bound
_LARGEST_BOX = 1e5


def _boxed(settings: TrainingSettings, rows: TrainingRows) -> TrainingSettings:
    """With a box for the intercept; for the weights too where targets of next to no weight could ask for more
    than double precision carries."""
    mean, scale = rows.units
    size = np.abs((rows.y - mean) / scale)
    # one term that isolates an outlier needs an intercept of half its size
    box, largest = 10.0 * float(size.max()), _LARGEST_BOX / max(rows.weights.mean(size), 1e-300)
    max_weight = settings.max_weight
    if box > largest:
        max_weight = largest if max_weight is None else min(max_weight, largest)
    return replace(settings, intercept_box=max(30.0, min(box, largest)), max_weight=max_weight)


@dataclass(kw_only=True, eq=False, repr=False)
class CardBoostRegressor(TableParameters, NumberPredictions, SelectingCards):
    """A small boosted ensemble of stumps for regression, with a certificate of how good it can be.

    The model is a sum of at most ``max_terms`` steps, each on one feature and with two levels, that minimises
    squared error. The target is standardised inside, so that regularisation means the same in any unit:
    ``l1=0.01`` is the same for metres and for kilometres.

    Parameters
    ----------
    max_terms : int or None, default=10
        At most so many terms; the intercept is free. With None and ``l0=0`` nothing is selected, and the
        model has up to ``max_iter`` terms.
    l0 : float, default=0.0
        Regularisation per term: what each term adds to the objective, in units of the loss of the
        standardised target.
    l1 : float, default=1e-4
        Regularisation per unit of weight.
    l2 : float, default=0.01
        Regularisation per half squared weight.
    loss : {"squared"}, default="squared"
        Half the squared error.
    dictionary : {"stumps"}, default="stumps"
        The weak learners: all stumps on the table.
    criterion : {"gain", "edge"}, default="gain"
        How the next column is chosen: by the drop of the quadratic model ("gain"), or by the edge, as in
        AdaBoost.
    selector : {"auto", "polish", "qubo"} or a sampler, default="auto"
        How terms are selected among the candidate terms. "auto" and "polish" are local search with convex
        refits and the lower bound of the convex relaxation. "qubo" or a dimod sampler lets an annealer select
        (docs/annealers.md). The selectors "exact" and "tabu" of the classifier do not take the squared loss.
    hot_start : int, default=40
        Number of candidate terms generated before the first selection. May be 0 with ``reselect=True``.
    reselect : bool, default=False
        Whether to continue after the first selection (TotalQBoost): add the best new column by the row
        weights of the selected model and select again, until there are ``max_iter`` columns or many in a row
        have changed nothing. Not available with ``max_features`` or ``feature_costs``.
    max_iter : int, default=100
        At most so many columns are generated.
    max_nodes : int, default=20000
        At most so many nodes of the exact search, which the squared loss does not have: without effect.
    max_weight : float or None, default=None
        Largest weight of a term. None: twice the largest weight of the model that local search finds.
    bits : int or "auto", default=6
        Bits per weight for samplers, from 1 to 16. "auto" is 6.
    max_bins : int, default=255
        At most so many bins per feature (2 to 255), not counting the one for missing values.
    tol : float, default=1e-4
        Relative duality gap at which column generation stops when nothing is selected.
    time_limit : float or None, default=None
        Seconds for the fit, after which the best model so far is returned. Reading, checking and binning the
        data are not cut short, but their time counts.
    fit_intercept : bool, default=True
        Whether the model has an intercept. It neither counts as a term nor is regularised.
    categorical_features : "from_dtype", sequence or None, default="from_dtype"
        Which features hold categories: names, positions or a boolean mask. "from_dtype": columns of text and
        of categories. None: no feature.
    monotonic_cst : sequence, dict or None, default=None
        For every feature 1 if the prediction may only rise with it, -1 if it may only fall, and 0 otherwise;
        a sequence, or a dict by name or position. Not available for categories.
    max_features : int or None, default=None
        At most so many distinct features are used by the terms.
    feature_costs : sequence, dict or None, default=None
        What each feature adds to the objective, once, if any term uses it; a sequence, or a dict by name or
        position.
    validation_fraction : float or None, default=None
        Share of the rows that is held out. Column generation ends when the loss on these rows no longer
        falls, and selection starts from the best round. The certificate is then about the other rows.
    warm_start : bool, default=False
        Whether the next fit continues from the columns of the last one. ``max_iter`` must not be below their
        number.
    random_state : int, RandomState or None, default=None
        Seed of the searches and of the held-out rows. With None the searches are the same every time, while
        held-out rows differ.
    n_jobs : int or None, default=None
        Number of threads. None: all cores that joblib and threadpoolctl allow; -1: all cores. Results do not
        depend on it.
    verbose : int, default=0
        1 prints a line per round.

    Attributes
    ----------
    ensemble_ : Ensemble
        The fitted model in the units of the target.
    certificate_ : Certificate
        Objective, lower bound, guarantee and proof, for the standardised target;
        ``certificate_.verify(X, y)`` checks it independently.
    trace_ : Trace
        One record per round: columns, terms, objective, lower bound, edge, seconds.
    n_iter_ : int
        Number of columns generated.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names.
    validation_losses_ : list of array
        Losses on held-out rows, round by round; only with ``validation_fraction``.

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

    loss: str = "squared"

    def _checked_loss(self) -> Loss:
        if self.loss != "squared":
            raise ValueError(f"loss must be 'squared'; got {self.loss!r}.")
        if self.dictionary != "stumps":
            raise ValueError(f"dictionary={self.dictionary!r}: only 'stumps' is available for regression.")
        return SQUARED

    def _prepare(self, X: Any, y: Any, sample_weight: Any, budget: Budget) -> PreparedFit:
        prepared = super()._prepare(X, y, sample_weight, budget)
        return replace(prepared, settings=_boxed(prepared.settings, prepared.rows))

    def _certified_rows(
        self, y: Any, sample_weight: Any, n_rows: int
    ) -> tuple[list[NDArray[Any]], NDArray[Any] | None, NDArray[np.intp] | None]:
        return [real_targets(y, n_rows)], sample_weights(sample_weight, n_rows), None

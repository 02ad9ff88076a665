"""``NeuralBoostRegressor``: boosted networks for one number per row, or several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from cardboost.data.exact import refuse_mask, require_exact_columns
from cardboost.data.labels import sample_weights
from cardboost.estimators.neural import NeuralBoost, NeuralTask, mean_and_deviation, scaled_weights
from cardboost.problem.losses.vector import (
    AbsoluteOutputs,
    HuberOutputs,
    SquaredOutputs,
    VectorLoss,
    weighted_median,
)

Array = NDArray[np.float64]

_HUBER = 1.345 * 1.4826  # times the median deviation: 95 % efficient where errors are normal


class NeuralBoostRegressor(RegressorMixin, NeuralBoost):
    """Boosted networks with one hidden layer for regression, with one target per row or several.

    Every round fits a network to the Newton steps of the rows and finds its weight; by default the weights of
    all networks are then optimised together (docs/neural.md).

    Parameters
    ----------
    n_estimators : int, default=50
        At most so many rounds, and so many networks.
    hidden : int, default=8
        Number of hidden units of every network.
    activation : {"tanh", "relu", "logistic"}, default="tanh"
        Activation function of the hidden units.
    loss : {"auto", "squared", "absolute", "huber"} or VectorLoss, default="auto"
        "auto" is "squared". These losses are of targets divided by their standard deviation, output by
        output; a VectorLoss of your own is in the units of the target.
    learning_rate : float, default=1.0
        Factor, above 0 and at most 1, by which the weight of a new network, or with ``refit="all"`` the
        change of all weights, is multiplied.
    refit : {"all", "last"}, default="all"
        Whether to optimise the weights of all networks after every round, or only that of the new one.
    l2 : float, default=1e-4
        Regularisation (weight decay) inside every network. With early stopping it is the least of the values
        that are tried; ``l2_`` is the one chosen.
    net_iter : int, default=200
        At most so many optimisation steps per network.
    max_terms : int or None, default=None
        Keep at most so many networks, selected after the last round; ``certificate_`` says how good the
        selection is. None: all are kept.
    early_stopping : {"auto", "cv", True, False}, default="auto"
        How the number of rounds and the regularisation are chosen: by five folds ("cv"), by a share of the
        rows that is held out (True), or as given (False). "auto" is "cv" below 5,000 rows and True otherwise.
    validation_fraction : float, default=0.1
        Share of the rows that is held out where ``early_stopping`` is True.
    n_iter_no_change : int, default=5
        Number of rounds without a lower held-out loss after which to stop.
    estimator : regressor or None, default=None
        A scikit-learn regressor in place of the network, or a torch network as a skorch estimator. Such
        models cannot be saved or exported.
    random_state : int, RandomState or None, default=None
        Seed of the networks, folds and held-out rows. None: another one for every fit.
    n_jobs : int or None, default=None
        Number of threads. None: all cores that joblib and threadpoolctl allow; -1: all cores. Results do not
        depend on it.
    verbose : int, default=0
        1 prints a line per round.

    Attributes
    ----------
    ensemble_ : NetEnsemble or LearnerSum
        The fitted model; LearnerSum if ``estimator`` was given.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names.
    n_iter_ : int
        Number of rounds of the model.
    l2_ : float
        The regularisation of the networks.
    trace_ : Trace
        One record per round.
    loss_curve_ : list of float
        Training losses, round by round.
    validation_curve_ : tuple of float
        Held-out losses, the first without any network; empty without early stopping.
    certificate_ : Certificate or None
        The certificate of the selection of networks; None without ``max_terms``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cardboost import NeuralBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NeuralBoostRegressor(n_estimators=3, early_stopping=False, l2=0.03, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.5)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on a table of finite numbers and one target or several per row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows. A weight of 2 is the row twice.

        Returns
        -------
        self
        """
        self._check_arguments()
        table = self._read(X, reset=True)
        target = _targets(y, len(table))
        raw = sample_weights(sample_weight, len(table))
        self._flat = target.ndim == 1
        table, target, s = self._weighted_rows(table, target, raw)
        own = isinstance(self.loss, VectorLoss)
        middle, unit = np.zeros(target.shape[1]), np.ones(target.shape[1])
        if not own:
            middle, unit = mean_and_deviation(target, s, "y")
            flat = (target == target[0]).all(axis=0) | (unit <= 1e-12 * np.abs(middle))
            unit[flat], middle[flat] = 1.0, target[0, flat]
        self._units = unit, middle
        wanted = (target - middle) / unit
        if not own:
            wanted[:, flat] = 0.0
        if not np.isfinite(wanted).all():
            raise ValueError("y holds numbers that are too large: divide them by some power of ten.")
        squared = SquaredOutputs()
        self._fitted_loss = self._vector_loss(
            {"auto": squared, "squared": squared, "absolute": AbsoluteOutputs(), "huber": _huber(wanted, s)}
        )
        self._train(NeuralTask(table, wanted, s, self._fitted_loss, None))
        return self

    def _weighted_rows(self, X: Array, target: Array, raw: Array | None) -> tuple[Array, Array, Array]:
        """The rows that have a weight."""
        keep = np.arange(len(X)) if raw is None else np.flatnonzero(raw > 0)
        weight = scaled_weights(None if raw is None else raw[keep], len(keep))
        return self._fitted_rows(X[keep], np.atleast_2d(target.T).T[keep], weight)

    def _rows_to_check(self, X: Array, y: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
        target, raw = _targets(y, len(X)), sample_weights(sample_weight, len(X))
        table, target, s = self._weighted_rows(X, target, raw)
        unit, middle = self._units
        return table, (target - middle) / unit, s

    def _labels(self) -> tuple[Any, ...] | None:
        return None

    def predict(self, X: Any) -> Array:
        """Predictions in the units of the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            Predicted targets, in the shape of ``y``.
        """
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after every round, and last those of the final model if ``max_terms`` is given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Yields
        ------
        array of shape (n_samples,) or (n_samples, n_outputs)
            Predicted targets, in the shape of ``y``.
        """
        for scores in self._staged_scores(X):
            yield scores[:, 0] if self._flat else scores


def _targets(y: Any, n_rows: int) -> Array:
    """Finite numbers, (rows,) or (rows, outputs)."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    refuse_mask(y, "y")
    require_exact_columns(y, "y")
    try:
        target = np.asarray(y)
        if target.dtype.kind == "c":
            raise ValueError("Complex data not supported.")
        target = target.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers: {error}") from error
    if target.ndim not in (1, 2) or target.size == 0:
        raise ValueError(f"y must have shape (rows,) or (rows, outputs); found {target.shape}.")
    if len(target) != n_rows:
        raise ValueError(f"X and y have inconsistent numbers of samples: {n_rows} and {len(target)}.")
    if not np.isfinite(target).all():
        raise ValueError("Input y contains NaN or infinity: every row needs finite numbers.")
    return target


def _huber(wanted: Array, s: Array) -> HuberOutputs:
    """Straight beyond what errors of a normal distribution seldom reach."""
    middle = np.array([weighted_median(own, s) for own in wanted.T])
    deviation = weighted_median(np.abs(wanted - middle).ravel(), np.repeat(s, wanted.shape[1]))
    return HuberOutputs(_HUBER * deviation if deviation > 0.0 else 1.0)

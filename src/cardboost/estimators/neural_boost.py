"""Boosted networks for two classes or more, and for one number per row or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from cardboost.boosting.neural import Rows
from cardboost.data.exact import refuse_mask, require_exact_columns
from cardboost.data.labels import class_codes, class_factors
from cardboost.estimators.neural import NeuralBoost, NeuralTask, mean_and_deviation
from cardboost.estimators.predictions import ClassPredictions, NumberPredictions
from cardboost.estimators.rows import plain, present
from cardboost.model.base import class_probabilities
from cardboost.model.nets import as_decision
from cardboost.problem.vector_losses import (
    AbsoluteOutputs,
    CrossEntropy,
    HuberOutputs,
    LogisticOutputs,
    SquaredOutputs,
    VectorLoss,
    weighted_median,
)

Array = NDArray[np.float64]

_HUBER = 1.345 * 1.4826  # times the median deviation: 95 % efficient where errors are normal


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralBoostClassifier(ClassPredictions, NeuralBoost):
    """Boosted networks with one hidden layer for classification.

    Every round fits a network to the Newton steps of the rows and finds its weight; by default the weights of
    all networks are then optimised together (docs/neural.md).

    Parameters
    ----------
    max_iter : int, default=50
        At most so many rounds, and so many networks.
    hidden : int, default=8
        Number of hidden units of every network.
    activation : {"tanh", "relu", "logistic"}, default="tanh"
        Activation function of the hidden units.
    loss : {"auto", "logistic", "cross_entropy", "squared"} or VectorLoss, default="auto"
        "auto" is "logistic" for two classes and "cross_entropy" for more. "squared" is least squares on one
        column of 0 and 1 per class. A VectorLoss of your own is used as it is, and has no probabilities.
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
    class_weight : dict, "balanced" or None, default=None
        Factors of the row weights, by class label; classes that are not named have 1. "balanced": inversely
        proportional to the total row weight of each class.
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
    classes_ : array of shape (n_classes,)
        Class labels.
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
    >>> from sklearn.datasets import load_iris
    >>> from cardboost import NeuralBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NeuralBoostClassifier(max_iter=5, early_stopping=False, l2=0.01, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    class_weight: Any = None

    def _task(self, X: Array, y: Any, raw: Array | None) -> NeuralTask:
        classes, codes = class_codes(y, len(X))
        if raw is not None:
            X, codes, raw = X[raw > 0], codes[raw > 0], raw[raw > 0]
        self.classes_, codes = present(classes, codes)
        self._factors = class_factors(self.class_weight, self.classes_, codes, raw)
        named: dict[str, VectorLoss] = {
            "logistic": LogisticOutputs(), "cross_entropy": CrossEntropy(), "squared": SquaredOutputs(),
        }  # fmt: skip
        default = named["cross_entropy" if len(self.classes_) > 2 else "logistic"]
        loss = self._vector_loss({"auto": default, **named})
        X, wanted, s = self._fitted_rows(X, self._columns(codes, loss), raw, self._factors[codes])
        n_outputs = wanted.shape[1]
        self._units = np.ones(n_outputs), np.zeros(n_outputs)
        codes = (wanted[:, 0] > 0.0).astype(np.intp) if n_outputs == 1 else np.argmax(wanted, axis=1)
        return NeuralTask(X, Rows(wanted, s), loss, codes)

    def _columns(self, codes: NDArray[np.intp], loss: VectorLoss) -> Array:
        """What the outputs are compared with: one column per class, or one of -1 and 1."""
        is_class = codes[:, None] == np.arange(len(self.classes_))
        if not isinstance(loss, LogisticOutputs):
            return is_class.astype(np.float64)
        return np.where(is_class[:, 1:] if len(self.classes_) == 2 else is_class, 1.0, -1.0)

    def _rows_to_check(self, X: Array, y: Any, raw: Array | None) -> tuple[Array, Array, Array]:
        position = {label: k for k, label in enumerate(self._class_labels or ())}
        codes = np.array([position.get(plain(label), -1) for label in np.asarray(y)])
        if (codes < 0).any():  # of no class of the fit
            raw = np.where(codes < 0, 0.0, 1.0 if raw is None else raw)
        return self._fitted_rows(X, self._columns(codes, self._fitted_loss), raw, self._factors[codes])

    def _decision(self, scores: Array) -> Array:
        return as_decision(scores, self._class_labels)

    def _require_probabilities(self) -> None:
        fitted = getattr(self, "ensemble_", None)
        if isinstance(self.loss, VectorLoss) if fitted is None else fitted.loss == "own":
            raise ValueError("A loss of one's own has no probabilities; take decision_function.")

    def _probabilities(self, scores: Array) -> Array:
        return class_probabilities(scores, self._loss_name)


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralBoostRegressor(NumberPredictions, NeuralBoost):
    """Boosted networks with one hidden layer for regression, with one target per row or several.

    Every round fits a network to the Newton steps of the rows and finds its weight; by default the weights of
    all networks are then optimised together (docs/neural.md).

    Parameters
    ----------
    max_iter : int, default=50
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
    >>> model = NeuralBoostRegressor(max_iter=3, early_stopping=False, l2=0.03, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.5)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def _task(self, X: Array, y: Any, raw: Array | None) -> NeuralTask:
        target = _targets(y, len(X))
        self._flat = target.ndim == 1
        X, target, s = self._fitted_rows(X, target.reshape(len(X), -1), raw)
        own_loss = isinstance(self.loss, VectorLoss)
        middle, unit = np.zeros(target.shape[1]), np.ones(target.shape[1])
        if not own_loss:
            middle, unit = mean_and_deviation(target, s, "y")
            constant = (target == target[0]).all(axis=0) | (unit <= 1e-12 * np.abs(middle))
            unit[constant], middle[constant] = 1.0, target[0, constant]
        self._units = unit, middle
        wanted = (target - middle) / unit
        if not own_loss:
            wanted[:, constant] = 0.0
        if not np.isfinite(wanted).all():
            raise ValueError("y holds numbers that are too large: divide them by some power of ten.")
        squared = SquaredOutputs()
        loss = self._vector_loss(
            {"auto": squared, "squared": squared, "absolute": AbsoluteOutputs(), "huber": _huber(wanted, s)}
        )
        return NeuralTask(X, Rows(wanted, s), loss)

    def _rows_to_check(self, X: Array, y: Any, raw: Array | None) -> tuple[Array, Array, Array]:
        X, target, s = self._fitted_rows(X, _targets(y, len(X)).reshape(len(X), -1), raw)
        unit, middle = self._units
        return X, (target - middle) / unit, s

    def _decision(self, scores: Array) -> Array:
        return scores[:, 0] if self._flat else scores


def _targets(y: Any, n_rows: int) -> Array:
    """Finite numbers, (rows,) or (rows, outputs)."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    refuse_mask(y, "y")
    require_exact_columns(y, "y")
    try:
        target: Array = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must hold finite numbers, of shape (rows,) or (rows, outputs): {error}"
        ) from error
    if len(target) != n_rows:
        raise ValueError(f"X and y have inconsistent numbers of samples: {n_rows} and {len(target)}.")
    return target


def _huber(wanted: Array, s: Array) -> HuberOutputs:
    """Straight beyond what errors of a normal distribution seldom reach."""
    middle = np.array([weighted_median(column, s) for column in wanted.T])
    deviation = weighted_median(np.abs(wanted - middle).ravel(), np.repeat(s, wanted.shape[1]))
    return HuberOutputs(_HUBER * deviation if deviation > 0.0 else 1.0)

"""``NeuralBoostClassifier``: boosted networks for two classes or more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from cardboost.data.labels import class_codes, class_factors, sample_weights
from cardboost.estimators.classification import plain, present
from cardboost.estimators.neural import NeuralBoost, NeuralTask, scaled_weights
from cardboost.model.base import class_probabilities
from cardboost.model.nets import as_decision
from cardboost.problem.losses.vector import CrossEntropy, LogisticOutputs, SquaredOutputs, VectorLoss

Array = NDArray[np.float64]


def _has_probabilities(estimator: Any) -> bool:
    fitted = getattr(estimator, "ensemble_", None)
    if isinstance(estimator.loss, VectorLoss) if fitted is None else fitted.loss == "own":
        raise ValueError("A loss of one's own has no probabilities; take decision_function.")
    return True


class NeuralBoostClassifier(ClassifierMixin, NeuralBoost):
    """Boosted networks with one hidden layer for classification.

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
    >>> model = NeuralBoostClassifier(n_estimators=5, early_stopping=False, l2=0.01, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        *,
        n_estimators: int = 50,
        hidden: int = 8,
        activation: str = "tanh",
        loss: str | VectorLoss = "auto",
        learning_rate: float = 1.0,
        refit: str = "all",
        l2: float = 1e-4,
        net_iter: int = 200,
        max_terms: int | None = None,
        early_stopping: str | bool = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        estimator: Any = None,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators, hidden=hidden, activation=activation, loss=loss,
            learning_rate=learning_rate, refit=refit, l2=l2, net_iter=net_iter, max_terms=max_terms,
            early_stopping=early_stopping, validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change, estimator=estimator, random_state=random_state,
            n_jobs=n_jobs, verbose=verbose,
        )  # fmt: skip
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on a table of finite numbers and a class label per row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows. A weight of 2 is the row twice.

        Returns
        -------
        self
        """
        self._check_arguments()
        table = self._read(X, reset=True)
        classes, codes = class_codes(y, len(table))
        raw = sample_weights(sample_weight, len(table))
        keep = np.arange(len(table)) if raw is None else np.flatnonzero(raw > 0)
        classes, codes = present(classes, codes[keep])
        raw = None if raw is None else raw[keep]
        factors = class_factors(self.class_weight, classes, codes, raw)
        weight = scaled_weights(raw, len(codes))
        self.classes_ = classes
        self._factors = factors
        several = "cross_entropy" if len(classes) > 2 else "logistic"
        named: dict[str, VectorLoss] = {
            "logistic": LogisticOutputs(), "cross_entropy": CrossEntropy(), "squared": SquaredOutputs(),
        }  # fmt: skip
        self._fitted_loss = self._vector_loss({"auto": named[several], **named})
        table, wanted, s = self._fitted_rows(table[keep], self._columns(codes), weight, factors[codes])
        self._units = np.ones(wanted.shape[1]), np.zeros(wanted.shape[1])
        self._train(NeuralTask(table, wanted, s, self._fitted_loss, self._codes(wanted)))
        return self

    def _columns(self, codes: NDArray[np.intp]) -> Array:
        """What the outputs are compared with: one column per class, or one of -1 and 1."""
        if isinstance(self._fitted_loss, LogisticOutputs):
            if len(self.classes_) == 2:
                return np.where(codes == 1, 1.0, -1.0)[:, None]
            return np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        return (codes[:, None] == np.arange(len(self.classes_))).astype(np.float64)

    def _codes(self, columns: Array) -> NDArray[np.intp]:
        """The way back."""
        one = columns.shape[1] == 1
        return (columns[:, 0] > 0.0).astype(np.intp) if one else np.argmax(columns, axis=1)

    def _rows_to_check(self, X: Array, y: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
        known = {label: k for k, label in enumerate(self._labels() or ())}
        codes = np.array([known.get(plain(own), -1) for own in np.asarray(y)])
        raw = sample_weights(sample_weight, len(X))
        keep = np.flatnonzero((codes >= 0) & (True if raw is None else raw > 0))
        weight = scaled_weights(None if raw is None else raw[keep], len(keep))
        columns, factors = self._columns(codes[keep]), self._factors[codes[keep]]
        return self._fitted_rows(X[keep], columns, weight, factors)

    def _labels(self) -> tuple[Any, ...] | None:
        return tuple(plain(label) for label in self.classes_)

    def decision_function(self, X: Any) -> Array:
        """The score of every row. For two classes, a positive score means ``classes_[1]``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            With more than two classes, one column per class.
        """
        return as_decision(self._scores(X), self._labels())

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the highest score; of two classes, a score of exactly 0 means ``classes_[0]``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        array of shape (n_samples,)
            Class labels.
        """
        return self._label(self.decision_function(X))

    def _label(self, score: Array) -> NDArray[Any]:
        at = (score > 0).astype(np.intp) if score.ndim == 1 else np.argmax(score, axis=1)
        return self.classes_[at]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes. Not available for a loss of your own.

        Those of the squared loss are scores clipped to the range from 0 to 1 and divided by their sum.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``.
        """
        return class_probabilities(self._scores(X), self._loss_name)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities. Not available for a loss of your own.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """The scores after every round, and last those of the final model if ``max_terms`` is given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Yields
        ------
        array of shape (n_samples,) or (n_samples, n_classes)
            As returned by ``decision_function``.
        """
        for scores in self._staged_scores(X):
            yield as_decision(scores, self._labels())

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """The classes after every round, and last those of the final model if ``max_terms`` is given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Yields
        ------
        array of shape (n_samples,)
            Class labels.
        """
        for score in self.staged_decision_function(X):
            yield self._label(score)

    @available_if(_has_probabilities)
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """The probabilities after every round, and last those of the final model if ``max_terms`` is given.

        Not available for a loss of your own.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Yields
        ------
        array of shape (n_samples, n_classes)
            As returned by ``predict_proba``.
        """
        for scores in self._staged_scores(X):
            yield class_probabilities(scores, self._loss_name)

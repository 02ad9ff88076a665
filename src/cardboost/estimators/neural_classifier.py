"""``NeuralBoostClassifier``: boosted networks for two classes or more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from cardboost.estimators.classification import plain, present
from cardboost.estimators.neural import NeuralBoost, NeuralTask, scaled_weights
from cardboost.estimators.validation import class_codes, class_factors, sample_weights
from cardboost.model.nets import as_decision, probabilities
from cardboost.problem.losses.vector import CrossEntropy, LogisticOutputs, SquaredOutputs, VectorLoss

Array = NDArray[np.float64]


def _has_probabilities(estimator: Any) -> bool:
    fitted = getattr(estimator, "ensemble_", None)
    if isinstance(estimator.loss, VectorLoss) if fitted is None else fitted.loss == "own":
        raise ValueError("A loss of one's own has no probabilities; take decision_function.")
    return True


class NeuralBoostClassifier(ClassifierMixin, NeuralBoost):
    """Boosted networks with one hidden layer, for two classes or more.

    Every round fits a net to the Newton steps of the rows and finds its weight; by default all weights
    are then solved for together (docs/neural.md).

    Parameters
    ----------
    n_estimators : int
        Rounds, at most.
    hidden : int
        Units of every net.
    activation : {"tanh", "relu", "logistic"}
    loss : {"auto", "logistic", "cross_entropy", "squared"} or a VectorLoss of your own
        "auto" is "logistic" for two classes and "cross_entropy" for more. "squared" is least
        squares on columns of 0 and 1, one per class.
    learning_rate : float
        By which the weight of a new net, or the change of all weights, is multiplied.
    refit : {"all", "last"}
        Solve for all weights after every round, or for that of the new net only.
    l2 : float
        Decay of the weights inside a net; with early stopping the least of those that are tried.
    net_iter : int
        Steps for a net, at most.
    max_terms : int or None
        Keep at most so many nets, chosen by the selector; ``certificate_`` says how good the choice is.
    early_stopping : {"auto", "cv", True, False}
        How many rounds and how much decay: by five folds ("cv"), by a share of the rows that is held out
        (True), or as given (False). "auto" is "cv" below 5,000 rows, else True.
    validation_fraction : float
        The share that is held out.
    n_iter_no_change : int
        Rounds without a lower held-out loss after which to stop.
    estimator : regressor or None
        A scikit-learn regressor in place of the net, or a net of torch as an estimator of skorch.
    class_weight : dict, "balanced" or None
    random_state, n_jobs, verbose
        Seed; threads (None: all cores; they change no result); 1 to print every round.

    Attributes
    ----------
    ensemble_ : the fitted sum; NetEnsemble for built-in nets.
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn.
    n_iter_ : rounds of the model. l2_ : the decay.
    trace_, loss_curve_, validation_curve_ : round by round.
    certificate_ : that of the choice of nets with ``max_terms``, else None.

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
        """Train on a table of finite numbers and a label per row."""
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
        """One score per row for two classes, positive for ``classes_[1]``; else one column per class."""
        return as_decision(self._scores(X), self._labels())

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class; a score of exactly 0 is ``classes_[0]``."""
        return self._label(self.decision_function(X))

    def _label(self, score: Array) -> NDArray[Any]:
        at = (score > 0).astype(np.intp) if score.ndim == 1 else np.argmax(score, axis=1)
        return self.classes_[at]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes. Those of the squared loss are scores cut at 0 and 1 and
        divided by their sum; a loss of one's own has none, and the method is not there."""
        return probabilities(self._scores(X), self._loss_name)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """The scores after every round, and last those of the pruned model if there is one."""
        for scores in self._staged_scores(X):
            yield as_decision(scores, self._labels())

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        for score in self.staged_decision_function(X):
            yield self._label(score)

    @available_if(_has_probabilities)
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        for scores in self._staged_scores(X):
            yield probabilities(scores, self._loss_name)

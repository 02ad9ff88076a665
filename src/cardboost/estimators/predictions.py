"""The predictions of fitted estimators, all made of ``_scores`` and ``_staged_scores``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

Array = NDArray[np.float64]


def has_probabilities(estimator: Any) -> bool:
    """Whether the loss has probabilities; an error that says why not is the cause of the AttributeError."""
    estimator._require_probabilities()
    return True


class ClassPredictions(ClassifierMixin):
    """Predictions of a classifier that computes ``_scores`` and knows their ``_probabilities``."""

    def _decision(self, scores: Array) -> Array:
        """Scores in the shape of ``decision_function``."""
        return scores

    def _labels_of(self, decision: Array) -> NDArray[Any]:
        threshold = getattr(getattr(self, "ensemble_", None), "threshold", 0.0)
        index = (decision > threshold).astype(np.intp) if decision.ndim == 1 else np.argmax(decision, axis=1)
        return self.classes_[index]

    def decision_function(self, X: Any) -> Array:
        """The score of every row. For two classes, one above the threshold (0) means ``classes_[1]``.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame; numbers only for networks.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            With more than two classes, one column per class.
        """
        return self._decision(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the highest score; of two classes, the first up to the threshold, a score of 0.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            As for ``decision_function``.

        Returns
        -------
        array of shape (n_samples,)
            Class labels.
        """
        return self._labels_of(self.decision_function(X))

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes. Only available if the loss has probabilities.

        Those of networks with the squared loss are scores clipped to the range from 0 to 1 and divided by
        their sum.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            As for ``decision_function``.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``.
        """
        return self._probabilities(self._scores(X))

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities. Only available if the loss has probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            As for ``decision_function``.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """The scores after every round, and last those of the final model where a selection has made it.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            As for ``decision_function``.

        Yields
        ------
        array of shape (n_samples,) or (n_samples, n_classes)
            As returned by ``decision_function``.
        """
        return map(self._decision, self._staged_scores(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """The predicted classes of the stages of ``staged_decision_function``.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            As for ``decision_function``.

        Yields
        ------
        array of shape (n_samples,)
            Class labels.
        """
        return map(self._labels_of, self.staged_decision_function(X))

    @available_if(has_probabilities)
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """The probabilities at the stages of ``staged_decision_function``.

        Only available if the loss has probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            As for ``decision_function``.

        Yields
        ------
        array of shape (n_samples, n_classes)
            As returned by ``predict_proba``.
        """
        return map(self._probabilities, self._staged_scores(X))


class NumberPredictions(RegressorMixin):
    """Predictions of a regressor that computes ``_scores``."""

    def _decision(self, scores: Array) -> Array:
        """Scores in the shape of the target."""
        return scores

    def predict(self, X: Any) -> Array:
        """Predictions in the units of the target.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame; numbers only for networks.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_outputs)
            Predicted targets, in the shape of ``y``.
        """
        return self._decision(self._scores(X))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after every round, and last those of the final model where a selection has made it.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            As for ``predict``.

        Yields
        ------
        array of shape (n_samples,) or (n_samples, n_outputs)
            Predicted targets, in the shape of ``y``.
        """
        return map(self._decision, self._staged_scores(X))

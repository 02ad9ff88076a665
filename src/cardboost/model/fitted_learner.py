"""What a fitted learner says of every row: +1 or -1 where it names classes, a number where it does not.

And what the units of a network say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

#: in this order of preference
METHODS = ("predict", "decision_function", "predict_proba")


def name_of(learner: Any) -> str:
    """A learner's name for messages."""
    return type(learner).__name__


def count_rows(X: Any) -> int:
    """Rows of anything a learner may be given: an array, a frame, a sparse matrix, a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of anything a learner may be given, by their numbers."""
    return X if len(rows) == count_rows(X) else _safe_indexing(X, rows)


@dataclass(frozen=True, eq=False)
class FittedLearner:
    """A fitted learner and how its answer is read.

    ``predict`` is read if there is one: +1 where it says ``labels[1]`` and -1 where it says ``labels[0]``, or
    as the number that it is where ``labels`` is None. Else the sign of ``decision_function`` or that of the
    probability of the positive class minus 1/2; exactly 0 and exactly 1/2 are -1.
    """

    learner: Any
    labels: tuple[Any, Any] | None
    method: str

    @classmethod
    def read(cls, learner: Any, classes: Sequence[Any]) -> FittedLearner:
        """A learner as the user has fitted it. ``classes``: the user's negative and positive label.

        Labels other than the user's (trees of a forest know 0 and 1) are in the order of ``classes_``.
        """
        method = method_of(learner)
        classes_ = getattr(learner, "classes_", None)
        if classes_ is None:
            return cls(learner, None, method)
        labels = list(classes_)
        if len(labels) != 2 or any(isinstance(label, np.ndarray) for label in labels):
            raise ValueError(
                f"dictionary: {name_of(learner)} must tell two classes apart; its classes_ are {classes_!r}."
            )
        ordered = all(any(label == other for other in labels) for label in classes)
        return cls(learner, (classes[0], classes[1]) if ordered else (labels[0], labels[1]), method)

    def scores(self, X: Any) -> NDArray[Any]:
        """int8 signs, or float64 numbers; a clear error for any other answer."""
        rows = count_rows(X)
        try:
            answer = np.asarray(getattr(self.learner, self.method)(self._as_fitted(X)))
        except Exception as error:
            raise ValueError(
                f"dictionary: {self.method} of {name_of(self.learner)} failed: {error}"
            ) from error
        if self.method == "predict_proba" and answer.ndim == 2 and answer.shape[1] == 2:
            answer = answer[:, self._positive_column()]
        if answer.ndim == 2 and answer.shape[1] == 1:
            answer = answer[:, 0]
        if answer.shape != (rows,):
            raise self._fault(f"an answer of shape {answer.shape} for {rows} rows")
        if self.method == "predict" and self.labels is not None:
            return self._signs_of_labels(answer)
        if answer.dtype.kind not in "fiub":
            raise self._fault(f"{answer.dtype} where a number per row is expected")
        numbers = answer.astype(np.float64)
        if not np.isfinite(numbers).all():
            raise self._fault("NaN or infinity")
        if self.method == "predict":
            return numbers + 0.0  # no minus zero: equal columns are known by their bits
        half = 0.5 if self.method == "predict_proba" else 0.0
        flip = self.method == "decision_function" and self._positive_column() == 0
        return np.where((numbers < half) if flip else (numbers > half), 1, -1).astype(np.int8)

    def numbers(self, X: Any) -> NDArray[np.float64]:
        """:meth:`scores` as float64."""
        return np.asarray(self.scores(X), dtype=np.float64)

    def _as_fitted(self, X: Any) -> Any:
        """The numbers of a frame for a learner that was fitted without names, as trees of a forest are."""
        plain = hasattr(self.learner, "n_features_in_") and not hasattr(self.learner, "feature_names_in_")
        return np.asarray(X) if plain and hasattr(X, "columns") else X

    def _signs_of_labels(self, answer: NDArray[Any]) -> NDArray[np.int8]:
        assert self.labels is not None
        positive, negative = answer == self.labels[1], answer == self.labels[0]
        if not np.all(positive | negative):
            other = answer[np.flatnonzero(~(positive | negative))[0]]
            raise self._fault(f"{other!r}, which is not one of its two classes {list(self.labels)}")
        return np.where(positive, 1, -1).astype(np.int8)

    def _positive_column(self) -> int:
        classes = getattr(self.learner, "classes_", None)
        return 0 if classes is not None and self.labels is not None and classes[0] == self.labels[1] else 1

    def _fault(self, answer: str) -> ValueError:
        return ValueError(f"dictionary: {self.method} of {name_of(self.learner)} returned {answer}.")


def method_of(learner: Any) -> str:
    """How a learner is asked; a clear error if it cannot be."""
    for method in METHODS:
        if callable(getattr(learner, method, None)):
            return method
    raise ValueError(
        f"dictionary: {name_of(learner)} has none of predict, decision_function and predict_proba: it cannot "
        "be asked anything."
    )


ACTIVATIONS = ("tanh", "relu", "logistic")  # of the units of networks; the kernels know them by their place


def activated(A: NDArray[np.float64], activation: str) -> NDArray[np.float64]:
    """What units say whose inputs add up to ``A``."""
    if activation == "tanh":
        return np.tanh(A)
    return np.maximum(A, 0.0) if activation == "relu" else 0.5 * (np.tanh(0.5 * A) + 1.0)

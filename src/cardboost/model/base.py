"""What all finished models share: the columns of their tables, their classes, and predictions from scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardboost.model.schema import Fault, Kind, Record, expected, under

Array = NDArray[np.float64]
ModelKind = Literal["binary", "multiclass", "regression"]


class TableModel(Record):
    """A model of the rows of a table: a classifier with ``classes``, or a regressor without."""

    if TYPE_CHECKING:  # fields of the records, except where they are the same for several ensembles

        @property
        def loss(self) -> str: ...
        @property
        def n_features(self) -> int: ...
        @property
        def feature_names(self) -> tuple[str, ...] | None: ...
        @property
        def classes(self) -> Any: ...

        def decision_function(self, X: Any, threads: int = 1) -> Array: ...

    @property
    def kind(self) -> ModelKind:
        """What it predicts: one of two classes, one of more classes, or a number."""
        if self.classes is None:
            return "regression"
        return "binary" if len(self.classes) == 2 else "multiclass"

    def feature_name(self, feature: int) -> str:
        """The name of a feature, or x0, x1, ... where the table had no names.

        Parameters
        ----------
        feature : int
            Position of the feature.

        Returns
        -------
        str
            Its name.
        """
        return f"x{feature}" if self.feature_names is None else self.feature_names[feature]

    def predict(self, X: Any, threads: int = 1) -> NDArray[Any]:
        """The class of every row, or the prediction of a regressor.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        threads : int, default=1
            Number of threads. Results do not depend on it.

        Returns
        -------
        array of shape (n_samples,)
            Class labels, of equal scores the first; predicted targets for a regressor.
        """
        score = self.decision_function(X, threads)
        return score if self.classes is None else labels_of(score, self.classes)

    def _check_names(self) -> None:
        names = self.feature_names
        if names is not None and len(names) != self.n_features:
            problem = f"expected n_features = {self.n_features} names, found {len(names)}"
            raise Fault(problem, "feature_names")

    def _check_classes(self, kind: Kind | None) -> None:
        """Classes of this kind, or with None no classes at all."""
        if kind is None and self.classes is not None:
            raise expected(f"none with {self.loss} loss", self.classes, "classes")
        if kind is not None:
            with under("classes"):
                object.__setattr__(self, "classes", kind(self.classes))


def labels_of(score: Array, classes: Sequence[Any]) -> NDArray[Any]:
    """The label of every row: the second of two where its score is above 0, or that of the highest score."""
    index = (score > 0).astype(np.intp) if score.ndim == 1 else np.argmax(score, axis=1)
    return np.asarray(label_array(classes)[index])


def label_array(classes: Sequence[Any]) -> NDArray[Any]:
    """The labels of classes as predictions hold them."""
    labels = np.asarray(classes)
    if labels.tolist() != list(classes):  # text that ends in NUL does not survive as a NumPy string
        labels = np.array(classes, dtype=object)
    return labels


def logistic(score: Array) -> Array:
    """1 / (1 + exp(-score)), which never overflows."""
    e = np.exp(-np.abs(score))
    return np.where(score >= 0.0, 1.0 / (1.0 + e), e / (1.0 + e))

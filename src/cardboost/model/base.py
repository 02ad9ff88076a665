"""What all finished models share: reading tables, classes, predictions, probabilities from scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import CategoricalColumn, Categories
from cardboost.data.table import Table, match_names, read_table
from cardboost.model.schema import Fault, Kind, Record, expected, under

Array = NDArray[np.float64]
ModelKind = Literal["binary", "multiclass", "regression"]


class TableModel(Record):
    """A model of the rows of a table: a classifier with ``classes``, or a regressor without.

    ``parts`` has one sum over features, or one for every class; each has ``features_used`` and ``evaluate``.
    """

    if TYPE_CHECKING:  # fields of the records, except where they are the same for several ensembles

        @property
        def loss(self) -> str: ...
        @property
        def n_features(self) -> int: ...
        @property
        def feature_names(self) -> tuple[str, ...] | None: ...
        @property
        def classes(self) -> Any: ...
        @property
        def features_used(self) -> tuple[int, ...]: ...
        @property
        def categories(self) -> Mapping[int, Categories]: ...
        @property
        def parts(self) -> tuple[Any, ...]: ...

    @property
    def kind(self) -> ModelKind:
        """What it predicts: one of two classes, one of more classes, or a number."""
        if self.classes is None:
            return "regression"
        return "binary" if len(self.classes) == 2 else "multiclass"

    @property
    def threshold(self) -> float:
        """A score above it means the second of two classes."""
        return 0.0

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

    # ------------------------------------------------------------------------------------ prediction

    def decision_function(self, X: Any, threads: int = 1) -> Array:
        """The score of every row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        threads : int, default=1
            Number of threads. Results do not depend on it.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            Scores; one per class where the model has several.
        """
        columns = self.read(X)
        scores = [part.evaluate(columns, threads)[0] for part in self.parts]
        return scores[0] if len(scores) == 1 else np.column_stack(scores)

    def contributions(self, X: Any, threads: int = 1) -> Array:
        """What every feature adds to the score of every row.

        Added to the intercept in the order of the features they give ``decision_function`` to the bit.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        threads : int, default=1
            Number of threads. Results do not depend on it.

        Returns
        -------
        array of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
            Contributions; 0 for features that are not used.
        """
        columns = self.read(X)
        out = np.zeros((columns.n_rows, self.n_features, len(self.parts)))
        for k, part in enumerate(self.parts):
            used = part.evaluate(columns, threads, with_contributions=True)[1]
            out[:, list(part.features_used), k] = used.T
        return out[:, :, 0] if len(self.parts) == 1 else out

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
        return score if self.classes is None else labels_of(score, self.classes, self.threshold)

    def read(self, X: Any) -> UsedColumns:
        """Read the columns of a table that the model uses; the others may hold anything.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Returns
        -------
        UsedColumns
            Numbers, and the codes of labels, by feature.

        Raises
        ------
        ValueError
            If the features of X are not those of the model.
        """
        names, n_features, used = self.feature_names, self.n_features, self.features_used
        categories = getattr(self, "categories", {})
        table = X
        if not isinstance(X, Table):
            if categories or not isinstance(X, np.ndarray | list):  # before one of its columns is looked at
                match_names(names, n_features, read_table(X, only=()))
            table = read_table(X, categorical=sorted(categories) or None, only=used)
        match_names(names, n_features, table)
        return UsedColumns({j: _numbers(table, j, categories.get(j)) for j in used}, table.n_rows)

    # ------------------------------------------------------------------------------------ checks

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


@dataclass(frozen=True, eq=False)
class UsedColumns:
    """Per used feature its numbers, or the codes of its labels (NaN: missing, or not seen in training)."""

    values: dict[int, NDArray[Any]]
    n_rows: int


def _numbers(table: Table, index: int, categories: Categories | None) -> NDArray[Any]:
    column = table.columns[index]
    if isinstance(column, CategoricalColumn):
        if categories is None:
            raise ValueError(f"X: {table.label(index)} holds labels, but the model expects numbers there.")
        return column.encode(categories)
    if categories is not None:
        raise ValueError(f"X: {table.label(index)} holds numbers, but the model expects labels there.")
    return column


def labels_of(score: Array, classes: Sequence[Any], threshold: float = 0.0) -> NDArray[Any]:
    """The label of every row: the second of two where its score is above the threshold, or that of the
    highest score."""
    index = (score > threshold).astype(np.intp) if score.ndim == 1 else np.argmax(score, axis=1)
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


def class_probabilities(scores: Array, loss: str) -> Array:
    """Probabilities of the classes from the scores of a linear model or of networks: (rows, classes).

    A single score is that of the second of two classes.
    """
    if loss == "own":
        raise ValueError("A loss of one's own has no probabilities; take decision_function.")
    if scores.ndim == 1 or scores.shape[1] == 1:
        return np.column_stack([logistic(-scores), logistic(scores)])
    if loss in ("softmax", "cross_entropy"):
        return normalised(np.exp(scores - scores.max(axis=1, keepdims=True)))
    # the squared loss is on columns of 0 and 1
    return normalised(logistic(scores) if loss == "logistic" else np.clip(scores, 0.0, 1.0))


def normalised(share: Array) -> Array:
    """Shares (rows, classes) divided by their sum in every row; equal where all of them are 0."""
    total = np.add.accumulate(share, axis=1)[:, -1:]  # in a fixed order: the same bits for a row in any table
    return np.where(total > 0.0, share / np.where(total > 0.0, total, 1.0), 1.0 / share.shape[1])

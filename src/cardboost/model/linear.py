"""A finished linear model: intercepts and the coefficients that are not zero. Nothing here trains."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cardboost.model import schema
from cardboost.model.base import Array, TableModel, UsedColumns, class_probabilities
from cardboost.model.schema import Fault, Record, expected, form

CLASSIFICATION = ("logistic", "softmax")
REGRESSION = ("squared", "absolute")


def _ascending(value: Any) -> tuple[int, ...]:
    """Indices of features, ascending."""
    features: tuple[int, ...] = schema.list_of(schema.integer("the index of a feature"))(value)
    for k, feature in enumerate(features):
        if feature <= (features[k - 1] if k else -1):
            raise expected("indices of features that ascend", feature, k)
    return features


@dataclass(frozen=True)
class LinearScore(Record):
    """intercept + sum of weights times features; the features ascend."""

    intercept: float = field(metadata=form(schema.FINITE))
    features: tuple[int, ...] = field(metadata=form(_ascending))
    weights: tuple[float, ...] = field(metadata=form(schema.list_of(schema.FINITE)))

    def _check(self) -> None:
        if len(self.features) != len(self.weights):
            problem = f"expected one for each of {len(self.features)} features, found {len(self.weights)}"
            raise Fault(problem, "weights")

    @property
    def features_used(self) -> tuple[int, ...]:
        return self.features

    def evaluate(
        self, columns: UsedColumns, threads: int, with_contributions: bool = False
    ) -> tuple[Array, Array]:
        """The score of every row and, on request, what the features add to it: (features, rows)."""
        score = np.full(columns.n_rows, self.intercept)
        contributions = np.empty((len(self.features) if with_contributions else 0, columns.n_rows))
        for k, (feature, weight) in enumerate(zip(self.features, self.weights, strict=True)):
            contribution = weight * np.asarray(columns.values[feature], dtype=np.float64)
            score += contribution
            if with_contributions:
                contributions[k] = contribution
        return score, contributions

    @classmethod
    def of(cls, coef: Array, intercept: float) -> LinearScore:
        """From coefficients of all features."""
        used = np.flatnonzero(coef)
        return cls(float(intercept), tuple(used.tolist()), tuple(np.asarray(coef)[used].tolist()))


@dataclass(frozen=True)
class LinearModel(TableModel):
    """A linear classifier or regressor.

    Loss "logistic" with two classes has one score: above 0 means ``classes[1]``. With more classes it has a
    score for each of them against the rest; loss "softmax" has a score for each of them, all at once. The
    highest wins, of equal ones the first. Losses "squared" and "absolute" predict the score itself.
    """

    loss: str = field(metadata=form(schema.one_of(CLASSIFICATION + REGRESSION)))
    n_features: int = field(metadata=form(schema.N_FEATURES))
    feature_names: tuple[str, ...] | None = field(metadata=form(schema.distinct_names))
    classes: tuple[Any, ...] | None = field(metadata=form(None))  # they depend on the loss
    scores: tuple[LinearScore, ...] = field(metadata=schema.records(LinearScore, "a score"))

    def _check(self) -> None:
        self._check_names()
        classifier = self.loss in CLASSIFICATION
        self._check_classes(schema.class_labels("two labels or more", 2) if classifier else None)
        single = self.classes is None or (len(self.classes) == 2 and self.loss == "logistic")
        count = 1 if single else len(self.classes or ())
        if len(self.scores) != count:
            raise Fault(f"expected {count}, found {len(self.scores)}", "scores")
        for k, score in enumerate(self.scores):
            if score.features and score.features[-1] >= self.n_features:
                below = f"indices below {self.n_features}"
                raise expected(below, score.features[-1], "scores", k, "features")

    @cached_property
    def features_used(self) -> tuple[int, ...]:
        """Indices of the features that have a weight in some score, ascending."""
        return tuple(sorted({feature for score in self.scores for feature in score.features}))

    @property
    def n_terms(self) -> int:
        """Weights of all scores together."""
        return sum(len(score.features) for score in self.scores)

    @property
    def parts(self) -> tuple[LinearScore, ...]:
        return self.scores

    def decision_function(self, X: Any, threads: int = 1) -> Array:
        """The score of every row; (rows, classes) where there is one per class."""
        score = super().decision_function(X, threads)
        if not np.isfinite(score).all():
            raise ValueError("X contains NaN, infinity or numbers too large for the model.")
        return score

    def predict_proba(self, X: Any, threads: int = 1) -> Array:
        """Probabilities of the classes: (rows, classes). A regressor has none."""
        if self.classes is None:
            raise ValueError(f"The {self.loss} loss predicts numbers: there are no classes.")
        return class_probabilities(self.decision_function(X, threads), self.loss)

    def read(self, X: Any) -> UsedColumns:
        """Read the columns that have a weight, of a sparse matrix too."""
        if not hasattr(X, "tocsc"):
            return super().read(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X has shape {X.shape}, but the model expects {self.n_features} features.")
        sparse = X.tocsc()
        return UsedColumns({j: sparse[:, [j]].toarray().ravel() for j in self.features_used}, X.shape[0])

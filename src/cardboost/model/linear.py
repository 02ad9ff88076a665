"""A finished linear model: intercepts and the coefficients that are not zero. Nothing here trains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.model import checks
from cardboost.model.checks import MAX_FEATURES, fault
from cardboost.model.columns import read_columns
from cardboost.model.ensemble import Kind

Array = NDArray[np.float64]

CLASSIFICATION = ("logistic", "softmax")
REGRESSION = ("squared", "absolute")


@dataclass(frozen=True)
class LinearScore:
    """intercept + sum of weights times features; the features ascend."""

    intercept: float
    features: tuple[int, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        intercept = _finite("intercept", self.intercept)
        features, weights = self.features, self.weights
        for name, given in (("features", features), ("weights", weights)):
            if not isinstance(given, tuple | list):
                raise fault(name, "a list", given)
        if len(features) != len(weights):
            raise ValueError(
                f"weights: expected one for each of {len(features)} features, found {len(weights)}"
            )
        found: list[int] = []
        for k, feature in enumerate(features):
            own = checks.integer(f"features[{k}]", feature, "the index of a feature")
            if own < 0 or (found and own <= found[-1]):
                raise fault(f"features[{k}]", "indices of features that ascend", feature)
            found.append(own)
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "features", tuple(found))
        numbers = tuple(_finite(f"weights[{k}]", weight) for k, weight in enumerate(weights))
        object.__setattr__(self, "weights", numbers)

    @classmethod
    def of(cls, coef: Array, intercept: float) -> LinearScore:
        """From coefficients of all features."""
        used = np.flatnonzero(coef)
        return cls(float(intercept), tuple(used.tolist()), tuple(np.asarray(coef)[used].tolist()))

    def to_dict(self) -> dict[str, Any]:
        return {
            "intercept": self.intercept,
            "features": list(self.features),
            "weights": list(self.weights),
        }


@dataclass(frozen=True)
class LinearModel:
    """A linear classifier or regressor.

    Loss "logistic" with two classes has one score: above 0 means ``classes[1]``. With more classes it has a
    score for each of them against the rest; loss "softmax" has a score for each of them, all at once. The
    highest wins, of equal ones the first. Losses "squared" and "absolute" predict the score itself.
    """

    loss: str
    n_features: int
    feature_names: tuple[str, ...] | None
    classes: tuple[Any, ...] | None
    scores: tuple[LinearScore, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.loss, str) or self.loss not in CLASSIFICATION + REGRESSION:
            raise fault("loss", "'logistic', 'softmax', 'squared' or 'absolute'", self.loss)
        n_features = checks.integer("n_features", self.n_features, "a number of features")
        if not 1 <= n_features <= MAX_FEATURES:
            raise fault("n_features", f"a number from 1 to {MAX_FEATURES}", self.n_features)
        names = checks.feature_names(self.feature_names, n_features)
        classes = None
        if self.loss in CLASSIFICATION:
            classes = checks.class_labels(self.classes, 2, None, "two labels or more")
        elif self.classes is not None:
            raise fault("classes", f"none with {self.loss} loss", self.classes)
        scores = self.scores
        if not isinstance(scores, tuple | list):
            raise fault("scores", "a list of scores", scores)
        wanted = 1 if classes is None or (len(classes) == 2 and self.loss == "logistic") else len(classes)
        if len(scores) != wanted:
            raise ValueError(f"scores: expected {wanted}, found {len(scores)}")
        for k, own in enumerate(scores):
            if not isinstance(own, LinearScore):
                raise fault(f"scores[{k}]", "a score", own)
            if own.features and own.features[-1] >= n_features:
                raise fault(f"scores[{k}].features", f"indices below {n_features}", own.features[-1])
        for name, value in (
            ("n_features", n_features),
            ("feature_names", names),
            ("classes", classes),
            ("scores", tuple(scores)),
        ):
            object.__setattr__(self, name, value)

    @property
    def kind(self) -> Kind:
        if self.classes is None:
            return "regression"
        return "binary" if len(self.classes) == 2 else "multiclass"

    @cached_property
    def features_used(self) -> tuple[int, ...]:
        """Indices of the features that have a weight in some score, ascending."""
        return tuple(sorted({feature for own in self.scores for feature in own.features}))

    @property
    def n_terms(self) -> int:
        """Weights of all scores together."""
        return sum(len(own.features) for own in self.scores)

    def feature_name(self, feature: int) -> str:
        return f"x{feature}" if self.feature_names is None else self.feature_names[feature]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ``model.io.from_dict`` is the way back."""
        return {
            "loss": self.loss,
            "n_features": self.n_features,
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "classes": None if self.classes is None else list(self.classes),
            "scores": [own.to_dict() for own in self.scores],
        }

    # ------------------------------------------------------------------------------------ prediction

    def decision_function(self, X: Any, threads: int = 1) -> Array:
        """The score of every row; (rows, classes) where there is one per class."""
        columns, n_rows = self._columns(X)
        out = np.empty((n_rows, len(self.scores)))
        for k, own in enumerate(self.scores):
            out[:, k] = own.intercept
            for feature, weight in zip(own.features, own.weights, strict=True):
                out[:, k] += weight * columns[feature]
        if not np.isfinite(out).all():
            raise ValueError("X contains NaN, infinity or numbers too large for the model.")
        return out[:, 0] if len(self.scores) == 1 else out

    def contributions(self, X: Any, threads: int = 1) -> Array:
        """What each feature adds to the score: (rows, features), or (rows, features, scores)."""
        columns, n_rows = self._columns(X)
        out = np.zeros((n_rows, self.n_features, len(self.scores)))
        for k, own in enumerate(self.scores):
            for feature, weight in zip(own.features, own.weights, strict=True):
                out[:, feature, k] = weight * columns[feature]
        return out[:, :, 0] if len(self.scores) == 1 else out

    def predict_proba(self, X: Any, threads: int = 1) -> Array:
        """Probabilities of the classes: (rows, classes). A regressor has none."""
        if self.classes is None:
            raise ValueError(f"The {self.loss} loss predicts numbers: there are no classes.")
        return probabilities(self.decision_function(X, threads), self.loss)

    def predict(self, X: Any, threads: int = 1) -> NDArray[Any]:
        """The label of every row; of a regressor its number."""
        score = self.decision_function(X, threads)
        if self.classes is None:
            return score
        at = (score > 0).astype(np.intp) if score.ndim == 1 else np.argmax(score, axis=1)
        return np.asarray(checks.label_array(self.classes)[at])

    def _columns(self, X: Any) -> tuple[dict[int, Array], int]:
        if hasattr(X, "tocsc"):
            if X.ndim != 2 or X.shape[1] != self.n_features:
                raise ValueError(f"X has shape {X.shape}, but the model expects {self.n_features} features.")
            own = X.tocsc()
            return {j: own[:, [j]].toarray().ravel() for j in self.features_used}, int(X.shape[0])
        read = read_columns(X, self.feature_names, self.n_features, self.features_used, {})
        return {j: np.asarray(own, dtype=np.float64) for j, own in read.values.items()}, read.n_rows


def probabilities(score: Array, loss: str) -> Array:
    """Probabilities of the classes from their scores; one score is that of the second of two classes."""
    if score.ndim == 1:
        up = _logistic(score)
        return np.column_stack([_logistic(-score), up])
    if loss == "softmax":
        share = np.exp(score - score.max(axis=1)[:, None])
    else:
        share = _logistic(score)
        share[share.sum(axis=1) == 0.0] = 1.0
    return share / share.sum(axis=1)[:, None]


def _logistic(f: Array) -> Array:
    e = np.exp(-np.abs(f))
    return np.where(f >= 0.0, 1.0 / (1.0 + e), e / (1.0 + e))


def _finite(field: str, value: Any) -> float:
    number = checks.number(field, value, "a finite number")
    if math.isinf(number):
        raise fault(field, "a finite number", value)
    return number

"""An immutable weighted sum of any learners, f(x) = intercept + sum of w_j h_j(x), stumps among them."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from cardboost.model.base import Array, labels_of
from cardboost.model.ensemble import Ensemble, score_probabilities
from cardboost.model.fitted_learner import FittedLearner, count_rows
from cardboost.model.operating_point import OperatingPoint


@dataclass(frozen=True, eq=False)
class WeightedLearner:
    """A fitted learner and its weight in the score."""

    fitted: FittedLearner
    weight: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.weight) or self.weight == 0.0:
            raise ValueError(f"weight: expected a finite number other than 0, found {self.weight!r}")

    @property
    def learner(self) -> Any:
        """The object itself."""
        return self.fitted.learner


@dataclass(frozen=True, eq=False)
class LearnerEnsemble:
    """A finished binary classifier or regressor: an ensemble of stumps (perhaps none) and weighted learners.

    ``stumps`` holds the intercept, the loss and the classes too. Learners read ``X`` as it is given, so it
    must look as it did at fit; stumps read it as a table. A score above ``threshold`` means ``classes[1]``,
    any other ``classes[0]``.
    """

    stumps: Ensemble
    learners: tuple[WeightedLearner, ...] = ()

    @property
    def loss(self) -> str:
        return self.stumps.loss

    @property
    def intercept(self) -> float:
        return self.stumps.intercept

    @property
    def classes(self) -> tuple[Any, Any] | None:
        """Of a number: None."""
        return self.stumps.classes

    @property
    def threshold(self) -> float:
        """A score above it means the second of two classes."""
        return self.stumps.threshold

    @property
    def operating_point(self) -> OperatingPoint | None:
        """How the threshold was chosen."""
        return self.stumps.operating_point

    @property
    def n_features(self) -> int:
        return self.stumps.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return self.stumps.feature_names

    @property
    def n_terms(self) -> int:
        """Stumps and learners."""
        return self.stumps.n_terms + len(self.learners)

    def decision_function(self, X: Any, threads: int = 1) -> Array:
        """The score of every row: the stumps first, then the learners in their order."""
        if self.stumps.n_terms:
            score = self.stumps.decision_function(X, threads)
        else:
            score = np.full(count_rows(X), self.intercept)
        for learner in self.learners:
            score = score + learner.weight * learner.fitted.scores(X)
        return score

    def predict_proba(self, X: Any, threads: int = 1) -> Array:
        """Probabilities of the two classes: shape (rows, 2)."""
        return score_probabilities(self.loss, self.decision_function(X, threads))

    def predict(self, X: Any, threads: int = 1) -> NDArray[Any]:
        """The label of every row, or its number."""
        score = self.decision_function(X, threads)
        return score if self.classes is None else labels_of(score, self.classes, self.threshold)

    def to_dict(self) -> NoReturn:
        """Refused: a learner is a Python object, and model files hold no pickles."""
        names = sorted({type(learner.learner).__name__ for learner in self.learners}) or ["none left"]
        raise ValueError(
            f"A model of learners ({', '.join(names)}) cannot be saved: they are Python objects, and a model "
            "file never holds a pickle. With dictionary='stumps' it could be."
        )

    def save(self, path: str | os.PathLike[str]) -> NoReturn:
        """Refused, as :meth:`to_dict` is."""
        self.to_dict()

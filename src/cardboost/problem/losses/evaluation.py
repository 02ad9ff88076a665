"""Counts of errors, to evaluate by. They are flat between their steps, so nothing can be trained on them."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from cardboost.problem.losses.base import Array, Loss


class EvaluationLoss(Loss):
    """A step at the margin 0: it has a value, and refuses everything that training needs."""

    def refusal(self) -> str:
        """Why the loss cannot be trained on, as a sentence for the user."""
        return (
            f"loss={self.name!r} counts errors: it is flat, and nothing can be trained on it. Take a "
            "surrogate, 'exponential', 'logistic', 'hinge' or 'squared_hinge', and evaluate by the errors."
        )

    def derivative(self, F: ArrayLike) -> NoReturn:
        raise ValueError(self.refusal())

    def curvature(self, F: ArrayLike) -> NoReturn:
        raise ValueError(self.refusal())

    def conjugate(self, v: ArrayLike) -> NoReturn:
        raise ValueError(self.refusal())

    def probability(self, f: ArrayLike) -> NoReturn:
        raise ValueError(self.refusal())

    def best_constant(self, mean: float) -> NoReturn:
        raise ValueError(self.refusal())


class ZeroOne(EvaluationLoss):
    """1 for a margin ``F <= 0``, else 0: a score of 0 counts as an error."""

    name = "zero_one"

    def rows(self, F: ArrayLike) -> Array:
        return (np.asarray(F, dtype=np.float64) <= 0.0).astype(np.float64)


class SignLoss(EvaluationLoss):
    """1 for a margin ``F < 0``, else 0: a score of 0 counts as correct."""

    name = "sign"

    def rows(self, F: ArrayLike) -> Array:
        return (np.asarray(F, dtype=np.float64) < 0.0).astype(np.float64)

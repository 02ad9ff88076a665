"""Losses with derivative, curvature, conjugate and probability (docs/mathematics.md, "Losses").

Plain NumPy, one class per loss. The kernels hold their own copies of these formulas, known by ``code``; the
tests hold the two together. ``LOSSES`` are those of a margin, for two classes; ``SQUARED`` is for regression.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, xlogy

Array = NDArray[np.float64]


class Loss(ABC):
    """A convex function of the margin ``F = y f(x)``, where it falls, or of the residual ``F = f(x) - t``."""

    name: ClassVar[str]
    code: ClassVar[int]
    #: whether the curvature is the same everywhere, so that a Hessian never ages
    quadratic: ClassVar[bool] = False

    @abstractmethod
    def rows(self, F: ArrayLike) -> Array:
        """The loss of every row."""

    def value(self, F: ArrayLike, s: ArrayLike | None = None) -> float:
        """The mean loss, or the sum weighted by ``s``."""
        rows = self.rows(F)
        return float(np.mean(rows) if s is None else np.dot(np.asarray(s, dtype=np.float64), rows))

    @abstractmethod
    def derivative(self, F: ArrayLike) -> Array: ...

    @abstractmethod
    def curvature(self, F: ArrayLike) -> Array: ...

    @abstractmethod
    def conjugate(self, v: ArrayLike) -> Array:
        """``max over z of -v z - loss(z)``: the conjugate at ``-v``; infinite outside its domain."""

    def dual(self, v: ArrayLike, target: ArrayLike = 0.0) -> Array:
        """What a row with dual weight ``v`` adds to the lower bound; ``target``: t, for the residual."""
        v = np.asarray(v, dtype=np.float64)
        return v * np.asarray(target, dtype=np.float64) - self.conjugate(v)

    @abstractmethod
    def probability(self, f: ArrayLike) -> Array:
        """Probability of the positive class at score ``f``."""

    @abstractmethod
    def best_constant(self, mean: float) -> float:
        """The score with the least mean loss where the weighted mean of the targets is ``mean``.

        Of two classes the targets are 0 and 1: ``mean`` is the share of the weight that is positive.
        """


class Exponential(Loss):
    """``exp(-F)``, the loss of AdaBoost."""

    name = "exponential"
    code = 0

    def rows(self, F: ArrayLike) -> Array:
        return np.exp(-np.asarray(F, dtype=np.float64))

    def derivative(self, F: ArrayLike) -> Array:
        return -self.rows(F)

    def curvature(self, F: ArrayLike) -> Array:
        return self.rows(F)

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        return np.where(v < 0, np.inf, xlogy(v, np.maximum(v, 0)) - v)

    def probability(self, f: ArrayLike) -> Array:
        return expit(2.0 * np.asarray(f, dtype=np.float64))

    def best_constant(self, mean: float) -> float:
        return 0.5 * float(logit(mean))


class Logistic(Loss):
    """``ln(1 + exp(-F))``."""

    name = "logistic"
    code = 1

    def rows(self, F: ArrayLike) -> Array:
        return np.logaddexp(0.0, -np.asarray(F, dtype=np.float64))

    def derivative(self, F: ArrayLike) -> Array:
        return -expit(-np.asarray(F, dtype=np.float64))

    def curvature(self, F: ArrayLike) -> Array:
        F = np.asarray(F, dtype=np.float64)
        return expit(F) * expit(-F)

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        inside = (v >= 0) & (v <= 1)
        clipped = np.clip(v, 0.0, 1.0)
        return np.where(inside, xlogy(clipped, clipped) + xlogy(1 - clipped, 1 - clipped), np.inf)

    def probability(self, f: ArrayLike) -> Array:
        return expit(np.asarray(f, dtype=np.float64))

    def best_constant(self, mean: float) -> float:
        return float(logit(mean))


class SquaredLoss(Loss):
    """``F^2 / 2`` of the residual; the loss of regression."""

    name = "squared"
    code = 2
    quadratic = True

    def rows(self, F: ArrayLike) -> Array:
        F = np.asarray(F, dtype=np.float64)
        return 0.5 * F * F

    def derivative(self, F: ArrayLike) -> Array:
        return np.array(F, dtype=np.float64)

    def curvature(self, F: ArrayLike) -> Array:
        return np.ones_like(np.asarray(F, dtype=np.float64))

    def conjugate(self, v: ArrayLike) -> Array:
        return self.rows(v)

    def probability(self, f: ArrayLike) -> Array:
        raise ValueError("The squared loss predicts numbers: there are no classes to have probabilities.")

    def best_constant(self, mean: float) -> float:
        return mean


LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Exponential(), Logistic())}
SQUARED = SquaredLoss()


def get_loss(name: str | Loss) -> Loss:
    """The loss of that name for two classes; a clear error otherwise."""
    if isinstance(name, Loss):
        return name
    if not isinstance(name, str) or name not in LOSSES:
        accepted = ", ".join(repr(known) for known in sorted(LOSSES))
        raise ValueError(f"loss must be one of {accepted}; got {name!r}.")
    return LOSSES[name]

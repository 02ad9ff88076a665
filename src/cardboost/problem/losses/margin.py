"""Losses of the margin, for classification: convex upper bounds of the number of errors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, xlogy

from cardboost.problem.losses.base import Array, Loss


class Exponential(Loss):
    """``exp(-F)``, the loss of AdaBoost; conjugate ``v ln v - v`` for ``v >= 0``."""

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
    """``ln(1 + exp(-F))``; conjugate ``v ln v + (1 - v) ln(1 - v)`` for ``0 <= v <= 1``."""

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


class SquaredHinge(Loss):
    """``max(0, 1 - F)^2``: no loss beyond the margin 1; conjugate ``v^2 / 4 - v`` for ``v >= 0``."""

    name = "squared_hinge"
    code = 3
    most_curvature = 2.0

    def rows(self, F: ArrayLike) -> Array:
        return np.square(_shortfall(F))

    def derivative(self, F: ArrayLike) -> Array:
        return -2.0 * _shortfall(F)

    def curvature(self, F: ArrayLike) -> Array:
        return np.where(np.asarray(F, dtype=np.float64) < 1.0, 2.0, 0.0)

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        return np.where(v < 0, np.inf, v * (0.25 * v - 1.0))

    def probability(self, f: ArrayLike) -> Array:
        """``(1 + f) / 2``: where the probability is p, the score of least expected loss is 2 p - 1."""
        return np.clip(0.5 + 0.5 * np.asarray(f, dtype=np.float64), 0.0, 1.0)

    def best_constant(self, mean: float) -> float:
        return 2.0 * mean - 1.0


class Hinge(Loss):
    """``max(0, 1 - F)``, the loss of support vector machines; conjugate ``-v`` for ``0 <= v <= 1``.

    It has no probabilities and no curvature.
    """

    name = "hinge"
    kinks = (1.0,)
    piecewise_linear = True

    def rows(self, F: ArrayLike) -> Array:
        return _shortfall(F)

    def derivative(self, F: ArrayLike) -> Array:
        """-1 below the margin 1, 0 above, and -1/2 at 1: edges then rank columns of signs correctly."""
        return 0.5 * np.sign(np.asarray(F, dtype=np.float64) - 1.0) - 0.5

    def curvature(self, F: ArrayLike) -> Array:
        return np.zeros_like(np.asarray(F, dtype=np.float64))

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        return np.where((v >= 0) & (v <= 1), -v, np.inf)

    def best_constant(self, mean: float) -> float:
        return math.copysign(1.0, mean - 0.5) if mean != 0.5 else 0.0


class SmoothHinge(Loss):
    """The hinge with its corner rounded off by a parabola over the last quarter before the margin 1.

    With ``x = max(0, 1 - F)`` it is ``2 x^2`` for ``x <= 1/4`` and ``x - 1/8`` beyond; the conjugate is
    ``v^2 / 8 - v`` for ``0 <= v <= 1``. It is nowhere above the hinge and nowhere more than 1/8 below it, so
    that a lower bound for it is one for the hinge too. Solvers that need curvature use it for the hinge.
    """

    name = "smooth_hinge"
    code = 4
    corner = 1.0 / 4.0
    most_curvature = 4.0

    def rows(self, F: ArrayLike) -> Array:
        shortfall = _shortfall(F)
        steep = np.minimum(1.0, shortfall / self.corner)
        return steep * (shortfall - 0.5 * self.corner * steep)

    def derivative(self, F: ArrayLike) -> Array:
        return -np.minimum(1.0, _shortfall(F) / self.corner)

    def curvature(self, F: ArrayLike) -> Array:
        shortfall = _shortfall(F)
        return np.where((shortfall > 0.0) & (shortfall < self.corner), 1.0 / self.corner, 0.0)

    def bend(self, F: ArrayLike) -> Array:
        """Curvature of the parabola above the loss that touches it at F and has its minimum at 1."""
        shortfall = _shortfall(F)
        return np.divide(-self.derivative(F), shortfall, out=np.zeros_like(shortfall), where=shortfall > 0.0)

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        return np.where((v >= 0) & (v <= 1), v * (0.5 * self.corner * v - 1.0), np.inf)

    def best_constant(self, mean: float) -> float:
        if mean == 0.5:
            return 0.0
        few, many = sorted((mean, 1.0 - mean))
        return math.copysign(1.0 - self.corner * few / many, mean - 0.5)


def _shortfall(F: ArrayLike) -> Array:
    """``max(0, 1 - F)``: by how much margins fall short of 1."""
    return np.maximum(0.0, 1.0 - np.asarray(F, dtype=np.float64))

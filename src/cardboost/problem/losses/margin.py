"""Losses of the margin, for two classes: convex stand-ins for the number of errors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, xlogy

from cardboost.problem.losses.base import Array, Loss


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


class SquaredHinge(Loss):
    """``max(0, 1 - F)^2``: no loss beyond the margin 1, and a smooth way there."""

    name = "squared_hinge"
    code = 3
    most_curvature = 2.0

    def rows(self, F: ArrayLike) -> Array:
        return np.square(_short(F))

    def derivative(self, F: ArrayLike) -> Array:
        return -2.0 * _short(F)

    def curvature(self, F: ArrayLike) -> Array:
        return np.where(np.asarray(F, dtype=np.float64) < 1.0, 2.0, 0.0)

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        return np.where(v < 0, np.inf, v * (0.25 * v - 1.0))

    def probability(self, f: ArrayLike) -> Array:
        """A score of 2 p - 1 has the least expected loss where the probability is p."""
        return np.clip(0.5 + 0.5 * np.asarray(f, dtype=np.float64), 0.0, 1.0)

    def best_constant(self, mean: float) -> float:
        return 2.0 * mean - 1.0


class Hinge(Loss):
    """``max(0, 1 - F)``, the loss of support vector machines. It has no probabilities and no curvature."""

    name = "hinge"
    kinks = (1.0,)
    piecewise_linear = True

    def rows(self, F: ArrayLike) -> Array:
        return _short(F)

    def derivative(self, F: ArrayLike) -> Array:
        """At the kink the middle of both slopes: edges then rank columns of signs by their true slopes."""
        return 0.5 * np.sign(np.asarray(F, dtype=np.float64) - 1.0) - 0.5

    def curvature(self, F: ArrayLike) -> Array:
        return np.zeros_like(np.asarray(F, dtype=np.float64))

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        return np.where((v >= 0) & (v <= 1), -v, np.inf)

    def best_constant(self, mean: float) -> float:
        return math.copysign(1.0, mean - 0.5) if mean != 0.5 else 0.0


class SmoothHinge(Loss):
    """The hinge with its corner rounded off over the last quarter before the margin 1.

    It is nowhere above the hinge and nowhere more than 1/8 below it, so that a lower bound for it is one for
    the hinge too. Solvers of all weights at once need curvature, and take it for the hinge.
    """

    name = "smooth_hinge"
    code = 4
    corner = 1.0 / 4.0
    most_curvature = 4.0

    def rows(self, F: ArrayLike) -> Array:
        short = _short(F)
        steep = np.minimum(1.0, short / self.corner)
        return steep * (short - 0.5 * self.corner * steep)

    def derivative(self, F: ArrayLike) -> Array:
        return -np.minimum(1.0, _short(F) / self.corner)

    def curvature(self, F: ArrayLike) -> Array:
        short = _short(F)
        return np.where((short > 0.0) & (short < self.corner), 1.0 / self.corner, 0.0)

    def bend(self, F: ArrayLike) -> Array:
        """Of the parabola that touches the loss at F and has its minimum at 1, nowhere below the loss."""
        short = _short(F)
        return np.divide(-self.derivative(F), short, out=np.zeros_like(short), where=short > 0.0)

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        return np.where((v >= 0) & (v <= 1), v * (0.5 * self.corner * v - 1.0), np.inf)

    def best_constant(self, mean: float) -> float:
        if mean == 0.5:
            return 0.0
        few, many = sorted((mean, 1.0 - mean))
        return math.copysign(1.0 - self.corner * few / many, mean - 0.5)


def _short(F: ArrayLike) -> Array:
    """By how much margins fall short of 1."""
    return np.maximum(0.0, 1.0 - np.asarray(F, dtype=np.float64))

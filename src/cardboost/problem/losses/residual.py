"""Losses of the residual, prediction minus target, for regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cardboost.problem.losses.base import Array, Loss


class SquaredLoss(Loss):
    """Least squares: ``F^2 / 2`` of the residual ``F``, with the conjugate ``v^2 / 2``."""

    name = "squared"
    code = 2
    of_residual = True
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

    def best_constant(self, mean: float) -> float:
        return mean


class AbsoluteLoss(Loss):
    """Least absolute deviations: ``|F|`` of the residual ``F``, with the conjugate 0 for ``|v| <= 1``."""

    name = "absolute"
    of_residual = True
    kinks = (0.0,)
    piecewise_linear = True

    def rows(self, F: ArrayLike) -> Array:
        return np.abs(np.asarray(F, dtype=np.float64))

    def derivative(self, F: ArrayLike) -> Array:
        return np.sign(np.asarray(F, dtype=np.float64))

    def curvature(self, F: ArrayLike) -> Array:
        return np.zeros_like(np.asarray(F, dtype=np.float64))

    def conjugate(self, v: ArrayLike) -> Array:
        return np.where(np.abs(np.asarray(v, dtype=np.float64)) <= 1.0, 0.0, np.inf)

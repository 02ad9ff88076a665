"""The weights of networks in a sum: that of a new one by a line search, or those of all together.

F = b + sum_k gamma_k h_k(x), with outputs h_k (rows, m), one number gamma_k each and a constant b per output.
Nothing here raises the loss: what does not lower it is not done.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cardboost.problem.losses.vector import AbsoluteOutputs, VectorLoss, weighted_median

Array = NDArray[np.float64]

_FARTHEST = (
    16.0  # Newton steps of length 1 are what learners are fitted to; classes apart would pull for ever
)
_LINE_STEPS = 60
_SOLVE_STEPS = 50
_LITTLE = 1e-10  # share of the loss: a step that gains less is the last
_JITTER = 1e-11  # of every diagonal entry: nets that say the same would make a system singular
_SMALL = 1e-24  # of the largest diagonal entry: nets can differ in size by many powers of ten, not by any


def line_search(loss: VectorLoss, y: Array, s: Array, F: Array, h: Array) -> float:
    """The gamma with the least ``sum s L(y, F + gamma h)``; 0 where h is 0 everywhere.

    Of the squared and the absolute loss any, of others one between -16 and 16.
    """
    if not np.any(h):
        return 0.0
    if loss.quadratic:
        squares = float(s @ np.sum(h * h, axis=1))
        return -float(s @ np.sum(loss.gradient(y, F) * h, axis=1)) / squares if squares > 0.0 else 0.0
    if isinstance(loss, AbsoluteOutputs):
        return _median_step(y - F, s, h)

    def slope(gamma: float) -> tuple[float, float]:
        scores = F + gamma * h
        first = float(s @ np.sum(loss.gradient(y, scores) * h, axis=1))
        bend = float(s @ np.sum(loss.bend_times(y, scores, h[None])[0] * h, axis=1))
        return first, bend

    first, bend = slope(0.0)
    if first == 0.0 or not np.isfinite(first):
        return 0.0
    toward = -np.sign(first)
    low, high = 0.0, abs(first) / bend if bend > 0.0 else 1.0
    high = min(max(high, 1e-12), _FARTHEST)
    end_slope, bend = slope(toward * high)
    while end_slope * toward < 0.0 and high < _FARTHEST:
        low, high = high, min(2.0 * high, _FARTHEST)
        end_slope, bend = slope(toward * high)
    if end_slope * toward < 0.0:
        low = high
    gamma = high
    for _ in range(_LINE_STEPS):
        if abs(end_slope) <= 1e-13 * abs(first) or high - low <= 4e-16 * high:
            break
        inside = gamma - end_slope * toward / bend if bend > 0.0 else np.nan
        gamma = inside if low < inside < high else 0.5 * (low + high)
        end_slope, bend = slope(toward * gamma)
        low, high = (gamma, high) if end_slope * toward < 0.0 else (low, gamma)
    gamma *= toward
    return float(gamma) if loss.value(y, F + gamma * h, s) <= loss.value(y, F, s) else 0.0


def _median_step(residual: Array, s: Array, h: Array) -> float:
    """The weighted median of residual / h: where the slope of the sum of absolute values changes its sign."""
    weight = np.abs(h) * s[:, None]
    used = weight > 0.0
    return weighted_median(residual[used] / h[used], weight[used]) if used.any() else 0.0


class AllGammas:
    """Every gamma and the constants, solved for together whenever a net has come.

    Keeps the outputs of all nets, and for the squared loss their products.
    """

    def __init__(self, loss: VectorLoss, y: Array, s: Array, most: int) -> None:
        self.loss, self.y, self.s, self.m = loss, y, s, y.shape[1]
        self._outputs = np.empty((self.m + most, *y.shape))
        for o in range(self.m):  # the constants come first
            self._outputs[o] = 0.0
            self._outputs[o, :, o] = 1.0
        self._count = self.m
        self._gram = np.empty((self.m + most, self.m + most))
        self._right = np.empty(self.m + most)
        if loss.quadratic:
            for k in range(self.m):
                self._extend(k)

    def _extend(self, k: int) -> None:
        weighted = (self.s[:, None] * self._outputs[k]).ravel()
        products = self._outputs[: k + 1].reshape(k + 1, -1) @ weighted
        self._gram[k, : k + 1] = self._gram[: k + 1, k] = products
        self._right[k] = self.y.ravel() @ weighted

    def add(self, h: Array) -> None:
        self._outputs[self._count] = h
        if self.loss.quadratic:
            self._extend(self._count)
        self._count += 1

    def scores(self, weights: Array) -> Array:
        """``weights``: the constants, then the gammas."""
        return np.asarray(np.tensordot(weights, self._outputs[: self._count], axes=1))

    def solve(self, weights: Array, steps: int = _SOLVE_STEPS) -> Array:
        """The best weights, from these on; after so many steps, the best so far."""
        value = self.loss.value(self.y, self.scores(weights), self.s)
        for _ in range(1 if self.loss.quadratic else steps):
            improved = self._step(weights, value)
            if improved is None:
                break
            before, (weights, value) = value, improved
            if before - value <= _LITTLE * abs(before):
                break
        return weights

    def _step(self, weights: Array, value: float) -> tuple[Array, float] | None:
        outputs, k = self._outputs[: self._count], self._count
        F = self.scores(weights)
        if self.loss.quadratic:
            bend = self._gram[:k, :k]
            slope = bend @ weights - self._right[:k]
        else:
            flat = outputs.reshape(k, -1)
            slope = flat @ (self.s[:, None] * self.loss.gradient(self.y, F)).ravel()
            bent = self.s[:, None] * self.loss.bend_times(self.y, F, outputs)
            bend = flat @ bent.reshape(k, -1).T
        if not bend.trace() > np.finfo(float).tiny:
            return None
        size = np.sqrt(np.maximum(bend.diagonal(), _SMALL * bend.diagonal().max()))
        bend, slope = bend / size / size[:, None], slope / size
        try:
            step = -cho_solve(cho_factor(bend + _JITTER * np.eye(k)), slope) / size
        except (LinAlgError, ValueError):
            step = -np.asarray(np.linalg.lstsq(bend, slope, rcond=1e-10)[0], dtype=np.float64) / size
        length = 1.0
        while length > 1e-6:
            new = weights + length * step
            improved = self.loss.value(self.y, self.scores(new), self.s)
            if improved < value:
                return new, improved
            length *= 0.5
        return None

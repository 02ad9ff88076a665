"""Losses of several outputs at once: L(y, f) with y and f of m numbers each, for boosted networks.

Each has its value, gradient and m x m Hessian per row, and what a weak learner is fitted to: the Newton step
-(Hessian)^-1 gradient of every row as the target, by the pseudo-inverse where the Hessian is singular (that
of the cross-entropy always is: adding a constant to all scores changes nothing), with the curvature as the
weight of the row. Where curvature can vanish, targets are clipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_RANK = 1e-10  # of the largest eigenvalue: below it there is no curvature
_NEWTON_STEPS = 100


class VectorLoss(ABC):
    """A convex function of the outputs. One's own is a subclass with a name and the three formulas.

    ``y`` and ``f`` are (rows, m). :func:`cardboost.testing.check_vector_loss` holds it to what training
    relies on.
    """

    name: ClassVar[str]
    #: one step is exact
    quadratic: ClassVar[bool] = False
    #: no entry of a target is larger
    most_target: ClassVar[float] = np.inf

    @abstractmethod
    def rows(self, y: Array, f: Array) -> Array:
        """The loss of every row: (rows,)."""

    @abstractmethod
    def gradient(self, y: Array, f: Array) -> Array:
        """By f: (rows, m)."""

    @abstractmethod
    def hessian(self, y: Array, f: Array) -> Array:
        """By f: (rows, m, m)."""

    def value(self, y: Array, f: Array, s: Array) -> float:
        """The sum weighted by ``s``."""
        return float(s @ self.rows(y, f))

    def bend_times(self, y: Array, f: Array, columns: Array) -> Array:
        """For columns (k, rows, m): the matrix of curvature that steps go by, times each."""
        return np.einsum("iop,kip->kio", self.hessian(y, f), columns)

    def targets(self, y: Array, f: Array) -> tuple[Array, Array]:
        """What a weak learner is fitted to, (rows, m), and the weight of every entry."""
        values, vectors = np.linalg.eigh(self.hessian(y, f))
        values = np.maximum(values, 0.0)
        firm = values > _RANK * np.maximum(values[:, -1:], np.finfo(float).tiny)
        along = np.einsum("ipo,ip->io", vectors, -self.gradient(y, f))
        along = np.where(firm, along / np.where(firm, values, 1.0), 0.0)
        target = np.einsum("ipo,io->ip", vectors, along)
        weight = np.einsum("ipo,io->ip", vectors**2, values)  # the diagonal
        return np.clip(target, -self.most_target, self.most_target), weight

    def start(self, y: Array, s: Array) -> Array:
        """The constant outputs to begin with: (m,). Newton steps from 0, shortened until the loss falls."""
        b = np.zeros(y.shape[1])
        ones = np.ones((len(y), 1))
        value = self.value(y, ones * b, s)
        for _ in range(_NEWTON_STEPS):
            slope = s @ self.gradient(y, ones * b)
            bend = np.einsum("i,iop->op", s, self.hessian(y, ones * b))
            step = -np.linalg.pinv(bend, rcond=_RANK, hermitian=True) @ slope
            length = 1.0
            while length > 1e-8 and not self.value(y, ones * (b + length * step), s) < value:
                length *= 0.5
            if length <= 1e-8:
                break
            b = b + length * step
            value = self.value(y, ones * b, s)
        return b


class SquaredOutputs(VectorLoss):
    """``|f - y|^2 / 2``: the target is the residual."""

    name = "squared"
    quadratic = True

    def rows(self, y: Array, f: Array) -> Array:
        return np.asarray(0.5 * np.sum((f - y) ** 2, axis=1))

    def gradient(self, y: Array, f: Array) -> Array:
        return f - y

    def hessian(self, y: Array, f: Array) -> Array:
        return np.broadcast_to(np.eye(y.shape[1]), (len(y), y.shape[1], y.shape[1]))

    def bend_times(self, y: Array, f: Array, columns: Array) -> Array:
        return columns

    def targets(self, y: Array, f: Array) -> tuple[Array, Array]:
        return y - f, np.ones((len(y), 1))

    def start(self, y: Array, s: Array) -> Array:
        return np.asarray(s @ y)


class CrossEntropy(VectorLoss):
    """``log sum exp f - y f`` for y of one 1 and zeros: several classes."""

    name = "cross_entropy"
    most_target = 4.0

    def probabilities(self, f: Array) -> Array:
        e = np.exp(f - f.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))

    def rows(self, y: Array, f: Array) -> Array:
        top = f.max(axis=1)
        return np.asarray(top + np.log(np.exp(f - top[:, None]).sum(axis=1)) - np.sum(y * f, axis=1))

    def gradient(self, y: Array, f: Array) -> Array:
        return self.probabilities(f) - y

    def hessian(self, y: Array, f: Array) -> Array:
        p = self.probabilities(f)
        return np.asarray(p[:, :, None] * (np.eye(y.shape[1]) - p[:, None, :]))

    def bend_times(self, y: Array, f: Array, columns: Array) -> Array:
        p = self.probabilities(f)
        return np.asarray(p * (columns - np.sum(p * columns, axis=2, keepdims=True)))

    def targets(self, y: Array, f: Array) -> tuple[Array, Array]:
        """``(y - p) / p`` less its mean: the pseudo-inverse of ``diag p - p p'`` in closed form."""
        p = np.maximum(self.probabilities(f), 1e-12)
        target = (y - p) / p
        target -= target.mean(axis=1, keepdims=True)
        return np.clip(target, -self.most_target, self.most_target), p * (1.0 - p)

    def start(self, y: Array, s: Array) -> Array:
        share = np.log(np.maximum(s @ y, 1e-12))
        return np.asarray(share - share.mean())


class LogisticOutputs(VectorLoss):
    """``log(1 + exp(-y f))`` for y of -1 and 1, added up over the outputs: two classes."""

    name = "logistic"
    most_target = 4.0

    def rows(self, y: Array, f: Array) -> Array:
        return np.asarray(np.logaddexp(0.0, -y * f).sum(axis=1))

    def _wrong(self, y: Array, f: Array) -> Array:
        """q = 1 / (1 + exp(y f))."""
        return np.asarray(0.5 * (1.0 - np.tanh(0.5 * y * f)))

    def gradient(self, y: Array, f: Array) -> Array:
        return -y * self._wrong(y, f)

    def curvature(self, y: Array, f: Array) -> Array:
        q = self._wrong(y, f)
        return q * (1.0 - q)

    def hessian(self, y: Array, f: Array) -> Array:
        return _diagonal(self.curvature(y, f))

    def bend_times(self, y: Array, f: Array, columns: Array) -> Array:
        return self.curvature(y, f) * columns

    def targets(self, y: Array, f: Array) -> tuple[Array, Array]:
        """``y / (1 - q)``, clipped."""
        q = self._wrong(y, f)
        target = y * np.minimum(1.0 / np.maximum(1.0 - q, 1e-12), self.most_target)
        return target, np.maximum(q * (1.0 - q), 1e-12)

    def start(self, y: Array, s: Array) -> Array:
        up = np.clip(s @ (0.5 * (y + 1.0)), 1e-12, 1.0 - 1e-12)
        return np.asarray(np.log(up / (1.0 - up)))


class HuberOutputs(VectorLoss):
    """Half the square of residuals up to ``delta``, straight beyond it.

    Beyond there is no curvature: steps go by the parabola above that touches the loss at f and -f, whose
    target is the residual and whose curvature is delta / |residual|.
    """

    name = "huber"

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def rows(self, y: Array, f: Array) -> Array:
        size = np.abs(f - y)
        short = np.minimum(size, self.delta)
        return np.asarray(np.sum(short * (size - 0.5 * short), axis=1))

    def gradient(self, y: Array, f: Array) -> Array:
        return np.clip(f - y, -self.delta, self.delta)

    def hessian(self, y: Array, f: Array) -> Array:
        return _diagonal((np.abs(f - y) <= self.delta).astype(np.float64))

    def _bend(self, y: Array, f: Array) -> Array:
        return np.asarray(self.delta / np.maximum(np.abs(f - y), self.delta))

    def bend_times(self, y: Array, f: Array, columns: Array) -> Array:
        return self._bend(y, f) * columns

    def targets(self, y: Array, f: Array) -> tuple[Array, Array]:
        return y - f, self._bend(y, f)

    def start(self, y: Array, s: Array) -> Array:
        return np.array([weighted_median(own, s) for own in y.T])


class AbsoluteOutputs(VectorLoss):
    """``|f - y|``, added up over the outputs. It has no Newton step: the target is the sign of the
    residual."""

    name = "absolute"

    def rows(self, y: Array, f: Array) -> Array:
        return np.asarray(np.abs(f - y).sum(axis=1))

    def gradient(self, y: Array, f: Array) -> Array:
        return np.sign(f - y)

    def hessian(self, y: Array, f: Array) -> Array:
        return np.zeros((len(y), y.shape[1], y.shape[1]))

    def bend_times(self, y: Array, f: Array, columns: Array) -> Array:
        """By the parabola above that touches at f and -f, no steeper than that at a hundredth of the mean."""
        size = np.abs(f - y)
        return columns / np.maximum(size, max(0.01 * float(size.mean()), 1e-300))

    def targets(self, y: Array, f: Array) -> tuple[Array, Array]:
        return np.sign(y - f), np.ones((len(y), 1))

    def start(self, y: Array, s: Array) -> Array:
        return np.array([weighted_median(own, s) for own in y.T])


def weighted_median(values: Array, weight: Array) -> float:
    """The value at which half the weight is reached; between two that both do, their middle."""
    order = np.argsort(values, kind="stable")
    ordered, below = values[order], np.cumsum(weight[order])
    half = 0.5 * below[-1]
    first = int(np.searchsorted(below, half * (1.0 - 1e-12)))
    last = int(np.searchsorted(below, half * (1.0 + 1e-12), side="right"))
    last = min(max(last, first), len(ordered) - 1)
    return 0.5 * float(ordered[first] + ordered[last])


def _diagonal(entries: Array) -> Array:
    rows, m = entries.shape
    out = np.zeros((rows, m, m))
    out[:, np.arange(m), np.arange(m)] = entries
    return out

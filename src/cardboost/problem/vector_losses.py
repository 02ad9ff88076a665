"""Losses of m outputs per row, L(y, f), for boosted networks (docs/neural.md).

A weak learner is fitted to the Newton step ``-Hessian^-1 gradient`` of every row, with the curvature as the
weight of the row. Where the Hessian is singular its pseudo-inverse is used; that of the cross-entropy always
is, since adding a constant to all scores changes nothing. Where curvature can vanish, targets are clipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_RANK = 1e-10  # eigenvalues below this share of the largest one count as zero
_NEWTON_STEPS = 100  # at most, for the best constant outputs


class VectorLoss(ABC):
    """A convex function of the m outputs of a row.

    To write a loss, subclass this with a ``name`` and the methods ``rows``, ``gradient`` and ``hessian``;
    :func:`cardboost.testing.check_vector_loss` verifies them. Targets ``y`` and outputs ``f`` have the shape
    (rows, m).

    Attributes
    ----------
    name : str
        How estimators and model files refer to it.
    quadratic : bool
        Whether one Newton step is exact.
    most_target : float
        Entries of Newton targets are clipped to this size.
    """

    name: ClassVar[str]
    quadratic: ClassVar[bool] = False
    most_target: ClassVar[float] = np.inf

    @abstractmethod
    def rows(self, y: Array, f: Array) -> Array:
        """Loss of every row, of shape (rows,)."""

    @abstractmethod
    def gradient(self, y: Array, f: Array) -> Array:
        """Derivatives with respect to f, of shape (rows, m)."""

    @abstractmethod
    def hessian(self, y: Array, f: Array) -> Array:
        """Second derivatives with respect to f, of shape (rows, m, m)."""

    def value(self, y: Array, f: Array, s: Array) -> float:
        """Sum of the rows weighted by ``s``."""
        return float(s @ self.rows(y, f))

    def bend_times(self, y: Array, f: Array, columns: Array) -> Array:
        """Curvature matrix of every row times each of the columns (k, rows, m)."""
        return np.einsum("iop,kip->kio", self.hessian(y, f), columns)

    def targets(self, y: Array, f: Array) -> tuple[Array, Array]:
        """Newton target of every row, (rows, m), and the weight of every entry."""
        values, vectors = np.linalg.eigh(self.hessian(y, f))
        values = np.maximum(values, 0.0)
        firm = values > _RANK * np.maximum(values[:, -1:], np.finfo(float).tiny)
        along = np.einsum("ipo,ip->io", vectors, -self.gradient(y, f))
        along = np.where(firm, along / np.where(firm, values, 1.0), 0.0)
        target = np.einsum("ipo,io->ip", vectors, along)
        weight = np.einsum("ipo,io->ip", vectors**2, values)  # the diagonal
        return np.clip(target, -self.most_target, self.most_target), weight

    def start(self, y: Array, s: Array) -> Array:
        """Best constant outputs, (m,), by Newton steps from 0 that are halved until the loss falls."""
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
    """``|f - y|^2 / 2``, whose Newton target is the residual ``y - f``."""

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
    """``log sum_o exp f_o - y f`` for y with a single 1 and zeros, for several classes."""

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
        """``(y - p) / p`` minus its mean: the pseudo-inverse of ``diag p - p p'`` in closed form."""
        p = np.maximum(self.probabilities(f), 1e-12)
        target = (y - p) / p
        target -= target.mean(axis=1, keepdims=True)
        return np.clip(target, -self.most_target, self.most_target), p * (1.0 - p)

    def start(self, y: Array, s: Array) -> Array:
        share = np.log(np.maximum(s @ y, 1e-12))
        return np.asarray(share - share.mean())


class LogisticOutputs(VectorLoss):
    """``sum_o log(1 + exp(-y_o f_o))`` for y of -1 and 1, for two classes."""

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
    """``r^2 / 2`` of residuals r up to ``delta`` in size, ``delta (|r| - delta / 2)`` beyond.

    Beyond ``delta`` there is no curvature. Steps use the parabola above the loss that touches it at r and -r:
    its target is the residual, and its curvature is ``delta / |r|``.
    """

    name = "huber"

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def rows(self, y: Array, f: Array) -> Array:
        size = np.abs(f - y)
        inner = np.minimum(size, self.delta)
        return np.asarray(np.sum(inner * (size - 0.5 * inner), axis=1))

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
        return np.array([weighted_median(output, s) for output in y.T])


class AbsoluteOutputs(VectorLoss):
    """``sum_o |f_o - y_o|``. It has no Newton step: the target is the sign of the residual."""

    name = "absolute"

    def rows(self, y: Array, f: Array) -> Array:
        return np.asarray(np.abs(f - y).sum(axis=1))

    def gradient(self, y: Array, f: Array) -> Array:
        return np.sign(f - y)

    def hessian(self, y: Array, f: Array) -> Array:
        return np.zeros((len(y), y.shape[1], y.shape[1]))

    def bend_times(self, y: Array, f: Array, columns: Array) -> Array:
        """Of the parabola that touches the loss, as if no residual were below a hundredth of the mean."""
        size = np.abs(f - y)
        return columns / np.maximum(size, max(0.01 * float(size.mean()), 1e-300))

    def targets(self, y: Array, f: Array) -> tuple[Array, Array]:
        return np.sign(y - f), np.ones((len(y), 1))

    def start(self, y: Array, s: Array) -> Array:
        return np.array([weighted_median(output, s) for output in y.T])


def weighted_median(values: Array, weight: Array) -> float:
    """Value at which half the weight is reached; where two values do, their middle."""
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

"""A network with one hidden layer as a weak learner: its weights, and how they are fitted to targets.

A net computes ``act(z W + b) V + c`` of standardised inputs z. :func:`fit_net` minimises

    1/2 sum_io q_io (t_io - net_o(z_i))^2 / sum_io q_io t_io^2  +  l2/2 (|W|^2 + |V|^2),

q the weights of rows and outputs. For a given first layer the last one is a linear problem, so it is solved
exactly wherever the objective is looked at, and what is left is a function of the first layer alone
(variable projection). Its steps are L-BFGS steps, shaped by a Gauss-Newton matrix: slopes come from all rows,
that matrix from a sample which is large enough for the number of weights. A step costs about one pass over
the rows (kernels/nets.cpp).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv, dpotrf, dpotrs

from cardboost import _kernels
from cardboost.model.fitted_learner import ACTIVATIONS, activated

Array = NDArray[np.float64]

BLOCK = 64  # rows that stand side by side in a block of the kernels
_MOST_SHAPED = 600  # weights of the first layer up to which a Gauss-Newton matrix is worth its cost
_SAMPLE = 2  # sampled rows per weight for that matrix
_RESHAPED = (0, 8, 24, 72)  # steps after which it is made anew
_DAMPING = 5.0  # of that matrix, in means of its diagonal
_MEMORY = 8  # pairs that the steps remember
_STARTS = 6  # first layers that are tried before one is trained
_PATIENCE = 3  # steps of little gain after which a net is done
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class NetWeights:
    """``act(z hidden + bias) out + offset``: (n, h), (h,), (h, m) and (m,)."""

    hidden: Array
    bias: Array
    out: Array
    offset: Array

    def outputs(self, Z: Array, activation: str) -> Array:
        """(rows, outputs)."""
        return np.asarray(activated(Z @ self.hidden + self.bias, activation) @ self.out + self.offset)


@dataclass(frozen=True)
class NetSettings:
    """``tol``: the share of the objective below which the gain of a step counts as little."""

    hidden: int = 8
    activation: str = "tanh"
    l2: float = 1e-4
    max_iter: int = 200
    tol: float = 5e-4
    threads: int = 1


@dataclass(frozen=True, eq=False)
class FittedNet:
    """The weights, and the objective relative to that of no net at all."""

    weights: NetWeights
    objective: float


class DivergedError(ArithmeticError):
    """Numbers in a net are no longer finite."""


def _slope(A: Array, activation: str) -> Array:
    """The derivative of the activation where its value is ``A``."""
    if activation == "tanh":
        return np.asarray(1.0 - A * A)
    return (A > 0.0).astype(np.float64) if activation == "relu" else np.asarray(A * (1.0 - A))


def in_blocks(table: Array, padding: float = 0.0) -> Array:
    """(rows, columns) as the kernels read it: (blocks, columns, 64), filled up."""
    rows, columns = table.shape
    blocks = -(-rows // BLOCK)
    padded = np.full((blocks * BLOCK, columns), padding)
    padded[:rows] = table
    return np.ascontiguousarray(padded.reshape(blocks, BLOCK, columns).transpose(0, 2, 1))


@dataclass(frozen=True, eq=False)
class NetInputs:
    """Standardised inputs with a last column of ones, by rows and in blocks."""

    Z1: Array
    blocks: Array

    @classmethod
    def of(cls, Z: Array) -> NetInputs:
        Z1 = np.column_stack([Z, np.ones(len(Z))])
        return cls(Z1, in_blocks(Z1))


def fit_net(
    inputs: NetInputs, target: Array, weight: Array, settings: NetSettings, rng: np.random.Generator
) -> FittedNet:
    """``target`` (rows, outputs); ``weight`` of rows (rows, 1), or of rows and outputs (rows, outputs)."""
    n, h, m = inputs.Z1.shape[1] - 1, settings.hidden, target.shape[1]
    total = float(np.sum(weight * target * target))
    if total == 0.0:
        nothing = NetWeights(np.zeros((n, h)), np.zeros(h), np.zeros((h, m)), np.zeros(m))
        return FittedNet(nothing, 0.0)
    scale = float(np.sqrt(total / (np.sum(weight) * (m if weight.shape[1] == 1 else 1))))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        problem = _Problem(inputs, target / scale, weight * (scale * scale / total), settings)
        W, V, value = _descend(problem, _best_start(problem, rng), rng)
    if not (np.isfinite(W).all() and np.isfinite(V).all() and np.isfinite(value)):
        raise DivergedError("the weights of a net are not finite")
    weights = NetWeights(W[:n].copy(), W[n].copy(), V[:h] * scale, V[h] * scale)
    return FittedNet(weights, 2.0 * value)


class _Problem:
    """The objective of the first layer, the last one always at its best."""

    def __init__(self, inputs: NetInputs, T: Array, Q: Array, settings: NetSettings) -> None:
        self.inputs, self.T, self.Q, self.settings = inputs, T, Q, settings
        self.n, self.h, self.m = inputs.Z1.shape[1] - 1, settings.hidden, T.shape[1]
        self.shared = Q.shape[1] == 1
        self._code = ACTIVATIONS.index(settings.activation)
        self._t = in_blocks(T)
        self._q = in_blocks(np.broadcast_to(Q, T.shape) if self.shared else Q)
        self._a = np.empty((len(self._t), self.h + 1, BLOCK))
        self._ridge = np.full(self.h + 1, settings.l2)
        self._ridge[-1] = 0.0
        self._diagonal = np.diag_indices(self.h + 1)
        self.squares = float(np.sum(Q * T * T))

    def look(self, W: Array) -> tuple[float, Array]:
        """The objective, infinite where it cannot be computed, and the best last layer."""
        gram, right = _kernels.net_hidden(
            self.inputs.blocks, W, self._code, self._t, self._q, self.shared, self._a, self.settings.threads
        )
        V = np.empty_like(right)
        for k, system in enumerate(gram):
            system[self._diagonal] += self._ridge + (_TINY * (system.trace() / len(system)) + 1e-300)
            part = slice(None) if self.shared else slice(k, k + 1)
            _, V[:, part], failed = dposv(system, right[:, part], lower=1)
            if failed:
                return np.inf, V
        value = 0.5 * (self.squares - float(np.vdot(right, V))) + self._decay(W)
        return (value if np.isfinite(value) else np.inf), V

    def slopes(self, W: Array, V: Array) -> tuple[float, Array]:
        """The objective, not by a difference, and its gradient at the first layer that was looked at last."""
        loss, gradient, _ = _kernels.net_errors(
            self.inputs.blocks, self._a, self._code, self._t, self._q, V, self.settings.threads
        )
        gradient[: self.n] += self.settings.l2 * W[: self.n]
        last = 0.5 * float(self._ridge @ (V * V).sum(axis=1))
        return loss + last + self._decay(W), gradient

    def _decay(self, W: Array) -> float:
        return 0.5 * self.settings.l2 * float(np.vdot(W[: self.n], W[: self.n]))

    def shape(self, W: Array, V: Array, rng: np.random.Generator) -> Array | None:
        """The factor of a Gauss-Newton matrix of the first layer, what the last one can do taken out."""
        rows, size = len(self.T), W.size
        wanted = max(4 * BLOCK, _SAMPLE * size // self.m)
        if wanted < rows:
            picked = rng.integers(0, rows, wanted)
            Z1, Q = self.inputs.Z1[picked], self.Q[picked] * (rows / wanted)
        else:
            Z1, Q = self.inputs.Z1, self.Q
        A1 = np.ones((len(Z1), self.h + 1))
        A1[:, :-1] = activated(Z1 @ W, self.settings.activation)
        D = _slope(A1[:, :-1], self.settings.activation)
        total = np.zeros((size, size))
        for o in range(self.m):
            root = np.sqrt(Q[:, 0 if self.shared else o])[:, None]
            left = A1 * root
            J = (Z1[:, :, None] * (D * V[:-1, o] * root)[:, None, :]).reshape(len(Z1), size)
            gram = left.T @ left
            gram[np.diag_indices_from(gram)] += _TINY * gram.trace() + 1e-300
            J -= left @ dposv(gram, left.T @ J, lower=1)[1]
            total += J.T @ J
        total[np.diag_indices_from(total)] += _DAMPING * total.trace() / size + self.settings.l2 + 1e-300
        factor, failed = dpotrf(total, lower=1, overwrite_a=1)
        return None if failed else factor


def _best_start(problem: _Problem, rng: np.random.Generator) -> Array:
    """Of some random first layers, whose units bend within the data, the one with the best last layer."""
    best, least = None, np.inf
    for _ in range(_STARTS):
        W = rng.normal(size=(problem.n + 1, problem.h))
        length = np.sqrt((W[:-1] ** 2).sum(axis=0))
        W[:-1] *= 0.7 * problem.h ** (1.0 / problem.n) / np.maximum(length, _TINY)
        W[-1] = rng.uniform(-1.0, 1.0, size=problem.h)
        value, _ = problem.look(W)
        if best is None or value < least:
            best, least = W, value
    assert best is not None
    return best


def _descend(problem: _Problem, W: Array, rng: np.random.Generator) -> tuple[Array, Array, float]:
    """L-BFGS steps from ``W``: both layers and the objective."""
    settings = problem.settings
    _, V = problem.look(W)
    value, slope = problem.slopes(W, V)
    if not np.isfinite(value):
        raise DivergedError("the objective of a net is not finite")
    pairs, looks, idle, steps = _Pairs(), 0, 0, 0
    to_shape = list(_RESHAPED) if W.size <= _MOST_SHAPED else []
    while looks < settings.max_iter:
        if to_shape and steps >= to_shape[0]:
            del to_shape[0]
            pairs.shape = problem.shape(W, V, rng)
        direction = -pairs.times(slope)
        along = float(np.vdot(slope, direction))
        length, accepted = 1.0, None
        while along < 0.0 and looks < settings.max_iter and length > 1e-10:
            looks += 1
            new = W + length * direction
            trial, last = problem.look(new)
            if trial <= value + 1e-4 * length * along:
                accepted = new, last
                break
            curve = 2.0 * (trial - value - length * along)
            length *= min(0.5, max(0.1, -length * along / curve)) if np.isfinite(curve) and curve > 0 else 0.1
        if accepted is None:
            if not pairs.forget():
                break
            continue
        steps += 1
        after, new_slope = problem.slopes(*accepted)
        pairs.add(accepted[0] - W, new_slope - slope)
        gain = value - after
        W, V = accepted
        value, slope = after, new_slope
        idle = idle + 1 if gain < settings.tol * value else 0
        if idle >= _PATIENCE or value < _TINY:
            break
    return W, V, value


class _Pairs:
    """The inverse Hessian that steps and changes of slope speak of, and a shape to begin with."""

    def __init__(self) -> None:
        self.shape: Array | None = None
        self._pairs: list[tuple[Array, Array, float]] = []

    def add(self, step: Array, change: Array) -> None:
        s, y = step.ravel(), change.ravel()
        curve = float(s @ y)
        if curve > 1e-10 * float(np.sqrt((s @ s) * (y @ y))):
            self._pairs.append((s, y, curve))
            del self._pairs[:-_MEMORY]

    def forget(self) -> bool:
        """Go back to the plain slope; False if that is where we are."""
        remembered = bool(self._pairs) or self.shape is not None
        self._pairs, self.shape = [], None
        return remembered

    def times(self, slope: Array) -> Array:
        q = slope.ravel().copy()
        shares = []
        for s, y, curve in reversed(self._pairs):
            share = float(s @ q) / curve
            q -= share * y
            shares.append(share)
        q = self._begin(q)
        for (s, y, curve), share in zip(self._pairs, reversed(shares), strict=True):
            q += (share - float(y @ q) / curve) * s
        return q.reshape(slope.shape)

    def _begin(self, q: Array) -> Array:
        if self.shape is not None:
            shaped = dpotrs(self.shape, q, lower=1)[0]
            if self._pairs:
                _, y, curve = self._pairs[-1]
                shaped *= curve / float(y @ dpotrs(self.shape, y, lower=1)[0])
            return np.asarray(shaped)
        if self._pairs:
            _, y, curve = self._pairs[-1]
            return q * (curve / float(y @ y))
        return q * (0.1 / max(float(np.sqrt(q @ q)), _TINY))

"""What the paper on boosted networks claims of the squared loss, recomputed in NumPy alone.

From a fitted model come its networks (weights, biases, gammas), its constants, and the losses that it
reports; outputs, losses, gammas and least squares are computed here. With Y in columns of 0 and 1, the
constants b and the outputs h_k of the nets (rows, outputs), after k nets

    F_k = b + gamma_1 h_1 + ... + gamma_k h_k,    loss = mean of |Y - F_k|^2 / 2,
    gamma_k = sum of (Y - F_k-1)'h_k / sum of h_k'h_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SAME_GAMMA = 1e-12  # share of gamma: up to which it is the closed form
SAME_LOSS = 1e-8  # share of the loss: up to which two solutions of least squares are the same
ROUNDING = 1e-13  # share of the loss: a rise of less is none


@dataclass(frozen=True)
class Check:
    """What is claimed, what was measured, and whether it holds."""

    letter: str
    claim: str
    measured: str
    holds: bool
    numbers: dict[str, float]


@dataclass(frozen=True)
class Round:
    """After one more net: the loss as computed here and as the model reports it, the new net's gamma in the
    model and by its formula, and the least loss of any weights of the nets so far."""

    number: int
    loss: float
    reported: float
    gamma: float
    closed_form: float
    least: float


@dataclass(frozen=True)
class Replay:
    """A fit of squared loss, net by net; ``start`` is the loss without any."""

    start: float
    rounds: tuple[Round, ...]

    @property
    def losses(self) -> tuple[float, ...]:
        return (self.start, *(own.loss for own in self.rounds))


def net_outputs(ensemble: Any, X: Array) -> Array:
    """(nets, rows, outputs), from the numbers that a file of the model would hold; hidden units are tanh."""
    if ensemble.activation != "tanh":
        raise ValueError(f"the networks must be of tanh units; found {ensemble.activation!r}.")
    Z = (X - ensemble.mean) / ensemble.scale
    return np.array([np.tanh(Z @ own.hidden + own.bias) @ own.out + own.offset for own in ensemble.nets])


def class_columns(y: NDArray[Any]) -> Array:
    """One column of 0 and 1 for every class."""
    return np.asarray(y[:, None] == np.unique(y)).astype(np.float64)


def half_mean_square(residual: Array) -> float:
    return 0.5 * float(np.mean(np.sum(residual**2, axis=1)))


def least_loss(outputs: Array, Y: Array) -> float:
    """Of any constants and gammas for these nets: least squares by singular values."""
    rows, m = Y.shape
    ones = np.tile(np.eye(m), (rows, 1))
    nets = outputs.reshape(len(outputs), rows * m).T
    size = np.sqrt(np.sum(nets**2, axis=0))
    A = np.hstack([ones, nets / np.where(size > 0.0, size, 1.0)])
    weights = np.linalg.lstsq(A, Y.ravel(), rcond=None)[0]
    return half_mean_square(Y - (A @ weights).reshape(rows, m))


def replay(ensemble: Any, reported: Sequence[float], X: Array, Y: Array) -> Replay:
    """The way to a fitted model whose gammas stay as they were found (``refit="last"``)."""
    outputs = net_outputs(ensemble, X)
    residual = Y - ensemble.intercept
    start = half_mean_square(residual)
    rounds = []
    for k, (net, h) in enumerate(zip(ensemble.nets, outputs, strict=True), start=1):
        closed_form = float(np.sum(residual * h) / np.sum(h * h))
        residual = residual - net.gamma * h
        rounds.append(
            Round(
                k, half_mean_square(residual), float(reported[k - 1]), net.gamma, closed_form,
                least_loss(outputs[:k], Y),
            )
        )  # fmt: skip
    return Replay(start, tuple(rounds))


def refit_gaps(ensemble: Any, reported: Sequence[float], X: Array, Y: Array) -> tuple[float, ...]:
    """After every net of a fit with ``refit="all"``: its loss less the least of the same nets, as a share."""
    outputs = net_outputs(ensemble, X)
    least = [least_loss(outputs[:k], Y) for k in range(1, len(outputs) + 1)]
    return tuple((float(own) - best) / best for own, best in zip(reported, least, strict=True))


def check_decrease(fits: Sequence[Replay]) -> Check:
    """No net raises the loss, and the losses are those that the model reports."""
    losses = [own.losses for own in fits]
    rises = sum(after > before * (1.0 + ROUNDING) for way in losses for before, after in pairwise(way))
    off = max(abs(r.loss - r.reported) / r.loss for own in fits for r in own.rounds)
    nets = sum(len(own.rounds) for own in fits)
    return Check(
        "a", "squared loss with refit=\"last\": the loss never increases",
        f"{rises} of {nets} nets in {len(fits)} fits raise it; losses recomputed differ from the reported "
        f"ones by {off:.1g} of their size at most",
        rises == 0 and off <= SAME_LOSS,
        {"fits": len(fits), "nets": nets, "rises": rises, "difference": off},
    )  # fmt: skip


def check_gammas(fits: Sequence[Replay]) -> Check:
    off = max(abs(r.gamma - r.closed_form) / abs(r.closed_form) for own in fits for r in own.rounds)
    gammas = [r.gamma for own in fits for r in own.rounds]
    return Check(
        "b", "every gamma is the closed form, sum Delta'h / sum h'h",
        f"{len(gammas)} gammas from {min(gammas):.3g} to {max(gammas):.3g} differ by {off:.1g} of their size "
        f"at most (allowed: {SAME_GAMMA:g})",
        off <= SAME_GAMMA, {"gammas": len(gammas), "difference": off},
    )  # fmt: skip


def check_refit(fits: Sequence[Replay], gaps: Sequence[tuple[float, ...]]) -> Check:
    """``gaps``: what fits with ``refit="all"`` lack to the least loss of their nets."""
    shares = [r.least / r.loss for own in fits for r in own.rounds]
    ends = [own.rounds[-1].least / own.rounds[-1].loss for own in fits]
    largest = max(abs(own) for way in gaps for own in way)
    return Check(
        "c", "refit=\"all\" is at most \"last\" with the same nets",
        f"least squares over all weights of the nets of \"last\" gives {max(shares):.6f} of its loss at most "
        f"and {float(np.mean(ends)):.3f} in the mean of the fits; the losses of refit=\"all\" differ from "
        f"those of least squares on their own nets by {largest:.1g} of their size at most "
        f"(allowed: {SAME_LOSS:g})",
        max(shares) <= 1.0 + ROUNDING and largest <= SAME_LOSS,
        {"largest_share": max(shares), "mean_share_at_the_end": float(np.mean(ends)), "difference": largest},
    )  # fmt: skip

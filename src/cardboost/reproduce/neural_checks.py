"""The claims of the paper on boosted networks about the squared loss, recomputed in NumPy alone.

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

from cardboost.report.document import CheckPoint

Array = NDArray[np.float64]

SAME_GAMMA = 1e-12  # share of gamma: up to which it is the closed form
SAME_LOSS = 1e-8  # share of the loss: up to which two solutions of least squares are the same
ROUNDING = 1e-13  # share of the loss: a rise of less is none


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
        return (self.start, *(after.loss for after in self.rounds))


def net_outputs(ensemble: Any, X: Array) -> Array:
    """(nets, rows, outputs), from the numbers that a file of the model would hold; hidden units are tanh."""
    if ensemble.activation != "tanh":
        raise ValueError(f"the networks must be of tanh units; found {ensemble.activation!r}.")
    Z = (X - ensemble.mean) / ensemble.scale
    return np.array([np.tanh(Z @ net.hidden + net.bias) @ net.out + net.offset for net in ensemble.nets])


def class_columns(y: NDArray[Any]) -> Array:
    """One column of 0 and 1 for every class."""
    return np.asarray(y[:, None] == np.unique(y)).astype(np.float64)


def half_mean_square(residual: Array) -> float:
    return 0.5 * float(np.mean(np.sum(residual**2, axis=1)))


def least_loss(outputs: Array, Y: Array) -> float:
    """The least loss of any constants and gammas for these nets, by least squares."""
    rows, m = Y.shape
    ones = np.tile(np.eye(m), (rows, 1))
    nets = outputs.reshape(len(outputs), rows * m).T
    size = np.sqrt(np.sum(nets**2, axis=0))
    A = np.hstack([ones, nets / np.where(size > 0.0, size, 1.0)])
    weights = np.linalg.lstsq(A, Y.ravel(), rcond=None)[0]
    return half_mean_square(Y - (A @ weights).reshape(rows, m))


def replay(ensemble: Any, reported: Sequence[float], X: Array, Y: Array) -> Replay:
    """Retrace a fit whose gammas stay as they were (``refit="last"``)."""
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
    return tuple((float(loss) - best) / best for loss, best in zip(reported, least, strict=True))


def check_decrease(fits: Sequence[Replay]) -> CheckPoint:
    """No net raises the loss, and the losses are those that the model reports."""
    rises = sum(after > before * (1.0 + ROUNDING) for fit in fits for before, after in pairwise(fit.losses))
    rounds = [r for fit in fits for r in fit.rounds]
    difference = max(abs(r.loss - r.reported) / r.loss for r in rounds)
    return CheckPoint(
        "a", "squared loss with refit=\"last\": the loss never increases",
        f"{rises} of {len(rounds)} nets in {len(fits)} fits raise it; losses recomputed differ from the "
        f"reported ones by {difference:.1g} of their size at most",
        rises == 0 and difference <= SAME_LOSS,
        {"fits": len(fits), "nets": len(rounds), "rises": rises, "difference": difference},
    )  # fmt: skip


def check_gammas(fits: Sequence[Replay]) -> CheckPoint:
    rounds = [r for fit in fits for r in fit.rounds]
    difference = max(abs(r.gamma - r.closed_form) / abs(r.closed_form) for r in rounds)
    gammas = [r.gamma for r in rounds]
    return CheckPoint(
        "b", "every gamma is the closed form, sum Delta'h / sum h'h",
        f"{len(gammas)} gammas from {min(gammas):.3g} to {max(gammas):.3g} differ by {difference:.1g} of "
        f"their size at most (allowed: {SAME_GAMMA:g})",
        difference <= SAME_GAMMA, {"gammas": len(gammas), "difference": difference},
    )  # fmt: skip


def check_refit(fits: Sequence[Replay], gaps: Sequence[tuple[float, ...]]) -> CheckPoint:
    """``gaps``: what fits with ``refit="all"`` lack to the least loss of their nets."""
    shares = [r.least / r.loss for fit in fits for r in fit.rounds]
    ends = [fit.rounds[-1].least / fit.rounds[-1].loss for fit in fits]
    largest = max(abs(gap) for gaps_of_fit in gaps for gap in gaps_of_fit)
    return CheckPoint(
        "c", "refit=\"all\" is at most \"last\" with the same nets",
        f"least squares over all weights of the nets of \"last\" gives {max(shares):.6f} of its loss at most "
        f"and {float(np.mean(ends)):.3f} in the mean of the fits; the losses of refit=\"all\" differ from "
        f"those of least squares on their own nets by {largest:.1g} of their size at most "
        f"(allowed: {SAME_LOSS:g})",
        max(shares) <= 1.0 + ROUNDING and largest <= SAME_LOSS,
        {"largest_share": max(shares), "mean_share_at_the_end": float(np.mean(ends)), "difference": largest},
    )  # fmt: skip

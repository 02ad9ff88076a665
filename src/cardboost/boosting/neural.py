"""Boosting whose weak learners are networks, or any regressors, with one output or many.

Round k fits a learner h_k to the Newton steps of the rows, finds its weight gamma_k by a line search, and
with ``refit="all"`` then solves for all weights together (gammas.py):

    F_0 = b,    F_k = b + gamma_1 h_1 + ... + gamma_k h_k.

Held-out rows, where there are any, say when to stop; the model is that of their best round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.gammas import AllGammas, line_search
from cardboost.problem.losses.vector import VectorLoss

Array = NDArray[np.float64]

_STEPS = 4  # for all weights together in a round: where classes can be told apart, they would grow for ever
_TRIES = 3  # seeds for a learner whose numbers are not finite, or that does not lower the loss
_LEAST_GAIN = 1e-6  # share of the loss; a learner that gains less is not worth its place
_LEAST_SIZE = (
    1e-6  # share of the targets' size; decay can leave nothing of a net, which a gamma would blow up
)


class WeakLearner(Protocol):
    """What fits a learner to targets, on rows of its own."""

    def fit(self, target: Array, weight: Array, seed: int) -> Any:
        """A fitted learner. ArithmeticError: its numbers are not finite."""

    def outputs(self, fitted: Any, held: bool = False) -> Array:
        """(rows, m), of the rows it was fitted to or of those held out."""


@dataclass(frozen=True)
class NeuralRecord:
    """One round: training loss, held-out loss, weight of the new learner, seconds since the start."""

    round: int
    loss: float
    held_out: float | None
    gamma: float
    seconds: float
    restarts: int = 0


@dataclass(frozen=True, eq=False)
class Rows:
    """Targets and weights of rows; the weights add up to 1."""

    y: Array
    s: Array


@dataclass(frozen=True)
class NeuralSettings:
    """``patience``: rounds without a lower held-out loss after which to stop."""

    n_estimators: int = 50
    learning_rate: float = 1.0
    refit_all: bool = True
    patience: int = 10
    seed: int = 0
    callback: Callable[[NeuralRecord], object] | None = None


@dataclass(frozen=True, eq=False)
class NeuralPath:
    """Learners in the order in which they came, and for every round the constants and the gammas."""

    learners: tuple[Any, ...]
    constants: tuple[Array, ...]
    gammas: tuple[Array, ...]
    trace: tuple[NeuralRecord, ...]
    status: str
    start: Array
    best_round: int
    start_held_out: float = np.inf  # the held-out loss without any learner

    def weights(self, rounds: int) -> tuple[Array, Array]:
        """Constants and gammas after so many rounds."""
        if rounds == 0:
            return self.start, np.empty(0)
        return self.constants[rounds - 1], self.gammas[rounds - 1]


def boost_networks(
    learner: WeakLearner, loss: VectorLoss, rows: Rows, settings: NeuralSettings, held: Rows | None = None
) -> NeuralPath:
    began = time.perf_counter()
    y, s = rows.y, rows.s
    start = loss.start(y, s)
    F, constant, gammas = np.tile(start, (len(y), 1)), start, np.empty(0)
    together = AllGammas(loss, y, s, settings.n_estimators) if settings.refit_all else None
    learners: list[Any] = []
    constants: list[Array] = []
    course: list[Array] = []
    trace: list[NeuralRecord] = []
    held_outputs: list[Array] = []
    held_score = None if held is None else np.tile(start, (len(held.y), 1))
    best, best_round, status = np.inf, 0, "all rounds"
    if held is not None and held_score is not None:
        best = loss.value(held.y, held_score, held.s)
    first = best
    seeds = np.random.SeedSequence(settings.seed)
    value = loss.value(y, F, s)
    for k in range(settings.n_estimators):
        found = _next_learner(learner, loss, rows, F, seeds.spawn(_TRIES))
        if found is None:
            status = "no learner lowers the loss"
            break
        own, h, gamma, restarts = found
        learners.append(own)
        gammas = np.append(gammas, settings.learning_rate * gamma)
        if together is None:
            F = F + gammas[-1] * h
        else:
            together.add(h)
            before = np.concatenate([constant, gammas])
            full = before.copy()
            full[-1] = gamma
            weights = before + settings.learning_rate * (together.solve(full, _STEPS) - before)
            after = together.scores(weights)
            if loss.value(y, after, s) > loss.value(y, together.scores(before), s):
                weights, after = before, together.scores(before)
            constant, gammas, F = weights[: y.shape[1]], weights[y.shape[1] :], after
        constants.append(constant)
        course.append(gammas)
        value = loss.value(y, F, s)
        held_out = None
        if held is not None:
            held_outputs.append(learner.outputs(own, held=True))
            held_out = loss.value(
                held.y, constant + np.tensordot(gammas, np.array(held_outputs), axes=1), held.s
            )
            if held_out < best:
                best, best_round = held_out, k + 1
        record = NeuralRecord(
            k + 1, value, held_out, float(gammas[-1]), time.perf_counter() - began, restarts
        )
        trace.append(record)
        if settings.callback is not None and settings.callback(record):
            status = "stopped by the callback"
            break
        if held is not None and k + 1 - best_round >= settings.patience:
            status = "held-out loss"
            break
    rounds = len(learners) if held is None else best_round
    return NeuralPath(
        tuple(learners[:rounds]), tuple(constants), tuple(course), tuple(trace), status, start, rounds, first
    )


def _next_learner(
    learner: WeakLearner, loss: VectorLoss, rows: Rows, F: Array, seeds: Sequence[np.random.SeedSequence]
) -> tuple[Any, Array, float, int] | None:
    """A learner with its outputs, its gamma, and how many were fitted in vain; None if none helps."""
    target, weight = loss.targets(rows.y, F)
    weight = weight * rows.s[:, None]
    if not np.any(weight * target):
        return None
    before = loss.value(rows.y, F, rows.s)
    for restarts, seed in enumerate(seeds):
        try:
            own = learner.fit(target, weight, int(seed.generate_state(1)[0]))
            h = learner.outputs(own)
        except ArithmeticError:
            continue
        if not np.isfinite(h).all() or _size(h, weight) < _LEAST_SIZE * _size(target, weight):
            continue
        gamma = line_search(loss, rows.y, rows.s, F, h)
        if gamma == 0.0 or not np.isfinite(gamma):
            continue
        gain = before - loss.value(rows.y, F + gamma * h, rows.s)
        if gain > 0.0 and gain >= _LEAST_GAIN * before:
            return own, h, gamma, restarts
    return None


def _size(outputs: Array, weight: Array) -> float:
    """The root of the weighted sum of squares."""
    return float(np.sqrt(np.sum(weight * outputs * outputs)))

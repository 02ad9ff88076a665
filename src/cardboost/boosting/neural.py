"""Boosting whose weak learners are networks, or any regressors, with one output or many.

Round k fits a learner h_k to the Newton steps of the rows, finds its weight gamma_k by a line search, and
with ``refit="all"`` then solves for all weights together (gammas.py):

    F_0 = b,    F_k = b + gamma_1 h_1 + ... + gamma_k h_k.

Held-out rows, where there are any, say when to stop; the model is that of their best round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.early_stopping import EarlyStopping
from cardboost.boosting.gammas import AllGammas, line_search
from cardboost.boosting.loop import Observer, StopRule, Weighting, boost
from cardboost.problem.budget import clock
from cardboost.problem.losses.vector import VectorLoss
from cardboost.problem.trace import Record, Status, Trace

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
    callback: Callable[[Record], object] | None = None


@dataclass(frozen=True, eq=False)
class NeuralPath:
    """Learners in the order in which they came, and for every round the constants and the gammas.

    ``held_out``: the losses on held-out rows, the first without any learner; empty where there are no such
    rows.
    """

    learners: tuple[Any, ...]
    constants: tuple[Array, ...]
    gammas: tuple[Array, ...]
    trace: Trace
    start: Array
    best_round: int
    held_out: tuple[float, ...] = ()

    def weights(self, rounds: int) -> tuple[Array, Array]:
        """Constants and gammas after so many rounds."""
        if rounds == 0:
            return self.start, np.empty(0)
        return self.constants[rounds - 1], self.gammas[rounds - 1]


@dataclass(frozen=True, eq=False)
class Proposal:
    """A fitted learner with its outputs, its gamma, and how many were fitted in vain before it."""

    learner: Any
    outputs: Array
    gamma: float
    restarts: int

    def __len__(self) -> int:
        return 1


class Gammas(Weighting):
    """The weights of networks: the last one's by a line search, or those of all together.

    Parameters
    ----------
    loss : VectorLoss
        Of one output or many.
    rows : Rows
        To train on.
    settings : NeuralSettings
        Learning rate, whether all gammas are solved for, and the seed.
    held_out : Rows or None
        Rows whose loss is recorded.
    """

    def __init__(self, loss: VectorLoss, rows: Rows, settings: NeuralSettings, held_out: Rows | None) -> None:
        self.loss, self.rows, self.settings, self.held_out = loss, rows, settings, held_out
        self.start = loss.start(rows.y, rows.s)
        self.learners: list[Any] = []
        self.constants: list[Array] = []
        self.gammas: list[Array] = []
        self._scores = np.tile(self.start, (len(rows.y), 1))
        self._constant, self._weights = self.start, np.empty(0)
        self._all: AllGammas | None = None
        if settings.refit_all:
            self._all = AllGammas(loss, rows.y, rows.s, settings.n_estimators)
        self._held_out_outputs: list[Array] = []
        self._seeds = np.random.SeedSequence(settings.seed)
        self._started = clock()

    def search(self, dictionary: WeakLearner, n_columns: int) -> Proposal | Status:
        self._dictionary = dictionary
        if n_columns <= 0:
            return Status.ITERATION_LIMIT
        seeds = self._seeds.spawn(_TRIES)
        return _next_learner(dictionary, self.loss, self.rows, self._scores, seeds) or Status.STUCK

    def update(self, proposals: Proposal) -> Record:
        loss, y, s, rate = self.loss, self.rows.y, self.rows.s, self.settings.learning_rate
        self.learners.append(proposals.learner)
        self._weights = np.append(self._weights, rate * proposals.gamma)
        if self._all is None:
            self._scores = self._scores + self._weights[-1] * proposals.outputs
        else:
            self._all.add(proposals.outputs)
            before = np.concatenate([self._constant, self._weights])
            full = before.copy()
            full[-1] = proposals.gamma
            weights = before + rate * (self._all.solve(full, _STEPS) - before)
            scores = self._all.scores(weights)
            if loss.value(y, scores, s) > loss.value(y, self._all.scores(before), s):
                weights, scores = before, self._all.scores(before)
            n_outputs = y.shape[1]
            self._constant, self._weights = weights[:n_outputs], weights[n_outputs:]
            self._scores = scores
        self.constants.append(self._constant)
        self.gammas.append(self._weights)
        n_learners = len(self.learners)
        return Record(
            n_columns=n_learners,
            n_terms=n_learners,
            objective=loss.value(y, self._scores, s),
            lower_bound=0.0,
            edge=math.nan,
            seconds=clock() - self._started,
            weight=float(self._weights[-1]),
            held_out=self._held_out_loss(),
            restarts=proposals.restarts,
        )

    def start_held_out_loss(self) -> float:
        """The loss on held-out rows without any learner."""
        assert self.held_out is not None
        scores = np.tile(self.start, (len(self.held_out.y), 1))
        return self.loss.value(self.held_out.y, scores, self.held_out.s)

    def _held_out_loss(self) -> float | None:
        if self.held_out is None:
            return None
        self._held_out_outputs.append(self._dictionary.outputs(self.learners[-1], held=True))
        scores = self._constant + np.tensordot(self._weights, np.array(self._held_out_outputs), axes=1)
        return self.loss.value(self.held_out.y, scores, self.held_out.s)


def boost_networks(
    learner: WeakLearner,
    loss: VectorLoss,
    rows: Rows,
    settings: NeuralSettings,
    held_out: Rows | None = None,
) -> NeuralPath:
    """Boost networks or other regressors; held-out rows, where there are any, say when to stop."""
    weighting = Gammas(loss, rows, settings, held_out)
    observers: list[Observer] = [] if settings.callback is None else [settings.callback]
    early = EarlyStopping(settings.patience, 0.0)
    if held_out is not None:
        early.see(weighting.start_held_out_loss(), 0)
        observers.append(lambda record: early.status(record.held_out, record.n_columns))
    stop = StopRule(settings.n_estimators, at_limit=Status.ITERATION_LIMIT)
    trace = boost(learner, weighting, stop, observers)
    rounds = len(weighting.learners) if held_out is None else early.best_round
    return NeuralPath(
        tuple(weighting.learners[:rounds]),
        tuple(weighting.constants),
        tuple(weighting.gammas),
        trace,
        weighting.start,
        rounds,
        tuple(early.losses),
    )


def _next_learner(
    learner: WeakLearner, loss: VectorLoss, rows: Rows, F: Array, seeds: Sequence[np.random.SeedSequence]
) -> Proposal | None:
    """A learner that lowers the loss; None if none does."""
    target, weight = loss.targets(rows.y, F)
    weight = weight * rows.s[:, None]
    if not np.any(weight * target):
        return None
    before = loss.value(rows.y, F, rows.s)
    for restarts, seed in enumerate(seeds):
        try:
            fitted = learner.fit(target, weight, int(seed.generate_state(1)[0]))
            h = learner.outputs(fitted)
        except ArithmeticError:
            continue
        if not np.isfinite(h).all() or _size(h, weight) < _LEAST_SIZE * _size(target, weight):
            continue
        gamma = line_search(loss, rows.y, rows.s, F, h)
        if gamma == 0.0 or not np.isfinite(gamma):
            continue
        gain = before - loss.value(rows.y, F + gamma * h, rows.s)
        if gain > 0.0 and gain >= _LEAST_GAIN * before:
            return Proposal(fitted, h, gamma, restarts)
    return None


def _size(outputs: Array, weight: Array) -> float:
    """The root of the weighted sum of squares."""
    return float(np.sqrt(np.sum(weight * outputs * outputs)))

"""Boosting whose weak learners are networks, or any regressors, with one output or many.

Round k fits a learner h_k to the Newton steps of the rows, finds its weight gamma_k by a line search, and
with ``refit="all"`` then solves for all weights together:

    F_0 = b,    F_k = b + gamma_1 h_1 + ... + gamma_k h_k

with outputs h_k (rows, m), one number gamma_k each and a constant b per output. What does not lower the loss
is not done. Held-out rows, where there are any, say when to stop; the model is that of their best round.

How many networks, and how much decay inside them, is chosen by rows that are held out. The decay given is the
least of those tried: a net of eight units can learn a few hundred rows by heart, and then no number of rounds
is few enough. From the least on, a larger decay is tried as long as it helps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.utils import check_random_state

from cardboost.boosting.loop import EarlyStopping, Observer, StopRule, Weighting, boost
from cardboost.boosting.steps import best_gamma
from cardboost.problem.budget import clock
from cardboost.problem.trace import Record, Status, Trace
from cardboost.problem.vector_losses import VectorLoss

Array = NDArray[np.float64]
Split = NDArray[np.intp]

FACTORS = (1.0, 10.0, 100.0, 300.0, 1000.0)  # of the decay given
FOLDS = 5
_SOLVE_STEPS = 50
_LITTLE = 1e-10  # share of the loss: a step that gains less is the last
_JITTER = 1e-11  # of every diagonal entry: nets that say the same would make a system singular
_SMALL = 1e-24  # of the largest diagonal entry: nets can differ in size by many powers of ten, not by any
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

    def take(self, rows: Split) -> Rows:
        s = self.s[rows]
        return Rows(self.y[rows], s / s.sum())


@dataclass(frozen=True)
class NeuralSettings:
    """``patience``: rounds without a lower held-out loss after which to stop."""

    max_iter: int = 50
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
            self._all = AllGammas(loss, rows.y, rows.s, settings.max_iter)
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
            held_out=self.held_out_loss(proposals.learner),
            restarts=proposals.restarts,
        )

    def held_out_loss(self, new: Any = None) -> float | None:
        """The loss on held-out rows, if there are any, with one more learner or without any."""
        if self.held_out is None:
            return None
        if new is not None:
            self._held_out_outputs.append(self._dictionary.outputs(new, held=True))
        outputs = np.array(self._held_out_outputs).reshape(-1, *self.held_out.y.shape)
        scores = self._constant + np.tensordot(self._weights, outputs, axes=1)
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
        early.status(weighting.held_out_loss(), 0)
        observers.append(lambda record: early.status(record.held_out, record.n_columns))
    stop = StopRule(settings.max_iter, at_limit=Status.ITERATION_LIMIT)
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
        gamma = best_gamma(loss, rows.y, rows.s, F, h)
        if gamma == 0.0 or not np.isfinite(gamma):
            continue
        gain = before - loss.value(rows.y, F + gamma * h, rows.s)
        if gain > 0.0 and gain >= _LEAST_GAIN * before:
            return Proposal(fitted, h, gamma, restarts)
    return None


def _size(outputs: Array, weight: Array) -> float:
    """The root of the weighted sum of squares."""
    return float(np.sqrt(np.sum(weight * outputs * outputs)))


# ---------------------------------------------------------------------------------------- rounds and decay


@dataclass(frozen=True, eq=False)
class RoundsAndDecay:
    """Rounds and decay; ``curve``: held-out losses round by round, the first without any net.

    ``path``: the fit itself, where the one that held rows out is to be the model.
    """

    rounds: int
    l2: float
    curve: tuple[float, ...] = ()
    path: NeuralPath | None = None


def _decays(l2: float, several: bool) -> tuple[float, ...]:
    if not several:
        return (l2,)
    return tuple(l2 * factor for factor in FACTORS) if l2 > 0.0 else (0.0, 1e-3, 1e-2, 1e-1)


def choose_by_folds(
    fit: Callable[[Split, Split, float], NeuralPath],
    rows: int,
    codes: Split | None,
    seed: int,
    l2: float,
    several: bool,
) -> RoundsAndDecay:
    """The rounds and the decay with the least mean loss over the folds."""
    parts = list(_folds(rows, codes, seed))
    best: RoundsAndDecay | None = None
    for decay in _decays(l2, several):
        curve = _mean_curve([fit(kept, aside, decay).held_out for kept, aside in parts])
        rounds = int(np.argmin(curve))
        if best is None or curve[rounds] < min(best.curve):
            best = RoundsAndDecay(max(1, rounds), decay, tuple(float(loss) for loss in curve))
    assert best is not None
    return best


def choose_by_rows(fit: Callable[[float], NeuralPath], l2: float, several: bool) -> RoundsAndDecay:
    """The same by one set of rows; larger decays are tried while they help."""
    best: RoundsAndDecay | None = None
    for decay in _decays(l2, several):
        path = fit(decay)
        curve = path.held_out
        if best is not None and min(curve) >= min(best.curve):
            break
        best = RoundsAndDecay(path.best_round, decay, curve, path)
    assert best is not None
    return best


def _mean_curve(curves: list[tuple[float, ...]]) -> NDArray[np.float64]:
    """A fold that has stopped stays where it was."""
    longest = max(map(len, curves))
    filled = [curve + (curve[-1],) * (longest - len(curve)) for curve in curves]
    return np.asarray(np.mean(np.array(filled), axis=0))


def _folds(rows: int, codes: Split | None, seed: int) -> list[tuple[Split, Split]]:
    """Rows in a random order, dealt out class by class."""
    order = check_random_state(seed).permutation(rows)
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
    folds = min(FOLDS, rows)
    fold = np.empty(rows, dtype=np.intp)
    fold[order] = np.arange(rows) % folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(folds)]

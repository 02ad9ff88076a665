"""Laws of boosting networks: weights of nets, loss round by round, restarts, the choice of nets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from cardboost.boosting.neural import AllGammas, NeuralSettings, Rows, boost_networks
from cardboost.boosting.neural_learners import NetLearner
from cardboost.boosting.steps import best_gamma
from cardboost.dictionary.nets import NetInputs, NetSettings
from cardboost.problem.vector_losses import (
    AbsoluteOutputs,
    CrossEntropy,
    HuberOutputs,
    LogisticOutputs,
    SquaredOutputs,
)

LOSSES = [SquaredOutputs(), CrossEntropy(), LogisticOutputs(), HuberOutputs(0.5), AbsoluteOutputs()]


def by_name(losses):
    return pytest.mark.parametrize("loss", losses, ids=lambda own: own.name)


def made(loss, rows=120, m=2, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(rows, 3))
    score = np.column_stack([np.sin(2 * Z[:, 0]) + Z[:, 1] * (o + 0.5) for o in range(m)])
    score += rng.normal(0, 0.5, size=score.shape)
    if loss.name == "cross_entropy":
        y = np.eye(m)[np.argmax(score, axis=1)]
    elif loss.name == "logistic":
        y = np.where(score > 0, 1.0, -1.0)
    else:
        y = score
    s = rng.random(rows) + 0.1
    return Z, y, s / s.sum()


def boosted(loss, refit_all, rounds=6, m=2, learning_rate=1.0):
    Z, y, s = made(loss, m=m)
    learner = NetLearner(NetInputs.of(Z), NetSettings(hidden=3, l2=1e-3, max_iter=40))
    settings = NeuralSettings(rounds, learning_rate, refit_all, seed=3)
    return Z, y, s, boost_networks(learner, loss, Rows(y, s), settings)


@by_name(LOSSES)
@pytest.mark.parametrize("refit_all", [False, True])
@pytest.mark.parametrize("learning_rate", [1.0, 0.3])
def test_the_loss_never_rises(loss, refit_all, learning_rate):
    _, y, s, path = boosted(loss, refit_all, learning_rate=learning_rate)
    first = loss.value(y, np.tile(path.start, (len(y), 1)), s)
    losses = [first, *(own.objective for own in path.trace)]
    assert len(losses) == 7
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(losses))
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("m", [1, 3])
def test_gammas_of_the_squared_loss_are_the_closed_form(m):
    """gamma_k = sum Delta'h / sum h'h, Delta = y - F of the predictor so far."""
    Z, y, s, path = boosted(SquaredOutputs(), refit_all=False, m=m)
    F = np.tile(path.start, (len(y), 1))
    for net, gamma in zip(path.learners, path.gammas[-1], strict=True):
        h = np.tanh(Z @ net.hidden + net.bias) @ net.out + net.offset
        wanted = float(s @ np.sum((y - F) * h, axis=1)) / float(s @ np.sum(h * h, axis=1))
        assert gamma == pytest.approx(wanted, rel=1e-12)
        F = F + gamma * h
    assert SquaredOutputs().value(y, F, s) == pytest.approx(path.trace[-1].objective, rel=1e-12)


@by_name(LOSSES)
def test_all_weights_are_at_most_the_last_ones_with_the_same_nets(loss):
    Z, y, s, path = boosted(loss, refit_all=False)
    outputs = [own.outputs(Z, "tanh") for own in path.learners]
    together = AllGammas(loss, y, s, len(outputs))
    for h in outputs:
        together.add(h)
    start = np.concatenate([path.start, path.gammas[-1]])
    assert loss.value(y, together.scores(start), s) == pytest.approx(path.trace[-1].objective, rel=1e-12)
    found = together.solve(start)
    value = loss.value(y, together.scores(found), s)
    assert value <= path.trace[-1].objective
    best = minimize(
        lambda w: loss.value(y, together.scores(w), s), found, method="Powell", options={"maxiter": 20_000}
    ).fun
    assert value <= best + (2e-3 if loss.name == "absolute" else 1e-6)


def test_all_weights_of_the_squared_loss_are_least_squares():
    Z, y, s, path = boosted(SquaredOutputs(), refit_all=True)
    outputs = np.array([own.outputs(Z, "tanh") for own in path.learners])
    ones = np.array([np.tile(np.eye(2)[o], (len(y), 1)) for o in range(2)])
    A = np.concatenate([ones, outputs]).reshape(8, -1).T
    root = np.sqrt(np.repeat(s, 2))
    wanted = np.linalg.lstsq(A * root[:, None], y.ravel() * root, rcond=None)[0]
    np.testing.assert_allclose(np.concatenate([path.constants[-1], path.gammas[-1]]), wanted, rtol=1e-6)


@by_name(LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_the_line_search_finds_the_best_step(loss, seed):
    _, y, s = made(loss, rows=60, seed=seed)
    rng = np.random.default_rng(seed)
    F, h = 0.3 * rng.normal(size=y.shape), rng.normal(size=y.shape)
    gamma = best_gamma(loss, y, s, F, h)
    value = loss.value(y, F + gamma * h, s)
    grid = min(loss.value(y, F + g * h, s) for g in np.linspace(-3, 3, 601))
    exact = minimize_scalar(lambda g: loss.value(y, F + g * h, s), bracket=(-1.0, 1.0), tol=1e-12).fun
    assert value <= min(grid, exact) + 1e-12


@by_name(LOSSES)
def test_a_column_of_zeros_gets_no_weight(loss):
    _, y, s = made(loss)
    assert best_gamma(loss, y, s, np.zeros_like(y), np.zeros_like(y)) == 0.0


class Moody:
    """A learner whose first tries are useless."""

    def __init__(self, bad, failures):
        self.bad, self.failures, self.calls, self.seeds = bad, failures, 0, []

    def fit(self, target, weight, seed):
        self.calls += 1
        self.seeds.append(seed)
        if self.calls <= self.failures:
            if self.bad == "error":
                raise ArithmeticError("no")
            return np.full_like(target, self.bad)
        return 0.5 * target

    def outputs(self, fitted, held=False):
        return fitted


@pytest.mark.parametrize("bad", ["error", np.nan, np.inf, 0.0])
def test_a_learner_that_fails_is_tried_again_with_another_seed(bad):
    loss = SquaredOutputs()
    _, y, s = made(loss)
    learner = Moody(bad, 2)
    path = boost_networks(learner, loss, Rows(y, s), NeuralSettings(1))
    assert path.trace[0].restarts == 2
    assert len(set(learner.seeds)) == 3
    hopeless = boost_networks(Moody(bad, 99), loss, Rows(y, s), NeuralSettings(3))
    assert hopeless.learners == ()
    assert hopeless.trace.status == "stuck"


def test_nothing_is_left_to_fit():
    y = np.full((20, 2), 3.0)
    path = boost_networks(Moody("error", 0), SquaredOutputs(), Rows(y, np.full(20, 0.05)), NeuralSettings(3))
    assert path.learners == ()
    np.testing.assert_allclose(path.start, 3.0)


def test_held_out_rows_end_the_rounds_and_the_best_round_is_the_model():
    loss = SquaredOutputs()
    Z, y, _ = made(loss, rows=200, m=1)
    learner = NetLearner(NetInputs.of(Z[:60]), NetSettings(hidden=8, l2=1e-6), Z[60:])
    held = Rows(y[60:], np.full(140, 1 / 140))
    path = boost_networks(
        learner, loss, Rows(y[:60], np.full(60, 1 / 60)), NeuralSettings(40, patience=3), held
    )
    assert path.trace.status == "validation"
    losses = [own.held_out for own in path.trace]
    assert len(losses) == path.best_round + 3
    assert path.held_out[1:] == tuple(losses)
    assert path.best_round == int(np.argmin(path.held_out))
    assert len(path.learners) == path.best_round


def test_a_callback_ends_the_rounds():
    loss = SquaredOutputs()
    Z, y, s = made(loss)
    learner = NetLearner(NetInputs.of(Z), NetSettings(hidden=2, max_iter=5))
    path = boost_networks(
        learner, loss, Rows(y, s), NeuralSettings(9, callback=lambda record: record.n_columns == 2)
    )
    assert len(path.learners) == 2
    assert path.trace.status == "stopped"

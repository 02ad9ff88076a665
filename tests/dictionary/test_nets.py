"""The built-in net: what it can fit, and what must hold of every fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad

from cardboost.dictionary.nets import (
    _STARTS,
    DivergedError,
    NetInputs,
    NetSettings,
    _Problem,
    fit_net,
)


def made(rows: int = 300, n: int = 3, m: int = 1, seed: int = 0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(rows, n))
    T = np.column_stack([np.sin(Z[:, 0] + o) + 0.3 * Z[:, -1] for o in range(m)])
    return Z, T, rng


def objective(weights, Z, T, Q, settings_):
    error = weights.outputs(Z, settings_.activation) - T
    total = np.sum(Q * T * T)
    scale2 = total / (np.sum(Q) * (T.shape[1] if Q.shape[1] == 1 else 1))
    decay = np.sum(weights.hidden**2) + np.sum(weights.out**2) / scale2
    return np.sum(Q * error * error) / total + settings_.l2 * decay


@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic"])
@pytest.mark.parametrize("m", [1, 3])
def test_the_objective_is_that_of_its_weights(activation, m):
    Z, T, rng = made(m=m)
    for Q in (rng.random((300, 1)), rng.random((300, m))):
        own = NetSettings(hidden=5, activation=activation, l2=1e-3, max_iter=60)
        fitted = fit_net(NetInputs.of(Z), T, Q, own, np.random.default_rng(1))
        assert fitted.objective == pytest.approx(objective(fitted.weights, Z, T, Q, own), rel=1e-9)
        assert fitted.objective < 0.5


def test_a_smooth_function_is_learnt(monkeypatch):
    Z, T, _ = made(800)
    look, looks = _Problem.look, []
    monkeypatch.setattr(_Problem, "look", lambda problem, W: looks.append(W) or look(problem, W))
    fitted = fit_net(NetInputs.of(Z), T, np.ones((800, 1)), NetSettings(l2=1e-8), np.random.default_rng(0))
    assert fitted.objective < 2e-3
    assert len(looks) <= 200 + _STARTS + 1


@settings(max_examples=15)
@given(
    seed=st.integers(0, 1000),
    activation=st.sampled_from(["tanh", "logistic"]),
    m=st.integers(1, 3),
    by_output=st.booleans(),
)
def test_slopes_are_those_of_finite_differences(seed, activation, m, by_output):
    Z, T, rng = made(80, 3, m, seed)
    Q = rng.random((80, m if by_output else 1))
    problem = _Problem(NetInputs.of(Z), T, Q / Q.sum(), NetSettings(hidden=3, activation=activation, l2=0.01))

    def value(w):
        return problem.look(w.reshape(4, 3))[0]

    def slopes(w):
        W = w.reshape(4, 3)
        _, V = problem.look(W)
        return problem.slopes(W, V)[1].ravel()

    at = rng.normal(size=12)
    assert check_grad(value, slopes, at) < 1e-5 * (1.0 + np.abs(slopes(at)).max())


def test_equal_seeds_give_equal_nets_for_any_threads():
    Z, T, _ = made(20_000, 4)
    inputs, Q = NetInputs.of(Z), np.ones((20_000, 1))
    first, second, other = (
        fit_net(inputs, T, Q, NetSettings(max_iter=15, threads=threads), np.random.default_rng(seed)).weights
        for threads, seed in ((1, 0), (3, 0), (1, 1))
    )
    assert np.array_equal(first.hidden, second.hidden)
    assert np.array_equal(first.out, second.out)
    assert not np.array_equal(first.hidden, other.hidden)


def test_more_decay_smaller_weights():
    Z, T, _ = made()
    inputs, Q = NetInputs.of(Z), np.ones((300, 1))
    sizes = [
        float(np.sum(fit_net(inputs, T, Q, NetSettings(l2=l2), np.random.default_rng(0)).weights.hidden ** 2))
        for l2 in (1e-4, 1e-2, 1.0)
    ]
    assert sizes[0] > sizes[1] > sizes[2]


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_rows(rows):
    Z, T, _ = made(rows)
    fitted = fit_net(NetInputs.of(Z), T, np.ones((rows, 1)), NetSettings(), np.random.default_rng(0))
    assert np.isfinite(fitted.weights.outputs(Z, "tanh")).all()


def test_nothing_to_fit_and_constant_inputs():
    Z, T, _ = made(50)
    nothing = fit_net(NetInputs.of(Z), 0.0 * T, np.ones((50, 1)), NetSettings(), np.random.default_rng(0))
    assert not nothing.weights.outputs(Z, "tanh").any()
    flat = fit_net(NetInputs.of(0.0 * Z), T, np.ones((50, 1)), NetSettings(l2=0.0), np.random.default_rng(0))
    np.testing.assert_allclose(flat.weights.outputs(0.0 * Z, "tanh"), T.mean(), atol=1e-6)


def test_many_weights_go_without_a_matrix():
    Z, T, _ = made(200, 30)
    own = NetSettings(hidden=40, max_iter=30, l2=1e-3)
    assert fit_net(NetInputs.of(Z), T, np.ones((200, 1)), own, np.random.default_rng(0)).objective < 0.2


def test_numbers_that_are_not_finite_are_noticed():
    Z, T, _ = made(100)
    Z[3, 0] = np.nan
    with pytest.raises(DivergedError):
        fit_net(NetInputs.of(Z), T, np.ones((100, 1)), NetSettings(), np.random.default_rng(0))

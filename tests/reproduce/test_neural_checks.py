"""Check points of boosted networks: they hold for a fitted model, and fail when any one number is changed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from cardboost.reproduce.neural import (
    PAPER,
    PAPER_ALL,
    FoldSettings,
    boosted,
    check_decrease,
    check_gammas,
    check_refit,
    class_columns,
    half_mean_square,
    least_loss,
    losses,
    net_outputs,
    refit_gaps,
    replay,
)

SMALL = FoldSettings(nets=4)
X, LABELS = load_iris(return_X_y=True)
Y = class_columns(LABELS)


@pytest.fixture(scope="module")
def last():
    return boosted(PAPER, SMALL, 0).fit(X, LABELS)


@pytest.fixture(scope="module")
def together():
    return boosted(PAPER_ALL, SMALL, 0).fit(X, LABELS)


@pytest.fixture(scope="module")
def way(last):
    return replay(last.ensemble_, last.loss_curve_, X, Y)


def changed(way, number, **values):
    rounds = list(way["rounds"])
    rounds[number] = rounds[number] | values
    return way | {"rounds": rounds}


def test_outputs_add_up_to_the_scores_of_the_model(last):
    own = last.ensemble_
    gammas = np.array([net.gamma for net in own.nets])
    scores = own.intercept + np.tensordot(gammas, net_outputs(own, X), axes=1)
    assert scores == pytest.approx(last.decision_function(X), rel=1e-12, abs=1e-12)
    assert own.intercept == pytest.approx(Y.mean(axis=0))


def test_the_paper_s_setting(last):
    parameters = last.get_params()
    wanted = {"loss": "squared", "refit": "last", "learning_rate": 1.0, "early_stopping": False}
    assert {name: parameters[name] for name in wanted} == wanted


def test_only_tanh_is_recomputed(last):
    with pytest.raises(ValueError, match="tanh"):
        net_outputs(replace(last.ensemble_, activation="relu"), X)


def test_all_hold_for_a_fit(way, together):
    gaps = refit_gaps(together.ensemble_, together.loss_curve_, X, Y)
    assert len(way["rounds"]) == len(gaps) == 4
    for check in (check_decrease([way]), check_gammas([way]), check_refit([way], [gaps])):
        assert check["holds"], check


@pytest.mark.parametrize("number", range(4))
def test_a_loss_that_rises_or_is_not_the_reported_one_is_seen(way, number):
    before = losses(way)[number]
    risen = before * (1 + 1e-9)
    assert not check_decrease([way, changed(way, number, loss=risen, reported=risen)])["holds"]
    assert not check_decrease([changed(way, number, reported=way["rounds"][number]["loss"] * (1 + 1e-6))])[
        "holds"
    ]


@pytest.mark.parametrize("number", range(4))
def test_a_gamma_that_is_not_the_closed_form_is_seen(last, way, number):
    assert not check_gammas([way, changed(way, number, gamma=way["rounds"][number]["gamma"] * (1 + 1e-11))])[
        "holds"
    ]
    nets = list(last.ensemble_.nets)
    nets[number] = replace(nets[number], gamma=nets[number].gamma * (1 + 1e-9))
    other = replay(replace(last.ensemble_, nets=tuple(nets)), last.loss_curve_, X, Y)
    assert not check_gammas([other])["holds"]


def test_a_refit_that_is_worse_is_seen(last, way, together):
    gaps = refit_gaps(together.ensemble_, together.loss_curve_, X, Y)
    assert not check_refit([changed(way, 1, least=way["rounds"][1]["loss"] * (1 + 1e-9))], [gaps])["holds"]
    assert not check_refit([way], [gaps, (0.0, 1e-6)])["holds"]
    stagewise = refit_gaps(last.ensemble_, last.loss_curve_, X, Y)  # weights that nobody solved for again
    assert max(stagewise) > 1e-3
    assert not check_refit([way], [stagewise])["holds"]


@given(st.integers(0, 10**6), st.integers(1, 5), st.floats(-8.0, 8.0))
def test_no_weights_are_below_the_least_loss(seed, nets, power):
    rng = np.random.default_rng(seed)
    outputs, y = rng.normal(size=(nets, 20, 3)), rng.normal(size=(20, 3))
    outputs[-1] *= 10.0**power
    best = least_loss(outputs, y)
    constant, gammas = rng.normal(size=3), rng.normal(size=nets)
    assert best <= half_mean_square(y - constant - np.tensordot(gammas, outputs, axes=1)) * (1 + 1e-12)
    made = constant + np.tensordot(gammas, outputs, axes=1)
    assert least_loss(outputs, made) <= 1e-20 * (1 + half_mean_square(made))


def test_two_nets_by_hand():
    """h = (1, 1), then (1, -1), on residuals (3, 1): gammas 2 and 1, losses 5/2, 1/2 and 0."""

    def net(a, b, gamma):
        hidden, bias = np.array([[1.0]]), np.array([0.0])
        out = np.array([[(a - b) / (2 * np.tanh(1.0))]])
        return SimpleNamespace(gamma=gamma, hidden=hidden, bias=bias, out=out, offset=np.array([(a + b) / 2]))

    ensemble = SimpleNamespace(
        activation="tanh", mean=np.zeros(1), scale=np.ones(1), intercept=np.zeros(1),
        nets=(net(1.0, 1.0, 2.0), net(1.0, -1.0, 1.0)),
    )  # fmt: skip
    found = replay(ensemble, (0.5, 0.0), np.array([[1.0], [-1.0]]), np.array([[3.0], [1.0]]))
    assert losses(found) == pytest.approx((2.5, 0.5, 0.0))
    assert [own["closed_form"] for own in found["rounds"]] == pytest.approx([2.0, 1.0])

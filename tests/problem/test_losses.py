"""Laws that every loss obeys: derivatives, convexity, Fenchel-Young, and what its probability means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from cardboost.problem.losses import (
    ABSOLUTE,
    EVALUATION_LOSSES,
    LOSSES,
    MARGIN_LOSSES,
    RESIDUAL_LOSSES,
    SQUARED,
    Loss,
    get_loss,
    stagewise_loss,
)
from cardboost.testing import check_loss

ALL = [*MARGIN_LOSSES.values(), *RESIDUAL_LOSSES.values()]
every = pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
of_margins = pytest.mark.parametrize("loss", MARGIN_LOSSES.values(), ids=MARGIN_LOSSES.keys())
smooth = pytest.mark.parametrize("loss", [*LOSSES.values(), SQUARED], ids=lambda loss: loss.name)
likely = pytest.mark.parametrize(
    "loss", [own for own in LOSSES.values() if own.has_probability], ids=lambda loss: loss.name
)
#: where the slope or the curvature jumps
BENDS = {"hinge": (1.0,), "squared_hinge": (1.0,), "absolute": (0.0,), "smooth_hinge": (0.75, 1.0)}

margins = st.floats(-25, 25)


@every
@given(z=margins)
def test_derivative(loss, z):
    step = 1e-6
    assume(all(abs(z - bend) > 2 * step for bend in BENDS.get(loss.name, ())))
    slope = (loss.rows(z + step) - loss.rows(z - step)) / (2 * step)
    assert loss.derivative(z) == pytest.approx(
        slope, rel=1e-6, abs=1e-9 if loss.name in ("exponential", "logistic") else 1e-7
    )


@every
@given(z=margins)
def test_curvature(loss, z):
    step = 1e-5
    assume(all(abs(z - bend) > 2 * step for bend in BENDS.get(loss.name, ())))
    bend = (loss.derivative(z + step) - loss.derivative(z - step)) / (2 * step)
    assert loss.curvature(z) == pytest.approx(bend, rel=1e-6, abs=1e-9)


@every
@given(a=margins, b=margins, share=st.floats(0, 1))
def test_convex(loss, a, b, share):
    chord = share * loss.rows(a) + (1 - share) * loss.rows(b)
    slack = 1e-28 if loss.name not in BENDS else 1e-13  # the place itself is rounded
    assert loss.rows(share * a + (1 - share) * b) <= chord * (1 + 1e-12) + slack
    assert loss.rows(a) >= 0
    assert loss.curvature(a) > 0 or loss.name in BENDS
    assert loss.curvature(a) >= 0
    assert not loss.quadratic or loss.curvature(a) == loss.curvature(b)


@of_margins
@given(a=margins, b=margins)
def test_decreasing(loss, a, b):
    assert loss.derivative(a) < 0 or (loss.name in BENDS and a >= 1)
    if a < b:
        assert loss.rows(a) >= loss.rows(b)


@every
@given(z=margins, v=st.floats(0, 1))
def test_fenchel_young(loss, z, v):
    """loss(z) + conjugate(-v) >= -v z, with equality at v = -loss'(z)."""
    size = 1 + abs(v * z) + loss.rows(z)
    assert loss.rows(z) + loss.conjugate(v) + v * z >= -1e-14 * size
    own = -loss.derivative(z)
    size = 1 + abs(own * z) + loss.rows(z)
    assert loss.rows(z) + loss.conjugate(own) + own * z == pytest.approx(0, abs=1e-13 * size)
    assert loss.dual(own) == -loss.conjugate(own)


@given(F=margins, t=margins, v=margins)
def test_fenchel_young_of_residuals(F, t, v):
    """loss(F - t) >= -v F + dual(v, t) for every v, with equality at v = t - F."""
    room = 1e-14 * (1 + v * v + t * t + F * F)
    assert SQUARED.rows(F - t) >= -v * F + SQUARED.dual(v, t) - room
    own = -SQUARED.derivative(F - t)
    assert own == t - F
    assert SQUARED.rows(F - t) == pytest.approx(-own * F + SQUARED.dual(own, t), abs=room)
    assert SQUARED.dual(v, t) == pytest.approx(v * t - 0.5 * v * v, abs=room)


@of_margins
def test_domain_of_the_conjugate(loss):
    assert loss.conjugate(-1e-9) == np.inf
    assert loss.conjugate(0.0) == 0.0
    above = loss.conjugate(1.0 + 1e-9)
    assert np.isinf(above) == (loss.name in ("logistic", "hinge", "smooth_hinge"))
    assert np.isfinite(loss.conjugate(np.linspace(0, 1, 11))).all()


@likely
def test_probability(loss):
    scores = np.linspace(-800, 800, 1601)
    p = loss.probability(scores)
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p) >= 0).all()
    assert loss.probability(0.0) == 0.5
    np.testing.assert_allclose(p + loss.probability(-scores), 1)


@likely
@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.9])
def test_probability_belongs_to_the_minimiser_of_the_expected_loss(loss, p):
    best = minimize_scalar(lambda f: p * loss.rows(f) + (1 - p) * loss.rows(-f), bracket=(-1, 1), tol=1e-12)
    assert loss.probability(best.x) == pytest.approx(p, rel=1e-6)
    assert loss.best_constant(p) == pytest.approx(best.x, abs=1e-5)


def test_the_squared_loss_is_for_numbers():
    t, s = np.array([3.0, -1.0, 0.5]), np.array([0.5, 0.25, 0.25])
    best = minimize_scalar(lambda f: SQUARED.value(f - t, s), bracket=(-1, 1), tol=1e-12)
    assert SQUARED.best_constant(float(s @ t)) == pytest.approx(best.x, abs=1e-7)
    with pytest.raises(ValueError, match="numbers"):
        SQUARED.probability(0.0)
    with pytest.raises(ValueError, match="'exponential', 'hinge', 'logistic'"):
        get_loss("squared")
    assert get_loss(SQUARED) is SQUARED


@every
def test_value_is_the_weighted_sum(loss):
    F, s = np.array([-1.0, 0.0, 2.0]), np.array([0.5, 0.25, 0.25])
    assert loss.value(F, s) == pytest.approx(float(s @ loss.rows(F)), rel=1e-15)
    assert loss.value(F) == pytest.approx(float(loss.rows(F).mean()), rel=1e-15)


@of_margins
def test_extreme_margins(loss):
    assert loss.rows(1e4) == pytest.approx(0, abs=1e-300)
    if loss.name in ("logistic", "hinge", "smooth_hinge"):
        assert loss.rows(-1e4) == pytest.approx(1e4, abs=1)
    assert np.isfinite(loss.derivative(600.0))
    assert np.isfinite(loss.curvature(600.0))


@likely
def test_names(loss):
    assert isinstance(loss, Loss)
    assert get_loss(loss.name) is loss
    assert get_loss(loss) is loss
    for wrong in ("huber", 3, None, loss.name.upper()):
        with pytest.raises(ValueError, match="'exponential', 'hinge', 'logistic'"):
            get_loss(wrong)


@smooth
def test_codes_differ(loss):
    assert [other for other in ALL if other.code == loss.code] == [loss]


@every
def test_the_contract_that_is_shipped(loss):
    check_loss(loss)


@of_margins
@given(z=margins)
def test_surrogates_bound_the_number_of_errors(loss, z):
    for errors in EVALUATION_LOSSES.values():
        assert loss.rows(z) * loss.surrogate_factor >= errors.rows(z)


def test_the_hinge_has_scores_only():
    hinge = MARGIN_LOSSES["hinge"]
    with pytest.raises(ValueError, match="no probabilities"):
        hinge.probability(0.3)
    with pytest.raises(ValueError, match="Stagewise estimators only"):
        get_loss(hinge)
    assert [hinge.best_constant(p) for p in (0.2, 0.5, 0.7)] == [-1.0, 0.0, 1.0]


@given(z=margins)
def test_solvers_of_all_weights_round_the_corner_of_the_hinge_off(z):
    hinge, smooth = MARGIN_LOSSES["hinge"], get_loss("hinge")
    assert smooth.name == "smooth_hinge"
    below = hinge.rows(z) - smooth.rows(z)
    assert -1e-15 <= below <= 1 / 8
    assert z > 0.75 or below == pytest.approx(1 / 8)
    assert z < 1.0 or below == 0.0
    with pytest.raises(ValueError, match="no probabilities"):
        smooth.probability(0.3)


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.9])
def test_the_best_constant_of_the_smooth_hinge(p):
    smooth = LOSSES["smooth_hinge"]
    best = minimize_scalar(
        lambda f: p * smooth.rows(f) + (1 - p) * smooth.rows(-f), bounds=(-1, 1), options={"xatol": 1e-9}
    )
    own = smooth.best_constant(p)
    assert p * smooth.rows(own) + (1 - p) * smooth.rows(-own) <= best.fun + 1e-15


@likely
@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_best_constants_by_halving(loss, p):
    assert Loss.best_constant(loss, p) == pytest.approx(loss.best_constant(p), abs=1e-9)


def test_the_absolute_loss_is_for_numbers():
    with pytest.raises(ValueError, match="numbers"):
        ABSOLUTE.probability(0.0)
    with pytest.raises(ValueError, match="mean alone"):
        ABSOLUTE.best_constant(0.5)


@pytest.mark.parametrize("loss", EVALUATION_LOSSES.values(), ids=EVALUATION_LOSSES.keys())
def test_errors_are_for_evaluation(loss):
    F = np.array([-2.0, 0.0, 3.0])
    assert loss.value(F) == pytest.approx((2 if loss.name == "zero_one" else 1) / 3)
    surrogates = "'exponential', 'logistic', 'hinge' or 'squared_hinge'"
    for refused in (
        lambda: get_loss(loss.name),
        lambda: get_loss(loss),
        lambda: stagewise_loss(loss.name, of_residual=False),
        lambda: stagewise_loss(loss, of_residual=True),
        lambda: loss.derivative(F),
        lambda: loss.curvature(F),
        lambda: loss.conjugate(F),
        lambda: loss.probability(F),
        lambda: loss.best_constant(0.5),
    ):
        with pytest.raises(ValueError, match=surrogates):
            refused()
    with pytest.raises(AssertionError, match=surrogates):
        check_loss(loss)


def test_losses_of_stages():
    assert stagewise_loss("hinge", of_residual=False) is MARGIN_LOSSES["hinge"]
    assert stagewise_loss("absolute", of_residual=True) is ABSOLUTE
    assert stagewise_loss(ABSOLUTE, of_residual=True) is ABSOLUTE
    with pytest.raises(ValueError, match="for StagewiseRegressor"):
        stagewise_loss("squared", of_residual=False)
    with pytest.raises(ValueError, match="for StagewiseClassifier"):
        stagewise_loss("hinge", of_residual=True)
    with pytest.raises(ValueError, match="loss of the margin"):
        stagewise_loss(ABSOLUTE, of_residual=False)
    with pytest.raises(ValueError, match="or a Loss of your own"):
        stagewise_loss("huber", of_residual=True)


class Smooth(Loss):
    """(1 - z)^3 / 3 below 1: right in every way, and broken one way at a time below."""

    name = "smooth"

    def rows(self, F):
        return np.maximum(0.0, 1.0 - np.asarray(F, dtype=float)) ** 3 / 3

    def derivative(self, F):
        return -(np.maximum(0.0, 1.0 - np.asarray(F, dtype=float)) ** 2)

    def curvature(self, F):
        return 2 * np.maximum(0.0, 1.0 - np.asarray(F, dtype=float))

    def conjugate(self, v):
        v = np.asarray(v, dtype=float)
        return np.where(v < 0, np.inf, 2 / 3 * np.maximum(v, 0) ** 1.5 - v)


def test_a_loss_of_ones_own():
    check_loss(Smooth())
    assert Smooth().best_constant(0.5) == 0.0
    with pytest.raises(ValueError, match="no probabilities"):
        Smooth().probability(0.0)
    with pytest.raises(AssertionError, match="an instance of"):
        check_loss("smooth")


FAULTS = {
    "derivative at": {"derivative": lambda own, F: 1.1 * Smooth.derivative(own, F)},
    "curvature at": {"curvature": lambda own, F: 1.1 * Smooth.curvature(own, F)},
    "Fenchel-Young is no equality": {"conjugate": lambda own, v: Smooth.conjugate(own, v) + 0.01},
    "Fenchel-Young does not hold": {
        "conjugate": lambda own, v: np.where(np.asarray(v) < 0, 0.0, Smooth.conjugate(own, v))
    },
    "below 0": {"rows": lambda own, F: Smooth.rows(own, F) - 0.01},
    "not convex": {
        "rows": lambda own, F: 2 - np.tanh(F),
        "derivative": lambda own, F: -1 / np.cosh(F) ** 2,
        "curvature": lambda own, F: np.abs(2 * np.tanh(F) / np.cosh(F) ** 2),
    },
    "may only fall": {
        "rows": lambda own, F: (1 - np.asarray(F)) ** 2,
        "derivative": lambda own, F: -2 * (1 - np.asarray(F)),
        "curvature": lambda own, F: 2 * np.ones_like(np.asarray(F)),
        "conjugate": lambda own, v: np.asarray(v) ** 2 / 4 - np.asarray(v),
    },
    "has shape": {"curvature": lambda own, F: 2.0},
    "probability falls": {"probability": lambda own, f: 0.5 - np.asarray(f) / 100},
    "add up to 1": {"probability": lambda own, f: np.clip(0.5 + np.maximum(f, 0), 0, 1)},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_the_contract_finds(fault):
    broken = type("Broken", (Smooth,), FAULTS[fault])
    with pytest.raises(AssertionError, match=fault):
        check_loss(broken())

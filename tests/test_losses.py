"""Laws that every loss obeys: derivatives, convexity, Fenchel-Young, and what its probability means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from cardboost.losses import LOSSES, SQUARED, Loss, get_loss

ALL = [*LOSSES.values(), SQUARED]
every = pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
of_margins = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())

margins = st.floats(-25, 25)


@every
@given(z=margins)
def test_derivative(loss, z):
    step = 1e-6
    slope = (loss.rows(z + step) - loss.rows(z - step)) / (2 * step)
    assert loss.derivative(z) == pytest.approx(slope, rel=1e-6, abs=1e-7 if loss is SQUARED else 1e-9)


@every
@given(z=margins)
def test_curvature(loss, z):
    step = 1e-5
    bend = (loss.derivative(z + step) - loss.derivative(z - step)) / (2 * step)
    assert loss.curvature(z) == pytest.approx(bend, rel=1e-6, abs=1e-9)


@every
@given(a=margins, b=margins, share=st.floats(0, 1))
def test_convex(loss, a, b, share):
    chord = share * loss.rows(a) + (1 - share) * loss.rows(b)
    assert loss.rows(share * a + (1 - share) * b) <= chord * (1 + 1e-12) + 1e-28
    assert loss.rows(a) >= 0
    assert loss.curvature(a) > 0
    assert not loss.quadratic or loss.curvature(a) == loss.curvature(b)


@of_margins
@given(a=margins, b=margins)
def test_decreasing(loss, a, b):
    assert loss.derivative(a) < 0
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
    assert np.isinf(above) == (loss.name == "logistic")
    assert np.isfinite(loss.conjugate(np.linspace(0, 1, 11))).all()


@of_margins
def test_probability(loss):
    scores = np.linspace(-800, 800, 1601)
    p = loss.probability(scores)
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p) >= 0).all()
    assert loss.probability(0.0) == 0.5
    np.testing.assert_allclose(p + loss.probability(-scores), 1)


@of_margins
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
    with pytest.raises(ValueError, match="'exponential', 'logistic'"):
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
    if loss.name == "logistic":
        assert loss.rows(-1e4) == 1e4
    assert np.isfinite(loss.derivative(600.0))
    assert np.isfinite(loss.curvature(600.0))


@of_margins
def test_names(loss):
    assert isinstance(loss, Loss)
    assert get_loss(loss.name) is loss
    assert get_loss(loss) is loss
    for wrong in ("hinge", 3, None, loss.name.upper()):
        with pytest.raises(ValueError, match="'exponential', 'logistic'"):
            get_loss(wrong)


@every
def test_codes_differ(loss):
    assert [other for other in ALL if other.code == loss.code] == [loss]

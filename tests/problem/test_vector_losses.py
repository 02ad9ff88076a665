"""Laws of the losses of several outputs: derivatives, Newton steps, convexity, starts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from cardboost.problem.vector_losses import (
    AbsoluteOutputs,
    CrossEntropy,
    HuberOutputs,
    LogisticOutputs,
    SquaredOutputs,
    VectorLoss,
    weighted_median,
)
from cardboost.testing import check_vector_loss


class Quartic(VectorLoss):
    """A loss of one's own: |f - y|^4 / 4 + |f - y|^2 / 2, with a full Hessian."""

    name = "quartic"

    def rows(self, y, f):
        square = np.sum((f - y) ** 2, axis=1)
        return 0.25 * square**2 + 0.5 * square

    def gradient(self, y, f):
        return (f - y) * (1.0 + np.sum((f - y) ** 2, axis=1, keepdims=True))

    def hessian(self, y, f):
        r = f - y
        near = 1.0 + np.sum(r * r, axis=1)
        return near[:, None, None] * np.eye(y.shape[1]) + 2.0 * r[:, :, None] * r[:, None, :]


SMOOTH = [SquaredOutputs(), CrossEntropy(), LogisticOutputs(), Quartic()]
ALL = [*SMOOTH, HuberOutputs(0.7), AbsoluteOutputs()]


def drawn(loss: VectorLoss, rows: int = 40, m: int = 3, seed: int = 0):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=(rows, m))
    if loss.name == "cross_entropy":
        return np.eye(m)[rng.integers(0, m, rows)], f
    if loss.name == "logistic":
        return rng.choice([-1.0, 1.0], (rows, m)), f
    return rng.normal(size=(rows, m)), f


def by_name(losses):
    return pytest.mark.parametrize("loss", losses, ids=lambda own: own.name)


def differences(function, f, step=1e-5):
    """d function / d f_o, stacked along a last axis."""
    out = []
    for o in range(f.shape[1]):
        up, down = f.copy(), f.copy()
        up[:, o] += step
        down[:, o] -= step
        out.append((function(up) - function(down)) / (2 * step))
    return np.stack(out, axis=-1)


@by_name(ALL)
@pytest.mark.parametrize("m", [1, 3])
def test_the_gradient(loss, m):
    y, f = drawn(loss, m=m)
    np.testing.assert_allclose(
        loss.gradient(y, f), differences(lambda at: loss.rows(y, at), f), rtol=1e-6, atol=1e-8
    )


@by_name([*SMOOTH, HuberOutputs(0.7)])
def test_the_hessian(loss):
    y, f = drawn(loss)
    found = differences(lambda at: loss.gradient(y, at), f)
    np.testing.assert_allclose(loss.hessian(y, f), found, rtol=1e-5, atol=1e-7)


@by_name(SMOOTH)
@pytest.mark.parametrize("m", [1, 2, 4])
def test_targets_are_newton_steps(loss, m):
    """-(Hessian)^+ gradient, both by finite differences of the loss alone."""
    if loss.name == "cross_entropy" and m == 1:
        return  # one class has nothing to tell apart
    y, f = drawn(loss, m=m, seed=m)
    slope = differences(lambda at: loss.rows(y, at), f)
    bend = differences(lambda at: differences(lambda inner: loss.rows(y, inner), at, 1e-4), f, 1e-4)
    wanted = np.array([-np.linalg.pinv(H, rcond=1e-5) @ g for H, g in zip(bend, slope, strict=True)])
    clipped = np.clip(wanted, -loss.most_target, loss.most_target)
    target, weight = loss.targets(y, f)
    np.testing.assert_allclose(target, clipped, rtol=2e-5, atol=2e-5)
    diagonal = np.diagonal(bend, axis1=1, axis2=2)
    np.testing.assert_allclose(np.broadcast_to(weight, f.shape), diagonal, rtol=1e-4, atol=1e-6)
    generic, generic_weight = VectorLoss.targets(loss, y, f)
    np.testing.assert_allclose(target, generic, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.broadcast_to(weight, f.shape), generic_weight, rtol=1e-9, atol=1e-12)


@by_name(ALL)
def test_bend_times_is_a_matrix_of_curvature(loss):
    y, f = drawn(loss)
    columns = np.random.default_rng(1).normal(size=(4, *f.shape))
    found = loss.bend_times(y, f, columns)
    if loss in SMOOTH:
        np.testing.assert_allclose(found, VectorLoss.bend_times(loss, y, f, columns), atol=1e-12)
    assert (np.sum(found * columns, axis=(1, 2)) >= 0.0).all()


@by_name([HuberOutputs(0.7), AbsoluteOutputs()])
def test_parabolas_touch_from_above(loss):
    y, f = drawn(loss, m=1)
    at = np.linspace(-4.0, 4.0, 81)
    bend = loss.bend_times(y, f, np.ones((1, *f.shape)))[0]
    for z in at:
        moved = np.full_like(f, z)
        parabola = (
            loss.rows(y, f)[:, None] + loss.gradient(y, f) * (moved - f) + 0.5 * bend * (moved - f) ** 2
        )
        small = np.abs(f - y) < 0.02 * np.abs(f - y).mean()  # no steeper than there
        assert (parabola[~small[:, 0]] >= loss.rows(y, moved)[~small[:, 0], None] - 1e-12).all()


@by_name(ALL)
def test_convex_along_lines(loss):
    y, f = drawn(loss)
    other = np.random.default_rng(5).normal(size=f.shape) * 3.0
    middle = loss.rows(y, 0.5 * (f + other))
    assert (middle <= 0.5 * (loss.rows(y, f) + loss.rows(y, other)) + 1e-12).all()


@by_name(ALL)
def test_the_start_is_the_best_constant(loss):
    y, _ = drawn(loss, rows=31)
    s = np.random.default_rng(2).random(31)
    s /= s.sum()
    found = loss.value(y, np.tile(loss.start(y, s), (31, 1)), s)
    best = minimize(
        lambda b: loss.value(y, np.tile(b, (31, 1)), s), np.zeros(3), method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000},
    ).fun  # fmt: skip
    # Huber's begins at the medians, which are close to its best constants
    assert found <= best + (0.05 * best if loss.name == "huber" else 1e-7)


@by_name(ALL)
def test_the_contract(loss):
    check_vector_loss(loss)


class Upside(Quartic):
    name = "upside"

    def gradient(self, y, f):
        return -super().gradient(y, f)


class Bent(Quartic):
    name = "bent"

    def hessian(self, y, f):
        return 2.0 * super().hessian(y, f)


class Hollow(SquaredOutputs):
    name = "hollow"

    def rows(self, y, f):
        return -super().rows(y, f)

    def gradient(self, y, f):
        return -super().gradient(y, f)

    def hessian(self, y, f):
        return -super().hessian(y, f)


@pytest.mark.parametrize(
    ("loss", "words"),
    [(Upside(), "gradient"), (Bent(), "hessian"), (Hollow(), "convex"), (object(), "VectorLoss")],
)
def test_the_contract_refuses(loss, words):
    with pytest.raises(AssertionError, match=words):
        check_vector_loss(loss)


def test_weighted_medians():
    assert weighted_median(np.array([3.0, 1.0, 2.0]), np.ones(3)) == 2.0
    assert weighted_median(np.array([4.0, 1.0]), np.ones(2)) == 2.5
    assert weighted_median(np.array([4.0, 1.0, 9.0]), np.array([0.1, 0.1, 5.0])) == 9.0

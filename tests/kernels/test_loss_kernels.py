"""Sums over rows: loss, derivative, curvature, dual value; fixed point; exp and log to the last places."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cardboost import _kernels
from cardboost.data.weights import RowWeights
from cardboost.problem.losses import LOSSES, SQUARED
from marks import first

SUMS = ("shift", "loss", "derivative", "curvature", "slope", "bend", "largest")
ALL = {**LOSSES, "squared": SQUARED}
losses = pytest.mark.parametrize("loss", ALL)
of_margins = pytest.mark.parametrize("loss", LOSSES)


def totals(rows: int, count: np.ndarray | None, factor: np.ndarray | None) -> tuple[float, float, float]:
    weight = reference.row_weights(count, factor, rows)
    return (
        float(rows if count is None else count.sum()),
        float(reference.exact_sum(weight)),
        1.0 if factor is None else float(factor.max()),
    )


@st.composite
def margins(draw, least=1):
    """Margins, targets (some with outliers), a direction, and weights as counts, factors, both or none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.one_of(st.integers(least, 300), st.sampled_from([1023, 1024, 1025, 2049])))
    spread = draw(st.sampled_from([0.01, 1.0, 10.0, 100.0]))
    F = rng.normal(draw(st.sampled_from([-3.0, 0.0, 5.0, 50.0])), spread, rows)
    D = rng.normal(0, 1, rows)
    count = rng.integers(1, 10, rows) if draw(st.booleans()) else None
    factor = rng.uniform(0.01, 1, rows) if draw(st.booleans()) else None
    target = draw(st.sampled_from([0.0, 1.0, 1e3])) * rng.standard_t(2.0, rows)
    if draw(st.booleans()):
        target[rng.integers(rows)] = draw(st.sampled_from([1e6, -1e6, 30.0]))
    return rng, F, target, D, count, factor


def run(loss, F, target, D, step, count, factor, threads=1, rows=None, sums=None):
    sums = totals(len(F), count, factor) if sums is None else sums
    target = target if loss == "squared" else None
    return _kernels.loss_pass(ALL[loss].code, F, target, D, step, count, factor, sums, rows, threads)


def run_dual(loss, F, target, theta, count, factor, threads=1, sums=None):
    sums = totals(len(F), count, factor) if sums is None else sums
    target = target if loss == "squared" else None
    return _kernels.dual_pass(ALL[loss].code, F, target, theta, count, factor, sums, threads)


@losses
@given(case=margins(), step=st.sampled_from([None, 0.0, 0.5, -1.0]))
@settings(max_examples=60)
def test_loss_pass(loss, case, step):
    _, F, target, D, count, factor = case
    D = None if step is None else D
    loss_target = target if loss == "squared" else None
    rows = np.empty((2, len(F)))
    got = dict(zip(SUMS, run(loss, F, target, D, step or 0.0, count, factor, rows=rows), strict=True))
    expected = reference.loss_pass(loss, F, loss_target, D, step or 0.0, count, factor)
    assert got["shift"] == expected["shift"]
    for name in ("loss", "derivative", "curvature"):
        assert got[name] == pytest.approx(expected[name], rel=1e-12)
    weight = totals(len(F), count, factor)[1]
    size = weight if loss in ("exponential", "logistic") else expected["derivative"]
    if D is not None:
        # signed sums: relative to the largest that they could be
        reach = np.abs(D).max()
        assert got["slope"] == pytest.approx(expected["slope"], rel=1e-12, abs=1e-13 * size * reach)
        assert got["bend"] == pytest.approx(expected["bend"], rel=1e-12, abs=1e-13 * weight * reach**2)
    z = F if D is None else F + step * D
    if loss_target is not None:
        np.testing.assert_array_equal(rows, np.array([loss_target - z, np.ones(len(F))]))
        assert got["largest"] == np.abs(rows[0]).max()
        return
    _, v, h = reference.loss_rows(loss, z + expected["shift"])
    np.testing.assert_allclose(rows, np.array([v, h], dtype=np.float64), rtol=1e-14, atol=1e-300)
    assert got["largest"] == (rows[0].max() if loss == "squared_hinge" else 1.0)


@losses
@given(case=margins())
@settings(max_examples=40)
def test_sums_do_not_depend_on_threads_or_order(loss, case):
    rng, F, target, D, count, factor = case
    first = run(loss, F, target, D, 0.3, count, factor)
    for threads in (2, 7):
        assert run(loss, F, target, D, 0.3, count, factor, threads) == first
    order = rng.permutation(len(F))
    moved = [None if part is None else part[order] for part in (F, target, D, count, factor)]
    sums = totals(len(F), count, factor)
    assert run(loss, *moved[:3], 0.3, *moved[3:], threads=2, sums=sums) == first
    dual = run_dual(loss, F, target, 0.7, count, factor, sums=sums)
    assert run_dual(loss, *moved[:2], 0.7, *moved[3:], threads=7, sums=sums) == dual


@losses
@given(case=margins())
@settings(max_examples=40)
def test_a_count_is_the_row_so_many_times(loss, case):
    _, F, target, D, count, factor = case
    count = np.ones(len(F), dtype=np.int64) if count is None else count
    again = [None if part is None else np.repeat(part, count) for part in (F, target, D, factor)]
    sums = totals(len(F), count, factor)
    assert run(loss, F, target, D, 0.3, count, factor, sums=sums) == run(
        loss, *again[:3], 0.3, None, again[3], sums=sums
    )
    one = run_dual(loss, F, target, 0.9, count, factor, sums=sums)
    assert one == run_dual(loss, *again[:2], 0.9, None, again[3], sums=sums)


@losses
@given(case=margins(), theta=st.sampled_from([1.0, 1 - 2**-53, 0.99, 0.5, 1e-6]))
@settings(max_examples=60)
def test_dual_pass(loss, case, theta):
    _, F, target, _, count, factor = case
    F = np.clip(F, -30, 100)
    sums = totals(len(F), count, factor)
    expected = reference.dual_pass(loss, F, target, theta, count, factor)
    got = run_dual(loss, F, target, theta, count, factor)
    if (
        loss == "squared"
    ):  # signed sums: relative to the sizes that go into them, one of which may be an outlier
        v, w = theta * (target - F), np.asarray(reference.row_weights(count, factor, len(F)), dtype=float)
        assert got == pytest.approx(expected, abs=2e-15 * float(w @ (np.abs(v * target) + v * v)))
        return
    v = theta * np.exp(-F.min())
    largest = max(1.0, abs(v - v * np.log(v))) if loss == "exponential" else 1.0
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-14 * largest * sums[1])


@of_margins
def test_exp_and_log_are_accurate(loss):
    """One row at a time: every sum is then the value of exp or log1p itself."""
    points = np.concatenate([np.linspace(-40, 40, 401), np.linspace(-700, 700, 101), [0.0, -0.0, 1e-300]])
    rows = np.empty((2, 1))
    for z in points:
        F = np.array([z, 0.0]) if loss == "exponential" and z > 0 else np.array([z])
        rows = np.empty((2, len(F)))
        sums = run(loss, F, None, None, 0.0, None, None, rows=rows)
        value, v, h = reference.loss_rows(loss, np.asarray(F, dtype=np.longdouble) + sums[0])
        np.testing.assert_allclose(rows[0], v.astype(np.float64), rtol=6e-16)
        np.testing.assert_allclose(rows[1], h.astype(np.float64), rtol=1.2e-15)
        if len(F) == 1:
            assert sums[1] == pytest.approx(float(value[0]), rel=8e-16)


@losses
def test_kernels_agree_with_the_classes(loss):
    F = np.linspace(-20, 20, 333)
    target = np.cos(F) if loss == "squared" else np.zeros(333)
    rows = np.empty((2, len(F)))
    shift, value, *_ = run(loss, F, target, None, 0.0, None, None, rows=rows)
    scale, one = np.exp(shift), ALL[loss]
    np.testing.assert_allclose(rows[0] * scale, -one.derivative(F - target), rtol=1e-13)
    np.testing.assert_allclose(rows[1] * scale, one.bend(F - target), rtol=1e-13)
    assert value * scale / len(F) == pytest.approx(one.value(F - target), rel=1e-13)
    dual = run_dual(loss, F, target, 0.8, None, None)
    expected = one.dual(-0.8 * one.derivative(F - target), target).sum()
    assert dual == pytest.approx(expected, rel=1e-12)


@given(st.floats(1e-200, 1e200), st.floats(1, 2.0**53))
def test_fixed_scale(total, total_count):
    scale = _kernels.fixed_scale(total, total_count)
    assert scale == reference.fixed_scale(total, total_count)
    assert Fraction(scale) * Fraction(total) + Fraction(total_count) / 2 < 2**63, "a sum could overflow"


@pytest.mark.parametrize("total", [0.0, -1.0, np.nan])
def test_fixed_scale_of_nothing(total):
    assert _kernels.fixed_scale(total, 10.0) == 1.0


@given(margins(), st.integers(1, 3), st.booleans(), st.sampled_from([2.0**20, 2.0**50, 2.0**55, 1e9]))
@settings(max_examples=40)
def test_quantise(case, width, signed, scale):
    rng, F, _, _, count, factor = case
    values = rng.uniform(-1, 1, (width, len(F)))
    values[:, :3] = 0.5 / scale  # halves round to even
    values[:, 1:3] = 1.5 / scale
    sign = rng.choice([-1, 1], len(F)).astype(np.int8) if signed else None
    use_sign = rng.integers(0, 2, width).astype(np.uint8)
    scales = np.full(width, scale)
    largest = 1.0 if factor is None else float(factor.max())
    expected = reference.quantise(values, sign, count, factor, scales, use_sign)
    for threads in (1, 2, 7):
        got = _kernels.quantise(
            values, sign, count, factor, largest, scales, np.ones(width), use_sign, threads
        )
        np.testing.assert_array_equal(got, expected)


@losses
@pytest.mark.parametrize("margin", [-1e4, 1e4, 800.0, -690.0])
def test_extreme_margins_stay_finite(loss, margin):
    F = np.array([margin, 0.0, margin])
    rows = np.empty((2, 3))
    sums = run(loss, F, np.zeros(3), None, 0.0, None, None, rows=rows)
    assert np.isfinite(sums).all()
    assert np.isfinite(rows).all()


@of_margins
def test_separable_rows_keep_their_digits(loss):
    """All margins large: the sums are tiny, and still exact to 1e-12."""
    F = np.full(1000, 60.0) + np.linspace(0, 1, 1000)
    got = dict(zip(SUMS, run(loss, F, None, None, 0.0, None, None), strict=True))
    expected = reference.loss_pass(loss, F, None, None, 0.0, None, None)
    for name in ("loss", "derivative", "curvature"):
        assert got[name] == pytest.approx(expected[name], rel=1e-12)


@pytest.mark.parametrize("weight", first(1, [1e-12, 1.0]))
def test_an_outlier_leaves_the_other_rows_their_digits(weight):
    """A residual of 1e6 among a million small and equal ones, whose roundings all go the same way."""
    rows = 1_000_000
    target, F = np.full(rows, 0.1), np.zeros(rows)
    target[7] = 1e6
    factor = np.ones(rows)
    factor[7] = weight
    got = dict(zip(SUMS, run("squared", F, target, None, 0.0, None, factor), strict=True))
    expected = reference.loss_pass("squared", F, target, None, 0.0, None, factor)
    for name in ("loss", "derivative", "curvature"):
        assert got[name] == pytest.approx(expected[name], rel=5e-13)
    assert got["largest"] == 1e6
    dual = reference.dual_pass("squared", F, target, 0.9, None, factor)
    assert run_dual("squared", F, target, 0.9, None, factor) == pytest.approx(dual, rel=5e-13)


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e-6, 1e6, 1e100])
def test_residuals_of_any_size(size):
    F, target = np.array([0.0, 0.0, 0.0]), size * np.array([1.0, -2.0, 0.5])
    got = dict(zip(SUMS, run("squared", F, target, target, 0.25, None, None), strict=True))
    expected = reference.loss_pass("squared", F, target, target, 0.25, None, None)
    assert got == pytest.approx(expected, rel=1e-13)
    assert run_dual("squared", F, target, 1.0, None, None) == pytest.approx(0.5 * float(target @ target))


def test_weights_of_any_size():
    weights = RowWeights.make(4, np.array([1e300, 3.3e300, 1e299, 2e300]))
    F = np.array([0.5, -1.0, 2.0, 0.0])
    got = _kernels.loss_pass(1, F, None, None, 0.0, weights.count, weights.factor, weights.totals, None, 1)
    expected = weights.normalised @ LOSSES["logistic"].rows(F)
    assert got[1] / weights.total == pytest.approx(expected, rel=1e-13)


@given(z=st.floats(-50, 0.999), other=st.floats(-50, 50))
def test_the_parabola_over_the_smooth_hinge(z, other):
    """The curvature that solvers get belongs to a parabola that lies nowhere below the loss."""
    value, v, h = (float(numbers[0]) for numbers in reference.loss_rows("smooth_hinge", np.array([z])))
    above = value - v * (other - z) + 0.5 * h * (other - z) ** 2
    assert above >= float(reference.loss_rows("smooth_hinge", np.array([other]))[0][0]) - 1e-12 * (1 + above)

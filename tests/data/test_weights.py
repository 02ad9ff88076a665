"""Row weights as counts times factors: what is recognised, and totals that no order of the rows changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.weights import RowWeights


def weights_of(made: RowWeights) -> np.ndarray:
    count = np.ones(made.n_rows) if made.count is None else made.count
    return count * (1.0 if made.factor is None else made.factor)


@pytest.mark.parametrize("value", [1.0, 2.0, 0.1, 1e300, 1e-300, 5e-324, 1.7e308])
def test_equal_weights_are_no_weights(value):
    made = RowWeights.make(4, np.full(4, value))
    assert made.factor is None
    assert made.totals == (made.total_count, made.total_count, 1.0)
    assert made.total_count == (8.0 if value == 2.0 else 4.0), (
        "a whole number is a count, anything else is one"
    )
    np.testing.assert_array_equal(made.normalised, 0.25)


@pytest.mark.parametrize("unit", [1.0, 0.25, 0.1, 1e300, 3.0])
def test_whole_multiples_are_counts(unit):
    count = np.array([1, 3, 2, 7])
    weights = count * unit
    made = RowWeights.make(4, weights)
    if np.array_equal(np.rint(weights / unit) * unit, weights):
        assert made.factor is None
        np.testing.assert_array_equal(made.normalised, count / 13)
    np.testing.assert_allclose(made.normalised, count / 13, rtol=1e-14)


positive = st.floats(1e-6, 1e6)


@given(st.lists(positive, min_size=1, max_size=60), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_totals_do_not_depend_on_the_order(values, random):
    weights = np.array(values)
    order = list(range(len(values)))
    random.shuffle(order)
    first, second = RowWeights.make(len(values), weights), RowWeights.make(len(values), weights[order])
    assert first.totals == second.totals
    np.testing.assert_array_equal(first.normalised[order], second.normalised)
    assert math.fsum(first.normalised) == pytest.approx(1, rel=1e-14)
    np.testing.assert_allclose(first.normalised, weights / math.fsum(values), rtol=1e-13)


@given(st.lists(positive, min_size=2, max_size=40), st.integers(-900, 900))
@settings(max_examples=60)
def test_a_power_of_two_does_not_show(values, exponent):
    weights = np.array(values)
    first, second = (
        RowWeights.make(len(values), weights),
        RowWeights.make(len(values), np.ldexp(weights, exponent)),
    )
    np.testing.assert_array_equal(first.normalised, second.normalised)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0.1, 0.7, 1.3])), min_size=2, max_size=40),
)
@settings(max_examples=60)
def test_a_count_is_the_row_so_many_times(pairs):
    """To the bit: the totals decide the units of every sum."""
    count, factor = (np.array(part, dtype=float) for part in zip(*pairs, strict=True))
    made = RowWeights.make(len(pairs), count, factor)
    times = count.astype(int)
    again = RowWeights.make(int(times.sum()), None, np.repeat(factor, times))
    assert made.totals == again.totals


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0.1, 0.7, 1.3])), min_size=1, max_size=40),
    st.sampled_from(["counts", "factors", "both", "none"]),
    st.data(),
)
@settings(max_examples=60)
def test_some_rows_keep_their_weights(pairs, kind, data):
    """As if only these rows had been given."""
    count, factor = (np.array(part, dtype=float) for part in zip(*pairs, strict=True))
    count = count if kind in ("counts", "both") else None
    factor = factor if kind in ("factors", "both") else None
    made = RowWeights.make(len(pairs), count, factor)
    chosen = data.draw(st.lists(st.sampled_from(range(len(pairs))), min_size=1, unique=True))
    rows = np.sort(np.array(chosen))
    part = made.take(rows)
    alone = RowWeights.make(
        len(rows), None if count is None else count[rows], None if factor is None else factor[rows]
    )
    assert part.totals == alone.totals
    np.testing.assert_array_equal(part.normalised, alone.normalised)
    share = made.normalised[rows]
    np.testing.assert_allclose(part.normalised, share / share.sum(), rtol=1e-14)


@st.composite
def weighted_values(draw):
    """Row weights of every kind, values of any size, and a group for every row."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 80))
    count = rng.integers(1, 9, n).astype(float) if draw(st.booleans()) else None
    factor = rng.choice([0.1, 0.7, 1.3], n) if draw(st.booleans()) else None
    values = rng.standard_t(1.5, n) * draw(st.sampled_from([0.0, 1e-300, 1.0, 1e6, 1e300]))
    return rng, count, factor, values, rng.integers(0, 4, n)


@given(weighted_values())
@settings(max_examples=100)
def test_sums_and_means(case):
    rng, count, factor, values, group = case
    n = len(values)
    made = RowWeights.make(n, count, factor)
    weights, size = weights_of(made), max(float(np.abs(values).max()), 5e-324)
    expected = [math.fsum((weights * (values / size))[group == g]) for g in range(4)]
    room = 1e-14 * math.fsum(weights * np.abs(values / size))
    np.testing.assert_allclose(made.sums(values, group, 4) / size, expected, rtol=1e-14, atol=room)
    assert made.mean(values) / size == pytest.approx(math.fsum(expected) / made.total, abs=room / made.total)
    order = rng.permutation(n)
    moved = RowWeights.make(n, *(None if own is None else own[order] for own in (count, factor)))
    assert moved.mean(values[order]) == made.mean(values)
    assert moved.sums(values[order], group[order], 4).tobytes() == made.sums(values, group, 4).tobytes()
    times = np.ones(n, int) if count is None else count.astype(int)
    again = RowWeights.make(times.sum(), None, None if factor is None else np.repeat(factor, times))
    assert again.mean(np.repeat(values, times)) == made.mean(values)
    assert again.sums(np.repeat(values, times))[0] == made.sums(values)[0]


def test_an_outlier_leaves_other_sums_their_digits():
    values, group = np.full(100_001, 0.1), np.zeros(100_001, int)
    values[0], group[0] = 1e5, 1
    made = RowWeights.make(100_001, None)
    assert made.sums(values, group, 2) == pytest.approx([1e4, 1e5], rel=1e-12)


def test_class_weights_multiply():
    made = RowWeights.make(3, np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.5, 0.3]))
    np.testing.assert_array_equal(made.count, [1, 2, 3])
    np.testing.assert_allclose(made.normalised, np.array([0.5, 1.0, 0.9]) / 2.4, rtol=1e-15)
    real = RowWeights.make(3, np.array([0.11, 0.2, 0.3]), np.array([0.5, 0.5, 0.3]))
    np.testing.assert_allclose(real.normalised, np.array([0.055, 0.1, 0.09]) / 0.245, rtol=1e-15)


@pytest.mark.parametrize(
    "weights", [[1e300, 1e-300], [1e300, 3.7e299, 1.0], [1.7e308, 1.1e308, 1.3e308], [5e-324, 1.0, 0.3]]
)
def test_extreme_weights_are_harmless(weights):
    made = RowWeights.make(len(weights), np.array(weights))
    assert np.isfinite(made.totals).all()
    assert np.isfinite(made.normalised).all()
    assert math.fsum(made.normalised) == pytest.approx(1)


def test_extreme_weights_with_class_weights():
    made = RowWeights.make(3, np.array([1.7e308, 1.1e308, 1.3e308]), np.array([3.0, 1.0, 2.0]))
    np.testing.assert_allclose(made.normalised, np.array([5.1, 1.1, 2.6]) / 8.8, rtol=1e-14)


def test_inputs_stay_as_they_are():
    weights, factor = np.array([0.3, 0.5]), np.array([2.0, 3.0])
    RowWeights.make(2, weights, factor)
    assert weights.tolist() == [0.3, 0.5]
    assert factor.tolist() == [2.0, 3.0]

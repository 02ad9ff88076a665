"""The simplest decimal in a gap, against its definition in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cardboost import _kernels
from reference import digits_of, simplest_decimals, simplicity

FLOAT32_MAX = float(np.finfo(np.float32).max)

numbers = st.one_of(
    st.floats(-1e4, 1e4),
    st.integers(-(10**9), 10**9).map(float),
    st.integers(-(10**6), 10**6).map(lambda n: n / 1000),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
)


@st.composite
def gaps(draw, values=numbers):
    """Two neighbouring values: far apart, close together, or next to each other among the floats."""
    x = draw(values)
    kind = draw(st.sampled_from(["free", "near", "next", "next32"]))
    if kind == "free":
        y = draw(values)
    elif kind == "near":
        y = x + abs(x) * draw(st.floats(1e-15, 1.0))
    elif kind == "next":
        y = math.nextafter(x, math.inf)
    else:
        y = float(np.nextafter(np.float32(np.clip(x, -3e38, 3e38)), np.float32(np.inf)))
    x, y = min(x, y), max(x, y)
    assume(x < y and math.isfinite(y))
    return x, y


@given(gaps())
@settings(max_examples=300)
@example((0.1, math.nextafter(0.1, 1)))
@example((2.0**24, 2.0**24 + 1))
@example((5e-324, 1e-323))
def test_as_simple_as_can_be(gap):
    assume(max(abs(gap[0]), abs(gap[1])) <= 8e9)
    check_simplicity(*gap)


@given(gaps(st.floats(-FLOAT32_MAX, FLOAT32_MAX)))
@example((-7e10, -1e9))
def test_as_simple_as_can_be_far_from_zero(gap):
    """Where 5^k times a small number passes float32's 24 bits."""
    assume(min(abs(gap[0]), abs(gap[1])) <= FLOAT32_MAX)
    check_simplicity(*gap)


@pytest.mark.parametrize("gap", [(5.0, 1e300), (-1e300, -5.0), (1e38, 1e39), (0.1, 1e39)])
def test_gaps_that_end_beyond_float32(gap):
    check_simplicity(*gap)


@given(gaps(st.floats(1e39, 1e300)))
def test_gaps_beyond_float32(gap):
    assume(gap[0] >= 1e39)
    check_simplicity(*gap)
    check_simplicity(-gap[1], -gap[0])


def check_simplicity(x, y):
    e = _kernels.simplest_decimal(x, y)
    assert x <= e < y
    best, _ = simplest_decimals(x, y)
    if best[0] == "digits":
        assert digits_of(e) == best[1]
    else:
        assert simplicity(e) == best


@given(gaps(st.one_of(st.integers(-(2**24), 2**24).map(float), st.floats(-(2.0**24), 2.0**24))))
@settings(max_examples=200)
def test_nearest_to_the_middle_among_equals(gap):
    x, y = gap
    e = _kernels.simplest_decimal(x, y)
    best, candidates = simplest_decimals(x, y)
    if best[0] in ("zeros", "places"):
        middle = (Fraction(x) + Fraction(y)) / 2
        nearest = min(abs(Fraction(c) - middle) for c in candidates)
        assert abs(Fraction(e) - middle) <= nearest + Fraction(1e-12) * (abs(middle) + 1)


@pytest.mark.parametrize(
    ("x", "y", "e"),
    [
        (-1.0, 1.0, 0.0),
        (0.0, 1.0, 0.0),
        (-1.0, 0.0, -1.0),
        (17.0, 23.0, 20.0),
        (94.0, 106.0, 100.0),
        (3.0, 4.0, 3.0),
        (3.1, 3.9, 3.5),
        (-3.9, -3.1, -3.5),
        (1234.5, 1236.0, 1235.0),
        (0.1, 0.2, 0.125),
    ],
)
def test_examples(x, y, e):
    assert _kernels.simplest_decimal(x, y) == e

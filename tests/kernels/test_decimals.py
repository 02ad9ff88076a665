"""The shortest decimal in a gap, against its definition in exact fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cardboost import _kernels
from reference import digits_of, shortest_decimal

FLOAT_MAX = float(np.finfo(np.float64).max)
TINY = 5e-324

numbers = st.one_of(
    st.floats(-1e4, 1e4),
    st.integers(-(10**9), 10**9).map(float),
    st.integers(-(10**6), 10**6).map(lambda n: n / 1000),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-40, 40).map(lambda n: n * TINY),
    st.integers(-330, 308).map(lambda k: float(f"1e{k}")),
)


@st.composite
def gaps(draw):
    """Two neighbouring values: far apart, close together, or next to each other among the floats."""
    x = draw(numbers)
    kind = draw(st.sampled_from(["free", "near", "next", "next32"]))
    if kind == "free":
        y = draw(numbers)
    elif kind == "near":
        y = x + abs(x) * draw(st.floats(1e-16, 1.0))
    elif kind == "next":
        y = x
        for _ in range(draw(st.integers(1, 4))):
            y = math.nextafter(y, math.inf)
    else:
        y = float(np.nextafter(np.float32(np.clip(x, -3e38, 3e38)), np.float32(np.inf)))
    x, y = min(x, y), max(x, y)
    assume(x < y and math.isfinite(y))
    return x, y


@given(gaps())
@settings(max_examples=300)
@example((0.1, math.nextafter(0.1, 1)))
@example((2.0**53 + 2, 2.0**53 + 4))  # the middle is a whole number that rounds to the end
@example((math.nextafter(1.0, 0), 1.0))
@example((math.nextafter(1000.0, 0), 1000.0))
@example((TINY, 2 * TINY))
@example((-TINY, 0.0))
@example((TINY, FLOAT_MAX))
@example((-FLOAT_MAX, -1e308))
def test_equal_to_its_twin(gap):
    assert _kernels.shortest_decimal(*gap) == shortest_decimal(*gap)


# every number of up to three significant digits between 1e-6 and 1e5, by their count, and zero
EVERY = {0: np.zeros(1)}
for length in (1, 2, 3):
    texts = [f"{n}e{k}" for k in range(-8, 5) for n in range(10 ** (length - 1), 10**length) if n % 10]
    EVERY[length] = np.array([sign * float(text) for text in texts for sign in (-1, 1)])

short = st.builds(lambda n, k: float(f"{n}e{k}"), st.integers(-999, 999), st.integers(-3, 1))


@given(short, short)
@settings(max_examples=300)
def test_no_decimal_of_a_gap_is_shorter_or_as_short_and_nearer_to_the_middle(x, y):
    x, y = min(x, y), max(x, y)
    assume(x < y)
    c = _kernels.shortest_decimal(x, y)
    assert x <= c < y
    inside = {length: rivals[(rivals >= x) & (rivals < y)] for length, rivals in EVERY.items()}
    fewest = min(length for length, rivals in inside.items() if len(rivals))
    assert digits_of(c) == fewest
    if y == 0 and x in (-1.0, -0.1, -0.01, -0.001):
        assert c == x  # any other decimal of one digit would have one more decimal place
    else:
        middle = (Fraction(x) + Fraction(y)) / 2
        assert abs(Fraction(c) - middle) == min(abs(Fraction(e) - middle) for e in inside[fewest].tolist())


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.integers(0, 9))
@settings(max_examples=300)
@example(-1, 1, 0)
@example(-1, 1, 3)
def test_no_cut_has_more_decimals_than_its_column(start, length, places):
    x, y = (float(Decimal(n).scaleb(-places)) for n in (start, start + length))
    c = Decimal(repr(_kernels.shortest_decimal(x, y)))
    assert -c.normalize().as_tuple().exponent <= places


@pytest.mark.parametrize(
    ("x", "y", "c"),
    [
        (-1.0, 1.0, 0.0),
        (0.0, 1.0, 0.0),
        (-1.0, 0.0, -1.0),
        (-100.0, 0.0, -50.0),
        (17.0, 23.0, 20.0),
        (94.0, 106.0, 100.0),
        (3.0, 4.0, 3.0),
        (3.1, 3.9, 3.5),
        (-3.9, -3.1, -3.5),
        (1234.5, 1236.0, 1235.0),
        (0.1, 0.2, 0.1),
        (0.1346, 0.1357, 0.135),
        (76.51, 77.64, 77.0),
        (9.95, 10.4, 10.0),
        (0.5, 300.0, 200.0),
        (1.0, 4.0, 2.0),
        (1.0e-300, 1.5e-300, 1e-300),
    ],
)
def test_examples(x, y, c):
    assert _kernels.shortest_decimal(x, y) == c

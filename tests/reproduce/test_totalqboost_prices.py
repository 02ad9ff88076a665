"""Prices: hulls by brute force, and prices at which the sizes of the hull are the best."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardboost.reproduce.totalqboost import hull, spread_prices

RISKS = st.lists(st.integers(0, 1000), min_size=2, max_size=25).map(lambda own: [1001.0, *map(float, own)])


def best_size(risks, price):
    return int(np.argmin([risk + price * k for k, risk in enumerate(risks)]))


@given(RISKS)
def test_hulls_by_brute_force(risks):
    """Only these sizes are ever the best, and each of them is, for some price."""
    found = hull(risks)
    slopes = [(risks[a] - risks[b]) / (b - a) for a, b in pairwise(found)]
    assert all(a > b for a, b in pairwise(slopes))
    assert found[0] == 0
    assert risks[found[-1]] == min(risks)
    edges = [2 * slopes[0], *slopes, 0.0]
    for size, above, below in zip(found, edges, edges[1:], strict=False):
        assert best_size(risks, (above + below) / 2) == size
    for price in np.linspace(0.01, 1.1 * slopes[0], 60):
        assert best_size(risks, price) in found or price in slopes


@given(RISKS, st.integers(2, 12), st.floats(1e-3, 2.0))
def test_prices_fall_and_give_sizes_of_the_hull(risks, count, least):
    prices = spread_prices(risks, least, count)
    assert len(prices) == count
    assert all(a > b for a, b in pairwise(prices))
    sizes = hull(risks)
    assert all(best_size(risks, price) > 0 for price in prices)
    slope = (risks[0] - risks[sizes[1]]) / sizes[1]
    assert prices[-1] == pytest.approx(min(least, 0.5 * slope))


def test_prices_by_hand():
    """Slopes 8, 4 and 1: sizes 1, 2 and 4."""
    risks = [20.0, 12.0, 8.0, 7.5, 6.0]
    assert hull(risks) == [0, 1, 2, 4]
    # behind them, for sizes that are not known, twice the least price and the least
    prices = spread_prices(risks, 0.2, 5)
    assert prices == pytest.approx([32**0.5, 2.0, 0.2**0.5, 0.4, 0.2])
    assert [best_size(risks, price) for price in prices] == [1, 2, 4, 4, 4]
    assert spread_prices(risks, 2.0, 3) == pytest.approx([32**0.5, 8**0.5, 2.0])
    assert spread_prices(risks, 0.25, 2) == pytest.approx([32**0.5, 0.25])


def test_nothing_to_choose_from():
    with pytest.raises(ValueError, match="no column lowers the risk"):
        spread_prices([1.0, 1.0], 0.1, 3)

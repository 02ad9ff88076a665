"""Prices of weights: the convex price is the largest convex function below the true one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardboost.problem.bound import gain_terms, guarantee, kappa
from cardboost.problem.prices import PriceRule, Prices

amounts = st.sampled_from([0.0, 0.003, 0.1, 2.0])
boxes = st.sampled_from([0.0, 0.05, 1.0, 7.0, np.inf])


def one(l1, l2, l0, box) -> Prices:
    return Prices(*(np.array([float(x)]) for x in (l1, l2, l0, box)), np.array([True]))


def envelope(w: float, l1, l2, l0, box) -> float:
    """The convex price by its definition: the cheapest mix of zero and one weight that averages to w."""
    top = box if np.isfinite(box) else max(100.0, 10 * w)
    levels = np.concatenate([np.linspace(w, top, 4001), [w]])
    levels = levels[levels > 0]
    costs = (w / levels) * (l0 + l1 * levels + 0.5 * l2 * levels**2)
    return float(costs.min())


@given(amounts, amounts, amounts, boxes, st.floats(0, 1))
def test_relaxed_price(l1, l2, l0, box, share):
    prices = one(l1, l2, l0, box)
    w = share * (box if np.isfinite(box) else 10.0)
    relaxed, true = prices.relaxed_cost(np.array([w])), prices.cost(np.array([w]))
    assert relaxed <= true * (1 + 1e-12) + 1e-15
    if l0 == 0.0:
        assert relaxed == pytest.approx(true)
    if w > 1e-9 and (np.isfinite(box) or l2 > 0):
        assert relaxed == pytest.approx(envelope(w, l1, l2, l0, box), rel=1e-3, abs=1e-9)
    assert np.isfinite(relaxed)


@given(amounts, amounts, amounts, boxes)
def test_relaxed_price_is_convex(l1, l2, l0, box):
    prices = one(l1, l2, l0, box)
    grid = np.linspace(0, box if np.isfinite(box) else 10.0, 101)
    costs = np.array([prices.relaxed_cost(np.array([w])) for w in grid])
    assert (np.diff(costs, 2) >= -1e-12).all()


@given(amounts, amounts, boxes, st.floats(-1, 3))
def test_kappa(l1, l2, box, edge):
    """The most that a weight in the box can gain at this edge."""
    value = float(kappa(np.array([edge]), one(l1, l2, 0.0, box))[0])
    if edge <= l1:
        assert value == 0.0
    elif np.isinf(box) and l2 == 0:
        assert value == np.inf
    else:
        grid = np.linspace(0, box if np.isfinite(box) else (edge - l1) / l2, 1001)
        assert value == pytest.approx(np.max((edge - l1) * grid - 0.5 * l2 * grid**2), rel=1e-5, abs=1e-12)


def test_gain_terms_of_a_budget():
    prices = PriceRule(0.0, 0.0, 0.1, 1.0).prices(5, 1)
    c = np.array([0.5, 0.3, 0.9, 0.2, 0.05])
    assert gain_terms(c, prices, None) == pytest.approx(30 * 0.5 + 0.2 + 0.8 + 0.1)
    assert gain_terms(c, prices, 1) == pytest.approx(30 * 0.5 + 0.8)
    assert gain_terms(c, prices, 2, 0.4) == pytest.approx(30 * 0.5 + 0.8 + 0.4)
    assert gain_terms(c, prices, 0) == pytest.approx(30 * 0.5)
    assert gain_terms(c, prices, None, 0.4) == np.inf


def test_the_intercept_is_free_but_boxed():
    prices = PriceRule(0.1, 0.2, 0.3, 4.0, 9.0).prices(4, 2)
    assert prices.l1.tolist() == [0, 0, 0.1, 0.1]
    assert prices.max_weight.tolist() == [9, 9, 4, 4]
    assert prices.charged.tolist() == [False, False, True, True]
    assert prices.convex().l0.tolist() == [0, 0, 0, 0]
    assert prices.with_l0(np.ones(4)).l0.tolist() == [1, 1, 1, 1]


def test_guarantee():
    assert guarantee(1.0, 0.5, 0.5) == 1.0
    assert guarantee(1.0, 0.6, 0.5) == pytest.approx(0.8)
    assert guarantee(1.0, 1.0, 0.5) == 0.0
    assert guarantee(0.5, 0.5, 0.5) == 1.0

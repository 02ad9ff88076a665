"""Columns given as a matrix, bytes or reals, against plain products."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.weights import RowWeights
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.problem.losses import LOSSES, SQUARED
from cardboost.problem.risk import EmpiricalRisk


@st.composite
def cases(draw):
    """Columns (one per row of ``a``), and a point with random margins and weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, n = draw(st.one_of(st.integers(1, 80), st.just(1030))), draw(st.integers(1, 8))
    kind = draw(st.sampled_from(["signs", "zeros", "whole", "real", "large"]))
    a = {
        "signs": rng.choice([-1, 1], (n, rows)),
        "zeros": rng.integers(-1, 2, (n, rows)),
        "whole": rng.integers(-9, 10, (n, rows)),
        "real": rng.normal(size=(n, rows)),
        "large": 1e6 * rng.normal(size=(n, rows)),
    }[kind]
    if draw(st.booleans()):
        a = np.asfortranarray(a.astype(float))
    raw = {"none": None, "counts": rng.integers(1, 5, rows).astype(float), "real": rng.uniform(0.1, 2, rows)}
    weights = RowWeights.make(rows, raw[draw(st.sampled_from(sorted(raw)))])
    loss = draw(st.sampled_from([*LOSSES.values(), SQUARED]))
    target = rng.standard_t(2.0, rows) if loss is SQUARED else None
    risk = EmpiricalRisk(loss, weights, None, target=target)
    return rng, a, risk.evaluate(rng.normal(size=rows))


def dual_weights(point):
    s, loss = point.risk.weights.normalised, point.risk.loss
    F = point.F if point.risk.target is None else point.F - point.risk.target
    return -s * loss.derivative(F), s * loss.bend(F)


@given(cases())
@settings(max_examples=80)
def test_pool_agrees_with_plain_products(case):
    rng, a, point = case
    pool = MatrixPool(ColumnStore(a))
    assert pool.n_columns == pool.n_free == 0
    which = rng.permutation(len(a))[: rng.integers(0, len(a) + 1)]
    pool.append(which)
    dense = a[which].T.astype(float)
    np.testing.assert_array_equal(pool.dense(), dense)
    weights = np.where(rng.random(len(which)) < 0.3, 0.0, rng.uniform(0, 1, len(which)))
    largest = np.abs(a).max()
    np.testing.assert_allclose(pool.margins(weights), dense @ weights, rtol=1e-12, atol=1e-13 * largest)
    u, curvature = dual_weights(point)
    np.testing.assert_allclose(pool.edges(point), u @ dense, atol=1e-12 * np.abs(u).sum() * largest)
    gram, room = (dense.T * curvature) @ dense, 1e-12 * curvature.sum() * largest**2
    np.testing.assert_allclose(pool.gram(point), gram, atol=room)
    left = rng.permutation(len(which))[: len(which) // 2]
    np.testing.assert_allclose(pool.gram(point, left), gram[left], atol=room)
    np.testing.assert_array_equal(pool.subset(left).dense(), dense[:, left])


def test_small_entries_are_kept_as_bytes():
    assert ColumnStore(np.array([[1.0, -1.0, 0.0]])).values.dtype == np.int8
    assert ColumnStore(np.array([[1, -1]])).signs
    assert not ColumnStore(np.array([[1, 0]])).signs
    for other in ([[1.0, 0.5]], [[2, 1]], [[-128, 1]], [[300, 1]]):
        assert ColumnStore(np.array(other)).values.dtype == np.float64


@pytest.mark.parametrize("entry", [1e10, -1e300, 3e9, 128.0, 0.1])
def test_large_entries_are_taken_silently(entry):
    store = ColumnStore(np.array([[entry, 1.0, -1.0]]))
    np.testing.assert_array_equal(store.values, [[entry, 1.0, -1.0]])


def test_gram_of_enormous_entries():
    weights = RowWeights.make(3, None)
    point = EmpiricalRisk(LOSSES["logistic"], weights, None).evaluate(np.zeros(3))
    pool = MatrixPool(ColumnStore(np.array([[1e150, -1e150, 1e150]])))
    pool.append([0])
    np.testing.assert_allclose(pool.gram(point), [[0.25e300]], rtol=1e-12)


def test_a_store_grows():
    store = ColumnStore(np.array([[1, -1, 1]], dtype=np.int8))
    store.append(np.array([[-1, -1, 1]], dtype=np.int8))
    assert store.values.dtype == np.int8
    store.append(np.array([[0.5, 0.25, -3.0]]))
    np.testing.assert_array_equal(store.values, [[1, -1, 1], [-1, -1, 1], [0.5, 0.25, -3.0]])
    assert store.largest == 3.0
    assert len(store) == 3


KINDS = [[1, -1, 1], [0, 1, -1], [0, 0, 0], [2, 1, 0], [0.5, 0.25, -3.0], [0.5, 0.0, 0.1]]


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_a_store_that_has_grown_is_the_store_of_all_columns(first, second):
    for dtype in (np.float64, None):
        grown = ColumnStore(np.array([first]))
        grown.append(np.array([second], dtype=dtype))
        whole = ColumnStore(np.array([first, second]))
        assert grown.values.dtype == whole.values.dtype
        assert grown.values.flags.c_contiguous
        np.testing.assert_array_equal(grown.values, whole.values)
        assert (grown.signs, grown.largest) == (whole.signs, whole.largest)


def test_the_matrix_stays_as_it_is():
    a = np.array([[1.0, -1.0], [0.5, 2.0]])
    before = a.copy()
    MatrixPool(ColumnStore(a)).append([1])
    np.testing.assert_array_equal(a, before)

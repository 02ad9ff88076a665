"""Margins, edges and Gram matrices of columns that are stored as such."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cardboost import _kernels


@st.composite
def stores(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.one_of(st.integers(0, 200), st.sampled_from([1023, 1024, 1025])))
    n = draw(st.integers(1, 6))
    picks = [rng.integers(0, n, draw(st.integers(0, 6))).astype(np.int32) for _ in range(2)]
    return rng, rows, n, *picks


@given(stores(), st.booleans())
@settings(max_examples=40)
def test_margins(case, small):
    rng, rows, n, columns, _ = case
    a = rng.integers(-1, 2, (n, rows)).astype(np.int8) if small else rng.normal(size=(n, rows))
    weights = rng.normal(size=len(columns))
    expected = reference.dense_margins(a, columns, weights)
    for threads in (1, 2, 7):
        np.testing.assert_array_equal(_kernels.dense_margins(a, columns, weights, threads), expected)


@given(stores(), st.booleans())
@settings(max_examples=40)
def test_edges_and_gram_of_bytes(case, signs):
    rng, rows, n, columns, left = case
    a = (rng.choice([-1, 1], (n, rows)) if signs else rng.integers(-1, 2, (n, rows))).astype(np.int8)
    q = rng.integers(-(2**45), 2**45, rows)
    edges, gram = reference.dense_edges(a, columns, q), reference.dense_gram(a, left, columns, q)
    for threads in (1, 2, 7):
        np.testing.assert_array_equal(_kernels.dense_edges(a, signs, columns, q, threads), edges)
        np.testing.assert_array_equal(_kernels.dense_gram(a, signs, left, columns, q, threads), gram)


@given(stores(), st.sampled_from([2.0**20, 2.0**44, 2.0**49]), st.booleans())
@settings(max_examples=40)
def test_edges_and_gram_of_real_columns(case, scale, counted):
    rng, rows, n, columns, left = case
    a = rng.uniform(-2, 2, (n, rows))
    value = rng.uniform(0, 1, rows)
    count = rng.integers(1, 9, rows) if counted else None
    quick = 4 * scale < 2.0**51
    edges = reference.dense_edges_real(a, columns, value, count, scale)
    gram = reference.dense_gram_real(a, left, columns, value, count, scale)
    for threads in (1, 2, 7):
        for way in {quick, False}:
            got = _kernels.dense_edges_real(a, columns, value, count, scale, way, threads)
            np.testing.assert_array_equal(got, edges)
            got = _kernels.dense_gram_real(a, left, columns, value, count, scale, way, threads)
            np.testing.assert_array_equal(got, gram)


def test_enough_work_for_several_threads():
    """Small calls run on one thread whatever is asked for; this one does not."""
    rng = np.random.default_rng(0)
    a = rng.choice([-1, 1], (8, 120_001)).astype(np.int8)
    q, value = rng.integers(-(2**40), 2**40, 120_001), rng.uniform(size=120_001)
    columns, weights = np.arange(8, dtype=np.int32), rng.normal(size=8)
    real = a * rng.uniform(0.5, 1, a.shape)
    calls = [
        lambda t: _kernels.dense_margins(a, columns, weights, t),
        lambda t: _kernels.dense_edges(a, True, columns, q, t),
        lambda t: _kernels.dense_gram(a, True, columns, columns, q, t),
        lambda t: _kernels.dense_edges_real(real, columns, value, None, 2.0**40, True, t),
        lambda t: _kernels.dense_gram_real(real, columns, columns, value, None, 2.0**40, True, t),
    ]
    for call in calls:
        first = call(1)
        for threads in (2, 7):
            np.testing.assert_array_equal(call(threads), first)
    np.testing.assert_array_equal(calls[1](2), a.astype(np.int64) @ q)

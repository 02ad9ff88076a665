"""The kernels of networks against their twins, and the same bits for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cardboost import _kernels
from cardboost.dictionary.nets import BLOCK, in_blocks


def drawn(seed: int, rows: int, n: int, h: int, m: int, size: float):
    rng = np.random.default_rng(seed)
    Z1 = np.column_stack([rng.normal(size=(rows, n)), np.ones(rows)])
    T, Q = rng.normal(size=(rows, m)), rng.random((rows, m))
    return Z1, size * rng.normal(size=(n + 1, h)), T, Q, rng.normal(size=(h + 1, m))


def run(Z1, W, activation, T, Q, V, shared, threads):
    z, t, q = in_blocks(Z1), in_blocks(T), in_blocks(Q)
    a = np.empty((len(z), W.shape[1] + 1, BLOCK))
    gram, right = _kernels.net_hidden(z, W, activation, t, q, shared, a, threads)
    return a, gram, right, *_kernels.net_errors(z, a, activation, t, q, V, threads)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 700),
    n=st.integers(1, 9),
    h=st.integers(1, 9),
    m=st.integers(1, 4),
    activation=st.integers(0, 2),
    shared=st.booleans(),
    size=st.sampled_from([0.0, 1e-9, 1.0, 30.0, 1e6]),
)
def test_nets(seed, rows, n, h, m, activation, shared, size):
    Z1, W, T, Q, V = drawn(seed, rows, n, h, m, size)
    a, gram, right, loss, first, last = run(Z1, W, activation, T, Q, V, shared, 1)
    with np.errstate(over="ignore"):
        A1, grams, rights = reference.net_hidden(Z1, W, activation, T, Q, shared)
    flat = a.transpose(0, 2, 1).reshape(-1, h + 1)[:rows]
    reach = 1.0 + np.abs(A1).max()
    np.testing.assert_allclose(flat, A1, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(gram, grams, rtol=1e-11, atol=1e-12 * rows * reach**2)
    np.testing.assert_allclose(right, rights, rtol=1e-11, atol=1e-12 * rows * reach)
    expected = reference.net_errors(Z1, A1, activation, T, Q, V)
    np.testing.assert_allclose(loss, expected[0], rtol=1e-11)
    np.testing.assert_allclose(first, expected[1], rtol=1e-10, atol=1e-11 * rows * reach * 10)
    np.testing.assert_allclose(last, expected[2], rtol=1e-10, atol=1e-11 * rows * reach**2 * 10)


@pytest.mark.parametrize("rows", [63, 64, 65, 3000, 20_000])
def test_threads_change_no_bit(rows):
    given_ = drawn(1, rows, 7, 6, 2, 1.0)
    Z1, W, T, Q, V = given_
    alone = run(Z1, W, 0, T, Q, V, False, 1)
    for threads in (2, 3, 5):
        for one, other in zip(alone, run(Z1, W, 0, T, Q, V, False, threads), strict=True):
            assert np.array_equal(one, other)


def test_rows_of_weight_zero_change_nothing():
    Z1, W, T, Q, V = drawn(2, 64, 3, 4, 1, 1.0)
    more = np.vstack([Z1, Z1 * 5.0]), np.vstack([T, T * 9.0]), np.vstack([Q, np.zeros_like(Q)])
    alone = run(Z1, W, 0, T, Q, V, True, 1)
    together = run(more[0], W, 0, more[1], more[2], V, True, 1)
    for one, other in zip(alone[1:], together[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)

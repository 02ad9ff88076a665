"""Packed signs agree with their twin; what is no sign is noticed. Their products: test_lbfgs.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from cardboost import _kernels


@given(st.integers(1, 150), st.integers(1, 80), st.integers(0, 10**6), st.sampled_from([np.float64, np.int8]))
def test_packing_both_ways(rows, columns, seed, dtype):
    rng = np.random.default_rng(seed)
    A = rng.choice([-1, 1], (rows, columns)).astype(dtype)
    A = np.concatenate([A, -A[:, ::2], A[:, ::3], -A[:, ::3]], axis=1)
    for signs, *packed in (
        _kernels.pack_signs(A, False),
        _kernels.pack_signs(np.ascontiguousarray(A.T), True),
    ):
        assert signs
        for result, expected in zip(packed, reference.pack_signs(A), strict=True):
            np.testing.assert_array_equal(result, expected)


def test_columns_that_differ_are_never_merged():
    A = np.array(np.meshgrid(*[[-1.0, 1.0]] * 9)).reshape(9, -1)
    sides = _kernels.pack_signs(A, False)[-1]
    assert sides.shape == (2, 2**8)
    np.testing.assert_array_equal(A[:, sides[0]], -A[:, sides[1]])


def test_very_many_equal_columns():
    sides = _kernels.pack_signs(np.ones((3, 200_000), np.int8), False)[-1]
    np.testing.assert_array_equal(sides, [np.arange(200_000), np.full(200_000, -1)])


@pytest.mark.parametrize("wrong", [0, 2, -2, 127, -128])
def test_other_bytes_are_no_signs(wrong):
    a = np.ones((3, 70), np.int8)
    a[2, 69] = wrong
    assert not _kernels.pack_signs(a, False)[0]
    assert not _kernels.pack_signs(a, True)[0]


@pytest.mark.parametrize("wrong", [0.0, -0.0, np.nan, np.inf, 1 + 1e-15, -1 + 1e-15, 2.0])
def test_other_numbers_are_no_signs(wrong):
    a = np.ones((3, 70))
    a[1, 0] = wrong
    assert not _kernels.pack_signs(a, False)[0]


@given(st.integers(1, 200), st.integers(0, 70), st.integers(0, 10**6), st.sampled_from([1, 2, 3]))
def test_products_with_packed_columns(rows, columns, seed, threads):
    """Edges, Gram matrix and margins of columns of bits; bits beyond the rows do not show."""
    rng = np.random.default_rng(seed)
    A = rng.choice([-1, 1], (rows, columns))
    bits = np.ones((-(-rows // 64) * 64, columns), np.uint8)
    bits[:rows] = A < 0
    grouped = np.packbits(bits, axis=0, bitorder="little").reshape(-(-rows // 64), 8, columns)
    grouped = np.ascontiguousarray(grouped.transpose(0, 2, 1)).view(np.uint64)[..., 0]
    q = rng.integers(-(2**62) // rows, 2**62 // rows, rows)
    np.testing.assert_array_equal(_kernels.sign_edges(grouped, q, threads), q @ A)
    gram = (A.T * q) @ A
    np.testing.assert_array_equal(_kernels.sign_gram(grouped, 0, q, threads), gram)
    done = columns // 2
    inside = grouped.copy()
    if rows % 64:
        inside[-1] &= np.uint64((1 << rows % 64) - 1)
    counts = A.T @ A
    np.testing.assert_array_equal(_kernels.sign_counts(inside, 0, rows, threads), counts)
    counts[:done, :done] = 0
    np.testing.assert_array_equal(_kernels.sign_counts(inside, done, rows, threads), counts)
    gram[:done, :done] = 0
    np.testing.assert_array_equal(_kernels.sign_gram(grouped, done, q, threads), gram)
    weights = np.where(rng.random(columns) < 0.3, 0.0, rng.normal(size=columns))
    expected = np.zeros(rows)
    for k in range(columns):
        expected += weights[k] * A[:, k]
    np.testing.assert_array_equal(_kernels.sign_margins(grouped, weights, rows, threads), expected)


def test_products_are_equal_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    grouped = rng.integers(0, 2**63, (300, 90), dtype=np.uint64)
    q = rng.integers(-(2**45), 2**45, 300 * 64 - 5)
    weights = rng.normal(size=90)
    for threads in (2, 3):
        for call in (
            lambda t: _kernels.sign_edges(grouped, q, t),
            lambda t: _kernels.sign_gram(grouped, 0, q, t),
            lambda t: _kernels.sign_margins(grouped, weights, len(q), t),
        ):
            np.testing.assert_array_equal(call(1), call(threads))

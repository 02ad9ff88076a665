"""Packed signs and their products agree with plain matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from cardboost import _kernels

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(0, 10**6))


@given(SHAPES, st.sampled_from([np.float64, np.int8]))
def test_packing_both_ways(shape, dtype):
    lines, length, seed = shape
    a = np.random.default_rng(seed).choice([-1, 1], (lines, length)).astype(dtype)
    signs, packed = _kernels.pack_signs(a)
    assert signs
    np.testing.assert_array_equal(packed, reference.pack_signs(a))
    np.testing.assert_array_equal(_kernels.transpose_signs(packed, lines), reference.pack_signs(a.T))


@given(SHAPES)
def test_products(shape):
    lines, length, seed = shape
    rng = np.random.default_rng(seed)
    a = rng.choice([-1, 1], (lines, length)).astype(np.int8)
    packed = reference.pack_signs(a)
    whole = rng.integers(-(2**50), 2**50, lines) * rng.choice([0, 1], lines)
    np.testing.assert_array_equal(_kernels.sign_sums(packed, whole), a.T.astype(np.int64) @ whole)
    real = rng.normal(size=lines) * rng.choice([0, 1], lines)
    np.testing.assert_allclose(_kernels.sign_sums(packed, real), a.T @ real, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wrong", [0, 2, -2, 127, -128])
def test_other_bytes_are_no_signs(wrong):
    a = np.ones((3, 5), np.int8)
    a[2, 4] = wrong
    assert not _kernels.pack_signs(a)[0]


@pytest.mark.parametrize("wrong", [0.0, -0.0, np.nan, np.inf, 1 + 1e-15, -1 + 1e-15, 2.0])
def test_other_numbers_are_no_signs(wrong):
    a = np.ones((3, 5))
    a[1, 0] = wrong
    assert not _kernels.pack_signs(a)[0]

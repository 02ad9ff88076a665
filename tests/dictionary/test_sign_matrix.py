"""A packed matrix is the plain one, whatever its layout, number type and repeated columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from cardboost.dictionary.signs import SignMatrix


@given(st.integers(1, 90), st.integers(1, 30), st.integers(0, 10**6), st.sampled_from("CFS"))
def test_any_layout(rows, columns, seed, order):
    rng = np.random.default_rng(seed)
    A = rng.choice([-1.0, 1.0], (rows, columns))
    A = np.concatenate([A, -A[:, ::2], A[:, ::3]], axis=1)
    given_as = np.repeat(A, 2, axis=1)[:, ::2] if order == "S" else np.asarray(A, order=order)
    signs = SignMatrix.pack(given_as)
    assert signs is not None
    for found, expected in zip(
        (signs.by_column, signs.by_row, signs.sides), reference.pack_signs(A), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, np.float32, np.float64])
def test_any_number_type(dtype):
    A = np.array([[1, -1, 1], [-1, 1, 1]])
    signs = SignMatrix.pack(A.astype(dtype))
    assert signs is not None
    np.testing.assert_array_equal(signs.sides, [[0, 2], [1, -1]])
    A[0, 0] = 0
    assert SignMatrix.pack(A.astype(dtype)) is None

"""A packed matrix multiplies as the plain one does, whatever its layout and however often a column occurs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardboost.data.weights import RowWeights
from cardboost.dictionary.signs import SignMatrix
from cardboost.losses import get_loss
from cardboost.risk import EmpiricalRisk


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 10**6), st.sampled_from("CF"))
def test_products_with_equal_and_opposite_columns(rows, columns, seed, order):
    rng = np.random.default_rng(seed)
    A = rng.choice([-1.0, 1.0], (rows, columns))
    A = np.concatenate([A, -A[:, ::2], A[:, ::3]], axis=1)
    signs = SignMatrix.pack(np.asarray(A, order=order))
    assert signs is not None
    assert signs.n_stored <= columns
    w = rng.normal(size=A.shape[1])
    F = signs.margins(w)
    np.testing.assert_allclose(F, A @ w, rtol=1e-12, atol=1e-12)
    point = EmpiricalRisk(get_loss("logistic"), RowWeights.make(rows, None), None).evaluate(F)
    np.testing.assert_allclose(signs.edges(point), A.T @ point.v / rows, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, np.float32, np.float64])
def test_any_number_type(dtype):
    A = np.array([[1, -1, 1], [-1, 1, 1]])
    signs = SignMatrix.pack(A.astype(dtype))
    assert signs is not None
    np.testing.assert_array_equal(signs.margins(np.array([1.0, 2.0, 4.0])), A @ [1, 2, 4])
    A[0, 0] = 0
    assert SignMatrix.pack(A.astype(dtype)) is None


def test_columns_that_differ_are_never_merged():
    """Sums that agree by chance do not merge columns: bytes decide."""
    A = np.array(np.meshgrid(*[[-1.0, 1.0]] * 9)).reshape(9, -1)
    signs = SignMatrix.pack(A)
    assert signs is not None
    assert signs.n_stored == 2**8

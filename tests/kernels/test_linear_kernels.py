"""The kernels of linear models against their twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference
from cardboost import _kernels


def table(seed: int, rows: int, columns: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)) + 0.5
    if kind == "sparse":
        x *= rng.random((rows, columns)) < 0.3
    if kind == "constant":
        x[:, ::2] = 1.5
    if kind == "doubled" and columns > 1:
        x[:, -1] = x[:, 0]
    if kind == "large":
        x *= 10.0 ** rng.integers(-8, 9, columns)
    return x


KINDS = ["plain", "sparse", "constant", "doubled", "large"]


@settings(max_examples=60)
@given(seed=st.integers(0, 2**31), rows=st.integers(0, 200), scale=st.sampled_from([0.0, 1.0, 30.0, 1e3]))
def test_logistic_rows(seed, rows, scale):
    rng = np.random.default_rng(seed)
    f, s = scale * rng.normal(size=rows), rng.random(rows)
    y = rng.choice([-1.0, 1.0], rows)
    pull, curvature = np.empty(rows), np.empty(rows)
    loss = _kernels.logistic_rows(f, y, s, pull, curvature)
    expected = reference.logistic_rows(f, y, s)
    for result, number in zip((loss, pull, curvature), expected, strict=True):
        np.testing.assert_allclose(result, number, rtol=1e-12, atol=1e-300)
    theta = float(rng.random())
    result = _kernels.logistic_dual(pull, np.maximum(s, 1e-9), theta)
    np.testing.assert_allclose(
        result, reference.logistic_dual(pull, np.maximum(s, 1e-9), theta), rtol=1e-12, atol=1e-14
    )


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**31), rows=st.integers(0, 150), columns=st.integers(0, 19),
    kind=st.sampled_from(KINDS), squared=st.booleans(), intercept=st.booleans(),
)  # fmt: skip
def test_rows_pass(seed, rows, columns, kind, squared, intercept):
    x = table(seed, rows, columns, kind)
    rng = np.random.default_rng(seed + 1)
    coef, s, y = rng.normal(size=columns), rng.random(rows), rng.choice([-1.0, 1.0], rows)
    coef /= np.maximum(1.0, np.abs(x).max(axis=0, initial=0.0))
    z, out = np.append(coef, 0.25), np.empty((3, rows))
    loss, objective, slopes = _kernels.rows_pass(x, z, 0.125, intercept, squared, y, s, out, 1)
    expected = reference.rows_pass(x, z, 0.125, intercept, squared, y, s)
    size = np.abs(x).max(initial=1.0)
    for result, number in zip((loss, objective, *out, *slopes), expected, strict=True):
        np.testing.assert_allclose(result, number, rtol=1e-10, atol=1e-12 * size * max(rows, 1))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**31), n=st.integers(1, 40), held=st.integers(0, 4),
    kind=st.sampled_from(["scale", "factor", "root"]),
)  # fmt: skip
def test_quasi_newton(seed, n, held, kind):
    rng = np.random.default_rng(seed)
    scale, gradient = rng.uniform(0.5, 2.0, n), rng.normal(size=n)
    root = np.ascontiguousarray(rng.normal(size=(n, max(1, n // 2))) / np.sqrt(n))
    hessian = np.eye(n) + (x := rng.normal(size=(n, n)) / np.sqrt(n)).T @ x
    factor = np.ascontiguousarray(np.linalg.cholesky(hessian).T)
    middle = {"scale": np.eye(n), "factor": np.linalg.inv(hessian), "root": root @ root.T}[kind]
    steps = rng.normal(size=(held, n))
    pairs = np.full((5, 2, n), np.nan)
    pairs[:held] = np.stack([steps, steps @ hessian], axis=1)
    result = _kernels.quasi_newton(
        gradient, scale, factor + np.tril(np.ones((n, n)), -1) if kind == "factor" else None,
        root if kind == "root" else None, pairs, held,
    )  # fmt: skip
    expected = reference.quasi_newton(gradient, scale[:, None] * middle * scale, pairs[:held])
    np.testing.assert_allclose(result, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


def test_rows_pass_has_the_same_bits_for_any_number_of_threads():
    x = table(0, 9000, 200, "plain")
    s, y = np.full(9000, 1 / 9000), np.where(np.arange(9000) % 3, 1.0, -1.0)
    outs = []
    for threads in (1, 2, 3, 7):
        out = np.empty((3, 9000))
        z = np.linspace(-0.1, 0.1, 201)
        loss, objective, slopes = _kernels.rows_pass(x, z, 0.1, True, False, y, s, out, threads)
        outs.append((loss, objective, slopes.tobytes(), out.tobytes()))
        which = np.arange(200, dtype=np.int32)
        outs[-1] += (_kernels.column_sums_dense(np.ascontiguousarray(x.T), which, y, threads).tobytes(),)
    assert len(set(outs)) == 1


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**31), rows=st.integers(1, 60), columns=st.integers(1, 7),
    kind=st.sampled_from(KINDS[:4]), l1=st.sampled_from([0.0, 0.02, 0.3]), l2=st.sampled_from([0.0, 0.1]),
    intercept=st.booleans(), most=st.integers(0, 1),
)  # fmt: skip
def test_sweeps(seed, rows, columns, kind, l1, l2, intercept, most):
    """Dense, compressed and on the matrix X' W X: all three equal the twin."""
    x = table(seed, rows, columns, kind)
    rng = np.random.default_rng(seed + 1)
    which = rng.permutation(columns)[: rng.integers(1, columns + 1)].astype(np.int32)
    w = rng.random(rows) / rows
    w[rng.random(rows) < 0.1] = 0.0
    n = len(which)
    g, start, g0 = rng.normal(size=n) * 0.2, rng.normal(size=n) * (rng.random(n) < 0.7), float(rng.normal())
    prices = {"l1": l1, "l2": l2, "intercept": intercept, "g0": g0, "tolerance": 0.0}
    expected = reference.sweep_columns(x, which, w, g, l1, l2, intercept, g0, most, start)
    compressed = sparse.csc_array(x)
    shift = np.full(rows, np.nan)
    beta = start.copy()
    result = _kernels.sweep_dense(
        np.ascontiguousarray(x.T), which, w, g, beta=beta, shift=shift, most=most, **prices
    )
    np.testing.assert_allclose(beta, expected[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(shift, expected[1], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(result[1], expected[2], rtol=1e-8, atol=1e-8)
    other, shift = start.copy(), np.full(rows, np.nan)
    _kernels.sweep_csc(
        compressed.data, compressed.indices.astype(np.int32), compressed.indptr.astype(np.int64), which, w, g,
        beta=other, shift=shift, most=most, **prices,
    )  # fmt: skip
    np.testing.assert_allclose(other, expected[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(shift, expected[1], rtol=1e-8, atol=1e-8)
    chosen = x[:, which]
    third = start.copy()
    _kernels.sweep_gram(
        (chosen.T * w) @ chosen, chosen.T @ w, float(w.sum()), beta=third, g=g.copy(), most=most, **prices
    )
    np.testing.assert_allclose(third, expected[0], rtol=1e-8, atol=1e-8)
    single = ((chosen.T * w) @ chosen).astype(np.float32)  # numbers of a float32, in either precision
    outcomes = []
    for q in (single, single.astype(np.float64)):
        beta, slope = np.zeros(len(third)), g.copy()
        result = _kernels.sweep_gram(q, chosen.T @ w, float(w.sum()), beta=beta, g=slope, most=most, **prices)
        outcomes.append((result, beta.tolist(), slope.tolist()))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("intercept", [False, True])
def test_many_sweeps_end_at_the_optimum(intercept):
    x = table(3, 80, 6, "plain")
    rng = np.random.default_rng(0)
    w, g, which = rng.random(80) / 80, rng.normal(size=6), np.arange(6, dtype=np.int32)
    beta, shift = np.zeros(6), np.zeros(80)
    _, b, _ = _kernels.sweep_dense(
        np.ascontiguousarray(x.T), which, w, g,
        l1=0.2, l2=0.05, intercept=intercept, g0=0.3, tolerance=1e-13, most=10_000, beta=beta, shift=shift,
    )  # fmt: skip
    slope = g + x.T @ (w * (x @ beta + b)) + 0.05 * beta
    used = beta != 0.0
    np.testing.assert_allclose(slope[used], -0.2 * np.sign(beta[used]), atol=1e-11)
    assert (np.abs(slope[~used]) <= 0.2 + 1e-11).all()
    assert 0 < used.sum() < 6
    if intercept:
        assert abs(0.3 + np.sum(w * (x @ beta + b))) < 1e-12


@settings(max_examples=40)
@given(seed=st.integers(0, 2**31), rows=st.integers(1, 60), columns=st.integers(1, 9))
def test_products_with_columns(seed, rows, columns):
    x = table(seed, rows, columns, "sparse")
    rng = np.random.default_rng(seed)
    which = rng.permutation(columns)[: rng.integers(0, columns + 1)].astype(np.int32)
    pull, coef = rng.normal(size=rows), rng.normal(size=len(which))
    matrix = sparse.csc_array(x)
    parts = matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64), which
    expected = x[:, which].T @ pull
    np.testing.assert_allclose(_kernels.column_sums_csc(*parts, pull, 1), expected, atol=1e-12)
    np.testing.assert_allclose(
        _kernels.column_sums_dense(np.ascontiguousarray(x.T), which, pull, 1), expected, atol=1e-12
    )
    np.testing.assert_allclose(_kernels.column_scores_csc(*parts, coef, rows), x[:, which] @ coef, atol=1e-12)

"""The master's inner problem: its optimality conditions, and SciPy's answer to the same question."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import reference
from cardboost import _kernels


@st.composite
def quadratics(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 12))
    rank = draw(st.sampled_from([n + 3, max(1, n - 2)]))
    a = rng.normal(size=(rank, n))
    if draw(st.booleans()) and n > 1:
        a[:, 1] = -a[:, 0]  # the intercept's two columns
    q = a.T @ a / rank
    gradient = rng.normal(size=n)
    kind = draw(st.sampled_from(["linear", "ridge", "kinked"]))
    slope = rng.uniform(0.01, 0.5, n)
    curve = np.zeros(n) if kind == "linear" else rng.uniform(0.05, 1, n)
    knee = rng.uniform(0, 1, n) if kind == "kinked" else np.zeros(n)
    boxed = draw(st.booleans()) or rank < n or kind == "linear"
    upper = np.where(rng.random(n) < 0.2, 0.0, rng.uniform(0.1, 2, n)) if boxed else np.full(n, np.inf)
    knee = np.minimum(knee, upper)
    start = np.where(rng.random(n) < 0.5, 0.0, rng.uniform(0, 1, n))
    return q, gradient, np.minimum(start, upper), slope, knee, curve, upper


@given(quadratics())
@settings(max_examples=150)
def test_optimality(case):
    q, gradient, x0, slope, knee, curve, upper = case
    x, drop, iterations = _kernels.minimise_quadratic(*case, 1e-10, 500)
    assert iterations <= 500
    assert (x >= 0).all()
    assert (x <= upper).all()
    assert reference.quadratic_violation(*case, x) <= 1e-8
    before = reference.quadratic_model(q, gradient, x0, slope, knee, curve, x0)
    after = reference.quadratic_model(q, gradient, x0, slope, knee, curve, x)
    assert drop == pytest.approx(before - after, rel=1e-9, abs=1e-12)
    assert drop >= 0


@given(quadratics())
@settings(max_examples=40)
def test_agrees_with_scipy(case):
    q, gradient, x0, slope, knee, curve, upper = case
    x, _, _ = _kernels.minimise_quadratic(*case, 1e-10, 500)

    def model(w):
        value = reference.quadratic_model(q, gradient, x0, slope, knee, curve, w)
        return value, gradient + q @ (w - x0) + slope + curve * np.maximum(0.0, w - knee)

    best = minimize(
        model, x0, jac=True, method="L-BFGS-B", bounds=list(zip(np.zeros_like(upper), upper, strict=True)),
        options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 5000, "maxfun": 20000},
    )  # fmt: skip
    assert model(x)[0] == pytest.approx(best.fun, rel=1e-9, abs=1e-9)
    assert model(x)[0] <= best.fun + 1e-10


def test_equal_inputs_give_equal_bits_and_stay_as_they_are():
    rng = np.random.default_rng(3)
    a = rng.normal(size=(20, 9))
    case = [
        a.T @ a,
        rng.normal(size=9),
        np.zeros(9),
        np.full(9, 0.1),
        np.zeros(9),
        np.full(9, 0.01),
        np.ones(9),
    ]
    kept = [part.copy() for part in case]
    first = _kernels.minimise_quadratic(*case, 1e-12, 100)
    second = _kernels.minimise_quadratic(*case, 1e-12, 100)
    np.testing.assert_array_equal(first[0], second[0])
    assert first[1:] == second[1:]
    for part, copy in zip(case, kept, strict=True):
        np.testing.assert_array_equal(part, copy)


def test_no_columns():
    empty = np.empty(0)
    x, drop, _ = _kernels.minimise_quadratic(np.empty((0, 0)), *[empty] * 6, 1e-9, 10)
    assert len(x) == 0
    assert drop == 0.0


@given(quadratics(), st.integers(1, 40))
@settings(max_examples=60)
def test_scores_of_supports(case, candidates):
    """The drop on a support: every weight outside it is given up, the others become optimal."""
    q, gradient, x0, slope, _, curve, upper = case
    n, rng = len(x0), np.random.default_rng(candidates)
    supports = [np.flatnonzero(rng.random(n) < 0.5).astype(np.int32) for _ in range(candidates)]
    members = np.concatenate(supports)
    offsets = np.concatenate([[0], np.cumsum([len(support) for support in supports])])
    arguments = (q, gradient, x0, slope, curve, upper, members, offsets, 1e-10)
    drops = _kernels.score_supports(*arguments, 1)
    for threads in (2, 7):
        np.testing.assert_array_equal(_kernels.score_supports(*arguments, threads), drops)
    none = np.zeros(n)
    before = reference.quadratic_model(q, gradient, x0, slope, none, curve, x0)
    for support, drop in zip(supports, drops, strict=True):
        box = np.zeros(n)
        box[support] = upper[support]
        start = np.minimum(x0, box)
        shifted = gradient + q @ (start - x0)
        x, _, _ = _kernels.minimise_quadratic(q, shifted, start, slope, none, curve, box, 1e-10, 500)
        after = reference.quadratic_model(q, gradient, x0, slope, none, curve, x)
        assert drop == pytest.approx(before - after, rel=1e-7, abs=1e-9)

"""A small quadratic on the simplex: against every support, and its optimality conditions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost import _kernels


def every_support(q, gradient, x0):
    """The minimum by solving the problem with equality on every support."""
    n, radius = len(x0), x0.sum()
    best, where = np.inf, None
    for size in range(1, n + 1):
        for support in map(list, combinations(range(n), size)):
            system = np.zeros((size + 1, size + 1))
            system[:size, :size] = q[np.ix_(support, support)]
            system[:size, size] = system[size, :size] = 1.0
            right = np.append((q @ x0 - gradient)[support], radius)
            x = np.zeros(n)
            x[support] = np.linalg.lstsq(system, right, rcond=None)[0][:size]
            if (x >= -1e-10).all() and abs(x.sum() - radius) < 1e-8:
                value = gradient @ (x - x0) + 0.5 * (x - x0) @ q @ (x - x0)
                if value < best:
                    best, where = value, x
    return best, where


@st.composite
def quadratics(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 6))
    a = rng.normal(size=(n + draw(st.integers(0, 3)), n))
    q = a.T @ a / len(a) + 1e-3 * np.eye(n)
    gradient = rng.normal(size=n) * draw(st.sampled_from([0.1, 1.0, 10.0]))
    x0 = np.where(rng.random(n) < 0.5, 0.0, rng.uniform(0, 1, n))
    if not x0.any():
        x0[rng.integers(n)] = 1.0
    return q, gradient, x0 * draw(st.sampled_from([0.1, 1.0, 50.0]))


@given(quadratics())
@settings(max_examples=200)
def test_minimum_over_every_support(case):
    q, gradient, x0 = case
    x, drop, _ = _kernels.minimise_on_simplex(q, gradient, x0, 1e-12, 500)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(x0.sum(), rel=1e-9)
    best, _ = every_support(q, gradient, x0)
    size = max(1.0, abs(best))
    assert -drop == pytest.approx(best, abs=1e-7 * size)
    value = gradient @ (x - x0) + 0.5 * (x - x0) @ q @ (x - x0)
    assert -drop == pytest.approx(value, abs=1e-9 * size)


@pytest.mark.parametrize("seed", range(20))
def test_optimality_of_larger_ones_with_equal_columns(seed):
    rng = np.random.default_rng(seed)
    n = 40
    a = np.where(rng.random((300, n)) < 0.6, 1.0, -1.0)
    a[:, n // 2 :] = a[:, : n // 2]  # every column twice
    q, gradient = a.T @ a / 300 * 1e-2, -a.mean(axis=0)
    x0 = np.zeros(n)
    x0[rng.integers(n)] = 3.0
    x, drop, changes = _kernels.minimise_on_simplex(q, gradient, x0, 1e-10, 1000)
    r = gradient + q @ (x - x0)
    assert drop >= 0
    assert x.sum() == pytest.approx(3.0, rel=1e-9)
    assert r @ x - 3.0 * r.min() < 1e-6
    assert changes < 1000


def test_few_changes_are_no_worse_than_none():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(50, 12))
    q, gradient, x0 = a.T @ a / 50, rng.normal(size=12), np.full(12, 0.25)
    drops = [_kernels.minimise_on_simplex(q, gradient, x0, 1e-12, most)[1] for most in range(12)]
    assert drops[0] >= 0
    assert max(drops) == pytest.approx(drops[-1])

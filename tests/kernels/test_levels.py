"""Moves of tabu search: closed-form prices are true differences, and the search equals its plain twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cardboost import _kernels
from marks import first


def drawn(seed, rows=None, columns=None, bits=None):
    """A problem on levels; some columns are forbidden, free, equal, or turned round."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 40)) if rows is None else rows
    n = int(rng.integers(1, 20)) if columns is None else columns
    bits = int(rng.integers(1, 6)) if bits is None else bits
    a = np.where(rng.random((n, m)) < 0.65, 1, -1).astype(np.int8)
    if n > 3 and rng.random() < 0.5:
        a[1], a[2] = a[0], -a[3]
    s = rng.random(m) + 0.05
    top = np.where(rng.random(n) < 0.85, 2**bits - 1, 0).astype(np.int32)
    call = {
        "s": s / s.sum(),
        "l1": rng.choice([0.0, 1e-4, 0.05], n),
        "l2": rng.choice([0.0, 0.3], n),
        "l0": rng.choice([0.0, 0.02], n) + 1e-3 * rng.random(n),
        "step": rng.uniform(0.2, 2.0, n) / (2**bits - 1),
        "top": top,
    }
    return a, call, rng.integers(0, top + 1).astype(np.int32), rng


def packed(a):
    return np.packbits(a < 0, axis=0, bitorder="little")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_prices_are_true_differences(seed):
    a, call, levels, _ = drawn(seed)
    value, best, rise, drop = _kernels.price_levels(packed(a), levels=levels, **call)
    expected = reference.price_levels(a, levels=levels, **call)
    assert math.isclose(value, expected[0], rel_tol=1e-12)
    np.testing.assert_allclose(drop, expected[3], rtol=1e-10, atol=1e-12 * value)
    np.testing.assert_allclose(rise, expected[2], rtol=1e-10, atol=1e-12 * value)
    now = reference.level_objective(a, levels=levels, **{k: call[k] for k in ("s", "l1", "l2", "l0", "step")})
    for j in np.flatnonzero(best):  # a tie may go to either side
        other = levels.copy()
        other[j] = best[j]
        there = reference.level_objective(a, levels=other, **{k: v for k, v in call.items() if k != "top"})
        assert math.isclose(there - now, expected[2][j], rel_tol=1e-10, abs_tol=1e-12 * value)
    assert ((best > 0) == (call["top"] > 0)).all()


def run(a, call, levels, counted, limit, tenure, moves, random, kept=4, tolerance=1e-9):
    levels, elite = levels.copy(), np.zeros((kept, len(a)), dtype=np.int32)
    values, until = np.full(kept, np.inf), np.zeros(len(a), dtype=np.int64)
    state = np.array([0, random], dtype=np.int64)
    done = _kernels.tabu_moves(
        packed(a), counted=counted, max_terms=limit, tenure=np.array(tenure), moves=moves,
        tolerance=tolerance, levels=levels, until=until, state=state, elite=elite, values=values, **call,
    )  # fmt: skip
    return levels, done, elite, values


@pytest.mark.parametrize("seed", first(24, range(60)))
def test_the_search_equals_its_twin(seed):
    a, call, levels, rng = drawn(seed, rows=30, bits=3)
    a = np.where(rng.random(a.shape) < 0.65, 1, -1).astype(np.int8)  # no ties
    counted = (rng.random(len(a)) < 0.8).astype(np.uint8)
    limit = -1 if rng.random() < 0.4 else int(rng.integers(0, 4))
    if limit >= 0:
        levels[np.flatnonzero(counted & (levels > 0))[limit:]] = 0
    tenure = [1, 3, 1, 2] if seed % 2 else [2, 2, 0, 0]
    moves, random = int(rng.integers(0, 60)), int(rng.integers(2**62))
    result, done, elite, values = run(a, call, levels, counted, limit, tenure, moves, random)
    expected = reference.tabu_moves(
        a, **call, counted=counted.astype(bool), max_terms=limit, tenure=tenure, moves=moves, tolerance=1e-9,
        levels=levels, random=random, kept=4,
    )  # fmt: skip
    assert np.array_equal(result, expected[0])
    assert done == expected[1]
    kept = {tuple(kept_levels > 0): v for kept_levels, v in zip(elite, values, strict=True) if np.isfinite(v)}
    assert set(kept) == set(expected[2])
    for key, value in expected[2].items():
        assert math.isclose(kept[key], value, rel_tol=1e-12)
    for kept_levels, value in zip(elite[np.isfinite(values)], values[np.isfinite(values)], strict=True):
        assert limit < 0 or np.count_nonzero(kept_levels[counted > 0]) <= limit
        assert (kept_levels <= call["top"]).all()
        true = reference.level_objective(
            a, levels=kept_levels, **{k: v for k, v in call.items() if k != "top"}
        )
        assert math.isclose(value, true, rel_tol=1e-12)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_few_rows_and_no_columns(rows):
    a, call, levels, _ = drawn(1, rows=max(rows, 1), columns=9)
    a, call["s"] = np.ascontiguousarray(a[:, :rows]), call["s"][:rows]
    _, done, _, values = run(a, call, levels, np.ones(9, np.uint8), -1, [1, 2, 1, 2], 50, 0)
    assert done == 50
    assert np.isfinite(values).any()
    empty = {name: value if name == "s" else value[:0] for name, value in call.items()}
    _, done, _, values = run(a[:0], empty, levels[:0], np.ones(0, np.uint8), -1, [1, 2, 1, 2], 50, 0)
    assert done == 0
    assert math.isclose(min(values), call["s"].sum(), rel_tol=1e-12, abs_tol=1e-300)


def test_long_searches_keep_their_digits():
    """Row weights are updated move by move; what the elite is worth must still be true after thousands."""
    a, call, levels, _ = drawn(5, rows=300, columns=17, bits=6)
    _, done, elite, values = run(a, call, levels, np.ones(17, np.uint8), 5, [2, 4, 1, 1], 5000, 3)
    assert done == 5000 or np.count_nonzero(levels) > 5
    for kept_levels, value in zip(elite[np.isfinite(values)], values[np.isfinite(values)], strict=True):
        true = reference.level_objective(
            a, levels=kept_levels, **{k: v for k, v in call.items() if k != "top"}
        )
        assert math.isclose(value, true, rel_tol=1e-10)

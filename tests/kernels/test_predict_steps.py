"""Prediction from raw numbers, against a search by hand; values on the cuts and next to them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cardboost import _kernels


@st.composite
def steps(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.one_of(st.integers(0, 200), st.sampled_from([1023, 1024, 1025])))
    columns, cuts = [], []
    for _ in range(draw(st.integers(0, 5))):
        feature_cuts = np.unique(
            rng.normal(size=draw(st.sampled_from([0, 1, 3, 16, 17, 60]))).astype(np.float32)
        )
        pool = np.concatenate(
            [
                feature_cuts,
                np.nextafter(feature_cuts, np.inf),
                np.nextafter(feature_cuts, -np.inf),
                [0.0, np.nan, 9.0],
            ]
        )
        values = rng.choice(pool, rows).astype(draw(st.sampled_from(["f8", "f4"])))
        home = np.zeros((rows, 2), dtype=values.dtype)
        home[:, 1] = values
        columns.append(home[:, 1] if draw(st.booleans()) else values[::-1])
        cuts.append(feature_cuts.astype(np.float64))
    offsets = np.concatenate([[0], np.cumsum([len(feature_cuts) for feature_cuts in cuts])]).astype(np.int64)
    flat = np.concatenate(cuts) if cuts else np.empty(0)
    levels, missing = rng.normal(size=len(flat) + len(cuts)), rng.normal(size=len(cuts))
    return columns, rows, flat, offsets, levels, missing, rng.normal()


@given(steps())
@settings(max_examples=60)
def test_scores_and_contributions(case):
    score, parts = reference.predict_steps(*case)
    for threads in (1, 2, 7):
        got, own_parts, infinite = _kernels.predict_steps(*case, True, threads)
        np.testing.assert_array_equal(got, score)
        np.testing.assert_array_equal(own_parts, parts)
        assert infinite == -1
        np.testing.assert_array_equal(_kernels.predict_steps(*case, False, threads)[0], score)


def test_many_rows_on_several_threads():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25_001, 3))
    cuts, offsets = np.array([-1.0, 0.0, 1.0, 0.5]), np.array([0, 3, 4, 4])
    levels, missing = rng.normal(size=7), np.zeros(3)
    columns = [X[:, j] for j in range(3)]
    first = _kernels.predict_steps(columns, len(X), cuts, offsets, levels, missing, 0.1, False, 1)[0]
    for threads in (2, 7):
        again = _kernels.predict_steps(columns, len(X), cuts, offsets, levels, missing, 0.1, False, threads)[
            0
        ]
        np.testing.assert_array_equal(again, first)


def test_first_infinite_column():
    columns = [np.zeros(3), np.array([0, np.inf, 0]), np.array([-np.inf, 0, 0])]
    none, offsets = np.empty(0), np.zeros(4, dtype=np.int64)
    got = _kernels.predict_steps(columns, 3, none, offsets, np.zeros(3), np.zeros(3), 0.0, False, 1)
    assert got[2] == 1
    for threads in (1, 2, 7):
        assert _kernels.find_infinite(columns, threads) == 1
        assert _kernels.find_infinite(columns[:1] * 3, threads) == -1
        assert _kernels.find_infinite([np.full(3, np.nan), np.arange(3)], threads) == -1
        assert _kernels.find_infinite([], threads) == -1
        last = np.zeros((2, 3000), dtype=np.float32)
        last[1, -1] = -np.inf
        assert _kernels.find_infinite([last[0], last[1][::-1]], threads) == 1

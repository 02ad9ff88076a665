"""Histograms, the search in them, margins from lookup tables and signed row weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cardboost import _kernels

row_counts = st.one_of(st.integers(0, 300), st.sampled_from([511, 512, 513, 1024, 1025]))


@st.composite
def binned(draw, least_features=0):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, total = draw(row_counts), draw(st.integers(max(1, least_features), 12))
    bins = rng.integers(0, 256, (total, rows)).astype(np.uint8)
    features = rng.integers(0, total, draw(st.integers(least_features, 12))).astype(np.int32)
    return rng, bins, features


def integers(rng, rows, width):
    return rng.integers(-(2**40), 2**40, (rows, width))


@given(binned(), st.sampled_from([1, 2, 4]), st.booleans())
@settings(max_examples=40)
def test_histograms(case, width, shifted):
    rng, bins, features = case
    q = integers(rng, bins.shape[1], width)
    if shifted:  # weights that start off the boundary of their width
        home = np.empty(q.size + 1, dtype=np.int64)
        home[1:] = q.ravel()
        q = home[1:].reshape(q.shape)
    expected = reference.histograms(bins, features, q)
    for threads in (-1, 0, 1, 2, 7):
        np.testing.assert_array_equal(_kernels.histograms(bins, features, q, threads), expected)


@given(binned())
@settings(max_examples=30)
def test_hashes_of_rows(case):
    _, bins, features = case
    bins[:, bins.shape[1] // 2 :] = bins[:, : bins.shape[1] - bins.shape[1] // 2]  # equal rows
    expected = reference.hash_bins(bins, features)
    for threads in (1, 2, 7):
        assert _kernels.hash_bins(bins, features, threads).tolist() == expected
    if len(features):
        rows = {tuple(row) for row in bins[features].T}
        assert len(set(expected)) == len(rows)


@given(binned(1), st.integers(1, 9))
@settings(max_examples=30)
def test_shards_add_up(case, parts):
    rng, bins, features = case
    q = integers(rng, bins.shape[1], 2)
    whole = _kernels.histograms(bins, features, q, 1)
    shard = rng.integers(0, parts, bins.shape[1])
    total = sum(
        _kernels.histograms(np.ascontiguousarray(bins[:, shard == k]), features, q[shard == k], 2)
        for k in range(parts)
    )
    np.testing.assert_array_equal(total, whole)


@st.composite
def searches(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 5))
    n_bins = rng.choice([1, 2, 3, 9, 254, 255], n).astype(np.int32)
    kind = rng.integers(0, 4, n).astype(np.uint8)
    hist = np.zeros((n, 256, 2), dtype=np.int64)
    hist[:, :, 0] = rng.integers(-(10**9), 10**9, (n, 256))
    hist[:, :, 1] = rng.integers(0, 10**9, (n, 256))
    for f in range(n):
        hist[f, n_bins[f] : 255] = 0
        hist[f, 255] *= kind[f] & 1
    masked = draw(st.sampled_from([0.0, 0.3, 1.0]))
    mask = np.where(rng.random((n, 256)) < masked, rng.integers(0, 16, (n, 256)), 0).astype(np.uint8)
    if masked == 1.0:
        mask[:] = 15
    l1, l2 = draw(st.sampled_from([(0.0, 0.0), (0.1, 0.0), (0.5, 2.0)]))
    return hist, n_bins, kind, mask, 1e-9, 1e-10, l1, l2, draw(st.booleans()), draw(st.booleans())


@given(searches())
@settings(max_examples=60)
def test_search(case):
    score, edge, cut, polarity, missing_left, largest = _kernels.search(*case)
    ranked, expected_largest = reference.search(*case)
    assert largest == pytest.approx(expected_largest, rel=1e-12)
    for f, stumps in enumerate(ranked):
        if not stumps:
            assert score[f] == -math.inf
            assert cut[f] == -1
            continue
        chosen = {stump: (value, own_edge) for value, own_edge, stump in stumps}
        stump = (int(cut[f]), int(missing_left[f]), int(polarity[f]))
        assert stump in chosen, "a forbidden stump was chosen"
        assert score[f] == pytest.approx(stumps[0][0], rel=1e-9, abs=1e-12)
        assert score[f] == pytest.approx(chosen[stump][0], rel=1e-9, abs=1e-12)
        assert edge[f] == pytest.approx(chosen[stump][1], rel=1e-12, abs=1e-15)


@given(searches())
@settings(max_examples=30)
def test_edges_need_one_lane_only(case):
    hist, *rest, _, intercept = case
    both = _kernels.search(hist, *rest, False, intercept)
    one = _kernels.search(np.ascontiguousarray(hist[:, :, :1]), *rest, False, intercept)
    for result, expected in zip(one, both, strict=True):
        np.testing.assert_array_equal(result, expected)


@given(binned(), st.booleans(), st.floats(-5, 5))
@settings(max_examples=40)
def test_margins(case, signed, base):
    rng, bins, features = case
    tables = rng.normal(size=(len(features), 256))
    sign = rng.choice([-1, 1], bins.shape[1]).astype(np.int8) if signed else None
    expected = reference.margins(bins, features, tables, base, sign)
    for threads in (1, 2, 7):
        np.testing.assert_array_equal(_kernels.margins(bins, features, tables, base, sign, threads), expected)
    order = rng.permutation(bins.shape[1])
    moved = _kernels.margins(
        bins[:, order].copy(), features, tables, base, None if sign is None else sign[order], 2
    )
    np.testing.assert_array_equal(moved, expected[order])


@given(binned(), st.sampled_from([1, 2, 4]))
@settings(max_examples=30)
def test_signed_weights(case, width):
    rng, bins, features = case
    features = features[:width]
    signs = rng.choice([-1, 1], (len(features), 256)).astype(np.int8)
    q = integers(rng, bins.shape[1], 1)[:, 0].copy()
    expected = reference.signed_weights(bins, features, signs, q, width)
    for threads in (1, 2, 7):
        got = _kernels.signed_weights(bins, features, signs, q, width, threads)
        np.testing.assert_array_equal(got, expected)

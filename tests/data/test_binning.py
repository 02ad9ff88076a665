"""Bins of tables: how many, where the cuts lie, and what must not change them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.binning import MISSING, apply_cuts, bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights


def binned(X, weights=None, max_bins=255, threads=1):
    return bin_table(read_table(X), RowWeights.make(len(X), weights), max_bins, threads)


@st.composite
def tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.integers(1, 600))
    X = np.column_stack(
        [
            rng.normal(size=rows),
            rng.integers(0, 4, rows),
            np.exp(rng.normal(0, 5, rows)),
            np.round(rng.normal(size=rows), 1),
        ]
    )
    X[rng.random(X.shape) < draw(st.sampled_from([0, 0.1, 0.9]))] = np.nan
    return rng, X


@given(tables(), st.sampled_from([2, 3, 10, 64, 255]))
@settings(max_examples=50)
def test_every_cut_separates_two_values(case, max_bins):
    _, X = case
    matrix = binned(X, max_bins=max_bins)
    for j, cuts in enumerate(matrix.cuts):
        values = X[:, j]
        known = values[~np.isnan(values)]
        assert matrix.n_missing[j] == np.isnan(values).sum()
        assert len(cuts) < max_bins
        assert matrix.n_bins[j] == len(cuts) + 1
        assert (np.diff(cuts) > 0).all()
        for cut in cuts:
            below, above = known[known <= cut], known[known > cut]
            assert len(below)
            assert len(above)
        np.testing.assert_array_equal(
            matrix.bins[j], np.where(np.isnan(values), MISSING, np.searchsorted(cuts, values))
        )
        if len(known):
            counts = np.bincount(np.searchsorted(cuts, known), minlength=len(cuts) + 1)
            assert (counts > 0).all()
        if len(np.unique(known)) <= max_bins:
            assert len(cuts) == max(0, len(np.unique(known)) - 1)


@pytest.mark.parametrize("max_bins", [2, 10, 255])
def test_quantiles_are_balanced(max_bins):
    x = np.random.default_rng(0).normal(size=10_000)
    matrix = binned(x[:, None], max_bins=max_bins)
    counts = np.bincount(matrix.bins[0])
    assert len(counts) == max_bins
    assert counts.max() - counts.min() <= 2 + 10_000 // max_bins // 20


def test_a_heavy_value_does_not_waste_bins():
    x = np.concatenate([np.zeros(9_000), np.random.default_rng(1).uniform(1, 2, 1_000)])
    counts = np.bincount(binned(x[:, None], max_bins=11).bins[0])
    assert len(counts) == 11
    assert counts[0] == 9_000
    assert counts[1:].max() <= 110


@given(tables(), st.sampled_from([2, 5, 20]))
@settings(max_examples=40)
def test_weight_two_is_the_row_twice(case, max_bins):
    rng, X = case
    times = rng.integers(1, 4, len(X))
    weighted = binned(X, times.astype(float), max_bins)
    repeated = binned(np.repeat(X, times, axis=0), None, max_bins)
    for own, other in zip(weighted.cuts, repeated.cuts, strict=True):
        np.testing.assert_array_equal(own, other)
    np.testing.assert_array_equal(np.repeat(weighted.bins, times, axis=1), repeated.bins)


@given(tables(), st.sampled_from([None, "counts", "real"]), st.sampled_from([2, 7, 255]))
@settings(max_examples=40)
def test_order_layout_and_threads_do_not_show(case, weighting, max_bins):
    rng, X = case
    weights = (
        None if weighting is None else rng.integers(1, 5, len(X)) + (0.37 if weighting == "real" else 0.0)
    )
    first = binned(X, weights, max_bins)
    order = rng.permutation(len(X))
    moved = binned(X[order], None if weights is None else weights[order], max_bins)
    others = [
        binned(np.asfortranarray(X), weights, max_bins, 2),
        binned(pd.DataFrame(X), weights, max_bins, 7),
    ]
    np.testing.assert_array_equal(moved.bins, first.bins[:, order])
    for other in others:
        np.testing.assert_array_equal(other.bins, first.bins)
    for other in (moved, *others):
        for own, cuts in zip(first.cuts, other.cuts, strict=True):
            np.testing.assert_array_equal(own, cuts)


@given(tables())
@settings(max_examples=20)
def test_scaled_weights_give_the_same_cuts(case):
    rng, X = case
    weights = rng.uniform(0.5, 2, len(X))
    for own, cuts in zip(binned(X, weights, 9).cuts, binned(X, weights * 2.0**800, 9).cuts, strict=True):
        np.testing.assert_array_equal(own, cuts)


def test_constant_and_missing_columns():
    X = np.column_stack([np.full(5, 3.0), np.full(5, np.nan), [1, 1, np.nan, 1, 1]])
    matrix = binned(X)
    assert [len(cuts) for cuts in matrix.cuts] == [0, 0, 0]
    assert matrix.n_missing.tolist() == [0, 5, 1]
    assert matrix.bins.tolist() == [[0] * 5, [MISSING] * 5, [0, 0, MISSING, 0, 0]]


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinity_is_refused_with_the_name_of_the_column(bad):
    X = np.zeros((4, 3))
    X[2, 1] = bad
    with pytest.raises(ValueError, match="infinity in column 1"):
        binned(X)
    with pytest.raises(ValueError, match="infinity in column 'height'"):
        binned(pd.DataFrame(X, columns=["age", "height", "weight"]))


@pytest.mark.parametrize("max_bins", [1, 0, -1, 256, 2.5, "10", None, True])
def test_max_bins_out_of_range(max_bins):
    with pytest.raises(ValueError, match="max_bins must be a whole number from 2 to 255"):
        binned(np.zeros((3, 1)), max_bins=max_bins)


def test_known_cuts_on_another_table():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 2))
    matrix = binned(X, max_bins=16)
    np.testing.assert_array_equal(apply_cuts(read_table(X), matrix.cuts, 2), matrix.bins)
    np.testing.assert_array_equal(
        apply_cuts(read_table(np.array([[1e9, -1e9], [np.nan, 0]])), matrix.cuts, 1)[0], [15, MISSING]
    )
    assert apply_cuts(read_table(np.empty((3, 0))), (), 1).shape[0] == 0


def test_two_rows_and_one():
    assert binned(np.array([[1.0], [2.0]])).cuts[0].tolist() == [1.0]
    assert binned(np.array([[1.0]])).cuts[0].tolist() == []

"""Cuts, bins and digests of columns, against their twins, for every number type, stride and thread count."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cardboost import _kernels
from cardboost.certificate import checker
from cardboost.data.table import read_table

TYPES = ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"]


def column(rng: np.random.Generator, rows: int, dtype: str, shape: str) -> np.ndarray:
    """Random values that a number type can hold: few or many distinct ones, heavy ties, missing ones."""
    high = {"f8": 1e6, "f4": 1e6, "i1": 100, "u1": 200}.get(dtype, 10_000)
    low = 0 if dtype[0] == "u" else -high
    if shape == "few":
        values = rng.choice(rng.uniform(low, high, 5), rows)
    elif shape == "heavy":
        values = np.where(rng.random(rows) < 0.6, high // 3, rng.uniform(low, high, rows))
    elif shape == "skewed" and dtype[0] == "f":
        values = np.exp(rng.normal(0, 8, rows))
    else:
        values = rng.uniform(low, high, rows)
    values = values.astype(dtype)
    if dtype[0] == "f":
        values[rng.random(rows) < rng.choice([0.0, 0.2])] = np.nan
        values[rng.random(rows) < 0.05] = -0.0
    return values


@st.composite
def tables(draw):
    """Columns of any type and stride, as views into larger arrays."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.one_of(st.integers(1, 300), st.sampled_from([511, 513, 1023, 1024, 1025])))
    columns = []
    for _ in range(draw(st.integers(1, 9))):
        values = column(
            rng, rows, draw(st.sampled_from(TYPES)), draw(st.sampled_from(["few", "heavy", "skewed", "wide"]))
        )
        stride = draw(st.sampled_from([1, 3, -1, -2]))
        home = np.zeros(rows * abs(stride), dtype=values.dtype)
        view = home[::stride]
        view[:] = values
        columns.append(view)
    weights = draw(st.sampled_from([None, "counts", "huge"]))
    if weights == "counts":
        weights = rng.integers(1, 5, rows)
    elif weights == "huge":
        weights = rng.integers(1, 2**61 // rows, rows)
    return columns, weights, draw(st.sampled_from([2, 3, 16, 254, 255]))


@given(tables())
@settings(max_examples=60)
def test_cuts_and_bins(table):
    columns, weights, max_bins = table
    bins, cuts, n_cuts, missing, infinite = _kernels.bin_columns(columns, weights, max_bins, 1)
    assert infinite == -1
    for j, values in enumerate(columns):
        values = values.astype(np.float64)
        gaps = reference.cut_gaps(values, weights, max_bins)
        column_cuts = cuts[j, : n_cuts[j]]
        assert column_cuts.tolist() == [_kernels.shortest_decimal(x, y) for x, y in gaps]
        assert len(column_cuts) < max_bins
        assert missing[j] == np.isnan(values).sum()
        np.testing.assert_array_equal(bins[j], reference.bins_of(values, column_cuts))


@pytest.mark.parametrize("weighted", [False, True])
def test_cuts_of_values_of_all_sizes(weighted):
    """Buckets of equal width hold nearly all values again and again."""
    rng = np.random.default_rng(5)
    values = 2.0 ** rng.uniform(-1000.0, 1000.0, 20_000)
    weights = rng.integers(1, 4, len(values)) if weighted else None
    bins, cuts, n_cuts, *_ = _kernels.bin_columns([values], weights, 255, 1)
    gaps = reference.cut_gaps(values, weights, 255)
    assert cuts[0, : n_cuts[0]].tolist() == [_kernels.shortest_decimal(x, y) for x, y in gaps]
    np.testing.assert_array_equal(bins[0], reference.bins_of(values, cuts[0, : n_cuts[0]]))


@given(tables(), st.integers(0, 2**32))
@settings(max_examples=30)
def test_threads_and_order_do_not_show(table, seed):
    columns, weights, max_bins = table
    first = _kernels.bin_columns(columns, weights, max_bins, 1)
    order = np.random.default_rng(seed).permutation(len(columns[0]))
    moved = [values[order] for values in columns]
    other = _kernels.bin_columns(moved, None if weights is None else weights[order], max_bins, 1)
    for threads in (2, 7):
        again = _kernels.bin_columns(columns, weights, max_bins, threads)
        np.testing.assert_array_equal(again[0], first[0])
        np.testing.assert_array_equal(again[2], first[2])
        for j, n in enumerate(first[2]):
            np.testing.assert_array_equal(again[1][j, :n], first[1][j, :n])
    np.testing.assert_array_equal(other[0], first[0][:, order])
    for j, n in enumerate(first[2]):
        np.testing.assert_array_equal(other[1][j, :n], first[1][j, :n])


@given(tables())
@settings(max_examples=30)
def test_apply_cuts(table):
    columns, _, max_bins = table
    _, cuts, n_cuts, _, _ = _kernels.bin_columns(columns, None, max_bins, 1)
    all_cuts = [cuts[j, :n] for j, n in enumerate(n_cuts)]
    offsets = np.concatenate([[0], np.cumsum(n_cuts)]).astype(np.int64)
    others = [
        np.concatenate(
            [column_cuts, np.nextafter(column_cuts, np.inf), np.nextafter(column_cuts, -np.inf), [np.nan]]
        )[: 3 * min(n_cuts) + 1]
        for column_cuts in all_cuts
    ]
    for given_columns in (columns, others):
        for threads in (1, 2, 7):
            bins = _kernels.apply_cuts(given_columns, np.concatenate(all_cuts), offsets, threads)
            for j, values in enumerate(given_columns):
                np.testing.assert_array_equal(
                    bins[j], reference.bins_of(values.astype(np.float64), all_cuts[j])
                )


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_first_infinite_column(bad):
    columns = [np.arange(5.0) for _ in range(20)]
    columns[13][2] = columns[17][0] = bad
    for threads in (1, 2, 7):
        assert _kernels.bin_columns(columns, None, 255, threads)[4] == 13


def test_no_rows_and_no_columns():
    bins, _, n_cuts, missing, infinite = _kernels.bin_columns([np.empty(0), np.empty(0)], None, 255, 2)
    assert bins.shape == (2, 0)
    assert n_cuts.tolist() == missing.tolist() == [0, 0]
    assert infinite == -1
    assert _kernels.bin_columns([], None, 255, 2)[0].shape == (0, 0)


EXTREME = {
    "the smallest numbers": "np.arange(300) * 5e-324",
    "a range wider than float64": "1.7e308 * np.linspace(-1, 1, 300)",
    "tiny range far from zero": "1e300 + np.arange(300) * 1e285",
    "one enormous value": "np.r_[np.arange(300.0), 1.7e308]",
    "the widest range that is counted": "np.r_[-5.0, np.arange(300.0), 65530.0]",
    "the narrowest that is not": "np.r_[-5.0, np.arange(300.0), 65531.0]",
    "whole numbers beyond 2^53": "2.0**54 + 4 * np.arange(300)",
}


@pytest.mark.parametrize("values", EXTREME.values(), ids=EXTREME.keys())
def test_extreme_columns(values):
    """In a process of its own, so that a crash of the kernel is a failure of one test."""
    script = (
        "import numpy as np\n"
        "from cardboost import _kernels\n"
        f"values = {values}\n"
        "bins, cuts, n_cuts, missing, infinite = _kernels.bin_columns([values], None, 255, 1)\n"
        "column_cuts = cuts[0, : n_cuts[0]]\n"
        "assert infinite == -1 and (np.diff(column_cuts) > 0).all()\n"
        "assert (bins[0] == np.searchsorted(column_cuts, values)).all()\n"
        "assert np.bincount(bins[0]).max() <= 3 and len(column_cuts) >= 150\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@given(tables(), st.integers(0, 2**32), st.sampled_from([None, "counts", "real"]))
@settings(max_examples=40)
def test_digest(table, seed, weighting):
    columns, rng = table[0], np.random.default_rng(seed)
    rows = len(columns[0])
    X = np.column_stack([values.astype(np.float64) for values in columns])
    positive = rng.random(rows) < 0.5
    weights = None
    if weighting is not None:
        weights = rng.integers(1, 9, rows).astype(np.float64)
        weights = weights if weighting == "counts" else weights + 0.1
    expected = checker.data_digest(X, positive, weights)
    order = rng.permutation(rows)
    for threads in (1, 2, 7):
        assert read_table(X).digest(positive, weights, threads) == expected
    moved = read_table(X[order]).digest(positive[order], None if weights is None else weights[order], 2)
    assert moved == expected
    changed = X.copy()
    changed[rng.integers(rows), rng.integers(X.shape[1])] = 0.123456789
    assert read_table(changed).digest(positive, weights, 1) != expected


def test_digest_of_huge_weights():
    X, positive, weights = np.arange(6.0).reshape(3, 2), np.array([True, False, True]), np.full(3, 1e308)
    assert read_table(X).digest(positive, weights, 1) == checker.data_digest(X, positive, weights)

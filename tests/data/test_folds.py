"""Folds by content: order, repetition and missing values."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from cardboost.data.categories import CategoricalColumn
from cardboost.data.folds import deal_rows, fewest_distinct, row_hashes
from cardboost.data.table import Table


def table(seed: int, n: int) -> tuple[Table, np.ndarray]:
    rng = np.random.default_rng(seed)
    number = rng.choice([0.0, -0.0, 1.5, np.nan, -3.0, 1e300], size=n)
    codes = rng.integers(-1, 3, size=n).astype(np.int32)
    return Table((number, CategoricalColumn(("a", "b", "c"), codes)), None, n), rng.integers(0, 2, size=n)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 60), n_folds=st.integers(2, 5))
def test_folds_go_by_content(seed: int, n: int, n_folds: int) -> None:
    rows, y = table(seed, n)
    y[:2] = (0, 1)
    hashes = row_hashes(rows)
    fold = deal_rows(hashes, y, n_folds, seed)
    content = [
        (None if np.isnan(x) else x, code)
        for x, code in zip(rows.columns[0], rows.columns[1].codes, strict=True)
    ]
    by_content: dict[object, set[int]] = {}
    for key, held_out_by in zip(content, fold, strict=True):
        by_content.setdefault(key, set()).add(int(held_out_by))
    assert all(len(folds) == 1 for folds in by_content.values())
    assert fewest_distinct(hashes, y) == min(
        len({c for c, label in zip(content, y, strict=True) if label == k}) for k in (0, 1)
    )
    held = [sum(folds == {k} for folds in by_content.values()) for k in range(n_folds)]
    assert max(held) - min(held) <= 1
    order = np.random.default_rng(seed).permutation(n)
    again = np.concatenate([order, order[: n // 2]])
    other = deal_rows(row_hashes(rows.take(again)), y[again], n_folds, seed)
    assert (other == fold[again]).all()


def test_labels_count_by_their_names_and_columns_by_their_place() -> None:
    one = Table((CategoricalColumn(("a", "b"), np.array([0, 1], dtype=np.int32)),), None, 2)
    other = Table((CategoricalColumn(("b", "x", "a"), np.array([2, 0], dtype=np.int32)),), None, 2)
    assert (row_hashes(one) == row_hashes(other)).all()
    x, y = np.array([1.0, 2.0]), np.array([2.0, 1.0])
    assert len(set(row_hashes(Table((x, y), None, 2)).tolist())) == 2


@settings(max_examples=60, deadline=None)
@given(
    content=st.lists(st.integers(0, 30), min_size=1, max_size=120),
    n_classes=st.integers(1, 4),
    n_folds=st.integers(2, 5),
    seed=st.integers(0, 2**31 - 1),
    most=st.integers(5, 40),
    order=st.randoms(use_true_random=False),
)
def test_folds_depend_on_the_content_of_rows_alone(content, n_classes, n_folds, seed, most, order):
    hashes = np.array(content, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    codes = np.arange(len(content)) % n_classes if n_classes > 1 else None
    fold = deal_rows(hashes, codes, n_folds, seed, most)
    assert set(fold) <= {-1, *range(n_folds)}
    for value in np.unique(hashes):
        assert len(set(fold[hashes == value])) == 1
    rows = list(range(len(content)))
    order.shuffle(rows)
    twice = np.array([*rows, *rows[: len(rows) // 2]])
    again = deal_rows(hashes[twice], None if codes is None else codes[twice], n_folds, seed, most)
    assert_array_equal(again, fold[twice])


def test_folds_are_equal_in_size_and_have_every_class_in_proportion():
    hashes = np.random.default_rng(0).integers(2**63, size=3000).astype(np.uint64)
    codes = (np.arange(3000) % 10 == 0).astype(np.intp)
    fold = deal_rows(hashes, codes, 3, seed=7)
    assert_array_equal(np.bincount(fold), [1000, 1000, 1000])
    assert_array_equal(np.bincount(fold[codes == 1]), [100, 100, 100])
    assert (deal_rows(hashes, codes, 3, seed=8) != fold).any()


def test_of_many_rows_a_sample_takes_part():
    hashes = np.random.default_rng(0).integers(2**63, size=3000).astype(np.uint64)
    codes = (np.arange(3000) % 10 == 0).astype(np.intp)
    fold = deal_rows(hashes, codes, 3, seed=7, most=600)
    assert_array_equal(np.bincount(fold[fold >= 0]), [200, 200, 200])
    assert np.count_nonzero(fold[codes == 1] >= 0) == 60
    everyone = deal_rows(hashes, codes, 3, seed=7)
    assert_array_equal(fold[fold >= 0], everyone[fold >= 0])

"""Folds by content: order, repetition and missing values."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.categories import CategoricalColumn
from cardboost.data.folds import deal_folds, row_hashes
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
    fold, counts = deal_folds(row_hashes(rows, seed), y, n_folds)
    content = [
        (None if np.isnan(x) else x, code)
        for x, code in zip(rows.columns[0], rows.columns[1].codes, strict=True)
    ]
    by_content: dict[object, set[int]] = {}
    for key, own in zip(content, fold, strict=True):
        by_content.setdefault(key, set()).add(int(own))
    assert all(len(folds) == 1 for folds in by_content.values())
    assert counts.tolist() == [
        len({c for c, k in zip(content, y, strict=True) if k == own}) for own in (0, 1)
    ]
    held = [sum(folds == {k} for folds in by_content.values()) for k in range(n_folds)]
    assert max(held) - min(held) <= 1
    order = np.random.default_rng(seed).permutation(n)
    again = np.concatenate([order, order[: n // 2]])
    other, _ = deal_folds(row_hashes(rows.take(again), seed), y[again], n_folds)
    assert (other == fold[again]).all()


def test_labels_count_by_their_names_and_columns_by_their_place() -> None:
    one = Table((CategoricalColumn(("a", "b"), np.array([0, 1], dtype=np.int32)),), None, 2)
    other = Table((CategoricalColumn(("b", "x", "a"), np.array([2, 0], dtype=np.int32)),), None, 2)
    assert (row_hashes(one) == row_hashes(other)).all()
    assert (row_hashes(one, 1) != row_hashes(one)).all()
    x, y = np.array([1.0, 2.0]), np.array([2.0, 1.0])
    assert len(set(row_hashes(Table((x, y), None, 2)).tolist())) == 2

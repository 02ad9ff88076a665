"""Labels, codes and bins of categories: what a model keeps of them, and what must not change them."""

from __future__ import annotations

import copy
import hashlib
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.binning import MISSING, apply_cuts, bin_table
from cardboost.data.categories import OTHER, Categories, Other
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights


def objects(*cells):
    X = np.empty((len(cells), 1), dtype=object)
    X[:, 0] = cells
    return X


# ------------------------------------------------------------------------------------------------ digests


def digest_value(label):
    """The definition once more, for plain labels."""
    text = f"s:{label}" if isinstance(label, str) else f"n:{float(label)!r}"
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    return math.nan if label is None else float(number // 2**11)


def test_digest_values():
    column = read_table(objects("a", None, "Ä"), categorical=[0]).columns[0]
    np.testing.assert_array_equal(column.digest_values(), [digest_value("a"), math.nan, digest_value("Ä")])
    assert column.digest_values()[0] == 8775530754219383.0
    same = [
        read_table(objects(own, 2.5), categorical=[0]).columns[0].digest_values()[0] for own in (1, 1.0, True)
    ]
    assert same == [digest_value(1.0)] * 3
    assert digest_value("1") != digest_value(1)


# ------------------------------------------------------------------------------------------------ codes


def test_codes_of_a_model():
    categories = Categories(("a", "b"), ("c", "d"))
    assert categories.n_codes == 3
    assert [categories.label(k) for k in range(3)] == ["a", "b", OTHER]
    assert [categories.code(label) for label in ("a", "b", "c", "d", OTHER)] == [0, 1, 2, 2, 2]
    np.testing.assert_array_equal(categories.codes_of(["d", "x", "a"]), [2, math.nan, 0])
    column = read_table(objects("x", "c", None, "b"), categorical=[0]).columns[0]
    np.testing.assert_array_equal(column.encode(categories), [math.nan, 2, math.nan, 1])
    assert Categories((1, 2.5)).code(True) == 0
    assert Categories(()).n_codes == 0
    assert Categories((0, 1)) == Categories((False, True)) == Categories([0.0, 1.0])  # type: ignore[arg-type]
    assert hash(Categories((0, 1))) == hash(Categories((False, True)))
    for code in (-1, 3):
        with pytest.raises(ValueError, match="no category with the code"):
            categories.label(code)
    for label in ("x", 1):
        with pytest.raises(ValueError, match="is none of the 4 categories"):
            categories.code(label)
    with pytest.raises(ValueError, match="other is none of the 2 categories"):
        Categories(("a", "b")).code(OTHER)


def test_there_is_one_other():
    assert list(Other) == [OTHER]
    assert pickle.loads(pickle.dumps(OTHER)) is OTHER
    assert copy.deepcopy(OTHER) is OTHER
    assert repr(OTHER) == "other"
    categories = Categories(("a",), ("b",))
    assert pickle.loads(pickle.dumps(categories)) == categories


@pytest.mark.parametrize(
    ("kept", "rare", "message"),
    [
        (("b", "a"), (), r"kept\[1\]: expected labels in ascending order, found 'a' after 'b'"),
        ((1, 1.0), (), r"kept\[1\]: expected labels in ascending order"),
        ((1, "a"), (), r"kept\[1\]: expected labels of one kind, found 'a' beside 1"),
        (("a",), (1,), "rare: expected labels of one kind, found 1 beside 'a'"),
        (("a",), ("a",), "rare: expected labels that are not kept, found 'a'"),
        ((math.nan,), (), r"kept\[0\]: expected a finite number, found nan"),
        ((0, math.inf), (), r"kept\[1\]: expected a finite number, found inf"),
        ((None,), (), r"kept\[0\]: expected text or a number, found None"),
        (("a",), ((),), r"rare\[0\]: expected text or a number"),
        (range(256), (), "kept: expected at most 255 codes, found 256"),
        (range(255), (300,), "kept: expected at most 255 codes, found 256"),
    ],
)
def test_wrong_categories(kept, rare, message):
    with pytest.raises(ValueError, match=message):
        Categories(kept, rare)


def test_columns_as_a_model_reads_them():
    table = read_table(pd.DataFrame({"c": ["b", "x"], "x": [1.0, 2], "f": [True, False]}), categorical=["c"])
    np.testing.assert_array_equal(table.encoded(0, Categories(("a", "b"))), [1, math.nan])
    assert table.encoded(1, None) is table.columns[1]
    np.testing.assert_array_equal(table.encoded(1, Categories((2, 5))), [math.nan, 0])
    np.testing.assert_array_equal(table.encoded(2, Categories((False, True))), [1, 0])
    np.testing.assert_array_equal(table.encoded(1, Categories(())), [math.nan] * 2)
    with pytest.raises(
        ValueError, match=r"column 'c' holds text \('b'\), but the categories .* numbers \(7\)"
    ):
        table.encoded(0, Categories((7,)))
    with pytest.raises(
        ValueError, match=r"column 'x' holds numbers \(1\), but the categories .* text \('1'\)"
    ):
        table.encoded(1, Categories(("1",)))
    with pytest.raises(ValueError, match="categories in column 'c', where the model expects numbers"):
        table.encoded(0, None)


# ------------------------------------------------------------------------------------------------ bins


def coded(labels, rows):
    """A column in which row i has the label number ``rows[i]``."""
    return objects(*(None if k < 0 else labels[k] for k in rows))


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 250, 254, 255, 256, 257, 400]), st.booleans())
@settings(max_examples=60)
def test_bins_are_codes(seed, n_labels, weighted):
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.permutation(1000)[:n_labels]).tolist()
    rows = rng.permutation(np.concatenate([np.arange(n_labels), rng.integers(-1, n_labels, 300)]))
    weights = rng.integers(1, 4, len(rows)).astype(float) if weighted else None
    table = read_table(coded(labels, rows), categorical=[0])
    matrix = bin_table(table, RowWeights.make(len(rows), weights), 2, 1)
    (categories,) = matrix.categories
    assert matrix.n_bins.tolist() == [categories.n_codes]
    assert matrix.cuts[0].tolist() == []
    assert matrix.n_missing.tolist() == [(rows < 0).sum()]
    assert sorted((*categories.kept, *categories.rare)) == labels
    expected = [MISSING if k < 0 else categories.code(labels[k]) for k in rows]
    assert matrix.bins[0].tolist() == expected
    np.testing.assert_array_equal(apply_cuts(table, matrix.cuts, 1, matrix.categories), matrix.bins)
    if n_labels <= 255:
        assert categories.rare == ()
    else:
        assert len(categories.kept) == 254
        total = np.bincount(rows[rows >= 0], weights=None if weights is None else weights[rows >= 0])
        ranked = sorted(range(n_labels), key=lambda k: (-total[k], labels[k]))
        assert set(categories.kept) == {labels[k] for k in ranked[:254]}


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=30)
def test_weight_two_is_the_row_twice(seed, real):
    rng = np.random.default_rng(seed)
    rows, times = rng.integers(-1, 300, 500), rng.integers(1, 4, 500)
    factor = rng.choice([0.1, 0.7, 1.3], 500) if real else None
    X, labels = coded([f"label {k}" for k in range(300)], rows), [0]
    twice = None if factor is None else np.repeat(factor, times)
    one = bin_table(
        read_table(X, categorical=labels), RowWeights.make(500, times.astype(float), factor), 255, 1
    )
    two = bin_table(
        read_table(np.repeat(X, times, axis=0), categorical=labels),
        RowWeights.make(int(times.sum()), None, twice), 255, 2,
    )  # fmt: skip
    assert one.categories == two.categories
    np.testing.assert_array_equal(np.repeat(one.bins, times, axis=1), two.bins)


def test_numbers_beside_categories_keep_their_bins():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    X[rng.random(X.shape) < 0.1] = math.nan
    frame = pd.DataFrame(X, columns=["x", "y", "z"])
    frame.insert(1, "c", rng.choice(["u", "v", None], 500))
    weights = RowWeights.make(500, rng.integers(1, 5, 500).astype(float))
    plain = bin_table(read_table(X), weights, 20, 1)
    mixed = bin_table(read_table(frame, categorical="from_dtype"), weights, 20, 2)
    np.testing.assert_array_equal(mixed.bins[[0, 2, 3]], plain.bins)
    np.testing.assert_array_equal(mixed.n_bins, np.insert(plain.n_bins, 1, 2))
    assert plain.categories == (None, None, None)
    assert mixed.categories == (None, Categories(("u", "v")), None, None)
    for own, other in zip(plain.cuts, (mixed.cuts[j] for j in (0, 2, 3)), strict=True):
        np.testing.assert_array_equal(own, other)
    assert mixed.row_hashes(1).shape == (500,)


def test_unseen_labels_are_missing_under_known_categories():
    fit = read_table(objects("a", "b"), categorical=[0])
    matrix = bin_table(fit, RowWeights.make(2, None), 255, 1)
    new = read_table(objects("b", "c", None, "a"), categorical=[0])
    assert apply_cuts(new, matrix.cuts, 1, matrix.categories).tolist() == [[1, MISSING, MISSING, 0]]


def test_many_labels():
    labels = [f"label {k:06d}" for k in range(100_000)]
    rows = np.random.default_rng(0).permutation(
        np.r_[np.arange(100_000), np.repeat(np.arange(0, 2540, 10), 3)]
    )
    X = pd.DataFrame({"a": pd.Series(labels, dtype="str").iloc[rows]})
    table = read_table(X, categorical="from_dtype")
    assert table.columns[0].labels == tuple(labels)
    np.testing.assert_array_equal(table.columns[0].codes, rows)
    (categories,) = bin_table(table, RowWeights.make(len(rows), None), 255, 1).categories
    assert categories.kept == tuple(labels[0:2540:10])
    assert len(categories.rare) == 100_000 - 254

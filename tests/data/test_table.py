"""Arrays and frames give the same columns; what is not a table of numbers is refused with a clear message."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from cardboost.data import table as tables
from cardboost.data.table import check_rows, match_names, read_table

VALUES = np.array([[1.5, 2.0, 1.0], [np.nan, -3.0, 0.0], [0.25, 7.0, 1.0]])


def columns_of(X) -> np.ndarray:
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in read_table(X).columns])


ARRAYS = {
    "C": VALUES,
    "Fortran": np.asfortranarray(VALUES),
    "strided": np.repeat(VALUES, 2, axis=0)[::2],
    "reversed": VALUES[::-1][::-1, :],
    "float32": VALUES.astype(np.float32),
    "longdouble": VALUES.astype(np.longdouble),
    "float16": VALUES.astype(np.float16),
    "big endian": VALUES.astype(">f8"),
    "object": VALUES.astype(object),
    "list": VALUES.tolist(),
    "pandas": pd.DataFrame(VALUES),
    "polars": pl.DataFrame(VALUES),
}


@pytest.mark.parametrize("X", ARRAYS.values(), ids=ARRAYS.keys())
def test_same_columns(X):
    np.testing.assert_array_equal(columns_of(X), VALUES)


def test_misaligned_columns_are_copied():
    records = np.zeros(3, dtype=[("flag", "u1"), ("x", "<f8", (3,))])
    records["x"] = VALUES
    np.testing.assert_array_equal(columns_of(records["x"]), VALUES)


@pytest.mark.parametrize(
    "dtype", [np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint8, bool]
)
def test_whole_numbers_and_booleans(dtype):
    X = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    for table in (X, np.asfortranarray(X), pd.DataFrame(X), pl.DataFrame(X)):
        np.testing.assert_array_equal(columns_of(table), X.astype(float))


def test_numeric_arrays_are_not_copied():
    for X in (VALUES, np.asfortranarray(VALUES), VALUES.astype(np.float32), VALUES > 1):
        assert all(np.shares_memory(column, X) for column in read_table(X).columns)


def test_pandas_with_nullable_columns():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "flag": pd.array([True, False, None], dtype="boolean"),
            "real": pd.array([0.5, None, -1.0], dtype="Float64"),
            "plain": [1, 2, 3],
            "truth": [True, False, True],
            "small": np.array([1, 2, 3], dtype=np.int8),
        }
    )
    expected = [[1, 1, 0.5, 1, 1, 1], [np.nan, 0, np.nan, 2, 0, 2], [3, np.nan, -1, 3, 1, 3]]
    np.testing.assert_array_equal(columns_of(frame), expected)
    assert read_table(frame).names == tuple(frame.columns)


def test_polars_with_nulls():
    frame = pl.DataFrame(
        {"whole": [1, None, 3], "flag": [True, False, None], "real": [0.5, None, float("nan")]}
    )
    expected = [[1, 1, 0.5], [np.nan, 0, np.nan], [3, np.nan, np.nan]]
    np.testing.assert_array_equal(columns_of(frame), expected)
    assert read_table(frame).names == ("whole", "flag", "real")


def test_a_frame_and_its_array_have_the_same_digest():
    positive = np.array([True, False, True])
    digests = {
        read_table(X).digest(positive, None, 1) for X in (VALUES, pd.DataFrame(VALUES), pl.DataFrame(VALUES))
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([["a", "b"], ["c", "d"]], ValueError, "not numbers"),
        (pd.DataFrame({"x": [1, 2], "town": ["a", "b"]}), ValueError, "'town'"),
        (pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2020-01-02"])}), ValueError, "'when'"),
        (pd.DataFrame({"kind": pd.Categorical(["a", "b"])}), ValueError, "'kind'"),
        (pl.DataFrame({"x": [1, 2], "town": ["a", "b"]}), ValueError, "'town'"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), ValueError, "more than one column named 'x'"),
        (np.arange(3.0), ValueError, "two dimensions"),
        (np.float64(3), ValueError, "two dimensions"),
        (np.zeros((2, 2, 2)), ValueError, "two dimensions"),
        (np.zeros((2, 2), dtype=complex), ValueError, "Complex"),
        (scipy.sparse.csr_matrix(np.eye(2)), TypeError, "sparse"),
        (scipy.sparse.csr_array(np.eye(2)), TypeError, "sparse"),
        (None, ValueError, "dimensions|numbers"),
    ],
    ids=str,
)
def test_bad_tables(X, error, message):
    with pytest.raises(error, match=message):
        read_table(X)


def test_complex_columns_of_frames():
    with pytest.raises(ValueError, match="'z'"):
        read_table(pd.DataFrame({"z": np.array([1j, 2.0])}))


def test_empty_tables():
    for shape, message in (((0, 3), "0 sample"), ((3, 0), "0 feature")):
        with pytest.raises(ValueError, match=message):
            check_rows(read_table(np.empty(shape)))
    check_rows(read_table(np.zeros((1, 1))))


def test_take_keeps_names():
    table = read_table(pd.DataFrame(VALUES, columns=["a", "b", "c"])).take(np.array([True, False, True]))
    assert table.n_rows == 2
    assert table.names == ("a", "b", "c")
    assert table.label(1) == "column 'b'"
    assert read_table(VALUES).label(1) == "column 1"


def test_names_must_match():
    table = read_table(pd.DataFrame(VALUES, columns=["a", "b", "c"]))
    match_names(("a", "b", "c"), 3, table)
    match_names(None, 3, table)
    for seen, message in ((("a", "b", "d"), "missing: d"), (("b", "a", "c"), "another order")):
        with pytest.raises(ValueError, match=message):
            match_names(seen, 3, table)
    with pytest.raises(ValueError, match=r"3 features.*2 features"):
        match_names(None, 2, table)


def test_the_input_stays_as_it_is():
    frame = pd.DataFrame(VALUES)
    before = frame.copy()
    read_table(frame)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("kind", ["float64", "float32", "one integer", "dropped", "missing", "nullable"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_floats_are_read_at_once_as_column_by_column(library, kind, monkeypatch):
    rng = np.random.default_rng(4)
    values = rng.normal(size=(7, 5)).astype("float32" if kind == "float32" else "float64")
    if kind == "missing":
        values[2, 3] = np.nan
    data = {f"c{j}": values[:, j] for j in range(5)}
    if kind == "one integer":
        data["c1"] = np.arange(7)
    if library == "pandas":
        frame = pd.DataFrame(data)
        frame = frame.drop(columns=["c2"]) if kind == "dropped" else frame
        frame = frame.astype("Float64") if kind == "nullable" else frame
    else:
        frame = pl.DataFrame(data)
        frame = frame.drop("c2") if kind == "dropped" else frame
        frame = frame.with_columns(c4=pl.Series([1.5, None] + [0.5] * 5)) if kind == "nullable" else frame
    at_once = read_table(frame)
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 0)
    one_by_one = read_table(frame)
    assert at_once.names == one_by_one.names == tuple(frame.columns)
    assert at_once.n_rows == one_by_one.n_rows == 7
    for column, other in zip(at_once.columns, one_by_one.columns, strict=True):
        assert column.dtype == other.dtype
        np.testing.assert_array_equal(column, other)

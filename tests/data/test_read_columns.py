"""Every source gives the same columns, labels and codes, whatever the order of its rows; clear refusals."""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.certificate import checker
from cardboost.data.binning import MISSING, bin_table
from cardboost.data.categories import CategoricalColumn, plain_label
from cardboost.data.cells import LOCALES, meaning
from cardboost.data.reader import TableFormat, open_table
from cardboost.data.table import check_finite, read_table
from cardboost.data.weights import RowWeights

# ------------------------------------------------------------------------------------------------ sources

words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=6)


def is_text(word):
    """Whether a cell is a label in every file: no number, however it is written, and not missing."""
    found = meaning(pa.array([word]), LOCALES, 0)
    return word.strip() == word and not found.missing.any() and not found.matches.any()


words = words.filter(is_text)


def text_columns(rows):
    return st.lists(words, min_size=1, max_size=5, unique=True).flatmap(
        lambda labels: st.lists(st.sampled_from([*labels, None]), min_size=rows, max_size=rows)
    )


def number_columns(rows):
    reals = st.floats(allow_infinity=False, allow_nan=False, width=32)
    return st.one_of(
        st.lists(st.one_of(st.none(), reals), min_size=rows, max_size=rows),
        st.lists(st.one_of(st.none(), st.integers(-3, 3)), min_size=rows, max_size=rows),
        st.lists(st.booleans(), min_size=rows, max_size=rows),
    ).filter(lambda cells: any(cell is not None for cell in cells))


def has_text(cells):
    return any(isinstance(cell, str) for cell in cells)


@st.composite
def columns(draw):
    """Columns of text and of numbers, each with at least one entry, and a source of chance."""
    rows = draw(st.integers(1, 12))
    text = text_columns(rows).filter(has_text)
    drawn = draw(st.lists(st.one_of(text, number_columns(rows)), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return {f"column {j}": cells for j, cells in enumerate(drawn)}, rng


def pandas_column(cells, how):
    if not has_text(cells):
        if how % 3 == 0 and all(isinstance(cell, bool) for cell in cells):
            return pd.Series(cells)
        kind = {bool: ("boolean", pa.bool_()), int: ("Int64", pa.int64()), float: ("Float64", pa.float64())}
        own = kind[type(next(cell for cell in cells if cell is not None))]
        return pd.Series(pd.array(cells, dtype=own[0] if how % 2 else pd.ArrowDtype(own[1])))
    if how == 0:
        return pd.Series(cells, dtype=object)
    if how == 1:
        return pd.Series([math.nan if cell is None else cell for cell in cells], dtype=object)
    if how == 2:
        return pd.Series(cells, dtype="str")
    if how == 3:
        return pd.Series(cells, dtype="string")
    if how == 4:
        return pd.Series(pd.array(cells, dtype=pd.ArrowDtype(pa.string())))
    if how == 5:
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(cells).dictionary_encode()))
    own = {cell for cell in cells if cell is not None}
    return pd.Series(pd.Categorical(cells, categories=sorted({*own, "never there"}, reverse=True)))


def polars_column(cells, how):
    if not has_text(cells):
        return pl.Series(cells)
    own = {cell for cell in cells if cell is not None}
    types = [pl.String, pl.Categorical, pl.Enum(sorted({*own, "never there"}, reverse=True))]
    return pl.Series(cells, dtype=types[how % 3])


def sources(data, rng, folder):
    """The same columns in every form that can be read."""
    hows = rng.integers(0, 7, len(data)).tolist()
    yield pd.DataFrame(
        {name: pandas_column(own, k) for (name, own), k in zip(data.items(), hows, strict=True)}
    )
    yield pl.DataFrame(
        {name: polars_column(own, k) for (name, own), k in zip(data.items(), hows, strict=True)}
    )
    table = {name: pa.array(own) for name, own in data.items()}
    yield pa.table({name: own.dictionary_encode() if pa.types.is_string(own.type) and k % 2 else own
                    for (name, own), k in zip(table.items(), hows, strict=True)})  # fmt: skip
    array = np.empty((len(next(iter(data.values()))), len(data)), dtype=object)
    for j, cells in enumerate(data.values()):
        array[:, j] = cells
    yield array
    with open(folder / "data.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*data, "row"])  # a line with one empty cell would be a blank line
        cells = ([("" if cell is None else cell) for cell in own] for own in data.values())
        writer.writerows(zip(*cells, range(len(array)), strict=True))
    with open_table(str(folder / "data.csv"), TableFormat(",")) as file:
        yield file.read(list(data))


def assert_same(one, two):
    assert one.n_rows == two.n_rows
    assert one.names is None or two.names is None or one.names == two.names
    assert one.categorical == two.categorical
    for own, other in zip(one.columns, two.columns, strict=True):
        if isinstance(own, CategoricalColumn):
            assert own.labels == other.labels
            assert list(map(type, own.labels)) == list(map(type, other.labels))
            assert own.codes.dtype == other.codes.dtype == np.int32
            np.testing.assert_array_equal(own.codes, other.codes)
        else:
            np.testing.assert_array_equal(np.asarray(own, dtype=float), np.asarray(other, dtype=float))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("csv")


@given(columns())
@settings(max_examples=150)
def test_every_source_gives_the_same_table(folder, case):
    data, rng = case
    tables = [read_table(X, categorical="from_dtype") for X in sources(data, rng, folder)]
    rows = tables[0].n_rows
    for j, cells in enumerate(data.values()):
        column = tables[0].columns[j]
        if has_text(cells):
            assert column.labels == tuple(sorted({cell for cell in cells if cell is not None}))
            assert [None if code < 0 else column.labels[code] for code in column.codes] == cells
        else:
            assert not isinstance(column, CategoricalColumn)
    positive, target = rng.random(rows) < 0.5, rng.normal(size=rows)
    for table in tables[1:]:
        assert_same(tables[0], table)
        assert table.digest(positive, None, 1) == tables[0].digest(positive, None, 1)
        assert table.digest(None, None, 1, target) == tables[0].digest(None, None, 1, target)


@given(columns())
@settings(max_examples=100)
def test_any_column_can_be_one_of_categories(folder, case):
    """Numbers become labels; the positions of a fit read another table in the same way."""
    data, rng = case
    chosen = np.flatnonzero(rng.random(len(data)) < 0.6).tolist()
    chosen += [j for j, cells in enumerate(data.values()) if has_text(cells) and j not in chosen]
    array_like = list(sources(data, rng, folder))
    ways = [chosen, np.isin(np.arange(len(data)), chosen), np.array(chosen, dtype=np.int64)]
    tables = [read_table(X, categorical=ways[k % 3]) for k, X in enumerate(array_like)]
    tables.append(read_table(array_like[0], categorical=[f"column {j}" for j in chosen]))
    for table in tables:
        assert table.categorical == tuple(sorted(chosen))
        for own, other in zip(tables[0].columns, table.columns, strict=True):
            if isinstance(own, CategoricalColumn):
                assert own.labels == other.labels
                np.testing.assert_array_equal(own.codes, other.codes)
    for j in chosen:
        cells, column = list(data.values())[j], tables[0].columns[j]
        assert [None if code < 0 else column.labels[code] for code in column.codes] == cells


@given(columns())
@settings(max_examples=100)
def test_rows_in_another_order_give_the_same_labels(folder, case):
    data, rng = case
    rows = len(next(iter(data.values())))
    X = next(sources(data, rng, folder))
    table = read_table(X, categorical="from_dtype")
    order = rng.permutation(rows)
    moved = read_table(X.iloc[order], categorical="from_dtype")
    assert_same(moved, table.take(order))
    positive, weights = rng.random(rows) < 0.5, rng.integers(1, 4, rows) + rng.choice([0.0, 0.5])
    assert moved.digest(positive[order], weights[order], 2) == table.digest(positive, weights, 1)
    for own, other in zip(table.columns, moved.columns, strict=True):
        if isinstance(own, CategoricalColumn):
            assert own.labels == other.labels
    first = bin_table(table, RowWeights.make(rows, weights), 255, 1)
    second = bin_table(moved, RowWeights.make(rows, weights[order]), 255, 2)
    assert first.categories == second.categories
    np.testing.assert_array_equal(first.bins[:, order], second.bins)


@given(columns())
@settings(max_examples=100)
def test_rows_that_are_left_out_leave_nothing(folder, case):
    """What a fit does with rows of weight zero."""
    data, rng = case
    X = next(sources(data, rng, folder))
    keep = rng.random(len(X)) < 0.6
    keep[rng.integers(len(X))] = True
    taken, read = (
        read_table(X, categorical="from_dtype").take(keep),
        read_table(X[keep], categorical="from_dtype"),
    )
    for j in set(taken.categorical) - set(read.categorical):  # objects that are all missing count as numbers
        assert taken.columns[j].labels == ()
    both = [j for j in range(len(data)) if (j in taken.categorical) == (j in read.categorical)]
    one, two = (bin_table(own, RowWeights.make(own.n_rows, None), 255, 1) for own in (taken, read))
    assert [one.categories[j] for j in both] == [two.categories[j] for j in both]
    np.testing.assert_array_equal(one.bins, two.bins)
    np.testing.assert_array_equal(one.n_missing, two.n_missing)
    np.testing.assert_array_equal(one.n_bins, two.n_bins)


# ------------------------------------------------------------------------------------------------ labels

LABELS = {
    "numbers": ([3, 1, None, 3], (1, 3)),
    "reals and whole reals": ([2.5, 1.0, math.nan, -0.0], (0, 1, 2.5)),
    "truth values": ([True, False, True], (False, True)),
    "truth values and numbers": ([True, 0, 2], (0, 1, 2)),
    "text in order of code points": (
        ["b", "a", "B", "ä", "", "𝔞", "zz"],
        ("", "B", "a", "b", "zz", "ä", "𝔞"),
    ),
    "decimals": ([Decimal("1.5"), Decimal(2), Decimal("nan"), Fraction(1, 4)], (0.25, 1.5, 2)),
    "NumPy scalars": ([np.int8(1), np.float32(0.5), np.bool_(False), np.float64("nan")], (0, 0.5, 1)),
    "NumPy text": ([np.str_("b"), "a", pd.NA, pd.NaT, None], ("a", "b")),
    "large whole numbers": ([2**60, 2**60 + 1], (2**60, 2**60 + 1)),
    "nothing": ([None, math.nan, pd.NA], ()),
}


@pytest.mark.parametrize(("cells", "labels"), LABELS.values(), ids=LABELS)
def test_labels(cells, labels):
    X = np.empty((len(cells), 1), dtype=object)
    X[:, 0] = cells
    for table in (X, pd.DataFrame({"a": X[:, 0]})):
        column = read_table(table, categorical=[0]).columns[0]
        assert column.labels == labels
        assert [type(label) for label in column.labels] == [type(label) for label in labels]
        assert len(column) == len(cells)
        for cell, code in zip(cells, column.codes, strict=True):
            assert column.labels[code] == cell if code >= 0 else plain_label(cell) is None
        assert column.is_text == any(isinstance(cell, str) for cell in cells)


@pytest.mark.parametrize(
    "values",
    [
        np.array([[3, 1], [1, 1]]),
        np.array([[3, 1], [1, 1]], dtype=np.uint8),
        np.array([[3.0, 1], [1, 1]], dtype=np.float16),
        np.array([[3.0, 1], [1, 1]], dtype=np.longdouble),
        np.array([[3.0, 1], [1, 1]], dtype=">f8"),
        pd.DataFrame({"a": [3, 1], "b": [1, 1]}),
        pd.DataFrame({"a": pd.array([3, 1], dtype="Int64"), "b": [1, 1]}),
        pd.DataFrame({"a": pd.Categorical([3, 1], categories=[9, 3, 1]), "b": [1, 1]}),
        pd.DataFrame({"a": pd.array([3, 1], dtype=pd.ArrowDtype(pa.decimal128(9, 2))), "b": [1, 1]}),
        pl.DataFrame({"a": [3, 1], "b": [1, 1]}),
        pl.DataFrame({"a": [3, 1], "b": [1, 1]}, schema={"a": pl.Decimal, "b": pl.Int8}),
        pa.table({"a": [3, 1], "b": [1, 1]}),
        [[3, 1], [1, 1]],
    ],
    ids=lambda X: f"{type(X).__module__} {getattr(X, 'dtype', '')}",
)
def test_numbers_as_labels(values):
    table = read_table(values, categorical=[True, False])
    assert table.categorical == (0,)
    assert table.columns[0].labels == (1, 3)
    assert [type(label) for label in table.columns[0].labels] == [int, int]
    assert table.columns[0].codes.tolist() == [1, 0]


def test_categories_of_any_type():
    ages = pd.cut(pd.Series([5.0, 15, 25, math.nan]), [0, 10, 20, 30])
    days = pd.Categorical(pd.to_datetime(["2024-02-01", "2024-01-01", None, "2024-02-01"]))
    table = read_table(pd.DataFrame({"age": ages, "day": days}), categorical="from_dtype")
    assert table.columns[0].labels == ("(0, 10]", "(10, 20]", "(20, 30]")
    assert table.columns[0].codes.tolist() == [0, 1, 2, -1]
    assert table.columns[1].labels == ("2024-01-01 00:00:00", "2024-02-01 00:00:00")
    assert table.columns[1].codes.tolist() == [1, 0, -1, 1]


@pytest.mark.parametrize("dtype", ["U", "S", "T"])
def test_arrays_of_text(dtype):
    """As they come from lists of lists: numbers where all entries read as numbers."""
    X = np.array([["1.5", "a", "7"], ["nan", "b", "8"], ["-2", "a", "x"]]).astype(dtype)
    table = read_table(X, categorical="from_dtype")
    assert table.categorical == (1, 2)
    np.testing.assert_array_equal(table.columns[0], [1.5, math.nan, -2])
    assert table.columns[1].labels == ("a", "b")
    assert table.columns[2].labels == ("7", "8", "x")
    assert read_table(X[:2], categorical=(1, 2)).columns[2].labels == ("7", "8")
    assert read_table(X[:2], categorical=[True] * 3).columns[0].labels == ("1.5", "nan")
    np.testing.assert_array_equal(read_table(X[:2, ::2]).columns[1], [7, 8])


def test_lists_with_text():
    table = read_table([[1.5, "a"], [None, "b"], [2, None]], categorical="from_dtype")
    np.testing.assert_array_equal(table.columns[0], [1.5, math.nan, 2])
    assert table.columns[1].codes.tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": [None, None]}),
        pd.DataFrame({"a": pd.array([None, None], dtype="Int64")}),
        pd.DataFrame({"a": pd.array([None, None], dtype=pd.ArrowDtype(pa.null()))}),
        pl.DataFrame({"a": [None, None]}),
        pa.table({"a": pa.nulls(2)}),
        np.array([[None], [None]]),
    ],
    ids=lambda X: type(X).__module__,
)
def test_columns_where_everything_is_missing(X):
    for categorical in (None, "from_dtype", []):
        np.testing.assert_array_equal(read_table(X, categorical=categorical).columns[0], [math.nan] * 2)
    table = read_table(X, categorical=[0])
    assert table.columns[0].labels == ()
    assert table.columns[0].codes.tolist() == [-1, -1]
    matrix = bin_table(table, RowWeights.make(2, None), 255, 1)
    assert matrix.bins.tolist() == [[MISSING, MISSING]]
    assert (matrix.n_bins.tolist(), matrix.n_missing.tolist()) == ([1], [2])
    for text in (
        pd.DataFrame({"a": pd.Series([None, None], dtype="str")}),
        pl.DataFrame({"a": [None]}, {"a": str}),
    ):
        assert read_table(text, categorical="from_dtype").columns[0].labels == ()


# ------------------------------------------------------------------------------------------------ refusals


def objects(*cells):
    X = np.empty((len(cells), 1), dtype=object)
    X[:, 0] = cells
    return X


DATE = dt.date(2024, 1, 1)
BAD = {
    "text and numbers": (
        objects("red", None, 7),
        ValueError,
        r"X: column 0 holds both text \('red'\) and numbers \(7\): make its entries all text or all numbers",
    ),
    "numbers and text": (objects(7, None, "red"), ValueError, r"text \('red'\) and numbers \(7\)"),
    "in pandas": (
        pd.DataFrame({"mix": objects(True, "red")[:, 0]}),
        ValueError,
        r"X: column 'mix' holds both text \('red'\) and numbers \(True\)",
    ),
    "in pandas categories": (
        pd.DataFrame({"mix": pd.Categorical([1, "red", 1])}),
        ValueError,
        r"column 'mix' holds both text \('red'\) and numbers \(1\)",
    ),
    "in polars objects": (
        pl.DataFrame({"mix": pl.Series(["red", 1.5], dtype=pl.Object)}),
        ValueError,
        r"column 'mix' holds both text \('red'\) and numbers \(1.5\)",
    ),
    "dictionaries": (
        objects(1.5, {"foo": "bar"}),
        TypeError,
        r"column 0 holds \{'foo': 'bar'\} of type dict: each entry of the argument must be a string, a",
    ),
    "dictionaries after text": (objects("a", {"foo": "bar"}), TypeError, "of type dict"),
    "lists in pandas": (
        pd.DataFrame({"a": [["x"], ["y"]]}),
        TypeError,
        r"column 'a' holds \['x'\] of type list",
    ),
    "bytes": (objects(b"a", "b"), TypeError, "of type bytes"),
    "bytes after text": (objects("b", b"a"), TypeError, "of type bytes"),
    "bytes that are no text": (np.array([[b"\xff"]]), ValueError, "bytes that are not text in UTF-8"),
    "binary in polars": (pl.DataFrame({"a": [b"x"]}), ValueError, "column 'a' has type Binary: accepted are"),
    "binary in pandas": (
        pd.DataFrame({"a": pd.array([b"x"], dtype=pd.ArrowDtype(pa.binary()))}),
        ValueError,
        r"column 'a' has type binary\[pyarrow\]: accepted are",
    ),
    "lists in polars": (pl.DataFrame({"a": [[1]]}), ValueError, "has type List"),
    "records": (np.zeros((2, 1), dtype=[("x", "f8")]), ValueError, "column 0 has type"),
    "complex objects": (objects(1j, 2), ValueError, "Complex data not supported: X: column 0 holds 1j"),
    "complex columns": (pd.DataFrame({"z": [1j]}), ValueError, "Complex data not supported: X: column 'z'"),
    "huge numbers": (objects(10**400), ValueError, "column 0 holds a whole number that is too large"),
    "dates": (objects(DATE), ValueError, r"column 0 holds dates or times \(datetime.date\(2024, 1, 1\)\)"),
    "dates after text": (objects("a", DATE), ValueError, "dates or times"),
    "dates in pandas": (
        pd.DataFrame({"when": pd.to_datetime(["2024-01-01"])}),
        ValueError,
        r"X: column 'when' holds dates or times \(type datetime64.*\): convert them to numbers",
    ),
    "dates with a zone": (
        pd.DataFrame({"when": pd.to_datetime(["2024-01-01"], utc=True)}),
        ValueError,
        "dates or",
    ),
    "time spans in pandas": (pd.DataFrame({"when": [dt.timedelta(1)]}), ValueError, "dates or times"),
    "periods": (pd.DataFrame({"when": pd.period_range("2024", periods=2)}), ValueError, "dates or times"),
    "Arrow dates in pandas": (
        pd.DataFrame({"when": pd.array([DATE], dtype=pd.ArrowDtype(pa.date32()))}),
        ValueError,
        "dates or times",
    ),
    "Arrow times of day in pandas": (
        pd.DataFrame({"when": pd.array([dt.time(1)], dtype=pd.ArrowDtype(pa.time64("us")))}),
        ValueError,
        "dates or",
    ),
    "dates in polars": (pl.DataFrame({"when": [DATE]}), ValueError, "column 'when' holds dates or times"),
    "time spans in polars": (pl.DataFrame({"when": [dt.timedelta(1)]}), ValueError, "dates or times"),
    "dates in Arrow": (pa.table({"when": [DATE]}), ValueError, "dates or times"),
    "dates in NumPy": (np.array([["2024-01-01"]], dtype="M8[D]"), ValueError, "dates or times"),
    "duplicate names": (
        pd.DataFrame([["a", 1]], columns=["x", "x"]),
        ValueError,
        "more than one column named 'x'",
    ),
    "duplicate names in Arrow": (
        pa.table([pa.array([1]), pa.array(["a"])], names=["x", "x"]),
        ValueError,
        "more than one column named 'x'",
    ),
    "rows not there yet": (
        pl.LazyFrame({"a": [1]}),
        TypeError,
        "LazyFrame, whose rows are not there yet: collect",
    ),
    "one column of text": (np.array(["a", "b"]), ValueError, "two dimensions"),
}


@pytest.mark.parametrize(("X", "error", "message"), BAD.values(), ids=BAD)
def test_refusals(X, error, message):
    with pytest.raises(error, match=message):
        read_table(X, categorical="from_dtype")


@pytest.mark.parametrize("label", [math.inf, -math.inf, 10**400, Decimal("inf")])
def test_labels_must_be_finite(label):
    with pytest.raises(ValueError, match=r"column 0 holds .* as a category: only text and finite numbers"):
        read_table(objects(1, label), categorical=[0])
    if isinstance(label, float):
        with pytest.raises(ValueError, match="finite numbers"):
            read_table(np.array([[label]]), categorical=[0])


NOT_DECLARED = [
    (pd.DataFrame({"x": [1, 2], "town": ["Rome", "Oslo"]}), "column 'town' holds text ('Rome')"),
    (
        pd.DataFrame({"x": [1, 2], "town": ["Rome", "Oslo"]}, dtype=object),
        "column 'town' holds text ('Rome')",
    ),
    (pd.DataFrame({"x": [1, 2], "town": pd.Categorical(["a", "b"])}), "column 'town' has type category"),
    (pl.DataFrame({"x": [1, 2], "town": ["Rome", "Oslo"]}), "column 'town' holds text ('Oslo')"),
    (
        pl.DataFrame({"x": [1], "town": pl.Series(["a"], dtype=pl.Categorical)}),
        "column 'town' has type Categorical",
    ),
    (pa.table({"x": [1, 2], "town": ["Rome", "Oslo"]}), "column 'town' holds text ('Rome')"),
    (pa.table({"x": [1], "town": pa.array(["a"]).dictionary_encode()}), "column 'town' has type dictionary"),
    (objects(None, "1", "Rome"), "column 0 holds text ('1')"),
    (np.array([["1", "2"], ["3", "Rome"]]), "column 1 holds text ('Rome')"),
]


@pytest.mark.parametrize(("X", "message"), NOT_DECLARED, ids=lambda part: type(part).__module__)
def test_text_that_nobody_declared(X, message):
    for categorical in ([], [0]) if len(getattr(X, "columns", [1, 2])) > 1 and X.shape[1] > 1 else ([],):
        with pytest.raises(ValueError) as fault:
            read_table(X, categorical=categorical)
        assert message in str(fault.value)
        assert "must be one of the categorical_features of the fit" in str(fault.value)
    with pytest.raises(ValueError):
        read_table(X)


FRAME = pd.DataFrame({"town": ["a", "b"], "age": [1, 2], "rank": [3, 4]})
WRONG = {
    "unknown name": (["twon"], "names the column 'twon', which X does not have: did you mean 'town'?"),
    "unknown and unlike": (["height"], "which X does not have: the first columns are town, age, rank."),
    "short mask": ([True, False], "is a mask of 2 entries, but X has 3 features"),
    "long mask": (np.ones(4, dtype=bool), "is a mask of 4 entries, but X has 3 features"),
    "names and positions": (["town", 1], "mixes names and positions ('town' and 1)"),
    "mask and positions": ([True, 1, 0], "mixes truth values and positions (True and 1)"),
    "position beyond": ([0, 3], "holds the position 3, but X has 3 features: positions go from 0 to 2"),
    "position below": ([-1], "holds the position -1"),
    "real numbers": ([1.0], "holds 1.0: accepted are"),
    "None within": (["town", None], "holds None: accepted are"),
    "another word": ("auto", "categorical_features='auto' is not understood: accepted are 'from_dtype'"),
    "a bare name": (
        "town",
        "categorical_features='town' is not understood (one name goes into a list: ['town'])",
    ),
}


@pytest.mark.parametrize(("categorical", "message"), WRONG.values(), ids=WRONG)
def test_wrong_choices_of_columns(categorical, message):
    with pytest.raises(ValueError) as fault:
        read_table(FRAME, categorical=categorical)
    assert message in str(fault.value)


def test_more_wrong_choices_of_columns():
    with pytest.raises(TypeError, match="categorical_features=3 is not understood"):
        read_table(FRAME, categorical=3)
    with pytest.raises(ValueError, match="names the column 'a', but X has no column names: give positions"):
        read_table(np.zeros((2, 2)), categorical=["a"])
    with pytest.raises(ValueError, match="has no column names"):
        read_table(pd.DataFrame(np.zeros((2, 2))), categorical=["0"])


def test_choices_of_columns():
    ways = [
        ["town"],
        ("town",),
        {"town"},
        np.array(["town"]),
        pd.Index(["town"]),
        [0],
        range(1),
        np.array([0]),
    ]
    ways += [
        [True, False, False],
        np.array([True, False, False]),
        pd.Series([True, False, False]),
        "from_dtype",
    ]
    for categorical in ways:
        assert read_table(FRAME, categorical=categorical).categorical == (0,)
    assert read_table(FRAME, categorical=["town", "rank", "town"]).categorical == (0, 2)


def test_columns_that_nobody_looks_at():
    X = pd.DataFrame({"when": pd.to_datetime(["2024", "2025"]), "x": [1.5, 2], "mix": objects(1, "a")[:, 0]})
    with pytest.raises(ValueError, match="'when'"):
        read_table(X)
    table = read_table(X, only=[1])
    np.testing.assert_array_equal(table.columns[1], X["x"])
    for j in (0, 2):
        np.testing.assert_array_equal(table.columns[j], [math.nan] * 2)
    assert table.names == ("when", "x", "mix")
    assert read_table(objects(1, "a"), only=()).n_features == 1
    array = np.array([[1, "a"], [2, "b"]], dtype=object)
    assert read_table(array, categorical=[1], only=[1]).columns[1].labels == ("a", "b")


def test_numbers_beside_categories_are_not_copied():
    frame = pd.DataFrame({"x": np.arange(5.0), "c": list("abcab")})
    table = read_table(frame, categorical="from_dtype")
    assert np.shares_memory(table.columns[0], frame["x"].to_numpy())
    X = np.arange(10.0).reshape(5, 2)
    assert np.shares_memory(read_table(X, categorical=[0]).columns[1], X)
    assert all(np.shares_memory(own, X) for own in read_table(X, categorical="from_dtype").columns)


def test_infinity_beside_categories():
    frame = pd.DataFrame({"c": ["a", "b"], "x": [1.0, 2], "y": [1.0, math.inf]})
    table = read_table(frame, categorical="from_dtype")
    with pytest.raises(ValueError, match="infinity in column 'y'"):
        check_finite(table, 1)
    with pytest.raises(ValueError, match="infinity in column 'y'"):
        bin_table(table, RowWeights.make(2, None), 255, 1)
    check_finite(table.take(np.array([0])), 1)


# ------------------------------------------------------------------------------------------------ digests


def digest_value(label):
    """The definition once more, for plain labels."""
    text = f"s:{label}" if isinstance(label, str) else f"n:{float(label)!r}"
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    return math.nan if label is None else float(number // 2**11)


@given(columns(), st.sampled_from([None, "counts", "real"]))
@settings(max_examples=60)
def test_the_digest_is_that_of_the_numbers_for_the_labels(folder, case, weighting):
    data, rng = case
    table = read_table(next(sources(data, rng, folder)), categorical="from_dtype")
    rows = table.n_rows
    weights = None if weighting is None else rng.integers(1, 5, rows) + (0.37 if weighting == "real" else 0.0)
    numbers = np.empty((rows, len(data)))
    for j, cells in enumerate(data.values()):
        as_number = digest_value if has_text(cells) else float
        numbers[:, j] = [math.nan if cell is None else as_number(cell) for cell in cells]
    positive, target = rng.random(rows) < 0.5, rng.normal(size=rows)
    assert table.digest(positive, weights, 2) == checker.data_digest(numbers, positive, weights)
    regression = checker.data_digest(np.column_stack([numbers, target]), None, weights)
    assert table.digest(None, weights, 1, target) == regression
    assert table.digest(None, weights, 1, target + 1) != regression

"""Reading CSV: what is understood, and the sentence for everything that is not."""

import math
import os
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cardboost.cli import csv_table
from cardboost.cli.csv_table import open_csv
from cardboost.cli.files import BadInput
from cardboost.cli.values import same_label
from cardboost.data.frame import Coded, Column
from cardboost.data.table import read_table


@pytest.fixture
def write(tmp_path):
    def make(text, encoding="utf-8"):
        path = tmp_path / "data.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return str(path)

    return make


def read(path, label=None, delimiter=None, kind="auto"):
    with open_csv(path, delimiter) as source:
        names = [name for name in source.names if name != label]
        return source.read(names, label, dict.fromkeys(names, kind))


def test_numbers_words_and_missing_values(write):
    frame, _ = read(write("a,b\n1,true\n-2.5e3,False\n,NA\nNaN,nan\nnull,?\n 7 , 8\n"))
    np.testing.assert_array_equal(frame.data["a"], [1, -2500, math.nan, math.nan, math.nan, 7])
    np.testing.assert_array_equal(frame.data["b"], [1, 0, math.nan, math.nan, math.nan, 8])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found_out(write, delimiter):
    text = "first,a;b\n1.5;2\n".replace(";", delimiter) if delimiter != "," else '"first;a",b\n1.5,2\n'
    frame, _ = read(write(text if delimiter == "," else text.replace(f"first,a{delimiter}", f"f{delimiter}")))
    assert [values.tolist() for values in frame.data.values()] == [[1.5], [2.0]]


def test_decimal_points_beat_commas_in_quotes(write):
    frame, _ = read(write('"a,b,c,d";y\n1;2\n3;4\n'))
    assert frame.columns == ["a,b,c,d", "y"]


def test_byte_order_mark_windows_lines_and_blank_lines(write):
    frame, _ = read(write("﻿a,b\r\n1,2\r\n\r\n3,4\r\n\r\n"))
    assert frame.columns == ["a", "b"]
    assert frame.data["b"].tolist() == [2.0, 4.0]


def test_blocks_join_and_lines_count_across_them(write, monkeypatch):
    monkeypatch.setattr(csv_table, "_CELLS_PER_BLOCK", 6)
    rows = [f"{k},{k * 0.1!r},{'no' if k % 3 else 'yes'}" for k in range(20)]
    frame, labels = read(write("\n".join(["a,b,y", *rows])), "y")
    np.testing.assert_array_equal(frame.data["b"], [k * 0.1 for k in range(20)])
    assert labels.classes() == ["no", "yes"]
    assert labels.equal("yes").tolist() == [k % 3 == 0 for k in range(20)]
    rows[17] = "17,oops,no"
    with pytest.raises(BadInput, match=r"line 19: column 'b' holds 'oops'"):
        read(write("\n".join(["a,b,y", *rows])), "y")


def test_lines_are_counted_through_quotes_and_blank_lines(write):
    with pytest.raises(BadInput, match=r"line 6: column 'b' holds 'x'"):
        read(write('a,b,y\n\n1,2,"two\nlines"\n\n1,x,no\n'), "y", kind="numbers")


@pytest.mark.parametrize(
    ("cells", "classes"),
    [
        (["0", "1"], [0, 1]),
        (["1.0", "0.0", "1"], [0, 1]),
        (["-1", "+1"], [-1, 1]),
        (["10", "9"], [9, 10]),
        (["0.5", "1"], ["0.5", "1"]),
        (["yes", " no"], ["no", "yes"]),
        (["True", "False"], ["False", "True"]),
        (["1_0", "2"], ["1_0", "2"]),
    ],
)
def test_labels_are_whole_numbers_or_text(write, cells, classes):
    _, labels = read(write("\n".join(["a,y", *(f"1,{cell}" for cell in cells)])), "y")
    assert labels.classes() == classes
    assert [type(own) for own in labels.classes()] == [type(own) for own in classes]
    assert (labels.equal(classes[0]) ^ labels.equal(classes[1])).all()


def test_labels_of_models():
    assert same_label("1.0", 1)
    assert same_label(" true", True)
    assert same_label("0", False)
    assert same_label("0.50", 0.5)
    assert not same_label("1", "1.0")
    assert not same_label("yes", 1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "is empty: a header"),
        (b"\n\n  \n", "is empty: a header"),
        (b"a,b\n", "has a header but no rows"),
        (b"a,b\n1,2\n3\n", "line 3: 1 cell, but the header has 2 columns"),
        (b"a,b\n1,2,3\n", "line 2: 3 cells, but the header has 2 columns"),
        (b"a,a\n1,2\n", "more than one column named 'a'"),
        (b"a,b\n1,Paris\n", "line 2: column 'b' holds 'Paris', which is not a number"),
        (b"a;b\n1;2\n1;3,14\n", "line 3: column 'b' holds '3,14': write decimals with a point"),
        (b"a,b\n1,inf\n", "line 2: column 'b' holds inf; numbers must be finite"),
        (b"a,b\n1,-1e999\n", "column 'b' holds -1e999"),
        (b"a,b\n1,1_000\n", "holds '1_000', which is not a number"),
        (b"a,b,c\nx,1,y\n", r"column 'a' holds 'x', which is not a number \(so does 'c'\)"),
        (b'a,b\n1,"' + b"x" * 200_000 + b'"\n', "line 2: a cell has more than 131,072 characters"),
    ],
)
def test_faults_are_one_sentence(write, text, sentence):
    with pytest.raises(BadInput, match=sentence) as fault:
        read(write(text), kind="numbers")
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (["0", "", "1"], "line 3: the target 'y' is empty; every row needs a label"),
        (["0", "NA"], "line 3: the target 'y' holds 'NA', a missing value"),
        (["0", "1", "2"], r"more than two classes \('0', '1' and '2'\)"),
    ],
)
def test_faults_of_the_target(write, cells, sentence):
    with pytest.raises(BadInput, match=sentence):
        read(write("\n".join(["a,y", *(f"1,{cell}" for cell in cells)])), "y")


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        read(str(tmp_path / "none.csv"))
    with pytest.raises(BadInput, match="is a directory"):
        read(str(tmp_path))


# ------------------------------------------------------------------------------------------------ categories


def labels_of(values):
    assert isinstance(values, Coded)
    return values.objects().tolist()


def test_text_becomes_categories(write):
    frame, _ = read(write("town,a\n Oslo ,1\nRome,2\n,3\nNA,4\n?,5\nOslo,6\nnone,7\n"))
    assert frame.data["town"].labels == ("Oslo", "Rome", "none")
    assert labels_of(frame.data["town"]) == ["Oslo", "Rome", None, None, None, "Oslo", "none"]
    assert frame.data["a"].dtype == np.float64
    assert frame.categories == {"town": 3}
    assert frame.n_missing == 3
    taken = frame.take(np.array([0, 0, 1, 0, 0, 1, 0], dtype=bool))
    assert labels_of(taken.data["town"]) == [None, "Oslo"]
    assert taken.n_missing == 1


def test_columns_are_readable_as_those_of_a_frame(write):
    frame, _ = read(write("town,a\nRome,1\n,2\nOslo,\n"))
    town, a = frame["town"], frame["a"]
    assert isinstance(town, Column)
    assert str(town.dtype) == "category"
    assert town.cat.categories == ("Oslo", "Rome")
    assert town.cat.codes.tolist() == [1, -1, 0]
    assert np.asarray(town, dtype=object).tolist() == ["Rome", None, "Oslo"]
    assert len(town) == len(a) == 3
    assert a.to_numpy() is np.asarray(a)
    assert not hasattr(a, "cat")


@pytest.mark.parametrize("block", [2, 7, 1000])
def test_text_after_blocks_of_numbers_is_read_again(write, monkeypatch, block):
    monkeypatch.setattr(csv_table, "_CELLS_PER_BLOCK", 3 * block)
    cells = [*map(str, range(8)), "01", "1.0", "", "x", "y", "x"]
    frame, labels = read(write("\n".join(["a,b,y", *(f"{k},{c},{k % 2}" for k, c in enumerate(cells))])), "y")
    assert labels_of(frame.data["b"]) == [cell or None for cell in cells]
    assert frame.columns == ["a", "b"]
    assert frame.data["a"].tolist() == list(range(14))
    assert labels.equal(1).tolist() == [k % 2 == 1 for k in range(14)]


def test_a_pipe_cannot_be_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_table, "_CELLS_PER_BLOCK", 4)
    text = "a,b\n" + "".join(f"{k},{k if k < 6 else 'x'}\n" for k in range(12))
    path = str(tmp_path / "pipe")
    os.mkfifo(path)

    def read_pipe(kind):
        writer = threading.Thread(target=Path(path).write_text, args=(text,))
        writer.start()
        try:
            with open_csv(path) as source:
                return source.read(["b"], kinds={"b": kind})[0]
        finally:
            writer.join()

    with pytest.raises(BadInput, match=r"line 8: column 'b' holds 'x' after many numbers.*--categorical b\."):
        read_pipe("auto")
    assert labels_of(read_pipe("categories").data["b"]) == [*"012345", *"xxxxxx"]


@pytest.mark.parametrize("block", [3, 20_000])
def test_rare_text_among_numbers_is_a_mistake(write, monkeypatch, block):
    monkeypatch.setattr(csv_table, "_CELLS_PER_BLOCK", 2 * block)
    cells = [str(k) for k in range(10_000)] if block > 3 else [str(k) for k in range(100)]
    cells[50], cells[60], cells[70] = "12o", "", "?"
    path = write("\n".join(["a,my b", *(f"1,{cell}" for cell in cells)]))
    known = len(cells) - 2
    with pytest.raises(BadInput) as fault:
        read(path)
    assert str(fault.value).endswith(
        f"line 52: column 'my b' holds '12o', but {known - 1:,} of its {known:,} cells are numbers: correct "
        "what is not, or make categories of all with --categorical 'my b'."
    )
    with pytest.raises(BadInput, match="line 52: column 'my b' holds '12o', which is not a number"):
        read(path, kind="numbers")
    with open_csv(path) as source:
        frame, _ = source.read(["my b"], kinds={"my b": "categories"})
    assert labels_of(frame.data["my b"]) == [None if cell in ("", "?") else cell for cell in cells]


def test_where_mistakes_end_and_categories_begin(write):
    for others, mistake in ((19, True), (18, False)):
        path = write("\n".join(["a,b", *(f"{k},{k}" for k in range(others)), "1,x", "1,", "1,NA"]))
        if mistake:
            with pytest.raises(BadInput, match="19 of its 20 cells are numbers"):
                read(path)
        else:
            assert len(read(path)[0].data["b"].labels) == 19


def test_decimal_commas(write):
    with pytest.raises(
        BadInput, match=r"line 2: column 'b' holds '1,5': write decimals with a point, or make"
    ):
        read(write("a;b\n1;1,5\n1;2,5\n1;3\n"))
    frame, _ = read(write("a;b\n1;1,5\n1;2,5\n1;few\n"))
    assert frame.data["b"].labels == ("1,5", "2,5", "few")
    assert read(write("a;b\n1;1,5\n"), kind="text")[0].data["b"].labels == ("1,5",)


def test_numbers_as_labels(write):
    """As a frame library would read the file; text only where some cell is no number."""
    path = write("zip,flag,half\n01234,true,0.5\n1234,False,1.0\n,,1e3\n")
    frame, _ = read(path, kind="categories")
    assert [own.labels for own in frame.data.values()] == [(1234,), (0, 1), (0.5, 1, 1000)]
    assert [type(label) for label in frame.data["half"].labels] == [float, int, int]
    assert labels_of(frame.data["zip"]) == [1234, 1234, None]
    assert read(path, kind="text")[0].data["zip"].labels == ("01234", "1234")
    with pytest.raises(BadInput, match="column 'b' holds an infinite number"):
        read(write("a,b\n1,inf\n"), kind="categories")


def test_pandas_reads_the_same_table(write):
    text = "town,age,zip,flag,note\n" + "".join(
        f"{town},{age},{zip_},{flag},{note}\n"
        for town, age, zip_, flag, note in [
            ("Oslo", 31, 100, True, "a b"),
            ("", 45.5, 200, False, "7"),
            ("Ürümqi", "", 100, True, "NA"),
            ("Rome", 1e-3, 300, True, "x"),
            ("Oslo", -2, 200, False, '"1,5"'),
        ]
    )
    frame, _ = read(write(text))
    other = pd.read_csv(write(text))
    for categorical in ("from_dtype", ["town", "note", "zip"], [0, 2, 3, 4]):
        one, two = (read_table(X, categorical=categorical) for X in (frame, other))
        assert one.categorical == two.categorical
        assert one.names == two.names
        for own, twin in zip(one.columns, two.columns, strict=True):
            if hasattr(own, "labels"):
                assert own.labels == twin.labels
                np.testing.assert_array_equal(own.codes, twin.codes)
            else:
                np.testing.assert_array_equal(own.astype(float), twin.astype(float))
        positive = np.array([True, False, True, True, False])
        assert one.digest(positive, None, 1) == two.digest(positive, None, 1)
    with open_csv(write(text)) as source:
        coded, _ = source.read(frame.columns, kinds={"zip": "categories"})
    one = read_table(coded, categorical="from_dtype")
    two = read_table(other, categorical=["town", "zip", "note"])
    assert one.categorical == two.categorical == (0, 2, 4)
    assert one.columns[2].labels == two.columns[2].labels == (100, 200, 300)

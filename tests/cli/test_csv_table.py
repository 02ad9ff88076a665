"""Reading CSV: what is understood, and the sentence for everything that is not."""

import math

import numpy as np
import pytest

from cardboost.cli import csv_table
from cardboost.cli.csv_table import open_csv, same_label
from cardboost.cli.files import BadInput


@pytest.fixture
def write(tmp_path):
    def make(text, encoding="utf-8"):
        path = tmp_path / "data.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return str(path)

    return make


def read(path, label=None, delimiter=None):
    with open_csv(path, delimiter) as source:
        return source.read([name for name in source.names if name != label], label)


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
        read(write('a,b,y\n\n1,2,"two\nlines"\n\n1,x,no\n'), "y")


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
        (b"a,b\n1,Paris\n", "line 2: column 'b' holds 'Paris', which is not a number: categories are not"),
        (b"a;b\n1;2\n1;3,14\n", "line 3: column 'b' holds '3,14': write decimals with a point"),
        (b"a,b\n1,inf\n", "line 2: column 'b' holds inf; numbers must be finite"),
        (b"a,b\n1,-1e999\n", "column 'b' holds -1e999"),
        (b"a,b\n1,1_000\n", "holds '1_000', which is not a number"),
        (b"a,b,c\nx,1,y\n", r"column 'a' holds 'x', which is not a number \(so does 'c'\)"),
        (b"a,b\n1,\xff\n", "is not a text file in UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "is not a text file in UTF-8"),
        (b'a,b\n1,"' + b"x" * 200_000 + b'"\n', "line 2: this is not CSV"),
    ],
)
def test_faults_are_one_sentence(write, text, sentence):
    with pytest.raises(BadInput, match=sentence) as fault:
        read(write(text))
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
    with pytest.raises(BadInput, match="cannot read"):
        read(str(tmp_path))

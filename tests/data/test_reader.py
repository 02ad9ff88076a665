"""Ugly files: each is read as a person would read it, or refused in one sentence with its place."""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data import text_table
from cardboost.data.cells import Marks
from cardboost.data.frame import Coded
from cardboost.data.reader import TableError, TableFormat, open_table
from cardboost.data.table import read_table
from marks import first
from ugly_files import UGLY


def cells(values):
    """A column as a list, None where it is missing."""
    if isinstance(values, Coded):
        assert list(values.labels) == sorted(set(values.labels))
        return values.objects().tolist()
    return [None if math.isnan(value) else value for value in values.tolist()]


def read(paths, names=None, form=None, kinds=None):
    with open_table(paths, form or TableFormat()) as table:
        names = table.names if names is None else names
        if isinstance(kinds, str):
            kinds = dict.fromkeys(names, kinds)
        return {name: cells(values) for name, values in table.read(names, kinds).data.items()}


def said(paths, **how):
    """The sentence of a file that is refused."""
    with pytest.raises(TableError) as fault:
        read(paths, **how)
    sentence = str(fault.value)
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence
    return sentence


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", UGLY)
def test_ugly_files(work, name):
    content, expected = UGLY[name]
    (work / "data").write_bytes(content.encode() if isinstance(content, str) else content)
    if isinstance(expected, str):
        sentence = said("data")
        assert sentence.startswith(("data", "cannot read 'data'"))
        assert expected in sentence
    else:
        assert read("data") == expected


def test_there_are_enough_ugly_files():
    assert len(UGLY) >= 60


# ------------------------------------------------------------------------------------------------ formats


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (TableFormat(decimal=","), [1.234, 2.5]),
        (TableFormat(decimal="."), "but other numbers are written like '1234.5'"),
        (TableFormat(thousands=","), "but other numbers are written like '1,234.5'"),
        (TableFormat(decimal=",", thousands=""), [1.234, 2.5]),
    ],
)
def test_given_marks(work, form, expected):
    (work / "a.csv").write_text("a;b\n1,234;1\n2,5;2\n")
    if isinstance(expected, str):
        assert expected in said("a.csv", form=form)
    else:
        assert read("a.csv", form=form)["a"] == expected


def test_given_marks_end_a_doubt(work):
    (work / "a.csv").write_text('a;b\n1,234;1\n"12,345";2\n')
    assert read("a.csv", form=TableFormat(decimal=","))["a"] == [1.234, 12.345]
    assert read("a.csv", form=TableFormat(thousands=","))["a"] == [1234, 12345]
    assert read("a.csv", form=TableFormat(decimal="."))["a"] == [1234, 12345]
    assert read("a.csv", kinds="text")["a"] == ["1,234", "12,345"]
    assert read("a.csv", ["b"])["b"] == [1, 2]
    (work / "a.csv").write_text("a;b\n1_234;1\n12_345;2\n")
    assert read("a.csv", form=TableFormat(thousands="_"))["a"] == [1234, 12345]
    for wrong in ({"decimal": ";"}, {"thousands": "x"}, {"thousands": ".", "decimal": "."}):
        with pytest.raises(TableError, match="mark"):
            TableFormat(**wrong)


def test_marks_after_the_first_block(work, monkeypatch):
    monkeypatch.setattr(text_table, "SAMPLE", 100)
    monkeypatch.setattr(text_table, "BLOCK", 200)
    rows = [f"{k};{k}" for k in range(200)] + ["200;1,5", "201;1.234,5"]
    (work / "a.csv").write_text("\n".join(["a;b", *rows]))
    with open_table("a.csv") as table:
        assert cells(table.read(["b"]).data["b"]) == [*range(200), 1.5, 1234.5]
        assert (table.form["decimal"], table.form["thousands"]) == (",", ".")
        assert table.remarks == [
            "a.csv was read with ',' as the decimal mark and '.' as the mark of thousands."
        ]
        frames = list(table.batches(["b"]))
    assert [value for frame in frames for value in cells(frame.data["b"])] == [*range(200), 1.5, 1234.5]


SALES = "sales;n\n9.042;1\n840;2\n"
DOUBT = (
    "a.csv: the points in column 'sales' were read as decimal marks ('9.042' beside '840'); if they stand "
    "between thousands, say so with --thousands . (if not, --decimal . ends this remark)."
)


@pytest.mark.parametrize(
    ("text", "doubts"),
    [
        (SALES, True),
        (SALES + "-12.500;3\nNA;4\n", True),
        (SALES + "9.04;3\n", False),
        (SALES + "0.842;3\n", False),
        (SALES + "1840;3\n", False),
        (SALES + "1234.567;3\n", False),
        (SALES + "3;2.5\n", False),  # a point that can only be a decimal mark
        ("sales;n\n9.042;1\n8.400;2\n", False),  # all with three decimals
    ],
)
def test_points_that_may_stand_between_thousands(work, monkeypatch, text, doubts):
    """Whole or in batches, and wherever the cells stand that tell."""
    (work / "a.csv").write_text(text)
    for size in (1 << 18, 24):
        monkeypatch.setattr(text_table, "SAMPLE", size)
        monkeypatch.setattr(text_table, "BLOCK", size)
        with open_table("a.csv") as table:
            assert cells(table.read(["sales"]).data["sales"])[0] == 9.042
            assert table.remarks == ([DOUBT] if doubts else [])
        with open_table("a.csv") as table:
            list(table.batches(table.names, dict.fromkeys(table.names, "numbers")))
            assert table.remarks == ([DOUBT] if doubts else [])
    with open_table("a.csv", TableFormat(decimal=".")) as table:
        table.read(["sales"])
        assert table.remarks == []


def test_points_after_blocks_of_whole_numbers(work, monkeypatch):
    monkeypatch.setattr(text_table, "SAMPLE", 100)
    monkeypatch.setattr(text_table, "BLOCK", 200)
    whole = [f"{k};{k};{k}" for k in range(1, 300)]
    for quote in ("", '"'):
        (work / "a.csv").write_text("\n".join(["a;sales;c", *whole, f"{quote}0.5{quote};1.042;3", "2;840;4"]))
        with open_table("a.csv") as table:
            frame = table.read(table.names)
            assert table.remarks == []  # as 0.5 can only be read with a decimal point
            assert cells(frame.data["a"]) == [*range(1, 300), 0.5, 2]
            assert cells(frame.data["sales"]) == [*range(1, 300), 1.042, 840]
        (work / "a.csv").write_text(
            "\n".join(["a;sales;c", *whole, f"{quote}8{quote};;3", "7;1.042;1", "2;840;4"])
        )
        with open_table("a.csv") as table:
            table.read(table.names)
            assert [DOUBT.replace("9.042", "1.042").replace("840", "1")] == table.remarks


def test_several_columns_in_doubt_and_the_option_that_ends_it(work):
    (work / "a.csv").write_text("a;b\n9.042;1.000\n840;2\n")
    with open_table("a.csv") as table:
        table.read(table.names)
        assert "the points in columns 'a' and 'b' were read as decimal marks" in table.remarks[0]
    assert read("a.csv", form=TableFormat(thousands=".")) == {"a": [9042, 840], "b": [1000, 2]}


@pytest.mark.parametrize(
    ("text", "usual", "expected", "remark"),
    [
        (
            SALES,
            Marks(",", "."),
            [9042, 840],
            "was read with ',' as the decimal mark and '.' as the mark of ",
        ),
        (SALES, Marks(","), [9042, 840], "of thousands; the table of the model had ',' as the decimal mark."),
        (SALES, Marks(), [9.042, 840], "the points in column 'sales' were read as decimal marks"),
        ("sales\n0.5\n840\n", Marks(",", "."), [0.5, 840], "read with '.' as the decimal mark; the table of"),
        ("sales;n\n1,234;1\n", Marks(","), [1.234], "read with ',' as the decimal mark."),
        ("sales;n\n1,234;1\n", Marks(".", ","), [1234], "and ',' as the mark of thousands."),
    ],
)
def test_marks_of_the_training_table_come_first(work, text, usual, expected, remark):
    (work / "a.csv").write_text(text)
    with open_table("a.csv", TableFormat(usual=usual)) as table:
        assert cells(table.read(["sales"]).data["sales"]) == expected
        assert len(table.remarks) == 1
        assert remark in table.remarks[0]
    with open_table("a.csv", TableFormat(decimal=".", thousands="", usual=Marks(",", "."))) as table:
        assert table.marks == Marks()  # what is given goes before


def test_form_and_remarks(work):
    (work / "a.csv").write_bytes(gzip.compress("a;b;\n1,5;é;\n".encode("cp1252")))
    with open_table("a.csv") as table:
        assert table.form == {
            "format": "csv",
            "compression": "gzip",
            "encoding": "Windows-1252",
            "delimiter": ";",
            "decimal": ",",
            "thousands": None,
        }
        assert table.remarks == [
            "a.csv is not in UTF-8: it was read as Windows-1252.",
            "a.csv: columns at the end without a name and without values are left out.",
            "a.csv was read with ',' as the decimal mark.",
        ]


@pytest.mark.parametrize("size", [10, 33, 1000])
def test_letters_that_are_longer_as_utf_8(work, monkeypatch, size):
    monkeypatch.setattr(text_table, "BLOCK", size)
    names, towns = ["âge", "état", "éèê"], ["Köln", "Nîmes", '"ÄÖ, Ü"']
    rows = [f"{k},{towns[k % 3]},é{k % 2}" for k in range(40)]
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        (work / "a.csv").write_bytes("\n".join([",".join(names), *rows]).encode(encoding))
        found = read("a.csv")
        assert found["âge"] == [*range(40)]
        assert found["état"] == [towns[k % 3].strip('"') for k in range(40)]
        assert found["éèê"] == [f"é{k % 2}" for k in range(40)]


def test_text_that_is_not_utf_8_far_from_the_beginning(work):
    rows = ["7,x"] * 300_000 + ["8,caf\xe9", "9,\x81"]
    (work / "a.csv").write_bytes("\n".join(["a,b", *rows]).encode("latin-1"))
    with open_table("a.csv") as table:
        assert table.read(["b"]).data["b"].labels == ("café", "x", "\x81")
        assert table.remarks == ["a.csv is not in UTF-8: it was read as Latin-1."]


FRAME = {
    "number": pa.array([1, 2, None], pa.int64()),
    "a.b": pa.array([0.5, None, 1.5], pa.float32()),
    "money": pa.array([1, 2, 3], pa.int32()).cast(pa.decimal128(12, 2)),
    "truth": pa.array([True, None, False]),
    "nothing": pa.nulls(3),
    "text": pa.array(["x", None, "NA"], pa.large_string()),
    "numerals": pa.array(["1", "2.5", None]),
    "coded": pa.array(["u", "v", "u"]).dictionary_encode(),
    "coded numbers": pa.array([7, 8, 7]).dictionary_encode(),
    "day": pa.array([0, 1, None], pa.date32()),
    "time": pa.array([0, 1_500_000_000, None], pa.timestamp("ns")),
    "list": pa.array([[1], [2], None]),
}
TYPED = {
    "parquet": lambda table: pyarrow.parquet.write_table(table, "data", row_group_size=2),
    "feather": lambda table: pyarrow.feather.write_feather(table, "data"),
    "stream": lambda table: Path("data").write_bytes(ipc_stream(table)),
}


def ipc_stream(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("write", TYPED)
def test_files_with_types(work, write):
    TYPED[write](pa.table(FRAME))
    found = read("data", [name for name in FRAME if name != "list"])
    assert found == {
        "number": [1, 2, None],
        "a.b": [0.5, None, 1.5],
        "money": [1, 2, 3],
        "truth": [1, None, 0],
        "nothing": [None] * 3,
        "text": ["x", None, "NA"],
        "numerals": ["1", "2.5", None],
        "coded": ["u", "v", "u"],
        "coded numbers": [7, 8, 7],
        "day": ["1970-01-01", "1970-01-02", None],
        "time": ["1970-01-01 00:00:00", "1970-01-01 00:00:01.500000000", None],
    }
    assert read("data", ["numerals"], kinds="numbers") == {"numerals": [1, 2.5, None]}
    assert read("data", ["number", "a.b"], kinds="categories") == {
        "number": [1, 2, None],
        "a.b": [0.5, None, 1.5],
    }
    assert read("data", ["number", "truth"], kinds="text") == {
        "number": ["1", "2", None],
        "truth": ["True", None, "False"],
    }
    assert said("data", names=["text"], kinds="numbers") == (
        "data, row 1: column 'text' holds 'x', which is not a number."
    )
    assert said("data", names=["list"]).startswith("data: column 'list' holds values of the type list")
    durations = pa.array([1, 2], pa.duration("s"))
    TYPED[write](pa.table({"n": [1, 2], "wait": durations, "the rest": durations, "all": [[1], [2]]}))
    assert said("data") == (
        "data: columns 'wait', 'the rest' and 'all' hold values of the type duration[s] or "
        f"list<{'element' if write == 'parquet' else 'item'}: int64>: make numbers or text of them, or leave "
        "the columns out with --drop wait --drop 'the rest' --drop all."
    )
    assert read("data", ["n"]) == {"n": [1, 2]}
    TYPED[write](pa.table(FRAME))
    assert "did you mean 'money'?" in said("data", names=["mony"])
    with open_table("data") as table:
        assert table.read([]).n_rows == 3
        assert table.place(2) == "row 3"
        assert table.form["format"] == {"stream": "arrow stream", "feather": "arrow"}.get(write, write)
    TYPED[write](pa.table({"a": [1.0, math.inf]}))
    assert said("data") == (
        "data, row 2: column 'a' holds inf; numbers must be finite, or left empty where they are missing."
    )
    TYPED[write](pa.table({"a": pa.array([], pa.int64())}))
    assert said("data") == "data has a header but no rows."


def test_spreadsheets(work, monkeypatch):
    import datetime

    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Sales"
    sheet.append(["town", "price", "when", "at", "paid", None])
    sheet.append(["Oslo", 0.1, datetime.date(2024, 5, 31), datetime.datetime(2024, 5, 31, 12, 30), True])
    sheet.append([None] * 5)
    sheet.append(["two\nlines", None, None, None, False])
    sheet.append([" Rome ", 7, "NA", None, None])
    book.save("data")
    expected = {
        "town": ["Oslo", "two\nlines", "Rome"],
        "price": [0.1, None, 7],
        "when": ["2024-05-31", None, None],
        "at": ["2024-05-31 12:30:00", None, None],
        "paid": [1, 0, None],
    }
    assert read("data") == read("data", form=TableFormat(decimal=",")) == expected
    with open_table("data") as table:
        assert table.form["format"] == "excel"
        assert [table.place(k) for k in range(3)] == ["row 2", "row 4", "row 5"]
        assert table.remarks == []
    book.create_sheet("Other")
    book.save("data")
    with open_table("data") as table:
        assert table.remarks == ["data has 2 sheets: the first, 'Sales', was read."]
    sheet.append(["x", 1, 2, 3, 4, 5])
    book.save("data")
    assert said("data") == "data, row 6: 6 cells, but the header has 5 columns."
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert said("data") == (
        "data is an Excel file, which needs one more package: pip install 'cardboost[excel]'."
    )


def test_what_is_missing_is_named(work, monkeypatch):
    (work / "a.csv").write_text("a,b\n1,2\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert said("a.csv") == "reading tables needs one more package, pyarrow: pip install 'cardboost[cli]'."


# ------------------------------------------------------------------------------------------------ files


def test_several_files(work):
    (work / "b.csv").write_text("y;x\nu;1,5\nv;2\n")
    (work / "a.csv").write_text("x,y\n1,u\n\n3,w\n")
    pyarrow.parquet.write_table(pa.table({"x": [7], "y": ["z"]}), "c.parquet")
    expected = {"x": [1, 3, 1.5, 2], "y": ["u", "w", "u", "v"]}
    assert read("*.csv") == read(["a.csv", "b.csv"]) == expected
    assert read(["a.csv", "c.*"]) == {"x": [1, 3, 7], "y": ["u", "w", "z"]}
    with open_table("*.csv") as table:
        assert table.path == "a.csv and 1 more file"
        assert [table.place(k) for k in range(4)] == [
            "a.csv, line 2", "a.csv, line 4", "b.csv, line 2", "b.csv, line 3",
        ]  # fmt: skip
    assert said("*.txt") == "no file matches '*.txt'."
    (work / "d.csv").write_text("x,z\n1,2\n")
    assert said(["a.csv", "d.csv"]) == "d.csv has other columns than a.csv: it lacks 'y' and also has 'z'."
    (work / "d.csv").write_text("x,x,y\n1,2,3\n")
    assert "it also has 'x'" in said(["a.csv", "d.csv"])
    (work / "d.csv").write_text("x,y\n1,u\ninf,v\n")
    assert said(["a.csv", "d.csv"]).startswith("d.csv, line 3: column 'x' holds inf")
    (work / "d.csv").write_text("x,y\nfew,u\nmany,v\nall,1\n")
    assert read(["a.csv", "d.csv", "c.parquet"])["x"] == ["1", "3", "few", "many", "all", "7"]
    (work / "[a].csv").write_text("a,b\n1,2\n")
    assert read("[a].csv") == {"a": [1], "b": [2]}


def test_pipes_are_read_like_files(work, monkeypatch):
    text = "a,b\n" + "1,2\n" * 300_000 + "1,x\n" * 20_000
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_text, args=(text,))
    writer.start()
    assert set(read("pipe", ["b"])["b"]) == {"2", "x"}
    writer.join()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n3,z\n4\n")))
    assert said("-") == "standard input, line 4: 1 cell, but the header has 2 columns."


def test_files_that_cannot_be_opened(work):
    assert said("none.csv") == "cannot read 'none.csv': no such file or directory."
    (work / "folder").mkdir()
    assert said("folder") == "'folder' is a folder: name a file in it."
    assert said([]) == "name a file to read."


def test_temporary_files_are_removed(work, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(work / "tmp"))
    (work / "tmp").mkdir()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    with open_table("-") as table:
        assert len(os.listdir("tmp")) == 1
        assert cells(table.read(["b"]).data["b"]) == [2]
    assert os.listdir("tmp") == []


# ------------------------------------------------------------------------------------------------ caps


def test_long_lines(work, monkeypatch):
    monkeypatch.setattr(text_table, "LONGEST_LINE", 1_000)
    for name in ("BLOCK", "SAMPLE"):
        monkeypatch.setattr(text_table, name, 500)
    (work / "a.csv").write_text("a,b\n" + "1,2\n" * 200 + f"3,{'x' * 900}\n")
    assert len(read("a.csv", ["b"], kinds="text")["b"][-1]) == 900
    (work / "a.csv").write_text("a,b\n" + "1,2\n" * 200 + f"3,{'x' * 5000}\n")
    assert said("a.csv").startswith("a.csv, line 202: a cell has more than 1,000 characters; perhaps a quote")
    (work / "a.csv").write_text("a" * 1_100)
    assert said("a.csv").startswith("a.csv, line 1: it has more than 1,000 characters; perhaps")


def test_bombs_are_refused_early(work, monkeypatch):
    (work / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 1_000_000))
    assert len(read("a.csv.gz", ["a"])["a"]) == 1_000_000
    monkeypatch.setattr(text_table, "RATIO_COUNTS_FROM", 1_000_000)
    assert "decompress to" in said("a.csv.gz")
    monkeypatch.setattr(text_table, "HIGHEST_RATIO", 10_000)
    assert len(read("a.csv.gz", ["a"])["a"]) == 1_000_000
    monkeypatch.setattr(text_table, "MOST_DECOMPRESSED", 3_000_000)
    assert "are no table" in said("a.csv.gz")


# ------------------------------------------------------------------------------------------------ kinds


def test_numbers_as_labels(work):
    (work / "a.csv").write_text("zip,flag,half\n01234,true,0.5\n1234,False,1.0\n,,1e3\n")
    with open_table("a.csv") as table:
        frame = table.read(table.names, dict.fromkeys(table.names, "categories"))
        assert [column.labels for column in frame.data.values()] == [(1234,), (0, 1), (0.5, 1, 1000)]
        assert [type(label) for label in frame.data["half"].labels] == [float, int, int]
        assert table.read(["zip"], {"zip": "text"}).data["zip"].labels == ("01234", "1234")
    (work / "a.csv").write_text("a,b\n1,inf\n")
    assert "column 'b' holds inf" in said("a.csv", kinds="categories")


def test_columns_of_numbers_only(work):
    (work / "a.csv").write_text("a,b,c,d\nx,1,y,NA\n2,5,z,7\n")
    assert said("a.csv", kinds="numbers") == (
        "a.csv, line 2: column 'a' holds 'x', which is not a number (so does 'c')."
    )
    assert read("a.csv", ["b", "d"], kinds="numbers") == {"b": [1, 5], "d": [None, 7]}
    with open_table("a.csv") as table, pytest.raises(TableError, match="line 2: column 'c' holds 'y'"):
        list(table.batches(["b", "c"], {"b": "numbers", "c": "numbers"}))


@pytest.mark.parametrize("others", [19, 18])
def test_where_mistakes_end_and_categories_begin(work, others):
    rows = [*(f"{k},{k}" for k in range(others)), "1,x", "1,", "1,NA"]
    (work / "a.csv").write_text("\n".join(["a,b", *rows]))
    if others == 19:
        assert "19 of its 20 cells are numbers" in said("a.csv")
    else:
        assert len(set(read("a.csv")["b"])) == 20


@pytest.mark.parametrize("block", [64, 200, 10_000])
def test_text_after_blocks_of_numbers_is_read_again(work, monkeypatch, block):
    monkeypatch.setattr(text_table, "BLOCK", block)
    monkeypatch.setattr(text_table, "SAMPLE", 64)
    column = [*map(str, range(40)), "01", "1.0", "", "x", "y", "x", '"', "z"]
    with open("a.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow("abcdefy")
        writer.writerows([k, cell, cell, k, "  NA ", cell, k % 2] for k, cell in enumerate(column))
    expected = [cell or None for cell in column]
    found = read("a.csv")
    assert found["b"] == found["c"] == found["f"] == expected
    assert found["a"] == found["d"] == list(range(len(column)))
    assert found["e"] == [None] * len(column)
    with open_table("a.csv") as table:
        assert table.place(45) == "line 47"
        for frame in table.batches(["b", "y"], {"y": "text"}):
            assert isinstance(frame.data["b"], Coded)
            assert set(frame.data["y"].labels) <= {"0", "1"}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [7, 16, 50, 1000])
def test_blocks_are_read_in_order_whatever_their_size(work, monkeypatch, size, end):
    """Also where a block ends in a line, and where quotes and spaces come late."""
    monkeypatch.setattr(text_table, "BLOCK", size)
    monkeypatch.setattr(text_table, "SAMPLE", size)
    rows = [f"{k},é{k % 3},{k / 8}" for k in range(60)]
    (work / "a.csv").write_text(end.join(['"a","b","c"', *rows]), encoding="utf-8", newline="")
    expected = {"a": [*range(60)], "b": [f"é{k % 3}" for k in range(60)], "c": [k / 8 for k in range(60)]}
    assert read("a.csv") == expected
    with open_table("a.csv") as table:
        assert table.parts[0].plain
    rows += ['60, "é, x" , "7.5"', "61,é,0"]
    (work / "a.csv").write_text(end.join(['"a","b","c"', *rows]), encoding="utf-8", newline="")
    late = {"a": [60, 61], "b": ["é, x", "é"], "c": [7.5, 0]}
    assert read("a.csv") == {name: expected[name] + late[name] for name in "abc"}


@pytest.mark.parametrize("columns", first(1, [10_000, 100_000]))
def test_many_columns(work, columns):
    names = ",".join(f"x{k}" for k in range(columns))
    row = ",".join(str(k) for k in range(columns))
    (work / "a.csv").write_text("\n".join([names, row, row, row]))
    with open_table("a.csv") as table:
        frame = table.read(table.names)
    assert frame.shape == (3, columns)
    assert frame.data[f"x{columns - 1}"].tolist() == [columns - 1] * 3


@pytest.mark.long
def test_a_million_rows_of_text(work):
    rows = np.random.default_rng(0).integers(0, 500_000, 1_000_000).tolist()
    (work / "a.csv").write_text("id,n\n" + "".join(f"row {k} é,{k}\n" for k in rows))
    with open_table("a.csv") as table:
        frame = table.read(table.names)
    assert frame.data["n"].tolist() == rows
    labels = frame.data["id"].labels
    assert labels == tuple(sorted({f"row {k} é" for k in rows}))
    assert labels[frame.data["id"].codes[-1]] == f"row {rows[-1]} é"


# ------------------------------------------------------------------------------------------------ frames


def test_columns_are_readable_as_those_of_a_frame(work):
    (work / "a.csv").write_text("town,a\n Oslo ,1\nRome,2\n,3\nOslo,\n")
    with open_table("a.csv") as table:
        frame = table.read(table.names)
    town, a = frame["town"], frame["a"]
    assert str(town.dtype) == "category"
    assert town.cat.categories == ("Oslo", "Rome")
    assert town.cat.codes.tolist() == [0, 1, -1, 0]
    assert np.asarray(town, dtype=object).tolist() == ["Oslo", "Rome", None, "Oslo"]
    assert len(town) == len(a) == 4
    assert a.to_numpy() is np.asarray(a)
    assert not hasattr(a, "cat")
    assert (frame.categories, frame.n_missing) == ({"town": 2}, 2)
    taken = frame.take(np.array([0, 0, 1, 1], dtype=bool))
    assert cells(taken.data["town"]) == [None, "Oslo"]


def test_pandas_reads_the_same_table(work):
    (work / "a.csv").write_text(
        "town,age,zip,flag,note\nOslo,31,100,True,a b\n,45.5,200,False,7\nÜrümqi,,100,True,NA\n"
        'Rome,0.001,300,True,x\nOslo,-2,200,False,"1,5"\n',
        encoding="utf-8",
    )
    other = pd.read_csv("a.csv")
    with open_table("a.csv") as table:
        frame = table.read(table.names)
        coded = table.read(table.names, {"zip": "categories"})
    for categorical in ("from_dtype", ["town", "note", "zip"], [0, 2, 3, 4]):
        one, two = (read_table(X, categorical=categorical) for X in (frame, other))
        assert (one.categorical, one.names) == (two.categorical, two.names)
        positive = np.array([True, False, True, True, False])
        assert one.digest(positive, None, 1) == two.digest(positive, None, 1)
    one = read_table(coded, categorical="from_dtype")
    two = read_table(other, categorical=["town", "zip", "note"])
    assert one.categorical == two.categorical == (0, 2, 4)
    assert one.columns[2].labels == two.columns[2].labels == (100, 200, 300)


# ------------------------------------------------------------------------------------------------ laws


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(tmp_path_factory.mktemp("laws") / "a.csv")


def write_columns(path, **columns):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30), st.booleans())
def test_numbers_come_back_bit_by_bit(path, numbers, comma):
    texts = [repr(number).replace(".", ",") if comma else repr(number) for number in numbers]
    write_columns(path, a=texts, b=range(len(texts)))
    with open_table(path, TableFormat(decimal="," if comma else ".")) as table:
        found = table.read(["a"]).data["a"]
    assert found.tobytes() == np.array(numbers).tobytes()


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["", "x", "a,b", 'q"', " 7"])), min_size=1, max_size=12))
def test_text_comes_back(path, rows):
    write_columns(path, a=[a for a, _ in rows], n=range(len(rows)), b=[b for _, b in rows])
    with open_table(path, TableFormat(delimiter=",")) as table:
        frame = table.read(["a", "b"], {"a": "text", "b": "text"})
    missing = {"", "na", "n/a", "#n/a", "#na", "nan", "null", "?"}
    for k, name in enumerate("ab"):
        texts = [row[k].strip() for row in rows]
        assert cells(frame.data[name]) == [None if text.lower() in missing else text for text in texts]


CELLS = st.one_of(
    st.sampled_from(
        ["", "NA", "?", "true", "False", "-", " 7 ", "1e3", "-0", "1_0", "x", 'q"', "a,b", "1.5"]
    ),
    st.integers(-9, 9).map(str),
)


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, st.integers(0, 99)), min_size=1, max_size=8),
    repeat=st.sampled_from([1, 30]),
    kind=st.sampled_from(["auto", "numbers", "categories", "text"]),
    block=st.sampled_from([32, 100, 4000]),
)
def test_batches_make_the_whole(path, rows, repeat, kind, block):
    """Whatever the size of the blocks; what is refused as a whole is refused in batches."""
    write_columns(path, **{name: [row[k] for row in rows] * repeat for k, name in enumerate("abc")})
    with open_table(path, TableFormat(delimiter=",")) as table, pytest.MonkeyPatch.context() as patch:
        try:
            whole, fault = table.read(["a", "b", "c"], {"a": kind}), None
        except TableError as error:
            whole, fault = None, str(error)
        patch.setattr(text_table, "BLOCK", block)
        if fault is not None:
            for result in (
                lambda: table.read("abc", {"a": kind}),
                lambda: list(table.batches("abc", {"a": kind})),
            ):
                with pytest.raises(TableError, match=f"^{re.escape(fault)}$"):
                    result()
            return
        again, frames = table.read("abc", {"a": kind}), list(table.batches("abc", {"a": kind}))
    for name in "abc":
        expected = cells(whole.data[name])
        assert cells(again.data[name]) == expected
        assert [cell for frame in frames for cell in cells(frame.data[name])] == expected


# ------------------------------------------------------------------------------------------------ units


@pytest.mark.parametrize("kind", ["auto", "numbers"])
def test_units_in_batches(work, monkeypatch, kind):
    monkeypatch.setattr(text_table, "SAMPLE", 100)
    monkeypatch.setattr(text_table, "BLOCK", 200)
    (work / "a.csv").write_text("\n".join(["a,b", *(f"{k},${k}.5" for k in range(300))]))
    expected = [k + 0.5 for k in range(300)]
    with open_table("a.csv") as table:
        frames = list(table.batches(["b"], {"b": kind}))
        assert len(frames) > 1
        assert [value for frame in frames for value in cells(frame.data["b"])] == expected
        assert table.remarks == ["a.csv: 'b' was read as numbers without '$'."]
    assert read("a.csv", kinds={"b": kind})["b"] == expected
    assert read("a.csv", kinds="text")["b"][:2] == ["$0.5", "$1.5"]
    assert read("a.csv", kinds="categories")["b"][:2] == ["$0.5", "$1.5"]
    with (work / "a.csv").open("a") as file:
        file.write("\n300,€5")
    expected = "which is not a number" if kind == "numbers" else "300 of its 301 cells are numbers with '$'"
    assert expected in said("a.csv", kinds={"b": kind})
    with open_table("a.csv") as table, pytest.raises(TableError, match=r"line 302: column 'b' holds '€5'"):
        list(table.batches(["b"], {"b": kind}))


def test_points_beside_a_unit_are_doubted(work):
    (work / "a.csv").write_text("a;n\n9.042 €;1\n840 €;2\n")
    with open_table("a.csv") as table:
        assert cells(table.read(["a"]).data["a"]) == [9.042, 840]
        assert "('9.042' beside '840')" in table.remarks[0]


@pytest.mark.parametrize("block", [1 << 20, 300])
@pytest.mark.parametrize(
    ("column", "remarks"),
    [
        (
            [*range(50), None, *(f"abc{k}" for k in range(50))],
            ["numbers in 50 rows and text in 50, from line 53 on: it was read as text."],
        ),
        ([*range(50), *(f"abc{k}" for k in range(50)), 7], []),
        ([*(f"abc{k}" for k in range(50)), *range(50)], []),
        (["1", "A"] * 50, []),
        ([*range(9), *(f"abc{k}" for k in range(50))], []),
        ([f"abc{k}" for k in range(50)], []),
    ],
)
def test_numbers_followed_by_text(work, monkeypatch, block, column, remarks):
    monkeypatch.setattr(text_table, "SAMPLE", min(block, 100))
    monkeypatch.setattr(text_table, "BLOCK", block)
    pd.DataFrame({"a": 1, "b": column}).to_csv("a.csv", index=False)
    with open_table("a.csv") as table:
        expected = [None if cell is None else str(cell) for cell in column]
        assert cells(table.read(["a", "b"]).data["b"]) == expected
        assert table.remarks == [f"a.csv: column 'b' holds {remark}" for remark in remarks]

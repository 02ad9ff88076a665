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
import zipfile
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
from cardboost.data.frame import Coded
from cardboost.data.reader import TableError, TableFormat, open_table
from cardboost.data.table import read_table
from marks import first


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


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def zipped(**members):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


TWO = {"a": [1, 3], "b": [2, 4]}
PRICES = {"town": ["Köln", "Łódź"], "price": [1234.5, -0.75], "n": [1234567, 12]}
LONG_PLAIN = b"a,b\n" + b"1,2\n" * 400_000

#: name -> (bytes or text, what is read or the sentence)
UGLY = {
    # exports of spreadsheets in several locales
    "en-US": ("town,price,n\r\nKöln,\"1,234.50\",\"1,234,567\"\r\nŁódź,-0.75,12\r\n", PRICES),
    "de-DE": ("town;price;n\r\nKöln;1.234,50;1.234.567\r\nŁódź;-0,75;12\r\n", PRICES),
    "fr-FR": ("town;price;n\r\nKöln;1\u202f234,50;1\u202f234\u202f567\r\nŁódź;-0,75;12\r\n", PRICES),
    "pl-PL": ("town;price;n\r\nKöln;1\u00a0234,5;1\u00a0234\u00a0567\r\nŁódź;-0,75;12\r\n", PRICES),
    "sv-SE": ("town\tprice\tn\r\nKöln\t1 234,5\t1 234 567\r\nŁódź\t\u22120,75\t12\r\n", PRICES),
    "de-CH": ("town;price;n\r\nKöln;1'234.50;1’234’567\r\nŁódź;-0.75;12\r\n", PRICES),
    "en-IN": ("town,price,n\r\nKöln,\"1,234.50\",\"12,34,567\"\r\nŁódź,-0.75,12\r\n", PRICES),
    "sep line": ("sep=;\r\na;b\r\n1;2\r\n3;4\r\n", TWO),
    "utf-8 with mark": ("\ufeffa,b\n1,2\n3,4\n".encode(), TWO),
    "utf-16 tabs": ("a\tb\r\n1\t2\r\n3\t4\r\n".encode("utf-16"), TWO),
    "utf-32": ("a;b\n1;2\n3;4\n".encode("utf-32"), TWO),
    "windows-1252": ("a;b\n1;caf\xe9\n2;\u20ac\n".encode("cp1252"), {"a": [1, 2], "b": ["café", "€"]}),
    "latin-1": (b"a;b\n1;caf\xe9\n2;\x81\n", {"a": [1, 2], "b": ["café", "\x81"]}),
    # marks of numbers
    "decimal comma, one column": ("price\n1,5\n2,25\n", {"price": [1.5, 2.25]}),
    "a comma of thousands beside a point": ('a,b\n"1,234",0.5\n"2,345",2\n',
        {"a": [1234, 2345], "b": [0.5, 2]}),
    "a point of thousands beside a comma": ("a;b\n1.234;0,5\n2.345;2\n", {"a": [1234, 2345], "b": [0.5, 2]}),
    "a point alone is the decimal one": ("a;b\n1.234;5\n2.345;2\n", {"a": [1.234, 2.345], "b": [5, 2]}),
    "ambiguous": ('a,b\n"1,234",1\n"2,345",2\n', "line 2: column 'a' holds '1,234', which may be a decimal "
        "number or one of thousands: say which with --decimal ',' or --thousands ','."),
    "two kinds of decimals": ("a;b\n1,5;1.5\n2,5;2.25\n", "line 2: column 'b' holds '1.5', but other numbers "
        "are written like '1234,5': write all alike, or make categories of all with --categorical b."),
    "two kinds in one column": ("a;b\n1,5;1\n2.5;2\n", "line 2: column 'a' holds '1,5', but other numbers"),
    "currency and percent": ("a,b\n$5,10%\n$6,20%\n", {"a": ["$5", "$6"], "b": ["10%", "20%"]}),
    "underscores": ("a,b\n1_000,x\n2_000,y\n", {"a": ["1_000", "2_000"], "b": ["x", "y"]}),
    "dates are text": ("a,b\n2024-01-31,31.12.2024\n2024-02-29,1.1.2025\n",
        {"a": ["2024-01-31", "2024-02-29"], "b": ["31.12.2024", "1.1.2025"]}),
    "times are text": ("a,b\n12:30,1\n13:45,2\n", {"a": ["12:30", "13:45"], "b": [1, 2]}),
    "signs and exponents": ("a,b\n+5,1e3\n-.5,5.\n", {"a": [5, -0.5], "b": [1000, 5]}),
    "zeros in front": ("zip,b\n01234,1\n00501,2\n", {"zip": [1234, 501], "b": [1, 2]}),
    # missing and truth
    "missing words": ("a,b\n1,x\nNA,n/a\n#N/A,?\nnull,NULL\nNaN,\n 2 , y \n",
        {"a": [1, None, None, None, None, 2], "b": ["x", None, None, None, None, "y"]}),
    "dashes": ("a,b\n1,-\n-,+\n.,-\n2,+\n", {"a": [1, None, None, 2], "b": ["-", "+", "-", "+"]}),
    "spaces around missing words": ("a, b\n1,  NA  \n2, 7\n", {"a": [1, 2], "b": [None, 7]}),
    "none is a label": ("a,b\n1,none\n2,one\n", {"a": [1, 2], "b": ["none", "one"]}),
    "truth": ("a,b\ntrue,1\nFALSE,True\nNA,8\n", {"a": [1, 0, None], "b": [1, 1, 8]}),
    "an empty column": ("a,b\n,1\n,2\n", {"a": [None, None], "b": [1, 2]}),
    "infinite": ("a,b\n1,2\n1,-inf\n", "line 3: column 'b' holds -inf; numbers must be finite"),
    "too large": ("a,b\n1,1e999\n", "line 2: column 'b' holds inf; numbers must be finite"),
    "infinite names": ("a,b\nInf,1\nAnn,2\nInf,3\n", {"a": ["Inf", "Ann", "Inf"], "b": [1, 2, 3]}),
    # lines and quotes
    "mixed line ends": ("a,b\r1,2\r\n3,4\n", TWO),
    "old Mac": ("a,b\r1,2\r3,4\r", TWO),
    "blank lines": ("\n\na,b\n\n1,2\n   \n3,4\n\n\n", TWO),
    "no last line end": ("a,b\n1,2\n3,4", TWO),
    "quoted lines": ('a,"b\nb"\n"1",2\n3,4\n', {"a": [1, 3], "b\nb": [2, 4]}),
    "lines in cells": ('a,b\n1,"two\nlines"\n2,"a ""word"", more"\n',
        {"a": [1, 2], "b": ["two\nlines", 'a "word", more']}),
    "stray quotes": ('a,b\n5" pipe,1\n"6"" pipe",2\n"x"y,3\n',
        {"a": ['5" pipe', '6" pipe', "xy"], "b": [1, 2, 3]}),
    "an open quote": ('a,b\n1,x\n\n2,"x\n3,y\n', "line 4: a quote is opened here that nothing closes."),
    "an open quote in the header": ('"a,b\n1,2\n', "line 1: a quote is opened here that nothing closes."),
    "an open quote after another": ('a,b\n1,"two\nlines"\n2,"x\n3,y\n', "line 4: a quote is opened here"),
    # rows and columns
    "ragged": ("a,b\n1,2\n3,4,5\n", "line 3: 3 cells, but the header has 2 columns."),
    "short row": ("a,b\n1,2\n3\n", "line 3: 1 cell, but the header has 2 columns."),
    "ragged after lines in cells": ('a,b\n"1\n2",0\n3\n', "line 4: 1 cell, but the header has 2 columns."),
    "a delimiter more": ("a,b\n1,2,\n3,4,\n", TWO),
    "a delimiter more, once used": ("a,b\n1,2,\n" + "3,4,\n" * 60 + "5,6,7\n",
        "line 63: '7' in column 3, which has no name in the header."),
    "a delimiter more, once not": ("a,b\n1,2,\n" + "3,4,\n" * 60 + "5,6\n",
        "line 63: 2 cells, but the header has 2 columns, and the rows before have 3 cells."),
    "empty columns at the end": ("a,b,,\n1,2,,\n3,4,,\n", TWO),
    "unnamed columns only in the header": ("a,b,,\n1,2\n3,4\n", TWO),
    "a column of row names": (",a,b\n0,1,2\n1,3,4\n", {"": [0, 1], **TWO}),
    "spaces in the header": (" a ; b\n1;2\n3;4\n", TWO),
    "equal names": ("a,b,a\n1,2,3\n", "has more than one column named 'a': names must differ."),
    "empty": ("", "is empty: a header with column names is needed."),
    "only blank lines": ("\n \n\r\n", "is empty: a header with column names is needed."),
    "a header alone": ("a,b\n", "has a header but no rows."),
    "one column": ("a\n1\n\n3\n", {"a": [1, 3]}),
    "prose in one column": ("note\nyes, well\nno\n", {"note": ["yes, well", "no"]}),
    "bars": ("a|b\n1|2\n3|4\n", TWO),
    "commas in quotes": ('"a,b,c";y\n1;2\n3;4\n', {"a,b,c": [1, 3], "y": [2, 4]}),
    "rare text": ("a\n" + "1\n" * 60 + "l2\n", "line 62: column 'a' holds 'l2', but 60 of its 61 cells are "
        "numbers: correct what is not, or make categories of all with --categorical a."),
    "text and numbers": ("a\n1\n2.50\nx\n", {"a": ["1", "2.50", "x"]}),
    # bytes
    "NUL": ("a,b\n1,2\n3,\x004\n", "line 3: a NUL byte; this is not a text file, or a damaged one."),
    "utf-16 without a mark": ("a,b\n1,2\n".encode("utf-16-le"), "line 1: a NUL byte"),
    "utf-8, then not": ("é,b\n1,2\n".encode() + b"3,\xff\n", "line 3: not UTF-8, which the file begins with"),
    "damaged utf-16": (b"\xff\xfea\x00,\x00b\x00\n\x00\x00\xd8",
        "is not a text file in UTF-16: save it as CSV UTF-8."),
    "gzip": (gzip.compress(b"a,b\n1,2\n3,4\n"), TWO),
    "gzip in two parts": (gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"), TWO),
    "gzip of utf-16": (gzip.compress("a,b\n1,2\n3,4\n".encode("utf-16")), TWO),
    "zstandard": (zstd(b"a,b\n1,2\n3,4\n"), TWO),
    "gzip cut off": (gzip.compress(LONG_PLAIN)[:-20], "its compressed data are damaged or cut off."),
    "gzip damaged": (gzip.compress(LONG_PLAIN)[:40] + b"\x00" * 60,
        "its compressed data are damaged or cut off."),
    "zstandard cut off": (zstd(LONG_PLAIN)[:-9], "its compressed data are damaged or cut off."),
    "gzip of nothing": (gzip.compress(b""), "is empty: a header with column names is needed."),
    "damaged parquet": (b"PAR1" + b"x" * 50, "cannot be read as Parquet: "),
    "damaged arrow": (b"ARROW1" + b"x" * 50, "cannot be read as Arrow: "),
    "a zip archive": (zipped(**{"a.csv": "a,b\n1,2\n"}),
        "is a zip archive, but not of Excel (.xlsx)"),
    "a damaged spreadsheet": (zipped(**{"xl/workbook.xml": "<"}), "cannot be read as Excel: "),
    "a damaged archive": (b"PK\x03\x04" + b"x" * 50, "is a damaged zip archive or spreadsheet."),
    "an old spreadsheet": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an old spreadsheet (.xls): save"),
    "an old feather": (b"FEA1" + b"x" * 50, "is a Feather file of the first version"),
}  # fmt: skip


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
    assert said("a.csv").startswith("a.csv, line 1: more than 1,000 characters in one row")


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

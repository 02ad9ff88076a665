"""Ugly files, each with the table that a person would read from it, or with the sentence that refuses it."""

from __future__ import annotations

import gzip
import io
import zipfile

import pyarrow as pa


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
    "currency and percent": ("a,b\n$5,10%\n$6,20%\n", {"a": [5, 6], "b": [10, 20]}),
    "dollars": ('a,b\n"$1,810.08",1\n($12.00),2\n-$3,3\n$-4.5,4\nNA,5\n',
        {"a": [1810.08, -12, -3, -4.5, None], "b": [1, 2, 3, 4, 5]}),
    "euros": ("a;b\n1.026,18 €;20,5%\n-3\u00a0€;-3 %\n7€;100\u202f%\n",
        {"a": [1026.18, -3, 7], "b": [20.5, -3, 100]}),
    "codes of currencies": ("a,b\nEUR 12.50,12CHF\nEUR -1,1e2 CHF\n", {"a": [12.5, -1], "b": [12, 100]}),
    "two currencies": ("a,b\n$5,1\n€6,2\n", {"a": ["$5", "€6"], "b": [1, 2]}),
    "a unit and none": ("a,b\n5%,1\n0.2,2\n", {"a": ["5%", "0.2"], "b": [1, 2]}),
    "not money": ("a,b,c,d\n$5€,($5,--$5,$\n$6€,6$),$-+6,%\n", {"a": ["$5€", "$6€"], "b": ["($5", "6$)"],
        "c": ["--$5", "$-+6"], "d": ["$", "%"]}),
    "a number among dollars": ("a,b\n" + "$5,1\n" * 99 + "6,2\n", "line 101: column 'a' holds '6', but 99 of "
        "its 100 cells are numbers with '$': correct what is not, or make categories of all"),
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
    "rows of delimiters": ("a;b;c\n1;2;3\n;\n4;5;6\n;;;;\n", {"a": [1, 4], "b": [2, 5], "c": [3, 6]}),
    "spaces in empty columns": ("a,b,\n1,2,  \n3,4, \n", TWO),
    "no last line end": ("a,b\n1,2\n3,4", TWO),
    "quoted lines": ('a,"b\nb"\n"1",2\n3,4\n', {"a": [1, 3], "b\nb": [2, 4]}),
    "lines in cells": ('a,b\n1,"two\nlines"\n2,"a ""word"", more"\n',
        {"a": [1, 2], "b": ["two\nlines", 'a "word", more']}),
    "stray quotes": ('a,b\n5" pipe,1\n"6"" pipe",2\n"x"y,3\n',
        {"a": ['5" pipe', '6" pipe', "xy"], "b": [1, 2, 3]}),
    "spaces before quotes": ('a, "b, c", d\n1, "x, y", 3\n  2,  "z", 4\n',
        {"a": [1, 2], "b, c": ["x, y", "z"], "d": [3, 4]}),
    "spaces before quotes, far down": ("a;b\n" + "1;2\n" * 60 + '3; "4"\n "5" ; "6"\n',
        {"a": [*[1] * 60, 3, 5], "b": [*[2] * 60, 4, 6]}),
    "commas and spaces in quotes": ('a,b\n1,"x, ""y"", z"\n2,"w, "\n',
        {"a": [1, 2], "b": ['x, "y", z', "w,"]}),
    "an open quote after spaces": ('a,b\n1, "x\n2,y\n', "line 2: a quote is opened here that nothing"),
    "an open quote": ('a,b\n1,x\n\n2,"x\n3,y\n', "line 4: a quote is opened here that nothing closes."),
    "an open quote in the header": ('"a,b\n1,2\n', "line 1: a quote is opened here that nothing closes."),
    "an open quote after another": ('a,b\n1,"two\nlines"\n2,"x\n3,y\n', "line 4: a quote is opened here"),
    # rows and columns
    "ragged": ("a,b\n1,2\n3,4,5\n", "line 3: 3 cells, but the header has 2 columns."),
    "short row": ("a,b\n1,2\n3\n", "line 3: 1 cell, but the header has 2 columns."),
    "ragged after lines in cells": ('a,b\n"1\n2",0\n3\n', "line 4: 1 cell, but the header has 2 columns."),
    "a delimiter more": ("a,b\n1,2,\n3,4,\n", TWO),
    "a delimiter more, once used": ("a,b\n1,2,\n" + "3,4,\n" * 60 + "5,6,7\n",
        "line 63: '7' in a column that has no name in the header."),
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

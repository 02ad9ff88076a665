"""Files that hold a table: compressed, in other encodings, Parquet; one table, whatever it is kept in."""

import gzip
import io
import itertools
import json
import os
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cardboost.cli.csv_table import open_csv
from cardboost.cli.tables import open_table
from cardboost.cli.text_file import _zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.cli import fast_csv
from cardboost.cli.files import BadInput
from cardboost.cli.main import main
from cardboost.data.frame import Coded

QUICK = ["--target", "état", "--max-terms", "2", "--hot-start", "6", "--threads", "1"]


def make_frame(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    town = rng.choice(["Köln", "Nîmes", "Oslo"], rows)
    age, weight = rng.normal(size=rows).round(3), rng.integers(1, 4, rows)
    ill = age + (town == "Oslo") + 0.2 * rng.normal(size=rows) > 0.3
    age[::17] = np.nan
    return pd.DataFrame(
        {"âge": age, "town": town, "n": weight, "flag": age > 0, "état": np.where(ill, "malade", "sain")}
    )


def zstd_bytes(data):
    return _zstd("").compress(data)


def run(capsys, *words):
    code = main(list(words))
    seen = capsys.readouterr()
    return code, seen.out, seen.err


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(path, label=None, **kinds):
    with open_table(str(path)) as source:
        names = [name for name in source.names if name != label]
        return *source.read(names, label, kinds), source


def same(one, two):
    assert one.columns == two.columns
    for name in one.columns:
        own, other = one.data[name], two.data[name]
        if isinstance(own, Coded):
            assert own.labels == other.labels
            np.testing.assert_array_equal(own.codes, other.codes)
        else:
            np.testing.assert_array_equal(own, other)


ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "cp1252": "Windows-1252",
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd_bytes], ids=["plain", "gzip", "zstd"])
def test_one_table_in_any_encoding_and_compression(work, encoding, pack):
    text = make_frame().to_csv(index=False)
    (work / "plain.csv").write_text(text, encoding="utf-8")
    (work / "other.csv").write_bytes(pack(text.encode(encoding)))
    expected, labels, _ = read("plain.csv", "état")
    table, other, source = read("other.csv", "état")
    same(expected, table)
    assert labels.texts == other.texts
    assert source.form["encoding"] == ENCODINGS[encoding]
    assert (source.remark is None) == (encoding != "cp1252")


def test_text_that_is_not_utf_8_far_from_the_beginning(work):
    rows = [*(f"{k},x" for k in range(2000)), "7,caf\xe9", "8,\x81"]
    (work / "a.csv").write_bytes("\n".join(["a,b", *rows]).encode("latin-1"))
    table, _, source = read("a.csv")
    assert table.data["b"].labels == ("caf\xe9", "x", "\x81")
    assert source.remark == "a.csv is not in UTF-8: it was read as Latin-1."
    (work / "a.csv").write_bytes("\n".join(["a,b", *rows[:-1]]).encode("cp1252"))
    assert read("a.csv")[2].remark == "a.csv is not in UTF-8: it was read as Windows-1252."
    (work / "a.csv").write_bytes("é,b\n".encode() + "\n".join(rows).encode("latin-1"))
    with pytest.raises(BadInput, match="not UTF-8, which the file begins with"):
        read("a.csv")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst", "txt", "parquet"])
def test_every_verb_takes_every_format(work, capsys, ending):
    frame = make_frame()
    path = f"data.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "txt":
        (work / path).write_bytes(frame.to_csv(index=False, sep=";").encode("cp1252"))
    else:
        pack = {"csv": bytes, "csv.gz": gzip.compress, "csv.zst": zstd_bytes}[ending]
        (work / path).write_bytes(pack(frame.to_csv(index=False).encode()))
    words = ["--weight", "n", "--drop", "flag", "--categorical", "town", "--positive", "malade"]
    code, out, err = run(capsys, "fit", path, *QUICK, *words, "--holdout", "0.25", "--json")
    assert code == 0, err
    note = "is not in UTF-8: it was read as Windows-1252." if ending == "txt" else ""
    assert note in err
    assert bool(err) == bool(note)
    result = json.loads(out)
    assert result["classes"] == ["sain", "malade"]
    assert result["data"]["format"] == ("parquet" if ending == "parquet" else "csv")
    assert [own["name"] for own in result["columns"]] == ["âge", "town"]
    assert run(capsys, "certify", "run/model.json", path)[0] == 0
    code, out, _ = run(capsys, "predict", "run/model.json", path)
    assert code == 0
    scores = out
    frame.to_csv("again.csv", index=False)
    assert run(capsys, "predict", "run/model.json", "again.csv")[1] == scores
    assert run(capsys, "certify", "run/model.json", "again.csv")[0] == 0


def test_parquet_is_the_same_table_as_csv(work):
    frame = make_frame()
    frame["town"] = frame["town"].where(np.arange(len(frame)) % 9 > 0)
    frame.to_csv("a.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame), "a.parquet", row_group_size=50)
    frame["town"] = frame["town"].astype("category")
    frame.to_parquet("coded.parquet")
    for kinds in ({}, {"n": "categories"}, {"n": "text"}):
        one, labels, _ = read("a.csv", "état", **kinds)
        for path in ("a.parquet", "coded.parquet"):
            two, other, source = read(path, "état", **kinds)
            same(one, two)
            assert labels.equal("malade").tolist() == other.equal("malade").tolist()
            assert source.remark is None


def test_types_of_parquet(work):
    many = {
        "a.b": pa.array([1, 2, None], pa.int64()),
        "half": pa.array([0.5, None, 1.5], pa.float32()),
        "money": pa.array([1, 2, 3], pa.int32()).cast(pa.decimal128(12, 2)),
        "truth": pa.array([True, None, False]),
        "nothing": pa.nulls(3),
        "large": pa.array(["x", None, "y"], pa.large_string()),
        "number text": pa.array(["1", "2.5", None]),
        "coded": pa.array([7, 8, 7]).dictionary_encode(),
    }
    pq.write_table(pa.table({**many, "when": pa.array([0, 1, 2], pa.timestamp("s"))}), "a.parquet")
    with open_table("a.parquet") as source:
        table, _ = source.read(list(many))
        assert table.data["large"].labels == ("x", "y")
        assert table.categories == {"large": 2, "number text": 2}
        np.testing.assert_array_equal(table.data["a.b"], [1, 2, np.nan])
        np.testing.assert_array_equal(table.data["money"], [1, 2, 3])
        np.testing.assert_array_equal(table.data["truth"], [1, np.nan, 0])
        np.testing.assert_array_equal(table.data["coded"], [7, 8, 7])
        assert np.isnan(table.data["nothing"]).all()
        table, _ = source.read(["number text"], kinds={"number text": "numbers"})
        np.testing.assert_array_equal(table.data["number text"], [1, 2.5, np.nan])
        with pytest.raises(BadInput, match=r"row 1: column 'large' holds 'x', which is not a number"):
            source.read(["large"], kinds={"large": "numbers"})
        with pytest.raises(BadInput, match=r"column 'when' holds values of the type timestamp.*--drop when"):
            source.read(["when"])
        with pytest.raises(BadInput, match="row 2: the target 'large' is empty"):
            source.read([], "large")
        with pytest.raises(BadInput, match="has no column 'mony': did you mean 'money'"):
            source.read(["mony"])
        assert source.read([], "coded")[1].classes() == [7, 8]
    pq.write_table(pa.table({"a": [1.0, np.inf], "y": [0, 1]}), "a.parquet")
    with pytest.raises(BadInput, match="row 2: column 'a' holds inf"):
        read("a.parquet")
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), "a.parquet")
    with pytest.raises(BadInput, match="has a header but no rows"):
        read("a.parquet")


def test_what_is_missing_is_named(work, monkeypatch):
    make_frame().to_parquet("a.parquet")
    (work / "a.csv.zst").write_bytes(zstd_bytes(b"a,y\n1,0\n"))
    for name in ("pyarrow", "pyarrow.parquet", "backports", "backports.zstd", "compression"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(BadInput, match=r"Parquet file.*pip install 'cardboost\[parquet\]'"):
        read("a.parquet")
    with pytest.raises(BadInput, match=r"Zstandard.*pip install 'cardboost\[zstd\]'"):
        read("a.csv.zst")


PLAIN = b"a,y\n" + b"1,0\n2,1\n" * 5000


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (gzip.compress(PLAIN, mtime=0)[:-20], "its compressed data are damaged or cut off"),
        (gzip.compress(PLAIN, mtime=0)[:30] + b"\x00" * 60, "its compressed data are damaged or cut off"),
        (zstd_bytes(PLAIN)[:-5], "its compressed data are damaged or cut off"),
        (zstd_bytes(PLAIN)[:9] + b"\xff" * 30, "its compressed data are damaged or cut off"),
        (b"PAR1" + b"x" * 50, "cannot be read as Parquet"),
        (b"PK\x03\x04" + b"x" * 50, "is a zip archive or a spreadsheet: save the table as CSV"),
        (b"a,y\n1,0\n2,\x001\n", "line 3: a NUL byte"),
        ("a,y\n1,0\n".encode("utf-16-le"), "line 1: a NUL byte"),
        (b"\xef\xbb\xbfa,y\n1,\xff\n", "is not a text file in UTF-8"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"a,a,y\n1,2,0\n", "more than one column named 'a'"),
        (b'a,y\n"1\n2",0\n3\n', "line 4: 1 cell, but the header has 2 columns"),
    ],
    ids=map(str, itertools.count()),
)
def test_damaged_files_get_one_sentence(work, capsys, content, sentence):
    (work / "data").write_bytes(content)
    code, out, err = run(capsys, "fit", "data", "--target", "y")
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_folders_and_unreadable_files(work, capsys, monkeypatch):
    (work / "folder").mkdir()
    assert run(capsys, "fit", "folder", "--target", "y")[2] == (
        "cardboost fit: 'folder' is a folder: name a file in it.\n"
    )
    (work / "a.csv").write_text("a,y\n1,0\n")

    def refuse(*words, **settings):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    code, _, err = run(capsys, "fit", "a.csv", "--target", "y")
    assert (code, err) == (2, "cardboost fit: cannot read 'a.csv': permission denied.\n")


def test_output_that_cannot_be_written(work):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    import subprocess

    make_frame().to_csv("a.csv", index=False)
    command = [sys.executable, "-m", "cardboost.cli.main", "fit", "a.csv", *QUICK]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "cardboost fit: cannot write the output: no space left on device."
    )


# ---------------------------------------------------------------------- large files through pyarrow

CELLS = st.one_of(
    st.sampled_from(
        ["", "NA", "?", "true", "False", "nan", " 7 ", "1e3", "-0", "1_0", "inf", "x", 'q"', "a,b"]
    ),
    st.integers(-9, 9).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text('ab\n é"', max_size=3),
)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(CELLS, st.integers(0, 99).map(str), CELLS), min_size=1, max_size=8),
    data=st.data(),
)
def test_the_fast_reader_gives_the_same_table_or_none(tmp_path_factory, rows, data):
    repeat = data.draw(st.sampled_from([1, 30]))
    out = io.StringIO()
    frame = pd.DataFrame(rows * repeat, columns=["a", "b", "c"])
    frame["y"] = np.where(np.arange(len(frame)) % 3, "no", "yes")
    frame.to_csv(out, index=False)
    path = tmp_path_factory.mktemp("fast") / "a.csv"
    path.write_bytes(out.getvalue().encode())
    kinds = {"a": data.draw(st.sampled_from(["auto", "numbers", "categories", "text"]))}
    before = fast_csv._WORTH_BYTES
    fast_csv._WORTH_BYTES = 0
    try:
        with open_csv(str(path)) as source:
            fast = fast_csv.read(source, ["a", "b", "c"], "y", kinds)
    finally:
        fast_csv._WORTH_BYTES = before
    if fast is None:
        return
    with open_csv(str(path)) as source:
        slow, labels = source._read(["a", "b", "c"], "y", kinds)
    same(fast[0], slow)
    assert fast[1].texts == labels.texts
    np.testing.assert_array_equal(fast[1].codes, labels.codes)


def test_large_files_go_the_fast_way(work, monkeypatch):
    frame = make_frame(400)
    for name, pack in (("a.csv", bytes), ("a.csv.gz", gzip.compress)):
        (work / name).write_bytes(pack(frame.to_csv(index=False).encode()))
        expected, _, _ = read(name, "état")
        with monkeypatch.context() as patch:
            patch.setattr(fast_csv, "_WORTH_BYTES", 0)
            patch.setattr("cardboost.cli.csv_table.CsvFile._read", None)
            table, labels, _ = read(name, "état")
        same(expected, table)
        assert labels.places[0] == "row 1"

"""Every verb takes files of every kind; the reader itself is tested in tests/data/test_reader.py."""

import gzip
import itertools
import json
import os
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cardboost.cli.files import BadInput
from cardboost.cli.fit import command
from cardboost.cli.main import main
from cardboost.cli.training_table import read_training_table
from cardboost.data.frame import Coded
from cardboost.data.reader import open_table
from cardboost.data.text_table import TextTable
from cardboost.model.predictions import label_codes

QUICK = ["--target", "état", "--max-terms", "2", "--hot-start", "6", "--threads", "1"]
SAME_ROWS = "these are the rows that the model was trained on; on new rows it is usually worse."


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
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def run(capsys, *words):
    code = main(list(words))
    seen = capsys.readouterr()
    return code, seen.out, seen.err


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(path, **kinds):
    with open_table(str(path)) as source:
        return source.read(source.names, kinds), source


def same(one, two):
    assert one.columns == two.columns
    for name in one.columns:
        own, other = one.data[name], two.data[name]
        if isinstance(own, Coded):
            assert own.labels == other.labels
            np.testing.assert_array_equal(own.codes, other.codes)
        else:
            np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst", "txt", "parquet", "feather", "xlsx"])
def test_every_verb_takes_every_format(work, capsys, ending):
    frame = make_frame()
    path = f"data.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "feather":
        frame.to_feather(path)
    elif ending == "xlsx":
        frame.to_excel(path, index=False)
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
    assert result["data"]["format"] == {
        "parquet": "parquet", "feather": "arrow", "xlsx": "excel",
    }.get(ending, "csv")  # fmt: skip
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
        one, _ = read("a.csv", **kinds)
        for path in ("a.parquet", "coded.parquet"):
            two, source = read(path, **kinds)
            same(one, two)
            assert source.remarks == []


PLAIN = b"a,y\n" + b"1,0\n2,1\n" * 5000


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (gzip.compress(PLAIN, mtime=0)[:-20], "its compressed data are damaged or cut off"),
        (gzip.compress(PLAIN, mtime=0)[:30] + b"\x00" * 60, "its compressed data are damaged or cut off"),
        (zstd_bytes(PLAIN)[:-5], "its compressed data are damaged or cut off"),
        (b"PAR1" + b"x" * 50, "cannot be read as Parquet"),
        (b"PK\x03\x04" + b"x" * 50, "is a damaged zip archive or spreadsheet"),
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
def test_labels_are_whole_numbers_or_text(work, cells, classes):
    cells = cells * 10
    (work / "a.csv").write_text("\n".join(["a,y", *(f"{k / 7},{cell}" for k, cell in enumerate(cells))]))
    target = read_training_table(command.arguments(["a.csv", "--target", "y"])).target
    assert list(target.classes) == classes
    assert [type(label) for label in target.classes] == [type(label) for label in classes]


def test_true_is_true_in_every_case(work, capsys):
    """Of a target in CSV, Excel and Parquet; a column that mixes them has two classes."""
    frame = pd.DataFrame({"a": np.arange(40) / 8, "y": np.arange(40) >= 20})
    frame.to_parquet("bool.parquet")
    frame.to_excel("bool.xlsx", index=False)
    for word in (str.lower, str.upper, str.title):
        frame.assign(y=frame["y"].map(str).map(word)).to_csv(f"{word.__name__}.csv", index=False)
    mixed = [(str.lower, str.upper, str.title)[k % 3](str(value)) for k, value in enumerate(frame["y"])]
    frame.assign(y=mixed).to_csv("mixed.csv", index=False)
    paths = ["bool.parquet", "bool.xlsx", "lower.csv", "upper.csv", "title.csv", "mixed.csv"]
    quick = ["--target", "y", "--max-terms", "1", "--hot-start", "2", "--threads", "1", "--quiet"]
    for path in ("upper.csv", "bool.parquet", "mixed.csv"):
        code, _, err = run(capsys, "fit", path, *quick, "--out", path[:-4])
        assert code == 0, err
        for other in paths:
            code, out, err = run(capsys, "evaluate", f"{path[:-4]}/model.json", other, "--resamples", "0")
            assert (code, err) == (0, f"cardboost evaluate: {SAME_ROWS}\n"), err
            assert "40 rows" in out
            assert "AUC         1.0000" in out or "1.0000" in out.split("AUC")[1].split("\n")[0]


def test_marks_of_a_model_and_remarks_of_every_verb(work, capsys):
    rng = np.random.default_rng(0)
    sales = rng.integers(100, 3000, 80)
    german = [f"{value:,}".replace(",", ".") for value in sales.tolist()]
    table = pd.DataFrame({"sales": german, "y": np.where(sales > 1500, "high", "low")})
    table.to_csv("a.csv", index=False, sep=";")
    quick = ["--target", "y", "--max-terms", "1", "--hot-start", "2", "--threads", "1"]
    doubt = "a.csv: the points in column 'sales' were read as decimal marks"
    code, _, err = run(capsys, "fit", "a.csv", *quick)
    assert code == 0
    assert doubt in err
    for words in (["predict"], ["evaluate", "--resamples", "0"], ["certify"]):
        code, _, err = run(capsys, words[0], "run/model.json", "a.csv", *words[1:])
        assert code == 0, err
        assert f"cardboost {words[0]}: {doubt}" in err
    assert run(capsys, "fit", "a.csv", *quick, "--thousands", ".", "--out", "right")[0] == 0
    thousands = "a.csv was read with ',' as the decimal mark and '.' as the mark of thousands."
    for words in (["predict"], ["evaluate", "--resamples", "0"], ["certify"]):
        code, _, err = run(capsys, words[0], "right/model.json", "a.csv", *words[1:])
        remarks = [thousands, SAME_ROWS] if words[0] == "evaluate" else [thousands]
        assert (code, err) == (0, "".join(f"cardboost {words[0]}: {remark}\n" for remark in remarks))
    assert "high" in run(capsys, "predict", "right/model.json", "a.csv")[1]


def test_a_name_is_refused_before_the_rows_are_read(work, capsys, monkeypatch):
    (work / "a.csv").write_text("a,b\n1,2\n3,4\n")
    monkeypatch.setattr(TextTable, "batches", lambda *given: pytest.fail("rows are read"))
    code, _, err = run(capsys, "fit", "a.csv", "--target", "nothere")
    assert code == 2
    assert "a.csv has no column 'nothere': the columns are 'a' and 'b'." in err


def test_labels_of_models():
    assert label_codes(["TRUE", "false", "True"], ("False", "True")).tolist() == [1, 0, 1]
    assert label_codes([1, 0], ("FALSE", "TRUE")).tolist() == [1, 0]
    assert label_codes(["true", "TRUE"], ("TRUE", "true")).tolist() == [1, 0]
    assert label_codes([1.0, 0.0], (0, 1)).tolist() == [1, 0]
    assert label_codes(["true", "FALSE", "0"], (False, True)).tolist() == [1, 0, 0]
    assert label_codes([0.5, 2], (0.5, 2)).tolist() == [0, 1]
    for cells, classes in ((["1"], ("1.0", "2")), (["yes"], (0, 1))):
        with pytest.raises(ValueError, match="is none of the model's classes"):
            label_codes(cells, classes)


@pytest.mark.parametrize("cells", [["0", "", "1"], ["0", "NA"]])
def test_a_target_that_is_missing(work, cells):
    (work / "a.csv").write_text("\n".join(["a,y", *(f"1,{cell}" for cell in cells)]))
    with pytest.raises(BadInput, match="line 3: the target 'y' is missing; every row needs a value"):
        read_training_table(command.arguments(["a.csv", "--target", "y"]))


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


# ------------------------------------------------------------------------------------------------ units


def money_frame(rows=80):
    rng = np.random.default_rng(1)
    balance, used = rng.integers(-50_000, 500_000, rows) / 100, rng.integers(0, 1000, rows) / 10
    paid = np.where(balance + 30 * used > 3500, "no", "yes")
    return pd.DataFrame({"balance": balance, "used": used, "paid": paid})


def test_money_and_percentages_are_numbers_for_every_verb(work, capsys):
    plain = money_frame()
    signed = plain.assign(
        balance=[f"${value:,.2f}" if value >= 0 else f"(${-value:,.2f})" for value in plain.balance],
        used=[f"{value}%" for value in plain.used],
    )
    plain.to_csv("plain.csv", index=False)
    signed.to_csv("signed.csv", index=False)
    quick = ["--target", "paid", "--max-terms", "2", "--hot-start", "6", "--threads", "1", "--l2", "0.01"]
    remark = "'balance' was read as numbers without '$', 'used' without '%' (20.5% is 20.5)."
    predictions = []
    for name in ("plain", "signed"):
        code, _, err = run(capsys, "fit", f"{name}.csv", *quick, "--out", name)
        assert code == 0
        assert err.count(remark) == (name == "signed")
    for model, data in itertools.product(("plain", "signed"), repeat=2):
        code, out, err = run(capsys, "predict", f"{model}/model.json", f"{data}.csv")
        assert code == 0
        assert ("read as numbers without" in err) == (data == "signed")
        predictions.append(out.splitlines())
        assert run(capsys, "certify", f"{model}/model.json", f"{data}.csv")[0] == 0
        assert run(capsys, "evaluate", f"{model}/model.json", f"{data}.csv", "--resamples", "0")[0] == 0
    assert len(predictions[0]) == len(plain) + 1
    assert all(lines == predictions[0] for lines in predictions)


def test_categorical_keeps_the_text_of_money(work):
    frame = pd.DataFrame({"price": ["$5", "$7", "$9"] * 20, "n": range(60), "y": [0, 1, 1] * 20})
    frame.to_csv("a.csv", index=False)
    words = ["a.csv", "--target", "y", "--categorical", "price", "--numeric", "n"]
    read = read_training_table(command.arguments(words))
    assert read.rows.table.data["price"].labels == ("$5", "$7", "$9")
    assert not any("without '$'" in remark for remark in read.remarks)


@pytest.mark.parametrize("values", [[f"{k / 4} €" for k in range(60)], ["5%", "7%", "9%"] * 20])
def test_targets_with_a_unit(work, values):
    """Amounts are numbers to predict; a few percentages are classes, as they stand in the table."""
    pd.DataFrame({"x": np.arange(60) / 7, "y": values}).to_csv("a.csv", index=False)
    read = read_training_table(command.arguments(["a.csv", "--target", "y"]))
    if len(set(values)) > 3:
        assert read.target.task == "regression"
        assert read.rows.target.tolist() == [k / 4 for k in range(60)]
    else:
        assert read.target.classes == ("5%", "7%", "9%")
    assert any("read as numbers without" in remark for remark in read.remarks) == (len(set(values)) > 3)


# ------------------------------------------------------------------------------------------------ codes


def test_numbers_with_leading_zeros_are_labels(work, capsys):
    rng = np.random.default_rng(0)
    town = rng.choice(["03136", "01067", "79098", "20095"], 80)
    frame = pd.DataFrame(
        {"zip": town, "x": rng.normal(size=80).round(2), "y": np.isin(town, ["03136", "79098"])}
    )
    frame["key"] = [f"{k:06d}" for k in rng.permutation(1000)[:80]]
    frame["n"] = rng.integers(1000, 9999, 80)
    frame.loc[3, "zip"] = "NA"
    frame.to_csv("a.csv", index=False)
    frame[frame.zip == "79098"].to_csv("one.csv", index=False)
    quick = ["--target", "y", "--max-terms", "2", "--hot-start", "6", "--threads", "1", "--l2", "0.01"]
    code, _, err = run(capsys, "fit", "a.csv", *quick, "--out", "out")
    assert code == 0
    assert "a.csv: 'zip' and 'key' hold codes with leading zeros such as '01067', which are labels" in err
    assert "left out: 'key' has the name of an identifier and 80 different values" in err
    labels = json.loads((work / "out/model.json").read_text())["training"]["data"]
    assert labels["zero_padded"] == ["zip"]
    assert labels["categories"] == {"zip": 4}
    assert run(capsys, "certify", "out/model.json", "a.csv")[0] == 0
    code, out, err = run(capsys, "predict", "out/model.json", "a.csv")
    of_one = [line for line, label in zip(out.splitlines()[1:], frame.zip, strict=True) if label == "79098"]
    code, out, err = run(capsys, "predict", "out/model.json", "one.csv")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == of_one


@pytest.mark.parametrize(
    ("cells", "options"),
    [
        (["03136", "79098"], ["--numeric", "a"]),
        (["03136", "790981"], []),
        (["0313.6", "7909.8"], []),
        (["031", "790"], []),
        (["0000", "0000"], []),
        (["13136", "79098"], []),
    ],
)
def test_numbers_without_the_shape_of_codes(work, cells, options):
    pd.DataFrame({"a": cells * 20, "x": np.arange(40) / 7, "y": [0, 1] * 20}).to_csv("a.csv", index=False)
    read = read_training_table(command.arguments(["a.csv", "--target", "y", *options]))
    assert read.facts["zero_padded"] == []
    assert not any("leading zeros" in remark for remark in read.remarks)
    assert "a" not in read.facts["categories"]


def test_a_column_given_as_a_date_that_holds_none(work):
    days = [f"2024-01-{k % 28 + 1:02d}" for k in range(40)]
    frame = pd.DataFrame({"a": np.arange(40) / 7, "day": days, "b": np.arange(40) / 3, "y": [0, 1] * 20})
    frame.to_csv("a.csv", index=False)
    words = ["a.csv", "--target", "y", "--date", "b", "--date", "day"]
    read = read_training_table(command.arguments(words))
    said = [remark for remark in read.remarks if remark.startswith("left out")]
    assert said == [
        "left out: column 'b' holds no dates that can be read such as '0' (it was given with --date)."
    ]
    assert list(read.rows.table.data) == ["a"]


# ------------------------------------------------------------------------------------------------ evaluate


@pytest.mark.parametrize("task", ["two classes", "three classes", "regression"])
@pytest.mark.parametrize("options", [[], ["--holdout", "0.25"], ["--weight", "n"]])
def test_evaluate_names_the_rows_of_the_fit(work, capsys, task, options):
    frame = make_frame()
    if task == "three classes":
        frame["état"] = np.where(frame["n"] == 1, "mort", frame["état"])
    elif task == "regression":
        frame["état"] = frame["âge"].fillna(0) + frame["n"] / 7
    frame.to_csv("a.csv", index=False)
    frame[::-1].to_csv("turned.csv", index=False)
    frame.assign(n=frame.n + 1).to_csv("other.csv", index=False)
    frame[1:].to_csv("fewer.csv", index=False)
    frame.drop(columns="flag").to_csv("lacking.csv", index=False)
    assert run(capsys, "fit", "a.csv", *QUICK, "--l2", "0.01", "--out", "out", "--quiet", *options)[0] == 0
    expected = SAME_ROWS
    if "--holdout" in options:
        expected = "the model was trained on 90 of these 120 rows; on new rows it is usually worse."
    for name in ("a", "turned", "other", "fewer", "lacking"):
        code, _, err = run(capsys, "evaluate", "out/model.json", f"{name}.csv", "--resamples", "0")
        told = name == "a" or (
            name == "turned" and "--holdout" not in options
        )  # other rows are held out there
        assert (code, err.count(expected)) == (0, told) or name == "lacking"
        assert "trained on" not in err or told

"""What an unfriendly user may try: every ending is one clear sentence and a documented exit code."""

import os
import stat
import subprocess
import sys
import warnings

import pytest

from cardboost.cli import files
from cardboost.cli.main import main

GOOD = "a,b,y\n1,x,0\n2,y,1\n7,x,0\n9,x,1\n4,y,1\n"
QUICK = ["--target", "y", "--threads", "1", "--hot-start", "5", "--max-terms", "2"]


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    return tmp_path


@pytest.fixture
def model(work):
    assert main(["fit", "good.csv", *QUICK, "--quiet"]) == 0
    return "run/model.json"


def refusal(capsys, *words):
    """The sentence of a command that ends with 2."""
    assert main(list(words)) == 2
    seen = capsys.readouterr()
    assert seen.err.count("\n") == 1, seen.err
    assert seen.err.endswith((".\n", "?\n"))
    return seen.err


# ------------------------------------------------------------------------------------------------ reading


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("h" * 200_000 + ",y\n1,0\n2,1\n", "line 1: a cell has more than 131,072 characters"),
        ('"a,y\n1,0\n2,1\n', "line 1: a quote is opened here that nothing closes"),
        ('a,y,b\n1,0,x\n2,1,"x\n3,0,y\n4,1,y\n', "line 3: a quote is opened here that nothing closes"),
        ('a,y,b\n1,0,x\n\n2,1,"x\n3,0,y', "line 4: a quote is opened here that nothing closes"),
        ('a,y,b\n1,0,"two\nlines"\n2,1,"x\n3,0,y\n', "line 4: a quote is opened here that nothing closes"),
    ],
    ids=["long name", "in the header", "in a row", "after a blank line", "after another"],
)
def test_a_quote_that_nothing_closes(work, capsys, text, sentence):
    """Otherwise it makes one cell of all rows that follow."""
    (work / "data.csv").write_text(text)
    assert sentence in refusal(capsys, "fit", "data.csv", *QUICK)


def test_columns_of_one_name_can_be_dropped(work, capsys):
    (work / "data.csv").write_text("a,b,a,y\n1,5,x,0\n2,6,z,1\n3,9,x,0\n")
    assert "more than one column named 'a'" in refusal(capsys, "fit", "data.csv", *QUICK)
    assert "more than one column named 'a'" in refusal(
        capsys, "fit", "data.csv", *QUICK, "--drop", "b", "--categorical", "a"
    )
    assert main(["fit", "data.csv", *QUICK, "--drop", "a"]) == 0


def test_names_with_line_breaks_stay_in_one_line(work, capsys):
    (work / "two\nlines.csv").write_text(GOOD)
    assert "has no column 'z'" in refusal(capsys, "fit", "two\nlines.csv", "--target", "z")


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\n,1,0\n,5,1\n,3,0\n",
        "a,y\n1e308,0\n-1e308,1\n5e-324,0\n0,1\n",
        "a,w,y\n1,1e308,0\n5,1e308,1\n3,1e308,0\n",
        "a,w,y\n1,1e-320,0\n5,1e-320,1\n3,1e-320,0\n",
        "a,w,y\n1,1e-300,0\n5,1e300,1\n3,1,0\n",
    ],
    ids=["an empty column", "extreme", "heavy", "light", "uneven"],
)
def test_strange_numbers_are_fitted_without_a_warning(work, capsys, text):
    (work / "data.csv").write_text(text)
    more = ["--weight", "w"] if ",w," in text else []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["fit", "data.csv", *QUICK, *more]) == 0
        assert main(["certify", "run/model.json", "data.csv"]) == 0


def test_a_table_of_nothing_to_learn_from(work, capsys):
    (work / "data.csv").write_text("a,b,y\n,7,0\n,7,1\n,7,0\n")
    assert main(["fit", "data.csv", *QUICK]) == 2
    assert "no column to learn from: all are the target or are left out" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ options


@pytest.mark.parametrize("option", ["--max-terms", "--threads", "--hot-start", "--max-iter", "--seed"])
def test_whole_numbers_have_an_end(work, capsys, option):
    said = refusal(capsys, "fit", "good.csv", "--target", "y", option, "9" * 30)
    assert "expected a whole number of at most 2147483647" in said
    assert not (work / "run").exists()


def test_paths_that_are_empty(work, model, capsys):
    assert "--out is empty" in refusal(capsys, "fit", "good.csv", *QUICK, "--out", "")
    assert "--out is empty" in refusal(capsys, "demo", "--out", "")
    assert "is empty" in refusal(capsys, "export", model, "--format", "c", "--out", "")
    assert "cannot write" in refusal(capsys, "predict", model, "good.csv", "--out", "")
    assert "cannot read ''" in refusal(capsys, "fit", "", *QUICK)


# ------------------------------------------------------------------------------------------------ writing


def test_devices_and_pipes_are_written_to_and_never_replaced(work, model, capsys):
    os.mkfifo("pipe")
    reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE, text=True)
    assert main(["predict", model, "good.csv", "--out", "pipe"]) == 0
    seen, _ = reader.communicate(timeout=600)
    assert seen.startswith("score,probability,class\n")
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    (work / "null").symlink_to(os.devnull)
    assert main(["predict", model, "good.csv", "--out", "null"]) == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    (work / "other").mkdir()
    (work / "other" / "card.h").symlink_to(os.devnull)
    assert "there is a device of that name" in refusal(
        capsys, "fit", "good.csv", *QUICK, "--out", "other", "--quiet"
    )
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert [path.name for path in (work / "other").iterdir()] == ["card.h"]


def test_a_folder_in_the_place_of_a_file(work, model, capsys):
    (work / "other" / "test_vectors.h").mkdir(parents=True)
    assert "there is a folder of that name" in refusal(
        capsys, "fit", "good.csv", *QUICK, "--out", "other", "--quiet"
    )
    assert "is a directory" in refusal(capsys, "predict", model, "good.csv", "--out", "other")
    assert "found a folder" in refusal(capsys, "export", model, "--format", "c", "--out", "other")
    assert "cannot make the folder" in refusal(capsys, "fit", "good.csv", *QUICK, "--out", "good.csv/x")


def test_a_folder_that_may_not_be_written(work, monkeypatch, capsys):
    (work / "other").mkdir()
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)
    said = refusal(capsys, "fit", "good.csv", *QUICK, "--out", "other")
    assert "cannot write into the folder 'other': permission denied" in said


def test_one_file_for_two_headers(work, model, capsys):
    words = ["export", model, "--format", "c", "--out", "card.h", "--test-vectors", "./card.h"]
    assert "name the same file" in refusal(capsys, *words)
    assert not (work / "card.h").exists()


CLOSED = """
import os, sys
os.close(int(sys.argv.pop(1)))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [
        ("2", ["fit", "nowhere.csv", *QUICK], 2),
        pytest.param("1", ["fit", "good.csv", *QUICK, "--json"], 2, marks=pytest.mark.long),
        pytest.param("1", ["predict", "run/model.json", "good.csv"], 2, marks=pytest.mark.long),
        pytest.param(
            "1", ["predict", "run/model.json", "good.csv", "--out", "scores.csv"], 0, marks=pytest.mark.long
        ),
        pytest.param("2", ["predict", "run/model.json", "good.csv"], 0, marks=pytest.mark.long),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_closed_outputs(work, model, closed, words, code):
    command = [sys.executable, "-c", CLOSED, closed, "-m", "cardboost.cli.main", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == code, done.stderr
    if closed == "1" and code == 2:
        assert "cannot write the output" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr

"""`cardboost pareto` end to end: what it prints, what it writes, its exit codes, and Ctrl-C."""

import csv
import json
import os
import re
import signal
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from cardboost import ParetoFront, load_model
from cardboost.cli.main import main

FILES = {"front.json", "table.csv", "front.svg", "index.html", "model.json", "card.txt", "config.toml"}
QUICK = ["--sizes", "1-3", "--folds", "2", "--hot-start", "8", "--threads", "1"]


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["age,town,dose,state,weight"]
    for _ in range(120):
        age, dose, town = rng.integers(20, 80), rng.normal(), rng.choice(["Oslo", "Bergen", "?"])
        ill = age + 20 * (town == "Oslo") + 8 * rng.normal() > 55
        lines.append(f"{age},{town},{dose:.2f},{'ill' if ill else 'fit'},{rng.integers(1, 4)}")
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(capsys, *words):
    code = main(["pareto", "data.csv", "--target", "state", *QUICK, *words])
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def test_all_files_and_the_table(work, capsys):
    code, out, _ = run(capsys, "--drop", "weight", "--pick", "best")
    assert code == 0
    assert {path.name for path in (work / "front").iterdir()} == FILES
    front = ParetoFront.load(work / "front/front.json")
    assert str(front) in out
    assert front.sizes == (1, 2, 3)
    assert max(map(len, out.splitlines())) < 80
    model = load_model(work / "front/model.json")
    assert model.ensemble == front.pick("best").ensemble_
    assert model.classes == ("fit", "ill")
    rows = list(csv.DictReader((work / "front/table.csv").read_text().splitlines()))
    assert [float(row["mean"]) for row in rows] == [point.mean for point in front]
    ElementTree.parse(work / "front/front.svg")
    page = (work / "front/index.html").read_text(encoding="utf-8")
    assert "state = ill" in page
    assert model.card(certificate_lines=front.pick("best").certificate_.lines()).splitlines()[2] in page
    assert re.findall(r'(?:src|href)=|https?://(?!www\.w3\.org/2000/svg")', page) == []
    assert main(["certify", "front/model.json", "data.csv"]) == 0
    assert main(["predict", "front/model.json", "data.csv", "--out", "scores.csv"]) == 0


def test_json_is_the_only_thing_on_stdout(work, capsys):
    code, out, _ = run(capsys, "--json", "--weight", "weight", "--positive", "fit", "--scoring", "roc_auc")
    assert code == 0
    document = json.loads(out)
    assert document["scoring"] == "roc_auc"
    assert document["folds"] == document["folds_asked_for"] == 2
    assert document["data"]["weight"] == "weight"
    assert [row["terms"] for row in document["table"]] == [1, 2, 3]
    assert load_model("front/model.json").classes == ("ill", "fit")
    assert main(["certify", "front/model.json", "data.csv"]) == 0


def test_quiet_and_equal_seeds(work, capsys):
    assert run(capsys, "--quiet", "--out", "a") == (0, "", "")
    assert run(capsys, "--quiet", "--out", "b") == (0, "", "")
    assert run(capsys, "--quiet", "--out", "c", "--seed", "1") == (0, "", "")
    first, second, other = ((work / name / "front.json").read_bytes() for name in "abc")
    assert first == second != other


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scoring", "neg_logloss"], "did you mean neg_log_loss?"),
        (["--pick", "7"], "--pick 7: this size is not among --sizes"),
        (["--pick", "2se"], "expected 1se, knee, best or a size, got '2se'"),
        (["--sizes", "3,2"], "expected ascending numbers of terms such as 1-20 or 1,2,5,10, got '3,2'"),
        (["--sizes", "0-3"], "expected ascending numbers of terms"),
        (["--folds", "1"], "expected a whole number of at least 2, got '1'"),
        (["--folds", "100"], "--folds 100: class"),
        (["--drop", "tow"], "has no column 'tow': did you mean 'town'?"),
        (["--weight", "wieght"], "has no column 'wieght'"),
        (["--out", "data.csv"], "cannot make the folder 'data.csv'"),
        (["--loss", "hinge"], "scoring='neg_log_loss' failed on the held-out rows"),
    ],
)
def test_bad_usage_is_one_sentence(work, capsys, words, message):
    code, out, err = run(capsys, "--quiet", *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (work / "front/front.json").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("age,state\n", "no rows"),
        ("age,state\n1,ill\n2,ill\n", "is 'ill' in every row"),
        ("age,dose\n1,2\n", "has no column 'state'"),
    ],
)
def test_files_that_cannot_be_used(work, capsys, text, message):
    (work / "data.csv").write_text(text)
    code, _, err = run(capsys)
    assert code == 2
    assert message in err
    assert err.startswith("cardboost pareto: ")


@pytest.fixture
def interruptible():
    """Signals may be ignored where the tests run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_in_fold(monkeypatch, fold, times=1):
    from cardboost.pareto.compute import FrontWork

    own = FrontWork.run_fold

    def pressing(self, number, *words):
        if number == fold:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        return own(self, number, *words)

    monkeypatch.setattr(FrontWork, "run_fold", pressing)


def test_ctrl_c_keeps_the_folds_that_are_done(work, monkeypatch, capfd, interruptible):
    press_in_fold(monkeypatch, 1)
    code = main(["pareto", "data.csv", "--target", "state", *QUICK, "--folds", "3"])
    seen = capfd.readouterr()
    assert code == 130
    assert "Interrupted: the front of 1 of 3 folds was written to front." in seen.err
    assert "Not complete: it was interrupted" in seen.out
    front = ParetoFront.load("front/front.json")
    assert (front.status, front.n_folds_done, front.n_folds) == ("interrupted", 1, 3)
    assert main(["certify", "front/model.json", "data.csv"]) == 0


def test_ctrl_c_twice_changes_nothing(work, monkeypatch, capsys, interruptible):
    (work / "front").mkdir()
    (work / "front/front.json").write_text("old")
    press_in_fold(monkeypatch, 0, times=2)
    code, _, err = run(capsys, "--quiet")
    assert code == 130
    assert err.endswith("cardboost pareto: aborted.\n")
    assert [path.name for path in (work / "front").iterdir()] == ["front.json"]
    assert (work / "front/front.json").read_text() == "old"


def test_time_that_is_up(work, capsys):
    code, out, _ = run(capsys, "--time", "0.000001", "--folds", "30")
    assert code == 0
    assert "Not complete: time_limit was reached" in out
    assert ParetoFront.load("front/front.json").n_folds_done == 1

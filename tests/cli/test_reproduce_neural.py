"""`cardboost reproduce neural`: what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

from cardboost import NeuralBoostClassifier
from cardboost.cli.main import main
from cardboost.reproduce import neural
from cardboost.reproduce.neural import DEFAULT, PEERS, FoldSettings

FIGURES = ["accuracy.svg", "models.svg", "training.svg"]
real_models = neural.models


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few folds and nets, in this process; small trees, and a default that chooses from less."""

    def quick(seed):
        found = dict(real_models(seed))
        found[DEFAULT] = NeuralBoostClassifier(max_iter=2, l2=0.03, early_stopping=True, random_state=seed)
        found["GradientBoostingClassifier"].set_params(n_estimators=3)
        return found

    monkeypatch.setattr(neural, "FULL", FoldSettings(repeats=2, folds=2, nets=3))
    monkeypatch.setattr(neural, "ALL_CORES", 1)
    monkeypatch.setattr(neural, "models", quick)


def run(capsys, *words):
    code = main(["reproduce", "neural", *map(str, words)])
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def check_numbers(results):
    """Check points and means once more, from the file."""
    losses = [results["whole"]["start"], *(own["loss"] for own in results["whole"]["rounds"])]
    assert all(after <= before for before, after in pairwise(losses))
    for own in results["whole"]["rounds"]:
        assert own["gamma"] == pytest.approx(own["closed_form"], rel=1e-12)
        assert own["least"] <= own["loss"] * (1 + 1e-12)
    scores = {own["name"]: own for own in results["scores"]}
    for own in scores.values():
        folds, default = np.array(own["folds"]), np.array(scores[DEFAULT]["folds"])
        assert own["mean"] == pytest.approx(folds.mean())
        assert own["error"] == pytest.approx(folds.std(ddof=1) / np.sqrt(len(folds)))
        assert own["default_ahead"] == pytest.approx((default - folds).mean())
    best = max((scores[name] for name in PEERS), key=lambda own: own["mean"])
    needed = best["mean"] - 0.5 * best["error"]
    assert results["goal"]["needed"] == pytest.approx(needed)
    assert results["goal_met"] == (scores[DEFAULT]["mean"] >= needed)
    for curve in results["curves"]:
        assert curve["accuracy"][-1] == pytest.approx(scores[curve["name"]]["mean"])
        assert all(np.diff(curve["training"]) <= 1e-12)


def test_end_to_end_and_again(tmp_path, capsys):
    out = tmp_path / "new" / "paper"
    code, said, told = run(capsys, "--out", out)
    assert code == 0
    assert sorted(contents(out)) == sorted([*FIGURES, "index.html", "report.txt", "results.json"])
    report = (out / "report.txt").read_text(encoding="utf-8")
    assert said.startswith(report)
    assert max(map(len, report.splitlines())) < 80
    assert report.count(" holds  ") == 3
    assert "All check points hold." in report
    assert "4 of 4 folds" in told
    for name in (DEFAULT, *PEERS, "squared, last, 3 nets (the paper's)"):
        assert re.search(rf"^  {re.escape(name)} +\d+\.\d\d%", report, re.MULTILINE)
    check_numbers(json.loads((out / "results.json").read_text(encoding="utf-8")))
    for name in FIGURES:
        ET.fromstring((out / name).read_text(encoding="utf-8"))
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg ") == len(FIGURES)
    assert page.count(">holds<") == 3
    assert not re.search(r"<script|<link|src=|href=", page)
    first = contents(out)
    (out / "report.txt").write_text("old")
    assert run(capsys, "--out", out)[0] == 0
    assert contents(out) == first


def test_a_check_point_that_fails(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(neural, "SAME_GAMMA", -1.0)
    code, said, _ = run(capsys, "--out", tmp_path)
    assert code == 1
    assert "NOT ALL CHECK POINTS HOLD." in said
    assert "(b) FAILS" in said
    assert not json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["holds"]
    assert ">FAILS<" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_goal_that_is_missed_is_said_and_no_failure(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(neural, "ALLOWED", -100.0)
    code, said, _ = run(capsys, "--out", tmp_path)
    assert code == 0
    assert "Accuracy goal MISSED" in said
    assert "Accuracy goal met" not in said
    assert "Accuracy goal MISSED" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_bad_input_is_one_sentence_before_any_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(neural, "run", lambda *words, **more: pytest.fail("nothing may be run"))
    (tmp_path / "mine").write_text("mine")
    for words in (["--out", tmp_path / "mine"], ["--out", ""], []):
        code, said, error = run(capsys, *words)
        assert code == 2
        assert said == ""
        assert len(error.splitlines()) == 1
    assert (tmp_path / "mine").read_text() == "mine"


def test_help(capsys):
    code, said, _ = run(capsys, "--help")
    assert code == 0
    assert "Iris" in said
    assert max(map(len, said.splitlines())) < 80


@pytest.mark.long
def test_in_full(tmp_path, capsys, monkeypatch):
    monkeypatch.undo()
    code, said, _ = run(capsys, "--out", tmp_path)
    assert code == 0
    assert "10 x 10 folds" in said
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    check_numbers(results)
    assert results["checks"][0]["numbers"]["fits"] == 101
    assert results["goal_met"]

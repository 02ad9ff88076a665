"""Scorecards on the command line: whole points, scales of odds, and a budget of bytes."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cardboost import load_model
from cardboost.cli.main import main
from cardboost.export.code_size import c_size
from cardboost.export.measure import TARGETS

QUICK = ["--max-terms", "5", "--hot-start", "10", "--threads", "1"]


@pytest.fixture
def data(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(200, 4)), 2)
    y = X[:, 0] + 0.6 * X[:, 2] - 0.4 * X[:, 3] + 0.3 * rng.normal(size=200) > 0
    with open("data.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "d", "state"])
        writer.writerows([*row, "ill" if own else "fit"] for row, own in zip(X, y, strict=True))
    return "data.csv"


def fit(capsys: Any, data: str, *words: str) -> tuple[int, str, str]:
    code = main(["fit", data, "--target", "state", *QUICK, *words])
    seen = capsys.readouterr()
    return code, seen.out, seen.err


@pytest.mark.parametrize(("words", "most"), [("3", 3), ("0..4", 4), ("-2..7", 7)])
def test_points(data: str, capsys: Any, words: str, most: int) -> None:
    code, out, _ = fit(capsys, data, f"--points={words}")
    assert code == 0
    card = load_model("run/model.json").scorecard()
    assert max(card.ensemble.term_points()) <= most
    assert "add the points of one line per feature" in out
    text = Path("run/card.txt").read_text(encoding="utf-8")
    assert text.startswith("Scorecard for state = ill")
    assert text in out
    assert f"a total of {card.threshold} or more means class" in text
    assert main(["certify", "run/model.json", data, "--target", "state"]) == 0
    assert main(["predict", "run/model.json", data, "--out", "scores.csv"]) == 0
    header = Path("run/card.h").read_text(encoding="ascii")
    assert f"1 for a total of {card.threshold} or more, else 0" in " ".join(header.replace("*", " ").split())
    with open("scores.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["points", "probability", "class"]
    assert {row["class"] for row in rows if int(row["points"]) >= card.threshold} == {"ill"}


def test_a_scale_of_odds(data: str, capsys: Any) -> None:
    code, out, _ = fit(
        capsys, data, "--base-score", "600", "--base-odds", "50", "--double-odds", "20", "--json"
    )
    assert code == 0
    found = json.loads(out)
    card = load_model("run/model.json").scorecard()
    assert found["points"]["start"] == card.start
    assert found["points"]["threshold"] == card.threshold
    assert found["points"]["share_given_up"] < 1e-3
    odds = [p / (1 - p) for p in card.probability([600, 620])]
    np.testing.assert_allclose(odds, [50, 100], rtol=1e-6)
    assert "begin with" in found["card"]


def test_a_budget_of_bytes(data: str, capsys: Any) -> None:
    sizes, terms = [], []
    for budget in (200, 70, 50):
        code, out, _ = fit(capsys, data, "--max-bytes", str(budget), "--json")
        assert code == 0
        ensemble = load_model("run/model.json").ensemble
        sizes.append(c_size(ensemble))
        terms.append(json.loads(out)["terms"])
        assert sizes[-1] <= budget
        if TARGETS[0].compiler is not None:
            assert c_size(ensemble, compiled=True) <= budget
    assert terms == sorted(terms, reverse=True)
    assert terms[0] > terms[-1] >= 1
    code, _, err = fit(capsys, data, "--max-bytes", "5")
    assert code == 2
    assert "no card fits into 5 bytes" in err


def test_what_is_refused(data: str, capsys: Any) -> None:
    for words in (["--points", "0"], ["--points", "2..5"], ["--points", "x"], ["--double-odds", "0"]):
        assert fit(capsys, data, *words)[0] == 2
    code, _, err = fit(capsys, data, "--points", "5", "--max-terms", "none")
    assert code == 2
    assert "need --max-terms or --l0" in err


def test_a_plain_run_has_no_points(data: str, capsys: Any) -> None:
    code, out, _ = fit(capsys, data, "--json")
    assert code == 0
    assert json.loads(out)["points"] is None
    with pytest.raises(ValueError, match="whole multiples"):
        load_model("run/model.json").scorecard()


def test_little_time_is_enough_for_points(data: str, capsys: Any) -> None:
    assert fit(capsys, data, "--points", "5", "--time", "0.01")[0] == 0
    assert main(["certify", "run/model.json", data, "--target", "state"]) == 0


def test_every_file_speaks_points(data: str, capsys: Any) -> None:
    assert fit(capsys, data, "--points", "6")[0] == 0
    card = load_model("run/model.json").scorecard()
    words = ["predict", "run/model.json", data, "--contributions", "--reasons", "2", "--json"]
    capsys.readouterr()
    assert main(words) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["points"] for row in rows] == [
        sum(value for key, value in row.items() if key.startswith("points:")) for row in rows
    ]
    assert all(type(row["reason 1 adds"]) is int for row in rows if row["reason 1"])
    assert main(["export", "run/model.json", "--format", "python"]) == 0
    space: dict[str, Any] = {}
    exec(capsys.readouterr().out, space)
    with open(data, newline="", encoding="utf-8") as file:
        table = [{name: float(row[name]) for name in "abcd"} for row in csv.DictReader(file)]
    assert [space["score"](row) for row in table] == [row["points"] for row in rows]
    assert main(["export", "run/model.json", "--format", "sql"]) == 0
    assert re.search(r"THEN \d+ ELSE \d+ END", capsys.readouterr().out)
    header = Path("run/card.h").read_text(encoding="ascii")
    assert f"in the range {card.lowest} to {card.highest}." in " ".join(header.replace("*", " ").split())


@pytest.mark.parametrize("points", [[], ["--points", "5"]])
def test_a_threshold(data: str, capsys: Any, points: list[str]) -> None:
    code, out, _ = fit(capsys, data, *points, "--threshold", "recall>=0.97", "--json")
    assert code == 0
    found = json.loads(out)
    model = load_model("run/model.json")
    assert found["threshold"] == model.ensemble.operating_point.to_dict()
    assert found["threshold"]["recall"] >= 0.97
    assert "by recall>=0.97 on out-of-fold scores of 200 training rows" in " ".join(found["card"].split())
    assert main(["predict", "run/model.json", data, "--out", "scores.csv"]) == 0
    with open("scores.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    score, limit = (
        ("points", model.scorecard().threshold - 1) if points else ("score", model.ensemble.threshold)
    )
    assert [row["class"] for row in rows] == ["ill" if float(row[score]) > limit else "fit" for row in rows]
    capsys.readouterr()
    assert main(["evaluate", "run/model.json", data, "--resamples", "0"]) == 0
    shown = f"from {limit + 1:g} points on" if points else f"above a score of {limit:g}"
    assert f"Confusion {shown}" in capsys.readouterr().out
    assert fit(capsys, data, "--threshold", "recall>0.9")[0] == 2

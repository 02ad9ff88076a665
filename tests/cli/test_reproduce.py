"""`cardboost reproduce`: what it prints and writes, its check points recomputed, and its exit codes."""

import contextlib
import gzip
import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from cardboost.cli.main import main
from cardboost.datasets.box_scores import COLUMNS, FILE, made_up_box_scores
from cardboost.reproduce import conjugate_gradient
from cardboost.reproduce.conjugate_gradient import SMALL_MATRIX, stump_outputs

FIGURES = ["distance.svg", "error.svg", "figure-2.svg", "figure-3.svg", "margin.svg", "support.svg"]
GAMES = 60


def set_up(patch):
    """Few games, no conic solver, and no data from outside."""
    patch.setattr(conjugate_gradient, "GAMES", GAMES)
    patch.setattr(conjugate_gradient, "by_cone", lambda A, radius: None)
    patch.delenv("CARDBOOST_DATA", raising=False)


@pytest.fixture(autouse=True)
def few_games(monkeypatch):
    set_up(monkeypatch)


def run(capsys, *words):
    code = main(["reproduce", *map(str, words)])
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def check_numbers(results, data):
    """The check points once more, from the files and the data."""
    train = np.arange(len(data.y)) % 2 == 0
    stumps, H = stump_outputs(data, train)
    weights = {own["stump"]: own["weight"] for own in results["games"]["weights"]}
    w = np.array([weights.get(stump, 0.0) for stump in stumps])
    small = np.array(SMALL_MATRIX), np.array(results["small"]["weights"]), results["small"]
    games = H[train] * data.y[train, None], w, results["games"]
    for A, w, own in (small, games):
        values = [row["objective"] for row in own["iterations"]]
        assert all(a >= b for a, b in pairwise(values))
        assert own["iterations"][-1]["criterion"] <= results["epsilon"]
        p = np.exp(-A @ w)
        assert np.log(p.sum()) == pytest.approx(values[-1], abs=1e-10)
        p /= p.sum()
        g = -A.T @ p
        assert w.min() >= 0
        assert w.sum() == pytest.approx(own["radius"], abs=1e-12)
        assert np.ptp(g[w > 0]) < 1e-6
        assert g[w > 0].mean() - g.min() < 1e-6
        bound = -(p @ np.log(p)) - own["radius"] * (A.T @ p).max()
        assert values[-1] - bound < 1e-6
        assert all(abs(values[-1] - other["value"]) < 1e-6 for other in own["references"])
        short = [own["hard_margin"] - row["least_margin"] for row in own["temperatures"]]
        assert min(short) > -1e-9
        assert short[-1] < 0.01
        assert own["holds"]
        assert [check["letter"] for check in own["checks"]] == list("abcde")


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """The folder of a run without data, and what it printed."""
    out = tmp_path_factory.mktemp("stand-in") / "new" / "paper"
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        set_up(patch)
        assert main(["reproduce", "conjugate-gradient", "--out", str(out)]) == 0
    return out, said.getvalue()


def test_the_stand_in_end_to_end(stand_in):
    out, said = stand_in
    assert sorted(contents(out)) == sorted([*FIGURES, "index.html", "report.txt", "results.json"])
    report = (out / "report.txt").read_text(encoding="utf-8")
    assert said.startswith(report)
    assert max(map(len, report.splitlines())) < 80
    assert report.count(" holds  ") == 10
    assert "STAND-IN" in report
    assert "cvxpy and clarabel are not installed" in " ".join(report.split())
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert results["holds"]
    assert results["data"]["made_up"]
    check_numbers(results, made_up_box_scores(GAMES))
    for name in FIGURES:
        text = (out / name).read_text(encoding="utf-8")
        ET.fromstring(text)
        assert name == "figure-2.svg" or "made-up games, a stand-in" in re.sub(r"<[^>]*>\s*", " ", text)
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg ") == len(FIGURES)
    assert page.count(">holds<") == 10
    assert not re.search(r"<script|<link|src=|href=", page)


def test_the_page_shows_what_is_printed(stand_in):
    """Tables of the small example, which need no data; differences between solvers are rounding."""
    page = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
    _, said = stand_in
    wanted = [line for line in shown.splitlines() if re.match(r"  (\d|k|\()", line)]
    assert len(wanted) == 10
    assert set(wanted) <= set(said.splitlines())


def test_the_paper_s_example():
    """Section 4.1: the end is the corner (0, 1/2, 0), reached in a few steps from inside."""
    A = np.array(SMALL_MATRIX, dtype=float)
    own = conjugate_gradient.example("4 x 3", A, 0.5, (2.0, 0.001))
    assert own["weights"] == [0.0, 0.5, 0.0]
    assert len(own["iterations"]) == 4
    assert min(own["iterations"][0]["weights"]) > 0
    assert own["iterations"][-1]["objective"] == pytest.approx(np.log(3 * np.exp(-0.5) + np.exp(0.5)))
    assert own["iterations"][-1]["criterion"] == 0


def test_two_runs_write_the_same_files(stand_in, tmp_path, capsys):
    assert run(capsys, "conjugate-gradient", "--out", tmp_path)[0] == 0
    assert contents(tmp_path) == contents(stand_in[0])


def test_a_check_point_that_fails(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(conjugate_gradient, "TOLERANCE", -1.0)
    code, said, _ = run(capsys, "conjugate-gradient", "--out", tmp_path)
    assert code == 1
    assert "NOT ALL CHECK POINTS HOLD." in said
    assert "(c) FAILS" in said
    assert not json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["holds"]
    assert ">FAILS<" in (tmp_path / "index.html").read_text(encoding="utf-8")


def write_games(folder, games=GAMES, header=None):
    data = made_up_box_scores(games, seed=5)
    lines = [",".join(header or [*COLUMNS, "home_blk", "road_blk", "y"])]
    lines += [
        ",".join([*map(repr, x), "1", "2", str(int(y))]) for x, y in zip(data.X.tolist(), data.y, strict=True)
    ]
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_bytes(gzip.compress("\n".join(lines).encode()))
    return data


@pytest.mark.parametrize("how", ["option", "variable"])
def test_games_of_a_file(tmp_path, capsys, monkeypatch, how):
    data = write_games(tmp_path / "data")
    words = ["conjugate-gradient", "--out", tmp_path / "out"]
    if how == "option":
        words += ["--data", tmp_path / "data"]
        monkeypatch.setenv("CARDBOOST_DATA", str(tmp_path / "nowhere"))  # the option goes before
    else:
        monkeypatch.setenv("CARDBOOST_DATA", str(tmp_path / "data"))
    code, said, _ = run(capsys, *words)
    assert code == 0
    assert "STAND-IN" not in said
    assert "home_blk and road_blk are left out" in said
    files = contents(tmp_path / "out")
    assert not any(b"made-up" in own or b"tand-in" in own for own in files.values())
    results = json.loads(files["results.json"])
    assert not results["data"]["made_up"]
    check_numbers(results, data)


@pytest.mark.parametrize(
    ("prepare", "words", "part"),
    [
        (lambda folder: (folder / "out").write_text("mine"), [], "cannot make the folder"),
        (lambda folder: None, ["--data", "nowhere"], "the folder 'nowhere' of --data is not there"),
        (lambda folder: (folder / "data").mkdir(), ["--data", "data"], f"cannot read {FILE}"),
        (lambda folder: write_games(folder / "data", header=["a", "b"]), ["--data", "data"], "has no column"),
        (lambda folder: write_games(folder / "data", games=8), ["--data", "data"], "has 8 games"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, capsys, monkeypatch, prepare, words, part):
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    code, said, error = run(capsys, "conjugate-gradient", "--out", "out", *words)
    assert code == 2
    assert said == ""
    assert part in error
    assert error.startswith("cardboost reproduce: ")
    assert len(error.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "words", [[], ["other"], ["conjugate-gradient"], ["conjugate-gradient", "--out", ""]]
)
def test_bad_usage(capsys, words):
    code, _, error = run(capsys, *words)
    assert code == 2
    assert len(error.splitlines()) == 1


def test_help_says_what_is_read(capsys):
    code, said, _ = run(capsys, "conjugate-gradient", "--help")
    assert code == 0
    assert FILE in said
    assert "CARDBOOST_DATA" in said
    assert max(map(len, said.splitlines())) < 80


def test_a_conic_solver_is_used_where_it_is_installed(monkeypatch):
    from cardboost.reproduce.independent import by_cone

    monkeypatch.setattr(conjugate_gradient, "by_cone", by_cone)
    own = conjugate_gradient.example("4 x 3", np.array(SMALL_MATRIX, dtype=float), 0.5, (2.0,))
    installed = by_cone(np.eye(2), 1.0) is not None
    assert ("Clarabel's" in own["checks"][3]["measured"]) == installed
    assert ("not installed" in own["checks"][3]["measured"]) == (not installed)
    assert own["checks"][3]["holds"]


def test_help_does_not_load_the_experiments():
    code = "import sys; from cardboost.cli.main import main; main(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout.splitlines()[-1]
    assert "'numpy'" not in modules
    assert "cardboost.reproduce" not in modules


DATA = os.environ.get("CARDBOOST_DATA")


@pytest.mark.long
@pytest.mark.skipif(not DATA or not os.path.isfile(os.path.join(DATA, FILE)), reason="needs the games' file")
def test_the_real_games(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(conjugate_gradient, "GAMES", 538)
    code, said, _ = run(capsys, "conjugate-gradient", "--out", tmp_path, "--data", DATA)
    assert code == 0
    assert said.count(" holds  ") == 10
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert results["games"]["rows"] == 269
    assert results["games"]["temperatures"][-1]["train_error"] == 0
    with gzip.open(os.path.join(DATA, FILE), "rt", encoding="utf-8") as file:
        rows = file.read().splitlines()[1:200]
    assert not any(row.encode() in own for row in rows for own in contents(tmp_path).values())


@pytest.mark.long
def test_the_stand_in_in_full(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(conjugate_gradient, "GAMES", 538)
    code, said, _ = run(capsys, "conjugate-gradient", "--out", tmp_path)
    assert code == 0
    assert "269 games for training" in said
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    check_numbers(results, made_up_box_scores(538))

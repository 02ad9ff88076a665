"""The files of a run change together, whenever the program that writes them is killed."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import NoReturn

import pytest
from run_folder import NEW, NOTE, OLD, check_whole

from cardboost.model import load_model
from cardboost.model.atomic import finish_switch, write_atomically, write_together

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="the test forks")


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn about threads
        return os.fork()


def write_new_files(folder: Path, last: int) -> NoReturn:
    """In a process of its own, which ends when it begins its step number ``last``, from 0."""
    steps = itertools.count()

    def die_at_the_last(event: str, arguments: object) -> None:
        if event in ("open", "os.rename", "os.remove", "os.chmod", "os.truncate") and next(steps) == last:
            os._exit(9)

    try:
        sys.addaudithook(die_at_the_last)
        write_together(folder, NEW)
        os._exit(0)
    finally:
        os._exit(1)


@FORKS
def test_killed_before_any_step_leaves_the_old_files_or_the_new_ones(tmp_path: Path) -> None:
    """Every opening, renaming, removing and syncing of a file is in turn the one that does not happen."""
    (tmp_path / NOTE).write_text("keep")
    renewed, ended = [], 9
    for last in range(1000):
        write_together(tmp_path, OLD)
        child = fork()
        if not child:
            write_new_files(tmp_path, last)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        renewed.append(check_whole(tmp_path))
        if ended != 9:
            break
    assert ended == 0
    assert renewed == sorted(renewed)  # once the new files count, they always do
    assert renewed.count(False) >= 5  # one for each file, and the journal
    assert renewed.count(True) >= 6


@FORKS
def test_killed_by_the_system_at_any_moment(tmp_path: Path) -> None:
    (tmp_path / NOTE).write_text("keep")
    write_together(tmp_path, OLD)
    chance, seen, kills = random.Random(0), set(), 0
    while kills < 15 or (len(seen) < 2 and kills < 400):
        child = fork()
        if not child:
            try:
                while True:
                    write_together(tmp_path, NEW)
                    write_together(tmp_path, OLD)
            finally:
                os._exit(1)
        time.sleep(chance.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
        seen.add(check_whole(tmp_path))


@pytest.mark.parametrize("failing", range(6))
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_rename_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, error: BaseException
) -> None:
    (tmp_path / NOTE).write_text("keep")
    write_together(tmp_path, OLD)
    replace, calls = os.replace, []

    def fail_once(draft: Path, target: Path) -> None:
        calls.append(target)
        if len(calls) == failing + 1:
            raise error
        replace(draft, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail_once)
        if failing < 4:
            with pytest.raises(type(error)):
                write_together(tmp_path, NEW)
        else:
            write_together(tmp_path, NEW)
    stopped = isinstance(error, KeyboardInterrupt)
    assert check_whole(tmp_path) == (failing > (0 if stopped else 1))
    assert not list(tmp_path.glob(".cardboost-*"))


def test_loading_a_model_finishes_the_switch(tmp_path: Path) -> None:
    (tmp_path / ".cardboost-1a.tmp").write_text("{}")
    (tmp_path / ".cardboost-2b.tmp").write_text("new card")
    (tmp_path / "card.txt").write_text("old card")
    notes = {"replace": {"model.json": ".cardboost-1a.tmp", "card.txt": ".cardboost-2b.tmp"}, "remove": []}
    (tmp_path / ".cardboost-3c.journal").write_text(json.dumps(notes))
    with pytest.raises(ValueError, match=r"model\.json: format: expected"):
        load_model(tmp_path / "model.json")
    assert (tmp_path / "card.txt").read_text() == "new card"
    assert sorted(os.listdir(tmp_path)) == ["card.txt", "model.json"]


@pytest.mark.parametrize(
    "notes",
    [
        {"replace": {"../other.txt": ".cardboost-1a.tmp"}, "remove": []},
        {"replace": {"mine.txt": "../other.txt"}, "remove": []},
        {"replace": {"mine.txt": "secret.txt"}, "remove": []},
        {"replace": {}, "remove": ["../other.txt"]},
        {"replace": {}, "remove": [".."]},
        {"replace": [1], "remove": []},
        {"remove": []},
        [],
        "x",
    ],
)
def test_a_journal_reaches_only_drafts_of_its_folder(tmp_path: Path, notes: object) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "other.txt").write_text("other")
    (folder / "secret.txt").write_text("secret")
    (folder / ".cardboost-1a.tmp").write_text("draft")
    (folder / ".cardboost-3c.journal").write_text(json.dumps(notes))
    finish_switch(folder)
    assert (tmp_path / "other.txt").read_text() == "other"
    assert sorted(os.listdir(folder)) == [".cardboost-1a.tmp", "secret.txt"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owner")
def test_the_journal_of_another_user_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / ".cardboost-1a.tmp").write_text("theirs")
    notes = {"replace": {"mine.txt": ".cardboost-1a.tmp"}, "remove": []}
    (tmp_path / ".cardboost-3c.journal").write_text(json.dumps(notes))
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "mine.txt").stat().st_uid + 1)
    finish_switch(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (tmp_path / ".cardboost-3c.journal").exists()


@pytest.mark.skipif(os.name != "posix", reason="links need permission elsewhere")
def test_links_lead_to_what_is_replaced(tmp_path: Path) -> None:
    folder, outside = tmp_path / "run", tmp_path / "outside.txt"
    folder.mkdir()
    outside.write_text("old")
    (folder / "out").symlink_to(outside)
    (folder / "real").write_text("old")
    (folder / "in").symlink_to("real")
    write_together(folder, {"out": b"1", "in": b"2", "plain": b"3"})
    assert outside.read_text() == "1"
    assert (folder / "real").read_text() == "2"
    assert (folder / "out").is_symlink()
    assert (folder / "in").is_symlink()
    assert sorted(os.listdir(folder)) == ["in", "out", "plain", "real"]
    write_atomically(outside, b"again")
    assert (folder / "out").read_bytes() == b"again"

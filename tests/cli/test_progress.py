"""The table that is shown while a fit runs."""

import io
import os
import sys
import threading
from types import SimpleNamespace

from cardboost.cli import progress
from cardboost.cli.progress import HEADER, Progress
from cardboost.problem.trace import Record


class Terminal(io.StringIO):
    def isatty(self):
        return True


def screen(text):
    """What a terminal shows: a row is written over from its beginning."""
    rows = [""]
    for line in text.replace("\x1b[K", "").split("\n"):
        rows[-1] = line.split("\r")[-1]
        rows.append("")
    return [row for row in rows if row]


def record(columns, objective, bound=-float("inf")):
    return Record(columns, columns, objective, bound, 0.1, 0.0)


def on_terminal(monkeypatch):
    """In the test itself: pytest puts its own stderr in place after the fixtures."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def fit_on(total=3):
    shown = Progress(total)
    shown.begin("binning")
    shown.update(record(0, 1.0))
    for k in range(1, total + 1):
        shown.update(record(k, 1.0 - 0.1 * k, 0.5))
    for nodes in (10, 20):
        shown.prove(nodes, 0.7, 0.75)
    shown.end("pool", 2, 0.75, 0.75, 1.0)
    shown.close()


def test_a_terminal_shows_a_row_for_every_stage(monkeypatch):
    terminal = on_terminal(monkeypatch)
    fit_on()
    text = terminal.getvalue()
    head, candidates, choosing, proving, model = screen(text)
    assert head == HEADER
    assert candidates.split()[:7] == ["finding", "candidates", "3", "0.7", "0.5", "60.0", "%"]
    assert choosing.split()[:3] == ["choosing", "terms", "0.5"]
    assert proving.split()[:7] == ["proving", "(20", "nodes)", "0.75", "0.7", "83.3", "%"]
    assert model.split()[:7] == ["model,", "candidates", "2", "0.75", "0.75", "100.0", "%"]
    assert text.count("\x1b") == text.count("\x1b[K")  # nothing is cleared but the end of a row
    assert text.endswith("\n\n")


def test_a_narrow_terminal_never_wraps(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((40, 20)))
    fit_on()
    assert max(map(len, screen(terminal.getvalue()))) <= 39


def test_the_clock_runs_while_a_stage_says_nothing(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_LIVE_SECONDS", 0.01)
    shown = Progress(3)
    shown.begin("binning")
    patience = threading.Event()
    for _ in range(60_000):
        if terminal.getvalue().count("binning") >= 5:
            break
        patience.wait(0.01)
    shown.close()
    assert terminal.getvalue().count("binning") >= 5


def test_plain_lines_are_rare(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    shown = Progress(10_000)
    for k in range(5000):
        shown.update(record(k, 1.0))
    shown.end("pool", 2, 0.75, 0.75, 1.0)
    shown.close()
    assert capsys.readouterr().err == ""  # a fit this short needs none
    shown = Progress(10**9)
    for k in range(1, 1001):
        now[0] += 3.5 * progress._PLAIN_SECONDS / 1000
        shown.update(record(k, 1.0))
    shown.end("pool", 2, 0.75, 0.75, 1.0)
    shown.close()
    err = capsys.readouterr().err
    assert "\r" not in err
    assert "\x1b" not in err
    lines = err.splitlines()
    assert lines[0] == HEADER
    assert len(lines[1:-1]) == 3
    assert lines[-1].startswith("model, candidates")


def test_a_screen_that_is_gone_is_no_reason_to_stop(monkeypatch):
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(terminal, "write", lambda text: (_ for _ in ()).throw(OSError(5, "gone")))
    fit_on()


def test_quiet_says_nothing(monkeypatch):
    terminal = on_terminal(monkeypatch)
    shown = Progress(3, quiet=True)
    shown.update(record(1, 1.0))
    shown.close()
    assert terminal.getvalue() == ""

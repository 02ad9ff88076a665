"""The table that is shown while a fit runs."""

import io
import re
import sys
import threading
from types import SimpleNamespace

import pytest

from cardboost.cli import progress
from cardboost.cli.progress import HEADER, Interrupt, Progress
from cardboost.problem.trace import Record


class Terminal(io.StringIO):
    def isatty(self):
        return True


def screen(text):
    """The rows that a terminal shows: colours are left out, the cursor moves up, lines are erased."""
    rows, at = [""], 0
    for move, word in re.findall(r"(\n|\r|\x1b\[\d*[A-Za-z])|([^\n\r\x1b]+)", text):
        if move == "\n":
            at += 1
            rows += [""] * (at + 1 - len(rows))
        elif move == "\x1b[1A":
            at -= 1
        elif move == "\x1b[2K":
            rows[at] = ""
        elif word:
            rows[at] += word
    return [row.rstrip() for row in rows if row.strip()]


def record(columns, objective, bound=-float("inf")):
    return Record(columns, columns, objective, bound, 0.1, 0.0)


@pytest.fixture
def settings(monkeypatch):
    """Of a terminal; nothing comes from where the tests run."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    return monkeypatch


def on_terminal(monkeypatch):
    """In the test itself: pytest puts its own stderr in place after the fixtures."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def fit_on(total=3, **more):
    shown = Progress(total, **more)
    shown.begin("binning")
    shown.update(record(0, 1.0))
    for k in range(1, total + 1):
        shown.update(record(k, 1.0 - 0.1 * k, 0.5))
    for nodes in (10, 20):
        shown.prove(nodes, 0.7, 0.75)
    shown.end("pool", 2, 0.75, 0.75, 1.0)
    shown.close()


def test_a_terminal_shows_a_row_for_every_stage(settings):
    terminal = on_terminal(settings)
    fit_on()
    text = terminal.getvalue()
    head, candidates, choosing, proving, model = screen(text)
    assert head.split() == HEADER.split()
    assert candidates.split()[:7] == ["finding", "candidates", "3", "0.7", "0.5", "60.0", "%"]
    assert choosing.split()[:3] == ["choosing", "terms", "0.5"]
    assert proving.split()[:7] == ["proving", "(20", "nodes)", "0.75", "0.7", "83.3", "%"]
    assert model.split()[:7] == ["model,", "candidates", "2", "0.75", "0.75", "100.0", "%"]
    assert "\x1b[?25l" not in text  # the cursor is never hidden: who is killed cannot show it again
    assert text.endswith("\n\n")


def test_what_remains_is_shown_and_goes_away(settings):
    terminal = on_terminal(settings)
    shown = Progress(40, seconds=1e6)
    shown.begin("binning")
    shown.update(record(10, 0.9, 0.5))
    shown._screen.refresh()
    assert "10 of 40 candidates, at most 1000000 s remain" in screen(terminal.getvalue())[-1]
    shown.close()
    assert screen(terminal.getvalue())[-1].startswith("finding candidates")
    shown = Progress(0)
    shown.begin("folds: 2 of 4 done")
    bar = shown._remaining(progress.Line("folds: 2 of 4 done")).columns[0]._cells[0]
    assert (bar.completed, bar.total) == (0.5, 1.0)
    assert shown._remaining(progress.Line("proving (20 nodes)")) is None
    shown.close()


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_never_wraps(settings, width):
    terminal = on_terminal(settings)
    settings.setenv("COLUMNS", str(width))
    fit_on(seconds=10.0)
    assert max(map(len, screen(terminal.getvalue()))) <= width


def test_no_colours_where_they_are_not_wanted(settings):
    settings.setenv("NO_COLOR", "1")
    terminal = on_terminal(settings)
    fit_on(seconds=10.0)
    colours = re.findall(r"\x1b\[([\d;]*)m", terminal.getvalue())
    assert not {code for code in colours if re.search(r"\b[34]\d\b", code)}


def test_the_clock_runs_while_a_stage_says_nothing(settings):
    terminal = on_terminal(settings)
    settings.setattr(progress, "_LIVE_SECONDS", 0.01)
    shown = Progress(3)
    shown.begin("binning")
    patience = threading.Event()
    for _ in range(60_000):
        if terminal.getvalue().count("binning") >= 5:
            break
        patience.wait(0.01)
    shown.close()
    assert terminal.getvalue().count("binning") >= 5


def test_an_interrupt_is_part_of_the_table(settings, capfd):
    terminal = on_terminal(settings)
    settings.setattr(progress.signal, "signal", lambda number, handler: None)
    interrupt = Interrupt()
    shown = Progress(3, interrupt=interrupt)
    shown.begin("binning")
    interrupt._first(2, None)
    shown._screen.refresh()
    assert screen(terminal.getvalue())[-1] == progress.INTERRUPTED
    shown.close()
    assert capfd.readouterr().err == ""
    assert not interrupt.shown


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


def test_a_plain_line_is_never_repeated(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(progress, "_PLAIN_SECONDS", 2.0)
    shown = Progress(3)
    for k in range(1000):
        now[0] += 1.0
        shown.prove(7 if k < 500 else 8, 0.7, 0.75)
    shown.close()
    stages = [line.split(" nodes")[0] for line in capsys.readouterr().err.splitlines()[1:]]
    assert stages == ["proving (7", "proving (8"]


def test_a_screen_that_is_gone_is_no_reason_to_stop(settings):
    terminal = on_terminal(settings)
    settings.setattr(terminal, "write", lambda text: (_ for _ in ()).throw(BrokenPipeError(32, "gone")))
    fit_on()


def test_quiet_says_nothing(settings):
    terminal = on_terminal(settings)
    shown = Progress(3, quiet=True)
    shown.update(record(1, 1.0))
    shown.close()
    assert terminal.getvalue() == ""

"""What is shown while a fit runs: a line that changes on a terminal, plain lines now and then elsewhere."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cardboost.boosting.column_generation import TraceRecord

_PLAIN_SECONDS = 2.0
_LIVE_SECONDS = 0.1


class Progress:
    """Shows rounds on stderr. ``total``: how many columns there will be at most."""

    def __init__(self, total: int, quiet: bool = False) -> None:
        self.total = total
        self.quiet = quiet
        self.live = not quiet and sys.stderr.isatty()
        self._next = 0.0 if self.live else time.perf_counter() + _PLAIN_SECONDS
        self._width = 0
        self._bar: Any = None
        if self.live and importlib.util.find_spec("rich") is not None:
            self._bar = _rich_bar(total)

    def say(self, text: str) -> None:
        """A stage that has no rounds; on a terminal the next line takes its place."""
        if self.live and self._bar is None:
            print("\r" + text.ljust(self._width), end="", file=sys.stderr, flush=True)
            self._width = len(text)
        elif self.live:
            self._bar.update(0, description=text, refresh=True)

    def update(self, record: TraceRecord) -> None:
        last = record.n_columns >= self.total
        if not self._due(last and self.live):
            return
        bound = f"bound {record.lower_bound:.6f}" if math.isfinite(record.lower_bound) else ""
        text = f"{record.n_columns:4d} columns   objective {record.objective:.6f}   {bound}"
        if not self.live:
            print(f"{text:52} {record.seconds:7.1f} s", file=sys.stderr, flush=True)
        elif last:
            self.say("choosing terms, proving the bound ...")
        elif self._bar is not None:
            self._bar.update(0, completed=record.n_columns, description=text, refresh=True)
        else:
            self.say(f"{text:52} {record.seconds:7.1f} s")

    def prove(self, text: str, seconds: float) -> None:
        """How far the exact search is."""
        if not self._due():
            return
        line = text if self._bar is not None else f"{text:52} {seconds:7.1f} s"
        if self.live:
            self.say(line)
        else:
            print(line, file=sys.stderr, flush=True)

    def _due(self, anyway: bool = False) -> bool:
        """Whether it is time for another line; then the next one has to wait."""
        now = time.perf_counter()
        if self.quiet or (now < self._next and not anyway):
            return False
        self._next = now + (_LIVE_SECONDS if self.live else _PLAIN_SECONDS)
        return True

    def close(self) -> None:
        """Leave a clean line behind."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        elif self.live:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
        self.live = False


def _rich_bar(total: int) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    text, elapsed = TextColumn("{task.description}"), TimeElapsedColumn()
    bars = Bars(
        BarColumn(16), text, elapsed, console=Console(stderr=True), transient=True, auto_refresh=False
    )
    bars.add_task("binning ...", total=total)
    bars.start()
    return bars


class Interrupt:
    """Ctrl-C as a wish: the first asks the fit to finish early, the second aborts."""

    def __init__(self) -> None:
        self.asked = False

    def _first(self, number: int, frame: Any) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # not print: a handler may run in the middle of another one's write
        os.write(2, b"\nInterrupted: finishing the best model so far; Ctrl-C again aborts.\n")

    @contextlib.contextmanager
    def listening(self) -> Iterator[Interrupt]:
        """Handlers can only be set in the main thread; an ignored Ctrl-C stays ignored."""
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
            yield self
            return
        signal.signal(signal.SIGINT, self._first)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, before)

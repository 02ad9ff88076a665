"""What is shown while a fit runs: a table with a running clock on a terminal, plain lines elsewhere.

One row for each stage of the fit. On a terminal the row of the present stage is written over in place and
stays when the next stage begins; a thread of its own keeps the clock going while a stage says nothing.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cardboost.problem.trace import Record

_PLAIN_SECONDS = 2.0
_LIVE_SECONDS = 0.1
HEADER = f"{'stage':<22}{'size':>6}{'objective':>13}{'bound':>13}{'guarantee':>11}{'seconds':>10}"


@dataclass(frozen=True)
class Line:
    """A row of the table; what is not known yet is left empty."""

    stage: str
    size: int | None = None
    objective: float | None = None
    bound: float | None = None
    guarantee: float | None = None

    def text(self, seconds: float) -> str:
        size = "" if self.size is None else str(self.size)
        share = "" if self.guarantee is None else f"{math.floor(1000 * self.guarantee + 1e-6) / 10:.1f} %"
        return (
            f"{self.stage:<22}{size:>6}{_number(self.objective):>13}{_number(self.bound):>13}{share:>11}"
            f"{seconds:>10.1f}"
        )


def _number(value: float | None) -> str:
    return f"{value:.6g}" if value is not None and math.isfinite(value) else ""


class Progress:
    """Shows the stages of a fit on stderr. ``total``: how many candidates there will be at most.

    ``selects``: whether a choice among the candidates follows.
    """

    def __init__(self, total: int, quiet: bool = False, selects: bool = True) -> None:
        self.total, self.selects = total, selects
        self.quiet = quiet
        self.live = not quiet and sys.stderr.isatty()
        self._started = time.perf_counter()
        self._next = 0.0 if self.live else self._started + _PLAIN_SECONDS
        self._lock = threading.Lock()
        self._line: Line | None = None
        self._headed = False
        self._null = math.nan
        self._closed = threading.Event()
        self._ticker: threading.Thread | None = None
        if not quiet:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()

    def begin(self, stage: str) -> None:
        """A stage that has nothing to report yet."""
        self._show(Line(stage))

    def update(self, record: Record) -> None:
        """A round in which candidates were found."""
        if math.isnan(self._null):
            self._null = record.objective
        share = self._guarantee(record.objective, record.lower_bound)
        line = Line("finding candidates", record.n_columns, record.objective, record.lower_bound, share)
        self._show(line)
        if self.selects and record.n_columns >= self.total:
            self.choose(record)

    def choose(self, record: Record) -> None:
        """Candidates are found; what bounds all weights of theirs bounds any choice too."""
        self._show(Line("choosing terms", bound=record.lower_bound))

    def prove(self, nodes: int, bound: float, objective: float, null: float | None = None) -> None:
        """How far the exact search is. ``null``: the objective of the empty model, where no round told it."""
        self._null = self._null if null is None else null
        stage = f"proving ({nodes:,} nodes)"
        self._show(Line(stage, None, objective, bound, self._guarantee(objective, bound)))

    def proved(self, stage: str, size: int, objective: float, bound: float, guarantee: float) -> None:
        """A model of several, with its bound."""
        self._show(Line(stage, size, objective, bound, guarantee))

    def end(self, scope: str, size: int, objective: float, bound: float, guarantee: float) -> None:
        """The finished model and a bound of it. In plain lines only if there were some before."""
        stage = "model, all stumps" if scope == "dictionary" else "model, candidates"
        self._show(Line(stage, size, objective, bound, guarantee), self.live or self._headed)

    def _guarantee(self, objective: float, bound: float) -> float | None:
        """The share of the improvement over the empty model that is reached for certain."""
        possible = self._null - bound
        if not possible > 0:
            return None
        return min(1.0, max(0.0, (self._null - objective) / possible))

    def _show(self, line: Line, last: bool = False) -> None:
        if self.quiet:
            return
        with self._lock:
            stage, before = line.stage.split(" (")[0], self._line
            if self.live and before is not None and before.stage.split(" (")[0] != stage:
                if before.bound is not None:
                    self._write(before, end="\n")  # what it came to stays
                self._next = 0.0
            self._line = line
            self._draw(last)

    def _draw(self, anyway: bool = False) -> None:
        """Write the row if it is time for it; then the next one has to wait."""
        now = time.perf_counter()
        if self._line is None or (now < self._next and not anyway):
            return
        self._next = now + (_LIVE_SECONDS if self.live else _PLAIN_SECONDS)
        self._write(self._line, end="" if self.live else "\n")

    def _write(self, line: Line, end: str) -> None:
        text = line.text(time.perf_counter() - self._started)
        head = "" if self._headed else HEADER + "\n"
        self._headed = True
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            text = f"{head[:width]}{chr(10) if len(head) > width else ''}\r{text[:width]}\x1b[K{end}"
        else:
            text = head + text + end
        with contextlib.suppress(OSError, ValueError):  # a screen that is gone is no reason to lose a model
            sys.stderr.write(text)
            sys.stderr.flush()

    def _tick(self) -> None:
        """The clock, while nothing else is said."""
        while not self._closed.wait(_LIVE_SECONDS if self.live else min(0.25, _PLAIN_SECONDS or 0.25)):
            with self._lock:
                self._draw()

    def close(self) -> None:
        """Leave a clean line behind."""
        self._closed.set()
        if self._ticker is not None:
            self._ticker.join()
            self._ticker = None
        if self.live and self._headed:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write("\n\n")
                sys.stderr.flush()
        self.live, self._headed = False, False


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

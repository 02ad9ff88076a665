"""What is shown while a fit runs: a table with a clock on a terminal, a plain line now and then elsewhere.

One row for each stage of the fit, and below them what remains of the time or of the work. On a terminal rich
writes them over in place from a thread of its own, so that the clock goes on while a stage says nothing.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cardboost.problem.trace import Record

_PLAIN_SECONDS = 2.0
_LIVE_SECONDS = 0.1
#: of a long run: the next plain line comes when this share of the time so far has passed again
_PLAIN_SHARE = 0.1
#: with the least width of each on a terminal, so that columns do not move
COLUMNS = {"stage": 22, "size": 4, "objective": 10, "bound": 10, "guarantee": 9, "seconds": 7}


@dataclass(frozen=True)
class Line:
    """A row of the table; what is not known yet is left empty."""

    stage: str
    size: int | None = None
    objective: float | None = None
    bound: float | None = None
    guarantee: float | None = None

    @property
    def kind(self) -> str:
        """The stage without how far it is."""
        return re.split(r" \(|: ", self.stage)[0]

    def cells(self, seconds: float) -> tuple[str, ...]:
        size = "" if self.size is None else str(self.size)
        share = "" if self.guarantee is None else f"{math.floor(1000 * self.guarantee + 1e-6) / 10:.1f} %"
        return self.stage, size, _number(self.objective), _number(self.bound), share, f"{seconds:.1f}"


def _number(value: float | None) -> str:
    return f"{value:.6g}" if value is not None and math.isfinite(value) else ""


def plain(cells: tuple[str, ...]) -> str:
    """A row of text."""
    stage, size, objective, bound, share, seconds = cells
    return f"{stage:<22}{size:>6}{objective:>13}{bound:>13}{share:>11}{seconds:>10}"


HEADER = plain(tuple(COLUMNS))


class Progress:
    """Shows the stages of a fit on stderr.

    Parameters
    ----------
    total : int
        How many candidates there will be at most.
    quiet : bool
        Show nothing.
    selects : bool
        Whether a choice among the candidates follows.
    seconds : float or None
        How much time is left.
    interrupt : Interrupt or None
        What is said of it is shown with the table.
    """

    def __init__(
        self,
        total: int,
        quiet: bool = False,
        selects: bool = True,
        seconds: float | None = None,
        interrupt: Interrupt | None = None,
    ) -> None:
        self.total, self.selects, self.quiet, self.seconds = total, selects, quiet, seconds
        self.live = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.interrupt = interrupt
        self._started = time.perf_counter()
        self._lock = threading.Lock()
        self._line: Line | None = None
        self._done: list[tuple[str, ...]] = []  # rows of stages that are over
        self._null = math.nan
        self._closed = threading.Event()
        self._screen: Any = None
        self._written: Line | None = None  # the last plain line
        self._next = self._started + _PLAIN_SECONDS
        self._ticker: threading.Thread | None = None
        if self.live:
            if interrupt is not None:
                interrupt.shown = True
        elif not quiet:
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
        self._show(Line(stage, size, objective, bound, guarantee), last=True)

    def _guarantee(self, objective: float, bound: float) -> float | None:
        """The share of the improvement over the empty model that is reached for certain."""
        possible = self._null - bound
        if not possible > 0:
            return None
        return min(1.0, max(0.0, (self._null - objective) / possible))

    @property
    def _elapsed(self) -> float:
        return time.perf_counter() - self._started

    def _show(self, line: Line, last: bool = False) -> None:
        if self.quiet:
            return
        with self._lock:
            before, self._line = self._line, line
            if before is not None and before.kind != line.kind and before.bound is not None:
                self._done.append(before.cells(self._elapsed))  # what it came to stays
            if not self.live:
                self._draw(last and self._written is not None)
        if self.live and self._screen is None:
            self._screen = _screen(self._render)

    def close(self) -> None:
        """Leave the rows behind, and a clean line."""
        self._closed.set()
        if self._ticker is not None:
            self._ticker.join()
        if self._screen is not None:
            self._line, line = None, self._line
            self._done += [] if line is None else [line.cells(self._elapsed)]
            self._screen.stop()
            self._screen.console.line()
        if self.interrupt is not None:
            self.interrupt.shown = False
        self._ticker = self._screen = None
        self.quiet = True

    # ------------------------------------------------------------------------------------ plain lines

    def _draw(self, anyway: bool = False) -> None:
        """Write the row if it is news and time for it; then the next one has to wait."""
        now = time.perf_counter()
        if self._line is None or self._line == self._written or (now < self._next and not anyway):
            return
        head = "" if self._written is not None else HEADER + "\n"
        self._next = now + max(_PLAIN_SECONDS, _PLAIN_SHARE * (now - self._started))
        self._written = self._line
        with contextlib.suppress(OSError, ValueError):  # a screen that is gone is no reason to lose a model
            sys.stderr.write(f"{head}{plain(self._line.cells(now - self._started))}\n")
            sys.stderr.flush()

    def _tick(self) -> None:
        """A line for a stage that says nothing more."""
        while not self._closed.wait(min(0.25, _PLAIN_SECONDS or 0.25)):
            with self._lock:
                self._draw()

    # ------------------------------------------------------------------------------------ on a terminal

    def _render(self, width_of_screen: int) -> RenderableType:
        """The table, and what remains below it."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        steady = width_of_screen >= sum(COLUMNS.values()) + 2 * len(COLUMNS)
        for name, width in COLUMNS.items():
            side: Any = "left" if name == "stage" else "right"
            table.add_column(name, justify=side, min_width=width if steady else None, no_wrap=True)
        with self._lock:
            line, rows = self._line, [*self._done]
        for cells in rows:
            table.add_row(*map(Text, cells))
        if line is None:
            return table
        table.add_row(*map(Text, line.cells(self._elapsed)), style="cyan")
        parts: list[RenderableType] = [table]
        if self.interrupt is not None and self.interrupt.asked:
            parts.append(Text(INTERRUPTED, style="yellow"))
        elif (left := self._remaining(line)) is not None:
            parts.append(left)
        return Group(*parts)

    def _remaining(self, line: Line) -> RenderableType | None:
        """A bar of the time or of the work, with words; None where neither has an end that is known."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        words, done = [], 0.0
        counted = re.search(r"(\d+) of (\d+)", line.stage)
        if counted is not None:
            done = int(counted[1]) / int(counted[2])
        if line.kind == "finding candidates" and self.total:
            words, done = [f"{line.size} of {self.total} candidates"], (line.size or 0) / self.total
        if self.seconds is not None:
            left = max(0.0, self.seconds - self._elapsed)
            words, done = [*words, f"at most {left:.0f} s remain"], 1.0 - left / max(self.seconds, 1e-9)
        if not words and counted is None:
            return None
        row = Table.grid(padding=(0, 2, 0, 0))
        bar = ProgressBar(1.0, done, width=30, complete_style="cyan", finished_style="cyan")
        row.add_row(bar, ", ".join(words))
        return row


class _Stderr:
    """What rich writes to: a screen that is gone is no reason to lose a model."""

    encoding = property(lambda self: sys.stderr.encoding)

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()

    def isatty(self) -> bool:
        return True


def _screen(render: Callable[[int], RenderableType]) -> Any:
    """What rich writes over again and again: ``render`` for the width of the screen."""
    from rich.console import Console
    from rich.live import Live

    class Screen(Console):
        def show_cursor(self, show: bool = True) -> bool:
            return False  # a hidden cursor would stay hidden after kill -9

    console = Screen(file=_Stderr(), highlight=False, markup=False)  # type: ignore[arg-type]
    live = Live(
        get_renderable=lambda: render(console.width),
        console=console,
        refresh_per_second=1 / _LIVE_SECONDS,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    live.start(refresh=True)
    return live


INTERRUPTED = "Interrupted: finishing the best model so far; Ctrl-C again aborts."


class Interrupt:
    """Ctrl-C as a wish: the first asks the fit to finish early, the second aborts."""

    def __init__(self) -> None:
        self.asked = False
        self.shown = False  # by a table on the screen

    def _first(self, number: int, frame: Any) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not self.shown:  # not print: a handler may run in the middle of another one's write
            os.write(2, f"\n{INTERRUPTED}\n".encode())

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

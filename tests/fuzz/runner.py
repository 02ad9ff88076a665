"""Many seeds in worker processes. A worker that is silent for too long is ended, its seed reported as a hang.

Workers are spawned, not forked: after a fork the kernels would use one thread only.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from fuzz.draw import Case, case
from fuzz.invariants import Failure, check

WATCHDOG = 60.0  # seconds of the processor that a case may take
PATIENCE = 5.0  # times as many seconds of the clock: other programs may be running, and a deadlock takes none
STARTING = 300.0  # seconds that a new worker has on top of that, for its imports

Check = Callable[[Case], list[Failure]]


@dataclass(eq=False)
class Report:
    """What a run has seen so far: of every kind of failure the first, and how often it was met."""

    cases: Counter[str] = field(default_factory=Counter)
    first: dict[str, Failure] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)
    shared: dict[str, tuple[str, ...]] = field(default_factory=dict)  # tags of every failure of a kind
    started: float = field(default_factory=time.monotonic)

    def add(self, target: str, failures: list[Failure]) -> list[Failure]:
        """The failures of a kind that is new."""
        self.cases[target] += 1
        new = []
        for failure in failures:
            self.times[failure.kind] += 1
            known = self.shared.get(failure.kind, failure.tags)
            self.shared[failure.kind] = tuple(tag for tag in known if tag in failure.tags)
            if failure.kind not in self.first:
                self.first[failure.kind] = failure
                new.append(failure)
        return new

    @property
    def total(self) -> int:
        return self.cases.total()

    def line(self) -> str:
        minutes = (time.monotonic() - self.started) / 60.0
        return (
            f"{self.total} cases, {self.times.total()} failures of {len(self.first)} kinds, "
            f"{self.total / max(minutes, 1e-9):.0f} cases a minute"
        )

    def summary(self) -> Iterator[str]:
        yield self.line()
        yield "  " + ", ".join(f"{name} {count}" for name, count in self.cases.most_common())
        for kind, failure in sorted(self.first.items(), key=lambda own: -self.times[own[0]]):
            yield f"{self.times[kind]:5d} x  {kind}"
            tags = f"   # always: {', '.join(self.shared[kind])}" if self.shared[kind] else ""
            yield f"         {repeat(failure.seed)}{tags}"


def repeat(seed: int) -> str:
    """The command that runs one seed again."""
    return f"make fuzz SEED={seed} CASES=1"


def run(
    seed: int,
    seconds: float,
    cases: int | None = None,
    workers: int = 2,
    watchdog: float = WATCHDOG,
    checking: Check = check,
    say: Callable[[str], None] = lambda line: None,
    method: str = "spawn",
) -> Report:
    """Check the cases of seed, seed + 1, … for so many seconds, or so many of them.

    ``method``: how ``multiprocessing`` starts the workers.
    """
    report, team = Report(), [_Worker(checking, method) for _ in range(workers)]
    end, following, told = time.monotonic() + seconds, seed, time.monotonic()
    last = seed + cases if cases is not None else sys.maxsize
    try:
        while True:
            for worker in team:
                if worker.seed is None and following < last and time.monotonic() < end:
                    worker.begin(following)
                    following += 1
            busy = [worker for worker in team if worker.seed is not None]
            if not busy:
                return report
            wait([worker.pipe for worker in busy], timeout=0.5)
            for worker in busy:
                for target, failures in worker.finished(watchdog):
                    for failure in report.add(target, failures):
                        say(f"{failure.kind}\n    {failure.message}\n    {repeat(failure.seed)}")
            if time.monotonic() - told > 10.0:
                told = time.monotonic()
                say(report.line())
    finally:
        for worker in team:
            worker.close()


class _Worker:
    """A process that checks one seed at a time, and is replaced when it dies or hangs."""

    def __init__(self, checking: Check, method: str) -> None:
        self.checking, self.context = checking, multiprocessing.get_context(method)
        self.seed: int | None = None
        self.process: Any = None

    def begin(self, seed: int) -> None:
        self.seed, self.since = seed, time.monotonic()
        if self.process is None or not self.process.is_alive():
            self._start()
            self.since += STARTING
        self.spent = _processor_seconds(self.process.pid)
        self.pipe.send(seed)

    def _start(self) -> None:
        self.pipe, end = self.context.Pipe()
        self.process = self.context.Process(target=_serve, args=(end, self.checking), daemon=True)
        self.process.start()
        end.close()

    def finished(self, watchdog: float) -> Iterator[tuple[str, list[Failure]]]:
        """What the worker says of its seed, if it has ended."""
        seed = self.seed
        assert seed is not None
        if self.pipe.poll():
            try:
                answer = self.pipe.recv()
            except EOFError:
                self.process.join()
                answer = _lost(seed, "crash", f"the process died with exit code {self.process.exitcode}.")
        elif self._lasts(watchdog):
            self.process.kill()
            self.process.join()
            answer = _lost(seed, "hang", f"took more than {watchdog:g} seconds.")
        else:
            return
        self.seed = None
        yield answer

    def _lasts(self, watchdog: float) -> bool:
        """Whether the case takes too long."""
        clock = time.monotonic() - self.since
        if clock <= watchdog or clock > PATIENCE * watchdog:
            return clock > watchdog
        return _processor_seconds(self.process.pid) - self.spent > watchdog

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()


def _processor_seconds(pid: int) -> float:
    """Seconds of the processor that a process has used; of the clock where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _lost(seed: int, law: str, message: str) -> tuple[str, list[Failure]]:
    own = case(seed)
    return own.target, [Failure(seed, own.target, law, message, own.tags)]


def _serve(pipe: Connection, checking: Check) -> None:
    """The life of a worker."""
    import threadpoolctl

    with open(os.devnull, "w") as silence, threadpoolctl.threadpool_limits(1, user_api="blas"):
        sys.stdout = silence
        while True:
            try:
                seed = pipe.recv()
            except EOFError:
                return
            own = case(seed)
            pipe.send((own.target, checking(own)))

"""What the benchmarks share: a process per contender, best of several, peak memory, goals, tables, JSON.

Every contender runs in a process of its own: two OpenMP runtimes in one process spin against each other,
and memory that one contender leaves behind would be counted as another's.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

CHILD_FLAG = "--child"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


class ContenderFailed(RuntimeError):
    """A contender's process ended without a result; the message is a sentence for the reader."""


@dataclass(frozen=True)
class Goal:
    """A measured number and the limit that it is held to."""

    what: str
    value: float
    limit: float
    at_most: bool = True
    strict: bool = False  # equality is not enough

    @property
    def met(self) -> bool:
        if self.strict and self.value == self.limit:
            return False
        return self.value <= self.limit if self.at_most else self.value >= self.limit

    def sentence(self) -> str:
        if self.strict:
            relation = "below" if self.at_most else "above"
        else:
            relation = "at most" if self.at_most else "at least"
        verdict = "met" if self.met else "MISSED"
        return f"{verdict:<6}  {self.what}: {self.value:.4g} (goal: {relation} {self.limit:.4g})"


def run_in_own_process(script: str, task: dict, threads: int, python: str = sys.executable) -> dict:
    """Run `task` by `script` in a new process with `threads` threads, and return the result that it wrote.

    `python` may be that of another environment, for a peer that cannot be installed beside the others.
    """
    with tempfile.TemporaryDirectory() as folder:
        result_file = Path(folder) / "result.json"
        environment = dict(os.environ) | {name: str(threads) for name in THREAD_VARIABLES}
        command = [python, script, CHILD_FLAG, json.dumps(task), str(result_file)]
        finished = subprocess.run(command, env=environment, capture_output=True, text=True)
        if finished.returncode != 0 or not result_file.exists():
            lines = finished.stderr.strip().splitlines() or [f"exit code {finished.returncode}, no message"]
            raise ContenderFailed(f"{task.get('contender', 'the task')} failed: {lines[-1]}")
        return json.loads(result_file.read_text())


def serve_child(run_task) -> bool:
    """In a contender's process: run the task, write its result, and say that this was a child."""
    if len(sys.argv) != 4 or sys.argv[1] != CHILD_FLAG:
        return False
    Path(sys.argv[3]).write_text(json.dumps(run_task(json.loads(sys.argv[2]))))
    return True


def run_benchmark(main, run_task) -> None:
    """What a benchmark's file does: a contender's process runs its task, any other one the benchmark."""
    try:
        if not serve_child(run_task):
            main()
    except ContenderFailed as failure:
        sys.exit(str(failure))


def import_failure(module: str) -> str | None:
    """Why a module cannot be imported; None if it can."""
    tried = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True)
    return None if tried.returncode == 0 else (tried.stderr.strip().splitlines() or ["no reason given"])[-1]


def require(modules: dict[str, str]) -> None:
    """End with one sentence when a module cannot be imported; `modules` maps each to what to do about it."""
    for module, remedy in modules.items():
        reason = import_failure(module)
        if reason is not None:
            sys.exit(f"{module} cannot be imported ({reason}): {remedy}")


def timed(run) -> tuple[float, object]:
    start = time.perf_counter()
    outcome = run()
    return time.perf_counter() - start, outcome


def memory_status(field: str) -> int | None:
    """`VmRSS` or `VmHWM` of this process in bytes; None where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), None)


def forget_peak_memory() -> None:
    """Bring VmHWM down to VmRSS. Where that is refused, an old peak can only make the figure larger."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def machine(packages: tuple[str, ...]) -> dict:
    """What a reader needs to judge the figures: processor, versions, and whether others used the machine."""
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    try:
        fields = [line.split(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
        processor = next(field[1].strip() for field in fields if field[0].strip() == "model name")
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "load_at_start": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": versions,
    }


def print_machine(facts: dict) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    print(f"{facts['processor']}, {facts['cores']} cores; Python {facts['python']}; {versions}")
    load = facts["load_at_start"]
    if load is not None and load > 0.5:
        print(f"Note: the load was {load} at the start; times on a busy machine are not to be trusted.")


def print_table(header: list[str], rows: list[list[str]]) -> None:
    """A plain table: first column to the left, numbers to the right."""
    widths = [max(len(line[k]) for line in [header, *rows]) for k in range(len(header))]
    for line in [header, ["-" * width for width in widths], *rows]:
        cells = [line[0].ljust(widths[0])] + [
            cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True)
        ]
        print("  ".join(cells).rstrip())


def report_goals(goals: list[Goal], title: str = "Goals") -> None:
    """Whether each is met, under a title; nothing where there are none."""
    if goals:
        print(f"\n{title}")
    for goal in goals:
        print("  " + goal.sentence())


def write_json(path: str | None, content: dict, goals: list[Goal]) -> None:
    if path is not None:
        content = content | {"goals": [asdict(goal) | {"met": goal.met} for goal in goals]}
        Path(path).write_text(json.dumps(content, indent=1) + "\n")

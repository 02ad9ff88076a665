"""Jobs that can be stopped at any moment and resumed, in one process, in several, or on Dask.

Every job is one experiment of TotalQBoost on one split of one set. Its result is a file of its own, written
at once or not at all, with a key that names all it depends on: settings, data, and the results it starts
from. A file that is damaged, or has another key, counts as missing. Results are plain data and pass through
their text, so that it makes no difference where a job has run, or when.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cardboost.datasets import Dataset
from cardboost.model.atomic import clear_abandoned, write_atomically
from cardboost.reproduce.totalqboost import EXPERIMENTS, HOT_START, NEEDS, Result, Settings, run_experiment

FORMAT = 1  # of the files and of the experiments: a change makes earlier files worthless
#: how long jobs take, roughly; jobs that others wait for come first
_LENGTH = {"A": 1.0, "B": 20.0, "C": 4.0, "D": 3.0, "E": 6.0, "F": 2.0}


@dataclass(frozen=True)
class Job:
    """One experiment on one split of a set."""

    dataset: str
    split: int
    experiment: str

    @property
    def file(self) -> str:
        return f"{self.dataset}-{self.split}-{self.experiment}.json"

    @property
    def needs(self) -> tuple[Job, ...]:
        return tuple(Job(self.dataset, self.split, other) for other in NEEDS[self.experiment])


Workers = tuple[Executor, int]  # and how many jobs it runs at once
#: told of every finished job: the job, how many are finished, of how many, and its processor seconds; None
#: where the result was stored
Report = Callable[[Job, int, int, float | None], object]


def jobs_of(names: Sequence[str], splits: int) -> list[Job]:
    return [Job(name, k, experiment) for name in names for k in range(splits) for experiment in EXPERIMENTS]


class ResultStore:
    """Results as files of a folder. ``version``: of the program, as another one may have other results."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder, self.version = folder, version
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, job: Job, key: str) -> Result | None:
        """The stored result; None where there is no file, or one with another key."""
        try:
            content = json.loads((self.folder / job.file).read_bytes())
            text = _text(content["result"])
            intact = content["key"] == key and content["digest"] == _digest(text)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return json.loads(text) if intact else None

    def put(self, job: Job, key: str, result: Result, seconds: float) -> Result:
        """Write the file and return what :meth:`get` will."""
        text = _text(result)
        content = {"key": key, "digest": _digest(text), "seconds": round(seconds, 3), "result": result}
        write_atomically(self.folder / job.file, (_text(content) + "\n").encode())
        return json.loads(text)


def _text(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _data_digest(data: Dataset) -> str:
    digest = hashlib.sha256(f"{data.name} {data.X.shape}".encode())
    digest.update(np.ascontiguousarray(data.X).tobytes())
    digest.update(np.ascontiguousarray(data.y).tobytes())
    return digest.hexdigest()


def compute(
    sets: Mapping[str, Dataset],
    splits: int,
    settings: Settings,
    store: ResultStore,
    workers: Workers,
    report: Report = lambda job, done, total, seconds: None,
) -> dict[Job, Result]:
    """The results of all experiments on all splits: those stored, and the others as they are computed.

    ``workers``: an executor, and how many jobs it runs at once (:func:`workers_for`).
    """
    clear_abandoned(store.folder)
    digests = {name: _data_digest(data) for name, data in sets.items()}
    # split by split, so that an interrupted run has whole splits; long jobs first
    jobs = sorted(
        jobs_of(list(sets), splits),
        key=lambda job: (job.split, -_LENGTH[job.experiment] * sets[job.dataset].X.size),
    )
    executor, limit = workers
    done: dict[Job, Result] = {}
    running: dict[Future[Any], Job] = {}

    def key(job: Job) -> str:
        parts = [FORMAT, job.split, job.experiment, HOT_START[job.dataset], store.version]
        parts += [digests[job.dataset], asdict(settings), [key(other) for other in job.needs]]
        return _digest(_text(parts))

    def finish(job: Job, result: Result, seconds: float | None) -> None:
        done[job] = result
        report(job, len(done), len(jobs), seconds)

    for job in jobs:
        if (stored := store.get(job, key(job))) is not None:
            finish(job, stored, None)
    waiting = [job for job in jobs if job not in done]
    while waiting or running:
        ready = [job for job in waiting if all(other in done for other in job.needs)]
        for job in ready[: limit - len(running)]:
            waiting.remove(job)
            needs = {other.experiment: done[other] for other in job.needs}
            running[executor.submit(_timed, job, sets[job.dataset], settings, needs)] = job
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in sorted(finished, key=lambda future: running[future].file):
            job = running.pop(future)
            result, seconds = future.result()
            finish(job, store.put(job, key(job), result, seconds), seconds)
    return {job: done[job] for job in jobs_of(list(sets), splits)}


def _timed(job: Job, data: Dataset, settings: Settings, needs: dict[str, Result]) -> tuple[Result, float]:
    start = time.thread_time()
    hot_start = HOT_START[job.dataset]
    result = run_experiment(job.experiment, data.X, data.y, job.split, hot_start, settings, needs)
    return result, time.thread_time() - start


# where jobs run


def workers_for(processes: int | None, address: str | None) -> AbstractContextManager[Workers]:
    """Several processes, a Dask scheduler at ``address``, or this process.

    After an error running jobs are not waited for.
    """
    if address is not None:
        return _on_dask(address)
    if processes is not None and processes > 1:
        return _in_processes(processes)
    return nullcontext((_ThisProcess(), 1))


class _ThisProcess(Executor):
    """Runs jobs one after the other."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def _in_processes(number: int) -> Iterator[Workers]:
    """Processes on this machine, which end when this one does, however it does."""
    others = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(number, mp_context=spawn, initializer=_end_with_parent) as executor:
        try:
            yield executor, number
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            raise


def _end_with_parent() -> None:
    """Leave Ctrl-C to the parent, and end a worker whose parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _on_dask(address: str) -> Iterator[Workers]:
    """The workers of a Dask scheduler. A ValueError says why there are none."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("Dask is not installed: pip install 'cardboost[dask]'.") from None
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address!r} ({type(error).__name__}); an address looks like "
            "tcp://127.0.0.1:8786."
        ) from None
    with client:
        limit = sum(client.nthreads().values())
        if limit == 0:
            raise ValueError(f"the Dask scheduler at {address!r} has no workers.")
        yield client.get_executor(pure=False), limit

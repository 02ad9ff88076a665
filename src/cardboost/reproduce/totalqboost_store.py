"""Work that can be stopped at any moment and taken up again, in one process, in several, or on Dask.

Every job is one experiment on one split of one set. Its result is a file of its own, written at once or not
at all, with a key that names all it depends on: settings, data, and the results it begins from. A file that
is damaged, or has another key, is as good as none. Results are plain data and pass through their text, so
that it makes no difference where a job has run, or when.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cardboost.datasets.table import Dataset
from cardboost.model.atomic import clear_abandoned, write_atomically
from cardboost.reproduce.totalqboost import EXPERIMENTS, HOT_START, NEEDS, Settings, run_experiment

FORMAT = 1  # of the files, and of what the experiments do: a change makes earlier files worthless
Result = dict[str, Any]
#: how long jobs take, about; those that others wait for first
_LENGTH = {"A": 1.0, "B": 20.0, "C": 4.0, "D": 3.0, "E": 6.0, "F": 2.0}


@dataclass(frozen=True)
class Job:
    dataset: str
    split: int
    experiment: str

    @property
    def file(self) -> str:
        return f"{self.dataset}-{self.split}-{self.experiment}.json"

    @property
    def needs(self) -> tuple[Job, ...]:
        return tuple(Job(self.dataset, self.split, other) for other in NEEDS[self.experiment])


def jobs_of(names: Sequence[str], splits: int) -> list[Job]:
    return [Job(name, k, own) for name in names for k in range(splits) for own in EXPERIMENTS]


@dataclass(frozen=True)
class Progress:
    """A job that is done: how many are, of how many, and the processor's seconds; None: it was at hand."""

    job: Job
    done: int
    total: int
    seconds: float | None


class Store:
    """Results as files of a folder. ``version``: of the program, as another one may find other results."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder, self.version = folder, version
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, job: Job, key: str) -> Result | None:
        """None where there is no file, or not this one."""
        try:
            content = json.loads((self.folder / job.file).read_bytes())
            text = _text(content["result"])
            whole = content["key"] == key and content["digest"] == _digest(text)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return json.loads(text) if whole else None

    def put(self, job: Job, key: str, result: Result, seconds: float) -> Result:
        """Write the file and give what :meth:`get` will."""
        text = _text(result)
        content = {"key": key, "digest": _digest(text), "seconds": round(seconds, 3), "result": result}
        write_atomically(self.folder / job.file, (_text(content) + "\n").encode())
        return json.loads(text)


def _text(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _data_digest(data: Dataset) -> str:
    found = hashlib.sha256(f"{data.name} {data.X.shape}".encode())
    found.update(np.ascontiguousarray(data.X).tobytes())
    found.update(np.ascontiguousarray(data.y).tobytes())
    return found.hexdigest()


class Places:
    """Where jobs run: here, one after the other. The others give another executor."""

    limit = 1

    def __init__(self) -> None:
        self.executor: Executor = _Here()

    def share(self, value: Any) -> Any:
        """What jobs get in place of a value that many of them read."""
        return value

    def close(self, hurry: bool) -> None:
        """``hurry``: without waiting for jobs that are running."""
        self.executor.shutdown(wait=not hurry, cancel_futures=True)


class _Here(Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Processes(Places):
    """Several processes on this machine, which end when this one does, however it does."""

    def __init__(self, workers: int) -> None:
        import multiprocessing

        self.limit = workers
        self._others = {child.pid for child in multiprocessing.active_children()}
        spawn = multiprocessing.get_context("spawn")
        self.executor = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_end_with_parent)

    def close(self, hurry: bool) -> None:
        import multiprocessing

        self.executor.shutdown(wait=not hurry, cancel_futures=True)
        if hurry:
            for child in multiprocessing.active_children():
                if child.pid not in self._others:
                    child.terminate()


def _end_with_parent() -> None:
    """Ctrl-C is the parent's affair, and a worker whose parent was killed has nobody to work for."""
    import multiprocessing
    import signal
    import threading

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Dask(Places):
    """The workers of a Dask scheduler. ValueError says why there are none."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise ValueError("Dask is not installed: pip install 'cardboost[dask]'.") from None
        try:
            self.client = Client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise ValueError(
                f"no Dask scheduler answers at {address!r} ({type(error).__name__}); an address looks like "
                "tcp://127.0.0.1:8786."
            ) from None
        self.limit = sum(self.client.nthreads().values())
        if self.limit == 0:
            self.client.close()
            raise ValueError(f"the Dask scheduler at {address!r} has no workers.")
        self.executor = self.client.get_executor(pure=False)

    def share(self, value: Any) -> Any:
        return self.client.scatter(value, hash=False)

    def close(self, hurry: bool) -> None:
        with contextlib.suppress(Exception):
            self.executor.shutdown(wait=not hurry)
        self.client.close()


def compute(
    sets: Mapping[str, Dataset],
    splits: int,
    settings: Settings,
    store: Store,
    places: Places,
    told: Callable[[Progress], object] = lambda progress: None,
) -> dict[Job, Result]:
    """The results of all experiments on all splits: those at hand, and the others as they are computed."""
    clear_abandoned(store.folder)
    digests = {name: _data_digest(data) for name, data in sets.items()}
    # split by split, so that what is done of many is whole splits; long jobs first
    jobs = sorted(
        jobs_of(list(sets), splits),
        key=lambda job: (job.split, -_LENGTH[job.experiment] * sets[job.dataset].X.size),
    )
    keys: dict[Job, str] = {}
    done: dict[Job, Result] = {}
    running: dict[Future[Any], Job] = {}
    shared: dict[str, Any] = {}

    def ready(job: Job) -> bool:
        return all(other in done for other in job.needs)

    def finish(job: Job, result: Result, seconds: float | None) -> None:
        done[job] = result
        told(Progress(job, len(done), len(jobs), seconds))

    def start(job: Job) -> None:
        """Take the result that is at hand, or set the job going."""
        needs = {other.experiment: done[other] for other in job.needs}
        parts = [store.version, digests[job.dataset], asdict(settings), [keys[other] for other in job.needs]]
        key = keys[job] = _key(job, parts)
        known = store.get(job, key)
        if known is not None:
            finish(job, known, None)
            return
        if job.dataset not in shared:
            shared[job.dataset] = places.share(sets[job.dataset])
        future = places.executor.submit(_timed, job, shared[job.dataset], settings, needs)
        running[future] = job

    waiting = list(jobs)
    while len(done) < len(jobs):
        for job in list(waiting):
            if len(running) >= places.limit:
                break
            if ready(job):
                waiting.remove(job)
                start(job)
        if not running:
            continue
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in sorted(finished, key=lambda own: running[own].file):
            job = running.pop(future)
            result, seconds = future.result()
            finish(job, store.put(job, keys[job], result, seconds), seconds)
    return {job: done[job] for job in jobs_of(list(sets), splits)}


def _key(job: Job, parts: list[Any]) -> str:
    return _digest(_text([FORMAT, job.split, job.experiment, HOT_START[job.dataset], *parts]))


def _timed(job: Job, data: Dataset, settings: Settings, needs: dict[str, Result]) -> tuple[Result, float]:
    began = time.thread_time()
    hot = HOT_START[job.dataset]
    result = run_experiment(job.experiment, data.X, data.y, job.split, hot, settings, needs)
    return result, time.thread_time() - began


@contextlib.contextmanager
def places_for(workers: int | None, address: str | None) -> Iterator[Places]:
    """``workers`` processes, a Dask scheduler at ``address``, or this process."""
    places: Places
    if address is not None:
        places = Dask(address)
    elif workers is not None and workers > 1:
        places = Processes(workers)
    else:
        places = Places()
    hurry = True
    try:
        yield places
        hurry = False
    finally:
        places.close(hurry)

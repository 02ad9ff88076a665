"""Work that goes on where it ended: kept, damaged and foreign results; the same in other processes."""

import importlib.util
import json
import os
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from cardboost.datasets import Dataset, load
from cardboost.reproduce.jobs import Job, ResultStore, compute, jobs_of, workers_for
from cardboost.reproduce.totalqboost import Settings, split_rows

SMALL = Settings(columns=6, prices=3, max_bins=15)


def small_set(name, seed=0):
    data = load("twonorm", n_rows=90, seed=seed)
    return Dataset(name, np.round(data.X[:, :3], 1), data.y, "generated", "made up")


SETS = {name: small_set(name, k) for k, name in enumerate(("thyroid", "heart"))}


def run(folder, sets=SETS, splits=1, settings=SMALL, workers=None, dask=None, version="1"):
    seen = []
    with workers_for(workers, dask) as pool:
        store = ResultStore(folder, version)
        results = compute(sets, splits, settings, store, pool, lambda *progress: seen.append(progress))
    assert [done for _, done, _, _ in seen] == list(range(1, len(results) + 1))
    return results, {job for job, _, _, seconds in seen if seconds is not None}


def test_all_jobs_in_order(tmp_path):
    results, computed = run(tmp_path, splits=2)
    assert list(results) == jobs_of(["thyroid", "heart"], 2)
    assert computed == set(results)
    assert sorted(os.listdir(tmp_path)) == sorted(job.file for job in results)
    assert len({json.dumps(own) for own in results.values()}) == len(results)


def test_what_is_done_stays_done(tmp_path):
    first, computed = run(tmp_path)
    assert len(computed) == 12
    again, computed = run(tmp_path)
    assert again == first
    assert computed == set()
    more, computed = run(tmp_path, splits=2)
    assert {job.split for job in computed} == {1}
    assert {job: more[job] for job in first} == first


DAMAGES = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "another type": lambda path: path.write_text("[1, 2]"),
    "no result": lambda path: path.write_text('{"key": "1"}'),
    "a digit": lambda path: path.write_text(change_a_digit(path.read_text())),
}


def change_a_digit(text):
    content = json.loads(text)
    content["result"]["points"][0]["risk"] += 1e-3
    return json.dumps(content)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("experiment", ["B", "E"])
def test_damaged_work_is_done_again(tmp_path, how, experiment):
    sets = {"thyroid": SETS["thyroid"]}
    first, _ = run(tmp_path, sets)
    job = Job("thyroid", 0, experiment)
    DAMAGES[how](tmp_path / job.file)
    again, computed = run(tmp_path, sets)
    assert again == first
    assert computed == {job}
    assert run(tmp_path, sets)[1] == set()


@pytest.mark.parametrize("what", ["settings", "data", "version"])
def test_other_work_is_not_taken(tmp_path, what):
    sets = {"thyroid": SETS["thyroid"]}
    run(tmp_path, sets)
    settings, version = SMALL, "1"
    if what == "settings":
        settings = replace(SMALL, small=2e-6)
    elif what == "data":
        sets = {"thyroid": small_set("thyroid", 7)}
    else:
        version = "2"
    _, computed = run(tmp_path, sets, settings=settings, version=version)
    assert len(computed) == 6


def test_a_job_that_fails_keeps_the_others(tmp_path):
    X, y = np.arange(12.0)[:, None], np.ones(12, dtype=np.int8)
    y[split_rows(X, 0)[1]] = -1  # one class is in the validation part alone
    lonely = Dataset("thyroid", X, y, "generated", "")
    with pytest.raises(ValueError, match="one class only"):
        run(tmp_path, {"heart": SETS["heart"], "thyroid": lonely})
    kept = set(os.listdir(tmp_path))
    assert "heart-0-B.json" in kept
    assert not any(name.endswith(".tmp") for name in kept)


def test_nothing_is_half_written(tmp_path, monkeypatch):
    """A file that cannot be put in place leaves nothing behind."""
    store = ResultStore(tmp_path, "1")

    def full(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        store.put(Job("heart", 0, "A"), "key", {"points": []}, 1.0)
    assert list(tmp_path.iterdir()) == []


def test_two_processes_give_the_same(tmp_path):
    serial, _ = run(tmp_path / "one")
    several, computed = run(tmp_path / "two", workers=2)
    assert several == serial
    assert len(computed) == len(serial)


def test_processes_end_at_once_when_asked():
    executors = []

    def interrupted():
        with workers_for(2, None) as (executor, limit):
            executors.append(executor)
            assert limit == 2
            assert executor.submit(os.getpid).result() != os.getpid()
            executor.submit(time.sleep, 60)
            raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - start < 30
    with pytest.raises(RuntimeError):
        executors[0].submit(os.getpid)


@pytest.mark.long
@pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None and not os.environ.get("CI"),
    reason="Dask is not installed",
)
def test_dask_gives_the_same(tmp_path):
    from distributed import LocalCluster

    serial, _ = run(tmp_path / "serial", splits=2)
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        there, computed = run(tmp_path / "dask", splits=2, dask=cluster.scheduler_address)
        with pytest.raises(ValueError, match="no Dask scheduler answers at 'nonsense'"):
            run(tmp_path / "dask", dask="nonsense")
    assert there == serial
    assert len(computed) == len(serial)


def test_without_dask_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"Dask is not installed: pip install 'cardboost\[dask\]'"):
        run(tmp_path, dask="tcp://127.0.0.1:1")

"""From a table to weights: the same bits for any threads, any layout, any order of the rows, after a fork."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from cardboost import _kernels
from cardboost.boosting.loop import StopRule
from cardboost.boosting.totally_corrective import Pace, generate
from cardboost.data import threads
from cardboost.data.binning import bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.base import Scoring
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.master.newton import Master
from cardboost.problem.losses import LOSSES, SQUARED
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk
from marks import first


def make_table(weighting: str):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(3000, 12))
    X[:, 3] = np.round(X[:, 3])
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.where(np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1] * X[:, 2]) + rng.normal(size=3000) > 0, 1, -1)
    weights = {
        "none": None,
        "counts": rng.integers(1, 6, 3000).astype(float),
        "real": rng.uniform(0.1, 3, 3000),
    }[weighting]
    return X, y.astype(np.int8), weights


def fit(X, y, weights, loss, threads, criterion="gain"):
    """All numbers of a fit, as bytes."""
    row_weights = RowWeights.make(len(y), weights)
    matrix = bin_table(read_table(X), row_weights, 64, threads)
    sign = None if loss == "squared" else y
    dictionary = StumpDictionary(matrix, sign, threads)
    if loss == "squared":
        risk = EmpiricalRisk(SQUARED, row_weights, None, threads, target=np.nan_to_num(X[:, 4] ** 3) + y)
    else:
        risk = EmpiricalRisk(LOSSES[loss], row_weights, y, threads)
    rule = PriceRule(1e-4, 1e-3)
    master = Master(dictionary.pool(), risk, lambda pool: rule.prices(pool.n_columns, pool.n_free))
    solution, trace = generate(
        dictionary, master, StopRule(25), scoring=Scoring(criterion, rule.l1, rule.l2),
        unseen=rule.prices(1, 0), pace=Pace(columns=lambda n: 1 + n // 8, newton_steps=2),
    )  # fmt: skip
    stumps = master.pool.stumps
    return (
        solution.weights.tobytes(),
        stumps.feature.tobytes()
        + stumps.cut.tobytes()
        + stumps.polarity.tobytes()
        + stumps.missing_left.tobytes(),
        b"".join(cuts.tobytes() for cuts in matrix.cuts),
        np.array([solution.objective, solution.lower_bound]).tobytes(),
        np.array([(record.objective, record.lower_bound, record.edge) for record in trace]).tobytes(),
    )


@pytest.mark.parametrize("loss", [*LOSSES, "squared"])
@pytest.mark.parametrize("weighting", first(1, ["real", "none", "counts"]))
def test_the_same_bits(loss, weighting):
    X, y, weights = make_table(weighting)
    one = fit(X, y, weights, loss, 1)
    assert fit(X, y, weights, loss, 2) == one
    assert fit(X, y, weights, loss, 7) == one
    assert fit(np.asfortranarray(X), y, weights, loss, 2) == one
    order = np.random.default_rng(5).permutation(len(y))
    assert fit(X[order], y[order], None if weights is None else weights[order], loss, 2) == one


@pytest.mark.parametrize("loss", [*LOSSES, "squared"])
def test_a_count_is_the_row_so_many_times(loss):
    X, y, weights = make_table("counts")
    times = weights.astype(int)
    assert fit(np.repeat(X, times, axis=0), np.repeat(y, times), None, loss, 2) == fit(X, y, weights, loss, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_after_a_parallel_region():
    X, y, weights = make_table("real")
    expected = fit(X, y, weights, "logistic", 2)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn about threads
        child = os.fork()
    if child == 0:
        same = b"no"
        try:
            if _kernels.max_threads() == 1 and fit(X, y, weights, "logistic", 2) == expected:
                same = b"yes"
        finally:
            os.write(write, same)
            os._exit(0)
    os.close(write)
    try:
        ready, _, _ = select.select([read], [], [], 600)
        assert ready, "the child hangs"
        assert os.read(read, 3) == b"yes"
    finally:
        os.close(read)
        end(child)
    assert fit(X, y, weights, "logistic", 2) == expected, "the parent goes on as before"


def end(child: int) -> None:
    """Wait for the child for a moment, then end it."""
    for _ in range(500):
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


class Library:
    """A BLAS that says how many threads it may use."""

    def __init__(self, num_threads):
        self.num_threads = num_threads

    def set_num_threads(self, number):
        self.num_threads = number


def test_limits_of_several_threads_on_blas(monkeypatch):
    """The least holds as long as anybody is inside; at the end all is as before."""
    libraries = [Library(3), Library(1), Library(8)]
    monkeypatch.setattr(threads, "_libraries", lambda with_scipy: libraries)
    inside, first_is_out = threading.Barrier(3), threading.Event()
    seen = []

    def counts():
        return [own.num_threads for own in libraries]

    def hold(most, last):
        with threads.blas_threads(most):
            inside.wait(10)
            seen.append(counts())
            inside.wait(10)
            if last:
                first_is_out.wait(10)
                seen.append(counts())

    workers = [threading.Thread(target=hold, args=own) for own in ((4, False), (2, True))]
    for worker in workers:
        worker.start()
    inside.wait(10)
    inside.wait(10)
    workers[0].join(10)
    first_is_out.set()
    workers[1].join(10)
    assert seen == [[2, 1, 2]] * 3
    assert counts() == [3, 1, 8]
    with threads.blas_threads(2):
        assert counts() == [2, 1, 2]
        with threads.blas_threads(6):
            assert counts() == [2, 1, 2]
    with pytest.raises(ZeroDivisionError), threads.blas_threads(1):
        1 / 0  # noqa: B018
    assert counts() == [3, 1, 8]


def test_the_blas_of_numpy_is_limited():
    with threadpool_limits(2, user_api="blas"), threads.blas_threads(1):
        held = [own["num_threads"] for own in threadpool_info() if own["user_api"] == "blas"]
    assert set(held) <= {1}

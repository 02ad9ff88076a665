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
from cardboost.boosting.column_generation import Pace, StopRule, generate
from cardboost.data.binning import bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.losses import LOSSES, SQUARED
from cardboost.master.newton import Master
from cardboost.master.problem import PriceRule
from cardboost.risk import EmpiricalRisk
from cardboost.threads import blas_threads


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
    pool, solution, trace = generate(
        dictionary, master, StopRule(25), criterion=criterion, l1=rule.l1, l2=rule.l2,
        unseen=rule.prices(1, 0), pace=Pace(columns=lambda n: 1 + n // 8, newton_steps=2),
    )  # fmt: skip
    stumps = pool.stumps
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
@pytest.mark.parametrize("weighting", ["none", "counts", "real"])
def test_the_same_bits(loss, weighting):
    X, y, weights = make_table(weighting)
    first = fit(X, y, weights, loss, 1)
    assert fit(X, y, weights, loss, 2) == first
    assert fit(X, y, weights, loss, 7) == first
    assert fit(np.asfortranarray(X), y, weights, loss, 2) == first
    order = np.random.default_rng(5).permutation(len(y))
    assert fit(X[order], y[order], None if weights is None else weights[order], loss, 2) == first


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
        ready, _, _ = select.select([read], [], [], 60)
        assert ready, "the child hangs"
        assert os.read(read, 3) == b"yes"
    finally:
        os.close(read)
        end(child)
    assert fit(X, y, weights, "logistic", 2) == expected, "the parent goes on as before"


def end(child: int) -> None:
    """Wait for the child for a moment, then end it."""
    for _ in range(50):
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def blas_counts():
    return [own["num_threads"] for own in threadpool_info() if own["user_api"] == "blas"]


def test_limits_of_several_threads_on_blas():
    """The least holds as long as anybody is inside; at the end all is as before."""
    import scipy.linalg  # noqa: F401  its own BLAS counts too

    if not blas_counts():
        pytest.skip("no BLAS that threadpoolctl knows")
    with threadpool_limits(3, user_api="blas"):
        before = blas_counts()
        inside, first_is_out = threading.Barrier(3), threading.Event()
        seen = []

        def hold(most, last):
            with blas_threads(most):
                inside.wait(10)
                seen.append(blas_counts())
                inside.wait(10)
                if last:
                    first_is_out.wait(10)
                    seen.append(blas_counts())

        workers = [threading.Thread(target=hold, args=own) for own in ((2, False), (1, True))]
        for worker in workers:
            worker.start()
        inside.wait(10)
        inside.wait(10)
        workers[0].join(10)
        first_is_out.set()
        workers[1].join(10)
        assert seen == [[1] * len(before)] * 3
        with blas_threads(2):
            assert blas_counts() == [2] * len(before)
            with blas_threads(8):
                assert blas_counts() == [2] * len(before)
        with pytest.raises(ZeroDivisionError), blas_threads(1):
            1 / 0  # noqa: B018
        assert blas_counts() == before

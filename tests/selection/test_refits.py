"""Refits by the kernel of nodes are those of the master, or are left to it."""

from __future__ import annotations

import numpy as np
import pytest
from problems import matrix_problem

from cardboost.problem.prices import Prices
from cardboost.selection.merge import equal_columns, merge_rows
from cardboost.selection.polish import Polisher
from cardboost.selection.refits import SignRefits
from marks import first


def sign_problem(seed, upper):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(10, 80)), int(rng.integers(1, 12))
    A = np.where(rng.random((m, n)) < rng.uniform(0.4, 0.8, n), 1.0, -1.0)
    if n > 2 and rng.random() < 0.3:
        A[:, 1] = -A[:, 0]
    charged = rng.random(n) < 0.8
    prices = Prices(
        rng.choice([0.0, 1e-3, 0.02], n), rng.choice([0.0, 0.05], n), np.where(charged, 0.01, 0.0),
        np.where(charged, upper, 3.0), charged,
    )  # fmt: skip
    loss = ("exponential", "logistic")[seed % 2]
    return rng, merge_rows(matrix_problem(A, rng.random(m) + 0.1, loss, prices, None))


@pytest.mark.parametrize("upper", [0.3, 2.0, np.inf])
@pytest.mark.parametrize("seed", first(12, range(30)))
def test_both_ways_to_refit_agree(seed, upper):
    rng, problem = sign_problem(seed, upper)
    n = problem.pool.n_columns
    quick, slow = Polisher(problem), Polisher(problem)
    assert quick._sign_refits is not None
    slow._sign_refits = None
    charged = np.flatnonzero(problem.prices.charged)
    supports = [charged[rng.random(len(charged)) < 0.6].tolist() for _ in range(5)]
    start = np.minimum(rng.random(n), problem.prices.max_weight)
    together = quick.refit_all(supports, start)
    for support, found in zip(supports, together, strict=True):
        expected = slow.refit(support, start)
        assert found.objective == pytest.approx(expected.objective, rel=1e-8)
        assert set(found.support) <= set(support)
        assert (found.weights >= 0).all()
        assert (found.weights <= problem.prices.max_weight).all()
        assert found.objective == Polisher(problem).refit(support, start).objective  # alone or with others


def test_what_has_no_optimum_or_lies_far_out_is_left_to_the_master():
    A = np.ones((8, 2))
    A[:4, 1] = -1.0
    none, free = np.zeros(2), np.full(2, np.inf)
    problem = merge_rows(
        matrix_problem(A, np.ones(8), "exponential", Prices(none, none, none, free, np.ones(2, bool)), None)
    )
    refits = SignRefits.make(problem)
    assert refits is not None
    assert refits.solve([[0], [1]], np.zeros((2, 2)), 1e-9)[0] is None  # separable: no weight is enough
    assert np.isfinite(Polisher(problem).refit([0]).objective)


def test_only_signs_and_the_losses_of_exact_search():
    rng, problem = sign_problem(3, 1.0)
    assert SignRefits.make(problem) is not None
    real = matrix_problem(
        rng.normal(size=(9, 3)), np.ones(9), "logistic", problem.prices[np.zeros(3, int)], None
    )
    assert SignRefits.make(merge_rows(real)) is None


def test_equal_columns():
    A = np.array([[1.0, 0.0, 1.0, -0.0], [2.0, 3.0, 2.0, 3.0]])
    assert equal_columns(A).tolist() == [0, 1, 0, 1]
    assert equal_columns(A.astype(np.int8)).tolist() == [0, 1, 0, 1]

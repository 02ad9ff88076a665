"""Local search among many columns: more of them never make a choice worse, and the work stays small."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from cardboost import CardBoostClassifier, CardBoostRegressor
from cardboost.data.weights import RowWeights
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.problem.losses import get_loss
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection import polish as module
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import Polisher, polish
from cardboost.selection.relaxation import RelaxationSolver, pool_relaxation
from cardboost.selection.selection_problem import SelectionProblem
from cardboost.solvers import select_columns
from marks import first

PREFIXES = (10, 20, 40, 80, 120)


def table(seed, rows=600, features=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    value = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, -1] + np.abs(X[:, -1]) + 0.5 * rng.normal(size=rows)
    return X, value


def stumps(seed, n, rows=800):
    """Signs of random stumps, times a label that they say something about."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    value = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + rng.normal(size=rows)
    label = np.where(value > np.median(value), 1, -1)
    cut = X[:, rng.integers(0, 6, n)] > rng.normal(size=n)
    return np.where(cut, 1, -1) * rng.choice([-1, 1], n) * label[:, None]


def problem(A, max_terms, l0=0.0, loss="logistic", max_weight=2.0):
    store = ColumnStore(np.ascontiguousarray(A.T.astype(np.int8)), 1)
    pool = MatrixPool(store, np.arange(A.shape[1], dtype=np.int32))
    risk = EmpiricalRisk(get_loss(loss), RowWeights.make(len(A), None), None, 1)
    prices = PriceRule(1e-4, 0.01, l0, max_weight, 15.0).prices(A.shape[1], 0)
    return SelectionProblem(pool, risk, prices, max_terms)


def not_rising(objectives):
    return all(after <= before * (1 + 1e-12) for before, after in pairwise(objectives))


CARDS = [(1, 2), (2, 5), (3, 12), (0, 12)]  # seed and max_terms of the quick tests


@pytest.mark.parametrize(
    ("seed", "max_terms"),
    first(2, CARDS + [card for card in product(range(4), (2, 5, 12)) if card not in CARDS]),
)
def test_more_candidates_never_give_a_worse_card(seed, max_terms):
    X, value = table(seed, features=2 + seed)
    options = {"max_terms": max_terms, "l2": 0.01, "max_weight": 3.0, "selector": "polish", "n_jobs": 1}
    found = [
        CardBoostClassifier(**{"l2": 0.01, "hot_start": count, "max_iter": 400, **options})
        .fit(X, value > 0.5)
        .certificate_.objective
        for count in PREFIXES
    ]
    assert not_rising(found)


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_more_candidates_never_give_a_worse_regression(seed):
    X, value = table(seed)
    options = {"max_terms": 5, "l2": 0.01, "max_weight": 3.0, "selector": "polish", "n_jobs": 1}
    found = [
        CardBoostRegressor(**{"l2": 0.01, "hot_start": count, "max_iter": 400, **options})
        .fit(X, value)
        .certificate_.objective
        for count in PREFIXES
    ]
    assert not_rising(found)


@pytest.mark.parametrize(
    ("max_terms", "l0", "loss"),
    first(
        3,
        [
            (3, 0.0, "exponential"), (8, 1e-3, "logistic"), (None, 3e-3, "logistic"),
            (3, 0.0, "logistic"), (8, 1e-3, "exponential"), (None, 3e-3, "exponential"),
        ],
    ),
)  # fmt: skip
def test_more_columns_never_give_a_worse_choice(max_terms, l0, loss):
    A = stumps(1, 130, rows=300)
    counts = (10, 20, 40, 80, 130)
    assert not_rising([polish(problem(A[:, :n], max_terms, l0, loss))[0].objective for n in counts])


@pytest.mark.parametrize("seed", first(4, [184, 244, *range(6)]))
def test_the_first_columns_are_not_forgotten(seed):
    A = stumps(seed, 60, rows=200)
    assert not_rising([polish(problem(A[:, :n], 3))[0].objective for n in (10, 20, 40, 50, 60)][:4])
    assert not_rising([polish(problem(A[:, :n], 3))[0].objective for n in (10, 20, 40, 60)])


def test_more_columns_never_give_a_worse_choice_on_a_sample_of_the_rows(monkeypatch):
    monkeypatch.setattr("cardboost.selection.merge.sketch_rows.__defaults__", (150,))
    A = stumps(2, 100)
    counts = (10, 20, 40, 80, 100)
    assert not_rising([polish(problem(A[:, :n], 5))[0].objective for n in counts])


@pytest.mark.parametrize("seed", range(5))
def test_the_columns_that_are_looked_at_have_the_best_moves(monkeypatch, seed):
    """The best swaps by the model of all columns are those of the columns with the best estimates."""
    merged = merge_rows(problem(stumps(seed, 150), 6))
    polisher = Polisher(merged)
    start = polisher.refit(np.random.default_rng(seed).choice(150, 6, replace=False))
    screened = polisher._moves(start)
    monkeypatch.setattr(module, "_SCREENED", 150)
    monkeypatch.setattr(Polisher, "_swaps", lambda self, at, outside: (at.support.tolist(), outside, 150))
    assert Polisher(merged)._moves(start)[:3] == screened[:3]


@pytest.mark.parametrize("seed", range(5))
def test_saliency_is_what_a_column_costs_in_the_model(seed):
    merged = merge_rows(problem(stumps(seed, 100), 80))
    polisher = Polisher(merged)
    wide = polisher.refit(range(100))
    support = [int(j) for j in wide.support]
    scores = polisher.scores(wide, [[i for i in support if i != j] for j in support])
    (gone,) = set(support) - set(polisher.spare(wide, 5, 1))
    assert scores[support.index(gone)] <= np.quantile(scores, 0.1)
    assert len(polisher.spare(wide, 20, 10)) == len(support) - 10


@pytest.mark.parametrize("max_terms", [5, 70])
def test_wide_supports_are_thinned_to_their_limit(max_terms):
    A = stumps(7, 160, rows=300)
    merged = merge_rows(problem(A, max_terms))
    polisher = Polisher(merged)
    wide = polisher.all_columns()
    for thinned in (polisher.thin(wide, max_terms), polisher.shed(wide, max_terms)):
        assert len(thinned.support) <= max_terms
    found, _ = polish(problem(A, max_terms))
    assert len(found.support) <= max_terms
    assert found.objective <= polisher.improve(polisher.grow(max_terms)).objective * (1 + 1e-12)


def test_the_convex_solution_of_many_columns_is_near_that_of_all():
    merged = merge_rows(problem(stumps(3, 400), 10))
    at = Polisher(merged).all_columns()
    best = merged.master().solve(tol=1e-9).objective
    assert best * (1 - 1e-8) <= at.objective <= best * 1.01


@pytest.mark.parametrize("max_terms", first(1, [4, None]))
def test_the_bound_over_many_columns_is_that_of_the_whole_relaxation(max_terms):
    task = problem(stumps(4, 280, rows=300), max_terms, 0.0 if max_terms else 2e-3)
    found = pool_relaxation(task, polish(task)[0].weights)
    solver = RelaxationSolver(merge_rows(task))
    solver.solve()
    assert found.leaf.bound == pytest.approx(solver.result().leaf.bound, rel=1e-6)
    assert len(found.leaf.weights) == 280


def test_work_grows_with_what_is_promising(work_clock):
    """Twenty times as many columns, most of them worthless, do not take twenty times as many refits."""
    A = stumps(5, 1200)
    few = polish(problem(A[:, :60], 5))[1]
    began = work_clock.seconds
    many = polish(problem(A, 5))[1]
    assert many <= 8 * few
    assert work_clock.seconds - began < 15.0


@pytest.mark.parametrize("order", first(1, [1, 2]))
def test_threads_and_the_order_of_rows_do_not_show(order):
    X, value = table(9, rows=900, features=3)
    y = value > 0.5
    rows = np.random.default_rng(order).permutation(len(y))
    options = {"max_terms": 6, "hot_start": 150, "max_iter": 400, "selector": "polish", "l2": 0.01}
    one = CardBoostClassifier(**{"l2": 0.01, "n_jobs": 1, **options}).fit(X, y)
    two = CardBoostClassifier(**{"l2": 0.01, "n_jobs": 2, **options}).fit(X[rows], y[rows])
    assert one.ensemble_ == two.ensemble_
    assert one.certificate_.objective == two.certificate_.objective
    assert one.certificate_.lower_bound == two.certificate_.lower_bound


def test_auto_takes_more_columns_than_exact_search_does():
    A = stumps(6, 560)
    found = select_columns(A, max_terms=3, l2=0.01, loss="logistic", method="auto")
    assert found.status == "feasible"
    assert found.nodes == 0
    assert found.lower_bound <= found.objective
    assert found.certificate.verify(A)
    with pytest.raises(
        ValueError, match=r"exact search takes at most 512 columns, and there are \d+: use fewer"
    ):
        select_columns(A, max_terms=3, l2=0.01, loss="logistic", method="exact")


def test_a_part_of_a_problem_has_its_columns_only():
    A = stumps(0, 12)
    whole = problem(A, 3)
    columns = np.array([1, 4, 7])
    part = whole.part(columns)
    np.testing.assert_array_equal(part.pool.dense(), A[:, columns])
    assert len(part.prices) == 3
    assert replace(part, max_terms=2).max_terms == 2

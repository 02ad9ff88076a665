"""Tabu search: never below the optimum by enumeration, nearly always at it, and the same for any schedule."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pytest
from enumeration import Enumeration, tangled
from threadpoolctl import threadpool_limits

from cardboost.data.weights import RowWeights
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.problem.losses import get_loss
from cardboost.problem.prices import FeatureLimits, Prices
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection import tabu
from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.polish import polish
from cardboost.selection.selection_problem import SelectionProblem
from cardboost.selection.tabu import Grid, accepts, check_bits, tabu_search, walk
from cardboost.solvers import select_columns
from marks import first

TOLERANCE = 1e-7


@pytest.fixture(autouse=True, scope="module")
def one_thread_for_references():
    """Threads of BLAS cost more than they bring on problems this small."""
    with threadpool_limits(1):
        yield


def make(A, weight=None, k=None, loss="exponential", **prices):
    A = np.asarray(A, dtype=float)
    n = A.shape[1]
    values = {"l1": 1e-4, "l2": 0.0, "l0": 0.0, "max_weight": math.inf, "charged": True, **prices}
    own = Prices(**{name: np.array(np.broadcast_to(value, (n,))) for name, value in values.items()})
    weights = RowWeights.make(len(A), weight)
    pool = MatrixPool(ColumnStore(np.ascontiguousarray(A.T)), np.arange(n, dtype=np.int32))
    return SelectionProblem(pool, EmpiricalRisk(get_loss(loss), weights, None, 1), own, k)


def random_problem(seed, most=8):
    """Equal and opposite columns, ties, row weights, free columns, prices and boxes of their own."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(10, 40)), int(rng.integers(5, most + 1))
    A = tangled(rng, np.where(rng.random((m, n)) < rng.uniform(0.45, 0.75, n), 1.0, -1.0))
    weight = [None, rng.integers(1, 4, m).astype(float), rng.random(m) + 0.1][seed % 3]
    charged = np.ones(n, dtype=bool)
    kind = rng.integers(3)
    prices = {
        "l1": rng.choice([1e-4, 0.01], n) if rng.random() < 0.3 else float(rng.choice([1e-4, 0.01])),
        "l2": float(rng.choice([0.0, 0.02, 0.2])),
        "l0": 0.0 if kind == 0 else float(rng.choice([0.01, 0.03, 0.1])),
        "max_weight": float(rng.choice([0.2, 1.0, 5.0])),
    }
    if kind and rng.random() < 0.3:
        prices["l0"] = prices["l0"] * rng.choice([0.0, 0.5, 1.0, 2.0], n)
    if rng.random() < 0.2:
        prices["max_weight"] = rng.choice([0.0, 0.3, 1.0, 4.0], n)
    if rng.random() < 0.4:  # an intercept
        sign = np.where(rng.random(m) < 0.4, 1.0, -1.0)
        A = np.column_stack([sign, -sign, A])
        charged = np.r_[False, False, charged]
        for name, own in (("l1", 0.0), ("l2", 0.0), ("l0", 0.0), ("max_weight", 3.0)):
            prices[name] = np.r_[own, own, np.broadcast_to(prices[name], (n,))]
    return make(A, weight, None if kind == 1 else int(rng.integers(1, 4)), charged=charged, **prices)


def check(problem, found):
    """What holds for every result."""
    at, p = found.incumbent, problem.prices
    value = problem.risk.evaluate(problem.pool.margins(at.weights)).value
    assert at.objective == pytest.approx(problem.objective(value, at.weights), rel=1e-11)
    assert np.array_equal(at.support, np.flatnonzero((at.weights > 0) & p.charged))
    assert problem.allows(at.support)
    assert (at.weights >= 0).all()
    assert (at.weights <= p.max_weight).all()


def misses(seeds, most=8, **options):
    """How far above the optimum the results are."""
    found = []
    for seed in seeds:
        problem = random_problem(seed, most)
        p, before = problem.prices, problem.pool.dense().copy()
        result = tabu_search(problem, None, seed=seed, **options)
        check(problem, result)
        assert np.array_equal(before, problem.pool.dense())
        share = problem.risk.weights.normalised
        whole = Enumeration(before, share, "exponential", p.l1, p.l2, p.l0, p.max_weight, p.charged)
        optimum = whole.best(problem.max_terms)
        assert optimum <= result.incumbent.objective + TOLERANCE, seed
        found.append(result.incumbent.objective - optimum)
    return np.array(found)


@pytest.mark.parametrize("seeds", first(1, [range(40), range(40, 100)]), ids=str)
def test_small_problems_are_solved(seeds):
    assert np.mean(misses(seeds, starts=4, moves=200) <= 1e-6) >= 0.99


@pytest.mark.long
def test_many_small_problems_are_solved():
    assert np.mean(misses(range(1000, 1400), most=10, starts=4, moves=200) <= 1e-6) >= 0.99


def test_search_alone_comes_near_without_refits_in_between():
    """What the moves find on their grid, before any refit: within the grid's error of the final objective."""
    near = []
    for seed in range(40):
        problem = merge_rows(random_problem(seed))
        p = problem.prices
        best = tabu_search(problem, None, starts=4, moves=200).incumbent
        grid = Grid.make(p, 10, max(1e-3, 1.5 * best.weights.max()), 3.0)
        lines, made = walk(problem, grid, np.zeros(len(p)), 400, seed)
        assert made <= 400
        values = [
            problem.objective(problem.risk.evaluate(problem.pool.margins(own)).value, own) for own in lines
        ]
        assert values == sorted(values) or np.allclose(values, sorted(values), atol=1e-12)
        for own in lines:
            assert problem.allows(np.flatnonzero(own))
            assert (own <= p.max_weight * (1 + 1e-12)).all()
        assert min(values) >= best.objective - 1e-8
        near.append(min(values) <= best.objective + 1e-4)
    assert np.mean(near) >= 0.9


def hard_problem(seed=0, rows=300, columns=24, k=8, **prices):
    """Overlapping columns, among which local search gets stuck."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, 6))
    A = np.where(hidden @ rng.normal(size=(6, columns)) + rng.normal(size=(rows, columns)) > -0.7, 1.0, -1.0)
    return make(A, None, k, **prices)


def same(one, other):
    assert one.incumbent.objective == other.incumbent.objective
    assert np.array_equal(one.incumbent.weights, other.incumbent.weights)
    assert one.tabu == other.tabu


@pytest.mark.parametrize("more", [{}, {"k": None, "l0": 0.01}])
def test_results_do_not_depend_on_the_schedule(more):
    problem = hard_problem(**more)
    first = tabu_search(problem, None, starts=8, moves=300, seed=5)
    check(problem, first)
    same(first, tabu_search(problem, None, starts=8, moves=300, seed=5))
    same(first, tabu_search(problem, None, starts=8, moves=300, seed=5, n_jobs=3))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        same(first, tabu_search(problem, None, starts=8, moves=300, seed=5, n_jobs=None))
    many = replace(problem, risk=replace(problem.risk, threads=3))
    same(first, tabu_search(many, None, starts=8, moves=300, seed=5))


@pytest.mark.long
def test_starts_run_in_other_processes():
    problem = hard_problem()
    first = tabu_search(problem, None, starts=8, moves=300)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        same(first, tabu_search(problem, None, starts=8, moves=300, n_jobs=None))


def test_what_a_start_is_given_can_be_pickled():
    problem = merge_rows(hard_problem())
    grid = Grid.make(problem.prices, 6, 1.0, 1.0)
    run = partial(tabu._run_start, problem, grid, 100, frozenset(), 1)
    copy = pickle.loads(pickle.dumps(run))
    (one, _), (other, _) = (start(2, [0, 3, 5]) for start in (run, copy))
    assert one.objective == other.objective
    assert np.array_equal(one.weights, other.weights)


def test_the_order_of_rows_does_not_show():
    A = hard_problem().pool.dense().astype(float)
    order = np.random.default_rng(1).permutation(len(A))
    one, other = (tabu_search(make(own, None, 8), None, starts=4, moves=300) for own in (A, A[order]))
    same(one, other)


def test_more_work_never_makes_a_seed_worse():
    for seed in range(3):
        problem, last = hard_problem(seed, columns=30, k=10), math.inf
        for starts in (0, 1, 4, 8, 12):
            found = tabu_search(problem, None, starts=starts, moves=150)
            assert found.incumbent.objective <= last
            assert found.tabu.starts == starts
            assert found.tabu.moves <= starts * 150
            last = found.incumbent.objective


def test_budget_and_clock_are_respected():
    problem = hard_problem()
    for moves in (0, 1, 255, 256, 300):
        found = tabu_search(problem, None, starts=3, moves=moves)
        assert found.tabu.moves == 3 * moves
        check(problem, found)
    asked = []

    def late():
        asked.append(1)
        return len(asked) > 60

    found = tabu_search(problem, None, starts=1000, moves=100, late=late)
    check(problem, found)
    assert found.tabu.starts < 100
    at_once = tabu_search(problem, None, starts=1000, moves=100, late=lambda: True)
    check(problem, at_once)
    assert at_once.tabu.starts == at_once.tabu.moves == 0


def test_a_given_start_is_never_made_worse():
    for seed in range(4):
        problem = hard_problem(seed, columns=30, k=10)
        known, _ = polish(problem)
        found = tabu_search(problem, known.weights, starts=2, moves=100)
        assert found.incumbent.objective <= known.objective + 1e-9


def test_tabu_gets_out_where_polish_is_stuck():
    better = 0
    for seed in range(6):
        problem = hard_problem(seed, columns=30, k=10, l1=1e-6)
        known, _ = polish(problem)
        found = tabu_search(problem, known.weights, starts=8, moves=500).incumbent
        assert found.objective <= known.objective + 1e-9
        better += found.objective < known.objective - 1e-6
    assert better >= 1


# ---------------------------------------------------------------- bits and ranges


def test_the_best_discretised_risk_reaches_the_continuous_one():
    for seed in range(6):
        problem = merge_rows(hard_problem(seed, rows=100))
        found = tabu_search(problem, None, bits="auto", starts=1, moves=100)
        assert 2 <= found.tabu.bits <= 10
        check(problem, found)
        same(found, tabu_search(problem, None, bits=found.tabu.bits, starts=1, moves=100))


def test_auto_bits_are_the_fewest_that_are_enough(monkeypatch):
    problem, last = merge_rows(hard_problem(2, rows=100)), 0
    for tolerance in (1.0, 1e-1, 1e-2, 1e-3, 1e-5, 0.0):
        monkeypatch.setattr(tabu, "_AUTO_TOLERANCE", tolerance)
        bits = tabu_search(problem, None, bits="auto", starts=0).tabu.bits
        assert last <= bits <= 16
        last = bits
    assert last >= 10


@pytest.mark.parametrize("bits", [1, 2, 6, 16])
def test_any_number_of_bits_gives_a_model_inside_the_box(bits):
    for more in ({}, {"max_weight": 0.3}, {"k": None, "l0": 0.01, "l2": 0.01}):
        problem = hard_problem(1, **more)
        found = tabu_search(problem, None, bits=bits, starts=2, moves=100)
        assert found.tabu.bits == bits
        check(problem, found)


@pytest.mark.parametrize("bits", [0, -1, 17, 2.5, True, None, "all", math.nan])
def test_wrong_bits_are_refused(bits):
    with pytest.raises(ValueError, match="bits must be a whole number from 1 to 16, or 'auto'"):
        check_bits(bits)


@pytest.mark.parametrize("first", [1e-3, 0.2, 30.0])
def test_the_range_follows_the_largest_weight(first):
    """From wherever it begins: the second wave has the largest weight in the upper half of its range."""
    problem = merge_rows(hard_problem(1, k=3))
    search = tabu._Multistart(problem, None, 6, lambda: False)
    search.range = first
    search.run(12, 100, 0, 1)
    assert [record.starts for record in search.ranges] == [4, 8, 12]
    assert search.ranges[0].range == first
    for record, after in zip(search.ranges, [*search.ranges[1:], None], strict=True):
        assert after is None or after.range == record.next_range
        assert record.largest < record.next_range <= 2.0 * record.largest
        assert np.log2(record.next_range / record.range) % 1.0 == 0.0
        if 0.5 * record.range <= record.largest < record.range:
            assert record.next_range == record.range
    found = tabu_search(problem, None, starts=12, moves=100)
    assert [record.starts for record in found.tabu.ranges] == [4, 8, 12]
    assert found.tabu.ranges[-1].largest == found.incumbent.weights.max()
    assert found.incumbent.objective == pytest.approx(search.elite[0].objective, abs=1e-9)


def test_ranges_double_and_halve():
    assert tabu._adapted(1.0, 0.7) == 1.0
    assert tabu._adapted(1.0, 1.0) == 2.0
    assert tabu._adapted(1.0, 5.0) == 8.0
    assert tabu._adapted(1.0, 0.3) == 0.5
    assert tabu._adapted(1.0, 0.0) == 1.0


def test_a_range_never_exceeds_the_box():
    problem = hard_problem(max_weight=0.05)
    found = tabu_search(problem, None, starts=8, moves=100)
    assert all(record.range <= 0.05 and record.next_range <= 0.05 for record in found.tabu.ranges)
    check(problem, found)


def test_levels_are_the_nearest_and_keep_the_support():
    prices = make(np.ones((3, 4)), max_weight=[2.0, 0.0, math.inf, 0.5], k=2).prices
    grid = Grid.make(prices, 3, 1.4, 1.0)
    assert grid.top.tolist() == [7, 0, 7, 7]
    np.testing.assert_allclose(grid.steps, [0.2, 0.0, 0.2, 0.5 / 7])
    assert grid.levels(np.array([0.31, 0.0, 0.01, 0.5])).tolist() == [2, 0, 1, 7]
    assert grid.levels(np.array([9.0, 0.0, 1.29, 0.0])).tolist() == [7, 0, 6, 0]


# ---------------------------------------------------------------- edges and refusals


def test_nothing_to_choose():
    A = hard_problem().pool.dense().astype(float)
    nothing = tabu_search(make(A, k=0), None)
    assert nothing.incumbent.objective == pytest.approx(1.0)
    assert nothing.tabu.moves == 0
    assert len(tabu_search(make(A, l0=50.0), None, starts=4, moves=50).incumbent.support) == 0
    assert len(tabu_search(make(A, k=3, max_weight=0.0), None).incumbent.support) == 0
    assert len(tabu_search(make(-np.ones((4, 2)), k=1), None, starts=4, moves=50).incumbent.support) == 0
    assert len(tabu_search(make(A[:, :0], k=1), None).incumbent.support) == 0
    everything = tabu_search(make(A, k=A.shape[1]), None)
    assert everything.tabu.moves == 0
    assert everything.incumbent.objective == pytest.approx(polish(make(A, k=A.shape[1]))[0].objective)


def test_separable_rows():
    """Weights want to be infinite; everything stays finite."""
    A = np.ones((20, 5))
    A[np.arange(20), np.arange(20) % 5] = -1.0
    for prices in ({"l1": 0.0}, {"l1": 1e-12}, {"l1": 1e-6, "max_weight": 1000.0}):
        problem = make(A, k=4, **prices)
        found = tabu_search(problem, None, starts=4, moves=100)
        assert np.isfinite(found.incumbent.weights).all()
        check(problem, found)
    found = tabu_search(make(np.ones((5, 3)), k=1, l1=1e-9), None, starts=4, moves=100)
    assert 0 <= found.incumbent.objective < 1e-6


def test_large_problems_are_searched_on_some_rows(monkeypatch):
    """What is returned is refitted on all of them, and no worse than the start there."""
    monkeypatch.setattr(tabu, "sketch_rows", lambda merged: sketch_rows(merged, 100))
    problem = hard_problem(4, rows=600, columns=20, k=6)
    assert sketch_rows(merge_rows(problem), 100).risk.weights.n_rows < 300
    known, _ = polish(problem)
    found = tabu_search(problem, known.weights, starts=4, moves=200)
    check(problem, found)
    assert found.incumbent.objective <= known.objective + 1e-9


def test_what_it_cannot_take_is_said_in_a_sentence():
    A = hard_problem().pool.dense().astype(float)
    assert accepts(make(A, k=2)) is None
    groups = np.zeros(A.shape[1], dtype=np.int32)
    limited = replace(make(A, k=2), groups=groups, limits=FeatureLimits(max_features=1))
    for problem, word in [
        (make(A, k=2, loss="logistic"), "logistic"),
        (make(0.5 * A, k=2), "-1 or 1"),
        (make(np.where(A > 0, A, 0.0), k=2), "-1 or 1"),
        (limited, "features"),
    ]:
        sentence = accepts(problem)
        assert word in sentence
        assert sentence.endswith(".")
        assert ". " not in sentence
        with pytest.raises(ValueError, match=word):
            tabu_search(problem, None)


# ---------------------------------------------------------------- select_columns


@pytest.mark.parametrize("options", [{"max_terms": 5}, {"max_terms": 6, "l0": 0.01, "l2": 0.01}])
def test_select_columns_with_tabu(options):
    A = hard_problem(3, rows=100, columns=12).pool.dense().astype(float)
    known, found = (select_columns(A, method=method, **options) for method in ("polish", "tabu"))
    assert found.objective <= known.objective + 1e-9
    assert found.lower_bound <= found.objective
    assert found.certificate.faults(A) == []
    assert found.tabu.moves > 1000
    again = select_columns(A, method="tabu", n_jobs=2, **options)
    assert again.objective == found.objective
    assert np.array_equal(again.x, found.x)
    auto = select_columns(A, method="tabu", bits="auto", random_state=1, **options)
    assert auto.objective <= known.objective + 1e-9


def test_select_columns_says_why_tabu_cannot():
    A = hard_problem().pool.dense().astype(float)
    with pytest.raises(ValueError, match="logistic loss"):
        select_columns(A, max_terms=2, method="tabu", loss="logistic")
    with pytest.raises(ValueError, match="-1 or 1"):
        select_columns(A * 2.0, max_terms=2, method="tabu")

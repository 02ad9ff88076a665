"""Experiments A to F on small tables: the paper's rules recomputed in NumPy, choices against enumeration."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from cardboost.datasets import load
from cardboost.reproduce.totalqboost import (
    HOT_START,
    NEEDS,
    Point,
    Settings,
    SplitProblem,
    run_experiment,
    split_rows,
)

SMALL = Settings(columns=12, prices=4, max_bins=15)
HOT = 6


@pytest.fixture(scope="module")
def table():
    data = load("twonorm", n_rows=160)
    return np.round(data.X[:, :4], 1), data.y


@pytest.fixture(scope="module")
def results(table):
    found = {}
    for name in "ABECDF":
        needs = {other: found[other] for other in NEEDS[name]}
        found[name] = run_experiment(name, *table, 0, HOT, SMALL, needs)
    return found


def points(results, name):
    return [Point(**own) for own in results[name]["points"]]


def signs(table, columns):
    """Training columns h(x) y, from the cuts of the table."""
    problem = SplitProblem.make(*table, 0, SMALL.max_bins)
    pool = problem.pool(columns)
    train, _ = split_rows(table[0], 0)
    X, y = table[0][train], table[1][train]
    cuts = problem.dictionary.matrix.cuts
    found = [
        y * polarity * np.where(X[:, feature] <= cuts[feature][cut], 1, -1)
        for feature, cut, polarity, _ in columns
    ]
    assert pool.n_columns == len(columns)
    return np.array(found).reshape(len(columns), len(y)).T


# splits


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60), st.integers(0, 5))
def test_equal_rows_stay_together(rows, number):
    X = np.array(rows, dtype=float)
    train, held = split_rows(X, number)
    assert sorted([*train, *held]) == list(range(len(X)))
    assert not {tuple(row) for row in X[train]} & {tuple(row) for row in X[held]}
    assert len(held) <= round(0.2 * len(X))


def test_splits_are_80_to_20_and_differ(table):
    X = table[0]
    splits = [split_rows(X, k)[1] for k in range(4)]
    for held in splits:
        assert len(held) == pytest.approx(0.2 * len(X), abs=2)
    assert len({held.tobytes() for held in splits}) == 4
    np.testing.assert_array_equal(split_rows(X, 2)[1], splits[2])


def test_one_class_is_refused():
    X = np.arange(10.0)[:, None]
    with pytest.raises(ValueError, match="one class only"):
        SplitProblem.make(X, np.ones(10, dtype=np.int8), 0, 15)


def test_errors_are_those_of_the_rows(table):
    """Rows one by one, duplicates and all, from raw numbers."""
    X = np.vstack([table[0], table[0][:50]])
    y = np.concatenate([table[1], table[1][:50]])
    problem = SplitProblem.make(X, y, 1, SMALL.max_bins)
    assert len(problem.training.positive) < problem.rows  # equal rows are merged
    columns = [[0, 3, 1, 0], [2, 5, -1, 0], [3, 1, 1, 0]]
    weights = np.array([0.7, 0.4, 0.0])
    cuts, pool = problem.dictionary.matrix.cuts, problem.pool(columns)
    score = 0.7 * np.where(X[:, 0] <= cuts[0][3], 1, -1) - 0.4 * np.where(X[:, 2] <= cuts[2][5], 1, -1)
    wrong = (score > 0) != (y > 0)
    train, held = split_rows(X, 1)
    assert problem.rows == len(train)
    assert problem.training.error(pool.stumps, weights) == np.mean(wrong[train])
    assert problem.validation.error(pool.stumps, weights) == np.mean(wrong[held])
    # a score of 0 is negative
    assert problem.validation.error(pool.stumps, np.zeros(3)) == np.mean(y[held] > 0)


# convex experiments


def refitted(A, nu, box):
    """Least mean loss with nu times the weights, by SciPy."""
    n = A.shape[1]
    if n == 0:
        return 1.0

    def value(w):
        losses = np.exp(-A @ w)
        return losses.mean() + nu * w.sum(), -(A.T @ losses) / len(A) + nu

    options = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}
    return minimize(
        value, np.full(n, 0.1), jac=True, bounds=[(0, box)] * n, method="L-BFGS-B", options=options
    ).fun


def test_b_is_totally_corrective(table, results):
    """After every column the weights are the best for the columns so far, and the next is of largest edge."""
    own = results["B"]
    A = signs(table, own["columns"])
    found = points(results, "B")
    assert [point.columns for point in found] == list(range(1, A.shape[1] + 1))
    for point in found:
        best = refitted(A[:, : point.columns], SMALL.small, None)
        assert point.regularised == pytest.approx(best, rel=1e-6)
    risks = [point.regularised for point in found]
    assert risks == sorted(risks, reverse=True)
    assert len(found) == SMALL.columns
    every = signs(table, all_columns(table))
    edges = every.mean(axis=0)
    assert A[:, 0].mean() == pytest.approx(edges.max())


def all_columns(table):
    matrix = SplitProblem.make(*table, 0, SMALL.max_bins).dictionary.matrix
    return [
        [f, cut, way, 0] for f, own in enumerate(matrix.cuts) for cut in range(len(own)) for way in (1, -1)
    ]


def test_a_ends_by_the_paper_s_rule(table, results):
    """No stump has an edge above nu by more than epsilon, on summed losses; or there are T columns."""
    every = signs(table, all_columns(table))
    found = points(results, "A")
    assert len(found) == SMALL.prices
    ended = 0
    for point in found:
        assert point.price > 0
        best = refitted(every, point.price, None)
        # rule (8): the rest is worth no more than epsilon times the weights that could be added
        slack = SMALL.epsilon / len(every) * 20
        assert point.regularised >= best - 1e-9
        if point.columns < SMALL.columns:
            ended += 1
            assert point.regularised <= best + slack
    assert ended >= 2
    assert found[0].terms <= 2


def test_prices_and_box(results):
    own = results["B"]
    prices = np.array(own["prices"])
    assert len(prices) == SMALL.prices
    assert (np.diff(prices) < 0).all()
    risks = [1.0, *(point.regularised for point in points(results, "B"))]
    assert prices[-1] == pytest.approx(0.5 * (risks[HOT] - risks[-1]) / (len(risks) - 1 - HOT))
    assert own["box"] == 2 * max(max(w) for w in own["starts"][:HOT])
    assert [len(w) for w in own["starts"][:HOT]] == list(range(1, HOT + 1))
    terms = [np.count_nonzero(w) for w in own["starts"][HOT:]]
    assert terms == sorted(terms)
    assert max(max(w, default=0) for w in own["starts"]) <= own["box"]


# choices


def test_e_is_the_best_choice_of_all(table, results):
    """Against all subsets of the first T' columns."""
    A = signs(table, results["B"]["columns"][:HOT])
    box = results["B"]["box"]
    best = {
        columns: refitted(A[:, list(columns)], SMALL.small, box)
        for size in range(HOT + 1)
        for columns in combinations(range(HOT), size)
    }
    sizes = []
    for point, price in zip(points(results, "E"), results["B"]["prices"], strict=True):
        optimum = min(value + price * len(columns) for columns, value in best.items())
        assert point.regularised + price * point.terms == pytest.approx(optimum, rel=1e-7)
        assert point.lower_bound <= optimum + 1e-9
        assert point.proved
        sizes.append(point.terms)
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]


def test_f_is_the_best_of_every_size(table, results):
    """Against all subsets of at most so many of the first T' columns; without sizes that do not help."""
    A = signs(table, results["B"]["columns"][:HOT])
    box = results["B"]["box"]
    best = [
        min(
            refitted(A[:, list(columns)], SMALL.small, box)
            for size in range(most + 1)
            for columns in combinations(range(HOT), size)
        )
        for most in range(HOT + 1)
    ]
    found = points(results, "F")
    sizes = [point.terms for point in found]
    assert sizes == sorted(set(sizes))
    assert set(sizes) >= {most for most in range(1, HOT + 1) if best[most] < best[most - 1] - 1e-7}
    assert len(sizes) > len({point.terms for point in points(results, "E")} - {0})
    for point in found:
        assert point.price is None
        assert point.regularised == pytest.approx(best[point.terms], rel=1e-7)
        assert point.lower_bound <= best[point.terms] + 1e-9
        assert point.proved


def test_choices_go_no_way_back(results):
    """E is no worse than any ensemble of B on the way, D no worse than E, at every price."""
    for k, price in enumerate(results["B"]["prices"]):
        e, d = points(results, "E")[k], points(results, "D")[k]
        assert e.price == d.price == price
        for prefix in points(results, "B")[:HOT]:
            assert e.regularised + price * e.terms <= prefix.regularised + price * prefix.terms + 1e-9
        for other in points(results, "E"):
            assert d.regularised + price * d.terms <= other.regularised + price * other.terms + 1e-9
        assert d.columns >= HOT


def test_c_and_d_end(results):
    for name in "CD":
        for point in points(results, name):
            assert point.columns <= SMALL.columns
            assert point.lower_bound <= point.regularised + point.price * point.terms + 1e-12
            if point.proved:
                assert point.lower_bound == pytest.approx(
                    point.regularised + point.price * point.terms, abs=2e-9
                )


def test_twice_the_same(table, results):
    for name in "ABCDEF":
        needs = {other: results[other] for other in NEEDS[name]}
        assert run_experiment(name, *table, 0, HOT, SMALL, needs) == results[name]


def test_the_paper_s_settings():
    own = Settings()
    assert (own.columns, own.prices, own.epsilon, own.bits) == (100, 20, 5e-4, 6)
    assert list(HOT_START.values()) == [40, 20, 20, 10, 40, 15, 30, 40, 30, 5, 40, 40]

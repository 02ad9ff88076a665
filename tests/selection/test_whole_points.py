"""Whole points against all of them, each with its best unit and intercept by another solver."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from cardboost.data.weights import RowWeights
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.problem.losses import SquaredLoss, get_loss
from cardboost.problem.prices import FeatureLimits, Prices
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection.polish import polish
from cardboost.selection.selection_problem import SelectionProblem
from cardboost.selection.whole_points import Scale, accepts, choose_points
from marks import first

BOX = 15.0


@pytest.fixture(autouse=True, scope="module")
def one_thread_for_references():
    with threadpool_limits(1):
        yield


def problem_for(
    seed, columns=4, rows=50, loss="logistic", intercept=True, k=None, l0=0.0, box=np.inf, limits=None
):
    """Columns of signs that agree with most rows, y multiplied in, behind the intercept's two."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(rows) < 0.6, 1, -1)
    A = np.where(rng.random((rows, columns)) < rng.uniform(0.55, 0.8, columns), 1, -1)
    n_free = 2 if intercept else 0
    if intercept:
        A = np.column_stack([y, -y, A])
    charged = np.arange(A.shape[1]) >= n_free
    prices = Prices(
        np.where(charged, 1e-3, 0.0),
        np.where(charged, 0.01, 0.0),
        np.where(charged, l0, 0.0),
        np.where(charged, box, BOX),
        charged,
    )
    pool = MatrixPool(ColumnStore(np.ascontiguousarray(A.T)), np.arange(A.shape[1], dtype=np.int32))
    weights = RowWeights.make(rows, rng.integers(1, 4, rows).astype(float))
    risk = EmpiricalRisk(get_loss(loss), weights, None)
    groups = None if limits is None else np.where(charged, np.arange(A.shape[1]) // 2, -1).astype(np.int32)
    return SelectionProblem(pool, risk, prices, k, groups, limits)


def value_of(problem, points, unit, intercept):
    """The objective from its definition."""
    A, p = problem.pool.dense().astype(float), problem.prices
    share = problem.risk.weights.normalised
    weights = unit * points
    F = A @ weights + (intercept * A[:, 0] if not p.charged.all() else 0.0)
    loss = np.exp(-F) if problem.risk.loss.name == "exponential" else np.logaddexp(0.0, -F)
    used = np.flatnonzero(points)
    price = p.l1 @ weights + 0.5 * p.l2 @ weights**2 + p.l0[used].sum()
    return float(share @ loss + price + problem.feature_cost(used))


def best_unit(problem, points):
    """Best value over unit and intercept, by L-BFGS-B."""
    used = points > 0
    top = np.min(problem.prices.max_weight[used] / points[used], initial=50.0) if used.any() else 0.0
    free = not problem.prices.charged.all()
    box = [(0.0, min(top, 50.0)), (-BOX, BOX) if free else (0.0, 0.0)]
    found = minimize(
        lambda x: value_of(problem, points, x[0], x[1]), [min(0.3, top), 0.1 if free else 0.0],
        method="L-BFGS-B", bounds=box, options={"ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    return float(found.fun)


def every_choice(problem, most):
    charged = np.flatnonzero(problem.prices.charged)
    for values in itertools.product(range(most + 1), repeat=len(charged)):
        if math.gcd(*values) > 1:
            continue  # the same as its part
        points = np.zeros(len(problem.prices), dtype=np.int64)
        points[charged] = values
        if problem.allows(np.flatnonzero(points)):
            yield points


def check(problem, found, most):
    """What holds of any result."""
    points = found.points
    assert (points >= 0).all()
    assert (points <= most).all()
    assert (points[~problem.prices.charged] == 0).all()
    assert problem.allows(np.flatnonzero(points))
    charged = problem.prices.charged
    assert (found.weights[charged] == found.unit * points[charged]).all()
    assert (found.weights <= problem.prices.max_weight).all()
    intercept = 0.0 if charged.all() else found.weights[0] - found.weights[1]
    assert found.objective == pytest.approx(value_of(problem, points, found.unit, intercept), abs=1e-10)


CASES = [
    {"loss": loss, "intercept": intercept, "k": k, "l0": l0, "box": box}
    for loss, intercept, k, l0, box in itertools.product(
        ("logistic", "exponential"), (True, False), (None, 2), (0.0, 0.01), (np.inf, 0.4)
    )
]


@pytest.mark.parametrize("number", first(10, sorted(range(len(CASES)), key=lambda n: 11 * n % len(CASES))))
def test_points_are_the_best_of_all(number):
    problem = problem_for(number, **CASES[number])
    start = polish(problem)[0]
    found = choose_points(problem, start.weights, 3)
    check(problem, found, 3)
    best = min(best_unit(problem, points) for points in every_choice(problem, 3))
    assert found.objective == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("number", range(6))
def test_limits_on_features_hold(number):
    costs = np.linspace(0.0, 0.02, 4) if number % 2 else None
    limits = FeatureLimits.make(None if number % 3 == 0 and number % 2 else 1, costs)
    problem = problem_for(number, limits=limits, k=None)
    found = choose_points(problem, polish(problem)[0].weights, 2)
    check(problem, found, 2)
    best = min(best_unit(problem, points) for points in every_choice(problem, 2))
    assert found.objective == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("seed", first(2, range(5)))
def test_more_points_and_more_terms_never_cost(seed):
    problem = problem_for(seed, columns=10, rows=200)
    start = polish(problem)[0].weights
    found = [choose_points(problem, start, most) for most in (1, 2, 4, 8, 16, 64)]
    values = [own.objective for own in found]
    convex = polish(problem)[0].objective
    assert all(convex - 1e-9 <= value for value in values)
    # a search, not a proof: what a finer one misses is next to nothing
    assert all(later <= before + 1e-4 for before, later in itertools.pairwise(values))
    empty = best_unit(problem, np.zeros(len(start), dtype=np.int64))
    assert values[-1] - convex < 1e-4 * (empty - convex)


def test_weights_of_too_many_columns_are_thinned_out():
    problem = problem_for(3, columns=10, rows=200)
    start = polish(problem)[0].weights
    few = problem_for(3, columns=10, rows=200, k=3)
    found = choose_points(few, start, 5)
    check(few, found, 5)
    direct = choose_points(few, polish(few)[0].weights, 5)
    assert found.objective <= direct.objective + 1e-4


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_a_given_unit_is_kept_and_intercepts_lie_on_its_grid(loss):
    problem = problem_for(1, columns=6, rows=200, loss=loss)
    start = polish(problem)[0]
    scale = Scale(0.0125, 0.3)
    found = choose_points(problem, start.weights, 1000, scale=scale)
    check(problem, found, 1000)
    assert found.unit == scale.unit
    intercept = found.weights[0] - found.weights[1]
    steps = (intercept - scale.start) / scale.unit - found.points.sum()
    assert steps / 2 == pytest.approx(round(steps / 2), abs=1e-6)
    assert found.objective - start.objective < 1e-4


def test_the_order_of_rows_and_threads_do_not_show():
    problem = problem_for(5, columns=8, rows=150)
    start = polish(problem)[0].weights
    again = problem_for(5, columns=8, rows=150)
    one, two = choose_points(problem, start, 7), choose_points(again, start, 7)
    assert (one.points == two.points).all()
    assert one.unit == two.unit


def test_nothing_to_choose_from():
    problem = problem_for(0)
    found = choose_points(problem, np.zeros(len(problem.prices)), 5)
    check(problem, found, 5)
    boxed = problem_for(0, box=0.0)
    found = choose_points(boxed, np.zeros(len(problem.prices)), 5)
    assert not found.points.any()
    assert not found.weights[2:].any()


def test_no_time_gives_a_result_all_the_same(work_clock):
    problem = problem_for(2, columns=12, rows=400)
    start = polish(problem)[0].weights
    began = work_clock.seconds
    found = choose_points(problem, start, 10, late=lambda: True)
    assert work_clock.seconds - began < 0.5
    check(problem, found, 10)
    assert found.points.any()


def test_refusals():
    problem = problem_for(0)
    risk = EmpiricalRisk(SquaredLoss(), RowWeights.make(50, None), None, target=np.zeros(50))
    real = SelectionProblem(problem.pool, risk, problem.prices, None)
    assert accepts(problem) is None
    assert "not squared" in accepts(real)
    with pytest.raises(ValueError, match="not squared"):
        choose_points(real, np.zeros(len(problem.prices)), 3)

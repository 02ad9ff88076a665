"""The soft margin in NumPy: bounds hold, conditions are those of the optimum, and solvers agree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardboost.reproduce.conjugate_gradient import (
    SMALL_MATRIX,
    SMALL_RADIUS,
    check_criterion,
    check_decrease,
)
from cardboost.reproduce.independent import by_cone, by_slsqp, dual_value, hard_margin, kkt, soft_margin
from cardboost.solvers import minimize_on_simplex

SMALL = np.array(SMALL_MATRIX, dtype=float)


def problem(seed, rows=12, columns=7):
    rng = np.random.default_rng(seed)
    return rng, np.where(rng.random((rows, columns)) < 0.6, 1.0, -1.0)


@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 30.0, 1e4]))
def test_no_point_is_below_the_dual_value_of_any_shares(seed, radius):
    rng, A = problem(seed)
    p = rng.dirichlet(np.full(12, 0.3))
    w = radius * rng.dirichlet(np.ones(7))
    assert dual_value(A, p, radius) <= soft_margin(A, w)[0] + 1e-9 * radius


@given(st.integers(0, 10**6), st.sampled_from([0.5, 5.0]))
def test_conditions_and_bound_are_tight_at_the_optimum_only(seed, radius):
    rng, A = problem(seed)
    best = minimize_on_simplex(A, radius, tol=1e-12)
    value, p = soft_margin(A, best.x)
    assert value == pytest.approx(best.fun, abs=1e-12)
    assert value - dual_value(A, p, radius) < 1e-10
    assert max(kkt(A, best.x, radius).values()) < 1e-5
    w = radius * rng.dirichlet(np.ones(7))
    if soft_margin(A, w)[0] > value + 1e-6:
        assert max(kkt(A, w, radius).values()) > 1e-8


def test_conditions_see_every_fault():
    best = np.array([0.0, 0.5, 0.0])
    assert max(kkt(SMALL, best, 0.5).values()) == 0
    assert kkt(SMALL, np.array([0.5, 0.0, 0.0]), 0.5)["below"] > 0.1
    assert kkt(SMALL, np.array([0.1, 0.4, 0.0]), 0.5)["spread"] > 0.1
    assert kkt(SMALL, np.array([-0.1, 0.6, 0.0]), 0.5)["negative"] == pytest.approx(0.1)
    assert kkt(SMALL, 2 * best, 0.5)["sum_error"] == pytest.approx(0.5)


@given(st.integers(0, 10**6))
def test_no_weights_have_a_larger_least_margin_than_the_hard_one(seed):
    rng, A = problem(seed)
    hard = hard_margin(A)
    w = rng.dirichlet(np.full(7, 0.5))
    p = rng.dirichlet(np.full(12, 0.5))
    assert (A @ w).min() - 1e-9 <= hard <= (A.T @ p).max() + 1e-9


def test_the_hard_margin_of_the_paper_s_matrix():
    assert hard_margin(SMALL) == 0


@pytest.mark.parametrize(("rows", "columns"), [(20, 6), (60, 150)])
def test_slsqp_agrees(rows, columns):
    _, A = problem(1, rows, columns)
    assert by_slsqp(A, 8.0) == pytest.approx(minimize_on_simplex(A, 8.0).fun, abs=1e-7)


def test_a_cone_solver_agrees_or_is_not_there(monkeypatch):
    found = by_cone(SMALL, SMALL_RADIUS)
    assert found is None or found == pytest.approx(minimize_on_simplex(SMALL, SMALL_RADIUS).fun, abs=1e-7)
    monkeypatch.setitem(__import__("sys").modules, "cvxpy", None)
    assert by_cone(SMALL, SMALL_RADIUS) is None


def way(*values, criterion=1.0):
    return [{"number": k, "objective": value, "criterion": criterion} for k, value in enumerate(values)]


def test_check_points_fail_where_they_should():
    centre = np.full(3, 1 / 6)
    value = soft_margin(SMALL, centre)[0]
    assert check_decrease(SMALL, way(value, value - 0.1), {0: centre})["holds"]
    assert not check_decrease(SMALL, way(value, value - 0.1, value - 0.05), {0: centre})["holds"]
    assert not check_decrease(SMALL, way(value - 1e-6, value - 0.1), {0: centre})["holds"]  # not what it says
    assert not check_criterion(way(1.0, 0.5, criterion=1e-9))["holds"]
    assert check_criterion(way(1.0, 0.5, criterion=0.0))["holds"]

"""The solvers on a plain matrix: against SciPy, with true gaps, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from cardboost.solvers import minimize_l1, select_columns


@pytest.fixture(autouse=True, scope="module")
def one_thread_for_references():
    """Threads of BLAS cost more than they bring on problems this small."""
    with threadpool_limits(1):
        yield


def reference(A, l1, l2, loss, box, weight, x):
    """SciPy's L-BFGS-B, started at zero and once more at its end; returns value and weights."""
    s = weight / weight.sum()

    def value(w):
        F = np.clip(A @ w, -500, 500)
        rows = np.logaddexp(0.0, -F) if loss == "logistic" else np.exp(-F)
        slope = -1.0 / (1.0 + np.exp(F)) if loss == "logistic" else -np.exp(-F)
        return s @ rows + l1 @ w + 0.5 * (l2 * w) @ w, A.T @ (s * slope) + l1 + l2 * w

    limits = [(0.0, None if math.isinf(b) else b) for b in box]
    best = value(x)[0], x
    for start in (np.zeros(A.shape[1]), x):
        options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 20_000, "maxfun": 40_000}
        fit = minimize(value, start, jac=True, bounds=limits, method="L-BFGS-B", options=options)
        if fit.fun < best[0]:
            best = fit.fun, fit.x
    return value(x)[0], best[0]


def matrix(kind, rng):
    if kind == "signs":
        return rng.choice([-1.0, 1.0], (80, 25))
    if kind == "ternary":
        return rng.choice([-1.0, 0.0, 1.0], (60, 15))
    if kind == "reals":
        return rng.normal(size=(70, 12))
    if kind == "scaled":
        return rng.normal(size=(50, 8)) * 10.0 ** rng.integers(-3, 3, 8)
    if kind == "tall":
        return rng.choice([-1.0, 1.0], (3000, 4))
    if kind == "wide":
        return rng.choice([-1.0, 1.0], (20, 150))
    if kind == "wide reals":
        return rng.normal(size=(15, 60))
    A = rng.choice([-1.0, 1.0], (60, 8))
    return np.column_stack([A, A, -A, np.zeros((60, 2)), np.ones(60), -np.ones(60)])


KINDS = ["signs", "ternary", "reals", "scaled", "tall", "wide", "wide reals", "repeated"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_agrees_with_scipy(kind, loss, l2):
    rng = np.random.default_rng(KINDS.index(kind))
    A = matrix(kind, rng)
    n = A.shape[1]
    for case in range(3):
        l1 = np.full(n, [0.05, 0.01, 0.002][case])
        pull, box, weight = np.full(n, l2), np.full(n, math.inf), np.ones(len(A))
        if case == 1:
            l1, box = l1 * rng.integers(1, 5, n), rng.choice([0.05, 0.3, math.inf], n)
            pull = pull * rng.integers(1, 4, n)
            weight = rng.integers(0, 4, len(A)).astype(float)
        elif case == 2:
            weight = rng.random(len(A)) + 0.01
        before = A.copy()
        found = minimize_l1(
            A, l1, l2=pull, loss=loss, max_weight=box, sample_weight=None if case == 0 else weight, tol=1e-9
        )
        assert np.array_equal(A, before)
        assert (found.x >= 0).all()
        assert (found.x <= box).all()
        claimed, best = reference(A, l1, pull, loss, box, weight, found.x)
        assert found.fun == pytest.approx(claimed, rel=1e-11)
        assert found.lower_bound <= best * (1 + 1e-10)
        assert found.fun <= best * (1 + 1e-8)
        assert found.success, found.message
        assert found.status == "optimal"
        assert 0.0 <= found.gap <= 1e-9 * found.fun
        assert found.gap == pytest.approx(found.fun - found.lower_bound, abs=1e-15)


def test_the_dual_proves_the_bound():
    """Row weights, one per row that has a weight: the bound can be recomputed from them."""
    rng = np.random.default_rng(20)
    A = rng.choice([-1.0, 1.0], (100, 20))
    for loss in ("exponential", "logistic"):
        found = minimize_l1(A, 0.02, l2=0.1, loss=loss)
        s = np.full(100, 0.01)
        u = found.dual
        v = u / s
        dual = v - v * np.log(v) if loss == "exponential" else -v * np.log(v) - (1 - v) * np.log1p(-v)
        kappa = np.maximum(0.0, A.T @ u - 0.02) ** 2 / 0.2
        assert s @ dual - kappa.sum() == pytest.approx(found.lower_bound, abs=1e-8)


def test_scalars_and_arrays_say_the_same():
    rng = np.random.default_rng(21)
    A = rng.choice([-1, 1], (50, 6)).astype(np.int8)
    one = minimize_l1(A, 0.05, l2=0.01, max_weight=0.2)
    for table in (
        A.astype(float),
        np.asfortranarray(A),
        A.tolist(),
        A.astype(np.float32),
        A.astype(np.int64),
    ):
        other = minimize_l1(table, np.full(6, 0.05), l2=np.full(6, 0.01), max_weight=np.full(6, 0.2))
        assert np.array_equal(one.x, other.x)
        assert one.fun == other.fun


@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_threads_and_order_of_rows_change_nothing(l2):
    rng = np.random.default_rng(22)
    order = rng.permutation(300)
    for A in (rng.choice([-1.0, 1.0], (300, 30)), rng.normal(size=(300, 10))):
        one = minimize_l1(A, 0.01, l2=l2, loss="logistic")
        again = minimize_l1(A, 0.01, l2=l2, loss="logistic", n_jobs=7)
        assert np.array_equal(one.x, again.x)
        if l2 == 0.0:
            assert np.array_equal(one.x, minimize_l1(A[order], 0.01, l2=l2, loss="logistic").x)
        else:
            assert np.allclose(one.x, minimize_l1(A[order], 0.01, l2=l2, loss="logistic").x, atol=1e-6)


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(23)
    A = rng.choice([-1.0, 1.0], (60, 12))
    weight = rng.integers(0, 4, 60).astype(float)
    one = minimize_l1(A, 0.02, sample_weight=weight)
    twice = minimize_l1(np.repeat(A, weight.astype(int), axis=0), 0.02)
    assert one.fun == pytest.approx(twice.fun, rel=1e-12)
    assert len(one.dual) == np.count_nonzero(weight)
    for factor in (1e300, 1e-300):
        scaled = minimize_l1(A, 0.02, sample_weight=factor * weight)
        assert scaled.fun == pytest.approx(one.fun, rel=1e-10)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("l1", [1e-3, 1e-6, 1e-9])
def test_separable_rows_with_a_tiny_price(loss, l1):
    rng = np.random.default_rng(24)
    A = rng.choice([-1.0, 1.0], (30, 6))
    A[:, 0] = 1.0
    found = minimize_l1(A, l1, loss=loss)
    assert np.isfinite(found.x).all()
    assert found.fun < 0.05
    assert 0.0 <= found.gap <= 1e-6
    one = minimize_l1(np.ones((5, 1)), l1, loss=loss)
    best = -math.log(l1) if loss == "exponential" else math.log((1 - l1) / l1)
    assert one.x[0] == pytest.approx(best, rel=1e-3)


def test_without_a_price_separable_rows_still_end():
    for loss in ("exponential", "logistic"):
        found = minimize_l1(np.ones((5, 2)), 0.0, loss=loss, max_iter=200)
        assert np.isfinite(found.x).all()
        assert 0.0 <= found.fun < 1e-3
        assert found.lower_bound >= 0.0


def test_nothing_is_worth_its_price():
    A = np.random.default_rng(25).choice([-1.0, 1.0], (40, 5))
    found = minimize_l1(A, 2.0)
    assert not found.x.any()
    assert found.fun == 1.0
    assert found.success
    assert not minimize_l1(-np.ones((4, 2)), 0.0).x.any()
    assert not minimize_l1(np.zeros((4, 2)), 0.1).x.any()


def test_columns_in_a_box_of_zero_are_never_used():
    A = np.random.default_rng(26).choice([-1.0, 1.0], (40, 5))
    box = np.array([0.0, np.inf, 0.0, np.inf, 1.0])
    for l2 in (0.0, 0.1):
        found = minimize_l1(A, 0.01, l2=l2, max_weight=box)
        assert not found.x[[0, 2]].any()
        assert found.success


@pytest.mark.parametrize("l2", [0.0, 0.001])
def test_history_callback_and_limits(l2):
    rng = np.random.default_rng(27)
    A = rng.choice([-1.0, 1.0], (300, 150))
    whole = minimize_l1(A, 1e-3, l2=l2)
    assert whole.success
    assert whole.nit > 2
    objectives = [record.objective for record in whole.history]
    assert objectives == sorted(objectives, reverse=True)
    bounds = [record.lower_bound for record in whole.history]
    assert bounds == sorted(bounds)
    assert objectives[-1] == pytest.approx(whole.fun, rel=1e-12)
    assert "1e-08" in whole.message

    seen = []
    stopped = minimize_l1(A, 1e-3, l2=l2, callback=lambda record: seen.append(record) or len(seen) == 2)
    assert len(seen) == len(stopped.history) == 2
    assert (stopped.status, stopped.success) == ("stopped", False)
    assert "callback" in stopped.message
    assert stopped.gap > whole.gap
    assert stopped.lower_bound <= whole.fun <= stopped.fun

    short = minimize_l1(A, 1e-3, l2=l2, max_iter=2)
    assert (short.status, short.success) == ("iteration limit", False)
    assert "max_iter" in short.message
    assert short.nit < whole.nit
    assert short.lower_bound <= whole.fun <= short.fun

    precise = minimize_l1(A, 1e-3, l2=l2, tol=0.0)
    assert precise.status in ("optimal", "precision")
    assert precise.success == (precise.status == "optimal")
    assert precise.fun <= whole.fun * (1 + 1e-15)
    assert precise.gap <= 1e-10


SIGNS = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    "solve", [minimize_l1, lambda A, l1, **k: select_columns(A, l1=l1, max_terms=1, **k)]
)
def test_bad_input_of_both(solve):
    def refused(message, A=SIGNS, l1=0.1, error=ValueError, **more):
        with pytest.raises(error, match=message):
            solve(A, l1, **more)

    for value in (math.nan, math.inf, -math.inf):
        broken = SIGNS.copy()
        broken[2, 1] = value
        refused("^A.*(NaN|infinity)", broken)
    refused("^A.*dimensions", SIGNS[0])
    refused("^A.*dimensions", SIGNS[None])
    refused("^A.*dimensions", 1.0)
    refused("^A", np.empty((0, 2)))
    refused("^A", np.empty((2, 0)))
    refused("^A", [["x", "y"]])
    refused("^A", SIGNS + 1j)
    refused("^A", None)
    refused("^A", [[1.0, 2.0], [1.0]])
    refused("loss.*'logistic'", loss="huber")
    refused("loss", loss=None)
    for name in ("l1", "l2", "max_weight"):
        for value in (
            -0.1,
            math.nan,
            [0.1, -0.1],
            [0.1, math.nan],
            [0.1],
            [0.1] * 3,
            [[0.1, 0.1]],
            "x",
            [None, 1],
        ):
            more = {} if name == "l1" else {name: value}
            refused(name, l1=value if name == "l1" else 0.1, **more)
    for name in ("l1", "l2"):
        refused(name, l1=math.inf if name == "l1" else 0.1, **({} if name == "l1" else {name: math.inf}))
    refused("max_weight", max_weight=0.0)
    for weight in (
        [1, 1, 1],
        [1, 1, 1, -1],
        [0] * 4,
        [1, 1, 1, math.nan],
        [1, 1, 1, math.inf],
        1.0,
        [[1] * 4],
    ):
        refused("sample_weight", sample_weight=weight)
    refused("sample_weight", sample_weight=["x"] * 4)
    refused("n_jobs", n_jobs=0)


@pytest.mark.parametrize("tol", [-1e-9, math.nan, None, "small"])
def test_bad_tolerance(tol):
    with pytest.raises((ValueError, TypeError), match="tol"):
        minimize_l1(SIGNS, 0.1, tol=tol)


@pytest.mark.parametrize("max_iter", [-1, 1.5, None, "many"])
def test_bad_iteration_limit(max_iter):
    with pytest.raises((ValueError, TypeError), match="max_iter"):
        minimize_l1(SIGNS, 0.1, max_iter=max_iter)


def test_bad_input_of_select_columns():
    def refused(message, **more):
        with pytest.raises((ValueError, TypeError), match=message):
            select_columns(SIGNS, **more)

    refused("max_terms.*l0")
    refused("max_terms.*l0", l0=0.0)
    for value in (-1, 1.5, "two", True, math.nan, math.inf):
        refused("max_terms", max_terms=value)
    for value in (-1.0, math.nan, math.inf, [0.1], "x"):
        refused("l0", l0=value)
    for method in ("annealing", "", None, object()):
        refused("method.*'exact'.*'polish'", max_terms=1, method=method)
    for bits in (0, -1, 17, 1.5, True, "many", None, math.nan):
        refused("bits.*16", max_terms=1, method="tabu", bits=bits)
    for nodes in (0, -1, 1.5, "many"):
        refused("max_nodes", max_terms=1, max_nodes=nodes)
    for limit in (-1.0, 0.0, math.nan, "soon"):
        refused("time_limit", max_terms=1, time_limit=limit)


def test_select_columns_takes_its_time_limit(work_clock):
    A = np.random.default_rng(30).choice([-1.0, 1.0], (2000, 120))
    found = select_columns(A, max_terms=30, l2=0.01, loss="logistic", time_limit=0.3)
    assert work_clock.seconds <= 1.1 * 0.3 + 0.5  # the promise of every time limit
    assert found.certificate.verify(A)
    assert len(found.support) <= 30
    full = select_columns(A[:200, :20], max_terms=3, l2=0.01, loss="logistic", time_limit=60.0)
    assert full.objective == select_columns(A[:200, :20], max_terms=3, l2=0.01, loss="logistic").objective

"""The convex master against SciPy's L-BFGS-B on the same problem, its optimality conditions and its bound."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from cardboost.data.binning import bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.base import ColumnPool
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.master.newton import Master
from cardboost.problem.bound import dual_bound
from cardboost.problem.losses import LOSSES, SQUARED
from cardboost.problem.prices import PriceRule, Prices
from cardboost.problem.risk import EmpiricalRisk

ALL = [LOSSES["exponential"], LOSSES["logistic"], SQUARED]


@dataclass
class Problem:
    """A pool, its risk and its prices, and the same thing as a dense matrix."""

    pool: ColumnPool
    risk: EmpiricalRisk
    prices: Prices

    def master(self) -> Master:
        return Master(self.pool, self.risk, lambda pool: self.prices[: pool.n_columns])

    def objective(self, w: np.ndarray, prices: Prices | None = None) -> tuple[float, np.ndarray]:
        """The relaxed objective and its gradient, from the dense columns."""
        p = self.prices if prices is None else prices
        a, s = self.pool.dense().astype(float), self.risk.weights.normalised
        F, over = a @ w - target_of(self.risk), np.maximum(0.0, w - p.knee)
        value = self.risk.loss.value(F, s) + p.slope @ w + 0.5 * p.l2 @ (over * over)
        return value, a.T @ (s * self.risk.loss.derivative(F)) + p.slope + p.l2 * over

    def scipy(self, prices: Prices | None = None) -> tuple[float, np.ndarray]:
        p = self.prices if prices is None else prices
        w = np.zeros(len(p))
        for _ in range(3):  # a restart clears its memory and gains the last digits
            w = minimize(
                lambda w: self.objective(w, prices), w, jac=True, method="L-BFGS-B",
                bounds=[(0, None if np.isinf(m) else m) for m in p.max_weight],
                options={"ftol": 1e-16, "gtol": 1e-13, "maxiter": 3000, "maxfun": 10000, "maxcor": 30},
            ).x  # fmt: skip
        return self.objective(w, prices)[0], w


def target_of(risk) -> np.ndarray | float:
    return 0.0 if risk.target is None else risk.target


def make_pool(rng, kind, rows, n, weights, loss) -> tuple[ColumnPool, EmpiricalRisk]:
    y = np.where(rng.random(rows) < 0.6, 1, -1).astype(np.int8)
    target = None if loss is not SQUARED else 0.7 * y + rng.standard_t(3, rows)
    if kind == "stumps":
        X = np.round(rng.normal(size=(rows, 4)) + 0.4 * y[:, None], 1)
        X[rng.random(X.shape) < 0.1] = np.nan
        matrix = bin_table(read_table(X), weights, 8, 1)
        sign = y if target is None else None
        dictionary = StumpDictionary(matrix, sign)
        risk = EmpiricalRisk(loss, weights, sign, target=target)
        pool = dictionary.pool()
        point = risk.evaluate(rng.normal(size=rows))
        pool.append(dictionary.best_columns(point, n, pool).atoms)
        return pool, risk
    a = np.sign(rng.normal(size=(n, rows)) + 0.3 * y) * (y if target is None else 1)
    if kind == "real":
        a = a * rng.uniform(0.2, 2, a.shape)
    pool = MatrixPool(ColumnStore(a), np.arange(n))
    return pool, EmpiricalRisk(loss, weights, None, target=target)


@st.composite
def problems(draw, largest=12):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.integers(4, 120))
    raw = {"none": None, "counts": rng.integers(1, 5, rows).astype(float), "real": rng.uniform(0.1, 2, rows)}
    weights = RowWeights.make(rows, raw[draw(st.sampled_from(sorted(raw)))])
    loss = draw(st.sampled_from(ALL))
    kind = draw(st.sampled_from(["stumps", "signs", "real"]))
    pool, risk = make_pool(rng, kind, rows, draw(st.integers(1, largest)), weights, loss)
    l0, l1, l2, box = draw(
        st.sampled_from(
            [
                # l0, l1, l2, box
                (0.0, 0.01, 0.0, np.inf),
                (0.0, 0.001, 0.0, 2.0),
                (0.0, 0.0, 0.05, np.inf),
                (0.0, 0.002, 0.01, 0.5),
                (0.01, 0.001, 0.0, 1.0),
                (0.01, 0.001, 0.05, np.inf),
                (0.005, 0.0, 0.05, 0.3),
            ]
        )
    )
    prices = PriceRule(l1, l2, l0, box, intercept_box=3.0).prices(pool.n_columns, pool.n_free)
    if draw(st.booleans()):  # a price per column
        scale = [rng.uniform(0.5, 2, len(prices)) for _ in range(4)]
        parts = (prices.l1, prices.l2, prices.l0, prices.max_weight)
        prices = Prices(*(part * factor for part, factor in zip(parts, scale, strict=True)), prices.charged)
    return rng, Problem(pool, risk, prices)


@given(problems())
@settings(max_examples=60)
def test_agrees_with_scipy(case):
    _, problem = case
    solution = problem.master().solve(tol=1e-10)
    reference, _ = problem.scipy()
    assert solution.objective == pytest.approx(problem.objective(solution.weights)[0], rel=1e-11)
    assert solution.objective == pytest.approx(reference, rel=1e-9)
    assert solution.lower_bound <= reference * (1 + 1e-9)
    assert solution.lower_bound <= solution.objective
    assert solution.gap == pytest.approx(solution.objective - solution.lower_bound, abs=1e-15)
    assert solution.gap <= 1e-7 * solution.objective, "the bound belongs to the last weights, stalled or not"
    assert (solution.weights >= 0).all()
    assert (solution.weights <= problem.prices.max_weight).all()


@given(problems())
@settings(max_examples=200)
def test_reaches_its_default_tolerance(case):
    """The objective cannot show the last steps (they gain less than its rounding); the gap must get there."""
    solution = case[1].master().solve()
    assert solution.status == "optimal"
    assert solution.gap <= 1e-8 * solution.objective


@given(problems())
@settings(max_examples=60)
def test_optimality_conditions(case):
    _, problem = case
    w = problem.master().solve(tol=1e-13, max_iter=300).weights
    _, g = problem.objective(w)
    size = 1e-6 * (1 + np.abs(problem.pool.dense()).max())
    assert (g[w < problem.prices.max_weight] >= -size).all()
    assert (g[w > 0] <= size).all()


@given(problems())
@settings(max_examples=60)
def test_any_row_weights_bound_the_optimum(case):
    rng, problem = case
    reference, w = problem.scipy()
    for margins in (rng.normal(size=problem.pool.dense().shape[0]), problem.pool.margins(w * 0.9)):
        point = problem.risk.evaluate(margins)
        bound, theta = dual_bound(point, problem.pool.edges(point), problem.prices)
        assert bound <= reference * (1 + 1e-9)
        assert 0 <= theta <= 1


@given(problems())
@settings(max_examples=60)
def test_columns_outside_the_pool_count(case):
    """A bound over all columns from the edges of some and the largest edge of the others."""
    rng, problem = case
    n, n_free = problem.pool.n_columns, problem.pool.n_free
    prices = PriceRule(0.004, 0.02 if n % 2 else 0.0, 0.01 if n % 3 else 0.0, 1.5, 3.0).prices(n + 1, n_free)
    whole = Problem(problem.pool, problem.risk, prices[:n])
    reference, _ = whole.scipy()
    some = n_free + int(rng.integers(0, n - n_free + 1))
    point = problem.risk.evaluate(rng.normal(0, 0.5, size=whole.pool.dense().shape[0]))
    edges = whole.pool.edges(point)
    outside = float(edges[some:].max(initial=-np.inf))
    bound, _ = dual_bound(point, edges[:some], prices[:some], None, outside, prices[-1:])
    assert bound <= reference * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(9))
def test_bound_with_a_budget_of_columns(seed):
    """Against every choice of at most k charged columns, each refitted."""
    rng = np.random.default_rng(seed)
    loss, k, rows = ALL[seed // 3], 2, 40
    weights = RowWeights.make(rows, rng.uniform(0.5, 2, rows))
    pool, risk = make_pool(rng, ["stumps", "signs", "real"][seed % 3], rows, 5, weights, loss)
    prices = PriceRule(0.002, 0.02, 0.003, 1.0, 3.0).prices(pool.n_columns, pool.n_free)
    problem = Problem(pool, risk, prices)
    charged = np.flatnonzero(prices.charged)
    best = np.inf
    for size in range(k + 1):
        for support in combinations(charged, size):
            box = np.where(prices.charged, 0.0, prices.max_weight)
            box[list(support)] = prices.max_weight[list(support)]
            w = problem.scipy(Prices(prices.l1, prices.l2, 0 * prices.l0, box, prices.charged))[1]
            F = pool.dense() @ w - target_of(risk)
            best = min(best, risk.loss.value(F, weights.normalised) + prices.cost(w))
    master = problem.master()
    solution = master.solve(tol=1e-10)
    points = [master.point, *(risk.evaluate(rng.normal(0, 0.5, rows)) for _ in range(3))]
    for point in points:
        edges = pool.edges(point)
        assert dual_bound(point, edges, prices, k)[0] <= best * (1 + 1e-9)
        few = pool.n_free + 2
        outside = float(edges[few:].max())
        bound, _ = dual_bound(point, edges[:few], prices[:few], k, outside, prices[-1:])
        assert bound <= best * (1 + 1e-9)
    assert solution.lower_bound <= best * (1 + 1e-9)


@given(problems(6))
@settings(max_examples=40)
def test_warm_start_after_more_columns(case):
    _, problem = case
    pool = problem.pool
    some = pool.n_free + (pool.n_columns - pool.n_free) // 2
    small = pool.subset(np.arange(some))
    master = Master(small, problem.risk, lambda own: problem.prices[: own.n_columns])
    first = master.solve(tol=1e-10)
    rest = pool.stumps[some:] if hasattr(pool, "stumps") else pool.which[some:]
    small.append(rest)
    master.extend()
    assert master.objective == first.objective
    second = master.solve(tol=1e-10)
    assert second.objective <= first.objective
    assert second.objective == pytest.approx(problem.scipy()[0], rel=1e-9)


def test_other_prices_on_the_same_columns():
    rng = np.random.default_rng(4)
    weights = RowWeights.make(80, None)
    pool, risk = make_pool(rng, "stumps", 80, 8, weights, LOSSES["logistic"])
    master = Master(pool, risk, lambda own: PriceRule(1e-3, 0.0).prices(own.n_columns, own.n_free))
    master.solve(tol=1e-10)
    boxed = PriceRule(2e-3, 0.01, 0.0, 0.1)
    master.reprice(lambda own: boxed.prices(own.n_columns, own.n_free))
    assert master.weights[2:].max() <= 0.1
    solution = master.solve(tol=1e-10)
    problem = Problem(pool, risk, boxed.prices(pool.n_columns, pool.n_free))
    assert solution.objective == pytest.approx(problem.scipy()[0], rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_separable_rows_end_at_a_finite_optimum(loss):
    y = np.array([1, 1, -1, -1], dtype=np.int8)
    weights = RowWeights.make(4, None)
    dictionary = StumpDictionary(bin_table(read_table(y[:, None].astype(float)), weights, 255, 1), y)
    risk = EmpiricalRisk(LOSSES[loss], weights, y)
    pool = dictionary.pool()
    pool.append(dictionary.best_columns(risk.evaluate(np.zeros(4)), 1, pool).atoms)
    for l1 in (1e-2, 1e-6, 1e-12):
        master = Master(pool, risk, lambda own, l1=l1: PriceRule(l1, 0.0).prices(own.n_columns, own.n_free))
        solution = master.solve(tol=1e-8)
        expected = {
            "exponential": -np.log(l1),
            "logistic": np.log(1 / l1 - 1),
            "squared_hinge": 1 - l1 / 2,
            "smooth_hinge": 1 - l1 / 4,
        }
        assert solution.weights[2] == pytest.approx(expected[loss], rel=1e-4)
        # a hinge ends at l1 itself, of which a share of 1e-8 is less than the room for rounding
        assert solution.status == "optimal" or l1 < 1e-9 or solution.gap < 1e-12
        assert np.isfinite(solution.objective)


def test_an_empty_pool():
    weights = RowWeights.make(5, None)
    risk = EmpiricalRisk(LOSSES["logistic"], weights, None)
    pool = MatrixPool(ColumnStore(np.ones((2, 5))))
    solution = Master(pool, risk, lambda own: PriceRule(0.1, 0.0).prices(own.n_columns, 0)).solve()
    assert solution.objective == pytest.approx(np.log(2))
    assert solution.status == "optimal"


def test_a_box_of_zero_forbids_a_column():
    rng = np.random.default_rng(2)
    weights = RowWeights.make(60, None)
    pool, risk = make_pool(rng, "signs", 60, 5, weights, LOSSES["exponential"])
    prices = PriceRule(1e-3, 0.0, 0.0, 1.0).prices(5, 0)
    box = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    problem = Problem(pool, risk, Prices(prices.l1, prices.l2, prices.l0, box, prices.charged))
    solution = problem.master().solve(tol=1e-10)
    assert solution.weights[1] == solution.weights[3] == 0.0
    assert solution.objective == pytest.approx(problem.scipy()[0], rel=1e-9)

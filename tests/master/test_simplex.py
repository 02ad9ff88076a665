"""Functions on the simplex: the laws of the paper, bounds that hold, and other solvers' answers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import make_classification

from cardboost.data.binning import bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.master.mprp import feasible_direction, tangent
from cardboost.master.simplex import DictionaryOracle, newton_on_simplex, soft_point
from cardboost.problem.losses import get_loss
from cardboost.problem.risk import EmpiricalRisk
from cardboost.solvers import minimize_on_simplex
from cardboost.solvers.on_simplex import project
from marks import first

PAPER = np.array([[-1, 1, 1], [-1, 1, 1], [-1, 1, -1], [1, -1, -1]])


def lse(A, w, weight=None):
    F = -(A @ w) + (0.0 if weight is None else np.log(weight))
    top = F.max()
    return top + math.log(np.exp(F - top).sum())


def random_matrix(seed, rows=40, columns=12):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((rows, columns)) < rng.uniform(0.45, 0.75, columns), 1, -1)


# ------------------------------------------------------------------------------------ projections


@st.composite
def places(draw):
    n = draw(st.integers(1, 8))
    w = np.array(draw(st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0]), min_size=n, max_size=n)))
    if not w.any():
        w[draw(st.integers(0, n - 1))] = 1.0
    values = st.sampled_from([-2.0, -1.0, 0.0, 0.0, 0.3, 1.0, 1.0, 5.0])
    return w, np.array(draw(st.lists(values, min_size=n, max_size=n)))


def nearest(w, d):
    """Every choice of which boundary weights stay: the nearest direction among those that are allowed."""
    n, edge = len(d), np.flatnonzero(w == 0)
    best, where = np.inf, None
    for mask in range(2 ** len(edge)):
        free = np.ones(n, dtype=bool)
        free[edge[[k for k in range(len(edge)) if mask >> k & 1]]] = False
        if not free.any():
            continue
        y = np.where(free, d - d[free].mean(), 0.0)
        if (y[edge] >= -1e-12).all() and (found := np.sum((d - y) ** 2)) < best - 1e-12:
            best, where = found, y
    return where


@given(places())
@settings(max_examples=300)
def test_the_feasible_direction_is_the_nearest_one(case):
    w, d = case
    found = feasible_direction(w, d)
    np.testing.assert_allclose(found, nearest(w, d), atol=1e-12)
    inner = tangent(w, found)
    wall, rest = found - inner, d - found
    for one, two in ((inner, wall), (inner, rest), (wall, rest)):  # Definition 3
        assert abs(one @ two) < 1e-10
    assert abs(found.sum()) < 1e-12


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.sampled_from([0.1, 1.0, 7.0]))
def test_projection_to_the_simplex(values, radius):
    v = np.array(values)
    x = project(v, radius)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(radius)
    gradient = x - v
    assert gradient @ x - radius * gradient.min() < 1e-9  # optimal: no vertex is downhill


# ------------------------------------------------------------------------------------ solvers


@pytest.mark.parametrize("method", ["newton", "mprp"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("radius", [0.3, 2.0, 8.0])
def test_both_methods_agree_with_slsqp_and_the_gap_is_a_bound(method, seed, radius):
    A = random_matrix(seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(A)).astype(float) if seed % 2 else None
    result = minimize_on_simplex(A, radius, method=method, tol=1e-9, sample_weight=weight)
    assert result.success
    assert result.gap <= 1e-9
    assert (result.x >= 0).all()
    assert result.x.sum() == pytest.approx(radius, rel=1e-12)
    assert result.fun == pytest.approx(lse(A, result.x, weight), abs=1e-11)
    other = minimize(
        lambda w: lse(A, w, weight), np.full(A.shape[1], radius / A.shape[1]), method="SLSQP",
        bounds=[(0, None)] * A.shape[1], constraints={"type": "eq", "fun": lambda w: w.sum() - radius},
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    assert result.fun == pytest.approx(other.fun, abs=2e-6)
    assert result.lower_bound <= other.fun + 1e-9
    for record in result.history:  # every gap on the way was a bound
        assert record.objective - record.gap <= result.history[-1].objective + 1e-10


@pytest.mark.parametrize("method", ["newton", "mprp"])
def test_the_value_never_rises_and_every_step_is_on_the_simplex(method):
    A = random_matrix(3, 80, 30)
    result = minimize_on_simplex(A, 5.0, method=method)
    values = [record.objective for record in result.history]
    assert all(later <= before + 1e-13 for before, later in pairwise(values))
    assert result.history[-1].gap == result.gap


def test_conjugate_directions_keep_the_slope_of_the_gradient(monkeypatch):
    """(-g)^f . d = |(-g)^f|^2 to the last digits, whatever came before."""
    import cardboost.master.mprp as module

    seen = []
    original = module._line_search

    def watched(function, radius, w, value, point, d, slope, rho, delta):
        down = feasible_direction(w, -function.every_slope(point))
        seen.append((slope, float(down @ down), w.min(), w.sum()))
        return original(function, radius, w, value, point, d, slope, rho, delta)

    monkeypatch.setattr(module, "_line_search", watched)
    minimize_on_simplex(random_matrix(1, 60, 20), 4.0, method="mprp", tol=1e-6)
    assert len(seen) > 5
    for slope, size, least, total in seen:
        assert slope == pytest.approx(size, rel=1e-12)
        assert least >= 0
        assert total == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize("method", ["newton", "mprp"])
def test_the_example_of_the_paper_ends_at_a_vertex(method):
    result = minimize_on_simplex(PAPER, 0.5, method=method, x0=[0.1, 0.2, 0.2])
    assert result.x.tolist() == [0.0, 0.5, 0.0]
    assert result.nit <= 4
    assert result.fun == pytest.approx(math.log(3 * math.exp(-0.5) + math.exp(0.5)))
    assert result.gap <= 1e-8


def test_the_criterion_of_the_paper_can_end_it():
    result = minimize_on_simplex(random_matrix(2), 3.0, method="mprp", epsilon=1e-3)
    assert result.status == "criterion"
    assert result.history[-1].criterion <= 1e-3


class Quadratic:
    """|w - c|^2 / 2: its minimum on the simplex is the projection of c."""

    def __init__(self, c):
        self.c = np.array(c)

    def value_and_gradient(self, w):
        return 0.5 * float(np.sum((w - self.c) ** 2)), w - self.c

    def hessian(self, w):
        return np.eye(len(w))


@pytest.mark.parametrize("method", ["newton", "mprp"])
def test_any_convex_function(method):
    c = np.random.default_rng(0).normal(size=50)
    result = minimize_on_simplex(Quadratic(c), 2.0, method=method, x0=np.full(50, 2.0 / 50), tol=1e-10)
    assert result.success
    np.testing.assert_allclose(result.x, project(c, 2.0), atol=1e-5)


def test_real_entries_and_real_weights():
    rng = np.random.default_rng(4)
    A = rng.normal(size=(60, 15))
    weight = rng.uniform(0, 2, 60)
    newton = minimize_on_simplex(A, 3.0, sample_weight=weight)
    other = minimize_on_simplex(A, 3.0, method="mprp", sample_weight=weight)
    assert newton.success
    assert other.success
    assert newton.fun == pytest.approx(other.fun, abs=2e-8)
    kept = weight > 0.5
    part = minimize_on_simplex(A, 3.0, sample_weight=np.where(kept, 1.0, 0.0))
    assert part.fun == pytest.approx(minimize_on_simplex(A[kept], 3.0).fun, abs=2e-8)


@pytest.mark.parametrize("radius", [1e-3, 100.0, 1e4, 1e6])
def test_separable_data_and_any_radius_give_finite_results(radius):
    rng = np.random.default_rng(0)
    A = np.where(rng.random((100, 30)) < 0.9, 1, -1)
    result = minimize_on_simplex(A, radius, tol=1e-4 * radius)
    assert result.success
    assert np.isfinite(result.fun)
    margin = float((A @ result.x).min()) / radius
    assert radius < 10 or margin > 0.3  # large radii seek the largest least margin


def test_a_gap_at_the_limit_of_double_precision_on_request():
    result = minimize_on_simplex(random_matrix(5, 200, 60), 5.0, tol=0.0)
    assert result.status in ("precision", "optimal")
    assert result.gap < 1e-12


@pytest.mark.parametrize("radius", [2.0, 10.0, 50.0])
@pytest.mark.parametrize("tol", [0.0, 1e-14])
def test_a_kkt_residual_of_1e_12_on_request(radius, tol):
    """All slopes in use are equal and no other is below them, to 1e-12; so is the sum of the weights."""
    A = random_matrix(7, 150, 50)
    x = minimize_on_simplex(A, radius, tol=tol).x
    p = np.exp(-(A @ x) - lse(A, x))
    slopes = -(A.T @ p)
    assert (slopes[x > 0] - slopes.min()).max() <= 1e-12
    assert abs(x.sum() / radius - 1.0) <= 1e-12


@pytest.mark.parametrize("method", ["newton", "mprp"])
def test_signs_give_the_same_in_every_type_and_order(method):
    A = random_matrix(8, 130, 40)
    A = np.hstack([A, -A[:, ::2], A[:, :3]])
    first = minimize_on_simplex(A, 3.0, method=method)
    for other in (A.astype(float), np.asfortranarray(A), A.astype(np.int8), A.astype(float)[::-1][::-1]):
        np.testing.assert_array_equal(minimize_on_simplex(other, 3.0, method=method).x, first.x)
    halves = minimize_on_simplex(A / 2, 6.0, method=method)  # no signs: the columns as they are
    assert halves.fun == pytest.approx(first.fun, abs=2e-8)
    twice = minimize_on_simplex(A, 3.0, method=method, n_jobs=2)
    np.testing.assert_array_equal(twice.x, first.x)


def test_a_dictionary_without_its_matrix():
    X, labels = make_classification(400, 8, random_state=0)
    sign = np.where(labels > 0, 1, -1).astype(np.int8)
    weights = RowWeights.make(400, None)
    matrix = bin_table(read_table(X), weights, 32, 1)
    dictionary = StumpDictionary(matrix, sign, 1, False, weights)
    risk = EmpiricalRisk(get_loss("exponential"), weights, sign, 1)
    oracle = DictionaryOracle(dictionary, risk)
    first = oracle.look(soft_point(risk, np.zeros(400))[1], np.empty(0, np.int32), 1).new
    found = newton_on_simplex(oracle, 4.0, (first, np.array([4.0])), tol=1e-8, max_iter=500)
    columns = []
    for j, cuts in enumerate(matrix.cuts):
        columns += [np.where(X[:, j] <= cut, 1, -1) * sign for cut in cuts]
    A = np.array(columns).T
    whole = minimize_on_simplex(np.hstack([A, -A]), 4.0)
    assert found.status == "optimal"
    assert found.objective + math.log(400) == pytest.approx(whole.fun, abs=2e-8)


@pytest.mark.parametrize("method", ["newton", "mprp"])
def test_records_have_the_value_of_the_function(method):
    A = random_matrix(7, 60, 20)
    seen = []
    found = minimize_on_simplex(A, 3.0, method=method, callback=seen.append)
    assert found.history[-1].objective == pytest.approx(found.fun, abs=1e-12)
    assert [own.objective for own in seen] == [own.objective for own in found.history]


def test_limits_and_wishes_to_stop():
    A = random_matrix(6, 100, 40)
    few = minimize_on_simplex(A, 10.0, max_iter=1)
    assert (few.status, few.success) == ("iteration limit", False)
    assert few.fun - few.gap <= minimize_on_simplex(A, 10.0).fun
    assert minimize_on_simplex(A, 10.0, callback=lambda record: True).status == "stopped"
    with pytest.warns(UserWarning, match="not on the simplex"):
        result = minimize_on_simplex(A, 1.0, x0=np.ones(40))
    assert result.success


def test_refusals():
    A = random_matrix(0)
    for radius in (0, -1.0, math.nan, math.inf, "1"):
        with pytest.raises(ValueError, match="radius"):
            minimize_on_simplex(A, radius)
    for bad in (np.empty((0, 3)), np.empty((3, 0)), [[1.0, np.nan]], [["a"]]):
        with pytest.raises(ValueError, match="A "):
            minimize_on_simplex(bad, 1.0)
    for options, text in (
        ({"method": "simplex"}, "method"),
        ({"tol": -1}, "tol"),
        ({"rho": 1.0}, "rho"),
        ({"delta": 0}, "delta"),
        ({"epsilon": 1e-3}, "epsilon"),
        ({"x0": [1.0]}, "x0"),
        ({"x0": np.full(12, np.nan)}, "x0"),
        ({"sample_weight": np.zeros(40)}, "sample_weight"),
        ({"max_iter": -1}, "max_iter"),
    ):
        with pytest.raises(ValueError, match=text):
            minimize_on_simplex(A, 1.0, **options)
    with pytest.raises(ValueError, match="x0 is needed"):
        minimize_on_simplex(Quadratic([1.0]), 1.0)
    with pytest.raises(ValueError, match="finite"):
        minimize_on_simplex(Quadratic([np.nan, 1.0]), 1.0, x0=[0.5, 0.5])


@pytest.mark.parametrize("seed", first(1, range(6)))
def test_conjugate_gradients_do_not_depend_on_the_order_of_rows(seed):
    rng = np.random.default_rng(seed)
    A, weight = np.where(rng.random((111, 2 + seed)) < 0.6, 1.0, -1.0), rng.uniform(0.1, 3.0, 111)
    order = rng.permutation(111)
    for radius, w in ((1.0, None), (30.0, weight), (300.0, None)):
        own = None if w is None else w[order]
        one = minimize_on_simplex(A, radius, method="mprp", sample_weight=w)
        two = minimize_on_simplex(A[order], radius, method="mprp", sample_weight=own)
        assert one.x.tobytes() == two.x.tobytes()

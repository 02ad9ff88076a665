"""Selecting columns: bounds that hold, a search that nearly always finds the best, and certificates of both.

The optimum of every small problem is found by enumeration of the supports with SciPy refits inside the box.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from enumeration import Enumeration, all_stumps
from problems import enumeration_of, of_certificate, random_matrix, stump_problem
from threadpoolctl import threadpool_limits

from cardboost import CardBoostClassifier, FitCallback
from cardboost.data.weights import RowWeights
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.problem.losses import get_loss
from cardboost.problem.prices import Prices
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.polish import Polisher, polish, refit_on_all_rows
from cardboost.selection.relaxation import RelaxationSolver, dictionary_relaxation, pool_relaxation
from cardboost.selection.selection_problem import SelectionProblem
from cardboost.solvers import minimize_l1, select_columns
from marks import first

TOLERANCE = 1e-7


@pytest.fixture(autouse=True, scope="module")
def one_thread_for_references():
    """Threads of BLAS cost more than they bring on problems this small."""
    with threadpool_limits(1):
        yield


# ---------------------------------------------------------------- random problems


def random_case(seed, most=8):
    rng = np.random.default_rng(seed)
    A = random_matrix(rng, most)
    weight = rng.integers(0, 4, len(A)).astype(float) if rng.random() < 0.5 else rng.random(len(A)) + 0.1
    if rng.random() < 0.4:
        weight = np.ones(len(A))
    weight[0] = 1.0
    kind = rng.integers(3)
    return A, weight, {
        "loss": "logistic" if rng.random() < 0.5 else "exponential",
        "l1": float(rng.choice([1e-4, 0.01])),
        "l2": float(rng.choice([0.0, 0.02, 0.2])),
        "l0": 0.0 if kind == 0 else float(rng.choice([0.01, 0.03, 0.1])),
        "max_terms": None if kind == 1 else int(rng.integers(1, 4)),
        "max_weight": None if rng.random() < 0.5 else float(rng.choice([0.2, 1.0, 5.0])),
    }  # fmt: skip


def solve_case(seed, most=8, method="polish"):
    """Objective minus optimum of one random problem, after all checks."""
    A, weight, options = random_case(seed, most)
    before = A.copy(), weight.copy()
    found = select_columns(A, sample_weight=weight, method=method, **options)
    assert np.array_equal(A, before[0])
    assert np.array_equal(weight, before[1])
    keep = weight > 0
    stated = of_certificate(found.certificate, A[keep], weight[keep])
    if options["max_weight"] is not None:
        assert (stated.box == options["max_weight"]).all()
    optimum = stated.best(options["max_terms"])
    assert found.lower_bound <= optimum + TOLERANCE, (seed, options)
    assert optimum <= found.objective + TOLERANCE, (seed, options)
    assert found.certificate.faults(A, sample_weight=weight) == [], (seed, options)
    assert found.gap == found.objective - found.lower_bound >= 0.0
    assert found.certificate.objective == found.objective
    assert found.certificate.lower_bound == found.lower_bound
    assert np.array_equal(found.support, np.flatnonzero(found.x))
    assert options["max_terms"] is None or len(found.support) <= options["max_terms"]
    assert (found.x >= 0).all()
    assert (found.x <= max(stated.box)).all()
    if method == "exact":
        assert found.status == "optimal"
    if found.status == "optimal":
        assert found.objective <= optimum + 1e-8
    return found.objective - optimum


def found_the_optimum(misses):
    return np.mean([miss <= 1e-6 for miss in misses])


@pytest.mark.parametrize("seeds", first(1, [range(60), range(60, 150)]), ids=str)
def test_bounds_and_objectives_enclose_the_optimum_of_matrices(seeds):
    assert found_the_optimum([solve_case(seed) for seed in seeds]) >= 0.9


@pytest.mark.parametrize("seeds", first(1, [range(150, 190), range(190, 230)]), ids=str)
def test_exact_search_finds_the_optimum_of_matrices(seeds):
    assert max(solve_case(seed, method="exact") for seed in seeds) <= 1e-8


@pytest.mark.long
def test_bounds_and_objectives_enclose_the_optimum_of_many_matrices():
    assert found_the_optimum([solve_case(seed, most=12) for seed in range(1000, 1200)]) >= 0.9


@pytest.mark.long
def test_exact_search_finds_the_optimum_of_many_matrices():
    assert (
        max(solve_case(seed, most=14, method="exact") for seed in [*range(230, 300), *range(1400, 1600)])
        <= 1e-8
    )


def solve_stumps(seed):
    problem, dictionary, rule = stump_problem(seed)
    found, work = polish(problem)
    assert work > 0
    true = problem.objective(problem.risk.evaluate(problem.pool.margins(found.weights)).value, found.weights)
    assert found.objective == pytest.approx(true, rel=1e-11)
    assert problem.max_terms is None or len(found.support) <= problem.max_terms
    assert (found.weights <= problem.prices.max_weight).all()
    root = pool_relaxation(problem, found.weights)
    optimum = enumeration_of(problem).best(problem.max_terms)
    assert root.leaf.bound <= optimum + TOLERANCE, seed
    assert optimum <= found.objective + TOLERANCE, seed
    # over more columns the best bound can only be lower
    wide = replace(problem, pool=problem.pool.subset(np.arange(problem.pool.n_columns)))
    outer = dictionary_relaxation(wide, dictionary, rule, root)
    assert outer.leaf.bound <= root.leaf.bound + 1e-9, seed
    assert outer.leaf.bound <= optimum + TOLERANCE, seed
    return found.objective - optimum


@pytest.mark.parametrize("seeds", first(1, [range(25), range(25, 50)]), ids=str)
def test_bounds_and_objectives_enclose_the_optimum_of_stumps(seeds):
    assert found_the_optimum([solve_stumps(seed) for seed in seeds]) >= 0.9


@pytest.mark.long
def test_bounds_and_objectives_enclose_the_optimum_of_many_stumps():
    assert found_the_optimum([solve_stumps(seed) for seed in range(1000, 1300)]) >= 0.9


def test_no_multiplier_of_the_size_limit_gives_a_better_bound():
    for seed in range(40):
        problem, _, _ = stump_problem(seed)
        root = pool_relaxation(problem)
        if problem.max_terms is None:
            assert root.tau == 0.0
            continue
        solver = RelaxationSolver(merge_rows(problem))
        lines = [solver.solve_at(tau, 1e-10) for tau in (0.0, *np.geomspace(1e-5, 1.0, 16))]
        assert solver.best.bound <= root.leaf.bound + 1e-9, seed
        for one, other in itertools.product(lines, repeat=2):
            assert other.proven <= one.value + one.excess * (other.tau - one.tau) + 1e-12, seed
            if one.excess > 0 >= other.excess:
                tau, ceiling = one.crossing(other)
                assert one.tau - 1e-12 <= tau <= other.tau + 1e-12
                assert root.leaf.bound <= ceiling + 1e-12, seed


@pytest.mark.parametrize("tau", [0.0, 1e-9, 1e-3, 0.1, 1e3])
def test_the_search_for_the_multiplier_starts_anywhere(tau):
    for seed in range(12):
        problem, _, _ = stump_problem(seed)
        if problem.max_terms is not None:
            solver = RelaxationSolver(merge_rows(problem), tau=tau)
            solver.solve()
            assert solver.best.bound == pytest.approx(pool_relaxation(problem).leaf.bound, abs=1e-9), seed
            assert solver.best.bound <= solver.ceiling + 1e-12


@pytest.mark.parametrize("seed", first(6, range(12)))
def test_the_bound_of_the_classifier_covers_every_stump_of_its_dictionary(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (40, 3)).astype(float)
    if seed % 2:
        X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + rng.normal(size=40) > 1.0
    options = {
        "max_terms": 2,
        "l0": 0.01 * (seed % 3),
        "l2": 0.05,
        "max_weight": 1.0,
        "fit_intercept": seed % 4 < 2,
    }
    fitted = CardBoostClassifier(**{"l2": 0.01, "hot_start": 6, "n_jobs": 1, **options}).fit(X, y)
    certificate = fitted.certificate_
    assert certificate.faults(X, y) == []
    sign = np.where(y, 1.0, -1.0)
    A, _ = all_stumps(X, sign)
    n = A.shape[1]
    free = np.column_stack([sign, -sign]) if options["fit_intercept"] else np.empty((40, 0))
    f = free.shape[1]
    pad = lambda value, own: np.r_[np.full(f, own), np.full(n, value)]  # noqa: E731
    whole = Enumeration(
        np.column_stack([free, A]), np.full(40, 1 / 40), "logistic", pad(1e-4, 0.0), pad(0.05, 0.0),
        pad(options["l0"], 0.0), pad(1.0, 30.0), np.arange(n + f) >= f,
    )  # fmt: skip
    optimum = whole.best(2)
    assert certificate.bound("dictionary").lower_bound <= optimum + TOLERANCE
    assert optimum <= certificate.objective + TOLERANCE
    assert certificate.bound("dictionary").lower_bound <= certificate.bound("pool").lower_bound + 1e-9


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_a_price_or_a_limit_never_lowers_the_objective(loss, l2):
    for seed in range(6):
        A = np.unique(random_matrix(np.random.default_rng(seed)), axis=1)  # identical columns are one
        convex = minimize_l1(A, 0.01, l2=l2, loss=loss)
        last = -math.inf
        for l0 in (1e-9, 0.01, 0.05, 0.3):
            found = select_columns(A, l0=l0, l1=0.01, l2=l2, loss=loss)
            assert found.objective >= convex.lower_bound
            assert found.objective >= last - 1e-9
            assert found.objective >= convex.fun - 1e-9 + l0 * len(found.support)
            last = found.objective
        last = math.inf
        for k in (0, 1, 2, 4, A.shape[1]):
            found = select_columns(A, max_terms=k, l1=0.01, l2=l2, loss=loss)
            assert found.objective >= convex.fun - 1e-9
            assert found.objective <= last + 1e-9
            last = found.objective
        assert last == pytest.approx(convex.fun, abs=1e-7)


def test_nothing_is_chosen_when_columns_cost_too_much():
    for seed in range(10):
        A, weight, options = random_case(seed)
        for own in ({"l0": 50.0}, {"max_terms": 0}, {"l0": 50.0, "max_terms": 2}):
            more = {**options, "l0": 0.0, "max_terms": None, **own}
            found = select_columns(A, sample_weight=weight, **more)
            assert len(found.support) == 0
            assert found.objective == pytest.approx(math.log(2) if options["loss"] == "logistic" else 1.0)
            assert found.lower_bound == pytest.approx(found.objective, abs=1e-6)
            assert found.guarantee == 1.0
            assert found.status == "optimal"
            assert found.certificate.faults(A, sample_weight=weight) == []


def test_prices_per_column():
    rng = np.random.default_rng(3)
    A = np.where(rng.random((40, 6)) < 0.65, 1.0, -1.0)
    l0 = np.array([0.0, 10.0, 0.0, 10.0, 0.01, 0.01])
    box = np.array([1.0, 1.0, 0.0, 1.0, 0.5, 0.2])
    l1, l2 = np.linspace(0.001, 0.01, 6), np.linspace(0.0, 0.1, 6)
    found = select_columns(A, l0=l0, l1=l1, l2=l2, max_weight=box, loss="logistic")
    assert not {1, 2, 3} & set(found.support.tolist())
    assert (found.x <= box).all()
    optimum = Enumeration(A, np.full(40, 1 / 40), "logistic", l1, l2, l0, box).best(None)
    assert found.lower_bound <= optimum + TOLERANCE
    assert found.objective == pytest.approx(optimum, abs=1e-6)
    assert found.certificate.faults(A) == []


def test_of_identical_columns_with_different_prices_the_best_may_be_used():
    """Neither of two identical columns is cheaper in every way; a bound must cover both."""
    rng = np.random.default_rng(4)
    a = np.where(rng.random(60) < 0.8, 1.0, -1.0)
    A = np.stack([a, a], axis=1)
    l0, l1, box = np.array([0.0, 0.01]), np.array([0.3, 0.001]), np.array([1.0, 1.0])
    found = select_columns(A, l0=l0, l1=l1, max_weight=box, loss="logistic", max_terms=1)
    optimum = Enumeration(A, np.full(60, 1 / 60), "logistic", l1, 0.0, l0, box).best(1)
    assert found.lower_bound <= optimum + TOLERANCE
    assert found.objective == pytest.approx(optimum, abs=1e-6)


@pytest.mark.long
def test_every_change_of_a_selection_certificate_is_refused():
    for seed in (0, 1, 2, 5):
        A, weight, options = random_case(seed)
        certificate = select_columns(A, sample_weight=weight, **options).certificate
        assert_refused_when_changed(certificate, A, None, weight)


@pytest.mark.parametrize(
    "options",
    first(1, [{"max_terms": 2}, {"max_terms": None, "max_iter": 4}, {"max_terms": None, "l0": 0.02}]),
    ids=str,
)
def test_every_change_of_a_classifier_certificate_is_refused(options):
    rng = np.random.default_rng(7)
    X = rng.integers(0, 4, (40, 2)).astype(float)
    y = X[:, 0] + rng.normal(size=40) > 1.5
    certificate = CardBoostClassifier(l2=0.01, hot_start=4, n_jobs=1, **options).fit(X, y).certificate_
    assert_refused_when_changed(certificate, X, y, None)


def numbers(value, keys=()):
    """Every number of a JSON tree with the keys that lead to it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, (*keys, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from numbers(item, (*keys, i))
    elif isinstance(value, bool):
        yield keys, [not value]
    elif isinstance(value, int):
        yield keys, [value + 1, value - 1]
    elif isinstance(value, float):
        yield keys, [np.nextafter(value, math.inf).item(), value * 0.99 - 1e-6]


def assert_refused_when_changed(certificate, X, y, weight):
    assert certificate.verify(X, y, weight)
    count = 0
    for keys, others in numbers(certificate.to_dict()):
        for other in others:
            broken = certificate.to_dict()
            place = broken
            for key in keys[:-1]:
                place = place[key]
            place[keys[-1]] = other
            assert not replace(certificate, content=broken).verify(X, y, weight), (keys, other)
            count += 1
    assert count > 30


# ---------------------------------------------------------------- fewer rows


def assert_equal_problems(one, other, rng):
    """Objective, edges and second derivatives at random weights."""
    n = one.pool.n_columns
    for _ in range(3):
        w = np.where(rng.random(n) < 0.5, rng.random(n), 0.0)
        a, b = (own.risk.evaluate(own.pool.margins(w)) for own in (one, other))
        size = max(1.0, a.value)
        assert one.objective(a.value, w) == pytest.approx(other.objective(b.value, w), rel=1e-12)
        assert np.allclose(one.pool.edges(a), other.pool.edges(b), rtol=0, atol=1e-12 * size)
        assert np.allclose(
            one.pool.gram(a, exact=True), other.pool.gram(b, exact=True), rtol=0, atol=1e-12 * size
        )
        assert a.dual(0.9) == pytest.approx(b.dual(0.9), abs=1e-12 * size**2)


def matrix_problem(A, weight, loss="logistic", max_terms=2):
    n = A.shape[1]
    risk = EmpiricalRisk(get_loss(loss), RowWeights.make(len(A), weight), None, 1)
    pool = MatrixPool(ColumnStore(np.ascontiguousarray(A.T)), np.arange(n, dtype=np.int32))
    prices = Prices(np.full(n, 0.01), np.full(n, 0.02), np.zeros(n), np.full(n, 1.0), np.ones(n, dtype=bool))
    return SelectionProblem(pool, risk, prices, max_terms)


@pytest.mark.parametrize("columns", [1, 5, 70, 140])
@pytest.mark.parametrize("entries", [(-1.0, 1.0), (-1.0, 0.0, 1.0)])
def test_merged_rows_are_the_same_problem(columns, entries):
    rng = np.random.default_rng(columns)
    A = rng.choice(entries, (30, columns))[rng.integers(0, 30, 200)]
    for weight in (None, rng.integers(1, 5, 200).astype(float), rng.random(200) + 0.01):
        for loss in ("logistic", "exponential"):
            problem = matrix_problem(A, weight, loss)
            merged = merge_rows(problem)
            assert merged.risk.weights.n_rows == len(np.unique(A, axis=0))
            assert_equal_problems(problem, merged, rng)
            order = rng.permutation(200)
            shuffled = merge_rows(matrix_problem(A[order], None if weight is None else weight[order], loss))
            assert np.array_equal(merged.pool.dense(), shuffled.pool.dense())
            assert np.array_equal(merged.risk.weights.normalised, shuffled.risk.weights.normalised)


def test_merged_stumps_and_reals_are_the_same_problem():
    rng = np.random.default_rng(8)
    for seed in range(9):
        problem, _, _ = stump_problem(seed)
        assert_equal_problems(problem, merge_rows(problem), rng)
    problem = matrix_problem(rng.normal(size=(50, 4)), rng.random(50) + 0.1)
    assert_equal_problems(problem, merge_rows(problem), rng)


def test_a_sketch_of_the_rows_does_not_depend_on_their_order():
    rng = np.random.default_rng(9)
    A = rng.choice([-1.0, 1.0], (4000, 30))
    weight = rng.integers(1, 4, 4000).astype(float)
    order = rng.permutation(4000)
    one = sketch_rows(merge_rows(matrix_problem(A, weight)), 500)
    other = sketch_rows(merge_rows(matrix_problem(A[order], weight[order])), 500)
    assert 250 <= one.risk.weights.n_rows <= 1000
    assert np.array_equal(one.pool.dense(), other.pool.dense())
    assert np.array_equal(one.risk.weights.normalised, other.risk.weights.normalised)
    whole = merge_rows(matrix_problem(A, weight))
    assert sketch_rows(whole, 4000) is whole


def test_selection_stops_when_told():
    problem, _, _ = stump_problem(3)
    found, _ = polish(problem, late=lambda: True)
    assert problem.max_terms is None or len(found.support) <= problem.max_terms
    root = pool_relaxation(problem, found.weights, late=lambda: True)
    assert root.leaf.bound <= found.objective + 1e-12


@pytest.mark.parametrize("asked", range(0, 24, 3))
def test_whenever_time_is_up_the_choice_keeps_to_its_limit(asked):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = np.sin(3 * X[:, :4]).sum(axis=1) > 0
    model = CardBoostClassifier(max_terms=6, l2=0.01, hot_start=25, selector="exact", max_nodes=50, n_jobs=1)
    times = 0

    def stopped():
        nonlocal times
        times += generated
        return times > asked

    def after_round(record):
        nonlocal generated
        generated = record.n_columns >= 25
        return False

    generated = False
    callback = FitCallback()
    callback.after_round, callback.stopped = after_round, stopped
    model.fit(X, y, callback=callback)
    assert model.ensemble_.n_terms <= 6
    assert model.certificate_.verify(X, y)


def test_when_time_is_up_only_the_best_support_is_refitted_on_all_rows():
    problem = merge_rows(matrix_problem(np.random.default_rng(1).choice([-1.0, 1.0], (200, 6)), None))
    polisher = Polisher(problem)
    found = [polisher.refit(own) for own in ([0, 1], [2], [3, 4])]
    best = min(found, key=lambda at: at.objective)
    searched = replace(problem)  # another problem, as one over some of the rows is
    (only,) = refit_on_all_rows(problem, searched, found, lambda: True)
    assert only.support.tolist() == best.support.tolist()
    every = refit_on_all_rows(problem, searched, found, lambda: False)
    assert [at.support.tolist() for at in every] == [at.support.tolist() for at in found]

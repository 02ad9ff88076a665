"""Limits on features: an exact choice inside the bound, a search that keeps to them, and bounds that hold.

The optimum of every small problem is found by enumeration of the sets of features and the supports in them.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from enumeration import Enumeration, all_stumps
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from cardboost.boosting.path import ModelFrame
from cardboost.boosting.stump_task import StumpTask
from cardboost.boosting.task import TrainingSettings
from cardboost.boosting.training import train
from cardboost.certificate import checker
from cardboost.data.binning import bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.base import Scoring
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.problem.bound import best_choice, dual_bound, gain_terms
from cardboost.problem.losses import get_loss
from cardboost.problem.prices import FeatureLimits, PriceRule, Prices
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection.deepening import deepen
from cardboost.selection.polish import polish
from cardboost.selection.relaxation import RelaxationSolver, dictionary_relaxation, pool_relaxation
from cardboost.selection.selection_problem import SelectionProblem
from marks import first

TOLERANCE = 1e-7


@pytest.fixture(autouse=True, scope="module")
def one_thread_for_references():
    """Threads of BLAS cost more than they bring on problems this small."""
    with threadpool_limits(1):
        yield


# ---------------------------------------------------------------- the choice inside the bound


def choice_by_enumeration(terms, features, max_terms, limits, unseen):
    """The largest sum over all sets of columns that the limits allow."""
    columns = list(zip(terms, features, strict=True))
    columns += [(z, g) for g, z in enumerate(unseen) for _ in range(max_terms or 0) if z > 0]
    columns += [(0.0, g) for g in limits.must_include]  # it has to be there, worth something or not
    best = 0.0 if limits.allow(np.empty(0, dtype=np.int32)) else -np.inf
    for size in range((len(columns) if max_terms is None else min(max_terms, len(columns))) + 1):
        for chosen in itertools.combinations(columns, size):
            used = np.array([g for _, g in chosen], dtype=np.int32)
            if limits.allow(used):
                best = max(best, sum(t for t, _ in chosen) - limits.cost(used))
    return best


worths = st.sampled_from([0.0, 0.1, 0.25, 0.25, 0.5, 0.7, 1.0])


@st.composite
def demands(draw, n_features, max_terms):
    """Groups that share no feature, and features that have to be used, one of each group at most."""
    labels = draw(st.lists(st.integers(0, 3), min_size=n_features, max_size=n_features))
    groups = [tuple(f for f, own in enumerate(labels) if own == g) for g in (1, 2)]
    must = draw(st.lists(st.integers(0, n_features - 1), max_size=2, unique=True))
    lone = all(len(set(group).intersection(must)) < 2 for group in groups)
    return tuple(group for group in groups if group), tuple(sorted(must)) if lone else ()


@given(st.data())
def test_the_choice_is_the_best_of_all(data):
    n_features = data.draw(st.integers(1, 4))
    terms = data.draw(st.lists(worths, max_size=7))
    size = len(terms)
    features = data.draw(st.lists(st.integers(0, n_features - 1), min_size=size, max_size=size))
    max_terms = data.draw(st.none() | st.integers(0, 3))
    per_feature = st.lists(worths, min_size=n_features, max_size=n_features)
    limits = FeatureLimits(
        data.draw(st.none() | st.integers(0, 3)),
        data.draw(st.none() | per_feature.map(np.array)),
        *data.draw(demands(n_features, max_terms)),
    )
    if limits.surplus(set()) or len(limits.must_include) > (3 if max_terms is None else max_terms):
        return  # no model is allowed
    unseen = data.draw(per_feature) if max_terms is not None and max_terms * n_features <= 6 else []
    given_terms, given_features = np.array(terms, dtype=float), np.array(features, dtype=np.int32)
    found = best_choice(given_terms, given_features, max_terms, limits, np.array(unseen, dtype=float))
    expected = choice_by_enumeration(terms, features, max_terms, limits, unseen)
    assert found == pytest.approx(expected, abs=1e-12)


def test_the_choice_is_monotone_and_never_above_the_unlimited_one():
    rng = np.random.default_rng(0)
    terms, features = rng.random(300), rng.integers(0, 60, 300).astype(np.int32)
    unseen, costs = 0.6 * rng.random(60), 0.3 * rng.random(60)
    for k in (1, 5, 20):
        plain = np.sort(np.concatenate([terms, np.repeat(unseen, k)]))[::-1][:k].sum()
        last = 0.0
        for f in (0, 1, 2, 5, 20, None):
            found = best_choice(terms, features, k, FeatureLimits(f), unseen)
            dearer = best_choice(terms, features, k, FeatureLimits(f, costs), unseen)
            assert last - 1e-12 <= found <= plain + 1e-12
            assert dearer <= found
            last = found
        assert last == pytest.approx(plain)


def test_gain_terms_of_limited_features():
    prices = PriceRule(0.0, 0.0, 0.1, 1.0).prices(5, 1)
    c = np.array([0.5, 0.3, 0.9, 0.2, 0.35])
    groups = np.array([-1, 0, 1, 0, 0], dtype=np.int32)
    free = 30 * 0.5
    assert gain_terms(c, prices, None, groups=groups, limits=FeatureLimits(1)) == pytest.approx(free + 0.8)
    assert gain_terms(c, prices, 2, groups=groups, limits=FeatureLimits(1)) == pytest.approx(free + 0.8)
    costs = FeatureLimits(1, np.array([0.0, 0.7]))
    assert gain_terms(c, prices, 3, groups=groups, limits=costs) == pytest.approx(free + 0.2 + 0.25 + 0.1)
    unseen = np.array([0.0, 0.3])
    limits = FeatureLimits(1)
    assert gain_terms(c, prices, 3, unseen, groups, limits) == pytest.approx(free + 0.8 + 0.3 + 0.3)
    assert gain_terms(c, prices, None, unseen, groups, limits) == np.inf


def test_limits_are_checked_and_dropped_where_they_say_nothing():
    assert FeatureLimits.make(None, None) is None
    assert FeatureLimits.make(None, np.zeros(3)) is None
    made = FeatureLimits.make(2, np.zeros(3))
    assert made is not None
    assert made.costs is None
    with pytest.raises(ValueError, match="max_features"):
        FeatureLimits(-1)
    with pytest.raises(ValueError, match="costs"):
        FeatureLimits(None, np.array([-1.0]))
    limits = FeatureLimits(1, np.array([0.5, 0.25]))
    assert limits.cost(np.array([-1, 1, 1])) == 0.25
    assert limits.allow(np.array([-1, 1, 1]))
    assert not limits.allow(np.array([0, 1]))


# ---------------------------------------------------------------- unseen columns


@pytest.mark.parametrize("seed", range(8))
def test_unseen_edges_are_the_largest_of_every_feature(seed):
    problem, dictionary, _ = stump_problem(seed)
    rng = np.random.default_rng(seed)
    point = problem.risk.evaluate(rng.normal(size=problem.risk.weights.n_rows))
    X, sign = case_data(seed)[:2]
    A, feature = all_stumps(X, sign, by_feature=True)
    u = problem.risk.weights.normalised * point.v
    pool = problem.pool
    own = {(int(g), *a) for g, a in zip(pool.features, pool.dense().T, strict=True) if g >= 0}
    assert len(own) == pool.n_columns - pool.n_free
    found = dictionary.unseen_edges(point, pool)
    for g in range(X.shape[1]):
        edges = [float(u @ a) for a, h in zip(A.T, feature, strict=True) if h == g and (g, *a) not in own]
        assert found[g] == pytest.approx(max(edges, default=-np.inf), rel=1e-9, abs=1e-12)


def test_columns_of_some_features():
    problem, dictionary, rule = stump_problem(1)
    point = problem.risk.evaluate(np.zeros(problem.risk.weights.n_rows))
    pool = dictionary.pool()
    only = np.array([0, 2], dtype=np.int32)
    found = dictionary.columns_of(only, point, 5, pool, Scoring("edge", rule.l1, rule.l2))
    assert set(found.atoms.feature.tolist()) == {0, 2}
    assert found.edges.max() == found.bound == dictionary.unseen_edges(point, pool)[only].max()


# ---------------------------------------------------------------- the laws, on random problems


def random_limits(rng, n_features):
    """Every combination of a limit on features and costs, at least one of the two."""
    kind = int(rng.integers(3))
    f = None if kind == 0 else int(rng.integers(0, n_features + 1)) if rng.random() < 0.2 else 1
    if kind and rng.random() < 0.4:
        f = 2
    costs = None if kind == 1 else np.round(rng.choice([0.0, 0.01, 0.05, 0.2], n_features), 2)
    return FeatureLimits(f, costs)


def matrix_problem(seed):
    """Columns of a matrix in features of different sizes, with prices of their own."""
    rng = np.random.default_rng(seed)
    m, n, n_features = int(rng.integers(12, 30)), int(rng.integers(4, 8)), int(rng.integers(2, 5))
    A = np.where(rng.random((m, n)) < rng.uniform(0.4, 0.8, n), 1.0, -1.0)
    if rng.random() < 0.4:
        A[:, 1] = A[:, 0]  # the same column, possibly of another feature
    groups = rng.integers(0, n_features, n).astype(np.int32)
    charged = np.ones(n, dtype=bool)
    if rng.random() < 0.4:  # a free column, in no feature
        charged[-1], groups[-1] = False, -1
    weight = [None, rng.integers(1, 4, m).astype(float), rng.random(m) + 0.1][int(rng.integers(3))]
    weights = RowWeights.make(m, weight)
    loss = get_loss(["logistic", "exponential"][int(rng.integers(2))])
    risk = EmpiricalRisk(loss, weights, None, 1)
    pool = MatrixPool(ColumnStore(np.ascontiguousarray(A.T)), np.arange(n, dtype=np.int32))
    l2 = float(rng.choice([0.0, 0.02, 0.2]))
    box = float(rng.choice([0.3, 1.0, 4.0])) if l2 == 0.0 or rng.random() < 0.7 else np.inf
    l0 = float(rng.choice([0.0, 0.01, 0.05]))
    prices = Prices(
        np.full(n, float(rng.choice([1e-4, 0.01]))),
        np.full(n, l2),
        np.where(charged, l0 * rng.choice([0.5, 1.0], n), 0.0),
        np.where(charged, box, 1.0),
        charged,
    )
    k = None if rng.random() < 0.35 else int(rng.integers(1, 5))
    return SelectionProblem(pool, risk, prices, k, groups, random_limits(rng, n_features))


def enumeration_of(problem):
    p = problem.prices
    return Enumeration(
        problem.pool.dense(), problem.risk.weights.normalised, problem.risk.loss.name,
        p.l1, p.l2, p.l0, p.max_weight, p.charged, problem.groups, problem.limits,
    )  # fmt: skip


def check_incumbent(problem, found):
    """It keeps to every limit and costs what it says."""
    value = problem.risk.evaluate(problem.pool.margins(found.weights)).value
    assert found.objective == pytest.approx(problem.objective(value, found.weights), rel=1e-11)
    assert problem.allows(found.support)
    used = np.flatnonzero(found.weights)
    assert set(used[problem.prices.charged[used]]) == set(found.support)
    assert (found.weights <= problem.prices.max_weight).all()
    used = np.unique(problem.groups[found.support])
    assert problem.limits.max_features is None or len(used) <= problem.limits.max_features


def solve_matrix(seed):
    problem = matrix_problem(seed)
    found, _ = polish(problem)
    check_incumbent(problem, found)
    root = pool_relaxation(problem, found.weights)
    optimum = enumeration_of(problem).best(problem.max_terms)
    assert root.leaf.bound <= optimum + TOLERANCE, seed
    assert optimum <= found.objective + TOLERANCE, seed
    plain = pool_relaxation(replace(problem, limits=None), found.weights)
    assert root.leaf.bound >= plain.leaf.bound - 1e-4 * abs(plain.leaf.bound), seed
    rng = np.random.default_rng(seed)
    n = problem.pool.n_columns
    for _ in range(3):  # any row weights bound the optimum
        w = np.where(rng.random(n) < 0.5, rng.random(n), 0.0)
        point = problem.risk.evaluate(problem.pool.margins(w))
        bound, _ = dual_bound(
            point, problem.pool.edges(point), problem.prices, problem.max_terms,
            groups=problem.groups, limits=problem.limits,
        )  # fmt: skip
        assert bound <= optimum + TOLERANCE, seed
    return found.objective - optimum


@pytest.mark.long
def test_bounds_and_objectives_enclose_the_optimum_of_matrices():
    misses = [solve_matrix(seed) for seed in range(70)]
    assert np.mean([miss <= 1e-6 for miss in misses]) >= 0.95


@pytest.mark.long
def test_bounds_and_objectives_enclose_the_optimum_of_many_matrices():
    misses = [solve_matrix(seed) for seed in range(1000, 1500)]
    assert np.mean([miss <= 1e-6 for miss in misses]) >= 0.95


def case_data(seed):
    """A small table with ties and missing values; often one feature twice, or turned round."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(14, 30))
    X = rng.integers(0, 3, (m, 3)).astype(float)
    X[rng.random(X.shape) < 0.08] = np.nan
    if seed % 3 == 0:
        X[:, 2] = X[:, 0]
    elif seed % 3 == 1:
        X[:, 2] = 5.0 - X[:, 1]
    sign = np.where(np.nan_to_num(X[:, 0]) + 0.5 * np.nan_to_num(X[:, 1]) + rng.normal(size=m) > 1.5, 1, -1)
    sign[:2] = 1, -1
    raw = [None, rng.integers(1, 4, m).astype(float), rng.random(m) + 0.1][seed % 3]
    return X, sign.astype(np.int8), RowWeights.make(m, raw)


def stump_problem(seed, columns=5):
    rng = np.random.default_rng(10_000 + seed)
    X, sign, weights = case_data(seed)
    matrix = bin_table(read_table(X), weights, 255, 1)
    loss = get_loss("logistic" if rng.random() < 0.5 else "exponential")
    dictionary = StumpDictionary(matrix, sign, 1, bool(rng.random() < 0.7), weights, by_feature=True)
    risk = EmpiricalRisk(loss, weights, sign, 1)
    pool = dictionary.pool()
    point = risk.evaluate(rng.normal(size=len(sign)))
    pool.append(dictionary.best_columns(point, columns, pool).atoms)
    rule = PriceRule(
        l1=float(rng.choice([1e-4, 0.01])),
        l2=float(rng.choice([0.0, 0.02, 0.2])),
        l0=float(rng.choice([0.0, 0.01, 0.05])),
        max_weight=float(rng.choice([0.3, 1.0, 4.0])),
        intercept_box=3.0,
    )
    k = None if rng.random() < 0.3 and rule.l0 > 0 else int(rng.integers(1, 3))
    prices = rule.prices(pool.n_columns, pool.n_free)
    problem = SelectionProblem(pool, risk, prices, k, pool.features, random_limits(rng, 3))
    return problem, dictionary, rule


def whole_dictionary(seed, problem, rule, intercept):
    """The problem over all stumps, by enumeration."""
    X, sign, weights = case_data(seed)
    A, feature = all_stumps(X, sign, by_feature=True)
    free = 2 if intercept else 0
    ones = np.stack([sign, -sign], axis=1)[:, :free].astype(float)
    p = rule.prices(A.shape[1] + free, free)
    groups = np.r_[np.full(free, -1), feature].astype(np.int32)
    return Enumeration(
        np.column_stack([ones, A]), weights.normalised, problem.risk.loss.name,
        p.l1, p.l2, p.l0, p.max_weight, p.charged, groups, problem.limits,
    )  # fmt: skip


def solve_stumps(seed):
    """The laws in both scopes; returns by how much the search misses the optimum of the pool."""
    problem, dictionary, rule = stump_problem(seed)
    found, _ = polish(problem)
    check_incumbent(problem, found)
    root = pool_relaxation(problem, found.weights)
    optimum = enumeration_of(problem).best(problem.max_terms)
    assert root.leaf.bound <= optimum + TOLERANCE, seed
    assert optimum <= found.objective + TOLERANCE, seed
    wide = replace(problem, pool=problem.pool.subset(np.arange(problem.pool.n_columns)))
    outer = dictionary_relaxation(wide, dictionary, rule, root)
    assert outer.leaf.bound <= optimum + TOLERANCE, seed
    if problem.max_terms is not None:
        least = whole_dictionary(seed, problem, rule, dictionary.intercept).best(problem.max_terms)
        assert least <= optimum + TOLERANCE, seed
        assert outer.leaf.bound <= least + TOLERANCE, seed
    return found.objective - optimum


@pytest.mark.long
def test_bounds_and_objectives_enclose_the_optimum_of_stumps():
    misses = [solve_stumps(seed) for seed in range(15)]
    assert np.mean([miss <= 1e-6 for miss in misses]) >= 0.9


@pytest.mark.long
def test_bounds_and_objectives_enclose_the_optimum_of_many_stumps():
    misses = [solve_stumps(seed) for seed in range(1000, 1200)]
    assert np.mean([miss <= 1e-6 for miss in misses]) >= 0.9


def test_an_equal_column_of_a_cheaper_feature_is_part_of_the_dictionary():
    """A bound that took columns of a dear feature for those of its cheap copy would be above the optimum."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, 60).astype(float)
    X = np.stack([x, x], axis=1)
    sign = np.where(x + rng.normal(0, 0.7, 60) > 1.0, 1, -1).astype(np.int8)
    weights = RowWeights.make(60, None)
    matrix = bin_table(read_table(X), weights, 255, 1)
    dictionary = StumpDictionary(matrix, sign, 1, True, weights, by_feature=True)
    risk = EmpiricalRisk(get_loss("logistic"), weights, sign, 1)
    pool = dictionary.pool()
    dear = dictionary.columns_of(
        np.array([0], np.int32), risk.evaluate(np.zeros(60)), 4, pool, Scoring("edge", 0, 0)
    )
    pool.append(dear.atoms)
    assert set(dear.atoms.feature.tolist()) == {0}
    rule = PriceRule(1e-3, 0.05, 0.0, 1.0, 3.0)
    limits = FeatureLimits(None, np.array([0.3, 0.0]))
    prices = rule.prices(pool.n_columns, pool.n_free)
    problem = SelectionProblem(pool, risk, prices, 2, pool.features, limits)
    found, _ = polish(problem)
    wide = replace(problem, pool=pool.subset(np.arange(pool.n_columns)))
    outer = dictionary_relaxation(wide, dictionary, rule, pool_relaxation(problem))
    assert (wide.pool.features == 1).any()
    A, feature = all_stumps(X, sign, by_feature=True)
    p = rule.prices(A.shape[1] + 2, 2)
    whole = Enumeration(
        np.column_stack([sign, -sign, A]), weights.normalised, "logistic", p.l1, p.l2, p.l0, p.max_weight,
        p.charged, np.r_[-1, -1, feature].astype(np.int32), limits,
    )  # fmt: skip
    least = whole.best(2)
    assert least < found.objective - 0.01
    assert outer.leaf.bound <= least + TOLERANCE


# ---------------------------------------------------------------- more laws


def larger_problem(max_terms, limits, seed=0, columns=20):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(300, 8)), 1)
    sign = np.where(X[:, 0] + np.abs(X[:, 1]) - 0.7 * X[:, 2] + rng.normal(0, 0.5, 300) > 0.6, 1, -1)
    weights = RowWeights.make(300, None)
    matrix = bin_table(read_table(X), weights, 64, 1)
    dictionary = StumpDictionary(matrix, sign.astype(np.int8), 1, True, weights, by_feature=True)
    risk = EmpiricalRisk(get_loss("logistic"), weights, sign.astype(np.int8), 1)
    pool = dictionary.pool()
    for _ in range(columns // 4):
        point = risk.evaluate(rng.normal(size=300) + sign * rng.random())
        pool.append(dictionary.best_columns(point, 4, pool).atoms)
    rule = PriceRule(1e-4, 0.01, 0.0, 2.0, 30.0)
    prices = rule.prices(pool.n_columns, pool.n_free)
    return SelectionProblem(pool, risk, prices, max_terms, pool.features, limits), dictionary, rule


@pytest.mark.parametrize("max_terms", [None, 6])
def test_more_features_and_lower_costs_never_hurt(max_terms):
    last = np.inf
    for f in (0, 1, 2, 3, 8):
        problem, _, _ = larger_problem(max_terms, FeatureLimits(f))
        found, _ = polish(problem)
        check_incumbent(problem, found)
        root = pool_relaxation(problem, found.weights)
        assert root.leaf.bound <= found.objective
        assert found.objective <= last + 1e-9
        last = found.objective
        if f == 0:
            assert len(found.support) == 0
            assert root.leaf.bound == pytest.approx(found.objective, abs=1e-5)
    free, _ = polish(replace(problem, limits=None))
    assert last == pytest.approx(free.objective, abs=2e-3)
    for cost in (0.0, 0.005, 0.02, 5.0):
        problem, _, _ = larger_problem(max_terms, FeatureLimits(None, np.full(8, cost)))
        found, _ = polish(problem)
        check_incumbent(problem, found)
        assert found.objective >= last - 2e-3
        last = found.objective
    assert len(found.support) == 0


def test_the_limit_on_features_tightens_the_bound():
    """The multiplier of the limit, shared by the columns of a feature, is worth something."""
    problem, _, _ = larger_problem(8, FeatureLimits(1))
    found, _ = polish(problem)
    limited = pool_relaxation(problem, found.weights)
    plain = pool_relaxation(replace(problem, limits=None), found.weights)
    assert limited.sigma > 0.0
    gap, wider = found.objective - limited.leaf.bound, found.objective - plain.leaf.bound
    assert 0.0 <= gap < 0.9 * wider
    own = problem.groups[2:]
    assert np.bincount(own, limited.split[2:])[np.unique(own)] == pytest.approx(1.0)


@pytest.mark.parametrize("max_terms", [None, 6])
def test_more_columns_of_the_chosen_features(max_terms):
    problem, dictionary, rule = larger_problem(max_terms, FeatureLimits(2))
    found, _ = polish(problem)
    known = problem.pool.n_columns
    wider, better = deepen(problem, found, dictionary, rule)
    assert better.objective < found.objective - 1e-3
    assert wider.pool.n_columns > known
    check_incumbent(wider, better)
    stumps = wider.pool.stumps[2:]
    assert len(set(zip(stumps.feature, dictionary.digest_of(stumps), strict=True))) == len(stumps)
    root = pool_relaxation(wider, better.weights)
    assert root.leaf.bound <= better.objective


def trained(X, y, **more):
    """A model with its certificate, straight from the training."""
    weights = RowWeights.make(len(X), None)
    matrix = bin_table(read_table(X), weights, 255, 1)
    sign = np.where(y, 1, -1).astype(np.int8)
    options = {
        "loss": get_loss("logistic"), "max_terms": None, "l0": 0.0, "l1": 1e-4, "l2": 0.05,
        "criterion": "gain", "hot_start": 10, "max_iter": 40, "max_weight": 1.0, "tol": 1e-3,
    }  # fmt: skip
    settings = TrainingSettings(**{**options, **more})
    limited = settings.limits is not None
    dictionary = StumpDictionary(matrix, sign, 1, True, weights, by_feature=limited)
    risk = EmpiricalRisk(settings.loss, weights, sign, 1)
    frame = ModelFrame("logistic", X.shape[1], None, (False, True), matrix.cuts, matrix.categories)
    return train(StumpTask(dictionary, risk, frame, lambda: checker.data_digest(X, y)), settings)


@pytest.mark.parametrize("seed", first(4, range(10)))
def test_training_keeps_to_the_limits_and_proves_it(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (40, 4)).astype(float)
    X[:, 3] = X[:, 0]
    if seed % 2:
        X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) + rng.normal(size=40) > 2.0
    f = [1, 2, None][seed % 3]
    costs = np.array([0.05, 0.0, 0.01, 0.02]) if f is None or seed % 2 else None
    k = [2, None, 1][seed % 3 if f else 0]
    result = trained(X, y, max_terms=k, max_features=f, feature_costs=costs)
    certificate, content = result.certificate, result.certificate.content
    assert certificate.faults(X, y) == []
    used = sorted({term.feature for term in result.ensemble.terms})
    assert f is None or len(used) <= f
    assert content["problem"]["max_features"] == f
    assert content["problem"]["feature_costs"] == (None if costs is None else costs.tolist())
    sign = np.where(y, 1.0, -1.0)
    A, feature = all_stumps(X, sign, by_feature=True)
    p = PriceRule(1e-4, 0.05, 0.0, 1.0, 30.0).prices(A.shape[1] + 2, 2)
    limits = FeatureLimits(f, costs)
    whole = Enumeration(
        np.column_stack([sign, -sign, A]), np.full(40, 1 / 40), "logistic", p.l1, p.l2, p.l0, p.max_weight,
        p.charged, np.r_[-1, -1, feature].astype(np.int32), limits,
    )  # fmt: skip
    optimum = whole.best(k)
    assert certificate.bound("dictionary").lower_bound <= optimum + TOLERANCE
    assert optimum <= certificate.objective + TOLERANCE
    assert certificate.bound("dictionary").lower_bound <= certificate.bound("pool").lower_bound + 1e-9
    broken = certificate.to_dict()
    broken["problem"]["max_features"] = len(used) + 1 if f is None else f + 1
    assert checker.check(broken, X, y)


def test_training_with_limits_does_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 6, (120, 5)).astype(float)
    y = X[:, 0] + X[:, 1] - X[:, 2] + rng.normal(size=120) > 3.0
    order = rng.permutation(120)
    options = {"max_terms": 4, "max_features": 2, "feature_costs": np.full(5, 0.001)}
    one, other = trained(X, y, **options), trained(X[order], y[order], **options)
    assert one.certificate.content == other.certificate.content
    assert one.ensemble.terms == other.ensemble.terms


def test_selection_with_limits_stops_when_told():
    problem, dictionary, rule = larger_problem(4, FeatureLimits(2, np.full(8, 0.01)))
    late = lambda: True  # noqa: E731
    found, _ = polish(problem, late=late)
    check_incumbent(problem, found)
    same, again = deepen(problem, found, dictionary, rule, late)
    assert same is problem
    assert again is found
    root = pool_relaxation(problem, found.weights, late)
    assert root.leaf.bound <= found.objective + 1e-12
    solver = RelaxationSolver(problem, found.weights, dictionary, rule, late=late)
    solver.balance(5)
    assert solver.best.bound <= found.objective + 1e-12

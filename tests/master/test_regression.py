"""Regression: stumps under the squared loss, against least squares, the Lasso and enumeration; equal bits."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Lasso

import reference
from cardboost.boosting import totally_corrective
from cardboost.boosting.loop import StopRule
from cardboost.boosting.totally_corrective import ONE_AT_A_TIME, Pace, generate
from cardboost.data.binning import bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.base import Scoring
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.master.newton import Master
from cardboost.problem.bound import dual_bound
from cardboost.problem.losses import LOSSES, SQUARED
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.polish import polish
from cardboost.selection.relaxation import dictionary_relaxation, pool_relaxation
from cardboost.selection.selection_problem import SelectionProblem
from marks import first


@dataclass(frozen=True, eq=False)
class Setting:
    """All stumps of a small table, and the squared loss of its standardised target."""

    dictionary: StumpDictionary
    risk: EmpiricalRisk

    @classmethod
    def make(cls, X, y, raw=None, *, intercept=True, threads=1, max_bins=255, sketch=False, standard=True):
        weights = RowWeights.make(len(y), raw)
        if standard:
            y = y - weights.mean(y)
            y = y / np.sqrt(weights.mean(y * y))
        matrix = bin_table(read_table(X), weights, max_bins, threads)
        dictionary = StumpDictionary(matrix, None, threads, intercept, weights if sketch else None)
        return cls(dictionary, EmpiricalRisk(SQUARED, weights, None, threads, target=y))

    def columns(self) -> np.ndarray:
        """Every distinct stump that is not constant: shape (rows, stumps)."""
        matrix, found = self.dictionary.matrix, {}
        for f in range(matrix.n_features):
            for stump in reference.all_stumps(int(matrix.n_bins[f]), bool(matrix.n_missing[f])):
                h = reference.stump_column(matrix.bins[f], *stump)
                if abs(h.sum()) < len(h):
                    found[tuple(h)] = h
        return np.array(list(found.values()), dtype=float).T

    def generate(self, rule, max_columns=10_000, tol=1e-9, pace=ONE_AT_A_TIME, criterion="gain", scout=None):
        pool = self.dictionary.pool()
        master = Master(pool, self.risk, lambda own: rule.prices(own.n_columns, own.n_free))
        return pool, *generate(
            self.dictionary, master, StopRule(max_columns, tol), scoring=Scoring(criterion, rule.l1, rule.l2),
            unseen=rule.prices(1, 0), pace=pace, scout=scout,
        )  # fmt: skip


def table(seed, rows=None, features=3, missing=0.1):
    """Few distinct values, a target with structure and heavy tails, and weights of three kinds."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(15, 60)) if rows is None else rows
    X = rng.integers(0, 4, (rows, features)).astype(float)
    y = X[:, 0] + 2.0 * (X[:, -1] > 1) + rng.standard_t(3, rows)
    X[rng.random(X.shape) < missing] = np.nan
    raw = [None, rng.integers(1, 4, rows).astype(float), rng.uniform(0.1, 2, rows)][seed % 3]
    return X, y, raw


# ---------------------------------------------------------------- against other solvers


@pytest.mark.parametrize("seed", first(5, range(12)))
def test_without_prices_it_is_least_squares(seed):
    setting = Setting.make(*table(seed), intercept=seed % 2 == 0)
    pool, solution, _ = setting.generate(PriceRule(0.0, 0.0, intercept_box=100.0))
    a, s = setting.columns(), setting.risk.weights.normalised
    a = np.column_stack([a, np.ones(len(a))]) if setting.dictionary.intercept else a
    root = np.sqrt(s)
    best = np.linalg.lstsq(a * root[:, None], setting.risk.target * root, rcond=None)[0]
    expected = SQUARED.value(a @ best - setting.risk.target, s)
    assert solution.objective == pytest.approx(expected, rel=1e-9, abs=1e-14)
    F = pool.margins(solution.weights)
    assert solution.objective == pytest.approx(SQUARED.value(F - setting.risk.target, s), rel=1e-12)


@pytest.mark.parametrize("seed", first(5, range(12)))
@pytest.mark.parametrize("l2", [0.0, 0.03])
@pytest.mark.parametrize("criterion", ["edge", "gain"])
def test_it_is_the_lasso_with_positive_weights(seed, l2, criterion):
    l1 = [0.001, 0.01, 0.1][seed % 3]
    setting = Setting.make(*table(100 + seed), intercept=seed % 2 == 0)
    rule = PriceRule(l1, l2, intercept_box=100.0)
    _, solution, trace = setting.generate(rule, criterion=criterion)
    a, s, target = setting.columns(), setting.risk.weights.normalised, setting.risk.target
    options = {
        "fit_intercept": setting.dictionary.intercept,
        "positive": True,
        "tol": 1e-12,
        "max_iter": 10**6,
    }
    peer = ElasticNet(l1 + l2, l1_ratio=l1 / (l1 + l2), **options) if l2 else Lasso(l1, **options)
    peer.fit(a, target, sample_weight=s)
    w = peer.coef_
    expected = SQUARED.value(a @ w + peer.intercept_ - target, s) + l1 * w.sum() + 0.5 * l2 * (w @ w)
    assert solution.objective == pytest.approx(expected, rel=1e-8)
    assert solution.lower_bound <= expected
    assert trace.status in ("optimal", "exhausted")
    assert all(record.lower_bound <= expected <= record.objective * (1 + 1e-9) for record in trace)


@pytest.mark.parametrize("l1", [1e-3, 1e-2, 0.1])
def test_a_sketch_of_a_large_table_gives_the_same_optimum(l1):
    """With more than 32,768 rows Hessians are estimated from some of them; objective and bound are exact."""
    X, y, _ = table(5, rows=40_000)
    rule = PriceRule(l1, 0.0, intercept_box=100.0)
    first = Setting.make(X, y, sketch=True)
    assert first.dictionary.sketch is not None
    _, found, _ = first.generate(rule)
    _, expected, _ = Setting.make(X, y).generate(rule)
    assert found.objective == pytest.approx(expected.objective, rel=1e-8)
    assert found.lower_bound <= expected.objective
    assert found.gap <= 1e-5 * found.objective


def test_scouts_see_targets(monkeypatch):
    monkeypatch.setattr(totally_corrective, "SCOUT_ROWS", 2048)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 4)).round(1)
    y = X[:, 0] + (X[:, 1] > 1) * 3 + rng.normal(size=20_000)
    rule = PriceRule(1e-3, 1e-3, intercept_box=100.0)
    pace = Pace(columns=lambda n: 4 + n, newton_steps=1)

    def run(order, threads):
        setting = Setting.make(X[order], y[order], threads=threads)
        small = totally_corrective.Scout.make(setting.dictionary, setting.risk, rule, pace, Scoring("gain"))
        assert small is not None
        pool, solution, _ = setting.generate(rule, 16, pace=pace, scout=small.propose)
        return pool.n_columns, solution.objective, solution.lower_bound, solution.weights.tobytes()

    first = run(np.arange(20_000), 1)
    assert first[0] == 18
    assert first[1] < 0.25, "half of the variance at least"
    assert run(rng.permutation(20_000), 2) == first


# ---------------------------------------------------------------- few terms, by enumeration


class Enumeration:
    """Every support of a few columns, solved exactly: of each weight both bounds and the inside are tried."""

    def __init__(self, columns, setting, rule):
        s, target, rows = setting.risk.weights.normalised, setting.risk.target, len(columns)
        free = setting.dictionary.intercept
        a = np.column_stack([np.ones(rows), columns]) if free else columns
        self.first, self.rule = int(free), rule
        self.gram, self.c = (a.T * s) @ a, a.T @ (s * target)
        self.null = 0.5 * float(s @ target**2)

    def of_size(self, size) -> float:
        """The least objective over all supports with so many columns."""
        rule, n = self.rule, self.first + size
        supports = list(itertools.combinations(range(self.first, len(self.c)), size))
        if n == 0 or not supports:
            return self.null if size == 0 else np.inf
        own = np.array([(*range(self.first), *support) for support in supports], dtype=int)
        charged = np.arange(n) >= self.first
        Q = self.gram[own[:, :, None], own[:, None, :]] + np.diag(np.where(charged, rule.l2, 0.0))
        c = self.c[own] - np.where(charged, rule.l1, 0.0)
        low = np.where(charged, 0.0, -rule.intercept_box)
        high = np.where(charged, rule.max_weight, rule.intercept_box)
        best = np.inf
        for places in itertools.product((0, 1, 2), repeat=n):
            at = np.array(places)
            inside = at == 2
            w = np.tile(np.where(at == 0, low, high), (len(own), 1))
            block = Q[:, inside][:, :, inside]
            usable = np.linalg.det(block) > 1e-9  # otherwise the same value is reached at a bound
            rest = c[:, inside] - np.einsum("sij,sj->si", Q[:, inside][:, :, ~inside], w[:, ~inside])
            block[~usable] = np.eye(int(inside.sum()))
            w[:, inside] = np.linalg.solve(block, rest[:, :, None])[:, :, 0]
            usable &= ((w >= low - 1e-12) & (w <= high + 1e-12)).all(axis=1)
            value = 0.5 * np.einsum("si,sij,sj->s", w, Q, w) - (c * w).sum(axis=1)
            best = min(best, float(value[usable].min(initial=np.inf)))
        return self.null + best + rule.l0 * size

    def best(self, k) -> float:
        return min(self.of_size(size) for size in range(k + 1))


def select(seed):
    """Bounds over pool and dictionary, objective, and both optima of one random problem."""
    rng = np.random.default_rng(seed)
    X, y, raw = table(seed, int(rng.integers(8, 30)), 2, 0.1 if seed % 4 == 0 else 0.0)
    setting = Setting.make(X, y, raw, intercept=bool(rng.random() < 0.7))
    if setting.columns().size == 0:
        return None
    rule = PriceRule(
        l1=float(rng.choice([0.0, 1e-3, 0.02])),
        l2=float(rng.choice([0.0, 0.01, 0.1])),
        l0=float(rng.choice([0.0, 0.01, 0.05])),
        max_weight=float(rng.choice([0.2, 0.7, 3.0])),
        intercept_box=float(rng.choice([0.3, 30.0])),
    )
    k = 1 + seed % 2
    pool, solution, _ = setting.generate(rule, int(rng.integers(2, 7)))
    problem = SelectionProblem(pool, setting.risk, rule.prices(pool.n_columns, pool.n_free), k)
    found, _ = polish(problem, solution.weights)
    value = setting.risk.evaluate(pool.margins(found.weights)).value
    assert found.objective == pytest.approx(problem.objective(value, found.weights), rel=1e-11)
    assert len(found.support) <= k
    assert (found.weights <= problem.prices.max_weight).all()
    root = pool_relaxation(problem, found.weights)
    own = Enumeration(pool.dense()[:, pool.n_free :].astype(float), setting, rule).best(k)
    wide = replace(problem, pool=pool.subset(np.arange(pool.n_columns)))
    outer = dictionary_relaxation(wide, setting.dictionary, rule, root)
    everything = Enumeration(setting.columns(), setting, rule).best(k)
    # what a leaf claims is what its weights prove on the rows as they are
    point = setting.risk.evaluate(pool.margins(root.leaf.weights))
    if root.leaf.theta > 0:
        bound, theta = dual_bound(point, pool.edges(point), problem.prices, k)
        assert theta == pytest.approx(root.leaf.theta, rel=1e-12)
        assert bound == pytest.approx(root.leaf.bound, abs=1e-12)
    assert 0.0 <= root.leaf.bound <= own + 1e-12, seed
    assert 0.0 <= outer.leaf.bound <= everything + 1e-12, seed
    assert everything <= own + 1e-12
    assert own <= found.objective + 1e-9, seed
    return found.objective - own


def shares(seeds):
    misses = [miss for miss in map(select, seeds) if miss is not None]
    assert len(misses) > 0.8 * len(seeds)
    return np.mean([miss <= 1e-7 for miss in misses])


def test_bounds_and_objectives_enclose_the_optimum():
    assert shares(range(30)) >= 0.9


@pytest.mark.long
def test_bounds_and_objectives_enclose_the_optimum_of_many_tables():
    assert shares(range(1000, 2000)) >= 0.9


@pytest.mark.parametrize("seed", range(20))
def test_any_row_weights_bound_the_optimum(seed):
    """Whatever the margins and however u was scaled to make the bound finite."""
    rng = np.random.default_rng(seed)
    setting = Setting.make(*table(seed, 30, 2))
    rule = PriceRule(0.01, 0.0, 0.01 * (seed % 2), np.inf if seed % 4 < 2 else 1.0, 30.0)
    pool, solution, _ = setting.generate(replace(rule, l0=0.0))
    optimum = solution.objective  # of the convex problem, which l0 only raises
    prices = rule.prices(pool.n_columns, pool.n_free)
    boxed = replace(rule, max_weight=1.0)
    charged = boxed.prices(pool.n_columns, pool.n_free)
    few = {k: Enumeration(setting.columns(), setting, boxed).best(k) for k in (1, 2)}
    thetas = []
    for size in (0.0, 0.1, 1.0, 30.0):
        F = rng.normal(0, size, len(setting.risk.target)) + pool.margins(
            solution.weights * rng.uniform(0, 1.2)
        )
        point = setting.risk.evaluate(F - setting.risk.weights.mean(F - setting.risk.target))
        unseen = setting.dictionary.best_columns(point, 1, pool).bound
        bound, theta = dual_bound(point, pool.edges(point), prices.convex(), None, unseen, rule.prices(1, 0))
        assert bound <= optimum * (1 + 1e-9)
        thetas.append(theta)
        for k, optimum_k in few.items():
            bound, _ = dual_bound(point, pool.edges(point), charged, k, unseen, boxed.prices(1, 0))
            assert bound <= optimum_k + 1e-12
    assert all(0.0 <= theta <= 1.0 for theta in thetas)


# ---------------------------------------------------------------- merged rows


@pytest.mark.parametrize("seed", range(12))
def test_rows_with_different_targets_are_merged_around_their_mean(seed):
    rng = np.random.default_rng(seed)
    X, y, raw = table(seed, 200, 2)
    if seed % 4 == 0:
        y[3] = 1e4  # an outlier
    if seed % 4 == 1:
        y = np.round(y)  # many equal targets
    setting = Setting.make(X, y, raw)
    pool, solution, _ = setting.generate(PriceRule(0.01, 0.0, intercept_box=30.0), 6)
    problem = SelectionProblem(
        pool, setting.risk, PriceRule(0.01, 0.0).prices(pool.n_columns, pool.n_free), 2
    )
    merged = merge_rows(problem)
    assert merged.risk.weights.n_rows == len(np.unique(pool.dense(), axis=0)) < 200
    assert merged.risk.offset > 0
    for w in (np.zeros(pool.n_columns), solution.weights, rng.uniform(0, 2, pool.n_columns)):
        a, b = (own.risk.evaluate(own.pool.margins(w)) for own in (problem, merged))
        size = max(1.0, a.value)
        assert a.value == pytest.approx(b.value, rel=1e-13)
        np.testing.assert_allclose(problem.pool.edges(a), merged.pool.edges(b), rtol=0, atol=1e-13 * size)
        np.testing.assert_allclose(
            problem.pool.gram(a, exact=True), merged.pool.gram(b, exact=True), rtol=0, atol=1e-13
        )
        for theta in (1.0, 0.6, 1e-3):
            assert a.dual(theta) == pytest.approx(b.dual(theta), abs=1e-13 * size)
        step = problem.risk.along(a.F, pool.margins(solution.weights), 0.3)
        again = merged.risk.along(b.F, merged.pool.margins(solution.weights), 0.3)
        assert step == pytest.approx(again, rel=1e-12, abs=1e-13 * size)
    order = rng.permutation(200)
    other = Setting.make(X[order], y[order], None if raw is None else raw[order])
    moved = other.dictionary.pool()
    moved.append(pool.stumps[pool.n_free :])
    shuffled = merge_rows(replace(problem, pool=moved, risk=other.risk))
    assert shuffled.risk.target.tobytes() == merged.risk.target.tobytes()
    assert shuffled.risk.offset == merged.risk.offset
    assert np.array_equal(shuffled.pool.dense(), merged.pool.dense())
    again = merge_rows(merged)
    assert again.risk.offset == merged.risk.offset, "there is nothing left to merge"
    np.testing.assert_array_equal(again.risk.target, merged.risk.target)


def test_a_sketch_of_merged_rows_keeps_their_targets():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 12)).round(2)
    setting = Setting.make(X, X.sum(axis=1) + rng.normal(size=3000), max_bins=4)
    pool, solution, _ = setting.generate(PriceRule(1e-3, 0.0, intercept_box=30.0), 30)
    prices = PriceRule(1e-3, 0.0).prices(pool.n_columns, pool.n_free)
    merged = merge_rows(SelectionProblem(pool, setting.risk, prices, 5))
    small = sketch_rows(merged, 300)
    assert 150 <= small.risk.weights.n_rows == len(small.risk.target) <= 600
    point = small.risk.evaluate(small.pool.margins(solution.weights))
    assert point.value == pytest.approx(solution.objective, rel=0.5)


# ---------------------------------------------------------------- equal bits


def everything(X, y, raw, threads, sketch=False):
    """All numbers of a fit with a selection and its bounds, as bytes."""
    setting = Setting.make(X, y, raw, threads=threads, max_bins=32, sketch=sketch)
    rule = PriceRule(1e-4, 1e-3, 0.0, 2.0, 50.0)
    pace = Pace(columns=lambda n: 1 + n // 8, newton_steps=2)
    pool, solution, trace = setting.generate(rule, 12, pace=pace)
    problem = SelectionProblem(pool, setting.risk, rule.prices(pool.n_columns, pool.n_free), 3)
    found, _ = polish(problem, solution.weights)
    root = pool_relaxation(problem, found.weights)
    wide = replace(problem, pool=pool.subset(np.arange(pool.n_columns)))
    outer = dictionary_relaxation(wide, setting.dictionary, rule, root)
    numbers = [solution.objective, solution.lower_bound, found.objective, root.leaf.bound, outer.leaf.bound]
    rounds = [(record.objective, record.lower_bound, record.edge) for record in trace]
    arrays = [solution.weights, found.weights, root.weights, outer.weights, numbers, rounds]
    stumps = pool.stumps
    whole = [stumps.feature, stumps.cut, stumps.polarity, stumps.missing_left]
    return b"".join(np.asarray(part, dtype=float).tobytes() for part in [*arrays, *whole])


def wide_table(weighting, rows=2500):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rows, 5)).round(2)
    y = X[:, 0] + np.abs(X[:, 1]) + rng.standard_t(2, rows)
    y[11] = 3e4
    X[rng.random(X.shape) < 0.05] = np.nan
    raw = {"none": None, "counts": rng.integers(1, 5, rows).astype(float), "real": rng.uniform(0.1, 3, rows)}
    return X, y, raw[weighting]


@pytest.mark.parametrize("weighting", ["none", "counts", "real"])
def test_the_same_bits_for_any_threads_and_any_order(weighting):
    X, y, raw = wide_table(weighting)
    first = everything(X, y, raw, 1)
    assert everything(X, y, raw, 2) == first
    assert everything(X, y, raw, 7) == first
    order = np.random.default_rng(5).permutation(len(y))
    assert everything(X[order], y[order], None if raw is None else raw[order], 2) == first


def test_a_count_is_the_row_so_many_times():
    X, y, raw = wide_table("counts")
    times = raw.astype(int)
    again = everything(np.repeat(X, times, axis=0), np.repeat(y, times), None, 2)
    assert everything(X, y, raw, 1) == again


@pytest.mark.long
def test_the_same_bits_on_a_large_table():
    X, y, raw = wide_table("none", 34_000)
    first = everything(X, y, raw, 1, sketch=True)
    order = np.random.default_rng(5).permutation(len(y))
    assert everything(X[order], y[order], raw, 2, sketch=True) == first


# ---------------------------------------------------------------- edges of the numbers


@pytest.mark.parametrize("size", [1e-6, 1e6])
@pytest.mark.parametrize("weighting", ["none", "counts", "real"])
def test_targets_of_any_size(size, weighting):
    """Not standardised: the problem scales with the target."""
    X, y, raw = wide_table(weighting, 500)
    fits = []
    for factor in (1.0, size):
        setting = Setting.make(X, y, raw, max_bins=32)
        risk = replace(setting.risk, target=setting.risk.target * factor)
        rule = PriceRule(0.01 * factor, 0.001, intercept_box=1e9)
        _, solution, _ = replace(setting, risk=risk).generate(rule, 20, tol=0.0)
        fits.append(solution)
    plain, scaled = fits
    assert scaled.objective == pytest.approx(plain.objective * size**2, rel=1e-7)
    assert 0.0 <= scaled.lower_bound <= scaled.objective * (1 + 1e-12)


def test_one_outlier_does_not_blind_the_rest():
    """A target of 1e6 on a row that weighs next to nothing: the others are fitted as without it."""
    X, y, _ = wide_table("none", 400)
    y = np.clip(y, -5, 5)
    target = (y - y.mean()) / y.std()
    raw = np.ones(401)
    raw[400] = 1e-15
    rule = PriceRule(1e-3, 1e-3, intercept_box=1e3)
    more = Setting.make(np.vstack([X, X[:1]]), np.append(target, 1e6), raw, max_bins=32, standard=False)
    less = Setting.make(X, target, None, max_bins=32, standard=False)
    with_outlier, without = (own.generate(rule, 15, tol=0.0)[1] for own in (more, less))
    constant = 0.5e12 * 1e-15 / 400
    assert with_outlier.objective == pytest.approx(without.objective + constant, abs=1e-8)
    assert with_outlier.lower_bound <= with_outlier.objective


def test_a_perfect_fit_ends():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    setting = Setting.make(X, np.array([-1.0, -1.0, 1.0, 1.0]))
    _, solution, trace = setting.generate(PriceRule(0.0, 0.0, intercept_box=10.0))
    assert solution.objective <= 1e-30
    assert len(trace) <= 4
    _, solution, _ = setting.generate(PriceRule(1e-3, 0.0, intercept_box=10.0))
    assert solution.weights.max() == pytest.approx(1 - 1e-3, rel=1e-12)
    assert solution.gap <= 1e-9


def test_nothing_to_fit():
    setting = Setting.make(np.arange(6.0)[:, None], np.zeros(6), standard=False)
    _, solution, trace = setting.generate(PriceRule(0.0, 0.0, intercept_box=10.0))
    assert solution.objective == solution.lower_bound == 0.0
    assert not solution.weights.any()
    assert len(trace) == 1


def test_a_free_intercept_is_the_weighted_mean():
    X, y, raw = table(2)
    setting = Setting.make(X, y, raw, standard=False)
    pool = setting.dictionary.pool()
    rule = PriceRule(0.0, 0.0, intercept_box=100.0)
    master = Master(pool, setting.risk, lambda own: rule.prices(own.n_columns, own.n_free))
    solution = master.solve(tol=1e-12)
    mean = setting.risk.loss.best_constant(setting.risk.weights.mean(y))
    assert solution.weights[0] - solution.weights[1] == pytest.approx(mean, rel=1e-12)
    assert mean == pytest.approx(float(np.average(y, weights=raw)), rel=1e-14)
    assert solution.status == "optimal"


def test_targets_belong_to_losses_of_the_residual():
    weights = RowWeights.make(3, None)
    for loss, sign, target in [
        (SQUARED, None, None),
        (LOSSES["logistic"], None, np.zeros(3)),
        (SQUARED, np.ones(3, np.int8), np.zeros(3)),
    ]:
        with pytest.raises(ValueError, match=r"loss of the residual|squared loss"):
            EmpiricalRisk(loss, weights, sign, target=target)

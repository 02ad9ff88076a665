"""The stump dictionary against the explicit matrix of all stumps, built column by column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cardboost.data.binning import BinnedMatrix, bin_table
from cardboost.data.categories import Categories
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.base import Scoring
from cardboost.dictionary.label_orders import label_orders
from cardboost.dictionary.stump_arrays import CONSTANT, Stumps
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.problem.losses import LOSSES, SQUARED
from cardboost.problem.risk import EmpiricalRisk


class Everything:
    """All distinct, non-constant stumps that are allowed, as columns h_j(x), with the stump of each."""

    def __init__(self, dictionary: StumpDictionary) -> None:
        matrix, self.columns, self.stumps = dictionary.matrix, [], []
        seen = set()
        for f in range(matrix.n_features):
            equals, n_bins = bool(matrix.categorical[f]), int(matrix.n_bins[f])
            way = 0 if dictionary.monotonic is None else int(dictionary.monotonic[f])
            for cut, side, polarity in reference.all_stumps(n_bins, bool(matrix.n_missing[f]), equals):
                if polarity == way and cut < n_bins - 1:
                    continue  # +1 on the left falls where it should rise
                h = reference.stump_column(matrix.bins[f], cut, side, polarity, equals)
                if abs(h.sum()) < len(h) and tuple(h) not in seen:
                    seen.add(tuple(h))
                    self.columns.append(h)
                    self.stumps.append((f, cut, side, polarity, equals, None))
        for f, order in enumerate(dictionary.orders):
            if order is None:
                continue
            for last, side, polarity in reference.all_sets(order.tolist(), bool(matrix.n_missing[f])):
                codes = order[: last + 1]
                h = reference.set_column(matrix.bins[f], codes, side, polarity)
                if abs(h.sum()) < len(h) and tuple(h) not in seen:
                    seen.add(tuple(h))
                    self.columns.append(h)
                    self.stumps.append((f, last, side, polarity, False, codes))

    def atoms(self, which) -> Stumps:
        feature, cut, side, polarity, equals, codes = ([self.stumps[j][k] for j in which] for k in range(6))
        sets = {j: own for j, own in enumerate(codes) if own is not None}
        return Stumps.make(feature, cut, polarity, side, equals, sets)


def make(
    rng,
    rows,
    features,
    *,
    weights=None,
    loss="logistic",
    max_bins=6,
    intercept=True,
    threads=1,
    categorical=False,
    constrained=False,
    sets=False,
):
    """A dictionary on a table with doubled and mirrored features, constants and missing values; its risk."""
    X = np.round(rng.normal(size=(rows, features)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    X = np.column_stack([X, X[:, 0], -X[:, -1], np.full(rows, 2.0), np.full(rows, np.nan)])
    y = rng.choice([-1, 1], rows).astype(np.int8)
    raw = {"none": None, "counts": rng.integers(1, 5, rows).astype(float), "real": rng.uniform(0.1, 2, rows)}
    row_weights = RowWeights.make(rows, raw[weights or "none"])
    matrix = bin_table(read_table(X), row_weights, max_bins, threads)
    if categorical:
        matrix = with_category(rng, matrix, 7 if sets else 5)
    orders = ()
    if categorical and sets:
        orders = (*[None] * X.shape[1], rng.permutation(7).astype(np.uint8))
    monotonic = None
    if constrained:
        free = [0] if categorical else []
        monotonic = np.array([*rng.choice([-1, 0, 1], X.shape[1]), *free], dtype=np.int8)
    if loss == "squared":
        target = rng.standard_t(2.0, rows)
        risk = EmpiricalRisk(SQUARED, row_weights, None, threads, target)
        return StumpDictionary(matrix, None, threads, intercept, monotonic=monotonic, orders=orders), risk
    risk = EmpiricalRisk(LOSSES[loss], row_weights, y, threads)
    return StumpDictionary(matrix, y, threads, intercept, monotonic=monotonic, orders=orders), risk


def with_category(rng, matrix: BinnedMatrix, n: int) -> BinnedMatrix:
    """One more feature: up to n categories, some of them perhaps absent, and missing ones."""
    codes = rng.integers(0, n, matrix.n_rows).astype(np.uint8)
    codes[rng.random(matrix.n_rows) < rng.choice([0.0, 0.2])] = 255
    categories = (*[None] * matrix.n_features, Categories(tuple("abcdefgh"[:n])))
    missing = np.append(matrix.n_missing, np.count_nonzero(codes == 255))
    return BinnedMatrix(np.vstack([matrix.bins, codes]), (*matrix.cuts, np.empty(0)), missing, categories)


def sign_of(dictionary: StumpDictionary) -> np.ndarray:
    """What is multiplied into the columns."""
    return np.ones(dictionary.matrix.n_rows, np.int8) if dictionary.sign is None else dictionary.sign


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dictionary, risk = make(
        rng,
        draw(st.one_of(st.integers(2, 80), st.just(1030))),
        draw(st.integers(1, 4)),
        weights=draw(st.sampled_from(["none", "counts", "real"])),
        loss=draw(st.sampled_from([*LOSSES, "squared"])),
        max_bins=draw(st.sampled_from([2, 6])),
        intercept=draw(st.booleans()),
        categorical=draw(st.booleans()),
        constrained=draw(st.booleans()),
        sets=draw(st.booleans()),
    )
    return rng, dictionary, risk, risk.evaluate(rng.normal(size=dictionary.matrix.n_rows))


def dual_weights(point) -> tuple[np.ndarray, np.ndarray]:
    """u_i and s_i loss''(F_i) from the plain classes."""
    s, loss = point.risk.weights.normalised, point.risk.loss
    F = point.F if point.risk.target is None else point.F - point.risk.target
    return -s * loss.derivative(F), s * loss.bend(F)


@given(cases())
@settings(max_examples=60)
def test_largest_edges_need_half_the_work(case):
    """The same stump as the search by edge in an empty pool, and the row weights that it gets wrong."""
    _, dictionary, _, point = case
    found = dictionary.largest_edges(point)
    expected = dictionary.best_columns(point, 1, dictionary.pool())
    assert found.bound == expected.bound
    assert len(found) == len(expected)
    if len(found) and found.edges[0] > 0:
        for name in ("feature", "cut", "polarity", "missing_left", "equals", "one_of", "left"):
            np.testing.assert_array_equal(getattr(found.atoms, name), getattr(expected.atoms, name))
        np.testing.assert_array_equal(found.edges, expected.edges)
    pool = dictionary.pool()
    pool.append(found.atoms)
    u = dual_weights(point)[0]
    *wrongs, constant = found.wrong
    edge = found.total * abs(found.constant) / np.abs(u).sum()
    assert constant == pytest.approx(0.5 * (found.total - edge), abs=1e-9 * found.total)
    for column, wrong in zip(pool.dense().T[pool.n_free :], wrongs, strict=True):
        share = np.abs(u)[column * np.sign(u) < 0].sum() / np.abs(u).sum()
        assert wrong / found.total == pytest.approx(share, abs=1e-9)


@given(
    cases(), st.sampled_from(["edge", "gain"]), st.sampled_from([(0.0, 0.0), (1e-3, 0.1)]), st.integers(0, 6)
)
@settings(max_examples=100)
def test_best_column(case, criterion, prices, n_seen):
    """The first proposal is the best of all unseen columns, and the bound is the largest unseen edge."""
    rng, dictionary, _, point = case
    l1, l2 = prices
    everything = Everything(dictionary)
    count = len(everything.columns)
    seen = rng.permutation(count)[: min(n_seen, count)]
    pool = dictionary.pool()
    pool.append(everything.atoms(seen))
    unseen = np.setdiff1d(np.arange(count), seen)
    u, curvature = dual_weights(point)
    y = sign_of(dictionary)
    proposals = dictionary.best_columns(point, 1, pool, Scoring(criterion, l1, l2))
    if len(unseen) == 0:
        assert len(proposals) == 0
        assert proposals.bound == -np.inf
        return
    columns = np.array(everything.columns)[unseen]
    edges = columns @ (u * y)
    size = np.abs(u).sum()
    assert proposals.bound == pytest.approx(edges.max(), abs=1e-12 * size)
    scores = edges
    if criterion == "gain":
        total, cross, total_edge = curvature.sum(), columns @ curvature, (u * y).sum()
        scores = np.array(
            [
                reference.stump_gain(e, c, total, total_edge, l1, l2, dictionary.intercept)
                for e, c in zip(edges, cross, strict=True)
            ]
        )
    best = proposals.atoms
    feature, cut, side, polarity = best.feature[0], best.cut[0], best.missing_left[0], best.polarity[0]
    if best.one_of[0]:
        codes = dictionary.orders[feature][: cut + 1]
        chosen = reference.set_column(dictionary.matrix.bins[feature], codes, side, polarity)
    else:
        equals = bool(dictionary.matrix.categorical[feature])
        chosen = reference.stump_column(dictionary.matrix.bins[feature], cut, side, polarity, equals)
    (at,) = np.flatnonzero((columns == chosen).all(axis=1))
    assert proposals.edges[0] == pytest.approx(edges[at], abs=1e-12 * size)
    assert scores[at] == pytest.approx(scores.max(), rel=1e-9, abs=1e-12 * size)


@given(cases(), st.integers(1, 40))
@settings(max_examples=60)
def test_several_columns(case, k):
    """All distinct, all unseen, and as many as there are; nothing is left when all were proposed."""
    _, dictionary, _, point = case
    everything = Everything(dictionary)
    pool = dictionary.pool()
    proposals = dictionary.best_columns(point, k, pool)
    assert len(proposals) == len(proposals.atoms) == min(k, len(everything.columns))
    pool.append(proposals.atoms)
    columns = pool.dense()[:, pool.n_free :]
    assert len({tuple(h) for h in columns.T}) == columns.shape[1]
    u, _ = dual_weights(point)
    np.testing.assert_allclose(proposals.edges, u @ columns, atol=1e-12 * np.abs(u).sum())
    rest = dictionary.best_columns(point, len(everything.columns) + 3, pool)
    assert len(rest) + len(proposals) == len(everything.columns)
    if len(proposals):
        assert proposals.bound == pytest.approx(proposals.edges.max(), abs=1e-15)


@given(cases(), st.integers(0, 9))
@settings(max_examples=80)
def test_pool_agrees_with_its_dense_matrix(case, n):
    rng, dictionary, risk, point = case
    everything = Everything(dictionary)
    pool = dictionary.pool()
    n = min(n, len(everything.columns))
    pool.append(everything.atoms(rng.permutation(len(everything.columns))[:n]))
    a = pool.dense().astype(float)
    assert pool.n_free == (2 if dictionary.intercept else 0)
    assert a.shape == (dictionary.matrix.n_rows, pool.n_columns)
    assert pool.n_columns == pool.n_free + n
    if dictionary.intercept:
        y = sign_of(dictionary)
        np.testing.assert_array_equal(a[:, :2], np.column_stack([y, -y]))
    weights = np.where(rng.random(pool.n_columns) < 0.3, 0.0, rng.uniform(0, 1, pool.n_columns))
    np.testing.assert_allclose(pool.margins(weights), a @ weights, atol=1e-13)
    u, curvature = dual_weights(point)
    for _ in range(2):  # before and after the dictionary remembers the point
        np.testing.assert_allclose(pool.edges(point), u @ a, atol=1e-12 * np.abs(u).sum())
        dictionary.histograms(point, dictionary.features)
    gram = (a.T * curvature) @ a
    np.testing.assert_allclose(pool.gram(point, exact=True), gram, atol=1e-12 * curvature.sum())
    left = rng.permutation(pool.n_columns)[: rng.integers(0, pool.n_columns + 1)]
    np.testing.assert_allclose(pool.gram(point, left, exact=True), gram[left], atol=1e-12 * curvature.sum())
    keep = np.concatenate([np.arange(pool.n_free), np.arange(pool.n_free, pool.n_columns, 2)])
    np.testing.assert_array_equal(pool.subset(keep).dense(), a[:, keep])
    assert risk.weights.n_rows == len(a)


@given(cases())
@settings(max_examples=40)
def test_forbidding_one_stump_forbids_its_doubles(case):
    rng, dictionary, _, point = case
    everything = Everything(dictionary)
    if not everything.columns:
        return
    j = int(rng.integers(len(everything.columns)))
    pool = dictionary.pool()
    pool.append(everything.atoms([j]))
    proposals = dictionary.best_columns(point, len(everything.columns) + 3, pool)
    own = everything.columns[j] * sign_of(dictionary)
    after = dictionary.pool()
    after.append(proposals.atoms)
    assert not any((own == h).all() for h in after.dense()[:, after.n_free :].T)
    assert len(proposals) == len(everything.columns) - 1, "the opposite stump is another column and stays"


def test_constant_and_missing_columns_are_never_proposed():
    X = np.column_stack([np.full(6, 1.0), np.full(6, np.nan)])
    y = np.array([1, -1, 1, -1, 1, 1], dtype=np.int8)
    weights = RowWeights.make(6, None)
    dictionary = StumpDictionary(bin_table(read_table(X), weights, 255, 1), y)
    point = EmpiricalRisk(LOSSES["logistic"], weights, y).evaluate(np.zeros(6))
    for criterion in ("edge", "gain"):
        proposals = dictionary.best_columns(point, 3, dictionary.pool(), Scoring(criterion))
        assert len(proposals) == 0
        assert proposals.bound == -np.inf


def test_missing_values_alone_make_a_stump():
    X = np.array([[1.0], [1.0], [np.nan], [np.nan]])
    y = np.array([1, 1, -1, -1], dtype=np.int8)
    weights = RowWeights.make(4, None)
    dictionary = StumpDictionary(bin_table(read_table(X), weights, 255, 1), y)
    point = EmpiricalRisk(LOSSES["logistic"], weights, y).evaluate(np.zeros(4))
    proposals = dictionary.best_columns(point, 1, dictionary.pool())
    pool = dictionary.pool()
    pool.append(proposals.atoms)
    np.testing.assert_array_equal(pool.dense()[:, 2], np.ones(4))
    assert proposals.bound == pytest.approx(0.5)


def test_stumps_as_arrays():
    stumps = Stumps.make([0, CONSTANT], [2, 255], [1, -1], [False, True])
    signs = stumps.signs()
    assert signs[0, :4].tolist() == [1, 1, 1, -1]
    assert signs[0, 255] == -1
    assert (signs[1] == -1).all()
    assert len(stumps + stumps[:1]) == 3


@given(cases(), st.booleans())
@settings(max_examples=40)
def test_unseen_edges_are_those_of_features_with_their_sets(case, seen):
    rng, dictionary, _, point = case
    everything = Everything(dictionary)
    pool = dictionary.pool()
    if seen and everything.columns:
        pool.append(everything.atoms(rng.permutation(len(everything.columns))[:3]))
    known = {tuple(h) for h in (pool.dense()[:, pool.n_free :] * sign_of(dictionary)[:, None]).T}
    u, _ = dual_weights(point)
    found = dictionary.unseen_edges(point, pool)
    assert len(found) == dictionary.matrix.n_features
    best: dict[int, float] = {}
    for (f, *_), h in zip(everything.stumps, everything.columns, strict=True):
        if tuple(h) not in known:
            best[f] = max(best.get(f, -np.inf), float(h @ (u * sign_of(dictionary))))
    for f, edge in best.items():  # equal columns of several features are listed at the first of them
        assert found[f] >= edge - 1e-12 * np.abs(u).sum()
    if best:
        assert found.max() == pytest.approx(max(best.values()), abs=1e-12 * np.abs(u).sum())


def test_a_label_or_a_set_is_proposed_for_a_feature_not_both():
    rng = np.random.default_rng(0)
    dictionary, risk = make(rng, 200, 2, categorical=True, sets=True)
    point = risk.evaluate(np.zeros(200))
    proposals = dictionary.best_columns(point, 2, dictionary.pool(), Scoring("gain"))
    assert len(set(proposals.atoms.feature.tolist())) == 2


def test_missing_values_of_a_set_go_to_the_side_of_most_rows():
    codes = np.repeat(np.arange(6, dtype=np.uint8), [1, 1, 1, 5, 6, 7])
    matrix = BinnedMatrix(codes[None], (np.empty(0),), np.zeros(1, np.int64), (Categories(tuple("abcdef")),))
    y = np.where(codes < 3, 1, -1).astype(np.int8)
    dictionary = StumpDictionary(matrix, y, orders=(np.arange(6, dtype=np.uint8)[::-1],))
    pool = dictionary.pool()
    pool.append(dictionary.stumps(np.array([1, 1, 0]), [2, 3, 1], [1, 1, 1], [False, False, False]))
    pool.place_missing(np.ones(pool.n_columns))
    assert pool.stumps.missing_left[2:].tolist() == [True, True, False]
    assert pool.stumps.one_of[2:].tolist() == [True, True, False]


# ------------------------------------------------------------------------------------ orders of labels


def coded(codes, n):
    missing = np.array([np.count_nonzero(codes == 255)])
    return BinnedMatrix(codes[None].astype(np.uint8), (np.empty(0),), missing, (Categories(tuple(range(n))),))


@given(st.integers(0, 2**32), st.sampled_from(["none", "counts", "halves"]), st.booleans())
@settings(max_examples=60)
def test_orders_are_those_of_exact_arithmetic(seed, kind, real):
    rng = np.random.default_rng(seed)
    rows, n = int(rng.integers(1, 60)), int(rng.integers(4, 12))
    codes = np.where(rng.random(rows) < 0.1, 255, rng.integers(0, n, rows))
    raw = {"none": np.ones(rows), "counts": rng.integers(1, 6, rows).astype(float)}
    raw["halves"] = raw["counts"] / 2
    values = rng.integers(-8, 9, rows) / 4 if real else rng.random(rows) < 0.4
    weights = RowWeights.make(rows, None if kind == "none" else raw[kind])
    (found,) = label_orders(coded(codes, n), weights, values, 2)
    exact = reference.label_order(codes, n, raw[kind], values)
    if found.tolist() != exact:  # only where means agree to the last digits
        total = np.array([raw[kind][codes == c].sum() for c in range(n)])
        held = np.array([(raw[kind] * values)[codes == c].sum() for c in range(n)])
        mean = (held + 10 * np.average(values, weights=raw[kind])) / (total + 10)
        np.testing.assert_allclose(mean[found], mean[exact], rtol=1e-12, atol=1e-12)


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=40)
def test_orders_take_weights_for_repetitions_in_any_order(seed, real):
    rng = np.random.default_rng(seed)
    rows, n = 80, 9
    codes = np.where(rng.random(rows) < 0.1, 255, rng.integers(0, n, rows))
    values = rng.standard_t(2.0, rows) if real else rng.random(rows) < 0.3
    count = rng.integers(1, 4, rows)
    at = rng.permutation(np.repeat(np.arange(rows), count))
    (one,) = label_orders(coded(codes, n), RowWeights.make(rows, count.astype(float)), values, 1)
    (two,) = label_orders(coded(codes[at], n), RowWeights.make(len(at), None), values[at], 3)
    assert one.tolist() == two.tolist()


def test_orders_with_few_labels_equal_means_and_extreme_weights():
    values = np.array([True, False] * 6)
    assert label_orders(coded(np.arange(12) % 3, 3), RowWeights.make(12, None), values, 1) == (None,)
    (ties,) = label_orders(coded(np.repeat(np.arange(6), 2), 6), RowWeights.make(12, None), values, 1)
    assert ties.tolist() == list(range(6))
    codes, rising = np.repeat(np.arange(6), 2), np.repeat(np.arange(6), 2) < 3
    for size in (5e-324, 1e-300, 1.0, 1e300):
        (order,) = label_orders(coded(codes, 6), RowWeights.make(12, np.full(12, size)), rising, 1)
        assert sorted(order.tolist()) == list(range(6))
        if size >= 1.0:
            assert order.tolist() == [3, 4, 5, 0, 1, 2]


def test_the_unit_of_weights():
    rng = np.random.default_rng(0)
    for raw in (np.full(5, 3.0), np.arange(1.0, 6), np.arange(1.0, 6) / 7, rng.random(5) * 1e10):
        for factor in (None, np.full(5, 0.3), rng.random(5)):
            weights = RowWeights.make(5, raw, factor)
            count = 1 if weights.count is None else weights.count
            own = 1.0 if weights.factor is None else weights.factor
            given = raw * (1.0 if factor is None else factor)
            np.testing.assert_allclose(count * own * weights.unit * np.ones(5), given, rtol=1e-14)
            some = weights.take(np.array([1, 3]))
            held = (1 if some.count is None else some.count) * (1.0 if some.factor is None else some.factor)
            np.testing.assert_allclose(held * some.unit * np.ones(2), given[[1, 3]], rtol=1e-14)

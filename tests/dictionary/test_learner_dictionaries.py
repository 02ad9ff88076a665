"""Dictionaries of any learners: what they propose, what they know, and when they are exhausted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from cardboost.data.binning import bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.base import Scoring
from cardboost.dictionary.learners import (
    Candidate,
    CandidateScores,
    EstimatorDictionary,
    FittedDictionary,
    LearnerPool,
    LearningRows,
    StumpColumns,
    UnionDictionary,
    fit_weights,
    stumps_of,
)
from cardboost.dictionary.resolve import check_estimator
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.model.fitted_learner import FittedLearner
from cardboost.problem.losses import LOSSES
from cardboost.problem.risk import EmpiricalRisk


class Column:
    """A fitted learner that answers with a column of the table."""

    def __init__(self, j):
        self.j = j

    def predict(self, X):
        return X[:, self.j]


def risk_of(loss, weights):
    return EmpiricalRisk(LOSSES[loss], weights, None)


def table(seed, rows=60, features=3):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, features)), 2)
    sign = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=rows) > 0, 1, -1).astype(np.int8)
    sign[:2] = 1, -1
    return rng, X, sign


@st.composite
def cases(draw):
    """A table of outputs, labels, and a point with random margins and weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, n = draw(st.integers(3, 60)), draw(st.integers(1, 7))
    outputs = draw(st.sampled_from(["signs", "real", "zeros"]))
    H = {
        "signs": rng.choice([-1.0, 1.0], (rows, n)),
        "real": rng.normal(size=(rows, n)),
        "zeros": rng.integers(-1, 2, (rows, n)).astype(float),
    }[outputs]
    sign = rng.choice([-1, 1], rows).astype(np.int8)
    raw = {"none": None, "counts": rng.integers(1, 5, rows).astype(float), "real": rng.uniform(0.1, 2, rows)}
    weights = RowWeights.make(rows, raw[draw(st.sampled_from(sorted(raw)))])
    point = risk_of(draw(st.sampled_from(sorted(LOSSES))), weights).evaluate(rng.normal(size=rows))
    return rng, H, LearningRows(H, sign, intercept=draw(st.booleans())), point


def dual_weights(point):
    s, loss = point.risk.weights.normalised, point.risk.loss
    return -s * loss.derivative(point.F), s * loss.bend(point.F)


def distinct(H):
    """Columns that are not constant, the first of equal ones."""
    kept = []
    for j in range(H.shape[1]):
        if (H[:, j] != H[0, j]).any() and not any((H[:, j] == H[:, i]).all() for i in kept):
            kept.append(j)
    return kept


# ------------------------------------------------------------------------------------ the pool


@given(cases())
@settings(max_examples=60)
def test_pool_agrees_with_plain_products(case):
    rng, H, rows, point = case
    pool = LearnerPool(rows.sign, rows.intercept)
    assert pool.n_columns == pool.n_free == (2 if rows.intercept else 0)
    atoms = [Candidate(j, H[:, j] * rows.sign) for j in range(H.shape[1])]
    pool.append(atoms[:1])
    pool.append(atoms[1:])
    pool.append([])
    free = [rows.sign, -rows.sign] if rows.intercept else []
    dense = np.stack([*free, *(H.T * rows.sign)], axis=1).astype(float)
    np.testing.assert_array_equal(pool.dense(), dense)
    weights = np.where(rng.random(pool.n_columns) < 0.3, 0.0, rng.uniform(0, 1, pool.n_columns))
    np.testing.assert_allclose(pool.margins(weights), dense @ weights, rtol=1e-12, atol=1e-12)
    u, curvature = dual_weights(point)
    np.testing.assert_allclose(pool.edges(point), u @ dense, atol=1e-11 * u.sum())
    gram = (dense.T * curvature) @ dense
    room = 1e-11 * curvature.sum()
    np.testing.assert_allclose(pool.gram(point), gram, atol=room)
    np.testing.assert_allclose(pool.gram(point, np.array([pool.n_columns - 1])), gram[-1:], atol=room)
    chosen = np.r_[np.arange(pool.n_free), pool.n_columns - 1]
    part = pool.subset(chosen)
    assert part.n_free == pool.n_free
    np.testing.assert_array_equal(part.dense(), dense[:, chosen])
    assert part.holds(atoms[-1])
    assert pool.candidates == atoms


@given(cases())
@settings(max_examples=40)
def test_squares_are_the_diagonal(case):
    _, H, rows, point = case
    scores = CandidateScores([Candidate(0, h * rows.sign) for h in H.T], rows)
    every = np.arange(H.shape[1] + 1, dtype=np.int32)
    gram = scores.store.gram(every, every, point)
    np.testing.assert_allclose(scores.store.squares(every, point), np.diag(gram), rtol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_gain_is_that_of_the_search_over_bins(seed, intercept):
    rng, X, sign = table(seed)
    X[rng.random(X.shape) < 0.1] = np.nan
    weights = RowWeights.make(len(X), rng.integers(1, 4, len(X)).astype(float))
    stumps = StumpDictionary(bin_table(read_table(X), weights, 20, 1), sign, 1, intercept)
    rows = LearningRows(X, sign, intercept=intercept)
    dictionary = StumpColumns(stumps, rows)
    point = risk_of("logistic", weights).evaluate(rng.normal(size=len(X)))
    pool, found = dictionary.pool(), []
    for _ in range(12):
        best = dictionary.best_columns(point, 1, pool, Scoring("gain", 0.01, 0.1))
        found.append(best.atoms[0])
        pool.append(best.atoms)
    scores = CandidateScores(found, rows)
    values, edges = scores.evaluate(np.arange(12), point, Scoring("gain", 0.01, 0.1))
    assert (np.diff(values) <= 1e-12 * np.abs(values[:-1])).all()
    np.testing.assert_allclose(edges, pool.edges(point)[pool.n_free :], atol=1e-13)


# ------------------------------------------------------------------------------------ fitted learners


@given(cases(), st.integers(1, 8), st.sampled_from(["edge", "gain"]))
@settings(max_examples=60)
def test_fitted_learners_are_searched_exhaustively(case, k, criterion):
    rng, H, rows, point = case
    dictionary = FittedDictionary([Column(j) for j in range(H.shape[1])], rows)
    kept = distinct(H)
    assert [own.learner.learner.j for own in dictionary.candidates] == kept
    assert dictionary.exact
    pool = dictionary.pool()
    seen = rng.permutation(len(kept))[: rng.integers(0, len(kept) + 1)]
    pool.append([dictionary.candidates[j] for j in seen])
    unseen = [j for j in range(len(kept)) if j not in set(seen.tolist())]
    assert [own.learner.learner.j for own in dictionary.remaining(pool)] == [kept[j] for j in unseen]
    u, _ = dual_weights(point)
    edges = {kept[j]: float(u @ (rows.sign * H[:, kept[j]])) for j in unseen}
    proposals = dictionary.best_columns(point, k, pool, Scoring(criterion, 0.01, 0.1))
    assert len(proposals) == len(proposals.atoms) == min(k, len(unseen))
    for atom, edge in zip(proposals.atoms, proposals.edges, strict=True):
        assert edge == pytest.approx(edges[atom.learner.learner.j], abs=1e-11)
        assert not pool.holds(atom)
    assert proposals.bound == pytest.approx(max(edges.values(), default=-math.inf), abs=1e-11)
    if criterion == "edge":
        np.testing.assert_allclose(proposals.edges, sorted(edges.values(), reverse=True)[:k], atol=1e-11)


def test_a_list_of_constant_learners_is_exhausted_at_once():
    rows = LearningRows(np.ones((5, 2)), np.array([1, -1, 1, 1, -1], dtype=np.int8))
    dictionary = FittedDictionary([Column(0), Column(1)], rows)
    point = risk_of("logistic", RowWeights.make(5, None)).evaluate(np.zeros(5))
    found = dictionary.best_columns(point, 3, dictionary.pool(), Scoring("gain", 0.0, 0.0))
    assert len(found) == 0
    assert found.bound == -math.inf
    assert dictionary.remaining(dictionary.pool()) == ()


# ------------------------------------------------------------------------------------ learners fitted here


def start(sign, weights=None, loss="logistic", margins=None):
    weights = RowWeights.make(len(sign), weights)
    return risk_of(loss, weights).evaluate(np.zeros(len(sign)) if margins is None else margins)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("kind", ["none", "counts", "real"])
def test_a_clone_is_fitted_to_the_dual_weights(loss, kind):
    rng, X, sign = table(1)
    raw = {"none": None, "counts": rng.integers(1, 5, 60).astype(float), "real": rng.uniform(0.1, 2, 60)}[
        kind
    ]
    point = start(sign, raw, loss, rng.normal(size=60))
    u = dual_weights(point)[0]
    expected = u / u.sum() * (raw.sum() if kind == "counts" else 60)
    np.testing.assert_allclose(fit_weights(point), expected, rtol=1e-9)
    tree = DecisionTreeClassifier(max_depth=2)
    dictionary = EstimatorDictionary(tree, LearningRows(X, sign))
    proposals = dictionary.best_columns(point, 5, dictionary.pool(), Scoring("gain", 1e-3, 0.1))
    (atom,) = proposals.atoms
    assert proposals.bound == math.inf
    assert not dictionary.exact
    assert dictionary.remaining(dictionary.pool()) is None
    twin = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, sign > 0, sample_weight=expected)
    np.testing.assert_array_equal(atom.column, sign * np.where(twin.predict(X), 1, -1))
    assert atom.column.dtype == np.int8
    assert proposals.edges[0] == pytest.approx(u @ atom.column, abs=1e-12)
    assert not hasattr(tree, "classes_")  # the user's own is left alone


def test_a_row_of_weight_two_is_the_row_twice():
    rng, _, sign = table(2)
    count = rng.integers(1, 4, 60)
    margins = rng.normal(size=60)
    once = fit_weights(start(sign, count.astype(float), margins=margins))
    twice = fit_weights(start(np.repeat(sign, count), margins=np.repeat(margins, count)))
    np.testing.assert_array_equal(once, twice[np.cumsum(count) - 1] * count)


def test_no_weights_left_no_fit():
    point = start(np.array([1, -1], dtype=np.int8), margins=np.array([800.0, 800.0]))
    assert fit_weights(point) is None
    rows = LearningRows(np.array([[0.0], [1.0]]), np.array([1, -1], dtype=np.int8))
    dictionary = EstimatorDictionary(GaussianNB(), rows)
    assert len(dictionary.best_columns(point, 1, dictionary.pool())) == 0


def test_random_states_follow_from_the_seed_and_the_round():
    _, X, sign = table(3)
    rows, point = LearningRows(X, sign), start(sign)

    def columns(seed, made=0, learner=ExtraTreeClassifier(max_depth=2)):  # noqa: B008
        dictionary = EstimatorDictionary(learner, rows, seed)
        pool = dictionary.pool()
        pool.append([Candidate(j, (np.arange(60.0) + j) * sign) for j in range(made)])
        return [own.column.tolist() for own in dictionary.best_columns(point, 1, pool).atoms]

    assert columns(0) == columns(0) == columns(0, learner=ExtraTreeClassifier(max_depth=2, random_state=5))
    many = [columns(seed, made) for seed in (0, 1, (0, 1)) for made in range(4)]
    assert len({str(own) for own in many}) > 3
    nested = AdaBoostClassifier(ExtraTreeClassifier(max_depth=1), n_estimators=2)
    assert columns(0, learner=nested) == columns(0, learner=nested)
    assert nested.estimator.random_state is None


class Ignores(ClassifierMixin, BaseEstimator):
    """Takes weights and forgets them."""

    def fit(self, X, y, sample_weight=None):
        self.tree_ = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict(self, X):
        return self.tree_.predict(X)


class OnlyProbabilities(BaseEstimator):
    def fit(self, X, y, sample_weight=None):
        self.model_ = GaussianNB().fit(X, y, sample_weight)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


class OnlyScores(BaseEstimator):
    def fit(self, X, y, sample_weight=None):
        self.model_ = LogisticRegression().fit(X, y, sample_weight)
        return self

    def decision_function(self, X):
        return self.model_.decision_function(X)


class Raises(BaseEstimator):
    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("no luck today")

    def predict(self, X):
        return np.zeros(len(X))


class Mute(BaseEstimator):
    def fit(self, X, y, sample_weight=None):
        return self


class NamesOthers(Ignores):
    def predict(self, X):
        return np.full(len(X), 7)


class NoWeights(BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Backwards(Ignores):
    def predict(self, X):
        return 1 - self.tree_.predict(X)


def first(learner, seed=4):
    _, X, sign = table(seed)
    check_estimator(learner)
    dictionary = EstimatorDictionary(learner, LearningRows(X, sign))
    pool, point = dictionary.pool(), start(sign)
    return dictionary, pool, point, dictionary.best_columns(point, 1, pool, Scoring("gain", 1e-4, 0.01))


def test_a_learner_that_repeats_itself_is_exhausted():
    dictionary, pool, point, proposals = first(Ignores())
    assert len(proposals) == 1
    pool.append(proposals.atoms)
    again = dictionary.best_columns(point, 1, pool, Scoring("gain", 1e-4, 0.01))
    assert len(again) == 0
    assert again.bound == math.inf


@pytest.mark.parametrize("learner", [DummyClassifier(), Backwards()])
def test_a_learner_without_an_edge_proposes_nothing(learner):
    assert len(first(learner)[3]) == 0


@pytest.mark.parametrize(
    ("learner", "twin"), [(OnlyProbabilities(), GaussianNB()), (OnlyScores(), LogisticRegression())]
)
def test_learners_without_predict(learner, twin):
    _, X, sign = table(4)
    (atom,) = first(learner)[3].atoms
    labels = twin.fit(X, sign, np.ones(60)).predict(X)
    np.testing.assert_array_equal(atom.column, labels * sign)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (KNeighborsClassifier(), "the fit of KNeighborsClassifier does not accept sample_weight"),
        (NoWeights(), "the fit of NoWeights does not accept sample_weight"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "the fit of Pipeline does not accept"),
        (Mute(), "Mute has none of predict, decision_function and predict_proba"),
        (Raises(), "Raises could not be fitted as learner 1: no luck today"),
        (NamesOthers(), "which is not one of its two classes [0, 1]"),
        (DecisionTreeClassifier, "DecisionTreeClassifier is a class; give an instance"),
        (DecisionTreeRegressor(), "DecisionTreeRegressor is a regressor"),
        (Ridge(), "Ridge is a regressor"),
        (Column(0), "Column cannot be fitted"),
        (None, "NoneType cannot be fitted"),
        (3, "int cannot be fitted"),
        (DecisionTreeClassifier(max_depth=-1), "DecisionTreeClassifier could not be fitted as learner 1"),
    ],
)  # fmt: skip
def test_bad_learners_are_named(learner, message):
    with pytest.raises(ValueError) as error:
        first(learner)
    assert str(error.value).startswith("dictionary: ")
    assert message in str(error.value)


def test_good_learners_pass():
    for learner in (DecisionTreeClassifier(), GaussianNB(), LogisticRegression(), OnlyProbabilities()):
        check_estimator(learner)


# ------------------------------------------------------------------------------------ stumps and unions


def stump_columns(X, sign, bins=10):
    weights = RowWeights.make(len(X), None)
    rows = LearningRows(X, sign)
    stumps = StumpDictionary(bin_table(read_table(X), weights, bins, 1), sign, 1, True)
    return StumpColumns(stumps, rows), stumps, rows


@pytest.mark.parametrize("criterion", ["edge", "gain"])
def test_stumps_as_columns_are_the_same_stumps(criterion):
    rng, X, sign = table(5)
    dictionary, stumps, _ = stump_columns(X, sign)
    pool, plain = dictionary.pool(), stumps.pool()
    weights = RowWeights.make(len(X), None)
    for _ in range(8):
        F = rng.normal(size=len(X))
        point = risk_of("logistic", weights).evaluate(F)
        signed = EmpiricalRisk(LOSSES["logistic"], weights, sign).evaluate(F)
        found = dictionary.best_columns(point, 3, pool, Scoring(criterion, 1e-3, 0.1))
        twin = stumps.best_columns(signed, 3, plain, Scoring(criterion, 1e-3, 0.1))
        np.testing.assert_array_equal(found.edges, twin.edges)
        assert found.bound == twin.bound
        pool.append(found.atoms)
        plain.append(twin.atoms)
        np.testing.assert_array_equal(pool.dense(), plain.dense())
    assert dictionary.exact
    assert dictionary.remaining(pool) is None


def test_a_stump_that_another_learner_has_given_is_not_proposed_again():
    _, X, sign = table(6)
    dictionary = stump_columns(X, sign)[0]
    point = start(sign)
    (best,) = dictionary.best_columns(point, 1, dictionary.pool()).atoms
    own, other = dictionary.pool(), dictionary.pool()
    own.append([best])
    other.append([Candidate(FittedLearner(Column(0), None, "predict"), best.column.copy())])
    expected = dictionary.best_columns(point, 2, own)
    found = dictionary.best_columns(point, 2, other)
    assert not any(other.holds(candidate) for candidate in found.atoms)
    assert [own.digest for own in found.atoms] == [own.digest for own in expected.atoms]


def test_a_union_takes_the_best_of_its_parts():
    _, X, sign = table(7)
    stumps, plain, rows = stump_columns(X, sign)
    tree = EstimatorDictionary(DecisionTreeClassifier(max_depth=3), rows)
    fitted = FittedDictionary(
        [Column(0), Column(1), DecisionTreeClassifier(max_depth=1).fit(X, sign)],
        LearningRows(X, sign, (-1, 1)),
    )
    union = UnionDictionary([stumps, tree, fitted], rows)
    assert not union.exact
    assert UnionDictionary([stumps, fitted], rows).exact
    assert union.remaining(union.pool()) is None
    assert len(UnionDictionary([fitted, fitted], rows).remaining(union.pool())) == 3
    assert stumps_of(union) is plain
    assert stumps_of(tree) is None
    point, pool = start(sign), union.pool()
    every = union.best_columns(point, 100, pool)
    assert every.bound == math.inf
    assert (np.diff(every.edges) <= 0).all()
    assert len({own.digest for own in every.atoms}) == len(every)
    for part in union.parts:
        best = part.best_columns(point, 1, pool)
        assert best.edges[0] <= every.edges[0]
    pool.append(every.atoms[:3])
    more = union.best_columns(point, 100, pool)
    assert not any(pool.holds(own) for own in more.atoms)
    exact = UnionDictionary([stumps, fitted], rows).best_columns(point, 2, pool)
    assert exact.bound == max(p.best_columns(point, 1, pool).bound for p in (stumps, fitted))

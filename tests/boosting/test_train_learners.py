"""Ensembles of any learners with certificates: the same loop and selection, and a checker that agrees."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from cardboost import CardBoostClassifier
from cardboost.boosting.learner_task import CertifiedLearners, LearnerTask
from cardboost.boosting.path import ModelFrame
from cardboost.boosting.task import TrainingSettings
from cardboost.data.binning import bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.learners import LearningRows
from cardboost.dictionary.resolve import FittedLearners, ToFit, bind_dictionary, resolve_dictionary
from cardboost.model.ensemble import Ensemble
from cardboost.model.fitted_learner import FittedLearner
from cardboost.problem.budget import Budget
from cardboost.problem.losses import get_loss
from cardboost.problem.risk import risk_of
from cardboost.solvers import minimize_l1
from cardboost.solvers.thinning import thin
from marks import first


def settings(**options):
    given = {
        "loss": "logistic", "max_terms": 5, "l0": 0.0, "l1": 1e-4, "l2": 0.01, "criterion": "gain",
        "hot_start": 12, "max_iter": 40, "max_weight": None, "tol": 1e-4,
    } | options  # fmt: skip
    return TrainingSettings(**given | {"loss": get_loss(given["loss"])})


def table(seed, rows=150):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, 3)), 2)
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=rows) > 0.3
    return X, y


def fit(
    dictionary, X, y, sample_weight=None, class_weight=(1.0, 1.0), seed=0, fit_intercept=True, threads=1,
    **options,
):  # fmt: skip
    raw = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    chosen = settings(**options)
    weights = RowWeights.make(len(y), raw, class_factors(y, class_weight))
    matrix = bin_table(read_table(X), weights, 255, threads)
    return thin(
        learner_task(dictionary, X, y, chosen, matrix, seed, raw, class_weight, fit_intercept, threads),
        chosen,
    )


def class_factors(y, class_weight):
    return None if class_weight == (1.0, 1.0) else np.where(y, class_weight[1], class_weight[0])


def learner_task(
    dictionary, X, y, chosen, matrix=None, seed=0, sample_weight=None, class_weight=(1.0, 1.0),
    fit_intercept=True, threads=1,
):  # fmt: skip
    sign = np.where(y, 1, -1).astype(np.int8)
    weights = RowWeights.make(len(y), sample_weight, class_factors(y, class_weight))
    rows = LearningRows(X, sign, (False, True), fit_intercept, threads)
    bound = bind_dictionary(resolve_dictionary(dictionary), rows, matrix, weights, seed)
    table = (matrix.cuts, matrix.categories) if matrix is not None else ((), ())
    frame = ModelFrame(chosen.loss.name, 3, None, (False, True), *table)
    risk = risk_of(chosen.loss, weights, None, threads)
    return LearnerTask(bound, risk, frame, sample_weight, class_weight)


def forest(X, y, n=30, **options):
    return RandomForestClassifier(n, random_state=0, **options).fit(X, y)


KINDS = {
    "tree": lambda X, y: DecisionTreeClassifier(max_depth=2),
    "bayes": lambda X, y: GaussianNB(),
    "forest": lambda X, y: FittedLearners(forest(X[::2], y[::2]).estimators_),
    "booster": lambda X, y: list(GradientBoostingClassifier(n_estimators=15).fit(X[::2], y[::2]).estimators_),
    "stumps": lambda X, y: ["stumps"],
    "union": lambda X, y: ["stumps", DecisionTreeClassifier(max_depth=3), *forest(X, y, 8).estimators_],
    "exact union": lambda X, y: ["stumps", *forest(X[::2], y[::2], 8, max_depth=2).estimators_],
}  # fmt: skip
PROBLEMS = {
    "k": {},
    "l0": {"max_terms": None, "l0": 0.01},
    "convex": {"max_terms": None},
    "edge": {"criterion": "edge", "max_terms": 3},
    "exponential": {"loss": "exponential", "max_terms": 3},
    "no intercept": {"fit_intercept": False},
    "box": {"max_weight": 0.4, "l2": 0.0},
}


# every kind and every problem is in three pairs of the quick tests
PAIRS = [
    (kind, problem)
    for shift in range(len(PROBLEMS))
    for (kind, problem) in zip(KINDS, [*PROBLEMS, *PROBLEMS][shift:], strict=False)
]


@pytest.mark.parametrize(("kind", "problem"), first(3 * len(KINDS), PAIRS))
def test_certificates_hold(kind, problem):
    X, y = table(0)
    options = PROBLEMS[problem]
    result = fit(KINDS[kind](X, y), X, y, **options)
    assert result.faults(X, y) == []
    certificate, ensemble = result.certificate, result.ensemble
    assert certificate.content["kind"] == "matrix"
    assert [own.scope for own in certificate.bounds] == ["pool"]
    assert certificate.lower_bound <= certificate.objective <= result.null_objective + 1e-12
    assert 0.0 <= result.guarantee <= certificate.guarantee <= 1.0 or result.null_objective > math.log(2)
    limit = options.get("max_terms", 5)
    assert 1 <= ensemble.n_terms <= (40 if limit is None else limit)
    free = 2 if options.get("fit_intercept", True) else 0
    assert certificate.content["columns"]["charged"] == [False] * free + [True] * len(
        result.candidates.learners
    )
    if not free:
        assert ensemble.intercept == 0.0
    assert np.mean(ensemble.predict(X) == y) > 0.7


@pytest.mark.parametrize("problem", ["k", "convex", "edge", "no intercept", "l0"])
def test_stumps_as_columns_give_the_model_of_stumps(problem):
    X, y = table(1)
    options = PROBLEMS[problem]
    result = fit("stumps", X, y, tol=1e-9, **options)
    given = {"max_terms": 5, "l2": 0.01, "hot_start": 12, "max_iter": 40, "tol": 1e-9} | options
    model = CardBoostClassifier(n_jobs=1, **given).fit(X, y)
    assert result.certificate.objective == pytest.approx(model.certificate_.objective, rel=1e-6)
    assert isinstance(result.ensemble.stumps, Ensemble)
    assert result.ensemble.learners == ()
    found = {(t.feature, t.cut, t.polarity): t.weight for t in result.ensemble.stumps.terms}
    twin = {(t.feature, t.cut, t.polarity): t.weight for t in model.ensemble_.terms}
    assert found.keys() == twin.keys()
    for key, weight in twin.items():
        assert found[key] == pytest.approx(weight, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("seed", first(2, range(5)))
@pytest.mark.parametrize("kind", ["forest", "booster"])
def test_the_bound_is_below_every_choice(seed, kind):
    """Lower bound <= optimum by enumeration <= objective, over all fitted learners, generated or not."""
    X, y = table(seed, rows=60)
    if kind == "forest":
        learners = forest(X[:30], y[:30], 7, max_depth=2).estimators_
    else:
        learners = list(GradientBoostingClassifier(n_estimators=7).fit(X[:30], y[:30]).estimators_[:, 0])
    k, l0 = (2, 0.0) if seed % 2 else (None, 0.02)
    result = fit(learners, X, y, max_terms=k, l0=l0, hot_start=3, max_weight=2.0)
    A = result.candidates(X, y, None)[0]
    assert A.shape[1] == result.certificate.content["bounds"][0]["columns"] > 5
    columns = result.certificate.content["columns"]
    price = {key: np.array(columns[key]) for key in ("l1", "l2", "max_weight")}
    best = math.inf
    for size in range(A.shape[1] - 1 if k is None else k + 1):
        for support in itertools.combinations(range(2, A.shape[1]), size):
            own = [0, 1, *support]
            found = minimize_l1(
                A[:, own], price["l1"][own], l2=price["l2"][own], max_weight=price["max_weight"][own],
                loss="logistic", tol=1e-7,
            )  # fmt: skip
            best = min(best, found.fun + l0 * size)
    assert result.certificate.lower_bound <= best + 1e-7
    assert best <= result.certificate.objective + 1e-6


def test_every_learner_of_a_list_is_covered():
    X, y = table(2)
    trees = forest(X[:75], y[:75], 40).estimators_
    few = fit(trees, X, y, hot_start=8, max_terms=4)
    assert few.trace[-1].n_columns == 8
    assert len(few.candidates.learners) == few.certificate.content["bounds"][0]["columns"] - 2 > 30
    grown = fit(DecisionTreeClassifier(max_depth=2), X, y, hot_start=8, max_terms=4)
    assert len(grown.candidates.learners) == 8


def test_false_claims_are_found():
    X, y = table(3)
    result = fit(forest(X[:75], y[:75]).estimators_, X, y)
    candidates, certificate, ensemble = result.candidates, result.certificate, result.ensemble
    assert result.verify(X, y)
    assert certificate.verify(X, y)
    assert not result.verify(X, ~y)
    assert not result.verify(X[1:], y[1:])
    assert not result.verify(X, y, np.arange(1.0, 151.0))
    swapped = CertifiedLearners(candidates.learners[::-1], True, candidates.classes, candidates.class_weight)
    assert swapped.faults(certificate, ensemble, X, y)
    other = fit(forest(X[:75], y[:75]).estimators_, X, y, max_terms=2).ensemble
    assert candidates.faults(certificate, other, X, y)[0].startswith("solution.weights: ")
    with pytest.raises(ValueError, match="y must hold 150 labels"):
        result.faults(X, y[1:])


@pytest.mark.parametrize("kind", first(3, KINDS))
def test_weights_are_checked_too(kind):
    X, y = table(4)
    rng = np.random.default_rng(0)
    for raw in (rng.integers(1, 4, len(y)).astype(float), rng.uniform(0.1, 3.0, len(y))):
        result = fit(KINDS[kind](X, y), X, y, raw, class_weight=(1.0, 2.5))
        assert result.faults(X, y, raw) == []
        more, labels = np.concatenate([X, X[:3]]), np.concatenate([y, y[:3]])
        assert result.faults(more, labels, np.concatenate([raw, np.zeros(3)])) == []
        assert result.faults(X, y) != []


def test_a_row_of_weight_two_is_the_row_twice():
    X, y = table(5)
    count = np.random.default_rng(1).integers(1, 4, len(y))
    trees = forest(X[:75], y[:75]).estimators_
    once = fit(trees, X, y, count.astype(float))
    twice = fit(trees, np.repeat(X, count, axis=0), np.repeat(y, count))
    assert [own.weight for own in once.ensemble.learners] == [own.weight for own in twice.ensemble.learners]
    assert once.certificate.objective == twice.certificate.objective
    assert once.certificate.lower_bound == twice.certificate.lower_bound
    assert once.certificate.content["data"]["digest"] == twice.certificate.content["data"]["digest"]
    grown = [
        fit(GaussianNB(), X, y, count.astype(float)),
        fit(GaussianNB(), np.repeat(X, count, axis=0), np.repeat(y, count)),
    ]
    assert grown[0].certificate.objective == pytest.approx(grown[1].certificate.objective, rel=1e-6)


@pytest.mark.parametrize("kind", ["forest", "booster", "union"])
def test_threads_do_not_matter(kind):
    X, y = table(6)
    dictionary = KINDS[kind](X, y)
    one, three = (fit(dictionary, X, y, threads=threads).certificate.content for threads in (1, 3))
    assert one == three


@pytest.mark.parametrize("kind", ["forest", "booster", "stumps"])
def test_the_order_of_rows_does_not_matter(kind):
    X, y = table(7)
    dictionary = KINDS[kind](X, y)
    order = np.random.default_rng(2).permutation(len(y))
    assert (
        fit(dictionary, X, y).certificate.content == fit(dictionary, X[order], y[order]).certificate.content
    )


def test_seeds():
    X, y = table(8)
    learner = ExtraTreeClassifier(max_depth=3)
    same = [fit(learner, X, y, seed=3).certificate.content["digest"] for _ in range(2)]
    assert same[0] == same[1]
    assert fit(learner, X, y, seed=4).certificate.content["digest"] != same[0]
    pair = fit([learner, learner], X, y).candidates  # two streams of random numbers, not one twice
    assert len(pair.learners) == 12


class Ignores(BaseEstimator):
    """Takes weights and forgets them."""

    def fit(self, X, y, sample_weight=None):
        self.tree_ = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
        return self

    def predict(self, X):
        return self.tree_.predict(X)


def test_a_learner_with_nothing_new_to_say_ends_the_generation():
    X, y = table(9)
    result = fit(Ignores(), X, y)
    assert result.trace.status == "exhausted"
    assert result.trace[-1].n_columns == result.ensemble.n_terms == 1
    assert result.faults(X, y) == []
    assert "no further column" in result.trace.message


@pytest.mark.parametrize("options", [{}, {"max_terms": None}, {"fit_intercept": False}])
def test_a_dictionary_of_constants_gives_the_intercept(options):
    class Constant:
        def predict(self, X):
            return np.full(len(X), 0.5)

    X, y = table(10)
    result = fit([Constant(), Constant()], X, y, **options)
    assert result.trace.status in ("exhausted", "optimal")
    assert result.ensemble.n_terms == 0
    assert result.faults(X, y) == []
    share = y.mean()
    expected = math.log(share / (1 - share)) if options.get("fit_intercept", True) else 0.0
    assert result.ensemble.intercept == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_time_and_callbacks():
    X, y = table(11)
    result = fit(GaussianNB(), X, y, budget=Budget(1e-9))
    assert result.trace.status == "time limit"
    assert result.faults(X, y) == []
    stopped = fit(DecisionTreeClassifier(max_depth=1), X, y, callback=lambda record, _: record.n_columns >= 3)
    assert stopped.trace.status == "stopped"
    assert stopped.trace[-1].n_columns == 3


def test_frames():
    pandas = pytest.importorskip("pandas")
    X, y = table(12)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    trees = forest(X[:75], y[:75], 10).estimators_
    result = fit(["stumps", LogisticRegression(), *trees], frame, y)
    assert result.faults(frame, y) == []
    np.testing.assert_array_equal(result.ensemble.predict(frame.iloc[:5]), result.ensemble.predict(frame)[:5])


def test_stumps_without_a_table_are_refused():
    X, y = table(13)
    with pytest.raises(ValueError, match="'stumps' need a table"):
        learner_task("stumps", X, y, settings())


# ------------------------------------------------------------------------------------ the user's argument


class Wrapped:
    def predict(self, X):
        return np.zeros(len(X))


def test_resolution():
    X, y = table(16)
    trees = forest(X, y, 3).estimators_
    tree = DecisionTreeClassifier()
    assert resolve_dictionary("stumps") == resolve_dictionary(["stumps"]) == ("stumps",)
    (alone,) = resolve_dictionary(trees[0])  # not in a list: something to clone and fit
    assert isinstance(alone, ToFit)
    parts = resolve_dictionary(["stumps", tree, *trees, Wrapped()])
    assert parts[0] == "stumps"
    assert parts[1].estimator is tree
    assert len(parts[2]) == 4
    nested = resolve_dictionary(("stumps", trees, np.array(trees, dtype=object).reshape(-1, 1)))
    assert len(nested[1]) == 6
    booster = GradientBoostingClassifier(n_estimators=4).fit(X, y)
    (fitted,) = resolve_dictionary(booster.estimators_)
    assert len(fitted) == 4
    kept = FittedLearners(trees)
    assert resolve_dictionary(kept) == resolve_dictionary([kept]) == (kept,)


@pytest.mark.parametrize(
    ("dictionary", "message"),
    [
        ("trees", "'trees' is not known; the only name accepted is 'stumps'"),
        (["stumps", "stumps"], "'stumps' stands more than once"),
        ([], "the list of learners is empty"),
        ([[], ()], "the list of learners is empty"),
        (None, "NoneType cannot be fitted"),
        (DecisionTreeClassifier, "DecisionTreeClassifier is a class"),
        ([DecisionTreeClassifier], "DecisionTreeClassifier is a class"),
        (["stumps", object()], "object cannot be fitted"),
        (Wrapped(), "Wrapped cannot be fitted"),
    ],
)
def test_what_cannot_be_resolved_is_named(dictionary, message):
    with pytest.raises(ValueError) as error:
        resolve_dictionary(dictionary)
    assert str(error.value).startswith("dictionary: ")
    assert message in str(error.value)


def test_fitted_learners_stay_fitted_in_a_clone():
    X, y = table(17)
    kept = FittedLearners(forest(X, y, 3).estimators_)
    model = clone(CardBoostClassifier(dictionary=kept))
    assert model.dictionary is kept
    assert repr(kept) == "FittedLearners(3 x DecisionTreeClassifier)"
    with pytest.raises(ValueError, match="the list of fitted learners is empty"):
        FittedLearners([])
    with pytest.raises(ValueError, match="object has none of predict"):
        FittedLearners([object()])


def test_the_candidates_can_be_asked():
    X, y = table(18)
    result = fit(["stumps", DecisionTreeClassifier(max_depth=2)], X, y)
    A = result.candidates(X, y, None)[0]
    assert set(np.unique(A)) == {-1, 1}
    assert all(isinstance(own, FittedLearner) for own in result.candidates.learners)
    np.testing.assert_array_equal(A[:, 0], np.where(y, 1, -1))

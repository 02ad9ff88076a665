"""Boosting stage by stage for a number with regressors of any kind, and early stopping with any learner."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from cardboost import StagewiseClassifier, StagewiseRegressor
from cardboost.dictionary.resolve import FittedLearners
from cardboost.problem.losses import ABSOLUTE, SQUARED

TREE = DecisionTreeRegressor(max_depth=2)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture
def weights(diabetes):
    return np.random.default_rng(0).integers(1, 4, len(diabetes[1])).astype(float)


def regressor(dictionary=TREE, max_iter=15, **parameters):
    return StagewiseRegressor(
        dictionary=dictionary, max_iter=max_iter, random_state=0, n_jobs=1, **parameters
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_trees_and_squares_are_gradient_boosting(diabetes, weights, weighted):
    """The best step along a tree that was fitted to the residuals is 1: its leaves are their means."""
    X, y = diabetes
    weight = weights if weighted else None
    model = regressor(learning_rate=0.3).fit(X, y, weight)
    peer = GradientBoostingRegressor(n_estimators=15, learning_rate=0.3, max_depth=2, random_state=0)
    peer.fit(X, y, weight)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-9)
    for own, theirs in zip(model.staged_predict(X), peer.staged_predict(X), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-9)


@pytest.mark.parametrize(("loss", "own"), [("squared", SQUARED), ("absolute", ABSOLUTE)])
def test_steps_are_the_best_and_the_loss_falls(diabetes, weights, loss, own):
    X, y = diabetes
    model = regressor(Ridge(alpha=5.0), 6, loss=loss).fit(X, y, weights)
    stages = [np.full(len(y), model._paths[0].course.start), *model.staged_predict(X)]
    means = [np.average(own.rows(stage - y), weights=weights) for stage in stages]
    assert (np.diff(means) < 0).all()
    for before, after, mean in zip(stages, stages[1:], means[1:], strict=False):
        for longer in (0.999, 1.001):
            other = before + longer * (after - before)
            assert np.average(own.rows(other - y), weights=weights) >= mean - 1e-12
    scale = 1.0 if loss == "squared" else y.std()
    assert [record.objective for record in model.trace_][-1] * scale > 0.0
    assert all(np.isnan(record.error) for record in model.trace_)


def test_a_weight_of_two_is_the_row_twice(diabetes, weights):
    X, y = diabetes
    twice = np.repeat(np.arange(len(y)), weights.astype(int))
    one = regressor(LinearRegression(), 3).fit(X, y, weights).predict(X)
    np.testing.assert_allclose(one, regressor(LinearRegression(), 3).fit(X[twice], y[twice]).predict(X))
    none = np.r_[np.zeros(100), np.ones(len(y) - 100)]
    np.testing.assert_array_equal(
        regressor().fit(X, y, none).predict(X), regressor().fit(X[100:], y[100:]).predict(X)
    )


def test_fitted_learners_are_taken_as_they_are(diabetes):
    X, y = diabetes
    trees = [DecisionTreeRegressor(max_depth=3, random_state=k).fit(X[k::5], y[k::5]) for k in range(5)]
    for dictionary in (trees, FittedLearners(trees)):
        model = clone(regressor(dictionary, 12)) if dictionary is not trees else regressor(dictionary, 12)
        model.fit(X, y)
        assert model.ensemble_.n_terms <= 5 < model.n_iter_
        assert {id(own.learner) for own in model.ensemble_.learners} <= {id(tree) for tree in trees}
    # one that turns the wrong way is turned round
    upside_down = Ridge(alpha=1e-6).fit(X, -y)
    model = regressor([upside_down], 3).fit(X, y)
    assert model.ensemble_.learners[0].weight < 0
    assert model.score(X, y) > 0.4


def test_a_list_of_several_kinds(diabetes):
    X, y = diabetes
    model = regressor([TREE, Ridge(alpha=1e-3)], 8).fit(X, y)
    kinds = {type(own.learner) for own in model.ensemble_.learners}
    assert kinds == {DecisionTreeRegressor, Ridge}
    assert model.score(X, y) > regressor(Ridge(alpha=1e-3), 8).fit(X, y).score(X, y)


def test_the_same_model_every_time(diabetes):
    X, y = diabetes
    shy = DecisionTreeRegressor(max_depth=3, max_features=2)
    one, two = (regressor(shy).fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    other = StagewiseRegressor(dictionary=shy, max_iter=15, random_state=1).fit(X, y).predict(X)
    assert (one != other).any()


def test_held_out_rows_end_the_rounds(diabetes, weights):
    X, y = diabetes
    model = regressor(max_iter=300, validation_fraction=0.25, learning_rate=0.5).fit(X, y, weights)
    (losses,) = model.validation_losses_
    assert model.trace_.status == "validation"
    assert model.n_iter_ == 1 + int(np.argmin(losses)) < len(losses) < 300
    assert len(list(model.staged_predict(X))) == model.n_iter_
    np.testing.assert_allclose(list(model.staged_predict(X))[-1], model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_held_out_rows_end_the_rounds_of_classifiers(loss):
    X, y = load_breast_cancer(return_X_y=True)
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.0], len(y))
    model = StagewiseClassifier(
        loss=loss, dictionary=DecisionTreeClassifier(max_depth=2), max_iter=200, learning_rate=0.5,
        validation_fraction=0.3, random_state=0, class_weight="balanced", n_jobs=1,
    ).fit(X, y, weight)  # fmt: skip
    (losses,) = model.validation_losses_
    assert model.trace_.status in ("validation", "perfect", "iteration limit")
    if model.trace_.status == "validation":
        assert model.n_iter_ == 1 + int(np.argmin(losses))
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(list(model.staged_decision_function(X))[-1], model.decision_function(X))


def test_a_learner_that_does_not_help_leaves_the_constant():
    X, y = np.zeros((20, 2)), np.arange(20.0)
    model = regressor(LinearRegression()).fit(X, y)
    assert model.n_iter_ == 0
    np.testing.assert_allclose(model.predict(X), 9.5)
    assert model.trace_.status in ("no edge", "stuck")


def test_sparse_rows_and_frames(diabetes):
    import pandas as pd
    from scipy.sparse import csr_array

    X, y = diabetes
    dense = regressor(Ridge(), 3).fit(X, y).predict(X)
    sparse = regressor(Ridge(tol=1e-12), 3).fit(csr_array(X), y).predict(csr_array(X))
    np.testing.assert_allclose(sparse, dense, rtol=1e-6)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    model = regressor(Ridge(), 3).fit(frame, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_allclose(model.predict(frame), dense)


class Weightless(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.value_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.value_)


class Broken(Weightless):
    def predict(self, X):
        return np.full(len(X), np.nan)


def test_bad_learners_get_a_sentence(diabetes):
    X, y = diabetes

    def refused(words, dictionary, weight=None, **parameters):
        with pytest.raises(ValueError, match=words):
            regressor(dictionary, **parameters).fit(X, y, weight)

    refused("LogisticRegression is a classifier", LogisticRegression())
    refused("is a class; give an instance", Ridge)
    refused("cannot be fitted", object())
    refused("does not accept sample_weight", KNeighborsRegressor(), np.ones(len(y)))
    refused("NaN or infinity", Broken())
    refused("'stumps' cannot stand beside", ["stumps", Ridge()])
    refused("not known", "trees")
    refused("monotonic_cst is for stumps", Ridge(), monotonic_cst=[1] * 10)
    refused("validation_fraction", Ridge(), validation_fraction=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert regressor(KNeighborsRegressor(), 2).fit(X, y).n_iter_ == 2
    with pytest.raises(ValueError, match="cannot be saved"):
        regressor(Ridge(), 2).fit(X, y).save("model.json")

"""Importances: the ranges of the step functions, as shares."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.tree import DecisionTreeClassifier

from cardboost import (
    CardBoostClassifier,
    CardBoostRegressor,
    SoftMarginClassifier,
    SparseLinearRegression,
    StagewiseClassifier,
    StagewiseRegressor,
)

CANCER, DIABETES, IRIS = (load(return_X_y=True) for load in (load_breast_cancer, load_diabetes, load_iris))
CARDS = [
    (CardBoostClassifier(max_terms=4, l2=0.01, hot_start=10), CANCER),
    (CardBoostClassifier(max_terms=2, l2=0.01, hot_start=10), IRIS),
    (CardBoostRegressor(max_terms=4, l2=0.01, hot_start=10), DIABETES),
    (SoftMarginClassifier(temperature=0.5), CANCER),
    (StagewiseClassifier(max_iter=5), CANCER),
    (StagewiseRegressor(max_iter=5), DIABETES),
]


@pytest.mark.parametrize(("card", "data"), CARDS)
def test_importances_are_shares_of_the_ranges_of_contributions(card, data):
    X, y = data
    card.fit(X, y)
    importances = card.feature_importances_
    assert importances.shape == (X.shape[1],)
    assert importances.sum() == pytest.approx(1.0)
    assert (np.flatnonzero(importances) == card.ensemble_.features_used).all()
    ranges = np.ptp(card.contributions(X), axis=0)  # every level is that of some training row
    ranges = ranges if ranges.ndim == 1 else ranges.sum(axis=1)
    np.testing.assert_allclose(importances, ranges / ranges.sum(), atol=1e-12)


def test_missing_values_count():
    X, y = np.array([[np.nan, 0.0], [1.0, 0.0]] * 20), np.array([0, 1] * 20)
    assert CardBoostClassifier(max_terms=1, l2=0.01).fit(X, y).feature_importances_.tolist() == [1.0, 0.0]


def test_a_model_without_terms_has_none():
    X, y = np.zeros((20, 3)), np.array([0, 1] * 10)
    assert CardBoostClassifier(l2=0.01).fit(X, y).feature_importances_.tolist() == [0.0, 0.0, 0.0]


def test_where_there_are_none():
    X, y = CANCER
    tree = DecisionTreeClassifier(max_depth=2)
    assert not hasattr(CardBoostClassifier(l2=0.01), "feature_importances_")
    assert not hasattr(StagewiseClassifier(dictionary=tree, max_iter=2).fit(X, y), "feature_importances_")
    assert not hasattr(SparseLinearRegression(), "feature_importances_")


def test_scikit_learn_selects_by_them():
    X, y = CANCER
    chosen = SelectFromModel(CardBoostClassifier(max_terms=3, l2=0.01, hot_start=10), threshold=1e-9).fit(
        X, y
    )
    assert list(np.flatnonzero(chosen.get_support())) == list(chosen.estimator_.ensemble_.features_used)

"""Every flag takes NumPy's truth values as it takes Python's, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.tree import DecisionTreeClassifier

from cardboost import (
    CardBoostClassifier,
    CardBoostRegressor,
    NeuralBoostClassifier,
    NeuralBoostRegressor,
    SoftMarginClassifier,
    SparseLinearRegression,
    SparseLogisticRegression,
    StagewiseClassifier,
)
from marks import first

QUICK = {"max_terms": 2, "hot_start": 4, "n_jobs": 1}
TREE = DecisionTreeClassifier(max_depth=1, random_state=0)
FLAGS = [
    (CardBoostClassifier(**QUICK), ("warm_start", "reselect", "fit_intercept")),
    (CardBoostClassifier(**QUICK, dictionary=TREE, random_state=0), ("warm_start", "fit_intercept")),
    (CardBoostRegressor(**QUICK), ("warm_start", "reselect", "fit_intercept")),
    (SoftMarginClassifier(temperature=1.0, n_jobs=1), ("warm_start", "fit_intercept")),
    (
        SoftMarginClassifier(dictionary=TREE, max_iter=3, random_state=0, n_jobs=1),
        ("warm_start", "fit_intercept"),
    ),
    (StagewiseClassifier(max_iter=4, n_jobs=1), ("fit_intercept",)),
    (SparseLogisticRegression(l1=0.01, n_jobs=1), ("warm_start", "fit_intercept", "accelerate")),
    (SparseLinearRegression(l1=0.01, n_jobs=1), ("warm_start", "fit_intercept", "accelerate")),
    (NeuralBoostClassifier(max_iter=3, random_state=0, n_jobs=1), ("early_stopping",)),
    (NeuralBoostRegressor(max_iter=3, random_state=0, n_jobs=1), ("early_stopping",)),
]
CASES = [(estimator, flag) for estimator, flags in FLAGS for flag in flags]
IDS = [f"{type(estimator).__name__}-{flag}" for estimator, flag in CASES]


def data(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=80)
    return X, y > 0 if is_classifier(estimator) else y


@pytest.mark.parametrize(("estimator", "flag"), CASES, ids=IDS)
@pytest.mark.parametrize("value", first(1, [True, False]))
def test_truth_values_of_numpy(estimator, flag, value):
    X, y = data(estimator)

    def fitted(own):
        return clone(estimator).set_params(**{flag: own}).fit(X, y).predict(X)

    if value and flag == "warm_start" and getattr(estimator, "dictionary", "stumps") != "stumps":
        with pytest.raises(ValueError, match="stumps only"):
            fitted(np.bool_(value))
    else:
        np.testing.assert_array_equal(fitted(np.bool_(value)), fitted(value))


@pytest.mark.parametrize(("estimator", "flag"), CASES, ids=IDS)
@pytest.mark.parametrize("value", [0, 1, None, "no"])
def test_other_values_are_refused(estimator, flag, value):
    with pytest.raises(ValueError, match=f"{flag} must be .*True or False; got"):
        clone(estimator).set_params(**{flag: value}).fit(*data(estimator))

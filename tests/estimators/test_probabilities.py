"""Where a loss has no probabilities, the methods for them are not there, as scikit-learn expects."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from cardboost import (
    CardBoostClassifier,
    NeuralBoostClassifier,
    SoftMarginClassifier,
    SparseLogisticRegression,
    StagewiseClassifier,
)
from cardboost.problem.vector_losses import CrossEntropy

METHODS = ("predict_proba", "predict_log_proba", "staged_predict_proba")


def named(estimator):
    return type(estimator).__name__


class OwnEntropy(CrossEntropy):
    name = "mine"


WITHOUT = [
    CardBoostClassifier(l2=0.01, loss="hinge", max_terms=3, hot_start=8, n_jobs=1),
    CardBoostClassifier(l2=0.01, loss="smooth_hinge", max_terms=3, hot_start=8, n_jobs=1),
    StagewiseClassifier(loss="hinge", fit_intercept=True, max_iter=5, n_jobs=1),
    NeuralBoostClassifier(loss=OwnEntropy(), max_iter=2, early_stopping=False, n_jobs=1),
]
WITH = [
    CardBoostClassifier(l2=0.01, loss="squared_hinge", max_terms=3, hot_start=8, n_jobs=1),
    CardBoostClassifier(max_terms=3, l2=0.01, hot_start=8, n_jobs=1),
    StagewiseClassifier(max_iter=5, n_jobs=1),
    SoftMarginClassifier(temperature=1.0, n_jobs=1),
    NeuralBoostClassifier(max_iter=2, early_stopping=False, n_jobs=1),
    SparseLogisticRegression(l1=0.01, n_jobs=1),
]
TWO = make_classification(150, 5, random_state=0)


@pytest.mark.parametrize("estimator", WITHOUT, ids=named)
@pytest.mark.parametrize("data", [TWO, load_iris(return_X_y=True)], ids=["two", "three"])
def test_no_method_without_probabilities(estimator, data):
    for method in METHODS:
        assert not hasattr(estimator, method)
    model = estimator.fit(*data)
    for method in METHODS:
        assert not hasattr(model, method)
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as error:
        model.predict_proba(data[0])
    assert "no probabilities" in str(error.value.__cause__)


@pytest.mark.parametrize("estimator", WITH, ids=named)
def test_methods_with_probabilities(estimator):
    for method in METHODS[:2]:
        assert hasattr(estimator, method)
        assert hasattr(estimator.fit(*TWO), method)
    np.testing.assert_allclose(estimator.predict_proba(TWO[0]).sum(axis=1), 1.0)


@pytest.mark.parametrize("estimator", WITHOUT[:3], ids=named)
def test_scorers_and_calibration(estimator):
    assert cross_val_score(estimator, *TWO, scoring="roc_auc", cv=3).min() > 0.5
    with pytest.raises(AttributeError, match="predict_proba"):
        cross_val_score(estimator, *TWO, scoring="neg_log_loss", cv=3, error_score="raise")
    calibrated = CalibratedClassifierCV(estimator, cv=3).fit(*TWO)
    np.testing.assert_allclose(calibrated.predict_proba(TWO[0]).sum(axis=1), 1.0)


@pytest.mark.long
@parametrize_with_checks(WITHOUT[:1] + WITHOUT[2:3])
def test_scikit_learns_checks(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        check(estimator)

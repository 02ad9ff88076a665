"""scikit-learn's own checks of the linear estimators: no failure is expected."""

from __future__ import annotations

import warnings

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cardboost import SparseLinearRegression, SparseLogisticRegression

ESTIMATORS = [
    SparseLogisticRegression(n_jobs=1),
    SparseLinearRegression(n_jobs=1),
]
OTHERS = [
    SparseLogisticRegression(n_jobs=1, l1=0.01),
    SparseLogisticRegression(n_jobs=1, l2=0.01, multi_class="multinomial"),
    SparseLinearRegression(n_jobs=1, l1=0.01, l2=0.01),
    SparseLinearRegression(n_jobs=1, loss="absolute"),
    SparseLogisticRegression(n_jobs=1, l1=0.01, solver="gradient", tol=1e-4),
    SparseLogisticRegression(n_jobs=1, l1=0.01, multi_class="multinomial"),
    SparseLogisticRegression(n_jobs=1, l2=0.01, max_features=2),
    SparseLinearRegression(n_jobs=1, loss="absolute", l1=0.01, l2=0.01),
]


def run_check(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # the checks fit on separable data, and stop fits early
        check(estimator)


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check, monkeypatch):
    run_check(estimator, check, monkeypatch)


@pytest.mark.long
@parametrize_with_checks(OTHERS)
def test_scikit_learns_checks_of_other_settings(estimator, check, monkeypatch):
    run_check(estimator, check, monkeypatch)

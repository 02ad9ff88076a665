"""scikit-learn's own checks of every estimator. One failure is expected: a weight of 2 is not the row twice
where rows are put into folds."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_validate
from sklearn.utils.estimator_checks import parametrize_with_checks

from cardboost import (
    CardBoostClassifier,
    CardBoostRegressor,
    SoftMarginClassifier,
    StagewiseClassifier,
    StagewiseRegressor,
)

ESTIMATORS = [
    CardBoostClassifier(n_jobs=1),
    CardBoostRegressor(n_jobs=1),
    SoftMarginClassifier(n_jobs=1),
    StagewiseClassifier(n_jobs=1),
    StagewiseRegressor(n_jobs=1),
]
OTHERS = [
    CardBoostClassifier(
        n_jobs=1, loss="exponential", criterion="edge", l2=0.0, fit_intercept=False, max_nodes=50
    ),
    CardBoostClassifier(n_jobs=1, max_terms=None, max_iter=30),
    CardBoostRegressor(n_jobs=1, max_terms=None, max_iter=30),
    CardBoostClassifier(n_jobs=1, loss="squared_hinge"),
    StagewiseClassifier(n_jobs=1, loss="logistic", fit_intercept=True),
    StagewiseClassifier(n_jobs=1, loss="squared_hinge", learning_rate=0.5),
    StagewiseRegressor(n_jobs=1, loss="absolute"),
]
FOLDS = SoftMarginClassifier(n_jobs=1, temperature="cv", cv=2, temperatures=[0.1, 0.05])
WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "folds are made of rows"
    for kind in ("dense", "sparse")
}


def run_check(estimator, check, monkeypatch):
    # without it the check of array API dispatch, here on NumPy's arrays, is skipped
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with warnings.catch_warnings():
        # the checks themselves fit on a column of labels and warn about what they skip
        warnings.simplefilter("default")
        check(estimator)


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check, monkeypatch):
    run_check(estimator, check, monkeypatch)


@pytest.mark.long
@parametrize_with_checks(OTHERS)
def test_scikit_learns_checks_of_other_settings(estimator, check, monkeypatch):
    run_check(estimator, check, monkeypatch)


@pytest.mark.long
@parametrize_with_checks([FOLDS], expected_failed_checks=lambda estimator: WEIGHTS)
def test_scikit_learns_checks_with_folds(estimator, check, monkeypatch):
    run_check(estimator, check, monkeypatch)


class Sampler:
    """A handle to a machine somewhere: it must not be copied."""

    parameters = None

    def __deepcopy__(self, memo):
        raise TypeError("a connection cannot be copied")

    def sample(self, bqm):
        raise NotImplementedError


@pytest.mark.parametrize("kind", [CardBoostClassifier, CardBoostRegressor])
def test_clones_share_the_sampler(kind):
    sampler = Sampler()
    model = kind(selector=sampler, feature_costs={"a": 1.0})
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True)
    other = clone(model)
    assert other.get_params()["selector"] is sampler
    assert other.feature_costs == model.feature_costs
    assert other.feature_costs is not model.feature_costs
    assert other.get_metadata_routing()._serialize() == model.get_metadata_routing()._serialize()
    with pytest.warns(UserWarning, match="built-in search"):
        other.set_params(feature_costs=None).fit(np.eye(4), [0, 1, 0, 1])


def test_metadata_is_routed():
    X, y = load_breast_cancer(return_X_y=True)
    with config_context(enable_metadata_routing=True):
        model = CardBoostClassifier(max_terms=2, max_iter=4, n_jobs=1)
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = cross_validate(model, X, y, params={"sample_weight": np.ones(len(y))}, cv=2)
    assert found["test_score"].min() > 0.8


def test_copies_and_pickles_predict_alike():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = CardBoostClassifier(max_terms=3, n_jobs=1).fit(X, y)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        assert other.certificate_.verify(X, y)


@pytest.mark.long
def test_skops_round_trip():
    io = pytest.importorskip("skops.io")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = CardBoostClassifier(max_terms=3, n_jobs=1).fit(X, y)
    data = io.dumps(model)
    unknown = io.get_untrusted_types(data=data)
    assert all(name.startswith(("cardboost.", "numpy.", "builtins.")) for name in unknown), unknown
    back = io.loads(data, trusted=unknown)
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))


def test_the_page_of_a_notebook():
    html = CardBoostClassifier(max_terms=3)._repr_html_()
    assert "CardBoostClassifier" in html

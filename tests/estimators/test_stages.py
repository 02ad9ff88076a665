"""Rounds one by one: staged predictions, warm starts, early stopping, scikit-learn's callbacks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.inspection import partial_dependence
from sklearn.metrics import log_loss

from cardboost import CardBoostClassifier, CardBoostRegressor


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True, as_frame=True)


def model(**parameters):
    return CardBoostClassifier(**{"max_terms": None, "max_iter": 20, "n_jobs": 1, **parameters})


@pytest.mark.parametrize("max_terms", [None, 5])
def test_stages_end_at_the_model(cancer, max_terms):
    X, y = cancer
    fit = model(max_terms=max_terms).fit(X, y)
    scores = list(fit.staged_decision_function(X))
    np.testing.assert_array_equal(scores[-1], fit.decision_function(X))
    np.testing.assert_array_equal(list(fit.staged_predict(X))[-1], fit.predict(X))
    np.testing.assert_array_equal(list(fit.staged_predict_proba(X))[-1], fit.predict_proba(X))
    assert len(scores) == len(fit.trace_) + 2
    losses = [log_loss(y, p) for p in fit.staged_predict_proba(X)][: len(fit.trace_)]
    assert all(later <= earlier + 1e-6 for earlier, later in itertools.pairwise(losses))


def test_stages_of_several_classes_and_of_a_regressor():
    X, y = load_wine(return_X_y=True)
    fit = model(max_terms=3, max_iter=6).fit(X, y)
    stages = list(fit.staged_predict(X))
    np.testing.assert_array_equal(stages[-1], fit.predict(X))
    X, y = load_diabetes(return_X_y=True)
    regressor = CardBoostRegressor(max_terms=None, l2=0.01, max_iter=15, n_jobs=1).fit(X, y)
    errors = [np.mean((p - y) ** 2) for p in regressor.staged_predict(X)]
    assert errors[-1] < errors[0]
    np.testing.assert_array_equal(list(regressor.staged_predict(X))[-1], regressor.predict(X))


@pytest.mark.long
def test_a_warm_start_adds_rounds(cancer):
    X, y = cancer
    cold = model(max_iter=30, criterion="edge", l1=1e-3, l2=0.01, tol=0.0).fit(X, y)
    warm = model(max_iter=10, criterion="edge", l1=1e-3, l2=0.01, tol=0.0, warm_start=True).fit(X, y)
    assert warm.n_iter_ == 10
    first = warm.certificate_.objective
    warm.set_params(max_iter=30).fit(X, y)
    assert warm.n_iter_ == 30
    assert warm.trace_[0].n_columns == 10
    assert warm.certificate_.objective < first
    assert warm.certificate_.objective == pytest.approx(cold.certificate_.objective, rel=1e-3)
    assert warm.certificate_.verify(X, y)
    with pytest.raises(ValueError, match="max_iter=5"):
        warm.set_params(max_iter=5).fit(X, y)


def test_a_warm_start_on_other_rows_and_classes(cancer):
    X, y = cancer
    warm = model(max_iter=10, warm_start=True, max_terms=4).fit(X, y)
    warm.set_params(max_iter=15).fit(X.iloc[::2], y.iloc[::2])
    assert warm.score(X, y) > 0.9
    assert warm.certificate_.verify(X.iloc[::2], y.iloc[::2])
    with pytest.raises(ValueError, match="classes"):
        warm.fit(X, np.where(y == 1, "yes", "no"))
    again = warm.set_params(warm_start=False).fit(X, np.where(y == 1, "yes", "no"))
    assert list(again.classes_) == ["no", "yes"]


def test_early_stopping(cancer):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] + rng.normal(0, 2, 400) > 0).astype(int)
    greedy = model(max_iter=150, l1=1e-6, l2=0.0, tol=0.0)
    long = greedy.fit(X, y).n_iter_
    held = model(max_iter=150, l1=1e-6, l2=0.0, tol=0.0, validation_fraction=0.25, random_state=3).fit(X, y)
    assert held.n_iter_ < long
    (losses,) = held.validation_losses_
    best = int(np.argmin(losses))
    assert held.ensemble_.n_terms <= held.trace_[best].n_columns
    same = model(max_iter=150, l1=1e-6, l2=0.0, tol=0.0, validation_fraction=0.25, random_state=3).fit(X, y)
    assert same.ensemble_ == held.ensemble_
    for fraction in (0.0, 1.0, -0.1, "half"):
        with pytest.raises(ValueError, match="validation_fraction"):
            model(validation_fraction=fraction).fit(X, y)


def test_early_stopping_of_a_regressor_and_a_card():
    X, y = load_diabetes(return_X_y=True)
    for max_terms in (None, 5):
        fit = CardBoostRegressor(
            max_terms=max_terms, l2=0.01, max_iter=100, validation_fraction=0.3, random_state=0, n_jobs=1
        ).fit(X, y)
        assert fit.score(X, y) > 0.3


def test_partial_dependence(cancer):
    X, y = cancer
    fit = model(max_terms=5).fit(X, y)
    feature = fit.ensemble_.features_used[0]
    curve = partial_dependence(fit, X, [feature], kind="average", response_method="decision_function")
    steps = {round(float(v), 9) for v in np.diff(curve["average"][0])}
    assert len(steps) > 1


def test_callbacks_of_scikit_learn(cancer):
    callback = pytest.importorskip("sklearn.callback")
    X, y = cancer

    class Watch:
        def __init__(self):
            self.scores, self.ended = [], 0

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            if context.task_name == "round":
                self.scores.append(fitted_estimator.score(X, y))
                return len(self.scores) == 4
            self.ended += 1
            return False

        def teardown(self, estimator, context):
            pass

    watch = Watch()
    assert isinstance(watch, callback.FitCallback)
    fit = model(max_iter=50).set_callbacks(watch).fit(X, y)
    assert len(watch.scores) == 4
    assert watch.ended == 1
    assert watch.scores[-1] > watch.scores[0]
    assert len(fit.trace_) == 4

"""Certificates of the hinges: the bound holds, true files are accepted and changed ones refused."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize

from cardboost import CardBoostClassifier, CardBoostRegressor
from cardboost.certificate import checker
from cardboost.certificate.checker import content_digest
from cardboost.problem.losses import MARGIN_LOSSES, get_loss
from cardboost.solvers import minimize_l1, select_columns
from marks import first

both = pytest.mark.parametrize("loss", ["squared_hinge", "smooth_hinge"])


@cache
def fitted(loss, seed, **parameters):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(80, 3)), 1)
    y = X[:, 0] + 0.7 * rng.normal(size=80) > 0.2
    y[:2] = True, False
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.choice([1.0, 2.0, 0.75], 80)
    model = CardBoostClassifier(**{"loss": loss, "l2": 0.01, "n_jobs": 1, **parameters}).fit(X, y, weight)
    return model, X, y, weight


@both
@pytest.mark.parametrize("seed", first(1, range(4)))
@pytest.mark.parametrize(
    "parameters",
    [
        {"max_terms": 4},
        {"max_terms": None, "l1": 0.01, "l2": 0.0},
        {"max_terms": 3, "fit_intercept": False, "criterion": "edge"},
        {"max_terms": 3, "class_weight": "balanced"},
        pytest.param({"max_features": 2}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_true_certificates_are_accepted(loss, seed, parameters):
    model, X, y, weight = fitted(loss, seed, **parameters)
    certificate = model.certificate_
    assert certificate.faults(X, y, weight) == []
    assert certificate.lower_bound <= certificate.objective
    assert certificate.to_dict()["version"] == 6


@both
def test_changed_numbers_are_refused(loss):
    model, X, y, weight = fitted(loss, 0, max_terms=4)
    content = model.certificate_.to_dict()

    def faults(change):
        other = copy.deepcopy(content)
        change(other)
        other["digest"] = content_digest(other)
        return checker.check(other, X, y, weight)

    leaf = lambda own: own["bounds"][0]["leaves"][0]  # noqa: E731
    assert faults(lambda own: None) == []
    assert faults(lambda own: own["solution"].update(objective=own["solution"]["objective"] * 0.99))
    assert faults(lambda own: leaf(own).update(bound=leaf(own)["bound"] + 1e-3))
    assert faults(lambda own: leaf(own).update(theta=0.5 * leaf(own)["theta"]))
    assert faults(lambda own: own["null"].update(objective=own["null"]["objective"] + 1e-3))
    assert faults(lambda own: own["problem"].update(loss="logistic"))
    assert faults(lambda own: own["problem"].update(loss="hinge"))
    assert faults(lambda own: own.update(version=4))
    curve = {"intercept": 0.0, "centre": [], "aside": []}
    assert any(loss in fault for fault in faults(lambda own: leaf(own).update(curve=curve)))
    caps = {"intercept": 0.0, "centre": []}
    own_pool = next(k for k, bound in enumerate(content["bounds"]) if bound["scope"] == "pool")
    assert isinstance(faults(lambda own: own["bounds"][own_pool].update(caps=caps)), list)


@both
@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_the_convex_problem_against_scipy(loss, l2):
    rng = np.random.default_rng(1)
    A = np.where(rng.random((150, 12)) < 0.6, 1.0, -1.0)
    own, l1 = get_loss(loss), 0.01

    def objective(w):
        return own.value(A @ w) + l1 * w.sum() + 0.5 * l2 * w @ w

    def slope(w):
        return A.T @ own.derivative(A @ w) / len(A) + l1 + l2 * w

    best = minimize(
        objective, np.zeros(12), jac=slope, method="L-BFGS-B", bounds=[(0, None)] * 12,
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )  # fmt: skip
    found = minimize_l1(A, l1, l2=l2, loss=loss)
    assert found.success
    assert found.fun == pytest.approx(best.fun, rel=1e-7)
    assert found.fun - found.gap <= best.fun + 1e-12
    limits = {"max_terms": 3, "max_weight": 1.0, "method": "polish"}
    chosen = select_columns(A, l1=l1, l2=l2, loss=loss, **limits)
    assert chosen.lower_bound <= chosen.objective
    assert chosen.objective >= found.fun - 1e-9


@both
def test_rows_beyond_the_margin_leave_nothing_to_do(loss):
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]] * 5), [0, 0, 1, 1] * 5
    model = CardBoostClassifier(loss=loss, l1=0.0, l2=0.0, n_jobs=1).fit(X, y)
    assert model.certificate_.objective == 0.0
    assert model.certificate_.verify(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    if loss == "squared_hinge":
        np.testing.assert_array_equal(model.predict_proba(X)[:, 1], y)


@both
def test_what_the_hinges_do_not_have(loss):
    model, X, y, _ = fitted(loss, 0, max_terms=4)
    with pytest.raises(ValueError, match="log-odds"):
        model.scorecard()
    for selector in ("exact", "tabu"):
        with pytest.raises(ValueError, match=loss):
            CardBoostClassifier(l2=0.01, loss=loss, selector=selector, n_jobs=1).fit(X, y)
    with pytest.raises(ValueError, match="squared"):
        CardBoostRegressor(l2=0.01, loss=loss).fit(X, y)


def test_a_card_of_the_hinge():
    """The bound of its smooth stand-in is one for the hinge itself."""
    model, X, y, weight = fitted("hinge", 2, max_terms=3)
    own = model.certificate_
    assert own.to_dict()["problem"]["loss"] == "smooth_hinge"
    assert own.verify(X, y, weight)
    margins = np.where(y, 1.0, -1.0) * model.decision_function(X)
    exact = float(np.average(MARGIN_LOSSES["hinge"].rows(margins), weights=weight))
    smooth = float(np.average(MARGIN_LOSSES["smooth_hinge"].rows(margins), weights=weight))
    assert own.lower_bound <= own.objective <= own.objective + exact - smooth
    assert 0.0 <= exact - smooth <= 1 / 8
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("positive", first(2, [33, 20, 30, 34, 40]))
def test_no_model_is_worse_than_the_empty_one(loss, positive):
    """Classes of nearly equal size: the best intercept is far away along a straight piece of the loss."""
    X, y = np.random.default_rng(0).normal(size=(67, 2)), np.arange(67) < positive
    for options in ({"time_limit": 1e-6}, {"max_weight": 1e-3}, {"max_weight": 1e-3, "selector": "qubo"}):
        model = CardBoostClassifier(
            **{"loss": loss, "l2": 0.01, "max_terms": 1, "hot_start": 2, "n_jobs": 1, **options}
        ).fit(X, y)
        certificate = model.certificate_
        assert certificate.objective <= certificate.null_objective * (1 + 1e-9)
        assert certificate.faults(X, y) == []

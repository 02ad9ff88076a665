"""Directions, prices and limits per feature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from cardboost import CardBoostClassifier, CardBoostRegressor
from marks import first


def noisy(rows=500, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(rows, 4)), columns=list("abcd"))
    score = np.sin(2 * X["a"]) + X["b"] - 0.5 * X["c"] ** 2
    return X, (score + rng.normal(0, 0.5, rows) > 0).astype(int)


def grid(X, name):
    """The score along one feature, the others held at their medians."""
    points = np.linspace(X[name].min() - 1, X[name].max() + 1, 200)
    table = pd.DataFrame({other: np.full(200, X[other].median()) for other in X})
    return table.assign(**{name: points})


@pytest.mark.parametrize(
    ("form", "max_terms"),
    first(
        3,
        [
            ({"a": 1, "c": -1}, 8), ([1, 0, -1, 0], None), ({0: 1, 2: -1}, 8),
            ({"a": 1, "c": -1}, None), ([1, 0, -1, 0], 8), ({0: 1, 2: -1}, None),
        ],
    ),
)  # fmt: skip
def test_directions_are_kept(form, max_terms):
    X, y = noisy()
    free = CardBoostClassifier(max_terms=max_terms, l2=0.01, max_iter=30, n_jobs=1).fit(X, y)
    held = CardBoostClassifier(max_terms=max_terms, l2=0.01, max_iter=30, n_jobs=1, monotonic_cst=form).fit(
        X, y
    )
    assert (np.diff(free.decision_function(grid(X, "a"))) < 0).any()
    assert (np.diff(held.decision_function(grid(X, "a"))) >= 0).all()
    assert (np.diff(held.decision_function(grid(X, "c"))) <= 0).all()
    assert held.certificate_.objective >= free.certificate_.objective
    assert held.certificate_.verify(X, y)


def test_directions_of_a_regressor_with_missing_values():
    X, _ = noisy()
    y = (X["a"] ** 2 + X["b"]).to_numpy()
    X.loc[::7, "a"] = np.nan
    model = CardBoostRegressor(max_terms=None, l2=0.01, max_iter=40, monotonic_cst={"a": -1}, n_jobs=1).fit(
        X, y
    )
    assert (np.diff(model.predict(grid(X, "a"))) <= 0).all()
    assert model.certificate_.verify(X, y)


@pytest.mark.parametrize(
    ("limit", "max_terms"), first(4, [(1, 6), (2, 6), (3, 6), (1, None), (2, None), (3, None)])
)
def test_three_sensors(limit, max_terms):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = CardBoostClassifier(
        max_terms=max_terms, l2=0.01, max_features=limit, hot_start=20, max_iter=20, n_jobs=1
    ).fit(X, y)
    assert len(model.ensemble_.features_used) <= limit
    certificate = model.certificate_
    assert certificate.lower_bound <= certificate.objective
    assert certificate.verify(X, y)


def test_fewer_features_cost_accuracy_and_bounds_are_nested():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    fits = [
        CardBoostClassifier(max_terms=6, l2=0.01, max_features=f, max_iter=20, max_weight=2.0, n_jobs=1).fit(
            X, y
        )
        for f in (1, 2, None)
    ]
    objectives = [fit.certificate_.objective for fit in fits]
    assert objectives == sorted(objectives, reverse=True)
    # a model with fewer features is feasible for the wider problem
    assert fits[2].certificate_.lower_bound <= objectives[0]


def test_prices_move_the_choice():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    free = CardBoostClassifier(max_terms=5, l2=0.01, max_iter=20, n_jobs=1).fit(X, y)
    dear = X.columns[free.ensemble_.features_used[0]]
    costs = {dear: 1.0}
    model = CardBoostClassifier(max_terms=5, l2=0.01, max_iter=20, feature_costs=costs, n_jobs=1).fit(X, y)
    assert dear not in X.columns[list(model.ensemble_.features_used)]
    assert model.certificate_.verify(X, y)
    every = CardBoostClassifier(max_terms=5, l2=0.01, max_iter=20, feature_costs=[0.02] * 30, n_jobs=1).fit(
        X, y
    )
    assert len(every.ensemble_.features_used) < len(free.ensemble_.features_used)
    assert every.certificate_.verify(X, y)


WRONG = [
    ({"monotonic_cst": [1, 0]}, "2 entries"),
    ({"monotonic_cst": {"z": 1}}, "'z'"),
    ({"monotonic_cst": {"a": 2}}, "-1, 0 and 1"),
    ({"monotonic_cst": 1}, "sequence"),
    ({"feature_costs": {"a": -1.0}}, "feature_costs"),
    ({"feature_costs": {9: 1.0}}, "position"),
    ({"feature_costs": {"a": np.nan}}, "feature_costs"),
    ({"max_features": 0}, "max_features"),
    ({"max_features": 1.5}, "max_features"),
]


@pytest.mark.parametrize(("parameters", "message"), WRONG)
def test_what_is_refused(parameters, message):
    X, y = noisy(60)
    with pytest.raises(ValueError, match=message):
        CardBoostClassifier(**parameters).fit(X, y)


def test_a_direction_needs_numbers_and_two_classes():
    X, y = noisy(90)
    with pytest.raises(ValueError, match="two classes"):
        CardBoostClassifier(l2=0.01, monotonic_cst={"a": 1}).fit(X, np.arange(90) % 3)
    X["colour"] = np.array(["red", "blue", "grey"])[np.arange(90) % 3]
    with pytest.raises(ValueError, match="colour"):
        CardBoostClassifier(l2=0.01, monotonic_cst={"colour": 1}).fit(X, y)

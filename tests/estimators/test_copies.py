"""Pickles and copies of fitted estimators: they predict alike, and hold nothing of the training rows."""

from __future__ import annotations

import copy
import functools
import io
import pickle
import types

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from cardboost import (
    CardBoostClassifier,
    CardBoostRegressor,
    NeuralBoostClassifier,
    NeuralBoostRegressor,
    SoftMarginClassifier,
    SparseLinearRegression,
    SparseLogisticRegression,
    StagewiseClassifier,
    StagewiseRegressor,
)

TREE, REGRESSOR = DecisionTreeClassifier(max_depth=2), DecisionTreeRegressor(max_depth=2)
NETS = {"max_iter": 3, "max_terms": 2, "early_stopping": False, "n_jobs": 1}
ESTIMATORS = [
    CardBoostClassifier(l2=0.01, max_nodes=20, n_jobs=1),
    CardBoostClassifier(l2=0.01, max_nodes=20, n_jobs=1, loss="exponential", selector="tabu"),
    CardBoostClassifier(max_terms=3, dictionary=["stumps", TREE], hot_start=6, n_jobs=1),
    CardBoostRegressor(l2=0.01, max_nodes=20, n_jobs=1),
    SoftMarginClassifier(temperature=1.0, n_jobs=1),
    SoftMarginClassifier(dictionary=TREE, max_iter=5, n_jobs=1),
    StagewiseClassifier(n_jobs=1),
    StagewiseClassifier(dictionary=TREE, max_iter=5, validation_fraction=0.2, random_state=0, n_jobs=1),
    StagewiseRegressor(n_jobs=1),
    StagewiseRegressor(dictionary=REGRESSOR, max_iter=5, n_jobs=1),
    NeuralBoostClassifier(**NETS),
    NeuralBoostRegressor(**NETS),
    SparseLogisticRegression(l2=0.01, max_features=2, n_jobs=1),
    SparseLinearRegression(l1=0.01, n_jobs=1),
]
ROWS = 1500


def named(estimator):
    return type(estimator).__name__


def fitted(estimator, rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 6))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=rows)
    model = clone(estimator).fit(X, y > 0 if is_classifier(estimator) else y)
    return model, X


def long_arrays(thing, least, seen=None, place=""):
    """Where in an object, and in all that it refers to, an axis of an array or a list is so long."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, type | types.ModuleType | str | bytes):
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        if any(n >= least for n in thing.shape):
            yield place, thing.shape
        more = isinstance(thing.base, np.ndarray) and thing.base.size > thing.size
        inside = {"base": thing.base} if more else {}
        inside |= dict(enumerate(thing.flat)) if thing.dtype == object else {}
    elif isinstance(thing, dict):
        inside = thing
    elif isinstance(thing, list | tuple | set | frozenset):
        if len(thing) >= least:
            yield place, len(thing)
        inside = dict(enumerate(thing))
    elif isinstance(thing, types.FunctionType):
        inside = {"closure": [cell.cell_contents for cell in thing.__closure__ or ()]}
    elif isinstance(thing, types.MethodType):
        inside = {"self": thing.__self__}
    elif isinstance(thing, functools.partial):
        inside = {"func": thing.func, "args": thing.args, "keywords": thing.keywords}
    else:
        slots = {name: getattr(thing, name, None) for name in getattr(type(thing), "__slots__", ())}
        inside = getattr(thing, "__dict__", {}) | slots
    for key, value in inside.items():
        yield from long_arrays(value, least, seen, f"{place}.{key}")


def from_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_pickles_hold_no_training_rows(estimator):
    model, X = fitted(estimator, ROWS)
    content = pickle.dumps(model)
    for other in (pickle.loads(content), from_joblib(model)):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert list(long_arrays(other, ROWS // 2)) == []
    small, _ = fitted(estimator, ROWS // 5)
    assert len(content) < len(pickle.dumps(small)) + 8 * ROWS


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_copies_are_whole(estimator):
    model, X = fitted(estimator, 300)
    for other in (copy.copy(model), copy.deepcopy(model)):
        assert type(other) is type(model)
        assert set(vars(other)) == set(vars(model))
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert not hasattr(clone(model), "n_features_in_")

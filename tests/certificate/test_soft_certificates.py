"""Certificates of soft margins: true ones are accepted, and every number that is changed is refused."""

from __future__ import annotations

import copy
import itertools
import math
import re

import numpy as np
import pytest
from scipy.optimize import minimize

from cardboost import SoftMarginClassifier
from cardboost.certificate import checker


def data(seed, rows=40, features=2, missing=0.1):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, features)), 1)
    y = X[:, 0] + 0.7 * rng.normal(size=rows) > 0.2
    y[:2] = True, False
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, rng.choice([1.0, 2.0, 0.75], rows)


def all_columns(certificate, X, y):
    """Every stump on the cuts of the file, label multiplied in, and the two constant columns."""
    sign = np.where(y, 1.0, -1.0)
    columns = [sign, -sign] if certificate["problem"]["intercept_box"] is not None else []
    for f, cuts in enumerate(certificate["dictionary"]["cuts"]):
        for cut, missing, polarity in itertools.product([*cuts, math.inf], (True, False), (1, -1)):
            left = np.where(np.isnan(X[:, f]), missing, X[:, f] <= cut)
            if 0 < left.sum() < len(left):
                columns.append(polarity * sign * np.where(left, 1.0, -1.0))
    return np.unique(np.array(columns), axis=0).T


def log_mean(share, F):
    return float(np.log(share @ np.exp(F.min() - F)) - F.min())


def fitted(seed, temperature=0.5, **options):
    X, y, weight = data(seed)
    model = SoftMarginClassifier(temperature=temperature, n_jobs=1, **options).fit(X, y, weight)
    return model.certificate_.to_dict(), X, y, weight, model


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=pytest.mark.long) for k in range(2, 8))])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_bound_holds_and_meets_the_optimum(seed, intercept):
    certificate, X, y, weight, model = fitted(seed, 0.4 + 0.2 * seed, fit_intercept=intercept)
    assert checker.check(certificate, X, y, weight) == []
    radius, share = certificate["problem"]["radius"], weight / weight.sum()
    A = all_columns(certificate, X, y)
    value = lambda w: log_mean(share, A @ w)  # noqa: E731

    def slope(w):
        p = share * np.exp(-(A @ w) - value(w))
        return -(A.T @ p)

    found = minimize(
        value, np.full(A.shape[1], radius / A.shape[1]), jac=slope, method="SLSQP",
        bounds=[(0, None)] * A.shape[1], options={"ftol": 1e-14, "maxiter": 500},
        constraints={"type": "eq", "fun": lambda w: w.sum() - radius, "jac": np.ones_like},
    )  # fmt: skip
    objective = certificate["solution"]["objective"]
    margins = np.where(y, 1, -1) * model.decision_function(X)
    assert objective == pytest.approx(log_mean(share, margins), abs=1e-12)
    assert objective <= found.fun + 1e-7
    for bound in certificate["bounds"]:
        assert bound["lower_bound"] <= found.fun + 1e-9
        assert bound["gap"] <= 1e-6
    # the bound by its definition
    p = share * np.exp(-margins - objective)
    dual = -float(p @ np.log(p / share)) - radius * float(np.max(A.T @ p))
    assert certificate["bounds"][0]["leaves"][0]["bound"] == pytest.approx(dual, abs=1e-10)


def test_the_empty_model_is_the_best_intercept():
    certificate, _, y, weight, _ = fitted(3, 2.0)
    share = weight / weight.sum()
    positive = float(share[y].sum())
    b = max(-0.5, min(0.5, 0.5 * math.log(positive / (1 - positive))))
    assert certificate["null"]["intercept"] == pytest.approx(b, abs=1e-9)
    assert certificate["null"]["objective"] == pytest.approx(
        math.log(positive * math.exp(-b) + (1 - positive) * math.exp(b)), abs=1e-12
    )


def nodes(value, keys=()):
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from nodes(item, (*keys, key))
    else:
        yield keys, value


def changes(value):
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        step = 1e-3 * max(abs(value), 0.1)
        return [value + step, value - step, None, math.nan]
    if isinstance(value, str):
        return [f"{value}x", "exponential", "logistic", "pool", "dictionary", "feasible", "optimal"]
    return [0.5, False]


# A changed file that is sealed again is a new certificate, and these can be true
TRUE_AFTER_A_CHANGE = re.compile(
    r"bounds\.\d+\.columns"  # a bound that leaves out a column below the largest edge
    r"|columns\.(cut|feature|missing_left|polarity|charged)\.\d+"  # of a column that is not in use
    r"|columns\.category\.\d+"
    r"|dictionary\.cuts\.\d+\.\d+"  # a cut that no column of the pool uses
    r"|bounds\.\d+\.leaves\.\d+\.(intercept|weights.*)"  # row weights that prove more
)


def changed(certificate):
    for keys, value in nodes(certificate):
        for other in changes(value):
            if type(other) is type(value) and other == value:
                continue
            broken = copy.deepcopy(certificate)
            place = broken
            for key in keys[:-1]:
                place = place[key]
            place[keys[-1]] = other
            yield ".".join(map(str, keys)), other, broken


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_every_change_is_refused(seed):
    certificate, X, y, weight, _ = fitted(seed, 1.0, tol=1e-2)
    used = {j for j, _ in certificate["solution"]["weights"]}
    refused = 0
    for path, other, broken in changed(certificate):
        assert checker.check(broken, X, y, weight), (path, other)
        if path == "digest" or other != other:
            continue
        broken["digest"] = checker.content_digest(broken)
        if checker.check(broken, X, y, weight):
            refused += 1
            continue
        assert TRUE_AFTER_A_CHANGE.fullmatch(path), (path, other)
        column = re.fullmatch(r"columns\.\w+\.(\d+)", path)
        if column and int(column[1]) in used:  # then it is the same column on every row, or not counted
            A, B = all_columns(certificate, X, y), all_columns(broken, X, y)
            assert A.shape == B.shape or "charged" in path, (path, other)
    assert refused > 200


@pytest.mark.parametrize(
    ("keys", "value", "fault"),
    [
        (("problem", "radius"), None, "problem.radius: must be present exactly when"),
        (("problem", "radius"), 0.0, "problem.radius: expected a finite number > 0"),
        (("problem", "max_terms"), 3, "problem.max_terms: must be null"),
        (("problem", "intercept_box"), 1.0, "problem.intercept_box: must be null or the radius"),
        (("unseen", "l1"), 0.1, "unseen.l1: must be 0"),
        (("columns", "max_weight", 0), 1.0, "columns.max_weight: must be null"),
        (("bounds", 0, "leaves", 0, "theta"), 0.5, "bounds[0].leaves[0]: must be about all columns"),
        (("bounds", 0, "leaves", 0, "forced_out"), [0], "bounds[0].leaves[0]: must be about all columns"),
        (("version",), 4, "problem.loss: expected one of"),
    ],
)
def test_structure_faults_name_the_place(keys, value, fault):
    certificate, X, y, weight, _ = fitted(1)
    place = certificate
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    faults = checker.check(certificate, X, y, weight)
    assert any(own.startswith(fault) for own in faults), faults


def test_weights_beyond_the_radius_are_refused():
    certificate, X, y, weight, _ = fitted(1)
    certificate["problem"]["radius"] *= 0.999
    certificate["problem"]["intercept_box"] = certificate["problem"]["radius"]
    certificate["digest"] = checker.content_digest(certificate)
    faults = checker.check(certificate, X, y, weight)
    assert any(own.startswith("solution.weights: they add up to") for own in faults)


def test_other_rows_are_refused():
    certificate, X, y, weight, _ = fitted(4)
    assert checker.check(certificate, X[::-1], y[::-1], weight[::-1]) == []
    other = y.copy()
    other[0] = not other[0]
    assert checker.check(certificate, X, other, weight)


@pytest.mark.parametrize("positive", [3, 7, 20, 21])
def test_models_of_the_intercept_alone_verify(positive):
    """Their pool has no column, and sums are still as large as the radius."""
    X, y = np.full((43, 1), np.nan), np.arange(43) < positive
    options = {"temperature": 1e-3, "slack": 0.5, "n_jobs": 1}
    model = SoftMarginClassifier(class_weight="balanced", max_iter=1, **options).fit(X, y)
    assert model.certificate_.faults(X, y) == []
    X = np.where(y, 1.0, -1.0)[:, None] * np.arange(1, 44)[:, None]
    model = SoftMarginClassifier(max_bins=2, tol=0.0, monotonic_cst=[-1], **options).fit(X, y)
    assert model.certificate_.faults(X, y) == []

"""The layout of a certificate: one for stumps and for matrices, small enough, and true at every size."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

from cardboost import CardBoostClassifier
from cardboost.certificate import checker, writer
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import CertifiedProblem, ProvenScope, intercept_of, write_certificate
from cardboost.problem.bound import Leaf
from cardboost.problem.prices import PriceRule
from cardboost.solvers import select_columns


def table(seed, rows=60):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (rows, 3)).astype(float)
    return X, X[:, 0] + rng.normal(size=rows) > 2.0


def fitted(X, y, **options):
    return CardBoostClassifier(**{"l2": 0.01, "n_jobs": 1, "hot_start": 6, **options}).fit(X, y).certificate_


def test_stumps_and_matrices_share_one_layout():
    X, y = table(0)
    stumps = fitted(X, y, max_terms=2).content
    matrix = select_columns(np.where(X > 2, 1.0, -1.0), max_terms=2).certificate.content
    assert list(stumps) == list(matrix)
    for part in ("problem", "solution", "null", "data"):
        assert list(stumps[part]) == list(matrix[part])
    first, second = stumps["bounds"][0], matrix["bounds"][0]
    assert list(first) == list(second)
    assert list(first["leaves"][0]) == list(second["leaves"][0])
    own = [
        key
        for key in stumps["columns"]
        if key not in ("cut", "polarity", "missing_left", "category", "first")
    ]
    assert own == list(matrix["columns"])


@pytest.mark.parametrize("options", [{"max_terms": 2}, {"max_terms": None}, {"max_terms": None, "l0": 0.02}])
def test_a_file_that_would_be_too_large_does_without_the_dictionary(options, monkeypatch):
    X, y = table(1)
    whole = fitted(X, y, **options)
    size = len(json.dumps({key: value for key, value in whole.content.items() if key != "digest"}))
    monkeypatch.setattr(writer, "_CUTS_TO_WEIGH", 0)
    monkeypatch.setattr(writer, "MAX_BYTES", size)
    assert fitted(X, y, **options).content == whole.content
    monkeypatch.setattr(writer, "MAX_BYTES", 100)
    smaller = fitted(X, y, **options)
    assert [own.scope for own in smaller.bounds] == ["pool"]
    assert smaller.content["unseen"] is smaller.content["dictionary"] is None
    assert smaller.bound("pool") == whole.bound("pool")
    changed = {"unseen", "dictionary", "bounds", "status", "digest"}
    assert {key for key in whole.content if smaller.content[key] != whole.content[key]} <= changed
    assert smaller.faults(X, y) == []
    assert whole.faults(X, y) == []


@dataclass(frozen=True)
class Labels:
    kept: tuple
    rare: tuple = ()


def labelled(**more):
    """A true certificate of the empty model on two categorical features and a numeric one, from its parts."""
    X = np.array([["a", 1, 0.5], ["b", 2, 1.5], ["q", None, 2.5], ["a", 2, None]] * 5, dtype=object)
    y = np.array([True, False, True, True] * 5)
    sets = [Labels(("a",), ("b", "q")), Labels((1, 2)), None]
    rule = PriceRule(l1=0.01, l2=0.1, l0=0.0, max_weight=1.0, intercept_box=4.0)
    odds = float(np.log(3.0))
    weights, null = np.array([odds, 0.0, 0.0, 0.0]), float(np.log(4) - 0.75 * np.log(3))
    problem = CertifiedProblem(
        kind="stumps", loss="logistic", max_terms=1, rows=20, features=3, n_free=2, intercept_box=4.0,
        columns={"feature": [0, 0], "cut": [None, None], "polarity": [1, -1], "missing_left": [True, False],
                 "category": ["a", object()]},
        prices=rule.prices(2, 0), unseen=rule.prices(1, 0), cuts=[np.empty(0), np.empty(0), np.array([1.0])],
        categories=sets, monotonic=[0, 0, -1], digest=checker.data_digest(X, y, categorical=[0, 1]), **more,
    )  # fmt: skip
    leaf = Leaf(np.zeros(4), 0.0, 0.0)
    bounds = [ProvenScope(scope, 4, [leaf]) for scope in ("pool", "dictionary")]
    return write_certificate(problem, weights, null, (odds, null), bounds), X, y


def test_categories_directions_and_limits_are_laid_out():
    content, X, y = labelled(max_features=2, feature_costs=np.array([0.5, 0.25, 0.0]))
    assert content["categories"] == [
        {"kept": ["a"], "rare": True, "order": None}, {"kept": [1, 2], "rare": False, "order": None}, None,
    ]  # fmt: skip
    assert content["columns"]["category"] == ["a", {"other": True}]
    assert content["dictionary"] == {"cuts": [[], [], [1.0]], "monotonic": [0, 0, -1]}
    assert content["problem"]["max_features"] == 2
    assert content["problem"]["feature_costs"] == [0.5, 0.25, 0.0]
    assert checker.check(json.loads(json.dumps(content)), X, y) == []
    lines = Certificate(content).lines()
    assert any("all 9 stumps" in line for line in lines)
    assert any("that any 1-term card on 2 features of that scope could make" in line for line in lines)
    assert any("at most 1 term, at most 2 features" in line for line in lines)
    assert any("0 to 0.5 (by column) for each feature in use" in line for line in lines)
    assert Certificate(content, True).verify(X, y)


def test_labels_that_no_column_looks_at_are_left_out_with_the_dictionary(monkeypatch):
    monkeypatch.setattr(writer, "_CUTS_TO_WEIGH", 0)
    monkeypatch.setattr(writer, "MAX_BYTES", 100)
    content, X, y = labelled()
    assert content["dictionary"] is None
    assert content["categories"] == [
        {"kept": ["a"], "rare": True, "order": None}, {"kept": [], "rare": False, "order": None}, None,
    ]  # fmt: skip
    assert checker.check(content, X, y) == []


def test_long_labels_count_towards_the_size(monkeypatch):
    monkeypatch.setattr(writer, "_CUTS_TO_WEIGH", 3)
    monkeypatch.setattr(writer, "MAX_BYTES", 100)
    assert labelled()[0]["dictionary"] is None
    monkeypatch.setattr(writer, "_CUTS_TO_WEIGH", 8)
    assert labelled()[0]["dictionary"] is not None


def test_orders_stay_where_columns_need_them_and_count_towards_the_size(monkeypatch):
    rng = np.random.default_rng(0)
    town, zone = rng.integers(0, 9, 400), rng.integers(0, 7, 400)
    X = np.stack([town, zone, rng.normal(size=400)], axis=1)
    y = np.isin(town, [1, 2, 5]) ^ (rng.random(400) < 0.05)
    options = {"max_terms": 1, "max_iter": 2, "categorical_features": [0, 1]}
    whole = fitted(X, y, **options)
    assert [len(own["order"]) for own in whole.content["categories"][:2]] == [9, 7]
    assert any(own is not None for own in whole.content["columns"]["first"])
    stumps = 2 * (9 + 6 + 7 + 4) + 2 * len(whole.content["dictionary"]["cuts"][2])
    assert any(f"all {stumps} stumps" in line for line in whole.lines())
    monkeypatch.setattr(writer, "MAX_BYTES", 100)
    n_cuts, labels = len(whole.content["dictionary"]["cuts"][2]), 16
    monkeypatch.setattr(writer, "_CUTS_TO_WEIGH", n_cuts + labels + 2 * labels)
    assert fitted(X, y, **options).content == whole.content
    monkeypatch.setattr(writer, "_CUTS_TO_WEIGH", n_cuts + labels + 2 * labels - 1)
    smaller = fitted(X, y, **options)
    assert smaller.content["dictionary"] is None
    used = set(smaller.content["columns"]["feature"])
    for f, own in enumerate(smaller.content["categories"][:2]):
        assert own == (
            whole.content["categories"][f] if f in used else {"kept": [], "rare": False, "order": None}
        )
    assert smaller.faults(X, y) == []
    assert whole.faults(X, y) == []


def test_a_regression_is_laid_out_and_verified_with_its_targets():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 1)), rng.normal(3.0, 2.0, 30)
    mean, scale = float(y.mean()), float(y.std())
    rule = PriceRule(l1=0.01, l2=0.1, l0=0.0, max_weight=1.0, intercept_box=4.0)
    problem = CertifiedProblem(
        kind="stumps", loss="squared", max_terms=1, rows=30, features=1, n_free=2, intercept_box=4.0,
        columns={"feature": [0], "cut": [0.0], "polarity": [1], "missing_left": [False]},
        prices=rule.prices(1, 0), target=(mean, scale), digest=checker.data_digest(X, target=y),
    )  # fmt: skip
    leaf = Leaf(np.zeros(3), 0.0, 0.0)
    content = write_certificate(problem, np.zeros(3), 0.5, (0.0, 0.5), [ProvenScope("pool", 3, [leaf])])
    assert content["problem"]["target"] == {"mean": mean, "scale": scale}
    assert content["columns"]["category"] == [None]
    assert content["categories"] is None
    assert Certificate(content).faults(X, y) == []
    assert not Certificate(content).verify(X, y + 1e-9)


def written(weights, objective, leaf, n_free):
    rule = PriceRule(l1=0.1, l2=0.2, l0=0.3, max_weight=np.inf, intercept_box=4.0)
    n = len(weights) - n_free
    problem = CertifiedProblem(
        kind="matrix", loss="logistic", max_terms=1, columns={"feature": list(range(n))},
        prices=rule.prices(n, 0), rows=5, features=n, digest="0" * 32, n_free=n_free,
    )  # fmt: skip
    return write_certificate(
        problem, weights, objective, (0.0, 0.7), [ProvenScope("pool", len(weights), [leaf])]
    )


def test_weights_are_counted_without_the_intercepts_columns():
    weights = np.array([0.25, 1.0, 0.0, 2.0, 3.0])
    leaf = Leaf(weights[::-1].copy(), 0.5, 0.4, (2,), (4,))
    content = written(weights, 0.5, leaf, n_free=2)
    assert content["solution"] == {"intercept": -0.75, "weights": [[1, 2.0], [2, 3.0]], "objective": 0.5}
    bound = content["bounds"][0]
    assert bound["columns"] == 3
    assert bound["leaves"][0] == {
        "forced_in": [0], "forced_out": [2], "theta": 0.5, "intercept": 1.0,
        "weights": [[1, 1.0], [2, 0.25]], "curve": None, "bound": 0.4,
    }  # fmt: skip
    assert intercept_of(weights, 0) == 0.0
    assert written(weights, 0.5, leaf, n_free=0)["solution"]["weights"][0] == [0, 0.25]


def test_what_follows_from_the_leaves():
    weights = np.zeros(2)
    content = written(weights, 0.5, Leaf(weights, 0.5, 0.4), n_free=0)
    bound = content["bounds"][0]
    assert (bound["lower_bound"], bound["gap"], bound["relative_gap"]) == (0.4, 0.5 - 0.4, (0.5 - 0.4) / 0.5)
    assert bound["guarantee"] == pytest.approx(2 / 3)
    assert content["status"] == "feasible"
    assert content["columns"]["max_weight"] == [None, None]
    assert content["digest"] == checker.content_digest(content)
    above = written(weights, 0.5, Leaf(weights, 0.5, 0.6), n_free=0)
    assert above["bounds"][0]["lower_bound"] == 0.5, "no lower bound is above the objective"
    assert above["status"] == "optimal among candidates"
    assert json.loads(json.dumps(above)) == above


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_fit_without_time_proves_nothing_of_other_weights(loss):
    """The empty model is not "optimal" for want of a weight: models with weights are what it is held to."""
    X = np.random.default_rng(0).normal(size=(67, 2))
    y = X[:, 0] > 0.2
    model = CardBoostClassifier(l2=0.01, loss=loss, max_terms=1, hot_start=2, time_limit=1e-9, n_jobs=1).fit(
        X, y
    )
    certificate = model.certificate_
    assert model.ensemble_.n_terms == 0
    assert certificate.faults(X, y) == []
    assert certificate.status != "optimal"
    assert certificate.guarantee == 0.0
    assert "weights from 0 to 1," in certificate.lines()[1]
    assert "0.0001 x sum of weights" in certificate.lines()[0]
    box = CardBoostClassifier(
        loss=loss, max_terms=1, hot_start=2, max_weight=1.0, l1=1e-4, l2=0.01, n_jobs=1
    ).fit(X, y)
    assert certificate.lower_bound <= box.certificate_.objective < certificate.objective

"""The layout of a certificate: one for stumps and for matrices, small enough, and true at every size."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cardboost import CardBoostClassifier
from cardboost.certificate import checker, writer
from cardboost.certificate.bounds import Leaf
from cardboost.certificate.writer import CertifiedProblem, ProvenScope, intercept_of, write_certificate
from cardboost.master.problem import PriceRule
from cardboost.solvers import select_columns


def table(seed, rows=60):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (rows, 3)).astype(float)
    return X, X[:, 0] + rng.normal(size=rows) > 2.0


def fitted(X, y, **options):
    return CardBoostClassifier(n_jobs=1, hot_start=6, **options).fit(X, y).certificate_


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
    own = [key for key in stumps["columns"] if key not in ("cut", "polarity", "missing_left")]
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
    leaf = Leaf(weights[::-1].copy(), 0.5, 0.4, (0,), (2,))
    content = written(weights, 0.5, leaf, n_free=2)
    assert content["solution"] == {"intercept": -0.75, "weights": [[1, 2.0], [2, 3.0]], "objective": 0.5}
    bound = content["bounds"][0]
    assert bound["columns"] == 3
    assert bound["leaves"][0] == {
        "forced_in": [0], "forced_out": [2], "theta": 0.5, "intercept": 1.0,
        "weights": [[1, 1.0], [2, 0.25]], "bound": 0.4,
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
    assert above["status"] == "optimal"
    assert json.loads(json.dumps(above)) == above

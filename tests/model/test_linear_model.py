"""Files of linear models: round trips, refusals, and predictions that equal the estimator's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from documents import TRAINING, _drop, _set, refusal
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from cardboost import SparseLinearRegression, SparseLogisticRegression, load_model
from cardboost.certificate.linear import LinearCertificate
from cardboost.model import LinearModel, LinearScore, Model
from cardboost.model.card import render_card
from cardboost.model.files import from_dict, model_bytes, read_model

BINARY = LinearModel("logistic", 3, ("a", "b", "c"), ("no", "yes"), (LinearScore(0.5, (0, 2), (1.5, -0.25)),))
MANY = LinearModel(
    "softmax", 3, None, (1, 2, 3), tuple(LinearScore(k / 4, (k,), (1.0 + k,)) for k in range(3))
)
RATED = LinearModel("logistic", 3, None, (1, 2, 3), MANY.scores)
NUMBER = LinearModel("absolute", 3, None, None, (LinearScore(0.0, (), ()),))


def document(model: LinearModel = BINARY) -> dict[str, Any]:
    proofs = [{}, {}, {}] if model is RATED else {"objective": 1.5}
    return json.loads(model_bytes(model, proofs, TRAINING))


@pytest.mark.parametrize("model", [BINARY, MANY, RATED, NUMBER], ids=["binary", "softmax", "ovr", "number"])
def test_round_trips(model: LinearModel) -> None:
    data = json.dumps(document(model)).encode()
    assert json.loads(data)["version"] == 4
    again = read_model(data)
    assert again.ensemble == model
    assert from_dict(model.to_dict()) == model
    assert (again.kind, again.classes) == (model.kind, model.classes)
    X = np.arange(12.0).reshape(4, 3)
    names = list("abc") if model.feature_names else None
    frame = pd.DataFrame(X, columns=names) if names else X
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(model.predict(sparse.csr_array(X)), model.predict(frame))
    score = model.decision_function(frame)
    parts = model.contributions(frame).sum(axis=1)
    offset = np.array([own.intercept for own in model.scores])
    np.testing.assert_allclose(score, parts + (offset if score.ndim == 2 else offset[0]))
    with pytest.raises(ValueError, match="scorecard"):
        again.scorecard()


@given(
    weights=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=5),
    intercept=st.floats(allow_nan=False, allow_infinity=False),
)
def test_numbers_round_trip_to_the_bit(weights: list[float], intercept: float) -> None:
    model = LinearModel(
        "squared", 6, None, None, (LinearScore(intercept, tuple(range(len(weights))), tuple(weights)),)
    )
    assert read_model(model_bytes(model)).ensemble == model


FAULTS = [
    (_drop("ensemble", "loss"), "ensemble.loss: expected a value, but it is missing"),
    (_set("ensemble", "loss", "hinge"), "ensemble.loss: expected 'logistic', 'softmax', 'squared' or 'abs"),
    (_set("ensemble", "x", 1), "ensemble.x: unknown key"),
    (_set("ensemble", "n_features", 0), "ensemble.n_features: expected a number from 1 to"),
    (_set("ensemble", "n_features", 2), "ensemble.feature_names: expected n_features = 2 names, found 3"),
    (_set("ensemble", "feature_names", ["a", "a", "b"]), "ensemble.feature_names[1]: expected names that"),
    (_set("ensemble", "classes", None), "ensemble.classes: expected two labels or more, found None"),
    (_set("ensemble", "classes", ["no"]), "ensemble.classes: expected two labels or more, found ['no']"),
    (_set("ensemble", "classes", ["no", "yes", "x"]), "ensemble.scores: expected 3, found 1"),
    (_set("ensemble", "scores", None), "ensemble.scores: expected a list, found null"),
    (_set("ensemble", "scores", []), "ensemble.scores: expected 1, found 0"),
    (_set("ensemble", "scores", 0, 1), "ensemble.scores[0]: expected an object, found 1"),
    (_drop("ensemble", "scores", 0, "weights"), "ensemble.scores[0].weights: expected a value, but it is"),
    (_set("ensemble", "scores", 0, "x", 1), "ensemble.scores[0].x: unknown key"),
    (_set("ensemble", "scores", 0, "intercept", "1"), "ensemble.scores[0].intercept: expected a finite numb"),
    (_set("ensemble", "scores", 0, "intercept", None), "ensemble.scores[0].intercept: expected a finite num"),
    (_set("ensemble", "scores", 0, "features", [0, 3]), "ensemble.scores[0].features: expected indices belo"),
    (_set("ensemble", "scores", 0, "features", [2, 0]), "ensemble.scores[0].features[1]: expected indices o"),
    (_set("ensemble", "scores", 0, "features", [0, 0]), "ensemble.scores[0].features[1]: expected indices o"),
    (_set("ensemble", "scores", 0, "features", [-1, 0]), "ensemble.scores[0].features[0]: expected indices "),
    (_set("ensemble", "scores", 0, "features", [0.5, 1]), "ensemble.scores[0].features[0]: expected the ind"),
    (_set("ensemble", "scores", 0, "features", [0]), "ensemble.scores[0].weights: expected one for each of "),
    (_set("ensemble", "scores", 0, "features", 3), "ensemble.scores[0].features: expected a list, found 3"),
    (_set("ensemble", "scores", 0, "weights", [1, True]), "ensemble.scores[0].weights[1]: expected a finite"),
    (_set("ensemble", "loss", "squared"), "ensemble.classes: expected none with squared loss"),
    (_set("certificate", []), "certificate: expected an object or null, found a list"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), FAULTS)
def test_faults_are_reported_with_their_path(change: Any, message: str) -> None:
    own = document()
    change(own)
    assert refusal(own).startswith(f"model.json: {message}")


def test_one_certificate_per_class() -> None:
    own = document(RATED) | {"certificate": [{}]}
    assert refusal(own).startswith("model.json: certificate: expected one for each of 3 classes, found 1")
    assert read_model(json.dumps(document(MANY)).encode()).certificate == {"objective": 1.5}


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
@pytest.mark.parametrize("classes", [2, 3])
def test_saved_classifiers_predict_alike(tmp_path: Path, multi_class: str, classes: int) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 5)), columns=list("abcde"))
    y = np.array(["u", "v", "w"])[(X["a"] > 0).to_numpy().astype(int) + (classes > 2) * (X["b"] > 0)]
    model = SparseLogisticRegression(l1=0.02, multi_class=multi_class).fit(X, y)
    model.save(tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    assert isinstance(again, Model)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    proofs = again.certificate if isinstance(again.certificate, list) else [again.certificate]
    assert all(LinearCertificate.from_dict(own).verify(X.to_numpy(), y) for own in proofs)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_saved_regressors_predict_alike(tmp_path: Path, loss: str) -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = SparseLinearRegression(loss=loss, l1=0.01).fit(X, X[:, 0] - X[:, 2])
    model.save(tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-12)
    with pytest.raises(ValueError, match="no classes"):
        again.predict_proba(X)
    assert LinearCertificate.from_dict(again.certificate).verify(X, X[:, 0] - X[:, 2])


def test_a_certificate_that_is_none() -> None:
    with pytest.raises(ValueError, match="no certificate of a linear model"):
        LinearCertificate.from_dict({"objective": 1.0})


def test_predictions_refuse_what_is_not_finite() -> None:
    with pytest.raises(ValueError, match="X contains"):
        NUMBER_OF_ALL.predict(np.array([[np.nan, 1.0]]))
    with pytest.raises(ValueError, match="expects 2 features"):
        NUMBER_OF_ALL.predict(sparse.csr_array(np.ones((2, 3))))


NUMBER_OF_ALL = LinearModel("squared", 2, None, None, (LinearScore(0.0, (0, 1), (1.0, 1.0)),))


def test_the_card():
    names, line = ("a", "", "long " * 30), LinearScore(0.5, (0, 1, 2), (-2.0, 3.0, 1e-9))
    lines = render_card(LinearModel("logistic", 3, names, ("no", "yes"), (line,))).splitlines()
    ends = ("+0.5", "+3", "-2", "+1e-09")
    places = [next(k for k, text in enumerate(lines) if text.endswith(end)) for end in ends]
    assert places == sorted(places)  # the intercept, then the heaviest
    assert 'score above 0 means class "yes", otherwise class "no"' in "\n".join(lines)
    assert max(map(len, lines)) <= 78
    number = LinearModel("absolute", 1, None, None, (LinearScore(0.0, (), ()),))
    assert "the score is the prediction" in render_card(number)
    assert "intercept" in render_card(number)
    many = LinearModel("softmax", 2, None, (1, 2, 3), (LinearScore(0.0, (1,), (1.0,)),) * 3)
    assert render_card(many).count("Class ") == 3

"""Networks as ONNX graphs: the same scores, labels and probabilities in onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from sklearn.datasets import load_iris

from cardboost import NeuralBoostClassifier, NeuralBoostRegressor
from cardboost.problem.vector_losses import SquaredOutputs

X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32)
QUICK = {"max_iter": 3, "early_stopping": False, "l2": 0.01, "net_iter": 20, "random_state": 0}


def run(graph: bytes, rows: np.ndarray) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(graph)
    return dict(zip((own.name for own in session.get_outputs()), session.run(None, {"X": rows}), strict=True))


@pytest.mark.parametrize("loss", ["logistic", "cross_entropy", "squared"])
@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers(loss, activation, classes, tmp_path):
    rows = classes > Y
    labels = np.array(["blue", "größe", "red"])[Y[rows]]
    model = NeuralBoostClassifier(**QUICK | {"loss": loss, "activation": activation}).fit(X[rows], labels)
    graph = model.export("onnx", tmp_path / "nets.onnx")
    assert (tmp_path / "nets.onnx").read_bytes() == graph
    rng = np.random.default_rng(0)
    fresh = np.vstack([X, 10.0 * rng.normal(size=(200, 4)).astype(np.float32)])
    found = run(graph, fresh)
    assert (found["label"] == model.predict(fresh)).all()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(fresh), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("outputs", [1, 2])
def test_regressors(outputs):
    target = X[:, :outputs] ** 2 if outputs > 1 else X[:, 0] ** 2
    model = NeuralBoostRegressor(**QUICK).fit(X, target)
    found = run(model.export("onnx"), X)
    assert list(found) == ["score"]
    np.testing.assert_allclose(found["score"], model.predict(X).reshape(len(X), -1), rtol=1e-10)


def test_no_net_and_a_loss_of_one_s_own():
    flat = NeuralBoostRegressor(**QUICK).fit(X, np.full(150, 2.5))
    np.testing.assert_allclose(run(flat.export("onnx"), X)["score"], 2.5)

    class Own(SquaredOutputs):
        name = "mine"

    model = NeuralBoostClassifier(**QUICK | {"loss": Own()}).fit(X, Y)
    found = run(model.export("onnx"), X)
    assert list(found) == ["score", "label"]
    assert (found["label"] == model.predict(X)).all()


def test_other_formats():
    model = NeuralBoostClassifier(**QUICK).fit(X, Y)
    assert '"nets"' in model.export("json")
    for format in ("c", "sql", "python"):
        with pytest.raises(ValueError, match="only models of stumps"):
            model.export(format)

"""A sum of networks as an ONNX graph: all hidden units side by side in one product, in double precision.

The input ``X`` is float32, one column per feature. Outputs: ``score`` (rows, outputs); for classifiers also
``label`` and, where the loss has them, ``probabilities``. Needs the package ``onnx``.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from cardboost.export.onnx import IR_VERSION, class_tensor
from cardboost.model.nets import NetEnsemble

_OPSET = 17
_UNITS = {"tanh": "Tanh", "relu": "Relu", "logistic": "Sigmoid"}


def export_onnx_nets(ensemble: NetEnsemble) -> bytes:
    """The serialised graph."""
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise ImportError("The ONNX export needs the package onnx: install cardboost[onnx].") from None
    node, value = helper.make_node, helper.make_tensor_value_info
    constants = {
        "mean": ensemble.mean,
        "scale": ensemble.scale,
        **_layers(ensemble),
    }
    nodes = [
        node("Cast", ["X"], ["given"], to=TensorProto.DOUBLE),
        node("Sub", ["given", "mean"], ["centred"]),
        node("Div", ["centred", "scale"], ["z"]),
        node("MatMul", ["z", "hidden"], ["pulled"]),
        node("Add", ["pulled", "bias"], ["sums"]),
        node(_UNITS[ensemble.activation], ["sums"], ["units"]),
        node("MatMul", ["units", "out"], ["added"]),
        node("Add", ["added", "intercept"], ["score"]),
    ]
    outputs = [value("score", TensorProto.DOUBLE, [None, ensemble.n_outputs])]
    tensors = []
    if ensemble.classes is not None:
        more, chances = _decision(ensemble, node)
        nodes += more
        kind, labels = class_tensor(ensemble.classes, TensorProto)
        tensors.append(helper.make_tensor("labels", kind, [len(labels)], labels))
        tensors += [helper.make_tensor(name, TensorProto.INT64, [1], [k]) for name, k in (("flat", -1), ("along", 1))]
        constants |= {"zero": np.zeros(1), "one": np.ones(1), "signs": np.array([[-1.0, 1.0]])}
        outputs.append(value("label", kind, [None]))
        if chances:
            outputs.append(value("probabilities", TensorProto.DOUBLE, [None, len(labels)]))
    used = {name for own in nodes for name in own.input}
    tensors = [own for own in tensors if own.name in used]
    tensors += [numpy_helper.from_array(own, name) for name, own in constants.items() if name in used]
    table = value("X", TensorProto.FLOAT, [None, ensemble.n_features])
    graph = helper.make_graph(nodes, "cardboost", [table], outputs, tensors)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        producer_name="cardboost",
        ir_version=IR_VERSION,
    )
    names = {str(j): ensemble.feature_name(j) for j in range(ensemble.n_features)}
    helper.set_model_props(model, {"cardboost.features": json.dumps(names)})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _layers(ensemble: NetEnsemble) -> dict[str, Any]:
    """Both layers of all nets at once; without any net, one unit that says nothing."""
    nets, m = ensemble.nets, ensemble.n_outputs
    if not nets:
        hidden, bias, out = np.zeros((ensemble.n_features, 1)), np.zeros(1), np.zeros((1, m))
        return {"hidden": hidden, "bias": bias, "out": out, "intercept": ensemble.intercept}
    return {
        "hidden": np.concatenate([net.hidden for net in nets], axis=1),
        "bias": np.concatenate([net.bias for net in nets]),
        "out": np.concatenate([net.gamma * net.out for net in nets]),
        "intercept": ensemble.intercept + sum(net.gamma * net.offset for net in nets),
    }


def _decision(ensemble: NetEnsemble, node: Any) -> tuple[list[Any], bool]:
    """The nodes of label and probabilities, and whether there are any of these."""
    single = ensemble.n_outputs == 1
    if single:
        nodes = [
            node("Greater", ["score", "zero"], ["positive"]),
            node("Cast", ["positive"], ["column"], to=7),  # int64
            node("Reshape", ["column", "flat"], ["index"]),
        ]
    else:
        nodes = [node("ArgMax", ["score"], ["index"], axis=1, keepdims=0)]
    nodes.append(node("Gather", ["labels", "index"], ["label"], axis=0))
    if ensemble.loss == "own":
        return nodes, False
    if ensemble.loss == "cross_entropy":
        return [*nodes, node("Softmax", ["score"], ["probabilities"], axis=1)], True
    if single:
        nodes.append(node("Mul", ["score", "signs"], ["odds"]))
        return [*nodes, node("Sigmoid", ["odds"], ["probabilities"])], True
    if ensemble.loss == "logistic":
        nodes.append(node("Sigmoid", ["score"], ["share"]))
    else:
        nodes += [node("Max", ["score", "zero"], ["above"]), node("Min", ["above", "one"], ["share"])]
    nodes += _normalised(ensemble, node)
    return nodes, True


def _normalised(ensemble: NetEnsemble, node: Any) -> list[Any]:
    """Shares divided by their sum; equal ones where all are 0."""
    return [
        node("ReduceMax", ["share"], ["largest"], axes=[1], keepdims=1),
        node("Greater", ["largest", "zero"], ["some"]),
        node("Where", ["some", "share", "one"], ["shares"]),
        node("ReduceSum", ["shares", "along"], ["total"], keepdims=1),
        node("Div", ["shares", "total"], ["probabilities"]),
    ]

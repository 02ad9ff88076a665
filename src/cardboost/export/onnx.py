"""A model as an ONNX graph, for float32 tables. Needs the package ``onnx``.

Stumps become tree-ensemble operators. Trees add up in float32, in an order of the runtime's choice. So the
leaves hold whole points, whose sums are exact in any order, at most 2^24; decisions are those of the model
for every float32. Networks are one product with all hidden units side by side, in double precision.

The input ``X`` has one column for every feature of the model, in its order. Outputs: ``score`` (rows,
scores); for classifiers also ``label`` and, where the loss has them, ``probabilities``.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from cardboost.export.c_model import float32_at_most
from cardboost.export.c_text import FLT_MAX
from cardboost.export.integer_model import unproven
from cardboost.export.plan import NetPlan, Plan, Steps
from cardboost.export.points import WholePoints, find_points

MOST_POINTS = 2**24  # whole numbers up to this are exact in float32
_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8  # goes with operator set 17 (ONNX 1.12)
_ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu", "logistic": "Sigmoid"}
_NODE_ATTRIBUTES = (
    "treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
    "missing_value_tracks_true",
)  # fmt: skip


def export_onnx(ensemble: Any, *, exact: bool = True) -> bytes:
    """The serialised graph of a model of stumps.

    Labels of categorical features are given as their codes, which the metadata lists, and any other code is
    missing. For two classes and the logistic or exponential loss there are probabilities.

    Parameters
    ----------
    ensemble : Ensemble or MulticlassEnsemble
    exact : bool, default True
        Refuse a model for which it cannot be proven that no decision changes.

    Returns
    -------
    bytes
    """
    plan = Plan.of(ensemble)
    onnx = _import_onnx()
    node, tensor, types = onnx.helper.make_node, onnx.helper.make_tensor, onnx.TensorProto
    output = onnx.helper.make_tensor_value_info
    steps = [source.steps().restricted(float32_at_most, FLT_MAX) for source in plan.inputs]
    points = find_points(plan, steps, widths=(32,), most=MOST_POINTS)
    if exact and not points.proven:
        raise ValueError(unproven(plan))
    unit = points.value
    if not 1e-37 <= unit <= 1e30:
        raise ValueError("ensemble: its weights are too large or too small for float32.")
    trees = _Trees(plan, points)
    for index, step in enumerate(steps):
        trees.add(index, step)
    nodes = [
        node(
            "TreeEnsembleRegressor", ["X"], ["added"], domain="ai.onnx.ml", n_targets=plan.n_scores,
            aggregate_function="SUM", post_transform="NONE", **trees.attributes(),
        ),
        node("Add", ["added", "intercepts"], ["points"]),
        node("Mul", ["points", "unit"], ["score"]),
    ]  # fmt: skip
    start = [float(value) for value in points.intercepts]
    constants = [
        tensor("intercepts", types.FLOAT, [plan.n_scores], start),
        tensor("unit", types.FLOAT, [1], [unit]),
    ]
    outputs = [output("score", types.FLOAT, [None, plan.n_scores])]
    if plan.classes is not None:
        kind, labels = _label_tensor(plan.classes, types)
        constants.append(tensor("labels", kind, [len(labels)], labels))
        outputs.append(output("label", kind, [None]))
        nodes += _index_nodes(node, plan.n_scores)
        if plan.n_scores == 1:
            constants += [tensor("zero", types.FLOAT, [1], [0.0]), tensor("flat", types.INT64, [1], [-1])]
            if (factor := plan.probability_factor) is not None:
                constants.append(tensor("signs", types.FLOAT, [1, 2], [-factor, factor]))
                nodes.append(node("Mul", ["score", "signs"], ["odds"]))
                nodes.append(node("Sigmoid", ["odds"], ["probabilities"]))
                outputs.append(output("probabilities", types.FLOAT, [None, 2]))
        nodes.append(node("Gather", ["labels", "index"], ["label"], axis=0))
    categories = {
        str(source.feature): {"kept": source.categories.kept, "rare": source.categories.rare}
        for source in plan.inputs
        if source.categories is not None
    }
    facts = {
        "cardboost.features": json.dumps({str(source.feature): source.name for source in plan.inputs}),
        "cardboost.categories": json.dumps(categories),
    }
    return _serialised(onnx, nodes, plan.n_features, outputs, constants, facts, _OPSETS)


def export_onnx_nets(ensemble: Any) -> bytes:
    """The serialised graph of a sum of networks."""
    plan = NetPlan.of(ensemble)
    onnx = _import_onnx()
    node, tensor, types = onnx.helper.make_node, onnx.helper.make_tensor, onnx.TensorProto
    output = onnx.helper.make_tensor_value_info
    names = ("mean", "scale", "hidden", "bias", "out", "intercept")
    constants = {name: getattr(plan, name) for name in names}
    nodes = [
        node("Cast", ["X"], ["given"], to=types.DOUBLE),
        node("Sub", ["given", "mean"], ["centred"]),
        node("Div", ["centred", "scale"], ["z"]),
        node("MatMul", ["z", "hidden"], ["pulled"]),
        node("Add", ["pulled", "bias"], ["sums"]),
        node(_ACTIVATIONS[plan.activation], ["sums"], ["units"]),
        node("MatMul", ["units", "out"], ["added"]),
        node("Add", ["added", "intercept"], ["score"]),
    ]
    outputs = [output("score", types.DOUBLE, [None, plan.n_outputs])]
    tensors = []
    if plan.classes is not None:
        kind, labels = _label_tensor(plan.classes, types)
        tensors.append(tensor("labels", kind, [len(labels)], labels))
        tensors += [tensor(name, types.INT64, [1], [k]) for name, k in (("flat", -1), ("along", 1))]
        constants |= {"zero": np.zeros(1), "one": np.ones(1), "signs": np.array([[-1.0, 1.0]])}
        outputs.append(output("label", kind, [None]))
        probabilities = _net_probabilities(plan, node)
        nodes += _index_nodes(node, plan.n_outputs)
        nodes += [node("Gather", ["labels", "index"], ["label"], axis=0), *probabilities]
        if probabilities:
            outputs.append(output("probabilities", types.DOUBLE, [None, len(labels)]))
    used = {name for step in nodes for name in step.input}
    tensors = [constant for constant in tensors if constant.name in used]
    tensors += [onnx.numpy_helper.from_array(x, name) for name, x in constants.items() if name in used]
    features = {str(j): name for j, name in enumerate(plan.feature_names)}
    facts = {"cardboost.features": json.dumps(features)}
    return _serialised(onnx, nodes, len(features), outputs, tensors, facts, {"": _OPSETS[""]})


def _import_onnx() -> Any:
    try:
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ImportError("The ONNX export needs the package onnx: install cardboost[onnx].") from None
    return onnx


def _serialised(
    onnx: Any,
    nodes: list[Any],
    n_features: int,
    outputs: list[Any],
    constants: list[Any],
    facts: dict[str, str],
    opsets: dict[str, int],
) -> bytes:
    """A checked model of these nodes; ``facts`` are its metadata."""
    helper = onnx.helper
    table = helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [None, n_features])
    graph = helper.make_graph(nodes, "cardboost", [table], outputs, constants)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
        producer_name="cardboost",
        ir_version=_IR_VERSION,
    )
    helper.set_model_props(model, facts)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _index_nodes(node: Any, n_scores: int) -> list[Any]:
    """From the scores to the index of the class."""
    if n_scores > 1:
        return [node("ArgMax", ["score"], ["index"], axis=1, keepdims=0)]
    return [
        node("Greater", ["score", "zero"], ["positive"]),
        node("Cast", ["positive"], ["column"], to=7),  # int64
        node("Reshape", ["column", "flat"], ["index"]),
    ]


def _label_tensor(classes: tuple[Any, ...], types: Any) -> tuple[Any, list[Any]]:
    """The type and the values of the labels."""
    first = classes[0]
    if isinstance(first, str):
        for label in classes:
            if "\0" in label or any("\ud800" <= c <= "\udfff" for c in label):
                raise ValueError(f"classes: {label!r} holds a character that ONNX cannot.")
        return types.STRING, [label.encode("utf-8") for label in classes]
    if isinstance(first, bool):
        return types.BOOL, list(classes)
    return (types.INT64 if isinstance(first, int) else types.DOUBLE), list(classes)


def _net_probabilities(plan: NetPlan, node: Any) -> list[Any]:
    """The nodes of the probabilities; none for a loss of a user's own."""
    if plan.loss == "own":
        return []
    if plan.loss == "cross_entropy":
        return [node("Softmax", ["score"], ["probabilities"], axis=1)]
    if plan.n_outputs == 1:
        odds = node("Mul", ["score", "signs"], ["odds"])
        return [odds, node("Sigmoid", ["odds"], ["probabilities"])]
    if plan.loss == "logistic":
        nodes = [  # not Sigmoid: shares of all classes can be tiny, and runtimes round it differently
            node("Neg", ["score"], ["against"]),
            node("Exp", ["against"], ["odds"]),
            node("Add", ["odds", "one"], ["whole"]),
            node("Div", ["one", "whole"], ["share"]),
        ]
    else:
        nodes = [node("Max", ["score", "zero"], ["above"]), node("Min", ["above", "one"], ["share"])]
    return [  # shares divided by their sum; equal ones where all are 0
        *nodes,
        node("ReduceMax", ["share"], ["largest"], axes=[1], keepdims=1),
        node("Greater", ["largest", "zero"], ["some"]),
        node("Where", ["some", "share", "one"], ["shares"]),
        node("ReduceSum", ["shares", "along"], ["total"], keepdims=1),
        node("Div", ["shares", "total"], ["probabilities"]),
    ]


class _Trees:
    """One tree per input and score, in the flat lists of the operator."""

    def __init__(self, plan: Plan, points: WholePoints) -> None:
        self._plan, self._points = plan, points
        self._nodes: dict[str, list[Any]] = {name: [] for name in _NODE_ATTRIBUTES}
        self._leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
        self._tree = -1

    def attributes(self) -> dict[str, Any]:
        """The attributes of the operator."""
        if self._tree < 0:  # the operator needs a tree
            self._begin()
            self._link(self._node(0, 0.0, True), self._leaf(0, 0), self._leaf(0, 0))
        nodes: dict[str, Any] = {f"nodes_{name}": values for name, values in self._nodes.items()}
        return nodes | {f"target_{name}": values for name, values in self._leaves.items()}

    def add(self, index: int, steps: Steps) -> None:
        """Add the trees of one input."""
        feature = self._plan.inputs[index].feature
        levels, missing = self._points.levels[index], self._points.missing[index]
        for target in range(self._plan.n_scores):
            rows, gap = levels[:, target].tolist(), int(missing[target])
            ends = [k for k in range(len(steps.cuts)) if rows[k] != rows[k + 1]]
            cuts, values = [steps.cuts[k] for k in ends], [rows[k] for k in (*ends, len(steps.cuts))]
            if not any((*values, gap)):
                continue
            self._begin()
            if gap in values and cuts:
                self._search(feature, cuts, values, values.index(gap), target)
            else:  # numbers on the left, missing values on the right
                root = self._node(feature, FLT_MAX, False)
                left = self._search(feature, cuts, values, 0, target)
                self._link(root, left, self._leaf(gap, target))

    def _begin(self) -> None:
        self._tree += 1
        self._next = 0

    def _search(self, feature: int, cuts: list[float], values: list[int], missing: int, target: int) -> int:
        """A balanced tree; missing values go to ``values[missing]``."""
        if not cuts:
            return self._leaf(values[0], target)
        middle = len(cuts) // 2
        node = self._node(feature, cuts[middle], missing <= middle)
        left = self._search(feature, cuts[:middle], values[: middle + 1], missing, target)
        right = self._search(feature, cuts[middle + 1 :], values[middle + 1 :], missing - middle - 1, target)
        self._link(node, left, right)
        return node

    def _node(self, feature: int, cut: float, missing_left: bool) -> int:
        return self._append("BRANCH_LEQ", feature, cut, missing_left)

    def _leaf(self, value: int, target: int) -> int:
        node = self._append("LEAF", 0, 0.0, False)
        for values, entry in zip(
            self._leaves.values(), (self._tree, node, target, float(value)), strict=True
        ):
            values.append(entry)
        return node

    def _append(self, mode: str, feature: int, cut: float, missing_left: bool) -> int:
        number = self._next
        self._next += 1
        row = (self._tree, number, feature, mode, cut, 0, 0, int(missing_left))
        for values, entry in zip(self._nodes.values(), row, strict=True):
            values.append(entry)
        assert not math.isinf(cut)
        return number

    def _link(self, node: int, left: int, right: int) -> None:
        index = len(self._nodes["nodeids"]) - self._next + node
        self._nodes["truenodeids"][index] = left
        self._nodes["falsenodeids"][index] = right

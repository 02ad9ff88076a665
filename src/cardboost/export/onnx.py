"""A model as an ONNX graph, for float32 tables. Needs the package ``onnx``.

Stumps become tree-ensemble operators. Trees add up in float32, in an order of the runtime's choice. So the
leaves hold whole points, whose sums are exact in any order, at most 2^24; decisions are those of the model
for every float32. The score of a scorecard is its total. Networks are one product with all hidden units
side by side, in double precision.

The input ``X`` has one column for every feature of the model, in its order. Outputs: ``score`` (rows,
scores); for classifiers also ``label`` and, where the loss has them, ``probabilities``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cardboost.export.c_model import float32_at_most
from cardboost.export.c_text import FLT_MAX
from cardboost.export.plan import Plan, Steps, check_text
from cardboost.export.points import find_points
from cardboost.model.nets import Net, NetEnsemble

MOST_POINTS = 2**24  # whole numbers up to this are exact in float32
_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8  # goes with operator set 17 (ONNX 1.12)
_ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu", "logistic": "Sigmoid"}
_TREE_ATTRIBUTES = (
    *(f"nodes_{name}" for name in ("treeids", "nodeids", "featureids", "modes", "values")),
    *(f"nodes_{name}" for name in ("truenodeids", "falsenodeids", "missing_value_tracks_true")),
    *(f"target_{name}" for name in ("treeids", "nodeids", "ids", "weights")),
)


class _Graph:
    """A graph that grows: nodes in the order of the computation, constants and outputs."""

    def __init__(self) -> None:
        try:
            import onnx.checker
            import onnx.helper
            import onnx.numpy_helper
        except ImportError:
            raise ImportError("The ONNX export needs the package onnx: install cardboost[onnx].") from None
        self.onnx, self.types = onnx, onnx.TensorProto
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def node(self, operator: str, inputs: str, output: str, **attributes: Any) -> None:
        """Add an operator; its inputs are separated by spaces."""
        self.nodes.append(self.onnx.helper.make_node(operator, inputs.split(), [output], **attributes))

    def constant(self, name: str, kind: Any, values: Sequence[Any], *shape: int) -> None:
        self.constants.append(self.onnx.helper.make_tensor(name, kind, shape or [len(values)], values))

    def output(self, name: str, kind: Any, *width: int) -> None:
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, [None, *width]))

    def index(self, classes: tuple[Any, ...], n_scores: int, compared: str = "score zero") -> None:
        """From the scores to the index of the class, and the labels from which it picks one.

        ``compared``: of two classes, what is greater for the second one, and than what.
        """
        first, labels = classes[0], list(classes)
        kind = self.types.INT64 if isinstance(first, int) else self.types.DOUBLE
        if isinstance(first, bool):
            kind = self.types.BOOL
        elif isinstance(first, str):
            kind = self.types.STRING
            labels = [check_text(label, "classes", "ONNX").encode("utf-8") for label in classes]
        self.constant("labels", kind, labels)
        self.output("label", kind)
        if n_scores > 1:
            self.node("ArgMax", "score", "index", axis=1, keepdims=0)
        else:
            self.node("Greater", compared, "positive")
            self.node("Cast", "positive", "column", to=self.types.INT64)
            self.node("Reshape", "column flat", "index")

    def serialised(self, n_features: int, facts: dict[str, Any], opsets: dict[str, int]) -> bytes:
        """The checked model; ``facts`` are its metadata."""
        helper = self.onnx.helper
        table = helper.make_tensor_value_info("X", self.types.FLOAT, [None, n_features])
        graph = helper.make_graph(self.nodes, "cardboost", [table], self.outputs, self.constants)
        versions = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        model = helper.make_model(
            graph, opset_imports=versions, producer_name="cardboost", ir_version=_IR_VERSION
        )
        metadata = {f"cardboost.{name}": json.dumps(fact) for name, fact in facts.items()}
        helper.set_model_props(model, metadata)
        self.onnx.checker.check_model(model)
        return bytes(model.SerializeToString())


# ------------------------------------------------------------------------------------------------ stumps


class _Branch(NamedTuple):
    """A comparison with a cut: up to it, the nodes of the left side are next."""

    cut: float
    missing_left: bool
    left_size: int


def export_onnx(ensemble: Any, *, exact: bool = True) -> bytes:
    """The serialised graph of a model of stumps.

    Labels of categorical features are given as their codes, which the metadata lists, and any other code is
    missing. For two classes and the logistic or exponential loss there are probabilities.

    Parameters
    ----------
    ensemble : Ensemble, MulticlassEnsemble or Scorecard
    exact : bool, default True
        Refuse a model for which it cannot be proven that no decision changes.

    Returns
    -------
    bytes
    """
    plan = Plan.of(ensemble)
    graph = _Graph()
    float32 = graph.types.FLOAT
    steps = [source.steps().restricted(float32_at_most, FLT_MAX) for source in plan.inputs]
    points = find_points(plan, steps, widths=(32,), most=MOST_POINTS, exact=exact)
    if not 1e-37 <= points.value <= 1e30:
        raise ValueError("ensemble: its weights are too large or too small for float32.")
    trees = [
        (source.feature, target, _tree(step.of_score(target)))
        for source, step in zip(plan.inputs, points.steps, strict=True)
        for target in range(plan.n_scores)
        if step.table[:, target].any()
    ]
    trees = trees or [(0, 0, _search([0.0], [0, 0], 0))]  # the operator needs one
    graph.node(
        "TreeEnsembleRegressor", "X", "added", domain="ai.onnx.ml", n_targets=plan.n_scores,
        aggregate_function="SUM", post_transform="NONE", **_tree_attributes(trees),
    )  # fmt: skip
    graph.constant("intercepts", float32, [float(value) for value in points.intercepts])
    if plan.in_points:  # the score is the total
        graph.node("Add", "added intercepts", "score")
    else:
        graph.node("Add", "added intercepts", "points")
        graph.node("Mul", "points unit", "above" if points.origin else "score")
        graph.constant("unit", float32, [points.value])
    if points.origin and not plan.in_points:
        graph.node("Add", "above origin", "score")
        graph.constant("origin", float32, [points.origin])
    graph.output("score", float32, plan.n_scores)
    if plan.classes is not None:
        compared = "above" if points.origin and not plan.in_points else "score"
        graph.index(plan.classes, plan.n_scores, f"{compared} limit")
        if plan.n_scores == 1:
            graph.constant("limit", float32, [float(points.threshold)])
            graph.constant("flat", graph.types.INT64, [-1])
            if plan.log_odds is not None:
                zero, factor = plan.log_odds
                graph.constant("signs", float32, [-factor, factor], 1, 2)
                graph.node("Mul", "score signs", "multiplied" if zero else "odds")
                if zero:
                    graph.constant("ends", float32, [-zero, zero], 1, 2)
                    graph.node("Add", "multiplied ends", "odds")
                graph.node("Sigmoid", "odds", "probabilities")
                graph.output("probabilities", float32, 2)
        graph.node("Gather", "labels index", "label", axis=0)
    labelled = [
        (source.feature, source.categories) for source in plan.inputs if source.categories is not None
    ]
    facts = {
        "features": {str(source.feature): source.name for source in plan.inputs},
        "categories": {str(j): {"kept": labels.kept, "rare": labels.rare} for j, labels in labelled},
    }
    return graph.serialised(plan.n_features, facts, _OPSETS)


def _tree(steps: Steps) -> list[_Branch | int]:
    """A balanced tree: behind every branch its left side, then its right side; leaves are points."""
    cuts, (*levels, missing) = steps.cuts, steps.table[:, 0].tolist()
    if missing in levels and cuts:
        return _search(cuts, levels, levels.index(missing))
    numbers = _search(cuts, levels, 0)
    return [_Branch(FLT_MAX, False, len(numbers)), *numbers, missing]


def _search(cuts: Sequence[float], levels: Sequence[int], missing: int) -> list[_Branch | int]:
    """The tree of numbers; missing values go to ``levels[missing]``."""
    if not cuts:
        return [levels[0]]
    middle = len(cuts) // 2
    left = _search(cuts[:middle], levels[: middle + 1], missing)
    right = _search(cuts[middle + 1 :], levels[middle + 1 :], missing - middle - 1)
    return [_Branch(cuts[middle], missing <= middle, len(left)), *left, *right]


def _tree_attributes(trees: Sequence[tuple[int, int, list[_Branch | int]]]) -> dict[str, list[Any]]:
    """The flat lists of the operator, for trees with their feature and score."""
    nodes: list[tuple[Any, ...]] = []
    leaves: list[tuple[Any, ...]] = []
    for index, (feature, target, tree) in enumerate(trees):
        for k, node in enumerate(tree):
            if isinstance(node, _Branch):
                sides = (k + 1, k + 1 + node.left_size, int(node.missing_left))
                nodes.append((index, k, feature, "BRANCH_LEQ", node.cut, *sides))
            else:
                nodes.append((index, k, 0, "LEAF", 0.0, 0, 0, 0))
                leaves.append((index, k, target, float(node)))
    columns = [*zip(*nodes, strict=True), *zip(*leaves, strict=True)]
    return {name: list(column) for name, column in zip(_TREE_ATTRIBUTES, columns, strict=True)}


# ------------------------------------------------------------------------------------------------ networks


def export_onnx_nets(ensemble: NetEnsemble) -> bytes:
    """The serialised graph of a sum of networks: one network with all hidden units side by side.

    score(x) = intercept + act(z hidden + bias) out, z = (x - mean) / scale; gammas and offsets are multiplied
    in. A model without any net gets one unit that adds nothing.
    """
    graph = _Graph()
    double, n, n_outputs = graph.types.DOUBLE, ensemble.n_features, ensemble.n_outputs
    nothing = Net(0.0, np.zeros((n, 1)), np.zeros(1), np.zeros((1, n_outputs)), np.zeros(n_outputs))
    nets = ensemble.nets or (nothing,)
    constants = {
        "mean": ensemble.mean,
        "scale": ensemble.scale,
        "hidden": np.concatenate([net.hidden for net in nets], axis=1),
        "bias": np.concatenate([net.bias for net in nets]),
        "out": np.concatenate([net.gamma * net.out for net in nets]),
        "intercept": ensemble.intercept + sum(net.gamma * net.offset for net in nets),
        "zero": np.zeros(1),
        "one": np.ones(1),
        "signs": np.array([[-1.0, 1.0]]),
    }
    graph.node("Cast", "X", "given", to=double)
    graph.node("Sub", "given mean", "centred")
    graph.node("Div", "centred scale", "z")
    graph.node("MatMul", "z hidden", "pulled")
    graph.node("Add", "pulled bias", "sums")
    graph.node(_ACTIVATIONS[ensemble.activation], "sums", "units")
    graph.node("MatMul", "units out", "added")
    graph.node("Add", "added intercept", "score")
    graph.output("score", double, n_outputs)
    if ensemble.classes is not None:
        graph.index(ensemble.classes, n_outputs)
        graph.constant("flat", graph.types.INT64, [-1])
        graph.constant("along", graph.types.INT64, [1])
        graph.node("Gather", "labels index", "label", axis=0)
        if ensemble.loss != "own":
            _net_probabilities(graph, ensemble.loss, n_outputs)
            graph.output("probabilities", double, len(ensemble.classes))
    used = {name for step in graph.nodes for name in step.input}
    graph.constants = [constant for constant in graph.constants if constant.name in used]
    graph.constants += [
        graph.onnx.numpy_helper.from_array(values, name) for name, values in constants.items() if name in used
    ]
    features = {str(j): ensemble.feature_name(j) for j in range(n)}
    return graph.serialised(n, {"features": features}, {"": _OPSETS[""]})


def _net_probabilities(graph: _Graph, loss: str, n_outputs: int) -> None:
    """The nodes from the scores to the probabilities."""
    if loss == "cross_entropy":
        graph.node("Softmax", "score", "probabilities", axis=1)
        return
    if n_outputs == 1:
        graph.node("Mul", "score signs", "odds")
        graph.node("Sigmoid", "odds", "probabilities")
        return
    if (
        loss == "logistic"
    ):  # not Sigmoid: shares of all classes can be tiny, and runtimes round it differently
        graph.node("Neg", "score", "against")
        graph.node("Exp", "against", "odds")
        graph.node("Add", "odds one", "whole")
        graph.node("Div", "one whole", "share")
    else:
        graph.node("Max", "score zero", "above")
        graph.node("Min", "above one", "share")
    # shares divided by their sum; equal ones where all are 0
    graph.node("ReduceMax", "share", "largest", axes=[1], keepdims=1)
    graph.node("Greater", "largest zero", "some")
    graph.node("Where", "some share one", "shares")
    graph.node("ReduceSum", "shares along", "total", keepdims=1)
    graph.node("Div", "shares total", "probabilities")

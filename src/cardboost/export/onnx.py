"""A model as an ONNX graph of tree-ensemble operators, for float32 tables.

Trees add up in float32, in an order of the runtime's choice. So the leaves hold whole points, whose sums are
exact in any order, at most 2^24; decisions are those of the model for every float32. Needs the package
``onnx``.
"""

from __future__ import annotations

import json
import math
from typing import Any

from cardboost.export.c_model import float32_at_most
from cardboost.export.c_text import FLT_MAX
from cardboost.export.integer_model import unproven
from cardboost.export.plan import Plan, Steps
from cardboost.export.points import Points, find_points

MOST_POINTS = 2**24  # whole numbers up to this are exact in float32
_OPSETS = {"": 17, "ai.onnx.ml": 3}
IR_VERSION = 8


def export_onnx(ensemble: Any, *, exact: bool = True) -> bytes:
    """The serialised graph.

    The input ``X`` has one column for every feature of the model, in its order; labels are given as their
    codes, which the metadata lists, and any other code is missing. Outputs: ``score`` (rows, scores); for
    classifiers also ``label`` and, for two classes and the logistic or exponential loss, ``probabilities``.
    ``exact``: refuse a model for which it cannot be proven that no decision changes.
    """
    plan = Plan.of(ensemble)
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError:
        raise ImportError("The ONNX export needs the package onnx: install cardboost[onnx].") from None
    steps = [own.steps().on(float32_at_most, FLT_MAX) for own in plan.inputs]
    points = find_points(plan, steps, widths=(32,), most=MOST_POINTS)
    if exact and not points.proven:
        raise ValueError(unproven(plan))
    unit = points.value
    if not 1e-37 <= unit <= 1e30:
        raise ValueError("ensemble: its weights are too large or too small for float32.")
    trees = _Trees(plan, points)
    for place, own in enumerate(steps):
        trees.add(place, own)
    nodes = [
        helper.make_node(
            "TreeEnsembleRegressor",
            ["X"],
            ["added"],
            domain="ai.onnx.ml",
            n_targets=plan.n_scores,
            aggregate_function="SUM",
            post_transform="NONE",
            **trees.attributes(),
        ),
        helper.make_node("Add", ["added", "intercepts"], ["points"]),
        helper.make_node("Mul", ["points", "unit"], ["score"]),
    ]
    start = [float(value) for value in points.intercepts]
    constants = [
        helper.make_tensor("intercepts", TensorProto.FLOAT, [plan.n_scores], start),
        helper.make_tensor("unit", TensorProto.FLOAT, [1], [unit]),
    ]
    outputs = [helper.make_tensor_value_info("score", TensorProto.FLOAT, [None, plan.n_scores])]
    if plan.classes is not None:
        kind, labels = class_tensor(plan.classes, TensorProto)
        constants.append(helper.make_tensor("labels", kind, [len(labels)], labels))
        outputs.append(helper.make_tensor_value_info("label", kind, [None]))
        if plan.n_scores == 1:
            constants += [
                helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0]),
                helper.make_tensor("flat", TensorProto.INT64, [1], [-1]),
            ]
            nodes += [
                helper.make_node("Greater", ["score", "zero"], ["positive"]),
                helper.make_node("Cast", ["positive"], ["column"], to=TensorProto.INT64),
                helper.make_node("Reshape", ["column", "flat"], ["index"]),
            ]
            if (factor := plan.probability_factor) is not None:
                constants.append(helper.make_tensor("signs", TensorProto.FLOAT, [1, 2], [-factor, factor]))
                nodes.append(helper.make_node("Mul", ["score", "signs"], ["odds"]))
                nodes.append(helper.make_node("Sigmoid", ["odds"], ["probabilities"]))
                chances = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2])
                outputs.append(chances)
        else:
            nodes.append(helper.make_node("ArgMax", ["score"], ["index"], axis=1, keepdims=0))
        nodes.append(helper.make_node("Gather", ["labels", "index"], ["label"], axis=0))
    table = helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, plan.n_features])
    graph = helper.make_graph(nodes, "cardboost", [table], outputs, constants)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()],
        producer_name="cardboost",
        ir_version=IR_VERSION,
    )
    helper.set_model_props(model, _facts(plan))
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def class_tensor(classes: tuple[Any, ...], kinds: Any) -> tuple[Any, list[Any]]:
    """The type and the values of the labels."""
    first = classes[0]
    if isinstance(first, str):
        for label in classes:
            if "\0" in label or any("\ud800" <= c <= "\udfff" for c in label):
                raise ValueError(f"classes: {label!r} holds a character that ONNX cannot.")
        return kinds.STRING, [label.encode("utf-8") for label in classes]
    if isinstance(first, bool):
        return kinds.BOOL, list(classes)
    return (kinds.INT64 if isinstance(first, int) else kinds.DOUBLE), list(classes)


def _facts(plan: Plan) -> dict[str, str]:
    """Names of the features that are used, and the codes of labels."""
    used = {str(own.feature): own.name for own in plan.inputs}
    codes = {
        str(own.feature): {"kept": own.categories.kept, "rare": own.categories.rare}
        for own in plan.inputs
        if own.categories is not None
    }
    return {"cardboost.features": json.dumps(used), "cardboost.categories": json.dumps(codes)}


class _Trees:
    """One tree per input and score, in the flat lists of the operator."""

    def __init__(self, plan: Plan, points: Points) -> None:
        self._plan, self._points = plan, points
        self._nodes: dict[str, list[Any]] = {
            name: []
            for name in (
                "treeids",
                "nodeids",
                "featureids",
                "modes",
                "values",
                "truenodeids",
                "falsenodeids",
                "missing_value_tracks_true",
            )
        }
        self._leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
        self._tree = -1

    def attributes(self) -> dict[str, Any]:
        if self._tree < 0:  # the operator wants a tree
            self._begin()
            self._link(self._node(0, 0.0, True), self._leaf(0, 0), self._leaf(0, 0))
        nodes: dict[str, Any] = {f"nodes_{name}": values for name, values in self._nodes.items()}
        return nodes | {f"target_{name}": values for name, values in self._leaves.items()}

    def add(self, place: int, steps: Steps) -> None:
        own, levels, missing = (
            self._plan.inputs[place],
            self._points.levels[place],
            self._points.missing[place],
        )
        for target in range(self._plan.n_scores):
            rows, gap = levels[:, target].tolist(), int(missing[target])
            ends = [k for k in range(len(steps.cuts)) if rows[k] != rows[k + 1]]
            cuts, values = [steps.cuts[k] for k in ends], [rows[k] for k in (*ends, len(steps.cuts))]
            if not any((*values, gap)):
                continue
            self._begin()
            if gap in values and cuts:
                self._search(own.feature, cuts, values, values.index(gap), target)
            else:  # numbers on the left, missing values on the right
                root = self._node(own.feature, FLT_MAX, False)
                left = (
                    self._search(own.feature, cuts, values, 0, target)
                    if cuts
                    else self._leaf(values[0], target)
                )
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
        for name, entry in (("treeids", self._tree), ("nodeids", node), ("ids", target)):
            self._leaves[name].append(entry)
        self._leaves["weights"].append(float(value))
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
        at = len(self._nodes["nodeids"]) - self._next + node
        self._nodes["truenodeids"][at] = left
        self._nodes["falsenodeids"][at] = right

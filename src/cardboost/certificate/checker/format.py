"""The form of a certificate file: keys, types, finite numbers, indices in range. Part of the checker.

Imports NumPy and the standard library only. Model files have a schema of their own (``model/schema.py``);
this one is apart on purpose: a checker that shared code with what writes certificates would share its
mistakes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

VERSION = 6
CONSTRAINED = 7  # of files with constraints, which are otherwise of version 6
MOST_TERMS = 10_000  # with limits or costs of features, for which all ways to share the terms are compared
OPTIMAL = 1e-4  # gap, as a share of the size of the objective, up to which a model is called optimal
SOFT = "soft margin"  # the loss of weights whose sum is limited
_PER_FEATURE = {"problem.feature_costs": "costs", "categories": "entries"}
_PER_FEATURE |= {"dictionary.cuts": "lists", "dictionary.monotonic": "entries"}
_PER_FEATURE |= {"problem.missing": "entries"}
_NOT_OF_A_MATRIX = ("problem.intercept_box", "problem.max_features", "problem.feature_costs", "categories")
_NOT_OF_A_SOFT_MARGIN = ("problem.max_terms", "problem.max_features", "problem.feature_costs", "points")
UNCURVED = ("squared", "squared_hinge", "smooth_hinge")  # losses for which bounds set no curvature aside

# fmt: off
PRICES = {"l1": "amount", "l2": "amount", "l0": "amount", "max_weight": ("maybe", "amount")}
_PAIRS = ("list", ("pair", "count", "number"))  # of a column and its weight
_SOLUTION = {"intercept": "number", "weights": _PAIRS, "objective": "number"}
_CENTRE = {"intercept": "number", "centre": "leaf weights"}


def form_of(version: int, kind: Any) -> dict[str, Any]:
    """The form of a file: what each key holds, and since (or until) which version there is such a key."""
    def since(first: int, fields: dict[str, Any]) -> dict[str, Any]:
        return fields if version >= first else {}

    def until(last: int, fields: dict[str, Any]) -> dict[str, Any]:
        return fields if version <= last else {}

    stumps = {
        "cut": ("maybe", "number"), "missing_left": "flag", "polarity": (1, -1),
        "category": ("maybe", "category"), **since(2, {"first": ("maybe", "count")}),
    }
    columns = {"feature": "count", "charged": "flag", **PRICES, **(stumps if kind != "matrix" else {})}
    leaf = {
        "intercept": "number", "weights": "leaf weights", "theta": "number", "bound": "number",
        "forced_in": ("list", "count"), "forced_out": ("list", "count"),
        **since(3, {"curve": ("maybe", _CENTRE | {"aside": "leaf weights"})}),
    }
    return {
        "format": ("cardboost-certificate",), "version": tuple(range(1, CONSTRAINED + 1)),
        "kind": ("stumps", "matrix"),
        "problem": {
            "loss": ("logistic", "exponential", "squared"), "max_terms": ("maybe", "count"),
            "max_features": ("maybe", "count"), "feature_costs": ("maybe", ("list", "amount")),
            "intercept_box": ("maybe", "amount"), "class_weight": ("pair", "positive", "positive"),
            "target": ("maybe", {"mean": "number", "scale": "positive"}),
            **since(5, {"loss": ("logistic", "exponential", "squared", SOFT, "squared_hinge", "smooth_hinge"),
                        "radius": ("maybe", "positive")}),
            **since(CONSTRAINED, {
                "excluded": ("list", "count"), "missing": ("maybe", ("list", (0, 1, -1))),
                "at_most_one_of": ("list", ("list", "count")), "must_include": ("list", "count"),
            }),
        },
        "columns": {key: ("list", spec) for key, spec in columns.items()},
        "categories": ("maybe", ("list", ("maybe", {
            "kept": ("list", "label"), "rare": "flag",
            **since(2, {"order": ("maybe", ("list", "count"))}),
        }))),
        "unseen": ("maybe", PRICES),
        "dictionary": ("maybe", {"cuts": ("list", ("list", "number")),
                                 "monotonic": ("maybe", ("list", (0, 1, -1)))}),
        "solution": _SOLUTION, "null": {"intercept": "number", "objective": "number"},
        **since(4, {"points": ("maybe", {"unit": "positive", "most": "count", "continuous": _SOLUTION})}),
        "bounds": ("list", {
            "scope": ("pool", "dictionary"), "columns": "count", "lower_bound": "number",
            "gap": "number", "relative_gap": "number", "guarantee": "number", "leaves": ("list", leaf),
            **since(3, {"caps": ("maybe", _CENTRE)}),
        }),
        "status": ("optimal", "optimal among candidates", "feasible"), **since(6, {"candidates": "flag"}),
        **until(5, {"status": ("optimal", "feasible"), "tolerance": "amount"}),
        "data": {"rows": "count", "features": "count", "digest": "text"}, "digest": "text",
    }
# fmt: on


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < 2**63


OTHER = {"other": True}  # the category of all labels that are too rare for one of their own


def _is_label(value: object) -> bool:
    return isinstance(value, str | bool) or _is_number(value) or (type(value) is int and abs(value) < 2**1000)


def _is_other(value: object) -> bool:
    return isinstance(value, dict) and value == OTHER and value["other"] is True


_ATOMS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "number": ("a finite number", _is_number),
    "positive": ("a finite number > 0", lambda v: _is_number(v) and v > 0),
    "amount": ("a finite number >= 0", lambda v: _is_number(v) and v >= 0),
    "count": ("an integer >= 0", lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**53),
    "flag": ("true or false", lambda v: isinstance(v, bool)),
    "text": ("a string", lambda v: isinstance(v, str)),
    "label": ("a string, true, false or a finite number", _is_label),
    "category": ('a label or {"other": true}', lambda v: _is_label(v) or _is_other(v)),
}


def leaf_weights(weights: Any, covered: int, n: int) -> npt.NDArray[np.float64]:
    """Weights of a leaf, one for each of ``n`` columns: pairs of a column and its weight, or a string that
    holds a little-endian float32 in base64 for each of the first ``covered``; ValueError if it does not."""
    dense = np.zeros(n)
    if not isinstance(weights, str):
        for j, weight in weights:
            dense[j] = weight
        return dense
    try:
        dense[:covered] = np.frombuffer(base64.b64decode(weights, validate=True), "<f4").reshape(covered)
    except ValueError as error:
        raise ValueError(f"expected {covered} float32 in base64") from error
    if not np.isfinite(dense).all():
        raise ValueError("a weight is not finite")
    return dense


def _shape_faults(value: Any, spec: Any, path: str) -> Iterator[str]:
    """Compare a JSON value with its specification: an atom, a dict, a list, a pair, maybe null, choices."""
    if spec == "leaf weights":
        if not isinstance(value, str):
            yield from _shape_faults(value, _PAIRS, path)
    elif isinstance(spec, str):
        expected, holds = _ATOMS[spec]
        if not holds(value):
            yield f"{path}: expected {expected}, found {value!r:.60}"
    elif isinstance(spec, dict):
        if not isinstance(value, dict):
            yield f"{path or 'certificate'}: expected an object, found {value!r:.60}"
            return
        prefix = f"{path}." if path else ""
        for key in spec.keys() - value.keys():
            yield f"{prefix}{key}: missing"
        for key in value.keys() - spec.keys():
            yield f"{prefix}{key}: not part of the format"
        for key in spec.keys() & value.keys():
            yield from _shape_faults(value[key], spec[key], prefix + key)
    elif spec[0] == "maybe":
        if value is not None:
            yield from _shape_faults(value, spec[1], path)
    elif spec[0] in ("list", "pair"):
        if not isinstance(value, list) or (spec[0] == "pair" and len(value) != len(spec) - 1):
            yield f"{path}: expected a {spec[0]}, found {value!r:.60}"
            return
        for i, item in enumerate(value):
            yield from _shape_faults(item, spec[1] if spec[0] == "list" else spec[i + 1], f"{path}[{i}]")
    elif not any(type(value) is type(choice) and value == choice for choice in spec):
        yield f"{path}: expected one of {', '.join(map(str, spec))}, found {value!r:.60}"


def _order_faults(indices: list[int], size: int, path: str) -> Iterator[str]:
    if any(b <= a for a, b in pairwise(indices)):
        yield f"{path}: column indices must be strictly increasing"
    if any(j >= size for j in indices):
        yield f"{path}: column index {max(indices)} is outside the pool of {size} columns"


def limits_features(problem: dict[str, Any]) -> bool:
    """Whether it matters which features columns look at."""
    chosen = problem.get("at_most_one_of") or problem.get("must_include")
    return bool(chosen) or problem["max_features"] is not None or problem["feature_costs"] is not None


def _entry(certificate: dict[str, Any], path: str) -> Any:
    """What stands under a path of keys; None where one of them is missing or null."""
    value: Any = certificate
    for key in path.split("."):
        value = (value or {}).get(key)
    return value


def _null_faults(certificate: dict[str, Any], paths: tuple[str, ...], of: str) -> Iterator[str]:
    for path in paths:
        if _entry(certificate, path) is not None:
            yield f"{path}: must be null for a {of}"


def _pool_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """The pool fits the number of features, and the bounds fit the dictionary."""
    columns, features = certificate["columns"], certificate["data"]["features"]
    size = len(columns["feature"])
    for key, values in columns.items():
        if len(values) != size:
            yield f"columns.{key}: {len(values)} entries, but columns.feature has {size}"
    for j, feature in enumerate(columns["feature"]):
        if feature >= features:
            yield f"columns.feature[{j}]: {feature} is outside the {features} features of the data"
    for path, noun in _PER_FEATURE.items():
        values = _entry(certificate, path)
        if values is not None and len(values) != features:
            yield f"{path}: {len(values)} {noun} for {features} features"
    scopes = [bound["scope"] for bound in certificate["bounds"]]
    if not scopes or len(set(scopes)) < len(scopes):
        yield "bounds: expected one bound, or one per scope"
    for key in ("unseen", "dictionary"):
        if (certificate[key] is not None) != ("dictionary" in scopes):
            yield f"{key}: must be present exactly when a bound has the scope dictionary"
    if certificate["kind"] == "matrix" and "dictionary" in scopes:
        yield "bounds: a matrix has no dictionary"
    if certificate["version"] >= VERSION and scopes == ["pool", "dictionary"]:
        yield "bounds: the widest scope, dictionary, must come first"


def _problem_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """Loss, class weights and limits fit each other and the kind of the columns."""
    problem, matrix = certificate["problem"], certificate["kind"] == "matrix"
    squared, soft = (problem["loss"] == loss for loss in ("squared", SOFT))
    if matrix:
        yield from _null_faults(certificate, _NOT_OF_A_MATRIX, "matrix")
    if (matrix or squared) and problem["class_weight"] != [1.0, 1.0]:
        yield "problem.class_weight: must be [1, 1] where there are no classes"
    if squared != (problem["target"] is not None):
        yield "problem.target: must be present exactly when the loss is squared"
    if limits_features(problem) and (problem["max_terms"] or 0) > MOST_TERMS:
        yield f"problem.max_terms: at most {MOST_TERMS} where features are limited or cost something"
    if certificate.get("tolerance", OPTIMAL) != OPTIMAL:
        yield f"tolerance: must be {OPTIMAL}, found {certificate['tolerance']!r}"
    if not matrix and certificate.get("candidates") is False:
        yield "candidates: must be true for stumps"
    if soft != (problem.get("radius") is not None):
        yield f"problem.radius: must be present exactly when the loss is {SOFT}"
    elif soft:
        yield from _soft_faults(certificate)


def _soft_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """The sum of the weights is the only limit, and there is no regularisation."""
    problem = certificate["problem"]
    yield from _null_faults(certificate, _NOT_OF_A_SOFT_MARGIN, SOFT)
    if problem["intercept_box"] not in (None, problem["radius"]):
        yield "problem.intercept_box: must be null or the radius"
    unseen = {key: [price] for key, price in (certificate["unseen"] or {}).items()}
    for path, prices in (("columns", certificate["columns"]), ("unseen", unseen)):
        for key, free in (("l0", 0), ("l1", 0), ("l2", 0), ("max_weight", None)):
            if any(price != free for price in prices.get(key, [])):
                yield f"{path}.{key}: must be {'null' if free is None else free} for a {SOFT}"
    for b, bound in enumerate(certificate["bounds"]):
        if bound["caps"] is not None:
            yield f"bounds[{b}].caps: must be null for a {SOFT}"
        for i, leaf in enumerate(bound["leaves"]):
            if leaf["theta"] != 1 or leaf["forced_in"] or leaf["forced_out"] or leaf["curve"] is not None:
                yield f"bounds[{b}].leaves[{i}]: must be about all columns with theta 1 for a {SOFT}"


def _category_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """Labels of a feature are of one kind and ascending, and an order has each of them once; columns on
    categories name a label, or how many of the order."""
    columns = certificate["columns"]
    categories = certificate["categories"] or [None] * certificate["data"]["features"]
    for f, labels in enumerate(categories):
        if labels is None:
            continue
        kept, order = labels["kept"], labels.get("order")
        if len({isinstance(label, str) for label in kept}) > 1:
            yield f"categories[{f}].kept: labels must be all text or all numbers"
        elif any(b <= a for a, b in pairwise(kept)):
            yield f"categories[{f}].kept: labels must be strictly increasing"
        if order is not None and sorted(order) != list(range(len(kept) + labels["rare"])):
            yield f"categories[{f}].order: must hold the number of every category once"
    sets = columns.get("first", [None] * len(columns["feature"]))
    kept_labels = [set() if labels is None else set(labels["kept"]) for labels in categories]
    questions = zip(columns["feature"], columns["category"], sets, strict=True)
    for j, (feature, category, first) in enumerate(questions):
        labels, path = categories[feature], f"columns.category[{j}]"
        if (labels is None) != (category is None and first is None):
            yield f"{path}: a category or a set must be given exactly where the feature is categorical"
        elif labels is None:
            continue
        elif columns["cut"][j] is not None:
            yield f"columns.cut[{j}]: must be null for a category"
        elif first is not None:
            order = labels.get("order")
            if category is not None:
                yield f"{path}: must be null for a set"
            elif order is None or not 2 <= first < len(order):
                yield f"columns.first[{j}]: expected two or more of the categories in an order, not all"
        elif _is_other(category):
            if not labels["rare"]:
                yield f"{path}: feature {feature} has no rare labels"
        elif category not in kept_labels[feature]:
            yield f"{path}: {category!r} is not among categories[{feature}].kept"


def _dictionary_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """The cuts are sorted and hold those of the pool; no column goes against its feature's direction."""
    columns, lists = certificate["columns"], certificate["dictionary"]["cuts"]
    monotonic = certificate["dictionary"]["monotonic"]
    for f, cuts in enumerate(lists):
        if any(b <= a for a, b in pairwise(cuts)):
            yield f"dictionary.cuts[{f}]: cuts must be strictly increasing"
        if certificate["categories"] is not None and certificate["categories"][f] is not None:
            if cuts:
                yield f"dictionary.cuts[{f}]: must be empty for a categorical feature"
            if monotonic is not None and monotonic[f]:
                yield f"dictionary.monotonic[{f}]: must be 0 for a categorical feature"
    allowed = [{None, *cuts} for cuts in lists]
    for j, (feature, cut) in enumerate(zip(columns["feature"], columns["cut"], strict=True)):
        if cut not in allowed[feature]:
            yield f"columns.cut[{j}]: {cut!r} is not among dictionary.cuts[{feature}]"
        # a stump with 1 on the left falls, one with -1 rises; one without a cut has no direction
        if monotonic is not None and cut is not None and monotonic[feature] == columns["polarity"][j]:
            yield f"columns.polarity[{j}]: goes against dictionary.monotonic[{feature}]"


def _constraint_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """Features are named in order; no column looks at an excluded one, or has missing values elsewhere."""
    problem, columns = certificate["problem"], certificate["columns"]
    excluded, missing = problem["excluded"], problem["missing"]
    if certificate["kind"] == "matrix" or problem["loss"] == SOFT:
        yield f"version: {CONSTRAINED} is for stumps with regularisation"
        return
    features = certificate["data"]["features"]
    lists = {"excluded": excluded, "must_include": problem["must_include"]}
    lists |= {f"at_most_one_of[{i}]": group for i, group in enumerate(problem["at_most_one_of"])}
    for key, named in lists.items():
        if any(b <= a for a, b in pairwise(named)):
            yield f"problem.{key}: features must be strictly increasing"
        if any(f >= features for f in named):
            yield f"problem.{key}: {max(named)} is outside the {features} features of the data"
    for i, group in enumerate(problem["at_most_one_of"]):
        if not group:
            yield f"problem.at_most_one_of[{i}]: a group needs features"
    if problem["max_terms"] is not None and problem["max_terms"] < len(problem["must_include"]):
        yield "problem.must_include: more features than terms"
    sides = (columns[key] for key in ("feature", "polarity", "missing_left"))
    for j, (feature, polarity, missing_left) in enumerate(zip(*sides, strict=True)):
        if feature in excluded:
            yield f"columns.feature[{j}]: {feature} is among problem.excluded"
        value = polarity if missing_left else -polarity  # of missing values
        if missing is not None and missing[feature] not in (0, value):
            yield f"columns.missing_left[{j}]: goes against problem.missing[{feature}]"


def _price_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """With a dictionary every stump has the same regularisation and the same box, in the pool or not."""
    columns, unseen = certificate["columns"], certificate["unseen"]
    for key in PRICES:
        for j, value in enumerate(columns[key]):
            if value != unseen[key]:
                yield f"columns.{key}[{j}]: {value!r}, but unseen.{key} is {unseen[key]!r}"


def _charge_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """Every stump of a dictionary is charged, and every column where features are limited."""
    for j, charged in enumerate(certificate["columns"]["charged"]):
        if not charged:
            yield f"columns.charged[{j}]: a dictionary, or limits on features, charge every column"


def _weight_faults(weights: Any, size: int, covered: int, path: str) -> Iterator[str]:
    if isinstance(weights, list):
        yield from _order_faults([j for j, _ in weights], size, path)
    else:
        try:
            leaf_weights(weights, covered, covered)
        except ValueError as error:
            yield f"{path}: {error}"


def _centre_faults(centre: dict[str, Any] | None, covered: int, boxed: bool, path: str) -> Iterator[str]:
    for key, value in (centre or {}).items():
        if key != "intercept":
            yield from _weight_faults(value, covered, covered, f"{path}.{key}")
        elif not boxed and value != 0:
            yield f"{path}.intercept: must be 0 without an intercept"


def _leaf_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """Solutions and leaves name columns of the pool; a leaf is a cube with usable row weights."""
    size, boxed = len(certificate["columns"]["feature"]), certificate["problem"]["intercept_box"] is not None
    last = -1  # column that a solution uses
    for path in ("solution.weights", "points.continuous.weights"):
        columns = [j for j, _ in _entry(certificate, path) or []]
        yield from _order_faults(columns, size, path)
        last = max(last, *columns, -1)
    for b, bound in enumerate(certificate["bounds"]):
        covered = bound["columns"]
        if covered > size or (bound["scope"] == "dictionary" and covered != size):
            yield f"bounds[{b}].columns: {covered} of the pool's {size} columns"
        if last >= covered:
            yield f"bounds[{b}].columns: the solution uses column {last}, which is not covered"
        if not bound["leaves"]:
            yield f"bounds[{b}].leaves: empty"
        yield from _centre_faults(bound.get("caps"), covered, boxed, f"bounds[{b}].caps")
        for i, leaf in enumerate(bound["leaves"]):
            path = f"bounds[{b}].leaves[{i}]"
            within = size if leaf.get("curve") is None else covered
            yield from _weight_faults(leaf["weights"], within, covered, f"{path}.weights")
            yield from _centre_faults(leaf.get("curve"), covered, boxed, f"{path}.curve")
            if leaf.get("curve") is not None and certificate["problem"]["loss"] in UNCURVED:
                yield f"{path}.curve: must be null for the loss {certificate['problem']['loss']}"
            for key in ("forced_in", "forced_out"):
                yield from _order_faults(leaf[key], covered, f"{path}.{key}")
            if set(leaf["forced_in"]) & set(leaf["forced_out"]):
                yield f"{path}.forced_out: a column is forced in and out"
            if not 0 <= leaf["theta"] <= 1:
                yield f"{path}.theta: {leaf['theta']!r} is outside [0, 1]"
            if not boxed and leaf["intercept"] != 0:
                yield f"{path}.intercept: must be 0 without an intercept"


def structure_faults(certificate: Any) -> list[str]:
    """Faults of form, each starting with a JSON path; nothing else can be checked while there are any."""
    head: dict[str, Any] = certificate if isinstance(certificate, dict) else {}
    version = head["version"] if head.get("version") in range(1, CONSTRAINED + 1) else VERSION
    form = form_of(version, head.get("kind"))
    if faults := sorted(_shape_faults(certificate, form, "")):
        return faults
    unusable = [*_pool_faults(certificate), *_problem_faults(certificate)]
    if not unusable and certificate["kind"] == "stumps":
        unusable += _category_faults(certificate)
    if not unusable and certificate["version"] == CONSTRAINED:
        unusable += _constraint_faults(certificate)
    if not unusable and certificate["dictionary"] is not None:
        unusable += [*_dictionary_faults(certificate), *_price_faults(certificate)]
    if not unusable and (certificate["dictionary"] is not None or limits_features(certificate["problem"])):
        unusable += _charge_faults(certificate)
    return unusable + list(_leaf_faults(certificate))


def content_digest(certificate: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON of everything except the digest itself."""
    content = {key: value for key, value in certificate.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()

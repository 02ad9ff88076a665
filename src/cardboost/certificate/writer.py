"""Writes the content of a certificate file (docs/certificate.md).

Weights are vectors over a pool whose first ``n_free`` columns, two or none, are the intercept's. In the file
the intercept is a number, and columns are counted without these.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.certificate import checker
from cardboost.certificate.checker.bounds import LARGEST_COST, SOFT_ROUNDING, TOLERANCE
from cardboost.certificate.checker.format import leaf_weights
from cardboost.problem.bound import Curve, Leaf, guarantee, proof_status
from cardboost.problem.prices import Prices

Array = NDArray[np.float64]

FORMAT = "cardboost-certificate"
VERSION = 6
CONSTRAINED = 7  # of files with an analyst's constraints; others stay as they were
MAX_BYTES = 5_000_000  # of a file; a larger one does without the dictionary
_LEAST_SIZE = 1e-290  # of the objective, as in the checker
_CUTS_TO_WEIGH = 100_000  # at most some 25 characters each: fewer cannot pass the limit of a file


@dataclass(frozen=True, eq=False)
class CertifiedProblem:
    """What a certificate is about.

    Parameters
    ----------
    kind : {"stumps", "matrix"}
        What the columns are.
    loss : str
        Name of the loss.
    max_terms : int or None
        Limit on charged columns.
    columns : mapping
        Properties of the columns, a list each, as in the file. ``columns["category"]`` holds None, a label,
        or anything else for the rare labels; ``columns["first"]`` the number of labels of a set, or None.
    prices : Prices
        Regularisation and boxes of the columns.
    rows, features, digest
        The data: rows with a weight, features, digest.
    n_free : int
        Columns of the pool that are the intercept's.
    intercept_box : float or None
        Largest size of the intercept.
    class_weight : pair of float
        Factors of the weights of negative and positive rows.
    unseen : Prices or None
        Regularisation and box of every stump of the dictionary, one entry.
    cuts, monotonic : sequence
        Cuts and directions (1 rising, -1 falling, 0 any) of every feature of the dictionary.
    max_features, feature_costs
        Limits on features.
    target : pair of float or None
        Mean and scale of the target of a regression.
    categories : sequence
        Labels of every feature, with those that are a category each in ``kept`` and whether there are others
        in ``rare``; None for a numeric one; empty where all are numeric.
    orders : sequence
        For every feature the codes of its labels in the order that makes its sets, or None.
    radius : float or None
        What the weights of a soft margin, that of the intercept included, may add up to.
    candidates : bool
        Whether the columns are only some of all that there could be; False for a matrix that holds all.
    largest_entry : float
        Of a column, for a soft margin.
    excluded, missing, at_most_one_of, must_include
        What an analyst demands: features that no stump looks at, the side of missing values of every feature
        (-1 that of the lower score, 1 that of the higher, 0 either), groups of features of which models use
        one at most, and features that they use; empty without such rules.
    """

    kind: str
    loss: str
    max_terms: int | None
    columns: Mapping[str, list[Any]]
    prices: Prices
    rows: int
    features: int
    digest: str
    n_free: int = 0
    intercept_box: float | None = None
    class_weight: tuple[float, float] = (1.0, 1.0)
    unseen: Prices | None = None
    cuts: Sequence[Array] = ()
    max_features: int | None = None
    feature_costs: Array | None = None
    target: tuple[float, float] | None = None
    categories: Sequence[Any] = ()
    monotonic: Sequence[int] = ()
    orders: Sequence[NDArray[Any] | None] = ()
    radius: float | None = None
    candidates: bool = True
    largest_entry: float = 1.0
    excluded: Sequence[int] = ()
    missing: Sequence[int] = ()
    at_most_one_of: Sequence[Sequence[int]] = ()
    must_include: Sequence[int] = ()

    def constraints(self) -> dict[str, Any]:
        """What an analyst demands, as in the file; empty where that is nothing."""
        rules = {
            "excluded": list(self.excluded),
            "missing": [int(side) for side in self.missing] if any(self.missing) else None,
            "at_most_one_of": [list(group) for group in self.at_most_one_of],
            "must_include": list(self.must_include),
        }
        return rules if any(rules.values()) else {}

    def refuse_lost_losses(self, null: float) -> None:
        """Refuse required features beside whose costs the loss would be lost, and where there is no loss."""
        if self.must_include and null == 0.0:
            raise ValueError("must_include: all targets are equal, and no feature has anything to explain.")
        costs = 0.0 if self.feature_costs is None else math.fsum(self.feature_costs[list(self.must_include)])
        if costs > LARGEST_COST * self.size(null):
            raise ValueError(
                f"feature_costs: the features of must_include cost {costs:g}, more than 10,000 times the "
                f"objective of the empty model ({null:g}): the loss would be lost beside it. They are used "
                "in any case, so give them lower costs, or none."
            )

    def size(self, null: float) -> float:
        """Size of the objective, which tolerances are relative to: that of the empty model.

        For a soft margin it is at least 1, or the largest margin where that is less.
        """
        return max(abs(null), min(1.0, self._reach), _LEAST_SIZE)

    def tolerance(self, null: float) -> float:
        """The checker's: by how much numbers may differ."""
        return TOLERANCE * self.size(null) + SOFT_ROUNDING * self._reach**2

    @property
    def _reach(self) -> float:
        """The largest margin that a soft margin can have, 0 for other losses."""
        return 0.0 if self.radius is None else self.radius * self.largest_entry


@dataclass(frozen=True, eq=False)
class ProvenScope:
    """Leaves that together cover the first ``columns`` columns of the pool, or the dictionary."""

    scope: str
    columns: int
    leaves: Sequence[Leaf]
    centre: Array | None = None  # of the caps of margins that curves rely on


def write_certificate(
    problem: CertifiedProblem,
    weights: Array,
    objective: float,
    null: tuple[float, float],
    bounds: Sequence[ProvenScope],
) -> dict[str, Any]:
    """The content of the file of a model and its proof.

    A file that would be too large does without the dictionary and the bound over it.

    Parameters
    ----------
    problem : CertifiedProblem
        What was minimised, and on which data.
    weights : ndarray
        Weights of the model over the pool.
    objective : float
        Objective of the model.
    null : pair of float
        Intercept and objective of the empty model.
    bounds : sequence of ProvenScope
        The leaves of every scope.

    Returns
    -------
    dict
        JSON content with status and digest.
    """
    problem.refuse_lost_losses(null[1])
    whole = any(proven.scope == "dictionary" for proven in bounds)
    size, tolerance = problem.size(null[1]), problem.tolerance(null[1])
    n_free, constraints = problem.n_free, problem.constraints()
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": CONSTRAINED if constraints else VERSION,
        "kind": problem.kind,
        "problem": {
            "loss": problem.loss,
            "max_terms": problem.max_terms,
            "max_features": problem.max_features,
            "feature_costs": None if problem.feature_costs is None else problem.feature_costs.tolist(),
            "intercept_box": problem.intercept_box,
            "class_weight": list(problem.class_weight),
            "target": problem.target and dict(zip(("mean", "scale"), problem.target, strict=True)),
            "radius": problem.radius,
            **constraints,
        },
        "columns": {
            **problem.columns,
            **_category_lists(problem),
            "charged": problem.prices.charged.tolist(),
            **_price_lists(problem.prices),
        },
        "categories": _categories(problem, whole),
        "unseen": None,
        "dictionary": None,
        "solution": _solution(weights, n_free, objective),
        "points": None,
        "null": {"intercept": null[0], "objective": null[1]},
        "bounds": [_bound(proven, n_free, objective, null[1], tolerance) for proven in bounds],
        "candidates": problem.candidates,
        "data": {"rows": problem.rows, "features": problem.features, "digest": problem.digest},
    }
    if whole:
        monotonic = [int(direction) for direction in problem.monotonic] if any(problem.monotonic) else None
        content["dictionary"] = {"cuts": [cuts.tolist() for cuts in problem.cuts], "monotonic": monotonic}
        if problem.unseen is not None:
            content["unseen"] = {key: values[0] for key, values in _price_lists(problem.unseen).items()}
        if _too_large(content):
            pool = [proven for proven in bounds if proven.scope != "dictionary"]
            return write_certificate(problem, weights, objective, null, pool)
    return _signed(content, size)


def with_points(
    content: Mapping[str, Any], weights: Array, n_free: int, objective: float, unit: float, most: int
) -> dict[str, Any]:
    """The certificate of a card in whole points, from that of the continuous card.

    No model of the same size is below the bound of the continuous ones, with whole points or without.
    """
    null = content["null"]["objective"]
    size = max(abs(null), _LEAST_SIZE)
    points = {"unit": unit, "most": most, "continuous": content["solution"]}
    bounds = [
        bound | _derived(objective, bound["lower_bound"], null, TOLERANCE * size)
        for bound in content["bounds"]
    ]
    solution = _solution(weights, n_free, objective)
    return _signed({**content, "solution": solution, "points": points, "bounds": bounds}, size)


def with_proof(
    content: Mapping[str, Any],
    weights: Array,
    n_free: int,
    objective: float,
    proofs: Mapping[str, ProvenScope],
) -> dict[str, Any]:
    """The certificate with another model of the same problem, and with other proofs of some scopes."""
    null = content["null"]["objective"]
    size = max(abs(null), _LEAST_SIZE)
    tolerance, bounds = TOLERANCE * size, []
    for bound in content["bounds"]:
        if bound["scope"] in proofs:
            bounds.append(_bound(proofs[bound["scope"]], n_free, objective, null, tolerance))
        else:
            lower = min(leaf["bound"] for leaf in bound["leaves"])
            leaves = [{"curve": None, **leaf} for leaf in bound["leaves"]]
            bounds.append(
                {"caps": None, **bound, "leaves": leaves} | _derived(objective, lower, null, tolerance)
            )
    latest = {key: value for key, value in content.items() if key != "tolerance"}  # of older versions
    latest |= {
        "version": max(VERSION, latest["version"]),
        "candidates": latest.get("candidates", latest["kind"] == "stumps"),
    }
    latest |= {"points": None, "solution": _solution(weights, n_free, objective), "bounds": bounds}
    latest["problem"] = {"radius": None} | latest["problem"]
    return _signed(latest, size)


def read_leaves(leaves: Sequence[Mapping[str, Any]], n_free: int, columns: int) -> list[Leaf]:
    """The leaves of a scope of so many columns, over a pool with the intercept's columns."""

    def dense(intercept: float, weights: Any) -> Array:
        if not isinstance(weights, str):  # row weights may come from columns outside of the scope
            weights = [(j, weight) for j, weight in weights if j < columns]
        ends = [max(intercept, 0.0), max(-intercept, 0.0)][:n_free]
        return np.concatenate([ends, leaf_weights(weights, columns, columns)])

    def read(leaf: Mapping[str, Any]) -> Leaf:
        curve = leaf.get("curve")
        if curve is not None:
            curve = Curve(dense(curve["intercept"], curve["centre"]), dense(0.0, curve["aside"]))
        ins, outs = (tuple(j + n_free for j in leaf[key]) for key in ("forced_in", "forced_out"))
        weights = dense(leaf["intercept"], leaf["weights"])
        return Leaf(weights, leaf["theta"], leaf["bound"], ins, outs, curve)

    return [read(leaf) for leaf in leaves]


def intercept_of(weights: Array, n_free: int) -> float:
    """The intercept that the first ``n_free`` columns of a pool make."""
    return float(weights[0] - weights[1]) if n_free else 0.0


def _signed(content: dict[str, Any], size: float) -> dict[str, Any]:
    """The content with the widest scope first, the status that the gaps give, and the digest."""
    content["bounds"] = sorted(content["bounds"], key=lambda bound: bound["scope"] != "dictionary")
    gaps = {bound["scope"]: bound["gap"] for bound in content["bounds"]}
    content["status"] = proof_status(gaps, content["candidates"], size)
    content.pop("digest", None)
    return {**content, "digest": checker.content_digest(content)}


def _pairs(weights: Array, n_free: int) -> list[list[Any]]:
    """The nonzero weights as [column, weight], without the intercept."""
    return [[j, weight] for j, weight in enumerate(weights[n_free:].tolist()) if weight]


def _solution(weights: Array, n_free: int, objective: float) -> dict[str, Any]:
    intercept = intercept_of(weights, n_free)
    return {"intercept": intercept, "weights": _pairs(weights, n_free), "objective": objective}


def _category_lists(problem: CertifiedProblem) -> dict[str, list[Any]]:
    """Category and set of every stump, null for numeric ones; by default all are numeric."""
    if problem.kind != "stumps":
        return {}
    none = [None] * len(problem.columns["feature"])
    plain = (str, bool, int, float, type(None))
    labels = problem.columns.get("category", none)
    categories = [label if isinstance(label, plain) else {"other": True} for label in labels]
    return {"category": categories, "first": problem.columns.get("first", none)}


def _categories(problem: CertifiedProblem, whole: bool) -> list[Any] | None:
    """The labels of every feature and the order that makes its sets; without the dictionary only of those
    that columns look at."""
    if all(labels is None for labels in problem.categories):
        return None
    used = set(problem.columns["feature"])
    orders = problem.orders or [None] * len(problem.categories)

    def entry(f: int, labels: Any, order: NDArray[Any] | None) -> dict[str, Any]:
        if not whole and f not in used:
            return {"kept": [], "rare": False, "order": None}
        codes = None if order is None else order.tolist()
        return {"kept": list(labels.kept), "rare": bool(labels.rare), "order": codes}

    features = zip(problem.categories, orders, strict=True)
    return [None if labels is None else entry(f, labels, order) for f, (labels, order) in enumerate(features)]


def _price_lists(prices: Prices) -> dict[str, list[Any]]:
    lists = {key: getattr(prices, key).tolist() for key in ("l1", "l2", "l0", "max_weight")}
    return lists | {"max_weight": [None if math.isinf(v) else v for v in lists["max_weight"]]}


def _compact(weights: Array, n_free: int, columns: int) -> Any:
    """Many weights that single precision holds as a string, others as pairs."""
    pairs, of_columns = _pairs(weights, n_free), weights[n_free:columns]
    single = of_columns.astype("<f4")
    many = len(pairs) > max(8, len(of_columns) // 4) and not weights[columns:].any()
    if many and np.array_equal(single, of_columns):
        return base64.b64encode(single.tobytes()).decode()
    return pairs


def _bound(
    proven: ProvenScope, n_free: int, objective: float, null: float, tolerance: float
) -> dict[str, Any]:
    """The leaves of a scope and the numbers that follow from them."""
    columns = proven.columns

    def point(weights: Array) -> dict[str, Any]:
        return {"intercept": intercept_of(weights, n_free), "centre": _compact(weights, n_free, columns)}

    def entry(leaf: Leaf) -> dict[str, Any]:
        curve = leaf.curve
        return {
            "forced_in": [j - n_free for j in leaf.forced_in],
            "forced_out": [j - n_free for j in leaf.forced_out],
            "theta": leaf.theta,
            "intercept": intercept_of(leaf.weights, n_free),
            "weights": _compact(leaf.weights, n_free, columns),
            "curve": curve and point(curve.centre) | {"aside": _compact(curve.aside, n_free, columns)},
            "bound": leaf.bound,
        }

    return {
        "scope": proven.scope,
        "columns": columns - n_free,
        "leaves": [entry(leaf) for leaf in proven.leaves],
        "caps": None if proven.centre is None else point(proven.centre),
        **_derived(objective, min(leaf.bound for leaf in proven.leaves), null, tolerance),
    }


def _derived(objective: float, lower: float, null: float, tolerance: float) -> dict[str, float]:
    """What a lower bound says of an objective."""
    lower = min(lower, objective)
    gap = objective - lower
    return {
        "lower_bound": lower,
        "gap": gap,
        "relative_gap": gap / max(abs(objective), 1e-300),
        "guarantee": guarantee(null, objective, lower, tolerance),
    }


def _too_large(content: Mapping[str, Any]) -> bool:
    """Whether the file would exceed its limit; small ones are not written out to find out."""
    categories = [labels for labels in content["categories"] or [] if labels]
    n_entries = sum(map(len, content["dictionary"]["cuts"]))
    n_entries += sum(len(labels["order"] or []) for labels in categories)
    n_entries += sum(len(str(label)) + 1 for labels in categories for label in labels["kept"])
    return n_entries > _CUTS_TO_WEIGH and len(json.dumps(content)) > MAX_BYTES

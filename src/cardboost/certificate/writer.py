"""Lays out the file of a certificate (docs/certificate.md) from the parts of a problem.

Weights are vectors over a pool whose first ``n_free`` columns, two or none, are the intercept's. In the file
the intercept is a number, and columns are counted without its two.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cardboost.certificate import checker
from cardboost.problem.bound import Curve, Leaf, guarantee, proof_status
from cardboost.problem.prices import Prices

Array = NDArray[np.float64]

FORMAT = "cardboost-certificate"
VERSION = 6
MAX_BYTES = 5_000_000
_LEAST_SIZE = 1e-290
_CUTS_TO_WEIGH = 100_000  # at most some 25 characters each: fewer cannot pass the limit of a file


class Labels(Protocol):
    """The labels of a categorical feature: those with a category of their own, and the rare others."""

    @property
    def kept(self) -> Sequence[Any]: ...

    @property
    def rare(self) -> Any: ...


@dataclass(frozen=True, eq=False)
class CertifiedProblem:
    """What a certificate is about. ``columns`` says what the columns are, ``prices`` are theirs.

    ``unseen`` (one entry), ``cuts`` and ``monotonic``: prices, cuts and directions (1 rising, -1 falling, 0
    any) of the whole dictionary, where there is one. ``categories``: the labels of every feature, None for a
    numeric one; none at all where all are numeric. ``columns["category"]`` then holds for each column None, a
    label, or anything else for the rare labels. ``orders``: for every feature the codes of its labels in the
    order that makes its sets, or None; ``columns["first"]`` holds for a column on a set how many of these are
    in it, else None. ``target``: mean and scale of a regression's target. ``radius``: what
    the weights of a soft margin, that of the intercept included, may add up to. ``candidates``: the columns
    are some of many that there could be, found by a search; False: a matrix that holds all there are.
    ``largest_entry``: of a column, for a soft margin.
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
    categories: Sequence[Labels | None] = ()
    monotonic: Sequence[int] = ()
    orders: Sequence[NDArray[Any] | None] = ()
    radius: float | None = None
    candidates: bool = True
    largest_entry: float = 1.0

    def size(self, null: float) -> float:
        """What tolerances are relative to: the objective of the empty model; for a soft margin at least 1, or
        the largest margin where that is less."""
        margin = 0.0 if self.radius is None else self.radius * self.largest_entry
        return max(abs(null), min(1.0, margin), _LEAST_SIZE)


@dataclass(frozen=True, eq=False)
class ProvenScope:
    """Leaves that together cover the first ``columns`` columns of the pool, or the dictionary."""

    scope: str
    columns: int
    leaves: Sequence[Leaf]
    centre: Array | None = None  # from which the caps follow that curves rely on


def write_certificate(
    problem: CertifiedProblem,
    weights: Array,
    objective: float,
    null: tuple[float, float],
    bounds: Sequence[ProvenScope],
) -> dict[str, Any]:
    """The content of the file. ``null``: intercept and objective of the empty model.

    A file that would be too large does without the dictionary and the bound over it.
    """
    whole = any(own.scope == "dictionary" for own in bounds)
    size = problem.size(null[1])
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": problem.kind,
        "problem": {
            "loss": problem.loss,
            "max_terms": problem.max_terms,
            "max_features": problem.max_features,
            "feature_costs": None if problem.feature_costs is None else problem.feature_costs.tolist(),
            "intercept_box": problem.intercept_box,
            "class_weight": list(problem.class_weight),
            "target": None if problem.target is None else _scaling(problem.target),
            "radius": problem.radius,
        },
        "columns": {
            **problem.columns,
            **_category_column(problem),
            "charged": problem.prices.charged.tolist(),
            **_price_lists(problem.prices),
        },
        "categories": _categories(problem, whole),
        "unseen": _unseen_prices(problem.unseen) if whole else None,
        "dictionary": _dictionary(problem) if whole else None,
        "solution": {**_model(weights, problem.n_free), "objective": objective},
        "points": None,
        "null": {"intercept": null[0], "objective": null[1]},
        "bounds": [_bound(own, problem.n_free, objective, null[1], size) for own in _widest_first(bounds)],
        "candidates": problem.candidates,
        "data": {"rows": problem.rows, "features": problem.features, "digest": problem.digest},
    }
    if whole and _too_large(content):
        pool = [own for own in content["bounds"] if own["scope"] != "dictionary"]
        content |= {"unseen": None, "dictionary": None, "bounds": pool}
        content["categories"] = _categories(problem, whole=False)
    return _signed(content, size)


def _widest_first(bounds: Sequence[ProvenScope]) -> list[ProvenScope]:
    return sorted(bounds, key=lambda bound: bound.scope != "dictionary")


def with_points(
    content: Mapping[str, Any], weights: Array, n_free: int, objective: float, unit: float, most: int
) -> dict[str, Any]:
    """The certificate of a card in whole points, from that of the continuous card.

    No model of the same size is below the bound of the continuous ones, with whole points or without.
    """
    null = content["null"]["objective"]
    size = max(abs(null), _LEAST_SIZE)
    bounds = [bound | _follows(objective, bound["lower_bound"], null, size) for bound in content["bounds"]]
    solution = {**_model(weights, n_free), "objective": objective}
    points = {"unit": unit, "most": most, "continuous": content["solution"]}
    whole = {**content, "solution": solution, "points": points, "bounds": bounds}
    del whole["digest"]
    return _signed(whole, size)


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
    bounds = []
    for bound in content["bounds"]:
        if bound["scope"] in proofs:
            bounds.append(_bound(proofs[bound["scope"]], n_free, objective, null, size))
        else:
            lower = min(leaf["bound"] for leaf in bound["leaves"])
            bounds.append(bound | _follows(objective, lower, null, size))
    latest = {key: value for key, value in content.items() if key not in ("digest", "tolerance")}
    latest |= {"version": VERSION, "candidates": latest.get("candidates", latest["kind"] == "stumps")}
    latest |= {"points": None, "solution": {**_model(weights, n_free), "objective": objective}}
    latest["problem"] = {"radius": None} | latest["problem"]
    latest["bounds"] = [
        {"caps": None, **bound, "leaves": [{"curve": None, **leaf} for leaf in bound["leaves"]]}
        for bound in sorted(bounds, key=lambda bound: bound["scope"] != "dictionary")
    ]
    return _signed(latest, size)


def read_leaves(leaves: Sequence[Mapping[str, Any]], n_free: int, columns: int) -> list[Leaf]:
    """The leaves of a scope of so many columns, over a pool with the intercept's columns."""

    def dense(intercept: float, weights: Any) -> Array:
        full = np.zeros(n_free + columns)
        full[:n_free] = [max(intercept, 0.0), max(-intercept, 0.0)][:n_free]
        if isinstance(weights, str):
            full[n_free:] = np.frombuffer(base64.b64decode(weights), dtype="<f4")
        else:
            for j, weight in weights:
                if j < columns:  # row weights may come from columns outside of the scope
                    full[n_free + j] = weight
        return full

    out = []
    for leaf in leaves:
        curve = leaf.get("curve")
        curved = None
        if curve is not None:
            curved = Curve(dense(curve["intercept"], curve["centre"]), dense(0.0, curve["aside"]))
        forced = [tuple(j + n_free for j in leaf[key]) for key in ("forced_in", "forced_out")]
        weights = dense(leaf["intercept"], leaf["weights"])
        out.append(Leaf(weights, leaf["theta"], leaf["bound"], forced[0], forced[1], curved))
    return out


def _signed(content: dict[str, Any], size: float) -> dict[str, Any]:
    """With the status that the gaps give, and the digest."""
    gaps = {bound["scope"]: bound["gap"] for bound in content["bounds"]}
    content["status"] = proof_status(gaps, content["candidates"], size)
    return {**content, "digest": checker.content_digest(content)}


def intercept_of(weights: Array, n_free: int) -> float:
    """What the two leading columns add up to."""
    return float(weights[0] - weights[1]) if n_free else 0.0


def _model(weights: Array, n_free: int) -> dict[str, Any]:
    """The intercept and the nonzero weights as [column, weight]."""
    used = [[int(j) - n_free, float(weights[j])] for j in np.flatnonzero(weights) if j >= n_free]
    return {"intercept": intercept_of(weights, n_free), "weights": used}


def _scaling(target: tuple[float, float]) -> dict[str, float]:
    return {"mean": target[0], "scale": target[1]}


def _category_column(problem: CertifiedProblem) -> dict[str, list[Any]]:
    """Stumps have a category or a set each, null for numeric ones; by default all are numeric."""
    if problem.kind != "stumps":
        return {}
    none = [None] * len(problem.columns["feature"])
    given = problem.columns.get("category", none)
    plain = (str, bool, int, float, type(None))
    return {
        "category": [own if isinstance(own, plain) else {"other": True} for own in given],
        "first": problem.columns.get("first", none),
    }


def _categories(problem: CertifiedProblem, whole: bool) -> list[Any] | None:
    """The labels of every feature, and their order where there are sets; without the dictionary only of those
    that columns look at."""
    if not any(own is not None for own in problem.categories):
        return None
    used = set(problem.columns["feature"])
    orders = problem.orders or [None] * len(problem.categories)
    found: list[Any] = []
    for f, (own, order) in enumerate(zip(problem.categories, orders, strict=True)):
        if own is None:
            found.append(None)
        elif whole or f in used:
            places = None if order is None else order.tolist()
            found.append({"kept": list(own.kept), "rare": bool(own.rare), "order": places})
        else:
            found.append({"kept": [], "rare": False, "order": None})
    return found


def _dictionary(problem: CertifiedProblem) -> dict[str, Any]:
    return {
        "cuts": [own.tolist() for own in problem.cuts],
        "monotonic": [int(own) for own in problem.monotonic] if any(problem.monotonic) else None,
    }


def _price_lists(prices: Prices) -> dict[str, list[Any]]:
    return {
        "l1": prices.l1.tolist(),
        "l2": prices.l2.tolist(),
        "l0": prices.l0.tolist(),
        "max_weight": [None if math.isinf(v) else v for v in prices.max_weight.tolist()],
    }


def _unseen_prices(prices: Prices | None) -> dict[str, Any] | None:
    return None if prices is None else {key: values[0] for key, values in _price_lists(prices).items()}


def _short(weights: Array, n_free: int, columns: int) -> Any:
    """Many weights that single precision holds as a string, others as pairs."""
    pairs, own = _model(weights, n_free)["weights"], weights[n_free:columns]
    short = own.astype("<f4")
    many = len(pairs) > max(8, len(own) // 4) and not weights[columns:].any()
    return base64.b64encode(short.tobytes()).decode() if many and np.array_equal(short, own) else pairs


def _centre(centre: Array, n_free: int, columns: int) -> dict[str, Any]:
    return {"intercept": intercept_of(centre, n_free), "centre": _short(centre, n_free, columns)}


def _curve(leaf: Leaf, n_free: int, columns: int) -> dict[str, Any] | None:
    if leaf.curve is None:
        return None
    aside = _short(leaf.curve.aside, n_free, columns)
    return _centre(leaf.curve.centre, n_free, columns) | {"aside": aside}


def _leaf(leaf: Leaf, n_free: int, columns: int) -> dict[str, Any]:
    return {
        "forced_in": [j - n_free for j in leaf.forced_in],
        "forced_out": [j - n_free for j in leaf.forced_out],
        "theta": leaf.theta,
        "intercept": intercept_of(leaf.weights, n_free),
        "weights": _short(leaf.weights, n_free, columns),
        "curve": _curve(leaf, n_free, columns),
        "bound": leaf.bound,
    }


def _bound(proven: ProvenScope, n_free: int, objective: float, null: float, size: float) -> dict[str, Any]:
    """The leaves of a scope and what follows from them."""
    leaves = [_leaf(leaf, n_free, proven.columns) for leaf in proven.leaves]
    lower = min(objective, *(leaf["bound"] for leaf in leaves))
    return {
        "scope": proven.scope,
        "columns": proven.columns - n_free,
        "leaves": leaves,
        "caps": None if proven.centre is None else _centre(proven.centre, n_free, proven.columns),
        **_follows(objective, lower, null, size),
    }


def _follows(objective: float, lower: float, null: float, size: float) -> dict[str, float]:
    """What a lower bound says of an objective."""
    lower = min(lower, objective)
    gap = objective - lower
    return {
        "lower_bound": lower,
        "gap": gap,
        "relative_gap": gap / max(abs(objective), 1e-300),
        "guarantee": guarantee(null, objective, lower, size),
    }


def _too_large(content: Mapping[str, Any]) -> bool:
    categories = [own for own in content["categories"] or [] if own]
    n_cuts = sum(len(own) for own in content["dictionary"]["cuts"])
    n_cuts += sum(len(own["order"] or []) for own in categories)
    labels = sum(len(str(label)) + 1 for own in categories for label in own["kept"])
    return n_cuts + labels > _CUTS_TO_WEIGH and len(json.dumps(content)) > MAX_BYTES

"""What a certificate proves, in words: the problem, its limits, the scopes and the tolerances.

Everything that a claim depends on is said here, so that nobody has to read the file to know what was proven.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

LOSSES = {
    "logistic": "mean logistic loss",
    "exponential": "mean exponential loss",
    "squared": "half the mean squared error",
    "squared_hinge": "mean squared hinge loss",
    "smooth_hinge": "mean hinge loss, its corner rounded off over 1/4",
    "soft margin": "log of the mean of exp(-margin)",
}
CHECKED = "Numbers are checked to 1e-9 of the empty model's objective."
SOFT_CHECKED = "Numbers are checked to 1e-9, and 5e-15 of the square of the largest possible margin."
SOFT_OPTIMAL = '"Optimal" means that no other model of the scope is better by more than 1e-4.'
OPTIMAL = '"Optimal" means that no other model of the scope is better by more than 1e-4 of that objective.'
_NAME_WIDTH = 12


def short(value: float) -> str:
    """A number with six significant digits."""
    return f"{value:.6g}"


def percent(share: float) -> str:
    """A guarantee, rounded down."""
    return f"{math.floor(share * 1e4 + 1e-6) / 1e2:.2f} %"


def tolerance_line(content: Mapping[str, Any], status: str) -> str:
    """How exactly numbers are checked, and what "optimal" means where it is said."""
    soft = content["problem"].get("radius") is not None
    checked, optimal = (SOFT_CHECKED, SOFT_OPTIMAL) if soft else (CHECKED, OPTIMAL)
    return checked if status == "feasible" else f"{checked} {optimal}"


def problem_lines(content: Mapping[str, Any]) -> list[str]:
    """What is minimised, over which models, on which data."""
    problem, data = content["problem"], content["data"]
    rows = f"{data['rows']:,} rows, {data['features']:,} "
    rows += "columns" if content["kind"] == "matrix" else "features"
    lines = [("minimised", _objective(content)), ("models", ", ".join(_limits(content)))]
    cuts = [len(values) for values in (content["dictionary"] or {}).get("cuts", [])]
    if max(cuts, default=0) > 0:
        lines.append(("stumps", f"on the cuts of the table, at most {max(cuts):,} a feature"))
    lines.append(("data", f"{rows}, digest {data['digest'][:12]}"))
    if problem["target"] is not None:
        scaling = problem["target"]
        lines.append(
            ("target", f"in standard deviations of {short(scaling['scale'])} from {short(scaling['mean'])}")
        )
    if problem["class_weight"] != [1.0, 1.0]:
        negative, positive = problem["class_weight"]
        lines.append(("classes", f"rows weigh {short(negative)} (negative) and {short(positive)} (positive)"))
    return [f"{name:<{_NAME_WIDTH}}{text}" for name, text in lines]


def _objective(content: Mapping[str, Any]) -> str:
    problem = content["problem"]
    parts = [LOSSES[problem["loss"]]]
    for key, text in (("l1", "sum of weights"), ("l2", "half the sum of squared weights"), ("l0", "terms")):
        price = _range(_of_terms(content, key))
        if price != "0":
            parts.append(f"{price} x {text}")
    if problem["feature_costs"] is not None:
        costs = problem["feature_costs"]
        parts.append(f"{_range(costs)} for each feature in use")
    return " + ".join(parts)


def _of_terms(content: Mapping[str, Any], key: str) -> list[Any]:
    """A price or box of every term: of the columns that are listed, and of those that are not."""
    columns = content["columns"]
    listed = [value for value, flag in zip(columns[key], columns["charged"], strict=True) if flag]
    return listed if content["unseen"] is None else [*listed, content["unseen"][key]]


def _limits(content: Mapping[str, Any]) -> list[str]:
    """What models may do."""
    problem, columns = content["problem"], content["columns"]
    terms, features, radius = problem["max_terms"], problem["max_features"], problem.get("radius")
    limits = ["any number of terms" if terms is None else f"at most {counted(terms, 'term')}"]
    if features is not None:
        limits.append(f"at most {counted(features, 'feature')}")
    if radius is not None:
        limits.append(f"weights, with the intercept's size, of sum {short(radius)} at most")
    else:
        boxes = _of_terms(content, "max_weight")
        limits.append(f"weights from 0 to {_range(boxes)}")
        if any(box == 0 for box in boxes):
            limits.append(f"{counted(boxes.count(0), 'column')} may not be used")
        box = problem["intercept_box"]
        if box is not None:
            limits.append(f"intercept from -{short(box)} to {short(box)}")
        free = [box for box, flag in zip(columns["max_weight"], columns["charged"], strict=True) if not flag]
        if free:
            text = (
                f"{counted(len(free), 'column')} that {'does' if len(free) == 1 else 'do'} not count as terms"
            )
            limits.append(f"{text}, with weights to {_range(free)}{_uncounted_prices(content)}")
    limits.append("columns that are equal on all rows count as one")
    monotonic = (content["dictionary"] or {}).get("monotonic")
    if monotonic is not None:
        limits.append(f"{counted(sum(map(bool, monotonic)), 'feature')} only rising or only falling")
    points = content.get("points")
    if points is not None:
        limits.append(f"whole points of {short(points['unit'])}, {points['most']} a term at most")
    return limits


def _uncounted_prices(content: Mapping[str, Any]) -> str:
    """The prices of columns that do not count as terms."""
    columns, parts = content["columns"], []
    for key, text in (("l1", "of weight"), ("l2", "of half the squared weight"), ("l0", "of use")):
        price = _range([p for p, flag in zip(columns[key], columns["charged"], strict=True) if not flag])
        if price != "0":
            parts.append(f"{price} {text}")
    return f" and prices of {', '.join(parts)}" if parts else ""


def _range(values: Sequence[Any]) -> str:
    """One number where all agree, else from the least to the largest."""
    numbers = [math.inf if value is None else value for value in values]
    if not numbers:
        return "0"
    least, most = (("any size" if math.isinf(v) else short(v)) for v in (min(numbers), max(numbers)))
    return least if least == most else f"{least} to {most} (by column)"


def counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def covers(content: Mapping[str, Any], scope: str) -> str:
    """Which columns a scope has."""
    if scope == "dictionary":
        return f"all {stump_count(content):,} stumps"
    n = next(bound["columns"] for bound in content["bounds"] if bound["scope"] == "pool")
    return counted(n, "candidate term") if are_candidates(content) else f"all {counted(n, 'column')}"


def are_candidates(content: Mapping[str, Any]) -> bool:
    """Whether the columns are some of many that there could be; files before version 6 do not say."""
    return bool(content.get("candidates", content["kind"] == "stumps"))


def stump_count(content: Mapping[str, Any]) -> int:
    """How many stumps the dictionary of the file has."""
    cuts, monotonic = (content["dictionary"][key] for key in ("cuts", "monotonic"))
    n = sum((2 if not monotonic or not monotonic[f] else 1) * len(values) for f, values in enumerate(cuts))
    for labels in content["categories"] or []:
        if labels is not None:
            categories = len(labels["kept"]) + labels["rare"]
            # sets of one label, and of all but one, are the stumps on that label
            n += 2 * categories + (2 * (categories - 3) if labels.get("order") else 0)
    return n


def compared_with(content: Mapping[str, Any]) -> str:
    """What a guarantee compares the model with."""
    problem = content["problem"]
    terms, features, radius = problem["max_terms"], problem["max_features"], problem.get("radius")
    text = "any model" if terms is None else f"any {terms}-term card"
    text = text if features is None else f"{text} on {counted(features, 'feature')}"
    return text if radius is None else f"{text} with weights that add up to {radius:g}"

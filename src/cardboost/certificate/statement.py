"""The statement of a certificate in words: the problem, its limits, the scopes and the tolerances.

It names everything that a claim depends on, so that nobody has to read the file to know what was proven.
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
_LISTED_FEATURES = 12  # of many features only the number is said


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
    rows += " (counted from 0)" if _constraints(problem) else ""
    facts = {"minimised": _objective(content), "models": ", ".join(_limits(content))}
    most_cuts = max(map(len, (content["dictionary"] or {}).get("cuts", [])), default=0)
    if most_cuts > 0:
        facts["stumps"] = f"on the cuts that the file lists, at most {most_cuts:,} a feature"
    facts["data"] = f"{rows}, digest {data['digest'][:12]}"
    if problem["target"] is not None:
        scale, mean = (short(problem["target"][key]) for key in ("scale", "mean"))
        facts["target"] = f"in standard deviations of {scale} from {mean}"
    if problem["class_weight"] != [1.0, 1.0]:
        negative, positive = map(short, problem["class_weight"])
        facts["classes"] = f"rows weigh {negative} (negative) and {positive} (positive)"
    return [f"{name:<{_NAME_WIDTH}}{text}" for name, text in facts.items()]


def _objective(content: Mapping[str, Any]) -> str:
    """Loss and regularisation."""
    problem = content["problem"]
    parts = [LOSSES[problem["loss"]]]
    for key, text in (("l1", "sum of weights"), ("l2", "half the sum of squared weights"), ("l0", "terms")):
        factor = _range(_of_terms(content, key))
        if factor != "0":
            parts.append(f"{factor} x {text}")
    if problem["feature_costs"] is not None:
        parts.append(f"{_range(problem['feature_costs'])} for each feature in use")
    return " + ".join(parts)


def _of_columns(content: Mapping[str, Any], key: str, charged: bool) -> list[Any]:
    """A property of the columns that are listed, those that count as terms or the others."""
    columns = content["columns"]
    return [value for value, flag in zip(columns[key], columns["charged"], strict=True) if flag == charged]


def _of_terms(content: Mapping[str, Any], key: str) -> list[Any]:
    """Regularisation or box of every term: of the columns that are listed, and of those that are not."""
    listed = _of_columns(content, key, charged=True)
    return listed if content["unseen"] is None else [*listed, content["unseen"][key]]


def _limits(content: Mapping[str, Any]) -> list[str]:
    """What models may do."""
    problem, radius = content["problem"], content["problem"].get("radius")
    terms, features = problem["max_terms"], problem["max_features"]
    limits = ["any number of terms" if terms is None else f"at most {counted(terms, 'term')}"]
    if features is not None:
        limits.append(f"at most {counted(features, 'feature')}")
    if radius is not None:
        limits.append(f"weights, with the intercept's size, of sum {short(radius)} at most")
    else:
        limits += _boxes(content)
    limits.append("columns that are equal on all rows count as one")
    monotonic = (content["dictionary"] or {}).get("monotonic")
    if monotonic is not None and any(monotonic):
        limits.append(f"{counted(sum(map(bool, monotonic)), 'feature')} only rising or only falling")
    limits += _constraints(problem)
    points = content.get("points")
    if points is not None:
        limits.append(f"whole points of {short(points['unit'])}, {points['most']} a term at most")
    return limits


def _constraints(problem: Mapping[str, Any]) -> list[str]:
    """What an analyst demands of features; files before version 7 have nothing of it."""
    excluded, missing = problem.get("excluded"), problem.get("missing") or []
    limits = [f"{_features(excluded)} not used"] if excluded else []
    for group in problem.get("at_most_one_of", []):
        limits.append(f"at most one of {_features(group)}")
    if problem.get("must_include"):
        limits.append(f"{_features(problem['must_include'])} always used")
    for side, where in ((-1, "lower"), (1, "higher")):
        features = [f for f, own in enumerate(missing) if own == side]
        if features:
            limits.append(f"missing values of {_features(features)} on the side of the {where} score")
    return limits


def _features(features: Sequence[int]) -> str:
    """Features by their positions, from 0, as the file has them; of many only the number."""
    if len(features) > _LISTED_FEATURES:
        return counted(len(features), "feature")
    if len(features) == 1:
        return f"feature {features[0]}"
    return f"features {', '.join(map(str, features[:-1]))} and {features[-1]}"


def _boxes(content: Mapping[str, Any]) -> list[str]:
    """How large weights may be, and what columns cost that do not count as terms."""
    boxes, intercept_box = _of_terms(content, "max_weight"), content["problem"]["intercept_box"]
    limits = [f"weights from 0 to {_range(boxes)}"]
    if 0 in boxes:
        limits.append(f"{counted(boxes.count(0), 'column')} may not be used")
    if intercept_box is not None:
        limits.append(f"intercept from -{short(intercept_box)} to {short(intercept_box)}")
    free = _of_columns(content, "max_weight", charged=False)
    if free:
        text = f"{counted(len(free), 'column')} that {'does' if len(free) == 1 else 'do'} not count as terms"
        extras = {key: _range(_of_columns(content, key, charged=False)) for key in ("l1", "l2", "l0")}
        parts = [f"{key} of {value}" for key, value in extras.items() if value != "0"]
        limits.append(" and ".join([f"{text}, with weights to {_range(free)}", *parts]))
    return limits


def _range(values: Sequence[Any]) -> str:
    """One number where all agree, else from the least to the largest."""
    numbers = [math.inf if value is None else value for value in values]
    if not numbers:
        return "0"
    least, most = (("any size" if math.isinf(v) else short(v)) for v in (min(numbers), max(numbers)))
    return least if least == most else f"{least} to {most} (by column)"


def counted(n: int, noun: str) -> str:
    """A number with its noun, singular or plural."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def covers(content: Mapping[str, Any], scope: str) -> str:
    """Which columns a scope has."""
    if scope == "dictionary":
        return f"all {stump_count(content):,} stumps"
    n = pool_size(content)
    return counted(n, "candidate term") if are_candidates(content) else f"all {counted(n, 'column')}"


def pool_size(content: Mapping[str, Any]) -> int:
    """How many columns the scope "pool" has."""
    return next(bound["columns"] for bound in content["bounds"] if bound["scope"] == "pool")


def are_candidates(content: Mapping[str, Any]) -> bool:
    """Whether the columns are only some of all that there could be; files before version 6 do not say."""
    return bool(content.get("candidates", content["kind"] == "stumps"))


def stump_count(content: Mapping[str, Any]) -> int:
    """How many stumps the dictionary of the file has."""
    cuts, monotonic = (content["dictionary"][key] for key in ("cuts", "monotonic"))
    excluded = content["problem"].get("excluded", ())
    n = sum(
        (2 if not monotonic or not monotonic[f] else 1) * len(values)
        for f, values in enumerate(cuts)
        if f not in excluded
    )
    for f, labels in enumerate(content["categories"] or []):
        if labels is not None and f not in excluded:
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

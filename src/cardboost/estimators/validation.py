"""What estimators check before anything is computed: each message names the argument and what is accepted."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

Array = NDArray[np.float64]


def number(name: str, value: Any, least: float, strict: bool = False) -> float:
    wrong = isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value)
    if wrong or value < least or (strict and value <= least):
        raise ValueError(
            f"{name} must be a number {'above' if strict else 'of at least'} {least:g}; got {value!r}."
        )
    return float(value)


def whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)


def two_classes(y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The two classes in order, and which rows are of the second."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    y = column_or_1d(np.asarray(y), warn=True)
    if len(y) != n_rows:
        raise ValueError(f"X and y have inconsistent numbers of samples: {n_rows} and {len(y)}.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity: every row needs a label.")
    if y.dtype.kind == "O" and any(label is None or label != label for label in y):
        raise ValueError("Input y contains NaN or None: every row needs a label.")
    classes = _distinct_labels(y)
    check_classification_targets(classes)
    if len(classes) == 1:
        raise ValueError(
            f"Classifier can't train when only one class is present: every label is {classes[0]!r}."
        )
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"{len(classes)} classes. More than two classes are not available yet."
        )
    return classes, y == classes[1]


def _distinct_labels(y: NDArray[Any]) -> NDArray[Any]:
    """The labels in order; two numbers are found without sorting the rows."""
    if y.dtype.kind in "iufb" and len(y):
        low, high = y.min(), y.max()
        if ((y == low) | (y == high)).all():
            return np.unique(np.array([low, high], dtype=y.dtype))
    return np.unique(y)


def sample_weights(sample_weight: Any, n_rows: int) -> Array | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},); got {weight.shape}.")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity.")
    if (weight < 0).any():
        raise ValueError("sample_weight must not be negative.")
    if not (weight > 0).any():
        raise ValueError("sample_weight must not be zero for every row.")
    return weight


def class_weights(
    class_weight: Any, classes: NDArray[Any], positive: NDArray[np.bool_], raw: Array | None
) -> tuple[float, float]:
    """Factors of the negative and the positive class."""
    if class_weight is None:
        return (1.0, 1.0)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight must be a dict, 'balanced' or None; got {class_weight!r}.")
        weight = np.ones(len(positive)) if raw is None else raw
        plus = math.fsum(weight[positive])
        minus = math.fsum(weight[~positive])
        return (0.5 * (plus + minus) / minus, 0.5 * (plus + minus) / plus)
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight must be a dict, 'balanced' or None; got {class_weight!r}.")
    unknown = [label for label in class_weight if label not in classes]
    if unknown:
        raise ValueError(
            f"class_weight names {unknown[0]!r}, which is not among the classes {list(classes)}."
        )
    values = [
        number(f"class_weight[{label!r}]", class_weight.get(label, 1.0), 0.0, strict=True)
        for label in classes
    ]
    return (values[0], values[1])

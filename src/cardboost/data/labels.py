"""Labels, targets and row weights, checked: each message names the argument and what is accepted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from cardboost.data.arguments import number
from cardboost.data.categories import shown
from cardboost.data.exact import refuse_mask, require_exact

Array = NDArray[np.float64]


def class_codes(y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes in order, and for every row the position of its class."""
    _require_targets(y)
    labels, y = y, np.asarray(y)
    if y.dtype.kind == "U" and isinstance(labels, list | tuple):
        y = np.array(labels, dtype=object)  # NumPy would write NaN and numbers out as text
    if y.ndim != 1 or y.dtype.kind not in "biufU":
        y = column_or_1d(y, warn=True)
    _require_length(y, n_rows)
    if y.dtype.kind == "f":
        require_exact(labels, "y")
        if not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity: every row needs a label.")
    if y.dtype.kind == "O" and any(label is None or label != label for label in y):
        raise ValueError("Input y contains NaN or None: every row needs a label.")
    classes = _distinct_labels(y)
    if classes.dtype.kind in "fO":  # others are classes whatever they hold
        check_classification_targets(classes)
    if len(classes) == 1:
        raise ValueError(
            f"Classifier can't train when only one class is present: every label is {shown(classes[0])}."
        )
    if len(classes) == 2:
        return classes, (y == classes[1]).astype(np.intp)
    return classes, np.searchsorted(classes, y)


def _distinct_labels(y: NDArray[Any]) -> NDArray[Any]:
    """The labels in order; two numbers are found without sorting the rows."""
    if y.dtype.kind in "iufb" and len(y):
        low, high = y.min(), y.max()
        if ((y == low) | (y == high)).all():
            return np.unique(np.array([low, high], dtype=y.dtype))
    try:
        return np.unique(y)
    except TypeError as error:
        raise TypeError(f"y holds labels of different types, which have no order: {error}.") from error


def sample_weights(sample_weight: Any, n_rows: int) -> Array | None:
    if sample_weight is None:
        return None
    refuse_mask(sample_weight, "sample_weight")
    require_exact(sample_weight, "sample_weight")
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold one number per row: {error}.") from error
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


def class_factors(
    class_weight: Any, classes: NDArray[Any], codes: NDArray[np.intp], raw: Array | None
) -> Array:
    """The factor of every class."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        weight = np.ones(len(codes)) if raw is None else np.ldexp(raw, -int(np.frexp(raw.max())[1]))
        held = [math.fsum(weight[codes == k]) for k in range(len(classes))]
        if min(held) == 0.0:
            raise ValueError("class_weight='balanced': a class has next to no sample_weight.")
        return np.array([math.fsum(held) / len(classes) / weight_of_class for weight_of_class in held])
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight must be a dict, 'balanced' or None; got {class_weight!r}.")
    unknown = [label for label in class_weight if label not in classes]
    if unknown:
        raise ValueError(
            f"class_weight names {unknown[0]!r}, which is not among the classes {list(classes)}."
        )
    factors = [(f"class_weight[{shown(label)}]", class_weight.get(label, 1.0)) for label in classes]
    return np.array([number(name, factor, 0.0, strict=True) for name, factor in factors])


def real_targets(y: Any, n_rows: int) -> Array:
    """One finite number per row."""
    _require_targets(y)
    require_exact(y, "y")
    try:
        y = column_or_1d(np.asarray(y), warn=True).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold one number per row: {error}") from error
    _require_length(y, n_rows)
    if not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity: every row needs a finite number.")
    return y


def _require_targets(y: Any) -> None:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    refuse_mask(y, "y")


def _require_length(y: NDArray[Any], n_rows: int) -> None:
    if len(y) != n_rows:
        raise ValueError(f"X and y have inconsistent numbers of samples: {n_rows} and {len(y)}.")


def split_rows(
    fraction: Any, codes: NDArray[np.intp] | None, n_rows: int, random_state: Any
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to train on and rows to hold out, each in ascending order; classes keep their shares."""
    from sklearn.model_selection import train_test_split  # many modules, for those who hold rows out

    fraction = number("validation_fraction", fraction, 0.0, strict=True)
    if fraction >= 1.0:
        raise ValueError(f"validation_fraction must be below 1; got {fraction!r}.")
    state, rows = check_random_state(random_state), np.arange(n_rows)
    try:
        kept, aside = train_test_split(rows, test_size=fraction, stratify=codes, random_state=state)
    except ValueError as error:
        lacking = "there would be no row" if codes is None else "some class would have no row"
        raise ValueError(
            f"validation_fraction={fraction}: the rows cannot be split: of {n_rows:,} rows, {lacking} to "
            "train on or none to hold out."
        ) from error
    return np.sort(kept), np.sort(aside)


def search_seed(random_state: Any) -> int:
    """For searches, which are the same every time unless a random_state asks for others."""
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))

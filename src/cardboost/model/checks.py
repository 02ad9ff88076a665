"""Checks of single fields of a model.

Messages start with the field, so that a reader of files can put the path of its parent in front.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cardboost.data.categories import Label, Other

MAX_FEATURES = 2**31 - 1  # the kernels count features in 32 bits
LABEL_BITS = 200  # of an integer that is a category: identifiers can be long, and a file must hold them
MAX_CODES = 255  # of one feature: a binned value is a byte, and one of its values means missing


def short(value: Any) -> str:
    """A value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def fault(field: str, expected: str, found: Any) -> ValueError:
    return ValueError(f"{field}: expected {expected}, found {short(found)}")


def integer(field: str, value: Any, expected: str) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise fault(field, expected, value)
    return int(value)


def number(field: str, value: Any, expected: str) -> float:
    """Any real number that is not NaN. Minus zero becomes zero: it says the same and prints better."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise fault(field, expected, value)
    try:
        found = float(value)
    except OverflowError:
        raise fault(field, expected, value) from None
    if math.isnan(found):
        raise fault(field, expected, value)
    return found + 0.0


def label(field: str, value: Any, bits: int = 64) -> Label:
    """Text, or a number that a file can hold: the label of a class or of a category."""
    found = value.item() if isinstance(value, np.generic) else value
    if type(found) not in (bool, int, float, str):
        raise fault(field, "an integer, a number, a truth value or text", value)
    if isinstance(found, int) and not -(2 ** (bits - 1)) <= found < 2 ** (bits - 1):
        raise fault(field, f"an integer of at most {bits} bits", value)
    if isinstance(found, float) and not math.isfinite(found):
        raise fault(field, "a finite number", value)
    return found


def class_labels(classes: Any, least: int, most: int | None, expected: str) -> tuple[Any, ...]:
    """Labels of one type that all differ."""
    if isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray):
        raise fault("classes", expected, classes)
    if len(classes) < least or (most is not None and len(classes) > most):
        raise fault("classes", expected, classes)
    labels: list[Label] = []
    for k, given in enumerate(classes):
        own = label(f"classes[{k}]", given)
        if labels and type(own) is not type(labels[0]):
            raise fault(f"classes[{k}]", f"a label of the same type as {short(labels[0])}", own)
        labels.append(own)
    seen: set[Label] = set()
    for k, own in enumerate(labels):
        if own in seen:
            raise fault(f"classes[{k}]", "labels that differ", own)
        seen.add(own)
    return tuple(labels)


def label_array(classes: Sequence[Any]) -> Any:
    """The labels of classes as predictions hold them."""
    labels = np.asarray(classes)
    if labels.tolist() != list(classes):  # text that ends in NUL does not survive as a NumPy string
        labels = np.array(classes, dtype=object)
    return labels


def check_labels(kept: Sequence[Any], rare: Sequence[Any]) -> None:
    """The labels of a feature: of one kind, text or numbers, ascending, none twice, and not too many."""
    if not kept and not rare:
        raise fault("kept", "at least one label", kept)
    first: Any = None
    for part, labels in (("kept", kept), ("rare", rare)):
        for k, given in enumerate(labels):
            field = f"{part}[{k}]"
            own = label(field, given, LABEL_BITS)
            first = own if first is None else first
            if isinstance(own, str) is not isinstance(first, str):
                raise fault(
                    field, f"{'text' if isinstance(first, str) else 'a number'} as {short(first)}", own
                )
            if k and not labels[k - 1] < own:
                raise fault(field, f"labels that ascend, one above {short(labels[k - 1])}", own)
    known = set(kept)
    for k, own in enumerate(rare):
        if own in known:
            raise fault(f"rare[{k}]", "a label that is not kept", own)
    most = MAX_CODES - bool(rare)
    if len(kept) > most:
        raise ValueError(f"kept: expected at most {most} labels, found {len(kept)}")


def label_set(field: str, labels: Any) -> tuple[Label | Other, ...]:
    """Labels that a term asks for together: two or more of one kind, ascending, the rare ones last."""
    if not isinstance(labels, tuple | list) or len(labels) < 2:
        raise fault(field, "two labels or more", labels)
    found: list[Label | Other] = []
    for k, given in enumerate(labels):
        place = f"{field}[{k}]"
        own = given if isinstance(given, Other) else label(place, given, LABEL_BITS)
        before = found[-1] if found else None
        if isinstance(before, Other):
            raise fault(place, "nothing behind the rare labels", given)
        if before is not None and not isinstance(own, Other):
            if isinstance(own, str) is not isinstance(before, str):
                kind = "text" if isinstance(before, str) else "a number"
                raise fault(place, f"{kind} as {short(before)}", own)
            if not before < own:  # type: ignore[operator]
                raise fault(place, f"labels that ascend, one above {short(before)}", own)
        found.append(own)
    return tuple(found)


def feature_names(names: Any, n_features: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray):
        raise fault("feature_names", "a list of names", names)
    seen: set[str] = set()
    for k, name in enumerate(names):
        if not isinstance(name, str):
            raise fault(f"feature_names[{k}]", "text", name)
        if name in seen:
            raise fault(f"feature_names[{k}]", "names that differ", name)
        seen.add(name)
    if len(names) != n_features:
        raise ValueError(f"feature_names: expected n_features = {n_features} names, found {len(names)}")
    return tuple(str(name) for name in names)

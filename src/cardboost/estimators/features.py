"""Arguments that say something of single features, by name or by position."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.arguments import number
from cardboost.data.table import CategoricalColumn, Table

Array = NDArray[np.float64]


def per_feature(name: str, value: Any, table: Table) -> list[tuple[int, Any]]:
    """(feature, entry) for every entry of a sequence, or of a mapping from names or positions."""
    n = table.n_features
    if isinstance(value, Mapping):
        return [(_position(name, key, table), entry) for key, entry in value.items()]
    if isinstance(value, str) or not hasattr(value, "__len__"):
        raise ValueError(f"{name} must be a sequence with one entry per feature or a dict; got {value!r}.")
    if len(value) != n:
        raise ValueError(f"{name} has {len(value)} entries, but X has {n} features.")
    return list(enumerate(value))


def _position(name: str, key: Any, table: Table) -> int:
    if isinstance(key, str):
        if table.names is None:
            raise ValueError(f"{name} names {key!r}, but X has no feature names: use positions.")
        if key not in table.names:
            raise ValueError(f"{name} names {key!r}, which is not a feature of X.")
        return table.names.index(key)
    n = table.n_features
    if isinstance(key, bool) or not isinstance(key, numbers.Integral) or int(key) not in range(n):
        raise ValueError(f"{name}: {key!r} is neither a feature name nor a position below {n}.")
    return int(key)


def monotonic_directions(value: Any, table: Table) -> NDArray[np.int8] | None:
    """Per feature 1 (the score may only rise with it), -1 or 0; None where nothing is constrained."""
    if value is None:
        return None
    directions = np.zeros(table.n_features, dtype=np.int8)
    for feature, entry in per_feature("monotonic_cst", value, table):
        whole = isinstance(entry, numbers.Real) and not isinstance(entry, bool)
        if not whole or entry not in (-1, 0, 1):
            raise ValueError(
                f"monotonic_cst: {table.label(feature)} has {entry!r}; accepted are -1, 0 and 1."
            )
        if entry != 0 and isinstance(table.columns[feature], CategoricalColumn):
            raise ValueError(
                f"monotonic_cst: {table.label(feature)} holds categories, which have no direction."
            )
        directions[feature] = int(entry)
    return directions if directions.any() else None


def feature_prices(value: Any, table: Table) -> Array | None:
    """The price of using each feature; None where all are free."""
    if value is None:
        return None
    prices = np.zeros(table.n_features)
    for feature, entry in per_feature("feature_costs", value, table):
        prices[feature] = number(f"feature_costs of {table.label(feature)}", entry, 0.0)
    return prices if prices.any() else None

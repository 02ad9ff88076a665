"""What an analyst says of single features, by name or position, checked against the table.

Directions, cuts, excluded features and the sides of missing values say which stumps there are; prices and
limits say which of them a model may use together.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.arguments import number
from cardboost.data.binning import MAX_BINS
from cardboost.data.sentences import closest
from cardboost.data.table import CategoricalColumn, Table
from cardboost.dictionary.stumps import StumpDictionary

Array = NDArray[np.float64]

#: sides of missing values: -1 with the lower score, 1 with the higher, 0 as learned
MISSING_SIDES = {"learn": 0, "worst": -1, "best": 1}


def per_feature(name: str, value: Any, table: Table) -> list[tuple[int, Any]]:
    """(feature, entry) for every entry of a sequence, or of a mapping from names or positions."""
    n = table.n_features
    if isinstance(value, Mapping):
        return _by_name(name, value, table)
    if isinstance(value, str) or not hasattr(value, "__len__"):
        raise ValueError(f"{name} must be a sequence with one entry per feature or a dict; got {value!r}.")
    if len(value) != n:
        raise ValueError(f"{name} has {len(value)} entries, but X has {n} features.")
    return list(enumerate(value))


def _by_name(name: str, value: Mapping[Any, Any], table: Table) -> list[tuple[int, Any]]:
    """(feature, entry) for every entry of a mapping from names or positions."""
    return [(_position(name, key, table), entry) for key, entry in value.items()]


def _position(name: str, key: Any, table: Table) -> int:
    if isinstance(key, str):
        if table.names is None:
            raise ValueError(f"{name} names {key!r}, but X has no feature names: use positions.")
        if key not in table.names:
            raise ValueError(
                f"{name} names {key!r}, which is not a feature of X: {closest(key, table.names)}"
            )
        return table.names.index(key)
    n = table.n_features
    if isinstance(key, bool) or not isinstance(key, numbers.Integral) or int(key) not in range(n):
        raise ValueError(f"{name}: {key!r} is neither a feature name nor a position below {n}.")
    return int(key)


def _positions(name: str, value: Any, table: Table) -> tuple[int, ...]:
    """The features of a list of names or positions, each once, ascending."""
    if isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
        raise ValueError(f"{name} must be a list of feature names or positions; got {value!r}.")
    return tuple(sorted({_position(name, key, table) for key in value}))


# ------------------------------------------------------------------------------------------------ stumps


def stump_rules(estimator: Any, table: Table) -> dict[str, Any]:
    """Which stumps there are: arguments of :class:`~cardboost.dictionary.stumps.StumpDictionary`.

    Families of estimators that do not have a parameter leave it at its default.
    """
    return {
        "monotonic": monotonic_directions(estimator.monotonic_cst, table),
        "missing": missing_sides(getattr(estimator, "missing", "learn"), table),
        "excluded": excluded_features(getattr(estimator, "exclude", None), table),
    }


def refuse_directions(estimator: Any) -> None:
    """Refuse, for more than two classes, what tells high scores from low ones."""
    if estimator.monotonic_cst is not None:
        raise ValueError("monotonic_cst is for two classes: with more, a direction has no meaning.")
    missing = getattr(estimator, "missing", "learn")
    sides = list(missing.values()) if isinstance(missing, Mapping) else [missing]
    if any(isinstance(side, str) and side in ("worst", "best") for side in sides):
        raise ValueError(
            'missing="worst" and "best" are for two classes: what is good for one class is bad for another.'
        )


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


def given_cuts(value: Any, table: Table) -> dict[int, Array]:
    """The only cuts of some features, ascending."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"cuts must be a dict from features to lists of numbers; got {value!r}.")
    cuts = {}
    for feature, entry in _by_name("cuts", value, table):
        label = table.label(feature)
        if isinstance(table.columns[feature], CategoricalColumn):
            raise ValueError(f"cuts: {label} holds categories, which have no cuts.")
        if isinstance(entry, str | Mapping) or not hasattr(entry, "__iter__"):
            raise ValueError(f"cuts of {label} must be a list of numbers; got {entry!r}.")
        values = np.unique([_finite(f"cuts of {label}", cut) for cut in entry]) + 0.0
        if len(values) >= MAX_BINS:
            raise ValueError(f"cuts of {label}: there are {len(values)}; at most {MAX_BINS - 1} will do.")
        cuts[feature] = values
    return cuts


def _finite(name: str, value: Any) -> float:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if not real or not -np.inf < value < np.inf:
        raise ValueError(f"{name} must be finite numbers; got {value!r}.")
    return float(value)


def excluded_features(value: Any, table: Table) -> tuple[int, ...]:
    """The features that no term may use."""
    return () if value is None else _positions("exclude", value, table)


def missing_sides(value: Any, table: Table) -> NDArray[np.int8] | None:
    """Per feature the side of missing values, see :data:`MISSING_SIDES`; None where all are learned."""
    sides = np.zeros(table.n_features, dtype=np.int8)
    if isinstance(value, Mapping):
        for feature, entry in _by_name("missing", value, table):
            sides[feature] = _side(entry, f" of {table.label(feature)}")
    else:
        sides[:] = _side(value, "")
    return sides if sides.any() else None


def _side(value: Any, of: str) -> int:
    if isinstance(value, str) and value in MISSING_SIDES:
        return MISSING_SIDES[value]
    if isinstance(value, str) and value == "zero":
        raise ValueError(
            f'missing{of}: "zero" is not available: a term adds its weight to the score or subtracts it, and '
            'is never left out. "worst" and "best" say on which side missing values are.'
        )
    raise ValueError(f'missing{of} must be "learn", "worst" or "best"; got {value!r}.')


# ------------------------------------------------------------------------------------------------ models


def feature_prices(value: Any, table: Table) -> Array | None:
    """The price of using each feature; None where all are free."""
    if value is None:
        return None
    prices = np.zeros(table.n_features)
    for feature, entry in per_feature("feature_costs", value, table):
        prices[feature] = number(f"feature_costs of {table.label(feature)}", entry, 0.0)
    return prices if prices.any() else None


def feature_groups(value: Any, table: Table) -> tuple[tuple[int, ...], ...]:
    """Groups of features, of each of which one at most is in use."""
    if value is None:
        return ()
    name = "at_most_one_of"
    if isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
        raise ValueError(f"{name} must be a list of groups, each a list of features; got {value!r}.")
    groups = list(value)
    for group in groups:
        if isinstance(group, str | numbers.Integral):
            raise ValueError(
                f"{name} must be a list of groups, each a list of features; got {group!r} for a group: "
                "write [[...]] for a single one."
            )
    return tuple(_positions(name, group, table) for group in groups)


def feature_limits(estimator: Any, table: Table) -> dict[str, Any]:
    """What limits the features of a model, as parts of the settings; what no model can meet is refused."""
    must = () if estimator.must_include is None else _positions("must_include", estimator.must_include, table)
    groups = feature_groups(estimator.at_most_one_of, table)
    excluded = set(excluded_features(estimator.exclude, table))
    for feature in must:
        if feature in excluded:
            raise ValueError(f"must_include and exclude both name {table.label(feature)}.")
    for limit, things in (("max_terms", "terms"), ("max_features", "features")):
        most = getattr(estimator, limit)
        if isinstance(most, int | np.integer) and len(must) > most:
            raise ValueError(
                f"must_include names {len(must)} features, but {limit}={most} allows only so many {things}."
            )
    for group in groups:
        both = [table.label(feature) for feature in must if feature in group]
        if len(both) > 1:
            raise ValueError(
                f"must_include names {both[0]} and {both[1]}, but at_most_one_of allows only one of them."
            )
    prices = feature_prices(estimator.feature_costs, table)
    return {"feature_costs": prices, "at_most_one_of": groups, "must_include": must}


def require_stumps(must_include: tuple[int, ...], dictionary: StumpDictionary, table: Table) -> None:
    """Refuse features that have to be used and have no stump."""
    for feature in must_include:
        if (dictionary.closed[dictionary.home == feature] == 15).all():
            raise ValueError(
                f"must_include names {table.label(feature)}, but no stump on it tells rows apart: its cuts, "
                "its direction or its values leave none."
            )

"""An immutable weighted sum of stumps, f(x) = intercept + sum_j w_j h_j(x).

All terms on one feature add up to one step function of it, so a prediction is one short search and one
addition per used feature. Every level is a sum of its terms in a fixed order, and scores add the levels in
the order of the features: equal models give equal bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.table import Table, match_names, read_table
from cardboost.losses import LOSSES, get_loss

Array = NDArray[np.float64]
MAX_FEATURES = 2**31 - 1  # the kernels count features in 32 bits


def _fault(field: str, expected: str, found: Any) -> ValueError:
    """Messages start with the field, so that a reader of files can put the path of its parent in front."""
    text = repr(found)
    return ValueError(f"{field}: expected {expected}, found {text if len(text) <= 60 else text[:57] + '...'}")


def _integer(field: str, value: Any, expected: str) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise _fault(field, expected, value)
    return int(value)


def _number(field: str, value: Any, expected: str) -> float:
    """Any real number that is not NaN. Minus zero becomes zero: it says the same and prints better."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise _fault(field, expected, value)
    try:
        number = float(value)
    except OverflowError:
        raise _fault(field, expected, value) from None
    if math.isnan(number):
        raise _fault(field, expected, value)
    return number + 0.0


@dataclass(frozen=True)
class Term:
    """A weighted stump: +polarity * weight on the left of the cut, -polarity * weight on its right.

    Left is x <= cut, and where x is missing if ``missing_left``.

    A cut at infinity has every value on the left: such a term tells missing from not missing.
    """

    feature: int
    cut: float
    polarity: int
    missing_left: bool
    weight: float

    def __post_init__(self) -> None:
        feature = _integer("feature", self.feature, "the index of a feature")
        if feature < 0:
            raise _fault("feature", "the index of a feature", self.feature)
        cut = _number("cut", self.cut, "a number")
        if cut == -math.inf:
            raise _fault("cut", "a number above minus infinity", self.cut)
        polarity = _integer("polarity", self.polarity, "1 or -1")
        if polarity not in (1, -1):
            raise _fault("polarity", "1 or -1", self.polarity)
        if not isinstance(self.missing_left, bool | np.bool_):
            raise _fault("missing_left", "true or false", self.missing_left)
        weight = _number("weight", self.weight, "a positive finite number")
        if not 0.0 < weight < math.inf:
            raise _fault("weight", "a positive finite number", self.weight)
        values = (feature, cut, polarity, bool(self.missing_left), weight)
        for name, value in zip(("feature", "cut", "polarity", "missing_left", "weight"), values, strict=True):
            object.__setattr__(self, name, value)

    @property
    def order(self) -> tuple[int, float, bool, int, float]:
        """Terms of an ensemble stand in this order, whatever the order they were given in."""
        return (self.feature, self.cut, self.missing_left, self.polarity, self.weight)


@dataclass(frozen=True)
class StepFunction:
    """What one feature adds to the score.

    ``levels[k]`` holds for cuts[k-1] < x <= cuts[k]: the first level up to and with the first cut, the last
    one above the last cut. There is one more level than cuts; ``missing`` is the level of missing values.
    """

    feature: int
    name: str
    cuts: tuple[float, ...]
    levels: tuple[float, ...]
    missing: float

    @property
    def spread(self) -> float:
        """How far this feature can move the score: its importance."""
        values = (*self.levels, self.missing)
        return max(values) - min(values)


@dataclass(frozen=True)
class _FlatSteps:
    """All step functions one after the other, as the prediction kernel reads them."""

    features: tuple[int, ...]
    cuts: Array
    offsets: NDArray[np.int64]
    levels: Array
    missing: Array

    @classmethod
    def join(cls, steps: Sequence[StepFunction]) -> _FlatSteps:
        ends = np.cumsum([0, *(len(step.cuts) for step in steps)], dtype=np.int64)
        flat = cls(
            tuple(step.feature for step in steps),
            np.array([cut for step in steps for cut in step.cuts], dtype=np.float64),
            ends,
            np.array([level for step in steps for level in step.levels], dtype=np.float64),
            np.array([step.missing for step in steps], dtype=np.float64),
        )
        for array in (flat.cuts, flat.offsets, flat.levels, flat.missing):
            array.flags.writeable = False
        return flat


@dataclass(frozen=True)
class Ensemble:
    """A finished binary classifier.

    A positive score means ``classes[1]``, any other (exactly 0 too) ``classes[0]``.
    """

    loss: str
    intercept: float
    terms: tuple[Term, ...]
    feature_names: tuple[str, ...] | None
    n_features: int
    classes: tuple[Any, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise _fault("loss", " or ".join(repr(name) for name in sorted(LOSSES)), self.loss)
        intercept = _number("intercept", self.intercept, "a finite number")
        if math.isinf(intercept):
            raise _fault("intercept", "a finite number", self.intercept)
        n_features = _integer("n_features", self.n_features, "a number of features")
        if not 1 <= n_features <= MAX_FEATURES:
            raise _fault("n_features", f"a number from 1 to {MAX_FEATURES}", self.n_features)
        terms = _check_terms(self.terms, n_features, intercept)
        names = _check_names(self.feature_names, n_features)
        classes = _check_classes(self.classes)
        for field, value in (
            ("intercept", intercept),
            ("n_features", n_features),
            ("terms", terms),
            ("feature_names", names),
            ("classes", classes),
        ):
            object.__setattr__(self, field, value)

    # ------------------------------------------------------------------------------------ what it is made of

    @property
    def n_terms(self) -> int:
        return len(self.terms)

    @property
    def features_used(self) -> tuple[int, ...]:
        """Indices of the features that have a term, ascending."""
        return self._flat.features

    def feature_name(self, feature: int) -> str:
        """The name of a feature, or x0, x1, ... where the table had no names."""
        return self.feature_names[feature] if self.feature_names is not None else f"x{feature}"

    def step_functions(self) -> tuple[StepFunction, ...]:
        """One per used feature, in the order of the features."""
        return self._steps

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, a cut at infinity as None; ``model.io.from_dict`` is the way back."""
        return {
            "loss": self.loss,
            "intercept": self.intercept,
            "n_features": self.n_features,
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "classes": list(self.classes),
            "terms": [
                {
                    "feature": term.feature,
                    "cut": None if math.isinf(term.cut) else term.cut,
                    "polarity": term.polarity,
                    "missing_left": term.missing_left,
                    "weight": term.weight,
                }
                for term in self.terms
            ],
        }

    # ------------------------------------------------------------------------------------ prediction

    def decision_function(self, X: Any, threads: int = 1) -> Array:
        """The score of every row."""
        return self._evaluate(self._table(X), threads, with_contributions=False)[0]

    def contributions(self, X: Any, threads: int = 1) -> Array:
        """What every feature adds to every row: shape (rows, n_features).

        Added to the intercept in the order of the features they give ``decision_function`` to the bit.
        """
        table = self._table(X)
        used = self._evaluate(table, threads, with_contributions=True)[1]
        out = np.zeros((table.n_rows, self.n_features))
        out[:, list(self.features_used)] = used.T
        return out

    def predict_proba(self, X: Any, threads: int = 1) -> Array:
        """Probabilities of the two classes: shape (rows, 2)."""
        score = self.decision_function(X, threads)
        loss = get_loss(self.loss)
        # not 1 - p: small probabilities of the first class keep their digits
        return np.column_stack([loss.probability(-score), loss.probability(score)])

    def predict(self, X: Any, threads: int = 1) -> NDArray[Any]:
        """The label of every row."""
        return self._labels[(self.decision_function(X, threads) > 0).astype(np.intp)]

    def _table(self, X: Any) -> Table:
        table = X if isinstance(X, Table) else read_table(X)
        match_names(self.feature_names, self.n_features, table)
        return table

    def _evaluate(self, table: Table, threads: int, with_contributions: bool) -> tuple[Array, Array]:
        flat = self._flat
        score, contributions, infinite = _kernels.predict_steps(
            [table.columns[j] for j in flat.features],
            table.n_rows,
            flat.cuts,
            flat.offsets,
            flat.levels,
            flat.missing,
            self.intercept,
            with_contributions,
            threads,
        )
        if infinite >= 0:
            feature = flat.features[infinite]
            named = self.feature_names is not None
            label = f"column {self.feature_name(feature)!r}" if named else table.label(feature)
            raise ValueError(
                f"X contains infinity in {label}; values must be finite, or NaN where they are missing."
            )
        return score, contributions

    # ------------------------------------------------------------------------------------ built once

    @cached_property
    def _steps(self) -> tuple[StepFunction, ...]:
        by_feature: dict[int, list[Term]] = {}
        for term in self.terms:
            by_feature.setdefault(term.feature, []).append(term)
        return tuple(_add_up(own, self.feature_name(feature)) for feature, own in by_feature.items())

    @cached_property
    def _flat(self) -> _FlatSteps:
        return _FlatSteps.join(self._steps)

    @cached_property
    def _labels(self) -> NDArray[Any]:
        labels = np.asarray(self.classes)
        if labels.tolist() != list(self.classes):  # text that ends in NUL does not survive as a NumPy string
            labels = np.array(self.classes, dtype=object)
        return labels


def _add_up(terms: Sequence[Term], name: str) -> StepFunction:
    """The step function of one feature's terms; every level adds the terms in their order, from 0."""
    cuts = sorted({term.cut for term in terms if not math.isinf(term.cut)})
    position = {cut: k for k, cut in enumerate(cuts)}
    levels = np.zeros(len(cuts) + 1)
    missing = 0.0
    for term in terms:
        value = term.polarity * term.weight
        last_left = position.get(term.cut, len(cuts))
        levels[: last_left + 1] += value
        levels[last_left + 1 :] -= value
        missing += value if term.missing_left else -value
    return StepFunction(terms[0].feature, name, tuple(cuts), tuple(levels.tolist()), missing)


def _check_terms(terms: Any, n_features: int, intercept: float) -> tuple[Term, ...]:
    if not isinstance(terms, tuple | list):
        raise _fault("terms", "a list of terms", terms)
    total = abs(intercept)
    for k, term in enumerate(terms):
        if not isinstance(term, Term):
            raise _fault(f"terms[{k}]", "a term", term)
        if term.feature >= n_features:
            raise _fault(f"terms[{k}].feature", f"an index below n_features = {n_features}", term.feature)
        total += term.weight
        if math.isinf(total):  # some score would not be finite
            raise _fault(f"terms[{k}].weight", "weights with a finite sum", term.weight)
    return tuple(sorted(terms, key=lambda term: term.order))


def _check_names(names: Any, n_features: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray):
        raise _fault("feature_names", "a list of names", names)
    seen: set[str] = set()
    for k, name in enumerate(names):
        if not isinstance(name, str):
            raise _fault(f"feature_names[{k}]", "text", name)
        if name in seen:
            raise _fault(f"feature_names[{k}]", "names that differ", name)
        seen.add(name)
    if len(names) != n_features:
        raise ValueError(f"feature_names: expected n_features = {n_features} names, found {len(names)}")
    return tuple(str(name) for name in names)


def _check_classes(classes: Any) -> tuple[Any, Any]:
    if isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray) or len(classes) != 2:
        raise _fault("classes", "two labels", classes)
    labels: list[Any] = []
    for k, given in enumerate(classes):
        label = given.item() if isinstance(given, np.generic) else given
        if type(label) not in (bool, int, float, str):
            raise _fault(f"classes[{k}]", "an integer, a number, a truth value or text", given)
        if isinstance(label, int) and not -(2**63) <= label < 2**63:
            raise _fault(f"classes[{k}]", "an integer of at most 64 bits", given)
        if isinstance(label, float) and not math.isfinite(label):
            raise _fault(f"classes[{k}]", "a finite number", given)
        labels.append(label)
    if type(labels[0]) is not type(labels[1]):
        raise _fault("classes[1]", f"a label of the same type as {labels[0]!r}", labels[1])
    if labels[0] == labels[1]:
        raise _fault("classes[1]", "a label that differs from the first", labels[1])
    return labels[0], labels[1]

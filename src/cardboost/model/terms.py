"""Weighted stumps, and the step function that the stumps on one feature add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import Categories, Label, Other
from cardboost.model.checks import LABEL_BITS, fault, integer, label, label_set, number

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Term:
    """A weighted stump: +polarity * weight on its left, -polarity * weight on its right.

    On numbers, left is x <= cut; a cut at infinity has every number on the left, so that such a term tells
    missing from not missing. On labels (``cut`` None), left is "x is ``category``", or "x is one of
    ``one_of``", at least two labels in ascending order; OTHER, which comes last, stands for all rare labels.
    Missing values are on the left if ``missing_left``, and so are labels not seen in training.
    """

    feature: int
    cut: float | None
    polarity: int
    missing_left: bool
    weight: float
    category: Label | Other | None = None
    one_of: tuple[Label | Other, ...] | None = None

    def __post_init__(self) -> None:
        feature = integer("feature", self.feature, "the index of a feature")
        if feature < 0:
            raise fault("feature", "the index of a feature", self.feature)
        cut, category, one_of = None, self.category, None
        if self.one_of is not None:
            one_of = label_set("one_of", self.one_of)
            for name, value in (("cut", self.cut), ("category", category)):
                if value is not None:
                    raise fault(name, "none beside a set of categories", value)
        elif category is None:
            cut = number("cut", self.cut, "a number")
            if cut == -math.inf:
                raise fault("cut", "a number above minus infinity", self.cut)
        elif self.cut is not None:
            raise fault("cut", "none beside a category", self.cut)
        elif not isinstance(category, Other):
            category = label("category", category, LABEL_BITS)
        polarity = integer("polarity", self.polarity, "1 or -1")
        if polarity not in (1, -1):
            raise fault("polarity", "1 or -1", self.polarity)
        if not isinstance(self.missing_left, bool | np.bool_):
            raise fault("missing_left", "true or false", self.missing_left)
        weight = number("weight", self.weight, "a positive finite number")
        if not 0.0 < weight < math.inf:
            raise fault("weight", "a positive finite number", self.weight)
        plain: tuple[tuple[str, Any], ...] = (
            ("feature", feature),
            ("cut", cut),
            ("polarity", polarity),
            ("missing_left", bool(self.missing_left)),
            ("weight", weight),
            ("category", category),
            ("one_of", one_of),
        )
        for name, value in plain:
            object.__setattr__(self, name, value)

    @property
    def labels(self) -> tuple[Label | Other, ...]:
        """The labels on the left; none for a term on numbers."""
        if self.one_of is not None:
            return self.one_of
        return () if self.category is None else (self.category,)

    @property
    def order(self) -> tuple[Any, ...]:
        """Terms of an ensemble stand in this order, whatever the order they were given in."""
        kind: int = 0
        value: Any = self.cut
        if self.one_of is not None:
            named = tuple(own for own in self.one_of if not isinstance(own, Other))
            kind, value = 4, (named, len(named) < len(self.one_of))
        elif isinstance(self.category, Other):
            kind, value = 3, 0.0
        elif self.category is not None:
            kind, value = (2 if isinstance(self.category, str) else 1), self.category
        return (self.feature, kind, value, self.missing_left, self.polarity, self.weight)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: a cut at infinity is None, the rare labels are {"other": True}."""
        plain = [{"other": True} if isinstance(own, Other) else own for own in self.labels]
        where: dict[str, Any]
        if self.one_of is not None:
            where = {"one_of": plain}
        elif self.category is not None:
            where = {"category": plain[0]}
        else:
            where = {"cut": None if self.cut == math.inf else self.cut}
        return {
            "feature": self.feature,
            **where,
            "polarity": self.polarity,
            "missing_left": self.missing_left,
            "weight": self.weight,
        }


@dataclass(frozen=True)
class StepFunction:
    """What one feature adds to the score.

    ``levels[k]`` holds for cuts[k-1] < x <= cuts[k]: the first level up to and with the first cut, the last
    one above the last cut. There is one more level than cuts; ``missing`` is the level of missing values.

    For a feature with categories x is the code of the label, the cuts are 0.5, 1.5, ..., and so ``levels[k]``
    belongs to ``categories[k]``; ``missing`` is also the level of labels not seen in training.
    """

    feature: int
    name: str
    cuts: tuple[float, ...]
    levels: tuple[float, ...]
    missing: float
    categories: tuple[Label | Other, ...] | None = None

    @property
    def spread(self) -> float:
        """How far this feature can move the score: its importance."""
        values = (*self.levels, self.missing)
        return max(values) - min(values)

    def distinct(self) -> tuple[list[float], list[float]]:
        """Cuts and levels without the cuts between equal levels."""
        ends = [k for k in range(len(self.cuts)) if self.levels[k] != self.levels[k + 1]]
        return [self.cuts[k] for k in ends], [self.levels[k] for k in (*ends, len(self.cuts))]


def add_up(terms: Sequence[Term], name: str, categories: Categories | None) -> StepFunction:
    """The step function of one feature's terms; every level adds the terms in their order, from 0."""
    if categories is None:
        cuts = sorted({term.cut for term in terms if term.cut is not None and term.cut < math.inf})
        known = None
    else:
        cuts = [code + 0.5 for code in range(categories.n_codes - 1)]
        known = tuple(categories.label(code) for code in range(categories.n_codes))
    position = {cut: k for k, cut in enumerate(cuts)}
    levels = np.zeros(len(cuts) + 1)
    missing = 0.0
    for term in terms:
        value = term.polarity * term.weight
        change = np.full(len(levels), -value)
        if term.cut is not None:
            change[: position.get(term.cut, len(cuts)) + 1] = value
        elif categories is not None:
            change[[categories.code(own) for own in term.labels]] = value
        levels += change
        missing += value if term.missing_left else -value
    return StepFunction(terms[0].feature, name, tuple(cuts), tuple(levels.tolist()), missing, known)


@dataclass(frozen=True)
class FlatSteps:
    """All step functions one after the other, as the prediction kernel reads them."""

    features: tuple[int, ...]
    cuts: Array
    offsets: NDArray[np.int64]
    levels: Array
    missing: Array

    @classmethod
    def join(cls, steps: Sequence[StepFunction]) -> FlatSteps:
        parts = [step.distinct() for step in steps]
        flat = cls(
            tuple(step.feature for step in steps),
            np.array([cut for cuts, _ in parts for cut in cuts], dtype=np.float64),
            np.cumsum([0, *(len(cuts) for cuts, _ in parts)], dtype=np.int64),
            np.array([level for _, levels in parts for level in levels], dtype=np.float64),
            np.array([step.missing for step in steps], dtype=np.float64),
        )
        for array in (flat.cuts, flat.offsets, flat.levels, flat.missing):
            array.flags.writeable = False
        return flat

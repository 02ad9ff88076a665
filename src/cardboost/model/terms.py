"""Weighted stumps, and the step function that the stumps on one feature add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardboost.data.categories import OTHER, Categories, Label, Other
from cardboost.model import schema
from cardboost.model.schema import Fault, Record, expected, form


def _label_set(value: Any) -> tuple[Label | Other, ...]:
    """Labels that a term asks for together: two or more of one kind, ascending, the rare ones last."""
    if not isinstance(value, tuple | list) or len(value) < 2:
        raise expected("two labels or more", value)
    rare = next((k for k, entry in enumerate(value) if isinstance(entry, Other)), len(value))
    labels = schema.ascending_labels(value[:rare])
    if rare + 1 < len(value):
        raise expected("nothing behind the rare labels", value[rare + 1], rare + 1)
    return (*labels, *value[rare:])


def _read_label(value: Any) -> Label | Other:
    """A label as JSON has it, where {"other": true} stands for all rare ones."""
    if value is None or isinstance(value, list | dict):
        if isinstance(value, dict) and len(value) == 1 and value.get("other") is True:
            return OTHER
        what = "another object" if isinstance(value, dict) else schema.shown_json(value)
        raise Fault(f'expected a label or {{"other": true}}, found {what}')
    return value


_CUT = schema.maybe(schema.number("a number", lambda cut: cut > -math.inf))
_POLARITY = schema.kind("1 or -1", lambda value: schema.is_integer(value) and value in (1, -1), int)
_CATEGORY = schema.maybe(lambda value: value if isinstance(value, Other) else schema.label(value))
#: how the keys of a term are read; what is on the left is one of three
_JSON: dict[str, dict[str, Any]] = {
    left: {"feature": None, left: read, "polarity": None, "missing_left": None, "weight": None}
    for left, read in {
        "cut": lambda value: math.inf if value is None else value,
        "category": _read_label,
        "one_of": schema.list_of(_read_label),
    }.items()
}


@dataclass(frozen=True)
class Term(Record):
    """A weighted stump: +polarity * weight on its left, -polarity * weight on its right.

    On numbers, left is x <= cut; a cut at infinity has every number on the left, so that such a term tells
    missing from not missing. On labels (``cut`` None), left is "x is ``category``", or "x is one of
    ``one_of``", at least two labels in ascending order; OTHER, which comes last, stands for all rare labels.
    Missing values are on the left if ``missing_left``, and so are labels not seen in training.
    """

    feature: int = field(metadata=form(schema.INDEX))
    cut: float | None = field(metadata=form(_CUT))
    polarity: int = field(metadata=form(_POLARITY))
    missing_left: bool = field(metadata=form(schema.FLAG))
    weight: float = field(metadata=form(schema.POSITIVE))
    category: Label | Other | None = field(default=None, metadata=form(_CATEGORY))
    one_of: tuple[Label | Other, ...] | None = field(default=None, metadata=form(schema.maybe(_label_set)))

    def _check(self) -> None:
        if self.one_of is None and self.category is None:
            if self.cut is None:
                raise expected("a number", None, "cut")
            return
        beside = "a category" if self.one_of is None else "a set of categories"
        for name in ("cut",) if self.one_of is None else ("cut", "category"):
            if getattr(self, name) is not None:
                raise expected(f"none beside {beside}", getattr(self, name), name)

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
            named = tuple(label for label in self.one_of if not isinstance(label, Other))
            kind, value = 4, (named, len(named) < len(self.one_of))
        elif isinstance(self.category, Other):
            kind, value = 3, 0.0
        elif self.category is not None:
            kind, value = (2 if isinstance(self.category, str) else 1), self.category
        return (self.feature, kind, value, self.missing_left, self.polarity, self.weight)

    @property
    def left_field(self) -> str:
        """The field that says what is on the left."""
        return "cut" if not self.labels else "category" if self.one_of is None else "one_of"

    @classmethod
    def from_dict(cls, document: Any) -> Term:
        """The term in a JSON object; a ValueError starts with the path of the first fault."""
        keys = document if isinstance(document, dict) else ()
        left = next((key for key in ("category", "one_of") if key in keys), "cut")
        return cls(**{"cut": None, **schema.read_object(document, _JSON[left])})

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: a cut at infinity is None, the rare labels are {"other": True}."""
        document = {name: getattr(self, name) for name in _JSON[self.left_field]}
        if self.labels:
            plain = [{"other": True} if isinstance(label, Other) else label for label in self.labels]
            document[self.left_field] = plain if self.one_of is not None else plain[0]
        elif self.cut == math.inf:
            document["cut"] = None
        return document


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
        labels = None
    else:
        cuts = [code + 0.5 for code in range(categories.n_codes - 1)]
        labels = tuple(categories.label(code) for code in range(categories.n_codes))
    position = {cut: k for k, cut in enumerate(cuts)}
    levels = np.zeros(len(cuts) + 1)
    missing = 0.0
    for term in terms:
        value = term.polarity * term.weight
        change = np.full(len(levels), -value)
        if term.cut is not None:
            change[: position.get(term.cut, len(cuts)) + 1] = value
        elif categories is not None:
            change[[categories.code(label) for label in term.labels]] = value
        levels += change
        missing += value if term.missing_left else -value
    return StepFunction(terms[0].feature, name, tuple(cuts), tuple(levels.tolist()), missing, labels)


def flatten(steps: Sequence[StepFunction]) -> tuple[tuple[int, ...], tuple[Any, Any, Any, Any]]:
    """Features of step functions; cuts, offsets, levels and missing of all, as the kernel reads them."""
    parts = [step.distinct() for step in steps]
    return tuple(step.feature for step in steps), (
        np.array([cut for cuts, _ in parts for cut in cuts], dtype=np.float64),
        np.cumsum([0, *(len(cuts) for cuts, _ in parts)], dtype=np.int64),
        np.array([level for _, levels in parts for level in levels], dtype=np.float64),
        np.array([step.missing for step in steps], dtype=np.float64),
    )

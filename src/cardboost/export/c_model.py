"""What a C header computes: cuts, points or doubles, and the smaller of two layouts.

Scores are sums of whole points where these are proven to keep every decision: then a model is a list of
cuts, each with what it adds to the total for values above it. Otherwise scores are sums of doubles in the
order of the model, equal to its scores to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cardboost.export.c_text import FLT_MAX, check_prefix
from cardboost.export.integer_model import Grid, IntegerModel, unproven
from cardboost.export.plan import Plan, Steps
from cardboost.export.points import Points, find_points
from cardboost.export.probability import ProbabilityTable

_MOST_CUTS = 65_000
_CUT = {"float": 4, "int16": 2}  # bytes
MISSING_CUT = -math.inf  # below the cut are missing values only


@dataclass(frozen=True)
class Entry:
    """A cut and what values above it add to the total. ``nan_above``: missing values count as above it."""

    place: int
    cut: float
    points: int
    nan_above: bool = False


Programs = tuple[tuple[int, tuple[Entry, ...]], ...]


@dataclass(frozen=True, eq=False)
class CModel:
    """What a header computes, and what it looks like."""

    plan: Plan
    number: str
    prefix: str
    steps: tuple[Steps, ...]
    points: Points | None  # None: doubles
    layout: str
    grids: tuple[Grid | None, ...]
    probability: ProbabilityTable | None

    @cached_property
    def programs(self) -> Programs:
        """For every score where its total begins, and the entries that it adds."""
        return self.programs_for(self.layout)

    def programs_for(self, layout: str) -> Programs:
        """In a table missing values are the lowest of all, below ``MISSING_CUT``; an if compares floats."""
        assert self.points is not None
        nan = self.number == "float" and layout == "ifs"
        lowest = self.number == "float" and layout == "table"
        found = []
        for k in range(self.plan.n_scores):
            base, entries = int(self.points.intercepts[k]), []
            parts = zip(self.steps, self.points.levels, self.points.missing, strict=True)
            for place, (own, all_levels, all_missing) in enumerate(parts):
                cuts, levels, missing = own.cuts, all_levels[:, k].tolist(), int(all_missing[k])
                if lowest:
                    cuts, levels = (MISSING_CUT, *cuts), [missing, *levels]
                first, more = _entries(place, cuts, levels, missing, nan)
                base += first
                entries += more
            found.append((base, tuple(entries)))
        return tuple(found)

    @cached_property
    def smaller_layout(self) -> str:
        assert self.points is not None
        sizes = {
            layout: estimate(self.programs_for(layout), layout, self.number, self.points.width)
            for layout in ("table", "ifs")
        }
        return min(sizes, key=lambda layout: sizes[layout])


def c_model(
    ensemble: Any,
    *,
    number: str = "float",
    prefix: str = "cardboost",
    layout: str = "auto",
    score: str = "auto",
    probability: bool = False,
    scales: Mapping[str | int, Any] | None = None,
    exact: bool = True,
) -> CModel:
    """Decide what the header computes.

    ``layout`` "table" is a loop over tables, "ifs" one statement per cut, "auto" the smaller of the two by
    :func:`estimate`. ``score`` "points" is a sum of whole points, "double" the score of the model to the bit
    (floats only), "auto" whole points where they are proven to keep every decision. ``probability`` adds a
    function for the probability of the second class. ``scales`` and ``exact`` (int16 only, and ``exact`` with
    score="points") are those of :meth:`IntegerModel.from_ensemble`.
    """
    for name, value, known in (
        ("number", number, ("float", "int16")),
        ("layout", layout, ("auto", "table", "ifs")),
        ("score", score, ("auto", "points", "double")),
    ):
        if value not in known:
            raise ValueError(f"{name}: expected {', '.join(map(repr, known))}, found {value!r}.")
    for name, flag in (("probability", probability), ("exact", exact)):
        if not isinstance(flag, bool | np.bool_):
            raise ValueError(f"{name}: expected True or False, found {flag!r}.")
    check_prefix(prefix)
    points: Points | None
    if number == "int16":
        if score == "double":
            raise ValueError("score: 'double' does not go with number='int16', which has no floating point.")
        whole = IntegerModel.from_ensemble(ensemble, scales, exact)
        plan, steps, points, grids = whole.plan, whole.steps, whole.points, whole.grids
    else:
        if scales is not None:
            raise ValueError("scales: only number='int16' has scales.")
        plan = Plan.of(ensemble)
        steps = tuple(own.steps().on(float32_at_most, FLT_MAX) for own in plan.inputs)
        grids = (None,) * len(steps)
        points = (
            None if score == "double" or (score == "auto" and not plan.decides) else find_points(plan, steps)
        )
        if points is not None and not points.proven:
            if score == "points" and exact:
                raise ValueError(unproven(plan))
            points = points if score == "points" else None
    if sum(len(own.cuts) + 2 for own in steps) * plan.n_scores > _MOST_CUTS:
        raise ValueError(f"ensemble: C counts its cuts in 16 bits, and there are more than {_MOST_CUTS}.")
    if probability and points is None:
        raise ValueError("probability: needs scores in whole points, and these are doubles.")
    chances = ProbabilityTable.of(plan, points) if probability and points is not None else None
    model = CModel(plan, number, prefix, steps, points, layout, grids, chances)
    if points is None:
        return replace(model, layout="table")
    return replace(model, layout=model.smaller_layout) if layout == "auto" else model


def float32_at_most(cut: float) -> float:
    """The largest float32 that is not above a number; minus infinity if there is none."""
    with np.errstate(over="ignore"):
        near = np.float32(cut)
    if float(near) > cut:
        near = np.nextafter(near, np.float32(-math.inf))
    return float(near)


def float_key(value: float) -> int:
    """A whole number for a float32: in the same order, all of 32 bits, and the lowest for a missing value."""
    if value != value or value == MISSING_CUT:
        return -(2**31)
    bits = int(np.float32(value).view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF) - 1


def estimate(programs: Programs, layout: str, number: str, width: int) -> int:
    """Bytes on a Cortex-M0 with -Os, roughly: what layout="auto" goes by.

    A table costs 72 bytes of code, with floats 60 more to put them into order, and per entry its cut, its
    points and one byte. Statements cost 16 bytes and 20 for each; with floats 544, most of them for the
    helpers that compare floats, and 26 for each.
    """
    size = sum(len(entries) for _, entries in programs)
    if layout == "table":
        several = 24 if len(programs) > 1 else 0
        return 72 + several + (60 if number == "float" else 0) + (_CUT[number] + width // 8 + 1) * size
    return 544 + 26 * size if number == "float" else 16 + 20 * size


def _entries(
    place: int, cuts: Sequence[float], levels: Sequence[int], missing: int, nan: bool
) -> tuple[int, list[Entry]]:
    """The first level, and the changes at the cuts. With ``nan`` missing values are not in order."""
    at = levels.index(missing) if nan and missing in levels else 0
    found = [
        Entry(place, cut, levels[k + 1] - levels[k], nan and k < at)
        for k, cut in enumerate(cuts)
        if levels[k + 1] != levels[k]
    ]
    if nan and missing not in levels:
        found.append(Entry(place, FLT_MAX, missing - levels[0], True))
    return levels[0], found

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
from itertools import permutations
from typing import Any

import numpy as np

from cardboost.export.c_text import FLT_MAX, check_prefix
from cardboost.export.integer_model import Grid, IntegerModel, unproven
from cardboost.export.plan import Plan, Steps
from cardboost.export.points import WIDTHS, Points, find_points
from cardboost.export.probability import ProbabilityTable

_MOST_CUTS = 65_000
_SIZES = {"uint8_t": 1, "int8_t": 1, "uint16_t": 2, "int16_t": 2, "int32_t": 4, "int64_t": 8}
_APART = {False: 16, True: 3}  # bytes of code that several tables cost more than one, with inputs in order
_MOST_QUESTIONS = 5
MISSING_CUT = -math.inf  # below the cut are missing values only


@dataclass(frozen=True)
class Entry:
    """A cut and what values above it add to the total. ``nan_above``: missing values count as above it."""

    place: int
    cut: float
    points: int
    nan_above: bool = False


Programs = tuple[tuple[int, tuple[Entry, ...]], ...]


@dataclass(frozen=True)
class Question:
    """A decision of few entries without a sum: above the cut of an entry, or not; then the next question."""

    entry: Entry
    above: Question | bool
    below: Question | bool

    def entries(self) -> list[Entry]:
        """Those of all questions."""
        later = [own.entries() for own in (self.above, self.below) if isinstance(own, Question)]
        return [self.entry, *(entry for own in later for entry in own)]

    @property
    def count(self) -> int:
        return len(self.entries())


def questions(start: int, entries: Sequence[Entry]) -> Question | bool | None:
    """Whether a sum is negative, by the fewest questions; None if there are too many entries or questions."""
    if len(entries) > _MOST_QUESTIONS:
        return None
    found = [_ask(start, order) for order in permutations(entries)]
    best = min(found, key=lambda own: own.count if isinstance(own, Question) else 0)
    return None if isinstance(best, Question) and best.count > _MOST_QUESTIONS else best


def _ask(total: int, entries: Sequence[Entry]) -> Question | bool:
    if total + sum(max(own.points, 0) for own in entries) < 0:
        return True
    if total + sum(min(own.points, 0) for own in entries) >= 0:
        return False
    first, rest = entries[0], entries[1:]
    above, below = _ask(total + first.points, rest), _ask(total, rest)
    return above if above == below else Question(first, above, below)


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
    missing: bool = True  # whether numbers can be

    @property
    def turned(self) -> bool:
        """Whether the sum is minus the score: to see that it is negative takes the fewest instructions."""
        return self.plan.decides and self.plan.n_scores == 1

    @cached_property
    def programs(self) -> Programs:
        """For every sum where it begins, and the entries that it adds."""
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
            if self.turned:
                base, entries = -base, [replace(own, points=-own.points) for own in entries]
            found.append((base, tuple(entries)))
        return tuple(found)

    @cached_property
    def questions(self) -> Question | bool | None:
        """What decides without a sum, if anything does."""
        return questions(*self.programs[0]) if self.turned and self.layout == "ifs" else None

    @cached_property
    def cells(self) -> Cells:
        return cells(self.programs, self.number, len(self.plan.inputs))

    @cached_property
    def smaller_layout(self) -> str:
        sizes = {layout: self.estimate_for(layout) for layout in ("ifs", "table")}
        return min(sizes, key=lambda layout: sizes[layout])

    def estimate_for(self, layout: str) -> int:
        """Bytes on a Cortex-M0, by :func:`estimate`."""
        return estimate(self.programs_for(layout), layout, self.number, len(self.plan.inputs), self.turned)


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
    missing: bool = True,
    point_bits: int | None = None,
) -> CModel:
    """Decide what the header computes.

    ``layout`` "table" is a loop over tables, "ifs" one statement per cut, "auto" the smaller of the two by
    :func:`estimate`. ``score`` "points" is a sum of whole points, "double" the score of the model to the bit
    (floats only), "auto" whole points where they are proven to keep every decision. ``probability`` adds a
    function for the probability of the second class. ``scales`` and ``exact`` (int16 only, and ``exact`` with
    score="points") are those of :meth:`IntegerModel.from_ensemble`. ``missing=False``: numbers are never
    missing. ``point_bits`` (8, 16, 32, 64) is the least number of bits of a step in points, by default 8 if
    only decisions are asked for and 16 with ``probability``.
    """
    for name, value, known in (
        ("number", number, ("float", "int16")),
        ("layout", layout, ("auto", "table", "ifs")),
        ("score", score, ("auto", "points", "double")),
    ):
        if value not in known:
            raise ValueError(f"{name}: expected {', '.join(map(repr, known))}, found {value!r}.")
    for name, flag in (("probability", probability), ("exact", exact), ("missing", missing)):
        if not isinstance(flag, bool | np.bool_):
            raise ValueError(f"{name}: expected True or False, found {flag!r}.")
    if point_bits is not None and point_bits not in WIDTHS:
        raise ValueError(f"point_bits: expected 8, 16, 32 or 64, found {point_bits!r}.")
    check_prefix(prefix)
    least = (16 if probability else 8) if point_bits is None else point_bits
    widths = [width for width in WIDTHS if width >= least]
    points: Points | None
    if number == "int16":
        if score == "double":
            raise ValueError("score: 'double' does not go with number='int16', which has no floating point.")
        whole = IntegerModel.from_ensemble(ensemble, scales, exact, missing, widths)
        plan, steps, points, grids = whole.plan, whole.steps, whole.points, whole.grids
    else:
        if scales is not None:
            raise ValueError("scales: only number='int16' has scales.")
        plan = Plan.of(ensemble)
        steps = tuple(own.steps().on(float32_at_most, FLT_MAX) for own in plan.inputs)
        if not missing:
            numbers = [own.categories is None for own in plan.inputs]
            steps = tuple(
                own.never_missing() if is_number else own
                for own, is_number in zip(steps, numbers, strict=True)
            )
        grids = (None,) * len(steps)
        doubles = score == "double" or (score == "auto" and not plan.decides)
        points = None if doubles else find_points(plan, steps, widths)
        if points is not None and not points.proven:
            if score == "points" and exact:
                raise ValueError(unproven(plan))
            points = points if score == "points" else None
    if sum(len(own.cuts) + 2 for own in steps) * plan.n_scores > _MOST_CUTS:
        raise ValueError(f"ensemble: C counts its cuts in 16 bits, and there are more than {_MOST_CUTS}.")
    if probability and points is None:
        raise ValueError("probability: needs scores in whole points, and these are doubles.")
    chances = ProbabilityTable.of(plan, points) if probability and points is not None else None
    model = CModel(plan, number, prefix, steps, points, layout, grids, chances, bool(missing))
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


@dataclass(frozen=True)
class Cells:
    """What an entry looks like in a table: the narrowest types that hold all of them."""

    cut: str
    points: str
    input: str | None  # None: the k-th entry is on the k-th input
    sign: int  # -1: points are what is taken away from the sum
    together: bool  # one table of structures, or one table for each of their members

    @property
    def bytes(self) -> int:
        """Of one entry."""
        sizes = [_SIZES[kind] for kind in (self.cut, self.points, self.input) if kind is not None]
        return -(-sum(sizes) // max(sizes)) * max(sizes) if self.together else sum(sizes)


def cells(programs: Programs, number: str, inputs: int) -> Cells:
    """For the entries of all sums, with their points as they are to be added."""
    entries = [own for _, part in programs for own in part]
    cuts = [own.cut for own in entries]
    points = [own.points for own in entries]
    sign = -1 if max(points) <= 0 else 1
    kind = "int32_t"
    if number == "int16":
        kind = _narrowest(int(min(cuts)), int(max(cuts)), ("uint8_t", "uint16_t", "int16_t"))
    added = [sign * own for own in points]
    in_order = len(programs) == 1 and [own.place for own in entries] == list(range(inputs))
    in_order = in_order and inputs >= (4 if kind == "uint8_t" else 5)  # the compiler writes shorter loops out
    found = Cells(
        kind,
        _narrowest(
            min(added), max(added), ("uint8_t", "int8_t", "uint16_t", "int16_t", "int32_t", "int64_t")
        ),
        None if in_order else "uint8_t" if inputs <= 256 else "uint16_t",
        sign,
        True,
    )
    apart = replace(found, together=False)
    return found if len(entries) * (found.bytes - apart.bytes) <= _APART[in_order] else apart


def _narrowest(least: int, largest: int, kinds: Sequence[str]) -> str:
    for kind in kinds:
        bits = 8 * _SIZES[kind]
        low, high = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if low <= least and largest <= high:
            return kind
    raise AssertionError(f"no type holds {least} to {largest}")


def estimate(programs: Programs, layout: str, number: str, inputs: int, turned: bool) -> int:
    """Bytes on a Cortex-M0 with GCC 12 and -Os, for the function that decides: what layout="auto" goes by.

    ``turned``: the sum is that of one score that decides. The figure is made to be an upper bound, close for
    tables of four entries and more; what the compiler makes of fewer is often smaller than can be foreseen.
    Floats that are compared in statements need helpers of 446 bytes.
    """
    entries = [own for _, part in programs for own in part]
    floats = number == "float"
    if not entries:
        return 16 + 12 * (len(programs) - 1)
    wide = sum(abs(own.points) > 2**31 for own in entries)
    if layout == "ifs" or len(entries) < 4:
        far = sum(not 0 <= own.cut <= 255 for own in entries) if not floats else 0
        large = sum(abs(own.points) > 255 for own in entries)
        places = len({own.place for own in entries})
        each = 17.5 if floats else 7.5
        found = int((98 if floats else 33) + each * len(entries)) + 3 * places + 6 * (far + large) + 10 * wide
        asked = questions(*programs[0]) if turned and layout == "ifs" else None
        if isinstance(asked, Question):
            used = set(asked.entries())
            far = 0 if floats else sum(not 0 <= own.cut <= 255 for own in used)
            found = 10 + (20 if floats else 6) * len(used) + (8 if floats else 4) * asked.count + 6 * far
        elif asked is not None:
            found = 4
        elif layout == "table":
            found += 16  # such short loops are written out
        several = 48 * (len(programs) - 1) if len(programs) > 1 else 0
        if layout == "ifs":
            return found + several + (446 if floats else 0)
    else:
        found = several = 0
    kinds = cells(programs, number, inputs)
    in_order = kinds.input is None
    if floats:
        code = 112 + (0 if kinds.together else 12)
    else:
        start = programs[0][0]
        load = 0 if 0 <= start <= 255 else 2 if -255 <= start < 0 else 6
        narrow = ("int8_t", "int16_t")  # these have no short instruction
        code = (40 if in_order else 44) + load + 2 * (kinds.cut in narrow) + 2 * (kinds.points in narrow)
        code = -(-code // 4) * 4 + (0 if kinds.together else _APART[in_order])
    code += 20 if kinds.points == "int64_t" else 0
    code += 92 + 8 * len(programs) if len(programs) > 1 else 0
    return max(code + kinds.bytes * len(entries), found + several)


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

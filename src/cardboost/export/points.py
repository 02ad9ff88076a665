"""Scores in whole points, with a proof that no decision changes.

Every level is rounded to points, so integer sums need no particular order and no floating-point unit.
Rounding can change the sign of a score near 0, or the order of two classes; whether it does is found by going
through everything that the inputs can add up to.

Points of 8 bits are for decisions between two classes, and their whole intercept is one that separates these.
If all weights are whole multiples of a unit, a point is twice that unit (a stump is -1 or 1, so every step is
two weights high), and the points are those of the card. Otherwise several values of a point are tried. The
proof goes through all sums, or for every total of points through the least and the largest score that has it.

Wider points are powers of two, and the intercept is rounded like everything else. It is proven by

* up to 2^20 sums: all of them, those of the model to the bit;
* more, for one score: two halves of the inputs, whose sums are sorted; the pair that adds up closest to 0 is
  farther from 0 than all rounding errors together, or nothing is proven.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardboost.export.plan import Array, Plan, Steps

Integers = NDArray[np.int64]
MAX_COMBINATIONS = 2**20
#: what no sum may exceed, by the width of a difference of two levels
MOST = {8: 2**31 - 1, 16: 2**31 - 1, 32: 2**31 - 1, 64: 2**58}
WIDTHS = (8, 16, 32, 64)
_MOST_BITS = 900
_UNIT = 2.0**-53
_FEW_COMBINATIONS = 2**16
_MOST_TOTALS = 2**22
_SMALL_START = 255  # what one instruction of a small processor loads


@dataclass(frozen=True, eq=False)
class Points:
    """Levels of all inputs in points, for steps with the same cuts."""

    value: float  # of a point, in units of the score
    width: int  # bits of a difference of two levels of one input; 64 has sums of 64 bits, all others of 32
    intercepts: Integers
    levels: tuple[Integers, ...]
    missing: tuple[Integers, ...]
    proven: bool  # every decision is that of the model
    error: float  # the largest difference between points and score, in units of the score

    @property
    def lowest(self) -> Integers:
        """The least possible total of every score."""
        return self.intercepts + sum(np.minimum(x.min(axis=0), m) for x, m in self._pairs())

    @property
    def highest(self) -> Integers:
        """The largest possible total of every score."""
        return self.intercepts + sum(np.maximum(x.max(axis=0), m) for x, m in self._pairs())

    @property
    def reach(self) -> int:
        """No sum of differences of levels, in any order, is larger than this."""
        total = np.abs(self.intercepts)
        for x, m in self._pairs():
            total = total + np.abs(x[0]) + np.abs(np.diff(x, axis=0)).sum(axis=0)
            total = total + np.abs(m - x).max(axis=0)
        return int(total.max())

    def fits(self, most: int) -> bool:
        """Whether differences keep to the width, and sums to ``most``."""
        spans = [int(np.ptp(np.vstack([x, m]), axis=0).max()) for x, m in self._pairs()]
        return max([*spans, 0]) < 2 ** (self.width - 1) and self.reach <= most

    def _pairs(self) -> list[tuple[Integers, Integers]]:
        return list(zip(self.levels, self.missing, strict=True))


def find_points(
    plan: Plan, steps: Sequence[Steps], widths: Sequence[int] = WIDTHS, most: int | None = None
) -> Points:
    """Points of the smallest width that keeps every decision; if none does, those of 32 bits.

    ``most`` is what no sum may exceed. If 8 is among the widths, so are points of the unit of the weights; it
    is left out where scores are more than a decision.
    """
    found: dict[int, Points] = {}
    if 8 in widths and plan.decides and plan.n_scores == 1:
        coarse = _coarse(plan, steps, [width for width in widths if width < 64])
        if coarse is not None:
            return coarse
    for width in widths:
        if width == 8 and (plan.n_scores == 1 or not plan.decides):
            continue
        found[width] = _rounded(plan, steps, width, MOST[width] if most is None else most)
        if found[width].proven:
            return found[width]
    return found.get(32) or found[max(found)]


# ------------------------------------------------------------------------------------------------ coarse


def _coarse(plan: Plan, steps: Sequence[Steps], widths: Sequence[int]) -> Points | None:
    """Points that only have to keep the decisions between two classes; None if none are found."""
    if plan.unit is not None:
        for width in widths:
            own = _separated(plan, steps, width, 2 * plan.unit, MAX_COMBINATIONS)
            if own is not None:
                return own
    if 8 not in widths:
        return None
    largest = max([float(np.ptp(own.values(), axis=0).max()) for own in steps], default=0.0)
    if not 0 < largest < math.inf:
        return None
    values = [largest / k for k in range(127, 7, -2) if largest / k > 0]
    spans = [sum(float(np.rint(np.ptp(own.values()) / value)) for own in steps) for value in values]
    for value, _ in sorted(zip(values, spans, strict=True), key=lambda own: own[1] > _SMALL_START):
        own = _separated(plan, steps, 8, value, _FEW_COMBINATIONS)
        if own is not None:
            return own
    return None


def _separated(plan: Plan, steps: Sequence[Steps], width: int, value: float, room: int) -> Points | None:
    """Points of a given value with the intercept that keeps every decision; None if there is no such one.

    Levels are counted from the first of their input. Sums of the model are compared to the bit if there are
    at most ``room`` of them, and otherwise by bounds.
    """
    first = [own.levels[0] for own in steps]
    exact = [np.vstack([own.levels, own.missing]) for own in steps]
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = [np.rint((own - start) / value) for own, start in zip(exact, first, strict=True)]
    if any(not (np.abs(own) < 2 ** (width - 1)).all() for own in ratio):
        return None
    whole = [own.astype(np.int64) for own in ratio]
    size = abs(float(plan.intercepts[0])) + sum(float(np.abs(own).max()) for own in exact)
    start = float(plan.intercepts[0]) + float(sum(own[0] for own in first))
    rounding = 0.0 if _sums_are_exact(plan, exact) else 8 * (len(steps) + 2) * _UNIT * size
    pairs = [_distinct_pairs(own, q) for own, q in zip(exact, whole, strict=True)]
    totals = _totals(pairs, start, [own[0] for own in first])
    if totals is None:
        return None
    reached, low, high = totals
    if math.prod(len(own) for own, _ in pairs) <= room:
        score, total = _all_sums(plan, [(own[:, None], q[:, None]) for own, q in pairs], np.zeros(1, int))
        above, below = total[score > 0], total[~(score > 0)]
    else:
        positive, negative = low > rounding, high <= -rounding
        if not (positive | negative).all():
            return None
        above, below = reached[positive], reached[negative]
    if len(above) and len(below) and above.min() <= below.max():
        return None
    middle = float(np.median([(low - value * reached).min(), (high - value * reached).max()])) / value
    least = 1 - int(above.min()) if len(above) else -math.inf
    intercept = int(min(max(round(middle), least), -int(below.max()) if len(below) else math.inf))
    known = value * (reached + intercept)
    error = float(np.maximum(np.abs(known - low), np.abs(known - high)).max())
    error = (error + 8 * (len(steps) + 2) * _UNIT * size) * (1 + 1e-9)
    found = Points(
        value,
        width,
        np.array([intercept]),
        tuple(own[:-1] for own in whole),
        tuple(own[-1] for own in whole),
        True,
        error,
    )
    return found if found.fits(MOST[width]) else None


def _distinct_pairs(exact: Array, whole: Integers) -> tuple[Array, Integers]:
    _, first = np.unique(exact[:, 0], return_index=True)
    return exact[first, 0], whole[first, 0]


def _totals(
    pairs: Sequence[tuple[Array, Integers]], start: float, first: Sequence[float]
) -> tuple[Integers, Array, Array] | None:
    """Every total of points that can be reached, and the least and the largest score that has it."""
    lowest = sum(int(whole.min()) for _, whole in pairs)
    size = sum(int(whole.max()) for _, whole in pairs) - lowest + 1
    if size > _MOST_TOTALS:
        return None
    low, high = np.full(size, math.inf), np.full(size, -math.inf)
    low[0] = high[0] = start
    used = 1
    for (exact, whole), base in zip(pairs, first, strict=True):
        least = int(whole.min())
        more = used + int(whole.max()) - least
        new_low, new_high = np.full(size, math.inf), np.full(size, -math.inf)
        for level, step in zip((exact - base).tolist(), (whole - least).tolist(), strict=True):
            part = slice(step, step + used)
            np.minimum(new_low[part], low[:used] + level, out=new_low[part])
            np.maximum(new_high[part], high[:used] + level, out=new_high[part])
        low, high, used = new_low, new_high, more
    reached = np.flatnonzero(low < math.inf)
    return reached + lowest, low[reached], high[reached]


def _sums_are_exact(plan: Plan, exact: Sequence[Array]) -> bool:
    """Whether all numbers are on a grid of powers of two that is coarse enough for sums without rounding."""
    values = np.concatenate([plan.intercepts, *(own.ravel() for own in exact)])
    values = np.abs(values[values != 0])
    if not len(values):
        return True
    top = math.frexp(float(values.sum()))[1] + 3
    bottom = top - 53
    if bottom < -1000:
        return False
    return bool((np.fmod(values, 2.0**bottom) == 0).all())


# ------------------------------------------------------------------------------------------------ fine


def _rounded(plan: Plan, steps: Sequence[Steps], width: int, most: int) -> Points:
    spans = [float(np.ptp(own.values(), axis=0).max()) for own in steps]
    largest = max([*spans, 0.0])
    total = float(np.abs(plan.intercepts).max()) + sum(float(np.abs(own.values()).max()) for own in steps)
    bits = _MOST_BITS if max(largest, total) > 0 else 0
    for size, room in ((largest, 2 ** (width - 1) - 1), (total, most)):
        if size > 0:  # at least the largest number of bits that can do
            bits = min(bits, math.frexp(room)[1] - math.frexp(size)[1] + 1)
    while not (points := _at(plan, steps, width, bits)).fits(most):
        bits -= 1
    return replace(points, proven=not plan.decides or _same_decisions(plan, steps, points))


def _at(plan: Plan, steps: Sequence[Steps], width: int, bits: int) -> Points:
    def whole(values: Array) -> Integers:
        return np.rint(np.ldexp(values, bits)).astype(np.int64)

    intercepts = whole(plan.intercepts)
    levels = tuple(whole(own.levels) for own in steps)
    missing = tuple(whole(own.missing) for own in steps)
    off = np.abs(intercepts - np.ldexp(plan.intercepts, bits))
    for own, x, m in zip(steps, levels, missing, strict=True):
        scaled = np.ldexp(np.vstack([own.levels, own.missing]), bits)
        off = off + np.abs(np.vstack([x, m]) - scaled).max(axis=0)
    size = np.abs(plan.intercepts) + sum(np.abs(own.values()).max(axis=0) for own in steps)
    sums = (len(steps) + 1) * _UNIT * float(size.max())  # the model's own rounding
    error = (math.ldexp(float(off.max()), -bits) + sums) * (1 + 1e-9)
    return Points(2.0**-bits, width, intercepts, levels, missing, False, error)


# ------------------------------------------------------------------------------------------------ proof


def _same_decisions(plan: Plan, steps: Sequence[Steps], points: Points) -> bool:
    values = [_distinct(own, x, m) for own, x, m in zip(steps, points.levels, points.missing, strict=True)]
    if math.prod(len(own) for own, _ in values) * plan.n_scores <= MAX_COMBINATIONS:
        return _all_agree(plan, values, points.intercepts)
    return plan.n_scores == 1 and _far_from_zero(plan, [own[:, 0] for own, _ in values], points.error)


def _distinct(steps: Steps, levels: Integers, missing: Integers) -> tuple[Array, Integers]:
    exact = np.vstack([steps.levels, steps.missing])
    _, first = np.unique(exact, axis=0, return_index=True)
    return exact[first], np.vstack([levels, missing])[first]


def _all_agree(plan: Plan, values: Sequence[tuple[Array, Integers]], intercepts: Integers) -> bool:
    score, total = _all_sums(plan, values, intercepts)
    if plan.n_scores == 1:
        return bool(((score > 0) == (total > 0)).all())
    return bool((np.argmax(score, axis=1) == np.argmax(total, axis=1)).all())


def _all_sums(
    plan: Plan, values: Sequence[tuple[Array, Integers]], intercepts: Integers
) -> tuple[Array, Integers]:
    """Every combination, the sums of the model in its own order."""
    score, total = plan.intercepts[None, :], intercepts[None, :]
    for exact, whole in values:
        score = (score[:, None, :] + exact[None, :, :]).reshape(-1, plan.n_scores)
        total = (total[:, None, :] + whole[None, :, :]).reshape(-1, plan.n_scores)
    return score, total


def _far_from_zero(plan: Plan, values: Sequence[Array], error: float) -> bool:
    halves = [np.zeros(1), np.zeros(1)]
    for own in sorted(values, key=len, reverse=True):
        k = 0 if len(halves[0]) <= len(halves[1]) else 1
        if len(halves[k]) * len(own) > 4 * MAX_COMBINATIONS:
            return False
        halves[k] = np.unique(halves[k][:, None] + own[None, :])
    one, two = halves[0] + plan.intercepts[0], np.sort(-halves[1])
    at = np.searchsorted(two, one)
    near = np.minimum(
        np.abs(one - two[np.minimum(at, len(two) - 1)]), np.abs(one - two[np.maximum(at - 1, 0)])
    )
    size = abs(float(plan.intercepts[0])) + sum(float(np.abs(own).max()) for own in values)
    return bool(near.min() > error + 4 * (len(values) + 2) * _UNIT * size)

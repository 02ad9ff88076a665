"""Scores in whole points, with a proof that no decision changes.

A point is a power of two. Every level is rounded to points, so integer sums need no particular order and no
floating-point unit. Rounding can change the sign of a score near 0, or the order of two classes; whether it
does is found by going through everything that the inputs can add up to:

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
MOST = {16: 2**31 - 1, 32: 2**31 - 1, 64: 2**58}
_MOST_BITS = 900
_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Points:
    """Levels of all inputs in points of 2**-bits, for steps with the same cuts."""

    bits: int
    width: int  # bits of a difference of two levels of one input; 16 and 32 have sums of 32 bits, 64 of 64
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
    plan: Plan, steps: Sequence[Steps], widths: Sequence[int] = (16, 32, 64), most: int | None = None
) -> Points:
    """Points of the smallest width that keeps every decision; if none does, those of 32 bits.

    ``most`` is what no sum may exceed.
    """
    found = {}
    for width in widths:
        found[width] = _rounded(plan, steps, width, MOST[width] if most is None else most)
        if found[width].proven:
            return found[width]
    return found[32]


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
    return Points(bits, width, intercepts, levels, missing, False, error)


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
    """Every combination, the sums of the model in its own order."""
    score, total = plan.intercepts[None, :], intercepts[None, :]
    for exact, whole in values:
        score = (score[:, None, :] + exact[None, :, :]).reshape(-1, plan.n_scores)
        total = (total[:, None, :] + whole[None, :, :]).reshape(-1, plan.n_scores)
    if plan.n_scores == 1:
        return bool(((score > 0) == (total > 0)).all())
    return bool((np.argmax(score, axis=1) == np.argmax(total, axis=1)).all())


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

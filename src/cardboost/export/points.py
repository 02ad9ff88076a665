"""Scores in whole points, with a proof that no decision changes.

Every level is rounded to points, so integer sums need no particular order and no floating-point unit.
Rounding can change the sign of a score near 0, or the order of two classes; whether it does is decided by
enumeration of all sums that the inputs can have.

Points of 8 bits are for decisions between two classes, and their whole intercept is one that separates these.
If all weights are whole multiples of a unit, a point is twice that unit (a stump is -1 or 1, so every step is
two weights high), and the points are those of the card. Otherwise several values of a point are tried. The
proof goes through all sums, or for every total of points through the least and the largest score that has it.

The points of a scorecard are taken as they are, so that totals are those of the card.

Wider points are powers of two, and the intercept is rounded like everything else. It is proven by

* up to 2^20 sums: all of them, those of the model to the bit;
* more, for one score: two halves of the inputs, whose sums are sorted; the pair that adds up closest to 0 is
  farther from 0 than all rounding errors together, or nothing is proven.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.export.plan import Array, Plan, Steps
from cardboost.model.base import logistic
from cardboost.model.ensemble import LOG_ODDS
from cardboost.model.scorecard import Scorecard

Integers = NDArray[np.int64]
MAX_COMBINATIONS = 2**20  # sums that a proof enumerates
_MAX_COMBINATIONS_PER_VALUE = 2**16  # where many values of a point are tried
_MAX_TOTALS = 2**22  # different totals of points that a proof goes through
#: the largest sum, by the width of a difference of two levels
MAX_SUM = {8: 2**31 - 1, 16: 2**31 - 1, 32: 2**31 - 1, 64: 2**58}
WIDTHS = (8, 16, 32, 64)
_MAX_BITS = 900  # of the power of two that a point is a part of
_ROUNDING = 2.0**-53  # relative, of a sum of doubles
PROBABILITY_UNIT = 10_000  # probabilities are in ten-thousandths
_SEGMENTS = 64  # of the table of probabilities, about
_FARTHEST_LOG_ODDS = 10.0  # 1 / (1 + exp(-10)) is 1 up to half a ten-thousandth
_LARGEST_IMMEDIATE = 255  # what one instruction of a small processor loads


@dataclass(frozen=True, eq=False)
class WholePoints:
    """The values of all inputs in points, for steps with the same cuts."""

    value: float  # of a point, in units of the score
    width: int  # bits of a difference of two levels of one input; 64 has sums of 64 bits, all others of 32
    intercepts: Integers
    steps: tuple[Steps, ...]  # as those of the model, in points
    proven: bool  # every decision is that of the model
    error: float  # the largest difference between points and score, in units of the score
    origin: float = 0.0  # the score that a total of 0 stands for
    threshold: int = 0  # larger totals mean the second of two classes

    @property
    def lowest(self) -> Integers:
        """The least possible total of every score."""
        return self.intercepts + sum(step.table.min(axis=0) for step in self.steps)

    @property
    def highest(self) -> Integers:
        """The largest possible total of every score."""
        return self.intercepts + sum(step.table.max(axis=0) for step in self.steps)

    @property
    def reach(self) -> int:
        """No sum of differences of levels, in any order, is larger than this."""
        total = np.abs(self.intercepts - self.threshold)
        for step in self.steps:
            total = total + np.abs(step.levels[0]) + np.abs(np.diff(step.levels, axis=0)).sum(axis=0)
            total = total + np.abs(step.missing - step.levels).max(axis=0)
        return int(total.max())

    def fits(self, most: int) -> bool:
        """Whether differences keep to the width, and sums to ``most``."""
        return _largest_span(self.steps) < 2 ** (self.width - 1) and self.reach <= most


def find_points(
    plan: Plan,
    steps: Sequence[Steps],
    widths: Sequence[int] = WIDTHS,
    most: int | None = None,
    exact: bool = False,
) -> WholePoints:
    """Points of the smallest width that keeps every decision; if none does, those of 32 bits.

    With ``exact`` these are refused. ``most`` is what no sum may exceed. If 8 is among the widths, so are
    points of the unit of the weights; it is left out where scores are more than a decision.
    """
    by_width: dict[int, WholePoints] = {}
    if plan.card is not None:
        return _of_card(plan, plan.card, steps, widths, most)
    if 8 in widths and plan.decides and plan.n_scores == 1:
        coarse = _coarse(plan, steps, [width for width in widths if width < 64])
        if coarse is not None:
            return coarse
    for width in widths:
        if width == 8 and (plan.n_scores == 1 or not plan.decides):
            continue
        by_width[width] = _rounded(plan, steps, width, MAX_SUM[width] if most is None else most)
        if by_width[width].proven:
            return by_width[width]
    if exact:
        several = "scores of several classes in whole points cannot be proven to decide as the model does"
        one = (
            "some score is too close to 0, or there are too many terms, to prove that whole points decide as "
            "the model does"
        )
        raise ValueError(f"exact: {several if plan.n_scores > 1 else one}; exact=False accepts rounding.")
    return by_width.get(32) or by_width[max(by_width)]


# ------------------------------------------------------------------------------------------------ scorecards


def _of_card(
    plan: Plan, card: Scorecard, steps: Sequence[Steps], widths: Sequence[int], most: int | None
) -> WholePoints:
    """The points of a scorecard, in the least of the widths that holds them."""
    zero = float(card.log_odds(0)) / LOG_ODDS[plan.loss]
    for width in widths:
        limit = card.threshold - 1
        points = WholePoints(card.point, width, plan.intercepts, tuple(steps), True, 0.0, zero, limit)
        if points.fits(MAX_SUM[width] if most is None else most):
            return points
    raise ValueError("scorecard: its totals are too large for this format.")


# ------------------------------------------------------------------------------------------------ coarse


def _coarse(plan: Plan, steps: Sequence[Steps], widths: Sequence[int]) -> WholePoints | None:
    """Points that only keep the decisions between two classes; None if there are none."""
    if plan.unit is not None:
        for width in widths:
            points = _separated(plan, steps, width, 2 * plan.unit, MAX_COMBINATIONS)
            if points is not None:
                return points
    largest = _largest_span(steps)
    if not 0 < largest < math.inf:
        return None
    values = [largest / k for k in range(127, 7, -2) if largest / k > 0]

    def is_long(value: float) -> bool:
        return sum(float(np.rint(np.ptp(step.table) / value)) for step in steps) > _LARGEST_IMMEDIATE

    for value in sorted(values, key=is_long):
        points = _separated(plan, steps, 8, value, _MAX_COMBINATIONS_PER_VALUE)
        if points is not None:
            return points
    return None


def _largest_span(steps: Sequence[Steps]) -> float:
    """The largest difference between two values of an input in one score."""
    return max([float(np.ptp(step.table, axis=0).max()) for step in steps], default=0.0)


def _separated(plan: Plan, steps: Sequence[Steps], width: int, value: float, room: int) -> WholePoints | None:
    """Points of one value with the intercept that keeps every decision; None if there is no such one.

    Levels are counted from the first of their input. Sums of the model are compared to the bit if there are
    at most ``room`` of them, and otherwise by bounds.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        ratios = [np.rint((step.table - step.table[0]) / value) for step in steps]
    if any(not (np.abs(ratio) < 2 ** (width - 1)).all() for ratio in ratios):
        return None
    whole = _in_points(steps, ratios)
    first = [float(step.table[0, 0]) for step in steps]
    largest_rounding = 8 * (len(steps) + 2) * _ROUNDING * float(_largest_sums(plan, steps)[0])
    rounding = 0.0 if _sums_are_exact(plan, steps) else largest_rounding
    pairs = _distinct(steps, whole)
    totals = _totals(pairs, float(plan.intercepts[0]) + sum(first), first)
    if totals is None:
        return None
    reached, low, high = totals
    if math.prod(len(exact) for exact, _ in pairs) <= room:
        score, total = _all_sums(plan, pairs, np.zeros(1, int))
        above, below = total[score > plan.threshold], total[~(score > plan.threshold)]
    else:
        positive, negative = low > plan.threshold + rounding, high <= plan.threshold - rounding
        if not (positive | negative).all():
            return None
        above, below = reached[positive], reached[negative]
    if len(above) and len(below) and above.min() <= below.max():
        return None
    middle = float(np.median([(low - value * reached).min(), (high - value * reached).max()]))
    middle = (middle - plan.threshold) / value
    least = 1 - int(above.min()) if len(above) else -math.inf
    intercept = int(min(max(round(middle), least), -int(below.max()) if len(below) else math.inf))
    rounded = plan.threshold + value * (reached + intercept)
    error = float(np.maximum(np.abs(rounded - low), np.abs(rounded - high)).max())
    error = (error + largest_rounding) * (1 + 1e-9)
    points = WholePoints(value, width, np.array([intercept]), whole, True, error, plan.threshold)
    return points if points.fits(MAX_SUM[width]) else None


def _largest_sums(plan: Plan, steps: Sequence[Steps]) -> Array:
    """What no sum of the model, less the threshold, exceeds, for every score."""
    return (
        np.abs(plan.intercepts) + abs(plan.threshold) + sum(np.abs(step.table).max(axis=0) for step in steps)
    )


def _in_points(steps: Sequence[Steps], tables: Sequence[Array]) -> tuple[Steps, ...]:
    """Steps with the same cuts and other tables, of whole numbers."""
    return tuple(Steps(step.cuts, table.astype(np.int64)) for step, table in zip(steps, tables, strict=True))


def _distinct(steps: Sequence[Steps], points: Sequence[Steps]) -> list[tuple[Array, Integers]]:
    """For every input its distinct rows of values, and their points."""
    pairs = []
    for step, whole in zip(steps, points, strict=True):
        first = np.unique(step.table + 0.0, axis=0, return_index=True)[1]  # -0.0 is 0.0
        pairs.append((step.table[first], whole.table[first]))
    return pairs


def _totals(
    pairs: Sequence[tuple[Array, Integers]], start: float, first: Sequence[float]
) -> tuple[Integers, Array, Array] | None:
    """Every total of points that can be reached, and the least and the largest score that has it."""
    lowest = sum(int(whole.min()) for _, whole in pairs)
    size = sum(int(whole.max()) for _, whole in pairs) - lowest + 1
    if size > _MAX_TOTALS:
        return None
    low, high = np.full(size, math.inf), np.full(size, -math.inf)
    low[0] = high[0] = start
    used = 1
    for (exact, whole), base in zip(pairs, first, strict=True):
        least = int(whole.min())
        reachable = used + int(whole.max()) - least
        new_low, new_high = np.full(size, math.inf), np.full(size, -math.inf)
        for level, step in zip((exact[:, 0] - base).tolist(), (whole[:, 0] - least).tolist(), strict=True):
            part = slice(step, step + used)
            np.minimum(new_low[part], low[:used] + level, out=new_low[part])
            np.maximum(new_high[part], high[:used] + level, out=new_high[part])
        low, high, used = new_low, new_high, reachable
    reached = np.flatnonzero(low < math.inf)
    return reached + lowest, low[reached], high[reached]


def _sums_are_exact(plan: Plan, steps: Sequence[Steps]) -> bool:
    """Whether all numbers are on a grid of powers of two that is coarse enough for sums without rounding."""
    values = np.concatenate([plan.intercepts, *(step.table.ravel() for step in steps)])
    values = np.abs(values[values != 0])
    if not len(values):
        return True
    top = math.frexp(float(values.sum()))[1] + 3
    bottom = top - 53
    if bottom < -1000:
        return False
    return bool((np.fmod(values, 2.0**bottom) == 0).all())


# ------------------------------------------------------------------------------------------------ fine


def _rounded(plan: Plan, steps: Sequence[Steps], width: int, most: int) -> WholePoints:
    largest = _largest_span(steps)
    above = plan.intercepts - plan.threshold
    total = float(np.abs(above).max()) + sum(float(np.abs(step.table).max()) for step in steps)
    bits = _MAX_BITS if max(largest, total) > 0 else 0
    for size, room in ((largest, 2 ** (width - 1) - 1), (total, most)):
        if size > 0:  # at least the largest number of bits that can do
            bits = min(bits, math.frexp(room)[1] - math.frexp(size)[1] + 1)
    while not (points := _with_bits(plan, steps, width, bits)).fits(most):
        bits -= 1
    return replace(points, proven=not plan.decides or _same_decisions(plan, steps, points))


def _with_bits(plan: Plan, steps: Sequence[Steps], width: int, bits: int) -> WholePoints:
    above = plan.intercepts - plan.threshold
    scaled = [np.ldexp(values, bits) for values in (above, *(step.table for step in steps))]
    intercepts, *tables = map(np.rint, scaled)
    difference = np.abs(intercepts - scaled[0])
    for table, exact in zip(tables, scaled[1:], strict=True):
        difference = difference + np.abs(table - exact).max(axis=0)
    # rounding of the sums of the model
    sums = (len(steps) + 1 + bool(plan.threshold)) * _ROUNDING * float(_largest_sums(plan, steps).max())
    error = (math.ldexp(float(difference.max()), -bits) + sums) * (1 + 1e-9)
    return WholePoints(
        2.0**-bits,
        width,
        intercepts.astype(np.int64),
        _in_points(steps, tables),
        False,
        error,
        plan.threshold,
    )


# ------------------------------------------------------------------------------------------------ proof


def _same_decisions(plan: Plan, steps: Sequence[Steps], points: WholePoints) -> bool:
    """Whether points are proven to decide as the model does."""
    pairs = _distinct(steps, points.steps)
    if math.prod(len(exact) for exact, _ in pairs) * plan.n_scores > MAX_COMBINATIONS:
        return plan.n_scores == 1 and _far_from_zero(plan, steps, points.error)
    score, total = _all_sums(plan, pairs, points.intercepts)
    if plan.n_scores == 1:
        return bool(((score > plan.threshold) == (total > 0)).all())
    return bool((np.argmax(score, axis=1) == np.argmax(total, axis=1)).all())


def _all_sums(
    plan: Plan, values: Sequence[tuple[Array, Integers]], intercepts: Integers
) -> tuple[Array, Integers]:
    """The scores and totals of every combination, scores summed in the order of the model."""
    score, total = plan.intercepts[None, :], intercepts[None, :]
    for exact, whole in values:
        score = (score[:, None, :] + exact[None, :, :]).reshape(-1, plan.n_scores)
        total = (total[:, None, :] + whole[None, :, :]).reshape(-1, plan.n_scores)
    return score, total


def _far_from_zero(plan: Plan, steps: Sequence[Steps], error: float) -> bool:
    """Whether every score is farther from the threshold than all rounding errors together."""
    halves = [np.zeros(1), np.zeros(1)]
    for values in sorted((np.unique(step.table) for step in steps), key=len, reverse=True):
        k = 0 if len(halves[0]) <= len(halves[1]) else 1
        if len(halves[k]) * len(values) > 4 * MAX_COMBINATIONS:
            return False
        halves[k] = np.unique(halves[k][:, None] + values[None, :])
    one, two = halves[0] + (plan.intercepts[0] - plan.threshold), np.sort(-halves[1])
    index = np.searchsorted(two, one)
    near = np.minimum(
        np.abs(one - two[np.minimum(index, len(two) - 1)]), np.abs(one - two[np.maximum(index - 1, 0)])
    )
    size = float(_largest_sums(plan, steps)[0])
    return bool(near.min() > error + 4 * (len(steps) + 2) * _ROUNDING * size)


# ------------------------------------------------------------------------------------------------ probability


@dataclass(frozen=True, eq=False)
class ProbabilityTable:
    """Probabilities of totals of points, read with straight lines between the entries of a small table.

    ``entries`` are 2**(shift + fraction) points apart, from the total ``first`` upwards. Without one they
    begin at 0, which is a probability of one half, and negative totals mirror the positive ones.
    """

    shift: int  # bits of a total that are dropped
    fraction: int  # bits between two entries
    entries: NDArray[np.int64]
    error: float  # the largest, against the probability of the model
    first: int | None = None

    @classmethod
    def of(cls, plan: Plan, points: WholePoints) -> ProbabilityTable:
        """The table for a classifier of two classes."""
        if plan.log_odds is None or plan.n_scores != 1:
            raise ValueError("probability: only classifiers for two classes have a table of probabilities.")
        factor = LOG_ODDS[plan.loss]
        if points.origin != 0:
            return cls._from_the_lowest(factor, points)
        top = int(max(abs(points.lowest[0]), abs(points.highest[0])))
        far, per_point = max(top, 1), factor * points.value  # log-odds
        if per_point > 0:
            far = min(far, math.ceil(_FARTHEST_LOG_ODDS / per_point))
        step = max(0, (far // _SEGMENTS).bit_length())  # entries are 2**step points apart
        fraction = min(step, 8)
        entries = far // 2**step + 2
        chance = 1 / (1 + np.exp(-np.arange(entries) * 2.0**step * per_point))
        table = cls(step - fraction, fraction, np.rint(PROBABILITY_UNIT * chance).astype(np.int64), 0.0)
        last = min(top >> table.shift, entries << fraction)  # behind the table its value is constant
        cells = np.arange(last + 1, dtype=np.int64) << table.shift
        values = table.evaluate(cells) / PROBABILITY_UNIT
        edges = (cells, np.minimum(cells + (1 << table.shift) - 1, top))  # it rises within a cell
        worst = [float(np.abs(values - 1 / (1 + np.exp(-edge * per_point))).max()) for edge in edges]
        end = 1 / (1 + math.exp(-min(top * per_point, 700.0)))
        worst.append(abs(end - float(table.evaluate(np.array([top]))[0]) / PROBABILITY_UNIT))
        return replace(table, error=min(1.0, max(worst) + factor * points.error / 4))

    @classmethod
    def _from_the_lowest(cls, factor: float, points: WholePoints) -> ProbabilityTable:
        """The table where a total of 0 is no probability of one half."""
        per_point, zero = factor * points.value, factor * points.origin  # log-odds

        def chance(totals: NDArray[Any]) -> Array:
            return np.asarray(logistic(zero + per_point * totals.astype(np.float64)))

        lowest, highest = int(points.lowest[0]), int(points.highest[0])
        near = [(end * _FARTHEST_LOG_ODDS - zero) / per_point for end in (-1.0, 1.0)]
        first = min(max(lowest, math.floor(near[0])), highest)
        last = max(min(highest, math.ceil(near[1])), first)
        step = max(0, ((last - first) // (2 * _SEGMENTS)).bit_length())
        fraction = min(step, 8)
        count = ((last - first) >> step) + 2
        entries = np.rint(PROBABILITY_UNIT * chance(first + (np.arange(count) << step))).astype(np.int64)
        table = cls(step - fraction, fraction, entries, 0.0, first)
        cells = np.arange(min((highest - first) >> table.shift, count << fraction) + 1) << table.shift
        ends = [first + cells, np.minimum(first + cells + (1 << table.shift) - 1, highest)]
        totals = np.concatenate([*ends, [lowest, highest]])
        worst = np.abs(table.evaluate(totals) / PROBABILITY_UNIT - chance(totals)).max()
        return replace(table, error=min(1.0, float(worst) + factor * points.error / 4))

    def evaluate(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ten-thousandths of totals, in whole numbers as the C code computes them."""
        mirrored = self.first is None
        size = (np.abs(totals) if self.first is None else np.maximum(totals - self.first, 0)) >> self.shift
        index = size >> self.fraction
        last = len(self.entries) - 1
        low, high = self.entries[np.minimum(index, last)], self.entries[np.minimum(index + 1, last)]
        part = size & ((1 << self.fraction) - 1)
        value = low + (((high - low) * part + ((1 << self.fraction) >> 1)) >> self.fraction)
        return np.where(mirrored & (totals < 0), PROBABILITY_UNIT - value, value)

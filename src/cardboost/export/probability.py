"""Probabilities of whole points: a small table, read with straight lines between its entries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost.export.plan import Plan
from cardboost.export.points import Points

UNIT = 10_000  # one is a ten-thousandth
_SEGMENTS = 64
_FAR = 10.0  # 1 / (1 + exp(-10)) is 1 up to half a ten-thousandth


@dataclass(frozen=True, eq=False)
class ProbabilityTable:
    """Ten-thousandths for totals of points: ``entries`` are 2**(shift + fraction) points apart, from 0
    upwards.
    """

    shift: int  # bits of a total that are dropped
    fraction: int  # bits between two entries
    entries: NDArray[np.int64]
    error: float  # the largest, against the probability that the model gives

    @classmethod
    def of(cls, plan: Plan, points: Points) -> ProbabilityTable:
        factor = plan.probability_factor
        if factor is None or plan.n_scores != 1:
            raise ValueError("probability: only classifiers for two classes have a table of probabilities.")
        far = max(abs(int(points.lowest[0])), abs(int(points.highest[0])), 1)
        per_point = factor * points.value  # of what the exponential is taken of
        far = min(far, math.ceil(_FAR / per_point) if per_point > 0 else far)
        step = max(0, (far // _SEGMENTS).bit_length())  # entries are 2**step points apart
        fraction = min(step, 8)
        entries = far // 2**step + 2
        chance = 1 / (1 + np.exp(-np.arange(entries) * 2.0**step * per_point))
        own = cls(step - fraction, fraction, np.rint(UNIT * chance).astype(np.int64), 0.0)
        top = int(max(abs(points.lowest[0]), abs(points.highest[0])))
        last = min(top >> own.shift, entries << fraction)  # behind the table nothing changes but the truth
        cells = np.arange(last + 1, dtype=np.int64) << own.shift
        found = own.evaluate(cells) / UNIT
        worst = 0.0
        for edge in (cells, np.minimum(cells + (1 << own.shift) - 1, top)):  # the truth rises within a cell
            worst = max(worst, float(np.abs(found - 1 / (1 + np.exp(-edge * per_point))).max()))
        end = 1 / (1 + math.exp(-min(top * per_point, 700.0)))
        worst = max(worst, abs(end - float(own.evaluate(np.array([top]))[0]) / UNIT))
        return cls(own.shift, own.fraction, own.entries, min(1.0, worst + factor * points.error / 4))

    def evaluate(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ten-thousandths of totals, in whole numbers as the C code computes them."""
        size = np.abs(totals) >> self.shift
        at = size >> self.fraction
        last = len(self.entries) - 1
        low, high = self.entries[np.minimum(at, last)], self.entries[np.minimum(at + 1, last)]
        part = size & ((1 << self.fraction) - 1)
        found = low + (((high - low) * part + ((1 << self.fraction) >> 1)) >> self.fraction)
        return np.where(totals < 0, UNIT - found, found)

"""Row weights as ``count * factor``.

Counts multiply after rounding to fixed point, so weight 2 gives the same bits as the row twice; factors
carry everything that is not a whole number. Totals are independent of the order of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardboost._kernels import fixed_scale

_COUNT_LIMIT = 2.0**53
#: rows in all, counts included: each loses up to half a unit to rounding, which must not show in nine digits
_MOST_COUNTED = 2.0**26


@dataclass(frozen=True)
class RowWeights:
    """Positive weights of the rows that take part; ``None`` stands for all ones.

    Weights are kept up to a common factor; ``unit`` is what a weight of 1 here weighs in the user's terms.
    """

    n_rows: int
    count: NDArray[np.int64] | None
    factor: NDArray[np.float64] | None
    total_count: float
    total: float
    largest_factor: float
    unit: float = 1.0

    @classmethod
    def make(
        cls,
        n_rows: int,
        weights: NDArray[np.float64] | None,
        factor: NDArray[np.float64] | None = None,
    ) -> RowWeights:
        """From positive raw ``weights`` and an optional further ``factor`` per row (class weights)."""
        count, unit = None, 1.0
        if weights is not None:
            count, unit = _as_counts(weights)
            if count is None:
                own, unit = _near_one(weights)
                if factor is not None:
                    factor, size = _near_one(factor)
                    unit *= size
                factor = own if factor is None else own * factor
            elif (count == 1).all():
                count = None
        if factor is not None:
            factor, size = _near_one(factor)
            unit *= size
            if (factor == factor[0]).all():
                unit *= float(factor[0])
                factor = None
        total_count = float(n_rows) if count is None else float(count.sum())
        if factor is None:
            total, largest = total_count, 1.0
        else:
            largest = float(factor.max())
            total = float(_group_sums(factor, count, np.zeros(n_rows, dtype=np.intp), 1)[0])
        return cls(n_rows, count, factor, total_count, total, largest, unit)

    def take(self, rows: NDArray[np.intp]) -> RowWeights:
        """The weights of some of the rows, at least one."""
        count = None if self.count is None else self.count[rows].astype(np.float64)
        factor = None if self.factor is None else self.factor[rows]
        own = RowWeights.make(len(rows), count, factor)
        return replace(own, unit=own.unit * self.unit)

    @property
    def totals(self) -> tuple[float, float, float]:
        return (self.total_count, self.total, self.largest_factor)

    def share(self, rows: NDArray[np.bool_]) -> float:
        """The part of the total weight that these rows hold, however small; independent of their order."""
        rest, held = self.group_sums(np.ones(self.n_rows), rows.astype(np.intp), 2)
        return float(held / (held + rest))

    def mean_and_deviation(self, values: NDArray[np.float64]) -> tuple[float, float]:
        """Weighted mean and standard deviation (1 where all values agree), independent of the order.

        The deviation is exact to rounding however small it is beside the mean.
        """
        if (values == values[0]).all():
            return float(values[0]), 1.0
        mean = self.mean(values)
        mean += self.mean(values - mean)
        centred = values - mean
        exponent = int(np.frexp(np.abs(centred).max())[1])  # squares neither overflow nor vanish
        centred = np.ldexp(centred, -exponent)
        centred -= self.mean(centred)  # what the rounding of the mean leaves
        return mean, math.ldexp(math.sqrt(self.mean(centred**2)), exponent)

    def sums(
        self, values: NDArray[np.float64], group: NDArray[np.intp] | None = None, n: int = 1
    ) -> NDArray[np.float64]:
        """Weighted sums of the values in each of ``n`` groups (default: one), independent of their order."""
        return np.ldexp(*self._sums(values, group, n))

    def group_sums(self, values: NDArray[np.float64], group: NDArray[np.intp], n: int) -> NDArray[np.float64]:
        """As :meth:`sums`, with all digits in every group however little it holds beside the others."""
        return _group_sums(values if self.factor is None else values * self.factor, self.count, group, n)

    def mean(self, values: NDArray[np.float64]) -> float:
        """The weighted mean, independent of the order of the rows."""
        sums, exponent = self._sums(values, None, 1)
        return math.ldexp(float(sums[0]) / self.total, exponent)

    def _sums(
        self, values: NDArray[np.float64], group: NDArray[np.intp] | None, n: int
    ) -> tuple[NDArray[np.float64], int]:
        """Sums in units of a power of two, and its exponent."""
        units, scale, exponent = self.fixed(values)
        out = np.zeros(n, dtype=np.int64)
        if group is None:
            out[0] = units.sum()
        else:
            np.add.at(out, group, units)
        return out / scale, exponent

    def fixed(self, values: NDArray[np.float64]) -> tuple[NDArray[np.int64], float, int]:
        """Weight times value of every row as whole numbers, whose sums do not depend on the order of rows.

        Returned with scale and exponent: a sum stands for sum / scale * 2**exponent.
        """
        if not values.any():
            return np.zeros(len(values), dtype=np.int64), 1.0, 0
        # a first sum of the sizes sets the scale: an outlier must not cost the other rows their digits
        exponent = int(np.frexp(np.abs(values).max())[1])
        parts = (
            np.ldexp(values, -exponent) if self.factor is None else np.ldexp(values, -exponent) * self.factor
        )
        largest = float(np.abs(parts).max())
        units, scale = self._units(np.abs(parts), largest * self.total_count)
        total = (float(units.sum()) + 0.5 * self.total_count + 1.0) / scale
        return *self._units(parts, min(total, largest * self.total_count)), exponent

    def _units(self, parts: NDArray[np.float64], bound: float) -> tuple[NDArray[np.int64], float]:
        """count * round(part * scale), whose sizes add up to at most ``bound * scale``, and the scale."""
        scale = fixed_scale(bound * (1.0 + 1e-9), self.total_count)
        units = np.rint(parts * scale).astype(np.int64)
        return units if self.count is None else units * self.count, scale

    @property
    def normalised(self) -> NDArray[np.float64]:
        """``s``: the weights divided by their sum."""
        weights = np.ones(self.n_rows) if self.count is None else self.count.astype(np.float64)
        if self.factor is not None:
            weights = weights * self.factor
        return weights / self.total


def _near_one(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Divided by a power of two, which leaves the bits of every weight alone and keeps 1e300 harmless."""
    exponent = int(np.frexp(weights.max())[1])
    return np.ldexp(weights, -exponent), 2.0 ** min(exponent, 1023)


def _group_sums(
    parts: NDArray[np.float64], count: NDArray[np.int64] | None, group: NDArray[np.intp], n: int
) -> NDArray[np.float64]:
    """Sums of count * part in fixed point: equal for every order, and for a row twice or counted twice."""
    count = np.ones(len(parts), dtype=np.int64) if count is None else count
    largest, rows = np.zeros(n), np.zeros(n, dtype=np.int64)
    np.maximum.at(largest, group, np.abs(parts))
    np.add.at(rows, group, count)
    exponent = 61 - np.frexp(rows.astype(np.float64))[1] - np.frexp(largest)[1]

    def total(parts: NDArray[np.float64]) -> NDArray[np.float64]:
        units = np.zeros(n, dtype=np.int64)
        np.add.at(units, group, np.rint(np.ldexp(parts, exponent[group])).astype(np.int64) * count)
        return units.astype(np.float64)

    # a first sum of the sizes sets the scale
    exponent += 61 - np.frexp(total(np.abs(parts)) + 0.5 * rows + 1.0)[1]
    return np.ldexp(total(parts), -exponent)


def _as_counts(weights: NDArray[np.float64]) -> tuple[NDArray[np.int64] | None, float]:
    """Whole multiples of 1, or else of the smallest weight, when all are; and what the multiples are of.

    Counts of a very large sum are divided by their greatest common divisor; where that is not enough there
    are no counts.
    """
    if not (weights > 0.0).all():  # a share of the others that double precision does not carry
        return None, 1.0
    for unit in (1.0, float(weights.min())):
        with np.errstate(over="ignore"):
            ratio = weights / unit
        if not (ratio < _COUNT_LIMIT).all():
            continue
        rounded = np.rint(ratio)
        with np.errstate(over="ignore"):
            whole = (rounded * unit == weights).all()
        if not whole or not (rounded >= 1).all():
            continue
        count = rounded.astype(np.int64)
        if math.fsum(rounded) > _MOST_COUNTED:
            shared = int(np.gcd.reduce(count))
            count, unit = count // shared, unit * shared
        if math.fsum(count) <= _MOST_COUNTED:
            return count, unit
    return None, 1.0

"""Row weights as ``count * factor``, and weighted sums over the rows.

Counts multiply after rounding to fixed point, so that weight 2 gives the same bits as the row twice; factors
carry everything that is not a whole number. Sums do not depend on the order of the rows or their division
into parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.shards import Shards, take

Array = NDArray[np.float64]

_COUNT_LIMIT = 2.0**53  # whole numbers up to here are exact
#: rows in all, counts included: each loses up to half a unit to rounding, which must not show in nine digits
_MOST_COUNTED = 2.0**26
_UNIT_BITS = 61  # of a sum in int64, one spare


@dataclass(frozen=True)
class RowWeights:
    """Positive weights of the rows that take part.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    count, factor : ndarray or None
        The weight of a row is ``count * factor``; None stands for all ones.
    total_count, total, largest_factor : float
        Sum of the counts, sum of the weights, largest factor.
    shards : Shards
        The parts that the rows are divided into.
    unit : float
        Weights are kept up to a common factor: what a weight of 1 here weighs in the user's terms.
    """

    n_rows: int
    count: NDArray[np.int64] | None
    factor: Array | None
    total_count: float
    total: float
    largest_factor: float
    shards: Shards
    unit: float = 1.0

    @classmethod
    def make(
        cls, n_rows: int, weights: Array | None, factor: Array | None = None, shards: Shards | None = None
    ) -> RowWeights:
        """From positive raw ``weights`` and an optional further ``factor`` per row (class weights)."""
        shards = shards or Shards.in_memory(n_rows)
        count, unit = None, 1.0
        if weights is not None:
            count, unit = _as_counts(weights)
            if count is None:
                real, unit = _near_one(weights)
                if factor is not None:
                    factor, size = _near_one(factor)
                    unit *= size
                factor = real if factor is None else real * factor
            elif (count == 1).all():
                count = None
        if factor is not None:
            factor, size = _near_one(factor)
            unit *= size
            if (factor == factor[0]).all():
                unit *= float(factor[0])
                factor = None
        total_count = float(n_rows if count is None else shards.sum(lambda part: count[part].sum()))
        row_weights = cls(n_rows, count, factor, total_count, total_count, 1.0, shards, unit)
        if factor is None:
            return row_weights
        largest = float(shards.maximum(lambda part: factor[part].max()))
        total = row_weights.group_sums(np.ones(n_rows), np.zeros(n_rows, dtype=np.intp), 1)[0]
        return replace(row_weights, total=float(total), largest_factor=largest)

    def take(self, rows: NDArray[np.intp]) -> RowWeights:
        """The weights of some of the rows, at least one, in one part."""
        count = None if self.count is None else self.count[rows].astype(np.float64)
        factor = None if self.factor is None else self.factor[rows]
        taken = RowWeights.make(len(rows), count, factor)
        return replace(taken, unit=taken.unit * self.unit)

    def part(self, part: slice) -> tuple[NDArray[np.int64] | None, Array | None]:
        """Count and factor of the rows of a part, as kernels take them."""
        return take(self.count, part), take(self.factor, part)

    @property
    def totals(self) -> tuple[float, float, float]:
        """What the kernels need to know of all rows."""
        return (self.total_count, self.total, self.largest_factor)

    @property
    def normalised(self) -> Array:
        """``s``: the weights divided by their sum."""
        weights = np.ones(self.n_rows) if self.count is None else self.count.astype(np.float64)
        return self._times_factor(weights) / self.total

    def share(self, rows: NDArray[np.bool_]) -> float:
        """The part of the total weight that these rows hold, with all digits however small it is."""
        if self.factor is None:
            counts = rows.astype(np.int64) if self.count is None else np.where(rows, self.count, 0)
            return int(self._totals(counts, None, 1)[0]) / self.total_count
        rest, inside = self.group_sums(np.ones(self.n_rows), rows.astype(np.intp), 2)
        return float(inside / (inside + rest))

    def mean(self, values: Array) -> float:
        """The weighted mean."""
        sums, exponent = self._sums(values, None, 1)
        return math.ldexp(float(sums[0]) / self.total, exponent)

    def mean_and_deviation(self, values: Array) -> tuple[float, float]:
        """Weighted mean and standard deviation (1 where all values agree).

        The deviation is exact to rounding however small it is beside the mean.
        """
        if (values == values[0]).all():
            return float(values[0]), 1.0
        mean = self.mean(values)
        mean += self.mean(values - mean)
        centred = values - mean
        exponent = self._exponent(centred)  # squares neither overflow nor vanish
        centred = np.ldexp(centred, -exponent)
        centred -= self.mean(centred)  # what the rounding of the mean leaves
        return mean, math.ldexp(math.sqrt(self.mean(centred**2)), exponent)

    def sums(self, values: Array, group: NDArray[np.intp] | None = None, n: int = 1) -> Array:
        """Weighted sums of the values in each of ``n`` groups (default: one)."""
        return np.ldexp(*self._sums(values, group, n))

    def group_sums(self, values: Array, group: NDArray[np.intp], n: int) -> Array:
        """As :meth:`sums`, with all digits in every group however little it holds beside the others."""
        values, counts = self._times_factor(values), self.count
        counts = np.ones(len(values), dtype=np.int64) if counts is None else counts
        largest = self.shards.maximum(
            lambda part: _scatter(np.maximum, group[part], np.abs(values[part]), np.zeros(n))
        )
        rows = self._totals(counts, group, n)
        exponent = _UNIT_BITS - np.frexp(rows.astype(np.float64))[1] - np.frexp(largest)[1]

        def total(values: Array) -> Array:
            units = np.rint(np.ldexp(values, exponent[group])).astype(np.int64) * counts
            return self._totals(units, group, n).astype(np.float64)

        # a first sum of the sizes sets the scale
        exponent += _UNIT_BITS - np.frexp(total(np.abs(values)) + 0.5 * rows + 1.0)[1]
        return np.ldexp(total(values), -exponent)

    def fixed(self, values: Array) -> tuple[NDArray[np.int64], float, int]:
        """Weight times value of every row as whole numbers.

        Returned with scale and exponent: a sum stands for sum / scale * 2**exponent.
        """
        if not values.any():
            return np.zeros(len(values), dtype=np.int64), 1.0, 0
        # a first sum of the sizes sets the scale: an outlier must not cost the other rows their digits
        exponent = self._exponent(values)
        scaled = self._times_factor(np.ldexp(values, -exponent))
        largest = float(self.shards.maximum(lambda part: np.abs(scaled[part]).max()))
        units, scale = self._units(np.abs(scaled), largest * self.total_count)
        total = (float(self._totals(units, None, 1)[0]) + 0.5 * self.total_count + 1.0) / scale
        return *self._units(scaled, min(total, largest * self.total_count)), exponent

    def quantise(
        self, rows: Array, scales: Array, largest: Array, sign: NDArray[np.int8] | None, threads: int
    ) -> NDArray[np.int64]:
        """Weight times value times scale of every row as whole numbers.

        ``rows`` is (lanes, rows), with a scale and a largest size for each lane; the result is (rows, lanes).
        ``sign``: of every row, for the first lane alone.
        """
        signed = np.zeros(len(rows), dtype=np.uint8)
        signed[0] = 1

        def lanes(part: slice) -> NDArray[np.int64]:
            count, factor = self.part(part)
            values, signs = take(rows, part), take(sign, part)
            return _kernels.quantise(
                values, signs, count, factor, self.largest_factor, scales, largest, signed, threads
            )

        return self.shards.rows(lanes)

    def _times_factor(self, values: Array) -> Array:
        return values if self.factor is None else values * self.factor

    def _exponent(self, values: Array) -> int:
        """Of the largest size."""
        return int(np.frexp(self.shards.maximum(lambda part: np.abs(values[part]).max()))[1])

    def _units(self, scaled: Array, bound: float) -> tuple[NDArray[np.int64], float]:
        """count * round(value * scale), whose sizes add up to at most ``bound * scale``, and the scale."""
        scale = _kernels.fixed_scale(bound * (1.0 + 1e-9), self.total_count)
        units = np.rint(scaled * scale).astype(np.int64)
        return units if self.count is None else units * self.count, scale

    def _sums(self, values: Array, group: NDArray[np.intp] | None, n: int) -> tuple[Array, int]:
        """Sums in units of a power of two, and its exponent."""
        units, scale, exponent = self.fixed(values)
        return self._totals(units, group, n) / scale, exponent

    def _totals(self, units: NDArray[np.int64], group: NDArray[np.intp] | None, n: int) -> NDArray[np.int64]:
        """Sums of whole numbers in each of ``n`` groups, or of all."""

        def totals(part: slice) -> NDArray[np.int64]:
            if group is None:
                return units[part].sum(keepdims=True)
            return _scatter(np.add, group[part], units[part], np.zeros(n, dtype=np.int64))

        return self.shards.sum(totals)


def _scatter(operation: np.ufunc, index: NDArray[np.intp], values: NDArray[Any], out: NDArray[Any]) -> Any:
    """Combine values that have the same index."""
    operation.at(out, index, values)
    return out


def _near_one(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Weights divided by a power of two, which changes no digits, and that power: 1e300 is harmless then."""
    exponent = int(np.frexp(weights.max())[1])
    return np.ldexp(weights, -exponent), 2.0 ** min(exponent, 1023)


def _as_counts(weights: NDArray[np.float64]) -> tuple[NDArray[np.int64] | None, float]:
    """Weights as multiples of 1, or else of the smallest one, and that unit; None where some are not.

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

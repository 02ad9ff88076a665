"""The binned table: one byte per value, column by column, and the cuts between the bins.

Cuts are exact weighted quantiles, moved to the shortest decimal in their gap. Bin ``b`` holds the values
above ``b`` cuts, so that "left of cut e" means "value <= e". The bins of a categorical column are the codes
of its labels. Bin 255 holds missing values.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.categories import MAX_CODES, CategoricalColumn, Categories
from cardboost.data.shards import Shards, take
from cardboost.data.table import Table, infinity_fault
from cardboost.data.weights import RowWeights

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.int32]

MISSING = 255  # the bin of missing values
MAX_BINS = 255  # of values that are not missing
_HASHED_FEATURES = 16  # as many tell rows apart, and take a small part of the time of a histogram


@dataclass(frozen=True)
class BinnedMatrix:
    """A table in bins.

    ``bins[j, i]`` is the bin of row i in feature j. ``cuts``: of every feature; a categorical feature has
    none, but an entry in ``categories``. ``n_missing``: missing values of every feature.
    """

    bins: NDArray[np.uint8]
    cuts: tuple[Array, ...]
    n_missing: Integers
    categories: tuple[Categories | None, ...]
    _hashes: list[NDArray[np.uint64]] = field(default_factory=list, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        return self.bins.shape[1]

    @property
    def n_features(self) -> int:
        return self.bins.shape[0]

    @cached_property
    def shards(self) -> Shards:
        """The parts that the rows are divided into."""
        return Shards.in_memory(self.n_rows)

    def row_hashes(self, threads: int) -> NDArray[np.uint64]:
        """A number per row that depends on its bins only (of some of the features); computed once."""
        if not self._hashes:
            self._hashes.append(self._hash(max(1, self.n_features // _HASHED_FEATURES), threads))
        return self._hashes[0]

    def content_hashes(self, threads: int) -> NDArray[np.uint64]:
        """A number per row that depends on all of its bins; equal rows have equal numbers."""
        return self._hash(1, threads)

    def _hash(self, step: int, threads: int) -> NDArray[np.uint64]:
        """Of the bins of every ``step``-th feature."""
        features = np.arange(0, self.n_features, step, dtype=np.int32)
        return self.shards.rows(lambda part: _kernels.hash_bins(take(self.bins, part), features, threads))

    def histograms(self, features: Indices, lanes: Integers, threads: int) -> Integers:
        """Sums of integer row weights (rows, lanes) over every bin: (features, bins, lanes)."""
        return self.shards.sum(
            lambda part: _kernels.histograms(take(self.bins, part), features, lanes[part], threads)
        )

    def margins(
        self, features: Indices, tables: Array, base: float, sign: NDArray[np.int8] | None, threads: int
    ) -> Array:
        """``base`` plus the entry of each feature's table for the bin of the row, times ``sign``."""

        def kernel(part: slice) -> Array:
            bins, signs = take(self.bins, part), take(sign, part)
            return _kernels.margins(bins, features, tables, base, signs, threads)

        return self.shards.rows(kernel)

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which features hold categories: their bins are codes, not intervals."""
        return np.array([categories is not None for categories in self.categories], dtype=bool)

    @property
    def n_bins(self) -> Indices:
        """Bins of values that are not missing; 1 where every value is."""
        numbers_of_bins = [
            len(cuts) + 1 if categories is None else max(1, categories.n_codes)
            for cuts, categories in zip(self.cuts, self.categories, strict=True)
        ]
        return np.array(numbers_of_bins, dtype=np.int32)

    def take(self, rows: NDArray[np.intp]) -> BinnedMatrix:
        """Some of the rows."""
        bins = np.ascontiguousarray(self.bins[:, rows])
        missing = np.count_nonzero(bins == MISSING, axis=1).astype(np.int64)
        return BinnedMatrix(bins, self.cuts, missing, self.categories)


def bin_table(
    table: Table,
    weights: RowWeights,
    max_bins: int,
    threads: int,
    given: Mapping[int, Array] = MappingProxyType({}),
) -> BinnedMatrix:
    """Choose the cuts of every column and bin it; ``given``: the cuts of some columns, ascending."""
    whole = isinstance(max_bins, numbers.Integral) and not isinstance(max_bins, bool)
    if not whole or not 2 <= max_bins <= MAX_BINS:
        raise ValueError(f"max_bins must be a whole number from 2 to {MAX_BINS}; got {max_bins!r}.")
    row_weights = _quantile_weights(weights, threads)
    # a categorical column is a constant to the kernel, and its bins are then written over
    constant = np.zeros(table.n_rows if table.categorical else 0, dtype=np.uint8)
    columns = [constant if isinstance(column, CategoricalColumn) else column for column in table.columns]
    bins, flat, n_cuts, missing, infinite = _kernels.bin_columns(columns, row_weights, int(max_bins), threads)
    if infinite >= 0:
        raise infinity_fault("X", table.label(infinite))
    cuts = tuple(given.get(j, flat[j, : n_cuts[j]].copy()) for j in range(len(n_cuts)))
    for j, own in given.items():
        bins[j] = _kernels.apply_cuts([columns[j]], own, np.array([0, len(own)]), threads)[0]
    categories: list[Categories | None] = [None] * table.n_features
    for j in table.categorical:
        column = table.columns[j]
        categories[j] = kept = _choose(column, row_weights)
        codes = np.nan_to_num(kept.codes_of(column.labels), nan=MISSING).astype(np.uint8)
        bins[j] = np.append(codes, np.uint8(MISSING))[column.codes]
        missing[j] = np.count_nonzero(column.codes < 0)
    return BinnedMatrix(bins, cuts, missing, tuple(categories))


def _choose(column: CategoricalColumn, weights: Integers | None) -> Categories:
    """All labels if there are codes for them; else the 254 of largest weight (ties: the first)."""
    labels = column.labels
    if len(labels) <= MAX_CODES:
        return Categories(labels)
    present = column.codes >= 0
    totals = np.zeros(len(labels), dtype=np.int64)
    np.add.at(totals, column.codes[present], 1 if weights is None else weights[present])
    heaviest = np.argsort(-totals, kind="stable")
    kept, rare = (
        tuple(labels[k] for k in np.sort(codes))
        for codes in (heaviest[: MAX_CODES - 1], heaviest[MAX_CODES - 1 :])
    )
    return Categories(kept, rare)


def _quantile_weights(weights: RowWeights, threads: int) -> Integers | None:
    """Whole numbers in proportion to the weights; None when all rows weigh the same."""
    if weights.factor is None:
        return weights.count
    scale = _kernels.fixed_scale(weights.total, weights.total_count)
    lanes = weights.quantise(np.ones((1, weights.n_rows)), np.array([scale]), np.ones(1), None, threads)
    return lanes[:, 0].copy()


def apply_cuts(
    table: Table, cuts: tuple[Array, ...], threads: int, categories: tuple[Categories | None, ...] = ()
) -> NDArray[np.uint8]:
    """Bins of another table for the same cuts and categories; a label that is not among them is missing."""
    labels = categories or (None,) * table.n_features
    columns = [table.encoded(j, labels[j]) for j in range(table.n_features)]
    steps = [
        edges if kept is None else np.arange(kept.n_codes - 1.0)
        for edges, kept in zip(cuts, labels, strict=True)
    ]
    offsets = np.concatenate([[0], np.cumsum([len(edges) for edges in steps])]).astype(np.int64)
    flat = np.concatenate(steps) if steps else np.empty(0)
    return _kernels.apply_cuts(columns, flat.astype(np.float64), offsets, threads)

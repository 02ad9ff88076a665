"""The binned table: one byte per value, column by column, and the cuts between the bins.

Cuts are exact weighted quantiles and the simplest decimals in their gaps; bin ``b`` holds the values above
``b`` cuts, so "left of cut e" is "value <= e". The bins of a categorical column are the codes of its labels.
Bin 255 holds missing values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.categories import MAX_CODES, CategoricalColumn, Categories
from cardboost.data.table import Table
from cardboost.data.weights import RowWeights

MISSING = 255
MAX_BINS = 255


@dataclass(frozen=True)
class BinnedMatrix:
    """``bins[j, i]`` is the bin of row i in feature j; a categorical feature has categories and no cuts."""

    bins: NDArray[np.uint8]
    cuts: tuple[NDArray[np.float64], ...]
    n_missing: NDArray[np.int64]
    categories: tuple[Categories | None, ...]
    _hashes: list[NDArray[np.uint64]] = field(default_factory=list, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        return self.bins.shape[1]

    @property
    def n_features(self) -> int:
        return self.bins.shape[0]

    def row_hashes(self, threads: int) -> NDArray[np.uint64]:
        """A number per row that depends on its bins only (of up to 16 features); computed once."""
        if not self._hashes:
            step = max(1, self.n_features // 16)
            features = np.arange(0, self.n_features, step, dtype=np.int32)
            self._hashes.append(_kernels.hash_bins(self.bins, features, threads))
        return self._hashes[0]

    @property
    def n_bins(self) -> NDArray[np.int32]:
        """Bins of values that are not missing; 1 where every value is."""
        pairs = zip(self.cuts, self.categories, strict=True)
        return np.array(
            [len(c) + 1 if own is None else max(1, own.n_codes) for c, own in pairs], dtype=np.int32
        )


def bin_table(table: Table, weights: RowWeights, max_bins: int, threads: int) -> BinnedMatrix:
    """Find the cuts of every column and bin it."""
    if (
        not isinstance(max_bins, (int, np.integer))
        or isinstance(max_bins, bool)
        or not 2 <= max_bins <= MAX_BINS
    ):
        raise ValueError(f"max_bins must be a whole number from 2 to {MAX_BINS}; got {max_bins!r}.")
    own_weights = _quantile_weights(weights, threads)
    # a categorical column is a constant to the kernel, and its line is then written over
    constant = np.zeros(table.n_rows if table.categorical else 0, dtype=np.uint8)
    columns = [constant if isinstance(column, CategoricalColumn) else column for column in table.columns]
    bins, flat, n_cuts, missing, infinite = _kernels.bin_columns(columns, own_weights, int(max_bins), threads)
    if infinite >= 0:
        raise ValueError(
            f"X contains infinity in {table.label(infinite)}: only finite numbers and missing values (NaN) "
            "are accepted."
        )
    cuts = tuple(flat[j, : n_cuts[j]].copy() for j in range(len(n_cuts)))
    categories: list[Categories | None] = [None] * table.n_features
    for j in table.categorical:
        column = table.columns[j]
        categories[j] = own = _choose(column, own_weights)
        bins[j] = _code_bins(column, own)
        missing[j] = np.count_nonzero(column.codes < 0)
    return BinnedMatrix(bins, cuts, missing, tuple(categories))


def _choose(column: CategoricalColumn, weights: NDArray[np.int64] | None) -> Categories:
    """All labels if there are codes for them; else the 254 of largest weight (ties: the first)."""
    labels = column.labels
    if len(labels) <= MAX_CODES:
        return Categories(labels)
    known = column.codes >= 0
    totals = np.zeros(len(labels), dtype=np.int64)
    np.add.at(totals, column.codes[known], 1 if weights is None else weights[known])
    kept = np.zeros(len(labels), dtype=bool)
    kept[np.argsort(-totals, kind="stable")[: MAX_CODES - 1]] = True
    return Categories(
        tuple(labels[k] for k in np.flatnonzero(kept)), tuple(labels[k] for k in np.flatnonzero(~kept))
    )


def _code_bins(column: CategoricalColumn, categories: Categories) -> NDArray[np.uint8]:
    codes = categories.codes_of(column.labels)
    into = np.where(np.isnan(codes), MISSING, codes).astype(np.uint8)
    return np.append(into, np.uint8(MISSING))[column.codes]


def _quantile_weights(weights: RowWeights, threads: int) -> NDArray[np.int64] | None:
    """Whole numbers in proportion to the raw weights; none when all rows weigh the same."""
    if weights.factor is None:
        return weights.count
    scale = _kernels.fixed_scale(weights.total, weights.total_count)
    one = np.ones((1, weights.n_rows))
    lanes = _kernels.quantise(
        one, None, weights.count, weights.factor, weights.largest_factor,
        np.array([scale]), np.ones(1), np.zeros(1, np.uint8), threads,
    )  # fmt: skip
    return lanes[:, 0].copy()


def apply_cuts(
    table: Table,
    cuts: tuple[NDArray[np.float64], ...],
    threads: int,
    categories: tuple[Categories | None, ...] = (),
) -> NDArray[np.uint8]:
    """Bins of another table under known cuts and categories; a label that is not among them is missing."""
    own = categories or (None,) * table.n_features
    numbers = [table.encoded(j, own[j]) for j in range(table.n_features)]
    steps = [
        edges if kept is None else np.arange(kept.n_codes - 1.0)
        for edges, kept in zip(cuts, own, strict=True)
    ]
    offsets = np.concatenate([[0], np.cumsum([len(edges) for edges in steps])]).astype(np.int64)
    flat = np.concatenate(steps) if steps else np.empty(0)
    return _kernels.apply_cuts(numbers, flat.astype(np.float64), offsets, threads)

"""The binned table: one byte per value, column by column, and the cuts between the bins.

Cuts are exact weighted quantiles and the simplest decimals in their gaps; bin ``b`` holds the values above
``b`` cuts, so "left of cut e" is "value <= e". Bin 255 holds missing values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.categories import Categories
from cardboost.data.table import Table
from cardboost.data.weights import RowWeights

MISSING = 255
MAX_BINS = 255


@dataclass(frozen=True)
class BinnedMatrix:
    """``bins[j, i]`` is the bin of row i in feature j."""

    bins: NDArray[np.uint8]
    cuts: tuple[NDArray[np.float64], ...]
    n_missing: NDArray[np.int64]
    categories: tuple[Categories | None, ...] | None = None
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
    def categorical(self) -> NDArray[np.bool_]:
        """Which features hold categories: their bins are codes, not intervals."""
        if self.categories is None:
            return np.zeros(self.n_features, dtype=bool)
        return np.array([own is not None for own in self.categories], dtype=bool)

    @property
    def n_bins(self) -> NDArray[np.int32]:
        """Bins of values that are not missing."""
        bins = np.array([len(cuts) + 1 for cuts in self.cuts], dtype=np.int32)
        for j in np.flatnonzero(self.categorical):
            bins[j] = self.categories[j].n_codes  # type: ignore[index,union-attr]
        return bins

    def take(self, rows: NDArray[np.intp], bins: NDArray[np.uint8] | None = None) -> BinnedMatrix:
        """Some of the rows; ``bins``: theirs, where they are at hand."""
        bins = np.ascontiguousarray(self.bins[:, rows]) if bins is None else bins
        missing = np.count_nonzero(bins == MISSING, axis=1).astype(np.int64)
        return BinnedMatrix(bins, self.cuts, missing, self.categories)


def bin_table(table: Table, weights: RowWeights, max_bins: int, threads: int) -> BinnedMatrix:
    """Find the cuts of every column and bin it."""
    if (
        not isinstance(max_bins, (int, np.integer))
        or isinstance(max_bins, bool)
        or not 2 <= max_bins <= MAX_BINS
    ):
        raise ValueError(f"max_bins must be a whole number from 2 to {MAX_BINS}; got {max_bins!r}.")
    bins, cuts, n_cuts, missing, infinite = _kernels.bin_columns(
        list(table.columns), _quantile_weights(weights, threads), int(max_bins), threads
    )
    if infinite >= 0:
        raise ValueError(
            f"X contains infinity in {table.label(infinite)}: only finite numbers and missing values (NaN) "
            "are accepted."
        )
    return BinnedMatrix(bins, tuple(cuts[j, : n_cuts[j]].copy() for j in range(len(n_cuts))), missing)


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


def apply_cuts(table: Table, matrix: BinnedMatrix, threads: int) -> NDArray[np.uint8]:
    """Bins of another table under the cuts and categories of a binned one."""
    cuts = matrix.cuts
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in cuts])]).astype(np.int64)
    flat = np.concatenate(cuts) if cuts else np.empty(0)
    return _kernels.apply_cuts(list(table.columns), flat.astype(np.float64), offsets, threads)

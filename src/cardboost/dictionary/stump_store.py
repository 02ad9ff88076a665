"""All distinct stumps of a dictionary by number, for solvers that weigh every one of them.

Stumps run along *runs*: the cuts of a line for one side of the missing values and one polarity, in order, so
that neighbours in number are neighbours in cut. Of stumps that are the same column on the rows the first one
counts; those that are constant are left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.binning import MISSING
from cardboost.dictionary.signs import SignBlock, Words
from cardboost.dictionary.stumps import StumpDictionary, Stumps
from cardboost.risk import RiskPoint

Array = NDArray[np.float64]
Columns = NDArray[np.int32]

_PER_FEATURE = 2  # stumps of a feature that come into use at once, at most


class StumpStore:
    """The stumps of a dictionary. ``line``, ``cut``, ``missing_left`` and ``polarity`` say what each is."""

    def __init__(self, dictionary: StumpDictionary) -> None:
        self.dictionary = dictionary
        self.n_rows = dictionary.matrix.n_rows
        closed = (dictionary.closed[..., None] >> np.arange(4, dtype=np.uint8)) & 1
        grid = closed.transpose(0, 2, 1) == 0  # line, side and polarity, cut
        places = np.flatnonzero(grid)
        digests = dictionary.plus_digest.transpose(0, 2, 1)[grid]
        first = np.sort(np.unique(digests, return_index=True)[1])
        run, self.cut = np.divmod(places[first], 256)
        self.line, side = np.divmod(run, 4)
        self.missing_left = side >= 2
        self.polarity = np.where(side % 2, -1, 1).astype(np.int8)
        self.feature = dictionary.home[self.line]
        self._sign = self.polarity.astype(np.float64)
        starts = np.flatnonzero(np.diff(run, prepend=-1))
        self._starts, self._ends = starts, np.append(starts[1:], len(run)) - 1
        self._width = int(dictionary.n_bins.max(initial=1))
        self._at = (self.line * self._width + self.cut) * 2 + self.missing_left
        self._single = np.flatnonzero(dictionary.categorical)
        self._last: tuple[Columns, Words] | None = None

    def __len__(self) -> int:
        return len(self.cut)

    def stumps(self, which: NDArray[np.int32] | NDArray[np.intp]) -> Stumps:
        return self.dictionary.stumps(
            self.line[which], self.cut[which], self.polarity[which], self.missing_left[which]
        )

    def every_edge(self, point: RiskPoint) -> Array:
        """One histogram pass and prefix sums."""
        d = self.dictionary
        lane = point.fixed.edge_lane.reshape(-1, 1)
        hist = _kernels.histograms(d.matrix.bins, d.features, lane, d.threads)[..., 0]
        hist = d.in_lines(hist, d.features)
        left = np.cumsum(hist[:, : self._width], axis=1)
        left[self._single] = hist[self._single, : self._width]
        sums = np.empty((*left.shape, 2), dtype=np.int64)
        sums[..., 0] = 2 * left - lane.sum()
        sums[..., 1] = sums[..., 0] + 2 * hist[:, MISSING:]
        return sums.reshape(-1)[self._at].astype(np.float64) * (self._sign * point.fixed.edge_unit)

    def choose(self, slopes: Array, most: int) -> Columns:
        """Stumps of least slope among their neighbours, a few of a feature, the least first."""
        before, after = np.empty_like(slopes), np.empty_like(slopes)
        before[1:], after[:-1] = slopes[:-1], slopes[1:]
        before[self._starts] = after[self._ends] = np.inf
        low = np.flatnonzero((slopes < before) & (slopes <= after))
        room = 8 * most
        if len(low) > room:
            low = np.sort(low[np.argpartition(slopes[low], room - 1)[:room]])
        low = low[np.argsort(slopes[low], kind="stable")]
        # the place of each among those of its feature
        feature = self.feature[low]
        order = np.argsort(feature, kind="stable")
        begins = np.flatnonzero(np.diff(feature[order], prepend=-1))
        rank = np.empty(len(low), dtype=np.intp)
        rank[order] = np.arange(len(low)) - np.repeat(begins, np.diff(np.append(begins, len(low))))
        return low[rank < _PER_FEATURE][:most].astype(np.int32)

    def block(self, which: Columns) -> SignBlock:
        """Columns of bits; those of the last block are not made again."""
        d = self.dictionary
        known = np.full(len(which), -1)
        if self._last is not None:
            order = np.argsort(self._last[0])
            at = np.searchsorted(self._last[0], which, sorter=order)
            at = order[np.minimum(at, len(order) - 1)]
            same = self._last[0][at] == which
            known[same] = at[same]
        new = np.flatnonzero(known < 0)
        stumps = self.stumps(which[new])
        made = _kernels.stump_bits(d.matrix.bins, stumps.feature, stumps.signs(), d.threads)
        if len(new) < len(which) and self._last is not None:
            words = np.empty((len(made), len(which)), dtype=np.uint64)
            old = np.flatnonzero(known >= 0)
            words[:, new] = made
            words[:, old] = self._last[1][:, known[old]]
        else:
            words = made
        self._last = (which, words) if len(which) else None
        return SignBlock(words, self.n_rows, d.threads, d.sign)

    def margins(self, weights: Array) -> Array:
        """Margins of weights of all stumps: they add up to one lookup table per feature."""
        d = self.dictionary
        features, tables = self.tables(weights)
        return _kernels.margins(d.matrix.bins, features, tables, 0.0, d.sign, d.threads)

    def tables(self, weights: Array) -> tuple[NDArray[np.int32], Array]:
        """Features in use and their lookup tables over bins."""
        d = self.dictionary
        n_lines = len(d.home)
        grid = np.bincount(self._at, self._sign * weights, 2 * n_lines * self._width)
        grid = grid.reshape(n_lines, self._width, 2)
        own = grid.sum(axis=2)
        used = np.flatnonzero(own.any(axis=1) | grid.any(axis=(1, 2)))
        own, sides = own[used], grid[used].sum(axis=1)
        # left of a cut are the bins up to it
        left = np.cumsum(own[:, ::-1], axis=1)[:, ::-1].copy()
        single = np.isin(used, self._single)
        left[single] = own[single]
        tables = np.zeros((len(used), 256))
        tables[:, : self._width] = 2.0 * left - own.sum(axis=1)[:, None]
        tables[:, MISSING] = sides[:, 1] - sides[:, 0]
        for k in np.flatnonzero(used >= len(d.features)).tolist():  # places in an order are codes
            order = d.orders[int(d.home[used[k]])]
            assert order is not None
            tables[k, order] = tables[k, : len(order)].copy()
        features, slot = np.unique(d.home[used], return_inverse=True)
        added = np.zeros((len(features), 256))
        np.add.at(added, slot, tables)
        return features, added

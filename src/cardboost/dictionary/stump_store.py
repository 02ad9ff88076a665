"""All distinct stumps of a dictionary by number, for solvers that weigh every one of them.

Stumps run along *runs*: the cuts of a line for one side of the missing values and one polarity, in order, so
that neighbours in number are neighbours in cut. Of stumps that are the same column on the rows the first one
counts; those that are constant are left out.
"""

from __future__ import annotations

from copy import copy
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.binning import MISSING
from cardboost.data.weights import RowWeights
from cardboost.dictionary.signs import SignBlock
from cardboost.dictionary.stump_arrays import CONSTANT, CONSTANTS, Columns, StumpBits, Stumps, places
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.problem.risk import RiskPoint

Array = NDArray[np.float64]

_LARGE = 16_384  # rows of tables whose Hessians come from a sample, at least
_LEAST_ROWS, _ROWS_PER_COLUMN = 8192, 32  # of a sample
_STEPS = 2  # for which correlations are kept
_PER_FEATURE = 8  # stumps of a feature that come into use at once, at most


class _Sample:
    """Correlations of stumps from rows of a large table, drawn with the weights that they have at a point.

    Row i is drawn floor(n p_i + u_i) times, a row of weight 2 as two rows, where u_i is made from a hash of
    its bins: neither the order of the rows nor threads matter. Correlations are kept for a few steps while
    columns come and go; until they are made anew, those of new columns are taken from the same rows.
    """

    def __init__(self, dictionary: StumpDictionary, chance: Array, count: NDArray[np.int64] | None) -> None:
        self._dictionary = dictionary
        self.chance, self.count = chance, count  # the u_i, and how often each row is there
        self._bits = StumpBits(np.empty((0, 0), dtype=np.uint8), 1)
        self._sign = np.empty(0, dtype=np.int64)
        self._which = np.empty(0, dtype=np.int32)
        self._kept = np.empty((0, 0))
        self._age = 0

    def correlations(self, store: StumpStore, which: Columns, point: RiskPoint) -> Array:
        place = places(self._which, which)
        # the first of these, as many as were there the last time
        n_kept = int(np.argmin(np.append(place, -1))) if self._age < _STEPS else 0
        place = place[:n_kept]
        if n_kept:
            self._age += 1
        else:
            self._draw(max(_LEAST_ROWS, _ROWS_PER_COLUMN * len(which)), point)
        threads, n = self._dictionary.threads, len(self._sign)
        words = self._bits.words(which, store.stumps)
        mean = _kernels.sign_edges(words, self._sign, threads) / n
        matrix = _kernels.sign_counts(words, n_kept, n, threads) / n - mean[:, None] * mean
        seen = 1.0 - mean * mean
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(seen > 1e-9, 1.0 / np.sqrt(seen), 0.0)
        matrix *= factor[:, None] * factor
        matrix[:n_kept, :n_kept] = self._kept[place[:, None], place]
        matrix.reshape(-1)[:: len(which) + 1] = 1.0
        self._which, self._kept = which, matrix
        return np.array(matrix)

    def _draw(self, n: int, point: RiskPoint) -> None:
        d, lane = self._dictionary, point.fixed.curvature_lane
        once = lane if self.count is None else lane // self.count
        times = np.floor(once * (n / float(lane.sum())) + self.chance).astype(np.intp)
        times = times if self.count is None else times * self.count
        rows = np.flatnonzero(times)
        rows = np.repeat(rows, times[rows])
        self._bits = StumpBits(np.ascontiguousarray(d.matrix.bins[:, rows]), d.threads)
        self._sign = np.ones(len(rows), dtype=np.int64) if d.sign is None else d.sign[rows].astype(np.int64)
        self._age = 0


class StumpStore:
    """The stumps of a dictionary. ``line``, ``cut``, ``missing_left`` and ``polarity`` say what each is.

    Where the dictionary has an intercept, its two columns, 1 and -1 for all rows, come behind the stumps.
    """

    def __init__(self, dictionary: StumpDictionary, weights: RowWeights) -> None:
        self.dictionary = dictionary
        self.n_rows = dictionary.matrix.n_rows
        closed = (dictionary.closed[..., None] >> np.arange(4, dtype=np.uint8)) & 1
        grid = closed.transpose(0, 2, 1) == 0  # line, side and polarity, cut
        digests = dictionary.plus_digest.transpose(0, 2, 1)[grid]
        self._digests, first = np.unique(digests, return_index=True)
        order = np.argsort(first)
        self._number = np.empty(len(first), dtype=np.int32)  # by the order of the digests
        self._number[order] = np.arange(len(first), dtype=np.int32)
        run, self.cut = np.divmod(np.flatnonzero(grid)[first[order]], 256)
        self.line, side = np.divmod(run, 4)
        self.missing_left = side >= 2
        self.polarity = np.where(side % 2, -1, 1).astype(np.int8)
        self._sign = self.polarity.astype(np.float64)
        self.n_stumps, self.n_free = len(run), 2 if dictionary.intercept else 0
        starts = np.flatnonzero(np.diff(run, prepend=-1))
        starts = np.append(starts, self.n_stumps + np.arange(self.n_free))
        self._starts, self._ends = starts, np.append(starts[1:], len(self)) - 1
        self._home = np.append(dictionary.home[self.line], np.full(self.n_free, CONSTANT, dtype=np.int32))
        self._width = int(dictionary.n_bins.max(initial=1))
        self._at = (self.line * self._width + self.cut) * 2 + self.missing_left
        self._single = np.flatnonzero(dictionary.categorical)
        self._bits = StumpBits(dictionary.matrix.bins, dictionary.threads)
        self.sample: _Sample | None = None
        if weights.total_count >= _LARGE:
            hashes = dictionary.matrix.row_hashes(dictionary.threads)
            if len(np.unique(hashes)) >= _LARGE // 2:  # equal rows are drawn together
                self.sample = _Sample(dictionary, hashes.astype(np.float64) * 2.0**-64, weights.count)
        self.estimates = self.sample is not None

    def __len__(self) -> int:
        return self.n_stumps + self.n_free

    def fresh(self) -> StumpStore:
        """The same stumps for another solve: nothing is known of earlier ones, which may still go on."""
        other = copy(self)
        other._bits = StumpBits(self.dictionary.matrix.bins, self.dictionary.threads)
        if self.sample is not None:
            other.sample = _Sample(self.dictionary, self.sample.chance, self.sample.count)
        return other

    def stumps(self, which: NDArray[np.int32] | NDArray[np.intp]) -> Stumps:
        asks = which < self.n_stumps
        numbers = which[asks]
        stumps = self.dictionary.stumps(
            self.line[numbers], self.cut[numbers], self.polarity[numbers], self.missing_left[numbers]
        )
        order = np.append(np.flatnonzero(asks), np.flatnonzero(~asks))
        return (stumps + CONSTANTS[which[~asks] - self.n_stumps])[np.argsort(order)]

    def numbers(self, stumps: Stumps) -> Columns:
        """The numbers of stumps that are among these columns, the intercept's aside."""
        return self._number[np.searchsorted(self._digests, self.dictionary.digest_of(stumps))]

    def every_edge(self, point: RiskPoint) -> Array:
        """One histogram pass and prefix sums."""
        d = self.dictionary
        lane = point.fixed.edge_lane.reshape(-1, 1)
        hist = d.matrix.histograms(d.features, lane, d.threads)[..., 0]
        hist = d.in_lines(hist, d.features)
        left = np.cumsum(hist[:, : self._width], axis=1)
        left[self._single] = hist[self._single, : self._width]
        sums = np.empty((*left.shape, 2), dtype=np.int64)
        sums[..., 0] = 2 * left - lane.sum()
        sums[..., 1] = sums[..., 0] + 2 * hist[:, MISSING:]
        edges = sums.reshape(-1)[self._at].astype(np.float64) * (self._sign * point.fixed.edge_unit)
        if not self.n_free:
            return edges
        constant = float(lane.sum()) * point.fixed.edge_unit
        return np.append(edges, [constant, -constant])

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
        feature = self._home[low]
        order = np.argsort(feature, kind="stable")
        begins = np.flatnonzero(np.diff(feature[order], prepend=CONSTANT - 1))
        rank = np.empty(len(low), dtype=np.intp)
        rank[order] = np.arange(len(low)) - np.repeat(begins, np.diff(np.append(begins, len(low))))
        return low[rank < _PER_FEATURE][:most].astype(np.int32)

    def block(self, which: Columns) -> SignBlock:
        d, words = self.dictionary, self._bits.words(which, self.stumps)
        correlations = None if self.sample is None else partial(self.sample.correlations, self, which)
        return SignBlock(words, self.n_rows, d.threads, d.sign, correlations)

    def margins(self, weights: Array) -> Array:
        """Margins of weights of all stumps: they add up to one lookup table per feature."""
        d = self.dictionary
        features, tables = self._tables(weights[: self.n_stumps])
        base = float(weights[-2] - weights[-1]) if self.n_free else 0.0
        return d.matrix.margins(features, tables, base, d.sign, d.threads)

    def _tables(self, weights: Array) -> tuple[NDArray[np.int32], Array]:
        """Features in use and their lookup tables over bins."""
        d = self.dictionary
        n_lines = len(d.home)
        grid = np.bincount(self._at, self._sign * weights, 2 * n_lines * self._width)
        grid = grid.reshape(n_lines, self._width, 2)
        used = np.flatnonzero(grid.any(axis=(1, 2)))
        cuts, sides = grid[used].sum(axis=2), grid[used].sum(axis=1)
        # left of a cut are the bins up to it
        left = np.cumsum(cuts[:, ::-1], axis=1)[:, ::-1].copy()
        single = np.isin(used, self._single)
        left[single] = cuts[single]
        tables = np.zeros((len(used), 256))
        tables[:, : self._width] = 2.0 * left - cuts.sum(axis=1)[:, None]
        tables[:, MISSING] = sides[:, 1] - sides[:, 0]
        in_set = used >= len(d.features)  # places in an order are codes
        places = tables[in_set]
        np.put_along_axis(places, d.set_codes[used[in_set] - len(d.features)], tables[in_set], axis=1)
        tables[in_set] = places
        features, slot = np.unique(d.home[used], return_inverse=True)
        added = np.zeros((len(features), 256))
        np.add.at(added, slot, tables)
        return features, added

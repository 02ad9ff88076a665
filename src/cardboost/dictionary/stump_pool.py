"""The stumps generated so far: margins from lookup tables, edges from histograms, products from bits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.dictionary.base import ColumnPool
from cardboost.dictionary.signs import Words
from cardboost.dictionary.stump_arrays import CONSTANT, CONSTANTS, NO_STUMPS, StumpBits, Stumps
from cardboost.problem.risk import RiskPoint

if TYPE_CHECKING:
    from cardboost.dictionary.stumps import StumpDictionary

Array = NDArray[np.float64]


class StumpPool(ColumnPool):
    """The stumps generated so far, behind the intercept's two constant columns if there is an intercept."""

    def __init__(self, dictionary: StumpDictionary) -> None:
        self.dictionary = dictionary
        self.stumps = CONSTANTS if dictionary.intercept else NO_STUMPS
        self.n_free, self.sketches = len(self.stumps), dictionary.sketch is not None
        self._mask, self._n_masked = dictionary.closed.copy(), self.n_free
        self.signs = self.stumps.signs()
        self._cross_of: tuple[Array, Array] | None = None
        # on all rows, and on those of the sketch
        self._bits = self._sketched = StumpBits(dictionary.matrix.bins, dictionary.threads)
        if dictionary.sketch is not None:
            self._sketched = StumpBits(dictionary.sketch.matrix.bins, dictionary.threads)

    @property
    def n_columns(self) -> int:
        return len(self.stumps)

    @property
    def features(self) -> NDArray[np.int32]:
        return self.stumps.feature

    @property
    def mask(self) -> NDArray[np.uint8]:
        """The stumps that a search leaves out: those that are closed, and the columns of this pool."""
        if self._n_masked < self.n_columns:
            self.dictionary.forbid(self.stumps[self._n_masked :], self._mask)
            self._n_masked = self.n_columns
        return self._mask

    def append(self, atoms: Stumps) -> None:
        self.stumps = self.stumps + atoms
        self.signs = np.concatenate([self.signs, atoms.signs()])

    def place_missing(self, weights: Array) -> None:
        """Where no value was missing in training, put missing values on the side of most rows.

        Where a stump asks for one label they stay with the other labels, and where the side is given, there.
        Only columns in use are touched. On the rows of this table they stay as they are.
        """
        d, stumps = self.dictionary, self.stumps
        open_side = (d.matrix.n_missing[np.maximum(stumps.feature, 0)] == 0) & (stumps.feature != CONSTANT)
        open_side &= ~stumps.equals
        if d.missing is not None:
            open_side &= d.missing[np.maximum(stumps.feature, 0)] == 0
        which = np.flatnonzero(open_side & (weights > 0))
        if len(which) == 0:
            return
        open_stumps = replace(stumps[which], missing_left=np.zeros(len(which), dtype=bool))
        features, slot = np.unique(open_stumps.feature, return_inverse=True)
        lane = np.ones(d.matrix.n_rows, dtype=np.int64) if d.counts is None else d.counts
        hist = d.matrix.histograms(features, lane.reshape(-1, 1), d.threads)[..., 0]
        side = stumps.missing_left.copy()
        side[which] = 2 * open_stumps.left_sums(hist, slot) > hist[0].sum()
        self.stumps = replace(stumps, missing_left=side)
        self.signs = self.stumps.signs()

    def netted(self, weights: Array) -> Array:
        net, stumps, line = weights.copy(), self.stumps, self.dictionary.line_of(self.stumps)
        # where no value is missing, their side makes no other column
        side = stumps.missing_left & (self.dictionary.matrix.n_missing[np.maximum(stumps.feature, 0)] > 0)
        used: dict[tuple[int, int, bool, int], int] = {}
        for j in np.flatnonzero(weights).tolist():
            question = int(line[j]), int(stumps.cut[j]), bool(side[j])
            polarity = int(stumps.polarity[j])
            opposite = used.get((*question, -polarity))
            if opposite is None:
                used[(*question, polarity)] = j
            else:
                shared = min(net[j], net[opposite])
                net[j] -= shared
                net[opposite] -= shared
        return net

    def subset(self, columns: NDArray[np.intp]) -> StumpPool:
        """A pool of these columns only (they must include the intercept's)."""
        pool = StumpPool(self.dictionary)
        pool.append(self.stumps[columns[columns >= self.n_free]])
        return pool

    def tables(self, weights: Array) -> tuple[NDArray[np.int32], Array, float]:
        """Features in use, their lookup tables over bins, and the intercept."""
        base = float(weights[0] - weights[1]) if self.n_free else 0.0
        used = np.flatnonzero(weights)
        used = used[used >= self.n_free]
        if len(used) == 0:
            return np.empty(0, np.int32), np.empty((0, 256)), base
        feature = self.stumps.feature[used]
        order = np.argsort(feature, kind="stable")
        used, feature = used[order], feature[order]
        starts = np.flatnonzero(np.r_[True, feature[1:] != feature[:-1]])
        tables = np.add.reduceat(self.signs[used] * weights[used, None], starts, axis=0)
        return feature[starts], np.ascontiguousarray(tables), base

    def margins(self, weights: Array) -> Array:
        features, tables, base = self.tables(weights)
        d = self.dictionary
        return d.matrix.margins(features, tables, base, d.sign, d.threads)

    def edges(self, point: RiskPoint) -> Array:
        stumps = self.stumps[self.n_free :]
        features, slot = np.unique(stumps.feature, return_inverse=True)
        hist = self.dictionary.histograms(point, features)[..., 0]
        total = hist[0].sum() if len(features) else point.fixed.edge_lane.sum()
        sums = stumps.polarity * (2 * stumps.left_sums(hist, slot) - total)
        return np.append([total, -total][: self.n_free], sums) * point.fixed.edge_unit

    def gram(self, point: RiskPoint, left: NDArray[np.intp] | None = None, exact: bool = False) -> Array:
        """Second derivatives; on large tables from a sketch of the rows unless ``exact``."""
        d, lane, unit = self.dictionary, point.fixed.curvature_lane, point.fixed.curvature_unit
        left = np.arange(self.n_columns) if left is None else left
        if d.sketch is not None and not exact:
            sample = lane[d.sketch.rows]
            if sample.any():
                return self._estimate(sample, point, left) * unit
        return self._products(self._words(self._bits), lane, left) * unit

    def _words(self, bits: StumpBits) -> Words:
        return bits.words(np.arange(self.n_columns, dtype=np.int32), self.stumps.__getitem__)

    def _products(self, words: Words, lane: NDArray[np.int64], left: NDArray[np.intp]) -> Array:
        """``sum of lane * h_j * h_k`` for j in ``left`` and every k."""
        others = np.setdiff1d(np.arange(self.n_columns), left)
        order = np.concatenate([others, left])
        sums = _kernels.sign_gram(words[:, order].copy(), len(others), lane, self.dictionary.threads)
        products = np.empty((len(left), self.n_columns))
        products[:, order] = sums[len(others) :]
        return products

    def _estimate(self, sample: NDArray[np.int64], point: RiskPoint, left: NDArray[np.intp]) -> Array:
        """Correlations from the rows of the sketch; sums with the constant, and so variances, are exact.

        A rare value has few rows in a sketch, and the quadratic model lives on how rare it is.
        """
        words, cross = self._words(self._sketched), self._cross(point)
        total = float(point.fixed.curvature_lane.sum())
        scale = total / int(sample.sum())
        ones = _kernels.sign_edges(words, sample, self.dictionary.threads) * scale
        variance = np.maximum(total - cross * cross / total, 0.0)
        seen = np.maximum(total - ones * ones / total, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(seen > 1e-9 * total, np.sqrt(variance / seen), 0.0)
        covariance = self._products(words, sample, left) * scale - ones[left, None] * ones / total
        out = cross[left, None] * cross / total + factor[left, None] * factor * covariance
        out[np.arange(len(left)), left] = total
        return out

    def _cross(self, point: RiskPoint) -> Array:
        """``sum of curvature * h_j`` over all rows, remembered while the point stays the same."""
        cross = np.empty(0)
        if self._cross_of is not None and self._cross_of[0] is point.F:
            cross = self._cross_of[1]
        if len(cross) < self.n_columns:
            total = float(point.fixed.curvature_lane.sum())
            if len(cross) < self.n_free:
                cross = np.array([1.0, -1.0]) * total
            new = self.stumps[len(cross) :]
            features, slot = np.unique(new.feature, return_inverse=True)
            hist = self.dictionary.histograms(point, features)[:, :, 1]
            left = new.left_sums(hist, slot)
            cross = np.concatenate([cross, new.polarity * (2.0 * left - total)])
            self._cross_of = (point.F, cross)
        return cross

    def dense(self) -> NDArray[np.int8]:
        d = self.dictionary
        out = np.empty((d.matrix.n_rows, self.n_columns), dtype=np.int8, order="F")
        for j, feature in enumerate(np.maximum(self.stumps.feature, 0)):  # constants say the same in all bins
            out[:, j] = self.signs[j][d.matrix.bins[feature]]
        return out if d.sign is None else out * d.sign[:, None]

"""All decision stumps on a binned table: feature, cut, polarity and a side for missing values.

On a categorical feature the "cut" is a category, and the stump asks whether the value is that one; or it is
a place in an order of the categories, and the stump asks whether the value is one of those up to there. Such
sets are searched like cuts, in the histogram of the feature with its bins put into that order.

The matrix of all stumps is never built. Stumps on a feature share its column of bins, so their margins add
up to one lookup table per feature, and the edges of all of them are prefix sums of one histogram.
"""

from __future__ import annotations

import functools
import operator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cardboost import _kernels
from cardboost.data.binning import MISSING, BinnedMatrix
from cardboost.data.weights import RowWeights
from cardboost.dictionary.base import BY_EDGE, Dictionary, Proposals, Scoring
from cardboost.dictionary.label_orders import Orders
from cardboost.dictionary.sketch import RowSketch
from cardboost.dictionary.stump_arrays import NO_STUMPS, Stumps
from cardboost.dictionary.stump_pool import StumpPool
from cardboost.problem.risk import EmpiricalRisk, RiskPoint

Array = NDArray[np.float64]
#: beyond which a file does not name all cuts: a certificate then covers the candidates only
MAX_CUTS_IN_FILE = 200_000


@dataclass(frozen=True)
class EdgeProposals(Proposals):
    """With row weights as whole numbers: ``wrong`` of the rows that a stump gets wrong, ``total`` of all.

    ``constant`` is the edge of the rule "positive" for every row, minus that of "negative". The better of the
    two is the last in ``wrong``.
    """

    wrong: tuple[int, ...]
    total: int
    constant: float


class StumpDictionary(Dictionary):
    """Searches all stumps exactly: one histogram pass over the table and a prefix sum."""

    exact = True

    def __init__(
        self,
        matrix: BinnedMatrix,
        sign: NDArray[np.int8] | None,
        threads: int = 1,
        intercept: bool = True,
        weights: RowWeights | None = None,
        monotonic: NDArray[np.int8] | None = None,
        by_feature: bool = False,
        orders: Orders = (),
        missing: NDArray[np.int8] | None = None,
        excluded: tuple[int, ...] = (),
    ) -> None:
        """``sign``: y, which is multiplied into the columns; None (regression): the columns are the stumps.

        ``weights``: given, Hessians on large tables are estimated from a sketch of the rows.
        ``monotonic``: per feature 1 (the score may only rise with it), -1 (only fall) or 0.
        ``by_feature``: equal columns of different features count as different, for limits on features.
        ``orders``: for every feature the codes of its labels in the order that makes its sets, or None; none
        at all: there are no sets.
        ``missing``: per feature the side of missing values, -1 that of the lower score, 1 that of the higher,
        or 0, either. ``excluded``: features without stumps.

        The search runs over *lines*: one for every feature, then one for the sets of each that has an order.
        """
        self.matrix = matrix
        self.sign = sign
        self.threads = threads
        self.intercept = intercept
        self.categorical = matrix.categorical
        self.monotonic, self.missing, self.excluded = monotonic, missing, excluded
        self.counts = None if weights is None else weights.count
        self.by_feature = by_feature
        self.fits_file = sum(len(cuts) for cuts in matrix.cuts) <= MAX_CUTS_IN_FILE
        self.features = np.arange(matrix.n_features, dtype=np.int32)
        self._words = self._word_sums()
        self._arrange(orders)
        self.sketch = None if weights is None else RowSketch.make(matrix, weights, threads)
        # histograms of the latest points, known by their margins so that nothing else of a point is kept
        self._passes: list[tuple[Array, NDArray[np.int32], NDArray[np.int64]]] = []
        self._last_scores: Array | None = None

    def _arrange(self, orders: Orders) -> None:
        """Lay out the lines: what they look like to the search, and which stumps are equal or constant."""
        matrix = self.matrix
        self.orders = orders
        order_of = {j: order for j, order in enumerate(orders) if order is not None}
        ordered = np.array(list(order_of), dtype=np.int32)
        self.set_codes = np.tile(np.arange(256, dtype=np.uint8), (len(ordered), 1))
        for codes, order in zip(self.set_codes, order_of.values(), strict=True):
            codes[: len(order)] = order
        self.home = np.concatenate([self.features, ordered])
        self.set_line = np.full(matrix.n_features, -1, dtype=np.intp)
        self.set_line[ordered] = matrix.n_features + np.arange(len(ordered))
        self.n_bins = matrix.n_bins[self.home]
        self.kind = (matrix.n_missing[self.home] > 0).astype(np.uint8)
        self.kind[: matrix.n_features] |= np.where(self.categorical, 2, 0).astype(np.uint8)
        self.plus_digest, self.closed = self._digests()
        if self.monotonic is not None:
            self._close_against(self.monotonic)
        if self.missing is not None:
            self._close_sides(self.missing)
        self.closed[np.isin(self.home, self.excluded)] = 15

    def _word_sums(self) -> NDArray[np.uint64]:
        """Rows get random integers; their sums (modulo 2^64) in every bin of every feature."""
        m = self.matrix.n_rows
        words = np.random.default_rng(20_26).integers(-(2**62), 2**62, size=(m, 1), dtype=np.int64)
        hist = self.matrix.histograms(self.features, words, self.threads)
        return hist[..., 0].view(np.uint64)

    def _digests(self) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        """For every stump a number that is equal for equal columns, and which stumps are constant.

        A stump's number is the sum of the words of the rows where it is +1 (modulo 2^64). Shape (lines, 256,
        4); the last axis is missing right/left times polarity +/-. Bins that do not exist are left out as if
        they were constant, and so are sets of one label, and of all but one: the stump on that label is the
        same column.
        """
        hist = self.in_lines(self._words, self.features)
        left = np.cumsum(hist, axis=1, dtype=np.uint64)
        total, missing = left[:, -1:].copy(), hist[:, MISSING:]
        single = np.flatnonzero(self.categorical)
        left[single] = hist[single]
        sides = np.stack([left, total - left, left + missing, total - left - missing], axis=2)
        constant = (sides == 0) | (sides == total[:, :, None])
        mask = (np.packbits(constant[..., ::-1], axis=2)[..., 0] >> 4).astype(np.uint8)
        mask[np.arange(256) >= self.n_bins[:, None]] = 15  # of a category that does not exist: "is missing"
        size, n = np.arange(1, 257), self.n_bins[self.matrix.n_features :, None]
        mask[self.matrix.n_features :][(size < 2) | (size > n - 2)] = 15
        if self.by_feature:
            names = np.random.default_rng(20_27).integers(2**64, size=len(self.features), dtype=np.uint64)
            sides = sides + names[self.home, None, None]
        return sides.astype(np.uint64, copy=False), mask

    def _close_against(self, monotonic: NDArray[np.int8]) -> None:
        """Leave out stumps that go the wrong way; the one that only tells missing from present may stay."""
        cuts = np.arange(256)[None, :] < self.n_bins[:, None] - 1
        for direction, wrong in ((1, 0b0101), (-1, 0b1010)):
            self.closed[(monotonic[self.home] == direction)[:, None] & cuts] |= np.uint8(wrong)

    def _close_sides(self, missing: NDArray[np.int8]) -> None:
        """Leave out stumps with missing values on the other side; where no value is missing all may stay."""
        sides = np.where(self.matrix.n_missing > 0, missing, 0)[self.home]
        for side, wrong in ((-1, 0b0110), (1, 0b1001)):
            self.closed[sides == side] |= np.uint8(wrong)

    def in_lines(self, hist: NDArray[Any], features: NDArray[np.int32]) -> NDArray[Any]:
        """The histograms of these features, and behind them those of the lines of their sets."""
        with_sets = np.flatnonzero(self.set_line[features] >= 0)
        if len(with_sets) == 0:
            return hist
        sets = self.set_line[features[with_sets]] - len(self.features)
        return np.concatenate([hist, hist[with_sets[:, None], self.set_codes[sets]]])

    def stumps(
        self, line: NDArray[np.intp], cut: ArrayLike, polarity: ArrayLike, missing_left: ArrayLike
    ) -> Stumps:
        """Stumps at these places of these lines."""
        feature, cut = self.home[line], np.asarray(cut, dtype=np.int32)
        if self.missing is not None:
            fixed = self.missing[feature]
            missing_left = np.where(fixed == 0, missing_left, fixed == np.asarray(polarity))
        in_set = line >= len(self.features)
        codes = self.set_codes[line[in_set] - len(self.features)]
        sets = {j: codes[k, : cut[j] + 1] for k, j in enumerate(np.flatnonzero(in_set).tolist())}
        return Stumps.make(feature, cut, polarity, missing_left, self.categorical[feature] & ~in_set, sets)

    def line_of(self, stumps: Stumps) -> NDArray[np.intp]:
        return np.where(stumps.one_of, self.set_line[stumps.feature], stumps.feature)

    def allows(self, stump: Stumps) -> bool:
        """Whether a single stump is not constant, and no rule of its feature forbids it."""
        side = 2 * int(stump.missing_left[0]) + (int(stump.polarity[0]) < 0)
        return not self.closed[self.line_of(stump)[0], stump.cut[0]] & (1 << side)

    def relabelled(self, sign: NDArray[np.int8], orders: Orders) -> StumpDictionary:
        """The stumps of the same rows for other labels, with the orders that these make.

        What does not depend on labels is shared.
        """
        other = copy(self)
        other.sign = sign
        other._passes, other._last_scores = [], None
        if len(self.home) > len(self.features) or any(order is not None for order in orders):
            other._arrange(orders)
        return other

    def sketched(self, risk: EmpiricalRisk, n_rows: int) -> tuple[StumpDictionary, EmpiricalRisk] | None:
        """The rows are not those of the sketch for Hessians, which may be taken of them in turn."""
        sketch = RowSketch.make(self.matrix, risk.weights, self.threads, n_rows, bit=40)
        if sketch is None:
            return None
        fewer = risk.over(sketch.rows)
        return self.over(sketch.matrix, fewer, self.orders), fewer

    def over(self, matrix: BinnedMatrix, risk: EmpiricalRisk, orders: Orders) -> StumpDictionary:
        """The stumps of other rows under the same cuts, with the orders of their labels."""
        return StumpDictionary(
            matrix, risk.sign, self.threads, self.intercept, risk.weights, self.monotonic, self.by_feature,
            orders, self.missing, self.excluded,
        )  # fmt: skip

    def pool(self) -> StumpPool:
        return StumpPool(self)

    def histograms(self, point: RiskPoint, features: NDArray[np.int32]) -> NDArray[np.int64]:
        """Edge and curvature sums of every bin of these features (ascending).

        Those of the latest passes are remembered.
        """
        for F, counted, hist in self._passes:
            if F is point.F and counted is features:
                return hist
            if F is point.F and len(counted):
                place = np.minimum(np.searchsorted(counted, features), len(counted) - 1)
                if (counted[place] == features).all():
                    return hist[place]
        hist = self.matrix.histograms(features, point.fixed.lanes, self.threads)
        self._passes = [(point.F, features, hist), *self._passes[:1]]
        return hist

    def best_columns(  # type: ignore[override]
        self, point: RiskPoint, k: int, exclude: StumpPool, scoring: Scoring = BY_EDGE
    ) -> Proposals:
        """The best stumps, spread over features: the best of each of the k best features.

        Neighbouring cuts of a feature are nearly the same column, so more than one of a feature is proposed
        only when k is larger than the number of features that have any.
        """
        proposals, self._last_scores = self._search(self.features, point, k, exclude, scoring)
        return proposals

    def largest_edges(self, point: RiskPoint, k: int = 1) -> EdgeProposals:
        """The stumps of largest edge, whether or not a pool has them, spread over features: half the work."""
        lane, unit = point.risk.edge_rows(point)
        hist = self.matrix.histograms(self.features, lane, self.threads)
        edge, _, cut, polarity, missing_left, largest = _kernels.search(
            self.in_lines(hist, self.features), self.n_bins, self.kind, self.closed,
            unit, 0.0, 0.0, 0.0, False, False,
        )  # fmt: skip
        order = np.argsort(-edge, kind="stable")[:k]
        order = order[np.isfinite(edge[order])]
        atoms = self.stumps(order, cut[order], polarity[order], missing_left[order])
        left = atoms.left_sums(hist[atoms.feature, :, 0], np.arange(len(atoms)))
        total, every = int(lane.sum()), int(np.abs(lane).sum())
        wrong = (every - atoms.polarity * (2 * left - total)) // 2
        of_all = (*wrong.tolist(), (every - abs(total)) // 2)
        return EdgeProposals(atoms, edge[order], float(largest), of_all, every, float(total * unit))

    def unseen_edges(self, point: RiskPoint, exclude: StumpPool) -> Array:  # type: ignore[override]
        return self._search(self.features, point, 1, exclude, BY_EDGE)[1]

    def columns_of(
        self, features: NDArray[np.int32], point: RiskPoint, k: int, exclude: StumpPool, scoring: Scoring
    ) -> Proposals:
        """The best stumps on these features (ascending), spread over them as in :meth:`best_columns`."""
        return self._search(features, point, k, exclude, scoring)[0]

    def promising_columns(  # type: ignore[override]
        self, point: RiskPoint, k: int, exclude: StumpPool, scoring: Scoring
    ) -> Proposals:
        """Like :meth:`best_columns`, but only among features that were good at the last full search or are in
        use; its bound says nothing of the others."""
        if self._last_scores is not None:
            good = np.argsort(-self._last_scores, kind="stable")[: max(16, 2 * k)]
            features = np.union1d(good, exclude.stumps.feature[exclude.n_free :]).astype(np.int32)
            if len(features) <= 0.6 * len(self.features):
                return self.columns_of(features, point, k, exclude, scoring)
        return self.best_columns(point, k, exclude, scoring)

    def _search(
        self, features: NDArray[np.int32], point: RiskPoint, k: int, exclude: StumpPool, scoring: Scoring
    ) -> tuple[Proposals, Array]:
        """The best stumps on these features (ascending), and the best score of each feature."""
        sets = self.set_line[features]
        lines = np.concatenate([features, sets[sets >= 0]]).astype(np.intp)
        hist = self.in_lines(self.histograms(point, features), features)
        mask = np.ascontiguousarray(exclude.mask[lines])
        n_bins, kind = self.n_bins[lines], self.kind[lines]
        parts: list[Stumps] = []
        edges: list[Array] = []
        bound, left, scores = -np.inf, k, np.empty(0)
        while left > 0:
            score, edge, cut, polarity, missing_left, largest = _kernels.search(
                hist, n_bins, kind, mask, point.fixed.edge_unit, point.fixed.curvature_unit,
                scoring.l1, scoring.l2, scoring.criterion == "gain", self.intercept,
            )  # fmt: skip
            if not parts:
                bound, scores = largest, self._per_feature(score, features)
            order = np.argsort(-score, kind="stable")
            order = order[np.isfinite(score[order])]
            if len(lines) > len(features):  # a label or a set, the better of a feature's two
                order = order[np.sort(np.unique(self.home[lines[order]], return_index=True)[1])]
            order = order[:left]
            if len(order) == 0:
                break
            chosen = self.stumps(lines[order], cut[order], polarity[order], missing_left[order])
            distinct = np.sort(np.unique(self.digest_of(chosen), return_index=True)[1])
            chosen, order = chosen[distinct], order[distinct]
            parts.append(chosen)
            edges.append(edge[order])
            left -= len(order)
            if left > 0:
                whole = np.zeros((len(self.home), 256), dtype=np.uint8)
                self.forbid(chosen, whole)
                mask = mask | whole[lines]
        atoms = functools.reduce(operator.add, parts, NO_STUMPS)
        return Proposals(atoms, np.concatenate([np.empty(0), *edges]), float(bound)), scores

    def _per_feature(self, scores: Array, features: NDArray[np.int32]) -> Array:
        """The best of the lines of these features, given for all their lines."""
        best = scores[: len(features)].copy()
        np.maximum.at(best, np.flatnonzero(self.set_line[features] >= 0), scores[len(features) :])
        return best

    def digest_of(self, stumps: Stumps) -> NDArray[np.uint64]:
        side = 2 * stumps.missing_left.astype(np.intp) + (stumps.polarity < 0)
        return self.plus_digest[self.line_of(stumps), stumps.cut, side]

    def forbid(self, stumps: Stumps, mask: NDArray[np.uint8]) -> None:
        """Mark every stump that is the same column as one of these."""
        flat, marks = self.plus_digest.reshape(-1), mask.reshape(-1)
        for digest in self.digest_of(stumps):
            same = np.flatnonzero(flat == digest)
            np.bitwise_or.at(marks, same // 4, (1 << (same % 4)).astype(np.uint8))

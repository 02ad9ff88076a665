"""All decision stumps on a binned table: feature, cut, polarity and a side for missing values.

On a categorical feature the "cut" is a category, and the stump asks whether the value is that one; or it is
a place in an order of the categories, and the stump asks whether the value is one of those up to there. Such
sets are searched like cuts, in the histogram of the feature with its bins put into that order.

The matrix of all stumps is never built. Stumps on a feature share its column of bins, so their margins add
up to one lookup table per feature, and the edges of all of them are prefix sums of one histogram.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cardboost import _kernels
from cardboost.data.binning import MISSING, BinnedMatrix
from cardboost.data.weights import RowWeights
from cardboost.dictionary.base import BY_EDGE, ColumnPool, Dictionary, Proposals, Scoring
from cardboost.dictionary.label_orders import Orders
from cardboost.dictionary.sketch import RowSketch
from cardboost.problem.risk import EmpiricalRisk, RiskPoint

Array = NDArray[np.float64]
CONSTANT = -1  # the "feature" of the intercept's two columns
#: beyond which a file does not name all cuts: a certificate then covers the candidates only
MAX_CUTS_IN_FILE = 200_000


@dataclass(frozen=True)
class Stumps:
    """Stumps as arrays: +polarity on the left, -polarity on the right.

    Left is where the bin is at most ``cut``, or equal to it if ``equals``, or in a set if ``one_of`` (``cut``
    is then the place of its last bin in the dictionary's order); missing if ``missing_left``. ``left`` has a
    mark for the bins on the left, that of missing values aside.
    """

    feature: NDArray[np.int32]
    cut: NDArray[np.int32]
    polarity: NDArray[np.int8]
    missing_left: NDArray[np.bool_]
    equals: NDArray[np.bool_]
    one_of: NDArray[np.bool_]
    left: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.feature)

    def __getitem__(self, which: slice | NDArray[Any]) -> Stumps:
        return Stumps(**{field.name: getattr(self, field.name)[which] for field in fields(self)})

    def __add__(self, other: Stumps) -> Stumps:
        names = [field.name for field in fields(self)]
        return Stumps(**{n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in names})

    @classmethod
    def make(
        cls,
        feature: ArrayLike,
        cut: ArrayLike,
        polarity: ArrayLike,
        missing_left: ArrayLike,
        equals: ArrayLike | None = None,
        sets: Mapping[int, ArrayLike] | None = None,
    ) -> Stumps:
        """``sets``: the bins of those stumps (by position) that ask for one of several."""
        feature, cut = np.asarray(feature, dtype=np.int32), np.asarray(cut, dtype=np.int32)
        equal = np.zeros(len(feature), dtype=bool) if equals is None else np.asarray(equals, dtype=bool)
        one_of = np.zeros(len(feature), dtype=bool)
        bins = np.arange(256)[None, :]
        left = np.where(equal[:, None], bins == cut[:, None], bins <= cut[:, None])
        for j, own in (sets or {}).items():
            one_of[j] = True
            left[j] = False
            left[j, np.asarray(own, dtype=np.intp)] = True
        sides = np.asarray(polarity, dtype=np.int8), np.asarray(missing_left, dtype=bool)
        return cls(feature, cut, *sides, equal, one_of, left)

    def signs(self) -> NDArray[np.int8]:
        """Value of every stump in every bin: shape (stumps, 256)."""
        left = self.left.copy()
        left[:, MISSING] = self.missing_left
        left |= (self.feature == CONSTANT)[:, None]
        return np.where(left, self.polarity[:, None], -self.polarity[:, None]).astype(np.int8)

    def left_sums(self, hist: NDArray[Any], slot: NDArray[np.intp]) -> NDArray[Any]:
        """Sums over the left sides from histograms (features, 256, ...); ``slot``: each stump's histogram."""
        cut = np.minimum(self.cut, MISSING - 1)
        left = np.cumsum(hist[:, :MISSING], axis=1)[slot, cut]
        if self.equals.any():
            left[self.equals] = hist[slot[self.equals], cut[self.equals]]
        if self.one_of.any():
            held = self.left[self.one_of, :MISSING].astype(hist.dtype)
            left[self.one_of] = np.einsum("jb,jb...->j...", held, hist[slot[self.one_of], :MISSING])
        left[self.missing_left] += hist[slot[self.missing_left], MISSING]
        return left


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
    ) -> None:
        """``sign``: y, which is multiplied into the columns; None (regression): the columns are the stumps.

        ``weights``: given, Hessians on large tables are estimated from a sketch of the rows.
        ``monotonic``: per feature 1 (the score may only rise with it), -1 (only fall) or 0.
        ``by_feature``: equal columns of different features count as different, for limits on features.
        ``orders``: for every feature the codes of its labels in the order that makes its sets, or None; none
        at all: there are no sets.

        The search runs over *lines*: one for every feature, then one for the sets of each that has an order.
        """
        self.matrix = matrix
        self.sign = sign
        self.threads = threads
        self.intercept = intercept
        self.categorical = matrix.categorical
        self.monotonic = monotonic
        self.counts = None if weights is None else weights.count
        self.by_feature = by_feature
        self.features = np.arange(matrix.n_features, dtype=np.int32)
        self._words = self._word_sums()
        self._arrange(orders)
        self.sketch = None if weights is None else RowSketch.make(matrix, weights, threads)
        # histograms of the latest points, known by their margins so that nothing else of a point is kept
        self._recent: tuple[Array, NDArray[np.int64]] | None = None
        self._partial: tuple[Array, NDArray[np.int32], NDArray[np.int64]] | None = None
        self._last_scores: Array | None = None

    def _arrange(self, orders: Orders) -> None:
        """Lay out the lines: what they look like to the search, and which stumps are equal or constant."""
        matrix = self.matrix
        self.orders = orders
        ordered = [j for j, own in enumerate(orders) if own is not None]
        self.home = np.concatenate([self.features, np.array(ordered, dtype=np.int32)])
        self.set_line = np.full(matrix.n_features, -1, dtype=np.intp)
        self.set_line[ordered] = matrix.n_features + np.arange(len(ordered))
        self.n_bins = matrix.n_bins[self.home]
        self.kind = (matrix.n_missing[self.home] > 0).astype(np.uint8)
        self.kind[: matrix.n_features] |= np.where(self.categorical, 2, 0).astype(np.uint8)
        self.plus_digest, self.closed = self._digests()
        if self.monotonic is not None:
            self._close_against(self.monotonic)

    def _word_sums(self) -> NDArray[np.uint64]:
        """Rows get random integers; their sums (modulo 2^64) in every bin of every feature."""
        m = self.matrix.n_rows
        words = np.random.default_rng(20_26).integers(-(2**62), 2**62, size=(m, 1), dtype=np.int64)
        hist = _kernels.histograms(self.matrix.bins, self.features, words, self.threads)
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

    def in_lines(self, hist: NDArray[Any], features: NDArray[np.int32]) -> NDArray[Any]:
        """The histograms of these features, and behind them those of the lines of their sets."""
        own = np.flatnonzero(self.set_line[features] >= 0)
        if len(own) == 0:
            return hist
        bins = np.tile(np.arange(256), (len(own), 1))
        for row, feature in zip(bins, features[own].tolist(), strict=True):
            order = self.orders[feature]
            assert order is not None
            row[: len(order)] = order
        return np.concatenate([hist, hist[own[:, None], bins]])

    def _lines(self, features: NDArray[np.int32]) -> NDArray[np.intp]:
        """The lines of :meth:`in_lines`."""
        sets = self.set_line[features]
        return np.concatenate([features, sets[sets >= 0]]).astype(np.intp)

    def stumps(
        self, line: NDArray[np.intp], cut: ArrayLike, polarity: ArrayLike, missing_left: ArrayLike
    ) -> Stumps:
        """Stumps at these places of these lines."""
        feature, cut = self.home[line], np.asarray(cut, dtype=np.int32)
        sets = {}
        for j in np.flatnonzero(line >= len(self.features)).tolist():
            order = self.orders[feature[j]]
            assert order is not None
            sets[j] = order[: cut[j] + 1]
        equals = self.categorical[feature] & (line < len(self.features))
        return Stumps.make(feature, cut, polarity, missing_left, equals, sets)

    def line_of(self, stumps: Stumps) -> NDArray[np.intp]:
        return np.where(stumps.one_of, self.set_line[stumps.feature], stumps.feature)

    def allows(self, stump: Stumps) -> bool:
        """Whether a single stump is not constant, and no direction of its feature forbids it."""
        side = 2 * int(stump.missing_left[0]) + (int(stump.polarity[0]) < 0)
        return not self.closed[self.line_of(stump)[0], stump.cut[0]] & (1 << side)

    def relabelled(self, sign: NDArray[np.int8], orders: Orders) -> StumpDictionary:
        """The stumps of the same rows for other labels, with the orders that these make.

        What does not depend on labels is shared.
        """
        other = copy(self)
        other.sign = sign
        other._recent = other._partial = other._last_scores = None
        if len(self.home) > len(self.features) or any(own is not None for own in orders):
            other._arrange(orders)
        return other

    def sketched(self, risk: EmpiricalRisk, n_rows: int) -> tuple[StumpDictionary, EmpiricalRisk] | None:
        """The rows are not those of the sketch for Hessians, which may be taken of them in turn."""
        sketch = RowSketch.make(self.matrix, risk.weights, self.threads, n_rows, bit=40)
        if sketch is None:
            return None
        rows, weights = sketch.rows, risk.weights.take(sketch.rows)
        sign = None if risk.sign is None else risk.sign[rows]
        target = None if risk.target is None else risk.target[rows]
        dictionary = StumpDictionary(
            self.matrix.take(rows, sketch.bins), sign, self.threads, self.intercept, weights, self.monotonic,
            self.by_feature, self.orders,
        )  # fmt: skip
        return dictionary, EmpiricalRisk(risk.loss, weights, sign, risk.threads, target)

    def pool(self) -> StumpPool:
        return StumpPool(self)

    @property
    def fits_file(self) -> bool:  # type: ignore[override]
        return sum(len(cuts) for cuts in self.matrix.cuts) <= MAX_CUTS_IN_FILE

    def histogram(self, point: RiskPoint) -> NDArray[np.int64]:
        """Edge and curvature sums of every bin of every feature; the latest one is remembered."""
        if self._recent is None or self._recent[0] is not point.F:
            hist = _kernels.histograms(self.matrix.bins, self.features, point.fixed.lanes, self.threads)
            self._recent = (point.F, hist)
        return self._recent[1]

    def partial_histogram(self, point: RiskPoint, features: NDArray[np.int32]) -> NDArray[np.int64]:
        """Histograms of some features (ascending), from an earlier pass where there was one."""
        if self._recent is not None and self._recent[0] is point.F:
            return self._recent[1][features]
        if self._partial is not None and self._partial[0] is point.F and len(self._partial[1]):
            _, counted, hist = self._partial
            place = np.minimum(np.searchsorted(counted, features), len(counted) - 1)
            if (counted[place] == features).all():
                return hist[place]
        hist = _kernels.histograms(self.matrix.bins, features, point.fixed.lanes, self.threads)
        self._partial = (point.F, features, hist)
        return hist

    def best_columns(  # type: ignore[override]
        self, point: RiskPoint, k: int, exclude: StumpPool, scoring: Scoring = BY_EDGE
    ) -> Proposals:
        """The best stumps, spread over features: the best of each of the k best features.

        Neighbouring cuts of a feature are nearly the same column, so more than one of a feature is proposed
        only when k is larger than the number of features that have any.
        """
        proposals, self._last_scores = self._search(
            self.histogram(point), self.features, point, k, exclude, scoring
        )
        return proposals

    def largest_edges(self, point: RiskPoint, k: int = 1) -> EdgeProposals:
        """The stumps of largest edge, whether or not a pool has them, spread over features: half the work."""
        lane, unit = point.risk.edge_rows(point)
        hist = _kernels.histograms(self.matrix.bins, self.features, lane, self.threads)
        edge, _, cut, polarity, missing_left, largest = _kernels.search(
            self.in_lines(hist, self.features), self.n_bins, self.kind, self.closed,
            unit, 0.0, 0.0, 0.0, False, False,
        )  # fmt: skip
        order = np.argsort(-edge, kind="stable")[:k]
        order = order[np.isfinite(edge[order])]
        atoms = self.stumps(order, cut[order], polarity[order], missing_left[order])
        left = atoms.left_sums(hist[atoms.feature, :, 0], np.arange(len(atoms))).tolist()
        total, every, ways = int(lane.sum()), int(np.abs(lane).sum()), atoms.polarity.tolist()
        wrong = [(every - way * (2 * own - total)) // 2 for own, way in zip(left, ways, strict=True)]
        wrong.append((every - abs(total)) // 2)
        return EdgeProposals(
            atoms, edge[order], float(largest), tuple(map(int, wrong)), every, float(total * unit)
        )

    def unseen_edges(self, point: RiskPoint, exclude: StumpPool) -> Array:  # type: ignore[override]
        hist = self.in_lines(self.histogram(point), self.features)
        edges = _kernels.search(
            hist, self.n_bins, self.kind, np.ascontiguousarray(exclude.mask),
            point.fixed.edge_unit, point.fixed.curvature_unit, 0.0, 0.0, False, self.intercept,
        )[0]  # fmt: skip
        return self._per_feature(edges, self.features)

    def columns_of(
        self, features: NDArray[np.int32], point: RiskPoint, k: int, exclude: StumpPool, scoring: Scoring
    ) -> Proposals:
        """The best stumps on these features (ascending), spread over them as in :meth:`best_columns`."""
        hist = self.partial_histogram(point, features)
        return self._search(hist, features, point, k, exclude, scoring)[0]

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
        self, hist: NDArray[np.int64], features: NDArray[np.int32], point: RiskPoint, k: int,
        exclude: StumpPool, scoring: Scoring,
    ) -> tuple[Proposals, Array]:  # fmt: skip
        """Search the histograms of these features; returns the proposals and the best score of each."""
        lines = self._lines(features)
        hist, mask = self.in_lines(hist, features), np.ascontiguousarray(exclude.mask[lines])
        n_bins, kind = self.n_bins[lines], self.kind[lines]
        found: list[Stumps] = []
        edges: list[Array] = []
        bound, left, scores = -np.inf, k, np.empty(0)
        while left > 0:
            score, edge, cut, polarity, missing_left, largest = _kernels.search(
                hist, n_bins, kind, mask, point.fixed.edge_unit, point.fixed.curvature_unit,
                scoring.l1, scoring.l2, scoring.criterion == "gain", self.intercept,
            )  # fmt: skip
            if not found:
                bound, scores = largest, self._per_feature(score, features)
            order = np.argsort(-score, kind="stable")
            order = order[np.isfinite(score[order])]
            if len(lines) > len(features):  # a label or a set, the better of a feature's two
                order = order[np.sort(np.unique(self.home[lines[order]], return_index=True)[1])]
            order = order[:left]
            if len(order) == 0:
                break
            chosen = self.stumps(lines[order], cut[order], polarity[order], missing_left[order])
            chosen, order = self._distinct(chosen, order)
            found.append(chosen)
            edges.append(edge[order])
            left -= len(order)
            if left > 0:
                whole = np.zeros((len(self.home), 256), dtype=np.uint8)
                self.forbid(chosen, whole)
                mask = mask | whole[lines]
        atoms = found[0] if found else Stumps.make([], [], [], [])
        for more in found[1:]:
            atoms = atoms + more
        return Proposals(atoms, np.concatenate(edges) if edges else np.empty(0), float(bound)), scores

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

    def _distinct(self, stumps: Stumps, order: NDArray[np.intp]) -> tuple[Stumps, NDArray[np.intp]]:
        _, first = np.unique(self.digest_of(stumps), return_index=True)
        keep = np.sort(first)
        return stumps[keep], order[keep]


class StumpPool(ColumnPool):
    """The stumps generated so far, behind the intercept's two constant columns if there is an intercept."""

    def __init__(self, dictionary: StumpDictionary) -> None:
        self.dictionary = dictionary
        self.stumps = Stumps.make([], [], [], [])
        self.mask = dictionary.closed.copy()
        self.signs = np.empty((0, 256), dtype=np.int8)
        self._cross_of: tuple[Array, Array] | None = None
        self._sketched = np.empty((0, 0), dtype=np.int8)
        if dictionary.intercept:
            self.stumps = Stumps.make([CONSTANT, CONSTANT], [MISSING, MISSING], [1, -1], [True, True])
            self.signs = self.stumps.signs()

    @property
    def n_columns(self) -> int:
        return len(self.stumps)

    @property
    def n_free(self) -> int:
        return 2 if self.dictionary.intercept else 0

    @property
    def features(self) -> NDArray[np.int32]:
        return self.stumps.feature

    @property
    def sketches(self) -> bool:  # type: ignore[override]
        return self.dictionary.sketch is not None

    def append(self, atoms: Stumps) -> None:
        self.stumps = self.stumps + atoms
        self.signs = np.concatenate([self.signs, atoms.signs()])
        self.dictionary.forbid(atoms, self.mask)

    def place_missing(self, weights: Array) -> None:
        """Where no value was missing in training, put missing values on the side of most rows.

        Where a stump asks for one label they stay with the other labels. Only columns in use are touched. On
        the rows of this table they stay as they are.
        """
        d, stumps = self.dictionary, self.stumps
        open_side = (d.matrix.n_missing[np.maximum(stumps.feature, 0)] == 0) & (stumps.feature != CONSTANT)
        open_side &= ~stumps.equals
        which = np.flatnonzero(open_side & (weights > 0))
        if len(which) == 0:
            return
        own = replace(stumps[which], missing_left=np.zeros(len(which), dtype=bool))
        features, slot = np.unique(own.feature, return_inverse=True)
        lane = np.ones(d.matrix.n_rows, dtype=np.int64) if d.counts is None else d.counts
        hist = _kernels.histograms(d.matrix.bins, features, lane.reshape(-1, 1), d.threads)[..., 0]
        side = stumps.missing_left.copy()
        side[which] = 2 * own.left_sums(hist, slot) > hist[0].sum()
        self.stumps = replace(stumps, missing_left=side)
        self.signs = self.stumps.signs()

    def netted(self, weights: Array) -> Array:
        net, stumps = weights.copy(), self.stumps
        used: dict[tuple[int, bool, int, bool, int], int] = {}
        for j in np.flatnonzero(weights).tolist():
            feature, cut = int(stumps.feature[j]), int(stumps.cut[j])
            question = feature, bool(stumps.one_of[j]), cut, bool(stumps.missing_left[j])
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
        return _kernels.margins(d.matrix.bins, features, tables, base, d.sign, d.threads)

    def edges(self, point: RiskPoint) -> Array:
        features, slot = self._features()
        hist = self.dictionary.partial_histogram(point, features)[:, :, :1]
        total = hist[0].sum(axis=0) if len(features) else np.array([point.fixed.lanes[:, 0].sum()])
        return self._signed_sums(hist, slot, total)[:, 0] * point.fixed.edge_unit

    def gram(self, point: RiskPoint, left: NDArray[np.intp] | None = None, exact: bool = False) -> Array:
        """Second derivatives; on large tables from a sketch of the rows unless ``exact``."""
        d = self.dictionary
        left = np.arange(self.n_columns) if left is None else left
        unit = point.fixed.curvature_unit
        sample = None if d.sketch is None or exact else point.fixed.lanes[d.sketch.rows, 1]
        if d.sketch is None or sample is None or not sample.any():
            return self._products(d.matrix.bins, point.fixed.curvature_lane, left) * unit
        held, total = int(sample.sum()), int(point.fixed.lanes[:, 1].sum())
        scale = total / held
        columns = self._sketched_columns(d.sketch)
        every = np.arange(self.n_columns, dtype=np.int32)
        sums = _kernels.dense_gram(columns, True, left.astype(np.int32), every, sample, d.threads)
        estimate = sums.astype(np.float64) * scale
        ones = _kernels.dense_edges(columns, True, every, sample, d.threads).astype(np.float64) * scale
        return self._corrected(estimate, ones, self._cross(point), float(total), left) * unit

    def _sketched_columns(self, sketch: RowSketch) -> NDArray[np.int8]:
        """The columns on the rows of the sketch, one after the other; kept as the pool grows."""
        known = len(self._sketched)
        if known < self.n_columns:
            new = [
                np.full(len(sketch.rows), self.stumps.polarity[j], dtype=np.int8)
                if self.stumps.feature[j] == CONSTANT
                else self.signs[j][sketch.bins[self.stumps.feature[j]]]
                for j in range(known, self.n_columns)
            ]
            self._sketched = np.concatenate([self._sketched.reshape(-1, len(sketch.rows)), np.stack(new)])
        return self._sketched

    def _corrected(
        self, estimate: Array, ones: Array, cross: Array, total: float, left: NDArray[np.intp]
    ) -> Array:
        """Keep only the correlations of the sketch; sums with the constant, and so variances, are exact.

        A rare value has few rows in a sketch, and the quadratic model lives on how rare it is.
        """
        variance = np.maximum(total - cross * cross / total, 0.0)
        seen = np.maximum(total - ones * ones / total, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(seen > 1e-9 * total, np.sqrt(variance / seen), 0.0)
        covariance = estimate - ones[left, None] * ones / total
        out = cross[left, None] * cross / total + factor[left, None] * factor * covariance
        out[np.arange(len(left)), left] = total
        return out

    def _products(self, bins: NDArray[np.uint8], lane: NDArray[np.int64], left: NDArray[np.intp]) -> Array:
        """``sum of lane * h_j * h_k`` for j in ``left`` and every k."""
        d = self.dictionary
        features, slot = self._features()
        out = np.empty((len(left), self.n_columns))
        constant = self.stumps.feature[left] == CONSTANT
        stumps = np.flatnonzero(~constant)
        for start in range(0, len(stumps), 4):
            rows = stumps[start : start + 4]
            columns = left[rows]
            lanes = _kernels.signed_weights(
                bins, self.stumps.feature[columns], self.signs[columns], lane, 4, d.threads
            )
            hist = _kernels.histograms(bins, features, lanes, d.threads)
            sums = self._signed_sums(hist, slot, hist[0].sum(axis=0))
            out[rows] = sums[:, : len(rows)].T
        if constant.any():
            out[constant] = self.stumps.polarity[left[constant]][:, None] * self._with_one(bins, lane)
        return out

    def _with_one(self, bins: NDArray[np.uint8], lane: NDArray[np.int64]) -> Array:
        """``sum of lane * h_j`` for every column."""
        features, slot = self._features()
        hist = np.empty((0, 256, 1), np.int64)
        if len(features):
            hist = _kernels.histograms(bins, features, lane.reshape(-1, 1), self.dictionary.threads)
        return self._signed_sums(hist, slot, np.array([lane.sum()]))[:, 0]

    def _cross(self, point: RiskPoint) -> Array:
        """``sum of curvature * h_j`` over all rows, remembered while the point stays the same."""
        known = np.empty(0)
        if self._cross_of is not None and self._cross_of[0] is point.F:
            known = self._cross_of[1]
        if len(known) < self.n_columns:
            total = float(point.fixed.lanes[:, 1].sum())
            if len(known) < self.n_free:
                known = np.array([1.0, -1.0]) * total
            new = self.stumps[len(known) :]
            features, slot = np.unique(new.feature, return_inverse=True)
            hist = self.dictionary.partial_histogram(point, features)[:, :, 1]
            left = new.left_sums(hist, slot)
            known = np.concatenate([known, new.polarity * (2.0 * left - total)])
            self._cross_of = (point.F, known)
        return known

    def _features(self) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """Distinct features of the pool and, for every stump column, which of them it uses."""
        return np.unique(self.stumps.feature[self.n_free :], return_inverse=True)

    def _signed_sums(
        self, hist: NDArray[np.int64], slot: NDArray[np.intp], total: NDArray[np.int64]
    ) -> Array:
        """Sums of +-weights for every column from the histograms of its feature: shape (columns, lanes)."""
        out = np.empty((self.n_columns, len(total)))
        if self.n_free:
            out[0], out[1] = total, -total
        if len(slot):
            own = self.stumps[self.n_free :]
            out[self.n_free :] = own.polarity[:, None] * (2 * own.left_sums(hist, slot) - total)
        return out

    def dense(self) -> NDArray[np.int8]:
        bins = self.dictionary.matrix.bins
        out = np.empty((self.dictionary.matrix.n_rows, self.n_columns), dtype=np.int8, order="F")
        for j, feature in enumerate(self.stumps.feature):
            if feature == CONSTANT:
                out[:, j] = self.stumps.polarity[j]
            else:
                out[:, j] = self.signs[j][bins[feature]]
        sign = self.dictionary.sign
        return out if sign is None else out * sign[:, None]

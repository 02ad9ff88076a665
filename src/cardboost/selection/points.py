"""Whole points instead of weights: which columns to use, how many points each has, and what a point is worth.

    w_j = unit * p_j,    p_j a whole number from 0 to ``most``

minimises the objective of the choice of columns over the points, the unit and the intercept. For given points
the objective is convex in unit and intercept, two numbers that a few Newton steps find. So the search is one
over p: from continuous weights divided by units of several sizes, it changes one or two columns by a point,
drops, adds and exchanges columns. Moves are ranked by the quadratic model of the objective at the present
weights, unit and intercept fitted anew in the model (no pass over the rows); the most promising ones are
fitted on the rows, and the first that helps is taken.

Every result is a choice of columns with certain weights, so a lower bound for any choice of columns holds for
whole points too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cardboost.data.threads import blas_threads
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import Polisher
from cardboost.selection.selection_problem import SelectionProblem

Array = NDArray[np.float64]
Points = NDArray[np.int64]

_UNITS = 16  # sizes of a point to start from
_WIDER = 3  # of the starts that are searched further, with exchanges of columns
_FITS = 8  # of the most promising moves of a round
_ROUNDS = 200
_NEWTON = 40
_PAIRS = 30  # columns in use, up to which two of them move together
_ONE_THREAD = 2_000_000  # entries, up to which threads cost more than they bring


@dataclass(frozen=True, eq=False)
class PointsResult:
    """``weights`` of all columns: unit * points, and those of the columns that are not charged."""

    points: Points
    unit: float
    weights: Array
    objective: float


@dataclass(frozen=True)
class Scale:
    """A unit that is given, and the intercepts that go with it: ``start`` plus a multiple of 2 units.

    An odd sum of all points moves ``start`` by one unit: a card counts from the lowest of its totals.
    """

    unit: float
    start: float

    def nearest(self, intercept: float, points: Points) -> tuple[float, float]:
        """The allowed intercepts just below and above."""
        start, step = self.start + self.unit * float(points.sum() % 2), 2.0 * self.unit
        low = math.floor((intercept - start) / step)
        return start + step * low, start + step * (low + 1)


@dataclass(frozen=True, eq=False)
class _At:
    """Points with the best unit and intercept for them; ``total`` is what the rows have in points."""

    points: Points
    unit: float
    intercept: float
    objective: float
    total: Array

    @property
    def key(self) -> bytes:
        return self.points.tobytes()


@dataclass(frozen=True, eq=False)
class _Moves:
    """Changes of the points of two columns each; of one only, where the second change is 0."""

    column: NDArray[np.intp]  # (moves, 2)
    change: Points

    @classmethod
    def of(cls, moves: list[tuple[tuple[int, int], tuple[int, int]]]) -> _Moves:
        flat = np.array(moves, dtype=np.int64).reshape(len(moves), 2, 2)
        return cls(flat[:, :, 0].astype(np.intp), flat[:, :, 1])

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, which: NDArray[np.bool_]) -> _Moves:
        return _Moves(self.column[which], self.change[which])

    def applied(self, points: Points) -> Points:
        """The points after every move."""
        then = np.tile(points, (len(self), 1))
        for k in (0, 1):
            then[np.arange(len(self)), self.column[:, k]] += self.change[:, k]
        return then


def refused(problem: SelectionProblem) -> str | None:
    """Why there are no whole points for a problem, in a sentence, or None."""
    if problem.risk.loss.name not in ("exponential", "logistic"):
        return f"whole points are for exponential and logistic loss, not {problem.risk.loss.name}."
    free = np.flatnonzero(~problem.prices.charged)
    if free.tolist() not in ([], [0, 1]):
        return "whole points are for an intercept and charged columns."
    return None


@blas_threads(1)  # for equal bits with any number of threads
def choose_points(
    problem: SelectionProblem,
    weights: Array,
    most: int,
    *,
    scale: Scale | None = None,
    late: Callable[[], bool] = lambda: False,
) -> PointsResult:
    """The best points found from these weights, at most ``most`` per column, within the problem's limits.

    Weights of more columns than the problem allows are thinned out first. ``scale``: what a point is worth,
    where that is given; with more than ``most`` points the weight is what ``most`` give.
    """
    reason = refused(problem)
    if reason is not None:
        raise ValueError(reason)
    if most < 1:
        raise ValueError(f"most must be at least 1; got {most}.")
    merged = merge_rows(problem)
    support = np.flatnonzero(problem.prices.charged & (weights > 0))
    if not problem.allows(support):
        polisher = Polisher(merged, late)
        most_terms = polisher.most_terms
        starts = [polisher.largest(weights, most_terms)]  # within the limits, whatever time there is
        if not late():
            starts.append(polisher.shed(polisher.refit(support, weights), most_terms))
        allowed = [polisher.improve(at) for at in starts if problem.allows(at.support)]
        weights = min(allowed, key=lambda at: at.objective).weights
    search = _PointSearch(merged, most, scale, late)
    origins = [weights]
    if merged.limits is not None and not late():
        origins += _other_features(merged, weights, late)
    return search.result(min(map(search.from_weights, origins), key=lambda at: at.objective))


def _other_features(merged: SelectionProblem, weights: Array, late: Callable[[], bool]) -> list[Array]:
    """Continuous weights with one feature exchanged for another, the best few: moves change columns only."""
    groups, polisher = merged.groups, Polisher(merged, late)
    assert groups is not None
    used = np.flatnonzero(merged.prices.charged & (weights > 0))
    inside = np.unique(groups[used])
    supports = []
    for other in np.setdiff1d(groups[merged.prices.charged], inside):
        added = np.flatnonzero(groups == other)
        supports += [np.append(used[groups[used] != own], added) for own in inside]
    wide = [polisher.refit(own, weights) for own in supports if not late()]
    found = [
        polisher.shed(at, polisher.most_terms) for at in sorted(wide, key=lambda at: at.objective)[:_WIDER]
    ]
    return [at.weights for at in found if merged.allows(at.support)]


class _PointSearch:
    """Distinct rows of one problem, and the values of points on them."""

    def __init__(
        self, merged: SelectionProblem, most: int, scale: Scale | None, late: Callable[[], bool]
    ) -> None:
        self.most, self.scale, self.late = most, scale, late
        p, pool = merged.prices, merged.pool
        assert isinstance(pool, MatrixPool)
        if pool.store.values.size <= _ONE_THREAD:
            pool = MatrixPool(ColumnStore(pool.store.values, 1), pool.which)
            merged = replace(merged, pool=pool, risk=replace(merged.risk, threads=1))
        self.problem, self.pool = merged, pool
        self.columns = np.ascontiguousarray(merged.pool.dense().T)  # one line per column
        self.share = merged.risk.weights.normalised
        self.free = not p.charged.all()
        n_rows = self.columns.shape[1]
        self.label = self.columns[0].astype(np.float64) if self.free else np.zeros(n_rows)
        self.box = float(p.max_weight[~p.charged].min(initial=np.inf)) if self.free else 0.0
        self.top = np.full(len(p), most)  # points of a column, at most
        if scale is not None:
            within = np.minimum(np.floor(p.max_weight / scale.unit), most).astype(np.int64)
            self.top = within - (within * scale.unit > p.max_weight)  # the division may have been rounded up
        self.usable = np.flatnonzero(p.charged & (p.max_weight > 0) & (self.top > 0))
        self._known: dict[bytes, _At] = {}

    # ------------------------------------------------------------------------------------ starts

    def from_weights(self, weights: Array) -> _At:
        own = np.where(self.problem.prices.charged, weights, 0.0)
        intercept = float(weights[0] - weights[1]) if self.free else 0.0
        nothing = np.zeros(len(own), dtype=np.int64)
        best = self.fit(nothing, 0.0, intercept)
        largest = float(own.max(initial=0.0))
        if largest == 0.0:
            return best
        if self.scale is not None:
            units = [self.scale.unit]
        else:
            # from points twice as fine as fit, where the largest weights are cut, to points half as fine as
            # fit, and to single ones
            sizes = np.append(np.geomspace(max(1.0, self.most / 2), 2.0 * self.most, _UNITS), 1.0)
            units = [largest / size for size in np.unique(sizes)[::-1]]
        found: dict[bytes, _At] = {best.key: best}
        for unit in units:
            points = np.minimum(np.rint(own / unit), self.top).astype(np.int64)
            at = self.improve(self.fit(points, unit, intercept), wider=False)
            found[at.key] = at
            if self.late():
                break
        ordered = sorted(found.values(), key=lambda at: at.objective)
        return min((self.improve(at, wider=True) for at in ordered[:_WIDER]), key=lambda at: at.objective)

    # ------------------------------------------------------------------------------------ unit and intercept

    def _prices(self, points: Points) -> tuple[float, float, float]:
        """What a unit of the unit costs, half its square, and use itself."""
        p = self.problem.prices
        used = np.flatnonzero(points)
        paid = float(p.l0[used].sum()) + self.problem.feature_cost(used)
        return float(p.l1 @ points), float(p.l2 @ (points * points)), paid

    def _units(self, points: Points) -> tuple[float, float]:
        """Smallest and largest unit for these points."""
        used = points > 0
        high = float(np.min(self.problem.prices.max_weight[used] / points[used], initial=np.inf))
        if self.scale is not None:
            return self.scale.unit, self.scale.unit
        return 0.0, high if used.any() else 0.0

    def fit(self, points: Points, unit: float, intercept: float, total: Array | None = None) -> _At:
        """The best unit and intercept for these points, by Newton steps with halving."""
        key = points.tobytes()
        if key in self._known:
            return self._known[key]
        used = np.flatnonzero(points)
        if total is None:
            total = points[used].astype(np.float64) @ self.columns[used]
        low, high = self._units(points)
        ends = (np.array([low, -self.box]), np.array([high, self.box]))
        slope, bend, paid = self._prices(points)
        x = np.clip([unit, intercept], *ends)
        both = np.vstack([total, self.label])

        def value(at: Array) -> float:
            risk = self.problem.risk.evaluate(at @ both).value
            return risk + slope * at[0] + 0.5 * bend * at[0] ** 2 + paid

        now = math.inf
        for _ in range(_NEWTON):
            point = self.problem.risk.evaluate(x @ both)
            now = point.value + slope * x[0] + 0.5 * bend * x[0] ** 2 + paid
            gradient = -(both @ (self.share * point.v))
            gradient[0] += slope + bend * x[0]
            matrix = (both * (self.share * (point.rows[1] * point.factor))) @ both.T
            matrix[0, 0] += bend
            step = _box_step(gradient, matrix, ends[0] - x, ends[1] - x)
            drop, part = -float(gradient @ step), 1.0
            if not drop > 1e-12 * max(1.0, abs(now)):
                break
            while value(x + part * step) > now - 1e-4 * part * drop:
                part *= 0.5
                if part < 1e-6:
                    break
            x = x + part * step
        if self.scale is not None and self.free:
            b = min(self._snapped(x[1], points), key=lambda own: value(np.array([x[0], own])))
            x = np.array([x[0], b])
            now = value(x)
        found = _At(points, float(x[0]), float(x[1]), float(now), total)
        self._known[key] = found
        return found

    def _snapped(self, intercept: float, points: Points) -> list[float]:
        """Allowed intercepts beside this one; all the way at the end of the box there may be one only."""
        assert self.scale is not None
        near = [own for own in self.scale.nearest(intercept, points) if abs(own) <= self.box]
        return near or [intercept]

    # ------------------------------------------------------------------------------------ moves

    def improve(self, at: _At, wider: bool) -> _At:
        """Take moves that help until none does; ``wider``: exchanges of columns too."""
        for _ in range(_ROUNDS):
            if self.late():
                break
            found = self._first_better(at, self._steps(at.points))
            if found is None and wider:
                found = self._first_better(at, self._exchanges(at.points))
            if found is None:
                break
            at = found
        return at

    def _steps(self, points: Points) -> _Moves:
        """One or two columns a point more or less, a column less, or one more."""
        used = np.flatnonzero(points)
        single = [
            (j, sign) for j in used.tolist() for sign in (-1, 1) if 0 <= points[j] + sign <= self.top[j]
        ]
        moves = [(own, (own[0], 0)) for own in single]
        if len(used) <= _PAIRS:
            moves += [(one, two) for one, two in combinations(single, 2) if one[0] != two[0]]
        moves += [((j, -int(points[j])), (j, 0)) for j in used.tolist()]
        k = self.problem.max_terms
        if k is None or len(used) < k:
            sizes = sorted({1, 2, *points[used].tolist()})
            moves += [((j, to), (j, 0)) for j in self._unused(points) for to in sizes if to <= self.top[j]]
        return self._allowed(points, _Moves.of(moves))

    def _exchanges(self, points: Points) -> _Moves:
        """A column for another with about as many points."""
        others, moves = self._unused(points), []
        for i in np.flatnonzero(points).tolist():
            own = int(points[i])
            sizes = range(max(1, own - 2), own + 3)
            moves += [((i, -own), (j, to)) for j in others for to in sizes if to <= self.top[j]]
        return self._allowed(points, _Moves.of(moves))

    def _unused(self, points: Points) -> list[int]:
        return [int(j) for j in self.usable[points[self.usable] == 0]]

    def _allowed(self, points: Points, moves: _Moves) -> _Moves:
        limits = self.problem.limits
        if limits is None or limits.max_features is None or not len(moves):
            return moves
        return moves[self._features(points, moves).sum(axis=1) <= limits.max_features]

    def _features(self, points: Points, moves: _Moves) -> NDArray[np.bool_]:
        """Which features are used after every move."""
        assert self.problem.groups is not None
        known, group = np.unique(self.problem.groups, return_inverse=True)
        used = np.zeros((len(moves), len(known)), dtype=bool)
        move, column = np.nonzero(moves.applied(points))
        used[move, group[column]] = True
        return used[:, known >= 0]

    def _feature_costs(self, points: Points, moves: _Moves) -> Array | float:
        limits, groups = self.problem.limits, self.problem.groups
        if limits is None or limits.costs is None or groups is None:
            return 0.0
        return np.asarray(self._features(points, moves) @ limits.costs[np.unique(groups[groups >= 0])])

    def _first_better(self, at: _At, moves: _Moves) -> _At | None:
        """The first of the most promising moves that helps."""
        if not len(moves):
            return None
        scores = self._scores(at, moves)
        enough = 1e-11 * max(1.0, abs(at.objective))
        for i in np.argsort(scores, kind="stable")[:_FITS].tolist():
            points, total = at.points.copy(), at.total.copy()
            for j, by in zip(moves.column[i], moves.change[i], strict=True):
                points[j] += by
                total += by * self.columns[j]
            found = self.fit(points, at.unit, at.intercept, total)
            if found.objective < at.objective - enough:
                return found
        return None

    def _scores(self, at: _At, moves: _Moves) -> Array:
        """The objective after every move by the quadratic model, unit and intercept fitted anew in it."""
        problem, prices = self.problem, self.problem.prices
        weights = self._weights(at)
        point = problem.risk.evaluate(problem.pool.margins(weights))
        gradient = -problem.pool.edges(point) + prices.l1 + prices.l2 * weights
        used = np.flatnonzero(at.points)
        known = np.append(0, used) if self.free else used
        gram = np.zeros((len(prices), len(prices)))
        lines = problem.pool.gram(point, known)
        gram[known, :], gram[:, known] = lines, lines.T
        # moves change one column at most that has no points yet: of these only the diagonal is needed
        np.fill_diagonal(gram, self.pool.store.squares(self.pool.which, point) + prices.l2)

        # the value is f(u p + s), s = u * change, then along the points after the move and the intercept
        along = np.einsum("ij,j->i", gram[:, used], at.points[used].astype(np.float64))  # gram @ points
        (i, j), (a, b) = moves.column.T, moves.change.T.astype(np.float64)
        u = at.unit
        slope = a * gradient[i] + b * gradient[j]
        bend = a * a * gram[i, i] + 2.0 * a * b * gram[i, j] + b * b * gram[j, j]
        cross = a * along[i] + b * along[j]
        value = u * slope + 0.5 * u * u * bend + self._use(at.points, moves)
        own = float(gradient[used] @ at.points[used])
        unit = own + slope + u * (cross + bend)
        unit_bend = float(along[used] @ at.points[used]) + 2.0 * cross + bend
        free, mixed, free_bend = np.zeros(len(value)), np.zeros(len(value)), 1.0
        if self.free:
            column = a * gram[0, i] + b * gram[0, j]
            free, mixed, free_bend = gradient[0] + u * column, along[0] + column, max(gram[0, 0], 1e-300)
        if self.scale is not None:
            return np.asarray(value - 0.5 * free * free / free_bend)
        determinant = unit_bend * free_bend - mixed * mixed
        sound = determinant > 1e-12 * unit_bend * free_bend
        drop = free_bend * unit * unit - 2.0 * mixed * unit * free + unit_bend * free * free
        alone = unit * unit / np.maximum(unit_bend, 1e-300)
        return np.asarray(value - 0.5 * np.where(sound, drop / np.where(sound, determinant, 1.0), alone))

    def _use(self, points: Points, moves: _Moves) -> Array:
        """How much more the columns and features in use cost after every move."""
        paid = np.zeros(len(moves))
        for column, change in zip(moves.column.T, moves.change.T, strict=True):
            used = (points[column] + change > 0).astype(np.float64) - (points[column] > 0)
            paid += np.where(change != 0, used, 0.0) * self.problem.prices.l0[column]
        return paid + self._feature_costs(points, moves)

    # ------------------------------------------------------------------------------------ result

    def _weights(self, at: _At) -> Array:
        weights: Array = np.multiply(at.unit, at.points, dtype=np.float64)
        if self.free:
            weights[:2] = max(at.intercept, 0.0), max(-at.intercept, 0.0)
        return weights

    def result(self, at: _At) -> PointsResult:
        """Weights that are exactly unit times points, and the objective recomputed from them."""
        if at.unit == 0.0:
            at = replace(at, points=np.zeros_like(at.points))
        largest = self.problem.prices.max_weight
        while (at.unit * at.points > np.where(self.problem.prices.charged, largest, np.inf)).any():
            at = replace(at, unit=math.nextafter(at.unit, 0.0))  # the division that made it was rounded
        weights = self._weights(at)
        value = self.problem.risk.evaluate(self.problem.pool.margins(weights)).value
        return PointsResult(at.points, at.unit, weights, self.problem.objective(value, weights))


def _box_step(gradient: Array, matrix: Array, low: Array, high: Array) -> Array:
    """The minimum of the quadratic model of two variables in a box, as a step."""
    determinant = matrix[0, 0] * matrix[1, 1] - matrix[0, 1] ** 2
    if determinant > 1e-13 * matrix[0, 0] * matrix[1, 1] > 0:
        x = -np.linalg.solve(matrix, gradient)
        if (x >= low).all() and (x <= high).all():
            return np.asarray(x)

    def model(x: Array) -> float:
        return float(gradient @ x + 0.5 * x @ matrix @ x)

    candidates = [np.zeros(2)]
    for i in (0, 1):  # one of the two at an end, or where it is
        other = 1 - i
        for end in (low[i], high[i], 0.0):
            if not np.isfinite(end):
                continue
            x = np.zeros(2)
            x[i] = end
            if matrix[other, other] > 0:
                best = -(gradient[other] + matrix[other, i] * end) / matrix[other, other]
                x[other] = np.clip(best, low[other], high[other])
            candidates.append(x)
    return np.asarray(min(candidates, key=model))

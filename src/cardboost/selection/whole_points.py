"""Whole points instead of weights: which columns to use, how many points each has, and what a point is worth.

    w_j = unit * p_j,    p_j a whole number from 0 to ``most``

minimises the objective of the choice of columns over the points, the unit and the intercept. For fixed points
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
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.exact import on_grid, short_unit
from cardboost.data.threads import blas_threads
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.problem.budget import Late, never
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import Polisher
from cardboost.selection.selection_problem import Array, SelectionProblem, best_of, require

Points = NDArray[np.int64]
#: (moves, 2, 2): two columns, each with its change of points; the second change is 0 in moves of one column
Moves = NDArray[np.int64]

_UNITS = 16  # sizes of a point to start from
_WIDER = 3  # of the starts that are searched further, with exchanges of columns
_FITS = 8  # of the most promising moves of a round
_ROUNDS = 200  # moves of one start at most
_NEWTON_STEPS = 40  # for unit and intercept
_PAIRS = 30  # columns in use, up to which two of them move together
_LEAST_UNIT = 1e-6  # of the largest that fits, where a feature has to be used
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
    """A fixed unit, and the intercepts that go with it: ``start`` plus a multiple of 2 units.

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
class _FittedPoints:
    """Points with the best unit and intercept for them; ``total`` is what the rows have in points."""

    points: Points
    unit: float
    intercept: float
    objective: float
    total: Array


def accepts(problem: SelectionProblem) -> str | None:
    """Why there are no whole points for a problem, in a sentence; None where there are."""
    if problem.risk.loss.name not in ("exponential", "logistic"):
        return f"whole points are for exponential and logistic loss, not {problem.risk.loss.name}."
    if np.flatnonzero(~problem.prices.charged).tolist() not in ([], [0, 1]):
        return "whole points are for an intercept and charged columns."
    return None


@blas_threads(1)  # for equal bits with any number of threads
def choose_points(
    problem: SelectionProblem, weights: Array, most: int, *, scale: Scale | None = None, late: Late = never
) -> PointsResult:
    """Whole points instead of weights, within the problem's limits.

    Parameters
    ----------
    problem : SelectionProblem
        One that :func:`accepts` does not refuse.
    weights : array
        Continuous weights to start from; of more columns than the problem allows they are thinned out first.
    most : int
        The most points of a column, at least 1.
    scale : Scale, optional
        What a point is worth. Weights of more than ``most`` points are cut.
    late : callable
        Asked now and then whether to stop.

    Returns
    -------
    PointsResult
        The best points found.

    Raises
    ------
    ValueError
        Where :func:`accepts` refuses the problem.
    """
    require(accepts(problem))
    merged = merge_rows(problem)
    support = np.flatnonzero(problem.prices.charged & (weights > 0))
    if not problem.allows(support):
        polisher = Polisher(merged, late)
        k = polisher.most_terms
        starts = [polisher.largest(weights, k)]  # within the limits, whatever time there is
        if not late():
            starts.append(polisher.complete(polisher.shed(polisher.refit(support, weights), k)))
        allowed = [start for start in starts if problem.allows(start.support)]
        weights = best_of(map(polisher.improve, allowed)).weights
    search = _PointSearch(merged, most, scale, late)
    origins = [weights]
    if merged.limits is not None and not late():
        origins += _other_features(merged, weights, late)
    result = search.result(best_of(map(search.from_weights, origins)))
    if not problem.allows(np.flatnonzero(result.points)):
        raise ValueError("must_include: no whole points of this size fit a feature that has to be used.")
    return result


def _other_features(merged: SelectionProblem, weights: Array, late: Late) -> list[Array]:
    """Continuous weights with one feature exchanged for another, the best few: moves change columns only."""
    groups, polisher = merged.groups, Polisher(merged, late)
    assert groups is not None
    used = np.flatnonzero(merged.prices.charged & (weights > 0))
    inside = np.unique(groups[used])
    others = np.setdiff1d(groups[merged.prices.charged], inside)
    supports = [
        np.append(used[groups[used] != gone], np.flatnonzero(groups == new))
        for new, gone in product(others, inside)
    ]
    wide = [polisher.refit(support, weights) for support in supports if not late()]
    best = sorted(wide, key=lambda incumbent: incumbent.objective)[:_WIDER]
    fewer = [polisher.shed(incumbent, polisher.most_terms) for incumbent in best]
    return [incumbent.weights for incumbent in fewer if merged.allows(incumbent.support)]


class _PointSearch:
    """Distinct rows of one problem, and the values of points on them."""

    def __init__(self, merged: SelectionProblem, most: int, scale: Scale | None, late: Late) -> None:
        self.most, self.scale, self.late = most, scale, late
        p, pool = merged.prices, merged.pool
        assert isinstance(pool, MatrixPool)
        if pool.store.values.size <= _ONE_THREAD:
            pool = MatrixPool(ColumnStore(pool.store.values, 1), pool.which)
            merged = replace(merged, pool=pool, risk=replace(merged.risk, threads=1))
        self.problem, self.pool = merged, pool
        self.columns = np.ascontiguousarray(merged.pool.dense().T)
        self.share = merged.risk.weights.normalised
        self.free = not p.charged.all()  # whether there is an intercept
        self.label = self.columns[0].astype(np.float64) if self.free else np.zeros(self.columns.shape[1])
        self.box = float(p.max_weight[~p.charged].min(initial=np.inf)) if self.free else 0.0
        self.top = np.full(len(p), most)  # points of a column, at most
        if scale is not None:
            within = np.minimum(np.floor(p.max_weight / scale.unit), most).astype(np.int64)
            self.top = within - (within * scale.unit > p.max_weight)  # the division may have been rounded up
        self.usable = np.flatnonzero(p.charged & (p.max_weight > 0) & (self.top > 0))
        self._fitted: dict[bytes, _FittedPoints] = {}

    def from_weights(self, weights: Array) -> _FittedPoints:
        """The best points that are reached from continuous weights, divided by units of several sizes."""
        charged = np.where(self.problem.prices.charged, weights, 0.0)
        intercept = float(weights[0] - weights[1]) if self.free else 0.0
        empty = self.fit(np.zeros(len(charged), dtype=np.int64), 0.0, intercept)
        largest = float(charged.max(initial=0.0))
        if largest == 0.0:
            return empty
        lacking = self._last_columns(charged)
        if self.scale is not None:
            units = [self.scale.unit]
        else:
            # from points twice as fine as fit, where the largest weights are cut, to points half as fine as
            # fit, and to single ones
            sizes = np.append(np.geomspace(max(1.0, self.most / 2), 2.0 * self.most, _UNITS), 1.0)
            units = [largest / size for size in np.unique(sizes)[::-1]]
        results = {} if lacking else {empty.points.tobytes(): empty}
        for unit in units:
            points = np.minimum(np.rint(charged / unit), self.top).astype(np.int64)
            for columns in lacking:  # every feature that has to be used keeps a point
                if not points[columns].any():
                    points[columns[0]] = min(1, self.top[columns[0]])
            result = self.improve(self.fit(points, unit, intercept), wider=False)
            results[result.points.tobytes()] = result
            if self.late():
                break
        ordered = sorted(results.values(), key=lambda result: result.objective)
        return best_of(self.improve(result, wider=True) for result in ordered[:_WIDER])

    def _last_columns(self, charged: Array) -> list[NDArray[np.intp]]:
        """For every feature that has to be used its columns, that of the largest weight first."""
        limits, groups = self.problem.limits, self.problem.groups
        if limits is None or groups is None:
            return []
        columns = [self.usable[groups[self.usable] == g] for g in limits.must_include]
        return [own[np.argsort(-charged[own], kind="stable")] for own in columns if len(own)]

    # ------------------------------------------------------------------------------------ unit and intercept

    def _largest_unit(self, points: Points) -> float:
        """The unit at which the first of these points reaches its box."""
        used = points > 0
        limit = float(np.min(self.problem.prices.max_weight[used] / points[used], initial=np.inf))
        return limit if used.any() else 0.0

    def fit(self, points: Points, unit: float, intercept: float, total: Array | None = None) -> _FittedPoints:
        """The best unit and intercept for these points, by Newton steps with halving."""
        key = points.tobytes()
        if key in self._fitted:
            return self._fitted[key]
        p, used = self.problem.prices, np.flatnonzero(points)
        if total is None:
            total = points[used].astype(np.float64) @ self.columns[used]
        low, high = (0.0, self._largest_unit(points)) if self.scale is None else (self.scale.unit,) * 2
        if self.scale is None and self.problem.limits is not None and self.problem.limits.must_include:
            low = _LEAST_UNIT * high if np.isfinite(high) else 0.0  # terms that have to be there stay
        ends = (np.array([low, -self.box]), np.array([high, self.box]))
        # regularisation: slope * unit + bend * unit^2 / 2 + cost
        slope, bend = float(p.l1 @ points), float(p.l2 @ (points * points))
        cost = float(p.l0[used].sum()) + self.problem.feature_cost(used)
        x = np.clip([unit, intercept], *ends)
        both = np.vstack([total, self.label])

        def objective(risk: float, x: Array) -> float:
            return risk + slope * x[0] + 0.5 * bend * x[0] ** 2 + cost

        def value(x: Array) -> float:
            return objective(self.problem.risk.evaluate(x @ both).value, x)

        now = math.inf
        for _ in range(_NEWTON_STEPS):
            point = self.problem.risk.evaluate(x @ both)
            now = objective(point.value, x)
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
            # of the allowed intercepts beside this one; at the end of the box there may be one or none
            near = [b for b in self.scale.nearest(x[1], points) if abs(b) <= self.box] or [x[1]]
            x = min((np.array([x[0], b]) for b in near), key=value)
            now = value(x)
        self._fitted[key] = _FittedPoints(points, float(x[0]), float(x[1]), float(now), total)
        return self._fitted[key]

    # ------------------------------------------------------------------------------------ moves

    def improve(self, result: _FittedPoints, wider: bool) -> _FittedPoints:
        """Take moves that help until none does; ``wider``: exchanges of columns too."""
        for _ in range(_ROUNDS):
            if self.late():
                break
            better = self._first_better(result, self._steps(result.points))
            if better is None and wider:
                better = self._first_better(result, self._exchanges(result.points))
            if better is None:
                break
            result = better
        return result

    def _steps(self, points: Points) -> Moves:
        """One or two columns a point more or less, a column less, or one more."""
        used = np.flatnonzero(points)
        signs = ((j, sign) for j in used.tolist() for sign in (-1, 1))
        single = [(j, sign) for j, sign in signs if 0 <= points[j] + sign <= self.top[j]]
        moves = [(step, (step[0], 0)) for step in single]
        if len(used) <= _PAIRS:
            moves += [(one, two) for one, two in combinations(single, 2) if one[0] != two[0]]
        moves += [((j, -int(points[j])), (j, 0)) for j in used.tolist()]
        k = self.problem.max_terms
        if k is None or len(used) < k:
            sizes = sorted({1, 2, *points[used].tolist()})
            moves += [((j, to), (j, 0)) for j in self._unused(points) for to in sizes if to <= self.top[j]]
        return self._allowed(points, moves)

    def _exchanges(self, points: Points) -> Moves:
        """A column for another with about as many points."""
        others, moves = self._unused(points), []
        for i in np.flatnonzero(points).tolist():
            count = int(points[i])
            sizes = range(max(1, count - 2), count + 3)
            moves += [((i, -count), (j, to)) for j in others for to in sizes if to <= self.top[j]]
        return self._allowed(points, moves)

    def _unused(self, points: Points) -> list[int]:
        return self.usable[points[self.usable] == 0].tolist()

    def _allowed(self, points: Points, listed: list[Any]) -> Moves:
        """Those of the moves that the limits on features allow."""
        moves, limits = np.array(listed, dtype=np.int64).reshape(-1, 2, 2), self.problem.limits
        if limits is None or limits.free_choice or not len(moves):
            return moves
        used, groups = self._features(points, moves), self.problem.groups
        assert groups is not None
        features = np.unique(groups[groups >= 0])
        allowed = used[:, np.isin(features, limits.must_include)].all(axis=1)
        if limits.max_features is not None:
            allowed &= used.sum(axis=1) <= limits.max_features
        for group in limits.at_most_one_of:
            allowed &= used[:, np.isin(features, group)].sum(axis=1) <= 1
        return moves[allowed]

    def _features(self, points: Points, moves: Moves) -> NDArray[np.bool_]:
        """Which features are used after every move."""
        assert self.problem.groups is not None
        features, group = np.unique(self.problem.groups, return_inverse=True)
        used = np.zeros((len(moves), len(features)), dtype=bool)
        after = np.tile(points, (len(moves), 1))
        np.add.at(after, (np.arange(len(moves))[:, None], moves[:, :, 0]), moves[:, :, 1])
        move, column = np.nonzero(after)
        used[move, group[column]] = True
        return used[:, features >= 0]

    def _first_better(self, result: _FittedPoints, moves: Moves) -> _FittedPoints | None:
        """The first of the most promising moves that helps."""
        if not len(moves):
            return None
        scores = self._scores(result, moves)
        enough = result.objective - 1e-11 * max(1.0, abs(result.objective))
        for i in np.argsort(scores, kind="stable")[:_FITS].tolist():
            points, total = result.points.copy(), result.total.copy()
            for j, by in moves[i]:
                points[j] += by
                total += by * self.columns[j]
            other = self.fit(points, result.unit, result.intercept, total)
            if other.objective < enough:
                return other
        return None

    def _scores(self, result: _FittedPoints, moves: Moves) -> Array:
        """The objective after every move by the quadratic model, unit and intercept fitted anew in it."""
        problem, prices, points = self.problem, self.problem.prices, result.points
        weights = self._weights(result)
        point = problem.point(weights)
        gradient = -problem.pool.edges(point) + prices.l1 + prices.l2 * weights
        used = np.flatnonzero(points)
        present = np.append(0, used) if self.free else used
        gram = np.zeros((len(prices), len(prices)))
        rows = problem.pool.gram(point, present)
        gram[present, :], gram[:, present] = rows, rows.T
        # moves change one column at most that has no points yet: of these only the diagonal is needed
        np.fill_diagonal(gram, self.pool.store.squares(self.pool.which, point) + prices.l2)

        # the value is f(u p + s), s = u * change, then along the points after the move and the intercept
        along = np.einsum("ij,j->i", gram[:, used], points[used].astype(np.float64))  # gram @ points
        (i, a), (j, b) = moves.transpose(1, 2, 0)
        a, b = a.astype(np.float64), b.astype(np.float64)
        u = result.unit
        slope = a * gradient[i] + b * gradient[j]
        bend = a * a * gram[i, i] + 2.0 * a * b * gram[i, j] + b * b * gram[j, j]
        cross = a * along[i] + b * along[j]
        value = u * slope + 0.5 * u * u * bend + self._extra_cost(points, moves)
        unit = float(gradient[used] @ points[used]) + slope + u * (cross + bend)
        unit_bend = float(along[used] @ points[used]) + 2.0 * cross + bend
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

    def _extra_cost(self, points: Points, moves: Moves) -> Array:
        """How much more the columns and features in use cost after every move."""
        cost = np.zeros(len(moves))
        for column, change in moves.transpose(1, 2, 0):
            used = (points[column] + change > 0).astype(np.float64) - (points[column] > 0)
            cost += np.where(change != 0, used, 0.0) * self.problem.prices.l0[column]
        limits, groups = self.problem.limits, self.problem.groups
        if limits is None or limits.costs is None or groups is None:
            return cost
        return cost + self._features(points, moves) @ limits.costs[np.unique(groups[groups >= 0])]

    # ------------------------------------------------------------------------------------ result

    def _weights(self, result: _FittedPoints) -> Array:
        """Weights of all columns, those of the intercept first."""
        weights: Array = np.multiply(result.unit, result.points, dtype=np.float64)
        if self.free:
            weights[:2] = max(result.intercept, 0.0), max(-result.intercept, 0.0)
        return weights

    def result(self, best: _FittedPoints) -> PointsResult:
        """Weights that are exactly unit times points, and the objective recomputed from them."""
        if best.unit == 0.0:
            best = replace(best, points=np.zeros_like(best.points))
        box = np.where(self.problem.prices.charged, self.problem.prices.max_weight, np.inf)
        if self.scale is None:
            unit = short_unit(best.unit)
            while (unit * best.points > box).any():  # the division that made it was rounded
                unit = short_unit(math.nextafter(unit, 0.0))
            best = replace(best, unit=unit, intercept=on_grid(best.intercept, unit))
        weights = self._weights(best)
        return PointsResult(best.points, best.unit, weights, self.problem.objective_of(weights))


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

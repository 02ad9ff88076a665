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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.cardinality.merge import merge_rows
from cardboost.cardinality.polish import Polisher
from cardboost.cardinality.problem import CardinalityProblem
from cardboost.dictionary.columns import MatrixPool

Array = NDArray[np.float64]
Points = NDArray[np.int64]

_UNITS = 16  # sizes of a point to start from
_WIDER = 3  # of the starts that are searched further, with exchanges of columns
_FITS = 8  # of the most promising moves of a round
_ROUNDS = 200
_NEWTON = 40
_CHUNK = 4096  # moves that are ranked at a time


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


def refused(problem: CardinalityProblem) -> str | None:
    """Why there are no whole points for a problem, in a sentence, or None."""
    if problem.risk.loss.name not in ("exponential", "logistic"):
        return f"whole points are for exponential and logistic loss, not {problem.risk.loss.name}."
    free = np.flatnonzero(~problem.prices.charged)
    if free.tolist() not in ([], [0, 1]):
        return "whole points are for an intercept and charged columns."
    return None


def choose_points(
    problem: CardinalityProblem,
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
        found = polisher.improve(polisher.shed(polisher.refit(support, weights), polisher.most_terms))
        weights = found.weights
    search = _PointSearch(merged, most, scale, late)
    return search.result(search.from_weights(weights))


class _PointSearch:
    """Distinct rows of one problem, and the values of points on them."""

    def __init__(
        self, merged: CardinalityProblem, most: int, scale: Scale | None, late: Callable[[], bool]
    ) -> None:
        self.problem, self.most, self.scale, self.late = merged, most, scale, late
        p = merged.prices
        assert isinstance(merged.pool, MatrixPool)
        self.pool = merged.pool
        self.columns = np.ascontiguousarray(merged.pool.dense().T)  # one line per column
        self.share = merged.risk.weights.normalised
        self.free = not p.charged.all()
        n_rows = self.columns.shape[1]
        self.label = self.columns[0].astype(np.float64) if self.free else np.zeros(n_rows)
        self.box = float(p.max_weight[~p.charged].min(initial=np.inf)) if self.free else 0.0
        self.usable = np.flatnonzero(p.charged & (p.max_weight > 0))
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
            points = np.minimum(np.rint(own / unit), self.most).astype(np.int64)
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

    def _steps(self, points: Points) -> Points:
        """One or two columns a point more or less, a column less, or one more."""
        used = np.flatnonzero(points)
        rows = []
        single = [(j, sign) for j in used for sign in (-1, 1) if 0 <= points[j] + sign <= self.most]
        for i, (j, sign) in enumerate(single):
            rows.append(_changed(points, (j, sign)))
            rows += [_changed(points, (j, sign), other) for other in single[i + 1 :] if other[0] != j]
        rows += [_changed(points, (j, -points[j])) for j in used]
        k = self.problem.max_terms
        if k is None or len(used) < k:
            sizes = sorted({1, 2, *points[used].tolist()})
            rows += [
                _changed(points, (j, to))
                for j in self.usable
                if points[j] == 0
                for to in sizes
                if to <= self.most
            ]
        return self._allowed(rows)

    def _exchanges(self, points: Points) -> Points:
        """A column for another with about as many points."""
        used = np.flatnonzero(points)
        rows = []
        for i in used:
            sizes = {int(to) for to in points[i] + np.array([-2, -1, 0, 1, 2]) if 1 <= to <= self.most}
            for j in self.usable[points[self.usable] == 0]:
                rows += [_changed(points, (i, -points[i]), (j, to)) for to in sorted(sizes)]
        return self._allowed(rows)

    def _allowed(self, rows: list[Points]) -> Points:
        if self.problem.limits is not None:
            rows = [own for own in rows if self.problem.allows(np.flatnonzero(own))]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.problem.prices))

    def _first_better(self, at: _At, moves: Points) -> _At | None:
        """The first of the most promising moves that helps."""
        if not len(moves):
            return None
        scores = self._scores(at, moves)
        enough = 1e-11 * max(1.0, abs(at.objective))
        for i in np.argsort(scores, kind="stable")[:_FITS]:
            points = moves[i]
            changed = np.flatnonzero(points != at.points)
            moved = (points - at.points)[changed].astype(np.float64) @ self.columns[changed]
            found = self.fit(points, at.unit, at.intercept, at.total + moved)
            if found.objective < at.objective - enough:
                return found
        return None

    def _scores(self, at: _At, moves: Points) -> Array:
        """The objective after every move by the quadratic model, unit and intercept fitted anew in it."""
        problem, p = self.problem, self.problem.prices
        weights = self._weights(at)
        point = problem.risk.evaluate(problem.pool.margins(weights))
        gradient = -problem.pool.edges(point) + p.l1 + p.l2 * weights
        known = np.flatnonzero(at.points) if not self.free else np.append(0, np.flatnonzero(at.points))
        gram = np.zeros((len(p), len(p)))
        lines = problem.pool.gram(point, known)
        gram[known, :], gram[:, known] = lines, lines.T
        # moves change one column at most that has no points yet: of these only the diagonal is needed
        np.fill_diagonal(gram, self.pool.store.squares(self.pool.which, point) + p.l2)
        scores = np.empty(len(moves))
        for first in range(0, len(moves), _CHUNK):
            own = moves[first : first + _CHUNK]
            scores[first : first + _CHUNK] = self._modelled(at, own, gradient, gram)
        return scores

    def _modelled(self, at: _At, moves: Points, gradient: Array, gram: Array) -> Array:
        p = self.problem.prices
        step = at.unit * (moves - at.points)
        bent = step @ gram
        value = step @ gradient + 0.5 * np.einsum("ij,ij->i", bent, step) + (moves > 0) @ p.l0
        if self.problem.limits is not None:
            value += [self.problem.feature_cost(np.flatnonzero(own)) for own in moves]
        slope = gradient + bent
        along = moves @ gram
        u, b = np.einsum("ij,ij->i", slope, moves), slope[:, 0] if self.free else np.zeros(len(moves))
        uu, ub = np.einsum("ij,ij->i", along, moves), along[:, 0] if self.free else np.zeros(len(moves))
        bb = gram[0, 0] if self.free else 1.0
        if self.scale is not None:
            return np.asarray(value - 0.5 * b * b / max(bb, 1e-300))
        determinant = uu * bb - ub * ub
        sound = determinant > 1e-12 * uu * bb
        drop = (bb * u * u - 2.0 * ub * u * b + uu * b * b) / np.where(sound, determinant, 1.0)
        return np.asarray(value - 0.5 * np.where(sound, drop, u * u / np.maximum(uu, 1e-300)))

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


def _changed(points: Points, *changes: tuple[Any, Any]) -> Points:
    then = points.copy()
    for j, by in changes:
        then[j] += by
    return then


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

"""Convex functions on the simplex {w >= 0, sum w = R}: columns in use, Newton steps on them, a certified gap.

A round looks at all columns once. It gives the Frank-Wolfe gap ``g'w - R min_j g_j``, which no point of the
simplex can be better by, and the columns with the least slope, which come into use. Newton steps on the
columns in use, each a small quadratic on the simplex (kernels/simplex.cpp), lower the objective until a
further look pays; columns that end at 0 go out.

The soft margin of boosting is lse(-A w), the logarithm of the weighted sum of exp(-F_i) over the rows. With
p_i proportional to the terms of that sum, its gradient is -A'p and its Hessian A'(diag p - p p')A: edges and
the Gram matrix of the exponential loss, divided by its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.dictionary.base import ColumnPool, Dictionary
from cardboost.dictionary.columns import least, spread
from cardboost.problem.budget import Late, clock, never
from cardboost.problem.risk import EmpiricalRisk, RiskPoint
from cardboost.problem.trace import Record, Status

Array = NDArray[np.float64]
Columns = NDArray[np.int32]
Weighted = tuple[Columns, Array]  # columns and their weights

_NEW = 24  # columns that come into use after a look, at least
_SERVED = 4  # as many times those of the last look that were of use, where they are more
_MOST = 128  # and at most so many
_INNER = 2  # Newton steps between two looks; one where the Hessian is an estimate
_SLOW = 8  # looks in which the gap has not been halved, after which the Hessian is exact
_CLOSER = 0.05  # share of the last gap that is left on the columns in use before the next look
_STUCK = 5  # looks in a row that show no progress
_DIRECT = 64.0  # radius up to which there is no way through smaller ones
_FACTOR = 4.0  # from one radius to the next
_ON_THE_WAY = 0.5  # gap at the smaller radii
_LIFT = 1e-12  # share of the mean curvature that is added to it
_LIFTS = 4  # times it is raised a thousandfold where steps are too long
_SHORT = 0.01  # a step that is shortened to that is too long
_ROUNDING = 4e-15  # share of the objective below which a drop cannot be seen


#: sees every record with the columns in use and their weights; ends the search by returning true
Watcher = Callable[[Record, Columns, Array], object]


@dataclass(frozen=True, eq=False)
class SimplexSolution:
    """``columns`` in use and their ``weights``. The optimum is within ``gap`` of ``objective``."""

    columns: Columns
    weights: Array
    objective: float
    gap: float
    steps: int
    status: Status
    history: tuple[Record, ...]


@dataclass(frozen=True, eq=False)
class Look:
    """What a look at all columns shows: the gradient on those in use, the columns of least slope among the
    others with theirs, and the least slope of all."""

    inside: Array
    new: Columns
    slopes: Array
    least: float

    def __len__(self) -> int:
        return len(self.new)


class Oracle(Protocol):
    """A convex function of weights of columns; a point is whatever :meth:`at` gives.

    ``estimates``: whether a Hessian that need not be exact takes much less time.
    """

    estimates: bool = False

    def at(self, columns: Columns, weights: Array) -> tuple[float, Any]:
        """The value for these weights, all others 0, and the point for the other methods."""

    def slopes(self, point: Any, columns: Columns) -> Array:
        """The gradient on these columns."""

    def hessian(self, point: Any, columns: Columns, slopes: Array, exact: bool = True) -> Array:
        """The Hessian on these columns, whose slopes are known; a new array. An estimate unless ``exact``."""

    def look(self, point: Any, columns: Columns, most: int) -> Look:
        """Look at all columns: these are in use, and at most so many of the others are wanted."""


class WholeOracle(Oracle, Protocol):
    """A function whose columns are all known from the beginning: steps may use all of them at once."""

    def whole(self, w: Array) -> tuple[float, Any]:
        """Value and point at weights of all columns."""

    def every_slope(self, point: Any) -> Array:
        """The gradient over all columns."""

    def curvature(self, point: Any, d: Array) -> tuple[float, Any]:
        """d'Hd, and what :meth:`moved` needs to know of the direction."""

    def moved(self, point: Any, w: Array, direction: Any, step: float) -> tuple[float, Any]:
        """Value and point at ``w``, ``step`` along that direction from the point."""

    def choose(self, slopes: Array, most: int) -> Columns:
        """At most so many columns to bring into use, the least slope first; inf marks those in use."""
        return least(slopes, most)

    def look(self, point: Any, columns: Columns, most: int) -> Look:
        return _look(self.every_slope(point), columns, most, self.choose)


# ------------------------------------------------------------------------------------------------ soft margin


def soft_point(risk: EmpiricalRisk, F: Array) -> tuple[float, RiskPoint]:
    """lse(-F) with row weights that add up to 1, and the exponential loss there relative to its value's size:
    nothing of it over- or underflows, however large the margins are."""
    rows = np.empty((2, len(F)))
    shift, loss, derivative, curvature, _, _, largest = risk.sums(F, rows)
    value = loss / risk.weights.total
    if not value > 0.0:
        raise ValueError("sample_weight spans too many decades for this temperature: raise one or the other.")
    return shift + math.log(value), RiskPoint(risk, F, rows, value, 1.0, derivative, curvature, largest)


class Block(Protocol):
    """A few columns, y multiplied in."""

    def margins(self, weights: Array) -> Array: ...

    def edges(self, point: RiskPoint) -> Array: ...

    def gram(self, point: RiskPoint) -> Array: ...

    def estimate(self, point: RiskPoint, slopes: Array) -> Array | None:
        """The Hessian from some of the rows, where that pays; None where it does not."""


class Store(Protocol):
    """All columns, known by number."""

    n_rows: int
    estimates: bool

    def __len__(self) -> int: ...

    def choose(self, slopes: Array, most: int) -> Columns:
        """At most so many columns to bring into use, the least slope first; inf marks those in use."""

    def block(self, which: Columns) -> Block:
        """Some of them."""

    def every_edge(self, point: RiskPoint) -> Array:
        """``sum_i u_i a_ij`` of every column."""

    def margins(self, weights: Array) -> Array:
        """Margins of weights of all columns."""


class MatrixOracle(WholeOracle):
    """The soft margin over the columns of a store, y multiplied in.

    A direction is one product with the matrix, a step along it none.
    """

    def __init__(self, store: Store, risk: EmpiricalRisk) -> None:
        self.store, self.risk = store, risk
        self.estimates, self.choose = store.estimates, store.choose  # type: ignore[method-assign]
        self._last: tuple[Columns, Block] | None = None

    def _block(self, columns: Columns) -> Block:
        """The columns in use stay the same for some steps."""
        if self._last is None or self._last[0] is not columns:
            self._last = (columns, self.store.block(columns))
        return self._last[1]

    def at(self, columns: Columns, weights: Array) -> tuple[float, RiskPoint]:
        return soft_point(self.risk, self._block(columns).margins(weights))

    def whole(self, w: Array) -> tuple[float, RiskPoint]:
        return soft_point(self.risk, self.store.margins(w))

    def slopes(self, point: RiskPoint, columns: Columns) -> Array:
        return self._block(columns).edges(point) / -point.value

    def every_slope(self, point: RiskPoint) -> Array:
        return self.store.every_edge(point) / -point.value

    def hessian(self, point: RiskPoint, columns: Columns, slopes: Array, exact: bool = True) -> Array:
        block = self._block(columns)
        estimate = None if exact else block.estimate(point, slopes)
        return _soft_hessian(block.gram(point), point, slopes) if estimate is None else estimate

    def curvature(self, point: RiskPoint, d: Array) -> tuple[float, Array]:
        D = self.store.margins(d)
        share, weights = point.rows[0] / point.value, self.risk.weights
        mean = weights.mean(share * D)  # in fixed point, whatever the order of the rows
        return weights.mean(share * (D - mean) ** 2), D

    def moved(self, point: RiskPoint, w: Array, direction: Array, step: float) -> tuple[float, RiskPoint]:
        return soft_point(self.risk, point.F + step * direction)


def _soft_hessian(gram: Array, point: RiskPoint, slopes: Array) -> Array:
    """The Hessian of the soft margin; overwrites ``gram``."""
    gram /= point.value
    gram -= slopes[:, None] * slopes
    return gram


class SubStore:
    """Some columns of a store; they count in this order."""

    def __init__(self, store: Store, columns: Columns) -> None:
        self.columns, self.n_rows, self.estimates = columns, store.n_rows, False
        self._store, self._whole = store, store.block(columns)

    def __len__(self) -> int:
        return len(self.columns)

    def choose(self, slopes: Array, most: int) -> Columns:
        return least(slopes, most)

    def block(self, which: Columns) -> Block:
        return self._store.block(self.columns[which])

    def every_edge(self, point: RiskPoint) -> Array:
        return self._whole.edges(point)

    def margins(self, weights: Array) -> Array:
        return self._whole.margins(weights)


class DictionaryOracle(Oracle):
    """The soft margin over a dictionary, whose columns are generated; they count in the order of the pool."""

    def __init__(self, dictionary: Dictionary, risk: EmpiricalRisk) -> None:
        self.dictionary, self.risk = dictionary, risk
        self.pool: ColumnPool = dictionary.pool()

    def at(self, columns: Columns, weights: Array) -> tuple[float, RiskPoint]:
        return soft_point(self.risk, self.pool.margins(spread(weights, columns, self.pool.n_columns)))

    def slopes(self, point: RiskPoint, columns: Columns) -> Array:
        return self.pool.edges(point)[columns] / -point.value

    def hessian(self, point: RiskPoint, columns: Columns, slopes: Array, exact: bool = True) -> Array:
        whole = self.pool.gram(point, columns.astype(np.intp), exact=True)
        return _soft_hessian(np.ascontiguousarray(whole[:, columns]), point, slopes)

    def look(self, point: RiskPoint, columns: Columns, most: int) -> Look:
        proposals = self.dictionary.best_columns(point, most, self.pool)
        old, first = _look(self.pool.edges(point) / -point.value, columns, most), self.pool.n_columns
        self.pool.append(proposals.atoms)
        new = np.arange(first, self.pool.n_columns, dtype=np.int32)
        slopes = np.concatenate([old.slopes, proposals.edges / -point.value])
        best = np.argsort(slopes, kind="stable")[:most]
        # learners that are fitted on the way bound no others
        edge = proposals.bound if self.dictionary.exact else float(np.max(proposals.edges, initial=-math.inf))
        bound = min(old.least, -edge / point.value)
        return Look(old.inside, np.concatenate([old.new, new])[best], slopes[best], bound)


class FunctionOracle(WholeOracle):
    """A user's convex function of all weights: ``value_and_gradient(w)`` and ``hessian(w)``."""

    def __init__(self, function: Any, n: int) -> None:
        self.function, self.n = function, n

    def at(self, columns: Columns, weights: Array) -> tuple[float, tuple[Array, Array]]:
        return self.whole(spread(weights, columns, self.n))

    def whole(self, w: Array) -> tuple[float, tuple[Array, Array]]:
        value, gradient = self.function.value_and_gradient(w)
        gradient = np.asarray(gradient, dtype=np.float64)
        if gradient.shape != (self.n,) or not np.isfinite(gradient).all() or not math.isfinite(value):
            raise ValueError(
                "value_and_gradient must give a finite number and a finite gradient of all weights."
            )
        return float(value), (w, gradient)

    def slopes(self, point: tuple[Array, Array], columns: Columns) -> Array:
        return point[1][columns]

    def every_slope(self, point: tuple[Array, Array]) -> Array:
        return point[1]

    def _hessian(self, point: tuple[Array, Array]) -> Array:
        whole = np.asarray(self.function.hessian(point[0]), dtype=np.float64)
        if whole.shape != (self.n, self.n) or not np.isfinite(whole).all():
            raise ValueError("hessian must give a finite matrix over all weights.")
        return np.ascontiguousarray(whole)

    def hessian(self, point: Any, columns: Columns, slopes: Array, exact: bool = True) -> Array:
        return np.ascontiguousarray(self._hessian(point)[np.ix_(columns, columns)])

    def curvature(self, point: tuple[Array, Array], d: Array) -> tuple[float, None]:
        return float(d @ self._hessian(point) @ d), None

    def moved(self, point: Any, w: Array, direction: None, step: float) -> tuple[float, Any]:
        return self.whole(w)


def _look(
    slopes: Array, columns: Columns, most: int, choose: Callable[[Array, int], Columns] = least
) -> Look:
    """With the slopes of all columns."""
    rest = slopes.copy()
    rest[columns] = math.inf
    new = choose(rest, most)
    return Look(slopes[columns], new, slopes[new], float(slopes.min(initial=math.inf)))


# ------------------------------------------------------------------------------------------------ Newton


class SimplexNewton:
    """Columns in use with their weights on the simplex: a look at all columns, then Newton steps, and so on.

    Parameters
    ----------
    oracle : Oracle
        The convex function.
    radius : float
        Sum of the weights.
    start : tuple
        Columns and their weights.
    tol : float
        Gap at which the weights are optimal.
    max_steps : int
        Newton steps at most.
    late : callable
        Whether time is up.
    """

    def __init__(
        self, oracle: Oracle, radius: float, start: Weighted, *, tol: float, max_steps: int, late: Late
    ) -> None:
        self.oracle, self.radius, self.tol, self.max_steps, self.late = oracle, radius, tol, max_steps, late
        self.columns, self.weights = start
        self.value, self._point = oracle.at(*start)
        self.steps, self.gap, self.least_slope = 0, math.inf, math.inf
        self._seen: Look | None = None
        self._stalled_looks = 0  # in a row, without progress
        self._least_gap, self._last_value = math.inf, math.inf
        self._nearest = self.columns, self.weights, self.value  # at the least gap
        self._most_new = _NEW  # columns that come into use after the next look, at most
        self._gap_to_halve, self._slow_looks = math.inf, 0

    def look(self) -> Look:
        """Look at all columns: the gap, and the columns that are to come into use."""
        seen = self._seen = self.oracle.look(self._point, self.columns, self._most_new)
        slopes, value = seen.inside, self.value
        mean = float(slopes @ self.weights) / self.radius
        self.least_slope = min(seen.least, float(slopes.min()))
        gap = self.gap = max(0.0, self.radius * (mean - self.least_slope))
        # near the optimum the objective no longer shows what is gained; the gap still does
        moved = gap < 0.5 * self._least_gap or self._last_value - value > _ROUNDING * abs(value)
        self._stalled_looks = 0 if moved else self._stalled_looks + 1
        self._last_value = value
        if gap < self._least_gap:
            self._least_gap, self._nearest = gap, (self.columns, self.weights, value)
        if gap <= 0.5 * self._gap_to_halve:
            self._gap_to_halve, self._slow_looks = gap, 0
        else:
            self._slow_looks += 1
        return seen

    def reason(self) -> Status | None:
        """Why no step is to follow the last look, if so."""
        if self.gap <= self.tol:
            return Status.OPTIMAL
        if self.steps >= self.max_steps:
            return Status.ITERATION_LIMIT
        if self._stalled_looks >= _STUCK:
            # the last looks differ by rounding only
            self.gap, (self.columns, self.weights, self.value) = self._least_gap, self._nearest
            return Status.PRECISION
        return Status.TIME_LIMIT if self.late() else None

    def step(self) -> None:
        """Bring the columns of the last look into use, and take Newton steps on all columns in use."""
        seen, gap = self._seen, self.gap
        assert seen is not None
        exact = not self.oracle.estimates or self._stalled_looks > 0 or self._slow_looks >= _SLOW
        used = self.weights > 0
        mean = float(seen.inside @ self.weights) / self.radius
        n_new = int(np.searchsorted(seen.slopes, mean))
        self.columns = np.concatenate([self.columns[used], seen.new[:n_new]])
        self.weights = np.concatenate([self.weights[used], np.zeros(n_new)])
        slopes = np.concatenate([seen.inside[used], seen.slopes[:n_new]])
        goal = max(_CLOSER * gap, 0.2 * self.tol)
        for inner in range(min(_INNER if exact else 1, self.max_steps - self.steps)):
            if inner:
                slopes = self.oracle.slopes(self._point, self.columns)
            taken, self.weights, self.value, self._point = _step(
                self.oracle, self.radius, self.columns, self.weights, slopes, self.value, self._point, goal,
                exact,
            )  # fmt: skip
            self.steps += taken
            if not taken or self.late():
                break
        n_served = int(np.count_nonzero(self.weights[len(self.weights) - n_new :]))
        self._most_new = min(max(_NEW, _SERVED * n_served), _MOST)

    def solution(self, status: Status, history: tuple[Record, ...] = ()) -> SimplexSolution:
        """The columns in use and their weights."""
        used = self.weights > 0
        return SimplexSolution(
            self.columns[used], self.weights[used], self.value, self.gap, self.steps, status, history
        )


def simplex_record(value: float, gap: float, support: int, slope: float, seconds: float) -> Record:
    """The record of a point on the simplex; ``slope``: the least one of all columns."""
    return Record(support, support, value, value - gap, -slope, seconds, exact_gap=gap)


def newton_on_simplex(
    oracle: Oracle,
    radius: float,
    start: Weighted,
    *,
    tol: float,
    max_iter: int,
    callback: Watcher | None = None,
    late: Late = never,
) -> SimplexSolution:
    """From ``start``, columns with their weights, to a gap of at most ``tol``."""
    started = clock()
    newton = SimplexNewton(oracle, radius, start, tol=tol, max_steps=max_iter, late=late)
    records: list[Record] = []
    while True:
        newton.look()
        support, seconds = int(np.count_nonzero(newton.weights)), clock() - started
        records.append(simplex_record(newton.value, newton.gap, support, newton.least_slope, seconds))
        stopped = callback is not None and callback(records[-1], newton.columns, newton.weights)
        status = Status.STOPPED if stopped else newton.reason()
        if status is not None:
            return newton.solution(status, tuple(records))
        newton.step()


def start_by_radius(
    oracle: Oracle, radius: float, start: Weighted, *, max_iter: int, late: Late = never
) -> tuple[Weighted, int]:
    """Columns and weights to begin with at this radius, through smaller radii first if it is large.

    Weights of a large sum put nearly all of p on a few rows, where the quadratic model is good for short
    steps only; the solution of a smaller radius, scaled up, is close. Also returns the steps taken.
    """
    (columns, weights), radii, steps = start, [radius], 0
    while radii[-1] > _DIRECT:
        radii.append(radii[-1] / _FACTOR)
    for smaller in radii[:0:-1]:
        weights = weights * (smaller / weights.sum())
        solution = newton_on_simplex(
            oracle, smaller, (columns, weights), tol=_ON_THE_WAY, max_iter=max(0, max_iter - steps), late=late
        )
        columns, weights, steps = solution.columns, solution.weights, steps + solution.steps
    return (columns, weights * (radius / weights.sum())), steps


def newton_by_radius(
    oracle: Oracle, radius: float, start: Weighted, *, tol: float, max_iter: int, **options: Any
) -> SimplexSolution:
    """:func:`newton_on_simplex`, through smaller radii first if this one is large."""
    late = options.get("late", never)
    start, steps = start_by_radius(oracle, radius, start, max_iter=max_iter, late=late)
    solution = newton_on_simplex(oracle, radius, start, tol=tol, max_iter=max(0, max_iter - steps), **options)
    return replace(solution, steps=steps + solution.steps)


def _step(
    oracle: Oracle, radius: float, columns: Columns, weights: Array, slopes: Array, value: float, point: Any,
    goal: float, exact: bool = True,
) -> tuple[int, Array, float, Any]:  # fmt: skip
    """One Newton step on these columns, or none (0) where their own gap is no more than ``goal``."""
    gap = float(slopes @ weights) - radius * float(slopes.min())
    if gap <= goal:
        return 0, weights, value, point
    hessian = oracle.hessian(point, columns, slopes, exact)
    # where the function is flat along some direction, a little curvature says how far to go, and more if that
    # is too far
    diagonal = hessian.reshape(-1)[:: len(columns) + 1]
    added, lift = 0.0, _LIFT * (float(diagonal.sum()) / len(columns) + gap / radius**2)
    for attempt in range(_LIFTS):
        diagonal += lift - added
        target, drop, _ = _kernels.minimise_on_simplex(
            hessian, slopes, weights, 1e-3 * gap / radius, 20 + 4 * len(columns)
        )
        total = float(target.sum())
        if not total > 0.0 or np.array_equal(target, weights):
            return 0, weights, value, point
        target *= radius / total
        part, least = 1.0, _SHORT if attempt + 1 < _LIFTS else 1e-9
        while part > least:
            trial = target if part == 1.0 else weights + part * (target - weights)
            then, there = oracle.at(columns, trial)
            if then <= value - 1e-4 * part * max(drop, 0.0) + _ROUNDING * abs(value):
                return 1, trial, min(then, value), there
            part *= 0.5
        added, lift = lift, 1e3 * lift
    if not exact:
        return _step(oracle, radius, columns, weights, slopes, value, point, goal)
    return 0, weights, value, point

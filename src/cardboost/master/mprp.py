"""Conjugate gradients on the simplex {w >= 0, sum w = R}: the modified Polak-Ribiere-Polyak direction.

The method of the paper on soft-margin boosting by nonlinear conjugate gradients, with its corrections
(docs/soft_margin.md says which and why). I = {w_i = 0} are the weights on the boundary, J the others.

* The feasible direction d^f of a direction d is the nearest one that the simplex allows.
* The tangent part of a vector is its projection onto {v: sum v = 0, v_I = 0}.
* With the last gradient g~ and direction d~, all projected at the present point,

      d = (-g)^f - ((-g)^t . (g - g~)^t / |(-g~)^f|^2) d~^t + ((-g)^t . d~^t / |(-g~)^f|^2) (g - g~)^t,

  so that (-g)^f . d = |(-g)^f|^2 whatever g~ and d~ are. It is (-g)^f at first and after I has changed.
* The step is Newton's along d, at most as far as the boundary, where the weight that meets it becomes 0
  exactly, and shortened by ``rho`` until f falls by delta alpha^2 |d|^2.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.master.simplex import SimplexSolution, Watcher, WholeOracle, simplex_record
from cardboost.problem.budget import Late, clock, never
from cardboost.problem.trace import Record, Status

Array = NDArray[np.float64]

_ROUNDING = 4e-15  # share of the value below which a drop cannot be seen
_SEEN = 1e-11  # share of the value below which a drop may be rounding
_PATIENCE = 1000  # steps in a row that lower neither the value nor the gap
_AFRESH = 50  # steps after which margins are computed from the weights again


def feasible_direction(w: Array, d: Array) -> Array:
    """The nearest direction to ``d`` with sum 0 that does not leave w >= 0; sort and scan, O(n log n)."""
    edge = w == 0
    inner, falling = d[~edge], np.sort(d[edge])[::-1]
    sums = float(inner.sum()) + np.concatenate([[0.0], np.cumsum(falling)])
    # with the m largest on the boundary included, the root is sums / counts; it is that of the largest m for
    # which the last one included is still above it
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = sums / (len(inner) + np.arange(len(sums)))
    r = roots[np.count_nonzero(falling > roots[:-1])]
    return np.where(edge, np.maximum(d - r, 0.0), d - r)


def tangent(w: Array, v: Array) -> Array:
    """The part of ``v`` along which weights that are 0 stay so, and the sum stays."""
    inner = w > 0
    return np.where(inner, v - v[inner].mean(), 0.0)


def mprp_on_simplex(
    function: WholeOracle,
    radius: float,
    w: Array,
    *,
    tol: float,
    max_iter: int,
    rho: float = 0.5,
    delta: float = 1e-4,
    epsilon: float | None = None,
    callback: Watcher | None = None,
    late: Late = never,
) -> SimplexSolution:
    """Minimise on the simplex by conjugate gradients.

    Parameters
    ----------
    function : WholeOracle
        The convex function.
    radius : float
        Sum of the weights.
    w : array
        Weights on the simplex to start from.
    tol : float
        Frank-Wolfe gap at which to stop.
    max_iter : int
        The most steps.
    rho, delta : float
        A step is shortened by ``rho`` until f falls by delta alpha^2 |d|^2.
    epsilon : float, optional
        Also stop where the paper does, at (-g)^f . d <= epsilon.
    callback : callable, optional
        Called with the record, columns and weights of every step; ends the search by returning true.
    late : callable
        Asked between steps whether to stop.

    Returns
    -------
    SimplexSolution
        Columns in use, their weights, the value and the gap that proves it.
    """
    began = clock()
    value, point = function.whole(w)
    g = function.every_slope(point)
    before: tuple[Array, Array, Array, float] | None = None  # w, g, d and |(-g)^f|^2 of the last step
    records: list[Record] = []
    steps, unseen, least_gap = 0, 0, math.inf

    def record(criterion: float, seconds: float) -> Record:
        least, support = float(g.min()), int(np.count_nonzero(w))
        gap = max(0.0, float(g @ w) - radius * least)
        return replace(simplex_record(value, gap, support, least, seconds), criterion=criterion)

    def reason(slope: float, gap: float) -> Status | None:
        if callback is not None and callback(records[-1], np.flatnonzero(w).astype(np.int32), w[w != 0]):
            return Status.STOPPED
        reasons = {
            Status.OPTIMAL: gap <= tol,
            Status.CRITERION: epsilon is not None and slope <= epsilon,
            Status.ITERATION_LIMIT: steps >= max_iter,
            Status.TIME_LIMIT: late(),
            Status.PRECISION: unseen >= _PATIENCE or not slope > 0.0,
        }
        return next((status for status, holds in reasons.items() if holds), None)

    while True:
        d = down = feasible_direction(w, -g)
        if before is not None and before[3] > 0 and np.array_equal(before[0] == 0, w == 0):
            along, change, last = tangent(w, down), tangent(w, g - before[1]), tangent(w, before[2])
            d = down - (along @ change) / before[3] * last + (along @ last) / before[3] * change
        slope = float(down @ d)
        records.append(record(slope, clock() - began))
        gap = records[-1].gap
        status = reason(slope, gap)
        if status is not None:
            break
        moved = _line_search(function, radius, w, value, point, d, slope, rho, delta)
        if moved is None:
            if d is down:
                status = Status.PRECISION
                break
            before = None  # once more, along (-g)^f
            records.pop()
            continue
        seen = value - moved[1] > _ROUNDING * abs(value) or gap < 0.9 * least_gap
        unseen, least_gap = 0 if seen else unseen + 1, min(least_gap, gap)
        before = (w, g, d, float(down @ down))
        w, value, point = moved
        steps += 1
        if steps % _AFRESH == 0:
            fresh, point = function.whole(w)
            value = min(value, fresh)
        g = function.every_slope(point)
    fresh, point = function.whole(w)
    if abs(fresh - value) > _SEEN * abs(value):
        # margins were updated step by step, from far larger ones: what is stated comes from the weights
        value, g = fresh, function.every_slope(point)
        records[-1] = record(slope, records[-1].seconds)
        if status is Status.OPTIMAL and records[-1].gap > tol:
            status = Status.PRECISION
    used = np.flatnonzero(w).astype(np.int32)
    return SimplexSolution(used, w[used], value, records[-1].gap, steps, status, tuple(records))


def _line_search(
    function: WholeOracle,
    radius: float,
    w: Array,
    value: float,
    point: Any,
    d: Array,
    slope: float,
    rho: float,
    delta: float,
) -> tuple[Array, float, Any] | None:
    """The next point, or None where no step along ``d`` lowers the value."""
    bend, direction = function.curvature(point, d)
    falls = d < 0
    limits = np.full(len(d), math.inf)
    limits[falls] = -w[falls] / d[falls]
    most = float(limits.min())
    step = min(slope / bend if bend > 0 else math.inf, most)
    if not 0.0 < step < math.inf:
        return None
    length, drift = float(d @ d), abs(float(d.sum()))
    while True:
        then = np.maximum(w + step * d, 0.0)
        if step == most:
            then[limits <= most] = 0.0
        then *= radius / then.sum()
        if step * drift > _ROUNDING * radius:  # the rounding of d would count as a gain
            new, there = function.whole(then)
        else:
            new, there = function.moved(point, then, direction, step)
        if new <= value - delta * step * step * length:
            return then, new, there
        if step * slope <= _SEEN * abs(value):
            # the value does not show such a drop any more; the slope at the new point does
            g = function.every_slope(there)
            if float((g - float(g @ then) / radius) @ d) <= 0.5 * slope:
                return then, min(new, value), there
        if step * slope <= _ROUNDING * _ROUNDING * abs(value):
            return None
        step *= rho

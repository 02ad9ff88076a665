"""How far to go along one column: a formula where there is one, else a search that cannot fail.

Every sum over rows of :func:`best_step` is in fixed point, so that its steps do not depend on threads or on
the order of the rows, and a row of weight 2 counts as the row twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cardboost.problem.losses import Loss
from cardboost.problem.risk import EmpiricalRisk
from cardboost.problem.vector_losses import AbsoluteOutputs, VectorLoss, weighted_median

Array = NDArray[np.float64]

_LONGEST = 1e6  # first step, which is doubled up to this many times
_DOUBLINGS = 60
_FARTHEST_NET = 16.0  # networks are fitted to Newton steps of length 1; classes apart would pull for ever
_CLOSE = 4e-16  # of a step: what is left of the interval is rounding


def adaboost_step(right: int, wrong: int) -> float:
    """``log(right / wrong) / 2``: the best step for the exponential loss along a column of signs.

    The two are the row weights, as whole numbers, of the rows that the learner gets right and wrong.
    """
    return 0.5 * (math.log(max(right, 0.5)) - math.log(max(wrong, 0.5)))


def best_step(risk: EmpiricalRisk, F: Array, D: Array) -> float:
    """The step that lowers the risk most at margins ``F + step * D``, of either sign; 0 where none does."""
    jump = _jump(risk.loss)
    if jump is not None:
        return _at_a_kink(risk, F, D, jump)
    _, slope, bend = risk.along(F, D, 0.0)
    if slope == 0.0 or not np.any(D):
        return 0.0
    first_step = min(max(abs(slope) / bend if bend > 0.0 else 1.0, 1e-12), _LONGEST)
    farthest = first_step * 2.0**_DOUBLINGS
    return _bracketed_newton(lambda step: risk.along(F, D, step)[1:], slope, first_step, farthest, 100, 1e-14)


def best_gamma(loss: VectorLoss, y: Array, s: Array, F: Array, h: Array) -> float:
    """The gamma with the least ``sum s L(y, F + gamma h)``; 0 where h is 0 everywhere.

    ``h`` has one output or many. Of the squared and the absolute loss any gamma, of others one between -16
    and 16.
    """
    if not np.any(h):
        return 0.0
    if loss.quadratic:
        squares = float(s @ np.sum(h * h, axis=1))
        return -float(s @ np.sum(loss.gradient(y, F) * h, axis=1)) / squares if squares > 0.0 else 0.0
    if isinstance(loss, AbsoluteOutputs):  # the slope of the sum of absolute values changes its sign
        weight = np.abs(h) * s[:, None]
        used = weight > 0.0
        return weighted_median((y - F)[used] / h[used], weight[used]) if used.any() else 0.0

    def along(gamma: float) -> tuple[float, float]:
        scores = F + gamma * h
        slope = float(s @ np.sum(loss.gradient(y, scores) * h, axis=1))
        bend = float(s @ np.sum(loss.bend_times(y, scores, h[None])[0] * h, axis=1))
        return slope, bend

    slope, bend = along(0.0)
    if slope == 0.0 or not np.isfinite(slope):
        return 0.0
    first_step = min(max(abs(slope) / bend if bend > 0.0 else 1.0, 1e-12), _FARTHEST_NET)
    gamma = _bracketed_newton(along, slope, first_step, _FARTHEST_NET, 60, 1e-13, 1e-13)
    return float(gamma) if loss.value(y, F + gamma * h, s) <= loss.value(y, F, s) else 0.0


def _bracketed_newton(
    along: Callable[[float], tuple[float, float]], slope: float, first_step: float, farthest: float,
    max_steps: int, flat: float, flat_at_end: float = 0.0,
) -> float:  # fmt: skip
    """Newton steps in an interval in which the slope changes its sign; halved where they leave it.

    Parameters
    ----------
    along : callable
        Slope and curvature after a step.
    slope : float
        At 0, not 0.
    first_step, farthest : float
        The interval ends at the first of these, or is doubled up to the second: where the function falls
        even there, that is the step.
    max_steps : int
        Newton steps at most.
    flat, flat_at_end : float
        Share of the first slope of which no more than rounding is left, after a step and at the end of the
        interval.
    """
    toward, first = -math.copysign(1.0, slope), abs(slope)
    low, high = 0.0, first_step
    slope, bend = along(toward * high)
    while slope * toward < 0.0 and high < farthest:
        low, high = high, min(2.0 * high, farthest)
        slope, bend = along(toward * high)
    step = high
    if slope * toward < 0.0 or abs(slope) <= flat_at_end * first:
        return toward * step
    for _ in range(max_steps):
        inside = step - slope * toward / bend if bend > 0.0 else math.nan
        step = inside if low < inside < high else 0.5 * (low + high)
        if not low < step < high:
            break
        slope, bend = along(toward * step)
        if abs(slope) <= flat * first:
            break
        low, high = (step, high) if slope * toward < 0.0 else (low, step)
        if high - low <= _CLOSE * high:
            break
    return toward * step


def _jump(loss: Loss) -> tuple[float, int, int] | None:
    """The one kink of a loss of two straight pieces, and their slopes where these are whole numbers."""
    if not loss.piecewise_linear or len(loss.kinks) != 1:
        return None
    (kink,) = loss.kinks
    left, right = float(loss.derivative(kink - 1.0)), float(loss.derivative(kink + 1.0))
    if left != round(left) or right != round(right) or max(abs(left), abs(right)) > 4:
        return None
    return kink, round(left), round(right)


def _at_a_kink(risk: EmpiricalRisk, F: Array, D: Array, jump: tuple[float, int, int]) -> float:
    """The weighted median (or another quantile) of the steps at which rows reach the kink.

    The risk is made of straight pieces, so that one of these steps is best. Where a whole piece is, its
    middle is taken.
    """
    kink, left, right = jump
    rows = np.flatnonzero(D)
    if len(rows) == 0:
        return 0.0
    residual = F[rows] if risk.target is None else F[rows] - risk.target[rows]
    steps, reach = (kink - residual) / D[rows], np.zeros(len(F))
    reach[rows] = np.abs(D[rows])
    units = risk.weights.fixed(reach)[0][rows]
    slope = left * int(units[D[rows] > 0].sum()) - right * int(units[D[rows] < 0].sum())  # far to the left
    order = np.argsort(steps, kind="stable")
    steps, passed = steps[order], np.cumsum(units[order])
    k = int(np.searchsorted(passed, -(slope // (right - left))))  # where the slope is no longer below 0
    if k == len(passed):
        return float(steps[-1])
    if slope + (right - left) * int(passed[k]) == 0 and k + 1 < len(steps):
        return float(0.5 * (steps[k] + steps[k + 1]))
    return float(steps[k])

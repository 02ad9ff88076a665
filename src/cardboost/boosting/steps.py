"""How far to go along one column: a formula where there is one, else a search that cannot fail.

Every sum over rows is in fixed point, so steps do not depend on threads or on the order of the rows, and a
row of weight 2 counts as the row twice.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cardboost.problem.losses import Loss
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]

_DOUBLINGS = 60
_STEPS = 100
_FLAT = 1e-14  # of the first slope: what is left of it is rounding
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
    return _line_search(risk, F, D, slope, bend)


def _line_search(risk: EmpiricalRisk, F: Array, D: Array, slope: float, bend: float) -> float:
    """Newton steps in an interval in which the slope changes its sign; halved where they leave it."""
    toward = -math.copysign(1.0, slope)
    first = abs(slope)
    low, high = 0.0, first / bend if bend > 0.0 else 1.0
    high = min(max(high, 1e-12), 1e6)
    at_high = risk.along(F, D, toward * high)
    for _ in range(_DOUBLINGS):
        if at_high[1] * toward >= 0.0:
            break
        low, high = high, 2.0 * high
        at_high = risk.along(F, D, toward * high)
    else:
        return toward * high  # falls for ever: so far, and no further
    if at_high[1] == 0.0:
        return toward * high
    step, (_, slope, bend) = high, at_high
    for _ in range(_STEPS):
        inside = step - slope * toward / bend if bend > 0.0 else math.nan
        step = inside if low < inside < high else 0.5 * (low + high)
        if not low < step < high:
            break
        _, slope, bend = risk.along(F, D, toward * step)
        if abs(slope) <= _FLAT * first:
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

"""Losses of a certificate: mean loss, and row weights with their dual value. Part of the checker.

Row weights are u_i = s_i v_i with v_i = theta (-loss'(F_i)). For the squared loss v_i is theta (t_i - F_i),
and columns are not multiplied with labels. For the soft margin, log sum s_i exp(-F_i), u_i is p_i,
proportional to s_i exp(-F_i). docs/certificate.md has the table of all formulas.
"""

from __future__ import annotations

import numpy as np

from cardboost.certificate.checker.columns import Rows
from cardboost.certificate.checker.data import Floats
from cardboost.certificate.checker.format import SOFT

CORNER = 1.0 / 4.0  # of the smooth hinge: its last stretch before the margin 1 is a parabola


def mean_loss(loss: str, rows: Rows, intercept: float, weights: Floats | None = None) -> float:
    """sum s_i loss(F_i) of a model; ``weights`` one per column of the pool, all 0 by default."""
    full = np.zeros(rows.a.shape[1]) if weights is None else weights
    with np.errstate(over="ignore", invalid="ignore"):
        margins = rows.margins(np.array([intercept]), full[:, None])[:, 0]
        if loss == SOFT:
            return float(_log_mean(margins[:, None], rows.share)[0])
        if loss == "squared":
            values = 0.5 * (margins - rows.target) ** 2
        elif loss == "squared_hinge":
            values = np.maximum(0.0, 1.0 - margins) ** 2
        elif loss == "smooth_hinge":
            shortfall, slope = _smooth_hinge(margins)
            values = slope * (shortfall - 0.5 * CORNER * slope)
        else:
            values = np.logaddexp(0.0, -margins) if loss == "logistic" else np.exp(-margins)
        return float(rows.share @ values)


def row_weights(loss: str, margins: Floats, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
    """u_i, and the sum of s_i times the dual value of v_i; a column of margins and a theta for each leaf."""
    share = rows.share[:, None]
    if loss == SOFT:
        log_mean = _log_mean(margins, rows.share)
        p = share * np.exp(-margins - log_mean)
        return p, np.sum(p * (margins + log_mean), axis=0)
    if loss == "squared":
        target = rows.target[:, None]
        v = theta * (target - margins)
        return share * v, rows.share @ (v * target - 0.5 * v * v)
    if loss == "exponential":
        u = share * (theta * np.exp(-margins))
        log_theta = np.log(np.where(theta > 0, theta, 1.0))
        return u, np.sum(np.where(u > 0, u * (1.0 - log_theta + margins), u), axis=0)
    if loss == "squared_hinge":
        v = 2.0 * theta * np.maximum(0.0, 1.0 - margins)
        return share * v, rows.share @ (v - 0.25 * v * v)
    if loss == "smooth_hinge":
        v = theta * _smooth_hinge(margins)[1]
        return share * v, rows.share @ (v - 0.5 * CORNER * v * v)
    small = np.exp(-np.abs(margins))
    v = theta * np.where(margins > 0, small, 1.0) / (1.0 + small)
    rest = (1.0 - theta) + theta * np.where(margins > 0, 1.0, small) / (1.0 + small)  # 1 - v, no cancellation
    log_rest = np.where(v < 0.5, np.log1p(-np.minimum(v, 0.5)), np.log(np.where(rest > 0, rest, 1.0)))
    entropy = -v * np.log(np.where(v > 0, v, 1.0)) - rest * log_rest
    return share * v, rows.share @ entropy


def _log_mean(margins: Floats, share: Floats) -> Floats:
    """log sum s_i exp(-F_i) of every column."""
    least = np.min(margins, axis=0)
    return np.log(share @ np.exp(least - margins)) - least


def _smooth_hinge(margins: Floats) -> tuple[Floats, Floats]:
    """By how much margins fall short of 1, and the size of the slope of the smooth hinge there."""
    shortfall = np.maximum(0.0, 1.0 - margins)
    return shortfall, np.minimum(1.0, shortfall / CORNER)

"""The one bound behind every certificate (docs/mathematics.md, "One bound for everything").

For any row weights u in the domain of the conjugate, with edges c_j = sum u_i a_ij and
kappa_j = max over 0 <= w <= M_j of (c_j - nu_j) w - mu_j w^2 / 2,

    D(u) = sum s_i (-conjugate(-v_i)) - sum_j max(0, kappa_j - lambda_j)

is below the optimum; with at most k charged columns only the k largest of their terms are subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost.master.problem import Prices
from cardboost.risk import RiskPoint

Array = NDArray[np.float64]

#: room for the rounding of sums: every bound is lowered by this share of the sizes that went into it
ROUNDING = 1e-13
#: unboxed columns without l2 must keep their edge below l1; this much is left for rounding
THETA_ROOM = 1e-10


@dataclass(frozen=True)
class Leaf:
    """A part of the search space with the weights whose row weights bound it."""

    weights: Array
    theta: float
    bound: float
    forced_in: tuple[int, ...] = ()
    forced_out: tuple[int, ...] = ()


def kappa(c: Array, prices: Prices) -> Array:
    """The most that a column can gain at its edge."""
    excess = np.maximum(0.0, c - prices.l1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        w = np.where(prices.l2 > 0, excess / np.where(prices.l2 > 0, prices.l2, 1.0), np.inf)
        w = np.minimum(w, prices.max_weight)
        value = excess * w - 0.5 * prices.l2 * w * w
        open_ended = np.isinf(w)
    return np.where(excess == 0.0, 0.0, np.where(open_ended, np.inf, value))


def gain_terms(c: Array, prices: Prices, max_terms: int | None, unseen: float = 0.0) -> float:
    """What is subtracted from the dual value. ``unseen``: the largest term of any column not listed."""
    terms = np.maximum(0.0, kappa(c, prices) - prices.l0)
    if max_terms is None:
        return float(np.sum(terms)) if unseen <= 0.0 else np.inf
    free = float(np.sum(terms[~prices.charged]))
    charged = np.concatenate([terms[prices.charged], np.full(max_terms, unseen)])
    return free + float(np.sum(np.sort(charged)[::-1][:max_terms]))


def dual_bound(
    point: RiskPoint,
    c: Array,
    prices: Prices,
    max_terms: int | None = None,
    unseen_edge: float = -np.inf,
    unseen: Prices | None = None,
) -> tuple[float, float]:
    """The bound at the row weights of ``point``, scaled by theta where needed; returns (bound, theta).

    ``unseen_edge`` bounds the edges of columns not listed in ``c``; ``unseen`` (one entry) are their prices.
    """
    theta = 1.0
    over = np.isinf(kappa(c, prices))
    if over.any():
        theta = float(np.min(prices.l1[over] / c[over]))
    if unseen is not None and np.isfinite(unseen_edge):
        theta = min(theta, _unseen_theta(c, prices, max_terms, unseen_edge, unseen))
    if theta < 1.0:
        theta *= 1.0 - THETA_ROOM
    if theta <= 0.0:
        return 0.0, 0.0
    term = 0.0
    if unseen is not None and np.isfinite(unseen_edge):
        term = max(0.0, float(kappa(np.array([theta * unseen_edge]), unseen)[0] - unseen.l0[0]))
        if max_terms is None and term < 1e-12:
            term = 0.0
    subtracted = gain_terms(theta * c, prices, max_terms, term)
    if not np.isfinite(subtracted):
        return 0.0, 0.0
    dual = point.dual(theta)
    bound = dual - subtracted - ROUNDING * (1.0 + abs(dual) + subtracted)
    # u = 0 proves that no loss is negative
    return (bound, theta) if bound > 0.0 else (0.0, 0.0)


def _unseen_theta(c: Array, prices: Prices, max_terms: int | None, edge: float, unseen: Prices) -> float:
    """How far u must shrink so that a column of this edge adds nothing (or is finite, with max_terms)."""
    l1, l2, l0, box = (float(x[0]) for x in (unseen.l1, unseen.l2, unseen.l0, unseen.max_weight))
    if edge <= l1:
        return 1.0
    if max_terms is not None:
        return 1.0 if l2 > 0 or np.isfinite(box) else l1 / edge
    knee = float(unseen.knee[0])
    allowed = l1 + (l0 / knee + 0.5 * l2 * knee if l0 > 0 and np.isfinite(knee) and knee > 0 else 0.0)
    return 1.0 if edge <= allowed else allowed / edge


def guarantee(null: float, objective: float, lower_bound: float) -> float:
    """Share of the possible improvement over the empty model that is achieved for certain."""
    possible = null - lower_bound
    if possible <= 1e-9 * max(1.0, abs(null)):
        return 1.0
    return float(min(1.0, max(0.0, (null - objective) / possible)))

"""The one bound behind every certificate (docs/mathematics.md, "One bound for everything").

For any row weights u in the domain of the conjugate, with edges c_j = sum u_i a_ij and
kappa_j = max over 0 <= w <= M_j of (c_j - nu_j) w - mu_j w^2 / 2,

    D(u) = sum s_i (-conjugate(-v_i)) - sum_j max(0, kappa_j - lambda_j)

is below the optimum; with at most k charged columns only the k largest of their terms are subtracted. With
limits on features it is the most valuable choice of columns that they allow, costs of features deducted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost.problem.prices import FeatureLimits, Prices
from cardboost.problem.risk import RiskPoint

Array = NDArray[np.float64]

#: gap, as a share of the size of the objective, up to which a model is called optimal
OPTIMAL = 1e-4
#: room for the rounding of sums: every bound is lowered by this share of the sizes that went into it
ROUNDING = 1e-13
#: columns that nothing holds back must keep their edge below l1; this share of it is left for rounding
THETA_ROOM = 1e-10
#: rounding of an edge, as a share of the sum of all row weights times the root of their number
EDGE_ROUNDING = 4e-16
#: share of the risk: boxes and l2 that turn the rounding of an edge into more than this count as none
BOX_ROUNDING = 1e-10


@dataclass(frozen=True)
class Curve:
    """Curvature that a bound sets aside for each column, and the weights around which margins are capped."""

    centre: Array
    aside: Array


@dataclass(frozen=True)
class Leaf:
    """A part of the search space with the weights whose row weights bound it.

    Weights and forced columns are counted over the pool, with the intercept's columns.
    """

    weights: Array
    theta: float
    bound: float
    forced_in: tuple[int, ...] = ()
    forced_out: tuple[int, ...] = ()
    curve: Curve | None = None


def kappa(c: Array, prices: Prices) -> Array:
    """The most that a column can gain at its edge."""
    excess = np.maximum(0.0, c - prices.l1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        w = np.where(prices.l2 > 0, excess / np.where(prices.l2 > 0, prices.l2, 1.0), np.inf)
        w = np.minimum(w, prices.max_weight)
        value = excess * w - 0.5 * prices.l2 * w * w
        open_ended = np.isinf(w)
    return np.where(excess == 0.0, 0.0, np.where(open_ended, np.inf, value))


def gain_terms(
    c: Array,
    prices: Prices,
    max_terms: int | None,
    unseen: float | Array = 0.0,
    groups: NDArray[np.int32] | None = None,
    limits: FeatureLimits | None = None,
) -> float:
    """What is subtracted from the dual value. ``unseen``: the largest term of any column not listed.

    With ``limits``, ``groups`` are the features of the columns and ``unseen`` has an entry per feature.
    """
    terms = np.maximum(0.0, kappa(c, prices) - prices.l0)
    if max_terms is None and np.any(np.asarray(unseen) > 0.0):
        return np.inf
    if limits is not None and groups is not None:
        own = prices.charged & (groups >= 0)
        spare = unseen if isinstance(unseen, np.ndarray) else np.zeros(0)
        chosen = best_choice(terms[own], groups[own], max_terms, limits, spare)
        return float(np.sum(terms[~own])) + chosen
    if max_terms is None:
        return float(np.sum(terms))
    free = float(np.sum(terms[~prices.charged]))
    most = np.sort(terms[prices.charged])[::-1][:max_terms]
    most = most[most > unseen]
    return free + float(np.sum(most)) + float(unseen) * (max_terms - len(most))


def best_choice(
    terms: Array,
    features: NDArray[np.int32],
    max_terms: int | None,
    limits: FeatureLimits,
    unseen: Array,
) -> float:
    """The largest sum of terms that the limits allow, costs of the features deducted: exact.

    ``unseen``: a term per feature that may be taken any number of times (with ``max_terms`` only). In each
    feature the best r columns are its r largest; how many of which features is a dynamic program.
    """
    useful = terms > 0.0
    terms, features = terms[useful], features[useful]
    n = max(len(unseen), int(features.max(initial=-1)) + 1)
    costs = np.zeros(n) if limits.costs is None else limits.costs[:n]
    if max_terms is None:
        worth = np.bincount(features, terms, n) - costs
        return float(np.sum(np.sort(worth[worth > 0.0])[::-1][: limits.max_features]))
    if max_terms == 0 or n == 0:
        return 0.0
    rest = np.zeros(n)
    rest[: len(unseen)] = unseen
    active = np.flatnonzero((np.bincount(features, minlength=n) > 0) | (rest > 0.0))
    table = np.zeros((len(active), max_terms))  # the terms of every feature, largest first
    order = np.lexsort((-terms, features))
    own = features[order]
    rank = np.arange(len(own)) - np.searchsorted(own, own)
    kept = rank < max_terms
    table[np.searchsorted(active, own[kept]), rank[kept]] = terms[order][kept]
    np.maximum(table, rest[active, None], out=table)
    places = max_terms if limits.max_features is None else min(limits.max_features, max_terms)
    if limits.costs is None:
        top = np.argsort(-table, axis=None, kind="stable")[:max_terms]
        top = top[table.reshape(-1)[top] > 0.0]
        if len(np.unique(top // max_terms)) <= places:  # the largest terms of all keep to the limit
            return float(np.sum(table.reshape(-1)[top]))
    worth = np.where(table > 0.0, np.cumsum(table, axis=1) - costs[active, None], -np.inf)
    return _best_allotment(worth, places)


def _best_allotment(worth: Array, places: int) -> float:
    """The best sum of ``worth[g, r - 1]`` over features g with r columns each, within places and columns.

    Of the features that could give r columns only as many as there are places need be looked at: one outside
    of those can be exchanged for one of them that is not in use.
    """
    n, most = worth.shape
    if places == 0:
        return 0.0
    if n > places:
        best = np.argpartition(-worth, places - 1, axis=0)[:places]
        looked = np.zeros(worth.shape, dtype=bool)
        np.put_along_axis(looked, best, True, axis=0)
        worth = np.where(looked, worth, -np.inf)
    limited = places < most  # otherwise the columns are the only limit
    value = np.zeros((places + 1 if limited else 1, most + 1))  # at most so many places, columns
    source, target = (slice(None, -1), slice(1, None)) if limited else (slice(None), slice(None))
    for own in worth[(worth > 0.0).any(axis=1)]:
        after = value.copy()
        for r in np.flatnonzero(own > 0.0) + 1:
            np.maximum(after[target, r:], value[source, : most + 1 - r] + own[r - 1], out=after[target, r:])
        value = after
    return float(value[-1, -1])


def dual_bound(
    point: RiskPoint,
    c: Array,
    prices: Prices,
    max_terms: int | None = None,
    unseen_edge: float | Array = -np.inf,
    unseen: Prices | None = None,
    groups: NDArray[np.int32] | None = None,
    limits: FeatureLimits | None = None,
    sizes: float | Array | None = None,
) -> tuple[float, float]:
    """The bound at the row weights of ``point``, scaled by theta where needed; returns (bound, theta).

    ``unseen_edge`` bounds the edges of columns not listed in ``c`` (with ``limits``: per feature of the
    table); ``unseen`` (one entry) are their prices. ``groups``: the feature of every column, -1 for none.
    ``sizes``: of the largest entries of the columns, for a bound that is claimed: it leaves room for the
    rounding of their edges.
    """
    theta, unit_room = 1.0, _edge_room(point)
    room = unit_room * (1.0 if sizes is None else sizes)
    claimed = 0.0 if sizes is None else 1.0
    open_ended = prices.charged & (room * _steepest(point.value, prices) > BOX_ROUNDING * point.value)
    limit = (1.0 - THETA_ROOM) * prices.l1 - room
    over = open_ended & (c > limit)
    if over.any():
        theta = float(np.min(limit[over] / c[over])) if (limit[over] > 0.0).all() else 0.0
    largest = float(np.max(unseen_edge, initial=-np.inf))
    if unseen is not None and np.isfinite(largest):
        theta = min(theta, _unseen_theta(max_terms, largest, unseen, unit_room))
    if theta <= 0.0:
        return 0.0, 0.0
    term: float | Array = 0.0
    if unseen is not None and np.isfinite(largest):
        edges = np.array([largest]) if limits is None else np.asarray(unseen_edge)
        worth = np.maximum(0.0, kappa(theta * (edges + claimed * unit_room), unseen) - unseen.l0)
        if max_terms is None:
            worth[worth < 1e-12] = 0.0
        term = float(worth[0]) if limits is None else worth
    subtracted = gain_terms(theta * (c + claimed * room), prices, max_terms, term, groups, limits)
    if not np.isfinite(subtracted):
        return 0.0, 0.0
    dual = point.dual(theta)
    bound = dual - subtracted - ROUNDING * (abs(dual) + subtracted)
    # u = 0 proves that no loss is negative
    return (bound, theta) if bound > 0.0 else (0.0, 0.0)


def _steepest(value: float, prices: Prices) -> Array:
    """The most by which a column's term grows with its edge, while it is no more than ``value``."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(np.sqrt(2.0 * max(value, 1e-300) / prices.l2), prices.max_weight)


def _edge_room(point: RiskPoint) -> float:
    """By how much rounding of sums and of margins may change an edge of a column of entries up to 1."""
    total = point.derivative_sum * point.factor / point.risk.weights.total
    total += point.curvature * (1.0 + float(np.abs(point.F).max(initial=0.0)))
    return max(EDGE_ROUNDING * math.sqrt(point.risk.weights.total_count) * total, 1e-300)


def _unseen_theta(max_terms: int | None, edge: float, unseen: Prices, room: float) -> float:
    """How far u must shrink so that a column of this edge adds nothing (or is finite, with max_terms)."""
    l1, l2, l0, box = (float(x[0]) for x in (unseen.l1, unseen.l2, unseen.l0, unseen.max_weight))
    if max_terms is not None and (l2 > 0 or np.isfinite(box)):
        return 1.0
    knee = float(unseen.knee[0])
    if max_terms is None and l0 > 0 and np.isfinite(knee) and knee > 0:
        l1 += l0 / knee + 0.5 * l2 * knee
    allowed = (1.0 - THETA_ROOM) * l1 - room
    return 1.0 if edge <= allowed else allowed / edge if allowed > 0.0 else 0.0


def guarantee(null: float, objective: float, lower_bound: float, size: float | None = None) -> float:
    """Share of the possible improvement over the empty model that is achieved for certain.

    1 where next to nothing is possible, compared with the ``size`` of the objective (default: of ``null``).
    """
    possible = null - lower_bound
    if possible <= 1e-9 * (abs(null) if size is None else size):
        return 1.0
    return float(min(1.0, max(0.0, (null - objective) / possible)))


def proof_status(gaps: Mapping[str, float], candidates: bool, size: float) -> str:
    """What the gaps of the scopes say of a model: "optimal", "optimal among candidates" or "feasible"."""
    closed = [scope for scope, gap in gaps.items() if gap <= OPTIMAL * size]
    if "dictionary" in closed or ("pool" in closed and not candidates):
        return "optimal"
    return "optimal among candidates" if "pool" in closed else "feasible"


def soft_bound(value: float, mean_margin: float, edge: float, radius: float) -> float:
    """What no weights of sum ``radius`` at most are below: -sum p log(p / s) - radius * (largest edge), from
    the value and the mean margin (by p) at the weights that p belongs to."""
    most = radius * max(0.0, edge)
    return value + mean_margin - most - ROUNDING * (1.0 + abs(value) + abs(mean_margin) + most)

"""The one bound behind every certificate (docs/mathematics.md, "One bound for everything").

For any row weights u in the domain of the conjugate, with edges c_j = sum u_i a_ij and
kappa_j = max over 0 <= w <= M_j of (c_j - nu_j) w - mu_j w^2 / 2,

    D(u) = sum s_i (-conjugate(-v_i)) - sum_j max(0, kappa_j - lambda_j)

is at most the optimum; with at most k charged columns only the k largest of their terms are subtracted. With
limits on features the most valuable choice of columns that they allow is subtracted, less what its features
cost.
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

#: gap up to which a model is called optimal, as a share of the size of the objective
OPTIMAL = 1e-4
#: every bound is lowered by this share of the numbers that went into it, for the rounding of sums
ROUNDING = 1e-13
#: edges of columns without box and l2 must stay below l1; this share of it is left for rounding
THETA_ROOM = 1e-10
#: rounding of an edge, as a share of the sum of all row weights times the root of their number
EDGE_ROUNDING = 4e-16
#: boxes and l2 that turn the rounding of an edge into more than this share of the risk count as none
BOX_ROUNDING = 1e-10


@dataclass(frozen=True)
class Curve:
    """Curvature of the loss that a bound uses.

    ``aside``: how much of it for each column. ``centre``: the weights around which margins are capped.
    """

    centre: Array
    aside: Array


@dataclass(frozen=True)
class Leaf:
    """A part of the search space, and the weights whose row weights bound it.

    It holds the models that use every column of ``forced_in`` and none of ``forced_out``. Columns are counted
    over the pool, those of the intercept included. ``theta``: factor of the row weights.
    """

    weights: Array
    theta: float
    bound: float
    forced_in: tuple[int, ...] = ()
    forced_out: tuple[int, ...] = ()
    curve: Curve | None = None


def kappa(c: Array, prices: Prices) -> Array:
    """The largest decrease of the bound by a column of edge ``c``, before ``l0`` is paid."""
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
    """What is subtracted from the dual value for the columns that a model may use.

    ``unseen`` is the largest term of any column that is not listed. With ``limits``, ``groups`` holds the
    features of the columns and ``unseen`` has an entry for every feature.
    """
    terms = np.maximum(0.0, kappa(c, prices) - prices.l0)
    if max_terms is None and np.any(np.asarray(unseen) > 0.0):
        return np.inf
    if limits is not None and groups is not None:
        limited = prices.charged & (groups >= 0)
        spare = unseen if isinstance(unseen, np.ndarray) else np.zeros(0)
        chosen = best_choice(terms[limited], groups[limited], max_terms, limits, spare)
        return float(np.sum(terms[~limited])) + chosen
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
    """The largest sum of terms that the limits allow, less the costs of the features: exact.

    ``unseen`` has a term for every feature that may be used any number of times (with ``max_terms`` only).
    The best r columns of a feature are its r largest; how many to take of which feature is a dynamic program.
    A feature that has to be used takes one column at least, and is paid for. Of the features of a group one
    counts; a feature of several groups belongs to the first.
    """
    useful = terms > 0.0
    terms, features = terms[useful], features[useful]
    must = np.array(limits.must_include, dtype=np.intp)
    n = max(len(unseen), int(features.max(initial=-1)) + 1, int(must.max(initial=-1)) + 1)
    costs = np.zeros(n) if limits.costs is None else limits.costs[:n]
    most_features = None if limits.max_features is None else max(0, limits.max_features - len(must))
    if max_terms is None:
        worth = np.bincount(features, terms, n) - costs
        others = _one_of_each_group(worth[:, None], np.arange(n), limits)[:, 0]
        further = np.sort(others[others > 0.0])[::-1][:most_features]
        return float(np.sum(worth[must])) + float(np.sum(further))
    if max_terms == 0 or n == 0:
        return 0.0
    rest = np.zeros(n)
    rest[: len(unseen)] = unseen
    present = (np.bincount(features, minlength=n) > 0) | (rest > 0.0)
    present[must] = True
    active = np.flatnonzero(present)
    table = np.zeros((len(active), max_terms))  # the terms of every feature, largest first
    order = np.lexsort((-terms, features))
    ordered = features[order]
    rank = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    kept = rank < max_terms
    table[np.searchsorted(active, ordered[kept]), rank[kept]] = terms[order][kept]
    np.maximum(table, rest[active, None], out=table)
    if limits.costs is None:
        top = np.argsort(-table, axis=None, kind="stable")[:max_terms]
        top = top[table.reshape(-1)[top] > 0.0]
        if limits.allow(active[top // max_terms]):  # the largest terms of all keep to the limits
            return float(np.sum(table.reshape(-1)[top]))
    worth = np.cumsum(table, axis=1) - costs[active, None]
    start = np.zeros(max_terms + 1)
    for of_feature in worth[np.isin(active, must)]:
        before, start = start, np.full(max_terms + 1, -np.inf)
        for r in range(1, max_terms + 1):
            np.maximum(start[r:], before[:-r] + of_feature[r - 1], out=start[r:])
    worth = _one_of_each_group(np.where(table > 0.0, worth, -np.inf), active, limits)
    return _best_allotment(
        worth, max_terms if most_features is None else min(most_features, max_terms), start
    )


def _one_of_each_group(worth: Array, features: NDArray[np.intp], limits: FeatureLimits) -> Array:
    """Rows of ``worth`` for the features that need not be used: of a group the largest in every column.

    Features that share a group with one that has to be used are left out.
    """
    alone = ~np.isin(features, [*limits.must_include, *limits.blocked])
    parts = []
    for group in limits.disjoint_groups:
        inside = np.isin(features, group)
        alone &= ~inside
        parts += [worth[inside].max(axis=0, keepdims=True)] if inside.any() else []
    return np.concatenate([worth[alone], *parts])


def _best_allotment(worth: Array, most_features: int, start: Array) -> float:
    """The best sum of ``worth[g, r - 1]`` over features g with r columns each, within both limits.

    ``start``: what other features are worth with so many columns. For every r only the ``most_features`` best
    features need be looked at: any other one can be exchanged for one of them that is not in use.
    """
    n, most = worth.shape
    if most_features == 0:
        return float(start[-1])
    if n > most_features:
        best = np.argpartition(-worth, most_features - 1, axis=0)[:most_features]
        useful = np.zeros(worth.shape, dtype=bool)
        np.put_along_axis(useful, best, True, axis=0)
        worth = np.where(useful, worth, -np.inf)
    limited = most_features < most  # otherwise the number of columns is the only limit
    value = np.tile(start, (most_features + 1 if limited else 1, 1))  # [features, columns] at most
    source, target = (slice(None, -1), slice(1, None)) if limited else (slice(None), slice(None))
    for of_feature in worth[(worth > 0.0).any(axis=1)]:
        after = value.copy()
        for r in np.flatnonzero(of_feature > 0.0) + 1:
            sums = value[source, : most + 1 - r] + of_feature[r - 1]
            np.maximum(after[target, r:], sums, out=after[target, r:])
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
    """The lower bound at the row weights of a point, scaled down where unseen columns require it.

    Parameters
    ----------
    point : RiskPoint
        Margins and their row weights u.
    c : ndarray
        Edges of the columns of the pool.
    prices : Prices
        Regularisation and boxes of these columns.
    max_terms : int, optional
        Limit on charged columns in use.
    unseen_edge : float or ndarray
        An upper limit of the edges of all columns that are not in the pool; with ``limits`` one for every
        feature of the table.
    unseen : Prices, optional
        Regularisation and box of columns that are not in the pool, one entry.
    groups : ndarray, optional
        Feature of every column, -1 for none.
    limits : FeatureLimits, optional
        Limits on features.
    sizes : float or ndarray, optional
        Largest entry of every column, for a bound that is claimed: it leaves room for the rounding of edges.

    Returns
    -------
    bound, theta : float
        The bound, and the factor of u that it holds for.
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
    bound = dual - subtracted - ROUNDING * (abs(dual) + abs(subtracted))
    # u = 0 proves that no loss is negative
    return (bound, theta) if bound > 0.0 else (0.0, 0.0)


def _steepest(value: float, prices: Prices) -> Array:
    """How fast a column's term can grow with its edge while the term is at most ``value``."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(np.sqrt(2.0 * max(value, 1e-300) / prices.l2), prices.max_weight)


def _edge_room(point: RiskPoint) -> float:
    """How much the rounding of sums and margins may change the edge of a column of entries up to 1."""
    total = point.derivative_sum * point.factor / point.risk.weights.total
    total += point.curvature * (1.0 + float(np.abs(point.F).max(initial=0.0)))
    return max(EDGE_ROUNDING * math.sqrt(point.risk.weights.total_count) * total, 1e-300)


def _unseen_theta(max_terms: int | None, edge: float, unseen: Prices, room: float) -> float:
    """Factor of u at which an unseen column of this edge adds nothing (with max_terms: is finite)."""
    l1, l2, l0, box = (float(x[0]) for x in (unseen.l1, unseen.l2, unseen.l0, unseen.max_weight))
    if max_terms is not None and (l2 > 0 or np.isfinite(box)):
        return 1.0
    knee = float(unseen.knee[0])
    if max_terms is None and l0 > 0 and np.isfinite(knee) and knee > 0:
        l1 += l0 / knee + 0.5 * l2 * knee
    allowed = (1.0 - THETA_ROOM) * l1 - room
    return 1.0 if edge <= allowed else allowed / edge if allowed > 0.0 else 0.0


def guarantee(null: float, objective: float, lower_bound: float, tolerance: float | None = None) -> float:
    """Share of the possible improvement over the empty model that is achieved for certain.

    Parameters
    ----------
    null, objective, lower_bound : float
        Objective of the empty model, of the model, and its lower bound.
    tolerance : float, optional
        Where the possible improvement is not above it, the guarantee is 1 for a model that is as good as the
        empty one or the bound, and 0 for any other; by default 1e-9 of ``null``.

    Returns
    -------
    float
        From 0 to 1.
    """
    possible = null - lower_bound
    tolerance = 1e-9 * abs(null) if tolerance is None else tolerance
    if possible <= tolerance:
        return float(objective <= max(null, lower_bound) + tolerance)
    return float(min(1.0, max(0.0, (null - objective) / possible)))


def proof_status(gaps: Mapping[str, float], candidates: bool, size: float) -> str:
    """Status of a model by the gaps of the scopes: optimal, optimal among candidates, or feasible."""
    closed = [scope for scope, gap in gaps.items() if gap <= OPTIMAL * size]
    if "dictionary" in closed or ("pool" in closed and not candidates):
        return "optimal"
    return "optimal among candidates" if "pool" in closed else "feasible"


def soft_bound(value: float, mean_margin: float, edge: float, radius: float) -> float:
    """What no weights of sum ``radius`` at most are below: -sum p log(p / s) - radius * (largest edge), from
    the value and the mean margin (by p) at the weights that p belongs to."""
    most = radius * max(0.0, edge)
    return value + mean_margin - most - ROUNDING * (1.0 + abs(value) + abs(mean_margin) + most)

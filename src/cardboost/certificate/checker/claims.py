"""Every claim of a certificate, recomputed from the table. Part of the checker.

The equations are those of docs/certificate.md: the objective (L0/Lk), the row weights u_i = s_i v_i with
v_i = theta (-loss'(F_i)), the edges c_j = sum_i u_i a_ij, the worth of a column kappa_j = max over
0 <= w <= M_j of (c_j - l1) w - l2 w^2 / 2, and the bound D(u) of a leaf of the search. For the squared loss
v_i is theta (t_i - F_i), and columns are not multiplied with labels. For the soft margin,
log sum s_i exp(-F_i) over weights of sum R at most, u is p_i proportional to s_i exp(-F_i), and the bound is
-sum p_i log(p_i / s_i) - R max_j c_j.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cardboost.certificate.checker.columns import Indices, Rows, Stumps, bin_stumps, merge_rows
from cardboost.certificate.checker.curvature import Curvature
from cardboost.certificate.checker.data import Floats, Table, read, table_digest
from cardboost.certificate.checker.format import (
    OPTIMAL,
    PRICES,
    SOFT,
    VERSION,
    content_digest,
    structure_faults,
)

TOLERANCE = 1e-9  # of sums over rows, as a share of the size of the objective
SOFT_ROUNDING = 5e-15  # of sums over rows of a soft margin, as a share of the square of its largest margin
LARGEST_MARGIN = 1e5  # of a soft margin: beyond it rounding would decide
EDGE_ROUNDING = 2e-16  # of an edge, as a share of the sum of its sizes and the root of the number of rows
LEAST_SIZE = 1e-290  # of the objective, where the empty model has no loss
WORTHLESS = 1e-15  # what an unseen column may be worth where any number of them may be used, as a share
ARITHMETIC = 1e-12  # of numbers that follow from other numbers of the file, as a share
SCALING = 1e-6  # of a target's mean and scale, in standard deviations
NEARBY = 1e-12  # of the empty model's intercept and 1: where the slope is looked at again
CORNER = 1.0 / 4.0  # of the smooth hinge: its last stretch before the margin 1 is a parabola
BATCH_ENTRIES = 200_000  # rows times leaves that are bounded together
COVER_STEPS = 100  # cubes looked at for every leaf before the cover of the search space counts as unproved


@dataclass(frozen=True)
class Evidence:
    """What claims are checked against: the columns of the pool on distinct rows, and prices per column.

    ``feature``: that of each column. ``stumps``: the dictionary; None for a matrix. ``share``: of every row
    of the table. ``null``: the objective of the empty model. ``size``: of the objective; tolerances are
    shares of it. ``rounding``: by how much sums of a soft margin may be off.
    """

    rows: Rows
    stumps: Stumps | None
    share: Floats
    prices: dict[str, Floats]
    charged: npt.NDArray[np.bool_]
    feature: Indices
    null: float = 0.0
    size: float = 1.0
    rounding: float = 0.0

    @property
    def allowed(self) -> float:
        """By how much a number may differ from the one that is recomputed."""
        return TOLERANCE * self.size + self.rounding


# ------------------------------------------------------------------------------------ the evidence


def gather(certificate: dict[str, Any], X: Any, y: Any = None, sample_weight: Any = None) -> Evidence:
    """Read the table for a certificate whose structure is sound (see ``check``)."""
    return _gather(certificate, read_rows(certificate, X, y, sample_weight))


def read_rows(certificate: dict[str, Any], X: Any, y: Any, sample_weight: Any) -> Table:
    """The table with the columns that the certificate takes for categorical, and y as it is needed."""
    kind, real = certificate["kind"], certificate["problem"]["loss"] == "squared"
    needed = kind == "stumps" or real
    if needed and y is None:
        raise ValueError(f"y is needed to check a certificate for {kind if not real else 'a regression'}")
    categorical = [j for j, labels in enumerate(certificate["categories"] or []) if labels is not None]
    return read(X, y if needed else None, sample_weight, categorical, real)


def _gather(certificate: dict[str, Any], table: Table) -> Evidence:
    problem, columns = certificate["problem"], certificate["columns"]
    negative, positive = np.array(problem["class_weight"]) / max(problem["class_weight"])
    scaled = table.weight / table.weight.max() * np.where(table.positive, positive, negative)
    share = scaled / scaled.sum()
    keep = np.flatnonzero(share > 0)
    share = share[keep]
    target, scaling = np.zeros(len(keep)), problem["target"]
    if table.target is not None:
        target = (table.target[keep] - scaling["mean"]) / scaling["scale"]
    stumps = None
    if certificate["kind"] == "matrix":
        a: npt.NDArray[Any] = np.empty((len(keep), len(columns["feature"])))
        for j, feature in enumerate(columns["feature"]):
            a[:, j] = table.column(feature)[keep]
        if not np.isfinite(a).all():
            raise ValueError("the matrix holds values that are not finite")
        free = np.zeros(len(keep))
        signs = bool((np.abs(a) == 1.0).all())
        a = a.astype(np.int8) if signs else a
    else:
        stumps, signs = bin_stumps(certificate, table, keep), True
        a = stumps.pool_columns()
        free = stumps.y if problem["intercept_box"] is not None else np.zeros(len(keep))
    if signs and table.target is None:
        rows = merge_rows(a, free, share)
    else:
        rows = Rows(a, free, share, target)
    prices = {key: _as_floats(columns[key]) for key in PRICES}
    charged, feature = np.array(columns["charged"], dtype=bool), np.array(columns["feature"], dtype=np.intp)
    null = _loss_of(problem, rows, certificate["null"]["intercept"])
    reach = _reach(certificate, rows)
    size = max(abs(null), min(1.0, reach), LEAST_SIZE)
    return Evidence(rows, stumps, share, prices, charged, feature, null, size, SOFT_ROUNDING * reach**2)


def _reach(certificate: dict[str, Any], rows: Rows) -> float:
    """The largest margin that a soft margin can have: R times the largest entry of a column that every scope
    has; 0 for other losses.

    The empty model of a soft margin can cost 0. Its size is then 1, since the objective is a logarithm, or
    the largest margin, if that is less.
    """
    problem = certificate["problem"]
    if problem["loss"] != SOFT:
        return 0.0
    n = min(bound["columns"] for bound in certificate["bounds"])
    entries = (np.max(np.abs(part), initial=0.0) for part in (rows.a[:, :n], rows.free))
    return float(problem["radius"] * max(entries))


def _as_floats(values: list[Any]) -> Floats:
    return np.array([math.inf if v is None else v for v in values], dtype=np.float64)


# ------------------------------------------------------------------------------------ losses


def _loss_of(problem: dict[str, Any], rows: Rows, intercept: float, weights: Floats | None = None) -> float:
    """sum s_i loss(F_i) of a model; ``weights`` one per column of the pool."""
    full = np.zeros(rows.a.shape[1]) if weights is None else weights
    with np.errstate(over="ignore", invalid="ignore"):
        margins = rows.margins(np.array([intercept]), full[:, None])[:, 0]
        return _mean_loss(problem["loss"], margins, rows)


def _mean_loss(loss: str, margins: Floats, rows: Rows) -> float:
    if loss == SOFT:
        return float(_log_mean(margins[:, None], rows.share)[0])
    if loss == "squared":
        values = 0.5 * (margins - rows.target) ** 2
    elif loss == "squared_hinge":
        values = np.maximum(0.0, 1.0 - margins) ** 2
    elif loss == "smooth_hinge":
        short, steep = _rounded(margins)
        values = steep * (short - 0.5 * CORNER * steep)
    else:
        values = np.logaddexp(0.0, -margins) if loss == "logistic" else np.exp(-margins)
    return float(rows.share @ values)


def _rounded(margins: Floats) -> tuple[Floats, Floats]:
    """By how much margins fall short of 1, and how steep the hinge with the rounded corner is there."""
    short = np.maximum(0.0, 1.0 - margins)
    return short, np.minimum(1.0, short / CORNER)


def _log_mean(margins: Floats, share: Floats) -> Floats:
    """log sum s_i exp(-F_i) of every column."""
    least = np.min(margins, axis=0)
    return np.log(share @ np.exp(least - margins)) - least


def _row_weights(loss: str, margins: Floats, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
    """u_i = s_i v_i with v_i = theta (-loss'(F_i)), and the sum of s_i times the dual value of v_i.

    One column of margins and one theta for each leaf.
    """
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
        v = theta * _rounded(margins)[1]
        return share * v, rows.share @ (v - 0.5 * CORNER * v * v)
    small = np.exp(-np.abs(margins))
    v = theta * np.where(margins > 0, small, 1.0) / (1.0 + small)
    rest = (1.0 - theta) + theta * np.where(margins > 0, 1.0, small) / (1.0 + small)  # 1 - v, no cancellation
    log_rest = np.where(v < 0.5, np.log1p(-np.minimum(v, 0.5)), np.log(np.where(rest > 0, rest, 1.0)))
    entropy = -v * np.log(np.where(v > 0, v, 1.0)) - rest * log_rest
    return share * v, rows.share @ entropy


# ------------------------------------------------------------------------------------ bounds of leaves


def _worth(edge: Floats, l1: Any, l2: Any, l0: Any, box: Any) -> Floats:
    """kappa_j - l0_j; infinite where neither a box nor l2 holds a profitable weight back."""
    gain = np.maximum(edge - l1, 0.0)
    l2 = np.broadcast_to(l2, gain.shape)
    w = np.minimum(np.divide(gain, l2, out=np.full(gain.shape, math.inf), where=l2 > 0), box)
    held = np.where(np.isinf(w), 0.0, w)
    kappa = np.where(np.isinf(w), math.inf, held * (gain - 0.5 * l2 * held))
    return np.where(gain > 0, kappa, 0.0) - l0


def leaf_bounds(
    certificate: dict[str, Any], bound: dict[str, Any], leaves: Sequence[dict[str, Any]], data: Evidence
) -> Floats:
    """D(u) of every leaf, with the curvature that it sets aside; minus infinity where it bounds nothing."""
    step = max(1, BATCH_ENTRIES // max(1, len(data.rows.share)))
    parts = [
        _batch_bounds(certificate, bound, leaves[first : first + step], data)
        for first in range(0, len(leaves), step)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _batch_bounds(
    certificate: dict[str, Any], bound: dict[str, Any], leaves: Sequence[dict[str, Any]], data: Evidence
) -> Floats:
    problem, rows, n = certificate["problem"], data.rows, bound["columns"]
    whole = bound["scope"] == "dictionary"
    weights = np.stack([_dense(leaf["weights"], n, rows.a.shape[1]) for leaf in leaves], axis=1)
    intercept, theta = (
        np.array([leaf[key] for leaf in leaves], dtype=np.float64) for key in ("intercept", "theta")
    )
    with np.errstate(over="ignore", invalid="ignore"):
        u, value = _row_weights(problem["loss"], rows.margins(intercept, weights), theta, rows)
        edges, push = rows.edges(u)[:, :n], np.abs(rows.free @ u)
        off = EDGE_ROUNDING * math.sqrt(len(rows.share)) * np.sum(np.abs(u), axis=0)
        if problem["loss"] != SOFT:  # a larger edge proves less; a soft margin has a tolerance for it
            edges += off[:, None] * rows.largest_entries[:n]
            push += off
        unseen = np.full((len(leaves), 0), 0.0)
        if whole and data.stumps is not None and data.stumps.any_unseen:
            every = u if rows.group is None else (u / rows.share[:, None])[rows.group] * data.share[:, None]
            unseen = np.stack([data.stumps.unseen_edges(one) for one in every.T])
            unseen += 0.0 if problem["loss"] == SOFT else off[:, None]
        sound = np.isfinite(u).all(axis=0) & np.isfinite(edges).all(axis=1) & ~np.isnan(unseen).any(axis=1)
        if problem["loss"] == SOFT:
            largest = np.maximum(np.max(edges, axis=1, initial=0.0), np.max(unseen, axis=1, initial=0.0))
            value = value - problem["radius"] * np.maximum(largest, push)
        else:
            value = value - (problem["intercept_box"] or 0.0) * push
            value = value - _taken(certificate, leaves, weights[:n].T, (edges, unseen), n, data)
    return np.where(sound & np.isfinite(value), value, -math.inf)


def _taken(
    certificate: dict[str, Any],
    leaves: Sequence[dict[str, Any]],
    weights: Floats,
    edges: tuple[Floats, Floats],
    n: int,
    data: Evidence,
) -> Floats:
    """What is subtracted from the dual value of every leaf for the columns that a model may use."""
    problem, (seen, unseen) = certificate["problem"], edges
    prices, charged = {key: values[:n] for key, values in data.prices.items()}, data.charged[:n]
    taken, l2 = np.zeros(len(leaves)), prices["l2"]
    if any(leaf.get("curve") is not None for leaf in leaves):
        # d (v - w)^2 / 2 of a column: a higher edge, more l2 and a constant
        aside = np.stack([_aside(leaf, n) for leaf in leaves])
        seen, l2 = seen + aside * weights, l2 + aside
        taken -= 0.5 * np.sum(aside * weights**2, axis=1)
    worth = _worth(seen, prices["l1"], l2, prices["l0"], prices["max_weight"])
    forced_in, free = np.zeros(worth.shape, dtype=bool), np.ones(worth.shape, dtype=bool)
    for i, leaf in enumerate(leaves):
        forced_in[i, leaf["forced_in"]] = True
        free[i, leaf["forced_in"] + leaf["forced_out"]] = False
    taken += np.sum(np.where(forced_in, worth, 0.0), axis=1)
    bonus = np.maximum(worth, 0.0)
    taken += np.sum(np.where(free & ~charged, bonus, 0.0), axis=1)
    bonus = np.where(free & charged, bonus, 0.0)
    spare = np.zeros(unseen.shape)
    if unseen.shape[1]:
        l1, l2_unseen, l0, box = (
            _as_floats([certificate["unseen"][key]])[0] for key in ("l1", "l2", "l0", "max_weight")
        )
        spare = np.maximum(_worth(unseen, l1, l2_unseen, l0, box), 0.0)
    most = np.max(spare, axis=1, initial=0.0)
    terms = problem["max_terms"]
    if terms is None:
        most = np.where(most <= WORTHLESS * data.size, 0.0, math.inf)  # any number of them may be used
    slots = None if terms is None else np.maximum(0, terms - np.count_nonzero(forced_in & charged, axis=1))
    if problem["max_features"] is not None or problem["feature_costs"] is not None:
        for i in range(len(leaves)):
            paid = np.unique(data.feature[:n][forced_in[i] & charged])
            room = None if slots is None else int(slots[i])
            taken[i] -= _feature_cost(problem, paid)
            taken[i] += _best_choice(problem, bonus[i], data.feature[:n], room, spare[i], paid)
        return taken if terms is not None else taken + most
    if slots is None:
        return taken + np.sum(bonus, axis=1) + most
    best = np.maximum(-np.sort(-bonus, axis=1), most[:, None])
    taken += np.sum(np.where(np.arange(n) < slots[:, None], best, 0.0), axis=1)
    return taken + np.maximum(0, slots - n) * most


def _dense(weights: Any, covered: int, n: int) -> Floats:
    """Weights of a leaf, one per column of the pool; a string holds those of the first ``covered``."""
    dense = np.zeros(n)
    if isinstance(weights, str):
        dense[:covered] = np.frombuffer(base64.b64decode(weights), dtype="<f4")
    else:
        for j, w in weights:
            dense[j] = w
    return dense


def _aside(leaf: dict[str, Any], n: int) -> Floats:
    curve = leaf.get("curve")
    return np.zeros(n) if curve is None else _dense(curve["aside"], n, n)


def _feature_cost(problem: dict[str, Any], features: Indices) -> float:
    costs = problem["feature_costs"]
    return 0.0 if costs is None else math.fsum(costs[f] for f in features)


def _best_choice(
    problem: dict[str, Any], bonus: Floats, feature: Indices, slots: int | None, unseen: Floats, paid: Indices
) -> float:
    """The most that further columns can be worth, ``slots`` of them at most, costs of features deducted.

    Features in ``paid`` are in use already. Of each feature the largest r terms are taken, with its largest
    unseen term as often as there are slots; ``best[a, b]`` is the most with a features and b columns.
    """
    places = None if problem["max_features"] is None else max(0, problem["max_features"] - len(paid))
    costs, of = problem["feature_costs"], {}
    for f in range(max(len(unseen), int(feature.max(initial=-1)) + 1)):
        terms = np.sort(bonus[feature == f])[::-1]
        if slots is not None:
            spare = unseen[f] if f < len(unseen) else 0.0
            terms = np.sort(np.concatenate([terms, np.full(slots, spare)]))[::-1][:slots]
        of[f] = terms[terms > 0]
    known = set(paid.tolist())
    base = np.sort(np.concatenate([np.empty(0), *(of[f] for f in of if f in known)]))[::-1]
    rest = {
        f: np.cumsum(terms) - (0.0 if costs is None else costs[f])
        for f, terms in of.items()
        if f not in known
    }
    if slots is None:
        last = sorted((float(total[-1]) for total in rest.values() if len(total)), reverse=True)
        return float(base.sum()) + math.fsum(
            v for v in last[: len(last) if places is None else places] if v > 0
        )
    places = slots if places is None else min(places, slots)
    best = np.zeros((places + 1, slots + 1))
    best[:, 1:] = np.cumsum(np.concatenate([base, np.zeros(slots)])[:slots])
    for total in rest.values():
        before = best.copy()
        for r in range(1, len(total) + 1):
            best[1:, r:] = np.maximum(best[1:, r:], before[:-1, : slots + 1 - r] + total[r - 1])
    return float(best[-1, -1])


# ------------------------------------------------------------------------------------ curvature


def _at(leaf: dict[str, Any], point: dict[str, Any]) -> dict[str, Any]:
    """A leaf that forces the same columns, with the row weights of another point."""
    return {**leaf, "intercept": point["intercept"], "weights": point["centre"], "theta": 1.0, "curve": None}


def _point(intercept: float, weights: Any, columns: int, boxed: bool) -> Floats:
    """Weights as an array; the intercept, where there is one, comes first."""
    dense = _dense(weights, columns, columns)
    return np.append(intercept, dense) if boxed else dense


def _curvature(certificate: dict[str, Any], bound: dict[str, Any], data: Evidence) -> Curvature | None:
    """Caps for the whole scope, or None where it states no centre for them."""
    centre, n, problem = bound.get("caps"), bound["columns"], certificate["problem"]
    if centre is None or problem["loss"] not in ("exponential", "logistic"):
        return None
    if bound["scope"] == "dictionary" and data.stumps is not None and data.stumps.any_unseen:
        return None  # other columns could go in other directions
    box, most = data.prices["max_weight"][:n], problem["intercept_box"]
    low, a = np.zeros(n), data.rows.a[:, :n].astype(np.float64)
    if most is not None:
        low, box, a = np.append(-most, low), np.append(most, box), np.column_stack([data.rows.free, a])
    if not np.isfinite(box).all():
        return None
    everything = _at({"forced_in": [], "forced_out": []}, centre)
    value = float(leaf_bounds(certificate, bound, [everything], data)[0])
    at = _point(centre["intercept"], centre["centre"], n, most is not None)
    limit = _reference(certificate)["objective"]
    return Curvature.make(problem["loss"], (a, data.rows.share), (low, box), limit, at, value)


def _reference(certificate: dict[str, Any]) -> dict[str, Any]:
    """The solution that the search compared with: that with continuous weights, where points follow from it.

    A search proves what no model that is better than this one can reach.
    """
    points = certificate.get("points")
    return certificate["solution"] if points is None else points["continuous"]


def _curve_faults(certificate: dict[str, Any], bound: dict[str, Any], data: Evidence) -> dict[int, str]:
    """The leaves that set more curvature aside than is left for every better model of theirs."""
    curved = [i for i, leaf in enumerate(bound["leaves"]) if leaf.get("curve") is not None]
    if not curved:
        return {}
    known = _curvature(certificate, bound, data)
    leaves = [bound["leaves"][i] for i in curved]
    values = leaf_bounds(certificate, bound, [_at(leaf, leaf["curve"]) for leaf in leaves], data)
    fault = "more is set aside than the curvature that is left"
    with np.errstate(over="ignore", invalid="ignore"):
        return {
            i: fault
            for i, leaf, value in zip(curved, leaves, values, strict=True)
            if known is None or not _holds(certificate, bound, leaf, float(value), known)
        }


def _holds(
    certificate: dict[str, Any], bound: dict[str, Any], leaf: dict[str, Any], value: float, known: Curvature
) -> bool:
    """Whether so much curvature is left for every model of the leaf that is better than the solution.

    ``value``: D(u) at the centre of the leaf's curve.
    """
    if leaf["theta"] != 1.0:
        return False
    if value >= known.objective:
        return True  # there is no such model
    curve, n = leaf["curve"], bound["columns"]
    boxed = certificate["problem"]["intercept_box"] is not None
    centre = _point(curve["intercept"], curve["centre"], n, boxed)
    weights = _point(leaf["intercept"], leaf["weights"], n, boxed)
    aside = _point(0.0, curve["aside"], n, boxed)
    inside = np.ones(len(centre), dtype=bool)
    inside[np.array(leaf["forced_out"], dtype=np.intp) + (len(centre) - n)] = False
    inside |= (centre != 0) | (weights != 0)
    return known.narrowed(centre, value, inside).allows(weights, aside, inside)


# ------------------------------------------------------------------------------------ claims


def _differ(path: str, claimed: float, actual: float, tolerance: float) -> Iterator[str]:
    if not (math.isfinite(actual) and abs(claimed - actual) <= tolerance):
        yield f"{path}: claimed {claimed!r}, recomputed {actual!r}"


def _solution_faults(
    certificate: dict[str, Any], solution: dict[str, Any], path: str, evidence: Evidence
) -> Iterator[str]:
    """A solution obeys the limits of the problem and costs what it says."""
    problem = certificate["problem"]
    index = [j for j, _ in solution["weights"]]
    weights = np.array([w for _, w in solution["weights"]], dtype=np.float64)
    prices = {key: values[index] for key, values in evidence.prices.items()}
    for i in np.flatnonzero(~((weights > 0) & (weights <= prices["max_weight"]))):
        yield f"{path}.weights[{i}][1]: {weights[i]} is outside (0, {prices['max_weight'][i]}]"
    terms = int(np.count_nonzero(evidence.charged[index]))
    if problem["max_terms"] is not None and terms > problem["max_terms"]:
        yield f"{path}.weights: {terms} charged columns, but problem.max_terms is {problem['max_terms']}"
    used = np.unique(evidence.feature[index][evidence.charged[index]])
    if problem["max_features"] is not None and len(used) > problem["max_features"]:
        yield f"{path}.weights: {len(used)} features, but problem.max_features is {problem['max_features']}"
    if abs(solution["intercept"]) > (problem["intercept_box"] or 0.0):
        yield f"{path}.intercept: {solution['intercept']!r} is outside the box {problem['intercept_box']}"
    with np.errstate(over="ignore", invalid="ignore"):
        spent = abs(solution["intercept"]) + float(np.sum(weights))
        if problem["loss"] == SOFT and not spent <= problem["radius"] * (1.0 + 1e-12):
            yield f"{path}.weights: they add up to {spent!r}, but problem.radius is {problem['radius']!r}"
        full = np.zeros(len(evidence.charged))
        full[index] = weights
        value = _loss_of(problem, evidence.rows, solution["intercept"], full) + _feature_cost(problem, used)
        value += float(np.sum(prices["l1"] * weights + 0.5 * prices["l2"] * weights**2 + prices["l0"]))
    yield from _differ(f"{path}.objective", solution["objective"], value, evidence.allowed)


def _points_faults(certificate: dict[str, Any], evidence: Evidence) -> Iterator[str]:
    """All weights are whole multiples of the unit, and the continuous solution is what it says."""
    points = certificate.get("points")
    if points is None:
        return
    unit, most = points["unit"], points["most"]
    for i, (_, weight) in enumerate(certificate["solution"]["weights"]):
        whole = round(weight / unit) if weight / unit < 2**53 else 0
        if not 1 <= whole <= most or unit * whole != weight:
            yield f"solution.weights[{i}][1]: {weight!r} is not 1 to {most} times the unit {unit!r}"
    yield from _solution_faults(certificate, points["continuous"], "points.continuous", evidence)


def _null_faults(certificate: dict[str, Any], evidence: Evidence) -> Iterator[str]:
    """The intercept alone: its objective, and that no other intercept in the box is better."""
    problem, rows = certificate["problem"], evidence.rows
    b, box = certificate["null"]["intercept"], problem["intercept_box"]
    if abs(b) > (box or 0.0):
        yield f"null.intercept: {b!r} is outside the box {box}"
    elif box is not None:
        push = _push(problem, rows, b)
        # the loss is convex: another intercept gains at most its slope times the way there, and the best one
        # is no farther away than a point where the slope has the other sign
        way = box + abs(b)
        near = b + math.copysign(NEARBY * (1.0 + abs(b)), push)
        if _push(problem, rows, near) * push <= 0.0:
            way = min(way, abs(near - b))
        if not abs(push) * way <= evidence.allowed and not (abs(b) == box and push * b >= 0):
            yield f"null.intercept: {b!r} is not the best in the box, the loss has slope {-push!r}"
    yield from _differ("null.objective", certificate["null"]["objective"], evidence.null, evidence.allowed)


def _push(problem: dict[str, Any], rows: Rows, b: float) -> float:
    """Minus the slope of the loss of the intercept alone."""
    with np.errstate(over="ignore", invalid="ignore"):
        margins = rows.margins(np.array([b]), np.zeros((rows.a.shape[1], 1)))
        return float(rows.free @ _row_weights(problem["loss"], margins, np.ones(1), rows)[0][:, 0])


def _target_faults(certificate: dict[str, Any], table: Table) -> Iterator[str]:
    """Mean and scale of a regression are the target's weighted mean and standard deviation."""
    if table.target is None:
        return
    scaling, keep = certificate["problem"]["target"], table.weight > 0
    share = table.weight[keep] / table.weight.max()
    share, target = share / share.sum(), table.target[keep]
    heaviest = float(target[np.argmax(share)])  # close to the mean, so that little is added
    above = target - heaviest  # of numbers that are close to each other the difference is exact
    offset = float(share @ above)
    mean, most = heaviest + offset, float(np.abs(above - offset).max())
    deviation = 1.0
    if above.any():
        deviation = most * math.sqrt(float(share @ ((above - offset) / most) ** 2))
    rounding = 1e-15 * abs(mean)
    yield from _differ("problem.target.mean", scaling["mean"], mean, SCALING * deviation + rounding)
    yield from _differ("problem.target.scale", scaling["scale"], deviation, SCALING * deviation + rounding)


def _are_candidates(certificate: dict[str, Any]) -> bool:
    """Whether the columns are some of many that there could be; before version 6 the status says so."""
    old = certificate["kind"] == "stumps" or certificate["status"] != "optimal"
    return bool(certificate.get("candidates", old))


def _matrix_faults(certificate: dict[str, Any], table: Table) -> Iterator[str]:
    """Of a matrix without other candidates every column is in the scope, or equal to one that is."""
    if _are_candidates(certificate):
        return
    keep, n = table.weight > 0, min(bound["columns"] for bound in certificate["bounds"])
    listed = set(certificate["columns"]["feature"][:n])
    known = {(table.column(j)[keep] + 0.0).tobytes() for j in listed}
    for j in range(table.features):
        if j not in listed and (table.column(j)[keep] + 0.0).tobytes() not in known:
            yield f"columns.feature: column {j} of the matrix is in no scope, but no candidates are meant"
            return


def _crowded(problem: dict[str, Any], columns: list[int], evidence: Evidence) -> str | None:
    """Why these columns may not be in use together, or None when they may."""
    inside = np.array(columns, dtype=np.intp)
    inside = inside[evidence.charged[inside]]
    if problem["max_terms"] is not None and len(inside) > problem["max_terms"]:
        return f"{len(inside)} charged columns, but max_terms is {problem['max_terms']}"
    if problem["max_features"] is not None:
        features = len(np.unique(evidence.feature[inside]))
        if features > problem["max_features"]:
            return f"{features} features, but max_features is {problem['max_features']}"
    return None


def _hole(leaves: list[dict[str, Any]], problem: dict[str, Any], evidence: Evidence) -> str | None:
    """Why the leaves do not cover every choice of columns, or None when they do.

    A leaf is a cube of {in, out}^n. Cubes are split on the column that most leaves in play mention, until one
    leaf holds the whole cube; a cube with more columns or features in than are allowed is empty.
    """
    used = sorted({j for leaf in leaves for j in (*leaf["forced_in"], *leaf["forced_out"])})
    place = {j: i for i, j in enumerate(used)}
    literal = np.zeros((len(leaves), len(used)), dtype=np.int8)
    for row, leaf in enumerate(leaves):
        literal[row, [place[j] for j in leaf["forced_in"]]] = 1
        literal[row, [place[j] for j in leaf["forced_out"]]] = -1
    stack: list[tuple[Indices, list[int], list[int]]] = [(np.arange(len(leaves)), [], [])]
    for _ in range(COVER_STEPS * (10 + len(leaves))):
        if not stack:
            return None
        live, ins, outs = stack.pop()
        if ins and _crowded(problem, [used[i] for i in ins], evidence):
            continue
        if not len(live):
            return f"nothing covers in={[used[i] for i in ins]}, out={[used[i] for i in outs]}"
        mentioned = literal[live] != 0
        mentioned[:, ins + outs] = False
        if not mentioned.any(axis=1).all():
            continue
        split = int(np.argmax(mentioned.sum(axis=0)))
        stack.append((live[literal[live, split] >= 0], [*ins, split], outs))
        stack.append((live[literal[live, split] <= 0], ins, [*outs, split]))
    return f"the cover is not proved within {COVER_STEPS} steps for every leaf"


def _bound_faults(certificate: dict[str, Any], number: int, evidence: Evidence) -> Iterator[str]:
    """One scope: every leaf's bound, the cover, and the numbers derived from the smallest bound."""
    bound, path = certificate["bounds"][number], f"bounds[{number}]"
    problem, objective, leaves = certificate["problem"], certificate["solution"]["objective"], bound["leaves"]
    curved = _curve_faults(certificate, bound, evidence)
    values = leaf_bounds(certificate, bound, leaves, evidence)
    for i, (leaf, value) in enumerate(zip(leaves, values.tolist(), strict=True)):
        if crowded := _crowded(problem, leaf["forced_in"], evidence):
            yield f"{path}.leaves[{i}].forced_in: {crowded}"
        elif i in curved:
            yield f"{path}.leaves[{i}].curve: {curved[i]}"
        elif not leaf["bound"] <= value + evidence.allowed:
            yield f"{path}.leaves[{i}].bound: claimed {leaf['bound']!r}, but its weights prove {value!r}"
    hole = _hole(leaves, problem, evidence)
    if hole is not None:
        yield f"{path}.leaves: {hole}"
    null, lower = certificate["null"]["objective"], bound["lower_bound"]
    smallest = min(objective, _reference(certificate)["objective"], *(leaf["bound"] for leaf in leaves))
    yield from _differ(f"{path}.lower_bound", lower, smallest, ARITHMETIC * abs(smallest))
    gap, possible = objective - lower, null - lower
    nothing = possible <= evidence.allowed  # no model could improve on the empty one
    guarantee = 1.0 if nothing else min(1.0, max(0.0, (null - objective) / possible))
    relative = gap / max(abs(objective), 1e-300)
    rounding = ARITHMETIC * (abs(objective) + abs(lower))
    for key, value, size in (("gap", gap, 1.0), ("relative_gap", relative, max(abs(objective), 1e-300))):
        yield from _differ(f"{path}.{key}", bound[key], value, rounding / size)
    yield from _differ(f"{path}.guarantee", bound["guarantee"], guarantee, 1e-9)


def _status_faults(certificate: dict[str, Any], evidence: Evidence) -> Iterator[str]:
    gaps = {bound["scope"]: bound["gap"] for bound in certificate["bounds"]}
    closed = {scope: gap <= OPTIMAL * evidence.size for scope, gap in gaps.items()}
    if closed.get("dictionary") or (closed.get("pool") and not _are_candidates(certificate)):
        status = "optimal"
    else:
        status = "optimal among candidates" if closed.get("pool") else "feasible"
    if certificate["version"] < VERSION and certificate["status"] == "feasible":
        return  # it claims less, or knew another tolerance
    if certificate["status"] != status:
        yield f"status: claimed {certificate['status']}, but the gaps say {status}"


def check(certificate: Any, X: Any, y: Any = None, sample_weight: Any = None) -> list[str]:
    """Every fault found, each a sentence that starts with a JSON path; an empty list: all claims hold.

    ``X`` is an array or a frame with NaN or None for missing values; ``y`` holds booleans, 0/1 or -1/+1, or
    the target for the squared loss (otherwise it is not used for a matrix). A ValueError is raised only for
    data that no certificate could be checked against.
    """
    faults = structure_faults(certificate)
    if not faults:
        faults = list(_claim_faults(certificate, X, y, sample_weight))
    version = certificate.get("version") if isinstance(certificate, dict) else None
    if faults and version in range(1, VERSION):
        faults.append(f"version: {version} was checked by other rules; prove it again")
    return faults


def _claim_faults(certificate: dict[str, Any], X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
    if (digest := content_digest(certificate)) != certificate["digest"]:
        yield f"digest: claimed {certificate['digest']}, recomputed {digest}"
    table, data = read_rows(certificate, X, y, sample_weight), certificate["data"]
    if table.features != data["features"]:
        yield f"data.features: claimed {data['features']}, found {table.features}"
        return
    if (rows := int(np.count_nonzero(table.weight))) != data["rows"]:
        yield f"data.rows: claimed {data['rows']}, found {rows} rows with a weight"
    if (digest := table_digest(table)) != data["digest"]:
        yield f"data.digest: claimed {data['digest']}, recomputed {digest}"
    yield from _target_faults(certificate, table)
    yield from _matrix_faults(certificate, table)
    evidence = _gather(certificate, table)
    if (reach := _reach(certificate, evidence.rows)) > LARGEST_MARGIN:
        yield f"problem.radius: margins of {reach:g} are too large to be checked in double precision"
    yield from _solution_faults(certificate, certificate["solution"], "solution", evidence)
    yield from _points_faults(certificate, evidence)
    yield from _null_faults(certificate, evidence)
    for number in range(len(certificate["bounds"])):
        yield from _bound_faults(certificate, number, evidence)
    yield from _status_faults(certificate, evidence)


def verify(certificate: Any, X: Any, y: Any = None, sample_weight: Any = None) -> bool:
    """Whether every claim of the certificate holds for this table."""
    return not check(certificate, X, y, sample_weight)

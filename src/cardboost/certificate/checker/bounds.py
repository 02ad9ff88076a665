"""The evidence for a certificate and the bounds of its leaves. Part of the checker.

The equations are those of docs/certificate.md. From the row weights u of a leaf follow the edges
c_j = sum_i u_i a_ij, the worth of a column, kappa_j - l0 with kappa_j = max over 0 <= w <= M_j of
(c_j - l1) w - l2 w^2 / 2, and the bound D(u). For the soft margin over weights of sum R at most the bound is
-sum p_i log(p_i / s_i) - R max_j c_j.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cardboost.certificate.checker.columns import Indices, Rows, Stumps, bin_stumps, merge_rows
from cardboost.certificate.checker.curvature import Curvature
from cardboost.certificate.checker.data import Floats, Table, read
from cardboost.certificate.checker.format import PRICES, SOFT, leaf_weights, limits_features
from cardboost.certificate.checker.losses import mean_loss, row_weights

Leaves = Sequence[dict[str, Any]]

TOLERANCE = 1e-9  # of sums over rows, as a share of the size of the objective
LARGEST_COST = 1e4  # of features that a model must use, as a share of that size: beside more the loss is lost
SOFT_ROUNDING = 5e-15  # of sums over rows of a soft margin, as a share of the square of its largest margin
EDGE_ROUNDING = 2e-16  # of an edge, as a share of the sum of its sizes and the root of the number of rows
LEAST_SIZE = 1e-290  # of the objective, where the empty model has no loss
WORTHLESS = 1e-15  # what an unseen column may be worth where any number of them may be used, as a share
BATCH_ENTRIES = 200_000  # rows times leaves that are bounded together


@dataclass(frozen=True)
class Evidence:
    """What claims are checked against.

    ``rows``: the columns of the pool on distinct rows. ``stumps``: the dictionary; None for a matrix.
    ``share``: of every row of the table. ``prices``: l1, l2, l0 and max_weight of every column, ``unseen``:
    those of columns outside of the pool. ``feature``: that of each column. ``reference``: the objective that
    the search compared with. ``null``: the objective of the empty model. ``reach``: the largest margin that a
    soft margin can have, 0 for other losses. ``size``: of the objective; tolerances are shares of it.
    """

    problem: dict[str, Any]
    rows: Rows
    stumps: Stumps | None
    share: Floats
    prices: dict[str, Floats]
    unseen: dict[str, Floats]
    charged: npt.NDArray[np.bool_]
    feature: Indices
    reference: float
    null: float
    reach: float

    @property
    def size(self) -> float:
        # an empty model of soft margin 0 has the size 1, since the objective is a logarithm, or its reach
        return max(abs(self.null), min(1.0, self.reach), LEAST_SIZE)

    @property
    def tolerance(self) -> float:
        """By how much a number may differ from the one that is recomputed."""
        return TOLERANCE * self.size + SOFT_ROUNDING * self.reach**2

    def feature_cost(self, features: Indices) -> float:
        """What these features cost together."""
        costs = self.problem["feature_costs"]
        return 0.0 if costs is None else math.fsum(costs[f] for f in features)


def gather(certificate: dict[str, Any], X: Any, y: Any = None, sample_weight: Any = None) -> Evidence:
    """Read the table for a certificate whose structure is sound (see ``check``)."""
    return evidence_of(certificate, read_rows(certificate, X, y, sample_weight))


def read_rows(certificate: dict[str, Any], X: Any, y: Any, sample_weight: Any) -> Table:
    """The table with the columns that the certificate takes for categorical, and y as it is needed."""
    kind, real = certificate["kind"], certificate["problem"]["loss"] == "squared"
    needed = kind == "stumps" or real
    if needed and y is None:
        raise ValueError(f"y is needed to check a certificate for {kind if not real else 'a regression'}")
    categorical = [j for j, labels in enumerate(certificate["categories"] or []) if labels is not None]
    return read(X, y if needed else None, sample_weight, categorical, real)


def evidence_of(certificate: dict[str, Any], table: Table) -> Evidence:
    """The columns of the certificate on the rows of the table."""
    problem, columns = certificate["problem"], certificate["columns"]
    negative, positive = np.array(problem["class_weight"]) / max(problem["class_weight"])
    scaled = table.weight / table.weight.max() * np.where(table.positive, positive, negative)
    share = scaled / scaled.sum()
    keep = np.flatnonzero(share > 0)
    share, free, target = share[keep], np.zeros(len(keep)), np.zeros(len(keep))
    if table.target is not None:
        target = (table.target[keep] - problem["target"]["mean"]) / problem["target"]["scale"]
    stumps, signs = None, True
    if certificate["kind"] == "matrix":
        a: npt.NDArray[Any] = np.empty((len(keep), len(columns["feature"])))
        for j, feature in enumerate(columns["feature"]):
            a[:, j] = table.column(feature)[keep]
        if not np.isfinite(a).all():
            raise ValueError("the matrix holds values that are not finite")
        signs = bool((np.abs(a) == 1.0).all())
        a = a.astype(np.int8) if signs else a
    else:
        stumps = bin_stumps(certificate, table, keep)
        a = stumps.pool_columns()
        free = stumps.y if problem["intercept_box"] is not None else free
    merged = signs and table.target is None
    rows = merge_rows(a, free, share) if merged else Rows(a, free, share, target)
    reach = 0.0
    if problem["loss"] == SOFT:  # the largest entry of a column that every scope has
        n = min(bound["columns"] for bound in certificate["bounds"])
        entries = (np.max(np.abs(part), initial=0.0) for part in (rows.a[:, :n], rows.free))
        reach = float(problem["radius"] * max(entries))
    unseen = certificate["unseen"] or dict.fromkeys(PRICES, 0.0)
    # a search proves what no model can reach that is better than the continuous one that points follow from
    reference = (certificate.get("points") or {}).get("continuous", certificate["solution"])
    return Evidence(
        problem=problem,
        rows=rows,
        stumps=stumps,
        share=share,
        prices={key: _as_floats(columns[key]) for key in PRICES},
        unseen={key: _as_floats([unseen[key]]) for key in PRICES},
        charged=np.array(columns["charged"], dtype=bool),
        feature=np.array(columns["feature"], dtype=np.intp),
        reference=reference["objective"],
        null=mean_loss(problem["loss"], rows, certificate["null"]["intercept"]),
        reach=reach,
    )


def _as_floats(values: list[Any]) -> Floats:
    return np.array([math.inf if v is None else v for v in values], dtype=np.float64)


# ------------------------------------------------------------------------------------ bounds of leaves


def leaf_bounds(evidence: Evidence, bound: dict[str, Any], leaves: Leaves) -> Floats:
    """D(u) of every leaf, with the curvature that it sets aside; minus infinity where it bounds nothing."""
    step = max(1, BATCH_ENTRIES // max(1, len(evidence.rows.share)))
    batches = (leaves[first : first + step] for first in range(0, len(leaves), step))
    return np.concatenate([np.zeros(0), *(_batch_bounds(evidence, bound, batch) for batch in batches)])


def _batch_bounds(evidence: Evidence, bound: dict[str, Any], leaves: Leaves) -> Floats:
    problem, rows, stumps, n = evidence.problem, evidence.rows, evidence.stumps, bound["columns"]
    soft = problem["loss"] == SOFT
    weights = np.stack([leaf_weights(leaf["weights"], n, rows.a.shape[1]) for leaf in leaves], axis=1)
    intercept, theta = (
        np.array([leaf[key] for leaf in leaves], dtype=np.float64) for key in ("intercept", "theta")
    )
    with np.errstate(over="ignore", invalid="ignore"):
        u, value = row_weights(problem["loss"], rows.margins(intercept, weights), theta, rows)
        edges, push = rows.edges(u)[:, :n], np.abs(rows.free @ u)
        unseen = np.full((len(leaves), 0), 0.0)
        if bound["scope"] == "dictionary" and stumps is not None and stumps.any_unseen:
            every = u
            if rows.group is not None:
                every = (u / rows.share[:, None])[rows.group] * evidence.share[:, None]
            unseen = np.stack([stumps.unseen_edges(one) for one in every.T])
        if not soft:  # a larger edge proves less; a soft margin has a tolerance for it
            rounding = EDGE_ROUNDING * math.sqrt(len(rows.share)) * np.sum(np.abs(u), axis=0)
            edges += rounding[:, None] * rows.largest_entries[:n]
            push += rounding
            unseen += rounding[:, None]
        sound = np.isfinite(u).all(axis=0) & np.isfinite(edges).all(axis=1) & ~np.isnan(unseen).any(axis=1)
        if soft:
            largest = np.maximum(np.max(edges, axis=1, initial=0.0), np.max(unseen, axis=1, initial=0.0))
            value = value - problem["radius"] * np.maximum(largest, push)
        else:
            value = value - (problem["intercept_box"] or 0.0) * push
            value = value - _taken(evidence, leaves, weights[:n].T, edges, unseen)
    return np.where(sound & np.isfinite(value), value, -math.inf)


def _taken(evidence: Evidence, leaves: Leaves, weights: Floats, edges: Floats, unseen: Floats) -> Floats:
    """What is subtracted from the dual value of every leaf for the columns that a model may use."""
    problem, n = evidence.problem, edges.shape[1]
    prices, charged = {key: values[:n] for key, values in evidence.prices.items()}, evidence.charged[:n]
    taken = np.zeros(len(leaves))
    if any(leaf.get("curve") is not None for leaf in leaves):
        # d (v - w)^2 / 2 of a column: a higher edge, more l2 and a constant
        curves = [leaf.get("curve") or {"aside": []} for leaf in leaves]
        aside = np.stack([leaf_weights(curve["aside"], n, n) for curve in curves])
        edges, prices["l2"] = edges + aside * weights, prices["l2"] + aside
        taken -= 0.5 * np.sum(aside * weights**2, axis=1)
    worth = _worth(edges, prices)
    forced_in, free = np.zeros(worth.shape, dtype=bool), np.ones(worth.shape, dtype=bool)
    for i, leaf in enumerate(leaves):
        forced_in[i, leaf["forced_in"]] = True
        free[i, leaf["forced_in"] + leaf["forced_out"]] = False
    taken += np.sum(np.where(forced_in, worth, 0.0), axis=1)
    bonus = np.maximum(worth, 0.0)
    taken += np.sum(np.where(free & ~charged, bonus, 0.0), axis=1)
    bonus = np.where(free & charged, bonus, 0.0)
    spare = np.maximum(_worth(unseen, evidence.unseen), 0.0)
    most = np.max(spare, axis=1, initial=0.0)
    terms, slots = problem["max_terms"], None
    if terms is None:
        most = np.where(most <= WORTHLESS * evidence.size, 0.0, math.inf)  # any number of them may be used
    else:
        slots = np.maximum(0, terms - np.count_nonzero(forced_in & charged, axis=1))
    if limits_features(problem):
        features = evidence.feature[:n]
        for i in range(len(leaves)):
            paid = np.unique(features[forced_in[i] & charged])
            room = None if slots is None else int(slots[i])
            taken[i] -= evidence.feature_cost(np.union1d(paid, _must_include(problem)).astype(np.intp))
            taken[i] += _best_choice(problem, bonus[i], features, room, spare[i], paid)
        return taken if terms is not None else taken + most
    if slots is None:
        return taken + np.sum(bonus, axis=1) + most
    best = np.maximum(-np.sort(-bonus, axis=1), most[:, None])
    taken += np.sum(np.where(np.arange(n) < slots[:, None], best, 0.0), axis=1)
    return taken + np.maximum(0, slots - n) * most


def _worth(edge: Floats, prices: dict[str, Floats]) -> Floats:
    """kappa_j - l0_j; infinite where neither a box nor l2 limits a profitable weight."""
    excess = np.maximum(edge - prices["l1"], 0.0)
    l2 = np.broadcast_to(prices["l2"], excess.shape)
    w = np.divide(excess, l2, out=np.full(excess.shape, math.inf), where=l2 > 0)
    w = np.minimum(w, prices["max_weight"])
    finite = np.where(np.isinf(w), 0.0, w)
    kappa = np.where(np.isinf(w), math.inf, finite * (excess - 0.5 * l2 * finite))
    return np.where(excess > 0, kappa, 0.0) - prices["l0"]


def _best_choice(
    problem: dict[str, Any], bonus: Floats, feature: Indices, slots: int | None, unseen: Floats, paid: Indices
) -> float:
    """The most that further columns can be worth, ``slots`` of them at most, less the costs of features.

    Features in ``paid`` are in use already, and those that have to be used are paid for too. Of each feature
    the largest r terms are taken, with its largest unseen term as often as there are slots; ``best[a, b]`` is
    the most with a further features and b columns. Of a group one feature counts.
    """
    costs, limit, groups = (
        problem["feature_costs"],
        problem["max_features"],
        problem.get("at_most_one_of", []),
    )
    paid_features = set(paid.tolist())
    in_use = paid_features.union(_must_include(problem))
    rivals = {f for group in groups if in_use.intersection(group) for f in group} - in_use
    limit = None if limit is None else max(0, limit - len(in_use))
    base, needed = [np.empty(0)], []
    further: dict[Any, list[Floats]] = {}  # by group, or by feature where there is none
    for f in range(max([len(unseen), int(feature.max(initial=-1)) + 1, *(g + 1 for g in in_use)])):
        terms = np.sort(bonus[feature == f])[::-1]
        if slots is not None:
            spare = unseen[f] if f < len(unseen) else 0.0
            terms = np.sort(np.concatenate([terms, np.full(slots, spare)]))[::-1][:slots]
        terms = terms[terms > 0]
        if f in paid_features:
            base.append(terms)
        elif f in in_use:
            needed.append(terms)
        elif f not in rivals and len(terms):
            unit = next((i for i, group in enumerate(groups) if f in group), ("alone", f))
            further.setdefault(unit, []).append(np.cumsum(terms) - (0.0 if costs is None else costs[f]))
    together = np.sort(np.concatenate(base))[::-1]
    if slots is None:
        totals = sorted((max(float(total[-1]) for total in own) for own in further.values()), reverse=True)
        forced = math.fsum(float(terms.sum()) for terms in needed)
        return float(together.sum()) + forced + math.fsum(value for value in totals[:limit] if value > 0)
    limit = slots if limit is None else min(limit, slots)
    best = np.zeros((limit + 1, slots + 1))
    best[:, 1:] = np.cumsum(np.concatenate([together, np.zeros(slots)])[:slots])
    for terms in needed:  # one column at least
        before, best = best, np.full_like(best, -math.inf)
        total = np.cumsum(np.concatenate([terms, np.zeros(slots)])[:slots])
        for r in range(1, slots + 1):
            best[:, r:] = np.maximum(best[:, r:], before[:, : slots + 1 - r] + total[r - 1])
    for own in further.values():
        before = best.copy()
        for total in own:
            for r in range(1, len(total) + 1):
                best[1:, r:] = np.maximum(best[1:, r:], before[:-1, : slots + 1 - r] + total[r - 1])
    return float(best[-1, -1])


def _must_include(problem: dict[str, Any]) -> list[int]:
    """The features that have to be used; files before version 7 have none."""
    return problem.get("must_include") or []


# ------------------------------------------------------------------------------------ leaves with a curve


def unproved_curves(evidence: Evidence, bound: dict[str, Any]) -> set[int]:
    """The leaves that set more curvature aside than is left for every better model of theirs."""
    curved = {i: leaf for i, leaf in enumerate(bound["leaves"]) if leaf.get("curve") is not None}
    if not curved:
        return set()
    curvature = _scope_curvature(evidence, bound)
    if curvature is None:
        return set(curved)
    centres = [_with_point(leaf, leaf["curve"]) for leaf in curved.values()]
    values = leaf_bounds(evidence, bound, centres).tolist()
    return {
        i
        for (i, leaf), value in zip(curved.items(), values, strict=True)
        if not _curve_holds(evidence, bound["columns"], leaf, value, curvature)
    }


def _scope_curvature(evidence: Evidence, bound: dict[str, Any]) -> Curvature | None:
    """Floors and caps of margins for the whole scope, or None where it states no centre for them."""
    centre, n, problem, rows = bound.get("caps"), bound["columns"], evidence.problem, evidence.rows
    if centre is None or problem["loss"] not in ("exponential", "logistic"):
        return None
    if bound["scope"] == "dictionary" and evidence.stumps is not None and evidence.stumps.any_unseen:
        return None  # other columns could go in other directions
    high, intercept_box = evidence.prices["max_weight"][:n], problem["intercept_box"]
    low, a = np.zeros(n), rows.a[:, :n].astype(np.float64)
    if intercept_box is not None:
        low, high = np.append(-intercept_box, low), np.append(intercept_box, high)
        a = np.column_stack([rows.free, a])
    if not np.isfinite(high).all():
        return None
    everything = _with_point({"forced_in": [], "forced_out": []}, centre)
    value = float(leaf_bounds(evidence, bound, [everything])[0])
    point = _point(evidence, centre["intercept"], centre["centre"], n)
    return Curvature.make(problem["loss"], (a, rows.share), (low, high), evidence.reference, point, value)


def _curve_holds(
    evidence: Evidence, n: int, leaf: dict[str, Any], value: float, curvature: Curvature
) -> bool:
    """Whether so much curvature is left for every model of the leaf that is better than the reference.

    ``value``: D(u) at the centre of the leaf's curve.
    """
    if leaf["theta"] != 1.0:
        return False
    if value >= curvature.objective:
        return True  # there is no such model
    curve = leaf["curve"]
    centre = _point(evidence, curve["intercept"], curve["centre"], n)
    weights = _point(evidence, leaf["intercept"], leaf["weights"], n)
    aside = _point(evidence, 0.0, curve["aside"], n)
    inside = np.ones(len(centre), dtype=bool)
    inside[np.array(leaf["forced_out"], dtype=np.intp) + (len(centre) - n)] = False
    inside |= (centre != 0) | (weights != 0)
    return curvature.narrowed(centre, value, inside).allows(weights, aside, inside)


def _with_point(leaf: dict[str, Any], point: dict[str, Any]) -> dict[str, Any]:
    """A leaf that forces the same columns, with the row weights of another point."""
    return {**leaf, "intercept": point["intercept"], "weights": point["centre"], "theta": 1.0, "curve": None}


def _point(evidence: Evidence, intercept: float, weights: Any, n: int) -> Floats:
    """Weights as an array; the intercept, where there is one, comes first."""
    dense = leaf_weights(weights, n, n)
    return dense if evidence.problem["intercept_box"] is None else np.append(intercept, dense)

"""An independent check of a certificate: is every number in the file true of this table?

Imports NumPy and the standard library only (here and in the files beside it). Nothing is shared with the code
that writes certificates, so an error there cannot hide here. The equations are those of
docs/mathematics.md: the objective (L0/Lk), the row weights u_i = s_i v_i with v_i = theta (-loss'(F_i)), the
edges c_j = sum_i u_i a_ij, the worth of a column kappa_j = max over 0 <= w <= M_j of
(c_j - l1) w - l2 w^2 / 2, and the bound D(u) of a leaf of the search. For the squared loss v_i is
theta (t_i - F_i), and columns are not multiplied with labels. For the soft margin, log sum s_i exp(-F_i) over
weights of sum R at most, u is p_i proportional to s_i exp(-F_i), and the bound is
-sum p_i log(p_i / s_i) - R max_j c_j.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cardboost.certificate.checker_curvature import Curvature
from cardboost.certificate.checker_data import (
    Floats,
    Matrix,
    Stumps,
    Table,
    bin_stumps,
    data_digest,
    read,
    table_digest,
)
from cardboost.certificate.checker_format import PRICES, SOFT, content_digest, leaf_weights, structure_faults

__all__ = ["check", "content_digest", "data_digest", "evaluate_bound", "gather", "verify"]

TOLERANCE = 1e-9  # for numbers that are sums over rows
ARITHMETIC = 1e-14  # for numbers derived from other numbers of the file
UNSEEN_SLACK = 1e-12  # an unseen column worth no more than this counts as worthless
CORNER = 1.0 / 4.0  # of the smooth hinge: its last stretch before the margin 1 is a parabola
MANY = 16  # leaves, from which on the columns of the pool are kept as a matrix
MOST_ENTRIES = 50_000_000  # of that matrix
COVER_STEPS = 1_000_000  # cubes looked at before the cover of the search space counts as unproved


@dataclass(frozen=True)
class Evidence:
    """What claims are checked against: row shares s, columns with margins and edges, prices per column.

    ``feature``: that of each column. ``target``: t for the squared loss, else zeros.
    """

    share: Floats
    columns: Matrix | Stumps
    prices: dict[str, Floats]
    charged: npt.NDArray[np.bool_]
    feature: npt.NDArray[np.intp]
    target: Floats


def gather(certificate: dict[str, Any], X: Any, y: Any = None, sample_weight: Any = None) -> Evidence:
    """Read the table for a certificate whose structure is sound (see ``check``)."""
    return _gather(certificate, _read(certificate, X, y, sample_weight))


def _read(certificate: dict[str, Any], X: Any, y: Any, sample_weight: Any) -> Table:
    """The table with the columns that the certificate takes for categorical, and y as it is needed."""
    kind, real = certificate["kind"], certificate["problem"]["loss"] == "squared"
    needed = kind == "stumps" or real
    if needed and y is None:
        raise ValueError(f"y is needed to check a certificate for {kind if not real else 'a regression'}")
    categorical = [j for j, own in enumerate(certificate["categories"] or []) if own is not None]
    return read(X, y if needed else None, sample_weight, categorical, real)


def _gather(certificate: dict[str, Any], table: Table) -> Evidence:
    negative, positive = certificate["problem"]["class_weight"]
    scaled = table.weight / table.weight.max() * np.where(table.positive, positive, negative)
    share = scaled / scaled.sum()
    keep = np.flatnonzero(share > 0)
    held = certificate["columns"]
    columns: Matrix | Stumps
    if certificate["kind"] == "matrix":
        a = np.empty((len(keep), len(held["feature"])))
        for j, feature in enumerate(held["feature"]):
            a[:, j] = table.column(feature)[keep]
        columns = Matrix(a)
    else:
        columns = bin_stumps(certificate, table, keep)
    prices = {key: _as_floats(held[key]) for key in PRICES}
    target, scaling = np.zeros(len(keep)), certificate["problem"]["target"]
    if table.target is not None:
        target = (table.target[keep] - scaling["mean"]) / scaling["scale"]
    charged, feature = np.array(held["charged"], dtype=bool), np.array(held["feature"], dtype=np.intp)
    return Evidence(share[keep], columns, prices, charged, feature, target)


def _as_floats(values: list[Any]) -> Floats:
    return np.array([math.inf if v is None else v for v in values], dtype=np.float64)


def _mean_loss(loss: str, margins: Floats, data: Evidence) -> float:
    if loss == "squared":
        return float(data.share @ (0.5 * (margins - data.target) ** 2))
    if loss == SOFT:
        return _log_mean(margins, data.share)
    if loss == "squared_hinge":
        return float(data.share @ np.maximum(0.0, 1.0 - margins) ** 2)
    if loss == "smooth_hinge":
        short, steep = _rounded(margins)
        return float(data.share @ (steep * (short - 0.5 * CORNER * steep)))
    return float(data.share @ (np.logaddexp(0.0, -margins) if loss == "logistic" else np.exp(-margins)))


def _rounded(margins: Floats) -> tuple[Floats, Floats]:
    """By how much margins fall short of 1, and how steep the hinge with the rounded corner is there."""
    short = np.maximum(0.0, 1.0 - margins)
    return short, np.minimum(1.0, short / CORNER)


def _log_mean(margins: Floats, share: Floats) -> float:
    """log sum s_i exp(-F_i)."""
    least = float(np.min(margins))
    return float(np.log(share @ np.exp(least - margins))) - least


def _row_weights(loss: str, margins: Floats, data: Evidence, theta: float) -> tuple[Floats, float]:
    """u_i = s_i v_i with v_i = theta (-loss'(F_i)), and the sum of s_i times the dual value of v_i."""
    share = data.share
    if theta == 0.0:
        return np.zeros_like(share), 0.0
    if loss == "squared":
        v = theta * (data.target - margins)
        return share * v, float(share @ (v * data.target - 0.5 * v * v))
    if loss == "exponential":
        u = share * (theta * np.exp(-margins))
        return u, float(np.sum(u * (1.0 - math.log(theta) + margins)))
    if loss == "squared_hinge":
        v = 2.0 * theta * np.maximum(0.0, 1.0 - margins)
        return share * v, float(share @ (v - 0.25 * v * v))
    if loss == "smooth_hinge":
        v = theta * _rounded(margins)[1]
        return share * v, float(share @ (v - 0.5 * CORNER * v * v))
    if loss == SOFT:
        log_mean = _log_mean(margins, share)
        p = share * np.exp(-margins - log_mean)
        return p, float(p @ (margins + log_mean))
    small = np.exp(-np.abs(margins))
    v = theta * np.where(margins > 0, small, 1.0) / (1.0 + small)
    rest = (1.0 - theta) + theta * np.where(margins > 0, 1.0, small) / (1.0 + small)  # 1 - v, no cancellation
    log_rest = np.where(v < 0.5, np.log1p(-np.minimum(v, 0.5)), np.log(np.where(rest > 0, rest, 1.0)))
    entropy = -v * np.log(np.where(v > 0, v, 1.0)) - rest * log_rest
    return share * v, float(share @ entropy)


def _worth(edge: Any, prices: dict[str, Any]) -> Floats:
    """kappa_j - l0_j; infinite where neither a box nor l2 holds a profitable weight back."""
    excess = np.asarray(edge - prices["l1"], dtype=np.float64)
    l2, box = np.asarray(prices["l2"]), np.asarray(prices["max_weight"])
    gain = np.maximum(excess, 0.0)
    w = np.minimum(np.divide(gain, l2, out=np.full(gain.shape, math.inf), where=l2 > 0), box)
    held = np.where(np.isinf(w), 0.0, w)
    kappa = np.where(np.isinf(w), math.inf, held * (gain - 0.5 * l2 * held))
    return np.where(gain > 0, kappa, 0.0) - prices["l0"]


def evaluate_bound(
    certificate: dict[str, Any], bound: dict[str, Any], leaf: dict[str, Any], data: Evidence
) -> float:
    """D(u) of one leaf, with the curvature that it sets aside; minus infinity where it bounds nothing."""
    problem, columns = certificate["problem"], data.columns
    with np.errstate(over="ignore", invalid="ignore"):
        weights, n = leaf_weights(leaf["weights"], bound["columns"]), bound["columns"]
        u, value = _row_weights(
            problem["loss"], columns.margins(leaf["intercept"], weights), data, leaf["theta"]
        )
        edges, unseen_edges = columns.edges(u, bound["scope"] == "dictionary")
        if problem["loss"] == SOFT:
            largest = float(np.max(edges[:n], initial=0.0))
            if bound["scope"] == "dictionary":
                largest = float(np.max(unseen_edges, initial=largest))
            if problem["intercept_box"] is not None and isinstance(columns, Stumps):
                largest = max(largest, abs(float(u @ columns.y)))
            value -= problem["radius"] * largest
            return value if math.isfinite(value) else -math.inf
        prices, aside = data.prices, _dense(_aside(leaf, n), len(edges))
        if aside.any():  # d (v - w)^2 / 2 of a column: a higher edge, more l2 and a constant
            w = _dense(weights, len(edges))
            edges, value = edges + aside * w, value + 0.5 * float(aside @ (w * w))
            prices = {**prices, "l2": prices["l2"] + aside}
        worth, charged = _worth(edges, prices)[:n], data.charged[:n]
        if problem["intercept_box"] is not None and isinstance(columns, Stumps):
            value -= problem["intercept_box"] * abs(float(u @ columns.y))
        unseen = np.zeros(len(unseen_edges))  # per feature
        if bound["scope"] == "dictionary":
            others = {key: _as_floats([certificate["unseen"][key]])[0] for key in PRICES}
            unseen = np.maximum(_worth(unseen_edges, others), 0.0)
        most = float(np.max(unseen, initial=0.0))
        forced_in = np.zeros(len(worth), dtype=bool)
        forced_in[leaf["forced_in"]] = True
        free = ~forced_in
        free[leaf["forced_out"]] = False
        value -= float(np.sum(worth[forced_in]))
        bonus = np.maximum(worth, 0.0)
        value -= float(np.sum(bonus[free & ~charged]))
        free &= charged
        slots = None
        if problem["max_terms"] is not None:
            slots = max(0, problem["max_terms"] - int(np.count_nonzero(forced_in & charged)))
        elif most > UNSEEN_SLACK:
            return -math.inf
        if problem["max_features"] is not None or problem["feature_costs"] is not None:
            paid = np.unique(data.feature[:n][forced_in & charged])
            value += _feature_cost(problem, paid)
            value -= _best_choice(problem, bonus[free], data.feature[:n][free], slots, unseen, paid)
        elif slots is None:
            value -= float(np.sum(bonus[free]))
        else:
            top = np.sort(bonus[free])[::-1][:slots]
            value -= float(np.sum(np.maximum(top, most)))
            if most > 0:
                value -= (slots - len(top)) * most
    return value if math.isfinite(value) else -math.inf


def _dense(pairs: list[Any], n: int) -> Floats:
    found = np.zeros(n)
    for j, value in pairs:
        found[j] = value
    return found


def _aside(leaf: dict[str, Any], columns: int) -> list[Any]:
    curve = leaf.get("curve")
    return [] if curve is None else leaf_weights(curve["aside"], columns)


def _at(leaf: dict[str, Any], point: dict[str, Any]) -> dict[str, Any]:
    """A leaf that forces the same columns, with the row weights of another point."""
    return {**leaf, "intercept": point["intercept"], "weights": point["centre"], "theta": 1.0, "curve": None}


def _point(point: dict[str, Any], key: str, certificate: dict[str, Any], columns: int) -> Floats:
    """Weights as an array; the intercept, where there is one, comes first."""
    dense = _dense(leaf_weights(point[key], columns), columns)
    boxed = certificate["problem"]["intercept_box"] is not None
    return np.append(point["intercept"], dense) if boxed else dense


def _curvature(certificate: dict[str, Any], bound: dict[str, Any], data: Evidence) -> Curvature | None:
    """Caps for the whole scope, or None where it states no centre for them."""
    centre, n, columns = bound.get("caps"), bound["columns"], data.columns
    if centre is None or certificate["problem"]["loss"] not in ("exponential", "logistic"):
        return None
    box = data.prices["max_weight"][:n]
    low, a = np.zeros(n), columns.a[:, :n] if isinstance(columns, Matrix) else columns.pool_matrix[:, :n]
    most = certificate["problem"]["intercept_box"]
    if isinstance(columns, Stumps) and most is not None:
        low, box, a = np.append(-most, low), np.append(most, box), np.column_stack([columns.y, a])
    if not np.isfinite(box).all():
        return None
    everything = _at({"forced_in": [], "forced_out": []}, centre)
    value = max(0.0, evaluate_bound(certificate, bound, everything, data))
    at = _point(centre, "centre", certificate, n)
    limit = _reference(certificate)["objective"]
    return Curvature.make(certificate["problem"]["loss"], (a, data.share), (low, box), limit, at, value)


def _reference(certificate: dict[str, Any]) -> dict[str, Any]:
    """The solution that the search compared with: that with continuous weights, where points follow from it.

    A search proves what no model that is better than this one can reach.
    """
    points = certificate.get("points")
    return certificate["solution"] if points is None else points["continuous"]


def _holds(
    certificate: dict[str, Any], bound: dict[str, Any], leaf: dict[str, Any], data: Evidence, known: Curvature
) -> bool:
    """Whether so much curvature is left for every model of the leaf that is better than the solution."""
    curve, n = leaf["curve"], bound["columns"]
    centre = _point(curve, "centre", certificate, n)
    weights = _point(leaf, "weights", certificate, n)
    inside = np.ones(len(centre), dtype=bool)
    inside[np.array(leaf["forced_out"], dtype=np.intp) + (len(centre) - n)] = False
    inside |= (centre != 0) | (weights != 0)
    value = max(0.0, evaluate_bound(certificate, bound, _at(leaf, curve), data))  # no loss is negative
    aside = _point({**curve, "intercept": 0.0}, "aside", certificate, n)
    if leaf["theta"] == 1.0 and value >= known.objective:
        return True  # there is no such model
    with np.errstate(over="ignore", invalid="ignore"):
        return leaf["theta"] == 1.0 and known.narrowed(centre, value, inside).allows(weights, aside, inside)


def _feature_cost(problem: dict[str, Any], features: npt.NDArray[np.intp]) -> float:
    costs = problem["feature_costs"]
    return 0.0 if costs is None else math.fsum(costs[f] for f in features)


def _best_choice(
    problem: dict[str, Any],
    bonus: Floats,
    feature: npt.NDArray[np.intp],
    slots: int | None,
    unseen: Floats,
    paid: npt.NDArray[np.intp],
) -> float:
    """The most that further columns can be worth, ``slots`` of them at most, costs of features deducted.

    Features in ``paid`` are in use already. Of each feature the largest r terms are taken, with its largest
    unseen term as often as there are slots; ``best[a, b]`` is the most with a features and b columns.
    """
    places = None if problem["max_features"] is None else max(0, problem["max_features"] - len(paid))
    costs, of = problem["feature_costs"], {}
    for f in range(max(len(unseen), int(feature.max(initial=-1)) + 1)):
        own = np.sort(bonus[feature == f])[::-1]
        if slots is not None:
            spare = unseen[f] if f < len(unseen) else 0.0
            own = np.sort(np.concatenate([own, np.full(slots, spare)]))[::-1][:slots]
        of[f] = own[own > 0]
    known = set(paid.tolist())
    base = np.sort(np.concatenate([np.empty(0), *(of[f] for f in of if f in known)]))[::-1]
    rest = {
        f: np.cumsum(own) - (0.0 if costs is None else costs[f]) for f, own in of.items() if f not in known
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
        margins = evidence.columns.margins(solution["intercept"], solution["weights"])
        value = _mean_loss(problem["loss"], margins, evidence) + _feature_cost(problem, used)
        value += float(np.sum(prices["l1"] * weights + 0.5 * prices["l2"] * weights**2 + prices["l0"]))
    yield from _differ(f"{path}.objective", solution["objective"], value, TOLERANCE * max(1.0, abs(value)))


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
    loss, box = certificate["problem"]["loss"], certificate["problem"]["intercept_box"]
    b, claimed = certificate["null"]["intercept"], certificate["null"]["objective"]
    if abs(b) > (box or 0.0):
        yield f"null.intercept: {b!r} is outside the box {box}"
    with np.errstate(over="ignore", invalid="ignore"):
        if box is None or isinstance(evidence.columns, Matrix):
            margins = np.zeros(len(evidence.share))
        else:
            margins = evidence.columns.margins(b, [])
            push = float(_row_weights(loss, margins, evidence, 1.0)[0] @ evidence.columns.y)
            if not abs(push) <= TOLERANCE and not (abs(b) == box and push * b >= 0):
                yield f"null.intercept: {b!r} is not the best in the box, the loss has slope {-push!r}"
        value = _mean_loss(loss, margins, evidence)
    yield from _differ("null.objective", claimed, value, TOLERANCE * max(1.0, abs(value)))


def _crowded(problem: dict[str, Any], columns: list[int], evidence: Evidence) -> str | None:
    """Why these columns may not be in use together, or None when they may."""
    inside = np.array(columns, dtype=np.intp)
    inside = inside[evidence.charged[inside]]
    features = len(np.unique(evidence.feature[inside]))
    if problem["max_terms"] is not None and len(inside) > problem["max_terms"]:
        return f"{len(inside)} charged columns, but max_terms is {problem['max_terms']}"
    if problem["max_features"] is not None and features > problem["max_features"]:
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
    stack: list[tuple[npt.NDArray[np.intp], list[int], list[int]]] = [(np.arange(len(leaves)), [], [])]
    for _ in range(COVER_STEPS):
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
    return f"the cover is not proved within {COVER_STEPS} steps"


def _bound_faults(certificate: dict[str, Any], number: int, evidence: Evidence) -> Iterator[str]:
    """One scope: every leaf's bound, the cover, and the numbers derived from the smallest bound."""
    bound, path = certificate["bounds"][number], f"bounds[{number}]"
    problem, objective = certificate["problem"], certificate["solution"]["objective"]
    columns = evidence.columns
    many = bound["scope"] == "pool" and len(bound["leaves"]) > MANY
    if many and isinstance(columns, Stumps) and len(evidence.share) * len(columns.pool) <= MOST_ENTRIES:
        _ = columns.pool_matrix  # from now on products with it replace lookups
    known = _curvature(certificate, bound, evidence)
    for i, leaf in enumerate(bound["leaves"]):
        if crowded := _crowded(problem, leaf["forced_in"], evidence):
            yield f"{path}.leaves[{i}].forced_in: {crowded}"
            continue
        if leaf.get("curve") is not None and not (
            known is not None and _holds(certificate, bound, leaf, evidence, known)
        ):
            yield f"{path}.leaves[{i}].curve: more is set aside than the curvature that is left"
            continue
        value = evaluate_bound(certificate, bound, leaf, evidence)
        allowed = TOLERANCE * max(1.0, abs(value))
        yield from _differ(f"{path}.leaves[{i}].bound", leaf["bound"], value, allowed)
    hole = _hole(bound["leaves"], problem, evidence)
    if hole is not None:
        yield f"{path}.leaves: {hole}"
    null, lower = certificate["null"]["objective"], bound["lower_bound"]
    smallest = min(
        objective, _reference(certificate)["objective"], *(own["bound"] for own in bound["leaves"])
    )
    yield from _differ(f"{path}.lower_bound", lower, smallest, 1e-12 * abs(smallest))
    if lower > objective + TOLERANCE:
        yield f"{path}.lower_bound: {lower!r} is above the objective {objective!r}"
    gap = objective - lower
    possible = null - lower
    nothing = possible <= TOLERANCE * max(1.0, abs(null))  # no model could improve on the empty one
    guarantee = 1.0 if nothing else min(1.0, max(0.0, (null - objective) / possible))
    rounding = ARITHMETIC * max(1.0, abs(objective))
    relative = gap / max(abs(objective), 1e-300)
    for key, value in (("gap", gap), ("relative_gap", relative), ("guarantee", guarantee)):
        yield from _differ(f"{path}.{key}", bound[key], value, TOLERANCE * abs(value) + rounding)


def _status_faults(certificate: dict[str, Any]) -> Iterator[str]:
    objective, gap = certificate["solution"]["objective"], certificate["bounds"][0]["gap"]
    status = "optimal" if gap <= certificate["tolerance"] * max(1.0, abs(objective)) else "feasible"
    if certificate["status"] != status:
        yield f"status: claimed {certificate['status']}, but the gap and the tolerance say {status}"


def check(certificate: Any, X: Any, y: Any = None, sample_weight: Any = None) -> list[str]:
    """Every fault found, each a sentence that starts with a JSON path; an empty list: all claims hold.

    ``X`` is an array or a frame with NaN or None for missing values; ``y`` holds booleans, 0/1 or -1/+1, or
    the target for the squared loss (otherwise it is not used for a matrix). A ValueError is raised only for
    data that no certificate could be checked against.
    """
    unusable = structure_faults(certificate)
    if unusable:
        return unusable
    faults: list[str] = []
    if (digest := content_digest(certificate)) != certificate["digest"]:
        faults.append(f"digest: claimed {certificate['digest']}, recomputed {digest}")
    table, data = _read(certificate, X, y, sample_weight), certificate["data"]
    if table.features != data["features"]:
        return [*faults, f"data.features: claimed {data['features']}, found {table.features}"]
    if (rows := int(np.count_nonzero(table.weight))) != data["rows"]:
        faults.append(f"data.rows: claimed {data['rows']}, found {rows} rows with a weight")
    if (digest := table_digest(table)) != data["digest"]:
        faults.append(f"data.digest: claimed {data['digest']}, recomputed {digest}")
    evidence = _gather(certificate, table)
    faults += _solution_faults(certificate, certificate["solution"], "solution", evidence)
    faults += [*_points_faults(certificate, evidence), *_null_faults(certificate, evidence)]
    for number in range(len(certificate["bounds"])):
        faults += _bound_faults(certificate, number, evidence)
    return faults + list(_status_faults(certificate))


def verify(certificate: Any, X: Any, y: Any = None, sample_weight: Any = None) -> bool:
    """Whether every claim of the certificate holds for this table."""
    return not check(certificate, X, y, sample_weight)

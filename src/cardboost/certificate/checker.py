"""An independent check of a certificate: is every number in the file true of this table?

Imports NumPy and the standard library only (here and in the two files beside it). Nothing is shared with the
code that writes certificates, so an error there cannot hide here. The equations are those of
docs/mathematics.md: the objective (L0/Lk), the row weights u_i = s_i v_i with v_i = theta (-loss'(F_i)), the
edges c_j = sum_i u_i a_ij, the worth of a column kappa_j = max over 0 <= w <= M_j of
(c_j - l1) w - l2 w^2 / 2, and the bound D(u) of a leaf of the search.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
from cardboost.certificate.checker_format import PRICES, content_digest, structure_faults

__all__ = ["check", "content_digest", "data_digest", "evaluate_bound", "gather", "verify"]

TOLERANCE = 1e-9  # for numbers that are sums over rows
ARITHMETIC = 1e-14  # for numbers derived from other numbers of the file
UNSEEN_SLACK = 1e-12  # an unseen column worth no more than this counts as worthless
COVER_STEPS = 1_000_000  # cubes looked at before the cover of the search space counts as unproved


@dataclass(frozen=True)
class Evidence:
    """What claims are checked against: row shares s, columns with margins and edges, prices per column."""

    share: Floats
    columns: Matrix | Stumps
    prices: dict[str, Floats]
    charged: npt.NDArray[np.bool_]


def gather(certificate: dict[str, Any], X: Any, y: Any = None, sample_weight: Any = None) -> Evidence:
    """Read the table for a certificate whose structure is sound (see ``check``)."""
    return _gather(certificate, read(X, y, sample_weight))


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
    return Evidence(share[keep], columns, prices, np.array(held["charged"], dtype=bool))


def _as_floats(values: list[Any]) -> Floats:
    return np.array([math.inf if v is None else v for v in values], dtype=np.float64)


def _mean_loss(loss: str, margins: Floats, share: Floats) -> float:
    return float(share @ (np.logaddexp(0.0, -margins) if loss == "logistic" else np.exp(-margins)))


def _row_weights(loss: str, margins: Floats, share: Floats, theta: float) -> tuple[Floats, float]:
    """u_i = s_i v_i with v_i = theta (-loss'(F_i)), and the sum of s_i times the dual value of v_i."""
    if theta == 0.0:
        return np.zeros_like(share), 0.0
    if loss == "exponential":
        u = share * (theta * np.exp(-margins))
        return u, float(np.sum(u * (1.0 - math.log(theta) + margins)))
    small = np.exp(-np.abs(margins))
    v = theta * np.where(margins > 0, small, 1.0) / (1.0 + small)
    rest = (1.0 - theta) + theta * np.where(margins > 0, 1.0, small) / (1.0 + small)  # 1 - v, no cancellation
    entropy = -v * np.log(np.where(v > 0, v, 1.0)) - rest * np.log(np.where(rest > 0, rest, 1.0))
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
    """D(u) of one leaf; minus infinity where the leaf's row weights bound nothing."""
    problem, columns = certificate["problem"], data.columns
    with np.errstate(over="ignore", invalid="ignore"):
        margins = columns.margins(leaf["intercept"], leaf["weights"])
        u, value = _row_weights(problem["loss"], margins, data.share, leaf["theta"])
        edges, unseen_edge = columns.edges(u)
        n = bound["columns"]
        worth, charged = _worth(edges, data.prices)[:n], data.charged[:n]
        if problem["intercept_box"] is not None and isinstance(columns, Stumps):
            value -= problem["intercept_box"] * abs(float(u @ columns.y))
        unseen = 0.0
        if bound["scope"] == "dictionary" and unseen_edge > -math.inf:
            prices = {key: _as_floats([certificate["unseen"][key]])[0] for key in PRICES}
            unseen = max(0.0, float(_worth(unseen_edge, prices)))
        forced_in = np.zeros(len(worth), dtype=bool)
        forced_in[leaf["forced_in"]] = True
        free = ~forced_in
        free[leaf["forced_out"]] = False
        value -= float(np.sum(worth[forced_in]))
        bonus = np.maximum(worth, 0.0)
        if problem["max_terms"] is None:
            value -= float(np.sum(bonus[free])) + (math.inf if unseen > UNSEEN_SLACK else 0.0)
        else:
            slots = max(0, problem["max_terms"] - int(np.count_nonzero(forced_in & charged)))
            top = np.sort(bonus[free & charged])[::-1][:slots]
            value -= float(np.sum(bonus[free & ~charged]))
            value -= float(np.sum(np.maximum(top, unseen)))
            if unseen > 0:
                value -= (slots - len(top)) * unseen
    return value if math.isfinite(value) else -math.inf


def _differ(path: str, claimed: float, actual: float, tolerance: float) -> Iterator[str]:
    if not (math.isfinite(actual) and abs(claimed - actual) <= tolerance):
        yield f"{path}: claimed {claimed!r}, recomputed {actual!r}"


def _solution_faults(certificate: dict[str, Any], evidence: Evidence) -> Iterator[str]:
    """The solution obeys its limits and costs what it says."""
    problem, solution = certificate["problem"], certificate["solution"]
    index = [j for j, _ in solution["weights"]]
    weights = np.array([w for _, w in solution["weights"]], dtype=np.float64)
    prices = {key: values[index] for key, values in evidence.prices.items()}
    for i in np.flatnonzero(~((weights > 0) & (weights <= prices["max_weight"]))):
        yield f"solution.weights[{i}][1]: {weights[i]} is outside (0, {prices['max_weight'][i]}]"
    terms = int(np.count_nonzero(evidence.charged[index]))
    if problem["max_terms"] is not None and terms > problem["max_terms"]:
        yield f"solution.weights: {terms} charged columns, but problem.max_terms is {problem['max_terms']}"
    if abs(solution["intercept"]) > (problem["intercept_box"] or 0.0):
        yield f"solution.intercept: {solution['intercept']!r} is outside the box {problem['intercept_box']}"
    with np.errstate(over="ignore", invalid="ignore"):
        margins = evidence.columns.margins(solution["intercept"], solution["weights"])
        value = _mean_loss(problem["loss"], margins, evidence.share)
        value += float(np.sum(prices["l1"] * weights + 0.5 * prices["l2"] * weights**2 + prices["l0"]))
    yield from _differ("solution.objective", solution["objective"], value, TOLERANCE * max(1.0, abs(value)))


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
            push = float(_row_weights(loss, margins, evidence.share, 1.0)[0] @ evidence.columns.y)
            if not abs(push) <= TOLERANCE and not (abs(b) == box and push * b >= 0):
                yield f"null.intercept: {b!r} is not the best in the box, the loss has slope {-push!r}"
        value = _mean_loss(loss, margins, evidence.share)
    yield from _differ("null.objective", claimed, value, TOLERANCE * max(1.0, abs(value)))


def _hole(leaves: list[dict[str, Any]], charged: npt.NDArray[np.bool_], max_terms: int | None) -> str | None:
    """Why the leaves do not cover every choice of columns, or None when they do.

    A leaf is a cube of {in, out}^n. Cubes are split on the column that most leaves in play mention, until one
    leaf holds the whole cube; a cube with more than max_terms charged columns in is empty.
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
        if max_terms is not None and sum(bool(charged[used[i]]) for i in ins) > max_terms:
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
    max_terms, objective = certificate["problem"]["max_terms"], certificate["solution"]["objective"]
    for i, leaf in enumerate(bound["leaves"]):
        forced = int(np.count_nonzero(evidence.charged[leaf["forced_in"]]))
        if max_terms is not None and forced > max_terms:
            yield f"{path}.leaves[{i}].forced_in: {forced} charged columns, but max_terms is {max_terms}"
            continue
        value = evaluate_bound(certificate, bound, leaf, evidence)
        allowed = TOLERANCE * max(1.0, abs(value))
        yield from _differ(f"{path}.leaves[{i}].bound", leaf["bound"], value, allowed)
    hole = _hole(bound["leaves"], evidence.charged, max_terms)
    if hole is not None:
        yield f"{path}.leaves: {hole}"
    null, lower = certificate["null"]["objective"], bound["lower_bound"]
    smallest = min(leaf["bound"] for leaf in bound["leaves"])
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

    ``X`` is an array or a frame with NaN for missing values; ``y`` holds booleans, 0/1 or -1/+1 (not used
    for a matrix). A ValueError is raised only for data that no certificate could be checked against.
    """
    unusable = structure_faults(certificate)
    if unusable:
        return unusable
    faults: list[str] = []
    if (digest := content_digest(certificate)) != certificate["digest"]:
        faults.append(f"digest: claimed {certificate['digest']}, recomputed {digest}")
    kind = certificate["kind"]
    if kind == "stumps" and y is None:
        raise ValueError("y is needed to check a certificate for stumps")
    table, data = read(X, y if kind == "stumps" else None, sample_weight), certificate["data"]
    if table.features != data["features"]:
        return [*faults, f"data.features: claimed {data['features']}, found {table.features}"]
    if (rows := int(np.count_nonzero(table.weight))) != data["rows"]:
        faults.append(f"data.rows: claimed {data['rows']}, found {rows} rows with a weight")
    if (digest := table_digest(table)) != data["digest"]:
        faults.append(f"data.digest: claimed {data['digest']}, recomputed {digest}")
    evidence = _gather(certificate, table)
    faults += [*_solution_faults(certificate, evidence), *_null_faults(certificate, evidence)]
    for number in range(len(certificate["bounds"])):
        faults += _bound_faults(certificate, number, evidence)
    return faults + list(_status_faults(certificate))


def verify(certificate: Any, X: Any, y: Any = None, sample_weight: Any = None) -> bool:
    """Whether every claim of the certificate holds for this table."""
    return not check(certificate, X, y, sample_weight)

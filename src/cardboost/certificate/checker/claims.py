"""Every claim of a certificate, recomputed from the table. Part of the checker.

Each function yields faults: sentences that start with the JSON path of the claim that does not hold.
docs/certificate.md defines all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from cardboost.certificate.checker.bounds import (
    LARGEST_COST,
    Evidence,
    evidence_of,
    leaf_bounds,
    read_rows,
    unproved_curves,
)
from cardboost.certificate.checker.columns import Indices
from cardboost.certificate.checker.data import Table, table_digest
from cardboost.certificate.checker.format import (
    OPTIMAL,
    SOFT,
    VERSION,
    content_digest,
    structure_faults,
)
from cardboost.certificate.checker.losses import mean_loss, row_weights

LARGEST_MARGIN = 1e5  # of a soft margin: beyond it rounding would decide
ARITHMETIC = 1e-12  # of numbers that follow from other numbers of the file, as a share
SCALING = 1e-6  # of a target's mean and scale, in standard deviations
NEARBY = 1e-12  # of the empty model's intercept and 1: where the slope is looked at again
COVER_STEPS = 100  # cubes looked at for every leaf before the cover of the search space counts as unproved


def _differ(path: str, claimed: float, actual: float, tolerance: float) -> Iterator[str]:
    """A fault if a claimed number differs from the one that was recomputed."""
    if not (math.isfinite(actual) and abs(claimed - actual) <= tolerance):
        yield f"{path}: claimed {claimed!r}, recomputed {actual!r}"


def _solution_faults(solution: dict[str, Any], path: str, evidence: Evidence) -> Iterator[str]:
    """A solution obeys the limits of the problem and has the objective that it states."""
    problem = evidence.problem
    index = [j for j, _ in solution["weights"]]
    weights = np.array([w for _, w in solution["weights"]], dtype=np.float64)
    prices = {key: values[index] for key, values in evidence.prices.items()}
    for i in np.flatnonzero(~((weights > 0) & (weights <= prices["max_weight"]))):
        yield f"{path}.weights[{i}][1]: {weights[i]} is outside (0, {prices['max_weight'][i]}]"
    if crowded := _crowded(index, evidence):
        yield f"{path}.weights: {crowded}"
    used = np.unique(evidence.feature[index][evidence.charged[index]])
    for f in set(problem.get("must_include", [])).difference(used.tolist()):
        yield f"{path}.weights: feature {f} is not used, but it is in problem.must_include"
    if abs(solution["intercept"]) > (problem["intercept_box"] or 0.0):
        yield f"{path}.intercept: {solution['intercept']!r} is outside the box {problem['intercept_box']}"
    spent = abs(solution["intercept"]) + float(np.sum(weights))
    if problem["loss"] == SOFT and not spent <= problem["radius"] * (1.0 + 1e-12):
        yield f"{path}.weights: they add up to {spent!r}, but problem.radius is {problem['radius']!r}"
    full = np.zeros(len(evidence.charged))
    full[index] = weights
    value = mean_loss(problem["loss"], evidence.rows, solution["intercept"], full)
    value += evidence.feature_cost(used)
    value += float(np.sum(prices["l1"] * weights + 0.5 * prices["l2"] * weights**2 + prices["l0"]))
    yield from _differ(f"{path}.objective", solution["objective"], value, evidence.tolerance)


def _points_faults(certificate: dict[str, Any], evidence: Evidence) -> Iterator[str]:
    """All weights are whole multiples of the unit, and the continuous solution holds."""
    points = certificate.get("points")
    if points is None:
        return
    unit, most = points["unit"], points["most"]
    for i, (_, weight) in enumerate(certificate["solution"]["weights"]):
        whole = round(weight / unit) if weight / unit < 2**53 else 0
        if not 1 <= whole <= most or unit * whole != weight:
            yield f"solution.weights[{i}][1]: {weight!r} is not 1 to {most} times the unit {unit!r}"
    yield from _solution_faults(points["continuous"], "points.continuous", evidence)


def _null_faults(certificate: dict[str, Any], evidence: Evidence) -> Iterator[str]:
    """The intercept alone: its objective, and that no other intercept in the box is better."""
    b, box = certificate["null"]["intercept"], evidence.problem["intercept_box"]
    if abs(b) > (box or 0.0):
        yield f"null.intercept: {b!r} is outside the box {box}"
    elif box is not None:
        push = _push(evidence, b)
        # the loss is convex: another intercept gains at most the slope times the distance, and the best one
        # is no farther away than a point where the slope has the other sign
        distance = box + abs(b)
        nearby = b + math.copysign(NEARBY * (1.0 + abs(b)), push)
        if _push(evidence, nearby) * push <= 0.0:
            distance = min(distance, abs(nearby - b))
        if not abs(push) * distance <= evidence.tolerance and not (abs(b) == box and push * b >= 0):
            yield f"null.intercept: {b!r} is not the best in the box, the loss has slope {-push!r}"
    yield from _differ("null.objective", certificate["null"]["objective"], evidence.null, evidence.tolerance)
    required = evidence.feature_cost(np.array(evidence.problem.get("must_include", []), dtype=np.intp))
    if not required <= LARGEST_COST * evidence.size:
        yield (
            f"problem.feature_costs: those of problem.must_include are {required!r}, beside which the loss "
            "cannot be checked"
        )


def _push(evidence: Evidence, b: float) -> float:
    """Minus the slope of the loss of the intercept alone."""
    rows = evidence.rows
    margins = rows.margins(np.array([b]), np.zeros((rows.a.shape[1], 1)))
    return float(rows.free @ row_weights(evidence.problem["loss"], margins, np.ones(1), rows)[0][:, 0])


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
    """Whether the columns are only some of all that there could be; before version 6 the status says so."""
    old = certificate["kind"] == "stumps" or certificate["status"] != "optimal"
    return bool(certificate.get("candidates", old))


def _matrix_faults(certificate: dict[str, Any], table: Table) -> Iterator[str]:
    """Of a matrix without other candidates every column is in the scope, or equal to one that is."""
    if _are_candidates(certificate):
        return
    keep, n = table.weight > 0, min(bound["columns"] for bound in certificate["bounds"])
    listed = set(certificate["columns"]["feature"][:n])
    listed_bytes = {(table.column(j)[keep] + 0.0).tobytes() for j in listed}
    for j in range(table.features):
        if j not in listed and (table.column(j)[keep] + 0.0).tobytes() not in listed_bytes:
            yield f"columns.feature: column {j} of the matrix is in no scope, but no candidates are meant"
            return


def _crowded(columns: list[int], evidence: Evidence) -> str | None:
    """Why these columns may not be in use together, or None when they may."""
    problem = evidence.problem
    inside = np.array(columns, dtype=np.intp)
    inside = inside[evidence.charged[inside]]
    if problem["max_terms"] is not None and len(inside) > problem["max_terms"]:
        return f"{len(inside)} charged columns, but problem.max_terms is {problem['max_terms']}"
    if problem["max_features"] is not None:
        features = len(np.unique(evidence.feature[inside]))
        if features > problem["max_features"]:
            return f"{features} features, but problem.max_features is {problem['max_features']}"
    for i, group in enumerate(problem.get("at_most_one_of", [])):
        several = sorted(set(evidence.feature[inside].tolist()).intersection(group))
        if len(several) > 1:
            return f"features {several[0]} and {several[1]} are both in problem.at_most_one_of[{i}]"
    return None


def _hole(leaves: list[dict[str, Any]], evidence: Evidence) -> str | None:
    """Why the leaves do not cover every choice of columns, or None when they do.

    A leaf is a cube of {in, out}^n. Cubes are split on the column that most leaves in play mention, until one
    leaf holds the whole cube; a cube with more columns or features in than are allowed is empty.
    """
    used = sorted({j for leaf in leaves for j in (*leaf["forced_in"], *leaf["forced_out"])})
    position = {j: i for i, j in enumerate(used)}
    literal = np.zeros((len(leaves), len(used)), dtype=np.int8)
    for row, leaf in enumerate(leaves):
        literal[row, [position[j] for j in leaf["forced_in"]]] = 1
        literal[row, [position[j] for j in leaf["forced_out"]]] = -1
    stack: list[tuple[Indices, list[int], list[int]]] = [(np.arange(len(leaves)), [], [])]
    for _ in range(COVER_STEPS * (10 + len(leaves))):
        if not stack:
            return None
        live, ins, outs = stack.pop()
        if ins and _crowded([used[i] for i in ins], evidence):
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
    objective, leaves = certificate["solution"]["objective"], bound["leaves"]
    unproved, values = unproved_curves(evidence, bound), leaf_bounds(evidence, bound, leaves)
    for i, (leaf, value) in enumerate(zip(leaves, values.tolist(), strict=True)):
        if crowded := _crowded(leaf["forced_in"], evidence):
            yield f"{path}.leaves[{i}].forced_in: {crowded}"
        elif i in unproved:
            yield f"{path}.leaves[{i}].curve: more is set aside than the curvature that is left"
        elif not leaf["bound"] <= value + evidence.tolerance:
            yield f"{path}.leaves[{i}].bound: claimed {leaf['bound']!r}, but its weights prove {value!r}"
    if (hole := _hole(leaves, evidence)) is not None:
        yield f"{path}.leaves: {hole}"
    null, lower = certificate["null"]["objective"], bound["lower_bound"]
    smallest = min(objective, evidence.reference, *(leaf["bound"] for leaf in leaves))
    yield from _differ(f"{path}.lower_bound", lower, smallest, ARITHMETIC * abs(smallest))
    gap, possible = objective - lower, null - lower
    if possible <= evidence.tolerance:  # no model could improve on the empty one
        guarantee = float(objective <= max(null, lower) + evidence.tolerance)
    else:
        guarantee = min(1.0, max(0.0, (null - objective) / possible))
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
    """Recompute every claim of a certificate from the data.

    Parameters
    ----------
    certificate : dict
        The content of the file.
    X : array or frame of shape (rows, features)
        The table, or the matrix, with NaN or None for missing values.
    y : array-like, optional
        Booleans, 0/1 or -1/+1; the targets for the squared loss. Not used for a matrix with another loss.
    sample_weight : array-like, optional
        Weights of the rows, as in the fit.

    Returns
    -------
    list of str
        A sentence for every fault, each starting with a JSON path; empty when all claims hold.

    Raises
    ------
    ValueError
        For data that no certificate could be checked against.
    """
    faults = structure_faults(certificate)
    if not faults:
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is no claim that holds
            faults = list(_claim_faults(certificate, X, y, sample_weight))
    version = certificate.get("version") if isinstance(certificate, dict) else None
    if faults and version in range(1, VERSION):
        faults.append(f"version: {version} was checked by other rules; prove it again")
    return faults


def _claim_faults(certificate: dict[str, Any], X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
    """The claims in the order of docs/certificate.md."""
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
    evidence = evidence_of(certificate, table)
    if evidence.reach > LARGEST_MARGIN:
        yield f"problem.radius: margins of {evidence.reach:g} are too large to be checked in double precision"
    yield from _solution_faults(certificate["solution"], "solution", evidence)
    yield from _points_faults(certificate, evidence)
    yield from _null_faults(certificate, evidence)
    for number in range(len(certificate["bounds"])):
        yield from _bound_faults(certificate, number, evidence)
    yield from _status_faults(certificate, evidence)


def verify(certificate: Any, X: Any, y: Any = None, sample_weight: Any = None) -> bool:
    """Whether every claim of the certificate holds for this table."""
    return not check(certificate, X, y, sample_weight)

"""An independent check of a certificate: is every number in the file true of this table?

Imports NumPy and the standard library only. Nothing is shared with the code that writes certificates, so an
error there cannot hide here. The equations are those of docs/mathematics.md: the objective (L0/Lk), the row
weights u_i = s_i v_i with v_i = theta (-loss'(F_i)), the edges c_j = sum_i u_i a_ij, the worth of a column
kappa_j = max over 0 <= w <= M_j of (c_j - l1) w - l2 w^2 / 2, and the bound D(u) of a leaf of the search.

The rows enter only through ``data_digest``, which does not depend on their order:

    Rows of weight zero are dropped. All arithmetic is on uint64 and wraps. Per row, h = 0x9E3779B97F4A7C15;
    for every feature in order, with b the bits of the float64 value (any NaN: 0x7ff8000000000000; -0.0: 0):
        h ^= b;  h *= 0xBF58476D1CE4E5B9;  h ^= h >> 29
    then, with p = 1 for a positive label and 0 for a negative one (no labels: 1):
        h ^= p;  h *= 0x94D049BB133111EB;  h ^= h >> 32
    If all weights are integers with a sum below 2^53, the row counts w times. Otherwise it counts once and
        h ^= bits(w);  h *= 0x9E3779B97F4A7C15;  h ^= h >> 30
    lane1 = sum of count * h;  lane2 = sum of count * mix(h),  mix(h) = (h ^ (h >> 31)) * 0xD6E8FEB86659FD93
    The digest is lane1 and lane2, each as 16 lower-case hexadecimal digits.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

TOLERANCE = 1e-9  # for numbers that are sums over rows
ARITHMETIC = 1e-14  # for numbers derived from other numbers of the file
UNSEEN_SLACK = 1e-12  # an unseen column worth no more than this counts as worthless
COVER_STEPS = 1_000_000  # cubes looked at before the cover of the search space counts as unproved
_ROW_BLOCK = 65_536

# ---------------------------------------------------------------- structure: keys, types, finite numbers

# fmt: off
_PRICES = {"l1": "amount", "l2": "amount", "l0": "amount", "max_weight": ("maybe", "amount")}
_COLUMNS: dict[str, Any] = {"feature": ("list", "count"), "charged": ("list", "flag")}
_COLUMNS |= {k: ("list", v) for k, v in _PRICES.items()}
_STUMPS = {"cut": ("list", ("maybe", "number")), "missing_left": ("list", "flag"),
           "polarity": ("list", (1, -1))}
_MODEL = {"intercept": "number", "weights": ("list", ("pair", "count", "number"))}
_LEAF = _MODEL | {"forced_in": ("list", "count"), "forced_out": ("list", "count"),
                  "theta": "number", "bound": "number"}
_BOUND = {"scope": ("pool", "dictionary"), "lower_bound": "number", "gap": "number", "relative_gap": "number",
          "guarantee": "number", "leaves": ("list", _LEAF)}
_CERTIFICATE: dict[str, Any] = {
    "format": ("cardboost-certificate",), "version": (1,), "kind": ("stumps", "matrix"),
    "problem": {"loss": ("logistic", "exponential"), "max_terms": ("maybe", "count"),
                "intercept_box": ("maybe", "amount")},
    "columns": _COLUMNS,  # stumps have more
    "unseen": ("maybe", _PRICES), "dictionary": ("maybe", {"cuts": ("list", ("list", "number"))}),
    "solution": _MODEL | {"objective": "number"}, "null": {"intercept": "number", "objective": "number"},
    "bounds": ("list", _BOUND), "status": ("optimal", "feasible"), "tolerance": "amount",
    "data": {"rows": "count", "features": "count", "digest": "text"}, "digest": "text",
}
# fmt: on


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < 2**1000


_ATOMS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "number": ("a finite number", _is_number),
    "amount": ("a finite number >= 0", lambda v: _is_number(v) and v >= 0),
    "count": ("an integer >= 0", lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**53),
    "flag": ("true or false", lambda v: isinstance(v, bool)),
    "text": ("a string", lambda v: isinstance(v, str)),
}


def _shape_faults(value: Any, spec: Any, path: str) -> Iterator[str]:
    """Compare a JSON value with its specification: an atom, a dict, a list, a pair, maybe null, choices."""
    if isinstance(spec, str):
        wanted, holds = _ATOMS[spec]
        if not holds(value):
            yield f"{path}: expected {wanted}, found {value!r:.60}"
    elif isinstance(spec, dict):
        if not isinstance(value, dict):
            yield f"{path or 'certificate'}: expected an object, found {value!r:.60}"
            return
        prefix = f"{path}." if path else ""
        for key in spec.keys() - value.keys():
            yield f"{prefix}{key}: missing"
        for key in value.keys() - spec.keys():
            yield f"{prefix}{key}: not part of the format"
        for key in spec.keys() & value.keys():
            yield from _shape_faults(value[key], spec[key], prefix + key)
    elif spec[0] == "maybe":
        if value is not None:
            yield from _shape_faults(value, spec[1], path)
    elif spec[0] in ("list", "pair"):
        if not isinstance(value, list) or (spec[0] == "pair" and len(value) != len(spec) - 1):
            yield f"{path}: expected a {spec[0]}, found {value!r:.60}"
            return
        for i, item in enumerate(value):
            yield from _shape_faults(item, spec[1] if spec[0] == "list" else spec[i + 1], f"{path}[{i}]")
    elif not any(type(value) is type(choice) and value == choice for choice in spec):
        yield f"{path}: expected one of {', '.join(map(str, spec))}, found {value!r:.60}"


def _order_faults(indices: list[int], size: int, path: str) -> Iterator[str]:
    if any(b <= a for a, b in pairwise(indices)):
        yield f"{path}: column indices must be strictly increasing"
    if any(j >= size for j in indices):
        yield f"{path}: column index {max(indices)} is outside the pool of {size} columns"


def _pool_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """The pool fits the number of features, and the dictionary when there is one."""
    columns, features = certificate["columns"], certificate["data"]["features"]
    size = len(columns["feature"])
    for key, values in columns.items():
        if len(values) != size:
            yield f"columns.{key}: {len(values)} entries, but columns.feature has {size}"
    for j, feature in enumerate(columns["feature"]):
        if feature >= features:
            yield f"columns.feature[{j}]: {feature} is outside the {features} features of the data"
    scopes = [bound["scope"] for bound in certificate["bounds"]]
    if not scopes or len(set(scopes)) < len(scopes):
        yield "bounds: expected one bound, or one per scope"
    for key in ("unseen", "dictionary"):
        if (certificate[key] is not None) != ("dictionary" in scopes):
            yield f"{key}: must be present exactly when a bound has the scope dictionary"
    if certificate["kind"] == "matrix" and "dictionary" in scopes:
        yield "bounds: a matrix has no dictionary"
    if certificate["kind"] == "matrix" and certificate["problem"]["intercept_box"] is not None:
        yield "problem.intercept_box: must be null for a matrix"


def _dictionary_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """The cuts are sorted and hold those of the pool."""
    columns, lists = certificate["columns"], certificate["dictionary"]["cuts"]
    if len(lists) != certificate["data"]["features"]:
        yield f"dictionary.cuts: {len(lists)} lists for {certificate['data']['features']} features"
        return
    for f, cuts in enumerate(lists):
        if any(b <= a for a, b in pairwise(cuts)):
            yield f"dictionary.cuts[{f}]: cuts must be strictly increasing"
    known = [{None, *cuts} for cuts in lists]
    for j, (feature, cut) in enumerate(zip(columns["feature"], columns["cut"], strict=True)):
        if cut not in known[feature]:
            yield f"columns.cut[{j}]: {cut!r} is not among dictionary.cuts[{feature}]"


def _leaf_faults(certificate: dict[str, Any]) -> Iterator[str]:
    """The solution and the leaves name columns of the pool; a leaf is a cube with usable row weights."""
    size, boxed = len(certificate["columns"]["feature"]), certificate["problem"]["intercept_box"] is not None
    yield from _order_faults([j for j, _ in certificate["solution"]["weights"]], size, "solution.weights")
    for b, bound in enumerate(certificate["bounds"]):
        if not bound["leaves"]:
            yield f"bounds[{b}].leaves: empty"
        for i, leaf in enumerate(bound["leaves"]):
            path = f"bounds[{b}].leaves[{i}]"
            yield from _order_faults([j for j, _ in leaf["weights"]], size, f"{path}.weights")
            yield from _order_faults(leaf["forced_in"], size, f"{path}.forced_in")
            yield from _order_faults(leaf["forced_out"], size, f"{path}.forced_out")
            if set(leaf["forced_in"]) & set(leaf["forced_out"]):
                yield f"{path}.forced_out: a column is forced in and out"
            if not 0 < leaf["theta"] <= 1:
                yield f"{path}.theta: {leaf['theta']!r} is outside (0, 1]"
            if not boxed and leaf["intercept"] != 0:
                yield f"{path}.intercept: must be 0 without an intercept"


# ---------------------------------------------------------------- the data and the digests


@dataclass(frozen=True)
class _Table:
    """The rows as given: columns are read one at a time as float64; weights are raw."""

    rows: int
    features: int
    column: Callable[[int], Floats]
    positive: npt.NDArray[np.bool_]
    weight: Floats


def _read(X: Any, y: Any, sample_weight: Any) -> _Table:
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        names = list(X.columns)
        rows, features = len(X), len(names)
        column = lambda j: np.asarray(X[names[j]], dtype=np.float64)  # noqa: E731
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(f"X must have two dimensions, found {array.ndim}")
        rows, features = array.shape
        column = lambda j: np.asarray(array[:, j], dtype=np.float64)  # noqa: E731
    label = np.ones(rows) if y is None else np.asarray(y, dtype=np.float64)
    values = set(np.unique(label).tolist())
    if label.shape != (rows,) or not (values <= {0.0, 1.0} or values <= {-1.0, 1.0}):
        raise ValueError("y must hold one label per row: booleans, 0 and 1, or -1 and 1")
    weight = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (rows,) or not np.all(np.isfinite(weight)) or np.any(weight < 0) or not np.any(weight):
        raise ValueError("sample_weight must hold one finite number >= 0 per row, not all zero")
    return _Table(rows, features, column, label > 0, weight)


def _bits(values: Floats) -> Words:
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # adding 0.0 turns -0.0 into 0.0
    return np.where(np.isnan(values), np.uint64(0x7FF8000000000000), bits)


def _stir(state: Words, word: Words, factor: int, shift: int) -> Words:
    mixed = (state ^ word) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(shift))


def data_digest(X: Any, y_positive: Any = None, sample_weight: Any = None) -> str:
    """32 hexadecimal digits that stand for the rows in any order; the module's first lines define them."""
    return _table_digest(_read(X, y_positive, sample_weight))


def _table_digest(table: _Table) -> str:
    keep = np.flatnonzero(table.weight > 0)
    weight, positive = table.weight[keep], table.positive[keep].astype(np.uint64)
    blocks = [slice(a, a + _ROW_BLOCK) for a in range(0, len(keep), _ROW_BLOCK)]
    state = np.full(len(keep), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for j in range(table.features):
        values = table.column(j)
        for block in blocks:
            state[block] = _stir(state[block], _bits(values[keep[block]]), 0xBF58476D1CE4E5B9, 29)
    counted = bool(np.all(weight == np.floor(weight))) and math.fsum(weight / 2.0) < 2.0**52
    lanes = [0, 0]
    for block in blocks:
        h = _stir(state[block], positive[block], 0x94D049BB133111EB, 32)
        if not counted:
            h = _stir(h, _bits(weight[block]), 0x9E3779B97F4A7C15, 30)
        count = weight[block].astype(np.uint64) if counted else np.ones(len(h), dtype=np.uint64)
        lanes[0] += int(np.sum(h * count))
        lanes[1] += int(np.sum((h ^ (h >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93) * count))
    return "".join(f"{lane % 2**64:016x}" for lane in lanes)


def content_digest(certificate: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON of everything except the digest itself."""
    content = {key: value for key, value in certificate.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- columns: margins and edges


@dataclass(frozen=True)
class _Matrix:
    """Columns given as numbers a_ij, the label multiplied in."""

    a: Floats

    def margins(self, intercept: float, weights: list[Any]) -> Floats:
        index = [j for j, _ in weights]
        return self.a[:, index] @ np.array([w for _, w in weights], dtype=np.float64)

    def edges(self, u: Floats) -> tuple[Floats, float]:
        return u @ self.a, -math.inf


def _left_sums(histogram: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sums over the left side of every stump of a feature: [cut, missing values on the left]."""
    values = np.cumsum(histogram[:-1])
    return np.stack([values, values + histogram[-1]], axis=1)


@dataclass(frozen=True)
class _Stumps:
    """Stumps over binned features: bin k holds the values in (cut k-1, cut k], the last bin the missing."""

    y: Floats
    codes: dict[int, npt.NDArray[np.intp]]
    bins: dict[int, int]
    pool: list[tuple[int, int, int, int]]  # feature, last bin on the left, polarity, missing on the left
    unseen: dict[int, npt.NDArray[np.bool_]]  # per feature: [polarity +/-, cut, missing side]

    def margins(self, intercept: float, weights: list[Any]) -> Floats:
        tables: dict[int, Floats] = {}
        for j, w in weights:
            feature, last, polarity, missing_left = self.pool[j]
            table = tables.setdefault(feature, np.zeros(self.bins[feature]))
            left = np.arange(len(table)) <= last
            left[-1] = missing_left
            table += w * polarity * np.where(left, 1.0, -1.0)
        score = np.full(len(self.y), float(intercept))
        for feature, table in tables.items():
            score += table[self.codes[feature]]
        return self.y * score

    def edges(self, u: Floats) -> tuple[Floats, float]:
        """The edges of the pool, and the largest edge of any dictionary stump that is not in it."""
        uy, unseen_edge, above = u * self.y, -math.inf, {}
        for feature, codes in self.codes.items():
            histogram = np.bincount(codes, weights=uy, minlength=self.bins[feature])
            above[feature] = edge = 2.0 * _left_sums(histogram) - histogram.sum()
            if feature in self.unseen:
                both = np.stack([edge, -edge])
                unseen_edge = float(np.max(both, where=self.unseen[feature], initial=unseen_edge))
        return np.array([p * above[f][k, side] for f, k, p, side in self.pool], dtype=np.float64), unseen_edge


def _bin(certificate: dict[str, Any], table: _Table, keep: npt.NDArray[np.intp]) -> _Stumps:
    columns, dictionary = certificate["columns"], certificate["dictionary"]
    cuts: dict[int, set[float]] = {}
    if dictionary is not None:
        cuts = {feature: set(values) for feature, values in enumerate(dictionary["cuts"])}
    for feature, cut in zip(columns["feature"], columns["cut"], strict=True):
        cuts.setdefault(feature, set()).update([] if cut is None else [cut])
    edges = {feature: np.array(sorted(values), dtype=np.float64) for feature, values in cuts.items()}
    codes = {}
    for feature, edge in edges.items():
        values = table.column(feature)[keep]
        codes[feature] = np.where(np.isnan(values), len(edge) + 1, np.searchsorted(edge, values, side="left"))
    fields = (columns[key] for key in ("feature", "cut", "polarity", "missing_left"))
    pool = [
        (f, len(edges[f]) if cut is None else int(np.searchsorted(edges[f], cut)), p, int(side))
        for f, cut, p, side in zip(*fields, strict=True)
    ]
    bins = {feature: len(edge) + 2 for feature, edge in edges.items()}
    stumps = _Stumps(np.where(table.positive[keep], 1.0, -1.0), codes, bins, pool, {})
    if dictionary is not None:
        stumps.unseen.update(_unseen(stumps))
    return stumps


def _unseen(stumps: _Stumps) -> dict[int, npt.NDArray[np.bool_]]:
    """Which stumps of the dictionary are neither constant nor equal, row by row, to a column of the pool.

    A set of rows is known by the wrapping sum of a random word per row, from histograms as for the edges.
    The words are drawn afresh, so no file can be prepared against them; two sets agree with chance 2^-64.
    """
    m = len(stumps.y)
    word = np.random.default_rng().integers(2**64, size=m, dtype=np.uint64)
    total, name, constant = word.sum(), {}, {}
    for feature, codes in stumps.codes.items():
        sums = np.zeros(stumps.bins[feature], dtype=np.uint64)
        np.add.at(sums, codes, word)
        left, count = _left_sums(sums), _left_sums(np.bincount(codes, minlength=len(sums)))
        name[feature] = np.stack([left, np.full_like(left, total) - left])  # the rows where the stump says +1
        constant[feature] = (count == 0) | (count == m)
    seen = np.array([name[f][(1 - p) // 2, k, side] for f, k, p, side in stumps.pool], dtype=np.uint64)
    return {feature: ~constant[feature] & ~np.isin(name[feature], seen) for feature in name}


# ---------------------------------------------------------------- objective and bound


@dataclass(frozen=True)
class Evidence:
    """What claims are checked against: row shares s, columns with margins and edges, prices per column."""

    share: Floats
    columns: _Matrix | _Stumps
    prices: dict[str, Floats]
    charged: npt.NDArray[np.bool_]


def gather(certificate: dict[str, Any], X: Any, y: Any = None, sample_weight: Any = None) -> Evidence:
    """Read the table for a certificate whose structure is sound (see ``check``)."""
    return _gather(certificate, _read(X, y, sample_weight))


def _gather(certificate: dict[str, Any], table: _Table) -> Evidence:
    scaled = table.weight / table.weight.max()
    share = scaled / scaled.sum()
    keep = np.flatnonzero(share > 0)
    held = certificate["columns"]
    columns: _Matrix | _Stumps
    if certificate["kind"] == "matrix":
        a = np.empty((len(keep), len(held["feature"])))
        for j, feature in enumerate(held["feature"]):
            a[:, j] = table.column(feature)[keep]
        columns = _Matrix(a)
    else:
        columns = _bin(certificate, table, keep)
    prices = {key: _as_floats(held[key]) for key in _PRICES}
    return Evidence(share[keep], columns, prices, np.array(held["charged"], dtype=bool))


def _as_floats(values: list[Any]) -> Floats:
    return np.array([math.inf if v is None else v for v in values], dtype=np.float64)


def _mean_loss(loss: str, margins: Floats, share: Floats) -> float:
    return float(share @ (np.logaddexp(0.0, -margins) if loss == "logistic" else np.exp(-margins)))


def _row_weights(loss: str, margins: Floats, share: Floats, theta: float) -> tuple[Floats, float]:
    """u_i = s_i v_i with v_i = theta (-loss'(F_i)), and the sum of s_i times the dual value of v_i."""
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


def evaluate_bound(certificate: dict[str, Any], leaf: dict[str, Any], scope: str, data: Evidence) -> float:
    """D(u) of one leaf; minus infinity where the leaf's row weights bound nothing."""
    problem, columns = certificate["problem"], data.columns
    with np.errstate(over="ignore", invalid="ignore"):
        margins = columns.margins(leaf["intercept"], leaf["weights"])
        u, value = _row_weights(problem["loss"], margins, data.share, leaf["theta"])
        edges, unseen_edge = columns.edges(u)
        worth = _worth(edges, data.prices)
        if problem["intercept_box"] is not None and isinstance(columns, _Stumps):
            value -= problem["intercept_box"] * abs(float(u @ columns.y))
        unseen = 0.0
        if scope == "dictionary" and unseen_edge > -math.inf:
            prices = {key: _as_floats([certificate["unseen"][key]])[0] for key in _PRICES}
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
            slots = max(0, problem["max_terms"] - int(np.count_nonzero(forced_in & data.charged)))
            top = np.sort(bonus[free & data.charged])[::-1][:slots]
            value -= float(np.sum(bonus[free & ~data.charged]))
            value -= float(np.sum(np.maximum(top, unseen)))
            if unseen > 0:
                value -= (slots - len(top)) * unseen
    return value if math.isfinite(value) else -math.inf


# ---------------------------------------------------------------- the claims


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
        if box is None or isinstance(evidence.columns, _Matrix):
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
        value = evaluate_bound(certificate, leaf, bound["scope"], evidence)
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
    guarantee = min(1.0, max(0.0, (null - objective) / (null - lower))) if null > lower else 1.0
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
    kind = certificate.get("kind") if isinstance(certificate, dict) else None
    columns = _COLUMNS if kind == "matrix" else _COLUMNS | _STUMPS
    faults = list(_shape_faults(certificate, {**_CERTIFICATE, "columns": columns}, ""))
    if faults:
        return sorted(faults)
    if (digest := content_digest(certificate)) != certificate["digest"]:
        faults.append(f"digest: claimed {certificate['digest']}, recomputed {digest}")
    unusable = list(_pool_faults(certificate))
    if not unusable and certificate["dictionary"] is not None:
        unusable += _dictionary_faults(certificate)
    unusable += _leaf_faults(certificate)
    if unusable:
        return faults + unusable
    if kind == "stumps" and y is None:
        raise ValueError("y is needed to check a certificate for stumps")
    table, data = _read(X, y if kind == "stumps" else None, sample_weight), certificate["data"]
    if table.features != data["features"]:
        return [*faults, f"data.features: claimed {data['features']}, found {table.features}"]
    if (rows := int(np.count_nonzero(table.weight))) != data["rows"]:
        faults.append(f"data.rows: claimed {data['rows']}, found {rows} rows with a weight")
    if (digest := _table_digest(table)) != data["digest"]:
        faults.append(f"data.digest: claimed {data['digest']}, recomputed {digest}")
    evidence = _gather(certificate, table)
    faults += [*_solution_faults(certificate, evidence), *_null_faults(certificate, evidence)]
    for number in range(len(certificate["bounds"])):
        faults += _bound_faults(certificate, number, evidence)
    return faults + list(_status_faults(certificate))


def verify(certificate: Any, X: Any, y: Any = None, sample_weight: Any = None) -> bool:
    """Whether every claim of the certificate holds for this table."""
    return not check(certificate, X, y, sample_weight)

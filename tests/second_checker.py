"""A second checker of certificates, written from docs/certificate.md alone.

It imports NumPy and the standard library, nothing of the package, and shares no line with the package's
checker: what both accept has been computed twice. Clarity goes before speed. Sections follow the page.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import itertools
import json
import math
from types import SimpleNamespace

import numpy as np

CURVED = ("logistic", "exponential")
LOSSES = ("logistic", "exponential", "squared_hinge", "smooth_hinge", "squared", "soft margin")
STUMP = ("feature", "cut", "category", "first", "polarity", "missing_left")
PRICES = ("l1", "l2", "l0", "max_weight")
SUMS, OPTIMAL, ARITHMETIC, GUARANTEE, TARGET, WORTHLESS = 1e-9, 1e-4, 1e-12, 1e-9, 1e-6, 1e-15
REQUIRED = 1e4  # of the size
ROOM, WIDER, PIVOT, SPARE = 5e-10, 5e-7, 1e-9, 5e-9
REACH, LARGEST_REACH, EDGE = 5e-15, 1e5, 2e-16


def check(certificate, X, y=None, sample_weight=None) -> list[str]:
    """Every fault of the certificate as a sentence that begins with its path; none if all claims hold."""
    faults = form(certificate)
    if not faults:
        content = modern(certificate)
        if file_digest(certificate) != certificate["digest"]:
            faults.append("digest: the file was changed")
        data = read_data(content, X, y, sample_weight, faults)
        if data is not None:
            claims(content, data, faults)
    version = certificate.get("version") if isinstance(certificate, dict) else None
    if faults and is_whole(version) and 1 <= version <= 5:
        faults.append(f"version: {version} was checked by other rules; prove it again")
    return faults


# ---------------------------------------------------------------- the form of the file


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value):
    return (is_whole(value) and abs(value) < 2**63) or (isinstance(value, float) and math.isfinite(value))


def is_label(value):
    return isinstance(value, (str, bool)) or is_number(value) or (is_whole(value) and abs(value) < 2**1000)


def is_other(value):
    return isinstance(value, dict) and list(value) == ["other"] and value["other"] is True


def ascending(values):
    return all(a < b for a, b in itertools.pairwise(values))


def is_indices(value):
    return isinstance(value, list) and all(map(KINDS["count"], value)) and ascending(value)


def is_pairs(value):
    pairs = isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
    return pairs and is_indices([j for j, _ in value]) and all(is_number(number) for _, number in value)


KINDS = {
    "number": is_number,
    "amount": lambda value: is_number(value) and value >= 0,
    "positive": lambda value: is_number(value) and value > 0,
    "share": lambda value: is_number(value) and 0 <= value <= 1,
    "count": lambda value: is_whole(value) and 0 <= value < 2**53,
    "flag": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "label": is_label,
    "category": lambda value: is_label(value) or is_other(value),
    "indices": is_indices,
    "pairs": is_pairs,
    "vector": lambda value: isinstance(value, str) or is_pairs(value),
}


def layout(version, stumps):
    """Keys and kinds: a name of KINDS ("?": or null), a tuple of constants, [kind], {key: kind}, and
    {None: kind}, which is that kind or null."""
    # fmt: off
    solution = {"intercept": "number", "weights": "pairs", "objective": "number"}
    prices = {"l1": "amount", "l2": "amount", "l0": "amount", "max_weight": "amount?"}
    centre = {"intercept": "number", "centre": "vector"}
    entry = {"kept": ["label"], "rare": "flag", "order": {None: ["count"]}}
    columns = {"feature": ["count"], "charged": ["flag"], **{key: [kind] for key, kind in prices.items()}}
    if stumps:
        columns |= {"cut": ["number?"], "category": ["category?"], "first": ["count?"],
                    "polarity": [(1, -1)], "missing_left": ["flag"]}
    leaf = {"forced_in": "indices", "forced_out": "indices", "intercept": "number", "weights": "vector",
            "theta": "share", "curve": {None: centre | {"aside": "vector"}}, "bound": "number"}
    bound = {"scope": ("pool", "dictionary"), "columns": "count", "leaves": [leaf], "caps": {None: centre},
             "lower_bound": "number", "gap": "number", "relative_gap": "number", "guarantee": "number"}
    problem = {"loss": LOSSES, "max_terms": "count?", "max_features": "count?",
               "feature_costs": {None: ["amount"]}, "intercept_box": "amount?", "class_weight": ["positive"],
               "target": {None: {"mean": "number", "scale": "positive"}}, "radius": "positive?"}
    keys = {
        "format": ("cardboost-certificate",), "version": "count", "kind": ("stumps", "matrix"),
        "problem": problem, "columns": columns, "categories": {None: [{None: entry}]},
        "unseen": {None: prices},
        "dictionary": {None: {"cuts": [["number"]], "monotonic": {None: [(-1, 0, 1)]}}},
        "solution": solution, "null": {"intercept": "number", "objective": "number"},
        "points": {None: {"unit": "positive", "most": "count", "continuous": solution}},
        "bounds": [bound], "candidates": "flag",
        "status": ("optimal", "optimal among candidates", "feasible"),
        "data": {"rows": "count", "features": "count", "digest": "text"}, "digest": "text",
    }
    # fmt: on
    if version == 7:
        problem |= {"excluded": ["count"], "missing": {None: [(-1, 0, 1)]},
                    "at_most_one_of": [["count"]], "must_include": ["count"]}  # fmt: skip
    if version < 6:
        del keys["candidates"]
        keys["tolerance"] = "number"
    if version < 5:
        problem["loss"] = ("logistic", "exponential", "squared")
    newer = [(5, problem, "radius"), (4, keys, "points"), (3, bound, "caps"), (3, leaf, "curve")]
    for since, holder, key in [*newer, (2, columns, "first"), (2, entry, "order")]:
        if version < since:
            holder.pop(key, None)
    return keys


def compare(value, kind, path, faults):
    """Faults of a value that is not of its kind."""
    if isinstance(kind, dict) and None in kind:
        if value is not None:
            compare(value, kind[None], path, faults)
    elif isinstance(kind, dict):
        if not isinstance(value, dict):
            faults.append(f"{path}: must be an object")
            return
        for key in {*kind, *value}:
            where = f"{path}.{key}" if path else str(key)
            if key not in value or key not in kind:
                faults.append(f"{where}: {'is not part of the format' if key in value else 'is missing'}")
            else:
                compare(value[key], kind[key], where, faults)
    elif isinstance(kind, list):
        if not isinstance(value, list):
            faults.append(f"{path}: must be a list")
            return
        for i, each in enumerate(value):
            compare(each, kind[0], f"{path}[{i}]", faults)
    elif isinstance(kind, tuple):
        if not (isinstance(value, str) or is_whole(value)) or value not in kind:
            faults.append(f"{path}: must be one of {kind}")
    elif not (value is None and kind.endswith("?")) and not KINDS[kind.rstrip("?")](value):
        faults.append(f"{path}: {value!r:.60} is no {kind}")


def form(certificate):
    """Faults of form: first the kinds of all values, then how they fit together."""
    if not isinstance(certificate, dict):
        return ["certificate: must be an object"]
    version, kind = certificate.get("version"), certificate.get("kind")
    if not is_whole(version) or not 1 <= version <= 7:
        return ["version: must be a whole number from 1 to 7"]
    faults: list[str] = []
    compare(certificate, layout(version, kind == "stumps"), "", faults)
    if not faults:
        fit_together(modern(certificate), faults)
    return faults


def modern(certificate):
    """The same content with all keys of version 6; what old versions do not have is null."""
    content = copy.deepcopy(certificate)
    content.setdefault("points", None)
    content["problem"].setdefault("radius", None)
    content.setdefault("candidates", content["kind"] == "stumps" or content["status"] != "optimal")
    for entry in content["categories"] or []:
        if entry is not None:
            entry.setdefault("order", None)
    content["columns"].setdefault("first", [None] * len(content["columns"]["feature"]))
    for bound in content["bounds"]:
        bound.setdefault("caps", None)
        for leaf in bound["leaves"]:
            leaf.setdefault("curve", None)
    return content


def demanded(problem, key):
    """What is demanded of features; before version 7 nothing is."""
    return problem.get(key) or []


def depends_on_features(problem):
    limits = (problem["max_features"] is not None, problem["feature_costs"] is not None)
    return any(limits) or bool(demanded(problem, "at_most_one_of") or demanded(problem, "must_include"))


def fit_together(content, faults):
    def need(ok, path, text):
        if not ok:
            faults.append(f"{path}: {text}")

    problem, columns, features = content["problem"], content["columns"], content["data"]["features"]
    stumps, loss, bounds = content["kind"] == "stumps", problem["loss"], content["bounds"]
    size, version = len(columns["feature"]), content["version"]
    for key, values in columns.items():
        need(len(values) == size, f"columns.{key}", "all lists of columns have one length")
    need(all(f < features for f in columns["feature"]), "columns.feature", "there is no such feature")
    need(version >= 6 or content["tolerance"] == 0.0001, "tolerance", "must be 0.0001")
    need((problem["target"] is not None) == (loss == "squared"), "problem.target", "for the squared loss")
    need((problem["radius"] is not None) == (loss == "soft margin"), "problem.radius", "for a soft margin")
    plain = stumps and loss != "squared"
    need(len(problem["class_weight"]) == 2, "problem.class_weight", "must be two numbers")
    need(plain or problem["class_weight"] == [1, 1], "problem.class_weight", "must be [1, 1]")
    for key in ("max_features", "feature_costs", "intercept_box"):
        need(stumps or problem[key] is None, f"problem.{key}", "must be null for a matrix")
    need(stumps or content["categories"] is None, "categories", "must be null for a matrix")
    need(version < 7 or (stumps and loss != "soft margin"), "version", "7 is not for these models")
    costs = problem["feature_costs"]
    need(costs is None or len(costs) == features, "problem.feature_costs", "one for every feature")
    by_feature = depends_on_features(problem)
    need(not by_feature or (problem["max_terms"] or 0) <= 10_000, "problem.max_terms", "at most 10000")
    need(len(content["data"]["digest"]) == 32, "data.digest", "must have 32 digits")
    need(not stumps or content["candidates"], "candidates", "must be true for stumps")
    scopes = [bound["scope"] for bound in bounds]
    wide = "dictionary" in scopes
    ordered = scopes in (["pool"], ["dictionary"], ["dictionary", "pool"])
    need(
        ordered or (version < 6 and scopes == ["pool", "dictionary"]), "bounds", "one per scope, widest first"
    )
    need(stumps or not wide, "bounds", "a matrix has no dictionary")
    for key in ("unseen", "dictionary"):
        need((content[key] is not None) == wide, key, "is given for the scope of all stumps, and only then")
    if faults:
        return
    if stumps:
        fit_stumps(content, wide, need)
    if wide or depends_on_features(content["problem"]):
        need(all(columns["charged"]), "columns.charged", "all columns are charged")
    if wide:
        for key in PRICES:
            same = all(value == content["unseen"][key] for value in columns[key])
            need(same, f"columns.{key}", "all stumps have the prices and the box of `unseen`")
    for path, solution in solutions(content):
        for bound in bounds:
            inside = all(j < bound["columns"] for j, _ in solution["weights"])
            need(inside, f"{path}.weights", "a column outside of a scope")
    no_intercept = problem["intercept_box"] is None
    for i, bound in enumerate(bounds):
        path, n = f"bounds[{i}]", bound["columns"]
        need(n == size if bound["scope"] == "dictionary" else n <= size, f"{path}.columns", "not so many")
        need(bound["leaves"], f"{path}.leaves", "there is none")
        points = [(f"{path}.caps", bound["caps"], "centre", n)] if bound["caps"] else []
        for k, leaf in enumerate(bound["leaves"]):
            name, curve = f"{path}.leaves[{k}]", leaf["curve"]
            forced = leaf["forced_in"] + leaf["forced_out"]
            need(all(j < n for j in forced), f"{name}.forced_in", "a column outside of the scope")
            need(len(set(forced)) == len(forced), f"{name}.forced_out", "a column both in and out")
            need(curve is None or loss in CURVED, f"{name}.curve", "not for this loss")
            points.append((name, leaf, "weights", n if curve else size))
            points += [(f"{name}.curve", curve, key, n) for key in ("centre", "aside") if curve]
        for name, point, key, most in points:
            need(not (no_intercept and point["intercept"]), f"{name}.intercept", "there is none")
            if isinstance(point[key], str):
                need(is_packed(point[key], n), f"{name}.{key}", "must be base64 of finite float32 numbers")
            else:
                need(all(j < most for j, _ in point[key]), f"{name}.{key}", "a column outside of the scope")
    if loss == "soft margin":
        fit_soft_margin(content, need)


def fit_soft_margin(content, need):
    problem = content["problem"]
    for key in ("max_terms", "max_features", "feature_costs"):
        need(problem[key] is None, f"problem.{key}", "must be null for a soft margin")
    need(content["points"] is None, "points", "must be null for a soft margin")
    need(problem["intercept_box"] in (None, problem["radius"]), "problem.intercept_box", "must be the radius")
    for key, free in zip(PRICES, (0, 0, 0, None), strict=True):
        values = content["columns"][key] + ([content["unseen"][key]] if content["unseen"] else [])
        need(all(value == free for value in values), f"columns.{key}", "there are no prices and no boxes")
    for i, bound in enumerate(content["bounds"]):
        need(bound["caps"] is None, f"bounds[{i}].caps", "must be null for a soft margin")
        for k, leaf in enumerate(bound["leaves"]):
            plain = not leaf["forced_in"] and not leaf["forced_out"] and leaf["theta"] == 1
            need(plain, f"bounds[{i}].leaves[{k}]", "a soft margin forces nothing, with theta 1")


def fit_stumps(content, wide, need):
    """Categories, the dictionary and the stumps of the pool."""
    columns, features = content["columns"], content["data"]["features"]
    categories = content["categories"] or [None] * features
    cuts = content["dictionary"]["cuts"] if wide else [[]] * features
    monotonic = (wide and content["dictionary"]["monotonic"]) or [0] * features
    for path, given in (
        ("categories", categories),
        ("dictionary.cuts", cuts),
        ("dictionary.monotonic", monotonic),
    ):
        need(len(given) == features, path, "one entry for every feature")
    if not len(categories) == len(cuts) == len(monotonic) == features:
        return
    for f, entry in enumerate(categories):
        need(ascending(cuts[f]), f"dictionary.cuts[{f}]", "must ascend")
        if entry is not None:
            kept, order = entry["kept"], entry["order"]
            alike = len({isinstance(label, str) for label in kept}) < 2
            need(alike and ascending(kept), f"categories[{f}].kept", "must ascend, all text or none")
            whole = order is None or sorted(order) == list(range(len(kept) + entry["rare"]))
            need(whole, f"categories[{f}].order", "must hold the number of every category once")
            need(not cuts[f], f"dictionary.cuts[{f}]", "a categorical feature has none")
            need(not monotonic[f], f"dictionary.monotonic[{f}]", "must be 0")
    problem = content["problem"]
    excluded, missing = demanded(problem, "excluded"), problem.get("missing")
    missing = [0] * features if missing is None else missing
    need(all(demanded(problem, "at_most_one_of")), "problem.at_most_one_of", "a group is empty")
    for named in (excluded, demanded(problem, "must_include"), *demanded(problem, "at_most_one_of")):
        need(ascending(named) and all(f < features for f in named), "problem", f"{named}: ascending features")
    enough = len(demanded(problem, "must_include")) <= infinite(problem["max_terms"])
    need(enough, "problem.must_include", "more features than terms")
    need(len(missing) == features, "problem.missing", "one entry for every feature")
    if len(missing) != features:
        return
    for j, (f, polarity, left) in enumerate(
        zip(columns["feature"], columns["polarity"], columns["missing_left"], strict=True)
    ):
        need(f not in excluded, f"columns.feature[{j}]", "is excluded")
        need(
            missing[f] * polarity == (missing[f] and (1 if left else -1)),
            f"columns.missing_left[{j}]",
            "side",
        )
    parts = zip(*(columns[key] for key in STUMP[:5]), strict=True)
    for j, (f, cut, category, first, polarity) in enumerate(parts):
        entry = categories[f]
        if entry is None:
            need(category is None, f"columns.category[{j}]", "must be null on a numeric feature")
            need(first is None, f"columns.first[{j}]", "must be null on a numeric feature")
            if wide and cut is not None:
                need(cut in cuts[f], f"columns.cut[{j}]", "is no cut of the dictionary")
                need(monotonic[f] != polarity, f"columns.polarity[{j}]", "goes against the direction")
            continue
        need(cut is None, f"columns.cut[{j}]", "must be null on a categorical feature")
        need((category is None) != (first is None), f"columns.category[{j}]", "either a category or a set")
        if first is not None:
            ok = entry["order"] is not None and 2 <= first < len(entry["order"])
            need(ok, f"columns.first[{j}]", "there is no such set")
        if category is not None:
            known = entry["rare"] if is_other(category) else category in entry["kept"]
            need(known, f"columns.category[{j}]", "there is no such category")


def is_packed(text, n):
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        return False
    return len(raw) == 4 * n and bool(np.all(np.isfinite(np.frombuffer(raw, "<f4"))))


def unpacked(value, n):
    """Numbers of n columns, from pairs or base64."""
    if isinstance(value, str):
        packed = np.frombuffer(base64.b64decode(value), "<f4").astype(float)
        return np.concatenate([packed, np.zeros(n - len(packed))])
    numbers = np.zeros(n)
    for j, number in value:
        numbers[j] = number
    return numbers


def solutions(content):
    yield "solution", content["solution"]
    if content["points"] is not None:
        yield "points.continuous", content["points"]["continuous"]


def file_digest(certificate):
    rest = {key: value for key, value in certificate.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- the data


def read_columns(X):
    """The columns of a frame, an array or a list of rows."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.where(np.ma.getmaskarray(X), None, X.data.astype(object))
    if hasattr(X, "iloc"):
        return [X.iloc[:, j].to_numpy() for j in range(X.shape[1])]
    if hasattr(X, "get_columns"):
        return [np.array(column.to_list(), dtype=object) for column in X.get_columns()]
    table = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if table.ndim != 2:
        raise ValueError("the data must have rows and columns")
    return list(table.T)


def is_missing(value):
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, np.datetime64)) and bool(value != value)


def numeric(column):
    if column.dtype == object:
        column = [math.nan if is_missing(value) else value for value in column]
    values = np.asarray(column, dtype=float)
    if np.isinf(values).any():
        raise ValueError("the data hold infinite values")
    return values + 0.0  # no -0.0


def labels(column):
    """Text, numbers, or None where the label is missing."""
    result = []
    for value in column.tolist() if column.dtype != object else column:
        if isinstance(value, np.generic):
            value = value.item()
        if is_missing(value):
            value = None
        elif isinstance(value, bytes):
            value = value.decode()
        elif not isinstance(value, (str, bool, int, float)):
            value = str(value)
        result.append(value)
    return result


def label_number(label):
    text = f"s:{label}" if isinstance(label, str) else f"n:{float(label) + 0.0!r}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return float(int.from_bytes(digest, "big") >> 11)


def data_digest(columns, positive, weight):
    """`columns`: float64 numbers per feature, labels as numbers; rows of weight 0 are gone."""

    def bits(values):
        values = np.asarray(values, float) + 0.0
        return np.where(np.isnan(values), np.uint64(0x7FF8000000000000), values.view(np.uint64))

    def stir(h, b, factor, shift):
        h = (h ^ b) * np.uint64(factor)
        return h ^ (h >> np.uint64(shift))

    h = np.full(len(weight), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in columns:
        h = stir(h, bits(column), 0xBF58476D1CE4E5B9, 29)
    h = stir(h, positive.astype(np.uint64), 0x94D049BB133111EB, 32)
    if np.all(weight == np.floor(weight)) and math.fsum(weight) < 2**53:
        count = weight.astype(np.uint64)
    else:
        count = np.ones(len(weight), np.uint64)
        h = stir(h, bits(weight), 0x9E3779B97F4A7C15, 30)
    mixed = (h ^ (h >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    return "".join(f"{int((count * lane).sum(dtype=np.uint64)):016x}" for lane in (h, mixed))


def read_data(content, X, y, sample_weight, faults):
    """Rows with a share above 0, as the claims need them; None if the table has other features."""
    problem, features = content["problem"], content["data"]["features"]
    stumps, squared = content["kind"] == "stumps", content["problem"]["loss"] == "squared"
    raw = read_columns(X)
    rows = len(raw[0]) if raw else len(X)
    categories = content["categories"] or [None] * features
    if len(raw) != features:
        faults.append(f"data.features: {features} are claimed, the data have {len(raw)}")
        return None
    weight = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, float)
    if weight.shape != (rows,) or not np.all(np.isfinite(weight)) or np.any(weight < 0) or not weight.any():
        raise ValueError("weights must be finite, at least 0, one per row, and not all 0")
    target = np.zeros(rows)
    sign = np.ones(rows)
    if squared or stumps:
        target = np.asarray(y, float)
        if target.shape != (rows,) or not np.all(np.isfinite(target)):
            raise ValueError("y must hold a finite number for every row")
    if not squared and stumps:
        if not (np.isin(target, (0, 1)).all() or np.isin(target, (-1, 1)).all()):
            raise ValueError("labels must be truth values, 0 and 1, or -1 and 1")
        sign = np.where(target == 1, 1.0, -1.0)

    used = weight > 0
    weight, target, sign = weight[used], target[used], sign[used]
    values, numbers = [], []  # numbers, or positions of categories (-1: missing); what the digest reads
    for column, entry in zip(raw, categories, strict=True):
        if entry is None:
            values.append(numeric(column)[used])
            numbers.append(values[-1])
            if not stumps and np.isnan(values[-1]).any():
                raise ValueError("the matrix has missing values")
        else:
            known = {label: k for k, label in enumerate(entry["kept"])}
            rest = len(known) if entry["rare"] else -1
            here = [label for label, u in zip(labels(column), used, strict=True) if u]
            values.append(np.array([-1 if label is None else known.get(label, rest) for label in here]))
            numbers.append(np.array([math.nan if label is None else label_number(label) for label in here]))
    if len(weight) != content["data"]["rows"]:
        faults.append(f"data.rows: {content['data']['rows']} are claimed, the data have {len(weight)}")
    if squared:
        numbers.append(target)
    if data_digest(numbers, sign > 0, weight) != content["data"]["digest"]:
        faults.append("data.digest: these are other data")

    relative = weight / weight.max()
    t = np.zeros(len(weight))
    if squared:
        mean, scale = problem["target"]["mean"], problem["target"]["scale"]
        t = (target - mean) / scale
        check_target(mean, scale, target, relative / relative.sum(), faults)
    factor = np.array(problem["class_weight"]) / max(problem["class_weight"])
    r = relative * np.where(sign > 0, factor[1], factor[0])
    s = r / r.sum()
    alive = s > 0
    values = [column[alive] for column in values]
    s, sign, t = s[alive], sign[alive], t[alive]
    pool = content["columns"]
    if stumps:
        A = np.column_stack([np.empty((len(s), 0)), *(
            sign * stump(values[f], categories[f], *rest)
            for f, *rest in zip(*(pool[k] for k in STUMP), strict=True)
        )])  # fmt: skip
    else:
        A = np.column_stack([np.empty((len(s), 0)), *(values[f] for f in pool["feature"])])
    z = sign if problem["intercept_box"] is not None else np.zeros(len(s))
    return SimpleNamespace(s=s, sign=sign, t=t, z=z, A=A, values=values, categories=categories)


def check_target(mean, scale, target, share, faults):
    first = target[np.argmax(share)]
    offset = np.sum(share * (target - first))
    m, deviation = first + offset, target - first - offset
    e = np.max(np.abs(deviation))
    d = 1.0 if np.all(target == target[0]) else e * math.sqrt(np.sum(share * (deviation / e) ** 2))
    for key, claimed, true in (("mean", mean, m), ("scale", scale, d)):
        if not abs(claimed - true) <= TARGET * d + 1e-15 * abs(m):
            faults.append(f"problem.target.{key}: {claimed!r} is claimed, the data have {true!r}")


def stump(values, entry, cut, category, first, polarity, missing_left):
    """The values of a stump on the rows."""
    if entry is None:
        missing = np.isnan(values)
        left = ~missing if cut is None else values <= cut
    else:
        missing = values < 0
        if first is not None:
            chosen = entry["order"][:first]
        else:
            chosen = [len(entry["kept"]) if is_other(category) else entry["kept"].index(category)]
        left = np.isin(values, chosen)
    return np.where(np.where(missing, missing_left, left), polarity, -polarity).astype(float)


def unseen_stumps(content, data):
    """Stumps of the dictionary that are not constant and agree with no column: columns, their features."""
    problem, pool = content["problem"], content["columns"]
    by_feature = depends_on_features(problem)
    seen = {(f if by_feature else None, column.tobytes())
            for f, column in zip(pool["feature"], data.A.T, strict=True)}  # fmt: skip
    monotonic = content["dictionary"]["monotonic"] or [0] * len(data.values)
    unseen: dict = {}
    for f, (values, entry) in enumerate(zip(data.values, data.categories, strict=True)):
        if f in demanded(problem, "excluded"):
            continue
        if entry is None:
            shapes = [(cut, None, None) for cut in [*content["dictionary"]["cuts"][f], None]]
        else:
            shapes = [(None, label, None) for label in entry["kept"]]
            shapes += [(None, {"other": True}, None)] * entry["rare"]
            shapes += [(None, None, first) for first in range(2, len(entry["order"] or []))]
        for shape in shapes:
            for polarity in (1, -1):
                if monotonic[f] == polarity and shape[0] is not None:
                    continue
                for missing_left in (True, False):
                    side = (demanded(problem, "missing") or [0] * (f + 1))[f]
                    if side and side != (polarity if missing_left else -polarity):
                        continue
                    h = stump(values, entry, *shape, polarity, missing_left)
                    column = data.sign * h
                    key = column.tobytes()
                    if h.min() != h.max() and (f if by_feature else None, key) not in seen:
                        unseen[f, key] = column
    columns = np.column_stack([np.empty((len(data.s), 0)), *unseen.values()])
    return columns, np.array([f for f, _ in unseen], dtype=int)


# ---------------------------------------------------------------- losses


def xlogx(x):
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0)


def loss_values(loss, F, t):
    if loss == "logistic":
        return np.logaddexp(0, -F)
    if loss == "exponential":
        return np.exp(-F)
    x = np.maximum(0, 1 - F)
    if loss == "squared_hinge":
        return x**2
    if loss == "smooth_hinge":
        q = np.minimum(1, 4 * x)
        return q * (x - q / 8)
    return (F - t) ** 2 / 2


def slopes(loss, F, t):
    """v = -loss'(F)."""
    if loss == "logistic":
        return 1 / (1 + np.exp(F))
    if loss == "exponential":
        return np.exp(-F)
    if loss == "squared_hinge":
        return 2 * np.maximum(0, 1 - F)
    if loss == "smooth_hinge":
        return np.minimum(1, 4 * np.maximum(0, 1 - F))
    return t - F


def dual_values(loss, v, theta, F, t):
    """Dual values of theta v, where v are the slopes at F."""
    x = theta * v
    if loss == "logistic":
        return -xlogx(x) - xlogx((1 - theta) + theta / (1 + np.exp(-F)))
    if loss == "exponential":
        return x - xlogx(x)
    if loss == "squared":
        return x * t - x**2 / 2
    return x - x**2 / (4 if loss == "squared_hinge" else 8)


def soft(s, F):
    """L = log sum s exp(-F), and the weights p of the rows."""
    top = np.max(-F)
    L = top + math.log(np.sum(s * np.exp(-F - top)))
    return L, s * np.exp(-F - L)


def total_loss(loss, data, F):
    return (
        soft(data.s, F)[0] if loss == "soft margin" else float(np.sum(data.s * loss_values(loss, F, data.t)))
    )


# ---------------------------------------------------------------- claims


def claims(content, data, faults):
    with np.errstate(all="ignore"):
        problem = content["problem"]
        B = problem["intercept_box"] or 0.0
        null = content["null"]
        F = null["intercept"] * data.z
        true = total_loss(problem["loss"], data, F)
        reach = 0.0
        if problem["loss"] == "soft margin":
            least = min(bound["columns"] for bound in content["bounds"])
            reach = problem["radius"] * np.max(np.abs(np.column_stack([data.A[:, :least], data.z])))
            if reach > LARGEST_REACH:
                faults.append(f"problem.radius: margins of {reach!r} cannot be checked")
        data.size = max(abs(true), min(1.0, reach), 1e-290)
        data.tolerance = SUMS * data.size + REACH * reach**2
        for path, solution in solutions(content):
            check_solution(path, solution, content, data, faults)
        if content["points"] is not None:
            unit, most = content["points"]["unit"], content["points"]["most"]
            for k, (_, w) in enumerate(content["solution"]["weights"]):
                whole = round(w / unit) if math.isfinite(w / unit) else 0
                if whole * unit != w or not 1 <= whole <= most:
                    faults.append(f"solution.weights[{k}]: is no whole number of points")
        if not abs(null["objective"] - true) <= data.tolerance:
            faults.append(f"null.objective: {null['objective']!r} is claimed, it is {true!r}")
        costs = problem["feature_costs"] or []
        if sum(costs[f] for f in demanded(problem, "must_include") if costs) > REQUIRED * data.size:
            faults.append("problem.feature_costs: the loss is lost beside those of must_include")
        b = null["intercept"]
        g = null_slope(problem["loss"], data, b)
        nearby = b + math.copysign(1e-12 * (1 + abs(b)), g if g else 1.0)
        flat = abs(g) * (B + abs(b)) <= data.tolerance or (abs(b) == B and g * b >= 0)
        turns = g * null_slope(problem["loss"], data, nearby) <= 0
        if abs(b) > B or not (flat or (turns and abs(g) * abs(nearby - b) <= data.tolerance)):
            faults.append(f"null.intercept: {b!r} is not the best intercept")
        if not content["candidates"]:
            pool = {column.tobytes() for column in data.A[:, : content["bounds"][0]["columns"]].T + 0.0}
            if any((column + 0.0).tobytes() not in pool for column in data.values):
                faults.append("candidates: the matrix has columns that are none of the scope")
        for i, bound in enumerate(content["bounds"]):
            check_bound(f"bounds[{i}]", bound, content, data, faults)
        check_status(content, data, faults)


def null_slope(loss, data, b):
    F = b * data.z
    rows = soft(data.s, F)[1] if loss == "soft margin" else data.s * slopes(loss, F, data.t)
    return float(np.sum(rows * data.z))


def check_solution(path, solution, content, data, faults):
    problem, pool = content["problem"], content["columns"]
    b, weights = solution["intercept"], solution["weights"]
    if abs(b) > (problem["intercept_box"] or 0.0):
        faults.append(f"{path}.intercept: {b!r} is outside of its box")
    for k, (j, w) in enumerate(weights):
        if not 0 < w <= infinite(pool["max_weight"][j]):
            faults.append(f"{path}.weights[{k}]: {w!r} is outside of its box")
    charged = [j for j, _ in weights if pool["charged"][j]]
    paid = {pool["feature"][j] for j in charged}
    if len(charged) > infinite(problem["max_terms"]):
        faults.append(f"{path}.weights: more than {problem['max_terms']} terms")
    if not paid.issuperset(demanded(problem, "must_include")):
        faults.append(f"{path}.weights: a feature of must_include is not used")
    if any(len(paid.intersection(group)) > 1 for group in demanded(problem, "at_most_one_of")):
        faults.append(f"{path}.weights: two features of a group of at_most_one_of")
    if len(paid) > infinite(problem["max_features"]):
        faults.append(f"{path}.weights: more than {problem['max_features']} features")
    if abs(b) + sum(w for _, w in weights) > infinite(problem["radius"]) * (1 + 1e-12):
        faults.append(f"{path}.weights: sum to more than the radius")
    F = b * data.z + data.A @ unpacked(weights, data.A.shape[1])
    true = total_loss(problem["loss"], data, F)
    true += sum(pool["l1"][j] * w + pool["l2"][j] * w**2 / 2 + pool["l0"][j] for j, w in weights)
    if problem["feature_costs"] is not None:
        true += sum(problem["feature_costs"][f] for f in paid)
    if not abs(solution["objective"] - true) <= data.tolerance:
        faults.append(f"{path}.objective: {solution['objective']!r} is claimed, it is {true!r}")


def infinite(value):
    return math.inf if value is None else value


# ---------------------------------------------------------------- the bound of a leaf


def leaf_scope(bound, content, data):
    """What all leaves of a scope share."""
    n, pool = bound["columns"], content["columns"]
    scope = SimpleNamespace(n=n, size=data.size, problem=content["problem"], unseen=None)
    for key in ("l1", "l2", "l0"):
        setattr(scope, key, np.array(pool[key][:n], float))
    scope.box = np.array([infinite(M) for M in pool["max_weight"][:n]], float)
    scope.charged = np.array(pool["charged"][:n], bool)
    scope.feature = np.array(pool["feature"][:n], int)
    scope.features = content["data"]["features"]
    scope.U, scope.U_feature = np.empty((len(data.s), 0)), np.empty(0, int)
    if bound["scope"] == "dictionary":
        scope.unseen = content["unseen"]
        scope.U, scope.U_feature = unseen_stumps(content, data)
    return scope


def worth(c, l1, l2, l0, box):
    g = np.maximum(0, c - l1)
    w = np.minimum(np.divide(g, l2, out=np.full_like(g, np.inf), where=l2 != 0), box)
    kappa = np.where(np.isinf(w), np.inf, w * g - l2 * w**2 / 2)
    return np.where(g == 0, 0.0, kappa) - l0


def taken(scope, values, forced_in, forced_out, x):
    """The most that columns, worth `values`, and unseen stumps, of every feature at most `x`, can add."""
    problem = scope.problem
    free = np.ones(scope.n, bool)
    free[forced_in] = free[forced_out] = False
    positive = np.maximum(0, values)
    total = np.sum(values[forced_in]) + np.sum(positive[free & ~scope.charged])
    terms, feature = positive[free & scope.charged], scope.feature[free & scope.charged]
    charged_in = [j for j in forced_in if scope.charged[j]]
    k, f, costs = (problem[key] for key in ("max_terms", "max_features", "feature_costs"))
    if k is None and np.max(x, initial=0.0) > WORTHLESS * scope.size:
        return math.inf
    K = None if k is None else max(0, k - len(charged_in))
    if not depends_on_features(problem):
        if K is None:
            return total + np.sum(terms)
        most = np.max(x, initial=0.0)  # there are K copies of it
        better = np.sort(terms[terms > most])[::-1][:K]
        return total + np.sum(better) + (K - len(better)) * most

    costs = costs or [0.0] * scope.features
    paid = {int(scope.feature[j]) for j in charged_in}
    certain = paid.union(demanded(problem, "must_include"))
    total -= sum(costs[g] for g in certain)
    places = math.inf if f is None else max(0, f - len(certain))
    lists = {}
    for g in range(scope.features):
        mine = np.concatenate([terms[feature == g], np.full(K or 0, x[g])])
        lists[g] = np.sort(mine[mine > 0])[::-1][:K]
    of_paid = np.sort(np.concatenate([[], *(lists[g] for g in paid)]))[::-1]
    needed = sorted(certain - paid)
    units: dict = {}  # features of which one at most is used
    for g in range(scope.features):
        mine = [i for i, group in enumerate(demanded(problem, "at_most_one_of")) if g in group]
        shut = any(certain.intersection(demanded(problem, "at_most_one_of")[i]) for i in mine)
        if g not in certain and not shut and len(lists[g]):
            units.setdefault(("group", mine[0]) if mine else ("feature", g), []).append(g)
    if K is None:
        gains = sorted(
            (max(np.sum(lists[g]) - costs[g] for g in unit) for unit in units.values()), reverse=True
        )
        best = [gain for gain in gains if gain > 0]
        total += np.sum(of_paid) + sum(np.sum(lists[g]) for g in needed)
        return total + sum(best[: len(best) if f is None else places])
    P = K if f is None else min(places, K)
    K = min(K, sum(map(len, lists.values())) + len(needed))  # there are no more terms
    P = min(P, K)
    T = np.tile([np.sum(of_paid[:c]) for c in range(K + 1)], (P + 1, 1))
    for g in needed:
        old, T = T, np.full_like(T, -np.inf)
        for c in range(1, K + 1):
            for r in range(1, c + 1):
                T[:, c] = np.maximum(T[:, c], old[:, c - r] + np.sum(lists[g][:r]))
    for unit in units.values():
        old = T.copy()
        for g in unit:
            sums = np.cumsum(lists[g])
            for r in range(1, len(sums) + 1):
                T[1:, r:] = np.maximum(T[1:, r:], old[:-1, : K + 1 - r] + sums[r - 1] - costs[g])
    return total + T[P, K]


def leaf_value(scope, data, b, weights, theta, forced_in, forced_out, aside=None):
    """D: what no model of the leaf costs less than. `weights` of all columns of the pool."""
    problem, n = scope.problem, scope.n
    F = b * data.z + data.A @ weights
    B = problem["intercept_box"] or 0.0
    if problem["loss"] == "soft margin":
        if not np.all(np.isfinite(F)):
            return -math.inf
        L, p = soft(data.s, F)
        edges = np.concatenate([[0.0], p @ data.A[:, :n], p @ scope.U, [abs(np.sum(p * data.z))]])
        D = np.sum(p * (F + L)) - problem["radius"] * np.max(edges)
        return D if np.isfinite(D) else -math.inf
    v = slopes(problem["loss"], F, data.t)
    u = data.s * theta * v
    off = EDGE * math.sqrt(len(u)) * np.sum(np.abs(u))
    edges = u @ data.A[:, :n] + off * np.max(np.abs(data.A[:, :n]), axis=0, initial=0.0)
    unseen_edges = u @ scope.U + off
    if not (np.all(np.isfinite(u)) and np.all(np.isfinite(edges)) and np.all(np.isfinite(unseen_edges))):
        return -math.inf
    D = np.sum(np.where(u == 0, 0.0, data.s * dual_values(problem["loss"], v, theta, F, data.t)))
    D -= B * (abs(np.sum(u * data.z)) + off)
    l2 = scope.l2
    if aside is not None:
        edges, l2 = edges + aside * weights[:n], l2 + aside
        D += np.sum(aside * weights[:n] ** 2) / 2
    values = worth(edges, scope.l1, l2, scope.l0, scope.box)
    x = np.zeros(scope.features)
    if scope.unseen is not None and len(unseen_edges):
        prices = [np.full(len(unseen_edges), infinite(scope.unseen[key]), float) for key in PRICES]
        np.maximum.at(x, scope.U_feature, worth(unseen_edges, *prices))
    D -= taken(scope, values, forced_in, forced_out, x)
    return float(D) if np.isfinite(D) else -math.inf


# ---------------------------------------------------------------- leaves with a curve


def row_curvature(loss, F, floor, cap):
    if loss == "exponential":
        p = np.exp(-F)
        x = cap - F
        far = 2 * p * (np.expm1(-x) + x) / x**2
        mean = np.where(np.abs(x) < 1e-3, p * (1 - np.abs(x) / 3), far)
        least = np.minimum(p * np.exp(np.maximum(0, F - cap)), mean)
    else:
        p = 1 / (1 + np.exp(F))
        least = second = p * (1 - p)
        for end in (floor, cap):
            x = end - F
            far = 2 * (np.logaddexp(0, -F - x) - np.logaddexp(0, -F) + p * x) / x**2
            least = np.minimum(least, np.where(np.abs(x) < 1e-3, second * (1 - np.abs(x) / 3), far))
    return np.maximum(0, (1 - 1e-10) * least)


def cholesky(H):
    try:
        return np.linalg.cholesky(H) if np.all(np.isfinite(H)) else None
    except np.linalg.LinAlgError:
        return None


class Curvature:
    """The curvature of a scope: columns with the intercept's in front, floors and caps of better models."""

    def __init__(self, bound, scope, content, data, reference):
        self.scope, self.data, self.O = scope, data, reference
        self.loss, n = content["problem"]["loss"], scope.n
        self.front = int(content["problem"]["intercept_box"] is not None)
        self.Z = np.column_stack([data.z] * self.front + [data.A[:, :n]])
        first: dict = {}
        self.twin_of = []  # the first column that each equals or opposes; None for a column of zeros
        for j, column in enumerate(self.Z.T + 0.0):
            keys = column.tobytes(), (0.0 - column).tobytes()
            self.twin_of.append(next((first[k] for k in keys if k in first), j) if column.any() else None)
            first.setdefault(keys[0], self.twin_of[-1])
        B = content["problem"]["intercept_box"]
        low = np.array([-B] * self.front + [0.0] * n) if self.front else np.zeros(n)
        high = np.concatenate([[B] if self.front else [], scope.box])
        self.floor = np.minimum(self.Z * low, self.Z * high).sum(axis=1)
        self.cap = np.maximum(self.Z * low, self.Z * high).sum(axis=1)
        caps = bound["caps"]
        b, w = caps["intercept"], unpacked(caps["centre"], data.A.shape[1])
        V = leaf_value(scope, data, b, w, 1.0, [], [])
        for _ in range(4):
            inside = np.ones(self.Z.shape[1], bool)
            self.floor, self.cap = self.narrowed(self.margins(b, w), V, inside, self.floor, self.cap)

    def margins(self, b, w):
        return b * self.data.z + self.data.A @ w

    def chosen(self, inside):
        """Of twins the first that is inside, in the order of the first twin."""
        chosen: dict = {}
        for j in np.flatnonzero(inside):
            if self.twin_of[j] is not None:
                chosen.setdefault(self.twin_of[j], int(j))
        return [chosen[key] for key in sorted(chosen)]

    def hessian(self, F, columns, floor, cap):
        A = self.Z[:, columns]
        return A.T @ ((self.data.s * row_curvature(self.loss, F, floor, cap))[:, None] * A)

    def narrowed(self, F, V, inside, floor, cap):
        room = self.O - V + ROOM * (1 + abs(self.O))
        columns = self.chosen(inside)
        H = self.hessian(F, columns, floor, cap)
        C = cholesky(H)
        if C is None or not room > 0 or np.any(np.diag(C) ** 2 <= PIVOT * np.diag(H)):
            return floor, cap
        half = np.linalg.solve(C, self.Z[:, columns].T)
        width = np.sqrt(2 * room * np.sum(half**2, axis=0)) * (1 + WIDER)
        return np.maximum(floor, F - width), np.minimum(cap, F + width)

    def enough(self, leaf, weights, aside):
        """Whether there is so much curvature in the leaf."""
        curve, front = leaf["curve"], self.front
        b, centre = curve["intercept"], unpacked(curve["centre"], len(weights))
        forced = leaf["forced_in"], leaf["forced_out"]
        V = leaf_value(self.scope, self.data, b, centre, 1.0, *forced)
        if leaf["theta"] != 1:
            return False
        if V >= self.O:
            return True
        inside = np.ones(self.Z.shape[1], bool)
        inside[[front + j for j in leaf["forced_out"]]] = False
        inside[front:] |= (centre[: self.scope.n] != 0) | (weights[: self.scope.n] != 0)
        floor, cap = self.narrowed(self.margins(b, centre), V, inside, self.floor, self.cap)
        d = np.concatenate([np.zeros(front), aside])
        twins = [j for j, t in enumerate(self.twin_of) if t is None or self.twin_of.count(t) > 1]
        if np.any(d < 0) or np.any(d[~inside] != 0) or np.any(d[twins] != 0):
            return False
        columns = self.chosen(inside)
        H = self.hessian(self.margins(leaf["intercept"], weights), columns, floor, cap)
        if not columns:
            return True
        return cholesky(H - np.diag(d[columns] + SPARE * np.trace(H) / len(columns))) is not None


# ---------------------------------------------------------------- bounds, cover, status


def check_bound(path, bound, content, data, faults):
    problem, objective = content["problem"], content["solution"]["objective"]
    reference = objective if content["points"] is None else content["points"]["continuous"]["objective"]
    scope = leaf_scope(bound, content, data)
    curvature = None
    allowed = (
        bound["caps"] and problem["loss"] in CURVED and np.all(np.isfinite(scope.box)) and not scope.U.size
    )
    for k, leaf in enumerate(bound["leaves"]):
        name = f"{path}.leaves[{k}]"
        weights, aside = unpacked(leaf["weights"], data.A.shape[1]), None
        if crowded(leaf["forced_in"], content):
            faults.append(f"{name}.forced_in: more than the limits allow")
        if leaf["curve"] is not None:
            aside = unpacked(leaf["curve"]["aside"], scope.n)
            if allowed and curvature is None:
                curvature = Curvature(bound, scope, content, data, reference)
            if curvature is None or not curvature.enough(leaf, weights, aside):
                faults.append(f"{name}.curve: there is not so much curvature")
                continue
        point = leaf["intercept"], weights, leaf["theta"], leaf["forced_in"], leaf["forced_out"]
        D = leaf_value(scope, data, *point, aside)
        if not leaf["bound"] <= D + data.tolerance:
            faults.append(f"{name}.bound: {leaf['bound']!r} is claimed, {D!r} is proven")
    if not covered(bound["leaves"], content):
        faults.append(f"{path}.leaves: do not cover all choices of columns")

    N, lower, gap = content["null"]["objective"], bound["lower_bound"], bound["gap"]
    least = min(objective, reference, *(leaf["bound"] for leaf in bound["leaves"]))
    if N - lower <= data.tolerance:
        share = 1.0 if objective <= max(N, lower) + data.tolerance else 0.0
    else:
        share = min(1.0, max(0.0, (N - objective) / (N - lower)))
    slack, unit = ARITHMETIC * (abs(objective) + abs(lower)), max(abs(objective), 1e-300)
    for key, true, tolerance in (
        ("lower_bound", least, ARITHMETIC * abs(least)),
        ("gap", objective - lower, slack),
        ("relative_gap", gap / unit, slack / unit),
        ("guarantee", share, GUARANTEE),
    ):
        if not abs(bound[key] - true) <= tolerance:
            faults.append(f"{path}.{key}: {bound[key]!r} is claimed, {true!r} follows")


def crowded(columns, content):
    problem, pool = content["problem"], content["columns"]
    charged = [j for j in columns if pool["charged"][j]]
    features = {pool["feature"][j] for j in charged}
    if any(len(features.intersection(group)) > 1 for group in demanded(problem, "at_most_one_of")):
        return True
    return len(charged) > infinite(problem["max_terms"]) or len(features) > infinite(problem["max_features"])


def covered(leaves, content):
    every = [(frozenset(leaf["forced_in"]), frozenset(leaf["forced_out"])) for leaf in leaves]
    stack = [(frozenset(), frozenset(), every)]
    for _ in range(100 * (10 + len(leaves))):
        if not stack:
            return True
        inside, outside, left = stack.pop()
        if crowded(inside, content):
            continue
        if not left:
            return False
        open_columns = [sorted((i | o) - inside - outside) for i, o in left]
        if not all(open_columns):
            continue
        mentions: dict = {}
        for columns in open_columns:
            for j in columns:
                mentions[j] = mentions.get(j, 0) + 1
        j = min(mentions, key=lambda j: (-mentions[j], j))
        stack.append((inside | {j}, outside, [leaf for leaf in left if j not in leaf[1]]))
        stack.append((inside, outside | {j}, [leaf for leaf in left if j not in leaf[0]]))
    return not stack


def check_status(content, data, faults):
    gaps = {bound["scope"]: bound["gap"] for bound in content["bounds"]}
    closed = {scope for scope, gap in gaps.items() if gap <= OPTIMAL * data.size}
    status = "optimal among candidates" if "pool" in closed else "feasible"
    if "dictionary" in closed or ("pool" in closed and not content["candidates"]):
        status = "optimal"
    old = content["version"] < 6 and content["status"] == "feasible"
    if content["status"] != status and not old:
        faults.append(f"status: {content['status']!r} is claimed, it is {status!r}")

"""Two checkers side by side: the package's, and one that was written from docs/certificate.md alone.

On true certificates both find nothing. On forgeries both give the same verdict, and what they accept is true.
They may differ only where a number is within rounding of a threshold, that is, where the second checker's
verdict changes when all its tolerances are made a tenth smaller or larger.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import itertools
import json
import sys
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.tree import DecisionTreeClassifier

from cardboost import CardBoostClassifier, CardBoostRegressor, SoftMarginClassifier
from cardboost.certificate import checker
from cardboost.solvers import select_columns
from marks import first

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "certificate"), str(TESTS / "fixtures")]
from forgeries import FORGERIES, certified, derived, rebound  # noqa: E402
from make import TABLES, frame  # noqa: E402

import second_checker  # noqa: E402

TOLERANCES = (
    "SUMS",
    "OPTIMAL",
    "ARITHMETIC",
    "GUARANTEE",
    "TARGET",
    "WORTHLESS",
    "ROOM",
    "WIDER",
    "PIVOT",
    "SPARE",
)


def verdict(check, *case):
    """The faults; an error of the data is one too."""
    try:
        return check(*case)
    except ValueError as error:
        return [f"ValueError: {error}"]


def near_a_threshold(*case):
    verdicts = set()
    for factor in (0.9, 1.1):
        with pytest.MonkeyPatch.context() as patch:
            for name in TOLERANCES:
                patch.setattr(second_checker, name, factor * getattr(second_checker, name))
            verdicts.add(not verdict(second_checker.check, *case))
    return len(verdicts) > 1


def agree(label, *case):
    """The common verdict: accepted, refused or near (a threshold)."""
    first, second = verdict(checker.check, *case), verdict(second_checker.check, *case)
    if bool(first) != bool(second):
        assert near_a_threshold(*case), (label, first[:3], second[:3])
        return "near"
    return "refused" if first else "accepted"


# ---------------------------------------------------------------- true certificates


def a_table(rng):
    """Numbers, some with missing values, labels, some of them rare or missing; a score that they explain."""
    n = int(rng.choice([30, 80, 150]))
    X = rng.normal(size=(n, 4))
    score = X[:, 0] - 0.7 * (X[:, 1] > 0.3) + rng.normal(0, 0.7, n)
    if rng.random() < 0.5:
        X = np.round(2 * X) / 2
    kind = rng.choice(["numbers", "missing", "labels"])
    if kind != "numbers":
        X[rng.random(X.shape) < 0.1] = np.nan
    if kind == "labels":
        numbers = rng.random() < 0.3
        names = np.array([3, 1.5, True, 2**60, -7] if numbers else ["a", "b", "ä", "d", "e"], dtype=object)
        colour = names[np.minimum(rng.geometric(0.35, n) - 1, 4)]
        score = score + 0.8 * np.isin(colour, names[[1, 3]])
        colour[rng.random(n) < 0.1] = None
        table = pd.DataFrame(X[:, :3], columns=list("pqr"))
        return table.assign(colour=pd.Series(colour, dtype=object)), score
    return X, score


def some_weights(rng, n):
    return {
        "none": None,
        "counts": rng.integers(0, 4, n).astype(float) + np.eye(n)[0],
        "real": rng.random(n) + 0.05,
        "decades": 10.0 ** rng.uniform(-4, 4, n),
    }[rng.choice(["none", "none", "counts", "real", "decades"])]


def card_parameters(rng, X):
    p = X.shape[1]
    params = {
        "max_terms": [None, 1, 2, 3, 4][rng.integers(5)],
        "l0": float(rng.choice([0, 0, 0.002, 0.02])),
        "l1": float(rng.choice([0, 1e-4, 0.01])),
        "l2": float(rng.choice([0, 1e-3, 0.01, 0.3])),
        "hot_start": int(rng.choice([3, 8, 16])),
        "max_iter": int(rng.choice([4, 20])),
        "max_nodes": int(rng.choice([1, 40, 400])),
        "max_weight": [None, 0.7, 3.0][rng.integers(3)],
        "fit_intercept": bool(rng.random() < 0.8),
        "selector": str(rng.choice(["auto", "auto", "exact", "polish"])),
        "max_bins": int(rng.choice([4, 12, 60])),
        "n_jobs": 1,
    }
    extra = rng.choice(["", "", "monotonic_cst", "max_features", "feature_costs", "both"])
    if extra == "monotonic_cst":
        params[extra] = [*rng.integers(-1, 2, p - 1).tolist(), 0]
    if extra in ("max_features", "both"):
        params["max_features"] = int(rng.integers(1, p))
    if extra in ("feature_costs", "both"):
        params["feature_costs"] = rng.choice([0.0, 0.003, 0.03], p).tolist()
    return params | demands(rng, p)


def demands(rng, p):
    """Now and then, what an analyst asks of features."""
    wanted = rng.random(4) < 0.12
    one, other = rng.choice(p, 2, replace=p < 2).tolist()
    every = {
        "exclude": [one],
        "missing": ["worst", "best", {other: "worst"}][rng.integers(3)],
        "at_most_one_of": [[one, other]] if rng.random() < 0.5 else [list(range(p)), [one, other]],
        "must_include": [other],
    }
    return {name: every[name] for name, drawn in zip(every, wanted, strict=True) if drawn}


def fitted(rng, model, X, y, w):
    """The cases of a model that was fitted, and maybe proved further: content, X, y, weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y, w)
            if hasattr(model, "prove") and rng.random() < 0.2:
                model.prove(max_nodes=100)
        except ValueError:
            return []
    proofs = model.certificate_
    if not isinstance(proofs, list | tuple):
        return [(proofs.to_dict(), X, y, w)]
    return [(proof.to_dict(), X, y == label, w) for proof, label in zip(proofs, model.classes_, strict=True)]


def a_classifier(rng):
    X, score = a_table(rng)
    y = score > np.quantile(score, rng.choice([0.5, 0.2]))
    loss = rng.choice(["logistic", "exponential", "squared_hinge", "hinge"], p=[0.4, 0.3, 0.15, 0.15])
    factor = [None, "balanced", {False: 1.0, True: 3.0}][rng.integers(3)]
    model = CardBoostClassifier(loss=str(loss), class_weight=factor, **card_parameters(rng, X))
    cases = fitted(rng, model, X, y, some_weights(rng, len(y)))
    if cases and rng.random() < 0.5 and len(cases[0][0]["solution"]["weights"]):
        try:
            points = model.scorecard(points=int(rng.integers(2, 9))).certificate
        except ValueError:
            return cases
        cases.append((points.to_dict(), *cases[0][1:]))
    return cases


def several_classes(rng):
    X, score = a_table(rng)
    y = np.digitize(score, np.quantile(score, [0.3, 0.7]))
    model = CardBoostClassifier(**card_parameters(rng, X) | {"monotonic_cst": None, "hot_start": 5})
    return fitted(rng, model, X, y, some_weights(rng, len(y)))


def a_regressor(rng):
    X, score = a_table(rng)
    y = score * 10.0 ** rng.integers(-3, 4) + rng.choice([0.0, 5.0, 1e4])
    return fitted(rng, CardBoostRegressor(**card_parameters(rng, X)), X, y, some_weights(rng, len(y)))


def a_soft_margin(rng):
    X, score = a_table(rng)
    model = SoftMarginClassifier(
        temperature=float(rng.choice([0.03, 0.3, 3.0])),
        max_bins=12,
        max_iter=int(rng.choice([4, 20])),
        fit_intercept=bool(rng.random() < 0.7),
        n_jobs=1,
    )
    return fitted(rng, model, X, score > 0, some_weights(rng, len(score)))


def a_matrix(rng):
    n, q = int(rng.choice([20, 80])), int(rng.integers(2, 13))
    A = np.where(rng.random((n, q)) < 0.6, 1.0, -1.0)
    kind = rng.choice(["signs", "signs", "numbers", "twins", "zeros"])
    if kind == "numbers":
        A = rng.normal(size=(n, q)) + 0.3
    elif kind == "twins":
        A[:, 1] = -A[:, 0]
        A[:, -1] = A[:, 0]
    elif kind == "zeros":
        A[:, 0] = 0.0
    w = some_weights(rng, n)
    try:
        result = select_columns(
            A,
            l0=float(rng.choice([0, 0, 0.01])),
            max_terms=int(rng.integers(1, 4)),
            l1=float(rng.choice([0, 1e-4, 0.01])),
            l2=float(rng.choice([0, 0.01, 0.3])),
            max_weight=[None, 0.6, 2.0][rng.integers(3)],
            loss=str(rng.choice(["logistic", "exponential", "squared_hinge", "smooth_hinge"])),
            max_nodes=int(rng.choice([1, 20, 500])),
            free=[0] if rng.random() < 0.2 else (),
            sample_weight=w,
        )
    except ValueError:
        return []
    return [(result.certificate.to_dict(), A, None, w)]


def learners(rng):
    """The matrix of the outputs of trees, behind the intercept's two columns."""
    X, score = a_table(rng)
    X = np.nan_to_num(np.asarray(X)[:, :3].astype(float))
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = CardBoostClassifier(dictionary=tree, max_terms=2, hot_start=5, max_iter=4).fit(X, score > 0)
    proof = model.certificate_
    return [(copy.deepcopy(proof.content), *proof.view(X, score > 0, None))]


KINDS = [a_classifier, several_classes, a_regressor, a_soft_margin, a_matrix, learners]


def run_true_certificates(fit, seeds):
    count = 0
    for seed in seeds:
        for case in fit(np.random.default_rng([seed, KINDS.index(fit)])):
            assert agree((fit.__name__, seed), *case) == "accepted", (fit.__name__, seed)
            count += 1
    return count


@pytest.mark.parametrize("fit", KINDS)
@pytest.mark.parametrize("seeds", first(1, [range(2), range(2, 5)]), ids=str)
def test_both_accept_true_certificates(fit, seeds):
    assert run_true_certificates(fit, seeds) > 0


@pytest.mark.long
@pytest.mark.parametrize("fit", KINDS)
def test_both_accept_hundreds_of_true_certificates(fit):
    assert run_true_certificates(fit, range(100, 130 if fit is learners else 220)) >= 25


def fixtures():
    """Every certificate in the files of all versions, with its data."""
    for folder in sorted((TESTS / "fixtures").glob("model*")):
        for name, said in json.loads((folder / "expected.json").read_text()).items():
            held = json.loads((folder / f"{name}.json").read_text())
            label = f"{folder.name}/{name}"
            if said["holds"] == "certificate":
                weight = None if said["weight"] is None else np.array(said["weight"])
                yield label, (held, np.array(said["matrix"]), None, weight)
                continue
            for part in held.get("sizes", [held]):
                proofs = (
                    part["certificate"] if isinstance(part["certificate"], list) else [part["certificate"]]
                )
                classes = (part.get("ensemble") or {}).get("classes")
                X, y = frame(said["features"]), np.array(TABLES["targets"][said["target"]])
                weight = np.array(TABLES["weight"]) if said.get("weighted") else None
                for k, proof in enumerate(proofs):
                    if proof is not None and proof["format"] == "cardboost-certificate":
                        positive = None if classes is None else classes[k if len(proofs) > 1 else 1]
                        yield label, (proof, X, y if classes is None else y == positive, weight)


def test_fixtures_of_all_versions_have_the_same_verdict():
    counts = Counter((case[0]["version"], agree(label, *case)) for label, case in fixtures())
    assert {version for version, _ in counts} >= {1, 2, 3, 4, 5}
    assert counts[5, "accepted"] > 15  # those that called the best of their candidates optimal are refused


# ---------------------------------------------------------------- what is true


def supports(content, n, most=40):
    """Choices of charged columns that the limits allow: all, or the solution's and some others."""
    problem, pool = content["problem"], content["columns"]
    charged = [j for j in range(n) if pool["charged"][j]]
    size = min(len(charged), len(charged) if problem["max_terms"] is None else problem["max_terms"], 3)
    used = tuple(j for j, _ in content["solution"]["weights"] if pool["charged"][j])
    some = [choice for k in range(size + 1) for choice in itertools.combinations(charged, k)]
    if len(some) > most:
        some = [some[i] for i in np.random.default_rng(0).permutation(len(some))[:most]]
    swaps = [tuple(sorted({*used, j} - {out})) for j in charged for out in used]
    some = dict.fromkeys([used, *some, *swaps[:most]])
    must = set(problem.get("must_include", []))
    some = [choice for choice in some if must <= {pool["feature"][j] for j in choice}]
    return [choice for choice in some if not second_checker.crowded(choice, content)]


BEST: dict = {}


def best_of_pool(content, case, n):
    """The least objective of models of the first n columns, each solved anew; no proof is looked at."""
    key = json.dumps([n, *(content[part] for part in ("problem", "columns", "categories", "data"))])
    if key not in BEST:
        BEST[key] = best_of(content, case, n)
    return BEST[key]


def best_of(content, case, n):
    data = second_checker.read_data(content, *case, [])
    problem, pool = content["problem"], content["columns"]
    B = problem["intercept_box"] or 0.0
    free = [j for j in range(n) if not pool["charged"][j]]
    costs = problem["feature_costs"] or [0.0] * content["data"]["features"]
    best = np.inf
    for chosen in supports(content, n):
        features = {pool["feature"][j] for j in chosen}
        used = [*free, *chosen]
        A = np.column_stack([data.z, data.A[:, used]])
        l1, l2 = (np.array([0.0, *(pool[key][j] for j in used)]) for key in ("l1", "l2"))
        boxes = [(-B, B), *((0.0, pool["max_weight"][j]) for j in used)]
        fixed = sum(pool["l0"][j] for j in chosen) + sum(costs[f] for f in features)

        def value(x, A=A, l1=l1, l2=l2):
            F = A @ x
            slope = data.s * second_checker.slopes(problem["loss"], F, data.t)
            loss = second_checker.total_loss(problem["loss"], data, F)
            return loss + l1 @ x + l2 @ x**2 / 2, l1 + l2 * x - A.T @ slope

        found = minimize(value, np.zeros(len(boxes)), jac=True, bounds=boxes, method="L-BFGS-B")
        best = min(best, found.fun + fixed)
    return best


def assert_true(label, content, *case):
    """An accepted file says nothing false: no lower bound is above what enumeration finds."""
    if content["problem"]["loss"] == "soft margin":
        return
    size = abs(content["null"]["objective"])
    for bound in content["bounds"]:
        best = best_of_pool(content, case, bound["columns"])
        assert bound["lower_bound"] <= best + 2e-9 * size, (label, bound["scope"], bound["lower_bound"], best)


# ---------------------------------------------------------------- forgeries


BASES = [
    "card",
    "points",
    "exponential",
    "priced",
    "hinge",
    "smooth",
    "regression",
    "labels",
    "features",
    "costs",
]
BASES += ["directions", "demands", "groups", "margin", "matrix logistic", "matrix exponential"]


@cache
def bases():
    """Small true certificates whose optimum can be enumerated, of every kind: name, content, data."""
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(60, 3)), 1)
    score = X[:, 0] - 0.6 * X[:, 1] ** 2 + rng.normal(0, 0.5, 60)
    holes = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    labels = pd.DataFrame(holes[:, :2], columns=["p", "q"]).assign(
        c=pd.Series(np.array(list("abcd"), dtype=object)[rng.integers(0, 4, 60)], dtype=object)
    )
    y, w = score > -0.3, rng.integers(1, 4, 60).astype(float)
    small = {"max_terms": 2, "hot_start": 7, "max_bins": 6, "n_jobs": 1, "l2": 0.02}
    few = small | {"max_terms": None, "l0": 0.02}
    A = np.where(rng.random((50, 7)) < 0.6, 1.0, -1.0)
    A[:, 3] = -A[:, 1]
    models = {
        "card": (CardBoostClassifier(**small, selector="exact"), X, y, None),
        "exponential": (CardBoostClassifier(**small, loss="exponential"), X, y, w),
        "priced": (CardBoostClassifier(**few), holes, y, None),
        "hinge": (CardBoostClassifier(**small, loss="squared_hinge"), X, y, None),
        "smooth": (CardBoostClassifier(**small, loss="hinge", class_weight="balanced"), X, y, None),
        "regression": (CardBoostRegressor(**small), holes, score, w),
        "labels": (CardBoostClassifier(**small), labels, y, None),
        "features": (CardBoostClassifier(**small, max_features=1, feature_costs=[0.01] * 3), X, y, None),
        "costs": (CardBoostClassifier(**few, feature_costs=[0.01, 0.0, 0.02]), X, y, w),
        "directions": (CardBoostClassifier(**small, monotonic_cst=[1, 0, -1]), X, y, None),
        "demands": (
            CardBoostClassifier(
                **small, exclude=[2], missing="worst", at_most_one_of=[[0, 1]], must_include=[1]
            ),
            *(holes, y, None),
        ),
        "groups": (CardBoostClassifier(**few, at_most_one_of=[[0, 1], [1, 2]]), X, y, w),
        "margin": (SoftMarginClassifier(temperature=0.5, max_bins=6, max_iter=6), X, y, None),
    }
    result = {}
    for name, (model, *case) in models.items():
        result[name] = (model.fit(*case).certificate_.to_dict(), *case)
        if name == "card":
            points = model.scorecard(points=4).certificate
            result["points"] = (points.to_dict(), *case)
    for loss in ("logistic", "exponential"):
        proof = select_columns(A, max_terms=2, max_weight=1.5, l2=0.01, loss=loss, free=[0]).certificate
        result[f"matrix {loss}"] = (proof.to_dict(), A, None, None)
    return result


def spots(value, path=()):
    """Paths of all values of a file that are no lists and no objects."""
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from spots(entry, (*path, key))
    elif path not in {("digest",), ("format",)}:
        yield path


def change(rng, content):
    """One random change; returns where."""
    places = list(spots(content))
    # first a part of the file, so that leaves and cuts, which are many, do not have all the changes
    part = sorted({place[:2] for place in places}, key=str)
    start = part[rng.integers(len(part))]
    places = [place for place in places if place[:2] == start]
    place = places[rng.integers(len(places))]
    *way, last = place
    holder = content
    for key in way:
        holder = holder[key]
    old = holder[last]
    if isinstance(old, bool):
        new = not old
    elif isinstance(old, str) and last in ("weights", "centre", "aside"):
        numbers = np.frombuffer(base64.b64decode(old), "<f4").copy()
        numbers[rng.integers(len(numbers))] += np.float32(10.0 ** rng.integers(-6, 1))
        new = base64.b64encode(numbers.tobytes()).decode()
    elif isinstance(old, str):
        new = {"logistic": "exponential", "exponential": "logistic", "pool": "dictionary"}.get(old, "optimal")
    elif old is None:
        new = [0.0, 1, 3.0, 0.5][rng.integers(4)]
    elif isinstance(old, int):
        new = [old + 1, old - 1, -old, 0, None, old + 0.0][rng.integers(6)]
    else:
        step = 10.0 ** rng.integers(-13, 1) * rng.choice([-1, 1])
        new = [old * (1 + step), old + step, old + step, -old, 0.0, None, 2 * old, float("nan")][
            rng.integers(8)
        ]
    holder[last] = new
    return place


def sealed(content):
    try:
        content["digest"] = second_checker.file_digest(content)
    except ValueError:  # NaN
        content["digest"] = "0" * 64
    return content


def consistent(content, case):
    """All that follows from a change is filled in: what leaves prove, gaps, guarantee, status, digest."""
    data = second_checker.read_data(content, *case, [])
    with np.errstate(all="ignore"):
        data.size = 1.0
        null = content["null"]["intercept"] * data.z
        content["null"]["objective"] = float(
            second_checker.total_loss(content["problem"]["loss"], data, null)
        )
        for path, solution in second_checker.solutions(content):
            faults = []
            second_checker.check_solution(path, solution | {"objective": 1e300}, content, data, faults)
            objective = [fault for fault in faults if fault.startswith(f"{path}.objective")]
            solution["objective"] = float(
                objective[0].rsplit("is ", 1)[1].removeprefix("np.float64(").rstrip(")")
            )
    rebound(content, case[0], case[1]) if case[2] is None else None
    radius = content["problem"]["radius"]
    return derived(content, radius)


def forgeries(seed, name, changes, recomputed):
    rng = np.random.default_rng([seed, changes, recomputed])
    content, *case = bases()[name]
    forged = copy.deepcopy(content)
    places = [change(rng, forged) for _ in range(changes)]
    if recomputed:
        with contextlib.suppress(Exception):  # the form is broken: nothing follows
            consistent(forged, case)
    return places, sealed(forged), case


def run_forgeries(name, seeds):
    """Verdicts of single changes, pairs of changes, and changes from which all else is recomputed."""
    counts = Counter()
    for seed in seeds:
        for changes, recomputed in ((1, False), (2, False), (1, True), (2, True)):
            places, forged, case = forgeries(seed, name, changes, recomputed)
            label = name, seed, changes, recomputed, places
            result = agree(label, forged, *case)
            counts[result] += 1
            if result != "refused":
                assert_true(label, forged, *case)
    return counts


@pytest.mark.parametrize("name", BASES)
def test_both_accept_the_bases(name):
    content, *case = bases()[name]
    assert agree(name, content, *case) == "accepted"
    assert_true(name, content, *case)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("seeds", first(1, [range(6), range(6, 12)]), ids=str)
def test_random_forgeries_have_the_same_verdict(name, seeds):
    counts = run_forgeries(name, seeds)
    assert counts["refused"] >= 7
    assert counts["near"] <= 1


@pytest.mark.long
@pytest.mark.parametrize("name", BASES)
def test_thousands_of_random_forgeries_have_the_same_verdict(name):
    counts = run_forgeries(name, range(1000, 1200))
    assert counts["refused"] >= 300
    assert counts["near"] <= 8


def test_both_refuse_consistent_forgeries():
    for name, (kind, forge) in FORGERIES.items():
        content, X, y = certified(kind)
        forged = copy.deepcopy(content)
        status = forge(forged, X, y)
        if "candidates" in forged:
            derived(forged, content["problem"]["radius"])
        forged |= status or {}
        assert agree(name, sealed(forged), X, y, None) == "refused", name


@pytest.mark.long
@pytest.mark.parametrize("name", list(FORGERIES))
def test_both_refuse_consistent_forgeries_of_other_certificates(name):
    """A forgery is tried on every base that has what it changes. What is accepted must be true."""
    _, forge = FORGERIES[name]
    for base, (content, *case) in bases().items():
        if case[2] is not None:
            continue
        forged = copy.deepcopy(content)
        try:
            status = forge(forged, case[0], case[1])
            if "candidates" in forged:
                derived(forged, content["problem"]["radius"])
        except (KeyError, TypeError, IndexError, StopIteration, ValueError, AttributeError):
            continue
        forged |= status or {}
        if agree((name, base), sealed(forged), *case) != "refused":
            assert_true((name, base), forged, *case)


# ---------------------------------------------------------------- false claims that follow all other rules


def a_part_of_the_matrix():
    """Optimal among three of ten columns, which are said to be all there are."""
    content, A, _ = certified("matrix")
    part = select_columns(A[:, :3], max_terms=3, max_weight=1.0, l2=0.01).certificate.to_dict()
    return part | {"data": content["data"]}, A, None, None


def a_scope_without_the_last_columns():
    content, A, _ = certified("matrix")
    part = select_columns(A[:, :3], max_terms=3, max_weight=1.0, l2=0.01).certificate.to_dict()
    return content | {key: part[key] for key in ("solution", "bounds", "status")}, A, None, None


def plain(loss, A, y, **given):
    """A matrix, whose columns are those of the first scope, with a solution that is said to be optimal."""
    q = A.shape[1]
    content = copy.deepcopy(certified("matrix")[0])
    content["problem"] |= {"loss": loss, "max_terms": None} | given.get("problem", {})
    content["columns"] = {"feature": list(range(q)), "charged": [True] * q, "max_weight": given["box"]}
    content["columns"] |= {key: [0.0] * q for key in ("l0", "l1", "l2")}
    content["solution"] = {"intercept": 0.0, "weights": given["weights"], "objective": 0.0}
    content["null"] = {"intercept": 0.0, "objective": given["null"]}
    leaf = {"forced_in": [], "forced_out": [], "theta": 1.0, "intercept": 0.0, "curve": None, "bound": 0.0}
    bound = content["bounds"][0] | {"columns": given["columns"], "caps": None}
    content["bounds"] = [bound | {"leaves": [leaf | {"weights": given["weights"]}]}]
    digest = second_checker.data_digest([*A.T, *([] if y is None else [y])], np.ones(len(A)), np.ones(len(A)))
    content["data"] = {"rows": len(A), "features": q, "digest": digest}
    return derived(content, given["size"]), A, y, None


def a_mean_that_makes_all_losses_small():
    """Of a matrix the target's mean was free: the empty model costs 5e11, and 0.47 passes for 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    y = x + rng.normal(0, 0.1, 100)
    target = {"mean": -1e6, "scale": 1.0}
    null, weights = float(np.mean((y + 1e6) ** 2) / 2), [[0, float(np.mean(y + 1e6))]]
    A = np.column_stack([np.ones(100), x])
    return plain("squared", A, y, problem={"target": target}, box=[2e6, 10.0], null=null, weights=weights,
                 columns=2, size=null)  # fmt: skip


def a_large_column_beyond_the_scope():
    """The weight 1 on the first column makes -1, and 0 is called optimal: 1 is little beside 1e10."""
    A = np.column_stack([np.ones(80), np.where(np.arange(80) % 2, 1e10, -1e10)])
    content, *case = plain("soft margin", A, None, problem={"radius": 1.0}, box=[None, None], null=0.0,
                           weights=[], columns=1, size=1e10)  # fmt: skip
    return content | {"candidates": True, "status": "optimal among candidates"}, *case


LIES = [a_part_of_the_matrix, a_scope_without_the_last_columns, a_mean_that_makes_all_losses_small,
        a_large_column_beyond_the_scope]  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_both_refuse_false_claims_that_follow_all_other_rules(lie):
    content, *case = lie()
    for check in (second_checker.check, checker.check):
        faults = check(sealed(content), *case)
        assert faults
        assert not any(fault.startswith(("digest", "data")) for fault in faults)

"""Consistent forgeries: files in which every number follows from the others, the digest too, and the claim is
false. Each kind is made from a true certificate, and the checker must refuse it.
"""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from forgeries import FORGERIES, certified, derived, rebound

from cardboost import CardBoostClassifier
from cardboost.certificate import checker
from cardboost.solvers import select_columns
from marks import first


@pytest.mark.parametrize("name", FORGERIES)
def test_consistent_forgeries_are_refused(name):
    kind, forge = FORGERIES[name]
    content, X, y = certified(kind)
    assert checker.check(copy.deepcopy(content), X, y) == []
    forged = copy.deepcopy(content)
    status = forge(forged, X, y)
    if "candidates" in forged:
        radius = content["problem"]["radius"]
        derived(forged, None if radius is None else min(1.0, radius))
    if status is not None:
        forged |= status
    forged["digest"] = checker.content_digest(forged)
    assert json.loads(json.dumps(forged)) != content
    faults = checker.check(forged, X, y)
    assert faults, name
    assert not any(fault.startswith("digest") for fault in faults)


def test_there_are_at_least_thirty_kinds():
    assert len(FORGERIES) >= 30


# ---------------------------------------------------------------- twins of a column that is out


def twins(differing, seed=0):
    """-f, f and p, which is f with some more rows right; one term: p is the best, f is claimed to be."""
    rng = np.random.default_rng(seed)
    f = np.where(rng.random(400) < 0.6, 1.0, -1.0)
    p = f.copy()
    p[np.flatnonzero(f < 0)[:differing]] = 1.0
    return np.column_stack([-f, f, p])


@pytest.mark.parametrize("differing", [3, 12, 60])
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_a_twin_of_a_column_that_is_out_keeps_its_direction(differing, loss):
    """Leaves {0 in}, {0 out}: with -f out, f is still there, and p's curvature is not all p's."""
    A = twins(differing)
    content = select_columns(A, max_terms=1, loss=loss, max_weight=2.0, l2=0.0).certificate.to_dict()
    best = content["solution"]
    assert best["weights"][0][0] == 2
    only_f = select_columns(A[:, 1:2], max_terms=1, loss=loss, max_weight=2.0, l2=0.0)
    weight = float(only_f.x[0])
    forged = copy.deepcopy(content)
    forged["solution"] = {"intercept": 0.0, "weights": [[1, weight]], "objective": only_f.objective}
    centre = {"intercept": 0.0, "centre": [[1, weight]]}
    leaf = {"theta": 1.0, "intercept": 0.0, "weights": [[1, weight]], "bound": 0.0}
    accepted = []
    for share in (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 0.95):
        bound = forged["bounds"][0] | {"caps": centre}
        slope = float(np.mean(np.exp(-A[:, 2] * weight)))  # no curvature of p is more
        curve = centre | {"aside": [[2, share * slope]]}
        bound["leaves"] = [
            leaf | {"forced_in": [0], "forced_out": [], "curve": None},
            leaf | {"forced_in": [], "forced_out": [0], "curve": curve},
        ]
        forged["bounds"] = [bound]
        rebound(forged, A, None)
        derived(forged)
        if not checker.check(forged, A):
            accepted.append(forged["bounds"][0]["lower_bound"])
    assert all(lower <= best["objective"] + 1e-9 for lower in accepted)


@pytest.mark.parametrize("seed", first(4, range(12)))
def test_search_with_twins_finds_what_enumeration_finds(seed):
    rng = np.random.default_rng(seed)
    f = np.where(rng.random((150, 4)) < 0.6, 1.0, -1.0)
    near = f.copy()
    near[rng.random(near.shape) < 0.1] = 1.0
    A = np.column_stack([-f, f, near])[:, rng.permutation(12)]
    terms = int(rng.integers(1, 4))
    result = select_columns(A, max_terms=terms, max_weight=1.5, loss=("logistic", "exponential")[seed % 2])
    single = min(
        select_columns(
            A[:, list(support)],
            max_terms=terms,
            max_weight=1.5,
            l1=1e-4,
            loss=("logistic", "exponential")[seed % 2],
            method="polish",
        ).objective
        for support in __import__("itertools").combinations(range(12), terms)
    )
    assert result.objective == pytest.approx(single, abs=1e-8)
    assert result.certificate.verify(A)


# ---------------------------------------------------------------- data that are no numbers


def one_leaf(A, loss, box, l1=0.0, **leaf):
    """A certificate that the empty model is optimal, by one leaf."""
    objective = float(np.log(2.0) if loss == "logistic" else 1.0)
    n = A.shape[1]
    base = {"forced_in": [], "forced_out": [], "theta": 1.0, "intercept": 0.0, "weights": [], "curve": None}
    content = copy.deepcopy(certified("matrix")[0])
    content["problem"] |= {"loss": loss, "max_terms": n}
    content["columns"] = {
        "feature": list(range(n)), "charged": [True] * n, "l1": [l1] * n, "l2": [0.0] * n, "l0": [0.0] * n,
        "max_weight": [box] * n,
    }  # fmt: skip
    content["solution"] = {"intercept": 0.0, "weights": [], "objective": objective}
    content["null"] = {"intercept": 0.0, "objective": objective}
    content["bounds"] = [
        {"scope": "pool", "columns": n, "leaves": [base | {"bound": objective} | leaf], "caps": None}
    ]
    content["data"] = {"rows": len(A), "features": n, "digest": checker.data_digest(A, None, None)}
    return content


@pytest.mark.parametrize("sizes", first(1, [4, 8, 29]))
@pytest.mark.parametrize(("loss", "box"), [("exponential", 2.0), ("logistic", 30.0)])
def test_a_bound_below_zero_leaves_room(loss, box, sizes):
    """At a bad centre the tangent is far below 0: the ellipsoid around it holds better models too."""
    A = np.where(np.arange(100) < 80, 1.0, -1.0)[:, None]
    for centre in (-8.0, -5.0, -3.0, 4.0, 8.0, 12.0):
        for weight in (-4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0):
            for aside in np.logspace(-3, 4, sizes).tolist():
                curve = {"intercept": 0.0, "centre": [[0, centre]], "aside": [[0, aside]]}
                content = one_leaf(A, loss, box, weights=[[0, weight]], curve=curve)
                content["bounds"][0]["caps"] = {"intercept": 0.0, "centre": [[0, centre]]}
                assert checker.check(derived(content), A)


def test_a_large_box_makes_the_rounding_of_edges_count():
    """Both edges round to 0 or less; weights of 1e18 in the ratio 7 : 10 have next to no loss."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.normal(size=(60, 2))
        A[:, 1] += 1e-17
        A -= A.mean(axis=0)
        refused = [checker.check(derived(one_leaf(A, "logistic", box)), A) for box in (1e19, None)]
        assert all(refused)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_matrix_that_is_not_finite_is_refused(value):
    content, A, _ = certified("matrix")
    broken = A.copy()
    broken[3, 4] = value
    with pytest.raises(ValueError, match=r"not finite|infinite"):
        checker.check(content, broken)


def test_infinite_features_are_refused():
    content, X, y = certified("card")
    broken = X.copy()
    broken[3, 1] = np.inf
    with pytest.raises(ValueError, match="feature 1 holds infinite values"):
        checker.check(content, broken, y)


def test_edges_beyond_all_numbers_prove_nothing():
    """Exponentials of margins of -1e4 are infinite: a leaf there bounds nothing."""
    A = np.column_stack([np.ones(40), np.where(np.arange(40) % 3, 1.0, -1.0)])
    content = select_columns(A, max_terms=1, max_weight=1.0).certificate.to_dict()
    leaf = {"forced_in": [], "forced_out": [], "theta": 1.0, "intercept": 0.0, "curve": None}
    content["bounds"][0]["leaves"] = [
        leaf | {"weights": [[1, 1e4]], "bound": content["solution"]["objective"]}
    ]
    content["bounds"][0]["caps"] = None
    assert any("leaves[0].bound" in fault for fault in checker.check(derived(content), A))


def test_a_limit_on_terms_that_would_take_for_ever_is_refused():
    content, X, y = certified("features")
    forged = copy.deepcopy(content)
    forged["problem"]["max_terms"] = 1_000_000
    assert checker.check(derived(forged), X, y)[0].startswith("problem.max_terms")
    with pytest.raises(ValueError, match="max_terms must be at most"):
        CardBoostClassifier(max_terms=10**6, l2=0.01, max_features=2).fit(X, y)

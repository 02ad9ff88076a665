"""Curvature that every better choice leaves: caps and bounds hold, and the checker sees to both."""

from __future__ import annotations

import copy
import functools
from dataclasses import replace

import numpy as np
import pytest
from problems import (
    enumeration_of,
    hard_problem,
    least_in_node,
    matrix_problem,
    of_certificate,
    random_states,
)
from threadpoolctl import threadpool_limits

from cardboost import CardBoostClassifier, _kernels
from cardboost.certificate import checker
from cardboost.certificate.checker import bounds
from cardboost.certificate.checker.curvature import Curvature
from cardboost.problem.prices import Prices
from cardboost.selection import exact
from cardboost.selection.exact import exact_search
from cardboost.selection.merge import merge_rows
from cardboost.selection.nodes import (
    ASIDE,
    PLAIN,
    ZERO,
    column_roles,
    curvature_left,
    margin_limits,
)
from cardboost.selection.polish import Polisher, polish
from cardboost.selection.relaxation import pool_relaxation
from cardboost.solvers import select_columns
from marks import first
from reference import curvature_left as slow_curvature_left
from reference import curved_node_bound


def curved_case(seed, rows=60, most=8):
    """A problem with distinct columns, and what the kernel needs for it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, most + 1))
    A = np.where(rng.random((rows, n)) < rng.uniform(0.5, 0.75, n), 1.0, -1.0)
    if seed % 4 == 0:
        A = A * rng.uniform(0.5, 1.5, (rows, n))
    share = rng.random(rows) + 0.1
    share /= share.sum()
    k = int(rng.integers(1, n)) if seed % 3 == 0 else -1
    full = lambda value: np.full(n, float(value))  # noqa: E731
    prices = Prices(
        rng.choice([0.0, 1e-3], n), full(rng.choice([0.0, 0.02])), full(0.0 if k >= 0 else 0.01),
        rng.choice([0.8, 1.5], n), np.ones(n, dtype=bool),
    )  # fmt: skip
    loss = seed % 2
    problem = matrix_problem(A, share, ("exponential", "logistic")[loss], prices, None if k < 0 else k)
    signs = seed % 4 != 0
    arguments = {
        "loss": loss, "packed": np.packbits(A.T < 0, axis=0, bitorder="little") if signs else None,
        "dense": None if signs else np.ascontiguousarray(A.T), "share": share, "l1": prices.l1,
        "l2": prices.l2, "l0": prices.l0, "upper": prices.max_weight, "charged": np.ones(n, np.uint8),
        "max_terms": k,
    }  # fmt: skip
    return A, problem, arguments, rng


def root_weights(arguments, n):
    return _kernels.bound_nodes(
        **arguments, state=np.zeros((1, n), np.int8), start=np.zeros((1, n)), tau=np.zeros(1), cutoff=9.0,
        max_steps=60, threads=1,
    )[1][0]  # fmt: skip


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_curvature_that_is_left(loss):
    rng = np.random.default_rng(0)
    F = np.concatenate([rng.normal(0.0, 3.0, 300), np.zeros(100)])
    floors = F - np.concatenate([rng.exponential(3.0, 300), np.geomspace(1e-9, 1.0, 100)])
    caps = F + np.concatenate([rng.exponential(3.0, 300), np.geomspace(1.0, 1e-9, 100)])
    found = curvature_left(loss, F, floors, caps)
    slow = slow_curvature_left(int(loss == "logistic"), F, floors, caps)
    assert (found <= slow * (1.0 + 1e-6)).all()
    assert found == pytest.approx(slow, rel=5e-3)  # a little is given away where floor or cap are near
    # a tangent with so much curvature stays below the loss from floor to cap
    value = (lambda z: np.exp(-z)) if loss == "exponential" else (lambda z: np.logaddexp(0.0, -z))
    slope = -np.exp(-F) if loss == "exponential" else -1.0 / (1.0 + np.exp(F))
    for share in np.linspace(0.0, 1.0, 31):
        x = floors + share * (caps - floors) - F
        assert (value(F + x) >= value(F) + slope * x + 0.5 * found * x * x - 1e-12 * (1 + value(F))).all()


@pytest.mark.parametrize("seed", range(25))
def test_no_better_choice_leaves_the_limits(seed):
    A, problem, arguments, rng = curved_case(seed)
    n = A.shape[1]
    polisher = Polisher(problem)
    best, _ = polish(problem)
    objective = best.objective * 1.03
    for centre in (root_weights(arguments, n), 0.9 * root_weights(arguments, n), best.weights):
        limits = margin_limits(problem, column_roles(problem), centre, objective)
        assert limits is not None
        floors, caps = limits
        assert (A @ best.weights <= caps + 1e-9).all()
        for _ in range(60):
            k = n if problem.max_terms is None else problem.max_terms
            size = int(rng.integers(max(1, k - 2), k + 1))
            at = polisher.refit(sorted(rng.choice(n, size, replace=False).tolist()))
            for scale in (1.0, 1.1, 1.25, 0.8):
                w = np.minimum(at.weights * scale, problem.prices.max_weight)
                value = problem.objective(problem.risk.evaluate(A @ w).value, w)
                if value <= objective:
                    assert (A @ w <= caps + 1e-9).all()
                    assert (A @ w >= floors - 1e-9).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("box", [1.5, 1e4])
def test_limits_are_no_narrower_than_the_checkers(seed, box):
    """Also where boxes are so wide that scaled row weights would prove more."""
    A, problem, arguments, _ = curved_case(seed)
    full = lambda value: np.full(A.shape[1], float(value))  # noqa: E731
    prices = Prices(full(0.01), full(0.0), full(0.5), full(box), np.ones(A.shape[1], dtype=bool))
    problem = replace(problem, prices=prices, max_terms=1)
    options = arguments | {"l1": prices.l1, "l2": prices.l2, "l0": prices.l0, "upper": prices.max_weight}
    centre = root_weights(options | {"max_terms": 1}, A.shape[1]).astype(np.float32).astype(np.float64)
    objective = problem.objective(problem.risk.evaluate(np.zeros(len(A))).value, full(0.0))
    limits = margin_limits(problem, column_roles(problem), centre, objective)
    point = problem.risk.evaluate(A @ centre)
    edges = A.T @ (problem.risk.weights.normalised * point.v)
    worth = np.maximum(0.0, box * np.maximum(0.0, edges - 0.01) - 0.5)
    rows = A.astype(float), problem.risk.weights.normalised
    known = Curvature.make(
        problem.risk.loss.name, rows, (full(0.0), prices.max_weight), objective, centre,
        max(0.0, point.dual(1.0) - float(worth.max())),
    )  # fmt: skip
    if limits is not None:
        assert (limits[0] <= known.floors + 1e-9 * (1 + np.abs(known.floors))).all()
        assert (limits[1] >= known.caps - 1e-9 * (1 + np.abs(known.caps))).all()


def test_limits_have_the_same_bits_with_any_number_of_threads_of_blas():
    rng = np.random.default_rng(3)
    A = np.where(rng.random((6000, 40)) < 0.55, 1.0, -1.0)
    full = lambda value: np.full(40, value)  # noqa: E731
    prices = Prices(full(1e-3), full(0.02), full(0.01), full(0.5), np.ones(40, dtype=bool))
    problem = matrix_problem(A, full(1.0 / 6000).repeat(150), "logistic", prices, None)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(margin_limits(problem, column_roles(problem), full(0.05), 0.7))
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("seed", first(14, range(40)))
def test_bounds_with_curvature_are_those_of_the_twin_and_hold(seed):
    A, problem, arguments, rng = curved_case(seed)
    n, k = A.shape[1], arguments["max_terms"]
    best, _ = polish(problem)
    objective = best.objective
    limits = margin_limits(problem, column_roles(problem), root_weights(arguments, n), objective)
    floors, caps = limits
    state = random_states(rng, 8, n, arguments["charged"])
    state[0] = 0
    state = state[[k < 0 or np.count_nonzero(own == exact.IN) <= k for own in state]]
    more = {
        **arguments, "tau": np.zeros(len(state)), "cutoff": objective, "threads": 1, "floors": floors,
        "caps": caps, "role": column_roles(problem).role, "twin": column_roles(problem).twin,
        "objective": objective,
        "curved": np.ones(len(state), np.uint8),
    }  # fmt: skip
    bound, weights, _, _, fixed, branch, centre, curve, plain = _kernels.bound_nodes(
        **more, state=state, start=np.zeros(state.shape), max_steps=60, curve=np.zeros(state.shape)
    )
    again = _kernels.bound_nodes(**more, state=state, start=weights, curve=curve, max_steps=0)
    enumeration = enumeration_of(problem)
    for i, own in enumerate(state):
        optimum = least_in_node(enumeration, own, k)
        if optimum < objective:
            assert bound[i] <= optimum + 1e-7
            decided = np.where((own == 0) & (fixed[i] != 0), fixed[i], own)
            assert least_in_node(enumeration, decided, k) <= optimum + 1e-7
        assert bound[i] >= plain[i]
        if curve[i].any():
            assert again[0][i] == pytest.approx(bound[i], abs=1e-12)
            value, least = curved_node_bound(
                A, arguments, own, weights[i], centre[i], curve[i], limits, objective
            )
            assert least > 0.0
            assert bound[i] == pytest.approx(value, abs=1e-7)
    assert branch.dtype == np.int32


def test_repeated_and_opposite_columns_have_nothing_set_aside():
    rng = np.random.default_rng(0)
    A = np.where(rng.random((40, 4)) < 0.6, 1.0, -1.0)
    A = np.column_stack([A, A[:, 1], -A[:, 2]])
    full = lambda value: np.full(6, float(value))  # noqa: E731
    charged = np.array([True, True, True, False, True, True])
    prices = Prices(full(0.0), full(0.0), full(0.01), full(2.0), charged)
    problem = merge_rows(matrix_problem(A, np.ones(40), "exponential", prices, None))
    roles = column_roles(problem)
    assert roles.role.tolist() == [ASIDE, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN]
    assert roles.twin.tolist() == [0, 1, 2, 3, 1, 2]
    assert roles.basis.tolist() == [True, True, True, True, False, False]


def test_columns_of_zeros_have_no_direction():
    A = np.column_stack([np.ones(4), np.zeros(4)])
    full = lambda value: np.full(2, float(value))  # noqa: E731
    problem = matrix_problem(
        A, np.ones(4), "logistic", Prices(full(0.0), full(0.0), full(0.0), full(1.0), np.ones(2, bool)), 1
    )
    assert column_roles(problem).role.tolist() == [ASIDE, ZERO]


def test_curvature_closes_a_large_part_of_the_gap():
    _, problem = hard_problem(2, rows=300, columns=16)
    best, _ = polish(problem)
    plain = pool_relaxation(problem, best.weights).leaf.bound
    found = exact_search(problem, best, max_nodes=1)
    assert found.lower_bound > plain + 0.3 * (best.objective - plain)
    assert found.centre is not None


# ---------------------------------------------------------------- in certificates


@functools.cache
def curved_certificate(loss):
    """A matrix, its certificate with curves in some leaves, and the optimum by enumeration."""
    rng = np.random.default_rng(7)
    A = np.where(rng.random((90, 11)) < rng.uniform(0.55, 0.7, 11), 1.0, -1.0)
    found = select_columns(
        A, l0=0.02 if loss == "exponential" else 0.008, l1=1e-3, loss=loss, method="exact", max_nodes=40
    )
    content = found.certificate.to_dict()
    curved = [leaf for leaf in content["bounds"][0]["leaves"] if leaf["curve"] is not None]
    assert len(curved) >= 3
    return A, found, content, of_certificate(found.certificate, A, np.ones(len(A))).best(None)


def sealed(content):
    content["digest"] = checker.content_digest(content)
    return content


@pytest.mark.parametrize("loss", [pytest.param("exponential", marks=pytest.mark.long), "logistic"])
def test_the_checker_accepts_curves_and_needs_what_they_rely_on(loss):
    A, found, content, optimum = curved_certificate(loss)
    assert checker.check(content, A) == []
    assert found.lower_bound <= optimum + 1e-7

    def faults(change):
        broken = copy.deepcopy(content)
        leaf = next(own for own in broken["bounds"][0]["leaves"] if own["curve"] is not None)
        change(broken, leaf)
        return checker.check(sealed(broken), A)

    assert any("curve" in own for own in faults(lambda file, leaf: file["bounds"][0].update(caps=None)))
    assert faults(lambda file, leaf: leaf.update(curve=None))
    assert any(".curve" in own for own in faults(lambda file, leaf: leaf["curve"].update(aside="AAAA")))
    assert any(".intercept" in own for own in faults(lambda file, leaf: leaf["curve"].update(intercept=1.0)))
    assert any(
        ".caps" in own for own in faults(lambda file, leaf: file["bounds"][0]["caps"].update(centre="x"))
    )
    other = "logistic" if loss == "exponential" else "exponential"
    assert faults(lambda file, leaf: file["problem"].update(loss=other))
    assert any(".theta" in own or "curve" in own for own in faults(lambda file, leaf: leaf.update(theta=0.5)))
    assert faults(lambda file, leaf: file.update(version=2))


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("factor", first(3, [0.5, 1.001, 3.0, 0.0, 1.5, 30.0]))
def test_a_changed_curve_is_refused_or_its_bound_is_true(factor, loss):
    """The bound of the leaf is made to fit the change: only what the curvature allows may pass."""
    A, _, content, optimum = curved_certificate(loss)
    bound = content["bounds"][0]
    passed = 0
    for i, leaf in enumerate(bound["leaves"]):
        if leaf["curve"] is None:
            continue
        broken = copy.deepcopy(content)
        own = broken["bounds"][0]["leaves"][i]
        aside = checker.format.leaf_weights(leaf["curve"]["aside"], bound["columns"], bound["columns"])
        own["curve"]["aside"] = [[j, factor * d] for j, d in enumerate(aside.tolist()) if d]
        evidence = bounds.gather(broken, A)
        own["bound"] = float(bounds.leaf_bounds(evidence, broken["bounds"][0], [own])[0])
        faults = [fault for fault in checker.check(sealed(broken), A) if f"leaves[{i}]" in fault]
        passed += not faults
        if not faults and not leaf["forced_in"] and not leaf["forced_out"]:
            assert own["bound"] <= optimum + 1e-7
        if factor >= 3.0:
            assert faults
    assert passed or factor > 1.0


@pytest.mark.parametrize("seed", [2, 5])
def test_the_checkers_limits_are_ours(seed):
    A, problem, arguments, _ = curved_case(seed)
    A, first = np.unique(A, axis=0, return_index=True)
    arguments["packed"] = np.ascontiguousarray(arguments["packed"][:, first])
    arguments["share"] = np.full(len(A), 1.0 / len(A))
    problem = matrix_problem(A, np.ones(len(A)), problem.risk.loss.name, problem.prices, None)
    best, _ = polish(problem)
    centre, n = root_weights(arguments, A.shape[1]), A.shape[1]
    p = problem.prices
    bound = _kernels.bound_nodes(
        **arguments, state=np.zeros((1, n), np.int8), start=centre[None], tau=np.zeros(1), cutoff=9.0,
        max_steps=0, threads=1,
    )[0][0]  # fmt: skip
    rows, box, objective = (A, arguments["share"]), (np.zeros(n), p.max_weight), best.objective * 1.05
    known = Curvature.make(problem.risk.loss.name, rows, box, objective, centre, bound)
    ours = margin_limits(problem, column_roles(problem), centre, objective)
    assert known.floors == pytest.approx(ours[0], rel=1e-4)
    assert known.caps == pytest.approx(ours[1], rel=1e-4)
    assert not known.allows(best.weights, np.full(n, 10.0), np.ones(n, dtype=bool))
    assert not known.allows(best.weights, np.full(n, -0.1), np.ones(n, dtype=bool))


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_curves_of_a_classifier_with_an_intercept(loss):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 4))
    y = X[:, 0] + 0.7 * X[:, 1] ** 2 + rng.normal(0.0, 0.8, 150) > 0.4
    model = CardBoostClassifier(loss=loss, max_terms=None, l2=0.0, l0=0.01, hot_start=12, max_nodes=60).fit(
        X, y
    )
    leaves = model.certificate_.scopes["pool"].leaves
    assert any(leaf["curve"] is not None for leaf in leaves)
    assert model.certificate_.faults(X, y) == []

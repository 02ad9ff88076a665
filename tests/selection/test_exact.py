"""Exact search: its nodes' bounds hold, its answer is the optimum, and budgets and threads behave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from problems import (
    enumeration_of,
    hard_problem,
    least_in_node,
    matrix_problem,
    random_matrix,
    random_states,
    stump_problem,
)

from cardboost import CardBoostClassifier, _kernels
from cardboost.problem.prices import FeatureLimits, Prices
from cardboost.selection import exact
from cardboost.selection.exact import exact_search
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import Polisher, polish
from cardboost.solvers import minimize_l1, select_columns
from marks import first
from reference import node_bound


def node_problem(seed):
    """Arguments of the node kernel: random columns, prices per column, some not charged, perhaps a limit."""
    rng = np.random.default_rng(seed)
    A = random_matrix(rng)
    m, n = A.shape
    signs = bool((np.abs(A) == 1).all())
    share = rng.random(m) + 0.1
    charged = (rng.random(n) < 0.8).astype(np.uint8)
    l0 = np.where(charged, rng.choice([0.0, 0.01, 0.05], n), 0.0)
    return {
        "loss": int(rng.integers(2)),
        "packed": np.packbits(A.T < 0, axis=0, bitorder="little") if signs else None,
        "dense": None if signs else np.ascontiguousarray(A.T),
        "share": share / share.sum(),
        "l1": rng.choice([0.0, 1e-3, 0.02], n), "l2": rng.choice([0.0, 0.05], n), "l0": l0,
        "upper": rng.choice([0.0, 0.4, 2.0], n, p=[0.1, 0.4, 0.5]), "charged": charged,
        "max_terms": int(rng.integers(-1, 4)),
    }, A, rng  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_at_given_weights_is_that_of_the_twin(seed):
    columns, A, rng = node_problem(seed)
    n = A.shape[1]
    state, start = random_states(rng, 6, n, columns["charged"]), rng.random((6, n))
    bound = _kernels.bound_nodes(
        **columns, state=state, start=start, tau=np.zeros(6), cutoff=np.inf, max_steps=0, threads=1
    )[0]
    for k in range(6):
        expected = max(0.0, node_bound(A, columns, state[k], start[k]))  # no loss is negative
        assert bound[k] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("seed", range(30))
def test_a_nodes_bound_is_below_its_optimum_and_fixings_lose_nothing(seed):
    columns, A, rng = node_problem(seed)
    n, charged = A.shape[1], columns["charged"].astype(bool)
    loss = ("exponential", "logistic")[columns["loss"]]
    prices = Prices(columns["l1"], columns["l2"], columns["l0"], columns["upper"], charged)
    state = random_states(rng, 1, n, charged)
    start = np.zeros((1, n))
    k = columns["max_terms"]
    problem = matrix_problem(A, columns["share"], loss, prices, None if k < 0 else k)
    inside = set(np.flatnonzero(state[0] == exact.IN).tolist())
    if k >= 0 and len(inside) > k:
        return
    best = least_in_node(enumeration_of(problem), state[0], k)
    cutoff = best + rng.choice([-0.01, 1e-6, 0.02])
    bound, weights, _, _, fixed, branch, *_ = _kernels.bound_nodes(
        **columns, state=state, start=start, tau=np.zeros(1), cutoff=cutoff, max_steps=60, threads=1
    )
    assert bound[0] <= best + 1e-7
    assert (weights[0] <= columns["upper"]).all()
    if cutoff > best:
        # a fixing takes no choice away that is better than the cutoff
        decided = np.where((state[0] == 0) & (fixed[0] != 0), fixed[0], state[0])
        assert least_in_node(enumeration_of(problem), decided, k) <= best + 1e-7
    if branch[0] >= 0:
        assert state[0, branch[0]] == exact.FREE


@pytest.mark.parametrize("steps", [0, 60])
@pytest.mark.parametrize("loss", [0, 1])
def test_weights_beyond_all_exponentials_do_no_harm(loss, steps):
    columns, A, rng = node_problem(3)
    columns |= {"loss": loss, "upper": np.full(A.shape[1], 2e3), "l2": np.zeros(A.shape[1])}
    state = random_states(rng, 4, A.shape[1], columns["charged"])
    bound, weights, tau, value, *_ = _kernels.bound_nodes(
        **columns, state=state, start=np.full(state.shape, 2e3), tau=np.zeros(4), cutoff=0.5,
        max_steps=steps, threads=1,
    )  # fmt: skip
    assert (bound >= 0.0).all()
    assert np.isfinite(bound).all()
    assert np.isfinite(weights).all()
    assert np.isfinite(tau).all()
    if steps:
        assert np.isfinite(value).all()


def test_a_search_in_a_wide_box_over_separable_rows():
    rng = np.random.default_rng(5)
    A = np.where(rng.random((60, 12)) < 0.9, 1.0, -1.0)
    A[:, 0] = 1.0
    for width in (1.0, 50.0, 1e3):
        found = select_columns(A, l0=1e-3, l1=1e-6, max_weight=width, max_nodes=500)
        assert 0.0 <= found.lower_bound <= found.objective <= 1.0
        assert found.certificate.faults(A) == []


@pytest.mark.parametrize("seed", first(25, range(60)))
def test_exact_search_over_stumps_and_the_intercept(seed):
    problem, _, _ = stump_problem(seed)
    found, _ = polish(problem)
    proven = exact_search(problem, found)
    optimum = enumeration_of(problem).best(problem.max_terms)
    assert proven.status == "optimal"
    assert proven.incumbent.objective == pytest.approx(optimum, abs=1e-7)
    assert proven.incumbent.objective - proven.lower_bound <= 1e-8
    assert proven.lower_bound <= optimum + 1e-7


@pytest.mark.parametrize("seed", range(10))
def test_a_poor_start_makes_no_difference(seed):
    problem, _, _ = stump_problem(seed)
    empty = Polisher(merge_rows(problem)).refit([])
    one, other = exact_search(problem, empty), exact_search(problem, polish(problem)[0])
    assert one.status == other.status == "optimal"
    assert one.incumbent.objective == pytest.approx(other.incumbent.objective, abs=1e-9)


def test_threads_make_no_difference():
    _, problem = hard_problem()
    start, _ = polish(problem)
    results = []
    for threads in (1, 2, 7):
        own = replace(problem, risk=replace(problem.risk, threads=threads))
        results.append(exact_search(own, start, max_nodes=300))
    first = results[0]
    for other in results[1:]:
        assert (other.nodes, other.open_nodes, other.lower_bound) == (
            first.nodes, first.open_nodes, first.lower_bound,
        )  # fmt: skip
        assert all(
            np.array_equal(a.weights, b.weights) for a, b in zip(first.leaves, other.leaves, strict=True)
        )


def test_more_nodes_never_lower_the_bound():
    _, problem = hard_problem(1)
    start, _ = polish(problem)
    last = 0.0
    for nodes in (1, 2, 3, 10, 50, 200, 1000):
        found = exact_search(problem, start, max_nodes=nodes)
        assert found.nodes <= nodes
        assert found.lower_bound >= last - 1e-9
        assert found.status in ("node limit", "optimal")
        assert min(leaf.bound for leaf in found.leaves) == pytest.approx(found.lower_bound, abs=1e-8)
        last = found.lower_bound


def test_a_search_too_large_for_its_file_keeps_its_first_leaves():
    A, problem = hard_problem(2)
    start, _ = polish(problem)
    whole = exact_search(problem, start, max_nodes=1000)
    part = exact_search(problem, start, max_nodes=1000, most_leaves=40)
    assert part.lower_bound == pytest.approx(whole.lower_bound, abs=1e-8)
    assert len(part.leaves) <= 40 < len(whole.leaves)
    assert min(leaf.bound for leaf in part.leaves) <= part.lower_bound + 1e-9
    found = select_columns(A, l0=0.004, max_weight=0.6, max_nodes=200)
    assert found.certificate.faults(A) == []


def test_without_time_for_new_leaves_the_earlier_ones_are_kept():
    _, problem = hard_problem(3, columns=40)
    start, _ = polish(problem)
    first = exact_search(problem, start, max_nodes=30)
    assert len(first.leaves) > 1
    batches = []
    again = exact_search(
        problem, first.incumbent, begin_at=first.leaves, proof_late=lambda: True,
        late=lambda: len(batches) > 0, progress=lambda *_: batches.append(1),
    )  # fmt: skip
    assert batches
    assert all(leaf is earlier for leaf, earlier in zip(again.leaves, first.leaves, strict=True))
    assert again.status == "time limit"
    assert again.lower_bound == min(leaf.bound for leaf in first.leaves)


def test_progress_is_told_and_time_is_kept():
    _, problem = hard_problem(3, columns=40)
    start, _ = polish(problem)
    seen = []
    calls = iter(range(10**6))
    found = exact_search(
        problem, start, late=lambda: next(calls) > 3, progress=lambda *facts: seen.append(facts)
    )
    assert found.status == "time limit"
    assert seen
    assert all(0 < bound <= objective for _, _, bound, objective in seen)
    assert found.lower_bound <= found.incumbent.objective


def test_what_exact_search_does_not_take():
    problem, _, _ = stump_problem(0)
    groups = np.where(problem.prices.charged, 0, -1).astype(np.int32)
    limited = replace(problem, groups=groups, limits=FeatureLimits(max_features=1))
    assert "features" in exact.accepts(limited)
    with pytest.raises(ValueError, match="features"):
        exact_search(limited, polish(problem)[0])
    unboxed = replace(
        problem, prices=replace(problem.prices, max_weight=np.full(len(problem.prices), np.inf))
    )
    assert "max_weight" in exact.accepts(unboxed)


def test_the_gap_to_the_convex_problem_is_at_least_the_price_of_the_terms():
    """Without a box the dual does not see the price of a term (theorem 2 of the paper)."""
    for seed in range(20):
        A = random_matrix(np.random.default_rng(seed))
        convex = minimize_l1(A, 0.01, l2=0.01, loss="exponential")
        found = select_columns(A, l0=0.02, l1=0.01, l2=0.01, max_weight=50.0)
        assert found.status == "optimal"
        assert found.objective - convex.lower_bound >= 0.02 * len(found.support) - 1e-9


def test_the_classifier_proves_its_pool_optimal():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=300) > 0.4
    for selector in ("auto", "exact"):
        fitted = CardBoostClassifier(max_terms=4, l2=0.01, hot_start=15, selector=selector).fit(X, y)
        assert fitted.certificate_.bound("pool").guarantee >= 1 - 1e-6
        assert fitted.certificate_.verify(X, y)
    local = CardBoostClassifier(max_terms=4, l2=0.01, hot_start=15, selector="polish").fit(X, y)
    assert local.certificate_.bound("pool").lower_bound <= fitted.certificate_.objective + 1e-9
    assert fitted.certificate_.objective <= local.certificate_.objective + 1e-12

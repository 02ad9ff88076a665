"""Choices for many sizes at once: feasible, falling, and as good as enumeration on small problems."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import matrix_problem

from cardboost.problem.prices import PriceRule
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import Polisher, choose_sizes, improve_sizes, polish
from cardboost.selection.selection_problem import SelectionProblem


def problem_of(seed, rows=60, columns=7, loss="logistic", l0=0.0):
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((rows, columns)) < rng.uniform(0.35, 0.75, columns), 1.0, -1.0)
    A[: rows // 2, 1] = A[: rows // 2, 0]  # columns that can take each other's place
    prices = PriceRule(1e-3, 0.01, l0, 3.0).prices(columns, 0)
    return matrix_problem(A, np.ones(rows), loss, prices, None)


def best_of_size(problem, k):
    polisher = Polisher(merge_rows(problem))
    n = problem.pool.n_columns
    every = itertools.chain.from_iterable(itertools.combinations(range(n), size) for size in range(k + 1))
    return min(polisher.refit(support).objective for support in every)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from(["logistic", "exponential"]), st.sampled_from([0.0, 0.01]))
def test_no_size_is_exceeded_and_the_best_is_found(seed, loss, l0):
    problem = problem_of(seed, loss=loss, l0=l0)
    sizes = (1, 2, 3, 5)
    found = choose_sizes(problem, sizes)
    objectives = [at.objective for at in found]
    assert objectives == sorted(objectives, reverse=True)
    for k, at in zip(sizes, found, strict=True):
        assert len(at.support) <= k
        value = problem.risk.evaluate(problem.pool.margins(at.weights)).value
        assert at.objective == pytest.approx(problem.objective(value, at.weights), rel=1e-12)
        best = best_of_size(problem, k)
        assert best * (1 - 1e-7) <= at.objective <= best * (1 + 1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_as_good_as_a_search_for_one_size(seed):
    problem = problem_of(seed, rows=200, columns=24)
    sizes = (2, 5, 6, 11)
    for k, at in zip(sizes, choose_sizes(problem, sizes), strict=True):
        alone, _ = polish(SelectionProblem(problem.pool, problem.risk, problem.prices, k))
        assert at.objective <= alone.objective * (1 + 1e-3)


def test_without_time_there_is_still_a_choice_for_every_size():
    problem = problem_of(0)
    found = choose_sizes(problem, (1, 4), late=lambda: True)
    assert [len(at.support) <= k for k, at in zip((1, 4), found, strict=True)] == [True, True]


@pytest.mark.parametrize("seed", range(3))
def test_choices_for_other_prices_go_on_from_those_before(seed):
    problem = merge_rows(problem_of(seed))
    sizes = (1, 2, 4)
    before = choose_sizes(problem, sizes)
    dearer = replace(problem, prices=replace(problem.prices, l2=problem.prices.l2 + 0.1))
    after = improve_sizes(dearer, sizes, before)
    polisher = Polisher(dearer)
    for k, start, choice in zip(sizes, before, after, strict=True):
        assert len(choice.support) <= k
        assert choice.objective <= polisher.refit(start.support).objective + 1e-12
        assert choice.objective == pytest.approx(dearer.objective_of(choice.weights), abs=1e-12)
    assert all(one.objective >= other.objective for one, other in itertools.pairwise(after))

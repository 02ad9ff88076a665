"""The one loop: it never gets worse, and with a finite dictionary it ends at the optimum over all columns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import reference
from cardboost.boosting.loop import StopRule
from cardboost.boosting.totally_corrective import ONE_AT_A_TIME, Pace, generate
from cardboost.data.binning import bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.base import Scoring
from cardboost.dictionary.learners import FittedDictionary, LearningRows
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.master.newton import Master
from cardboost.problem.losses import LOSSES, SQUARED
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk

ALL = {**LOSSES, "squared": SQUARED}


def all_columns(dictionary: StumpDictionary) -> np.ndarray:
    """a_ij of every distinct stump, behind the two columns of the intercept."""
    matrix = dictionary.matrix
    y = np.ones(matrix.n_rows) if dictionary.sign is None else dictionary.sign
    columns = {tuple(y): None, tuple(-y): None} if dictionary.intercept else {}
    for f in range(matrix.n_features):
        for stump in reference.all_stumps(int(matrix.n_bins[f]), bool(matrix.n_missing[f])):
            h = reference.stump_column(matrix.bins[f], *stump)
            if abs(h.sum()) < len(h):
                columns[tuple(y * h)] = None
    return np.array(list(columns), dtype=float).T


def optimum(a, risk: EmpiricalRisk, rule: PriceRule, n_free: int) -> float:
    p = rule.prices(a.shape[1], n_free)
    loss, s = risk.loss, risk.weights.normalised

    def objective(w):
        F = a @ w - (0.0 if risk.target is None else risk.target)
        return loss.value(F, s) + p.cost(w), a.T @ (s * loss.derivative(F)) + p.l1 + p.l2 * w

    w = np.zeros(a.shape[1])
    for _ in range(3):
        w = minimize(
            objective, w, jac=True, method="L-BFGS-B",
            bounds=[(0, None if np.isinf(m) else m) for m in p.max_weight],
            options={"ftol": 1e-16, "gtol": 1e-13, "maxiter": 3000, "maxfun": 10000, "maxcor": 30},
        ).x  # fmt: skip
    return objective(w)[0]


def setting(seed, loss, intercept=True, weighting="none"):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(10, 90))
    y = rng.choice([-1, 1], rows).astype(np.int8)
    X = np.round(rng.normal(size=(rows, 3)) + 0.5 * y[:, None], 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    raw = {"none": None, "counts": rng.integers(1, 5, rows).astype(float), "real": rng.uniform(0.1, 2, rows)}
    weights = RowWeights.make(rows, raw[weighting])
    matrix = bin_table(read_table(X), weights, 6, 1)
    if loss == "squared":
        target = np.nan_to_num(X[:, 0]) * y + rng.standard_t(3, rows)
        return StumpDictionary(matrix, None, 1, intercept), EmpiricalRisk(
            SQUARED, weights, None, target=target
        )
    return StumpDictionary(matrix, y, 1, intercept), EmpiricalRisk(LOSSES[loss], weights, y)


def run(dictionary, risk, rule, stop, criterion="edge", **options):
    master = Master(dictionary.pool(), risk, lambda pool: rule.prices(pool.n_columns, pool.n_free))
    options = {"scoring": Scoring(criterion, rule.l1, rule.l2), "unseen": rule.prices(1, 0), **options}
    return master.pool, *generate(dictionary, master, stop, **options)


class Column:
    """A fitted learner that answers with a column of the table."""

    def __init__(self, j):
        self.j = j

    def predict(self, X):
        return X[:, self.j]


rules = st.sampled_from(
    [PriceRule(0.01, 0.0), PriceRule(0.002, 0.01), PriceRule(0.0, 0.05), PriceRule(0.001, 0.0, 0.0, 0.7, 2.0)]
)


@pytest.mark.long
@given(
    st.integers(0, 2**32), st.sampled_from(sorted(ALL)), rules, st.booleans(),
    st.sampled_from(["none", "counts", "real"]), st.sampled_from(["edge", "gain"]),
)  # fmt: skip
@settings(max_examples=45)
def test_reaches_the_optimum_over_all_stumps(seed, loss, rule, intercept, weighting, criterion):
    dictionary, risk = setting(seed, loss, intercept, weighting)
    a = all_columns(dictionary)
    stop = StopRule(a.shape[1] + 3, tol=1e-7)
    pool, solution, trace = run(dictionary, risk, rule, stop, criterion=criterion, pace=ONE_AT_A_TIME)
    best = optimum(a, risk, rule, 2 if intercept else 0)
    assert trace.status in ("optimal", "exhausted")
    assert solution.objective == pytest.approx(best, rel=2e-6)
    for record in trace:
        assert record.lower_bound <= best * (1 + 1e-9)
        assert record.objective >= best * (1 - 1e-7)  # L-BFGS-B itself is not exact to the last digits
    objectives = [record.objective for record in trace]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(objectives))
    columns = pool.dense()
    assert len({tuple(column) for column in columns.T}) == pool.n_columns, "a column was generated twice"
    assert pool.n_columns <= a.shape[1]


@pytest.mark.long
@given(st.integers(0, 2**32), st.sampled_from(sorted(ALL)))
@settings(max_examples=30)
def test_several_columns_a_round_reach_the_same_optimum(seed, loss):
    dictionary, risk = setting(seed, loss)
    rule = PriceRule(0.003, 0.01)
    pace = Pace(columns=lambda n: 1 + n // 2, newton_steps=2, final_tol=1e-9)
    a = all_columns(dictionary)
    _, solution, trace = run(dictionary, risk, rule, StopRule(a.shape[1] + 3, tol=1e-7), pace=pace)
    best = optimum(a, risk, rule, 2)
    assert trace.status in ("optimal", "exhausted")
    assert solution.objective == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("kind", ["signs", "real"])
@pytest.mark.parametrize("rule", [PriceRule(0.05, 0.0), PriceRule(0.02, 0.05), PriceRule(0.0, 0.05)])
def test_reaches_the_optimum_over_a_matrix(loss, kind, rule):
    rng = np.random.default_rng(7)
    a = np.sign(rng.normal(0.2, 1, (30, 60)))
    if kind == "real":
        a *= rng.uniform(0.5, 1.5, a.shape)
    weights = RowWeights.make(60, None)
    target = rng.normal(size=60) if loss == "squared" else None
    risk = EmpiricalRisk(ALL[loss], weights, None, target=target)
    rows = LearningRows(a.T, np.ones(60, dtype=np.int8), intercept=False)
    dictionary = FittedDictionary([Column(j) for j in range(30)], rows)
    _, solution, trace = run(dictionary, risk, rule, StopRule(100, tol=1e-7))
    best = optimum(a.T, risk, rule, 0)
    assert solution.objective == pytest.approx(best, rel=2e-6)
    for record in trace:
        assert record.lower_bound <= best * (1 + 1e-9)


def test_reasons_for_stopping():
    dictionary, risk = setting(1, "logistic")
    rule = PriceRule(1e-4, 0.0)
    assert run(dictionary, risk, rule, StopRule(2))[2].status == "column limit"
    assert run(dictionary, risk, rule, StopRule(100, late=lambda: True))[2].status == "time limit"
    assert run(dictionary, risk, rule, StopRule(100), observers=(lambda record: True,))[2].status == "stopped"
    trace = run(dictionary, risk, PriceRule(10.0, 0.0), StopRule(100))[2]
    assert trace.status == "exhausted"
    assert trace.message
    assert len(trace) == len(list(trace)) == 1
    assert trace[0].n_terms == 0


def test_the_column_limit_is_kept():
    dictionary, risk = setting(3, "exponential")
    pool, _, trace = run(dictionary, risk, PriceRule(1e-6, 0.0), StopRule(5), pace=Pace(columns=lambda n: 3))
    assert pool.n_columns - pool.n_free == 5
    assert trace[-1].n_columns == 5
    seen = []
    run(dictionary, risk, PriceRule(1e-6, 0.0), StopRule(4), observers=(seen.append,))
    assert [record.n_columns for record in seen] == [0, 1, 2, 3, 4]
    assert all(later.seconds >= earlier.seconds for earlier, later in pairwise(seen))


def test_rounds_that_end_at_a_tolerance():
    """As good as 50 steps in every round, with far fewer."""
    found = {}
    for tol in (None, 1e-10):
        dictionary, risk = setting(3, "exponential", intercept=False)[:2]
        rule = PriceRule(1e-4, 0.0)
        master = Master(
            dictionary.pool(), risk, lambda pool, rule=rule: rule.prices(pool.n_columns, pool.n_free)
        )
        pace = Pace(newton_steps=50, step_tol=tol)
        _, trace = generate(dictionary, master, StopRule(12), scoring=Scoring(l1=1e-4), pace=pace)
        found[tol] = [own.objective for own in trace], risk.passes[0]
    assert found[1e-10][0] == pytest.approx(found[None][0], rel=1e-9)
    assert found[1e-10][1] < found[None][1]

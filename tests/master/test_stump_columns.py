"""All stumps of a table as columns: the same optimum as their explicit matrix, for any number of threads."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import cardboost.dictionary.stump_store as stump_store
from cardboost.data.weights import RowWeights
from cardboost.dictionary.stump_store import StumpStore
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.master.simplex import DictionaryOracle, MatrixOracle, newton_by_radius, soft_point
from cardboost.problem.losses import get_loss
from cardboost.problem.risk import EmpiricalRisk
from cardboost.solvers import StumpColumns, minimize_on_simplex


def mixed_table(seed, rows=240):
    """Numbers with gaps and without, few and many labels, a constant, and two columns that say the same."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(40, 10, rows).round(),
            "income": np.where(rng.random(rows) < 0.2, np.nan, rng.lognormal(size=rows)),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue", "white", "black"], rows)),
            "kind": pd.Categorical(np.where(rng.random(rows) < 0.1, None, rng.choice(["a", "b"], rows))),
            "constant": np.ones(rows),
        }
    )
    X["years"] = 2.0 * X["age"]
    score = (X["age"] - 40) / 10 + X["income"].fillna(2.0) + X["colour"].isin(["red", "blue"])
    y = np.where(score + rng.logistic(size=rows) > 1.5, "yes", "no")
    return X, y


def explicit(columns, X, y):
    """The matrix y_i h_j(x_i), from what the stumps say of themselves."""
    sign = np.where(np.asarray(y) == columns.classes[1], 1, -1)
    out = np.empty((len(X), len(columns)), dtype=np.int8)
    for j in range(len(columns)):
        stump = columns.stump(j)
        value = X[stump.name] if isinstance(X, pd.DataFrame) else pd.Series(X[:, stump.feature])
        if stump.cut is not None:
            left = (value <= stump.cut).to_numpy()
        elif stump.labels is None:
            left = value.notna().to_numpy()
        else:
            left = value.isin(stump.labels).to_numpy()
        left = np.where(value.isna(), stump.missing_left, left)
        out[:, j] = np.where(left, stump.polarity, -stump.polarity) * sign
    return out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_optimum_as_the_explicit_matrix(seed, weighted):
    X, y = mixed_table(seed)
    rng = np.random.default_rng(seed)
    weight = np.where(rng.random(len(X)) < 0.1, 0.0, rng.uniform(0.5, 2.0, len(X))) if weighted else None
    columns = StumpColumns.make(X, y, max_bins=20, sample_weight=weight, n_jobs=1)
    A = explicit(columns, X, y)
    kept = np.ones(len(X), bool) if weight is None else weight > 0
    assert len(np.unique(A[kept], axis=1).T) == len(columns)  # every column once
    assert (abs((A[kept] * np.where(y[kept] == "yes", 1, -1)[:, None]).sum(axis=0)) < kept.sum()).all()
    whole = minimize_on_simplex(A, 3.0, tol=1e-10, sample_weight=weight)
    for method in ("newton", "mprp"):
        found = minimize_on_simplex(columns, 3.0, method=method, tol=1e-10)
        assert found.success
        assert found.x.shape == (len(columns),)
        assert found.fun == pytest.approx(whole.fun, abs=1e-9)
        F = -(A @ found.x) if weight is None else (-(A @ found.x) + np.log(np.maximum(weight, 1e-300)))
        p = np.exp(F - F.max())
        assert math.log(p.sum()) + F.max() == pytest.approx(found.fun, abs=1e-10)
        g = -(A.T @ (p / p.sum()))
        assert g @ found.x - 3.0 * g.min() == pytest.approx(found.gap, abs=1e-11)


def test_edges_margins_and_bits_of_all_stumps():
    X, y = mixed_table(2)
    columns = StumpColumns.make(X, y, n_jobs=1)
    store, A = columns.store, explicit(columns, X, y)
    w = np.random.default_rng(0).normal(size=len(columns))
    np.testing.assert_allclose(store.margins(w), A @ w, atol=1e-11)
    risk = EmpiricalRisk(get_loss("exponential"), columns.weights, store.dictionary.sign)
    point = soft_point(risk, store.margins(np.abs(w) / len(w)))[1]
    p = point.rows[0] / len(X)
    np.testing.assert_allclose(store.every_edge(point), A.T @ p, atol=1e-12)
    for which in ([3, 1, 2], [1, 5, 3, 7], [9]):
        chosen = np.array(which, dtype=np.int32)
        block = store.block(chosen)
        np.testing.assert_allclose(block.margins(w[chosen]), A[:, chosen] @ w[chosen], atol=1e-12)
        np.testing.assert_allclose(block.edges(point), A[:, chosen].T @ p, atol=1e-12)
        np.testing.assert_allclose(block.gram(point), (A[:, chosen].T * p) @ A[:, chosen], atol=1e-12)


@pytest.mark.parametrize("method", ["newton", "mprp"])
def test_equal_bits_for_any_number_of_threads(method):
    X, y = mixed_table(3, 3000)
    one, two = (
        minimize_on_simplex(StumpColumns.make(X, y, n_jobs=jobs), 4.0, method=method, tol=1e-4, max_iter=60)
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.x, two.x)
    assert (one.fun, one.gap) == (two.fun, two.gap)


def large_table(seed, rows=20_000):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    score = 3 * np.tanh(X[:, 0]) + 2 * (X[:, 1] > 0.3) - X[:, 2]
    return X, (score + rng.logistic(size=rows) > 0).astype(int)


@pytest.mark.long
def test_a_large_table_takes_its_hessian_from_a_sample():
    """The gap is exact all the same, and so are the bits for any threads and any order of the rows."""
    X, y = large_table(0)
    order = np.random.default_rng(1).permutation(len(X))
    tables = [(X, y, 1), (X, y, 2), (X[order], y[order], 2)]
    found = []
    for X_own, y_own, jobs in tables:
        columns = StumpColumns.make(X_own, y_own, max_bins=64, n_jobs=jobs)
        assert columns.store.sample is not None
        found.append(minimize_on_simplex(columns, 5.0, tol=1e-7))
    found.append(minimize_on_simplex(columns, 5.0, tol=1e-7))  # nothing is left of the first solve
    for other in found[1:]:
        np.testing.assert_array_equal(other.x, found[0].x)
    assert found[0].success
    A = explicit(columns, X_own, y_own)
    F = -(A @ found[0].x)
    p = np.exp(F - F.max())
    g = -(A.T @ (p / p.sum()))
    assert g @ found[0].x - 5.0 * g.min() == pytest.approx(found[0].gap, abs=1e-10)


def test_weight_2_is_the_row_twice_in_a_sample_too():
    X, y = large_table(3, 12_000)
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    once = StumpColumns.make(X, y, max_bins=32, sample_weight=weight)
    twice = StumpColumns.make(X[rows], y[rows], max_bins=32)
    assert once.store.sample is not None
    first, second = (minimize_on_simplex(columns, 4.0, tol=1e-6) for columns in (once, twice))
    assert first.success
    np.testing.assert_array_equal(first.x, second.x)


def test_useless_estimates_cost_time_but_not_the_result(monkeypatch):
    columns = StumpColumns.make(*large_table(1), max_bins=16)
    expected = minimize_on_simplex(columns, 5.0, tol=1e-6)
    monkeypatch.setattr(stump_store, "_LEAST_ROWS", 64)
    monkeypatch.setattr(stump_store, "_ROWS_PER_COLUMN", 1)
    found = minimize_on_simplex(StumpColumns.make(*large_table(1), max_bins=16), 5.0, tol=1e-6)
    assert found.success
    assert found.fun == pytest.approx(expected.fun, abs=2e-6)


def test_few_distinct_rows_are_no_sample():
    X, y = large_table(2)
    columns = StumpColumns.make(np.sign(X), y)
    assert columns.store.sample is None
    assert minimize_on_simplex(columns, 5.0).success


@pytest.mark.parametrize("intercept", [False, True])
def test_stumps_by_number_and_generated_ones_agree(intercept):
    X, y = mixed_table(4)
    columns = StumpColumns.make(X, y, n_jobs=1)
    own = columns.store.dictionary
    risk = EmpiricalRisk(get_loss("exponential"), columns.weights, own.sign)
    dictionary = StumpDictionary(own.matrix, own.sign, 1, intercept, RowWeights.make(len(X), None))
    dictionary = dictionary.relabelled(own.sign, own.orders)
    none = np.empty(0, np.int32)
    generated = DictionaryOracle(dictionary, risk)
    first = generated.look(soft_point(risk, np.zeros(len(X)))[1], none, 1).new
    expected = newton_by_radius(generated, 3.0, (first, np.array([3.0])), tol=1e-9, max_iter=500)
    store = StumpStore(dictionary, columns.weights)
    assert len(store) == len(columns) + 2 * intercept
    whole = MatrixOracle(store, risk)
    first = np.array([len(store) - 1], dtype=np.int32)
    found = newton_by_radius(whole, 3.0, (first, np.array([3.0])), tol=1e-9, max_iter=500)
    assert found.objective == pytest.approx(expected.objective, abs=2e-9)
    full = np.zeros(len(store))
    full[found.columns] = found.weights
    assert soft_point(risk, store.margins(full))[0] == pytest.approx(found.objective, abs=1e-12)
    pool = dictionary.pool()
    pool.append(store.stumps(found.columns))
    again = np.append(np.zeros(pool.n_free), found.weights)
    np.testing.assert_allclose(pool.margins(again), store.margins(full), atol=1e-12)
    stumps = found.columns[found.columns < store.n_stumps]
    np.testing.assert_array_equal(store.numbers(store.stumps(stumps)), stumps)
    if not intercept:
        assert found.objective + math.log(len(X)) == pytest.approx(
            minimize_on_simplex(columns, 3.0, tol=1e-9).fun, abs=2e-9
        )


def test_stumps_in_words():
    X, y = mixed_table(5)
    columns = StumpColumns.make(X, y)
    words = {columns.describe(j) for j in range(len(columns))}
    assert "+1 where income is not missing, else -1" in words
    assert "-1 where colour is 'red', else +1" in words
    assert any("income <= " in own and "or missing, else" in own for own in words)
    assert any("colour is one of" in own for own in words)
    assert not any("years" in own or "constant" in own for own in words)
    assert columns.describe(-1) == columns.describe(len(columns) - 1)
    with pytest.raises(IndexError, match="columns"):
        columns.stump(len(columns))
    assert StumpColumns.make([[0.0], [1.0]], [0, 1]).describe(0) == "+1 where x0 <= 0, else -1"


def test_refusals():
    X, y = np.arange(6.0).reshape(-1, 1), np.array([0, 1, 0, 1, 1, 0])
    for bad, text in (
        (y[:5], "inconsistent numbers of samples: 6 and 5"),
        (np.zeros(6), "only one class is present"),
        (np.arange(6), "two classes"),
        (np.array([0, 1, np.nan, 1, 1, 0]), "NaN"),
        (np.array([0, "a", None, 1, 1, 0], dtype=object), "NaN or None"),
    ):
        with pytest.raises(ValueError, match=text):
            StumpColumns.make(X, bad)
    for weight in (np.ones(5), np.zeros(6), -np.ones(6), ["a"] * 6):
        with pytest.raises(ValueError, match="sample_weight"):
            StumpColumns.make(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="constant"):
        StumpColumns.make(np.ones((6, 2)), y)
    with pytest.raises(ValueError, match="max_bins"):
        StumpColumns.make(X, y, max_bins=1)
    columns = StumpColumns.make(X, y)
    with pytest.raises(ValueError, match=r"StumpColumns\.make"):
        minimize_on_simplex(columns, 1.0, sample_weight=np.ones(6))
    with pytest.raises(ValueError, match="x0"):
        minimize_on_simplex(columns, 1.0, x0=[1.0])

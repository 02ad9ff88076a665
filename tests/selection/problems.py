"""Small selection problems, over matrices and over stumps, and their twins by enumeration."""

from __future__ import annotations

import math

import numpy as np
from enumeration import Enumeration, tangled

from cardboost.data.binning import bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.problem.losses import get_loss
from cardboost.problem.prices import PriceRule, Prices
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection import exact
from cardboost.selection.selection_problem import SelectionProblem


def of_certificate(certificate, A, weight):
    """The problem on a matrix as its certificate states it."""
    columns = certificate.content["columns"]
    box = [math.inf if v is None else v for v in columns["max_weight"]]
    prices = (np.array(columns[key]) for key in ("l1", "l2", "l0"))
    loss = certificate.content["problem"]["loss"]
    return Enumeration(A[:, columns["feature"]], weight / weight.sum(), loss, *prices, box)


def random_matrix(rng, most=8):
    """Columns that agree with most rows, some of them twice, turned round, or nearly the same."""
    m, n = int(rng.integers(10, 40)), int(rng.integers(6, most + 1))
    if rng.random() < 0.25:
        A = rng.normal(0.2, 1.0, (m, n))
    else:
        A = np.where(rng.random((m, n)) < rng.uniform(0.45, 0.75, n), 1.0, -1.0)
    return tangled(rng, A)


def stump_problem(seed, columns=6):
    """A pool of stumps on a small table with ties and missing values, behind the intercept's columns."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(20, 50))
    X = rng.integers(0, 4, (m, 3)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 2] = np.where(rng.random(m) < 0.8, X[:, 1], X[:, 2])
    sign = np.where(np.nan_to_num(X[:, 0]) + rng.normal(size=m) > 1.5, 1, -1).astype(np.int8)
    sign[:2] = 1, -1
    raw = [None, rng.integers(1, 4, m).astype(float), rng.random(m) + 0.1][seed % 3]
    weights = RowWeights.make(m, raw)
    matrix = bin_table(read_table(X), weights, 255, 1)
    loss = get_loss("logistic" if rng.random() < 0.5 else "exponential")
    dictionary = StumpDictionary(matrix, sign, 1, bool(rng.random() < 0.7), weights)
    risk = EmpiricalRisk(loss, weights, sign, 1)
    pool = dictionary.pool()
    for _ in range(2):
        point = risk.evaluate(rng.normal(size=m))
        pool.append(dictionary.best_columns(point, columns // 2, pool).atoms)
    rule = PriceRule(
        l1=float(rng.choice([1e-4, 0.01])),
        l2=float(rng.choice([0.0, 0.02, 0.2])),
        l0=float(rng.choice([0.0, 0.01, 0.05])),
        max_weight=float(rng.choice([0.3, 1.0, 4.0])),
        intercept_box=3.0,
    )
    k = int(rng.integers(1, 4)) if rule.l0 == 0 or rng.random() < 0.5 else None
    prices = rule.prices(pool.n_columns, pool.n_free)
    return SelectionProblem(pool, risk, prices, k), dictionary, rule


def enumeration_of(problem):
    p = problem.prices
    share = problem.risk.weights.normalised
    return Enumeration(
        problem.pool.dense(), share, problem.risk.loss.name, p.l1, p.l2, p.l0, p.max_weight, p.charged
    )


def random_states(rng, count, n, charged):
    return np.where(charged.astype(bool), rng.choice([0, 0, 1, 2], (count, n)), 0).astype(np.int8)


def least_in_node(enumeration, state, k):
    """The optimum over supports that the states of the charged columns allow; forced ones are paid for."""
    charged = np.flatnonzero(enumeration.charged)
    forced = [int(j) for j in charged if state[j] == exact.IN]
    open_ones = [int(j) for j in charged if state[j] == exact.FREE]
    best = np.inf
    for bits in range(2 ** len(open_ones)):
        support = sorted([*forced, *(j for i, j in enumerate(open_ones) if bits >> i & 1)])
        if k is None or k < 0 or len(support) <= k:
            best = min(best, enumeration.refit(support))
    return best


def matrix_problem(A, share, loss, prices, k):
    m, n = A.shape
    risk = EmpiricalRisk(get_loss(loss), RowWeights.make(m, share), None, 1)
    signs = (np.abs(A) == 1).all()
    store = ColumnStore(np.ascontiguousarray(A.T.astype(np.int8) if signs else A.T), 1)
    return SelectionProblem(MatrixPool(store, np.arange(n, dtype=np.int32)), risk, prices, k)


def hard_problem(seed=0, rows=400, columns=25, **more):
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((rows, columns)) < rng.uniform(0.5, 0.65, columns), 1.0, -1.0)
    n = A.shape[1]
    full = lambda value: np.full(n, float(value))  # noqa: E731
    prices = Prices(full(1e-4), full(0.0), full(0.004), full(0.6), np.ones(n, dtype=bool))
    return A, matrix_problem(A, np.ones(rows), "exponential", prices, more.get("k"))

"""All solvers reach the same objective, and so do scikit-learn and SciPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, LinearRegression, LogisticRegression, Ridge
from tables import KINDS, dense, logistic_objective, table

from cardboost import SparseLinearRegression, SparseLogisticRegression

PRICES = [(0.02, 0.0), (0.0, 0.05), (0.005, 0.02)]
AGREE = 1e-8


def fits(l1, l2):
    names = ["prox-newton", "gradient"] + ["newton"] * (l1 == 0)
    return [
        SparseLogisticRegression(l1=l1, l2=l2, solver=name, tol=1e-9, max_iter=100_000, n_jobs=1)
        for name in names
    ]


def scipy_optimum(X, y, weight, l1, l2):
    """The same problem with coefficients split into two parts of at least 0, by L-BFGS-B."""
    A, s = dense(X), weight / weight.sum()
    sign, n = np.where(y == 1, 1.0, -1.0), A.shape[1]

    def value(z):
        coef = z[:n] - z[n : 2 * n]
        margin = sign * (A @ coef + z[-1])
        u = s * sign / (1.0 + np.exp(np.minimum(margin, 700.0)))
        g = l2 * coef - A.T @ u
        loss = float(s @ np.logaddexp(0.0, -margin)) + l2 / 2 * float(coef @ coef)
        return loss + l1 * z[:-1].sum(), np.concatenate([g + l1, l1 - g, [-u.sum()]])

    bounds = [(0.0, None)] * (2 * n) + [(None, None)]
    options = {"maxiter": 20_000, "maxfun": 10**6, "ftol": 0.0, "gtol": 1e-10, "maxcor": 30}
    return minimize(
        value, np.zeros(2 * n + 1), jac=True, bounds=bounds, method="L-BFGS-B", options=options
    ).fun


@pytest.mark.parametrize(("l1", "l2"), PRICES)
@pytest.mark.parametrize("kind", KINDS)
def test_logistic_solvers_agree(kind, l1, l2):
    X, y, weight = table(kind)
    if kind == "wide" and l1 == 0.0:
        l2 = 0.5
    values = []
    for model in fits(l1, l2):
        model.fit(X, y, sample_weight=weight)
        own = model.certificate_
        values.append(logistic_objective(X, y, weight, model.coef_, model.intercept_[0], l1, l2))
        assert own.status == "optimal"
        assert own.objective == pytest.approx(values[-1], rel=1e-12)
        assert own.verify(X, y, weight)
    values.append(scipy_optimum(X, y, weight, l1, l2))
    assert max(values) - min(values) <= AGREE * min(values)


@pytest.mark.parametrize("kind", ["dense", "csr", "collinear", "separable"])
def test_logistic_agrees_with_scikit_learn(kind):
    X, y, weight = table(kind)
    total = weight.sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for l1, l2 in PRICES:
            price = l1 + l2
            saga = LogisticRegression(
                C=1 / (total * price),
                l1_ratio=l1 / price,
                solver="saga",
                tol=1e-10,
                max_iter=20_000,
                random_state=0,
            ).fit(X, y, weight)
            theirs = logistic_objective(X, y, weight, saga.coef_, saga.intercept_[0], l1, l2)
            ours = SparseLogisticRegression(l1=l1, l2=l2, tol=1e-9).fit(X, y, weight).certificate_.objective
            assert abs(theirs - ours) <= AGREE * ours


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), rows=st.integers(4, 60), columns=st.integers(1, 20),
    kind=st.sampled_from(["dense", "csr", "collinear", "separable", "scaled"]),
    l1=st.sampled_from([0.0, 1e-3, 0.05, 1.0]), l2=st.sampled_from([0.0, 1e-3, 1.0]), intercept=st.booleans(),
)  # fmt: skip
def test_prox_newton_and_newton_agree_and_are_proven(seed, rows, columns, kind, l1, l2, intercept):
    X, y, weight = table(kind, seed, rows, columns)
    if l1 == 0.0 == l2:
        l2 = 0.01
    model = SparseLogisticRegression(l1=l1, l2=l2, tol=1e-9, fit_intercept=intercept, solver="prox-newton")
    own = model.fit(X, y, sample_weight=weight).certificate_
    assert own.status == "optimal"
    assert own.gap <= 2e-9 * own.objective + 1e-12
    assert own.verify(X, y, weight)
    if l1 == 0.0:
        other = model.set_params(solver="newton").fit(X, y, sample_weight=weight).certificate_
        assert abs(other.objective - own.objective) <= AGREE * own.objective


@pytest.mark.parametrize("kind", KINDS)
def test_squared_loss_agrees_with_scikit_learn(kind):
    X, y, weight = table(kind)
    target = dense(X) @ np.linspace(-1, 1, X.shape[1]) + np.random.default_rng(1).normal(size=len(y)) + 3.0

    def value(coef, b, l1, l2):
        loss = np.average((target - dense(X) @ coef - b) ** 2, weights=weight) / 2
        return loss + l1 * np.abs(coef).sum() + l2 / 2 * float(coef @ coef)

    total = weight.sum()
    for l1, l2 in [*PRICES, (0.0, 0.0)]:
        if kind == "wide" and l1 + l2 == 0.0:
            continue
        solvers = ["prox-newton", "gradient"] + ["newton"] * (l1 == 0)
        if kind == "wide":
            solvers.remove("gradient")
        values = []
        for solver in solvers:
            model = SparseLinearRegression(l1=l1, l2=l2, solver=solver, tol=2e-9, max_iter=100_000)
            own = model.fit(X, target, sample_weight=weight).certificate_
            values.append(value(model.coef_, model.intercept_, l1, l2))
            assert own.objective == pytest.approx(values[-1], rel=1e-10)
            assert own.status == "optimal"
            assert own.verify(X, target, weight)
        if l1 > 0.0:
            peer = ElasticNet(alpha=l1 + l2, l1_ratio=l1 / (l1 + l2), tol=1e-13, max_iter=10**5)
        else:
            peer = Ridge(alpha=l2 * total, tol=1e-12) if l2 else LinearRegression()
        peer.fit(dense(X), target, sample_weight=weight)
        values.append(value(peer.coef_, peer.intercept_, l1, l2))
        assert max(values) - min(values) <= AGREE * min(values)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6), rows=st.integers(2, 40), columns=st.integers(1, 6),
    l1=st.sampled_from([0.0, 0.02, 0.5]), l2=st.sampled_from([0.0, 1e-3, 0.5]), intercept=st.booleans(),
)  # fmt: skip
def test_absolute_loss_is_proven(seed, rows, columns, l1, l2, intercept):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)).round(2)
    y, weight = X[:, 0] * 2 + rng.standard_t(2, rows), rng.integers(1, 4, rows).astype(float)
    model = SparseLinearRegression(loss="absolute", l1=l1, l2=l2, fit_intercept=intercept, tol=1e-8)
    own = model.fit(X, y, sample_weight=weight).certificate_
    assert own.status == "optimal"
    assert own.verify(X, y, weight)
    if l2 == 0.0 < l1:  # the dual program, written down anew
        s = weight / weight.sum()
        limits = np.vstack([X.T, -X.T])
        equal = (np.ones((1, rows)), np.zeros(1)) if intercept else (None, None)
        bounds = np.column_stack([-s, s])
        best = linprog(-y, limits, np.full(2 * columns, l1), *equal, bounds=bounds)
        assert own.objective == pytest.approx(-best.fun, rel=1e-8, abs=1e-10)


def test_the_median_is_the_model_without_features():
    y = np.array([1.0, 2.0, 3.0, 10.0, 100.0])
    model = SparseLinearRegression(loss="absolute", l1=10.0).fit(np.eye(5), y)
    assert model.intercept_ == pytest.approx(3.0)
    assert not model.coef_.any()


@pytest.mark.parametrize("kind", ["dense", "csr", "separable"])
@pytest.mark.parametrize(("l1", "l2"), PRICES)
def test_multinomial_solvers_agree(kind, l1, l2):
    X, _, weight = table(kind)
    y = np.random.default_rng(0).integers(0, 3, X.shape[0])
    y = np.where(dense(X)[:, 0] > 1.0, 2, y)
    values = []
    for solver in ["prox-newton", "gradient"] + ["newton"] * (l1 == 0):
        model = SparseLogisticRegression(
            l1=l1, l2=l2, solver=solver, tol=2e-9, max_iter=50_000, multi_class="multinomial"
        ).fit(X, y, weight)
        assert model.certificate_.status == "optimal"
        assert model.certificate_.verify(X, y, weight)
        values.append(model.certificate_.objective)
    price = l1 + l2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        saga = LogisticRegression(
            C=1 / (weight.sum() * price),
            l1_ratio=l1 / price,
            solver="saga",
            tol=1e-10,
            max_iter=20_000,
            random_state=0,
        ).fit(X, y, weight)
    f = saga.decision_function(X)
    f -= f.max(axis=1)[:, None]
    loss = np.log(np.exp(f).sum(axis=1)) - f[np.arange(len(y)), y]
    penalty = l1 * np.abs(saga.coef_).sum() + l2 / 2 * np.square(saga.coef_).sum()
    values.append(float(np.average(loss, weights=weight)) + penalty)
    assert max(values) - min(values) <= AGREE * min(values)


def test_plain_and_accelerated_gradient_steps_agree():
    X, y, weight = table("dense")
    plain = SparseLogisticRegression(l1=0.02, solver="gradient", accelerate=False, max_iter=10**5, tol=1e-9)
    fast = SparseLogisticRegression(l1=0.02, solver="gradient", tol=1e-9)
    a, b = (model.fit(X, y, weight).certificate_.objective for model in (plain, fast))
    assert abs(a - b) <= AGREE * a
    assert fast.n_iter_ < plain.n_iter_


@pytest.mark.parametrize("intercept", [False, True])
def test_a_path_ends_where_single_fits_do(intercept):
    """Uneven steps, a price twice, and a table large enough for a model in single precision."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(450, 2400))
    X[:, 1200:] = X[:, :1200] + 1e-3 * rng.normal(size=(450, 1200))  # nearly the same columns again
    y = X[:, :6] @ np.array([1.0, -2.0, 0.5, 1.0, 1.0, -1.0]) + rng.normal(size=450) > 0.3
    model = SparseLogisticRegression(tol=1e-9, fit_intercept=intercept, n_jobs=1)
    top = model.path(X, y, n=1).l1s[0]
    l1s = top * np.array([1.1, 0.9, 0.9, 0.85, 0.5, 0.45, 0.1])
    found = model.path(X, y, l1s)
    assert found.statuses == ("optimal",) * len(l1s)
    for l1, objective, gap in zip(l1s, found.objectives, found.gaps, strict=True):
        own = model.set_params(l1=l1).fit(X, y).certificate_
        assert abs(own.objective - objective) <= AGREE * own.objective
        assert gap <= 2e-9 * objective

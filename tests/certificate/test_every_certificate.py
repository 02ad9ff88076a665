"""The law: every certificate of every fit verifies, whatever the data, the weights and the parameters.

A fit may be refused with a sentence (ValueError); what it returns must hold, and its lower bound may not be
above its objective.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardboost import (
    CardBoostClassifier,
    CardBoostRegressor,
    SoftMarginClassifier,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.linear import LinearCertificate
from cardboost.solvers import select_columns
from marks import first

QUICK = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))

seeds = st.integers(0, 2**32 - 1)
powers = st.integers
prices = st.sampled_from([0.0, 1e-8, 1e-4, 0.01, 0.3, 3.0])


def rows(draw, missing=True):
    """A table and a score that its features explain in part."""
    rng = np.random.default_rng(draw(seeds))
    n, p = draw(st.sampled_from([12, 40, 90, 200])), draw(st.integers(1, 4))
    X = rng.normal(size=(n, p))
    X = X if draw(st.booleans()) else np.round(2 * X)
    score = X @ rng.normal(size=p) + draw(st.sampled_from([0.0, 0.5, 2.0])) * rng.normal(size=n)
    kind = draw(st.sampled_from(["plain", "missing", "scaled", "far", "constant"]))
    if kind == "missing" and missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    elif kind == "scaled":
        X = X * 10.0 ** draw(powers(-300, 300))
    elif kind == "far":
        X = X + 10.0 ** draw(powers(0, 17))
    elif kind == "constant":
        X[:, 0] = 1.0
    return X, score, rng


def weights(draw, rng, n):
    """Row weights: none, whole numbers of any sum, decades, zeros, nearly all on one row."""
    kind = draw(st.sampled_from(["none", "real", "counts", "huge", "multiples", "decades", "zeros", "one"]))
    if kind == "none":
        return None
    if kind == "real":
        return rng.random(n) + 0.1
    if kind == "counts":
        return rng.integers(1, 6, n).astype(float)
    if kind == "huge":
        return np.floor(rng.random(n) * 10.0 ** draw(powers(5, 17))) + 1.0
    if kind == "multiples":
        return rng.integers(1, 6, n) * 10.0 ** draw(powers(5, 15))
    if kind == "decades":
        return 10.0 ** ((rng.random(n) - 0.5) * draw(st.sampled_from([4, 12, 30, 100, 300])))
    if kind == "zeros":
        return rng.integers(0, 3, n) * rng.random(n) + np.eye(n)[0]
    return np.where(np.arange(n) < 2, 1.0, 10.0 ** -draw(powers(1, 200)))


def targets(draw, score):
    kind = draw(st.sampled_from(["plain", "far", "scaled", "outlier", "constant"]))
    if kind == "far":
        return score + 1.2345 * 10.0 ** draw(powers(0, 17))
    if kind == "scaled":
        return score * 10.0 ** draw(powers(-330, 300))
    if kind == "outlier":
        return np.append(10.0 ** draw(powers(1, 20)), score[1:])
    return np.full(len(score), draw(st.sampled_from([0.0, 0.1, 1e8]))) if kind == "constant" else score


def labels(draw, score):
    y = score > np.quantile(score, draw(st.sampled_from([0.5, 0.1])))
    return y if y.any() and not y.all() else np.arange(len(score)) % 2 == 0


def card(draw, p):
    """Parameters of a card."""
    params = {
        "max_terms": draw(st.sampled_from([None, 1, 2, 4])),
        "l0": draw(st.sampled_from([0.0, 0.0, 1e-3, 0.05])),
        "l1": draw(prices),
        "l2": draw(prices),
        "hot_start": draw(st.sampled_from([3, 10])),
        "max_iter": draw(st.sampled_from([5, 25])),
        "max_nodes": draw(st.sampled_from([1, 50])),
        "max_weight": draw(st.sampled_from([None, None, 0.5, 100.0])),
        "fit_intercept": draw(st.sampled_from([True, True, False])),
        "criterion": draw(st.sampled_from(["gain", "edge"])),
        "selector": draw(st.sampled_from(["auto", "polish"])),
        "n_jobs": 1,
    }
    extra = draw(st.sampled_from(["", "", "monotonic_cst", "max_features", "feature_costs"]))
    if extra == "monotonic_cst":
        params[extra] = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=p, max_size=p))
    elif extra == "max_features":
        params[extra] = draw(st.integers(1, p))
    elif extra:
        params[extra] = draw(st.lists(st.sampled_from([0.0, 0.01, 0.05]), min_size=p, max_size=p))
    return params


def holds(certificate: Certificate | LinearCertificate, *data) -> None:
    assert certificate.faults(*data) == []
    assert certificate.lower_bound <= certificate.objective


def fitted(model, *data):
    """The model, or None where it refuses the data with a sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model.fit(*data)
        except ValueError as error:
            if len(str(error).split()) < 5:  # not a sentence: a fault of ours
                raise
            return None


def a_classifier(draw):
    X, score, rng = rows(draw)
    y, w = labels(draw, score), weights(draw, rng, len(score))
    loss = draw(st.sampled_from(["logistic", "exponential", "squared_hinge", "smooth_hinge"]))
    factor = draw(st.sampled_from([None, "balanced", {False: 1.0, True: 1e6}]))
    model = CardBoostClassifier(loss=loss, class_weight=factor, **card(draw, X.shape[1]))
    if fitted(model, X, y, w) is not None:
        holds(model.certificate_, X, y, w)


def a_classifier_of_three(draw):
    X, score, rng = rows(draw)
    w, y = weights(draw, rng, len(score)), np.digitize(score, np.quantile(score, [0.3, 0.7]))
    model = CardBoostClassifier(**{**card(draw, X.shape[1]), "monotonic_cst": None})
    if fitted(model, X, y, w) is not None:
        certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
        classes = model.classes_ if len(certificates) > 1 else model.classes_[1:]
        for certificate, label in zip(certificates, classes, strict=True):
            holds(certificate, X, y == label if len(certificates) > 1 else y, w)


def a_regressor(draw):
    X, score, rng = rows(draw)
    y, w = targets(draw, score), weights(draw, rng, len(score))
    model = CardBoostRegressor(**card(draw, X.shape[1]))
    if fitted(model, X, y, w) is not None:
        holds(model.certificate_, X, y, w)


def a_soft_margin(draw):
    X, score, rng = rows(draw)
    y, w = labels(draw, score), weights(draw, rng, len(score))
    model = SoftMarginClassifier(
        temperature=draw(st.sampled_from([1e-3, 0.01, 0.1, 1.0, 10.0])),
        method=draw(st.sampled_from(["newton", "mprp"])),
        max_iter=draw(st.sampled_from([3, 20])),
        fit_intercept=draw(st.booleans()),
        n_jobs=1,
    )
    if fitted(model, X, y, w) is not None:
        holds(model.certificate_, X, y, w)


def a_linear_regression(draw):
    X, score, rng = rows(draw, missing=False)
    y, w = targets(draw, score), weights(draw, rng, len(score))
    model = SparseLinearRegression(
        loss=draw(st.sampled_from(["squared", "absolute"])),
        l1=draw(prices),
        l2=draw(prices),
        fit_intercept=draw(st.booleans()),
        max_iter=draw(st.sampled_from([1, 3, 300])),
        n_jobs=1,
    )
    if fitted(model, X, y, w) is not None:
        holds(model.certificate_, X, y, w)


def a_logistic_regression(draw):
    X, score, rng = rows(draw, missing=False)
    w, three = weights(draw, rng, len(score)), draw(st.booleans())
    y = np.digitize(score, np.quantile(score, [0.3, 0.7])) if three else labels(draw, score)
    model = SparseLogisticRegression(
        l1=draw(prices),
        l2=draw(prices),
        fit_intercept=draw(st.booleans()),
        class_weight=draw(st.sampled_from([None, "balanced"])),
        multi_class=draw(st.sampled_from(["ovr", "multinomial"])),
        max_iter=draw(st.sampled_from([1, 3, 300])),
        n_jobs=1,
    )
    if fitted(model, X, y, w) is not None:
        own = model.certificate_
        for certificate in own if isinstance(own, list) else [own]:
            holds(certificate, X, y, w)


def a_selection(draw):
    rng = np.random.default_rng(draw(seeds))
    n, q = draw(st.sampled_from([12, 60, 150])), draw(st.integers(1, 8))
    A = (
        np.where(rng.random((n, q)) < 0.6, 1.0, -1.0)
        if draw(st.booleans())
        else rng.normal(size=(n, q)) + 0.3
    )
    kind = draw(st.sampled_from(["plain", "spread", "one", "zero"]))
    if kind == "spread":
        A = A * 10.0 ** ((rng.random(q) - 0.5) * draw(st.sampled_from([6, 12, 30, 60, 200])))
    elif kind == "one":
        A[:, 0] *= 10.0 ** draw(powers(5, 150))
    elif kind == "zero":
        A[:, 0] = 0.0
    w, l0 = weights(draw, rng, n), draw(st.sampled_from([0.0, 1e-3, 0.05]))
    try:
        result = select_columns(
            A,
            l0=l0,
            max_terms=draw(st.integers(0, 3)) if l0 == 0.0 else draw(st.sampled_from([None, 1, 3])),
            l1=draw(prices),
            l2=draw(prices),
            max_weight=draw(st.sampled_from([None, None, 0.5, 100.0])),
            loss=draw(st.sampled_from(["logistic", "exponential", "squared_hinge", "smooth_hinge"])),
            method=draw(st.sampled_from(["exact", "polish", "auto"])),
            max_nodes=draw(st.sampled_from([1, 50, 2000])),
            sample_weight=w,
        )
    except ValueError as error:
        if len(str(error).split()) < 5:
            raise
        return
    holds(result.certificate, A, None, w)
    assert result.lower_bound == result.certificate.lower_bound
    assert (result.status == "optimal") == (result.certificate.status == "optimal")


FITS = [
    a_classifier,
    a_classifier_of_three,
    a_regressor,
    a_soft_margin,
    a_linear_regression,
    a_logistic_regression,
    a_selection,
]


@pytest.mark.parametrize("fit", FITS)
@QUICK
@given(data=st.data())
def test_every_certificate_verifies(fit, data):
    fit(data.draw)


@pytest.mark.long
@pytest.mark.parametrize("fit", FITS)
@LONG
@given(data=st.data())
def test_every_certificate_of_many_fits_verifies(fit, data):
    fit(data.draw)


# ------------------------------------------------------------------------------- one of each kind


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    return X, X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=200), rng


SMALL = {"max_terms": 3, "hot_start": 12, "max_nodes": 200, "l2": 0.01, "n_jobs": 1}


@pytest.mark.parametrize("total", [1e11, 1e13, 4e15])
def test_whole_number_weights_of_a_large_sum(table, total):
    X, y, rng = table
    w = np.floor(rng.random(200) * total / 100.0) + 1.0
    holds(CardBoostClassifier(**SMALL).fit(X, y > 0, w).certificate_, X, y > 0, w)
    holds(CardBoostRegressor(**SMALL).fit(X, y, w).certificate_, X, y, w)
    holds(SoftMarginClassifier(n_jobs=1).fit(X, y > 0, w).certificate_, X, y > 0, w)
    A = np.where(rng.random((200, 8)) < 0.6, 1, -1)
    holds(select_columns(A, l0=0.02, sample_weight=w).certificate, A, None, w)


def test_falling_features_with_missing_values(table):
    X, y, rng = table
    X[rng.random(X.shape) < 0.2] = np.nan
    for model, target in ((CardBoostClassifier(**SMALL), y > 0), (CardBoostRegressor(**SMALL), y)):
        model.set_params(monotonic_cst=[-1, -1, 1, 0], hot_start=40).fit(X, target)
        holds(model.certificate_, X, target)


def test_a_stump_with_a_cut_that_goes_against_its_direction(table):
    X, y, _ = table
    content = CardBoostRegressor(monotonic_cst=[1, 0, 0, 0], **SMALL).fit(X, y).certificate_.to_dict()
    columns = content["columns"]
    rising = next(j for j, f in enumerate(columns["feature"]) if f == 0 and columns["cut"][j] is not None)
    columns["polarity"][rising] = 1
    path = f"columns.polarity[{rising}]: goes against"
    assert any(fault.startswith(path) for fault in Certificate(content).faults(X, y))


@pytest.mark.parametrize("mean", [1e9, 1e12, 1e15])
def test_targets_far_from_0(table, mean):
    X, y, _ = table
    model = CardBoostRegressor(**SMALL).fit(X, y + mean)
    holds(model.certificate_, X, y + mean)
    target = model.certificate_.content["problem"]["target"]
    exact = (y + mean) - mean
    assert target["mean"] - mean == pytest.approx(exact.mean(), abs=2.0**-52 * mean)
    assert target["scale"] == pytest.approx(exact.std(), rel=1e-9)


@pytest.mark.parametrize("seeds", first(1, [range(2), range(2, 30)]))
@pytest.mark.parametrize("loss", ["squared_hinge", "smooth_hinge"])
def test_hinges_without_l2(loss, seeds):
    """Edges of columns in use are at l1, but for rounding: nothing may hang on which side of it."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 3))
        y = X[:, 0] + 0.5 * rng.normal(size=60) > 0
        for l1 in (1e-8, 1e-4):
            model = CardBoostClassifier(loss=loss, max_terms=None, l1=l1, l2=0.0, max_iter=30, n_jobs=1)
            holds(model.fit(X, y).certificate_, X, y)


def test_a_row_of_next_to_no_weight_with_a_large_target(table):
    """Merged rows keep the weight they have: one unit of a sum over all rows was far too much."""
    X, y, _ = table
    y, w = y.copy(), np.full(200, 5e-43)
    y[0], w[1:3] = 1e9, 1.0
    for params in ({}, {"fit_intercept": False}, {"l1": 0.3, "l0": 0.05}):
        holds(CardBoostRegressor(**{**SMALL, **params}).fit(X, y, w).certificate_, X, y, w)


def test_class_weights_and_weights_that_are_multiples():
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(90, 3)), np.where(rng.random(90) < 0.5, 1.0, 1e-6)
    y = (np.arange(90) < 4) & (w < 1.0)
    y[np.flatnonzero(w < 1.0)[:3]] = True
    for loss in ("logistic", "exponential", "squared_hinge", "smooth_hinge"):
        model = CardBoostClassifier(loss=loss, class_weight="balanced", **SMALL).fit(X, y, w)
        holds(model.certificate_, X, y, w)


def test_features_and_targets_that_a_linear_model_cannot_carry(table):
    X, y, _ = table
    for target in (y * 1e-160, y * 1e-320):
        with pytest.raises(ValueError, match=r"y holds no number above .* too small to be squared"):
            SparseLinearRegression(l1=1e-200).fit(X, target)
    for model, target in ((SparseLinearRegression(l1=0.01), y), (SparseLogisticRegression(l1=0.01), y > 0)):
        with pytest.raises(ValueError, match=r"column 0 lies between .* subtract a constant"):
            model.fit(X + 9e15, target)
        for far in (1e3, 1e6):
            holds(model.fit(X + far, target).certificate_, X + far, target)
            order = np.random.default_rng(0).permutation(len(y))
            holds(model.certificate_, (X + far)[order], target[order])


@pytest.mark.parametrize("spread", [1e12, 1e20, 1e60])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_columns_of_different_scales(spread, loss):
    rng = np.random.default_rng(1)
    A = rng.normal(size=(100, 8)) + 0.3
    scaled = A * spread ** np.linspace(-0.5, 0.5, 8)
    for limits in ({"max_terms": 3}, {"l0": 0.01}):
        result = select_columns(scaled, loss=loss, l1=0.0, max_nodes=2000, **limits)
        holds(result.certificate, scaled)
        assert (result.status == "optimal") == (result.certificate.status == "optimal")
        plain = select_columns(A, loss=loss, l1=0.0, max_nodes=2000, **limits)
        assert result.objective == pytest.approx(plain.objective, rel=0.02)


# ------------------------------------------------------------------------------- linear certificates


def test_a_linear_status_is_looked_at(table):
    X, y, _ = table
    rough = SparseLinearRegression(l1=0.01, solver="gradient", max_iter=1, tol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = rough.fit(X, y).certificate_
    assert own.status == "iteration limit"
    holds(own, X, y)
    assert "too wide" in replace(own, status="optimal").faults(X, y)[0]
    assert "not known" in replace(own, status="proven").faults(X, y)[0]


def test_a_linear_certificate_refuses_what_is_not_finite(table):
    X, y, _ = table
    own = SparseLinearRegression(l1=0.01).fit(X, y).certificate_
    for bad in (np.nan, np.inf):
        spoilt = X.copy()
        spoilt[0, 0] = bad
        assert own.faults(spoilt, y) == ["X holds NaN or infinity."]
        assert own.faults(X, np.append(y[1:], bad)) == ["y holds NaN or infinity."]
        assert "finite" in own.faults(X, y, np.append(np.ones(199), bad))[0]


@pytest.mark.parametrize("temperature", [1e-2, 1e-3, 1e-4])
def test_a_soft_margin_that_nothing_can_improve(temperature):
    X, y = np.full((11, 1), np.nan), np.arange(11) % 3 == 0
    model = SoftMarginClassifier(temperature=temperature, tol=1e-3, fit_intercept=True).fit(X, y)
    assert model.certificate_.verify(X, y)

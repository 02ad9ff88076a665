"""What users see of the linear estimators: weights, classes, bad input, paths, best subsets."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from tables import table

from cardboost import SparseLinearRegression, SparseLogisticRegression
from cardboost.certificate.linear import LinearCertificate
from cardboost.linear.base import SeparableDataWarning

LOGISTIC = [
    {"l1": 0.01}, {"l2": 0.1}, {"l1": 0.01, "solver": "gradient"}, {"l1": 0.01, "multi_class": "multinomial"},
    {"l2": 0.01, "multi_class": "multinomial"}, {"l2": 0.01, "max_features": 2},
]  # fmt: skip
LINEAR = [
    {"l1": 0.01}, {"l2": 0.1}, {"loss": "absolute"}, {"loss": "absolute", "l1": 0.01},
    {"loss": "absolute", "l1": 0.01, "l2": 0.1}, {},
]  # fmt: skip

# ------------------------------------------------------------------------------------ weights


@pytest.mark.parametrize("params", LOGISTIC, ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_weight_2_is_the_row_twice_and_weight_0_no_row(params, classes):
    if params.get("max_features") and classes == 3:
        params = params | {"max_features": 1}
    X, y, weight = table("dense", columns=5)
    y = y + (X[:, 3] > 1.0) if classes == 3 else y
    params = params | {"class_weight": "balanced", "n_jobs": 1, "tol": 1e-10, "max_iter": 10**5}
    model = SparseLogisticRegression(**params).fit(X, y, weight)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))[::-1]
    other = SparseLogisticRegression(**params).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.intercept_, model.intercept_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("params", LINEAR, ids=str)
def test_weights_of_a_regression(params):
    X, _, weight = table("dense", columns=5)
    y = X[:, 0] + np.random.default_rng(0).normal(size=len(X))
    model = SparseLinearRegression(**params, n_jobs=1).fit(X, y, weight)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))[::-1]
    other = SparseLinearRegression(**params, n_jobs=1).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_small_tables_agree_to_the_bit(seed):
    """Weight k is the row k times, and the order of the rows does not matter, with weights of any kind."""
    rng = np.random.default_rng(seed)
    X, counts = rng.integers(0, 3, size=(14, 2)).astype(float), rng.integers(1, 4, 14)
    y = X[:, 0] + rng.integers(-1, 2, 14)
    repeated, shuffled = np.repeat(np.arange(14), counts), rng.permutation(14)
    real = rng.uniform(0.1, 3.0, 14) * 10.0 ** (300 * (seed % 2))
    for model, target in (
        (SparseLinearRegression(l2=0.01, n_jobs=1), y),
        (SparseLinearRegression(l1=0.05, n_jobs=1), y),
        (SparseLinearRegression(loss="absolute", l2=0.01, n_jobs=1), y),
        (SparseLogisticRegression(l2=0.01, n_jobs=1), y > 1),
        (SparseLogisticRegression(l1=0.01, multi_class="multinomial", n_jobs=1), np.clip(y, 0, 2)),
    ):
        one, two = clone(model).fit(X, target, counts), clone(model).fit(X[repeated], target[repeated])
        assert one.coef_.tobytes() == two.coef_.tobytes()
        assert np.all(one.intercept_ == two.intercept_)
        one = clone(model).fit(X, target, real)
        two = clone(model).fit(X[shuffled], target[shuffled], real[shuffled])
        assert one.coef_.tobytes() == two.coef_.tobytes()


def test_rows_whose_differences_are_lost_in_a_sum_keep_their_order():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(33, 2)) * [1.0, 0.0] + [[0.0, 9e15]]
    X[::3, 1] *= -1.0
    y, order = rng.random(33) < 0.5, rng.permutation(33)
    for matrix in (np.asarray, sparse.csr_array):
        model = SparseLogisticRegression(l2=0.01, fit_intercept=False, tol=1e-12, n_jobs=1)
        one, two = model.fit(matrix(X), y).coef_.copy(), model.fit(matrix(X[order]), y[order]).coef_
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("offset", [1e7, 1e8])
def test_columns_and_targets_far_from_0(offset):
    """The intercept takes the offset: the same coefficients as without it, to the digits that are left."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(21, 5)), 1)  # whole steps of the far numbers
    y = X[:, 0] - X[:, 1] + rng.normal(size=21)
    shift = np.array([offset, 0.0, 0.0, 0.0, offset])
    far = X + shift
    near = far - shift
    classes = np.digitize(y, [-0.5, 0.5])
    for model, target, other in (
        (SparseLinearRegression(l1=0.001, l2=1e-6, max_iter=20), y, y),
        (SparseLinearRegression(l2=0.01, solver="prox-newton", max_iter=20), np.full(21, 3.0), np.zeros(21)),
        (SparseLinearRegression(l1=0.01), y + offset, y),
        (SparseLinearRegression(loss="absolute", l2=0.01), y + offset, y),
        (SparseLogisticRegression(l1=0.01), y > 0, y > 0),
        (SparseLogisticRegression(l2=0.01, multi_class="multinomial", tol=1e-10), classes, classes),
    ):
        moved, plain = clone(model).fit(far, target), clone(model).fit(near, other)
        np.testing.assert_allclose(moved.coef_, plain.coef_, rtol=1e-3, atol=1e-6)
        assert moved.certificate_.faults(far, target) == []
        assert moved.certificate_.objective <= moved.certificate_.null_objective
        again = clone(model).set_params(warm_start=True).fit(far, target).fit(far, target)
        np.testing.assert_allclose(again.coef_, moved.coef_, rtol=1e-3, atol=1e-6)


def test_large_tables_agree_to_rounding():
    """Above the size up to which equal rows are added up."""
    X, y, weight = table("dense", rows=12_000, columns=90)
    model = SparseLogisticRegression(l1=0.01, tol=1e-9, n_jobs=1).fit(X, y, weight)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))[::-1]
    other = SparseLogisticRegression(l1=0.01, tol=1e-9, n_jobs=1).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-7)
    assert model.certificate_.objective == pytest.approx(other.certificate_.objective, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_only_ratios_of_weights_count(scale):
    X, y, weight = table("csr")
    a = SparseLogisticRegression(l1=0.01).fit(X, y, weight)
    b = SparseLogisticRegression(l1=0.01).fit(X, y, weight * scale)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6, atol=1e-9)
    assert b.certificate_.verify(X, y, weight * scale)


def test_class_weights_are_row_weights():
    X, y, _ = table("dense")
    a = SparseLogisticRegression(l1=0.01, class_weight={0: 3.0}).fit(X, y)
    b = SparseLogisticRegression(l1=0.01).fit(X, y, np.where(y == 0, 3.0, 1.0))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-9)
    assert a.certificate_.verify(X, y)


# ------------------------------------------------------------------------------------ certificates


@pytest.mark.parametrize(
    "params", [{"l1": 0.01}, {"l2": 0.1}, {"l2": 1e-9}, {"l1": 0.01, "fit_intercept": False}]
)
@pytest.mark.parametrize("kind", ["logistic", "softmax", "squared", "absolute"])
def test_a_certificate_holds_and_no_number_of_it_can_be_changed(kind, params):
    X, y, weight = table("dense", columns=4)
    if kind in ("logistic", "softmax"):
        y = y if kind == "logistic" else y + (X[:, 3] > 1.0)
        model = SparseLogisticRegression(multi_class="multinomial", **params).fit(X, y, weight)
    else:
        y = X[:, 0] + y
        model = SparseLinearRegression(loss=kind, **params).fit(X, y, weight)
    own = model.certificate_
    assert own.loss == kind
    assert own.faults(X, y, weight) == []
    assert own.faults(X[::-1], y[::-1], weight[::-1]) == [] or kind == "absolute"
    assert LinearCertificate.from_dict(own.to_dict()).verify(X, y, weight)
    for name in ("objective", "lower_bound", "null_objective", "l1", "l2"):
        changed = dataclasses.replace(own, **{name: getattr(own, name) + 1e-3})
        assert not changed.verify(X, y, weight), name
    first = np.eye(len(own.coef))[0]  # softmax does not change when all scores do
    assert not dataclasses.replace(own, coef=own.coef + 0.01 * first[:, None]).verify(X, y, weight)
    assert not dataclasses.replace(own, intercept=own.intercept + 0.01 * first).verify(X, y, weight)
    assert not own.verify(X, np.roll(y, 1), weight)
    assert not own.verify(X + 0.01, y, weight)
    assert own.faults(X[:, :2], y, weight)
    said = " ".join(own.lines())
    for word in (kind, f"{own.l1:g} |coef|_1", f"{own.l2:g}/2 |coef|_2^2", "4 features", "1e-09", "0.0001"):
        assert word in said
    for word in (kind, f"l1={own.l1:g}", f"l2={own.l2:g}", "n_features=4", "objective"):
        assert word in repr(own)


def test_linear_certificates_that_lie_are_refused():
    """Tolerances are shares of the objective without features, which no model can choose."""
    X = table("dense")[0]
    certificate = SparseLinearRegression(l2=0.1).fit(X, X[:, 0]).certificate_
    for coefficient in (1e7, 1e200):
        coef = np.full_like(certificate.coef, coefficient)
        bad = dataclasses.replace(certificate, coef=coef, objective=0.0, lower_bound=0.0, status="optimal")
        assert bad.faults(X, X[:, 0])
    two = SparseLogisticRegression(l1=0.01, class_weight={0: 1.0, 1: 3.0}).fit(X, X[:, 0] > 0)
    own = two.certificate_
    assert dataclasses.replace(own, target=7).faults(X, X[:, 0] > 0) == [
        "target must be the number of a class, not 7."
    ]
    assert "classes weighted 1, 3, for class True" in own.lines()[0]


def test_the_bound_holds_for_every_model():
    """No perturbed model, and no other solver, is below the lower bound."""
    X, y, _ = table("separable")
    rng = np.random.default_rng(0)
    for params in ({"l1": 0.02}, {"l2": 0.02}, {"l1": 0.3}):
        model = SparseLogisticRegression(tol=1e-2, **params).fit(X, y)
        own = model.certificate_
        better = SparseLogisticRegression(tol=1e-10, **params).fit(X, y).certificate_
        assert own.lower_bound <= better.objective + 1e-12
        for _ in range(20):
            coef = model.coef_[0] * rng.normal(1, 0.1, X.shape[1])
            loss = np.logaddexp(0, -np.where(y == 1, 1, -1) * (X @ coef + model.intercept_)).mean()
            value = loss + own.l1 * np.abs(coef).sum() + own.l2 / 2 * coef @ coef
            assert value >= own.lower_bound


# ------------------------------------------------------------------------------------ separable data


@pytest.mark.parametrize("kind", ["separable", "wide"])
@pytest.mark.parametrize("solver", ["auto", "prox-newton"])
def test_separable_data_without_prices(kind, solver):
    X, y, _ = table(kind)
    with pytest.warns(SeparableDataWarning, match="Give l1 or l2"):
        model = SparseLogisticRegression(solver=solver).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.abs(model.coef_ * X.std(axis=0)).max() < 1e4
    assert model.score(X, y) == 1.0
    assert model.certificate_.status == "separable"
    assert model.certificate_.verify(X, y)


def test_nearly_separable_data():
    """One feature that is never positive for one of the classes: its coefficient has no end."""
    X, y, _ = table("dense")
    X[:, 0] = (y == 1) & (X[:, 0] > 0.8)
    with pytest.warns(SeparableDataWarning):
        model = SparseLogisticRegression().fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.certificate_.verify(X, y)


def test_separable_classes_with_softmax():
    X = np.repeat(np.eye(3), 4, axis=0)
    with pytest.warns(SeparableDataWarning):
        model = SparseLogisticRegression(multi_class="multinomial").fit(X, np.repeat([0, 1, 2], 4))
    assert np.isfinite(model.coef_).all()


def test_max_iter_is_a_warning():
    X, y, _ = table("dense")
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = SparseLogisticRegression(l2=1e-4, solver="gradient", max_iter=2).fit(X, y)
    assert model.certificate_.status == "iteration limit"
    assert model.certificate_.verify(X, y)


# ------------------------------------------------------------------------------------ bad input

GOOD = table("dense", rows=30)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"l1": -1.0}, "l1 must be"), ({"l1": np.nan}, "l1 must be"), ({"l2": "a"}, "l2 must be"),
        ({"tol": 0.0}, "tol must be"), ({"max_iter": 0}, "max_iter must be"),
        ({"solver": "x"}, "solver must be"),
        ({"solver": "newton", "l1": 0.1}, "has no l1"), ({"fit_intercept": 2}, "fit_intercept must be"),
        ({"multi_class": "x"}, "multi_class must be"), ({"max_features": -1}, "max_features must be"),
        ({"class_weight": {7: 1.0}}, "class_weight names 7"), ({"class_weight": "x"}, "class_weight must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        SparseLogisticRegression(**params).fit(*GOOD[:2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.full((30, 12), np.nan)}, "X contains NaN"),
        ({"X": np.full((30, 12), np.inf)}, "X contains inf"),
        ({"y": np.zeros(30)}, "only one class"), ({"y": np.zeros(29)}, "inconsistent numbers"),
        ({"y": None}, "requires y"), ({"sample_weight": -np.ones(30)}, "sample_weight must not be negative"),
        ({"sample_weight": np.ones(29)}, "sample_weight must have shape"),
        ({"sample_weight": np.zeros(30)}, "sample_weight must not be zero"),
        ({"sample_weight": np.full(30, np.nan)}, "sample_weight contains NaN"),
        ({"sample_weight": GOOD[1].astype(float)}, "only one class"),
        ({"y": np.where(np.arange(30) == 3, np.nan, GOOD[1])}, "y contains NaN"),
    ],
)  # fmt: skip
def test_bad_data_are_named(change, message):
    data = {"X": GOOD[0], "y": GOOD[1], "sample_weight": None} | change
    with pytest.raises(ValueError, match=message):
        SparseLogisticRegression(l1=0.1).fit(**data)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "x"}, "loss must be"),
        ({"l2": -1}, "l2 must be"),
        ({"loss": "absolute", "solver": "newton"}, "own"),
    ],
)
def test_bad_arguments_of_a_regression(params, message):
    with pytest.raises(ValueError, match=message):
        SparseLinearRegression(**params).fit(*GOOD[:2])
    with pytest.raises(ValueError, match="y contains NaN"):
        SparseLinearRegression().fit(GOOD[0], np.full(30, np.nan))


def test_the_input_is_never_changed():
    X, y, weight = table("csr")
    before = X.copy(), y.copy(), weight.copy()
    SparseLogisticRegression(l1=0.01).fit(X, y, weight)
    assert (before[0] != X).nnz == 0
    np.testing.assert_array_equal(y, before[1])
    np.testing.assert_array_equal(weight, before[2])


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_columns_too_small_to_be_squared_are_named(kind):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    X[:, 1] *= 1e-160
    X = sparse.csr_array(X) if kind == "sparse" else X
    for model in (
        SparseLinearRegression(),
        SparseLinearRegression(loss="absolute", l2=0.01),
        SparseLogisticRegression(l2=0.01),
        SparseLogisticRegression(l2=0.1, multi_class="multinomial"),
        SparseLogisticRegression(l2=1.0, max_features=1),
    ):
        with pytest.raises(ValueError, match=r"X: column 1 holds no number above .*: scale it"):
            model.fit(X, y)


@pytest.mark.parametrize("large", [1e6, 1e12])
def test_least_absolute_deviations_at_the_end_of_their_digits(large):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y, weight = X[:, 0] + rng.normal(size=40), np.where(np.arange(40) == 20, large, 1.0)
    wide = X * [1.0, 9e15, 1e8]
    for rows, own in ((X, weight), (wide, None), (wide[:11, :2], None)):
        model = SparseLinearRegression(loss="absolute", l2=1e-6, tol=1e-12, n_jobs=1)
        target = y[: len(rows)]
        assert model.fit(rows, target, own).certificate_.faults(rows, target, own) == []


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("l2", [1e-6, 0.01, 1.0])
@pytest.mark.parametrize("l1", [0.0, 1.0])
def test_no_first_step_is_worse_than_the_empty_model(l1, l2):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(7, 4)), rng.normal(size=7)
        certificate = SparseLinearRegression(loss="absolute", l1=l1, l2=l2, max_iter=1).fit(X, y).certificate_
        assert certificate.objective <= certificate.null_objective
        assert certificate.faults(X, y) == []


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_targets_without_digits_for_what_varies_are_refused(loss):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.random.default_rng(1).normal(size=20)
    model = SparseLinearRegression(loss=loss, l1=0.01, n_jobs=1)
    with pytest.raises(ValueError, match=r"y lies between .* subtract a constant"):
        model.fit(X, y + 1e13)
    target = y + 1e10
    certificate = model.fit(X, target).certificate_
    assert certificate.faults(X, target) == []
    assert certificate.objective <= certificate.null_objective * (1 + 1e-9)
    assert model.fit(X, np.full(20, 1e13)).intercept_ == 1e13


def test_numbers_too_large_are_refused():
    X = np.array([[1e200, 1.0], [-1e200, 0.0], [3e199, 1.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match="too large"):
        SparseLinearRegression(l1=0.1).fit(X, [1.0, 2.0, 3.0, 4.0])


# ------------------------------------------------------------------------------------ paths, warm starts


@pytest.mark.parametrize("kind", ["dense", "csr", "wide"])
def test_a_path_is_the_single_optima(kind):
    X, y, weight = table(kind)
    model = SparseLogisticRegression(tol=1e-8)
    path = model.path(X, y, n=8, sample_weight=weight, ratio=0.05)
    assert not hasattr(model, "coef_")
    assert len(path.supports[0]) == 0
    assert (np.diff(path.l1s) < 0).all()
    for k in (0, 3, 7):
        own = SparseLogisticRegression(l1=float(path.l1s[k]), tol=1e-8).fit(X, y, weight)
        assert path.objectives[k] == pytest.approx(own.certificate_.objective, rel=1e-7)
        assert path.gaps[k] <= 1e-8 * path.objectives[k]
        np.testing.assert_array_equal(path.supports[k], np.flatnonzero(path.coefs[k]))
    given = model.path(X, y, [0.01, 0.1], sample_weight=weight)
    np.testing.assert_array_equal(given.l1s, [0.1, 0.01])


def test_a_path_of_a_regression():
    X, y, _ = table("dense")
    path = SparseLinearRegression(tol=1e-9).path(X, X[:, 0] + y, n=5)
    own = SparseLinearRegression(l1=float(path.l1s[-1]), tol=1e-9).fit(X, X[:, 0] + y)
    np.testing.assert_allclose(path.coefs[-1], own.coef_, atol=1e-6)


@pytest.mark.parametrize("l1s", [[], [-1.0], [np.nan], [np.inf]])
def test_bad_prices_of_a_path(l1s):
    with pytest.raises(ValueError, match="l1s must hold"):
        SparseLogisticRegression().path(*GOOD[:2], l1s)


def test_warm_starts_need_fewer_steps():
    X, y, _ = table("dense")
    model = SparseLogisticRegression(l1=0.01, solver="gradient", warm_start=True).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ <= first / 2
    assert model.fit(X[:, :5], y).coef_.shape == (1, 5)


# ------------------------------------------------------------------------------------ best subsets


def best_by_enumeration(X, y, k, l2, s):
    sign, best = np.where(y == 1, 1.0, -1.0), np.inf
    for own in itertools.combinations(range(X.shape[1]), k):
        A = np.column_stack([X[:, own], np.ones(len(y))])

        def value(z, A=A):
            margin = sign * (A @ z)
            u = s * sign / (1 + np.exp(margin))
            gradient = np.append(l2 * z[:-1], 0.0) - A.T @ u
            return s @ np.logaddexp(0, -margin) + l2 / 2 * z[:-1] @ z[:-1], gradient

        best = min(best, minimize(value, np.zeros(k + 1), jac=True, options={"gtol": 1e-9}).fun)
    return best


def test_the_best_subset():
    X, y, weight = table("dense", columns=6)
    X = X * np.array([1, 10, 0.1, 1, 1, 5])
    model = SparseLogisticRegression(l2=0.01, max_features=2).fit(X, y, weight)
    assert np.count_nonzero(model.coef_) == 2
    own = model.certificate_
    best = best_by_enumeration(X, y, 2, 0.01, weight / weight.sum())
    assert own.lower_bound <= best + 1e-9
    assert own.objective == pytest.approx(best, rel=1e-6)
    assert own.status == "optimal"
    assert own.verify(X, y, weight)
    assert not own.verify(X, 1 - y, weight)
    assert pickle.loads(pickle.dumps(model)).certificate_.verify(X, y, weight)


def test_best_subsets_of_three_classes_and_class_weights():
    X, y, _ = table("dense", columns=5)
    y = np.array(["a", "b", "c"])[y + (X[:, 3] > 1.0)]
    model = SparseLogisticRegression(l1=0.001, max_features=1, class_weight="balanced").fit(X, y)
    assert (np.count_nonzero(model.coef_, axis=1) <= 1).all()
    assert all(own.verify(X, y) for own in model.certificate_)
    with pytest.raises(ValueError, match="max_features is for"):
        model.set_params(multi_class="multinomial").fit(X, y)
    with pytest.raises(TypeError, match="Sparse data is not supported"):
        SparseLogisticRegression(max_features=1).fit(sparse.csr_array(X), y)


# ------------------------------------------------------------------------------------ scikit-learn


def test_probabilities_and_labels():
    X, y, _ = table("dense")
    names = np.array(["no", "yes", "maybe"])[y + (X[:, 3] > 1.0)]
    for multi_class in ("ovr", "multinomial"):
        model = SparseLogisticRegression(l1=0.01, multi_class=multi_class).fit(X, names)
        chance = model.predict_proba(X)
        np.testing.assert_allclose(chance.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[chance.argmax(axis=1)], model.predict(X))
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), chance)
        assert model.coef_.shape == (3, X.shape[1])
    certificates = SparseLogisticRegression(l1=0.01).fit(X, names).certificate_
    assert [own.verify(X, names) for own in certificates] == [True] * 3


def test_in_a_grid_search_on_a_frame():
    X, y, _ = table("dense", columns=4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    search = GridSearchCV(SparseLogisticRegression(), {"l1": [0.001, 0.1]}, cv=2).fit(frame, y)
    assert list(search.best_estimator_.feature_names_in_) == list("abcd")
    other = copy.deepcopy(search.best_estimator_)
    np.testing.assert_array_equal(other.predict(frame), search.predict(frame))


def test_sparse_and_dense_are_one_problem():
    X, y, weight = table("csr")
    a = SparseLogisticRegression(l1=0.005, tol=1e-9).fit(X, y, weight)
    b = SparseLogisticRegression(l1=0.005, tol=1e-9).fit(X.toarray(), y, weight)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-7)
    doubled = sparse.coo_array(
        (np.tile(X.tocoo().data / 2, 2), np.tile(np.stack(X.tocoo().coords), 2)), X.shape
    )
    c = SparseLogisticRegression(l1=0.005, tol=1e-9).fit(doubled.tocsr(), y, weight)
    np.testing.assert_allclose(a.coef_, c.coef_, atol=1e-7)


def test_verbose_prints(capsys):
    SparseLinearRegression(verbose=1).fit(*GOOD[:2])
    assert "[cardboost]" in capsys.readouterr().out


@pytest.mark.parametrize("correlated", [False, True])
def test_tables_with_many_rows_reach_the_optimum_from_a_sample(correlated):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 60))
    if correlated:
        X += 2.0 * rng.standard_normal((6000, 5)) @ rng.standard_normal((5, 60))
    y = rng.random(6000) < 1.0 / (1.0 + np.exp(-0.1 * X[:, :10].sum(axis=1)))
    for l2 in (1e-3, 0.0):
        model = SparseLogisticRegression(l2=l2).fit(X, y)
        exact = SparseLogisticRegression(l2=l2, tol=1e-10).fit(X, y)
        assert model.certificate_.status == "optimal"
        assert model.certificate_.verify(X, y)
        assert model.certificate_.objective == pytest.approx(exact.certificate_.objective, rel=1e-6)


def test_a_certificate_has_the_guarantee_and_the_scope_of_other_certificates():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X[:, 0] + rng.standard_normal(80)
    certificate = SparseLinearRegression(l1=0.1).fit(X, y).certificate_
    possible = certificate.null_objective - certificate.lower_bound
    improvement = certificate.null_objective - certificate.objective
    assert certificate.guarantee == pytest.approx(improvement / possible)
    assert certificate.scope == "all coefficients"
    assert any("guarantee: at least 99." in line or "100.00 %" in line for line in certificate.lines())
    assert SparseLinearRegression().fit(X, y).certificate_.scope == "coefficients in the box"

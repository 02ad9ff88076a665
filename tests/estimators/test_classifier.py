"""The classifier: what it fits, that nothing irrelevant changes it, and what it refuses."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from cardboost import (
    CardBoostClassifier,
    CardBoostRegressor,
    StagewiseClassifier,
    StagewiseRegressor,
    load_model,
)
from cardboost.boosting.totally_corrective import Scout
from cardboost.dictionary.sketch import RowSketch
from cardboost.selection import merge

PAPER = {"loss": "exponential", "criterion": "edge", "l2": 0.0, "fit_intercept": False, "max_nodes": 100}
SETTINGS = {
    "default": {},
    "few": {"max_terms": 3, "max_iter": 8},
    "l0": {"max_terms": None, "l0": 0.02, "max_iter": 8},
    "both": {"max_terms": 4, "l0": 0.005, "max_iter": 8},
    "convex": {"max_terms": None, "max_iter": 30},
    "paper": {**PAPER, "max_terms": 4, "max_iter": 8},
    "balanced": {"max_terms": 4, "max_iter": 8, "class_weight": "balanced"},
}


def slow(names, *some):
    """The same names, some of them for the long tests."""
    return [pytest.param(name, marks=pytest.mark.long) if name in some else name for name in names]


def model(**parameters):
    return CardBoostClassifier(**{"n_jobs": 1, "l2": 0.01, **parameters})


def small(**parameters):
    return model(**{"max_terms": 4, "max_iter": 8, **parameters})


def make(seed=0, rows=300, features=5, missing=0.05, levels=40):
    """Small whole numbers, some missing, and labels that two thirds of the features explain."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (rows, features)).astype(np.float64)
    X[rng.random(X.shape) < missing] = np.nan
    score = (np.nan_to_num(X) / levels - 0.5) @ np.linspace(3.0, -1.0, features)
    return X, (score + 0.5 * rng.normal(size=rows) > 0).astype(np.int64)


def content(fitted, *, without=()):
    """The certificate without its own digest and without the keys named (``a.b`` for a key inside)."""
    out = fitted.certificate_.to_dict()
    del out["digest"]
    for path in without:
        *outer, last = path.split(".")
        place = out
        for key in outer:
            place = place[key]
        del place[last]
    return out


def assert_same(a, b, *, without=()):
    """Equal to the bit: the ensemble, and the certificate but for the keys named."""
    assert a.ensemble_ == b.ensemble_
    one, other = content(a, without=without), content(b, without=without)
    assert json.dumps(one) == json.dumps(other)


def assert_sound(fitted, X, y, weight=None):
    """Finite numbers everywhere, and a certificate that the checker accepts."""
    score = fitted.decision_function(X)
    assert np.isfinite(score).all()
    probability = fitted.predict_proba(X)
    assert np.isfinite(probability).all()
    assert np.allclose(probability.sum(axis=1), 1.0)
    certificate = fitted.certificate_
    assert certificate.faults(X, y, weight) == []
    for bound in certificate.bounds:
        assert 0.0 <= bound.lower_bound <= certificate.objective <= certificate.null_objective + 1e-9
        assert 0.0 <= bound.guarantee <= 1.0
    terms = fitted.ensemble_.terms
    assert all(math.isfinite(term.weight) for term in terms)
    assert fitted.max_terms is None or len(terms) <= fitted.max_terms
    used = {(t.feature, t.cut, t.polarity, t.missing_left) for t in terms}
    assert len(used) == len(terms)


# ---------------------------------------------------------------- what is fitted


@pytest.mark.parametrize("name", slow(SETTINGS, "default"))
def test_fit_and_certificate(name):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    fitted = model(**SETTINGS[name]).fit(X, y)
    assert_sound(fitted, X, y)
    assert fitted.score(X, y) > 0.93
    assert fitted.n_features_in_ == 30
    assert fitted.feature_names_in_.tolist() == list(X.columns)
    assert fitted.feature_names_in_.dtype == object
    assert fitted.classes_.tolist() == [0, 1]
    trace = fitted.trace_
    assert fitted.n_iter_ == trace[-1].n_columns <= fitted.max_iter
    objectives = [record.objective for record in trace]
    assert all(after <= before for before, after in itertools.pairwise(objectives))
    seconds = [record.seconds for record in trace]
    assert seconds == sorted(seconds)
    bounds = [record.lower_bound for record in trace]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= objectives[-1]
    assert trace.message
    assert fitted.card()


def test_defaults():
    X, y = load_breast_cancer(return_X_y=True)
    fitted = CardBoostClassifier().fit(X, y)
    assert fitted.ensemble_.n_terms == 10
    assert not hasattr(fitted, "feature_names_in_")
    assert {bound.scope for bound in fitted.certificate_.bounds} == {"pool", "dictionary"}
    assert fitted.certificate_.guarantee > 0.95
    assert fitted.n_iter_ == fitted.hot_start


@pytest.mark.parametrize(("loss", "l2"), [("logistic", 0.01), ("exponential", 0.01), ("logistic", 0.0)])
def test_generation_to_the_optimum_over_the_dictionary(loss, l2):
    X, y = make(1, features=4, levels=12)
    tol = 1e-4
    fitted = model(loss=loss, max_terms=None, l1=1e-3, l2=l2, tol=tol, max_iter=2000).fit(X, y)
    assert fitted.trace_.status == "optimal"
    certificate = fitted.certificate_
    assert certificate.scope == "dictionary"
    assert certificate.relative_gap <= tol
    assert certificate.status == "optimal"
    assert_sound(fitted, X, y)


def test_the_optimum_over_the_dictionary_is_that_of_the_solver_on_the_matrix_of_all_stumps():
    from cardboost.solvers import minimize_l1

    X, y = make(2, rows=120, features=3, levels=6, missing=0.0)
    fitted = model(max_terms=None, l1=1e-3, fit_intercept=False, tol=1e-9, max_iter=500).fit(X, y)
    sign = np.where(y > 0, 1.0, -1.0)
    stumps = [
        polarity * sign * np.where(X[:, j] <= cut, 1.0, -1.0)
        for j in range(3)
        for cut in range(5)
        for polarity in (1, -1)
    ]
    best = minimize_l1(np.array(stumps).T, 1e-3, l2=0.01, loss="logistic", tol=1e-10)
    assert fitted.certificate_.objective == pytest.approx(best.fun, rel=1e-8)


def test_max_terms_and_prices_make_models_smaller_and_objectives_larger():
    X, y = make(3)
    objectives = []
    for terms in (1, 2, 4, 8):
        fitted = small(max_terms=terms).fit(X, y)
        assert fitted.ensemble_.n_terms <= terms
        objectives.append(fitted.certificate_.objective)
    assert objectives == sorted(objectives, reverse=True)
    sizes = [
        model(max_terms=None, l0=l0, max_iter=12).fit(X, y).ensemble_.n_terms for l0 in (0.001, 0.01, 0.05)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] > 0
    nothing = model(l0=10.0).fit(X, y)
    assert nothing.ensemble_.n_terms == 0
    assert nothing.certificate_.guarantee == 1.0
    assert_sound(nothing, X, y)
    assert nothing.predict_proba(X)[0, 1] == pytest.approx(y.mean(), abs=1e-6)


def test_max_weight_is_kept():
    X, y = make(4)
    fitted = small(max_weight=0.25).fit(X, y)
    assert max(term.weight for term in fitted.ensemble_.terms) <= 0.25
    assert_sound(fitted, X, y)


def test_more_terms_than_columns():
    X, y = make(5, rows=60, features=2, levels=3)
    assert_sound(model(max_terms=1000).fit(X, y), X, y)


def test_without_intercept_the_score_is_the_sum_of_the_terms():
    X, y = make(6)
    fitted = small(fit_intercept=False).fit(X, y)
    assert fitted.ensemble_.intercept == 0.0
    assert fitted.certificate_.content["problem"]["intercept_box"] is None
    assert_sound(fitted, X, y)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_predictions_agree_with_each_other(loss):
    X, y = make(7)
    fitted = small(loss=loss).fit(X, y)
    score = fitted.decision_function(X)
    assert score.shape == (len(X),)
    parts = fitted.contributions(X)
    assert parts.shape == X.shape
    total = np.full(len(X), fitted.ensemble_.intercept)
    for column in parts.T:
        total = total + column
    assert np.array_equal(score, total)
    by_hand = np.full(len(X), fitted.ensemble_.intercept)
    for term in fitted.ensemble_.terms:
        value = X[:, term.feature]
        left = np.where(np.isnan(value), term.missing_left, value <= term.cut)
        by_hand += term.polarity * term.weight * np.where(left, 1.0, -1.0)
    assert np.allclose(score, by_hand, atol=1e-12)
    assert np.array_equal(fitted.predict(X), fitted.classes_[(score > 0).astype(int)])
    probability = fitted.predict_proba(X)
    times = 2.0 if loss == "exponential" else 1.0
    assert np.allclose(probability[:, 1], 1.0 / (1.0 + np.exp(-times * score)))
    assert np.allclose(np.exp(fitted.predict_log_proba(X)), probability)
    assert np.array_equal(probability, fitted.ensemble_.predict_proba(X))


def test_predictions_do_not_depend_on_parameters_changed_after_the_fit():
    X, y = make(7)
    fitted = small(loss="exponential").fit(X, y)
    before = fitted.predict_proba(X)
    fitted.set_params(loss="logistic")
    assert np.array_equal(fitted.predict_proba(X), before)


def test_a_score_of_zero_is_the_first_class():
    X, y = make(8, rows=100)
    fitted = model(l0=100.0, fit_intercept=False).fit(X, y)
    assert not fitted.decision_function(X).any()
    assert not fitted.predict(X).any()


@pytest.mark.parametrize(
    "labels",
    [(-1, 1), (False, True), ("no", "yes"), (0.0, 1.0), (5, 7), (np.int8(3), np.int8(4))],
)
def test_any_two_labels(labels):
    X, y = make(9, rows=150)
    named = np.array(labels)[y]
    fitted = small().fit(X, named)
    assert fitted.classes_.tolist() == [label.item() for label in np.array(labels)]
    assert fitted.classes_.dtype == named.dtype
    assert fitted.predict(X).dtype == named.dtype
    assert fitted.score(X, named) > 0.8
    assert fitted.certificate_.verify(X, named)
    plain = small().fit(X, y)
    assert fitted.ensemble_.terms == plain.ensemble_.terms
    if named.dtype.kind != "U":
        return
    for container in (list(named), pd.Series(named), pl.Series(named.tolist()), named.astype(object)):
        again = small().fit(X, container)
        assert again.ensemble_.terms == plain.ensemble_.terms
        assert again.certificate_.verify(X, container)


def test_a_column_of_labels_is_taken_with_a_warning():
    X, y = make(9, rows=150)
    with pytest.warns(UserWarning, match="column-vector y"):
        fitted = small().fit(X, y[:, None])
    assert_same(fitted, small().fit(X, y))


def test_save_and_load(tmp_path):
    X, y = make(10)
    frame = pd.DataFrame(X, columns=[f"feature {j}" for j in range(X.shape[1])])
    for parameters in (SETTINGS["few"], SETTINGS["paper"]):
        fitted = model(**parameters).fit(frame, y)
        path = tmp_path / "model.json"
        fitted.save(path)
        loaded = load_model(path)
        assert loaded.ensemble == fitted.ensemble_
        assert loaded.certificate == fitted.certificate_.to_dict()
        assert loaded.training["parameters"]["max_terms"] == fitted.max_terms
        assert np.array_equal(loaded.decision_function(frame), fitted.decision_function(frame))
        assert np.array_equal(loaded.predict(frame), fitted.predict(frame))
        assert np.array_equal(loaded.predict_proba(frame), fitted.predict_proba(frame))


def test_parameters_are_kept_as_given():
    unfitted = CardBoostClassifier()
    defaults = {
        "max_terms": 10, "l0": 0.0, "l1": 1e-4, "l2": "auto", "loss": "logistic", "dictionary": "stumps",
        "criterion": "gain", "selector": "auto", "hot_start": 40, "reselect": False, "max_iter": 100,
        "max_nodes": 20_000, "max_weight": None, "bits": 6, "max_bins": 255, "tol": 1e-4, "time_limit": None,
        "fit_intercept": True, "class_weight": None, "categorical_features": "from_dtype",
        "monotonic_cst": None, "max_features": None, "feature_costs": None, "validation_fraction": None,
        "cuts": None, "must_include": None, "exclude": None, "at_most_one_of": None, "missing": "learn",
        "threshold": None,
        "warm_start": False, "random_state": None, "n_jobs": None, "verbose": 0,
    }  # fmt: skip
    assert unfitted.get_params() == defaults
    given = {"max_terms": np.int64(3), "l1": np.float32(0.5), "class_weight": {0: 1.0, 1: 2.0}}
    changed = CardBoostClassifier().set_params(**given)
    copied = clone(changed)
    for name, value in given.items():
        assert getattr(changed, name) is value
        assert getattr(copied, name) == value
    X, y = make(11, rows=80)
    fitted = small().fit(X, y)
    before = copy.deepcopy(fitted.get_params())
    fitted.predict(X)
    assert fitted.get_params() == before
    assert not hasattr(clone(fitted), "ensemble_")
    with pytest.raises(ValueError, match="nonsense"):
        unfitted.set_params(nonsense=1)
    with pytest.raises(TypeError):
        CardBoostClassifier(5)


def test_fitting_again_forgets_the_first_table():
    X, y = make(12, rows=80)
    names = list("abcde")
    fitted = small().fit(pd.DataFrame(X, columns=names), y)
    assert fitted.feature_names_in_.tolist() == names
    fitted.fit(X[:, :3], y)
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.n_features_in_ == 3
    assert_same(fitted, small().fit(X[:, :3], y))


def test_verbose_prints_one_line_per_round(capsys):
    X, y = make(12, rows=80)
    fitted = small(verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(fitted.trace_)
    small().fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "parameters", [{"max_terms": None, "tol": 0.0, "l1": 0.0}, {"max_terms": 15, "hot_start": 90}]
)
def test_time_limit(work_clock, parameters):
    X, y = make(13, rows=20_000, features=30, levels=200)
    limit = 1.0
    fitted = model(max_iter=5000, time_limit=limit, **parameters).fit(X, y)
    assert work_clock.seconds <= 1.1 * limit + 0.1
    if parameters["max_terms"] is None:
        assert fitted.trace_.status == "time limit"
    assert_sound(fitted, X, y)


def test_a_time_limit_that_is_over_at_once_still_gives_a_model():
    X, y = make(14)
    for parameters in ({}, {"max_terms": None}):
        fitted = model(time_limit=1e-9, **parameters).fit(X, y)
        assert fitted.trace_.status == "time limit"
        assert_sound(fitted, X, y)


# ---------------------------------------------------------------- what must not matter


@pytest.mark.parametrize("name", ["few", "convex"])
def test_containers_and_types_give_the_same_model(name):
    X, y = make(20, missing=0.0, rows=200)
    names = [f"f{j}" for j in range(X.shape[1])]
    fit = lambda table: model(**SETTINGS[name]).fit(table, y)  # noqa: E731
    plain = fit(X)
    strided = np.zeros((2 * len(X), 2 * X.shape[1]))
    strided[::2, ::2] = X
    arrays = [
        np.asfortranarray(X), X.astype(np.float32), X.astype(np.int64), X.astype(np.uint8), X.astype(object),
        X.astype(np.int16), X.astype(">f8"), X.tolist(), strided[::2, ::2], X[::-1][::-1], X.astype("f2"),
    ]  # fmt: skip
    for table in arrays:
        assert_same(plain, fit(table))
    read_only = X.copy()
    read_only.flags.writeable = False
    assert_same(plain, fit(read_only))
    frame = pd.DataFrame(X, columns=names)
    mixed = frame.astype({"f0": "float32", "f1": "int32", "f2": "Int64", "f3": "Float64"})
    frames = [frame, mixed, pl.DataFrame(X, schema=names), pl.DataFrame(X.astype(np.int32), schema=names)]
    for table in frames:
        fitted = fit(table)
        assert fitted.ensemble_.terms == plain.ensemble_.terms
        assert fitted.ensemble_.intercept == plain.ensemble_.intercept
        assert content(fitted) == content(plain)
        assert fitted.feature_names_in_.tolist() == names
        assert np.array_equal(fitted.decision_function(table), plain.decision_function(X))
        assert fitted.certificate_.verify(table, y)


def test_missing_values_of_every_container_are_the_same():
    X, y = make(21)
    names = list("abcde")
    plain = small().fit(X, y)
    frame = pd.DataFrame(X, columns=names)
    whole = frame.astype("Int64")
    polars = pl.DataFrame(
        {name: [None if v != v else int(v) for v in X[:, j]] for j, name in enumerate(names)}
    )
    half = pl.DataFrame({name: [None if v != v else v for v in X[:, j]] for j, name in enumerate(names)})
    objects = np.array([[None if v != v else v for v in row] for row in X], dtype=object)
    for table in (frame, whole, polars, half, objects, X.astype(np.float32)):
        fitted = small().fit(table, y)
        assert fitted.ensemble_.terms == plain.ensemble_.terms
        assert content(fitted) == content(plain)
        assert np.array_equal(fitted.decision_function(table), plain.decision_function(X))
    for table in (frame, half, X.astype(np.float32)):
        assert plain.certificate_.faults(table, y) == []


def test_truth_values_are_zero_and_one():
    rng = np.random.default_rng(22)
    X = rng.random((200, 4)) < 0.5
    y = (X.sum(axis=1) + rng.normal(size=200) > 2).astype(int)
    plain = small().fit(X.astype(float), y)
    names = list("abcd")
    for table in (X, pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        fitted = small().fit(table, y)
        assert fitted.ensemble_.terms == plain.ensemble_.terms
        assert content(fitted) == content(plain)
        assert np.array_equal(fitted.predict(table), plain.predict(X))


def whole_weights(rows, seed=0):
    return np.random.default_rng(seed).integers(0, 4, rows).astype(np.float64)


def assert_nothing_irrelevant_matters(X, y, parameters, seed=0):
    """Threads, order in memory, order of rows, repeated rows against weights, and rows without weight."""
    fit = lambda *data, **more: model(**{**parameters, **more}).fit(*data)  # noqa: E731
    plain = fit(X, y)
    for jobs in (2, 7):
        assert_same(plain, fit(X, y, n_jobs=jobs))
    assert_same(plain, fit(np.asfortranarray(X), y))
    assert_same(plain, fit(X, y, np.ones(len(y))))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    assert_same(plain, fit(X[order], y[order], n_jobs=2))

    weight = whole_weights(len(y), seed)
    weighted = fit(X, y, weight)
    again = rng.permutation(np.repeat(np.arange(len(y)), weight.astype(int)))
    assert_same(weighted, fit(X[again], y[again]), without=["data.rows"])
    assert_same(weighted, fit(X[weight > 0], y[weight > 0], weight[weight > 0]))
    assert_same(weighted, fit(X[order], y[order], weight[order], n_jobs=7))


def assert_scale_of_weights_does_not_matter(X, y, parameters, seed=0):
    """To the bit, except for counts: those are repeated rows, and more rows leave fewer digits."""
    fit = lambda own: model(**parameters).fit(X, y, own)  # noqa: E731
    ones, rough = np.ones(len(y)), np.random.default_rng(seed).random(len(y)) + 0.1
    for own, factors in ((ones, (0.25, 2.0**60)), (rough, (2.0, 0.25, 2.0**60))):
        once = fit(own)
        for factor in factors:
            assert_same(once, fit(factor * own), without=["data.digest"])
    assert_close(fit(ones), fit(2.0 * ones))
    order = np.random.default_rng(seed).permutation(len(y))
    assert_same(once, model(**parameters).fit(X[order], y[order], rough[order]))


def assert_close(a, b):
    """The same terms, with weights that differ in their last digits."""
    name = lambda term: (term.feature, term.cut, term.polarity, term.missing_left)  # noqa: E731
    assert list(map(name, a.ensemble_.terms)) == list(map(name, b.ensemble_.terms))
    for one, other in zip(a.ensemble_.terms, b.ensemble_.terms, strict=True):
        assert one.weight == pytest.approx(other.weight, rel=1e-9, abs=1e-9)
    assert a.certificate_.objective == pytest.approx(b.certificate_.objective, rel=1e-12)


@pytest.mark.parametrize("name", slow(["both", "convex", "paper", "balanced"], "paper"))
def test_threads_order_and_repetition_change_nothing(name):
    X, y = make(30, rows=150)
    assert_nothing_irrelevant_matters(X, y, SETTINGS[name])


@pytest.mark.long
def test_the_defaults_do_not_depend_on_threads_and_order():
    X, y = make(30)
    plain = CardBoostClassifier().fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    assert_same(plain, CardBoostClassifier(n_jobs=7).fit(np.asfortranarray(X[order]), y[order]))


@pytest.mark.long
@pytest.mark.parametrize("name", ["few", "convex", "paper"])
def test_the_scale_of_weights_changes_nothing(name):
    X, y = make(31, rows=120)
    assert_scale_of_weights_does_not_matter(X, y, SETTINGS[name])


@pytest.mark.long
def test_real_values_in_any_order_of_rows():
    rng = np.random.default_rng(32)
    X = rng.normal(size=(200, 5)) * 10.0 ** rng.integers(-3, 4, 5)
    y = (X / np.abs(X).max(axis=0)).sum(axis=1) + 0.3 * rng.normal(size=200) > 0
    for parameters in ({"max_terms": 4}, {"max_terms": None}, {**PAPER, "max_terms": 4}):
        assert_nothing_irrelevant_matters(X, y, {"max_iter": 8, **parameters})


LARGE = {
    "select": {"max_terms": 5, "hot_start": 30, "max_nodes": 100},
    "convex": {"max_terms": None, "max_iter": 40},
    "exponential": {"max_terms": None, "max_iter": 30, "loss": "exponential"},
}


@pytest.fixture
def seen(monkeypatch):
    """Which ways through sketches of the rows were taken."""
    taken = set()
    make_sketch, sketch_rows = RowSketch.make, merge.sketch_rows

    def spy_sketch(*args, **kwargs):
        found = make_sketch(*args, **kwargs)
        if found is not None:
            taken.add("hessian")
        return found

    def spy_merge(problem, *args):
        found = sketch_rows(problem, *args)
        if found is not problem:
            taken.add("search")
        return found

    original = Scout.propose

    def spy_scout(self, *args, **kwargs):
        taken.add("scout")
        return original(self, *args, **kwargs)

    monkeypatch.setattr(RowSketch, "make", staticmethod(spy_sketch))
    monkeypatch.setattr("cardboost.selection.polish.sketch_rows", spy_merge)
    monkeypatch.setattr("cardboost.selection.relaxation.sketch_rows", spy_merge)
    monkeypatch.setattr(Scout, "propose", spy_scout)
    return taken


@pytest.mark.long
@pytest.mark.parametrize("name", ["convex", "exponential"])
def test_large_tables_threads_order_and_repetition_change_nothing(name, seen):
    X, y = make(33, rows=40_000, features=12, levels=60)
    assert_nothing_irrelevant_matters(X, y, LARGE[name])
    assert "hessian" in seen


def test_large_tables_the_scale_of_weights_changes_nothing():
    X, y = make(34, rows=40_000, features=6, levels=60)
    parameters = {"max_terms": None, "max_iter": 20}
    once = model(**parameters).fit(X, y)
    for factor in (0.25, 2.0**60):
        assert_same(once, model(**parameters).fit(X, y, np.full(len(y), factor)), without=["data.digest"])
    doubled = model(**parameters).fit(X, y, np.full(len(y), 2.0))
    assert doubled.certificate_.objective == pytest.approx(once.certificate_.objective, rel=1e-3)


@pytest.mark.long
def test_large_tables_select_from_part_of_the_rows(seen):
    X, y = make(33, rows=40_000, features=12, levels=60)
    assert_nothing_irrelevant_matters(X, y, LARGE["select"])
    assert seen >= {"hessian", "search"}
    assert_sound(model(**LARGE["select"]).fit(X, y), X, y)


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_the_largest_tables_are_scouted(name, seen):
    X, y = make(35, rows=300_000, features=6, levels=100)
    parameters = LARGE[name]
    plain = model(**parameters).fit(X, y)
    assert seen >= {"hessian", "scout"}
    assert_sound(plain, X, y)
    order = np.random.default_rng(0).permutation(len(y))
    assert_same(plain, model(**parameters, n_jobs=2).fit(X[order], y[order]))
    if name != "select":
        assert_nothing_irrelevant_matters(X, y, parameters)


# ---------------------------------------------------------------- what is refused


def test_inputs_are_never_modified():
    X, y = make(40)
    weight = whole_weights(len(y)) + 0.5
    frame = pd.DataFrame(X, columns=list("abcde"))
    held = X.copy(), y.copy(), weight.copy(), frame.copy()
    class_weight = {0: 1.0, 1: 3.0}
    fitted = small(class_weight=class_weight).fit(X, y, weight)
    for method in (fitted.predict, fitted.predict_proba, fitted.decision_function, fitted.contributions):
        method(X)
    fitted.certificate_.verify(X, y, weight)
    small().fit(frame, y, weight).predict(frame)
    assert np.array_equal(X, held[0], equal_nan=True)
    assert np.array_equal(y, held[1])
    assert np.array_equal(weight, held[2])
    pd.testing.assert_frame_equal(frame, held[3])
    assert class_weight == {0: 1.0, 1: 3.0}


def refused(message, *data, error=ValueError, **parameters):
    unfitted = small(**parameters)
    with pytest.raises(error, match=message):
        unfitted.fit(*data)
    assert not hasattr(unfitted, "ensemble_")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", "squared"), ("loss", None), ("loss", 3), ("criterion", "gini"), ("criterion", None),
        ("reselect", "yes"), ("reselect", 1), ("reselect", None), ("hot_start", 0),
        ("selector", "best"), ("selector", ""), ("selector", 1), ("selector", object()),
        ("selector", None), ("max_bins", 1), ("max_bins", 0), ("max_bins", -5), ("max_bins", 256),
        ("max_bins", 3.5), ("max_bins", True), ("max_bins", "255"), ("max_bins", None), ("max_terms", 0),
        ("max_terms", -1), ("max_terms", 2.5), ("max_terms", True), ("max_terms", "10"), ("l0", -1.0),
        ("l0", math.nan), ("l0", math.inf), ("l0", "1"), ("l0", None), ("l1", -1e-9), ("l1", math.nan),
        ("l1", None), ("l1", True), ("l2", -0.1), ("l2", math.inf), ("l2", [0.1]), ("tol", -1e-9),
        ("tol", math.nan), ("tol", None), ("time_limit", -1.0), ("time_limit", 0), ("time_limit", math.nan),
        ("time_limit", "1"), ("max_weight", -1.0), ("max_weight", 0), ("max_weight", math.nan),
        ("max_weight", "1"), ("max_iter", 0), ("max_iter", 1.5), ("max_iter", None), ("hot_start", -1),
        ("hot_start", 1.5), ("hot_start", None), ("max_nodes", -1), ("max_nodes", 1.5), ("bits", 0),
        ("bits", 1.5), ("bits", "many"), ("n_jobs", 0), ("n_jobs", 1.5), ("n_jobs", "2"),
        ("class_weight", "even"), ("class_weight", [1, 2]), ("class_weight", {0: -1.0}),
        ("class_weight", {0: math.nan}), ("class_weight", {0: 0.0}), ("class_weight", {7: 1.0}),
        ("class_weight", {"no": 1.0}),
    ],
)  # fmt: skip
def test_parameters_out_of_range(name, value):
    X, y = make(41, rows=60)
    refused(name, X, y, **{name: value})


def test_labels_that_are_refused():
    X, y = make(42, rows=60)
    holes = y.astype(float)
    holes[3] = np.nan
    refused("y contains NaN", X, holes)
    refused("y contains NaN", X, np.where(np.arange(60) == 3, None, y.astype(object)))
    words = [math.nan if i == 3 else str(label) for i, label in enumerate(y)]
    refused("y contains NaN", X, np.array(words, dtype=object))
    refused("y", X, words)
    refused("y contains NaN", X, pd.Series(y).astype("Int64").where(np.arange(60) != 3))
    refused("y contains NaN", X, pd.Series(y.astype(str)).where(np.arange(60) != 3))
    refused("y contains NaN", X, pl.Series([None if i == 3 else int(label) for i, label in enumerate(y)]))
    refused("infinity", X, np.where(np.arange(60) == 3, np.inf, y.astype(float)))
    refused("class", X, np.ones(60))
    refused("class", X, ["yes"] * 60)
    refused("continuous", X, np.linspace(0, 1, 60))
    refused("samples|rows|length", X, y[:-1])
    refused("samples|rows|length", X, np.append(y, 1))
    refused("y", X, np.stack([y, y], axis=1))
    refused("y", X, 1)
    refused("y", X, None)
    refused("y", X, [])


def test_labels_that_differ_in_type_are_refused():
    X, y = make(42, rows=60)
    for mixed in ([1 if label else "no" for label in y], [None if label else 1 for label in y]):
        with pytest.raises((ValueError, TypeError), match=r"\by\b|label"):
            small().fit(X, np.array(mixed, dtype=object))


def test_weights_that_are_refused():
    X, y = make(43, rows=60)
    one = np.ones(60)
    refused("sample_weight.*negative", X, y, np.where(np.arange(60) == 3, -1.0, one))
    refused("sample_weight.*NaN", X, y, np.where(np.arange(60) == 3, np.nan, one))
    refused("sample_weight.*infinity", X, y, np.where(np.arange(60) == 3, np.inf, one))
    refused("sample_weight.*zero", X, y, np.zeros(60))
    refused("only one class", X, y, y.astype(float))
    refused("only one class", X, y, 1.0 - y)
    refused("sample_weight.*shape", X, y, one[:-1])
    refused("sample_weight.*shape", X, y, np.ones((60, 1)))
    refused("sample_weight.*shape", X, y, np.ones((1, 60)))
    refused("sample_weight", X, y, ["heavy"] * 60, error=(ValueError, TypeError))
    refused("sample_weight", X, y, -1.0)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused_by_name(value):
    X, y = make(44, rows=100)
    broken = X.copy()
    broken[7, 3] = value
    names = ["a", "b", "c", "the fourth", "e"]
    refused("infinity in column 3", broken, y)
    refused("infinity in column 'the fourth'", pd.DataFrame(broken, columns=names), y)
    refused("infinity in column 'the fourth'", pl.DataFrame(broken, schema=names), y)
    refused("infinity in column 3", broken.astype(np.float32), y)
    fitted = small(max_terms=1).fit(X, y)
    used = fitted.ensemble_.features_used
    assert len(used) < X.shape[1]
    for method in (fitted.predict, fitted.predict_proba, fitted.decision_function, fitted.contributions):
        for j in range(X.shape[1]):
            broken = X.copy()
            broken[-1, j] = value
            with pytest.raises(ValueError, match=f"infinity in column {j}"):
                method(broken)


def test_tables_that_are_refused():
    X, y = make(45, rows=60)
    full = np.nan_to_num(X)
    for sparse in (scipy.sparse.csr_matrix(full), scipy.sparse.csc_array(full)):
        refused("[Ss]parse", sparse, y, error=TypeError)
    words = np.array([["x", "y"]] * 60)
    refused("X", words, y, categorical_features=None)
    refused("X", words.astype(object), y, categorical_features=None)
    refused("X.*2|two", X[:, 0], y)
    refused("X.*2|two", X[None], y)
    refused("X", 3.0, y)
    refused("X", None, y)
    refused("0 feature", np.empty((60, 0)), y)
    refused("0 sample", np.empty((0, 3)), np.empty(0))
    refused("0 sample", pd.DataFrame({"a": []}), [])
    refused("Complex", X + 1j, y)
    text = pd.DataFrame({"a": X[:, 0], "b": ["text"] * 60})
    refused("column 'b'", text, y, categorical_features=None)
    refused("column 'b'", text.astype({"b": "category"}), y, categorical_features=None)
    refused("column 'b'", pd.DataFrame({"a": X[:, 0], "b": pd.date_range("2020-01-01", periods=60)}), y)
    refused("column 'b'", pl.DataFrame({"a": X[:, 0], "b": ["text"] * 60}), y, categorical_features=None)
    twice = pd.DataFrame(X[:, :2], columns=["a", "a"])
    refused("'a'", twice, y)
    refused("X", [[1.0, 2.0]] * 59 + [[1.0]], y)


def test_tables_that_differ_from_the_fit_are_refused():
    X, y = make(46, rows=100)
    frame = pd.DataFrame(X, columns=list("abcde"))
    named, plain = small().fit(frame, y), small().fit(X, y)
    for fitted in (named, plain):
        for method in (fitted.predict, fitted.predict_proba, fitted.decision_function, fitted.contributions):
            with pytest.raises(ValueError, match=r"4 features.*5 features"):
                method(X[:, :4])
            with pytest.raises(ValueError, match=r"6 features.*5 features"):
                method(np.column_stack([X, X[:, 0]]))
            with pytest.raises(ValueError, match=r"X.*2D"):
                method(X[0])
    for table in (frame, pl.from_pandas(frame)):
        with pytest.raises(ValueError, match=r"feature names.*missing: c"):
            named.predict(table[["a", "b", "d", "e"]])
        with pytest.raises(ValueError, match=r"feature names.*another order"):
            named.predict(table[["b", "a", "c", "d", "e"]])
    with pytest.raises(ValueError, match=r"feature names.*not seen at fit: f"):
        named.predict(frame.assign(f=1.0))
    with pytest.raises(ValueError, match=r"feature names.*missing: a.*not seen at fit: A"):
        named.predict(frame.rename(columns={"a": "A"}))
    with pytest.raises(ValueError, match="sample"):
        named.predict(frame.iloc[:0])


def test_nothing_works_before_the_fit():
    X, _ = make(47, rows=20)
    unfitted = CardBoostClassifier()
    methods = ("predict", "predict_proba", "predict_log_proba", "decision_function", "contributions")
    for name in methods:
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(unfitted, name)(X)
    with pytest.raises(NotFittedError):
        unfitted.save("nowhere.json")
    with pytest.raises(NotFittedError):
        unfitted.card()


# ---------------------------------------------------------------- awkward data

AWKWARD = {
    "logistic": {"max_iter": 6},
    "free": {"l1": 0.0, "l2": 0.0, "max_iter": 6, "max_nodes": 100},
    "free edge": {
        "l1": 0.0,
        "l2": 0.0,
        "loss": "exponential",
        "criterion": "edge",
        "fit_intercept": False,
        "max_iter": 6,
        "max_nodes": 100,
    },
    "exponential convex": {"max_terms": None, "max_iter": 20, "loss": "exponential"},
    "free convex": {"max_terms": None, "max_iter": 20, "l1": 0.0, "l2": 0.0},
    "free convex exponential": {
        "max_terms": None,
        "max_iter": 20,
        "l1": 0.0,
        "l2": 0.0,
        "loss": "exponential",
    },
}


@pytest.mark.parametrize("name", slow(AWKWARD, "free", "free edge", "free convex", "free convex exponential"))
class TestAwkward:
    def fit(self, name, X, y, weight=None):
        fitted = small(**AWKWARD[name]).fit(X, y, weight)
        assert_sound(fitted, X, y, weight)
        return fitted

    def test_separable(self, name):
        X = np.arange(40.0)[:, None]
        y = (X[:, 0] > 17).astype(int)
        fitted = self.fit(name, X, y)
        assert fitted.score(X, y) == 1.0
        assert fitted.certificate_.objective < fitted.certificate_.null_objective

    def test_separable_by_many(self, name):
        X, _ = make(50, rows=60, features=8)
        y = (np.nan_to_num(X[:, :3]).sum(axis=1) > 55).astype(int)
        assert self.fit(name, X, y).score(X, y) > 0.8

    def test_constant_and_missing_columns(self, name):
        X, y = make(51, rows=120)
        wide = np.column_stack([np.full(120, 3.0), X, np.full(120, np.nan), np.zeros(120)])
        fitted = self.fit(name, wide, y)
        assert set(fitted.ensemble_.features_used) <= set(range(1, 6))
        alone = small(**AWKWARD[name]).fit(X, y)
        assert [t.weight for t in alone.ensemble_.terms] == [t.weight for t in fitted.ensemble_.terms]

    def test_nothing_but_constants(self, name):
        X = np.column_stack([np.full(30, 3.0), np.full(30, np.nan)])
        y = (np.arange(30) < 12).astype(int)
        fitted = self.fit(name, X, y)
        assert fitted.ensemble_.n_terms == 0
        assert fitted.certificate_.guarantee == 1.0
        if fitted.fit_intercept:
            assert fitted.predict_proba(X)[0, 1] == pytest.approx(0.4, abs=1e-4)

    def test_duplicated_columns(self, name):
        X, y = make(52, rows=120)
        fitted = self.fit(name, np.column_stack([X, X, -X]), y)
        alone = small(**AWKWARD[name]).fit(X, y)
        assert fitted.certificate_.objective == pytest.approx(alone.certificate_.objective, rel=0.1)

    def test_duplicated_rows(self, name):
        X, y = make(53, rows=40)
        once = self.fit(name, X, y)
        thrice = self.fit(name, np.tile(X, (3, 1)), np.tile(y, 3))
        if AWKWARD[name].get("l2", 1.0):
            assert np.allclose(thrice.decision_function(X), once.decision_function(X), rtol=1e-3, atol=1e-3)

    def test_the_same_row_with_both_labels(self, name):
        X, y = np.ones((20, 2)), np.arange(20) % 2
        fitted = self.fit(name, X, y)
        assert fitted.ensemble_.n_terms == 0

    def test_extreme_weights(self, name):
        X, y = make(54, rows=100)
        plain = small(**AWKWARD[name]).fit(X, y)
        for size in (1e300, 1e-300):
            fitted = self.fit(name, X, y, np.full(100, size))
            assert np.allclose(fitted.decision_function(X), plain.decision_function(X), rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize("size", [1e300, 1e-300, 1e16])
    def test_one_row_weighs_more_or_less_than_all_others(self, name, size):
        X, y = make(55, rows=100)
        weight = np.ones(100)
        weight[5] = size
        self.fit(name, X, y, weight)

    def test_weights_from_one_end_of_the_range_to_the_other(self, name):
        X, y = make(56, rows=100)
        self.fit(name, X, y, 10.0 ** np.linspace(-300, 300, 100))

    def test_two_rows(self, name):
        X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
        fitted = self.fit(name, X, y)
        assert fitted.predict(X).tolist() == [0, 1]
        assert [term.cut for term in fitted.ensemble_.terms] == [0.0]

    def test_two_rows_that_are_equal(self, name):
        self.fit(name, np.array([[1.0], [1.0]]), np.array([0, 1]))

    def test_one_feature(self, name):
        X, y = make(57, features=1)
        self.fit(name, X, y)

    def test_missing_in_one_class_only(self, name):
        rng = np.random.default_rng(58)
        X = rng.integers(0, 5, (100, 2)).astype(float)
        y = (np.arange(100) < 40).astype(int)
        X[y > 0, 1] = np.where(rng.random(40) < 0.8, np.nan, X[y > 0, 1])
        fitted = self.fit(name, X, y)
        assert fitted.score(X, y) > 0.8
        assert 1 in fitted.ensemble_.features_used

    def test_only_missing_tells_the_classes_apart(self, name):
        X = np.full((30, 1), 2.5)
        X[:10] = np.nan
        y = (np.arange(30) < 10).astype(int)
        fitted = self.fit(name, X, y)
        assert fitted.score(X, y) == 1.0
        assert [term.cut for term in fitted.ensemble_.terms] == [math.inf]

    def test_extreme_values(self, name):
        values = [-1.7e308, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1e-310, 2.3e-308, 1.0, 1e308, 1.7e308]
        X = np.array(values * 4)[:, None]
        y = (X[:, 0] > 0).astype(int)
        y[3] = 1 - y[3]
        fitted = self.fit(name, X, y)
        assert fitted.score(X, y) > 0.9

    def test_neighbouring_values(self, name):
        base = 1.0
        values = [base]
        for _ in range(3):
            values.append(np.nextafter(values[-1], 2.0))
        X = np.array(values * 6)[:, None]
        y = (X[:, 0] > values[1]).astype(int)
        assert self.fit(name, X, y).score(X, y) == 1.0

    def test_very_unequal_classes(self, name):
        X, _ = make(59, rows=500)
        y = np.zeros(500, dtype=int)
        y[7] = 1
        self.fit(name, X, y)


@pytest.mark.parametrize("size", [1e308, 5e-324])
def test_weights_at_the_end_of_the_range(size):
    X, y = make(54, rows=100)
    weight = np.full(100, size)
    fitted = small().fit(X, y, weight)
    assert_sound(fitted, X, y, weight)
    assert_same(fitted, small().fit(X, y), without=["data.digest"])


def test_balanced_weights_survive_extremes():
    X, y = make(60, rows=100)
    for size in (1e300, 1e308, 1e-300):
        weight = np.full(100, size)
        fitted = small(class_weight="balanced").fit(X, y, weight)
        assert_sound(fitted, X, y, weight)


def test_class_weights_are_row_weights():
    X, y = make(61)
    given = small(class_weight={0: 1.0, 1: 3.0}).fit(X, y)
    weighted = small().fit(X, y, np.where(y > 0, 3.0, 1.0))
    assert np.allclose(given.decision_function(X), weighted.decision_function(X), atol=1e-6)
    assert given.certificate_.objective == pytest.approx(weighted.certificate_.objective, rel=1e-9)
    balanced = small(class_weight="balanced").fit(X, y)
    share = np.where(y > 0, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    assert balanced.certificate_.content["problem"]["class_weight"] == pytest.approx(
        [0.5 / (1 - y.mean()), 0.5 / y.mean()]
    )
    assert np.allclose(
        balanced.decision_function(X), small().fit(X, y, share).decision_function(X), atol=1e-6
    )
    assert_sound(given, X, y)
    assert_sound(balanced, X, y)


# ---------------------------------------------------------------- with scikit-learn


def test_tools_of_scikit_learn():
    X, y = make(70, rows=200)
    quick = small(max_terms=3, max_iter=6)
    assert cross_val_score(quick, X, y, cv=3).min() > 0.7
    assert cross_val_score(quick, X, y, cv=3, scoring="roc_auc").min() > 0.8
    assert cross_val_score(quick, X, y, cv=3, scoring="neg_log_loss").min() > -0.7
    search = GridSearchCV(quick, {"max_terms": [1, 3], "loss": ["logistic", "exponential"]}, cv=3).fit(X, y)
    assert search.best_params_["max_terms"] == 3
    pipe = make_pipeline(SimpleImputer(), quick).fit(X, y)
    assert pipe.score(X, y) > 0.8
    calibrated = CalibratedClassifierCV(quick, cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.7
    assert calibrated.predict_proba(X).shape == (200, 2)


def test_pipelines_hand_frames_on():
    X, y = make(71, rows=150)
    frame = pd.DataFrame(X, columns=list("abcde"))
    pipe = make_pipeline(SimpleImputer().set_output(transform="pandas"), small()).fit(frame, y)
    assert pipe[-1].feature_names_in_.tolist() == list("abcde")
    assert pipe.score(frame, y) > 0.7


def test_pickles():
    X, y = make(72)
    for parameters in (SETTINGS["few"], SETTINGS["convex"]):
        fitted = model(**parameters).fit(X, y)
        back = pickle.loads(pickle.dumps(fitted))
        assert_same(back, fitted)
        assert np.array_equal(back.decision_function(X), fitted.decision_function(X))
        assert back.certificate_.verify(X, y)
        assert tuple(back.trace_) == tuple(fitted.trace_)
        assert_same(copy.deepcopy(fitted), fitted)


def test_representation():
    X, y = make(72, rows=60)
    fitted = small().fit(X, y)
    assert repr(fitted) == "CardBoostClassifier(l2=0.01, max_iter=8, max_terms=4, n_jobs=1)"
    assert "CardBoostClassifier" in fitted._repr_html_()
    assert "guarantee" in repr(fitted.certificate_)


@pytest.mark.long
@parametrize_with_checks([CardBoostClassifier(max_terms=3, max_iter=8, n_jobs=1)])
def test_scikit_learns_checks(estimator, check, monkeypatch):
    # without it the check of array API dispatch, here on NumPy's arrays, is skipped
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with warnings.catch_warnings():
        # the checks themselves fit on a column of labels and warn about what they skip
        warnings.simplefilter("default")
        check(estimator)


def test_a_limit_on_terms_may_be_beyond_reach():
    X, y = np.array([[0.0], [1.0], [2.0]]), [0, 1, 1]
    model = CardBoostClassifier(max_terms=2**31 - 1).fit(X, y)
    assert model.certificate_.verify(X, y)
    assert model.predict(X).tolist() == y


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "estimator", [CardBoostClassifier, CardBoostRegressor, StagewiseClassifier, StagewiseRegressor]
)
def test_infinity_is_refused_in_rows_that_are_held_out(estimator, seed):
    X, y = np.random.default_rng(seed).normal(size=(20, 1)), np.arange(20) % 2
    X[1] = np.inf
    with pytest.raises(ValueError, match="X contains infinity in column 0"):
        estimator(validation_fraction=0.5, random_state=seed).fit(X, y)
    with pytest.raises(ValueError, match="X contains infinity in column 0"):
        estimator().fit(X, y, sample_weight=np.arange(20) != 1)

"""SoftMarginClassifier: what it fits, what it proves, and what it says to bad input."""

from __future__ import annotations

import itertools
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cardboost import SoftMarginClassifier, load_model
from cardboost.cli.main import main
from cardboost.solvers import minimize_on_simplex
from marks import first


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True, as_frame=True)


def mixed(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue", "grey"], rows)
    size = np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows))
    y = (colour == "red") * 1.5 + np.nan_to_num(size) + 0.8 * rng.normal(size=rows) > 0.5
    return pd.DataFrame({"colour": pd.Categorical(colour), "size": size}), np.where(y, "yes", "no")


def total(model):
    return sum(abs(term.weight) for term in model.ensemble_.terms) + abs(model.ensemble_.intercept)


# ------------------------------------------------------------------------------------ what is fitted


@pytest.mark.parametrize("temperature", [2.0, 0.5, 0.1])
def test_weights_add_up_to_the_inverse_temperature(cancer, temperature):
    X, y = cancer
    model = SoftMarginClassifier(temperature=temperature, n_jobs=1).fit(X, y)
    assert total(model) == pytest.approx(1 / temperature, rel=1e-12)
    assert model.temperature_ == temperature
    assert model.certificate_.gap <= 1e-6
    assert model.certificate_.scope == "dictionary"
    assert model.certificate_.verify(X, y)
    assert model.trace_.status == "optimal"


def test_it_is_the_optimum_over_the_explicit_matrix():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)).round(1)
    y = X[:, 0] + rng.normal(size=60) > 0
    model = SoftMarginClassifier(temperature=0.3, n_jobs=1, tol=1e-10).fit(X, y)
    sign = np.where(y, 1, -1)
    columns = [sign, -sign]
    for f in range(3):
        for cut in np.unique(X[:, f])[:-1]:
            h = sign * np.where(X[:, f] <= cut, 1, -1)
            columns += [h, -h]
    found = minimize_on_simplex(np.array(columns).T, 1 / 0.3, tol=1e-10)
    assert model.certificate_.objective == pytest.approx(found.fun - math.log(60), abs=1e-9)


@pytest.mark.parametrize("intercept", first(1, [True, False]))
def test_both_methods_end_at_the_same_model(intercept):
    X, y = mixed()
    newton, mprp = (
        SoftMarginClassifier(temperature=0.5, method=method, fit_intercept=intercept, tol=1e-8, n_jobs=1).fit(
            X, y
        )
        for method in ("newton", "mprp")
    )
    assert mprp.trace_.status == "optimal"
    assert mprp.certificate_.verify(X, y)
    assert mprp.certificate_.objective == pytest.approx(newton.certificate_.objective, abs=2e-8)
    np.testing.assert_allclose(mprp.decision_function(X), newton.decision_function(X), atol=1e-2)
    objectives = [record.objective for record in mprp.trace_]
    assert all(b <= a for a, b in itertools.pairwise(objectives))
    stages = list(mprp.staged_decision_function(X))
    assert 2 <= len(stages) <= 201
    np.testing.assert_array_equal(stages[-1], mprp.decision_function(X))
    few = SoftMarginClassifier(temperature=0.5, method="mprp", max_iter=3, n_jobs=1).fit(X, y)
    assert few.trace_.status == "iteration limit"


def test_few_terms_at_high_temperature(cancer):
    X, y = cancer
    terms = [SoftMarginClassifier(temperature=T, n_jobs=1).fit(X, y).ensemble_.n_terms for T in (5, 0.5, 0.1)]
    assert terms == sorted(terms)
    assert terms[0] < terms[-1]


@pytest.mark.parametrize("slack", [0.005, 0.05])
def test_slack_buys_fewer_terms(cancer, slack):
    X, y = cancer
    exact = SoftMarginClassifier(temperature=0.2, n_jobs=1).fit(X, y)
    model = SoftMarginClassifier(temperature=0.2, slack=slack, n_jobs=1).fit(X, y)
    own, best = model.certificate_, exact.certificate_
    assert model.ensemble_.n_terms < 0.75 * exact.ensemble_.n_terms
    assert own.lower_bound == pytest.approx(best.lower_bound, abs=1e-6)
    assert best.objective < own.objective
    assert own.guarantee >= 1.0 - slack - 1e-4
    assert own.verify(X, y)
    assert total(model) == pytest.approx(5.0, rel=1e-9)


def test_low_temperature_on_separable_rows_stays_finite(cancer):
    X, y = cancer
    model = SoftMarginClassifier(temperature=1e-3, n_jobs=1).fit(X, y)
    assert model.score(X, y) == 1.0
    assert np.isfinite(model.decision_function(X)).all()
    assert math.isfinite(model.certificate_.gap)
    assert model.certificate_.verify(X, y)


def test_weight_2_is_the_row_twice(cancer):
    X, y = cancer
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    once = SoftMarginClassifier(temperature=0.5, n_jobs=1).fit(X, y, weight)
    again = np.repeat(np.arange(len(y)), weight)
    twice = SoftMarginClassifier(temperature=0.5, n_jobs=1).fit(X.iloc[again], y.iloc[again])
    np.testing.assert_array_equal(once.decision_function(X), twice.decision_function(X))
    assert once.certificate_.verify(X, y, weight)


def test_rows_without_weight_do_not_count(cancer):
    X, y = cancer
    weight = np.r_[np.zeros(100), np.ones(len(y) - 100)]
    once = SoftMarginClassifier(temperature=0.5, n_jobs=1).fit(X, y, weight)
    other = SoftMarginClassifier(temperature=0.5, n_jobs=1).fit(X.iloc[100:], y.iloc[100:])
    np.testing.assert_array_equal(once.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("temperature", [0.2, "cv"])
def test_threads_change_nothing(cancer, temperature):
    X, y = cancer
    one, two = (
        SoftMarginClassifier(temperature=temperature, temperatures=[1, 0.2], cv=3, n_jobs=n).fit(X, y)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    assert one.certificate_.to_dict() == two.certificate_.to_dict()


def test_class_weights(cancer):
    X, y = cancer
    plain = SoftMarginClassifier(temperature=2.0, n_jobs=1).fit(X, y)
    heavy = SoftMarginClassifier(temperature=2.0, n_jobs=1, class_weight={0: 20.0}).fit(X, y)
    assert (heavy.predict(X) == 0).sum() > (plain.predict(X) == 0).sum()
    assert heavy.certificate_.verify(X, y)
    balanced = SoftMarginClassifier(temperature=0.5, class_weight="balanced", n_jobs=1).fit(X, y)
    assert balanced.certificate_.verify(X, y)


def test_categories_and_missing_values():
    X, y = mixed()
    model = SoftMarginClassifier(temperature=0.5, n_jobs=1).fit(X, y)
    assert model.certificate_.verify(X, y)
    assert model.score(X, y) > 0.75
    assert {term.feature for term in model.ensemble_.terms} == {0, 1}
    assert list(model.classes_) == ["no", "yes"]
    unseen = pd.DataFrame({"colour": ["violet", None], "size": [np.nan, 1e300]})
    assert np.isfinite(model.predict_proba(unseen)).all()


@pytest.mark.parametrize("method", ["newton", "mprp"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", first(1, [1, 6, 11]))
def test_categories_with_missing_values(method, intercept, seed):
    rng = np.random.default_rng(seed)
    colour = rng.choice(np.array(["red", "green", "blue", "grey", None], dtype=object), 60)
    X = pd.DataFrame({"colour": colour, "size": rng.normal(size=60)})
    absent = X["colour"].isna().to_numpy()
    y = ((X["colour"] == "red") | (X["size"] > 0) | absent).to_numpy() ^ (rng.random(60) < 0.1)
    model = SoftMarginClassifier(method=method, fit_intercept=intercept, n_jobs=1).fit(X, y)
    assert model.certificate_.scope == "dictionary"
    assert model.certificate_.verify(X, y)
    assert (model.predict(X)[absent] == y[absent]).mean() > 0.7


def test_several_classes():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = SoftMarginClassifier(temperature=0.5, n_jobs=1).fit(X, y)
    assert model.score(X, y) > 0.95
    assert len(model.certificate_) == 3
    for k, own in enumerate(model.certificate_):
        assert own.gap <= 1e-6
        assert own.verify(X, y == k)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    chosen = SoftMarginClassifier(temperature="cv", cv=3, temperatures=[4, 1, 0.25], n_jobs=1).fit(X, y)
    assert chosen.temperature_ in (4, 1, 0.25)
    assert chosen.cv_results_["mean_error"].shape == (3,)


def test_monotonic_constraints(cancer):
    X, y = cancer
    few = X[["mean radius", "mean texture"]]
    model = SoftMarginClassifier(temperature=0.3, monotonic_cst={"mean radius": -1}, n_jobs=1).fit(few, y)
    grid = pd.DataFrame({"mean radius": np.linspace(5, 30, 200), "mean texture": 18.0})
    assert (np.diff(model.decision_function(grid)) <= 1e-12).all()
    assert model.certificate_.verify(few, y)


def test_without_an_intercept(cancer):
    X, y = cancer
    model = SoftMarginClassifier(temperature=0.5, fit_intercept=False, n_jobs=1).fit(X, y)
    assert model.ensemble_.intercept == 0.0
    assert model.certificate_.verify(X, y)


def test_columns_that_say_nothing():
    X, y = np.ones((10, 2)), np.arange(10) < 7
    model = SoftMarginClassifier(n_jobs=1).fit(X, y)
    assert model.ensemble_.n_terms == 0
    assert model.ensemble_.intercept == pytest.approx(0.5 * math.log(7 / 3), abs=1e-3)
    assert model.certificate_.verify(X, y)
    with pytest.raises(ValueError, match="no column that tells rows apart"):
        SoftMarginClassifier(n_jobs=1, fit_intercept=False).fit(X, y)


def test_stages_end_at_the_model(cancer):
    X, y = cancer
    model = SoftMarginClassifier(temperature=0.2, n_jobs=1).fit(X, y)
    stages = list(model.staged_decision_function(X))
    assert len(stages) == len(model.trace_) + 1
    np.testing.assert_array_equal(stages[-1], model.decision_function(X))
    objectives = [record.objective for record in model.trace_]
    assert all(b <= a + 1e-12 for a, b in itertools.pairwise(objectives))
    share = np.full(len(y), 1 / len(y))
    F = np.where(y == 1, 1, -1) * stages[0]
    assert np.log(share @ np.exp(-F)) == pytest.approx(objectives[0], abs=1e-12)


def test_saved_and_loaded(cancer, tmp_path):
    X, y = cancer
    model = SoftMarginClassifier(temperature=0.5, n_jobs=1).fit(X, y)
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    content = json.loads((tmp_path / "model.json").read_text())
    assert content["certificate"]["problem"]["loss"] == "soft margin"
    assert "int" in str(model.export("c"))
    X.assign(target=y).to_csv(tmp_path / "rows.csv", index=False)
    given = ["certify", str(tmp_path / "model.json"), str(tmp_path / "rows.csv"), "--target", "target"]
    assert main(given) == 0
    assert "any model with weights that add up to 2 of that scope" in " ".join(model.card().split())


def test_a_warm_start_needs_fewer_rounds(cancer):
    X, y = cancer
    model = SoftMarginClassifier(temperature=0.11, n_jobs=1, warm_start=True).fit(X, y)
    model.set_params(temperature=0.1).fit(X, y)
    cold = SoftMarginClassifier(temperature=0.1, n_jobs=1).fit(X, y)
    assert model.n_iter_ < cold.n_iter_
    assert model.certificate_.objective == pytest.approx(cold.certificate_.objective, abs=2e-6)
    with pytest.raises(ValueError, match="warm_start: the classes are"):
        model.fit(X, np.where(y == 1, "a", "b"))


# ------------------------------------------------------------------------------------ the temperature


def test_a_temperature_by_cross_validation(cancer):
    X, y = cancer
    X = X.iloc[:, :8]
    model = SoftMarginClassifier(temperature="cv", cv=3, temperatures=[0.1, 2, 0.5], n_jobs=1).fit(X, y)
    results = model.cv_results_
    assert results["temperature"].tolist() == [2, 0.5, 0.1]
    assert results["errors"].shape == (3, 3)
    assert model.temperature_ in (2, 0.5, 0.1)
    assert model.certificate_.verify(X, y)
    assert 0.998 - 1e-4 <= model.certificate_.guarantee < 1.0  # fewer terms for a share of 0.002
    again = SoftMarginClassifier(temperature=model.temperature_, slack=0.002, n_jobs=1).fit(X, y)
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-3)
    assert not hasattr(model.set_params(temperature=1.0).fit(X, y), "cv_results_")


def test_folds_are_what_the_user_gives(cancer):
    X, y = cancer
    X = X.iloc[:, :4]
    folds = KFold(4, shuffle=True, random_state=3)
    made = [
        SoftMarginClassifier(temperature="cv", cv=cv, temperatures=[1, 0.3], n_jobs=1).fit(X, y).cv_results_
        for cv in (folds, list(folds.split(X)))
    ]
    assert made[0]["errors"].shape == (4, 2)
    np.testing.assert_array_equal(made[0]["errors"], made[1]["errors"])
    # one fold by hand
    kept, held = next(folds.split(X))
    own = SoftMarginClassifier(temperature=1.0, n_jobs=1).fit(X.iloc[kept], y.iloc[kept])
    error = np.mean(own.predict(X.iloc[held]) != y.iloc[held])
    assert made[0]["errors"][0, 0] == pytest.approx(error, abs=0.02)


def test_a_seed_decides_the_folds(cancer):
    X, y = cancer
    X = X.iloc[:, :3]
    tables = [
        SoftMarginClassifier(temperature="cv", cv=3, temperatures=[1, 0.2], random_state=s, n_jobs=1)
        .fit(X, y)
        .cv_results_["errors"]
        for s in (None, None, 0, 1)
    ]
    np.testing.assert_array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[2], tables[3])


# ------------------------------------------------------------------------------------ other learners


def test_learners_of_scikit_learn(cancer):
    X, y = cancer
    model = SoftMarginClassifier(
        temperature=0.5, dictionary=DecisionTreeClassifier(max_depth=2), max_iter=15, n_jobs=1
    ).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.certificate_.scope == "pool"
    assert model.certificate_.verify(X, y)
    assert model.n_iter_ <= 15


def test_a_list_of_fitted_learners_is_covered_as_a_whole(cancer):
    X, y = cancer
    learners = [
        DecisionTreeClassifier(max_depth=1, max_features=1, random_state=k).fit(X, y) for k in range(9)
    ]
    model = SoftMarginClassifier(temperature=0.5, dictionary=learners, n_jobs=1).fit(X, y)
    columns = [np.where(own.predict(X) == y, 1.0, -1.0) for own in learners]
    columns += [np.where(y == 1, 1.0, -1.0), np.where(y == 1, -1.0, 1.0)]
    best = minimize_on_simplex(np.array(columns).T, 2.0)
    assert model.certificate_.objective == pytest.approx(best.fun - math.log(len(y)), abs=1e-6)
    assert model.certificate_.gap <= 1e-6
    assert model.certificate_.verify(X, y)


def test_stumps_and_learners_together(cancer):
    X, y = cancer
    model = SoftMarginClassifier(
        temperature=0.5, dictionary=["stumps", GaussianNB()], max_iter=8, n_jobs=1
    ).fit(X, y)
    assert model.certificate_.verify(X, y)
    assert model.score(X, y) > 0.95


# ------------------------------------------------------------------------------------ limits and bad input


def test_max_iter_ends_the_fit_with_the_best_point(cancer):
    X, y = cancer
    model = SoftMarginClassifier(max_iter=2, n_jobs=1).fit(X, y)
    assert model.trace_.status == "iteration limit"
    assert len(model.trace_) == 2
    assert model.certificate_.gap > 1e-6
    assert model.certificate_.verify(X, y)


def test_a_time_limit_is_kept(work_clock):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 30))
    y = X[:, :10].sum(axis=1) + rng.normal(size=20_000) > 0
    model = SoftMarginClassifier(temperature=0.002, tol=0.0, time_limit=0.5, n_jobs=1).fit(X, y)
    assert work_clock.seconds <= 1.1 * 0.5 + 0.5
    assert model.trace_.status == "time limit"
    assert np.isfinite(model.decision_function(X[:5])).all()


def test_a_callback_sees_every_round_and_may_stop(cancer, capsys):
    X, y = cancer
    seen = []
    model = SoftMarginClassifier(n_jobs=1, verbose=1)
    model.fit(X, y, callback=lambda record: seen.append(record) or len(seen) == 3)
    assert len(seen) == 3
    assert model.trace_.status == "stopped"
    assert capsys.readouterr().out.count("[cardboost]") == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be a number above 0"),
        ({"temperature": -1.0}, "temperature must be a number above 0"),
        ({"temperature": math.nan}, "temperature must be a number above 0"),
        ({"temperature": "warm"}, "temperature must be a number above 0 or 'cv'"),
        ({"temperature": 1e-320}, "is too small"),
        ({"method": "simplex"}, "method must be 'newton' or 'mprp'"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"slack": 1.0}, "slack must be below 1"),
        ({"slack": "some"}, "slack must be a number of at least 0"),
        ({"slack": -0.1}, "slack must be a number of at least 0"),
        ({"slack": 0.1, "dictionary": GaussianNB()}, "slack is for stumps only"),
        ({"time_limit": 0.0}, "time_limit must be"),
        ({"dictionary": "trees"}, "dictionary: 'trees' is not known"),
        ({"warm_start": "yes"}, "warm_start must be True or False"),
        ({"temperature": "cv", "cv": 1}, "cv must be a whole number of at least 2"),
        (
            {"temperature": "cv", "cv": 400},
            "cv=400: no class has so many rows of positive weight; the largest has 357",
        ),
        ({"temperature": "cv", "temperatures": []}, "temperatures must have at least one entry"),
        ({"temperature": "cv", "temperatures": [1, -1]}, "temperatures must be a number above"),
        ({"temperature": "cv", "temperatures": 3}, "temperatures must be a sequence"),
        ({"temperature": "cv", "dictionary": GaussianNB()}, "temperature='cv' is for stumps only"),
        ({"method": "mprp", "dictionary": GaussianNB()}, "method is for stumps only"),
        ({"class_weight": "heavy"}, "class_weight must be"),
        ({"monotonic_cst": [1]}, "monotonic_cst has 1 entries"),
    ],
)
def test_bad_arguments(cancer, options, message):
    X, y = cancer
    with pytest.raises(ValueError, match=re.escape(message)):
        SoftMarginClassifier(n_jobs=1, **options).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.empty((0, 2)), [], "0 sample|no rows|at least one row"),
        ([[1.0], [2.0]], [1, 1], "only one class"),
        ([[1.0], [np.inf]], [0, 1], "infinity"),
        ([[1.0], [2.0]], [0, 1, 1], "inconsistent"),
        ([[1.0], [2.0]], None, "y"),
    ],
)
def test_bad_rows(X, y, message):
    with pytest.raises(ValueError, match=message):
        SoftMarginClassifier(n_jobs=1).fit(X, y)

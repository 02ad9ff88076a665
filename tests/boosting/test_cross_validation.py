"""Regularisation by cross-validation inside a fit: which rows are where, and what follows from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier

from cardboost import CardBoostClassifier, CardBoostRegressor, load_model, pareto_front
from cardboost.boosting.cross_validation import (
    AUTO_SIZES,
    FIXED_L2,
    FIXED_SIZE,
    L2_GRID,
    N_FOLDS,
    deal_rows,
    smallest_within_error,
)

CHOSEN = "chosen by cross-validation"


def table(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A noisy table of few columns with rows that occur several times."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4)).round(1)
    y = (random.random(n) < 1 / (1 + np.exp(-2 * X[:, 0] + X[:, 1]))).astype(int)
    return np.vstack([X, X[: n // 6]]), np.append(y, y[: n // 6])


def quick(**parameters: object) -> CardBoostClassifier:
    """An estimator whose fits are cheap."""
    return CardBoostClassifier(**{"max_terms": 4, "hot_start": 12, "selector": "polish", **parameters})


def same(one: object, other: object) -> None:
    """Both models, and all losses that decided on their regularisation, agree to the bit."""
    assert one.l2_ == other.l2_
    assert one.max_terms_ == other.max_terms_
    assert_array_equal(one.regularisation_.losses, other.regularisation_.losses)
    assert one.ensemble_ == other.ensemble_


# ---------------------------------------------------------------------------------------- which rows


@settings(max_examples=60, deadline=None)
@given(
    content=st.lists(st.integers(0, 30), min_size=1, max_size=120),
    n_classes=st.integers(1, 4),
    n_folds=st.integers(2, 5),
    seed=st.integers(0, 2**31 - 1),
    most=st.integers(5, 40),
    order=st.randoms(use_true_random=False),
)
def test_folds_depend_on_the_content_of_rows_alone(content, n_classes, n_folds, seed, most, order):
    hashes = np.array(content, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    codes = np.arange(len(content)) % n_classes if n_classes > 1 else None
    fold = deal_rows(hashes, codes, n_folds, seed, most)
    assert set(fold) <= {-1, *range(n_folds)}
    for value in np.unique(hashes):
        assert len(set(fold[hashes == value])) == 1
    rows = list(range(len(content)))
    order.shuffle(rows)
    twice = np.array([*rows, *rows[: len(rows) // 2]])
    again = deal_rows(hashes[twice], None if codes is None else codes[twice], n_folds, seed, most)
    assert_array_equal(again, fold[twice])


def test_folds_are_equal_in_size_and_have_every_class_in_proportion():
    hashes = np.random.default_rng(0).integers(2**63, size=3000).astype(np.uint64)
    codes = (np.arange(3000) % 10 == 0).astype(np.intp)
    fold = deal_rows(hashes, codes, 3, seed=7)
    assert_array_equal(np.bincount(fold), [1000, 1000, 1000])
    assert_array_equal(np.bincount(fold[codes == 1]), [100, 100, 100])
    assert (deal_rows(hashes, codes, 3, seed=8) != fold).any()


def test_of_many_rows_a_sample_takes_part():
    hashes = np.random.default_rng(0).integers(2**63, size=3000).astype(np.uint64)
    codes = (np.arange(3000) % 10 == 0).astype(np.intp)
    fold = deal_rows(hashes, codes, 3, seed=7, most=600)
    assert_array_equal(np.bincount(fold[fold >= 0]), [200, 200, 200])
    assert np.count_nonzero(fold[codes == 1] >= 0) == 60
    everyone = deal_rows(hashes, codes, 3, seed=7)
    assert_array_equal(fold[fold >= 0], everyone[fold >= 0])


def test_the_smallest_size_within_one_error_is_picked():
    losses = np.array([[0.9, 0.52, 0.50, 0.60], [0.9, 0.46, 0.44, 0.60], [0.9, 0.42, 0.40, 0.60]])
    assert smallest_within_error(losses) == 1  # the error of the third is 0.029
    assert smallest_within_error(losses[:, 2:]) == 0
    assert smallest_within_error(losses[:1]) == 2  # one fold has no error


# ---------------------------------------------------------------------------------------- laws of fits


@pytest.mark.parametrize("max_terms", [4, None, "auto"])
def test_neither_order_nor_threads_nor_repeated_rows_change_anything(max_terms):
    X, y = table()
    model = quick(max_terms=max_terms, n_jobs=1).fit(X, y)
    assert model.regularisation_.reason == CHOSEN
    order = np.random.default_rng(1).permutation(len(y))
    same(quick(max_terms=max_terms, n_jobs=3).fit(X[order], y[order]), model)
    count = np.random.default_rng(2).integers(0, 4, size=len(y))
    weighted = quick(max_terms=max_terms).fit(X, y, sample_weight=count)
    repeated = quick(max_terms=max_terms).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    same(weighted, repeated)


def test_regression_obeys_the_same_laws():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:100, :5], y[:100]
    regressor = CardBoostRegressor(max_terms=3, hot_start=8)
    model = clone(regressor).set_params(n_jobs=1).fit(X, y)
    assert model.regularisation_.reason == CHOSEN
    order = np.random.default_rng(1).permutation(len(y))
    same(clone(regressor).set_params(n_jobs=2).fit(X[order], y[order]), model)
    count = np.random.default_rng(2).integers(0, 3, size=len(y))
    weighted = clone(regressor).fit(X, y, sample_weight=count)
    same(weighted, clone(regressor).fit(np.repeat(X, count, axis=0), np.repeat(y, count)))
    assert model.certificate_.verify(X, y)


def test_seeds_deal_the_rows():
    X, y = table()
    losses = [quick(random_state=seed).fit(X, y).regularisation_.losses for seed in (None, 0, 0, 1)]
    assert_array_equal(losses[1], losses[2])
    assert (losses[1] != losses[3]).any()
    assert_array_equal(losses[0], quick().fit(X, y).regularisation_.losses)


def test_the_model_is_that_of_the_number():
    X, y = table()
    model = quick(selector="auto").fit(X, y)
    given = quick(selector="auto", l2=model.l2_).fit(X, y)
    assert given.ensemble_ == model.ensemble_
    assert given.l2_ == model.l2_
    assert given.regularisation_.reason == "given"
    assert given.regularisation_.losses is None
    content = model.certificate_.to_dict()
    assert content == given.certificate_.to_dict()
    assert model.certificate_.verify(X, y)


def test_of_all_losses_the_least_mean_decides():
    X, y = table()
    chosen = quick().fit(X, y).regularisation_
    assert chosen.losses.shape == (N_FOLDS, len(L2_GRID), 1)
    assert chosen.l2_grid == L2_GRID
    assert chosen.l2 == L2_GRID[int(chosen.losses.mean(axis=0)[:, 0].argmin())]


def test_noise_is_regularised_more_than_a_rule():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 8))
    rule = (X[:, 0] > 0).astype(int)
    coins = random.integers(0, 2, size=200)
    assert quick().fit(X, rule).l2_ == min(L2_GRID)
    assert quick().fit(X, coins).l2_ == max(L2_GRID)


def test_the_number_of_terms_follows_what_there_is_to_learn():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 5))
    one_rule = np.where(random.random(300) < 0.1, X[:, 0] <= 0, X[:, 0] > 0).astype(int)
    model = quick(max_terms="auto").fit(X, one_rule)
    assert model.max_terms_ == 1
    assert model.regularisation_.sizes == AUTO_SIZES
    steps = (X[:, :4].sum(axis=1) > 0).astype(int)
    assert quick(max_terms="auto", hot_start=40).fit(X, steps).max_terms_ >= 7
    fixed = quick(max_terms="auto", l2=0.02).fit(X, one_rule)
    assert (fixed.l2_, fixed.max_terms_) == (0.02, 1)


# ---------------------------------------------------------------------------------------- what auto means


def test_other_learners_have_the_fixed_value():
    X, y = table()
    model = CardBoostClassifier(max_terms=2, dictionary=DecisionTreeClassifier(max_depth=1), max_iter=3)
    model.fit(X, y)
    assert model.l2_ == FIXED_L2
    assert model.regularisation_.reason == "fixed: cross-validation is for stumps"


def test_few_distinct_rows_have_the_fixed_value():
    X, y = table(20)
    X, y = np.repeat(X, 5, axis=0), np.repeat(y, 5)
    model = quick(max_terms="auto").fit(X, y)
    assert (model.l2_, model.max_terms_) == (FIXED_L2, FIXED_SIZE)
    assert model.regularisation_.reason == "fixed: fewer than 20 distinct rows of a class"
    model = CardBoostRegressor(max_terms=2).fit(X[:60], X[:60, 0])
    assert model.regularisation_.reason == "fixed: fewer than 20 distinct rows"


def test_no_time_is_a_fixed_value(work_clock):
    X, y = load_breast_cancer(return_X_y=True)
    model = CardBoostClassifier(time_limit=0.02).fit(X, y)
    assert model.l2_ == FIXED_L2
    assert model.regularisation_.reason == "fixed: cross-validation was cut short"
    assert model.certificate_.verify(X, y)
    assert CardBoostClassifier(max_terms=4, time_limit=60).fit(X, y).regularisation_.reason == CHOSEN


def test_several_classes_share_one_number():
    X, y = load_iris(return_X_y=True)
    model = quick(max_terms=2).fit(X, y)
    assert model.regularisation_.reason == CHOSEN
    for certificate in model.certificate_:
        assert f"+ {model.l2_:g} x half the sum of squared weights" in "\n".join(certificate.lines())


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "exponential"},
        {"loss": "squared_hinge"},
        {"loss": "hinge"},
        {"max_features": 2},
        {"max_terms": None, "max_features": 2},
        {"feature_costs": [0.01, 0.0, 0.02, 0.0]},
        {"max_terms": None, "l0": 0.005},
        {"monotonic_cst": [-1, 0, 0, 0]},
        {"reselect": True, "hot_start": 0, "max_iter": 8},
        {"validation_fraction": 0.2, "random_state": 0},
        {"fit_intercept": False, "class_weight": "balanced"},
    ],
    ids=lambda parameters: "-".join(map(str, parameters)),
)
def test_every_kind_of_fit_chooses(parameters):
    X, y = table()
    model = quick(**parameters).fit(X, y)
    assert model.regularisation_.reason == CHOSEN
    assert np.isfinite(model.regularisation_.losses).all()
    assert model.l2_ in L2_GRID
    if parameters.get("max_features"):
        assert len(model.ensemble_.features_used) <= 2
    if "monotonic_cst" in parameters:
        assert all(term.polarity > 0 for term in model.ensemble_.terms if term.feature == 0)


def test_a_warm_start_chooses_again():
    X, y = table()
    model = quick(warm_start=True).fit(X, y)
    first = model.l2_
    model.fit(X, np.random.default_rng(3).permutation(y))
    assert model.l2_ > first
    assert model.get_params()["l2"] == clone(model).l2 == "auto"
    assert not hasattr(clone(model), "l2_")


def test_saved_models_keep_what_was_chosen(tmp_path):
    X, y = table()
    model = quick().fit(X, y)
    model.save(tmp_path / "model.json")
    training = load_model(tmp_path / "model.json").training
    assert training["parameters"]["l2"] == "auto"
    assert training["regularisation"] == {"l2": model.l2_, "max_terms": 4, "reason": CHOSEN}


@pytest.mark.parametrize("parameters", [{"l2": "large"}, {"l2": -1.0}, {"max_terms": "few"}])
def test_other_words_are_refused(parameters):
    X, y = table()
    (name,) = parameters
    with pytest.raises(ValueError, match=name):
        quick(**parameters).fit(X, y)


def test_a_front_has_one_number_from_its_folds():
    X, y = table()
    front = pareto_front(X, y, sizes=[1, 3], cv=3, estimator=quick(), random_state=0)
    (l2,) = {point.model.l2_ for point in front}
    assert l2 in L2_GRID
    assert [point.model.max_terms_ for point in front] == [1, 3]
    given = pareto_front(X, y, sizes=[1, 3], cv=3, estimator=quick(l2=l2), random_state=0)
    assert [point.scores for point in given] == [point.scores for point in front]
    weight = np.arange(len(y)) % 3
    kept = weight > 0
    weighted = pareto_front(X, y, sizes=[2], cv=3, estimator=quick(), sample_weight=weight, random_state=0)
    others = pareto_front(
        X[kept], y[kept], sizes=[2], cv=3, estimator=quick(), sample_weight=weight[kept], random_state=0
    )
    assert weighted[0].model.ensemble_ == others[0].model.ensemble_

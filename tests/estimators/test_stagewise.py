"""Boosting stage by stage: AdaBoost word by word, scikit-learn's, and the laws of every loss."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import AdaBoostClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from cardboost import FitCallback, StagewiseClassifier, StagewiseRegressor, load_model
from cardboost.cli.main import main
from cardboost.dictionary.resolve import FittedLearners
from cardboost.problem.losses import MARGIN_LOSSES, Loss
from marks import first

STUMP = DecisionTreeClassifier(max_depth=1)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True, as_frame=True)


def classifier(**parameters):
    return StagewiseClassifier(**{"max_iter": 20, "n_jobs": 1, **parameters})


def regressor(**parameters):
    return StagewiseRegressor(**{"max_iter": 20, "n_jobs": 1, **parameters})


# ------------------------------------------------------------------------------------ theorem 3.1


def all_stumps(X):
    """Every split of every feature, as columns of -1 and 1, and its opposite; and the two constant rules."""
    columns = [np.ones(len(X), dtype=int), -np.ones(len(X), dtype=int)]
    for x in X.T:
        values = np.unique(x)
        for cut in 0.5 * (values[:-1] + values[1:]):
            columns += [np.where(x <= cut, 1, -1), np.where(x <= cut, -1, 1)]
    return np.array(columns)


def first_rounds(path, rounds):
    """The path as it was after so many rounds."""
    return replace(path, course=path.course.first(rounds))


def learner_of_round(model, X, m):
    """What the learner of round m says of the rows."""
    path = model._paths[0]
    before = first_rounds(path, m).ensemble().decision_function(X) if m else np.zeros(len(X))
    return np.sign(first_rounds(path, m + 1).ensemble().decision_function(X) - before)


def check_theorem(X, y, weight, rounds):
    """Algorithm 1 beside Algorithm 2: of equally good learners the two may take the same one."""
    model = classifier(max_iter=rounds).fit(X, y, weight)
    sign, dictionary = np.where(y == 1, 1, -1), all_stumps(X)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    w = w / w.sum()
    total, alphas = np.zeros(len(y)), []
    for m in range(model.n_iter_):
        G = learner_of_round(model, X, m)
        assert (dictionary == G).all(axis=1).any()
        errors = (dictionary != sign) @ w
        err = float((sign != G) @ w)
        assert err <= errors.min() + 1e-12  # it is an argmin
        alpha = math.log((1 - err) / err)
        alphas.append(alpha)
        total += alpha * G
        w = w * np.exp(alpha * (sign != G))
        w = w / w.sum()
    betas = np.array(model._paths[0].course.weights)
    np.testing.assert_allclose(alphas, 2 * betas, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(total, 2 * model.decision_function(X), rtol=1e-12, atol=1e-12 * sum(alphas))
    clear = np.abs(total) > 1e-9
    np.testing.assert_array_equal(model.predict(X)[clear], np.where(total > 0, 1, 0)[clear])
    np.testing.assert_allclose([own.weight for own in model.trace_], betas)
    return model


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), kind=st.sampled_from([None, "counts", "numbers"]))
def test_theorem_3_1(seed, kind):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(12, 80))
    X = np.round(rng.normal(size=(rows, 4)), 2)
    y = (X[:, 0] + 0.7 * X[:, 1] + rng.normal(0, 0.8, rows) > 0).astype(int)
    y[:2] = 0, 1
    weight = {None: None, "counts": rng.integers(1, 4, rows), "numbers": rng.uniform(0.1, 3, rows)}[kind]
    sign, stumps = np.where(y == 1, 1, -1), all_stumps(X)
    errors = (stumps != sign) @ (np.ones(rows) if weight is None else weight)
    assume(errors.min() > 0 and 2 * errors.min() < (rows if weight is None else weight.sum()))  # see below
    check_theorem(X, y, weight, 8)


@pytest.mark.parametrize("weighted", [False, True])
def test_theorem_3_1_on_a_real_set(cancer, weighted):
    X, y = cancer[0].iloc[:200, [0, 1, 4, 20]].to_numpy(), cancer[1].iloc[:200].to_numpy()
    weight = np.random.default_rng(0).uniform(0.2, 2, 200) if weighted else None
    model = check_theorem(X, y, weight, 25)
    assert model.trace_.status == "iteration limit"
    # the mean exponential loss is the product of the normalisers, and bounds the training error
    product = np.prod([2 * math.sqrt(own.error * (1 - own.error)) for own in model.trace_])
    assert model.trace_[-1].objective == pytest.approx(product, rel=1e-9)
    assert np.average(model.predict(X) != y, weights=weight) <= product


@pytest.mark.parametrize("seed", range(3))
def test_scikit_learns_adaboost(seed):
    """The same trees of one split give the same model: its weights are twice ours."""
    X, y = make_classification(400, 8, random_state=seed, flip_y=0.1)
    weight = np.random.default_rng(seed).uniform(0.5, 2, 400)
    theirs = AdaBoostClassifier(STUMP, n_estimators=15, random_state=0).fit(X, y, weight)
    ours = classifier(dictionary=STUMP, max_iter=15).fit(X, y, weight)
    np.testing.assert_allclose(
        2 * np.array(ours._paths[0].course.weights), theirs.estimator_weights_, rtol=1e-9
    )
    total = sum(ours._paths[0].course.weights)
    # theirs counts both classes and divides by the sum of the weights
    np.testing.assert_allclose(2 * ours.decision_function(X) / total, theirs.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_stumps_by_their_error_train_no_worse_than_scikit_learns(cancer):
    X, y = cancer
    theirs = AdaBoostClassifier(STUMP, n_estimators=40, random_state=0).fit(X, y)
    assert classifier(max_iter=40).fit(X, y).score(X, y) >= theirs.score(X, y) - 0.002


# ------------------------------------------------------------------------------------ ends of AdaBoost


@pytest.mark.parametrize("loss", MARGIN_LOSSES)
def test_a_learner_without_error_is_the_model(loss):
    X, y = np.array([[0.0, 1], [1, 5], [2, 2], [3, 1]]), [0, 0, 1, 1]
    model = classifier(loss=loss).fit(X, y)
    assert model.trace_.status == "perfect"
    assert "no mistake" in model.trace_.message
    assert model.n_iter_ == model.ensemble_.n_terms == 1
    assert model.ensemble_.terms[0].weight == 1.0
    assert model.trace_[-1].error == 0.0
    np.testing.assert_array_equal(model.predict(X), y)


def test_no_learner_better_than_chance():
    X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]  # every stump is right in half of the rows
    with pytest.raises(ValueError, match="no better than chance"):
        classifier().fit(X, y)
    X, y = [[0.0], [1.0], [2.0]], [0, 0, 1]
    with pytest.raises(ValueError, match="no better than chance"):
        classifier(dictionary=FittedLearners([Opposite()])).fit(X, y)
    constant = classifier(dictionary=FittedLearners([Opposite()]), fit_intercept=True).fit(X, y)
    assert constant.trace_.status == "no edge"
    assert constant.n_iter_ == 0
    assert constant.predict(X).tolist() == [0, 0, 0]


class Opposite:
    """Wrong more often than right."""

    classes_ = (0, 1)

    def predict(self, X):
        return (np.asarray(X)[:, 0] < 1.5).astype(int)


@pytest.mark.parametrize("loss", MARGIN_LOSSES)
@pytest.mark.parametrize(
    ("dictionary", "start"), first(1, [("stumps", True), ("stumps", False), (STUMP, True)])
)
def test_many_rounds_do_not_fit_rows_of_next_to_no_weight(loss, dictionary, start):
    X, y = make_classification(120, 6, flip_y=0.3, random_state=3)
    options = {"loss": loss, "max_iter": 1000, "fit_intercept": start}
    model = classifier(**options, dictionary=dictionary, class_weight={0: 1e7, 1: 1.0}).fit(X, y)
    assert (model.predict(X) == 0).mean() > 0.95
    assert model.trace_.status == ("stuck" if loss == "hinge" else "tolerance")
    assert len(list(model.staged_predict(X))) == model.n_iter_
    if dictionary == "stumps":
        model = classifier(**options, class_weight={0: 1e7}).fit(X, y + (y & (X[:, 0] > 0)))
        assert (model.predict(X) == 0).mean() > 0.95
        stages = list(model.staged_decision_function(X))
        assert len(stages) == model.n_iter_
        assert all(own.shape == (120, 3) for own in stages)


@pytest.mark.parametrize("loss", MARGIN_LOSSES)
def test_constant_rules_are_among_the_stumps(loss):
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.integers(0, 2, 400), np.ones(400)])
    y = rng.random(400) < np.where(X[:, 0] == 1, 0.35, 0.1)  # "no" for every row is the better guess
    held = {"validation_fraction": 0.2, "random_state": 0}
    model, early = (classifier(loss=loss, **own).fit(X, y) for own in ({}, held))
    for own in (model, early):
        path = own._paths[0]
        constants = [k for k, column in enumerate(path.course.columns) if column < 0]
        assert constants
        assert [abs(path.course.shifts[k]) for k in constants] == [path.course.weights[k] for k in constants]
        assert own.ensemble_.intercept == pytest.approx(sum(path.course.shifts), abs=1e-15)
        assert {term.feature for term in own.ensemble_.terms} <= {0}
        np.testing.assert_allclose(
            list(own.staged_decision_function(X))[-1],
            path.course.start
            + sum(w * learner_of_round(own, X, m) for m, w in enumerate(path.course.weights)),
            atol=1e-12,
        )
    margins = np.where(y, 1, -1) * model.decision_function(X)
    assert model.trace_[-1].objective == pytest.approx(MARGIN_LOSSES[loss].value(margins), rel=1e-10)
    again = classifier(loss=loss).fit(X, ~y)
    np.testing.assert_array_equal(again.decision_function(X), -model.decision_function(X))


@pytest.mark.parametrize("dictionary", ["stumps", STUMP])
@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge"])
def test_a_class_of_next_to_no_weight_leaves_the_intercept_finite(loss, dictionary):
    X, y = np.arange(20.0)[:, None] % 7, np.arange(20) % 2
    weight = np.where(y == 1, 1e100, 1e-100)
    model = classifier(loss=loss, dictionary=dictionary, fit_intercept=True).fit(X, y, weight)
    assert np.isfinite(model.decision_function(X)).all()
    assert (model.predict(X) == 1).all()


def test_features_that_say_nothing_leave_the_constant():
    model = classifier().fit(np.ones((5, 2)), [0, 0, 1, 0, 1])
    assert model.n_iter_ == 1
    assert model.ensemble_.n_terms == 0
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 2))), [[0.6, 0.4]])


def test_the_default_is_adaboost():
    assert StagewiseClassifier().get_params()["fit_intercept"] is False


def test_rounds_end_where_the_edge_does(cancer):
    X, y = cancer
    tree = DecisionTreeClassifier(max_depth=1).fit(X, y)
    model = classifier(dictionary=FittedLearners([tree])).fit(X, y)
    assert model.trace_.status == "no edge"
    assert model.n_iter_ == model.ensemble_.n_terms == 1


class Chances(GaussianNB):
    """Only probabilities."""

    predict = None


def test_learners_of_all_kinds(cancer):
    X, y = cancer
    model = classifier(dictionary=Chances(), max_iter=5).fit(X, y)
    assert model.score(X, y) > 0.9
    dummy = DummyClassifier(strategy="prior")
    constant = classifier(dictionary=dummy).fit(X, y)
    assert constant.n_iter_ == 1
    assert (constant.predict(X) == 1).all()  # the larger class
    assert constant.trace_.status == "no edge"
    both = classifier(dictionary=["stumps", STUMP], loss="logistic", fit_intercept=True).fit(X, y)
    assert both.score(X, y) > 0.97
    stages = list(both.staged_decision_function(X))
    assert len(stages) == both.n_iter_
    np.testing.assert_allclose(stages[-1], both.decision_function(X), rtol=1e-12, atol=1e-12)
    assert list(both.staged_predict_proba(X))[-1].shape == (len(y), 2)
    with pytest.raises(ValueError, match="pickle"):
        both.save("nowhere.json")
    with pytest.raises(ValueError, match="stumps only"):
        classifier(dictionary=STUMP, monotonic_cst=[0] * X.shape[1]).fit(X, y)


def test_numbers_of_fitted_regressors_are_columns(cancer):
    X, y = cancer
    trees = [
        DecisionTreeRegressor(max_depth=2, random_state=k, max_features=3).fit(X, 2 * y - 1) for k in range(8)
    ]
    model = classifier(dictionary=FittedLearners(trees), max_iter=30).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.ensemble_.n_terms <= 8
    objective = [own.objective for own in model.trace_]
    assert objective == sorted(objective, reverse=True)


# ------------------------------------------------------------------------------------ every loss


@pytest.mark.parametrize("loss", MARGIN_LOSSES)
def test_every_round_lowers_the_loss(cancer, loss):
    X, y = cancer
    model = classifier(loss=loss, learning_rate=0.3).fit(X, y)
    objective = np.array([own.objective for own in model.trace_])
    assert (np.diff(objective) < 0).all()
    assert model.score(X, y) > 0.9
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    assert objective[-1] == pytest.approx(MARGIN_LOSSES[loss].value(margins), rel=1e-10)
    assert (margins <= 0).mean() <= objective[-1] * MARGIN_LOSSES[loss].surrogate_factor


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_a_full_step_is_the_best_one(cancer, loss):
    X, y = cancer
    model = classifier(loss=loss, max_iter=3).fit(X, y)
    sign = np.where(y == 1, 1, -1)
    path = model._paths[0]
    before, after = (first_rounds(path, k).ensemble().decision_function(X) * sign for k in (2, 3))
    column = (after - before) / path.course.weights[2]
    slope = np.mean(MARGIN_LOSSES[loss].derivative(after) * column)
    assert slope == pytest.approx(0, abs=1e-12)


def test_more_than_one_round_for_a_stump_is_one_term(cancer):
    X, y = cancer
    model = classifier(max_iter=60, learning_rate=0.1).fit(X, y)
    path = model._paths[0]
    assert model.n_iter_ == len(path) == 60
    assert model.ensemble_.n_terms < 40
    signed = {}
    for column, weight in zip(path.course.columns, path.course.weights, strict=True):
        key = (int(path.stumps.feature[column]), int(path.stumps.cut[column]))
        signed[key] = signed.get(key, 0.0) + weight * int(path.stumps.polarity[column])
    assert sorted(abs(w) for w in signed.values()) == pytest.approx(
        sorted(t.weight for t in model.ensemble_.terms)
    )
    assert model.trace_[-1].n_terms >= model.ensemble_.n_terms


@pytest.mark.parametrize("loss", MARGIN_LOSSES)
def test_threads_and_weights(loss):
    X, y = make_classification(3000, 30, n_informative=8, random_state=1)
    rng = np.random.default_rng(2)
    X = np.where(rng.random(X.shape) < 0.05, np.nan, X)
    weight = rng.integers(1, 4, len(y))
    one = classifier(loss=loss, learning_rate=0.5).fit(X, y, weight)
    two = classifier(loss=loss, learning_rate=0.5, n_jobs=2).fit(X, y, weight)
    again = classifier(loss=loss, learning_rate=0.5).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert one.ensemble_ == two.ensemble_ == again.ensemble_
    assert one._paths[0].course.weights == two._paths[0].course.weights == again._paths[0].course.weights


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_threads_and_weights_of_a_regressor(loss):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 12))
    y = X[:, 0] + np.abs(X[:, 1]) + rng.standard_t(2, 2000)
    weight = rng.integers(1, 4, len(y))
    one = regressor(loss=loss).fit(X, y, weight)
    two = regressor(loss=loss, n_jobs=2).fit(X, y, weight)
    again = regressor(loss=loss).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert one.ensemble_ == two.ensemble_ == again.ensemble_


# ------------------------------------------------------------------------------------ what is fitted


def test_stages_files_and_exports(cancer, tmp_path):
    X, y = cancer
    model = classifier().fit(X, y)
    scores = list(model.staged_decision_function(X))
    assert len(scores) == 20
    np.testing.assert_array_equal(scores[-1], model.decision_function(X))
    for k in (1, 7, 19):
        expected = first_rounds(model._paths[0], k).ensemble().decision_function(X)
        np.testing.assert_allclose(scores[k - 1], expected, atol=1e-12)
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    np.testing.assert_array_equal(list(model.staged_predict_proba(X))[-1], model.predict_proba(X))
    model.save(tmp_path / "model.json")
    back = load_model(tmp_path / "model.json")
    assert back.ensemble == model.ensemble_
    assert back.certificate is None
    assert not hasattr(model, "certificate_")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert "exponential loss" in model.card()
    assert "def " in model.export("python")
    assert model.contributions(X).shape == X.shape


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_cards_and_exports_of_the_hinges(cancer, loss, tmp_path):
    X, y = cancer
    model = classifier(loss=loss, learning_rate=0.2).fit(X, y)
    assert ("probability of" in model.card()) == (loss == "squared_hinge")
    for format in ("python", "sql", "c"):
        assert model.export(format)
    model.save(tmp_path / "model.json")
    back = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    if loss == "hinge":
        assert not hasattr(model, "predict_proba")
        with pytest.raises(ValueError, match="no probabilities"):
            back.predict_proba(X)
    else:
        p = model.predict_proba(X)
        np.testing.assert_allclose(p[:, 1], np.clip((1 + model.decision_function(X)) / 2, 0, 1))
        np.testing.assert_array_equal(back.predict_proba(X), p)


def test_the_command_line_scores_without_probabilities(cancer, tmp_path, capsys):
    X, y = cancer
    X.to_csv(tmp_path / "rows.csv", index=False)
    for loss, header in (("hinge", "score,class"), ("squared_hinge", "score,probability,class")):
        classifier(loss=loss, max_iter=3).fit(X, y).save(tmp_path / "model.json")
        assert main(["predict", str(tmp_path / "model.json"), str(tmp_path / "rows.csv")]) == 0
        assert capsys.readouterr().out.splitlines()[0] == header


@pytest.mark.parametrize("loss", MARGIN_LOSSES)
def test_several_classes(loss):
    X, y = load_wine(return_X_y=True)
    labels = np.array(["a", "b", "c"])[y]
    model = classifier(loss=loss, learning_rate=0.5).fit(X, labels)
    assert model.score(X, labels) > (0.8 if loss == "hinge" else 0.9)
    stages = list(model.staged_predict(X))
    assert len(stages) == model.n_iter_
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    assert len(model.trace_) == 3
    assert model.card().count("Class ") == 3
    if MARGIN_LOSSES[loss].has_probability:
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_a_callback_ends_the_rounds(cancer):
    X, y = cancer
    model = classifier().fit(X, y, callback=lambda record: record.n_columns >= 5)
    assert model.trace_.status == "stopped"
    assert model.n_iter_ == 5
    assert model.ensemble_ == classifier(max_iter=5).fit(X, y).ensemble_
    at_once = FitCallback()
    at_once.stopped = lambda: True
    assert regressor().fit(X, y, callback=at_once).n_iter_ == 1


def test_held_out_rows_end_the_rounds(cancer):
    X, y = cancer
    flipped = np.where(np.random.default_rng(0).random(len(y)) < 0.2, 1 - y, y)
    model = classifier(max_iter=500, validation_fraction=0.3, random_state=0).fit(X, flipped)
    assert model.trace_.status == "validation"
    (losses,) = model.validation_losses_
    assert model.n_iter_ == int(np.argmin(losses)) + 1 < len(losses) == len(model.trace_)
    target = load_diabetes(return_X_y=True)
    own = regressor(max_iter=500, validation_fraction=0.3, random_state=0).fit(*target)
    assert own.trace_.status == "validation"
    assert own.n_iter_ == int(np.argmin(own.validation_losses_[0])) + 1


def test_tables_with_labels_and_missing_values():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    n = 400
    colour = rng.choice(["red", "green", "blue", "grey"], n)
    size = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    X = pd.DataFrame({"colour": pd.Categorical(colour), "size": size})
    y = ((colour == "red") | (colour == "blue")) ^ (np.nan_to_num(size) > 1) ^ (rng.random(n) < 0.05)
    model = classifier(max_iter=30).fit(X, y)
    assert model.score(X, y) > 0.8
    scores = list(model.staged_decision_function(X))
    np.testing.assert_allclose(scores[-2], first_rounds(model._paths[0], 29).ensemble().decision_function(X))
    number = regressor(max_iter=30, loss="absolute").fit(X, y.astype(float) * 10)
    np.testing.assert_allclose(list(number.staged_predict(X))[-1], number.predict(X))


def test_directions_are_kept(cancer):
    X, y = cancer[0].to_numpy()[:, :4], cancer[1].to_numpy()
    model = classifier(monotonic_cst=[-1, 0, 0, 0]).fit(X, y)
    assert all(term.polarity == 1 for term in model.ensemble_.terms if term.feature == 0)
    X, y = load_diabetes(return_X_y=True)
    rising = regressor(monotonic_cst=[0, 0, 1, 0, 0, 0, 0, 0, 0, 0], loss="absolute", max_iter=60).fit(X, y)
    assert all(term.polarity == -1 for term in rising.ensemble_.terms if term.feature == 2)


# ------------------------------------------------------------------------------------ numbers


@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_are_trees_of_one_split(weighted):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 5))
    y = 100 + X[:, 0] * X[:, 1] + rng.normal(size=150)
    weight = rng.uniform(0.2, 2, 150) if weighted else np.ones(150)
    model = regressor(learning_rate=0.5).fit(X, y, weight)
    f = np.full(150, np.average(y, weights=weight))
    for stage in model.staged_predict(X):
        f = f + 0.5 * DecisionTreeRegressor(max_depth=1).fit(X, y - f, weight).predict(X)
        np.testing.assert_allclose(stage, f, atol=1e-9)


def test_least_absolute_deviations_are_medians():
    X, y = load_diabetes(return_X_y=True)
    first = regressor(loss="absolute", max_iter=1).fit(X, y)
    (term,) = first.ensemble_.terms
    left = X[:, term.feature] <= term.cut
    f = first.predict(X)
    start = np.median(y)
    for side in (left, ~left):
        np.testing.assert_allclose(f[side], start + np.median((y - start)[side]))
    model = regressor(loss="absolute", max_iter=100).fit(X, y)
    errors = [np.mean(np.abs(f - y)) for f in model.staged_predict(X)]
    assert (np.diff(errors) < 1e-9).all()
    assert errors[-1] < 38 < errors[0]


def test_outliers_move_means_and_not_medians():
    rng = np.random.default_rng(8)
    X = rng.uniform(size=(400, 2))
    truth = 3.0 * (X[:, 0] > 0.5)
    y = truth + rng.normal(0, 0.1, 400)
    y[::20] += 1000
    medians = regressor(loss="absolute", max_iter=5).fit(X, y)
    means = regressor(max_iter=5).fit(X, y)
    assert np.abs(medians.predict(X) - truth).mean() < 0.2 < 5 < np.abs(means.predict(X) - truth).mean()


def test_a_constant_target():
    model = regressor().fit([[0.0], [1.0], [2.0]], [5.0, 5.0, 5.0])
    assert model.trace_.status == "no loss"
    np.testing.assert_array_equal(model.predict([[0.5]]), [5.0])
    assert model.n_iter_ == model.ensemble_.n_terms == 0
    assert list(model.staged_predict([[0.5]])) == []


# ------------------------------------------------------------------------------------ losses of one's own


class Cubed(Loss):
    name = "cubed"

    def rows(self, F):
        return np.maximum(0.0, 1.0 - np.asarray(F, dtype=float)) ** 3

    def derivative(self, F):
        return -3 * np.maximum(0.0, 1.0 - np.asarray(F, dtype=float)) ** 2

    def curvature(self, F):
        return 6 * np.maximum(0.0, 1.0 - np.asarray(F, dtype=float))

    def conjugate(self, v):
        v = np.asarray(v, dtype=float)
        return np.where(v < 0, np.inf, 2 * (np.maximum(v, 0) / 3) ** 1.5 - v)


class Louder(MARGIN_LOSSES["logistic"].__class__):  # type: ignore[name-defined,misc]
    """Three times the logistic loss: a subclass of ours must not be taken for it."""

    def rows(self, F):
        return 3 * super().rows(F)

    def derivative(self, F):
        return 3 * super().derivative(F)

    def curvature(self, F):
        return 3 * super().curvature(F)


def test_a_loss_of_ones_own(cancer, tmp_path):
    X, y = cancer
    model = classifier(loss=Cubed()).fit(X, y)
    assert model.score(X, y) > 0.97
    assert model.ensemble_.loss == "own"
    with pytest.raises(AttributeError) as error:
        model.predict_proba(X)
    assert "cubed loss has no probabilities" in str(error.value.__cause__)
    model.save(tmp_path / "model.json")
    back = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="one's own"):
        back.predict_proba(X)
    assert "probability" not in model.card()
    louder, plain = classifier(loss=Louder()).fit(X, y), classifier(loss="logistic").fit(X, y)
    assert louder.trace_[-1].objective == pytest.approx(3 * plain.trace_[-1].objective, rel=1e-9)
    np.testing.assert_allclose(louder.predict_proba(X), plain.predict_proba(X), atol=1e-9)
    assert louder.ensemble_.loss == "own"


def test_wrong_arguments(cancer):
    X, y = cancer
    for parameters, message in (
        ({"loss": "zero_one"}, "'exponential', 'logistic', 'hinge' or 'squared_hinge'"),
        ({"loss": "squared"}, "StagewiseRegressor"),
        ({"max_iter": 0}, "max_iter"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"validation_fraction": 1.5}, "validation_fraction"),
        ({"fit_intercept": 1}, "fit_intercept"),
        ({"dictionary": "trees"}, "dictionary"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="is a classifier"):
        regressor(dictionary=STUMP).fit(X, y)
    with pytest.raises(ValueError, match="StagewiseClassifier"):
        regressor(loss="logistic").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(classifier(class_weight="balanced").fit(X, y).classes_, [0, 1])

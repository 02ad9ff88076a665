"""Bad input is named, with what was found and what is accepted; and what an interruption keeps."""

import os
import signal

import numpy as np
import pytest
from fronts import SIZES, amounts, numbers, quick
from sklearn.linear_model import LogisticRegression

import cardboost.pareto.compute as compute
from cardboost import CardBoostClassifier, CardBoostRegressor, pareto_front

X, Y = numbers(90)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"sizes": [0, 1]}, ValueError, "sizes must be a whole number of at least 1; got 0"),
        ({"sizes": [2, 1]}, ValueError, "sizes must ascend; got 1 after 2"),
        ({"sizes": [2, 2]}, ValueError, "sizes must ascend; got 2 after 2"),
        ({"sizes": []}, ValueError, "sizes must be ascending whole numbers of at least 1; got []"),
        ({"sizes": 5}, TypeError, "sizes must be ascending whole numbers of at least 1; got 5"),
        ({"sizes": [1.5]}, ValueError, "sizes must be a whole number of at least 1; got 1.5"),
        ({"sizes": "12"}, ValueError, "sizes must be ascending whole numbers of at least 1; got '12'"),
        ({"scoring": "neg_logloss"}, ValueError, "got 'neg_logloss' (did you mean 'neg_log_loss'?)"),
        ({"scoring": 3}, TypeError, "scoring must be a name of sklearn.metrics.get_scorer_names()"),
        ({"scoring": lambda e, X, y: float("nan")}, ValueError, "must give a finite number; it gave nan"),
        ({"scoring": lambda e, X, y: "good"}, ValueError, "must give a finite number; it gave 'good'"),
        ({"scoring": "r2_score"}, ValueError, "scoring must be a name of sklearn.metrics"),
        (
            {"scoring": "neg_log_loss", "estimator": CardBoostRegressor()},
            ValueError,
            "scoring='neg_log_loss' is for classes, but the target holds numbers: accepted are "
            "'neg_mean_squared_error', ",
        ),
        ({"scoring": "roc_auc", "estimator": CardBoostRegressor()}, ValueError, "is for classes"),
        ({"estimator": LogisticRegression()}, TypeError, "got LogisticRegression"),
        ({"estimator": CardBoostClassifier}, TypeError, "got the class CardBoostClassifier"),
        ({"estimator": quick(l1=-1)}, ValueError, "l1 must be a number of at least 0; got -1"),
        (
            {"estimator": quick(loss="hinge")},
            ValueError,
            "scoring='neg_log_loss' failed on the held-out rows",
        ),
        ({"cv": 1}, ValueError, "cv must be a whole number of at least 2; got 1"),
        ({"cv": "five"}, ValueError, "cv must be a whole number of at least 2; got 'five'"),
        ({"cv": 80}, ValueError, "every class needs one for every fold"),
        ({"cv": []}, ValueError, "cv gives no folds"),
        ({"cv": [(np.flatnonzero(Y), np.flatnonzero(Y == 0))]}, ValueError, "fold 1 do not have every class"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be a whole number other than 0, or None; got 0"),
        ({"n_jobs": 1.5}, ValueError, "n_jobs must be a whole number"),
        ({"time_limit": 0}, ValueError, "time_limit must be a number above 0; got 0"),
        ({"sample_weight": -np.ones(90)}, ValueError, "sample_weight must not be negative"),
        ({"sample_weight": np.ones(3)}, ValueError, "sample_weight must have shape (90,); got (3,)"),
        (
            {"sample_weight": np.ones(90), "scoring": lambda e, X, y: 1.0},
            ValueError,
            "must take sample_weight=... where the rows have weights",
        ),
    ],
)
def test_bad_arguments(options, kind, message):
    with pytest.raises(kind) as caught:
        pareto_front(X, Y, **{"sizes": (1,), "cv": 2, "estimator": quick()} | options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("table", "target", "message"),
    [
        (X, np.ones(90, dtype=int), "only one class is present"),
        (X, Y[:50], "X and y have inconsistent numbers of samples: 90 and 50"),
        (X, None, "requires y to be passed"),
        (np.where(np.isnan(X), np.inf, X), Y, "infinity"),
        (np.empty((0, 4)), np.empty(0), ""),
        (np.empty((90, 0)), Y, "0 feature(s)"),
        (X, np.where(Y == 0, np.nan, 1.0), "Input y contains NaN"),
    ],
)
def test_bad_data(table, target, message):
    with pytest.raises(ValueError) as caught:
        pareto_front(table, target, sizes=(1,), cv=2)
    assert message in str(caught.value)


def test_a_table_must_be_one():
    with pytest.raises(TypeError, match="X must be a table"):
        pareto_front(3, Y)


def test_a_classifier_for_amounts():
    A, target = amounts(90)
    with pytest.raises(ValueError, match="Unknown label type"):
        pareto_front(A, target, estimator=quick(), sizes=(1,))
    with pytest.raises(ValueError, match="y must hold one number per row"):
        pareto_front(A, ["a", "b"] * 45, estimator=CardBoostRegressor(), sizes=(1,))


# ------------------------------------------------------------------------------------ interruptions


def pressing_in(monkeypatch, fold):
    """Ctrl-C when this fold begins."""
    own = compute.FrontWork.run_fold

    def run(self, number, *words):
        if number == fold:
            raise KeyboardInterrupt
        return own(self, number, *words)

    monkeypatch.setattr(compute.FrontWork, "run_fold", run)


def test_ctrl_c_in_a_fold_keeps_the_folds_before(monkeypatch):
    whole = pareto_front(X, Y, sizes=SIZES, cv=3, estimator=quick(), random_state=0)
    pressing_in(monkeypatch, 2)
    front = pareto_front(X, Y, sizes=SIZES, cv=3, estimator=quick(), random_state=0)
    assert front.status == "interrupted"
    assert (front.n_folds_done, front.n_folds) == (2, 3)
    assert [point.scores for point in front] == [point.scores[:2] for point in whole]
    assert "2 of 3 folds" in str(front)
    assert "Not complete: it was interrupted" in str(front)
    for point in front:
        assert point.model.ensemble_.n_terms <= point.size
        assert point.model.certificate_.verify(X, Y)
    assert front.pick().predict(X).shape == (90,)


def test_ctrl_c_before_a_fold_is_done_ends_it(monkeypatch):
    pressing_in(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        pareto_front(X, Y, sizes=SIZES, cv=3, estimator=quick())


def test_ctrl_c_in_a_proof_keeps_all_folds_and_proves_less(monkeypatch):
    own, seen = compute.SizedFits.prove, []

    def prove(self, k, *words):
        seen.append(k)
        if seen.count(k) == 1 and k == 1:
            raise KeyboardInterrupt
        return own(self, k, *words)

    monkeypatch.setattr(compute.SizedFits, "prove", prove)
    front = pareto_front(X, Y, sizes=SIZES, cv=2, estimator=quick(), random_state=0)
    assert seen == [0, 1, 1, 2]
    assert front.status == "interrupted"
    assert front.n_folds_done == 2
    assert all(point.model.certificate_.verify(X, Y) for point in front)


def test_a_second_ctrl_c_ends_it(monkeypatch):
    def prove(self, k, *words):
        raise KeyboardInterrupt

    monkeypatch.setattr(compute.SizedFits, "prove", prove)
    with pytest.raises(KeyboardInterrupt):
        pareto_front(X, Y, sizes=SIZES, cv=2, estimator=quick())


def test_a_real_ctrl_c_between_two_folds():
    """From another process, as a terminal sends it."""
    calls = []

    def scoring(estimator, X, y):
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return float(estimator.score(X, y))

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        front = pareto_front(X, Y, sizes=SIZES, cv=3, estimator=quick(), scoring=scoring)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (front.status, front.n_folds_done) == ("interrupted", 1)


def test_time_that_is_up_leaves_out_folds_and_still_gives_models(work_clock):
    front = pareto_front(X, Y, sizes=SIZES, cv=40, estimator=quick(), time_limit=1e-6)
    assert work_clock.seconds < 0.5
    assert front.status == "time limit"
    assert front.n_folds_done == 1
    assert front.n_folds == 40
    assert all(point.model.ensemble_.n_terms <= point.size for point in front)
    assert all(point.model.certificate_.verify(X, Y) for point in front)
    assert front.pick() is front.pick("best")


def test_time_that_is_enough_changes_nothing(work_clock):
    common = {"sizes": SIZES, "cv": 2, "estimator": quick(), "random_state": 0}
    front = pareto_front(X, Y, time_limit=600, **common)
    assert front.status == "complete"
    assert front.to_json() == pareto_front(X, Y, **common).to_json()

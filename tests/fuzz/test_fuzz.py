"""The fuzzer itself: seeds decide everything, a handful of cases pass, and planted faults are caught."""

import copy
import math
import os
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cardboost import CardBoostClassifier
from cardboost.selection.relaxation import RelaxationSolver
from fuzz import invariants
from fuzz.draw import TARGETS, Case, case
from fuzz.invariants import check, fit
from fuzz.runner import run

#: a seed or two for what is called often
QUICK_SEEDS = (1, 3, 4, 8, 17, 19, 20, 21, 23, 25, 31, 40, 69, 95, 110)


def plain_case(**changes):
    """A classifier on ordinary numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    made = Case(0, "CardBoostClassifier", {"max_terms": 2, "hot_start": 5, "n_jobs": 1}, X, X[:, 0] > 0.3)
    return replace(made, **changes)


def test_a_seed_decides_everything():
    for seed in range(150):
        first, second = case(seed), case(seed)
        assert str(first) == str(second)
        assert np.array_equal(np.asarray(first.X).astype(str), np.asarray(second.X).astype(str))
        assert (first.laws, first.allowed, first.must_refuse) == (
            second.laws,
            second.allowed,
            second.must_refuse,
        )


def test_every_target_is_drawn():
    assert {case(seed).target for seed in range(800)} == set(TARGETS)


def test_an_ordinary_case_breaks_no_law():
    laws = ("order of rows", "threads", "weight 2 is the row twice")
    weight = np.arange(60) % 3 + 1.0
    assert check(plain_case(weight=weight, laws=laws)) == []


@pytest.mark.parametrize("seed", QUICK_SEEDS)
def test_a_case_of_every_kind_breaks_no_law(seed):
    assert check(case(seed)) == []


@pytest.mark.parametrize(
    "seed",
    [
        17949465802468,  # least absolute deviations: numbers beyond all others in a step
        17949465803844,  # nets: equal rows with weights that differ
        17949465807106,  # logistic regression: worse than the empty model, both next to 0
        17949465808375,  # conjugate gradients: the rounding of a direction taken for a gain
        17949475974381,  # nets: class weights that round before equal rows are added up
        17949465814790,  # the mean of a target of which one row has nearly all the weight
        17949505657441,  # linear regression: an intercept that cannot be as exact as the loss of one row
        17949505659021,  # logistic regression: the entropy of a class of next to no weight
        17949505666797,  # least absolute deviations: a step divided by 0
        17949514187700,  # prox-Newton: a working set changed before its matrix was made
        17949514190941,  # least absolute deviations: worse than the empty model, by rounding
        17949536817669,  # prox-Newton: the square of a step beyond all numbers
        17949514180156,  # local search: weights of repeated columns, which nothing bends
        17949534314412,  # local search: a hinge that bends nowhere
        # refits of the hinge: steps that a loose bound asked for took a minute
        pytest.param(17949534313640, marks=pytest.mark.long),
        17949514185530,  # warm start: an intercept cut off at max_weight
        17949609391565,  # conjugate gradients: the objective of margins that were far larger before
        17949505664319,  # bounds: the rounding of the intercept's edge times its box
        17949565600605,  # several classes: row weights that class weights kept from being counts
        17949534315533,  # bounds: the rounding of the edge of a column of large entries
        17949659647173,  # size against score: weights of 1e300 multiplied by a target
        17949713806440,  # nets: rows that are all equal, of which none can be held out
        17949609396335,  # scorecards: points that add up to a score of 0, or to its rounding
    ],
)
def test_cases_that_once_broke_a_law(seed):
    assert check(case(seed)) == []


def test_the_bound_over_all_stumps_takes_limited_work(monkeypatch):
    """A case whose bound rises a little with every new column: it took two minutes."""
    work = []

    def result(self):
        if self.dictionary is not None:
            work.append(self.work)
        return true(self)

    true = RelaxationSolver.result
    monkeypatch.setattr(RelaxationSolver, "result", result)
    drawn = case(17949732611299)
    fit(replace(drawn, params=drawn.params | {"warm_start": False}))
    assert 1000 < max(work) < 2000


def laws_broken(drawn):
    return {failure.law for failure in check(drawn)}


def test_wrong_probabilities_are_caught(monkeypatch):
    true = CardBoostClassifier.predict_proba
    monkeypatch.setattr(CardBoostClassifier, "predict_proba", lambda self, X: 1.01 * true(self, X))
    assert laws_broken(plain_case()) == {"probabilities"}


def test_a_tampered_certificate_is_caught(monkeypatch):
    def fit(self, X, y, sample_weight=None):
        true(self, X, y, sample_weight)
        content = copy.deepcopy(self.certificate_.to_dict())
        content["bounds"][0]["lower_bound"] *= 1.0 + 1e-6
        self.certificate_ = replace(self.certificate_, content=content)
        return self

    true = CardBoostClassifier.fit
    monkeypatch.setattr(CardBoostClassifier, "fit", fit)
    assert "certificate" in laws_broken(plain_case())


def test_what_depends_on_the_order_of_rows_is_caught(monkeypatch):
    def fit(self, X, y, sample_weight=None):
        return true(self, X, y, np.where(np.arange(len(X)) < 2, 1.5, 1.0))

    true = CardBoostClassifier.fit
    monkeypatch.setattr(CardBoostClassifier, "fit", fit)
    assert "order of rows" in laws_broken(plain_case(laws=("order of rows",)))


@pytest.mark.parametrize("error", [RuntimeError("no"), ValueError("zero-size array"), IndexError("index 3")])
def test_exceptions_are_caught(monkeypatch, error):
    def fit(self, X, y, sample_weight=None):
        raise error

    monkeypatch.setattr(CardBoostClassifier, "fit", fit)
    law = "unclear refusal" if isinstance(error, ValueError) else "exception"
    assert laws_broken(plain_case(allowed=("zero-size",))) == {law}


def test_a_refusal_must_be_due():
    refused = plain_case(params={"max_terms": 0})
    assert laws_broken(refused) == {"refusal"}
    assert laws_broken(replace(refused, allowed=("max_terms must be",))) == set()
    assert laws_broken(replace(refused, must_refuse="no term")) == set()
    assert laws_broken(plain_case(must_refuse="nothing is wrong")) == {"refusal"}


def test_warnings_and_changed_inputs_are_caught(monkeypatch):
    def fit(self, X, y, sample_weight=None):
        np.array([1.0]) / 0.0
        X[0, 0] += 1.0
        return true(self, X, y, sample_weight)

    true = CardBoostClassifier.fit
    monkeypatch.setattr(CardBoostClassifier, "fit", fit)
    assert {"warning", "inputs"} <= laws_broken(plain_case())


def test_time_limits_are_held_to(monkeypatch):
    def fit(self, X, y, sample_weight=None):
        now[0] += 0.7
        return true(self, X, y, sample_weight)

    now, true = [0.0], CardBoostClassifier.fit
    clock = SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: now[0])
    monkeypatch.setattr(invariants, "time", clock)
    monkeypatch.setattr(CardBoostClassifier, "fit", fit)
    slow = plain_case(params={"time_limit": 0.1, "max_terms": 2, "hot_start": 5, "n_jobs": 1})
    assert laws_broken(slow) == {"seconds"}


def hang_on_three_die_on_five(drawn):
    if drawn.seed == 3:
        threading.Event().wait()
    if drawn.seed == 5:
        os._exit(7)
    return []


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # newer Pythons warn about threads
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_hangs_and_crashes_are_caught_and_the_run_goes_on(method):
    report = run(
        0, math.inf, cases=8, workers=1, watchdog=2.0, checking=hang_on_three_die_on_five, method=method
    )
    assert {(failure.seed, failure.law) for failure in report.first.values()} == {(3, "hang"), (5, "crash")}
    assert report.total == 8

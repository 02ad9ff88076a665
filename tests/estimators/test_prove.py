"""``prove`` goes on where a fit has ended: the model and its bounds never get worse, and the proof holds."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from cardboost import CardBoostClassifier, CardBoostRegressor, pareto_front
from cardboost.certificate import checker
from marks import first


def table(seed=0, rows=300, features=5, noise=0.8):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, features)), 2)
    X[rng.random(X.shape) < 0.03] = np.nan
    clean = np.nan_to_num(X)
    score = clean[:, 0] + 0.6 * clean[:, 1] ** 2 - 0.7 * clean[:, 2] + rng.normal(0, noise, rows)
    return X, score


def bounds(certificate):
    return {scope: bound.lower_bound for scope, bound in certificate.scopes.items()}


def no_worse(before, after):
    assert after.objective <= before.objective
    for scope, lower in bounds(before).items():
        assert after.scopes[scope].lower_bound >= min(lower, after.objective) - 1e-12


@pytest.mark.parametrize(
    "options",
    first(
        2,
        [
            {"max_terms": 6},
            {"max_terms": 5, "loss": "exponential", "l2": 0.0},
            {"max_terms": None, "l0": 0.01},
        ],
    ),
    ids=str,
)
def test_right_after_a_fit(options):
    X, score = table(noise=1.5)
    y = score > 0.3
    model = CardBoostClassifier(**options).fit(X, y)
    before = model.certificate_
    assert model.prove(max_nodes=300) is model
    after = model.certificate_
    no_worse(before, after)
    assert after.scopes["pool"].lower_bound > before.scopes["pool"].lower_bound
    assert after.faults(X, y) == []
    again = model.prove(max_nodes=150).certificate_
    no_worse(after, again)
    assert again.faults(X, y) == []


def test_after_a_pickle_rows_are_needed_and_the_candidates_are_back():
    X, score = table()
    y = np.where(score > 0.3, "yes", "no")
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    fitted = CardBoostClassifier(max_terms=5, l2=0.01).fit(X, y, weight)
    model = pickle.loads(pickle.dumps(fitted))
    with pytest.raises(ValueError, match="prove needs X and y"):
        model.prove()
    with pytest.raises(ValueError, match=r"does not hold for these rows: data\.rows"):
        model.prove(X[1:], y[1:], weight[1:])
    with pytest.raises(ValueError, match=r"does not hold for these rows: data\.digest"):
        model.prove(X, y, weight + 1)
    order = np.random.default_rng(2).permutation(len(y))
    model.prove(X[order], y[order], weight[order], max_nodes=500)
    fitted.prove(max_nodes=500)
    no_worse(fitted.certificate_, model.certificate_)
    assert model.certificate_.verify(X, y, weight)
    assert model.scorecard(points=5).certificate.verify(X, y, weight)


def test_models_of_a_saved_front(tmp_path):
    X, score = table(3)
    front = pareto_front(X, score > 0.3, sizes=[2, 4], cv=2)
    front.save(tmp_path / "front.json")
    model = type(front).load(tmp_path / "front.json").points[-1].model
    before = model.certificate_
    model.prove(X, score > 0.3, max_nodes=500)
    no_worse(before, model.certificate_)
    assert model.certificate_.verify(X, score > 0.3)


def test_categories_that_come_into_the_model_bring_their_labels():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({
        "town": pd.Categorical(rng.choice([f"town {k}" for k in range(300)], 900)),
        "size": rng.normal(size=900), "kind": pd.Categorical(rng.choice(list("abcdefg"), 900)),
    })  # fmt: skip
    y = (frame["kind"].isin(["a", "c", "d"]).to_numpy() * 1.0 + frame["size"] + rng.normal(0, 1, 900)) > 0.7
    model = CardBoostClassifier(max_terms=6, l2=0.01, max_nodes=1).fit(frame, y)
    copy = pickle.loads(pickle.dumps(model))
    copy.prove(frame, y, max_nodes=100)
    model.prove(max_nodes=100)
    assert np.array_equal(copy.predict(frame), model.predict(frame))
    assert copy.certificate_.faults(frame, y) == []


def test_several_classes_and_class_weights():
    X, score = table(5)
    y = np.digitize(score, [-0.5, 0.8])
    model = CardBoostClassifier(max_terms=3, l2=0.01, class_weight={0: 1.0, 1: 2.0, 2: 1.5}).fit(X, y)
    before = model.certificate_
    copy = pickle.loads(pickle.dumps(model))
    model.prove(max_nodes=100)
    copy.prove(X, y, max_nodes=100)
    for proved in (model, copy):
        for early, late in zip(before, proved.certificate_, strict=True):
            no_worse(early, late)
        assert all(certificate.verify(X, y) for certificate in proved.certificate_)
    assert np.allclose(model.decision_function(X), copy.decision_function(X))


def test_held_out_rows_are_left_out_again():
    X, score = table(6)
    model = CardBoostClassifier(max_terms=3, l2=0.01, validation_fraction=0.3, random_state=7).fit(
        X, score > 0.3
    )
    copy = pickle.loads(pickle.dumps(model))
    no_worse(model.certificate_, copy.prove(X, score > 0.3, max_nodes=200).certificate_)


def test_what_exact_search_does_not_take_gets_local_search():
    X, score = table(7)
    model = CardBoostRegressor(max_terms=4, l2=0.01).fit(X, score)
    before = model.certificate_
    copy = pickle.loads(pickle.dumps(model))
    for estimator, rows in ((model, ()), (copy, (X, score))):
        with pytest.warns(UserWarning, match="exact search takes exponential and logistic loss"):
            estimator.prove(*rows)
        no_worse(before, estimator.certificate_)
        assert estimator.certificate_.verify(X, score)


def test_a_proof_that_a_certificate_cannot_hold_is_announced(monkeypatch):
    X, score = table(8, rows=600, noise=1.5)
    model = CardBoostClassifier(max_terms=5, l2=0.01).fit(X, score > 0.3)
    monkeypatch.setattr("cardboost.boosting.candidates.most_leaves", lambda problem: 5)
    with pytest.warns(UserWarning, match="more than a certificate holds.*More time will not help"):
        model.prove(max_nodes=2000)
    assert model.certificate_.verify(X, score > 0.3)


def test_a_time_limit_holds_and_what_is_proven_by_then_is_kept(work_clock):
    X, score = table(8, rows=3000, features=10, noise=2.0)
    model = CardBoostClassifier(max_terms=10, l2=0.01).fit(X, score > 0.3)
    before = model.certificate_
    seconds = work_clock.taken(lambda: model.prove(time_limit=1.5, max_nodes=10**9))
    assert seconds < 1.1 * 1.5 + 0.5
    no_worse(before, model.certificate_)
    assert model.certificate_.verify(X, score > 0.3)


def test_bad_limits_are_refused():
    X, score = table()
    model = CardBoostClassifier(max_terms=2, l2=0.01).fit(X, score > 0.3)
    with pytest.raises(ValueError, match="time_limit"):
        model.prove(time_limit=0.0)
    with pytest.raises(ValueError, match="max_nodes"):
        model.prove(max_nodes=0)
    convex = CardBoostClassifier(max_terms=None, l2=0.01).fit(X, score > 0.3)
    with pytest.raises(ValueError, match="prove needs X and y"):
        convex.prove()


# ---------------------------------------------------------------- the proof that goes with a fit


def test_the_proof_of_a_fit_counts_work_and_is_small(tmp_path):
    X, score = table(9, rows=1000, features=20, noise=1.5)
    y = score > 0.3
    models = [CardBoostClassifier(l2=0.01, n_jobs=jobs).fit(X, y) for jobs in (1, 2)]
    contents = [model.certificate_.to_dict() for model in models]
    assert contents[0] == contents[1]
    models[0].save(tmp_path / "model.json")
    without = {**contents[0], "bounds": [{**own, "leaves": []} for own in contents[0]["bounds"]]}
    leaves = len(str(contents[0])) - len(str(without))
    assert leaves < 250_000
    assert len(contents[0]["bounds"][1]["leaves"]) > 10


def test_checking_a_proof_takes_less_than_making_it():
    X, score = table(10, rows=5000, features=20, noise=1.5)
    y = score > 0.3
    begun = time.process_time()
    certificate = CardBoostClassifier(l2=0.01, n_jobs=1).fit(X, y).certificate_
    fitted = time.process_time()
    assert checker.check(certificate.to_dict(), X, y) == []
    assert time.process_time() - fitted < 4.0 * (fitted - begun)


@pytest.mark.parametrize("seed", range(4))
def test_a_proof_over_the_candidates_is_none_over_other_stumps(seed):
    """Without a price worth paying both scopes have the same first leaf, though there are other stumps."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 5, size=(160, 3)), np.arange(160) % 2
    options = {"loss": "exponential", "max_terms": 1, "l0": 0.02, "l1": 0.01, "l2": 0.01, "max_bins": 2}
    for hot_start in (1, 2, 40):
        model = CardBoostClassifier(selector="polish", hot_start=hot_start, n_jobs=1, **options).fit(X, y)
        for proved in (
            pickle.loads(pickle.dumps(model)).prove(X, y, max_nodes=20),
            model.prove(max_nodes=20),
        ):
            assert proved.certificate_.faults(X, y) == []


def test_learners_are_refused_with_a_sentence():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    tree = DecisionTreeClassifier(max_depth=2)
    model = CardBoostClassifier(dictionary=tree, max_terms=2, hot_start=3, random_state=0, n_jobs=1).fit(X, y)
    with pytest.raises(ValueError, match="made of other learners"):
        model.prove(X, y)


def test_a_fit_without_any_candidate_can_be_proved():
    X, y = np.random.default_rng(0).normal(size=(17, 1)), np.arange(17) % 2
    options = {"loss": "exponential", "max_terms": 5, "l2": 0.0, "fit_intercept": False, "n_jobs": 1}
    for own in ({"time_limit": 1e-9}, {"l1": 0.9}, {"monotonic_cst": [1]}):
        model = CardBoostClassifier(**options | own).fit(np.where(X > 0, -y[:, None], X), y)
        assert model.prove().certificate_.faults(np.where(X > 0, -y[:, None], X), y) == []

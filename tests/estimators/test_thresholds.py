"""Operating points of classifiers: rules on out-of-fold scores and on given rows, and what keeps them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from cardboost import CardBoostClassifier, load_model
from cardboost.estimators.selecting import prove_model
from cardboost.problem.budget import Budget

QUICK: dict[str, Any] = {"max_terms": 3, "hot_start": 8, "max_nodes": 50, "n_jobs": 1}


def rows(seed: int = 0, n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0] + 0.7 * X[:, 1]) + rng.normal(size=n) > 0.3
    return X, np.where(y, "yes", "no")


def rates(predicted: Any, y: Any, weight: Any = 1.0) -> tuple[float, float, float]:
    weight = np.broadcast_to(weight, y.shape)
    yes, hit = y == "yes", predicted == "yes"
    held = [float(weight[part].sum()) for part in (hit & yes, yes, hit, hit & ~yes, ~yes)]
    return held[0] / held[1], held[0] / held[2], held[3] / held[4]


@pytest.mark.parametrize("rule", ["recall>=0.95", "precision>=0.6", "fpr<=0.1", {"fp": 1, "fn": 20}, 0.3])
def test_a_rule_in_the_fit(rule: Any) -> None:
    X, y = rows()
    plain = CardBoostClassifier(**QUICK).fit(X, y)
    model = CardBoostClassifier(**QUICK, threshold=rule).fit(X, y)
    assert (model.decision_function(X) == plain.decision_function(X)).all()
    point = model.operating_point_
    assert model.threshold_ == point.score
    assert ((model.predict(X) == "yes") == (model.decision_function(X) > point.score)).all()
    assert model.certificate_.verify(X, y)
    if rule == 0.3:
        assert model.predict_proba(X[model.predict(X) == "yes"])[:, 1].min() > 0.3
        return
    assert "out-of-fold scores of 240 training rows (5 folds)" in str(point)
    if rule == "recall>=0.95":
        assert point.recall >= 0.95
        assert point.score < 0
    elif rule == "precision>=0.6":
        assert point.precision >= 0.6
    elif rule == "fpr<=0.1":
        assert point.fpr <= 0.1
    card = model.scorecard(points=5)
    assert card.ensemble.operating_point.rule == point.rule
    assert card.threshold == card.nearest_total(card.ensemble.threshold + 0.5 * card.point)


def test_order_and_repetition_do_not_matter() -> None:
    X, y = rows(1, 160)
    weight = np.random.default_rng(2).integers(0, 3, size=160)
    model = CardBoostClassifier(**QUICK, threshold="recall>=0.9").fit(X, y, weight)
    repeated = np.repeat(np.random.default_rng(3).permutation(160), 1)
    repeated = np.repeat(repeated, weight[repeated])
    other = CardBoostClassifier(**QUICK, threshold="recall>=0.9").fit(X[repeated], y[repeated])
    point, again = model.operating_point_, other.operating_point_
    assert (point.score, point.recall, point.fpr) == (again.score, again.recall, again.fpr)


@pytest.mark.parametrize("rule", ["recall>=0.9", "precision>=0.7", "fpr<=0.15"])
def test_given_rows_of_model_and_card(rule: str) -> None:
    X, y = rows()
    new, labels = rows(5, 150)
    weight = np.random.default_rng(1).integers(0, 4, size=150)
    model = CardBoostClassifier(**QUICK).fit(X, y)
    assert model.set_threshold(rule, new, labels, weight) is model
    card = model.scorecard()
    for own, point in ((model, model.operating_point_), (card, card.ensemble.operating_point)):
        reached = rates(own.predict(new), labels, weight)
        assert (point.recall, point.precision, point.fpr) == pytest.approx(reached)
        name, value = rule.replace("<", ">").split(">=")
        found = getattr(point, name)
        assert found <= float(value) if name == "fpr" else found >= float(value)
        assert point.rows == f"{(weight > 0).sum()} given rows"
    assert model.set_threshold(None).threshold_ == 0.0
    assert model.set_threshold(0.5).threshold_ == 0.0


def test_what_keeps_a_threshold(tmp_path: Any) -> None:
    X, y = rows()
    model = CardBoostClassifier(**QUICK, threshold="fpr<=0.1").fit(X, y)
    predicted, point = model.predict(X), model.operating_point_
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert (loaded.predict(X) == predicted).all()
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert (other.predict(X) == predicted).all()
    assert clone(model).threshold == "fpr<=0.1"
    content = model.certificate_.to_dict()
    proved, _ = prove_model(
        loaded.ensemble, content, (X, y == "yes", None), budget=Budget.of(None), max_nodes=5
    )
    assert proved.operating_point == point
    assert model.prove(max_nodes=5).operating_point_ == point
    assert "by fpr<=0.1 on out-of-fold scores" in " ".join(model.card().split())
    assert CardBoostClassifier(**QUICK).fit(X, y).operating_point_ is None


def test_other_learners_have_thresholds_too() -> None:
    from sklearn.tree import DecisionTreeClassifier

    X, y = rows()
    X = np.nan_to_num(X)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = CardBoostClassifier(
        dictionary=tree, max_terms=2, hot_start=4, threshold="recall>=0.9", n_jobs=1
    ).fit(X, y)
    assert model.operating_point_.recall >= 0.9
    assert ((model.predict(X) == "yes") == (model.decision_function(X) > model.threshold_)).all()


def test_what_is_refused() -> None:
    X, y = rows()
    with pytest.raises(ValueError, match="threshold must be a probability"):
        CardBoostClassifier(threshold="recall>0.9").fit(X, y)
    with pytest.raises(ValueError, match="threshold is for two classes; there are 3"):
        CardBoostClassifier(**QUICK, threshold=0.4).fit(X, np.arange(len(y)) % 3)
    several = CardBoostClassifier(**QUICK).fit(X, np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match="two classes"):
        several.set_threshold(0.4)
    assert not hasattr(several, "threshold_")
    model = CardBoostClassifier(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match="needs labelled rows"):
        model.set_threshold("recall>=0.9")
    with pytest.raises(ValueError, match="both classes"):
        model.set_threshold("recall>=0.9", X[y == "no"], y[y == "no"])
    with pytest.raises(ValueError, match="none of the classes"):
        model.set_threshold("recall>=0.9", X, np.where(y == "no", "no", "maybe"))
    with pytest.raises(ValueError, match="scores of this loss have no probabilities"):
        CardBoostClassifier(**QUICK, loss="hinge", threshold=0.4).fit(X, y)
    with pytest.raises(ValueError, match="only one distinct row"):
        CardBoostClassifier(**QUICK, threshold="fpr<=0.1").fit(X[:9], ["a"] * 8 + ["b"])


def test_folds_without_time_are_told() -> None:
    X, y = rows()
    with pytest.warns(UserWarning, match="time was up before the models of all folds were complete"):
        CardBoostClassifier(**QUICK, threshold="fpr<=0.1", time_limit=1e-6).fit(X, y)

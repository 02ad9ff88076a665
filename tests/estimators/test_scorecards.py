"""Scorecards of fitted classifiers: in range, certified, hardly worse than the continuous card."""

from __future__ import annotations

import copy
import itertools
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris

from cardboost import CardBoostClassifier, load_model
from cardboost.certificate import checker
from cardboost.estimators import scorecards
from cardboost.export import export_model
from cardboost.export.code_size import c_size
from marks import first


def table(seed: int = 0, rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, labels and missing values."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows)),
            "b": rng.integers(0, 5, rows).astype(float),
            "c": pd.Categorical(rng.choice(["red", "green", "blue", "grey"], rows)),
            "d": rng.normal(size=rows),
        }
    )
    score = X["a"].fillna(-1) + (X["c"] == "red") - 0.4 * X["b"] + rng.normal(size=rows)
    return X, np.where(score > 0, "yes", "no")


@pytest.mark.parametrize(
    ("loss", "points"),
    first(
        5,
        [
            ("logistic", None), ("exponential", 1), ("logistic", (0, 3)), ("exponential", (-7, 0)),
            ("logistic", (-20, 20)), ("exponential", None), ("logistic", 1), ("logistic", 5),
            ("exponential", 5), ("exponential", (0, 3)), ("logistic", (-7, 0)), ("exponential", (-20, 20)),
        ],
    ),
)  # fmt: skip
def test_points_are_in_range_and_every_claim_holds(loss: str, points: Any) -> None:
    X, y = table()
    model = CardBoostClassifier(max_terms=6, l2=0.01, loss=loss, hot_start=14).fit(X, y)
    card = model.scorecard(points)
    most = {None: 10, 1: 1, 5: 5, (0, 3): 3, (-7, 0): 7, (-20, 20): 20}[points]
    assert card.ensemble.n_terms <= 6
    assert all(1 <= p <= most for p in card.ensemble.term_points())
    values = [line.points for own in card.sections for line in own.lines]
    assert (max(values) <= 0) if points == (-7, 0) else (min(values) >= 0)
    assert card.certificate.faults(X, y) == []
    before = model.certificate_
    assert card.certificate.continuous_objective == before.objective
    assert card.certificate.objective >= before.objective - 1e-12
    assert card.certificate.lower_bound == before.lower_bound
    assert 0 <= card.certificate.points_cost < (0.5 if most == 1 else 0.05)
    scores = card.ensemble.decision_function(X)
    far = np.abs(scores) > 1e-9
    assert (card.predict(X)[far] == np.where(scores > 0, "yes", "no")[far]).all()


def test_the_certificate_of_a_card_is_refused_after_any_change() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    content = (
        CardBoostClassifier(max_terms=4, l2=0.01, hot_start=14, selector="exact")
        .fit(X, y)
        .scorecard()
        .certificate.to_dict()
    )
    label = y == 1

    def faults(change: Any) -> list[str]:
        own = pickle.loads(pickle.dumps(content))
        change(own)
        own["digest"] = checker.content_digest(own)
        return checker.check(own, X, label)

    assert faults(lambda own: None) == []
    for where, change in {
        "solution.weights[0][1]": lambda own: own["solution"]["weights"][0].__setitem__(1, 0.12345),
        "solution.objective": lambda own: own["solution"].__setitem__("objective", 0.1),
        "points.continuous.objective": lambda own: own["points"]["continuous"].__setitem__("objective", 0.2),
        "points.continuous.weights": lambda own: own["points"]["continuous"]["weights"].append([99, 1.0]),
        "points.most": lambda own: own["points"].__setitem__("most", -1),
        "points.unit": lambda own: own["points"].__setitem__("unit", 0),
        "points": lambda own: own.pop("points"),
        "bounds[0].guarantee": lambda own: own["bounds"][0].__setitem__("guarantee", 1.0),
        "bounds[0].lower_bound": lambda own: own["bounds"][0].__setitem__("lower_bound", 0.11),
    }.items():
        found = faults(change)
        assert any(fault.startswith(where) for fault in found), (where, found)
    fewer = faults(lambda own: own["points"].__setitem__("most", 1))
    assert any("is not 1 to 1 times the unit" in fault for fault in fewer)
    # without the continuous card as its limit, a proof that rests on it does not hold
    weaker = faults(lambda own: own.__setitem__("points", None))
    assert weaker == [] or all(fault.startswith(("bounds", "status")) for fault in weaker)


def test_fewer_terms_than_the_fit_was_allowed() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = CardBoostClassifier(max_terms=8, l2=0.01, hot_start=16).fit(X, y)
    values = []
    for k in (1, 2, 4, 8, 20):
        card = model.scorecard(max_terms=k)
        assert card.n_terms <= min(k, 8)
        assert card.certificate.verify(X, y)
        values.append(card.certificate.objective)
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_a_scale_of_odds(loss: str) -> None:
    X, y = table(1)
    model = CardBoostClassifier(max_terms=5, l2=0.01, loss=loss, hot_start=14).fit(X, y)
    card = model.scorecard(base_score=600, base_odds=50, points_to_double_odds=20)
    chance = card.probability(np.array([600, 620]))
    np.testing.assert_allclose(chance / (1 - chance), [50.0, 100.0], rtol=1e-6)
    assert card.certificate.faults(X, y) == []
    assert card.certificate.points_cost < 1e-3
    assert model.scorecard(points_to_double_odds=10).scale.base_score == 0
    coarse = model.scorecard(10, points_to_double_odds=3)
    assert max(coarse.ensemble.term_points()) <= 10


@pytest.mark.parametrize(
    ("fit_intercept", "scale"),
    [
        (False, {}),
        (True, {}),
        (True, {"points_to_double_odds": 20}),
        (True, {"base_score": 600, "base_odds": 3}),
    ],
)
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_points_add_up_without_rounding(seed: int, fit_intercept: bool, scale: dict[str, float]) -> None:
    """Any order of the terms gives the same score, so every export can promise the same decisions."""
    X, y = table(seed)
    model = CardBoostClassifier(max_terms=6, l2=0.01, hot_start=14, fit_intercept=fit_intercept).fit(X, y)
    ensemble = model.scorecard(3, **scale).ensemble
    weights = np.array([term.weight for term in ensemble.terms])
    rng = np.random.default_rng(seed)
    for _ in range(50):
        signs = rng.choice([-1.0, 1.0], len(weights))
        parts = rng.permutation(np.append(ensemble.intercept, signs * weights))
        assert sum(map(Fraction, parts)) == Fraction(sum(parts.tolist()))
    assert c_size(ensemble) > 0


def test_the_same_card_again_from_copies_and_from_a_file(tmp_path: Any) -> None:
    X, y = table(2)
    model = CardBoostClassifier(max_terms=5, l2=0.01, hot_start=14, random_state=0).fit(X, y)
    card = model.scorecard(points_to_double_odds=15)
    for other in (copy.copy(model), copy.deepcopy(model), clone(model).fit(X.iloc[::-1], y[::-1])):
        assert other.scorecard(points_to_double_odds=15).ensemble == card.ensemble
    with pytest.raises(ValueError, match="fit the model in this process first"):
        pickle.loads(pickle.dumps(model)).scorecard()
    card.save(tmp_path / "card.json")
    saved = load_model(tmp_path / "card.json")
    assert saved.scorecard().scale == card.scale
    assert checker.check(saved.certificate, X, y == "yes") == []
    np.testing.assert_array_equal(saved.decision_function(X), card.ensemble.decision_function(X))
    assert export_model(card, "python") == export_model(saved, "python")


@pytest.mark.long
def test_limits_on_features_and_prices_hold_for_cards_too() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = CardBoostClassifier(
        max_terms=8, l2=0.01, hot_start=14, max_features=2, feature_costs=np.linspace(0, 0.01, 30)
    ).fit(X, y)
    card = model.scorecard()
    assert len(card.sections) <= 2
    assert card.certificate.faults(X, y) == []
    priced = CardBoostClassifier(max_terms=None, l2=0.01, l0=0.01, hot_start=14).fit(X, y).scorecard(5)
    assert priced.certificate.faults(X, y) == []


def test_refusals() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = CardBoostClassifier(max_terms=2, l2=0.01, hot_start=9).fit(X, y)
    for points in (0, -3, 2.5, "ten", (1, 5), (-5, -1), (0, 0), (1, 2, 3), True, 10**6):
        with pytest.raises(ValueError, match="points must be"):
            model.scorecard(points)
    for name in ("base_odds", "points_to_double_odds"):
        with pytest.raises(ValueError, match=f"{name}: expected"):
            model.scorecard(**{name: -1})
    with pytest.raises(ValueError, match="max_terms"):
        model.scorecard(max_terms=0)
    with pytest.raises(ValueError, match="time_limit"):
        model.scorecard(time_limit=0)
    assert model.scorecard(time_limit=1e-9).certificate.verify(X, y)
    with pytest.raises(ValueError, match="not selected from candidates"):
        CardBoostClassifier(max_terms=None, l2=0.01, max_iter=5).fit(X, y).scorecard()
    with pytest.raises(ValueError, match="fit_intercept"):
        CardBoostClassifier(max_terms=2, l2=0.01, fit_intercept=False).fit(X, y).scorecard(base_score=100)
    with pytest.raises(ValueError, match="two classes; this model has 3"):
        CardBoostClassifier(max_terms=2, l2=0.01).fit(*load_iris(return_X_y=True)).scorecard()
    with pytest.raises(Exception, match="not fitted"):
        CardBoostClassifier(l2=0.01).scorecard()


@pytest.mark.long
def test_a_budget_of_bytes_takes_the_largest_card_that_fits() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = CardBoostClassifier(max_terms=8, l2=0.01, hot_start=16, selector="polish").fit(X, y)
    whole = model.scorecard(5)
    assert model.scorecard(5, max_bytes=10_000).ensemble == whole.ensemble
    budget = c_size(whole.ensemble) + 3
    card = model.scorecard(5, max_bytes=budget)
    assert c_size(card.ensemble) + 4 <= budget
    assert card.n_terms < whole.n_terms
    assert card.certificate.verify(X, y)
    one_more = model.scorecard(5, max_terms=card.n_terms + 1)
    assert c_size(one_more.ensemble) + 4 > budget or one_more.n_terms == card.n_terms
    with pytest.raises(ValueError, match="no card fits into 3 bytes"):
        model.scorecard(max_bytes=3)
    with pytest.raises(ValueError, match="max_bytes"):
        model.scorecard(max_bytes=0)


@pytest.fixture(scope="module")
def ten_terms():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 5))
    y = np.sin(2 * X[:, :4]).sum(axis=1) + 0.5 * rng.normal(size=400) > 0
    model = CardBoostClassifier(max_terms=10, l2=0.01, hot_start=25, max_nodes=50, n_jobs=1).fit(X, y)
    assert model.ensemble_.n_terms == 10
    return model, X, y


@pytest.mark.parametrize("max_terms", [1, 3, 9])
@pytest.mark.parametrize("limit", [1e-9, 1e-6, 1e-3])
def test_a_limit_on_terms_holds_whatever_the_time(ten_terms, max_terms, limit):
    model, X, y = ten_terms
    card = model.scorecard(max_terms=max_terms, time_limit=limit)
    assert 1 <= card.n_terms <= max_terms
    assert card.certificate.verify(X, y)


@pytest.mark.parametrize("limit", [1e-6, 0.05])
@pytest.mark.parametrize(("max_bytes", "fits"), [(1, False), (48, True), (160, True), (220, True)])
def test_the_search_within_a_budget_of_bytes_ends(ten_terms, monkeypatch, max_bytes, fits, limit):
    """With no time at all too: every card that is too large lowers the number of terms."""
    model, X, y = ten_terms
    looks, choose = itertools.count(), scorecards.Candidates.in_points

    def counted(self, *rest):
        assert next(looks) < 20, "the search goes on for ever"
        return choose(self, *rest)

    monkeypatch.setattr(scorecards.Candidates, "in_points", counted)
    if not fits:
        with pytest.raises(ValueError, match=f"no card fits into {max_bytes} bytes"):
            model.scorecard(max_bytes=max_bytes, time_limit=limit)
        return
    card = model.scorecard(max_bytes=max_bytes, time_limit=limit)
    assert c_size(card.ensemble) <= max_bytes
    assert card.certificate.verify(X, y)


@pytest.mark.parametrize("time_limit", [None, 1e-6, 0.05])
def test_points_of_a_given_scale_stay_in_the_box(time_limit):
    """A point of ln 2 and weights of at most 2: two points a term, and no search for a smaller point."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = X[:, 0] + 0.2 * X[:, 1] > 0.1
    for box in (2.0, 0.3):
        model = CardBoostClassifier(max_terms=3, max_weight=box, l2=0.0, hot_start=10, n_jobs=1).fit(X, y)
        card = model.scorecard(points=10, points_to_double_odds=1.0, time_limit=time_limit)
        assert max((term.weight for term in card.ensemble.terms), default=0.0) <= box
        assert card.certificate.faults(X, y) == []

"""What a model file says of rows, against the estimators that wrote it, and batch by batch."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardboost import CardBoostClassifier, CardBoostRegressor, NeuralBoostClassifier, SparseLogisticRegression
from cardboost.data.frame import Coded, Frame
from cardboost.model import Ensemble, Model, MulticlassEnsemble, Term, load_model
from cardboost.model.predictions import (
    Predictions,
    has_probabilities,
    label_codes,
    model_predictions,
    scorecard_of,
    top_reasons,
)
from cardboost.model.scorecard import Scorecard
from cardboost.report.facts import Threshold, evaluate, evaluate_predictions

from drawn_models import (  # isort: skip
    as_table,
    drawn_ensembles,
    drawn_multiclass,
    rows_for,
    slow_feature,
    slow_score,
)

WORDS = ("blue", "green", "red")


def table(n: int = 400) -> Frame:
    """Two columns of numbers with gaps, one of text with gaps, one that says nothing."""
    rng = np.random.default_rng(0)
    age, dose = rng.integers(18, 90, n).astype(float), rng.normal(size=n).round(2)
    age[::17] = np.nan
    colour = Coded(WORDS, rng.integers(-1, 3, n).astype(np.int32))
    return Frame({"age": age, "dose": dose, "colour": colour, "noise": rng.random(n)}, n)


def target(frame: Frame) -> Any:
    age, colour = np.nan_to_num(frame.data["age"], nan=50.0), frame.data["colour"].codes  # type: ignore
    noise = np.random.default_rng(1).normal(size=len(frame))
    return (age - 50) / 20 + (colour == 2) - 0.5 * (frame.data["dose"] > 0.3) + 0.5 * noise  # type: ignore


def saved(estimator: Any, path: Path) -> Model:
    estimator.save(path / "model.json")
    return load_model(path / "model.json")


@cache
def fitted(task: str) -> tuple[Any, Frame, Any]:
    frame = table()
    y = target(frame)
    if task == "regression":
        return CardBoostRegressor(max_terms=6, l2=0.01).fit(frame, y), frame, y
    edges, names = ([0.0], ["no", "yes"]) if task == "binary" else ([-0.7, 0.5], ["high", "low", "mid"])
    labels = np.array(names)[np.searchsorted(edges, y)]
    return CardBoostClassifier(max_terms=6, l2=0.01).fit(frame, labels), frame, labels


def batches(frame: Frame, size: int) -> list[Frame]:
    """Some rows at a time; every batch knows the labels of its own rows only, columns in another order."""
    found = []
    for start in range(0, len(frame), size):
        part: dict[str, Any] = {}
        for name, values in reversed(frame.data.items()):
            rows = values[start : start + size]
            if isinstance(rows, Coded):
                used, codes = np.unique(rows.codes, return_inverse=True)
                labels = tuple(rows.labels[code] for code in used if code >= 0)
                rows = Coded(labels, (codes - (used[0] < 0)).astype(np.int32))
            part[name] = rows
        found.append(Frame(part, len(part["age"])))
    return found


# ------------------------------------------------------------------------------------ as the estimator


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_predictions_are_those_of_the_estimator(task: str, tmp_path: Path) -> None:
    estimator, frame, y = fitted(task)
    model = saved(estimator, tmp_path)
    found = model_predictions(model, frame)
    assert found.task == task
    assert found.points is None
    assert len(found) == len(frame)
    assert (found.predicted == estimator.predict(frame)).all()
    if task == "regression":
        assert found.classes is None
        assert found.probability is None
        assert (found.score == found.predicted).all()
        facts = evaluate_predictions(found, y, n_bootstrap=0)
        assert facts.measures["r2"].value == pytest.approx(estimator.score(frame, y), abs=1e-12)
        return
    assert found.probability is not None
    assert found.classes == tuple(estimator.classes_)
    assert (found.score == estimator.decision_function(frame)).all()
    assert (found.probability == estimator.predict_proba(frame)).all()
    codes = label_codes(y, found.classes)
    facts = evaluate_predictions(found, codes, n_bootstrap=0)
    if task == "binary":
        with pytest.raises(ValueError, match="a threshold in points needs a scorecard"):
            evaluate_predictions(found, codes, threshold=Threshold("points", 3))
    assert facts.measures["accuracy"].value == pytest.approx(estimator.score(frame, y), abs=1e-12)
    assert facts.confusion is not None
    assert facts.confusion.labels == found.classes


@pytest.mark.parametrize("options", [{}, {"base_score": 600, "base_odds": 20, "points_to_double_odds": 20}])
def test_predictions_of_a_scorecard_follow_from_its_totals(options: dict[str, Any], tmp_path: Path) -> None:
    estimator, frame, y = fitted("binary")
    card = estimator.scorecard(**options)
    card.save(tmp_path / "card.json")
    model = load_model(tmp_path / "card.json")
    found = model_predictions(model, frame)
    assert found.points is not None
    assert found.probability is not None
    assert (found.points == card.points(frame).sum(axis=1) + card.start).all()
    assert (found.points == card.total(frame)).all()
    assert (found.predicted == card.predict(frame)).all()
    assert (found.probability == card.predict_proba(frame)).all()
    assert (found.predicted == card.ensemble.predict(frame)).all()
    np.testing.assert_allclose(found.score, card.ensemble.decision_function(frame), atol=1e-9)
    assert len(np.unique(found.score)) == len(np.unique(found.points))
    assert top_reasons(model, frame, 3) == card.reasons(frame, 3)
    facts = evaluate_predictions(found, label_codes(y, found.classes), n_bootstrap=0)
    assert facts.threshold == Threshold("points", card.threshold)
    assert facts.measures["accuracy"].value == pytest.approx(np.mean(found.predicted == y), abs=1e-12)
    by_score = evaluate(
        "binary", label_codes(y, found.classes), found.score, probability=found.probability[:, 1]
    )
    assert by_score.measures["auc"].value == facts.measures["auc"].value
    score = evaluate_predictions(found, label_codes(y, found.classes), threshold=Threshold(), n_bootstrap=0)
    assert score.confusion == facts.confusion
    other = evaluate_predictions(
        found, label_codes(y, found.classes), threshold=Threshold("probability", 0.9), n_bootstrap=0
    )
    assert other.measures["sensitivity"].value < facts.measures["sensitivity"].value  # type: ignore[operator]


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression", "scorecard"])
@pytest.mark.parametrize("size", [1, 37])
def test_batches_give_the_same_bits(task: str, size: int, tmp_path: Path) -> None:
    estimator, frame, _ = fitted("binary" if task == "scorecard" else task)
    model = saved(estimator.scorecard() if task == "scorecard" else estimator, tmp_path)
    frame = frame.take_rows(np.arange(111))
    whole = model_predictions(model, frame)
    parts = batches(frame, size)
    joined = Predictions.joined([model_predictions(model, part) for part in parts])
    for name in ("score", "probability", "predicted", "points"):
        one, two = getattr(whole, name), getattr(joined, name)
        assert (one is None and two is None) or (one == two).all(), name
    assert joined.points_threshold == whole.points_threshold
    reasons = [reason for part in parts for reason in top_reasons(model, part, 2)]
    assert reasons == top_reasons(model, frame, 2)


def test_other_models_predict_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=80) > 0, "b", "a")
    for estimator in (SparseLogisticRegression(), NeuralBoostClassifier(max_iter=2, random_state=0)):
        model = saved(estimator.fit(X, y), tmp_path)
        found = model_predictions(model, X)
        assert found.probability is not None
        assert (found.probability == model.predict_proba(X)).all()
        assert (found.predicted == estimator.predict(X)).all()
        with pytest.raises(ValueError, match="reasons are for cards"):
            top_reasons(model, X, 3)


@pytest.mark.parametrize("loss", ["hinge", "own"])
def test_losses_without_probabilities(loss: str) -> None:
    term = Term(0, 0.5, 1, False, 1.0)
    two = Ensemble(loss, 0.0, (term,), None, 1, (False, True))
    for ensemble in (two, MulticlassEnsemble(("a", "b", "c"), (two, two, two))):
        assert not has_probabilities(ensemble)
        assert model_predictions(Model(ensemble), np.array([[0.0], [1.0]])).probability is None
    unit = Ensemble(loss, 0.0, (term,), None, 1, (False, True), unit=1.0)
    assert scorecard_of(Model(unit)) is None  # its points would be no log-odds


def test_columns_by_name(tmp_path: Path) -> None:
    estimator, frame, _ = fitted("binary")
    model = saved(estimator, tmp_path)
    used = [frame.columns[j] for j in model.ensemble.features_used]
    few = Frame({name: frame.data[name] for name in reversed(used)}, len(frame))
    assert (model_predictions(model, few).score == model_predictions(model, frame).score).all()
    few.data.pop("age")
    with pytest.raises(ValueError, match="the column 'age', which the model uses, is absent"):
        model_predictions(model, few)


# ------------------------------------------------------------------------------------ labels


@pytest.mark.parametrize(
    ("classes", "labels", "codes"),
    [
        (("no", "yes"), Coded(("maybe", "no", "yes"), np.array([2, 1, 2])), [1, 0, 1]),
        ((0, 1), np.array([1.0, 0.0]), [1, 0]),
        ((0, 1), ["1", "0"], [1, 0]),
        (("0", "1"), np.array([1.0, 0.0]), [1, 0]),
        ((False, True), np.array(["true", "false"], dtype=object), [1, 0]),
        ((1, 2.5, 3), [2.5, 3, 1, 1], [1, 2, 0, 0]),
    ],
)
def test_labels_of_files_are_those_of_the_model(classes: Any, labels: Any, codes: list[int]) -> None:
    found = Predictions("binary", classes, np.zeros(2), None, np.zeros(2))
    assert label_codes(labels, found.classes).tolist() == codes


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["no", "maybe"], r'the label "maybe" is none of the model\'s classes \("no", "yes"\)'),
        (Coded(("no",), np.array([0, -1, -1])), "2 of 3 rows have no label"),
        (np.array([1.0, np.nan]), "1 of 2 rows have no label"),
        (np.array(["no", None], dtype=object), "1 of 2 rows have no label"),
    ],
)
def test_labels_that_the_model_does_not_have(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        label_codes(labels, ("no", "yes"))


# ------------------------------------------------------------------------------------ reasons


@given(ensemble=drawn_ensembles(), seed=st.integers(0, 2**16))
def test_reasons_of_a_card(ensemble: Ensemble, seed: int) -> None:
    rows = rows_for(ensemble, np.random.default_rng(seed), 10)
    reasons = top_reasons(Model(ensemble), as_table(rows, ensemble.categories), 10)
    steps = {step.feature: step for step in ensemble.step_functions()}
    predicted = ensemble.decision_function(as_table(rows, ensemble.categories)) > 0
    for row, second, row_reasons in zip(rows, predicted, reasons, strict=True):
        sizes = [abs(reason.points) for reason in row_reasons]
        assert sizes == sorted(sizes, reverse=True)
        found = {reason.feature: reason.points for reason in row_reasons}
        assert len(found) == len(row_reasons)
        for feature, step in steps.items():
            level = slow_feature(ensemble, feature, row[feature])
            low, high = (end(*step.levels, step.missing) for end in (min, max))
            push = level - 0.5 * (low + high)
            if ensemble.classes is not None:
                push = level - low if second else high - level
            assert found.get(feature, 0.0) == pytest.approx(push, abs=1e-9)
            missing = row[feature] is None or row[feature] != row[feature]
            texts = [reason.text for reason in row_reasons if reason.feature == feature]
            assert all(text.startswith("missing") for text in texts) or not missing


@given(ensemble=drawn_multiclass(), seed=st.integers(0, 2**16))
def test_reasons_of_many_classes_are_about_the_predicted_one(ensemble: MulticlassEnsemble, seed: int) -> None:
    rows = rows_for(ensemble, np.random.default_rng(seed), 5)
    reasons = top_reasons(Model(ensemble), as_table(rows, ensemble.categories), 3)
    scores = ensemble.decision_function(as_table(rows, ensemble.categories))
    for row, score, row_reasons in zip(rows, scores, reasons, strict=True):
        part = ensemble.ensembles[int(np.argmax(score))]
        assert len(row_reasons) <= 3
        for reason in row_reasons:
            step = next(step for step in part.step_functions() if step.feature == reason.feature)
            low = min(*step.levels, step.missing)
            push = slow_feature(part, reason.feature, row[reason.feature]) - low
            assert reason.points == pytest.approx(push, abs=1e-9)
            assert reason.points > 0.0


def test_reasons_say_the_line() -> None:
    terms = (Term(0, 2.5, 1, False, 2.0), Term(1, 10.0, -1, True, 0.5))
    number = Ensemble("squared", 7.0, terms, ("age", "dose"), 2, None)
    first, second = top_reasons(Model(number), np.array([[1.0, 20.0], [np.nan, 5.0]]), 2)
    assert [(r.name, r.text, r.points) for r in first] == [("age", "<= 2.5", 2.0), ("dose", "> 10", 0.5)]
    assert [(r.name, r.text, r.points) for r in second] == [("age", "missing", -2.0), ("dose", "<= 10", -0.5)]
    two = Ensemble("logistic", 0.0, terms, ("age", "dose"), 2, ("ill", "well"))
    reasons = top_reasons(Model(two), np.array([[1.0, 5.0], [9.0, 20.0]]), 1)
    assert [(r[0].text, r[0].points) for r in reasons] == [("<= 2.5", 4.0), ("> 2.5", 4.0)]
    empty = Ensemble("logistic", 0.0, (), None, 2, (0, 1))
    assert top_reasons(Model(empty), np.zeros((2, 2)), 3) == [[], []]
    card = Scorecard(Ensemble("logistic", 0.0, terms, ("age", "dose"), 2, ("ill", "well"), unit=0.5))
    assert isinstance(card.reasons(np.zeros((1, 2)))[0][0].points, int)
    with pytest.raises(ValueError, match="most must be a whole number from 1"):
        top_reasons(Model(two), np.zeros((1, 2)), 0)


def test_scores_are_slow_ones() -> None:
    """A frame of files, row by row in the words of the specification."""
    estimator, frame, _ = fitted("binary")
    ensemble = estimator.ensemble_
    found = model_predictions(Model(ensemble), frame)
    columns = [
        values.objects().tolist() if isinstance(values, Coded) else values.tolist()
        for values in frame.data.values()
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    np.testing.assert_allclose(found.score, [slow_score(ensemble, row) for row in rows], atol=1e-12)

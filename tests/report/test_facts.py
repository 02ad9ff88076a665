"""Facts against scikit-learn and SciPy, laws of weights and order, intervals, and rows at the limits."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as skm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from cardboost.data.frame import Coded
from cardboost.report import measures as ms
from cardboost.report.facts import Estimate, Facts, Grouping, Threshold, evaluate

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def drawn(task: str, seed: int, n: int, ties: bool = True) -> dict[str, Any]:
    """Rows of a task: arguments of evaluate."""
    rng = np.random.default_rng(seed)
    if task == "multiclass":
        score = rng.normal(size=(n, 3))
        score = score.round(1) if ties else score
        chance = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
        y = (chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 2)
        return {"task": task, "y": y, "prediction": score, "probability": chance}
    score = rng.normal(size=n)
    score = score.round(1) if ties else score
    if task == "regression":
        return {"task": task, "y": 5.0 + score + rng.normal(size=n), "prediction": 5.1 + score}
    chance = 1.0 / (1.0 + np.exp(-score))
    y = (rng.random(n) < chance).astype(int)
    return {"task": task, "y": y, "prediction": score, "probability": chance}


def values(facts: Facts) -> dict[str, Any]:
    """All that does not count rows."""
    found: dict[str, Any] = {name: estimate.value for name, estimate in facts.measures.items()}
    found |= {"weight": facts.weight, "ks_at": facts.ks_at}
    if facts.confusion is not None:
        found["confusion"] = facts.confusion.weight
    found["calibration"] = [(g.weight, g.predicted, g.observed.value) for g in facts.calibration]
    found["classes"] = [
        [each.value for each in (c.share, c.recall, c.precision, c.auc)] for c in facts.classes
    ]
    return found


def assert_equal(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for name in left:
        a, b = (np.array(side[name], dtype=np.float64) for side in (left, right))
        np.testing.assert_allclose(a, b, **CLOSE, err_msg=name)


TASKS = ("binary", "multiclass", "regression")


# ------------------------------------------------------------------------------------ the same as elsewhere


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_two_classes_as_scikit_learn(seed: int, weighted: bool) -> None:
    own = drawn("binary", seed, 400, ties=seed % 2 == 0)
    y, score, p = own["y"], own["prediction"], own["probability"]
    w = np.random.default_rng(seed).integers(0, 4, 400) * 0.7 if weighted else None
    facts = evaluate(**own, sample_weight=w, n_bootstrap=0)
    decided = score > 0
    table = skm.confusion_matrix(y, decided, sample_weight=w)
    expected = {
        "event_share": np.average(y, weights=w),
        "auc": skm.roc_auc_score(y, score, sample_weight=w),
        "gini": 2 * skm.roc_auc_score(y, score, sample_weight=w) - 1,
        "log_loss": skm.log_loss(y, p, sample_weight=w),
        "brier": skm.brier_score_loss(y, p, sample_weight=w),
        "calibration_in_the_large": np.average(p - y, weights=w),
        "accuracy": skm.accuracy_score(y, decided, sample_weight=w),
        "sensitivity": skm.recall_score(y, decided, sample_weight=w),
        "specificity": skm.recall_score(1 - y, ~decided, sample_weight=w),
        "precision": skm.precision_score(y, decided, sample_weight=w),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(facts.measures[name].value, value, **CLOSE, err_msg=name)
    assert facts.confusion is not None
    np.testing.assert_allclose(facts.confusion.weight, table, **CLOSE)
    present = slice(None) if w is None else w > 0
    assert facts.confusion.rows == tuple(
        map(tuple, skm.confusion_matrix(y[present], decided[present]).tolist())
    )
    assert facts.events == y[present].sum()
    low, high, _ = skm.roc_curve(y, score, sample_weight=w, drop_intermediate=False)
    np.testing.assert_allclose(facts.measures["ks"].value, np.abs(high - low).max(), **CLOSE)
    if w is None:
        result = ks_2samp(score[y == 0], score[y == 1])
        np.testing.assert_allclose(facts.measures["ks"].value, result.statistic, **CLOSE)
        assert facts.ks_at == result.statistic_location


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_more_classes_as_scikit_learn(seed: int, weighted: bool) -> None:
    own = drawn("multiclass", seed, 300, ties=seed % 2 == 0)
    y, p = own["y"], own["probability"]
    w = np.random.default_rng(seed).random(300) if weighted else None
    facts = evaluate(**own, sample_weight=w, n_bootstrap=0, classes=("a", "b", "c"))
    predicted = np.argmax(own["prediction"], axis=1)
    expected = {
        "accuracy": skm.accuracy_score(y, predicted, sample_weight=w),
        "log_loss": skm.log_loss(y, p, sample_weight=w),
        "auc": skm.roc_auc_score(y, p, multi_class="ovr", sample_weight=w),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(facts.measures[name].value, value, **CLOSE, err_msg=name)
    assert facts.confusion is not None
    np.testing.assert_allclose(
        facts.confusion.weight, skm.confusion_matrix(y, predicted, sample_weight=w), **CLOSE
    )
    recall = skm.recall_score(y, predicted, average=None, sample_weight=w)
    precision = skm.precision_score(y, predicted, average=None, sample_weight=w)
    np.testing.assert_allclose([c.recall.value for c in facts.classes], recall, **CLOSE)
    np.testing.assert_allclose([c.precision.value for c in facts.classes], precision, **CLOSE)
    assert [c.label for c in facts.classes] == ["a", "b", "c"]
    assert [c.rows for c in facts.classes] == np.bincount(y).tolist()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_numbers_as_scikit_learn(seed: int, weighted: bool) -> None:
    own = drawn("regression", seed, 301)
    y, prediction = own["y"], own["prediction"]
    w = np.random.default_rng(seed).integers(1, 4, 301) * 1.0 if weighted else None
    facts = evaluate(**own, sample_weight=w, n_bootstrap=0)
    expected = {
        "rmse": skm.root_mean_squared_error(y, prediction, sample_weight=w),
        "mae": skm.mean_absolute_error(y, prediction, sample_weight=w),
        "median_absolute_error": skm.median_absolute_error(y, prediction, sample_weight=w),
        "r2": skm.r2_score(y, prediction, sample_weight=w),
        "bias": np.average(prediction - y, weights=w),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(facts.measures[name].value, value, **CLOSE, err_msg=name)
    assert facts.confusion is None
    assert facts.events is None


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [0.1] * 6, [1, 2, 3], [0.3, 0.3, 0.6], [5, 1, 1]])
def test_the_weighted_median_is_that_of_repeated_values(weights: list[float]) -> None:
    ordered = np.arange(len(weights)) ** 2.0
    repeated = np.repeat(ordered, np.rint(np.array(weights) * 10).astype(int))
    assert ms.weighted_median(ordered, np.array(weights, dtype=float)) == np.median(repeated)


# ------------------------------------------------------------------------------------ laws


@pytest.mark.parametrize("task", TASKS)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), n=st.integers(2, 60))
def test_weight_two_is_the_row_twice(task: str, seed: int, n: int) -> None:
    own, rng = drawn(task, seed, n), np.random.default_rng(seed)
    times = rng.integers(0, 4, n)
    times[0] = 1
    repeated = {key: np.repeat(each, times, axis=0) for key, each in own.items() if key != "task"}
    once = evaluate(**own, sample_weight=times, n_bootstrap=0)
    assert_equal(values(once), values(evaluate(task, **repeated, n_bootstrap=0)))


@pytest.mark.parametrize("task", TASKS)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), n=st.integers(2, 60))
def test_the_order_of_the_rows_does_not_matter(task: str, seed: int, n: int) -> None:
    own, rng = drawn(task, seed, n), np.random.default_rng(seed)
    weight, by = rng.random(n) * 3, Grouping.of("by", rng.integers(0, 3, n).astype(float))
    order = rng.permutation(n)
    other = {key: each if key == "task" else each[order] for key, each in own.items()}
    one = evaluate(**own, sample_weight=weight, by=by, n_bootstrap=5)
    two = evaluate(
        **other, sample_weight=weight[order], by=Grouping("by", by.labels, by.codes[order]), n_bootstrap=5
    )
    assert one.to_dict() == two.to_dict()  # intervals too


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("factor", [1e-300, 0.3, 1e300])
def test_only_ratios_of_weights_count(task: str, factor: float) -> None:
    own = drawn(task, 3, 50)
    weight = np.random.default_rng(3).random(50)
    one = values(evaluate(**own, sample_weight=weight, n_bootstrap=0))
    two = values(evaluate(**own, sample_weight=weight * factor, n_bootstrap=0))
    for found in (one, two):
        for name in ("weight", "confusion"):
            found.pop(name, None)
        found["calibration"] = [group[1:] for group in found["calibration"]]
    assert_equal(one, two)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**16), n=st.integers(1, 200), digits=st.integers(0, 3))
def test_calibration_groups_divide_the_weight(seed: int, n: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    prediction, weight = rng.random(n).round(digits), rng.random(n) + 0.1
    group = ms.calibration_groups(prediction, weight)
    assert set(group.tolist()) == set(range(int(group.max()) + 1))
    assert group.max() < 10
    order = np.argsort(prediction, kind="stable")
    assert (np.diff(group[order]) >= 0).all()  # ascending, and
    assert len({(p, g) for p, g in zip(prediction, group, strict=True)}) == len(set(prediction))  # together
    held = np.bincount(np.unique(prediction, return_inverse=True)[1], weight)
    assert np.bincount(group, weight).max() <= weight.sum() / 10 + 2 * held.max()


def test_a_last_group_of_next_to_no_weight_is_not_alone() -> None:
    group = ms.calibration_groups(np.arange(21.0), np.append(np.ones(20), 1e-13))
    assert group.tolist() == [k // 2 for k in range(20)] + [9]


def test_the_calibration_table_is_that_of_its_groups() -> None:
    own = drawn("binary", 0, 1000, ties=False)
    facts = evaluate(**own, n_bootstrap=0)
    assert [group.rows for group in facts.calibration] == [100] * 10
    order = np.argsort(own["probability"])
    for rows, group in zip(order.reshape(10, 100), facts.calibration, strict=True):
        assert group.predicted == pytest.approx(own["probability"][rows].mean(), abs=1e-12)
        assert group.observed.value == pytest.approx(own["y"][rows].mean(), abs=1e-12)
        assert group.weight == 100.0


@pytest.mark.parametrize(
    ("threshold", "hits"),
    [
        (Threshold("score", 2.0), 1),
        (Threshold("points", 2.0), 2),
        (Threshold("probability", 0.7), 2),
        (None, 3),
    ],
)
def test_where_the_positive_class_begins(threshold: Threshold | None, hits: int) -> None:
    facts = evaluate(
        "binary", [1] * 4, [0, 1, 2, 3], probability=[0.5, 0.6, 0.7, 0.8], threshold=threshold, n_bootstrap=0
    )
    assert facts.confusion is not None
    assert facts.confusion.rows == ((0, 0), (4 - hits, hits))


# ------------------------------------------------------------------------------------ intervals


def slow_auc_interval(own: dict[str, Any], weight: Any, n_resamples: int, seed: int) -> list[float]:
    """By drawing sorted rows and asking scikit-learn."""
    order = np.lexsort((weight, own["y"], own["probability"], own["prediction"]))
    random, found = np.random.default_rng(seed), []
    for _ in range(n_resamples):
        rows = order[random.integers(0, len(order), len(order))]
        found.append(skm.roc_auc_score(own["y"][rows], own["prediction"][rows], sample_weight=weight[rows]))
    return np.quantile(found, (0.025, 0.975)).tolist()


def test_intervals_are_those_of_a_direct_computation() -> None:
    own, weight = drawn("binary", 1, 300, ties=False), np.random.default_rng(1).random(300)
    auc = evaluate(**own, sample_weight=weight, n_bootstrap=50, seed=7).measures["auc"]
    np.testing.assert_allclose((auc.low, auc.high), slow_auc_interval(own, weight, 50, 7), **CLOSE)


@pytest.mark.parametrize("task", TASKS)
def test_equal_seeds_give_equal_intervals_around_the_value(task: str) -> None:
    own = drawn(task, 2, 500)
    facts = evaluate(**own, seed=3)
    assert facts == evaluate(**own, seed=3)
    assert facts.measures != evaluate(**own, seed=4).measures
    assert facts.bootstrap is not None
    assert facts.bootstrap.rows == facts.rows == 500
    for name, estimate in facts.measures.items():
        assert estimate.low < estimate.value < estimate.high, name  # type: ignore[operator]


def test_equal_rows_are_drawn_together() -> None:
    """Few kinds of rows: as many of each as if every row was drawn by itself."""
    counts = np.array([3000, 5000, 2000])
    found = np.array(list(ms.resampled_counts(counts, 300, np.random.default_rng(0))))
    assert (found.sum(axis=1) == 10_000).all()
    np.testing.assert_allclose(found.mean(axis=0), counts, rtol=0.01)
    np.testing.assert_allclose(found.std(axis=0), np.sqrt(counts * (1 - counts / 10_000)), rtol=0.15)


@pytest.mark.parametrize("task", TASKS)
def test_of_many_rows_a_part_is_resampled(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = drawn(task, 5, 9000, ties=False)
    whole = evaluate(**own)
    monkeypatch.setattr(ms, "MOST_ROWS", 3000)
    monkeypatch.setattr(ms, "FEW_DISTINCT", 1000)
    part = evaluate(**own)
    assert part.bootstrap is not None
    assert part.bootstrap.rows == (1000 if task == "multiclass" else 3000)
    assert "rows drawn" in " ".join(part.lines())
    for name, estimate in part.measures.items():
        full = whole.measures[name]
        assert estimate.value == full.value
        assert estimate.low <= estimate.value <= estimate.high  # type: ignore[operator]
        width, expected = estimate.high - estimate.low, full.high - full.low  # type: ignore[operator]
        assert 0.6 < width / expected < 1.6, name
    few = evaluate(**drawn("binary", 5, 9000))
    assert few.bootstrap is not None
    assert few.bootstrap.rows == 9000


@pytest.mark.long
def test_intervals_cover_the_truth() -> None:
    """AUC of two normal distributions, accuracy, and the root mean squared error of normal errors."""
    auc = 0.5 * (1 + math.erf(0.5))  # of means that are 1 apart: Phi(1 / sqrt 2)
    accuracy = 0.5 * (1 + math.erf(0.5 / math.sqrt(2)))  # Phi(1 / 2)
    covered = np.zeros(3)
    repeats = 600
    for k in range(repeats):
        rng = np.random.default_rng(k)
        y = np.arange(300) % 2
        facts = evaluate("binary", y, rng.normal(size=300) + y - 0.5, seed=k)
        truths = [(facts.measures["auc"], auc), (facts.measures["accuracy"], accuracy)]
        facts = evaluate("regression", rng.normal(size=300), np.zeros(300), seed=k)
        truths.append((facts.measures["rmse"], 1.0))
        covered += [estimate.low <= truth <= estimate.high for estimate, truth in truths]  # type: ignore
    assert (covered > 0.92 * repeats).all()
    assert (covered < 0.98 * repeats).all()


# ------------------------------------------------------------------------------------ subgroups


def test_subgroups_are_evaluated_alone() -> None:
    own = drawn("binary", 8, 300)
    codes = np.random.default_rng(8).integers(-1, 3, 300)
    codes[codes == 2] = 0
    codes[:3] = 2
    facts = evaluate(**own, by=Grouping.of("region", Coded(("a", "b", "c", "unused"), codes)), n_bootstrap=20)
    assert facts.by == "region"
    assert [group.label for group in facts.groups] == ["a", "b", "c", "missing"]
    for group, code in zip(facts.groups, (0, 1, 2, -1), strict=True):
        rows = codes == code
        if code == 2:
            assert group.rows is None  # three rows are too few
            assert group.facts is None
        else:
            part = {key: each if key == "task" else each[rows] for key, each in own.items()}
            assert group.facts == evaluate(**part, n_bootstrap=20)
            assert group.rows == rows.sum()
    whole = evaluate(**own, n_bootstrap=20)
    assert facts.measures == whole.measures


def test_small_groups_beyond_twenty_are_one() -> None:
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.repeat(np.arange(30), 6), [29] * 10, [28] * 10])
    own = drawn("binary", 0, len(codes))
    labels = tuple(f"label {k:02}" for k in range(30))
    order = rng.permutation(len(codes))
    facts = evaluate(**own, by=Grouping("by", labels, codes[order]), n_bootstrap=0)
    assert len(facts.groups) == 21
    assert [group.label for group in facts.groups][-3:] == ["label 28", "label 29", "other"]
    assert [group.rows for group in facts.groups][-3:] == [16, 16, 60]


def test_groups_of_numbers() -> None:
    few = Grouping.of("n", np.array([2.0, 1.0, np.nan, 2.5, 1.0]))
    assert few.labels == (1, 2, 2.5)
    assert few.codes.tolist() == [1, 0, -1, 2, 0]
    many = Grouping.of("n", np.append(np.arange(100.0), np.nan))
    assert many.labels == ("<= 19", "> 19, <= 39", "> 39, <= 59", "> 59, <= 79", "> 79")
    assert np.bincount(many.codes[:-1]).tolist() == [20] * 5
    assert many.codes[-1] == -1
    heavy = Grouping.of("n", np.append(np.zeros(1000), np.arange(30.0)))
    assert heavy.labels == ("<= 0", "> 0")


# ------------------------------------------------------------------------------------ at the limits


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("n", [1, 7])
def test_one_class_only(label: int, n: int) -> None:
    facts = evaluate("binary", [label] * n, [0.5] * n, probability=[0.6] * n)
    for name in ("auc", "gini", "ks"):
        assert facts.measures[name] == Estimate(None)
    assert facts.ks_at is None
    assert facts.measures["sensitivity"].value == (1.0 if label else None)
    assert facts.measures["specificity"].value == (None if label else 0.0)
    expected = -math.log(0.6 if label else 0.4)
    assert facts.measures["log_loss"].value == pytest.approx(expected, rel=1e-15)
    assert facts.calibration[0].rows == n
    assert len(facts.calibration) == 1
    json.dumps(facts.to_dict(), allow_nan=False)
    assert facts.lines()


def test_resamples_without_a_class_are_left_out() -> None:
    facts = evaluate("binary", [0, 0, 1], [0.0, 1.0, 2.0], n_bootstrap=100)
    assert facts.measures["auc"] == Estimate(1.0, 1.0, 1.0)  # a third of the resamples lack the event
    facts = evaluate("binary", [0, 1], [0.0, 2.0], n_bootstrap=100)
    assert facts.measures["auc"].value == 1.0
    assert facts.measures["event_share"] == Estimate(0.5, 0.0, 1.0)


def test_constant_scores() -> None:
    facts = evaluate("binary", [0, 1, 1, 0, 1], [0.0] * 5, probability=[0.5] * 5)
    assert facts.measures["auc"].value == 0.5
    assert facts.measures["ks"].value == 0.0
    assert facts.measures["precision"].value is None  # no row is predicted to be an event
    numbers = evaluate("regression", [1.0, 2.0, 4.0], [2.0] * 3)
    assert len(numbers.calibration) == 1
    assert evaluate("regression", [0.1] * 7, [0.2] * 7).measures["r2"].value is None
    assert facts.lines()
    assert numbers.lines()


def test_a_class_that_no_row_has() -> None:
    own = drawn("multiclass", 0, 40)
    own["y"] = np.minimum(own["y"], 1)
    facts = evaluate(**own, n_bootstrap=10)
    binary = [skm.roc_auc_score(own["y"] == k, own["probability"][:, k]) for k in (0, 1)]
    assert facts.measures["auc"].value == pytest.approx(np.mean(binary), abs=1e-12)
    assert facts.classes[2].auc.value is None
    assert facts.classes[2].recall.value is None
    assert facts.lines()


def test_certainty_that_fails_costs_a_finite_loss() -> None:
    facts = evaluate("binary", [0, 1], [1.0, -1.0], probability=[1.0, 0.0], n_bootstrap=0)
    assert facts.measures["log_loss"].value == pytest.approx(skm.log_loss([0, 1], [1.0, 0.0]), abs=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "ranking"}, "task must be one of"),
        ({"y": []}, "y has no rows"),
        ({"y": [0, 1, 2]}, "y must be 0 or 1 in every row"),
        ({"y": [0, 1, np.nan]}, "y contains NaN"),
        ({"y": ["a", "b", "c"]}, "y must hold numbers"),
        ({"prediction": [1.0, 2.0]}, "prediction must have 3 rows as y has; got 2"),
        ({"prediction": [[1.0], [2.0], [3.0]]}, "prediction must have 1 dimension"),
        ({"prediction": [1.0, 2.0, np.inf]}, "prediction contains NaN or infinity"),
        ({"probability": [0.5, 0.5, 1.5]}, "probability must be between 0 and 1"),
        ({"probability": [0.5, 0.5, np.nan]}, "probability contains NaN"),
        ({"sample_weight": [0, 0, 0]}, "sample_weight must not be negative, with a finite sum above 0"),
        ({"sample_weight": [1, -1, 1]}, "sample_weight must not be negative"),
        ({"sample_weight": [1e308] * 3}, "a finite sum"),
        ({"sample_weight": [1, np.nan, 1]}, "sample_weight contains NaN"),
        ({"classes": ("a",)}, "classes must have 2 labels; got 1"),
        ({"n_bootstrap": -1}, "n_bootstrap must be a whole number"),
        ({"threshold": Threshold("probability", 0.5)}, "needs probabilities"),
        ({"by": Grouping("by", ("a",), np.zeros(2, dtype=int))}, "by must have a code for each of 3 rows"),
        ({"task": "regression", "y": [0, 1, 1e200]}, "must not be larger"),
        ({"task": "multiclass"}, "prediction must have 2 dimension"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"task": "binary", "y": [0, 1, 1], "prediction": [0.0, 1.0, 2.0]}
    with pytest.raises(ValueError, match=message):
        evaluate(**(arguments | change))


# ------------------------------------------------------------------------------------ for people and programs


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("n_bootstrap", [0, 10])
def test_plain_data_and_lines(task: str, n_bootstrap: int) -> None:
    own = drawn(task, 1, 200)
    hostile = ("\x1b[31mred", "a\nb", "x" * 100)
    classes: Any = {"binary": hostile[:2], "multiclass": hostile, "regression": None}[task]
    by = Grouping.of("\x1b]0;title\x07", Coded(hostile, np.arange(200) % 4 - 1))
    facts = evaluate(**own, classes=classes, by=by, n_bootstrap=n_bootstrap, sample_weight=np.full(200, 0.3))
    content = json.loads(json.dumps(facts.to_dict(), allow_nan=False))
    assert content["version"] == 1
    assert content == facts.to_dict()
    assert content["measures"].keys() == facts.measures.keys()
    assert content["groups"][0]["label"] == hostile[0]
    lines = facts.lines()
    assert max(map(len, lines)) < 80
    assert all(line.isprintable() for line in lines)


def test_the_lines_of_a_small_table() -> None:
    y, score = [0, 0, 1, 0, 1, 1], [-2.0, -1.0, -1.0, 1.0, 1.0, 2.0]
    p = [0.1, 0.25, 0.25, 0.75, 0.75, 0.9]
    facts = evaluate("binary", y, score, probability=p, classes=("no", "yes"), n_bootstrap=0)
    assert facts.lines() == [
        "6 rows, 3 of them yes",
        "",
        "  measure                     value",
        "  share of events            0.5000",
        "  AUC                        0.7778",
        "  Gini                       0.5556",
        "  KS (at -2)                 0.3333",
        "  log loss                   0.5931",
        "  Brier score                0.2117",
        "  calibration in the large  +0.0000",
        "  accuracy                   0.6667",
        "  sensitivity                0.6667",
        "  specificity                0.6667",
        "  precision                  0.6667",
        "",
        "Confusion above a score of 0: rows by class and predicted class",
        "",
        "  class  no  yes",
        "  no      2    1",
        "  yes     1    2",
        "",
        "Calibration by predicted value (# observed, | predicted)",
        "",
        "  rows  predicted  observed",
        "     1     0.1000    0.0000      |",
        "     2     0.2500    0.5000    ######|######",
        "     2     0.7500    0.5000    #############    |",
        "     1     0.9000    1.0000    #####################|##",
    ]


# ------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), labels=st.booleans())
@settings(max_examples=15)
def test_facts_come_back_from_json_as_they_were(task, seed, n, labels):
    rng = np.random.default_rng(seed)
    names = {"binary": ("no", "yes"), "multiclass": ("a", 2, "c")}.get(task) if labels else None
    by = Grouping("town", ("a", 7, 2.5), rng.integers(-1, 3, n)) if labels else None
    facts = evaluate(**drawn(task, seed, n), classes=names, by=by, n_bootstrap=5 * labels, seed=seed % 100)
    text = json.dumps(facts.to_dict(), allow_nan=False)
    again = Facts.from_dict(json.loads(text))
    assert again == facts
    assert json.dumps(again.to_dict()) == text
    assert again.lines() == facts.lines()


def changed(path, value):
    """Facts as plain data with one entry changed; ``...`` removes it."""
    document = json.loads(json.dumps(evaluate(**drawn("binary", 0, 30), n_bootstrap=3).to_dict()))
    place = document
    for name in path[:-1]:
        place = place[name]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ([], "expected an object, found []."),
        ({}, "version: expected 1, found None."),
        (changed(["version"], 2), "version: expected 1, found 2."),
        (changed(["version"], True), "version: expected 1, found True."),
        (changed(["task"], "ranking"), "task: expected one of binary, multiclass, regression, found"),
        (changed(["rows"], 2.5), "rows: expected a whole number, found 2.5."),
        (changed(["rows"], None), "rows: expected a whole number, found None."),
        (changed(["rows"], ...), "facts: expected an object with task, rows, "),
        (changed(["other"], 1), "facts: expected an object with task, rows, "),
        (changed(["measures"], []), "measures: expected an object, found []."),
        (changed(["measures", "auc", "low"], "x"), "measures.auc.low: expected a finite number, found 'x'."),
        (changed(["measures", "auc", "value"], math.inf), "measures.auc.value: expected a finite number"),
        (changed(["measures", "auc"], 0.5), "measures.auc: expected an object with value, low, high, found"),
        (changed(["confusion", "rows", 0, 1], True), "confusion.rows[0][1]: expected a whole number"),
        (changed(["confusion", "labels", 0], [1]), "confusion.labels[0]: expected text or a number"),
        (changed(["calibration"], {}), "calibration: expected a list, found {}."),
        (changed(["by"], 3), "by: expected text, found 3."),
    ],
)  # fmt: skip
def test_other_documents_are_refused(document, sentence):
    with pytest.raises(ValueError) as error:
        Facts.from_dict(document)
    assert str(error.value).startswith(sentence)

"""Thresholds by rules, against a search over all thresholds."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.model import Ensemble, Term
from cardboost.model.files import model_bytes, read_model
from cardboost.model.operating_point import LabelledScores, OperatingPoint, Rule
from cardboost.model.scorecard import Scorecard

RULES = ["recall>=0.5", "recall>=0.95", "recall>=1", "precision>=0.8", "precision>=1", "fpr<=0", "fpr<=0.25"]
RULES += [{"fp": 1, "fn": 20}, {"fp": 3, "fn": 1}, {"fp": 1, "fn": 0}, {"fp": 0, "fn": 1}]


@st.composite
def labelled(draw: Any) -> LabelledScores:
    n = draw(st.integers(2, 30))
    score = draw(
        st.lists(st.sampled_from([-2.0, -0.5, -0.25, 0.0, 0.1, 1 / 3, 1.0, 4.0]), min_size=n, max_size=n)
    )
    positive = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    positive[0], positive[1] = True, False
    kind = draw(st.sampled_from(["none", "whole", "real"]))
    weight = None
    if kind != "none":
        values = [1.0, 2.0, 5.0] if kind == "whole" else [0.1, 0.2, 0.7, 3.3, 1e-3]
        weight = np.array(draw(st.lists(st.sampled_from(values), min_size=n, max_size=n)))
    return LabelledScores(np.array(score), np.array(positive), weight, "rows")


def rates(
    rows: LabelledScores, threshold: float
) -> tuple[Fraction, Fraction | None, Fraction, Fraction, Fraction]:
    """Recall, precision, false positive rate, and the weights of both errors, in fractions."""
    weight = np.ones(len(rows.score)) if rows.weight is None else rows.weight
    above = {
        (True, True): Fraction(0),
        (True, False): Fraction(0),
        (False, True): Fraction(0),
        (False, False): Fraction(0),
    }
    for score, positive, own in zip(
        rows.score.tolist(), rows.positive.tolist(), weight.tolist(), strict=True
    ):
        above[score > threshold, positive] += Fraction(own)
    true, false, missed = above[True, True], above[True, False], above[False, True]
    chosen = true + false
    return (
        true / (true + missed),
        true / chosen if chosen else None,
        false / (false + above[False, False]),
        false,
        missed,
    )


def key(rule: Rule, found: Any) -> Any:
    """What a rule wants least of: whether it does not hold, then what is minimised."""
    recall, precision, fpr, false, missed = found
    if rule.kind == "recall":
        return (float(recall) < rule.value, fpr, false)
    if rule.kind == "fpr":
        return (float(fpr) > rule.value, -recall, fpr)
    if rule.kind == "precision":
        holds = precision is not None and float(precision) >= rule.value
        return (False, -recall, fpr) if holds else (True, 1 if precision is None else -precision, -recall)
    return (Fraction(rule.false_positive) * false + Fraction(rule.false_negative) * missed, false)


def chosen(rows: LabelledScores, rule: Rule) -> OperatingPoint:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rows.point(rule)


@settings(max_examples=150, deadline=None)
@given(rows=labelled(), rule=st.sampled_from(RULES))
def test_a_rule_against_all_thresholds(rows: LabelledScores, rule: Any) -> None:
    wanted = Rule.of(rule)
    point = chosen(rows, wanted)
    reached = rates(rows, point.score)
    assert point.recall == float(reached[0])
    assert point.precision == (None if reached[1] is None else float(reached[1]))
    assert point.fpr == float(reached[2])
    every = [rates(rows, threshold) for threshold in (-math.inf, *rows.score.tolist())]
    best = min(key(wanted, found) for found in every)
    assert key(wanted, reached) == best
    totals = LabelledScores(np.rint(rows.score * 8).astype(int), rows.positive, rows.weight, "rows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        least, found = totals.least_total(wanted)
    assert found == tuple(None if rate is None else float(rate) for rate in rates(totals, least - 1)[:3])


@settings(max_examples=80, deadline=None)
@given(rows=labelled(), rule=st.sampled_from(RULES), seed=st.integers(0, 999))
def test_neither_order_nor_repetition_matters(rows: LabelledScores, rule: Any, seed: int) -> None:
    wanted = Rule.of(rule)
    order = np.random.default_rng(seed).permutation(len(rows.score))
    weight = None if rows.weight is None else rows.weight[order]
    assert chosen(LabelledScores(rows.score[order], rows.positive[order], weight, "rows"), wanted) == chosen(
        rows, wanted
    )
    double = np.full(len(order), 2.0) if rows.weight is None else 2 * rows.weight
    once = np.ones(len(order)) if rows.weight is None else rows.weight
    twice = LabelledScores(*(np.tile(part, 2) for part in (rows.score, rows.positive, once)), "rows")
    assert chosen(LabelledScores(rows.score, rows.positive, double, "rows"), wanted) == chosen(twice, wanted)


def test_a_precision_that_nothing_reaches() -> None:
    rows = LabelledScores(
        np.array([1.0, 2.0, 2.0, 3.0]), np.array([True, True, False, False]), None, "4 rows"
    )
    with pytest.warns(
        UserWarning, match="threshold: none has precision>=0.99 on 4 rows; the highest precision is 0.5"
    ):
        point = rows.point(Rule.of("precision>=0.99"))
    assert (point.precision, point.recall) == (0.5, 1.0)


@pytest.mark.parametrize(
    "rule",
    [
        "recall<=0.9",
        "recall>=2",
        "fpr>=0.1",
        "precision",
        "recall>=x",
        0,
        1,
        1.5,
        True,
        {"fp": 1},
        [0.5],
        "fp=1",
        {"fp": -1, "fn": 1},
        {"fp": 0, "fn": 0},
        {"fp": "1", "fn": 1},
        {"fp": math.inf, "fn": 1},
        "fp=1,fp=2",
    ],
)
def test_what_is_no_rule(rule: Any) -> None:
    with pytest.raises(ValueError, match="threshold must be a probability between 0 and 1"):
        Rule.of(rule)


def test_rules_are_read_as_they_are_written() -> None:
    for rule in (
        *RULES,
        " recall >= 0.9 ",
        "fp=1,fn=20",
        "fn=20, fp=1",
        "recall>=0.99999999",
        {"fp": 1 / 3, "fn": 7e9},
    ):
        own = Rule.of(rule)
        assert Rule.of(str(own)) == own


def model(point: OperatingPoint | None = None) -> Ensemble:
    terms = (Term(0, 2.5, 1, False, 0.5), Term(1, 10.0, -1, False, 1.0))
    return Ensemble(
        "logistic", 0.0, terms, ("age", "dose"), 2, ("no", "yes"), unit=0.5, operating_point=point
    )


def test_a_file_keeps_the_threshold() -> None:
    point = OperatingPoint(0.75, "recall>=0.5", "9 given rows", 0.6, None, 0.0)
    data = model_bytes(model(point))
    again = read_model(data).ensemble
    assert again == model(point)
    assert (again.threshold, b'"version": 6' in data) == (0.75, True)
    assert b'"version": 3' in model_bytes(model())
    for wrong, message in (
        (b'"recall": 2', "recall: expected a share"),
        (b'"recall": 0.6, "x": 1', "x: unknown key"),
    ):
        with pytest.raises(ValueError, match=f"ensemble.operating_point.{message}"):
            read_model(data.replace(b'"recall": 0.6', wrong))


def test_classes_reasons_and_card_follow_the_threshold() -> None:
    X = np.array([[1.0, 20.0], [1.0, 5.0], [3.0, 20.0], [3.0, 5.0]])
    scores = model().decision_function(X)
    own = model(OperatingPoint(0.5, "fpr<=0.1", "4 given rows", 1.0, 1.0, 0.0))
    assert own.predict(X).tolist() == np.where(scores > 0.5, "yes", "no").tolist()
    card = Scorecard(own)
    assert card.predict(X).tolist() == own.predict(X).tolist()
    assert "by fpr<=0.1 on 4 given rows: recall 1" in " ".join(str(card).split())
    high = Scorecard(model()).with_threshold("fpr<=0", X, ["no", "no", "yes", "no"])
    assert high.predict(X).tolist().count("yes") == 0
    assert Scorecard(model()).with_threshold(0.5).threshold == Scorecard(model()).threshold
    with pytest.raises(ValueError, match="needs labelled rows"):
        card.with_threshold("fpr<=0.1")

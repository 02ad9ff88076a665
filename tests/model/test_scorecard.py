"""Scorecards against the model they stand for, term by term, and what is printed against what is computed."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.model import Ensemble, Term
from cardboost.model.ensemble import LOG_ODDS
from cardboost.model.files import load_model
from cardboost.model.scorecard import OddsScale, Scorecard

from drawn_models import as_table, drawn_ensembles, left, rows_for  # isort: skip


@st.composite
def drawn_cards(draw: Any) -> Scorecard:
    """Models of whole multiples of a unit, some of them on a scale of odds."""
    own = draw(drawn_ensembles(loss=draw(st.sampled_from(["logistic", "exponential"]))))
    unit = draw(st.sampled_from([1.0, 0.1, 0.07, 1e-3, 3.3]))
    terms = tuple(replace(term, weight=unit * draw(st.integers(1, 12))) for term in own.terms)
    card = Scorecard(replace(own, terms=terms, unit=unit), negative=draw(st.booleans()))
    if not draw(st.booleans()):
        return card
    scale = OddsScale(draw(st.sampled_from([0, 600])), draw(st.sampled_from([1, 50, 0.2])), 20)
    unit = scale.unit(own.loss)
    points = card.ensemble.term_points() or ()
    terms = tuple(replace(term, weight=unit * p) for term, p in zip(terms, points, strict=True))
    near = Scorecard(replace(own, terms=terms, unit=unit, intercept=0.0), scale=scale)
    off = scale.zero(own.loss) + near.point * draw(st.integers(0, 700)) - near._zero
    return Scorecard(replace(near.ensemble, intercept=off), scale=scale, negative=card.negative)


def slow_total(card: Scorecard, row: list[Any]) -> Fraction:
    """Twice the points of the terms that hold, from the least that there can be."""
    own, total = card.ensemble, Fraction(0)
    for term, p in zip(own.terms, own.term_points() or (), strict=True):
        value = term.polarity * p
        total += value if left(term, row[term.feature], own.categories.get(term.feature)) else -value
    return total


@settings(max_examples=60, deadline=None)
@given(card=drawn_cards(), seed=st.integers(0, 2**16))
def test_totals_classes_and_probabilities_are_those_of_the_model(card: Scorecard, seed: int) -> None:
    own = card.ensemble
    rows = rows_for(own, np.random.default_rng(seed), 20)
    table = as_table(rows, own.categories)
    totals, points = card.total(table), card.points(table)
    assert (points.sum(axis=1) + card.start == totals).all()
    assert (points <= 0).all() if card.negative else (points >= 0).all()
    assert card.lowest <= totals.min()
    assert totals.max() <= card.highest
    scores = own.decision_function(table)
    np.testing.assert_allclose(card.log_odds(totals), LOG_ODDS[own.loss] * scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(card.predict_proba(table), own.predict_proba(table), atol=1e-9)
    exact = [Fraction(own.intercept) + Fraction(own.unit or 0) * slow_total(card, row) for row in rows]
    second = [score > 0 for score in exact]
    far = np.abs(scores) > 1e-9  # nearer to 0 the model's own rounding decides
    labels = card.predict(table)
    assert ((labels == card.classes[1]) == second).all()
    assert (labels[far] == own.predict(table)[far]).all()


@settings(max_examples=40, deadline=None)
@given(card=drawn_cards(), seed=st.integers(0, 2**16))
def test_reasons_name_the_place_of_the_case_and_add_up(card: Scorecard, seed: int) -> None:
    own = card.ensemble
    rows = rows_for(own, np.random.default_rng(seed), 6)
    table = as_table(rows, own.categories)
    points, totals = card.points(table), card.total(table)
    for row, given_points, total, reasons in zip(
        rows, points, totals, card.reasons(table, most=10), strict=True
    ):
        second = total >= card.threshold
        found = {reason.feature: reason for reason in reasons}
        sizes = [reason.points for reason in reasons]
        assert sizes == sorted(sizes, reverse=True)
        for section in card.sections:
            j, values = section.feature, [line.points for line in section.lines]
            push = given_points[j] - min(values) if second else max(values) - given_points[j]
            assert (j in found) == (push > 0)
            if push > 0:
                assert found[j].points == push
                absent = row[j] is None or row[j] != row[j]
                assert found[j].text.startswith("missing") or not absent
                _lies(found[j].text, row[j])
        assert card.reasons(table, most=1)[0] == card.reasons(table, most=10)[0][:1]


def _lies(text: str, x: Any) -> None:
    """An interval in words holds the value."""
    for sign, number in re.findall(r"(<=|>) (-?[0-9][-+.e0-9]*)", text) if isinstance(x, float) else ():
        assert x <= float(number) if sign == "<=" else x > float(number)


@settings(max_examples=40, deadline=None)
@given(card=drawn_cards())
def test_every_notation_shows_every_line_and_total(card: Scorecard) -> None:
    text, marked, page, latex = (
        card.to_text(),
        card.to_markdown(),
        card.to_html("A <title> & more"),
        card.to_latex(),
    )
    assert max(map(len, text.splitlines())) <= 78
    lines = [line for own in card.sections for line in own.lines]
    assert marked.count("\n| ") == len(lines) + len(card.table()) + 2 + bool(card.start)
    assert latex.count(r"\\" + "\n") == len(lines) + len(card.table()) + 2 + bool(card.start)
    assert page.count('<td class="n">') == len(lines) + 2 * len(card.table()) + bool(card.start)
    assert "<title>A &lt;title&gt; &amp; more</title>" in page
    shown = [int(own) for own in re.findall(r'<td class="n">(-?\d+)</td><td class="b">', page)]
    assert shown == [line.points for line in lines]
    body = html.unescape(re.sub("<[^>]+>", " ", page))
    for total, _ in card.table():
        assert str(total) in body
    assert "script" not in re.sub(r'"[^"]*"|\(.*\)', "", page)


def test_a_table_of_totals_is_monotone_and_has_both_ends() -> None:
    terms = tuple(Term(k, 0.5, 1, False, 0.2 * (k + 1)) for k in range(9))
    card = Scorecard(Ensemble("logistic", 0.1, terms, None, 9, (0, 1), unit=0.2))
    table = card.table()
    assert len(table) <= 33
    assert table[0][0] == card.lowest == 0
    assert table[-1][0] == card.highest == 45
    chances = [p for _, p in table]
    assert chances == sorted(chances)
    assert card.probability(card.threshold) > 0.5 >= card.probability(card.threshold - 1)
    few = Scorecard(Ensemble("logistic", 0.1, terms[:3], None, 9, (0, 1), unit=0.2))
    assert [total for total, _ in few.table()] == list(range(7))


def test_a_scale_of_odds_means_what_it_says() -> None:
    scale = OddsScale(600, 50, 20)
    unit = scale.unit("logistic")
    terms = (Term(0, 0.5, 1, False, unit * 40), Term(1, 1.5, -1, True, unit * 25))
    bare = Scorecard(Ensemble("logistic", 0.0, terms, ("a", "b"), 2, ("bad", "good"), unit=unit), scale=scale)
    move = scale.zero("logistic") + bare.point * 480 - bare._zero
    card = Scorecard(replace(bare.ensemble, intercept=move), scale=scale)
    assert card.start == 480
    chance = card.probability(np.array([600, 620, 580]))
    np.testing.assert_allclose(chance / (1 - chance), [50.0, 100.0, 25.0], rtol=1e-9)
    assert "begin with 480 and add the points" in card.to_text()
    assert card.total(np.array([[0.0, 9.0], [1.0, 0.0]])).tolist() == [480 + 40 + 25, 480]


@pytest.mark.parametrize(
    ("name", "value"),
    [("base_odds", 0), ("base_odds", -1.0), ("points_to_double_odds", 0.0), ("base_score", math.inf)],
)
def test_scales_that_mean_nothing_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        OddsScale(**{name: value})


def test_models_without_points_are_refused() -> None:
    terms = (Term(0, 0.5, 1, False, 0.3),)
    with pytest.raises(ValueError, match="whole multiples of a unit"):
        Scorecard(Ensemble("logistic", 0.0, terms, None, 1, (0, 1)))
    with pytest.raises(ValueError, match="two classes"):
        Scorecard(Ensemble("squared", 0.0, terms, None, 1, None, unit=0.3))
    with pytest.raises(ValueError, match="most must be"):
        Scorecard(Ensemble("logistic", 0.0, terms, None, 1, (0, 1), unit=0.3)).reasons([[0.0]], most=0)


def test_a_card_without_terms_has_one_total() -> None:
    card = Scorecard(Ensemble("logistic", -1.0, (), None, 2, ("no", "yes"), unit=1.0))
    assert card.table() == [(0, pytest.approx(1 / (1 + math.e)))]
    assert card.predict([[1.0, 2.0]]).tolist() == ["no"]
    for text in (card.to_text(), card.to_markdown(), card.to_html(), card.to_latex()):
        assert "every total means class" in text


@settings(max_examples=20, deadline=None)
@given(card=drawn_cards())
def test_files_keep_the_card(card: Scorecard, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("card") / "model.json"
    card.save(path)
    again = load_model(path).scorecard()
    assert again.ensemble == card.ensemble
    assert again.scale == card.scale
    assert again.to_text() == card.to_text()


@pytest.mark.parametrize("notes", [None, 3, {"scale": {"base_odds": -1}}, {"scale": {"x": 1}}, {"scale": []}])
def test_notes_that_do_not_fit_are_as_good_as_none(notes: Any) -> None:
    own = Ensemble("logistic", 0.0, (Term(0, 0.5, 1, False, 0.3),), None, 1, (0, 1), unit=0.3)
    assert Scorecard.from_notes(own, notes).scale is None
    assert Scorecard.from_notes(own, json.loads(json.dumps(notes))).negative is False


def test_the_text_of_a_card() -> None:
    terms = (
        Term(0, 2.5, 1, False, 0.5 * 4),
        Term(0, 7.0, 1, False, 0.5 * 1),
        Term(1, 100.0, -1, True, 0.5 * 3),
    )
    card = Scorecard(Ensemble("logistic", -0.5, terms, ("age", "dose"), 2, ("ill", "well"), unit=0.5))
    assert card.to_text("A card", 60).splitlines() == [
        "A card",
        "=" * 60,
        "3 terms on 2 of 2 features, totals from 0 to 8",
        "",
        "age",
        "    <= 2.5                    5  ####################",
        "    >  2.5, <= 7              1  ####",
        "    >  7 (also missing)       0",
        "",
        "dose",
        "    <= 100 (also missing)     0",
        "    >  100                    3  ############",
        "",
        "How to use this card",
        "  add the points of one line per feature",
        '  a total of 5 or more means class "well", a lower one class',
        '    "ill"',
        '  every point multiplies the odds of "well" by 2.718',
        "",
        "  total            0      1      2      3      4      5",
        "  probability   1.1%   2.9%   7.6%  18.2%  37.8%  62.2%",
        "",
        "  total            6      7      8",
        "  probability  81.8%  92.4%  97.1%",
    ]


def small_card(names: tuple[str, ...] | None = ("age", "dose")) -> Scorecard:
    terms = (Term(0, 2.5, 1, False, 0.5), Term(1, 10.0, -1, False, 1.0))
    return Scorecard(Ensemble("logistic", 0.0, terms, names, 2, ("no", "yes"), unit=0.5))


def test_a_card_is_a_fitted_classifier_of_scikit_learn() -> None:
    from sklearn.base import clone, is_classifier
    from sklearn.frozen import FrozenEstimator
    from sklearn.metrics import accuracy_score, get_scorer, roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.utils.validation import check_is_fitted

    card = small_card()
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, 200), rng.integers(0, 20, 200)]).astype(float)
    y = np.where(X[:, 1] + rng.normal(0, 6, 200) > 10, "yes", "no")
    check_is_fitted(card)
    assert is_classifier(card)
    assert clone(card) is card
    assert card.fit(X, y) is card
    assert (card.classes_.tolist(), card.n_features_in_) == (["no", "yes"], 2)
    assert card.feature_names_in_.tolist() == ["age", "dose"]
    assert not hasattr(small_card(None), "feature_names_in_")
    weight = rng.integers(0, 3, 200)
    assert card.score(X, y, weight) == accuracy_score(y, card.predict(X), sample_weight=weight)
    decided = card.decision_function(X)
    assert ((decided > 0) == (card.predict(X) == "yes")).all()
    assert get_scorer("roc_auc")(card, X, y) == roc_auc_score(y == "yes", card.total(X))
    assert np.isfinite(get_scorer("neg_log_loss")(card, X, y))
    frozen = make_pipeline(FrozenEstimator(card)).fit(X, y)
    assert (frozen.predict(X) == card.predict(X)).all()
    assert (card.contributions(X).sum(axis=1) + card.start == card.total(X)).all()


def test_a_card_in_one_line() -> None:
    shown = repr(small_card())
    assert shown == "Scorecard(2 terms on 2 features, totals from 0 to 3, 2 or more mean 'yes')"
    assert small_card()._repr_html_().count("<table") >= 2


def test_points_are_log_odds() -> None:
    with pytest.raises(ValueError, match="scores of the hinge loss are not"):
        Scorecard(replace(small_card().ensemble, loss="hinge"))

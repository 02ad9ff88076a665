"""Missing values on cards: beside the lines of features that had some in training, or at the foot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cardboost import CardBoostClassifier
from cardboost.data.categories import Categories
from cardboost.model import Ensemble, Term
from cardboost.model.card import render_card
from cardboost.model.files import model_bytes, read_model
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.scorecard import Scorecard

UNKNOWN = Ensemble(
    "logistic",
    0.5,
    (
        Term(0, 2.5, 1, False, 2.0),
        Term(1, 100.0, -1, True, 1.5),
        Term(2, None, 1, False, 0.5, "red"),
    ),
    ("age", "dose", "colour"),
    3,
    ("ill", "well"),
    {2: Categories(("blue", "red"), ())},
    unit=0.5,
)
FOOT = "training had no missing values of these; a missing value"


def told(features: tuple[int, ...] | None) -> Ensemble:
    return replace(UNKNOWN, missing_in_training=features)


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def test_where_it_is_not_known_every_feature_has_its_note() -> None:
    for text in (render_card(UNKNOWN), Scorecard(UNKNOWN).to_text()):
        assert text.count("missing)") == 2
        assert text.count("(also missing or unseen)") == 1
        assert FOOT not in text


def test_features_without_missing_values_in_training_are_at_the_foot() -> None:
    card = render_card(told(()))
    assert "(also" not in card
    foot = f"{FOOT} or a new label adds: age -2.000, dose -1.500, colour -0.500"
    assert foot in in_one_line(card)
    assert "> 2.5 (also missing) -2.000" in in_one_line(render_card(told((0,))))
    numbers = in_one_line(render_card(told((0, 2))))
    assert f"{FOOT} adds: dose -1.500" in numbers
    assert numbers.count("(also missing") == 2


@pytest.mark.parametrize("form", ["text", "markdown", "html", "latex"])
def test_scorecards_in_every_form(form: str) -> None:
    def written(ensemble: Ensemble) -> str:
        return in_one_line(getattr(Scorecard(ensemble), f"to_{form}")())

    assert f"{FOOT} or a new label adds: age 0, dose 0, colour 0" in written(told(()))
    assert "also missing" not in written(told(()))
    assert FOOT not in written(told((0, 1, 2)))
    assert written(told((0, 1, 2))) == written(UNKNOWN)


def test_totals_reach_what_a_missing_value_adds() -> None:
    """A value that no line has: every label has a term of its own."""
    terms = (Term(0, None, -1, False, 1.0, "red"), Term(0, None, -1, False, 1.0, "blue"))
    labels = {0: Categories(("blue", "red"), ())}
    card = Scorecard(
        Ensemble("logistic", 0.0, terms, ("colour",), 1, (0, 1), labels, unit=1.0, missing_in_training=())
    )
    X = np.array([["red"], ["blue"], ["green"]], dtype=object)
    assert (card.lowest, card.highest) == (0, 1)
    assert card.total(X).tolist() == [0, 0, 1]
    assert "a missing value or a new label adds: colour 1" in in_one_line(card.to_text())


def test_every_class_has_its_own_foot() -> None:
    member = replace(told((2,)), classes=(False, True), unit=None)
    card = in_one_line(render_card(MulticlassEnsemble(("a", "b", "c"), (member,) * 3)))
    assert card.count(f"{FOOT} adds: age -2.000, dose -1.500") == 3


def test_files_hold_it_and_older_ones_do_not() -> None:
    for ensemble, version in ((UNKNOWN, 3), (told(()), 6), (told((0, 2)), 6)):
        data = model_bytes(ensemble)
        assert f'"version": {version},'.encode() in data
        assert read_model(data, "file").ensemble == ensemble


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ((3,), r"missing_in_training\[0\]: expected an index below n_features = 3, found 3"),
        ((1, 0), r"missing_in_training\[1\]: expected features in ascending order, found 0"),
        ((-1,), r"missing_in_training\[0\]: "),
        (0, "missing_in_training: "),
    ],
)
def test_features_that_are_none(features: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(UNKNOWN, missing_in_training=features)


def test_a_fit_tells_which_features_had_missing_values() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 4))
    y = (X[:, 0] + X[:, 2] > 0).astype(int)
    X[::7, 2] = np.nan
    model = CardBoostClassifier(max_terms=4, l2=0.01, max_nodes=5).fit(X, y)
    assert model.ensemble_.missing_in_training == (2,)
    assert model.scorecard(points=3).ensemble.missing_in_training == (2,)
    assert model.ensemble_.features_used == (0, 2)
    features, _, foot = model.card().partition("How to read this card")
    assert "missing" not in features.partition("x0\n")[2].partition("\n\n")[0]
    assert "missing" in features.partition("x2\n")[2].partition("\n\n")[0]
    assert f"{FOOT} adds: x0 " in in_one_line(foot)

"""Ensembles on labels against the slow evaluation of every term on the raw labels; regressors."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from drawn_models import as_table, bits, drawn_ensembles, rows_for, slow_feature, slow_score
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.categories import OTHER, Categories
from cardboost.data.table import read_table
from cardboost.model import Ensemble, Term
from cardboost.model.schema import check_labels

COLOURS = Categories(("blue", "green", "red"), ("pink", "teal"))
TERMS = (
    Term(0, None, 1, False, 1.0, "red"),
    Term(0, None, -1, True, 0.25, OTHER),
    Term(1, 2.0, 1, False, 0.5),
)


def an_ensemble(**changes: Any) -> Ensemble:
    fields: dict[str, Any] = {
        "loss": "logistic",
        "intercept": 0.125,
        "terms": TERMS,
        "feature_names": ("colour", "size", "note"),
        "n_features": 3,
        "classes": (0, 1),
        "categories": {0: COLOURS},
    }
    return Ensemble(**(fields | changes))


COLUMNS: dict[str, list[Any]] = {
    "colour": ["red", "blue", "pink", "mauve", None],
    "size": [1.0, 3.0, math.nan, 2.0, 2.5],
}
# red: 1 + 0.25; blue: -1 + 0.25; other: -1 - 0.25; unseen and missing: -1 - 0.25
SCORES = [0.125 + 1.25 + 0.5, 0.125 - 0.75 - 0.5, 0.125 - 1.25 - 0.5, 0.125 - 1.25 + 0.5, 0.125 - 1.25 - 0.5]


# ------------------------------------------------------------------------------------ scores


@settings(max_examples=150)
@given(ensemble=drawn_ensembles(), seed=st.integers(0, 2**32))
def test_scores_and_contributions_equal_the_slow_evaluation_to_the_bit(ensemble: Ensemble, seed: int) -> None:
    rows = rows_for(ensemble, np.random.default_rng(seed), 20)
    table = as_table(rows, ensemble.categories, ensemble.feature_names)
    expected = bits([slow_score(ensemble, row) for row in rows])
    assert bits(ensemble.decision_function(table)) == expected
    assert bits(ensemble.decision_function(table, threads=2)) == expected
    back = as_table(rows[::-1], ensemble.categories, ensemble.feature_names)
    assert bits(ensemble.decision_function(back)[::-1]) == expected
    contributions = ensemble.contributions(table)
    score = np.full(len(rows), ensemble.intercept)
    for j in range(ensemble.n_features):
        assert bits(contributions[:, j]) == bits([slow_feature(ensemble, j, row[j]) for row in rows])
        score = score + contributions[:, j]
    assert bits(score) == expected
    if ensemble.classes is None:
        assert bits(ensemble.predict(table)) == expected
    else:
        assert (ensemble.predict(table) == np.array(ensemble.classes)[(score > 0).astype(int)]).all()


@settings(max_examples=60)
@given(ensemble=drawn_ensembles(), random=st.randoms(use_true_random=False))
def test_equal_models_give_equal_bits_whatever_the_order_of_their_terms(ensemble: Any, random: Any) -> None:
    terms = list(ensemble.terms)
    random.shuffle(terms)
    shuffled = dataclasses.replace(ensemble, terms=tuple(terms))
    assert shuffled == ensemble
    assert hash(shuffled) == hash(ensemble)
    table = as_table(rows_for(ensemble, np.random.default_rng(0), 5), ensemble.categories)
    assert bits(shuffled.decision_function(table)) == bits(ensemble.decision_function(table))


def test_many_categories_and_many_rows() -> None:
    rng = np.random.default_rng(0)
    labels = tuple(f"label {k:03d}" for k in range(254))
    categories = Categories(labels, ("rare 1", "rare 2"))
    terms = tuple(
        Term(0, None, int(rng.choice([1, -1])), bool(rng.integers(2)), float(rng.exponential()) + 0.01, label)
        for label in rng.permutation(labels)[:100]
    )
    ensemble = Ensemble("logistic", 0.0, (*terms, Term(0, None, 1, True, 0.5, OTHER)), None, 1, (0, 1),
                        {0: categories})  # fmt: skip
    rows = [[labels[k]] for k in rng.integers(254, size=20_000)] + [["rare 1"], ["unseen"], [None]]
    by_label = {label: slow_score(ensemble, [label]) for label in {row[0] for row in rows}}
    table = as_table(rows, {0})
    expected = bits([by_label[row[0]] for row in rows])
    assert bits(ensemble.decision_function(table)) == expected
    assert bits(ensemble.decision_function(table, threads=3)) == expected


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame,
        lambda columns: pd.DataFrame(columns).astype({"colour": "category"}),
        pl.DataFrame,
        lambda columns: pl.DataFrame(columns).with_columns(pl.col("colour").cast(pl.Categorical)),
    ],
    ids=["pandas", "pandas category", "polars", "polars categorical"],
)
@pytest.mark.parametrize("note", [["x"] * 5, [None] * 5, [[1]] * 5, [1.0, math.inf, math.nan, 0.0, 1.0]])
def test_frames_and_columns_that_the_model_does_not_use(frame: Any, note: list[Any]) -> None:
    table = frame({**COLUMNS, "note": note})
    assert an_ensemble().decision_function(table).tolist() == SCORES
    with pytest.raises(ValueError, match="feature names should match"):
        an_ensemble().decision_function(table[["size", "colour", "note"]])
    with pytest.raises(ValueError, match="feature names should match"):
        an_ensemble().decision_function(table[["colour", "size"]])


def test_unused_columns_are_not_even_looked_at() -> None:
    class Frame:
        columns = ("colour", "size", "note")
        shape = (5, 3)

        def __getitem__(self, name: str) -> Any:
            assert name != "note"
            return pd.Series(COLUMNS[name], name=name)

    assert an_ensemble().decision_function(Frame()).tolist() == SCORES
    assert an_ensemble(terms=()).decision_function(Frame()).tolist() == [0.125] * 5


def test_arrays_of_objects_and_of_text() -> None:
    rows = [[*values, "a note"] for values in zip(*COLUMNS.values(), strict=True)]
    array = np.array(rows, dtype=object)
    before = array.copy()
    assert an_ensemble().decision_function(array).tolist() == SCORES
    assert (array[:, 0] == before[:, 0]).all()
    assert array[:, 2].tolist() == ["a note"] * 5
    text = np.array([[str(value) for value in row] for row in rows[:2]])
    assert an_ensemble().decision_function(text).tolist() == SCORES[:2]


def test_labels_that_are_numbers() -> None:
    categories = Categories((False, 1, 2.5, 2**60))
    terms = tuple(
        Term(0, None, 1, False, weight, own) for weight, own in ((1.0, 1), (2.0, 2.5), (4.0, 2**60))
    )
    ensemble = Ensemble("squared", 0.0, terms, None, 1, None, {0: categories})
    X = np.array([[0.0], [1.0], [2.5], [float(2**60)], [7.0], [math.nan]])
    expected = [-7.0, -5.0, -3.0, 1.0, -7.0, -7.0]
    assert ensemble.decision_function(X).tolist() == expected
    assert ensemble.decision_function(pd.DataFrame({"a": X[:, 0]})).tolist() == expected
    assert ensemble.decision_function(np.array([[True], [False]])).tolist() == [-5.0, -7.0]


def test_tables_that_were_read_otherwise_are_refused() -> None:
    ensemble = an_ensemble(feature_names=None)
    with pytest.raises(ValueError, match="column 0 holds numbers, but the model expects labels"):
        ensemble.decision_function(read_table(np.zeros((2, 3))))
    with pytest.raises(ValueError, match="column 1 holds labels, but the model expects numbers"):
        ensemble.decision_function(as_table([["red", "x", 1.0]], {0, 1}))
    for X in (np.zeros((2, 2)), np.zeros((2, 4), dtype=object), as_table([["red", 1.0]], {0})):
        with pytest.raises(
            ValueError, match=f"X has {X.shape[1] if hasattr(X, 'shape') else 2} features, but"
        ):
            ensemble.decision_function(X)
    with pytest.raises(ValueError, match="more than one column named 'a'"):
        ensemble.decision_function(pd.DataFrame(np.zeros((1, 3)), columns=["a", "b", "a"]))
    with pytest.raises(ValueError, match="infinity in column 1"):
        ensemble.decision_function(as_table([["red", math.inf, 1.0]], {0}))


def test_no_rows() -> None:
    empty = as_table([["red", 0.0, 0.0]], {0}).columns[0]
    table = dataclasses.replace(
        as_table([["red", 0.0, 0.0]], {0}),
        columns=(type(empty)((), empty.codes[:0]), np.empty(0), np.empty(0)),
        n_rows=0,
    )
    ensemble = an_ensemble(feature_names=None)
    assert ensemble.decision_function(table).shape == (0,)
    assert ensemble.contributions(table).shape == (0, 3)
    assert ensemble.predict_proba(table).shape == (0, 2)


# ------------------------------------------------------------------------------------ what it is made of


def test_step_functions_of_labels() -> None:
    steps = an_ensemble().step_functions()
    assert steps[0].categories == ("blue", "green", "red", OTHER)
    assert steps[0].cuts == (0.5, 1.5, 2.5)
    assert steps[0].levels == (-0.75, -0.75, 1.25, -1.25)
    assert steps[0].missing == -1.25
    assert steps[0].spread == 2.5
    assert steps[1].categories is None
    one = Ensemble("logistic", 0.0, (Term(0, None, 1, False, 1.0, "a"),), None, 1, (0, 1),
                   {0: Categories(("a",))})  # fmt: skip
    assert one.step_functions()[0].cuts == ()
    assert one.step_functions()[0].levels == (1.0,)


def test_categories_cannot_be_changed_and_are_kept_only_where_they_are_used() -> None:
    given = {2: COLOURS, 0: COLOURS}
    ensemble = an_ensemble(categories=given)
    assert ensemble.categories == {0: COLOURS}
    assert ensemble == an_ensemble()
    given.clear()
    assert ensemble.categories == {0: COLOURS}
    with pytest.raises(TypeError):
        ensemble.categories[1] = COLOURS  # type: ignore[index]
    table = as_table([["red", 1.0, 0.0]], {0})
    for twin in (copy.deepcopy(ensemble), pickle.loads(pickle.dumps(ensemble))):
        assert twin == ensemble
        assert hash(twin) == hash(ensemble)
        assert bits(twin.decision_function(table)) == bits(ensemble.decision_function(table))
    assert an_ensemble(categories={0: Categories(("blue", "red"), ("pink",))}) != ensemble
    assert "red" in repr(ensemble)


def test_the_order_of_terms() -> None:
    terms = [
        Term(0, 1.0, 1, True, 1.0),
        Term(0, math.inf, 1, True, 1.0),
        Term(0, None, 1, True, 1.0, -3),
        Term(0, None, 1, True, 1.0, 2.5),
        Term(0, None, 1, False, 1.0, "a"),
        Term(0, None, 1, True, 1.0, "a"),
        Term(0, None, 1, True, 1.0, "b"),
        Term(0, None, 1, True, 1.0, OTHER),
    ]
    mixed = [terms[k] for k in (3, 7, 0, 5, 1, 6, 2, 4)]
    assert sorted(mixed, key=lambda term: term.order) == terms


BAD_TERMS = [
    ({"category": math.nan}, "category: expected a finite number, found nan"),
    ({"category": math.inf}, "category: "),
    ({"category": ("a",)}, "category: expected an integer, a number, a truth value or text"),
    ({"category": 2**200}, "category: "),
    ({"cut": 0.5}, "cut: expected none beside a category, found 0.5"),
    ({"cut": math.inf}, "cut: "),
    ({"category": None}, "cut: expected a number, found None"),
    ({"one_of": ("a", "b")}, "category: expected none beside a set of categories, found 'a'"),
]
BAD_SETS = [
    ((), "one_of: expected two labels or more, found ()"),
    (("a",), "one_of: expected two labels or more"),
    ("ab", "one_of: expected two labels or more, found 'ab'"),
    (("b", "a"), "one_of[1]: expected labels that ascend, one above 'b', found 'a'"),
    (("a", "a"), "one_of[1]: "),
    ((1, True), "one_of[1]: expected labels that ascend"),
    (("a", 1), "one_of[1]: expected text as 'a', found 1"),
    ((1, "a"), "one_of[1]: expected a number as 1, found 'a'"),
    (("a", None), "one_of[1]: expected an integer, a number, a truth value or text, found None"),
    ((math.nan, 1.0), "one_of[0]: expected a finite number"),
    (("a", OTHER, "b"), "one_of[2]: expected nothing behind the rare labels, found 'b'"),
    (("a", OTHER, OTHER), "one_of[2]: "),
]


@pytest.mark.parametrize(("labels", "message"), BAD_SETS)
def test_bad_sets(labels: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        Term(0, None, 1, True, 1.0, one_of=labels)
    assert str(error.value).startswith(message)
    with pytest.raises(ValueError, match=r"cut: expected none beside a set of categories, found 0\.5"):
        Term(0, 0.5, 1, True, 1.0, one_of=("a", "b"))


def test_sets_are_tuples_of_plain_labels() -> None:
    term = Term(0, None, 1, True, 1.0, one_of=[np.int32(3), np.float64(4.5), OTHER])  # type: ignore[arg-type]
    assert term.one_of == (3, 4.5, OTHER)
    assert [type(own) for own in term.labels[:2]] == [int, float]
    assert term.to_dict()["one_of"] == [3, 4.5, {"other": True}]
    assert hash(term) == hash(Term(0, None, 1, True, 1.0, one_of=(3, 4.5, OTHER)))


def test_terms_of_every_kind_stand_in_one_order() -> None:
    own = Categories(("a", "b", "c", "d"), ("x",))
    sets = [("a", "b"), ("a", "b", OTHER), ("a", "c"), ("b", OTHER), ("b", "c", "d")]
    terms = [Term(0, None, 1, True, 1.0, label) for label in ("a", "d", OTHER)]
    terms += [Term(0, None, 1, True, 1.0, one_of=labels) for labels in sets]
    rng = np.random.default_rng(0)
    first = Ensemble("squared", 0.0, tuple(terms), None, 1, None, {0: own})
    for _ in range(10):
        mixed = tuple(terms[k] for k in rng.permutation(len(terms)))
        assert Ensemble("squared", 0.0, mixed, None, 1, None, {0: own}) == first


@pytest.mark.parametrize(("change", "message"), BAD_TERMS)
def test_bad_terms(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "feature": 0, "cut": None, "polarity": 1, "missing_left": True, "weight": 1.0, "category": "a",
    }  # fmt: skip
    Term(**good)
    with pytest.raises(ValueError) as error:
        Term(**(good | change))
    assert str(error.value).startswith(message)


def test_numpy_labels_become_plain_ones() -> None:
    labels = ((np.str_("a"), str), (np.int32(3), int), (np.float32(0.5), float), (np.True_, bool))
    for label, kind in labels:
        assert type(Term(0, None, 1, True, 1.0, label).category) is kind  # type: ignore[arg-type]


RED = Term(0, None, 1, True, 1.0, "red")
BAD_ENSEMBLES = [
    ({"terms": (RED, Term(0, 1.0, 1, True, 1.0))},
     "terms[1].cut: expected a category: feature 0 has categories, found 1.0"),
    ({"terms": (Term(1, None, 1, True, 1.0, "red"),)},
     "terms[0].category: expected a cut: feature 1 has no categories, found 'red'"),
    ({"terms": (RED, Term(0, None, 1, True, 1.0, "mauve"))},
     "terms[1].category: expected a kept category of feature 0, found 'mauve'"),
    ({"terms": (Term(0, None, 1, True, 1.0, "pink"),)}, "terms[0].category: expected a kept category"),
    ({"terms": (Term(0, None, 1, True, 1.0, 1),)}, "terms[0].category: expected a kept category"),
    ({"categories": {0: Categories(("red",))}, "terms": (RED, Term(0, None, 1, True, 1.0, OTHER))},
     "terms[1].category: expected a kept category: feature 0 has no rare ones, found other"),
    ({"terms": (Term(1, None, 1, True, 1.0, one_of=("blue", "red")),)},
     "terms[0].one_of: expected a cut: feature 1 has no categories, found ('blue', 'red')"),
    ({"terms": (Term(0, None, 1, True, 1.0, one_of=("mauve", "red")),)},
     "terms[0].one_of[0]: expected a kept category of feature 0, found 'mauve'"),
    ({"categories": {0: Categories(("blue", "red"))},
      "terms": (Term(0, None, 1, True, 1.0, one_of=("red", OTHER)),)},
     "terms[0].one_of[1]: expected a kept category: feature 0 has no rare ones, found other"),
    ({"categories": {0: Categories(("blue", "red"))},
      "terms": (Term(0, None, 1, True, 1.0, one_of=("blue", "red")),)},
     "terms[0].one_of: expected not all the categories of feature 0, found ('blue', 'red')"),
    ({"categories": None}, "categories: "),
    ({"categories": {"0": COLOURS}}, "categories: expected features by their index, found '0'"),
    ({"categories": {3: COLOURS}}, "categories: expected features by an index below n_features = 3, found 3"),
    ({"categories": {0: ("red",)}}, "categories[0]: expected categories, found ('red',)"),
    ({"loss": "squared"}, "classes: expected none with squared loss, found (0, 1)"),
    ({"classes": None}, "classes: expected two labels, found None"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD_ENSEMBLES)
def test_bad_ensembles(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        an_ensemble(**change)
    assert str(error.value).startswith(message)


BAD_LABELS: list[tuple[Any, Any, str]] = [
    ((), (), "kept: expected at least one label"),
    (("b", "a"), (), "kept[1]: expected labels that ascend, one above 'b', found 'a'"),
    (("a", "a"), (), "kept[1]: "),
    ((0, False), (), "kept[1]: "),
    (("a", 1), (), "kept[1]: expected text as 'a', found 1"),
    ((1,), ("a",), "rare[0]: expected a number as 1, found 'a'"),
    (("a",), ("c", "b"), "rare[1]: expected labels that ascend"),
    (("a",), ("a",), "rare[0]: expected a label that is not kept, found 'a'"),
    ((math.nan,), (), "kept[0]: expected a finite number"),
    ((None,), (), "kept[0]: "),
    (([],), (), "kept[0]: "),
    ((2**200,), (), "kept[0]: expected an integer of at most 200 bits"),
    (range(256), (), "kept: expected at most 255 labels, found 256"),
    (range(255), (999,), "kept: expected at most 254 labels, found 255"),
]


@pytest.mark.parametrize(("kept", "rare", "message"), BAD_LABELS)
def test_bad_labels(kept: Any, rare: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        check_labels(kept, rare)
    assert str(error.value).startswith(message)
    with pytest.raises((ValueError, TypeError)):
        an_ensemble(terms=(), categories={0: Categories(tuple(kept), tuple(rare))})


def test_good_labels() -> None:
    check_labels(range(255), ())
    check_labels(range(254), range(300, 900))
    check_labels((), ("a", "b"))
    check_labels((-(2**100), False, 0.5, 1, 2**64), ())


# ------------------------------------------------------------------------------------ regressors


def test_a_regressor_predicts_its_score() -> None:
    regressor = an_ensemble(loss="squared", classes=None, intercept=100.0)
    assert regressor.kind == "regression"
    assert an_ensemble().kind == "binary"
    table = pd.DataFrame({**COLUMNS, "note": 0.0})
    assert regressor.predict(table).tolist() == [score - 0.125 + 100.0 for score in SCORES]
    assert bits(regressor.predict(table)) == bits(regressor.decision_function(table))
    with pytest.raises(ValueError, match="regressor has no probabilities"):
        regressor.predict_proba(table)

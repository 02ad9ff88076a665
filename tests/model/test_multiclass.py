"""One ensemble per class: scores, probabilities, ties, and what is refused."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drawn_models import as_table, bits, drawn_multiclass, rows_for, slow_score
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.categories import Categories
from cardboost.model import Ensemble, MulticlassEnsemble, Term

COLOURS = Categories(("blue", "red"))
NAMES = ("colour", "size", "note")


def member(*terms: Term, **changes: Any) -> Ensemble:
    labelled = any(term.category is not None for term in terms)
    fields: dict[str, Any] = {
        "loss": "logistic",
        "intercept": 0.0,
        "terms": terms,
        "feature_names": NAMES,
        "n_features": 3,
        "classes": (False, True),
        "categories": {0: COLOURS} if labelled else {},
    }
    return Ensemble(**(fields | changes))


RED = Term(0, None, 1, False, 1.0, "red")
SMALL = Term(1, 2.0, 1, True, 0.5)
MODEL = MulticlassEnsemble(("x", "y", "z"), (member(RED), member(SMALL), member(RED, SMALL, intercept=-1.0)))


@settings(max_examples=100)
@given(model=drawn_multiclass(), seed=st.integers(0, 2**32))
def test_scores_probabilities_and_labels(model: MulticlassEnsemble, seed: int) -> None:
    rows = rows_for(model, np.random.default_rng(seed), 10)
    table = as_table(rows, model.categories, model.feature_names)
    scores = model.decision_function(table)
    expected = [[slow_score(own, row) for own in model.ensembles] for row in rows]
    assert bits(scores) == bits(expected)
    assert bits(model.decision_function(table, threads=2)) == bits(expected)

    contributions = model.contributions(table)
    assert contributions.shape == (len(rows), 4, len(model.classes))
    total = np.tile([own.intercept for own in model.ensembles], (len(rows), 1))
    for j in range(model.n_features):
        total = total + contributions[:, j]
    assert bits(total) == bits(expected)

    share = 1 / (1 + np.exp(-scores * (2 if model.loss == "exponential" else 1)))
    probabilities = model.predict_proba(table)
    np.testing.assert_allclose(probabilities, share / share.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    for row in range(len(rows)):  # the same bits alone as among others
        alone = as_table([rows[row]], model.categories, model.feature_names)
        assert bits(model.predict_proba(alone)) == bits(probabilities[row])

    predicted = model.predict(table).tolist()
    for label, row in zip(predicted, scores, strict=True):
        first = next(k for k, score in enumerate(row) if score == max(row))
        assert label == model.classes[first]
        assert type(label) is type(model.classes[first])


def constants(*scores: float, loss: str = "logistic") -> MulticlassEnsemble:
    members = tuple(
        Ensemble(loss, score, (), None, 1, (False, True)) for score in scores
    )  # every row gets the intercept
    return MulticlassEnsemble(tuple(range(10, 10 + len(scores))), members)


@pytest.mark.parametrize(
    ("scores", "label"),
    [
        ((0.0, 0.0, 0.0), 10),
        ((-1.0, 2.0, 2.0), 11),
        ((-0.0, 0.0, -1.0), 10),
        ((-3.0, -2.0, -2.0, -5.0), 11),
        ((40.0, 50.0, 60.0), 12),
    ],
)
def test_of_equal_scores_the_first_wins(scores: tuple[float, ...], label: int) -> None:
    assert constants(*scores).predict([[0.0]]).tolist() == [label]


def test_probabilities_at_the_ends() -> None:
    assert constants(-1e4, -1e4, -1e5, -1e4).predict_proba([[0.0]]).tolist() == [[0.25] * 4]
    assert constants(1e4, -1e4, 1e4).predict_proba([[0.0]]).tolist() == [[0.5, 0.0, 0.5]]
    assert constants(-1e4, -1e4, 3.0).predict_proba([[0.0]]).tolist() == [[0.0, 0.0, 1.0]]
    tiny = constants(-700.0, -701.0, -1e6).predict_proba([[0.0]])
    np.testing.assert_allclose(tiny, [[1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1)), 0.0]], rtol=1e-9)
    assert tiny.sum() == 1.0
    assert constants(0.0, 0.0, 0.0).predict_proba(np.empty((0, 1))).shape == (0, 3)


def test_what_it_is_made_of() -> None:
    assert MODEL.kind == "multiclass"
    assert (MODEL.n_terms, MODEL.features_used, MODEL.n_features) == (4, (0, 1), 3)
    assert (MODEL.loss, MODEL.feature_names, MODEL.feature_name(1)) == ("logistic", NAMES, "size")
    assert MODEL.categories == {0: COLOURS}
    assert dataclasses.replace(MODEL, classes=np.array([1, 2, 3])).classes == (1, 2, 3)  # type: ignore[arg-type]
    for twin in (copy.deepcopy(MODEL), pickle.loads(pickle.dumps(MODEL))):
        assert twin == MODEL
        assert hash(twin) == hash(MODEL)
    with pytest.raises(dataclasses.FrozenInstanceError):
        MODEL.classes = ()  # type: ignore[misc]


def test_frames_are_read_once_and_unused_columns_not_at_all() -> None:
    reads: list[str] = []
    data = {"colour": ["red", "blue", "mauve", None], "size": [1.0, 3.0, math.nan, 2.0]}

    class Frame:
        columns = NAMES
        shape = (4, 3)

        def __getitem__(self, name: str) -> Any:
            reads.append(name)
            return pd.Series(data[name], name=name)

    scores = MODEL.decision_function(Frame())
    assert sorted(reads) == ["colour", "size"]
    assert scores.tolist() == [[1, 0.5, 0.5], [-1, -0.5, -2.5], [-1, 0.5, -1.5], [-1, 0.5, -1.5]]
    assert MODEL.predict(Frame()).tolist() == ["x", "y", "y", "y"]
    with pytest.raises(ValueError, match="feature names should match"):
        MODEL.predict(pd.DataFrame(data))


BAD = [
    ({"classes": ("x", "y")}, "classes: expected three labels or more, found ('x', 'y')"),
    ({"classes": "xyz"}, "classes: "),
    ({"classes": None}, "classes: "),
    ({"classes": ("x", "y", "x")}, "classes[2]: expected labels that differ, found 'x'"),
    ({"classes": ("x", "y", 1)}, "classes[2]: expected a label of the same type as 'x', found 1"),
    ({"classes": (1, 2, math.inf)}, "classes[2]: "),
    ({"classes": ("w", "x", "y", "z")}, "ensembles: expected one for each of 4 classes, found 3"),
    ({"ensembles": None}, "ensembles: expected a list of ensembles, found None"),
    ({"ensembles": (member(), member(), "z")}, "ensembles[2]: expected an ensemble, found 'z'"),
    ({"ensembles": (member(), member(loss="squared", classes=None), member())},
     "ensembles[1].loss: expected the loss of a classifier, found 'squared'"),
    ({"ensembles": (member(), member(classes=(0, 1)), member())},
     "ensembles[1].classes: expected false and true, found (0, 1)"),
    ({"ensembles": (member(), member(), member(loss="exponential"))}, "ensembles[2].loss: expected the same"),
    ({"ensembles": (member(), member(feature_names=None), member())}, "ensembles[1].feature_names: "),
    ({"ensembles": (member(feature_names=None), member(), member())}, "ensembles[1].feature_names: "),
    ({"ensembles": (member(feature_names=None), member(feature_names=None, n_features=4), member())},
     "ensembles[1].n_features: "),
    ({"ensembles": (member(RED), member(RED, categories={0: Categories(("red",))}), member())},
     "ensembles[1].categories: expected feature 0 to have the same categories in every ensemble"),
    ({"ensembles": (member(RED), member(Term(0, 1.0, 1, True, 1.0)), member())}, "ensembles[1].categories: "),
    ({"ensembles": (member(Term(0, 1.0, 1, True, 1.0)), member(), member(RED))}, "ensembles[2].categories: "),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD)
def test_what_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        dataclasses.replace(MODEL, **change)
    assert str(error.value).startswith(message)

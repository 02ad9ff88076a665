"""Categories and missing values: the same model from every container, and what unseen labels do."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cardboost import CardBoostClassifier, CardBoostRegressor

COLOURS = np.array(["red", "green", "blue", "grey"])
SIZES = np.array(["S", "M", "L", "XL"])


def mixed(seed=0, rows=400, missing=0.06):
    """Two numbers and two categories, all with missing values; labels that need all four."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows).astype(float),
            "colour": COLOURS[rng.integers(0, 4, rows)],
            "income": np.round(rng.lognormal(3, 1, rows), 1),
            "size": SIZES[rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])],
        }
    )
    score = (frame["colour"] == "red") * 1.5 - (frame["size"] == "XL") * 2.0 + (frame["age"] > 45) - 0.8
    y = (score + rng.normal(0, 0.7, rows) > 0).to_numpy().astype(int)
    for name in frame:
        frame.loc[rng.random(rows) < missing, name] = None if name in ("colour", "size") else np.nan
    return frame, y


def fitted(X, y, sample_weight=None, **parameters):
    settings = {"max_terms": 6, "max_iter": 15, "n_jobs": 1, **parameters}
    return CardBoostClassifier(**settings).fit(X, y, sample_weight)


def same_model(a, b) -> bool:
    left, right = a.ensemble_, b.ensemble_
    return (
        left.terms == right.terms
        and left.intercept == right.intercept
        and left.categories == right.categories
        and claims(a) == claims(b)
    )


def claims(model) -> dict:
    """The certificate without how many rows the table was written in."""
    content = model.certificate_.to_dict()
    return {**content, "digest": None, "data": {**content["data"], "rows": None}}


FORMS = {
    "object": lambda f: f,
    "category": lambda f: f.astype({"colour": "category", "size": "category"}),
    "string": lambda f: f.astype({"colour": "string", "size": "string"}),
    "arrow text": lambda f: f.convert_dtypes(dtype_backend="pyarrow"),
    "other category order": lambda f: f.astype(
        {"colour": pd.CategoricalDtype(["none", *COLOURS[::-1]]), "size": "category"}
    ),
    "polars": lambda f: pl.from_pandas(f),
    "polars categorical": lambda f: pl.from_pandas(f).with_columns(
        pl.col("colour").cast(pl.Categorical), pl.col("size").cast(pl.Enum(list(SIZES)))
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_container_gives_the_same_model(form):
    frame, y = mixed()
    first = fitted(frame, y)
    assert any(term.category is not None for term in first.ensemble_.terms)
    other = FORMS[form](frame)
    again = fitted(other, y)
    assert same_model(again, first)
    np.testing.assert_array_equal(again.predict_proba(other), first.predict_proba(frame))
    assert again.certificate_.verify(other, y)


def test_object_arrays_and_declared_codes():
    frame, y = mixed()
    first = fitted(frame, y)
    array = frame.to_numpy(dtype=object)
    again = fitted(array, y)
    assert again.ensemble_.terms == first.ensemble_.terms
    codes = frame.assign(
        colour=frame["colour"].map({c: k for k, c in enumerate(sorted(COLOURS))}),
        size=frame["size"].map({c: k for k, c in enumerate(sorted(SIZES))}),
    ).to_numpy(dtype=float)
    numbered = fitted(codes, y, categorical_features=[1, 3])
    masked = fitted(codes, y, categorical_features=[False, True, False, True])
    named = fitted(pd.DataFrame(codes, columns=frame.columns), y, categorical_features=["colour", "size"])
    np.testing.assert_array_equal(numbered.predict_proba(codes), first.predict_proba(frame))
    assert numbered.ensemble_.terms == masked.ensemble_.terms == named.ensemble_.terms


@pytest.mark.parametrize("parameters", [{}, {"max_terms": None}, {"max_terms": None, "l0": 0.01}])
def test_weights_are_repetitions_to_the_bit(parameters):
    frame, y = mixed(rows=300)
    rng = np.random.default_rng(1)
    count = rng.integers(0, 4, len(y))
    frame.loc[count == 0, "colour"] = "only where the weight is zero"
    weighted = fitted(frame, y, count.astype(float), **parameters)
    at = np.repeat(np.arange(len(y)), count)
    repeated = fitted(frame.iloc[at], y[at], **parameters)
    shuffled = rng.permutation(at)
    mixed_up = fitted(frame.iloc[shuffled], y[shuffled], n_jobs=2, **parameters)
    for other in (repeated, mixed_up):
        assert same_model(other, weighted)
    np.testing.assert_array_equal(repeated.predict_proba(frame), weighted.predict_proba(frame))


def test_unseen_and_missing_labels_are_alike():
    frame, y = mixed()
    model = fitted(frame, y)
    odd, none = frame.copy(), frame.copy()
    odd["colour"], none["colour"] = "violet", None
    np.testing.assert_array_equal(model.decision_function(odd), model.decision_function(none))
    numbers = frame.copy()
    numbers["age"] = np.nan
    assert np.isfinite(model.decision_function(numbers)).all()


def test_missing_only_at_prediction():
    """A feature without missing values in training sends them to the side of most rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": COLOURS[rng.integers(0, 4, 300)]})
    y = ((X["a"] > 1.0) | (X["b"] == "red")).astype(int)
    model = fitted(X, y, max_terms=2)
    low = X.assign(a=-5.0)
    gone = X.assign(a=np.nan)
    np.testing.assert_array_equal(model.decision_function(gone), model.decision_function(low))
    nobody = X.assign(b="violet")
    assert (model.decision_function(nobody) <= model.decision_function(X.assign(b="red"))).all()


def test_columns_without_any_value():
    frame, y = mixed()
    frame["void"], frame["nothing"] = np.nan, pd.Series([None] * len(y), dtype="category")
    model = fitted(frame, y)
    assert not {4, 5} & set(model.ensemble_.features_used)
    assert model.certificate_.verify(frame, y)


def test_more_labels_than_bins():
    rng = np.random.default_rng(0)
    rows = 6000
    label = np.array([f"v{k:04d}" for k in range(400)])[np.minimum(rng.geometric(0.01, rows) - 1, 399)]
    y = (np.char.endswith(label, "7") ^ (rng.random(rows) < 0.1)).astype(int)
    X = pd.DataFrame({"label": label, "x": rng.normal(size=rows)})
    model = fitted(X, y, max_terms=None, max_iter=40)
    assert model.certificate_.verify(X, y)
    known = model.ensemble_.categories[0]
    assert len(known.kept) == 254
    counts = X["label"].value_counts()
    assert counts[list(known.kept)].min() >= counts[list(known.rare)].max()
    unseen = model.decision_function(X.assign(label="w"))
    np.testing.assert_array_equal(unseen, model.decision_function(X.assign(label=None)))


def test_a_hundred_thousand_labels():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": [f"u{k}" for k in range(100_000)], "x": rng.normal(size=100_000)})
    y = (X["x"] > 0).astype(int)
    model = fitted(X, y, max_terms=2, max_iter=4)
    assert model.score(X, y) > 0.95


def test_what_is_refused():
    frame, y = mixed()
    with pytest.raises(ValueError, match="colour"):
        fitted(frame, y, categorical_features=None)
    with pytest.raises(ValueError, match="weight"):
        fitted(frame, y, categorical_features=["weight"])
    bad = frame.assign(colour=[1, "red"] * (len(y) // 2))
    with pytest.raises((TypeError, ValueError), match="colour"):
        fitted(bad, y)
    with pytest.raises(ValueError, match="age"):
        fitted(pd.concat([frame, frame[["age"]]], axis=1), y)
    model = fitted(frame, y)
    with pytest.raises(ValueError, match="age"):
        model.predict(frame.assign(age="old"))


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_every_order_of_categories_and_rows(loss):
    """Nothing depends on which label comes first."""
    frame, y = mixed(rows=120)
    make = (
        (lambda: CardBoostRegressor(max_terms=4, max_iter=8, n_jobs=1))
        if loss == "squared"
        else (lambda: CardBoostClassifier(max_terms=4, max_iter=8, n_jobs=1))
    )
    scores = []
    for order in itertools.islice(itertools.permutations(COLOURS), 4):
        X = frame.astype({"colour": pd.CategoricalDtype(list(order))})
        scores.append(make().fit(X, y).predict(X))
    for other in scores[1:]:
        np.testing.assert_array_equal(other, scores[0])

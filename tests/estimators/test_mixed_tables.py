"""Categories and missing values: the same model from every container, and what unseen labels do."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.tree import DecisionTreeClassifier

from cardboost import CardBoostClassifier, CardBoostRegressor, load_model
from cardboost.certificate import checker
from cardboost.data.categories import OTHER

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
    settings = {"max_terms": 6, "l2": 0.01, "max_iter": 15, "n_jobs": 1, **parameters}
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


@pytest.mark.filterwarnings("ignore::cardboost.ColumnRoleWarning")  # they are the point
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


@pytest.mark.filterwarnings("ignore::cardboost.ColumnRoleWarning")  # the labels are identifiers
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
        (lambda: CardBoostRegressor(max_terms=4, l2=0.01, max_iter=8, n_jobs=1))
        if loss == "squared"
        else (lambda: CardBoostClassifier(max_terms=4, l2=0.01, max_iter=8, n_jobs=1))
    )
    scores = []
    for order in itertools.islice(itertools.permutations(COLOURS), 4):
        X = frame.astype({"colour": pd.CategoricalDtype(list(order))})
        scores.append(make().fit(X, y).predict(X))
    for other in scores[1:]:
        np.testing.assert_array_equal(other, scores[0])


# ------------------------------------------------------------------------------------ sets of labels

TOWNS = np.array([f"town {k:02d}" for k in range(14)])
GOOD = frozenset(TOWNS[[1, 3, 4, 8, 11]])


def towns(seed=0, rows=600, missing=0.05):
    """A number and a category of which five labels go together."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"town": TOWNS[rng.integers(0, 14, rows)], "age": rng.integers(18, 80, rows)})
    score = frame["town"].isin(GOOD) * 2.5 + (frame["age"] > 50) - 1.8
    y = (score + rng.normal(0, 0.6, rows) > 0).to_numpy().astype(int)
    frame.loc[rng.random(rows) < missing, "town"] = None
    return frame, y


def sets_of(ensemble):
    return [term for term in ensemble.terms if term.one_of is not None]


def test_one_term_finds_the_labels_that_go_together():
    frame, y = towns()
    model = fitted(frame, y, max_terms=1)
    (term,) = sets_of(model.ensemble_)
    inside = set(term.one_of)
    assert inside == GOOD or set(TOWNS) - inside == GOOD
    assert model.certificate_.verify(frame, y)
    assert "is one of town 01, town 03," in model.card()
    content = model.certificate_.to_dict()
    order = content["categories"][0]["order"]
    share = [y[(frame["town"] == name).to_numpy()].sum() for name in TOWNS]
    weight = [(frame["town"] == name).sum() for name in TOWNS]
    mean = (np.array(share) + 10 * y.mean()) / (np.array(weight) + 10)
    assert order == np.argsort(mean, kind="stable").tolist()


def test_a_set_that_is_changed_is_refused():
    frame, y = towns()
    content = fitted(frame, y, max_terms=1).certificate_.to_dict()
    ((column, _),) = content["solution"]["weights"]
    first, order = content["columns"]["first"][column], content["categories"][0]["order"]
    assert first == len(TOWNS) - len(GOOD)

    def faults(change):
        broken = json.loads(json.dumps(content))
        change(broken)
        broken["digest"] = checker.content_digest(broken)
        return checker.check(broken, frame, y)

    assert faults(lambda own: None) == []
    for size in (first - 1, first + 1, None):
        assert faults(lambda own, size=size: own["columns"]["first"].__setitem__(column, size))
    other = order.copy()
    other[first - 1], other[first] = other[first], other[first - 1]
    assert faults(lambda own: own["categories"][0].update(order=other))
    assert faults(lambda own: own["categories"][0]["kept"].__setitem__(0, "elsewhere"))
    # another order of the labels on one side is another dictionary: the model costs what it did
    other = [*order[:first][::-1], *order[first:]]
    found = faults(lambda own: own["categories"][0].update(order=other))
    assert not any(fault.startswith("solution") for fault in found)


@pytest.mark.parametrize(
    "parameters", [{}, {"max_terms": None}, {"max_features": 1}, {"feature_costs": {"town": 0.01}}]
)
def test_sets_are_the_same_for_weights_repetitions_orders_and_threads(parameters):
    frame, y = towns(rows=400)
    rng = np.random.default_rng(1)
    count = rng.integers(0, 4, len(y))
    weighted = fitted(frame, y, count.astype(float), **parameters)
    assert sets_of(weighted.ensemble_)
    at = rng.permutation(np.repeat(np.arange(len(y)), count))
    other = fitted(frame.iloc[at], y[at], n_jobs=3, **parameters)
    assert same_model(other, weighted)
    assert weighted.certificate_.verify(frame, y, count)
    assert other.certificate_.verify(frame.iloc[at], y[at])


def test_sets_from_every_container(tmp_path):
    frame, y = towns()
    first = fitted(frame, y)
    for other in (frame.astype({"town": "category"}), pl.from_pandas(frame), frame.to_numpy(dtype=object)):
        again = fitted(other, y)
        assert again.ensemble_.terms == first.ensemble_.terms
        np.testing.assert_array_equal(again.predict_proba(other), first.predict_proba(frame))
        assert again.certificate_.verify(other, y)
    codes = frame.assign(town=frame["town"].map({name: k for k, name in enumerate(TOWNS)}))
    numbered = fitted(codes, y, categorical_features=["town"])
    np.testing.assert_array_equal(numbered.decision_function(codes), first.decision_function(frame))
    first.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.ensemble == first.ensemble_
    np.testing.assert_array_equal(loaded.decision_function(frame), first.decision_function(frame))


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_sets_and_labels_that_are_missing_or_unseen(missing):
    frame, y = towns(missing=missing)
    model = fitted(frame, y, max_terms=3)
    assert sets_of(model.ensemble_)
    unseen = model.decision_function(frame.assign(town="elsewhere"))
    np.testing.assert_array_equal(unseen, model.decision_function(frame.assign(town=None)))
    if not missing:  # most rows are in the other towns
        np.testing.assert_array_equal(unseen, model.decision_function(frame.assign(town="town 00")))
    rest = model.contributions(frame).sum(axis=1) + model.ensemble_.intercept
    np.testing.assert_allclose(rest, model.decision_function(frame))
    *_, last = model.staged_decision_function(frame)
    np.testing.assert_array_equal(last, model.decision_function(frame))


@pytest.mark.parametrize("flip", [False, True])
def test_rare_labels_are_in_a_set_together(flip):
    rng = np.random.default_rng(0)
    rows = 9000
    label = np.array([f"v{k:03d}" for k in range(400)])[np.minimum(rng.geometric(0.01, rows) - 1, 399)]
    good = np.char.endswith(label, "7") | (label > "v250")
    y = (good ^ flip ^ (rng.random(rows) < 0.05)).astype(int)
    X = pd.DataFrame({"label": label, "x": rng.normal(size=rows)})
    model = fitted(X, y, max_terms=3)
    assert model.certificate_.verify(X, y)
    known = model.ensemble_.categories[0]
    inside = {OTHER in own.one_of for own in sets_of(model.ensemble_)}
    assert inside == {flip}
    assert not flip or all(own.one_of[-1] is OTHER for own in sets_of(model.ensemble_))
    scores = {model.decision_function(X.assign(label=one, x=0.0))[0] for one in known.rare}
    assert len(scores) == 1


def test_sets_for_numbers_and_for_every_class():
    frame, _ = towns()
    target = np.where(frame["town"].isin(GOOD), 10.0, 3.0) + 0.01 * frame["age"]
    model = CardBoostRegressor(max_terms=2, l2=0.01, max_iter=10, n_jobs=1).fit(frame, target)
    assert sets_of(model.ensemble_)
    assert model.certificate_.verify(frame, target)
    kind = np.where(
        frame["town"].isin(GOOD), "a", np.where(frame["town"].isin(TOWNS[[0, 2, 5, 6]]), "b", "c")
    )
    many = fitted(frame, kind, max_terms=3)
    orders = set()
    for k, own in enumerate(many.certificate_):
        assert own.verify(frame, kind == many.classes_[k])
        assert sets_of(many.ensemble_.ensembles[k])
        orders.add(tuple(own.to_dict()["categories"][0]["order"]))
        single = fitted(frame, kind == many.classes_[k], max_terms=3)
        assert single.ensemble_.terms == many.ensemble_.ensembles[k].terms
    assert len(orders) == 3
    assert many.score(frame, kind) > 0.9
    many.card()


def test_warm_starts_take_sets_along():
    frame, y = towns()
    model = CardBoostClassifier(max_terms=None, l2=0.01, max_iter=6, warm_start=True, n_jobs=1, tol=0.0).fit(
        frame, y
    )
    before = len(sets_of(model.ensemble_))
    assert before
    model.set_params(max_iter=12).fit(frame, y)
    straight = CardBoostClassifier(max_terms=None, l2=0.01, max_iter=12, n_jobs=1, tol=0.0).fit(frame, y)
    assert model.certificate_.objective == pytest.approx(straight.certificate_.objective, rel=0.05)
    assert model.certificate_.verify(frame, y)
    other, z = towns(seed=5, rows=150)
    model.set_params(max_iter=20).fit(other, z)
    assert model.certificate_.verify(other, z)
    few = other[other["town"].isin(TOWNS[:3])]
    model.set_params(max_iter=40).fit(few, z[other["town"].isin(TOWNS[:3])])


def test_sets_beside_other_learners():
    frame, y = towns(missing=0.0)
    numbers = frame.assign(town=frame["town"].map({name: k for k, name in enumerate(TOWNS)}))
    model = CardBoostClassifier(
        dictionary=["stumps", DecisionTreeClassifier(max_depth=2)], max_terms=3, max_iter=8, n_jobs=1,
        categorical_features=["town"],
    ).fit(numbers, y)  # fmt: skip
    assert model.certificate_.verify(numbers, y)
    assert sets_of(model.ensemble_.stumps)

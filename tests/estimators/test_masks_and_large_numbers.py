"""Masked entries are missing ones, and whole numbers that a float64 would round are refused."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from cardboost import (
    CardBoostClassifier,
    CardBoostRegressor,
    NeuralBoostClassifier,
    NeuralBoostRegressor,
    SoftMarginClassifier,
    SparseLinearRegression,
    SparseLogisticRegression,
    StagewiseClassifier,
    StagewiseRegressor,
    load_model,
    pareto_front,
)
from cardboost.data.table import read_table
from cardboost.solvers import minimize_l1, minimize_on_simplex, select_columns
from cardboost.solvers.thinning import thin_learners

QUICK = {"max_terms": 3, "hot_start": 8, "max_nodes": 10, "n_jobs": 1}
NETS = {"max_iter": 2, "early_stopping": False, "n_jobs": 1}
TREE, REGRESSOR = DecisionTreeClassifier(max_depth=2), DecisionTreeRegressor(max_depth=2)
MISSING = [  # take missing values
    CardBoostClassifier(**QUICK),
    CardBoostClassifier(**QUICK, dictionary=["stumps", TREE], random_state=0),
    CardBoostRegressor(**QUICK),
    SoftMarginClassifier(temperature=1.0, n_jobs=1),
    SoftMarginClassifier(dictionary=TREE, max_iter=4, random_state=0, n_jobs=1),
    StagewiseClassifier(max_iter=5, n_jobs=1),
    StagewiseRegressor(max_iter=5, n_jobs=1),
    StagewiseRegressor(dictionary=REGRESSOR, max_iter=3, random_state=0, n_jobs=1),
]
FINITE = [  # do not
    SparseLogisticRegression(l1=0.01, n_jobs=1),
    SparseLinearRegression(l1=0.01, n_jobs=1),
    NeuralBoostClassifier(**NETS),
    NeuralBoostRegressor(**NETS),
]
BIG = 2**53 + 1  # the first whole number that a float64 cannot hold


def named(estimator):
    return type(estimator).__name__


def table(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)).round(2)
    mask = rng.random(X.shape) < 0.2
    y = np.where(mask[:, 1], 2.0, X[:, 0]) + 0.3 * rng.normal(size=rows)
    return X, mask, y


def target_of(estimator, y):
    return y > 0.3 if is_classifier(estimator) else y


# ------------------------------------------------------------------------------------ masks


@pytest.mark.parametrize("estimator", MISSING, ids=named)
def test_masked_entries_are_missing(estimator):
    X, mask, y = table()
    target = target_of(estimator, y)
    expected = clone(estimator).fit(np.where(mask, np.nan, X), target)
    masked = np.ma.MaskedArray(np.where(mask, 1e6, X), mask)
    model = clone(estimator).fit(masked, target)
    for rows in (masked, np.where(mask, np.nan, X)):
        np.testing.assert_array_equal(model.predict(rows), expected.predict(np.where(mask, np.nan, X)))
    assert (model.predict(masked) != model.predict(masked.data)).any()
    if hasattr(model, "certificate_"):
        for rows in (masked, np.where(mask, np.nan, X)):
            assert model.certificate_.faults(rows, target) == []
        assert not model.certificate_.verify(masked.data, target)
        with pytest.raises(ValueError, match="sample_weight holds masked entries"):
            model.certificate_.verify(masked, target, np.ma.MaskedArray(np.ones(len(X)), mask[:, 0]))
        with pytest.raises(ValueError, match="y holds masked entries"):
            model.certificate_.verify(masked, np.ma.MaskedArray(target, mask[:, 0]))
    if hasattr(model, "prove") and model.dictionary == "stumps":
        with warnings.catch_warnings():  # where exact search does not take the loss
            warnings.simplefilter("ignore", UserWarning)
            model = pickle.loads(pickle.dumps(model)).prove(masked, target, max_nodes=50)
        assert model.certificate_.verify(masked, target)


@pytest.mark.parametrize("kind", ["whole", "text", "objects", "single"])
def test_masks_of_all_types(kind):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 4, size=(80, 2))
    mask = rng.random(values.shape) < 0.2
    data = {
        "whole": values,
        "text": values.astype(str),
        "objects": values.astype(object),
        "single": values.astype(np.float32),
    }[kind]
    names = [0, 1] if kind == "text" else None
    found = read_table(np.ma.MaskedArray(data, mask), categorical=names)
    for j, column in enumerate(found.columns):
        absent = column.codes < 0 if kind == "text" else np.isnan(column)
        np.testing.assert_array_equal(absent, mask[:, j])
    plain = read_table(np.ma.MaskedArray(values, False))
    np.testing.assert_array_equal(np.column_stack(plain.columns), values)


def test_masks_of_certificates_of_all_types():
    rng = np.random.default_rng(1)
    values, y = rng.integers(0, 4, size=(80, 2)), rng.random(80) < 0.4
    mask = rng.random(values.shape) < 0.2
    for data in (values, values.astype(str), values.astype(object), values.astype(np.float32)):
        masked = np.ma.MaskedArray(data, mask)
        names = [0, 1] if data.dtype.kind == "U" else "from_dtype"
        model = CardBoostClassifier(**QUICK, categorical_features=names).fit(masked, y)
        assert model.certificate_.faults(masked, y) == []
        assert not model.certificate_.verify(data, y)


def test_masks_of_matrices_and_of_fitted_learners():
    X, mask, y = table()
    masked, labels = np.ma.MaskedArray(X, mask), y > 0.3
    A = np.ma.MaskedArray(np.where(X > 0, 1, -1), mask)
    for solve in (
        lambda A, **own: select_columns(A, max_terms=2, **own),
        lambda A, **own: minimize_l1(A, 0.1, **own),
        lambda A, **own: minimize_on_simplex(A, 1.0, **own),
    ):
        with pytest.raises(ValueError, match="A holds masked entries"):
            solve(A)
        with pytest.raises(ValueError, match="sample_weight holds masked entries"):
            solve(A.data, sample_weight=np.ma.MaskedArray(np.ones(len(X)), mask[:, 0]))
        solve(np.ma.MaskedArray(A.data, False))
    missing = np.where(mask, np.nan, X)
    trees = [
        DecisionTreeClassifier(max_depth=1, max_features=1, random_state=k).fit(missing, labels)
        for k in range(6)
    ]
    thin = thin_learners(trees, masked, labels, 2)
    assert thin.certificate.content == thin_learners(trees, missing, labels, 2).certificate.content
    assert thin.faults(masked, labels) == []
    for own in (
        {"y": np.ma.MaskedArray(labels, mask[:, 0])},
        {"y": labels, "sample_weight": np.ma.MaskedArray(y, mask[:, 0])},
    ):
        with pytest.raises(ValueError, match="holds masked entries"):
            thin_learners(trees, masked, max_terms=2, **own)
    linear = SparseLinearRegression(l1=0.01, n_jobs=1).fit(X, y)
    assert linear.certificate_.faults(masked, y) == ["X holds masked entries: every row needs a value there"]
    assert linear.certificate_.faults(X, np.ma.MaskedArray(y, mask[:, 0])) == [
        "y holds masked entries: every row needs a value there"
    ]


@pytest.mark.parametrize("estimator", FINITE, ids=named)
def test_masked_entries_are_refused_where_missing_ones_are(estimator):
    X, mask, y = table()
    target = target_of(estimator, y)
    masked = np.ma.MaskedArray(X, mask)
    with pytest.raises(ValueError, match="X contains NaN"):
        clone(estimator).fit(masked, target)
    model = clone(estimator).fit(np.ma.MaskedArray(X, np.zeros_like(mask)), target)
    with pytest.raises(ValueError, match="X contains NaN"):
        model.predict(masked)


@pytest.mark.parametrize("estimator", MISSING + FINITE, ids=named)
def test_masked_targets_and_weights_are_refused(estimator):
    X, _, y = table()
    target, mask = target_of(estimator, y), np.arange(len(y)) == 7
    with pytest.raises(ValueError, match="y holds masked entries: every row needs a value"):
        clone(estimator).fit(X, np.ma.MaskedArray(target, mask))
    if estimator is MISSING[-1]:
        return
    with pytest.raises(ValueError, match="sample_weight holds masked entries"):
        clone(estimator).fit(X, target, sample_weight=np.ma.MaskedArray(np.ones(len(y)), mask))
    clone(estimator).fit(X, np.ma.MaskedArray(target, False))


def test_masks_of_saved_models_and_fronts(tmp_path):
    X, mask, y = table()
    masked, missing = np.ma.MaskedArray(X, mask), np.where(mask, np.nan, X)
    model = CardBoostClassifier(**QUICK).fit(masked, y > 0.3)
    model.save(tmp_path / "model.json")
    back = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(back.predict_proba(masked), model.predict_proba(missing))
    options = {"sizes": [1, 2], "cv": 2, "random_state": 0, "estimator": CardBoostClassifier(**QUICK)}
    front = pareto_front(masked, y > 0.3, **options)
    assert [own.mean for own in front] == [own.mean for own in pareto_front(missing, y > 0.3, **options)]
    with pytest.raises(ValueError, match="y holds masked entries"):
        pareto_front(X, np.ma.MaskedArray(y, mask[:, 0]))


# ------------------------------------------------------------------------------------ whole numbers


def tables_with(number):
    """Tables of all kinds whose column 1, or "id", has this whole number, with and without missing values."""
    plain = [[0, 1], [1, 2], [2, number], [3, 4]]
    holes = [[0, None], [1, 2], [2, number], [3, 4]]
    ids = [row[1] for row in plain], [row[1] for row in holes]
    wide = np.uint64 if number > 0 else np.int64
    yield plain
    yield [[0.5, 1], [1, 2], [2, number], [3, 4]]  # NumPy makes floats of it
    yield np.array(plain, dtype=wide)
    yield np.asfortranarray(np.array(plain, dtype=wide))
    yield np.array(holes, dtype=object)
    yield np.ma.MaskedArray(np.array(plain, dtype=wide), [[False, True], *[[False, False]] * 3])
    name = "UInt64" if number > 0 else "Int64"
    for kind, values in (
        (name.lower(), ids[0]),
        (object, ids[0]),
        (object, ids[1]),
        (name, ids[1]),
        (f"{name.lower()}[pyarrow]", ids[1]),
    ):
        yield pd.DataFrame({"x": range(4), "id": pd.Series(values, dtype=kind)})
    for values in ids:
        yield pl.DataFrame({"x": range(4), "id": pl.Series(values, dtype=getattr(pl, name))})
        yield pa.table({"x": range(4), "id": pa.array(values, type=getattr(pa, name.lower())())})


@pytest.mark.parametrize("number", [BIG, -BIG, 2**63 - 1, 2**62 + 2, 2**64 - 2])
@pytest.mark.parametrize("categorical", [None, "from_dtype"])
def test_whole_numbers_that_would_be_rounded_are_refused(number, categorical):
    for X in tables_with(number):
        with pytest.raises(ValueError, match=rf"column (1|'id') holds the whole number {number}"):
            read_table(X, categorical=categorical)


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**60, -(2**63), 2**63, 2**53 + 2])
def test_whole_numbers_that_a_float_holds_are_taken(number):
    for X in tables_with(number):
        assert float(read_table(X, categorical="from_dtype").columns[1][2]) == number


def test_whole_numbers_as_categories_keep_their_digits():
    X = np.array([[BIG], [BIG - 1], [BIG], [BIG - 1]])
    assert read_table(X, categorical=[0]).columns[0].labels == (BIG - 1, BIG)


@pytest.mark.parametrize("estimator", MISSING + FINITE, ids=named)
def test_no_estimator_rounds_whole_numbers(estimator):
    _, _, y = table(60)
    X = np.tile(np.arange(60)[:, None], (1, 3))
    target, large = target_of(estimator, y), X.copy()
    large[5, 2] = BIG
    if getattr(estimator, "dictionary", "stumps") in ("stumps", ["stumps", TREE]):
        with pytest.raises(ValueError, match=f"column 2 holds the whole number {BIG}"):
            clone(estimator).fit(large, target)
        with pytest.raises(ValueError, match=f"column 'c' holds the whole number {BIG}"):
            clone(estimator).fit(pd.DataFrame(large, columns=["a", "b", "c"]), target)
        if getattr(estimator, "dictionary", "stumps") == "stumps":
            with pytest.raises(ValueError, match=f"column 2 holds the whole number {BIG}"):
                clone(estimator).fit(X, target).predict(large)
    if estimator is not MISSING[-1]:
        with pytest.raises(ValueError, match=f"sample_weight holds the whole number {BIG}"):
            clone(estimator).fit(X, target, sample_weight=large[:, 2])
    if not is_classifier(estimator):
        with pytest.raises(ValueError, match=f"y.* holds the whole number {BIG}"):
            clone(estimator).fit(X, large[:, 2])


def test_labels_that_numpy_would_round_are_refused():
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match="y holds the whole number"):
        CardBoostClassifier(**QUICK).fit(X, [2**63 + 1, -1] * 3)
    model = CardBoostClassifier(**QUICK).fit(X, [BIG, BIG - 1] * 3)
    assert model.classes_.tolist() == [BIG - 1, BIG]


def test_sparse_whole_numbers():
    X = sparse.csr_array(np.array([[0, BIG], [1, 0], [2, 3], [0, 4]]))
    with pytest.raises(ValueError, match=f"X holds the whole number {BIG}"):
        SparseLinearRegression(l1=0.01).fit(X, [0.0, 1.0, 2.0, 3.0])


def test_columns_that_a_saved_model_does_not_use_may_hold_anything(tmp_path):
    X = np.column_stack([np.arange(40), np.zeros(40, dtype=int)])
    CardBoostClassifier(**QUICK).fit(X, X[:, 0] > 17).save(tmp_path / "model.json")
    X[:, 1] = BIG
    assert load_model(tmp_path / "model.json").predict(X).sum() == 22

"""Data frames with columns that look like identifiers, dates or constants: a warning, and nothing else."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cardboost
from cardboost import (
    CardBoostClassifier,
    CardBoostRegressor,
    ColumnRoleWarning,
    NeuralBoostClassifier,
    NeuralBoostRegressor,
    SoftMarginClassifier,
    SparseLinearRegression,
    SparseLogisticRegression,
    StagewiseClassifier,
    StagewiseRegressor,
    pareto_front,
)
from cardboost.data.frame import Frame

N = 80
rng = np.random.default_rng(0)
x = rng.normal(size=N)
y = (x + 0.5 * rng.normal(size=N) > 0).astype(int)
NUMBERS = pd.DataFrame(
    {"x": x, "id": np.arange(N), "day": 20240100 + np.arange(N) % 28 + 1, "same": np.ones(N)}
)
TEXT = pd.DataFrame(
    {"x": x, "customer": [f"C-{k:04d}" for k in range(N)], "day": [f"{k % 28 + 1}.1.2024" for k in range(N)]}
)
NEURAL = {"max_iter": 1, "net_iter": 2, "early_stopping": False, "l2": 0.01, "random_state": 0}
ESTIMATORS = [
    CardBoostClassifier(max_terms=2, l2=0.01),
    CardBoostRegressor(max_terms=2, l2=0.01),
    StagewiseClassifier(max_iter=3),
    StagewiseRegressor(max_iter=3),
    SoftMarginClassifier(max_iter=3),
    NeuralBoostClassifier(**NEURAL),
    NeuralBoostRegressor(**NEURAL),
    SparseLogisticRegression(l1=0.01, l2=0.01),
    SparseLinearRegression(l1=0.01),
]


def warned(call):
    """The one warning of a call."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        call()
    (record,) = [record for record in records if record.category is ColumnRoleWarning]
    return record


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_every_estimator_warns_once_of_frames(model):
    record = warned(lambda: model.fit(NUMBERS, y))
    assert record.filename == __file__, "the warning points to the line of the user"
    assert str(record.message).startswith(
        "X has columns that look like identifiers ('id'), dates ('day'), constants ('same')."
    )
    assert model.n_features_in_ == 4, "nothing is left out"
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnRoleWarning)
        model.fit(NUMBERS.to_numpy(), y)
        model.fit(NUMBERS[["x"]], y)
        model.predict(NUMBERS[["x"]])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_text_of_every_kind_of_frame(make):
    frame = make({name: TEXT[name].tolist() for name in TEXT})
    record = warned(lambda: CardBoostClassifier(max_terms=1, l2=0.01).fit(frame, y))
    assert "identifiers ('customer'), dates ('day')." in str(record.message)


def test_named_categories_and_tables_of_the_command_are_taken_as_they_are():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnRoleWarning)
        CardBoostClassifier(max_terms=1, l2=0.01, categorical_features=["customer", "day"]).fit(TEXT, y)
        read = Frame({"x": x, "id": np.arange(N, dtype=float)}, N)
        CardBoostClassifier(max_terms=1, l2=0.01).fit(read, y)
        CardBoostClassifier(max_terms=1, l2=0.01).fit([[k, v] for k, v in enumerate(x)], y)


def test_many_columns_and_columns_without_names():
    frame = pd.DataFrame({k: np.arange(N) + k for k in range(8)})
    record = warned(lambda: CardBoostClassifier(max_terms=1, l2=0.01).fit(frame, y))
    assert "identifiers ('0', '1', '2', '3', '4' and 3 more)." in str(record.message)


def test_a_front_warns_once():
    record = warned(lambda: pareto_front(NUMBERS, y, sizes=[1], cv=2, random_state=0))
    assert record.filename == __file__


def test_learners_of_the_user_read_what_they_like():
    from sklearn.tree import DecisionTreeClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnRoleWarning)
        CardBoostClassifier(dictionary=DecisionTreeClassifier(max_depth=1), max_terms=1).fit(NUMBERS, y)


def test_the_warning_is_public():
    assert issubclass(cardboost.ColumnRoleWarning, UserWarning)
    assert "ColumnRoleWarning" in cardboost.__all__


def test_names_count_where_values_leave_it_open():
    keys = np.random.default_rng(1).integers(10**5, 10**6, N)
    frame = pd.DataFrame({"x": x, "custno": keys, "amount": keys})
    record = warned(lambda: CardBoostClassifier(max_terms=1).fit(frame, y))
    assert "look like identifiers ('custno')." in str(record.message)

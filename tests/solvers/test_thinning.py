"""Few of many fitted learners, on rows that they have not seen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from cardboost.solvers import thin_learners


def table(seed, rows=600):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, 3)), 2)
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=rows) > 0.3


def forest(X, y, n):
    return RandomForestClassifier(n, random_state=0).fit(X, y)


@pytest.mark.parametrize("labels", [(0, 1), ("no", "yes")])
def test_a_thinned_forest(labels):
    X, y = table(14)
    named = np.array(labels)[y.astype(int)]
    model = forest(X[:300], named[:300], 100)
    result = thin_learners(model.estimators_, X[300:450], named[300:450], 10)
    assert result.ensemble.n_terms == 10
    assert result.ensemble.classes == labels
    assert result.faults(X[300:450], named[300:450]) == []
    thinned = np.mean(result.ensemble.predict(X[450:]) == named[450:])
    assert thinned >= model.score(X[450:], named[450:]) - 0.05
    weighted = thin_learners(
        model.estimators_, X[300:450], named[300:450], 10, candidates=30, sample_weight=np.arange(1.0, 151.0)
    )
    assert 10 < weighted.trace[-1].n_columns <= 30
    assert weighted.verify(X[300:450], named[300:450], np.arange(1.0, 151.0))
    whole = thin_learners(model.estimators_, X[300:450], named[300:450], None)
    assert whole.certificate.status == "optimal"


def test_rows_without_weight_are_no_rows():
    pandas = pytest.importorskip("pandas")
    X, y = table(1, rows=120)
    trees = forest(X[:60], y[:60], 12).estimators_
    weight = np.where(np.arange(60) % 3 == 0, 0.0, 1.5)
    few = thin_learners(trees, X[60:][weight > 0], y[60:][weight > 0], 3, sample_weight=weight[weight > 0])
    for rows in (X[60:], X[60:].tolist(), pandas.DataFrame(X[60:])):
        result = thin_learners(trees, rows, y[60:], 3, sample_weight=weight)
        assert result.certificate.content == few.certificate.content
        assert result.verify(rows, y[60:], weight)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.zeros(60)}, "only one class is present"),
        ({"y": np.arange(60)}, "y must hold two classes in rows with a weight; found 60"),
        ({"y": np.zeros(59)}, "X and y have inconsistent numbers of samples: 60 and 59"),
        ({"sample_weight": np.ones(59)}, "sample_weight must hold 60 finite numbers"),
        ({"sample_weight": np.full(60, -1.0)}, "sample_weight must hold 60 finite numbers"),
        ({"sample_weight": np.full(60, np.nan)}, "sample_weight must hold 60 finite numbers"),
        (
            {"sample_weight": np.zeros(60)},
            "sample_weight must hold 60 finite .* not all 0",
        ),
        ({"max_terms": 0}, "max_terms must be a whole number of at least 1"),
        ({"candidates": 0}, "candidates must be a whole number of at least 1"),
        ({"l1": -1.0}, "l1 must be a number of at least 0"),
        ({"max_weight": 0.0}, "max_weight must be a number above 0"),
        ({"loss": "huber"}, "loss must be one of"),
        ({"learners": []}, "the list of fitted learners is empty"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    X, y = table(2, rows=60)
    given = {"learners": forest(X, y, 3).estimators_, "X": X, "y": y, "max_terms": 2} | arguments
    with pytest.raises(ValueError, match=message):
        thin_learners(**given)

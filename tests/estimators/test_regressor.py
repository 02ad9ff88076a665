"""Squared loss: the same loop for numbers."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.tree import DecisionTreeRegressor

from cardboost import CardBoostRegressor, load_model


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


def fitted(X, y, sample_weight=None, **parameters):
    return CardBoostRegressor(**{"max_terms": 6, "max_iter": 15, "n_jobs": 1, **parameters}).fit(
        X, y, sample_weight
    )


@pytest.mark.parametrize(
    "parameters", [{}, {"max_terms": None}, {"max_terms": None, "l0": 0.01}, {"fit_intercept": False}]
)
def test_fit_and_certificate(diabetes, parameters):
    X, y = diabetes
    model = fitted(X, y, **parameters)
    own = model.certificate_
    assert own.lower_bound <= own.objective
    assert own.verify(X, y)
    assert not own.verify(X, y + 1)
    if not parameters:
        assert model.score(X, y) > 0.4
    terms = model.ensemble_
    by_hand = terms.intercept + terms.contributions(X).sum(axis=1)
    np.testing.assert_allclose(model.predict(X), by_hand)


def test_one_term_is_the_best_single_split(diabetes):
    """Without prices a card of one term is the least-squares stump."""
    X, y = diabetes
    model = fitted(X, y, max_terms=1, l1=0.0, l2=0.0, hot_start=60, max_iter=60, max_bins=255)
    tree = DecisionTreeRegressor(max_depth=1).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) == pytest.approx(
        np.mean((tree.predict(X) - y) ** 2), rel=1e-6
    )


def test_units_do_not_matter(diabetes):
    X, y = diabetes
    model, scaled = fitted(X, y), fitted(X, 1000.0 * y - 5e4)
    np.testing.assert_allclose(scaled.predict(X), 1000.0 * model.predict(X) - 5e4, rtol=1e-9)
    assert [t.cut for t in scaled.ensemble_.terms] == [t.cut for t in model.ensemble_.terms]


@pytest.mark.parametrize("max_terms", [6, None])
def test_weights_are_repetitions_to_the_bit(diabetes, max_terms):
    X, y = diabetes
    count = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = fitted(X, y, count.astype(float), max_terms=max_terms)
    at = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), count))
    repeated = fitted(X.iloc[at], y.iloc[at], max_terms=max_terms, n_jobs=2)
    assert weighted.ensemble_ == repeated.ensemble_
    claims = [fit.certificate_.to_dict() for fit in (weighted, repeated)]
    for one in claims:  # the number of rows is part of the certificate
        one["digest"] = one["data"]["rows"] = None
    assert claims[0] == claims[1]


def test_constant_targets_and_extremes(diabetes):
    X, y = diabetes
    model = fitted(X, np.full(len(y), 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0)
    for size in (1e-300, 1e300):
        out = fitted(X, y * (size / 346.0)).predict(X)
        assert np.isfinite(out).all()
        assert len(np.unique(out)) > 3
    spike = y.to_numpy().copy()
    spike[0] = 1e9
    assert fitted(X, spike).certificate_.verify(X, spike)


def test_save_load_pickle_and_card(diabetes, tmp_path):
    X, y = diabetes
    model = fitted(X, y)
    model.save(tmp_path / "m.json")
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").predict(X), model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    card = model.card()
    assert "bmi" in card
    assert "probability" not in card


def test_categories(diabetes):
    X, y = diabetes
    X = X.assign(sex=np.where(X["sex"] > 0, "f", "m"))
    model = fitted(X, y)
    assert model.certificate_.verify(X, y)
    assert model.score(X, y) > DummyRegressor().fit(X, y).score(X, y) + 0.3


def test_what_is_refused(diabetes):
    X, y = diabetes
    for bad in (y.replace(y.iloc[0], np.nan), ["a"] * len(y), y.iloc[:-1], None, np.c_[y, y]):
        with pytest.raises((ValueError, TypeError), match=r"y|samples"):
            fitted(X, bad)
    with pytest.raises(ValueError, match="loss"):
        fitted(X, y, loss="logistic")
    with pytest.raises(ValueError, match="feature"):
        fitted(pd.DataFrame(index=X.index), y)


def test_rows_of_next_to_no_weight_far_from_all_others_are_refused():
    X, y = np.arange(6.0)[:, None], np.array([3.6e9, 1.1e10, -3.7e9, -2.0e9, -3.2e9, 2.0e9])
    weight = np.array([4e-75, 2e-40, 1e-100, 9e81, 4e-66, 7e11])
    with pytest.raises(ValueError, match=r"next to no weight .* standard deviations from the mean, too far"):
        CardBoostRegressor(max_terms=2, l2=0.01, hot_start=4, n_jobs=1).fit(X, y, weight)
    model = CardBoostRegressor(max_terms=2, l2=0.01, hot_start=4, n_jobs=1).fit(
        X, y, np.maximum(weight, 1e70)
    )
    assert model.certificate_.faults(X, y, np.maximum(weight, 1e70)) == []

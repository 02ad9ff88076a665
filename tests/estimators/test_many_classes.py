"""More than two classes: one against the rest over the same stumps."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from cardboost import CardBoostClassifier, load_model


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


def fitted(X, y, sample_weight=None, **parameters):
    return CardBoostClassifier(**{"max_terms": 4, "l2": 0.01, "max_iter": 12, "n_jobs": 1, **parameters}).fit(
        X, y, sample_weight
    )


@pytest.mark.parametrize("max_terms", [4, None])
def test_fit_predict_and_certificates(wine, max_terms):
    X, y = wine
    model = fitted(X, y, max_terms=max_terms)
    assert model.score(X, y) > 0.95
    assert len(model.certificate_) == len(model.trace_) == 3
    for k, certificate in enumerate(model.certificate_):
        assert certificate.verify(X, y == k)
        assert certificate.lower_bound <= certificate.objective
    score, p = model.decision_function(X), model.predict_proba(X)
    assert score.shape == p.shape == (len(y), 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), np.argmax(score, axis=1))
    assert model.contributions(X).shape == (len(y), 13, 3)
    if max_terms is not None:
        assert all(own.n_terms <= max_terms for own in model.ensemble_.ensembles)


def test_each_part_is_the_binary_model(wine):
    X, y = wine
    model = fitted(X, y)
    for k, own in enumerate(model.ensemble_.ensembles):
        alone = fitted(X, y == k)
        assert alone.ensemble_.terms == own.terms
        np.testing.assert_array_equal(alone.decision_function(X), model.decision_function(X)[:, k])


def test_weights_are_repetitions(wine):
    X, y = wine
    count = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = fitted(X, y, count.astype(float), class_weight="balanced")
    at = np.repeat(np.arange(len(y)), count)
    repeated = fitted(X.iloc[at], y.iloc[at], class_weight="balanced")
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))


def test_labels_of_any_kind_and_a_class_without_weight(wine):
    X, y = wine
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    model = fitted(X, names)
    assert set(model.predict(X)) <= set(names)
    two = fitted(X, y, (y != 1).astype(float))
    assert list(two.classes_) == [0, 2]
    assert set(two.predict(X)) <= {0, 2}


def test_save_load_and_card(wine, tmp_path):
    X, y = wine
    model = fitted(X, y)
    model.save(tmp_path / "m.json")
    back = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    card = model.card()
    assert all(str(label) in card for label in model.classes_)


def test_class_weights_move_the_decision():
    X, y = load_iris(return_X_y=True)
    plain = fitted(X, y, max_terms=1)
    tilted = fitted(X, y, max_terms=1, class_weight={1: 20.0})
    assert (tilted.predict(X) == 1).sum() >= (plain.predict(X) == 1).sum()


def test_time_limit_covers_all_classes(wine):
    X, y = wine
    model = fitted(X, y, time_limit=0.2)
    assert len(model.ensemble_.ensembles) == 3

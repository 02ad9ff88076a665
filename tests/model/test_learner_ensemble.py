"""Ensembles of any learners: scores, labels, probabilities; and that they are not written to files."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cardboost.model.ensemble import Ensemble, Term
from cardboost.model.files import save
from cardboost.model.fitted_learner import FittedLearner
from cardboost.model.learners import LearnerEnsemble, WeightedLearner
from cardboost.problem.losses import LOSSES


class Column:
    def __init__(self, j):
        self.j = j

    def predict(self, X):
        return X[:, self.j]


def numbers(j, weight):
    return WeightedLearner(FittedLearner(Column(j), None, "predict"), weight)


def stumps(terms=(), loss="logistic", classes=("no", "yes")):
    return Ensemble(loss, 0.25, tuple(terms), None, 3, classes)


X = np.random.default_rng(0).normal(size=(20, 3))


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_scores_add_up(loss):
    model = LearnerEnsemble(stumps([Term(1, 0.0, 1, False, 0.5)], loss), (numbers(0, 2.0), numbers(2, 0.1)))
    expected = 0.25 + 0.5 * np.where(X[:, 1] <= 0, 1, -1) + 2.0 * X[:, 0] + 0.1 * X[:, 2]
    score = model.decision_function(X)
    np.testing.assert_allclose(score, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), np.where(score > 0, "yes", "no"))
    if LOSSES[loss].has_probability:
        np.testing.assert_array_equal(model.predict_proba(X)[:, 1], LOSSES[loss].probability(score))
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert (model.n_terms, model.intercept, model.loss) == (3, 0.25, loss)
    assert (model.classes, model.n_features, model.feature_names) == (("no", "yes"), 3, None)
    assert [type(own.learner) for own in model.learners] == [Column, Column]


def test_without_stumps_the_rows_may_be_anything():
    class Length:
        def predict(self, X):
            return np.array([len(text) for text in X], dtype=float)

    model = LearnerEnsemble(stumps(), (WeightedLearner(FittedLearner(Length(), None, "predict"), 1.0),))
    np.testing.assert_array_equal(model.decision_function(["a", "bb"]), [1.25, 2.25])
    assert LearnerEnsemble(stumps()).decision_function(X).tolist() == [0.25] * 20


def test_zero_is_the_negative_class_and_labels_survive():
    zero = Ensemble("logistic", 0.0, (), None, 1, ("a\0", "b\0"))
    assert LearnerEnsemble(zero).predict([1]).tolist() == ["a\0"]
    assert LearnerEnsemble(stumps(classes=(3, 7))).predict([1, 2]).tolist() == [7, 7]


@pytest.mark.parametrize("learners", [(), (numbers(0, 1.0),)])
def test_it_is_not_written_to_a_file(learners, tmp_path):
    model = LearnerEnsemble(stumps(), learners)
    for attempt in (
        lambda: model.save(tmp_path / "model.json"),
        model.to_dict,
        lambda: save(tmp_path / "model.json", model, None, {}),
    ):
        with pytest.raises(ValueError, match=r"cannot be saved: .* a model file never holds a pickle"):
            attempt()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("weight", [0.0, math.inf, math.nan])
def test_weights_are_finite_numbers(weight):
    with pytest.raises(ValueError, match="weight: expected a finite number other than 0"):
        numbers(0, weight)

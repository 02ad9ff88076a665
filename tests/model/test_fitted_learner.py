"""How the answers of fitted learners are read."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from cardboost.model.fitted_learner import FittedLearner, count_rows, method_of

X = np.array([[0.0], [1.0], [2.0], [3.0]])


class Says:
    """Answers as told, whatever it is asked."""

    def __init__(self, method, answer, classes=None):
        setattr(self, method, lambda X: answer)
        if classes is not None:
            self.classes_ = classes


def read(learner, classes=(0, 1)):
    return FittedLearner.read(learner, classes).scores(X)


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (-1.0, 1.0), (False, True), (1, 2)])
def test_labels_become_signs(labels):
    y = np.array(labels)[[0, 1, 1, 0]]
    tree = DecisionTreeClassifier().fit(X, y)
    scores = read(tree, labels)
    assert scores.dtype == np.int8
    np.testing.assert_array_equal(scores, [-1, 1, 1, -1])


@pytest.mark.parametrize("labels", [("no", "yes"), (1, 2), (0, 1)])
def test_trees_of_a_forest_name_classes_by_their_place(labels):
    y = np.array(labels)[[0, 1, 1, 0]]
    forest = RandomForestClassifier(3, bootstrap=False, random_state=0).fit(X, y)
    for tree in forest.estimators_:
        np.testing.assert_array_equal(read(tree, labels), [-1, 1, 1, -1])


def test_the_order_of_classes_is_the_learners_own():
    assert read(Says("predict", np.array(["b", "a", "a", "b"]), ["b", "a"]), ("a", "b")).tolist() == [
        1,
        -1,
        -1,
        1,
    ]
    p = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.6, 0.4]])
    assert read(Says("predict_proba", p, ["b", "a"]), ("a", "b")).tolist() == [1, -1, -1, 1]
    f = np.array([1.0, -1.0, 0.0, 2.0])
    assert read(Says("decision_function", f, ["b", "a"]), ("a", "b")).tolist() == [-1, 1, -1, -1]


def test_a_half_and_zero_are_negative():
    p = np.array([0.5, np.nextafter(0.5, 1), 0.0, 1.0])
    for answer in (p, np.column_stack([1 - p, p]), p[:, None]):
        assert read(Says("predict_proba", answer)).tolist() == [-1, 1, -1, 1]
    f = np.array([0.0, 1e-300, -0.0, -1.0])
    assert read(Says("decision_function", f)).tolist() == [-1, 1, -1, -1]


def test_numbers_stay_what_they_are():
    regressor = DecisionTreeRegressor().fit(X, [0.5, -2.0, 0.25, 3.0])
    scores = read(regressor)
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(scores, [0.5, -2.0, 0.25, 3.0])
    assert not np.signbit(read(Says("predict", np.array([-0.0, 1.0, 2.0, 3.0]))))[0]
    booster = GradientBoostingClassifier(n_estimators=2).fit(X, [0, 0, 1, 1])
    assert read(booster.estimators_[0, 0]).shape == (4,)


def test_predict_is_asked_first():
    assert method_of(RidgeClassifier()) == "predict"
    assert method_of(Says("decision_function", None)) == "decision_function"
    both = Says("predict_proba", None)
    both.decision_function = None  # not something to call
    assert method_of(both) == "predict_proba"


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (object(), "object has none of predict, decision_function and predict_proba"),
        (Says("predict", np.zeros(3)), "shape (3,) for 4 rows"),
        (Says("predict", np.zeros((4, 2))), "shape (4, 2) for 4 rows"),
        (Says("predict", np.array([0.0, np.nan, 1.0, 1.0])), "NaN or infinity"),
        (Says("predict", np.array(["a", "b", "a", "b"])), "where a number per row is expected"),
        (Says("predict", np.array([0, 1, 2, 1]), [0, 1]), "2"),
        (Says("predict", np.zeros(4), [0, 1, 2]), "two classes"),
        (Says("predict", np.zeros(4), [np.array([0, 1]), np.array([0, 1])]), "two classes"),
        (Says("predict_proba", np.full((4, 3), 1 / 3)), "shape (4, 3)"),
        (Says("predict_proba", np.full((4, 2), np.nan)), "NaN or infinity"),
        (DecisionTreeClassifier(), "failed: This DecisionTreeClassifier instance is not fitted"),
    ],
)
def test_other_answers_are_refused(learner, message):
    with pytest.raises(ValueError) as error:
        read(learner)
    assert str(error.value).startswith("dictionary: ")
    assert message in str(error.value)


def test_frames_are_arrays_to_learners_without_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0]})
    plain = DecisionTreeClassifier().fit(X, [0, 1, 1, 0])
    named = DecisionTreeClassifier().fit(frame, [0, 1, 1, 0])
    for tree in (plain, named):  # a warning would be an error here
        fitted = FittedLearner.read(tree, (0, 1))
        np.testing.assert_array_equal(fitted.scores(frame), [-1, 1, 1, -1])


def test_rows_of_anything():
    assert count_rows([1, 2]) == count_rows(np.zeros((2, 3))) == 2

"""Fronts as JSON: nothing is lost, and whatever is wrong is refused with its place."""

import copy
import json

import numpy as np
import pytest
from fronts import SIZES, amounts, mixed, numbers, quick, quick_regressor

from cardboost import ParetoFront, pareto_front


@pytest.fixture(scope="module")
def fronts():
    X, y = numbers(120)
    M, labels = mixed(150)
    A, target = amounts(120)
    common = {"cv": 2, "random_state": 0}
    return {
        "binary": (X, y, pareto_front(X, y, sizes=SIZES, estimator=quick(), **common)),
        "multiclass": (M, labels, pareto_front(M, labels, sizes=(1, 2), estimator=quick(), **common)),
        "regression": (
            A,
            target,
            pareto_front(A, target, sizes=(2,), estimator=quick_regressor(), **common),
        ),
    }


KINDS = ("binary", "multiclass", "regression")


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(fronts, kind, tmp_path):
    X, y, front = fronts[kind]
    front.save(tmp_path / "front.json")
    again = ParetoFront.load(tmp_path / "front.json")
    assert again.to_json() == front.to_json()
    assert again.table() == front.table()
    assert str(again) == str(front)
    assert again.stability(front.sizes[-1]) == front.stability(front.sizes[-1])
    model, other = front.pick("best"), again.pick("best")
    assert type(other) is type(model)
    assert other.get_params() == model.get_params()
    assert (other.predict(X) == model.predict(X)).all()
    assert other.card() == model.card()
    own = other.certificate_
    assert own[0].verify(X, y == other.classes_[0]) if kind == "multiclass" else own.verify(X, y)
    with pytest.raises(ValueError, match="features"):
        other.predict(np.zeros((2, 9)))


def test_a_model_that_was_read_can_be_saved_again(fronts, tmp_path):
    from cardboost import load_model

    X, _, front = fronts["binary"]
    again = ParetoFront.from_json(front.to_json())
    again.pick("best").save(tmp_path / "model.json")
    assert (load_model(tmp_path / "model.json").predict(X) == front.pick("best").predict(X)).all()


def test_parameters_that_json_does_not_know_are_left_out():
    X, y = numbers(100)
    estimator = quick(random_state=np.random.RandomState(0), feature_costs=[0.0, 0.1, 0.0, 0.0])
    front = pareto_front(X, y, sizes=(1,), cv=2, estimator=estimator, random_state=0)
    model = ParetoFront.from_json(front.to_json()).pick()
    assert model.random_state is None
    assert model.feature_costs == [0.0, 0.1, 0.0, 0.0]


# every change of the text of a front, and where the fault is reported
def _set(path, value):
    def change(document):
        at = document
        for key in path[:-1]:
            at = at[key]
        if value is _gone:
            del at[path[-1]]
        else:
            at[path[-1]] = value

    return change


_gone = object()
FAULTS = [
    (("format",), "cardboost-model", "format: expected 'cardboost-front', found 'cardboost-model'"),
    (("format",), _gone, "format: expected 'cardboost-front', it is missing"),
    (("version",), 2, "version: expected 1, found 2"),
    (("version",), True, "version: expected 1, found true"),
    (("scoring",), 7, "scoring: expected text, found 7"),
    (("status",), "fine", "status: expected one of complete"),
    (("folds",), 0, "folds: expected at least one, found 0"),
    (("folds",), 1, "sizes[0].scores: expected at most 1 numbers"),
    (("more",), 1, "more: unknown key"),
    (("estimator", "name"), "SVC", "estimator.name: expected CardBoostClassifier or CardBoostRegressor"),
    (("estimator", "name"), "CardBoostRegressor", "estimator.parameters['class_weight']: unknown key"),
    (("estimator", "parameters", "colour"), 1, "estimator.parameters['colour']: unknown key"),
    (("estimator", "parameters"), [], "estimator.parameters: expected an object, found a list"),
    (
        ("estimator", "categorical"),
        [2, 1],
        "estimator.categorical: expected positions of features, ascending",
    ),
    (
        ("estimator", "categorical"),
        [9],
        "sizes[0].ensemble: expected the features that estimator.categorical",
    ),
    (("rates",), [0.5], "rates: expected null or the"),
    (("rates",), None, "sizes[0].recalls: expected null, as rates says"),
    (("sizes",), [], "sizes: expected a list that is not empty"),
    (("sizes",), {}, "sizes: expected a list that is not empty, found an object"),
    (("sizes", 1, "size"), 1, "sizes[1].size: expected sizes that ascend, at least 2, found 1"),
    (("sizes", 0, "size"), 0, "sizes[0].size: expected sizes that ascend, at least 1, found 0"),
    (("sizes", 2, "size"), 3, "sizes[2].ensemble: expected at most size = 3 terms, found 4"),
    (("sizes", 1, "size"), 2.0, "sizes[1].size: expected a number of terms, found 2.0"),
    (("sizes", 2, "scores"), [0.5], "sizes[2].recalls: expected"),
    (("sizes", 2, "scores", 0), "0.5", "sizes[2].scores[0]: expected a number, found '0.5'"),
    (("sizes", 0, "recalls", 1, 3), 1.5, "sizes[0].recalls[1][3]: expected a share from 0 to 1, found 1.5"),
    (("sizes", 0, "recalls", 1), [], "sizes[0].recalls: expected"),
    (("sizes", 0, "term_frequency"), [], "sizes[0].term_frequency: expected one for each of 1 terms"),
    (("sizes", 0, "term_frequency", 0), -1, "sizes[0].term_frequency[0]: expected a share from 0 to 1"),
    (
        ("sizes", 0, "feature_frequency"),
        [],
        "sizes[0].feature_frequency: expected the features of the ensemble",
    ),
    (
        ("sizes", 0, "feature_frequency", 0),
        3,
        "sizes[0].feature_frequency[0]: expected a position and a share",
    ),
    (("sizes", 0, "ensemble", "loss"), "none", "sizes[0].ensemble.loss: expected"),
    (("sizes", 0, "ensemble", "terms", 0, "weight"), -1, "sizes[0].ensemble.terms[0].weight: expected"),
    (
        ("sizes", 1, "ensemble", "classes"),
        [0, 2],
        "sizes[1].ensemble.classes: expected the same as in sizes[0]",
    ),
    (("sizes", 0, "certificate"), None, "sizes[0].certificate: expected an object, found null"),
    (("sizes", 0, "certificate", "status"), "sure", "sizes[0].certificate.status"),
    (
        ("sizes", 0, "certificate", "bounds", 0, "guarantee"),
        "much",
        "sizes[0].certificate.bounds[0].guarantee",
    ),
    (("sizes", 0, "certificate", "bounds"), _gone, "sizes[0].certificate.bounds"),
]


@pytest.mark.parametrize(("path", "value", "message"), FAULTS, ids=lambda own: None)
def test_a_damaged_front_is_refused_with_the_place(fronts, path, value, message):
    document = json.loads(fronts["binary"][2].to_json())
    _set(path, value)(document)
    with pytest.raises(ValueError) as caught:
        ParetoFront.from_json(json.dumps(document))
    assert str(caught.value).startswith(f"front: {message}")


def test_a_key_that_is_missing_anywhere_is_missed(fronts):
    """Of the front's own objects; ensembles and certificates have their own tests."""
    document = json.loads(fronts["multiclass"][2].to_json())
    places = [((), key) for key in document]
    places += [(("estimator",), key) for key in document["estimator"]]
    places += [(("sizes", 1), key) for key in document["sizes"][1]]
    for path, key in places:
        damaged = copy.deepcopy(document)
        _set((*path, key), _gone)(damaged)
        with pytest.raises(ValueError, match=f"{key}: .*missing"):
            ParetoFront.from_json(json.dumps(damaged))


def test_one_certificate_for_three_classes_is_not_enough(fronts):
    document = json.loads(fronts["multiclass"][2].to_json())
    document["sizes"][0]["certificate"].pop()
    with pytest.raises(ValueError, match=r"sizes\[0\].certificate: expected a list, one per class"):
        ParetoFront.from_json(json.dumps(document))


@pytest.mark.parametrize("size", [0, 1, 100, 2000, -3])
def test_a_text_that_ends_early_is_refused(fronts, size):
    text = fronts["regression"][2].to_json().rstrip("\n")
    with pytest.raises(ValueError, match=r"front: (top level|line \d+ column \d+): expected"):
        ParetoFront.from_json(text[:size])


@pytest.mark.parametrize("text", ["[1, 2]", "null", '{"format": NaN}', "\udcff", "{}"])
def test_what_is_no_front(text, tmp_path):
    path = tmp_path / "front.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"front\.json: "):
        ParetoFront.load(path)


def test_a_folder_is_no_front(tmp_path):
    with pytest.raises(ValueError, match="expected a file with a front, found a folder"):
        ParetoFront.load(tmp_path)

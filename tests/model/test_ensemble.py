"""Ensembles against a slow evaluation, term by term, on the values where step functions can go wrong."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.table import read_table
from cardboost.model import Ensemble, Term
from cardboost.model.files import load_model, save


def slow_feature(ensemble: Ensemble, feature: int, x: float) -> float:
    total = 0.0
    for term in ensemble.terms:
        if term.feature == feature:
            left = term.missing_left if math.isnan(x) else x <= term.cut
            total += term.polarity * term.weight if left else -term.polarity * term.weight
    return total


def slow_score(ensemble: Ensemble, row: Any) -> float:
    score = ensemble.intercept
    for feature, x in enumerate(row):
        score += slow_feature(ensemble, feature, float(x))
    return score


def random_ensemble(
    rng: np.random.Generator, n_features: int = 4, n_terms: int = 12, **changes: Any
) -> Ensemble:
    terms = tuple(
        Term(
            int(rng.integers(n_features)),
            float(rng.choice([math.inf, 0.0, -0.0, 1e300, 5e-324, *np.round(rng.normal(size=6), 1)])),
            int(rng.choice([-1, 1])),
            bool(rng.integers(2)),
            float(rng.exponential()) + 1e-3,
        )
        for _ in range(n_terms)
    )
    fields: dict[str, Any] = {
        "loss": str(rng.choice(["logistic", "exponential"])),
        "intercept": float(rng.normal()),
        "terms": terms,
        "feature_names": None,
        "n_features": n_features,
        "classes": (0, 1),
    }
    return Ensemble(**(fields | changes))


def boundary_rows(ensemble: Ensemble, rng: np.random.Generator, rows: int = 400) -> np.ndarray:
    values = [math.nan, 0.0, -0.0, 1.7e308, -1.7e308, 5e-324, -5e-324]
    for cut in {term.cut for term in ensemble.terms} - {math.inf}:
        values += [cut, float(np.nextafter(cut, math.inf)), float(np.nextafter(cut, -math.inf))]
    # every value in every column, then mixtures
    each = np.array(values)[:, None].repeat(ensemble.n_features, axis=1)
    return np.concatenate([each, rng.choice(values, size=(rows, ensemble.n_features))])


def bits(array: Any) -> list[int]:
    return np.ascontiguousarray(array, dtype=np.float64).view(np.uint64).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_scores_equal_the_slow_evaluation_to_the_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, n_terms=int(rng.integers(0, 60)))
    X = boundary_rows(ensemble, rng)
    expected = bits([slow_score(ensemble, row) for row in X])
    assert bits(ensemble.decision_function(X)) == expected
    assert bits(ensemble.decision_function(np.asfortranarray(X), threads=2)) == expected
    assert bits(ensemble.decision_function(X[::-1])[::-1]) == expected
    assert bits(ensemble.decision_function(read_table(X))) == expected


@pytest.mark.parametrize("dtype", ["f4", "f2", ">f8", "i8", "i4", "i2", "i1", "u8", "u1", "?", "O"])
def test_number_types(dtype: str) -> None:
    rng = np.random.default_rng(3)
    ensemble = random_ensemble(rng, n_terms=30)
    X = rng.integers(0, 3, size=(200, 4)) if np.dtype(dtype).kind in "iub" else rng.normal(size=(200, 4))
    X = np.asarray(X, dtype=dtype)
    before = X.copy()
    assert bits(ensemble.decision_function(X)) == bits([slow_score(ensemble, row) for row in X])
    np.testing.assert_array_equal(X, before)


def test_float32_values_are_compared_with_the_exact_cut() -> None:
    cut = 0.1  # above float32(0.1)'s predecessor, below float32(0.1) itself
    ensemble = Ensemble("logistic", 0.0, (Term(0, cut, 1, True, 1.0),), None, 1, (0, 1))
    X = np.array([[0.1], [np.nextafter(np.float32(0.1), np.float32(0))]], dtype=np.float32)
    assert float(X[0, 0]) > cut
    assert ensemble.decision_function(X).tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame: Any) -> None:
    rng = np.random.default_rng(4)
    names = ("a", "größe", "c d", "")
    ensemble = random_ensemble(rng, n_terms=30, feature_names=names)
    X = boundary_rows(ensemble, rng)
    table = frame({name: X[:, j] for j, name in enumerate(names)})
    assert bits(ensemble.decision_function(table)) == bits(ensemble.decision_function(X))
    with pytest.raises(ValueError, match="feature names should match"):
        ensemble.decision_function(table[["c d", "a", "größe", ""]])
    with pytest.raises(ValueError, match="feature names should match"):
        ensemble.contributions(table[["a", "größe"]])


def test_frames_with_nulls_and_integers() -> None:
    ensemble = Ensemble(
        "logistic", 0.0, (Term(0, 1, 1, False, 1.0), Term(1, 0, -1, True, 0.25)), ("a", "b"), 2, (0, 1)
    )
    columns = {"a": [1, None, 2], "b": [0, None, 1]}
    expected = [1.0 - 0.25, -1.0 - 0.25, -1.0 + 0.25]
    assert ensemble.decision_function(pd.DataFrame(columns).astype("Int64")).tolist() == expected
    assert ensemble.decision_function(pl.DataFrame(columns)).tolist() == expected


@pytest.mark.parametrize("seed", range(10))
def test_contributions_add_up_to_the_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, n_features=7, n_terms=int(rng.integers(0, 40)))
    X = boundary_rows(ensemble, rng)
    contributions = ensemble.contributions(X)
    score = np.full(len(X), ensemble.intercept)
    for j in range(ensemble.n_features):
        assert bits(contributions[:, j]) == bits([slow_feature(ensemble, j, x) for x in X[:, j]])
        score = score + contributions[:, j]
    assert bits(score) == bits(ensemble.decision_function(X))
    np.testing.assert_allclose(ensemble.intercept + contributions.sum(axis=1), score, rtol=0, atol=1e-12)


def test_equal_models_give_equal_bits_whatever_the_order_of_their_terms() -> None:
    rng = np.random.default_rng(5)
    ensemble = random_ensemble(rng, n_terms=40)
    shuffled = dataclasses.replace(
        ensemble, terms=tuple(ensemble.terms[k] for k in rng.permutation(ensemble.n_terms))
    )
    X = boundary_rows(ensemble, rng)
    assert shuffled == ensemble
    assert list(shuffled.terms) == sorted(shuffled.terms, key=lambda term: term.order)
    assert bits(shuffled.decision_function(X)) == bits(ensemble.decision_function(X))


def test_many_rows_and_threads_give_equal_bits() -> None:
    rng = np.random.default_rng(6)
    ensemble = random_ensemble(rng, n_terms=80)
    X = rng.normal(size=(50_000, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    one = bits(ensemble.decision_function(X))
    assert bits(ensemble.decision_function(X, threads=2)) == one
    assert bits(ensemble.decision_function(X, threads=7)) == one


def test_probabilities_and_labels() -> None:
    X = np.array([[0.0], [1.0], [math.nan]])
    term = Term(0, 0.0, 1, False, 1.5)
    logistic = Ensemble("logistic", 0.5, (term,), None, 1, ("no", "yes"))
    p = 1 / (1 + np.exp([-2.0, 1.0, 1.0]))
    np.testing.assert_allclose(logistic.predict_proba(X), np.column_stack([1 - p, p]))
    assert logistic.predict(X).tolist() == ["yes", "no", "no"]
    exponential = dataclasses.replace(logistic, loss="exponential")
    p = 1 / (1 + np.exp([-4.0, 2.0, 2.0]))
    np.testing.assert_allclose(exponential.predict_proba(X), np.column_stack([1 - p, p]))


def test_a_score_of_zero_is_the_first_class_and_small_probabilities_stay_positive() -> None:
    ensemble = Ensemble("logistic", 1.5, (Term(0, 0.0, -1, False, 1.5),), None, 1, (7, 9))
    assert ensemble.decision_function([[0.0]]).tolist() == [0.0]
    assert ensemble.predict([[0.0], [1.0]]).tolist() == [7, 9]
    sure = dataclasses.replace(ensemble, intercept=300.0)
    assert 0 < sure.predict_proba([[1.0]])[0, 0] < 1e-100


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        ((0, 1), "i"),
        ((-1, 1), "i"),
        (("a", "bb"), "U"),
        ((False, True), "b"),
        ((0.5, 2.5), "f"),
        (("a", "a\0"), "O"),
    ],
)
def test_label_types(classes: tuple[Any, Any], kind: str) -> None:
    ensemble = Ensemble("logistic", 0.0, (Term(0, 0.0, 1, True, 1.0),), None, 1, classes)
    labels = ensemble.predict([[1.0], [-1.0]])
    assert labels.dtype.kind == kind
    assert labels.tolist() == list(classes)


def test_no_rows_no_terms_and_unused_features() -> None:
    empty = Ensemble("logistic", -0.0, (), None, 3, (0, 1))
    assert str(empty.intercept) == "0.0"
    assert empty.decision_function(np.ones((4, 3))).tolist() == [0.0] * 4
    assert empty.contributions(np.ones((4, 3))).tolist() == [[0.0] * 3] * 4
    assert (empty.features_used, empty.n_terms, empty.step_functions()) == ((), 0, ())
    one = dataclasses.replace(empty, terms=(Term(1, 2.0, 1, True, 1.0),))
    assert one.features_used == (1,)
    for ensemble in (empty, one):
        assert ensemble.decision_function(np.ones((0, 3))).shape == (0,)
        assert ensemble.contributions(np.ones((0, 3))).shape == (0, 3)
        assert ensemble.predict_proba(np.ones((0, 3))).shape == (0, 2)
        assert ensemble.predict(np.ones((0, 3))).shape == (0,)
        with pytest.raises(ValueError, match="2 features, but the model is expecting 3"):
            ensemble.decision_function(np.ones((0, 2)))


def test_step_functions() -> None:
    terms = (Term(2, 5.0, 1, True, 1.0), Term(2, 3.0, -1, False, 0.25), Term(2, math.inf, 1, False, 0.5))
    ensemble = Ensemble("logistic", 0.0, terms, ("a", "b", "c"), 3, (0, 1))
    (step,) = ensemble.step_functions()
    assert (step.feature, step.name, step.cuts) == (2, "c", (3.0, 5.0))
    assert step.levels == (1.25, 1.75, -0.25)
    assert step.missing == 0.75
    assert step.spread == 2.0
    assert dataclasses.replace(ensemble, feature_names=None).step_functions()[0].name == "x2"


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_values_are_refused_with_the_column(value: float) -> None:
    terms = (Term(0, 5.0, 1, True, 1.0), Term(2, math.inf, 1, True, 1.0))
    ensemble = Ensemble("logistic", 0.0, terms, ("a", "b", "c"), 3, (0, 1))
    X = np.zeros((3, 3))
    X[1, 2] = value
    for call in (
        ensemble.decision_function,
        ensemble.contributions,
        ensemble.predict,
        ensemble.predict_proba,
    ):
        with pytest.raises(ValueError, match="infinity in column 'c'"):
            call(X)
    with pytest.raises(ValueError, match="infinity in column 2"):
        dataclasses.replace(ensemble, feature_names=None).decision_function(X)


def test_an_ensemble_cannot_be_changed_and_can_be_copied() -> None:
    ensemble = random_ensemble(np.random.default_rng(7))
    X = np.zeros((2, 4))
    expected = ensemble.decision_function(X)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ensemble.intercept = 1.0  # type: ignore[misc]
    for twin in (copy.deepcopy(ensemble), pickle.loads(pickle.dumps(ensemble))):
        assert twin == ensemble
        assert hash(twin) == hash(ensemble)
        assert bits(twin.decision_function(X)) == bits(expected)


def test_numpy_scalars_become_plain_numbers() -> None:
    term = Term(np.int32(1), np.float64(0.5), np.int8(-1), np.bool_(True), np.float64(0.1))  # type: ignore[arg-type]
    assert [type(value) for value in dataclasses.astuple(term)] == [
        int, float, int, bool, float, type(None), type(None),
    ]  # fmt: skip
    fields: Any = ("logistic", np.float64(1.0), [term], np.array(["a", "b"]), np.int64(2), np.array([0, 1]))
    ensemble = Ensemble(*fields)
    assert (type(ensemble.terms), ensemble.feature_names, ensemble.classes) == (tuple, ("a", "b"), (0, 1))
    assert [type(value) for value in (ensemble.intercept, ensemble.n_features, *ensemble.classes)] == [
        float, int, int, int,
    ]  # fmt: skip


BAD_TERMS = [
    ({"feature": -1}, "feature: expected the index of a feature, found -1"),
    ({"feature": 1.0}, "feature: "),
    ({"feature": True}, "feature: "),
    ({"cut": math.nan}, "cut: expected a number, found nan"),
    ({"cut": -math.inf}, "cut: "),
    ({"cut": "1"}, "cut: "),
    ({"cut": None}, "cut: "),
    ({"polarity": 0}, "polarity: expected 1 or -1, found 0"),
    ({"polarity": True}, "polarity: "),
    ({"missing_left": 1}, "missing_left: "),
    ({"weight": 0.0}, "weight: expected a positive finite number, found 0.0"),
    ({"weight": -1}, "weight: expected a positive finite number, found -1"),
    ({"weight": math.inf}, "weight: "),
    ({"weight": math.nan}, "weight: "),
    ({"weight": 10**400}, "weight: "),
]


@pytest.mark.parametrize(("change", "message"), BAD_TERMS)
def test_bad_terms(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"feature": 0, "cut": 0.0, "polarity": 1, "missing_left": True, "weight": 1.0}
    with pytest.raises(ValueError) as error:
        Term(**(good | change))
    assert str(error.value).startswith(message)


_TERM = Term(0, 0.0, 1, True, 1.0)
BAD_ENSEMBLES = [
    (
        {"loss": "huber"},
        "loss: expected 'absolute', 'exponential', 'hinge', 'logistic', 'own', 'smooth_hinge', 'squared' or "
        "'squared_hinge', found 'huber'",
    ),
    ({"loss": None}, "loss: "),
    ({"intercept": math.inf}, "intercept: "),
    ({"intercept": math.nan}, "intercept: "),
    ({"intercept": "0"}, "intercept: "),
    ({"terms": None}, "terms: "),
    ({"terms": (_TERM, "x")}, "terms[1]: expected a term"),
    ({"terms": (_TERM, Term(2, 0.0, 1, True, 1.0))}, "terms[1].feature: expected an index below"),
    ({"terms": (Term(0, 0.0, 1, True, 1e308), Term(0, 0.0, 1, True, 1e308))}, "terms[1].weight: "),
    ({"n_features": 0}, "n_features: "),
    ({"n_features": 2.0}, "n_features: "),
    ({"n_features": 2**40}, "n_features: "),
    ({"feature_names": ("a",)}, "feature_names: expected n_features = 2 names, found 1"),
    ({"feature_names": ("a", "a")}, "feature_names[1]: "),
    ({"feature_names": ("a", 1)}, "feature_names[1]: "),
    ({"feature_names": "ab"}, "feature_names: "),
    ({"classes": (0,)}, "classes: "),
    ({"classes": "ab"}, "classes: "),
    ({"classes": (0, 0)}, "classes[1]: "),
    ({"classes": (0, 1.0)}, "classes[1]: "),
    ({"classes": (False, 1)}, "classes[1]: "),
    ({"classes": (0.0, -0.0)}, "classes[1]: "),
    ({"classes": (0.0, math.nan)}, "classes[1]: "),
    ({"classes": (0, 2**63)}, "classes[1]: "),
    ({"classes": (None, 1)}, "classes[0]: "),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD_ENSEMBLES)
def test_bad_ensembles(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "loss": "logistic", "intercept": 0.0, "terms": (_TERM,), "feature_names": ("a", "b"), "n_features": 2,
        "classes": (0, 1),
    }  # fmt: skip
    Ensemble(**good)
    with pytest.raises(ValueError) as error:
        Ensemble(**(good | change))
    assert str(error.value).startswith(message)


_finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=200, deadline=None)
@given(
    terms=st.lists(
        st.builds(
            Term,
            feature=st.integers(0, 1),
            cut=_finite | st.just(math.inf),
            polarity=st.sampled_from([1, -1]),
            missing_left=st.booleans(),
            weight=st.floats(min_value=5e-324, max_value=1e300),
        ),
        max_size=20,
    ),
    intercept=st.floats(-1e300, 1e300),
    X=st.lists(st.tuples(_finite | st.just(math.nan), _finite | st.just(math.nan)), min_size=1, max_size=20),
)
def test_any_ensemble_on_any_rows(terms: list[Term], intercept: float, X: list[tuple[float, float]]) -> None:
    ensemble = Ensemble("exponential", intercept, tuple(terms), None, 2, (0, 1))
    score = ensemble.decision_function(X)
    assert bits(score) == bits([slow_score(ensemble, row) for row in X])
    assert np.isfinite(score).all()
    assert np.isfinite(ensemble.predict_proba(X)).all()


def test_a_unit_gives_points_and_survives_the_file(tmp_path: Any) -> None:
    unit = 0.1
    terms = tuple(Term(k, 0.5, 1, False, unit * p) for k, p in enumerate((3, 1, 7)))
    own = Ensemble("logistic", 0.25, terms, None, 3, ("a", "b"), unit=unit)
    assert own.term_points() == (3, 1, 7)
    save(tmp_path / "model.json", own)
    assert load_model(tmp_path / "model.json").ensemble == own
    assert Ensemble("logistic", 0.25, terms, None, 3, ("a", "b")).term_points() is None


@pytest.mark.parametrize("unit", [0.0, -0.1, math.nan, math.inf, 0.2, 1e-9, "0.1", True])
def test_a_unit_that_does_not_divide_the_weights_is_refused(unit: Any) -> None:
    terms = (Term(0, 0.5, 1, False, 0.1), Term(1, 0.5, 1, False, 0.1 * 7))
    with pytest.raises(ValueError, match=r"^unit: expected"):
        Ensemble("logistic", 0.25, terms, None, 3, ("a", "b"), unit=unit)

"""Files of models on labels, of regressors and of models for more classes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents import CERTIFICATE, TRAINING, _drop, _places, _set, check_mutant, refusal
from drawn_models import as_table, bits, drawn_ensembles, drawn_multiclass, rows_for
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.categories import OTHER, Categories
from cardboost.model import Ensemble, Model, MulticlassEnsemble, Term, load_model, save
from cardboost.model.files import from_dict, model_bytes, read_model
from marks import first

COLOURS = Categories(("blue", "größe", "\ud800"), ("pink", "teal"))
SIZES = Categories((False, 2, 2.5, 2**60))
NAMES = ("colour", "size", "age")
TERMS = (
    Term(0, None, 1, False, 1.0, "blue"),
    Term(0, None, -1, True, 0.1, OTHER),
    Term(1, None, 1, False, 0.3, 2.5),
    Term(1, None, 1, False, 0.3, False),
    Term(2, 30.5, 1, True, 0.2),
    Term(2, float("inf"), 1, True, 0.2),
)
LABELLED = Ensemble("logistic", 0.5, TERMS, NAMES, 3, ("no", "yes"), {0: COLOURS, 1: SIZES})
REGRESSOR = Ensemble("squared", 0.5, TERMS, None, 3, None, {0: COLOURS, 1: SIZES})


def member(*terms: Term) -> Ensemble:
    own = {j: labels for j, labels in ((0, COLOURS), (1, SIZES)) if j in {term.feature for term in terms}}
    return Ensemble("exponential", 0.25, terms, NAMES, 3, (False, True), own)


MANY = MulticlassEnsemble(("a", "b", "c"), (member(*TERMS), member(*TERMS[:3]), member()))
MANY_PROOFS = [CERTIFICATE, {"objective": 1.5}, {}]


def labelled_document() -> dict[str, Any]:
    return json.loads(model_bytes(LABELLED, CERTIFICATE, TRAINING))


def many_document() -> dict[str, Any]:
    return json.loads(model_bytes(MANY, MANY_PROOFS, TRAINING))


# ------------------------------------------------------------------------------------ round trips


@settings(max_examples=150)
@given(ensemble=drawn_ensembles() | drawn_multiclass())
def test_round_trip_to_the_bit(ensemble: Any) -> None:
    data = model_bytes(ensemble, None, TRAINING)
    model = read_model(data)
    assert model == Model(ensemble, None, TRAINING)
    assert type(model.ensemble) is type(ensemble)
    assert (model.kind, model.classes) == (ensemble.kind, ensemble.classes)
    assert from_dict(ensemble.to_dict()) == ensemble
    assert model_bytes(model.ensemble, None, TRAINING) == data
    table = as_table(rows_for(ensemble, np.random.default_rng(0), 3), ensemble.categories)
    for method in ("decision_function", "contributions"):
        assert bits(getattr(model, method)(table)) == bits(getattr(ensemble, method)(table))
    assert model.predict(table).tolist() == ensemble.predict(table).tolist()
    if ensemble.kind != "regression":
        assert bits(model.predict_proba(table)) == bits(ensemble.predict_proba(table))
    assert model.card(title="A title")


@settings(max_examples=100)
@given(
    labels=st.lists(st.text(st.characters()), min_size=1, max_size=8, unique=True)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8, unique=True)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8, unique=True)
)
def test_labels_round_trip_with_their_types(labels: list[Any]) -> None:
    labels = sorted(set(labels))
    own = Categories(tuple(labels[:1]), tuple(labels[1:]))
    labels = [*own.kept, *own.rare]
    ensemble = Ensemble("squared", 0.0, (Term(0, None, 1, True, 1.0, labels[0]),), None, 1, None, {0: own})
    again = read_model(model_bytes(ensemble)).ensemble
    assert again == ensemble
    found = [*again.categories[0].kept, *again.categories[0].rare]
    assert [(type(label), repr(label)) for label in found] == [(type(own), repr(own)) for own in labels]
    assert isinstance(again, Ensemble)
    assert type(again.terms[0].category) is type(labels[0])
    ensemble.step_functions()
    assert Model(ensemble).card()


def test_a_file_for_more_classes(tmp_path: Path) -> None:
    save(tmp_path / "m.json", MANY, MANY_PROOFS, TRAINING)
    model = load_model(tmp_path / "m.json")
    assert model == Model(MANY, MANY_PROOFS, TRAINING)
    assert model.classes == ("a", "b", "c")
    save(tmp_path / "m.json", MANY, tuple(MANY_PROOFS), None)
    assert load_model(tmp_path / "m.json").certificate == MANY_PROOFS
    save(tmp_path / "m.json", MANY)
    assert load_model(tmp_path / "m.json").certificate is None
    with pytest.raises(ValueError, match=r"cannot be saved: certificate: expected a list, one per class"):
        save(tmp_path / "m.json", MANY, CERTIFICATE)
    with pytest.raises(ValueError, match=r"cannot be saved: certificate: expected an object or null"):
        save(tmp_path / "m.json", LABELLED, MANY_PROOFS)


@pytest.mark.parametrize("ensemble", [LABELLED, REGRESSOR, MANY], ids=lambda own: own.kind)
def test_there_is_a_line_per_term(ensemble: Any) -> None:
    text = model_bytes(ensemble, MANY_PROOFS if ensemble is MANY else CERTIFICATE).decode()
    with_terms = [line for line in text.splitlines() if '"polarity"' in line]
    assert len(with_terms) == text.count('"polarity"') == ensemble.n_terms
    assert all(len(line) < 130 for line in with_terms)
    assert '"category": {"other": true}' in text
    assert '"kept": [false, 2, 2.5, 1152921504606846976], "rare": []' in text


def test_sets_are_written_in_full_and_older_files_are_read() -> None:
    labels = tuple(f"label {k:03d}" for k in range(200))
    own = Categories(labels, ("rare",))
    sets = (Term(0, None, 1, True, 1.0, one_of=(*labels[3:], OTHER)), Term(0, None, 1, True, 1.0, labels[0]))
    ensemble = Ensemble("squared", 0.0, sets, None, 1, None, {0: own})
    data = model_bytes(ensemble)
    assert json.loads(data)["version"] == 3
    assert json.loads(data)["ensemble"]["terms"][1]["one_of"] == [*labels[3:], {"other": True}]
    assert read_model(data).ensemble == ensemble
    old = labelled_document() | {"version": 1}
    assert read_model(json.dumps(old).encode()).ensemble == LABELLED


# ------------------------------------------------------------------------------------ refusals


def _replace_by_set(value: Any) -> Any:
    """Make the first term one on a set."""

    def change(document: Any) -> None:
        term = document["ensemble"]["terms"][0]
        del term["category"]
        term["one_of"] = value

    return change


LABEL_FAULTS = [
    (_drop("ensemble", "categories"), "ensemble.categories: expected a value, but it is missing"),
    (_set("ensemble", "categories", {}), "ensemble.categories: expected a list, found an object"),
    (_set("ensemble", "categories", None), "ensemble.categories: expected a list, found null"),
    (_set("ensemble", "categories", 1, "x"), "ensemble.categories[1]: expected an object, found 'x'"),
    (_drop("ensemble", "categories", 1, "rare"), "ensemble.categories[1].rare: expected a value, but it is"),
    (_set("ensemble", "categories", 1, "x", 1), "ensemble.categories[1].x: unknown key"),
    (_set("ensemble", "categories", 1, "kept", "ab"), "ensemble.categories[1].kept: expected a list, found"),
    (_set("ensemble", "categories", 1, "rare", None), "ensemble.categories[1].rare: expected a list, found"),
    (_set("ensemble", "categories", 1, "kept", []), "ensemble.categories[1].kept: expected at least one"),
    (_set("ensemble", "categories", 1, "kept", 1, None),
     "ensemble.categories[1].kept[1]: expected an integer"),
    (_set("ensemble", "categories", 1, "kept", 1, []), "ensemble.categories[1].kept[1]: expected an integer"),
    (_set("ensemble", "categories", 1, "kept", 1, "x"),
     "ensemble.categories[1].kept[1]: expected a number as"),
    (_set("ensemble", "categories", 1, "kept", 1, 2**199),
     "ensemble.categories[1].kept[1]: expected an integer"),
    (_set("ensemble", "categories", 1, "kept", 1, 0), "ensemble.categories[1].kept[1]: expected labels that"),
    (_set("ensemble", "categories", 0, "rare", 0, "blue"),
     "ensemble.categories[0].rare[0]: expected a label that is not kept, found 'blue'"),
    (_set("ensemble", "categories", 0, "rare", ["b", "a"]), "ensemble.categories[0].rare[1]: "),
    (_set("ensemble", "categories", 1, "kept", list(range(300))),
     "ensemble.categories[1].kept: expected at most 255 labels, found 300"),
    (_set("ensemble", "categories", 1, "feature", 2),
     "ensemble.categories[1].feature: expected a feature with categorical terms, found 2"),
    (_set("ensemble", "categories", 1, "feature", 7), "ensemble.categories[1].feature: "),
    (_set("ensemble", "categories", 1, "feature", -1), "ensemble.categories[1].feature: "),
    (_set("ensemble", "categories", 1, "feature", 1.0), "ensemble.categories[1].feature: expected the index"),
    (_set("ensemble", "categories", 1, "feature", True),
     "ensemble.categories[1].feature: expected the index"),
    (_set("ensemble", "categories", 1, "feature", 0),
     "ensemble.categories[1].feature: expected one entry per feature, found 0"),
    (_drop("ensemble", "categories", 1), "ensemble.terms[2].category: expected a cut: feature 1 has no cat"),
    (_set("ensemble", "terms", 0, "category", "red"), "ensemble.terms[0].category: expected a kept category"),
    (_set("ensemble", "terms", 0, "category", "pink"),
     "ensemble.terms[0].category: expected a kept category"),
    (_set("ensemble", "terms", 0, "category", None), "ensemble.terms[0].category: expected a label or"),
    (_set("ensemble", "terms", 0, "category", []), "ensemble.terms[0].category: expected a label or"),
    (_set("ensemble", "terms", 0, "category", {}), "ensemble.terms[0].category: expected a label or"),
    (_set("ensemble", "terms", 0, "category", {"other": False}), "ensemble.terms[0].category: expected a"),
    (_set("ensemble", "terms", 0, "category", {"other": 1}), "ensemble.terms[0].category: expected a label"),
    (_set("ensemble", "terms", 0, "category", {"other": True, "a": 1}), "ensemble.terms[0].category: "),
    (_set("ensemble", "terms", 2, "category", {"other": True}),
     "ensemble.terms[2].category: expected a kept category: feature 1 has no rare ones, found other"),
    (_set("ensemble", "terms", 0, "cut", 1.0),
     "ensemble.terms[0].cut: unknown key, expected only feature, cat"),
    *((_replace_by_set(value), f"ensemble.terms[0].one_of{message}") for value, message in [
        ("ab", ": expected a list, found 'ab'"),
        (None, ": expected a list, found null"),
        ({"other": True}, ": expected a list, found an object"),
        ([], ": expected two labels or more, found ()"),
        (["blue"], ": expected two labels or more"),
        (["größe", "blue"], "[1]: expected labels that ascend, one above 'größe', found 'blue'"),
        (["blue", "blue"], "[1]: expected labels that ascend"),
        (["blue", 3], "[1]: expected text as 'blue', found 3"),
        (["blue", None], '[1]: expected a label or {"other": true}, found null'),
        (["blue", ["größe"]], '[1]: expected a label or {"other": true}, found a list'),
        (["blue", {"other": 1}], '[1]: expected a label or {"other": true}, found another object'),
        (["blue", "pink"], "[1]: expected a kept category of feature 0, found 'pink'"),
        ([{"other": True}, "blue"], "[1]: expected nothing behind the rare labels"),
        (["blue", "größe", "\ud800", {"other": True}], ": expected not all the categories of feature 0"),
    ]),
    (_set("ensemble", "terms", 0, "one_of", ["blue", "größe"]), "ensemble.terms[0].one_of: unknown key"),
    (_set("ensemble", "terms", 4, "one_of", ["blue", "größe"]), "ensemble.terms[4].cut: unknown key"),
    (_set("ensemble", "terms", 4, "category", "x"), "ensemble.terms[4].cut: unknown key"),
    (_set("ensemble", "terms", 4, "feature", 0), "ensemble.terms[4].cut: expected a category: feature 0 has"),
    (_drop("ensemble", "terms", 0, "category"), "ensemble.terms[0].cut: expected a value, but it is missing"),
    (_drop("ensemble", "terms", 0, "weight"),
     "ensemble.terms[0].weight: expected a value, but it is missing"),
    (_set("ensemble", "terms", 0, "feature", -1), "ensemble.terms[0].feature: expected the index of a"),
    (_set("ensemble", "loss", "squared"),
     "ensemble.classes: expected none with squared loss, found ['no', 'y"),
    (_set("ensemble", "classes", None), "ensemble.classes: expected two labels, found None"),
    (_set("ensemble", "ensembles", []), "ensemble.loss: unknown key, expected only classes, ensembles"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), LABEL_FAULTS)
def test_faults_of_labels(change: Any, message: str) -> None:
    document = labelled_document()
    change(document)
    assert refusal(document).startswith(f"model.json: {message}")


MANY_FAULTS = [
    (_drop("ensemble", "classes"), "ensemble.classes: expected a value, but it is missing"),
    (_set("ensemble", "classes", ["a", "b"]),
     "ensemble.classes: expected three labels or more, found ['a', 'b']"),
    (_set("ensemble", "classes", None), "ensemble.classes: expected three labels or more, found None"),
    (_set("ensemble", "classes", 2, "a"), "ensemble.classes[2]: expected labels that differ, found 'a'"),
    (_set("ensemble", "classes", 2, 1), "ensemble.classes[2]: expected a label of the same type as 'a'"),
    (_set("ensemble", "x", 1), "ensemble.x: unknown key"),
    (_set("ensemble", "ensembles", None), "ensemble.ensembles: expected a list, found null"),
    (_drop("ensemble", "ensembles", 2), "ensemble.ensembles: expected one for each of 3 classes, found 2"),
    (_set("ensemble", "ensembles", 2, None), "ensemble.ensembles[2]: expected an object, found null"),
    (_drop("ensemble", "ensembles", 2, "loss"), "ensemble.ensembles[2].loss: expected a value, but it is"),
    (_set("ensemble", "ensembles", 2, "loss", "logistic"),
     "ensemble.ensembles[2].loss: expected the same as in ensembles[0], found 'logistic'"),
    (_set("ensemble", "ensembles", 1, "classes", [0, 1]),
     "ensemble.ensembles[1].classes: expected false and true, found (0, 1)"),
    (_set("ensemble", "ensembles", 1, "terms", 0, "weight", -1),
     "ensemble.ensembles[1].terms[0].weight: expected a positive finite number, found -1"),
    (_set("ensemble", "ensembles", 1, "categories", 0, "kept", 1, 7),
     "ensemble.ensembles[1].categories[0].kept[1]: expected text as 'blue', found 7"),
    (_set("ensemble", "ensembles", 1, "categories", 0, "rare", ["pink"]),
     "ensemble.ensembles[1].categories: expected feature 0 to have the same categories in every ensemble"),
    (_set("ensemble", "ensembles", 1, "n_features", 4), "ensemble.ensembles[1].feature_names: expected n_f"),
    (_set("ensemble", "ensembles", 1, "feature_names", None),
     "ensemble.ensembles[1].feature_names: expected"),
    (_set("certificate", {}), "certificate: expected a list, one per class, or null, found an object"),
    (_set("certificate", 1), "certificate: expected a list, one per class, or null, found 1"),
    (_set("certificate", []), "certificate: expected one for each of 3 classes, found 0"),
    (_set("certificate", 1, None), "certificate[1]: expected an object, found null"),
    (_set("certificate", 0, "objective", float("nan")),
     "certificate[0].objective: expected a number, found N"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), MANY_FAULTS)
def test_faults_of_models_for_more_classes(change: Any, message: str) -> None:
    document = many_document()
    change(document)
    assert refusal(document).startswith(f"model.json: {message}")


@pytest.mark.parametrize("count", first(1, [500, 1500]))
@pytest.mark.parametrize("original", [labelled_document(), many_document()], ids=["labels", "many"])
def test_mutated_trees(original: dict[str, Any], count: int) -> None:
    rng = np.random.default_rng(12)
    values: list[Any] = [
        None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63, 0.5, -0.0, 5e-324, float("nan"), "", "x", "blue",
        "pink", "squared", "logistic", "\ud800", [], {}, [[]], ["a", "b"], {"other": True}, [True, False],
        [1, 2.5, True],
    ]  # fmt: skip
    loaded = 0
    for _ in range(count):
        document = copy.deepcopy(original)
        for _ in range(int(rng.integers(1, 3))):
            places = _places(document)
            parent, key = places[rng.integers(len(places))]
            kind = rng.integers(4)
            if kind <= 1:
                parent[key] = copy.deepcopy(values[rng.integers(len(values))])
            elif kind == 2:
                del parent[key]
            else:
                other, other_key = places[rng.integers(len(places))]
                parent[key] = copy.deepcopy(other[other_key])
        loaded += check_mutant(json.dumps(document).encode())
    assert 0.02 * count < loaded < 0.67 * count

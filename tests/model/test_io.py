"""Model files: exact round trips, refusal of everything malformed, saving that cannot lose the old file."""

from __future__ import annotations

import builtins
import copy
import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents import CERTIFICATE, TRAINING, _drop, _places, _set, check_mutant, refusal

from cardboost.model import Ensemble, Model, Term, load_model, save
from cardboost.model import files as model_files
from cardboost.model.files import from_dict, model_bytes, read_model
from marks import first


def an_ensemble(seed: int = 0, n_terms: int = 6, **changes: Any) -> Ensemble:
    rng = np.random.default_rng(seed)
    terms = tuple(
        Term(
            int(rng.integers(3)),
            math.inf if k == 0 else float(rng.normal()),
            int(rng.choice([-1, 1])),
            bool(rng.integers(2)),
            float(rng.exponential()) + 1e-9,
        )
        for k in range(n_terms)
    )
    fields: dict[str, Any] = {
        "loss": "logistic",
        "intercept": float(rng.normal()),
        "terms": terms,
        "feature_names": ("age", "größe 身長", 'quote " \\ \n'),
        "n_features": 3,
        "classes": ("no", "yes"),
    }
    return Ensemble(**(fields | changes))


def a_document() -> dict[str, Any]:
    return json.loads(model_bytes(an_ensemble(), CERTIFICATE, TRAINING))


# ------------------------------------------------------------------------------------ round trips


@pytest.mark.parametrize(
    "classes", [("no", "yes"), (0, 1), (-(2**63), 2**63 - 1), (0.1, 1.0), (False, True), ("", "é")]
)
@pytest.mark.parametrize("names", [None, ("age", "größe 身長", "\x00\n\t\u2028"), ("\ud800", "a.b", "a[0]")])
def test_round_trip_to_the_bit(tmp_path: Path, classes: Any, names: Any) -> None:
    path = tmp_path / "model.json"
    for seed in range(5):
        ensemble = an_ensemble(seed, n_terms=seed * 5, classes=classes, feature_names=names)
        save(path, ensemble, CERTIFICATE, TRAINING)
        model = load_model(path)
        assert model == Model(ensemble, CERTIFICATE, TRAINING)
        assert [type(label) for label in model.classes] == [type(label) for label in classes]
        again = [(term.cut.hex(), term.weight.hex()) for term in model.ensemble.terms]
        assert again == [(term.cut.hex(), term.weight.hex()) for term in ensemble.terms]
        assert model.ensemble.intercept.hex() == ensemble.intercept.hex()
        assert model_bytes(model.ensemble, model.certificate, model.training) == path.read_bytes()


def test_extreme_numbers_round_trip() -> None:
    numbers = [5e-324, 2.2250738585072014e-308, 1e16, 0.1, 1 / 3, 1e22, 123456789.123456789, 1.7e308]
    terms = tuple(Term(0, number, 1, True, min(number, 1e306)) for number in numbers)
    ensemble = an_ensemble(terms=terms, feature_names=None)
    assert read_model(model_bytes(ensemble)).ensemble == ensemble
    assert from_dict(ensemble.to_dict()) == ensemble


def test_the_loaded_model_predicts_as_the_saved_one(tmp_path: Path) -> None:
    ensemble = an_ensemble(n_terms=30)
    save(tmp_path / "m.json", ensemble, None, None)
    model = load_model(str(tmp_path / "m.json"))
    X = np.random.default_rng(0).normal(size=(100, 3))
    X[::7] = np.nan
    for method in ("decision_function", "predict", "predict_proba", "contributions"):
        np.testing.assert_array_equal(getattr(model, method)(X), getattr(ensemble, method)(X))
    assert (model.certificate, model.training) == (None, None)
    assert "age" in model.card(title="A title")


def test_the_file_is_plain_json_without_infinity_and_with_a_line_per_term() -> None:
    data = model_bytes(an_ensemble(), CERTIFICATE, TRAINING)
    document = json.loads(data, parse_constant=lambda token: pytest.fail(token))
    assert list(document) == ["format", "version", "ensemble", "certificate", "training"]
    assert [term["cut"] for term in document["ensemble"]["terms"]].count(None) == 1
    assert (
        data.decode().count('{"feature"')
        == len([line for line in data.splitlines() if b'{"feature"' in line])
        == 6
    )
    assert "größe 身長" in data.decode()


def test_numpy_values_in_certificate_and_training_are_written_as_numbers() -> None:
    model = read_model(
        model_bytes(an_ensemble(), {"a": np.arange(3), "b": np.float32(0.5)}, {"c": np.int64(4)})
    )
    assert (model.certificate, model.training) == ({"a": [0, 1, 2], "b": 0.5}, {"c": 4})


@pytest.mark.parametrize("value", [math.nan, math.inf, np.array([math.nan]), {1, 2}, object(), 10**80, b"x"])
def test_what_cannot_be_read_back_is_not_written(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "model.json"
    save(path, an_ensemble(), None, None)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="the model cannot be saved"):
        save(path, an_ensemble(1), {"inner": [value]}, None)
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(ValueError, match="the model cannot be saved"):
        save(path, an_ensemble(1), None, deep)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.json"]
    while deep:  # taken apart by hand: a deep chain is slow to free recursively
        deep = deep["a"]


# ------------------------------------------------------------------------------------ refusals


FAULTS = [
    (_set("format", "other"), "format: expected 'cardboost-model', found 'other'"),
    (_drop("format"), "format: "),
    (_drop("version"), "version: "),
    (_set("version", 7), "version: expected at most 6, found 7"),
    (_set("version", 0), "version: "),
    (_set("version", True), "version: expected an integer from 1 to 6, found true"),
    (_set("version", 1.0), "version: "),
    (_set("version", "1"), "version: "),
    (_set("extra", 1), "extra: unknown key"),
    (_drop("ensemble"), "ensemble: expected a value, but it is missing"),
    (_drop("certificate"), "certificate: expected a value, but it is missing"),
    (_set("certificate", []), "certificate: expected an object or null, found a list"),
    (_set("training", "x"), "training: expected an object or null, found 'x'"),
    (_set("ensemble", None), "ensemble: expected an object, found null"),
    (_set("ensemble", "a key", 1), "ensemble['a key']: unknown key"),
    (_drop("ensemble", "loss"), "ensemble.loss: expected a value, but it is missing"),
    (_set("ensemble", "loss", "huber"),
     "ensemble.loss: expected 'absolute', 'exponential', 'hinge', 'logistic', 'own', 'smooth_hinge', "
     "'squared' or 'squared_hinge', found 'huber'"),
    (_set("ensemble", "intercept", True), "ensemble.intercept: expected a finite number, found True"),
    (_set("ensemble", "n_features", 2), "ensemble.terms["),
    (_set("ensemble", "n_features", 4), "ensemble.feature_names: expected n_features = 4 names, found 3"),
    (_set("ensemble", "feature_names", 1, 7), "ensemble.feature_names[1]: expected text, found 7"),
    (_set("ensemble", "feature_names", 1, "age"), "ensemble.feature_names[1]: expected names that differ"),
    (_set("ensemble", "classes", ["a"]), "ensemble.classes: expected two labels"),
    (_set("ensemble", "classes", 1, None), "ensemble.classes[1]: "),
    (_set("ensemble", "classes", [1, 1]), "ensemble.classes[1]: "),
    (_set("ensemble", "terms", {}), "ensemble.terms: expected a list, found an object"),
    (_set("ensemble", "terms", 2, 5), "ensemble.terms[2]: expected an object, found 5"),
    (_drop("ensemble", "terms", 2, "cut"), "ensemble.terms[2].cut: expected a value, but it is missing"),
    (_set("ensemble", "terms", 2, "x", 5), "ensemble.terms[2].x: unknown key"),
    (_set("ensemble", "terms", 3, "weight", -1),
     "ensemble.terms[3].weight: expected a positive finite number, found -1"),
    (_set("ensemble", "terms", 3, "weight", None), "ensemble.terms[3].weight: "),
    (_set("ensemble", "terms", 3, "polarity", 1.0), "ensemble.terms[3].polarity: "),
    (_set("ensemble", "terms", 3, "polarity", True), "ensemble.terms[3].polarity: "),
    (_set("ensemble", "terms", 3, "missing_left", 1), "ensemble.terms[3].missing_left: "),
    (_set("ensemble", "terms", 3, "feature", -1), "ensemble.terms[3].feature: "),
    (_set("ensemble", "terms", 3, "feature", 3), "ensemble.terms[3].feature: expected an index below"),
    (_set("ensemble", "terms", 3, "cut", "1"), "ensemble.terms[3].cut: "),
    (_set("ensemble", "terms", 3, "cut", math.inf), "ensemble.terms[3].cut: expected a number, found Inf"),
    (_set("ensemble", "terms", 3, "cut", 10**100), "ensemble.terms[3].cut: expected a number, found an int"),
    (_set("certificate", "objective", math.nan), "certificate.objective: expected a number, found NaN"),
    (_set("certificate", "leaves", 0, "bound", -math.inf), "certificate.leaves[0].bound: "),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), FAULTS)
def test_faults_are_reported_with_their_path(change: Any, message: str) -> None:
    document = a_document()
    change(document)
    assert refusal(document).startswith(f"model.json: {message}")


def test_faults_of_the_notation() -> None:
    text = model_bytes(an_ensemble(), CERTIFICATE, TRAINING).decode()
    assert text.count('"weight": ') == 6

    def with_weight(token: str) -> str:
        return refusal(re.sub(r'"weight": [^}]*', f'"weight": {token}', text, count=1).encode())

    assert with_weight("1e999").startswith(
        "model.json: ensemble.terms[0].weight: expected a number that a double"
    )
    assert with_weight("-Infinity").startswith(
        "model.json: ensemble.terms[0].weight: expected a number, found -Inf"
    )
    assert with_weight("9" * 10_000).startswith("model.json: ensemble.terms[0].weight: ")
    assert with_weight('1, "weight": 1').startswith(
        "model.json: ensemble.terms[0].weight: expected one value"
    )
    assert with_weight('1, "cut": 1').startswith("model.json: ensemble.terms[0].cut: expected one value")
    assert refusal(text.replace('"version": 3', '"version": 3, "version": 3').encode()).startswith(
        "model.json: version: expected one value, found the key twice"
    )
    assert refusal(text[:-10].encode()).startswith("model.json: line ")
    assert refusal(text.encode() + b"{}").startswith("model.json: line ")
    assert refusal(b"").startswith("model.json: top level: expected a model, found an empty file")
    assert refusal(b" \n").startswith("model.json: top level: ")
    assert refusal(b"\xff\xfe").startswith("model.json: byte 0: expected UTF-8")
    assert refusal(b"\xef\xbb\xbf" + text.encode()).startswith("model.json: line 1 column 1: expected JSON")
    assert refusal(text.encode("utf-16")).startswith("model.json: byte 0: ")
    assert refusal(b"\x80\x04\x95\x00").startswith("model.json: byte 0: ")
    for token in (b"null", b"[]", b"1", b'"x"', b"true"):
        assert refusal(token).startswith("model.json: top level: expected an object")


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("depth", [80, 900, 100_000])
def test_deep_nesting(opening: str, closing: str, depth: int) -> None:
    nested = opening * depth + "1" + closing * depth
    assert "levels of nesting" in refusal(nested.encode())
    text = model_bytes(an_ensemble(), {"a": 0}, None).decode()
    message = refusal(text.replace('"a": 0', f'"a": {nested}').encode())
    assert "levels of nesting" in message
    assert len(message) < 400


def test_files_that_are_no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nowhere.json")
    with pytest.raises(ValueError, match="found a folder"):
        load_model(tmp_path)
    path = tmp_path / "m.json"
    save(path, an_ensemble(), None, None)
    monkeypatch.setattr(model_files, "MAX_BYTES", path.stat().st_size)
    load_model(path)
    monkeypatch.setattr(model_files, "MAX_BYTES", path.stat().st_size - 1)
    with pytest.raises(ValueError, match=r"m\.json: top level: expected at most"):
        load_model(path)


# ------------------------------------------------------------------------------------ random mutations


@pytest.mark.parametrize("count", first(1, [1000, 3000]))
def test_mutated_bytes(count: int) -> None:
    rng = np.random.default_rng(11)
    original = model_bytes(an_ensemble(), CERTIFICATE, TRAINING)
    tokens = [
        b"NaN",
        b"-",
        b"1e999",
        b"null",
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b",",
        b"\\",
        b"\xc3",
        b"0",
        b"9" * 70,
        b"\\ud800",
    ]
    loaded = 0
    for _ in range(count):
        data = bytearray(original)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(data)))
            length = int(rng.integers(1, 12))
            kind = rng.integers(6)
            if kind == 0:
                data[at] = int(rng.integers(256))
            elif kind == 1:
                del data[at : at + length]
            elif kind == 2:
                data[at:at] = tokens[rng.integers(len(tokens))]
            elif kind == 3:
                data[at : at + 1] = tokens[rng.integers(len(tokens))]
            elif kind == 4:
                data[at] ^= 1 << int(rng.integers(8))
            else:
                start = int(rng.integers(len(data)))
                data[at:at] = data[start : start + length]
        loaded += check_mutant(bytes(data))
    assert 0.034 * count < loaded < 0.83 * count  # both outcomes really occur


@pytest.mark.parametrize("count", first(1, [1000, 3000]))
def test_mutated_trees(count: int) -> None:
    rng = np.random.default_rng(12)
    original = a_document()
    values: list[Any] = [
        None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63, 10**60, 10**70, 0.5, -0.0, 1e308, -1e308, 5e-324,
        math.nan, math.inf, "", "x", "logistic", "exponential", "\ud800", "\x00", [], {}, [[]], [1, 2],
        ["a", "b"], {"a": 1}, [True, False],
    ]  # fmt: skip
    loaded = 0
    for _ in range(count):
        document = copy.deepcopy(original)
        for _ in range(int(rng.integers(1, 3))):
            places = _places(document)
            parent, key = places[rng.integers(len(places))]
            kind = rng.integers(5)
            if kind <= 1:
                parent[key] = copy.deepcopy(values[rng.integers(len(values))])
            elif kind == 2:
                del parent[key]
            elif kind == 3:
                other, other_key = places[rng.integers(len(places))]
                parent[key] = copy.deepcopy(other[other_key])
            elif isinstance(parent, dict):
                parent[str(rng.choice(["new", "a b", "", "weight", "ünknown"]))] = 1
            else:
                parent.append(copy.deepcopy(parent[key]))
        loaded += check_mutant(json.dumps(document).encode())
    assert 0.034 * count < loaded < 0.83 * count


# ------------------------------------------------------------------------------------ atomic saving


@pytest.mark.parametrize("step", ["fsync", "replace", "open"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_on_the_way_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "model.json"
    save(path, an_ensemble(0), None, None)
    before = path.read_bytes()

    def fail(*arguments: Any, **options: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(builtins if step == "open" else os, step, fail)
        with pytest.raises(type(error)):
            save(path, an_ensemble(1), None, None)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.json"]
    save(path, an_ensemble(1), None, None)
    assert load_model(path).ensemble == an_ensemble(1)


def test_the_new_file_appears_only_when_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.json"
    save(path, an_ensemble(0), None, None)
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def watched_sync(descriptor: int) -> None:
        steps.append("sync")
        assert load_model(path).ensemble == an_ensemble(0 if len(steps) == 1 else 1)
        sync(descriptor)

    def watched_replace(draft: Any, target: Any) -> None:
        steps.append("replace")
        assert Path(draft).parent == tmp_path
        assert load_model(draft).ensemble == an_ensemble(1)
        replace(draft, target)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(os, "replace", watched_replace)
    save(path, an_ensemble(1), None, None)
    assert steps == ["sync", "replace", "sync"]


def test_where_a_file_may_go(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        save(tmp_path / "no" / "model.json", an_ensemble(), None, None)
    with pytest.raises(ValueError, match="found a folder or a device"):
        save(tmp_path, an_ensemble(), None, None)
    if os.name == "posix":
        target, link = tmp_path / "target.json", tmp_path / "link.json"
        save(target, an_ensemble(0), None, None)
        target.chmod(0o640)
        link.symlink_to(target)
        save(link, an_ensemble(1), None, None)
        assert link.is_symlink()
        assert load_model(target).ensemble == an_ensemble(1)
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
    long = tmp_path / ("m" * 250 + ".json")
    save(long, an_ensemble(), None, None)
    assert load_model(long).ensemble == an_ensemble()

"""Files of 10 MB, sound or damaged, are read or refused in a small multiple of the time of parsing JSON."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from cardboost.model.files import read_model

SIZE = 10_000_000  # bytes
#: of the time that json.loads takes for a plain file of the same size, about 0.15 s: within 2 s where a file
#: is read in ten times that time, and far from the minutes of anything that grows with the square of a file
MOST = 25.0


def model(ensemble: dict[str, Any], certificate: Any = None, version: int = 5) -> bytes:
    head = {"format": "cardboost-model", "version": version}
    return json.dumps(head | {"ensemble": ensemble, "certificate": certificate, "training": None}).encode()


def ensemble(**changes: Any) -> dict[str, Any]:
    plain = {"loss": "logistic", "intercept": 0.0, "n_features": 1000, "feature_names": None}
    return plain | {"classes": [0, 1], "categories": [], "terms": []} | changes


def terms(count: int, n_features: int = 1000) -> list[dict[str, Any]]:
    rng = random.Random(0)
    return [
        {
            "feature": rng.randrange(n_features),
            "cut": rng.gauss(0, 1),
            "polarity": 1,
            "missing_left": True,
            "weight": 0.5,
        }
        for _ in range(count)
    ]


def term_on(label: Any, **changes: Any) -> dict[str, Any]:
    return {"feature": 0, "category": label, "polarity": 1, "missing_left": True, "weight": 1.0} | changes


def three_classes() -> bytes:
    """All terms on one feature: its step function would take the square of their number."""
    members = [
        ensemble(n_features=1, classes=[False, True], terms=stumps) for stumps in (terms(95_000, 1), [], [])
    ]
    return model({"classes": [1, 2, 3], "ensembles": members})


def rare_labels() -> bytes:
    labels = {"feature": 0, "kept": ["a"], "rare": [f"label {k:09d}" for k in range(500_000)]}
    return model(ensemble(categories=[labels], terms=[term_on("a")]))


def doubled_label() -> bytes:
    """The last of many labels is one of the kept ones."""
    labels = {"feature": 0, "kept": list(range(600_000)), "rare": [*range(600_000, 1_200_000), 1_300_000]}
    labels["rare"][0] = 599_999
    return model(ensemble(categories=[labels], terms=[term_on(1)]))


def nets(rows: int) -> bytes:
    net = {"gamma": 1.0, "hidden": [[0.123456789] * 20] * rows, "bias": [0.0] * 20, "out": [[1.0]] * 20}
    shared = {"loss": "squared", "n_features": rows, "feature_names": None, "classes": None}
    scaled = {"activation": "tanh", "mean": [0.0] * rows, "scale": [1.0] * rows, "intercept": [0.0]}
    return model(shared | scaled | {"nets": [net | {"offset": [0.0]}]})


def linear(count: int) -> bytes:
    score = {"intercept": 0.0, "features": list(range(count)), "weights": [0.123456789] * count}
    shared = {"loss": "squared", "n_features": count, "feature_names": None, "classes": None}
    return model(shared | {"scores": [score]})


READ: dict[str, Callable[[], bytes]] = {
    "terms": lambda: model(ensemble(terms=terms(95_000))),
    "rare labels": rare_labels,
    "names": lambda: model(ensemble(n_features=700_000, feature_names=[f"n{k:07d}" for k in range(700_000)])),
    "certificate": lambda: model(ensemble(), {"leaves": [{"bound": 0.5, "in": [], "out": [1]}] * 220_000}),
    "lists in a certificate": lambda: model(ensemble(), {"a": [[]] * 2_500_000}),
    "nets": lambda: nets(35_000),
    "linear": lambda: linear(450_000),
    "classes": lambda: model(
        {"loss": "softmax", "n_features": 1, "feature_names": None, "classes": list(range(150_000))}
        | {"scores": [{"intercept": 0.0, "features": [], "weights": []}] * 150_000}
    ),
}
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "last term": (lambda: model(ensemble(terms=[*terms(95_000), {}])), "ensemble.terms[95000].feature: "),
    "doubled label": (doubled_label, "ensemble.categories[0].rare[0]: expected a label that is not kept"),
    "too many labels": (
        lambda: model(ensemble(classes=list(range(1_200_000)))),
        "ensemble.classes: expected two labels",
    ),
    "deep lists": (
        lambda: b'{"format": ' + b"[" * 60 + b"[[]]," * (SIZE // 5) + b"1" + b"]" * 60 + b"}",
        "format: expected 'cardboost-model', found a list",
    ),
    "deeper": (lambda: b"[" * SIZE, "top level: expected at most 64 levels"),
    "numbers without end": (lambda: b'{"a": [' + b"1e999," * (SIZE // 6) + b"1]}", "a[0]: expected a number"),
    "doubled keys": (lambda: b"{" + b'"a": 1, ' * (SIZE // 8) + b'"a": 1}', "a: expected one value"),
    "digits": (lambda: b'{"a": ' + b"1" * SIZE + b"}", "a: expected a number"),
    "zeros": (lambda: b"\0" * SIZE, "line 1 column 1: expected JSON"),
    "no UTF-8": (lambda: b" " * SIZE + b"\xff", f"byte {SIZE}: expected UTF-8"),
    "a string without end": (lambda: b'{"a": "' + b"x" * SIZE, "line 1 column 7: expected JSON"),
    "unknown keys": (
        lambda: model(ensemble(**{f"k{k}": 1 for k in range(800_000)})),
        "ensemble.k0: unknown key",
    ),
}


@cache
def plain_file() -> bytes:
    return READ["terms"]()


def seconds_of_parsing() -> float:
    begun = time.process_time()
    json.loads(plain_file())
    return (time.process_time() - begun) * SIZE / len(plain_file())


def refusal_in_time(data: bytes) -> tuple[str | None, bool]:
    """The message of a refusal, and whether it, or the model, came in time."""
    message = None
    begun = time.process_time()
    try:
        read_model(data)
    except ValueError as error:
        message = str(error)
    seconds = time.process_time() - begun
    return message, seconds < MOST * seconds_of_parsing() * len(data) / SIZE


def check_time(data: bytes, accepted: str | None, tries: int = 3) -> None:
    assert 0.8 * SIZE < len(data) < 1.4 * SIZE
    for _ in range(tries):
        message, in_time = refusal_in_time(data)
        expected = message is None if accepted is None else str(message).startswith(f"model: {accepted}")
        assert expected, message
        if in_time:
            return
    raise AssertionError(f"not read within {MOST} times the time of parsing, in {tries} tries")


def test_terms_on_one_feature() -> None:
    check_time(three_classes(), None)


@pytest.mark.long
@pytest.mark.parametrize("kind", READ)
def test_large_models_are_read(kind: str) -> None:
    check_time(READ[kind](), None)


@pytest.mark.long
@pytest.mark.parametrize("kind", REFUSED)
def test_large_files_that_are_no_models_are_refused(kind: str) -> None:
    create, message = REFUSED[kind]
    check_time(create(), message)

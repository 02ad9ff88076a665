"""Damaged model files, the same for the same seed, and the law that reading them must keep.

A file is refused with the path of the fault, or it is a sound model: its scores are finite, its card can be
shown, and saving and loading give the same model.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from drawn_models import as_table, rows_for

from cardboost.data.categories import OTHER, Categories
from cardboost.model import Ensemble, MulticlassEnsemble, Term
from cardboost.model.files import model_bytes, read_model
from cardboost.model.linear import LinearModel, LinearScore
from cardboost.model.nets import Net, NetEnsemble
from cardboost.model.schema import MAX_DEPTH

# ------------------------------------------------------------------------------------ undamaged files

COLOURS = Categories(("blue", "größe", "red", "\ud800"), ("pink", "teal"))
SIZES = Categories((False, 2, 2.5, 2**60))
NUMBERS = (
    Term(0, 30.5, 1, True, 0.2),
    Term(0, 41.0, -1, True, 0.7),
    Term(1, float("inf"), 1, True, 0.1),
    Term(2, -1e-3, 1, False, 1.25),
)
LABELS = (
    Term(0, None, 1, False, 1.0, "blue"),
    Term(0, None, -1, True, 0.1, OTHER),
    Term(0, None, 1, False, 0.5, one_of=("größe", "red", OTHER)),
    Term(1, None, 1, False, 0.3, 2.5),
    Term(1, None, 1, False, 0.3, one_of=(False, 2)),
    Term(2, 30.5, 1, True, 0.2),
)
LINE, FLAT = LinearScore(0.25, (0, 2), (1.5, -1e-3)), LinearScore(-3.0, (), ())
NAMES = ("age", "größe 身長", 'quote " \\ \n')
KNOWN = {0: COLOURS, 1: SIZES}
TRAINING = {"parameters": {"max_terms": 10, "l0": 0.0}, "data": {"target": "y", "rows": 80, "holdout": None}}


def _member(*terms: Term) -> Ensemble:
    used = {term.feature for term in terms}
    own = {j: labels for j, labels in KNOWN.items() if j in used}
    return Ensemble("exponential", 0.25, terms, NAMES, 3, (False, True), own)


@cache
def certified() -> tuple[bytes, str]:
    """A small model with a true certificate, and the CSV that it is about."""
    from cardboost.cli.main import main

    rng = random.Random(3)
    lines = ["n,c,y"]
    for k in range(60):
        number, label = rng.randrange(5), rng.choice("abcd")
        high = number + 3 * (label == "c") + rng.gauss(0, 1) > 3
        lines.append(f"{'' if k % 9 == 0 else number},{label},{int(high)}")
    text = "\n".join(lines) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.csv")
        data.write_text(text)
        words = ["--max-terms", "3", "--hot-start", "6", "--threads", "1", "--quiet"]
        assert main(["fit", str(data), "--target", "y", "--out", folder, *words]) == 0
        return Path(folder, "model.json").read_bytes(), text


@cache
def base_files() -> dict[str, bytes]:
    """Files of every kind of model."""
    unit = (
        Term(0, 0.5, 1, True, 0.75),
        Term(1, 1.5, -1, False, 0.25),
        Term(2, 2.5, 1, False, 0.5),
    )
    many = MulticlassEnsemble(("a", "b", "c"), (_member(*LABELS), _member(*LABELS[:3]), _member()))
    numbers = Ensemble("logistic", 0.5, NUMBERS, NAMES, 3, ("no", "yes"))
    labels = Ensemble("logistic", -0.5, LABELS, NAMES, 3, (0, 1), KNOWN)
    regressor = Ensemble("squared", 0.5, LABELS, None, 3, None, KNOWN)
    whole = Ensemble("logistic", 0.25, unit, None, 3, (False, True), unit=0.25)
    return {
        "numbers": model_bytes(numbers, None, TRAINING),
        "labels": model_bytes(labels),
        "several classes": model_bytes(many, [{"objective": 1.5}, {}, {}], TRAINING),
        "regressor": model_bytes(regressor),
        "certificate": certified()[0],
        "unit": model_bytes(whole),
        "linear": model_bytes(LinearModel("logistic", 3, NAMES, ("no", "yes"), (LINE,)), None, TRAINING),
        "several lines": model_bytes(LinearModel("softmax", 3, None, (1, 2, 3), (LINE, LINE, FLAT))),
        "linear regressor": model_bytes(LinearModel("absolute", 3, None, None, (LINE,))),
        "nets": model_bytes(_nets("logistic", ("no", "yes"), 1), None, TRAINING),
        "nets of several classes": model_bytes(_nets("cross_entropy", (1, 2, 3), 3)),
        "nets of numbers": model_bytes(_nets("huber", None, 2)),
    }


def _nets(loss: str, classes: Any, outputs: int) -> NetEnsemble:
    rng = np.random.default_rng(0)
    nets = tuple(
        Net(
            0.5, rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=(2, outputs)), np.zeros(outputs)
        )
        for _ in range(2)
    )
    return NetEnsemble(loss, 3, NAMES, classes, "tanh", np.zeros(3), np.ones(3), np.zeros(outputs), nets)


# ------------------------------------------------------------------------------------ damage to bytes

_PIECES = (
    b"NaN", b"-", b"1e999", b"null", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\xc3", b"0",
    b"9" * 70, b"\\ud800", b"\x00", b"\xef\xbb\xbf", b"true", b"e", b".", b"\xed\xa0\x80", b"\\u12",
    b"[" * 100,
)  # fmt: skip


def damaged_bytes(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """One to three of: flip, overwrite, delete, insert, duplicate, truncate, splice with another file."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, size = rng.randrange(len(out) + 1), rng.randint(1, 12)
        kind = rng.randrange(16)
        if kind < 4 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind < 6 and at < len(out):
            out[at] = rng.randrange(256)
        elif kind < 8:
            del out[at : at + size]
        elif kind < 10:
            out[at:at] = rng.choice(_PIECES)
        elif kind < 11:
            out[at : at + 1] = rng.choice(_PIECES)
        elif kind < 13:
            start = rng.randrange(len(out) + 1)
            out[at:at] = out[start : start + size * rng.choice((1, 10))]
        elif kind < 14:
            del out[at:]
        elif kind < 15:
            out[at:] = other[rng.randrange(len(other)) :]
        else:  # whole lines change places
            lines = bytes(out).split(b"\n")
            one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[one], lines[two] = lines[two], lines[one]
            out = bytearray(b"\n".join(lines))
    return bytes(out)


# ------------------------------------------------------------------------------------ damage to the tree

_RAW = "\x01raw"  # stands for notation that json.dumps would not write
_TOKENS = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e308", "-1e308", "1e-320", "-0.0", "-0", "1E+2",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 64, "1" * 65, "1" * 5000,
    "0." + "3" * 400, "[" * 30 + "]" * 30, "[" * 70 + "]" * 70, "[" * 3000 + "]" * 3000,
    '{"a":' * 70 + "1" + "}" * 70, '"' + "long " * 2000 + '"', '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"',
    '{"a": 1, "a": 2}', '{"other": true}', '{"other": false}', '{"other": true, "more": 1}',
    '"\\ud83d\\ude00"',
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 4, 255, 256, 2**31 - 1, 2**31, 2**63, 2**63 - 1, 2**200, 0.5, -0.5,
    1.0, 1e16, 1e300, 5e-324, "", "x", "blue", "red", "no", "logistic", "exponential", "squared", "\ud800",
    "\x00", "a.b[0]", [], {}, [[]], [1, 2], [2, 1], ["a", "b"], ["a", "b", "c"], [True, False], [False, True],
    {"a": 1}, [{"other": True}], ["blue", {"other": True}],
)  # fmt: skip
_KEYS = ("new", "a b", "", "weight", "ünknown", "category", "one_of", "cut", "unit", "ensembles", "k" * 300)


def _walk(value: Any, rng: random.Random) -> tuple[Any, Any] | None:
    """A container and one of its keys, by a walk from the top: every part of a file is met."""
    place = None
    while isinstance(value, dict | list) and value and (place is None or rng.random() > 0.12):
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        place, value = (value, key), value[key]
    return place


def damaged_tree(document: Any, rng: random.Random) -> bytes:
    """One to three of: another value, none, one from elsewhere, more keys or entries, other orders."""
    tokens: list[str] = []

    def raw(token: str) -> str:
        tokens.append(token)
        return f"{_RAW}{len(tokens) - 1}"

    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place = _walk(document, rng)
        if place is None:
            continue
        parent, key = place
        kind = rng.randrange(12)
        if kind < 4:
            parent[key] = json.loads(json.dumps(rng.choice(_VALUES)))
        elif kind < 6:
            parent[key] = raw(rng.choice(_TOKENS))
        elif kind < 7:
            del parent[key]
        elif kind < 8:
            other = _walk(document, rng)
            if other is not None:
                parent[key] = json.loads(json.dumps(other[0][other[1]]))
        elif kind < 9:
            if isinstance(parent, dict):
                parent[rng.choice(_KEYS)] = rng.choice(_VALUES)
            else:
                parent.extend([parent[key]] * rng.choice((1, 2, 300)))
        elif kind < 10:
            if isinstance(parent, dict):  # values change places
                other_key = rng.choice(list(parent))
                parent[key], parent[other_key] = parent[other_key], parent[key]
            else:
                rng.shuffle(parent)
        elif kind < 11:
            if isinstance(parent, dict):  # a key twice
                parent[raw(json.dumps(key))] = parent[key]
            else:
                del parent[rng.randrange(len(parent)) :]
        elif isinstance(parent[key], int | float) and not isinstance(parent[key], bool):
            change = rng.choice((-1.0, 0.0, 2.0, 1e-320, 1e308, 1 + 2**-52))
            number = parent[key] * change if abs(parent[key]) < 1e300 else 0
            parent[key] = number if rng.random() < 0.5 else raw(repr(number))
        else:
            parent[key] = [parent[key]]
    text = json.dumps(document)
    for k, token in enumerate(tokens):
        text = text.replace(json.dumps(f"{_RAW}{k}"), token)
    return text.encode("utf-8", "surrogatepass")


# ------------------------------------------------------------------------------------ files, one by one


def mutants(seed: int, count: int) -> Iterator[bytes]:
    """Damaged files, of all kinds of models in turn, half of them damaged in their bytes."""
    rng = random.Random(seed)
    files = list(base_files().values())
    for k in range(count):
        data = files[k % len(files)]
        if rng.random() < 0.5:
            yield damaged_bytes(data, rng.choice(files), rng)
        else:
            yield damaged_tree(json.loads(data), rng)


# ------------------------------------------------------------------------------------ the law

_NAME, _KEY = r"[A-Za-z_]\w*", r"\[(?:\d+|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\]"
_PLACE = re.compile(
    r"model: (?:top level|line \d+ column \d+|byte \d+|"
    rf"(?P<path>(?:{_NAME}|{_KEY})(?:\.{_NAME}|{_KEY})*)(?:\.\.\.)?): (?:expected|unknown key)",
    re.DOTALL | re.ASCII,
)
LONGEST = 600  # characters of a message


def keeps_the_law(data: bytes) -> bool:
    """Whether the file was read as a model; otherwise it was refused as it has to be."""
    refusal = None
    try:
        model = read_model(data)
    except ValueError as error:
        refusal = error
    if refusal is not None:
        message = str(refusal)
        assert type(refusal) is ValueError, message
        found = _PLACE.match(message)
        assert found, message
        assert len(message) <= LONGEST, message
        if found["path"] is not None:
            _leads_somewhere(data, found["path"], message)
        return False
    ensemble = model.ensemble
    if isinstance(ensemble, LinearModel):
        rows = np.random.default_rng(0).normal(size=(3, min(ensemble.n_features, 300)))
        if ensemble.n_features <= 300 and _moderate(ensemble):
            assert np.isfinite(ensemble.decision_function(rows)).all()
            assert len(ensemble.predict(rows)) == 3
    elif isinstance(ensemble, NetEnsemble):
        rows = np.random.default_rng(0).normal(size=(3, ensemble.n_features))
        try:
            assert len(ensemble.predict(rows)) == 3
        except ValueError as error:  # numbers that add up to more than there is room for
            assert "too large" in str(error)  # noqa: PT017
        again = model_bytes(ensemble, model.certificate, model.training)
        assert model_bytes(read_model(again).ensemble, model.certificate, model.training) == again
        return True
    elif ensemble.n_features <= 300:
        rows = rows_for(ensemble, np.random.default_rng(0), 3)
        table = as_table(rows, ensemble.categories, ensemble.feature_names)
        scores = ensemble.decision_function(table)
        assert np.isfinite(scores).all()
        assert len(ensemble.predict(table)) == len(rows)
    assert model.card().strip()
    again = model_bytes(ensemble, model.certificate, model.training)
    assert read_model(again) == model
    return True


def _moderate(model: LinearModel) -> bool:
    """Whether no score of numbers near 1 overflows; where one does, that is said when rows are scored."""
    return all(abs(w) < 1e300 for own in model.scores for w in (own.intercept, *own.weights))


def _leads_somewhere(data: bytes, path: str, message: str) -> None:
    """All but the last step of a path exist in the file, and that one too unless it is said to be missing."""
    value = json.loads(data, parse_int=len)
    steps = re.findall(f"{_NAME}|{_KEY}", path, re.DOTALL | re.ASCII)
    for k, step in enumerate(steps):
        key: Any = step
        if step.startswith("["):
            key = int(step[1:-1]) if step[1:-1].isdigit() else None
        if key is None or (k + 1 >= MAX_DEPTH):
            return  # a strange key is shown in part
        if k == len(steps) - 1 and "it is missing" in message:
            assert isinstance(value, dict), message
            return
        assert isinstance(value, list) if isinstance(key, int) else isinstance(value, dict), message
        value = value[key]


def timed(data: bytes) -> tuple[bool, float]:
    """Whether a damaged file is a model still, and the seconds of the processor that this took to find."""
    begun = time.process_time()
    accepted = keeps_the_law(data)
    return accepted, time.process_time() - begun


def check(seed: int, count: int, report: Callable[[str], Any] = lambda text: None) -> tuple[int, float]:
    """How many of the damaged files are models still, and the seconds of the processor that the slowest took.

    A file that breaks the law is named by its number. What is slower than all files before it is tried again:
    the machine may have done other things.
    """
    accepted, slowest = 0, 0.0
    for k, data in enumerate(mutants(seed, count)):
        try:
            model, seconds = timed(data)
            if seconds > slowest:
                slowest = max(slowest, min(seconds, timed(data)[1]))
            accepted += model
        except Exception as error:
            raise AssertionError(f"file {k} of seed {seed} ({len(data)} bytes): {error!r}") from error
        if k % 10_000 == 9_999:
            report(f"{k + 1} files, {accepted} of them models, slowest {slowest:.3f} s")
    return accepted, slowest

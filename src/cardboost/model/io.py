"""Model files: versioned JSON, written atomically, and refused when anything is wrong with them.

    {"format": "cardboost-model", "version": 1,
     "ensemble": {...}, "certificate": {...} or null, "training": {...} or null}

Numbers round-trip exactly: floats are written with the shortest decimals that give the same bits back. NaN
and infinity do not occur (a cut at infinity is null). What a certificate claims is left to its checker: here
it is an object or null. Every fault is reported with its JSON path.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.model.card import render_card
from cardboost.model.ensemble import Ensemble, Term

FORMAT = "cardboost-model"
VERSION = 1
MAX_BYTES = 50_000_000
MAX_DEPTH = 64
MAX_DIGITS = 64  # of an integer: more than any number in a model needs
_TERM_KEYS = ("feature", "cut", "polarity", "missing_left", "weight")
_ENSEMBLE_KEYS = ("loss", "intercept", "n_features", "feature_names", "classes", "terms")
_MODEL_KEYS = ("format", "version", "ensemble", "certificate", "training")


@dataclass(frozen=True)
class Model:
    """What a model file holds: the ensemble, the certificate it came with, and how it was trained."""

    ensemble: Ensemble
    certificate: dict[str, Any] | None = None
    training: dict[str, Any] | None = None

    @property
    def classes(self) -> tuple[Any, Any]:
        return self.ensemble.classes

    def decision_function(self, X: Any, threads: int = 1) -> NDArray[np.float64]:
        return self.ensemble.decision_function(X, threads)

    def contributions(self, X: Any, threads: int = 1) -> NDArray[np.float64]:
        return self.ensemble.contributions(X, threads)

    def predict_proba(self, X: Any, threads: int = 1) -> NDArray[np.float64]:
        return self.ensemble.predict_proba(X, threads)

    def predict(self, X: Any, threads: int = 1) -> NDArray[Any]:
        return self.ensemble.predict(X, threads)

    def card(
        self, *, title: str | None = None, certificate_lines: Sequence[str] = (), width: int = 78
    ) -> str:
        return render_card(self.ensemble, title=title, certificate_lines=certificate_lines, width=width)


# ------------------------------------------------------------------------------------------------ reading


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file; a ValueError says where the first fault is."""
    source = os.fspath(path)
    if os.path.isdir(source):
        raise ValueError(f"{source}: expected a model file, found a folder")
    with open(source, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    return read_model(data, source)


def read_model(data: bytes, source: str = "model") -> Model:
    """The model in the bytes of a file; ``source`` names them in messages."""
    try:
        return _model(_parse(data))
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def from_dict(document: Any) -> Ensemble:
    """The way back from ``Ensemble.to_dict``; a ValueError starts with the path of the first fault."""
    fields = _fields(document, _ENSEMBLE_KEYS, "")
    if not isinstance(fields["terms"], list):
        raise ValueError(f"terms: expected a list, found {_kind(fields['terms'])}")
    terms = []
    for k, entry in enumerate(fields["terms"]):
        given = _fields(entry, _TERM_KEYS, f"terms[{k}]")
        if given["cut"] is None:
            given["cut"] = float("inf")
        with _under(f"terms[{k}]"):
            terms.append(Term(**given))
    return Ensemble(**(fields | {"terms": tuple(terms)}))


def _model(document: Any) -> Model:
    if not isinstance(document, dict):
        raise ValueError(f"top level: expected an object, found {_kind(document)}")
    if document.get("format") != FORMAT:
        found = f"found {_kind(document['format'])}" if "format" in document else "it is missing"
        raise ValueError(f"format: expected {FORMAT!r}, {found}")
    version = document.get("version")
    if type(version) is not int or version < 1:
        found = f"found {_kind(version)}" if "version" in document else "it is missing"
        raise ValueError(f"version: expected an integer from 1 to {VERSION}, {found}")
    if version > VERSION:
        raise ValueError(f"version: expected at most {VERSION}, found {version}: a newer cardboost wrote it")
    fields = _fields(document, _MODEL_KEYS, "")
    with _under("ensemble"):
        ensemble = from_dict(fields["ensemble"])
    for key in ("certificate", "training"):
        if not isinstance(fields[key], dict | None):
            raise ValueError(f"{key}: expected an object or null, found {_kind(fields[key])}")
    return Model(ensemble, fields["certificate"], fields["training"])


def _fields(value: Any, keys: Sequence[str], path: str) -> dict[str, Any]:
    """The entries of an object that has exactly these keys."""
    if not isinstance(value, dict):
        raise ValueError(_join(path, f"expected an object, found {_kind(value)}"))
    for key in keys:
        if key not in value:
            raise ValueError(f"{path}{'.' if path else ''}{key}: expected a value, but it is missing")
    for key in value:
        if key not in keys:
            raise ValueError(f"{_child(path, key)}: unknown key, expected only {', '.join(keys)}")
    return dict(value)


@contextlib.contextmanager
def _under(path: str) -> Iterator[None]:
    """Faults inside get this path in front of their own."""
    try:
        yield
    except ValueError as error:
        raise ValueError(_join(path, str(error))) from None


def _join(path: str, message: str) -> str:
    if not path:
        return message
    if message.startswith("expected"):
        return f"{path}: {message}"
    return f"{path}{message}" if message.startswith("[") else f"{path}.{message}"


def _child(path: str, key: str) -> str:
    if not (key.isidentifier() and key.isascii()) or len(key) > 40:
        return f"{path}[{key[:40]!r}]"
    return f"{path}.{key}" if path else key


def _kind(value: Any) -> str:
    """A value for messages, in the words of JSON and never long."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# Faults of the notation are found while parsing, where the path is not known yet: they leave a mark in the
# tree, and the first mark in the order of the file is reported.


@dataclass(frozen=True)
class _Mark:
    message: str


def _parse(data: bytes) -> Any:
    if len(data) > MAX_BYTES:
        raise ValueError(f"top level: expected at most {MAX_BYTES // 1_000_000} MB, found a larger file")
    if not data.strip():
        raise ValueError("top level: expected a model, found an empty file")
    try:
        text = data.decode("utf-8")
        document = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_parse_int,
            parse_float=_parse_float,
            parse_constant=lambda token: _Mark(f"expected a number, found {token}"),
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start}: expected UTF-8 text, found {data[error.start]:#04x}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno} column {error.colno}: expected JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError(f"top level: expected at most {MAX_DEPTH} levels of nesting, found more") from None
    for path, message in _marks(document, "", 0):
        raise ValueError(f"{path or 'top level'}: {message}")
    return document


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            found[key] = _Mark("expected one value, found the key twice")
        seen.add(key)
    return found


def _parse_int(token: str) -> int | _Mark:
    if len(token) > MAX_DIGITS:
        return _Mark(f"expected a number, found an integer of {len(token)} digits")
    return int(token)


def _parse_float(token: str) -> float | _Mark:
    number = float(token)
    if number in (float("inf"), float("-inf")):
        return _Mark(f"expected a number that a double can hold, found {token[:40]}")
    return number


def _marks(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """All marks below a value, and nesting that goes too deep, in the order of the file."""
    if isinstance(value, _Mark):
        yield path, value.message
    elif not isinstance(value, dict | list):
        return
    elif depth >= MAX_DEPTH:
        yield path[:200], f"expected at most {MAX_DEPTH} levels of nesting, found more"
    elif isinstance(value, dict):
        for key, entry in value.items():
            if isinstance(entry, dict | list | _Mark):
                yield from _marks(entry, _child(path, key), depth + 1)
    else:
        for k, entry in enumerate(value):
            if isinstance(entry, dict | list | _Mark):
                yield from _marks(entry, f"{path}[{k}]", depth + 1)


# ------------------------------------------------------------------------------------------------ writing


def save(
    path: str | os.PathLike[str],
    ensemble: Ensemble,
    certificate: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
) -> None:
    """Write a model file. Whatever happens on the way, the path holds the old file or the new one."""
    data = model_bytes(ensemble, certificate, training)
    _write_atomically(Path(os.path.realpath(path)), data)


def model_bytes(
    ensemble: Ensemble,
    certificate: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
) -> bytes:
    """The content of a model file, in a layout for people: one line for every term."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "ensemble": ensemble.to_dict(),
        "certificate": None if certificate is None else dict(certificate),
        "training": None if training is None else dict(training),
    }
    try:
        text = _layout(document, 0) + "\n"
    except RecursionError:
        raise ValueError("the model cannot be saved: certificate or training nests too deeply") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"the model cannot be saved as JSON: {error}") from None
    data = text.encode("utf-8", "backslashreplace")  # a lone surrogate becomes its JSON escape
    read_model(data, "the model cannot be saved")  # what is written can be read
    return data


def _layout(value: Any, depth: int) -> str:
    """JSON with the outer three levels spread over lines."""
    if not isinstance(value, dict | list) or not value or depth == 3:
        return _compact(value)
    pad = "  " * (depth + 1)
    if isinstance(value, dict):
        entries = [f"{pad}{_compact(str(key))}: {_layout(entry, depth + 1)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(entries) + "\n" + pad[2:] + "}"
    if not any(isinstance(entry, dict | list) for entry in value):
        return _compact(value)
    return "[\n" + ",\n".join(pad + _layout(entry, depth + 1) for entry in value) + "\n" + pad[2:] + "]"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, and mappings and sequences of other types, as JSON knows them."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of type {type(value).__name__} has no place in a model file")


def _write_atomically(target: Path, data: bytes) -> None:
    """A new file beside the target takes its name once its content is on the disk."""
    folder = target.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder {str(folder)!r} does not exist.")
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        raise ValueError(f"{target}: expected a file to replace, found a folder or a device")
    draft = folder / f".cardboost-{secrets.token_hex(8)}.tmp"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(draft, stat.S_IMODE(mode))
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    """Make the new name last; not every system lets a folder be opened, and the file itself is safe."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

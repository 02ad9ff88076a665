"""JSON read strictly: every fault of the notation or of the form is reported with its path."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 64
LONGEST_PATH = 160  # characters, after which no more steps are shown
MAX_DIGITS = 64  # of an integer: more than any number in a model needs


def fields(value: Any, keys: Sequence[str], path: str, optional: Sequence[str] = ()) -> dict[str, Any]:
    """The entries of an object that has exactly these keys, and perhaps some that are optional."""
    if not isinstance(value, dict):
        raise ValueError(_join(path, f"expected an object, found {kind(value)}"))
    for key in keys:
        if key not in value:
            raise ValueError(f"{path}{'.' if path else ''}{key}: expected a value, but it is missing")
    for key in value:
        if key not in keys and key not in optional:
            known = ", ".join([*keys, *optional])
            raise ValueError(f"{_child(path, key)}: unknown key, expected only {known}")
    return dict(value)


@contextlib.contextmanager
def under(path: str) -> Iterator[None]:
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


def _child(path: str, key: str | int) -> str:
    if len(path) > LONGEST_PATH:
        return path if path.endswith("...") else f"{path}..."
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not (key.isidentifier() and key.isascii()) or len(key) > 40:
        return f"{path}[{key[:40]!r}]"
    return f"{path}.{key}" if path else key


def kind(value: Any) -> str:
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


def parse(data: bytes) -> Any:
    """The document in the bytes of a file, without NaN, infinity and doubled keys."""
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
        yield path, f"expected at most {MAX_DEPTH} levels of nesting, found more"
    elif isinstance(value, dict):
        for key, entry in value.items():
            if isinstance(entry, dict | list | _Mark):
                yield from _marks(entry, _child(path, key), depth + 1)
    else:
        for k, entry in enumerate(value):
            if isinstance(entry, dict | list | _Mark):
                yield from _marks(entry, _child(path, k), depth + 1)

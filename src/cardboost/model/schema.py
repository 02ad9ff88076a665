"""The schema of the JSON files: strict notation, kinds of values, and records that JSON can hold.

A *kind* is a function that takes a value and gives it back as a model holds it, or raises :class:`Fault`. A
:class:`Record` states the kind of each of its fields where it declares it: the constructor checks them,
``from_dict`` reads them from JSON and ``to_dict`` writes them. The record adds the rules between fields.

Every fault has the JSON path of the value, what was expected there and what was found. The path is put
together from the inside out, when there is a fault: checking millions of values costs no path.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import cache
from itertools import chain, pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import MAX_CODES, Label

Kind = Callable[[Any], Any]

MAX_FEATURES = 2**31 - 1  # the kernels count features in 32 bits
MAX_DEPTH = 64  # levels of nesting; certificates have 8
MAX_DIGITS = 64  # of an integer: more than any number in a model needs
LONGEST_PATH = 160  # characters, after which no more steps are shown
LONGEST_VALUE = 60  # characters of a value in a message
LONGEST_KEY = 40  # characters of a strange key in a path


class QuotedKey(str):
    """A step of a path that is shown in quotes, as keys are that cannot be taken for names."""


class Fault(ValueError):
    """What is wrong with a value, and the steps that lead to it: keys of objects and indices of lists."""

    def __init__(self, problem: str, *steps: str | int) -> None:
        super().__init__(problem, *steps)
        self.problem, self.steps = problem, steps

    def under(self, *steps: str | int) -> Fault:
        """The same fault seen from further outside."""
        return Fault(self.problem, *steps, *self.steps)

    def __str__(self) -> str:
        return f"{self.path()}: {self.problem}" if self.steps else self.problem

    def path(self) -> str:
        """The JSON path: ``ensemble.terms[3].weight``."""
        path = ""
        for step in self.steps:
            if len(path) > LONGEST_PATH:
                return f"{path}..."
            if isinstance(step, int):
                path += f"[{step}]"
            elif type(step) is str and len(step) <= LONGEST_KEY and step.isascii() and step.isidentifier():
                path += f".{step}" if path else step
            else:
                path += f"[{step[:LONGEST_KEY]!r}]"
        return path


@contextlib.contextmanager
def under(*steps: str | int) -> Iterator[None]:
    """Faults inside get these steps in front of their own."""
    try:
        yield
    except Fault as fault:
        raise fault.under(*steps) from None


def expected(what: str, value: Any, *steps: str | int) -> Fault:
    """The fault of a value that is something else."""
    return Fault(f"expected {what}, found {shown(value)}", *steps)


def shown(value: Any) -> str:
    """A value for a message, never long."""
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def shown_json(value: Any) -> str:
    """The same in the words of JSON."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return shown(value)


# ------------------------------------------------------------------------------------------------ notation


def parse(data: bytes) -> Any:
    """The document in the bytes of a file, without NaN, infinity and doubled keys.

    Raises
    ------
    Fault
        At the first fault in the order of the file.
    """
    if not data.strip():
        raise Fault("expected a model, found an empty file")
    try:
        document = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_parse_object,
            parse_int=_parse_int,
            parse_float=_parse_float,
            parse_constant=lambda token: Fault(f"expected a number, found {token}"),
        )
    except UnicodeDecodeError as error:
        problem = f"expected UTF-8 text, found {data[error.start]:#04x}"
        raise ValueError(f"byte {error.start}: {problem}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno} column {error.colno}: expected JSON: {error.msg}") from None
    except RecursionError:
        raise Fault(_TOO_DEEP) from None
    if type(document) in _WITH_FAULTS and (fault := _first_fault(document, 0)) is not None:
        raise fault
    return document


# Faults of the notation are met while parsing, where the path is not known yet, and are left in the tree.


def _parse_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        doubled = Fault("expected one value, found the key twice")
        entries.update({key: doubled for key, count in counts.items() if count > 1})
    return entries


def _parse_int(token: str) -> int | Fault:
    if len(token) > MAX_DIGITS:
        return Fault(f"expected a number, found an integer of {len(token)} digits")
    return int(token)


def _parse_float(token: str) -> float | Fault:
    number = float(token)
    if math.isinf(number):
        return Fault(f"expected a number that a double can hold, found {token[:40]}")
    return number


def _first_fault(value: Any, depth: int) -> Fault | None:
    """The first fault in a tree, or nesting that goes too deep, in the order of the file."""
    if type(value) is Fault:
        return value
    if depth >= MAX_DEPTH:
        return Fault(_TOO_DEEP)
    for key, entry in value.items() if type(value) is dict else enumerate(value):
        if type(entry) in _WITH_FAULTS and (fault := _first_fault(entry, depth + 1)) is not None:
            return fault.under(key)
    return None


_TOO_DEEP = f"expected at most {MAX_DEPTH} levels of nesting, found more"
_WITH_FAULTS = (list, dict, Fault)


# ------------------------------------------------------------------------------------------------ objects


def fields(document: Any, keys: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """The entries of an object that has exactly these keys, and perhaps some that are optional."""
    if not isinstance(document, dict):
        raise Fault(f"expected an object, found {shown_json(document)}")
    if document.keys() != keys:
        for key in keys:
            if key not in document:
                raise Fault("expected a value, but it is missing", key)
        for key in document:
            if key not in keys and key not in optional:
                raise Fault(f"unknown key, expected only {', '.join([*keys, *optional])}", key)
    return dict(document)


def read_object(
    document: Any, kinds: Mapping[str, Kind | None], optional: Collection[str] = ()
) -> dict[str, Any]:
    """The entries of an object, each of its kind; where that is None, whatever it is."""
    entries = fields(document, kinds.keys(), optional)
    for key, kind in kinds.items():
        if kind is not None:
            try:
                entries[key] = kind(entries[key])
            except Fault as fault:
                raise fault.under(key) from None
    return entries


def list_of(kind: Kind, least: int = 0) -> Kind:
    """Lists, or tuples, of so many entries or more, all of one kind."""
    accepted = "a list that is not empty" if least else "a list"

    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or len(value) < least:
            raise Fault(f"expected {accepted}, found {shown_json(value)}")
        entries: list[Any] = []
        try:
            for entry in value:
                entries.append(kind(entry))
        except Fault as fault:
            raise fault.under(len(entries)) from None
        return tuple(entries)

    return check


def maybe(kind: Kind) -> Kind:
    """None, or a value of this kind."""
    return lambda value: None if value is None else kind(value)


# ------------------------------------------------------------------------------------------------ values


def kind(what: str, accepts: Callable[[Any], bool], convert: Kind) -> Kind:
    """Values that are accepted, converted to what a model holds."""

    def check(value: Any) -> Any:
        if not accepts(value):
            raise expected(what, value)
        return convert(value)

    return check


def number(what: str = "a finite number", holds: Callable[[float], bool] = math.isfinite) -> Kind:
    """Real numbers for which this holds. Minus zero becomes zero: it says the same and prints better."""

    def accepts(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            return False
        try:
            return holds(float(value))
        except OverflowError:
            return False

    return kind(what, accepts, lambda value: float(value) + 0.0)


def is_integer(value: Any) -> bool:
    """Whether this is a whole number by its type."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def integer(what: str, least: float = -math.inf, most: float = math.inf, limits: str = "") -> Kind:
    """Whole numbers within limits; ``limits`` says so in words, where ``what`` does not."""
    within = kind(limits or what, lambda value: least <= value <= most, int)
    return kind(what, is_integer, within)


def one_of(choices: Sequence[Any], what: str = "") -> Kind:
    """One of a few values, of the same type."""
    names = [repr(choice) for choice in choices]
    what = what or " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    types = {type(choice) for choice in choices}
    return kind(what, lambda value: type(value) in types and value in choices, lambda value: value)


FINITE = number()
POSITIVE = number("a positive finite number", lambda value: 0.0 < value < math.inf)
SHARE = number("a share from 0 to 1", lambda value: 0.0 <= value <= 1.0)
INDEX = integer("the index of a feature", 0)
FLAG = kind("true or false", lambda value: isinstance(value, bool | np.bool_), bool)
N_FEATURES = integer("a number of features", 1, MAX_FEATURES, f"a number from 1 to {MAX_FEATURES}")


def text(value: Any) -> str:
    """Text."""
    if not isinstance(value, str):
        raise Fault(f"expected text, found {shown_json(value)}")
    return str(value)


def finite_array(dimensions: int) -> Kind:
    """Arrays of finite numbers: of an array, a list, or lists of one length in a list."""

    def check(value: Any) -> NDArray[np.float64]:
        if isinstance(value, np.ndarray):
            if value.ndim != dimensions or value.dtype.kind != "f" or not np.isfinite(value).all():
                raise expected("finite numbers", value)
            return np.array(value, dtype=np.float64)
        if dimensions == 1:
            return np.array(_finite_row(value), dtype=np.float64) + 0.0
        rows = list_of(_finite_row)(value)
        if not rows:
            raise expected("at least one row", value)
        width = len(rows[0])
        if {width}.issuperset(map(len, rows)):
            return np.fromiter(chain.from_iterable(rows), np.float64).reshape(len(rows), width) + 0.0
        k = next(k for k, row in enumerate(rows) if len(row) != width)
        raise Fault(f"expected {width} numbers, found {len(rows[k])}", k)

    return check


def _finite_row(value: Any) -> Sequence[float]:
    if type(value) is list and _PLAIN_NUMBERS.issuperset(map(type, value)) and all(map(math.isfinite, value)):
        return value  # nearly always: checked all at once
    return list_of(FINITE)(value)


_PLAIN_NUMBERS = frozenset((int, float))


# ------------------------------------------------------------------------------------------------ labels

CLASS_BITS = 64  # of an integer that is a class
CATEGORY_BITS = 200  # of one that is a category: identifiers can be long, and a file must hold them


def label(value: Any, bits: int = CATEGORY_BITS) -> Label:
    """Text, or a number that a file can hold: the label of a class or of a category."""
    plain = value.item() if isinstance(value, np.generic) else value
    if type(plain) not in (bool, int, float, str):
        raise expected("an integer, a number, a truth value or text", value)
    if isinstance(plain, int) and not -(2 ** (bits - 1)) <= plain < 2 ** (bits - 1):
        raise expected(f"an integer of at most {bits} bits", value)
    if isinstance(plain, float) and not math.isfinite(plain):
        raise expected("a finite number", value)
    return plain


def ascending_labels(labels: Sequence[Any], like: Any = None) -> list[Label]:
    """Labels of one kind, text or numbers (that of ``like``, if there is one), each above the one before."""
    if labels and _are_quickly_ascending(labels, like):
        return list(labels)
    checked: list[Label] = []
    for k, entry in enumerate(labels):
        with under(k):
            plain = label(entry)
        like = plain if like is None else like
        if isinstance(plain, str) is not isinstance(like, str):
            raise expected(f"{'text' if isinstance(like, str) else 'a number'} as {shown(like)}", plain, k)
        if checked and not checked[-1] < plain:  # type: ignore[operator]
            raise expected(f"labels that ascend, one above {shown(checked[-1])}", plain, k)
        checked.append(plain)
    return checked


def _are_quickly_ascending(labels: Sequence[Any], like: Any) -> bool:
    """Whether these are all text, or all moderate integers, that ascend: the usual case, checked quickly."""
    types = set(map(type, labels))
    if types not in ({str}, {int}) or not all(one < two for one, two in pairwise(labels)):
        return False
    moderate = types == {str} or (labels[0] > -(2**63) and labels[-1] < 2**63)
    return moderate and (like is None or isinstance(like, str) is (types == {str}))


def check_labels(kept: Sequence[Any], rare: Sequence[Any]) -> None:
    """Check the labels of a feature: of one kind, ascending, none twice, and not too many."""
    if not kept and not rare:
        raise expected("at least one label", kept, "kept")
    like = None
    for part, labels in (("kept", kept), ("rare", rare)):
        with under(part):
            checked = ascending_labels(labels, like)
        like = checked[0] if checked and like is None else like
    both = set(kept).intersection(rare)
    if both:
        k = next(k for k, entry in enumerate(rare) if entry in both)
        raise expected("a label that is not kept", rare[k], "rare", k)
    most = MAX_CODES - bool(rare)
    if len(kept) > most:
        raise Fault(f"expected at most {most} labels, found {len(kept)}", "kept")


def class_labels(what: str, least: int, most: float = math.inf) -> Kind:
    """Labels of classes: of one type, and all different."""

    def check(value: Any) -> tuple[Label, ...]:
        listed = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
        if not listed or not least <= len(value) <= most:
            raise expected(what, value)
        labels = list_of(lambda entry: label(entry, CLASS_BITS))(list(value))
        for k, entry in enumerate(labels):
            if type(entry) is not type(labels[0]):
                raise expected(f"a label of the same type as {shown(labels[0])}", entry, k)
        _check_different(labels, "labels")
        return labels

    return check


def distinct_names(value: Any) -> tuple[str, ...] | None:
    """The names of all features, which differ; None where a table has none."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise expected("a list of names", value)
    names: tuple[str, ...] = list_of(text)(list(value))
    _check_different(names, "names")
    return names


def _check_different(values: Sequence[Any], what: str) -> None:
    if len(set(values)) < len(values):
        first: dict[Any, int] = {}
        k = next(k for k, value in enumerate(values) if first.setdefault(value, k) < k)
        raise expected(f"{what} that differ", values[k], k)


# ------------------------------------------------------------------------------------------------ records


@dataclass(frozen=True)
class Field:
    """How one field of a record is checked, and how JSON holds it: by default as it is, tuples as lists."""

    check: Kind | None
    read: Kind | None = None
    write: Kind = lambda value: list(value) if isinstance(value, tuple) else value


def form(check: Kind | None, read: Kind | None = None, write: Kind = Field.write) -> dict[str, Field]:
    """The form of a field, as metadata of it; without a check, the record itself has one."""
    return {"form": Field(check, read, write)}


@cache
def form_of(record: type[Record]) -> dict[str, Field]:
    """The form of every field of a record."""
    return {entry.name: entry.metadata["form"] for entry in dataclass_fields(record)}


class Record:
    """A frozen dataclass whose fields have a stated form.

    Fields are checked in their order, then :meth:`_check` has the rules between them.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __post_init__(self) -> None:
        for name, field in form_of(type(self)).items():
            if field.check is not None:
                value = getattr(self, name)
                try:
                    checked = field.check(value)
                except Fault as fault:
                    raise fault.under(name) from None
                if checked is not value:
                    object.__setattr__(self, name, checked)
        self._check()

    def _check(self) -> None:
        """Raise the first fault between fields."""

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """The record in a JSON object; a ValueError starts with the path of the first fault."""
        return cls(**read_object(document, {name: field.read for name, field in form_of(cls).items()}))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; :meth:`from_dict` is the way back."""
        return {name: field.write(getattr(self, name)) for name, field in form_of(type(self)).items()}


def records(kind: type[Record], article_and_name: str) -> dict[str, Field]:
    """A list of records: "a term" is the article and name of one."""
    name = article_and_name.split(" ", 1)[1]

    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, tuple | list):
            raise expected(f"a list of {name}s", value)
        for k, entry in enumerate(value):
            if not isinstance(entry, kind):
                raise expected(article_and_name, entry, k)
        return tuple(value)

    return form(check, list_of(kind.from_dict), lambda value: [entry.to_dict() for entry in value])

"""Values of options: what is accepted, the sentence for what is not, and how a value is written in a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

#: a space at which no line of help ends
UNBROKEN = "\xa0"
#: of whole numbers: what counts threads, terms and candidates has 32 bits
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Number:
    """Reads a number. ``wanted``: what is expected, in words."""

    wanted: str
    accept: Callable[[float], bool]
    kind: type[int] | type[float] = float

    def __call__(self, text: str) -> Any:
        wanted = self.wanted
        try:
            value = self.kind(text)
            if self.kind is int and value > LARGEST:
                wanted = f"a whole number of at most {LARGEST}"
                raise ValueError
            if "_" not in text and math.isfinite(value) and self.accept(value):
                return value
        except (ValueError, OverflowError):
            pass
        raise unexpected(wanted, text)


def unexpected(wanted: str, text: str) -> ValueError:
    return ValueError(f"expected {wanted}, got {text!r}")


whole = Number("a whole number of at least 1", lambda n: n >= 1, int)
folds = Number("a whole number of at least 2", lambda n: n >= 2, int)
count = Number("a whole number of at least 0", lambda n: n >= 0, int)
bins = Number("a whole number from 2 to 255", lambda n: 2 <= n <= 255, int)
bits = Number("a whole number from 1 to 16", lambda n: 1 <= n <= 16, int)
amount = Number("a number of at least 0", lambda x: x >= 0)
positive = Number("a number above 0", lambda x: x > 0)
fraction = Number("a fraction of at least 0 and below 1", lambda x: 0 <= x < 1)
share = Number("a fraction above 0 and below 1", lambda x: 0 < x < 1)
real = Number("a number", lambda x: True)


def threshold(text: str) -> Any:
    """A probability, or the words of a rule."""
    from cardboost.model.operating_point import Rule

    try:
        value: Any = float(text)
    except ValueError:
        value = text.strip()
    try:
        Rule.of(value)
    except ValueError:
        wanted = "a probability, recall>=0.95, precision>=0.8, fpr<=0.01 or fp=1,fn=20"
        raise unexpected(wanted, text) from None
    return value


class Value(click.ParamType):
    """The type of an option: ``read`` makes a value of text, and its ValueError is the sentence.

    Parameters
    ----------
    read : callable
        From text to the value.
    metavar : str
        What help calls the value.
    words : sequence of str
        Words that can be completed.
    show : callable, optional
        From the value back to what a configuration file holds: text, a number or a list of these.
    """

    def __init__(
        self,
        read: Callable[[str], Any],
        metavar: str,
        words: Sequence[str] = (),
        show: Callable[[Any], Any] | None = None,
    ) -> None:
        self.read, self.name, self.words, self.show = (
            read,
            metavar,
            tuple(words),
            show or (lambda value: value),
        )
        self.lists = False  # whether a configuration file has a list for each value

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return self.read(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in self.words if word.startswith(incomplete)]


class PathText(click.ParamType):
    """A path, which nobody looks at yet. ``kind``: what a shell completes it with, "file" or "dir"."""

    def __init__(self, metavar: str, kind: str = "file") -> None:
        self.name, self.kind = metavar, kind

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=self.kind)]


def number(check: Number, metavar: str | None = None, *words: str) -> Value:
    """A number, or one of a few words: "none" reads as None."""
    metavar = metavar or ("N" if check.kind is int else "X")

    def read(text: str) -> Any:
        if text.lower() in words:
            return None if text.lower() == "none" else text.lower()
        return either(text)

    either = Number(", or ".join((check.wanted, *words)), check.accept, check.kind)
    return Value(read, metavar, words, lambda value: "none" if value is None else value)


def choice(*names: str) -> Value:
    """One of these words."""

    def read(text: str) -> str:
        if text not in names:
            raise unexpected(f"{', '.join(names[:-1])} or {names[-1]}", text)
        return text

    return Value(read, "NAME", names)


def text(metavar: str) -> Value:
    """Anything."""
    return Value(str, metavar)


def pair(check: Callable[[str], Any], metavar: str, example: str) -> Value:
    """``NAME=VALUE``, read as a name and a value; the last = separates them."""

    def read(text: str) -> tuple[str, Any]:
        name, mark, value = text.rpartition("=")
        if not mark:
            raise unexpected(f"{metavar} as in {example}", text)
        return name, check(value)

    return Value(read, metavar)


def direction(text: str) -> str:
    if text not in ("increasing", "decreasing"):
        raise unexpected("increasing or decreasing", text)
    return text


def cuts(text: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(real(part.strip())) for part in text.split(",")] if text.strip() else []
    except ValueError:
        raise unexpected("numbers with commas between them, as in age=25,40,60", text) from None


def group(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name.strip() for name in text.split(","))


#: where missing values are in a term
MISSING = ("learn", "worst", "best")


def side(text: str) -> str:
    if text not in MISSING:
        raise unexpected(f"{', '.join(MISSING[:-1])} or {MISSING[-1]}, or COLUMN=WORD as in age=worst", text)
    return text


def missing(text: str) -> tuple[str, str] | str:
    """A word for all columns, or a column and its word."""
    name, mark, word = text.rpartition("=")
    return (name, side(word)) if mark else side(text)


#: what can be made of a date
DATE_PARTS = ("year", "month", "day", "weekday", "hour", "age")


def date_column(text: str) -> tuple[str, tuple[str, ...]]:
    """``COLUMN`` or ``COLUMN=year,month``: the name and the parts, none where none are named."""
    name, mark, listed = text.rpartition("=")
    if not mark:
        return text, ()
    parts = tuple(part.strip() for part in listed.split(",")) if listed else ()
    if not set(parts) <= set(DATE_PARTS):
        raise unexpected(
            f"a column and parts of a date ({', '.join(DATE_PARTS)}), as in opened=year,month", text
        )
    return name, parts


def class_weight(text: str) -> tuple[str, float] | str:
    """``balanced``, or a label and its factor."""
    if text == "balanced":
        return text
    label, mark, factor = text.rpartition("=")
    if not mark:
        raise unexpected("balanced, or LABEL=X as in yes=2", text)
    return label, float(amount(factor))


def sizes(text: str) -> tuple[int, ...]:
    """``1-20``, ``1,2,5`` or both: ``1-5,8,13``."""
    wanted = "ascending numbers of terms such as 1-20 or 1,2,5,10"
    size = Number(wanted, lambda n: 1 <= n <= 10_000, int)
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        try:
            ends = [size(end) for end in (low, high if dash else low)]
        except ValueError:
            raise unexpected(wanted, text) from None
        if ends[1] < ends[0] or (found and ends[0] <= found[-1]):
            raise unexpected(wanted, text)
        found += range(ends[0], ends[1] + 1)
    return tuple(found)


def point_range(text: str) -> tuple[int, int]:
    """``5`` is -5..5."""
    wanted = "a whole number from 1 to 10000, or two around 0 such as 0..5"
    low, dots, high = text.partition("..")
    if not dots:
        most = Number(wanted, lambda n: 1 <= n <= 10_000, int)(text)
        return -most, most
    end = Number(wanted, lambda n: abs(n) <= 10_000, int)
    try:
        ends = end(low), end(high)
    except ValueError:
        raise unexpected(wanted, text) from None
    if not ends[0] <= 0 <= ends[1] or ends[0] == ends[1]:
        raise unexpected(wanted, text)
    return ends


def one_character(text: str) -> str:
    """A character, or its name."""
    names = {
        "tab": "\t",
        "\\t": "\t",
        "comma": ",",
        "semicolon": ";",
        "pipe": "|",
        "point": ".",
        "space": " ",
    }
    named = names.get(text.lower(), text)
    if len(named) != 1 or named in '\r\n"':
        raise unexpected("one character or the word tab", text)
    return named

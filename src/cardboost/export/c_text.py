"""Words and numbers of a C file: identifiers, comments, literals, tables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import numpy as np

WIDTH = 100  # characters of a line
FLT_MAX = float(np.finfo(np.float32).max)
_LONGEST_WORD = 40  # of an identifier
_PREFIX = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*")


def check_prefix(prefix: Any) -> str:
    """Check the beginning of all names: a C identifier without underscores at its ends or two in a row."""
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix) or len(prefix) > 24:
        raise ValueError(
            "prefix: expected up to 24 letters, digits and single underscores, beginning with a letter, "
            f"found {prefix!r}."
        )
    return prefix


class Names:
    """Identifiers for constants: upper case, ASCII, none twice."""

    def __init__(self, prefix: str, taken: Iterable[str] = ()) -> None:
        self._prefix = prefix.upper()
        self._taken = {f"{self._prefix}_{name}" for name in taken}

    def new(self, *words: str) -> str:
        parts = [
            re.sub(r"[^A-Z0-9]+", "_", word.upper()).strip("_")[:_LONGEST_WORD].strip("_") for word in words
        ]
        stem = "_".join([self._prefix, *(part or "BLANK" for part in parts)])
        name, k = stem, 1
        while name in self._taken:
            k += 1
            name = f"{stem}_{k}"
        self._taken.add(name)
        return name


def safe(text: str) -> str:
    """Text for a comment: printable ASCII that ends no comment, begins none and is no trigraph."""
    plain = "".join(c if " " <= c <= "~" and c != "\\" else f"<U+{ord(c):04X}>" for c in text)
    return re.sub(r"(?<=[*/])(?=[*/])|(?<=\?)(?=\?)", " ", plain)


def quoted(value: Any) -> str:
    """A name or label in a comment, in full."""
    return safe(f'"{value}"' if isinstance(value, str) else repr(value))


def comment(lines: Sequence[str], indent: str = "") -> str:
    """A block comment of lines that are safe already."""
    room = WIDTH - len(indent) - 3
    wrapped: list[str] = []
    for line in lines:
        wrapped += textwrap.wrap(line, room, subsequent_indent="    ", break_on_hyphens=False) or [""]
    if len(wrapped) == 1 and len(wrapped[0]) < room - 3:
        return f"{indent}/* {safe(wrapped[0])} */"
    body = [f"{indent} * {line}".rstrip() for line in map(safe, wrapped)]
    return "\n".join([f"{indent}/*", *body, f"{indent} */"])


def float_literal(value: float) -> str:
    """A float32 with all its bits: an exact decimal, which needs no rounding anywhere, or hexadecimal."""
    decimal = repr(float(value))
    if Decimal(decimal) == Decimal(value):
        return f"{decimal}f"
    mantissa, exponent = float(value).hex().split("p")
    return f"{mantissa.rstrip('0') if '.' in mantissa else mantissa}p{exponent}f"


def int_literal(value: int) -> str:
    return "(-2147483647 - 1)" if value == -(2**31) else str(int(value))


def table(declaration: str, rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """A constant array in a function, one line or more per row, with a note on the row in front of it."""
    lines, inner = [f"    static const {declaration} = {{"], " " * 8
    for row, note in zip_longest(rows, notes, fillvalue=""):
        if row and note:
            lines.append(comment([note], inner))
        if row:
            cells = ", ".join(row) + ","
            lines += textwrap.wrap(
                cells, WIDTH, initial_indent=inner, subsequent_indent=inner, break_long_words=False
            )
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join([*lines, "    };"])

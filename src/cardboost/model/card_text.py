"""Numbers, labels and lines of a card."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Sequence

from cardboost.model.printable import printable

_LONGEST_LABEL = 48
_WIDEST = 18  # characters of a number that is written out
# words that mean something on a card: a label that is one of them stands in quotes
_RESERVED = frozenset({"", "missing", "unseen", "other", "any", "is"})


class Points:
    """Numbers with a sign, all in one format that suits the largest step.

    The steps are what a reader compares; the others (an intercept) take the same decimals, however large they
    are, so that all can be added up.
    """

    def __init__(self, steps: Sequence[float], others: Sequence[float] = ()) -> None:
        values = [*steps, *others]
        largest = max((abs(value) for value in steps), default=0.0) or max(map(abs, values), default=0.0)
        scale = math.floor(math.log10(largest)) if largest else 0
        decimals = max(0, 3 - max(scale - 2, 0)) if scale >= -1 else 2 - scale
        self._format = f"+.{decimals}f"
        if not -6 < scale < 12 or max(len(self.text(value)) for value in values) > _WIDEST:
            self._format = "+.3e"
        self.width = max((len(self.text(value)) for value in values), default=0)

    def text(self, value: float) -> str:
        """A number; those of a column go through ``show``, which aligns them."""
        text = format(value, self._format)
        return text if float(text) else text[1:]  # zero has no sign, nor has what rounds to it

    def show(self, value: float) -> str:
        return f"{self.text(value):>{self.width}}"


def number(value: float) -> str:
    """The shortest decimals that mean this number."""
    return repr(value).removesuffix(".0")


def bar(level: float, largest: float, half: int) -> str:
    size = round(half * (abs(level) / largest)) if largest else 0
    left, right = ("#" * size, "") if level < 0 else ("", "#" * size)
    return f"{left:>{half}}|{right}"


def class_names(classes: Sequence[object]) -> list[str]:
    """Labels of classes: text in quotes, long ones cut where that leaves them different."""
    return shortened([quoted(own) if isinstance(own, str) else printable(repr(own)) for own in classes])


def category_names(labels: Sequence[object]) -> list[str]:
    """Labels of categories: text as it is where that cannot be misread, in quotes elsewhere."""
    return shortened([_bare(own) if isinstance(own, str) else number_label(own) for own in labels])


def number_label(label: object) -> str:
    return number(label) if isinstance(label, float) else repr(label)


def _bare(label: str) -> str:
    plain = label.strip() == label and label.isprintable() and not set(label) & set(',"()')
    plain = plain and not label.lower().startswith("one of ")
    return label if plain and label.lower() not in _RESERVED else quoted(label)


def quoted(text: str) -> str:
    return '"' + printable(text).replace('"', '\\"') + '"'


def shortened(texts: Sequence[str]) -> list[str]:
    """Long texts without their middle; those that would then look like another one stay as they are."""
    tail = 12
    short = [
        text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 3 - tail]}...{text[-tail:]}"
        for text in texts
    ]
    seen = Counter(short)
    return [cut if seen[cut] == 1 else text for text, cut in zip(texts, short, strict=True)]


def pack(words: Sequence[str], indent: int, room: int) -> list[str]:
    """Words joined by spaces in lines of at most ``room`` characters, all but the first line indented.

    Words are broken only where they are longer than a line.
    """
    lines: list[str] = []
    line = ""
    for given in words:
        word = given
        while True:
            start = line + " " if line.strip() else line
            if len(start + word) <= room:
                line = start + word
                break
            if line.strip():
                lines.append(line)
                line = " " * indent
                continue
            most = room - len(line)
            space = word.rfind(" ", most // 2, most)
            at = space + 1 if space > 0 else most
            lines.append(line + word[:at])
            line, word = " " * indent, word[at:]
    return [*lines, line]


def paragraph(sentences: Sequence[str], width: int) -> list[str]:
    return [part for sentence in sentences for part in wrapped(sentence, 2, width)]


def wrapped(text: str, indent: int, width: int) -> list[str]:
    """Lines of at most ``width`` characters; those after the first are indented a little more."""
    text = " " * indent + printable(text)
    if len(text) <= width:
        return [text] if text.strip() else []
    return textwrap.wrap(text, width, subsequent_indent=" " * (indent + 2), break_on_hyphens=False)

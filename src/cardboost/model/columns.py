"""The columns of a table that a model uses, as numbers for the prediction kernel.

Columns that the model does not use must be there, and nothing else is asked of them: they are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import CategoricalColumn, Categories
from cardboost.data.exact import unmasked
from cardboost.data.table import Table, match_names, read_table

_TEXT = "OUST"  # kinds of arrays that can hold something else than numbers


@dataclass(frozen=True, eq=False)
class UsedColumns:
    """Per used feature its numbers, or the codes of its labels (NaN: missing, or not seen in training)."""

    values: dict[int, NDArray[Any]]
    n_rows: int


def read_columns(
    X: Any,
    names: Sequence[str] | None,
    n_features: int,
    used: Sequence[int],
    categories: Mapping[int, Categories],
) -> UsedColumns:
    """Read what a model with these features uses of X; refuse tables with other columns than the model's."""
    X = unmasked(X)
    array = isinstance(X, np.ndarray)
    frame = not array and hasattr(X, "columns") and hasattr(X, "__getitem__")
    text = array and X.dtype.kind in _TEXT
    if not (categories or frame or text or isinstance(X, Table)):  # only numbers: without detours
        table = read_table(X, only=used if array else None)
        match_names(names, n_features, table)
        return UsedColumns({j: table.columns[j] for j in used}, table.n_rows)
    indices: Sequence[int] = used
    if frame:
        match_names(names, n_features, _blank(X.columns))
        indices = range(len(used))
        labels = [index for index, j in enumerate(used) if j in categories]
        table = read_table(_Part(X, used), categorical=labels or None)
    else:
        if array and X.ndim == 2:
            match_names(names, n_features, _blank(range(X.shape[1])))  # before one of them is looked at
            X = _without(X, used) if text else X
        table = X if isinstance(X, Table) else read_table(X, categorical=sorted(categories) or None)
        match_names(names, n_features, table)
    values = {j: _numbers(table, index, categories.get(j)) for j, index in zip(used, indices, strict=True)}
    return UsedColumns(values, table.n_rows)


def _numbers(table: Table, index: int, categories: Categories | None) -> NDArray[Any]:
    column = table.columns[index]
    if isinstance(column, CategoricalColumn):
        if categories is None:
            raise ValueError(f"X: {table.label(index)} holds labels, but the model expects numbers there.")
        return column.encode(categories)
    if categories is not None:
        raise ValueError(f"X: {table.label(index)} holds numbers, but the model expects labels there.")
    return column


def _blank(names: Iterable[Any]) -> Table:
    """A table without rows, to compare its columns with those of the model."""
    names = tuple(names)
    if len(set(names)) < len(names):
        doubled = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has more than one column named {str(doubled)!r}.")
    text = all(isinstance(name, str) for name in names)
    return Table((np.empty(0),) * len(names), tuple(map(str, names)) if text else None, 0)


class _Part:
    """Some columns of a frame."""

    def __init__(self, frame: Any, positions: Sequence[int]) -> None:
        names = list(frame.columns)
        self.columns = [names[j] for j in positions]
        self.shape = (int(frame.shape[0]), len(self.columns))
        self._frame = frame

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, name: Any) -> Any:
        return self._frame[name]


def _without(X: NDArray[Any], used: Sequence[int]) -> NDArray[Any]:
    """A copy of text or objects with zeros in unused columns."""
    out = np.full(X.shape, 0.0 if X.dtype.kind == "O" else "0", dtype=X.dtype)
    out[:, list(used)] = X[:, list(used)]
    return out

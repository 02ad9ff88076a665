"""Tables as the user has them: arrays and frames become a list of columns, without a copy of the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import CategoricalColumn

_READABLE = {np.dtype(code) for code in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")}


@dataclass(frozen=True)
class Table:
    """Columns of equal length; missing numbers are NaN."""

    columns: tuple[Any, ...]  # arrays of numbers and categorical columns
    names: tuple[str, ...] | None
    n_rows: int

    @property
    def n_features(self) -> int:
        return len(self.columns)

    def label(self, j: int) -> str:
        """The name of a column for messages."""
        return f"column {self.names[j]!r}" if self.names is not None else f"column {j}"

    def take(self, rows: NDArray[Any]) -> Table:
        """The rows with a true mark (or of these numbers), as a copy."""
        columns = tuple(column[rows] for column in self.columns)
        return Table(columns, self.names, len(columns[0]) if columns else int(np.sum(rows)))

    def digest(self, positive: NDArray[np.bool_], weights: NDArray[np.float64] | None, threads: int) -> str:
        """Digest of the content, whatever the order of the rows (certificate/checker_data.py defines it)."""
        from cardboost import _kernels

        count = weight = None
        if weights is not None:
            if (
                (weights == np.rint(weights)).all()
                and float(weights.max()) < 2.0**53
                and math.fsum(weights / 2.0) < 2.0**52
            ):
                count = weights.astype(np.int64)
            else:
                weight = weights
        lanes = _kernels.digest_rows(list(self.columns), positive.astype(np.uint8), count, weight, threads)
        return "{:016x}{:016x}".format(*lanes)


def read_table(X: Any, *, what: str = "X", categorical: Sequence[int] | None = None) -> Table:
    """Columns and names of an array or a pandas / polars frame; those at ``categorical`` hold labels."""
    chosen = frozenset(categorical or ())
    if hasattr(X, "columns") and hasattr(X, "__getitem__") and not isinstance(X, np.ndarray):
        return _read_frame(X, what, chosen)
    if hasattr(X, "toarray"):
        raise TypeError(
            f"{what} is a sparse matrix; cardboost takes dense arrays and frames. Use X.toarray()."
        )
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{what} is not a table: its rows differ in length ({error}).") from error
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what} must hold real numbers.")
    if array.dtype.kind not in "fiub" and not (chosen and array.ndim == 2):
        array = _to_float(array, what)
    if array.ndim != 2:
        raise ValueError(
            f"{what} must have two dimensions (rows, features); found {array.ndim}. Expected 2D array, got "
            f"{'scalar' if array.ndim == 0 else f'{array.ndim}D'} array instead. Reshape your data with "
            "X.reshape(-1, 1) if it has a single feature or X.reshape(1, -1) if it is a single row."
        )
    if chosen:
        columns = [
            CategoricalColumn.of(array[:, j].tolist())
            if j in chosen
            else _readable(array[:, j] if array.dtype.kind in "fiub" else _to_float(array[:, j], what))
            for j in range(array.shape[1])
        ]
        return Table(tuple(columns), None, array.shape[0])
    return Table(tuple(_readable(array[:, j]) for j in range(array.shape[1])), None, array.shape[0])


def _read_frame(X: Any, what: str, categorical: frozenset[int]) -> Table:
    names = tuple(str(name) if isinstance(name, str) else name for name in X.columns)
    doubled = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    if doubled:
        raise ValueError(f"{what} has more than one column named {sorted(map(str, doubled))[0]!r}.")
    columns = [
        CategoricalColumn.of(list(X[name])) if j in categorical else _frame_column(X[name], str(name), what)
        for j, name in enumerate(names)
    ]
    text = all(isinstance(name, str) for name in names)
    return Table(tuple(columns), tuple(map(str, names)) if text else None, int(X.shape[0]))


def _frame_column(column: Any, name: str, what: str) -> NDArray[Any]:
    """One pandas or polars column as a NumPy array; missing entries become NaN."""
    try:
        if hasattr(column, "null_count"):  # polars
            numeric = column.dtype.is_numeric() or str(column.dtype) == "Boolean"
            if not numeric:
                raise TypeError
            values = column.cast(float).to_numpy() if column.null_count() else column.to_numpy()
        else:
            if str(column.dtype) in ("category", "str", "string") or column.dtype.kind in "MmSUc":
                raise TypeError
            if column.dtype.kind == "O" or not isinstance(column.dtype, np.dtype):
                values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                values = column.to_numpy()
        return _readable(np.asarray(values))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{what}: column {name!r} has type {column.dtype}, but only numbers and booleans are accepted. "
            "Categories are not available yet: encode them as numbers first."
        ) from error


def _to_float(array: NDArray[Any], what: str) -> NDArray[np.float64]:
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what} holds entries that are not numbers: {error}.") from error


def _readable(column: NDArray[Any]) -> NDArray[Any]:
    """A view that the kernels can read, or a converted copy of this one column."""
    native = column.dtype.isnative and column.dtype in _READABLE
    if not native or (column.strides and column.strides[0] % column.dtype.itemsize):
        column = column.astype(np.float64)
    return column.view(np.uint8) if column.dtype == np.bool_ else column


def check_rows(table: Table, *, least: int = 1, what: str = "X") -> None:
    """Refuse tables without rows or columns."""
    if table.n_features == 0:
        raise ValueError(
            f"{what} has 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required."
        )
    if table.n_rows < least:
        raise ValueError(f"{what} has {table.n_rows} sample(s) while a minimum of {least} is required.")


def match_names(seen: Sequence[str] | None, n_features: int, table: Table, who: str = "the model") -> None:
    """Refuse a table whose columns are not those of the fit."""
    if table.n_features != n_features and (seen is None or table.names is None):
        raise ValueError(
            f"X has {table.n_features} features, but {who} is expecting {n_features} features as input."
        )
    if seen is None or table.names is None:
        return
    if list(table.names) != list(seen):
        missing = [name for name in seen if name not in table.names]
        unknown = [name for name in table.names if name not in seen]
        detail = "; ".join(
            f"{label}: {', '.join(names[:5])}"
            for label, names in (("missing", missing), ("not seen at fit", unknown))
            if names
        )
        raise ValueError(
            "The feature names should match those that were passed during fit, in the same order. "
            + (detail or "The same names stand in another order")
            + "."
        )

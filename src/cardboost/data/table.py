"""Tables as users have them: arrays and frames become a list of columns, without a copy of the numbers."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import CategoricalColumn, Categories, shown
from cardboost.data.columns import Mode, read_column, readable
from cardboost.data.exact import frame_columns, require_exact_columns, unmasked

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_BLOCK_BYTES = 2**28  # of a frame that may be copied to be read at once


@dataclass(frozen=True)
class Table:
    """Columns of equal length: arrays of numbers, where NaN is missing, or :class:`CategoricalColumn`."""

    columns: tuple[Any, ...]
    names: tuple[str, ...] | None
    n_rows: int

    @property
    def n_features(self) -> int:
        return len(self.columns)

    @property
    def categorical(self) -> tuple[int, ...]:
        """The positions of the categorical columns."""
        return tuple(j for j, column in enumerate(self.columns) if isinstance(column, CategoricalColumn))

    def label(self, j: int) -> str:
        """The name of a column for messages."""
        return f"column {self.names[j]!r}" if self.names is not None else f"column {j}"

    def take(self, rows: NDArray[Any]) -> Table:
        """The rows with a true mark (or of these numbers), as a copy; labels that no row has are gone."""
        n_rows = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        columns = tuple(
            column.take(rows) if isinstance(column, CategoricalColumn) else column[rows]
            for column in self.columns
        )
        return Table(columns, self.names, n_rows)

    def encoded(self, j: int, categories: Categories | None) -> NDArray[Any]:
        """A column as a model reads it: numbers as they are, labels as its codes (NaN: missing or unseen)."""
        column = self.columns[j]
        if categories is None:
            if isinstance(column, CategoricalColumn):
                raise ValueError(f"X holds categories in {self.label(j)}, where the model expects numbers.")
            return column
        if not isinstance(column, CategoricalColumn):
            column = CategoricalColumn.from_numbers(column, f"X: {self.label(j)}")
        examples = (*categories.kept[:1], *categories.rare[:1])
        if examples and column.labels and isinstance(examples[0], str) != column.is_text:
            kinds = ("text", "numbers") if column.is_text else ("numbers", "text")
            raise ValueError(
                f"X: {self.label(j)} holds {kinds[0]} ({shown(column.labels[0])}), but the categories of the "
                f"model are {kinds[1]} ({shown(examples[0])})."
            )
        return column.encode(categories)

    def digest(
        self,
        positive: NDArray[np.bool_] | None,
        weights: NDArray[np.float64] | None,
        threads: int,
        target: NDArray[np.float64] | None = None,
    ) -> str:
        """Digest of the content, whatever the order of the rows (certificate/checker/data.py defines it).

        A categorical column is hashed as the numbers of :meth:`CategoricalColumn.digest_values`.

        Parameters
        ----------
        positive : ndarray of bool or None
            Which rows are positive; None for a regression.
        weights : ndarray or None
            Raw weights of the rows.
        threads : int
            How many threads to use.
        target : ndarray, optional
            Targets of a regression, hashed as one more column after the last feature.

        Returns
        -------
        str
            32 hexadecimal digits.
        """
        from cardboost import _kernels

        count = weight = None
        if weights is not None:
            whole = (weights == np.rint(weights)).all() and float(weights.max()) < 2.0**53
            if whole and math.fsum(weights / 2.0) < 2.0**52:
                count = weights.astype(np.int64)
            else:
                weight = weights
        columns = [
            column.digest_values() if isinstance(column, CategoricalColumn) else column
            for column in self.columns
        ]
        if target is not None:
            columns.append(np.asarray(target, dtype=np.float64))
        word = np.ones(self.n_rows, dtype=np.uint8) if positive is None else positive.astype(np.uint8)
        lanes = _kernels.digest_rows(columns, word, count, weight, threads)
        return "{:016x}{:016x}".format(*lanes)


# ------------------------------------------------------------------------------------------------ reading


def read_table(
    X: Any, *, what: str = "X", categorical: Any = None, only: Collection[int] | None = None
) -> Table:
    """Read the columns and names of an array, a pandas or polars frame, or an Arrow table.

    Parameters
    ----------
    X : array-like or frame
        The table.
    what : str
        Its name in messages.
    categorical : None, "from_dtype", mask, list of names or list of positions
        Which columns hold categories. None: none of them, and text is refused. "from_dtype": columns of text
        and those of the frame's type for categories. Otherwise the columns listed, whatever they hold
        (numbers are labels too); other text is refused.
    only : collection of int, optional
        Positions of the columns to read. The others must exist, but may hold anything and are read as
        missing.

    Returns
    -------
    Table
    """
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise TypeError(f"{what} is a {type(X).__name__}, whose rows are not there yet: collect them first.")
    X, texts = unmasked(X), None
    if (names := frame_columns(X)) is not None:
        if len(set(names)) < len(names):
            doubled = sorted({str(name) for name in names if names.count(name) > 1})
            raise ValueError(f"{what} has more than one column named {doubled[0]!r}.")
        if all(isinstance(name, str) for name in names):
            texts = tuple(map(str, names))
    else:
        X = _array(X, what, categorical, only)
    n_features = X.shape[1] if names is None else len(names)
    modes = _modes(categorical, texts, n_features, what)
    if names is None and X.dtype.kind in "fiub" and "categories" not in modes:
        require_exact_columns(X, what, only)
        return Table(tuple(map(readable, X.T)), None, len(X))
    if names is not None and "categories" not in modes and (block := _float_block(X)) is not None:
        return Table(tuple(block.T), texts, len(block))
    absent = np.broadcast_to(np.float64(math.nan), (int(X.shape[0]),))
    columns: list[Any] = [absent] * n_features
    for j in range(n_features) if only is None else set(only) & set(range(n_features)):
        column, name = (X[:, j], j) if names is None else (X[names[j]], repr(str(names[j])))
        columns[j] = read_column(column, modes[j], f"{what}: column {name}")
    return Table(tuple(columns), texts, len(absent))


def _array(X: Any, what: str, categorical: Any, only: Collection[int] | None) -> NDArray[Any]:
    """Anything but a frame as an array of two dimensions."""
    if hasattr(X, "toarray"):
        raise TypeError(
            f"{what} is a sparse matrix; cardboost takes dense arrays and frames. Use X.toarray()."
        )
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{what} is not a table: its rows differ in length ({error}).") from error
    if array.dtype.kind in ("fO" if categorical is None else "f"):
        require_exact_columns(X if isinstance(X, list | tuple) else array, what, only)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what} must hold real numbers.")
    if array.dtype.kind not in "fiubMm" and categorical is None and only is None:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{what} holds entries that are not numbers: {error}.") from error
    if array.ndim != 2:
        raise ValueError(
            f"{what} must have two dimensions (rows, features); found {array.ndim}. Expected 2D array, got "
            f"{'scalar' if array.ndim == 0 else f'{array.ndim}D'} array instead. Reshape your data with "
            "X.reshape(-1, 1) if it has a single feature or X.reshape(1, -1) if it is a single row."
        )
    return array


def _float_block(X: Any) -> NDArray[Any] | None:
    """The numbers of a frame of floats alone, as one array; None for any other table, or a large one.

    Thousands of columns take longer to read one by one than all their numbers. Of a frame that does not hold
    them in one array this is a copy.
    """
    kinds = set(X.dtypes) if hasattr(X, "dtypes") and hasattr(X, "to_numpy") else set()
    if len(kinds) != 1 or X.shape[0] * X.shape[1] * 8 > _BLOCK_BYTES:
        return None
    kind = kinds.pop()
    polars = hasattr(X, "null_count") and str(kind) in ("Float32", "Float64")  # its nulls become NaN
    return np.asarray(X.to_numpy()) if polars or kind in _FLOATS else None


# ------------------------------------------------------------------------------------------------ which ones

_ACCEPTED = "accepted are 'from_dtype', None, a mask, a list of names and a list of positions"


def _modes(categorical: Any, names: tuple[str, ...] | None, n: int, what: str) -> list[Mode]:
    """How every column is to be read."""
    if categorical is None:
        return ["numbers"] * n
    if isinstance(categorical, str):
        if categorical == "from_dtype":
            return ["from_dtype"] * n
        hint = f" (one name goes into a list: [{categorical!r}])" if categorical in (names or ()) else ""
        raise ValueError(f"categorical_features={categorical!r} is not understood{hint}: {_ACCEPTED}.")
    try:
        entries = list(categorical.tolist() if hasattr(categorical, "tolist") else categorical)
    except TypeError:
        raise TypeError(f"categorical_features={categorical!r} is not understood: {_ACCEPTED}.") from None
    chosen = _positions(entries, names, n, what)
    return ["categories" if j in chosen else "strict" for j in range(n)]


def _positions(entries: list[Any], names: tuple[str, ...] | None, n: int, what: str) -> set[int]:
    """The positions that a mask, names or positions stand for."""
    kinds = [_kind(entry) for entry in entries]
    for entry, kind in zip(entries, kinds, strict=True):
        if kind is None:
            raise ValueError(f"categorical_features holds {shown(entry)}: {_ACCEPTED}.")
        if kind != kinds[0]:
            raise ValueError(
                f"categorical_features mixes {kinds[0]} and {kind} ({shown(entries[0])} and {shown(entry)}): "
                f"{_ACCEPTED}."
            )
    if not entries:
        return set()
    if kinds[0] == "truth values":
        if len(entries) != n:
            raise ValueError(
                f"categorical_features is a mask of {len(entries)} entries, but {what} has {n} features."
            )
        return set(np.flatnonzero(entries).tolist())
    if kinds[0] == "positions":
        beyond = [int(entry) for entry in entries if not 0 <= entry < n]
        if beyond:
            raise ValueError(
                f"categorical_features holds the position {beyond[0]}, but {what} has {n} features: "
                f"positions go from 0 to {n - 1}."
            )
        return {int(entry) for entry in entries}
    if names is None:
        raise ValueError(
            f"categorical_features names the column {shown(entries[0])}, but {what} has no column names: "
            "give positions or a mask."
        )
    position_of = {name: j for j, name in enumerate(names)}
    for entry in entries:
        if entry not in position_of:
            hint = f"the first columns are {', '.join(names[:5])}."
            for close in difflib.get_close_matches(entry, names, n=1, cutoff=0.5):
                hint = f"did you mean {close!r}?"
            raise ValueError(
                f"categorical_features names the column {entry!r}, which {what} does not have: {hint}"
            )
    return {position_of[entry] for entry in entries}


def _kind(entry: Any) -> str | None:
    if isinstance(entry, str):
        return "names"
    if isinstance(entry, bool | np.bool_):
        return "truth values"
    return "positions" if isinstance(entry, int | np.integer) else None


# ------------------------------------------------------------------------------------------------ checks


def check_rows(table: Table, *, least: int = 1, what: str = "X") -> None:
    """Refuse tables without rows or columns."""
    if table.n_features == 0:
        raise ValueError(
            f"{what} has 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required."
        )
    if table.n_rows < least:
        raise ValueError(f"{what} has {table.n_rows} sample(s) while a minimum of {least} is required.")


def check_finite(table: Table, threads: int, *, what: str = "X") -> None:
    """Refuse tables with an infinite number."""
    from cardboost import _kernels

    numeric = [j for j, column in enumerate(table.columns) if not isinstance(column, CategoricalColumn)]
    infinite = _kernels.find_infinite([table.columns[j] for j in numeric], threads)
    if infinite >= 0:
        raise infinity_fault(what, table.label(numeric[infinite]))


def infinity_fault(what: str, column: str) -> ValueError:
    """What to raise for an infinite number."""
    return ValueError(
        f"{what} contains infinity in {column}: only finite numbers and missing values (NaN) are accepted."
    )


def match_names(seen: Sequence[str] | None, n_features: int, table: Table, who: str = "the model") -> None:
    """Refuse a table whose columns are not those of the fit."""
    names = table.names
    if seen is None or names is None:
        if table.n_features != n_features:
            raise ValueError(
                f"X has {table.n_features} features, but {who} is expecting {n_features} features as input."
            )
    elif list(names) != list(seen):
        missing = [name for name in seen if name not in names]
        unknown = [name for name in names if name not in seen]
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

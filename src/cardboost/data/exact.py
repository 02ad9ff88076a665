"""What conversion to float64 would lose: masks, and the last digits of large whole numbers.

A float64 holds every whole number up to 2^53, and above only some: an identifier of 17 digits may become its
neighbour. Such numbers are refused; those that a float64 holds exactly, such as 2^60, are accepted.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIMIT = 2**53  # up to here a float64 holds every whole number
UNIT_BITS = 36  # of a unit of points: 14 more for its multiples, and 3 to spare, are the 53 of a double


def unmasked(X: Any) -> Any:
    """Masked entries of a masked array as missing ones: NaN, or None among objects and text."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    data, mask = np.ma.getdata(X), np.ma.getmaskarray(X)
    if not mask.any():
        return data
    dtype: Any = object
    if data.dtype.kind == "f":
        dtype = data.dtype
    elif data.dtype.kind in "iub" and not _rounded(data[~mask]):
        dtype = np.float64
    filled = data.astype(dtype)
    filled[mask] = None if filled.dtype == object else np.nan
    return filled


def frame_columns(X: Any) -> list[Any] | None:
    """The names of the columns of a pandas or polars frame or an Arrow table; None for anything else."""
    names = X.column_names if hasattr(X, "itercolumns") else getattr(X, "columns", None)
    return None if names is None or not hasattr(X, "__getitem__") else list(names)


def refuse_mask(values: Any, what: str) -> None:
    """Refuse masked entries where every row must have a value."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise ValueError(f"{what} holds masked entries: every row needs a value there.")


def require_exact(values: Any, where: str) -> None:
    """Refuse whole numbers that a float64 would round: in arrays, lists, and columns of frames."""
    for number in _rounded(values):
        raise ValueError(
            f"{where} holds the whole number {number}, which a float64 would round to {int(float(number))}: "
            "shift or scale such numbers, or make them categories if they are names."
        )


def require_exact_columns(X: Any, what: str, only: Collection[int] | None = None) -> None:
    """The same for the columns of a table of any kind; ``only``: the positions of those that count."""
    names = frame_columns(X)
    if names is not None:
        for name in names:
            require_exact(X[name], f"{what}: column {str(name)!r}")
        return
    if hasattr(X, "tocsc") and hasattr(X, "data"):
        require_exact(X.data, what)
        return
    if not _rounded(X):
        return
    array = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if array.ndim != 2:
        require_exact(array, what)
        return
    for j in range(array.shape[1]) if only is None else only:
        require_exact(array[:, j], f"{what}: column {j}")


def _rounded(values: Any) -> list[int]:
    """The first whole number that a float64 would round, if there is one."""
    if not isinstance(values, np.ndarray):
        values = _whole_numbers(values)
    cells = values.ravel() if values.dtype.kind == "O" else np.empty(0)
    wide = values.dtype.kind in "iu" and values.dtype.itemsize == 8
    if wide and (values.min(initial=0) < -LIMIT or values.max(initial=0) > LIMIT):
        cells = values[(values < -LIMIT) | (values > LIMIT)]
    whole = (int(cell) for cell in cells if isinstance(cell, int | np.integer))
    return list(islice(filter(_rounds, whole), 1))


def _rounds(number: int) -> bool:
    """Whether a float64 would change a whole number."""
    try:
        return abs(number) > LIMIT and int(float(number)) != number
    except OverflowError:
        return False  # said elsewhere


def _whole_numbers(values: Any) -> NDArray[Any]:
    """Where the values of a list or a column of a frame can be whole numbers above 2^53: these, else none."""
    none = np.empty(0)
    if isinstance(values, list | tuple):
        try:
            read = np.asarray(values)
        except ValueError:
            return none  # rows of different lengths: said elsewhere
        large = read.dtype.kind == "f" and bool((np.abs(read) >= LIMIT).any())
        return np.array(values, dtype=object) if large else read
    dtype: Any = values.dtype if hasattr(values, "dtype") else getattr(values, "type", None)
    name = str(dtype).lower()
    if not name.startswith(("int64", "uint64", "int128", "uint128", "object")):
        return none
    if isinstance(dtype, np.dtype):
        return np.asarray(values)
    methods = ("drop_nulls", "drop_null", "dropna")  # of polars, Arrow and pandas
    present = next(getattr(values, method) for method in methods if hasattr(values, method))()
    if name.startswith("object") or "128" in name:
        return np.array(present.to_list(), dtype=object)
    return np.asarray(present, dtype=np.uint64 if name[0] == "u" else np.int64)


def short_unit(value: float) -> float:
    """The largest number of few significant bits not above a positive value.

    Sums of up to 2**14 of its multiples are exact, so a model in such units gives the same score in any order
    of its terms, and every export decides alike, also where points cancel out.
    """
    fraction, exponent = math.frexp(value)
    return math.ldexp(math.floor(math.ldexp(fraction, UNIT_BITS)), exponent - UNIT_BITS)


def on_grid(value: float, unit: float) -> float:
    """The multiple of the last bit of a short unit next to a value, towards 0.

    A value of too many units is returned as it is.
    """
    if abs(value) >= 2**14 * unit:
        return value
    last_bit = math.ldexp(1.0, math.frexp(unit)[1] - UNIT_BITS)
    return math.trunc(value / last_bit) * last_bit

"""One column of an array or a frame, as numbers or as categories.

Frame libraries are never imported: a column is recognised by its attributes, and its own methods find its
distinct values, so that text is as fast as in that library.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import (
    NUMBERS,
    CategoricalColumn,
    dates_fault,
    is_missing,
    mixed_fault,
    shown,
    wrong_entry,
)
from cardboost.data.exact import require_exact

#: numbers: text that reads as numbers is taken, other text refused; strict: all text is refused;
#: from_dtype: the type of the column decides; categories: whatever it holds are labels
Mode = Literal["numbers", "strict", "from_dtype", "categories"]

_READABLE = {np.dtype(code) for code in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")}
_TEXT = ("str", "string", "large_string", "string_view")
_TIMES = ("date", "time", "duration", "period", "month_day")


def read_column(column: Any, mode: Mode, where: str) -> NDArray[Any] | CategoricalColumn:
    """Numbers that the kernels can read (missing: NaN), or categories. ``where`` names it in messages."""
    if mode != "categories":
        require_exact(column, where)
    if isinstance(column, np.ndarray):
        return _from_array(column, mode, where)
    if hasattr(column, "null_count") and hasattr(column, "dtype"):
        return _from_polars(column, mode, where)
    if hasattr(column, "null_count") and hasattr(column, "type"):
        return _from_arrow(column, mode, where)
    return _from_pandas(column, mode, where)


def readable(column: NDArray[Any]) -> NDArray[Any]:
    """A view that the kernels can read, or a converted copy of this one column."""
    native = column.dtype.isnative and column.dtype in _READABLE
    if not native or (column.strides and column.strides[0] % column.dtype.itemsize):
        column = column.astype(np.float64)
    return column.view(np.uint8) if column.dtype == np.bool_ else column


# ------------------------------------------------------------------------------------------------ arrays


def _from_array(values: NDArray[Any], mode: Mode, where: str) -> NDArray[Any] | CategoricalColumn:
    kind = values.dtype.kind
    if kind in "fiub":
        if mode == "categories":
            return CategoricalColumn.from_numbers(_exact(values), where)
        return readable(values)
    if kind == "O":
        return _from_objects(values, mode, where)
    if kind in "UST":
        return _from_texts(values, mode, where)
    if kind in "Mm":
        raise dates_fault(where, f"type {values.dtype}")
    if kind == "c":
        raise ValueError(f"Complex data not supported: {where} must hold real numbers.")
    raise _type_fault(values.dtype, where)


def _exact(values: NDArray[Any]) -> NDArray[Any]:
    """In a type that Python's numbers hold exactly: floats of other sizes as float64."""
    return values if values.dtype in _READABLE and values.dtype.isnative else values.astype(np.float64)


def _from_texts(values: NDArray[Any], mode: Mode, where: str) -> NDArray[Any] | CategoricalColumn:
    """An array of text: numbers if all of them read as numbers and labels are not required."""
    if mode != "categories":
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError):
            pass
    if values.dtype.kind == "S":
        try:
            values = np.strings.decode(values, "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{where} holds bytes that are not text in UTF-8 ({error}).") from None
    cells = values.tolist()
    if mode in ("numbers", "strict"):
        raise _text_fault(where, _first_refused(float, cells))
    return _coded(cells, where)


def _first_refused(function: Callable[[Any], Any], cells: list[Any]) -> Any:
    """The first cell for which a function raises an error."""
    for cell in cells:
        try:
            function(cell)
        except (TypeError, ValueError):
            return cell
    return cells[0]


def _from_objects(
    values: NDArray[Any], mode: Mode, where: str, factorize: Callable[[], tuple[Any, Any]] | None = None
) -> NDArray[Any] | CategoricalColumn:
    """Python objects: text, or numbers, and missing values among either.

    ``factorize`` is the method of the frame that finds codes and distinct values.
    """
    cells = values.tolist()
    if mode == "categories":
        return _coded(cells, where, factorize)
    if mode == "numbers":
        try:
            return _floats(values)
        except (TypeError, ValueError, OverflowError):
            pass
    first = next((cell for cell in cells if not is_missing(cell)), None)
    if isinstance(first, str) and mode == "from_dtype":
        return _coded(cells, where, factorize)
    _require_numbers(cells, where)
    try:
        return _floats(values)
    except OverflowError:
        raise ValueError(f"{where} holds a whole number that is too large for a float64.") from None


def _require_numbers(cells: list[Any], where: str) -> None:
    """Refuse anything but numbers and missing values, naming the first entry that is neither."""
    kinds = set(map(type, cells))
    odd = tuple(kind for kind in kinds if not issubclass(kind, NUMBERS) and kind is not type(None))
    if not odd:
        return
    number = next((cell for cell in cells if isinstance(cell, NUMBERS) and not is_missing(cell)), None)
    for cell in cells:
        if isinstance(cell, odd) and not is_missing(cell):
            if isinstance(cell, str):
                raise _text_fault(where, cell) if number is None else mixed_fault(where, cell, number)
            raise wrong_entry(cell, where)


def _floats(values: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return values.astype(np.float64)
    except TypeError:  # None reads as NaN, what pandas has for missing values does not
        return _objects([None if is_missing(cell) else cell for cell in values.tolist()]).astype(np.float64)


def _coded(
    cells: list[Any], where: str, factorize: Callable[[], tuple[Any, Any]] | None = None
) -> CategoricalColumn:
    """Python objects as labels, in one pass."""
    distinct: Any = defaultdict(count().__next__)  # their codes
    try:
        if factorize is None:
            codes = np.fromiter(map(distinct.__getitem__, cells), dtype=np.int32, count=len(cells))
        else:
            codes, distinct = factorize()
    except TypeError:
        raise wrong_entry(_first_refused(hash, cells), where) from None
    return CategoricalColumn.make(distinct, codes, where)


# ------------------------------------------------------------------------------------------------ frames


def _from_pandas(column: Any, mode: Mode, where: str) -> NDArray[Any] | CategoricalColumn:
    """A column of a pandas frame, or of one that offers the same."""
    dtype, name = column.dtype, str(column.dtype)
    if name == "category":
        _refuse_categories(name, mode, where)
        categories = column.cat.categories
        values = categories.tolist() if hasattr(categories, "tolist") else categories
        return CategoricalColumn.make(values, np.asarray(column.cat.codes), where, as_text=True)
    if isinstance(dtype, np.dtype):
        if dtype.kind == "O":
            return _from_objects(column.to_numpy(), mode, where, getattr(column, "factorize", None))
        return _from_array(column.to_numpy(), mode, where)
    first = name.replace("<", "[").partition("[")[0].rstrip("0123456789")
    if dtype.kind in "Mm" or first in _TIMES:
        raise dates_fault(where, f"type {name}")
    if first == "dictionary":
        _refuse_categories(name, mode, where)
        return _factorised(column, where)
    if first in _TEXT:
        if mode in ("numbers", "strict"):
            raise _text_fault(where, next((cell for cell in column if isinstance(cell, str)), ""))
        return _factorised(column, where)
    if dtype.kind not in "iufb" and not first.startswith(("decimal", "null")):
        raise _type_fault(name, where)
    if mode == "categories":
        return _factorised(column, where)
    return readable(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _factorised(column: Any, where: str) -> CategoricalColumn:
    codes, values = column.factorize()
    return CategoricalColumn.make(values.tolist(), np.asarray(codes), where)


def _from_polars(column: Any, mode: Mode, where: str) -> NDArray[Any] | CategoricalColumn:
    dtype = column.dtype
    name = str(dtype).partition("(")[0]
    if dtype.is_temporal():
        raise dates_fault(where, f"type {dtype}")
    if name in ("Categorical", "Enum"):
        _refuse_categories(name, mode, where)
        column, name = column.cast(str), "String"
    if name in ("String", "Utf8"):
        distinct = column.drop_nulls().unique().sort()
        if mode in ("numbers", "strict"):
            raise _text_fault(where, distinct[0] if len(distinct) else "")
        polars: Any = sys.modules[type(column).__module__.partition(".")[0]]
        codes = column.cast(polars.Enum(distinct)).to_physical().cast(int).fill_null(-1)
        return CategoricalColumn.make(distinct.to_list(), codes.to_numpy(), where)
    if name in ("Object", "Null"):
        return _from_objects(_objects(column.to_list()), mode, where)
    if not dtype.is_numeric() and name != "Boolean":
        raise _type_fault(dtype, where)
    if column.null_count() and mode == "categories" and not dtype.is_float():
        return _coded(column.to_list(), where)  # a float64 would round large whole numbers
    if column.null_count() or name == "Decimal":
        column = column.cast(float)
    return _from_array(column.to_numpy(), mode, where)


def _from_arrow(column: Any, mode: Mode, where: str) -> NDArray[Any] | CategoricalColumn:
    name = str(column.type)
    if name.startswith("dictionary"):
        _refuse_categories(name, mode, where)
        return _coded(column.to_pylist(), where)
    if name == "null":
        return _from_objects(_objects([None] * len(column)), mode, where)
    if name.startswith(_TIMES):
        raise dates_fault(where, f"type {name}")
    return _from_array(np.asarray(column.to_numpy()), mode, where)


def _objects(cells: list[Any]) -> NDArray[Any]:
    """An array of Python objects."""
    values = np.empty(len(cells), dtype=object)
    values[:] = cells
    return values


# ------------------------------------------------------------------------------------------------ refusals


def _refuse_categories(name: str, mode: Mode, where: str) -> None:
    if mode in ("numbers", "strict"):
        raise ValueError(
            f"{where} has type {name}, but numbers are expected here: a column of categories must be one of "
            "the categorical_features of the fit."
        )


def _text_fault(where: str, example: Any) -> ValueError:
    return ValueError(
        f"{where} holds text ({shown(example)}), but numbers are expected here: a column of text must be one "
        "of the categorical_features of the fit."
    )


def _type_fault(dtype: Any, where: str) -> ValueError:
    return ValueError(f"{where} has type {dtype}: accepted are numbers, booleans, text and categories.")

"""The rows of a table as they were given, and their digest. Part of the checker.

Imports NumPy and the standard library only.

The rows are named by ``data_digest``, which does not depend on their order:

    Rows of weight zero are dropped. All arithmetic is on uint64 and wraps. Per row, h = 0x9E3779B97F4A7C15;
    for every feature in order, with b the bits of the float64 value (any NaN: 0x7ff8000000000000; -0.0: 0):
        h ^= b;  h *= 0xBF58476D1CE4E5B9;  h ^= h >> 29
    A category counts as the number float(d >> 11), a missing one as NaN, where d is the 8-byte BLAKE2b
    digest, read as a big-endian integer, of "s:" and the text, or of "n:" and repr(float(number)), in UTF-8.
    A real target follows the features as one more of them. Then, with p = 1 for a positive label and 0 for a
    negative one (no labels: 1):
        h ^= p;  h *= 0x94D049BB133111EB;  h ^= h >> 32
    If all weights are integers with a sum below 2^53, the row counts w times. Otherwise it counts once and
        h ^= bits(w);  h *= 0x9E3779B97F4A7C15;  h ^= h >> 30
    lane1 = sum of count * h;  lane2 = sum of count * mix(h),  mix(h) = (h ^ (h >> 31)) * 0xD6E8FEB86659FD93
    The digest is lane1 and lane2, each as 16 lower-case hexadecimal digits.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

_ROW_BLOCK = 65_536  # rows that are hashed together

_MISSING = ("NoneType", "NAType", "NaTType")  # None and what pandas has besides NaN


@dataclass(frozen=True)
class Table:
    """The rows as given: columns are read one at a time, as float64 or as labels; weights are raw."""

    rows: int
    features: int
    raw: Callable[[int], Any]
    categorical: frozenset[int]
    positive: npt.NDArray[np.bool_]
    target: Floats | None
    weight: Floats

    def column(self, j: int) -> Floats:
        """The numbers of a feature, NaN for missing ones."""
        column = self.raw(j)
        try:
            numbers = np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError):  # missing values that only a frame knows
            cells = [_plain(cell) for cell in _cells(column)]
            try:
                numbers = np.array([math.nan if cell is None else float(cell) for cell in cells])
            except ValueError:
                raise ValueError(f"feature {j} must hold numbers: it is not categorical") from None
        if np.isinf(numbers).any():
            raise ValueError(f"feature {j} holds infinite values")
        return numbers

    def labels(self, j: int) -> tuple[npt.NDArray[np.intp], list[Any]]:
        """For every row the position of its label, -1 for a missing one; and the labels."""
        code_of: dict[Any, int] = {}
        codes = [
            -1 if label is None else code_of.setdefault(label, len(code_of))
            for label in map(_plain, _cells(self.raw(j)))
        ]
        return np.array(codes, dtype=np.intp), list(code_of)

    def words(self, j: int) -> Floats:
        """What stands for a feature in the digest."""
        if j not in self.categorical:
            return self.column(j)
        codes, labels = self.labels(j)
        return np.array([*map(_label_number, labels), math.nan])[codes]


def _cells(column: Any) -> list[Any]:
    """The entries of a column as Python objects."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _plain(cell: Any) -> Any:
    """An entry as text or a number that compares as in Python; None for a missing one."""
    if isinstance(cell, str):
        return str(cell)
    if type(cell).__name__ in _MISSING:
        return None
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, bytes):
        return cell.decode()
    if isinstance(cell, bool | int):
        return cell
    if isinstance(cell, Real | Decimal):
        number = float(cell)
        return None if math.isnan(number) else number
    return str(cell)


def _label_number(label: Any) -> float:
    text = f"s:{label}" if isinstance(label, str) else f"n:{float(label) + 0.0!r}"
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(digest, "big") >> 11)


def _is_masked(values: Any) -> bool:
    return isinstance(values, np.ma.MaskedArray) and bool(np.ma.getmaskarray(values).any())


def refuse_masks(**arrays: Any) -> None:
    """Masked entries are allowed in a table only, where they are missing values."""
    for name, values in arrays.items():
        if _is_masked(values):
            raise ValueError(f"{name} holds masked entries: every row needs a value there")


def _unmasked(X: Any) -> npt.NDArray[Any]:
    """An array; what a mask hides is NaN, or None where there is no NaN."""
    if not _is_masked(X):
        return np.asarray(X)
    array = np.ma.getdata(X)
    array = array.astype(np.float64 if array.dtype.kind == "f" else object)
    array[np.ma.getmaskarray(X)] = np.nan if array.dtype.kind == "f" else None
    return array


def read(X: Any, y: Any, sample_weight: Any, categorical: Collection[int] = (), real: bool = False) -> Table:
    """The table with its labels or targets and weights, checked.

    ``categorical``: features that hold labels. ``real``: y is a target, not a label.
    """
    refuse_masks(y=y, sample_weight=sample_weight)
    listed = next((key for key in ("column_names", "columns") if hasattr(X, key)), None)
    if listed is not None and hasattr(X, "__getitem__"):
        names = list(getattr(X, listed))
        rows, features, raw = len(X), len(names), lambda j: X[names[j]]
    else:
        array = _unmasked(X)
        if array.ndim != 2:
            raise ValueError(f"X must have two dimensions, found {array.ndim}")
        (rows, features), raw = array.shape, lambda j: array[:, j]
    label, target = np.ones(rows), None
    if real:
        target = np.asarray(y, dtype=np.float64)
        if target.shape != (rows,) or not np.all(np.isfinite(target)):
            raise ValueError("y must hold one finite number per row")
    elif y is not None:
        label = np.asarray(y, dtype=np.float64)
    values = set(np.unique(label).tolist())
    if label.shape != (rows,) or not (values <= {0.0, 1.0} or values <= {-1.0, 1.0}):
        raise ValueError("y must hold one label per row: booleans, 0 and 1, or -1 and 1")
    weight = read_weights(sample_weight, rows)
    return Table(rows, features, raw, frozenset(categorical), label > 0, target, weight)


def read_weights(sample_weight: Any, rows: int) -> Floats:
    """The weights of the rows as they were given, checked."""
    if sample_weight is None and rows > 0:
        return np.ones(rows)
    weight = np.ones(0) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (rows,) or not np.all(np.isfinite(weight)) or np.any(weight < 0) or not np.any(weight):
        raise ValueError("sample_weight must hold one finite number >= 0 per row, not all zero")
    return weight


def _bits(values: Floats) -> Words:
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # adding 0.0 turns -0.0 into 0.0
    return np.where(np.isnan(values), np.uint64(0x7FF8000000000000), bits)


def _stir(state: Words, word: Words, factor: int, shift: int) -> Words:
    mixed = (state ^ word) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(shift))


def data_digest(
    X: Any,
    y_positive: Any = None,
    sample_weight: Any = None,
    *,
    categorical: Collection[int] = (),
    target: Any = None,
) -> str:
    """32 hexadecimal digits that stand for the rows in any order; the module's first lines define them.

    ``categorical``: positions of the features that hold labels. ``target``: for a regression, instead of y.
    """
    real = target is not None
    return table_digest(read(X, target if real else y_positive, sample_weight, categorical, real))


def table_digest(table: Table) -> str:
    """The digest of a table that has been read."""
    keep = np.flatnonzero(table.weight > 0)
    weight, positive = table.weight[keep], table.positive[keep].astype(np.uint64)
    blocks = [slice(a, a + _ROW_BLOCK) for a in range(0, len(keep), _ROW_BLOCK)]
    state = np.full(len(keep), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for j in range(table.features + (table.target is not None)):
        values = table.words(j) if table.target is None or j < table.features else table.target
        for block in blocks:
            state[block] = _stir(state[block], _bits(values[keep[block]]), 0xBF58476D1CE4E5B9, 29)
    counted = (
        bool(np.all(weight == np.floor(weight)))
        and bool(weight.max() < 2.0**53)
        and math.fsum(weight / 2.0) < 2.0**52
    )
    lanes = [0, 0]
    for block in blocks:
        h = _stir(state[block], positive[block], 0x94D049BB133111EB, 32)
        if not counted:
            h = _stir(h, _bits(weight[block]), 0x9E3779B97F4A7C15, 30)
        count = weight[block].astype(np.uint64) if counted else np.ones(len(h), dtype=np.uint64)
        lanes[0] += int(np.sum(h * count))
        lanes[1] += int(np.sum((h ^ (h >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93) * count))
    return "".join(f"{lane % 2**64:016x}" for lane in lanes)

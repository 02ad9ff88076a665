"""Rows of a fit: those without weight left out, equal ones added up, in an order of their own.

Where an optimum is not unique, or a solver stops short of it, rounding decides. In a small table equal rows
are
one row with the sum of their weights, and the order of the rows follows from their content: the same bits for
any order, and for weight 2 as for the row twice. Larger tables stay as they are, and agree to rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.linear.design import Design

Array = NDArray[np.float64]

_TOO_LARGE = 1e280  # of a sum of squares
_TOO_SMALL = 1e-120  # of all numbers
_SMALL = 1_000_000  # entries
_FIRST_ROWS = 64  # hold a number that is large enough, in most columns


@dataclass(frozen=True, eq=False)
class FittedRows:
    """``weights`` sum to 1. ``given``: the rows of positive weight; ``group``: which row each has become."""

    design: Design
    y: NDArray[Any]
    s: Array
    given: NDArray[np.intp]
    group: NDArray[np.intp]
    own: Array  # weights of the given rows, which sum to 1

    def spread(self, u: Array) -> Array:
        """Numbers per row, divided among the given rows by their weights."""
        return u[self.group] * (self.own / self.s[self.group])


def fitted_rows(X: Any, y: NDArray[Any], weight: Array, threads: int) -> FittedRows:
    """Rows for the solvers; ``weight`` is raw, of at least 0 and not all 0."""
    numbers = X.data if hasattr(X, "tocsr") else X.ravel(order="K")
    with np.errstate(over="ignore"):
        if not (numbers @ numbers < _TOO_LARGE and (y.dtype.kind != "f" or y @ y < _TOO_LARGE)):
            raise ValueError("X or y holds numbers too large to be squared and added up: scale them.")
    for name, size in _small_columns(X, y):
        raise ValueError(f"{name} holds no number above {size:g}, too small to be squared: scale it.")
    weight = comparable(weight)
    given = np.flatnonzero(weight > 0.0)
    sparse = hasattr(X, "tocsr")
    if len(given) < len(weight):
        X, y, weight = (X.tocsr() if sparse else X)[given], y[given], weight[given]
    n = len(weight)
    if n * X.shape[1] > _SMALL:
        own = weight / weight.sum()
        return FittedRows(Design(X, threads), y, own, given, np.arange(n), own)
    order, first, group = _order(X.tocsr() if sparse else np.ascontiguousarray(X), y, weight, sparse)
    total = np.bincount(group[order], weight[order])
    rows = order[first]
    X = (X.tocsr() if sparse else X)[rows]
    return FittedRows(Design(X, threads), y[rows], total / total.sum(), given, group, weight / total.sum())


def comparable(weight: Array) -> Array:
    """Weights divided by a power of two until all are at most 1: sums of whole numbers stay exact."""
    return np.ldexp(weight, -int(np.frexp(weight.max())[1]))


def _small_columns(X: Any, y: NDArray[Any]) -> Iterator[tuple[str, float]]:
    """Columns, and y, whose numbers are too small to be squared, with their largest absolute values."""
    if hasattr(X, "tocsc"):
        X = X.tocsc()
        parts = ((j, X.data[a:b]) for j, (a, b) in enumerate(itertools.pairwise(X.indptr.tolist())))
    else:
        first = np.abs(X[:_FIRST_ROWS]).max(axis=0, initial=0.0)
        parts = ((j, X[:, j]) for j in np.flatnonzero(first < _TOO_SMALL).tolist())
    targets = [("y", y)] if y.dtype.kind == "f" else []
    for name, part in itertools.chain(((f"X: column {j}", part) for j, part in parts), targets):
        size = float(np.abs(part).max(initial=0.0))
        if 0.0 < size < _TOO_SMALL:
            yield name, size


def _order(
    X: Any, y: NDArray[Any], weight: Array, sparse: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """An order by content, and of equal rows by weight; where in it equal rows begin; and the number of the
    group of every row."""
    numbers = np.random.default_rng(0).standard_normal(X.shape[1])
    if sparse:
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
        keys = np.asarray(X @ numbers)
    else:
        keys = np.einsum("ij,j->i", X, numbers)
    order = np.argsort(keys)
    if (np.diff(keys[order]) > 0.0).all():
        first = np.arange(len(y))
        group = np.empty_like(order)
        group[order] = first
        return order, first, group
    order = np.lexsort((weight, y, keys))
    differs = _differs(X[order])
    if (differs & (np.diff(keys[order]) == 0.0)).any():  # keys that rounding has made equal
        order = np.lexsort((weight, y, *(X.toarray() if sparse else X).T))
        differs = _differs(X[order])
    new = np.append(True, differs | (y[order][1:] != y[order][:-1]))
    group = np.empty(len(y), dtype=np.intp)
    group[order] = np.cumsum(new) - 1
    return order, np.flatnonzero(new), group


def _differs(rows: Any) -> NDArray[np.bool_]:
    """Whether a row is another than the one before it; from the second on."""
    if not hasattr(rows, "tocsr"):
        return (rows[1:] != rows[:-1]).any(axis=1)
    change = (rows[1:] - rows[:-1]).tocsr()
    change.eliminate_zeros()
    return np.diff(change.indptr) > 0

"""The matrix of a linear model as the solvers read it, and its rows: dense, or sparse by columns.

Nothing is scaled or made dense, and only columns far from 0 are centred, where there is an intercept. It is
not a column: every solver moves it in closed form.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import blas

from cardboost import _kernels

Array = NDArray[np.float64]
Columns = NDArray[np.int32]

_FAR = 1e3  # times its range: a column whose middle is so far from 0 would lose digits in sums of squares
_FLATTEST = 1e-8  # range of a column beside its middle, at least
_FIRST_ROWS = 64  # tell of most columns that they are not far from 0, and hold no tiny numbers only
_TOO_LARGE = 1e280  # of a sum of squares
_TOO_SMALL = 1e-120  # of all numbers
_SMALL = 1_000_000  # entries
_SWEEPS = 30  # over the columns of a quadratic model, at most
_ROWS_AT_ONCE = 2048  # of a product with X' W X or its diagonal: the weighted copy stays in the cache


class Design:
    """Rows and columns of finite numbers. The given matrix is never changed."""

    def __init__(self, X: Any, threads: int = 1) -> None:
        self.threads = threads
        self.sparse = sparse.issparse(X)
        if self.sparse:
            X = sparse.csc_array(X)
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            self.values = np.ascontiguousarray(X.data, dtype=np.float64)
            self.index = np.ascontiguousarray(X.indices, dtype=np.int32)
            self.starts = np.ascontiguousarray(X.indptr, dtype=np.int64)
            self.matrix: Any = X
        else:
            X = np.asarray(X, dtype=np.float64)
            self.matrix = X if X.flags.c_contiguous or X.flags.f_contiguous else np.ascontiguousarray(X)
        self.rows, self.columns = (int(n) for n in X.shape)

    @property
    def by_rows(self) -> bool:
        """Whether a pass over the rows can do everything at once."""
        return not self.sparse and self.matrix.flags.c_contiguous

    @cached_property
    def transposed(self) -> Array:
        """Dense columns one after the other: (columns, rows). A copy where the matrix is stored by rows."""
        return np.ascontiguousarray(self.matrix.T)

    @cached_property
    def squares(self) -> Array:
        """The largest weight of any row times this bounds the squared length of a column: sum x^2."""
        return self.second_moments(np.ones(self.rows))

    def second_moments(self, s: Array) -> Array:
        """sum s x^2 of every column."""
        if self.sparse:
            held = np.repeat(np.arange(self.columns), np.diff(self.starts))
            squares = self.values**2 * s[self.index]
            return np.asarray(np.bincount(held, squares, self.columns), dtype=np.float64)
        out = np.zeros(self.columns)
        for begin in range(0, self.rows, _ROWS_AT_ONCE):
            part = slice(begin, begin + _ROWS_AT_ONCE)
            out += s[part] @ np.square(self.matrix[part])
        return out

    def scores(self, coef: Array) -> Array:
        """X coef, or a column per class; only the columns in use are read where that is less."""
        used = np.flatnonzero(coef).astype(np.int32)
        if coef.ndim > 1 or 4 * len(used) >= self.columns or self.by_rows:
            return np.asarray(self.matrix @ coef.T)
        if not self.sparse:
            return self.taken(used) @ coef[used]
        return _kernels.column_scores_csc(self.values, self.index, self.starts, used, coef[used], self.rows)

    def taken(self, which: Columns) -> Array:
        """Some dense columns: (rows, which), by columns."""
        if self.by_rows and "transposed" not in self.__dict__:
            return np.asfortranarray(self.matrix[:, which])
        return np.asarray(self.transposed[which].T)

    def sums(self, pull: Array) -> Array:
        """X' pull for all columns; of a pull with a column per class a row per class."""
        return np.asarray(self.matrix.T @ pull).T

    def sums_of(self, which: Columns, pull: Array) -> Array:
        """X' pull for some columns."""
        if self.sparse:
            return _kernels.column_sums_csc(self.values, self.index, self.starts, which, pull, self.threads)
        return _kernels.column_sums_dense(self.transposed, which, pull, self.threads)

    def gram(self, w: Array) -> Array:
        """X' diag(w) X of all columns, for w >= 0."""
        if self.sparse:
            weighted = self.matrix.multiply(w[:, None]).tocsc()
            return np.asarray((self.matrix.T @ weighted).toarray())
        out = np.zeros((self.columns, self.columns), order="F")
        root = np.sqrt(w)
        for begin in range(0, self.rows, _ROWS_AT_ONCE):
            part = self.matrix[begin : begin + _ROWS_AT_ONCE] * root[begin : begin + _ROWS_AT_ONCE, None]
            out = blas.dsyrk(1.0, part.T, 1.0, out, overwrite_c=1)
        return both_halves(out)

    def bordered_gram(self, w: Array, intercept: bool) -> Array:
        """The same with a column of ones for the intercept last; without one, its row is of the identity."""
        h = np.zeros((self.columns + 1, self.columns + 1))
        h[:-1, :-1] = self.gram(w)
        if intercept:
            h[-1, :-1] = h[:-1, -1] = self.sums(w)
        h[-1, -1] = float(w.sum()) if intercept else 1.0
        return h

    def sweep(self, which: Columns, w: Array, g: Array, beta: Array, **model: Any) -> tuple[Array, float]:
        """Coordinate descent on the quadratic model; ``beta`` is changed. How scores and intercept change.

        See kernels/sweeps.cpp.
        """
        shift = np.empty(self.rows)
        out: dict[str, Any] = {"beta": beta, "shift": shift, "most": _SWEEPS}
        if self.sparse:
            outcome = _kernels.sweep_csc(self.values, self.index, self.starts, which, w, g, **out, **model)
            return shift, outcome[1]
        return shift, _kernels.sweep_dense(self.transposed, which, w, g, **out, **model)[1]

    @cached_property
    def _far(self) -> tuple[NDArray[np.intp], Array, Array]:
        """Dense columns that are far from 0 beside their range, and half their least and largest entries."""
        which = np.arange(self.columns)
        if self.sparse:
            return which[:0], np.zeros(0), np.zeros(0)
        for rows, factor in ((_FIRST_ROWS, _FAR / 2.0), (self.rows, _FAR)):  # far in all: far in the first
            part = self.matrix[:rows] if len(which) == self.columns else self.matrix[:rows, which]
            low, high = part.min(axis=0, initial=np.inf) / 2.0, part.max(axis=0, initial=-np.inf) / 2.0
            far = np.abs(low + high) > factor * (high - low)
            which, low, high = which[far], low[far], high[far]
        return which, low, high

    def centres(self) -> Array:
        """The middle of every dense column that is far from 0 beside its range; 0 of the others."""
        which, low, high = self._far
        centres = np.zeros(self.columns)
        centres[which] = low + high
        return centres

    def refuse_flat_columns(self) -> None:
        """Refuse columns that vary too little for an intercept beside them."""
        for j, low, high in zip(*self._far, strict=True):
            if 0.0 < high - low < _FLATTEST * abs(low + high):
                raise ValueError(
                    f"X: column {j} lies between {2.0 * low:.17g} and {2.0 * high:.17g}, which leaves "
                    "too few digits for what varies: subtract a constant from it."
                )

    def less(self, centres: Array) -> Design:
        """The same with these numbers subtracted from the columns."""
        return Design(self.matrix - centres, self.threads) if centres.any() else self

    def take(self, rows: NDArray[Any]) -> Design:
        return Design(self.matrix.take(rows, axis=0), self.threads)


def both_halves(upper: NDArray[Any]) -> NDArray[Any]:
    """A symmetric matrix of its upper half."""
    full = upper + upper.T
    np.fill_diagonal(full, np.diagonal(upper))
    return full


@dataclass(frozen=True, eq=False)
class FittedRows:
    """Rows of positive weight, equal ones merged; the weights ``s`` sum to 1."""

    design: Design
    y: NDArray[Any]
    s: Array
    group: NDArray[np.intp]  # the merged row of every row of positive weight
    shares: Array  # weights of the rows before they were merged, which sum to 1

    def spread(self, u: Array) -> Array:
        """Numbers of merged rows, divided among the original rows by their weights."""
        return u[self.group] * (self.shares / self.s[self.group])


def fitted_rows(X: Any, y: NDArray[Any], weight: Array, threads: int) -> FittedRows:
    """Merge equal rows for the solvers and leave out those of weight 0; ``weight`` has a positive entry.

    Where an optimum is not unique, or a solver stops short of it, rounding decides. In a small table equal
    rows become one row with the sum of their weights, in an order that follows from their content: the same
    bits for any order of the rows, and for weight 2 as for the row twice. Large tables stay as they are, and
    agree to rounding.
    """
    numbers = X.data if _is_sparse(X) else X.ravel(order="K")
    with np.errstate(over="ignore"):
        if not (numbers @ numbers < _TOO_LARGE and (y.dtype.kind != "f" or y @ y < _TOO_LARGE)):
            raise ValueError("X or y holds numbers too large to be squared and added up: scale them.")
    _refuse_small_numbers(X, y)
    weight = comparable(weight)
    positive = np.flatnonzero(weight > 0.0)
    small = len(positive) * X.shape[1] <= _SMALL
    if _is_sparse(X) and (small or len(positive) < len(weight)):
        X = X.tocsr()
    if len(positive) < len(weight):
        X, y, weight = X[positive], y[positive], weight[positive]
    if not small:
        s = weight / weight.sum()
        return FittedRows(Design(X, threads), y, s, np.arange(len(s)), s)
    order, first, group = _order(X if _is_sparse(X) else np.ascontiguousarray(X), y, weight)
    total = np.bincount(group[order], weight[order])
    rows = order[first]
    merged = X[rows] if _is_sparse(X) else X.take(rows, axis=0)
    return FittedRows(Design(merged, threads), y[rows], total / total.sum(), group, weight / total.sum())


def _is_sparse(X: Any) -> bool:
    return bool(sparse.issparse(X))


def comparable(weight: Array) -> Array:
    """Weights divided by a power of two until all are at most 1: sums of whole numbers stay exact."""
    exponent = int(np.frexp(weight.max())[1])
    return np.ldexp(weight, -exponent) if exponent else weight


def _refuse_small_numbers(X: Any, y: NDArray[Any]) -> None:
    """Refuse a column, or y, whose numbers are too small to be squared."""
    if _is_sparse(X):
        X = X.tocsc()
        parts = ((j, X.data[a:b]) for j, (a, b) in enumerate(itertools.pairwise(X.indptr.tolist())))
    else:
        first = np.abs(X[:_FIRST_ROWS]).max(axis=0, initial=0.0)
        parts = ((j, X[:, j]) for j in np.flatnonzero(first < _TOO_SMALL).tolist())
    targets = [("y", y)] if y.dtype.kind == "f" else []
    for name, part in itertools.chain(((f"X: column {j}", part) for j, part in parts), targets):
        size = float(np.abs(part).max(initial=0.0))
        if 0.0 < size < _TOO_SMALL:
            raise ValueError(f"{name} holds no number above {size:g}, too small to be squared: scale it.")


@lru_cache(maxsize=8)
def _key_of_columns(columns: int) -> Array:
    return np.random.default_rng(0).standard_normal(columns)


def _order(
    X: Any, y: NDArray[Any], weight: Array
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """An order by content, and of equal rows by weight; where in it equal rows begin; and the number of the
    group of every row."""
    numbers = _key_of_columns(X.shape[1])
    if _is_sparse(X):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
        keys = np.asarray(X @ numbers)
    else:
        keys = np.einsum("ij,j->i", X, numbers)
    order = np.argsort(keys)
    new = np.ones(len(y), dtype=bool)
    if not (np.diff(keys[order]) > 0.0).all():
        order = np.lexsort((weight, y, keys))
        differs = _differs(X[order])
        if (differs & (np.diff(keys[order]) == 0.0)).any():  # keys that rounding has made equal
            order = np.lexsort((weight, y, *(X.toarray() if _is_sparse(X) else X).T))
            differs = _differs(X[order])
        new[1:] = differs | (y[order][1:] != y[order][:-1])
    group = np.empty(len(y), dtype=np.intp)
    group[order] = np.cumsum(new) - 1
    return order, np.flatnonzero(new), group


def _differs(rows: Any) -> NDArray[np.bool_]:
    """Whether a row is another than the one before it; from the second on."""
    if not _is_sparse(rows):
        return (rows[1:] != rows[:-1]).any(axis=1)
    change = (rows[1:] - rows[:-1]).tocsr()
    change.eliminate_zeros()
    return np.diff(change.indptr) > 0

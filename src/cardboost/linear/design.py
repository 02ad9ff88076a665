"""The matrix of a linear model as the solvers read it: dense by rows or by columns, or sparse by columns.

Nothing is scaled or made dense, and only columns far from 0 are centred, where there is an intercept. It is
not a column: every solver moves it in closed form.
"""

from __future__ import annotations

from functools import cached_property
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
_FIRST_ROWS = 64  # tell most columns that are not far from 0
_ROWS_AT_ONCE = 2048  # of a product X' W X: the weighted copy stays in the cache


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
        if self.sparse:
            held = np.repeat(np.arange(self.columns), np.diff(self.starts))
            return np.asarray(np.bincount(held, self.values**2, self.columns), dtype=np.float64)
        return np.einsum("ij,ij->j", self.matrix, self.matrix)

    def second_moments(self, s: Array) -> Array:
        """sum s x^2 of every column."""
        if self.sparse:
            held = np.repeat(np.arange(self.columns), np.diff(self.starts))
            squares = self.values**2 * s[self.index]
            return np.asarray(np.bincount(held, squares, self.columns), dtype=np.float64)
        return np.einsum("ij,ij,i->j", self.matrix, self.matrix, s, optimize=False)

    def scores(self, coef: Array) -> Array:
        """X coef; only the columns in use are read where that is less."""
        used = np.flatnonzero(coef)
        if 4 * len(used) >= self.columns or self.by_rows:
            return np.asarray(self.matrix @ coef)
        return self.scores_of(used.astype(np.int32), coef[used])

    def scores_of(self, which: Columns, coef: Array) -> Array:
        """X[:, which] coef."""
        if len(which) == 0:
            return np.zeros(self.rows)
        if self.sparse:
            return _kernels.column_scores_csc(self.values, self.index, self.starts, which, coef, self.rows)
        return self.taken(which) @ coef

    def taken(self, which: Columns) -> Array:
        """Some dense columns: (rows, which), by columns."""
        if self.by_rows and "transposed" not in self.__dict__:
            return np.asfortranarray(self.matrix[:, which])
        return np.asarray(self.transposed[which].T)

    def sums(self, pull: Array) -> Array:
        """X' pull for all columns."""
        return np.asarray(self.matrix.T @ pull)

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
        return _both_halves(out)

    def sweep(
        self, which: Columns, w: Array, g: Array, beta: Array, **prices: Any
    ) -> tuple[Array, float, int]:
        """Coordinate descent on the quadratic model; ``beta`` is changed. See kernels/linear.h."""
        shift = np.empty(self.rows)
        if self.sparse:
            found = _kernels.sweep_csc(
                self.values, self.index, self.starts, which, w, g, beta=beta, shift=shift, **prices
            )
        else:
            found = _kernels.sweep_dense(self.transposed, which, w, g, beta=beta, shift=shift, **prices)
        return shift, found[1], found[0]

    @cached_property
    def _far(self) -> tuple[NDArray[np.intp], Array, Array]:
        """Dense columns that are far from 0 beside their range, and half their least and largest entries."""
        which = np.arange(self.columns)
        if self.sparse:
            return which[:0], np.zeros(0), np.zeros(0)
        for rows, factor in (
            (_FIRST_ROWS, _FAR / 2.0),
            (self.rows, _FAR),
        ):  # far in all rows: far in the first
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
        return Design(self.matrix[rows], self.threads)


def _both_halves(upper: Array) -> Array:
    """A symmetric matrix of its upper half."""
    full = upper + upper.T
    np.fill_diagonal(full, np.diagonal(upper))
    return full

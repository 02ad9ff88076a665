"""A matrix of columns as a problem: what the solvers take, checked, with a sentence for what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cardboost.data.exact import refuse_mask
from cardboost.data.weights import RowWeights
from cardboost.dictionary.signs import SignMatrix
from cardboost.problem.prices import Prices

Array = NDArray[np.float64]

_ORDINARY = 10  # exponents of entries up to which columns are left as they are
_SMALLEST = -450  # the least exponent: l2 grows by its square


@dataclass(frozen=True, eq=False)
class MatrixProblem:
    """A checked problem on a matrix; rows without weight are gone. ``signs``: A packed, if wanted and +-1."""

    A: NDArray[Any]
    weights: RowWeights
    l1: Array
    l2: Array
    l0: Array
    max_weight: Array
    signs: SignMatrix | None
    charged: NDArray[np.bool_] | None = None  # None: every column counts

    def scaled(self) -> tuple[MatrixProblem, NDArray[np.intp]]:
        """The same with columns of very large or small entries divided by powers of two, and their exponents.

        A weight is then so many times larger; prices and boxes follow, and no bit of an entry is lost.
        """
        largest = np.abs(self.A).max(axis=0).astype(np.float64)
        exponent = np.maximum(np.frexp(largest)[1], _SMALLEST).astype(np.intp)
        exponent[(np.abs(exponent) <= _ORDINARY) | (largest == 0.0)] = 0
        if not exponent.any():
            return self, exponent
        l1, l2 = np.ldexp(self.l1, -exponent), np.ldexp(self.l2, -2 * exponent)
        box = np.ldexp(self.max_weight, exponent)
        return replace(self, A=np.ldexp(self.A, -exponent), l1=l1, l2=l2, max_weight=box), exponent

    def prices(self, which: NDArray[np.int32]) -> Prices:
        charged = np.ones(len(which), dtype=bool) if self.charged is None else self.charged[which]
        return Prices(self.l1[which], self.l2[which], self.l0[which], self.max_weight[which], charged)

    def with_free(self, free: ArrayLike, max_weight: float) -> MatrixProblem:
        """The same with columns that neither count nor cost, of at most this weight."""
        n = self.A.shape[1]
        which = np.asarray(free)
        if which.size == 0:
            return self
        if which.ndim != 1 or which.dtype.kind not in "iu" or (which < 0).any() or (which >= n).any():
            raise ValueError(f"free must hold numbers of columns, from 0 to {n - 1}; got {free!r}.")
        charged = np.ones(n, dtype=bool)
        charged[which] = False
        none = lambda prices: np.where(charged, prices, 0.0)  # noqa: E731
        box = np.where(charged, self.max_weight, np.minimum(self.max_weight, max_weight))
        return replace(
            self, l1=none(self.l1), l2=none(self.l2), l0=none(self.l0), max_weight=box, charged=charged
        )


def check_matrix(
    A: ArrayLike,
    l1: ArrayLike,
    l2: ArrayLike,
    l0: ArrayLike,
    max_weight: ArrayLike | None,
    sample_weight: ArrayLike | None,
    pack: bool = False,
) -> MatrixProblem:
    refuse_mask(A, "A")
    refuse_mask(sample_weight, "sample_weight")
    try:
        matrix = np.asarray(A)
    except ValueError as error:
        raise ValueError(f"A is not a matrix: its rows differ in length ({error}).") from error
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"A must hold numbers; found {matrix.dtype}.")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"A must have two dimensions and at least one row and one column; found {matrix.shape}."
        )
    curve = _per_column("l2", l2, matrix.shape[1])
    signs = SignMatrix.pack(matrix) if pack and (curve > 0).all() else None
    if signs is None and matrix.dtype.kind == "f" and not np.isfinite(matrix).all():
        raise ValueError("A contains NaN or infinity.")
    m, n = matrix.shape
    weight = None
    if sample_weight is not None:
        try:
            weight = np.asarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"sample_weight must hold {m} numbers: {error}.") from error
        if weight.shape != (m,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
            raise ValueError(f"sample_weight must hold {m} finite numbers of at least 0, not all 0.")
        if not (weight > 0).all():
            matrix, weight = matrix[weight > 0], weight[weight > 0]
            m = len(weight)
            signs = None if signs is None else SignMatrix.pack(matrix)
    box = np.inf if max_weight is None else max_weight
    return MatrixProblem(
        matrix,
        RowWeights.make(m, weight),
        _per_column("l1", l1, n),
        curve,
        _per_column("l0", l0, n),
        _per_column("max_weight", box, n, infinite=True),
        signs,
    )


def _per_column(name: str, value: ArrayLike, n: int, infinite: bool = False) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number or one number per column; got {value!r}.") from error
    if array.shape not in ((), (n,)):
        raise ValueError(f"{name} must be a number or an array of {n} numbers; found shape {array.shape}.")
    if np.isnan(array).any() or (array < 0).any() or (not infinite and np.isinf(array).any()):
        raise ValueError(f"{name} must be at least 0 and finite; got {value!r}.")
    if name == "max_weight" and array.shape == () and array == 0:
        raise ValueError("max_weight must be above 0.")
    return np.array(np.broadcast_to(array, (n,)))

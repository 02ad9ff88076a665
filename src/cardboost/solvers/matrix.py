"""A matrix of columns as a problem: what the solvers take, checked, with a sentence for what is wrong."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cardboost.data.exact import refuse_mask
from cardboost.data.labels import class_codes, sample_weights
from cardboost.data.weights import RowWeights
from cardboost.dictionary.signs import SignMatrix
from cardboost.problem.prices import Prices
from cardboost.problem.trace import Record, Status

Array = NDArray[np.float64]

_ORDINARY = 10  # exponents of entries up to which columns are left as they are
_SMALLEST = -450  # the least exponent: l2 grows by its square


@dataclass(frozen=True, eq=False)
class SolverResult:
    """Weights of the columns and the proof of their quality.

    Attributes
    ----------
    x : array of shape (n_columns,)
        Weights of all columns.
    objective : float
        The objective at ``x``; also as ``fun``, SciPy's name.
    gap : float
        ``objective - lower_bound``: the duality gap, on the simplex the Frank-Wolfe gap.
    lower_bound : float
        No weights have an objective below it.
    nit : int
        Number of steps.
    history : tuple of Record
        One record per look at all columns, or per step where every step looks at all of them.
    status : Status
        Why the solver ended.
    message : str
        The status in a sentence.
    success : bool
        Whether the gap is as small as ``tol`` asks (or the criterion as small as ``epsilon``).
    dual : array or None
        The row weights at ``x``, without the rows of weight 0. None on the simplex.
    """

    x: Array
    objective: float
    gap: float
    lower_bound: float
    nit: int
    history: tuple[Record, ...]
    status: Status
    message: str
    success: bool
    dual: Array | None = None

    @property
    def fun(self) -> float:
        """The objective under SciPy's name."""
        return self.objective


@dataclass(frozen=True, eq=False)
class MatrixProblem:
    """A checked problem on a matrix; rows without weight are gone.

    ``sample_weight``: those of the other rows as given, None without any. ``signs``: A packed, if wanted and
    +-1.
    """

    A: NDArray[Any]
    sample_weight: Array | None
    weights: RowWeights
    prices: Prices
    signs: SignMatrix | None

    def scaled(self) -> tuple[MatrixProblem, NDArray[np.intp]]:
        """The same with columns of very large or small entries divided by powers of two, and their exponents.

        A weight is then so many times larger; prices and boxes follow, and no bit of an entry is lost.
        """
        largest, p = np.abs(self.A).max(axis=0).astype(np.float64), self.prices
        exponent = np.maximum(np.frexp(largest)[1], _SMALLEST).astype(np.intp)
        exponent[(np.abs(exponent) <= _ORDINARY) | (largest == 0.0)] = 0
        if not exponent.any():
            return self, exponent
        l1, l2, box = (
            np.ldexp(p.l1, -exponent),
            np.ldexp(p.l2, -2 * exponent),
            np.ldexp(p.max_weight, exponent),
        )
        prices = replace(p, l1=l1, l2=l2, max_weight=box)
        return replace(self, A=np.ldexp(self.A, -exponent), prices=prices), exponent

    def with_free(self, free: ArrayLike, max_weight: float) -> MatrixProblem:
        """The same with columns that neither count nor cost, of at most this weight."""
        n, p = len(self.prices), self.prices
        which = np.asarray(free)
        if which.size == 0:
            return self
        if which.ndim != 1 or which.dtype.kind not in "iu" or (which < 0).any() or (which >= n).any():
            raise ValueError(f"free must hold numbers of columns, from 0 to {n - 1}; got {free!r}.")
        charged = np.ones(n, dtype=bool)
        charged[which] = False
        l1, l2, l0 = (np.where(charged, price, 0.0) for price in (p.l1, p.l2, p.l0))
        box = np.where(charged, p.max_weight, np.minimum(p.max_weight, max_weight))
        return replace(self, prices=Prices(l1, l2, l0, box, charged))


def check_matrix(
    A: ArrayLike,
    l1: ArrayLike,
    l2: ArrayLike,
    l0: ArrayLike,
    max_weight: ArrayLike | None,
    sample_weight: ArrayLike | None,
    pack: bool = False,
) -> MatrixProblem:
    """The problem of these arguments, or a ValueError that says what is wrong with them."""
    refuse_mask(A, "A")
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
    n = matrix.shape[1]
    box = np.inf if max_weight is None else max_weight
    named = {"l1": l1, "l2": l2, "l0": l0, "max_weight": box}
    columns = {name: _per_column(name, value, n, name == "max_weight") for name, value in named.items()}
    prices = Prices(**columns, charged=np.ones(n, dtype=bool))
    signs = SignMatrix.pack(matrix) if pack and (prices.l2 > 0).all() else None
    if signs is None and matrix.dtype.kind == "f" and not np.isfinite(matrix).all():
        raise ValueError("A contains NaN or infinity.")
    weight = row_weights(sample_weight, len(matrix))
    if weight is not None and not (weight > 0).all():
        matrix, weight = matrix[weight > 0], weight[weight > 0]
        signs = None if signs is None else SignMatrix.pack(matrix)
    return MatrixProblem(matrix, weight, RowWeights.make(len(matrix), weight), prices, signs)


def row_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """The weights of all rows, or None without any; a single number for all of them is not accepted."""
    refuse_mask(sample_weight, "sample_weight")
    with contextlib.suppress(ValueError):
        weight = sample_weights(sample_weight, n_rows)
        if weight is None or np.ndim(sample_weight) > 0:
            return weight
    raise ValueError(f"sample_weight must hold {n_rows} finite numbers of at least 0, not all 0.")


def weighted_classes(
    y: Any, sample_weight: Any, n_rows: int
) -> tuple[tuple[Any, Any], NDArray[np.bool_], Array | None, NDArray[np.intp]]:
    """The two classes of the rows that have a weight.

    Returns both labels in order, which of these rows have the second one, the weights of all rows, and the
    positions of the rows with a weight.
    """
    classes, codes = class_codes(y, n_rows)
    weight = row_weights(sample_weight, n_rows)
    kept = np.arange(n_rows) if weight is None else np.flatnonzero(weight)
    present = np.unique(codes[kept])
    if len(present) != 2:
        raise ValueError(f"y must hold two classes in rows with a weight; found {len(present)}.")
    low, high = classes[present].tolist()
    return (low, high), codes[kept] == present[1], weight, kept


def _per_column(name: str, value: ArrayLike, n: int, is_box: bool) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number or one number per column; got {value!r}.") from error
    if array.shape not in ((), (n,)):
        raise ValueError(f"{name} must be a number or an array of {n} numbers; found shape {array.shape}.")
    if np.isnan(array).any() or (array < 0).any() or (not is_box and np.isinf(array).any()):
        raise ValueError(f"{name} must be at least 0 and finite; got {value!r}.")
    if is_box and array.shape == () and array == 0:
        raise ValueError("max_weight must be above 0.")
    return np.array(np.broadcast_to(array, (n,)))

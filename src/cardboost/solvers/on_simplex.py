"""``minimize_on_simplex``: the soft margin of a matrix or of all stumps of a table, or any convex function,
on weights of a given sum."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.arguments import number, whole
from cardboost.data.threads import usable_threads
from cardboost.dictionary.columns import ColumnStore, WholeStore, spread
from cardboost.dictionary.signs import SignStore
from cardboost.master.mprp import mprp_on_simplex
from cardboost.master.simplex import (
    FunctionOracle,
    MatrixOracle,
    SimplexSolution,
    Store,
    newton_by_radius,
    soft_point,
)
from cardboost.problem.losses import get_loss
from cardboost.problem.risk import EmpiricalRisk
from cardboost.problem.trace import Record, Status
from cardboost.solvers.matrix import SolverResult, check_matrix
from cardboost.solvers.stump_columns import StumpColumns

Array = NDArray[np.float64]

METHODS = {"newton": 1_000, "mprp": 50_000}  # with their default for max_iter


def minimize_on_simplex(
    A: Any,
    radius: float,
    *,
    method: str = "newton",
    tol: float = 1e-8,
    sample_weight: Any = None,
    x0: Any = None,
    max_iter: int | None = None,
    rho: float = 0.5,
    delta: float = 1e-4,
    epsilon: float | None = None,
    callback: Callable[[Record], object] | None = None,
    n_jobs: int | None = 1,
) -> SolverResult:
    """Minimise ``log(sum_i exp(-(A w)_i))`` over ``w >= 0`` with ``sum w = radius``.

    Parameters
    ----------
    A : array-like of shape (n_rows, n_columns), StumpColumns or convex function
        A matrix has one row per example and one column per learner, with the label multiplied in.
        :class:`cardboost.solvers.StumpColumns` are all stumps of a table. Any object with
        ``value_and_gradient(w)`` and ``hessian(w)`` is a convex function, which is minimised instead.
    radius : float
        The sum of the weights.
    method : {"newton", "mprp"}, default="newton"
        "newton" adds columns by their slope and takes Newton steps on those in use. "mprp" is the conjugate
        gradient method of the paper (docs/soft_margin.md).
    tol : float, default=1e-8
        Frank-Wolfe gap at which to stop; no point of the simplex can be better by more than the gap.
    sample_weight : array-like of shape (n_rows,) or None, default=None
        Weights of the rows of a matrix. StumpColumns and functions have their own.
    x0 : array-like of shape (n_columns,) or None, default=None
        Where to start. A point outside the simplex is projected, with a warning. None: the best column alone.
        Functions need it.
    max_iter : int or None, default=None
        At most so many steps. None: 1,000 for "newton" and 50,000 for "mprp".
    rho : float, default=0.5
        For "mprp": the factor, between 0 and 1, by which the line search shortens a step.
    delta : float, default=1e-4
        For "mprp": a step is accepted where the objective falls by at least ``delta`` times its squared
        length.
    epsilon : float or None, default=None
        For "mprp": if given, it also stops where ``(-g)^f . d <= epsilon``.
    callback : callable or None, default=None
        Called with every record. The solver stops when it returns True.
    n_jobs : int or None, default=1
        Number of threads. None: all cores that joblib and threadpoolctl allow; -1: all cores. StumpColumns
        have their own.

    Returns
    -------
    SolverResult
        The weights, with objective and gap.

    Raises
    ------
    ValueError
        If an argument is out of range or has the wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> from cardboost.solvers import minimize_on_simplex
    >>> A = np.array([[-1, 1, 1], [-1, 1, 1], [-1, 1, -1], [1, -1, -1]])
    >>> result = minimize_on_simplex(A, 0.5)
    >>> result.success, result.x
    (True, array([0. , 0.5, 0. ]))
    """
    if method not in METHODS:
        raise ValueError(f"method must be 'newton' or 'mprp'; got {method!r}.")
    radius, tol = number("radius", radius, 0.0, strict=True), number("tol", tol, 0.0)
    most = METHODS[method] if max_iter is None else whole("max_iter", max_iter, 0)
    rho, delta = number("rho", rho, 0.0, strict=True), number("delta", delta, 0.0, strict=True)
    if rho >= 1:
        raise ValueError(f"rho must be below 1; got {rho!r}.")
    if epsilon is not None:
        epsilon = number("epsilon", epsilon, 0.0)
        if method != "mprp":
            raise ValueError("epsilon is the criterion of method='mprp'.")
    oracle, n, offset = _oracle(A, sample_weight, x0, n_jobs)
    start = _start(oracle, n, radius, x0)
    watch = None
    if callback is not None:
        watch = lambda record, columns, weights: callback(_shifted(record, offset))  # noqa: E731
    if method == "newton":
        used = np.flatnonzero(start).astype(np.int32)
        solution = newton_by_radius(
            oracle, radius, (used, start[used]), tol=tol, max_iter=most, callback=watch
        )
    else:
        solution = mprp_on_simplex(
            oracle, radius, start,
            tol=tol, max_iter=most, rho=rho, delta=delta, epsilon=epsilon, callback=watch,
        )  # fmt: skip
    return _result(solution, n, offset, tol, epsilon)


def _oracle(
    A: Any, sample_weight: Any, x0: Any, n_jobs: int | None
) -> tuple[MatrixOracle | FunctionOracle, int, float]:
    """The function, the number of weights, and what its values lack."""
    if isinstance(A, StumpColumns):
        if sample_weight is not None:
            raise ValueError("sample_weight goes into StumpColumns.make.")
        stumps = A.store.dictionary
        risk = EmpiricalRisk(get_loss("exponential"), A.weights, stumps.sign, stumps.threads)
        return MatrixOracle(A.store.fresh(), risk), len(A), math.log(A.total_weight)
    if callable(getattr(A, "value_and_gradient", None)):
        if not callable(getattr(A, "hessian", None)):
            raise ValueError("A: an object with value_and_gradient(w) also needs hessian(w).")
        if sample_weight is not None:
            raise ValueError("sample_weight goes with a matrix; a function has its own.")
        if x0 is None:
            raise ValueError("x0 is needed with a function: it says how many weights there are.")
        n = len(np.atleast_1d(np.asarray(x0)))
        return FunctionOracle(A, n), n, 0.0
    problem = check_matrix(A, 0.0, 1.0, 0.0, None, sample_weight, pack=True)
    threads = usable_threads(n_jobs)
    signs, lines = problem.signs, problem.A.T
    store: Store = (
        WholeStore(ColumnStore(lines.copy(), threads)) if signs is None else SignStore(signs, threads)
    )
    total = float(len(problem.A)) if sample_weight is None else float(np.sum(np.asarray(sample_weight)))
    risk = EmpiricalRisk(get_loss("exponential"), problem.weights, None, threads)
    return MatrixOracle(store, risk), len(store), math.log(total)


def _start(oracle: MatrixOracle | FunctionOracle, n: int, radius: float, x0: Any) -> Array:
    """A point of the simplex: the one given, or the best column alone."""
    if x0 is None:
        assert isinstance(oracle, MatrixOracle)
        point = soft_point(oracle.risk, np.zeros(oracle.store.n_rows))[1]
        return radius * (np.arange(n) == np.argmin(oracle.every_slope(point)))
    try:
        start = np.array(x0, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"x0 must hold {n} numbers: {error}.") from error
    if start.shape != (n,) or not np.isfinite(start).all():
        raise ValueError(f"x0 must hold {n} finite numbers; found shape {start.shape}.")
    if (start < 0).any() or abs(start.sum() - radius) > 1e-9 * radius:
        warnings.warn(
            f"x0 is not on the simplex of radius {radius:g}: its nearest point is taken.", stacklevel=3
        )
        start = project(start, radius)
    return np.asarray(start * (radius / start.sum()))


def project(v: Array, radius: float) -> Array:
    """The nearest point of the simplex."""
    falling = np.sort(v)[::-1]
    over = (np.cumsum(falling) - radius) / np.arange(1, len(v) + 1)
    shift = over[np.count_nonzero(falling > over) - 1]
    return np.maximum(v - shift, 0.0)


def _result(
    solution: SimplexSolution, n: int, offset: float, tol: float, epsilon: float | None
) -> SolverResult:
    """The solution over all columns, with the offset that its values lack."""
    sentences = {
        Status.OPTIMAL: f"the gap is at most {tol:g}",
        Status.CRITERION: f"(-g)^f . d is at most {epsilon}",
        Status.ITERATION_LIMIT: "max_iter was reached; x is the best point so far",
        Status.PRECISION: "no step lowers the value any more; the gap is that of double precision",
    }
    status, gap, fun = solution.status, solution.gap, solution.objective + offset
    x, message = spread(solution.weights, solution.columns, n), sentences.get(status, status.message)
    history = tuple(_shifted(record, offset) for record in solution.history)
    success = status in (Status.OPTIMAL, Status.CRITERION)
    return SolverResult(x, fun, gap, fun - gap, solution.steps, history, status, message, success)


def _shifted(record: Record, offset: float) -> Record:
    """With the logarithm of the sum, where the solver has that of the weighted mean."""
    return replace(record, objective=record.objective + offset, lower_bound=record.lower_bound + offset)

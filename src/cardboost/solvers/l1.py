"""``minimize_l1``: the convex problem over all columns of a matrix, with its duality gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cardboost import _kernels
from cardboost.data.arguments import number, whole
from cardboost.data.threads import usable_threads
from cardboost.dictionary.columns import ColumnStore, MatrixPool, column_lines, spread
from cardboost.dictionary.signs import SignMatrix
from cardboost.master.newton import Master
from cardboost.problem.bound import dual_bound
from cardboost.problem.budget import clock
from cardboost.problem.losses import get_loss
from cardboost.problem.prices import Prices
from cardboost.problem.risk import EmpiricalRisk, RiskPoint
from cardboost.problem.trace import Record, Status
from cardboost.solvers.matrix import MatrixProblem, SolverResult, check_matrix

Array = NDArray[np.float64]

_PAIRS = 60  # of steps and changes of the gradient that make up the metric of quasi-Newton steps
_ENDS = ("limit", "look", "precision")  # why their kernel returns, by its code
#: quasi-Newton steps after which the bound is looked at even if it cannot be close
_LOOK_EVERY = 50
#: entries of the matrix times steps in one call of the kernel, which cannot be interrupted
_ENTRIES_PER_CALL = 2 * 10**9


def minimize_l1(
    A: ArrayLike,
    l1: ArrayLike,
    *,
    l2: ArrayLike = 0.0,
    loss: str = "exponential",
    max_weight: ArrayLike | None = None,
    tol: float = 1e-8,
    sample_weight: ArrayLike | None = None,
    max_iter: int = 10_000,
    callback: Callable[[Record], object] | None = None,
    n_jobs: int | None = 1,
) -> SolverResult:
    """Minimise ``mean loss(A w) + l1 . w + l2/2 . w^2`` over ``0 <= w <= max_weight``.

    Columns enter a working set by their edge, and its weights are optimised by Newton steps. With ``l2``
    above 0 for every column, quasi-Newton steps optimise all weights at once.

    Parameters
    ----------
    A : array-like of shape (n_rows, n_columns)
        One row per example and one column per learner, with the label multiplied in. Any finite numbers.
    l1 : float or array-like of shape (n_columns,)
        Regularisation per unit of weight.
    l2 : float or array-like of shape (n_columns,), default=0.0
        Regularisation per half squared weight.
    loss : {"exponential", "logistic", "squared_hinge", "hinge"}, default="exponential"
        Loss of the margin.
    max_weight : float, array-like of shape (n_columns,) or None, default=None
        Largest weight of a column. None: no limit.
    tol : float, default=1e-8
        Relative duality gap at which to stop.
    sample_weight : array-like of shape (n_rows,) or None, default=None
        Weights of the rows. None: all are equal.
    max_iter : int, default=10000
        At most so many steps.
    callback : callable or None, default=None
        Called with every record of ``history``. The solver stops when it returns True.
    n_jobs : int or None, default=1
        Number of threads. None: all cores that joblib and threadpoolctl allow; -1: all cores.

    Returns
    -------
    SolverResult
        The weights, with objective, lower bound and dual variables.

    Raises
    ------
    ValueError
        If an argument is out of range or has the wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> from cardboost.solvers import minimize_l1
    >>> A = np.array([[1, -1], [1, 1], [-1, 1], [1, 1]])
    >>> result = minimize_l1(A, 0.1)
    >>> result.success, np.round(result.x, 3)
    (True, array([0.805, 0.805]))
    """
    kind = get_loss(loss)
    problem = check_matrix(A, l1, l2, 0.0, max_weight, sample_weight, pack=True)
    tol, max_iter = number("tol", tol, 0.0), whole("max_iter", max_iter, 0)
    threads = usable_threads(n_jobs)
    risk = EmpiricalRisk(kind, problem.weights, None, threads)
    progress = _Progress(tol, max_iter, callback)
    solve = _all_columns if (problem.prices.l2 > 0).all() else _working_set
    x, point, status = solve(problem, risk, progress)
    fun, bound, dual = point.value + problem.prices.cost(x), progress.bound, point.v * risk.weights.normalised
    history, optimal = tuple(progress.records), status is Status.OPTIMAL
    message = f"the relative duality gap is at most {tol:g}" if optimal else status.message
    return SolverResult(x, fun, fun - bound, bound, progress.steps, history, status, message, optimal, dual)


class _Progress:
    """Bound, history and the reasons to stop that both ways of solving share."""

    def __init__(self, tol: float, max_iter: int, callback: Callable[[Record], object] | None) -> None:
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.started = clock()
        self.records: list[Record] = []
        self.bound, self.steps = 0.0, 0

    @property
    def seconds(self) -> float:
        return clock() - self.started

    @property
    def proven(self) -> bool:
        """Whether the gap of the last point is within the tolerance."""
        objective = self.records[-1].objective
        return objective - self.bound <= self.tol * abs(objective)

    def look(self, point: RiskPoint, edges: Array, prices: Prices, sizes: float | Array) -> None:
        """The bound at this point, if it is the best so far."""
        self.bound = max(self.bound, dual_bound(point, edges, prices, sizes=sizes)[0])

    def record(self, columns: int, terms: int, objective: float, largest: float, seconds: float) -> None:
        self.records.append(Record(columns, terms, objective, self.bound, largest, seconds))

    def stop(self) -> Status | None:
        """Why to stop at the last point, or None."""
        if self.callback is not None and self.callback(self.records[-1]):
            return Status.STOPPED
        if self.proven:
            return Status.OPTIMAL
        return Status.ITERATION_LIMIT if self.steps >= self.max_iter else None


def _working_set(
    problem: MatrixProblem, risk: EmpiricalRisk, progress: _Progress
) -> tuple[Array, RiskPoint, Status]:
    """Alternate between one look at all columns and Newton steps on those in use."""
    store = ColumnStore(column_lines(problem.A), risk.threads)
    everything, prices = np.arange(len(store), dtype=np.int32), problem.prices
    x, point, stuck, bound = np.zeros(len(store)), risk.evaluate(np.zeros(store.n_rows)), 0, progress.bound
    while True:
        edges = store.edges(everything, point)
        objective, used = point.value + prices.cost(x), np.flatnonzero(x)
        progress.look(point, edges, prices, store.sizes)
        progress.record(len(used), len(used), objective, float(edges.max()), progress.seconds)
        status = progress.stop()
        if status is not None:
            return x, point, status
        excess = np.where(x > 0, -math.inf, edges - prices.l1)
        order = np.argsort(-excess, kind="stable")[: max(10, len(used) // 2)]
        chosen = np.concatenate([used, order[excess[order] > 0]]).astype(np.int32)
        pool = MatrixPool(store, np.sort(chosen))
        master = Master(pool, risk, lambda pool: prices[pool.which], x[pool.which], point)  # type: ignore[attr-defined]
        progress.steps += max(1, master.solve(tol=None, max_iter=2).n_iter)
        x, point = spread(master.weights, pool.which, len(store)), master.point
        better = master.objective < objective or progress.bound > bound
        stuck, bound = 0 if better else stuck + 1, progress.bound
        if stuck >= 5:
            return x, point, Status.PRECISION


def _all_columns(
    problem: MatrixProblem, risk: EmpiricalRisk, progress: _Progress
) -> tuple[Array, RiskPoint, Status]:
    """Quasi-Newton steps on all columns; for l2 > 0, where the optimum may use very many of them."""
    n, prices = len(problem.prices), problem.prices
    matrix = problem.signs or ColumnStore(column_lines(problem.A), risk.threads)
    sizes = matrix.sizes if isinstance(matrix, ColumnStore) else 1.0
    steps = ProjectedLbfgs(matrix, risk, prices)
    most = 1 if progress.callback is not None else _ENTRIES_PER_CALL // problem.A.size + 1
    while True:
        to_limit, before = max(1, progress.max_iter - progress.steps), progress.seconds
        to_look = _LOOK_EVERY - progress.steps % _LOOK_EVERY
        end, points = steps.advance(min(most, to_limit, to_look), progress.tol)
        progress.steps += len(points)
        point = risk.evaluate(steps.F)
        pause = end != "limit" or len(points) in (to_limit, to_look)
        for k, (objective, largest, terms, seconds) in enumerate(points.tolist(), 1):
            if pause and k == len(points):
                progress.look(point, steps.edges, prices, sizes)
            progress.record(n, int(terms), objective, largest, before + seconds)
        if end == "precision":
            progress.look(point, steps.edges, prices, sizes)
            return steps.x, point, Status.OPTIMAL if progress.proven else Status.PRECISION
        status = progress.stop()
        if status is not None:
            return steps.x, point, status


class ProjectedLbfgs:
    """Projected limited-memory BFGS: weights of all columns, from zero on, with margins ``F`` and edges.

    With l2 > 0 the optimum may use hundreds of similar columns; a Newton step on them costs a large dense
    factorisation. Here a step costs two products with the matrix. The steps are one kernel; this class holds
    its state between calls.

    A column and its opposite are one weight with a price and a limit on either side of zero: at an optimum
    no more than one of the two is in use.
    """

    def __init__(self, matrix: SignMatrix | ColumnStore, risk: EmpiricalRisk, prices: Prices) -> None:
        self.risk = risk
        if isinstance(matrix, SignMatrix):
            self._steps: Any = partial(_kernels.lbfgs_signs, matrix.by_column, matrix.by_row)
            self._sides = matrix.sides
        else:
            self._steps = partial(_kernels.lbfgs_dense, matrix.values, matrix.signs, matrix.largest)
            columns = np.arange(len(prices), dtype=np.int32)
            self._sides = np.stack([columns, np.full_like(columns, -1)])
        self._open = self._sides >= 0
        n = self._sides.shape[1]
        self._l1, self._l2, self._limit = (
            np.where(self._open, price[self._sides], 0.0)
            for price in (prices.l1, prices.l2, prices.max_weight)
        )
        self._z, self.F, self._edges = np.zeros(n), np.zeros(risk.weights.n_rows), np.zeros(n)
        self._pairs = np.empty((2, _PAIRS, n))
        self._numbers, self._counts = np.zeros(2), np.zeros(4, dtype=np.int64)

    @property
    def x(self) -> Array:
        """The weight of every column."""
        return self._per_column(np.maximum(self._z, 0.0), np.maximum(-self._z, 0.0))

    @property
    def edges(self) -> Array:
        """The edge of every column."""
        return self._per_column(self._edges, -self._edges)

    def _per_column(self, plus: Array, minus: Array) -> Array:
        """One value per column from those of either side of zero."""
        values = np.empty(np.count_nonzero(self._open))
        for columns, present, side in zip(self._sides, self._open, (plus, minus), strict=True):
            values[columns[present]] = side[present]
        return values

    def advance(self, most: int, tol: float) -> tuple[str, Array]:
        """Take steps, the first point of all being the start.

        Parameters
        ----------
        most : int
            The most points.
        tol : float
            Relative duality gap at which to return.

        Returns
        -------
        end : str
            "limit" after ``most`` points, "look" where the gap seems to be at most ``tol`` or nothing was
            gained, "precision" where no step lowers the objective.
        records : array
            A row per point: objective, largest edge, weights in use, seconds.
        """
        w = self.risk.weights
        end, points, records = self._steps(
            self.risk.loss.code, w.count, w.factor, w.totals, self._l1, self._l2, self._limit, self._z,
            self.F, self._edges, self._pairs, self._numbers, self._counts, tol, most, self.risk.threads,
        )  # fmt: skip
        return _ENDS[end], records[:points]

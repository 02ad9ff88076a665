"""Solvers on a plain matrix: ``A`` has one row per example and one column per learner, y multiplied in."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cardboost.boosting.column_generation import TraceRecord
from cardboost.budget import Budget
from cardboost.cardinality.merge import equal_columns
from cardboost.cardinality.problem import CardinalityProblem
from cardboost.cardinality.qubo import QuboResult
from cardboost.cardinality.select import SearchOptions, Selection, check_method, select
from cardboost.cardinality.tabu import TabuResult, check_bits
from cardboost.certificate.bounds import dual_bound
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import CertifiedProblem, ProvenScope, write_certificate
from cardboost.data.table import Table
from cardboost.dictionary.columns import ColumnStore, MatrixPool, column_lines
from cardboost.losses import get_loss
from cardboost.master.lbfgs import ProjectedLbfgs
from cardboost.master.newton import Master
from cardboost.master.problem import Prices
from cardboost.matrix import MatrixProblem, check_matrix
from cardboost.on_simplex import SimplexResult, minimize_on_simplex
from cardboost.risk import EmpiricalRisk, RiskPoint
from cardboost.stump_columns import Stump, StumpColumns
from cardboost.threads import usable_threads
from cardboost.validation import number, whole

__all__ = [
    "SelectionResult", "SimplexResult", "SolverResult", "Stump", "StumpColumns",
    "minimize_l1", "minimize_on_simplex", "select_columns",
]  # fmt: skip

Array = NDArray[np.float64]

#: quasi-Newton steps after which the bound is looked at even if it cannot be close
_LOOK_EVERY = 50
#: entries of the matrix times steps in one call of the kernel, which cannot be interrupted
_ENTRIES_PER_CALL = 2 * 10**9


@dataclass(frozen=True, eq=False)
class SolverResult:
    """The weights of all columns and the proof of their quality."""

    x: Array
    fun: float
    gap: float
    lower_bound: float
    nit: int
    history: tuple[TraceRecord, ...]
    dual: Array
    status: str
    message: str
    success: bool


@dataclass(frozen=True, eq=False)
class SelectionResult:
    """The columns chosen, their weights, and how much better any other choice could be.

    ``nodes`` of the exact search, 0 without one; ``sampling`` and ``tabu`` say what those searches did.
    """

    x: Array
    support: NDArray[np.intp]
    objective: float
    lower_bound: float
    gap: float
    guarantee: float
    status: str
    certificate: Certificate
    nodes: int
    sampling: QuboResult | None = None
    tabu: TabuResult | None = None


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
    callback: Callable[[TraceRecord], object] | None = None,
    n_jobs: int | None = 1,
) -> SolverResult:
    """Minimise ``mean loss(A w) + l1 . w + l2/2 . w^2`` over ``0 <= w <= max_weight``.

    Stops when the relative duality gap is at most ``tol``. Columns enter a working set by their edge; the
    weights of the working set are made optimal by Newton steps. ``l1``, ``l2`` and ``max_weight`` may be
    arrays with one entry per column.

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
    solve = _all_columns if (problem.l2 > 0).all() else _working_set
    x, point, status = solve(problem, risk, progress)
    fun = point.value + problem.prices(np.arange(len(x), dtype=np.int32)).cost(x)
    bound = progress.bound
    message = {
        "optimal": f"the relative duality gap is at most {tol:g}",
        "iteration limit": "max_iter was reached",
        "stopped": "the callback asked to stop",
        "precision": "no step lowers the objective any more; the gap is that of double precision",
    }[status]
    return SolverResult(
        x=x,
        fun=fun,
        gap=fun - bound,
        lower_bound=bound,
        nit=progress.steps,
        history=tuple(progress.records),
        dual=point.v * problem.weights.normalised,
        status=status,
        message=message,
        success=status == "optimal",
    )


class _Progress:
    """Bound, history and the reasons to stop that both ways of solving share."""

    def __init__(self, tol: float, max_iter: int, callback: Callable[[TraceRecord], object] | None) -> None:
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.started = time.perf_counter()
        self.records: list[TraceRecord] = []
        self.bound, self.steps = 0.0, 0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    @property
    def proven(self) -> bool:
        """Whether the gap of the last point is within the tolerance."""
        objective = self.records[-1].objective
        return objective - self.bound <= self.tol * abs(objective)

    def look(self, point: RiskPoint, edges: Array, prices: Prices, sizes: float | Array) -> None:
        """The bound at this point, if it is the best so far."""
        self.bound = max(self.bound, dual_bound(point, edges, prices, sizes=sizes)[0])

    def record(self, columns: int, terms: int, objective: float, largest: float, seconds: float) -> None:
        self.records.append(TraceRecord(columns, terms, objective, self.bound, largest, seconds))

    def stop(self) -> str | None:
        """Why to stop at the last point, or None."""
        if self.callback is not None and self.callback(self.records[-1]):
            return "stopped"
        if self.proven:
            return "optimal"
        return "iteration limit" if self.steps >= self.max_iter else None


def _working_set(
    problem: MatrixProblem, risk: EmpiricalRisk, progress: _Progress
) -> tuple[Array, RiskPoint, str]:
    """Alternate between one look at all columns and Newton steps on those in use."""
    store = ColumnStore(column_lines(problem.A), risk.threads)
    everything = np.arange(len(store), dtype=np.int32)
    prices = problem.prices(everything)
    x, point, stuck = np.zeros(len(store)), risk.evaluate(np.zeros(problem.A.shape[0])), 0
    bound = progress.bound
    while True:
        edges = store.edges(everything, point)
        objective = point.value + prices.cost(x)
        used = np.flatnonzero(x)
        progress.look(point, edges, prices, store.sizes)
        largest = float(edges.max(initial=-math.inf))
        progress.record(len(used), len(used), objective, largest, progress.seconds)
        status = progress.stop()
        if status is not None:
            return x, point, status
        excess = np.where(x > 0, -math.inf, edges - prices.l1)
        wanted = max(10, len(used) // 2)
        order = np.argsort(-excess, kind="stable")[:wanted]
        chosen = np.concatenate([used, order[excess[order] > 0]]).astype(np.int32)
        pool = MatrixPool(store, np.sort(chosen))
        own = problem.prices(pool.which)
        master = Master(pool, risk, lambda _, own=own: own, x[pool.which], point)  # type: ignore[misc]
        solution = master.solve(tol=None, max_iter=2)
        progress.steps += max(1, solution.n_iter)
        x = np.zeros(len(store))
        x[pool.which] = master.weights
        point = master.point
        better = master.objective < objective or progress.bound > bound
        stuck, bound = 0 if better else stuck + 1, progress.bound
        if stuck >= 5:
            return x, point, "precision"


def _all_columns(
    problem: MatrixProblem, risk: EmpiricalRisk, progress: _Progress
) -> tuple[Array, RiskPoint, str]:
    """Quasi-Newton steps on all columns; for l2 > 0, where the optimum may use very many of them."""
    n = problem.A.shape[1]
    prices = problem.prices(np.arange(n, dtype=np.int32))
    matrix = problem.signs or ColumnStore(column_lines(problem.A), risk.threads)
    sizes = matrix.sizes if isinstance(matrix, ColumnStore) else 1.0
    steps = ProjectedLbfgs(matrix, risk, prices)
    most = 1 if progress.callback is not None else _ENTRIES_PER_CALL // problem.A.size + 1
    while True:
        to_limit = max(1, progress.max_iter - progress.steps)
        to_look = _LOOK_EVERY - progress.steps % _LOOK_EVERY
        before = progress.seconds
        end, points = steps.advance(min(most, to_limit, to_look), progress.tol)
        progress.steps += len(points)
        point = risk.evaluate(steps.F)
        for last, (objective, largest, terms, seconds) in zip(
            range(1 - len(points), 1), points.tolist(), strict=True
        ):
            if last == 0 and (end != "limit" or to_limit == len(points) or to_look == len(points)):
                progress.look(point, steps.edges, prices, sizes)
            progress.record(n, int(terms), objective, largest, before + seconds)
        if end == "precision":
            progress.look(point, steps.edges, prices, sizes)
            return steps.x, point, "optimal" if progress.proven else end
        status = progress.stop()
        if status is not None:
            return steps.x, point, status


def select_columns(
    A: ArrayLike,
    *,
    l0: ArrayLike = 0.0,
    max_terms: int | None = None,
    l1: ArrayLike = 1e-4,
    l2: ArrayLike = 0.0,
    max_weight: ArrayLike | None = None,
    loss: str = "exponential",
    sample_weight: ArrayLike | None = None,
    method: Any = "exact",
    bits: int | Literal["auto"] = 6,
    time_limit: float | None = None,
    max_nodes: int | None = None,
    seed: int = 0,
    n_jobs: int | None = 1,
    free: ArrayLike = (),
    free_weight: float = 20.0,
) -> SelectionResult:
    """Choose few columns of ``A`` and their weights: each costs ``l0``, at most ``max_terms`` are used.

    ``method="exact"`` is branch and bound: it ends with the best choice and status "optimal", or, after
    ``max_nodes`` nodes (default: no limit) or ``time_limit`` seconds, with the best one found and a bound on
    how much better any other can be. Reading, checking and digesting ``A`` are not cut short: what they take
    is no longer there for the search. ``"polish"`` is local search with convex refits and the bound of the
    convex relaxation; ``"tabu"`` goes on from there with a tabu search over weights of ``bits`` bits ("auto":
    as many as the convex weights need), for the exponential loss and entries -1 and 1; ``n_jobs`` of its
    starts run at the same time. ``"auto"`` is polish, tabu where it can be, and exact search within a budget
    of work that takes seconds.
    ``"qubo"`` lets a sampler choose, with ``bits`` bits per weight: the tabu search of dwave-samplers, or a
    dimod sampler that is given as ``method``, or a function that makes one; ``sampling`` says what it gave
    (docs/annealers.md).

    ``free`` columns neither count nor cost, and weigh at most ``free_weight`` each: an intercept is two of
    them,
    y and -y.

    ``max_weight=None`` takes twice the largest weight that local search finds; of columns whose entries reach
    beyond 1024, or not 1/1024, the weight in units of the column's power of two. ``lower_bound`` and
    ``status`` are the certificate's; where a search is too large for its 5 MB, they are what it holds.

    >>> import numpy as np
    >>> from cardboost.solvers import select_columns
    >>> A = np.where(np.random.default_rng(0).random((200, 12)) < 0.6, 1, -1)
    >>> result = select_columns(A, l0=0.02)
    >>> result.status, len(result.support), result.certificate.verify(A)
    ('optimal', 7, True)
    """
    check_method("method", method)
    kind = get_loss(loss)
    limit = None if time_limit is None else number("time_limit", time_limit, 0.0, strict=True)
    budget = Budget.of(limit)
    problem = check_matrix(A, l1, l2, l0, max_weight, sample_weight)
    problem = problem.with_free(free, number("free_weight", free_weight, 0.0, strict=True))
    n = problem.A.shape[1]
    max_terms = None if max_terms is None else whole("max_terms", max_terms, 0)
    check_bits(bits)
    seed = whole("seed", seed, 0)
    if max_nodes is not None:
        whole("max_nodes", max_nodes, 1)
    if max_terms is None and not (problem.l0 > 0).any():
        raise ValueError(
            "Give max_terms, l0 > 0, or both; without them every column may be used: see minimize_l1."
        )
    threads = usable_threads(n_jobs)
    risk = EmpiricalRisk(kind, problem.weights, None, threads)
    store = ColumnStore(column_lines(problem.A), threads)
    # before the search, whose time is what all this leaves
    digest = Table(tuple(store.values), None, store.n_rows).digest(None, _positive(sample_weight), threads)
    distinct = _distinct_columns(problem, store.values)
    forbidden, given = bool((problem.max_weight == 0).any()), problem.prices(distinct)
    problem, exponent = problem.scaled()
    if exponent.any():
        store = ColumnStore(column_lines(problem.A), threads)
    exponent = exponent[distinct]
    pool = MatrixPool(store, distinct)
    # the checker's curvature is that of the columns as they are
    task = CardinalityProblem(pool, risk, problem.prices(distinct), max_terms, curved=not exponent.any())
    options = SearchOptions(method, max_nodes, bits, seed, n_jobs)
    found = select(task, None, options, budget, boxed=max_weight is not None)
    task = replace(task, prices=found.problem.prices)
    certificate = Certificate(_matrix_certificate(task, given, exponent, digest, found, forbidden))
    x = np.zeros(n)
    x[distinct] = np.ldexp(found.incumbent.weights, -exponent)
    reason = "feasible" if found.status == "optimal" else found.status
    return SelectionResult(
        x=x,
        support=np.flatnonzero(x),
        objective=certificate.objective,
        lower_bound=certificate.lower_bound,
        gap=certificate.gap,
        guarantee=certificate.guarantee,
        status=reason if certificate.status == "feasible" else "optimal",
        certificate=certificate,
        nodes=found.nodes,
        sampling=found.sampling,
        tabu=found.tabu,
    )


def _matrix_certificate(
    task: CardinalityProblem,
    given: Prices,
    exponent: NDArray[np.intp],
    digest: str,
    found: Selection,
    forbidden: bool,
) -> dict[str, Any]:
    """The certificate in the units of A, whose columns the search has divided by 2**exponent.

    ``forbidden``: whether A has columns that may not be used, which the certificate leaves out.
    """
    assert isinstance(task.pool, MatrixPool)
    distinct, store = task.pool.which, task.pool.store
    null = task.risk.evaluate(np.zeros(store.n_rows)).value
    problem = CertifiedProblem(
        kind="matrix",
        loss=task.risk.loss.name,
        max_terms=task.max_terms,
        columns={"feature": distinct.tolist()},
        prices=replace(given, max_weight=np.ldexp(task.prices.max_weight, -exponent)),
        rows=store.n_rows,
        features=len(store),
        digest=digest,
        candidates=forbidden,
    )
    weights = found.incumbent.weights
    objective = task.objective(task.risk.evaluate(task.pool.margins(weights)).value, weights)
    leaves = [replace(leaf, weights=np.ldexp(leaf.weights, -exponent)) for leaf in found.leaves]
    bounds = [ProvenScope("pool", len(distinct), leaves, found.centre if task.curved else None)]
    return write_certificate(problem, np.ldexp(weights, -exponent), objective, (0.0, null), bounds)


def _positive(sample_weight: ArrayLike | None) -> Array | None:
    """The weights of the rows that have one."""
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return None if weight is None else weight[weight > 0]


def _distinct_columns(problem: MatrixProblem, lines: NDArray[Any]) -> NDArray[np.int32]:
    """Of identical columns, those that no other one undercuts in every price and the box.

    ``lines``: the columns one after the other.
    """
    usable = np.flatnonzero(problem.max_weight > 0)
    group = equal_columns(lines.T)[usable]
    counted = np.ones(len(problem.l0)) if problem.charged is None else problem.charged.astype(np.float64)
    costs = np.stack([counted, problem.l0, problem.l1, problem.l2, -problem.max_weight])[:, usable]
    order = np.lexsort((usable, *costs[::-1], group))
    kept: list[int] = []
    rivals: list[int] = []
    for k in order:
        if rivals and group[rivals[0]] != group[k]:
            rivals = []
        if not any((costs[:, r] <= costs[:, k]).all() for r in rivals):
            rivals.append(int(k))
            kept.append(int(usable[k]))
    return np.sort(np.array(kept, dtype=np.int32))

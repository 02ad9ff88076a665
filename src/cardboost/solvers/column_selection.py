"""``select_columns``: few columns of a matrix and their weights, with a certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import CertifiedProblem, ProvenScope, write_certificate
from cardboost.data.arguments import number, whole
from cardboost.data.table import Table
from cardboost.data.threads import usable_threads
from cardboost.dictionary.columns import ColumnStore, MatrixPool, column_lines
from cardboost.problem.budget import Budget
from cardboost.problem.losses import get_loss
from cardboost.problem.prices import Prices
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection.merge import equal_columns
from cardboost.selection.qubo import SamplingRecord
from cardboost.selection.select import SearchOptions, Selection, check_method, select
from cardboost.selection.selection_problem import SelectionProblem
from cardboost.selection.tabu import TabuRecord, check_bits
from cardboost.solvers.matrix import MatrixProblem, check_matrix

Array = NDArray[np.float64]


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
    sampling: SamplingRecord | None = None
    tabu: TabuRecord | None = None


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
    random_state: int = 0,
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
    random_state = whole("random_state", random_state, 0)
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
    task = SelectionProblem(pool, risk, problem.prices(distinct), max_terms, curved=not exponent.any())
    options = SearchOptions(method, max_nodes, bits, random_state, n_jobs)
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
    task: SelectionProblem,
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

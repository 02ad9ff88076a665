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
from cardboost.dictionary.columns import ColumnStore, MatrixPool, column_lines, spread
from cardboost.problem.budget import Budget
from cardboost.problem.losses import get_loss
from cardboost.problem.prices import Prices
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection.merge import equal_columns
from cardboost.selection.qubo import SamplingRecord
from cardboost.selection.select import SearchOptions, Selection, check_method, select
from cardboost.selection.selection_problem import SelectionProblem
from cardboost.selection.tabu import TabuRecord, check_bits
from cardboost.solvers.matrix import check_matrix

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SelectionResult:
    """The columns selected, their weights, and how much better any other selection could be.

    Attributes
    ----------
    x : array of shape (n_columns,)
        Weights of all columns; 0 where a column is not selected.
    support : array of int
        Positions of the selected columns.
    objective : float
        Loss and regularisation of the selection.
    lower_bound : float
        No selection has an objective below this bound.
    gap : float
        ``objective - lower_bound``.
    guarantee : float
        At least this share of the best possible improvement over the empty model is reached.
    status : str
        "optimal" where the gap is closed; otherwise why the search ended, or "feasible".
    certificate : Certificate
        The claims and their proof; ``certificate.verify(A)`` checks them.
    nodes : int
        Nodes of the exact search; 0 without one.
    sampling : SamplingRecord or None
        What a sampler has contributed.
    tabu : TabuRecord or None
        What tabu search has done.
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
    """Select few columns of a matrix and their weights, with a certificate.

    Minimises the mean loss of the margins ``A x`` with regularisation ``l0`` per selected column, ``l1`` per
    unit of weight and ``l2`` per half squared weight, over weights from 0 to ``max_weight``. ``lower_bound``
    and ``status`` are those of the certificate; where a search is too large for its 5 MB, they are what it
    holds.

    Parameters
    ----------
    A : array-like of shape (n_rows, n_columns)
        One row per example and one column per learner, with the label multiplied in. Any finite numbers.
    l0 : float or array-like of shape (n_columns,), default=0.0
        Regularisation per selected column.
    max_terms : int or None, default=None
        At most so many columns are selected. Either this or ``l0`` has to be given, or both.
    l1 : float or array-like of shape (n_columns,), default=1e-4
        Regularisation per unit of weight.
    l2 : float or array-like of shape (n_columns,), default=0.0
        Regularisation per half squared weight.
    max_weight : float, array-like of shape (n_columns,) or None, default=None
        Largest weight of a column. None: twice the largest weight that local search finds; for columns whose
        entries reach beyond 1024, or not 1/1024, the weight is measured in units of the column's power of
        two.
    loss : {"exponential", "logistic", "squared_hinge", "hinge"}, default="exponential"
        Loss of the margin. Exact search takes the first two.
    sample_weight : array-like of shape (n_rows,) or None, default=None
        Weights of the rows. None: all are equal.
    method : {"exact", "auto", "polish", "tabu", "qubo"} or a sampler, default="exact"
        How columns are selected:

        - "exact" is branch and bound. It ends with the best selection and status "optimal", or at
          ``max_nodes`` or ``time_limit`` with the best selection so far and a lower bound.
        - "polish" is local search with convex refits and the bound of the convex relaxation.
        - "tabu" continues from there with tabu search, for the exponential loss and entries -1 and 1.
        - "auto" is "polish", "tabu" where possible, and exact search with a budget of some seconds.
        - "qubo", a dimod sampler or a function that makes one lets an annealer select (docs/annealers.md).
    bits : int or "auto", default=6
        Bits per weight in tabu search and for samplers, from 1 to 16. "auto": as many as the convex weights
        need in tabu search, and 6 for samplers.
    time_limit : float or None, default=None
        Seconds after which the best selection so far is returned. Reading, checking and digesting ``A`` are
        not cut short, but their time counts.
    max_nodes : int or None, default=None
        At most so many nodes of the exact search. None: no limit.
    random_state : int, default=0
        Seed of the searches.
    n_jobs : int or None, default=1
        Number of threads. None: all cores that joblib and threadpoolctl allow; -1: all cores.
    free : array-like of int, default=()
        Columns that neither count nor cost. An intercept is two of them, y and -y.
    free_weight : float, default=20.0
        Largest weight of a free column.

    Returns
    -------
    SelectionResult
        The selection with its objective, lower bound and certificate.

    Raises
    ------
    ValueError
        If an argument is out of range, neither ``max_terms`` nor ``l0`` is given, or ``method`` does not take
        the problem.

    Examples
    --------
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
    max_terms = None if max_terms is None else whole("max_terms", max_terms, 0)
    check_bits(bits)
    random_state = whole("random_state", random_state, 0)
    if max_nodes is not None:
        whole("max_nodes", max_nodes, 1)
    if max_terms is None and not (problem.prices.l0 > 0).any():
        raise ValueError(
            "Give max_terms, l0 > 0, or both; without them every column may be used: see minimize_l1."
        )
    threads = usable_threads(n_jobs)
    risk = EmpiricalRisk(kind, problem.weights, None, threads)
    store = ColumnStore(column_lines(problem.A), threads)
    # before the search, whose time is what all this leaves
    digest = Table(tuple(store.values), None, store.n_rows).digest(None, problem.sample_weight, threads)
    distinct = _distinct_columns(problem.prices, store.values)
    forbidden, unscaled = bool((problem.prices.max_weight == 0).any()), problem.prices[distinct]
    problem, exponent = problem.scaled()
    if exponent.any():
        store = ColumnStore(column_lines(problem.A), threads)
    exponent = exponent[distinct]
    pool = MatrixPool(store, distinct)
    # the checker's curvature is that of the columns as they are
    task = SelectionProblem(pool, risk, problem.prices[distinct], max_terms, curved=not exponent.any())
    options = SearchOptions(method, max_nodes, bits, random_state, n_jobs)
    selection = select(task, None, options, budget, boxed=max_weight is not None)
    task = replace(task, prices=selection.problem.prices)
    certificate = Certificate(_matrix_certificate(task, unscaled, exponent, digest, selection, forbidden))
    x = spread(np.ldexp(selection.incumbent.weights, -exponent), distinct, len(problem.prices))
    reason = "feasible" if selection.status == "optimal" else selection.status
    return SelectionResult(
        x=x,
        support=np.flatnonzero(x),
        objective=certificate.objective,
        lower_bound=certificate.lower_bound,
        gap=certificate.gap,
        guarantee=certificate.guarantee,
        status=reason if certificate.status == "feasible" else "optimal",
        certificate=certificate,
        nodes=selection.nodes,
        sampling=selection.sampling,
        tabu=selection.tabu,
    )


def _matrix_certificate(
    task: SelectionProblem,
    unscaled: Prices,
    exponent: NDArray[np.intp],
    digest: str,
    selection: Selection,
    forbidden: bool,
) -> dict[str, Any]:
    """The certificate in the units of A, whose columns the search has divided by 2**exponent.

    ``unscaled``: the regularisation in these units. ``forbidden``: whether A has columns that may not be
    used, which the certificate leaves out.
    """
    assert isinstance(task.pool, MatrixPool)
    distinct, store = task.pool.which, task.pool.store
    null = task.risk.evaluate(np.zeros(store.n_rows)).value
    problem = CertifiedProblem(
        kind="matrix",
        loss=task.risk.loss.name,
        max_terms=task.max_terms,
        columns={"feature": distinct.tolist()},
        prices=replace(unscaled, max_weight=np.ldexp(task.prices.max_weight, -exponent)),
        rows=store.n_rows,
        features=len(store),
        digest=digest,
        candidates=forbidden,
    )
    weights = selection.incumbent.weights
    objective = task.objective(task.risk.evaluate(task.pool.margins(weights)).value, weights)
    leaves = [replace(leaf, weights=np.ldexp(leaf.weights, -exponent)) for leaf in selection.leaves]
    bounds = [ProvenScope("pool", len(distinct), leaves, selection.centre if task.curved else None)]
    return write_certificate(problem, np.ldexp(weights, -exponent), objective, (0.0, null), bounds)


def _distinct_columns(p: Prices, lines: NDArray[Any]) -> NDArray[np.int32]:
    """Of identical columns, those that no other one undercuts in every price and the box.

    ``lines``: the columns one after the other.
    """
    usable = np.flatnonzero(p.max_weight > 0)
    group = equal_columns(lines.T)[usable]
    costs = np.stack([p.charged.astype(np.float64), p.l0, p.l1, p.l2, -p.max_weight])[:, usable]
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

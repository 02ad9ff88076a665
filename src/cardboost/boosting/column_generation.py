"""The one loop: ask the dictionary for columns, make all weights optimal, pass the row weights back.

row weights u  ->  best unseen columns and a bound on all others  ->  pool  ->  master  ->  u ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from cardboost.dictionary.base import ColumnPool, Criterion, Dictionary, Proposals
from cardboost.master.newton import Master
from cardboost.problem.bound import dual_bound
from cardboost.problem.budget import clock
from cardboost.problem.prices import MasterSolution, Prices

Array = NDArray[np.float64]

STATUS = {
    "optimal": "the duality gap over the whole dictionary is within tol",
    "column limit": "the limit on columns was reached",
    "exhausted": "the search found no further column with an edge above its price",
    "stagnant": "many rounds in a row changed nothing",
    "iteration limit": "max_iter was reached",
    "precision": "no step lowers the objective any more; the gap is that of double precision",
    "time limit": "time_limit was reached",
    "stopped": "the callback asked to stop",
    "perfect": "one learner makes no mistake: it is the model",
    "no edge": "no learner is better than chance at the row weights",
    "no loss": "no row has any loss left",
    "tolerance": "no learner has an edge above tol",
    "stuck": "no single learner lowers the loss any further",
    "validation": "the loss on held-out rows no longer falls",
}


@dataclass(frozen=True)
class TraceRecord:
    """The state after one round."""

    n_columns: int
    n_terms: int
    objective: float
    lower_bound: float
    edge: float
    seconds: float


@dataclass(frozen=True)
class Trace(Sequence[TraceRecord]):
    """What happened, round by round, and why it ended."""

    records: tuple[TraceRecord, ...]
    status: str

    @property
    def message(self) -> str:
        return STATUS[self.status]

    @overload
    def __getitem__(self, k: int) -> TraceRecord: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[TraceRecord]: ...
    def __getitem__(self, k: int | slice) -> TraceRecord | Sequence[TraceRecord]:
        return self.records[k]

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[TraceRecord]:
        return iter(self.records)


@dataclass(frozen=True)
class StopRule:
    """When to stop: so many columns, so small a gap, or no time for more."""

    max_columns: int
    tol: float = 0.0
    late: Callable[[], bool] = lambda: False  # whether to generate no more columns
    settled: Callable[[], bool] = lambda: False  # whether to end the last solve too


@dataclass(frozen=True)
class Pace:
    """How much is done per round. ``columns(n)``: how many to add when the pool has n."""

    columns: Callable[[int], int] = lambda n: 1
    newton_steps: int = 1
    step_tol: float | None = None  # promised drop, as a share of the objective, at which a round ends before
    final_tol: float | None = 1e-6  # of the last solve; None: no further solve
    certified: bool = True  # whether the last solve is to prove its tolerance over the pool
    full_search_every: int = 1  # rounds in between look only at promising features
    bound_growth: float = 1.0  # a bound is computed when the pool has grown by this factor


ONE_AT_A_TIME = Pace(newton_steps=50)


def generate(
    dictionary: Dictionary,
    master: Master,
    stop: StopRule,
    *,
    criterion: Criterion = "edge",
    l1: float = 0.0,
    l2: float = 0.0,
    unseen: Prices | None = None,
    pace: Pace = ONE_AT_A_TIME,
    callback: Callable[[TraceRecord], object] | None = None,
    started: float | None = None,
    scout: Callable[[ColumnPool, Array, int], tuple[Any, Array]] | None = None,
    known: int = 0,
) -> tuple[ColumnPool, MasterSolution, Trace]:
    """Grow ``master``'s pool until a stop rule holds.

    ``unseen`` are the prices of a column not in the pool; without them no bound is computed. ``scout`` finds
    columns with less work than the dictionary's search, which then only serves the bound, and suggests
    weights for all of them. ``known`` columns of the pool are from an earlier run and count in the records.
    """
    started = clock() if started is None else started
    pool = master.pool
    start_columns = pool.n_columns
    records: list[TraceRecord] = []
    status = "column limit"
    bound, bound_due, tight = -math.inf, 0.0, False
    while True:
        made = pool.n_columns - start_columns
        wanted = min(pace.columns(made), stop.max_columns - made)
        whole = len(records) % pace.full_search_every == 0 or wanted <= 0
        hint: Array | None = None
        atoms = None
        if scout is not None and wanted > 0:
            atoms, hint = scout(pool, master.weights, wanted)
        if atoms is not None and len(atoms):
            whole = made >= bound_due and stop.tol > 0
            proposals = Proposals(atoms, np.empty(len(atoms)), math.inf)
            if whole:
                proposals = replace(proposals, bound=dictionary.best_columns(master.point, 1, pool).bound)
        else:
            search = dictionary.best_columns if whole else dictionary.promising_columns
            proposals = search(master.point, max(wanted, 1), pool, criterion, l1, l2)
            if not whole and len(proposals) < wanted:
                whole = True
                proposals = dictionary.best_columns(master.point, max(wanted, 1), pool, criterion, l1, l2)
        if whole and unseen is not None and (made >= bound_due or wanted <= 0 or proposals.bound <= l1):
            edges = pool.edges(master.point)
            found = dual_bound(master.point, edges, master.prices, None, proposals.bound, unseen)[0]
            bound, bound_due = max(bound, found), pace.bound_growth * made
        objective = master.objective
        record = TraceRecord(
            known + made,
            int(np.count_nonzero(master.weights[pool.n_free :])),
            objective,
            bound,
            proposals.bound,
            clock() - started,
        )
        records.append(record)
        if callback is not None and callback(record):
            status = "stopped"
        elif stop.tol > 0 and objective - bound <= stop.tol * max(abs(objective), 1e-300):
            status = "optimal"
        elif wanted <= 0:
            status = "column limit"
        elif whole and (len(proposals) == 0 or proposals.bound <= l1):
            # with better weights another column may have an edge again
            if not tight and (len(proposals) or not dictionary.exact):
                tight = True
                records.pop()
                master.solve(tol=pace.final_tol or 1e-8, max_iter=200, late=stop.late)
                continue
            status = "exhausted"
        elif stop.late():
            status = "time limit"
        else:
            tight = False
            pool.append(proposals.atoms)
            master.extend()
            if hint is not None and len(hint) == pool.n_columns:
                master.try_weights(hint)
            master.solve(tol=pace.step_tol, max_iter=pace.newton_steps, certified=False)
            continue
        break
    steps = 0 if pace.final_tol is None else 200
    solution = master.solve(pace.final_tol, steps, pace.certified, stop.settled)
    return pool, solution, Trace(tuple(records), status)

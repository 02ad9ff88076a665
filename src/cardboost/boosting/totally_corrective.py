"""Totally corrective boosting: the weights of all columns are made optimal after every round.

With an ``l1`` this is L1CG, and its gap is over the whole dictionary; with a tiny one and a limit on columns
it is UCG with early stopping. The master is the convex problem over the pool (master/newton.py).

On large tables, columns are looked for on some of the rows and weighed on all of them: a :class:`Scout` runs
the same loop on a sketch of the rows. What is claimed of the model (objective, bound, certificate) is always
computed on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.loop import Observer, StopRule, Weighting, boost
from cardboost.dictionary.base import BY_EDGE, ColumnPool, Dictionary, Proposals, Scoring
from cardboost.master.newton import Master
from cardboost.problem.bound import dual_bound
from cardboost.problem.budget import clock
from cardboost.problem.prices import MasterSolution, PriceRule, Prices
from cardboost.problem.risk import EmpiricalRisk
from cardboost.problem.trace import Record, Status, Trace

Array = NDArray[np.float64]

SCOUT_ROWS = 32_768
_LARGE = 8  # a scout pays where the table has this many times its rows

#: Newton steps of a solve that is to reach its tolerance; it usually takes fewer than twenty
_MAX_STEPS = 200

#: proposes columns with less work than the dictionary's search, and weights for all columns
Scouting = Callable[[ColumnPool, Array, int], tuple[Any, Array]]


@dataclass(frozen=True)
class Pace:
    """How much is done per round.

    Parameters
    ----------
    columns : callable
        How many columns to add when the run has added n.
    newton_steps : int
        Of the master after every round, at most.
    step_tol : float or None
        Promised drop, as a share of the objective, at which the steps of a round end earlier.
    final_tol : float or None
        Tolerance of the last solve; None for no such solve.
    certified : bool
        Whether the last solve is to prove its tolerance over the pool.
    full_search_every : int
        Rounds in between look only at promising features.
    bound_growth : float
        A bound is computed when the pool has grown by this factor.
    """

    columns: Callable[[int], int] = lambda n: 1
    newton_steps: int = 1
    step_tol: float | None = None
    final_tol: float | None = 1e-6
    certified: bool = True
    full_search_every: int = 1
    bound_growth: float = 1.0


ONE_AT_A_TIME = Pace(newton_steps=50)


class TotallyCorrective(Weighting):
    """All weights by a convex master.

    Parameters
    ----------
    master : Master
        Solves for the weights; its pool grows.
    stop : StopRule
        Of the run.
    scoring : Scoring
        By which the dictionary looks for columns.
    unseen : Prices or None
        Regularisation of a column that is not in the pool; without it no bound is computed.
    pace : Pace
        How much is done per round.
    scout : callable or None
        Finds columns with less work than the dictionary, whose search then only serves the bound.
    n_earlier : int
        Columns of the pool from an earlier run; they count in the records.
    started : float or None
        When the clock of the records began.
    """

    def __init__(
        self,
        master: Master,
        stop: StopRule,
        *,
        scoring: Scoring = BY_EDGE,
        unseen: Prices | None = None,
        pace: Pace = ONE_AT_A_TIME,
        scout: Scouting | None = None,
        n_earlier: int = 0,
        started: float | None = None,
    ) -> None:
        self.master, self.stop, self.pace, self.scout = master, stop, pace, scout
        self.scoring, self.unseen = scoring, unseen
        self.n_earlier, self.started = n_earlier, clock() if started is None else started
        self.lower_bound = -math.inf
        self._first_columns = master.pool.n_columns
        self._bound_due = 0.0
        self._rounds = 0
        self._edge = math.inf
        self._tight, self._may_tighten = False, False
        self._suggestion: Array | None = None

    @property
    def n_added(self) -> int:
        return self.master.pool.n_columns - self._first_columns

    def batch(self, n_added: int) -> int:
        return self.pace.columns(n_added)

    def search(self, dictionary: Dictionary, n_columns: int) -> Proposals | Status:
        proposals, exhausted = self._propose(dictionary, n_columns)
        self._may_tighten = not self._tight and (len(proposals) > 0 or not dictionary.exact)
        return Status.EXHAUSTED if exhausted else proposals

    def tighten(self) -> bool:
        """With better weights another column may have an edge again."""
        if self._may_tighten:
            self._tight = True
            self.master.solve(tol=self.pace.final_tol or 1e-8, max_iter=_MAX_STEPS, late=self.stop.late)
        return self._may_tighten

    def _propose(self, dictionary: Dictionary, n_columns: int) -> tuple[Proposals, bool]:
        """The columns of a round, and whether there are none with an edge above ``l1``.

        A search of the whole dictionary also gives the bound.
        """
        master, pool = self.master, self.master.pool
        search_all = self._rounds % self.pace.full_search_every == 0 or n_columns <= 0
        k = max(n_columns, 1)
        columns, self._suggestion = None, None
        if self.scout is not None and n_columns > 0:
            columns, self._suggestion = self.scout(pool, master.weights, n_columns)
        if columns is not None and len(columns):
            proposals = Proposals(columns, np.empty(len(columns)), math.inf)
            search_all = self.n_added >= self._bound_due and self.stop.tol > 0
            if search_all:
                proposals = replace(proposals, bound=dictionary.best_columns(master.point, 1, pool).bound)
        else:
            search = dictionary.best_columns if search_all else dictionary.promising_columns
            proposals = search(master.point, k, pool, self.scoring)
            if not search_all and len(proposals) < n_columns:
                search_all = True
                proposals = dictionary.best_columns(master.point, k, pool, self.scoring)
        self._edge = proposals.bound
        without_edge = proposals.bound <= self.scoring.l1
        due = self.n_added >= self._bound_due or n_columns <= 0 or without_edge
        if search_all and self.unseen is not None and due:
            edges = pool.edges(master.point)
            bound = dual_bound(master.point, edges, master.prices, None, proposals.bound, self.unseen)[0]
            self.lower_bound = max(self.lower_bound, bound)
            self._bound_due = self.pace.bound_growth * self.n_added
        return proposals, n_columns > 0 and search_all and (len(proposals) == 0 or without_edge)

    def look(self) -> Record:
        master = self.master
        return Record(
            n_columns=self.n_earlier + self.n_added,
            n_terms=int(np.count_nonzero(master.weights[master.pool.n_free :])),
            objective=master.objective,
            lower_bound=self.lower_bound,
            edge=self._edge,
            seconds=clock() - self.started,
        )

    def update(self, proposals: Proposals) -> None:
        master, suggestion = self.master, self._suggestion
        self._tight = False
        self._rounds += 1
        master.pool.append(proposals.atoms)
        master.extend()
        if suggestion is not None and len(suggestion) == master.pool.n_columns:
            master.try_weights(suggestion)
        master.solve(tol=self.pace.step_tol, max_iter=self.pace.newton_steps, certified=False)

    def finish(self, late: Callable[[], bool] = lambda: False) -> MasterSolution:
        """The last solve, to the final tolerance of the pace."""
        steps = 0 if self.pace.final_tol is None else _MAX_STEPS
        return self.master.solve(self.pace.final_tol, steps, self.pace.certified, late)


class Scout:
    """The same problem on a sketch of the rows.

    Parameters
    ----------
    dictionary, risk
        Over the rows of the sketch.
    rule : PriceRule
        Regularisation of all columns.
    pace : Pace
        That of the training.
    scoring : Scoring
        By which columns are looked for.
    """

    def __init__(
        self, dictionary: Any, risk: EmpiricalRisk, rule: PriceRule, pace: Pace, scoring: Scoring
    ) -> None:
        self.dictionary, self.scoring = dictionary, scoring
        self.pace = replace(pace, final_tol=None)
        self.pool = dictionary.pool()
        self.master = Master(self.pool, risk, rule.over)

    @classmethod
    def make(
        cls, dictionary: Dictionary, risk: EmpiricalRisk, rule: PriceRule, pace: Pace, scoring: Scoring
    ) -> Scout | None:
        """A scout, or None where the table is too small for one to pay, or cannot be sketched."""
        large = risk.weights.total_count >= _LARGE * SCOUT_ROWS
        sketched = dictionary.sketched(risk, SCOUT_ROWS) if large else None
        return None if sketched is None else cls(*sketched, rule, pace, scoring)

    def propose(self, pool: Any, weights: Array, k: int) -> tuple[Any, Array]:
        """Up to k new columns for a model with these columns and weights, and what all would weigh here."""
        n_shared = self.pool.n_columns
        if pool.n_columns > n_shared:
            self.pool.append(pool.stumps[n_shared:])
        self.master.extend()
        self.master.move_to(weights.copy())
        start = self.pool.n_columns
        pace = replace(self.pace, columns=lambda n: self.pace.columns(n + start))
        generate(self.dictionary, self.master, StopRule(k), scoring=self.scoring, pace=pace)
        return self.pool.stumps[start:], self.master.weights


def generate(
    dictionary: Dictionary,
    master: Master,
    stop: StopRule,
    *,
    observers: tuple[Observer, ...] = (),
    settled: Callable[[], bool] = lambda: False,
    **options: Any,
) -> tuple[MasterSolution, Trace]:
    """Grow the pool of a master until a stop rule holds, then solve for all weights.

    Parameters
    ----------
    dictionary, master, stop, observers
        As for :func:`~cardboost.boosting.loop.boost`.
    settled : callable
        Whether to end the last solve too.
    **options
        Those of :class:`TotallyCorrective`.
    """
    weighting = TotallyCorrective(master, stop, **options)
    trace = boost(dictionary, weighting, stop, observers)
    return weighting.finish(settled), trace

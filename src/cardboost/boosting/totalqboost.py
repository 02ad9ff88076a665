"""TotalQBoost: choose again after every new column (Algorithm 1 of the paper on cardinality penalisation).

    row weights of the model -> best unseen column -> pool -> choice of few columns -> convex refit -> model

Columns that a choice has left out stay in the pool and may come back; none is generated twice. The usual end,
no column with an edge above its price, does not hold here: a price of terms leaves such columns out for good.
So the loop goes on until the dictionary or the limit on columns is used up, or until many rounds in a row
have changed nothing. A choice replaces the one before only if its objective is lower.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.column_generation import Trace, TraceRecord
from cardboost.dictionary.base import ColumnPool, Criterion, Dictionary
from cardboost.problem.bound import dual_bound
from cardboost.problem.budget import clock
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection import exact, tabu
from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.polish import Polisher, polish
from cardboost.selection.qubo import anneal
from cardboost.selection.select import SearchOptions, with_default_box
from cardboost.selection.selection_problem import Incumbent, SelectionProblem

Array = NDArray[np.float64]

PATIENCE = 30  # rounds that change nothing before the loop ends
_WORTH = 1e-9  # share of the objective below which nothing has changed
# what a round may spend; the choice after the loop has the whole budget
_STARTS, _MOVES = 4, 200  # of tabu search
_CALLS = 1  # of a sampler
_WORK = 2e7  # of exact search: nodes times the entries of the table that each of them reads


@dataclass(frozen=True)
class ReselectRule:
    """What a round may do, and when the loop ends. ``prices``: with that of a term."""

    prices: PriceRule
    max_terms: int | None
    max_columns: int  # of the pool, the intercept's not counted
    criterion: Criterion
    search: SearchOptions
    per_round: int = 1  # columns
    late: Callable[[], bool] = lambda: False  # asked within a round: whether to settle for what is known
    time_is_up: Callable[[], bool] = lambda: False  # asked between rounds
    all_moves_every: int = 1  # rounds; those in between look at moves that bring in their own columns


def reselect(
    dictionary: Dictionary,
    pool: ColumnPool,
    risk: EmpiricalRisk,
    rule: ReselectRule,
    start: Array,
    *,
    lower_bound: float = -math.inf,
    callback: Callable[[TraceRecord, Array], object] | None = None,
    started: float | None = None,
) -> tuple[Array, Trace]:
    """Grow ``pool`` and choose from it, round by round; returns the weights of the last choice.

    ``start``: weights over the pool as it is, those of a hot start. ``lower_bound``: one that is known for
    any choice. ``callback`` sees every round with its weights and ends the loop by returning true.
    """
    started = clock() if started is None else started
    records: list[TraceRecord] = []
    chooser = _Chooser(pool, risk, rule)
    at, stale = chooser.first(start), 0
    prices = rule.prices
    while True:
        point = risk.evaluate(pool.margins(at.weights))
        columns = pool.n_columns - pool.n_free
        wanted = min(rule.per_round, rule.max_columns - columns)
        found = dictionary.best_columns(point, max(wanted, 1), pool, rule.criterion, prices.l1, prices.l2)
        if dictionary.exact:
            own, edges = prices.prices(pool.n_columns, pool.n_free), pool.edges(point)
            proven, _ = dual_bound(point, edges, own, rule.max_terms, found.bound, prices.prices(1, 0))
            lower_bound = max(lower_bound, proven)
        seconds = clock() - started
        record = TraceRecord(columns, len(at.support), at.objective, lower_bound, found.bound, seconds)
        records.append(record)
        if callback is not None and callback(record, at.weights):
            status = "stopped"
        elif wanted <= 0:
            status = "column limit"
        elif len(found) == 0:
            status = "exhausted"
        elif stale >= PATIENCE:
            status = "stagnant"
        elif rule.time_is_up():
            status = "time limit"
        else:
            pool.append(found.atoms)
            closer = stale + 1 == PATIENCE
            last, at = at, chooser.again(at, closer, closer or len(records) % rule.all_moves_every == 0)
            gain = last.objective - at.objective
            stale = 0 if gain > _WORTH * max(1.0, abs(at.objective)) else stale + 1
            continue
        return at.weights, Trace(tuple(records), status)


class _Chooser:
    """The choice of a round, each from the one before: local search, then what the selector adds to it.

    With the selector "auto" it is local search alone; a ``closer`` look, before the loop gives up, adds tabu
    search where that is possible.
    """

    def __init__(self, pool: ColumnPool, risk: EmpiricalRisk, rule: ReselectRule) -> None:
        self.pool, self.risk, self.rule = pool, risk, rule
        self._sampler_fails = False

    def _problem(self) -> SelectionProblem:
        prices = self.rule.prices.prices(self.pool.n_columns, self.pool.n_free)
        return SelectionProblem(self.pool, self.risk, prices, self.rule.max_terms)

    def first(self, start: Array) -> Incumbent:
        """A choice from the columns of a hot start."""
        problem = self._problem()
        return self._search(merge_rows(problem), polish(problem, start, self.rule.late)[0], closer=True)

    def again(self, last: Incumbent, closer: bool, all_moves: bool) -> Incumbent:
        """A choice no worse than ``last`` from a pool that has grown since."""
        new = np.arange(len(last.weights), self.pool.n_columns)
        last = replace(last, weights=np.concatenate([last.weights, np.zeros(len(new))]))
        merged = merge_rows(self._problem())
        smaller = sketch_rows(merged)
        polisher = Polisher(smaller, self.rule.late)
        starts = [polisher.refit(last.support, last.weights)]
        for more in [[j] for j in new] + [[*new]] * (len(new) > 1):
            wider = polisher.thin(polisher.refit([*last.support, *more], last.weights), polisher.most_terms)
            if merged.allows(wider.support):
                starts.append(wider)
        entering = None if all_moves else {int(j) for j in new}
        ends = [polisher.improve(own, entering=entering) for own in starts]
        if smaller is not merged:
            final = Polisher(merged)
            ends = [final.refit(own.support, own.weights) for own in ends]
        found = min(last, *ends, key=lambda own: own.objective)
        return self._search(merged, found, closer)

    def _search(self, merged: SelectionProblem, found: Incumbent, closer: bool) -> Incumbent:
        """What the selector finds beyond local search within the budget of a round."""
        options, late = self.rule.search, self.rule.late
        method = options.method
        if not merged.prices.charged.any() or late():
            return found
        if method == "qubo" or not isinstance(method, str):
            if self._sampler_fails:
                return found
            asked = anneal(
                merged, "tabu" if method == "qubo" else method, found.weights, rounds=_CALLS,
                bits=6 if options.bits == "auto" else options.bits, seed=options.seed, late=late,
            )  # fmt: skip
            assert asked.sampling is not None
            self._sampler_fails = asked.sampling.fallback is not None
            return _better(found, asked.incumbent)
        if method == "tabu" or (method == "auto" and closer and tabu.accepts(merged) is None):
            walk = tabu.tabu_search(
                merged, found.weights, bits=options.bits, starts=_STARTS, moves=_MOVES, seed=options.seed,
                late=late, n_jobs=options.n_jobs,
            )  # fmt: skip
            return _better(found, walk.incumbent)
        if method == "exact":
            boxed = merged if np.isfinite(merged.prices.max_weight).all() else with_default_box(merged, found)
            proven = exact.exact_search(
                boxed, found, max_nodes=options.max_nodes, most_work=_WORK, late=late, most_leaves=1
            )
            return _better(found, proven.incumbent)
        return found


def _better(found: Incumbent, other: Incumbent) -> Incumbent:
    return other if other.objective < found.objective else found

"""TotalQBoost: choose again after every new column (Algorithm 1 of the paper on cardinality penalisation).

    row weights of the model -> best unseen column -> pool -> choice of few columns -> convex refit -> model

Columns that a choice has left out stay in the pool and may come back; none is generated twice. The usual end,
no column with an edge above its price, does not hold here: a price of terms leaves such columns out for good.
So the loop goes on until the dictionary or the limit on columns is used up, or until many rounds in a row have
changed nothing. Without a price and a limit of terms it is the ordinary loop, with its ordinary end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.column_generation import Trace, TraceRecord
from cardboost.cardinality import tabu
from cardboost.cardinality.merge import merge_rows
from cardboost.cardinality.polish import Incumbent, Polisher
from cardboost.cardinality.problem import CardinalityProblem
from cardboost.cardinality.select import SearchOptions
from cardboost.dictionary.base import ColumnPool, Criterion, Dictionary
from cardboost.master.problem import PriceRule
from cardboost.risk import EmpiricalRisk

Array = NDArray[np.float64]

_PATIENCE = 20  # rounds that change nothing before the loop ends
_STARTS, _MOVES = 4, 200  # of the tabu search in a round


@dataclass(frozen=True)
class ReselectRule:
    """What a round may do, and when the loop ends."""

    max_terms: int | None
    max_columns: int  # of the pool, the intercept's not counted
    criterion: Criterion
    search: SearchOptions
    late: Callable[[], bool]
    callback: Callable[[TraceRecord, Array], object] | None = None  # sees the weights of the round too


def reselect(
    dictionary: Dictionary,
    pool: ColumnPool,
    risk: EmpiricalRisk,
    rule: PriceRule,
    start: Array,
    limits: ReselectRule,
    started: float,
) -> tuple[Array, Trace]:
    """Grow ``pool`` and choose from it, round by round; returns the weights of the last choice.

    ``start``: weights over the pool as it is, those of the hot start. ``rule``: prices, with that of a term.
    """
    records: list[TraceRecord] = []
    at = _choose(_problem(pool, risk, rule, limits.max_terms), start, limits)
    status, stale = "column limit", 0
    while True:
        point = risk.evaluate(pool.margins(at.weights))
        found = dictionary.best_columns(point, 1, pool, limits.criterion, rule.l1, rule.l2)
        columns = pool.n_columns - pool.n_free
        records.append(
            TraceRecord(
                columns, len(at.support), at.objective, 0.0, found.bound, time.perf_counter() - started
            )
        )
        if limits.callback is not None and limits.callback(records[-1], at.weights):
            status = "stopped"
        elif columns >= limits.max_columns:
            status = "column limit"
        elif len(found) == 0:
            status = "exhausted"
        elif stale >= _PATIENCE:
            status = "stagnant"
        elif limits.late():
            status = "time limit"
        else:
            pool.append(found.atoms)
            weights = np.concatenate([at.weights, np.zeros(pool.n_columns - len(at.weights))])
            last = at
            at = _choose(_problem(pool, risk, rule, limits.max_terms), weights, limits)
            stale = stale + 1 if np.array_equal(at.support, last.support) else 0
            continue
        return at.weights, Trace(tuple(records), status)


def _problem(
    pool: ColumnPool, risk: EmpiricalRisk, rule: PriceRule, max_terms: int | None
) -> CardinalityProblem:
    return CardinalityProblem(pool, risk, rule.prices(pool.n_columns, pool.n_free), max_terms)


def _choose(problem: CardinalityProblem, weights: Array, limits: ReselectRule) -> Incumbent:
    """A choice at least as good as that of ``weights``: from there, and from all columns thinned out."""
    merged = merge_rows(problem)
    polisher = Polisher(merged, limits.late)
    k = polisher.most_terms
    starts = [polisher.largest(weights, k)]
    newest = len(weights) - 1
    if merged.prices.charged[newest:].any() and weights[newest] == 0.0:
        starts.append(polisher.thin(polisher.refit([*starts[0].support, newest], weights), k))
    best = min((polisher.improve(at) for at in starts), key=lambda at: at.objective)
    if limits.search.method in ("auto", "tabu") and tabu.accepts(merged) is None:
        walk = tabu.tabu_search(
            merged, best.weights, bits=limits.search.bits, starts=_STARTS, moves=_MOVES,
            seed=limits.search.seed, late=limits.late,
        )  # fmt: skip
        best = min(best, walk.incumbent, key=lambda at: at.objective)
    return best

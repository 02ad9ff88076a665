"""TotalQBoost: choose again after every new column (Algorithm 1 of the paper on cardinality penalisation).

    row weights of the model -> best unseen column -> pool -> choice of few columns -> convex refit -> model

Columns that a choice has left out stay in the pool and may come back; none is generated twice. The usual end,
no column with an edge above its price, does not hold here: a price of terms leaves such columns out for good.
So the loop goes on until the dictionary or the limit on columns is used up, or until many rounds in a row
have changed nothing. A choice replaces the one before only if its objective is lower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.loop import StopRule, Weighting, boost
from cardboost.dictionary.base import ColumnPool, Criterion, Dictionary, Proposals, Scoring
from cardboost.problem.bound import dual_bound
from cardboost.problem.budget import Late, clock, never
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk
from cardboost.problem.trace import Record, Status
from cardboost.selection import exact, tabu
from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.polish import Incumbent, Polisher, polish
from cardboost.selection.qubo import anneal
from cardboost.selection.select import SearchOptions, with_default_box
from cardboost.selection.selection_problem import SelectionProblem

Array = NDArray[np.float64]

PATIENCE = 30  # rounds that change nothing before the loop ends
_VISIBLE_GAIN = 1e-9  # share of the objective below which nothing has changed
# what the search of one round may spend; the choice after the loop has the whole budget
_TABU_STARTS, _TABU_MOVES = 4, 200
_SAMPLER_CALLS = 1
_NODE_WORK = 2e7  # of exact search: nodes times the entries of the table that each of them reads


@dataclass(frozen=True)
class ReselectRule:
    """What a round may do, and when the loop ends.

    Parameters
    ----------
    prices : PriceRule
        Regularisation, that of a term included.
    max_terms : int or None
        Of a choice.
    max_columns : int
        Of the pool, without those of the intercept.
    criterion : {"edge", "gain"}
        By which the dictionary looks for columns.
    search : SearchOptions
        The selector.
    per_round : int
        Columns that join the pool at a time.
    late, time_is_up : callable
        Asked within a round whether to settle for the incumbent, and between rounds whether to stop.
    all_moves_every : int
        Rounds; those in between look at moves that bring in their new columns.
    """

    prices: PriceRule
    max_terms: int | None
    max_columns: int
    criterion: Criterion
    search: SearchOptions
    per_round: int = 1
    late: Late = never
    time_is_up: Late = never
    all_moves_every: int = 1

    def stop_rule(self, pool: ColumnPool) -> StopRule:
        """Of the loop that begins with this pool."""
        return StopRule(self.max_columns - (pool.n_columns - pool.n_free), late=self.time_is_up)


class Reselecting(Weighting):
    """Few columns of the pool, chosen again in every round, each time from the choice before.

    A choice is that of local search, and what the selector adds to it. With the selector "auto" it is local
    search alone; a thorough search, before the loop gives up, adds tabu search where that is possible.

    Parameters
    ----------
    pool : ColumnPool
        Columns of a hot start; it grows.
    risk : EmpiricalRisk
        Over the training rows.
    rule : ReselectRule
        What a round may do.
    start : array
        Weights over the pool as it is.
    lower_bound : float
        One that holds for any choice.
    started : float or None
        When the clock of the records began.
    """

    def __init__(
        self,
        pool: ColumnPool,
        risk: EmpiricalRisk,
        rule: ReselectRule,
        start: Array,
        *,
        lower_bound: float = -math.inf,
        started: float | None = None,
    ) -> None:
        self.pool, self.risk, self.rule = pool, risk, rule
        self.lower_bound, self.started = lower_bound, clock() if started is None else started
        self.scoring = Scoring(rule.criterion, rule.prices.l1, rule.prices.l2)
        self._stale_rounds, self._rounds = 0, 0
        self._edge = math.inf
        self._sampler_fails = False
        problem = self._problem()
        first = polish(problem, start, rule.late)[0]
        self.incumbent = self._search(merge_rows(problem), first, thorough=True)

    @property
    def weights(self) -> Array:
        """Those of the last choice."""
        return self.incumbent.weights

    def batch(self, n_added: int) -> int:
        return self.rule.per_round

    def search(self, dictionary: Dictionary, n_columns: int) -> Proposals | Status:
        pool, rule = self.pool, self.rule
        point = self.risk.evaluate(pool.margins(self.weights))
        proposals = dictionary.best_columns(point, max(n_columns, 1), pool, self.scoring)
        self._edge = proposals.bound
        if dictionary.exact:
            prices, unseen = self._problem().prices, rule.prices.prices(1, 0)
            bound, _ = dual_bound(point, pool.edges(point), prices, rule.max_terms, proposals.bound, unseen)
            self.lower_bound = max(self.lower_bound, bound)
        self._rounds += 1
        if len(proposals) == 0:
            return Status.EXHAUSTED
        return Status.STAGNANT if self._stale_rounds >= PATIENCE else proposals

    def look(self) -> Record:
        return Record(
            n_columns=self.pool.n_columns - self.pool.n_free,
            n_terms=len(self.incumbent.support),
            objective=self.incumbent.objective,
            lower_bound=self.lower_bound,
            edge=self._edge,
            seconds=clock() - self.started,
        )

    def update(self, proposals: Proposals) -> None:
        self.pool.append(proposals.atoms)
        thorough = self._stale_rounds + 1 == PATIENCE
        all_moves = thorough or self._rounds % self.rule.all_moves_every == 0
        before = self.incumbent.objective
        self.incumbent = self._choose_again(thorough, all_moves)
        after = self.incumbent.objective
        changed = before - after > _VISIBLE_GAIN * max(1.0, abs(after))
        self._stale_rounds = 0 if changed else self._stale_rounds + 1

    def _problem(self) -> SelectionProblem:
        return SelectionProblem(self.pool, self.risk, self.rule.prices.over(self.pool), self.rule.max_terms)

    def _choose_again(self, thorough: bool, all_moves: bool) -> Incumbent:
        """A choice no worse than the last one from a pool that has grown since."""
        new = np.arange(len(self.weights), self.pool.n_columns)
        last = replace(self.incumbent, weights=np.concatenate([self.weights, np.zeros(len(new))]))
        merged = merge_rows(self._problem())
        smaller = sketch_rows(merged)
        polisher = Polisher(smaller, self.rule.late)
        starts = [polisher.refit(last.support, last.weights)]
        for entrants in [[j] for j in new] + [[*new]] * (len(new) > 1):
            wider = polisher.refit([*last.support, *entrants], last.weights)
            wider = polisher.thin(wider, polisher.most_terms)
            if merged.allows(wider.support):
                starts.append(wider)
        entering = None if all_moves else {int(j) for j in new}
        ends = [polisher.improve(start, entering=entering) for start in starts]
        if smaller is not merged:
            final = Polisher(merged)
            ends = [final.refit(end.support, end.weights) for end in ends]
        best = min(last, *ends, key=lambda incumbent: incumbent.objective)
        return self._search(merged, best, thorough)

    def _search(self, merged: SelectionProblem, incumbent: Incumbent, thorough: bool) -> Incumbent:
        """What the selector makes of an incumbent within the budget of a round."""
        options, late = self.rule.search, self.rule.late
        method = options.method
        if not merged.prices.charged.any() or late():
            return incumbent
        if method == "qubo" or not isinstance(method, str):
            if self._sampler_fails:
                return incumbent
            sampled = anneal(
                merged, "tabu" if method == "qubo" else method, incumbent.weights, rounds=_SAMPLER_CALLS,
                bits=6 if options.bits == "auto" else options.bits, seed=options.seed, late=late,
            )  # fmt: skip
            assert sampled.sampling is not None
            self._sampler_fails = sampled.sampling.fallback is not None
            return _better(incumbent, sampled.incumbent)
        if method == "tabu" or (method == "auto" and thorough and tabu.accepts(merged) is None):
            walk = tabu.tabu_search(
                merged, incumbent.weights, bits=options.bits, starts=_TABU_STARTS, moves=_TABU_MOVES,
                seed=options.seed, late=late, n_jobs=options.n_jobs,
            )  # fmt: skip
            return _better(incumbent, walk.incumbent)
        if method == "exact":
            has_box = np.isfinite(merged.prices.max_weight).all()
            boxed = merged if has_box else with_default_box(merged, incumbent)
            search = exact.exact_search(
                boxed, incumbent, max_nodes=options.max_nodes, most_work=_NODE_WORK, late=late, most_leaves=1
            )
            return _better(incumbent, search.incumbent)
        return incumbent


def reselect(
    dictionary: Dictionary, pool: ColumnPool, risk: EmpiricalRisk, rule: ReselectRule, start: Array
) -> Array:
    """Grow a pool and choose from it, round by round; the weights of the last choice."""
    weighting = Reselecting(pool, risk, rule, start)
    boost(dictionary, weighting, rule.stop_rule(pool))
    return weighting.weights


def _better(incumbent: Incumbent, other: Incumbent) -> Incumbent:
    return other if other.objective < incumbent.objective else incumbent

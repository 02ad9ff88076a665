"""Local search over supports: drop, add and swap columns, with a convex refit inside the box.

Moves are ranked by the quadratic model of the loss at the present weights (one small solve each, no pass
over the rows); the most promising ones are refitted on the true loss, and the best that helps is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.cardinality.merge import merge_rows, sketch_rows
from cardboost.cardinality.problem import CardinalityProblem, Support
from cardboost.master.newton import Master

Array = NDArray[np.float64]

_REFITS_PER_ROUND = 6
_REFIT_TOL = 1e-9


@dataclass(frozen=True, eq=False)
class Incumbent:
    """A support with its refitted weights and true objective."""

    support: Support
    weights: Array
    objective: float


class Polisher:
    """Refits supports of one problem and improves them. Counts refits in ``work``."""

    def __init__(self, problem: CardinalityProblem, late: Callable[[], bool] = lambda: False) -> None:
        """``problem``: over stored columns (merge_rows). ``late``: asked between refits whether to stop."""
        self.problem = problem
        self.late = late
        self.work = 0
        self._free = np.flatnonzero(~problem.prices.charged)
        self._seen: dict[tuple[int, ...], Incumbent] = {}
        self._models: dict[tuple[int, ...], tuple[Array, Array]] = {}
        self._hessian: Array | None = None  # the latest

    def refit(self, support: Iterable[int], start: Array | None = None) -> Incumbent:
        """The best weights on this support; columns that end at 0 leave it."""
        chosen = sorted({int(j) for j in support})
        key = tuple(chosen)
        if key in self._seen:
            return self._seen[key]
        self.work += 1
        problem = self.problem
        columns = np.unique(np.concatenate([self._free, np.array(chosen, dtype=np.intp)]))
        prices = problem.prices.convex()[columns]
        first = np.zeros(len(columns)) if start is None else np.minimum(start[columns], prices.max_weight)
        master = Master(problem.pool.subset(columns), problem.risk, lambda pool: prices, first)
        master.solve(tol=_REFIT_TOL, max_iter=60)
        weights = np.zeros(problem.pool.n_columns)
        weights[columns] = master.weights
        used = np.flatnonzero((weights > 0) & problem.prices.charged)
        found = Incumbent(used, weights, problem.objective(master.point.value, weights))
        self._seen[key] = self._seen[tuple(used)] = found
        return found

    def _model(self, at: Incumbent) -> tuple[Array, Array]:
        """Gradient and Hessian of the risk at an incumbent, over all columns."""
        key = tuple(at.support)
        if key not in self._models:
            point = self.problem.risk.evaluate(self.problem.pool.margins(at.weights))
            if self._hessian is None or not self.problem.risk.loss.quadratic:
                self._hessian = self.problem.pool.gram(point)
            self._models[key] = (-self.problem.pool.edges(point), self._hessian)
        return self._models[key]

    def _scores(self, at: Incumbent, model: tuple[Array, Array], supports: list[list[int]]) -> Array:
        """Objective of every support according to the quadratic model."""
        p = self.problem.prices
        gradient, gram = model
        free = [int(j) for j in np.flatnonzero(~p.charged)]
        members = [free + support for support in supports]
        drops = _kernels.score_supports(
            gram, gradient, at.weights, p.l1, p.l2, p.max_weight,
            np.array([j for own in members for j in own], dtype=np.int32),
            np.concatenate([[0], np.cumsum([len(own) for own in members])]).astype(np.int64),
            1e-8, self.problem.risk.threads,
        )  # fmt: skip
        was = float(np.sum(p.l0[at.support]))
        return at.objective - drops + np.array([float(np.sum(p.l0[own])) for own in supports]) - was

    def thin(self, at: Incumbent, size: int) -> Incumbent:
        """Drop the least useful columns one by one (by the model, renewed as they go) down to ``size``."""
        while len(at.support) > size and not self.late():
            model = self._model(at)
            support = [int(j) for j in at.support]
            # several at once while there are many to go
            for _ in range(max(1, (len(support) - size + 1) // 2)):
                scores = self._scores(at, model, [[i for i in support if i != j] for j in support])
                del support[int(np.argmin(scores))]
            at = self.refit(support, at.weights)
        return at

    def _moves(self, at: Incumbent) -> list[tuple[float, list[int]]]:
        """Supports one drop, add or swap away, best first by the model."""
        p, k = self.problem.prices, self.problem.max_terms
        model = self._model(at)
        support = [int(j) for j in at.support]
        outside = [
            int(j) for j in np.flatnonzero(p.charged & (p.max_weight > 0)) if int(j) not in set(support)
        ]
        edges = -model[0]
        candidates: list[list[int]] = []
        if np.any(p.l0 > 0):
            candidates += [[i for i in support if i != j] for j in support]
        if k is None or len(support) < k:
            candidates += [[*support, i] for i in outside if edges[i] > p.l1[i]]
        candidates += [[i for i in support if i != j] + [new] for j in support for new in outside]
        if not candidates:
            return []
        scores = self._scores(at, model, candidates)
        order = np.argsort(scores, kind="stable")
        return [(float(scores[i]), sorted(candidates[i])) for i in order if scores[i] < at.objective]

    def improve(self, at: Incumbent, max_rounds: int = 50) -> Incumbent:
        """Take the best move until none of the promising ones helps."""
        for _ in range(max_rounds):
            best = at
            if self.late():
                return at
            for _, support in self._moves(at)[:_REFITS_PER_ROUND]:
                found = self.refit(support, at.weights)
                if found.objective < best.objective - 1e-12 * max(1.0, abs(best.objective)):
                    best = found
            if best is at:
                return at
            at = best
        return at

    def grow(self, size: int) -> Incumbent:
        """Forward selection: the best addition by the model, refitted, ``size`` times."""
        at = self.refit([])
        p = self.problem.prices
        while len(at.support) < size and not self.late():
            model = self._model(at)
            support = [int(j) for j in at.support]
            outside = [
                int(j)
                for j in np.flatnonzero(p.charged & (p.max_weight > 0) & (-model[0] > p.l1))
                if int(j) not in set(support)
            ]
            if not outside:
                break
            scores = self._scores(at, model, [[*support, j] for j in outside])
            found = self.refit([*support, outside[int(np.argmin(scores))]], at.weights)
            if len(found.support) <= len(support) or found.objective >= at.objective:
                break
            at = found
        return at


def polish(
    problem: CardinalityProblem, start: Array | None = None, late: Callable[[], bool] = lambda: False
) -> tuple[Incumbent, int]:
    """The best support that local search finds from three starts; returns it and the number of refits.

    Starts: the convex solution thinned out, forward selection, and ``start`` (weights) if given. On large
    tables the search sees some of the rows; what it finds is refitted and compared on all of them.
    """
    merged = merge_rows(problem)
    smaller = sketch_rows(merged)
    polisher = Polisher(smaller, late)
    charged = np.flatnonzero(problem.prices.charged & (problem.prices.max_weight > 0))
    k = len(charged) if problem.max_terms is None else min(problem.max_terms, len(charged))
    starts = [polisher.refit([])]
    if start is not None:
        largest = np.argsort(-np.where(problem.prices.charged, start, 0.0), kind="stable")[:k]
        starts.append(polisher.refit([j for j in largest if start[j] > 0]))
    if k > 0 and not late():
        starts.append(polisher.grow(k))
        thinned = polisher.thin(polisher.refit(charged), k)
        if len(thinned.support) <= k:
            starts.append(thinned)
    ends = [polisher.improve(at) for at in starts]
    if smaller is not merged:
        final = Polisher(merged)
        ends = [final.refit(at.support, at.weights) for at in {tuple(at.support): at for at in ends}.values()]
    return min(ends, key=lambda at: at.objective), polisher.work

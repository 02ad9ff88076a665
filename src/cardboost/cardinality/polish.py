"""Local search over supports: drop, add and swap columns, with a convex refit inside the box.

With limits on features, whole features are dropped and swapped as well, and no move leaves the limits. Moves
are ranked by the quadratic model of the loss at the present weights (one small solve each, no pass over the
rows); the most promising ones are refitted on the true loss, and the best that helps is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.cardinality.merge import merge_rows, sketch_rows
from cardboost.cardinality.problem import CardinalityProblem, Support
from cardboost.cardinality.refits import SignRefits
from cardboost.master.newton import Master

Array = NDArray[np.float64]

_REFITS_PER_ROUND = 6
_FEATURE_SWAPS = 3  # of them taken as far as whole features
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
        # without limits all columns are of one feature, of which any number may be used
        groups = np.zeros(problem.pool.n_columns) if problem.groups is None else problem.groups
        self._feature = [int(g) for g in groups]
        limits = problem.limits
        self._places = None if limits is None else limits.max_features
        self._costs = None if limits is None or limits.costs is None else limits.costs.tolist()
        self._l0 = problem.prices.l0.tolist()
        self._priced = bool(np.any(problem.prices.l0 > 0))
        # where columns cost nothing and are not counted, a feature in use is in use with all of them
        self._whole = limits is not None and problem.max_terms is None and not self._priced
        self._seen: dict[tuple[int, ...], Incumbent] = {}
        self._models: dict[tuple[int, ...], tuple[Array, Array]] = {}
        self._hessian: Array | None = None  # the latest
        self._refits = SignRefits.make(problem)

    def limit(self, max_terms: int) -> None:
        """From now on at most so many charged columns; refits that were made stay valid."""
        self.problem = replace(self.problem, max_terms=max_terms)

    def refit(self, support: Iterable[int], start: Array | None = None) -> Incumbent:
        """The best weights on this support; columns that end at 0 leave it."""
        return self.refit_all([support], start)[0]

    def refit_all(self, supports: Iterable[Iterable[int]], start: Array | None = None) -> list[Incumbent]:
        """The best weights on each of these supports, all from the same start."""
        keys = [tuple(sorted({int(j) for j in own})) for own in supports]
        new = list(dict.fromkeys(key for key in keys if key not in self._seen))
        self.work += len(new)
        found: list[Array | None] = [None] * len(new)
        if new and self._refits is not None:
            first = np.zeros(self.problem.pool.n_columns) if start is None else start
            found = self._refits.solve(new, np.tile(first, (len(new), 1)), _REFIT_TOL)
        for key, weights in zip(new, found, strict=True):
            if weights is None:
                weights = self._converge(key, start)
            used = np.flatnonzero((weights > 0) & self.problem.prices.charged)
            point = self.problem.risk.evaluate(self.problem.pool.margins(weights))
            own = Incumbent(used, weights, self.problem.objective(point.value, weights))
            self._seen[key] = self._seen[tuple(used)] = own
        return [self._seen[key] for key in keys]

    def _converge(self, support: tuple[int, ...], start: Array | None) -> Array:
        """Weights of a support by the master of all losses and columns."""
        columns = np.unique(np.concatenate([self._free, np.array(support, dtype=np.intp)]))
        prices = self.problem.prices.convex()[columns]
        first = np.zeros(len(columns)) if start is None else np.minimum(start[columns], prices.max_weight)
        master = Master(self.problem.pool.subset(columns), self.problem.risk, lambda pool: prices, first)
        master.solve(tol=_REFIT_TOL, max_iter=60)
        weights = np.zeros(self.problem.pool.n_columns)
        weights[columns] = master.weights
        return weights

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
        if not self._priced and self._costs is None:
            return at.objective - drops
        if self._costs is None:
            owner = np.repeat(np.arange(len(supports)), [len(own) for own in supports])
            columns = np.array([j for own in supports for j in own], dtype=np.intp)
            paid = np.bincount(owner, p.l0[columns], len(supports))
        else:
            paid = np.array([self._paid(own) for own in supports])
        return at.objective - drops + paid - self._paid([int(j) for j in at.support])

    def _paid(self, support: list[int]) -> float:
        """What it costs to use these columns, whatever their weights."""
        paid = sum(self._l0[j] for j in support) if self._priced else 0.0
        if self._costs is not None:
            paid += sum(self._costs[g] for g in sorted(self._features(support)))
        return paid

    def _features(self, support: Iterable[int]) -> set[int]:
        return {self._feature[j] for j in support}

    def _by_feature(self, support: Iterable[int]) -> dict[int, list[int]]:
        """The columns of a support feature by feature."""
        found: dict[int, list[int]] = {}
        for j in support:
            found.setdefault(self._feature[j], []).append(int(j))
        return found

    def _fits(self, support: Iterable[int]) -> bool:
        """Whether the limit on features allows these columns."""
        return self._places is None or len(self._features(support)) <= self._places

    def _usable(self) -> list[int]:
        p = self.problem.prices
        return [int(j) for j in np.flatnonzero(p.charged & (p.max_weight > 0))]

    def _outside(self, support: list[int], useful: NDArray[np.bool_] | None = None) -> list[int]:
        """Columns that could join a support."""
        inside = set(support)
        found = [j for j in self._usable() if j not in inside and (useful is None or useful[j])]
        used = self._features(support)
        if self._places is not None and len(used) >= self._places:
            found = [j for j in found if self._feature[j] in used]
        return found

    def thin(self, at: Incumbent, size: int) -> Incumbent:
        """Drop the least useful features down to their limit, then columns one by one down to ``size``.

        By the model, renewed as they go.
        """
        while not self._fits(at.support) and not self.late():
            model, parts = self._model(at), self._by_feature(at.support)
            for _ in range(max(1, (len(parts) - (self._places or 0) + 1) // 2)):
                rest = [[j for own, cols in parts.items() if own != g for j in cols] for g in parts]
                del parts[list(parts)[int(np.argmin(self._scores(at, model, rest)))]]
            at = self.refit([j for cols in parts.values() for j in cols], at.weights)
        while len(at.support) > size and not self.late():
            model = self._model(at)
            support = [int(j) for j in at.support]
            # several at once while there are many to go
            for _ in range(max(1, (len(support) - size + 1) // 2)):
                scores = self._scores(at, model, [[i for i in support if i != j] for j in support])
                del support[int(np.argmin(scores))]
            at = self.refit(support, at.weights)
        return at

    def shed(self, at: Incumbent, size: int) -> Incumbent:
        """Drop columns down to ``size``, and further while it pays; many between one refit and the next."""
        while len(at.support) and not self.late():
            model, support, value = self._model(at), [int(j) for j in at.support], at.objective
            for _ in range(max(1, len(support) // 4)):  # the model holds near the present weights
                scores = self._scores(at, model, [[i for i in support if i != j] for j in support])
                least = int(np.argmin(scores))
                if len(support) <= size and scores[least] >= value:
                    break
                value = float(scores[least])
                del support[least]
            found = self.refit(support, at.weights)
            if len(at.support) <= size and found.objective >= at.objective:
                return at
            at = found
        return at

    def _moves(self, at: Incumbent, entering: Collection[int] | None = None) -> list[list[int]]:
        """The most promising supports one drop, add or swap away, best first by the model.

        ``entering``: the only columns that may come in.
        """
        p, k = self.problem.prices, self.problem.max_terms
        model = self._model(at)
        if self._whole:
            return self._ranked(at, model, self._whole_moves(at))[:_REFITS_PER_ROUND]
        support = [int(j) for j in at.support]
        inside = set(support)
        outside = [j for j in self._usable() if j not in inside and (entering is None or j in entering)]
        edges = -model[0]
        candidates: list[list[int]] = []
        if self._priced or self._costs is not None:
            candidates += [[i for i in support if i != j] for j in support]
        if k is None or len(support) < k:
            candidates += [[*support, i] for i in outside if edges[i] > p.l1[i]]
        candidates += [[i for i in support if i != j] + [new] for j in support for new in outside]
        if self._places is not None:
            candidates = [own for own in candidates if self._fits(own)]
        found = self._ranked(at, model, candidates)[:_REFITS_PER_ROUND]
        if self.problem.limits is not None:
            found += self._ranked(at, model, self._feature_moves(at, model))[:_FEATURE_SWAPS]
        return found

    def _ranked(
        self, at: Incumbent, model: tuple[Array, Array], candidates: list[list[int]]
    ) -> list[list[int]]:
        """Those that the model holds for better than the present support, best first."""
        if not candidates:
            return []
        scores = self._scores(at, model, candidates)
        order = np.argsort(scores, kind="stable")
        return [sorted(candidates[i]) for i in order if scores[i] < at.objective]

    def _whole_moves(self, at: Incumbent) -> list[list[int]]:
        """Without, with more, or with another feature, each with all its columns."""
        parts = self._by_feature(self._usable())
        used = sorted(self._features(at.support))
        others = [g for g in parts if g not in used]
        sets = [[g for g in used if g != one] for one in used] if self._costs is not None else []
        if self._places is None or len(used) < self._places:
            sets += [[*used, new] for new in others]
        sets += [[g for g in used if g != one] + [new] for one in used for new in others]
        return [[j for g in own for j in parts[g]] for own in [used, *sets]]

    def _feature_moves(self, at: Incumbent, model: tuple[Array, Array]) -> list[list[int]]:
        """Supports without one of the features, and with another one in its place, as many columns of it as
        places become free."""
        k = self.problem.max_terms
        parts = self._by_feature(at.support)
        several = {g: cols for g, cols in parts.items() if len(cols) > 1}
        bases = [[int(j) for j in at.support if self._feature[j] != g] for g in several]
        candidates = list(bases)
        starts = [[*base, j] for base in bases for j in self._outside(base) if self._feature[j] not in parts]
        if not starts:
            return candidates
        scores = self._scores(at, model, starts)
        seen: set[tuple[int, ...]] = set()
        for i in np.argsort(scores, kind="stable"):
            start = starts[i]
            pair = (len(start), *start[:-1], self._feature[start[-1]])
            if pair in seen:
                continue
            seen.add(pair)
            size = len(at.support) + 1 if k is None else k
            candidates += self._extensions(at, model, start, size)
            if len(seen) == _FEATURE_SWAPS:
                break
        return candidates

    def _extensions(
        self, at: Incumbent, model: tuple[Array, Array], support: list[int], size: int
    ) -> list[list[int]]:
        """A support and what becomes of it by adding the best column of its features, again and again."""
        found = [support]
        while len(support) < size:
            used = self._features(support)
            more = [[*support, j] for j in self._outside(support) if self._feature[j] in used]
            if not more:
                break
            support = more[int(np.argmin(self._scores(at, model, more)))]
            found.append(support)
        return found

    def improve(
        self, at: Incumbent, max_rounds: int = 50, entering: Collection[int] | None = None
    ) -> Incumbent:
        """Take the best move until none of the promising ones helps. ``entering``: columns that may come in,
        where not all of them may."""
        for _ in range(max_rounds):
            best = at
            if self.late():
                return at
            for found in self.refit_all(self._moves(at, entering), at.weights):
                if found.objective < best.objective - 1e-12 * max(1.0, abs(best.objective)):
                    best = found
            if best is at:
                return at
            at = best
        return at

    def grow(self, size: int, at: Incumbent | None = None) -> Incumbent:
        """Forward selection, from the empty model or from ``at``: the best addition by the model, refitted,
        until there are ``size`` columns."""
        at = self.refit([]) if at is None else at
        while len(at.support) < size and not self.late():
            model = self._model(at)
            support = [int(j) for j in at.support]
            outside = self._outside(support, -model[0] > self.problem.prices.l1)
            if not outside:
                break
            scores = self._scores(at, model, [[*support, j] for j in outside])
            found = self.refit([*support, outside[int(np.argmin(scores))]], at.weights)
            if len(found.support) <= len(support) or found.objective >= at.objective:
                break
            at = found
        return at

    def grow_features(self) -> Incumbent:
        """Forward selection of whole features: all columns of the best one by the model, refitted, and on."""
        at = self.refit([])
        parts = self._by_feature(self._outside([]))
        limit = len(parts) if self._places is None else min(self._places, len(parts))
        for _ in range(limit):
            if self.late():
                break
            model, support = self._model(at), [int(j) for j in at.support]
            used = self._features(support)
            wider = [[*support, *cols] for g, cols in parts.items() if g not in used]
            if not wider:
                break
            found = self.refit(wider[int(np.argmin(self._scores(at, model, wider)))], at.weights)
            if found.objective >= at.objective:
                break
            at = found
        return at

    @property
    def most_terms(self) -> int:
        usable, k = len(self._usable()), self.problem.max_terms
        return usable if k is None else min(k, usable)

    def all_columns(self) -> Incumbent:
        return self.refit(self._usable())

    def all_of_features(self, at: Incumbent) -> Incumbent:
        """All columns of the features that are in use here."""
        used = self._features(at.support)
        return self.refit([j for j in self._usable() if self._feature[j] in used], at.weights)

    def largest(self, weights: Array, size: int) -> Incumbent:
        """The largest of these weights, refitted; within the limits."""
        charged = np.where(self.problem.prices.charged, weights, 0.0)
        parts = self._by_feature(np.flatnonzero(charged > 0))
        best = sorted(parts, key=lambda g: (-float(np.sum(charged[parts[g]])), g))[: self._places]
        kept = [j for g in best for j in parts[g]]
        return self.refit(sorted(kept, key=lambda j: (-charged[j], j))[:size])


def polish(
    problem: CardinalityProblem,
    start: Array | None = None,
    late: Callable[[], bool] = lambda: False,
    again: bool = False,
) -> tuple[Incumbent, int]:
    """The best support that local search finds from several starts; returns it and the number of refits.

    Starts: the empty model, ``start`` (weights) if given, forward selection of columns or of features, and
    the convex solution thinned out, in small and in large steps. ``again``: only ``start`` and the columns of
    its features. On large tables the search sees some of the rows; what it finds is refitted and compared on
    all of them.
    """
    merged = merge_rows(problem)
    smaller = sketch_rows(merged)
    polisher = Polisher(smaller, late)
    k = polisher.most_terms
    starts = [polisher.refit([])]
    if start is not None:
        starts.append(polisher.largest(start, k))
    wide = []
    if again:
        wide.append(polisher.all_of_features(starts[-1]))
    elif k > 0 and not late():
        starts.append(polisher.grow(k))
        if not late():
            wide.append(polisher.all_columns())
        if problem.limits is not None:
            wide.append(polisher.grow_features())
    thinned = [polisher.shed(wide[0], k)] if wide and problem.limits is None and not late() else []
    thinned += [polisher.thin(own, k) for own in wide]
    starts += [at for at in thinned if problem.allows(at.support)]  # those that time was enough for
    ends = [polisher.improve(at) for at in (starts[1:] if again else starts)]
    if smaller is not merged:
        ends = _refitted(Polisher(merged), list({tuple(at.support): at for at in ends}.values()), late)
    return min(ends, key=lambda at: at.objective), polisher.work


def _refitted(polisher: Polisher, found: list[Incumbent], late: Callable[[], bool]) -> list[Incumbent]:
    """These supports on all rows, in their order; when time is up only the most promising ones."""
    done: dict[int, Incumbent] = {}
    for k in sorted(range(len(found)), key=lambda k: found[k].objective):
        if not done or not late():
            done[k] = polisher.refit(found[k].support, found[k].weights)
    return [done[k] for k in sorted(done)]

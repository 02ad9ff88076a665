"""Local search over supports: drop, add and swap columns, with a convex refit inside the box.

With limits on features, whole features are dropped and swapped as well, and no move leaves the limits. Moves
are ranked by the quadratic model of the loss at the present weights (one small solve each, no pass over the
rows); the most promising ones are refitted on the true loss, and the best that helps is taken.

Of many columns only the promising ones are looked at closely. The model needs the Gram rows of the support,
not those of all columns; what a column would gain is first estimated as its squared slope over its Schur
complement, for all columns at once, and only the best estimates are scored. Wide supports lose columns by
their saliency, with one factorisation for all of them. The search over n columns also goes on from what it
finds among the first 10, 20, 40, ... of them: more columns never make a choice worse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.threads import blas_threads
from cardboost.dictionary.columns import MatrixPool
from cardboost.master.newton import Master
from cardboost.problem.risk import RiskPoint
from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.refits import SignRefits
from cardboost.selection.selection_problem import CardinalityProblem, Support

Array = NDArray[np.float64]

_REFITS_PER_ROUND = 6
_FEATURE_SWAPS = 3  # of them taken as far as whole features
_REFIT_TOL = 1e-9
_SCREENED = 48  # entering columns that are scored for every drop, after an estimate of all of them
_WIDE = 64  # columns in use, beyond which they are taken out by saliency
_LEAVING = 24  # columns that may leave in a swap, where there are many: those of least saliency
_SCORING_WORK = 5e7  # multiplications for the scores of one round, about
_JOINING = 32  # columns that join the convex solution at a time, where there are many
_WIDEST = 192  # columns of it, beyond which no more join
_WORTH = 1e-5  # share of the objective below which more of them do not pay
_FIRST_PREFIX = 10


@dataclass(frozen=True, eq=False)
class Incumbent:
    """A support with its refitted weights and true objective."""

    support: Support
    weights: Array
    objective: float


class _GramRows:
    """The Hessian of the risk at a point, as far as it was needed: some of its rows, and the diagonal."""

    def __init__(self, pool: MatrixPool, point: RiskPoint) -> None:
        self._pool, self._point = pool, point
        self.diagonal = pool.store.squares(pool.which, point)
        self.place = np.full(pool.n_columns, -1)  # of every column's row, -1: not there
        self._rows = np.empty((0, pool.n_columns))
        self._square: tuple[NDArray[np.intp], Array] | None = None  # the latest

    def of(self, columns: NDArray[np.intp]) -> Array:
        """The rows of these columns."""
        new = columns[self.place[columns] < 0]
        if len(new):
            self.place[new] = len(self._rows) + np.arange(len(new))
            self._rows = np.concatenate([self._rows, self._pool.gram(self._point, new)])
        return self._rows[self.place[columns]]

    def square(self, columns: NDArray[np.intp]) -> Array:
        """The part of these columns, without the rest of their rows."""
        if self._square is None or not np.array_equal(columns, self._square[0]):
            which = self._pool.which[columns]
            self._square = columns, self._pool.store.gram(which, which, self._point)
        return self._square[1]

    def block(self, columns: NDArray[np.intp], several: bool) -> Array:
        """The part of these columns. Without ``several`` no two columns whose rows are not there yet are
        used together, and what they have in common is left at 0."""
        known = self.place[columns] >= 0
        if several or known.all():
            return np.ascontiguousarray(self.of(columns)[:, columns])
        block = np.zeros((len(columns), len(columns)))
        rows = self.of(columns[known])[:, columns]
        block[known], block[:, known] = rows, rows.T
        np.fill_diagonal(block, self.diagonal[columns])
        return block


def _rounding(inverse: Array) -> float:
    """What on the diagonal of the inverse of a Hessian is no more than rounding."""
    return 1e-14 * (float(inverse.diagonal().max(initial=0.0)) or 1.0)


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
        self._models: dict[tuple[int, ...], tuple[Array, _GramRows]] = {}
        self._gram: _GramRows | None = None  # the latest
        self._ends: dict[tuple[int | None, tuple[int, ...]], Incumbent] = {}  # of local search
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

    def _model(self, at: Incumbent) -> tuple[Array, _GramRows]:
        """Gradient of the risk at an incumbent, over all columns, and its Hessian."""
        key = tuple(at.support)
        if key not in self._models:
            point = self.problem.risk.evaluate(self.problem.pool.margins(at.weights))
            if self._gram is None or not self.problem.risk.loss.quadratic:
                assert isinstance(self.problem.pool, MatrixPool)
                self._gram = _GramRows(self.problem.pool, point)
            self._models[key] = (-self.problem.pool.edges(point), self._gram)
        return self._models[key]

    def _core(self, at: Incumbent) -> NDArray[np.intp]:
        """Columns with a weight, and those that may always have one."""
        return np.flatnonzero((at.weights > 0) | ~self.problem.prices.charged)

    def _scores(self, at: Incumbent, supports: list[list[int]]) -> Array:
        """Objective of every support according to the quadratic model."""
        p = self.problem.prices
        gradient, gram = self._model(at)
        core = self._core(at)
        free = [int(j) for j in self._free]
        sizes = np.array([len(free) + len(own) for own in supports])
        members = np.array(list(chain.from_iterable(free + own for own in supports)), dtype=np.intp)
        used = at.weights > 0
        used[members] = True
        columns = np.flatnonzero(used | ~p.charged)
        if len(columns) == len(core):
            block = gram.square(columns)
        else:
            gram.of(core)
            new = np.bincount(np.repeat(np.arange(len(sizes)), sizes), gram.place[members] < 0, len(sizes))
            block = gram.block(columns, bool((new > 1).any()))
        drops = _kernels.score_supports(
            block, gradient[columns], at.weights[columns], p.l1[columns],
            p.l2[columns], p.max_weight[columns], np.searchsorted(columns, members).astype(np.int32),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), 1e-8, self.problem.risk.threads,
        )  # fmt: skip
        if not self._priced and self._costs is None:
            return at.objective - drops
        if self._costs is None:
            owner = np.repeat(np.arange(len(supports)), [len(own) for own in supports])
            charged = np.array(list(chain.from_iterable(supports)), dtype=np.intp)
            paid = np.bincount(owner, p.l0[charged], len(supports))
        else:
            paid = np.array([self._paid(own) for own in supports])
        return at.objective - drops + paid - self._paid([int(j) for j in at.support])

    @blas_threads(1)  # for equal bits with any number of threads
    def _gains(self, at: Incumbent, leaving: Sequence[int | None]) -> Array:
        """What every column would gain by joining the support without one of its columns: a line of estimates
        for each of ``leaving``, None being the whole support.

        In the model the other weights follow as if they had no bounds: one inverse serves all lines.
        """
        p, w = self.problem.prices, at.weights
        gradient, gram = self._model(at)
        moving = np.flatnonzero((w > 0) & (w < p.max_weight))
        rows = gram.of(moving)
        inverse = np.linalg.pinv(rows[:, moving] + np.diag(p.l2[moving]), rcond=1e-12, hermitian=True)
        along = inverse @ rows
        slope = gradient + p.l1
        schur = gram.diagonal + p.l2 - np.einsum("ij,ij->j", rows, along)
        bends = inverse.diagonal() > _rounding(inverse)
        place = {int(j): i for i, j in enumerate(moving) if bends[i]}
        found = np.empty((len(leaving), len(w)))
        for line, j in zip(found, leaving, strict=True):
            own, curvature = slope, schur
            if j is not None and j in place:
                i = place[j]
                own = slope - (w[j] / inverse[i, i]) * along[i]
                curvature = schur + along[i] * along[i] / inverse[i, i]
            elif j is not None:  # at its bound, or nothing bends: the others stay where they are
                own = slope - w[j] * gram.of(np.array([j]))[0]
            curvature = np.maximum(curvature, 1e-6 * (gram.diagonal + p.l2))
            step = np.minimum(np.maximum(-own, 0.0) / np.maximum(curvature, 1e-300), p.max_weight)
            line[:] = -step * (own + 0.5 * curvature * step) - p.l0
        return found

    def _joined(
        self, at: Incumbent, leaving: Sequence[int | None], outside: list[int], most: int = _SCREENED
    ) -> list[list[int]]:
        """The support without one of its columns (None: with all of them) and with another one: any, or the
        most promising where there are many."""
        bases = [[int(i) for i in at.support if i != j] for j in leaving]
        if len(outside) <= most:
            return [[*base, new] for base in bases for new in outside]
        columns, found = np.array(outside), []
        for base, gains in zip(bases, self._gains(at, leaving), strict=True):
            order = np.argsort(-gains[columns], kind="stable")[:most]
            found += [[*base, int(new)] for new in np.sort(columns[order])]
        return found

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
            parts = self._by_feature(at.support)
            for _ in range(max(1, (len(parts) - (self._places or 0) + 1) // 2)):
                rest = [[j for own, cols in parts.items() if own != g for j in cols] for g in parts]
                del parts[list(parts)[int(np.argmin(self._scores(at, rest)))]]
            at = self.refit([j for cols in parts.values() for j in cols], at.weights)
        while len(at.support) > size and not self.late():
            support = [int(j) for j in at.support]
            # several at once while there are many to go
            count = max(1, (len(support) - size + 1) // 2)
            if len(support) > _WIDE:
                support = self._salient(at, size, count)
            else:
                for _ in range(count):
                    scores = self._scores(at, [[i for i in support if i != j] for j in support])
                    del support[int(np.argmin(scores))]
            at = self.refit(support, at.weights)
        return at

    def shed(self, at: Incumbent, size: int) -> Incumbent:
        """Drop columns down to ``size``, and further while it pays; many between one refit and the next."""
        while len(at.support) and not self.late():
            support, value = [int(j) for j in at.support], at.objective
            if len(support) > _WIDE:
                support = self._salient(at, size, len(support) // 4)
            else:
                for _ in range(max(1, len(support) // 4)):  # the model holds near the present weights
                    scores = self._scores(at, [[i for i in support if i != j] for j in support])
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

    @blas_threads(1)  # for equal bits with any number of threads
    def _salient(self, at: Incumbent, size: int, count: int) -> list[int]:
        """A support without ``count`` columns: those whose loss costs least in the model, one after another.

        Once there are ``size``, only while it pays. Bounds on weights are left aside: without a column the
        others follow freely, and the cost is w^2 / 2 over the diagonal of the inverse Hessian.
        """
        p = self.problem.prices
        _, gram = self._model(at)
        columns = np.flatnonzero((at.weights > 0) & p.charged)
        core = np.concatenate([self._free[at.weights[self._free] > 0], columns])
        block = gram.square(core) + np.diag(p.l2[core])
        inverse = np.linalg.pinv(block, rcond=1e-12, hermitian=True)
        weights, alive = at.weights[core].copy(), p.charged[core]
        least_bend = _rounding(inverse)
        for _ in range(count):
            own = np.maximum(inverse.diagonal(), least_bend)
            saliency = np.where(alive, 0.5 * np.maximum(weights, 0.0) ** 2 / own - p.l0[core], np.inf)
            least = int(np.argmin(saliency))
            if not alive.any() or (np.count_nonzero(alive) <= size and saliency[least] >= 0.0):
                break
            along = inverse[least].copy()
            weights -= (weights[least] / own[least]) * along
            inverse -= along[:, None] * (along / own[least])
            alive[least] = False
        return [int(j) for j in core[alive]]

    def _moves(self, at: Incumbent, entering: Collection[int] | None = None) -> list[list[int]]:
        """The most promising supports one drop, add or swap away, best first by the model.

        ``entering``: the only columns that may come in.
        """
        p, k = self.problem.prices, self.problem.max_terms
        if self._whole:
            return self._ranked(at, self._whole_moves(at))[:_REFITS_PER_ROUND]
        support = [int(j) for j in at.support]
        inside = set(support)
        outside = [j for j in self._usable() if j not in inside and (entering is None or j in entering)]
        edges = -self._model(at)[0]
        candidates: list[list[int]] = []
        if self._priced or self._costs is not None:
            candidates += [[i for i in support if i != j] for j in support]
        if k is None or len(support) < k:
            candidates += self._joined(at, [None], [i for i in outside if edges[i] > p.l1[i]])
        leaving, entering_most = self._effort(at)
        candidates += self._joined(at, leaving, outside, entering_most)
        if self._places is not None:
            candidates = [own for own in candidates if self._fits(own)]
        found = self._ranked(at, candidates)[:_REFITS_PER_ROUND]
        if self.problem.limits is not None:
            found += self._ranked(at, self._feature_moves(at))[:_FEATURE_SWAPS]
        return found

    def _effort(self, at: Incumbent) -> tuple[list[int], int]:
        """Which columns may leave in a swap, and how many may come for each: fewer where scores are dear."""
        support = [int(j) for j in at.support]
        if len(support) <= _LEAVING or self.problem.pool.n_columns <= _WIDE:
            return support, _SCREENED
        kept = set(self._salient(at, 0, _LEAVING))
        leaving = [j for j in support if j not in kept]
        affordable = _SCORING_WORK / (max(1, len(leaving)) * float(len(support)) ** 3)
        return leaving, int(np.clip(affordable, 2, _SCREENED))

    def _ranked(self, at: Incumbent, candidates: list[list[int]]) -> list[list[int]]:
        """Those that the model holds for better than the present support, best first."""
        if not candidates:
            return []
        scores = self._scores(at, candidates)
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

    def _feature_moves(self, at: Incumbent) -> list[list[int]]:
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
        scores = self._scores(at, starts)
        seen: set[tuple[int, ...]] = set()
        for i in np.argsort(scores, kind="stable"):
            start = starts[i]
            pair = (len(start), *start[:-1], self._feature[start[-1]])
            if pair in seen:
                continue
            seen.add(pair)
            size = len(at.support) + 1 if k is None else k
            candidates += self._extensions(at, start, size)
            if len(seen) == _FEATURE_SWAPS:
                break
        return candidates

    def _extensions(self, at: Incumbent, support: list[int], size: int) -> list[list[int]]:
        """A support and what becomes of it by adding the best column of its features, again and again."""
        found = [support]
        while len(support) < size:
            used = self._features(support)
            more = [[*support, j] for j in self._outside(support) if self._feature[j] in used]
            if not more:
                break
            support = more[int(np.argmin(self._scores(at, more)))]
            found.append(support)
        return found

    def improve(
        self, at: Incumbent, max_rounds: int = 50, entering: Collection[int] | None = None
    ) -> Incumbent:
        """Take the best move until none of the promising ones helps. ``entering``: columns that may come in,
        where not all of them may."""
        passed = []
        for _ in range(max_rounds):
            key = (self.problem.max_terms, tuple(at.support))
            if entering is None and key in self._ends:
                at = self._ends[key]
                break
            passed.append(key)
            best = at
            if self.late():
                return at
            for found in self.refit_all(self._moves(at, entering), at.weights):
                if found.objective < best.objective - 1e-12 * max(1.0, abs(best.objective)):
                    best = found
            if best is at:
                break
            at = best
        if entering is None:
            self._ends.update(dict.fromkeys(passed, at))
        return at

    def grow(self, size: int, at: Incumbent | None = None) -> Incumbent:
        """Forward selection, from the empty model or from ``at``: the best addition by the model, refitted,
        until there are ``size`` columns."""
        at = self.refit([]) if at is None else at
        while len(at.support) < size and not self.late():
            support = [int(j) for j in at.support]
            outside = self._outside(support, -self._model(at)[0] > self.problem.prices.l1)
            if not outside:
                break
            wider = self._joined(at, [None], outside)
            found = self.refit(wider[int(np.argmin(self._scores(at, wider)))], at.weights)
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
            support = [int(j) for j in at.support]
            used = self._features(support)
            wider = [[*support, *cols] for g, cols in parts.items() if g not in used]
            if not wider:
                break
            found = self.refit(wider[int(np.argmin(self._scores(at, wider)))], at.weights)
            if found.objective >= at.objective:
                break
            at = found
        return at

    @property
    def most_terms(self) -> int:
        usable, k = len(self._usable()), self.problem.max_terms
        return usable if k is None else min(k, usable)

    def all_columns(self, start: Array | None = None) -> Incumbent:
        """The convex solution over all columns; of many, those that are worth it join it round by round.

        ``start``: weights of which the largest are in it from the beginning.
        """
        usable = np.array(self._usable(), dtype=np.intp)
        if len(usable) <= _WIDE:
            return self.refit(usable)
        p = self.problem.prices
        at = self.refit([]) if start is None else self.largest(start, _WIDE)
        while len(at.support) < _WIDEST and not self.late():
            gradient, gram = self._model(at)
            rise = np.maximum(-gradient - p.l1, 0.0)
            gains = rise * rise / np.maximum(gram.diagonal + p.l2, 1e-300)
            outside = np.setdiff1d(usable, at.support)
            new = outside[np.argsort(-gains[outside], kind="stable")[:_JOINING]]
            wider = self.refit([*at.support, *new], at.weights)
            gain, at = at.objective - wider.objective, wider
            if gain <= _WORTH * abs(at.objective):
                break
        return at

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

    Starts: the empty model, ``start`` (weights) if given, forward selection of columns or of features, the
    convex solution thinned out, in small and in large steps, and the best choice among the first 10, 20, 40,
    ... columns, each found in the same way. ``again``: only ``start`` and the columns of its features. On
    large tables the search sees some of the rows; what it finds is refitted and compared on all of them.
    """
    merged = merge_rows(problem)
    before: _Before | None = None
    work = 0
    for columns in [] if again or problem.limits is not None else _prefixes(merged):
        if late():
            break
        part = None if before is None else before.within(columns)
        found, convex, refits = _search(merge_rows(merged.part(columns)), None, late, before=part)
        before, work = _Before(found, convex).over(columns, len(merged.prices)), work + refits
    found, _, refits = _search(merged, start, late, again, before)
    return found, work + refits


@dataclass(frozen=True, eq=False)
class _Before:
    """What a search among fewer columns has found: its choice, and the convex weights of all of them."""

    best: Incumbent
    convex: Array | None

    def over(self, columns: NDArray[np.intp], n: int) -> _Before:
        """The same over ``n`` columns, of which it knows these."""

        def spread(weights: Array) -> Array:
            wider = np.zeros(n)
            wider[columns] = weights
            return wider

        best = replace(self.best, support=columns[self.best.support], weights=spread(self.best.weights))
        return _Before(best, None if self.convex is None else spread(self.convex))

    def within(self, columns: NDArray[np.intp]) -> _Before:
        """The same over these columns, which have all that it uses."""
        support = np.searchsorted(columns, self.best.support)
        best = replace(self.best, support=support, weights=self.best.weights[columns])
        return _Before(best, None if self.convex is None else self.convex[columns])


def _prefixes(problem: CardinalityProblem) -> list[NDArray[np.intp]]:
    """The first 10, 20, 40, ... of the charged columns, each with the others."""
    charged = problem.prices.charged
    rank = np.cumsum(charged) - 1
    found, count = [], _FIRST_PREFIX
    while count < np.count_nonzero(charged):
        found.append(np.flatnonzero(~charged | (rank < count)))
        count *= 2
    return found


def _search(
    merged: CardinalityProblem,
    start: Array | None,
    late: Callable[[], bool],
    again: bool = False,
    before: _Before | None = None,
) -> tuple[Incumbent, Array | None, int]:
    """Local search on distinct rows: the best choice, convex weights, and the number of refits.

    ``before``: what was found among some of the columns; the choice is no worse than that.
    """
    smaller = sketch_rows(merged)
    polisher = Polisher(smaller, late)
    k = polisher.most_terms
    starts = [polisher.refit([])]
    if start is not None:
        starts.append(polisher.largest(start, k))
    if before is not None:
        starts.append(polisher.refit(before.best.support, before.best.weights))
    wide = []
    if again:
        wide.append(polisher.all_of_features(starts[-1]))
    elif k > 0 and not late():
        starts.append(polisher.grow(k))
        if not late():
            wide.append(polisher.all_columns(None if before is None else before.convex))
            if len(wide[0].support) > k:
                starts.append(polisher.largest(wide[0].weights, k))
        if merged.limits is not None:
            wide.append(polisher.grow_features())
    thinned = [polisher.shed(wide[0], k)] if wide and merged.limits is None and not late() else []
    thinned += [polisher.thin(own, k) for own in wide]
    starts += [at for at in thinned if merged.allows(at.support)]  # those that time was enough for
    ends = [*starts[:1], *map(polisher.improve, starts[1:])]
    if smaller is not merged:
        ends += [] if before is None else [before.best]
        ends = _refitted(Polisher(merged), list({tuple(at.support): at for at in ends}.values()), late)
    convex = wide[0].weights if wide else None
    return min(ends, key=lambda at: at.objective), convex, polisher.work


def _refitted(polisher: Polisher, found: list[Incumbent], late: Callable[[], bool]) -> list[Incumbent]:
    """These supports on all rows, in their order; when time is up only the most promising ones."""
    done: dict[int, Incumbent] = {}
    for k in sorted(range(len(found)), key=lambda k: found[k].objective):
        if not done or not late():
            done[k] = polisher.refit(found[k].support, found[k].weights)
    return [done[k] for k in sorted(done)]

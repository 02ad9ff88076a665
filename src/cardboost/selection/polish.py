"""Local search over supports: drop, add and swap columns, with a convex refit inside the box.

With limits on features, whole features are dropped and swapped as well, and no move leaves the limits. Moves
are ranked by the quadratic model of the loss at the incumbent; the most promising ones are refitted on the
true loss, and the best that lowers the objective is taken (:mod:`cardboost.selection.refits`).

Where there are many columns, estimates of their gains choose those that are scored. The search over n columns
also goes on from its results among the first 10, 20, 40, ... of them: more columns never make a choice worse.
:func:`choose_sizes` searches for many limits on terms at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from cardboost.dictionary.columns import spread
from cardboost.problem.budget import Late, never
from cardboost.problem.prices import FeatureLimits
from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.refits import Refitter
from cardboost.selection.selection_problem import Array, Incumbent, SelectionProblem, Support, best_of

_REFITS_PER_ROUND = 6  # of the most promising moves
_FEATURE_SWAPS = 3  # pairs of a leaving and an entering feature, extended to as many columns as allowed
_SCREENED = 48  # entering columns that are scored for every drop, chosen by their estimated gains
_WIDE = 64  # columns in use, beyond which columns leave by saliency and not by scores
_LEAVING = 24  # columns of least saliency that may leave in a swap, where there are many
_SCORING_WORK = 5e7  # multiplications for the scores of one round, about
_JOINING = 32  # columns that join the convex solution at a time, where there are many
_WIDEST = 192  # columns of the convex solution, beyond which no more join
_WORTH = 1e-5  # share of the objective that a round of joining columns must gain
_NUDGE = (
    1e-6  # weight of a column of a feature that has to be used, where no column of it lowers the objective
)
_FIRST_PREFIX = 10  # charged columns of the smallest problem that polish solves on its way


def _without(support: Sequence[int], column: int) -> list[int]:
    return [j for j in support if j != column]


class Polisher(Refitter):
    """Moves between supports of one problem; :meth:`improve` takes the best until none helps."""

    def __init__(self, problem: SelectionProblem, late: Late = never) -> None:
        super().__init__(problem, late)
        self._limits = problem.limits or FeatureLimits()
        self._must = set(self._limits.must_include)
        # where columns cost nothing and are not counted, a feature in use is in use with all of them
        self._whole_features = problem.limits is not None and problem.max_terms is None and self._l0 is None
        self._local_optima: dict[tuple[int | None, tuple[int, ...]], Incumbent] = {}

    @property
    def most_terms(self) -> int:
        """The most charged columns that a choice can use."""
        return len(self.problem.usable[: self.problem.max_terms])

    # ------------------------------------------------------------------------------------ features

    def _features(self, support: Iterable[int]) -> set[int]:
        return {self._feature[j] for j in support}

    def _by_feature(self, support: Iterable[int]) -> dict[int, list[int]]:
        """The columns of a support feature by feature."""
        parts: dict[int, list[int]] = {}
        for j in support:
            parts.setdefault(self._feature[j], []).append(int(j))
        return parts

    def _fits(self, support: Iterable[int]) -> bool:
        """Whether the limits on features allow a model of these columns."""
        used = self._features(support)
        return used.issuperset(self._must) and not self._limits.crowded(used)

    def _lacking(self, support: Iterable[int]) -> list[int]:
        """The features that have to be used, and of which there is no column."""
        return sorted(self._must - self._features(support)) if self._must else []

    def _outside(self, support: list[int], useful: NDArray[np.bool_] | None = None) -> list[int]:
        """Columns that could join a support."""
        inside, used = set(support), self._features(support)
        outside = [j for j in self.problem.usable.tolist() if j not in inside]
        if useful is not None:
            outside = [j for j in outside if useful[j]]
        if self._limits.free_choice:
            return outside
        lacking, k = set(self._lacking(support)), self.problem.max_terms
        # the last places are for the features that have to be used
        every = k is None or len(support) + len(lacking) < k
        joining = lacking if not every else self._features(outside)
        joining = {g for g in joining if g in used or not self._limits.crowded(used | {g})}
        return [j for j in outside if self._feature[j] in joining]

    # ------------------------------------------------------------------------------------ starts

    def largest(self, weights: Array, size: int) -> Incumbent:
        """The ``size`` largest of these weights, refitted; within the limits on features."""
        charged = np.where(self.problem.prices.charged, weights, 0.0)
        parts = self._by_feature(np.flatnonzero(charged > 0))
        best: set[int] = set()
        for g in sorted(parts, key=lambda g: (-float(np.sum(charged[parts[g]])), g)):
            if not self._limits.crowded(best | {g}):
                best.add(g)
        kept = sorted((j for g in best for j in parts[g]), key=lambda j: (-charged[j], j))
        first = [next(j for j in kept if self._feature[j] == g) for g in sorted(best & self._must)]
        return self.complete(self.refit([*first, *(j for j in kept if j not in first)][:size]))

    def complete(self, incumbent: Incumbent) -> Incumbent:
        """An incumbent with every feature that has to be used, a column of each added where there is none.

        Where no column of such a feature lowers the objective, one of them is in use with next to no weight:
        that is then the best that can be done.
        """
        lacking, k = self._lacking(incumbent.support), self.problem.max_terms
        if not lacking:
            return incumbent
        support, places = (
            incumbent.support.tolist(),
            len(incumbent.support) if k is None else k - len(lacking),
        )
        if len(support) > places:
            support = self._fewer(incumbent, places, len(support) - places)
        parts = self._by_feature(self.problem.usable)
        for g in lacking:
            wider = [[*support, j] for j in parts[g]]
            support = wider[int(np.argmin(self.scores(incumbent, wider)))]
        incumbent = self.refit(support, incumbent.weights)
        weights, p = incumbent.weights.copy(), self.problem.prices
        for g in self._lacking(incumbent.support):
            pull = -self.model(incumbent)[0][parts[g]] - p.l1[parts[g]]
            best = parts[g][int(np.argmax(pull))]
            weights[best] = min(_NUDGE, float(p.max_weight[best]))
        used = np.flatnonzero((weights > 0) & p.charged)
        return Incumbent(used, weights, self.problem.objective_of(weights))

    def all_columns(self, start: Array | None = None) -> Incumbent:
        """The convex solution over all columns; of many, those that are worth it join it round by round.

        ``start``: weights of which the largest are in it from the beginning.
        """
        usable, p = self.problem.usable, self.problem.prices
        if len(usable) <= _WIDE:
            return self.refit(usable)
        incumbent = self.refit([]) if start is None else self.largest(start, _WIDE)
        while len(incumbent.support) < _WIDEST and not self.late():
            gradient, gram = self.model(incumbent)
            rise = np.maximum(-gradient - p.l1, 0.0)
            gains = rise * rise / np.maximum(gram.diagonal + p.l2, 1e-300)
            outside = np.setdiff1d(usable, incumbent.support)
            new = outside[np.argsort(-gains[outside], kind="stable")[:_JOINING]]
            wider = self.refit([*incumbent.support, *new], incumbent.weights)
            gain, incumbent = incumbent.objective - wider.objective, wider
            if gain <= _WORTH * abs(incumbent.objective):
                break
        return incumbent

    def all_of_features(self, incumbent: Incumbent) -> Incumbent:
        """All columns of the features that are in use."""
        used = self._features(incumbent.support)
        columns = [j for j in self.problem.usable.tolist() if self._feature[j] in used]
        return self.refit(columns, incumbent.weights)

    def _refit_best(self, incumbent: Incumbent, supports: list[list[int]]) -> Incumbent:
        """The best of these supports by the model, refitted."""
        return self.refit(supports[int(np.argmin(self.scores(incumbent, supports)))], incumbent.weights)

    def grow(self, size: int, incumbent: Incumbent | None = None) -> Incumbent:
        """Forward selection up to ``size`` columns, from the empty model or from an incumbent."""
        incumbent = self.refit([]) if incumbent is None else incumbent
        while len(incumbent.support) < size and not self.late():
            useful = -self.model(incumbent)[0] > self.problem.prices.l1
            outside = self._outside(incumbent.support.tolist(), useful)
            if not outside:
                break
            wider = self._refit_best(incumbent, self._joined(incumbent, [None], outside))
            if len(wider.support) <= len(incumbent.support) or wider.objective >= incumbent.objective:
                break
            incumbent = wider
        return incumbent

    def grow_features(self) -> Incumbent:
        """Forward selection of whole features, each with all its columns."""
        incumbent = self.refit([])
        parts = self._by_feature(self.problem.usable)
        for _ in parts:
            used = self._features(incumbent.support)
            joining = [g for g in parts if g not in used and not self._limits.crowded(used | {g})]
            supports = [[*incumbent.support.tolist(), *parts[g]] for g in joining]
            if self.late() or not supports:
                break
            wider = self._refit_best(incumbent, supports)
            if wider.objective >= incumbent.objective:
                break
            incumbent = wider
        return incumbent

    # ------------------------------------------------------------------------------------ fewer columns

    def thin(self, incumbent: Incumbent, size: int) -> Incumbent:
        """Drop the least useful features down to their limit, then columns down to ``size``.

        By the model, which is renewed by a refit whenever half of the surplus is gone.
        """
        while self._limits.crowded(self._features(incumbent.support)) and not self.late():
            parts = self._by_feature(incumbent.support)
            rivals = self._limits.rivals(set(parts))
            for _ in range(max(1, (max(len(rivals) // 2, self._limits.surplus(set(parts))) + 1) // 2)):
                rivals = self._limits.rivals(set(parts))
                leaving = [g for g in parts if g in rivals or not (rivals or g in self._must)]
                rest = [[j for other in parts if other != g for j in parts[other]] for g in leaving]
                del parts[leaving[int(np.argmin(self.scores(incumbent, rest)))]]
            incumbent = self.refit([j for columns in parts.values() for j in columns], incumbent.weights)
        while len(incumbent.support) > size and not self.late():
            count = max(1, (len(incumbent.support) - size + 1) // 2)
            incumbent = self.refit(self._fewer(incumbent, size, count), incumbent.weights)
        return incumbent

    def shed(self, incumbent: Incumbent, size: int) -> Incumbent:
        """Drop columns down to ``size``, and further while it pays; a quarter of them between two refits."""
        while len(incumbent.support) and not self.late():
            support = self._fewer(incumbent, size, max(1, len(incumbent.support) // 4))
            smaller = self.refit(support, incumbent.weights)
            if len(incumbent.support) <= size and smaller.objective >= incumbent.objective:
                return incumbent
            incumbent = smaller
        return incumbent

    def _fewer(self, incumbent: Incumbent, size: int, count: int) -> list[int]:
        """A support without ``count`` columns, the least useful ones by the model.

        Once there are ``size``, only while it pays.
        """
        support, objective = incumbent.support.tolist(), incumbent.objective
        if len(support) > _WIDE and not self._must:
            return self.spare(incumbent, size, count)
        for _ in range(count):
            leaving = [j for j in support if not self._is_last(j, support)]
            if not leaving:
                break
            scores = self.scores(incumbent, [_without(support, j) for j in leaving])
            least = int(np.argmin(scores))
            if len(support) <= size and scores[least] >= objective:
                break
            objective = float(scores[least])
            support.remove(leaving[least])
        return support

    def _is_last(self, column: int, support: list[int]) -> bool:
        """Whether a feature that has to be used would not be without this column."""
        g = self._feature[column]
        return g in self._must and sum(self._feature[j] == g for j in support) == 1

    # ------------------------------------------------------------------------------------ moves

    def improve(
        self, incumbent: Incumbent, max_rounds: int = 50, entering: Collection[int] | None = None
    ) -> Incumbent:
        """Take the best move until none of the promising ones lowers the objective.

        Parameters
        ----------
        incumbent : Incumbent
            Where to start; within the limits.
        max_rounds : int
            The most moves.
        entering : collection of int, optional
            The only columns that may join.

        Returns
        -------
        Incumbent
            No worse than the start.
        """
        passed = []
        for _ in range(max_rounds):
            key = (self.problem.max_terms, incumbent.key)
            if entering is None and key in self._local_optima:
                incumbent = self._local_optima[key]
                break
            passed.append(key)
            best = incumbent
            if self.late():
                return incumbent
            for other in self.refit_all(self._moves(incumbent, entering), incumbent.weights):
                better = other.objective < best.objective - 1e-12 * max(1.0, abs(best.objective))
                if better and not self._lacking(other.support):
                    best = other
            if best is incumbent:
                break
            incumbent = best
        if entering is None:
            self._local_optima.update(dict.fromkeys(passed, incumbent))
        return incumbent

    def _moves(self, incumbent: Incumbent, entering: Collection[int] | None = None) -> list[list[int]]:
        """The most promising supports one drop, add or swap away, best first by the model."""
        if self._whole_features:
            return self._ranked(incumbent, self._whole_moves(incumbent))[:_REFITS_PER_ROUND]
        p, k = self.problem.prices, self.problem.max_terms
        support, edges = incumbent.support.tolist(), -self.model(incumbent)[0]
        inside = set(support)
        outside = [j for j in self.problem.usable.tolist() if j not in inside]
        outside = outside if entering is None else [j for j in outside if j in entering]
        supports: list[list[int]] = []
        if self._l0 is not None or self._costs is not None:
            supports += [_without(support, j) for j in support]
        if k is None or len(support) < k:
            supports += self._joined(incumbent, [None], [j for j in outside if edges[j] > p.l1[j]])
        supports += self._joined(incumbent, *self._swaps(incumbent, outside))
        ranked = self._ranked(incumbent, self._allowed(supports))[:_REFITS_PER_ROUND]
        if self.problem.limits is not None:
            moves = self._allowed(self._feature_moves(incumbent))
            ranked += self._ranked(incumbent, moves)[:_FEATURE_SWAPS]
        return ranked

    def _allowed(self, supports: list[list[int]]) -> list[list[int]]:
        """Those that the limits on features allow."""
        if self._limits.free_choice:
            return supports
        return [support for support in supports if self._fits(support)]

    def _swaps(self, incumbent: Incumbent, outside: list[int]) -> tuple[list[int], list[int], int]:
        """Columns that may leave and join in a swap, and how many are scored: fewer where scores are dear."""
        support = incumbent.support.tolist()
        if len(support) <= _LEAVING or self.problem.pool.n_columns <= _WIDE:
            return support, outside, _SCREENED
        kept = set(self.spare(incumbent, 0, _LEAVING))
        leaving = [j for j in support if j not in kept]
        affordable = _SCORING_WORK / (max(1, len(leaving)) * float(len(support)) ** 3)
        return leaving, outside, int(np.clip(affordable, 2, _SCREENED))

    def _joined(
        self, incumbent: Incumbent, leaving: Sequence[int | None], outside: list[int], most: int = _SCREENED
    ) -> list[list[int]]:
        """The support without one of its columns (None: with all of them) and with another one: any column
        outside, or the ``most`` promising ones where there are more."""
        bases = [[j for j in incumbent.support.tolist() if j != gone] for gone in leaving]
        if len(outside) <= most:
            return [[*base, new] for base in bases for new in outside]
        columns, supports = np.array(outside), []
        for base, gains in zip(bases, self.gains(incumbent, leaving), strict=True):
            order = np.argsort(-gains[columns], kind="stable")[:most]
            supports += [[*base, new] for new in np.sort(columns[order]).tolist()]
        return supports

    def _ranked(self, incumbent: Incumbent, supports: list[list[int]]) -> list[list[int]]:
        """The supports that the model holds for better than the incumbent, best first."""
        if not supports:
            return []
        scores = self.scores(incumbent, supports)
        order = np.argsort(scores, kind="stable")
        return [sorted(supports[i]) for i in order if scores[i] < incumbent.objective]

    def _whole_moves(self, incumbent: Incumbent) -> list[list[int]]:
        """Supports with one feature less, more or exchanged, each feature with all its columns."""
        parts = self._by_feature(self.problem.usable)
        used = sorted(self._features(incumbent.support))
        others = [g for g in parts if g not in used]
        choices = [_without(used, g) for g in used] if self._costs is not None else []
        choices += [[*used, new] for new in others]
        choices += [[*_without(used, g), new] for g in used for new in others]
        return self._allowed([[j for g in features for j in parts[g]] for features in [used, *choices]])

    def _feature_moves(self, incumbent: Incumbent) -> list[list[int]]:
        """Supports without one of the features, or with another one instead of it.

        The new feature gets as many columns as terms become free.
        """
        parts, k = self._by_feature(incumbent.support), self.problem.max_terms
        several = [g for g in parts if len(parts[g]) > 1]
        bases = [[j for j in incumbent.support.tolist() if self._feature[j] != g] for g in several]
        starts = [[*base, j] for base in bases for j in self._outside(base) if self._feature[j] not in parts]
        if not starts:
            return bases
        size = len(incumbent.support) + 1 if k is None else k
        swaps: dict[tuple[int, ...], list[int]] = {}  # the best start of every pair of features
        for i in np.argsort(self.scores(incumbent, starts), kind="stable"):
            swaps.setdefault((len(starts[i]), *starts[i][:-1], self._feature[starts[i][-1]]), starts[i])
            if len(swaps) == _FEATURE_SWAPS:
                break
        return [
            *bases,
            *(wider for start in swaps.values() for wider in self._extensions(incumbent, start, size)),
        ]

    def _extensions(self, incumbent: Incumbent, support: list[int], size: int) -> list[list[int]]:
        """A support, and what it becomes by adding the best column of its features again and again."""
        extensions, used = [support], self._features(support)
        while len(extensions[-1]) < size:
            support = extensions[-1]
            wider = [[*support, j] for j in self._outside(support) if self._feature[j] in used]
            if not wider:
                break
            extensions.append(wider[int(np.argmin(self.scores(incumbent, wider)))])
        return extensions


# ---------------------------------------------------------------------------------------------- one limit


def polish(
    problem: SelectionProblem, start: Array | None = None, late: Late = never, again: bool = False
) -> tuple[Incumbent, int]:
    """The best support that local search reaches from several starts, and the number of refits.

    Starts are the empty model, ``start``, forward selection of columns or of features, the convex solution
    thinned out in small and in large steps, and the best choice among the first 10, 20, 40, ... columns. On
    large tables the search sees some of the rows; its results are refitted and compared on all of them.

    Parameters
    ----------
    problem : SelectionProblem
        What to choose from.
    start : array, optional
        Weights over all columns whose largest are one of the starts.
    late : callable
        Asked between refits whether to stop.
    again : bool
        Only search from ``start`` and the columns of its features.

    Returns
    -------
    incumbent : Incumbent
        The best choice.
    refits : int
        The supports that were refitted.
    """
    merged = merge_rows(problem)
    n, work = len(merged.prices), 0
    before: list[Incumbent] = []
    for columns in [] if again or problem.limits is not None else _prefixes(merged):
        if late():
            break
        narrow = [_narrowed(incumbent, columns) for incumbent in before]
        ends, refits = _search(merge_rows(merged.part(columns)), None, late, before=narrow)
        before, work = [_widened(incumbent, columns, n) for incumbent in ends], work + refits
    ends, refits = _search(merged, start, late, again, before)
    return ends[0], work + refits


def _prefixes(problem: SelectionProblem) -> list[Support]:
    """The first 10, 20, 40, ... of the charged columns, each time with all free columns."""
    charged = problem.prices.charged
    rank = np.cumsum(charged) - 1
    prefixes, count = [], _FIRST_PREFIX
    while count < np.count_nonzero(charged):
        prefixes.append(np.flatnonzero(~charged | (rank < count)))
        count *= 2
    return prefixes


def _narrowed(incumbent: Incumbent, columns: Support) -> Incumbent:
    """An incumbent of all columns over some of them, which have its whole support."""
    support = np.searchsorted(columns, incumbent.support)
    return Incumbent(support, incumbent.weights[columns], incumbent.objective)


def _widened(incumbent: Incumbent, columns: Support, n: int) -> Incumbent:
    """An incumbent of some columns over all ``n``."""
    return Incumbent(columns[incumbent.support], spread(incumbent.weights, columns, n), incumbent.objective)


def _search(
    merged: SelectionProblem, start: Array | None, late: Late, again: bool = False,
    before: Sequence[Incumbent] = (),
) -> tuple[list[Incumbent], int]:  # fmt: skip
    """Local search on distinct rows: the best choice, then the convex solution if there was time for it.

    ``before``: the same of a search among some of the columns; the choice is no worse than its choice. Also
    returns the number of refits.
    """
    smaller = sketch_rows(merged)
    polisher = Polisher(smaller, late)
    k = polisher.most_terms
    starts = [polisher.complete(polisher.refit([]))]
    if start is not None:
        starts.append(polisher.largest(start, k))
    if before:
        starts.append(polisher.refit(before[0].support, before[0].weights))
    wide = []
    if again:
        wide.append(polisher.all_of_features(starts[-1]))
    elif k > 0 and not late():
        starts.append(polisher.grow(k))
        if not late():
            wide.append(polisher.all_columns(before[1].weights if len(before) > 1 else None))
            if len(wide[0].support) > k:
                starts.append(polisher.largest(wide[0].weights, k))
        if merged.limits is not None:
            wide.append(polisher.grow_features())
    thinned = [polisher.shed(wide[0], k)] if wide and merged.limits is None and not late() else []
    thinned += [polisher.thin(incumbent, k) for incumbent in wide]
    starts = [polisher.complete(incumbent) for incumbent in [*starts, *thinned]]
    starts = [incumbent for incumbent in starts if merged.allows(incumbent.support)]  # if time was enough
    ends = [*starts[:1], *map(polisher.improve, starts[1:])]
    if smaller is not merged:
        distinct = {incumbent.key: incumbent for incumbent in [*ends, *before[:1]]}
        ends = refit_on_all_rows(merged, smaller, list(distinct.values()), late)
    return [best_of(ends), *wide[:1]], polisher.work


def refit_on_all_rows(
    merged: SelectionProblem, searched: SelectionProblem, incumbents: list[Incumbent], late: Late = never
) -> list[Incumbent]:
    """The results of a search on all rows, where it saw only some of them (:func:`sketch_rows`).

    They stay in their order; when time is up only the most promising ones are left.
    """
    if searched is merged:
        return incumbents
    polisher = Polisher(merged)
    done: dict[int, Incumbent] = {}
    for i in sorted(range(len(incumbents)), key=lambda i: incumbents[i].objective):
        if not done or not late():
            done[i] = polisher.complete(polisher.refit(incumbents[i].support, incumbents[i].weights))
    return [done[i] for i in sorted(done)]


# ---------------------------------------------------------------------------------------------- many limits


def choose_sizes(
    problem: SelectionProblem, sizes: Sequence[int], start: Array | None = None, late: Late = never
) -> list[Incumbent]:
    """Local search for many limits on terms at once.

    One polisher serves all sizes, so that no support is refitted twice. On the way up every choice is the one
    before it with the best columns added, on the way down the one after it without its least useful columns,
    each improved by swaps; then up again from the results of the way down.

    Parameters
    ----------
    problem : SelectionProblem
        What to choose from; its own ``max_terms`` is ignored.
    sizes : sequence of int
        The limits, ascending.
    start : array, optional
        Weights whose largest are a start for every size.
    late : callable
        Asked between refits whether to stop.

    Returns
    -------
    list of Incumbent
        The best choice for every size; no objective is above that of a smaller size.
    """
    merged = merge_rows(problem)
    smaller = sketch_rows(merged)
    walk = _SizeWalk(Polisher(smaller, late), sizes)
    walk.polisher.limit(sizes[0])
    walk.up(walk.polisher.complete(walk.polisher.refit([])))
    if start is not None:
        for k in sizes:
            walk.offer(k, walk.polisher.largest(start, k))
    if not late():
        walk.down(walk.polisher.all_columns())
        walk.up(None)
    choices: list[Incumbent] = []
    for incumbent in refit_on_all_rows(merged, smaller, [walk.best[k] for k in sizes]):
        choices.append(best_of([*choices[-1:], incumbent]))
    return choices


def improve_sizes(
    problem: SelectionProblem, sizes: Sequence[int], before: Sequence[Incumbent], late: Late = never
) -> list[Incumbent]:
    """For many limits on terms the choices made with other prices, refitted and improved by one move each.

    Parameters
    ----------
    problem : SelectionProblem
        What to choose from, over distinct rows (:func:`merge_rows`); its own ``max_terms`` is ignored.
    sizes : sequence of int
        The limits, ascending.
    before : sequence of Incumbent
        One for every size: its columns are a start.
    late : callable
        Asked between refits whether to stop.

    Returns
    -------
    list of Incumbent
        The best choice for every size; no objective is above that of a smaller size.
    """
    polisher = Polisher(problem, late)
    choices: list[Incumbent] = []
    for size, start in zip(sizes, before, strict=True):
        polisher.limit(size)
        end = polisher.improve(polisher.refit(start.support, start.weights), max_rounds=1)
        choices.append(best_of([*choices[-1:], end]))
    return choices


class _SizeWalk:
    """The best choice for every size so far, and ways through all sizes."""

    def __init__(self, polisher: Polisher, sizes: Sequence[int]) -> None:
        self.polisher, self.sizes = polisher, sizes
        self.best: dict[int, Incumbent] = {}
        self._searched: set[tuple[int, tuple[int, ...]]] = set()

    def offer(self, size: int, start: Incumbent) -> None:
        """Improve a start within a size, unless that was done before, and keep it if it is better."""
        self.polisher.limit(size)
        start = self.polisher.complete(start)
        key = (size, start.key)
        if key in self._searched or not self.polisher.problem.allows(start.support):
            return
        end = self.polisher.improve(start)
        self._searched |= {key, (size, end.key)}
        if size not in self.best or end.objective < self.best[size].objective:
            self.best[size] = end

    def up(self, incumbent: Incumbent | None) -> None:
        """From an incumbent, or from the best of the first size."""
        for k in self.sizes:
            self.polisher.limit(k)
            if incumbent is not None:
                self.best.setdefault(k, incumbent)  # within the size, whatever time is left
                self.offer(k, self.polisher.grow(k, incumbent))
            incumbent = self.best[k]

    def down(self, incumbent: Incumbent) -> None:
        """From an incumbent of any size to the best of every size."""
        for k in reversed(self.sizes):
            self.polisher.limit(k)
            self.offer(k, self.polisher.thin(incumbent, k))
            incumbent = self.best[k]

"""Multistart tabu search over fixed-point weights, on the true objective of the exponential loss.

Weights are ``range * q / (2**bits - 1)`` with whole q. A move gives one column another level. One product of
the row weights with all columns prices every level of every column in closed form
(docs/mathematics.md, "Tabu search"), so a move goes to the best level of its column; a flipped bit is one of
those compared. While a move lowers the objective the best is taken; at a local optimum the column that joins
or leaves the support at the least cost does so, and may not change sides again for a while. After every start
the best supports met are refitted inside the box, and the best of them is improved by polish.

Starts come in waves of a fixed size, each from what the waves before it have found, and every start has its
own random numbers: results do not depend on how many of them run at the same time.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.problem.losses import Exponential
from cardboost.problem.prices import Prices
from cardboost.selection.merge import merge_rows, sign_bytes, sketch_rows
from cardboost.selection.polish import Incumbent, Polisher
from cardboost.selection.selection_problem import SelectionProblem

Array = NDArray[np.float64]
Levels = NDArray[np.int32]

MAX_BITS = 16
_WAVE = 4  # starts that know of the same earlier ones
_ELITE = 8  # supports that a start hands on to the refits, and models that later ones begin near
_CHUNK = 256  # moves between two looks at the clock; row weights are computed afresh
_TOLERANCE = 1e-5  # a move must lower the objective by this part of it; refits do the rest
_LARGEST_RANGE = 40.0  # e^-40 is nothing beside 1
_AUTO_TOLERANCE = 1e-3  # bits="auto": of what the convex weights improve on the empty model


@dataclass(frozen=True)
class RangeRecord:
    """The range of the charged weights that a wave of starts has used, and what came of it.

    ``largest``: the largest weight of the best model after the wave. ``next_range`` is above ``range`` where
    this weight sits at the top or beyond, and below it where its top bit is unused.
    """

    starts: int
    range: float
    largest: float
    next_range: float


@dataclass(frozen=True, eq=False)
class TabuResult:
    """The best model, and how it was searched for: moves and starts made, bits used, ranges wave by wave."""

    incumbent: Incumbent
    moves: int
    bits: int
    ranges: tuple[RangeRecord, ...]
    starts: int


@dataclass(frozen=True, eq=False)
class Grid:
    """Fixed-point weights: ``steps`` apart, levels 0 to ``top``."""

    steps: Array
    top: Levels

    @classmethod
    def make(cls, prices: Prices, bits: int, charged_range: float, free_range: float) -> Grid:
        """``bits`` per weight; no range exceeds its box."""
        ranges = np.minimum(prices.max_weight, np.where(prices.charged, charged_range, free_range))
        top = np.where(ranges > 0, 2**bits - 1, 0).astype(np.int32)
        return cls(ranges / (2**bits - 1), top)

    def levels(self, weights: Array) -> Levels:
        """The nearest levels; a weight that is used stays so."""
        steps = np.where(self.steps > 0, self.steps, 1.0)
        nearest = np.maximum(np.rint(np.minimum(weights / steps, self.top)), weights > 0)
        return np.minimum(nearest, self.top).astype(np.int32)


@dataclass(frozen=True, eq=False)
class _Task:
    """What every start of a wave is given; can be pickled. ``polished``: supports that polish left alone."""

    problem: SelectionProblem
    grid: Grid
    moves: int
    polished: frozenset[tuple[int, ...]] = frozenset()


@dataclass(frozen=True, eq=False)
class _Found:
    incumbent: Incumbent
    moves: int


def accepts(problem: SelectionProblem) -> str | None:
    """Why tabu search cannot take a problem, in one sentence; None where it can."""
    if not isinstance(problem.risk.loss, Exponential):
        name = problem.risk.loss.name
        others = (
            "method='polish' and method='exact' serve" if name == "logistic" else "method='polish' serves"
        )
        return (
            f"Tabu search prices moves in closed form, which the {name} loss does not have: every move would "
            f"cost a pass over the rows; {others} it."
        )
    if problem.limits is not None:
        return "Tabu search does not know limits on features; method='polish' does."
    dense = problem.pool.dense()
    if dense.dtype != np.int8 or not dense.all():
        return (
            "Tabu search prices moves in closed form, for which every entry must be -1 or 1; "
            "method='polish' takes any numbers."
        )
    return None


def check_bits(bits: Any) -> None:
    whole = isinstance(bits, numbers.Integral) and not isinstance(bits, bool)
    if not (whole and 1 <= bits <= MAX_BITS) and not (isinstance(bits, str) and bits == "auto"):
        raise ValueError(f"bits must be a whole number from 1 to {MAX_BITS}, or 'auto'; got {bits!r}.")


def tabu_search(
    problem: SelectionProblem,
    start: Array | None = None,
    *,
    bits: int | Literal["auto"] = 6,
    starts: int = 24,
    moves: int = 1000,
    seed: int = 0,
    late: Callable[[], bool] = lambda: False,
    n_jobs: int | None = 1,
) -> TabuResult:
    """The best model that ``starts`` starts of at most ``moves`` moves each find.

    One of them begins at the support of ``start`` (weights over all columns), and the result is no worse than
    that. Starts run through joblib, in threads unless ``joblib.parallel_config`` says otherwise, which
    ``n_jobs=None`` obeys in their number too. ``late`` is asked now and then whether to stop; where starts
    run at the same time, between waves.
    """
    check_bits(bits)
    if seed < 0:
        raise ValueError(f"seed must be at least 0; got {seed!r}.")
    refused = accepts(problem)
    if refused is not None:
        raise ValueError(refused)
    # many starts at the same time, each on one thread
    merged = merge_rows(replace(problem, risk=replace(problem.risk, threads=1)))
    smaller = sketch_rows(merged)
    search = _Multistart(smaller, start, bits, late)
    search.run(starts, moves, seed, n_jobs)
    found = search.elite
    if smaller is not merged:
        final = Polisher(merged)
        found = [final.refit(at.support, at.weights) for at in [*found, *search.first]]
    best = min(found, key=lambda at: at.objective)
    return TabuResult(best, search.moves, search.bits, tuple(search.ranges), search.starts)


class _Multistart:
    """Elite, ranges and counts of one search, wave after wave."""

    def __init__(
        self,
        problem: SelectionProblem,
        start: Array | None,
        bits: int | Literal["auto"],
        late: Callable[[], bool],
    ) -> None:
        self.problem = problem
        self.late = late
        self.moves = self.starts = 0
        self.ranges: list[RangeRecord] = []
        self.polished: set[tuple[int, ...]] = set()
        polisher = Polisher(problem, late)
        prices, self.size = problem.prices, polisher.most_terms
        self.usable = np.flatnonzero(prices.charged & (prices.max_weight > 0))
        first = [polisher.refit([])]
        everything = polisher.all_columns()
        self.convex = len(everything.support)
        if start is not None:
            first.append(polisher.largest(start, self.size))
        thin = polisher.thin(everything, self.size)
        if problem.allows(thin.support):
            first.append(thin)
        self.first = first[:0:-1]
        self.elite: list[Incumbent] = []
        self._admit(first)
        known = [everything, *first]
        self.range = self._capped(max(self._largest(at, prices.charged) for at in known), prices.charged)
        free = max(self._largest(at, ~prices.charged) for at in known)
        self.free_range = self._capped(2.0 * free, ~prices.charged)
        if bits == "auto":
            bits = _enough_bits(problem, first[0], everything, (self.range, self.free_range))
        self.bits = int(bits)
        self.solved = self.size == len(self.usable) and not (prices.l0 > 0).any()

    def run(self, starts: int, moves: int, seed: int, n_jobs: int | None) -> None:
        """Waves of starts until their number is reached or it is late."""
        if self.size == 0 or self.solved:
            return
        while self.starts < starts and not self.late():
            grid = Grid.make(self.problem.prices, self.bits, self.range, self.free_range)
            task = _Task(self.problem, grid, moves, frozenset(self.polished))
            wave = range(self.starts, min(self.starts + _WAVE, starts))
            found = _run_all(task, [(self._support(i, seed), seed, i) for i in wave], n_jobs, self.late)
            self.starts += len(found)
            self.moves += sum(own.moves for own in found)
            self._admit([own.incumbent for own in found])
            self.polished.update(_key(own.incumbent) for own in found)
            self._adapt()

    def _support(self, number: int, seed: int) -> list[int]:
        """Where a start begins: a known model, one of the elite with columns exchanged, or random columns."""
        if number < len(self.first):
            return self.first[number].support.tolist()
        random = np.random.default_rng([seed, number, 1])
        if number % _WAVE == _WAVE - 1 or not len(self.elite[0].support):
            limited = self.problem.max_terms is not None
            size = self.size if limited else int(random.integers(1, max(2, self.convex + 1)))
            return sorted(random.choice(self.usable, size, replace=False).tolist())
        support = self.elite[number % _WAVE % len(self.elite)].support
        outside = np.setdiff1d(self.usable, support)
        count = min(len(outside), int(random.integers(1, max(2, len(support) // 2 + 1))))
        leaving = random.choice(support, min(count, len(support)), replace=False)
        joining = random.choice(outside, count, replace=False)
        return sorted({*support.tolist(), *joining.tolist()} - set(leaving.tolist()))[: self.size]

    def _admit(self, found: list[Incumbent]) -> None:
        """The best models so far, one for each support."""
        by_support: dict[tuple[int, ...], Incumbent] = {}
        for at in sorted([*self.elite, *found], key=lambda at: at.objective):
            by_support.setdefault(_key(at), at)
        self.elite = list(by_support.values())[:_ELITE]

    def _adapt(self) -> None:
        """The range follows the largest weight of the best model: never outgrown, its top bit in use."""
        charged = self.problem.prices.charged
        used, largest = self.range, self._largest(self.elite[0], charged)
        self.range = self._capped(_adapted(used, largest), charged)
        free = _adapted(self.free_range, self._largest(self.elite[0], ~charged))
        self.free_range = self._capped(free, ~charged)
        self.ranges.append(RangeRecord(self.starts, used, largest, self.range))

    def _largest(self, at: Incumbent, which: NDArray[np.bool_]) -> float:
        return float(np.max(at.weights[which], initial=0.0))

    def _capped(self, wanted: float, which: NDArray[np.bool_]) -> float:
        box = float(np.max(self.problem.prices.max_weight[which], initial=0.0))
        return min(wanted if wanted > 0 else 1.0, box, _LARGEST_RANGE)


def _adapted(used: float, largest: float) -> float:
    """Twice the range while a weight is at its top, half while the top bit is unused."""
    if largest <= 0:
        return used
    while largest >= used and used < _LARGEST_RANGE:
        used *= 2.0
    while largest < 0.5 * used:
        used *= 0.5
    return used


def _key(at: Incumbent) -> tuple[int, ...]:
    return tuple(at.support.tolist())


def _never() -> bool:
    return False


def _run_all(
    task: _Task, places: list[tuple[list[int], int, int]], n_jobs: int | None, late: Callable[[], bool]
) -> list[_Found]:
    """All starts of a wave, in their order; each has a support, a seed and a number."""
    from joblib import Parallel, delayed, effective_n_jobs

    if effective_n_jobs(n_jobs) == 1:
        found: list[_Found] = []
        for own in places:
            if found and late():
                break
            found.append(_run_start(task, *own, late))
        return found
    parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    return list(parallel(delayed(_run_start)(task, *own, _never) for own in places))


def _run_start(task: _Task, support: list[int], seed: int, number: int, late: Callable[[], bool]) -> _Found:
    """Tabu search from the best weights on a support; what it meets is refitted, the best of it improved."""
    polisher = Polisher(task.problem, late)
    at = polisher.refit(support)
    state = int(np.random.SeedSequence([seed, number, 0]).generate_state(1, np.uint64)[0] >> np.uint64(1))
    elite, moves = walk(task.problem, task.grid, at.weights, task.moves, state, late)
    charged = task.problem.prices.charged
    ends = [at, *(polisher.refit(np.flatnonzero(charged & (own > 0)), own) for own in elite)]
    best = min(ends, key=lambda own: own.objective)
    return _Found(best if _key(best) in task.polished else polisher.improve(best), moves)


def walk(
    problem: SelectionProblem,
    grid: Grid,
    weights: Array,
    moves: int,
    random: int,
    late: Callable[[], bool] = _never,
) -> tuple[list[Array], int]:
    """Tabu search from these weights: the best local optima met, or its end; best first; and moves made."""
    p, n = problem.prices, problem.pool.n_columns
    limit = -1 if problem.max_terms is None else problem.max_terms
    levels, until = grid.levels(weights), np.zeros(n, dtype=np.int64)
    state = np.array([0, random], dtype=np.int64)
    elite, values = np.zeros((_ELITE, n), dtype=np.int32), np.full(_ELITE, np.inf)
    packed = sign_bytes(problem)
    assert packed is not None  # see accepts
    s = problem.risk.weights.normalised
    tenure = _tenure(int(np.count_nonzero(p.charged & (grid.top > 0))), problem.max_terms)
    done = 0
    while done < moves and not (done and late()):
        wanted = min(_CHUNK, moves - done)
        made = _kernels.tabu_moves(
            packed, s, p.l1, p.l2, p.l0, grid.steps, grid.top,
            p.charged.astype(np.uint8), limit, tenure, wanted, _TOLERANCE,
            levels, until, state, elite, values,
        )  # fmt: skip
        done += made
        if made < wanted:
            break
    order = [k for k in np.argsort(values, kind="stable") if np.isfinite(values[k])]
    return [elite[k] * grid.steps for k in order] or [levels * grid.steps], done


def _tenure(columns: int, max_terms: int | None) -> NDArray[np.int64]:
    """Least and most changes of the support that a column stays out of it, and in it."""
    out = min(20, max(1, columns // 4))
    inside = min(10, max(1, (columns if max_terms is None else min(max_terms, columns)) // 4))
    return np.array([(out + 1) // 2, out, (inside + 1) // 2, inside], dtype=np.int64)


def _enough_bits(
    problem: SelectionProblem, empty: Incumbent, everything: Incumbent, ranges: tuple[float, float]
) -> int:
    """The fewest bits at which fixed-point weights come near the convex optimum, if columns cost nothing."""
    convex = replace(problem, prices=problem.prices.convex(), max_terms=None)

    def objective(weights: Array) -> float:
        return convex.objective(convex.risk.evaluate(convex.pool.margins(weights)).value, weights)

    optimum = objective(everything.weights)
    enough = optimum + _AUTO_TOLERANCE * max(0.0, objective(empty.weights) - optimum)
    for bits in range(1, MAX_BITS):
        grid = Grid.make(problem.prices, bits, *ranges)
        found, _ = walk(convex, grid, everything.weights, _CHUNK, 0)
        nearest = grid.levels(everything.weights) * grid.steps
        if min(objective(weights) for weights in (nearest, *found[:1])) <= enough:
            return bits
    return MAX_BITS

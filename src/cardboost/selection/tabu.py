"""Multistart tabu search over fixed-point weights, on the true objective of the exponential loss.

Weights are ``range * q / (2**bits - 1)`` with whole q. A move gives one column another level. One product of
the row weights with all columns prices every level of every column in closed form
(docs/mathematics.md, "Tabu search"), so a move goes to the best level of its column. While a move lowers the
objective the best is taken; at a local optimum the column that joins or leaves the support at the least cost
does so, and may not change sides again for a while. After every start its best supports are refitted inside
the box, and the best of them is improved by polish.

Starts come in waves of a fixed size, each from the results of the waves before it, and every start has its
own random numbers: results do not depend on how many of them run at the same time.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.problem.budget import Late, never
from cardboost.problem.losses import Exponential
from cardboost.problem.prices import Prices
from cardboost.selection.merge import merge_rows, sign_bytes, sketch_rows
from cardboost.selection.polish import Polisher, refit_on_all_rows
from cardboost.selection.selection_problem import Incumbent, Selection, SelectionProblem, best_of, require

Array = NDArray[np.float64]
Levels = NDArray[np.int32]
Bits = int | Literal["auto"]

MAX_BITS = 16
_WAVE = 4  # starts that know of the same earlier ones
_ELITE = 8  # supports that a start hands on to the refits, and models that later starts begin near
_CHUNK = 256  # moves between two looks at the clock; row weights are then computed afresh
_TOLERANCE = 1e-5  # share of the objective that a move must gain; refits do the rest
_LARGEST_RANGE = 40.0  # of weights: e^-40 is nothing beside 1
_AUTO_TOLERANCE = 1e-3  # bits="auto": of what the convex weights improve on the empty model


@dataclass(frozen=True)
class RangeRecord:
    """The range of the charged weights that a wave of starts has used, and the one that follows.

    ``largest``: the largest weight of the best model after the wave. ``next_range`` is above ``range`` where
    this weight sits at the top or beyond, and below it where its top bit is unused.
    """

    starts: int
    range: float
    largest: float
    next_range: float


@dataclass(frozen=True)
class TabuRecord:
    """How tabu search has searched: moves and starts made, bits used, ranges wave by wave."""

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


def accepts(problem: SelectionProblem) -> str | None:
    """Why tabu search cannot take a problem, in a sentence; None where it can."""
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
    """Refuse what is neither a number of bits nor "auto"."""
    whole = isinstance(bits, numbers.Integral) and not isinstance(bits, bool)
    if not (whole and 1 <= bits <= MAX_BITS) and not (isinstance(bits, str) and bits == "auto"):
        raise ValueError(f"bits must be a whole number from 1 to {MAX_BITS}, or 'auto'; got {bits!r}.")


def tabu_search(
    problem: SelectionProblem, start: Array | None = None, *, bits: Bits = 6, starts: int = 24,
    moves: int = 1000, seed: int = 0, late: Late = never, n_jobs: int | None = 1,
) -> Selection:  # fmt: skip
    """The best model of several starts of tabu search.

    Parameters
    ----------
    problem : SelectionProblem
        One that :func:`accepts` does not refuse.
    start : array, optional
        Weights over all columns. One of the starts begins at their support, and the result is no worse.
    bits : int or "auto"
        Bits per weight; "auto": as many as the convex weights need.
    starts, moves : int
        How many starts, and the most moves of each.
    seed : int
        Equal seeds give equal results, whatever ``n_jobs`` is.
    late : callable
        Asked now and then whether to stop; where starts run at the same time, between waves.
    n_jobs : int or None
        Starts that run at the same time, through joblib: in threads unless ``joblib.parallel_config`` says
        otherwise, which None obeys in their number too.

    Returns
    -------
    Selection
        With its incumbent and ``tabu``, the record of the search.

    Raises
    ------
    ValueError
        Where :func:`accepts` refuses the problem.
    """
    require(accepts(problem))
    # many starts at the same time, each on one thread
    merged = merge_rows(replace(problem, risk=replace(problem.risk, threads=1)))
    smaller = sketch_rows(merged)
    search = _Multistart(smaller, start, bits, late)
    search.run(starts, moves, seed, n_jobs)
    models = search.elite if smaller is merged else [*search.elite, *search.first]
    best = best_of(refit_on_all_rows(merged, smaller, models))
    record = TabuRecord(search.moves, search.bits, tuple(search.ranges), search.starts)
    return Selection(merged, best, tabu=record)


class _Multistart:
    """The best models, the ranges and the counts of one search, wave after wave."""

    def __init__(self, problem: SelectionProblem, start: Array | None, bits: Bits, late: Late) -> None:
        self.problem, self.late = problem, late
        self.moves = self.starts = 0
        self.ranges: list[RangeRecord] = []
        self.polished: set[tuple[int, ...]] = set()
        polisher = Polisher(problem, late)
        prices, self.size, self.usable = problem.prices, polisher.most_terms, problem.usable
        empty, everything = polisher.refit([]), polisher.all_columns()
        self.convex_size = len(everything.support)
        models = [empty]
        if start is not None:
            models.append(polisher.largest(start, self.size))
        thin = polisher.thin(everything, self.size)
        if problem.allows(thin.support):
            models.append(thin)
        self.first = models[:0:-1]  # where the first starts begin
        self.elite: list[Incumbent] = []
        self._admit(models)
        models.append(everything)
        self.range = self._capped(max(_largest(model, prices.charged) for model in models), prices.charged)
        free = max(_largest(model, ~prices.charged) for model in models)
        self.free_range = self._capped(2.0 * free, ~prices.charged)
        if bits == "auto":
            bits = _enough_bits(problem, empty, everything, (self.range, self.free_range))
        self.bits = int(bits)
        self.solved = self.size == len(self.usable) and not (prices.l0 > 0).any()

    def run(self, starts: int, moves: int, seed: int, n_jobs: int | None) -> None:
        """Waves of starts until their number is reached or it is late."""
        if self.size == 0 or self.solved:
            return
        while self.starts < starts and not self.late():
            grid = Grid.make(self.problem.prices, self.bits, self.range, self.free_range)
            run = partial(_run_start, self.problem, grid, moves, frozenset(self.polished), seed)
            numbers = range(self.starts, min(self.starts + _WAVE, starts))
            wave = [(number, self._support(number, seed)) for number in numbers]
            models, counts = zip(*_run_wave(run, wave, n_jobs, self.late), strict=True)
            self.starts, self.moves = self.starts + len(models), self.moves + sum(counts)
            self._admit(models)
            self.polished.update(model.key for model in models)
            self._adapt()

    def _support(self, number: int, seed: int) -> list[int]:
        """Where a start begins: a first model, one of the elite with columns exchanged, or random columns."""
        if number < len(self.first):
            return self.first[number].support.tolist()
        random = np.random.default_rng([seed, number, 1])
        if number % _WAVE == _WAVE - 1 or not len(self.elite[0].support):
            limited = self.problem.max_terms is not None
            size = self.size if limited else int(random.integers(1, max(2, self.convex_size + 1)))
            return sorted(random.choice(self.usable, size, replace=False).tolist())
        support = self.elite[number % _WAVE % len(self.elite)].support
        outside = np.setdiff1d(self.usable, support)
        count = min(len(outside), int(random.integers(1, max(2, len(support) // 2 + 1))))
        leaving = random.choice(support, min(count, len(support)), replace=False)
        joining = random.choice(outside, count, replace=False)
        return sorted({*support.tolist(), *joining.tolist()} - set(leaving.tolist()))[: self.size]

    def _admit(self, models: Sequence[Incumbent]) -> None:
        """Keep the best models so far, one for each support."""
        by_support: dict[tuple[int, ...], Incumbent] = {}
        for model in sorted([*self.elite, *models], key=lambda model: model.objective):
            by_support.setdefault(model.key, model)
        self.elite = list(by_support.values())[:_ELITE]

    def _adapt(self) -> None:
        """The range follows the largest weight of the best model: never outgrown, its top bit in use."""
        charged = self.problem.prices.charged
        used, largest = self.range, _largest(self.elite[0], charged)
        self.range = self._capped(_adapted(used, largest), charged)
        free = _adapted(self.free_range, _largest(self.elite[0], ~charged))
        self.free_range = self._capped(free, ~charged)
        self.ranges.append(RangeRecord(self.starts, used, largest, self.range))

    def _capped(self, width: float, which: NDArray[np.bool_]) -> float:
        """A range within the boxes of these columns."""
        box = float(np.max(self.problem.prices.max_weight[which], initial=0.0))
        return min(width if width > 0 else 1.0, box, _LARGEST_RANGE)


def _largest(model: Incumbent, which: NDArray[np.bool_]) -> float:
    return float(np.max(model.weights[which], initial=0.0))


def _adapted(used: float, largest: float) -> float:
    """Twice the range while a weight is at its top, half while the top bit is unused."""
    if largest <= 0:
        return used
    while largest >= used and used < _LARGEST_RANGE:
        used *= 2.0
    while largest < 0.5 * used:
        used *= 0.5
    return used


def _run_wave(
    run: Callable[..., tuple[Incumbent, int]], wave: Sequence[Any], n_jobs: int | None, late: Late
) -> list[tuple[Incumbent, int]]:
    """All starts of a wave, in their order: their models and moves."""
    from joblib import Parallel, delayed, effective_n_jobs

    if effective_n_jobs(n_jobs) != 1:
        return list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(run)(*start) for start in wave))
    results: list[tuple[Incumbent, int]] = []
    for start in wave:
        if results and late():
            break
        results.append(run(*start, late))
    return results


def _run_start(
    problem: SelectionProblem,
    grid: Grid,
    most: int,
    polished: frozenset[tuple[int, ...]],
    seed: int,
    number: int,
    support: list[int],
    late: Late = never,
) -> tuple[Incumbent, int]:
    """Tabu search from the best weights on a support; its elite is refitted, the best of it improved.

    ``polished``: supports that are known to be local optima.
    """
    polisher = Polisher(problem, late)
    begin = polisher.refit(support)
    state = int(np.random.SeedSequence([seed, number, 0]).generate_state(1, np.uint64)[0] >> np.uint64(1))
    elite, moves = walk(problem, grid, begin.weights, most, state, late)
    charged = problem.prices.charged
    ends = [polisher.refit(np.flatnonzero(charged & (weights > 0)), weights) for weights in elite]
    best = best_of([begin, *ends])
    return best if best.key in polished else polisher.improve(best), moves


def walk(
    problem: SelectionProblem, grid: Grid, weights: Array, moves: int, random: int, late: Late = never
) -> tuple[list[Array], int]:
    """Tabu search from these weights: the best local optima, best first, or its end; and the moves made."""
    p, n = problem.prices, problem.pool.n_columns
    limit = -1 if problem.max_terms is None else problem.max_terms
    levels, until = grid.levels(weights), np.zeros(n, dtype=np.int64)
    state = np.array([0, random], dtype=np.int64)
    elite, values = np.zeros((_ELITE, n), dtype=np.int32), np.full(_ELITE, np.inf)
    packed = sign_bytes(problem)
    assert packed is not None  # see accepts
    tenure = _tenure(int(np.count_nonzero(p.charged & (grid.top > 0))), problem.max_terms)
    done = 0
    while done < moves and not (done and late()):
        chunk = min(_CHUNK, moves - done)
        count = _kernels.tabu_moves(
            packed, problem.risk.weights.normalised, p.l1, p.l2, p.l0, grid.steps, grid.top,
            p.charged.astype(np.uint8), limit, tenure, chunk, _TOLERANCE,
            levels, until, state, elite, values,
        )  # fmt: skip
        done += count
        if count < chunk:
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
    optimum = convex.objective_of(everything.weights)
    enough = optimum + _AUTO_TOLERANCE * max(0.0, convex.objective_of(empty.weights) - optimum)
    for bits in range(1, MAX_BITS):
        grid = Grid.make(problem.prices, bits, *ranges)
        elite, _ = walk(convex, grid, everything.weights, _CHUNK, 0)
        nearest = grid.levels(everything.weights) * grid.steps
        if min(map(convex.objective_of, (nearest, *elite[:1]))) <= enough:
            return bits
    return MAX_BITS

"""Prox-Newton with working sets, gap-safe screening and warm starts along a path of prices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost.linear.problem import Fit, LinearProblem
from cardboost.linear.working_set import State, descend, working_set

Array = NDArray[np.float64]
Places = NDArray[np.intp]

_FIRST = 100  # columns of the first working set
_SINGLE = 1e-6  # of the price: what the conditions may fail by where single precision will do
_STEPS = 50  # prox-Newton steps between two looks at all columns


def largest_price(problem: LinearProblem) -> float:
    """The smallest l1 under which no feature is used."""
    _, _, at = problem.balance(np.zeros(len(problem.y)), 0.0)
    sums = problem.design.sums(problem.balanced_pull(at.pull))
    return float(np.abs(sums).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class _Look:
    """What one pass over the columns shows: products with the balanced pull, objective, bound."""

    sums: Array
    objective: float
    bound: float
    whole: bool  # whether it was all columns


@dataclass(frozen=True, eq=False)
class _Optimum:
    """A point on the path: price, products with all columns, coefficients, scores, intercept."""

    l1: float
    sums: Array
    coef: Array
    f: Array
    b: float


class ProximalSolver:
    """One matrix, any number of prices one after the other: each solution is the start of the next."""

    def __init__(self, problem: LinearProblem, coef: Array | None = None, b: float = 0.0) -> None:
        self.problem = problem
        start = np.zeros(problem.design.columns) if coef is None else np.array(coef, dtype=np.float64)
        self.state = State(problem, start, b)
        self.null = problem.null()[1]
        self.set = working_set(problem.design, problem.design.columns)
        if problem.design.columns > 3000 and not problem.design.sparse:
            self.set = working_set(problem.design, 0)
        self.sums: Array | None = None  # of all columns at the present point
        self.l1: float | None = None  # the price before
        self._before: _Optimum | None = None  # that of the price before that
        self._lead: Array | None = None  # by which the sums are expected to change on the way to this price

    def solve(self, l1: float, tol: float, max_iter: int) -> Fit:
        """The optimum for this price, to a relative gap of ``tol``."""
        problem, state = self.problem.priced(l1), self.state
        alive = np.ones(problem.design.columns, dtype=bool)
        steps, status, stuck, wanted, rounds = 0, "iteration limit", 0, 0, 0
        last, target = np.inf, 3.0 * tol * max(l1, 1e-3 * self.null)
        while True:
            look = self._look(problem, alive)
            if problem.close(look.objective, look.bound, tol, self.null):
                if look.whole:
                    status = "optimal"
                    break
                alive[:] = True  # what is claimed is about all columns
                continue
            if steps >= max_iter:
                break
            gap = look.objective - look.bound
            stuck, last = stuck + 1 if gap >= 0.9 * last else 0, gap
            if stuck >= 4:
                status = "precision"
                break
            if rounds >= 2:
                self._screen(problem, look, alive)
            if rounds == 0:
                self._go_on(problem, look)
            used = np.flatnonzero(state.coef)
            wanted = max(wanted, 2 * len(used), min(_FIRST, len(alive)))
            which = self._choose(look.sums, l1, used, wanted, alive, rounds == 0)
            self.set.choose(which.astype(np.int32), state.at)
            if rounds > 0:
                target *= min(0.3, max(0.01, 0.3 * tol * look.objective / gap))
            if stuck or target < _SINGLE * l1:
                self.set.be_precise()
            steps += descend(problem, self.set, state, target, min(_STEPS, max_iter - steps))
            state.f, state.b, state.at = problem.balance(state.f, state.b)
            self.sums = None
            rounds += 1
        self.l1 = l1
        return Fit(state.coef.copy(), state.b, look.objective, look.bound, steps, status)

    def _look(self, problem: LinearProblem, alive: NDArray[np.bool_]) -> _Look:
        """Products with all columns, or with those that are left where these are few."""
        state = self.state
        pull = problem.balanced_pull(state.at.pull)
        objective = state.at.loss + problem.penalty(state.coef)
        left = np.flatnonzero(alive)
        if self.sums is None and 2 * len(left) < len(alive):
            sums = np.zeros(len(alive))
            sums[left] = problem.design.sums_of(left.astype(np.int32), pull)
            return _Look(sums, objective, problem.dual(pull, sums), False)
        if self.sums is None:
            self.sums = problem.design.sums(pull)
        return _Look(self.sums, objective, problem.dual(pull, self.sums), True)

    def _go_on(self, problem: LinearProblem, look: _Look) -> None:
        """Begin where a straight line through the last two optima leads, if that is better than the last."""
        state, line = self.state, self._line(problem.l1)
        now = None if self.l1 is None else _Optimum(self.l1, look.sums, state.coef.copy(), state.f, state.b)
        self._lead = None
        if now is not None and line is not None:
            before, further = line
            coef = now.coef + further * (now.coef - before.coef)
            f, b, at = problem.balance(
                now.f + further * (now.f - before.f), now.b + further * (now.b - before.b)
            )
            if at.loss + problem.penalty(coef) < state.at.loss + problem.penalty(now.coef):
                state.coef, state.f, state.b, state.at = coef, f, b, at
            self._lead = further * (now.sums - before.sums)
        self._before = now

    def _line(self, l1: float) -> tuple[_Optimum, float] | None:
        """The optimum before the last, and how far the next price lies, in steps from there to the last."""
        before = self._before
        if before is None or self.l1 is None or not before.l1 > self.l1 > l1:
            return None
        return before, min(1.0, (self.l1 - l1) / (before.l1 - self.l1))

    def _choose(
        self, sums: Array, l1: float, used: Places, wanted: int, alive: NDArray[np.bool_], first: bool
    ) -> Places:
        """Columns in use, and of the others those nearest to being used; on a path all that may be needed."""
        if first and self._lead is not None:
            sums = sums + self._lead
        size = np.where(alive, np.abs(sums), -1.0)
        size[used] = np.inf
        if self.l1 is not None and self.l1 > l1:
            # products move by less than the price as a rule, and mostly on as they went before
            room = 0.0 if not first else 0.5 if self._lead is None else 0.1
            likely = np.flatnonzero(size >= l1 - room * (self.l1 - l1))
            if len(likely) <= 4 * wanted:
                return likely
        wanted = min(wanted, int(np.count_nonzero(size >= 0.0)))
        if wanted == 0:
            return np.empty(0, dtype=np.intp)
        top = np.argpartition(-size, wanted - 1)[:wanted]
        return np.sort(top)

    def _screen(self, problem: LinearProblem, look: _Look, alive: NDArray[np.bool_]) -> None:
        """Leave out columns that no optimum uses: the optimal pull is close to this one, by the gap.

        The dual is strongly concave: |u - u*|^2 <= 2 gap max(s) / m with m = 4 for the logistic loss and 1
        for the squared loss.
        """
        if problem.l2 > 0.0 or problem.l1 == 0.0:
            return
        size = np.abs(look.sums)
        theta = min(1.0, problem.l1 / max(float(size.max(initial=0.0)), 1e-300))
        pull = problem.balanced_pull(self.state.at.pull)
        gap = max(0.0, look.objective - problem.conjugate(pull, theta if theta < 1.0 else 1.0))
        strength = 4.0 if problem.curved else 1.0
        radius = np.sqrt(2.0 * gap * float(problem.s.max()) / strength)
        safe = theta * size + radius * np.sqrt(problem.design.squares) < problem.l1
        safe &= self.state.coef == 0.0
        alive &= ~safe


def path(problem: LinearProblem, l1s: Sequence[float], tol: float, max_iter: int) -> Iterator[Fit]:
    """The optimum for every price, each from the one before."""
    solver = ProximalSolver(problem)
    for l1 in l1s:
        yield solver.solve(float(l1), tol, max_iter)

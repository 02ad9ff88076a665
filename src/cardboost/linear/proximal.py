"""Prox-Newton with working sets, gap-safe screening and warm starts along a path of l1.

The loss is replaced by its quadratic model at the present scores, the model with its regularisation is
minimised by coordinate descent over a working set of columns, and a line search goes as far as the true
objective allows. Dense columns keep the matrix X' W X of the working set, with weights W from an earlier
point while these are close enough: a step then reads the working set twice. Sparse columns are swept as they
are.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from cardboost import _kernels
from cardboost.linear.design import Array, Columns, Design, both_halves
from cardboost.linear.problem import Coefficients, Fit, RowLosses, ScoreProblem, is_close
from cardboost.problem.trace import Status

_STALE = 0.3  # share of the curvature that may have changed since X' W X was made
_MANY = 1_000_000  # entries of a table for which X' W X is kept in single precision at first
_LEAST_DECREASE = 1e-4  # of what the model promises
_FIRST = 100  # columns of the first working set
_SINGLE = 1e-6  # of the price: what the conditions may fail by where single precision will do
_SWEEPS = 600  # over X' W X, at most
_STEPS = 50  # prox-Newton steps between two looks at all columns


class State:
    """Coefficients and the scores that belong to them, with the best intercept.

    ``l1``: the price of the last optimum. ``sums``: products with all columns, where they are known.
    """

    l1 = np.inf
    sums: Any = None

    def __init__(self, problem: ScoreProblem, before: Coefficients | None) -> None:
        coef, b = (np.zeros(problem.design.columns), 0.0) if before is None else before
        self.coef = np.array(coef, dtype=np.float64)
        self.move(problem, problem.scores(self.coef, b), b)

    def move(self, problem: ScoreProblem, f: Array, b: float) -> None:
        """To these scores, up to the intercept."""
        self.f, self.b, self.losses = problem.balance(f, b)


def violation(g: Array, beta: Array, l1: float, l2: float) -> float:
    """How far the optimality conditions fail: g is the derivative of the loss."""
    slope = g + l2 * beta
    off = np.where(beta != 0.0, np.abs(slope + l1 * np.sign(beta)), np.maximum(np.abs(slope) - l1, 0.0))
    return float(off.max(initial=0.0))


class WorkingSet:
    """A working set of columns, swept as they are."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.which: Columns = np.empty(0, dtype=np.int32)

    def choose(self, which: Columns, losses: RowLosses) -> None:
        self.which = which

    def be_precise(self) -> None:
        """From now on all of the quadratic model is in double precision."""

    def sums(self, pull: Array) -> Array:
        return self.design.sums_of(self.which, pull)

    def step(self, w: Array, g: Array, beta: Array, **model: Any) -> tuple[Array, float]:
        """Minimise the model from ``beta``, which is changed: how scores and intercept change."""
        return self.design.sweep(self.which, w, g, beta, **model)


class DenseSet(WorkingSet):
    """A working set of dense columns with its matrix X' W X, kept from one set and one price to the next."""

    def __init__(self, design: Design) -> None:
        super().__init__(design)
        self._room = np.empty((0, design.rows))  # the columns, one after the other, and room for more
        # single precision is enough for the model of a step: gradient and objective are exact
        self.single = design.rows * design.columns > _MANY
        self.q: NDArray[Any] = np.empty((0, 0))
        self.a = np.empty(0)
        self.w: Array | None = None  # the weights of q
        self.total = 0.0

    @property
    def held(self) -> Array:
        return self._room[: len(self.which)]

    def choose(self, which: Columns, losses: RowLosses) -> None:
        """Make ``which`` part of the set; others stay while they are not too many."""
        stale = self._stale(losses.curvature)
        if stale:
            self.w = None
        new = np.setdiff1d(which, self.which, assume_unique=True).astype(np.int32)
        crowd = len(self.which) + len(new)
        if crowd > 1.2 * len(which) + 20 or (stale and crowd > len(which)):
            keep = np.flatnonzero(np.isin(self.which, which))
            self._room[: len(keep)] = self._room[keep]
            self.which = self.which[keep]
            if self.w is not None:
                self.q, self.a = self.q[np.ix_(keep, keep)], self.a[keep]
        if len(new):
            self._extend(new)

    def _extend(self, new: Columns) -> None:
        before, after = len(self.which), len(self.which) + len(new)
        if after > len(self._room):
            room = np.empty((min(2 * after, max(after, self.design.columns)), self.design.rows))
            room[:before] = self.held
            self._room = room
        self._room[before:after] = self.design.taken(new).T
        self.which = np.concatenate([self.which, new])
        if self.w is None:
            return
        columns = self._room[before:after]
        side = self._rounded(columns * self.w) @ self._rounded(self.held).T
        q = np.empty((after, after), dtype=self.q.dtype)
        q[:before, :before] = self.q
        q[before:], q[:before, before:] = side, side[:, :before].T
        self.q, self.a = q, np.concatenate([self.a, columns @ self.w])

    def sums(self, pull: Array) -> Array:
        return self.held @ pull

    def _stale(self, w: Array) -> bool:
        """Whether the weights have changed too much since X' W X was made."""
        if self.w is None:
            return True
        return w is not self.w and float(np.abs(w - self.w).sum()) > _STALE * self.total

    def _refresh(self, w: Array) -> None:
        if not self._stale(w):
            return
        self.w, self.total = w, float(w.sum())
        product = blas.ssyrk if self.single else blas.dsyrk
        self.q = both_halves(product(1.0, self._rounded(self.held * np.sqrt(w)).T, trans=1, lower=1).T)
        self.a = self.held @ w

    def be_precise(self) -> None:
        if self.single:
            self.single, self.w = False, None

    def _rounded(self, values: Array) -> NDArray[Any]:
        return values.astype(np.float32) if self.single else values

    def step(self, w: Array, g: Array, beta: Array, **model: Any) -> tuple[Array, float]:
        self._refresh(w)
        before = beta.copy()
        held = self.q, self.a, self.total
        _, b, _ = _kernels.sweep_gram(*held, beta=beta, g=g.copy(), most=_SWEEPS, **model)
        return (beta - before) @ self.held, b


def descend(problem: ScoreProblem, active: WorkingSet, state: State, needed: float, most: int) -> int:
    """Prox-Newton steps on the working set until the conditions hold to ``needed``; the number of steps."""
    which = active.which
    beta = state.coef[which].copy()
    done, last = 0, np.inf
    while done < most:
        losses = state.losses
        g = -active.sums(losses.pull)
        off = violation(g, beta, problem.l1, problem.l2)
        if problem.intercept:
            off = max(off, abs(float(losses.pull.sum())))
        if off <= needed or (off >= last and done > 3):
            break
        after = beta.copy()
        model = problem.quadratic(losses.pull) | {"tolerance": max(0.3 * needed, 0.03 * off)}
        shift, b = active.step(losses.curvature, g, after, **model)
        done += 1
        length, sure = _search(problem, state, beta, after - beta, shift, b)
        if length == 0.0:
            break
        last = np.inf if sure else off  # where the objective cannot tell, the conditions must
        beta = beta + length * (after - beta) if length < 1.0 else after
        state.coef[which] = beta
        if not problem.curved and length == 1.0 and done > 1:
            # the model is the loss itself: what is left is rounding, or sweeps that ran out
            state.move(problem, problem.scores(state.coef, state.b), state.b)
    return done


def _search(
    problem: ScoreProblem, state: State, beta: Array, d: Array, shift: Array, b: float
) -> tuple[float, bool]:
    """Go along the step while the objective falls; the state follows. Length 0 where it does not.

    The second value says whether the fall is more than rounding.
    """
    shift = shift + b
    before = problem.penalty(beta)
    promised = problem.penalty(beta + d) - before - float(state.losses.pull @ shift)
    rounding = 1e-15 * (state.losses.loss + before)
    length = 1.0
    for _ in range(40):
        losses = problem.rows(state.f + length * shift)
        change = (losses.loss - state.losses.loss) + (problem.penalty(beta + length * d) - before)
        if change <= length * _LEAST_DECREASE * min(promised, 0.0) + rounding:
            state.f, state.b, state.losses = state.f + length * shift, state.b + length * b, losses
            return length, change < -rounding
        length *= 0.5
    return 0.0, False


def largest_price(problem: ScoreProblem) -> float:
    """The smallest l1 under which no feature is used."""
    _, _, losses = problem.balance(np.zeros(len(problem.y)), 0.0)
    sums = problem.design.sums(problem.balanced_pull(losses.pull))
    return float(np.abs(sums).max(initial=0.0))


class ProximalSolver:
    """One matrix, any number of prices one after the other: each solution is the start of the next."""

    def __init__(self, problem: ScoreProblem, before: Coefficients | None = None) -> None:
        self.problem = problem
        self.state = State(problem, before)
        self.null = problem.null()[1]
        self.set = (WorkingSet if problem.design.sparse else DenseSet)(problem.design)
        self._before: State | None = None  # the optimum before the last
        self._lead: Array | None = None  # by which the sums are expected to change on the way to this price

    def solve(self, l1: float, tol: float, max_iter: int) -> Fit:
        """The optimum for this price, to a relative gap of ``tol``."""
        problem, state = replace(self.problem, l1=l1), self.state
        alive = np.ones(problem.design.columns, dtype=bool)
        steps, status, stuck, needed, rounds = 0, Status.ITERATION_LIMIT, 0, 0, 0
        last, target = np.inf, 3.0 * tol * max(l1, 1e-3 * self.null)
        while True:
            sums, objective, bound = self._look(problem, alive)
            if is_close(objective, bound, tol, self.null):
                if sums is state.sums:
                    status = Status.OPTIMAL
                    break
                alive[:] = True  # what is claimed is about all columns
                continue
            if steps >= max_iter:
                break
            gap = objective - bound
            stuck, last = stuck + 1 if gap >= 0.9 * last else 0, gap
            if stuck >= 4:
                status = Status.PRECISION
                break
            if rounds >= 2:
                self._screen(problem, sums, objective, alive)
            if rounds == 0:
                self._go_on(problem)
            used = np.flatnonzero(state.coef)
            needed = max(needed, 2 * len(used), min(_FIRST, len(alive)))
            which = self._choose(sums, l1, used, needed, alive, rounds == 0)
            self.set.choose(which.astype(np.int32), state.losses)
            if rounds > 0:
                target *= min(0.3, max(0.01, 0.3 * tol * objective / gap))
            if stuck or target < _SINGLE * l1:
                self.set.be_precise()
            steps += descend(problem, self.set, state, target, min(_STEPS, max_iter - steps))
            state.move(problem, state.f, state.b)
            state.sums = None
            rounds += 1
        state.l1 = l1
        return Fit(state.coef.copy(), state.b, objective, bound, steps, status)

    def _look(self, problem: ScoreProblem, alive: NDArray[np.bool_]) -> tuple[Array, float, float]:
        """Products with all columns, or with those that are left where these are few; objective and bound."""
        state = self.state
        pull = problem.balanced_pull(state.losses.pull)
        objective = state.losses.loss + problem.penalty(state.coef)
        left = np.flatnonzero(alive)
        if state.sums is None and 2 * len(left) < len(alive):
            sums = np.zeros(len(alive))
            sums[left] = problem.design.sums_of(left.astype(np.int32), pull)
        else:
            state.sums = sums = problem.design.sums(pull) if state.sums is None else state.sums
        return sums, objective, problem.dual(pull, sums)

    def _go_on(self, problem: ScoreProblem) -> None:
        """Begin where a straight line through the last two optima leads, if that is better than the last."""
        state, before, now = self.state, self._before, copy(self.state)
        self._lead = None
        if now.l1 == np.inf:
            return
        self._before, now.coef = now, state.coef.copy()
        if before is None or not before.l1 > now.l1 > problem.l1:
            return
        further = min(1.0, (now.l1 - problem.l1) / (before.l1 - now.l1))  # in steps from before to now
        coef = now.coef + further * (now.coef - before.coef)
        f, b, losses = problem.balance(
            now.f + further * (now.f - before.f), now.b + further * (now.b - before.b)
        )
        if losses.loss + problem.penalty(coef) < state.losses.loss + problem.penalty(now.coef):
            state.coef, state.f, state.b, state.losses = coef, f, b, losses
        self._lead = further * (now.sums - before.sums)

    def _choose(
        self,
        sums: Array,
        l1: float,
        used: NDArray[np.intp],
        needed: int,
        alive: NDArray[np.bool_],
        first: bool,
    ) -> NDArray[np.intp]:
        """Columns in use, and of the others those nearest to being used; on a path all that may be needed."""
        if first and self._lead is not None:
            sums = sums + self._lead
        size = np.where(alive, np.abs(sums), -1.0)
        size[used] = np.inf
        if l1 < self.state.l1 < np.inf:
            # products move by less than the price as a rule, and mostly on as they went before
            room = 0.0 if not first else 0.5 if self._lead is None else 0.1
            likely = np.flatnonzero(size >= l1 - room * (self.state.l1 - l1))
            if len(likely) <= 4 * needed:
                return likely
        needed = min(needed, int(np.count_nonzero(size >= 0.0)))
        if needed == 0:
            return np.empty(0, dtype=np.intp)
        top = np.argpartition(-size, needed - 1)[:needed]
        return np.sort(top)

    def _screen(self, problem: ScoreProblem, sums: Array, objective: float, alive: NDArray[np.bool_]) -> None:
        """Leave out columns that no optimum uses: the optimal pull is close to this one, by the gap.

        The dual is strongly concave: |u - u*|^2 <= 2 gap max(s) / m with m = 4 for the logistic loss and 1
        for the squared loss.
        """
        if problem.l2 > 0.0 or problem.l1 == 0.0:
            return
        size = np.abs(sums)
        theta = min(1.0, problem.l1 / max(float(size.max(initial=0.0)), 1e-300))
        pull = problem.balanced_pull(self.state.losses.pull)
        gap = max(0.0, objective - problem.conjugate(pull, theta))
        strength = 4.0 if problem.curved else 1.0
        radius = np.sqrt(2.0 * gap * float(problem.s.max()) / strength)
        safe = theta * size + radius * np.sqrt(problem.design.squares) < problem.l1
        safe &= self.state.coef == 0.0
        alive &= ~safe

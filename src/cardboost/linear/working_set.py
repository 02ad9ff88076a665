"""Prox-Newton steps on a working set of columns.

The loss is replaced by its quadratic model at the present scores, the model with its prices is minimised by
coordinate descent, and a line search goes as far as the true objective allows. Dense columns keep the matrix
X' W X of the working set, with weights W from an earlier point while these are close enough: a step then
reads the working set twice. Sparse columns are swept as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from cardboost import _kernels
from cardboost.linear.design import Design
from cardboost.linear.problem import LinearProblem, Rows

Array = NDArray[np.float64]
Columns = NDArray[np.int32]

LARGEST_GRAM = 3000  # columns of a working set whose X' W X is kept
_BLOCK = 128
_STALE = 0.3  # share of the curvature that may have changed since X' W X was made
_MANY = 1_000_000  # entries of a table for which X' W X is kept in single precision at first
_LEAST_DECREASE = 1e-4  # of what the model promises


class State:
    """Coefficients and the scores that belong to them."""

    def __init__(self, problem: LinearProblem, coef: Array, b: float) -> None:
        self.coef = coef
        self.f, self.b, self.at = problem.balance(problem.scores(coef, b), b)


def violation(g: Array, beta: Array, l1: float, l2: float) -> float:
    """How far the optimality conditions fail: g is the derivative of the loss."""
    slope = g + l2 * beta
    off = np.where(beta != 0.0, np.abs(slope + l1 * np.sign(beta)), np.maximum(np.abs(slope) - l1, 0.0))
    return float(off.max(initial=0.0))


class SparseSet:
    """A working set of sparse columns, or of very many dense ones."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.which: Columns = np.empty(0, dtype=np.int32)

    def choose(self, which: Columns, at: Rows) -> None:
        self.which = which

    def be_precise(self) -> None:
        pass

    def sums(self, pull: Array) -> Array:
        return self.design.sums_of(self.which, pull)

    def step(
        self, problem: LinearProblem, at: Rows, g: Array, beta: Array, tolerance: float, most: int
    ) -> tuple[Array, float]:
        """Minimise the model from ``beta``, which is changed: how scores and intercept change."""
        shift, b, _ = self.design.sweep(
            self.which, at.curvature, g, beta,
            l1=problem.l1, l2=problem.l2, intercept=problem.intercept, g0=-float(at.pull.sum()),
            tolerance=tolerance, most=most,
        )  # fmt: skip
        return shift, b


class DenseSet:
    """A working set of dense columns with its matrix X' W X, kept from one set and one price to the next."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.which: Columns = np.empty(0, dtype=np.int32)
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

    def choose(self, which: Columns, at: Rows) -> None:
        """Make ``which`` part of the set; others stay while they are not too many."""
        stale = self._stale(at.curvature)
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
        self.q = product(1.0, self._rounded(self.held * np.sqrt(w)).T, trans=1, lower=1).T
        for end in range(_BLOCK, len(self.q) + _BLOCK, _BLOCK):  # the other half, block by block
            begin = end - _BLOCK
            block = self.q[begin:end, begin:end]
            block[:] = np.triu(block) + np.triu(block, 1).T
            self.q[end:, begin:end] = self.q[begin:end, end:].T
        self.a = self.held @ w

    def be_precise(self) -> None:
        """From now on X' W X is in double precision."""
        if self.single:
            self.single, self.w = False, None

    def _rounded(self, values: Array) -> NDArray[Any]:
        return values.astype(np.float32) if self.single else values

    def step(
        self, problem: LinearProblem, at: Rows, g: Array, beta: Array, tolerance: float, most: int
    ) -> tuple[Array, float]:
        self._refresh(at.curvature)
        before = beta.copy()
        _, b, _ = _kernels.sweep_gram(
            self.q, self.a, self.total,
            l1=problem.l1, l2=problem.l2, intercept=problem.intercept, g0=-float(at.pull.sum()),
            tolerance=tolerance, most=20 * most, beta=beta, g=g.copy(),
        )  # fmt: skip
        return (beta - before) @ self.held, b


WorkingSet = SparseSet | DenseSet


def working_set(design: Design, most: int) -> WorkingSet:
    """The kind of set for so many columns."""
    return SparseSet(design) if design.sparse or most > LARGEST_GRAM else DenseSet(design)


def descend(problem: LinearProblem, own: WorkingSet, state: State, wanted: float, most: int) -> int:
    """Prox-Newton steps on the working set until the conditions hold to ``wanted``; the number of steps."""
    which = own.which
    beta = state.coef[which].copy()
    done, last = 0, np.inf
    while done < most:
        at = state.at
        g = -own.sums(at.pull)
        off = violation(g, beta, problem.l1, problem.l2)
        if problem.intercept:
            off = max(off, abs(float(at.pull.sum())))
        if off <= wanted or (off >= last and done > 3):
            break
        after = beta.copy()
        shift, b = own.step(problem, at, g, after, max(0.3 * wanted, 0.03 * off), 30)
        done += 1
        length, sure = _search(problem, state, beta, after - beta, shift, b)
        if length == 0.0:
            break
        last = np.inf if sure else off  # where the objective cannot tell, the conditions must
        beta = beta + length * (after - beta) if length < 1.0 else after
        state.coef[which] = beta
        if not problem.curved and length == 1.0 and done > 1:
            # the model is the loss itself: what is left is rounding, or sweeps that ran out
            state.f, state.b, state.at = problem.balance(problem.scores(state.coef, state.b), state.b)
    return done


def _search(
    problem: LinearProblem, state: State, beta: Array, d: Array, shift: Array, b: float
) -> tuple[float, bool]:
    """Go along the step while the objective falls; the state follows. Length 0 where it does not.

    The second value says whether the fall is more than rounding.
    """
    shift = shift + b
    before = problem.penalty(beta)
    promised = problem.penalty(beta + d) - before - float(state.at.pull @ shift)
    rounding = 1e-15 * (state.at.loss + before)
    length = 1.0
    for _ in range(40):
        at = problem.rows(state.f + length * shift)
        change = (at.loss - state.at.loss) + (problem.penalty(beta + length * d) - before)
        if change <= length * _LEAST_DECREASE * min(promised, 0.0) + rounding:
            state.f, state.b, state.at = state.f + length * shift, state.b + length * b, at
            return length, change < -rounding
        length *= 0.5
    return 0.0, False

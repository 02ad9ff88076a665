"""The problem of a linear model with one score per row, its loss at given scores, and its dual bound.

    min  sum s_i loss(y_i, f_i) + l1 |beta|_1 + (l2 / 2) |beta|_2^2,    f = X beta + b,   sum s_i = 1

``pull`` is what every row pulls its score by: u_i = -s_i dloss/df_i. For any u in the domain of the conjugate
with sum u_i = 0 (where there is an intercept) and c = X' u

    D(u) = sum -s_i loss*(-u_i / s_i) - sum_j max over beta_j of |c_j| |beta_j| - l1 |beta_j| - l2 beta_j^2 /
    2

is a lower bound. With l2 = 0 < l1 the last term is 0 once u is scaled until |c_j| <= l1. With l1 = l2 = 0 it
is
|c_j| times the box, and the bound is about all coefficients in that box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.linear.design import Design

Array = NDArray[np.float64]
LossName = Literal["logistic", "squared"]

#: with l1 = l2 = 0: how far a coefficient may go, in units of target / root mean square of its column
BOX = 1e4
_ROUNDING = 1e-15  # of the row weights: a sum that is 0
_ROUNDING_OF_ROW = 1e-18  # the same for many rows: so much for each of them
_CLOSE = 1e-12  # of the objective without any feature: a gap that counts as none


def is_close(objective: float, bound: float, tol: float, null: float) -> bool:
    """Whether the gap is within the tolerance; ``null`` is the objective without features."""
    return objective - bound <= max(tol * objective, _CLOSE * null)


def coefficient_box(design: Design, s: Array, target_size: float) -> Array:
    """With l1 = l2 = 0: how far each coefficient may go."""
    rms = np.sqrt(design.second_moments(s))
    return np.where(rms > 0.0, BOX * target_size / np.where(rms > 0.0, rms, 1.0), 0.0)


def middle_of(targets: Array) -> float:
    """The middle of their range."""
    return float(targets.min() / 2.0 + targets.max() / 2.0)


@dataclass(frozen=True, eq=False)
class RowLosses:
    """The loss of every row at some scores."""

    loss: float
    pull: Array
    curvature: Array


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients with their objective and the best lower bound known; ``status`` says why it ended."""

    coef: Array
    intercept: float
    objective: float
    lower_bound: float
    n_iter: int
    status: str

    @property
    def gap(self) -> float:
        return max(0.0, self.objective - self.lower_bound)


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Rows, targets (-1 and 1 for the logistic loss), weights that sum to 1, prices."""

    design: Design
    y: Array
    s: Array
    loss: LossName
    l1: float
    l2: float
    intercept: bool
    target_size: float | None = (
        None  # root mean square of the targets as they are given, where they were moved
    )

    @property
    def curved(self) -> bool:
        """Whether the curvature depends on the scores."""
        return self.loss == "logistic"

    def priced(self, l1: float) -> LinearProblem:
        return replace(self, l1=l1)

    def centred(self) -> tuple[LinearProblem, Array, float]:
        """The same with columns and targets far from 0 moved to it, and by how much: only the intercept, if
        there is one, notices."""
        if not self.intercept:
            return self, np.zeros(self.design.columns), 0.0
        centres, middle = self.design.centres(), 0.0
        if self.loss == "squared":
            middle = middle_of(self.y)
        moved = replace(
            self, design=self.design.less(centres), y=self.y - middle, target_size=self.size_of_targets()
        )
        return moved, centres, middle

    # ------------------------------------------------------------------------------------ primal

    def rows(self, f: Array) -> RowLosses:
        if self.loss == "squared":
            residual = self.y - f
            pull = self.s * residual
            return RowLosses(0.5 * float(pull @ residual), pull, self.s)
        pull, curvature = np.empty_like(f), np.empty_like(f)
        loss = _kernels.logistic_rows(f, self.y, self.s, pull, curvature)
        return RowLosses(loss, pull, curvature)

    def penalty(self, coef: Array) -> float:
        return self.l1 * float(np.abs(coef).sum()) + 0.5 * self.l2 * float(coef @ coef)

    def scores(self, coef: Array, b: float) -> Array:
        return self.design.scores(coef) + b

    def balance(self, f: Array, b: float, losses: RowLosses | None = None) -> tuple[Array, float, RowLosses]:
        """The best intercept for these features' scores: no pass over the matrix."""
        losses = self.rows(f) if losses is None else losses
        if not self.intercept:
            return f, b, losses
        if not self.curved:
            step = float(losses.pull.sum())
            return f + step, b + step, self.rows(f + step)
        rounding = max(_ROUNDING, _ROUNDING_OF_ROW * len(f))
        for _ in range(100):
            slope, curve = float(losses.pull.sum()), float(losses.curvature.sum())
            size = 0.5 * float(np.abs(losses.pull).sum())
            if abs(slope) <= rounding * max(size, 1e-300) or curve <= 0.0:
                break
            step = float(np.clip(slope / curve, -4.0, 4.0))
            after = self.rows(f + step)
            while after.loss > losses.loss * (1 + 1e-15) and abs(step) > 1e-16:
                step *= 0.5
                after = self.rows(f + step)
            if after.loss >= losses.loss and abs(float(after.pull.sum())) >= abs(slope):
                break
            f, b, losses = f + step, b + step, after
        return f, b, losses

    def null(self) -> tuple[float, float]:
        """The model without features: its intercept and its objective."""
        if self.loss == "logistic" and self.intercept:
            up, down = float(self.s[self.y > 0].sum()), float(self.s[self.y < 0].sum())
            if (fewer := min(up, down)) > 0.0:
                entropy = -fewer * math.log(fewer) - (1.0 - fewer) * math.log1p(-fewer)
                return math.log(up) - math.log(down), entropy
        zero = np.zeros(len(self.y))
        _, b, losses = self.balance(zero, 0.0)
        return b, losses.loss

    # ------------------------------------------------------------------------------------ dual

    def balanced_pull(self, pull: Array) -> Array:
        """The same with sum 0, where an intercept asks for it: the heavier class is scaled down."""
        if not self.intercept:
            return pull
        if not self.curved:
            return pull - self.s * float(pull.sum())
        up, down = float(pull[self.y > 0].sum()), -float(pull[self.y < 0].sum())
        if up == down:
            return pull
        if min(up, down) <= 0.0:
            return np.zeros_like(pull)
        return np.where(self.y > 0, pull * min(1.0, down / up), pull * min(1.0, up / down))

    def dual(self, pull: Array, sums: Array) -> float:
        """The lower bound of a balanced ``pull`` whose products with all columns are ``sums``."""
        size = np.abs(sums)
        if self.l1 == 0.0 and self.l2 == 0.0:
            bound = self.conjugate(pull, 1.0) - float(self.box @ size)
        elif self.l2 > 0.0:
            over = np.maximum(size - self.l1, 0.0)
            bound = self.conjugate(pull, 1.0) - float(over @ over) / (2.0 * self.l2)
        else:
            largest = float(size.max(initial=0.0))
            bound = self.conjugate(pull, self.l1 / largest if largest > 0.0 else np.inf)
        return max(0.0, bound)  # no loss is negative

    def certified(self, coef: Array, b: float) -> tuple[float, float, float]:
        """The best intercept for these coefficients, their objective and the bound at that point."""
        _, b, losses = self.balance(self.scores(coef, b), b)
        pull = self.balanced_pull(losses.pull)
        return b, losses.loss + self.penalty(coef), self.dual(pull, self.design.sums(pull))

    def conjugate(self, pull: Array, most: float) -> float:
        """sum -s loss*(-u / s) at u = theta pull for the best theta of at most ``most`` (logistic: 1)."""
        if self.loss == "squared":
            along, square = float(pull @ self.y), float(np.square(pull) @ (1.0 / self.s))
            best = along / square if square > 0.0 else 0.0
            theta = 1.0 if most == 1.0 else float(np.clip(best, -most, most))
            return theta * along - 0.5 * theta * theta * square
        return _kernels.logistic_dual(pull, self.s, min(1.0, most))

    @cached_property
    def box(self) -> Array:
        """Limits of coefficients that nothing else limits."""
        return coefficient_box(self.design, self.s, self.size_of_targets())

    def size_of_targets(self) -> float:
        if self.target_size is not None or self.loss != "squared":
            return self.target_size or 1.0
        return float(np.sqrt(self.s @ np.square(self.y))) or 1.0

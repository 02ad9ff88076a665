"""The problems of linear models: loss and regularisation at given coefficients, and the dual bound.

    min  sum s_i loss(y_i, f_i) + l1 |beta|_1 + (l2 / 2) |beta|_2^2,    f = X beta + b,   sum s_i = 1

``pull`` is what every row pulls its score by: u_i = -s_i dloss/df_i. For any u in the domain of the conjugate
with sum u_i = 0 (where there is an intercept) and c = X' u

    D(u) = sum -s_i loss*(-u_i / s_i) - sum_j max over b_j of |c_j| |b_j| - l1 |b_j| - l2 b_j^2 / 2

is a lower bound. With l2 = 0 < l1 the last term is 0 once u is scaled until |c_j| <= l1. With l1 = l2 = 0 it
is |c_j| times the box, and the bound is about all coefficients in that box.

:class:`ScoreProblem` has one score per row, :class:`SoftmaxProblem` one per class, :class:`AbsoluteProblem`
the absolute loss, whose row weights do not follow from the scores.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.certificate.checker.linear import balanced, mixing, weighted_median
from cardboost.linear.design import Array, Design

Coefficients = tuple[Array, Any]  # coefficients and intercept: of one score, or a row and a number per class

#: with l1 = l2 = 0: how far a coefficient may go, in units of target / root mean square of its column
BOX = 1e4
_ROUNDING = 1e-15  # of the row weights: a sum that is 0
_ROUNDING_OF_ROW = 1e-18  # the same for many rows: so much for each of them
_CLOSE = 1e-12  # of the objective without any feature: a gap that counts as none


def is_close(objective: float, bound: float, tol: float, null: float) -> bool:
    """Whether the gap is within the tolerance; ``null`` is the objective without features."""
    return objective - bound <= max(tol * objective, _CLOSE * null)


@dataclass(frozen=True, eq=False)
class RowLosses:
    """The loss at some scores, and of every row its pull and its curvature."""

    loss: float
    pull: Array
    curvature: Array


@dataclass(frozen=True, eq=False)
class ClassLosses:
    """The loss at some scores of classes, and of every row its pulls and the shares of the classes."""

    loss: float
    pull: Array
    shares: Array


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients with their objective and the best lower bound known; ``status`` says why it ended.

    ``dual``: the row weights of the bound, where they do not follow from the scores.
    """

    coef: Array
    intercept: Any
    objective: float
    lower_bound: float
    n_iter: int
    status: str
    dual: Array | None = None

    @property
    def gap(self) -> float:
        return max(0.0, self.objective - self.lower_bound)


@dataclass(frozen=True, eq=False)
class LinearProblem(ABC):
    """Rows, targets, weights that sum to 1, regularisation. Targets of classes: -1 and 1, or codes."""

    design: Design
    y: NDArray[Any]
    s: Array
    loss: str
    l1: float
    l2: float
    intercept: bool
    target_size: float | None = None  # root mean square of the targets before they were centred

    @property
    def is_regression(self) -> bool:
        return self.loss in ("squared", "absolute")

    def centred(self) -> tuple[Self, Array, float]:
        """The same with columns and targets far from 0 moved to it, and by how much: only the intercept, if
        there is one, notices."""
        if not self.intercept:
            return self, np.zeros(self.design.columns), 0.0
        centres = self.design.centres()
        moved = replace(self, design=self.design.less(centres), target_size=self.size_of_targets())
        if not self.is_regression:
            return moved, centres, 0.0
        middle = float(self.y.min() / 2.0 + self.y.max() / 2.0)
        return replace(moved, y=self.y - middle), centres, middle

    @abstractmethod
    def null(self) -> tuple[Any, float]:
        """The model without features: its intercept and its objective."""

    def start(self, before: Coefficients | None, b: Any) -> Array:
        """Coefficients with the intercept last: those of ``before``, or 0 with the intercept ``b``."""
        coef, b = (np.zeros((*np.shape(b), self.design.columns)), b) if before is None else before
        return np.concatenate([coef, np.asarray(b)[..., None]], axis=-1)

    def scores(self, coef: Array, b: Any) -> Array:
        return self.design.scores(coef) + b

    def quadratic(self, pull: Array) -> dict[str, Any]:
        """What a sweep over the quadratic model of the loss needs to know beside its derivatives."""
        named = {"l1": self.l1, "l2": self.l2, "intercept": self.intercept}
        return named | {"g0": -float(pull.sum())}

    def penalty(self, coef: Array) -> float:
        flat = coef.ravel()
        return self.l1 * float(np.abs(flat).sum()) + 0.5 * self.l2 * float(flat @ flat)

    def bound(self, value: Callable[[float], float], sums: Array) -> float:
        """The lower bound of row weights whose products with all columns are ``sums``.

        ``value(theta)``: the largest dual value of these row weights times a factor of at most ``theta``.
        """
        size = np.abs(sums)
        if self.l1 == 0.0 and self.l2 == 0.0:
            bound = value(1.0) - float((size @ self.box).sum())
        elif self.l2 > 0.0:
            over = np.maximum(size - self.l1, 0.0).ravel()
            bound = value(1.0) - float(over @ over) / (2.0 * self.l2)
        else:
            largest = float(size.max(initial=0.0))
            bound = value(self.l1 / largest if largest > 0.0 else np.inf)
        return max(0.0, bound)  # no loss is negative

    @cached_property
    def box(self) -> Array:
        """Limits of coefficients that nothing else limits."""
        rms = np.sqrt(self.design.second_moments(self.s))
        return np.where(rms > 0.0, BOX * self.size_of_targets() / np.where(rms > 0.0, rms, 1.0), 0.0)

    def size_of_targets(self) -> float:
        if self.target_size is not None or not self.is_regression:
            return self.target_size or 1.0
        return float(np.sqrt(self.s @ np.square(self.y))) or 1.0


class Point:
    """Coefficients with the intercept last, and what they give, computed when it is first asked for.

    ``known``: what is known already, of ``f``, ``losses`` and ``slope``.
    """

    def __init__(self, problem: ScoreProblem | SoftmaxProblem, z: Array, **known: Any) -> None:
        self.problem: Any = problem
        self.z = z
        self.__dict__.update(known)

    @cached_property
    def f(self) -> Array:
        return self.problem.scores(self.z[..., :-1], self.z[..., -1])

    @cached_property
    def losses(self) -> Any:
        return self.problem.rows(self.f)

    @cached_property
    def objective(self) -> float:
        return self.losses.loss + self.problem.penalty(self.z[..., :-1])

    @cached_property
    def slope(self) -> Array:
        """The derivative of the loss."""
        pull = self.losses.pull
        ends = pull.sum(axis=0) * self.problem.intercept
        return np.concatenate([-self.problem.design.sums(pull), -ends[..., None]], axis=-1)

    @cached_property
    def gradient(self) -> Array:
        """The derivative of loss and l2."""
        gradient = self.slope.copy()
        gradient[..., :-1] += self.problem.l2 * self.z[..., :-1]
        return gradient


@dataclass(frozen=True, eq=False)
class ScoreProblem(LinearProblem):
    """One score per row: the squared loss, or the logistic loss with targets -1 and 1."""

    @property
    def curved(self) -> bool:
        """Whether the curvature depends on the scores."""
        return self.loss == "logistic"

    @property
    def steepest(self) -> float:
        """The largest curvature of a row."""
        return 0.25 if self.curved else 1.0

    # ------------------------------------------------------------------------------------ primal

    def rows(self, f: Array) -> RowLosses:
        if self.loss == "squared":
            residual = self.y - f
            pull = self.s * residual
            return RowLosses(0.5 * float(pull @ residual), pull, self.s)
        pull, curvature = np.empty_like(f), np.empty_like(f)
        loss = _kernels.logistic_rows(f, self.y, self.s, pull, curvature)
        return RowLosses(loss, pull, curvature)

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
        if self.curved and self.intercept:
            up, down = float(self.s[self.y > 0].sum()), float(self.s[self.y < 0].sum())
            if (fewer := min(up, down)) > 0.0:
                entropy = -fewer * math.log(fewer) - (1.0 - fewer) * math.log1p(-fewer)
                return math.log(up) - math.log(down), entropy
        _, b, losses = self.balance(np.zeros(len(self.y)), 0.0)
        return b, losses.loss

    # ------------------------------------------------------------------------------------ dual

    def balanced_pull(self, pull: Array) -> Array:
        """The same with sum 0, where an intercept asks for it: the heavier class is scaled down."""
        if not self.intercept:
            return pull
        if not self.curved:
            return pull - self.s * float(pull.sum())
        return balanced(pull)

    def dual(self, pull: Array, sums: Array) -> float:
        """The lower bound of a balanced ``pull`` whose products with all columns are ``sums``."""
        return self.bound(lambda theta: self.conjugate(pull, theta), sums)

    def settled(self, point: Point) -> tuple[Point, float, float]:
        """With the best intercept for these coefficients; their objective and the bound at that point."""
        coef = point.z[:-1]
        _, b, losses = self.balance(point.f, float(point.z[-1]), point.losses)
        pull = self.balanced_pull(losses.pull)
        bound = self.dual(pull, self.design.sums(pull))
        return Point(self, np.append(coef, b)), losses.loss + self.penalty(coef), bound

    def conjugate(self, pull: Array, most: float) -> float:
        """sum -s loss*(-u / s) at u = theta pull for the best theta of at most ``most`` (logistic: 1)."""
        if self.loss == "squared":
            along, square = float(pull @ self.y), float(np.square(pull) @ (1.0 / self.s))
            best = along / square if square > 0.0 else 0.0
            theta = 1.0 if most == 1.0 else float(np.clip(best, -most, most))
            return theta * along - 0.5 * theta * theta * square
        return _kernels.logistic_dual(pull, self.s, min(1.0, most))


@dataclass(frozen=True, eq=False)
class SoftmaxProblem(LinearProblem):
    """One score per class; the targets are codes of classes."""

    n_classes: int = 2
    steepest = 0.5

    @cached_property
    def truth(self) -> Array:
        return np.eye(self.n_classes)[self.y]

    def rows(self, f: Array) -> ClassLosses:
        top = f.max(axis=1)
        e = np.exp(f - top[:, None])
        total = e.sum(axis=1)
        loss = float(self.s @ (np.log(total) + top - f[np.arange(len(f)), self.y]))
        shares = e / total[:, None]
        return ClassLosses(loss, self.s[:, None] * (self.truth - shares), shares)

    def null(self) -> tuple[Array, float]:
        if not self.intercept:
            return np.zeros(self.n_classes), float(np.log(self.n_classes))
        masses = np.bincount(self.y, self.s, self.n_classes)
        logs = np.log(masses)
        return logs - logs.mean(), -float(masses @ logs)

    def dual(self, shares: Array) -> float:
        """The lower bound at these shares of the classes."""
        truth = self.truth
        if self.intercept:
            shares = shares @ mixing(self.s @ shares, self.s @ truth)

        def value(theta: float) -> float:
            v = truth + min(theta, 1.0) * (shares - truth)
            logs = np.log(np.where(v > 0.0, v, 1.0))
            return -float(self.s @ (v * logs).sum(axis=1))

        return self.bound(value, self.design.sums(self.s[:, None] * (truth - shares)))

    def settled(self, point: Point) -> tuple[Point, float, float]:
        return point, point.objective, self.dual(point.losses.shares)


@dataclass(frozen=True, eq=False)
class AbsoluteProblem(LinearProblem):
    """The absolute loss: a bound holds for any row weights u with |u_i| <= s_i."""

    def objective(self, coef: Array, b: float) -> float:
        return float(self.s @ np.abs(self.y - self.design.scores(coef) - b)) + self.penalty(coef)

    def null(self) -> tuple[float, float]:
        middle = weighted_median(self.y, self.s) if self.intercept else 0.0
        return middle, float(self.s @ np.abs(self.y - middle))

    def dual(self, u: Array) -> tuple[Array, float]:
        """Row weights within their limits, with sum 0 where there is an intercept, and their bound."""
        u = np.clip(u, -self.s, self.s)
        if self.intercept:
            u = balanced(u)
        return u, self.bound(lambda theta: min(1.0, theta) * float(u @ self.y), self.design.sums(u))

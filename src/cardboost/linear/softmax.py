"""Multinomial logistic regression: one score per class, softmax, l1 and l2.

    min  sum s_i (log sum_k exp f_ik - f_i,y_i) + l1 |W|_1 + (l2 / 2) |W|_2^2,    f = X W' + b

Solvers: Newton steps by conjugate gradients (l1 = 0), prox-Newton steps class by class, proximal gradients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost.certificate.checker.linear import mixing
from cardboost.linear.design import Design
from cardboost.linear.gradient import largest_eigenvalue
from cardboost.linear.problem import Fit, LinearProblem, coefficient_box, is_close

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SoftmaxProblem:
    """Rows, codes of their classes, weights that sum to 1, prices."""

    design: Design
    codes: NDArray[np.intp]
    n_classes: int
    s: Array
    l1: float
    l2: float
    intercept: bool

    def truth(self) -> Array:
        out = np.zeros((len(self.codes), self.n_classes))
        out[np.arange(len(self.codes)), self.codes] = 1.0
        return out

    def scores(self, coef: Array, b: Array) -> Array:
        return np.asarray(self.design.matrix @ coef.T) + b

    def shares(self, f: Array) -> tuple[float, Array]:
        """The loss and the shares of the classes at these scores."""
        top = f.max(axis=1)
        e = np.exp(f - top[:, None])
        total = e.sum(axis=1)
        loss = float(self.s @ (np.log(total) + top - f[np.arange(len(f)), self.codes]))
        return loss, e / total[:, None]

    def penalty(self, coef: Array) -> float:
        return self.l1 * float(np.abs(coef).sum()) + 0.5 * self.l2 * float(np.square(coef).sum())

    def sums(self, pull: Array) -> Array:
        """(classes, columns): X' pull for every class."""
        return np.asarray(self.design.matrix.T @ pull).T

    def null(self) -> tuple[Array, float]:
        masses = np.bincount(self.codes, self.s, self.n_classes)
        if not self.intercept:
            return np.zeros(self.n_classes), float(np.log(self.n_classes))
        logs = np.log(masses)
        return logs - logs.mean(), -float(masses @ logs)

    def dual(self, shares: Array) -> float:
        """The lower bound at these shares of the classes."""
        truth = self.truth()
        if self.intercept:
            shares = shares @ mixing(self.s @ shares, self.s @ truth)
        size = np.abs(self.sums(self.s[:, None] * (truth - shares)))
        theta, cost = 1.0, 0.0
        if self.l2 > 0.0:
            cost = float(np.square(np.maximum(size - self.l1, 0.0)).sum()) / (2.0 * self.l2)
        elif self.l1 > 0.0:
            theta = min(1.0, self.l1 / max(float(size.max(initial=0.0)), 1e-300))
        else:
            cost = float((coefficient_box(self.design, self.s, 1.0) * size).sum())
        v = truth + theta * (shares - truth)
        logs = np.log(np.where(v > 0.0, v, 1.0))
        return max(0.0, -float(self.s @ (v * logs).sum(axis=1)) - cost)


@dataclass(frozen=True, eq=False)
class _Iterate:
    """Coefficients (classes, columns + 1), the intercept last, and what they give."""

    z: Array
    f: Array
    shares: Array
    loss: float
    objective: float

    @classmethod
    def make(cls, problem: SoftmaxProblem, z: Array, f: Array | None = None) -> _Iterate:
        f = problem.scores(z[:, :-1], z[:, -1]) if f is None else f
        loss, shares = problem.shares(f)
        return cls(z, f, shares, loss, loss + problem.penalty(z[:, :-1]))


def _slope(problem: SoftmaxProblem, current: _Iterate, truth: Array) -> Array:
    """The derivative of the loss: (classes, columns + 1)."""
    pull = problem.s[:, None] * (truth - current.shares)
    return np.column_stack([-problem.sums(pull), -pull.sum(axis=0) * problem.intercept])


def solve_softmax(
    problem: SoftmaxProblem,
    solver: str,
    tol: float,
    max_iter: int,
    start: Array | None = None,
    accelerate: bool = True,
) -> Fit:
    """The optimum to a relative gap of ``tol``; the fit holds matrices, with the intercept last."""
    null = problem.null()
    z = np.zeros((problem.n_classes, problem.design.columns + 1)) if start is None else start.copy()
    if start is None:
        z[:, -1] = null[0]
    run = {"gradient": _gradient, "newton": _newton, "prox-newton": _proximal}[solver]
    current, steps, status = run(problem, _Iterate.make(problem, z), tol, max_iter, null[1], accelerate)
    bound = problem.dual(current.shares)
    return Fit(current.z, 0.0, current.objective, bound, max(1, steps), status)


def _newton(
    problem: SoftmaxProblem, current: _Iterate, tol: float, max_iter: int, null: float, _: bool
) -> tuple[_Iterate, int, str]:
    truth, s = problem.truth(), problem.s[:, None]
    squares = np.append(problem.design.second_moments(problem.s), 1.0)
    for steps in range(max_iter + 1):
        if is_close(current.objective, problem.dual(current.shares), tol, null):
            return current, steps, "optimal"
        if problem.l2 == 0.0 and current.objective <= 1e-8 * null and _right(problem, current):
            return current, steps, "separable"
        if steps == max_iter:
            break
        slope = _slope(problem, current, truth)
        slope[:, :-1] += problem.l2 * current.z[:, :-1]
        shares = current.shares

        def product(v: Array, shares: Array = shares) -> Array:
            f = problem.scores(v[:, :-1], v[:, -1])
            q = shares * f
            q = s * (q - shares * q.sum(axis=1)[:, None])
            image = np.column_stack([problem.sums(q), q.sum(axis=0) * problem.intercept])
            image[:, :-1] += problem.l2 * v[:, :-1]
            return image

        curve = (problem.s @ (shares * (1.0 - shares)))[:, None] * squares + problem.l2
        curve[curve <= 0.0] = 1.0
        size = float(np.sqrt((slope * slope / curve).sum()))
        d = _conjugate_gradients(product, -slope, curve, min(0.1, size) * size)
        promised = float((slope * d).sum())
        after = _search(problem, current, d, promised)
        if after is None:
            return current, steps + 1, "precision"
        current = after
    return current, max_iter, "iteration limit"


def _conjugate_gradients(product: object, right: Array, curve: Array, target: float) -> Array:
    """Solve with a positive semidefinite matrix until the rest is small, in the norm of its diagonal."""
    x, rest = np.zeros_like(right), right.copy()
    z = rest / curve
    p, rho = z.copy(), float((rest * z).sum())
    for _ in range(500):
        if np.sqrt(max(rho, 0.0)) <= target:
            break
        image = product(p)  # type: ignore[operator]
        bend = float((p * image).sum())
        if bend <= 1e-300:
            break
        length = rho / bend
        x += length * p
        rest -= length * image
        z = rest / curve
        rho, before = float((rest * z).sum()), rho
        p = z + rho / before * p
    return x


def _search(problem: SoftmaxProblem, current: _Iterate, d: Array, promised: float) -> _Iterate | None:
    length, rounding = 1.0, 2e-15 * current.objective
    shift = problem.scores(d[:, :-1], d[:, -1])
    for _ in range(40):
        after = _Iterate.make(problem, current.z + length * d, current.f + length * shift)
        if after.objective <= current.objective + 1e-4 * length * min(promised, 0.0) + rounding:
            return after if after.objective < current.objective or promised > -rounding else None
        length *= 0.5
    return None


def _right(problem: SoftmaxProblem, current: _Iterate) -> bool:
    return bool((current.f.argmax(axis=1) == problem.codes).all())


def _proximal(
    problem: SoftmaxProblem, current: _Iterate, tol: float, max_iter: int, null: float, accelerate: bool
) -> tuple[_Iterate, int, str]:
    """Cycles over the classes, each with the quadratic model of its own scores; a joint line search."""
    truth, design = problem.truth(), problem.design
    which = np.arange(design.columns, dtype=np.int32)
    last, stuck = np.inf, 0
    for steps in range(max_iter + 1):
        if steps % 5 == 0 or steps == max_iter:
            bound = problem.dual(current.shares)
            if is_close(current.objective, bound, tol, null):
                return current, steps, "optimal"
            if steps == max_iter:
                break
        before = current
        for k in range(problem.n_classes):
            share = current.shares[:, k]
            w = problem.s * share * (1.0 - share)
            pull = problem.s * (truth[:, k] - share)
            g = -design.sums(pull)
            beta = current.z[k, :-1].copy()
            shift, b, _ = design.sweep(
                which, w, g, beta,
                l1=problem.l1, l2=problem.l2, intercept=problem.intercept, g0=-float(pull.sum()),
                tolerance=1e-3 * max(tol, 1e-12), most=30,
            )  # fmt: skip
            current = _one_class(problem, current, k, beta, b, shift, float(-(pull @ (shift + b))))
        current = _extrapolated(problem, before, current)
        stuck = stuck + 1 if current.objective >= last * (1.0 - 1e-16) else 0
        last = current.objective
        if stuck >= 30:
            return current, steps + 1, "precision"
    return current, max_iter, "iteration limit"


def _one_class(
    problem: SoftmaxProblem, current: _Iterate, k: int, beta: Array, b: float, shift: Array, slope: float
) -> _Iterate:
    d = np.append(beta - current.z[k, :-1], b)
    length = 1.0
    promised = slope + problem.penalty(beta) - problem.penalty(current.z[k, :-1])
    for _ in range(30):
        z, f = current.z.copy(), current.f.copy()
        z[k] += length * d
        if length == 1.0:
            z[k, :-1] = beta
        f[:, k] += length * (shift + b)
        after = _Iterate.make(problem, z, f)
        if (
            after.objective
            <= current.objective + 1e-4 * length * min(promised, 0.0) + 1e-15 * current.objective
        ):
            return after
        length *= 0.5
    return current


def _extrapolated(problem: SoftmaxProblem, before: _Iterate, current: _Iterate) -> _Iterate:
    """Further along the way of the last cycle, while the objective falls; zeros stay."""
    move = current.z - before.z
    move[:, :-1][current.z[:, :-1] == 0.0] = 0.0
    for factor in (8.0, 2.0, 0.5):
        z = current.z + factor * move
        flipped = np.sign(z[:, :-1]) * np.sign(current.z[:, :-1]) < 0
        z[:, :-1][flipped] = 0.0
        after = _Iterate.make(problem, z)
        if after.objective < current.objective:
            return after
    return current


def _gradient(
    problem: SoftmaxProblem, current: _Iterate, tol: float, max_iter: int, null: float, accelerate: bool
) -> tuple[_Iterate, int, str]:
    truth = problem.truth()
    like = LinearProblem(
        problem.design, problem.s, problem.s, "squared", problem.l1, problem.l2, problem.intercept
    )
    smooth = 0.5 * largest_eigenvalue(like) or 1.0
    point, momentum = current, 1.0
    for steps in range(1, max_iter + 1):
        slope = _slope(problem, point, truth)
        while True:
            step = point.z - slope / smooth
            coef = step[:, :-1]
            coef = np.sign(coef) * np.maximum(np.abs(coef) - problem.l1 / smooth, 0.0)
            after = _Iterate.make(problem, np.column_stack([coef / (1.0 + problem.l2 / smooth), step[:, -1]]))
            move = after.z - point.z
            bound = point.loss + float((slope * move).sum()) + 0.5 * smooth * float((move * move).sum())
            if after.loss <= bound * (1.0 + 1e-12) + 1e-300:
                break
            smooth *= 2.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        turned = float(((point.z - after.z) * (after.z - current.z)).sum()) > 0.0
        if not accelerate or turned or after.objective > current.objective:
            following, point = 1.0, after
        else:
            point = _Iterate.make(problem, after.z + (momentum - 1.0) / following * (after.z - current.z))
        current, momentum = after, following
        if steps % 10 == 0 and is_close(current.objective, problem.dual(current.shares), tol, null):
            return current, steps, "optimal"
    return current, max_iter, "iteration limit"

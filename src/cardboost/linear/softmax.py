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
from cardboost.linear.problem import BOX, Fit, LinearProblem

Array = NDArray[np.float64]

_CLOSE = 1e-12


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
        if self.design.sparse:
            return np.asarray(self.design.matrix @ coef.T) + b
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
        held = np.bincount(self.codes, self.s, self.n_classes)
        if not self.intercept:
            return np.zeros(self.n_classes), float(np.log(self.n_classes))
        logs = np.log(held)
        return logs - logs.mean(), -float(held @ logs)

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
            rms = np.sqrt(self.design.second_moments(self.s))
            cost = float((np.where(rms > 0, BOX / np.where(rms > 0, rms, 1.0), 0.0) * size).sum())
        v = truth + theta * (shares - truth)
        logs = np.log(np.where(v > 0.0, v, 1.0))
        return max(0.0, -float(self.s @ (v * logs).sum(axis=1)) - cost)

    def close(self, objective: float, bound: float, tol: float, null: float) -> bool:
        return objective - bound <= max(tol * objective, _CLOSE * null)


@dataclass(frozen=True, eq=False)
class _At:
    """Coefficients (classes, columns + 1), the intercept last, and what they give."""

    z: Array
    f: Array
    shares: Array
    loss: float
    objective: float

    @classmethod
    def make(cls, problem: SoftmaxProblem, z: Array, f: Array | None = None) -> _At:
        f = problem.scores(z[:, :-1], z[:, -1]) if f is None else f
        loss, shares = problem.shares(f)
        return cls(z, f, shares, loss, loss + problem.penalty(z[:, :-1]))


def _slope(problem: SoftmaxProblem, at: _At, truth: Array) -> Array:
    """The derivative of the loss: (classes, columns + 1)."""
    pull = problem.s[:, None] * (truth - at.shares)
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
    at, steps, status = run(problem, _At.make(problem, z), tol, max_iter, null[1], accelerate)
    bound = problem.dual(at.shares)
    return Fit(at.z, 0.0, at.objective, bound, max(1, steps), status)


def _newton(
    problem: SoftmaxProblem, at: _At, tol: float, max_iter: int, null: float, _: bool
) -> tuple[_At, int, str]:
    truth, s = problem.truth(), problem.s[:, None]
    squares = np.append(problem.design.second_moments(problem.s), 1.0)
    for steps in range(max_iter + 1):
        if problem.close(at.objective, problem.dual(at.shares), tol, null):
            return at, steps, "optimal"
        if problem.l2 == 0.0 and at.objective <= 1e-8 * null and _right(problem, at):
            return at, steps, "separable"
        if steps == max_iter:
            break
        slope = _slope(problem, at, truth)
        slope[:, :-1] += problem.l2 * at.z[:, :-1]
        shares = at.shares

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
        after = _search(problem, at, d, promised)
        if after is None:
            return at, steps + 1, "precision"
        at = after
    return at, max_iter, "iteration limit"


def _conjugate_gradients(product: object, right: Array, curve: Array, wanted: float) -> Array:
    """Solve with a positive semidefinite matrix until the rest is small, in the norm of its diagonal."""
    x, rest = np.zeros_like(right), right.copy()
    z = rest / curve
    p, rho = z.copy(), float((rest * z).sum())
    for _ in range(500):
        if np.sqrt(max(rho, 0.0)) <= wanted:
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


def _search(problem: SoftmaxProblem, at: _At, d: Array, promised: float) -> _At | None:
    length, rounding = 1.0, 2e-15 * at.objective
    shift = problem.scores(d[:, :-1], d[:, -1])
    for _ in range(40):
        after = _At.make(problem, at.z + length * d, at.f + length * shift)
        if after.objective <= at.objective + 1e-4 * length * min(promised, 0.0) + rounding:
            return after if after.objective < at.objective or promised > -rounding else None
        length *= 0.5
    return None


def _right(problem: SoftmaxProblem, at: _At) -> bool:
    return bool((at.f.argmax(axis=1) == problem.codes).all())


def _proximal(
    problem: SoftmaxProblem, at: _At, tol: float, max_iter: int, null: float, accelerate: bool
) -> tuple[_At, int, str]:
    """Cycles over the classes, each with the quadratic model of its own scores; a joint line search."""
    truth, design = problem.truth(), problem.design
    which = np.arange(design.columns, dtype=np.int32)
    last, stuck = np.inf, 0
    for steps in range(max_iter + 1):
        if steps % 5 == 0 or steps == max_iter:
            bound = problem.dual(at.shares)
            if problem.close(at.objective, bound, tol, null):
                return at, steps, "optimal"
            if steps == max_iter:
                break
        before = at
        for k in range(problem.n_classes):
            own = at.shares[:, k]
            w = problem.s * own * (1.0 - own)
            pull = problem.s * (truth[:, k] - own)
            g = -design.sums(pull)
            beta = at.z[k, :-1].copy()
            shift, b, _ = design.sweep(
                which, w, g, beta,
                l1=problem.l1, l2=problem.l2, intercept=problem.intercept, g0=-float(pull.sum()),
                tolerance=1e-3 * max(tol, 1e-12), most=30,
            )  # fmt: skip
            at = _one_class(problem, at, k, beta, b, shift, float(-(pull @ (shift + b))))
        at = _extrapolated(problem, before, at)
        stuck = stuck + 1 if at.objective >= last * (1.0 - 1e-16) else 0
        last = at.objective
        if stuck >= 30:
            return at, steps + 1, "precision"
    return at, max_iter, "iteration limit"


def _one_class(
    problem: SoftmaxProblem, at: _At, k: int, beta: Array, b: float, shift: Array, slope: float
) -> _At:
    d = np.append(beta - at.z[k, :-1], b)
    length = 1.0
    promised = slope + problem.penalty(beta) - problem.penalty(at.z[k, :-1])
    for _ in range(30):
        z, f = at.z.copy(), at.f.copy()
        z[k] += length * d
        if length == 1.0:
            z[k, :-1] = beta
        f[:, k] += length * (shift + b)
        after = _At.make(problem, z, f)
        if after.objective <= at.objective + 1e-4 * length * min(promised, 0.0) + 1e-15 * at.objective:
            return after
        length *= 0.5
    return at


def _extrapolated(problem: SoftmaxProblem, before: _At, at: _At) -> _At:
    """Further along the way of the last cycle, while the objective falls; zeros stay."""
    move = at.z - before.z
    move[:, :-1][at.z[:, :-1] == 0.0] = 0.0
    for factor in (8.0, 2.0, 0.5):
        z = at.z + factor * move
        flipped = np.sign(z[:, :-1]) * np.sign(at.z[:, :-1]) < 0
        z[:, :-1][flipped] = 0.0
        after = _At.make(problem, z)
        if after.objective < at.objective:
            return after
    return at


def _gradient(
    problem: SoftmaxProblem, at: _At, tol: float, max_iter: int, null: float, accelerate: bool
) -> tuple[_At, int, str]:
    truth = problem.truth()
    like = LinearProblem(
        problem.design, problem.s, problem.s, "squared", problem.l1, problem.l2, problem.intercept
    )
    smooth = 0.5 * largest_eigenvalue(like) or 1.0
    point, momentum = at, 1.0
    for steps in range(1, max_iter + 1):
        slope = _slope(problem, point, truth)
        while True:
            step = point.z - slope / smooth
            own = step[:, :-1]
            own = np.sign(own) * np.maximum(np.abs(own) - problem.l1 / smooth, 0.0)
            after = _At.make(problem, np.column_stack([own / (1.0 + problem.l2 / smooth), step[:, -1]]))
            move = after.z - point.z
            bound = point.loss + float((slope * move).sum()) + 0.5 * smooth * float((move * move).sum())
            if after.loss <= bound * (1.0 + 1e-12) + 1e-300:
                break
            smooth *= 2.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        turned = float(((point.z - after.z) * (after.z - at.z)).sum()) > 0.0
        if not accelerate or turned or after.objective > at.objective:
            following, point = 1.0, after
        else:
            point = _At.make(problem, after.z + (momentum - 1.0) / following * (after.z - at.z))
        at, momentum = after, following
        if steps % 10 == 0 and problem.close(at.objective, problem.dual(at.shares), tol, null):
            return at, steps, "optimal"
    return at, max_iter, "iteration limit"

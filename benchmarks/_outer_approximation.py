"""Selection of columns by outer approximation, with a solver of mixed-integer linear programs: HiGHS.

    minimise  mean loss(A w) + l1 sum(w) + l2/2 sum(w^2) + l0 sum(z),    0 <= w <= M z,  z in {0, 1}

HiGHS sees linear constraints only: each convex function is replaced by the largest of its tangents found so
far. The rows are divided into groups of similar margins, and each group has tangents of its own. The l2 term
of a column has tangents q >= l2 t w - l2/2 t^2 z, which are those of its perspective.

First the relaxation with 0 <= z <= 1 is solved, with a tangent at every solution; then the integer program,
again and again, with tangents at the solutions that HiGHS found on its way and at the best weights for the
columns of the last one. Its bounds rise to the value of the best choice.
"""

from __future__ import annotations

import time

import highspy
import numpy as np
from scipy.optimize import minimize

GROUPS = 50
ROOT_GAP = 1e-4  # relative; a tighter relaxation costs more than it brings
MOST_ROOTS = 200
SAVED = 8  # solutions of one integer program that get tangents
STEP = 0.1  # an integer program is solved to this part of the gap that is left
CLEAR = 1e-9  # feasibility tolerance of HiGHS, and the least share z that a weight is divided by


class Fit:
    """The convex part of the problem; equal rows are one row."""

    def __init__(self, A: np.ndarray, loss: str, l1: float, l2: float) -> None:
        self.A, count = np.unique(A.astype(float), axis=0, return_counts=True)
        self.share = count / len(A)
        self.loss, self.l1, self.l2 = loss, l1, l2

    def rows(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of every row, times its share, and its derivative by the margin."""
        margins = self.A @ w
        if self.loss == "logistic":
            return self.share * np.logaddexp(0.0, -margins), -self.share / (1.0 + np.exp(margins))
        exponentials = self.share * np.exp(-margins)
        return exponentials, -exponentials

    def value(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        losses, slopes = self.rows(w)
        value = losses.sum() + self.l1 * w.sum() + self.l2 / 2 * (w @ w)
        return float(value), self.A.T @ slopes + self.l1 + self.l2 * w

    def refit(self, w: np.ndarray, used: np.ndarray, box: float) -> np.ndarray:
        """The best weights for these columns."""
        best = np.zeros_like(w)

        def value(weights: np.ndarray) -> tuple[float, np.ndarray]:
            best[used] = weights
            total, slope = self.value(best)
            return total, slope[used]

        if used.any():
            tight = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
            start, bounds = np.clip(w[used], 0.0, box), [(0.0, box)] * int(used.sum())
            found = minimize(value, start, jac=True, bounds=bounds, method="L-BFGS-B", options=tight)
            best[used] = found.x
        return best


class Master:
    """The linear program: variables w, z, q (the l2 terms) and one e for the loss of each group of rows."""

    def __init__(self, fit: Fit, problem: dict, start: np.ndarray, threads: int) -> None:
        self.fit, self.box, self.n = fit, problem["box"], fit.A.shape[1]
        order = np.argsort(fit.A @ start)
        part = np.minimum(np.cumsum(fit.share[order]) * GROUPS, GROUPS - 0.5).astype(int)
        self.groups = [order[part == g] for g in np.unique(part)]
        self.known: set[tuple[int, float]] = set()
        self.highs = highspy.Highs()
        feasible = ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "mip_feasibility_tolerance")
        settings = {"output_flag": False, "threads": threads, "mip_abs_gap": 0.0}
        settings |= {"mip_improving_solution_save": True} | dict.fromkeys(feasible, CLEAR)
        for name, value in settings.items():
            self.highs.setOptionValue(name, value)
        n, last = self.n, len(self.groups)
        upper = np.r_[np.full(n, self.box), np.ones(n), np.full(n + last, highspy.kHighsInf)]
        cost = np.r_[np.full(n, fit.l1), np.full(n, problem["l0"]), np.ones(n + last)]
        self.highs.addVars(len(upper), np.zeros(len(upper)), upper)
        self.highs.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
        for j in range(n):
            self.at_least(0.0, [n + j, j], [self.box, -1.0])
        if problem["max_terms"]:
            self.at_least(-problem["max_terms"], range(n, 2 * n), [-1.0] * n)

    def at_least(self, bound: float, variables, factors) -> None:
        variables = np.asarray(variables, dtype=np.int32)
        self.highs.addRow(bound, np.inf, len(variables), variables, np.asarray(factors, dtype=float))

    def add_tangents(self, w: np.ndarray, z: np.ndarray) -> None:
        n = self.n
        losses, slopes = self.fit.rows(w)
        for g, rows in enumerate(self.groups):
            slope = self.fit.A[rows].T @ slopes[rows]
            self.at_least(losses[rows].sum() - slope @ w, [*range(n), 3 * n + g], [*-slope, 1.0])
        for j in np.flatnonzero((w > CLEAR) & (z > CLEAR)) if self.fit.l2 > 0 else ():
            t = min(w[j] / z[j], self.box)
            if (j, round(t, 8)) not in self.known:
                self.known.add((j, round(t, 8)))
                self.at_least(0.0, [2 * n + j, j, n + j], [1.0, -self.fit.l2 * t, self.fit.l2 / 2 * t * t])

    def make_integer(self) -> None:
        kinds = np.array([highspy.HighsVarType.kInteger] * self.n)
        self.highs.changeColsIntegrality(self.n, np.arange(self.n, 2 * self.n, dtype=np.int32), kinds)

    def suggest(self, w: np.ndarray) -> None:
        losses, _ = self.fit.rows(w)
        by_group = [losses[rows].sum() for rows in self.groups]
        solution = highspy.HighsSolution()
        solution.col_value = [*w, *(w > 0).astype(float), *(self.fit.l2 / 2 * w**2), *by_group]
        self.highs.setSolution(solution)

    def solve(self, limit: float, gap: float) -> list[np.ndarray]:
        """Solutions that were found, the best one last."""
        self.highs.setOptionValue("time_limit", limit)
        self.highs.setOptionValue("mip_rel_gap", gap)
        self.highs.run()
        if self.highs.getInfo().primal_solution_status != 2:
            return []
        saved = [solution.col_value for solution in self.highs.getSavedMipSolutions()[-SAVED:]]
        return [np.array(values) for values in [*saved, self.highs.getSolution().col_value]]

    def split(self, solution: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.clip(solution[: self.n], 0.0, self.box), solution[self.n : 2 * self.n]


def outer_approximation(A: np.ndarray, problem: dict, limit: float, gap: float, threads: int) -> dict:
    """Weights, and whether they are proved optimal to the relative `gap`.

    `problem` has loss, l0, l1, l2, max_terms, box and start: weights of a choice to begin with.
    """
    began = time.perf_counter()
    left = lambda: limit - (time.perf_counter() - began)  # noqa: E731
    fit = Fit(A, problem["loss"], problem["l1"], problem["l2"])
    start = np.array(problem["start"])
    total = lambda w: fit.value(w)[0] + problem["l0"] * np.count_nonzero(w)  # noqa: E731
    best = fit.refit(start, start > 0, problem["box"])
    upper = total(best)
    master = Master(fit, problem, start, threads)
    master.add_tangents(np.zeros(len(start)), np.zeros(len(start)))
    master.add_tangents(best, (best > 0).astype(float))
    lower = 0.0
    for _ in range(MOST_ROOTS):
        found = master.solve(max(left(), 0.01), gap)
        if not found:
            break
        w, z = master.split(found[-1])
        lower = master.highs.getInfo().objective_function_value
        share = np.maximum(z, CLEAR)
        value = fit.value(w)[0] + fit.l2 / 2 * (w @ (w / share - w)) + problem["l0"] * z.sum()
        if value - lower < ROOT_GAP * upper or left() <= 0:
            break
        master.add_tangents(w, z)
    master.make_integer()
    while upper - lower > gap * upper and left() > 0:
        master.suggest(best)
        found = master.solve(left(), max(gap / 10, STEP * (upper - lower) / upper))
        lower = max(lower, master.highs.getInfo().mip_dual_bound)
        for solution in found:
            w, z = master.split(solution)
            master.add_tangents(np.where(z > 0.5, w, 0.0), np.round(z))
        if found:
            w = fit.refit(w, z > 0.5, problem["box"])
            master.add_tangents(w, (w > 0).astype(float))
            if total(w) < upper:
                best, upper = w, total(w)
    return {"x": best, "closed": upper - lower <= gap * upper, "lower_bound": lower}

"""How fast does `minimize_on_simplex` reach a gap of 1e-8?

The soft margin lse(-A w) on {w >= 0, sum w = R}, R = 2, 10 and 50, for the stump matrix of
benchmarks/l1_solver.py: 569 x 1854 columns of +-1. What is counted is the time until the Frank-Wolfe gap of
the iterate is 1e-8; every contender that does not know its gap has it computed at its iterates, not charged.

* cardboost, newton (the default) and mprp (the paper's conjugate gradients), and newton with tol=0, as far as
  double precision goes;
* accelerated projected gradient: steps 1/L with L by backtracking, momentum restarted when the value rises;
* Frank-Wolfe with away steps, and with pairwise steps, both with exact line search;
* Clarabel through cvxpy: the time that the solver itself reports; its word that it is optimal is taken;
* SciPy's SLSQP and trust-constr.

All in NumPy with one thread; each in its own process, best of several (at least a second's worth), and
stopped after --give-up seconds.

The KKT residual of w with gradient g is the largest of |sum w - R| / R and, over the columns in use,
g_j - min g: all slopes in use are equal and no other is below them.

Goals: newton at least 60 times faster than the fastest of the others (mprp apart); with tol=0 its residual is
at most 1e-12; mprp reaches the gap and is faster than pairwise Frank-Wolfe.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import l1_solver
from _harness import (
    Goal,
    machine,
    print_machine,
    print_table,
    report_goals,
    require,
    run_benchmark,
    run_in_own_process,
    timed,
    write_json,
)

TOLERANCE = 1e-8
SPEED_GOAL = 60.0
RESIDUAL_GOAL = 1e-12
EXACT = "newton, tol=0"
NEWTON, MPRP, GRADIENT, AWAY, PAIRWISE, CLARABEL, SLSQP, TRUST = (
    "newton", "mprp", "projected gradient", "away-step", "pairwise", "Clarabel", "SLSQP", "trust-constr",
)  # fmt: skip
PACKAGES = ("cardboost", "numpy", "scipy", "scikit-learn", "cvxpy", "clarabel")


# --- the problem in NumPy, independent of the library ---


def value_and_slopes(A: np.ndarray, F: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The value at margins F, p, and the gradient."""
    low = F.min()
    e = np.exp(low - F)
    total = e.sum()
    p = e / total
    return float(np.log(total) - low), p, -(A.T @ p)


def gap_of(A: np.ndarray, w: np.ndarray) -> float:
    _, _, g = value_and_slopes(A, A @ w)
    return float(g @ w - w.sum() * g.min())


def residual_of(A: np.ndarray, w: np.ndarray, radius: float) -> float:
    _, _, g = value_and_slopes(A, A @ w)
    return max(abs(float(w.sum()) / radius - 1.0), float((g[w > 0] - g.min()).max()))


def project(v: np.ndarray, radius: float) -> np.ndarray:
    falling = np.sort(v)[::-1]
    over = (np.cumsum(falling) - radius) / np.arange(1, len(v) + 1)
    return np.maximum(v - over[np.count_nonzero(falling > over) - 1], 0.0)


class Watch:
    """Time that is charged, and whether it is up."""

    def __init__(self, give_up: float) -> None:
        self.start, self.give_up, self.free = time.perf_counter(), give_up, 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start - self.free

    @property
    def late(self) -> bool:
        return self.seconds > self.give_up


# --- contenders: w and figures ---


def ours(A: np.ndarray, radius: float, task: dict) -> tuple[np.ndarray, dict]:
    from cardboost.solvers import minimize_on_simplex

    method, tol = (NEWTON, 0.0) if task["contender"] == EXACT else (task["contender"], TOLERANCE)
    seconds, result = timed(lambda: minimize_on_simplex(A, radius, method=method, tol=tol))
    return result.x, {"seconds": seconds, "iterations": result.nit}


def projected_gradient(A: np.ndarray, radius: float, task: dict) -> tuple[np.ndarray, dict]:
    watch = Watch(task["give_up"])
    n = A.shape[1]
    w = np.full(n, radius / n)
    z, t, L = w, 1.0, 1.0
    value = value_and_slopes(A, A @ w)[0]
    steps = 0
    while not watch.late:
        own, _, slope = value_and_slopes(A, A @ z)
        while True:
            new = project(z - slope / L, radius)
            d = new - z
            then, _, g_new = value_and_slopes(A, A @ new)
            if then <= own + slope @ d + 0.5 * L * (d @ d) + 1e-14 * abs(own):
                break
            L *= 2.0
        steps += 1
        if then > value and z is not w:  # restart
            z, t = w, 1.0
            continue
        if g_new @ new - radius * g_new.min() <= TOLERANCE:
            return new, {"seconds": watch.seconds, "iterations": steps}
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        z, w, t, value = new + (t - 1.0) / following * (new - w), new, following, then
        L *= 0.95
    return w, {"seconds": watch.seconds, "iterations": steps}


def frank_wolfe(A: np.ndarray, radius: float, task: dict) -> tuple[np.ndarray, dict]:
    """Away steps or pairwise steps; the step by Newton's method on the line, which is cheap here."""
    watch = Watch(task["give_up"])
    pairwise = task["contender"] == PAIRWISE
    _, _, g = value_and_slopes(A, np.zeros(len(A)))
    w = np.zeros(A.shape[1])
    w[np.argmin(g)] = radius
    F = A @ w
    steps = 0
    while not watch.late:
        _, _, g = value_and_slopes(A, F)
        to = int(np.argmin(g))
        used = np.flatnonzero(w)
        away = int(used[np.argmax(g[used])])
        gap = float(g @ w - radius * g[to])
        if gap <= TOLERANCE:
            break
        if pairwise:
            D, most = A[:, to] - A[:, away], w[away]
        elif gap >= radius * g[away] - g @ w:
            D, most = radius * A[:, to] - F, 1.0
        else:
            D, most = F - radius * A[:, away], w[away] / (radius - w[away]) if w[away] < radius else 1.0
            to = -1
        step = _line(F, D, most)
        if pairwise:
            w[to] += step
            w[away] = 0.0 if step == most else w[away] - step
        elif to >= 0:
            w *= 1.0 - step
            w[to] += step * radius
        else:
            w *= 1.0 + step
            w[away] = 0.0 if step == most else w[away] - step * radius
        F = F + step * D
        steps += 1
        if steps % 200 == 0:
            w = np.maximum(w, 0.0)
            w *= radius / w.sum()
            F = A @ w
    return w, {"seconds": watch.seconds, "iterations": steps}


def _line(F: np.ndarray, D: np.ndarray, most: float) -> float:
    """The best step up to ``most``: Newton's method, with bisection where it leaves the bracket."""

    def moments(step: float) -> tuple[float, float]:
        at = F + step * D
        e = np.exp(at.min() - at)
        p = e / e.sum()
        mean = p @ D
        return mean, p @ (D - mean) ** 2

    if moments(most)[0] >= 0:
        return most
    low, high, step = 0.0, most, 0.0
    for _ in range(60):
        mean, bend = moments(step)
        low, high = (step, high) if mean > 0 else (low, step)
        following = step + mean / bend if bend > 0 else high
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - step) <= 1e-13 * most:
            return following
        step = following
    return step


def clarabel(A: np.ndarray, radius: float, task: dict) -> tuple[np.ndarray, dict]:
    import cvxpy as cp

    w = cp.Variable(A.shape[1])
    program = cp.Problem(cp.Minimize(cp.log_sum_exp(-(A @ w))), [w >= 0, cp.sum(w) == radius])
    settings = {"direct_solve_method": "faer", "max_threads": 1, "time_limit": task["give_up"]}
    program.solve(solver=cp.CLARABEL, tol_gap_abs=TOLERANCE, tol_gap_rel=TOLERANCE, **settings)
    figures = {"seconds": float(program.solver_stats.solve_time), "status": program.status}
    return np.maximum(w.value, 0.0), figures | {"iterations": int(program.solver_stats.num_iters)}


def scipy_solver(A: np.ndarray, radius: float, task: dict) -> tuple[np.ndarray, dict]:
    from scipy.optimize import LinearConstraint, minimize

    watch = Watch(task["give_up"])
    n = A.shape[1]
    reached: list[np.ndarray] = []

    def look(x: np.ndarray, *rest: object) -> bool:
        began = time.perf_counter()
        close = gap_of(A, np.maximum(x, 0.0)) <= TOLERANCE
        watch.free += time.perf_counter() - began
        if close or watch.late:
            reached.append(np.maximum(x, 0.0))
            raise StopIteration
        return False

    name = task["contender"]
    options = {"ftol": 1e-16, "maxiter": 100_000} if name == SLSQP else {"gtol": 1e-12, "maxiter": 100_000}
    constraint = (
        {"type": "eq", "fun": lambda x: x.sum() - radius, "jac": np.ones_like}
        if name == SLSQP
        else LinearConstraint(np.ones((1, n)), radius, radius)
    )
    found = minimize(
        lambda x: value_and_slopes(A, A @ x)[::2], np.full(n, radius / n), jac=True, method=name,
        bounds=[(0.0, None)] * n, constraints=constraint, callback=look, options=options,
    )  # fmt: skip
    figures = {"seconds": watch.seconds, "iterations": int(found.nit)}
    return reached[-1] if reached else np.maximum(found.x, 0.0), figures


SOLVERS = {
    NEWTON: ours,
    EXACT: ours,
    MPRP: ours,
    GRADIENT: projected_gradient,
    AWAY: frank_wolfe,
    PAIRWISE: frank_wolfe,
    CLARABEL: clarabel,
    SLSQP: scipy_solver,
    TRUST: scipy_solver,
}


def measure(task: dict) -> dict:
    A = l1_solver.stump_matrix(task["quantiles"])
    solve, radius = SOLVERS[task["contender"]], task["radius"]
    solve(np.asfortranarray(A[:, :20]), radius, task | {"give_up": 1.0})  # warm-up
    runs, spent = [], 0.0
    while len(runs) < task["repeats"] or spent < 1.0:  # short solves more often: their noise is larger
        w, figures = solve(A, radius, task)
        residual = residual_of(A, w, radius)
        w = w * (radius / w.sum())
        value = value_and_slopes(A, A @ w)[0]
        figures |= {"value": value, "gap": gap_of(A, w), "support": int(np.count_nonzero(w))}
        figures["residual"] = residual
        figures["reached"] = figures["gap"] <= 1.01 * TOLERANCE or figures.get("status") == "optimal"
        runs.append(figures)
        spent += figures["seconds"]
        if figures["seconds"] > 5:
            break
    return min(runs, key=lambda own: (not own["reached"], own["seconds"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--radius", type=float, nargs="+", default=[2.0, 10.0, 50.0])
    parser.add_argument("--repeats", type=int, default=5, help="the best of at least so many solves counts")
    parser.add_argument("--give-up", type=float, default=60.0, help="seconds for each peer")
    parser.add_argument("--only", nargs="+", choices=tuple(SOLVERS), default=list(SOLVERS))
    parser.add_argument("--quick", action="store_true", help="a small matrix: shows that the script runs")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    require({"cardboost": "install it with `pip install .`."})
    if CLARABEL in options.only:
        remedy = "install the peers with `pip install '.[bench]'`, or leave it out with --only."
        require({"cvxpy": remedy, "clarabel": remedy})
    facts = machine(PACKAGES)
    print_machine(facts)
    quantiles = 5 if options.quick else 31
    A = l1_solver.stump_matrix(quantiles)
    print(f"{A.shape[0]} x {A.shape[1]} stump matrix, gap {TOLERANCE:g}, best of {options.repeats}")
    rows, goals, measured = [], [], []
    for radius in options.radius:
        found = {}
        for name in options.only:
            print(f"  radius {radius:g}: {name} ...", file=sys.stderr)
            task = {"contender": name, "radius": radius, "quantiles": quantiles}
            task |= {"repeats": options.repeats, "give_up": options.give_up}
            found[name] = run_in_own_process(__file__, task, 1)
        base = found.get(NEWTON, {}).get("seconds")
        for name, own in found.items():
            mark = "" if own["reached"] else ">"
            times = f"{mark}{own['seconds'] / base:.1f}" if base else "-"
            line = [f"{radius:g}", name, f"{mark}{own['seconds']:.4f}", times, str(own["iterations"])]
            line += [
                f"{own['gap']:.1e}",
                f"{own['residual']:.1e}",
                f"{own['value']:.9f}",
                str(own["support"]),
            ]
            rows.append(line)
        measured.append({"radius": radius, "results": found})
        goals += judge(radius, found)
    print("\n'>' marks what was stopped short of the gap")
    header = ["R", "contender", "seconds", "/ newton", "iterations", "gap", "residual", "value", "support"]
    print_table(header, rows)
    report_goals(goals)
    write_json(options.json, {"machine": facts, "quick": options.quick, "results": measured}, goals)


def judge(radius: float, found: dict[str, dict]) -> list[Goal]:
    goals = []
    peers = [own["seconds"] for name, own in found.items() if name not in (NEWTON, EXACT, MPRP)]
    if NEWTON in found and peers:
        own = found[NEWTON]["seconds"] if found[NEWTON]["reached"] else float("inf")
        what = f"R = {radius:g}: the fastest other / newton"
        goals.append(Goal(what, min(peers) / own, SPEED_GOAL, at_most=False))
    if EXACT in found:
        what = f"R = {radius:g}: KKT residual with tol=0"
        goals.append(Goal(what, found[EXACT]["residual"], RESIDUAL_GOAL))
    if MPRP in found:
        goals.append(Goal(f"R = {radius:g}: gap of mprp", found[MPRP]["gap"], 1.01 * TOLERANCE))
        if PAIRWISE in found:
            ratio = found[PAIRWISE]["seconds"] / found[MPRP]["seconds"]
            goals.append(Goal(f"R = {radius:g}: pairwise / mprp", ratio, 1.0, at_most=False, strict=True))
    return goals


if __name__ == "__main__":
    run_benchmark(main, measure)

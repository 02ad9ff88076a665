"""Has anything become slower? Two installed versions of cardboost on the same work, one after the other.

    python benchmarks/versions.py --old OTHER_ENVIRONMENT/bin/python

Every workload runs in a process of its own, in turns: old, new, old, new. The fastest run of each counts, so
that other programs on the machine count as little as possible. All data are generated.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from _harness import (
    Goal,
    machine,
    print_machine,
    print_table,
    report_goals,
    run_benchmark,
    run_in_own_process,
)
from _harness import write_json as keep

MOST = 1.05  # of the old version's time


def table(rows: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal features, of which five matter, and two classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    score = X[:, 0] + np.abs(X[:, 1]) - (X[:, 2] > 0.5) * X[:, 3] + 0.5 * X[:, 4] ** 2
    return X, score + rng.normal(size=rows) > 0.8


def signs(rows: int, columns: int) -> np.ndarray:
    """Margins of weak columns: each is right on 55 to 70 % of the rows."""
    rng = np.random.default_rng(1)
    return np.where(rng.random((rows, columns)) < rng.uniform(0.55, 0.7, columns), 1.0, -1.0)


def boosted(rows: int, features: int):
    from cardboost import CardBoostClassifier

    X, y = table(rows, features)
    model = CardBoostClassifier(max_terms=None, l1=1e-6, l2=0.0, tol=1e-9, max_iter=100, n_jobs=2)
    return lambda: model.fit(X, y)


def card(rows: int, features: int):
    from cardboost import CardBoostClassifier

    X, y = table(rows, features)
    return lambda: CardBoostClassifier(l2=0.01, n_jobs=2).fit(X, y)


def stagewise(rows: int, features: int):
    from cardboost import StagewiseClassifier

    X, y = table(rows, features)
    return lambda: StagewiseClassifier(max_iter=200, n_jobs=2).fit(X, y)


def stagewise_numbers(rows: int, features: int):
    from cardboost import StagewiseRegressor

    X, y = table(rows, features)
    return lambda: StagewiseRegressor(max_iter=100, n_jobs=2).fit(X, y + X[:, 0])


def soft_margin(rows: int, features: int):
    from cardboost import SoftMarginClassifier

    X, y = table(rows, features)
    return lambda: SoftMarginClassifier(n_jobs=2).fit(X, y)


def l1_solver(rows: int, columns: int):
    from cardboost.solvers import minimize_l1

    A = signs(rows, columns)
    return lambda: minimize_l1(A, 1e-3)


def simplex_solver(rows: int, columns: int):
    from cardboost.solvers import minimize_on_simplex

    A = signs(rows, columns)
    return lambda: minimize_on_simplex(A, 10.0)


def selection(rows: int, columns: int):
    from cardboost.solvers import select_columns

    A = signs(rows, columns)
    return lambda: select_columns(
        A, max_terms=6, l2=0.01, max_weight=2.0, loss="logistic", method="exact", max_nodes=2000
    )


def tabu(rows: int, columns: int):
    from cardboost.solvers import select_columns

    A = signs(rows, columns)
    return lambda: select_columns(A, l0=2e-3, max_weight=2.0, method="tabu")


def neural(rows: int, features: int):
    from cardboost import NeuralBoostClassifier

    X, y = table(rows, features)
    model = NeuralBoostClassifier(random_state=0, n_jobs=2)
    rounds = "max_iter" if "max_iter" in model.get_params() else "n_estimators"  # its name in old versions
    return lambda: model.set_params(**{rounds: 10}).fit(X, y)


def logistic(rows: int, features: int, l1: float = 0.0):
    from cardboost import SparseLogisticRegression

    X, y = table(rows, features)
    return lambda: SparseLogisticRegression(l1=l1, tol=1e-6).fit(X, y)


def sparse_logistic(rows: int, features: int):
    return logistic(rows, features, l1=3e-3)


def verification(rows: int, features: int):
    from cardboost import CardBoostClassifier

    X, y = table(rows, features)
    certificate = CardBoostClassifier(l2=0.01).fit(X, y).certificate_
    return lambda: certificate.verify(X, y)


def prediction(rows: int, features: int):
    from cardboost import CardBoostClassifier

    X, y = table(rows, features)
    model = CardBoostClassifier(l2=0.01).fit(X[:1000], y[:1000])
    return lambda: model.predict_proba(X)


#: workload, and the shapes that it is measured on
WORK = {
    boosted: [(100_000, 100), (5_000, 30)],
    card: [(50_000, 20), (1_000, 20)],
    stagewise: [(100_000, 50), (2_000, 20)],
    stagewise_numbers: [(20_000, 20)],
    soft_margin: [(5_000, 20)],
    l1_solver: [(5_000, 400)],
    simplex_solver: [(5_000, 400)],
    selection: [(3_000, 40), (500, 100)],
    tabu: [(3_000, 60)],
    neural: [(5_000, 20)],
    logistic: [(20_000, 200), (5_000, 50), (200_000, 30)],
    sparse_logistic: [(20_000, 200), (1_000, 2_000)],
    verification: [(20_000, 20)],
    prediction: [(200_000, 20)],
}
BY_NAME = {work.__name__: work for work in WORK}


def measure(task: dict) -> dict:
    """The fastest of several runs: at least two, and as many as fit into a second and a half."""
    run = BY_NAME[task["work"]](*task["shape"])
    times: list[float] = []
    while len(times) < 2 or sum(times) < 1.5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return {"seconds": min(times)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", required=True, metavar="PYTHON", help="interpreter that has the old version")
    parser.add_argument("--turns", type=int, default=4, help="processes of each version")
    parser.add_argument("--only", nargs="+", choices=tuple(BY_NAME), default=list(BY_NAME), metavar="WORK")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    facts = machine(("numpy", "scipy", "scikit-learn"))
    print_machine(facts)
    rows, goals = [], []
    for name in options.only:
        for shape in WORK[BY_NAME[name]]:
            task = {"contender": name, "work": name, "shape": shape}
            best = {"old": np.inf, "new": np.inf}
            for _ in range(options.turns):
                for version, python in (("old", options.old), ("new", sys.executable)):
                    outcome = run_in_own_process(__file__, task, 2, python)
                    best[version] = min(best[version], outcome["seconds"])
            what = f"{name} {shape[0]:,} x {shape[1]:,}"
            ratio = best["new"] / best["old"]
            rows.append([what, f"{best['old']:.4f}", f"{best['new']:.4f}", f"{ratio:.3f}"])
            goals.append(Goal(f"{what}, new / old", ratio, MOST))
            print("  ".join(rows[-1]), flush=True)
    print()
    print_table(["workload", "old, s", "new, s", "new / old"], rows)
    report_goals(goals)
    keep(options.json, {"machine": facts, "rows": rows}, goals)


if __name__ == "__main__":
    run_benchmark(main, measure)

"""How fast are 500 rounds of AdaBoost with stumps, and do they end at scikit-learn's training error?

Peer: scikit-learn's AdaBoostClassifier with trees of depth 1, timed over --peer-rounds rounds and
extrapolated in proportion (every round costs the same; --peer-rounds 500 measures all of them). The training
errors are compared after as many rounds as the peer has made. Binning is inside our time. Both receive the
same C-ordered float64 array, each in a process of its own with the same number of threads.

    python benchmarks/stagewise.py --threads 1
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from _harness import (
    Goal,
    machine,
    print_machine,
    print_table,
    report_goals,
    run_benchmark,
    run_in_own_process,
    timed,
    write_json,
)

SEED = 0
OURS, PEER = "cardboost", "AdaBoostClassifier"
PACKAGES = ("cardboost", "numpy", "scikit-learn")
SPEED_GOAL = 100.0
ERROR_GOAL = 0.2  # points (hundredths) of training error


def ours(rounds: int, threads: int):
    from cardboost import StagewiseClassifier

    return StagewiseClassifier(max_iter=rounds, fit_intercept=False, tol=0.0, n_jobs=threads)


def adaboost(rounds: int, threads: int):
    from sklearn.ensemble import AdaBoostClassifier

    return AdaBoostClassifier(n_estimators=rounds, random_state=SEED)


CONTENDERS = {OURS: ours, PEER: adaboost}


def measure(task: dict) -> dict:
    """Best time of some fits, and the training error after some of the rounds."""
    X, y = np.load(task["X"]), np.load(task["y"])
    make = CONTENDERS[task["contender"]]
    both = np.r_[np.flatnonzero(y == 0)[:200], np.flatnonzero(y == 1)[:200]]
    make(2, task["threads"]).fit(X[both], y[both])  # imports, thread pools
    fits = [timed(lambda: make(task["rounds"], task["threads"]).fit(X, y)) for _ in range(task["repeats"])]
    seconds, model = min(fits, key=lambda fit: fit[0])
    errors = {}
    for k, labels in enumerate(model.staged_predict(X), 1):
        if k in task["at"]:
            errors[str(k)] = float(np.mean(labels != y))
    return {"seconds": seconds, "errors": errors, "rounds": k}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many of our fits counts")
    parser.add_argument("--peer-rounds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that the script runs")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    from sklearn.datasets import make_classification

    rows, features, rounds = (5_000, 20, 50) if options.quick else (100_000, 100, 500)
    facts = machine(PACKAGES)
    print_machine(facts)
    X, y = make_classification(rows, features, n_informative=20, n_redundant=20 if features > 40 else 0,
                               flip_y=0.05, random_state=SEED)  # fmt: skip
    peer_rounds = min(options.peer_rounds, rounds)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {"X": str(Path(folder) / "X.npy"), "y": str(Path(folder) / "y.npy")}
        np.save(files["X"], np.ascontiguousarray(X))
        np.save(files["y"], y)
        for name, own_rounds, repeats in ((OURS, rounds, options.repeats), (PEER, peer_rounds, 1)):
            print(f"  running {name}, {own_rounds} rounds ...", file=sys.stderr, flush=True)
            task = files | {
                "contender": name,
                "rounds": own_rounds,
                "threads": options.threads,
                "repeats": repeats,
                "at": sorted({peer_rounds, rounds}),
            }
            results[name] = run_in_own_process(__file__, task, options.threads)
    own, peer = results[OURS], results[PEER]
    extrapolated = peer["seconds"] * rounds / peer["rounds"]
    at = str(peer["rounds"])
    print(f"\n{rows:,} x {features}, {rounds} rounds, {options.threads} threads")
    table = [
        [OURS, f"{own['seconds']:.2f}", "1", f"{100 * own['errors'][at]:.2f}",
         f"{100 * own['errors'].get(str(rounds), float('nan')):.2f}"],
        [f"{PEER} ({peer['rounds']} rounds measured)", f"{extrapolated:.1f}",
         f"{extrapolated / own['seconds']:.0f}", f"{100 * peer['errors'][at]:.2f}",
         f"{100 * peer['errors'].get(str(rounds), float('nan')):.2f}"],
    ]  # fmt: skip
    header = ["contender", "seconds", "x ours", f"% wrong after {at}", f"after {rounds}"]
    print_table(header, table)
    goals = [
        Goal("time of AdaBoostClassifier / ours", extrapolated / own["seconds"], SPEED_GOAL, at_most=False),
        Goal(
            f"our training error less the peer's after {at} rounds, points",
            100 * (own["errors"][at] - peer["errors"][at]),
            ERROR_GOAL,
        ),
    ]
    report_goals(goals)
    write_json(options.json, {"machine": facts, "results": results}, goals)


if __name__ == "__main__":
    run_benchmark(main, measure)

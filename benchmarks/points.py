"""How good are cards in whole points? Test log loss of 5, 10 and 15 terms against FasterRisk.

    python benchmarks/points.py --data DIR --fasterrisk-python PATH      # DIR/ida holds the twelve sets

Twelve sets, five splits each, as in benchmarks/cards.py, which also says how cardboost's card is fitted
(the price l2 by cross-validation on the training rows) and which stump features FasterRisk gets. Both have
the same number of terms, and a term has at most so many points (--points, FasterRisk's default is 5), with
either sign. cardboost's card is `scorecard(points)` of the fitted classifier; FasterRisk's is the best of
its pool on the training rows.

Goal for every size: a lower test log loss, in the mean over sets and splits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import cards
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

OURS, CONTINUOUS, RISK = "cardboost in points", "cardboost, any weights", "FasterRisk"
PACKAGES = ("cardboost", "numpy", "scikit-learn")


# --- contenders: scores (log odds) of the test rows for every size ---


def ours(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, sizes: list[int], most: int) -> dict:
    found: dict[str, dict[int, list[float]]] = {OURS: {}, CONTINUOUS: {}}
    cost, seconds = {}, 0.0
    for size in sizes:
        model = cards.card(X, y, size)
        own, card = timed(lambda model=model: model.scorecard(most))
        seconds += own
        assert card.n_terms <= size
        assert max(card.ensemble.term_points(), default=0) <= most
        found[OURS][size] = card.log_odds(card.total(X_test)).tolist()
        found[CONTINUOUS][size] = model.decision_function(X_test).tolist()
        cost[size] = card.certificate.points_cost
    return {"scores": found, "cost": cost, "seconds in points": seconds}


def measure(task: dict) -> dict:
    warnings.simplefilter("ignore")
    with np.load(task["file"]) as held:
        X, y, X_test = held["X"].astype(np.float64), held["y"], held["X_test"].astype(np.float64)
    if task["contender"] == OURS:
        return ours(X, y, X_test, task["sizes"], task["most"])
    seconds, found = timed(lambda: cards.risk_scores(X, y, X_test, task["sizes"], task["most"]))
    return {"scores": {RISK: {k: s.tolist() for k, s in found["scores"][""].items()}}, "seconds": seconds}


# --- the parent ---


def run(who: str, name: str, seed: int, options: argparse.Namespace, folder: str) -> dict:
    """Scores of one contender on one split, all sizes, as mean log losses."""
    X, X_test, y, y_test = cards.split(options.data, name, seed)
    python, kept = sys.executable, None
    if who == RISK:
        X, X_test = cards.stump_features(X, X_test)
        python = options.fasterrisk_python
        if options.keep:
            own = repr(options.sizes) + ("" if options.points == cards.RISK_POINTS else f" {options.points}")
            key = hashlib.sha256(X.tobytes() + X_test.tobytes() + y.tobytes() + own.encode())
            kept = Path(options.keep) / f"{name}-{seed}-{key.hexdigest()[:16]}.json"
    if kept is not None and kept.exists():
        found = json.loads(kept.read_text())
        if RISK in found:  # as benchmarks/cards.py keeps it
            found = {"scores": {RISK: found[RISK]["scores"][""]}, "seconds": found[RISK]["seconds"]}
    else:
        file = str(Path(folder) / f"{who}-{name}-{seed}.npz")
        np.savez(file, X=X, y=y, X_test=X_test)
        task = {"contender": who, "file": file, "sizes": options.sizes, "most": options.points}
        found = run_in_own_process(__file__, task, 1, python)
        os.remove(file)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(found))
    print(f"  {name}, split {seed}: {who} done", file=sys.stderr)
    losses = {
        contender: {int(size): cards.loss_of(y_test, np.array(scores)) for size, scores in by_size.items()}
        for contender, by_size in found["scores"].items()
    }
    return {"losses": losses, "cost": found.get("cost"), "seconds": found.get("seconds in points")}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="DIR", default=os.environ.get("CARDBOOST_DATA"))
    parser.add_argument("--sets", nargs="+", metavar="NAME", default=list(cards.SETS))
    parser.add_argument("--sizes", nargs="+", type=int, metavar="TERMS", default=list(cards.SIZES))
    parser.add_argument("--splits", type=int, nargs="+", metavar="SEED", default=[0, 1, 2, 3, 4])
    parser.add_argument("--points", type=int, default=cards.RISK_POINTS, help="of a term at most")
    parser.add_argument("--threads", type=int, default=2, help="so many contenders at once, one thread each")
    parser.add_argument("--fasterrisk-python", metavar="PATH", help="a Python that can import fasterrisk")
    parser.add_argument("--keep", metavar="DIR", help="keep FasterRisk's scores there and use those kept")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    if options.data is None or not (Path(options.data) / "ida").is_dir():
        sys.exit("The twelve sets are needed: give the folder that holds ida/ with --data or CARDBOOST_DATA.")
    require({"cardboost": "install it with `pip install .`."})
    contenders = [OURS]
    if options.fasterrisk_python is None:
        print("FasterRisk is left out: name a Python that has it with --fasterrisk-python.")
    else:
        contenders.append(RISK)
    facts = machine(PACKAGES)
    print_machine(facts)
    jobs = [(who, name, seed) for seed in options.splits for name in options.sets for who in contenders]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.threads) as pool:
        found = dict(zip(jobs, pool.map(lambda job: run(*job, options, folder), jobs), strict=True))
    names = [OURS, CONTINUOUS, *contenders[1:]]
    means = {
        (name, size, who): float(
            np.mean(
                [
                    found[RISK if who == RISK else OURS, name, seed]["losses"][who][size]
                    for seed in options.splits
                ]
            )
        )
        for name in options.sets
        for size in options.sizes
        for who in names
    }
    goals = report(means, names, options)
    own = [result for (who, _, _), result in found.items() if who == OURS]
    cost = [share for result in own for share in result["cost"].values()]
    median, largest, seconds = np.median(cost), max(cost), np.mean([result["seconds"] for result in own])
    print(
        f"\nWhole points give up {100 * median:.2f} % of the improvement on the training rows in the median, "
        f"{100 * largest:.2f} % at most,\nand take {seconds:.2f} s for {len(options.sizes)} sizes."
    )
    report_goals(goals, "Goals: mean test log loss")
    content = {"machine": facts, "points": options.points, "means": [[*key, v] for key, v in means.items()]}
    write_json(options.json, content, goals)


def report(means: dict, names: list[str], options: argparse.Namespace) -> list[Goal]:
    rows, goals = [], []
    for size in options.sizes:
        for name in options.sets:
            rows.append([f"{name}, {size} terms"] + [f"{means[name, size, who]:.4f}" for who in names])
    print(f"\nTest log loss, at most {options.points} points to a term, mean over splits {options.splits}")
    print_table(["data", *names], rows)
    rows = []
    for size in options.sizes:
        whole = {who: float(np.mean([means[name, size, who] for name in options.sets])) for who in names}
        rows.append([f"{size} terms"] + [f"{whole[who]:.4f}" for who in names])
        if RISK in names:
            won = sum(means[name, size, OURS] < means[name, size, RISK] for name in options.sets)
            rows[-1].append(f"{won} of {len(options.sets)}")
            goals.append(Goal(f"{size} terms", whole[OURS], whole[RISK], strict=True))
    print("\nMean over the sets")
    print_table(["size", *names, *(["better than FasterRisk on"] if RISK in names else [])], rows)
    return goals


if __name__ == "__main__":
    run_benchmark(main, measure)

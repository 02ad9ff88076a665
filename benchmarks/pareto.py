"""How long a front takes: sizes 1 to 20 on the adult data (48,842 x 14, mixed), five folds, all proofs.

    python benchmarks/pareto.py --data DIR        # DIR holds adult.csv.gz

Beside it, what the same scores cost with scikit-learn's own loop: a fit for every fold and size by
cross_validate, here for a few sizes with the selector "polish", which makes no exact search either. Its
scores are those that a front should not fall behind.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

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

PACKAGES = ("cardboost", "scikit-learn", "numpy", "pandas", "joblib")
SECONDS = 60.0
PLAIN_SIZES = (2, 5, 10, 20)
JOBS = (1, 2)


def load(folder: str):
    import pandas as pd

    frame = pd.read_csv(Path(folder) / "adult.csv.gz", na_values="?", skipinitialspace=True)
    frame = frame.drop(columns="part")
    y = (frame.pop("y") == 1).to_numpy().astype(int)
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    frame[text] = frame[text].astype("category")
    return frame, y


def front(X, y, jobs: int) -> dict:
    from cardboost import CardBoostClassifier, pareto_front

    model = CardBoostClassifier(l2=0.01)

    begun = time.process_time()
    seconds, found = timed(lambda: pareto_front(X, y, estimator=model, random_state=0, n_jobs=jobs))
    processor = time.process_time() - begun
    writing, text = timed(found.to_json)
    table = found.table()
    return {
        "seconds": seconds,
        "processor": processor,
        "rows": {row["terms"]: [row["mean"], row["standard_error"]] for row in table},
        "picked": {row["terms"]: row["picked"] for row in table if row["picked"]},
        "least_guarantee": min(row["guarantee"] for row in table),
        "optimal": sum(row["status"] == "optimal" for row in table),
        "least_guarantee_candidates": min(row["guarantee_candidates"] for row in table),
        "megabytes": len(text) / 1e6,
        "writing": writing,
    }


def plain_loop(X, y) -> dict:
    """The folds of pareto_front with random_state=0, one fit for each of them and every size."""
    import numpy as np
    from sklearn.model_selection import StratifiedKFold, cross_validate

    from cardboost import CardBoostClassifier

    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)

    def every_size():
        rows = {}
        for size in PLAIN_SIZES:
            estimator = CardBoostClassifier(max_terms=size, l2=0.01, selector="polish")
            scores = cross_validate(estimator, X, y, cv=folds, scoring="neg_log_loss")["test_score"]
            rows[size] = [float(scores.mean()), float(scores.std(ddof=1) / np.sqrt(5))]
        return rows

    seconds, rows = timed(every_size)
    return {"seconds": seconds, "rows": rows}


def measure(task: dict) -> dict:
    X, y = load(task["data"])
    return plain_loop(X, y) if task["jobs"] is None else front(X, y, task["jobs"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("CARDBOOST_DATA"), help="folder with adult.csv.gz")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    if options.data is None or not (Path(options.data) / "adult.csv.gz").is_file():
        sys.exit("adult.csv.gz is needed: give its folder with --data DIR or CARDBOOST_DATA.")
    require({"pandas": "pip install pandas."})
    facts = machine(PACKAGES)
    print_machine(facts)
    names = {f"pareto_front, {n} job{'s' if n > 1 else ''}": n for n in JOBS}
    names |= {f"cross_validate, {len(PLAIN_SIZES)} sizes": None}
    results = {}
    for name, jobs in names.items():
        print(f"  {name} ...", file=sys.stderr)
        task = {"contender": name, "data": options.data, "jobs": jobs}
        # jobs share the cores: each has its part of the threads
        threads = max(1, options.threads // (jobs or 1))
        results[name] = run_in_own_process(__file__, task, threads)
    print_table(
        ["what", *(f"{size} terms" for size in PLAIN_SIZES), "seconds"],
        [
            [name, *(f"{r['rows'][str(size)][0]:.4f}" for size in PLAIN_SIZES), f"{r['seconds']:.1f}"]
            for name, r in results.items()
        ],
    )
    ours = [r for name, r in results.items() if names[name] is not None]
    own, plain = ours[0], results[f"cross_validate, {len(PLAIN_SIZES)} sizes"]
    picked = ", ".join(f"{rule}: {size} terms" for size, rule in own["picked"].items())
    print(
        f"\npicked: {picked}; proved optimal over the candidates: {own['optimal']} of {len(own['rows'])}, "
        f"least guarantee {own['least_guarantee']:.1%} "
        f"(over the candidates {own['least_guarantee_candidates']:.1%}); "
        f"{own['megabytes']:.1f} MB of JSON in {own['writing']:.1f} s; one job took "
        f"{own['processor']:.1f} s of processor time"
    )
    goals = [Goal(f"{name}: seconds", results[name]["seconds"], SECONDS) for name, n in names.items() if n]
    for size in PLAIN_SIZES:
        mean, error = plain["rows"][str(size)]
        lag = mean - own["rows"][str(size)][0]
        goals.append(
            Goal(f"{size} terms: score below cross_validate's, in standard errors", lag / error, 0.5)
        )
    same = float(len({str(r["rows"]) for r in ours}))
    goals.append(Goal("different fronts for different numbers of jobs", same, 1.0))
    report_goals(goals)
    write_json(options.json, {"machine": facts, "results": results}, goals)


if __name__ == "__main__":
    run_benchmark(main, measure)

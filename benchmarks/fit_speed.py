"""How fast are 100 totally corrective stumps, and how good is the loss they reach?

Peers: LightGBM, XGBoost and HistGradientBoosting with two leaves, at learning rates 0.1 and 1.0, 255 bins and
otherwise their defaults. Binning is inside every time. All receive the same C-ordered float64 array, which
exists before the clock starts.

    python benchmarks/fit_speed.py --data DIR        # DIR holds covtype.npz; without it that set is left out
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from _harness import (
    Goal,
    forget_peak_memory,
    machine,
    memory_status,
    print_machine,
    print_table,
    report_goals,
    require,
    run_benchmark,
    run_in_own_process,
    timed,
    write_json,
)

SEED = 0
INFORMATIVE = 20
BINS = 255
LEARNING_RATES = (0.1, 1.0)
OURS = "cardboost"
PEERS = ("LightGBM", "XGBoost", "HistGradientBoosting")
PACKAGES = ("cardboost", "numpy", "scikit-learn", "lightgbm", "xgboost-cpu", "xgboost")

TIME_GOAL = 0.5  # our time / the fastest peer's
TIME_TO_PEER_LOSS_GOAL = 0.2  # our time to the best peer's loss / the fastest peer's time
DOUBLING_GOAL = 2.2
MEMORY_FACTOR, MEMORY_ALLOWANCE = 1.5, 100e6  # times the binned matrix, plus bytes


# --- contenders, run in their own process: (fit(X, y) -> model, probability(model, X)) ---


def ours(rounds: int, threads: int, learning_rate: float | None):
    from cardboost import CardBoostClassifier

    def fit(X, y):
        model = CardBoostClassifier(
            max_terms=None, l0=0.0, l1=1e-6, l2=0.0, max_iter=rounds, tol=0.0, max_bins=BINS, n_jobs=threads
        )
        return model.fit(X, y)

    return fit, lambda model, X: model.predict_proba(X)[:, 1]


def lightgbm(rounds: int, threads: int, learning_rate: float | None):
    import lightgbm as lgb

    parameters = {
        "objective": "binary",
        "num_leaves": 2,
        "learning_rate": learning_rate,
        "max_bin": BINS,
        "num_threads": threads,
        "verbosity": -1,
    }

    def fit(X, y):
        return lgb.train(parameters, lgb.Dataset(X, y, params=parameters), num_boost_round=rounds)

    return fit, lambda model, X: model.predict(X)


def xgboost(rounds: int, threads: int, learning_rate: float | None):
    import xgboost as xgb
    from scipy.special import expit

    parameters = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": 1,
        "learning_rate": learning_rate,
        "max_bin": BINS,
        "nthread": threads,
        "verbosity": 0,
    }

    def fit(X, y):  # a DMatrix is binned inside `train`
        return xgb.train(parameters, xgb.DMatrix(X, y, nthread=threads), num_boost_round=rounds)

    def probability(model, X):  # from the score in float64: rounding to float32 shall not count against it
        return expit(model.predict(xgb.DMatrix(X, nthread=threads), output_margin=True).astype(np.float64))

    return fit, probability


def hist_gradient_boosting(rounds: int, threads: int, learning_rate: float | None):
    from sklearn.ensemble import HistGradientBoostingClassifier

    def fit(X, y):  # its threads are those of OMP_NUM_THREADS
        model = HistGradientBoostingClassifier(
            max_leaf_nodes=2,
            max_iter=rounds,
            learning_rate=learning_rate,
            max_bins=BINS,
            early_stopping=False,
        )
        return model.fit(X, y)

    return fit, lambda model, X: model.predict_proba(X)[:, 1]


CONTENDERS = {
    OURS: ours,
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "HistGradientBoosting": hist_gradient_boosting,
}


def training_log_loss(y: np.ndarray, probability: np.ndarray) -> float:
    """Mean log loss, the same code for every contender."""
    of_true_class = np.where(y == 1, probability, 1.0 - probability)
    return float(-np.log(np.maximum(of_true_class, 1e-15)).mean())


def measure(task: dict) -> dict:
    """One contender on one data set: best time, log loss, peak memory of the first fit, our trace."""
    X, y = np.load(task["X"]), np.load(task["y"])
    fit, probability = CONTENDERS[task["contender"]](task["rounds"], task["threads"], task["learning_rate"])
    both_classes = np.r_[np.flatnonzero(y == 0)[:200], np.flatnonzero(y == 1)[:200]]
    fit(X[both_classes], y[both_classes])  # warm-up: imports, thread pools

    forget_peak_memory()
    resident_before = memory_status("VmRSS")
    best_seconds, best_model = timed(lambda: fit(X, y))
    peak = memory_status("VmHWM")
    for _ in range(task["repeats"] - 1):
        seconds, model = timed(lambda: fit(X, y))
        if seconds < best_seconds:
            best_seconds, best_model = seconds, model
    trace = [
        {"objective": float(step.objective), "seconds": float(step.seconds), "n_columns": int(step.n_columns)}
        for step in getattr(best_model, "trace_", ())
    ]
    return {
        "seconds": best_seconds,
        "log_loss": training_log_loss(y, probability(best_model, X)),
        "memory_above_input": None if peak is None or resident_before is None else peak - resident_before,
        "trace": trace,
    }


# --- the parent ---


def synthetic(rows: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import make_classification

    informative = min(INFORMATIVE, features // 2)
    X, y = make_classification(
        n_samples=rows, n_features=features, n_informative=informative, random_state=SEED
    )
    return np.ascontiguousarray(X, dtype=np.float64), y.astype(np.int64)


def covtype(folder: str | None, rows: int | None) -> tuple[np.ndarray, np.ndarray] | None:
    file = None if folder is None else Path(folder) / "covtype.npz"
    if file is None or not file.is_file():
        print("covtype is left out: no covtype.npz in the folder of --data DIR or CARDBOOST_DATA.")
        return None
    with np.load(file) as content:
        X, y = content["X"], content["y"]
    return np.ascontiguousarray(X[:rows], dtype=np.float64), (y[:rows] == 1).astype(np.int64)


def run_contenders(data, contenders: list[tuple[str, float | None]], options) -> list[dict]:
    """Measure each contender on (X, y), one process after the other."""
    X, y = data
    results = []
    with tempfile.TemporaryDirectory() as folder:
        files = {"X": str(Path(folder) / "X.npy"), "y": str(Path(folder) / "y.npy")}
        np.save(files["X"], X)
        np.save(files["y"], y)
        for name, learning_rate in contenders:
            task = files | {
                "contender": name,
                "learning_rate": learning_rate,
                "rounds": options.rounds,
                "threads": options.threads,
                "repeats": options.repeats,
            }
            label = name if learning_rate is None else f"{name}, rate {learning_rate}"
            print(f"  running {label} ...", file=sys.stderr, flush=True)
            outcome = run_in_own_process(__file__, task, options.threads)
            results.append({"contender": name, "label": label} | outcome)
    return results


def compare(name: str, shape: tuple[int, int], results: list[dict]) -> list[Goal]:
    """Print the table of one data set and return the goals that can be judged from it."""
    rows, features = shape
    peers = [result for result in results if result["contender"] != OURS]
    fastest = min((peer["seconds"] for peer in peers), default=None)
    table = []
    for result in results:
        memory = result["memory_above_input"]
        table.append(
            [
                result["label"],
                f"{result['seconds']:.3f}",
                f"{result['seconds'] / fastest:.2f}" if fastest else "-",
                f"{result['log_loss']:.6f}",
                "-" if memory is None else f"{memory / 1e6:.0f}",
            ]
        )
    print(f"\n{name}, {rows:,} x {features}")
    print_table(["contender", "seconds", "x fastest peer", "log loss", "peak MB above input"], table)
    own = next((result for result in results if result["contender"] == OURS), None)
    if own is None:
        return []

    goals = []
    if peers:
        best_loss = min(peer["log_loss"] for peer in peers)
        goals.append(Goal(f"{name}: our time / fastest peer's", own["seconds"] / fastest, TIME_GOAL))
        goals.append(
            Goal(f"{name}: our log loss / best peer's", own["log_loss"] / best_loss, 1.0, strict=True)
        )
        reached = next((s["seconds"] for s in own["trace"] if s["objective"] <= best_loss), float("inf"))
        what = f"{name}: our time to the best peer's log loss / fastest peer's time"
        goals.append(Goal(what, reached / fastest, TIME_TO_PEER_LOSS_GOAL))
    if own["memory_above_input"] is not None:
        limit = MEMORY_FACTOR * rows * features + MEMORY_ALLOWANCE
        what = f"{name}: our peak memory above the input, MB"
        goals.append(Goal(what, own["memory_above_input"] / 1e6, limit / 1e6))
    return goals


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("CARDBOOST_DATA"), help="folder with covtype.npz")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many fits counts")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that the script runs")
    parser.add_argument("--only", choices=("ours", "peers"))
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    options.rounds = 20 if options.quick else 100
    return options


def main() -> None:
    options = parse_arguments()
    contenders = []
    if options.only != "peers":
        require({"cardboost": "install it with `pip install .`, or measure the others with --only peers."})
        contenders.append((OURS, None))
    if options.only != "ours":
        remedy = "install the peers with `pip install '.[bench]'`, or use --only ours."
        require({"lightgbm": remedy, "xgboost": remedy})
        contenders += [(name, rate) for name in PEERS for rate in LEARNING_RATES]

    facts = machine(PACKAGES)
    print_machine(facts)
    print(f"{options.rounds} stumps, {options.threads} threads, best of {options.repeats}, seed {SEED}")
    rows, features = (5_000, 20) if options.quick else (100_000, 100)
    made, forest = synthetic(rows, features), covtype(options.data, 20_000 if options.quick else None)
    goals, measured = [], {}
    sets = {"make_classification": made} | ({} if forest is None else {"covtype": forest})
    for name, data in sets.items():
        measured[name] = run_contenders(data, contenders, options)
        goals += compare(name, data[0].shape, measured[name])

    if options.only != "peers":
        base = measured["make_classification"][0]["seconds"]
        doubled = {"rows": (2 * rows, features), "features": (rows, 2 * features)}
        for what, size in doubled.items():
            name = f"make_classification, {what} doubled"
            measured[name] = run_contenders(synthetic(*size), [(OURS, None)], options)
            compare(name, size, measured[name])
            goals.append(Goal(f"time, twice the {what}", measured[name][0]["seconds"] / base, DOUBLING_GOAL))
    report_goals(goals)
    settings = {
        "rounds": options.rounds,
        "threads": options.threads,
        "repeats": options.repeats,
        "seed": SEED,
    }
    content = {"machine": facts, "settings": settings, "quick": options.quick, "results": measured}
    write_json(options.json, content, goals)


if __name__ == "__main__":
    run_benchmark(main, measure)

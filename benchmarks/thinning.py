"""How few trees of a forest or of a boosted model do the work of all?

A RandomForestClassifier of 500 trees and a LightGBM model of 200 trees (both otherwise at their defaults) are
fitted to half of the rows. A quarter, which the trees have not seen, serves to choose trees and weights; the
last quarter is the test set, looked at once, at the end.

* The size is chosen on the selection rows alone. Sizes are walked upwards; at each, trees and weights are
  chosen on two thirds of these rows and judged on the rest, three times (cross-validation). The first size
  whose error is not above the full model's on the same rows is taken. (Within one standard error would be
  enough for the goal if both errors were known; with both estimated, half of such sizes would miss it.) If no
  size does, it is the largest that the goal allows.
* With that size, trees and weights are chosen once more on all selection rows. That is the thinned model.
* Goal: at most 15 % of the trees, and a test error at most one standard error above the full model's.

A tree of the forest votes +1 or -1; a tree of LightGBM adds its leaf value, divided by the learning rate.
Prices are l1 = 1e-4 and l2 = 100 / rows throughout: a normal prior of standard deviation 0.1, the weight of a
tree in the booster. The certificate of each thinned model covers any choice of that many trees among all; the
independent checker verifies it.

Without --data the sets come with scikit-learn or are generated. With it, the default sets are adult, banana
and splice. Not everything can be thinned so far: where noise is low and many small steps add up (--sets
hastie, twonorm, ringnorm), thirty trees of a booster do not replace two hundred. Where the selection rows are
few (breast cancer has 142), the error by which the size is chosen says little.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import os
import sys
from pathlib import Path

import numpy as np

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

SHARE_GOAL = 0.15  # of the trees
L1, L2_TIMES_ROWS = 1e-4, 100.0
FOLDS = 3
FOREST, BOOSTER = "forest", "LightGBM"
TREES = {FOREST: 500, BOOSTER: 200}
SIZES = {FOREST: (5, 10, 20, 30, 50, 75), BOOSTER: (5, 10, 15, 20, 30)}
OWN_SETS = ("digits", "breast cancer", "noisy clusters")
DATA_SETS = ("adult", "banana", "splice")
PACKAGES = ("cardboost", "numpy", "scikit-learn", "lightgbm")


# --- data: rows, labels 0 and 1 ---


def read_adult(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Text columns become numbers, in the order of the text."""
    with gzip.open(folder / "adult.csv.gz", "rt", newline="") as file:
        header, *lines = csv.reader(file)
    columns = {name: [line[j] for line in lines] for j, name in enumerate(header)}
    y = np.array([float(value) > 0 for value in columns.pop("y")])
    columns.pop("part")
    table = []
    for values in columns.values():
        try:
            table.append(np.array(values, dtype=np.float64))
        except ValueError:
            table.append(np.unique(values, return_inverse=True)[1].astype(np.float64))
    return np.stack(table, axis=1), y


def load(name: str, folder: str | None) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    if name == "digits":
        X, y = datasets.load_digits(return_X_y=True)
        return X, y % 2 == 1
    if name == "breast cancer":
        X, y = datasets.load_breast_cancer(return_X_y=True)
        return X, y == 1
    if name == "noisy clusters":
        X, y = datasets.make_classification(
            10_000, 20, n_informative=10, n_clusters_per_class=4, flip_y=0.1, random_state=0
        )
        return X, y == 1
    if name == "hastie":
        X, y = datasets.make_hastie_10_2(12_000, random_state=0)
        return X, y > 0
    assert folder is not None
    if name == "adult":
        return read_adult(Path(folder))
    with np.load(Path(folder) / "ida" / f"{name}.npz") as held:
        return held["X"], held["y"] > 0


# --- one model on one set, in its own process ---


class BoosterTree:
    """One tree of a LightGBM model: its leaf value, divided by the learning rate."""

    def __init__(self, booster, number: int, learning_rate: float) -> None:
        self.booster, self.number, self.learning_rate = booster, number, learning_rate

    def predict(self, X: np.ndarray) -> np.ndarray:
        raw = self.booster.predict(X, start_iteration=self.number, num_iteration=1, raw_score=True)
        return raw / self.learning_rate


def full_model(kind: str, X: np.ndarray, y: np.ndarray, seed: int, threads: int):
    """The model and its trees as learners."""
    if kind == FOREST:
        from sklearn.ensemble import RandomForestClassifier

        model = RandomForestClassifier(TREES[FOREST], random_state=seed, n_jobs=threads).fit(X, y)
        return model, list(model.estimators_)
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_estimators=TREES[BOOSTER], random_state=seed, n_jobs=threads, verbose=-1)
    model.fit(X, y)
    made = model.booster_.num_trees()
    return model, [BoosterTree(model.booster_, k, model.learning_rate) for k in range(made)]


def wrong(model, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(model.predict(X) != y, dtype=np.float64)


def standard_error(values: np.ndarray) -> float:
    return float(values.std() / math.sqrt(len(values)))


def choose_size(thin, X: np.ndarray, y: np.ndarray, full_wrong: np.ndarray, sizes: list[int]) -> list[dict]:
    """Sizes walked upwards, with the cross-validated error of each; the last one is taken."""
    from sklearn.model_selection import StratifiedKFold

    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    walked = []
    for size in sizes:
        own = np.empty(len(y))
        for fitted, held in folds:
            own[held] = wrong(thin(X[fitted], y[fitted], size).ensemble, X[held], y[held])
        walked.append({"size": size, "error": own.mean()})
        if own.mean() <= full_wrong.mean():
            break
    return walked


def measure(task: dict) -> dict:
    from sklearn.model_selection import train_test_split

    from cardboost.solvers.thinning import thin_learners

    X, y = load(task["set"], task["folder"])
    y = y.astype(np.int64)
    seed, kind = task["seed"], task["contender"]
    X_train, rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    X_select, X_test, y_select, y_test = train_test_split(
        rest, y_rest, test_size=0.5, stratify=y_rest, random_state=seed
    )
    model, trees = full_model(kind, X_train, y_train, seed, task["threads"])

    def thin(X: np.ndarray, y: np.ndarray, size: int):
        return thin_learners(trees, X, y, size, l1=L1, l2=L2_TIMES_ROWS / len(y), n_jobs=task["threads"])

    select_wrong = wrong(model, X_select, y_select)
    walk_seconds, walked = timed(lambda: choose_size(thin, X_select, y_select, select_wrong, task["sizes"]))
    seconds, result = timed(lambda: thin(X_select, y_select, walked[-1]["size"]))
    faults = result.faults(X_select, y_select)
    full_test, thinned_test = wrong(model, X_test, y_test), wrong(result.ensemble, X_test, y_test)
    return {
        "rows": [len(y_train), len(y_select), len(y_test)],
        "features": X.shape[1],
        "trees": len(trees),
        "kept": result.ensemble.n_terms,
        "full_selection_error": float(select_wrong.mean()),
        "walk": walked,
        "walk_seconds": walk_seconds,
        "full_test_error": float(full_test.mean()),
        "thinned_test_error": float(thinned_test.mean()),
        "standard_error": standard_error(full_test),
        "guarantee": result.guarantee,
        "faults": faults,
        "seconds": seconds,
    }


# --- the parent ---


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="DIR", default=os.environ.get("CARDBOOST_DATA"))
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="other sets than the default ones")
    parser.add_argument("--seeds", type=int, nargs="+", default=[11], help="one split of the rows for each")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=tuple(TREES))
    parser.add_argument("--quick", action="store_true", help="one set, one small size: shows that it runs")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    return parser.parse_args()


def table_row(name: str, kind: str, seed: int, found: dict) -> list[str]:
    gap = (found["thinned_test_error"] - found["full_test_error"]) / max(found["standard_error"], 1e-300)
    return [
        f"{name}, {kind}, split {seed}",
        " / ".join(f"{rows:,}" for rows in found["rows"]),
        f"{found['kept']} of {found['trees']}",
        f"{100 * found['kept'] / found['trees']:.1f} %",
        f"{100 * found['full_test_error']:.2f}",
        f"{100 * found['thinned_test_error']:.2f}",
        f"{100 * found['standard_error']:.2f}",
        f"{gap:+.2f}",
        f"{math.floor(1000 * found['guarantee']) / 10:.1f} %",
        f"{found['seconds']:.1f}",
    ]


def main() -> None:
    options = parse_arguments()
    kinds = [options.only] if options.only else list(TREES)
    require({"cardboost.solvers.thinning": "install it with `pip install .`."})
    if BOOSTER in kinds:
        require({"lightgbm": "install it with `pip install '.[bench]'`, or use --only forest."})
    facts = machine(PACKAGES)
    print_machine(facts)
    names = options.sets or (DATA_SETS if options.data else OWN_SETS)
    unknown = [name for name in names if name not in (*OWN_SETS, "hastie")]
    if unknown and not options.data:
        sys.exit(f"{unknown[0]} is in a folder of data: name it with --data or CARDBOOST_DATA.")
    names = names[:1] if options.quick else names
    rows, goals, measured = [], [], []
    for name in names:
        for kind in kinds:
            for seed in options.seeds:
                print(f"  {name}: {kind}, split {seed} ...", file=sys.stderr)
                task = {"contender": kind, "set": name, "folder": options.data, "seed": seed}
                task |= {"threads": options.threads, "sizes": [5] if options.quick else SIZES[kind]}
                found = run_in_own_process(__file__, task, options.threads)
                measured.append({"set": name, "model": kind, "seed": seed} | found)
                rows.append(table_row(name, kind, seed, found))
                what = rows[-1][0]
                goals.append(Goal(f"{what}: share of the trees", found["kept"] / found["trees"], SHARE_GOAL))
                limit = found["full_test_error"] + found["standard_error"]
                goals.append(Goal(f"{what}: test error", found["thinned_test_error"], limit))
                goals.append(Goal(f"{what}: faults of the certificate", len(found["faults"]), 0))
    print("\nTest errors in %; 'above': thinned minus full, in standard errors (s.e.) of the full model's")
    print_table(
        ["data, model", "train / select / test", "kept", "share", "full", "thinned", "s.e.", "above",
         "guarantee", "seconds"],
        rows,
    )  # fmt: skip
    report_goals(goals)
    settings = {
        "threads": options.threads,
        "l1": L1,
        "l2_times_rows": L2_TIMES_ROWS,
        "folds": FOLDS,
        "sizes": SIZES,
    }
    content = {"machine": facts, "settings": settings, "quick": options.quick, "results": measured}
    write_json(options.json, content, goals)


if __name__ == "__main__":
    run_benchmark(main, measure)

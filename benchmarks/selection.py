"""How many choices of columns are proved optimal within a minute?

The problems are those of experiment E of Denchev et al., "Totally corrective boosting with cardinality
penalization": the first T' columns of unregularised column generation (exponential loss, largest edge, no
intercept) on 80 % of the rows of each of twelve sets, T' from 5 to 40. From these columns the best subset is
chosen,

    minimise  mean loss(A w) + l1 sum(w) + l2/2 sum(w^2) + l0 card(w),    0 <= w <= M,

for six prices l0 per set, chosen so that the best subset has from about T' - 1 to about T'/5 columns, and in
the constrained form for k = T'/4. l1 is 1e-6; M is twice the largest weight that local search finds. Two
settings: the exponential loss with l2 = 0, as in the paper, and the logistic loss with l2 = 0.05.

Shown for every problem: the columns of the best choice, the gap of the root relaxation, the gap and the
guarantee at the end, nodes, and seconds from the matrix to the proof. "found" says whether local search, with
tabu search for the exponential loss, had found the optimum before the proof began.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from pathlib import Path

import numpy as np

from _harness import (
    ContenderFailed,
    Goal,
    machine,
    print_machine,
    print_table,
    report_goals,
    require,
    run_in_own_process,
    serve_child,
    write_json,
)

#: hot-start columns of the paper's appendix C
COLUMNS = {
    "banana": 40, "breast_cancer": 20, "diabetis": 20, "flare_solar": 10, "german": 40, "heart": 15,
    "image": 30, "ringnorm": 40, "splice": 30, "thyroid": 5, "twonorm": 40, "waveform": 40,
}  # fmt: skip
SETTINGS = {"exponential": 0.0, "logistic": 0.05}
L1 = 1e-6
PRICES = 6
PACKAGES = ("cardboost", "numpy", "scikit-learn")
SMALL = 20  # columns up to which every problem is to be closed
CLOSED_GOAL = {"exponential": 45, "logistic": 66}
GUARANTEE_GOAL = 0.98


def load(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(Path(folder) / "ida" / f"{name}.npz") as file:
        X, y = file["X"], np.where(file["y"] > 0, 1, -1)
    rows = np.random.default_rng(0).permutation(len(y))[: int(0.8 * len(y))]
    return X[rows], y[rows]


def hot_start(folder: str, name: str) -> np.ndarray:
    """The columns, label multiplied in."""
    from cardboost import CardBoostClassifier

    X, y = load(folder, name)
    model = CardBoostClassifier(
        max_terms=None, l0=0.0, l1=L1, l2=0.0, loss="exponential", criterion="edge", fit_intercept=False,
        max_iter=COLUMNS[name], tol=0.0, n_jobs=1,
    ).fit(X, y)  # fmt: skip
    columns = [y * t.polarity * np.where(X[:, t.feature] <= t.cut, 1, -1) for t in model.ensemble_.terms]
    return np.stack(columns, axis=1).astype(np.int8)


def prices(A: np.ndarray, loss: str, l2: float) -> list[float]:
    """Prices at which the best subset has about as many columns as wanted: what one more or less is worth."""
    from cardboost.solvers import select_columns

    n = A.shape[1]
    method = "tabu" if loss == "exponential" else "polish"
    known: dict[int, float] = {}

    def best(k: int) -> float:
        if k not in known:
            known[k] = select_columns(A, max_terms=k, l1=L1, l2=l2, loss=loss, method=method).objective
        return known[k]

    sizes = np.unique(np.round(np.geomspace(n - 1, max(1.0, n / 5), PRICES)).astype(int))[::-1]
    found = [max((best(k - 1) - best(min(k + 1, n))) / 2, 1e-9) for k in sizes]
    while len(found) < PRICES:  # few columns: prices between the others
        gaps = [later / earlier for earlier, later in itertools.pairwise(found)]
        widest = int(np.argmax(gaps))
        found.insert(widest + 1, float(np.sqrt(found[widest] * found[widest + 1])))
    return found


def measure(task: dict) -> dict:
    """All problems of one set under one setting."""
    from cardboost.solvers import select_columns

    loss, l2, limit = task["loss"], SETTINGS[task["loss"]], task["limit"]
    A = hot_start(task["data"], task["set"])
    null = 1.0 if loss == "exponential" else float(np.log(2.0))
    problems = [{"l0": l0, "max_terms": None} for l0 in prices(A, loss, l2)]
    problems.append({"l0": 0.0, "max_terms": max(1, A.shape[1] // 4)})
    rows = []
    for own in problems:
        options = {"l1": L1, "l2": l2, "loss": loss, **own}
        start = select_columns(A, method="tabu" if loss == "exponential" else "polish", **options)
        began = time.perf_counter()
        box = 2.0 * float(start.x.max(initial=0.0)) or 1.0
        found = select_columns(
            A, method="exact", max_weight=box, time_limit=limit, n_jobs=task["threads"], **options
        )
        seconds = time.perf_counter() - began
        rows.append(own | {
            "terms": len(found.support), "objective": found.objective, "lower_bound": found.lower_bound,
            "guarantee": found.guarantee if null > found.lower_bound else 1.0, "status": found.status,
            "nodes": found.nodes, "seconds": seconds, "search": start.objective,
            "root": start.lower_bound,
        })  # fmt: skip
    return {"rows": len(A), "columns": A.shape[1], "problems": rows}


# --- the parent ---


def closed(problem: dict) -> bool:
    return problem["status"] == "optimal"


def found_before(problem: dict) -> bool:
    return problem["search"] <= problem["objective"] + 1e-7


def table_rows(name: str, result: dict) -> list[list[str]]:
    lines = []
    for own in result["problems"]:
        limit = f"k = {own['max_terms']}" if own["max_terms"] else f"l0 = {own['l0']:.2g}"
        gap = lambda bound, own=own: f"{100 * (own['objective'] - bound) / own['objective']:.2f}"  # noqa: E731
        lines.append([
            f"{name}, {result['rows']} x {result['columns']}", limit, str(own["terms"]), gap(own["root"]),
            "closed" if closed(own) else gap(own["lower_bound"]), f"{100 * own['guarantee']:.1f}",
            str(own["nodes"]), f"{own['seconds']:.1f}", "yes" if found_before(own) else "no",
        ])  # fmt: skip
    return lines


def judge(loss: str, results: dict[str, dict]) -> list[Goal]:
    priced = {name: [own for own in r["problems"] if not own["max_terms"]] for name, r in results.items()}
    every = [own for problems in priced.values() for own in problems]
    done = [own for own in every if closed(own)]
    share = len(every) / (PRICES * len(COLUMNS))  # of the whole benchmark, where only some sets are run
    goals = [Goal(f"{loss}: closed of {len(every)}", len(done), share * CLOSED_GOAL[loss], at_most=False)]
    if loss == "exponential":
        small = [own for name, problems in priced.items() if COLUMNS[name] <= SMALL for own in problems]
        goals.append(Goal(f"{loss}: open with up to {SMALL} columns", sum(not closed(o) for o in small), 0))
    else:
        least = min(own["guarantee"] for own in every)
        goals.append(Goal(f"{loss}: least guarantee", least, GUARANTEE_GOAL, at_most=False))
    hits = np.mean([found_before(own) for own in done]) if done else 0.0
    goals.append(Goal(f"{loss}: closed ones that local search had found", float(hits), 0.95, at_most=False))
    return goals


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("CARDBOOST_DATA"), help="folder with ida/*.npz")
    parser.add_argument("--sets", nargs="+", choices=COLUMNS, default=list(COLUMNS), metavar="SET")
    parser.add_argument("--losses", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="LOSS")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per problem")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    if options.data is None:
        print("selection: no folder with the twelve sets; give --data DIR or set CARDBOOST_DATA.")
        return
    require({"cardboost": "install it with `pip install .`."})
    facts = machine(PACKAGES)
    print_machine(facts)
    goals, content = [], {}
    for loss in options.losses:
        results = {}
        for name in options.sets:
            print(f"  {loss}: {name} ...", file=sys.stderr)
            task = {"set": name, "loss": loss, "data": options.data, "limit": options.limit}
            results[name] = run_in_own_process(__file__, task | {"threads": options.threads}, options.threads)
        print(f"\n{loss} loss, l2 = {SETTINGS[loss]:g}; gaps and guarantees in %")
        print_table(
            ["set, rows x columns", "price or limit", "terms", "root gap", "gap", "guarantee", "nodes",
             "seconds", "found"],
            [line for name, result in results.items() for line in table_rows(name, result)],
        )  # fmt: skip
        goals += judge(loss, results)
        content[loss] = results
    print("\nGoals")
    report_goals(goals)
    write_json(options.json, {"machine": facts, "limit": options.limit, "results": content}, goals)


if __name__ == "__main__":
    try:
        if not serve_child(measure):
            main()
    except ContenderFailed as failure:
        sys.exit(str(failure))

"""How fast is `SparseLogisticRegression`, to the same objective as its peers?

Four questions, each with the objective `mean log loss + l1 |coef|_1 + l2/2 |coef|_2^2`:

1. tall: dense 20,000 x 200 with correlated columns, small l2, with intercept;
2. path: dense 2,000 x 5,000, 20 values of l1 from where no feature is used to 2 % of that;
3. text: sparse 20,000 x 50,000, 0.2 % of the entries, one l1 at 5 % of that;
4. defaults: seconds on the wall for `fit` as users call it, input checks and certificate included, on dense
   tables of three shapes (`make_classification`, standardised), two threads, tol = 1e-6, everything else at
   its default, and l2 = 1 / rows, which is scikit-learn's C = 1. The contenders take turns in one process.

2 and 3 have no intercept: celer has none, and liblinear charges it. Every contender gets the same matrix
and makes of it what it likes, within the time measured. Tolerances mean something else everywhere, so each
contender goes through its own from loose to tight, and what counts is the first with which every objective,
computed here in NumPy, is within 1e-6 of the best one known (relative). Functions that compile on first use
have been used before the clock starts. With one thread seconds are processor time, which a busy machine
disturbs less than the clock on the wall. adelie wants NumPy below 2 and so an environment of its own (`pip
install adelie "numpy<2"`), named with `--adelie-python`; without it that peer is left out.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np

from _harness import (
    ContenderFailed,
    Goal,
    import_failure,
    machine,
    print_machine,
    print_table,
    report_goals,
    run_benchmark,
    run_in_own_process,
    write_json,
)

TARGET = 1e-6  # relative distance to the best objective known
OURS = "cardboost"
PACKAGES = ("cardboost", "numpy", "scipy", "scikit-learn", "celer", "skglm")
TOLERANCES = {
    OURS: (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7),
    "newton-cholesky": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6),
    "lbfgs": (1e-2, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6, 1e-7),
    "celer": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6),
    "skglm": (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7),
    "liblinear": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7),
    "saga": (1e-2, 1e-3, 1e-4, 1e-5, 1e-6),
    "adelie": (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12),
}
CASES = {
    "tall": (OURS, "newton-cholesky", "lbfgs"),
    "path": (OURS, "skglm", "adelie", "celer", "liblinear", "saga"),
    "text": (OURS, "celer", "skglm", "liblinear"),
}


DEFAULT_SHAPES = ((20_000, 200), (5_000, 50), (200_000, 30))
DEFAULT_THREADS = 2
DEFAULT_PEERS = ("lbfgs", "newton-cholesky")  # the default solver, and another for information


# --- the problems ---


def tall(quick: bool):
    """Columns that share ten causes, so that some directions are well known and others hardly."""
    rng = np.random.default_rng(0)
    rows, columns = (2000, 50) if quick else (20_000, 200)
    causes = rng.standard_normal((rows, 10))
    X = rng.standard_normal((rows, columns)) + causes @ rng.standard_normal((10, columns))
    score = X @ (rng.standard_normal(columns) * 0.1)
    y = np.where(rng.random(rows) < 1.0 / (1.0 + np.exp(-score)), 1.0, -1.0)
    return X, y


def path(quick: bool):
    """Neighbouring columns are correlated (1/2); fifty of them matter."""
    rng = np.random.default_rng(0)
    rows, columns = (200, 500) if quick else (2000, 5000)
    X = np.asfortranarray(rng.standard_normal((rows, columns)))
    for j in range(1, columns):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    coef = np.zeros(columns)
    coef[:: columns // 50] = rng.choice([-1.0, 1.0], len(coef[:: columns // 50]))
    coef *= rng.uniform(0.3, 1.0, columns)
    y = np.where(rng.random(rows) < 1.0 / (1.0 + np.exp(-X @ coef)), 1.0, -1.0)
    return X, y


def text(quick: bool):
    """Words drawn by a power law, counts damped by logarithms, rows of length 1, as from a text."""
    from scipy import sparse

    rng = np.random.default_rng(0)
    rows, columns = (2000, 5000) if quick else (20_000, 50_000)
    words = np.maximum(rng.poisson(0.002 * columns, rows), 1)
    often = 1.0 / (np.arange(columns) + 50.0) ** 0.8
    row, word = np.repeat(np.arange(rows), words), rng.choice(columns, words.sum(), p=often / often.sum())
    X = sparse.csr_matrix((np.ones(len(row)), (row.astype(np.int32), word.astype(np.int32))), (rows, columns))
    X.sum_duplicates()
    X.data = 1.0 + np.log(X.data)
    X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()), np.diff(X.indptr))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    coef = np.zeros(columns)
    coef[rng.choice(min(3000, columns), 300, replace=False)] = 8.0 * rng.standard_normal(300)
    score = X @ coef
    y = np.where(rng.random(rows) < 1.0 / (1.0 + np.exp(np.median(score) - score)), 1.0, -1.0)
    return X, y


def problem(case: str, quick: bool) -> dict:
    X, y = {"tall": tall, "path": path, "text": text}[case](quick)
    top = float(np.abs(X.T @ y).max()) / 2.0 / len(y)
    l1s = {"tall": [0.0], "path": (top * np.geomspace(1.0, 0.02, 20)).tolist(), "text": [0.05 * top]}[case]
    return {"case": case, "X": X, "y": y, "l1s": l1s, "l2": 1e-4 if case == "tall" else 0.0}


def objective(own: dict, coef: np.ndarray, b: float, l1: float) -> float:
    loss = np.logaddexp(0.0, -own["y"] * (own["X"] @ coef + b)).mean()
    return float(loss + l1 * np.abs(coef).sum() + own["l2"] / 2.0 * coef @ coef)


# --- contenders: coefficients and intercept for every l1 ---


def solve_ours(own: dict, tol: float, threads: int):
    from cardboost import SparseLogisticRegression

    model = SparseLogisticRegression(
        l2=own["l2"], tol=tol, n_jobs=threads, fit_intercept=own["case"] == "tall"
    )
    if own["case"] == "path":
        found = model.path(own["X"], own["y"], own["l1s"])
        return list(zip(found.coefs, found.intercepts, strict=True))
    model.set_params(l1=own["l1s"][0]).fit(own["X"], own["y"])
    return [(model.coef_[0], model.intercept_[0])]


def scikit_learn(solver: str):
    def solve(own: dict, tol: float, threads: int):
        from sklearn.linear_model import LogisticRegression

        out = []
        for l1 in own["l1s"]:
            smooth = own["case"] == "tall"
            model = LogisticRegression(
                C=1.0 / (len(own["y"]) * (own["l2"] if smooth else l1)), l1_ratio=0.0 if smooth else 1.0,
                solver=solver, tol=tol, max_iter=10_000, fit_intercept=smooth, random_state=0,
            )  # fmt: skip
            if out and solver == "saga":  # liblinear cannot start from the coefficients before
                model.warm_start, model.coef_, model.intercept_ = True, out[-1][0][None, :], np.zeros(1)
                model.classes_ = np.unique(own["y"])
            model.fit(own["X"], own["y"])
            out.append((model.coef_.ravel(), float(np.ravel(model.intercept_)[0])))
        return out

    return solve


def solve_celer(own: dict, tol: float, threads: int):
    from celer.homotopy import celer_path

    alphas = np.array(own["l1s"]) * len(own["y"])
    found = celer_path(own["X"], own["y"], "logreg", alphas=alphas, tol=tol, max_iter=50)
    return [(coef, 0.0) for coef in found[1].T]


def solve_skglm(own: dict, tol: float, threads: int):
    from skglm import SparseLogisticRegression

    model = SparseLogisticRegression(tol=tol, fit_intercept=False, warm_start=True, max_iter=200)
    out = []
    for l1 in own["l1s"]:
        model.alpha = l1
        model.fit(own["X"], own["y"])
        out.append((model.coef_.ravel().copy(), 0.0))
    return out


def solve_adelie(own: dict, tol: float, threads: int):
    import adelie

    found = adelie.grpnet(
        X=adelie.matrix.dense(own["X"], n_threads=threads),
        glm=adelie.glm.binomial(y=(own["y"] > 0).astype(np.float64)),
        lmda_path=np.array(own["l1s"]), intercept=False, early_exit=False, tol=tol, irls_tol=tol,
        progress_bar=False, n_threads=threads,
    )  # fmt: skip
    return [(np.asarray(coef).ravel(), 0.0) for coef in found.betas.toarray()]


SOLVERS = {
    OURS: solve_ours,
    "newton-cholesky": scikit_learn("newton-cholesky"),
    "lbfgs": scikit_learn("lbfgs"),
    "liblinear": scikit_learn("liblinear"),
    "saga": scikit_learn("saga"),
    "celer": solve_celer,
    "skglm": solve_skglm,
    "adelie": solve_adelie,
}


def measure_defaults(task: dict) -> dict:
    """Seconds on the wall, the best of all turns, and objectives of every contender at its defaults."""
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    from cardboost import SparseLogisticRegression

    rows, columns = task["shape"]
    X, y = make_classification(rows, columns, random_state=0)
    X = StandardScaler().fit_transform(X)
    models = {name: LogisticRegression(solver=name, tol=1e-6) for name in DEFAULT_PEERS}
    models[OURS] = SparseLogisticRegression(l2=1.0 / rows, tol=1e-6)
    runs: dict[str, list[float]] = {name: [] for name in models}
    values = {}
    table = {"X": X, "y": np.where(y == 1, 1.0, -1.0), "l2": 1.0 / rows}
    for _ in range(task["turns"]):
        for name, model in models.items():
            start = time.perf_counter()
            model.fit(X, y)
            runs[name].append(time.perf_counter() - start)
            values[name] = objective(table, model.coef_[0], float(model.intercept_[0]), 0.0)
    best = min(values.values())
    return {
        name: {"seconds": min(runs[name]), "runs": runs[name], "distance": values[name] / best - 1.0}
        for name in models
    }


def timed(run, threads: int) -> tuple[float, object]:
    clock = time.process_time if threads == 1 else time.perf_counter
    start = clock()
    outcome = run()
    return clock() - start, outcome


def measure(task: dict) -> dict:
    """Objectives of one tolerance, or the seconds of the loosest tolerance that reaches the target."""
    warnings.simplefilter("ignore")
    if "shape" in task:
        return measure_defaults(task)
    own = problem(task["case"], task["quick"])
    solve = SOLVERS[task["contender"]]

    def distance(found) -> float:
        values = [objective(own, *one, l1) for one, l1 in zip(found, own["l1s"], strict=True)]
        return max(value / best - 1.0 for value, best in zip(values, task["best"], strict=True))

    if "best" not in task:
        found = solve(own, 1e-9, task["threads"])
        return {"best": [objective(own, *one, l1) for one, l1 in zip(found, own["l1s"], strict=True)]}
    small = problem(task["case"], True)  # with a tight tolerance where something is compiled on the way
    solve(small, 1e-6 if task["contender"] == "skglm" else 1e-2, task["threads"])
    for tol in TOLERANCES[task["contender"]]:
        seconds, found = timed(lambda: solve(own, tol, task["threads"]), task["threads"])  # noqa: B023
        off = distance(found)
        if off <= TARGET or seconds > task["give_up"]:
            break
    runs = [seconds]
    if seconds < task["give_up"] / 3:
        runs += [
            timed(lambda: solve(own, tol, task["threads"]), task["threads"])[0]
            for _ in range(task["repeats"] - 1)
        ]
    return {"seconds": min(runs), "runs": runs, "tol": tol, "distance": off, "reached": off <= TARGET}


# --- the parent ---


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1, help="for every contender")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many counts")
    parser.add_argument(
        "--give-up", type=float, default=120.0, help="seconds after which a peer is left alone"
    )
    parser.add_argument("--without", nargs="+", default=[], metavar="PEER", help="leave these peers out")
    parser.add_argument("--cases", nargs="+", choices=(*CASES, "defaults"), default=[*CASES, "defaults"])
    parser.add_argument("--turns", type=int, default=20, help="for the question about defaults")
    parser.add_argument("--adelie-python", metavar="PYTHON", help="an interpreter that has adelie")
    parser.add_argument("--quick", action="store_true", help="small problems: shows that the script runs")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    return parser.parse_args()


def contenders(case: str, options: argparse.Namespace) -> dict[str, str]:
    """The contenders that can be run, with their interpreters."""
    out = {}
    for name in CASES[case]:
        if name in options.without:
            continue
        if name == "adelie":
            if options.adelie_python is None:
                print("adelie is left out: no --adelie-python", file=sys.stderr)
            else:
                out[name] = options.adelie_python
            continue
        reason = import_failure(name) if name in ("celer", "skglm") else None
        if reason is None:
            out[name] = sys.executable
        else:
            print(f"{name} is left out ({reason})", file=sys.stderr)
    return out


def compare_defaults(options: argparse.Namespace, goals: list[Goal]) -> dict:
    """Ask the question about defaults, print its table and add its goals."""
    rows, results = [], {}
    for shape in [(500, 10)] if options.quick else DEFAULT_SHAPES:
        name = f"{shape[0]:,} x {shape[1]}"
        print(f"  defaults: {name} ...", file=sys.stderr)
        task = {"shape": shape, "turns": 2 if options.quick else options.turns}
        found = results[name] = run_in_own_process(__file__, task, DEFAULT_THREADS)
        for contender, one in found.items():
            ratio = one["seconds"] / found[OURS]["seconds"]
            rows.append(
                [f"{name}: {contender}", f"{one['seconds']:.4f}", f"{ratio:.2f}", f"{one['distance']:.1e}"]
            )
        ratio = found["lbfgs"]["seconds"] / found[OURS]["seconds"]
        goals.append(Goal(f"defaults, {name}: lbfgs / ours", ratio, 1.0, at_most=False))
    print(f"\nSeconds on the wall of fit at defaults, {DEFAULT_THREADS} threads")
    print_table(["problem", "seconds", "/ ours", "distance"], rows)
    return {"case": "defaults", "results": results}


def main() -> None:
    options = parse_arguments()
    facts = machine(PACKAGES)
    print_machine(facts)
    rows, goals, measured, ratios = [], [], [], []
    for case in (case for case in options.cases if case in CASES):
        shared = {"case": case, "quick": options.quick, "threads": options.threads}
        shared |= {"repeats": options.repeats, "give_up": options.give_up}
        best = run_in_own_process(__file__, shared | {"contender": OURS}, options.threads)["best"]
        found = {}
        for name, python in contenders(case, options).items():
            print(f"  {case}: {name} ...", file=sys.stderr)
            task = shared | {"contender": name, "best": best}
            try:
                found[name] = run_in_own_process(__file__, task, options.threads, python)
            except ContenderFailed as failure:
                print(f"  {failure}", file=sys.stderr)
        own = found[OURS]["seconds"] if found[OURS]["reached"] else float("inf")
        for name, one in found.items():
            late = "" if one["reached"] else ">"
            ratio = one["seconds"] / own
            cells = [f"{case}: {name}", f"{late}{one['seconds']:.4f}", f"{late}{ratio:.2f}"]
            rows.append([*cells, f"{one['tol']:g}", f"{one['distance']:.1e}"])
        peers = [one for name, one in found.items() if name != OURS and one["reached"]]
        fastest = min((one["seconds"] for one in peers), default=float("inf"))
        ratios.append(fastest / own)
        goals.append(Goal(f"{case}: the fastest peer / ours", ratios[-1], 1.0, at_most=False))
        measured.append({"case": case, "best": best, "results": found})
    if rows:
        goals.append(Goal("the largest of these ratios", max(ratios), 2.0, at_most=False))
        print(f"\nSeconds to an objective within {TARGET:g} of the best, {options.threads} thread(s)")
        print_table(["problem", "seconds", "/ ours", "tolerance", "distance"], rows)
    if "defaults" in options.cases:
        measured.append(compare_defaults(options, goals))
    report_goals(goals)
    settings = {"threads": options.threads, "repeats": options.repeats, "quick": options.quick}
    write_json(options.json, {"machine": facts, "settings": settings, "results": measured}, goals)


if __name__ == "__main__":
    run_benchmark(main, measure)

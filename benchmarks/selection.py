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

Two peers are measured on some of the sets: how many times as long as ours do they take to close a problem?

* El0ps, a branch and bound for min f(Aw) + l0 card(w) + h(w), compiled by Numba: logistic loss and
  h = l2/2 w^2 for 0 <= w <= M (its BigmPositiveL2norm), all times the number of rows, as its loss is a sum.
  It has no such h with l1, so l1 = 0 here, for all contenders with the logistic loss; it has no limit on
  columns and no exponential loss. It closes at a relative gap of 1e-8, its default. It takes the value of a
  choice from its solver of relaxations, whose default tolerance of 1e-4 would make that gap meaningless; here
  it is 1e-8 as well (--el0ps-tolerance). Compilation, on a small problem of the same kind, is not counted. It
  uses one thread.
* HiGHS with outer approximation (_outer_approximation.py), a relative gap of 1e-8, both losses. It starts
  from the choice of local search, which is not counted.

Ours closes at a relative gap of 1e-9; its own local search and the certificate are counted. Prices are those
of the table; M comes from local search on the very problem, as above. Each contender has a process of its own
and the same number of threads. Objectives are computed here, from the weights, and have to agree to a
relative 1e-6 where both close. A contender that does not close counts with the time it had: ">" marks a lower
bound of the ratio, "<" an upper one.
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
    import_failure,
    machine,
    print_machine,
    print_table,
    report_goals,
    require,
    run_benchmark,
    run_in_own_process,
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
PACKAGES = ("cardboost", "numpy", "scikit-learn", "el0ps", "highspy")
SMALL = 20  # columns up to which every problem is to be closed
CLOSED_GOAL = {"exponential": 45, "logistic": 66}
GUARANTEE_GOAL = 0.98
OURS, EL0PS, HIGHS = "cardboost", "El0ps", "HiGHS"
#: module, and how to install it where it is missing
PEERS = {
    EL0PS: ("el0ps", "pip install el0ps mpich"),
    HIGHS: ("highspy", "pip install highspy"),
}
PEER_SETS = {
    EL0PS: [name for name, columns in COLUMNS.items() if columns <= 30 or name == "german"],
    HIGHS: [name for name, columns in COLUMNS.items() if columns <= 15],
}
PEER_L1 = {"exponential": L1, "logistic": 0.0}
PEER_GAP = 1e-8  # relative
SPEED_GOAL = 10.0  # peer's time / ours
AGREEMENT = 1e-6  # relative


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


# --- ours and the peers on the same problems ---


def mean_objective(A: np.ndarray, w: np.ndarray, problem: dict) -> float:
    """Computed from the weights, for every contender alike."""
    margins = A @ w
    losses = np.exp(-margins) if problem["loss"] == "exponential" else np.logaddexp(0.0, -margins)
    prices = problem["l1"] * w.sum() + problem["l2"] / 2 * (w @ w) + problem["l0"] * np.count_nonzero(w)
    return float(losses.mean() + prices)


def race_ours(A: np.ndarray, problem: dict, task: dict) -> dict:
    from cardboost.solvers import select_columns

    options = {key: problem[key] for key in ("loss", "l0", "l1", "l2", "max_terms")}
    start = select_columns(A, method="tabu" if problem["loss"] == "exponential" else "polish", **options)
    problem["box"] = 2.0 * float(start.x.max(initial=0.0)) or 1.0
    began = time.perf_counter()
    found = select_columns(
        A,
        method="exact",
        max_weight=problem["box"],
        time_limit=task["limit"],
        n_jobs=task["threads"],
        **options,
    )
    seconds = time.perf_counter() - began
    problem["start"] = start.x.tolist()
    return {"x": found.x, "closed": found.status == "optimal", "seconds": seconds}


def race_el0ps(A: np.ndarray, problem: dict, task: dict) -> dict:
    from el0ps.datafit import Logistic
    from el0ps.penalty import BigmPositiveL2norm
    from el0ps.solver import BnbSolver

    rows = len(A)
    solver = BnbSolver(relative_gap=PEER_GAP, relative_tol=task["tolerance"], time_limit=task["limit"])
    loss, penalty = Logistic(np.ones(rows)), BigmPositiveL2norm(problem["box"], rows * problem["l2"] / 2)
    matrix = np.asfortranarray(A, dtype=float)
    began = time.perf_counter()
    found = solver.solve(loss, penalty, matrix, rows * problem["l0"])
    seconds = time.perf_counter() - began
    return {"x": found.x, "closed": found.status.value == "optimal", "seconds": seconds}


def race_highs(A: np.ndarray, problem: dict, task: dict) -> dict:
    from _outer_approximation import outer_approximation

    began = time.perf_counter()
    found = outer_approximation(A, problem, task["limit"], PEER_GAP, task["threads"])
    return found | {"seconds": time.perf_counter() - began}


RACES = {OURS: race_ours, EL0PS: race_el0ps, HIGHS: race_highs}


def race(task: dict) -> dict:
    """One contender on problems of some sets; ours adds to each the box and a choice to start from."""
    solve = RACES[task["contender"]]
    if task["contender"] == EL0PS:
        A = np.where(np.random.default_rng(0).random((40, 4)) < 0.7, 1, -1)
        solve(A, {"loss": "logistic", "l0": 0.01, "l1": 0.0, "l2": 0.05, "box": 2.0}, task)  # compiles
    answers = {}
    for name, problems in task["sets"].items():
        A = hot_start(task["data"], name)
        answers[name] = []
        for problem in problems:
            found = solve(A, problem, task)
            objective = mean_objective(A, found["x"], problem)
            outcome = {"seconds": found["seconds"], "closed": bool(found["closed"]), "objective": objective}
            answers[name].append({"problem": problem, "outcome": outcome})
    return answers


def run_task(task: dict) -> dict:
    return race(task) if "contender" in task else measure(task)


# --- the parent ---


def closed(problem: dict) -> bool:
    return problem["status"] == "optimal"


def found_before(problem: dict) -> bool:
    return problem["search"] <= problem["objective"] + 1e-7


def price_or_limit(problem: dict) -> str:
    return f"k = {problem['max_terms']}" if problem["max_terms"] else f"l0 = {problem['l0']:.2g}"


def table_rows(name: str, result: dict) -> list[list[str]]:
    lines = []
    for own in result["problems"]:
        gap = lambda bound, own=own: f"{100 * (own['objective'] - bound) / own['objective']:.2f}"  # noqa: E731
        lines.append([
            f"{name}, {result['rows']} x {result['columns']}", price_or_limit(own), str(own["terms"]),
            gap(own["root"]), "closed" if closed(own) else gap(own["lower_bound"]),
            f"{100 * own['guarantee']:.1f}", str(own["nodes"]), f"{own['seconds']:.1f}",
            "yes" if found_before(own) else "no",
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


def usable_peers(wanted: list[str]) -> list[str]:
    """Those that can be imported; one sentence for each of the others."""
    usable = []
    for peer in wanted:
        module, remedy = PEERS[peer]
        reason = import_failure(module)
        if reason is None:
            usable.append(peer)
        else:
            print(f"{peer} is left out, {module} cannot be imported ({reason}): `{remedy}`.")
    return usable


def can_solve(peer: str, problem: dict) -> bool:
    return peer != EL0PS or (problem["loss"] == "logistic" and problem["max_terms"] is None)


def compare(loss: str, results: dict[str, dict], peers: list[str], options: argparse.Namespace) -> list[dict]:
    """A line per problem: what it is, and the outcome of each contender that was tried on it."""
    chosen = {
        peer: [name for name in results if name in (options.peer_sets or PEER_SETS[peer])]
        for peer in peers
        if peer != EL0PS or loss == "logistic"
    }
    shared = {"data": options.data, "threads": options.threads, "tolerance": options.el0ps_tolerance}
    common = {"loss": loss, "l1": PEER_L1[loss], "l2": SETTINGS[loss]}
    lines: dict[str, list[dict]] = {}
    for name in results:
        if any(name in names for names in chosen.values()):
            print(f"  {loss}: {name}, {OURS} beside the peers ...", file=sys.stderr)
            own = [common | {key: p[key] for key in ("l0", "max_terms")} for p in results[name]["problems"]]
            task = shared | {"contender": OURS, "sets": {name: own}, "limit": options.limit}
            answers = run_in_own_process(__file__, task, options.threads)[name]
            lines[name] = [{"set": name, "problem": a["problem"], OURS: a["outcome"]} for a in answers]
    for peer, names in chosen.items():
        # El0ps compiles in every process: one for all sets; the others have one for each
        for together in [names] if peer == EL0PS and names else [[name] for name in names]:
            print(f"  {loss}: {', '.join(together)}, {peer} ...", file=sys.stderr)
            to_do = {
                name: [line for line in lines[name] if can_solve(peer, line["problem"])] for name in together
            }
            sets = {name: [line["problem"] for line in group] for name, group in to_do.items()}
            if peer == EL0PS:  # does not take a choice to start from
                sets = {name: [p | {"start": None} for p in problems] for name, problems in sets.items()}
            task = shared | {"contender": peer, "sets": sets, "limit": options.peer_limit}
            try:
                answers = run_in_own_process(__file__, task, options.threads)
            except ContenderFailed as failure:
                print(failure)
                continue
            for name, group in to_do.items():
                for line, answer in zip(group, answers[name], strict=True):
                    line[peer] = answer["outcome"]
    return [line for group in lines.values() for line in group]


def time_ratio(line: dict, peer: str) -> tuple[float, str] | None:
    """The peer's time in ours, and whether that is exact or a bound; nothing where neither has closed."""
    ours, theirs = line[OURS], line.get(peer)
    if theirs is None or not (ours["closed"] or theirs["closed"]):
        return None
    bound = ("" if theirs["closed"] else "> ") if ours["closed"] else "< "
    return theirs["seconds"] / ours["seconds"], bound


def report_peers(loss: str, lines: list[dict], peers: list[str]) -> None:
    def seconds(outcome: dict | None) -> str:
        if outcome is None:
            return "-"
        return f"{'' if outcome['closed'] else '> '}{outcome['seconds']:.3g}"

    def ratio(line: dict, peer: str) -> str:
        found = time_ratio(line, peer)
        return "-" if found is None else f"{found[1]}{found[0]:.3g}"

    print(
        f"\n{loss} loss, l1 = {PEER_L1[loss]:g}, l2 = {SETTINGS[loss]:g}: seconds to close, and theirs / ours"
    )
    rows = []
    for line in lines:
        cells = [cell for peer in peers for cell in (seconds(line.get(peer)), ratio(line, peer))]
        rows.append([line["set"], price_or_limit(line["problem"]), seconds(line[OURS]), *cells])
    print_table(["set", "price or limit", OURS, *(cell for peer in peers for cell in (peer, "ratio"))], rows)
    for line in lines:
        closers = {
            who: line[who]["objective"] for who in (OURS, *peers) if who in line and line[who]["closed"]
        }
        low, high = min(closers.values(), default=0.0), max(closers.values(), default=0.0)
        if high - low > AGREEMENT * high:
            said = ", ".join(f"{who} {objective:.9g}" for who, objective in closers.items())
            print(f"WARNING: {line['set']}, {price_or_limit(line['problem'])}: objectives differ: {said}")


def judge_peers(lines: list[dict], peers: list[str]) -> list[Goal]:
    goals = []
    for peer in peers:
        ratios = [found for line in lines if (found := time_ratio(line, peer)) is not None]
        if ratios:
            done = sum(line[peer]["closed"] for line in lines if peer in line)
            what = f"{peer}: median of its time / ours (it closed {done} of {sum(peer in x for x in lines)})"
            middle = float(np.median([value for value, _ in ratios]))
            goals.append(Goal(what, middle, SPEED_GOAL, at_most=False))
    return goals


def peer_name(given: str) -> str:
    return {peer.lower(): peer for peer in PEERS}.get(given.lower(), given)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("CARDBOOST_DATA"), help="folder with ida/*.npz")
    parser.add_argument("--sets", nargs="+", choices=COLUMNS, default=list(COLUMNS), metavar="SET")
    parser.add_argument("--losses", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="LOSS")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per problem")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--peers", nargs="*", type=peer_name, choices=PEERS, default=list(PEERS), metavar="PEER",
        help=f"of {', '.join(PEERS)}; none: only ours",
    )  # fmt: skip
    parser.add_argument(
        "--peer-sets", nargs="+", choices=COLUMNS, metavar="SET",
        help="those of --sets on which the peers are measured (default: "
        + "; ".join(f"{peer} {' '.join(names)}" for peer, names in PEER_SETS.items()) + ")",
    )  # fmt: skip
    parser.add_argument("--peer-limit", type=float, default=60.0, help="seconds per problem for a peer")
    parser.add_argument("--el0ps-tolerance", type=float, default=PEER_GAP, help="of El0ps' relaxations")
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
    peers = usable_peers(options.peers)
    goals, content, compared = [], {}, {}
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
        compared[loss] = compare(loss, results, peers, options)
        tried = [peer for peer in peers if any(peer in line for line in compared[loss])]
        if tried:
            report_peers(loss, compared[loss], tried)
    goals += judge_peers([line for lines in compared.values() for line in lines], peers)
    report_goals(goals)
    figures = {
        "limit": options.limit,
        "results": content,
        "peer_limit": options.peer_limit,
        "peers": compared,
    }
    write_json(options.json, {"machine": facts} | figures, goals)


if __name__ == "__main__":
    run_benchmark(main, run_task)

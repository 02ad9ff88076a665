"""How far from optimal can a model of CardBoostClassifier(l2=0.01) be, and how long does the fit take?

Twelve sets, all rows, and the adult census, with nothing else set. For each: seconds of the fit, the
guarantee over all stumps (the headline) and over the candidate terms, the size of the model file, and whether
the independent checker accepts every claim, and how long that takes. The guarantee is the share of the
possible improvement over the best constant that the model is proved to have. With --prove SECONDS every
proof then goes on for so long.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
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
    write_json,
)

SETS = (
    "banana", "breast_cancer", "diabetis", "flare_solar", "german", "heart", "image", "ringnorm", "splice",
    "thyroid", "twonorm", "waveform", "adult",
)  # fmt: skip
SECONDS = 5.0  # of a fit
CHECKING, CHECKING_ADULT = 2.0, 5.0
KILOBYTES = 500


def load(folder: str, name: str):
    if name == "adult":
        import adult

        X, y, *_ = adult.load(folder)
        return X, y
    with np.load(Path(folder) / "ida" / f"{name}.npz") as file:
        return file["X"], file["y"]


def measure(task: dict) -> dict:
    from cardboost import CardBoostClassifier

    X, y = load(task["data"], task["set"])
    began = time.perf_counter()
    model = CardBoostClassifier(l2=0.01, n_jobs=task["threads"]).fit(X, y)
    seconds = time.perf_counter() - began
    found = {"rows": len(y), "seconds": seconds} | judged(model, X, y)
    if task["prove"]:
        began = time.perf_counter()
        model.prove(time_limit=task["prove"], max_nodes=10**9)
        found["proved"] = {"seconds": time.perf_counter() - began} | judged(model, X, y)
    return found


def judged(model, X, y) -> dict:
    """What is proven of a model, how long checking it takes, and how large its file is."""
    certificate = model.certificate_
    began = time.perf_counter()
    checked = certificate.verify(X, y)
    checking = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.json")
        size = (Path(folder) / "model.json").stat().st_size
    return {
        "terms": model.ensemble_.n_terms, "checked": bool(checked), "checking": checking, "bytes": size,
        "objective": certificate.objective, "status": certificate.status,
        "guarantee": {bound.scope: bound.guarantee for bound in certificate.bounds},
    }  # fmt: skip


def print_results(results: dict) -> None:
    columns = (
        "set|rows|terms|seconds|all stumps, %|candidates, %|status|checked|checking, s|file, kB|objective"
    )
    print_table(
        columns.split("|"),
        [
            [name, f"{found['rows']:,}", str(found["terms"]), f"{found['seconds']:.2f}"]
            + [
                f"{100 * found['guarantee'][scope]:.1f}" if scope in found["guarantee"] else "-"
                for scope in ("dictionary", "pool")
            ]
            + [found["status"], "yes" if found["checked"] else "NO", f"{found['checking']:.2f}"]
            + [f"{found['bytes'] / 1e3:.0f}", f"{found['objective']:.6f}"]
            for name, found in results.items()
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("CARDBOOST_DATA"), help="folder with the sets")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prove", type=float, default=0.0, metavar="SECONDS", help="go on with every proof")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    if options.data is None:
        print("guarantees: no folder with the sets; give --data DIR or set CARDBOOST_DATA.")
        return
    require({"cardboost": "install it with `pip install .`."})
    facts = machine(("cardboost", "numpy", "scikit-learn"))
    print_machine(facts)
    results = {}
    for name in options.sets:
        task = {"set": name, "data": options.data, "threads": options.threads, "prove": options.prove}
        results[name] = run_in_own_process(__file__, task, options.threads)
    print_results(results)
    if options.prove:
        print(f"\nafter prove(time_limit={options.prove:g})")
        proved = {name: {"rows": found["rows"]} | found["proved"] for name, found in results.items()}
        print_results(proved)
        closed = [name for name, found in proved.items() if found["status"] != "feasible"]
        print(f"closed over the candidates: {len(closed)} ({', '.join(closed)})")
    checking = {name: found["checking"] for name, found in results.items()}
    goals = [
        Goal("longest fit, seconds", max(found["seconds"] for found in results.values()), SECONDS),
        Goal("certificates refused", sum(not found["checked"] for found in results.values()), 0),
        Goal("largest file, kB", max(found["bytes"] for found in results.values()) / 1e3, KILOBYTES),
    ]
    if "adult" in checking:
        goals.append(Goal("checking adult, seconds", checking.pop("adult"), CHECKING_ADULT))
    if checking:
        goals.append(Goal("longest check of the twelve sets, seconds", max(checking.values()), CHECKING))
    report_goals(goals)
    write_json(options.json, {"machine": facts, "results": results}, goals)


if __name__ == "__main__":
    run_benchmark(main, measure)

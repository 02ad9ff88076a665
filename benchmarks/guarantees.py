"""How far from optimal can a model be that CardBoostClassifier() gives, and how long does the fit take?

Twelve sets, all rows, and the adult census, with nothing set but the table. For each: seconds of the fit, the
guarantee over the candidate terms (scope pool) and over all stumps (dictionary), and whether the independent
checker accepts every claim. The guarantee is the share of the possible improvement over the best constant
that the model is proved to have.
"""

from __future__ import annotations

import argparse
import os
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
GUARANTEE, AT_LEAST, SECONDS = 0.97, 10, 20.0


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
    model = CardBoostClassifier(n_jobs=task["threads"]).fit(X, y)
    seconds = time.perf_counter() - began
    certificate = model.certificate_
    began = time.perf_counter()
    checked = certificate.verify(X, y)
    return {
        "rows": len(y), "seconds": seconds, "terms": model.ensemble_.n_terms, "checked": bool(checked),
        "checking": time.perf_counter() - began, "status": certificate.status,
        "guarantee": {own.scope: own.guarantee for own in certificate.bounds},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("CARDBOOST_DATA"), help="folder with the sets")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET")
    parser.add_argument("--threads", type=int, default=2)
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
        task = {"set": name, "data": options.data, "threads": options.threads}
        results[name] = run_in_own_process(__file__, task, options.threads)
    print_table(
        ["set", "rows", "terms", "seconds", "pool, %", "dictionary, %", "status", "checked", "checking, s"],
        [
            [name, f"{own['rows']:,}", str(own["terms"]), f"{own['seconds']:.1f}"]
            + [
                f"{100 * own['guarantee'][s]:.1f}" if s in own["guarantee"] else "-"
                for s in ("pool", "dictionary")
            ]
            + [own["status"], "yes" if own["checked"] else "NO", f"{own['checking']:.1f}"]
            for name, own in results.items()
        ],
    )
    good = sum(own["guarantee"]["pool"] >= GUARANTEE for own in results.values())
    goals = [
        Goal(
            f"sets with a guarantee of {GUARANTEE:.0%}",
            good,
            AT_LEAST * len(results) / len(SETS),
            at_most=False,
        ),
        Goal("longest fit, seconds", max(own["seconds"] for own in results.values()), SECONDS),
        Goal("certificates refused", sum(not own["checked"] for own in results.values()), 0),
    ]
    report_goals(goals)
    write_json(options.json, {"machine": facts, "results": results}, goals)


if __name__ == "__main__":
    run_benchmark(main, measure)

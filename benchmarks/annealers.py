"""How good is a choice of columns by an annealer, once it is decoded and polished?

The problems are those of selection.py: T' hot-start columns of each of twelve sets, exponential loss, l2 = 0,
in the constrained form with k = T'/4 and at a price l0 in the middle of those there. dwave-samplers'
tabu search and simulated annealing choose; shown is by how much the polished result is above the best
objective that the two and our own search (tabu, then exact search for a few seconds) know.
"""

from __future__ import annotations

import argparse
import os
import time

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
from selection import COLUMNS, L1, hot_start, price_or_limit, prices

SAMPLERS = ("TabuSampler", "SimulatedAnnealingSampler")
WITHIN = 0.01  # of the best objective


def measure(task: dict) -> dict:
    import dwave.samplers

    from cardboost.solvers import select_columns

    A = hot_start(task["data"], task["set"])
    middle = prices(A, "exponential", 0.0)[3]
    found = []
    for own in ({"l0": middle, "max_terms": None}, {"l0": 0.0, "max_terms": max(1, A.shape[1] // 4)}):
        options = {"l1": L1, "loss": "exponential", **own}
        search = select_columns(A, method="tabu", **options)
        box = 2.0 * float(search.x.max(initial=0.0)) or 1.0
        exact = select_columns(A, method="exact", max_weight=box, time_limit=task["limit"], **options)
        line = own | {"best": min(search.objective, exact.objective), "samplers": {}}
        for name in SAMPLERS:
            began = time.perf_counter()
            answer = select_columns(A, method=getattr(dwave.samplers, name), **options)
            line["samplers"][name] = {
                "objective": answer.objective,
                "seconds": time.perf_counter() - began,
                "fallback": answer.sampling.fallback,
            }
        line["best"] = min(line["best"], *(own["objective"] for own in line["samplers"].values()))
        found.append(line)
    return {"columns": A.shape[1], "problems": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("CARDBOOST_DATA"), help="folder with ida/*.npz")
    parser.add_argument("--sets", nargs="+", default=list(COLUMNS), choices=COLUMNS, metavar="SET")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds of exact search per problem")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    if options.data is None:
        print("annealers: no folder with the twelve sets; give --data DIR or set CARDBOOST_DATA.")
        return
    require(
        {"cardboost": "install it with `pip install .`.", "dwave.samplers": "`pip install dwave-samplers`."}
    )
    facts = machine(("cardboost", "numpy", "dimod", "dwave-samplers"))
    print_machine(facts)
    results = {}
    for name in options.sets:
        task = {"set": name, "data": options.data, "limit": options.limit}
        results[name] = run_in_own_process(__file__, task, 1)
    lines, worst = [], 0.0
    for name, result in results.items():
        for own in result["problems"]:
            line = [f"{name}, {result['columns']}", price_or_limit(own), f"{own['best']:.6f}"]
            for sampler in SAMPLERS:
                answer = own["samplers"][sampler]
                above = answer["objective"] / own["best"] - 1.0
                worst = max(worst, above)
                fell = " (fallback)" if answer["fallback"] else ""
                line += [f"{100 * above:.3f}{fell}", f"{answer['seconds']:.1f}"]
            lines.append(line)
    print_table(["set, columns", "price or limit", "best", "tabu, %", "s", "annealing, %", "s"], lines)
    fallbacks = sum(
        bool(answer["fallback"])
        for result in results.values()
        for own in result["problems"]
        for answer in own["samplers"].values()
    )
    goals = [
        Goal("largest distance from the best objective", worst, WITHIN),
        Goal("answers that could not be used", fallbacks, 0),
    ]
    report_goals(goals)
    write_json(options.json, {"machine": facts, "results": results}, goals)


if __name__ == "__main__":
    run_benchmark(main, measure)

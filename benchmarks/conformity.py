"""Which of scikit-learn's estimator checks does each estimator fail?

Runs the suite of the installed scikit-learn (`sklearn.utils.estimator_checks.check_estimator`) on cardboost's
estimators and on those of LightGBM, XGBoost and interpret (EBM), each in its own process and at its defaults
apart from thread counts, verbosity and, for EBM, fewer rounds so that the suite ends in reasonable time.
"""

from __future__ import annotations

import argparse
import sys
import warnings

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

PACKAGES = ("cardboost", "scikit-learn", "numpy", "lightgbm", "xgboost-cpu", "interpret-core")


def cardboost_classifier():
    from cardboost import CardBoostClassifier

    return CardBoostClassifier(n_jobs=1)


def cardboost_regressor():
    from cardboost import CardBoostRegressor

    return CardBoostRegressor(n_jobs=1)


def lightgbm_classifier():
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1)


def lightgbm_regressor():
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_jobs=1, verbose=-1)


def xgboost_classifier():
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1)


def xgboost_regressor():
    from xgboost import XGBRegressor

    return XGBRegressor(n_jobs=1)


def ebm_classifier():
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(n_jobs=1, max_rounds=50, outer_bags=2)


def ebm_regressor():
    from interpret.glassbox import ExplainableBoostingRegressor

    return ExplainableBoostingRegressor(n_jobs=1, max_rounds=50, outer_bags=2)


ESTIMATORS = {
    "CardBoostClassifier": cardboost_classifier,
    "CardBoostRegressor": cardboost_regressor,
    "LGBMClassifier": lightgbm_classifier,
    "LGBMRegressor": lightgbm_regressor,
    "XGBClassifier": xgboost_classifier,
    "XGBRegressor": xgboost_regressor,
    "ExplainableBoostingClassifier": ebm_classifier,
    "ExplainableBoostingRegressor": ebm_regressor,
}
OURS = ("CardBoostClassifier", "CardBoostRegressor")


def measure(task: dict) -> dict:
    from sklearn.utils.estimator_checks import check_estimator

    warnings.simplefilter("ignore")
    estimator = ESTIMATORS[task["contender"]]()
    seconds, results = timed(lambda: check_estimator(estimator, on_skip=None, on_fail=None))
    outcome: dict = {"seconds": seconds, "passed": [], "failed": {}, "skipped": []}
    for result in results:
        name = result["check_name"]
        if result["status"] == "passed":
            outcome["passed"].append(name)
        elif result["status"] == "skipped":
            outcome["skipped"].append(name)
        else:
            outcome["failed"][name] = str(result["exception"]).strip().split("\n")[0][:200]
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("ours", "peers"))
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    names = [n for n in ESTIMATORS if options.only in (None, "ours" if n in OURS else "peers")]
    require(
        {"cardboost.estimators.card_boost": "install it with `pip install .`."}
        if options.only != "peers"
        else {}
    )
    if options.only != "ours":
        remedy = "install the peers with `pip install '.[bench]'`, or use --only ours."
        require(dict.fromkeys(("lightgbm", "xgboost", "interpret"), remedy))
    facts = machine(PACKAGES)
    print_machine(facts)
    results = {}
    for name in names:
        print(f"  {name} ...", file=sys.stderr)
        results[name] = run_in_own_process(__file__, {"contender": name}, threads=1)
    print_table(
        ["estimator", "passed", "failed", "skipped", "seconds"],
        [
            [
                name,
                str(len(r["passed"])),
                str(len(r["failed"])),
                str(len(r["skipped"])),
                f"{r['seconds']:.1f}",
            ]
            for name, r in results.items()
        ],
    )
    for name, result in results.items():
        if result["failed"]:
            print(f"\n{name} fails")
            for check, reason in result["failed"].items():
                print(f"  {check}: {reason}")
    goals = [
        Goal(f"{name}: failed checks", len(results[name]["failed"]), 0) for name in OURS if name in results
    ]
    report_goals(goals)
    write_json(options.json, {"machine": facts, "results": results}, goals)


if __name__ == "__main__":
    run_benchmark(main, measure)

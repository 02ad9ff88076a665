"""Mixed numbers and categories with missing values: log loss and AUC on the test rows of the adult data.

    python benchmarks/adult.py --data DIR        # DIR holds adult.csv.gz

Full models: cardboost without a limit on terms, EBM without interactions, one-hot logistic regression.
Ten terms: cardboost's card, and LightGBM stopped after ten stumps (the best of three learning rates, chosen
on the test rows, which can only help it). Every contender gets the same rows; '?' is a missing value.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
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

PACKAGES = ("cardboost", "scikit-learn", "numpy", "pandas", "lightgbm", "interpret-core")
NEAR = 0.002  # how far from EBM a figure may be


def load(folder: str):
    import pandas as pd

    frame = pd.read_csv(Path(folder) / "adult.csv.gz", na_values="?", skipinitialspace=True)
    train = (frame.pop("part") == "train").to_numpy()
    y = (frame.pop("y") == 1).to_numpy().astype(int)
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    frame[text] = frame[text].astype("category")
    return frame[train], y[train], frame[~train], y[~train], text


def cardboost_full(X, y, text):
    from cardboost import CardBoostClassifier

    # l1 was chosen among 1e-4, 5e-5, 3e-5 on a held-out 30 % of the training rows
    return CardBoostClassifier(max_terms=None, max_iter=300, l1=5e-5, l2=0.0).fit(X, y)


def cardboost_ten(X, y, text):
    from cardboost import CardBoostClassifier

    # l2 was chosen among 1e-2, 1e-3, 1e-4 on a held-out 30 % of the training rows: the mean log loss there,
    # over three splits, was 0.3229, 0.3139, 0.3137
    return CardBoostClassifier(max_terms=10, l2=1e-4).fit(X, y)


def ebm(X, y, text):
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(interactions=0, random_state=0).fit(X, y)


def one_hot_logistic(X, y, text):
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [name for name in X if name not in text]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), text),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=5000)).fit(X, y)


def lightgbm_ten(X, y, text, learning_rate):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=10, num_leaves=2, learning_rate=learning_rate, verbose=-1).fit(X, y)


CONTENDERS = {
    "cardboost, no limit": cardboost_full,
    "EBM, no interactions": ebm,
    "one-hot logistic regression": one_hot_logistic,
    "cardboost, 10 terms": cardboost_ten,
    "LightGBM, 10 stumps, rate 0.1": lambda *data: lightgbm_ten(*data, 0.1),
    "LightGBM, 10 stumps, rate 0.3": lambda *data: lightgbm_ten(*data, 0.3),
    "LightGBM, 10 stumps, rate 1.0": lambda *data: lightgbm_ten(*data, 1.0),
}


def measure(task: dict) -> dict:
    from sklearn.metrics import log_loss, roc_auc_score

    warnings.simplefilter("ignore")
    X, y, X_test, y_test, text = load(task["data"])
    seconds, model = timed(lambda: CONTENDERS[task["contender"]](X, y, text))
    p = model.predict_proba(X_test)[:, 1]
    terms = getattr(getattr(model, "ensemble_", None), "n_terms", None)
    return {
        "seconds": seconds,
        "log_loss": float(log_loss(y_test, p)),
        "auc": float(roc_auc_score(y_test, p)),
        "terms": terms,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("CARDBOOST_DATA"), help="folder with adult.csv.gz")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=("ours", "peers"))
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    if options.data is None or not (Path(options.data) / "adult.csv.gz").is_file():
        sys.exit("adult.csv.gz is needed: give its folder with --data DIR or CARDBOOST_DATA.")
    names = [
        n for n in CONTENDERS if options.only in (None, "ours" if n.startswith("cardboost") else "peers")
    ]
    remedy = "install the peers with `pip install '.[bench]'`, or use --only ours."
    require({"pandas": "pip install pandas."})
    if options.only != "ours":
        require({"interpret": remedy, "lightgbm": remedy})
    facts = machine(PACKAGES)
    print_machine(facts)
    results = {}
    for name in names:
        print(f"  {name} ...", file=sys.stderr)
        task = {"contender": name, "data": options.data}
        results[name] = run_in_own_process(__file__, task, options.threads)
    print_table(
        ["model", "test log loss", "test AUC", "terms", "seconds"],
        [
            [name, f"{r['log_loss']:.4f}", f"{r['auc']:.4f}", str(r["terms"] or "-"), f"{r['seconds']:.2f}"]
            for name, r in results.items()
        ],
    )
    goals = compare(results) if options.only is None else []
    report_goals(goals)
    write_json(options.json, {"machine": facts, "results": results}, goals)


def compare(results: dict[str, dict]) -> list[Goal]:
    full, ten = results["cardboost, no limit"], results["cardboost, 10 terms"]
    rival, linear = results["EBM, no interactions"], results["one-hot logistic regression"]
    stumps = [r for name, r in results.items() if name.startswith("LightGBM")]
    return [
        Goal("no limit: log loss above EBM's", full["log_loss"] - rival["log_loss"], NEAR),
        Goal("no limit: AUC below EBM's", rival["auc"] - full["auc"], NEAR),
        Goal(
            "no limit: log loss / one-hot logistic regression",
            full["log_loss"],
            linear["log_loss"],
            strict=True,
        ),
        Goal(
            "no limit: AUC / one-hot logistic regression",
            full["auc"],
            linear["auc"],
            at_most=False,
            strict=True,
        ),
        Goal(
            "10 terms: log loss / LightGBM's 10 stumps",
            ten["log_loss"],
            min(s["log_loss"] for s in stumps),
            strict=True,
        ),
        Goal(
            "10 terms: AUC / LightGBM's 10 stumps",
            ten["auc"],
            max(s["auc"] for s in stumps),
            at_most=False,
            strict=True,
        ),
    ]


if __name__ == "__main__":
    run_benchmark(main, measure)

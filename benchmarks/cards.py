"""How good are small cards? Test log loss, AUC and error of models of 5, 10 and 15 stumps.

    python benchmarks/cards.py --data DIR --fasterrisk-python PATH      # DIR/ida holds the twelve sets

Twelve sets, five splits each: 80 % of the rows to train, 20 % to test. A term is one stump. Contenders:

* cardboost: `max_terms` stumps, one column generated per term (`hot_start=max_terms`), all weights corrected
  after each. The price l2 is 0.5, 2, 8 or 32 divided by the number of training rows: for every split and size
  the one with the least log loss in 5-fold cross-validation on the training rows. The models of the folds are
  boosted without `max_terms`, which is quick: scikit-learn's GridSearchCV over l2 with `max_terms=None,
  max_iter=size`. The rest is at its defaults, except `selector="polish"`: a proof is not what is asked here.
* FasterRisk: integer points on stump features, x <= cut, at every gap between values or at 20 quantiles where
  there are more gaps; its defaults otherwise. Of its pool the model with the least training loss is taken. It
  wants an older NumPy: --fasterrisk-python names the Python of an environment that has it.
* LightGBM, stopped after so many stumps, at learning rates 0.1, 0.3, 0.5 and 1.0. For every set and size the
  rate with the best mean test log loss is taken. That is chosen on the test rows and can only help it, but it
  is one model that all three measures judge, as for every other contender.
* AdaBoost, the first stumps of it. Of scikit-learn's probabilities and the logistic function of its unscaled
  margin those with the better mean test log loss are taken for every set and size, in its favour as well.
* L1CG, thinned: cardboost without a limit on terms, at six prices l1. The stumps of largest weight are kept
  and refitted together; of the six the one with the least training objective is taken. The refit has the
  price l2 = 1 / rows, so that it exists where the classes can be separated.

Contenders are ranked on every set by the mean over the splits; equal means share a rank. Goal: the best mean
rank over the sets, for every measure and size.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
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

SETS = (
    "banana", "breast_cancer", "diabetis", "flare_solar", "german", "heart", "image", "ringnorm", "splice",
    "thyroid", "twonorm", "waveform",
)  # fmt: skip
SIZES = (5, 10, 15)
MEASURES = ("log loss", "AUC", "error")
OURS, RISK, BOOSTER, ADABOOST, L1CG = "cardboost", "FasterRisk", "LightGBM", "AdaBoost", "L1CG, thinned"
PACKAGES = ("cardboost", "numpy", "scikit-learn", "lightgbm")

PRICES = (0.5, 2.0, 8.0, 32.0)  # l2 times the number of training rows
FOLDS = 5
QUANTILES = 20
RISK_POINTS = 5  # of a term at most, FasterRisk's default
RATES = (0.1, 0.3, 0.5, 1.0)
L1_PATH = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)


# --- contenders: scores (log odds) of the test rows for every variant and size ---


def loss_of(y: np.ndarray, scores: np.ndarray) -> float:
    return float(np.logaddexp(0.0, -y * scores).mean())


def card(X: np.ndarray, y: np.ndarray, size: int):
    """The classifier with the price that cross-validation on the training rows prefers."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    from cardboost import CardBoostClassifier

    boosted = CardBoostClassifier(max_terms=None, max_iter=size, n_jobs=1)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    prices = {"l2": [price / len(y) for price in PRICES]}
    search = GridSearchCV(boosted, prices, scoring="neg_log_loss", cv=folds, refit=False).fit(X, y)
    return CardBoostClassifier(
        max_terms=size, hot_start=size, selector="polish", n_jobs=1, **search.best_params_
    ).fit(X, y)


def cards(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, sizes: list[int]) -> dict:
    models = {size: card(X, y, size) for size in sizes}
    return {
        "scores": {"": {size: model.decision_function(X_test) for size, model in models.items()}},
        "chosen": {size: round(model.l2 * len(y), 6) for size, model in models.items()},
    }


def lightgbm_stumps(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, sizes: list[int]) -> dict:
    from lightgbm import LGBMClassifier

    scores = {}
    for rate in RATES:
        model = LGBMClassifier(
            n_estimators=max(sizes),
            num_leaves=2,
            learning_rate=rate,
            min_child_samples=1,
            n_jobs=1,
            verbose=-1,
        ).fit(X, y)
        scores[f"rate {rate}"] = {
            size: model.predict(X_test, raw_score=True, num_iteration=size) for size in sizes
        }
    return {"scores": scores}


def adaboost(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, sizes: list[int]) -> dict:
    from sklearn.ensemble import AdaBoostClassifier

    model = AdaBoostClassifier(n_estimators=max(sizes), random_state=0).fit(X, y)
    votes = np.stack([stump.predict(X_test) for stump in model.estimators_], axis=1)
    weights = model.estimator_weights_[: votes.shape[1]]
    margin = {size: votes[:, :size] @ weights[:size] for size in sizes}
    # the log odds of scikit-learn's predict_proba after so many stumps
    scaled = {size: 2.0 * margin[size] / weights[:size].sum() for size in sizes}
    return {"scores": {"scikit-learn's probabilities": scaled, "logistic of the margin": margin}}


def thinned(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, sizes: list[int]) -> dict:
    from sklearn.linear_model import LogisticRegression

    from cardboost import CardBoostClassifier

    def columns(terms: list, rows: np.ndarray) -> np.ndarray:
        return np.stack([np.where(rows[:, t.feature] <= t.cut, 1.0, -1.0) for t in terms], axis=1)

    scores: dict[int, np.ndarray] = {}
    best: dict[int, float] = {}
    for l1 in L1_PATH:
        full = CardBoostClassifier(max_terms=None, l1=l1, l2=0.0, max_iter=300, n_jobs=1).fit(X, y)
        ordered = sorted(full.ensemble_.terms, key=lambda term: -term.weight)
        for size in sizes:
            if not ordered:
                continue
            kept = ordered[:size]
            refit = LogisticRegression(C=1.0, tol=1e-8, max_iter=10_000).fit(columns(kept, X), y)
            own = loss_of(y, refit.decision_function(columns(kept, X)))
            own += float((refit.coef_**2).sum()) / (2.0 * len(y))
            if size not in best or own < best[size]:
                best[size], scores[size] = own, refit.decision_function(columns(kept, X_test))
    return {"scores": {"": scores}}


def risk_scores(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, sizes: list[int], most: int = RISK_POINTS
) -> dict:
    """In the environment of FasterRisk; X and X_test hold stump features, of at most ``most`` points."""
    from fasterrisk.fasterrisk import RiskScoreOptimizer

    scores = {}
    for size in sizes:
        optimizer = RiskScoreOptimizer(X, y, k=size, lb=-most, ub=most)
        optimizer.optimize()
        multiplier, intercept, points = optimizer.get_models(0)  # sorted by training loss
        scores[size] = (intercept + X_test @ points) / multiplier
    return {"scores": {"": scores}}


CONTENDERS = {
    OURS: cards,
    RISK: risk_scores,
    BOOSTER: lightgbm_stumps,
    ADABOOST: adaboost,
    L1CG: thinned,
}


def measure(task: dict) -> dict:
    """Every contender of the task on one split. Times are not compared, so they may share a process."""
    warnings.simplefilter("ignore")
    with np.load(task["file"]) as held:
        X, y, X_test = held["X"].astype(np.float64), held["y"], held["X_test"].astype(np.float64)
    results = {}
    for contender in task["contenders"]:
        run_it = CONTENDERS[contender]
        seconds, found = timed(lambda run_it=run_it: run_it(X, y, X_test, task["sizes"]))
        plain = {name: {k: s.tolist() for k, s in own.items()} for name, own in found["scores"].items()}
        results[contender] = found | {"scores": plain, "seconds": seconds}
    return results


# --- the parent: splits, features, figures ---


def split(folder: str, name: str, seed: int) -> tuple[np.ndarray, ...]:
    from sklearn.model_selection import train_test_split

    with np.load(Path(folder) / "ida" / f"{name}.npz") as held:
        X, y = held["X"].astype(np.float64), np.where(held["y"] > 0, 1.0, -1.0)
    return train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)


def stump_features(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    train, test = [], []
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        cuts = (values[1:] + values[:-1]) / 2
        if len(cuts) > QUANTILES:
            cuts = np.unique(np.quantile(X[:, j], np.arange(1, QUANTILES + 1) / (QUANTILES + 1)))
        for cut in cuts:
            column = X[:, j] <= cut
            if not column.all():
                train.append(column)
                test.append(X_test[:, j] <= cut)
    return np.stack(train, axis=1), np.stack(test, axis=1)


def run(contenders: list[str], name: str, seed: int, options: argparse.Namespace, folder: str) -> dict:
    """Contenders of one environment on one split, all sizes: the measures of every variant of them."""
    X, X_test, y, y_test = split(options.data, name, seed)
    python = sys.executable
    if contenders == [RISK]:
        X, X_test = stump_features(X, X_test)
        python = options.fasterrisk_python
    kept = None
    if contenders == [RISK] and options.keep:
        key = hashlib.sha256(X.tobytes() + X_test.tobytes() + y.tobytes() + repr(options.sizes).encode())
        kept = Path(options.keep) / f"{name}-{seed}-{key.hexdigest()[:16]}.json"
    if kept is not None and kept.exists():
        found = json.loads(kept.read_text())
    else:
        file = str(Path(folder) / f"{contenders[0]}-{name}-{seed}.npz")
        np.savez(file, X=X, y=y, X_test=X_test)
        task = {"contender": " and ".join(contenders), "contenders": contenders}
        task |= {"file": file, "sizes": options.sizes}
        found = run_in_own_process(__file__, task, 1, python)
        os.remove(file)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(found))
    times = ", ".join(f"{who} {own['seconds']:.1f} s" for who, own in found.items())
    print(f"  {name}, split {seed}: {times}", file=sys.stderr)
    return {
        who: {
            "figures": {
                variant: {size: figures_of(y_test, np.array(scores)) for size, scores in by_size.items()}
                for variant, by_size in own["scores"].items()
            },
            "seconds": own["seconds"],
            "chosen": own.get("chosen"),
        }
        for who, own in found.items()
    }


def figures_of(y: np.ndarray, scores: np.ndarray) -> list[float]:
    """Log loss, AUC and error; a score of exactly 0 is the negative class, as every contender has it."""
    from sklearn.metrics import roc_auc_score

    wrong = (scores > 0) != (y > 0)
    return [loss_of(y, scores), float(roc_auc_score(y, scores)), float(wrong.mean())]


def best_variant(runs: list[dict], size: int) -> list[float]:
    """The means over the splits of the variant with the least mean log loss."""
    means = [
        np.mean([run["figures"][variant][str(size)] for run in runs], axis=0).tolist()
        for variant in runs[0]["figures"]
    ]
    return min(means, key=lambda figures: figures[0])


def ranks(values: list[float], best_is_low: bool) -> list[float]:
    from scipy.stats import rankdata

    signed = np.round(values, 12) * (1 if best_is_low else -1)
    return rankdata(signed).tolist()


# --- options and report ---


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="DIR", default=os.environ.get("CARDBOOST_DATA"))
    parser.add_argument("--sets", nargs="+", metavar="NAME", default=list(SETS))
    parser.add_argument("--sizes", nargs="+", type=int, metavar="TERMS", default=list(SIZES))
    parser.add_argument("--splits", type=int, nargs="+", metavar="SEED", default=[0, 1, 2, 3, 4])
    parser.add_argument("--threads", type=int, default=2, help="so many contenders at once, one thread each")
    parser.add_argument("--fasterrisk-python", metavar="PATH", help="a Python that can import fasterrisk")
    parser.add_argument("--keep", metavar="DIR", help="keep FasterRisk's scores there and use those kept")
    parser.add_argument("--only", nargs="+", choices=tuple(CONTENDERS), metavar="CONTENDER")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    if options.data is None or not (Path(options.data) / "ida").is_dir():
        sys.exit("The twelve sets are needed: give the folder that holds ida/ with --data or CARDBOOST_DATA.")
    names = [name for name in CONTENDERS if options.only is None or name in options.only]
    if RISK in names and options.fasterrisk_python is None:
        print("FasterRisk is left out: name a Python that has it with --fasterrisk-python.")
        names.remove(RISK)
    require({"cardboost": "install it with `pip install .`."})
    if BOOSTER in names:
        require({"lightgbm": "install it with `pip install '.[bench]'`, or leave it out with --only."})
    facts = machine(PACKAGES)
    print_machine(facts)
    groups = [[who for who in names if who != RISK], [who for who in names if who == RISK]]
    jobs = [
        (group, name, seed) for seed in options.splits for name in options.sets for group in groups if group
    ]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.threads) as pool:
        found = list(pool.map(lambda job: run(*job, options, folder), jobs))
    done = {
        (who, name, seed): own
        for (_, name, seed), results in zip(jobs, found, strict=True)
        for who, own in results.items()
    }

    means = {
        (name, size, who): best_variant([done[who, name, seed] for seed in options.splits], size)
        for name in options.sets
        for size in options.sizes
        for who in names
    }
    mean_ranks = report(means, names, options)
    goals = compare(mean_ranks, names, options.sizes)
    report_goals(goals, "Goals: the best mean rank")
    seconds = {who: sum(own["seconds"] for job, own in done.items() if job[0] == who) for who in names}
    print("\nSeconds: " + ", ".join(f"{who} {seconds[who]:.0f}" for who in names))
    content = {
        "machine": facts,
        "settings": {
            "prices": PRICES,
            "folds": FOLDS,
            "rates": RATES,
            "l1": L1_PATH,
            "splits": options.splits,
        },
        "seconds": seconds,
        "means": [[*key, *figures] for key, figures in means.items()],
        "mean_ranks": [[*key, rank] for key, rank in mean_ranks.items()],
        "runs": [[*job, own] for job, own in done.items()],
    }
    write_json(options.json, content, goals)


def report(means: dict, names: list[str], options: argparse.Namespace) -> dict[tuple[str, int, str], float]:
    """Print one table per measure and one of mean ranks, which are returned."""
    mean_ranks = {}
    for m, measure_name in enumerate(MEASURES):
        rows = []
        for size in options.sizes:
            placed = []
            for name in options.sets:
                values = [means[name, size, who][m] for who in names]
                placed.append(ranks(values, best_is_low=measure_name != "AUC"))
                rows.append([f"{name}, {size} terms"] + [f"{value:.4f}" for value in values])
            for who, rank in zip(names, np.mean(placed, axis=0), strict=True):
                mean_ranks[measure_name, size, who] = float(rank)
        print(f"\nTest {measure_name}, mean over splits {options.splits}")
        print_table(["data", *names], rows)
    print(f"\nMean rank over {len(options.sets)} sets (1 is best)")
    print_table(
        ["measure", *names],
        [
            [f"{m}, {size} terms"] + [f"{mean_ranks[m, size, who]:.2f}" for who in names]
            for m in MEASURES
            for size in options.sizes
        ],
    )
    return mean_ranks


def compare(mean_ranks: dict, names: list[str], sizes: list[int]) -> list[Goal]:
    others = [who for who in names if who != OURS]
    if OURS not in names or not others:
        return []
    return [
        Goal(
            f"{m}, {size} terms: mean rank / best of the others",
            mean_ranks[m, size, OURS],
            min(mean_ranks[m, size, who] for who in others),
        )
        for m in MEASURES
        for size in sizes
    ]


if __name__ == "__main__":
    run_benchmark(main, measure)

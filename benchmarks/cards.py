"""How good are small cards? Test log loss, AUC and error of models of 5, 10, 15 and 20 stumps.

    python benchmarks/cards.py --data DIR --fasterrisk-python PATH      # DIR/ida holds the twelve sets

Twelve sets, five splits each: 80 % of the rows to train, 20 % to test. A term is one stump. Contenders:

* cardboost: `CardBoostClassifier(max_terms=size)` as it is, proof included.
* cardboost, points: the same model as a card in whole points, `scorecard(points=5)`.
* FasterRisk: integer points on stump features, x <= cut, at every gap between values or at 20 quantiles where
  there are more gaps; its defaults otherwise. Of its pool the model with the least training loss is taken. It
  wants an older NumPy: --fasterrisk-python names the Python of an environment that has it.
* LightGBM, stopped after so many stumps. Of the learning rates 0.1, 0.3, 0.5 and 1.0 the one with the least
  log loss in 5-fold cross-validation on the training rows, for every split and size.
* LightGBM, best rate: for every set and size the rate with the best mean test log loss. That is chosen on the
  test rows and can only help it.
* AdaBoost, the first stumps of it. Of scikit-learn's probabilities and the logistic function of its unscaled
  margin those with the better mean test log loss are taken for every set and size, in its favour as well.
* L1CG, thinned: cardboost without a limit on terms, at six prices l1. The stumps of largest weight are kept
  and refitted together; of the six the one with the least training objective is taken. The refit has the
  price l2 = 1 / rows, so that it exists where the classes can be separated.

Contenders are ranked on every set by the mean over the splits; equal means share a rank. cardboost and its
cards in points are ranked apart, each among the peers. Goal: the best mean rank over the sets, for every
measure and size.
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
SIZES = (5, 10, 15, 20)
MEASURES = ("log loss", "AUC", "error")
OURS, POINTS = "cardboost", "cardboost, points"
RISK, ADABOOST, L1CG = "FasterRisk", "AdaBoost", "L1CG, thinned"
BOOSTER, BEST_RATE = "LightGBM", "LightGBM, best rate"
PACKAGES = ("cardboost", "numpy", "scikit-learn", "lightgbm")

FOLDS = 5
QUANTILES = 20
RISK_POINTS = 5  # of a term at most, FasterRisk's default
RATES = (0.1, 0.3, 0.5, 1.0)
L1_PATH = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)


# --- contenders: scores (log odds) of the test rows for every variant and size ---


def loss_of(y: np.ndarray, scores: np.ndarray) -> float:
    return float(np.logaddexp(0.0, -y * scores).mean())


def cards(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, sizes: list[int]) -> dict:
    from cardboost import CardBoostClassifier

    models = {size: CardBoostClassifier(max_terms=size).fit(X, y) for size in sizes}
    return {
        "scores": {"": {size: model.decision_function(X_test) for size, model in models.items()}},
        "chosen": {size: getattr(model, "l2_", model.l2) for size, model in models.items()},
    }


def cards_in_points(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, sizes: list[int]) -> dict:
    from cardboost import CardBoostClassifier

    scores = {}
    for size in sizes:
        card = CardBoostClassifier(max_terms=size).fit(X, y).scorecard(points=RISK_POINTS)
        scores[size] = card.ensemble.decision_function(X_test)
    return {"scores": {"": scores}}


def lightgbm_scores(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, sizes: list[int]) -> dict:
    """The scores of the test rows for every rate and size."""
    from lightgbm import LGBMClassifier

    scores = {}
    for rate in RATES:
        model = LGBMClassifier(
            n_estimators=max(sizes),
            num_leaves=2,
            learning_rate=rate,
            min_child_samples=1,
            verbose=-1,
        ).fit(X, y)
        scores[f"rate {rate}"] = {
            size: model.predict(X_test, raw_score=True, num_iteration=size) for size in sizes
        }
    return scores


def lightgbm_best_rate(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, sizes: list[int]) -> dict:
    return {"scores": lightgbm_scores(X, y, X_test, sizes)}


def lightgbm_stumps(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, sizes: list[int]) -> dict:
    from sklearn.model_selection import StratifiedKFold

    losses = {(f"rate {rate}", size): 0.0 for rate in RATES for size in sizes}
    for kept, held in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        for rate, by_size in lightgbm_scores(X[kept], y[kept], X[held], sizes).items():
            for size, scores in by_size.items():
                losses[rate, size] += len(held) * loss_of(y[held], scores)
    by_rate = lightgbm_scores(X, y, X_test, sizes)
    chosen = {size: min(by_rate, key=lambda rate: losses[rate, size]) for size in sizes}
    return {"scores": {"": {size: by_rate[chosen[size]][size] for size in sizes}}, "chosen": chosen}


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
        full = CardBoostClassifier(max_terms=None, l1=l1, l2=0.0, max_iter=300).fit(X, y)
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
    POINTS: cards_in_points,
    RISK: risk_scores,
    BOOSTER: lightgbm_stumps,
    BEST_RATE: lightgbm_best_rate,
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
    if options.keep and OURS not in contenders and POINTS not in contenders:
        what = repr((contenders, options.sizes)).encode()
        key = hashlib.sha256(X.tobytes() + X_test.tobytes() + y.tobytes() + what)
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
    parser.add_argument("--keep", metavar="DIR", help="keep the peers' scores there and use those kept")
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
    if BOOSTER in names or BEST_RATE in names:
        require({"lightgbm": "install it with `pip install '.[bench]'`, or leave it out with --only."})
    facts = machine(PACKAGES)
    print_machine(facts)
    peers = [who for who in names if who not in (OURS, POINTS, RISK)]
    groups = [[who for who in names if who in (OURS, POINTS)], peers, [who for who in names if who == RISK]]
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
    goals = compare(mean_ranks)
    report_goals(goals, "Goals: the best mean rank")
    seconds = {who: sum(own["seconds"] for job, own in done.items() if job[0] == who) for who in names}
    print("\nSeconds: " + ", ".join(f"{who} {seconds[who]:.0f}" for who in names))
    content = {
        "machine": facts,
        "settings": {
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


def report(means: dict, names: list[str], options: argparse.Namespace) -> dict[tuple[str, str, int], dict]:
    """Print one table per measure and those of mean ranks, which are returned."""
    for m, measure_name in enumerate(MEASURES):
        rows = [
            [f"{name}, {size} terms"] + [f"{means[name, size, who][m]:.4f}" for who in names]
            for size in options.sizes
            for name in options.sets
        ]
        print(f"\nTest {measure_name}, mean over splits {options.splits}")
        print_table(["data", *names], rows)
    mean_ranks = {}
    for ours in (OURS, POINTS):
        if ours not in names:
            continue
        ranked = [who for who in names if who == ours or who not in (OURS, POINTS)]
        rows = []
        for m, measure_name in enumerate(MEASURES):
            for size in options.sizes:
                placed = [
                    ranks([means[name, size, who][m] for who in ranked], best_is_low=measure_name != "AUC")
                    for name in options.sets
                ]
                average = np.mean(placed, axis=0)
                rows.append([f"{measure_name}, {size} terms"] + [f"{rank:.2f}" for rank in average])
                mean_ranks[ours, measure_name, size] = dict(zip(ranked, average.tolist(), strict=True))
        print(f"\nMean rank over {len(options.sets)} sets (1 is best)")
        print_table(["measure", *ranked], rows)
    return mean_ranks


def compare(mean_ranks: dict) -> list[Goal]:
    return [
        Goal(
            f"{ours}, {measure_name}, {size} terms: mean rank / best of the others",
            by_contender[ours],
            min(rank for who, rank in by_contender.items() if who != ours),
        )
        for (ours, measure_name, size), by_contender in mean_ranks.items()
        if len(by_contender) > 1
    ]


if __name__ == "__main__":
    run_benchmark(main, measure)

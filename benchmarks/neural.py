"""How fast are boosted networks, how accurate, and how few nets are enough?

1. speed: 50 nets of 8 tanh units, squared loss, all weights refitted, 5,000 rows x 20 features (friedman1).
   The same loop runs three times: with the built-in net, with scikit-learn's MLPRegressor (lbfgs) as
   `estimator`, and with a torch module trained by torch's L-BFGS (strong Wolfe). All take at most 200 steps
   for a net and double precision; the decay is that of MLPRegressor's default (1e-4 divided by the rows).
   Each in a process of its own with the same number of threads, best of several. torch is left out where it
   is not installed (`pip install torch==2.13.0`).
2. rows: the time of ours for 5,000 to 40,000 rows.
3. accuracy: `NeuralBoostRegressor()` as it is against GradientBoostingRegressor as it is and ridge
   regression with its price by cross-validation, five times five folds of friedman1 (2,000 rows, noise 1) and
   of scikit-learn's diabetes. Standard errors are those of the differences, fold by fold, over all folds.
4. pruning: on friedman1, half for training: 30 nets (learning rate 0.1, decay 0.01), then at most 18 (40 %
   fewer), 12 and 6 of them by `max_terms`.

Goals: 5 times faster than with MLPRegressor and 3 times faster than with torch at a training loss that is not
higher; time per row at 40,000 rows at most 1.3 times that at 5,000; R2 not below the peers' by more than one
standard error; with 40 % fewer nets an R2 that is not lower by more than one.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np

from _harness import (
    Goal,
    import_failure,
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

OURS, MLP, TORCH = "cardboost", "MLPRegressor", "torch"
PACKAGES = ("cardboost", "numpy", "scipy", "scikit-learn", "torch")
ROWS, FEATURES, NETS, UNITS, STEPS = 5000, 20, 50, 8, 200


def table(rows: int, features: int = FEATURES, seed: int = 0):
    from sklearn.datasets import make_friedman1

    return make_friedman1(rows, features, noise=1.0, random_state=seed)


def torch_regressor(threads: int):
    """A module of torch with scikit-learn's manners."""
    import torch
    from sklearn.base import BaseEstimator, RegressorMixin

    torch.set_num_threads(threads)

    class TorchNet(RegressorMixin, BaseEstimator):
        def __init__(self, alpha: float = 1e-4, random_state: int = 0) -> None:
            self.alpha = alpha
            self.random_state = random_state

        def fit(self, X, y):
            torch.manual_seed(self.random_state)
            inputs, wanted = torch.from_numpy(X), torch.from_numpy(np.asarray(y)).reshape(-1, 1)
            self.net_ = torch.nn.Sequential(
                torch.nn.Linear(X.shape[1], UNITS), torch.nn.Tanh(), torch.nn.Linear(UNITS, 1)
            ).double()
            optimizer = torch.optim.LBFGS(
                self.net_.parameters(), lr=1.0, max_iter=STEPS, max_eval=10 * STEPS, history_size=10,
                line_search_fn="strong_wolfe",
            )  # fmt: skip
            decay = self.alpha / (2 * len(X))

            def closure():
                optimizer.zero_grad()
                loss = 0.5 * torch.mean((self.net_(inputs) - wanted) ** 2)
                loss = loss + decay * (
                    self.net_[0].weight.square().sum() + self.net_[2].weight.square().sum()
                )
                loss.backward()
                return loss

            optimizer.step(closure)
            return self

        def predict(self, X):
            with torch.no_grad():
                return self.net_(torch.from_numpy(X)).numpy()[:, 0]

    return TorchNet()


def measure_speed(task: dict) -> dict:
    from sklearn.neural_network import MLPRegressor

    from cardboost import NeuralBoostRegressor

    warnings.simplefilter("ignore")
    X, y = table(task["rows"])
    X = (X - X.mean(axis=0)) / X.std(axis=0)  # peers do not standardise
    peers = {
        MLP: lambda: MLPRegressor(
            hidden_layer_sizes=(UNITS,), activation="tanh", solver="lbfgs", max_iter=STEPS
        ),
        TORCH: lambda: torch_regressor(task["threads"]),
        OURS: lambda: None,
    }
    model = NeuralBoostRegressor(
        max_iter=task["nets"], hidden=UNITS, early_stopping=False, l2=1e-4 / task["rows"],
        net_iter=STEPS, random_state=0, n_jobs=task["threads"], estimator=peers[task["contender"]](),
    )  # fmt: skip
    runs = []
    for _ in range(task["repeats"]):
        seconds, _ = timed(lambda: model.fit(X, y))
        runs.append(seconds)
    return {"seconds": min(runs), "loss": 2.0 * model.loss_curve_[-1], "first": 2.0 * model.loss_curve_[0]}


def measure_accuracy(task: dict) -> dict:
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import RepeatedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from cardboost import NeuralBoostRegressor

    X, y = load_diabetes(return_X_y=True) if task["set"] == "diabetes" else table(2000, 10)
    models = {
        OURS: lambda: NeuralBoostRegressor(random_state=0, n_jobs=task["threads"]),
        "gradient boosting": lambda: GradientBoostingRegressor(random_state=0),
        "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 25))),
    }
    scores: dict[str, list[float]] = {name: [] for name in models}
    seconds: dict[str, float] = dict.fromkeys(models, 0.0)
    nets = []
    for kept, held in RepeatedKFold(n_splits=5, n_repeats=task["repeats"], random_state=0).split(X):
        for name, make in models.items():
            spent, model = timed(lambda make=make, kept=kept: make().fit(X[kept], y[kept]))
            scores[name].append(float(model.score(X[held], y[held])))
            seconds[name] += spent
            if name == OURS:
                nets.append(model.ensemble_.n_terms)
    return {"scores": scores, "seconds": seconds, "nets": float(np.mean(nets))}


def measure_pruning(task: dict) -> dict:
    from cardboost import NeuralBoostRegressor

    found: dict[str, list[float]] = {}
    guarantees: dict[str, list[float]] = {}
    sizes: dict[str, list[int]] = {}
    for seed in range(task["repeats"]):
        X, y = table(2000, 10, seed)
        for terms in (None, 18, 12, 6):
            model = NeuralBoostRegressor(
                max_iter=30, learning_rate=0.1, early_stopping=False, l2=0.01, max_terms=terms,
                random_state=seed, n_jobs=task["threads"],
            ).fit(X[:1000], y[:1000])  # fmt: skip
            name = str(terms or 30)
            found.setdefault(name, []).append(float(model.score(X[1000:], y[1000:])))
            sizes.setdefault(name, []).append(model.ensemble_.n_terms)
            if terms:
                assert model.certificate_.verify(X[:1000], y[:1000])
                guarantees.setdefault(name, []).append(model.certificate_.guarantee)
    return {"scores": found, "guarantees": guarantees, "sizes": sizes}


MEASURES = {"speed": measure_speed, "accuracy": measure_accuracy, "pruning": measure_pruning}


def measure(task: dict) -> dict:
    return MEASURES[task["part"]](task)


# --- the parent ---


def run(part: str, threads: int, **more) -> dict:
    words = " ".join(str(own) for own in more.values())
    print(f"  {part} {words} ...", file=sys.stderr)
    return run_in_own_process(__file__, {"part": part, "threads": threads, **more}, threads)


def speed(options) -> tuple[dict, list[Goal]]:
    contenders = [OURS, MLP]
    if import_failure("torch") is None:
        contenders.append(TORCH)
    else:
        print("torch is not installed: left out")
    found = {
        name: run(
            "speed", options.threads, contender=name, rows=ROWS, nets=options.nets, repeats=options.repeats
        )
        for name in contenders
    }
    own = found[OURS]
    rows = [
        [name, f"{each['seconds']:.2f}", f"{each['seconds'] / own['seconds']:.2f}", f"{each['loss']:.5f}"]
        for name, each in found.items()
    ]
    print(f"\n{options.nets} nets of {UNITS} units, {ROWS} x {FEATURES}, {options.threads} thread(s)")
    print_table(["learner", "seconds", "/ ours", "training loss"], rows)
    goals = []
    for name, limit in ((MLP, 5.0), (TORCH, 3.0)):
        if name in found:
            what = f"time with {name} / ours"
            goals.append(Goal(what, found[name]["seconds"] / own["seconds"], limit, at_most=False))
            goals.append(Goal(f"training loss / that of {name}", own["loss"] / found[name]["loss"], 1.0))
    return found, goals


def by_rows(options) -> tuple[dict, list[Goal]]:
    sizes = (5000, 10_000, 20_000, 40_000)
    nets = min(10, options.nets)
    found = {
        size: run("speed", options.threads, contender=OURS, rows=size, nets=nets, repeats=options.repeats)
        for size in sizes
    }
    rows = [
        [f"{size:,}", f"{own['seconds']:.2f}", f"{1e6 * own['seconds'] / size / nets:.2f}"]
        for size, own in found.items()
    ]
    print(f"\n{nets} nets, by rows")
    print_table(["rows", "seconds", "microseconds per row and net"], rows)
    ratio = found[sizes[-1]]["seconds"] / sizes[-1] / (found[sizes[0]]["seconds"] / sizes[0])
    return {str(size): own for size, own in found.items()}, [
        Goal("time per row at 40,000 rows / at 5,000", ratio, 1.3)
    ]


def accuracy(options) -> tuple[dict, list[Goal]]:
    results, goals, rows = {}, [], []
    for name in ("friedman1", "diabetes"):
        found = run("accuracy", options.threads, set=name, repeats=options.folds)
        results[name] = found
        own = np.array(found["scores"][OURS])
        for other, scores in found["scores"].items():
            each = np.array(scores)
            error = float((own - each).std(ddof=1) / np.sqrt(len(own))) if other != OURS else 0.0
            nets = f"{found['nets']:.1f}" if other == OURS else ""
            cells = [f"{each.mean():.4f}", f"{(own - each).mean():+.4f}", f"{error:.4f}", nets]
            rows.append([f"{name}: {other}", *cells, f"{found['seconds'][other] / len(own):.2f}"])
            if other == "gradient boosting" or (other == "ridge" and name == "diabetes"):
                what = f"{name}: R2 above {other}, in standard errors"
                goals.append(Goal(what, float((own - each).mean()) / max(error, 1e-12), -1.0, at_most=False))
    print(f"\nR2, {options.folds} times five folds")
    print_table(["set and model", "mean R2", "ours - it", "its s.e.", "nets", "s per fit"], rows)
    return results, goals


def pruning(options) -> tuple[dict, list[Goal]]:
    found = run("pruning", options.threads, repeats=10)
    whole = np.array(found["scores"]["30"])
    rows = []
    goals = []
    for name, scores in found["scores"].items():
        each = np.array(scores)
        error = float(each.std(ddof=1) / np.sqrt(len(each)))
        least = f"{min(found['guarantees'][name]):.4f}" if name in found["guarantees"] else ""
        kept = float(np.mean(found["sizes"][name]))
        rows.append(
            [f"{kept:.1f}", f"{each.mean():.4f}", f"{(each - whole).mean():+.4f}", f"{error:.4f}", least]
        )
        if name == "18":
            all_nets = float(np.mean(found["sizes"]["30"]))
            goals.append(Goal("nets kept / all", kept / all_nets, 0.6))
            goals.append(
                Goal("their R2 - that of all, in standard errors", (each - whole).mean() / error, -1.0, False)
            )
    print("\nfriedman1, nets kept, ten draws")
    print_table(["nets", "mean R2", "- all 30", "s.e.", "least guarantee"], rows)
    return found, goals


PARTS = {"speed": speed, "rows": by_rows, "accuracy": accuracy, "pruning": pruning}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=tuple(PARTS), default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--nets", type=int, default=NETS)
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many fits counts")
    parser.add_argument("--folds", type=int, default=5, help="times that the rows are dealt into five folds")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    require({"cardboost": "install it with `pip install .`."})
    facts = machine(PACKAGES)
    print_machine(facts)
    results, goals = {}, []
    for name in options.only:
        results[name], own = PARTS[name](options)
        goals += own
    report_goals(goals)
    write_json(options.json, {"machine": facts, "results": results}, goals)


if __name__ == "__main__":
    run_benchmark(main, measure)

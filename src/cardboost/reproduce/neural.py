"""The experiment of the paper on boosted networks (docs/reproduce.md): Iris.

Training loss and accuracy on unseen rows after 1, 2, ... nets, with the weight of the new net alone solved
for in every round (the paper's way) and with all weights together; the default model, which chooses its
size inside every training part; and three models of scikit-learn, all on the same folds.

The paper's claims about the squared loss are checked on every fit, in NumPy alone. From a fitted model come
its networks (weights, biases, gammas), its constants, and the losses that it reports; outputs, losses, gammas
and least squares are computed here. With Y in columns of 0 and 1, the constants b and the outputs h_k of the
nets (rows, outputs), after k nets

    F_k = b + gamma_1 h_1 + ... + gamma_k h_k,    loss = mean of |Y - F_k|^2 / 2,
    gamma_k = sum of (Y - F_k-1)'h_k / sum of h_k'h_k.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.report.figures import Chart, Figure
from cardboost.reproduce import page
from cardboost.reproduce.page import Array, Record, check_point, column, line, milestones, standard_error

Indices = NDArray[np.intp]

#: name: loss and refit. The first is the paper's own
CURVES = {
    "squared, last": ("squared", "last"),
    "squared, all": ("squared", "all"),
    "cross-entropy, last": ("cross_entropy", "last"),
    "cross-entropy, all": ("cross_entropy", "all"),
}
PAPER, PAPER_ALL = "squared, last", "squared, all"
DEFAULT = "NeuralBoostClassifier"
PEERS = ("LogisticRegression", "MLPClassifier", "GradientBoostingClassifier")
ALLOWED = 0.5  # standard errors below the best peer, at which the goal is still met

SAME_GAMMA = 1e-12  # share of gamma: up to which it is the closed form
SAME_LOSS = 1e-8  # share of the loss: up to which two solutions of least squares are the same
ROUNDING = 1e-13  # share of the loss: a rise of less is none

ALL_CORES = -1  # the processes of joblib
_LOSSES = {"squared": "Squared loss", "cross_entropy": "Cross-entropy"}
_FEW_NETS = 20  # up to which every number of nets has a row in the table
_MOST_SIZES = 5  # that the text lists one by one


@dataclass(frozen=True)
class FoldSettings:
    """The size of the experiment: ``repeats`` times ``folds`` parts; ``nets`` and ``l2`` of the curves."""

    repeats: int = 10
    folds: int = 10
    nets: int = 12
    l2: float = 0.1
    seed: int = 0


FULL = FoldSettings()


def run(
    settings: FoldSettings = FULL, say: Callable[[str], object] = lambda words: None, jobs: int | None = None
) -> Record:
    """Run the whole experiment. ``jobs``: processes that share the folds; None is one per core."""
    from joblib import Parallel, delayed
    from sklearn.datasets import load_iris
    from sklearn.model_selection import RepeatedStratifiedKFold

    X, y = load_iris(return_X_y=True)
    splits = RepeatedStratifiedKFold(
        n_splits=settings.folds, n_repeats=settings.repeats, random_state=settings.seed
    ).split(X, y)
    tasks = (
        delayed(_measure_fold)(X, y, train, test, settings, settings.seed + k)
        for k, (train, test) in enumerate(splits)
    )
    folds: list[Record] = []
    for fold in Parallel(n_jobs=ALL_CORES if jobs is None else jobs, return_as="generator")(tasks):
        folds.append(fold)
        if len(folds) % settings.folds == 0:
            say(f"{len(folds)} of {settings.folds * settings.repeats} folds")
    last, together = (boosted(name, settings, settings.seed).fit(X, y) for name in (PAPER, PAPER_ALL))
    return summary(settings, folds, _replays(last, together, X, y), len(y))


def boosted(name: str, settings: FoldSettings, seed: int) -> Any:
    """The model of one curve, with all its nets whatever they are worth."""
    from cardboost.estimators.neural_boost import NeuralBoostClassifier

    loss, refit = CURVES[name]
    return NeuralBoostClassifier(
        loss=loss, refit=refit, learning_rate=1.0, max_iter=settings.nets, l2=settings.l2,
        early_stopping=False, random_state=seed, n_jobs=1,
    )  # fmt: skip


def models(seed: int) -> dict[str, Any]:
    """The default and the peers. Networks and logistic regression get standardised inputs; ours does that
    itself, and trees need none. lbfgs is what scikit-learn advises for small data."""
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from cardboost.estimators.neural_boost import NeuralBoostClassifier

    return {
        DEFAULT: NeuralBoostClassifier(random_state=seed, n_jobs=1),
        "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression()),
        "MLPClassifier": make_pipeline(StandardScaler(), MLPClassifier(solver="lbfgs", random_state=seed)),
        "GradientBoostingClassifier": GradientBoostingClassifier(random_state=seed),
    }


def _measure_fold(
    X: Array, y: NDArray[Any], train: Indices, test: Indices, settings: FoldSettings, seed: int
) -> Record:
    """Fit and score all models, on one BLAS thread, so that results do not depend on the cores."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    def accuracy(labels: NDArray[Any]) -> float:
        return float(np.mean(labels == y[test]))

    with threadpool_limits(1):
        fits = {name: boosted(name, settings, seed).fit(X[train], y[train]) for name in CURVES}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            fitted = {name: model.fit(X[train], y[train]) for name, model in models(seed).items()}
        return {
            "curves": {
                name: {
                    "loss": [*fit.loss_curve_],
                    "accuracy": [accuracy(labels) for labels in fit.staged_predict(X[test])],
                }
                for name, fit in fits.items()
            },
            "accuracy": {name: accuracy(model.predict(X[test])) for name, model in fitted.items()},
            "size": (fitted[DEFAULT].n_iter_, float(fitted[DEFAULT].l2_)),
            "unfinished": any(issubclass(warning.category, ConvergenceWarning) for warning in caught),
            **_replays(fits[PAPER], fits[PAPER_ALL], X[train], y[train]),
        }


# the paper's claims


def _replays(last: Any, together: Any, X: Array, y: NDArray[Any]) -> Record:
    """A fit with ``refit="last"`` net by net, and what one with "all" lacks to the least loss of its nets."""
    Y = class_columns(y)
    return {
        "replay": replay(last.ensemble_, last.loss_curve_, X, Y),
        "gaps": refit_gaps(together.ensemble_, together.loss_curve_, X, Y),
    }


def net_outputs(ensemble: Any, X: Array) -> Array:
    """(nets, rows, outputs), from the numbers that a file of the model would hold; hidden units are tanh."""
    if ensemble.activation != "tanh":
        raise ValueError(f"the networks must be of tanh units; found {ensemble.activation!r}.")
    Z = (X - ensemble.mean) / ensemble.scale
    return np.array([np.tanh(Z @ net.hidden + net.bias) @ net.out + net.offset for net in ensemble.nets])


def class_columns(y: NDArray[Any]) -> Array:
    """One column of 0 and 1 for every class."""
    return np.asarray(y[:, None] == np.unique(y)).astype(np.float64)


def half_mean_square(residual: Array) -> float:
    return 0.5 * float(np.mean(np.sum(residual**2, axis=1)))


def least_loss(outputs: Array, Y: Array) -> float:
    """The least loss of any constants and gammas for these nets, by least squares."""
    rows, m = Y.shape
    ones = np.tile(np.eye(m), (rows, 1))
    nets = outputs.reshape(len(outputs), rows * m).T
    size = np.sqrt(np.sum(nets**2, axis=0))
    A = np.hstack([ones, nets / np.where(size > 0.0, size, 1.0)])
    weights = np.linalg.lstsq(A, Y.ravel(), rcond=None)[0]
    return half_mean_square(Y - (A @ weights).reshape(rows, m))


def replay(ensemble: Any, reported: Sequence[float], X: Array, Y: Array) -> Record:
    """Retrace a fit whose gammas stay as they were (``refit="last"``).

    Returns the loss without any net, and for every round the loss as computed here and as the model reports
    it, the gamma of the new net in the model and by its formula, and the least loss of any weights of the
    nets so far.
    """
    outputs = net_outputs(ensemble, X)
    residual = Y - ensemble.intercept
    start, rounds = half_mean_square(residual), []
    for k, (net, h) in enumerate(zip(ensemble.nets, outputs, strict=True), start=1):
        closed_form = float(np.sum(residual * h) / np.sum(h * h))
        residual = residual - net.gamma * h
        rounds.append(
            {"number": k, "loss": half_mean_square(residual), "reported": float(reported[k - 1]),
             "gamma": net.gamma, "closed_form": closed_form, "least": least_loss(outputs[:k], Y)}
        )  # fmt: skip
    return {"start": start, "rounds": rounds}


def refit_gaps(ensemble: Any, reported: Sequence[float], X: Array, Y: Array) -> list[float]:
    """After every net of a fit with ``refit="all"``: its loss less the least of the same nets, as a share."""
    outputs = net_outputs(ensemble, X)
    least = [least_loss(outputs[:k], Y) for k in range(1, len(outputs) + 1)]
    return [(float(loss) - best) / best for loss, best in zip(reported, least, strict=True)]


def losses(fit: Record) -> Array:
    """The losses of a replayed fit, with none, one, two ... nets."""
    return np.append(fit["start"], column(fit["rounds"], "loss"))


def check_decrease(fits: Sequence[Record]) -> Record:
    """No net raises the loss, and the losses are those that the model reports."""
    rises = sum(np.count_nonzero(losses(fit)[1:] > losses(fit)[:-1] * (1.0 + ROUNDING)) for fit in fits)
    rounds = [after for fit in fits for after in fit["rounds"]]
    difference = max(abs(after["loss"] - after["reported"]) / after["loss"] for after in rounds)
    return check_point(
        "a", 'squared loss with refit="last": the loss never increases',
        "{rises} of {nets} nets in {fits} fits raise it; losses recomputed differ from the reported ones by "
        "{difference:.1g} of their size at most", rises == 0 and difference <= SAME_LOSS,
        fits=len(fits), nets=len(rounds), rises=int(rises), difference=difference,
    )  # fmt: skip


def check_gammas(fits: Sequence[Record]) -> Record:
    rounds = [after for fit in fits for after in fit["rounds"]]
    gammas, closed_forms = column(rounds, "gamma"), column(rounds, "closed_form")
    difference = float(np.max(np.abs(gammas - closed_forms) / np.abs(closed_forms)))
    return check_point(
        "b", "every gamma is the closed form, sum Delta'h / sum h'h",
        f"{{gammas}} gammas from {gammas.min():.3g} to {gammas.max():.3g} differ by {{difference:.1g}} of "
        f"their size at most (allowed: {SAME_GAMMA:g})",
        difference <= SAME_GAMMA, gammas=len(gammas), difference=difference,
    )  # fmt: skip


def check_refit(fits: Sequence[Record], gaps: Sequence[Sequence[float]]) -> Record:
    """``gaps``: what fits with ``refit="all"`` lack to the least loss of their nets."""
    shares = [[after["least"] / after["loss"] for after in fit["rounds"]] for fit in fits]
    largest_share = max(map(max, shares))
    difference = max(abs(gap) for gaps_of_fit in gaps for gap in gaps_of_fit)
    return check_point(
        "c", 'refit="all" is at most "last" with the same nets',
        'least squares over all weights of the nets of "last" gives {largest_share:.6f} of its loss at most '
        "and {mean_share_at_the_end:.3f} in the mean of the fits; the losses of refit=\"all\" differ from "
        "those of least squares on their own nets by {difference:.1g} of their size at most "
        f"(allowed: {SAME_LOSS:g})",
        largest_share <= 1.0 + ROUNDING and difference <= SAME_LOSS, largest_share=largest_share,
        mean_share_at_the_end=float(np.mean([ends[-1] for ends in shares])), difference=difference,
    )  # fmt: skip


# over all folds


def summary(settings: FoldSettings, folds: Sequence[Record], whole: Record, rows: int) -> Record:
    """Means, scores and check points over all folds; ``whole``: the replays of the fits to all rows."""
    accuracy = {name: [fold["accuracy"][name] for fold in folds] for name in (DEFAULT, *PEERS)}
    accuracy |= {name: [fold["curves"][name]["accuracy"][-1] for fold in folds] for name in CURVES}
    scores = [_score(name, values, accuracy[DEFAULT]) for name, values in accuracy.items()]
    fits = [fold["replay"] for fold in (whole, *folds)]
    gaps = [fold["gaps"] for fold in (whole, *folds)]
    checks = [check_decrease(fits), check_gammas(fits), check_refit(fits, gaps)]
    sizes = Counter(fold["size"] for fold in folds)
    goal = goal_of(scores)
    return {
        "experiment": "neural",
        "holds": all(check["holds"] for check in checks),
        "goal_met": goal["reached"] >= goal["needed"],
        "settings": asdict(settings),
        "rows": rows,
        "curves": [
            mean_curve(name, [fold["curves"][name] for fold in folds], settings.nets) for name in CURVES
        ],
        "scores": scores,
        "sizes": [{"nets": nets, "l2": l2, "folds": sizes[nets, l2]} for nets, l2 in sorted(sizes)],
        "whole": whole["replay"],
        "checks": checks,
        "goal": goal,
        "unfinished": sum(fold["unfinished"] for fold in folds),
    }


def goal_of(scores: Sequence[Record]) -> Record:
    """The accuracy of the default, and that of the best peer less half a standard error of that one."""
    by_name = {score["name"]: score for score in scores}
    best = max((by_name[name] for name in PEERS), key=lambda score: score["mean"])
    needed = best["mean"] - ALLOWED * best["error"]
    return {"best": best["name"], "needed": needed, "reached": by_name[DEFAULT]["mean"]}


def _score(name: str, folds: Sequence[float], default: Sequence[float]) -> Record:
    """Mean accuracy over the folds with its standard error, and the default's less this, fold by fold."""
    ahead = np.array(default) - np.array(folds)
    return {
        "name": name, "mean": float(np.mean(folds)), "error": standard_error(folds),
        "default_ahead": float(ahead.mean()), "ahead_error": standard_error(ahead), "folds": [*folds],
    }  # fmt: skip


def mean_curve(name: str, curves: Sequence[Record], nets: int) -> Record:
    """Means over the folds after 1, 2, ... nets; fits that end early stay where they are."""

    def stretched(what: str) -> Array:
        return np.array([np.pad(curve[what], (0, nets - len(curve[what])), "edge") for curve in curves])

    accuracy = stretched("accuracy")
    loss, refit = CURVES[name]
    return {
        "name": name,
        "loss": loss,
        "refit": refit,
        "training": stretched("loss").mean(axis=0).tolist(),
        "accuracy": accuracy.mean(axis=0).tolist(),
        "error": [standard_error(values) for values in accuracy.T],
        "ended_early": sum(len(curve["loss"]) < nets for curve in curves),
    }


# report


def score_of(experiment: Record, name: str) -> Record:
    """The scores of one model."""
    return next(score for score in experiment["scores"] if score["name"] == name)


def files(experiment: Record) -> dict[str, bytes]:
    """Every file of the report by its name."""
    nets, rounds = experiment["settings"]["nets"], experiment["whole"]["rounds"]
    early = [
        f"{curve['ended_early']} ({curve['name']})" for curve in experiment["curves"] if curve["ended_early"]
    ]
    fields = {
        **experiment, **experiment["settings"], **experiment["goal"], "default": DEFAULT, "allowed": ALLOWED,
        "verdict": "met" if experiment["goal_met"] else "MISSED", "chosen": _sizes(experiment["sizes"]),
        "best_score": score_of(experiment, experiment["goal"]["best"]), "fitted": len(rounds),
        "all_fitted": len(rounds) == nets, "ended": len(rounds) < nets, "early": ", ".join(early),
    }  # fmt: skip
    names = {name: f"{loss}, {refit}, {nets} nets" for name, (loss, refit) in CURVES.items()}
    names[PAPER] += " (the paper's)"
    records = {
        "rounds": [{"number": 0, "loss": experiment["whole"]["start"]}, *rounds],
        "checks": experiment["checks"],
        "scores": [
            score | {"name": names.get(score["name"], score["name"])} for score in experiment["scores"]
        ],
        **{loss: _curve_rows(_of_loss(experiment, loss), nets) for loss in _LOSSES},
    }
    return page.report_files("neural", fields, records, _figures(experiment), experiment)


def _sizes(sizes: Sequence[Record]) -> str:
    ordered = sorted(sizes, key=lambda size: -size["folds"])
    shown = [
        f"{size['nets']} net{'s' if size['nets'] > 1 else ''} with l2={size['l2']:g} in {size['folds']} folds"
        for size in ordered[:_MOST_SIZES]
    ]
    rest = sum(size["folds"] for size in ordered[_MOST_SIZES:])
    return ", ".join(shown) + (f", others in {rest}" if rest else "")


def _of_loss(experiment: Record, loss: str) -> list[Record]:
    return [curve for curve in experiment["curves"] if curve["loss"] == loss]


def _curve_rows(curves: Sequence[Record], nets: int) -> list[Record]:
    """Both ways to refit, after every number of few nets, else after 1, 2, 5, 10, 20, ... ."""
    parts = ("training", "accuracy", "error")
    return [
        {"nets": k, **{curve["refit"]: {part: curve[part][k - 1] for part in parts} for curve in curves}}
        for k in milestones(nets, _FEW_NETS)[1:]
    ]


def _figures(experiment: Record) -> dict[str, Figure]:
    settings, best = experiment["settings"], experiment["goal"]["best"]
    nets = np.arange(1, settings["nets"] + 1)
    training, accuracy = [], []
    for loss, title in _LOSSES.items():
        curves = _of_loss(experiment, loss)
        lines = [line(f"refit = {curve['refit']}", nets, curve["training"]) for curve in curves]
        training.append(Chart(title, "nets", "training loss (log scale)", tuple(lines), y_scale="log"))
        lines = [
            line(f"refit = {curve['refit']}", nets, 100 * np.array(curve["accuracy"])) for curve in curves
        ]
        for name, style in ((DEFAULT, 3), (best, 4)):
            level = 100 * score_of(experiment, name)["mean"]
            lines.append(line(name, (1, max(settings["nets"], 2)), level, style))
        accuracy.append(Chart(title, "nets", "accuracy in %", tuple(lines)))
    repeats = []
    for name in (DEFAULT, *PEERS):
        folds = np.array(score_of(experiment, name)["folds"]).reshape(settings["repeats"], -1)
        repeats.append(line(name, np.arange(1, len(folds) + 1), 100 * folds.mean(axis=1)))
    return {
        "training.svg": page.panels(*training),
        "accuracy.svg": page.panels(*accuracy),
        "models.svg": page.panels(Chart("", "repeat", "accuracy in %", tuple(repeats))),
    }

"""The experiment of the paper on boosted networks (docs/reproduce.md): Iris.

Training loss and accuracy on unseen rows after 1, 2, ... nets, with the weight of the new net alone solved
for in every round (the paper's way) and with all weights together; the default model, which chooses its
size inside every training part; and three models of scikit-learn, all on the same folds. The paper's
claims about the squared loss are checked on every fit (neural_checks.py).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.report.document import CheckPoint
from cardboost.reproduce import neural_checks as checks
from cardboost.reproduce.neural_checks import Replay

Array = NDArray[np.float64]
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


@dataclass(frozen=True)
class FoldSettings:
    """The size of the experiment: ``repeats`` times ``folds`` parts; ``nets`` and ``l2`` of the curves."""

    repeats: int = 10
    folds: int = 10
    nets: int = 12
    l2: float = 0.1
    seed: int = 0


FULL = FoldSettings()


@dataclass(frozen=True)
class NetCurve:
    """Training loss, and accuracy on the rows held out, after every net of one fit."""

    loss: tuple[float, ...]
    accuracy: tuple[float, ...]


@dataclass(frozen=True)
class FoldMeasurement:
    """The measurements with one fold held out."""

    curves: dict[str, NetCurve]
    accuracy: dict[str, float]
    size: tuple[int, float]  # nets and decay that the default chose
    replay: Replay
    gaps: tuple[float, ...]
    unfinished: bool  # the MLP had not converged


@dataclass(frozen=True)
class Score:
    """Mean accuracy over the folds with its standard error, and the default's less this, fold by fold."""

    name: str
    mean: float
    error: float
    default_ahead: float
    ahead_error: float
    folds: tuple[float, ...]


@dataclass(frozen=True)
class MeanCurve:
    """Means over the folds after 1, 2, ... nets; fits that end early stay where they are."""

    name: str
    loss: str
    refit: str
    training: tuple[float, ...]
    accuracy: tuple[float, ...]
    error: tuple[float, ...]
    ended_early: int


@dataclass(frozen=True)
class Goal:
    """The default against the best of the peers, less half a standard error of that one."""

    best: str
    needed: float
    reached: float

    @property
    def met(self) -> bool:
        return self.reached >= self.needed


@dataclass(frozen=True)
class IrisExperiment:
    """All results of the folds, and of the paper's setting on all rows."""

    settings: FoldSettings
    rows: int
    curves: tuple[MeanCurve, ...]
    scores: tuple[Score, ...]  # the default, the peers, and the curves at their end
    sizes: tuple[tuple[int, float, int], ...]  # nets, decay, and in how many folds the default chose them
    whole: Replay  # the paper's setting on all rows
    checks: tuple[CheckPoint, ...]
    goal: Goal
    unfinished: int = field(default=0)  # folds in which the MLP had not converged

    @property
    def holds(self) -> bool:
        """Whether all check points of the method hold; the goal is not one of them."""
        return all(check.holds for check in self.checks)

    def score(self, name: str) -> Score:
        return next(score for score in self.scores if score.name == name)


def run(
    settings: FoldSettings = FULL, say: Callable[[str], object] = lambda words: None, jobs: int | None = None
) -> IrisExperiment:
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
    folds: list[FoldMeasurement] = []
    for fold in Parallel(n_jobs=_processes(jobs), return_as="generator")(tasks):
        folds.append(fold)
        if len(folds) % settings.folds == 0:
            say(f"{len(folds)} of {settings.folds * settings.repeats} folds")
    last, together = (boosted(name, settings, settings.seed).fit(X, y) for name in (PAPER, PAPER_ALL))
    whole, gaps = _replays(last, together, X, y)
    return summary(settings, folds, whole, gaps, len(y))


def _processes(jobs: int | None) -> int:
    from joblib import effective_n_jobs

    return int(effective_n_jobs(-1)) if jobs is None else jobs


def boosted(name: str, settings: FoldSettings, seed: int) -> Any:
    """The model of one curve, with all its nets whatever they are worth."""
    from cardboost.estimators.neural_boost import NeuralBoostClassifier

    loss, refit = CURVES[name]
    return NeuralBoostClassifier(
        loss=loss, refit=refit, learning_rate=1.0, n_estimators=settings.nets, l2=settings.l2,
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
) -> FoldMeasurement:
    """Fit and score all models, on one BLAS thread, so that results do not depend on the cores."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        fits = {name: boosted(name, settings, seed).fit(X[train], y[train]) for name in CURVES}
        curves = {}
        for name, fit in fits.items():
            accuracy = tuple(float(np.mean(labels == y[test])) for labels in fit.staged_predict(X[test]))
            curves[name] = NetCurve(tuple(fit.loss_curve_), accuracy)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            fitted = {name: model.fit(X[train], y[train]) for name, model in models(seed).items()}
        return FoldMeasurement(
            curves,
            {name: float(np.mean(model.predict(X[test]) == y[test])) for name, model in fitted.items()},
            (fitted[DEFAULT].n_iter_, float(fitted[DEFAULT].l2_)),
            *_replays(fits[PAPER], fits[PAPER_ALL], X[train], y[train]),
            any(issubclass(warning.category, ConvergenceWarning) for warning in caught),
        )


def _replays(last: Any, together: Any, X: Array, y: NDArray[Any]) -> tuple[Replay, tuple[float, ...]]:
    """A fit with ``refit="last"`` net by net, and what one with "all" lacks to the least loss of its nets."""
    Y = checks.class_columns(y)
    gaps = checks.refit_gaps(together.ensemble_, together.loss_curve_, X, Y)
    return checks.replay(last.ensemble_, last.loss_curve_, X, Y), gaps


# over all folds


def summary(
    settings: FoldSettings,
    folds: Sequence[FoldMeasurement],
    whole: Replay,
    gaps: tuple[float, ...],
    rows: int,
) -> IrisExperiment:
    """Means, scores and check points over all folds."""
    accuracy = {name: [fold.accuracy[name] for fold in folds] for name in (DEFAULT, *PEERS)}
    accuracy |= {name: [fold.curves[name].accuracy[-1] for fold in folds] for name in CURVES}
    scores = tuple(_score(name, values, accuracy[DEFAULT]) for name, values in accuracy.items())
    fits = [whole, *(fold.replay for fold in folds)]
    counts = Counter(fold.size for fold in folds)
    return IrisExperiment(
        settings,
        rows,
        tuple(_curve(name, [fold.curves[name] for fold in folds], settings.nets) for name in CURVES),
        scores,
        tuple((*size, count) for size, count in sorted(counts.items())),
        whole,
        (
            checks.check_decrease(fits),
            checks.check_gammas(fits),
            checks.check_refit(fits, [gaps, *(fold.gaps for fold in folds)]),
        ),
        goal_of(scores),
        sum(fold.unfinished for fold in folds),
    )


def goal_of(scores: Sequence[Score]) -> Goal:
    by_name = {score.name: score for score in scores}
    best = max((by_name[name] for name in PEERS), key=lambda score: score.mean)
    return Goal(best.name, best.mean - ALLOWED * best.error, by_name[DEFAULT].mean)


def _score(name: str, folds: Sequence[float], default: Sequence[float]) -> Score:
    ahead = np.array(default) - np.array(folds)
    return Score(
        name, float(np.mean(folds)), standard_error(folds), float(ahead.mean()), standard_error(ahead),
        tuple(folds),
    )  # fmt: skip


def _curve(name: str, curves: Sequence[NetCurve], nets: int) -> MeanCurve:
    def stretched(values: tuple[float, ...]) -> tuple[float, ...]:
        return values + values[-1:] * (nets - len(values))

    loss = np.array([stretched(curve.loss) for curve in curves])
    accuracy = np.array([stretched(curve.accuracy) for curve in curves])
    return MeanCurve(
        name, *CURVES[name], tuple(loss.mean(axis=0).tolist()), tuple(accuracy.mean(axis=0).tolist()),
        tuple(standard_error(values) for values in accuracy.T),
        sum(len(curve.loss) < nets for curve in curves),
    )  # fmt: skip


def standard_error(values: Sequence[float] | Array) -> float:
    """The standard error of the mean, a little too small, as the folds are not quite independent."""
    return float(np.std(values, ddof=1)) / float(np.sqrt(len(values)))

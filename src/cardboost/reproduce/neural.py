"""The experiment of the paper on boosted networks (docs/reproduce.md): Iris.

Training loss and accuracy on unseen rows after 1, 2, ... nets, with one weight found per round (the paper's)
and with all weights solved for together; the default model, which chooses its size inside every training
part; and three models of scikit-learn, all on the same folds. What the paper claims of the squared loss is
checked on every fit (neural_checks.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.reproduce.neural_checks import (
    Check,
    Replay,
    check_decrease,
    check_gammas,
    check_refit,
    class_columns,
    refit_gaps,
    replay,
)

Array = NDArray[np.float64]

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

Say = Callable[[str], object]


@dataclass(frozen=True)
class Settings:
    """How much is run: ``repeats`` times ``folds`` parts; ``nets`` and ``l2`` of the curves."""

    repeats: int = 10
    folds: int = 10
    nets: int = 12
    l2: float = 0.1
    seed: int = 0


FULL = Settings()


@dataclass(frozen=True)
class Stages:
    """One fit: training loss, and share of the rows held out that are right, after every net."""

    loss: tuple[float, ...]
    right: tuple[float, ...]


@dataclass(frozen=True)
class Part:
    """All that is measured with one fold held out."""

    stages: dict[str, Stages]
    right: dict[str, float]
    size: tuple[int, float]  # nets and decay that the default chose
    way: Replay
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
class Curve:
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
class Experiment:
    settings: Settings
    rows: int
    curves: tuple[Curve, ...]
    scores: tuple[Score, ...]  # the default, the peers, and the curves at their end
    sizes: tuple[tuple[int, float, int], ...]  # nets, decay, and in how many folds the default chose them
    whole: Replay  # the paper's setting on all rows
    checks: tuple[Check, ...]
    goal: Goal
    unfinished: int = field(default=0)  # folds in which the MLP had not converged

    @property
    def holds(self) -> bool:
        """The check points of the method; the goal is not one of them."""
        return all(check.holds for check in self.checks)

    def score(self, name: str) -> Score:
        return next(own for own in self.scores if own.name == name)


def run(settings: Settings = FULL, say: Say = lambda words: None, jobs: int | None = None) -> Experiment:
    """The whole experiment. ``jobs``: processes that share the folds; None is one per core."""
    from joblib import Parallel, delayed
    from sklearn.datasets import load_iris
    from sklearn.model_selection import RepeatedStratifiedKFold

    X, y = load_iris(return_X_y=True)
    splits = RepeatedStratifiedKFold(
        n_splits=settings.folds, n_repeats=settings.repeats, random_state=settings.seed
    ).split(X, y)
    tasks = (
        delayed(_part)(X, y, train, test, settings, settings.seed + k)
        for k, (train, test) in enumerate(splits)
    )
    parts: list[Part] = []
    for part in Parallel(n_jobs=_processes(jobs), return_as="generator")(tasks):
        parts.append(part)
        if len(parts) % settings.folds == 0:
            say(f"{len(parts)} of {settings.folds * settings.repeats} folds")
    whole, gaps = _on_all_rows(X, y, settings)
    return summary(settings, parts, whole, gaps, len(y))


def _processes(jobs: int | None) -> int:
    from joblib import effective_n_jobs

    return int(effective_n_jobs(-1)) if jobs is None else jobs


def boosted(name: str, settings: Settings, seed: int) -> Any:
    """The model of one curve: so many nets, whatever they are worth."""
    from cardboost.estimators.neural_classifier import NeuralBoostClassifier

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

    from cardboost.estimators.neural_classifier import NeuralBoostClassifier

    return {
        DEFAULT: NeuralBoostClassifier(random_state=seed, n_jobs=1),
        "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression()),
        "MLPClassifier": make_pipeline(StandardScaler(), MLPClassifier(solver="lbfgs", random_state=seed)),
        "GradientBoostingClassifier": GradientBoostingClassifier(random_state=seed),
    }


def _part(
    X: Array, y: NDArray[Any], train: NDArray[np.intp], test: NDArray[np.intp], settings: Settings, seed: int
) -> Part:
    """One fold. One BLAS thread, so that results do not depend on the cores."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        stages, fitted = {}, {}
        for name in CURVES:
            own = fitted[name] = boosted(name, settings, seed).fit(X[train], y[train])
            right = [float(np.mean(said == y[test])) for said in own.staged_predict(X[test])]
            stages[name] = Stages(tuple(own.loss_curve_), tuple(right))
        found, unfinished = _fit_all(models(seed), X[train], y[train])
        last, together = fitted[PAPER], fitted[PAPER_ALL]
        Y = class_columns(y[train])
        return Part(
            stages,
            {name: float(np.mean(own.predict(X[test]) == y[test])) for name, own in found.items()},
            (found[DEFAULT].n_iter_, float(found[DEFAULT].l2_)),
            replay(last.ensemble_, last.loss_curve_, X[train], Y),
            refit_gaps(together.ensemble_, together.loss_curve_, X[train], Y),
            unfinished,
        )


def _fit_all(wanted: dict[str, Any], X: Array, y: NDArray[Any]) -> tuple[dict[str, Any], bool]:
    """All fitted, and whether one of scikit-learn's had not converged."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ConvergenceWarning)
        fitted = {name: own.fit(X, y) for name, own in wanted.items()}
    return fitted, any(issubclass(own.category, ConvergenceWarning) for own in seen)


def _on_all_rows(X: Array, y: NDArray[Any], settings: Settings) -> tuple[Replay, tuple[float, ...]]:
    """The paper's setting on all rows, and what ``refit="all"`` lacks to the least loss of its nets."""
    Y = class_columns(y)
    last = boosted(PAPER, settings, settings.seed).fit(X, y)
    together = boosted(PAPER_ALL, settings, settings.seed).fit(X, y)
    whole = replay(last.ensemble_, last.loss_curve_, X, Y)
    return whole, refit_gaps(together.ensemble_, together.loss_curve_, X, Y)


# what the folds say together


def summary(
    settings: Settings, parts: Sequence[Part], whole: Replay, gaps: tuple[float, ...], rows: int
) -> Experiment:
    curves = tuple(_curve(name, [own.stages[name] for own in parts], settings.nets) for name in CURVES)
    folds = {name: [own.right[name] for own in parts] for name in (DEFAULT, *PEERS)}
    ends = {name: [own.stages[name].right[-1] for own in parts] for name in CURVES}
    scores = tuple(_score(name, own, folds[DEFAULT]) for name, own in (folds | ends).items())
    fits = [whole, *(own.way for own in parts)]
    checks = (
        check_decrease(fits),
        check_gammas(fits),
        check_refit(fits, [gaps, *(own.gaps for own in parts)]),
    )
    counted = Counter(own.size for own in parts)
    sizes = tuple((*size, count) for size, count in sorted(counted.items()))
    unfinished = sum(own.unfinished for own in parts)
    return Experiment(settings, rows, curves, scores, sizes, whole, checks, goal_of(scores), unfinished)


def goal_of(scores: Sequence[Score]) -> Goal:
    by_name = {own.name: own for own in scores}
    best = max((by_name[name] for name in PEERS), key=lambda own: own.mean)
    return Goal(best.name, best.mean - ALLOWED * best.error, by_name[DEFAULT].mean)


def _score(name: str, folds: Sequence[float], default: Sequence[float]) -> Score:
    ahead = np.array(default) - np.array(folds)
    return Score(
        name, float(np.mean(folds)), standard_error(folds), float(ahead.mean()), standard_error(ahead),
        tuple(folds),
    )  # fmt: skip


def _curve(name: str, stages: Sequence[Stages], nets: int) -> Curve:
    loss = np.array([_stretched(own.loss, nets) for own in stages])
    right = np.array([_stretched(own.right, nets) for own in stages])
    return Curve(
        name, *CURVES[name], tuple(loss.mean(axis=0).tolist()), tuple(right.mean(axis=0).tolist()),
        tuple(standard_error(own) for own in right.T), sum(len(own.loss) < nets for own in stages),
    )  # fmt: skip


def _stretched(values: tuple[float, ...], nets: int) -> tuple[float, ...]:
    return values + values[-1:] * (nets - len(values))


def standard_error(values: Sequence[float] | Array) -> float:
    """Of the mean, as if the folds were independent, which they are not quite: it is a little too small."""
    return float(np.std(values, ddof=1)) / float(np.sqrt(len(values)))

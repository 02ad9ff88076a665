"""Cross-validation of the temperature: all folds go together along the path of falling temperatures.

They stop where the held-out log loss has been above its least for several temperatures: from there on the
models only get larger and slower.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.on_simplex import soft_margin_path
from cardboost.boosting.stump_task import StumpTask
from cardboost.data.arguments import number, whole
from cardboost.data.labels import search_seed
from cardboost.estimators.rows import TrainingRows

Array = NDArray[np.float64]

#: what is tried unless the user says what: the sum of weights doubles every two steps
TEMPERATURES = tuple(2.0 ** (-0.5 * k) for k in range(-2, 15))
_TOL = 1e-3  # gap on the way: what is compared differs by much more
_PATIENCE = 4  # temperatures without a lower log loss after which the folds stop


def check_temperatures(temperatures: Any) -> tuple[float, ...]:
    """In falling order."""
    if temperatures is None:
        return TEMPERATURES
    try:
        values = list(temperatures)
    except TypeError as error:
        raise ValueError(f"temperatures must be a sequence of numbers; got {temperatures!r}.") from error
    if not values:
        raise ValueError("temperatures must have at least one entry.")
    return tuple(
        sorted({number("temperatures", value, 1e-300, strict=True) for value in values}, reverse=True)
    )


@dataclass(frozen=True)
class TemperatureSearch:
    """``temperatures`` in falling order; ``late``: whether to make do with what is known."""

    temperatures: tuple[float, ...]
    cv: Any
    random_state: Any
    late: Callable[[], bool]

    def run(
        self,
        rows: TrainingRows,
        tasks: Callable[[TrainingRows, TrainingRows], Iterator[tuple[str, StumpTask]]],
    ) -> tuple[float, dict[str, Any]]:
        """The temperature of the least held-out log loss, and what is known of all.

        ``tasks``: for rows to train on and rows to hold out, one task for two classes, else one per class.
        """
        folds = []
        for kept, held in self._folds(rows.y):
            fold_tasks = [task for _, task in tasks(rows.take(kept), rows.take(held))]
            folds.append(_fold_scores(rows.take(held), fold_tasks, self))
        tried: list[Array] = []  # for every temperature: folds by loss, error and terms
        for _ in self.temperatures:
            scores = [next(fold) for fold in folds if not self.late()]
            if len(scores) < len(folds):
                break
            tried.append(np.array(scores))
            means = [float(by_fold[:, 0].mean()) for by_fold in tried]
            if len(tried) - int(np.argmin(means)) > _PATIENCE:
                break
        if not tried:
            warnings.warn("time_limit: no temperature could be tried; the highest is taken.", stacklevel=6)
            return self.temperatures[0], {}
        losses, errors, terms = np.stack(tried, axis=2).transpose(1, 0, 2)
        temperatures = np.array(self.temperatures[: len(tried)])
        results = {
            "temperature": temperatures,
            "mean_log_loss": losses.mean(axis=0),
            "std_log_loss": losses.std(axis=0),
            "mean_error": errors.mean(axis=0),
            "std_error": errors.std(axis=0),
            "mean_terms": terms.mean(axis=0),
            "log_losses": losses,
            "errors": errors,
        }
        return float(temperatures[int(np.argmin(results["mean_log_loss"]))]), results

    def _folds(self, codes: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        from sklearn.model_selection import StratifiedKFold, check_cv  # many modules

        splitter = self.cv
        if not hasattr(splitter, "split") and not isinstance(splitter, list | tuple):
            folds = whole("cv", splitter, 2)
            most = int(np.bincount(codes).max())
            if most < folds:
                raise ValueError(
                    f"cv={folds}: no class has so many rows of positive weight; the largest has {most}. "
                    "Give fewer folds or a temperature."
                )
            splitter = StratifiedKFold(folds, shuffle=True, random_state=search_seed(self.random_state))
        with warnings.catch_warnings():  # a class with fewer rows than folds is missing in some of them
            warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
            folds_of = list(check_cv(splitter, codes, classifier=True).split(np.zeros(len(codes)), codes))
        yield from folds_of


def _fold_scores(
    held: TrainingRows, tasks: list[StumpTask], search: TemperatureSearch
) -> Iterator[tuple[float, float, int]]:
    """Log loss and error of the held-out rows, and terms in use, at one temperature after the other."""
    radii = [1.0 / temperature for temperature in search.temperatures]
    weight = held.effective_weights()
    weight = np.ones(len(held.y)) if weight is None else weight
    share = weight / weight.sum()
    for models in zip(*(soft_margin_path(task, radii, _TOL, search.late) for task in tasks), strict=True):
        scores, n_terms = [], 0
        for task, (_, weights, pool) in zip(tasks, models, strict=True):
            assert task.held_out is not None
            assert task.held_out.risk.sign is not None
            scores.append(task.held_out.margins(pool, weights) * task.held_out.risk.sign)
            n_terms += int(np.count_nonzero(weights[pool.n_free :]))
        yield *_held_out_scores(scores, held.y, share), n_terms


def _held_out_scores(scores: list[Array], codes: NDArray[np.intp], share: Array) -> tuple[float, float]:
    """Log loss and error, from the scores of the second class, or of every class against the rest.

    A score of s stands for the probability 1 / (1 + exp(-2 s)); those of several classes are divided by their
    sum.
    """
    every = np.stack([-scores[0], scores[0]] if len(scores) == 1 else scores)
    log_share = -np.logaddexp(0.0, -2.0 * every)
    of_label = log_share[codes, np.arange(len(codes))]
    if len(scores) > 1:
        of_label = of_label - np.logaddexp.reduce(log_share, axis=0)
    wrong = np.argmax(every, axis=0) != codes
    return -float(of_label @ share), float(wrong @ share)

"""Cross-validation of the temperature: every fold goes once along the path of falling temperatures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.soft_margin import soft_margin_path
from cardboost.boosting.training import TrainingTask
from cardboost.estimators.classes import ClassRows
from cardboost.estimators.validation import search_seed
from cardboost.validation import number, whole

Array = NDArray[np.float64]

#: what is tried unless the user says what: the sum of weights doubles every two steps
TEMPERATURES = tuple(2.0 ** (-0.5 * k) for k in range(-2, 15))
_TOL = 1e-3  # gap on the way: what is compared differs by much more


def check_temperatures(temperatures: Any) -> tuple[float, ...]:
    """In falling order."""
    if temperatures is None:
        return TEMPERATURES
    try:
        given = list(temperatures)
    except TypeError as error:
        raise ValueError(f"temperatures must be a sequence of numbers; got {temperatures!r}.") from error
    if not given:
        raise ValueError("temperatures must have at least one entry.")
    return tuple(sorted({number("temperatures", own, 1e-300, strict=True) for own in given}, reverse=True))


@dataclass(frozen=True)
class TemperatureSearch:
    """``temperatures`` in falling order; ``late``: whether to make do with what is known."""

    temperatures: tuple[float, ...]
    cv: Any
    random_state: Any
    late: Callable[[], bool]

    def run(
        self,
        rows: ClassRows,
        tasks: Callable[[ClassRows, ClassRows], Iterator[tuple[str, TrainingTask]]],
    ) -> tuple[float, dict[str, Any]]:
        """The temperature of the least held-out log loss, and what is known of all.

        ``tasks``: for rows to train on and rows to hold out, one task for two classes, else one per class.
        """
        found = []
        for kept, held in self._folds(rows.codes):
            parts = rows.take(kept), rows.take(held)
            found.append(self._fold(parts[1], (task for _, task in tasks(*parts))))
            if self.late():
                break
        return self._choice(*(np.array(own) for own in zip(*found, strict=True)))

    def _choice(self, losses: Array, errors: Array, terms: Array) -> tuple[float, dict[str, Any]]:
        """Folds by temperatures; NaN where there was no time."""
        known = np.isfinite(losses).any(axis=0)
        if not known.any():
            warnings.warn("time_limit: no temperature could be tried; the highest is taken.", stacklevel=6)
            return self.temperatures[0], {}
        temperatures = np.array(self.temperatures)[known]
        losses, errors, terms = losses[:, known], errors[:, known], terms[:, known]
        mean = np.nanmean(losses, axis=0)
        results = {
            "temperature": temperatures,
            "mean_log_loss": mean,
            "std_log_loss": np.nanstd(losses, axis=0),
            "mean_error": np.nanmean(errors, axis=0),
            "std_error": np.nanstd(errors, axis=0),
            "mean_terms": np.nanmean(terms, axis=0),
            "log_losses": losses,
            "errors": errors,
        }
        return float(temperatures[int(np.argmin(mean))]), results

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

    def _fold(self, held: ClassRows, tasks: Iterator[TrainingTask]) -> tuple[Array, Array, Array]:
        """Of one fold, for every temperature: log loss and error of the held-out rows, and terms in use; NaN
        where time was up."""
        radii = [1.0 / own for own in self.temperatures]
        scores, terms = [], np.zeros(len(radii))
        for task in tasks:
            assert task.held_out is not None
            assert task.held_out.risk.sign is not None
            own = np.full((len(radii), held.table.n_rows), np.nan)
            for k, (_, weights, pool) in enumerate(soft_margin_path(task, radii, _TOL, self.late)):
                if self.late():
                    break
                own[k] = task.held_out.margins(pool, weights) * task.held_out.risk.sign
                terms[k] += np.count_nonzero(weights[pool.n_free :])
            scores.append(own)
        weight = held.effective()
        share = (
            np.full(held.table.n_rows, 1.0 / held.table.n_rows) if weight is None else weight / weight.sum()
        )
        losses, errors = _held_out_scores(scores, held.codes, share)
        unknown = np.isnan(losses)
        errors[unknown] = terms[unknown] = np.nan
        return losses, errors, terms


def _held_out_scores(scores: list[Array], codes: NDArray[np.intp], share: Array) -> tuple[Array, Array]:
    """Log loss and error, from the scores of the second class, or of every class against the rest.

    A score of s stands for the probability 1 / (1 + exp(-2 s)); those of several classes are divided by their
    sum.
    """
    every = np.stack([-scores[0], scores[0]] if len(scores) == 1 else scores)
    log_share = -np.logaddexp(0.0, -2.0 * every)
    own = np.take_along_axis(log_share, codes[None, None, :], axis=0)[0]
    if len(scores) > 1:
        own = own - np.logaddexp.reduce(log_share, axis=0)
    guess = np.argmax(every, axis=0)
    return -(own @ share), (guess != codes) @ share

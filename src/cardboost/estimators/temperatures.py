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
        """The best temperature and what is known of all. ``tasks``: for rows to train on and rows to hold
        out, one task for two classes, else one per class."""
        errors, terms = [], []
        for kept, held in self._folds(rows.codes):
            own = self._fold(rows.take(held), (task for _, task in tasks(rows.take(kept), rows.take(held))))
            errors.append(own[0])
            terms.append(own[1])
            if self.late():
                break
        E, T = np.array(errors), np.array(terms)
        return self._choice(E, T)

    def _choice(self, errors: Array, terms: Array) -> tuple[float, dict[str, Any]]:
        known = np.isfinite(errors).any(axis=0)
        if not known.any():
            warnings.warn("time_limit: no temperature could be tried; the highest is taken.", stacklevel=5)
            return self.temperatures[0], {}
        mean = np.nanmean(errors[:, known], axis=0)
        spread = np.nanstd(errors[:, known], axis=0)
        best = int(np.argmin(mean))
        temperatures = np.array(self.temperatures)[known]
        results = {
            "temperature": temperatures,
            "mean_error": mean,
            "std_error": spread,
            "mean_terms": np.nanmean(terms[:, known], axis=0),
            "errors": errors[:, known],
        }
        return float(temperatures[best]), results

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

    def _fold(self, held: ClassRows, tasks: Iterator[TrainingTask]) -> tuple[Array, Array]:
        """Of one fold, for every temperature: the share of held-out rows that are wrong, and terms in use;
        NaN where time was up."""
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
        every = np.stack(scores)
        guess = (every[0] > 0).astype(np.intp) if len(scores) == 1 else np.argmax(every, axis=0)
        errors = (guess != held.codes) @ share
        unknown = np.isnan(every).any(axis=(0, 2))
        errors[unknown] = terms[unknown] = np.nan
        return errors, terms

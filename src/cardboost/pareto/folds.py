"""The folds of cross-validation: which rows are held out, and how models are scored on them."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cardboost.data.arguments import whole
from cardboost.data.categories import shown
from cardboost.data.labels import search_seed
from cardboost.data.sentences import counted
from cardboost.pareto.picking import RATES

Indices = NDArray[np.intp]


def take(X: Any, rows: Indices) -> Any:
    """Some rows of a table of any kind."""
    take_rows = getattr(X, "take_rows", None)
    return take_rows(rows) if callable(take_rows) else _safe_indexing(X, rows)


# ------------------------------------------------------------------------------------------------ splits


def splits(
    cv: Any, y: NDArray[Any], weight: Any, classifier: bool, random_state: Any
) -> list[tuple[Indices, Indices]]:
    """Training and held-out rows of every fold, those without weight left out."""
    from sklearn.model_selection import KFold, StratifiedKFold, check_cv  # many modules

    present = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    y = y[present]
    if isinstance(cv, str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        n_folds = whole("cv", cv, 2)
        seed = search_seed(random_state)
        if classifier:
            classes, counts = np.unique(y, return_counts=True)
            if counts.min() < n_folds:
                least = classes[int(np.argmin(counts))]
                raise ValueError(
                    f"cv={n_folds}: class {shown(least)} has {counted(int(counts.min()), 'row')} of positive "
                    "weight; every class needs one for every fold."
                )
            cv = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        else:
            if len(y) < n_folds:
                raise ValueError(f"cv={n_folds}: there are only {len(y)} rows of positive weight.")
            cv = KFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        folds = list(check_cv(cv, y, classifier=classifier).split(np.zeros(len(y)), y))
    if not folds:
        raise ValueError("cv gives no folds; at least one is needed.")
    for k, (kept, held) in enumerate(folds):
        if len(kept) == 0 or len(held) == 0:
            raise ValueError(f"cv: fold {k + 1} has no rows to train on, or none that are held out.")
        if classifier and len(np.unique(y[kept])) < len(np.unique(y)):
            raise ValueError(f"cv: the training rows of fold {k + 1} do not have every class.")
    return [(present[kept], present[held]) for kept, held in folds]


# ------------------------------------------------------------------------------------------------ scoring


#: the scorers of scikit-learn for regression
REGRESSION_SCORERS = (
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
    "neg_median_absolute_error",
    "neg_mean_absolute_percentage_error",
    "neg_max_error",
    "neg_mean_squared_log_error",
    "neg_root_mean_squared_log_error",
    "neg_mean_poisson_deviance",
    "neg_mean_gamma_deviance",
    "d2_absolute_error_score",
    "explained_variance",
    "r2",
)


@dataclass(frozen=True, eq=False)
class Scorer:
    """A score of models on held-out rows, with its name for messages and tables."""

    name: str
    score: Callable[..., Any]

    @classmethod
    def make(cls, scoring: Any, classifier: bool, weighted: bool) -> Scorer:
        """The scorer that ``scoring`` of ``pareto_front`` names."""
        from sklearn.metrics import get_scorer, get_scorer_names  # many modules

        names = get_scorer_names()
        if scoring is None:
            scoring = "neg_log_loss" if classifier else "neg_mean_squared_error"
        if isinstance(scoring, str):
            if scoring not in names:
                import difflib

                near = difflib.get_close_matches(scoring, names, n=1, cutoff=0.5)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                raise ValueError(
                    f"scoring must be a name of sklearn.metrics.get_scorer_names() or a callable "
                    f"(estimator, X, y); got {scoring!r}{hint}."
                )
            if not classifier and scoring not in REGRESSION_SCORERS:
                raise ValueError(
                    f"scoring={scoring!r} is for classes, but the target holds numbers: accepted are "
                    f"{', '.join(map(repr, REGRESSION_SCORERS))}, or a callable (estimator, X, y)."
                )
            return cls(scoring, get_scorer(scoring))
        if not callable(scoring):
            raise TypeError(
                "scoring must be a name of sklearn.metrics.get_scorer_names() or a callable (estimator, X, "
                f"y); got {scoring!r}."
            )
        name = getattr(scoring, "__name__", None) or str(scoring)
        if weighted and not _takes_weight(scoring):
            raise ValueError(
                f"scoring: {name} must take sample_weight=... where the rows have weights; it does not."
            )
        return cls(name, scoring)

    def __call__(self, model: Any, X: Any, y: Any, weight: Any, fold: int) -> float:
        options = {} if weight is None else {"sample_weight": _moderate(weight)}
        try:
            value = self.score(model, X, y, **options)
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(
                f"scoring={self.name!r} failed on the held-out rows of fold {fold + 1}: {error}"
            ) from error
        number = isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            raise ValueError(
                f"scoring={self.name!r} must give a finite number; it gave {value!r} on the held-out rows of "
                f"fold {fold + 1}."
            )
        return float(value)


def _takes_weight(scoring: Any) -> bool:
    """Whether a callable has a parameter ``sample_weight``, as the scorers of scikit-learn do."""
    try:
        return "sample_weight" in inspect.signature(scoring).parameters
    except (TypeError, ValueError):
        return False


def recalls(model: Any, X: Any, y: Any, weight: Any) -> tuple[float, ...] | None:
    """At each of the ``RATES`` of false alarms the largest recall of any threshold; None for one class."""
    from sklearn.metrics import roc_curve

    positive = np.asarray(y == model.classes_[1])
    if positive.all() or not positive.any():
        return None
    weight = None if weight is None else _moderate(weight)
    fpr, tpr, _ = roc_curve(positive, model.decision_function(X), sample_weight=weight)
    index = np.searchsorted(fpr, np.array(RATES) + 1e-12, side="right") - 1
    return tuple(float(share) for share in np.clip(tpr[index], 0.0, 1.0))


def _moderate(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row weights for a score: those beyond 1e150, or below 1e-150, are divided by a power of two.

    A score multiplies them, and sums over the rows must be finite; ratios stay as they are.
    """
    exponent = math.frexp(float(weight.max(initial=0.0)))[1]
    return np.ldexp(weight, -exponent) if abs(exponent) > 500 else weight

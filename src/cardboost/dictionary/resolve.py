"""The user's ``dictionary`` argument: what it stands for, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from cardboost.data.binning import BinnedMatrix
from cardboost.data.weights import RowWeights
from cardboost.dictionary.label_orders import label_orders
from cardboost.dictionary.learners import (
    EstimatorDictionary,
    FittedDictionary,
    LearnerDictionary,
    LearningRows,
    StumpColumns,
    UnionDictionary,
)
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.model.fitted_learner import METHODS, method_of, name_of


class FittedLearners:
    """A list of fitted learners that stays fitted when an estimator that holds it is cloned.

    scikit-learn's ``clone`` makes every estimator in a plain list an unfitted one; this it leaves alone.
    """

    def __init__(self, learners: Sequence[Any]) -> None:
        self.learners = tuple(learners)
        if not self.learners:
            raise ValueError("dictionary: the list of fitted learners is empty.")
        for learner in self.learners:
            method_of(learner)

    def __len__(self) -> int:
        return len(self.learners)

    def __sklearn_clone__(self) -> FittedLearners:
        return self

    def __repr__(self) -> str:
        kinds = sorted({name_of(learner) for learner in self.learners})
        return f"FittedLearners({len(self)} x {', '.join(kinds)})"


@dataclass(frozen=True, eq=False)
class ToFit:
    """An estimator whose clones are fitted round by round."""

    estimator: Any


Part = Literal["stumps"] | ToFit | FittedLearners


def resolve_dictionary(dictionary: Any, regression: bool = False) -> tuple[Part, ...]:
    """The parts that a user's ``dictionary`` argument stands for; a ValueError names what is wrong.

    Accepted are

    * an estimator: a scikit-learn classifier whose ``fit`` accepts ``sample_weight``. A clone of it is fitted
      in every round, also when it has been fitted before;
    * :class:`FittedLearners`: learners that are taken as they are;
    * ``"stumps"``: all stumps on the binned table;
    * a list (tuple, array) of these and of single learners. In a list, an estimator that has been fitted, and
      an object that has no ``fit``, is taken as it is: ``forest.estimators_`` are the trees of a forest.
      Where the list may be cloned (grid search, cross-validation) wrap it in :class:`FittedLearners`.

    With ``regression`` estimators must be regressors, and ``"stumps"`` stand alone.

    ``("stumps",)`` means that no other learner is involved.
    """
    if isinstance(dictionary, list | tuple | np.ndarray):
        items = _flat(dictionary)
        if not items:
            raise ValueError("dictionary: the list of learners is empty.")
        parts: list[Part] = []
        fitted: list[Any] = []
        for item in items:
            if not isinstance(item, str | FittedLearners) and _is_fitted(item):
                fitted.append(item)
            else:
                parts.append(_part(item, regression))
        if fitted:
            parts.append(FittedLearners(fitted))
        if parts.count("stumps") > 1:
            raise ValueError("dictionary: 'stumps' stands more than once in the list.")
        if regression and "stumps" in parts and len(parts) > 1:
            raise ValueError("dictionary: for a number, 'stumps' cannot stand beside other learners.")
        return tuple(parts)
    return (_part(dictionary, regression),)


def _flat(items: Any) -> list[Any]:
    """Lists in a list are read as if their entries stood there: boosters keep their trees in arrays."""
    out: list[Any] = []
    for item in items:
        out += _flat(item) if isinstance(item, list | tuple | np.ndarray) else [item]
    return out


def _part(item: Any, regression: bool) -> Part:
    if isinstance(item, FittedLearners):
        return item
    if isinstance(item, str):
        if item == "stumps":
            return "stumps"
        raise ValueError(f"dictionary: {item!r} is not known; the only name accepted is 'stumps'.")
    check_estimator(item, regression)
    return ToFit(item)


def check_estimator(estimator: Any, regression: bool = False) -> None:
    """Refuse what cannot serve as a weak learner, in a sentence that names it."""
    name = name_of(estimator)
    if isinstance(estimator, type):
        raise ValueError(
            f"dictionary: {estimator.__name__} is a class; give an instance, {estimator.__name__}()."
        )
    if not callable(getattr(estimator, "fit", None)) or not hasattr(estimator, "get_params"):
        raise ValueError(
            f"dictionary: {name} cannot be fitted: an estimator needs fit and get_params, as in scikit-learn."
        )
    if regression:
        if _kind(estimator) == "classifier":
            raise ValueError(f"dictionary: {name} is a classifier; a number needs regressors.")
        if not callable(getattr(estimator, "predict", None)):
            raise ValueError(f"dictionary: {name} has no predict: it cannot be asked for a number.")
        return
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"dictionary: the fit of {name} does not accept sample_weight, by which a weak learner is told "
            "which rows matter. Take a learner that does; prepare the table before, not in a pipeline."
        )
    if _kind(estimator) == "regressor":
        raise ValueError(
            f"dictionary: {name} is a regressor; weak learners that are fitted here must be classifiers."
        )
    method_of(estimator)


def _kind(estimator: Any) -> str | None:
    """ "classifier", "regressor", or what else it says it is."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    return None if tags is None else tags().estimator_type


def _is_fitted(item: Any) -> bool:
    if isinstance(item, type):
        return False
    if not callable(getattr(item, "fit", None)):
        return any(callable(getattr(item, method, None)) for method in METHODS)
    try:
        check_is_fitted(item)
    except (NotFittedError, TypeError):
        return False
    return True


def bind_dictionary(
    parts: tuple[Part, ...], rows: LearningRows, matrix: BinnedMatrix | None, weights: RowWeights, seed: int
) -> LearnerDictionary:
    """The dictionary of these parts on these rows."""
    bound: list[LearnerDictionary] = []
    for number, part in enumerate(parts):
        if isinstance(part, ToFit):
            bound.append(EstimatorDictionary(part.estimator, rows, (seed, number)))
        elif isinstance(part, FittedLearners):
            bound.append(FittedDictionary(part.learners, rows))
        else:
            if matrix is None:
                raise ValueError("dictionary: 'stumps' need a table of numbers or categories to stand on.")
            orders = label_orders(matrix, weights, rows.sign > 0, rows.threads)
            stumps = StumpDictionary(matrix, rows.sign, rows.threads, rows.intercept, orders=orders)
            bound.append(StumpColumns(stumps, rows))
    return bound[0] if len(bound) == 1 else UnionDictionary(bound, rows)

"""The stability of the terms of a model: the share of the folds whose model of the same size has them too.

Cuts move a little from fold to fold, and sets of labels change by a rare one. Two terms count as the same if
they are on the same feature and their columns are correlated by ``SAME_CORRELATION`` or more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import Other
from cardboost.model.card_text import category_names, number
from cardboost.model.ensemble import Ensemble
from cardboost.model.learners import LearnerEnsemble
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.terms import Term

if TYPE_CHECKING:
    from cardboost.pareto.front import SizePoint

SAME_CORRELATION = 0.9  # of the columns of two terms
MOST_COMPARED_ROWS = 20_000  # evenly spaced in a larger table


def compared_rows(n_rows: int) -> NDArray[np.intp]:
    """Indices of all rows, or of ``MOST_COMPARED_ROWS`` of them."""
    count = min(n_rows, MOST_COMPARED_ROWS)
    return (np.arange(count) * n_rows) // max(count, 1)


def parts_of(ensemble: Any) -> tuple[Ensemble, ...]:
    """One ensemble, or one per class; none for learners, whose terms cannot be compared."""
    return () if isinstance(ensemble, LearnerEnsemble) else ensemble.parts


class TermComparison:
    """Compares terms on some rows. Every term is evaluated once."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self._signs: dict[tuple[Term, Any], NDArray[np.int8]] = {}

    def frequency(self, model: Any, folds: Sequence[Any]) -> tuple[float, ...]:
        """For every term of a model the share of the folds' models that have it."""
        shares = []
        for c, part in enumerate(parts_of(model)):
            others = [parts_of(fold)[c] for fold in folds]
            for term in part.terms:
                count = sum(any(self._are_same(part, term, fold, t) for t in fold.terms) for fold in others)
                shares.append(count / len(folds))
        return tuple(shares)

    def _are_same(self, model: Ensemble, term: Term, other: Ensemble, one: Term) -> bool:
        if term.feature != one.feature:
            return False
        term, one = replace(term, weight=1.0), replace(one, weight=1.0)
        return term == one or correlation(self._sign(model, term), self._sign(other, one)) >= SAME_CORRELATION

    def _sign(self, model: Ensemble, term: Term) -> NDArray[np.int8]:
        """+1 or -1 for every row."""
        key = (term, model.categories.get(term.feature))
        if key not in self._signs:
            alone = replace(model, intercept=0.0, terms=(term,), unit=None)
            self._signs[key] = np.sign(alone.decision_function(self.X)).astype(np.int8)
        return self._signs[key]


def correlation(a: NDArray[np.int8], b: NDArray[np.int8]) -> float:
    """The correlation of two columns of signs; 0 where one of them is constant. Sums are whole numbers."""
    n = len(a)
    sum_a, sum_b = int(a.sum(dtype=np.int64)), int(b.sum(dtype=np.int64))
    both = int((a.astype(np.int16) * b).sum(dtype=np.int64))
    spread = (n * n - sum_a * sum_a) * (n * n - sum_b * sum_b)
    return (n * both - sum_a * sum_b) / math.sqrt(spread) if spread > 0 else 0.0


def feature_frequency(model: Any, folds: Sequence[Any]) -> tuple[tuple[int, float], ...]:
    """For every feature of a model the share of the folds' models that use it."""
    if not parts_of(model):
        return ()
    used = [set(fold.features_used) for fold in folds]
    return tuple((j, sum(j in features for features in used) / len(folds)) for j in model.features_used)


def term_rows(point: SizePoint) -> list[dict[str, Any]]:
    """The terms of a model with their frequencies, most frequent first; of equals the heaviest."""
    ensemble = point.model.ensemble_
    rows: list[dict[str, Any]] = []
    several = isinstance(ensemble, MulticlassEnsemble)
    for c, part in enumerate(parts_of(ensemble)):
        for term in part.terms:
            row: dict[str, Any] = {"class": ensemble.classes[c]} if several else {}
            row |= {
                "term": term_text(part, term),
                "feature": part.feature_name(term.feature),
                "weight": term.polarity * term.weight,
                "frequency": point.term_frequency[len(rows)],
            }
            rows.append(row)
    return sorted(rows, key=lambda row: (-row["frequency"], -abs(row["weight"])))


def term_text(ensemble: Ensemble, term: Term) -> str:
    """The condition of a term: "age <= 37", "town is Bergen", "town is one of Bergen, Oslo"."""
    name = ensemble.feature_name(term.feature)
    if term.cut is not None:
        return f"{name} is not missing" if math.isinf(term.cut) else f"{name} <= {number(term.cut)}"
    names = ["other" if isinstance(label, Other) else category_names([label])[0] for label in term.labels]
    return f"{name} is {'one of ' if term.one_of is not None else ''}{', '.join(names)}"

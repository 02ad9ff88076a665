"""The models that boosting went through: the columns in their order, and the weights after every round."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.certificate.writer import intercept_of
from cardboost.data.categories import Categories, Label, Other
from cardboost.dictionary.base import ColumnPool
from cardboost.dictionary.stumps import CONSTANT, StumpDictionary, StumpPool, Stumps
from cardboost.model.ensemble import Ensemble, Term

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ModelFrame:
    """What every model of one training shares: names, classes, cuts, and the units of the target."""

    loss: str
    n_features: int
    feature_names: tuple[str, ...] | None
    classes: tuple[Any, Any] | None
    cuts: tuple[Array, ...]
    categories: tuple[Categories | None, ...]
    mean: float = 0.0
    scale: float = 1.0

    def ensemble(self, stumps: Stumps, weights: Array, n_free: int, unit: float | None = None) -> Ensemble:
        """The weighted sum of these columns, in the units of the target; ``unit``: of whole points."""
        terms = []
        for j in np.flatnonzero(weights):
            if j < n_free:
                continue
            terms.append(self._term(stumps, int(j), float(weights[j])))
        used = {term.feature: self.categories[term.feature] for term in terms}
        return Ensemble(
            loss=self.loss,
            intercept=intercept_of(weights, n_free) * self.scale + self.mean,
            terms=tuple(terms),
            feature_names=self.feature_names,
            n_features=self.n_features,
            classes=self.classes,
            categories={f: labels for f, labels in used.items() if labels is not None},
            unit=unit,
        )

    def _term(self, stumps: Stumps, j: int, weight: float) -> Term:
        """One of these stumps with a weight."""
        feature, cut = int(stumps.feature[j]), int(stumps.cut[j])
        labels = self.categories[feature]
        where: dict[str, Any] = {"cut": None}
        if labels is None:
            where["cut"] = cut_value(self.cuts[feature], cut)
        elif stumps.one_of[j]:
            where["one_of"] = tuple(labels.label(code) for code in np.flatnonzero(stumps.left[j]).tolist())
        else:
            where["category"] = labels.label(cut)
        where |= {"polarity": int(stumps.polarity[j]), "missing_left": bool(stumps.missing_left[j])}
        return Term(feature, weight=weight * self.scale, **where)


def cut_value(cuts: Array, cut: int) -> float:
    """The number at a cut; behind the last one lies infinity: all values that are not missing."""
    return float(cuts[cut]) if cut < len(cuts) else np.inf


@dataclass(frozen=True, eq=False)
class BoostingPath:
    """One model per round; ``stages[r]`` weighs the first columns, as many as there were then."""

    frame: ModelFrame
    stumps: Stumps
    n_free: int
    stages: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.stages)

    def ensembles(self) -> Iterator[Ensemble]:
        for weights in self.stages:
            yield self.frame.ensemble(self.stumps[: len(weights)], weights, self.n_free)

    def restart(self, pool: ColumnPool) -> Array:
        """Put the columns of the last stage into an empty pool over other rows; returns their weights there.

        A cut that the new table does not have goes to its nearest one, and a set of labels to the one that
        differs from it in the fewest; what no longer exists is left out.
        """
        assert isinstance(pool, StumpPool)
        weights = self.stages[-1]
        dictionary = pool.dictionary
        kept: dict[tuple[int, int, int, bool], float] = {}
        for j in range(self.n_free, len(weights)):
            place = self._at_home(j, dictionary)
            if place is None:
                continue
            polarity, missing_left = int(self.stumps.polarity[j]), bool(self.stumps.missing_left[j])
            if dictionary.closed[place] & (1 << (2 * int(missing_left) + (polarity < 0))):
                continue
            one = (*place, polarity, missing_left)
            kept[one] = kept.get(one, 0.0) + float(weights[j])
        if kept:
            pool.append(dictionary.stumps(*(np.array(part) for part in zip(*kept, strict=True))))
        free = weights[: self.n_free] if pool.n_free == self.n_free else np.zeros(pool.n_free)
        return np.concatenate([free, list(kept.values())])

    def _at_home(self, j: int, dictionary: StumpDictionary) -> tuple[int, int] | None:
        """Column j as line and cut of another dictionary."""
        feature, cut = int(self.stumps.feature[j]), int(self.stumps.cut[j])
        if feature == CONSTANT:
            return None
        matrix = dictionary.matrix
        old, new = self.frame.categories[feature], matrix.categories[feature]
        if old is None and new is None:
            value, cuts = cut_value(self.frame.cuts[feature], cut), matrix.cuts[feature]
            if np.isinf(value):
                return feature, len(cuts)
            return (feature, int(np.argmin(np.abs(cuts - value)))) if len(cuts) else None
        if old is None or new is None:
            return None
        if self.stumps.one_of[j]:
            codes = _codes(new, [old.label(code) for code in np.flatnonzero(self.stumps.left[j]).tolist()])
            order = dictionary.orders[feature] if dictionary.orders else None
            if order is None or not codes:
                return None
            # the set of the first k + 1 differs in those of them that are not in it, and those left over
            outside = np.cumsum(np.where(np.isin(order, codes), -1, 1))
            return int(dictionary.set_line[feature]), 1 + int(np.argmin(outside[1:-2]))
        codes = _codes(new, [old.label(cut)])
        return (feature, codes[0]) if codes else None


def _codes(categories: Categories, labels: Iterable[Label | Other]) -> list[int]:
    """The codes of those labels that are known."""
    codes = []
    for label in labels:
        with contextlib.suppress(ValueError):
            codes.append(categories.code(label))
    return codes

"""The models that boosting went through: the columns in their order, and the weights after every round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.certificate.writer import intercept_of
from cardboost.data.binning import BinnedMatrix
from cardboost.data.categories import Categories
from cardboost.dictionary.stumps import CONSTANT, StumpPool, Stumps
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

    def ensemble(self, stumps: Stumps, weights: Array, n_free: int) -> Ensemble:
        """The weighted sum of these columns, in the units of the target."""
        terms = []
        for j in np.flatnonzero(weights):
            if j < n_free:
                continue
            feature, code = int(stumps.feature[j]), int(stumps.cut[j])
            known = self.categories[feature]
            terms.append(
                Term(
                    feature,
                    None if known is not None else cut_value(self.cuts[feature], code),
                    int(stumps.polarity[j]),
                    bool(stumps.missing_left[j]),
                    float(weights[j]) * self.scale,
                    None if known is None else known.label(code),
                )
            )
        used = {term.feature: self.categories[term.feature] for term in terms}
        return Ensemble(
            loss=self.loss,
            intercept=intercept_of(weights, n_free) * self.scale + self.mean,
            terms=tuple(terms),
            feature_names=self.feature_names,
            n_features=self.n_features,
            classes=self.classes,
            categories={f: own for f, own in used.items() if own is not None},
        )


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

    def restart(self, pool: StumpPool) -> Array:
        """Put the columns of the last stage into an empty pool over other rows; returns their weights there.

        A cut that the new table does not have goes to its nearest one; what no longer exists is left out.
        """
        weights = self.stages[-1]
        matrix, closed = pool.dictionary.matrix, pool.dictionary.closed
        kept: dict[tuple[int, int, int, bool], float] = {}
        for j in range(self.n_free, len(weights)):
            one = self._at_home(j, matrix)
            if one is None:
                continue
            feature, cut, polarity, missing_left = one
            if closed[feature, cut] & (1 << (2 * int(missing_left) + (polarity < 0))):
                continue
            kept[one] = kept.get(one, 0.0) + float(weights[j])
        if kept:
            parts = [np.array(part) for part in zip(*kept, strict=True)]
            equals = matrix.categorical[parts[0]]
            pool.append(Stumps.make(parts[0], parts[1], parts[2], parts[3], equals))
        free = weights[: self.n_free] if pool.n_free == self.n_free else np.zeros(pool.n_free)
        return np.concatenate([free, list(kept.values())])

    def _at_home(self, j: int, matrix: BinnedMatrix) -> tuple[int, int, int, bool] | None:
        """Column j as (feature, cut, polarity, missing left) of another binned table."""
        feature, cut = int(self.stumps.feature[j]), int(self.stumps.cut[j])
        rest = (int(self.stumps.polarity[j]), bool(self.stumps.missing_left[j]))
        if feature == CONSTANT:
            return None
        old, new = self.frame.categories[feature], matrix.categories[feature]
        if old is not None or new is not None:
            if old is None or new is None:
                return None
            try:
                return feature, new.code(old.label(cut)), *rest
            except ValueError:  # the new table does not have this label
                return None
        at, cuts = cut_value(self.frame.cuts[feature], cut), matrix.cuts[feature]
        if np.isinf(at):
            return feature, len(cuts), *rest
        if len(cuts) == 0:
            return None
        return feature, int(np.argmin(np.abs(cuts - at))), *rest

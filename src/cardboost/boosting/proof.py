"""A certificate about stumps: what the file says of the data, the columns and the dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.path import cut_value
from cardboost.certificate.writer import CertifiedProblem, intercept_of
from cardboost.dictionary.stumps import StumpDictionary, StumpPool
from cardboost.problem.prices import FeatureLimits, PriceRule

Array = NDArray[np.float64]

_CUTS_IN_FILE = 200_000


@dataclass(frozen=True)
class DataFacts:
    """What the certificate says of the data."""

    n_rows: int
    n_features: int
    digest: Callable[[], str]
    class_weight: tuple[float, float] = (1.0, 1.0)
    target: tuple[float, float] | None = None  # mean and standard deviation of a real target


def whole_dictionary_fits(dictionary: StumpDictionary) -> bool:
    """Whether a file can name every cut."""
    return sum(len(cuts) for cuts in dictionary.matrix.cuts) <= _CUTS_IN_FILE


def stump_problem(
    pool: StumpPool,
    rule: PriceRule,
    facts: DataFacts,
    loss: str,
    *,
    max_terms: int | None = None,
    limits: FeatureLimits | None = None,
    radius: float | None = None,
) -> CertifiedProblem:
    """What a certificate of these columns is about."""
    dictionary, free = pool.dictionary, pool.n_free
    matrix, monotonic, stumps = dictionary.matrix, dictionary.monotonic, pool.stumps[free:]
    kinds = matrix.categories
    asked = list(zip(stumps.feature.tolist(), stumps.cut.tolist(), stumps.one_of.tolist(), strict=True))
    return CertifiedProblem(
        kind="stumps",
        loss=loss,
        max_terms=max_terms,
        columns={
            "feature": stumps.feature.tolist(),
            "cut": [None if kinds[f] else _cut_in_file(matrix.cuts[f], c) for f, c, _ in asked],
            "category": [own.label(c) if (own := kinds[f]) and not s else None for f, c, s in asked],
            "first": [c + 1 if s else None for _, c, s in asked],
            "polarity": stumps.polarity.tolist(),
            "missing_left": stumps.missing_left.tolist(),
        },
        prices=rule.prices(len(stumps), 0),
        rows=facts.n_rows,
        features=facts.n_features,
        digest=facts.digest(),
        n_free=free,
        intercept_box=rule.intercept_box if free else None,
        class_weight=facts.class_weight,
        unseen=rule.prices(1, 0),
        cuts=matrix.cuts,
        max_features=None if limits is None else limits.max_features,
        feature_costs=None if limits is None else limits.costs,
        target=facts.target,
        categories=kinds,
        monotonic=() if monotonic is None else monotonic.tolist(),
        orders=dictionary.orders,
        radius=radius,
    )


def netted(pool: StumpPool, weights: Array) -> Array:
    """Without opposite stumps that cancel: the scores are the same and no price is higher."""
    place: dict[tuple[int, bool, int, bool, int], int] = {}
    out, stumps = weights.copy(), pool.stumps
    for j in np.flatnonzero(weights):
        question = (int(stumps.feature[j]), bool(stumps.one_of[j]), int(stumps.cut[j]))
        cut = (*question, bool(stumps.missing_left[j]))
        other = place.get((*cut, -int(stumps.polarity[j])))
        if other is None:
            place[(*cut, int(stumps.polarity[j]))] = int(j)
        else:
            shared = min(out[j], out[other])
            out[j] -= shared
            out[other] -= shared
    return out


def null_model(pool: StumpPool, start: Array, objective: Callable[[Array], float]) -> tuple[float, float]:
    """Intercept and objective (a function of margins) of the empty model; ``start``: its weights."""
    empty = pool.subset(np.arange(pool.n_free))
    return intercept_of(start, pool.n_free), objective(empty.margins(start))


def _cut_in_file(cuts: Array, cut: int) -> float | None:
    value = cut_value(cuts, cut)
    return None if np.isinf(value) else value

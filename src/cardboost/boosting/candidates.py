"""The columns that a training chose from, over distinct rows: enough to choose again, without the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.path import ModelFrame
from cardboost.cardinality.points import Scale, choose_points, refused
from cardboost.cardinality.problem import CardinalityProblem
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import with_points
from cardboost.dictionary.stumps import Stumps
from cardboost.model.ensemble import Ensemble

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """``problem``: over stored columns (merge_rows). ``weights`` and ``certified``: what was chosen."""

    frame: ModelFrame
    stumps: Stumps
    n_free: int
    problem: CardinalityProblem
    weights: Array
    certified: dict[str, Any]

    def in_points(
        self,
        most: int,
        max_terms: int | None = None,
        scale: Scale | None = None,
        late: Callable[[], bool] = lambda: False,
    ) -> tuple[Ensemble, Certificate]:
        """The best card in whole points that is found, at most ``most`` per term, with its certificate.

        ``max_terms``: fewer terms than the training was allowed; the bound for more holds for fewer.
        """
        reason = refused(self.problem)
        if reason is not None:
            raise ValueError(reason)
        problem = self.problem
        if max_terms is not None and (problem.max_terms is None or max_terms < problem.max_terms):
            problem = replace(problem, max_terms=max_terms)
        found = choose_points(problem, self.weights, most, scale=scale, late=late)
        unit = found.unit if found.points.any() else scale.unit if scale is not None else 1.0
        own = self.frame.ensemble(self.stumps, found.weights, self.n_free, unit)
        content = with_points(self.certified, found.weights, self.n_free, found.objective, unit, most)
        positive = None if self.frame.classes is None else self.frame.classes[1]
        return own, Certificate(content, positive)

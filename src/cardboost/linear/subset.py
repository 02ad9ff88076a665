"""At most k features: logistic regression as a choice among columns, by the exact selector.

Every feature is two columns, x and -x divided by the root mean square, so that weights are not negative; the
intercept is two more, which neither count nor cost. What the selector proves holds for coefficients in its
box.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardboost.certificate.certificate import Certificate
from cardboost.linear.design import Array, comparable, fitted_rows
from cardboost.linear.problem import Fit, ScoreProblem
from cardboost.solvers import select_columns

INTERCEPT_BOX = 20.0


@dataclass(frozen=True, eq=False)
class _View:
    """The matrix that a certificate is about, made of rows, labels and weights."""

    scale: Array
    intercept: bool
    classes: tuple[Any, ...]
    target: int
    class_weight: tuple[float, ...] | None

    def __call__(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        labels = np.asarray(y)
        codes = np.full(len(labels), -1)
        for k, label in enumerate(self.classes):
            codes[labels == label] = k
        weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        weight = np.where(codes < 0, 0.0, comparable(weight))
        if self.class_weight is not None:
            factors = np.asarray(self.class_weight)
            weight = weight * (factors / factors.max())[codes]
        rows = fitted_rows(np.asarray(X, dtype=np.float64), codes, weight, 1)
        sign = np.where(rows.y == self.target, 1.0, -1.0)
        return self.matrix(rows.design.matrix, sign), None, rows.s

    def matrix(self, X: Array, sign: Array) -> Array:
        columns = sign[:, None] * X / self.scale
        parts = [columns, -columns]
        if self.intercept:
            parts = [sign[:, None], -sign[:, None], *parts]
        return np.hstack(parts)


def best_subset(
    problem: ScoreProblem,
    max_features: int | None,
    *,
    seed: int,
    n_jobs: int | None,
    classes: tuple[Any, ...],
    target: int,
    class_weight: tuple[float, ...] | None,
) -> tuple[Fit, Certificate]:
    """The best coefficients on at most ``max_features`` features, or how far from them the search is.

    The second value is the proof that comes with them.
    """
    design = problem.design
    scale = np.sqrt(design.second_moments(problem.s))
    scale[scale == 0.0] = 1.0
    view = _View(scale, problem.intercept, classes, target, class_weight)
    n, free = design.columns, 2 * int(problem.intercept)
    both = np.tile(scale, 2)
    selection = select_columns(
        view.matrix(design.matrix, problem.y),
        max_terms=max_features,
        l1=np.concatenate([np.zeros(free), problem.l1 / both]),
        l2=np.concatenate([np.zeros(free), problem.l2 / both**2]),
        max_weight=None,
        free=np.arange(free),
        free_weight=INTERCEPT_BOX,
        loss="logistic",
        sample_weight=problem.s,
        method="auto",
        random_state=seed,
        n_jobs=n_jobs,
    )
    weights, certificate = selection.x[free:], replace(selection.certificate, view=view)
    intercept = float(selection.x[0] - selection.x[1]) if problem.intercept else 0.0
    bounds = certificate.objective, certificate.lower_bound
    coef = (weights[:n] - weights[n:]) / scale
    return Fit(coef, intercept, *bounds, selection.nodes, certificate.status), certificate

"""Training on all stumps of a table, and what a certificate about stumps says of data and dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.candidates import Candidates
from cardboost.boosting.early_stopping import HeldOutBins
from cardboost.boosting.numbered_columns import StumpNumbers
from cardboost.boosting.path import BoostingPath, ModelFrame, cut_value
from cardboost.boosting.task import Choice, Proof, TrainingTask
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import CertifiedProblem, intercept_of
from cardboost.dictionary.stumps import StumpDictionary, StumpPool
from cardboost.model.ensemble import Ensemble
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DataFacts:
    """What the certificate says of the data."""

    n_rows: int
    n_features: int
    digest: Callable[[], str]
    class_weight: tuple[float, float] = (1.0, 1.0)
    target: tuple[float, float] | None = None  # mean and standard deviation of a real target


@dataclass(frozen=True, eq=False)
class StumpTask(TrainingTask):
    """All stumps of a table over the rows to train on.

    Parameters
    ----------
    dictionary, risk, earlier, held_out
        See :class:`~cardboost.boosting.task.TrainingTask`.
    facts : DataFacts
        What the certificate says of the data.
    frame : ModelFrame
        What the models are called.
    """

    dictionary: StumpDictionary
    risk: EmpiricalRisk
    facts: DataFacts
    frame: ModelFrame
    earlier: BoostingPath | None = None
    held_out: HeldOutBins | None = None

    @property
    def sign(self) -> NDArray[np.int8] | None:
        return self.risk.sign

    @property
    def positive(self) -> Any:
        return None if self.frame.classes is None else self.frame.classes[1]

    def ensemble(self, pool: StumpPool, weights: Array, unit: float | None = None) -> Ensemble:
        return self.frame.ensemble(pool.stumps, weights, pool.n_free, unit)

    def path(self, pool: StumpPool, stages: tuple[Array, ...]) -> BoostingPath:
        return BoostingPath(self.frame, pool.stumps, pool.n_free, stages)

    def null_model(self, constant: Array, value: Callable[[Array], float]) -> tuple[float, float]:
        empty = self.dictionary.pool()
        return intercept_of(constant, empty.n_free), value(empty.margins(constant))

    def numbered_columns(self) -> StumpNumbers:
        return StumpNumbers(self.dictionary, self.risk)

    def candidates(
        self, pool: StumpPool, choice: Choice, proof: Proof, certificate: Certificate
    ) -> Candidates:
        stumps, n_free = pool.stumps, pool.n_free
        return Candidates(
            lambda weights, unit: self.frame.ensemble(stumps, weights, n_free, unit),
            self.frame.loss,
            self.positive,
            n_free,
            choice.search.problem,
            choice.weights,
            dict(certificate.content),
            proof.complete,
        )

    def certified_problem(self, proof: Proof, loss: str) -> CertifiedProblem:
        pool, rule, limits, facts = proof.pool, proof.rule, proof.limits, self.facts
        n_free, matrix, monotonic = pool.n_free, self.dictionary.matrix, self.dictionary.monotonic
        stumps, categories = pool.stumps[n_free:], matrix.categories
        feature, cut, one_of = stumps.feature.tolist(), stumps.cut.tolist(), stumps.one_of.tolist()
        columns: dict[str, list[Any]] = {"feature": feature, "cut": [], "category": [], "first": []}
        for j, k, is_set in zip(feature, cut, one_of, strict=True):
            labels = categories[j]
            columns["cut"].append(None if labels else _cut_in_file(matrix.cuts[j], k))
            columns["category"].append(labels.label(k) if labels and not is_set else None)
            columns["first"].append(k + 1 if is_set else None)
        columns |= {"polarity": stumps.polarity.tolist(), "missing_left": stumps.missing_left.tolist()}
        return CertifiedProblem(
            kind="stumps",
            loss=loss,
            max_terms=proof.max_terms,
            columns=columns,
            prices=rule.prices(len(stumps), 0),
            rows=facts.n_rows,
            features=facts.n_features,
            digest=facts.digest(),
            n_free=n_free,
            intercept_box=rule.intercept_box if n_free else None,
            class_weight=facts.class_weight,
            unseen=rule.prices(1, 0),
            cuts=matrix.cuts,
            max_features=None if limits is None else limits.max_features,
            feature_costs=None if limits is None else limits.costs,
            target=facts.target,
            categories=categories,
            monotonic=() if monotonic is None else monotonic.tolist(),
            orders=self.dictionary.orders,
            radius=proof.radius,
        )


def _cut_in_file(cuts: Array, cut: int) -> float | None:
    value = cut_value(cuts, cut)
    return None if np.isinf(value) else value

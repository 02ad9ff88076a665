"""Training on any weak learners: fitted ones, estimators that are fitted in the loop, and stumps among them.

A certificate of learners is one of a matrix: its columns are the intercept's two, uncharged, and the outputs
of the candidates times the label. To verify it, every candidate is asked again for its output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.path import ModelFrame
from cardboost.boosting.task import HeldOutRows, Proof, TrainingTask
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.checker import data_digest
from cardboost.certificate.checker.claims import LARGEST_MARGIN
from cardboost.certificate.writer import CertifiedProblem, intercept_of
from cardboost.data.exact import refuse_mask, unmasked
from cardboost.dictionary.learners import Candidate, LearnerDictionary, LearnerPool
from cardboost.dictionary.stump_arrays import NO_STUMPS, Stumps
from cardboost.model.ensemble import Ensemble
from cardboost.model.fitted_learner import FittedLearner, count_rows
from cardboost.model.learners import LearnerEnsemble, WeightedLearner
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]

_ROUNDING = 1e-9  # by which the margins of a model may differ from those of its certificate


@dataclass(frozen=True, eq=False)
class CertifiedLearners:
    """The learners that a certificate is about, and how rows and labels become its matrix."""

    learners: tuple[FittedLearner, ...]
    intercept: bool
    classes: tuple[Any, Any]
    class_weight: tuple[float, float]

    def __call__(self, X: Any, y: Any, sample_weight: Any) -> tuple[NDArray[Any], None, Array | None]:
        """What the certificate is about: the matrix, and the weights of its rows."""
        X, sign = unmasked(X), self._sign(X, y)
        columns = [sign, -sign] if self.intercept else []
        columns += [learner.scores(X) * sign for learner in self.learners]
        matrix = np.stack(columns, axis=1) if columns else np.empty((len(sign), 0))
        return matrix, None, row_weight(sign, sample_weight, self.class_weight)

    def _sign(self, X: Any, y: Any) -> NDArray[np.int8]:
        refuse_mask(y, "y")
        labels = np.asarray(y)
        if labels.shape != (count_rows(X),):
            raise ValueError(f"y must hold {count_rows(X)} labels; found shape {labels.shape}.")
        return np.where(labels == self.classes[1], 1, -1).astype(np.int8)

    def faults(
        self, certificate: Certificate, ensemble: LearnerEnsemble, X: Any, y: Any, sample_weight: Any = None
    ) -> list[str]:
        """Every claim that the data contradict, in sentences; empty when all hold.

        The checker recomputes each number of the certificate from the outputs of the learners on ``X``; then
        the margins of the ensemble are compared with those of the certificate's solution.
        """
        matrix, _, weight = self(X, y, sample_weight)
        faults = replace(certificate, view=None).faults(matrix, None, weight)
        if faults:
            return faults
        weights = np.zeros(matrix.shape[1])
        for column, value in certificate.to_dict()["solution"]["weights"]:
            weights[column] = value
        claimed = matrix @ weights
        margins = self._sign(X, y) * ensemble.decision_function(unmasked(X))
        if not np.allclose(claimed, margins, rtol=_ROUNDING, atol=_ROUNDING):
            worst = float(np.max(np.abs(claimed - margins)))
            faults.append(f"solution.weights: the margins of the model differ from theirs by up to {worst:g}")
        return faults


def row_weight(sign: NDArray[np.int8], sample_weight: Any, class_weight: tuple[float, float]) -> Array | None:
    """Row weights times class weights; None where all are 1."""
    refuse_mask(sample_weight, "sample_weight")
    if class_weight == (1.0, 1.0):
        return None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    factor = np.where(sign > 0, class_weight[1], class_weight[0])
    return factor if sample_weight is None else np.asarray(sample_weight, dtype=np.float64) * factor


@dataclass(frozen=True, eq=False)
class LearnerTask(TrainingTask):
    """Weak learners on the rows that they are fitted to, and what their models are called.

    Parameters
    ----------
    dictionary, risk, frame, held_out
        See :class:`~cardboost.boosting.task.TrainingTask`; the labels are in the columns, not in the risk.
    sample_weight : array or None
        Positive, one per row.
    class_weight : pair of float
        Factors of the two classes.
    """

    dictionary: LearnerDictionary
    risk: EmpiricalRisk
    frame: ModelFrame
    sample_weight: Array | None
    class_weight: tuple[float, float] = (1.0, 1.0)
    held_out: HeldOutRows | None = None

    @property
    def sign(self) -> NDArray[np.int8]:
        return self.dictionary.rows.sign

    def fitted(self, candidate: Candidate) -> FittedLearner:
        """A candidate as a learner that can be asked about other rows."""
        if isinstance(candidate.learner, Stumps):
            model = self._stumps(candidate.learner, np.ones(1), 0.0)
            return FittedLearner(model, None, "decision_function")
        return candidate.learner

    def ensemble(
        self, pool: LearnerPool, weights: Array, unit: float | None = None, start: float = 0.0
    ) -> LearnerEnsemble:
        """Stumps become terms of an ensemble, learners stay what they are.

        ``start``: more intercept, without a column.
        """
        pairs = zip(pool.candidates, weights[pool.n_free :].tolist(), strict=False)
        used = [(candidate.learner, weight) for candidate, weight in pairs if weight > 0.0]
        learners = tuple(WeightedLearner(*pair) for pair in used if not isinstance(pair[0], Stumps))
        stumps, stump_weights = NO_STUMPS, []
        for learner, weight in used:
            if isinstance(learner, Stumps):
                stumps = stumps + learner
                stump_weights.append(weight)
        intercept = intercept_of(weights, pool.n_free) + start
        return LearnerEnsemble(self._stumps(stumps, np.array(stump_weights), intercept), learners)

    def _stumps(self, stumps: Stumps, weights: Array, intercept: float) -> Ensemble:
        """The ensemble of the stumps among the learners."""
        return replace(self.frame.ensemble(stumps, weights, 0), intercept=intercept)

    def null_model(self, constant: Array, value: Callable[[Array], float]) -> tuple[float, float]:
        """Without an intercept: that of a matrix is among its columns."""
        return 0.0, value(np.zeros(len(self.sign)))

    def certificate_view(self, pool: LearnerPool) -> CertifiedLearners:
        learners = tuple(self.fitted(candidate) for candidate in pool.candidates)
        return CertifiedLearners(learners, pool.n_free > 0, self.dictionary.rows.classes, self.class_weight)

    def certified_problem(self, proof: Proof, loss: str) -> CertifiedProblem:
        pool, rule, radius = proof.pool, proof.rule, proof.radius
        matrix = pool.dense()
        largest = float(np.max(np.abs(matrix), initial=0.0))
        if radius is not None:
            rule = replace(rule, intercept_box=np.inf)  # their sum is limited instead
            if radius * largest > LARGEST_MARGIN:
                raise ValueError(
                    "the outputs of the learners are too large for this temperature: divide them by a "
                    "constant, or raise it."
                )
        return CertifiedProblem(
            kind="matrix",
            loss=loss,
            columns={"feature": list(range(pool.n_columns))},
            prices=rule.over(pool),
            rows=len(matrix),
            features=pool.n_columns,
            digest=data_digest(matrix, None, row_weight(self.sign, self.sample_weight, self.class_weight)),
            candidates=self.dictionary.remaining(pool) is None,
            largest_entry=largest,
            max_terms=proof.max_terms,
            radius=radius,
        )

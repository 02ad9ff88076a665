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

from cardboost.boosting.early_stopping import HeldOutRows
from cardboost.boosting.numbered_columns import PoolNumbers
from cardboost.boosting.path import ModelFrame
from cardboost.boosting.task import Proof, TrainingTask
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.checker import data_digest
from cardboost.certificate.checker.claims import LARGEST_MARGIN
from cardboost.certificate.writer import CertifiedProblem, intercept_of
from cardboost.data.binning import BinnedMatrix
from cardboost.data.exact import refuse_mask, unmasked
from cardboost.data.weights import RowWeights
from cardboost.dictionary.learners import Candidate, LearnerDictionary, LearnerPool, LearningRows, stumps_of
from cardboost.dictionary.resolve import bind_dictionary, resolve_dictionary
from cardboost.dictionary.stumps import StumpDictionary, StumpPool, Stumps
from cardboost.model.ensemble import Ensemble, model_loss
from cardboost.model.fitted_learner import FittedLearner, count_rows
from cardboost.model.learners import LearnerEnsemble, WeightedLearner
from cardboost.problem.losses import Loss
from cardboost.problem.risk import EmpiricalRisk, risk_of

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
    """Weak learners on the rows that they are fitted to, and what their models are called."""

    dictionary: LearnerDictionary
    risk: EmpiricalRisk
    labels: NDArray[np.int8]
    models: LearnerModels
    sample_weight: Array | None
    class_weight: tuple[float, float]
    held_out: HeldOutRows | None = None

    @classmethod
    def make(
        cls,
        dictionary: Any,
        X: Any,
        sign: NDArray[np.int8],
        loss: Loss,
        intercept: bool,
        threads: int,
        *,
        n_features: int,
        sample_weight: Array | None = None,
        class_weight: tuple[float, float] = (1.0, 1.0),
        classes: tuple[Any, Any] = (False, True),
        feature_names: tuple[str, ...] | None = None,
        matrix: BinnedMatrix | None = None,
        seed: int = 0,
        held_out: HeldOutRows | None = None,
    ) -> LearnerTask:
        """Bind the learners of a ``dictionary`` parameter to rows.

        Parameters
        ----------
        dictionary
            What the user passed; see :func:`~cardboost.dictionary.resolve.resolve_dictionary`.
        X
            The rows as the user passed them, for the learners to read; those without weight already gone.
        sign : array of int8
            1 for ``classes[1]`` and -1 for ``classes[0]``, one per row of X.
        loss, intercept, threads
            Of the training.
        n_features : int
            Of X.
        sample_weight : array or None
            Positive, one per row.
        class_weight : pair of float
            Factors of the two classes.
        classes, feature_names
            What they are called.
        matrix : BinnedMatrix or None
            The binned table of the same rows; needed where the dictionary has "stumps".
        seed : int
            Every ``random_state`` of a learner that is fitted here follows from it.
        held_out : HeldOutRows or None
            Rows that are not trained on.
        """
        parts = resolve_dictionary(dictionary)
        if count_rows(X) != len(sign):
            raise ValueError(f"X has {count_rows(X)} rows, but there are {len(sign)} labels.")
        rows = LearningRows(X, sign, classes, intercept, threads)
        factor = None if class_weight == (1.0, 1.0) else np.where(sign > 0, class_weight[1], class_weight[0])
        weights = RowWeights.make(len(sign), sample_weight, factor)
        bound = bind_dictionary(parts, rows, matrix, weights, seed)
        models = LearnerModels(stumps_of(bound), loss, n_features, feature_names, classes)
        risk = risk_of(loss, weights, None, threads)
        return cls(bound, risk, sign, models, sample_weight, class_weight, held_out)

    @property
    def sign(self) -> NDArray[np.int8]:
        return self.labels

    @property
    def positive(self) -> Any:
        return self.models.classes[1]

    def ensemble(self, pool: LearnerPool, weights: Array, unit: float | None = None) -> LearnerEnsemble:
        return self.models.ensemble(pool, weights)

    def null_model(self, constant: Array, value: Callable[[Array], float]) -> tuple[float, float]:
        """Without an intercept: that of a matrix is among its columns."""
        return 0.0, value(np.zeros(len(self.labels)))

    def numbered_columns(self) -> PoolNumbers:
        return PoolNumbers(self.dictionary, self.risk)

    def certificate_view(self, pool: LearnerPool) -> CertifiedLearners:
        learners = tuple(self.models.fitted(candidate) for candidate in pool.candidates)
        return CertifiedLearners(learners, pool.n_free > 0, self.models.classes, self.class_weight)

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
            prices=rule.prices(pool.n_columns, pool.n_free),
            rows=len(matrix),
            features=pool.n_columns,
            digest=data_digest(matrix, None, row_weight(self.sign, self.sample_weight, self.class_weight)),
            candidates=self.dictionary.remaining(pool) is None,
            largest_entry=largest,
            max_terms=proof.max_terms,
            radius=radius,
        )


@dataclass(frozen=True, eq=False)
class LearnerModels:
    """Makes models of candidates: stumps become terms of an ensemble, learners stay what they are."""

    stumps: StumpDictionary | None
    loss: Loss
    n_features: int
    feature_names: tuple[str, ...] | None
    classes: tuple[Any, Any]

    def fitted(self, candidate: Candidate) -> FittedLearner:
        """A candidate as a learner that can be asked about other rows."""
        if isinstance(candidate.learner, Stumps):
            return FittedLearner(self._stumps([candidate.learner], [1.0], 0.0), None, "decision_function")
        return candidate.learner

    def ensemble(self, pool: LearnerPool, weights: Array, start: float = 0.0) -> LearnerEnsemble:
        """The model of weights over the first columns; ``start``: more intercept, without a column."""
        n_free, stumps, stump_weights = pool.n_free, [], []
        learners = []
        for candidate, weight in zip(pool.candidates, weights[n_free:].tolist(), strict=False):
            if weight > 0.0 and isinstance(candidate.learner, Stumps):
                stumps.append(candidate.learner)
                stump_weights.append(weight)
            elif weight > 0.0:
                learners.append(WeightedLearner(candidate.learner, weight))
        model = self._stumps(stumps, stump_weights, intercept_of(weights, n_free) + start)
        return LearnerEnsemble(model, tuple(learners))

    def _stumps(self, stumps: list[Stumps], weights: list[float], intercept: float) -> Ensemble:
        """The ensemble of the stumps among the learners."""
        loss = model_loss(self.loss)
        if not stumps:
            return Ensemble(loss, intercept, (), self.feature_names, self.n_features, self.classes)
        assert self.stumps is not None
        pool = StumpPool(self.stumps)
        for stump in stumps:
            pool.append(stump)
        matrix = self.stumps.matrix
        frame = ModelFrame(
            loss, self.n_features, self.feature_names, self.classes, matrix.cuts, matrix.categories
        )
        all_weights = np.concatenate([np.zeros(pool.n_free), weights])
        return replace(frame.ensemble(pool.stumps, all_weights, pool.n_free), intercept=intercept)

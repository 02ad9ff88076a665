"""Few of many fitted learners: the smallest part of a forest or a booster that does the work of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cardboost.boosting.learner_task import CertifiedLearners, LearnerTask
from cardboost.boosting.path import ModelFrame
from cardboost.boosting.task import TrainingSettings
from cardboost.boosting.training import train
from cardboost.certificate.certificate import Certificate
from cardboost.data.arguments import flag, number, whole
from cardboost.data.exact import unmasked
from cardboost.data.threads import usable_threads
from cardboost.data.weights import RowWeights
from cardboost.dictionary.learners import FittedDictionary, LearningRows
from cardboost.dictionary.resolve import FittedLearners
from cardboost.model.ensemble import model_loss
from cardboost.model.fitted_learner import count_rows, take_rows
from cardboost.model.learners import LearnerEnsemble
from cardboost.problem.bound import guarantee
from cardboost.problem.losses import get_loss
from cardboost.problem.risk import risk_of
from cardboost.problem.trace import Trace
from cardboost.solvers.matrix import weighted_classes


@dataclass(frozen=True, eq=False)
class ThinnedLearners:
    """Few of many learners, with a proof.

    Attributes
    ----------
    ensemble : LearnerEnsemble
        The learners that are kept, with their weights.
    certificate : Certificate
        Of the matrix of the learners' outputs.
    trace : Trace
        One record per round of generation.
    candidates : CertifiedLearners
        The learners that the certificate is about.
    null_objective : float
        The objective of the intercept alone.
    """

    ensemble: LearnerEnsemble
    certificate: Certificate
    trace: Trace
    candidates: CertifiedLearners
    null_objective: float

    @property
    def guarantee(self) -> float:
        """At least this share of the improvement over the intercept alone that the learners allow.

        The certificate of a matrix measures from the model without any column; this is never more.
        """
        return guarantee(self.null_objective, self.certificate.objective, self.certificate.lower_bound)

    def faults(self, X: Any, y: Any, sample_weight: Any = None) -> list[str]:
        """Every claim of the certificate that these rows contradict.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The rows that the learners were selected on.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Their weights.

        Returns
        -------
        list of str
            One sentence per claim; empty when all hold.
        """
        return self.candidates.faults(self.certificate, self.ensemble, X, y, sample_weight)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> bool:
        """Whether every claim holds, and the model is the one that the certificate means.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The rows that the learners were selected on.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Their weights.

        Returns
        -------
        bool
            True if :meth:`faults` finds nothing.
        """
        return not self.faults(X, y, sample_weight)


def thin_learners(
    learners: Sequence[Any],
    X: Any,
    y: ArrayLike,
    max_terms: int | None,
    *,
    l0: float = 0.0,
    l1: float = 1e-4,
    l2: float = 0.01,
    loss: str = "logistic",
    candidates: int | None = None,
    max_weight: float | None = None,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = 1,
) -> ThinnedLearners:
    """Keep at most ``max_terms`` of many fitted learners, with new weights and a certificate.

    Parameters
    ----------
    learners : sequence
        Fitted classifiers of two classes, or objects whose ``predict`` returns a number per row, such as the
        trees of a booster. Such numbers should be of the order of 1.
    X : table of shape (n_samples, n_features)
        Rows that the learners have not been fitted to: on their own training rows they look better than they
        are.
    y : array-like of shape (n_samples,)
        Labels of two classes.
    max_terms : int or None
        At most so many learners are kept. None: no limit.
    l0 : float, default=0.0
        Regularisation per learner, in units of the mean loss.
    l1 : float, default=1e-4
        Regularisation per unit of weight.
    l2 : float, default=0.01
        Regularisation per half squared weight.
    loss : {"logistic", "exponential", "squared_hinge", "hinge"}, default="logistic"
        Loss of the margin.
    candidates : int or None, default=None
        Number of candidate terms that boosting finds before ``max_terms`` of them are selected. None: twice
        ``max_terms``, or all learners. The lower bound covers any selection among all learners.
    max_weight : float or None, default=None
        Largest weight of a learner. None: twice the largest weight of the model that local search finds.
    fit_intercept : bool, default=True
        Whether the model has an intercept. It neither counts as a term nor is regularised.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the rows. None: all are equal.
    n_jobs : int or None, default=1
        Number of threads. None: all cores that joblib and threadpoolctl allow; -1: all cores.

    Returns
    -------
    ThinnedLearners
        The learners that are kept, with their weights and the certificate.

    Raises
    ------
    ValueError
        If there are not two classes, or an argument is out of range.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from cardboost.solvers.thinning import thin_learners
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X[:300], y[:300])
    >>> result = thin_learners(forest.estimators_, X[300:], y[300:], max_terms=5)
    >>> result.ensemble.n_terms
    5
    >>> result.verify(X[300:], y[300:])
    True
    """
    every = FittedLearners(learners)
    X = unmasked(X)
    classes, positive, weight, kept = weighted_classes(y, sample_weight, count_rows(X))
    if weight is not None:
        X, weight = take_rows(X, kept), weight[kept]
    terms = None if max_terms is None else whole("max_terms", max_terms, 1)
    if candidates is None:
        candidates = len(every) if terms is None else 2 * terms
    settings = TrainingSettings(
        loss=get_loss(loss),
        max_terms=terms,
        l0=number("l0", l0, 0.0),
        l1=number("l1", l1, 0.0),
        l2=number("l2", l2, 0.0),
        criterion="gain",
        hot_start=whole("candidates", candidates, 1),
        max_iter=len(every),
        max_weight=None if max_weight is None else number("max_weight", max_weight, 0.0, strict=True),
        tol=1e-4,
    )
    sign, intercept = np.where(positive, 1, -1).astype(np.int8), flag("fit_intercept", fit_intercept)
    rows = LearningRows(X, sign, classes, intercept, usable_threads(n_jobs))
    weights = RowWeights.make(len(sign), weight)
    risk = risk_of(settings.loss, weights, None, rows.threads)
    n_features = int(X.shape[1]) if len(getattr(X, "shape", ())) == 2 else 1
    frame = ModelFrame(model_loss(settings.loss), n_features, None, classes, (), ())
    return thin(LearnerTask(FittedDictionary(every.learners, rows), risk, frame, weight), settings)


def thin(task: LearnerTask, settings: TrainingSettings) -> ThinnedLearners:
    """Train on the learners of a task, and keep what is needed to verify the result."""
    result, empty = train(task, settings), task.dictionary.pool()
    constant = empty.margins(task.constant_weights(empty, settings.price_rule))
    certified = result.certificate.view
    assert isinstance(certified, CertifiedLearners)
    null_objective = task.risk.evaluate(constant).value
    return ThinnedLearners(result.ensemble, result.certificate, result.trace, certified, null_objective)

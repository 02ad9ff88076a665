"""Boosting stage by stage for classes: AdaBoost and its relatives, as scikit-learn's shell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from cardboost.boosting.stagewise import StageSettings, StepSearch, refuse_empty, train_stagewise
from cardboost.boosting.stagewise_steps import ClassificationSteps, ClassifierSteps
from cardboost.boosting.stump_task import StumpTask
from cardboost.data.arguments import flag, number, whole
from cardboost.data.threads import usable_threads
from cardboost.estimators.base import store_parameters
from cardboost.estimators.callbacks import Reporter, with_callbacks
from cardboost.estimators.classification import ClassifierCards, has_probabilities
from cardboost.model.base import normalised
from cardboost.problem.budget import clock
from cardboost.problem.losses import Loss, stagewise_loss

Array = NDArray[np.float64]


class StagewiseClassifier(ClassifierCards):
    """Boosting stage by stage: in every round the best learner, and a weight for it alone.

    With the exponential loss this is AdaBoost. The result is an ordinary ensemble of stumps, in which a stump
    that was chosen in several rounds is one term. The rules "always" and "never" are among the stumps; their
    weights make the intercept. There is no certificate:
    without a price on weights the only lower bound that the row weights give is 0 (docs/stagewise.md).

    Parameters
    ----------
    loss : {"exponential", "logistic", "hinge", "squared_hinge"} or Loss, default="exponential"
        Loss of the margin, by name or of your own.
        The hinge has corners, and at a corner no single learner may lower it: its rounds often end early.
    dictionary : "stumps", an estimator, a list of fitted learners, or several of these, default="stumps"
        The weak learners. Of a scikit-learn classifier, whose ``fit`` must accept ``sample_weight``, a clone
        is fitted in every round. Learners other than stumps need two classes.
    max_iter : int, default=100
        At most so many rounds.
    learning_rate : float, default=1.0
        Factor by which every weight is multiplied.
    validation_fraction : float or None, default=None
        A share of the rows that is held out, and ends the rounds when its loss no longer falls. The model is
        that of its best round.
    tol : float, default=1e-6
        Rounds end where no learner has a larger edge, the slope of the mean loss along it: what is left to
        gain is in rows of next to no weight, or is certainty of what is certain already. 0: never.
    fit_intercept : bool, default=False
        Begin with the best constant score instead of 0, with which AdaBoost begins.
    max_bins : int, default=255
        At most so many bins per feature (2 to 255), not counting the one for missing values.
    class_weight : dict, "balanced" or None, default=None
        Factors of the row weights, by class label; classes that are not named have 1. "balanced": inversely
        proportional to the total row weight of each class.
    categorical_features : "from_dtype", sequence or None, default="from_dtype"
        Which features hold categories: names, positions or a boolean mask. "from_dtype": columns of text and
        of categories. None: no feature.
    monotonic_cst : sequence, dict or None, default=None
        For every feature 1 if the score may only rise with it, -1 if it may only fall, and 0 otherwise; a
        sequence, or a dict by name or position. Not available for categories and more than two classes; for
        stumps only.
    random_state : int, RandomState or None, default=None
        Decides which rows are held out, and what learners draw.
    n_jobs : int or None, default=None
        Number of threads. None: all cores that joblib and threadpoolctl allow; -1: all cores. Results do not
        depend on it.
    verbose : int, default=0
        1 prints a line per round.

    Attributes
    ----------
    ensemble_ : Ensemble
        The fitted model, immutable and independent of the training code.
    trace_ : Trace
        One record per round: terms, objective, edge, error, weight, seconds; ``status`` says why it ended.
    n_iter_ : int
        Rounds of the model.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cardboost import StagewiseClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = StagewiseClassifier(max_iter=50).fit(X, y)
    >>> model.n_iter_
    50
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        *,
        loss: str | Loss = "exponential",
        dictionary: Any = "stumps",
        max_iter: int = 100,
        learning_rate: float = 1.0,
        validation_fraction: float | None = None,
        tol: float = 1e-6,
        random_state: Any = None,
        max_bins: int = 255,
        fit_intercept: bool = False,
        class_weight: Any = None,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Any = None) -> StagewiseClassifier:
        """Train on a table of numbers and categories, with missing values, and two classes or more.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the rows. A weight of 2 is the row twice.
        callback : FitCallback, callable or None
            Follows the fit and may end it: see :class:`cardboost.FitCallback`.

        Returns
        -------
        self
        """
        reporter = Reporter(self, X, y, callback)
        loss = stagewise_loss(self.loss, of_residual=False)
        settings = stage_settings(self, reporter, number("tol", self.tol, 0.0))
        fit_intercept = flag("fit_intercept", self.fit_intercept)
        prepared, _ = self._class_tasks(X, y, sample_weight, loss)
        reporter.begin()
        results = []
        for label, task in prepared.tasks:
            after = replace(settings, callback=reporter.after_round(prepared.reconstruction(), label))
            if isinstance(task, StumpTask):
                steps: StepSearch = ClassificationSteps(task, after, fit_intercept)
            else:
                steps = ClassifierSteps(task, after, fit_intercept)
            results.append(train_stagewise(steps, after))
            refuse_empty(results[-1])
        self._remember(prepared, results)
        self._loss = loss
        self.n_iter_ = max(len(result.path) for result in results)
        reporter.end()
        return self

    def _learner_intercept(self) -> bool:
        return False  # rounds begin with the constant instead

    # ------------------------------------------------------------------------------------ prediction

    def _score_loss(self) -> Loss | None:
        own = self._loss if hasattr(self, "ensemble_") else self.loss
        return own if isinstance(own, Loss) else super()._score_loss()

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes. Only available if the loss has probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``.
        """
        return self._chances(self.decision_function(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """The scores after every round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Yields
        ------
        array of shape (n_samples,) or (n_samples, n_classes)
            As returned by ``decision_function``.
        """
        rows = self._rows(X)
        last = self.n_iter_ - 1
        for k, score in enumerate(self._staged_scores(rows)):
            yield self.ensemble_.decision_function(rows, usable_threads(self.n_jobs)) if k == last else score

    @available_if(has_probabilities)
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """The probabilities after every round. Only available if the loss has probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Yields
        ------
        array of shape (n_samples, n_classes)
            As returned by ``predict_proba``.
        """
        for score in self.staged_decision_function(X):
            yield self._chances(score)

    def _staged_scores(self, rows: Any) -> Iterator[Array]:
        threads = usable_threads(self.n_jobs)
        paths = [path.scores(rows, threads) for path in self._paths]
        if len(paths) == 1:
            yield from paths[0]
            return
        latest = [np.full(rows.n_rows, path.course.start) for path in self._paths]
        for _ in range(self.n_iter_):
            latest = [next(path, score) for path, score in zip(paths, latest, strict=True)]
            yield np.column_stack(latest)

    def _chances(self, score: Array) -> Array:
        """Probabilities at these scores, those of more than two classes divided by their sum."""
        if score.ndim == 1:
            return np.column_stack([self._loss.probability(-score), self._loss.probability(score)])
        return normalised(self._loss.probability(score))


def stage_settings(model: Any, reporter: Reporter, tol: float = 0.0) -> StageSettings:
    """The parameters that both estimators have, checked."""
    return StageSettings(
        whole("max_iter", model.max_iter, 1),
        number("learning_rate", model.learning_rate, 0.0, strict=True),
        clock(),
        tol,
        stopped=reporter.callback.stopped,
    )

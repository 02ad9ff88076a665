"""Boosting stage by stage, AdaBoost and its relatives, as scikit-learn's shells."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from cardboost.boosting.stagewise import StageSettings, StepSearch, refuse_empty, train_stagewise
from cardboost.boosting.stagewise_steps import (
    ClassificationSteps,
    ClassifierSteps,
    RegressionSteps,
    RegressorSteps,
    first_constant,
)
from cardboost.boosting.stump_task import StumpTask
from cardboost.boosting.task import TrainingResult
from cardboost.data.arguments import number, whole
from cardboost.data.threads import usable_threads
from cardboost.estimators.base import BoostedCards, ClassifierCards, PreparedFit, TableParameters
from cardboost.estimators.predictions import NumberPredictions
from cardboost.estimators.rows import read_rows, training_tasks
from cardboost.problem.budget import Budget
from cardboost.problem.losses import Loss, stagewise_loss

Array = NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class StagewiseCards(BoostedCards):
    """Base of the stagewise estimators. Not for use by itself."""

    _intercept_columns: ClassVar[bool] = False  # rounds begin with the constant instead

    loss: str | Loss = "exponential"
    max_iter: int = 100
    learning_rate: float = 1.0
    validation_fraction: float | None = None

    def _prepare(self, X: Any, y: Any, sample_weight: Any, budget: Budget) -> PreparedFit:
        loss = stagewise_loss(self.loss, of_residual=is_regressor(self))
        settings = StageSettings(
            whole("max_iter", self.max_iter, 1),
            number("learning_rate", self.learning_rate, 0.0, strict=True),
            number("tol", self.tol, 0.0),
        )
        rows, held_out = read_rows(self, X, y, sample_weight, loss)
        tasks = training_tasks(self, rows, held_out, loss)
        return PreparedFit(rows, tasks, settings, {"_loss": loss})

    def _train(self, task: Any, settings: StageSettings, proving: Any) -> TrainingResult:
        result = train_stagewise(self._steps(task, settings), settings)
        if not is_regressor(self):
            refuse_empty(result)
        return result

    @abstractmethod
    def _steps(self, task: Any, settings: StageSettings) -> StepSearch:
        """What a round chooses from."""

    def _staged_scores(self, X: Any) -> Iterator[Array]:
        """The scores after every round, each from the one before; those of the model itself at its round."""
        rows, threads = self._rows(X), usable_threads(self.n_jobs)
        final = self.ensemble_.decision_function(rows, threads)
        paths = [path.scores(rows, threads) for path in self._paths]
        latest = [np.full(len(final), path.course.start) for path in self._paths]
        for _ in range(self.n_iter_ - 1):
            latest = [next(path, score) for path, score in zip(paths, latest, strict=True)]
            yield latest[0] if len(latest) == 1 else np.column_stack(latest)
        if self.n_iter_:
            yield final


@dataclass(kw_only=True, eq=False, repr=False)
class StagewiseClassifier(TableParameters, ClassifierCards, StagewiseCards):
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
    feature_importances_ : array of shape (n_features_in_,)
        How far each feature can move the score, as a share of what all features can; of stumps only.

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

    tol: float = 1e-6
    fit_intercept: bool = False

    def _steps(self, task: Any, settings: StageSettings) -> StepSearch:
        steps = ClassificationSteps if isinstance(task, StumpTask) else ClassifierSteps
        return steps(task, settings, first_constant(task) if self.fit_intercept else 0.0)


@dataclass(kw_only=True, eq=False, repr=False)
class StagewiseRegressor(TableParameters, NumberPredictions, StagewiseCards):
    """Boosting stage by stage for a number: every round adds a step function of one feature with two levels.

    The levels are means of residuals for the squared loss and weighted medians for the absolute one. There is
    no certificate (docs/stagewise.md).

    Parameters
    ----------
    loss : {"squared", "absolute"} or Loss, default="squared"
        Loss of the residual, by name or of your own.
    dictionary : "stumps", a scikit-learn regressor, or a list of regressors, default="stumps"
        What rounds choose from. A regressor is fitted anew in every round, to the residuals or their signs;
        of a list, those that are fitted already are taken as they are.
    max_iter : int, default=100
        At most so many rounds.
    learning_rate : float, default=1.0
        Factor by which the levels of every round are multiplied.
    validation_fraction : float or None, default=None
        A share of the rows that is held out, and ends the rounds when its loss no longer falls. The model is
        that of its best round.
    random_state : int, RandomState or None, default=None
        Decides which rows are held out, and what learners draw.
    max_bins : int, default=255
        At most so many bins per feature (2 to 255), not counting the one for missing values.
    categorical_features : "from_dtype", sequence or None, default="from_dtype"
        Which features hold categories: names, positions or a boolean mask. "from_dtype": columns of text and
        of categories. None: no feature.
    monotonic_cst : sequence, dict or None, default=None
        For every feature 1 if the prediction may only rise with it, -1 if it may only fall, and 0 otherwise;
        a sequence, or a dict by name or position. Not available for categories; for stumps only.
    n_jobs : int or None, default=None
        Number of threads. None: all cores that joblib and threadpoolctl allow; -1: all cores. Results do not
        depend on it.
    verbose : int, default=0
        1 prints a line per round.

    Attributes
    ----------
    ensemble_ : Ensemble
        The fitted model in the units of the target.
    trace_ : Trace
        One record per round; for the losses named above the objective is that of the standardised target.
    n_iter_ : int
        Rounds of the model.
    feature_importances_ : array of shape (n_features_in_,)
        How far each feature can move the score, as a share of what all features can; of stumps only.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cardboost import StagewiseRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = StagewiseRegressor(loss="absolute", max_iter=50).fit(X, y)
    >>> bool(abs(model.predict(X) - y).mean() < 45)
    True
    """

    tol: ClassVar[float] = 0.0  # rounds go on to the last edge
    fit_intercept: ClassVar[bool] = True  # the levels of a stump are free on both sides

    loss: str | Loss = "squared"

    def _steps(self, task: Any, settings: StageSettings) -> StepSearch:
        return (RegressionSteps if isinstance(task, StumpTask) else RegressorSteps)(task, settings)

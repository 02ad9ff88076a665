"""Boosting stage by stage for classes: AdaBoost and its relatives, as scikit-learn's shell."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from cardboost.boosting.resolve import resolve_dictionary
from cardboost.boosting.stagewise import StageResult, StageSettings, train_stagewise
from cardboost.boosting.stagewise_learners import HeldRows, train_stagewise_learners
from cardboost.data.binning import apply_cuts
from cardboost.data.table import Table
from cardboost.estimators.base import Progress
from cardboost.estimators.callbacks import Rounds, with_callbacks
from cardboost.estimators.classes import ClassifierCards, ClassRows, has_probabilities, plain
from cardboost.losses import Loss, stagewise_loss
from cardboost.model.learners import LearnerEnsemble
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.risk import risk_of
from cardboost.threads import usable_threads
from cardboost.validation import flag, number, whole

Array = NDArray[np.float64]


class StagewiseClassifier(ClassifierCards):
    """Boosting stage by stage: in every round the best learner, and a weight for it alone.

    With the exponential loss this is AdaBoost. The result is an ordinary ensemble of stumps, in which a stump
    that was chosen in several rounds is one term. The rules "always" and "never" are among the stumps; their
    weights make the intercept. There is no certificate:
    without a price on weights the only lower bound that the row weights give is 0 (docs/stagewise.md).

    Parameters
    ----------
    loss : {"exponential", "logistic", "hinge", "squared_hinge"} or a Loss of your own
        The hinge has corners, and at a corner no single learner may lower it: its rounds often end early.
    dictionary : "stumps", an estimator, a list of fitted learners, or several of these
        As in :class:`CardBoostClassifier`.
    max_iter : int
        At most so many rounds.
    learning_rate : float
        By which every weight is multiplied.
    validation_fraction : float or None
        A share of the rows that is held out, and ends the rounds when its loss no longer falls. The model is
        that of its best round. For stumps only.
    tol : float
        Rounds end where no learner has a larger edge, the slope of the mean loss along it: what is left to
        gain is in rows of next to no weight, or is certainty of what is certain already. 0: never.
    fit_intercept : bool
        Begin with the best constant score instead of 0, with which AdaBoost begins.
    max_bins : int
        At most so many bins per feature (2 to 255), not counting the one for missing values.
    class_weight : dict, "balanced" or None
    categorical_features, monotonic_cst
        As in :class:`CardBoostClassifier`.
    random_state : int, RandomState or None
        Decides which rows are held out, and what learners draw.
    n_jobs : int or None
        Threads. None: all cores that joblib and threadpoolctl allow; -1: all cores. Results do not depend
        on it.
    verbose : int
        1: a line per round.

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
        self.loss = loss
        self.dictionary = dictionary
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.random_state = random_state
        self.max_bins = max_bins
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StagewiseClassifier:
        """Train on a table of numbers and categories, with missing values, and two classes or more."""
        return self._fit(X, y, sample_weight)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        callback: Progress | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> StagewiseClassifier:
        """``callback`` sees every round and ends the fit by returning true; so does ``stopped``."""
        loss = self._loss = stagewise_loss(self.loss, of_residual=False)
        settings = stage_settings(self, time.perf_counter(), stopped)
        settings = replace(settings, tol=number("tol", self.tol, 0.0))
        start = flag("fit_intercept", self.fit_intercept)
        if resolve_dictionary(self.dictionary) != ("stumps",):
            return self._fit_learners(X, y, sample_weight, loss, settings, start, callback)
        table = self._read_for_fit(X)
        classes, rows = self._class_rows(table, y, sample_weight)
        rows, held = rows.split(self.validation_fraction, self.random_state)
        rounds = Rounds(self, X, y)
        results = self._train(rows, held, classes, loss, settings, start, rounds, callback)
        self._remember_stages(table, classes, results)
        if held is not None:
            self.validation_losses_ = [result.held_out for result in results]
        rounds.end()
        return self

    def _train(
        self,
        rows: ClassRows,
        held: ClassRows | None,
        classes: NDArray[Any],
        loss: Loss,
        settings: StageSettings,
        start: bool,
        rounds: Rounds,
        callback: Progress | None,
    ) -> list[StageResult]:
        fitted = self._reconstruction(rows.table, classes) if len(classes) == 2 else None
        results = []
        for label, task in self._tasks(rows, classes, loss, usable_threads(self.n_jobs), held=held):
            after = self._after_round(rounds, callback, fitted, label)
            results.append(train_stagewise(task, replace(settings, callback=after), start))
        return results

    def _fit_learners(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        loss: Loss,
        settings: StageSettings,
        start: bool,
        callback: Progress | None,
    ) -> StagewiseClassifier:
        """The same with weak learners that are not, or not only, stumps."""
        if self.monotonic_cst is not None:
            raise ValueError("monotonic_cst is for stumps only; with other learners leave it at None.")
        given = self._learner_rows(X, y, sample_weight, self.validation_fraction)
        held, threads = None, usable_threads(self.n_jobs)
        if given.held is not None:
            other, rows = given.held
            held = HeldRows(other, risk_of(loss, rows.weights(), rows.sign(1), threads))
        rounds = Rounds(self, X, y)
        own = replace(settings, callback=self._after_round(rounds, callback, None))
        result = train_stagewise_learners(
            self.dictionary, given.X, given.sign, loss, own, start, threads, held, **given.data
        )
        self.classes_ = given.classes
        self._remember_names(given.data["n_features"], given.data["feature_names"])
        self._learners = result
        if result.held_out is not None:
            self.validation_losses_ = [result.held_out]
        self.ensemble_: Any = result.ensemble
        self.trace_: Any = result.trace
        self.n_iter_ = len(result.weights)
        rounds.end()
        return self

    def _remember_stages(self, table: Table, classes: NDArray[Any], results: Sequence[StageResult]) -> None:
        """The fitted attributes: one result for two classes, else one for every class."""
        self.classes_ = classes
        self._remember_features(table)
        self._stage_paths = tuple(result.path for result in results)
        self.n_iter_ = max(len(path) for path in self._stage_paths)
        if len(classes) == 2:
            self.ensemble_, self.trace_ = results[0].ensemble, results[0].trace
        else:
            labels = tuple(plain(label) for label in classes)
            self.ensemble_ = MulticlassEnsemble(labels, tuple(result.ensemble for result in results))
            self.trace_ = [result.trace for result in results]

    # ------------------------------------------------------------------------------------ prediction

    def _score_loss(self) -> Loss | None:
        own = self._loss if hasattr(self, "ensemble_") else self.loss
        return own if isinstance(own, Loss) else super()._score_loss()

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, in the order of ``classes_``; not there if the loss has none."""
        return self._chances(self.decision_function(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """The scores after every round."""
        rows = self._rows(X)
        last = self.n_iter_ - 1
        for k, score in enumerate(self._staged_scores(rows)):
            yield self.ensemble_.decision_function(rows, usable_threads(self.n_jobs)) if k == last else score

    @available_if(has_probabilities)
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        for score in self.staged_decision_function(X):
            yield self._chances(score)

    def _staged_scores(self, rows: Any) -> Iterator[Array]:
        if isinstance(self.ensemble_, LearnerEnsemble):
            yield from self._learners.scores(rows)
            return
        paths = [
            path.scores(binned(rows, path.frame, usable_threads(self.n_jobs))) for path in self._stage_paths
        ]
        if len(paths) == 1:
            yield from paths[0]
            return
        latest = [np.full(rows.n_rows, path.start) for path in self._stage_paths]
        for _ in range(self.n_iter_):
            latest = [next(path, score) for path, score in zip(paths, latest, strict=True)]
            yield np.column_stack(latest)

    def _chances(self, score: Array) -> Array:
        """Probabilities at these scores, those of more than two classes divided by their sum."""
        if score.ndim == 1:
            return np.column_stack([self._loss.probability(-score), self._loss.probability(score)])
        return MulticlassEnsemble.normalised(self._loss.probability(score))


def stage_settings(model: Any, started: float, stopped: Callable[[], bool]) -> StageSettings:
    """The arguments that both estimators have, checked."""
    return StageSettings(
        whole("max_iter", model.max_iter, 1),
        number("learning_rate", model.learning_rate, 0.0, strict=True),
        started,
        stopped=stopped,
    )


def binned(table: Table, frame: Any, threads: int) -> NDArray[np.uint8]:
    """A table under the cuts and categories of a model."""
    return apply_cuts(table, frame.cuts, threads, frame.categories)

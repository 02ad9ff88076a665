"""``pareto_front``: all rows first, then the folds, then the proofs.

The models of all rows come first, by local search, so that an interruption leaves a model for every size.
Folds then give the scores, and proofs, size by size, the certificates.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from cardboost.data.arguments import whole
from cardboost.data.exact import refuse_mask, unmasked
from cardboost.data.labels import class_codes, real_targets, sample_weights
from cardboost.estimators.base import certificates_of
from cardboost.estimators.callbacks import limited_budget
from cardboost.estimators.card_boost import CardBoostClassifier, CardBoostRegressor
from cardboost.estimators.column_roles import warn_of_table
from cardboost.estimators.selecting import SizedFits, fit_sizes, with_chosen_l2
from cardboost.model.fitted_learner import count_rows
from cardboost.pareto.folds import Scorer, recalls, splits, take
from cardboost.pareto.front import ParetoFront, SizePoint
from cardboost.pareto.stability import TermComparison, compared_rows, feature_frequency
from cardboost.problem.budget import Budget, Stage, never

SIZES = tuple(range(1, 21))
REGULARISED_SIZES = 4  # that the l2 of a front is to suit: 5, 10, 15 and 20 of the sizes up to 20
MOST_CLASSES = 20  # a target with more different whole numbers is one of regression


def pareto_front(
    X: Any,
    y: Any,
    *,
    sizes: Sequence[int] | None = None,
    cv: Any = 5,
    scoring: Any = None,
    estimator: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    time_limit: float | None = None,
    verbose: int = 0,
) -> ParetoFront:
    """Cross-validated score against number of terms, with a fitted and certified model for every size.

    In every fold columns are generated once, and every size is chosen among them by local search that starts
    from the sizes beside it. The model of a size is fitted to all rows; its certificate says how much better
    any other model of this size could be on them.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_features)
        The table, as the estimator takes it.
    y : array-like of shape (n_rows,)
        The target.
    sizes : sequence of int, default None
        Terms at most, ascending; for more than two classes, per class. None is 1 to 20.
    cv : int, splitter or iterable of splits, default 5
        An int: so many folds, shuffled by ``random_state``, that have every class in its proportion.
    scoring : str or callable, default None
        The name of a scorer of scikit-learn for such a target, or a callable (estimator, X, y); higher is
        better. None is "neg_log_loss" for classification and "neg_mean_squared_error" for regression.
    estimator : CardBoostClassifier or CardBoostRegressor, default None
        Its settings are kept but for ``max_terms``. None follows from the target: text, truth values and at
        most 20 different whole numbers are classes. With ``l2="auto"`` all models have the one ``l2`` with
        the least loss in the folds of this front, as a mean over four of its sizes.
    sample_weight : array-like of shape (n_rows,), default None
        Row weights, of the fits and of the scores.
    n_jobs : int, default None
        Folds at the same time, through joblib. None is one, unless joblib is configured otherwise; each then
        uses the threads that the estimator may use. Results do not depend on it.
    random_state : int, RandomState instance or None, default None
        Decides which rows are in which fold.
    time_limit : float, default None
        Seconds for everything. Searches and proofs end early, and folds that are not done are left out, but
        for one. Reading and checking the data are not cut short.
    verbose : int, default 0
        1 prints a line for every step.

    Returns
    -------
    ParetoFront
        ``print(front)``, ``front.table()``, ``front.plot()``, ``front.pick("1se")``, ``front.save(path)``.

    Raises
    ------
    ValueError, TypeError
        Where an argument is wrong; the message names it.

    Notes
    -----
    Ctrl-C keeps what is done as soon as one fold is: the front that is returned has ``status`` "interrupted".
    A second Ctrl-C ends it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cardboost import pareto_front
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> front = pareto_front(X, y, sizes=[2, 4], cv=2, random_state=0)
    >>> model = front.pick(max_terms=4)
    >>> model.ensemble_.n_terms
    4
    """

    def say(stage: str, model: Any = None) -> None:
        if verbose:
            proof = ""
            if model is not None:
                guarantee = min(certificate.guarantee for certificate in certificates_of(model))
                proof = f", {model.max_terms} terms, {100 * guarantee:.1f} %"
            print(f"[cardboost] {budget.elapsed:7.2f} s  {stage}{proof}", flush=True)

    budget = limited_budget(time_limit)
    work = FrontWork.make(X, y, sizes, cv, scoring, estimator, sample_weight, n_jobs, random_state)
    return work.run(budget, say)


@dataclass(frozen=True, eq=False)
class FoldResult:
    """For every size a score, recalls at ``RATES`` (None unless there are two classes) and the model."""

    number: int
    scores: tuple[float, ...]
    recalls: tuple[tuple[float, ...] | None, ...]
    ensembles: tuple[Any, ...]
    late: bool  # time was up before all searches ended


@dataclass(frozen=True, eq=False)
class FrontWork:
    """The checked arguments of a front, and the work itself."""

    X: Any
    y: NDArray[Any]
    weight: Any
    sizes: tuple[int, ...]
    estimator: Any
    scorer: Scorer
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]]
    n_jobs: int

    @classmethod
    def make(
        cls, X: Any, y: Any, sizes: Any, cv: Any, scoring: Any, estimator: Any, sample_weight: Any,
        n_jobs: Any, random_state: Any,
    ) -> FrontWork:  # fmt: skip
        """Check the arguments of :func:`pareto_front`."""
        from joblib import effective_n_jobs

        if n_jobs is not None and whole("n_jobs", n_jobs, -(2**31)) == 0:
            raise ValueError("n_jobs must be a whole number other than 0, or None; got 0.")
        if sizes is not None:
            sizes = check_sizes(sizes)
        if not hasattr(X, "shape") and not hasattr(X, "__len__"):
            raise TypeError(f"X must be a table (an array or a frame); got {type(X).__name__}.")
        X, rows = unmasked(X), count_rows(X)
        model = default_estimator(y) if estimator is None else check_estimator(estimator)
        if sizes is None:  # a card has a term for every feature that it must include
            sizes = tuple(size for size in SIZES if size >= len(set(model.must_include or ())))
        classifier = is_classifier(model)
        if classifier:
            classes, codes = class_codes(y, rows)
            target: NDArray[Any] = classes[codes]
        else:
            target = real_targets(y, rows)
        weight = sample_weights(sample_weight, rows)
        scorer = Scorer.make(scoring, classifier, weight is not None)
        folds = splits(cv, target, weight, classifier, random_state)
        return cls(X, target, weight, sizes, model, scorer, folds, effective_n_jobs(n_jobs))

    def run(self, budget: Budget, say: Callable[..., None]) -> ParetoFront:
        """All rows, folds, proofs; ``budget.stopped`` is a wish to finish early.

        ``say`` gets a few words for every stage, and the model that was proved.
        """
        if isinstance(self.estimator.l2, str):
            say("regularisation")
            estimator = with_chosen_l2(
                self.estimator, self.X, self.y, self.weight, _some(self.sizes), self.folds,
                budget.within(Stage.FRONT_REGULARISATION),
            )  # fmt: skip
            return replace(self, estimator=estimator).run(budget, say)
        say("all rows")
        fits = fit_sizes(
            self.estimator, self.X, self.y, self.weight, self.sizes, budget.within(Stage.ALL_ROWS)
        )
        warn_of_table(self.X, fits.prepared.rows.table, self.estimator.categorical_features)
        done: list[FoldResult] = []
        interrupted = False
        try:
            with contextlib.closing(self._folds(budget.within(Stage.FOLDS))) as results:
                for result in results:
                    # a fold whose searches were ended early would say less of a size than none
                    if result is not None and not (done and result.late):
                        done.append(result)
                        say(f"folds: {len(done)} of {len(self.folds)} done")
                    if done and budget.stopped():
                        break
        except KeyboardInterrupt:
            if not done:
                raise
            interrupted = True
        late = fits.cut_short or len(done) < len(self.folds) or any(result.late for result in done)
        models = []
        try:
            proving = replace(budget.within(Stage.PROOFS), stopped=lambda: interrupted or budget.stopped())
            for model in self._proofs(fits, proving, say):
                models.append(model)
        except KeyboardInterrupt:
            interrupted = True
            models = [*models, *self._proofs(fits, replace(budget, stopped=lambda: True), say, len(models))]
        late = late or (budget.limited and budget.left < 0.1 * budget.seconds)
        status = "time limit" if late else "complete"
        if interrupted or budget.stopped():
            status = "interrupted"
        done.sort(key=lambda result: result.number)
        return ParetoFront(self._points(models, done), self.scorer.name, len(self.folds), status)

    def _folds(self, budget: Budget) -> Generator[FoldResult | None]:
        """The folds as they become ready, None for one that was not begun."""
        folds, deadline = range(len(self.folds)), budget.deadline
        if self.n_jobs > 1:
            from joblib import Parallel, delayed

            parallel = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")
            calls = (delayed(_fold_in_worker)(self, fold, deadline) for fold in folds)
            with contextlib.closing(parallel(calls)) as results:
                yield from results
            return
        seconds = 0.0  # of the fold before: in less time a fold would be ended early
        for fold in folds:
            if fold > 0 and budget.left < seconds:
                return
            start = budget.elapsed
            yield self.run_fold(fold, deadline, budget.stopped)
            seconds = budget.elapsed - start

    def run_fold(
        self, number: int, deadline: float = math.inf, stopped: Callable[[], bool] = never
    ) -> FoldResult | None:
        """Fit every size on the training rows of a fold, and score it on the others.

        None where it was too late to begin; the first fold is run in any case. ``deadline``: of a budget.
        """
        budget = Budget.before(deadline, stopped)
        if budget.seconds == 0.0 and number > 0:
            return None
        kept, held = self.folds[number]
        fits = fit_sizes(self.estimator, *self._rows(kept), self.sizes, budget)
        late = stopped() or fits.cut_short or (budget.limited and budget.left < 0.1 * budget.seconds)
        models, rows = fits.models(), self._rows(held)
        scores = tuple(self.scorer(model, *rows, number) for model in models)
        binary = is_classifier(models[0]) and len(models[0].classes_) == 2
        curves = tuple(recalls(model, *rows) if binary else None for model in models)
        return FoldResult(number, scores, curves, tuple(model.ensemble_ for model in models), late)

    def _rows(self, rows: NDArray[np.intp]) -> tuple[Any, NDArray[Any], Any]:
        """Some rows with their targets and weights."""
        return take(self.X, rows), self.y[rows], None if self.weight is None else self.weight[rows]

    def _proofs(
        self, fits: SizedFits, budget: Budget, say: Callable[..., None], first: int = 0
    ) -> Iterator[Any]:
        """The model of every size with its certificate, from the ``first`` size on."""
        before: Any = ()
        for k in range(first, len(self.sizes)):
            model, before = fits.prove(k, budget.part(k, len(self.sizes)), before)
            say(f"proofs: {k + 1} of {len(self.sizes)}", model)
            yield model

    def _points(self, models: list[Any], done: list[FoldResult]) -> tuple[SizePoint, ...]:
        rows = compared_rows(len(self.y))
        terms = TermComparison(self.X if len(rows) == len(self.y) else take(self.X, rows))
        points = []
        for k, (size, model) in enumerate(zip(self.sizes, models, strict=True)):
            curves = [fold.recalls[k] for fold in done]
            others = [fold.ensembles[k] for fold in done]
            points.append(
                SizePoint(
                    size,
                    tuple(fold.scores[k] for fold in done),
                    None if None in curves else tuple(curve for curve in curves if curve is not None),
                    model,
                    terms.frequency(model.ensemble_, others),
                    feature_frequency(model.ensemble_, others),
                )
            )
        return tuple(points)


def _fold_in_worker(work: FrontWork, number: int, deadline: float) -> FoldResult | None:
    """Run a fold in a worker, which leaves Ctrl-C to the process that waits for it."""
    if multiprocessing.parent_process() is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return work.run_fold(number, deadline)


def _some(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """At most ``REGULARISED_SIZES`` of the sizes, evenly spread, the largest among them."""
    count = min(len(sizes), REGULARISED_SIZES)
    return tuple(sizes[((k + 1) * len(sizes)) // count - 1] for k in range(count))


def check_sizes(sizes: Any) -> tuple[int, ...]:
    """Whole numbers of at least 1, each above the one before."""
    message = f"sizes must be ascending whole numbers of at least 1; got {sizes!r}."
    try:
        values = list(sizes)
    except TypeError:
        raise TypeError(message) from None
    if isinstance(sizes, str) or not values:
        raise ValueError(message)
    values = [whole("sizes", size, 1) for size in values]
    for before, size in pairwise(values):
        if size <= before:
            raise ValueError(f"sizes must ascend; got {size} after {before}.")
    return tuple(values)


def check_estimator(estimator: Any) -> Any:
    if not isinstance(estimator, CardBoostClassifier | CardBoostRegressor):
        kind = f"the class {estimator.__name__}" if isinstance(estimator, type) else type(estimator).__name__
        raise TypeError(
            f"estimator must be a CardBoostClassifier(...) or a CardBoostRegressor(...); got {kind}."
        )
    return estimator


def default_estimator(y: Any) -> Any:
    """A classifier for text, truth values and few whole numbers; a regressor for other numbers."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    refuse_mask(y, "y")
    target = np.asarray(y)
    if target.dtype.kind not in "iuf" or target.ndim != 1:
        return CardBoostClassifier()
    values = np.unique(target[np.isfinite(target)] if target.dtype.kind == "f" else target)
    classes = len(values) <= MOST_CLASSES and bool((values == np.rint(values)).all())
    return CardBoostClassifier() if classes else CardBoostRegressor()

"""The soft-margin classifier: scikit-learn's shell around boosting on the simplex."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.on_simplex import SoftMarginSettings, soft_margin_path, train_soft_margin
from cardboost.boosting.stump_task import StumpTask
from cardboost.boosting.task import TrainingResult
from cardboost.data.arguments import number, whole
from cardboost.data.labels import search_seed
from cardboost.estimators.base import ClassifierCards, PreparedFit, TableParameters
from cardboost.estimators.rows import TrainingRows, read_rows, training_tasks
from cardboost.problem.budget import Budget, Stage
from cardboost.problem.losses import get_loss

Array = NDArray[np.float64]

_METHODS = ("newton", "mprp")
_CHOSEN = 0.002  # slack where the temperature is chosen
_COLDEST = 1e-5  # margins of 1e5 leave four digits of the objective to be checked
_MAX_LEARNERS = 100  # rounds in which learners are fitted, unless the user says how many
#: what is tried unless the user says what: the sum of weights doubles every two steps
TEMPERATURES = tuple(2.0 ** (-0.5 * k) for k in range(-2, 15))
_SEARCH_TOL = 1e-3  # gap on the way: what is compared differs by much more
_PATIENCE = 4  # temperatures without a lower log loss after which the folds stop
_LOSS = get_loss("exponential")  # the soft margin is the logarithm of its mean: margins mean the same


@dataclass(kw_only=True, eq=False, repr=False)
class SoftMarginClassifier(TableParameters, ClassifierCards):
    """Boosting with the largest soft margin: all weights at once, with a given sum, and a certificate.

    Minimises ``log sum_i s_i exp(-margin_i)`` over weights of at least 0 that add up to ``1 / temperature``,
    over all stumps of the table. A high temperature leaves little weight to give away, and few stumps get
    any; a low one looks for the largest least margin. The gap of the certificate is over all stumps.

    Parameters
    ----------
    temperature : float or "cv", default=0.1
        The weights, that of the intercept included, add up to its inverse. "cv": the one with the least log
        loss of held-out rows (see ``cv`` and ``temperatures``); ``temperature_`` and ``cv_results_`` then say
        what was found.
    method : {"newton", "mprp"}, default="newton"
        Newton steps on the columns in use, or the conjugate gradients of the paper over all of them. Both end
        at the same model; the first is much faster.
    dictionary : "stumps", an estimator, a list of fitted learners, or several of these, default="stumps"
        The weak learners. Of a scikit-learn classifier, whose ``fit`` must accept ``sample_weight``, a clone
        is fitted in every round. Learners other than stumps need two classes.
    tol : float, default=1e-6
        The gap, in units of the objective, at which to stop.
    slack : float or "auto", default="auto"
        The share of the improvement over the empty model that may be given up for fewer terms, below 1; the
        certificate says what it cost. "auto": 0, the optimum, for a given temperature. With "cv", where the
        temperature is known no better than that, 0.002: it leaves about 60 % of the terms.
    max_bins : int, default=255
        At most so many bins per feature (2 to 255), not counting the one for missing values.
    max_iter : int or None, default=None
        At most so many rounds: looks at the whole dictionary, or steps of "mprp". None: 1000 and 50,000, and
        100 where learners are fitted in every round.
    time_limit : float or None, default=None
        Seconds after which the best model so far is returned; with "cv" half of them are for choosing.
        Reading, checking and binning the data are not cut short.
    fit_intercept : bool, default=True
        Whether the rule "always this class" is one of the weak learners.
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
    cv : int or scikit-learn splitter, default=5
        For ``temperature="cv"``: folds, with the classes in equal shares.
    temperatures : sequence of float or None, default=None
        What "cv" chooses from, from the highest down until four in a row have a higher log loss than the best
        one. None: 17 values from 2 to 1/128, a factor of the square root of 2 apart.
    warm_start : bool, default=False
        Start from the model of the last fit.
    random_state : int, RandomState or None, default=None
        Decides the folds, and what learners draw. None: the same every time.
    n_jobs : int or None, default=None
        Number of threads. None: all cores that joblib and threadpoolctl allow; -1: all cores. Results do not
        depend on it.
    verbose : int, default=0
        1 prints a line per round.

    Attributes
    ----------
    ensemble_ : Ensemble
        The fitted model, immutable and independent of the training code.
    certificate_ : Certificate
        Objective, lower bound over all stumps, and proof; ``certificate_.verify(X, y)`` checks it
        independently.
    temperature_ : float
        The temperature of the model.
    cv_results_ : dict
        With "cv", for every temperature: "mean_log_loss", "std_log_loss", "mean_error", "std_error" and
        "mean_terms"; and "log_losses" and "errors" of every fold.
    trace_ : Trace
        One record per round: columns, terms, objective, lower bound, edge, seconds.
    feature_importances_ : array of shape (n_features_in_,)
        How far each feature can move the score, as a share of what all features can; of stumps only.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cardboost import SoftMarginClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = SoftMarginClassifier(temperature=0.5).fit(X, y)
    >>> bool(model.certificate_.gap <= 1e-6)
    True
    >>> model.certificate_.verify(X, y)
    True
    """

    stump_parameters: ClassVar[tuple[str, ...]] = ("method", "slack", "monotonic_cst", "warm_start")

    temperature: float | str = 0.1
    method: str = "newton"
    tol: float = 1e-6
    slack: float | str = "auto"
    max_iter: int | None = None
    time_limit: float | None = None
    fit_intercept: bool = True
    cv: Any = 5
    temperatures: Any = None
    warm_start: bool = False

    def _prepare(self, X: Any, y: Any, sample_weight: Any, budget: Budget) -> PreparedFit:
        settings = self._settings(budget)
        rows, _ = read_rows(self, X, y, sample_weight, _LOSS)
        tasks = training_tasks(self, rows, None, _LOSS, self._earlier(rows))
        fitted = self._chosen_temperature(rows, budget)
        settings = replace(settings, radius=1.0 / fitted["temperature_"])
        if self.max_iter is None and rows.X is not None:
            settings = replace(settings, max_iter=_MAX_LEARNERS)
        return PreparedFit(rows, tasks, settings, fitted)

    def _settings(self, budget: Budget) -> SoftMarginSettings:
        """All arguments checked; the radius follows later."""
        if self.method not in _METHODS:
            raise ValueError(f"method must be 'newton' or 'mprp'; got {self.method!r}.")
        if isinstance(self.temperature, str):
            if self.temperature != "cv":
                raise ValueError(f"temperature must be a number above 0 or 'cv'; got {self.temperature!r}.")
        elif number("temperature", self.temperature, 0.0, strict=True) < _COLDEST:
            raise ValueError(
                f"temperature={self.temperature!r} is too small for double precision: at least {_COLDEST:g}."
            )
        most = 1000 if self.method == "newton" else 50_000
        slack = (_CHOSEN if self.temperature == "cv" else 0.0) if self.slack == "auto" else self.slack
        if number("slack", slack, 0.0) >= 1.0:
            raise ValueError(f"slack must be below 1; got {self.slack!r}.")
        return SoftMarginSettings(
            radius=1.0,
            method=self.method,
            tol=number("tol", self.tol, 0.0),
            slack=float(slack),
            max_iter=most if self.max_iter is None else whole("max_iter", self.max_iter, 1),
            budget=budget,
        )

    def _chosen_temperature(self, rows: TrainingRows, budget: Budget) -> dict[str, Any]:
        """The fitted attributes: the temperature, and how it was chosen if it was."""
        if self.temperature != "cv":
            return {"temperature_": float(self.temperature)}
        if rows.X is not None:
            raise ValueError(
                "temperature='cv' is for stumps only; with other learners search by "
                "sklearn.model_selection.GridSearchCV."
            )
        late = budget.end_of(Stage.TEMPERATURES)
        temperatures = check_temperatures(self.temperatures)
        temperature, cv_results = search_temperatures(self, temperatures, rows, late)
        return {"temperature_": temperature, "cv_results_": cv_results}

    def _train(self, task: Any, settings: SoftMarginSettings, proving: Any) -> TrainingResult:
        return train_soft_margin(task, settings)


# ------------------------------------------------------------------------------------------------ choosing


def check_temperatures(temperatures: Any) -> tuple[float, ...]:
    """In falling order."""
    if temperatures is None:
        return TEMPERATURES
    try:
        values = list(temperatures)
    except TypeError as error:
        raise ValueError(f"temperatures must be a sequence of numbers; got {temperatures!r}.") from error
    if not values:
        raise ValueError("temperatures must have at least one entry.")
    return tuple(
        sorted({number("temperatures", value, 1e-300, strict=True) for value in values}, reverse=True)
    )


def search_temperatures(
    estimator: SoftMarginClassifier,
    temperatures: tuple[float, ...],
    rows: TrainingRows,
    late: Callable[[], bool],
) -> tuple[float, dict[str, Any]]:
    """The temperature of the least held-out log loss, and what is known of all (``cv_results_``).

    All folds go together along the path of falling temperatures. They stop where the held-out log loss has
    been above its least for several temperatures: from there on the models only get larger and slower.
    ``late``: whether to make do with what is known.
    """
    folds = []
    for kept, held in _folds(rows.y, estimator.cv, estimator.random_state):
        tasks = [task for _, task in training_tasks(estimator, rows.take(kept), rows.take(held), _LOSS)]
        folds.append(_fold_scores(rows.take(held), tasks, temperatures, late))
    tried: list[Array] = []  # for every temperature: folds by loss, error and terms
    for _ in temperatures:
        scores = [next(fold) for fold in folds if not late()]
        if len(scores) < len(folds):
            break
        tried.append(np.array(scores))
        means = [float(by_fold[:, 0].mean()) for by_fold in tried]
        if len(tried) - int(np.argmin(means)) > _PATIENCE:
            break
    if not tried:
        warnings.warn("time_limit: no temperature could be tried; the highest is taken.", stacklevel=6)
        return temperatures[0], {}
    losses, errors, terms = np.stack(tried, axis=2).transpose(1, 0, 2)
    results = {
        "temperature": np.array(temperatures[: len(tried)]),
        "mean_log_loss": losses.mean(axis=0),
        "std_log_loss": losses.std(axis=0),
        "mean_error": errors.mean(axis=0),
        "std_error": errors.std(axis=0),
        "mean_terms": terms.mean(axis=0),
        "log_losses": losses,
        "errors": errors,
    }
    return float(temperatures[int(np.argmin(results["mean_log_loss"]))]), results


def _folds(
    codes: NDArray[np.intp], cv: Any, random_state: Any
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    from sklearn.model_selection import StratifiedKFold, check_cv  # many modules

    splitter = cv
    if not hasattr(splitter, "split") and not isinstance(splitter, list | tuple):
        folds = whole("cv", splitter, 2)
        most = int(np.bincount(codes).max())
        if most < folds:
            raise ValueError(
                f"cv={folds}: no class has so many rows of positive weight; the largest has {most}. "
                "Give fewer folds or a temperature."
            )
        splitter = StratifiedKFold(folds, shuffle=True, random_state=search_seed(random_state))
    with warnings.catch_warnings():  # a class with fewer rows than folds is missing in some of them
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        folds_of = list(check_cv(splitter, codes, classifier=True).split(np.zeros(len(codes)), codes))
    yield from folds_of


def _fold_scores(
    held: TrainingRows, tasks: list[StumpTask], temperatures: tuple[float, ...], late: Callable[[], bool]
) -> Iterator[tuple[float, float, int]]:
    """Log loss and error of the held-out rows, and terms in use, at one temperature after the other."""
    radii = [1.0 / temperature for temperature in temperatures]
    weight = held.effective_weights()
    weight = np.ones(len(held.y)) if weight is None else weight
    share = weight / weight.sum()
    for models in zip(*(soft_margin_path(task, radii, _SEARCH_TOL, late) for task in tasks), strict=True):
        scores, n_terms = [], 0
        for task, (weights, pool) in zip(tasks, models, strict=True):
            assert task.held_out is not None
            assert task.held_out.risk.sign is not None
            scores.append(task.held_out.margins(pool, weights) * task.held_out.risk.sign)
            n_terms += int(np.count_nonzero(weights[pool.n_free :]))
        yield *_held_out_scores(scores, held.y, share), n_terms


def _held_out_scores(scores: list[Array], codes: NDArray[np.intp], share: Array) -> tuple[float, float]:
    """Log loss and error, from the scores of the second class, or of every class against the rest.

    A score of s stands for the probability 1 / (1 + exp(-2 s)); those of several classes are divided by their
    sum.
    """
    every = np.stack([-scores[0], scores[0]] if len(scores) == 1 else scores)
    log_share = -np.logaddexp(0.0, -2.0 * every)
    of_label = log_share[codes, np.arange(len(codes))]
    if len(scores) > 1:
        of_label = of_label - np.logaddexp.reduce(log_share, axis=0)
    wrong = np.argmax(every, axis=0) != codes
    return -float(of_label @ share), float(wrong @ share)

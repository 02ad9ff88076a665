"""The soft-margin classifier: scikit-learn's shell around boosting on the simplex."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.resolve import resolve_dictionary
from cardboost.boosting.soft_margin import SoftMarginSettings, train_soft_margin
from cardboost.boosting.soft_margin_learners import train_soft_learners
from cardboost.boosting.training import TrainingResult
from cardboost.data.arguments import flag, number, whole
from cardboost.data.threads import usable_threads
from cardboost.estimators.base import Progress
from cardboost.estimators.callbacks import Rounds, with_callbacks
from cardboost.estimators.classes import ClassifierCards, ClassRows
from cardboost.estimators.temperatures import TemperatureSearch, check_temperatures
from cardboost.problem.budget import Budget, Stage
from cardboost.problem.losses import get_loss

Array = NDArray[np.float64]

_METHODS = ("newton", "mprp")
_CHOSEN = 0.002  # slack where the temperature is chosen
_COLDEST = 1e-5  # margins of 1e5 leave four digits of the objective to be checked
_LEARNERS = 100  # rounds in which learners are fitted, unless the user says how many
_LOSS = get_loss("exponential")  # the soft margin is the logarithm of its mean: margins mean the same


class SoftMarginClassifier(ClassifierCards):
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
    method : {"newton", "mprp"}
        Newton steps on the columns in use, or the conjugate gradients of the paper over all of them. Both end
        at the same model; the first is much faster.
    dictionary : "stumps", an estimator, a list of fitted learners, or several of these
        As in :class:`CardBoostClassifier`.
    tol : float
        The gap, in units of the objective, at which to stop.
    slack : float or "auto"
        The share of the improvement over the empty model that may be given up for fewer terms, below 1; the
        certificate says what it cost. "auto": 0, the optimum, for a given temperature. With "cv", where the
        temperature is known no better than that, 0.002: it leaves about 60 % of the terms.
    max_bins : int
        At most so many bins per feature (2 to 255), not counting the one for missing values.
    max_iter : int or None
        At most so many rounds: looks at the whole dictionary, or steps of "mprp". None: 1000 and 50,000, and
        100 where learners are fitted in every round.
    time_limit : float or None
        Seconds after which the best model so far is returned; with "cv" half of them are for choosing.
        Reading, checking and binning the data are not cut short.
    fit_intercept : bool
        Whether the rule "always this class" is one of the weak learners.
    class_weight : dict, "balanced" or None
    categorical_features, monotonic_cst
        As in :class:`CardBoostClassifier`.
    cv : int or a splitter of scikit-learn
        For ``temperature="cv"``: folds, with the classes in equal shares.
    temperatures : sequence of float or None
        What "cv" chooses from, from the highest down until four in a row have a higher log loss than the best
        one. None: 17 values from 2 to 1/128, a factor of the square root of 2 apart.
    warm_start : bool
        Start from the model of the last fit.
    random_state : int, RandomState or None
        Decides the folds, and what learners draw. None: the same every time.
    n_jobs : int or None
        Threads. None: all cores that joblib and threadpoolctl allow; -1: all cores. Results do not depend
        on it.
    verbose : int
        1: a line per round.

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

    def __init__(
        self,
        *,
        temperature: float | str = 0.1,
        method: str = "newton",
        dictionary: Any = "stumps",
        tol: float = 1e-6,
        slack: float | str = "auto",
        max_bins: int = 255,
        max_iter: int | None = None,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        cv: Any = 5,
        temperatures: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.temperature = temperature
        self.method = method
        self.dictionary = dictionary
        self.tol = tol
        self.slack = slack
        self.max_bins = max_bins
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.cv = cv
        self.temperatures = temperatures
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SoftMarginClassifier:
        """Train on a table of numbers and categories, with missing values, and two classes or more."""
        return self._fit(X, y, sample_weight)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        callback: Progress | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> SoftMarginClassifier:
        """``callback`` sees every round and ends the fit by returning true; so does ``stopped``."""
        settings = self._settings(stopped)
        if resolve_dictionary(self.dictionary) != ("stumps",):
            return self._fit_learners(X, y, sample_weight, settings, callback)
        table = self._read_for_fit(X)
        classes, rows = self._class_rows(table, y, sample_weight)
        earlier = getattr(self, "_paths", None) if flag("warm_start", self.warm_start) else None
        self._check_classes(earlier or None, classes)
        temperature, results = self._temperature(rows, classes, settings)
        settings = replace(settings, radius=1.0 / temperature)
        rounds = Rounds(self, X, y)
        found = self._train(rows, classes, settings, earlier or None, rounds, callback)
        self._remember(table, classes, found)
        self.n_iter_ = max(len(result.trace) for result in found)
        self.temperature_ = temperature
        if results is not None:
            self.cv_results_ = results
        elif hasattr(self, "cv_results_"):
            del self.cv_results_
        rounds.end()
        return self

    def _fit_learners(
        self, X: Any, y: Any, sample_weight: Any, settings: SoftMarginSettings, callback: Progress | None
    ) -> SoftMarginClassifier:
        """The same with weak learners that are not, or not only, stumps."""
        for name, off, changed in (
            ("method", "newton", self.method != "newton"),
            ("slack", "auto", self.slack != "auto"),
            ("monotonic_cst", None, self.monotonic_cst is not None),
            ("warm_start", False, flag("warm_start", self.warm_start)),
        ):
            if changed:
                raise ValueError(f"{name} is for stumps only; with other learners leave it at {off!r}.")
        if self.temperature == "cv":
            raise ValueError(
                "temperature='cv' is for stumps only; with other learners search by "
                "sklearn.model_selection.GridSearchCV."
            )
        given = self._learner_rows(X, y, sample_weight)
        rounds = Rounds(self, X, y)
        most = _LEARNERS if self.max_iter is None else settings.max_iter
        own = replace(
            settings,
            radius=1.0 / float(self.temperature),
            max_iter=most,
            callback=self._after_round(rounds, callback, None),
        )
        result = train_soft_learners(
            self.dictionary, given.X, given.sign, own,
            flag("fit_intercept", self.fit_intercept), usable_threads(self.n_jobs), **given.data,
        )  # fmt: skip
        self._remember_learners(given, result)
        self.n_iter_ = len(result.trace)
        self.temperature_ = float(self.temperature)
        rounds.end()
        return self

    def _settings(self, stopped: Callable[[], bool]) -> SoftMarginSettings:
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
        limit = None if self.time_limit is None else number("time_limit", self.time_limit, 0.0, strict=True)
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
            budget=Budget.of(limit, stopped),
        )

    def _temperature(
        self, rows: ClassRows, classes: NDArray[Any], settings: SoftMarginSettings
    ) -> tuple[float, dict[str, Any] | None]:
        """The temperature, and how it was chosen if it was."""
        if self.temperature != "cv":
            return float(self.temperature), None
        search = TemperatureSearch(
            check_temperatures(self.temperatures),
            self.cv,
            self.random_state,
            settings.budget.end_of(Stage.TEMPERATURES),
        )
        threads = usable_threads(self.n_jobs)
        return search.run(rows, lambda kept, held: self._tasks(kept, classes, _LOSS, threads, held=held))

    def _train(
        self,
        rows: ClassRows,
        classes: NDArray[Any],
        settings: SoftMarginSettings,
        earlier: Any,
        rounds: Rounds,
        callback: Progress | None,
    ) -> list[TrainingResult]:
        binary, results = len(classes) == 2, []
        fitted = self._reconstruction(rows.table, classes) if binary else None
        tasks = self._tasks(rows, classes, _LOSS, usable_threads(self.n_jobs), earlier)
        for k, (label, task) in enumerate(tasks):
            own = settings
            if not binary:
                own = replace(settings, budget=settings.budget.part(k, len(classes)))
            after = self._after_round(rounds, callback, fitted, label)
            results.append(train_soft_margin(task, replace(own, callback=after)))
        return results

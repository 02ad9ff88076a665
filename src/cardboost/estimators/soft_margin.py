"""The soft-margin classifier: scikit-learn's shell around boosting on the simplex."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from cardboost.boosting.on_simplex import SoftMarginSettings, train_soft_margin
from cardboost.data.arguments import flag, number, whole
from cardboost.estimators.base import PreparedFit, store_parameters
from cardboost.estimators.callbacks import Reporter, with_callbacks
from cardboost.estimators.classification import ClassifierCards, ClassRows
from cardboost.estimators.temperatures import TemperatureSearch, check_temperatures
from cardboost.problem.budget import Stage
from cardboost.problem.losses import get_loss

_METHODS = ("newton", "mprp")
_CHOSEN = 0.002  # slack where the temperature is chosen
_COLDEST = 1e-5  # margins of 1e5 leave four digits of the objective to be checked
_MAX_LEARNERS = 100  # rounds in which learners are fitted, unless the user says how many
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
        store_parameters(self, locals())

    _STUMP_PARAMETERS: ClassVar = {
        "method": "newton",
        "slack": "auto",
        "monotonic_cst": None,
        "warm_start": False,
    }

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Any = None) -> SoftMarginClassifier:
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
        settings = self._settings(reporter)
        earlier = getattr(self, "_paths", None) if flag("warm_start", self.warm_start) else None
        prepared, rows = self._class_tasks(X, y, sample_weight, _LOSS, earlier or None)
        temperature, cv_results = self._temperature(prepared, rows, settings)
        settings = replace(settings, radius=1.0 / temperature)
        if self.max_iter is None and prepared.table is None:
            settings = replace(settings, max_iter=_MAX_LEARNERS)
        reporter.begin()
        results = []
        for k, (label, task) in enumerate(prepared.tasks):
            budget = settings.budget
            budget = budget if prepared.n_tasks == 1 else budget.part(k, prepared.n_tasks)
            after = reporter.after_round(prepared.reconstruction(), label)
            results.append(train_soft_margin(task, replace(settings, budget=budget, callback=after)))
        self._remember(prepared, results)
        self.n_iter_ = max(len(result.trace) for result in results)
        self.temperature_ = temperature
        if cv_results is not None:
            self.cv_results_ = cv_results
        reporter.end()
        return self

    def _settings(self, reporter: Reporter) -> SoftMarginSettings:
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
            budget=reporter.budget(limit),
        )

    def _temperature(
        self, prepared: PreparedFit, rows: ClassRows, settings: SoftMarginSettings
    ) -> tuple[float, dict[str, Any] | None]:
        """The temperature, and how it was chosen if it was."""
        if self.temperature != "cv":
            return float(self.temperature), None
        classes = prepared.classes
        if prepared.table is None or classes is None:
            raise ValueError(
                "temperature='cv' is for stumps only; with other learners search by "
                "sklearn.model_selection.GridSearchCV."
            )
        late = settings.budget.end_of(Stage.TEMPERATURES)
        temperatures = check_temperatures(self.temperatures)
        search = TemperatureSearch(temperatures, self.cv, self.random_state, late)
        return search.run(
            rows, lambda kept, held_out: self._stump_tasks(kept, classes, _LOSS, None, held_out)
        )

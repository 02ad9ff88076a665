"""Estimators that choose few terms of many: parameters, going on with a proof, fits for many sizes."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from cardboost.boosting.candidates import Candidates, restored_candidates
from cardboost.boosting.cross_validation import (
    AUTO_SIZES,
    FIXED_L2,
    Regularisation,
    RegularisationSearch,
    Split,
    choose_regularisation,
)
from cardboost.boosting.path import BoostingPath
from cardboost.boosting.task import TrainingResult, TrainingSettings
from cardboost.boosting.training import SizedTraining, train, train_sizes
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.checker.format import MOST_TERMS
from cardboost.data.arguments import flag, number, whole
from cardboost.data.exact import unmasked
from cardboost.data.labels import search_seed
from cardboost.data.threads import usable_threads
from cardboost.dictionary.base import Criterion
from cardboost.estimators.base import BoostedCards, PreparedFit, certificates_of
from cardboost.estimators.callbacks import FitCallback, Reporter, limited_budget
from cardboost.estimators.feature_rules import feature_limits
from cardboost.estimators.rows import TrainingRows, labelled_rows, read_rows, training_tasks
from cardboost.model.ensemble import Ensemble
from cardboost.model.learners import LearnerEnsemble
from cardboost.problem.budget import Budget, Stage
from cardboost.problem.losses import Loss
from cardboost.problem.trace import Status
from cardboost.selection.exact import Progress
from cardboost.selection.select import SearchOptions, check_method
from cardboost.selection.tabu import check_bits


@dataclass(frozen=True, eq=False)
class SelectingFit(PreparedFit):
    """The fit of an estimator with ``max_terms``, before anything is trained."""

    def choose(
        self,
        tasks: Sequence[Any],
        search: RegularisationSearch,
        budget: Budget,
        splits: Sequence[Split] | None = None,
    ) -> Regularisation:
        """Cross-validate the ``tasks`` of this fit."""
        codes = None if self.rows.classes is None else self.rows.y
        return choose_regularisation(tasks, codes, self.settings, search, budget, splits)

    def regularised(self, chosen: Regularisation) -> SelectingFit:
        """With this regularisation, which the fitted attributes tell."""
        settings = replace(self.settings, l2=chosen.l2, max_terms=chosen.max_terms)
        fitted = {"l2_": chosen.l2, "max_terms_": chosen.max_terms, "regularisation_": chosen}
        return replace(self, settings=settings, fitted=fitted)


@dataclass(kw_only=True, eq=False, repr=False)
class SelectingCards(BoostedCards):
    """Base of the estimators with ``max_terms``. Not for use by itself."""

    stump_parameters: ClassVar[tuple[str, ...]] = (
        "monotonic_cst", "max_features", "feature_costs", "cuts", "must_include", "exclude",
        "at_most_one_of", "missing", "validation_fraction", "warm_start",
    )  # fmt: skip

    max_terms: int | Literal["auto"] | None = 10
    l0: float = 0.0
    l1: float = 1e-4
    l2: float | Literal["auto"] = "auto"
    loss: str = "logistic"
    criterion: Criterion = "gain"
    selector: Any = "auto"
    hot_start: int = 40
    reselect: bool = False
    max_iter: int = 100
    max_nodes: int = 20_000
    max_weight: float | None = None
    bits: int | Literal["auto"] = 6
    tol: float = 1e-4
    time_limit: float | None = None
    fit_intercept: bool = True
    max_features: int | None = None
    feature_costs: Any = None
    cuts: Any = None
    must_include: Any = None
    exclude: Any = None
    at_most_one_of: Any = None
    missing: Any = "learn"
    validation_fraction: float | None = None
    warm_start: bool = False

    def __sklearn_clone__(self) -> Any:
        """As scikit-learn clones, except that a sampler (a connection to a machine, say) is not copied."""
        without = copy.copy(self)
        without.selector = None
        other = super(SelectingCards, without).__sklearn_clone__()
        other.selector = self.selector
        return other

    # ------------------------------------------------------------------------------------ training

    @abstractmethod
    def _checked_loss(self) -> Loss:
        """The loss that ``loss`` names."""

    def _prepare(self, X: Any, y: Any, sample_weight: Any, budget: Budget) -> SelectingFit:
        prepared = self._read(X, y, sample_weight, budget)
        settings = prepared.settings
        pick_size = isinstance(self.max_terms, str)
        if not pick_size and not isinstance(self.l2, str):
            return prepared.regularised(Regularisation(settings.l2, settings.max_terms))
        least = len(settings.must_include)
        sizes = tuple(size for size in AUTO_SIZES if size >= least) if pick_size else (settings.max_terms,)
        search = RegularisationSearch(isinstance(self.l2, str), sizes, pick_size, settings.search.seed)
        tasks = list(prepared.tasks)
        chosen = prepared.choose([task for _, task in tasks], search, budget.within(Stage.REGULARISATION))
        if self.verbose:
            print(f"[cardboost] {chosen}", flush=True)
        return replace(prepared, tasks=iter(tasks), budget=budget.part(0, 1)).regularised(chosen)

    def _read(self, X: Any, y: Any, sample_weight: Any, budget: Budget) -> SelectingFit:
        """All but what cross-validation is to choose."""
        settings = self._settings(self._checked_loss(), budget)
        rows, held_out = read_rows(self, X, y, sample_weight, settings.loss)
        if rows.X is None:
            settings = replace(settings, **feature_limits(self, rows.table))
        settings = self._boxed(settings, rows)
        tasks = training_tasks(self, rows, held_out, settings.loss, self._earlier(rows), settings.limits)
        return SelectingFit(rows, tasks, settings)

    def _boxed(self, settings: TrainingSettings, rows: TrainingRows) -> TrainingSettings:
        """The settings with the boxes that the rows need."""
        return settings

    def _settings(self, loss: Loss, budget: Budget) -> TrainingSettings:
        """The parameters, checked; the costs of features follow."""
        check_method("selector", self.selector)
        if self.criterion not in ("gain", "edge"):
            raise ValueError(f"criterion must be 'gain' or 'edge'; got {self.criterion!r}.")
        again = flag("reselect", self.reselect)
        limits = ("max_features", "feature_costs", "must_include", "at_most_one_of")
        limited = [name for name in limits if getattr(self, name) is not None]
        if again and limited:
            names = "max_features or feature_costs" if limited[0] in limits[:2] else limited[0]
            raise ValueError(
                f"reselect=True does not go with {names}: new columns are looked for without regard to them."
            )
        max_terms = self.max_terms
        if isinstance(max_terms, str):
            if max_terms != "auto":
                raise ValueError(f"max_terms must be a whole number, 'auto' or None; got {max_terms!r}.")
            max_terms = AUTO_SIZES[-1]
        elif max_terms is not None:
            max_terms = whole("max_terms", max_terms, 1)
            if limited and max_terms > MOST_TERMS:
                raise ValueError(
                    f"max_terms must be at most {MOST_TERMS} with max_features or feature_costs."
                )
        if isinstance(self.l2, str) and self.l2 != "auto":
            raise ValueError(f"l2 must be a number of at least 0, or 'auto'; got {self.l2!r}.")
        hot_start = whole("hot_start", self.hot_start, 0)
        if hot_start == 0 and not again:
            raise ValueError("hot_start=0 needs reselect=True: without it there is no column to select from.")
        nodes = whole("max_nodes", self.max_nodes, 1)
        check_bits(self.bits)

        def optional(name: str, check: Callable[..., Any], *rest: Any, **options: Any) -> Any:
            value = getattr(self, name)
            return None if value is None else check(name, value, *rest, **options)

        prices: dict[str, Any] = {
            name: number(name, getattr(self, name), 0.0) for name in ("l0", "l1", "tol")
        }
        prices["l2"] = FIXED_L2 if isinstance(self.l2, str) else number("l2", self.l2, 0.0)
        return TrainingSettings(
            loss=loss,
            max_terms=max_terms,
            criterion=self.criterion,
            hot_start=hot_start,
            max_iter=whole("max_iter", self.max_iter, 1),
            max_weight=optional("max_weight", number, 0.0, strict=True),
            **prices,
            budget=budget,
            max_features=optional("max_features", whole, 1),
            reselect=again,
            search=SearchOptions(
                self.selector, nodes, self.bits, search_seed(self.random_state), auto_work=None
            ),
        )

    def _earlier(self, rows: TrainingRows) -> tuple[BoostingPath, ...] | None:
        paths: tuple[BoostingPath, ...] | None = super()._earlier(rows)
        n_columns = max((len(path.stages[-1]) - path.n_free for path in paths or ()), default=0)
        if self.max_iter < n_columns:
            raise ValueError(
                f"max_iter={self.max_iter} must be at least the {n_columns} columns that the model already "
                "has when warm_start=True."
            )
        return paths

    def _train(self, task: Any, settings: TrainingSettings, proving: Any) -> TrainingResult:
        return train(task, replace(settings, search=replace(settings.search, progress=proving)))

    # ------------------------------------------------------------------------------------ proving

    def prove(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        time_limit: float | None = None,
        max_nodes: int | None = None,
        callback: FitCallback | None = None,
    ) -> Any:
        """Go on with the proof of the fit: exact search among the candidate terms, from where it ended.

        ``ensemble_`` and ``certificate_`` are replaced by what the search comes to; neither the model nor any
        bound gets worse. Losses and limits that exact search does not take get more local search.

        Parameters
        ----------
        X, y, sample_weight : the training rows, in any order
            Not needed right after ``fit``. They are needed for a model that was loaded or unpickled, and must
            be those that the certificate is about.
        time_limit : float or None
            Seconds after which the search ends; what is proven by then is kept. Reading the rows and checking
            the certificate are not cut short: where they take all the time, nothing changes.
        max_nodes : int or None
            Nodes of the search at most. None: the estimator's ``max_nodes``.
        callback : FitCallback or None
            Told how far the search is; it may end it.

        Returns
        -------
        self

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from cardboost import CardBoostClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = CardBoostClassifier(max_terms=4).fit(X, y)
        >>> model.prove(max_nodes=2000).certificate_.status
        'optimal among candidates'
        """
        check_is_fitted(self)
        nodes = whole("max_nodes", self.max_nodes if max_nodes is None else max_nodes, 1)
        reporter = Reporter(self, X, y, callback)
        budget = limited_budget(time_limit, reporter.callback.stopped)
        several, before = isinstance(self.certificate_, list), certificates_of(self)
        if X is None:
            parts = getattr(self, "_candidates", None)
            if parts is None:
                raise ValueError(
                    "prove needs X and y, the training rows: candidate terms are kept only in the process of "
                    "a fit with max_terms, max_features or l0, and only for stumps."
                )
        else:
            late = budget.end_of(Stage.SEARCH)
            parts = self._restored(before, X, y, sample_weight, late)
            if parts is None:
                return self
        progress = reporter.proving()
        self._candidates = tuple(
            part.proved(budget.part(k, len(parts)), nodes, progress) for k, part in enumerate(parts)
        )
        models = tuple(
            replace(part.model(part.weights, None), operating_point=model.operating_point)
            for part, model in zip(self._candidates, self.ensemble_.parts, strict=True)
        )
        after = [
            replace(certificate, content=part.certified)
            for certificate, part in zip(before, self._candidates, strict=True)
        ]
        self.ensemble_ = replace(self.ensemble_, ensembles=models) if several else models[0]
        self.certificate_ = after if several else after[0]
        return self

    def _restored(
        self,
        certificates: list[Certificate],
        X: Any,
        y: Any,
        sample_weight: Any,
        late: Callable[[], bool],
    ) -> list[Candidates] | None:
        """What the fit has chosen from, for every certificate; None where it is late by then."""
        if isinstance(self.ensemble_, LearnerEnsemble):
            raise ValueError("prove goes on with the choice of stumps; this model is made of other learners.")
        X = unmasked(X)
        rows = labelled_rows(self, X, self._table(X), y, sample_weight)
        if rows.classes is not None and list(rows.classes) != list(self.classes_):
            raise ValueError(
                f"y holds the classes {list(rows.classes)}, but the model knows {list(self.classes_)}."
            )
        rows, _ = rows.split(self.validation_fraction, self.random_state)
        threads, parts = usable_threads(self.n_jobs), []
        models = zip(rows.outputs, self.ensemble_.parts, certificates, strict=True)
        for output, ensemble, certificate in models:
            certified = rows.X, *rows.certified(output)
            part = restored_candidates(certificate.to_dict(), ensemble, certified, threads, late)
            if part is None:
                return None
            parts.append(part)
        return parts


def prove_model(
    ensemble: Ensemble,
    certificate: Mapping[str, Any],
    rows: tuple[Any, Any, Any],
    *,
    budget: Budget,
    max_nodes: int = 20_000,
    proving: Progress | None = None,
) -> tuple[Ensemble, Certificate]:
    """The model and the certificate that exact search comes to from the leaves of a certificate.

    Parameters
    ----------
    ensemble, certificate : a model of stumps and the content of its certificate
    rows : X, labels (True for the positive rows) or targets, and weights (or None), of the fit
    budget : the time for it. Checking the certificate is not cut short.
    max_nodes : nodes of the search at most
    proving : told of nodes, open nodes, bound and objective
    """
    nodes = whole("max_nodes", max_nodes, 1)
    late = budget.end_of(Stage.SEARCH)
    before = restored_candidates(certificate, ensemble, rows, usable_threads(None), late)
    if before is None:
        return ensemble, Certificate(dict(certificate), ensemble.classes and ensemble.classes[1])
    after = before.proved(budget, nodes, proving)
    model = after.model(after.weights, None)
    return replace(model, operating_point=ensemble.operating_point), after.certificate


# ------------------------------------------------------------------------------------------------ many sizes


@dataclass(frozen=True, eq=False)
class SizedFits:
    """An estimator fitted to the same rows for many numbers of terms: columns once, a model for every size.

    First all sizes, ascending, are chosen by local search; the certificate of a size is made when it is asked
    for.
    """

    estimator: Any
    sizes: tuple[int, ...]
    prepared: SelectingFit
    trainings: tuple[SizedTraining, ...]  # one for two classes or a number, else one per class

    @property
    def cut_short(self) -> bool:
        """Whether time was up before all columns were generated."""
        traces = (training.choices[0].grown.trace for training in self.trainings)
        return any(trace.status is Status.TIME_LIMIT for trace in traces)

    def models(self) -> list[Any]:
        """Fitted estimators without certificates."""
        models, by_size = [], zip(*(training.ensembles() for training in self.trainings), strict=True)
        for size, ensembles in zip(self.sizes, by_size, strict=True):
            prepared = self._of_size(size)
            models.append(sized(self.estimator, size))
            vars(models[-1]).update(prepared.attributes(), ensemble_=prepared.joined(ensembles))
        return models

    def prove(
        self, k: int, budget: Budget, before: Sequence[TrainingResult] = ()
    ) -> tuple[Any, list[TrainingResult]]:
        """The k-th model with its certificate, and what it was made of, for the size that follows."""
        results = []
        for c, training in enumerate(self.trainings):
            settings = replace(training.settings, budget=budget.part(c, len(self.trainings)))
            results.append(training.prove(k, settings, before[c] if before else None))
        model = sized(self.estimator, self.sizes[k])
        model._accept(self._of_size(self.sizes[k]), results)
        return model, results

    def _of_size(self, size: int) -> SelectingFit:
        return self.prepared.regularised(Regularisation(self.prepared.settings.l2, size))


def sized(estimator: Any, size: int) -> Any:
    """The estimator with another limit on terms and without a rule for the threshold, not fitted."""
    without = {"threshold": None} if hasattr(estimator, "threshold") else {}
    return clone(estimator).set_params(max_terms=size, **without)


def fit_sizes(
    estimator: Any, X: Any, y: Any, sample_weight: Any, sizes: Sequence[int], budget: Budget
) -> SizedFits:
    """Fit a classifier or a regressor for every size (ascending)."""
    sizes = tuple(sizes)
    budget = budget.at_most(estimator.time_limit)
    prepared = sized(estimator, sizes[-1])._prepare(X, y, sample_weight, budget)
    must = len(prepared.settings.must_include)
    if sizes[0] < must:
        raise ValueError(f"must_include names {must} features: sizes must begin at {must}; got {sizes[0]}.")
    trainings = []
    for k, (_, task) in enumerate(prepared.tasks):
        settings = replace(prepared.settings, budget=budget.part(k, prepared.n_tasks))
        trainings.append(train_sizes(task, settings, sizes))
    return SizedFits(estimator, sizes, prepared, tuple(trainings))


def with_chosen_l2(
    estimator: Any, X: Any, y: Any, sample_weight: Any, sizes: Sequence[int], splits: Sequence[Split],
    budget: Budget,
) -> Any:  # fmt: skip
    """The estimator, not fitted, with the ``l2`` that has the least mean loss in these splits.

    ``sizes``: numbers of terms that it is to suit, ascending. ``splits``: rows to train on and to hold out.
    Where the estimator itself holds rows out, the folds are dealt among the others.
    """
    prepared = sized(estimator, sizes[-1])._read(X, y, sample_weight, budget)
    search = RegularisationSearch(True, tuple(sizes), False, prepared.settings.search.seed)
    folds = None
    if estimator.validation_fraction is None:
        present = None if sample_weight is None else np.asarray(sample_weight) > 0
        place = (
            np.arange(len(y)) if present is None else np.cumsum(present) - 1
        )  # rows without weight are gone
        folds = [(place[kept], place[held]) for kept, held in splits]
    chosen = prepared.choose([task for _, task in prepared.tasks], search, budget, folds)
    return clone(estimator).set_params(l2=chosen.l2)

"""What the estimators share that choose few terms of many: their parameters resolved, and their reports."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from cardboost.boosting.candidates import Candidates, restored_candidates
from cardboost.boosting.path import BoostingPath
from cardboost.boosting.task import TrainingSettings
from cardboost.boosting.training import TrainingResult, train
from cardboost.certificate.checker.format import MOST_TERMS
from cardboost.data.arguments import flag, number, whole
from cardboost.data.exact import unmasked
from cardboost.data.labels import search_seed, split_rows
from cardboost.data.table import Table
from cardboost.data.threads import usable_threads
from cardboost.estimators.base import BoostedCards, PreparedFit
from cardboost.estimators.callbacks import FitCallback, Reporter, with_callbacks
from cardboost.estimators.features import feature_prices
from cardboost.model.learners import LearnerEnsemble
from cardboost.problem.budget import Budget, Stage
from cardboost.problem.losses import Loss
from cardboost.selection.select import SearchOptions, check_method
from cardboost.selection.tabu import check_bits


class SelectingCards(BoostedCards):
    """Base of the estimators with ``max_terms``. Not for use by itself."""

    _candidates: tuple[Candidates, ...] | None

    def __sklearn_clone__(self) -> Any:
        """As scikit-learn clones, except that a sampler (a connection to a machine, say) is not copied."""
        params = self.get_params(deep=False)
        for name, value in params.items():
            if name != "selector":
                params[name] = clone(value, safe=False)
        other = type(self)(**params)
        for name in ("_metadata_request", "_skl_callbacks"):
            if hasattr(self, name):
                value = getattr(self, name)
                setattr(other, name, list(value) if isinstance(value, list) else clone(value, safe=False))
        return other

    def _settings(self, loss: Loss, budget: Budget) -> TrainingSettings:
        """The parameters, checked; what speaks of single features follows."""
        check_method("selector", self.selector)
        if self.criterion not in ("gain", "edge"):
            raise ValueError(f"criterion must be 'gain' or 'edge'; got {self.criterion!r}.")
        again = flag("reselect", self.reselect)
        if again and (self.max_features is not None or self.feature_costs is not None):
            raise ValueError(
                "reselect=True does not go with max_features or feature_costs: new columns are looked for "
                "without regard to them."
            )
        limited = self.max_features is not None or self.feature_costs is not None
        if limited and self.max_terms is not None and self.max_terms > MOST_TERMS:
            raise ValueError(f"max_terms must be at most {MOST_TERMS} with max_features or feature_costs.")
        hot_start = whole("hot_start", self.hot_start, 0)
        if hot_start == 0 and not again:
            raise ValueError("hot_start=0 needs reselect=True: without it there is no column to select from.")
        nodes = whole("max_nodes", self.max_nodes, 1)
        check_bits(self.bits)

        def optional(name: str, check: Callable[..., Any], *rest: Any, **options: Any) -> Any:
            value = getattr(self, name)
            return None if value is None else check(name, value, *rest, **options)

        return TrainingSettings(
            loss=loss,
            max_terms=optional("max_terms", whole, 1),
            l0=number("l0", self.l0, 0.0),
            l1=number("l1", self.l1, 0.0),
            l2=number("l2", self.l2, 0.0),
            criterion=self.criterion,
            hot_start=hot_start,
            max_iter=whole("max_iter", self.max_iter, 1),
            max_weight=optional("max_weight", number, 0.0, strict=True),
            tol=number("tol", self.tol, 0.0),
            fit_intercept=flag("fit_intercept", self.fit_intercept),
            threads=usable_threads(self.n_jobs),
            budget=budget,
            max_features=optional("max_features", whole, 1),
            reselect=again,
            search=SearchOptions(
                self.selector, nodes, self.bits, search_seed(self.random_state), auto_work=None
            ),
        )

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Any = None) -> Any:
        """Train on a table of numbers and categories, with missing values.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        y : array-like of shape (n_samples,)
            Class labels, or numbers for a regressor.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the rows. A weight of 2 is the row twice.
        callback : FitCallback, callable or None
            Follows the fit and may end it: see :class:`cardboost.FitCallback`. A function is called with the
            record of every round, and ends the generation of columns by returning True.

        Returns
        -------
        self
        """
        reporter = Reporter(self, X, y, callback)
        prepared = self._prepare(X, y, sample_weight, reporter.budget(self._time_limit()))
        reporter.begin()
        self._accept(prepared, self._train(prepared, reporter))
        reporter.end()
        return self

    def _time_limit(self) -> float | None:
        limit = self.time_limit
        return None if limit is None else number("time_limit", limit, 0.0, strict=True)

    def _train(self, prepared: PreparedFit, reporter: Reporter) -> list[TrainingResult]:
        """One ensemble, or one for every class over the same stumps."""
        settings, n_tasks, results = prepared.settings, prepared.n_tasks, []
        for k, (label, task) in enumerate(prepared.tasks):
            results.append(
                train(
                    task,
                    replace(
                        settings,
                        budget=settings.budget if n_tasks == 1 else settings.budget.part(k, n_tasks),
                        callback=reporter.after_round(prepared.reconstruction(), label),
                        search=replace(settings.search, progress=reporter.proving(label)),
                    ),
                )
            )
        return results

    def _accept(self, prepared: PreparedFit, results: Sequence[TrainingResult]) -> None:
        """The fitted attributes."""
        self._remember(prepared, results)
        self.n_iter_ = max(result.trace[-1].n_columns for result in results)
        parts = tuple(result.candidates for result in results if result.candidates is not None)
        self._candidates = parts or None

    def _with_settings(self, prepared: PreparedFit, settings: TrainingSettings) -> PreparedFit:
        """With the settings of the training, the costs of features among them."""
        costs = None if prepared.table is None else feature_prices(self.feature_costs, prepared.table)
        return replace(prepared, settings=replace(settings, feature_costs=costs))

    def _limits_features(self, table: Table) -> bool:
        costs = feature_prices(self.feature_costs, table)
        return self.max_features is not None or costs is not None

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
        limit = None if time_limit is None else number("time_limit", time_limit, 0.0, strict=True)
        nodes = whole("max_nodes", self.max_nodes if max_nodes is None else max_nodes, 1)
        reporter = Reporter(self, X, y, callback)
        budget = Budget.of(limit, reporter.callback.stopped)
        if X is None:
            parts = getattr(self, "_candidates", None)
            if parts is None:
                raise ValueError(
                    "prove needs X and y, the training rows: candidate terms are kept only in the process of "
                    "a fit with max_terms, max_features or l0, and only for stumps."
                )
        else:
            parts = self._restored(X, y, sample_weight, budget.end_of(Stage.SEARCH))
            if parts is None:
                return self
        progress = reporter.proving()
        self._candidates = tuple(
            part.proved(budget.part(k, len(parts)), nodes, progress) for k, part in enumerate(parts)
        )
        ensembles = tuple(part.model(part.weights, None) for part in self._candidates)
        several = isinstance(self.certificate_, list)
        certificates = [
            replace(before, content=part.certified)
            for before, part in zip(
                self.certificate_ if several else [self.certificate_], self._candidates, strict=True
            )
        ]
        self.ensemble_ = replace(self.ensemble_, ensembles=ensembles) if several else ensembles[0]
        self.certificate_ = certificates if several else certificates[0]
        return self

    def _restored(
        self, X: Any, y: Any, sample_weight: Any, late: Callable[[], bool]
    ) -> tuple[Candidates, ...] | None:
        """The candidates of the fit, one choice for every certificate; None where it is late by then."""
        if isinstance(self.ensemble_, LearnerEnsemble):
            raise ValueError("prove goes on with the choice of stumps; this model is made of other learners.")
        X = unmasked(X)
        table = self._table(X)
        labels, weights, codes = self._certified_rows(y, sample_weight, table.n_rows)
        keep: NDArray[Any] = np.arange(table.n_rows)
        if weights is not None:
            keep = np.flatnonzero(weights > 0)
        if self.validation_fraction is not None:
            split = None if codes is None else codes[keep]
            keep = keep[split_rows(self.validation_fraction, split, len(keep), self.random_state)[0]]
        rows = X if len(keep) == table.n_rows else _safe_indexing(X, keep)
        several = isinstance(self.certificate_, list)
        parts = []
        for k, certificate in enumerate(self.certificate_ if several else [self.certificate_]):
            part = restored_candidates(
                certificate.to_dict(),
                self.ensemble_.ensembles[k] if several else self.ensemble_,
                (rows, labels[k][keep], None if weights is None else weights[keep]),
                usable_threads(self.n_jobs),
                late,
            )
            if part is None:
                return None
            parts.append(part)
        return tuple(parts)

    @abstractmethod
    def _prepare(self, X: Any, y: Any, sample_weight: Any, budget: Budget) -> PreparedFit:
        """Read and check everything."""

    @abstractmethod
    def _certified_rows(
        self, y: Any, sample_weight: Any, n_rows: int
    ) -> tuple[list[NDArray[Any]], NDArray[Any] | None, NDArray[np.intp] | None]:
        """What certificates call y, one for each; the weights of the rows; and the classes of the rows."""

    def _earlier(self) -> tuple[BoostingPath, ...] | None:
        """Where a warm start goes on from."""
        paths = getattr(self, "_paths", None)
        if not flag("warm_start", self.warm_start) or not paths:
            return None
        made = max(len(path.stages[-1]) - path.n_free for path in paths)
        if self.max_iter < made:
            raise ValueError(
                f"max_iter={self.max_iter} must be at least the {made} columns that the model already has "
                "when warm_start=True."
            )
        return paths

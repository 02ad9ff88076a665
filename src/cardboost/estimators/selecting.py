"""What the estimators share that choose few terms of many: their parameters resolved, and their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from cardboost.boosting.candidates import Candidates, restored_candidates
from cardboost.boosting.path import BoostingPath
from cardboost.boosting.training import TrainingSettings, TrainingTask
from cardboost.certificate.checker.format import MOST_TERMS
from cardboost.data.arguments import flag, number, whole
from cardboost.data.exact import unmasked
from cardboost.data.table import Table
from cardboost.data.threads import usable_threads
from cardboost.estimators.base import BoostedCards, Progress
from cardboost.estimators.callbacks import Rounds
from cardboost.estimators.features import feature_prices
from cardboost.estimators.validation import search_seed, split_rows
from cardboost.model.ensemble import Ensemble
from cardboost.model.learners import LearnerEnsemble
from cardboost.problem.budget import Budget, Stage, clock
from cardboost.problem.losses import Loss
from cardboost.selection.exact import Progress as Proving
from cardboost.selection.select import SearchOptions, check_method
from cardboost.selection.tabu import check_bits

_SECONDS = 1.0  # between two lines about an exact search


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """What a fit has read and checked, before anything is trained. ``tasks`` are made when they are due."""

    table: Table
    settings: TrainingSettings
    tasks: Iterator[tuple[str, TrainingTask]]  # with what to call each on the screen
    n_tasks: int
    classes: NDArray[Any] | None = None  # None for a number


class SelectingCards(BoostedCards):
    """Base of the estimators with ``max_terms``. Not for use by itself."""

    ensemble_: Any
    certificate_: Any
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

    def _budget(self) -> Budget:
        """For a whole fit, from now on."""
        limit = self.time_limit
        return Budget.of(None if limit is None else number("time_limit", limit, 0.0, strict=True))

    def _settings(self, loss: Loss, table: Table, budget: Budget) -> TrainingSettings:
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
            feature_costs=feature_prices(self.feature_costs, table),
            reselect=again,
            search=SearchOptions(
                self.selector, nodes, self.bits, search_seed(self.random_state), auto_work=None
            ),
        )

    def _reporting(
        self,
        settings: TrainingSettings,
        rounds: Rounds,
        callback: Progress | None,
        fitted: Callable[[Ensemble], dict[str, Any]] | None,
        proving: Proving | None = None,
        label: str = "",
    ) -> TrainingSettings:
        """The settings with everybody told of every round.

        ``proving`` and the screen are told of the exact search too.
        """
        after = self._after_round(rounds, callback, fitted, label)
        search = replace(settings.search, progress=self._proving(proving, label))
        return replace(settings, callback=after, search=search)

    def _proving(self, proving: Proving | None, label: str = "") -> Proving:
        """Tells the screen, now and then, and the caller how far an exact search is."""
        due = clock() + _SECONDS

        def searching(nodes: int, open_nodes: int, bound: float, objective: float) -> None:
            nonlocal due
            if self.verbose and clock() >= due:
                due = clock() + _SECONDS
                print(f"[cardboost] {label}{proving_line(nodes, bound, objective)}")
            if proving is not None:
                proving(nodes, open_nodes, bound, objective)

        return searching

    # ------------------------------------------------------------------------------------ proving

    def prove(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        time_limit: float | None = None,
        max_nodes: int | None = None,
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
        return self._prove(X, y, sample_weight, time_limit, max_nodes)

    def _prove(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        time_limit: float | None,
        max_nodes: int | None,
        proving: Proving | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Any:
        """``proving`` is told how far the search is; ``stopped`` ends it."""
        check_is_fitted(self)
        limit = None if time_limit is None else number("time_limit", time_limit, 0.0, strict=True)
        nodes = whole("max_nodes", self.max_nodes if max_nodes is None else max_nodes, 1)
        budget = Budget.of(limit, stopped)
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
        progress = self._proving(proving)
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

    def _certified_rows(
        self, y: Any, sample_weight: Any, n_rows: int
    ) -> tuple[list[NDArray[Any]], NDArray[Any] | None, NDArray[np.intp] | None]:
        """What certificates call y, one for each; the weights of the rows; and the classes of the rows."""
        raise NotImplementedError

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


def proving_line(nodes: int, bound: float, objective: float) -> str:
    """How far an exact search is."""
    gap = 100.0 * max(0.0, objective - bound) / max(abs(objective), 1e-300)
    return f"proving: {nodes:,} nodes, gap {gap:.1f} %"

"""What the estimators share that choose few terms of many: their parameters resolved, and their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone

from cardboost.boosting.path import BoostingPath
from cardboost.boosting.training import TrainingSettings, TrainingTask
from cardboost.budget import Budget, clock
from cardboost.cardinality.exact import Progress as Proving
from cardboost.cardinality.select import SearchOptions, check_method
from cardboost.cardinality.tabu import check_bits
from cardboost.data.table import Table
from cardboost.estimators.base import BoostedCards, Progress
from cardboost.estimators.callbacks import Rounds
from cardboost.estimators.features import feature_prices
from cardboost.estimators.validation import search_seed
from cardboost.losses import Loss
from cardboost.model.ensemble import Ensemble
from cardboost.threads import usable_threads
from cardboost.validation import flag, number, whole

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
        due = clock() + _SECONDS

        def searching(nodes: int, open_nodes: int, bound: float, objective: float) -> None:
            nonlocal due
            if self.verbose and clock() >= due:
                due = clock() + _SECONDS
                print(f"[cardboost] {label}{proving_line(nodes, bound, objective)}")
            if proving is not None:
                proving(nodes, open_nodes, bound, objective)

        after = self._after_round(rounds, callback, fitted, label)
        return replace(settings, callback=after, search=replace(settings.search, progress=searching))

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

"""One training for many numbers of terms: columns are generated once and chosen from for every size.

Choices are those of local search. The proof, which may still improve a choice, is made size by size and only
where it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardboost.boosting.growing import Grown, grow, price_rule, regrow
from cardboost.boosting.training import (
    TrainingResult,
    TrainingSettings,
    TrainingTask,
    finish,
    selection_problem,
)
from cardboost.model.ensemble import Ensemble
from cardboost.problem.budget import Stage
from cardboost.selection.deepening import deepen
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import choose_sizes
from cardboost.selection.selection_problem import Incumbent


@dataclass(frozen=True, eq=False)
class SizedChoice:
    """At most ``size`` columns of a pool. The settings of the training have this limit."""

    size: int
    grown: Grown
    found: Incumbent


@dataclass(frozen=True, eq=False)
class SizedTraining:
    """The columns of one task and the choice for every size, ascending."""

    task: TrainingTask
    settings: TrainingSettings
    choices: tuple[SizedChoice, ...]

    def ensembles(self) -> list[Ensemble]:
        """The model of every size, without a proof."""
        return [self._ensemble(own) for own in self.choices]

    def _ensemble(self, own: SizedChoice) -> Ensemble:
        pool = own.grown.pool
        pool.place_missing(np.ones(pool.n_columns))  # as with a proof, where all columns are written down
        return self.task.frame.ensemble(pool.stumps, own.found.weights, pool.n_free)

    def prove(
        self, k: int, settings: TrainingSettings, before: TrainingResult | None = None
    ) -> TrainingResult:
        """The model of the k-th size with its certificate.

        ``settings``: budget and time for it. ``before``: that of the size before, if it is from the same
        columns: where its proof has found a better choice than local search has for this size, that is taken.
        """
        own = self.choices[k]
        found, free = own.found, own.grown.pool.n_free
        settings = replace(settings, max_terms=own.size)
        earlier = before.candidates if before is not None else None
        if before is None or earlier is None or own.grown is not self.choices[k - 1].grown:
            return finish(self.task, settings, own.grown, found)
        if before.certificate.objective < found.objective:
            support = np.flatnonzero(earlier.weights[free:]) + free
            found = Incumbent(support, earlier.weights, before.certificate.objective)
        return finish(self.task, settings, own.grown, found, earlier)


def train_sizes(task: TrainingTask, settings: TrainingSettings, sizes: Sequence[int]) -> SizedTraining:
    """Generate columns for the largest size, and choose among them for every size (ascending)."""
    settings = replace(settings, max_terms=sizes[-1])
    grown = grow(task, settings)
    if settings.reselects and not grown.asked:
        choices = [_reselected(task, settings, size, grown.copy()) for size in sizes]
        return SizedTraining(task, settings, tuple(choices))
    rule = replace(price_rule(settings), l0=settings.l0)
    problem = selection_problem(grown.pool, task.risk, rule, settings)
    stage = Stage.SIZES if settings.limits is None else Stage.FEATURE_SEARCH
    found = choose_sizes(problem, sizes, grown.weights, settings.budget.end_of(stage))
    if settings.limits is None:
        return SizedTraining(
            task, settings, tuple(SizedChoice(k, grown, at) for k, at in zip(sizes, found, strict=True))
        )
    choices = []
    late = settings.budget.end_of(Stage.SIZES)
    for size, at in zip(sizes, found, strict=True):  # few features: every size has more columns of its own
        own = grown.copy()
        own_problem = replace(problem, pool=own.pool, max_terms=size)
        _, at = deepen(own_problem, at, task.dictionary, rule, late)
        more = own.pool.n_columns - len(grown.weights)
        own = replace(own, weights=np.concatenate([grown.weights, np.zeros(more)]))
        choices.append(SizedChoice(size, own, at))
    return SizedTraining(task, settings, tuple(choices))


def _reselected(task: TrainingTask, settings: TrainingSettings, size: int, grown: Grown) -> SizedChoice:
    """TotalQBoost for one size, from the hot start that all share."""
    settings = replace(settings, max_terms=size)
    grown = regrow(task, settings, grown)
    rule = replace(price_rule(settings), l0=settings.l0)
    problem = merge_rows(selection_problem(grown.pool, task.risk, rule, settings))
    weights = grown.weights
    value = problem.risk.evaluate(problem.pool.margins(weights)).value
    support = np.flatnonzero((weights > 0) & problem.prices.charged)
    return SizedChoice(size, grown, Incumbent(support, weights, problem.objective(value, weights)))

"""One training for many numbers of terms: columns are generated once and chosen from for every size.

Choices are those of local search. The proof, which may still improve a choice, is made size by size and only
where it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardboost.boosting.task import TrainingSettings, TrainingTask, padded
from cardboost.boosting.training import Grown, TrainingResult, finish, grow, regrow, selection_problem
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
    incumbent: Incumbent


@dataclass(frozen=True, eq=False)
class SizedTraining:
    """The columns of one task and the choice for every size, ascending."""

    task: TrainingTask
    settings: TrainingSettings
    choices: tuple[SizedChoice, ...]

    def ensembles(self) -> list[Ensemble]:
        """The model of every size, without a proof."""
        return [self._ensemble(choice) for choice in self.choices]

    def _ensemble(self, choice: SizedChoice) -> Ensemble:
        pool = choice.grown.pool
        pool.place_missing(np.ones(pool.n_columns))  # as with a proof, where all columns are written down
        return self.task.ensemble(pool, choice.incumbent.weights)

    def prove(
        self, k: int, settings: TrainingSettings, before: TrainingResult | None = None
    ) -> TrainingResult:
        """The model of the k-th size with its certificate.

        ``settings``: budget and time for it. ``before``: that of the size before, if it is from the same
        columns: where its proof has found a better choice than local search has for this size, that is taken.
        """
        choice = self.choices[k]
        incumbent, grown = choice.incumbent, choice.grown
        settings = replace(settings, max_terms=choice.size)
        earlier = before.candidates if before is not None else None
        if before is None or earlier is None or grown is not self.choices[k - 1].grown:
            return finish(self.task, settings, grown, incumbent)
        if before.certificate.objective < incumbent.objective:
            n_free = grown.pool.n_free
            support = np.flatnonzero(earlier.weights[n_free:]) + n_free
            incumbent = Incumbent(support, earlier.weights, before.certificate.objective)
        return finish(self.task, settings, grown, incumbent, earlier)


def train_sizes(task: TrainingTask, settings: TrainingSettings, sizes: Sequence[int]) -> SizedTraining:
    """Generate columns for the largest size, and choose among them for every size (ascending)."""
    settings = replace(settings, max_terms=sizes[-1])
    grown = grow(task, settings)
    if settings.reselects and not grown.stopped:
        choices = [_reselected(task, settings, size, grown.copy()) for size in sizes]
        return SizedTraining(task, settings, tuple(choices))
    rule = replace(settings.price_rule, l0=settings.l0)
    problem = selection_problem(grown.pool, task.risk, rule, settings)
    stage = Stage.SIZES if settings.limits is None else Stage.FEATURE_SEARCH
    incumbents = choose_sizes(problem, sizes, grown.weights, settings.budget.end_of(stage))
    if settings.limits is None:
        pairs = zip(sizes, incumbents, strict=True)
        return SizedTraining(task, settings, tuple(SizedChoice(k, grown, best) for k, best in pairs))
    choices = []
    late = settings.budget.end_of(Stage.SIZES)
    for size, incumbent in zip(sizes, incumbents, strict=True):  # few features: more columns for every size
        larger = grown.copy()
        of_size = replace(problem, pool=larger.pool, max_terms=size)
        _, incumbent = deepen(of_size, incumbent, task.dictionary, rule, late)
        larger = replace(larger, weights=padded(grown.weights, larger.pool))
        choices.append(SizedChoice(size, larger, incumbent))
    return SizedTraining(task, settings, tuple(choices))


def _reselected(task: TrainingTask, settings: TrainingSettings, size: int, grown: Grown) -> SizedChoice:
    """TotalQBoost for one size, from the hot start that all share."""
    settings = replace(settings, max_terms=size)
    grown = regrow(task, settings, grown)
    rule = replace(settings.price_rule, l0=settings.l0)
    problem = merge_rows(selection_problem(grown.pool, task.risk, rule, settings))
    weights = grown.weights
    value = problem.risk.evaluate(problem.pool.margins(weights)).value
    support = np.flatnonzero((weights > 0) & problem.prices.charged)
    return SizedChoice(size, grown, Incumbent(support, weights, problem.objective(value, weights)))

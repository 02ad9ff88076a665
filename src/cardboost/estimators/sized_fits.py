"""An estimator fitted to the same rows for many numbers of terms: columns once, a model for every size.

First all sizes are chosen by local search; the certificate of a size is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone

from cardboost.boosting.sizes import SizedTraining, train_sizes
from cardboost.boosting.training import TrainingResult
from cardboost.estimators.base import PreparedFit
from cardboost.problem.budget import Budget
from cardboost.problem.trace import Status


@dataclass(frozen=True, eq=False)
class SizedFits:
    """A model for every size, ascending."""

    estimator: Any
    sizes: tuple[int, ...]
    prepared: PreparedFit
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
            models.append(sized(self.estimator, size))
            vars(models[-1]).update(self.prepared.attributes(), ensemble_=self.prepared.joined(ensembles))
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
        model._accept(self.prepared, results)
        return model, results


def sized(estimator: Any, size: int) -> Any:
    """The estimator with another limit on terms, not fitted."""
    return clone(estimator).set_params(max_terms=size)


def fit_sizes(
    estimator: Any, X: Any, y: Any, sample_weight: Any, sizes: Sequence[int], budget: Budget
) -> SizedFits:
    """Fit a classifier or a regressor for every size (ascending)."""
    sizes = tuple(sizes)
    budget = budget.at_most(estimator.time_limit)
    prepared = sized(estimator, sizes[-1])._prepare(X, y, sample_weight, budget)
    trainings = []
    for k, (_, task) in enumerate(prepared.tasks):
        settings = replace(prepared.settings, budget=budget.part(k, prepared.n_tasks))
        trainings.append(train_sizes(task, settings, sizes))
    return SizedFits(estimator, sizes, prepared, tuple(trainings))

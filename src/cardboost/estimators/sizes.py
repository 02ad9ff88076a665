"""An estimator fitted to the same rows for many numbers of terms: columns once, a model for every size.

First all sizes are chosen by local search; the certificate of a size is made when it is asked for. Learners
that are not stumps are fitted size by size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone

from cardboost.boosting.resolve import resolve_dictionary
from cardboost.boosting.sizes import SizedTraining, train_sizes
from cardboost.boosting.training import TrainingResult
from cardboost.estimators.classes import plain
from cardboost.estimators.selecting import PreparedFit
from cardboost.model.ensemble import Ensemble
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.problem.budget import Budget


@dataclass(frozen=True, eq=False)
class SizedFits:
    """A model for every size, ascending. ``done``: the models of learners, which have their proof already."""

    estimator: Any
    sizes: tuple[int, ...]
    given: PreparedFit | None
    trainings: tuple[SizedTraining, ...]  # one for two classes or a number, else one per class
    done: tuple[Any, ...] = ()

    @property
    def cut_short(self) -> bool:
        """Whether time was up before all columns were generated."""
        return any(own.choices[0].grown.trace.status == "time limit" for own in self.trainings)

    def models(self) -> list[Any]:
        """Fitted estimators without certificates."""
        if self.given is None:
            return list(self.done)
        each = [training.ensembles() for training in self.trainings]
        return [self._shell(k, [own[k] for own in each]) for k in range(len(self.sizes))]

    def _shell(self, k: int, ensembles: list[Ensemble]) -> Any:
        assert self.given is not None
        model, classes = sized(self.estimator, self.sizes[k]), self.given.classes
        model._remember_features(self.given.table)
        model.ensemble_ = ensembles[0]
        if classes is not None:
            model.classes_ = classes
            if len(ensembles) > 1:
                labels = tuple(plain(label) for label in classes)
                model.ensemble_ = MulticlassEnsemble(labels, tuple(ensembles))
        return model

    def prove(
        self, k: int, budget: Budget, before: Sequence[TrainingResult] = ()
    ) -> tuple[Any, list[TrainingResult]]:
        """The k-th model with its certificate, and what it was made of, for the size that follows."""
        if self.given is None:
            return self.done[k], []
        results = []
        for c, training in enumerate(self.trainings):
            settings = replace(training.settings, budget=budget.part(c, len(self.trainings)))
            results.append(training.prove(k, settings, before[c] if before else None))
        model = sized(self.estimator, self.sizes[k])
        model._accept(self.given, results)
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
    if resolve_dictionary(estimator.dictionary) != ("stumps",):
        done = []
        for k, size in enumerate(sizes):
            model = sized(estimator, size)
            done.append(model._fit(X, y, sample_weight, budget=budget.part(k, len(sizes))))
        return SizedFits(estimator, sizes, None, (), tuple(done))
    model = sized(estimator, sizes[-1])
    given = model._prepare(X, y, sample_weight, budget)
    trainings = []
    for k, (_, task) in enumerate(given.tasks):
        settings = replace(given.settings, budget=budget.part(k, given.n_tasks))
        trainings.append(train_sizes(task, settings, sizes))
    return SizedFits(estimator, sizes, given, tuple(trainings))

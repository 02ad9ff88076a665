"""An estimator fitted to the same rows for many numbers of terms: columns once, a model for every size.

First all sizes are chosen by local search; the certificate of a size is made when it is asked for. Learners
that are not stumps are fitted size by size.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.base import clone

from cardboost.boosting.resolve import resolve_dictionary
from cardboost.boosting.sizes import SizedTraining, train_sizes
from cardboost.boosting.training import TrainingResult, TrainingSettings
from cardboost.estimators.classes import plain
from cardboost.estimators.selecting import PreparedFit
from cardboost.model.ensemble import Ensemble
from cardboost.model.multiclass import MulticlassEnsemble

#: of the exact search for one size with the selector "auto": nodes, and these times the entries that each of
#: them reads. A file holds the proofs of all sizes.
PROOF_NODES, PROOF_WORK = 120, 1e8


@dataclass(frozen=True)
class Allowance:
    """Time for a piece of work: ``seconds`` from ``started``, or until ``stopped`` says so."""

    started: float = field(default_factory=time.perf_counter)
    seconds: float = math.inf
    stopped: Callable[[], bool] = lambda: False

    @property
    def left(self) -> float:
        return max(1e-3, self.started + self.seconds - time.perf_counter())

    def part(self, parts: int) -> Allowance:
        """One of so many equal parts of what is left."""
        return Allowance(time.perf_counter(), self.left / parts, self.stopped)


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
        self, k: int, allowance: Allowance, before: Sequence[TrainingResult] = ()
    ) -> tuple[Any, list[TrainingResult]]:
        """The k-th model with its certificate, and what it was made of, for the size that follows."""
        if self.given is None:
            return self.done[k], []
        results = []
        for c, training in enumerate(self.trainings):
            settings = _within(training.settings, allowance.part(len(self.trainings) - c))
            results.append(training.prove(k, settings, before[c] if before else None))
        model = sized(self.estimator, self.sizes[k])
        model._accept(self.given, results)
        return model, results


def sized(estimator: Any, size: int) -> Any:
    """The estimator with another limit on terms, not fitted."""
    return clone(estimator).set_params(max_terms=size)


def fit_sizes(
    estimator: Any, X: Any, y: Any, sample_weight: Any, sizes: Sequence[int], allowance: Allowance
) -> SizedFits:
    """Fit a classifier or a regressor for every size (ascending)."""
    sizes = tuple(sizes)
    if estimator.time_limit is not None:
        own = min(float(estimator.time_limit), allowance.seconds)
        allowance = replace(allowance, seconds=own)
    if resolve_dictionary(estimator.dictionary) != ("stumps",):
        done = []
        for k, size in enumerate(sizes):
            share = allowance.part(len(sizes) - k)
            limit = None if math.isinf(share.seconds) else share.seconds
            model = sized(estimator, size).set_params(time_limit=limit)
            done.append(model._fit(X, y, sample_weight, stopped=allowance.stopped))
        return SizedFits(estimator, sizes, None, (), tuple(done))
    model = sized(estimator, sizes[-1])
    given = model._prepare(X, y, sample_weight, allowance.started, allowance.stopped)
    trainings = []
    for k, (_, task) in enumerate(given.tasks):
        settings = _within(given.settings, allowance.part(given.n_tasks - k) if k else allowance)
        trainings.append(train_sizes(task, settings, sizes))
    return SizedFits(estimator, sizes, given, tuple(trainings))


def _within(settings: TrainingSettings, allowance: Allowance) -> TrainingSettings:
    search = settings.search
    if search.method == "auto":
        nodes = min(PROOF_NODES, search.max_nodes or PROOF_NODES)
        search = replace(search, max_nodes=nodes, auto_work=PROOF_WORK)
    return replace(settings, started=allowance.started, time_limit=allowance.seconds, search=search)

"""Weak learners of any kind: fitted round by round, fitted before, or stumps; alone or together.

Their outputs are stored as columns (docs/mathematics.md calls them a_ij). A learner that is fitted to the row
weights is only as good as its own search, so no bound covers what it did not return: such a dictionary is
not exact. A list of fitted learners is searched exhaustively, and is.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from cardboost.dictionary.base import ColumnPool, Criterion, Dictionary, Proposals
from cardboost.dictionary.learner_pool import Candidate, CandidateScores, LearnerPool
from cardboost.dictionary.stumps import StumpDictionary, StumpPool, Stumps
from cardboost.model.fitted_learner import FittedLearner, method_of, name_of
from cardboost.problem.risk import RiskPoint

Array = NDArray[np.float64]

#: learners are fitted to these labels: every library takes them
LABELS = (0, 1)


@dataclass(frozen=True, eq=False)
class LearningRows:
    """What learners are fitted to and asked about: the rows as the user has them, and their labels."""

    X: Any
    sign: NDArray[np.int8]
    classes: tuple[Any, Any] = (False, True)
    intercept: bool = True
    threads: int = 1


class LearnerDictionary(Dictionary):
    """Weak learners on given rows; their pool stores columns. Proposals are tuples of candidates."""

    def __init__(self, rows: LearningRows) -> None:
        self.rows = rows

    def pool(self) -> LearnerPool:
        return LearnerPool(self.rows.sign, self.rows.intercept, self.rows.threads)

    @abstractmethod
    def remaining(self, pool: LearnerPool) -> tuple[Candidate, ...] | None:
        """Every candidate that is not in the pool; None where they cannot be listed."""


def check_estimator(estimator: Any, regression: bool = False) -> None:
    """Refuse what cannot serve as a weak learner, in a sentence that names it."""
    name = name_of(estimator)
    if isinstance(estimator, type):
        raise ValueError(
            f"dictionary: {estimator.__name__} is a class; give an instance, {estimator.__name__}()."
        )
    if not callable(getattr(estimator, "fit", None)) or not hasattr(estimator, "get_params"):
        raise ValueError(
            f"dictionary: {name} cannot be fitted: an estimator needs fit and get_params, as in scikit-learn."
        )
    if regression:
        if _kind(estimator) == "classifier":
            raise ValueError(f"dictionary: {name} is a classifier; a number needs regressors.")
        if not callable(getattr(estimator, "predict", None)):
            raise ValueError(f"dictionary: {name} has no predict: it cannot be asked for a number.")
        return
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"dictionary: the fit of {name} does not accept sample_weight, by which a weak learner is told "
            "which rows matter. Take a learner that does; prepare the table before, not in a pipeline."
        )
    if _kind(estimator) == "regressor":
        raise ValueError(
            f"dictionary: {name} is a regressor; weak learners that are fitted here must be classifiers."
        )
    method_of(estimator)


def _kind(estimator: Any) -> str | None:
    """ "classifier", "regressor", or what else it says it is."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    return None if tags is None else tags().estimator_type


class EstimatorDictionary(LearnerDictionary):
    """What a scikit-learn classifier makes of row weights: one column for each fit.

    A clone is fitted to the rows with the labels 0 and 1 and the dual weights as ``sample_weight``, scaled so
    that a row counts 1 on average. Every ``random_state`` among its parameters is set to a number that
    follows from ``seed`` (a number, or several) and the size of the pool. Nothing is proposed when the column
    is constant, is in the pool already, or has no edge above its price: then the learner has nothing new to
    say at these weights.
    """

    exact = False

    def __init__(self, estimator: Any, rows: LearningRows, seed: int | Sequence[int] = 0) -> None:
        super().__init__(rows)
        check_estimator(estimator)
        self.estimator = estimator
        self.seed = [seed] if isinstance(seed, int) else list(seed)
        self.labels = (rows.sign > 0).astype(np.int64)

    def best_columns(
        self,
        point: RiskPoint,
        k: int,
        exclude: ColumnPool,
        criterion: Criterion = "edge",
        l1: float = 0.0,
        l2: float = 0.0,
    ) -> Proposals:
        """The column of one fit (never more), with a bound of infinity."""
        assert isinstance(exclude, LearnerPool)
        weight = fit_weights(point)
        if weight is None:
            return Proposals((), np.empty(0), math.inf)
        made = exclude.n_columns - exclude.n_free
        learner = fit_clone(self.estimator, self.rows.X, self.labels, weight, self.seed, made)
        fitted = FittedLearner(learner, LABELS, method_of(learner))
        found = Candidate.make(fitted, fitted.scores(self.rows.X), self.rows.sign)
        if exclude.accepts(found):
            scores = CandidateScores([found], self.rows.sign, self.rows.intercept, self.rows.threads)
            edge = scores.evaluate(np.zeros(1, dtype=np.intp), point, "edge", l1, l2)[1]
            if edge[0] > l1:
                return Proposals((found,), edge, math.inf)
        return Proposals((), np.empty(0), math.inf)

    def remaining(self, pool: LearnerPool) -> None:
        return None


def fit_clone(
    estimator: Any, X: Any, y: NDArray[Any], weight: Array | None, seed: Sequence[int], made: int
) -> Any:
    """A clone, fitted. What is random in it follows from the seed and the number of learners made before."""
    learner = clone(estimator)
    names = sorted(learner.get_params(deep=True))
    random = [name for name in names if name == "random_state" or name.endswith("__random_state")]
    if random:
        states = np.random.SeedSequence([*seed, made]).generate_state(len(random)) % 2**31
        learner.set_params(**{name: int(state) for name, state in zip(random, states, strict=True)})
    try:
        learner.fit(X, y, **({} if weight is None else {"sample_weight": weight}))
    except Exception as error:
        raise ValueError(
            f"dictionary: {name_of(learner)} could not be fitted as learner {made + 1}: {error}"
        ) from error
    return learner


def fit_weights(point: RiskPoint) -> Array | None:
    """The dual weights u, on average 1 over the rows (a row that counts twice is two); None if all are 0."""
    w = point.risk.weights
    if not point.derivative_sum > 0.0:
        return None
    value = point.rows[0] if w.factor is None else point.rows[0] * w.factor
    value = value * (w.total_count / point.derivative_sum)
    return value if w.count is None else value * w.count


class FittedDictionary(LearnerDictionary):
    """The outputs of learners that are fitted already, and nothing else; the search looks at all of them."""

    exact = True

    def __init__(self, learners: Sequence[Any], rows: LearningRows) -> None:
        super().__init__(rows)
        fitted = [FittedLearner.read(learner, rows.classes) for learner in learners]
        found = (Candidate.make(own, own.scores(rows.X), rows.sign) for own in fitted)
        self.candidates = _distinct(own for own in found if not own.constant(rows.sign))
        self._scores = CandidateScores(self.candidates, rows.sign, rows.intercept, rows.threads)

    def best_columns(
        self,
        point: RiskPoint,
        k: int,
        exclude: ColumnPool,
        criterion: Criterion = "edge",
        l1: float = 0.0,
        l2: float = 0.0,
    ) -> Proposals:
        assert isinstance(exclude, LearnerPool)
        unseen = self._unseen(exclude)
        scores, edges = self._scores.evaluate(unseen, point, criterion, l1, l2)
        best = np.argsort(-scores, kind="stable")[:k]
        bound = float(edges.max(initial=-math.inf))
        return Proposals(tuple(self.candidates[j] for j in unseen[best]), edges[best], bound)

    def remaining(self, pool: LearnerPool) -> tuple[Candidate, ...]:
        return tuple(self.candidates[j] for j in self._unseen(pool))

    def _unseen(self, pool: LearnerPool) -> NDArray[np.intp]:
        return np.array([j for j, own in enumerate(self.candidates) if not pool.holds(own)], dtype=np.intp)


class StumpColumns(LearnerDictionary):
    """All stumps on a binned table, searched exactly, their columns stored once proposed."""

    exact = True

    def __init__(self, stumps: StumpDictionary, rows: LearningRows) -> None:
        super().__init__(rows)
        self.stumps = stumps

    def best_columns(
        self,
        point: RiskPoint,
        k: int,
        exclude: ColumnPool,
        criterion: Criterion = "edge",
        l1: float = 0.0,
        l2: float = 0.0,
    ) -> Proposals:
        assert isinstance(exclude, LearnerPool)
        # stored columns hold the label; the search over bins takes it with the row weights
        signed = replace(point, risk=replace(point.risk, sign=self.rows.sign))
        seen = self.stumps.pool()
        for candidate in exclude.candidates:
            if isinstance(candidate.learner, Stumps) and exclude.holds(candidate):
                seen.append(candidate.learner)
        while True:
            found = self.stumps.best_columns(signed, k, seen, criterion, l1, l2)
            candidates = self._candidates(found.atoms)
            known = np.array([exclude.holds(own) for own in candidates], dtype=bool)
            if not known.any():
                return replace(found, atoms=candidates)
            seen.append(found.atoms[known])  # another learner has given this column

    def _candidates(self, stumps: Stumps) -> tuple[Candidate, ...]:
        pool = StumpPool(self.stumps)
        pool.append(stumps)
        columns = pool.dense()[:, pool.n_free :].T
        return tuple(Candidate(stumps[j : j + 1], columns[j]) for j in range(len(stumps)))

    def remaining(self, pool: LearnerPool) -> None:
        return None


class UnionDictionary(LearnerDictionary):
    """Several dictionaries on the same rows; exact if all of them are."""

    def __init__(self, parts: Sequence[LearnerDictionary], rows: LearningRows) -> None:
        super().__init__(rows)
        self.parts = tuple(parts)
        self.exact = all(part.exact for part in self.parts)
        self.batch = 1 if self.exact else len(self.parts)

    def best_columns(
        self,
        point: RiskPoint,
        k: int,
        exclude: ColumnPool,
        criterion: Criterion = "edge",
        l1: float = 0.0,
        l2: float = 0.0,
    ) -> Proposals:
        """The best of what the parts propose, each asked for k."""
        proposals = [part.best_columns(point, k, exclude, criterion, l1, l2) for part in self.parts]
        bound = max((own.bound for own in proposals), default=-math.inf)
        candidates = _distinct(own for found in proposals for own in found.atoms)
        rows = self.rows
        scores = CandidateScores(candidates, rows.sign, rows.intercept, rows.threads)
        score, edges = scores.evaluate(np.arange(len(candidates)), point, criterion, l1, l2)
        best = np.argsort(-score, kind="stable")[:k]
        return Proposals(tuple(candidates[j] for j in best), edges[best], bound)

    def remaining(self, pool: LearnerPool) -> tuple[Candidate, ...] | None:
        found: list[Candidate] = []
        for part in self.parts:
            own = part.remaining(pool)
            if own is None:
                return None
            found += own
        return _distinct(found)


def _distinct(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Of equal columns the first."""
    first: dict[bytes, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.digest, candidate)
    return tuple(first.values())


def stumps_of(dictionary: LearnerDictionary) -> StumpDictionary | None:
    """The stumps among its parts."""
    parts = dictionary.parts if isinstance(dictionary, UnionDictionary) else (dictionary,)
    return next((part.stumps for part in parts if isinstance(part, StumpColumns)), None)

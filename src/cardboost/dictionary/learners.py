"""Weak learners of any kind: fitted round by round, fitted before, or stumps; alone or together.

Their outputs are stored as columns (docs/mathematics.md calls them a_ij). A learner that is fitted to the row
weights is only as good as its own search, so no bound covers what it did not return: such a dictionary is
not exact. A list of fitted learners is searched exhaustively, and is.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from cardboost.dictionary.base import BY_EDGE, Dictionary, Proposals, Scoring
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.dictionary.stump_arrays import Stumps
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.model.fitted_learner import FittedLearner, method_of, name_of
from cardboost.problem.risk import RiskPoint

Array = NDArray[np.float64]

#: learners are fitted to these labels: every library takes them
LABELS = (0, 1)

_LEAST_CURVATURE = 1e-4  # share of its curvature that a column keeps when the intercept moves with it


@dataclass(frozen=True, eq=False)
class LearningRows:
    """What learners are fitted to and asked about: the rows as the user has them, and their labels."""

    X: Any
    sign: NDArray[np.int8]
    classes: tuple[Any, Any] = (False, True)
    intercept: bool = True
    threads: int = 1


@dataclass(frozen=True, eq=False)
class Candidate:
    """A weak learner (a fitted one, or a stump) and its column: the output times the label, row by row."""

    learner: Any
    column: NDArray[Any]

    @classmethod
    def make(cls, learner: FittedLearner, rows: LearningRows) -> Candidate:
        return cls(learner, np.asarray(learner.scores(rows.X) * rows.sign))

    def constant(self, sign: NDArray[np.int8]) -> bool:
        """Whether the learner says the same of every row, as the intercept does."""
        scores = self.column * sign
        return bool((scores == scores[0]).all())

    @cached_property
    def digest(self) -> bytes:
        """Equal for equal columns."""
        numbers = np.asarray(self.column, dtype=np.float64) + 0.0
        return hashlib.blake2b(numbers.tobytes(), digest_size=16).digest()

    @property
    def identity(self) -> Any:
        """Equal for the same stump and for the same fitted learner; learners that only agree here differ."""
        stump = self.learner
        if not isinstance(stump, Stumps):
            return id(stump)
        sides = int(stump.polarity[0]), bool(stump.missing_left[0])
        return int(stump.feature[0]), stump.left[0].tobytes(), *sides


class LearnerPool(MatrixPool):
    """Stored outputs of learners, behind the intercept's two columns.

    No two columns are equal, and none but the intercept's is constant, unless the pool ``repeats``: then it
    takes any column, as often as it is chosen.
    """

    cheap_gram = False

    def __init__(
        self, sign: NDArray[np.int8], intercept: bool, threads: int = 1, repeats: bool = False
    ) -> None:
        self.sign, self.intercept, self.repeats = sign, intercept, repeats
        self.candidates: list[Candidate] = []
        free = np.stack([sign, -sign]) if intercept else np.empty((0, len(sign)), dtype=np.int8)
        super().__init__(ColumnStore(free, threads), np.arange(len(free), dtype=np.int32))
        self.n_free = len(free)
        self._digests: set[bytes] = set()

    def holds(self, candidate: Candidate) -> bool:
        return not self.repeats and candidate.digest in self._digests

    def accepts(self, candidate: Candidate) -> bool:
        """Whether a column is worth having here."""
        return self.repeats or not (candidate.constant(self.sign) or self.holds(candidate))

    def append(self, atoms: Sequence[Candidate]) -> None:
        if len(atoms):
            self.store.append(np.stack([candidate.column for candidate in atoms]))
            self.which = np.arange(len(self.store), dtype=np.int32)
            self.candidates.extend(atoms)
            self._digests.update(candidate.digest for candidate in atoms)

    def subset(self, columns: NDArray[np.intp]) -> LearnerPool:
        """A pool of these columns only (they must include the intercept's)."""
        pool = LearnerPool(self.sign, self.intercept, self.store.threads)
        pool.append([self.candidates[j - self.n_free] for j in columns if j >= self.n_free])
        return pool


class CandidateScores:
    """Edges and gains of stored candidates; the label itself is stored first, as the intercept's column."""

    def __init__(self, candidates: Sequence[Candidate], rows: LearningRows) -> None:
        self.candidates, self.intercept = candidates, rows.intercept
        columns = [candidate.column for candidate in candidates]
        self.store = ColumnStore(np.stack([rows.sign, *columns]), rows.threads)

    def best(
        self, which: NDArray[np.intp], point: RiskPoint, k: int, scoring: Scoring, bound: float | None = None
    ) -> Proposals:
        """The k best of these candidates; ``bound``: by default their largest edge."""
        scores, edges = self.evaluate(which, point, scoring)
        best = np.argsort(-scores, kind="stable")[:k]
        bound = float(edges.max(initial=-math.inf)) if bound is None else bound
        return Proposals(tuple(self.candidates[j] for j in which[best]), edges[best], bound)

    def evaluate(self, which: NDArray[np.intp], point: RiskPoint, scoring: Scoring) -> tuple[Array, Array]:
        """Scores and edges of these candidates.

        The gain is the drop of the quadratic model when the weight of a column moves, and the intercept with
        it: the score by which stumps are searched, for columns of any scale.
        """
        columns = (which + 1).astype(np.int32)
        edges = self.store.edges(columns, point)
        if scoring.criterion == "edge" or len(which) == 0:
            return edges, edges
        constant = np.zeros(1, dtype=np.int32)
        slope, curvature = edges - scoring.l1, self.store.squares(columns, point)
        if self.intercept:
            total = float(self.store.squares(constant, point)[0])
            if total > 0.0:
                cross = self.store.gram(constant, columns, point)[0]
                slope = slope - cross / total * float(self.store.edges(constant, point)[0])
                curvature = np.maximum(curvature - cross * cross / total, _LEAST_CURVATURE * curvature)
        curvature = curvature + scoring.l2
        gains = slope > 0.0
        gains &= curvature > 0.0
        return np.where(gains, slope * slope / np.where(gains, curvature, 1.0), slope), edges


class LearnerDictionary(Dictionary):
    """Weak learners on given rows; their pool stores columns. Proposals are tuples of candidates."""

    def __init__(self, rows: LearningRows) -> None:
        self.rows = rows

    def pool(self) -> LearnerPool:
        return LearnerPool(self.rows.sign, self.rows.intercept, self.rows.threads)


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
        self.estimator = estimator
        self.seed = [seed] if isinstance(seed, int) else list(seed)
        self.labels = (rows.sign > 0).astype(np.int64)

    def best_columns(  # type: ignore[override]
        self, point: RiskPoint, k: int, exclude: LearnerPool, scoring: Scoring = BY_EDGE
    ) -> Proposals:
        """The column of one fit (never more), with a bound of infinity."""
        weight = fit_weights(point)
        if weight is not None:
            n_before = exclude.n_columns - exclude.n_free
            learner = fit_clone(self.estimator, self.rows.X, self.labels, weight, self.seed, n_before)
            candidate = Candidate.make(FittedLearner(learner, LABELS, method_of(learner)), self.rows)
            if exclude.accepts(candidate):
                scores = CandidateScores([candidate], self.rows)
                proposals = scores.best(np.zeros(1, dtype=np.intp), point, 1, BY_EDGE, math.inf)
                if proposals.edges[0] > scoring.l1:
                    return proposals
        return Proposals((), np.empty(0), math.inf)


def fit_clone(
    estimator: Any, X: Any, y: NDArray[Any], weight: Array | None, seed: Sequence[int], n_before: int
) -> Any:
    """A clone, fitted. What is random in it follows from the seed and the number of learners made before."""
    learner = clone(estimator)
    names = sorted(learner.get_params(deep=True))
    random = [name for name in names if name == "random_state" or name.endswith("__random_state")]
    if random:
        states = np.random.SeedSequence([*seed, n_before]).generate_state(len(random)) % 2**31
        learner.set_params(**{name: int(state) for name, state in zip(random, states, strict=True)})
    try:
        learner.fit(X, y, **({} if weight is None else {"sample_weight": weight}))
    except Exception as error:
        raise ValueError(
            f"dictionary: {name_of(learner)} could not be fitted as learner {n_before + 1}: {error}"
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
        fitted = (FittedLearner.read(learner, rows.classes) for learner in learners)
        candidates = (Candidate.make(learner, rows) for learner in fitted)
        self.candidates = _distinct(one for one in candidates if not one.constant(rows.sign))
        self._scores = CandidateScores(self.candidates, rows)

    def best_columns(  # type: ignore[override]
        self, point: RiskPoint, k: int, exclude: LearnerPool, scoring: Scoring = BY_EDGE
    ) -> Proposals:
        return self._scores.best(self._unseen(exclude), point, k, scoring)

    def remaining(self, pool: LearnerPool) -> tuple[Candidate, ...]:  # type: ignore[override]
        return tuple(self.candidates[j] for j in self._unseen(pool))

    def _unseen(self, pool: LearnerPool) -> NDArray[np.intp]:
        return np.array([j for j, one in enumerate(self.candidates) if not pool.holds(one)], dtype=np.intp)


class StumpColumns(LearnerDictionary):
    """All stumps on a binned table, searched exactly, their columns stored once proposed."""

    exact = True

    def __init__(self, stumps: StumpDictionary, rows: LearningRows) -> None:
        super().__init__(rows)
        self.stumps = stumps

    def best_columns(  # type: ignore[override]
        self, point: RiskPoint, k: int, exclude: LearnerPool, scoring: Scoring = BY_EDGE
    ) -> Proposals:
        # stored columns hold the label; the search over bins takes it with the row weights
        signed = replace(point, risk=replace(point.risk, sign=self.rows.sign))
        seen = self.stumps.pool()
        for candidate in exclude.candidates:
            if isinstance(candidate.learner, Stumps) and exclude.holds(candidate):
                seen.append(candidate.learner)
        while True:
            proposals = self.stumps.best_columns(signed, k, seen, scoring)
            candidates = self._candidates(proposals.atoms)
            in_pool = np.array([exclude.holds(candidate) for candidate in candidates], dtype=bool)
            if not in_pool.any():
                return replace(proposals, atoms=candidates)
            seen.append(proposals.atoms[in_pool])  # another learner has given this column

    def _candidates(self, stumps: Stumps) -> tuple[Candidate, ...]:
        pool = self.stumps.pool()
        pool.append(stumps)
        columns = pool.dense()[:, pool.n_free :].T
        return tuple(Candidate(stumps[j : j + 1], columns[j]) for j in range(len(stumps)))


class UnionDictionary(LearnerDictionary):
    """Several dictionaries on the same rows; exact if all of them are."""

    def __init__(self, parts: Sequence[LearnerDictionary], rows: LearningRows) -> None:
        super().__init__(rows)
        self.parts = tuple(parts)
        self.exact = all(part.exact for part in self.parts)
        self.batch = 1 if self.exact else len(self.parts)

    def best_columns(  # type: ignore[override]
        self, point: RiskPoint, k: int, exclude: LearnerPool, scoring: Scoring = BY_EDGE
    ) -> Proposals:
        """The best of what the parts propose, each asked for k."""
        proposals = [part.best_columns(point, k, exclude, scoring) for part in self.parts]
        bound = max((proposal.bound for proposal in proposals), default=-math.inf)
        candidates = _distinct(candidate for proposal in proposals for candidate in proposal.atoms)
        scores = CandidateScores(candidates, self.rows)
        return scores.best(np.arange(len(candidates)), point, k, scoring, bound)

    def remaining(self, pool: LearnerPool) -> tuple[Candidate, ...] | None:  # type: ignore[override]
        parts = [part.remaining(pool) for part in self.parts]
        return None if None in parts else _distinct(chain.from_iterable(parts))


def _distinct(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Of equal columns the first."""
    first: dict[bytes, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.digest, candidate)
    return tuple(first.values())

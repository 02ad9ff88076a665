"""A pool of any weak learners: their outputs on the rows, stored, behind the intercept's two columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.dictionary.base import ColumnPool, Criterion
from cardboost.dictionary.columns import ColumnStore
from cardboost.problem.risk import RiskPoint

Array = NDArray[np.float64]

_LEAST_CURVATURE = 1e-4  # share of its curvature that a column keeps when the intercept moves with it


@dataclass(frozen=True, eq=False)
class Candidate:
    """A weak learner (a fitted one, or a stump) and its column: the output times the label, row by row."""

    learner: Any
    column: NDArray[Any]

    @classmethod
    def make(cls, learner: Any, scores: NDArray[Any], sign: NDArray[np.int8]) -> Candidate:
        return cls(learner, np.asarray(scores * sign))

    def constant(self, sign: NDArray[np.int8]) -> bool:
        """Whether the learner says the same of every row, as the intercept does."""
        scores = self.column * sign
        return bool((scores == scores[0]).all())

    @cached_property
    def digest(self) -> bytes:
        """Equal for equal columns."""
        numbers = np.asarray(self.column, dtype=np.float64) + 0.0
        return hashlib.blake2b(numbers.tobytes(), digest_size=16).digest()


class LearnerPool(ColumnPool):
    """Stored columns. No two are equal, and none but the intercept's is constant."""

    def __init__(self, sign: NDArray[np.int8], intercept: bool, threads: int = 1) -> None:
        self.sign = sign
        self.intercept = intercept
        self.candidates: list[Candidate] = []
        free = np.stack([sign, -sign]) if intercept else np.empty((0, len(sign)), dtype=np.int8)
        self.store = ColumnStore(free, threads)
        self._known: set[bytes] = set()

    @property
    def n_columns(self) -> int:
        return len(self.store)

    @property
    def n_free(self) -> int:
        return 2 if self.intercept else 0

    def holds(self, candidate: Candidate) -> bool:
        return candidate.digest in self._known

    def accepts(self, candidate: Candidate) -> bool:
        """Whether a column is worth having here."""
        return not candidate.constant(self.sign) and not self.holds(candidate)

    def append(self, atoms: Sequence[Candidate]) -> None:
        if len(atoms):
            self.store.append(np.stack([candidate.column for candidate in atoms]))
            self.candidates.extend(atoms)
            self._known.update(candidate.digest for candidate in atoms)

    def subset(self, columns: NDArray[np.intp]) -> LearnerPool:
        """A pool of these columns only (they must include the intercept's)."""
        pool = LearnerPool(self.sign, self.intercept, self.store.threads)
        pool.append([self.candidates[j - self.n_free] for j in columns if j >= self.n_free])
        return pool

    def margins(self, weights: Array) -> Array:
        used = np.flatnonzero(weights).astype(np.int32)
        return self.store.margins(used, np.ascontiguousarray(weights[used]))

    @property
    def sizes(self) -> Array:
        return self.store.sizes

    def edges(self, point: RiskPoint) -> Array:
        return self.store.edges(self._all(), point)

    def gram(self, point: RiskPoint, left: NDArray[np.intp] | None = None, exact: bool = False) -> Array:
        return self.store.gram(self._all() if left is None else left.astype(np.int32), self._all(), point)

    def dense(self) -> NDArray[Any]:
        return self.store.values.T

    def _all(self) -> NDArray[np.int32]:
        return np.arange(self.n_columns, dtype=np.int32)


class RoundPool(LearnerPool):
    """One column for every round, in their order: any column, as often as it is chosen."""

    def __init__(self, sign: NDArray[np.int8], threads: int = 1) -> None:
        super().__init__(sign, False, threads)

    def holds(self, candidate: Candidate) -> bool:
        return False

    def accepts(self, candidate: Candidate) -> bool:
        return True


class CandidateScores:
    """Edges and gains of stored candidates; the label itself is stored first, as the intercept's column."""

    def __init__(
        self, candidates: Sequence[Candidate], sign: NDArray[np.int8], intercept: bool, threads: int
    ) -> None:
        self.candidates = tuple(candidates)
        self.intercept = intercept
        self.store = ColumnStore(np.stack([sign, *(own.column for own in self.candidates)]), threads)

    def evaluate(
        self, which: NDArray[np.intp], point: RiskPoint, criterion: Criterion, l1: float, l2: float
    ) -> tuple[Array, Array]:
        """Scores and edges of these candidates.

        The gain is the drop of the quadratic model when the weight of a column moves, and the intercept with
        it: the score by which stumps are searched, for columns of any scale.
        """
        own = (which + 1).astype(np.int32)
        edges = self.store.edges(own, point)
        if criterion == "edge" or len(which) == 0:
            return edges, edges
        constant = np.zeros(1, dtype=np.int32)
        slope, curvature = edges - l1, self.store.squares(own, point)
        if self.intercept:
            total = float(self.store.squares(constant, point)[0])
            if total > 0.0:
                cross = self.store.gram(constant, own, point)[0]
                slope = slope - cross / total * float(self.store.edges(constant, point)[0])
                curvature = np.maximum(curvature - cross * cross / total, _LEAST_CURVATURE * curvature)
        curvature = curvature + l2
        gains = slope > 0.0
        gains &= curvature > 0.0
        return np.where(gains, slope * slope / np.where(gains, curvature, 1.0), slope), edges

"""Rules that pick one of several sizes from the scores of the folds. Higher scores are better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RULES = ("1se", "knee", "best")
#: shares of false alarms for which the recall of every model is known
RATES = tuple(round(k / 1000, 3) for k in (*range(0, 20), *range(20, 100, 5), *range(100, 1000, 10), 1000))


@dataclass(frozen=True, eq=False)
class ScoredSizes:
    """Scores of some sizes, ascending: (sizes, folds)."""

    sizes: tuple[int, ...]
    scores: Array

    @property
    def means(self) -> Array:
        return np.array([mean(own) for own in self.scores])

    @property
    def errors(self) -> Array:
        """Standard errors of the means; 0 where there is one fold, of which nothing is known."""
        return np.array([standard_error(own) or 0.0 for own in self.scores])

    def at_most(self, size: int) -> ScoredSizes:
        kept = [k for k, own in enumerate(self.sizes) if own <= size]
        return ScoredSizes(tuple(self.sizes[k] for k in kept), self.scores[kept])

    def pick(self, rule: str) -> int:
        """The place of the size that a rule picks."""
        return {"best": self.best, "1se": self.within_one_error, "knee": self.knee}[rule]()

    def best(self) -> int:
        """The highest mean, the smallest size of equals."""
        return int(np.argmax(self.means))

    def within_one_error(self) -> int:
        """The smallest size whose mean is within one standard error of the best."""
        best = self.best()
        return int(np.argmax(self.means >= self.means[best] - self.errors[best]))

    def knee(self) -> int:
        """Where the curve bends: farthest above the line from the smallest size to the best one."""
        best = self.best()
        if best == 0:
            return 0
        sizes, means = np.array(self.sizes[: best + 1], dtype=np.float64), self.means[: best + 1]
        across = (sizes - sizes[0]) / (sizes[-1] - sizes[0])
        up = (means - means[0]) / (means[-1] - means[0])
        return int(np.argmax(up - across))

    def reaching(self, score: float) -> int | None:
        """The smallest size whose mean is at least ``score``."""
        enough = np.flatnonzero(self.means >= score)
        return int(enough[0]) if len(enough) else None


def mean(scores: Sequence[float] | Array) -> float:
    return math.fsum(scores) / len(scores)


def standard_error(scores: Sequence[float] | Array) -> float | None:
    """Of the mean of the folds; None for one fold."""
    if len(scores) < 2:
        return None
    middle = mean(scores)
    return math.sqrt(math.fsum((own - middle) ** 2 for own in scores) / (len(scores) - 1) / len(scores))


def rate_at_most(rate: float) -> int:
    """The place of the largest known rate that is not above this one."""
    return int(np.searchsorted(RATES, rate, side="right")) - 1

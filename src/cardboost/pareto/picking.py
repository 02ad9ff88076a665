"""The rules that pick one of several sizes from the scores of the folds. Higher scores are better.

All ways to pick a size end here: ``ParetoFront.pick``, its table and page, and ``cardboost pareto --pick``.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.arguments import whole

Array = NDArray[np.float64]

#: the rules by name, in words
RULES = {"1se": "within one standard error of the best", "knee": "the bend of the curve", "best": "the best"}
#: shares of false alarms at which the recall of every model is computed
RATES = tuple(round(k / 1000, 3) for k in (*range(0, 20), *range(20, 100, 5), *range(100, 1000, 10), 1000))


@dataclass(frozen=True, eq=False)
class ScoredSizes:
    """Scores of some sizes, ascending: (sizes, folds)."""

    sizes: tuple[int, ...]
    scores: Array

    @classmethod
    def of_recalls(cls, sizes: tuple[int, ...], recalls: Sequence[Any], rate: Any) -> ScoredSizes:
        """Recalls at a share of false alarms as the scores; ``recalls``: (sizes, folds, RATES), or None."""
        real = isinstance(rate, numbers.Real) and not isinstance(rate, bool)
        if not real or not 0.0 <= rate <= 1.0:
            raise ValueError(f"recall_at_fpr must be a number from 0 to 1; got {rate!r}.")
        if any(curves is None for curves in recalls):
            raise ValueError("recall_at_fpr is for two classes, and needs both in the held-out rows.")
        index = int(np.searchsorted(RATES, float(rate), side="right")) - 1
        return cls(sizes, np.array([[curve[index] for curve in curves] for curves in recalls]))

    @property
    def means(self) -> Array:
        return np.array([fmean(scores) for scores in self.scores])

    @property
    def errors(self) -> Array:
        """Standard errors of the means; 0 where there is one fold, of which none is defined."""
        return np.array([standard_error(scores) or 0.0 for scores in self.scores])

    def at_most(self, max_terms: int) -> ScoredSizes:
        """The sizes up to a limit."""
        kept = [k for k, size in enumerate(self.sizes) if size <= max_terms]
        if not kept:
            raise ValueError(f"max_terms={max_terms}: the smallest size of this front is {self.sizes[0]}.")
        return ScoredSizes(tuple(self.sizes[k] for k in kept), self.scores[kept])

    def pick(self, rule: str) -> int:
        """The index of the size that a rule picks."""
        return {"best": self.best, "1se": self.within_one_error, "knee": self.knee}[rule]()

    def best(self) -> int:
        """The highest mean, the smallest size of equals."""
        return int(np.argmax(self.means))

    def within_one_error(self) -> int:
        """The smallest size whose mean is within one standard error of the best."""
        best = self.best()
        return int(np.argmax(self.means >= self.means[best] - self.errors[best]))

    def knee(self) -> int:
        """The bend of the curve: farthest above the line from the smallest size to the best one."""
        best = self.best()
        if best == 0:
            return 0
        sizes, means = np.array(self.sizes[: best + 1], dtype=np.float64), self.means[: best + 1]
        across = (sizes - sizes[0]) / (sizes[-1] - sizes[0])
        up = (means - means[0]) / (means[-1] - means[0])
        return int(np.argmax(up - across))

    def reaching(self, score: Any) -> int:
        """The smallest size whose mean is at least ``score``."""
        if isinstance(score, bool) or not isinstance(score, numbers.Real) or score != score:
            raise ValueError(f"min_score must be a number; got {score!r}.")
        enough = np.flatnonzero(self.means >= float(score))
        if not len(enough):
            best = self.best()
            raise ValueError(
                f"min_score={score!r}: no size reaches it; the best mean is {self.means[best]:.6g}, "
                f"with {self.sizes[best]} terms."
            )
        return int(enough[0])


def pick_size(
    scored: ScoredSizes, rule: str | None, max_terms: Any, min_score: Any, limited_rule: str = "best"
) -> int:
    """The index of the size that the arguments of ``ParetoFront.pick`` ask for.

    The default rule is "1se", and ``limited_rule`` where ``max_terms`` is given.
    """
    if rule is not None and rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(map(repr, RULES))}; got {rule!r}.")
    if rule is not None and min_score is not None:
        raise ValueError(f"min_score takes the place of a rule; got both, rule={rule!r}.")
    if max_terms is not None:
        scored = scored.at_most(whole("max_terms", max_terms, 1))
    if min_score is not None:
        return scored.reaching(min_score)
    return scored.pick(rule or ("1se" if max_terms is None else limited_rule))


def standard_error(scores: Sequence[float] | Array) -> float | None:
    """The standard error of the mean of the folds; None for one fold."""
    if len(scores) < 2:
        return None
    middle = fmean(scores)
    return math.sqrt(math.fsum((score - middle) ** 2 for score in scores) / (len(scores) - 1) / len(scores))

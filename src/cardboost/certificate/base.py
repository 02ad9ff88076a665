"""What all certificates have in common: an objective, a lower bound, and a check against the data."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from cardboost.problem.bound import guarantee


class BaseCertificate:
    """A claim about a model that can be checked.

    Certificates have ``objective``, ``null_objective``, ``lower_bound``, ``status`` and ``scope``, and say
    which of their claims the data contradict.
    """

    objective: Any
    null_objective: Any
    lower_bound: Any

    @property
    def gap(self) -> float:
        """How much lower the objective of any other model of the same scope can be."""
        return max(0.0, self.objective - self.lower_bound)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective."""
        return self.gap / self.objective if self.objective > 0.0 else 0.0

    @property
    def guarantee(self) -> float:
        """At least this share of the improvement over the empty model that the scope allows."""
        return guarantee(self.null_objective, self.objective, self.lower_bound)

    @abstractmethod
    def faults(self, X: Any, y: Any = None, sample_weight: Any = None) -> list[str]:
        """Every claim that the data contradict, in sentences; empty when all hold."""

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> bool:
        """Recompute every number from the data with the independent checker.

        Parameters
        ----------
        X, y, sample_weight : the data of the fit.

        Returns
        -------
        bool
            Whether every claim holds; :meth:`faults` says which do not.
        """
        return not self.faults(X, y, sample_weight)

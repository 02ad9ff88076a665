"""What a dictionary of weak learners and a pool of columns must be able to do.

A *dictionary* is every weak learner that could be used; it answers one question: which columns are best at
these row weights, and how large can the edge of any other be? A *pool* is the columns generated so far.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardboost.problem.risk import EmpiricalRisk, RiskPoint

Array = NDArray[np.float64]
Criterion = Literal["edge", "gain"]


@dataclass(frozen=True)
class Scoring:
    """How columns are compared.

    Parameters
    ----------
    criterion : {"edge", "gain"}
        The edge, or the drop of the quadratic model when the weight of a column moves.
    l1, l2 : float
        Price of weight and of squared weight, which the gain takes into account.
    """

    criterion: Criterion = "edge"
    l1: float = 0.0
    l2: float = 0.0


BY_EDGE = Scoring()


@dataclass(frozen=True)
class Proposals:
    """The best unseen columns, their edges, and a bound on the edge of every unseen column."""

    atoms: Any
    edges: Array
    bound: float

    def __len__(self) -> int:
        return len(self.edges)


class ColumnPool(ABC):
    """Columns generated so far, in order. Weights are a vector over them."""

    #: leading columns that are free of charge: the two of the intercept, or none
    n_free: int = 0

    #: whether :meth:`gram` is an estimate unless asked otherwise
    sketches: bool = False

    #: whether a whole Gram matrix costs little more than a pass over the rows
    cheap_gram: bool = False

    @property
    @abstractmethod
    def n_columns(self) -> int: ...

    @property
    @abstractmethod
    def features(self) -> NDArray[np.int32]:
        """The feature that each column looks at; -1 for free columns."""

    @abstractmethod
    def append(self, atoms: Any) -> None: ...

    @abstractmethod
    def margins(self, weights: Array) -> Array:
        """``F_i = sum_j w_j a_ij``."""

    @abstractmethod
    def edges(self, point: RiskPoint) -> Array:
        """``c_j = sum_i u_i a_ij``."""

    @abstractmethod
    def gram(self, point: RiskPoint, left: NDArray[np.intp] | None = None, exact: bool = False) -> Array:
        """``sum_i s_i loss''(F_i) a_ij a_ik`` for j in ``left`` (default: all) and every k.

        A pool may answer with an estimate from some of the rows unless ``exact``.
        """

    @abstractmethod
    def dense(self) -> NDArray[Any]:
        """The columns as they are, one per row of the result's transpose: shape (rows, columns)."""

    @abstractmethod
    def subset(self, columns: NDArray[np.intp]) -> ColumnPool:
        """A pool of some of the columns."""

    def netted(self, weights: Array) -> Array:
        """Weights with the same scores, without opposite columns that cancel; no price is higher."""
        return weights

    def place_missing(self, weights: Array) -> None:  # noqa: B027 - only stumps have sides for them
        """Decide on which side of the columns in use values are that were never missing in training."""

    @property
    def sizes(self) -> float | Array:
        """What the rounding of an edge is relative to: the size of the largest entry of its column."""
        return 1.0


class Dictionary(ABC):
    """All weak learners of one kind. ``exact`` says whether the bound covers every one of them."""

    exact: bool

    #: columns to add in one round where each is weighed by itself: one for every learner that is fitted
    batch: int = 1

    #: whether a certificate can name every column, and so cover the whole dictionary
    fits_file: bool = False

    @abstractmethod
    def pool(self) -> ColumnPool:
        """An empty pool (with the intercept's columns, if there is one)."""

    @abstractmethod
    def best_columns(
        self, point: RiskPoint, k: int, exclude: ColumnPool, scoring: Scoring = BY_EDGE
    ) -> Proposals:
        """The k best columns that are not in ``exclude``."""

    def promising_columns(self, point: RiskPoint, k: int, exclude: ColumnPool, scoring: Scoring) -> Proposals:
        """Good columns found with less work; the bound need not cover the rest."""
        return self.best_columns(point, k, exclude, scoring)

    def remaining(self, pool: ColumnPool) -> Any:
        """Every column that is not in the pool, to be appended to it; None where they cannot be listed."""
        return None

    def unseen_edges(self, point: RiskPoint, exclude: ColumnPool) -> Array:
        """For every feature the largest edge of its columns that are not in ``exclude``; -inf without any."""
        raise ValueError("Limits on features need columns that look at single features, such as stumps.")

    def sketched(self, risk: EmpiricalRisk, n_rows: int) -> tuple[Dictionary, EmpiricalRisk] | None:
        """The same columns over about ``n_rows`` of the rows, and the risk there; None without such rows."""
        return None

"""A matrix of signs, as bits: products with it take one lookup for eight entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.dictionary.columns import least
from cardboost.problem.risk import RiskPoint

Array = NDArray[np.float64]
Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class SignMatrix:
    """Rows by columns, every entry 1 or -1. A column and its opposite are stored and multiplied once.

    Stored column k is column ``sides[0, k]`` and the opposite of column ``sides[1, k]``, -1 for none.
    ``by_column`` has, for every 64 rows, a word per stored column; ``by_row``, for every 64 stored columns,
    a word per row.
    """

    by_column: NDArray[np.uint64]
    by_row: NDArray[np.uint64]
    sides: NDArray[np.int32]

    @classmethod
    def pack(cls, A: NDArray[Any]) -> SignMatrix | None:
        """None if some entry is neither 1 nor -1."""
        if A.dtype != np.float64 and A.dtype != np.int8:
            small = A.dtype.kind == "i" and A.size and A.min() >= -1 and A.max() <= 1
            A = A.astype(np.int8 if small else np.float64)
        by_column = A.flags.f_contiguous and not A.flags.c_contiguous
        signs, columns, rows, sides = _kernels.pack_signs(
            A.T if by_column else np.ascontiguousarray(A), by_column
        )
        return cls(columns, rows, sides) if signs else None


@dataclass(frozen=True, eq=False)
class SignBlock:
    """A few columns of signs: a word per column for every 64 rows, a set bit for -1.

    ``turn``: y, where it is not multiplied into the bits but into the row weights and the margins.
    ``correlations``: where those at a point come from, if a Hessian may be taken from some of the rows.
    """

    words: Words
    n_rows: int
    threads: int
    turn: NDArray[np.int8] | None = None
    correlations: Callable[[RiskPoint], Array] | None = None

    def margins(self, weights: Array) -> Array:
        F = _kernels.sign_margins(self.words, weights, self.n_rows, self.threads)
        if self.turn is not None:
            F *= self.turn
        return F

    def edges(self, point: RiskPoint) -> Array:
        sums = _kernels.sign_edges(self.words, point.fixed.edge_lane, self.threads)
        return sums.astype(np.float64) * point.fixed.edge_unit

    def gram(self, point: RiskPoint) -> Array:
        lane = point.fixed.curvature_lane
        sums = _kernels.sign_gram(self.words, 0, lane, self.threads)
        return sums.astype(np.float64) * point.fixed.curvature_unit

    def estimate(self, point: RiskPoint, slopes: Array) -> Array | None:
        """The correlations of a sample; means and variances are those of all rows."""
        if self.correlations is None:
            return None
        deviation = np.sqrt(np.maximum(1.0 - slopes * slopes, 0.0))
        return self.correlations(point) * (deviation[:, None] * deviation)


class SignStore:
    """All columns of a matrix of signs, y multiplied in; the sums are those of the columns as they are."""

    estimates = False

    def __init__(self, signs: SignMatrix, threads: int = 1) -> None:
        self.signs, self.threads = signs, threads
        self.n_rows = signs.by_row.shape[1]
        side, stored = np.nonzero(signs.sides >= 0)
        order = np.argsort(signs.sides[side, stored])
        self._home, opposite = stored[order], side[order] == 1
        self._turn = np.where(opposite, np.uint64(2**64 - 1), np.uint64(0))  # all bits
        self._sign = np.where(opposite, -1.0, 1.0)

    def __len__(self) -> int:
        return len(self._home)

    def every_edge(self, point: RiskPoint) -> Array:
        sums = _kernels.sign_edges(self.signs.by_column, point.fixed.edge_lane, self.threads)
        return (sums.astype(np.float64) * point.fixed.edge_unit)[self._home] * self._sign

    def choose(self, slopes: Array, most: int) -> NDArray[np.int32]:
        return least(slopes, most)

    def block(self, which: NDArray[np.int32]) -> SignBlock:
        words = self.signs.by_column[:, self._home[which]] ^ self._turn[which]
        return SignBlock(words, self.n_rows, self.threads)

    def margins(self, weights: Array) -> Array:
        """Margins of weights of all columns."""
        stored = np.zeros(self.signs.by_column.shape[1])
        np.add.at(stored, self._home, self._sign * weights)
        used = np.flatnonzero(stored)
        words = np.ascontiguousarray(self.signs.by_column[:, used])
        return _kernels.sign_margins(words, stored[used], self.n_rows, self.threads)

"""A matrix of signs, packed eight to a byte: products with it take one lookup for eight entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.risk import RiskPoint

Array = NDArray[np.float64]


class SignMatrix:
    """Rows by columns, every entry 1 or -1. Equal and opposite columns are stored and multiplied once."""

    def __init__(self, A_packed: NDArray[np.uint8], rows: int) -> None:
        """``A_packed``: for eight rows a line of bytes, one byte per column."""
        self.home, self.sign = _homes(A_packed, rows)
        first = np.flatnonzero(self.home == np.arange(len(self.home)))
        self.home = np.searchsorted(first, self.home)
        self.n_stored = len(first)
        self.by_column = np.ascontiguousarray(A_packed[:, first])
        self.by_row = _kernels.transpose_signs(self.by_column, rows)

    @classmethod
    def pack(cls, A: NDArray[Any]) -> SignMatrix | None:
        """None if some entry is neither 1 nor -1."""
        if A.dtype != np.float64 and A.dtype != np.int8:
            small = A.dtype.kind == "i" and A.size and A.min() >= -1 and A.max() <= 1
            A = A.astype(np.int8 if small else np.float64)
        rows, columns = A.shape
        if A.flags.c_contiguous:
            signs, packed = _kernels.pack_signs(A)
        else:
            signs, packed = _kernels.pack_signs(np.ascontiguousarray(A.T))
            packed = _kernels.transpose_signs(packed, columns)
        return cls(packed, rows) if signs else None

    def margins(self, weights: Array) -> Array:
        stored = np.bincount(self.home, self.sign * weights, self.n_stored)
        return _kernels.sign_sums(self.by_row, stored.astype(np.float64, copy=False))

    def edges(self, point: RiskPoint) -> Array:
        sums = _kernels.sign_sums(self.by_column, point.fixed.edge_lane) * point.fixed.edge_unit
        return sums[self.home] * self.sign


def _homes(packed: NDArray[np.uint8], rows: int) -> tuple[NDArray[np.intp], Array]:
    """For every column the first one that is equal or opposite to it, and 1 or -1.

    Candidates have equal random sums of their signs; they are compared byte by byte before they count.
    """
    key = _kernels.sign_sums(packed, np.random.default_rng(0).integers(1, 2**50, rows))
    _, first, group = np.unique(np.abs(key), return_index=True, return_inverse=True)
    home = first[group]
    sign = np.where(key == key[home], 1.0, -1.0)
    flip = np.where(sign < 0, np.uint8(255), np.uint8(0))
    difference = packed ^ packed[:, home] ^ flip
    if rows % 8:
        difference[-1] &= np.uint8(2 ** (rows % 8) - 1)
    alone = difference.any(axis=0)
    home[alone], sign[alone] = np.flatnonzero(alone), 1.0
    return home, sign

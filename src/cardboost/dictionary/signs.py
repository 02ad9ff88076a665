"""A matrix of signs, as bits: products with it take one lookup for eight entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels


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

"""A sketch of a large table: some rows, picked by their content, where an estimate will do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost.data.binning import BinnedMatrix
from cardboost.data.weights import RowWeights

_SKETCH_ROWS = 16_384


@dataclass(frozen=True)
class RowSketch:
    """Some rows of a large table, for Hessians that need not be exact.

    Rows are picked by a hash of their bins, so the order of rows, shards and repeated rows do not matter.
    """

    rows: NDArray[np.intp]
    matrix: BinnedMatrix

    @classmethod
    def make(
        cls,
        matrix: BinnedMatrix,
        weights: RowWeights,
        threads: int,
        target: int = _SKETCH_ROWS,
        bit: int = 20,
    ) -> RowSketch | None:
        """About ``target`` rows by weight; None for tables not much larger, or with too few distinct rows.

        ``bit``: which part of the hash decides, so that a sketch can be taken of a sketch.
        """
        one_in = int(weights.total_count // target)
        if one_in < 2:
            return None
        hashes = matrix.row_hashes(threads)
        rows = np.flatnonzero((hashes >> np.uint64(bit)) % np.uint64(one_in) == 0)
        held = len(rows) if weights.count is None else int(weights.count[rows].sum())
        if held < target // 2 or len(rows) < target // 8:
            return None
        return cls(rows, matrix.take(rows))

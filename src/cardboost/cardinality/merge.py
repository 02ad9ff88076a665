"""The same problem on distinct rows: rows with equal entries in all columns of a pool become one.

Selection looks at the same few columns thousands of times; forty stumps on a few features leave far fewer
distinct rows than the table has. Merged weights are sums of integers, so the order of rows does not show.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.cardinality.problem import CardinalityProblem
from cardboost.data.weights import RowWeights
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.risk import EmpiricalRisk


def merge_rows(problem: CardinalityProblem) -> CardinalityProblem:
    """An equal problem over distinct rows and stored columns; weights over columns mean the same."""
    dense = problem.pool.dense()
    risk = problem.risk
    if dense.dtype == np.int8 and dense.shape[1] > 0:
        first, group = _distinct_rows(dense)
        dense = dense[first]
        weights = _merged_weights(risk.weights, group, len(first), risk.threads)
    else:
        weights = risk.weights
    store = ColumnStore(np.ascontiguousarray(dense.T), risk.threads)
    pool = MatrixPool(store, np.arange(len(store), dtype=np.int32))
    merged = EmpiricalRisk(risk.loss, weights, None, risk.threads)
    return replace(problem, pool=pool, risk=merged)


def _distinct_rows(dense: NDArray[np.int8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First occurrence of every distinct row and, for every row, which one it equals."""
    planes = np.concatenate([dense > 0, dense == 0], axis=1) if (dense == 0).any() else dense > 0
    words = -(-planes.shape[1] // 64)
    packed = np.zeros((len(dense), words * 8), dtype=np.uint8)
    bits = np.packbits(planes, axis=1)
    packed[:, : bits.shape[1]] = bits
    keys = packed.view(np.uint64)
    if words == 1:
        _, first, group = np.unique(keys[:, 0], return_index=True, return_inverse=True)
    else:
        _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first, group.reshape(-1)


def _merged_weights(weights: RowWeights, group: NDArray[np.intp], n: int, threads: int) -> RowWeights:
    if weights.factor is None:
        count = np.ones(len(group), np.int64) if weights.count is None else weights.count
        total = np.zeros(n, dtype=np.int64)
        np.add.at(total, group, count)
        return RowWeights.make(n, total.astype(np.float64))
    scale = _kernels.fixed_scale(weights.total, weights.total_count)
    lanes = _kernels.quantise(
        np.ones((1, len(group))), None, weights.count, weights.factor, weights.largest_factor,
        np.array([scale]), np.ones(1), np.zeros(1, np.uint8), threads,
    )  # fmt: skip
    total = np.zeros(n, dtype=np.int64)
    np.add.at(total, group, lanes[:, 0])
    return RowWeights.make(n, total.astype(np.float64) / scale)

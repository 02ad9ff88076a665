"""The same problem on distinct rows: rows with equal entries in all columns of a pool become one.

Selection looks at the same few columns thousands of times; forty stumps on a few features leave far fewer
distinct rows than the table has. Merged weights are sums of integers, so the order of rows does not show.
Rows with different targets are merged around their mean: what they lose among themselves is a constant
(docs/mathematics.md, "Squared loss").
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.cardinality.problem import CardinalityProblem
from cardboost.data.weights import RowWeights
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.risk import EmpiricalRisk

#: distinct rows beyond which searches use a part of them
SKETCH_ROWS = 16_384


def merge_rows(problem: CardinalityProblem) -> CardinalityProblem:
    """An equal problem over distinct rows and stored columns; weights over columns mean the same."""
    dense = problem.pool.dense()
    risk = problem.risk
    if dense.dtype != np.int8 or dense.shape[1] == 0:
        return _stored(problem, dense, risk)
    first, group = _distinct_rows(dense)
    weights = _merged_weights(risk.weights, group, len(first))
    merged = replace(risk, weights=weights, sign=None, passes=[0])
    if risk.target is not None:
        target = _mean_targets(risk, risk.target, group, len(first))
        within = replace(risk, offset=0.0, passes=[0]).evaluate(target[group]).value
        merged = replace(merged, target=target, offset=risk.offset + within)
    return _stored(problem, dense[first], merged)


def sketch_rows(merged: CardinalityProblem, limit: int = SKETCH_ROWS) -> CardinalityProblem:
    """A smaller problem on about ``limit`` distinct rows, picked by their content; for searching only."""
    dense, risk = merged.pool.dense(), merged.risk
    one_in = len(dense) // limit
    if one_in < 2 or dense.dtype != np.int8:
        return merged
    keys = _packed(dense)
    mixed = np.zeros(len(keys), dtype=np.uint64)
    for word in keys.T:
        mixed = (mixed ^ word) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    rows = np.flatnonzero((mixed >> np.uint64(20)) % np.uint64(one_in) == 0)
    if len(rows) < limit // 2:
        return merged
    target = None if risk.target is None else risk.target[rows]
    some = replace(risk, weights=risk.weights.take(rows), target=target, passes=[0])
    return _stored(merged, dense[rows], some)


def sign_bytes(problem: CardinalityProblem) -> NDArray[np.uint8] | None:
    """Columns of +-1 as bits, 1 for -1: a line of bytes, one per row, for eight columns; None for others."""
    dense = problem.pool.dense()
    if dense.dtype != np.int8 or (dense == 0).any():
        return None
    return np.packbits(np.ascontiguousarray(dense.T) < 0, axis=0, bitorder="little")


def stored_pool(dense: NDArray[Any], threads: int) -> MatrixPool:
    """The columns of a matrix as a pool."""
    store = ColumnStore(np.ascontiguousarray(dense.T), threads)
    return MatrixPool(store, np.arange(len(store), dtype=np.int32))


def _stored(problem: CardinalityProblem, dense: NDArray[Any], risk: EmpiricalRisk) -> CardinalityProblem:
    """The problem on these columns, which have y multiplied in."""
    return replace(problem, pool=stored_pool(dense, risk.threads), risk=replace(risk, sign=None))


def equal_columns(dense: NDArray[Any]) -> NDArray[np.intp]:
    """For every column, the first one that equals it."""
    first: dict[bytes, int] = {}
    lines = np.ascontiguousarray(dense.T) + 0  # no negative zeros
    return np.array([first.setdefault(line.tobytes(), j) for j, line in enumerate(lines)], dtype=np.intp)


def _packed(dense: NDArray[np.int8]) -> NDArray[np.uint64]:
    """Rows of -1, 0, 1 as words of bits."""
    planes = np.concatenate([dense > 0, dense == 0], axis=1) if (dense == 0).any() else dense > 0
    words = -(-planes.shape[1] // 64)
    packed = np.zeros((len(dense), words * 8), dtype=np.uint8)
    bits = np.packbits(planes, axis=1)
    packed[:, : bits.shape[1]] = bits
    return packed.view(np.uint64)


def _distinct_rows(dense: NDArray[np.int8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First occurrence of every distinct row and, for every row, which one it equals."""
    keys = _packed(dense)
    if keys.shape[1] == 1:
        _, first, group = np.unique(keys[:, 0], return_index=True, return_inverse=True)
    else:
        _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first, group.reshape(-1)


def _merged_weights(weights: RowWeights, group: NDArray[np.intp], n: int) -> RowWeights:
    if weights.factor is None:
        count = np.ones(len(group), np.int64) if weights.count is None else weights.count
        total = np.zeros(n, dtype=np.int64)
        np.add.at(total, group, count)
        return RowWeights.make(n, total.astype(np.float64))
    return RowWeights.make(n, weights.group_sums(np.ones(len(group)), group, n))


def _mean_targets(
    risk: EmpiricalRisk, target: NDArray[np.float64], group: NDArray[np.intp], n: int
) -> NDArray[np.float64]:
    """The weighted mean target of every group."""
    least, most = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(least, group, target)
    np.maximum.at(most, group, target)
    held = risk.weights.group_sums(target, group, n)
    weight = risk.weights.group_sums(np.ones(len(target)), group, n)
    return np.clip(held / np.where(weight > 0, weight, 1.0), least, most)

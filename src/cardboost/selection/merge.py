"""The same problem on distinct rows: rows with equal entries in all columns of a pool become one.

Selection looks at the same few columns thousands of times; forty stumps on a few features leave far fewer
distinct rows than the table has. Merged weights are sums of integers, so the order of rows does not show.
Rows with different targets are merged around their mean: what they lose among themselves is a constant
(docs/mathematics.md, "Squared loss").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.weights import RowWeights
from cardboost.dictionary.columns import ColumnStore, MatrixPool, column_lines
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection.selection_problem import SelectionProblem

#: distinct rows beyond which searches use a part of them
SKETCH_ROWS = 16_384
_COMPARED_FIRST = 64  # entries in which columns must agree to be compared in all


def merge_rows(problem: SelectionProblem) -> SelectionProblem:
    """An equal problem over distinct rows and stored columns; weights over columns mean the same."""
    if problem.distinct:
        return problem
    columns = column_lines(problem.pool.dense())
    risk = problem.risk
    if columns.dtype != np.int8 or len(columns) == 0:
        return _stored(problem, columns, risk)
    first, group = _distinct_rows(columns)
    n = len(first)
    total = risk.weights.group_sums(np.ones(len(group)), group, n)
    merged = replace(risk, weights=RowWeights.make(n, total), sign=None, passes=[0])
    if risk.target is not None:
        target = _mean_targets(risk, risk.target, group, total)
        within = replace(risk, offset=0.0, passes=[0]).evaluate(target[group]).value
        merged = replace(merged, target=target, offset=risk.offset + within)
    return _stored(problem, np.take(columns, first, axis=1), merged)


def over_rows_of(merged: SelectionProblem, problem: SelectionProblem) -> SelectionProblem:
    """``problem`` over the distinct rows of another one, which has the same columns, loss and weights."""
    return replace(problem, pool=merged.pool, risk=merged.risk, distinct=True)


def sketch_rows(merged: SelectionProblem, limit: int = SKETCH_ROWS) -> SelectionProblem:
    """A smaller problem on about ``limit`` distinct rows, picked by their content; for searching only."""
    columns, risk = column_lines(merged.pool.dense()), merged.risk
    one_in = columns.shape[1] // limit
    if one_in < 2 or columns.dtype != np.int8:
        return merged
    keys = _packed(columns)
    mixed = np.zeros(len(keys), dtype=np.uint64)
    for word in keys.T:
        mixed = (mixed ^ word) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    rows = np.flatnonzero((mixed >> np.uint64(20)) % np.uint64(one_in) == 0)
    if len(rows) < limit // 2:
        return merged
    target = None if risk.target is None else risk.target[rows]
    risk = replace(risk, weights=risk.weights.take(rows), target=target, passes=[0])
    return _stored(merged, np.take(columns, rows, axis=1), risk)


def sign_bytes(problem: SelectionProblem) -> NDArray[np.uint8] | None:
    """Columns of +-1 as bits, 1 for -1: a byte per row holds eight columns; None for other columns."""
    columns = column_lines(problem.pool.dense())
    if columns.dtype != np.int8 or not columns.all():
        return None
    n, rows = columns.shape
    return _bytes((column < 0 for column in columns), n, rows, True)[: -(-n // 8)]


def stored_pool(dense: NDArray[Any], threads: int) -> MatrixPool:
    """The columns of a matrix as a pool."""
    store = ColumnStore(column_lines(dense), threads)
    return MatrixPool(store, np.arange(len(store), dtype=np.int32))


def _stored(problem: SelectionProblem, columns: NDArray[Any], risk: EmpiricalRisk) -> SelectionProblem:
    """The problem on these columns, one after the other, which have y multiplied in."""
    pool = stored_pool(columns.T, risk.threads)
    return replace(problem, pool=pool, risk=replace(risk, sign=None), distinct=True)


def equal_columns(dense: NDArray[Any]) -> NDArray[np.intp]:
    """For every column, the first one that equals it."""
    columns = column_lines(dense)
    sample = columns[:, :: max(1, columns.shape[1] // _COMPARED_FIRST)] + 0  # no negative zeros
    alike: dict[bytes, list[int]] = {}
    for j, entries in enumerate(sample):
        alike.setdefault(entries.tobytes(), []).append(j)
    equal = np.arange(len(columns))
    for group in alike.values():  # only columns that agree in the sample are compared in all rows
        first: dict[bytes, int] = {}
        for j in group if len(group) > 1 else []:
            equal[j] = first.setdefault((columns[j] + 0).tobytes(), j)
    return equal


def _bytes(bits: Iterable[NDArray[np.bool_]], n: int, rows: int, little: bool) -> NDArray[np.uint8]:
    """``n`` arrays of bits, eight in one array of bytes: the first is the highest bit, or with ``little`` the
    lowest. Zeros are added up to a multiple of 64."""
    packed = np.zeros((8 * -(-n // 64), rows), dtype=np.uint8)
    for j, column in enumerate(bits):
        packed[j // 8] += column.view(np.uint8) * np.uint8(1 << (j % 8 if little else 7 - j % 8))
    return packed


def _packed(columns: NDArray[np.int8]) -> NDArray[np.uint64]:
    """Rows of columns of -1, 0, 1 as words of bits."""
    n, rows = columns.shape
    zeros = not columns.all()
    bits = chain((column > 0 for column in columns), (column == 0 for column in columns if zeros))
    return np.ascontiguousarray(_bytes(bits, n * (1 + zeros), rows, False).T).view(np.uint64)


def _distinct_rows(columns: NDArray[np.int8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First occurrence of every distinct row, in the order of their bits, and which one every row equals."""
    keys = _packed(columns)
    order, agree = np.arange(len(keys)), np.ones(len(keys) - 1, dtype=bool)  # with the row before
    for word in keys.T:  # by which rows are sorted that agree in all words before it: soon there are few
        tied = np.flatnonzero(np.append(False, agree) | np.append(agree, False))
        run = np.append(0, np.cumsum(~agree))[tied]
        order[tied] = order[tied][np.lexsort((word[order[tied]], run))]
        agree &= word[order[1:]] == word[order[:-1]]
    new = np.append(True, ~agree)
    group = np.empty(len(keys), dtype=np.intp)
    group[order] = np.cumsum(new) - 1
    return order[new], group


def _mean_targets(
    risk: EmpiricalRisk, target: NDArray[np.float64], group: NDArray[np.intp], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The weighted mean target of every group, whose ``weight`` is given."""
    n = len(weight)
    least, most = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(least, group, target)
    np.maximum.at(most, group, target)
    total = risk.weights.group_sums(target, group, n)
    return np.clip(total / np.where(weight > 0, weight, 1.0), least, most)

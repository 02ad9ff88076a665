"""Folds of rows by their content: which rows are held out together.

Rows of equal content are in the same fold, and distinct ones are dealt to the folds in the order of a seeded
hash of their content. So neither the order of the rows matters, nor whether a row stands there twice or has
weight 2.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import CategoricalColumn
from cardboost.data.table import Table

Hashes = NDArray[np.uint64]


def row_hashes(table: Table) -> Hashes:
    """A number for the content of every row: equal rows have equal numbers, and different ones hardly ever.

    Missing values are equal to each other, and so are 0.0 and -0.0.
    """
    hashes = np.zeros(table.n_rows, dtype=np.uint64)
    for column in table.columns:
        if isinstance(column, CategoricalColumn):
            labels = np.array([_label_hash(label) for label in (*column.labels, None)], dtype=np.uint64)
            values = labels[column.codes]  # the last one of code -1: missing
        else:
            numbers = np.asarray(column, dtype=np.float64) + 0.0
            values = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
        hashes = _mixed(hashes + np.uint64(0x9E3779B97F4A7C15)) ^ _mixed(values)
    return _mixed(hashes)


def deal_rows(
    hashes: Hashes, codes: NDArray[np.intp] | None, n_folds: int, seed: int, most: int | None = None
) -> NDArray[np.intp]:
    """The fold that holds out each row, -1 for rows that take no part.

    Rows with equal hashes are in the same fold. Groups of them that have the same classes are dealt to the
    folds in turn, in the order of their seeded hashes.

    Parameters
    ----------
    hashes : array
        Of the content of every row.
    codes : array or None
        The class of every row; None for regression.
    n_folds, seed : int
        Equal seeds give equal folds.
    most : int or None
        Groups that take part, about; of each kind the first in the order of their hashes. None: all.
    """
    distinct, group = np.unique(_seeded(hashes, seed), return_inverse=True)
    kind = np.zeros(len(distinct), dtype=np.intp)
    if codes is not None:
        least, greatest = np.full(len(distinct), codes.max()), np.zeros(len(distinct), dtype=np.intp)
        np.minimum.at(least, group, codes)
        np.maximum.at(greatest, group, codes)
        kind = np.unique(least * (codes.max() + 1) + greatest, return_inverse=True)[1]
    order, counts = np.argsort(kind, kind="stable"), np.bincount(kind)
    rank = np.empty(len(distinct), dtype=np.intp)
    rank[order] = np.arange(len(distinct)) - np.repeat(np.cumsum(counts) - counts, counts)
    # one kind begins where the one before it ended, so that folds of few groups have equal numbers too
    fold = (rank + (np.cumsum(counts) - counts)[kind]) % n_folds
    if most is not None:
        fold[rank * len(distinct) >= most * counts[kind]] = -1
    return fold[group]


def fewest_distinct(
    hashes: Hashes, codes: NDArray[np.intp] | None, used: NDArray[np.bool_] | None = None
) -> int:
    """How many distinct rows there are among those that are used; of the class that has fewest."""
    used = np.ones(len(hashes), dtype=bool) if used is None else used
    if codes is None:
        return len(np.unique(hashes[used]))
    return min(len(np.unique(hashes[used & (codes == code)])) for code in range(int(codes.max()) + 1))


def _seeded(hashes: Hashes, seed: int) -> Hashes:
    """A one-to-one map of hashes for every seed."""
    mixed = (hashes ^ np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(32))


def _label_hash(label: object) -> int:
    kind = "number" if isinstance(label, int | float) else type(label).__name__
    return int.from_bytes(
        blake2b(f"{kind}:{label!r}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64, which spreads every bit over all of them."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))

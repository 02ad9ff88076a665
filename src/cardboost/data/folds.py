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


def row_hashes(table: Table, seed: int = 0) -> Hashes:
    """A number for the content of every row: equal rows have equal numbers, and different ones hardly ever.

    Missing values are equal to each other, and so are 0.0 and -0.0.
    """
    hashes = np.full(table.n_rows, seed % 2**64, dtype=np.uint64)
    for column in table.columns:
        if isinstance(column, CategoricalColumn):
            labels = np.array([_label_hash(label) for label in (*column.labels, None)], dtype=np.uint64)
            values = labels[column.codes]  # the last one of code -1: missing
        else:
            numbers = np.asarray(column, dtype=np.float64) + 0.0
            values = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
        hashes = _mixed(hashes + np.uint64(0x9E3779B97F4A7C15)) ^ _mixed(values)
    return _mixed(hashes)


def deal_folds(
    hashes: Hashes, codes: NDArray[np.intp] | None, n_folds: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The fold that holds out each row, and for every class (or for all rows) how many distinct rows it has.

    Distinct rows that occur with the same classes are dealt to the folds in turn, in the order of their
    hashes; the first of one kind goes where the last of the kind before it left off.
    """
    distinct, group = np.unique(hashes, return_inverse=True)
    kinds = np.zeros((len(distinct), 1 if codes is None else int(codes.max()) + 1), dtype=bool)
    kinds[group, 0 if codes is None else codes] = True
    order = np.lexsort((np.arange(len(distinct)), *kinds.T))
    fold = np.empty(len(distinct), dtype=np.intp)
    fold[order] = np.arange(len(distinct)) % n_folds
    return fold[group], kinds.sum(axis=0)


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

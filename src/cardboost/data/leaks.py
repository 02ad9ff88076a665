"""Columns that give the target away: how well each predicts it alone, on a sample of the rows.

Columns of numbers are ranked many at once, so that a table of many columns and few rows is quick too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.frame import Array, Coded

LEAST_ROWS = 20  # of a table; for a regression, of those that have a value
SEPARATION = 0.995  # balanced accuracy of a column alone
CORRELATION = 0.999  # of a column with the target of a regression
_OUTLIERS = 0.95  # least rank correlation: below it a few large numbers make the linear one
_LEAST_OF_CLASS = 5  # rows: one cut separates 5 of 20 by chance in one column of 7,000
_ROWS_OF_CLASS = 5000  # of a sample, at most
_ROWS = 10_000  # the same for a regression
_FEW_VALUES = 20  # numbers that may be codes of categories
_CELLS_AT_ONCE = 2**20


def separating(columns: Mapping[str, Array | Coded], classes: NDArray[Any]) -> list[str]:
    """The columns that predict the class of nearly every row, by cuts or by the class of each label.

    Parameters
    ----------
    columns : mapping
        The features. A missing value is a label, or a number below or above all others.
    classes : ndarray of int
        For every row the number of its class.

    Returns
    -------
    list of str
        Names of columns whose balanced accuracy is at least ``SEPARATION``. A row does not count for the
        label by which it is judged, so that many labels are no merit.
    """
    rows = _sample_of_classes(classes)
    kept, codes, counts = np.unique(classes[rows], return_inverse=True, return_counts=True)
    if len(rows) < LEAST_ROWS or len(kept) < 2:
        return []
    weights = 1.0 / (len(kept) * counts[codes])
    shares = counts / len(codes)
    of_class = np.eye(len(kept))[codes] / counts
    # Classes that ranks separate explain 1 - sum of shares^3 of their variance: others need no closer look.
    enough = 0.9 * (1.0 - float((shares**3).sum()))
    guilty = {name for name, labels in _labels(columns, rows) if _by_labels(labels, codes, weights)}
    for names, cells in _blocks(columns, rows):
        incomplete = np.isnan(cells).any(axis=1)
        for missing in (np.inf, -np.inf) if incomplete.any() else (np.inf,):
            which = np.flatnonzero(incomplete) if missing < 0 else np.arange(len(cells))
            ranks, distinct = _ranks(np.where(np.isnan(cells[which]), missing, cells[which]))
            means = ranks @ of_class
            explained = means**2 @ shares / np.maximum((ranks**2).mean(axis=1), 1e-300)
            few = (distinct > 2) & (distinct <= _FEW_VALUES)
            for k in np.flatnonzero((explained >= enough) | few).tolist():
                labels = np.unique(ranks[k], return_inverse=True)[1]
                by_labels = few[k] and _by_labels(labels, codes, weights)
                if by_labels or _by_cuts(labels, codes, np.argsort(means[k]), weights):
                    guilty.add(names[which[k]])
    return [name for name in columns if name in guilty]


def determining(columns: Mapping[str, Array | Coded], target: Array) -> list[str]:
    """The columns that are nearly a rising or falling function of a number, or whose labels explain it.

    Parameters
    ----------
    columns : mapping
        The features. Rows without a value do not count.
    target : ndarray
        A number for every row; NaN does not count.

    Returns
    -------
    list of str
        Names of columns with a linear or rank correlation of at least ``CORRELATION``, or labels that
        explain as much.
    """
    present = np.flatnonzero(np.isfinite(target))
    rows = present[_sample(len(present), _ROWS)]
    y = target[rows]
    if len(y) < LEAST_ROWS or y.min() == y.max():
        return []
    guilty = {name for name, labels in _labels(columns, rows) if _explains(labels, y)}
    for names, cells in _blocks(columns, rows):
        incomplete = np.isnan(cells).any(axis=1)
        complete = np.flatnonzero(~incomplete)
        guilty.update(names[complete[k]] for k in _correlated(cells[complete], y))
        for k in np.flatnonzero(incomplete).tolist():
            held = ~np.isnan(cells[k])
            if np.count_nonzero(held) >= LEAST_ROWS and _correlated(cells[k : k + 1, held], y[held]):
                guilty.add(names[k])
    return [name for name in columns if name in guilty]


# ------------------------------------------------------------------------------------------------ classes


def _by_labels(labels: NDArray[Any], codes: NDArray[Any], weights: Array) -> bool:
    """Whether most rows have the class that most other rows of their label have. Labels begin at 0."""
    n_classes = int(codes.max()) + 1
    counts = np.bincount(labels * n_classes + codes, minlength=(int(labels.max()) + 1) * n_classes)
    table = counts.reshape(-1, n_classes)
    first = table.argmax(axis=1)
    lead = np.partition(table, -2, axis=1)[:, -1] - np.partition(table, -2, axis=1)[:, -2]
    right = (codes == first[labels]) & (lead[labels] > 1)
    return float(weights[right].sum()) >= SEPARATION


def _by_cuts(values: NDArray[Any], codes: NDArray[Any], order: NDArray[Any], weights: Array) -> bool:
    """Whether cuts, one less than there are classes, put most rows between those of their class.

    ``values`` count up from 0; ``order``: the classes from the lowest values to the highest.
    """
    place = np.argsort(order)[codes]
    classes_below = np.zeros(int(values.max()) + 1, dtype=np.intp)
    for k in range(len(order) - 1):
        votes = np.bincount(values, np.where(place <= k, weights, -weights))
        cut = int(np.argmax(np.cumsum(votes)))
        classes_below[cut + 1 :] += 1
    return float(weights[classes_below[values] == place].sum()) >= SEPARATION


def _sample_of_classes(classes: NDArray[Any]) -> NDArray[np.intp]:
    """Some rows of every class that has enough of them."""
    values, codes, counts = np.unique(classes, return_inverse=True, return_counts=True)
    if len(values) > 1000:
        return np.empty(0, dtype=np.intp)
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.cumsum(counts)[:-1])
    taken = [part[_sample(len(part), _ROWS_OF_CLASS)] for part in parts if len(part) >= _LEAST_OF_CLASS]
    return np.sort(np.concatenate(taken)) if taken else np.empty(0, dtype=np.intp)


# ------------------------------------------------------------------------------------------------ numbers


def _correlated(cells: Array, y: Array) -> list[int]:
    """Which columns (the rows of ``cells``) are nearly a function of y."""
    if not len(cells) or y.min() == y.max():
        return []
    rank = np.abs(_correlation(_ranks(cells)[0], _ranks(y[None])[0][0]))
    linear = np.abs(_correlation(cells, y))
    leaks = (rank >= CORRELATION) | ((linear >= CORRELATION) & (rank >= _OUTLIERS))
    return np.flatnonzero(leaks).tolist()


def _correlation(cells: Array, y: Array) -> Array:
    size = np.abs(cells).max(axis=1, keepdims=True)
    cells = cells / np.where(size > 0, size, 1.0)  # squares neither overflow nor vanish
    cells = cells - cells.mean(axis=1, keepdims=True)
    y = y / np.abs(y).max() if y.any() else y
    y = y - y.mean()
    lengths = np.sqrt((cells**2).sum(axis=1) * (y @ y))
    return cells @ y / np.where(lengths > 0.0, lengths, np.inf)


def _explains(labels: NDArray[Any], y: Array) -> bool:
    """Whether the mean of the other rows of its label is next to the target of every row."""
    y = y / np.abs(y).max()
    counts, sums = np.bincount(labels), np.bincount(labels, y)
    others = counts[labels] - 1
    mean = np.where(others > 0, (sums[labels] - y) / np.maximum(others, 1), y.mean())
    return float(((y - mean) ** 2).sum()) <= (1.0 - CORRELATION**2) * float(((y - y.mean()) ** 2).sum())


# ------------------------------------------------------------------------------------------------ sampling


def _sample(n: int, most: int) -> NDArray[np.intp]:
    """Some of n rows, the same at every call."""
    return np.sort(np.random.default_rng(0).choice(n, min(n, most), replace=False))


def _labels(
    columns: Mapping[str, Array | Coded], rows: NDArray[np.intp]
) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Columns of labels, each as numbers from 0; missing is one of the labels."""
    for name, values in columns.items():
        if isinstance(values, Coded):
            yield name, np.unique(values.codes[rows], return_inverse=True)[1]


def _blocks(
    columns: Mapping[str, Array | Coded], rows: NDArray[np.intp]
) -> Iterator[tuple[list[str], Array]]:
    """Columns of numbers, some at once: names, and an array with a row for every column."""
    names = [name for name, values in columns.items() if not isinstance(values, Coded)]
    step = max(1, _CELLS_AT_ONCE // max(1, len(rows)))
    for k in range(0, len(names), step):
        block = names[k : k + step]
        yield block, np.array([columns[name][rows] for name in block], dtype=np.float64)


def _ranks(cells: Array) -> tuple[Array, NDArray[np.intp]]:
    """The ranks of every row of numbers, those of equal numbers averaged, around 0; how many are distinct."""
    order = np.argsort(cells, axis=1)
    ascending = np.take_along_axis(cells, order, axis=1)
    new = np.ones(cells.shape, dtype=bool)
    new[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
    last = np.ones(cells.shape, dtype=bool)
    last[:, :-1] = new[:, 1:]
    places = np.arange(cells.shape[1])
    first_equal = np.maximum.accumulate(np.where(new, places, 0), axis=1)
    last_equal = np.minimum.accumulate(np.where(last, places, len(places))[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(cells.shape)
    middle = (first_equal + last_equal) / 2.0 - (len(places) - 1) / 2.0
    np.put_along_axis(ranks, order, middle, axis=1)
    return ranks, np.count_nonzero(new, axis=1)

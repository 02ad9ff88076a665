"""The evidence: rows, their digest, and columns with margins and edges. Part of the checker.

Imports NumPy and the standard library only.

The rows are named by ``data_digest``, which does not depend on their order:

    Rows of weight zero are dropped. All arithmetic is on uint64 and wraps. Per row, h = 0x9E3779B97F4A7C15;
    for every feature in order, with b the bits of the float64 value (any NaN: 0x7ff8000000000000; -0.0: 0):
        h ^= b;  h *= 0xBF58476D1CE4E5B9;  h ^= h >> 29
    A category counts as the number float(d >> 11), a missing one as NaN, where d is the 8-byte BLAKE2b
    digest, read as a big-endian integer, of "s:" and the text, or of "n:" and repr(float(number)), in UTF-8.
    A real target follows the features as one more of them. Then, with p = 1 for a positive label and 0 for a
    negative one (no labels: 1):
        h ^= p;  h *= 0x94D049BB133111EB;  h ^= h >> 32
    If all weights are integers with a sum below 2^53, the row counts w times. Otherwise it counts once and
        h ^= bits(w);  h *= 0x9E3779B97F4A7C15;  h ^= h >> 30
    lane1 = sum of count * h;  lane2 = sum of count * mix(h),  mix(h) = (h ^ (h >> 31)) * 0xD6E8FEB86659FD93
    The digest is lane1 and lane2, each as 16 lower-case hexadecimal digits.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

_ROW_BLOCK = 65_536


_MISSING = ("NoneType", "NAType", "NaTType")  # None and what pandas has besides NaN


@dataclass(frozen=True)
class Table:
    """The rows as given: columns are read one at a time, as float64 or as labels; weights are raw."""

    rows: int
    features: int
    raw: Callable[[int], Any]
    categorical: frozenset[int]
    positive: npt.NDArray[np.bool_]
    target: Floats | None
    weight: Floats

    def column(self, j: int) -> Floats:
        """The numbers of a feature, NaN for missing ones."""
        column = self.raw(j)
        try:
            return np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError):  # missing values that only a frame knows
            cells = [_plain(cell) for cell in _cells(column)]
        try:
            return np.array([math.nan if cell is None else float(cell) for cell in cells], dtype=np.float64)
        except ValueError:
            raise ValueError(f"feature {j} must hold numbers: it is not categorical") from None

    def labels(self, j: int) -> tuple[npt.NDArray[np.intp], list[Any]]:
        """For every row the position of its label, -1 for a missing one; and the labels."""
        place: dict[Any, int] = {}
        codes = [
            -1 if label is None else place.setdefault(label, len(place))
            for label in map(_plain, _cells(self.raw(j)))
        ]
        return np.array(codes, dtype=np.intp), list(place)

    def words(self, j: int) -> Floats:
        """What stands for a feature in the digest."""
        if j not in self.categorical:
            return self.column(j)
        codes, labels = self.labels(j)
        return np.array([*map(_label_number, labels), math.nan])[codes]


def _cells(column: Any) -> list[Any]:
    """The entries of a column as Python objects."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _plain(cell: Any) -> Any:
    """An entry as text or a number that compares as in Python; None for a missing one."""
    if isinstance(cell, str):
        return str(cell)
    if type(cell).__name__ in _MISSING:
        return None
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, bytes):
        return cell.decode()
    if isinstance(cell, bool | int):
        return cell
    if isinstance(cell, Real | Decimal):
        number = float(cell)
        return None if math.isnan(number) else number
    return str(cell)


def _label_number(label: Any) -> float:
    text = f"s:{label}" if isinstance(label, str) else f"n:{float(label) + 0.0!r}"
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(digest, "big") >> 11)


def read(X: Any, y: Any, sample_weight: Any, categorical: Collection[int] = (), real: bool = False) -> Table:
    """``categorical``: features that hold labels. ``real``: y is a target, not a label."""
    if hasattr(X, "column_names") and hasattr(X, "__getitem__"):
        names = list(X.column_names)
        rows, features, raw = len(X), len(names), lambda j: X[names[j]]
    elif hasattr(X, "columns") and hasattr(X, "__getitem__"):
        names = list(X.columns)
        rows, features, raw = len(X), len(names), lambda j: X[names[j]]
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(f"X must have two dimensions, found {array.ndim}")
        (rows, features), raw = array.shape, lambda j: array[:, j]
    label, target = np.ones(rows), None
    if real:
        target = np.asarray(y, dtype=np.float64)
        if target.shape != (rows,) or not np.all(np.isfinite(target)):
            raise ValueError("y must hold one finite number per row")
    elif y is not None:
        label = np.asarray(y, dtype=np.float64)
    values = set(np.unique(label).tolist())
    if label.shape != (rows,) or not (values <= {0.0, 1.0} or values <= {-1.0, 1.0}):
        raise ValueError("y must hold one label per row: booleans, 0 and 1, or -1 and 1")
    weight = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (rows,) or not np.all(np.isfinite(weight)) or np.any(weight < 0) or not np.any(weight):
        raise ValueError("sample_weight must hold one finite number >= 0 per row, not all zero")
    return Table(rows, features, raw, frozenset(categorical), label > 0, target, weight)


def _bits(values: Floats) -> Words:
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # adding 0.0 turns -0.0 into 0.0
    return np.where(np.isnan(values), np.uint64(0x7FF8000000000000), bits)


def _stir(state: Words, word: Words, factor: int, shift: int) -> Words:
    mixed = (state ^ word) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(shift))


def data_digest(
    X: Any,
    y_positive: Any = None,
    sample_weight: Any = None,
    *,
    categorical: Collection[int] = (),
    target: Any = None,
) -> str:
    """32 hexadecimal digits that stand for the rows in any order; the module's first lines define them.

    ``categorical``: positions of the features that hold labels. ``target``: for a regression, instead of y.
    """
    real = target is not None
    return table_digest(read(X, target if real else y_positive, sample_weight, categorical, real))


def table_digest(table: Table) -> str:
    keep = np.flatnonzero(table.weight > 0)
    weight, positive = table.weight[keep], table.positive[keep].astype(np.uint64)
    blocks = [slice(a, a + _ROW_BLOCK) for a in range(0, len(keep), _ROW_BLOCK)]
    state = np.full(len(keep), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for j in range(table.features + (table.target is not None)):
        values = table.words(j) if table.target is None or j < table.features else table.target
        for block in blocks:
            state[block] = _stir(state[block], _bits(values[keep[block]]), 0xBF58476D1CE4E5B9, 29)
    counted = (
        bool(np.all(weight == np.floor(weight)))
        and bool(weight.max() < 2.0**53)
        and math.fsum(weight / 2.0) < 2.0**52
    )
    lanes = [0, 0]
    for block in blocks:
        h = _stir(state[block], positive[block], 0x94D049BB133111EB, 32)
        if not counted:
            h = _stir(h, _bits(weight[block]), 0x9E3779B97F4A7C15, 30)
        count = weight[block].astype(np.uint64) if counted else np.ones(len(h), dtype=np.uint64)
        lanes[0] += int(np.sum(h * count))
        lanes[1] += int(np.sum((h ^ (h >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93) * count))
    return "".join(f"{lane % 2**64:016x}" for lane in lanes)


@dataclass(frozen=True)
class Matrix:
    """Columns given as numbers a_ij, the label multiplied in."""

    a: Floats

    def margins(self, intercept: float, weights: list[Any]) -> Floats:
        index = [j for j, _ in weights]
        return self.a[:, index] @ np.array([w for _, w in weights], dtype=np.float64)

    def edges(self, u: Floats, unseen: bool = False) -> tuple[Floats, Floats]:
        return u @ self.a, np.empty(0)


@dataclass(frozen=True)
class Bins:
    """A feature in bins, the last one for missing values.

    A numeric feature has in bin k the values in (cut k-1, cut k], a categorical one those of category k. For
    the sets of a categorical feature bin k has the category at place k of the order: the first k of them are
    on the left as the values below a cut are, and only sets of two or more, but not all, count.
    """

    codes: npt.NDArray[np.intp]
    n: int
    categorical: bool
    sets: bool = False

    def left(self, k: int, missing_left: int) -> npt.NDArray[np.bool_]:
        """Which bins are on the left of a stump."""
        bins = np.arange(self.n)
        left = bins == k if self.categorical else bins <= k
        left[-1] = missing_left
        return left

    def left_sums(self, histogram: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sums over the left side of every stump: [k, missing values on the left]."""
        values = histogram[:-1] if self.categorical else np.cumsum(histogram[:-1])
        return np.stack([values, values + histogram[-1]], axis=1)

    def open(self) -> npt.NDArray[np.bool_]:
        """Which of these stumps there are: [k, missing values on the left]."""
        size = np.arange(1, self.n)
        there = (size >= 2) & (size < self.n - 1) if self.sets else np.ones(self.n - 1, dtype=bool)
        return np.stack([there, there], axis=1)


Question = tuple[int, bool]  # a feature, and whether its sets are meant


@dataclass(frozen=True)
class Stumps:
    """Stumps over binned features. ``y``: what the stumps are multiplied with, 1 for a regression."""

    y: Floats
    bins: dict[Question, Bins]
    pool: list[
        tuple[Question, int, int, int]
    ]  # feature, bin (the last) on the left, polarity, missing on the left
    unseen: dict[Question, npt.NDArray[np.bool_]]  # per feature: [polarity +/-, k, missing side]
    features: int

    @cached_property
    def pool_matrix(self) -> Floats:
        """The columns of the pool, the label multiplied in: for many leaves over few columns."""
        columns = [
            self.y * polarity * np.where(self.bins[asked].left(k, side), 1.0, -1.0)[self.bins[asked].codes]
            for asked, k, polarity, side in self.pool
        ]
        return np.stack(columns, axis=1) if columns else np.empty((len(self.y), 0))

    def margins(self, intercept: float, weights: list[Any]) -> Floats:
        if "pool_matrix" in vars(self):
            index = [j for j, _ in weights]
            score = self.pool_matrix[:, index] @ np.array([w for _, w in weights], dtype=np.float64)
            return score + intercept * self.y
        tables: dict[Question, Floats] = {}
        for j, w in weights:
            asked, k, polarity, missing_left = self.pool[j]
            table = tables.setdefault(asked, np.zeros(self.bins[asked].n))
            table += w * polarity * np.where(self.bins[asked].left(k, missing_left), 1.0, -1.0)
        score = np.full(len(self.y), float(intercept))
        for asked, table in tables.items():
            score += table[self.bins[asked].codes]
        return self.y * score

    def edges(self, u: Floats, unseen: bool = True) -> tuple[Floats, Floats]:
        """The edges of the pool, and for every feature the largest edge of its stumps that are not in it.

        Without ``unseen`` the latter are left out.
        """
        if not unseen and "pool_matrix" in vars(self):
            return u @ self.pool_matrix, np.empty(0)
        uy, most, above = u * self.y, np.full(self.features, -math.inf), {}
        for asked, own in self.bins.items():
            histogram = np.bincount(own.codes, weights=uy, minlength=own.n)
            above[asked] = edge = 2.0 * own.left_sums(histogram) - histogram.sum()
            if asked in self.unseen:
                both = np.stack([edge, -edge])
                most[asked[0]] = np.max(both, where=self.unseen[asked], initial=most[asked[0]])
        return np.array([p * above[f][k, side] for f, k, p, side in self.pool], dtype=np.float64), most


def bin_stumps(certificate: dict[str, Any], table: Table, keep: npt.NDArray[np.intp]) -> Stumps:
    columns, dictionary = certificate["columns"], certificate["dictionary"]
    categories = certificate["categories"] or [None] * table.features
    cuts: dict[int, set[float]] = {}
    if dictionary is not None:
        cuts = {feature: set(values) for feature, values in enumerate(dictionary["cuts"])}
    for feature, cut in zip(columns["feature"], columns["cut"], strict=True):
        cuts.setdefault(feature, set()).update([] if cut is None else [cut])
    edges = {feature: np.array(sorted(values), dtype=np.float64) for feature, values in cuts.items()}
    bins: dict[Question, Bins] = {}
    for feature, edge in edges.items():
        if categories[feature] is not None:
            bins[feature, False] = own = _bin_labels(table, feature, categories[feature], keep)
            order = categories[feature].get("order")
            if order is not None:
                place = np.append(np.argsort(order), len(order))
                bins[feature, True] = Bins(place[own.codes], own.n, False, True)
            continue
        values = table.column(feature)[keep]
        codes = np.where(np.isnan(values), len(edge) + 1, np.searchsorted(edge, values, side="left"))
        bins[feature, False] = Bins(codes, len(edge) + 2, False)
    fields = (columns[key] for key in ("feature", "cut", "category", "polarity", "missing_left"))
    sets = columns.get("first", [None] * len(columns["feature"]))
    pool = []
    for f, cut, category, p, side, first in zip(*fields, sets, strict=True):
        if first is not None:
            k = first - 1
        elif category is None:
            k = len(edges[f]) if cut is None else int(np.searchsorted(edges[f], cut))
        else:
            kept = categories[f]["kept"]
            k = len(kept) if isinstance(category, dict) else kept.index(category)
        pool.append(((f, first is not None), k, p, int(side)))
    y = np.ones(len(keep)) if table.target is not None else np.where(table.positive[keep], 1.0, -1.0)
    stumps = Stumps(y, bins, pool, {}, table.features)
    if dictionary is not None:
        problem = certificate["problem"]
        by_feature = problem["max_features"] is not None or problem["feature_costs"] is not None
        stumps.unseen.update(_unseen(stumps, by_feature))
        for feature, direction in enumerate(dictionary["monotonic"] or []):
            if direction:  # of those with a cut only stumps that rise (polarity -1) or only those that fall
                stumps.unseen[feature, False][0 if direction > 0 else 1, :-1] = False
    return stumps


def _bin_labels(table: Table, feature: int, own: dict[str, Any], keep: npt.NDArray[np.intp]) -> Bins:
    """Kept labels have the bin of their position, rare ones share the next; unknown ones count as missing."""
    codes, labels = table.labels(feature)
    place = {label: k for k, label in enumerate(own["kept"])}
    n = len(place) + own["rare"]
    other = len(place) if own["rare"] else n
    into = np.array([*(place.get(label, other) for label in labels), n], dtype=np.intp)
    return Bins(into[codes[keep]], n + 1, True)


def _unseen(stumps: Stumps, by_feature: bool) -> dict[Question, npt.NDArray[np.bool_]]:
    """Which stumps of the dictionary are neither constant nor equal, row by row, to a column of the pool.

    A set of rows is known by the wrapping sum of a random word per row, from histograms as for the edges.
    The words are drawn afresh, so no file can be prepared against them; two sets agree with chance 2^-64.
    ``by_feature``: a column of another feature is another column.
    """
    m = len(stumps.y)
    word = np.random.default_rng().integers(2**64, size=m, dtype=np.uint64)
    total, name, there = word.sum(), {}, {}
    for asked, own in stumps.bins.items():
        sums = np.zeros(own.n, dtype=np.uint64)
        np.add.at(sums, own.codes, word)
        left, count = own.left_sums(sums), own.left_sums(np.bincount(own.codes, minlength=own.n))
        name[asked] = np.stack([left, np.full_like(left, total) - left])  # the rows where the stump says +1
        there[asked] = (count > 0) & (count < m) & own.open()
    home = np.array([f for (f, _), _, _, _ in stumps.pool])
    seen = np.array([name[f][(1 - p) // 2, k, side] for f, k, p, side in stumps.pool], dtype=np.uint64)
    return {
        asked: there[asked] & ~np.isin(own, seen[home == asked[0]] if by_feature else seen)
        for asked, own in name.items()
    }

"""Stumps as arrays: what they say in every bin, their sums from histograms, and their columns as bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cardboost import _kernels
from cardboost.data.binning import MISSING

Columns = NDArray[np.int32]
CONSTANT = -1  # the "feature" of the intercept's two columns


@dataclass(frozen=True)
class Stumps:
    """Stumps as arrays: +polarity on the left, -polarity on the right.

    Left is where the bin is at most ``cut``, or equal to it if ``equals``, or in a set if ``one_of`` (``cut``
    is then the place of its last bin in the dictionary's order); missing if ``missing_left``. ``left`` has a
    mark for the bins on the left, that of missing values aside.
    """

    feature: NDArray[np.int32]
    cut: NDArray[np.int32]
    polarity: NDArray[np.int8]
    missing_left: NDArray[np.bool_]
    equals: NDArray[np.bool_]
    one_of: NDArray[np.bool_]
    left: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.feature)

    def __getitem__(self, which: slice | NDArray[Any]) -> Stumps:
        return Stumps(*(getattr(self, name)[which] for name in _ARRAYS))

    def __add__(self, other: Stumps) -> Stumps:
        return Stumps(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in _ARRAYS))

    @classmethod
    def make(
        cls,
        feature: ArrayLike,
        cut: ArrayLike,
        polarity: ArrayLike,
        missing_left: ArrayLike,
        equals: ArrayLike | None = None,
        sets: Mapping[int, ArrayLike] | None = None,
    ) -> Stumps:
        """``sets``: the bins of those stumps (by position) that ask for one of several."""
        feature, cut = np.asarray(feature, dtype=np.int32), np.asarray(cut, dtype=np.int32)
        equal = np.zeros(len(feature), dtype=bool) if equals is None else np.asarray(equals, dtype=bool)
        one_of = np.zeros(len(feature), dtype=bool)
        bins = np.arange(256)[None, :]
        left = np.where(equal[:, None], bins == cut[:, None], bins <= cut[:, None])
        for j, bins_of_set in (sets or {}).items():
            one_of[j] = True
            left[j] = False
            left[j, np.asarray(bins_of_set, dtype=np.intp)] = True
        sides = np.asarray(polarity, dtype=np.int8), np.asarray(missing_left, dtype=bool)
        return cls(feature, cut, *sides, equal, one_of, left)

    def signs(self) -> NDArray[np.int8]:
        """Value of every stump in every bin: shape (stumps, 256)."""
        left = self.left.copy()
        left[:, MISSING] = self.missing_left
        left |= (self.feature == CONSTANT)[:, None]
        return np.where(left, self.polarity[:, None], -self.polarity[:, None]).astype(np.int8)

    def left_sums(self, hist: NDArray[Any], slot: NDArray[np.intp]) -> NDArray[Any]:
        """Sums over the left sides from histograms (features, 256, ...); ``slot``: each stump's histogram."""
        cut = np.minimum(self.cut, MISSING - 1)
        left = np.cumsum(hist[:, :MISSING], axis=1)[slot, cut]
        if self.equals.any():
            left[self.equals] = hist[slot[self.equals], cut[self.equals]]
        if self.one_of.any():
            held = self.left[self.one_of, :MISSING].astype(hist.dtype)
            left[self.one_of] = np.einsum("jb,jb...->j...", held, hist[slot[self.one_of], :MISSING])
        left[self.missing_left] += hist[slot[self.missing_left], MISSING]
        return left


_ARRAYS = tuple(field.name for field in fields(Stumps))
NO_STUMPS = Stumps.make([], [], [], [])
#: the intercept's two columns: 1 and -1 in all rows
CONSTANTS = Stumps.make([CONSTANT, CONSTANT], [MISSING, MISSING], [1, -1], [True, True])


class StumpBits:
    """Stumps, known by number, as columns of bits on some rows; those of the last call are not made again."""

    def __init__(self, bins: NDArray[np.uint8], threads: int) -> None:
        self._bins, self._threads = bins, threads
        self._which = np.empty(0, dtype=np.int32)
        self._words = np.empty((0, 0), dtype=np.uint64)

    def words(self, which: Columns, stumps: Callable[[Columns], Stumps]) -> NDArray[np.uint64]:
        """For every 64 rows a word per stump, a set bit for -1; ``stumps`` makes those of given numbers."""
        place = places(self._which, which)
        kept = place >= 0
        new = stumps(which[~kept])
        feature = np.maximum(new.feature, 0)  # the rule that asks nothing says the same in all bins
        words = _kernels.stump_bits(self._bins, feature, new.signs(), self._threads)
        if kept.any():
            made, words = words, np.empty((len(words), len(which)), dtype=np.uint64)
            words[:, ~kept] = made
            words[:, kept] = self._words[:, place[kept]]
        self._which, self._words = which, words
        return words


def places(numbers: Columns, which: Columns) -> NDArray[np.intp]:
    """Where each of ``which`` stands among the numbers, -1 if it does not."""
    if not len(numbers):
        return np.full(len(which), -1, dtype=np.intp)
    order = np.argsort(numbers)
    place = order[np.minimum(np.searchsorted(numbers, which, sorter=order), len(order) - 1)]
    return np.where(numbers[place] == which, place, -1)

"""The rows of a training set in parts, and the only ways in which training reads them.

Training does not loop over rows. It maps a kernel over the parts, adds up whole numbers, takes maxima, and
joins results that have an entry per row. Sums of integers and maxima are the same for every division of the
rows, so that results do not depend on it, to the bit. All parts are in memory for now; parts in files or on
other machines need a class with the same methods, and nothing else has to change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")


@dataclass(frozen=True)
class Shards:
    """A division of the rows into parts.

    A kernel is a function of one part: it takes its rows out of the arrays that it needs (see :func:`take`)
    and returns a result for them.

    Attributes
    ----------
    parts : tuple of slice
        Consecutive rows, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from cardboost.data.shards import Shards
    >>> values = np.array([3, 1, 4, 1, 5])
    >>> one, two = Shards.in_memory(5), Shards.in_memory(5, 2)
    >>> int(one.sum(lambda part: values[part].sum())), int(two.sum(lambda part: values[part].sum()))
    (14, 14)
    >>> int(two.maximum(lambda part: values[part].max()))
    5
    """

    parts: tuple[slice, ...]

    @classmethod
    def in_memory(cls, n_rows: int, *cuts: int) -> Shards:
        """One part of all rows, or parts that end before the rows ``cuts`` and at the end."""
        return cls(tuple(slice(start, stop) for start, stop in pairwise((0, *cuts, n_rows))))

    def map(self, kernel: Callable[[slice], Result]) -> list[Result]:
        """The results of a kernel for all parts, in order."""
        return [kernel(part) for part in self.parts]

    def sum(self, kernel: Callable[[slice], Any]) -> Any:
        """The sum of results that are whole numbers: int64, or arrays of them."""
        return kernel(self.parts[0]) if len(self.parts) == 1 else reduce(np.add, self.map(kernel))

    def maximum(self, kernel: Callable[[slice], Any]) -> Any:
        """The maximum of results that are numbers, or arrays, entry by entry."""
        return kernel(self.parts[0]) if len(self.parts) == 1 else reduce(np.maximum, self.map(kernel))

    def rows(self, kernel: Callable[[slice], NDArray[Any]]) -> NDArray[Any]:
        """Results with an entry for every row (on the first axis), joined in the order of the rows."""
        return kernel(self.parts[0]) if len(self.parts) == 1 else np.concatenate(self.map(kernel))


def take(array: NDArray[Any] | None, part: slice) -> Any:
    """The rows of a part, as kernels need them, of an array whose last axis are the rows; None stays None."""
    return None if array is None else np.ascontiguousarray(array[..., part])

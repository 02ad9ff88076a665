"""Local search for many limits on terms at once: what is best with k columns leads to k - 1 and to k + 1.

One polisher serves all sizes, so that no support is refitted twice. On the way up every choice is the one
before it with the best columns added, on the way down the one after it with the least useful columns taken
out, each improved by swaps; then up again from what the way down has found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.polish import Incumbent, Polisher
from cardboost.selection.selection_problem import SelectionProblem

Array = NDArray[np.float64]


def choose_sizes(
    problem: SelectionProblem,
    sizes: Sequence[int],
    start: Array | None = None,
    late: Callable[[], bool] = lambda: False,
) -> list[Incumbent]:
    """The best support found for every size (ascending); no objective is above that of a smaller size.

    ``problem``: its own limit on terms is not looked at. ``start``: weights whose largest are tried first.
    """
    merged = merge_rows(problem)
    smaller = sketch_rows(merged)
    walk = _Walk(Polisher(smaller, late), sizes)
    walk.up(walk.polisher.refit([]))
    if start is not None:
        for k in sizes:
            walk.offer(k, walk.polisher.largest(start, k))
    if not late():
        walk.down(walk.polisher.all_columns())
        walk.up(None)
    ends = [walk.best[k] for k in sizes]
    if smaller is not merged:
        final = Polisher(merged)
        ends = [final.refit(at.support, at.weights) for at in ends]
    return falling(ends)


def falling(found: Iterable[Incumbent]) -> list[Incumbent]:
    """Each choice, or a smaller one before it that is better."""
    out: list[Incumbent] = []
    for at in found:
        out.append(at if not out or at.objective < out[-1].objective else out[-1])
    return out


class _Walk:
    """The best choice for every size so far, and ways through all sizes."""

    def __init__(self, polisher: Polisher, sizes: Sequence[int]) -> None:
        self.polisher, self.sizes = polisher, sizes
        self.best: dict[int, Incumbent] = {}
        self._tried: set[tuple[int, tuple[int, ...]]] = set()

    def offer(self, size: int, start: Incumbent) -> None:
        """Improve a start within a size, unless that was done before, and keep it if it is better."""
        key = (size, tuple(start.support))
        if key in self._tried or len(start.support) > size or not self.polisher.problem.allows(start.support):
            return
        self.polisher.limit(size)
        end = self.polisher.improve(start)
        self._tried |= {key, (size, tuple(end.support))}
        known = self.best.get(size)
        if known is None or end.objective < known.objective:
            self.best[size] = end

    def up(self, at: Incumbent | None) -> None:
        """From ``at``, or from the best of the first size."""
        for k in self.sizes:
            self.polisher.limit(k)
            if at is not None:
                if k not in self.best:
                    self.best[k] = at  # within the size, whatever time is left
                self.offer(k, self.polisher.grow(k, at))
            at = self.best[k]

    def down(self, at: Incumbent) -> None:
        for k in reversed(self.sizes):
            self.polisher.limit(k)
            self.offer(k, self.polisher.thin(at, k))
            at = self.best[k]

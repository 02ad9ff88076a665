"""How much curvature of the exponential loss a bound may set aside. Part of the checker; imports NumPy only.

At any weights w with row weights u the loss is its tangent plus sum u_i h(a_i (v - w)), h(x) = exp(-x) - 1 +
x, and tangent and prices together are at least D(u). So where v costs no more than the objective, that sum is
at most the room between them. If the margins of all such v stay below caps, h(x) >= q(cap_i - F_i) x^2 / 2
with the falling function q(x) = 2 h(x) / x^2: v lies in an ellipsoid around w, whose width along a row is
a cap again.

A bound may then use the tangent at other weights plus sum d_j (v_j - w_j)^2 / 2, if the curvature that is
left there, sum u_i q(cap_i - F_i) a_i a_i', exceeds the diagonal matrix of the d_j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ROUNDS = 4
ROOM = 5e-10  # for rounding, as a share
WIDER = 5e-7  # the same, for widths that come from an inverse
PIVOT = 1e-9  # of a column's curvature, what no others make up must be more
SPARE = 5e-9  # of the mean curvature of a column, what may not be set aside


@dataclass(frozen=True, eq=False)
class Curvature:
    """Rows a_i (equal ones are one row) with shares, and caps on their margins."""

    a: Floats
    share: Floats
    repeated: npt.NDArray[np.bool_]  # columns that another one repeats, or its opposite: no d_j for them
    extra: npt.NDArray[np.bool_]  # of equal and opposite columns all but the first
    objective: float
    caps: Floats

    @classmethod
    def make(
        cls,
        a: Floats,
        share: Floats,
        low: Floats,
        high: Floats,
        objective: float,
        centre: Floats,
        bound: float,
    ) -> Curvature:
        """Weights are within ``low`` and ``high``. ``bound``: D(u) at ``centre`` with nothing forced."""
        a, back = np.unique(a, axis=0, return_inverse=True)
        share = np.bincount(back.reshape(-1), share, len(a)).astype(np.float64)
        signed = a * np.sign(a[np.argmax(a != 0, axis=0), np.arange(a.shape[1])])
        _, first, group, count = np.unique(
            signed, axis=1, return_index=True, return_inverse=True, return_counts=True
        )
        group = group.reshape(-1)
        repeated = (count[group] > 1) | ~a.any(axis=0)
        extra = (first[group] != np.arange(len(group))) | ~a.any(axis=0)
        caps = np.maximum(a, 0.0) @ high + np.minimum(a, 0.0) @ low
        found = cls(a, share, repeated, extra, objective, caps)
        every = np.ones(a.shape[1], dtype=bool)
        for _ in range(ROUNDS):
            found = found.narrowed(centre, bound, every)
        return found

    def _left(self, weights: Floats, inside: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Margins, and the curvature that is left, over the columns ``inside``."""
        margins = self.a @ weights
        left = self.share * np.exp(-margins) * _share_left(self.caps - margins)
        return margins, _gram(self.a[:, inside & ~self.extra], left)

    def narrowed(self, centre: Floats, bound: float, inside: npt.NDArray[np.bool_]) -> Curvature:
        """With the caps that follow from the ellipsoid around ``centre``, if there is one."""
        room = self.objective - bound + ROOM * (1.0 + abs(self.objective))
        margins, left = self._left(centre, inside)
        factor = _factor(left)
        if factor is None or (np.diag(factor) ** 2 <= PIVOT * np.diag(left)).any() or not room > 0:
            return self
        # rows are signs or numbers; only their span over the columns inside counts
        spans = np.sum(np.linalg.solve(factor, self.a[:, inside & ~self.extra].T) ** 2, axis=0)
        caps = np.minimum(self.caps, margins + np.sqrt(2.0 * room * spans) * (1.0 + WIDER))
        return Curvature(self.a, self.share, self.repeated, self.extra, self.objective, caps)

    def allows(self, weights: Floats, aside: Floats, inside: npt.NDArray[np.bool_]) -> bool:
        """Whether the curvature left at ``weights`` exceeds ``aside``."""
        if (aside[self.repeated] > 0).any() or (aside[~inside] > 0).any() or not (aside >= 0).all():
            return False
        _, left = self._left(weights, inside)
        d = aside[inside & ~self.extra] + SPARE * np.trace(left) / max(1, len(left))
        return _factor(left - np.diag(d)) is not None


def _gram(a: Floats, x: Floats) -> Floats:
    """Sum of x_i a_i a_i', in parts so small that no library starts threads for them."""
    n = a.shape[1]
    step, total = max(16, 200_000 // max(1, n * n)), np.zeros((n, n))
    for first in range(0, len(a), step):
        own = a[first : first + step]
        total += (own * x[first : first + step, None]).T @ own
    return total


def _factor(matrix: Floats) -> Floats | None:
    if not np.isfinite(matrix).all():
        return None
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


def _share_left(x: Floats) -> Floats:
    """q(x), lowered by what rounding could add."""
    small = np.abs(x) < 1e-3
    y = np.where(small, 1.0, x)
    with np.errstate(over="ignore"):
        q = np.where(
            small, 1.0 - x / 3.0 + x * x / 12.0 - np.abs(x) ** 3 / 50.0, 2.0 * (np.expm1(-y) + y) / (y * y)
        )
    return np.asarray(q * (1.0 - 1e-10))

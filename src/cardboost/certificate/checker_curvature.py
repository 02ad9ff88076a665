"""How much curvature of the loss a bound may set aside. Part of the checker; imports NumPy only.

At any weights w with row weights u the loss is its tangent plus sum s_i b_i(a_i (v - w)), where b_i(x) is
loss(F_i + x) - loss(F_i) - loss'(F_i) x, and tangent and prices together are at least D(u). So where v
costs no more than the objective, that sum is at most the room between them. If the margins of all such v
stay between floors and caps, b_i(x) >= k_i x^2 / 2 with a curvature k_i that is left there: v lies in an
ellipsoid around w, whose width along a row narrows its floor and cap.

A bound may then use the tangent at other weights plus sum d_j (v_j - w_j)^2 / 2, if the curvature that is
left there, sum s_i k_i a_i a_i', exceeds the diagonal matrix of the d_j.

2 b_i(x) / x^2 is a mean of the loss's curvature between F_i and F_i + x. For the exponential loss it falls
as x grows, so that the cap counts. For the logistic loss curvature rises up to the margin 0 and falls from
there: on either side of F_i the mean is least at F_i or at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    """Rows a_i (equal ones are one row) with shares, and floors and caps of their margins."""

    loss: str
    a: Floats
    share: Floats
    repeated: npt.NDArray[np.bool_]  # columns that another one repeats, or its opposite: no d_j for them
    extra: npt.NDArray[np.bool_]  # of equal and opposite columns all but the first
    objective: float
    floors: Floats
    caps: Floats

    @classmethod
    def make(
        cls,
        loss: str,
        rows: tuple[Floats, Floats],
        box: tuple[Floats, Floats],
        objective: float,
        centre: Floats,
        bound: float,
    ) -> Curvature:
        """``rows``: a_i and shares; ``box``: of weights; ``bound``: D(u) at ``centre``, nothing forced."""
        a, back = np.unique(rows[0], axis=0, return_inverse=True)
        share = np.bincount(back.reshape(-1), rows[1], len(a)).astype(np.float64)
        signed = a * np.sign(a[np.argmax(a != 0, axis=0), np.arange(a.shape[1])])
        _, first, group, count = np.unique(
            signed, axis=1, return_index=True, return_inverse=True, return_counts=True
        )
        group = group.reshape(-1)
        repeated = (count[group] > 1) | ~a.any(axis=0)
        extra = (first[group] != np.arange(len(group))) | ~a.any(axis=0)
        up, down, (low, high) = np.maximum(a, 0.0), np.minimum(a, 0.0), box
        floors, caps = up @ low + down @ high, up @ high + down @ low
        found = cls(loss, a, share, repeated, extra, objective, floors, caps)
        every = np.ones(a.shape[1], dtype=bool)
        for _ in range(ROUNDS):
            found = found.narrowed(centre, bound, every)
        return found

    def _left(self, weights: Floats, inside: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Margins, and the curvature that is left, over the columns ``inside``."""
        margins = self.a @ weights
        left = self.share * _row_curvature(self.loss, margins, self.floors, self.caps)
        return margins, _gram(self.a[:, inside & ~self.extra], left)

    def narrowed(self, centre: Floats, bound: float, inside: npt.NDArray[np.bool_]) -> Curvature:
        """With the floors and caps that follow from the ellipsoid around ``centre``, if there is one."""
        room = self.objective - bound + ROOM * (1.0 + abs(self.objective))
        margins, left = self._left(centre, inside)
        factor = _factor(left)
        if factor is None or (np.diag(factor) ** 2 <= PIVOT * np.diag(left)).any() or not room > 0:
            return self
        spans = np.sum(np.linalg.solve(factor, self.a[:, inside & ~self.extra].T) ** 2, axis=0)
        width = np.sqrt(2.0 * room * spans) * (1.0 + WIDER)
        floors, caps = np.maximum(self.floors, margins - width), np.minimum(self.caps, margins + width)
        return replace(self, floors=floors, caps=caps)

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


def _row_curvature(loss: str, F: Floats, floors: Floats, caps: Floats) -> Floats:
    """k_i, lowered by what rounding could add."""
    with np.errstate(over="ignore", invalid="ignore"):
        p = np.exp(-F) if loss == "exponential" else 1.0 / (1.0 + np.exp(F))
        own = p if loss == "exponential" else p * (1.0 - p)
        left = own * np.exp(0.0 if loss == "logistic" else np.maximum(0.0, F - caps))
        for end in (caps,) if loss == "exponential" else (floors, caps):
            left = np.minimum(left, _mean_curvature(loss, F, p, own, end))
    return np.asarray(np.maximum(left, 0.0) * (1.0 - 1e-10))


def _mean_curvature(loss: str, F: Floats, p: Floats, own: Floats, end: Floats) -> Floats:
    """2 b(x) / x^2 for x = end - F; where that is a difference of equals, the curvature at F less a share."""
    x = end - F
    small = np.abs(x) < 1e-3
    y = np.where(small, 1.0, x)
    if loss == "exponential":
        rise = p * (np.expm1(-y) + y)
    else:
        rise = np.logaddexp(0.0, -F - y) - np.logaddexp(0.0, -F) + p * y
    return np.where(small, own * (1.0 - np.abs(x) / 3.0), 2.0 * rise / (y * y))

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

from cardboost.certificate.checker.columns import row_blocks
from cardboost.certificate.checker.data import Floats

ROUNDS = 4  # of narrowing floors and caps for a scope
ROOM = 5e-10  # for rounding, as a share
WIDER = 5e-7  # the same, for widths that come from an inverse
PIVOT = 1e-9  # of a column's curvature, what no others make up must be more
SPARE = 5e-9  # of the mean curvature of a column, what may not be set aside


@dataclass(frozen=True, eq=False)
class Curvature:
    """Rows a_i with shares, and floors and caps of their margins.

    ``twin``: for every column the first one that equals it or its opposite. Twins share one direction: of
    those that a model may use, one stands for it, and nothing may be set aside for any of them.
    """

    loss: str
    a: Floats
    share: Floats
    twin: npt.NDArray[np.intp]
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
        a, share = rows
        up, down, (low, high) = np.maximum(a, 0.0), np.minimum(a, 0.0), box
        floors, caps = up @ low + down @ high, up @ high + down @ low
        curvature = cls(loss, a, share, _twins(a), objective, floors, caps)
        every = np.ones(a.shape[1], dtype=bool)
        for _ in range(ROUNDS):
            curvature = curvature.narrowed(centre, bound, every)
        return curvature

    def _directions(self, inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """Of the columns ``inside`` that are equal or opposite the first; columns of zeros have none."""
        columns = np.flatnonzero(inside & (self.twin >= 0))
        return columns[np.unique(self.twin[columns], return_index=True)[1]]

    def _left(self, weights: Floats, directions: npt.NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
        """Margins, the columns of ``directions``, and the curvature that is left over them."""
        margins, a = self.a @ weights, self.a[:, directions]
        left = self.share * _row_curvature(self.loss, margins, self.floors, self.caps)
        gram = np.zeros((len(directions), len(directions)))
        for block in row_blocks(len(a), gram.size):
            gram += (a[block] * left[block, None]).T @ a[block]
        return margins, a, gram

    def narrowed(self, centre: Floats, bound: float, inside: npt.NDArray[np.bool_]) -> Curvature:
        """With the floors and caps that follow from the ellipsoid around ``centre``, if there is one."""
        room = self.objective - bound + ROOM * (1.0 + abs(self.objective))
        margins, a, left = self._left(centre, self._directions(inside))
        factor = _factor(left)
        if factor is None or (np.diag(factor) ** 2 <= PIVOT * np.diag(left)).any() or not room > 0:
            return self
        inverse, spans = np.linalg.inv(factor).T, np.empty(len(a))
        for block in row_blocks(len(a), inverse.size):
            spans[block] = np.sum((a[block] @ inverse) ** 2, axis=1)
        width = np.sqrt(2.0 * room * spans) * (1.0 + WIDER)
        floors, caps = np.maximum(self.floors, margins - width), np.minimum(self.caps, margins + width)
        return replace(self, floors=floors, caps=caps)

    def allows(self, weights: Floats, aside: Floats, inside: npt.NDArray[np.bool_]) -> bool:
        """Whether the curvature left at ``weights`` exceeds ``aside``."""
        alone = np.bincount(self.twin[self.twin >= 0], minlength=len(self.twin)) == 1
        may = inside & (self.twin >= 0) & alone[self.twin]
        if (aside[~may] > 0).any() or not (aside >= 0).all():
            return False
        directions = self._directions(inside)
        left = self._left(weights, directions)[2]
        d = aside[directions] + SPARE * np.trace(left) / max(1, len(left))
        return _factor(left - np.diag(d)) is not None


def _twins(a: Floats) -> npt.NDArray[np.intp]:
    """For every column the first one that equals it or its opposite; -1 for a column of zeros."""
    first: dict[bytes, int] = {}
    signs = np.sign(a[np.argmax(a != 0, axis=0), np.arange(a.shape[1])])
    columns = np.ascontiguousarray((a * signs).T) + 0.0  # no negative zeros
    twin = [first.setdefault(column.tobytes(), j) if column.any() else -1 for j, column in enumerate(columns)]
    return np.array(twin, dtype=np.intp)


def _factor(matrix: Floats) -> Floats | None:
    """The Cholesky factor, or None where there is none."""
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
        present = p if loss == "exponential" else p * (1.0 - p)
        left = present * np.exp(0.0 if loss == "logistic" else np.maximum(0.0, F - caps))
        for end in (caps,) if loss == "exponential" else (floors, caps):
            left = np.minimum(left, _mean_curvature(loss, F, p, present, end))
    return np.asarray(np.maximum(left, 0.0) * (1.0 - 1e-10))


def _mean_curvature(loss: str, F: Floats, p: Floats, present: Floats, end: Floats) -> Floats:
    """2 b(x) / x^2 for x = end - F; where that is a difference of equals, the curvature at F less a share."""
    x = end - F
    small = np.abs(x) < 1e-3
    y = np.where(small, 1.0, x)
    if loss == "exponential":
        rise = p * (np.expm1(-y) + y)
    else:
        rise = np.logaddexp(0.0, -F - y) - np.logaddexp(0.0, -F) + p * y
    return np.where(small, present * (1.0 - np.abs(x) / 3.0), 2.0 * rise / (y * y))

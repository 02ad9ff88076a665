"""The empirical risk ``sum s_i loss(F_i)`` (in regression of ``F_i - t_i``) and everything summed over rows.

A :class:`RiskPoint` is the risk at some margins, with the row weights that the dictionary sees. All sums are
in fixed point (int64), so that they do not depend on threads, shards or the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.shards import take
from cardboost.data.weights import RowWeights
from cardboost.problem.losses import Loss, in_kernels

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FixedRows:
    """Row weights as integers, lane 0 for edges and lane 1 for curvature.

    ``edge_unit`` and ``curvature_unit`` are the values of one unit of each.
    """

    lanes: NDArray[np.int64]
    edge_unit: float
    curvature_unit: float

    @cached_property
    def edge_lane(self) -> NDArray[np.int64]:
        """Signed row weights, whose sums are edges."""
        return np.ascontiguousarray(self.lanes[:, 0])

    @cached_property
    def curvature_lane(self) -> NDArray[np.int64]:
        """Curvature of the loss in every row, weighted."""
        return np.ascontiguousarray(self.lanes[:, 1])


@dataclass(frozen=True, eq=False)
class RiskPoint:
    """The risk at margins ``F``.

    ``rows`` holds -loss' and loss'' of every row, ``derivative_sum`` and ``curvature_sum`` are the weighted
    sums of |loss'| and loss'', and ``largest`` is an upper limit of |loss'|: all of them relative to
    ``factor``. In classification -loss' is positive; in regression it has either sign.
    """

    risk: EmpiricalRisk
    F: Array
    rows: Array
    value: float
    factor: float
    derivative_sum: float
    curvature_sum: float
    largest: float
    largest_curvature: float = 1.0

    @cached_property
    def fixed(self) -> FixedRows:
        """Row weights as integers, computed once."""
        return self.risk.fixed_rows(self)

    @property
    def v(self) -> Array:
        """``-loss'(F_i)`` of every row: its dual weight u_i divided by s_i."""
        return self.rows[0] * self.factor

    @property
    def curvature(self) -> float:
        """``sum s_i loss''(F_i)``."""
        return self.curvature_sum * self.factor / self.risk.weights.total

    def dual(self, theta: float = 1.0) -> float:
        """``sum s_i (-conjugate(-theta v_i))``."""
        return self.risk.dual(self, theta)


@dataclass(frozen=True)
class EmpiricalRisk:
    """A loss over weighted rows.

    Parameters
    ----------
    loss : Loss
        One that the kernels evaluate; :class:`PlainRisk` takes any other.
    weights : RowWeights
        Weights of the rows.
    sign : ndarray of int8 or None
        Labels y of -1 and 1. None in regression, and where labels are multiplied into the columns.
    threads : int
        How many threads the kernels may use.
    target : ndarray, optional
        Targets t of a regression.
    offset : float
        Part of the risk that no margins can change: that of rows merged around their mean target.
    passes : list of int
        One number: how many passes over the rows there were.
    """

    loss: Loss
    weights: RowWeights
    sign: NDArray[np.int8] | None
    threads: int = 1
    target: Array | None = None
    offset: float = 0.0
    passes: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        if self.loss.of_residual != (self.target is not None):
            raise ValueError(
                f"a target belongs to a loss of the residual and only to it; the loss is {self.loss.name!r}."
            )
        if self.target is not None and self.sign is not None:
            raise ValueError(f"the {self.loss.name} loss has targets, not signs.")
        self._check_kernel()

    def _check_kernel(self) -> None:
        if not in_kernels(self.loss):
            raise ValueError(f"the kernels do not know the loss {self.loss.name!r}.")

    def over(self, rows: NDArray[np.intp]) -> EmpiricalRisk:
        """The risk over some of the rows, at least one."""
        sign = None if self.sign is None else self.sign[rows]
        target = None if self.target is None else self.target[rows]
        return replace(self, weights=self.weights.take(rows), sign=sign, target=target, passes=[0])

    def evaluate(self, F: Array) -> RiskPoint:
        """The risk and the row weights at margins ``F``."""
        rows = np.empty((2, len(F)))
        shift, loss, derivative, curvature, _, _, largest = self.sums(F, rows)
        factor = math.exp(min(shift, 700.0))
        value = loss * factor / self.weights.total + self.offset
        bend = self.loss.most_curvature
        return RiskPoint(self, F, rows, value, factor, derivative, curvature, largest, bend)

    def along(self, F: Array, D: Array, step: float) -> tuple[float, float, float]:
        """Value, slope and curvature of the risk at ``F + step * D`` as a function of ``step``."""
        shift, loss, _, _, slope, bend, _ = self.sums(F, None, D, step)
        unit = math.exp(min(shift, 700.0)) / self.weights.total
        return loss * unit + self.offset, slope * unit, bend * unit

    def sums(
        self, F: Array, rows: Array | None, D: Array | None = None, step: float = 0.0
    ) -> tuple[float, float, float, float, float, float, float]:
        """The sums of a pass over the rows, relative to exp of the first of them; fills ``rows``.

        Slope and curvature are those along ``D``, at ``F + step * D``.
        """
        self.passes[0] += 1
        w, code = self.weights, self.loss.code
        if len(w.shards.parts) == 1:
            return _kernels.loss_pass(
                code, F, self.target, D, step, w.count, w.factor, w.totals, rows, self.threads
            )

        def part_sums(part: slice, scales: Sequence[_kernels.Scale], smallest: float, store: bool) -> Any:
            margins, target, direction = self._margins(part, F, D)
            out = np.empty((2, len(margins))) if store and rows is not None else None
            units = _kernels.loss_sums(
                code, margins, target, direction, step, *w.part(part), scales, smallest, out, self.threads
            )
            if rows is not None and out is not None:
                rows[:, part] = out
            return np.array(units)

        return _kernels.loss_pass_in_parts(
            code, w.totals, lambda: self._extremes(F, D, step),
            lambda *scaling: w.shards.sum(lambda part: part_sums(part, *scaling)).tolist(),
        )  # fmt: skip

    def _margins(self, part: slice, F: Array, D: Array | None) -> tuple[Array, Array | None, Array | None]:
        """Margins, targets and direction of a part of the rows."""
        return take(F, part), take(self.target, part), take(D, part)

    def _extremes(self, F: Array, D: Array | None = None, step: float = 0.0) -> list[float]:
        """Of the margins of all parts: the scales of sums follow from them."""

        def extremes(part: slice) -> Array:
            margins, target, direction = self._margins(part, F, D)
            return np.array(
                _kernels.loss_extremes(self.loss.code, margins, target, direction, step, self.threads)
            )

        return self.weights.shards.maximum(extremes).tolist()

    def dual(self, point: RiskPoint, theta: float) -> float:
        """Dual value of the row weights of a point, scaled by ``theta``."""
        w, code, F = self.weights, self.loss.code, point.F

        def part_sum(part: slice, scale: _kernels.Scale, sizes: bool) -> int:
            margins, target, _ = self._margins(part, F, None)
            return _kernels.dual_sum(code, margins, target, theta, *w.part(part), scale, sizes, self.threads)

        if len(w.shards.parts) == 1:
            total = _kernels.dual_pass(code, F, self.target, theta, w.count, w.factor, w.totals, self.threads)
        else:
            total = _kernels.dual_pass_in_parts(
                code, theta, w.totals, lambda: self._extremes(F),
                lambda *scaling: int(w.shards.sum(lambda part: part_sum(part, *scaling))),
            )  # fmt: skip
        # merged rows: t_i = t + d_i and v_i = v + d_i, where the d_i have mean 0 and mean square 2 * offset
        return total / w.total + theta * (2.0 - theta) * self.offset

    def edge_rows(self, point: RiskPoint) -> tuple[NDArray[np.int64], float]:
        """Lane 0 of :meth:`fixed_rows` alone, and the value of one unit: all that edges need."""
        scale, largest = self._scale(point.derivative_sum), np.array([point.largest])
        lane = self.weights.quantise(point.rows[:1], np.array([scale]), largest, self.sign, self.threads)
        return lane, point.factor / scale / self.weights.total

    def _scale(self, total: float) -> float:
        """Units per 1 of a sum of this size; half a unit for the rounding of each row stays below int64."""
        return _kernels.fixed_scale(total * (1 + 1e-9), self.weights.total_count)

    def fixed_rows(self, point: RiskPoint) -> FixedRows:
        """Row weights as integers: signed in lane 0, curvature in lane 1."""
        scales = np.array([self._scale(total) for total in (point.derivative_sum, point.curvature_sum)])
        largest = np.array([point.largest, point.largest_curvature])
        lanes = self.weights.quantise(point.rows, scales, largest, self.sign, self.threads)
        units = point.factor / scales / self.weights.total
        return FixedRows(lanes, float(units[0]), float(units[1]))


@dataclass(frozen=True)
class PlainRisk(EmpiricalRisk):
    """The same for a loss that the kernels do not have, such as a user's, evaluated by NumPy.

    Sums are in fixed point too. The curvature of a loss of the residual is taken to be 1 in every row, as for
    the squared loss: it then only says how much a row weighs.
    """

    def _check_kernel(self) -> None:
        pass

    def evaluate(self, F: Array) -> RiskPoint:
        self.passes[0] += 1
        loss, w, z = self.loss, self.weights, self._argument(F)
        bend = np.ones(len(F)) if loss.of_residual else loss.curvature(z)
        values, rows = self._finite(loss.rows(z)), self._finite(np.stack([-loss.derivative(z), bend]))
        size = float(w.sums(np.abs(rows[0]))[0])
        largest, curved = (float(np.abs(lane).max(initial=0.0)) for lane in rows)
        value = w.mean(values) + self.offset
        return RiskPoint(self, F, rows, value, 1.0, size, float(w.sums(rows[1])[0]), largest, curved)

    def along(self, F: Array, D: Array, step: float) -> tuple[float, float, float]:
        self.passes[0] += 1
        loss, w, z = self.loss, self.weights, self._argument(F + step * D)
        slope, bend = w.mean(loss.derivative(z) * D), w.mean(loss.curvature(z) * D * D)
        return w.mean(self._finite(loss.rows(z))) + self.offset, slope, bend

    def dual(self, point: RiskPoint, theta: float) -> float:
        return self.weights.mean(self.loss.dual(theta * point.v, 0.0 if self.target is None else self.target))

    def _argument(self, F: Array) -> Array:
        return F if self.target is None else F - self.target

    def _finite(self, values: Array) -> Array:
        if not np.isfinite(values).all():
            raise ValueError(f"loss={self.loss.name!r} is not finite at some margin of the fit.")
        return np.ascontiguousarray(values, dtype=np.float64)


def risk_of(
    loss: Loss,
    weights: RowWeights,
    sign: NDArray[np.int8] | None,
    threads: int,
    target: Array | None = None,
) -> EmpiricalRisk:
    """The risk, evaluated by the kernels where they have the loss and else by NumPy."""
    kind = EmpiricalRisk if in_kernels(loss) else PlainRisk
    return kind(loss, weights, sign, threads, target)

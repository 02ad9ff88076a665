"""The empirical risk ``sum s_i loss(F_i)`` and everything that is summed over rows.

A :class:`RiskPoint` is the risk at given margins with the row weights that the dictionary sees. All sums are
int64 fixed point inside the kernels, so they do not depend on threads, shards or the order of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.weights import RowWeights
from cardboost.losses import Loss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FixedRows:
    """Integer row weights, lane 0 for edges and lane 1 for curvature, and what one unit of each is worth."""

    lanes: NDArray[np.int64]
    edge_unit: float
    curvature_unit: float

    @cached_property
    def edge_lane(self) -> NDArray[np.int64]:
        return np.ascontiguousarray(self.lanes[:, 0])

    @cached_property
    def curvature_lane(self) -> NDArray[np.int64]:
        return np.ascontiguousarray(self.lanes[:, 1])


@dataclass(frozen=True, eq=False)
class RiskPoint:
    """The risk at margins ``F``. ``rows`` holds -loss' and loss'' per row, relative to ``factor``."""

    risk: EmpiricalRisk
    F: Array
    rows: Array
    value: float
    factor: float
    derivative_sum: float
    curvature_sum: float

    @cached_property
    def fixed(self) -> FixedRows:
        return self.risk.fixed_rows(self)

    @property
    def v(self) -> Array:
        """``-loss'(F_i)`` per row: the dual weight divided by s_i."""
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
    """Loss, row weights and labels. ``sign`` is y for columns h_j(x), None where y is multiplied in."""

    loss: Loss
    weights: RowWeights
    sign: NDArray[np.int8] | None
    threads: int = 1
    passes: list[int] = field(default_factory=lambda: [0])

    def evaluate(self, F: Array) -> RiskPoint:
        rows = np.empty((2, len(F)))
        shift, loss, derivative, curvature, _, _ = self._pass(F, None, 0.0, rows)
        factor = math.exp(min(shift, 700.0))
        return RiskPoint(self, F, rows, loss * factor / self.weights.total, factor, derivative, curvature)

    def along(self, F: Array, D: Array, step: float) -> tuple[float, float, float]:
        """Value, slope and curvature of the risk at ``F + step * D`` as a function of ``step``."""
        shift, loss, _, _, slope, bend = self._pass(F, D, step, None)
        unit = math.exp(min(shift, 700.0)) / self.weights.total
        return loss * unit, slope * unit, bend * unit

    def _pass(
        self, F: Array, D: Array | None, step: float, rows: Array | None
    ) -> tuple[float, float, float, float, float, float]:
        w = self.weights
        self.passes[0] += 1
        return _kernels.loss_pass(
            self.loss.code, F, D, step, w.count, w.factor, w.totals, rows, self.threads
        )  # fmt: skip

    def dual(self, point: RiskPoint, theta: float) -> float:
        w = self.weights
        total = _kernels.dual_pass(self.loss.code, point.F, theta, w.count, w.factor, w.totals, self.threads)
        return total / w.total

    def fixed_rows(self, point: RiskPoint) -> FixedRows:
        """Row weights as integers: signed by y in lane 0, curvature in lane 1."""
        w = self.weights
        # half a unit per rounding keeps the sum below the limit
        scales = np.array(
            [
                _kernels.fixed_scale(total * (1 + 1e-9), w.total_count)
                for total in (point.derivative_sum, point.curvature_sum)
            ]
        )
        lanes = _kernels.quantise(
            point.rows, self.sign, w.count, w.factor, w.largest_factor, scales, np.ones(2),
            np.array([1, 0], dtype=np.uint8), self.threads,
        )  # fmt: skip
        units = point.factor / scales / w.total
        return FixedRows(lanes, float(units[0]), float(units[1]))

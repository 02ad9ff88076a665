"""A model in whole numbers: int16 inputs, sums of 32 bits, or of 64 where the proof needs them.

The C export computes what is defined here.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.export.plan import Array, Input, Plan, Steps, add_up, odd_part
from cardboost.export.points import WIDTHS, WholePoints, find_points

MISSING = -(2**15)
LOWEST, HIGHEST = -(2**15 - 1), 2**15 - 1
_LARGEST_OFFSET = 2**40  # code + offset stays exact in a double
_EXPONENTS = (-1000, 1000)
_POWERS_OF_TEN = [
    10.0**k for k in range(1, 23)
]  # exact: a code over one of them is the double of its decimal


@dataclass(frozen=True)
class CodeGrid:
    """The numbers (code + offset) / scale, codes from -32767 to 32767; -32768 is missing."""

    scale: float
    offset: int = 0

    def value(self, code: int) -> float:
        return (code + self.offset) / self.scale

    def at_most(self, cut: float) -> float:
        """The code of the largest number on the grid not above ``cut``; minus infinity if there is none."""
        code = int(min(max(cut * self.scale - self.offset, LOWEST), HIGHEST))
        while code <= HIGHEST and self.value(code) <= cut:
            code += 1
        while code >= LOWEST and self.value(code) > cut:
            code -= 1
        return -math.inf if code < LOWEST else min(code, HIGHEST)

    def encode(self, value: float) -> int:
        """The code of the smallest number on the grid that is not below ``value``, or the nearest code."""
        if value != value:
            return MISSING
        code = self.at_most(value)
        return int(min(max(code if self.holds(value) else code + 1, LOWEST), HIGHEST))

    def holds(self, cut: float) -> bool:
        """Whether the cut is on the grid: then a code decides as the number it was made of."""
        code = self.at_most(cut)
        return code > -math.inf and self.value(int(code)) == cut

    @classmethod
    def for_cuts(cls, cuts: Sequence[float]) -> CodeGrid:
        """The least power of two, 1 or more, with all cuts on the grid, if a range of 16 bits allows.

        Otherwise the least power of ten, for most cuts are short decimals; or else the finest power of two.
        """
        if not cuts:
            return cls(1.0)
        least, largest = min(cuts), max(cuts)
        size = max(abs(least), abs(largest))
        finest = max(-odd_part(cut)[1] if cut else -1074 for cut in cuts)  # bits behind the point
        for exponent in (max(finest, 0), finest):
            if _EXPONENTS[0] <= exponent <= _EXPONENTS[1] and _scaled(size, exponent) < HIGHEST:
                return cls(2.0**exponent)
        for scale in _POWERS_OF_TEN:
            grid = cls(scale)
            if size * scale < HIGHEST and all(map(grid.holds, cuts)):
                return grid
        span = largest - least if 0 < largest - least < math.inf else size
        exponent = min(max(14 - math.frexp(span)[1], _EXPONENTS[0]), _EXPONENTS[1])
        while _scaled(size, exponent) > _LARGEST_OFFSET:
            exponent -= 1
        middle = least / 2 + largest / 2
        far = _scaled(size, exponent) >= HIGHEST
        return cls(2.0**exponent, round(math.ldexp(middle, exponent)) if far else 0)


def _scaled(size: float, exponent: int) -> float:
    """size * 2**exponent, infinite where a double cannot hold it."""
    return math.inf if math.frexp(size)[1] + exponent > 1000 else math.ldexp(size, exponent)


@dataclass(frozen=True, eq=False)
class IntegerModel:
    """Sums of points over int16 codes: one column per input of ``plan``, in its order.

    Numbers are on the grid of their input, labels have the codes of the model, and any other code of a label
    counts as missing. If ``points.proven``, decisions are those of the model at ``decode(codes)``.
    """

    plan: Plan
    grids: tuple[CodeGrid | None, ...]  # None: labels
    steps: tuple[Steps, ...]  # of codes; missing is the first of them
    points: WholePoints

    @classmethod
    def from_ensemble(
        cls,
        ensemble: Any,
        scales: Mapping[str | int, Any] | None = None,
        exact: bool = True,
        missing: bool = True,
        widths: Sequence[int] = WIDTHS,
    ) -> IntegerModel:
        """Round a model of stumps.

        Parameters
        ----------
        ensemble : Ensemble or MulticlassEnsemble
        scales : mapping, default None
            For some features, by name or index, the codes per unit, or (codes per unit, offset).
        exact : bool, default True
            Refuse a model for which it cannot be proven that no decision changes.
        missing : bool, default True
            False: numbers are never missing, and the code for that is the lowest of them.
        widths : sequence of int, default (8, 16, 32, 64)
            Numbers of bits of a step to try.

        Returns
        -------
        IntegerModel
        """
        plan = Plan.of(ensemble)
        chosen: dict[int, CodeGrid | None] = dict(_check_scales(scales, plan))
        for source in plan.inputs:
            grid = CodeGrid.for_cuts(source.steps().cuts) if source.categories is None else None
            chosen.setdefault(source.feature, grid)
        grids = tuple(chosen[source.feature] for source in plan.inputs)
        steps = tuple(map(_on_codes, plan.inputs, grids, repeat(missing)))
        return cls(plan, grids, steps, find_points(plan, steps, widths, exact=exact))

    def decision_function(self, codes: Any) -> NDArray[np.int64]:
        """The points of every row; for several classes one column per class."""
        table = np.asarray(codes)
        if table.ndim != 2 or table.shape[1] != len(self.steps):
            raise ValueError(f"codes: expected {len(self.steps)} columns, found shape {table.shape}.")
        if table.dtype != np.int16:
            raise ValueError(f"codes: expected int16, found {table.dtype}.")
        total = add_up(self.points.intercepts, self.points.steps, table.astype(np.float64))
        return total[:, 0] if self.plan.n_scores == 1 else total

    def encode(self, values: Any) -> NDArray[np.int16]:
        """The codes of numbers (rows, inputs), each the nearest on its grid that is not below it.

        Labels are given as codes, anything missing as NaN.
        """
        table = np.asarray(values, dtype=np.float64)
        out = np.full(table.shape, MISSING, dtype=np.int16)
        for j, grid in enumerate(self.grids):
            column = table[:, j]
            present = ~np.isnan(column)
            if grid is None:
                out[present, j] = np.clip(column[present], LOWEST, HIGHEST).astype(np.int16)
            else:
                out[present, j] = [grid.encode(value) for value in column[present].tolist()]
        return out

    def decode(self, codes: Any) -> Array:
        """The numbers that codes stand for, codes of labels as they are; NaN where missing or unseen."""
        table = np.asarray(codes).astype(np.float64)
        out = np.where(table == MISSING, np.nan, table)
        for j, (source, grid) in enumerate(zip(self.plan.inputs, self.grids, strict=True)):
            if grid is not None:
                out[:, j] = (out[:, j] + grid.offset) / grid.scale
            else:
                out[(out[:, j] < 0) | (out[:, j] >= len(source.levels)), j] = np.nan
        return out


def _on_codes(source: Input, grid: CodeGrid | None, missing: bool) -> Steps:
    """The steps of an input over all int16, of which the lowest is missing."""
    if grid is None:
        return source.steps().restricted(math.floor, HIGHEST)
    inside = source.steps().restricted(grid.at_most, HIGHEST)
    return inside.missing_first(float(MISSING)) if missing else inside.never_missing()


def _check_scales(scales: Any, plan: Plan) -> dict[int, CodeGrid]:
    if scales is None:
        return {}
    if not isinstance(scales, Mapping):
        raise ValueError(f"scales: expected a mapping from features to codes per unit, found {scales!r}.")
    sources = {key: source for source in plan.inputs for key in (source.name, source.feature)}
    grids = {}
    for key, value in scales.items():
        if key not in sources:
            raise ValueError(f"scales: {key!r} is no feature that the model uses.")
        if sources[key].categories is not None:
            raise ValueError(f"scales: {key!r} holds labels, which have codes of their own.")
        scale, offset = value if isinstance(value, tuple) and len(value) == 2 else (value, 0)
        real = isinstance(scale, numbers.Real) and not isinstance(scale, bool)
        if not real or not 0 < scale < math.inf:
            raise ValueError(f"scales[{key!r}]: expected a positive number, found {scale!r}.")
        whole = isinstance(offset, numbers.Integral) and not isinstance(offset, bool)
        if not whole or abs(offset) > _LARGEST_OFFSET:
            raise ValueError(f"scales[{key!r}]: expected a whole number as offset, found {offset!r}.")
        grids[sources[key].feature] = CodeGrid(float(scale), int(offset))
    return grids

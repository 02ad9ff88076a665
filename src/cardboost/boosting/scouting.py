"""On large tables, columns are looked for on some of the rows and weighed on all of them.

A scout runs the same loop on a sketch of the rows, starting from the present model, and brings back a batch
of columns. What is claimed of the model (objective, bound, certificate) is always computed on all rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.column_generation import Pace, StopRule, generate
from cardboost.dictionary.base import Criterion
from cardboost.dictionary.sketch import RowSketch
from cardboost.dictionary.stumps import StumpDictionary, StumpPool, Stumps
from cardboost.master.newton import Master
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]

SCOUT_ROWS = 32_768
_WORTH = 8  # a scout pays where the table has this many times its rows


class Scout:
    """The same problem on a sketch of the rows."""

    def __init__(
        self, dictionary: StumpDictionary, risk: EmpiricalRisk, rule: PriceRule, sketch: RowSketch, pace: Pace
    ) -> None:
        rows, bins = sketch.rows, sketch.bins
        sign = None if risk.sign is None else risk.sign[rows]
        target = None if risk.target is None else risk.target[rows]
        weights = risk.weights.take(rows)
        matrix = dictionary.matrix.take(rows, bins)
        self.dictionary = StumpDictionary(
            matrix,
            sign,
            dictionary.threads,
            dictionary.intercept,
            weights,
            dictionary.monotonic,
            dictionary.by_feature,
            dictionary.orders,
        )
        self.pool = self.dictionary.pool()
        self.rule, self.pace = rule, replace(pace, final_tol=None)
        small = EmpiricalRisk(risk.loss, weights, sign, risk.threads, target)
        self.master = Master(self.pool, small, lambda own: rule.prices(own.n_columns, own.n_free))

    @classmethod
    def make(
        cls, dictionary: StumpDictionary, risk: EmpiricalRisk, rule: PriceRule, pace: Pace
    ) -> Scout | None:
        """A scout, or None where the table is too small for one to pay."""
        if risk.weights.total_count < _WORTH * SCOUT_ROWS:
            return None
        sketch = RowSketch.make(dictionary.matrix, risk.weights, dictionary.threads, SCOUT_ROWS, bit=40)
        return None if sketch is None else cls(dictionary, risk, rule, sketch, pace)

    def propose(self, pool: StumpPool, weights: Array, k: int, criterion: Criterion) -> tuple[Stumps, Array]:
        """Up to k new columns for a model with these columns and weights, and what all would weigh here."""
        known = self.pool.n_columns
        if pool.n_columns > known:
            self.pool.append(pool.stumps[known:])
        self.master.extend()
        self.master.move_to(weights.copy())
        start = self.pool.n_columns
        pace = replace(self.pace, columns=lambda n: self.pace.columns(n + start))
        generate(
            self.dictionary, self.master, StopRule(k), criterion=criterion, l1=self.rule.l1, l2=self.rule.l2,
            pace=pace,
        )  # fmt: skip
        return self.pool.stumps[start:], self.master.weights

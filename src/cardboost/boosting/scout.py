"""On large tables, columns are looked for on some of the rows and weighed on all of them.

A scout runs the same loop on a sketch of the rows, starting from the present model, and brings back a batch
of columns. What is claimed of the model (objective, bound, certificate) is always computed on all rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.loop import StopRule, boost
from cardboost.boosting.totally_corrective import Pace, TotallyCorrective
from cardboost.dictionary.base import ColumnPool, Criterion, Dictionary
from cardboost.dictionary.stumps import StumpDictionary, StumpPool, Stumps
from cardboost.master.newton import Master
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]

SCOUT_ROWS = 32_768
_LARGE = 8  # a scout pays where the table has this many times its rows


class Scout:
    """The same problem on a sketch of the rows."""

    def __init__(
        self,
        dictionary: StumpDictionary,
        risk: EmpiricalRisk,
        rule: PriceRule,
        pace: Pace,
        criterion: Criterion,
    ) -> None:
        self.dictionary, self.rule, self.criterion = dictionary, rule, criterion
        self.pace = replace(pace, final_tol=None)
        self.pool = dictionary.pool()
        self.master = Master(self.pool, risk, lambda pool: rule.prices(pool.n_columns, pool.n_free))

    @classmethod
    def make(
        cls, dictionary: Dictionary, risk: EmpiricalRisk, rule: PriceRule, pace: Pace, criterion: Criterion
    ) -> Scout | None:
        """A scout, or None where the table is too small for one to pay, or its columns are no stumps."""
        if risk.weights.total_count < _LARGE * SCOUT_ROWS or not isinstance(dictionary, StumpDictionary):
            return None
        sketch = dictionary.sketch_rows(risk.weights, SCOUT_ROWS)
        if sketch is None:
            return None
        rows = sketch.rows
        weights = risk.weights.take(rows)
        sign = None if risk.sign is None else risk.sign[rows]
        target = None if risk.target is None else risk.target[rows]
        small = EmpiricalRisk(risk.loss, weights, sign, risk.threads, target)
        return cls(dictionary.on_sketch(sketch, sign, weights), small, rule, pace, criterion)

    def propose(self, pool: ColumnPool, weights: Array, k: int) -> tuple[Stumps, Array]:
        """Up to k new columns for a model with these columns and weights, and what all would weigh here."""
        assert isinstance(pool, StumpPool)
        n_shared = self.pool.n_columns
        if pool.n_columns > n_shared:
            self.pool.append(pool.stumps[n_shared:])
        self.master.extend()
        self.master.move_to(weights.copy())
        start = self.pool.n_columns
        pace = replace(self.pace, columns=lambda n: self.pace.columns(n + start))
        stop = StopRule(k)
        weighting = TotallyCorrective(
            self.master, stop, criterion=self.criterion, l1=self.rule.l1, l2=self.rule.l2, pace=pace
        )
        boost(self.dictionary, weighting, stop)
        weighting.finish()
        return self.pool.stumps[start:], self.master.weights

"""What the regressors share: rows of numbers, and predictions of a fitted ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from cardboost.boosting.path import BoostingPath
from cardboost.boosting.stump_task import DataFacts, StumpTask
from cardboost.data.labels import real_targets, sample_weights, split_rows
from cardboost.data.table import Table
from cardboost.data.threads import usable_threads
from cardboost.data.weights import RowWeights
from cardboost.estimators.base import BoostedCards, PreparedFit
from cardboost.model.ensemble import OWN_LOSS, model_loss
from cardboost.problem.losses import Loss
from cardboost.problem.risk import EmpiricalRisk, risk_of

Array = NDArray[np.float64]

_LARGEST_TARGET = 1e306
_FARTHEST_TARGET = 1e12  # standard deviations: a row whose weight is a share of 1e-24 at most
_SMALLEST_SCALE = 1e-307


@dataclass(frozen=True, eq=False)
class NumberRows:
    """The rows of a fit: table, number of every row, and raw weights."""

    table: Table
    target: Array
    raw: Array | None

    def take(self, rows: NDArray[np.intp]) -> NumberRows:
        return NumberRows(
            self.table.take(rows), self.target[rows], None if self.raw is None else self.raw[rows]
        )

    def weights(self) -> RowWeights:
        return RowWeights.make(self.table.n_rows, self.raw)

    def risk(self, loss: Loss, units: tuple[float, float], threads: int) -> EmpiricalRisk:
        """Of the target in units of its mean and deviation, or of others."""
        mean, scale = units
        return risk_of(loss, self.weights(), None, threads, (self.target - mean) / scale)


class RegressorCards(RegressorMixin, BoostedCards):
    """Base of the regressors. Not for use by itself."""

    def _number_rows(self, table: Table, y: Any, sample_weight: Any) -> NumberRows:
        """The rows that have a weight."""
        target = real_targets(y, table.n_rows)
        raw = sample_weights(sample_weight, table.n_rows)
        rows = NumberRows(table, target, raw)
        return rows if raw is None or (raw > 0).all() else rows.take(np.flatnonzero(raw > 0))

    def _number_task(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        loss: Loss,
        earlier: BoostingPath | None = None,
    ) -> tuple[PreparedFit, StumpTask]:
        """Read and check the rows: the stumps over those to train on, and the rows held out."""
        read = self._read_for_fit(X)
        by_feature = self._limits_features(read)
        rows = self._number_rows(read, y, sample_weight)
        threads, held = usable_threads(self.n_jobs), None
        if self.validation_fraction is not None:
            kept, aside = split_rows(self.validation_fraction, None, rows.table.n_rows, self.random_state)
            rows, held = rows.take(kept), rows.take(aside)
        table, weights = rows.table, rows.weights()
        units = self._units(loss, weights, rows.target)
        risk = rows.risk(loss, units, threads)
        dictionary = self._dictionary(table, None, weights, threads, risk.target, by_feature)
        held_out = None
        if held is not None:
            held_out = self._held_out(held.table, dictionary.matrix, held.risk(loss, units, threads))
        facts = DataFacts(
            table.n_rows,
            table.n_features,
            cache(lambda: table.digest(None, rows.raw, threads, target=rows.target)),
            target=units,
        )
        frame = self._frame(model_loss(loss), table, dictionary.matrix, None, mean=units[0], scale=units[1])
        task = StumpTask(dictionary, risk, facts, frame, earlier, held_out)
        return PreparedFit.of_table(read, iter([("", task)])), task

    def _units(self, loss: Loss, weights: RowWeights, target: Array) -> tuple[float, float]:
        """Mean and deviation of the target; a loss of the user's own is in the units of the target."""
        if model_loss(loss) == OWN_LOSS:
            return (0.0, 1.0)
        if not np.abs(target).max() < _LARGEST_TARGET:
            raise ValueError(f"y holds numbers of {_LARGEST_TARGET:g} or more: divide it by a constant.")
        mean, scale = weights.mean_and_deviation(target)
        if scale < _SMALLEST_SCALE:
            raise ValueError(
                f"y has a standard deviation of {scale:g}, which double precision does not carry: multiply y "
                "by a constant, or leave out rows of next to no weight."
            )
        far = float(np.abs(target - mean).max() / scale)
        if far > _FARTHEST_TARGET:
            raise ValueError(
                f"y has a row of next to no weight {far:.2g} standard deviations from the mean, too far for "
                "double precision: leave out such rows."
            )
        return mean, scale

    def predict(self, X: Any) -> Array:
        """Predictions in the units of the target.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Returns
        -------
        array of shape (n_samples,)
            Predicted targets.
        """
        rows = self._rows(X)
        return self.ensemble_.decision_function(rows, usable_threads(self.n_jobs))

"""Training on all stumps of a table, and what a certificate about stumps says of data and dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.candidates import Candidates
from cardboost.boosting.path import BoostingPath, ModelFrame, cut_value
from cardboost.boosting.task import Choice, HeldOutBins, NumberedColumns, Proof, TrainingTask
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import CertifiedProblem, intercept_of
from cardboost.dictionary.label_orders import label_orders
from cardboost.dictionary.stump_pool import StumpPool
from cardboost.dictionary.stump_store import StumpStore
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.master.simplex import Columns, MatrixOracle, soft_point
from cardboost.model.ensemble import Ensemble
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]


class StumpNumbers(NumberedColumns):
    """All distinct stumps of a table by number; the intercept's columns come behind them."""

    def __init__(self, dictionary: StumpDictionary, risk: EmpiricalRisk) -> None:
        self.store = StumpStore(dictionary, risk.weights)
        self.oracle = MatrixOracle(self.store, risk)
        self.pool = dictionary.pool()
        self._index = {self.store.n_stumps + k: k for k in range(self.pool.n_free)}

    def start(self, radius: float, earlier: BoostingPath | None = None) -> tuple[Columns, Array]:
        store = self.store
        if earlier is not None:
            pool = store.dictionary.pool()
            weights = earlier.restart(pool)
            constants = store.n_stumps + np.arange(pool.n_free)
            numbers = np.append(constants, store.numbers(pool.stumps[pool.n_free :])).astype(np.int32)
            columns = np.unique(numbers)
            summed = np.bincount(np.searchsorted(columns, numbers), weights, len(columns))
            if summed.any():
                used = summed > 0
                return columns[used], summed[used] * (radius / summed.sum())
        if len(store) == 0:
            raise ValueError("X has no column that tells rows apart, and there is no intercept.")
        _, point = soft_point(self.oracle.risk, np.zeros(store.n_rows))
        best = int(np.argmin(self.oracle.every_slope(point)))
        return np.array([best], dtype=np.int32), np.array([radius])

    def weights(self, columns: Columns, weights: Array) -> Array:
        new = np.array([number for number in columns.tolist() if number not in self._index], dtype=np.int32)
        if len(new):
            first = self.pool.n_columns
            self._index.update(zip(new.tolist(), range(first, first + len(new)), strict=True))
            self.pool.append(self.store.stumps(new))
        full = np.zeros(self.pool.n_columns)
        full[[self._index[number] for number in columns.tolist()]] = weights
        return full

    def terms(self, columns: Columns) -> Columns:
        return columns[columns < self.store.n_stumps]


@dataclass(frozen=True, eq=False)
class StumpTask(TrainingTask):
    """All stumps of a table over the rows to train on.

    Parameters
    ----------
    dictionary, risk, earlier, held_out
        See :class:`~cardboost.boosting.task.TrainingTask`.
    frame : ModelFrame
        What the models are called.
    digest : callable
        Makes the digest of the data that the certificate names.
    class_weight : pair of float
        Factors of the two classes.
    """

    dictionary: StumpDictionary
    risk: EmpiricalRisk
    frame: ModelFrame
    digest: Callable[[], str]
    class_weight: tuple[float, float] = (1.0, 1.0)
    earlier: BoostingPath | None = None
    held_out: HeldOutBins | None = None

    def over(self, rows: NDArray[np.intp]) -> StumpTask:
        """The same on some of the rows, under the same cuts; from no earlier model, and with none held out.

        Orders of labels are those of these rows: they follow from what is predicted.
        """
        risk = self.risk.over(rows)
        values = risk.target if risk.sign is None else risk.sign > 0
        assert values is not None
        matrix = self.dictionary.matrix.take(rows)
        orders = label_orders(matrix, risk.weights, values, risk.threads)
        dictionary = self.dictionary.over(matrix, risk, orders)
        return replace(self, dictionary=dictionary, risk=risk, earlier=None, held_out=None)

    def ensemble(self, pool: StumpPool, weights: Array, unit: float | None = None) -> Ensemble:
        return self.frame.ensemble(pool.stumps, weights, pool.n_free, unit)

    def path(self, pool: StumpPool, stages: tuple[Array, ...]) -> BoostingPath:
        return BoostingPath(self.frame, pool.stumps, pool.n_free, stages)

    def null_model(self, constant: Array, value: Callable[[Array], float]) -> tuple[float, float]:
        empty = self.dictionary.pool()
        return intercept_of(constant, empty.n_free), value(empty.margins(constant))

    def numbered_columns(self) -> StumpNumbers:
        return StumpNumbers(self.dictionary, self.risk)

    def candidates(
        self, pool: StumpPool, choice: Choice, proof: Proof, certificate: Certificate
    ) -> Candidates:
        stumps, n_free = pool.stumps, pool.n_free
        return Candidates(
            lambda weights, unit: self.frame.ensemble(stumps, weights, n_free, unit),
            self.frame.loss,
            self.positive,
            n_free,
            choice.search.problem,
            choice.weights,
            dict(certificate.content),
            proof.complete,
        )

    def certified_problem(self, proof: Proof, loss: str) -> CertifiedProblem:
        pool, rule, limits, frame = proof.pool, proof.rule, proof.limits, self.frame
        n_free, matrix, monotonic = pool.n_free, self.dictionary.matrix, self.dictionary.monotonic
        stumps, categories = pool.stumps[n_free:], matrix.categories
        feature, cut, one_of = stumps.feature.tolist(), stumps.cut.tolist(), stumps.one_of.tolist()
        columns: dict[str, list[Any]] = {"feature": feature, "cut": [], "category": [], "first": []}
        for j, k, is_set in zip(feature, cut, one_of, strict=True):
            labels = categories[j]
            columns["cut"].append(None if labels else _cut_in_file(matrix.cuts[j], k))
            columns["category"].append(labels.label(k) if labels and not is_set else None)
            columns["first"].append(k + 1 if is_set else None)
        columns |= {"polarity": stumps.polarity.tolist(), "missing_left": stumps.missing_left.tolist()}
        return CertifiedProblem(
            kind="stumps",
            loss=loss,
            max_terms=proof.max_terms,
            columns=columns,
            prices=rule.prices(len(stumps), 0),
            rows=self.risk.weights.n_rows,
            features=frame.n_features,
            digest=self.digest(),
            n_free=n_free,
            intercept_box=rule.intercept_box if n_free else None,
            class_weight=self.class_weight,
            unseen=rule.prices(1, 0),
            cuts=matrix.cuts,
            max_features=None if limits is None else limits.max_features,
            feature_costs=None if limits is None else limits.costs,
            target=None if self.risk.target is None else (frame.mean, frame.scale),
            categories=categories,
            monotonic=() if monotonic is None else monotonic.tolist(),
            orders=self.dictionary.orders,
            radius=proof.radius,
            excluded=self.dictionary.excluded,
            missing=() if self.dictionary.missing is None else self.dictionary.missing.tolist(),
            at_most_one_of=() if limits is None else limits.at_most_one_of,
            must_include=() if limits is None else limits.must_include,
        )


def _cut_in_file(cuts: Array, cut: int) -> float | None:
    value = cut_value(cuts, cut)
    return None if np.isinf(value) else value

"""Few of many networks: which to keep, by the selector, with a certificate.

Every net is two columns, its outputs and their opposite, so that weights are not negative; the constants
are two more per output, which neither count nor cost. Two classes with one output are chosen by the
logistic loss, all else by least squares: of the target itself for the squared loss, else of the quadratic
model of the loss at the whole ensemble. Columns are divided by their root mean square.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.neural import AllGammas, Rows
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.checker import data_digest
from cardboost.certificate.writer import CertifiedProblem, ProvenScope, write_certificate
from cardboost.data.weights import RowWeights
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.problem.losses import SQUARED, get_loss
from cardboost.problem.prices import Prices
from cardboost.problem.risk import risk_of
from cardboost.problem.vector_losses import LogisticOutputs, VectorLoss
from cardboost.selection.select import SearchOptions, Selection, select
from cardboost.selection.selection_problem import SelectionProblem

Array = NDArray[np.float64]

_L2 = 1e-4  # on weights of columns of unit size: what makes nets that say the same share no more than needed


@dataclass(frozen=True, eq=False)
class Pruned:
    """The nets that are kept, the constants and their gammas, and the proof of the choice."""

    kept: NDArray[np.intp]
    constant: Array
    gammas: Array
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class _Columns:
    """The matrix of the choice, from outputs of all nets (k, rows, m), targets and weights of rows."""

    loss: VectorLoss
    size: Array
    constant: Array
    gammas: Array

    @property
    def logistic(self) -> bool:
        return isinstance(self.loss, LogisticOutputs) and len(self.constant) == 1

    def matrix(self, outputs: Array, y: Array, s: Array) -> tuple[Array, Array | None, Array]:
        """A, the target of least squares, and the weight of every row of A."""
        k, rows, m = outputs.shape
        nets = (outputs / self.size[:, None, None]).reshape(k, rows * m).T
        ones = np.tile(np.eye(m), (rows, 1))
        A = np.hstack([ones, -ones, nets, -nets])
        if self.logistic:
            return A * y.reshape(-1, 1), None, s
        F = self.constant + np.tensordot(self.gammas, outputs, axes=1)
        if self.loss.quadratic:
            return A, y.ravel(), np.repeat(s, m)
        units = np.repeat(np.eye(m)[:, None, :], rows, axis=1)  # the o-th has ones at output o
        bend = np.einsum("oio->io", self.loss.bend_times(y, F, units))
        bend = np.maximum(bend, 1e-6 * max(float(bend.max()), 1e-300))
        target = F - self.loss.gradient(y, F) / bend
        return A, target.ravel(), (s[:, None] * bend).ravel()


@dataclass(frozen=True, eq=False)
class _View:
    """The matrix that a certificate is about, made of a user's rows again."""

    columns: _Columns
    read: Callable[[Any, Any, Any], tuple[Array, Array, Array]]

    def __call__(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        return self.columns.matrix(*self.read(X, y, sample_weight))


def prune_networks(
    loss: VectorLoss,
    outputs: Array,
    to_fit: Rows,
    constant: Array,
    gammas: Array,
    max_terms: int,
    read: Callable[[Any, Any, Any], tuple[Array, Array, Array]],
    seed: int,
    threads: int,
) -> Pruned:
    """At most ``max_terms`` of the nets. ``read`` makes outputs, targets and weights of rows to verify
    with."""
    y, s = to_fit.y, to_fit.s
    k, m = len(outputs), y.shape[1]
    size = np.sqrt(np.einsum("kio,kio,i->k", outputs, outputs, s))
    size[size == 0.0] = 1.0
    columns = _Columns(loss, size, constant, gammas)
    A, target, weight = columns.matrix(outputs, y, s)
    free, n = 2 * m, A.shape[1]
    charged, rows = np.arange(n) >= free, RowWeights.make(len(A), weight)
    mean, scale = (0.0, 1.0) if target is None else rows.mean_and_deviation(target)
    box = 10.0 * (1.0 + float(np.abs((constant - mean) / scale).max(initial=0.0)))
    prices = Prices(
        np.zeros(n), np.where(charged, _L2, 0.0), np.zeros(n), np.where(charged, np.inf, box), charged
    )
    kind = get_loss("logistic") if columns.logistic else SQUARED
    standardised = None if target is None else (target - mean) / scale
    risk = risk_of(kind, rows, None, threads, standardised)
    pool = MatrixPool(ColumnStore(np.ascontiguousarray(A.T), threads), np.arange(n, dtype=np.int32))
    task = SelectionProblem(pool, risk, prices, max_terms)
    selection = select(task, None, SearchOptions("auto", 2000, seed=seed), boxed=False)
    selection = replace(selection, problem=replace(task, prices=selection.problem.prices))
    weights = selection.incumbent.weights
    certificate = _certificate(selection, A, target, weight, (mean, scale))
    chosen = scale * (weights[free : free + k] - weights[free + k :])
    kept = np.flatnonzero(chosen)
    constant = mean + scale * (weights[:m] - weights[m:free])
    gammas = chosen[kept] / size[kept]
    if not (columns.logistic or loss.quadratic):
        constant, gammas = _refit(loss, outputs[kept], y, s, constant, gammas)
    return Pruned(kept, constant, gammas, Certificate(certificate, view=_View(columns, read)))


def _refit(
    loss: VectorLoss, outputs: Array, y: Array, s: Array, constant: Array, gammas: Array
) -> tuple[Array, Array]:
    """The weights for the loss itself."""
    together = AllGammas(loss, y, s, len(outputs))
    for net_outputs in outputs:
        together.add(net_outputs)
    weights = together.solve(np.concatenate([constant, gammas]))
    return weights[: len(constant)], weights[len(constant) :]


def _certificate(
    selection: Selection, A: Array, target: Array | None, weight: Array, units: tuple[float, float]
) -> dict[str, Any]:
    """``units``: mean and deviation of the target, in which the problem is."""
    task, weights = selection.problem, selection.incumbent.weights
    null = task.risk.evaluate(np.zeros(len(A))).value
    problem = CertifiedProblem(
        kind="matrix",
        loss=task.risk.loss.name,
        max_terms=task.max_terms,
        columns={"feature": list(range(A.shape[1]))},
        prices=task.prices,
        rows=int(np.count_nonzero(weight)),
        features=A.shape[1],
        digest=data_digest(A, None, weight, target=target),
        target=None if target is None else units,
    )
    objective = task.objective(task.risk.evaluate(task.pool.margins(weights)).value, weights)
    bounds = [ProvenScope("pool", A.shape[1], selection.leaves, selection.centre)]
    return write_certificate(problem, weights, objective, (0.0, null), bounds)

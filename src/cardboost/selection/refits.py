"""Refits of supports on the true loss, and the quadratic model that says which supports deserve one.

A refit is convex: the best weights inside the box when only the columns of a support (and the free ones) may
be used. Columns of signs are refitted many supports at a time in one call of a kernel: a support with all
columns decided is a node of exact search with nothing left to branch on, so its relaxation is the refit, with
a bound that says how near it is. Everything else is refitted by the master.

The model of the objective at an incumbent needs the Gram rows of its support, not those of all columns, and
no pass over the rows of the table. It answers three questions: the objective of any support (one small solve
each), what every column would gain by joining (its squared slope over its Schur complement, all at once), and
which columns a wide support can spare (saliency, with one inverse for all of them).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.threads import blas_threads
from cardboost.dictionary.columns import MatrixPool, spread
from cardboost.master.newton import Master
from cardboost.problem.budget import Late, never
from cardboost.problem.risk import RiskPoint
from cardboost.selection.merge import sign_bytes
from cardboost.selection.selection_problem import Array, Incumbent, SelectionProblem

FREE, IN, OUT = 0, 1, 2  # what a column may do in a node (kernels/nodes.h)
_REFIT_TOL = 1e-9  # relative gap of a refit
_REFIT_STEPS = 60  # Newton steps of a refit at most
_UNREACHABLE = 1e300  # no bound reaches it: refits in the kernel go on until they have converged
_MANY_COLUMNS = 64  # beyond them, only the columns of the supports are handed to the kernel
_LARGEST_WEIGHT = 64.0  # beyond it, a weight without a box is left to the master


def kernel_columns(merged: SelectionProblem) -> dict[str, Any]:
    """The first arguments of kernels/nodes.cpp, for a problem over stored columns."""
    packed, p, k = sign_bytes(merged), merged.prices, merged.max_terms
    dense = None if packed is not None else np.ascontiguousarray(merged.pool.dense().T, dtype=np.float64)
    return {
        "loss": merged.risk.loss.code, "packed": packed, "dense": dense,
        "share": merged.risk.weights.normalised, "l1": p.l1, "l2": p.l2, "l0": p.l0, "upper": p.max_weight,
        "charged": p.charged.astype(np.uint8), "max_terms": -1 if k is None else k,
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class SignRefits:
    """Refits of a problem whose columns are signs. Its rows are distinct and sorted: in a fixed order."""

    problem: SelectionProblem
    columns: dict[str, Any]

    @classmethod
    def make(cls, merged: SelectionProblem) -> SignRefits | None:
        """None where the kernel does not take the problem."""
        suited = merged.limits is None and merged.risk.loss.name in ("exponential", "logistic")
        if not suited or merged.pool.dense().dtype != np.int8 or merged.pool.n_columns == 0:
            return None
        columns = kernel_columns(merged)
        columns |= {"upper": np.minimum(columns["upper"], _LARGEST_WEIGHT), "max_terms": -1}
        return None if columns["packed"] is None else cls(merged, columns)

    def solve(self, supports: Sequence[Sequence[int]], starts: Array, tol: float) -> list[Array | None]:
        """Weights of every support to a relative gap of ``tol``; None where that was not reached."""
        n, used = len(self.problem.prices), ~self.problem.prices.charged
        for support in supports:
            used[list(support)] = True
        if n <= _MANY_COLUMNS or not 0 < 2 * np.count_nonzero(used) <= n:
            return self._solve(supports, starts, tol)
        columns = np.flatnonzero(used)
        few = SignRefits.make(self.problem.part(columns))
        assert few is not None
        narrow = [np.searchsorted(columns, np.sort(list(support))).tolist() for support in supports]
        results = few._solve(narrow, np.ascontiguousarray(starts[:, columns]), tol)
        return [None if weights is None else spread(weights, columns, n) for weights in results]

    def _solve(self, supports: Sequence[Sequence[int]], starts: Array, tol: float) -> list[Array | None]:
        charged, box = self.problem.prices.charged, self.problem.prices.max_weight
        state = np.zeros((len(supports), len(charged)), dtype=np.int8)
        state[:, charged] = OUT
        for node, support in zip(state, supports, strict=True):
            node[list(support)] = IN
        bound, weights, _, value, *_ = _kernels.bound_nodes(
            **self.columns, state=state, start=starts, tau=np.zeros(len(state)), cutoff=_UNREACHABLE,
            max_steps=_REFIT_STEPS, threads=self.problem.risk.threads,
        )  # fmt: skip
        close = value - bound <= tol * np.maximum(1e-300, np.abs(value))
        inside = ((weights < 0.99 * _LARGEST_WEIGHT) | (weights >= box)).all(axis=1)
        return [w if ok else None for w, ok in zip(weights, close & inside, strict=True)]


class GramRows:
    """The Hessian of the risk at a point: the rows that were needed so far, and the diagonal."""

    def __init__(self, pool: MatrixPool, point: RiskPoint) -> None:
        self._pool, self._point = pool, point
        self.diagonal = pool.store.squares(pool.which, point)
        self.index = np.full(pool.n_columns, -1)  # of every column's row, -1 where it is not computed yet
        self._rows = np.empty((0, pool.n_columns))
        self._square: tuple[NDArray[np.intp], Array] | None = None  # the latest

    def of(self, columns: NDArray[np.intp]) -> Array:
        """The rows of these columns."""
        new = columns[self.index[columns] < 0]
        if len(new):
            self.index[new] = len(self._rows) + np.arange(len(new))
            self._rows = np.concatenate([self._rows, self._pool.gram(self._point, new)])
        return self._rows[self.index[columns]]

    def square(self, columns: NDArray[np.intp]) -> Array:
        """The block of these columns, without the rest of their rows."""
        if self._square is None or not np.array_equal(columns, self._square[0]):
            which = self._pool.which[columns]
            self._square = columns, self._pool.store.gram(which, which, self._point)
        return self._square[1]

    def block(self, columns: NDArray[np.intp], complete: bool) -> Array:
        """The block of these columns. Unless ``complete``, entries of two columns without a row are left at
        0: no support has two such columns."""
        stored = self.index[columns] >= 0
        if complete or stored.all():
            return np.ascontiguousarray(self.of(columns)[:, columns])
        block = np.zeros((len(columns), len(columns)))
        rows = self.of(columns[stored])[:, columns]
        block[stored], block[:, stored] = rows, rows.T
        np.fill_diagonal(block, self.diagonal[columns])
        return block


class Refitter:
    """Refits of the supports of one problem, and its quadratic model. Counts refits in ``work``."""

    def __init__(self, problem: SelectionProblem, late: Late = never) -> None:
        """``problem``: over stored columns (merge_rows). ``late``: asked between refits whether to stop."""
        self.problem, self.late = problem, late
        self.work = 0
        limits, l0, groups = problem.limits, problem.prices.l0, problem.groups
        # without limits all columns are of one feature, of which any number may be used
        self._feature = ([0] * len(l0)) if groups is None else groups.tolist()
        self._costs = None if limits is None or limits.costs is None else limits.costs.tolist()
        self._l0 = l0.tolist() if np.any(l0 > 0) else None
        self._free = np.flatnonzero(~problem.prices.charged)
        self._refitted: dict[tuple[int, ...], Incumbent] = {}
        self._models: dict[tuple[int, ...], tuple[Array, GramRows]] = {}
        self._gram: GramRows | None = None  # the latest
        self._sign_refits = SignRefits.make(problem)

    def limit(self, max_terms: int) -> None:
        """From now on at most so many charged columns; earlier refits stay valid."""
        self.problem = replace(self.problem, max_terms=max_terms)

    def refit(self, support: Iterable[int], start: Array | None = None) -> Incumbent:
        """The best weights on this support; columns that end at 0 leave it."""
        return self.refit_all([support], start)[0]

    def refit_all(self, supports: Iterable[Iterable[int]], start: Array | None = None) -> list[Incumbent]:
        """The best weights on each of these supports, all from the same start."""
        keys = [tuple(sorted({int(j) for j in support})) for support in supports]
        new = list(dict.fromkeys(key for key in keys if key not in self._refitted))
        self.work += len(new)
        results: list[Array | None] = [None] * len(new)
        if new and self._sign_refits is not None:
            first = np.zeros(self.problem.pool.n_columns) if start is None else start
            results = self._sign_refits.solve(new, np.tile(first, (len(new), 1)), _REFIT_TOL)
        for key, weights in zip(new, results, strict=True):
            if weights is None:
                weights = self._by_master(key, start)
            used = np.flatnonzero((weights > 0) & self.problem.prices.charged)
            incumbent = Incumbent(used, weights, self.problem.objective_of(weights))
            self._refitted[key] = self._refitted[incumbent.key] = incumbent
        return [self._refitted[key] for key in keys]

    def _by_master(self, support: tuple[int, ...], start: Array | None) -> Array:
        """Weights of a support by the master, which takes all losses and columns."""
        columns = np.unique(np.concatenate([self._free, np.array(support, dtype=np.intp)]))
        prices = self.problem.prices.convex()[columns]
        first = np.zeros(len(columns)) if start is None else np.minimum(start[columns], prices.max_weight)
        master = Master(self.problem.pool.subset(columns), self.problem.risk, lambda pool: prices, first)
        master.solve(tol=_REFIT_TOL, max_iter=_REFIT_STEPS, certified=False)
        return spread(master.weights, columns, self.problem.pool.n_columns)

    def model(self, incumbent: Incumbent) -> tuple[Array, GramRows]:
        """Gradient of the risk at an incumbent, over all columns, and its Hessian."""
        key = incumbent.key
        if key not in self._models:
            point = self.problem.point(incumbent.weights)
            if self._gram is None or not self.problem.risk.loss.quadratic:
                assert isinstance(self.problem.pool, MatrixPool)
                self._gram = GramRows(self.problem.pool, point)
            self._models[key] = (-self.problem.pool.edges(point), self._gram)
        return self._models[key]

    def scores(self, incumbent: Incumbent, supports: list[list[int]]) -> Array:
        """Objective of every support according to the model at an incumbent."""
        p = self.problem.prices
        gradient, gram = self.model(incumbent)
        core = np.flatnonzero((incumbent.weights > 0) | ~p.charged)
        free = self._free.tolist()
        sizes = np.array([len(free) + len(support) for support in supports])
        members = np.array(list(chain.from_iterable(free + support for support in supports)), dtype=np.intp)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        used = incumbent.weights > 0
        used[members] = True
        columns = np.flatnonzero(used | ~p.charged)
        if len(columns) == len(core):
            block = gram.square(columns)
        else:
            gram.of(core)
            new = np.bincount(owner, gram.index[members] < 0, len(sizes))
            block = gram.block(columns, bool((new > 1).any()))
        drops = _kernels.score_supports(
            block, gradient[columns], incumbent.weights[columns], p.l1[columns],
            p.l2[columns], p.max_weight[columns], np.searchsorted(columns, members).astype(np.int32),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), 1e-8, self.problem.risk.threads,
        )  # fmt: skip
        if self._costs is not None:
            cost = np.array([self._cost(support) for support in supports])
        elif self._l0 is not None:
            cost = np.bincount(owner, np.where(p.charged, p.l0, 0.0)[members], len(sizes))
        else:
            return incumbent.objective - drops
        return incumbent.objective - drops + cost - self._cost(incumbent.support.tolist())

    def _cost(self, support: list[int]) -> float:
        """What it costs to use these columns, whatever their weights."""
        cost = 0.0 if self._l0 is None else sum(self._l0[j] for j in support)
        if self._costs is not None:
            cost += sum(self._costs[g] for g in sorted({self._feature[j] for j in support}))
        return cost

    @blas_threads(1)  # for equal bits with any number of threads
    def gains(self, incumbent: Incumbent, leaving: Sequence[int | None]) -> Array:
        """What every column would gain by joining the support without one of its columns.

        One row of estimates for each of ``leaving``, None being the whole support. In the model the other
        weights follow as if they had no bounds, so that one inverse serves all rows.
        """
        p, w = self.problem.prices, incumbent.weights
        gradient, gram = self.model(incumbent)
        moving = np.flatnonzero((w > 0) & (w < p.max_weight))
        rows = gram.of(moving)
        inverse = np.linalg.pinv(rows[:, moving] + np.diag(p.l2[moving]), rcond=1e-12, hermitian=True)
        along = inverse @ rows
        slope = gradient + p.l1
        schur = gram.diagonal + p.l2 - np.einsum("ij,ij->j", rows, along)
        curved = inverse.diagonal() > _rounding_of(inverse)
        index = {int(j): i for i, j in enumerate(moving) if curved[i]}
        estimates = np.empty((len(leaving), len(w)))
        for estimate, j in zip(estimates, leaving, strict=True):
            pull, curvature = slope, schur
            if j is not None and j in index:
                i = index[j]
                pull = slope - (w[j] / inverse[i, i]) * along[i]
                curvature = schur + along[i] * along[i] / inverse[i, i]
            elif j is not None:  # at its bound, or without curvature: the other weights stay as they are
                pull = slope - w[j] * gram.of(np.array([j]))[0]
            curvature = np.maximum(curvature, 1e-6 * (gram.diagonal + p.l2))
            step = np.minimum(np.maximum(-pull, 0.0) / np.maximum(curvature, 1e-300), p.max_weight)
            estimate[:] = -step * (pull + 0.5 * curvature * step) - p.l0
        return estimates

    @blas_threads(1)  # for equal bits with any number of threads
    def spare(self, incumbent: Incumbent, size: int, count: int) -> list[int]:
        """A support without ``count`` columns: those of least saliency in the model, one after another.

        Once there are ``size``, only while it pays. Bounds on weights are left aside: without a column the
        others follow freely, and its saliency is w^2 / 2 over the diagonal of the inverse Hessian.
        """
        p, w = self.problem.prices, incumbent.weights
        core = np.concatenate([self._free[w[self._free] > 0], np.flatnonzero((w > 0) & p.charged)])
        block = self.model(incumbent)[1].square(core) + np.diag(p.l2[core])
        inverse = np.linalg.pinv(block, rcond=1e-12, hermitian=True)
        weights, alive = w[core].copy(), p.charged[core]
        least_curvature = _rounding_of(inverse)
        for _ in range(count):
            diagonal = np.maximum(inverse.diagonal(), least_curvature)
            saliency = np.where(alive, 0.5 * np.maximum(weights, 0.0) ** 2 / diagonal - p.l0[core], np.inf)
            least = int(np.argmin(saliency))
            if not alive.any() or (np.count_nonzero(alive) <= size and saliency[least] >= 0.0):
                break
            along = inverse[least].copy()
            weights -= (weights[least] / diagonal[least]) * along
            inverse -= along[:, None] * (along / diagonal[least])
            alive[least] = False
        return [int(j) for j in core[alive]]


def _rounding_of(inverse: NDArray[Any]) -> float:
    """What on the diagonal of the inverse of a Hessian is no more than rounding."""
    return 1e-14 * (float(inverse.diagonal().max(initial=0.0)) or 1.0)

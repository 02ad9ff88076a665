"""Convex refits of many supports in one call of a kernel, where columns are signs.

A support with all columns decided is a node of exact search with nothing left to branch on; its relaxation is
the refit itself and is solved to the end, with a bound that says how near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.selection.merge import sign_bytes
from cardboost.selection.selection_problem import SelectionProblem

Array = NDArray[np.float64]

FREE, IN, OUT = 0, 1, 2  # what a column may do in a node (kernels/nodes.h)
_STEPS = 60
_NEVER = 1e300  # no bound reaches it: refits go on until they have converged
_MANY = 64  # columns, beyond which only those of the supports are handed to the kernel
_LARGE = 64.0  # a weight so large is not refitted here where there is no box


def kernel_columns(merged: SelectionProblem) -> dict[str, Any]:
    """A problem over stored columns: the first arguments of kernels/nodes.cpp."""
    packed, p, k = sign_bytes(merged), merged.prices, merged.max_terms
    dense = None if packed is not None else np.ascontiguousarray(merged.pool.dense().T, dtype=np.float64)
    return {
        "loss": merged.risk.loss.code, "packed": packed, "dense": dense,
        "share": merged.risk.weights.normalised, "l1": p.l1, "l2": p.l2, "l0": p.l0, "upper": p.max_weight,
        "charged": p.charged.astype(np.uint8), "max_terms": -1 if k is None else k,
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class SignRefits:
    """Refits of one problem whose columns are signs. Its rows are distinct and sorted: in a fixed order."""

    problem: SelectionProblem
    columns: dict[str, Any]

    @classmethod
    def make(cls, merged: SelectionProblem) -> SignRefits | None:
        """None where the kernel does not take the problem."""
        if merged.limits is not None or merged.risk.loss.name not in ("exponential", "logistic"):
            return None
        if merged.pool.dense().dtype != np.int8 or merged.pool.n_columns == 0:
            return None
        columns = kernel_columns(merged)
        if columns["packed"] is None:
            return None
        return cls(merged, columns | {"upper": np.minimum(columns["upper"], _LARGE), "max_terms": -1})

    def solve(self, supports: Sequence[Sequence[int]], starts: Array, tol: float) -> list[Array | None]:
        """Weights of every support to a relative gap of ``tol``; None where that was not reached."""
        n, used = len(self.problem.prices), ~self.problem.prices.charged
        for support in supports:
            used[list(support)] = True
        if n <= _MANY or not 0 < 2 * np.count_nonzero(used) <= n:
            return self._solve(supports, starts, tol)
        which = np.flatnonzero(used)
        few = SignRefits.make(self.problem.part(which))
        assert few is not None
        places = [np.searchsorted(which, np.sort(list(support))).tolist() for support in supports]
        found = few._solve(places, np.ascontiguousarray(starts[:, which]), tol)
        return [None if own is None else _spread(own, which, n) for own in found]

    def _solve(self, supports: Sequence[Sequence[int]], starts: Array, tol: float) -> list[Array | None]:
        charged, box = self.problem.prices.charged, self.problem.prices.max_weight
        state = np.zeros((len(supports), len(charged)), dtype=np.int8)
        state[:, charged] = OUT
        for own, support in zip(state, supports, strict=True):
            own[list(support)] = IN
        bound, weights, _, value, *_ = _kernels.bound_nodes(
            **self.columns, state=state, start=starts, tau=np.zeros(len(state)), cutoff=_NEVER,
            max_steps=_STEPS, threads=self.problem.risk.threads,
        )  # fmt: skip
        close = value - bound <= tol * np.maximum(1e-300, np.abs(value))
        inside = ((weights < 0.99 * _LARGE) | (weights >= box)).all(axis=1)
        return [w if ok else None for w, ok in zip(weights, close & inside, strict=True)]


def _spread(weights: Array, which: NDArray[np.intp], n: int) -> Array:
    """Weights of some columns, over all ``n``."""
    wide = np.zeros(n)
    wide[which] = weights
    return wide

"""Regularisation and box of every column of a pool, and limits on features.

    min  sum s_i loss(F_i) + sum nu_j w_j + mu_j w_j^2 / 2 + lambda_j [w_j > 0],    0 <= w_j <= M_j

nu is ``l1``, mu is ``l2``, lambda is ``l0`` and M is ``max_weight``. With lambda > 0 the master solves the
convex relaxation: the cost of a column is linear up to a knee omega = min(sqrt(2 lambda / mu), M) and
quadratic beyond it (docs/mathematics.md, "Relaxation").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.problem.trace import Status

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prices:
    """Regularisation ``l1``, ``l2``, ``l0`` and box ``max_weight`` of every column of a pool.

    ``charged`` columns count towards ``max_terms``; the columns of the intercept do not.
    """

    l1: Array
    l2: Array
    l0: Array
    max_weight: Array
    charged: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.l1)

    def __getitem__(self, which: slice | NDArray[Any]) -> Prices:
        return Prices(
            self.l1[which], self.l2[which], self.l0[which], self.max_weight[which], self.charged[which]
        )

    @cached_property
    def knee(self) -> Array:
        """omega: the weight from which on the relaxation is the true cost."""
        with np.errstate(divide="ignore", invalid="ignore"):
            free = np.sqrt(2.0 * self.l0 / self.l2)
        free = np.where(self.l0 > 0, np.where(self.l2 > 0, free, np.inf), 0.0)
        return np.minimum(free, self.max_weight)

    @cached_property
    def slope(self) -> Array:
        """Cost per unit of weight up to the knee."""
        knee = self.knee
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where((self.l0 > 0) & (knee > 0), self.l0 / np.where(knee > 0, knee, 1.0), 0.0)
        finite_knee = np.where(np.isfinite(knee), knee, 0.0)
        return self.l1 + share + self.l2 * finite_knee * 0.5

    def relaxed_cost(self, w: Array) -> float:
        """Regularisation of the weights in the convex relaxation; the true one where l0 is 0."""
        over = np.maximum(0.0, w - np.where(np.isfinite(self.knee), self.knee, np.inf))
        return float(np.sum(self.slope * w + 0.5 * self.l2 * over * over))

    def cost(self, w: Array) -> float:
        """Regularisation of the weights."""
        return float(np.sum(self.l1 * w + 0.5 * self.l2 * w * w + np.where(w > 0, self.l0, 0.0)))

    def with_l0(self, l0: Array) -> Prices:
        """The same with another ``l0``."""
        return replace(self, l0=l0)

    def convex(self) -> Prices:
        """The same with ``l0`` of 0."""
        return replace(self, l0=np.zeros_like(self.l0))


@dataclass(frozen=True, eq=False)
class FeatureLimits:
    """Limits on the features in use.

    ``max_features``: how many there may be; None without a limit. ``costs``: what each feature adds to the
    objective, once, when a charged column looks at it; None where they are free. ``at_most_one_of``: groups
    of features, of each of which one at most is in use. ``must_include``: features that are in use.
    """

    max_features: int | None = None
    costs: Array | None = None
    at_most_one_of: tuple[tuple[int, ...], ...] = ()
    must_include: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.max_features is not None and self.max_features < 0:
            raise ValueError(f"max_features must be at least 0; got {self.max_features}.")
        if self.costs is not None and not (np.isfinite(self.costs) & (self.costs >= 0)).all():
            raise ValueError("costs must be finite and at least 0.")

    @classmethod
    def make(
        cls,
        max_features: int | None,
        costs: Array | None,
        at_most_one_of: Iterable[Iterable[int]] = (),
        must_include: Iterable[int] = (),
    ) -> FeatureLimits | None:
        """The limits, or None where nothing is limited and nothing costs."""
        costs = None if costs is None or not np.any(costs) else np.asarray(costs, dtype=np.float64)
        limits = cls(max_features, costs, tuple(map(tuple, at_most_one_of)), tuple(must_include))
        return None if costs is None and limits.free_choice else limits

    @property
    def free_choice(self) -> bool:
        """Whether any features may be in use together: there are costs at most."""
        return self.max_features is None and not self.at_most_one_of and not self.must_include

    def cost(self, features: NDArray[Any]) -> float:
        """Cost of columns of these features together; feature -1 stands for none."""
        if self.costs is None:
            return 0.0
        return float(np.sum(self.costs[np.unique(features[features >= 0])]))

    @cached_property
    def blocked(self) -> set[int]:
        """The features that share a group with one that has to be used."""
        must = set(self.must_include)
        return {f for group in self.at_most_one_of if must.intersection(group) for f in group} - must

    @cached_property
    def disjoint_groups(self) -> list[NDArray[np.intp]]:
        """The groups, each feature in the first that has it; without features that are decided already."""
        seen, groups = {*self.must_include, *self.blocked}, []
        for group in self.at_most_one_of:
            groups.append(np.array([f for f in group if f not in seen], dtype=np.intp))
            seen.update(group)
        return [group for group in groups if len(group)]

    def allow(self, features: NDArray[Any]) -> bool:
        """Whether a model may use columns of these features and no others."""
        used = set(features[features >= 0].tolist())
        return used.issuperset(self.must_include) and not self.crowded(used)

    def crowded(self, used: set[int]) -> bool:
        """Whether no model may use these features, whatever others it uses."""
        return self.surplus(used) > 0 or bool(self.rivals(used))

    def surplus(self, used: set[int]) -> int:
        """How many features there are too many, those included that have to be used."""
        most = self.max_features
        return 0 if most is None else max(0, len(used.union(self.must_include)) - most)

    def rivals(self, used: set[int]) -> set[int]:
        """Those of these features that share a group with another, or with one that has to be used."""
        every = used.union(self.must_include)
        shared = [every.intersection(group) for group in self.at_most_one_of]
        return {f for some in shared if len(some) > 1 for f in some}.difference(self.must_include)


@dataclass(frozen=True)
class PriceRule:
    """The same regularisation and box for every column of a dictionary, and the box of the intercept."""

    l1: float
    l2: float
    l0: float = 0.0
    max_weight: float = np.inf
    intercept_box: float = 30.0

    def over(self, pool: Any) -> Prices:
        """For the columns of a pool."""
        return self.prices(pool.n_columns, pool.n_free)

    def prices(self, n_columns: int, n_free: int) -> Prices:
        """For a pool whose first ``n_free`` columns are the intercept's, free but for their box."""
        charged = np.arange(n_columns) >= n_free
        l1, l2, l0 = (np.where(charged, float(price), 0.0) for price in (self.l1, self.l2, self.l0))
        return Prices(l1, l2, l0, np.where(charged, self.max_weight, self.intercept_box), charged)


@dataclass(frozen=True, eq=False)
class MasterSolution:
    """Weights over the pool, their objective and the lower bound that proves them."""

    weights: Array
    objective: float
    lower_bound: float
    status: Status
    n_iter: int

    @property
    def gap(self) -> float:
        """How far the objective can be from the optimum."""
        return self.objective - self.lower_bound

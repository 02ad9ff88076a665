"""The optimum of small selection problems by enumeration of the supports, with SciPy refits in the box."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
from scipy.optimize import minimize


class Enumeration:
    """All supports of a small problem. Columns that are not charged are always allowed."""

    def __init__(self, A, share, loss, l1, l2, l0, box, charged=None, groups=None, limits=None):
        self.A, self.share, self.loss = np.asarray(A, dtype=float), share, loss
        n = self.A.shape[1]
        self.l1, self.l2, self.l0, self.box = (
            np.broadcast_to(np.asarray(own, dtype=float), (n,)) for own in (l1, l2, l0, box)
        )
        self.charged = np.ones(n, dtype=bool) if charged is None else charged
        self.groups, self.limits = groups, limits

    def refit(self, support):
        """The least objective with these charged columns, each one paid for."""
        columns = sorted([*np.flatnonzero(~self.charged), *support])
        A, s = self.A[:, columns], self.share
        l1, l2 = self.l1[columns], self.l2[columns]

        def value(w):
            F = np.clip(A @ w, -200.0, 200.0)
            e = np.exp(-F)
            if self.loss == "logistic":
                rows, slope = np.log1p(e), -e / (1.0 + e)
            else:
                rows, slope = e, -e
            return s @ rows + l1 @ w + 0.5 * (l2 * w) @ w, A.T @ (s * slope) + l1 + l2 * w

        paid = float(self.l0[list(support)].sum())
        if not columns:
            return value(np.zeros(0))[0]
        limits = [(0.0, b if math.isfinite(b) else None) for b in self.box[columns]]
        fit = minimize(value, np.zeros(len(columns)), jac=True, bounds=limits, method="L-BFGS-B",
                       options={"ftol": 1e-13, "gtol": 1e-8})  # fmt: skip
        return float(fit.fun) + paid

    def best(self, k):
        """The least objective with at most k charged columns; k None: any number."""
        if self.limits is not None:
            return self._best_of_features(k)
        charged = [int(j) for j in np.flatnonzero(self.charged & (self.box > 0))]
        k = len(charged) if k is None else min(k, len(charged))
        if not self.l0[charged].any():
            return min(self.refit(support) for support in itertools.combinations(charged, k))
        least = replace_l0(self).refit(charged)
        found = self.refit(())
        prices = np.sort(self.l0[charged])
        for size in range(1, k + 1):
            if least + prices[:size].sum() > found:
                break
            for support in itertools.combinations(charged, size):
                if least + self.l0[list(support)].sum() <= found:
                    found = min(found, self.refit(support))
        return found

    def _best_of_features(self, k):
        """The least over all sets of features that the limits allow, each with what it costs."""
        usable = sorted({int(g) for g in self.groups[self.charged & (self.box > 0)]})
        most, costs = self.limits.max_features, self.limits.costs
        most = len(usable) if most is None else min(most, len(usable))
        found = math.inf
        for size in range(0 if costs is not None else most, most + 1):
            for chosen in itertools.combinations(usable, size):
                own = copy.copy(self)
                own.limits = None
                own.box = np.where(self.charged & ~np.isin(self.groups, chosen), 0.0, self.box)
                paid = 0.0 if costs is None else float(costs[list(chosen)].sum())
                found = min(found, own.best(k) + paid)
        return found


def replace_l0(problem):
    other = copy.copy(problem)
    other.l0 = np.zeros_like(problem.l0)
    return other


def all_stumps(X, sign, by_feature=False):
    """Every distinct stump that is not constant, y multiplied in, and its feature.

    ``by_feature``: equal stumps of different features are different ones.
    """
    columns = {}
    for j in range(X.shape[1]):
        values = np.unique(X[:, j][~np.isnan(X[:, j])])
        for cut, left in itertools.product(values, (True, False)):
            h = np.where(np.isnan(X[:, j]), left, X[:, j] <= cut) * 2.0 - 1.0
            if abs(h.sum()) < len(h):
                for own in (h, -h):
                    columns.setdefault((j if by_feature else -1, *own), (own, j))
    A = np.array([own for own, _ in columns.values()]).T * sign[:, None]
    return A, np.array([j for _, j in columns.values()], dtype=np.int32)


def tangled(rng, A):
    """With equal, opposite and nearly equal columns, and equal rows, now and then."""
    m = len(A)
    if rng.random() < 0.5:
        A[:, 1], A[:, 2] = A[:, 0], -A[:, 0]
    if rng.random() < 0.5:
        A[:, 3] = A[:, 4]
        A[0, 3] = -A[0, 3]
    if rng.random() < 0.3:
        A[m // 2 :] = A[: m - m // 2]
    return A

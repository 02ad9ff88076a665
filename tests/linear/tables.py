"""Tables for the tests of linear models: dense, sparse, collinear, separable, of any scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def table(kind: str, seed: int = 0, rows: int = 120, columns: int = 12) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows, labels of two classes and weights."""
    rng = np.random.default_rng(seed)
    X: Any = rng.normal(size=(rows, columns)) + 0.3
    score = X[:, 0] - X[:, 1 % columns] + 0.5 * X[:, 2 % columns] + rng.normal(size=rows)
    y = (score > 0.2).astype(int)
    y[:2] = 0, 1
    if kind == "collinear":
        X = np.hstack([X, X[:, :3], X[:, :1] + X[:, 1:2]])
    elif kind == "separable":
        X[:, 0] = np.where(y == 1, 1.0, -1.0) * (0.1 + np.abs(X[:, 0]))
    elif kind == "scaled":
        X = X * 10.0 ** rng.integers(-2, 3, columns)
    elif kind == "columns":
        X = np.asfortranarray(X)
    elif kind in ("csr", "csc"):
        X = X * (rng.random(X.shape) < 0.3)
        X = sparse.csr_array(X) if kind == "csr" else sparse.csc_array(X)
    elif kind == "wide":
        X = np.hstack([X, rng.normal(size=(rows, 2 * rows))])
    weight = rng.integers(0, 4, rows).astype(float)
    weight[:2] = 1.0
    return X, y, weight


KINDS = ["dense", "columns", "csr", "csc", "collinear", "separable", "wide"]


def dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def logistic_objective(X: Any, y: Any, weight: Any, coef: Any, b: float, l1: float, l2: float) -> float:
    sign, coef = np.where(np.asarray(y) == 1, 1.0, -1.0), np.ravel(coef)
    loss = np.logaddexp(0.0, -sign * (dense(X) @ coef + b))
    return float(np.average(loss, weights=weight)) + l1 * np.abs(coef).sum() + l2 / 2 * float(coef @ coef)

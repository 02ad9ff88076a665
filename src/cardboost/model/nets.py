"""A finished sum of networks with one hidden layer. Nothing here trains.

score(x) = intercept + sum_k gamma_k (act(z hidden_k + bias_k) out_k + offset_k),    z = (x - mean) / scale
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.model import checks
from cardboost.model.checks import MAX_FEATURES, fault
from cardboost.model.columns import read_columns
from cardboost.model.ensemble import Kind
from cardboost.model.fitted_learner import ACTIVATIONS, activated

Array = NDArray[np.float64]

CLASSIFICATION = ("logistic", "cross_entropy", "squared", "own")
REGRESSION = ("squared", "absolute", "huber", "own")
_ROWS = 4096  # that go through at a time, so that activations stay small


@dataclass(frozen=True, eq=False)
class Net:
    """One network and its weight: hidden (inputs, units), bias (units), out (units, outputs), offset."""

    gamma: float
    hidden: Array
    bias: Array
    out: Array
    offset: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", _finite("gamma", self.gamma))
        for name, dimensions in (("hidden", 2), ("bias", 1), ("out", 2), ("offset", 1)):
            object.__setattr__(self, name, _numbers(name, getattr(self, name), dimensions))
        units = len(self.bias)
        if not units:
            raise fault("bias", "at least one unit", [])
        if self.hidden.shape[1] != units:
            raise ValueError(f"hidden: expected {units} numbers per input, found {self.hidden.shape[1]}")
        if len(self.out) != units:
            raise ValueError(f"out: expected one row for each of {units} units, found {len(self.out)}")
        if self.out.shape[1] != len(self.offset):
            raise ValueError(f"offset: expected {self.out.shape[1]} numbers, found {len(self.offset)}")

    def to_dict(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("hidden", "bias", "out", "offset")}
        return {"gamma": self.gamma, **arrays}


@dataclass(frozen=True, eq=False)
class NetEnsemble:
    """A classifier or regressor made of networks.

    Two classes have one score, above 0 for ``classes[1]``, or two; more have one each, and the highest
    wins, of equal ones the first. A regressor predicts its scores, one per output.
    """

    loss: str
    n_features: int
    feature_names: tuple[str, ...] | None
    classes: tuple[Any, ...] | None
    activation: str
    mean: Array
    scale: Array
    intercept: Array
    nets: tuple[Net, ...]

    def __post_init__(self) -> None:
        known = REGRESSION if self.classes is None else CLASSIFICATION
        if not isinstance(self.loss, str) or self.loss not in known:
            raise fault("loss", " or ".join(map(repr, known)), self.loss)
        if not isinstance(self.activation, str) or self.activation not in ACTIVATIONS:
            raise fault("activation", " or ".join(map(repr, ACTIVATIONS)), self.activation)
        n = checks.integer("n_features", self.n_features, "a number of features")
        if not 1 <= n <= MAX_FEATURES:
            raise fault("n_features", f"a number from 1 to {MAX_FEATURES}", self.n_features)
        classes = self.classes
        if classes is not None:
            classes = checks.class_labels(classes, 2, None, "two labels or more")
        mean, scale = _numbers("mean", self.mean, 1), _numbers("scale", self.scale, 1)
        for name, own in (("mean", mean), ("scale", scale)):
            if len(own) != n:
                raise ValueError(f"{name}: expected {n} numbers, one per feature, found {len(own)}")
        if (scale <= 0.0).any():
            raise fault("scale", "numbers above 0", float(scale.min()))
        intercept = _numbers("intercept", self.intercept, 1)
        m = len(intercept)
        if classes is not None and m != len(classes) and not (m == 1 and len(classes) == 2):
            raise ValueError(f"intercept: expected one number for each of {len(classes)} classes, found {m}")
        if not m:
            raise fault("intercept", "one number or more", [])
        if not isinstance(self.nets, tuple | list):
            raise fault("nets", "a list of nets", self.nets)
        for k, net in enumerate(self.nets):
            if not isinstance(net, Net):
                raise fault(f"nets[{k}]", "a net", net)
            if len(net.hidden) != n:
                raise ValueError(
                    f"nets[{k}].hidden: expected {n} rows, one per feature, found {len(net.hidden)}"
                )
            if len(net.offset) != m:
                raise ValueError(f"nets[{k}].offset: expected {m} numbers, found {len(net.offset)}")
        for name, value in (
            ("n_features", n), ("feature_names", checks.feature_names(self.feature_names, n)),
            ("classes", classes), ("mean", mean), ("scale", scale), ("intercept", intercept),
            ("nets", tuple(self.nets)),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @property
    def kind(self) -> Kind:
        if self.classes is None:
            return "regression"
        return "binary" if len(self.classes) == 2 else "multiclass"

    @property
    def n_terms(self) -> int:
        """Networks."""
        return len(self.nets)

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    @cached_property
    def features_used(self) -> tuple[int, ...]:
        """All of them, unless there is no net."""
        return tuple(range(self.n_features)) if self.nets else ()

    def feature_name(self, feature: int) -> str:
        return f"x{feature}" if self.feature_names is None else self.feature_names[feature]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ``model.io.from_dict`` is the way back."""
        return {
            "loss": self.loss,
            "n_features": self.n_features,
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "classes": None if self.classes is None else list(self.classes),
            "activation": self.activation,
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "intercept": self.intercept.tolist(),
            "nets": [net.to_dict() for net in self.nets],
        }

    # ------------------------------------------------------------------------------------ prediction

    def scores(self, X: Any) -> Array:
        """(rows, outputs)."""
        table = self._table(X)
        out = np.tile(self.intercept, (len(table), 1))
        for begin in range(0, len(table), _ROWS):
            part = slice(begin, begin + _ROWS)
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is said below
                Z = (table[part] - self.mean) / self.scale
                for net in self.nets:
                    hidden = activated(Z @ net.hidden + net.bias, self.activation)
                    out[part] += net.gamma * (hidden @ net.out + net.offset)
        if not np.isfinite(out).all():
            raise ValueError("X contains NaN, infinity or numbers too large for the model.")
        return out

    def decision_function(self, X: Any, threads: int = 1) -> Array:
        """One score per row where there is one output or there are two classes, else (rows, outputs)."""
        return as_decision(self.scores(X), self.classes)

    def contributions(self, X: Any, threads: int = 1) -> Array:
        raise ValueError("A network has no part per feature: its features act together.")

    def predict_proba(self, X: Any, threads: int = 1) -> Array:
        """Probabilities of the classes: (rows, classes). A regressor has none."""
        if self.classes is None:
            raise ValueError(f"The {self.loss} loss of a regressor predicts numbers: there are no classes.")
        return probabilities(self.scores(X), self.loss)

    def predict(self, X: Any, threads: int = 1) -> NDArray[Any]:
        """The label of every row; of a regressor its number or numbers."""
        score = self.decision_function(X)
        if self.classes is None:
            return score
        at = (score > 0).astype(np.intp) if score.ndim == 1 else np.argmax(score, axis=1)
        return np.asarray(checks.label_array(self.classes)[at])

    def _table(self, X: Any) -> Array:
        read = read_columns(X, self.feature_names, self.n_features, tuple(range(self.n_features)), {})
        table = np.empty((read.n_rows, self.n_features))
        for j in range(self.n_features):
            table[:, j] = read.values[j]
        return table


@dataclass(frozen=True, eq=False)
class LearnerSum:
    """The same sum with regressors of the user's: ``outputs(learner, X)`` is (rows, outputs). Not for
    files."""

    loss: str
    n_features: int
    classes: tuple[Any, ...] | None
    intercept: Array
    learners: tuple[Any, ...]
    gammas: Array
    outputs: Callable[[Any, Any, int], Array]

    @property
    def n_terms(self) -> int:
        return len(self.learners)

    def scores(self, X: Any) -> Array:
        total = np.tile(self.intercept, (len(X), 1))
        for learner, gamma in zip(self.learners, self.gammas, strict=True):
            total += gamma * self.outputs(learner, X, len(self.intercept))
        return total

    def to_dict(self) -> dict[str, Any]:
        raise ValueError("Only built-in networks can be written to a file, not learners of your own.")


def as_decision(scores: Array, classes: tuple[Any, ...] | None) -> Array:
    """Scores in the shapes that scikit-learn knows."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    if classes is not None and len(classes) == 2:
        return np.asarray(scores[:, 1] - scores[:, 0])
    return scores


def probabilities(scores: Array, loss: str) -> Array:
    """Probabilities of the classes from the outputs; a single one is that of the second of two classes."""
    if loss == "own":
        raise ValueError("A loss of one's own has no probabilities; take decision_function.")
    if loss == "cross_entropy":
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
    elif loss == "logistic":
        if scores.shape[1] == 1:
            return np.column_stack([_logistic(-scores[:, 0]), _logistic(scores[:, 0])])
        share = _logistic(scores)
    else:  # squared, on columns of 0 and 1
        share = np.clip(scores, 0.0, 1.0)
    total = share.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, share / np.where(total > 0.0, total, 1.0), 1.0 / share.shape[1])


def _logistic(f: Array) -> Array:
    e = np.exp(-np.abs(f))
    return np.where(f >= 0.0, 1.0 / (1.0 + e), e / (1.0 + e))


def _numbers(field: str, value: Any, dimensions: int) -> Array:
    """Finite numbers in a list, or in a list of lists of one length."""
    if isinstance(value, np.ndarray):
        if value.ndim != dimensions or value.dtype.kind != "f" or not np.isfinite(value).all():
            raise fault(field, "finite numbers", value)
        return np.array(value, dtype=np.float64)
    if not isinstance(value, list | tuple):
        raise fault(field, "a list of numbers" if dimensions == 1 else "a list of lists of numbers", value)
    if dimensions == 1:
        return np.array([_finite(f"{field}[{k}]", own) for k, own in enumerate(value)], dtype=np.float64)
    rows = [_numbers(f"{field}[{k}]", own, 1) for k, own in enumerate(value)]
    if not rows:
        raise fault(field, "at least one row", value)
    for k, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(f"{field}[{k}]: expected {len(rows[0])} numbers, found {len(row)}")
    return np.array(rows)


def _finite(field: str, value: Any) -> float:
    number = checks.number(field, value, "a finite number")
    if math.isinf(number):
        raise fault(field, "a finite number", value)
    return number

"""A finished sum of networks with one hidden layer. Nothing here trains.

score(x) = intercept + sum_k gamma_k (act(z hidden_k + bias_k) out_k + offset_k),    z = (x - mean) / scale
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cardboost.model import schema
from cardboost.model.base import Array, TableModel, class_probabilities
from cardboost.model.fitted_learner import ACTIVATIONS, activated
from cardboost.model.schema import Fault, Record, expected, form

CLASSIFICATION = ("logistic", "cross_entropy", "squared", "own")
REGRESSION = ("squared", "absolute", "huber", "own")
_ROWS = 4096  # that go through at a time, so that activations stay small


def _array(dimensions: int) -> dict[str, Any]:
    return form(schema.finite_array(dimensions), write=np.ndarray.tolist)


@dataclass(frozen=True, eq=False)
class Net(Record):
    """One network and its weight: hidden (inputs, units), bias (units), out (units, outputs), offset."""

    gamma: float = field(metadata=form(schema.FINITE))
    hidden: Array = field(metadata=_array(2))
    bias: Array = field(metadata=_array(1))
    out: Array = field(metadata=_array(2))
    offset: Array = field(metadata=_array(1))

    def _check(self) -> None:
        units = len(self.bias)
        if not units:
            raise expected("at least one unit", [], "bias")
        if self.hidden.shape[1] != units:
            raise Fault(f"expected {units} numbers per input, found {self.hidden.shape[1]}", "hidden")
        if len(self.out) != units:
            raise Fault(f"expected one row for each of {units} units, found {len(self.out)}", "out")
        if self.out.shape[1] != len(self.offset):
            raise Fault(f"expected {self.out.shape[1]} numbers, found {len(self.offset)}", "offset")


@dataclass(frozen=True, eq=False)
class NetEnsemble(TableModel):
    """A classifier or regressor made of networks.

    Two classes have one score, above 0 for ``classes[1]``, or two; more have one each, and the highest
    wins, of equal ones the first. A regressor predicts its scores, one per output.
    """

    loss: str = field(metadata=form(None))  # it depends on the classes
    n_features: int = field(metadata=form(schema.N_FEATURES))
    feature_names: tuple[str, ...] | None = field(metadata=form(schema.distinct_names))
    classes: tuple[Any, ...] | None = field(
        metadata=form(schema.maybe(schema.class_labels("two labels or more", 2)))
    )
    activation: str = field(metadata=form(schema.one_of(ACTIVATIONS)))
    mean: Array = field(metadata=_array(1))
    scale: Array = field(metadata=_array(1))
    intercept: Array = field(metadata=_array(1))
    nets: tuple[Net, ...] = field(metadata=schema.records(Net, "a net"))

    def _check(self) -> None:
        with schema.under("loss"):
            schema.one_of(REGRESSION if self.classes is None else CLASSIFICATION)(self.loss)
        self._check_names()
        inputs, outputs = self.n_features, len(self.intercept)
        for name in ("mean", "scale"):
            count = len(getattr(self, name))
            if count != inputs:
                raise Fault(f"expected {inputs} numbers, one per feature, found {count}", name)
        if (self.scale <= 0.0).any():
            raise expected("numbers above 0", float(self.scale.min()), "scale")
        classes = self.classes
        if classes is not None and outputs != len(classes) and (outputs, len(classes)) != (1, 2):
            problem = f"expected one number for each of {len(classes)} classes, found {outputs}"
            raise Fault(problem, "intercept")
        if not outputs:
            raise expected("one number or more", [], "intercept")
        for k, net in enumerate(self.nets):
            rows = len(net.hidden)
            if rows != inputs:
                raise Fault(f"expected {inputs} rows, one per feature, found {rows}", "nets", k, "hidden")
            if len(net.offset) != outputs:
                problem = f"expected {outputs} numbers, found {len(net.offset)}"
                raise Fault(problem, "nets", k, "offset")

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

    # ------------------------------------------------------------------------------------ prediction

    def scores(self, X: Any) -> Array:
        """(rows, outputs)."""
        columns = self.read(X)
        table = np.zeros((columns.n_rows, self.n_features))
        for feature, values in columns.values.items():
            table[:, feature] = values
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
        return class_probabilities(self.scores(X), self.loss)


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

"""The small intermediate form that all exporters read, so that none of them looks into a model.

:class:`Plan` is for models of stumps. A model has one score, or one per class. Every used feature is an
input, and its contribution to all scores at once is one step function. Scores add the inputs in the order of
the features, beginning with the intercept. :class:`NetPlan` is for sums of networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cardboost.model.ensemble import LOG_ODDS, Ensemble
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.nets import NetEnsemble

if TYPE_CHECKING:
    from cardboost.model.terms import Categories, StepFunction

Array = NDArray[np.float64]
Levels = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Steps:
    """``levels[k]``, one value per score, holds for cuts[k-1] < x <= cuts[k], ``missing`` for no value."""

    cuts: tuple[float, ...]
    levels: Array  # (cuts + 1, scores)
    missing: Array  # (scores,)

    def merged(self) -> Steps:
        """Without the cuts between equal levels."""
        ends = [k for k in range(len(self.cuts)) if (self.levels[k] != self.levels[k + 1]).any()]
        rows = [*ends, len(self.cuts)]
        return Steps(tuple(self.cuts[k] for k in ends), self.levels[rows], self.missing)

    def restricted(self, at_most: Callable[[float], float], highest: float) -> Steps:
        """The same function where x takes fewer values.

        ``at_most`` returns the largest of them that is not above a cut, or minus infinity; ``highest`` is the
        largest of all. Intervals without a value are dropped.
        """
        cuts: list[float] = []
        rows: list[int] = []
        for k, cut in enumerate(self.cuts):
            value = at_most(cut)
            if value >= highest:
                rows.append(k)
                break
            if value > -math.inf and (not cuts or value > cuts[-1]):
                cuts.append(value)
                rows.append(k)
        else:
            rows.append(len(self.cuts))
        return Steps(tuple(cuts), self.levels[rows], self.missing).merged()

    def never_missing(self) -> Steps:
        """The same function where a missing value counts as the lowest of all numbers."""
        return Steps(self.cuts, self.levels, self.levels[0])

    def chain(self) -> tuple[list[tuple[str, float, Array]], Array]:
        """Comparisons to be made one after the other, each with its level, and the level if none is true.

        No comparison is true for a missing value.
        """
        up = [("<=", cut, row) for cut, row in zip(self.cuts, self.levels, strict=False)]
        if not self.cuts or (self.missing == self.levels[-1]).all():
            return up, self.missing
        if (self.missing == self.levels[0]).all():
            down = zip(self.cuts, self.levels[1:], strict=True)
            return [(">", cut, row) for cut, row in reversed(list(down))], self.missing
        return [*up, (">", self.cuts[-1], self.levels[-1])], self.missing

    def values(self) -> Array:
        """All contributions that the input can make: distinct rows."""
        return np.unique(np.vstack([self.levels, self.missing]), axis=0)


def add_up(
    start: NDArray[Any], steps: Sequence[Steps], levels: Sequence[Levels], table: Array
) -> NDArray[Any]:
    """The sums of rows, (rows, scores). ``levels``: levels and missing of every step, or their points."""
    total = np.tile(start, (len(table), 1))
    for column, step, (values, missing) in zip(table.T, steps, levels, strict=True):
        index = np.minimum(np.searchsorted(np.array(step.cuts), column), len(step.cuts))
        total = total + np.where(np.isnan(column)[:, None], missing, values[index])
    return total


@dataclass(frozen=True, eq=False)
class Input:
    """A used feature: a number with its steps, or labels with one row of ``levels`` for every code."""

    feature: int
    name: str
    cuts: tuple[float, ...]
    levels: Array
    missing: Array
    categories: Categories | None = None

    def steps(self) -> Steps:
        """The step function of a number; of labels, of their codes 0, 1, ...: any other code is missing."""
        if self.categories is None:
            return Steps(self.cuts, self.levels, self.missing).merged()
        cuts = tuple(code - 0.5 for code in range(len(self.levels) + 1))
        return Steps(cuts, np.vstack([self.missing, self.levels, self.missing]), self.missing).merged()

    def labels(self) -> list[tuple[Any, Array]]:
        """Every label of a categorical feature with its levels."""
        assert self.categories is not None
        labels = (*self.categories.kept, *self.categories.rare)
        return [(label, self.levels[self.categories.code(label)]) for label in labels]


@dataclass(frozen=True, eq=False)
class Plan:
    """A model of stumps as intercepts, one per score, and inputs."""

    loss: str
    classes: tuple[Any, ...] | None
    n_features: int
    named: bool
    intercepts: Array
    inputs: tuple[Input, ...]
    unit: float | None = None  # all weights are whole multiples of it

    @classmethod
    def of(cls, ensemble: Any) -> Plan:
        """The plan of a model of stumps; anything else is refused."""
        if not isinstance(ensemble, Ensemble | MulticlassEnsemble):
            raise ValueError(
                "ensemble: only models of stumps can be exported in this format; got "
                f"{type(ensemble).__name__}."
            )
        members = ensemble.ensembles if isinstance(ensemble, MulticlassEnsemble) else (ensemble,)
        by_feature: dict[int, list[tuple[int, StepFunction]]] = {j: [] for j in ensemble.features_used}
        for k, member in enumerate(members):
            for step in member.step_functions():
                by_feature[step.feature].append((k, step))
        return cls(
            ensemble.loss,
            ensemble.classes,
            ensemble.n_features,
            ensemble.feature_names is not None,
            np.array([member.intercept for member in members]),
            tuple(
                _join(feature, steps, len(members), ensemble.categories.get(feature))
                for feature, steps in by_feature.items()
            ),
            ensemble.unit if isinstance(ensemble, Ensemble) else None,
        )

    @property
    def n_scores(self) -> int:
        return len(self.intercepts)

    @property
    def decides(self) -> bool:
        """Whether scores stand for classes; of a regressor they are the predictions."""
        return self.classes is not None

    @property
    def probability_factor(self) -> float | None:
        """f in the probability 1 / (1 + exp(-f score)) of a class."""
        return LOG_ODDS.get(self.loss)

    def description(self) -> str:
        """The model in one sentence, for a comment."""
        inputs = f"{len(self.inputs)} of {self.n_features} features"
        if self.classes is None:
            return f"A regressor on {inputs}."
        return f"A classifier for {len(self.classes)} classes on {inputs}, {self.loss} loss."


def _join(
    feature: int, steps: Sequence[tuple[int, StepFunction]], n_scores: int, categories: Categories | None
) -> Input:
    """The step functions of one feature for several scores as one; scores without one get 0 from it."""
    cuts = sorted({cut for _, step in steps for cut in step.cuts})
    levels = np.zeros((len(cuts) + 1, n_scores))
    missing = np.zeros(n_scores)
    for k, step in steps:
        index = np.searchsorted(np.array(step.cuts), np.array([*cuts, math.inf]), side="left")
        levels[:, k] = np.array(step.levels)[index]
        missing[k] = step.missing
    return Input(feature, steps[0][1].name, tuple(cuts), levels, missing, categories)


@dataclass(frozen=True, eq=False)
class NetPlan:
    """A sum of networks as one network: all hidden units side by side, gammas and offsets multiplied in.

    score(x) = intercept + act(z hidden + bias) out,    z = (x - mean) / scale
    """

    loss: str
    classes: tuple[Any, ...] | None
    feature_names: tuple[str, ...]
    activation: str
    mean: Array
    scale: Array
    hidden: Array
    bias: Array
    out: Array
    intercept: Array

    @staticmethod
    def fits(ensemble: Any) -> bool:
        """Whether a model is a sum of networks."""
        return isinstance(ensemble, NetEnsemble)

    @classmethod
    def of(cls, ensemble: NetEnsemble) -> NetPlan:
        """The plan of a model; without any net, one unit that adds nothing."""
        nets, n, m = ensemble.nets, ensemble.n_features, ensemble.n_outputs
        hidden, bias, out = np.zeros((n, 1)), np.zeros(1), np.zeros((1, m))
        intercept = ensemble.intercept
        if nets:
            hidden = np.concatenate([net.hidden for net in nets], axis=1)
            bias = np.concatenate([net.bias for net in nets])
            out = np.concatenate([net.gamma * net.out for net in nets])
            intercept = intercept + sum(net.gamma * net.offset for net in nets)
        names = tuple(ensemble.feature_name(j) for j in range(n))
        return cls(
            ensemble.loss, ensemble.classes, names, ensemble.activation, ensemble.mean, ensemble.scale,
            hidden, bias, out, intercept,
        )  # fmt: skip

    @property
    def n_outputs(self) -> int:
        return self.out.shape[1]

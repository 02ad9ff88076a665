"""The small intermediate form of a model of stumps, which all exporters read.

A model has one score, or one per class. Every used feature is an input, and its contribution to all scores at
once is one step function. Scores add the inputs in the order of the features, beginning with the intercept.

The plan of a scorecard is in whole points, as on paper: ``intercepts`` is what every case begins with, the
tables of the inputs are the points of the lines, both of whole numbers, and a score is the total. For two
classes ``decision`` says which scores mean the second one, and ``log_odds`` what scores mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cardboost.model.ensemble import LOG_ODDS, Ensemble
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.scorecard import Scorecard

if TYPE_CHECKING:
    from cardboost.model.terms import Categories, StepFunction

Array = NDArray[np.float64]


def odd_part(value: float) -> tuple[int, int]:
    """k and e with value = k * 2**e and k odd, of a number other than 0."""
    top, bottom = value.as_integer_ratio()
    power = top & -top
    return top // power, power.bit_length() - bottom.bit_length()


def check_text(text: str, what: str, format: str) -> str:
    """Refuse text that a format cannot hold."""
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise ValueError(f"{what}: {text!r} holds a character that {format} cannot.")
    return text


def check_output(plan: Plan, output: Any) -> None:
    """Refuse what an exporter cannot give: scores of any model, a class and a probability of two classes."""
    if output not in ("score", "class", "probability"):
        raise ValueError(f"output: expected 'score', 'class' or 'probability', found {output!r}.")
    if output != "score" and plan.classes is None:
        raise ValueError(f"output: {output!r} needs a classifier.")
    if output != "score" and plan.n_scores > 1:
        raise ValueError(f"output: {output!r} needs a model for two classes; several have one score each.")
    if output == "probability" and plan.log_odds is None:
        raise ValueError(f"output: scores of the {plan.loss} loss are no log-odds, so there is no formula.")


@dataclass(frozen=True, eq=False)
class Steps:
    """``levels[k]``, one value per score, holds for cuts[k-1] < x <= cuts[k], ``missing`` for no value."""

    cuts: tuple[float, ...]
    table: NDArray[Any]  # (cuts + 2, scores): the levels, then the values of missing

    @property
    def levels(self) -> NDArray[Any]:
        return self.table[:-1]

    @property
    def missing(self) -> NDArray[Any]:
        return self.table[-1]

    def of_score(self, k: int) -> Steps:
        """The steps of one score alone."""
        return Steps(self.cuts, self.table[:, [k]]).merged()

    def merged(self) -> Steps:
        """Without the cuts between equal levels."""
        ends = [k for k in range(len(self.cuts)) if (self.levels[k] != self.levels[k + 1]).any()]
        return Steps(tuple(self.cuts[k] for k in ends), self.table[[*ends, len(self.cuts), -1]])

    def restricted(self, at_most: Callable[[float], float], highest: float) -> Steps:
        """The same function where x takes fewer values.

        ``at_most`` returns the largest of them that is not above a cut, or minus infinity; ``highest`` is the
        largest of all. Intervals without a value are dropped.
        """
        first: dict[float, int] = {}  # the interval that ends at a value
        for k, cut in enumerate(self.cuts):
            first.setdefault(min(at_most(cut), highest), k)
        first.setdefault(highest, len(self.cuts))
        first.pop(-math.inf, None)
        *cuts, _ = first
        return Steps(tuple(cuts), self.table[[*first.values(), -1]]).merged()

    def never_missing(self) -> Steps:
        """The same function where a missing value counts as the lowest of all numbers."""
        return Steps(self.cuts, np.vstack([self.levels, self.levels[0]]))

    def missing_first(self, cut: float) -> Steps:
        """The same function where missing values are those up to a cut below all numbers."""
        return Steps((cut, *self.cuts), np.vstack([self.missing, self.table])).merged()

    def chain(self) -> list[tuple[str, float, Array]]:
        """Comparisons to be made one after the other, each with its level; ``missing`` holds if none is true.

        No comparison is true for a missing value.
        """
        up = [("<=", cut, row) for cut, row in zip(self.cuts, self.levels, strict=False)]
        if not self.cuts or (self.missing == self.levels[-1]).all():
            return up
        if (self.missing == self.levels[0]).all():
            down = zip(self.cuts, self.levels[1:], strict=True)
            return [(">", cut, row) for cut, row in reversed(list(down))]
        return [*up, (">", self.cuts[-1], self.levels[-1])]


def add_up(start: NDArray[Any], steps: Sequence[Steps], rows: Array) -> NDArray[Any]:
    """The sums of rows, (rows, scores)."""
    total = np.tile(start, (len(rows), 1))
    for column, step in zip(rows.T, steps, strict=True):
        index = np.minimum(np.searchsorted(np.array(step.cuts), column), len(step.cuts))
        total = total + step.table[np.where(np.isnan(column), -1, index)]
    return total


@dataclass(frozen=True, eq=False)
class Input(Steps):
    """A used feature: a number with its steps, or labels with one row of ``levels`` for every code."""

    feature: int
    name: str
    categories: Categories | None = None

    def steps(self) -> Steps:
        """The step function of a number; of labels, of their codes 0, 1, ...: any other code is missing."""
        if self.categories is None:
            return self.merged()
        cuts = tuple(code - 0.5 for code in range(len(self.levels) + 1))
        return Steps(cuts, np.vstack([self.missing, self.table, self.missing])).merged()

    def labels(self) -> list[tuple[Any, Array]]:
        """Every label of a categorical feature with its levels."""
        assert self.categories is not None
        labels = (*self.categories.kept, *self.categories.rare)
        return [(label, self.levels[self.categories.code(label)]) for label in labels]

    @classmethod
    def join(
        cls, feature: int, steps: Sequence[tuple[int, StepFunction]], n_scores: int, categories: Any
    ) -> Input:
        """The step functions of one feature, each with the index of its score; other scores get 0."""
        cuts = sorted({cut for _, step in steps for cut in step.cuts})
        table = np.zeros((len(cuts) + 2, n_scores))
        for k, step in steps:
            index = np.searchsorted(np.array(step.cuts), np.array([*cuts, math.inf]), side="left")
            table[:, k] = [*np.array(step.levels)[index], step.missing]
        return cls(tuple(cuts), table, feature, steps[0][1].name, categories)


@dataclass(frozen=True, eq=False)
class Plan:
    """A model of stumps as intercepts, one per score, and inputs."""

    loss: str
    classes: tuple[Any, ...] | None
    n_features: int
    named: bool
    intercepts: NDArray[Any]  # whole numbers in a plan of whole points
    inputs: tuple[Input, ...]
    unit: float | None = None  # all weights are whole multiples of it
    threshold: float = 0.0  # a score above it means the second of two classes
    card: Scorecard | None = None  # in whole points: the scorecard

    @classmethod
    def of(cls, ensemble: Any) -> Plan:
        """The plan of a model of stumps, in whole points that of a scorecard; anything else is refused."""
        if isinstance(ensemble, Scorecard):
            return cls._of_card(ensemble)
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
                Input.join(feature, steps, len(members), ensemble.categories.get(feature))
                for feature, steps in by_feature.items()
            ),
            ensemble.unit if isinstance(ensemble, Ensemble) else None,
            ensemble.threshold,
        )

    @classmethod
    def _of_card(cls, card: Scorecard) -> Plan:
        model = card.ensemble
        joined = [
            Input.join(step.feature, [(0, step)], 1, model.categories.get(step.feature))
            for step in card.step_functions()
        ]
        return cls(
            model.loss,
            model.classes,
            model.n_features,
            model.feature_names is not None,
            np.array([card.start]),
            tuple(replace(source, table=np.rint(source.table).astype(np.int64)) for source in joined),
            card=card,
        )

    @property
    def n_scores(self) -> int:
        return len(self.intercepts)

    @property
    def in_points(self) -> bool:
        """Whether scores are totals of whole points."""
        return self.card is not None

    @property
    def decides(self) -> bool:
        """Whether scores stand for classes; of a regressor they are the predictions."""
        return self.classes is not None

    @property
    def decision(self) -> tuple[str, float | int]:
        """How a score is compared, and with what: where it holds, the second of two classes is meant."""
        return (">", self.threshold) if self.card is None else (">=", self.card.threshold)

    @property
    def log_odds(self) -> tuple[float, float] | None:
        """(a, b) with log-odds of a + b score for the second class; None if scores are no log-odds.

        The probability is 1 / (1 + exp(-(a + b score))).
        """
        if self.card is not None:
            zero = float(self.card.log_odds(0))
            return zero, LOG_ODDS[self.loss] * self.card.point
        return (0.0, LOG_ODDS[self.loss]) if self.loss in LOG_ODDS else None

    def description(self) -> str:
        """The model in one sentence, for a comment."""
        inputs = f"{len(self.inputs)} of {self.n_features} features"
        if self.classes is None:
            return f"A regressor on {inputs}."
        what = "classifier" if self.card is None else "scorecard"
        return f"A {what} for {len(self.classes)} classes on {inputs}, {self.loss} loss."

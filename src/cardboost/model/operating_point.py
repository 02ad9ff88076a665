"""Where the second of two classes begins: a threshold of scores, by a rule on labelled rows.

Rates are those of rows by their weights, added up exactly, so that neither the order of the rows matters nor
whether a row has weight 2 or stands there twice. Every threshold that divides the rows differently is
compared: none of the rows above it, those of the highest score, and so on to all of them.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.sentences import counted
from cardboost.model import schema
from cardboost.model.card_text import number
from cardboost.model.schema import Record, form
from cardboost.problem.losses import MARGIN_LOSSES

Array = NDArray[np.float64]
_SIGNS = {"recall": ">=", "precision": ">=", "fpr": "<="}
_RULE = re.compile(r"\s*(recall|precision|fpr)\s*(>=|<=)\s*([-+.\deE]+)\s*")
_COSTS = re.compile(r"\s*(fp|fn)\s*=\s*([-+.\deE]+)\s*,\s*(fp|fn)\s*=\s*([-+.\deE]+)\s*")
_NAMES = {"recall": "recall", "precision": "precision", "fpr": "false positive rate"}
_ACCEPTED = (
    "a probability between 0 and 1, 'recall>=0.95', 'precision>=0.8', 'fpr<=0.01', or costs such as "
    "{'fp': 1, 'fn': 20}"
)


@dataclass(frozen=True)
class Rule:
    """How a threshold is chosen: ``kind`` "probability", "recall", "precision", "fpr" or "costs"."""

    kind: str
    value: float = 0.0
    false_positive: float = 0.0
    false_negative: float = 0.0

    @property
    def needs_rows(self) -> bool:
        return self.kind != "probability"

    def __str__(self) -> str:
        if self.kind == "costs":
            return f"fp={number(self.false_positive)},fn={number(self.false_negative)}"
        return f"{self.kind}{_SIGNS.get(self.kind, '=')}{number(self.value)}"

    @classmethod
    def of(cls, value: Any) -> Rule:
        """The rule that a user has written.

        Parameters
        ----------
        value : float, str or mapping
            A probability, "recall>=0.95", "precision>=0.8", "fpr<=0.01", or the costs of a false positive
            and a false negative, ``{"fp": 1, "fn": 20}`` or "fp=1,fn=20".

        Returns
        -------
        Rule
            The rule.

        Raises
        ------
        ValueError
            If it is none of these.
        """
        refusal = ValueError(f"threshold must be {_ACCEPTED}; got {value!r}.")
        if isinstance(value, Mapping):
            if set(value) != {"fp", "fn"}:
                raise refusal
            return cls._of_costs(value["fp"], value["fn"], refusal)
        if isinstance(value, str):
            if costs := _COSTS.fullmatch(value):
                pairs = {costs[1]: costs[2], costs[3]: costs[4]}
                if len(pairs) != 2:
                    raise refusal
                return cls._of_costs(_real(pairs["fp"]), _real(pairs["fn"]), refusal)
            match = _RULE.fullmatch(value)
            if match is None or match[2] != _SIGNS[match[1]] or not 0.0 <= _real(match[3]) <= 1.0:
                raise refusal
            return cls(match[1], _real(match[3]))
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < 1.0:
            raise refusal
        return cls("probability", float(value))

    @classmethod
    def _of_costs(cls, false_positive: Any, false_negative: Any, refusal: ValueError) -> Rule:
        costs = (false_positive, false_negative)
        real = all(isinstance(cost, int | float | np.number) and not isinstance(cost, bool) for cost in costs)
        if not real or not all(0.0 <= cost < math.inf for cost in costs) or not any(costs):
            raise refusal
        return cls("costs", 0.0, float(false_positive), float(false_negative))


def _real(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@dataclass(frozen=True)
class OperatingPoint(Record):
    """A threshold of scores with the rule that chose it.

    Parameters
    ----------
    score : float
        A score above it means the second class.
    rule : str
        The rule, in the words of :class:`Rule`.
    rows : str
        The rows that the rule was applied to; empty for a probability.
    recall, precision, fpr : float or None
        What the threshold reaches on these rows: of the second class the share above it, of the rows above
        it the share of the second class (None if there are none), of the first class the share above it.
    """

    score: float = field(metadata=form(schema.FINITE))
    rule: str = field(metadata=form(schema.text))
    rows: str = field(default="", metadata=form(schema.text))
    recall: float | None = field(default=None, metadata=form(schema.maybe(schema.SHARE)))
    precision: float | None = field(default=None, metadata=form(schema.maybe(schema.SHARE)))
    fpr: float | None = field(default=None, metadata=form(schema.maybe(schema.SHARE)))

    def __str__(self) -> str:
        """The rule, and what it reached, in a few words."""
        rates = {_NAMES[name]: getattr(self, name) for name in _NAMES}
        reached = ", ".join(f"{name} {rate:.4g}" for name, rate in rates.items() if rate is not None)
        return f"by {self.rule} on {self.rows}: {reached}" if self.rows else f"by {self.rule}"


def probability_score(loss: str, probability: float) -> float:
    """The score of a probability of the second class."""
    known = MARGIN_LOSSES.get(loss)
    if known is None or not known.has_probability:
        raise ValueError(
            "threshold: scores of this loss have no probabilities; give a rule such as 'recall>=0.95'."
        )
    return float(known.best_constant(probability))


@dataclass(frozen=True, eq=False)
class LabelledScores:
    """Scores of rows whose class is known.

    Parameters
    ----------
    score : array of shape (n_rows,)
        Scores, or totals of points.
    positive : array of bool of shape (n_rows,)
        Whether the row is of the second class.
    weight : array of shape (n_rows,) or None
        Weights of the rows.
    rows : str
        What rows they are.
    """

    score: NDArray[Any]
    positive: NDArray[np.bool_]
    weight: Array | None
    rows: str

    def __post_init__(self) -> None:
        if self.positive.all() or not self.positive.any():
            raise ValueError("threshold: the rows must be of both classes.")

    def point(self, rule: Rule) -> OperatingPoint:
        """The operating point of a rule, with a threshold of few decimals between two scores.

        Parameters
        ----------
        rule : Rule
            One that needs rows.

        Returns
        -------
        OperatingPoint
            The threshold, and what it reaches. A precision that no threshold reaches gives the highest one
            that some does, with a warning.
        """
        scores, k, rates = self._best(rule)
        low = scores[k - 1] if k else scores[0] - 1.0
        high = scores[k] if k < len(scores) else scores[-1] + 1.0
        return OperatingPoint(_short_between(float(low), float(high)), str(rule), self.rows, *rates)

    def least_total(self, rule: Rule) -> tuple[int, tuple[float | None, ...]]:
        """For scores that are totals of points: the least total above the threshold of a rule, and the rates.

        Parameters
        ----------
        rule : Rule
            One that needs rows.

        Returns
        -------
        total : int
            The least total of the second class: halfway between two totals of the rows, rounded up.
        rates : tuple
            Recall, precision and false positive rate.
        """
        totals, k, rates = self._best(rule)
        if k == 0:
            return int(totals[0]), rates
        if k == len(totals):
            return int(totals[-1]) + 1, rates
        return (int(totals[k - 1]) + int(totals[k]) + 1) // 2, rates

    def _best(self, rule: Rule) -> tuple[NDArray[Any], int, tuple[float | None, ...]]:
        """The distinct scores, how many of them are not above the threshold, and its rates."""
        scores, above = np.unique(self.score, return_inverse=True)
        units = exact_units(self.weight, len(self.score))
        true = _above(units, above, self.positive, len(scores))
        false = _above(units, above, ~self.positive, len(scores))
        recall, fpr = (np.asarray(part / part[0], dtype=np.float64) for part in (true, false))
        some = np.asarray(true + false, dtype=object) > 0
        precision = np.full(len(true), -1.0)  # of no row: none
        precision[some] = np.asarray(true[some] / (true + false)[some], dtype=np.float64)
        if rule.kind == "recall":
            k = _last(recall >= rule.value)
        elif rule.kind == "fpr":
            k = _last(recall == recall[fpr <= rule.value].max())
        elif rule.kind == "precision":
            reached = precision >= rule.value
            if not (reached & some).any():
                best = float(precision.max())
                warnings.warn(
                    f"threshold: none has {rule} on {self.rows}; the highest precision is {best:.4g}.",
                    stacklevel=4,
                )
                reached = precision == best
            reached &= some
            k = _last(reached & (recall == recall[reached].max()))
        else:
            costs = Fraction(rule.false_positive), Fraction(rule.false_negative)
            paid = [costs[0] * f + costs[1] * (int(true[0]) - t) for f, t in _pairs(false, true)]
            k = _last(np.array([cost == min(paid) for cost in paid]))
        rates = (float(recall[k]), float(precision[k]) if some[k] else None, float(fpr[k]))
        return scores, k, rates


def labelled_scores(
    score: NDArray[Any], y: Any, sample_weight: Any, classes: Sequence[Any], rows: str = ""
) -> LabelledScores:
    """Scores with the labels and weights that a user has given; rows without weight are left out."""
    from cardboost.data.labels import sample_weights  # imports scikit-learn, which models do without

    labels = np.asarray(y)
    if labels.shape != score.shape:
        raise ValueError(f"y must have one label per row: {len(score)}; its shape is {labels.shape}.")
    known = np.isin(labels, np.asarray(classes))
    if not known.all():
        raise ValueError(f"y holds {labels[~known][0]!r}, which is none of the classes {list(classes)}.")
    weight = sample_weights(sample_weight, len(score))
    kept = np.ones(len(score), dtype=bool) if weight is None else weight > 0
    name = rows or f"{counted(int(kept.sum()), 'given row')}"
    weight = None if weight is None else weight[kept]
    return LabelledScores(score[kept], labels[kept] == classes[1], weight, name)


def exact_units(weight: Array | None, n_rows: int) -> NDArray[Any]:
    """Row weights as whole multiples of one number: sums of them are exact."""
    if weight is None:
        return np.ones(n_rows, dtype=np.int64)
    ratios = [value.as_integer_ratio() for value in weight.tolist()]
    common = max((bottom for _, bottom in ratios), default=1)  # powers of two
    units = [top * (common // bottom) for top, bottom in ratios]
    fits = sum(units) < 2**53
    return np.array(units, dtype=np.int64 if fits else object)


def _above(units: NDArray[Any], group: NDArray[np.intp], rows: NDArray[np.bool_], n: int) -> NDArray[Any]:
    """The weight of some rows in the groups from the k-th on, for k from 0 to n."""
    held = np.zeros(n + 1, dtype=units.dtype)
    np.add.at(held, group[rows], units[rows])
    return np.cumsum(held[::-1])[::-1]


def _pairs(*arrays: NDArray[Any]) -> Any:
    return zip(*(map(int, array) for array in arrays), strict=True)


def _last(holds: NDArray[np.bool_]) -> int:
    """The highest of thresholds: the fewest rows above it."""
    return int(np.flatnonzero(holds)[-1])


def _short_between(low: float, high: float) -> float:
    """A number of few decimals from ``low`` on and below ``high``."""
    middle = low + (high - low) / 2
    for decimals in range(17):
        if low <= (value := round(middle, decimals)) < high:
            return value
    return low

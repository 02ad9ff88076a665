"""A model in whole points: what every interval and category is worth, and what a total means.

An ensemble whose weights are whole multiples of a unit becomes one table per feature. Every line of a table
has points, none of them negative (or none positive, if the card says so), and a case gets the points of one
line per feature. The score of the model is ``zero + point * (total - start)``, so the class and the
probability depend on the total alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.exact import on_grid, short_unit
from cardboost.data.sentences import counted
from cardboost.model import schema, scorecard_text
from cardboost.model.base import UsedColumns, label_array
from cardboost.model.card_text import AlignedNumbers, interval_rows, label_rows, notes_missing
from cardboost.model.ensemble import LOG_ODDS, Ensemble, score_probabilities
from cardboost.model.operating_point import (
    LabelledScores,
    OperatingPoint,
    Rule,
    labelled_scores,
    probability_score,
)
from cardboost.model.reasons import Reason, check_most, ends_of, strongest
from cardboost.model.schema import Record, form
from cardboost.model.terms import StepFunction
from cardboost.problem.losses import get_loss

_ALL_TOTALS = 30  # that a table lists one by one
_ROOM = 200  # characters of a line of labels, of which a feature has a dozen


@dataclass(frozen=True)
class OddsScale(Record):
    """What totals mean by convention: ``base_score`` points are odds of ``base_odds`` to 1 for the positive
    class, and ``points_to_double_odds`` more points double them."""

    base_score: float = field(default=0.0, metadata=form(schema.FINITE))
    base_odds: float = field(default=1.0, metadata=form(schema.POSITIVE))
    points_to_double_odds: float = field(default=20.0, metadata=form(schema.POSITIVE))

    def unit(self, loss: str) -> float:
        """Half of what a point adds to the score: a term moves it by twice its weight."""
        return short_unit(math.log(2.0) / (2.0 * LOG_ODDS[loss] * self.points_to_double_odds))

    def zero(self, loss: str) -> float:
        """The score of a total of 0."""
        unit = self.unit(loss)
        return on_grid(math.log(self.base_odds) / LOG_ODDS[loss], unit) - 2.0 * unit * self.base_score


@dataclass(frozen=True)
class Line:
    """An interval or some categories, and the points that they give. ``words`` need an explanation."""

    text: str
    points: int
    words: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Section:
    """The lines of one feature, and the points of a missing value, whether a line says so or not."""

    feature: int
    name: str
    lines: tuple[Line, ...]
    missing: int

    @property
    def lowest(self) -> int:
        return min(self.missing, *(line.points for line in self.lines))

    @property
    def highest(self) -> int:
        return max(self.missing, *(line.points for line in self.lines))

    @property
    def spread(self) -> int:
        return self.highest - self.lowest


@dataclass(frozen=True, eq=False, repr=False)
class Scorecard:
    """A binary classifier in whole points. Made by :meth:`cardboost.CardBoostClassifier.scorecard`.

    It is a fitted classifier for scikit-learn's metrics and displays, and in its ``FrozenEstimator`` for
    pipelines; ``fit`` changes nothing.

    Parameters
    ----------
    ensemble : Ensemble
        A binary classifier whose weights are whole multiples of its ``unit``.
    certificate : Certificate or None, default=None
        The certificate of the card in points.
    scale : OddsScale or None, default=None
        What totals mean by convention: base score, base odds, and points to double the odds.
    negative : bool, default=False
        Whether no line has more than 0 points, instead of none less than 0.

    Raises
    ------
    ValueError
        If the ensemble has not two classes, or no unit.

    Examples
    --------
    >>> import numpy as np
    >>> from cardboost.model import Ensemble, Term
    >>> from cardboost.model.scorecard import Scorecard
    >>> terms = (Term(0, 2.5, 1, False, 0.5), Term(1, 10.0, -1, False, 1.0))
    >>> card = Scorecard(Ensemble("logistic", 0.0, terms, ("age", "dose"), 2, ("no", "yes"), unit=0.5))
    >>> X = np.array([[1.0, 20.0], [1.0, 5.0], [3.0, 5.0]])
    >>> card.points(X).tolist()
    [[1, 2], [1, 0], [0, 0]]
    >>> card.total(X).tolist(), card.threshold, card.predict(X).tolist()
    ([3, 1, 0], 2, ['yes', 'no', 'no'])
    """

    ensemble: Ensemble
    certificate: Any = None
    scale: OddsScale | None = None
    negative: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.ensemble, Ensemble) or self.ensemble.classes is None:
            raise ValueError("a scorecard is for two classes.")
        if self.ensemble.unit is None:
            raise ValueError(
                "the weights of this model are no whole multiples of a unit: "
                "use scorecard() of the estimator, which chooses whole points."
            )
        if self.ensemble.loss not in LOG_ODDS:
            raise ValueError(f"points are log-odds, which scores of the {self.ensemble.loss} loss are not.")

    # ------------------------------------------------------------------------------------ what it is made of

    @property
    def n_terms(self) -> int:
        return self.ensemble.n_terms

    @property
    def classes(self) -> tuple[Any, Any]:
        assert self.ensemble.classes is not None
        return self.ensemble.classes

    @property
    def classes_(self) -> NDArray[Any]:
        """The two class labels, as scikit-learn has them."""
        return label_array(self.classes)

    @property
    def n_features_in_(self) -> int:
        """Number of features of the table."""
        return self.ensemble.n_features

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features; absent where the table had none."""
        if self.ensemble.feature_names is None:
            raise AttributeError("feature_names_in_: the table had no names.")
        return np.array(self.ensemble.feature_names, dtype=object)

    @property
    def point(self) -> float:
        """What a point adds to the score of the model."""
        assert self.ensemble.unit is not None
        return 2.0 * self.ensemble.unit

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The features, those that move the total most first."""
        sections = [self._section(step) for step in self.step_functions()]
        return tuple(sorted(sections, key=lambda section: (-section.spread, section.feature)))

    def step_functions(self) -> tuple[StepFunction, ...]:
        """The points of every value of the used features.

        Returns
        -------
        tuple of StepFunction
            One per used feature, in the order of the features; levels are whole points.
        """
        return tuple(
            replace(
                step,
                levels=tuple((level - self._base[step.feature]) / 2 for level in step.levels),
                missing=(step.missing - self._base[step.feature]) / 2,
            )
            for step in self._steps
        )

    @cached_property
    def start(self) -> int:
        """The points that every case begins with: 0, unless a scale of odds says what totals mean."""
        if self.scale is None:
            return 0
        return round((self._zero - self.scale.zero(self.ensemble.loss)) / self.point)

    @cached_property
    def lowest(self) -> int:
        """The least total."""
        return self.start + sum(section.lowest for section in self.sections)

    @cached_property
    def highest(self) -> int:
        """The largest total."""
        return self.start + sum(section.highest for section in self.sections)

    @cached_property
    def threshold(self) -> int:
        """The least total that means the second class."""
        above = Fraction(self.ensemble.threshold) - Fraction(self._zero)
        return math.floor(above / Fraction(self.point)) + 1 + self.start

    def log_odds(self, total: Any) -> NDArray[np.float64]:
        """The log-odds of the second class for totals.

        Parameters
        ----------
        total : int or array-like of int
            Totals of points.

        Returns
        -------
        array
            Log-odds, in the shape of ``total``.
        """
        score = self._zero + self.point * (np.asarray(total, dtype=np.float64) - self.start)
        return LOG_ODDS[self.ensemble.loss] * score

    def probability(self, total: Any) -> NDArray[np.float64]:
        """The probability of the second class for totals.

        Parameters
        ----------
        total : int or array-like of int
            Totals of points.

        Returns
        -------
        array
            Probabilities, in the shape of ``total``.
        """
        return get_loss("logistic").probability(self.log_odds(total))

    def table(self) -> list[tuple[int, float]]:
        """Totals with the probability of the second class.

        Returns
        -------
        list of (int, float)
            All totals, or some in even steps where there are many; always the lowest and the highest.
        """
        span = self.highest - self.lowest
        step = 1
        while span / step > _ALL_TOTALS:
            step = _next_step(step)
        first = self.lowest if step == 1 else math.ceil(self.lowest / step) * step
        totals = {self.lowest, self.highest, *range(first, self.highest + 1, step)}
        return [(total, float(self.probability(total))) for total in sorted(totals)]

    # ------------------------------------------------------------------------------------ cases

    def points(self, X: Any, threads: int = 1) -> NDArray[np.int64]:
        """The points that every feature gives every row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        threads : int, default=1
            Number of threads. Results do not depend on it.

        Returns
        -------
        array of int of shape (n_samples, n_features)
            Points; 0 for features without a term.
        """
        columns = self.ensemble.read(X)
        out = np.zeros((columns.n_rows, self.ensemble.n_features), dtype=np.int64)
        out[:, [step.feature for step in self._steps]] = self._feature_points(columns, threads)
        return out

    def _feature_points(self, columns: UsedColumns, threads: int) -> NDArray[np.int64]:
        """The points of the used features: (rows, used features)."""
        parts = self._counts.evaluate(columns, threads, with_contributions=True)[1].T
        return (np.rint(parts).astype(np.int64) - self._bases) // 2

    def total(self, X: Any, threads: int = 1) -> NDArray[np.int64]:
        """The total of every row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        threads : int, default=1
            Number of threads. Results do not depend on it.

        Returns
        -------
        array of int of shape (n_samples,)
            The sum of the points, and the points that every row starts with.
        """
        return self._feature_points(self.ensemble.read(X), threads).sum(axis=1) + self.start

    def predict(self, X: Any, threads: int = 1) -> NDArray[Any]:
        """The class of every row: the second where the total is at least ``threshold``.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        threads : int, default=1
            Number of threads. Results do not depend on it.

        Returns
        -------
        array of shape (n_samples,)
            Class labels.
        """
        second = (self.total(X, threads) >= self.threshold).astype(np.intp)
        return label_array(self.classes)[second]

    def predict_proba(self, X: Any, threads: int = 1) -> NDArray[np.float64]:
        """Probabilities of the two classes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        threads : int, default=1
            Number of threads. Results do not depend on it.

        Returns
        -------
        array of shape (n_samples, 2)
            Columns are in the order of ``classes``.
        """
        return score_probabilities("logistic", self.log_odds(self.total(X, threads)))

    def decision_function(self, X: Any, threads: int = 1) -> NDArray[np.float64]:
        """How many points every total is above the largest that means the first class.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        threads : int, default=1
            Number of threads. Results do not depend on it.

        Returns
        -------
        array of shape (n_samples,)
            Whole numbers; above 0 they mean the second class.
        """
        return (self.total(X, threads) - (self.threshold - 1)).astype(np.float64)

    def contributions(self, X: Any, threads: int = 1) -> NDArray[np.int64]:
        """The points of every feature: another name for :meth:`points`.

        Added to ``start`` they give :meth:`total`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        threads : int, default=1
            Number of threads. Results do not depend on it.

        Returns
        -------
        array of int of shape (n_samples, n_features)
            Points; 0 for features without a term.
        """
        return self.points(X, threads)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy on labelled rows, as of scikit-learn's classifiers.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows.

        Returns
        -------
        float
            The share of the rows, by weight, whose class is predicted.
        """
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def with_threshold(self, rule: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> Scorecard:
        """The same card with another least total of the second class.

        Parameters
        ----------
        rule : float, str, dict or None
            A probability, or a rule as ``threshold`` of :class:`cardboost.CardBoostClassifier` takes it.
            None: a probability of one half.
        X : table of shape (n_samples, n_features)
            Labelled rows, for a rule.
        y : array-like of shape (n_samples,)
            Their class labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Their weights.

        Returns
        -------
        Scorecard
            The card; ``ensemble.operating_point`` says what the threshold reaches on these rows.
        """
        if rule is None:
            return self._at(None)
        checked = Rule.of(rule)
        if not checked.needs_rows:
            score = probability_score(self.ensemble.loss, checked.value)
            return self._at(OperatingPoint(score, str(checked)))
        if X is None or y is None:
            raise ValueError(f"threshold: {checked} needs labelled rows, X and y.")
        return self.with_rule(checked, labelled_scores(self.total(X), y, sample_weight, self.classes))

    def with_rule(self, rule: Rule, totals: LabelledScores) -> Scorecard:
        """The same card with the threshold of a rule on labelled totals.

        Parameters
        ----------
        rule : Rule
            One that needs rows.
        totals : LabelledScores
            Totals of points of rows whose class is known.

        Returns
        -------
        Scorecard
            The card.
        """
        least, rates = totals.least_total(rule)
        score = self._zero + self.point * (least - self.start - 0.5)  # between two totals
        return self._at(OperatingPoint(score, str(rule), totals.rows, *rates))

    def nearest_total(self, score: Any) -> NDArray[np.int64]:
        """The totals that stand for scores.

        Parameters
        ----------
        score : array of float
            Scores, in the units of ``ensemble``.

        Returns
        -------
        array of int
            The nearest totals, in the shape of ``score``.
        """
        return np.rint((np.asarray(score) - self._zero) / self.point).astype(np.int64) + self.start

    def _at(self, point: OperatingPoint | None) -> Scorecard:
        return replace(self, ensemble=replace(self.ensemble, operating_point=point))

    # ------------------------------------------------------------------------------------ scikit-learn

    def fit(self, X: Any = None, y: Any = None) -> Scorecard:
        """Do nothing: a card is finished.

        Parameters
        ----------
        X : ignored
            For scikit-learn, which asks every estimator for the method.
        y : ignored
            Likewise.

        Returns
        -------
        Scorecard
            The card itself.
        """
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the card was made of.

        Parameters
        ----------
        deep : bool, default=True
            Ignored: no part is an estimator.

        Returns
        -------
        dict
            The arguments of the constructor.
        """
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Scorecard:
        return self  # it cannot change

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(multi_class=False),
            input_tags=InputTags(allow_nan=True, categorical=True),
        )

    def reasons(self, X: Any, most: int = 4, threads: int = 1) -> list[list[Reason]]:
        """The features that contribute most to the predicted class of every row.

        For the second class a feature is judged by its points above the least that it can give, for the first
        class by its points below the most. Features for which this is 0 are left out.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        most : int, default=4
            At most so many reasons per row.
        threads : int, default=1
            Number of threads. Results do not depend on it.

        Returns
        -------
        list of list of Reason
            For every row its reasons, the strongest first.
        """
        check_most(most)
        columns = self.ensemble.read(X)
        points = self._feature_points(columns, threads)
        second = points.sum(axis=1) + self.start >= self.threshold
        low, high = (ends - self._bases for ends in ends_of(self._steps))
        push = np.where(second[:, None], points - low // 2, high // 2 - points).astype(np.int64)
        return strongest(self._counts, columns, push, most)

    # ------------------------------------------------------------------------------------ on paper

    def to_text(self, title: str | None = None, width: int = 78) -> str:
        """The card as plain text, for a screen or a printer.

        Parameters
        ----------
        title : str or None, default=None
            Title of the card. None: "Scorecard".
        width : int, default=78
            Number of characters per line.

        Returns
        -------
        str
            The card.
        """
        return scorecard_text.as_text(self, title, width)

    def to_markdown(self, title: str | None = None) -> str:
        """The card as Markdown tables.

        Parameters
        ----------
        title : str or None, default=None
            Title of the card. None: "Scorecard".

        Returns
        -------
        str
            The card.
        """
        return scorecard_text.as_markdown(self, title)

    def to_html(self, title: str | None = None, *, page: bool = True) -> str:
        """The card as HTML, without scripts and without other files.

        Parameters
        ----------
        title : str or None, default=None
            Title of the card. None: "Scorecard".
        page : bool, default=True
            Whether to return a whole page, or only a part to put into one.

        Returns
        -------
        str
            The card.
        """
        return scorecard_text.as_html(self, title, page)

    def to_latex(self, title: str | None = None) -> str:
        """The card as LaTeX tables, which need no package.

        Parameters
        ----------
        title : str or None, default=None
            Title of the card. None: "Scorecard".

        Returns
        -------
        str
            The card.
        """
        return scorecard_text.as_latex(self, title)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        features = len(self.ensemble.features_used)
        return (
            f"Scorecard({counted(self.n_terms, 'term')} on {counted(features, 'feature')}, totals from "
            f"{self.lowest} to {self.highest}, {self.threshold} or more mean {self.classes[1]!r})"
        )

    def _repr_html_(self) -> str:
        return self.to_html(page=False)

    # ------------------------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file; ``load_model(path).scorecard()`` reads the card back.

        Parameters
        ----------
        path : str or path-like
            The file to write. An existing file is replaced.
        """
        from cardboost.model.files import save

        proof = None if self.certificate is None else self.certificate.to_dict()
        save(path, self.ensemble, proof, {"scorecard": self.notes()})

    def notes(self) -> dict[str, Any]:
        """What a model file says of the card beyond the ensemble.

        Returns
        -------
        dict
            The scale, and whether points are negative.
        """
        scale = None if self.scale is None else self.scale.to_dict()
        return {"scale": scale, "negative": self.negative}

    @classmethod
    def from_notes(cls, ensemble: Ensemble, notes: Any, certificate: Any = None) -> Scorecard:
        """The card of a model file.

        Parameters
        ----------
        ensemble : Ensemble
            The model, with a unit.
        notes : object
            What :meth:`notes` returned. Anything that does not fit is ignored.
        certificate : Certificate or None, default=None
            The certificate of the card.

        Returns
        -------
        Scorecard
            The card.
        """
        content = notes if isinstance(notes, Mapping) else {}
        scale = None
        if isinstance(content.get("scale"), Mapping):
            try:
                scale = OddsScale(**content["scale"])
            except (TypeError, ValueError):
                scale = None
        return cls(ensemble, certificate, scale, content.get("negative") is True)

    # ------------------------------------------------------------------------------------ built once

    @cached_property
    def _counts(self) -> Ensemble:
        """The same terms with their points as weights: sums of whole numbers, which are exact."""
        points = self.ensemble.term_points() or ()
        terms = tuple(
            replace(term, weight=float(p)) for term, p in zip(self.ensemble.terms, points, strict=True)
        )
        return replace(self.ensemble, terms=terms, intercept=0.0, unit=1.0, operating_point=None)

    @cached_property
    def _steps(self) -> tuple[StepFunction, ...]:
        """Levels are whole numbers, all of one feature even or all odd: twice the points, and a shift."""
        return self._counts.step_functions()

    @cached_property
    def _base(self) -> dict[int, int]:
        """The level of every feature that gives 0 points."""
        end = max if self.negative else min
        return {step.feature: round(end(*step.levels, step.missing)) for step in self._steps}

    @cached_property
    def _bases(self) -> NDArray[np.int64]:
        return np.array([self._base[step.feature] for step in self._steps], dtype=np.int64)

    @cached_property
    def _zero(self) -> float:
        """The score of a case with the points that it begins with."""
        assert self.ensemble.unit is not None
        return float(
            Fraction(self.ensemble.intercept) + Fraction(self.ensemble.unit) * sum(self._base.values())
        )

    def _section(self, step: StepFunction) -> Section:
        noted = notes_missing(self.ensemble, step.feature)
        if step.categories is None:
            rows = interval_rows(step, noted)
        else:
            shown = AlignedNumbers([*step.levels, step.missing])
            rows = label_rows(step, self.ensemble.categories[step.feature], shown, _ROOM, noted)
        lines = [
            Line(" ".join(part.strip() for part in row.broken(_ROOM)), round(row.level), row.words)
            for row in rows
        ]
        return Section(step.feature, step.name, tuple(lines), round(step.missing))


def _next_step(step: int) -> int:
    """1, 2, 5, 10, 20, 50, ..."""
    lead = int(str(step)[0])
    return step * 5 // 2 if lead == 2 else step * 2

"""An immutable weighted sum of stumps, f(x) = intercept + sum_j w_j h_j(x).

All terms on one feature add up to one step function of it, so a prediction is one short search and one
addition per used feature. Every level is a sum of its terms in a fixed order, and scores add the levels in
the order of the features: equal models give equal bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from cardboost import _kernels
from cardboost.data.categories import Categories, Other
from cardboost.model import schema
from cardboost.model.base import Array, TableModel, UsedColumns
from cardboost.model.operating_point import OperatingPoint
from cardboost.model.schema import expected, form
from cardboost.model.terms import StepFunction, Term, add_up, flatten
from cardboost.problem.losses import MARGIN_LOSSES, RESIDUAL_LOSSES, Loss

__all__ = ["Ensemble", "StepFunction", "Term"]

REGRESSION_LOSSES = frozenset(RESIDUAL_LOSSES)
CLASSIFICATION_LOSSES = frozenset(MARGIN_LOSSES)
#: a loss of the user's own, which files do not hold: scores mean classes or numbers, never probabilities
OWN_LOSS = "own"
_LOSSES = sorted(CLASSIFICATION_LOSSES | REGRESSION_LOSSES | {OWN_LOSS})
#: a score of f means log-odds of this times f
LOG_ODDS = {"logistic": 1.0, "exponential": 2.0}
_KEYS = ("loss", "intercept", "n_features", "feature_names", "classes", "categories", "terms")  # of JSON
MAX_POINTS = 2**20  # of a term
_OPTIONAL = (
    "unit",
    "missing_in_training",
    "operating_point",
)  # keys of JSON that are left out where they are None
_UNIT = schema.maybe(schema.number("a positive number", lambda unit: 0.0 < unit < math.inf))


def _ascending_features(value: Any) -> tuple[int, ...]:
    features = schema.list_of(schema.INDEX)(value)
    for k, (before, feature) in enumerate(pairwise(features), 1):
        if feature <= before:
            raise expected("features in ascending order", feature, k)
    return features


_FEATURES = schema.maybe(_ascending_features)


class CategoriesByFeature(Mapping[int, Categories]):
    """The categories of some features, in the order of the features. It cannot be changed."""

    def __init__(self, entries: Mapping[int, Categories]) -> None:
        self._entries = {feature: entries[feature] for feature in sorted(entries)}

    def __getitem__(self, feature: int) -> Categories:
        return self._entries[feature]

    def __iter__(self) -> Iterator[int]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(tuple(self._entries.items()))

    def __repr__(self) -> str:
        return repr(self._entries)


def _check_categories(value: Any) -> CategoriesByFeature:
    if not isinstance(value, Mapping):
        raise expected("the categories of some features", value)
    for key, categories in value.items():
        feature = schema.integer("features by their index", 0)(key)
        if not isinstance(categories, Categories):
            raise expected("categories", categories, feature)
        with schema.under(feature):
            schema.check_labels(categories.kept, categories.rare)
    return CategoriesByFeature(value)


def _read_categories(entry: Any) -> tuple[int, Categories]:
    labels = schema.list_of(lambda label: label)
    kinds = {"feature": schema.integer("the index of a feature"), "kept": labels, "rare": labels}
    feature, kept, rare = schema.read_object(entry, kinds).values()
    schema.check_labels(kept, rare)
    return feature, Categories(kept, rare)


def _write_categories(categories: Mapping[int, Categories]) -> list[dict[str, Any]]:
    return [
        {"feature": feature, "kept": list(labels.kept), "rare": list(labels.rare)}
        for feature, labels in categories.items()
    ]


_READ_POINT = schema.maybe(OperatingPoint.from_dict)


def _check_point(value: Any) -> OperatingPoint | None:
    if value is not None and not isinstance(value, OperatingPoint):
        raise expected("an operating point", value)
    return value


def _write_point(point: OperatingPoint | None) -> dict[str, Any] | None:
    return None if point is None else point.to_dict()


@dataclass(frozen=True)
class Ensemble(TableModel):
    """A finished model: a binary classifier, or a regressor.

    A classifier has two ``classes``: a score above its ``threshold`` (0 without an operating point) means
    ``classes[1]``, any other ``classes[0]``. A regressor has no classes, and its score is what it predicts.

    Parameters
    ----------
    loss : str
        The loss that the model was trained with: "logistic", "exponential", "squared_hinge" or "hinge" for a
        classifier, "squared" or "absolute" for a regressor, or "own" for either of them, without
        probabilities.
    intercept : float
        The constant part of the score.
    terms : tuple of Term
        Weighted stumps.
    feature_names : tuple of str or None
        Names of all features of the table, if it has names.
    n_features : int
        Number of features of the table.
    classes : pair or None
        The two class labels; None for a regressor.
    categories : mapping from int to Categories, default={}
        The labels of the features with categorical terms, by position. Those of other features are left out.
    unit : float or None, default=None
        A number of which all weights are whole multiples, exactly ``unit * points``; such a model can be
        added up in points. None: there is no such number.
    missing_in_training : tuple of int or None, default=None
        The features that had missing values in training, by position. None: it is not known which.
    operating_point : OperatingPoint or None, default=None
        The score above which the second class is predicted, and how it was chosen. None: 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cardboost.model import Ensemble, Term
    >>> term = Term(feature=0, cut=2.5, polarity=1, missing_left=False, weight=1.0)
    >>> model = Ensemble("logistic", 0.5, (term,), ("age",), 1, ("no", "yes"))
    >>> model.decision_function(np.array([[1.0], [3.0]]))
    array([ 1.5, -0.5])
    >>> model.predict(np.array([[1.0], [3.0]])).tolist()
    ['yes', 'no']
    """

    loss: str = field(metadata=form(schema.one_of(_LOSSES)))
    intercept: float = field(metadata=form(schema.FINITE))
    terms: tuple[Term, ...] = field(metadata=schema.records(Term, "a term"))
    feature_names: tuple[str, ...] | None = field(metadata=form(schema.distinct_names))
    n_features: int = field(metadata=form(schema.N_FEATURES))
    classes: tuple[Any, Any] | None = field(metadata=form(None))  # they depend on the loss
    categories: Mapping[int, Categories] = field(
        default_factory=dict,
        metadata=form(_check_categories, schema.list_of(_read_categories), _write_categories),
    )
    unit: float | None = field(default=None, metadata=form(_UNIT))
    missing_in_training: tuple[int, ...] | None = field(default=None, metadata=form(_FEATURES))
    operating_point: OperatingPoint | None = field(
        default=None,
        metadata=form(_check_point, _READ_POINT, _write_point),
    )

    def _check(self) -> None:
        for feature in self.categories:
            if feature >= self.n_features:
                below = f"features by an index below n_features = {self.n_features}"
                raise expected(below, feature, "categories")
        self._check_terms()
        if self.unit is not None:
            self._check_unit(self.unit)
        for k, feature in enumerate(self.missing_in_training or ()):
            if feature >= self.n_features:
                below = f"an index below n_features = {self.n_features}"
                raise expected(below, feature, "missing_in_training", k)
        self._check_names()
        classifier = self.loss in CLASSIFICATION_LOSSES
        classifier = classifier or (self.loss == OWN_LOSS and self.classes is not None)
        if self.operating_point is not None and not classifier:
            raise expected("none for a regressor", self.operating_point, "operating_point")
        self._check_classes(schema.class_labels("two labels", 2, 2) if classifier else None)
        used = {term.feature for term in self.terms}
        categories = {j: labels for j, labels in self.categories.items() if j in used}
        object.__setattr__(self, "categories", CategoriesByFeature(categories))
        object.__setattr__(self, "terms", tuple(sorted(self.terms, key=lambda term: term.order)))

    def _check_terms(self) -> None:
        total = abs(self.intercept)
        kept = {feature: frozenset(labels.kept) for feature, labels in self.categories.items()}
        for k, term in enumerate(self.terms):
            feature = term.feature
            if feature >= self.n_features:
                below = f"an index below n_features = {self.n_features}"
                raise expected(below, feature, "terms", k, "feature")
            if feature in kept and not term.labels:
                what = f"a category: feature {feature} has categories"
                raise expected(what, term.cut, "terms", k, "cut")
            if term.labels:
                with schema.under("terms", k):
                    self._check_term_labels(term, kept.get(feature))
            total += term.weight
            if math.isinf(total):  # some score would not be finite
                raise expected("weights with a finite sum", term.weight, "terms", k, "weight")

    def _check_term_labels(self, term: Term, kept: frozenset[Any] | None) -> None:
        field, feature = term.left_field, term.feature
        if kept is None:
            what = f"a cut: feature {feature} has no categories"
            raise expected(what, getattr(term, field), field)
        for i, label in enumerate(term.labels):
            steps = (field,) if term.one_of is None else (field, i)
            if isinstance(label, Other):
                if not self.categories[feature].rare:
                    what = f"a kept category: feature {feature} has no rare ones"
                    raise expected(what, label, *steps)
            elif label not in kept:
                raise expected(f"a kept category of feature {feature}", label, *steps)
        if term.one_of is not None and len(term.one_of) >= self.categories[feature].n_codes:
            raise expected(f"not all the categories of feature {feature}", term.one_of, field)

    def _check_unit(self, unit: float) -> None:
        for term in self.terms:
            points = term.weight / unit
            if points > MAX_POINTS or term.weight != unit * round(points):
                what = f"a number whose multiples, at most {MAX_POINTS}, are all weights"
                raise expected(f"{what} ({term.weight} is none)", unit, "unit")

    @classmethod
    def from_dict(cls, document: Any) -> Ensemble:
        """The ensemble in a JSON object.

        Parameters
        ----------
        document : dict
            The object, as :meth:`to_dict` makes it.

        Returns
        -------
        Ensemble
            The model.

        Raises
        ------
        ValueError
            If the object is no ensemble; the message starts with the path of the first fault.
        """
        fields = schema.form_of(cls)
        entries = schema.read_object(document, {name: fields[name].read for name in _KEYS}, _OPTIONAL)
        with schema.under("operating_point"):
            point = _READ_POINT(entries.pop("operating_point", None))
        categorical = {term.feature for term in entries["terms"] if term.labels}
        categories: dict[int, Categories] = {}
        for k, (feature, labels) in enumerate(entries["categories"]):
            if feature not in categorical or feature in categories:
                doubled = feature in categories
                what = "one entry per feature" if doubled else "a feature with categorical terms"
                raise expected(what, feature, "categories", k, "feature")
            categories[feature] = labels
        return cls(**(entries | {"categories": categories, "operating_point": point}))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; :meth:`from_dict` is the way back.

        Returns
        -------
        dict
            The fields of the model.
        """
        document = super().to_dict()
        given = (key for key in _OPTIONAL if document[key] is not None)
        return {key: document[key] for key in (*_KEYS, *given)}

    # ------------------------------------------------------------------------------------ what it is made of

    @property
    def has_probabilities(self) -> bool:
        """Whether scores mean probabilities: not those of a number, of the hinge, or of a user's own loss."""
        return self.classes is not None and getattr(MARGIN_LOSSES.get(self.loss), "has_probability", False)

    @property
    def threshold(self) -> float:
        """A score above it means the second of two classes."""
        return 0.0 if self.operating_point is None else self.operating_point.score

    @property
    def parts(self) -> tuple[Ensemble]:
        return (self,)

    @property
    def n_terms(self) -> int:
        return len(self.terms)

    @cached_property
    def features_used(self) -> tuple[int, ...]:
        """Indices of the features that have a term, ascending."""
        return tuple(sorted({term.feature for term in self.terms}))

    def term_points(self) -> tuple[int, ...] | None:
        """The weights of the terms in units.

        Returns
        -------
        tuple of int or None
            One number of points per term; None if the model has no unit.
        """
        return None if self.unit is None else tuple(round(term.weight / self.unit) for term in self.terms)

    def step_functions(self) -> tuple[StepFunction, ...]:
        """The step functions of the features, each the sum of the terms on its feature.

        Returns
        -------
        tuple of StepFunction
            One per used feature, in the order of the features.
        """
        return self._steps

    # ------------------------------------------------------------------------------------ prediction

    def predict_proba(self, X: Any, threads: int = 1) -> Array:
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

        Raises
        ------
        ValueError
            If the model is a regressor, or its loss has no probabilities.
        """
        if self.classes is None:
            raise ValueError("A regressor has no probabilities: predict gives its predictions.")
        return score_probabilities(self.loss, self.decision_function(X, threads))

    def evaluate(
        self, columns: UsedColumns, threads: int, with_contributions: bool = False
    ) -> tuple[Array, Array]:
        """Scores of columns that have been read, and on request what the used features contribute.

        Parameters
        ----------
        columns : UsedColumns
            The columns of a table, as :meth:`read` returns them.
        threads : int
            Number of threads. Results do not depend on it.
        with_contributions : bool, default=False
            Whether to compute the contributions too.

        Returns
        -------
        score : array of shape (n_samples,)
            Scores.
        contributions : array of shape (n_features_used, n_samples)
            What the used features add; empty unless asked for.

        Raises
        ------
        ValueError
            If a used column contains infinity.
        """
        features, arrays = self._flat
        values = [columns.values[j] for j in features]
        score, contributions, infinite = _kernels.predict_steps(
            values, columns.n_rows, *arrays, self.intercept, with_contributions, threads
        )
        if infinite >= 0:
            feature = features[infinite]
            name = feature if self.feature_names is None else repr(self.feature_names[feature])
            raise ValueError(
                f"X contains infinity in column {name}; values must be finite, or NaN where they are missing."
            )
        return score, contributions

    # ------------------------------------------------------------------------------------ built once

    @cached_property
    def _steps(self) -> tuple[StepFunction, ...]:
        by_feature: dict[int, list[Term]] = {}
        for term in self.terms:
            by_feature.setdefault(term.feature, []).append(term)
        return tuple(
            add_up(terms, self.feature_name(feature), self.categories.get(feature))
            for feature, terms in by_feature.items()
        )

    @cached_property
    def _flat(self) -> tuple[tuple[int, ...], tuple[Any, Any, Any, Any]]:
        return flatten(self._steps)


def model_loss(loss: Loss) -> str:
    """What a model calls its loss: the name of one of ours, or "own"."""
    ours = MARGIN_LOSSES.get(loss.name) or RESIDUAL_LOSSES.get(loss.name)
    return loss.name if type(loss) is type(ours) else OWN_LOSS


def loss_with_probabilities(loss: str) -> Loss:
    """The loss of that name; a clear error for a loss of the user's own."""
    if loss not in MARGIN_LOSSES:
        raise ValueError("A model of a loss of one's own has no probabilities; take decision_function.")
    return MARGIN_LOSSES[loss]


def score_probabilities(loss: str, score: Array) -> Array:
    """Probabilities of the two classes: shape (rows, 2)."""
    named_loss = loss_with_probabilities(loss)
    # not 1 - p: small probabilities of the first class keep their digits
    return np.column_stack([named_loss.probability(-score), named_loss.probability(score)])

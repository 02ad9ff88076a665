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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.categories import Categories, Other
from cardboost.model import checks
from cardboost.model.checks import MAX_FEATURES, fault
from cardboost.model.columns import UsedColumns, read_columns
from cardboost.model.terms import Array, FlatSteps, StepFunction, Term, add_up
from cardboost.problem.losses import MARGIN_LOSSES, RESIDUAL_LOSSES, Loss

__all__ = ["Ensemble", "StepFunction", "Term"]

Kind = Literal["binary", "multiclass", "regression"]
REGRESSION_LOSSES = frozenset(RESIDUAL_LOSSES)
CLASSIFICATION_LOSSES = frozenset(MARGIN_LOSSES)
#: a loss of the user's own, which files do not hold: scores mean classes or numbers, never probabilities
OWN_LOSS = "own"
#: a score of f means log-odds of this times f
LOG_ODDS = {"logistic": 1.0, "exponential": 2.0}
MAX_POINTS = 2**20  # of a term


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


@dataclass(frozen=True)
class Ensemble:
    """A finished model: a binary classifier, or a regressor.

    A classifier has two ``classes``: a positive score means ``classes[1]``, any other (exactly 0 too)
    ``classes[0]``. With loss "squared" or "absolute" it is a regressor: ``classes`` is None, and the score is
    what it predicts. With loss "own" it is either of the two, and has no probabilities.

    ``categories`` has the labels of the features that have categorical terms; those of features without a
    term are left out.

    ``unit``, if there is one, is a number of which all weights are whole multiples, exactly
    ``unit * points``. Such a model can be added up in points.
    """

    loss: str
    intercept: float
    terms: tuple[Term, ...]
    feature_names: tuple[str, ...] | None
    n_features: int
    classes: tuple[Any, Any] | None
    categories: Mapping[int, Categories] = field(default_factory=dict)
    unit: float | None = None

    def __post_init__(self) -> None:
        losses = sorted(CLASSIFICATION_LOSSES | REGRESSION_LOSSES | {OWN_LOSS})
        if not isinstance(self.loss, str) or self.loss not in losses:
            raise fault("loss", f"{', '.join(map(repr, losses[:-1]))} or {losses[-1]!r}", self.loss)
        intercept = checks.number("intercept", self.intercept, "a finite number")
        if math.isinf(intercept):
            raise fault("intercept", "a finite number", self.intercept)
        n_features = checks.integer("n_features", self.n_features, "a number of features")
        if not 1 <= n_features <= MAX_FEATURES:
            raise fault("n_features", f"a number from 1 to {MAX_FEATURES}", self.n_features)
        given = _check_categories(self.categories, n_features)
        terms = _check_terms(self.terms, n_features, intercept, given)
        used = {term.feature for term in terms}
        unit = None if self.unit is None else _check_unit(self.unit, terms)
        names = checks.feature_names(self.feature_names, n_features)
        if self.loss in CLASSIFICATION_LOSSES or (self.loss == OWN_LOSS and self.classes is not None):
            classes = checks.class_labels(self.classes, 2, 2, "two labels")
        elif self.classes is not None:
            raise fault("classes", f"none with {self.loss} loss", self.classes)
        else:
            classes = None
        for name, value in (
            ("intercept", intercept),
            ("n_features", n_features),
            ("terms", terms),
            ("feature_names", names),
            ("classes", classes),
            ("unit", unit),
            ("categories", CategoriesByFeature({j: own for j, own in given.items() if j in used})),
        ):
            object.__setattr__(self, name, value)

    # ------------------------------------------------------------------------------------ what it is made of

    @property
    def kind(self) -> Kind:
        return "regression" if self.classes is None else "binary"

    @property
    def has_probabilities(self) -> bool:
        """Whether scores mean probabilities: not those of a number, of the hinge, or of a user's own loss."""
        return self.classes is not None and getattr(MARGIN_LOSSES.get(self.loss), "has_probability", False)

    @property
    def n_terms(self) -> int:
        return len(self.terms)

    @property
    def features_used(self) -> tuple[int, ...]:
        """Indices of the features that have a term, ascending."""
        return self._flat.features

    def term_points(self) -> tuple[int, ...] | None:
        """The weights of the terms in units; None if there is no unit."""
        return None if self.unit is None else tuple(round(term.weight / self.unit) for term in self.terms)

    def feature_name(self, feature: int) -> str:
        """The name of a feature, or x0, x1, ... where the table had no names."""
        return self.feature_names[feature] if self.feature_names is not None else f"x{feature}"

    def step_functions(self) -> tuple[StepFunction, ...]:
        """One per used feature, in the order of the features."""
        return self._steps

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ``model.io.from_dict`` is the way back."""
        document = {
            "loss": self.loss,
            "intercept": self.intercept,
            "n_features": self.n_features,
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "classes": None if self.classes is None else list(self.classes),
            "categories": [
                {"feature": feature, "kept": list(own.kept), "rare": list(own.rare)}
                for feature, own in self.categories.items()
            ],
            "terms": [term.to_dict() for term in self.terms],
        }
        return document if self.unit is None else document | {"unit": self.unit}

    # ------------------------------------------------------------------------------------ prediction

    def decision_function(self, X: Any, threads: int = 1) -> Array:
        """The score of every row."""
        return self.evaluate(self.read(X), threads)[0]

    def contributions(self, X: Any, threads: int = 1) -> Array:
        """What every feature adds to every row: shape (rows, n_features).

        Added to the intercept in the order of the features they give ``decision_function`` to the bit.
        """
        columns = self.read(X)
        used = self.evaluate(columns, threads, with_contributions=True)[1]
        out = np.zeros((columns.n_rows, self.n_features))
        out[:, list(self.features_used)] = used.T
        return out

    def predict_proba(self, X: Any, threads: int = 1) -> Array:
        """Probabilities of the two classes: shape (rows, 2)."""
        if self.classes is None:
            raise ValueError("A regressor has no probabilities: predict gives its predictions.")
        return score_probabilities(self.loss, self.decision_function(X, threads))

    def predict(self, X: Any, threads: int = 1) -> NDArray[Any]:
        """The label of every row; of a regressor its number."""
        score = self.decision_function(X, threads)
        return score if self.classes is None else self._labels[(score > 0).astype(np.intp)]

    def evaluate(
        self, columns: UsedColumns, threads: int, with_contributions: bool = False
    ) -> tuple[Array, Array]:
        """Scores, and if asked for the contributions of the used features, (features used, rows)."""
        flat = self._flat
        score, contributions, infinite = _kernels.predict_steps(
            [columns.values[j] for j in flat.features],
            columns.n_rows,
            flat.cuts,
            flat.offsets,
            flat.levels,
            flat.missing,
            self.intercept,
            with_contributions,
            threads,
        )
        if infinite >= 0:
            feature = flat.features[infinite]
            name = feature if self.feature_names is None else repr(self.feature_names[feature])
            raise ValueError(
                f"X contains infinity in column {name}; values must be finite, or NaN where they are missing."
            )
        return score, contributions

    def read(self, X: Any) -> UsedColumns:
        """The columns that the terms look at; labels as their codes."""
        return read_columns(X, self.feature_names, self.n_features, self.features_used, self.categories)

    # ------------------------------------------------------------------------------------ built once

    @cached_property
    def _steps(self) -> tuple[StepFunction, ...]:
        by_feature: dict[int, list[Term]] = {}
        for term in self.terms:
            by_feature.setdefault(term.feature, []).append(term)
        return tuple(
            add_up(own, self.feature_name(feature), self.categories.get(feature))
            for feature, own in by_feature.items()
        )

    @cached_property
    def _flat(self) -> FlatSteps:
        return FlatSteps.join(self._steps)

    @cached_property
    def _labels(self) -> NDArray[Any]:
        return checks.label_array(self.classes or ())


def model_loss(loss: Loss) -> str:
    """What a model calls its loss: the name of one of ours, or "own"."""
    known = MARGIN_LOSSES.get(loss.name) or RESIDUAL_LOSSES.get(loss.name)
    return loss.name if type(loss) is type(known) else OWN_LOSS


def loss_with_probabilities(loss: str) -> Loss:
    """The loss of that name; a clear error for a loss of the user's own."""
    if loss not in MARGIN_LOSSES:
        raise ValueError("A model of a loss of one's own has no probabilities; take decision_function.")
    return MARGIN_LOSSES[loss]


def score_probabilities(loss: str, score: Array) -> Array:
    """Probabilities of the two classes: shape (rows, 2)."""
    own = loss_with_probabilities(loss)
    # not 1 - p: small probabilities of the first class keep their digits
    return np.column_stack([own.probability(-score), own.probability(score)])


def _check_categories(given: Any, n_features: int) -> dict[int, Categories]:
    if not isinstance(given, Mapping):
        raise fault("categories", "the categories of some features", given)
    found = {}
    for key, own in given.items():
        feature = checks.integer("categories", key, "features by their index")
        if not 0 <= feature < n_features:
            raise fault("categories", f"features by an index below n_features = {n_features}", key)
        if not isinstance(own, Categories):
            raise fault(f"categories[{feature}]", "categories", own)
        try:
            checks.check_labels(own.kept, own.rare)
        except ValueError as error:
            raise ValueError(f"categories[{feature}].{error}") from None
        found[feature] = own
    return found


def _check_unit(value: Any, terms: tuple[Term, ...]) -> float:
    unit = checks.number("unit", value, "a positive number")
    if not 0 < unit < math.inf:
        raise fault("unit", "a positive number", value)
    for term in terms:
        points = term.weight / unit
        if points > MAX_POINTS or term.weight != unit * round(points):
            expected = f"a number whose multiples, at most {MAX_POINTS}, are all weights"
            raise fault("unit", f"{expected} ({term.weight} is none)", value)
    return unit


def _check_terms(
    terms: Any, n_features: int, intercept: float, categories: Mapping[int, Categories]
) -> tuple[Term, ...]:
    if not isinstance(terms, tuple | list):
        raise fault("terms", "a list of terms", terms)
    total = abs(intercept)
    known = {feature: frozenset(own.kept) for feature, own in categories.items()}
    for k, term in enumerate(terms):
        if not isinstance(term, Term):
            raise fault(f"terms[{k}]", "a term", term)
        feature = term.feature
        if feature >= n_features:
            raise fault(f"terms[{k}].feature", f"an index below n_features = {n_features}", feature)
        if not term.labels:
            if feature in known:
                raise fault(f"terms[{k}].cut", f"a category: feature {feature} has categories", term.cut)
        elif feature not in known:
            field, found = ("category", term.category) if term.one_of is None else ("one_of", term.one_of)
            raise fault(f"terms[{k}].{field}", f"a cut: feature {feature} has no categories", found)
        for i, own in enumerate(term.labels):
            place = f"terms[{k}].category" if term.one_of is None else f"terms[{k}].one_of[{i}]"
            if isinstance(own, Other):
                if not categories[feature].rare:
                    raise fault(place, f"a kept category: feature {feature} has no rare ones", own)
            elif own not in known[feature]:
                raise fault(place, f"a kept category of feature {feature}", own)
        if term.one_of is not None and len(term.one_of) >= categories[feature].n_codes:
            raise fault(f"terms[{k}].one_of", f"not all the categories of feature {feature}", term.one_of)
        total += term.weight
        if math.isinf(total):  # some score would not be finite
            raise fault(f"terms[{k}].weight", "weights with a finite sum", term.weight)
    return tuple(sorted(terms, key=lambda term: term.order))

"""A classifier for three classes or more: one ensemble per class, that class against the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import Categories
from cardboost.model import checks
from cardboost.model.checks import fault
from cardboost.model.columns import UsedColumns, read_columns
from cardboost.model.ensemble import CategoriesByFeature, Ensemble, Kind, loss_with_probabilities
from cardboost.model.terms import Array


@dataclass(frozen=True)
class MulticlassEnsemble:
    """A finished classifier: ``ensembles[k]`` tells ``classes[k]`` (True) from all others (False).

    The highest score wins, and of equal scores the first. All ensembles are about the same columns, with the
    same loss and, where they use the same feature, the same categories.
    """

    classes: tuple[Any, ...]
    ensembles: tuple[Ensemble, ...]

    def __post_init__(self) -> None:
        classes = checks.class_labels(self.classes, 3, None, "three labels or more")
        if not isinstance(self.ensembles, tuple | list):
            raise fault("ensembles", "a list of ensembles", self.ensembles)
        if len(self.ensembles) != len(classes):
            raise ValueError(
                f"ensembles: expected one for each of {len(classes)} classes, found {len(self.ensembles)}"
            )
        categories: dict[int, Categories] = {}
        cuts: set[int] = set()
        for k, own in enumerate(self.ensembles):
            place = f"ensembles[{k}]"
            if not isinstance(own, Ensemble):
                raise fault(place, "an ensemble", own)
            if own.classes is None:
                raise fault(f"{place}.loss", "the loss of a classifier", own.loss)
            if own.classes != (False, True) or type(own.classes[0]) is not bool:
                raise fault(f"{place}.classes", "false and true", own.classes)
            for name in ("loss", "n_features", "feature_names"):
                first, found = getattr(self.ensembles[0], name), getattr(own, name)
                if found != first:
                    raise fault(f"{place}.{name}", "the same as in ensembles[0]", found)
            for feature in own.features_used:
                mine = own.categories.get(feature)
                first = categories.get(feature)
                if (feature in cuts and mine is not None) or (first is not None and mine != first):
                    expected = f"feature {feature} to have the same categories in every ensemble"
                    raise fault(f"{place}.categories", expected, mine)
            categories.update(own.categories)
            cuts.update(set(own.features_used) - set(own.categories))
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "ensembles", tuple(self.ensembles))

    # ------------------------------------------------------------------------------------ what it is made of

    @property
    def kind(self) -> Kind:
        return "multiclass"

    @property
    def loss(self) -> str:
        return self.ensembles[0].loss

    @property
    def n_features(self) -> int:
        return self.ensembles[0].n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return self.ensembles[0].feature_names

    @property
    def n_terms(self) -> int:
        """Terms of all classes together."""
        return sum(own.n_terms for own in self.ensembles)

    @cached_property
    def features_used(self) -> tuple[int, ...]:
        """Indices of the features that have a term for some class, ascending."""
        return tuple(sorted({feature for own in self.ensembles for feature in own.features_used}))

    @cached_property
    def categories(self) -> Mapping[int, Categories]:
        """The categories of the features that have categorical terms for some class."""
        return CategoriesByFeature(
            {feature: labels for own in self.ensembles for feature, labels in own.categories.items()}
        )

    def feature_name(self, feature: int) -> str:
        """The name of a feature, or x0, x1, ... where the table had no names."""
        return self.ensembles[0].feature_name(feature)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ``model.io.from_dict`` is the way back."""
        return {"classes": list(self.classes), "ensembles": [own.to_dict() for own in self.ensembles]}

    # ------------------------------------------------------------------------------------ prediction

    def decision_function(self, X: Any, threads: int = 1) -> Array:
        """The score of every row for every class: shape (rows, classes)."""
        columns = self._columns(X)
        out = np.empty((columns.n_rows, len(self.classes)))
        for k, own in enumerate(self.ensembles):
            out[:, k] = own.evaluate(columns, threads)[0]
        return out

    def contributions(self, X: Any, threads: int = 1) -> Array:
        """What every feature adds to every score of every row: shape (rows, n_features, classes)."""
        columns = self._columns(X)
        out = np.zeros((columns.n_rows, self.n_features, len(self.classes)))
        for k, own in enumerate(self.ensembles):
            used = own.evaluate(columns, threads, with_contributions=True)[1]
            out[:, list(own.features_used), k] = used.T
        return out

    def predict_proba(self, X: Any, threads: int = 1) -> Array:
        """Probabilities of each class against the rest, divided by their sum: shape (rows, classes)."""
        return self.normalised(
            loss_with_probabilities(self.loss).probability(self.decision_function(X, threads))
        )

    @staticmethod
    def normalised(share: Array) -> Array:
        """Shares (rows, classes) divided by their sum in every row; equal where all of them are 0."""
        total = np.zeros(len(share))
        for k in range(share.shape[1]):  # in a fixed order: the same bits for a row in any table
            total += share[:, k]
        share[total == 0] = 1.0
        total[total == 0] = share.shape[1]
        return share / total[:, None]

    def predict(self, X: Any, threads: int = 1) -> NDArray[Any]:
        """The label with the highest score, the first of equals."""
        return self._labels[np.argmax(self.decision_function(X, threads), axis=1)]

    def _columns(self, X: Any) -> UsedColumns:
        return read_columns(X, self.feature_names, self.n_features, self.features_used, self.categories)

    @cached_property
    def _labels(self) -> NDArray[Any]:
        return checks.label_array(self.classes)

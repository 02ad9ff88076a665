"""A classifier for three classes or more: one ensemble per class, that class against the rest."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cardboost.data.categories import Categories
from cardboost.model import schema
from cardboost.model.base import Array, TableModel, normalised
from cardboost.model.ensemble import CategoriesByFeature, Ensemble, loss_with_probabilities
from cardboost.model.schema import Fault, expected, form


@dataclass(frozen=True)
class MulticlassEnsemble(TableModel):
    """A finished classifier: ``ensembles[k]`` tells ``classes[k]`` (True) from all others (False).

    The highest score wins, and of equal scores the first. All ensembles are about the same columns, with the
    same loss and, where they use the same feature, the same categories.
    """

    classes: tuple[Any, ...] = field(metadata=form(schema.class_labels("three labels or more", 3)))
    ensembles: tuple[Ensemble, ...] = field(metadata=schema.records(Ensemble, "an ensemble"))

    def _check(self) -> None:
        if len(self.ensembles) != len(self.classes):
            problem = f"expected one for each of {len(self.classes)} classes, found {len(self.ensembles)}"
            raise Fault(problem, "ensembles")
        categories: dict[int, Categories | None] = {}
        for k, ensemble in enumerate(self.ensembles):
            with schema.under("ensembles", k):
                self._check_member(ensemble, categories)

    def _check_member(self, ensemble: Ensemble, categories: dict[int, Categories | None]) -> None:
        """An ensemble goes with the first, and its features with those of the ensembles before it."""
        if ensemble.classes is None:
            raise expected("the loss of a classifier", ensemble.loss, "loss")
        if ensemble.classes != (False, True) or type(ensemble.classes[0]) is not bool:
            raise expected("false and true", ensemble.classes, "classes")
        for name in ("loss", "n_features", "feature_names"):
            value = getattr(ensemble, name)
            if value != getattr(self.ensembles[0], name):
                raise expected("the same as in ensembles[0]", value, name)
        for feature in ensemble.features_used:
            labels = ensemble.categories.get(feature)
            if categories.setdefault(feature, labels) != labels:
                what = f"feature {feature} to have the same categories in every ensemble"
                raise expected(what, labels, "categories")

    @property
    def parts(self) -> tuple[Ensemble, ...]:
        return self.ensembles

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
        return sum(ensemble.n_terms for ensemble in self.ensembles)

    @cached_property
    def features_used(self) -> tuple[int, ...]:
        """Indices of the features that have a term for some class, ascending."""
        return tuple(sorted({feature for ensemble in self.ensembles for feature in ensemble.features_used}))

    @cached_property
    def categories(self) -> Mapping[int, Categories]:
        """The categories of the features that have categorical terms for some class."""
        return CategoriesByFeature(dict(ChainMap(*(dict(part.categories) for part in self.ensembles))))

    def predict_proba(self, X: Any, threads: int = 1) -> Array:
        """Probabilities of each class against the rest, divided by their sum: shape (rows, classes)."""
        score = self.decision_function(X, threads)
        return normalised(loss_with_probabilities(self.loss).probability(score))

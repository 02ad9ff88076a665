"""What the classifiers share: rows of classes, and predictions of a fitted ensemble."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if

from cardboost.boosting.learner_task import LearnerTask
from cardboost.boosting.path import BoostingPath
from cardboost.boosting.stump_task import DataFacts, StumpTask
from cardboost.boosting.task import HeldOutRows
from cardboost.data.arguments import flag
from cardboost.data.binning import bin_table
from cardboost.data.exact import unmasked
from cardboost.data.labels import class_codes, class_factors, sample_weights, split_rows
from cardboost.data.table import Table
from cardboost.data.threads import usable_threads
from cardboost.data.weights import RowWeights
from cardboost.dictionary.label_orders import label_orders
from cardboost.dictionary.resolve import resolve_dictionary
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.estimators.base import BoostedCards, PreparedFit, plain
from cardboost.model.ensemble import model_loss
from cardboost.model.fitted_learner import count_rows
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.problem.losses import MARGIN_LOSSES, Loss
from cardboost.problem.risk import risk_of

Array = NDArray[np.float64]


def has_probabilities(estimator: Any) -> bool:
    """Whether the loss has probabilities; an error that says why not is the cause of the AttributeError."""
    loss = estimator._score_loss()
    if loss is not None and not loss.has_probability:
        loss.probability(0.0)
    return True


class ClassifierCards(ClassifierMixin, BoostedCards):
    """Base of the classifiers. Not for use by itself."""

    #: parameters that only stumps know, with the value that says nothing
    _STUMP_PARAMETERS: ClassVar[Mapping[str, Any]] = {"monotonic_cst": None}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

    def _class_rows(self, table: Table, y: Any, sample_weight: Any) -> tuple[NDArray[Any], ClassRows]:
        """The classes and the rows that have a weight."""
        classes, codes = class_codes(y, table.n_rows)
        raw = sample_weights(sample_weight, table.n_rows)
        if raw is not None and not (raw > 0).all():
            keep = raw > 0
            table, codes, raw = table.take(keep), codes[keep], raw[keep]
        classes, codes = present(classes, codes)
        if self.monotonic_cst is not None and len(classes) > 2:
            raise ValueError("monotonic_cst is for two classes: with more, a direction has no meaning.")
        return classes, ClassRows(table, codes, raw, class_factors(self.class_weight, classes, codes, raw))

    def _check_classes(self, earlier: Any, classes: NDArray[Any]) -> None:
        """A warm start needs the classes of the earlier fit."""
        before = list(getattr(self, "classes_", ()))
        if earlier is not None and list(classes) != before:
            raise ValueError(f"warm_start: the classes are {list(classes)}, but the model knows {before}.")

    def _class_tasks(
        self, X: Any, y: Any, sample_weight: Any, loss: Loss, earlier: Any = None
    ) -> tuple[PreparedFit, ClassRows]:
        """Read and check the rows: one task for two classes, else one against the rest for every class.

        Other learners than stumps read the rows as they are, and take two classes.
        """
        if resolve_dictionary(self.dictionary) != ("stumps",):
            return self._learner_task(X, y, sample_weight, loss)
        table = self._read_for_fit(X)
        by_feature = self._limits_features(table)
        classes, rows = self._class_rows(table, y, sample_weight)
        rows, held_out = rows.split(getattr(self, "validation_fraction", None), self.random_state)
        self._check_classes(earlier, classes)
        tasks = self._stump_tasks(rows, classes, loss, earlier, held_out, by_feature)
        n_tasks = 1 if len(classes) == 2 else len(classes)
        return PreparedFit.of_table(table, tasks, n_tasks, classes), rows

    def _stump_tasks(
        self,
        rows: ClassRows,
        classes: NDArray[Any],
        loss: Loss,
        earlier: tuple[BoostingPath, ...] | None = None,
        held_out: ClassRows | None = None,
        by_feature: bool = False,
    ) -> Iterator[tuple[str, StumpTask]]:
        """One task for two classes, else one against the rest for every class, over the same stumps."""
        binary, threads = len(classes) == 2, usable_threads(self.n_jobs)
        weights = rows.weights()
        dictionary: StumpDictionary | None = None
        for k, target in enumerate([1] if binary else range(len(classes))):
            sign = rows.sign(target)
            if dictionary is None:
                dictionary = self._dictionary(rows.table, sign, weights, threads, by_feature=by_feature)
            else:
                orders = label_orders(dictionary.matrix, weights, sign > 0, threads)
                dictionary = dictionary.relabelled(sign, orders)
            pair = (plain(classes[0]), plain(classes[1])) if binary else (False, True)
            risk = risk_of(loss, weights, sign, threads)
            held_out_bins = None
            if held_out is not None:
                other = replace(risk, weights=held_out.weights(), sign=held_out.sign(target))
                held_out_bins = self._held_out(held_out.table, dictionary.matrix, other)
            task = StumpTask(
                dictionary,
                risk,
                rows.facts(target, binary, threads),
                self._frame(model_loss(loss), rows.table, dictionary.matrix, pair),
                None if earlier is None else earlier[k],
                held_out_bins,
            )
            yield "" if binary else f"{plain(classes[target])!r} ", task

    def _learner_task(self, X: Any, y: Any, sample_weight: Any, loss: Loss) -> tuple[PreparedFit, ClassRows]:
        """The task of weak learners that are not, or not only, stumps."""
        self._refuse_stump_parameters()
        X, with_stumps = unmasked(X), "stumps" in resolve_dictionary(self.dictionary)
        n_rows, threads = count_rows(X), usable_threads(self.n_jobs)
        table = self._read_for_fit(X) if with_stumps else Table((), None, n_rows)
        classes, codes = class_codes(y, n_rows)
        raw = sample_weights(sample_weight, n_rows)
        if raw is not None and not (raw > 0).all():
            keep = np.flatnonzero(raw > 0)
            X, table, codes, raw = _safe_indexing(X, keep), table.take(keep), codes[keep], raw[keep]
        classes, codes = present(classes, codes)
        if len(classes) > 2:
            raise ValueError(
                f"y has {len(classes)} classes; with other learners than stumps only two are supported. "
                "Wrap the estimator in sklearn.multiclass.OneVsRestClassifier."
            )
        rows = ClassRows(table, codes, raw, class_factors(self.class_weight, classes, codes, raw))
        n_features, names = shape_of(X)
        held_out, fraction = None, getattr(self, "validation_fraction", None)
        if fraction is not None:
            kept, aside = split_rows(fraction, codes, table.n_rows, self.random_state)
            other = rows.take(aside)
            held_out_risk = risk_of(loss, other.weights(), other.sign(1), threads)
            held_out = HeldOutRows(_safe_indexing(X, aside), held_out_risk)
            X, rows = _safe_indexing(X, kept), rows.take(kept)
        task = LearnerTask.make(
            self.dictionary,
            X,
            rows.sign(1),
            loss,
            self._learner_intercept(),
            threads,
            n_features=n_features,
            sample_weight=rows.raw,
            class_weight=rows.facts(1, True, threads).class_weight,
            classes=(plain(classes[0]), plain(classes[1])),
            feature_names=names,
            matrix=bin_table(rows.table, rows.weights(), self.max_bins, threads) if with_stumps else None,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            held_out=held_out,
        )
        return PreparedFit(n_features, names, (), iter([("", task)]), 1, classes), rows

    def _learner_intercept(self) -> bool:
        """Whether the columns of the intercept stand before those of learners."""
        return flag("fit_intercept", self.fit_intercept)

    def _refuse_stump_parameters(self) -> None:
        """Say which parameters learners other than stumps do not know."""
        for name, neutral in self._STUMP_PARAMETERS.items():
            value = getattr(self, name)
            value = flag(name, value) if isinstance(neutral, bool) else value
            if value is not neutral and value != neutral:
                raise ValueError(f"{name} is for stumps only; with other learners leave it at {neutral!r}.")

    def _remember(self, prepared: PreparedFit, results: Sequence[Any]) -> None:
        super()._remember(prepared, results)
        certificates = getattr(self, "certificate_", None)
        if isinstance(certificates, list):
            view = self._class_view(self.classes_)
            pairs = zip(self.ensemble_.classes, certificates, strict=True)
            self.certificate_ = [replace(part, positive=label, view=view) for label, part in pairs]

    def _class_view(self, classes: NDArray[Any]) -> Any:
        """For more than two classes class weights are part of the row weights that certificates are about."""
        return None if self.class_weight is None else partial(_weighted_rows, self.class_weight, classes)

    def decision_function(self, X: Any) -> Array:
        """The score of every row. A positive score means ``classes_[1]``.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            With more than two classes, one column per class.
        """
        rows = self._rows(X)
        return self.ensemble_.decision_function(rows, usable_threads(self.n_jobs))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the highest score; a score of exactly 0 means ``classes_[0]``.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Returns
        -------
        array of shape (n_samples,)
            Class labels.
        """
        return self._label(self.decision_function(X))

    def _label(self, score: Array) -> NDArray[Any]:
        index = (score > 0).astype(np.intp) if score.ndim == 1 else np.argmax(score, axis=1)
        return self.classes_[index]

    def _score_loss(self) -> Loss | None:
        """The loss that scores are read by; None where nothing is known of it before a fit."""
        name = self.ensemble_.loss if hasattr(self, "ensemble_") else getattr(self, "loss", None)
        return MARGIN_LOSSES.get(name) if isinstance(name, str) else None

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes. Only available if the loss has probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``.
        """
        rows = self._rows(X)
        return self.ensemble_.predict_proba(rows, usable_threads(self.n_jobs))

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities. Only available if the loss has probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Columns are in the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """The scores after every round of column generation, and last those of the final model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Yields
        ------
        array of shape (n_samples,) or (n_samples, n_classes)
            As returned by ``decision_function``.
        """
        for ensemble, table in self._staged(X):
            yield ensemble.decision_function(table, usable_threads(self.n_jobs))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """The predicted classes after every round, and last those of the final model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Yields
        ------
        array of shape (n_samples,)
            Class labels.
        """
        for score in self.staged_decision_function(X):
            yield self._label(score)

    @available_if(has_probabilities)
    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """The probabilities after every round, and last those of the final model.

        Only available if the loss has probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Yields
        ------
        array of shape (n_samples, n_classes)
            As returned by ``predict_proba``.
        """
        for ensemble, table in self._staged(X):
            yield ensemble.predict_proba(table, usable_threads(self.n_jobs))

    def _stages(self) -> Iterator[Any]:
        if not self._paths:
            raise ValueError("Stages are kept for stumps only.")
        if len(self._paths) == 1:
            yield from super()._stages()
            return
        stages = [list(path.ensembles()) for path in self._paths]
        for r in range(max(map(len, stages))):
            parts = tuple(own[min(r, len(own) - 1)] for own in stages)
            yield MulticlassEnsemble(self.ensemble_.classes, parts)
        yield self.ensemble_


class ClassRows:
    """The rows of a fit: table, class of every row, raw weights and the factors of the classes."""

    def __init__(self, table: Table, codes: NDArray[np.intp], raw: Array | None, factors: Array) -> None:
        self.table, self.codes, self.raw, self.factors = table, codes, raw, factors

    def take(self, rows: NDArray[np.intp]) -> ClassRows:
        raw = None if self.raw is None else self.raw[rows]
        return ClassRows(self.table.take(rows), self.codes[rows], raw, self.factors)

    def split(self, fraction: Any, random_state: Any) -> tuple[ClassRows, ClassRows | None]:
        """Rows to train on and rows to hold out; all of them, and None, where ``fraction`` is None."""
        if fraction is None:
            return self, None
        kept, aside = split_rows(fraction, self.codes, self.table.n_rows, random_state)
        return self.take(kept), self.take(aside)

    def sign(self, target: int) -> NDArray[np.int8]:
        return np.where(self.codes == target, 1, -1).astype(np.int8)

    def _balanced(self) -> bool:
        return bool((self.factors == self.factors[0]).all())

    def weights(self) -> RowWeights:
        """Class weights are factors, so that whole row weights stay counts."""
        return RowWeights.make(
            self.table.n_rows, self.raw, None if self._balanced() else self.factors[self.codes]
        )

    def effective(self) -> Array | None:
        """Raw weights with the class weights multiplied in."""
        if self._balanced():
            return self.raw
        return self.factors[self.codes] * (1.0 if self.raw is None else self.raw)

    def facts(self, target: int, binary: bool, threads: int) -> DataFacts:
        """With more than two classes, class weights are part of the row weights of every certificate."""
        positive = self.codes == target
        raw = self.raw if binary else self.effective()
        balanced = self._balanced() or not binary
        return DataFacts(
            self.table.n_rows,
            self.table.n_features,
            cache(lambda: self.table.digest(positive, raw, threads)),
            (1.0, 1.0) if balanced else (float(self.factors[0]), float(self.factors[1])),
        )


def _weighted_rows(
    class_weight: Any, classes: NDArray[Any], X: Any, y: Any, sample_weight: Any
) -> tuple[Any, Any, Array | None]:
    """Rows with their class weights multiplied in, as certificates of several classes see them."""
    codes = np.searchsorted(classes, np.asarray(y))
    raw = sample_weights(sample_weight, len(codes))
    keep = slice(None) if raw is None else raw > 0
    factors = class_factors(class_weight, classes, codes[keep], None if raw is None else raw[keep])
    if (factors == factors[0]).all():
        return X, y, raw
    return X, y, factors[codes] * (1.0 if raw is None else raw)


def present(classes: NDArray[Any], codes: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Without the classes that have no row of positive weight."""
    held = np.bincount(codes, minlength=len(classes)) > 0
    if np.count_nonzero(held) < 2:
        raise ValueError(
            "Classifier can't train when only one class is present: the others have no positive weight."
        )
    return classes[held], (np.cumsum(held) - 1)[codes]


def shape_of(X: Any) -> tuple[int, tuple[str, ...] | None]:
    """The number of features of anything a learner may be given, and their names if it has any."""
    names = getattr(X, "columns", None)
    text = names is not None and all(isinstance(name, str) for name in names)
    n_features = int(X.shape[1]) if len(getattr(X, "shape", ())) == 2 else len(X[0])
    return n_features, tuple(names) if text else None  # type: ignore[arg-type]

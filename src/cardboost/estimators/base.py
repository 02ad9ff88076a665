"""What the boosted estimators share: reading tables, resolving parameters, and the fitted card."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from cardboost.boosting.path import ModelFrame
from cardboost.boosting.task import HeldOutBins
from cardboost.data.arguments import flag
from cardboost.data.binning import BinnedMatrix, apply_cuts, bin_table
from cardboost.data.exact import unmasked
from cardboost.data.table import Table, check_finite, check_rows, match_names, read_table
from cardboost.data.threads import usable_threads
from cardboost.data.weights import RowWeights
from cardboost.dictionary.label_orders import label_orders
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.estimators.callbacks import CallbackSupportMixin
from cardboost.estimators.features import monotonic_directions
from cardboost.model.files import save_fitted
from cardboost.model.learners import LearnerEnsemble
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]
_CANDIDATES = "_candidates"  # what a fit has chosen from, over its rows


def store_parameters(estimator: Any, arguments: dict[str, Any]) -> None:
    """Keep the arguments of ``__init__``, passed as ``locals()``, under their names and as they are."""
    for name, value in arguments.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """What a fit has read and checked, before anything is trained.

    Parameters
    ----------
    n_features, feature_names, categorical
        Of X; ``categorical``: positions of the features that hold labels.
    tasks : iterator of (str, TrainingTask)
        What to train, with what to call each on the screen; made when they are due.
    n_tasks : int
        One, or one for every class.
    classes : array or None
        None for a number.
    settings : TrainingSettings or None
        Of an estimator that selects terms.
    table : Table or None
        X as columns; None where only the learners read it.
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    categorical: tuple[int, ...]
    tasks: Iterator[tuple[str, Any]]
    n_tasks: int = 1
    classes: NDArray[Any] | None = None
    settings: Any = None
    table: Table | None = None

    @classmethod
    def of_table(
        cls,
        table: Table,
        tasks: Iterator[tuple[str, Any]],
        n_tasks: int = 1,
        classes: NDArray[Any] | None = None,
    ) -> PreparedFit:
        """For stumps of a table."""
        categorical = tuple(table.categorical)
        return cls(table.n_features, table.names, categorical, tasks, n_tasks, classes, None, table)

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes that are known before the training."""
        known: dict[str, Any] = {"n_features_in_": self.n_features, "_categorical": self.categorical}
        if self.feature_names is not None:
            known["feature_names_in_"] = np.array(self.feature_names, dtype=object)
        return known if self.classes is None else known | {"classes_": self.classes}

    def reconstruction(self) -> Callable[[Any], dict[str, Any]] | None:
        """What a scoring callback needs to predict in the middle of a fit; None for several tasks."""
        if self.n_tasks > 1:
            return None
        known = self.attributes()
        return lambda ensemble: {"ensemble_": ensemble, **known}


def plain(label: Any) -> Any:
    """A label as JSON knows it."""
    return label.item() if hasattr(label, "item") else label


class BoostedCards(CallbackSupportMixin, BaseEstimator):
    """Base of all estimators: tables in, an ensemble with its certificate out. Not for use by itself."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # ------------------------------------------------------------------------------------ copies

    def __getstate__(self) -> dict[str, Any]:
        """For pickles: everything but the candidates of a selection, which are made of the training rows."""
        return {key: value for key, value in super().__getstate__().items() if key != _CANDIDATES}

    def __copy__(self) -> Any:
        other: Any = type(self).__new__(type(self))
        other.__dict__.update(vars(self))
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        other: Any = type(self).__new__(type(self))
        memo[id(self)] = other
        other.__dict__.update(copy.deepcopy(vars(self), memo))
        return other

    # ------------------------------------------------------------------------------------ reading

    def _read_for_fit(self, X: Any) -> Table:
        table = read_table(X, categorical=self.categorical_features)
        check_rows(table)
        check_finite(table, usable_threads(self.n_jobs))  # also in rows that are held out, or have no weight
        return table

    def _table(self, X: Any) -> Table:
        """A table to predict for."""
        check_is_fitted(self)
        table = read_table(X, categorical=list(self._categorical))
        match_names(getattr(self, "feature_names_in_", None), self.n_features_in_, table, type(self).__name__)
        check_rows(table)
        check_finite(table, usable_threads(self.n_jobs))
        return table

    def _rows(self, X: Any) -> Any:
        """What the fitted model reads: a table, or for learners the rows as they are given."""
        check_is_fitted(self)
        return unmasked(X) if isinstance(self.ensemble_, LearnerEnsemble) else self._table(X)

    def _reset(self) -> None:
        """Forget an earlier fit, so that nothing of it survives the next one."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _remember(self, prepared: PreparedFit, results: Sequence[Any]) -> None:
        """The fitted attributes, of one result or of one for every class."""
        self._reset()
        for name, value in prepared.attributes().items():
            setattr(self, name, value)
        classes, several = prepared.classes, len(results) > 1
        self._paths = tuple(result.path for result in results if result.path is not None)
        self.trace_: Any = [result.trace for result in results] if several else results[0].trace
        self.ensemble_: Any = results[0].ensemble
        if several:
            assert classes is not None
            labels = tuple(plain(label) for label in classes)
            self.ensemble_ = MulticlassEnsemble(labels, tuple(result.ensemble for result in results))
        certificates = [getattr(result, "certificate", None) for result in results]
        if certificates[0] is not None:
            self.certificate_: Any = certificates if several else certificates[0]
        if results[0].held_out is not None:
            self.validation_losses_ = [result.held_out for result in results]

    # ------------------------------------------------------------------------------------ training

    def _dictionary(
        self,
        table: Table,
        sign: NDArray[np.int8] | None,
        weights: RowWeights,
        threads: int,
        target: Array | None = None,
        by_feature: bool = False,
    ) -> StumpDictionary:
        """All stumps on the table; ``sign`` or ``target`` is what sets of labels are made for."""
        matrix = bin_table(table, weights, self.max_bins, threads)
        monotonic = monotonic_directions(self.monotonic_cst, table)
        values = target if sign is None else sign > 0
        assert values is not None
        return StumpDictionary(
            matrix, sign, threads, flag("fit_intercept", self.fit_intercept), weights, monotonic,
            by_feature=by_feature,
            orders=label_orders(matrix, weights, values, threads),
        )  # fmt: skip

    def _limits_features(self, table: Table) -> bool:
        """Whether features are limited or cost something, so that equal columns of two of them differ."""
        return False

    def _frame(
        self, loss: str, table: Table, matrix: BinnedMatrix, classes: tuple[Any, Any] | None, **units: float
    ) -> ModelFrame:
        return ModelFrame(
            loss, table.n_features, table.names, classes, matrix.cuts, matrix.categories, **units
        )

    def _held_out(self, table: Table, matrix: BinnedMatrix, risk: EmpiricalRisk) -> HeldOutBins:
        """Held-out rows under the cuts and categories of the training rows."""
        return HeldOutBins(apply_cuts(table, matrix.cuts, risk.threads, matrix.categories), risk)

    # ------------------------------------------------------------------------------------ what is fitted

    def contributions(self, X: Any) -> Array:
        """What each feature adds to the score; the intercept comes on top.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.

        Returns
        -------
        array of shape (n_samples, n_features)
            With more than two classes, of shape (n_samples, n_features, n_classes).

        Raises
        ------
        ValueError
            If the model holds other learners than stumps.
        """
        check_is_fitted(self)
        if isinstance(self.ensemble_, LearnerEnsemble):
            raise ValueError("A model of learners has no contributions per feature; only stumps have.")
        table = self._table(X)
        return self.ensemble_.contributions(table, usable_threads(self.n_jobs))

    def _staged(self, X: Any) -> Iterator[Any]:
        """The ensembles of all rounds, then the final one, each with the table read once."""
        table = self._table(X)
        for stage in self._stages():
            yield stage, table

    def _stages(self) -> Iterator[Any]:
        yield from self._paths[0].ensembles()
        yield self.ensemble_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, and its certificate if any, to a JSON file; :func:`cardboost.load_model` reads it.

        Parameters
        ----------
        path : str or path-like
            The file to write. An existing file is replaced.

        Raises
        ------
        ValueError
            If the model holds other learners than stumps.
        """
        check_is_fitted(self)
        if isinstance(self.ensemble_, LearnerEnsemble):
            self.ensemble_.save(path)
        save_fitted(path, self.ensemble_, getattr(self, "certificate_", None), self)

    def export(self, format: str, path: str | os.PathLike[str] | None = None, **options: Any) -> str | bytes:
        """Convert the model to another format.

        Parameters
        ----------
        format : {"c", "c-int16", "python", "sql", "onnx", "json"}
            The format; "c-int16" is C without floating point.
        path : str, path-like or None, default=None
            The file to write. None: nothing is written.
        **options
            Options of the format: see docs/export.md.

        Returns
        -------
        str or bytes
            The exported model; bytes for "onnx".

        Raises
        ------
        ValueError
            If the format or an option is unknown, or the model cannot be expressed in the format.
        """
        from cardboost.export import export_model

        check_is_fitted(self)
        return export_model(self.ensemble_, format, path, **options)

    def card(self) -> str:
        """The model as a card to read and print.

        Returns
        -------
        str
            One table per feature, followed by the statement of the certificate if there is one.

        Raises
        ------
        ValueError
            If the model holds other learners than stumps.
        """
        from cardboost.model.card import render_card

        check_is_fitted(self)
        if isinstance(self.ensemble_, LearnerEnsemble):
            raise ValueError("A model of learners has no card; only stumps have.")
        own = getattr(self, "certificate_", None)
        if own is None:
            return render_card(self.ensemble_)
        lines = [part.lines() for part in own] if isinstance(own, list) else own.lines()
        return render_card(self.ensemble_, certificate_lines=lines)

"""What the boosted estimators share: reading tables, resolving parameters, and the fitted card."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from cardboost.boosting.column_generation import TraceRecord
from cardboost.boosting.held_out import HeldOut
from cardboost.boosting.path import ModelFrame
from cardboost.data.arguments import flag
from cardboost.data.binning import BinnedMatrix, apply_cuts, bin_table
from cardboost.data.exact import unmasked
from cardboost.data.table import Table, check_finite, check_rows, match_names, read_table
from cardboost.data.threads import usable_threads
from cardboost.data.weights import RowWeights
from cardboost.dictionary.label_orders import label_orders
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.estimators.callbacks import CallbackSupportMixin, Rounds
from cardboost.estimators.features import monotonic_directions
from cardboost.model.ensemble import Ensemble
from cardboost.model.files import save_fitted
from cardboost.model.learners import LearnerEnsemble
from cardboost.problem.risk import EmpiricalRisk

Array = NDArray[np.float64]
Progress = Callable[[TraceRecord], object]
AfterRound = Callable[[TraceRecord, Callable[[], Any]], bool]

_CANDIDATES = "_candidates"  # what a fit has chosen from, over its rows


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

    def _remember_features(self, table: Table) -> None:
        self._categorical = tuple(table.categorical)
        self._remember_names(table.n_features, table.names)

    def _remember_names(self, n_features: int, names: tuple[str, ...] | None) -> None:
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    # ------------------------------------------------------------------------------------ training

    def _after_round(
        self,
        rounds: Rounds,
        callback: Progress | None,
        fitted: Callable[[Ensemble], dict[str, Any]] | None,
        label: str = "",
    ) -> AfterRound:
        """Tells everybody of a round: the user, scikit-learn's callbacks, the screen."""

        def after(record: TraceRecord, model: Callable[[], Ensemble]) -> bool:
            if self.verbose:
                print(_line(record, label))
            asked = callback is not None and bool(callback(record))
            state = None if fitted is None else lambda: fitted(model())
            return rounds.after(state) or asked

        return after

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

    def _frame(
        self, loss: str, table: Table, matrix: BinnedMatrix, classes: tuple[Any, Any] | None, **units: float
    ) -> ModelFrame:
        return ModelFrame(
            loss, table.n_features, table.names, classes, matrix.cuts, matrix.categories, **units
        )

    def _held_out(self, table: Table, matrix: BinnedMatrix, risk: EmpiricalRisk) -> HeldOut:
        """Held-out rows under the cuts and categories of the training rows."""
        return HeldOut(apply_cuts(table, matrix.cuts, risk.threads, matrix.categories), risk)

    # ------------------------------------------------------------------------------------ what is fitted

    def contributions(self, X: Any) -> Array:
        """What each feature adds to the score: shape (rows, features); the intercept comes on top."""
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
        """Write the model, and its certificate if any, as JSON; :func:`cardboost.load_model` reads them."""
        check_is_fitted(self)
        if isinstance(self.ensemble_, LearnerEnsemble):
            self.ensemble_.save(path)
        save_fitted(path, self.ensemble_, getattr(self, "certificate_", None), self)

    def export(self, format: str, path: str | os.PathLike[str] | None = None, **options: Any) -> str | bytes:
        """The model as "c", "c-int16", "python", "sql", "onnx" or "json", and in a file if ``path`` is given.

        Options are those of the format: see docs/export.md.
        """
        from cardboost.export import export_model

        check_is_fitted(self)
        return export_model(self.ensemble_, format, path, **options)

    def card(self) -> str:
        """The model as a card to read and print."""
        from cardboost.model.card import render_card

        check_is_fitted(self)
        if isinstance(self.ensemble_, LearnerEnsemble):
            raise ValueError("A model of learners has no card; only stumps have.")
        own = getattr(self, "certificate_", None)
        if own is None:
            return render_card(self.ensemble_)
        lines = [part.lines() for part in own] if isinstance(own, list) else own.lines()
        return render_card(self.ensemble_, certificate_lines=lines)


def _line(record: TraceRecord, label: str) -> str:
    return (
        f"[cardboost] {label}{record.seconds:7.2f} s  {record.n_columns:4d} columns  "
        f"{record.n_terms:4d} terms  objective {record.objective:.6f}  bound {record.lower_bound:.6f}"
    )

"""What the estimators share: parameters, one fit, the fitted attributes, and what a fitted model can do."""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from cardboost.boosting.task import TrainingResult
from cardboost.data.arguments import flag
from cardboost.data.exact import unmasked
from cardboost.data.table import Table, match_names
from cardboost.data.threads import usable_threads
from cardboost.estimators.callbacks import Reporter
from cardboost.estimators.column_roles import warn_of_table
from cardboost.estimators.looks import Looks
from cardboost.estimators.predictions import ClassPredictions
from cardboost.estimators.rows import TrainingRows, checked_table, class_weighted_rows, plain
from cardboost.model.base import label_array, normalised
from cardboost.model.files import save_fitted
from cardboost.model.learners import LearnerEnsemble
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.problem.budget import Budget
from cardboost.problem.losses import MARGIN_LOSSES, Loss

Array = NDArray[np.float64]
_OF_ROWS = ("_candidates", "_labelled")  # what a fit has chosen from, and what chose a threshold


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """What a fit has read and checked, before anything is trained.

    Parameters
    ----------
    rows : TrainingRows
        The rows to train on.
    tasks : iterator of (str, TrainingTask)
        What to train, with what to call each on the screen; made when they are due.
    settings : TrainingSettings, SoftMarginSettings or StageSettings
        The parameters, checked and resolved.
    fitted : mapping
        Fitted attributes of this family of estimators that are known before the training.
    budget : Budget or None
        The time that is left for the training, where preparing has used a share of it.
    """

    rows: TrainingRows
    tasks: Iterator[tuple[str, Any]]
    settings: Any
    fitted: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget | None = None

    @property
    def n_tasks(self) -> int:
        """One, or one for every class."""
        return len(self.rows.outputs)

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes that are known before the training."""
        return table_attributes(*self.rows.shape(), self.rows.classes) | dict(self.fitted)

    def reconstruction(self) -> Callable[[Any], dict[str, Any]] | None:
        """What a scoring callback needs to predict in the middle of a fit; None for several tasks."""
        if self.n_tasks > 1:
            return None
        attributes = self.attributes()
        return lambda ensemble: {"ensemble_": ensemble, **attributes}

    def joined(self, ensembles: Sequence[Any]) -> Any:
        """The model of one ensemble, or of one for every class."""
        if self.n_tasks == 1:
            return ensembles[0]
        assert self.rows.classes is not None
        return MulticlassEnsemble(tuple(map(plain, self.rows.classes)), tuple(ensembles))


def table_attributes(
    n_features: int,
    feature_names: tuple[str, ...] | None,
    categorical: tuple[int, ...],
    classes: NDArray[Any] | None,
) -> dict[str, Any]:
    """The fitted attributes that speak of the table and the labels."""
    attributes: dict[str, Any] = {"n_features_in_": n_features, "_categorical": categorical}
    if feature_names is not None:
        attributes["feature_names_in_"] = np.array(feature_names, dtype=object)
    return attributes if classes is None else attributes | {"classes_": classes}


def restore_fitted(
    estimator: Any, ensemble: Any, certificates: list[Any], categorical: tuple[int, ...]
) -> None:
    """Make a fitted estimator of a model that was read from a file, and of its certificates.

    ``categorical``: the positions of the features that are read as labels, see :func:`categorical_positions`.
    """
    classes = None if ensemble.classes is None else label_array(ensemble.classes)
    attributes = table_attributes(ensemble.n_features, ensemble.feature_names, categorical, classes)
    one = not isinstance(ensemble, MulticlassEnsemble)
    attributes |= {"ensemble_": ensemble, "certificate_": certificates[0] if one else certificates}
    vars(estimator).update(attributes, _paths=())


def categorical_positions(estimator: Any) -> tuple[int, ...]:
    """The positions of the features that a fitted estimator reads as labels."""
    positions: tuple[int, ...] = estimator._categorical
    return positions


def certificates_of(estimator: Any) -> list[Any]:
    """The certificate of a fitted estimator, or those of its classes."""
    certificate = estimator.certificate_
    return certificate if isinstance(certificate, list) else [certificate]


class FittedModel(BaseEstimator):
    """Writes the model of a fitted estimator. Not for use by itself."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, and its certificate if any, to a JSON file; :func:`cardboost.load_model` reads it.

        Parameters
        ----------
        path : str or path-like
            The file to write. An existing file is replaced.

        Raises
        ------
        ValueError
            If the model holds learners of other libraries: only stumps and built-in networks can be written.
        """
        check_is_fitted(self, "ensemble_")
        save_fitted(path, self.ensemble_, getattr(self, "certificate_", None), self)

    def export(self, format: str, path: str | os.PathLike[str] | None = None, **options: Any) -> str | bytes:
        """Convert the model to another format.

        Parameters
        ----------
        format : {"c", "c-int16", "python", "sql", "javascript", "excel", "onnx", "json"}
            The format; "c-int16" is C without floating point. Networks know "onnx" and "json".
        path : str, path-like or None, default=None
            The file to write. None: nothing is written.
        **options
            Options of the format: see docs/export.md.

        Returns
        -------
        str or bytes
            The exported model; bytes for "excel" and "onnx".

        Raises
        ------
        ValueError
            If the format or an option is unknown, or the model cannot be expressed in the format.
        """
        from cardboost.export import export_model

        check_is_fitted(self, "ensemble_")
        return export_model(self.ensemble_, format, path, **options)


@dataclass(kw_only=True, eq=False, repr=False)
class TableParameters:
    """The parameters of the estimators that read a table and boost on its stumps, or on other learners."""

    dictionary: Any = "stumps"
    max_bins: int = 255
    categorical_features: Any = "from_dtype"
    monotonic_cst: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0


class BoostedCards(Looks, CallbackSupportMixin, FittedModel):
    """Base of the estimators of stumps and other learners: tables in, an ensemble out.

    Not for use by itself. A family of estimators says how its parameters and rows become a
    :class:`PreparedFit` (``_prepare``), and how one of its tasks is trained (``_train``).
    """

    #: parameters that only stumps know: with other learners they stay at their defaults
    stump_parameters: ClassVar[tuple[str, ...]] = ("monotonic_cst",)
    #: whether the constant columns stand before those of learners
    _intercept_columns: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # ------------------------------------------------------------------------------------ copies

    def __getstate__(self) -> dict[str, Any]:
        """For pickles: everything but what is made of rows, as the candidates of a selection are."""
        return {key: value for key, value in super().__getstate__().items() if key not in _OF_ROWS}

    def __copy__(self) -> Any:
        other: Any = type(self).__new__(type(self))
        other.__dict__.update(vars(self))
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        other: Any = type(self).__new__(type(self))
        memo[id(self)] = other
        other.__dict__.update(copy.deepcopy(vars(self), memo))
        return other

    # ------------------------------------------------------------------------------------ training

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Any = None) -> Self:
        """Train on a table of numbers and categories, with missing values.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        y : array-like of shape (n_samples,)
            Class labels, or numbers for a regressor.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the rows. A weight of 2 is the row twice.
        callback : FitCallback, callable or None
            Follows the fit and may end it: see :class:`cardboost.FitCallback`. A function is called with the
            record of every round, and ends the generation of columns by returning True.

        Returns
        -------
        self
        """
        reporter = Reporter(self, X, y, callback)
        budget = reporter.budget(getattr(self, "time_limit", None))
        prepared = self._prepare(X, y, sample_weight, budget)
        warn_of_table(X, prepared.rows.table, self.categorical_features)
        reporter.begin()
        budget, results = prepared.budget or budget, []
        for k, (label, task) in enumerate(prepared.tasks):
            part = budget if prepared.n_tasks == 1 else budget.part(k, prepared.n_tasks)
            after_round = reporter.after_round(prepared.reconstruction(), label)
            settings = replace(prepared.settings, budget=part, callback=after_round)
            results.append(self._train(task, settings, reporter.proving(label)))
        self._accept(prepared, results)
        reporter.end()
        return self

    @abstractmethod
    def _prepare(self, X: Any, y: Any, sample_weight: Any, budget: Budget) -> PreparedFit:
        """Read and check everything."""

    @abstractmethod
    def _train(self, task: Any, settings: Any, proving: Any) -> TrainingResult:
        """One ensemble within the budget of the settings; ``proving`` is told how far an exact search is."""

    def _earlier(self, rows: TrainingRows) -> Any:
        """The paths of the last fit that a warm start goes on from, one for every task; None for none."""
        paths = getattr(self, "_paths", None)
        if not flag("warm_start", self.warm_start) or not paths:
            return None
        if rows.classes is not None and list(rows.classes) != list(self.classes_):
            classes, before = list(rows.classes), list(self.classes_)
            raise ValueError(f"warm_start: the classes are {classes}, but the model knows {before}.")
        return paths

    def _accept(self, prepared: PreparedFit, results: Sequence[TrainingResult]) -> None:
        """The fitted attributes of one result, or of one for every class; nothing of an earlier fit stays."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self.__dict__.update(prepared.attributes())
        several = prepared.n_tasks > 1
        self._paths = tuple(result.path for result in results if result.path is not None)
        self._candidates: Any = tuple(filter(None, (result.candidates for result in results))) or None
        self.trace_: Any = [result.trace for result in results] if several else results[0].trace
        self.ensemble_: Any = prepared.joined([result.ensemble for result in results])
        certificates = [result.certificate for result in results]
        if certificates[0] is not None:
            self.certificate_: Any = certificates if several else certificates[0]
        if results[0].held_out is not None:
            self.validation_losses_ = [result.held_out for result in results]
        self.n_iter_ = max(result.n_iter for result in results)

    # ------------------------------------------------------------------------------------ what is fitted

    def _table(self, X: Any) -> Table:
        """A table to predict for."""
        check_is_fitted(self)
        table = checked_table(X, list(self._categorical), self.n_jobs)
        match_names(getattr(self, "feature_names_in_", None), self.n_features_in_, table, type(self).__name__)
        return table

    def _rows(self, X: Any) -> Any:
        """What the fitted model reads: a table, or for learners the rows as they are given."""
        check_is_fitted(self)
        return unmasked(X) if isinstance(self.ensemble_, LearnerEnsemble) else self._table(X)

    def _scores(self, X: Any) -> Array:
        rows = self._rows(X)
        return self.ensemble_.decision_function(rows, usable_threads(self.n_jobs))

    def _staged_scores(self, X: Any) -> Iterator[Array]:
        """The scores of the ensembles of all rounds, then of the final one."""
        table = self._table(X)
        for ensemble in self._stages():
            yield ensemble.decision_function(table, usable_threads(self.n_jobs))

    def _stages(self) -> Iterator[Any]:
        if not self._paths:
            raise ValueError("Stages are kept for stumps only.")
        stages = [list(path.ensembles()) for path in self._paths]
        for r in range(max(map(len, stages))):
            parts = tuple(ensembles[min(r, len(ensembles) - 1)] for ensembles in stages)
            one = len(parts) == 1
            yield parts[0] if one else MulticlassEnsemble(self.ensemble_.classes, parts)
        yield self.ensemble_

    def _stump_model(self, what: str) -> Any:
        """The fitted model, where it is one of stumps."""
        check_is_fitted(self)
        if isinstance(self.ensemble_, LearnerEnsemble):
            raise ValueError(f"A model of learners has no {what}; only stumps have.")
        return self.ensemble_

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
        model = self._stump_model("contributions per feature")
        table = self._table(X)
        return model.contributions(table, usable_threads(self.n_jobs))

    @property
    def feature_importances_(self) -> Array:
        """How far each feature can move the score, as a share of what all features can, (n_features_in_,).

        The range of a feature is the difference between the highest and the lowest level of its step
        function, the level of missing values included; with more than two classes the ranges of all classes
        are added up. Importances add up to 1, or are all 0 for a model without terms. Not available for
        models of other learners than stumps.
        """
        try:
            model = self._stump_model("importance per feature")
        except ValueError as error:
            raise AttributeError(str(error)) from error
        ranges = np.zeros(self.n_features_in_)
        for part in model.parts:
            for step in part.step_functions():
                ranges[step.feature] += step.spread
        return ranges / (ranges.sum() or 1.0)

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

        model, certificate = self._stump_model("card"), getattr(self, "certificate_", None)
        if isinstance(certificate, list):
            return render_card(model, certificate_lines=[part.lines() for part in certificate])
        return render_card(model, certificate_lines=certificate.lines() if certificate else ())


@dataclass(kw_only=True, eq=False, repr=False)
class ClassifierCards(ClassPredictions, BoostedCards):
    """Base of the classifiers of tables. Not for use by itself."""

    class_weight: Any = None

    def _accept(self, prepared: PreparedFit, results: Sequence[TrainingResult]) -> None:
        super()._accept(prepared, results)
        certificates = getattr(self, "certificate_", None)
        if isinstance(certificates, list):
            factors = prepared.rows.factors
            view = None if factors is None else partial(class_weighted_rows, self.classes_, factors)
            pairs = zip(self.ensemble_.classes, certificates, strict=True)
            self.certificate_ = [replace(part, positive=label, view=view) for label, part in pairs]

    def _score_loss(self) -> Loss | None:
        """The loss that scores are read by; None where nothing is known of it before a fit."""
        fitted = hasattr(self, "ensemble_")
        loss = getattr(self, "_loss", self.ensemble_.loss) if fitted else getattr(self, "loss", None)
        if isinstance(loss, str):
            return MARGIN_LOSSES.get(loss)
        return loss if isinstance(loss, Loss) else None

    def _require_probabilities(self) -> None:
        loss = self._score_loss()
        if loss is not None and not loss.has_probability:
            loss.probability(0.0)  # says why not

    def _probabilities(self, score: Array) -> Array:
        """Probabilities at these scores, those of more than two classes divided by their sum."""
        loss = self._score_loss()
        assert loss is not None
        if score.ndim == 1:  # not 1 - p: small probabilities of the first class keep their digits
            return np.column_stack([loss.probability(-score), loss.probability(score)])
        return normalised(loss.probability(score))

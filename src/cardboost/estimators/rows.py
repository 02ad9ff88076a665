"""The rows of a fit: read, checked, held out in part, and made into tasks for the training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from cardboost.boosting.learner_task import LearnerTask
from cardboost.boosting.path import ModelFrame
from cardboost.boosting.stagewise_steps import RegressorTask
from cardboost.boosting.stump_task import StumpTask
from cardboost.boosting.task import HeldOutBins, HeldOutRows
from cardboost.data.arguments import flag
from cardboost.data.binning import BinnedMatrix, apply_cuts, bin_table
from cardboost.data.exact import unmasked
from cardboost.data.labels import class_codes, class_factors, real_targets, sample_weights, split_rows
from cardboost.data.table import Table, check_finite, check_rows, read_table
from cardboost.data.threads import usable_threads
from cardboost.data.weights import RowWeights
from cardboost.dictionary.label_orders import label_orders
from cardboost.dictionary.learners import LearningRows
from cardboost.dictionary.resolve import Part, ToFit, bind_dictionary, resolve_dictionary
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.estimators.feature_rules import (
    given_cuts,
    refuse_directions,
    require_stumps,
    stump_rules,
)
from cardboost.model.ensemble import OWN_LOSS, model_loss
from cardboost.model.fitted_learner import count_rows, name_of, take_rows
from cardboost.problem.losses import Loss
from cardboost.problem.prices import FeatureLimits
from cardboost.problem.risk import EmpiricalRisk, risk_of

Array = NDArray[np.float64]

_LARGEST_TARGET = 1e306
_FARTHEST_TARGET = 1e12  # standard deviations: a row whose weight is a share of 1e-24 at most
_SMALLEST_SCALE = 1e-307


def plain(label: Any) -> Any:
    """A label as JSON knows it."""
    return label.item() if hasattr(label, "item") else label


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows that have a weight.

    Parameters
    ----------
    X : table or None
        The rows as the user passed them, for learners; None where there are only stumps.
    table : Table
        Their columns, for stumps.
    y : array
        The position of every row's class, or its target.
    raw : array or None
        The weights that the user passed.
    classes : array or None
        The labels; None for regression.
    factors : array or None
        One per class; None where all are equal.
    units : pair of float
        The target is trained on as ``(y - units[0]) / units[1]``.
    """

    X: Any
    table: Table
    y: NDArray[Any]
    raw: Array | None
    classes: NDArray[Any] | None = None
    factors: Array | None = None
    units: tuple[float, float] = (0.0, 1.0)

    @property
    def outputs(self) -> Sequence[int | None]:
        """What a model is trained for: a number (None), the second of two classes, or each class."""
        if self.classes is None:
            return (None,)
        return (1,) if len(self.classes) == 2 else range(len(self.classes))

    def shape(self) -> tuple[int, tuple[str, ...] | None, tuple[int, ...]]:
        """The number of features, their names if they have any, and the positions of categorical ones."""
        if self.X is None:
            return self.table.n_features, self.table.names, self.table.categorical
        names = getattr(self.X, "columns", None)
        text = names is not None and all(isinstance(name, str) for name in names)
        n_features = int(self.X.shape[1]) if len(getattr(self.X, "shape", ())) == 2 else len(self.X[0])
        return n_features, tuple(names) if text else None, ()  # type: ignore[arg-type]

    def take(self, rows: NDArray[np.intp]) -> TrainingRows:
        X = None if self.X is None else take_rows(self.X, rows)
        raw = None if self.raw is None else self.raw[rows]
        return replace(self, X=X, table=self.table.take(rows), y=self.y[rows], raw=raw)

    def split(self, fraction: Any, random_state: Any) -> tuple[TrainingRows, TrainingRows | None]:
        """Rows to train on and rows to hold out; all of them, and None, where ``fraction`` is None."""
        if fraction is None:
            return self, None
        codes = None if self.classes is None else self.y
        kept, aside = split_rows(fraction, codes, len(self.y), random_state)
        return self.take(kept), self.take(aside)

    def standardised(self, loss: Loss) -> TrainingRows:
        """With the mean and deviation of targets as units; a loss of the user's own is in those of y."""
        if self.classes is not None or model_loss(loss) == OWN_LOSS:
            return self
        if not np.abs(self.y).max() < _LARGEST_TARGET:
            raise ValueError(f"y holds numbers of {_LARGEST_TARGET:g} or more: divide it by a constant.")
        mean, scale = self.weights.mean_and_deviation(self.y)
        if scale < _SMALLEST_SCALE:
            raise ValueError(
                f"y has a standard deviation of {scale:g}, which double precision does not carry: multiply y "
                "by a constant, or leave out rows of next to no weight."
            )
        far = float(np.abs(self.y - mean).max() / scale)
        if far > _FARTHEST_TARGET:
            raise ValueError(
                f"y has a row of next to no weight {far:.2g} standard deviations from the mean, too far for "
                "double precision: leave out such rows."
            )
        return replace(self, units=(mean, scale))

    @cached_property
    def weights(self) -> RowWeights:
        """Class weights are factors, so that whole row weights stay counts."""
        factors = None if self.factors is None else self.factors[self.y]
        return RowWeights.make(len(self.y), self.raw, factors)

    def effective_weights(self) -> Array | None:
        """Raw weights with the class weights multiplied in."""
        if self.factors is None:
            return self.raw
        return self.factors[self.y] * (1.0 if self.raw is None else self.raw)

    def certified(self, output: int | None) -> tuple[NDArray[Any], Array | None]:
        """Labels or targets, and weights, that the certificate of a model for this output is about.

        With more than two classes, class weights are part of the row weights of every certificate.
        """
        if output is None:
            return self.y, self.raw
        return self.y == output, self.raw if len(self.outputs) == 1 else self.effective_weights()

    def risk(self, loss: Loss, output: int | None, threads: int) -> EmpiricalRisk:
        if output is None:
            mean, scale = self.units
            return risk_of(loss, self.weights, None, threads, (self.y - mean) / scale)
        return risk_of(loss, self.weights, np.where(self.y == output, 1, -1).astype(np.int8), threads)

    def class_weight(self) -> tuple[float, float]:
        """The factors of two classes; those of more are part of the row weights."""
        if self.factors is None or len(self.factors) > 2:
            return 1.0, 1.0
        return float(self.factors[0]), float(self.factors[1])

    def digest(self, output: int | None, threads: int) -> Callable[[], str]:
        """Makes, once, the digest of the data that the certificate of a model for this output names."""
        values, raw = self.certified(output)
        labels, target = (None, values) if output is None else (values, None)
        return cache(lambda: self.table.digest(labels, raw, threads, target=target))

    def frame(self, loss: Loss, matrix: BinnedMatrix | None) -> ModelFrame:
        """What the models of these rows are called; ``matrix``: the binned table, where there are stumps."""
        n_features, names, _ = self.shape()
        mean, scale = self.units
        frame = ModelFrame(model_loss(loss), n_features, names, self.pair(), (), (), mean, scale)
        if matrix is None:
            return frame
        missing = tuple(np.flatnonzero(matrix.n_missing).tolist())
        return replace(frame, cuts=matrix.cuts, categories=matrix.categories, missing_in_training=missing)

    def pair(self) -> tuple[Any, Any] | None:
        """What the two classes of every model are called; None for regression."""
        if self.classes is None:
            return None
        return (plain(self.classes[0]), plain(self.classes[1])) if len(self.classes) == 2 else (False, True)


# ------------------------------------------------------------------------------------------------ reading


def read_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, loss: Loss
) -> tuple[TrainingRows, TrainingRows | None]:
    """The rows that an estimator of tables trains on, and those that it holds out, in the units of the loss.

    Stumps read a table; other learners read the rows as they are, and take two classes or a number.
    """
    parts = resolve_dictionary(estimator.dictionary, is_regressor(estimator))
    only_stumps = parts == ("stumps",)
    if not only_stumps:
        _refuse_stump_parameters(estimator)
        X = unmasked(X)
    if "stumps" in parts:
        table = checked_table(X, estimator.categorical_features, estimator.n_jobs)
    else:
        table = Table((), None, count_rows(X))
    rows = labelled_rows(estimator, None if only_stumps else X, table, y, sample_weight)
    if rows.classes is None:
        _require_weighted_fits(parts, rows.raw)
    elif len(rows.classes) > 2:
        if not only_stumps:
            raise ValueError(
                f"y has {len(rows.classes)} classes; with other learners than stumps only two are supported. "
                "Wrap the estimator in sklearn.multiclass.OneVsRestClassifier."
            )
        refuse_directions(estimator)
    rows, held_out = rows.split(getattr(estimator, "validation_fraction", None), estimator.random_state)
    rows = rows.standardised(loss)
    return rows, None if held_out is None else replace(held_out, units=rows.units)


def labelled_rows(estimator: Any, X: Any, table: Table, y: Any, sample_weight: Any) -> TrainingRows:
    """The rows of a table that have a weight, with their classes or targets."""
    n_rows, regression = table.n_rows, is_regressor(estimator)
    classes, values = (None, real_targets(y, n_rows)) if regression else class_codes(y, n_rows)
    raw = sample_weights(sample_weight, n_rows)
    rows = TrainingRows(X, table, values, raw)
    if raw is not None and not (raw > 0).all():
        rows = rows.take(np.flatnonzero(raw > 0))
    if classes is None:
        return rows
    classes, codes = present(classes, rows.y)
    factors = class_factors(estimator.class_weight, classes, codes, rows.raw)
    equal = (factors == factors[0]).all()
    return replace(rows, y=codes, classes=classes, factors=None if equal else factors)


def checked_table(X: Any, categorical: Any, n_jobs: int | None) -> Table:
    """A table of finite or missing numbers and of labels."""
    table = read_table(X, categorical=categorical)
    check_rows(table)
    check_finite(table, usable_threads(n_jobs))  # also in rows that are held out, or have no weight
    return table


def _refuse_stump_parameters(estimator: Any) -> None:
    """Say which parameters learners other than stumps do not know."""
    for name in estimator.stump_parameters:
        default, value = getattr(type(estimator), name), getattr(estimator, name)
        value = flag(name, value) if isinstance(default, bool) else value
        if value is not default and value != default:
            raise ValueError(f"{name} is for stumps only; with other learners leave it at {default!r}.")


def _require_weighted_fits(parts: tuple[Part, ...], raw: Array | None) -> None:
    """Refuse row weights where a learner that is to be fitted would not see them."""
    for part in parts if raw is not None else ():
        if isinstance(part, ToFit) and not has_fit_parameter(part.estimator, "sample_weight"):
            raise ValueError(
                f"dictionary: the fit of {name_of(part.estimator)} does not accept sample_weight, and rows "
                "have weights. Take a learner that does, or leave sample_weight out."
            )


def present(classes: NDArray[Any], codes: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Without the classes that have no row of positive weight."""
    held = np.bincount(codes, minlength=len(classes)) > 0
    if np.count_nonzero(held) < 2:
        raise ValueError(
            "Classifier can't train when only one class is present: the others have no positive weight."
        )
    return classes[held], (np.cumsum(held) - 1)[codes]


def class_weighted_rows(
    classes: NDArray[Any], factors: Array, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, Any, Array]:
    """Rows with class weights multiplied into their weights, as certificates of several classes see them."""
    codes = np.searchsorted(classes, np.asarray(y))
    raw = sample_weights(sample_weight, len(codes))
    return X, y, factors[codes] * (1.0 if raw is None else raw)


# ------------------------------------------------------------------------------------------------ tasks


def training_tasks(
    estimator: Any,
    rows: TrainingRows,
    held_out: TrainingRows | None,
    loss: Loss,
    earlier: Any = None,
    limits: FeatureLimits | None = None,
) -> Iterator[tuple[str, Any]]:
    """What to train, with what to call it: one task for two classes or a number, else one for every class.

    Parameters
    ----------
    estimator
        Its parameters say what the columns are.
    rows, held_out : TrainingRows
        As :func:`read_rows` gives them.
    loss : Loss
        Of margins or residuals.
    earlier : sequence of BoostingPath or None
        Where a warm start goes on from.
    limits : FeatureLimits or None
        Limits and costs of features; with them equal columns of two features differ.
    """
    threads = usable_threads(estimator.n_jobs)
    if rows.X is not None:
        yield "", _learner_task(estimator, rows, held_out, loss, threads)
        return
    dictionary: StumpDictionary | None = None
    for k, output in enumerate(rows.outputs):
        risk = rows.risk(loss, output, threads)
        values = risk.target if risk.sign is None else risk.sign > 0
        assert values is not None
        if dictionary is None:
            cuts = given_cuts(getattr(estimator, "cuts", None), rows.table)
            matrix = bin_table(rows.table, rows.weights, estimator.max_bins, threads, cuts)
            dictionary = StumpDictionary(
                matrix, risk.sign, threads, flag("fit_intercept", estimator.fit_intercept), rows.weights,
                by_feature=limits is not None, orders=label_orders(matrix, rows.weights, values, threads),
                **stump_rules(estimator, rows.table),
            )  # fmt: skip
            require_stumps(() if limits is None else limits.must_include, dictionary, rows.table)
        else:
            assert risk.sign is not None
            dictionary = dictionary.relabelled(risk.sign, label_orders(matrix, rows.weights, values, threads))
        held_out_bins = None
        if held_out is not None:
            bins = apply_cuts(held_out.table, matrix.cuts, threads, matrix.categories)
            held_out_bins = HeldOutBins(bins, held_out.risk(loss, output, threads))
        before = None if earlier is None else earlier[k]
        label = "" if len(rows.outputs) == 1 else f"{plain(rows.classes[output])!r} "  # type: ignore[index]
        yield label, StumpTask(
            dictionary, risk, rows.frame(loss, matrix), rows.digest(output, threads), rows.class_weight(),
            before, held_out_bins,
        )  # fmt: skip


def _learner_task(
    estimator: Any, rows: TrainingRows, held_out: TrainingRows | None, loss: Loss, threads: int
) -> LearnerTask | RegressorTask:
    """Weak learners that are not, or not only, stumps: for two classes or for a number."""
    (output,) = rows.outputs
    risk, aside = rows.risk(loss, output, threads), None
    if held_out is not None:
        aside = HeldOutRows(held_out.X, held_out.risk(loss, output, threads))
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    if risk.sign is None:
        parts = resolve_dictionary(estimator.dictionary, regression=True)
        return RegressorTask(parts, rows.X, risk, rows.raw, rows.frame(loss, None), seed, aside)
    matrix = None
    if rows.table.n_features:
        matrix = bin_table(rows.table, rows.weights, estimator.max_bins, threads)
    intercept = flag("fit_intercept", estimator.fit_intercept) and estimator._intercept_columns
    learning = LearningRows(rows.X, risk.sign, rows.pair() or (False, True), intercept, threads)
    parts = resolve_dictionary(estimator.dictionary)
    return LearnerTask(
        bind_dictionary(parts, learning, matrix, rows.weights, seed),
        risk_of(loss, rows.weights, None, threads),
        rows.frame(loss, matrix),
        rows.raw,
        rows.class_weight(),
        aside,
    )

"""What is known about predictions on labelled rows, as one value: measures, tables, intervals, subgroups.

It is computed from arrays alone, and everything that shows how good a model is reads it. Weight 2 counts as
the row twice, a row of weight 0 is left out, and the order of the rows does not matter.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from cardboost.model.base import ModelKind
from cardboost.model.card_text import number
from cardboost.model.predictions import Predictions
from cardboost.report import measures as ms
from cardboost.report.measures import Array, BinaryMeasures, Indices, MulticlassMeasures, RegressionMeasures

VERSION = 1  # of the plain data
FEWEST_ROWS = 5  # of a subgroup that is shown
MOST_GROUPS = 20  # that a column is divided into; all others are one more
OTHER, MISSING = "other", "missing"
_LARGEST = 1e150  # squares of larger numbers are not finite


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its bootstrap interval; None where it is not defined on the rows."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Threshold:
    """Where the positive class begins: *above* a score, *at* a probability or a total of points.

    Totals of points are scores whose threshold belongs to the positive class.
    """

    on: Literal["score", "probability", "points"] = "score"
    value: float = 0.0


@dataclass(frozen=True)
class Confusion:
    """Classes, and for each of them (first index) how often each is predicted: weight, and number of rows."""

    labels: tuple[Any, ...]
    weight: tuple[tuple[float, ...], ...]
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CalibrationGroup:
    """Rows of similar predictions: the mean prediction and what was observed, a share or a mean target."""

    rows: int
    weight: float
    predicted: float
    observed: Estimate


@dataclass(frozen=True)
class ClassFacts:
    """One of more than two classes, against all others."""

    label: Any
    rows: int
    share: Estimate
    recall: Estimate
    precision: Estimate
    auc: Estimate


@dataclass(frozen=True)
class GroupFacts:
    """A subgroup. One of fewer than five rows has no facts, and the number of its rows is not told."""

    label: Any
    rows: int | None
    facts: Facts | None


@dataclass(frozen=True)
class Bootstrap:
    """How intervals were made: percentiles of so many resamples of so many rows."""

    resamples: int
    rows: int
    seed: int
    level: float = ms.LEVEL


@dataclass(frozen=True)
class Facts:
    """What is known about predictions on labelled rows.

    Attributes
    ----------
    task : {"binary", "multiclass", "regression"}
        What is predicted.
    rows : int
        Number of rows with a positive weight.
    weight : float
        Sum of their weights.
    events : int or None
        Rows of the positive class, for two classes.
    measures : mapping of str to Estimate
        For two classes event_share, auc, gini, ks, log_loss, brier, calibration_in_the_large (mean
        probability minus share of events), accuracy, sensitivity, specificity, precision; for more accuracy,
        log_loss, auc (the mean of the classes, each against the rest); for numbers rmse, mae,
        median_absolute_error, r2, bias (mean prediction minus mean target).
    ks_at : float or None
        The score, or total of points, up to which the distributions of the two classes differ most.
    threshold : Threshold or None
        Where the positive class begins, for two classes.
    confusion : Confusion or None
        Classes against predicted classes.
    classes : tuple of ClassFacts
        The classes, where there are more than two.
    calibration : tuple of CalibrationGroup
        At most ten groups by ascending prediction; none without probabilities, and for more than two classes.
    bootstrap : Bootstrap or None
        How the intervals were made; None if there are none.
    by : str or None
        The column of the subgroups.
    groups : tuple of GroupFacts
        The subgroups.
    """

    task: ModelKind
    rows: int
    weight: float
    events: int | None
    measures: Mapping[str, Estimate]
    ks_at: float | None
    threshold: Threshold | None
    confusion: Confusion | None
    classes: tuple[ClassFacts, ...]
    calibration: tuple[CalibrationGroup, ...]
    bootstrap: Bootstrap | None
    by: str | None = None
    groups: tuple[GroupFacts, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON.

        Returns
        -------
        dict
            The version of the layout, and the fields.
        """
        return {"version": VERSION, **_plain(self)}

    @classmethod
    def from_dict(cls, document: Any) -> Facts:
        """Read what :meth:`to_dict` has written, also after JSON.

        Parameters
        ----------
        document : dict
            Plain data.

        Returns
        -------
        Facts
            Equal to those that were written.

        Raises
        ------
        ValueError
            If the version is another one, or something is not as :meth:`to_dict` writes it; the message
            begins with the path of the first fault.
        """
        if not isinstance(document, Mapping):
            raise ValueError(f"expected an object, found {reprlib.repr(document)}.")
        version = document.get("version")
        _require(type(version) is int and version == VERSION, str(VERSION), version, "version")
        entries = {name: entry for name, entry in document.items() if name != "version"}
        facts: Facts = _read(cls, entries, "")
        return facts

    def lines(self) -> list[str]:
        """The facts for a terminal of 80 columns.

        Returns
        -------
        list of str
            Lines of text.
        """
        from cardboost.report.facts_text import lines

        return lines(self)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _read(kind: Any, value: Any, path: str) -> Any:
    """A value of plain data as the type of a field; ``path``: where it stands."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if value is None else _read(arguments[0], value, path)
    if origin is Literal:
        _require(value in arguments, f"one of {', '.join(arguments)}", value, path)
        return value
    if origin is tuple:
        _require(isinstance(value, list | tuple), "a list", value, path)
        return tuple(_read(arguments[0], entry, f"{path}[{k}]") for k, entry in enumerate(value))
    if origin is Mapping:
        _require(isinstance(value, Mapping), "an object", value, path)
        return {name: _read(arguments[1], entry, _below(path, name)) for name, entry in value.items()}
    if is_dataclass(kind):
        names = [field.name for field in fields(kind)]
        exact = isinstance(value, Mapping) and set(value) == set(names)
        _require(exact, f"an object with {', '.join(names)}", value, path)
        hints = get_type_hints(kind)
        make: Any = kind
        return make(**{name: _read(hints[name], value[name], _below(path, name)) for name in names})
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        _require(number and np.isfinite(value), "a finite number", value, path)
        return float(value)
    if kind is int:
        _require(type(value) is int, "a whole number", value, path)
    elif kind is str:
        _require(isinstance(value, str), "text", value, path)
    else:  # a label
        _require(isinstance(value, str | int | float | None), "text or a number", value, path)
    return value


def _below(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else str(name)


def _require(holds: Any, wanted: str, value: Any, path: str) -> None:
    if not holds:
        raise ValueError(f"{path or 'facts'}: expected {wanted}, found {reprlib.repr(value)}.")


@dataclass(frozen=True, eq=False)
class Grouping:
    """A column that divides the rows: labels, and for every row the number of its label (-1: missing)."""

    name: str
    labels: tuple[Any, ...]
    codes: NDArray[Any]

    @classmethod
    def of(cls, name: str, column: Any) -> Grouping:
        """The groups of a column.

        Parameters
        ----------
        name : str
            Name of the column.
        column : Coded or array
            Labels and codes, or numbers with NaN for missing. More than 20 different numbers are divided into
            five intervals of nearly as many rows each.

        Returns
        -------
        Grouping
            The groups.
        """
        if hasattr(column, "codes"):
            return cls(name, tuple(column.labels), np.asarray(column.codes))
        values = np.asarray(column, dtype=np.float64)
        present = np.isfinite(values)
        cuts = np.unique(values[present])
        labels: list[Any] = [int(cut) if cut.is_integer() else cut for cut in cuts.tolist()]
        if len(cuts) > MOST_GROUPS:
            cuts = np.unique(np.quantile(values[present], (0.2, 0.4, 0.6, 0.8), method="lower"))
            ends = [number(cut) for cut in cuts.tolist()]
            between = [f"> {low}, <= {high}" for low, high in pairwise(ends)]
            labels = [f"<= {ends[0]}", *between, f"> {ends[-1]}"]
        return cls(name, tuple(labels), np.where(present, np.searchsorted(cuts, values), -1))


# ------------------------------------------------------------------------------------------------ computing


def evaluate(
    task: ModelKind,
    y: Any,
    prediction: Any,
    *,
    probability: Any = None,
    classes: Sequence[Any] | None = None,
    threshold: Threshold | None = None,
    sample_weight: Any = None,
    by: Grouping | None = None,
    n_bootstrap: int = 200,
    seed: int = 0,
) -> Facts:
    """Compare predictions with what was observed.

    Parameters
    ----------
    task : {"binary", "multiclass", "regression"}
        What is predicted.
    y : array-like of shape (n_rows,)
        0 and 1 for two classes, the numbers of the classes from 0 on for more, or targets.
    prediction : array-like of shape (n_rows,) or (n_rows, n_classes)
        Scores (larger ones for class 1; of more classes the highest wins, of equal ones the first), or
        predicted numbers.
    probability : array-like of shape (n_rows,) or (n_rows, n_classes), default=None
        Probabilities of class 1, or of all classes; None if there are none.
    classes : sequence, default=None
        The labels of the classes; None for their numbers.
    threshold : Threshold, default=None
        Where class 1 begins. None: above a score of 0.
    sample_weight : array-like of shape (n_rows,), default=None
        Row weights.
    by : Grouping, default=None
        Subgroups, each of which gets facts of its own.
    n_bootstrap : int, default=200
        Number of resamples for the intervals; 0 for none. Of more than 100,000 rows that differ, so many are
        resampled, which ``Facts.bootstrap`` tells.
    seed : int, default=0
        Seed of the resamples.

    Returns
    -------
    Facts
        What is known.

    Raises
    ------
    ValueError
        If the arrays do not fit together, or contain NaN.

    Examples
    --------
    >>> from cardboost.report.facts import evaluate
    >>> facts = evaluate("binary", [0, 0, 1, 1], [-1.0, 0.5, 0.2, 3.0], n_bootstrap=0)
    >>> facts.measures["auc"].value, facts.measures["precision"].value
    (0.75, 0.6666666666666666)
    """
    if task not in get_args(ModelKind):
        raise ValueError(f"task must be one of {get_args(ModelKind)}; got {task!r}.")
    if not isinstance(n_bootstrap, int) or n_bootstrap < 0:
        raise ValueError(f"n_bootstrap must be a whole number from 0; got {n_bootstrap!r}.")
    rows = _Rows.read(task, y, prediction, probability, classes, sample_weight, threshold or Threshold())
    if by is not None and np.shape(by.codes) != (len(rows.y),):
        raise ValueError(f"by must have a code for each of {len(rows.y)} rows; got {np.shape(by.codes)}.")
    kept = rows.weight > 0.0
    facts = rows.take(kept).facts(n_bootstrap, seed)
    if by is None:
        return facts
    codes, groups = by.codes[kept], []
    for label, members in _groups(by.labels, codes):
        told = len(members) >= FEWEST_ROWS
        part = rows.take(np.flatnonzero(kept)[members]).facts(n_bootstrap, seed) if told else None
        groups.append(GroupFacts(label, len(members) if told else None, part))
    return replace(facts, by=by.name, groups=tuple(groups))


def evaluate_predictions(
    predictions: Predictions, y: Any, *, threshold: Threshold | None = None, **options: Any
) -> Facts:
    """Compare the predictions of a model with what was observed.

    Parameters
    ----------
    predictions : Predictions
        What :func:`cardboost.model.predictions.model_predictions` returns. Totals of points take the place of
        scores where there are any, unless the threshold is on the score.
    y : array-like of shape (n_rows,)
        Targets, or the numbers of the classes (``cardboost.model.predictions.label_codes``).
    threshold : Threshold, default=None
        Where the second of two classes begins. None: where the model says.
    **options
        ``sample_weight``, ``by``, ``n_bootstrap`` and ``seed`` of :func:`evaluate`.

    Returns
    -------
    Facts
        What is known.
    """
    task, score, probability = predictions.task, predictions.score, predictions.probability
    if task == "binary":
        probability = None if probability is None else probability[:, 1]
        points, least = predictions.points, predictions.points_threshold
        if points is not None and least is not None and (threshold is None or threshold.on != "score"):
            score, threshold = points.astype(np.float64), threshold or Threshold("points", least)
        elif threshold is not None and threshold.on == "points":
            raise ValueError("a threshold in points needs a scorecard.")
        if threshold is None and predictions.score_threshold != 0.0:
            threshold = Threshold("score", predictions.score_threshold)
    classes = predictions.classes
    return evaluate(task, y, score, probability=probability, classes=classes, threshold=threshold, **options)


def _groups(labels: Sequence[Any], codes: NDArray[Any]) -> list[tuple[Any, Indices]]:
    """The rows of every group: the largest in the order of their labels, the others, and what is missing."""
    present, held = np.unique(codes[codes >= 0], return_counts=True)
    largest = np.sort(present[np.argsort(-held, kind="stable")[:MOST_GROUPS]])
    groups = [(labels[code], np.flatnonzero(codes == code)) for code in largest.tolist()]
    others = np.flatnonzero((codes >= 0) & ~np.isin(codes, largest))
    missing = np.flatnonzero(codes < 0)
    return groups + [(name, rows) for name, rows in ((OTHER, others), (MISSING, missing)) if len(rows)]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Checked arrays, an entry for every row."""

    task: ModelKind
    y: NDArray[Any]
    prediction: Array
    probability: Array | None
    weight: Array
    labels: tuple[Any, ...]
    threshold: Threshold

    @classmethod
    def read(
        cls,
        task: ModelKind,
        y: Any,
        prediction: Any,
        probability: Any,
        classes: Sequence[Any] | None,
        sample_weight: Any,
        threshold: Threshold,
    ) -> _Rows:
        target = _numbers("y", y, 1)
        n = len(target)
        if not n:
            raise ValueError("y has no rows: there is nothing to compare.")
        scores = _numbers("prediction", prediction, 2 if task == "multiclass" else 1, n)
        chance = None if probability is None or task == "regression" else probability
        if chance is not None:
            chance = _numbers("probability", chance, scores.ndim, n)
            if chance.shape != scores.shape:
                raise ValueError(f"probability must have shape {scores.shape}; got {chance.shape}.")
            if (chance < 0.0).any() or (chance > 1.0).any():
                raise ValueError("probability must be between 0 and 1.")
        if threshold.on == "probability" and task == "binary" and chance is None:
            raise ValueError("a threshold on the probability needs probabilities.")
        n_classes = {"binary": 2, "multiclass": scores.shape[-1], "regression": 0}[task]
        if n_classes and not np.isin(target, np.arange(n_classes)).all():
            wanted = "0 or 1" if task == "binary" else f"a whole number from 0 to {n_classes - 1}"
            raise ValueError(f"y must be {wanted} in every row, the number of a class.")
        if task == "regression" and max(np.abs(target).max(), np.abs(scores).max()) > _LARGEST:
            raise ValueError(f"y and prediction must not be larger than {_LARGEST:g}.")
        labels = tuple(range(n_classes) if classes is None or not n_classes else classes)
        if len(labels) != n_classes:
            raise ValueError(f"classes must have {n_classes} labels; got {len(labels)}.")
        weight = np.ones(n) if sample_weight is None else _numbers("sample_weight", sample_weight, 1, n)
        with np.errstate(over="ignore"):
            total = weight.sum()
        if (weight < 0.0).any() or not 0.0 < total < np.inf:
            raise ValueError("sample_weight must not be negative, with a finite sum above 0.")
        return cls(
            task, target.astype(np.intp) if n_classes else target, scores, chance, weight, labels, threshold
        )

    def take(self, rows: NDArray[Any]) -> _Rows:
        chance = None if self.probability is None else self.probability[rows]
        y, prediction, weight = self.y[rows], self.prediction[rows], self.weight[rows]
        return _Rows(self.task, y, prediction, chance, weight, self.labels, self.threshold)

    @property
    def predicted(self) -> NDArray[Any]:
        """The number of the predicted class."""
        if self.task == "multiclass":
            return np.argmax(self.prediction, axis=1)
        on, value = self.threshold.on, self.threshold.value
        if on == "score":
            return self.prediction > value
        values = self.prediction if on == "points" or self.probability is None else self.probability
        return values >= value

    def facts(self, n_bootstrap: int, seed: int) -> Facts:
        """What is known of these rows, of which there is one at least."""
        columns = [self.prediction, *([] if self.probability is None else [self.probability])]
        keys = [key for column in columns for key in (column.T if column.ndim == 2 else [column])]
        order, count = ms.merge_rows([*keys, self.y, self.weight])
        rows = self.take(order)
        exponent = int(np.frexp(rows.weight.max())[1])
        share: Array = np.ldexp(rows.weight, -exponent)  # products of weights are finite
        held = share * count
        group, measures = rows._measures(held)
        values = measures.values(held)
        low, high = np.full((2, len(values)), np.nan)
        bootstrap = None
        if n_bootstrap:
            low, high, n_used = ms.bootstrap(measures, count, share, n_bootstrap, seed)
            bootstrap = Bootstrap(n_bootstrap, n_used, seed)
        estimates = [
            Estimate(*(float(end) if np.isfinite(end) else None for end in ends))
            for ends in zip(values, low, high, strict=True)
        ]
        n_named = len(measures.names)
        named, others = dict(zip(measures.names, estimates, strict=False)), estimates[n_named:]
        weight = count * rows.weight
        binary, ks_at = self.task == "binary", None
        if isinstance(measures, BinaryMeasures) and named["ks"].value is not None:
            ks_at = float(measures.ranking.score[measures.ranking.auc_and_ks(held)[2]])
        confusion = None if self.task == "regression" else rows._confusion(count, weight)
        return Facts(
            task=self.task,
            rows=int(count.sum()),
            weight=float(weight.sum()),
            events=int(count[rows.y == 1].sum()) if binary else None,
            measures=named,
            ks_at=ks_at,
            threshold=self.threshold if binary else None,
            confusion=confusion,
            classes=rows._classes(count, others) if self.task == "multiclass" else (),
            calibration=() if group is None else rows._calibration(group, count, weight, others),
            bootstrap=bootstrap,
        )

    def _measures(self, weight: Array) -> tuple[Indices | None, ms.Measures]:
        """What is measured, and the calibration groups."""
        if self.task == "multiclass":
            rank = self.prediction if self.probability is None else self.probability
            occurs = tuple((np.bincount(self.y, minlength=len(self.labels)) > 0).tolist())
            return None, MulticlassMeasures(self.y, self.predicted, rank, self.probability, occurs)
        by = self.probability if self.task == "binary" else self.prediction
        group = None if by is None else ms.calibration_groups(by, weight)
        n_groups = 0 if group is None else int(group.max()) + 1
        if self.task == "regression":
            assert group is not None
            return group, RegressionMeasures(self.y, self.prediction, group, n_groups)
        event = self.y == 1
        return group, BinaryMeasures(
            event, self.predicted, self.prediction, self.probability, group, n_groups
        )

    def _confusion(self, count: NDArray[np.int64], weight: Array) -> Confusion:
        k = len(self.labels)
        cell = self.y * k + self.predicted

        def table(values: NDArray[Any], kind: type) -> tuple[tuple[Any, ...], ...]:
            held = np.bincount(cell, values, k * k).reshape(k, k)
            return tuple(tuple(map(kind, line)) for line in held.tolist())

        return Confusion(self.labels, table(weight, float), table(count, int))

    def _classes(self, count: NDArray[np.int64], estimates: Sequence[Estimate]) -> tuple[ClassFacts, ...]:
        k = len(self.labels)
        held = np.bincount(self.y, count, k).astype(np.int64).tolist()
        by_class = zip(*(estimates[start : start + k] for start in range(0, 4 * k, k)), strict=True)
        return tuple(
            ClassFacts(label, n, *four) for label, n, four in zip(self.labels, held, by_class, strict=True)
        )

    def _calibration(
        self, group: Indices, count: NDArray[np.int64], weight: Array, observed: Sequence[Estimate]
    ) -> tuple[CalibrationGroup, ...]:
        prediction = self.prediction if self.probability is None else self.probability
        rows = np.bincount(group, count).astype(int).tolist()
        held = np.bincount(group, weight)
        predicted = ms.group_means(group, prediction, weight / weight.max(), len(rows)).tolist()
        return tuple(map(CalibrationGroup, rows, held.tolist(), predicted, observed))


def _numbers(name: str, values: Any, n_dimensions: int, n_rows: int | None = None) -> Array:
    """An array of finite numbers, with a row for each of ``n_rows``."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}.") from None
    if array.ndim != n_dimensions:
        raise ValueError(f"{name} must have {n_dimensions} dimension(s); got shape {array.shape}.")
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"{name} must have {n_rows} rows as y has; got {len(array)}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    return array

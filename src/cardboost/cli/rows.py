"""The rows of a table, for training and for a model: what each column is, the target, weights and groups."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cardboost.cli.files import BadInput, closest, listed
from cardboost.cli.options import names_in
from cardboost.data.dates import DateParts, column_dates, derive_dates
from cardboost.data.frame import Array, Coded, Frame
from cardboost.data.labels import split_rows
from cardboost.data.reader import Kind, TableError, TableFile, TableFormat, open_table
from cardboost.data.roles import ColumnRole, Role, assign_roles, leak_warnings, size_warnings
from cardboost.model.base import ModelKind, label_array
from cardboost.model.predictions import label_codes, label_text

if TYPE_CHECKING:
    from cardboost.model.files import Model

MOST_NUMBER_CLASSES = (
    20  # a target with more different whole numbers is one of regression, as in pareto_front
)
MOST_CLASSES = 100  # every class is a model of its own


@dataclass(frozen=True)
class Target:
    """What is predicted: of two classes the positive one comes last; None for regression."""

    name: str
    task: ModelKind
    classes: tuple[Any, ...] | None = None

    def counts(self, target: NDArray[Any]) -> dict[str, int] | None:
        """How many rows each class has."""
        if self.classes is None:
            return None
        return {str(label): int((target == k).sum()) for k, label in enumerate(self.classes)}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to train or to test on.

    ``target``: for every row the number of its class, or the number to predict. ``split``: for every row its
    group or its time, where rows are to be split by that.
    """

    table: Frame
    target: NDArray[Any]
    weight: Array | None = None
    split: NDArray[Any] | None = None

    def take(self, keep: NDArray[np.bool_]) -> Rows:
        weight = None if self.weight is None else self.weight[keep]
        split = None if self.split is None else self.split[keep]
        return Rows(self.table.take(keep), self.target[keep], weight, split)

    def labels(self, target: Target) -> NDArray[Any]:
        """What an estimator is given; of two classes 0 and 1, so that either can be the positive one."""
        if target.classes is None or target.task == "binary":
            return self.target
        return label_array(target.classes)[self.target]


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table as `fit` and `pareto` take it: ``facts`` for files, ``remarks`` for the user."""

    rows: Rows
    target: Target
    roles: tuple[ColumnRole, ...]
    facts: dict[str, Any]
    remarks: tuple[str, ...]


@contextlib.contextmanager
def opened(arguments: SimpleNamespace) -> Iterator[TableFile]:
    """The table that the arguments name; what is wrong with it is bad input."""
    try:
        form = TableFormat(arguments.delimiter, arguments.decimal, arguments.thousands)
        with open_table(arguments.data, form) as source:
            yield source
    except TableError as error:
        raise BadInput(str(error)) from None


# ------------------------------------------------------------------------------------------------ training


def read_training_table(arguments: SimpleNamespace) -> TrainingTable:
    """Features, target and weights of the files that the arguments name."""
    with opened(arguments) as source:
        given = _given_roles(arguments, source)
        _refuse_unnamed(source, given)
        names = [name for name in source.names if given.get(name) is not Role.DROPPED]
        frame = source.read(names, _given_kinds(given, arguments.task))
        target, codes, said = _read_target(source, frame, arguments)
        form, remarks = source.form, [*source.remarks, *said]
    weight = _read_weight(frame, arguments.weight)
    _refuse_weightless_classes(target, codes, weight)
    split = _split_column(frame, arguments)
    try:
        dates = [
            DateParts.from_training(frame, name, parts) for name, parts in arguments.date.items() if parts
        ]
        roles = assign_roles(frame, given)
        derived = {entry.column for entry in dates}
        features = [column.name for column in roles if column.is_feature or column.name in derived]
        table = derive_dates(frame.select(features), dates)
    except ValueError as error:
        raise BadInput(str(error)) from None
    if not table.data:
        raise BadInput(f"{source.path} has no column to learn from: all are the target or are left out.")
    remarks += size_warnings(len(codes), target.counts(codes))
    remarks += leak_warnings(frame, roles, codes, classification=target.classes is not None)
    facts: dict[str, Any] = {
        "file": os.path.basename(source.path),
        **form,
        "task": target.task,
        "target": target.name,
        "weight": _stripped(arguments.weight),
        "rows": table.n_rows,
        "features": len(table.data),
        "categories": table.categories,
        "dates": [entry.to_dict() for entry in dates],
        "left_out": {
            column.name: column.reason or f"given as {column.role}"
            for column in roles
            if not column.is_feature and column.name not in derived
        },
        "missing": table.n_missing,
        "classes": target.counts(codes),
        "holdout": None,
    }
    return TrainingTable(Rows(table, codes, weight, split), target, roles, facts, tuple(remarks))


def _stripped(name: str | None) -> str | None:
    return None if name is None else name.strip()


def _given_roles(arguments: SimpleNamespace, source: TableFile) -> dict[str, Role]:
    """What the options say of columns; each column can be one thing."""
    options = {
        "--target": ([arguments.target], Role.TARGET),
        "--weight": ([arguments.weight], Role.WEIGHT),
        "--group": ([arguments.group], Role.GROUP),
        "--drop": (names_in(arguments.drop, source.names), Role.DROPPED),
        "--numeric": (names_in(arguments.numeric, source.names), Role.NUMERIC),
        "--categorical": (names_in(arguments.categorical, source.names), Role.CATEGORICAL),
        "--id": (names_in(arguments.id, source.names), Role.IDENTIFIER),
        "--date": (list(arguments.date), Role.DATE),
    }
    given: dict[str, Role] = {}
    said: dict[str, str] = {}
    for option, (names, role) in options.items():
        for name in (name.strip() for name in names if name is not None):
            if role is not Role.DROPPED or name not in source.names:  # several of one name may be dropped
                source.require(name)
            if said.setdefault(name, option) != option:
                raise BadInput(f"{option} {name}: this column is already given by {said[name]}.")
            given[name] = role
    return given


def _given_kinds(given: Mapping[str, Role], task: str) -> dict[str, Kind]:
    """How the cells of columns with a given role are read; those of others are looked at."""
    kinds: dict[Role, Kind] = {
        Role.NUMERIC: "numbers",
        Role.WEIGHT: "numbers",
        Role.CATEGORICAL: "categories",
        Role.GROUP: "categories",
    }
    kinds[Role.TARGET] = "auto" if task == "auto" else "numbers" if task == "regression" else "categories"
    return {name: kinds[role] for name, role in given.items() if role in kinds}


def _refuse_unnamed(source: TableFile, given: Mapping[str, Role]) -> None:
    if "" in source.names and given.get("") is not Role.DROPPED:
        place = source.names.index("") + 1
        raise BadInput(f"{source.path}: column {place} has no name; name it, or leave it out with --drop ''.")


def _read_target(
    source: TableFile, frame: Frame, arguments: SimpleNamespace
) -> tuple[Target, NDArray[Any], list[str]]:
    """The target, the class or the number of every row, and a remark; takes the column out of the frame."""
    name = arguments.target.strip()
    values = frame.data.pop(name)
    _refuse_missing(source, name, values)
    values = _truth_values(source, name, values) if arguments.task != "regression" else values
    if isinstance(values, Coded):
        used, codes = np.unique(values.codes, return_inverse=True)
        labels = [values.labels[k] for k in used.tolist()]
    else:
        numbers, codes = np.unique(values, return_inverse=True)
        labels = [int(number) if number.is_integer() else number for number in numbers.tolist()]
    task, remark = _task(name, labels, arguments.task)
    if task == "regression":
        return Target(name, task), np.asarray(values, dtype=np.float64), remark
    if any(isinstance(label, float) for label in labels):  # which scikit-learn does not take for classes
        labels = [label_text(label) for label in labels]
    if arguments.positive is None:
        return Target(name, task, tuple(labels)), codes, remark
    if task != "binary":
        raise BadInput(f"--positive is for two classes; the target {name!r} has {len(labels)}.")
    matches = [label_text(label) == label_text(arguments.positive.strip()) for label in labels]
    if not any(matches):
        raise BadInput(f"--positive {arguments.positive}: the classes of {name!r} are {listed(labels)}.")
    if matches[0]:
        labels, codes = labels[::-1], 1 - codes
    return Target(name, task, tuple(labels)), codes, remark


def _truth_values(source: TableFile, name: str, values: Array | Coded) -> Array | Coded:
    """True and false, which are read as 1 and 0, as the labels that stand in the table."""
    if isinstance(values, Coded) or not np.isin(values, (0.0, 1.0)).all():
        return values
    cells = source.read([name], {name: "text"}).data[name]
    words = {label.lower() for label in cells.labels} if isinstance(cells, Coded) else set()
    return cells if words and words <= {"true", "false"} else values


def _refuse_missing(source: TableFile, name: str, values: Array | Coded) -> None:
    missing = np.flatnonzero(values.codes < 0 if isinstance(values, Coded) else np.isnan(values))
    if len(missing):
        place = source.place(int(missing[0]))
        raise BadInput(f"{source.path}, {place}: the target {name!r} is missing; every row needs a value.")


def _task(name: str, labels: Sequence[Any], asked: str) -> tuple[ModelKind, list[str]]:
    """Classes or numbers, with a remark where it was guessed and could be otherwise."""
    n, text = len(labels), any(isinstance(label, str) for label in labels)
    if n < 2:
        raise BadInput(f"the target {name!r} is {labels[0]!r} in every row: there is nothing to predict.")
    if asked == "regression":
        return "regression", []
    if asked == "binary" and n > 2:
        raise BadInput(f"the target {name!r} has {n:,} different values, not two; see --task.")
    whole = n <= MOST_NUMBER_CLASSES and all(isinstance(label, int) for label in labels)
    if asked == "auto" and not text and n > 2 and not whole:
        return "regression", [f"the target {name!r} has {n:,} different numbers: regression (see --task)."]
    if n > MOST_CLASSES:
        what = "texts: is it an identifier?" if text else "numbers: --task regression predicts them."
        raise BadInput(
            f"the target {name!r} has {n:,} different {what} At most {MOST_CLASSES} can be classes."
        )
    guessed = asked == "auto" and whole and n > 2
    remark = f"the target {name!r} has {n} different whole numbers: classes (--task regression for numbers)."
    return "binary" if n == 2 else "multiclass", [remark] if guessed else []


def _read_weight(frame: Frame, option: str | None) -> Array | None:
    if option is None:
        return None
    weights = frame.take_out(option.strip())
    if np.isnan(weights).any():
        raise BadInput(f"the weight column {option!r} has missing values: every row needs a weight.")
    if (weights < 0).any():
        raise BadInput(f"the weight column {option!r} holds {weights.min():g}: weights must not be negative.")
    if not (weights > 0).any():
        raise BadInput(f"the weight column {option!r} is zero in every row.")
    return weights


def _refuse_weightless_classes(target: Target, codes: NDArray[Any], weight: Array | None) -> None:
    if weight is None or target.classes is None:
        return
    held = np.bincount(codes, weight, len(target.classes))
    if not held.all():
        label = target.classes[int(np.argmin(held))]
        raise BadInput(f"class {label!r} of the target {target.name!r} has no row with a weight above 0.")


# ------------------------------------------------------------------------------------------------ holding out


def _split_column(frame: Frame, arguments: SimpleNamespace) -> NDArray[Any] | None:
    """What rows are split by: times (datetime64) where the column holds dates, else numbers of groups."""
    holdout_by = _stripped(getattr(arguments, "holdout_by", None))
    name = holdout_by or _stripped(arguments.group)
    if name is None:
        return None
    if name not in frame.data:
        raise BadInput(f"--holdout-by {name}: {closest(name, frame.columns)}")
    return _split_values(name, frame.data[name], holdout_by is not None)


def _split_values(name: str, values: Array | Coded, by_date: bool) -> NDArray[Any]:
    """Times where the column holds dates and they are wanted, else numbers of groups."""
    dates = column_dates(values) if by_date else None
    if dates is not None:
        if np.isnat(dates).any():
            raise BadInput(f"--holdout-by {name}: there are rows without a date.")
        return dates
    return values.codes if isinstance(values, Coded) else np.unique(values, return_inverse=True)[1]


def kept_rows(rows: Rows, fraction: float, seed: int) -> NDArray[np.bool_]:
    """Which rows stay in training when a fraction is held out. Equal seeds, equal rows.

    By times: the latest rows are held out. By groups: whole groups. Otherwise: the same part of every class.
    """
    random, n = np.random.default_rng(seed), rows.table.n_rows
    keep = np.ones(n, dtype=bool)
    if rows.split is not None and rows.split.dtype.kind == "M":
        first = np.sort(rows.split)[n - max(1, round(fraction * n))]
        return rows.split < first
    if rows.split is not None:
        groups = random.permutation(np.unique(rows.split))
        sizes = np.cumsum([int((rows.split == group).sum()) for group in groups.tolist()])
        held_out = groups[: max(1, int(np.searchsorted(sizes, fraction * n, side="right")))]
        return ~np.isin(rows.split, held_out)
    classes = [rows.target == k for k in np.unique(rows.target)] if rows.target.dtype.kind == "i" else [keep]
    for members in map(np.flatnonzero, classes):
        keep[random.permutation(members)[: round(fraction * len(members))]] = False
    return keep


# ------------------------------------------------------------------------------------------------ for a model


def recorded(model: Model) -> dict[str, Any]:
    """What `cardboost fit` noted about the data."""
    data = (model.training or {}).get("data")
    return data if isinstance(data, dict) else {}


@dataclass(frozen=True, eq=False)
class ModelColumns:
    """The columns of a table that a model needs: names, how they are read, and dates to derive features from.

    Parameters
    ----------
    names : tuple of str
        Columns of the table.
    kinds : mapping
        How each is read.
    dates : tuple of DateParts
        Columns that are replaced by parts of their dates.
    """

    names: tuple[str, ...]
    kinds: dict[str, Kind]
    dates: tuple[DateParts, ...]

    @classmethod
    def of(cls, model: Model, path: str, *, used: bool) -> ModelColumns:
        """Those of all features, or of the ``used`` ones alone; ``path`` names the file of the model."""
        ensemble, notes = model.ensemble, recorded(model)
        try:
            dates = tuple(map(DateParts.from_dict, notes.get("dates") or ()))
        except (ValueError, TypeError) as error:
            raise BadInput(f"{path}: training.data.dates: {error}") from None
        column_of = {name: entry.column for entry in dates for name in entry.names}
        features = ensemble.features_used if used else range(ensemble.n_features)
        kinds = _feature_kinds(model, "numbers" if used else "auto")
        wanted: dict[str, Kind] = {}
        for name in map(ensemble.feature_name, features):
            wanted[column_of.get(name, name)] = "auto" if name in column_of else kinds[name]
        needed = tuple(entry for entry in dates if entry.column in wanted)
        return cls(tuple(wanted), wanted, needed)

    def require(self, source: TableFile, model: Model) -> None:
        """A sentence for the columns that the table lacks."""
        lacking = [name for name in self.names if name.strip() not in source.names]
        if not lacking:
            return
        if model.ensemble.feature_names is None:
            raise BadInput(
                f"the model was trained on columns without names: call them x0, x1, ... in {source.path} "
                f"({lacking[0]} is needed)."
            )
        if len(lacking) == 1:
            free = [name for name in source.names if name and name not in self.names]
            hint = closest(lacking[0], free)
            raise BadInput(f"{source.path} has no column {lacking[0]!r}, which the model needs: {hint}")
        raise BadInput(f"{source.path} lacks columns that the model needs: {listed(lacking)}.")

    def features(self, frame: Frame) -> Frame:
        """The features of the model, made of the columns of a table."""
        return derive_dates(frame.select(self.names), self.dates)


def _feature_kinds(model: Model, otherwise: Kind) -> dict[str, Kind]:
    """How `cardboost fit` read the features; for other models what the model and its certificate say."""
    ensemble, noted = model.ensemble, recorded(model).get("categories")
    names = [ensemble.feature_name(j) for j in range(ensemble.n_features)]
    if isinstance(noted, dict):
        return {name: "categories" if name in noted else "numbers" for name in names}
    first = model.certificate[0] if isinstance(model.certificate, list) else model.certificate
    certified = (first or {}).get("categories")
    kinds: dict[str, Kind] = dict.fromkeys(names, otherwise)
    for name, entry in zip(names, certified if isinstance(certified, list) else [], strict=False):
        kinds[name] = _kind_of_labels(entry.get("kept") if isinstance(entry, dict) else None)
    for feature, known in getattr(ensemble, "categories", {}).items():
        kinds[names[feature]] = _kind_of_labels([*known.kept, *known.rare])
    return kinds


def _kind_of_labels(labels: Any) -> Kind:
    """How a column of these labels is read."""
    return "text" if isinstance(labels, list) and isinstance(next(iter(labels), None), str) else "numbers"


def _target_kind(model: Model) -> Kind:
    """How the target of a model is read."""
    if model.classes is None:
        return "numbers"
    return "text" if any(isinstance(label, str | bool) for label in model.classes) else "categories"


def model_rows(
    arguments: SimpleNamespace, model: Model, *, used: bool = False, more: Sequence[str] = ()
) -> tuple[Rows, Frame]:
    """Rows with the features of a model, its target and weights; and a frame with ``more`` columns.

    Rows that the fit held out are not left out here; see :func:`trained_rows`.
    """
    notes = recorded(model)
    target = arguments.target if arguments.target is not None else notes.get("target")
    weight = arguments.weight if arguments.weight is not None else notes.get("weight")
    if not isinstance(target, str):
        raise BadInput("--target is needed: the model file does not say which column it predicts.")
    columns = ModelColumns.of(model, arguments.model, used=used)
    target, weight = target.strip(), _stripped(weight) if isinstance(weight, str) else None
    if weight is not None and weight in columns.names:
        raise BadInput(f"--weight {weight}: this column is a feature of the model.")
    extra: dict[str, Kind] = {name: "auto" for name in more if name not in columns.names}
    with opened(arguments) as source:
        columns.require(source, model)
        for name in (target, *([] if weight is None else [weight]), *extra):
            source.require(name)
        kinds: dict[str, Kind] = {**columns.kinds, **extra, target: _target_kind(model)}
        kinds |= {} if weight is None else {weight: "numbers"}
        frame = source.read(list(kinds), kinds)
        _refuse_missing(source, target, frame.data[target])
        try:
            codes = label_codes(frame.data[target], model.classes) if model.classes else frame.data[target]
        except ValueError as error:
            raise BadInput(f"{source.path}, column {target!r}: {error}") from None
    weights = None if weight is None else _read_weight(frame, weight)
    return Rows(columns.features(frame), np.asarray(codes), weights), frame


def trained_rows(arguments: SimpleNamespace, model: Model) -> Rows:
    """The rows that a model was trained on: those of a table without the rows that the fit held out."""
    held_out = recorded(model).get("holdout")
    split = held_out.get("by") if isinstance(held_out, dict) else None
    rows, frame = model_rows(arguments, model, more=[split] if isinstance(split, str) else [])
    factors = recorded(model).get("class_weight")
    if isinstance(factors, list) and len(factors) == len(model.classes or ()):
        weight = np.array(factors, dtype=np.float64)[rows.target]
        rows = replace(rows, weight=weight * (1.0 if rows.weight is None else rows.weight))
    if recorded(model).get("rows") != rows.table.n_rows:
        return rows
    if not isinstance(held_out, dict):
        return _without_validation(rows, model)
    try:
        fraction, seed = float(held_out["fraction"]), int(held_out["seed"])
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"{arguments.model}: training.data.holdout cannot be read.") from None
    by = None if split is None else _split_values(split, frame.data[split], bool(held_out.get("latest")))
    return _without_validation(rows.take(kept_rows(replace(rows, split=by), fraction, seed)), model)


def _without_validation(rows: Rows, model: Model) -> Rows:
    """The rows that the fit did not keep aside to see when to stop (--validation-fraction)."""
    parameters = (model.training or {}).get("parameters")
    if not isinstance(parameters, dict) or parameters.get("validation_fraction") is None:
        return rows
    codes = None if model.classes is None else rows.target
    fraction, seed = parameters["validation_fraction"], parameters.get("random_state")
    try:
        _, aside = split_rows(fraction, codes, rows.table.n_rows, seed)
    except (TypeError, ValueError) as error:
        raise BadInput(f"training.parameters.validation_fraction: {str(error).rstrip('.')}.") from None
    keep = np.ones(rows.table.n_rows, dtype=bool)
    keep[aside] = False
    return rows.take(keep)

"""The columns and rows of a table that a model file asks for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from cardboost.cli.files import BadInput, say
from cardboost.cli.rows import Rows, kept_rows, opened, read_weight, refuse_missing, split_values, stripped
from cardboost.data.cells import Marks
from cardboost.data.dates import DateParts, derive_dates
from cardboost.data.frame import Frame
from cardboost.data.labels import split_rows
from cardboost.data.reader import Kind, TableError, TableFile, TableFormat
from cardboost.data.sentences import closest, listed
from cardboost.model.files import Model
from cardboost.model.predictions import label_codes


def recorded(model: Model) -> dict[str, Any]:
    """What `cardboost fit` noted about the data."""
    data = (model.training or {}).get("data")
    return data if isinstance(data, dict) else {}


def training_marks(model: Model) -> Marks | None:
    """How numbers are written in the table of `cardboost fit`, where that was text."""
    decimal, thousands = recorded(model).get("decimal"), recorded(model).get("thousands")
    if decimal not in (".", ",") or not (thousands is None or isinstance(thousands, str)):
        return None
    try:
        TableFormat(decimal=decimal, thousands=thousands)
    except TableError:
        return None
    return Marks(decimal, thousands or None)


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
    kinds: dict[str, Kind]
    ensemble, noted = model.ensemble, recorded(model).get("categories")
    names = [ensemble.feature_name(j) for j in range(ensemble.n_features)]
    if isinstance(noted, dict):
        kinds = {name: "categories" if name in noted else "numbers" for name in names}
        padded = recorded(model).get("zero_padded")
        return kinds | {name: "text" for name in names if isinstance(padded, list) and name in padded}
    first = model.certificate[0] if isinstance(model.certificate, list) else model.certificate
    certified = (first or {}).get("categories")
    kinds = dict.fromkeys(names, otherwise)
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
    arguments: SimpleNamespace,
    model: Model,
    verb: str | None,
    *,
    used: bool = False,
    more: Sequence[str] = (),
) -> tuple[Rows, Frame]:
    """Rows with the features of a model, its target and weights; and a frame with ``more`` columns.

    Remarks on how the table was read are said in the name of ``verb``, if there is one. Rows that the fit
    held out are not left out here; see :func:`trained_rows`.
    """
    notes = recorded(model)
    target = arguments.target if arguments.target is not None else notes.get("target")
    weight = arguments.weight if arguments.weight is not None else notes.get("weight")
    if not isinstance(target, str):
        raise BadInput("--target is needed: the model file does not say which column it predicts.")
    columns = ModelColumns.of(model, arguments.model, used=used)
    target, weight = target.strip(), stripped(weight) if isinstance(weight, str) else None
    if weight is not None and weight in columns.names:
        raise BadInput(f"--weight {weight}: this column is a feature of the model.")
    extra: dict[str, Kind] = {name: "auto" for name in more if name not in columns.names}
    with opened(arguments, training_marks(model)) as source:
        columns.require(source, model)
        for name in (target, *([] if weight is None else [weight]), *extra):
            source.require(name)
        kinds: dict[str, Kind] = {**columns.kinds, **extra, target: _target_kind(model)}
        kinds |= {} if weight is None else {weight: "numbers"}
        frame = source.read(list(kinds), kinds)
        refuse_missing(source, target, frame.data[target])
        try:
            codes = label_codes(frame.data[target], model.classes) if model.classes else frame.data[target]
        except ValueError as error:
            raise BadInput(f"{source.path}, column {target!r}: {error}") from None
        if verb is not None:
            for remark in source.remarks:
                say(remark, verb)
    weights = None if weight is None else read_weight(frame, weight)
    return Rows(columns.features(frame), np.asarray(codes), weights), frame


def trained_rows(arguments: SimpleNamespace, model: Model, verb: str | None) -> Rows:
    """The rows that a model was trained on: those of a table without the rows that the fit held out."""
    held_out = recorded(model).get("holdout")
    split = held_out.get("by") if isinstance(held_out, dict) else None
    rows, frame = model_rows(arguments, model, verb, more=[split] if isinstance(split, str) else [])
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
    by = None if split is None else split_values(split, frame.data[split], bool(held_out.get("latest")))
    return _without_validation(rows.take(kept_rows(replace(rows, split=by), fraction, seed)), model)


def training_remark(arguments: SimpleNamespace, model: Model, n_rows: int) -> str | None:
    """A remark on a table of so many rows, if it is the one that the model was trained on; reads it again.

    By the digest of the rows in the certificate of the model, which counts every feature.
    """
    from cardboost.certificate.checker import data_digest

    first = model.certificate[0] if isinstance(model.certificate, list) else model.certificate
    data = first.get("data") if isinstance(first, dict) else None
    once = any(path == "-" or (os.path.exists(path) and not os.path.isfile(path)) for path in arguments.data)
    if not isinstance(data, dict) or recorded(model).get("rows") != n_rows or once:
        return None
    try:
        rows = trained_rows(arguments, model, None)
        n_features = len(rows.table.columns)
        categorical = [j for j in range(n_features) if rows.table.columns[j] in rows.table.categories]
        target = rows.target if model.classes is None else None
        positive = None if target is not None else rows.target == (1 if len(model.classes or ()) == 2 else 0)
        digest = data_digest(rows.table, positive, rows.weight, categorical=categorical, target=target)
    except (BadInput, ValueError):  # it lacks columns, or holds what the table of the fit cannot have held
        return None
    if digest != data.get("digest"):
        return None
    n_trained = rows.table.n_rows
    if n_trained == n_rows:
        return "these are the rows that the model was trained on; on new rows it is usually worse."
    return (
        f"the model was trained on {n_trained:,} of these {n_rows:,} rows; on new rows it is usually worse."
    )


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

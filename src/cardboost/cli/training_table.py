"""The table of `fit` and `pareto`: what each column is, the task, and what the user should know."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.cli.checks import amount, direction, side
from cardboost.cli.files import BadInput
from cardboost.cli.options import names_in, pairs_in
from cardboost.cli.rows import Rows, Target, opened, read_weight, refuse_missing, split_values, stripped
from cardboost.data.cells import plain
from cardboost.data.dates import DateParts, derive_dates
from cardboost.data.frame import Array, Coded, Frame
from cardboost.data.reader import Kind, TableFile
from cardboost.data.roles import ColumnRole, Role, assign_roles, leak_warnings, size_warnings
from cardboost.data.sentences import closest, listed
from cardboost.model.base import ModelKind
from cardboost.model.predictions import label_text
from cardboost.pareto.compute import MOST_CLASSES as MOST_WHOLE_NUMBERS  # more of them are regression

MOST_CLASSES = 100  # every class is a model of its own


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table as `fit` and `pareto` take it: ``facts`` for files, ``remarks`` for the user."""

    rows: Rows
    target: Target
    roles: tuple[ColumnRole, ...]
    facts: dict[str, Any]
    remarks: tuple[str, ...]


def read_training_table(arguments: SimpleNamespace) -> TrainingTable:
    """Features, target and weights of the files that the arguments name."""
    with opened(arguments) as source:
        given = _given_roles(arguments, source)
        _refuse_unnamed(source, given)
        names = [name for name in source.names if given.get(name) is not Role.DROPPED]
        kinds = _given_kinds(given, arguments.task)
        padded = {name: cell for name, cell in source.zero_padded().items() if name not in given}
        frame = source.read(names, kinds | dict.fromkeys(padded, "text"))
        target, codes, said = _read_target(source, frame, arguments)
        form, remarks = source.form, [*source.remarks, *_padded_remark(source, padded), *said]
    weight = read_weight(frame, arguments.weight)
    _refuse_weightless_classes(target, codes, weight)
    split = _split_column(frame, arguments)
    try:
        dates = [
            DateParts.from_training(frame, name, parts) for name, parts in arguments.date.items() if parts
        ]
        remarks += [
            remark for name, parts in arguments.date.items() if not parts for remark in _no_dates(frame, name)
        ]
        roles = assign_roles(frame, given)
        derived = {entry.column for entry in dates}
        features = [column.name for column in roles if column.is_feature or column.name in derived]
        table = derive_dates(frame.select(features), dates)
    except ValueError as error:
        raise BadInput(str(error)) from None
    if not table.data:
        raise BadInput(f"{source.path} has no column to learn from: all are the target or are left out.")
    _settle_features(arguments, table.columns, roles)
    remarks += size_warnings(len(codes), target.counts(codes))
    remarks += leak_warnings(frame, roles, codes, classification=target.classes is not None)
    facts: dict[str, Any] = {
        "file": os.path.basename(source.path),
        **form,
        "task": target.task,
        "target": target.name,
        "weight": stripped(arguments.weight),
        "rows": table.n_rows,
        "features": len(table.data),
        "categories": table.categories,
        "zero_padded": [name for name in padded if name in table.data],
        "dates": [entry.to_dict() for entry in dates],
        "left_out": {
            column.name: column.reason or f"given as {column.role}"
            for column in roles
            if not column.is_feature and column.name not in derived
        },
        "missing": table.n_missing,
        "missing_cells": _missing_cells(table),
        "classes": target.counts(codes),
        "holdout": None,
    }
    return TrainingTable(Rows(table, codes, weight, split), target, roles, facts, tuple(remarks))


def _settle_features(
    arguments: SimpleNamespace, features: Sequence[str], roles: Sequence[ColumnRole]
) -> None:
    """Options that name features: of ``a=1,b=2`` two pairs, of ``a,b`` two names, and only of features."""
    of = {column.name: column for column in roles}

    def settle(option: str, value: Any, names: Iterable[str]) -> None:
        word = f"--{option.replace('_', '-')}"
        for name in names:
            if name in of and name not in features:
                raise BadInput(f"{word} {name}: this column is no feature, its role is {of[name].role}.")
            if name not in features:
                raise BadInput(f"{word} {name}: there is no such feature; {closest(name, features)}")
        setattr(arguments, option, value)

    for option, read in (("monotonic", direction), ("feature_cost", amount), ("missing", side)):
        given = getattr(arguments, option)
        if isinstance(given, dict):
            pairs = pairs_in(given, features, read, f"--{option.replace('_', '-')}")
            settle(option, pairs, pairs)
    for option in ("must_include", "exclude"):
        names = tuple(names_in(getattr(arguments, option), features))
        settle(option, names, names)
    settle("cuts", arguments.cuts, arguments.cuts)
    settle("at_most_one_of", arguments.at_most_one_of, chain.from_iterable(arguments.at_most_one_of))


def _missing_cells(table: Frame) -> dict[str, int]:
    """How many cells are missing in the columns that lack some."""
    counts = {name: table.select([name]).n_missing for name in table.columns}
    return {name: count for name, count in counts.items() if count}


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


def _no_dates(frame: Frame, name: str) -> list[str]:
    """A remark on a column that is given as a date and left out, where it holds no dates."""
    try:
        DateParts.from_training(frame, name.strip(), ["month"])  # which every form of dates has
    except ValueError as error:
        return [f"left out: {str(error).rstrip('.')} (it was given with --date)."]
    return []


def _padded_remark(source: TableFile, padded: Mapping[str, str]) -> list[str]:
    if not padded:
        return []
    name, cell = next(iter(padded.items()))
    hold = "holds" if len(padded) == 1 else "hold"
    return [
        f"{source.path}: {listed(list(padded))} {hold} codes with leading zeros such as {cell!r}, which are "
        f"labels; --numeric {shlex.quote(name)} makes numbers of them."
    ]


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
    refuse_missing(source, name, values)
    values = _truth_values(source, name, values) if arguments.task != "regression" else values
    if isinstance(values, Coded):
        used, codes = np.unique(values.codes, return_inverse=True)
        labels = [values.labels[k] for k in used.tolist()]
    else:
        numbers, codes = np.unique(values, return_inverse=True)
        labels = [plain(number) for number in numbers.tolist()]
    task, remark = _task(name, labels, arguments.task)
    if task != "regression" and name in source.units:  # classes are labels as they stand, such as 5%
        frame.data[name] = source.read([name], {name: "text"}).data[name]
        del source.units[name]
        return _read_target(source, frame, arguments)
    if task == "regression":
        if arguments.positive is not None:
            raise BadInput(f"--positive is for two classes; numbers are predicted of {name!r} (see --task).")
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
    words = [label.lower() for label in cells.labels] if isinstance(cells, Coded) else []
    if not isinstance(cells, Coded) or not words or not {"true", "false"}.issuperset(words):
        return values
    if len(set(words)) == len(words):
        return cells
    labels = tuple(sorted(set(words)))  # true and TRUE are one label
    return Coded(labels, np.array([labels.index(word) for word in words], dtype=np.int32)[cells.codes])


def _task(name: str, labels: Sequence[Any], option: str) -> tuple[ModelKind, list[str]]:
    """Classes or numbers, with a remark where it was guessed and could be otherwise."""
    n, text = len(labels), any(isinstance(label, str) for label in labels)
    if n < 2:
        raise BadInput(f"the target {name!r} is {labels[0]!r} in every row: there is nothing to predict.")
    if option == "regression":
        return "regression", []
    if option == "binary" and n > 2:
        raise BadInput(f"the target {name!r} has {n:,} different values, not two; see --task.")
    whole = n <= MOST_WHOLE_NUMBERS and all(isinstance(label, int) for label in labels)
    if option == "auto" and not text and n > 2 and not whole:
        return "regression", [f"the target {name!r} has {n:,} different numbers: regression (see --task)."]
    if n > MOST_CLASSES:
        what = "texts: is it an identifier?" if text else "numbers: --task regression predicts them."
        raise BadInput(
            f"the target {name!r} has {n:,} different {what} At most {MOST_CLASSES} can be classes."
        )
    guessed = option == "auto" and whole and n > 2
    remark = f"the target {name!r} has {n} different whole numbers: classes (--task regression for numbers)."
    return "binary" if n == 2 else "multiclass", [remark] if guessed else []


def _refuse_weightless_classes(target: Target, codes: NDArray[Any], weight: Array | None) -> None:
    if weight is None or target.classes is None:
        return
    held = np.bincount(codes, weight, len(target.classes))
    if not held.all():
        label = target.classes[int(np.argmin(held))]
        raise BadInput(f"class {label!r} of the target {target.name!r} has no row with a weight above 0.")


def _split_column(frame: Frame, arguments: SimpleNamespace) -> NDArray[Any] | None:
    """What rows are split by: times (datetime64) where the column holds dates, else numbers of groups."""
    holdout_by = stripped(getattr(arguments, "holdout_by", None))
    name = holdout_by or stripped(arguments.group)
    if name is None:
        return None
    if name not in frame.data:
        raise BadInput(f"--holdout-by {name}: {closest(name, frame.columns)}")
    return split_values(name, frame.data[name], holdout_by is not None)

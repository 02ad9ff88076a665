"""The warning about columns of data frames that a model should not be trained on. Nothing is left out."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from cardboost.data.categories import CategoricalColumn
from cardboost.data.exact import frame_columns
from cardboost.data.frame import Coded, Frame
from cardboost.data.roles import ColumnRoleWarning, Role, assign_roles
from cardboost.data.table import Table

_LISTED = 5  # names of a kind
_KINDS = (
    ("identifiers", (Role.IDENTIFIER,)),
    ("dates", (Role.DATE,)),
    ("constants", (Role.CONSTANT, Role.EMPTY)),
)


def warn_of_table(X: Any, table: Table, categorical_features: Any) -> None:
    """Warn of columns of a frame that was read as a table; those that the user named as categories are well.

    Parameters
    ----------
    X : table
        What was passed to ``fit``. Arrays, and tables of the command line, which has asked before, are taken
        as they are.
    table : Table
        Its columns.
    categorical_features : None, str or sequence
        The parameter of the estimator.
    """
    if _is_foreign_frame(X):
        named = not isinstance(categorical_features, str)
        columns = [
            Coded(column.labels, column.codes) if isinstance(column, CategoricalColumn) else column
            for column in table.columns
        ]
        _warn(X, columns, table.categorical if named else ())


def warn_of_matrix(X: Any, matrix: Any) -> None:
    """The same for a frame that was read as a matrix of numbers; sparse ones are taken as they are."""
    if _is_foreign_frame(X) and not hasattr(matrix, "tocsc"):
        _warn(X, list(matrix.T))


def _is_foreign_frame(X: Any) -> bool:
    return frame_columns(X) is not None and not isinstance(X, Frame)


def _warn(X: Any, columns: Sequence[Any], chosen: Sequence[int] = ()) -> None:
    names = [str(name) for name in frame_columns(X) or ()]
    if len(names) != len(columns) or not names:
        return  # only learners of the user's read this table
    keys = names if len(set(names)) == len(names) else [str(j) for j in range(len(names))]
    frame = Frame(dict(zip(keys, columns, strict=True)), len(columns[0]))
    roles = assign_roles(frame, {keys[j]: Role.CATEGORICAL for j in chosen})
    parts = []
    for kind, of_kind in _KINDS:
        listed = [repr(name) for name, own in zip(names, roles, strict=True) if own.role in of_kind]
        if listed:
            rest = f" and {len(listed) - _LISTED:,} more" if len(listed) > _LISTED else ""
            parts.append(f"{kind} ({', '.join(listed[:_LISTED])}{rest})")
    if parts:
        warnings.warn(
            f"X has columns that look like {', '.join(parts)}. They are used as they are, but what a model "
            "learns from them seldom holds for other rows: leave them out, or ignore this ColumnRoleWarning.",
            ColumnRoleWarning,
            stacklevel=_level_of_caller(),
        )


def _level_of_caller() -> int:
    """The stack level, seen from the caller, of the first line outside of this package and scikit-learn."""
    level, frame = 0, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    return level + 1


_INSIDE = ("cardboost", "sklearn", "joblib")

"""What every column was taken for: a short table, and a remark where a column looks wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardboost.cli.screen import table_lines
from cardboost.cli.source import dropping
from cardboost.cli.values import plain
from cardboost.data.frame import Array, Coded, Frame

#: distinct numbers are counted up to here
_COUNTED = 1000
_SAMPLE = 20_000
_SHOWN = 30
_LONGEST_NAME = 28
_PAIRS = (
    frozenset((0, 1)),
    frozenset(("yes", "no")),
    frozenset(("y", "n")),
    frozenset(("true", "false")),
    frozenset(("t", "f")),
)


@dataclass(frozen=True)
class ColumnFacts:
    """One column. ``distinct`` is None where there are more than a thousand numbers."""

    name: str
    kind: str  # "numbers", "categories", "yes/no" or "empty"
    distinct: int | None
    missing: int
    example: Any
    remark: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return vars(self).copy()


def describe(table: Frame) -> list[ColumnFacts]:
    """Every feature, in the order of the file."""
    return [_facts(name, values, table.n_rows) for name, values in table.data.items()]


def _facts(name: str, values: Array | Coded, n_rows: int) -> ColumnFacts:
    if isinstance(values, Coded):
        kind, missing = "categories", values.n_missing
        present: Any = values.codes[values.codes >= 0]
        distinct: int | None = len(np.unique(present))
        known: list[Any] = list(values.labels) if distinct == 2 else []
        example = values.labels[present[0]] if len(present) else None
    else:
        kind, missing = "numbers", int(np.count_nonzero(np.isnan(values)))
        present = values[~np.isnan(values)] if missing else values
        found = _distinct(present)
        distinct = None if found is None else len(found)
        known = [] if found is None else [plain(value) for value in found[:3].tolist()]
        example = plain(float(present[0])) if len(present) else None
    if distinct == 0:
        kind = "empty"
    elif {str(own).lower() if isinstance(own, str) else own for own in known} in _PAIRS:
        kind = "yes/no"
    remark = _remark(name, values, present, distinct, n_rows)
    return ColumnFacts(name, kind, distinct, missing, example, remark)


def _distinct(values: Array) -> Array | None:
    """The distinct numbers, or None if there are many."""
    if len(np.unique(values[:_SAMPLE])) > _COUNTED:
        return None
    found = np.unique(values)
    return None if len(found) > _COUNTED else found


def _remark(name: str, values: Any, present: Any, distinct: int | None, n_rows: int) -> str | None:
    leave = f"{dropping(name)} leaves it out"
    if distinct == 0:
        return f"column {name!r} has no values: it cannot be used."
    if distinct == 1:
        missing = " that has one" if len(present) < n_rows else ""
        return f"column {name!r} has the same value in every row{missing}."
    if isinstance(values, Coded):
        if distinct is not None and 2 * distinct > n_rows:
            return (
                f"column {name!r} has {distinct:,} different values in {n_rows:,} rows and looks like an "
                f"identifier: {leave}."
            )
    elif float(np.abs(present).max()) > 2.0**53:
        return f"column {name!r} has numbers above 2^53, whose last digits are rounded: {leave}."
    elif len(present) == n_rows > 2 and bool((present[1:] == present[:-1] + 1).all()):
        return f"column {name!r} counts the rows and looks like an identifier: {leave}."
    return None


def column_lines(columns: Sequence[ColumnFacts]) -> list[str]:
    """The table for the screen; of many columns the first ones and those with a remark."""
    shown = [own for k, own in enumerate(columns) if k < _SHOWN or own.remark is not None][: 2 * _SHOWN]
    rows = []
    for own in shown:
        distinct = f"over {_COUNTED:,}" if own.distinct is None else f"{own.distinct:,}"
        name = own.name if len(own.name) <= _LONGEST_NAME else f"{own.name[: _LONGEST_NAME - 3]}..."
        example = "" if own.example is None else str(own.example)
        rows.append((name, own.kind, distinct, f"{own.missing:,}", example))
    lines = table_lines(("column", "kind", "distinct", "missing", "example"), rows, left=(0, 1, 4))
    if len(shown) < len(columns):
        lines.append(f"... and {len(columns) - len(shown):,} more columns")
    return lines


def remark_lines(columns: Sequence[ColumnFacts], verb: str = "cardboost fit") -> list[str]:
    """The remarks, a sentence each, at most a dozen."""
    remarks = [own.remark for own in columns if own.remark is not None]
    lines = [f"{verb}: {remark}" for remark in remarks[:12]]
    if len(remarks) > 12:
        lines.append(f"{verb}: there are remarks on {len(remarks) - 12} more columns (--json has all).")
    return lines

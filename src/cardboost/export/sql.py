"""A model as one SQL expression over the columns of a table.

Numbers are written so that every database reads their bits: decimals where these are exact, otherwise a whole
number divided by a power of two. NULL is missing.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from cardboost.export.plan import Input, Plan, check_text, odd_part

_DOUBLE = "DOUBLE PRECISION"
_MOST_DIGITS = 15  # of a decimal that every database reads exactly


def export_sql(ensemble: Any, *, output: str = "score", table: str | None = None) -> str:
    """The expression. For several classes it is a list, one score per class, each with AS and its label.

    Parameters
    ----------
    ensemble : Ensemble or MulticlassEnsemble
        Columns are found by the names of the features.
    output : {"score", "class"}, default "score"
        "class" is the label in place of the score (two classes only).
    table : str, default None
        Put in front of the columns.

    Returns
    -------
    str
    """
    plan = Plan.of(ensemble)
    if output not in ("score", "class"):
        raise ValueError(f"output: expected 'score' or 'class', found {output!r}.")
    if table is not None and not isinstance(table, str):
        raise ValueError(f"table: expected a name, found {table!r}.")
    _check_names(plan)
    if plan.n_scores > 1:
        if output == "class":
            raise ValueError("output: 'class' needs a model for two classes; several have one score each.")
        labels = [_identifier(str(label)) for label in plan.classes or ()]
        return ",\n".join(f"{_score(plan, k, table)}\nAS {label}" for k, label in enumerate(labels)) + "\n"
    score = _score(plan, 0, table)
    if output == "score":
        return f"{score}\n"
    if plan.classes is None:
        raise ValueError("output: 'class' needs a classifier.")
    negative, positive = map(_label, plan.classes)
    return f"CASE WHEN {score} > 0\nTHEN {positive} ELSE {negative} END\n"


def _score(plan: Plan, k: int, table: str | None) -> str:
    parts = [_number(float(plan.intercepts[k]), cast=True)]
    for source in plan.inputs:
        if source.table[:, k].any():
            column = _identifier(source.name)
            column = column if table is None else f"{_identifier(table)}.{column}"
            parts.append((_steps if source.categories is None else _labels)(source, k, column))
    return "(" + "\n + ".join(parts) + ")"


def _steps(source: Input, k: int, column: str) -> str:
    column = f"CAST({column} AS {_DOUBLE})"
    steps = source.of_score(k)
    missing = _number(float(steps.missing[0]))
    if not steps.cuts:
        return f"CASE WHEN {column} IS NOT NULL THEN {_number(float(steps.levels[0, 0]))} ELSE {missing} END"
    whens = [
        f"WHEN {column} {sign} {_number(cut)} THEN {_number(float(row[0]))}"
        for sign, cut, row in steps.chain()
    ]
    return f"CASE {' '.join(whens)} ELSE {missing} END"


def _labels(source: Input, k: int, column: str) -> str:
    by_level: dict[float, list[str]] = {}
    labels = source.labels()
    booleans = all(isinstance(label, bool) for label, _ in labels)
    for label, levels in labels:
        plain = int(label) if isinstance(label, bool) and not booleans else label
        by_level.setdefault(float(levels[k]), []).append(_label(plain))
    missing = float(source.missing[k])
    whens = [
        f"WHEN {column} IN ({', '.join(group)}) THEN {_number(level)}"
        for level, group in by_level.items()
        if level != missing
    ]
    return f"CASE {' '.join(whens)} ELSE {_number(missing)} END" if whens else _number(missing)


def _check_names(plan: Plan) -> None:
    names: dict[str, str] = {}
    for source in plan.inputs:
        other = names.setdefault(source.name.casefold(), source.name)
        if other != source.name:
            raise ValueError(
                f"feature_names: SQL does not tell {other!r} from {source.name!r}, which differ only in case."
            )


def _identifier(name: str) -> str:
    if not name:
        raise ValueError("feature_names: SQL has no columns without a name.")
    return '"' + check_text(name, "feature_names", "SQL").replace('"', '""') + '"'


def _label(label: Any) -> str:
    if isinstance(label, str):
        return "'" + check_text(label, "categories", "SQL").replace("'", "''") + "'"
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    if isinstance(label, int):
        if abs(label) >= 2**63:
            raise ValueError(f"categories: the label {label} has more digits than integers in SQL.")
        return str(label)
    return _number(label)


def _number(value: float, cast: bool = False) -> str:
    """A literal with all bits of a double. With ``cast`` its type is double in every database."""
    shown = Decimal(repr(value))
    digits = shown.as_tuple()
    if shown == Decimal(value) and len(digits.digits) <= _MOST_DIGITS and abs(int(digits.exponent)) <= 15:
        text = f"{value!r}e0" if "e" not in repr(value) else repr(value)
        return f"CAST({text} AS {_DOUBLE})" if cast else text
    whole, exponent = odd_part(value)
    text = f"CAST({whole} AS {_DOUBLE})"
    sign = "*" if exponent > 0 else "/"
    # powers that stay exact on the way: a subnormal result is reached by the last division only
    full, rest = divmod(abs(exponent), 62)
    for power in [62] * full + ([rest] if rest else []):
        text += f" {sign} {2**power}"
    return f"({text})"

"""A model as one SQL expression over the columns of a table: of a scorecard in whole points.

Numbers are written so that every database reads their bits: decimals where these are exact, otherwise a whole
number divided by a power of two. NULL is missing.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from cardboost.export.plan import Input, Plan, check_output, check_text, odd_part

_DOUBLE = "DOUBLE PRECISION"
_MOST_DIGITS = 15  # of a decimal that every database reads exactly


def export_sql(ensemble: Any, *, output: str = "score", table: str | None = None) -> str:
    """The expression. For several classes it is a list, one score per class, each with AS and its label.

    Parameters
    ----------
    ensemble : Ensemble, MulticlassEnsemble or Scorecard
        Columns are found by the names of the features.
    output : {"score", "class", "probability"}, default "score"
        "score" is the total of a scorecard. "class" is the label, "probability" that of the second class (two
        classes only; SQLite needs its mathematical functions).
    table : str, default None
        Put in front of the columns.

    Returns
    -------
    str
    """
    plan = Plan.of(ensemble)
    check_output(plan, output)
    if table is not None and not isinstance(table, str):
        raise ValueError(f"table: expected a name, found {table!r}.")
    _check_names(plan)
    if plan.n_scores > 1:
        labels = [_identifier(str(label)) for label in plan.classes or ()]
        return ",\n".join(f"{_score(plan, k, table)}\nAS {label}" for k, label in enumerate(labels)) + "\n"
    score = _score(plan, 0, table)
    if output == "score":
        return f"{score}\n"
    if output == "probability":
        zero, factor = map(_number, plan.log_odds or ())
        return f"1.0e0 / (1.0e0 + EXP(-({zero} + {factor} *\n{score})))\n"
    negative, positive = map(_label, plan.classes or ())
    sign, limit = plan.decision
    return f"CASE WHEN {score} {sign} {_number(limit) if limit else 0}\nTHEN {positive} ELSE {negative} END\n"


def _score(plan: Plan, k: int, table: str | None) -> str:
    start = plan.intercepts[k].item()
    parts = [_number(start, cast=True)] if start or not plan.in_points else []
    for source in plan.inputs:
        if source.table[:, k].any():
            column = _identifier(source.name)
            column = column if table is None else f"{_identifier(table)}.{column}"
            parts.append((_steps if source.categories is None else _labels)(source, k, column))
    return "(" + "\n + ".join(parts or [_number(start)]) + ")"


def _steps(source: Input, k: int, column: str) -> str:
    column = f"CAST({column} AS {_DOUBLE})"
    steps = source.of_score(k)
    missing = _number(steps.missing[0].item())
    if not steps.cuts:
        return f"CASE WHEN {column} IS NOT NULL THEN {_number(steps.levels[0, 0].item())} ELSE {missing} END"
    whens = [
        f"WHEN {column} {sign} {_number(cut)} THEN {_number(row[0].item())}"
        for sign, cut, row in steps.chain()
    ]
    return f"CASE {' '.join(whens)} ELSE {missing} END"


def _labels(source: Input, k: int, column: str) -> str:
    by_level: dict[float, list[str]] = {}
    labels = source.labels()
    booleans = all(isinstance(label, bool) for label, _ in labels)
    for label, levels in labels:
        plain = int(label) if isinstance(label, bool) and not booleans else label
        by_level.setdefault(levels[k].item(), []).append(_label(plain))
    missing = source.missing[k].item()
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


def _number(value: float | int, cast: bool = False) -> str:
    """A whole number, or a literal with all bits of a double. With ``cast`` its type is double everywhere."""
    if isinstance(value, int):
        return str(value)
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

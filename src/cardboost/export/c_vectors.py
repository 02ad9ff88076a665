"""Rows that try every cut of a C header on both sides, with the answers of the model."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.export.c_model import CModel, float32_at_most
from cardboost.export.c_text import FLT_MAX, comment, float_literal, int_literal, table
from cardboost.export.integer_model import HIGHEST, LOWEST, MISSING
from cardboost.export.plan import Array, add_up

_MIXED_ROWS = 24  # rows that mix values at random


def vectors(model: CModel, name: str | None = None) -> str:
    """A header with a function that returns how many of its rows get another answer.

    ``name`` is that of the file with the model's header, by default the prefix with .h.
    """
    file = f"{model.prefix}.h" if name is None else name
    if not isinstance(file, str) or not re.fullmatch(r"[\w.\- ]+", file, re.ASCII):
        raise ValueError(
            f"path: test vectors include the header by its name, so it must be plain letters; found {file!r}."
        )
    return _text(model, file)


def values(model: CModel, index: int) -> list[float]:
    """Test values of one input: every cut with its neighbours, missing, labels and codes beyond them."""
    source, steps = model.plan.inputs[index], model.steps[index]
    missing = float("nan") if model.number == "float" else float(MISSING)
    if source.categories is not None:
        return [missing, *(float(code) for code in range(-1, len(source.levels) + 2))]
    if model.number == "int16":
        near = {cut + step for cut in steps.cuts for step in (-1, 0, 1)} | {0, LOWEST, HIGHEST}
        return [missing, *sorted(float(code) for code in near if MISSING < code <= HIGHEST)]
    numbers = {0.0, -1e30, 1e30}
    for cut in source.cuts:
        value = np.float32(float32_at_most(cut))
        with np.errstate(over="ignore"):
            neighbours = {float(np.nextafter(value, np.float32(end))) for end in (-np.inf, np.inf)}
        numbers |= neighbours | {float(value)}
    return [missing, *sorted(value for value in numbers if abs(value) < FLT_MAX)]


def rows(model: CModel, mixed: int = _MIXED_ROWS) -> Array:
    """Every value of every input, then mixtures."""
    columns = [values(model, k) for k in range(len(model.plan.inputs))]
    rng = np.random.default_rng(0)
    count = max([1, *map(len, columns)])
    table = [[column[k % len(column)] for column in columns] for k in range(count)]
    table += [
        [column[rng.integers(len(column))] for column in columns] for _ in range(mixed if columns else 0)
    ]
    return np.array(table, dtype=np.float64).reshape(len(table), len(columns))


def answers(model: CModel, table: Array) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The scores of rows, (rows, scores), and their classes."""
    points = model.points
    start = model.plan.intercepts if points is None else points.intercepts
    tables = [step.table for step in model.steps] if points is None else points.tables
    total = add_up(start, model.steps, tables, table)
    best = (total[:, 0] > 0) if model.plan.n_scores == 1 else np.argmax(total, axis=1)
    return total, best.astype(np.int64)


def _text(model: CModel, header: str) -> str:
    prefix, floats, several = model.prefix, model.number == "float", model.plan.n_scores > 1
    inputs = rows(model)
    scores, classes = answers(model, inputs)
    n, width, count = len(inputs), max(inputs.shape[1], 1), model.plan.n_scores

    def literal(value: float) -> str:
        if not floats:
            return "INT16_MIN" if value == MISSING else int_literal(int(value))
        return float_literal(FLT_MAX if value != value else value)

    cells = [[literal(value) for value in row] or ["0"] for row in inputs.tolist()]
    score_literal = repr if model.points is None else int_literal
    score_cells = [list(map(score_literal, row)) for row in scores.tolist()]
    tables = [
        _matrix(f"{model.c_type} rows[{n}][{width}]", cells),
        _matrix(f"{model.score_type} scores[{n}][{count}]", score_cells),
    ]
    variables = ["    uint16_t failures = 0u;", "    uint_fast16_t i;", "    uint_fast16_t j;"]
    checks = [
        "            if ((found[j] < scores[i][j]) || (found[j] > scores[i][j])) { wrong = 1u; }",
        "        }",
    ]
    if model.plan.decides:
        tables.append(table(f"uint16_t classes[{n}]", [[f"{k}u" for k in classes.tolist()]]))
        checks.append(f"        if ({prefix}_class(x) != classes[i]) {{ wrong = 1u; }}")
    copy = "x[j] = rows[i][j];"
    if floats:
        variables += [
            "    const volatile float zero = 0.0f;",
            "    const float missing = zero / zero; /* the largest float stands for it in the rows */",
        ]
        copy = f"x[j] = (rows[i][j] >= {float_literal(FLT_MAX)}) ? missing : rows[i][j];"
    call = f"{prefix}_scores(x, found);" if several else f"found[0] = {prefix}_score(x);"
    body, compare = "\n".join([*tables, *variables]), "\n".join(checks)
    guard = f"{prefix.upper()}_TEST_VECTORS_H"
    return f"""\
{comment([f"Generated by cardboost: rows for {header} with the answers of the model.", ""])}
#ifndef {guard}
#define {guard}

#include <stdint.h>
#include "{header}"

{comment(["How many of the rows get another answer: 0 if all is well."])}
static inline uint16_t {prefix}_self_test(void)
{{
{body}
    for (i = 0u; i < {n}u; i++) {{
        {model.c_type} x[{width}];
        {model.score_type} found[{count}];
        uint16_t wrong = 0u;
        for (j = 0u; j < {width}u; j++) {{
            {copy}
        }}
        {call}
        for (j = 0u; j < {count}u; j++) {{
{compare}
        failures = (uint16_t)(failures + wrong);
    }}
    return failures;
}}

#endif /* {guard} */
"""


def _matrix(declaration: str, cells: list[list[str]]) -> str:
    """A constant table with one line per row."""
    return table(declaration, [[f"{{{', '.join(row)}}}"] for row in cells])

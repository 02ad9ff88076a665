"""Running an export: Python, SQLite, DuckDB, ONNX, and codes of whole-number C."""

from __future__ import annotations

import math
import sqlite3

import numpy as np

from cardboost.export.integer_model import HIGHEST, LOWEST, MISSING
from cardboost.export.python import export_python

FINE = ("too near", "near ties", "lost digits")  # 24 bits do not tell their scores apart


def run_python(ensemble, rows, **options):
    space = {}
    exec(export_python(ensemble, **options), {"__builtins__": {"float": float}}, space)
    names = [ensemble.feature_name(j) for j in range(ensemble.n_features)]
    named = options.get("by") == "name" or (options.get("by", "auto") == "auto" and ensemble.feature_names)
    given = [dict(zip(names, row, strict=True)) if named else row for row in rows]
    return np.array([space["score"](row) for row in given], dtype=np.float64)


def run_output(model, rows, output):
    """What the exported Python function returns for rows by position."""
    space = {}
    exec(export_python(model, name="f", output=output, by="position"), space)
    return [space["f"](row) for row in rows]


def run_sqlite(expression, names, rows):
    base = sqlite3.connect(":memory:")
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    base.execute(f"CREATE TABLE t (id INTEGER, {columns})")
    marks = ", ".join("?" * (len(names) + 1))
    base.executemany(f"INSERT INTO t VALUES ({marks})", [[k, *map(null, row)] for k, row in enumerate(rows)])
    return base.execute(f"SELECT {expression} FROM t ORDER BY id").fetchall()


def run_duckdb(expression, ensemble, rows):
    import duckdb
    import pyarrow as pa

    frame, columns = {"id": pa.array(range(len(rows)))}, []
    for j in range(ensemble.n_features):
        name, own = ensemble.feature_name(j), ensemble.categories.get(j)
        text = own is not None and isinstance((*own.kept, *own.rare)[0], str)
        kind = pa.float64() if own is None else pa.string() if text else pa.int64()
        frame[name] = pa.array([null(row[j]) for row in rows], type=kind)
        columns.append(name)
    base = duckdb.connect()
    base.register("t", pa.table(frame))
    found = base.execute(f"SELECT id, {expression} FROM t").fetchall()
    return [row[1:] for row in sorted(found)]


def null(value):
    """SQL has NULL for NaN."""
    return None if value is None or value != value else value


def run_onnx(data, x):
    import onnxruntime as runtime

    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = runtime.InferenceSession(data, settings, providers=["CPUExecutionProvider"])
    names = [own.name for own in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": x.astype(np.float32)}), strict=True))


def code_rows(integer, count, seed=0):
    """Every code next to a cut, the ends, missing, and any other codes."""
    rng = np.random.default_rng(seed)
    columns = []
    for own in integer.steps:
        near = [cut + step for cut in own.cuts for step in (-1, 0, 1)]
        values = {MISSING, LOWEST, HIGHEST, -1, 0, 1, 300, *near, *rng.integers(-200, 200, 20).tolist()}
        known = np.array(sorted(v for v in values if MISSING <= v <= HIGHEST), dtype=np.int16)
        columns.append(np.concatenate([known, rng.choice(known, count - len(known))]))
    return np.array(columns, dtype=np.int16).reshape(len(integer.steps), count).T


def decoded(ensemble, integer, codes):
    """Raw rows at the numbers that codes stand for."""
    values = integer.decode(codes)
    rows = [[math.nan] * ensemble.n_features for _ in codes]
    for place, own in enumerate(integer.plan.inputs):
        for row, value in zip(rows, values[:, place].tolist(), strict=True):
            if own.categories is None:
                row[own.feature] = value
            elif value != value:
                row[own.feature] = None
            else:
                labels = (*own.categories.kept, *own.categories.rare)
                row[own.feature] = labels[int(value)]
    for row in rows:
        for j in ensemble.categories:
            row[j] = None if row[j] != row[j] else row[j]
    return rows

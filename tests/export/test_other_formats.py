"""Python, SQL and ONNX: scores to the bit, or decisions for every float32; and what cannot be exported."""

from __future__ import annotations

import ast
import json
import math
import re
import sqlite3

import numpy as np
import pytest
from exported import (
    HOSTILE,
    coded,
    decisions,
    fixed_models,
    float32_values,
    float64_values,
    random_ensemble,
    raw_rows,
    stumps,
    table_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from runners import FINE, null, run_onnx, run_python, run_sqlite

from cardboost.data.categories import Categories
from cardboost.export.onnx import export_onnx
from cardboost.export.plan import Plan
from cardboost.export.points import find_points
from cardboost.export.python import export_python
from cardboost.export.sql import _number, export_sql
from cardboost.model import Ensemble, Term

from drawn_models import bits, drawn_ensembles, drawn_multiclass  # isort: skip

MODELS = fixed_models()


# ------------------------------------------------------------------------------------------------ Python


@pytest.mark.parametrize("name", MODELS)
def test_python(name):
    ensemble = MODELS[name]
    rows = raw_rows(ensemble, 2_000, float64_values)
    wanted = ensemble.decision_function(table_of(ensemble, rows))
    for by in ("auto", "name", "position"):
        assert bits(run_python(ensemble, rows, by=by)) == bits(wanted)


@settings(max_examples=20)
@given(st.one_of(drawn_ensembles(), drawn_multiclass()))
def test_python_of_drawn_models(ensemble):
    rows = raw_rows(ensemble, 50, float64_values)
    assert bits(run_python(ensemble, rows)) == bits(ensemble.decision_function(table_of(ensemble, rows)))


def test_python_is_one_function_of_plain_text():
    for ensemble in MODELS.values():
        text = export_python(ensemble)
        tree = ast.parse(text)
        assert [type(node) for node in tree.body] == [ast.FunctionDef]
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        assert text.isascii()
    assert run_python(stumps((0, 0.5, 1.0)), [[None], [True], [np.float32(0.5)], [2**70]]).tolist() == [
        -1,
        -1,
        1,
        -1,
    ]


# ------------------------------------------------------------------------------------------------ SQL


def usable(ensemble):
    """Models whose names are columns of SQL."""
    names = [ensemble.feature_name(j) for j in range(ensemble.n_features)]
    return "hostile" if any(not n or "\ud800" in n for n in names) else names


@pytest.mark.parametrize("name", [name for name in MODELS if name != "hostile names"])
def test_sqlite(name):
    ensemble = MODELS[name]
    rows = raw_rows(ensemble, 2_000, float64_values)
    wanted = ensemble.decision_function(table_of(ensemble, rows))
    found = run_sqlite(export_sql(ensemble), usable(ensemble), rows)
    assert bits(found) == bits(wanted)
    if ensemble.kind == "binary":
        labels = run_sqlite(export_sql(ensemble, output="class", table="t"), usable(ensemble), rows)
        assert [label for (label,) in labels] == [ensemble.classes[k] for k in decisions(ensemble, wanted)]


@pytest.mark.parametrize("name", ["random", "regression", "several classes", "extreme cuts", "near ties"])
def test_duckdb(name):
    import duckdb
    import pyarrow as pa

    ensemble = MODELS[name]
    rows = raw_rows(ensemble, 1_500, float64_values)
    names = usable(ensemble)
    base = duckdb.connect()
    kinds = [
        "DOUBLE" if j not in ensemble.categories else "VARCHAR" if j == ensemble.n_features - 2 else "BIGINT"
        for j in range(ensemble.n_features)
    ]
    columns = ", ".join(f'"{own}" {kind}' for own, kind in zip(names, kinds, strict=True))
    base.execute(f"CREATE TABLE t (id BIGINT, {columns})")
    frame = {"id": np.arange(len(rows))}
    for j, (own, kind) in enumerate(zip(names, kinds, strict=True)):
        types = {"DOUBLE": pa.float64(), "VARCHAR": pa.string(), "BIGINT": pa.int64()}
        frame[own] = pa.array([null(row[j]) for row in rows], type=types[kind])
    source = pa.table(frame)
    base.register("source", source)
    base.execute("INSERT INTO t SELECT * FROM source")
    found = base.execute(f"SELECT {export_sql(ensemble)} FROM t ORDER BY id").fetchall()
    assert bits(found) == bits(ensemble.decision_function(table_of(ensemble, rows)))


@settings(max_examples=20)
@given(drawn_ensembles())
def test_sqlite_on_drawn_models(ensemble):
    rows = raw_rows(ensemble, 50, float64_values)
    found = run_sqlite(export_sql(ensemble), usable(ensemble), rows)
    assert bits(found) == bits(ensemble.decision_function(table_of(ensemble, rows)))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_their_bits(value):
    base = sqlite3.connect(":memory:")
    found = base.execute(f"SELECT {_number(value)}, {_number(value, cast=True)}").fetchone()
    assert bits(found) == bits([value, value])


def test_hostile_names_in_sql():
    names = tuple(name for name in HOSTILE if name and "\ud800" not in name and name != "A B")
    terms = tuple(Term(j, 0.5, 1, False, 1.0 + j) for j in range(len(names)))
    ensemble = Ensemble("logistic", 0.25, terms, names, len(names), ("it's", '"'))
    rows = raw_rows(ensemble, 200, float64_values)
    wanted = ensemble.decision_function(table_of(ensemble, rows))
    assert bits(run_sqlite(export_sql(ensemble), names, rows)) == bits(wanted)
    labels = run_sqlite(export_sql(ensemble, output="class"), names, rows)
    assert {label for (label,) in labels} == {"it's", '"'}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a", "A"), "SQL does not tell 'a' from 'A'"),
        (("", "b"), "no columns without a name"),
        (("a\0", "b"), "a character that SQL cannot"),
        (("\ud800", "b"), "a character that SQL cannot"),
    ],
)
def test_names_that_sql_cannot_have(names, message):
    terms = tuple(Term(j, 0.5, 1, False, 1.0) for j in range(2))
    with pytest.raises(ValueError, match=re.escape(message)):
        export_sql(Ensemble("logistic", 0.0, terms, names, 2, (0, 1)))


def test_truth_values_as_labels():
    term = Term(0, None, 1, False, 1.0, category=True)
    own = Ensemble("logistic", 0.25, (term,), None, 1, (0, 1), {0: Categories((False, True))})
    assert "IN (TRUE)" in export_sql(own)
    found = run_sqlite(export_sql(own), ["x0"], [[True], [False], [None]])
    assert found == [(1.25,), (-0.75,), (-0.75,)]


# ------------------------------------------------------------------------------------------------ ONNX


@pytest.mark.parametrize("name", [name for name in MODELS if name not in FINE])
def test_onnx(name):
    ensemble = MODELS[name]
    rows = raw_rows(ensemble, 3_000, float32_values)
    wanted = ensemble.decision_function(table_of(ensemble, rows)).reshape(len(rows), -1)
    found = run_onnx(export_onnx(ensemble), coded(ensemble, rows))
    scale = np.abs(wanted).max()
    assert np.abs(found["score"] - wanted).max() <= 1e-5 * scale
    if ensemble.classes is None:
        assert set(found) == {"score"}
        return
    assert [ensemble.classes[k] for k in decisions(ensemble, wanted)] == found["label"].tolist()
    if ensemble.kind == "binary":
        exact = ensemble.predict_proba(table_of(ensemble, rows))
        assert np.abs(found["probabilities"] - exact).max() <= 1e-5


def test_onnx_of_drawn_models():
    @settings(max_examples=25)
    @given(st.one_of(drawn_ensembles(), drawn_multiclass()))
    def check(ensemble):
        plan = Plan.of(ensemble)
        proven = find_points(plan, [own.steps() for own in plan.inputs], (32,), 2**24).proven
        rows = raw_rows(ensemble, 100, float32_values)
        wanted = ensemble.decision_function(table_of(ensemble, rows)).reshape(len(rows), -1)
        if "\0" in (ensemble.classes or ()):
            with pytest.raises(ValueError, match="a character that ONNX cannot"):
                export_onnx(ensemble, exact=False)
            return
        found = run_onnx(export_onnx(ensemble, exact=False), coded(ensemble, rows))
        if ensemble.classes is not None and proven:
            assert [ensemble.classes[k] for k in decisions(ensemble, wanted)] == found["label"].tolist()

    check()


def test_onnx_tells_the_codes_of_labels():
    import onnx

    model = onnx.load_from_string(export_onnx(random_ensemble(1)))
    facts = {own.key: json.loads(own.value) for own in model.metadata_props}
    assert facts["cardboost.categories"]["4"] == {
        "kept": ["a", "b", "it's", "é"],
        "rare": ["rare one", "rare two"],
    }
    assert facts["cardboost.features"]["0"] == "x0"


def test_onnx_needs_a_proof():
    for name in FINE:
        with pytest.raises(ValueError, match="exact=False"):
            export_onnx(MODELS[name])
        assert export_onnx(MODELS[name], exact=False)
    with pytest.raises(ValueError, match="too large or too small"):
        export_onnx(stumps((0, 0.5, 1e200)))


# ------------------------------------------------------------------------------------------------ chains


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=5), st.sampled_from([0.0, 1.0, 7.0]))
def test_chains_are_the_step_function(levels, missing):
    from cardboost.export.plan import Steps

    cuts = tuple(float(k) for k in range(len(levels) - 1))
    steps = Steps(cuts, np.array([*levels, missing])[:, None]).merged()
    tests = steps.chain()
    for x in (math.nan, -1.0, *cuts, *(cut + 0.5 for cut in cuts)):
        wanted = missing if x != x else levels[sum(cut < x for cut in cuts)]
        taken = [row for sign, cut, row in tests if (x <= cut if sign == "<=" else x > cut)]
        if steps.cuts or x != x:
            assert (taken[0] if taken else steps.missing)[0] == wanted

"""One table of rows, all targets: every cut, its neighbours in the number type of the target, missing values
and unseen labels get the decisions of the model, and its scores where they are promised.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from cross import run_on_cortex
from exported import (
    Compiled,
    coded,
    cuts_of,
    decisions,
    fixed_models,
    float32_values,
    float64_values,
    raw_rows,
    table_of,
)
from runners import FINE, code_rows, decoded, run_duckdb, run_onnx, run_python, run_sqlite
from sklearn.datasets import load_breast_cancer

from cardboost import CardBoostClassifier, CardBoostRegressor
from cardboost.export import export_model
from cardboost.export.c_model import c_model
from cardboost.export.integer_model import IntegerModel
from cardboost.model.files import read_model

from drawn_models import bits  # isort: skip

ROWS = 10_000
FITTED = ("fitted", "fitted labels", "fitted numbers")
NAMES = (*FITTED, *(name for name in fixed_models() if name != "hostile names"))


def fitted_models():
    """Models of estimators: measurements, labels with rare ones among them, and a regressor."""
    import pandas as pd

    data = load_breast_cancer()
    rng = np.random.default_rng(0)
    label = rng.choice(["a", "b", "it's", "é", "z"], size=600, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    number = rng.integers(0, 40, size=600) / 4
    number[rng.random(600) < 0.1] = math.nan
    code = rng.integers(0, 300, size=600)
    frame = pd.DataFrame({"label": label, "number": number, "code": code, "noise": rng.normal(size=600)})
    height = np.nan_to_num(number) / 5 + 2.0 * np.isin(label, ["b", "z"]) + (code % 7 == 0)
    target = height + rng.normal(size=600) > 2.2
    few = {"l2": 0.01, "hot_start": 15, "n_jobs": 1}
    labelled = CardBoostClassifier(max_terms=8, categorical_features=["label", "code"], **few)
    return {
        "fitted": CardBoostClassifier(max_terms=10, **few).fit(data.data, data.target).ensemble_,
        "fitted labels": labelled.fit(frame, target).ensemble_,
        "fitted numbers": CardBoostRegressor(max_terms=6, **few)
        .fit(frame[["number", "noise"]], height)
        .ensemble_,
    }


@pytest.fixture(scope="module")
def models():
    return {**fitted_models(), **fixed_models()}


def exact(name):
    """Whether whole numbers are proven to decide as the model does."""
    return name != "lost digits"


@pytest.fixture(scope="module")
def floats(models, tmp_path_factory):
    own = [c_model(models[name], prefix=f"f{k}") for k, name in enumerate(NAMES)]
    return Compiled(own, tmp_path_factory.mktemp("floats"))


@pytest.fixture(scope="module")
def wholes(models, tmp_path_factory):
    own = [
        c_model(models[name], prefix=f"w{k}", number="int16", exact=exact(name))
        for k, name in enumerate(NAMES)
    ]
    return Compiled(own, tmp_path_factory.mktemp("wholes"))


def used(ensemble, x):
    return x[:, list(ensemble.features_used)]


def score_of(ensemble, rows):
    return ensemble.decision_function(table_of(ensemble, rows)).reshape(len(rows), -1)


def check_exact_targets(ensemble, rows, wanted):
    """Python, SQL in two databases and JSON: scores to the bit."""
    names = [ensemble.feature_name(j) for j in range(ensemble.n_features)]
    sql = export_model(ensemble, "sql")
    found = {
        "python": run_python(ensemble, rows),
        "sqlite": run_sqlite(sql, names, rows),
        "duckdb": run_duckdb(sql, ensemble, rows),
        "json": score_of(read_model(export_model(ensemble, "json").encode()).ensemble, rows),
    }
    for target, scores in found.items():
        assert bits(scores) == bits(wanted), target


@pytest.mark.parametrize("name", NAMES)
def test_float32_rows(name, models, floats):
    """C that takes floats, ONNX, Python, SQL and JSON on the same rows."""
    ensemble = models[name]
    rows = raw_rows(ensemble, ROWS, float32_values)
    assert len(rows) >= ROWS
    wanted = score_of(ensemble, rows)
    right = decisions(ensemble, wanted)
    x = coded(ensemble, rows)
    k = NAMES.index(name)
    scores, classes, _ = floats.run(k, used(ensemble, x))
    points = floats.models[k].points
    if points is None:
        assert bits(scores) == bits(wanted)
    else:
        off = np.abs(scores.astype(np.float64) * points.value - wanted)
        assert off.max() <= points.error
    if ensemble.classes is not None:
        assert (classes == right).all()
        if name not in FINE:
            labels = run_onnx(export_model(ensemble, "onnx"), x)["label"].tolist()
            assert labels == [ensemble.classes[k] for k in right]
    check_exact_targets(ensemble, rows, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_doubles(name, models):
    ensemble = models[name]
    rows = raw_rows(ensemble, ROWS, float64_values)
    check_exact_targets(ensemble, rows, score_of(ensemble, rows))


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_codes(name, models, wholes):
    """Whole numbers: the points of their definition, within the bound that the header states."""
    ensemble, k = models[name], NAMES.index(name)
    integer = IntegerModel.from_ensemble(ensemble, exact=exact(name))
    codes = code_rows(integer, ROWS)
    points, classes, _ = wholes.run(k, codes)
    assert (points == integer.decision_function(codes).reshape(len(codes), -1)).all()
    wanted = score_of(ensemble, decoded(ensemble, integer, codes))
    off = np.abs(points.astype(np.float64) * integer.points.value - wanted)
    assert off.max() <= integer.points.error
    if ensemble.classes is not None and exact(name):
        assert (classes == decisions(ensemble, wanted)).all()
    elif ensemble.classes is not None:
        assert (classes == decisions(ensemble, points)).all()


@pytest.mark.parametrize("name", NAMES)
def test_codes_of_doubles(name, models, wholes):
    """Where the cuts of an input are on its grid, its code decides as any double did that it is made of."""
    ensemble, k = models[name], NAMES.index(name)
    integer = IntegerModel.from_ensemble(ensemble, exact=exact(name))
    rows = raw_rows(ensemble, ROWS, float64_values)
    x = used(ensemble, coded(ensemble, rows))
    codes = integer.encode(x)
    held = [
        grid is None or all(grid.holds(cut) for cut in cuts_of(ensemble, own.feature))
        for own, grid in zip(integer.plan.inputs, integer.grids, strict=True)
    ]
    off = [own.feature for own, kept in zip(integer.plan.inputs, held, strict=True) if not kept]
    for row in rows:  # the others are missing in the row and in its code
        for feature in off:
            row[feature] = math.nan
    codes[:, [not kept for kept in held]] = np.int16(-32768)
    if name == "fitted labels":
        assert all(held)
    wanted = score_of(ensemble, rows)
    points, classes, _ = wholes.run(k, codes)
    assert (points == integer.decision_function(codes).reshape(len(codes), -1)).all()
    if ensemble.classes is not None and exact(name):
        assert (classes == decisions(ensemble, wanted)).all()


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_on_a_cortex_m0(name, models, floats, wholes, tmp_path):
    """The same bits as on this computer, row by row."""
    ensemble, k = models[name], NAMES.index(name)
    integer = IntegerModel.from_ensemble(ensemble, exact=exact(name))
    raw = raw_rows(ensemble, ROWS, float32_values)
    for library, x in (
        (floats, used(ensemble, coded(ensemble, raw))),
        (wholes, code_rows(integer, ROWS)),
    ):
        scores, classes, _ = library.run(k, x)
        there, there_classes = run_on_cortex(library.models[k], x, tmp_path)
        assert there.tobytes() == scores.astype(there.dtype).tobytes()
        assert (there_classes == classes).all()

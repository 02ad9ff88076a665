"""Models with an operating point: every export decides by the same threshold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exported import Compiled, coded, fixed_models, float32_values, float64_values, raw_rows, stumps, table_of
from hypothesis import given, settings
from hypothesis import strategies as st
from runners import run_duckdb, run_onnx, run_output, run_sqlite

from cardboost.export import export_model
from cardboost.export.c_model import c_model
from cardboost.export.integer_model import IntegerModel
from cardboost.export.points import PROBABILITY_UNIT
from cardboost.model.operating_point import OperatingPoint

from drawn_models import drawn_ensembles  # isort: skip

FIXED = fixed_models()
BASE = {
    "random": FIXED["random"],
    "exponential": FIXED["exponential"],
    "many cuts": FIXED["many cuts"],
    "near ties": FIXED["near ties"],
    "a tie": stumps((0, 0.5, 1.0), (1, 0.25, 1.0), intercept=0.5),
}


def with_threshold(ensemble, value):
    return replace(ensemble, operating_point=OperatingPoint(value, "fpr<=0.1"))


def thresholds(ensemble):
    """Scores of the model itself, which are not above the threshold, and numbers between them."""
    rows = raw_rows(ensemble, 60, float64_values)
    scores = np.unique(ensemble.decision_function(table_of(ensemble, rows)))
    return [float(scores[len(scores) // 3]), round(float(scores.mean()), 2)]


MODELS = {
    f"{name} {k}": with_threshold(ensemble, value)
    for name, ensemble in BASE.items()
    for k, value in enumerate(thresholds(ensemble))
}


@pytest.mark.parametrize("name", MODELS)
def test_python_and_sql(name):
    ensemble = MODELS[name]
    rows = raw_rows(ensemble, 300, float64_values)
    table = table_of(ensemble, rows)
    wanted = ensemble.predict(table).tolist()
    assert (
        (ensemble.decision_function(table) > ensemble.threshold)
        == (ensemble.predict(table) == ensemble.classes[1])
    ).all()
    names = [ensemble.feature_name(j) for j in range(ensemble.n_features)]
    sql = export_model(ensemble, "sql", output="class")
    assert run_output(ensemble, rows, "class") == wanted
    assert [row[0] for row in run_sqlite(sql, names, rows)] == wanted
    assert [row[0] for row in run_duckdb(sql, ensemble, rows)] == wanted
    chance = ensemble.predict_proba(table)[:, 1]
    np.testing.assert_allclose(run_output(ensemble, rows, "probability"), chance, rtol=1e-12)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    models = []
    for k, ensemble in enumerate(MODELS.values()):
        models += [
            c_model(ensemble, prefix=f"f{k}"),
            c_model(ensemble, prefix=f"d{k}", score="double"),
            c_model(ensemble, prefix=f"p{k}", score="points", probability=True, exact=False),
            c_model(ensemble, prefix=f"w{k}", number="int16", exact=False),
        ]
    return Compiled(models, tmp_path_factory.mktemp("thresholds"))


@pytest.mark.parametrize("k", range(len(MODELS)), ids=list(MODELS))
def test_c(compiled, k):
    ensemble = list(MODELS.values())[k]
    rows = raw_rows(ensemble, 400, float32_values)
    x = coded(ensemble, rows)[:, list(ensemble.features_used)]
    table = table_of(ensemble, rows)
    second = ensemble.predict(table) == ensemble.classes[1]
    for index in range(4 * k, 4 * k + 3):
        model = compiled.models[index]
        scores, classes, chances = compiled.run(index, x)
        if model.points is None or model.points.proven:
            assert (classes == second).all()
        if model.points is not None:
            near = model.points.origin + model.points.value * scores[:, 0]
            assert np.abs(near - ensemble.decision_function(table)).max() <= model.points.error
        if model.probability is not None:
            error = np.abs(chances / PROBABILITY_UNIT - ensemble.predict_proba(table)[:, 1]).max()
            assert error <= model.probability.error + 1e-12
    assert [compiled.failures(index) for index in range(4 * k, 4 * k + 4)] == [0] * 4


def test_most_are_proven_in_whole_numbers(compiled):
    proven = [model.points is not None and model.points.proven for model in compiled.models[::4]]
    assert sum(proven) >= len(proven) - 2


@settings(max_examples=30, deadline=None)
@given(ensemble=drawn_ensembles(loss="logistic"), value=st.sampled_from([-1.5, 0.1, 2.0]))
def test_whole_numbers_of_drawn_models(ensemble, value):
    ensemble = with_threshold(ensemble, value)
    model = IntegerModel.from_ensemble(ensemble, exact=False)
    if not model.points.proven:
        return
    codes = np.random.default_rng(0).integers(-40, 40, size=(200, len(model.grids))).astype(np.int16)
    numbers = model.decode(codes)
    rows = [[np.nan] * ensemble.n_features for _ in codes]
    for i, row in enumerate(numbers.tolist()):
        for source, cell in zip(model.plan.inputs, row, strict=True):
            if source.categories is not None:
                labels = {source.categories.code(label): label for label, _ in source.labels()}
                cell = None if cell != cell else labels[int(cell)]
            rows[i][source.feature] = cell
    for row in rows:
        for j in ensemble.categories:
            row[j] = None if row[j] != row[j] else row[j]
    predicted = ensemble.predict(table_of(ensemble, rows)) == ensemble.classes[1]
    assert ((model.decision_function(codes) > 0) == predicted).all()


def test_onnx():
    for name in ("random 0", "exponential 1", "a tie 0"):
        ensemble = MODELS[name]
        rows = raw_rows(ensemble, 300, float32_values)
        found = run_onnx(export_model(ensemble, "onnx"), coded(ensemble, rows).astype(np.float32))
        table = table_of(ensemble, rows)
        assert list(found["label"]) == ensemble.predict(table).tolist()
        np.testing.assert_allclose(np.ravel(found["score"]), ensemble.decision_function(table), atol=1e-4)
        np.testing.assert_allclose(found["probabilities"], ensemble.predict_proba(table), atol=1e-4)

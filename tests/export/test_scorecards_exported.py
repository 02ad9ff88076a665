"""One language of points: a scorecard and its exports give the same totals, classes and probabilities.

Rows have every cut, its neighbours, missing values and unseen labels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exported import Compiled, coded, float32_values, float64_values, random_ensemble, raw_rows, table_of
from hypothesis import given, settings
from hypothesis import strategies as st
from runners import run_duckdb, run_onnx, run_output, run_sqlite

from cardboost.export import export_model
from cardboost.export.c_model import c_model
from cardboost.export.integer_model import IntegerModel
from cardboost.export.plan import Plan
from cardboost.export.points import PROBABILITY_UNIT
from cardboost.model.files import read_model
from cardboost.model.predictions import model_predictions, top_reasons
from cardboost.model.scorecard import OddsScale, Scorecard


def random_card(seed: int, scaled: bool = False, negative: bool = False, loss: str = "logistic") -> Scorecard:
    """Whole points on numbers and labels; the threshold is somewhere among the totals."""
    rng = np.random.default_rng(seed)
    names = tuple(f"f{j}" for j in range(6))
    own = random_ensemble(seed, loss=loss, feature_names=names, classes=("no", "yes"))
    scale = OddsScale(600, 50, 20) if scaled else None
    unit = scale.unit(loss) if scale else 0.25
    terms = tuple(replace(term, weight=unit * int(rng.integers(1, 9))) for term in own.terms)
    card = Scorecard(replace(own, terms=terms, unit=unit, intercept=0.0), None, scale, negative)
    if scale is None:
        return card
    off = scale.zero(loss) + card.point * 580 - card._zero
    return replace(card, ensemble=replace(card.ensemble, intercept=off))


CARDS = {
    "plain": random_card(1),
    "scaled": random_card(2, scaled=True),
    "negative": random_card(3, negative=True),
    "exponential": random_card(4, loss="exponential"),
    "no terms": Scorecard(replace(random_card(5).ensemble, terms=(), categories={}, intercept=-0.5)),
}


def totals_of(card, rows):
    return card.total(table_of(card.ensemble, rows))


@pytest.mark.parametrize("name", CARDS)
def test_python_and_sql(name):
    card = CARDS[name]
    rows = raw_rows(card.ensemble, 300, float64_values)
    table = table_of(card.ensemble, rows)
    names = [card.ensemble.feature_name(j) for j in range(card.ensemble.n_features)]
    wanted = {
        "score": card.total(table).tolist(),
        "class": card.predict(table).tolist(),
        "probability": card.predict_proba(table)[:, 1],
    }
    assert len(set(wanted["class"])) == 2 or name in ("scaled", "no terms")
    for output, values in wanted.items():
        sql = export_model(card, "sql", output=output)
        found = {
            "python": run_output(card, rows, output),
            "sqlite": [row[0] for row in run_sqlite(sql, names, rows)],
            "duckdb": [row[0] for row in run_duckdb(sql, card.ensemble, rows)],
        }
        for target, answers in found.items():
            if output == "probability":
                np.testing.assert_allclose(answers, values, rtol=1e-12, err_msg=target)
            else:
                assert answers == values, target
        if output == "score":
            assert all(type(answer) is int for answer in found["python"])


def test_a_case_in_sql_has_the_points_of_the_line():
    card = CARDS["plain"]
    sql = export_model(card, "sql")
    lines = {line.points for section in card.sections for line in section.lines}
    assert all(f"THEN {points} " in sql or f"ELSE {points} " in sql for points in lines)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    models = []
    for k, card in enumerate(CARDS.values()):
        models += [
            c_model(card, prefix=f"f{k}", probability=True),
            c_model(card, prefix=f"i{k}", layout="ifs"),
            c_model(card, prefix=f"w{k}", number="int16", probability=True),
        ]
    return Compiled(models, tmp_path_factory.mktemp("cards"))


@pytest.mark.parametrize("k", range(len(CARDS)))
def test_c(compiled, k):
    card = list(CARDS.values())[k]
    used = list(card.ensemble.features_used)
    rows = raw_rows(card.ensemble, 500, float32_values)
    x = coded(card.ensemble, rows)[:, used]
    table = table_of(card.ensemble, rows)
    chance = card.predict_proba(table)[:, 1]
    for index in (3 * k, 3 * k + 1):
        totals, classes, found = compiled.run(index, x)
        assert totals[:, 0].tolist() == card.total(table).tolist()
        assert (classes == (card.predict(table) == "yes")).all()
        if (own := compiled.models[index].probability) is not None:
            assert np.abs(found / PROBABILITY_UNIT - chance).max() <= own.error + 1e-12
            assert own.error < 1e-3
    assert [compiled.failures(index) for index in (3 * k, 3 * k + 1, 3 * k + 2)] == [0, 0, 0]
    whole = IntegerModel.from_ensemble(card)
    codes = whole.encode(x)
    totals, classes, _ = compiled.run(3 * k + 2, codes)
    assert totals[:, 0].tolist() == whole.decision_function(codes).tolist()
    assert (classes == (totals[:, 0] >= card.threshold)).all()
    labels = zip(whole.plan.inputs, whole.grids, strict=True)
    if all(grid is None or all(map(grid.holds, source.steps().cuts)) for source, grid in labels):
        assert totals[:, 0].tolist() == card.total(table).tolist()


def test_onnx():
    card = CARDS["scaled"]
    rows = raw_rows(card.ensemble, 300, float32_values)
    x = coded(card.ensemble, rows).astype(np.float32)
    found = run_onnx(export_model(card, "onnx"), x)
    table = table_of(card.ensemble, rows)
    assert np.ravel(found["score"]).tolist() == card.total(table).tolist()
    assert list(found["label"]) == card.predict(table).tolist()
    np.testing.assert_allclose(found["probabilities"], card.predict_proba(table), atol=1e-5)


@pytest.mark.parametrize("name", CARDS)
def test_a_model_file_speaks_points(name):
    card = CARDS[name]
    again = read_model(export_model(card, "json").encode())
    assert again.scorecard().sections == card.sections
    for format in ("sql", "python"):
        assert export_model(again, format) == export_model(card, format)
    rows = raw_rows(card.ensemble, 50, float64_values)
    table = table_of(card.ensemble, rows)
    said = model_predictions(again, table)
    assert said.points.tolist() == card.total(table).tolist()
    assert said.predicted.tolist() == card.predict(table).tolist()
    assert (said.probability == card.predict_proba(table)).all()
    assert top_reasons(again, table, 3) == card.reasons(table, 3)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), scaled=st.booleans(), negative=st.booleans())
def test_the_plan_of_a_card_adds_up_to_its_total(seed, scaled, negative):
    card = random_card(seed, scaled, negative)
    plan = Plan.of(card)
    assert plan.intercepts.tolist() == [card.start]
    assert all(source.table.dtype.kind == "i" for source in plan.inputs)
    rows = raw_rows(card.ensemble, 20, float64_values)
    found = run_output(card, rows, "score")
    assert found == totals_of(card, rows).tolist()
    zero, slope = plan.log_odds
    np.testing.assert_allclose(zero + slope * np.array(found), card.log_odds(found), atol=1e-9)

"""Points keep every decision, are those of the card where it has any, and are as small as they can be."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from exported import Compiled, coded, float32_values, random_ensemble, raw_rows, table_of
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.export.c import header
from cardboost.export.c_model import Question, c_model
from cardboost.export.integer_model import IntegerModel
from cardboost.export.plan import Plan
from cardboost.export.points import find_points
from cardboost.model import Ensemble, Term

from drawn_models import drawn_ensembles  # isort: skip


def card(points, unit, intercept, features=None, seed=0):
    """A card with whole points, two cuts on some features."""
    rng = np.random.default_rng(seed)
    count = len(points) if features is None else features
    terms = tuple(
        Term(k % count, 0.5 + k // count, int(rng.choice([-1, 1])), bool(rng.integers(2)), unit * own)
        for k, own in enumerate(points)
    )
    return Ensemble("logistic", intercept, terms, None, count, (0, 1), unit=unit)


def changes(model):
    """What the cuts of a header add, without their signs."""
    return sorted(abs(own.points) for _, part in model.programs for own in part)


@pytest.mark.parametrize("unit", [1.0, 0.5, 0.1, 0.037, 1e-9, 1e12])
@pytest.mark.parametrize("count", [3, 12, 60])
def test_a_card_keeps_its_points(unit, count):
    """However many inputs there are."""
    rng = np.random.default_rng(count)
    points = rng.integers(1, 6, count).tolist()
    for share in (0.3, -1.7, 5.21):
        model = c_model(card(points, unit, share * unit), number="int16", missing=False)
        assert model.points.proven
        assert model.points.width == 8
        assert model.points.value == 2 * unit
        assert changes(model) == sorted(points)
        assert model.points.error <= 2 * unit


def test_large_points_of_a_card_take_more_bits():
    model = c_model(card([1, 900, 3, 70_001], 0.01, 0.003))
    assert model.points.width == 32
    assert set(changes(model)) == {1, 3, 900, 70_001}


@pytest.mark.parametrize(("intercept", "count"), [(0.0, 30), (2.0, 30), (-3.0, 31)])
def test_ties_of_a_card_are_ties(intercept, count):
    """Weights and intercept are small whole numbers: scores of exactly 0 are the first class."""
    ensemble = card([1] * count, 1.0, intercept)
    model = c_model(ensemble, number="int16", missing=False)
    assert model.points.proven
    assert model.points.width == 8
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, size=(2000, count)).astype(np.float64)
    wanted = ensemble.decision_function(rows)
    assert (wanted == 0).any()
    whole = IntegerModel.from_ensemble(ensemble, missing=False)
    assert ((whole.decision_function(whole.encode(rows)) > 0) == (wanted > 0)).all()


def test_ties_that_rounding_decides_are_not_proven():
    """0.1 + ... - 0.1 - ... is not 0 in doubles in every order."""
    ensemble = card([1] * 30, 0.1, 0.0)
    with pytest.raises(ValueError, match="exact=False"):
        c_model(ensemble, number="int16")


@settings(max_examples=60, deadline=None)
@given(drawn_ensembles())
def test_decisions_at_every_combination_of_levels(ensemble):
    plan = Plan.of(ensemble)
    steps = [own.steps() for own in plan.inputs]
    if not plan.decides or math.prod(len(own.levels) + 1 for own in steps) > 5000:
        return
    points = find_points(plan, steps)
    if not points.proven:
        return
    each = [range(len(own.levels) + 1) for own in steps]
    for choice in itertools.product(*each):
        score, total = plan.intercepts[0], points.intercepts[0]
        for k, own, whole in zip(choice, steps, points.steps, strict=True):
            score = score + (own.levels[k, 0] if k < len(own.levels) else own.missing[0])
            total = total + whole.table[k, 0]
        assert (score > 0) == (total > 0)
        assert abs(score - points.value * total) <= points.error


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_cards_of_many_inputs_decide_as_before(seed):
    rng = np.random.default_rng(seed)
    unit = float(rng.choice([1.0, 0.25, 0.1, rng.exponential()]))
    points = rng.integers(1, 20, 25).tolist()
    ensemble = card(points, unit, float(rng.choice([0.0, unit * rng.normal()])), 20, seed)
    model = IntegerModel.from_ensemble(ensemble, exact=False)
    rows = rng.integers(0, 4, size=(500, 20)) / 1.0
    rows[rng.random(rows.shape) < 0.1] = np.nan
    if model.points.proven:
        found = model.decision_function(model.encode(rows)) > 0
        assert (found == (ensemble.decision_function(rows) > 0)).all()


@pytest.mark.long
def test_few_questions_decide_as_the_sum_does(tmp_path):
    """Small models in statements decide without a sum."""
    ensembles = [random_ensemble(seed, terms=1 + seed % 4, features=4) for seed in range(12)]
    ensembles += [
        card([1 + seed % 3, 2, 1][: 1 + seed % 3], 0.5, 0.25 * (seed % 7) - 0.75) for seed in range(8)
    ]
    models = [
        c_model(own, prefix=f"m{k}_{number}", number=number, layout="ifs")
        for number in ("float", "int16")
        for k, own in enumerate(ensembles)
    ]
    asked = [model.questions for model in models]
    assert sum(isinstance(own, Question) for own in asked) > 12
    assert max(own.count for own in asked if isinstance(own, Question)) == 5
    assert any(isinstance(own, bool) for own in asked)
    assert any(own is None for own in asked)
    library = Compiled(models, tmp_path)
    for k, model in enumerate(models):
        ensemble = ensembles[k % len(ensembles)]
        assert library.failures(k) == 0
        rows = raw_rows(ensemble, 1000, float32_values)
        x = coded(ensemble, rows)[:, list(ensemble.features_used)]
        if model.number == "int16":
            x = IntegerModel.from_ensemble(ensemble).encode(x)
        scores, classes, _ = library.run(k, x)
        assert (classes == (scores[:, 0] > 0)).all()
        if model.number == "float":
            assert (classes == (ensemble.decision_function(table_of(ensemble, rows)) > 0)).all()


def test_numbers_that_are_never_missing(tmp_path):
    """Fewer entries, and the same decisions on all rows without missing numbers."""
    ensembles = [random_ensemble(seed) for seed in range(4)]
    models = [
        c_model(own, prefix=f"m{k}_{number}", number=number, missing=False)
        for number in ("float", "int16")
        for k, own in enumerate(ensembles)
    ]
    library = Compiled(models, tmp_path)
    for k, model in enumerate(models):
        ensemble = ensembles[k % len(ensembles)]
        assert library.failures(k) == 0
        assert "missing=False" in header(model)
        full = c_model(ensemble, number=model.number, layout=model.layout)
        assert "missing=False" not in header(full)
        assert len(model.programs[0][1]) < len(full.programs[0][1])
        rows = raw_rows(ensemble, 2000, lambda own, j: float32_values(own, j)[1:])
        x = coded(ensemble, rows)
        if model.number == "int16":
            whole = IntegerModel.from_ensemble(ensemble, missing=False)
            x = whole.encode(x[:, list(ensemble.features_used)])
            found = whole.decision_function(x) > 0
        else:
            x = x[:, list(ensemble.features_used)]
            found = ensemble.decision_function(table_of(ensemble, rows)) > 0
        assert (library.run(k, x)[1] == found).all()

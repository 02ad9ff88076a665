"""Steps along a column: formulas, medians and searches against an independent minimiser."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from cardboost.boosting.steps import adaboost_step, best_step
from cardboost.data.weights import RowWeights
from cardboost.problem.losses import ABSOLUTE, MARGIN_LOSSES, SQUARED, Loss
from cardboost.problem.risk import risk_of


class Huber(Loss):
    """A loss of the residual that the kernels do not know."""

    name = "huber"
    of_residual = True

    def rows(self, F):
        size = np.abs(np.asarray(F, dtype=float))
        return np.where(size <= 1, 0.5 * size * size, size - 0.5)

    def derivative(self, F):
        return np.clip(np.asarray(F, dtype=float), -1, 1)

    def curvature(self, F):
        return (np.abs(np.asarray(F, dtype=float)) <= 1).astype(float)

    def conjugate(self, v):
        v = np.asarray(v, dtype=float)
        return np.where(np.abs(v) <= 1, 0.5 * v * v, np.inf)


@st.composite
def cases(draw, of_residual):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.integers(2, 60))
    kind = draw(st.sampled_from(["signs", "numbers", "inside"]))
    D = {
        "signs": lambda: rng.choice([-1.0, 1.0], rows),
        "numbers": lambda: rng.normal(size=rows),
        "inside": lambda: rng.integers(0, 2, rows).astype(float),
    }[kind]()
    raw = draw(st.sampled_from([None, "counts", "numbers"]))
    weight = None
    if raw is not None:
        weight = rng.integers(1, 5, rows).astype(float) if raw == "counts" else rng.uniform(0.1, 2, rows)
    F = rng.normal(0, draw(st.sampled_from([0.3, 3.0])), rows)
    target = rng.normal(0, 2, rows) if of_residual else None
    return F, D, weight, target


def check(loss, F, D, weight, target):
    weights = RowWeights.make(len(F), weight)
    risk = risk_of(loss, weights, None, 1, target)
    step = best_step(risk, F, D)
    s, at = weights.normalised, 0.0 if target is None else target

    def value(b):
        return loss.value(F + b * D - at, s)

    if not loss.of_residual and loss.name in ("exponential", "logistic") and not (D > 0).any():
        return  # falls for ever
    if not loss.of_residual and loss.name in ("exponential", "logistic") and not (D < 0).any():
        assert step > 0 or not D.any()
        return
    reach = 2 * abs(step) + 10
    grid = np.linspace(step - reach, step + reach, 200)
    other = min(value(b) for b in grid)
    near = minimize_scalar(value, bounds=(step - 1, step + 1), method="bounded").fun
    assert value(step) <= min(other, near) + 1e-12 * (1 + value(0.0))


@pytest.mark.parametrize("name", MARGIN_LOSSES)
@settings(max_examples=40)
@given(data=st.data())
def test_steps_for_margins(name, data):
    check(MARGIN_LOSSES[name], *data.draw(cases(False)))


@pytest.mark.parametrize("loss", [SQUARED, ABSOLUTE, Huber()], ids=lambda loss: loss.name)
@settings(max_examples=40)
@given(data=st.data())
def test_steps_for_residuals(loss, data):
    check(loss, *data.draw(cases(True)))


@given(right=st.integers(1, 2**61), wrong=st.integers(1, 2**61))
def test_the_formula_of_adaboost(right, wrong):
    step = adaboost_step(right, wrong)
    assert step == pytest.approx(0.5 * np.log(right / wrong), abs=1e-13)
    assert adaboost_step(wrong, right) == -step


def test_formula_and_search_agree():
    rng = np.random.default_rng(0)
    F, D = rng.normal(size=500), rng.choice([-1.0, 1.0], 500)
    risk = risk_of(MARGIN_LOSSES["exponential"], RowWeights.make(500, None), None, 1)
    u = np.exp(-F)
    expected = 0.5 * np.log(u[D > 0].sum() / u[D < 0].sum())
    assert best_step(risk, F, D) == pytest.approx(expected, abs=1e-12)


def test_a_median_between_two_rows_is_their_middle():
    F, target = np.zeros(4), np.array([1.0, 2.0, 4.0, 9.0])
    risk = risk_of(ABSOLUTE, RowWeights.make(4, None), None, 1, target)
    assert best_step(risk, F, np.ones(4)) == 3.0
    heavy = risk_of(ABSOLUTE, RowWeights.make(4, np.array([1.0, 1.0, 1.0, 4.0])), None, 1, target)
    assert best_step(heavy, F, np.ones(4)) == 9.0
    assert best_step(risk, F, np.zeros(4)) == 0.0

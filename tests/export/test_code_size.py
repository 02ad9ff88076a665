"""The estimate of bytes is an upper bound, and a close one."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from cross import cross_tool
from exported import fixed_models, random_ensemble, random_multiclass, stumps

from cardboost.export.c_model import c_model
from cardboost.export.code_size import c_size
from cardboost.model import Ensemble, Term
from marks import first

STYLES = ("small", "whole", "tenths", "sixteenths")
ROOM = 4  # bytes that the compiler may need more


def drawn(seed: int, style: str) -> Ensemble:
    """Cards of one to forty terms."""
    rng = np.random.default_rng([seed, STYLES.index(style)])
    count = int(rng.choice([1, 2, 3, 4, 5, 7, 10, 15, 25, 40]))
    features = int(rng.integers(1, count + 1))
    one_sign, one_side, has_unit = rng.random(3) < (0.3, 0.5, 0.7)
    terms = []
    for _ in range(count):
        cut = {
            "small": float(rng.integers(0, 250)),
            "whole": float(rng.integers(0, 3000)),
            "tenths": float(np.round(10 * rng.normal(), 1)),
            "sixteenths": float(rng.integers(-20000, 20000)) / 16,
        }[style]
        polarity = 1 if one_sign else int(rng.choice([-1, 1]))
        weight = 0.25 * float(rng.integers(1, 12)) if has_unit else float(rng.exponential()) + 0.05
        terms.append(
            Term(int(rng.integers(features)), cut, polarity, bool(one_side or rng.integers(2)), weight)
        )
    start = float(rng.normal()) / 2 + 0.01
    unit = 0.25 if has_unit else None
    return Ensemble("logistic", start, tuple(terms), None, features, (0, 1), unit=unit)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("seed", first(1, range(2)))
def test_the_estimate_is_an_upper_bound(style, seed):
    check_estimates(style, "auto", [seed])


@pytest.mark.long
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("layout", ["auto", "table", "ifs"])
def test_the_estimate_of_every_layout(style, layout):
    check_estimates(style, layout, range(2, 8))


def check_estimates(style, layout, seeds):
    cross_tool("arm-none-eabi-gcc")
    for seed in seeds:
        ensemble = drawn(seed, style)
        for options in ({"missing": False}, {}):
            options |= {"layout": layout, "exact": False}
            model = c_model(ensemble, number="int16", **options)
            found, truth = c_size(ensemble, **options), c_size(ensemble, compiled=True, **options)
            assert found >= truth - ROOM, (seed, options)
            if model.layout == "table" and len(model.programs[0][1]) >= 4:
                assert found <= 1.1 * truth, (seed, options)


@pytest.mark.long
def test_the_estimate_of_other_headers():
    cross_tool("arm-none-eabi-gcc")
    models = [random_ensemble(seed, terms) for seed, terms in enumerate((3, 6, 12, 25, 60))]
    models += [random_multiclass(seed, classes) for seed, classes in enumerate((3, 4, 5))]
    for ensemble in models:
        for number in ("float", "int16"):
            for layout in ("table", "ifs"):
                options = {"number": number, "layout": layout, "exact": False, "score": "points"}
                found, truth = c_size(ensemble, **options), c_size(ensemble, compiled=True, **options)
                assert found >= truth - ROOM, options


def test_budgets():
    card = stumps(*((k, 10.0 * k + 0.5, 1.0 + k / 8) for k in range(10)), intercept=0.1)
    assert 60 <= c_size(card, missing=False) <= 70
    assert c_size(card, missing=False) < c_size(card) < c_size(card, number="float")
    assert c_size(stumps(intercept=1.0)) <= 20
    with pytest.raises(ValueError, match="no estimate for scores that are doubles"):
        c_size(fixed_models()["regression"], number="float")
    with pytest.raises(ValueError, match="compiled: expected True or False"):
        c_size(card, compiled=1)


def test_a_compiler_that_is_not_there(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match="arm-none-eabi-gcc is not installed"):
        c_size(stumps((0, 0.5, 1.0)), compiled=True)

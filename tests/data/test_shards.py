"""Rows in two parts give the bits of rows in one part: sums of whole numbers, maxima, and entries per row."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardboost import _kernels
from cardboost.data.binning import BinnedMatrix
from cardboost.data.shards import Shards, take
from cardboost.data.weights import RowWeights
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.master.newton import Master
from cardboost.problem.losses import LOSSES, SQUARED
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk, PlainRisk


@st.composite
def settings(draw):
    """Rows with weights of every kind, in one part and in two."""
    seed, m = draw(st.integers(0, 10_000)), draw(st.integers(2, 60))
    rng, cut = np.random.default_rng(seed), draw(st.integers(1, m - 1))
    kind = draw(st.sampled_from(["none", "counts", "real", "both"]))
    weights = {
        "none": None,
        "counts": rng.integers(1, 5, m).astype(float),
        "real": rng.lognormal(sigma=3.0, size=m),
        "both": rng.integers(1, 5, m).astype(float),
    }[kind]
    factor = rng.random(m) + 0.5 if kind == "both" else None
    one, two = (
        RowWeights.make(m, weights, factor, shards)
        for shards in (Shards.in_memory(m), Shards.in_memory(m, cut))
    )
    return rng, one, two


def in_parts(matrix: BinnedMatrix, shards: Shards) -> BinnedMatrix:
    """A matrix that reads its rows in these parts."""
    matrix.__dict__["shards"] = shards
    return matrix


def test_parts_hold_every_row_once():
    shards = Shards.in_memory(10, 3, 7)
    assert shards.parts == (slice(0, 3), slice(3, 7), slice(7, 10))
    rows = np.arange(10)
    np.testing.assert_array_equal(shards.rows(lambda part: rows[part]), rows)
    assert shards.map(lambda part: len(rows[part])) == [3, 4, 3]


def test_one_part_copies_nothing():
    bins = np.zeros((3, 8), dtype=np.uint8)
    (part,) = Shards.in_memory(8).parts
    assert np.shares_memory(take(bins, part), bins)
    assert take(None, part) is None
    assert take(bins, slice(2, 5)).flags.c_contiguous


@given(settings())
def test_weighted_sums_have_the_same_bits(setting):
    rng, one, two = setting
    assert one.totals == two.totals
    assert one.unit == two.unit
    values, group = rng.normal(size=one.n_rows) * 10.0 ** rng.integers(-8, 8), rng.integers(0, 3, one.n_rows)
    assert one.mean(values) == two.mean(values)
    assert one.mean_and_deviation(values) == two.mean_and_deviation(values)
    assert one.share(values > 0) == two.share(values > 0)
    for sums in ("sums", "group_sums"):
        expected = getattr(one, sums)(values, group, 3)
        assert getattr(two, sums)(values, group, 3).tobytes() == expected.tobytes()
    assert one.sums(values).tobytes() == two.sums(values).tobytes()


@given(settings())
def test_row_weights_and_histograms_have_the_same_bits(setting):
    rng, one, two = setting
    m = one.n_rows
    sign = np.where(rng.random(m) < 0.5, 1, -1).astype(np.int8)
    risk = EmpiricalRisk(LOSSES["logistic"], one, sign)
    point = risk.evaluate(rng.normal(size=m))
    scales = np.array([2.0**40, 2.0**41]) / two.total_count
    largest = np.array([point.largest, point.largest_curvature])
    lanes = two.quantise(point.rows, scales, largest, sign, 1)
    np.testing.assert_array_equal(lanes, one.quantise(point.rows, scales, largest, sign, 1))

    bins, features = rng.integers(0, 5, (3, m)).astype(np.uint8), np.arange(3, dtype=np.int32)
    matrix = in_parts(
        BinnedMatrix(bins, (np.arange(4.0),) * 3, np.zeros(3, np.int64), (None,) * 3), two.shards
    )
    histograms = matrix.histograms(features, lanes, 1)
    np.testing.assert_array_equal(histograms, _kernels.histograms(bins, features, lanes, 1))
    assert histograms.dtype == np.int64
    tables = rng.normal(size=(3, 256))
    margins = matrix.margins(features, tables, 0.5, sign, 1)
    np.testing.assert_array_equal(margins, _kernels.margins(bins, features, tables, 0.5, sign, 1))
    np.testing.assert_array_equal(matrix.row_hashes(1), _kernels.hash_bins(bins, features, 1))


@given(settings())
def test_stumps_have_the_same_bits(setting):
    """The search of a dictionary, and the scores and edges of its pool, with bins in one part and in two."""
    rng, weights, divided = setting
    m = weights.n_rows
    sign = np.where(rng.random(m) < 0.5, 1, -1).astype(np.int8)
    bins = rng.integers(0, 5, (3, m)).astype(np.uint8)
    point = EmpiricalRisk(LOSSES["logistic"], weights, sign).evaluate(rng.normal(size=m))
    results = []
    for shards in (weights.shards, divided.shards):
        matrix = BinnedMatrix(bins, (np.arange(4.0),) * 3, np.zeros(3, np.int64), (None,) * 3)
        dictionary = StumpDictionary(in_parts(matrix, shards), sign)
        pool = dictionary.pool()
        proposals = dictionary.best_columns(point, 3, pool)
        pool.append(proposals.atoms)
        margins = pool.margins(np.linspace(0.1, 1.0, pool.n_columns))
        results.append([proposals.edges, np.float64(proposals.bound), margins, pool.edges(point)])
    for one, two in zip(*results, strict=True):
        assert one.tobytes() == two.tobytes()


def risks(setting, loss, kind=EmpiricalRisk):
    """The same risk over rows in one part and in two, with margins and a direction of any size."""
    rng, *divisions = setting
    m, size = divisions[0].n_rows, 10.0 ** rng.integers(-3, 4)
    F, D = rng.normal(size=(2, m)) * [[size], [1.0]]
    if loss.of_residual:
        data = {"sign": None, "target": size * rng.standard_t(2, size=m)}
    else:
        data = {"sign": np.where(rng.random(m) < 0.5, 1, -1).astype(np.int8)}
    return F, D, [kind(loss, weights, **data) for weights in divisions]


@pytest.mark.parametrize("kind", [EmpiricalRisk, PlainRisk])
@pytest.mark.parametrize("loss", [*LOSSES.values(), SQUARED], ids=lambda loss: loss.name)
@given(settings())
def test_risks_have_the_same_bits(loss, kind, setting):
    F, D, (one, two) = risks(setting, loss, kind)
    if kind is PlainRisk:
        F = np.clip(F, -100.0, 100.0)
    point, divided = one.evaluate(F), two.evaluate(F)
    for name in ("value", "factor", "derivative_sum", "curvature_sum", "largest"):
        assert getattr(point, name) == getattr(divided, name), name
    assert point.rows.tobytes() == divided.rows.tobytes()
    assert [point.dual(), point.dual(0.3)] == [divided.dual(), divided.dual(0.3)]
    assert one.along(F, D, 0.5) == two.along(F, D, 0.5)
    np.testing.assert_array_equal(point.fixed.lanes, divided.fixed.lanes)


@given(settings())
@hypothesis.settings(max_examples=20)
def test_optimal_weights_of_stumps_have_the_same_bits(setting):
    """Newton steps on all stumps of a table, with rows in one part and in two."""
    rng, *divisions = setting
    m = divisions[0].n_rows
    sign = np.where(rng.random(m) < 0.5, 1, -1).astype(np.int8)
    bins = rng.integers(0, 5, (3, m)).astype(np.uint8)
    solutions = []
    for weights in divisions:
        matrix = BinnedMatrix(bins, (np.arange(4.0),) * 3, np.zeros(3, np.int64), (None,) * 3)
        dictionary = StumpDictionary(in_parts(matrix, weights.shards), sign)
        pool, risk = dictionary.pool(), EmpiricalRisk(LOSSES["logistic"], weights, sign)
        pool.append(dictionary.best_columns(risk.evaluate(np.zeros(m)), 6, pool).atoms)
        rule = PriceRule(1e-4, 1e-2, max_weight=5.0)
        master = Master(pool, risk, lambda pool: rule.prices(pool.n_columns, pool.n_free))  # noqa: B023
        solution = master.solve()
        solutions.append((solution.weights.tobytes(), solution.objective, solution.lower_bound))
    assert solutions[0] == solutions[1]

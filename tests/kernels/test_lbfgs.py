"""Quasi-Newton steps agree with their twin on every kind of matrix, in one call or in many."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cardboost import _kernels
from cardboost.data.weights import RowWeights

CAPACITY = 4


class Run:
    """A state of its own, advanced by ``call``."""

    def __init__(self, A, loss, weight, l1, l2, limit, z, threads=1):
        rows, n = A.shape
        w = RowWeights.make(rows, weight)
        self.z, self.F, self.edges = z.copy(), np.zeros(rows), np.zeros(n)
        pairs, numbers, counts = np.empty((2, CAPACITY, n)), np.zeros(2), np.zeros(4, np.int64)
        self.before = loss, w.count, w.factor, w.totals, l1, l2, limit
        self.state, self.threads = (self.z, self.F, self.edges, pairs, numbers, counts), threads
        if set(np.unique(A)) <= {-1.0, 1.0}:
            words = reference.sign_words(A), reference.sign_words(A.T)
            self.kernel, self.matrix = _kernels.lbfgs_signs, words
        else:
            small = set(np.unique(A)) <= {-1.0, 0.0, 1.0}
            self.kernel = _kernels.lbfgs_dense
            columns = np.ascontiguousarray(A.T, dtype=np.int8 if small else np.float64)
            self.matrix = columns, False, float(np.abs(A).max())

    def call(self, most, tolerance=0.0):
        end, points, records = self.kernel(
            *self.matrix, *self.before, *self.state, tolerance, most, self.threads
        )
        return end, records[:points]


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows, n = draw(st.integers(1, 140)), draw(st.integers(1, 140))
    kind = draw(st.sampled_from(["signs", "ternary", "reals"]))
    A = rng.normal(size=(rows, n)) if kind == "reals" else rng.choice([-1.0, 1.0], (rows, n))
    if kind == "ternary":
        A[rng.random((rows, n)) < 0.3] = 0.0
    l1, l2 = rng.uniform(0.001, 0.05, (2, n)), rng.uniform(0.01, 0.2, (2, n))
    limit = rng.choice([0.0, 0.2, np.inf], (2, n), p=[0.2, 0.2, 0.6])
    l2[(limit == 0) & (rng.random((2, n)) < 0.5)] = 0.0  # sides that do not exist
    weights = [None, rng.integers(1, 4, rows).astype(float), rng.uniform(0.1, 2, rows)]
    z = np.clip(rng.normal(0, 0.3, n) * rng.choice([0, 1], n), -limit[1], limit[0])
    return A, draw(st.integers(0, 1)), weights[draw(st.integers(0, 2))], l1, l2, limit, z


@given(problems())
@settings(max_examples=60)
def test_products_and_record_of_the_start(problem):
    A, loss, weight, l1, l2, limit, z = problem
    run = Run(*problem)
    _, records = run.call(1)
    weight = np.ones(len(A)) if weight is None else weight
    value, _, F, edges = reference.lbfgs_steps(A, loss, weight, l1, l2, limit, z, 1, CAPACITY)[0]
    np.testing.assert_array_equal(run.z, z)
    np.testing.assert_allclose(run.F, F, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.edges, edges, rtol=1e-9, atol=1e-12 * np.exp(-min(0, F.min())))
    largest = np.where(l2 > 0, [edges, -edges], -np.inf).max()
    assert records[0, :3] == pytest.approx([value, largest, np.count_nonzero(z)], rel=1e-9, abs=1e-10)
    assert records[0, 3] >= 0


@given(problems())
@settings(max_examples=60)
def test_steps_agree_with_the_twin(problem):
    """While they still gain much: near the optimum rounding decides about a step."""
    A, loss, weight, l1, l2, limit, z = problem
    weight = np.ones(len(A)) if weight is None else weight
    twin = reference.lbfgs_steps(A, loss, weight, l1, l2, limit, z, 8, CAPACITY)
    run = Run(*problem)
    for before, (value, expected, _, _) in zip([None, *twin], twin, strict=False):
        if before is not None and before[0] - value < 1e-5 * value:
            break
        _, records = run.call(1)
        assert records[0, 0] == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(run.z, expected, rtol=1e-4, atol=1e-4)


@given(problems(), st.integers(1, 12))
@settings(max_examples=60)
def test_calls_and_threads_do_not_show(problem, most):
    whole = Run(*problem)
    end, records = whole.call(most)
    for threads in (1, 2, 7):
        parts, points = Run(*problem, threads=threads), []
        while len(points) < most:
            part_end, record = parts.call(1)
            points.extend(record.tolist())
            if part_end:
                break
        assert part_end == end
        np.testing.assert_array_equal(np.array(points)[:, :3], records[:, :3])
        np.testing.assert_array_equal(parts.z, whole.z)
        np.testing.assert_array_equal(parts.F, whole.F)


@given(problems())
@settings(max_examples=60)
def test_the_end_is_an_optimum(problem):
    *_, l1, l2, limit, _ = problem
    run = Run(*problem)
    end = 0
    for _ in range(300):
        end, _ = run.call(50, 1e-10)
        if end:
            break
    assert end in (1, 2)
    assert (run.z <= limit[0]).all()
    assert (-run.z <= limit[1]).all()
    rise, fall = l1[0] + l2[0] * run.z - run.edges, l1[1] - l2[1] * run.z + run.edges
    for slope, size, box in ((rise, run.z, limit[0]), (fall, -run.z, limit[1])):
        inside = size >= 0
        assert (slope[inside & (size < box)] > -1e-3).all()
        assert (slope[inside & (size > 0)] < 1e-3).all()


def test_nothing_moves_without_room():
    A, n = np.ones((5, 3)), 3
    run = Run(A, 0, None, np.zeros((2, n)), np.zeros((2, n)), np.zeros((2, n)), np.zeros(n))
    assert run.call(5)[0] in (1, 2)
    assert not run.z.any()

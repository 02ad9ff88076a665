"""Nets that decay has shrunk: none of next to nothing is taken, and the weights of small ones are exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from cardboost import NeuralBoostClassifier
from cardboost.boosting.neural import AllGammas
from cardboost.problem.vector_losses import CrossEntropy, SquaredOutputs


@pytest.mark.parametrize("refit", ["last", "all"])
@pytest.mark.parametrize("l2", [0.03, 0.1])
def test_decay_that_leaves_nothing_ends_the_rounds(refit, l2):
    X, y = load_iris(return_X_y=True)
    model = NeuralBoostClassifier(
        loss="squared", refit=refit, l2=l2, max_iter=20, early_stopping=False, random_state=0, n_jobs=1
    ).fit(X, y)
    assert 2 <= model.n_iter_ < 20
    assert model.n_iter_ == len(model.ensemble_.nets) == len(model.loss_curve_)
    if refit == "last":
        assert max(abs(net.gamma) for net in model.ensemble_.nets) < 1e6
        losses = np.array(model.loss_curve_)
        assert np.all(losses[1:] <= losses[:-1] * (1 - 1e-6))


@given(st.integers(0, 10**6), st.floats(-9.0, 9.0))
def test_weights_of_nets_of_any_size_are_least_squares(seed, power):
    rng = np.random.default_rng(seed)
    rows, m, k = 30, 2, 4
    y, s = rng.normal(size=(rows, m)), np.full(rows, 1 / rows)
    outputs = rng.normal(size=(k, rows, m))
    outputs[-1] *= 10.0**power
    together = AllGammas(SquaredOutputs(), y, s, k)
    for own in outputs:
        together.add(own)
    weights = together.solve(np.zeros(m + k))
    A = np.hstack([np.tile(np.eye(m), (rows, 1)), outputs.reshape(k, -1).T])
    size = np.sqrt(np.sum(A * A, axis=0))
    best = np.linalg.lstsq(A / size, y.ravel(), rcond=None)[0]
    assert weights * size == pytest.approx(best, rel=1e-6, abs=1e-7)


def test_without_curvature_the_weights_stay():
    y = np.repeat(np.eye(3), 4, axis=0)
    together = AllGammas(CrossEntropy(), y, np.full(12, 1 / 12), 1)
    together.add(4000.0 * y)
    weights = np.array([0.0, 0.0, 0.0, 1.0])
    assert np.array_equal(together.solve(weights), weights)

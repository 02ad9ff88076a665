"""Boosted networks on Iris: what the folds say together, and with which models."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import RepeatedStratifiedKFold

from cardboost import NeuralBoostClassifier
from cardboost.reproduce import neural
from cardboost.reproduce.neural import (
    CURVES,
    DEFAULT,
    PEERS,
    FoldSettings,
    goal_of,
    mean_curve,
    models,
    run,
    score_of,
)

SMALL = FoldSettings(repeats=2, folds=2, nets=3)


def quick_models(seed):
    """The same models, quicker: small trees, and a network whose size is given."""
    found = dict(models(seed))
    found[DEFAULT] = NeuralBoostClassifier(max_iter=2, l2=0.03, early_stopping=False, random_state=seed)
    found["GradientBoostingClassifier"].set_params(n_estimators=3)
    return found


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neural, "models", quick_models)
        return run(SMALL, jobs=1)


def splits():
    X, y = load_iris(return_X_y=True)
    folds = RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0).split(X, y)
    return [(X[a], y[a], X[b], y[b]) for a, b in folds]


@pytest.mark.parametrize("name", [DEFAULT, *PEERS])
def test_scores_are_those_of_the_models_on_the_same_folds(found, name):
    right = [
        clone(quick_models(k)[name]).fit(X, y).score(held, labels)
        for k, (X, y, held, labels) in enumerate(splits())
    ]
    own = score_of(found, name)
    assert own["folds"] == pytest.approx(right)
    assert own["mean"] == pytest.approx(np.mean(right))
    assert own["error"] == pytest.approx(np.sqrt(np.var(right, ddof=1) / 4))
    ahead = np.array(score_of(found, DEFAULT)["folds"]) - right
    assert own["default_ahead"] == pytest.approx(ahead.mean())
    assert own["ahead_error"] == pytest.approx(np.sqrt(np.var(ahead, ddof=1) / 4))


@pytest.mark.parametrize("name", list(CURVES))
def test_a_curve_after_k_nets_is_the_model_of_k_nets(found, name):
    """Nets come one after the other: a fit that is told to stop after k is the beginning of a longer one."""
    curve = next(own for own in found["curves"] if own["name"] == name)
    loss, refit = CURVES[name]
    for nets in (1, 3):
        fits = [
            (
                NeuralBoostClassifier(
                    loss=loss, refit=refit, max_iter=nets, l2=SMALL.l2, early_stopping=False,
                    random_state=k,
                ).fit(X, y),
                held, labels,
            )
            for k, (X, y, held, labels) in enumerate(splits())
        ]  # fmt: skip
        right = [model.score(held, labels) for model, held, labels in fits]
        assert curve["accuracy"][nets - 1] == pytest.approx(np.mean(right))
        assert curve["training"][nets - 1] == pytest.approx(
            np.mean([own.loss_curve_[-1] for own, *_ in fits])
        )
    assert score_of(found, name)["mean"] == pytest.approx(curve["accuracy"][-1])


def test_fits_that_end_early_stay_where_they_are():
    own = mean_curve(
        "squared, last",
        [
            {"loss": [3.0, 1.0], "accuracy": [0.5, 0.7]},
            {"loss": [3.0, 2.0, 1.0], "accuracy": [0.5] * 3},
        ],
        3,
    )
    assert own["training"] == [3.0, 1.5, 1.0]
    assert own["accuracy"] == pytest.approx([0.5, 0.6, 0.6])
    assert own["ended_early"] == 1


def test_models_have_their_defaults():
    found = models(5)
    assert list(found) == [DEFAULT, *PEERS]
    given = {"random_state": 5, "n_jobs": 1, "solver": "lbfgs"}
    for own in found.values():
        inner = own[-1] if hasattr(own, "steps") else own
        defaults = type(inner)().get_params()
        for name, value in inner.get_params().items():
            assert value == (given[name] if value != defaults[name] else defaults[name])
    assert [hasattr(own, "steps") for own in found.values()] == [False, True, True, False]


def test_sizes_count_every_fold_once(found):
    assert sum(size["folds"] for size in found["sizes"]) == 4
    assert all(size["nets"] in (1, 2) and size["l2"] == 0.03 for size in found["sizes"])


def test_check_points_are_about_every_fit(found):
    assert found["holds"]
    assert [check["letter"] for check in found["checks"]] == ["a", "b", "c"]
    assert found["checks"][0]["numbers"]["fits"] == 5
    assert found["rows"] == 150


@pytest.mark.parametrize(("mean", "met"), [(0.9476, True), (0.9474, False), (0.99, True)])
def test_the_goal_is_half_a_standard_error_below_the_best(mean, met):
    means = dict(zip((DEFAULT, *PEERS), (mean, 0.93, 0.95, 0.94), strict=True))
    goal = goal_of([{"name": name, "mean": own, "error": 0.005} for name, own in means.items()])
    assert goal["best"] == PEERS[1]
    assert goal["needed"] == pytest.approx(0.9475)
    assert (goal["reached"] >= goal["needed"]) == met


def test_progress_is_told_after_every_repeat(monkeypatch):
    monkeypatch.setattr(neural, "models", quick_models)
    said = []
    run(FoldSettings(repeats=2, folds=2, nets=1), say=said.append, jobs=1)
    assert said == ["2 of 4 folds", "4 of 4 folds"]


@pytest.mark.long
def test_processes_change_nothing():
    small = FoldSettings(repeats=1, folds=3, nets=3)
    assert run(small, jobs=1) == run(small, jobs=2)

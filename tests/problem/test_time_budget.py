"""The budget: what its stages and parts get, and that without a limit the clock decides nothing."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardboost import CardBoostClassifier
from cardboost.problem import budget
from cardboost.problem.budget import Budget, Stage


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is moved."""
    now = [100.0]
    still = SimpleNamespace(perf_counter=lambda: now[0], time=lambda: 1e9 + now[0])
    monkeypatch.setattr(budget, "time", still)
    return now


def test_every_stage_has_a_share_and_they_come_in_order():
    assert all(0.0 < stage.share <= 1.0 for stage in Stage)
    for order in (
        (
            Stage.HOT_START,
            Stage.RESELECTION,
            Stage.LOCAL_SEARCH,
            Stage.SELECTION,
            Stage.DICTIONARY,
            Stage.ALL,
        ),
        (Stage.CANDIDATES, Stage.CANDIDATE_WEIGHTS, Stage.FEATURE_SEARCH, Stage.LOCAL_SEARCH),
        (Stage.FIRST_CHOICE, Stage.FIRST_NODES, Stage.CHOICE, Stage.TABU, Stage.RELAXATION),
        (Stage.RELAXATION, Stage.SEARCH_BEGINS, Stage.SEARCH, Stage.LEAVES, Stage.ALL),
        (Stage.COLUMNS, Stage.WEIGHTS, Stage.ALL),
        (Stage.ALL_ROWS, Stage.FOLDS, Stage.PROOFS, Stage.ALL),
    ):
        shares = [stage.share for stage in order]
        assert shares == sorted(set(shares))


@pytest.mark.parametrize("stage", Stage)
def test_a_stage_ends_at_its_share(clock, stage):
    mine = Budget(10.0, started=clock[0])
    clock[0] += 0.999 * mine.share(stage)
    assert not mine.late(stage)
    assert not mine.end_of(stage)()
    clock[0] = mine.started + mine.share(stage)
    assert mine.late(stage)
    assert mine.up(stage)
    assert mine.end_of(stage)()
    assert mine.within(stage).late()


def test_a_wish_to_stop_is_late_but_not_out_of_time(clock):
    mine = Budget(10.0, lambda: True, started=clock[0])
    assert mine.late(Stage.LOCAL_SEARCH)
    assert not mine.up(Stage.LOCAL_SEARCH)
    assert mine.part(0, 3).late()
    assert mine.within(Stage.SELECTION).late()


@given(seconds=st.floats(1e-6, 1e6), n=st.integers(1, 20), used=st.lists(st.floats(0.0, 1.5), min_size=20))
def test_parts_never_reach_beyond_the_whole(seconds, n, used):
    """Work that takes any share of its part, or more, leaves the others what there is."""
    with pytest.MonkeyPatch.context() as patch:
        now = [0.0]
        patch.setattr(budget, "clock", lambda: now[0])
        whole = Budget(seconds, started=0.0)
        for k in range(n):
            part = whole.part(k, n)
            assert part.started + part.seconds <= max(now[0], seconds) * (1 + 1e-12)
            inner = part.within(Stage.SELECTION)
            assert inner.started + inner.seconds <= max(now[0], part.started + part.seconds) * (1 + 1e-12)
            now[0] += used[k] * part.seconds
        if all(own <= 1.0 for own in used[:n]):
            assert now[0] <= seconds * (1 + 1e-9)


def test_a_deadline_holds_in_other_processes(clock):
    assert Budget().deadline == math.inf
    assert Budget.before(math.inf).seconds == math.inf
    late = Budget(5.0, started=clock[0] - 10.0)
    assert Budget.before(late.deadline).seconds == 0.0
    assert Budget.before(Budget(5.0, started=clock[0]).deadline).seconds == pytest.approx(5.0, abs=1e-6)


def test_the_smaller_limit_holds(clock):
    assert Budget(5.0).at_most(3.0).seconds == 3.0
    assert Budget(5.0).at_most(None).seconds == Budget(5.0).at_most(9.0).seconds == 5.0
    assert Budget.of(None).at_most(2.0).limited


@pytest.mark.parametrize("parameters", [{}, {"max_terms": None}, {"reselect": True, "hot_start": 5}])
def test_without_a_limit_the_clock_decides_nothing(monkeypatch, parameters):
    """A clock that jumps by days, back and forth, gives the same model and certificate."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=200) > 0.5
    model = CardBoostClassifier(l2=0.01, max_iter=20, max_nodes=200, n_jobs=1).set_params(**parameters)
    expected = model.fit(X, y)
    jumps = itertools.cycle([0.0, 1e6, -1e6, 3e5])
    monkeypatch.setattr(budget, "time", SimpleNamespace(perf_counter=lambda: next(jumps)))
    found = CardBoostClassifier(**model.get_params()).fit(X, y)
    assert found.certificate_.content == expected.certificate_.content
    assert found.ensemble_ == expected.ensemble_

"""Each rule on curves where the right answer can be seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardboost.pareto.front import ParetoFront, SizePoint
from cardboost.pareto.picking import RATES, ScoredSizes, standard_error


def front_of(means, spread=0.0, sizes=None, recalls=None):
    """A front whose scores have these means, and plus and minus ``spread`` in two folds."""
    sizes = range(1, len(means) + 1) if sizes is None else sizes
    points = []
    for k, (size, mean) in enumerate(zip(sizes, means, strict=True)):
        curves = None if recalls is None else (recalls[k], recalls[k])
        points.append(SizePoint(size, (mean - spread, mean + spread), curves, f"model {size}", (), ()))
    return ParetoFront(tuple(points), "made up", 2)


CURVE = (0.50, 0.70, 0.76, 0.78, 0.79, 0.785)


def test_best_is_the_highest_mean_and_of_equals_the_smallest():
    assert front_of(CURVE).pick("best") == "model 5"
    assert front_of((0.5, 0.75, 0.75)).pick("best") == "model 2"


def test_one_standard_error():
    # two folds at mean -+ s have the standard error s
    assert standard_error((0.79 - 0.015, 0.79 + 0.015)) == pytest.approx(0.015)
    assert front_of(CURVE, 0.015).pick("1se") == "model 4"
    assert front_of(CURVE, 0.04).pick("1se") == "model 3"
    assert front_of(CURVE, 0.0).pick("1se") == "model 5"
    assert front_of(CURVE, 0.04).pick() == "model 3"


def test_the_knee():
    assert front_of(CURVE).pick("knee") == "model 2"
    assert front_of((0.0, 0.1, 0.2, 0.9, 1.0)).pick("knee") == "model 4"
    assert front_of((0.9, 0.8, 0.7)).pick("knee") == "model 1"
    # sizes are as far apart as they are, not as many as there are
    assert front_of((0.0, 0.5, 1.0), sizes=(1, 2, 21)).pick("knee") == "model 2"


def test_at_most_so_many_terms():
    front = front_of(CURVE, 0.03)
    assert front.pick(max_terms=3) == "model 3"
    assert front.pick(max_terms=100) == "model 5"
    assert front.pick("1se", max_terms=4) == "model 3"
    assert front_of((0.5, 0.4), sizes=(2, 8)).pick(max_terms=5) == "model 2"


def test_at_least_so_high_a_score():
    front = front_of(CURVE)
    assert front.pick(min_score=0.7) == "model 2"
    assert front.pick(min_score=0.7000001) == "model 3"
    assert front.pick(min_score=-5) == "model 1"
    assert front.pick(min_score=0.79, max_terms=5) == "model 5"


def test_recall_at_a_rate_of_false_alarms():
    """The order of the sizes is another one at 5 % than at 50 %."""
    at = {rate: k for k, rate in enumerate(RATES)}
    curves = []
    for low, high in ((0.2, 0.9), (0.6, 0.8), (0.6, 0.95)):
        curve = np.full(len(RATES), low)
        curve[at[0.5] :] = high
        curves.append(tuple(curve))
    front = front_of((0.1, 0.2, 0.3), recalls=curves)
    assert front.pick(recall_at_fpr=0.05) == "model 2"
    assert front.pick("best", recall_at_fpr=0.5) == "model 3"
    assert front.pick(recall_at_fpr=0.4999) == "model 2"  # the largest rate that is not above it
    assert front.pick(recall_at_fpr=1) == "model 3"
    assert front.pick(recall_at_fpr=0.5, max_terms=1) == "model 1"
    assert front.pick(min_score=0.5, recall_at_fpr=0.01) == "model 2"


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (("2se",), {}, "rule must be one of '1se', 'knee', 'best'; got '2se'"),
        (("1se",), {"min_score": 0.1}, "min_score takes the place of a rule; got both, rule='1se'"),
        ((), {"max_terms": 0}, "max_terms must be a whole number of at least 1; got 0"),
        ((), {"max_terms": 1.5}, "max_terms must be a whole number of at least 1; got 1.5"),
        ((), {"min_score": 0.9}, "min_score=0.9: no size reaches it; the best mean is 0.79, with 5 terms"),
        ((), {"min_score": "high"}, "min_score must be a number; got 'high'"),
        ((), {"min_score": float("nan")}, "min_score must be a number; got nan"),
        ((), {"recall_at_fpr": 1.5}, "recall_at_fpr must be a number from 0 to 1; got 1.5"),
        ((), {"recall_at_fpr": True}, "recall_at_fpr must be a number from 0 to 1; got True"),
        ((), {"recall_at_fpr": 0.1}, "recall_at_fpr is for two classes"),
    ],
)
def test_what_cannot_be_picked(words, options, message):
    with pytest.raises(ValueError) as caught:
        front_of(CURVE).pick(*words, **options)
    assert message in str(caught.value)


def test_sizes_that_are_not_there():
    front = front_of(CURVE[:2], sizes=(3, 7))
    with pytest.raises(ValueError, match="max_terms=2: the smallest size of this front is 3"):
        front.pick(max_terms=2)
    with pytest.raises(ValueError, match=r"size must be one of \[3, 7\]; got 5"):
        front.at(5)
    assert front.at(7).size == 7


@given(st.lists(st.lists(st.floats(-5, 5), min_size=3, max_size=3), min_size=1, max_size=8))
def test_no_rule_picks_more_than_the_best_or_less_than_it_promises(scores):
    known = ScoredSizes(tuple(range(1, len(scores) + 1)), np.array(scores))
    best, means = known.best(), known.means
    assert means[best] == means.max()
    assert known.knee() <= best
    close = known.within_one_error()
    assert close <= best
    assert means[close] >= means[best] - known.errors[best]
    assert all(means[k] < means[best] - known.errors[best] for k in range(close))


def test_one_fold_has_no_standard_error():
    point = SizePoint(1, (0.5,), None, "model", (), ())
    assert point.standard_error is None
    assert ParetoFront((point,), "made up", 5, "interrupted").pick() == "model"

"""Gains, frontiers and counts: cases worked out by hand, the paper's own numbers, and brute force."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardboost.reproduce.totalqboost import Point
from cardboost.reproduce.totalqboost_gains import (
    TABLE_1,
    WITH_SIZES,
    WORSE,
    SplitResult,
    clearly_positive,
    equal_differences,
    error_differences,
    frontier,
    generalisation_gain,
    law_d,
    law_e,
    law_f,
    least_error,
    matched_sparsity,
    mean_of,
    representatives,
    single_difference,
    sparsest,
    sparsity_gain,
    summarise,
    table_entries,
    worse_count,
)


def at(experiment, terms, error, risk=0.5, train=0.1, proved=True, columns=None):
    return Point(experiment, 0.01, columns or terms, terms, risk, risk, train, error, proved, risk, 1)


POINTS = st.lists(
    st.builds(
        lambda experiment, terms, error, train: at(experiment, terms, error / 20, train=train / 20),
        st.sampled_from("ABCDE"), st.integers(1, 12), st.integers(0, 20), st.integers(0, 20),
    ),
    min_size=1, max_size=30,
)  # fmt: skip


@given(POINTS)
def test_frontiers_against_brute_force(points):
    chosen = representatives(points)
    assert [own.terms for own in chosen] == sorted({own.terms for own in points})
    for own in chosen:
        assert own.validation_error == min(p.validation_error for p in points if p.terms == own.terms)
    best = {
        (p.terms, p.validation_error)
        for p in points
        if not any(
            (o.terms <= p.terms and o.validation_error < p.validation_error)
            or (o.terms < p.terms and o.validation_error <= p.validation_error)
            for o in points
        )
    }
    assert {(own.terms, own.validation_error) for own in frontier(points)} == best


@given(POINTS)
def test_gains_against_brute_force(points):
    split = SplitResult("twonorm", 0, tuple(points))
    convex, chosen = split.side("AB"), split.side("CDE")
    for own in chosen:
        as_good = [other.terms for other in convex if other.validation_error <= own.validation_error]
        gain, better = sparsity_gain(own, convex), generalisation_gain(own, convex)
        assert (gain is None) == (not as_good)
        if as_good:
            assert gain == 1 - own.terms / min(as_good)
            assert better is None
        elif convex:
            least = min(other.validation_error for other in convex)
            assert better == 1 - own.validation_error / least
            assert 0 < better <= 1
    for terms in range(14):
        own = least_error(chosen, terms)
        held = [p.validation_error for p in chosen if p.terms <= terms]
        assert own == (min(held) if held else None)
        if own is not None:
            assert sparsest(chosen, own) <= terms


@given(POINTS)
def test_matched_gains_turn_round(points):
    """With the sides exchanged, gains are losses, and what only one side reaches only the other does."""
    turned = {"A": "C", "B": "D", "C": "A", "D": "B", "E": "A"}
    split = SplitResult("heart", 0, tuple(points))
    other = SplitResult(
        "heart", 0, tuple(at(turned[p.experiment], p.terms, p.validation_error) for p in points)
    )
    one, two = matched_sparsity(split), matched_sparsity(other)
    (levels, only_chosen, only_convex), gain = one["reached"], one["gain"]
    assert two["reached"] == [levels, only_convex, only_chosen]
    if gain is not None and levels == 1:
        assert (1 - gain) * (1 - two["gain"]) == pytest.approx(1)
    for differences in (error_differences, equal_differences):
        a, b = differences(split), differences(other)
        assert {k: None if v is None else -v for k, v in a.items()} == b


def test_matched_gains_by_hand():
    points = [at("B", 2, 0.30), at("B", 4, 0.20), at("A", 10, 0.10), at("A", 12, 0.10),
              at("C", 1, 0.30), at("D", 4, 0.20), at("E", 5, 0.10), at("E", 6, 0.05),
              at("C", 0, 0.0)]  # fmt: skip
    found = matched_sparsity(SplitResult("heart", 0, tuple(points)))
    # 0.30: 1 against 2; 0.20: 4 against 4; 0.10: 5 against 10; 0.05: only the choices
    assert found["gain"] == pytest.approx((0.5 + 0.0 + 0.5) / 3)
    assert found["frontier"] == pytest.approx((0.5 + 0.0 + 0.5) / 3)
    assert found["reached"] == [3, 1, 0]
    apart = error_differences(SplitResult("heart", 0, tuple(points)))
    assert apart == {5: pytest.approx(-0.10), 10: pytest.approx(-0.05), 20: pytest.approx(-0.05)}


def test_one_ensemble_a_side_by_hand():
    """3 terms: 0.1 against 0.3, B's of least risk; 5 terms: 0.2 against 0.1; 4 and 9: only one side."""
    points = [at("B", 3, 0.2, risk=0.5), at("B", 3, 0.3, risk=0.4), at("B", 3, 0.0, risk=0.6),
              at("B", 5, 0.1), at("B", 9, 0.0), at("A", 5, 0.0), at("E", 5, 0.0), at("F", 3, 0.1),
              at("F", 4, 0.0), at("F", 5, 0.2)]  # fmt: skip
    assert single_difference(SplitResult("heart", 0, tuple(points))) == pytest.approx((-0.2 + 0.1) / 2)
    assert single_difference(SplitResult("heart", 0, (at("B", 3, 0.1), at("E", 3, 0.0)))) is None


def test_the_paper_s_table_again():
    """From the paper's own points and the ensembles they are compared with, the row of banana comes out."""
    convex = [
        at("B", 34, 0.2726),
        at("B", 35, 0.2717),
        at("A", 37, 0.2689),
        at("B", 38, 0.2679),
        at("B", 9, 0.3),
    ]
    points = [(33, 0.2585), (31, 0.2679), (12, 0.2689), (21, 0.2717), (11, 0.2726), (23, 0.2736)]
    points += [(30, 0.2740), (60, 0.2681)]
    chosen = [at("D", terms, error) for terms, error in points]
    found = table_entries(SplitResult("banana", 0, (*convex, *chosen)))
    assert [own.tag for own in found] == list("*12345")
    for own, printed in zip(found, TABLE_1["banana"], strict=True):
        assert (own.terms, own.error) == (printed.terms, pytest.approx(printed.error))
        assert own.gain == (None if printed.gain is None else pytest.approx(printed.gain, abs=0.005))
    assert found[0].generalisation == pytest.approx(TABLE_1["banana"][0].generalisation, abs=0.02)


def test_the_paper_s_numbers_are_copied_right():
    entries = [own for row in TABLE_1.values() for own in row]
    assert len(entries) == 33
    better = {name: row[0].generalisation for name, row in TABLE_1.items() if row[0].tag == "*"}
    assert better == {"banana": 3.52, "twonorm": 9.8, "waveform": 0.95, "flare_solar": 25.0}
    for own in entries:
        if own.gain is not None:  # the ensemble compared with has a whole number of terms
            others = own.terms / (1 - own.gain / 100)
            assert others == pytest.approx(round(others), abs=0.02)
    for row in TABLE_1.values():
        errors = [own.error for own in row]
        assert errors == sorted(errors)
    assert sorted(WORSE.values()) == [1.61, 2.05, 13.01, 23.81]


def test_no_gains():
    found = table_entries(SplitResult("heart", 0, (at("B", 3, 0.1), at("E", 3, 0.1), at("E", 5, 0.2))))
    assert found == []
    assert table_entries(SplitResult("heart", 0, (at("B", 3, 0.1),))) == []


def test_means():
    assert mean_of([]) is None
    assert mean_of([None, 2.0]) == {"mean": 2.0, "error": None, "number": 1}
    own = mean_of([1.0, 2.0, 3.0, 6.0])
    assert own["mean"] == 3.0
    assert own["error"] == pytest.approx(math.sqrt((4 + 1 + 0 + 9) / 3 / 4))
    assert clearly_positive(own)
    assert not clearly_positive({"mean": 1.0, "error": 0.5, "number": 3})
    assert not clearly_positive({"mean": 1.0, "error": None, "number": 1})
    assert not clearly_positive(None)
    assert clearly_positive({"mean": -1.1, "error": 0.5, "number": 3}, -1)


def test_a_summary_by_hand():
    one = SplitResult("heart", 0, (at("B", 4, 0.2), at("E", 2, 0.2), at("C", 3, 0.3, proved=False)))
    two = SplitResult("heart", 1, (at("B", 4, 0.2), at("E", 4, 0.1)))
    own = summarise([one, two])
    assert own["sparsity"]["mean"] == pytest.approx((0.5 + 0.0) / 2)
    assert own["own"]["mean"] == pytest.approx(0.5)  # in the second split no error of E is reached by B
    assert own["reached"] == [2, 1, 0]
    assert own["at_most"]["sizes"][5]["mean"] == pytest.approx((0.0 - 0.1) / 2)
    assert own["at_most"]["all"]["mean"] == pytest.approx(-0.05)
    assert own["equal"]["all"] == {
        "mean": pytest.approx(-0.1),
        "error": None,
        "number": 1,
    }  # only the second has as many terms
    assert own["proved"] == {"C": (0, 1), "D": (0, 0), "E": (2, 2)}
    more = [SplitResult("heart", k, (*split.points, at("F", 1, 0.2))) for k, split in enumerate((one, two))]
    assert summarise(more) == own
    with_sizes = summarise(more, WITH_SIZES)
    # of the first split's frontier 1 against 4; of the second's the same, and 4 terms that B does not reach
    assert with_sizes["own"]["mean"] == pytest.approx(0.75)
    assert with_sizes["proved"]["F"] == (2, 2)


def test_equally_many_terms_by_hand():
    """3 for 5, as that is the next fewer that both have; 10 for 10; 12 for 20, the best of each side."""
    points = [at("B", 3, 0.30), at("B", 4, 0.10), at("A", 10, 0.20), at("B", 12, 0.25), at("A", 12, 0.15),
              at("C", 3, 0.28), at("D", 5, 0.05), at("E", 10, 0.21), at("C", 12, 0.1), at("E", 12, 0.2),
              at("F", 4, 0.12), at("F", 20, 0.0)]  # fmt: skip
    split = SplitResult("heart", 0, tuple(points))
    assert equal_differences(split) == pytest.approx({5: -0.02, 10: 0.01, 20: -0.05})
    assert equal_differences(split, WITH_SIZES) == pytest.approx({5: 0.02, 10: 0.01, 20: -0.05})
    alone = SplitResult("heart", 0, (at("B", 3, 0.3), at("C", 4, 0.1)))
    assert equal_differences(alone) == {5: None, 10: None, 20: None}


def test_counts_by_hand():
    pairs = [("B", 2, 0.5), ("B", 3, 0.4), ("B", 3, 0.45), ("B", 9, 0.1)]
    pairs += [("E", 2, 0.6), ("E", 2, 0.5), ("E", 3, 0.41), ("E", 5, 0.5)]
    split = SplitResult("heart", 0, tuple(at(name, terms, 0, risk=risk) for name, terms, risk in pairs))
    assert worse_count(split, "E", "B", "risk") == (1, 2)
    assert worse_count(split, "E", "B", "error") == (0, 2)
    assert worse_count(split, "D", "E", "risk") == (0, 0)


@pytest.mark.parametrize(("risk", "proved", "columns"), [*product((0.3, 0.5), (True, False), (5, 6))])
def test_the_laws(risk, proved, columns):
    """thyroid: T' is 5."""
    split = SplitResult(
        "thyroid", 0, (at("B", 4, 0, risk=0.4, columns=columns), at("E", 4, 0, risk, proved=proved))
    )
    compared = proved and columns == 5
    assert law_e(split) == (int(compared and risk > 0.4), int(compared))
    split = SplitResult("thyroid", 0, (at("E", 4, 0, risk=0.4), at("D", 4, 0, risk, proved=proved)))
    assert law_d(split) == (int(proved and risk > 0.4), int(proved))


@pytest.mark.parametrize(("risk", "columns"), [*product((0.3, 0.5), (5, 6))])
def test_the_law_of_sizes(risk, columns):
    """Every choice of F with E's and with B's of at most T' columns, 5 for thyroid."""
    others = (at("B", 4, 0, risk=0.4, columns=columns), at("E", 4, 0, risk=0.4), at("E", 3, 0, risk=0.1))
    split = SplitResult("thyroid", 0, (*others, at("F", 4, 0, risk, proved=False)))
    compared = 1 + (columns == 5)
    assert law_f(split) == (compared if risk > 0.4 else 0, compared)


def test_rounding_is_not_worse():
    split = SplitResult("thyroid", 0, (at("B", 4, 0, risk=0.4), at("E", 4, 0, risk=0.4 * (1 + 1e-10))))
    assert law_e(split) == (0, 1)

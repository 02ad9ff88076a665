"""The card says what the model does, in lines that fit and columns that align."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from card_lines import look_up, read_rows

from cardboost.model import Ensemble, StepFunction, Term, render_card


def an_ensemble(terms: tuple[Term, ...], **changes: Any) -> Ensemble:
    fields: dict[str, Any] = {
        "loss": "logistic",
        "intercept": 0.231,
        "terms": terms,
        "feature_names": ("worst area", "worst concave points", "mean smoothness"),
        "n_features": 3,
        "classes": ("malignant", "benign"),
    }
    return Ensemble(**(fields | changes))


EXAMPLE = an_ensemble(
    (
        Term(1, 0.1423, 1, True, 0.755),
        Term(1, 0.175, 1, True, 0.555),
        Term(0, 720.0, 1, True, 0.2),
        Term(0, 874.5, 1, False, 0.61),
        Term(2, math.inf, -1, False, 0.05),
    )
)

EXPECTED = """\
Breast cancer
==============================================================================
5 terms on 3 of 3 features, logistic loss

intercept                         +0.231

worst concave points
    <= 0.1423 (also missing)      +1.310            |##########
    >  0.1423, <= 0.175           -0.200          ##|
    >  0.175                      -1.310  ##########|

worst area
    <= 720                        +0.810            |######
    >  720, <= 874.5              +0.410            |###
    >  874.5                      -0.810      ######|
    missing                       -0.410         ###|

mean smoothness
    any value                     -0.050            |
    missing                       +0.050            |

How to read this card
  score = intercept + the value of one line per feature
  score above 0 means class "benign", otherwise class "malignant"
  probability of "benign" = 1 / (1 + exp(-score))
  scores run from -1.939 to +2.401

  score           -4     -3     -2     -1      0     +1     +2     +3     +4
  probability   1.8%   4.7%  11.9%  26.9%  50.0%  73.1%  88.1%  95.3%  98.2%

Certificate
  objective    0.0812
  lower bound  0.0794
"""


def test_the_whole_card() -> None:
    lines = ["objective    0.0812", "lower bound  0.0794"]
    assert render_card(EXAMPLE, title="Breast cancer", certificate_lines=lines) == EXPECTED


@pytest.mark.parametrize("seed", range(20))
def test_a_reader_of_the_card_finds_the_score(seed: int) -> None:
    rng = np.random.default_rng(seed)
    terms = tuple(
        Term(
            int(rng.integers(4)),
            math.inf if rng.random() < 0.1 else float(np.round(rng.normal(), 2)),
            int(rng.choice([-1, 1])),
            bool(rng.integers(2)),
            float(rng.exponential()) + 0.01,
        )
        for _ in range(15)
    )
    ensemble = an_ensemble(terms, feature_names=None, n_features=4)
    blocks = read_rows(render_card(ensemble))
    X = rng.choice(
        [*(term.cut for term in terms if term.cut < math.inf), math.nan, 10.0, -10.0], size=(60, 4)
    )
    for row, contributions in zip(X, ensemble.contributions(X), strict=True):
        for step in ensemble.step_functions():
            shown = look_up(blocks[step.name], row[step.feature])
            assert abs(shown - contributions[step.feature]) <= 0.0005 + 1e-12


def test_features_are_ordered_by_how_far_they_move_the_score() -> None:
    rng = np.random.default_rng(1)
    terms = tuple(Term(j, 0.5, 1, True, float(w)) for j, w in enumerate(rng.permutation(8) + 1))
    ensemble = an_ensemble(terms, feature_names=None, n_features=8)
    spreads = {step.name: step.spread for step in ensemble.step_functions()}
    order = list(read_rows(render_card(ensemble)))
    assert order == sorted(spreads, key=lambda name: -spreads[name])


def test_missing_is_shown_once_per_feature() -> None:
    card = render_card(EXAMPLE)
    for name, rows in read_rows(card).items():
        assert sum("missing" in text for text, _ in rows) == 1, name


def test_exponential_loss_has_its_own_probabilities() -> None:
    card = render_card(an_ensemble((Term(0, 1.0, 1, True, 3.0),), loss="exponential", classes=(0, 1)))
    assert "probability of 1 = 1 / (1 + exp(-2 score))" in card
    scores, probabilities = (
        line.split()[1:]
        for line in card.splitlines()
        if line.startswith(("  score  ", "  prob")) and "=" not in line
    )
    for score, shown in zip(scores, probabilities, strict=True):
        assert abs(100 / (1 + math.exp(-2 * float(score))) - float(shown.rstrip("%"))) <= 0.05 + 1e-9


@pytest.mark.parametrize("weight", [1e-12, 0.004, 0.3, 1.0, 30.0, 1e5, 1e12, 1e300])
@pytest.mark.parametrize("cut", [0.5, 1e-300, -1.2345678901234567e-300, 123456.0, 1e22])
@pytest.mark.parametrize(
    "name", ["a", "long " * 40, "x" * 300, "two\nlines\t\x1b[31m", "", "身長", "\ud800"], ids=repr
)
def test_every_line_fits_and_is_plain(weight: float, cut: float, name: str) -> None:
    terms = tuple(
        Term(0, value, polarity, left, weight)
        for value in (cut, float(np.nextafter(cut, math.inf)), cut + 1e-300, math.inf)
        for polarity, left in ((1, True), (-1, False), (1, False))
    )
    label = "a very long label of a class " * 5
    ensemble = an_ensemble(terms, feature_names=(name,), n_features=1, classes=("no", label))
    card = render_card(ensemble, title="A title " * 20, certificate_lines=["word " * 50, "", "x" * 200])
    lines = card.splitlines()
    assert all(len(line) <= 78 and line == line.rstrip() for line in lines)
    assert card.endswith("\n")
    assert "\n\n\n" not in card
    assert all(line.isprintable() for line in lines)
    rows = [line for line in lines if re.match(r" {4}(<=|>|any|missing)", line)]
    assert rows
    assert len({line.find("|") for line in rows}) == 1  # one axis for all bars, or no bars


def test_cuts_are_written_with_the_shortest_decimals() -> None:
    terms = tuple(Term(0, cut, 1, True, 1.0) for cut in (0.1, 5.0, 1e-7, 123456.75))
    card = render_card(an_ensemble(terms))
    assert re.findall(r"<= (\S+)", card) == ["1e-07", "0.1", "5", "123456.75"]


def test_no_negative_zero_and_neighbours_of_equal_value_are_one_interval() -> None:
    terms = (
        Term(0, -0.0, 1, True, 1.0),
        Term(0, 2.0, 1, False, 1e-9),
        Term(0, 3.0, 1, True, 0.5),
        Term(0, 3.0, -1, False, 0.5),
    )
    ensemble = an_ensemble(terms, intercept=-1e-9)
    (step,) = ensemble.step_functions()
    assert step.levels[1] != step.levels[2] == step.levels[3]
    card = render_card(ensemble)
    assert not re.search(r"[-+]0\.0*(\s|$)", card)
    assert re.search(r"^intercept +0\.000$", card, re.MULTILINE)
    assert "3" not in "".join(text for text, _ in read_rows(card)["worst area"])
    assert "<= 0 " in card


def test_one_term_and_no_terms() -> None:
    one = render_card(an_ensemble((Term(0, 1.5, -1, True, 0.3),)))
    assert "1 term on 1 of 3 features" in one
    none = render_card(an_ensemble((), n_features=1, feature_names=None, intercept=-0.5))
    assert "0 terms on 0 of 1 feature," in none
    assert "No feature is used" in none
    assert "every score is -0.500" in none
    assert "Certificate" not in none


def test_narrow_cards_and_bad_widths() -> None:
    card = render_card(EXAMPLE, width=50)
    assert all(len(line) <= 50 for line in card.splitlines())
    with pytest.raises(ValueError, match="width must be at least 50; got 20"):
        render_card(EXAMPLE, width=20)


def test_many_intervals_align() -> None:
    rng = np.random.default_rng(2)
    terms = tuple(Term(0, float(cut), 1, True, 0.1) for cut in np.round(rng.normal(size=40) * 100, 1))
    rows = [
        line
        for line in render_card(an_ensemble(terms)).splitlines()
        if line.startswith("    >") and "<=" in line
    ]
    assert len(rows) > 30
    assert len({line.index("<=") for line in rows}) == 1


def test_spread_counts_missing_values() -> None:
    assert StepFunction(0, "a", (), (0.5,), -0.5).spread == 1.0

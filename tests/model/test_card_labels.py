"""Cards of models on labels, of regressors and of models for more classes: a reader finds every score."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from card_lines import look_up
from drawn_models import as_table, drawn_ensembles, drawn_multiclass, raw_values, slow_feature
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.categories import OTHER, Categories
from cardboost.model import Ensemble, MulticlassEnsemble, Term, render_card
from cardboost.model.card_text import AlignedNumbers, pack, shortened
from marks import first

WORK = Categories(
    ("Federal-gov", "Local-gov", "Never-worked", "Private", "Self-emp-inc", "Self-emp-not-inc", "State-gov")
)
SEX = Categories(("Female", "Male"))
COUNTRY = Categories(
    tuple(f"Country {k:03d}" for k in range(254)), tuple(f"Rare {k:03d}" for k in range(746))
)


def is_(feature: int, category: Any, weight: float, missing_left: bool = False, polarity: int = 1) -> Term:
    return Term(feature, None, polarity, missing_left, weight, category)


TERMS = (
    Term(0, 27.5, -1, False, 0.61),
    Term(0, 35.0, -1, False, 0.31),
    is_(1, "Private", 0.41, missing_left=True),
    is_(1, "Self-emp-inc", 0.25),
    is_(2, "Female", 0.35, polarity=-1),
    is_(3, "Country 007", 0.2),
    is_(3, OTHER, 0.05, polarity=-1),
)

LABELS = {1: WORK, 2: SEX, 3: COUNTRY}
NAMES = ("age", "workclass", "sex", "country")


def an_ensemble(**changes: Any) -> Ensemble:
    fields: dict[str, Any] = {
        "loss": "logistic",
        "intercept": -1.2,
        "terms": TERMS,
        "feature_names": NAMES,
        "n_features": 4,
        "classes": ("<=50K", ">50K"),
        "categories": LABELS,
    }
    return Ensemble(**(fields | changes))


EXPECTED = """\
Adult
==============================================================================
7 terms on 4 of 4 features, logistic loss

intercept                                     -1.200

age
    <= 27.5                                   -0.920  ##########|
    >  27.5, <= 35                            +0.300            |###
    >  35 (also missing)                      +0.920            |##########

workclass
    is Private (also missing or unseen)       +0.160            |##
    is Self-emp-inc                           -0.160          ##|
    is Federal-gov, Local-gov, Never-worked,  -0.660     #######|
       Self-emp-not-inc, State-gov

sex
    is Male (also missing or unseen)          +0.350            |####
    is Female                                 -0.350        ####|

country
    is Country 007                            +0.250            |###
    other (746 rare labels)                   -0.250         ###|
    any other label (also missing)            -0.150          ##|

How to read this card
  score = intercept + the value of one line per feature
  unseen: a label that the training data did not have; it counts as missing
  other: rare labels, which share one value; the model file lists them
  score above 0 means class ">50K", otherwise class "<=50K"
  probability of ">50K" = 1 / (1 + exp(-score))
  scores run from -3.380 to +0.480

  score           -4     -3     -2     -1      0     +1     +2     +3     +4
  probability   1.8%   4.7%  11.9%  26.9%  50.0%  73.1%  88.1%  95.3%  98.2%
"""


def test_the_whole_card() -> None:
    assert render_card(an_ensemble(), title="Adult") == EXPECTED


def test_the_card_of_a_regressor() -> None:
    terms = tuple(
        Term(t.feature, t.cut, t.polarity, t.missing_left, 20_000 * t.weight, t.category) for t in TERMS
    )
    card = render_card(an_ensemble(loss="squared", classes=None, intercept=180_921.25, terms=terms))
    assert card.split("\n\n")[1:3] == [
        "intercept                                     +180921.2",
        "age\n"
        "    <= 27.5                                    -18400.0  ##########|\n"
        "    >  27.5, <= 35                              +6000.0            |###\n"
        "    >  35 (also missing)                       +18400.0            |##########",
    ]
    assert card.split("\n\n")[-1].splitlines() == [
        "How to read this card",
        "  prediction = intercept + the value of one line per feature",
        "  all values are in the units of the target",
        "  unseen: a label that the training data did not have; it counts as missing",
        "  other: rare labels, which share one value; the model file lists them",
        "  predictions run from 137321.2 to 214521.2",
    ]
    assert not re.search(r"\bclass|probab|score\b", card)
    none = render_card(an_ensemble(loss="squared", classes=None, intercept=-3.5, terms=()))
    assert none.endswith("  every prediction is -3.500\n")


MANY_EXPECTED = """\
Pets
==============================================================================
3 classes, 4 terms on 2 of 4 features, logistic loss

How to read this card
  every class has its own section and its own score
  score of a class = intercept + the value of one line per feature of its
    section
  unseen: a label that the training data did not have; it counts as missing
  the class with the highest score is predicted; of equal scores, the first
  share of a class = 1 / (1 + exp(-score))
  probability of a class = its share divided by the sum of all shares

  score           -4     -3     -2     -1      0     +1     +2     +3     +4
  share         1.8%   4.7%  11.9%  26.9%  50.0%  73.1%  88.1%  95.3%  98.2%

Class "cat"
------------------------------------------------------------------------------
1 term on 1 of 4 features, scores run from -3.500 to +2.500

intercept                             -0.500

age
    <= 27.5 (also missing)            +3.000            |##########
    >  27.5                           -3.000  ##########|

Certificate for "cat"
  objective 0.1

Class "dog"
------------------------------------------------------------------------------
3 terms on 2 of 4 features, scores run from -1.350 to +2.350

intercept                             +0.500

sex
    is Female                         +1.000            |###
    is Male (also missing or unseen)  -1.000         ###|

age
    <= 20                             +0.850            |###
    >  20, <= 35                      -0.350           #|
    >  35 (also missing)              -0.850         ###|

Certificate for "dog"
  objective 0.2

Class "cow"
------------------------------------------------------------------------------
0 terms on 0 of 4 features, every score is 0.000

intercept                              0.000

No feature is used: every row gets the intercept.
"""


def member(intercept: float, *terms: Term) -> Ensemble:
    return an_ensemble(intercept=intercept, terms=terms, classes=(False, True))


MANY = MulticlassEnsemble(
    ("cat", "dog", "cow"),
    (
        member(-0.5, Term(0, 27.5, 1, True, 3.0)),
        member(0.5, is_(2, "Female", 1.0), Term(0, 20.0, 1, False, 0.6), Term(0, 35.0, 1, False, 0.25)),
        member(0.0),
    ),
)


def test_the_whole_card_for_more_classes() -> None:
    lines: list[list[str]] = [["objective 0.1"], ["objective 0.2"], []]
    assert render_card(MANY, title="Pets", certificate_lines=lines) == MANY_EXPECTED
    assert render_card(MANY, certificate_lines=["one", "two"]).endswith("\nCertificate\n  one\n  two\n")


# ------------------------------------------------------------------------------------ reading it back


def blocks_of(card: str, names: Any) -> dict[str, list[tuple[str, float]]]:
    """For every feature its rows: the text, put together again, and the points."""
    found: dict[str, list[tuple[str, float]]] = {}
    rows: list[tuple[str, float]] = []
    for line in card.splitlines():
        if line in names:
            rows = found.setdefault(line, [])
        elif match := re.fullmatch(r" {4}(\S.*?) {2,}([-+]?[\d.]+(?:e[-+]\d+)?)( +[#|]+)?", line):
            rows.append((match[1], float(match[2])))
        elif line.startswith("       "):  # a row that goes on
            text, points = rows.pop()
            rows.append((f"{text} {line.strip()}", points))
    return found


def find_label(rows: list[tuple[str, float]], label: str | None, own: Categories) -> float:
    """The points of a label (or of missing), as a reader with the card and the model file finds them."""
    seen = label is not None and (label in own.kept or label in own.rare)
    named: dict[str, float] = {}
    words: dict[str, float] = {}
    for text, points in rows:
        if text.endswith(" (also missing or unseen)"):
            words["missing or unseen"] = points
            text = text.removesuffix(" (also missing or unseen)")
        if text.startswith("is "):
            for name in text.removeprefix("is one of ").removeprefix("is ").split(", "):
                (words if name.startswith("other (") else named)[name] = points
        else:
            words[text] = points
    if seen:
        assert label is not None
        if label in named:
            return named[label]
        if label in own.rare:
            for text, points in words.items():
                if text.startswith("other ("):
                    assert text == f"other ({len(own.rare)} rare labels)"
                    return points
        for text, points in words.items():
            if text.startswith("any other known label"):
                others = [one for one in (*own.kept, *own.rare) if one not in named]
                others = [one for one in others if one in own.kept or not any("other (" in w for w in words)]
                assert text == f"any other known label ({len(others)})"
                return points
    elif "missing or unseen" in words:
        return words["missing or unseen"]
    return next(points for text, points in words.items() if re.match(r"any (other )?label \(also mis", text))


def plain_labels(rng: np.random.Generator, kept: int, rare: int) -> Categories:
    names = sorted({"".join(rng.choice(list("abcdefgh -_"), size=rng.integers(1, 14))) for _ in range(400)})
    names = [name for name in names if name.strip() == name]
    chosen = sorted(rng.permutation(names)[: kept + rare].tolist())
    apart = set(rng.permutation(chosen)[:rare].tolist())
    return Categories(tuple(one for one in chosen if one not in apart), tuple(sorted(apart)))


@pytest.mark.parametrize("width", [50, 61, 78, 120])
@pytest.mark.parametrize("seed", first(8, range(25)))
def test_a_reader_of_the_card_finds_the_score(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    categories = {
        j: plain_labels(rng, int(rng.choice([1, 2, 5, 20, 100])), int(rng.choice([0, 1, 3, 60])))
        for j in range(3)
    }
    terms = [Term(3, float(cut), 1, bool(rng.integers(2)), 0.2) for cut in rng.integers(10, size=2)]
    for _ in range(int(rng.integers(1, 16))):
        own = categories[j := int(rng.integers(3))]
        choices = [*own.kept, *([OTHER] if own.rare else [])]
        weight = float(rng.choice([0.1, 0.25, rng.exponential() + 0.01]))
        label = choices[rng.integers(len(choices))]
        terms.append(is_(j, label, weight, bool(rng.integers(2)), int(rng.choice([1, -1]))))
    names = ("colour", "work class", "zone", "age")
    ensemble = an_ensemble(terms=tuple(terms), feature_names=names, categories=categories)
    card = render_card(ensemble, width=width)
    assert all(len(line) <= width for line in card.splitlines())
    blocks = blocks_of(card, names)
    for step in ensemble.step_functions():
        rows = blocks[step.name]
        for x in raw_values(ensemble, step.feature):
            if step.categories is None:
                shown = look_up(rows, x)
            else:
                shown = find_label(rows, x, ensemble.categories[step.feature])
            assert abs(shown - slow_feature(ensemble, step.feature, x)) <= 0.0005 + 1e-12, (step.name, x)
        if step.categories is not None:
            levels = [points for text, points in rows if text.startswith("is ")]
            assert levels == sorted(levels, reverse=True)


@settings(max_examples=150)
@given(model=drawn_ensembles() | drawn_multiclass(), width=st.integers(50, 120))
def test_every_line_fits_and_is_plain(model: Any, width: int) -> None:
    card = render_card(model, title="A title " * 20, width=width)
    lines = card.splitlines()
    assert all(len(line) <= width and line == line.rstrip() for line in lines)
    assert all(line.isprintable() for line in lines)
    assert "\n\n\n" not in card
    assert card.endswith("\n")
    rows = [line for line in lines if re.search(r"  [-+]?[\d.e+-]+  +#*\|#*$", line)]
    assert len({line.find("|") for line in rows}) <= 1


@settings(max_examples=60)
@given(model=drawn_multiclass())
def test_sections_of_classes_say_what_the_classes_get(model: MulticlassEnsemble) -> None:
    sections = render_card(model).split("\nClass ")[1:]
    assert len(sections) == len(model.classes)
    for section, own in zip(sections, model.ensembles, strict=True):
        shown = re.search(r"^intercept +(\S+)$", section, re.MULTILINE)
        assert shown
        assert math.isclose(float(shown[1]), own.intercept, rel_tol=1e-2, abs_tol=6e-4)
        assert all(f"\n{step.name}\n" in section for step in own.step_functions())


# ------------------------------------------------------------------------------------ rows


def rows_for(categories: Categories, *terms: Term, width: int = 78) -> list[str]:
    ensemble = an_ensemble(terms=terms, feature_names=("f",), n_features=1, categories={0: categories})
    block = render_card(ensemble, width=width).split("\n\n")[2].splitlines()
    assert block[0] == "f"
    return block[1:]


def texts(lines: list[str]) -> list[str]:
    return [re.split(r" {2,}", line.strip())[0] for line in lines]


def test_many_labels_take_few_lines() -> None:
    for missing_left in (True, False):
        for terms in (1, 2, 5, 10):
            own = [is_(0, f"Country {k:03d}", 0.1 + 0.01 * k, missing_left) for k in range(terms)]
            assert len(rows_for(COUNTRY, *own)) <= 12
    assert texts(rows_for(COUNTRY, is_(0, "Country 001", 1.0))) == [
        "is Country 001", "any other label (also missing)",
    ]  # fmt: skip
    assert texts(rows_for(COUNTRY, is_(0, "Country 001", 1.0, missing_left=True))) == [
        "is Country 001 (also missing or unseen)", "any other known label (999)",
    ]  # fmt: skip
    forty = [is_(0, f"Country {k:03d}", 0.25) for k in range(40)]
    assert len(rows_for(COUNTRY, *forty)) <= 12


def test_two_large_groups_are_cut_off_and_say_so() -> None:
    own = Categories(tuple(range(1000, 1250)))
    terms = [is_(0, label, 0.25, missing_left=k == 0) for k, label in enumerate(own.kept[:120])]
    lines = rows_for(own, *terms)
    assert len(lines) <= 12
    left_out = [int(number) for number in re.findall(r"and (\d+) more", " ".join(texts(lines)))]
    named = sum(len(re.findall(r"\b1\d\d\d\b", text)) for text in texts(lines))
    assert len(left_out) == 2
    assert named + sum(left_out) == 250
    ensemble = an_ensemble(terms=tuple(terms), n_features=1, feature_names=None, categories={0: own})
    assert "  more: there was no room for these labels; the model file lists them" in render_card(ensemble)


def test_labels_that_could_be_misread_stand_in_quotes() -> None:
    labels = ["", " a", "a,b", "missing", "Other", 'say "x"', "tab\t", "(b)", "plain", "two words"]
    own = Categories(tuple(sorted(labels)))
    terms = [is_(0, label, 0.1 * (k + 1)) for k, label in enumerate(own.kept)]
    shown = {text.removeprefix("is ") for text in texts(rows_for(own, *terms)) if text.startswith("is ")}
    quoted = ['""', '" a"', '"a,b"', '"missing"', '"Other"', '"say \\"x\\""', '"tab\\t"', '"(b)"']
    assert shown == {*quoted, "plain", "two words"}
    assert texts(rows_for(Categories((False, 2.0, 2.5)), is_(0, 2, 1.0))) == [
        "is 2", "is False, 2.5 (also missing or unseen)",
    ]  # fmt: skip


def test_long_labels_are_cut_only_if_they_stay_different() -> None:
    head, tail = "x" * 60, "y" * 60
    assert shortened([head, tail, "a"]) == ["x" * 33 + "..." + "x" * 12, "y" * 33 + "..." + "y" * 12, "a"]
    twins = [head + "1" + tail, head + "2" + tail]
    assert shortened(twins) == twins
    lines = rows_for(Categories(tuple(twins)), is_(0, twins[0], 1.0), width=50)
    assert all(len(line) <= 50 for line in lines)
    joined = "".join(re.split(r" {2,}[-+]\d", line)[0].strip() for line in lines)
    assert all(twin in joined for twin in twins)


def test_one_value_for_all_labels() -> None:
    terms = (is_(0, "Male", 1.0), is_(0, "Male", 1.0, polarity=-1))
    assert texts(rows_for(SEX, *terms)) == ["is Female, Male (also missing or unseen)"]
    terms = (is_(0, "Country 001", 1.0), is_(0, "Country 001", 1.0, polarity=-1))
    assert texts(rows_for(COUNTRY, *terms)) == ["any label (also missing)"]


def test_decimals_follow_the_steps_not_the_intercept() -> None:
    points = AlignedNumbers([0.0123, -0.004], [2000.5])
    assert [points.show(x) for x in (0.0123, -0.004, 2000.5)] == ["   +0.0123", "   -0.0040", "+2000.5000"]
    assert AlignedNumbers([1e-3], [1e300]).text(1e300) == "+1.000e+300"
    assert AlignedNumbers([25_000.0], [1e6]).text(1e6) == "+1000000.0"
    assert AlignedNumbers([0.0], [0.25]).text(0.25) == "+0.250"


@given(words=st.lists(st.text("ab ", min_size=1, max_size=30), min_size=1), room=st.integers(10, 40))
def test_packed_lines_hold_all_letters(words: list[str], room: int) -> None:
    lines = pack(words, 3, room)
    assert all(len(line) <= room for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(words).replace(" ", "")


def test_rows_of_a_table_add_up_on_the_card() -> None:
    table = as_table(
        [[30.0, "Private", "Male", "Rare 003"], [math.nan, "Baker", None, "Utopia"]], LABELS, NAMES
    )
    np.testing.assert_allclose(
        an_ensemble().decision_function(table),
        [-1.2 + 0.3 + 0.16 + 0.35 - 0.25, -1.2 + 0.92 + 0.16 + 0.35 - 0.15],
    )


def test_sets_read_well_and_never_cost_a_line() -> None:
    jobs = Categories(
        ("Adm", "Craft", "Exec-managerial", "Farming", "Prof-specialty", "Sales", "Tech-support")
    )
    few = Term(0, None, 1, False, 0.4, one_of=("Exec-managerial", "Prof-specialty"))
    assert texts(rows_for(jobs, few)) == [
        "is one of Exec-managerial, Prof-specialty", "any other label (also missing)",
    ]  # fmt: skip
    most = Term(0, None, -1, True, 0.4, one_of=("Adm", "Craft", "Farming", "Sales", "Tech-support"))
    assert rows_for(jobs, most) == rows_for(jobs, few)
    four = Term(0, None, 1, False, 0.4, one_of=("Craft", "Exec-managerial", "Prof-specialty", "Tech-support"))
    assert texts(rows_for(jobs, four, width=120))[0].startswith("is one of Craft, Exec-managerial, Prof")
    assert len(rows_for(jobs, four, width=60)) <= 5
    long = Term(0, None, 1, False, 0.4, one_of=COUNTRY.kept[:120])
    assert len(rows_for(COUNTRY, long)) <= 12
    assert texts(rows_for(Categories(("a", "b", "one of b")), is_(0, "one of b", 1.0)))[0] == 'is "one of b"'

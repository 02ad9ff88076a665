"""Figures are well-formed, their ticks read well, and every point is where its axis puts it."""

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardboost.report import document as doc
from cardboost.report.figures import (
    COLOURS,
    Chart,
    Figure,
    Series,
    axis_for,
    nice_step,
    plain,
    power_of_ten,
)
from cardboost.report.panels import SimplexPath

SVG = "{http://www.w3.org/2000/svg}"
NUMBERS = st.floats(-1e9, 1e9, allow_subnormal=False)
POSITIVE = st.floats(1e-15, 1e12)


def figure(*lines, **settings):
    return Figure("A title", "A caption", (Chart("panel", "x", "y", lines, **settings),))


def as_number(label):
    """What a reader takes a label for."""
    digits, _, power = label.replace("−", "-").rpartition("·")
    if "10" in (power[:2], power[1:3]) and set(power) & set("⁻⁰¹²³⁴⁵⁶⁷⁸⁹"):
        exponent = power[2:].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
        return float(f"{digits or 1}e{exponent}")
    return float(label.replace("−", "-"))


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_a_linear_axis_holds_its_values_and_has_round_ticks(values):
    axis = axis_for(values)
    assert all(0 <= axis.position(value) <= 1 for value in values)
    if max(values) - min(values) > 1e-6 * max(map(abs, values)):
        assert 2 <= len(axis.ticks) <= 8
        assert len({tick.label for tick in axis.ticks}) == len(axis.ticks)
        for tick in axis.ticks:
            assert 0 <= axis.position(tick.value) <= 1
            room = 1e-9 * (axis.high - axis.low)
            assert math.isclose(as_number(tick.label), tick.value, rel_tol=1e-9, abs_tol=room)


@given(st.lists(st.one_of(st.just(0.0), POSITIVE), min_size=1, max_size=8))
def test_a_log_axis_holds_its_values_and_zeros_are_below_all_others(values):
    axis = axis_for(values, "log")
    places = [axis.position(value) for value in values]
    assert all(0 <= place <= 1 for place in places)
    assert [axis.position(v) for v in sorted(values)] == sorted(places)
    assert 1 <= len(axis.ticks) <= 12
    assert (axis.ticks[0].label == "0") == (0 in values)
    assert all(place > axis.zero for place, value in zip(places, values, strict=True) if value > 0)


@given(POSITIVE)
def test_a_step_is_one_two_or_five(least):
    step = nice_step(least)
    assert step >= least * (1 - 1e-8)
    assert step <= 2.5 * least * (1 + 1e-8)
    assert f"{step:.6e}"[0] in "125"


@pytest.mark.parametrize(
    ("values", "kind", "labels"),
    [
        ([0, 3], "linear", ["0", "1", "2", "3"]),
        ([-1, 0.1], "linear", ["−1.0", "−0.8", "−0.6", "−0.4", "−0.2", "0.0"]),
        ([1.24, 1.4], "linear", ["1.25", "1.30", "1.35", "1.40"]),
        ([0.001, 10], "log", ["0.001", "0.01", "0.1", "1", "10"]),
        ([1e-14, 10], "log", ["10⁻¹²", "10⁻⁹", "10⁻⁶", "10⁻³", "10⁰"]),
        ([1.5, 6], "log", ["2", "5"]),
    ],
)
def test_ticks_that_read_well(values, kind, labels):
    assert [tick.label for tick in axis_for(values, kind).ticks] == labels


def test_counts_have_whole_ticks_from_zero():
    assert [tick.label for tick in axis_for([1, 2], counts=True).ticks] == ["0", "1", "2"]
    assert [tick.label for tick in axis_for([7, 7], counts=True).ticks] == ["0", "2", "4", "6", "8", "10"]


def test_numbers_as_words():
    assert plain(-0.5) == "−0.5"
    assert plain(-0.0001, 1) == "0.0"
    assert power_of_ten(1e-7) == "10⁻⁷"
    assert power_of_ten(2.5e12) == "2.5·10¹²"
    assert power_of_ten(-4e12) == "−4·10¹²"


@pytest.mark.parametrize("kind", ["linear", "log"])
@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
def test_what_an_axis_cannot_show(values, kind):
    with pytest.raises(ValueError):
        axis_for(values, kind)


def test_no_log_of_negative_numbers():
    with pytest.raises(ValueError, match="below 0"):
        axis_for([1.0, -1.0], "log")


def test_lines_have_as_many_x_as_y():
    with pytest.raises(ValueError, match="'left'"):
        Series("left", (1.0,), ())


def test_a_figure_is_well_formed_with_its_words_escaped():
    line = Series("a < b & c", (0.0, 1.0), (1.0, 2.0))
    svg = Figure('"Title" <1>', "x & y " * 40, (Chart("", "x<y", "p&q", (line, line)),)).svg()
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert {'"Title" <1>', "a < b & c", "x<y", "p&q"} <= set(words)
    assert not re.search(r"href|url\(|<script", svg)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=60))
def test_points_are_inside_the_figure_and_in_their_places(points):
    x, y = (tuple(own) for own in zip(*points, strict=True))
    root = ET.fromstring(figure(Series("only", x, y)).svg())
    width, height = (float(v) for v in root.get("viewBox").split()[2:])
    places = [tuple(map(float, p.split(","))) for p in root.find(f"{SVG}polyline").get("points").split()]
    assert len(places) == len(points)
    assert all(0 < a < width and 0 < b < height for a, b in places)
    order = sorted(range(len(points)), key=lambda k: y[k])
    assert all(places[a][1] >= places[b][1] for a, b in pairwise(order))
    assert len(list(root.iter(f"{SVG}circle"))) == (len(points) if len(points) <= 40 else 0)


def test_lines_differ_in_more_than_colour():
    lines = [Series(f"line {k}", (0.0, 1.0), (0.0, float(k))) for k in range(len(COLOURS))]
    root = ET.fromstring(figure(*lines).svg())
    drawn = list(root.iter(f"{SVG}polyline"))
    assert len({(line.get("stroke"), line.get("stroke-dasharray")) for line in drawn}) == len(COLOURS)
    assert len({line.get("stroke-dasharray") for line in drawn}) == len(COLOURS)


def test_equal_figures_are_equal_text():
    line = Series("one", (1.0, 2.0, 3.0), (1e-9, 1e-3, 0.0))
    assert figure(line, y_scale="log").svg() == figure(line, y_scale="log").svg()


def test_the_path_on_the_simplex():
    path = ((1 / 3, 1 / 3, 1 / 3), (0.02, 0.98, 0.0), (0.0, 1.0, 0.0))
    panel = SimplexPath("Points", path, ("a", "b", "c"), lambda point: point[0] ** 2 + point[2])
    root = ET.fromstring(Figure("t", "c", (panel,)).svg())
    assert len(list(root.iter(f"{SVG}circle"))) == 3
    labels = {e.text: (float(e.get("x")), float(e.get("y"))) for e in root.iter(f"{SVG}text")}
    own = [labels[k] for k in ("0", "1", "2", "b")]
    assert min(math.dist(p, q) for k, p in enumerate(own) for q in own[:k]) > 9
    assert root.find(f"{SVG}path").get("d").count("M") > 50  # contours


def test_a_page_is_well_formed():
    text = doc.html_page(
        "A & B", [doc.heading("<1>"), doc.paragraph("x < y"), doc.table(["a", "b"], [["1", "FAILS"]])]
    )
    ET.fromstring(
        text.removeprefix("<!DOCTYPE html>\n")
        .replace('<meta charset="utf-8">', "")
        .replace('initial-scale=1">', 'initial-scale=1"/>')
    )
    assert 'class="fails">FAILS<' in text
    assert "http" not in text


def test_bars_go_as_far_as_the_spread_and_the_axis_holds_them():
    line = Series("score", (1.0, 2.0), (10.0, 20.0), spread=(5.0, 0.0))
    drawn = ET.fromstring(Figure("t", "c", (Chart("", "x", "y", (line,)),)).svg())
    low, high = (float(own.get("cy")) for own in drawn.iter(f"{SVG}circle"))
    parts = [own for own in drawn.iter(f"{SVG}line") if own.get("stroke") == COLOURS[0]]
    assert len(parts) == 3  # a bar with two ends; none where the spread is 0
    ends = sorted(float(parts[0].get(key)) for key in ("y1", "y2"))
    half = (low - high) / 2  # pixels for the 5 of the spread
    assert ends == pytest.approx([low - half, low + half], abs=0.02)
    assert line.ends() == (5.0, 20.0, 15.0, 20.0)
    with pytest.raises(ValueError, match="needs a spread of at least 0 for every point"):
        Series("score", (1.0, 2.0), (10.0, 20.0), spread=(5.0,))
    with pytest.raises(ValueError, match="needs a spread of at least 0 for every point"):
        Series("score", (1.0,), (10.0,), spread=(-1.0,))

"""Error against size: what is drawn where, panels in rows, and pictures by another program."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from cardboost.report import png
from cardboost.report.figures import Box, Chart, Figure, Series
from cardboost.report.panels import FrontierPanel, Side

SVG = "{http://www.w3.org/2000/svg}"
CONVEX = Side("convex", ((1.0, 30.0), (2.0, 20.0), (4.0, 10.0)), ((1.0, 30.0), (2.0, 20.0), (4.0, 10.0)))
CHOSEN = Side("chosen", ((1.0, 30.0), (3.0, 10.0)), ((1.0, 30.0), (3.0, 10.0)))


def drawn(panel, **options):
    return ET.fromstring(Figure("title", "caption", (panel,), **options).svg())


def numbers(points):
    return [tuple(map(float, at.split(","))) for at in points.split()]


def test_points_steps_and_tags():
    picture = drawn(FrontierPanel("heart", "terms", "error", (CONVEX, CHOSEN), (("b7", (3.0, 10.0)),)))
    assert len(picture.findall(f"{SVG}circle")) == 3
    assert len(picture.findall(f"{SVG}rect")) == 1 + 2  # the page, and two small squares
    lines = [numbers(own.attrib["points"]) for own in picture.findall(f"{SVG}polyline")]
    for line, corners in zip(lines, (3, 2), strict=True):
        assert len(line) == 2 * corners  # level to the next size, down, and on to the end
        assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(line))
        assert [at[1] for at in line] == sorted(at[1] for at in line)
    assert lines[0][-1] == lines[1][-1]  # the same least error, drawn to the same end
    assert [own.text for own in picture.findall(f"{SVG}text") if own.text == "b7"] == ["b7"]


def test_what_is_far_above_is_left_out():
    panel = FrontierPanel("heart", "terms", "error", (CONVEX, CHOSEN), (("*", (9.0, 99.0)),), top=25.0)
    picture = drawn(panel)
    assert len(picture.findall(f"{SVG}circle")) == 2
    assert "*" not in [own.text for own in picture.findall(f"{SVG}text")]


def test_nothing_to_show():
    parts = FrontierPanel("heart", "terms", "error", (Side("none", (), ()),)).draw(Box(0, 0, 100, 100))
    assert "no points" in parts[0]


@pytest.mark.parametrize(
    ("count", "per_row", "rows"), [(1, None, 1), (3, None, 1), (3, 3, 1), (4, 3, 2), (12, 3, 4)]
)
def test_panels_in_rows(count, per_row, rows):
    panels = tuple(
        Chart(f"panel {k}", "x", "y", (Series("a", (0.0, 1.0), (0.0, 1.0)),)) for k in range(count)
    )
    figure = Figure("title", "caption", panels, height=100.0, per_row=per_row)
    picture = ET.fromstring(figure.svg())
    assert (float(picture.attrib["width"]), float(picture.attrib["height"])) == figure.size
    titles = [own for own in picture.findall(f"{SVG}text") if re.match(r"panel \d+", own.text or "")]
    places = [(float(own.attrib["x"]), float(own.attrib["y"])) for own in titles]
    assert len(set(places)) == count
    assert len({y for _, y in places}) == rows
    assert max(y for _, y in places) + 100 < figure.size[1]


def test_a_picture_by_another_program(monkeypatch):
    asked = []

    def draw(command, **options):
        asked.append(command)
        target = next(own for own in command if own.endswith(".png")).removeprefix("--screenshot=")
        if "rsvg" in command[0]:
            raise subprocess.CalledProcessError(1, command)
        with open(target, "wb") as file:
            file.write(b"a picture")

    monkeypatch.setitem(sys.modules, "cairosvg", None)
    monkeypatch.setattr(png.shutil, "which", lambda name: f"/bin/{name}" if name != "google-chrome" else None)
    monkeypatch.setattr(png.subprocess, "run", draw)
    assert png.png_of("<svg/>", 300.2, 200.0) == b"a picture"
    assert [command[0] for command in asked] == ["/bin/rsvg-convert", "/bin/chromium"]
    assert "--window-size=300,200" in asked[1]


def test_no_program_no_picture(monkeypatch):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    monkeypatch.setattr(png.shutil, "which", lambda name: None)
    assert png.png_of("<svg/>", 300, 200) is None

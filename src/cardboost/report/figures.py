"""Line charts as SVG, made of plain text: axes, ticks, legend, title and caption.

A figure has panels side by side, in one row or several. Colours can be told apart by the colour-blind and in
grey print: every line also has its own dashes, and its own mark where points are few. Nothing refers to
anything outside the text, so that a figure can stand alone or within a page.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cardboost.model.printable import printable_html
from cardboost.report.axes import Axis, Kind, axis_for

#: blue, vermilion, green, purple, black
COLOURS = ("#0072b2", "#d55e00", "#008a64", "#b0558f", "#222222")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2")
_MARKS = ("circle", "square", "triangle", "diamond", "cross")
INK, GREY, PALE = "#222222", "#5a5a5a", "#e2e2e2"
_FONT = "'Segoe UI', 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_LETTER = 0.56  # mean width of a letter, in font sizes
_FEW = 40  # points up to which each has a mark
_MARGIN, _GAP, _LINE = 16.0, 26.0, 17.0
TEXT = 12.0


@dataclass(frozen=True)
class Box:
    """A rectangle on the page."""

    x: float
    y: float
    width: float
    height: float


class Panel(Protocol):
    """What a figure puts side by side."""

    @property
    def title(self) -> str: ...

    def draw(self, box: Box) -> list[str]:
        """Elements of SVG within the box; the title is not among them."""


@dataclass(frozen=True)
class Line:
    """``style`` decides colour, dashes and marks; by default lines of a chart are numbered.

    ``spread``: how far a bar goes up and down from every point. ``size``: of the marks.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: int | None = None
    spread: tuple[float, ...] = ()
    size: float = 3.6

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or not self.x:
            raise ValueError(f"line {self.name!r} needs as many values of x as of y, and one at least.")
        if self.spread and (len(self.spread) != len(self.y) or min(self.spread) < 0):
            raise ValueError(f"line {self.name!r} needs a spread of at least 0 for every point, or none.")

    def ends(self) -> tuple[float, ...]:
        """All that the axis must hold."""
        if not self.spread:
            return self.y
        pairs = list(zip(self.y, self.spread, strict=True))
        return (*(y - own for y, own in pairs), *(y + own for y, own in pairs))


@dataclass(frozen=True)
class Chart:
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    x_scale: Kind = "linear"
    y_scale: Kind = "linear"
    counts: bool = False  # what goes up is a number of things

    def draw(self, box: Box) -> list[str]:
        across = axis_for((x for line in self.lines for x in line.x), self.x_scale, most=6)
        up = axis_for((y for line in self.lines for y in line.ends()), self.y_scale, counts=self.counts)
        styles = [k if line.style is None else line.style for k, line in enumerate(self.lines)]
        names = [line.name for line in self.lines]
        shown = len(names) > 1
        few = [len(line.x) <= _FEW for line in self.lines]
        legend, rows = legend_of(names, styles, few, box) if shown else ([], 0)
        left = 26.0 + max(text_width(tick.label, 11.5) for tick in up.ticks)
        top = rows * _LINE + (8.0 if rows else 2.0)
        area = Box(box.x + left, box.y + top, box.width - left - 10.0, box.height - top - 44.0)
        parts = [*legend, *grid(area, across, up)]
        middle = area.y + area.height / 2
        parts.append(text(area.x + area.width / 2, box.y + box.height - 6.0, self.x_label, anchor="middle"))
        parts.append(text(box.x + 11.0, middle, self.y_label, anchor="middle", turned=True))
        for line, style, marked in zip(self.lines, styles, few, strict=True):
            points = [
                (area.x + area.width * across.place(x), area.y + area.height * (1 - up.place(y)))
                for x, y in zip(line.x, line.y, strict=True)
            ]
            for (x, _), y, own in zip(points, line.y, line.spread or (0.0,) * len(points), strict=True):
                if own:
                    low, high = (area.y + area.height * (1 - up.place(end)) for end in (y - own, y + own))
                    parts.extend(bar(x, low, high, style))
            parts.append(polyline(points, style))
            if marked:
                parts.extend(mark(x, y, style, line.size) for x, y in points)
        return parts


@dataclass(frozen=True)
class Figure:
    title: str
    caption: str
    panels: tuple[Panel, ...]
    width: float = 800.0
    height: float = 300.0  # of a row of panels
    per_row: int | None = None  # panels; None: all of them

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the whole figure."""
        foot = wrapped(self.caption, self.width - 2 * _MARGIN, TEXT)
        return self.width, self._rows()[2] + 16.0 + _LINE * len(foot) + 10.0

    def _rows(self) -> tuple[float, float, float]:
        """Where the rows of panels begin, how much of each their titles take, and where the last one ends."""
        head = wrapped(self.title, self.width - 2 * _MARGIN, 15.0)
        title = 28.0 if any(panel.title for panel in self.panels) else 10.0
        top = 12.0 + 20.0 * len(head)
        rows = -(-len(self.panels) // (self.per_row or len(self.panels)))
        return top, title, top + rows * (title + self.height)

    def svg(self) -> str:
        """The figure as a text that is a file of its own."""
        inner = self.width - 2 * _MARGIN
        head = wrapped(self.title, inner, 15.0)
        foot = wrapped(self.caption, inner, TEXT)
        across = self.per_row or len(self.panels)
        each = (inner - _GAP * (across - 1)) / across
        top, title, bottom = self._rows()
        total = self.size[1]
        parts = [text(_MARGIN, 28.0 + 20.0 * k, line, size=15.0, bold=True) for k, line in enumerate(head)]
        for k, panel in enumerate(self.panels):
            x = _MARGIN + k % across * (each + _GAP)
            y = top + title + k // across * (title + self.height)
            if panel.title:
                parts.append(text(x, y - 10.0, panel.title, size=12.5, bold=True))
            parts.extend(panel.draw(Box(x, y, each, self.height)))
        at = bottom + 16.0 + TEXT
        parts.extend(text(_MARGIN, at + _LINE * k, line, colour=GREY) for k, line in enumerate(foot))
        size = f"{self.width:g} {total:g}"
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{self.width:g}" '
                f'height="{total:g}" role="img" font-family="{_FONT}">',
                f"<title>{printable_html(self.title)}</title>",
                f"<desc>{printable_html(self.caption)}</desc>",
                f'<rect width="{self.width:g}" height="{total:g}" fill="#ffffff"/>',
                *parts,
                "</svg>\n",
            ]
        )


def grid(area: Box, across: Axis, up: Axis) -> list[str]:
    """Ticks with their labels, pale lines, and the two axes."""
    parts = []
    bottom, right = area.y + area.height, area.x + area.width
    for tick in up.ticks:
        y = bottom - area.height * up.place(tick.value)
        parts.append(segment(area.x, y, right, y, PALE))
        parts.append(text(area.x - 6.0, y + 4.0, tick.label, anchor="end", size=11.5))
    for tick in across.ticks:
        x = area.x + area.width * across.place(tick.value)
        parts.append(segment(x, bottom, x, bottom + 4.0, GREY))
        parts.append(text(x, bottom + 17.0, tick.label, anchor="middle", size=11.5))
    for value in across.minor:
        x = area.x + area.width * across.place(value)
        parts.append(segment(x, bottom, x, bottom + 2.5, GREY, 0.8))
    if up.zero:  # what is below this line is zero
        y = bottom - area.height * up.zero
        parts.append(segment(area.x, y, right, y, GREY, dashes="1 4"))
    parts.append(segment(area.x, bottom, right, bottom, GREY))
    parts.append(segment(area.x, area.y, area.x, bottom, GREY))
    return parts


def legend_of(
    names: Sequence[str], styles: Sequence[int], marked: Sequence[bool], box: Box
) -> tuple[list[str], int]:
    """Names with a piece of their line, in rows at the top of the box; and how many rows there are."""
    parts: list[str] = []
    x, row = 0.0, 0
    for name, style, points in zip(names, styles, marked, strict=True):
        width = 34.0 + text_width(name, TEXT)
        if x and x + width > box.width:
            x, row = 0.0, row + 1
        at, y = box.x + x, box.y + 9.0 + row * _LINE
        parts.append(polyline([(at, y), (at + 26.0, y)], style))
        if points:
            parts.append(mark(at + 13.0, y, style))
        parts.append(text(at + 32.0, y + 4.0, name))
        x += width + 16.0
    return parts, row + 1


# pieces of SVG


def number(value: float) -> str:
    """A place on the page, to a hundredth of a pixel."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: float = TEXT,
    anchor: str = "start",
    colour: str = INK,
    bold: bool = False,
    turned: bool = False,
) -> str:
    weight = ' font-weight="600"' if bold else ""
    turn = f' transform="rotate(-90 {number(x)} {number(y)})"' if turned else ""
    return (
        f'<text x="{number(x)}" y="{number(y)}" font-size="{size:g}" text-anchor="{anchor}" '
        f'fill="{colour}"{weight}{turn}>{printable_html(words)}</text>'
    )


def segment(
    x0: float, y0: float, x1: float, y1: float, colour: str, width: float = 1.0, dashes: str = ""
) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    ends = f'x1="{number(x0)}" y1="{number(y0)}" x2="{number(x1)}" y2="{number(y1)}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"{dashed}/>'


def polyline(points: Iterable[tuple[float, float]], style: int, width: float = 1.8) -> str:
    places = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    dashes = _DASHES[style % len(_DASHES)]
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    colour = COLOURS[style % len(COLOURS)]
    return (
        f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="{width:g}" '
        f'stroke-linejoin="round"{dashed}/>'
    )


def bar(x: float, low: float, high: float, style: int) -> list[str]:
    """A bar with two short ends, in the colour of a style."""
    colour = COLOURS[style % len(COLOURS)]
    ends = [segment(x - 3.0, y, x + 3.0, y, colour, 1.2) for y in (low, high)]
    return [segment(x, low, x, high, colour, 1.2), *ends]


def mark(x: float, y: float, style: int, size: float = 3.6) -> str:
    """A small shape in the colour of a style."""
    kind, colour = _MARKS[style % len(_MARKS)], COLOURS[style % len(COLOURS)]
    look = f'fill="#ffffff" stroke="{colour}" stroke-width="1.6"'
    if kind == "circle":
        return f'<circle cx="{number(x)}" cy="{number(y)}" r="{size:g}" {look}/>'
    if kind == "cross":
        ends = [(x - size, y - size, x + size, y + size), (x - size, y + size, x + size, y - size)]
        return "".join(segment(*end, colour, 1.6) for end in ends)
    shapes: dict[str, list[tuple[float, float]]] = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "triangle": [(0, -1.2), (1.15, 0.9), (-1.15, 0.9)],
        "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
    }
    places = " ".join(f"{number(x + size * a)},{number(y + size * b)}" for a, b in shapes[kind])
    return f'<polygon points="{places}" {look}/>'


def text_width(words: str, size: float) -> float:
    """About how wide a text is."""
    return _LETTER * size * len(words)


def wrapped(words: str, width: float, size: float) -> list[str]:
    return textwrap.wrap(words, max(20, int(width / (_LETTER * size))))

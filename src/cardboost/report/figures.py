"""Line charts as SVG, written as plain text: axes, ticks, legend, title and caption.

A figure has panels side by side, in one row or several. Readers who cannot tell the colours apart, or who
print in grey, can tell the series by their dashes, and by their marks where points are few. Nothing refers to
anything outside the text, so that a figure can stand alone or within a page.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from cardboost.model.printable import printable_html

#: blue, vermilion, green, purple, black
COLOURS = ("#0072b2", "#d55e00", "#008a64", "#b0558f", "#222222")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2")
_SHAPES: dict[str, list[tuple[float, float]]] = {
    "circle": [],
    "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
    "triangle": [(0, -1.2), (1.15, 0.9), (-1.15, 0.9)],
    "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
    "cross": [],
}
INK, GREY, PALE = "#222222", "#5a5a5a", "#e2e2e2"
CENTRED: dict[str, Any] = {"text_anchor": "middle"}
BOLD: dict[str, Any] = {"font_weight": "600"}
_FONT = "'Segoe UI', 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_LETTER_WIDTH = 0.56  # mean, in font sizes
_MOST_MARKED_POINTS = 40  # marks of more points would run into each other
_MARGIN, _GAP, _LINE_HEIGHT = 16.0, 26.0, 17.0
TEXT_SIZE, TICK_SIZE, TITLE_SIZE = 12.0, 11.5, 15.0

Position = tuple[float, float]
Kind = Literal["linear", "log"]
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Box:
    """A rectangle on the page."""

    x: float
    y: float
    width: float
    height: float


class Panel(Protocol):
    """One of the drawings that a figure puts side by side."""

    @property
    def title(self) -> str: ...

    def draw(self, box: Box) -> list[str]:
        """Elements of SVG within the box; the title is not among them."""


class PlotArea:
    """The rectangle between two axes, within a box that also holds ticks, labels and ``top`` for a legend."""

    def __init__(
        self, box: Box, across: Axis, up: Axis, top: float = 2.0, right: float = 10.0, bottom: float = 44.0
    ) -> None:
        left = 26.0 + max(text_width(tick.label, TICK_SIZE) for tick in up.ticks)
        self.outer, self.across, self.up = box, across, up
        self.area = Box(box.x + left, box.y + top, box.width - left - right, box.height - top - bottom)

    def position(self, x: float, y: float) -> Position:
        """The position of a pair of values on the page."""
        area, across, up = self.area, self.across.position(x), self.up.position(y)
        return area.x + area.width * across, area.y + area.height * (1 - up)

    def frame(self, x_label: str, y_label: str) -> list[str]:
        """Ticks with their labels, pale grid lines, and the two axes."""
        area, outer, across, up = self.area, self.outer, self.across, self.up
        bottom, right = area.y + area.height, area.x + area.width
        parts = []
        for tick in up.ticks:
            y = bottom - area.height * up.position(tick.value)
            parts.append(segment(area.x, y, right, y, PALE))
            parts.append(text(area.x - 6.0, y + 4.0, tick.label, TICK_SIZE, text_anchor="end"))
        for tick in across.ticks:
            x = area.x + area.width * across.position(tick.value)
            parts.append(segment(x, bottom, x, bottom + 4.0, GREY))
            parts.append(text(x, bottom + 17.0, tick.label, TICK_SIZE, **CENTRED))
        for value in across.minor:
            x = area.x + area.width * across.position(value)
            parts.append(segment(x, bottom, x, bottom + 2.5, GREY, 0.8))
        if up.zero:  # values below this line are zero
            y = bottom - area.height * up.zero
            parts.append(segment(area.x, y, right, y, GREY, dashes="1 4"))
        middle = area.y + area.height / 2
        turn = f"rotate(-90 {number(outer.x + 11.0)} {number(middle)})"
        return [
            *parts,
            segment(area.x, bottom, right, bottom, GREY),
            segment(area.x, area.y, area.x, bottom, GREY),
            text(area.x + area.width / 2, outer.y + outer.height - 6.0, x_label, **CENTRED),
            text(outer.x + 11.0, middle, y_label, **CENTRED, transform=turn),
        ]


@dataclass(frozen=True)
class Series:
    """Points of a chart, joined by a line.

    ``style`` decides colour, dashes and marks; by default the series of a chart are numbered. ``spread``:
    half the length of the error bar of every point. ``size``: of the marks.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: int | None = None
    spread: tuple[float, ...] = ()
    size: float = 3.6

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or not self.x:
            raise ValueError(f"series {self.name!r} needs as many values of x as of y, and one at least.")
        if self.spread and (len(self.spread) != len(self.y) or min(self.spread) < 0):
            raise ValueError(f"series {self.name!r} needs a spread of at least 0 for every point, or none.")

    @property
    def marked(self) -> bool:
        """Whether every point has a mark."""
        return len(self.x) <= _MOST_MARKED_POINTS

    def ends(self) -> tuple[float, ...]:
        """All values that the axis must hold."""
        bars = list(zip(self.y, self.spread, strict=False))
        return (*(y - half for y, half in bars), *(y + half for y, half in bars)) if bars else self.y


@dataclass(frozen=True)
class Chart:
    """Series over two axes; ``counts``: the values of y are numbers of things."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_scale: Kind = "linear"
    y_scale: Kind = "linear"
    counts: bool = False

    def draw(self, box: Box) -> list[str]:
        across = axis_for((x for series in self.series for x in series.x), self.x_scale, most=6)
        up = axis_for((y for series in self.series for y in series.ends()), self.y_scale, counts=self.counts)
        legend, rows = legend_of(self.series, box) if len(self.series) > 1 else ([], 0)
        plot = PlotArea(box, across, up, top=rows * _LINE_HEIGHT + (8.0 if rows else 2.0))
        parts = [*legend, *plot.frame(self.x_label, self.y_label)]
        for style, series in numbered(self.series):
            for x, y, half in zip(series.x, series.y, series.spread, strict=False):
                if half:
                    parts.extend(bar(plot.position(x, y - half), plot.position(x, y + half), style))
            points = list(map(plot.position, series.x, series.y))
            parts.append(polyline(points, style))
            if series.marked:
                parts.extend(mark(x, y, style, series.size) for x, y in points)
        return parts


@dataclass(frozen=True)
class Figure:
    """Panels under a title and above a caption."""

    title: str
    caption: str
    panels: tuple[Panel, ...]
    width: float = 800.0
    height: float = 300.0  # of a row of panels
    per_row: int | None = None  # panels; None: all of them

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the whole figure."""
        foot = wrapped(self.caption, self.width - 2 * _MARGIN, TEXT_SIZE)
        return self.width, self._rows()[2] + 16.0 + _LINE_HEIGHT * len(foot) + 10.0

    def _rows(self) -> tuple[float, float, float]:
        """The top of the first row of panels, the height of their titles, and the bottom of the last row."""
        head = wrapped(self.title, self.width - 2 * _MARGIN, TITLE_SIZE)
        title = 28.0 if any(panel.title for panel in self.panels) else 10.0
        top = 12.0 + 20.0 * len(head)
        rows = -(-len(self.panels) // (self.per_row or len(self.panels)))
        return top, title, top + rows * (title + self.height)

    def svg(self) -> str:
        """The figure as the text of an SVG file."""
        inner = self.width - 2 * _MARGIN
        across = self.per_row or len(self.panels)
        panel_width = (inner - _GAP * (across - 1)) / across
        top, title, bottom = self._rows()
        parts = [
            text(_MARGIN, 28.0 + 20.0 * k, line, TITLE_SIZE, **BOLD)
            for k, line in enumerate(wrapped(self.title, inner, TITLE_SIZE))
        ]
        for k, panel in enumerate(self.panels):
            x = _MARGIN + k % across * (panel_width + _GAP)
            y = top + title + k // across * (title + self.height)
            if panel.title:
                parts.append(text(x, y - 10.0, panel.title, 12.5, **BOLD))
            parts.extend(panel.draw(Box(x, y, panel_width, self.height)))
        for k, line in enumerate(wrapped(self.caption, inner, TEXT_SIZE)):
            parts.append(text(_MARGIN, bottom + 16.0 + TEXT_SIZE + _LINE_HEIGHT * k, line, fill=GREY))
        width, height = (f"{length:g}" for length in self.size)
        head = [
            element("title", printable_html(self.title)),
            element("desc", printable_html(self.caption)),
            element("rect", width=width, height=height, fill="#ffffff"),
        ]
        view = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height, "role": "img"}
        content = "\n".join(["", *head, *parts, ""])
        return element("svg", content, xmlns="http://www.w3.org/2000/svg", **view, font_family=_FONT) + "\n"


def legend_of(series: Sequence[Series], box: Box) -> tuple[list[str], int]:
    """Names with a piece of their line, in rows at the top of the box; and how many rows there are."""
    parts: list[str] = []
    offset, row = 0.0, 0
    for style, line in numbered(series):
        width = 34.0 + text_width(line.name, TEXT_SIZE)
        if offset and offset + width > box.width:
            offset, row = 0.0, row + 1
        x, y = box.x + offset, box.y + 9.0 + row * _LINE_HEIGHT
        parts.append(polyline([(x, y), (x + 26.0, y)], style))
        if line.marked:
            parts.append(mark(x + 13.0, y, style))
        parts.append(text(x + 32.0, y + 4.0, line.name))
        offset += width + 16.0
    return parts, row + 1


def numbered(series: Sequence[Series]) -> list[tuple[int, Series]]:
    """Every series with its style."""
    return [(k if line.style is None else line.style, line) for k, line in enumerate(series)]


# pieces of SVG


def element(tag: str, content: str | None = None, **attributes: str | float | None) -> str:
    """An element of SVG; attributes that are None are left out, and numbers go to a hundredth of a pixel."""
    words = [f"<{tag}"]
    for name, value in attributes.items():
        if value is not None:
            shown = value if isinstance(value, str) else number(value)
            words.append(f'{name.replace("_", "-")}="{shown}"')
    return " ".join(words) + ("/>" if content is None else f">{content}</{tag}>")


def number(value: float) -> str:
    """A coordinate, to a hundredth of a pixel."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text(x: float, y: float, words: str, size: float = TEXT_SIZE, **look: str) -> str:
    """Words that begin at a point; ``look`` has other attributes, such as ``text_anchor``."""
    look = {"text_anchor": "start", "fill": INK} | look
    return element("text", printable_html(words), x=x, y=y, font_size=size, **look)


def segment(
    x0: float, y0: float, x1: float, y1: float, colour: str, width: float = 1.0, dashes: str = ""
) -> str:
    look: dict[str, Any] = {"stroke": colour, "stroke_width": width, "stroke_dasharray": dashes or None}
    return element("line", x1=x0, y1=y0, x2=x1, y2=y1, **look)


def polyline(points: Iterable[Position], style: int, width: float = 1.8) -> str:
    look: dict[str, Any] = {"stroke": colour_of(style), "stroke_width": width, "stroke_linejoin": "round"}
    dashes = _DASHES[style % len(_DASHES)] or None
    return element("polyline", points=corners(points), fill="none", **look, stroke_dasharray=dashes)


def bar(low: Position, high: Position, style: int) -> list[str]:
    """A bar with two short ends."""
    colour, x = colour_of(style), low[0]
    ends = [segment(x - 3.0, y, x + 3.0, y, colour, 1.2) for y in (low[1], high[1])]
    return [segment(x, low[1], x, high[1], colour, 1.2), *ends]


def mark(x: float, y: float, style: int, size: float = 3.6) -> str:
    """A small shape in the colour of a style."""
    shape, colour = list(_SHAPES)[style % len(_SHAPES)], colour_of(style)
    look: dict[str, Any] = {"fill": "#ffffff", "stroke": colour, "stroke_width": 1.6}
    if shape == "circle":
        return element("circle", cx=x, cy=y, r=size, **look)
    if shape == "cross":
        ends = [(x - size, y - size, x + size, y + size), (x - size, y + size, x + size, y - size)]
        return "".join(segment(*end, colour, 1.6) for end in ends)
    return element("polygon", points=corners((x + size * a, y + size * b) for a, b in _SHAPES[shape]), **look)


def corners(points: Iterable[Position]) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in points)


def colour_of(style: int) -> str:
    return COLOURS[style % len(COLOURS)]


def text_width(words: str, size: float) -> float:
    """The approximate width of a text."""
    return _LETTER_WIDTH * size * len(words)


def wrapped(words: str, width: float, size: float) -> list[str]:
    return textwrap.wrap(words, max(20, int(width / (_LETTER_WIDTH * size))))


# axes: scales, ticks that read well, and their labels


@dataclass(frozen=True)
class Tick:
    value: float
    label: str


@dataclass(frozen=True)
class Axis:
    """A range of values, as positions from 0 to 1.

    On a log scale zeros have a lane of their own, below all other values: ``zero`` is its share of the axis.
    """

    kind: Kind
    low: float
    high: float
    ticks: tuple[Tick, ...]
    zero: float = 0.0
    minor: tuple[float, ...] = ()  # between the ticks, without a label

    def position(self, value: float) -> float:
        if self.kind == "linear":
            return (value - self.low) / (self.high - self.low)
        if value == 0:
            return self.zero / 2
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.zero + (1 - self.zero) * share


def axis_for(values: Iterable[float], kind: Kind = "linear", *, most: int = 6, counts: bool = False) -> Axis:
    """An axis that holds these values with a little room, and has about ``most`` ticks.

    ``counts``: the values are whole numbers; so are the ticks, and a linear axis begins at 0.
    """
    values = [float(value) for value in values]
    if not values:
        raise ValueError("there is nothing to draw: an axis needs values.")
    if not all(map(math.isfinite, values)):
        raise ValueError("an axis cannot show values that are not finite.")
    if kind == "log":
        return _log(values, most)
    return _linear(min(values), max(values), most, counts)


def _linear(low: float, high: float, most: int, counts: bool) -> Axis:
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # one value: room on both sides
        room = 0.5 * abs(low) or 1.0
    else:
        room = 0.04 * (high - low)
    low, high = min(low - room, 0.0) if counts else low - room, high + room
    step = nice_step((high - low) / most)
    if counts:
        low, step = max(low, 0.0), max(step, 1.0)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    largest = max(abs(low), abs(high))
    digits = max(0, math.ceil(math.log10(largest / step)))

    def label(value: float) -> str:
        return plain(value, decimals) if 1e-4 <= largest < 1e7 else power_of_ten(value, digits)

    return Axis("linear", low, high, tuple(Tick(k * step, label(k * step)) for k in range(first, last + 1)))


def nice_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= least * (1 - 1e-9))


def _log(values: list[float], most: int) -> Axis:
    if min(values) < 0:
        raise ValueError("a log scale cannot show values below 0.")
    positive = [value for value in values if value > 0] or [1.0]
    room = max((max(positive) / min(positive)) ** 0.04, 1.05)
    low, high = min(positive) / room, max(positive) * room
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, math.ceil((last - first) / most))
    few = last - first < 2
    powers = range(first - 1, last + 1) if few else (k for k in range(first, last + 1) if k % every == 0)
    marks = _decimals(powers, (1, 2, 5) if few else (1,), low, high)
    marks = marks or [float(f"{math.sqrt(low * high):.2g}")]
    minor = [] if few or every > 1 else _decimals(range(first - 1, last + 1), range(2, 10), low, high)
    label = plain if marks[0] >= 1e-4 and marks[-1] <= 1e4 else power_of_ten
    ticks = [Tick(value, label(value)) for value in marks]
    if min(values) > 0:
        return Axis("log", low, high, tuple(ticks), minor=tuple(minor))
    return Axis("log", low, high, (Tick(0.0, "0"), *ticks), 0.1, tuple(minor))


def _decimals(powers: Iterable[int], digits: Iterable[int], low: float, high: float) -> list[float]:
    """Numbers of one digit times a power of ten, within a range."""
    numbers = [float(f"{digit}e{power}") for power in powers for digit in digits]
    return [value for value in numbers if low <= value <= high]


def plain(value: float, decimals: int | None = None) -> str:
    """A number with a true minus sign, without needless zeros where the decimals are not given."""
    text = f"{value:.10f}".rstrip("0").rstrip(".") if decimals is None else f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "−")


def power_of_ten(value: float, decimals: int = 1) -> str:
    """2·10⁻⁷, or 10⁻⁷."""
    if value == 0:
        return "0"
    digits, _, exponent = f"{value:.{decimals}e}".partition("e")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    return power if digits == "1" else f"{digits}·{power}".replace("-", "−")

"""Panels of the papers' figures: errors against sizes, and the path of three weights in their triangle."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from cardboost.report import figures as svg
from cardboost.report.figures import Box, PlotArea, Position, axis_for

ThreeWeights = tuple[float, float, float]

_PARTS = 60  # of an edge of the triangle, for contours
_CONTOURS = 12  # lines of equal value


@dataclass(frozen=True)
class Side:
    """``points``: (size, error) of every ensemble shown; ``steps``: corners of the frontier, sizes rising."""

    name: str
    points: tuple[Position, ...]
    steps: tuple[Position, ...]

    def below(self, top: float) -> Side:
        """Without points and steps above an error."""
        kept = [tuple(p for p in part if p[1] <= top) for part in (self.points, self.steps)]
        return Side(self.name, *kept)


@dataclass(frozen=True)
class FrontierPanel:
    """Ensembles of several sides as points, and the least error that each side reaches as steps.

    ``tags``: points to which a table refers. Points above the error ``top`` are left out.
    """

    title: str
    x_label: str
    y_label: str
    sides: tuple[Side, ...]
    tags: tuple[tuple[str, Position], ...] = ()
    top: float = float("inf")

    def draw(self, box: Box) -> list[str]:
        sides = [side.below(self.top) for side in self.sides]
        tags = [(name, point) for name, point in self.tags if point[1] <= self.top]
        points = [point for side in sides for point in (*side.points, *side.steps)]
        points += [point for _, point in tags]
        if not points:
            return [svg.text(box.x + box.width / 2, box.y + box.height / 2, "no points", **svg.CENTRED)]
        across = axis_for([0.0, *(x for x, _ in points)], most=5)
        plot = PlotArea(box, across, axis_for((y for _, y in points), most=5), right=8.0, bottom=42.0)
        parts = plot.frame(self.x_label, self.y_label)
        for style, side in enumerate(sides):
            parts.extend(_dot(*plot.position(*point), style) for point in side.points)
        largest = max(x for x, _ in points)
        for style, side in enumerate(sides):
            if side.steps:
                stairs = _staircase(side.steps, largest)
                parts.append(svg.polyline([plot.position(*point) for point in stairs], style))
        for name, point in tags:
            x, y = plot.position(*point)
            parts.append(svg.mark(x, y, 1, 3.4))
            parts.append(svg.text(x, y - 7.0, name, svg.TICK_SIZE, **svg.CENTRED, **svg.BOLD))
        return parts


def _staircase(steps: tuple[Position, ...], largest: float) -> list[Position]:
    """Corners of a line that stays level until the next step, and after the last one."""
    corners = [steps[0]]
    for x, y in steps[1:]:
        corners += [(x, corners[-1][1]), (x, y)]
    return [*corners, (largest, corners[-1][1])]


def _dot(x: float, y: float, style: int) -> str:
    """A small shape without an outline: circles and squares, for eyes that cannot tell the colours apart."""
    look = {"fill": svg.colour_of(style), "fill_opacity": "0.45"}
    if style % 2 == 0:
        return svg.element("circle", cx=x, cy=y, r=2.2, **look)
    return svg.element("rect", x=x - 2.1, y=y - 2.1, width=4.2, height=4.2, **look)


@dataclass(frozen=True)
class SimplexPath:
    """Steps of three weights as shares of their sum, over lines of equal value of a function."""

    title: str
    path: tuple[ThreeWeights, ...]
    corners: tuple[str, str, str]
    value: Callable[[ThreeWeights], float]

    def draw(self, box: Box) -> list[str]:
        side = min(box.width - 30.0, (box.height - 44.0) * 2 / math.sqrt(3))
        left = box.x + (box.width - side) / 2
        bottom = box.y + box.height - 24.0
        top = bottom - side * math.sqrt(3) / 2

        def position(point: ThreeWeights) -> Position:
            """First corner at the left, second at the right, third at the top."""
            return left + side * (point[1] + point[2] / 2), bottom - (bottom - top) * point[2]

        parts = [self._contours(position)]
        corners = [position((1, 0, 0)), position((0, 1, 0)), position((0, 0, 1))]
        parts.extend(svg.segment(*corners[k], *corners[(k + 1) % 3], svg.INK, 1.2) for k in range(3))
        heights = (bottom + 18.0, bottom + 18.0, top - 9.0)
        for (x, _), y, name in zip(corners, heights, self.corners, strict=True):
            parts.append(svg.text(x, y, name, **svg.CENTRED))
        points = [position(point) for point in self.path]
        parts.append(svg.polyline(points, 0, 2.2))
        parts.extend(svg.mark(x, y, 0, 4.2) for x, y in points)
        middle = (sum(x for x, _ in corners) / 3, sum(y for _, y in corners) / 3)
        taken = [*points, *_between(points)]
        taken += [(x + shift, bottom + 14.0) for x, _ in corners[:2] for shift in (-18.0, 0.0, 18.0)]
        for k, (x, y) in enumerate(points):
            label = _free_position(x, y, math.atan2(y - middle[1], x - middle[0]), taken)
            taken.append(label)
            parts.append(svg.text(label[0], label[1] + 4.0, str(k), **svg.CENTRED, **svg.BOLD))
        return parts

    def _contours(self, position: Callable[[ThreeWeights], Position]) -> str:
        """Lines of equal value, piece by piece in the small triangles of a grid."""
        n = _PARTS
        grid = {(a, b): (a / n, b / n, (n - a - b) / n) for a in range(n + 1) for b in range(n + 1 - a)}
        values = {key: self.value(point) for key, point in grid.items()}
        low, high = min(values.values()), max(values.values())
        levels = [low + (high - low) * (k + 0.5) / _CONTOURS for k in range(_CONTOURS)]
        pieces = []
        for a, b in grid:
            for triangle in (((a, b), (a + 1, b), (a, b + 1)), ((a + 1, b), (a, b + 1), (a + 1, b + 1))):
                if not all(corner in grid for corner in triangle):
                    continue
                for level in levels:
                    cuts = []
                    for start, end in pairwise((*triangle, triangle[0])):
                        if (values[start] < level) != (values[end] < level):
                            share = (level - values[start]) / (values[end] - values[start])
                            p, q = position(grid[start]), position(grid[end])
                            cuts.append((p[0] + share * (q[0] - p[0]), p[1] + share * (q[1] - p[1])))
                    if cuts:
                        (x0, y0), (x1, y1) = cuts
                        pieces.append(f"M{svg.number(x0)} {svg.number(y0)}L{svg.number(x1)} {svg.number(y1)}")
        return svg.element("path", d="".join(pieces), fill="none", stroke=svg.PALE, stroke_width=1.4)


def _free_position(x: float, y: float, direction: float, taken: list[Position]) -> Position:
    """A position beside a point that is clear of those taken: in a direction, or the next best one."""
    turns = [sign * k * math.pi / 6 for k in range(7) for sign in (1, -1)]
    choices = [
        (x + far * math.cos(direction + turn), y + far * math.sin(direction + turn))
        for far in (14.0, 20.0)
        for turn in turns
    ]

    def room(choice: Position) -> float:
        return min(math.dist(choice, other) for other in taken)

    return next((choice for choice in choices if room(choice) >= 11.5), max(choices, key=room))


def _between(points: list[Position]) -> list[Position]:
    """Positions along the path."""
    return [
        (a + (c - a) * k / 8, b + (d - b) * k / 8) for (a, b), (c, d) in pairwise(points) for k in range(1, 8)
    ]

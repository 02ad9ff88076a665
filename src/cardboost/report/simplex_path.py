"""The path of three weights of a given sum, drawn in the triangle that they live in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from cardboost.report.figures import INK, PALE, Box, mark, number, polyline, segment, text

Point = tuple[float, float, float]

_PARTS = 60  # of an edge, for contours
_LEVELS = 12


@dataclass(frozen=True)
class SimplexPath:
    """Steps of three weights as shares of their sum, over lines of equal value of a function."""

    title: str
    path: tuple[Point, ...]
    corners: tuple[str, str, str]
    value: Callable[[Point], float]

    def draw(self, box: Box) -> list[str]:
        side = min(box.width - 30.0, (box.height - 44.0) * 2 / math.sqrt(3))
        left = box.x + (box.width - side) / 2
        bottom = box.y + box.height - 24.0
        top = bottom - side * math.sqrt(3) / 2

        def place(point: Point) -> tuple[float, float]:
            """First corner at the left, second at the right, third at the top."""
            return left + side * (point[1] + point[2] / 2), bottom - (bottom - top) * point[2]

        parts = [self._contours(place)]
        edges = [place((1, 0, 0)), place((0, 1, 0)), place((0, 0, 1))]
        parts.extend(segment(*edges[k], *edges[(k + 1) % 3], INK, 1.2) for k in range(3))
        parts.append(text(edges[0][0], bottom + 18.0, self.corners[0], anchor="middle"))
        parts.append(text(edges[1][0], bottom + 18.0, self.corners[1], anchor="middle"))
        parts.append(text(edges[2][0], top - 9.0, self.corners[2], anchor="middle"))
        places = [place(point) for point in self.path]
        parts.append(polyline(places, 0, 2.2))
        parts.extend(mark(x, y, 0, 4.2) for x, y in places)
        middle = (sum(x for x, _ in edges) / 3, sum(y for _, y in edges) / 3)
        taken = [*places, *((x + shift, bottom + 14.0) for x, _ in edges[:2] for shift in (-18.0, 0.0, 18.0))]
        for k, (x, y) in enumerate(places):
            at = _free(x, y, math.atan2(y - middle[1], x - middle[0]), [*taken, *_between(places)])
            taken.append(at)
            parts.append(text(at[0], at[1] + 4.0, str(k), anchor="middle", bold=True))
        return parts

    def _contours(self, place: Callable[[Point], tuple[float, float]]) -> str:
        """Lines of equal value, found in the small triangles of a grid."""
        n = _PARTS
        grid = {(a, b): (a / n, b / n, (n - a - b) / n) for a in range(n + 1) for b in range(n + 1 - a)}
        values = {key: self.value(point) for key, point in grid.items()}
        low, high = min(values.values()), max(values.values())
        levels = [low + (high - low) * (k + 0.5) / _LEVELS for k in range(_LEVELS)]
        pieces = []
        for a, b in grid:
            for triangle in (((a, b), (a + 1, b), (a, b + 1)), ((a + 1, b), (a, b + 1), (a + 1, b + 1))):
                if not all(corner in grid for corner in triangle):
                    continue
                for level in levels:
                    cuts = []
                    for one, other in ((0, 1), (1, 2), (2, 0)):
                        v, u = values[triangle[one]], values[triangle[other]]
                        if (v < level) != (u < level):
                            share = (level - v) / (u - v)
                            p, q = place(grid[triangle[one]]), place(grid[triangle[other]])
                            cuts.append((p[0] + share * (q[0] - p[0]), p[1] + share * (q[1] - p[1])))
                    if len(cuts) == 2:
                        (x0, y0), (x1, y1) = cuts
                        pieces.append(f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}")
        return f'<path d="{"".join(pieces)}" fill="none" stroke="{PALE}" stroke-width="1.4"/>'


def _free(x: float, y: float, towards: float, taken: list[tuple[float, float]]) -> tuple[float, float]:
    """A place beside a point that is clear of what is there: the direction given, or the next best one."""
    turns = [sign * k * math.pi / 6 for k in range(7) for sign in (1, -1)]
    choices = [
        (x + far * math.cos(towards + turn), y + far * math.sin(towards + turn))
        for far in (14.0, 20.0)
        for turn in turns
    ]

    def room(at: tuple[float, float]) -> float:
        return min(math.hypot(at[0] - a, at[1] - b) for a, b in taken)

    return next((at for at in choices if room(at) >= 11.5), max(choices, key=room))


def _between(places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points along the path."""
    return [
        (a + (c - a) * k / 8, b + (d - b) * k / 8) for (a, b), (c, d) in pairwise(places) for k in range(1, 8)
    ]

"""Error against size of sides: their ensembles as points, what each can reach as a line of steps."""

from __future__ import annotations

from dataclasses import dataclass

from cardboost.report.axes import axis_for
from cardboost.report.figures import COLOURS, INK, Box, grid, mark, number, polyline, text, text_width

Place = tuple[float, float]


@dataclass(frozen=True)
class Side:
    """``points``: (size, error) of all ensembles shown; ``steps``: corners of the frontier, sizes rising."""

    name: str
    points: tuple[Place, ...]
    steps: tuple[Place, ...]


@dataclass(frozen=True)
class FrontierPanel:
    """Sides over the same axes. ``tags``: points that a table speaks of.

    What is above the error ``top`` is left out.
    """

    title: str
    x_label: str
    y_label: str
    sides: tuple[Side, ...]
    tags: tuple[tuple[str, Place], ...] = ()
    top: float = float("inf")

    def draw(self, box: Box) -> list[str]:
        shown = [
            [at for at in (*side.points, *side.steps, *(at for _, at in self.tags)) if at[1] <= self.top]
            for side in self.sides
        ]
        every = [at for side in shown for at in side]
        if not every:
            return [text(box.x + box.width / 2, box.y + box.height / 2, "no points", anchor="middle")]
        largest = max(x for x, _ in every)
        across, up = axis_for([0.0, *(x for x, _ in every)], most=5), axis_for((y for _, y in every), most=5)
        left = 26.0 + max(text_width(tick.label, 11.5) for tick in up.ticks)
        area = Box(box.x + left, box.y + 2.0, box.width - left - 8.0, box.height - 44.0)

        def place(at: Place) -> Place:
            return area.x + area.width * across.place(at[0]), area.y + area.height * (1 - up.place(at[1]))

        parts = grid(area, across, up)
        parts.append(text(area.x + area.width / 2, box.y + box.height - 6.0, self.x_label, anchor="middle"))
        parts.append(text(box.x + 11.0, area.y + area.height / 2, self.y_label, anchor="middle", turned=True))
        for style, side in enumerate(self.sides):
            parts.extend(_dot(*place(at), style) for at in side.points if at[1] <= self.top)
        for style, side in enumerate(self.sides):
            corners = _corners([at for at in side.steps if at[1] <= self.top], largest)
            if corners:
                parts.append(polyline([place(at) for at in corners], style))
        for name, at in self.tags:
            if at[1] <= self.top:
                x, y = place(at)
                parts.append(mark(x, y, 1, 3.4))
                parts.append(text(x, y - 7.0, name, anchor="middle", colour=INK, bold=True, size=11.5))
        return parts


def _corners(steps: list[Place], largest: float) -> list[Place]:
    """A line that stays level until the next step, and after the last one."""
    found: list[Place] = []
    for x, y in steps:
        if found:
            found.append((x, found[-1][1]))
        found.append((x, y))
    return [*found, (largest, found[-1][1])] if found else []


def _dot(x: float, y: float, style: int) -> str:
    """A small shape without an outline: circles and squares, for eyes that cannot tell the colours apart."""
    colour = COLOURS[style % len(COLOURS)]
    look = f'fill="{colour}" fill-opacity="0.45"'
    if style % 2 == 0:
        return f'<circle cx="{number(x)}" cy="{number(y)}" r="2.2" {look}/>'
    return f'<rect x="{number(x - 2.1)}" y="{number(y - 2.1)}" width="4.2" height="4.2" {look}/>'

"""The picture of docs/losses.md: every loss of the margin over the step that it stands in for."""

from __future__ import annotations

import numpy as np

from cardboost.problem.losses import MARGIN_LOSSES, SmoothHinge
from cardboost.report.figures import Chart, Figure, Line

_FROM, _TO, _TOP, _POINTS = -2.0, 2.5, 4.0, 181
_STEP_STYLE = 4


def loss_figure() -> str:
    """The figure as SVG."""
    step = Line("errors (zero-one)", (_FROM, 0.0, 0.0, _TO), (1.0, 1.0, 0.0, 0.0), _STEP_STYLE)
    names = [name for name in MARGIN_LOSSES if name != SmoothHinge.name]
    lines = tuple(_line(name, style) for style, name in enumerate(names))
    chart = Chart("", "margin y f(x)", "loss, divided by its value at 0", (*lines, step))
    return Figure(
        "Losses of the margin, and the number of errors",
        "Each loss is divided by its value at the margin 0 (ln 2 for the logistic loss, 1 for the others). "
        "So scaled, each lies above the step of the zero-one loss: its mean bounds the share of errors.",
        (chart,),
        width=720.0,
        height=380.0,
    ).svg()


def _line(name: str, style: int) -> Line:
    """A loss as far as it fits into the picture."""
    loss = MARGIN_LOSSES[name]
    z = np.linspace(_FROM, _TO, _POINTS)
    value = loss.rows(z) * loss.surrogate_factor
    shown = value <= _TOP
    return Line(name.replace("_", " "), tuple(z[shown].tolist()), tuple(value[shown].tolist()), style)

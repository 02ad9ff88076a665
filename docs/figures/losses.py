"""The figure of docs/losses.md: every loss of the margin above the zero-one loss.

``python docs/figures/losses.py > docs/figures/losses.svg`` draws it again.
"""

from __future__ import annotations

import numpy as np

from cardboost.problem.losses import MARGIN_LOSSES, SmoothHinge
from cardboost.report.figures import Chart, Figure, Series

_FIRST_MARGIN, _LAST_MARGIN, _HIGHEST_LOSS, _POINTS = -2.0, 2.5, 4.0, 181
_STEP_STYLE = 4


def loss_figure() -> str:
    """The figure as SVG."""
    step = Series(
        "errors (zero-one)", (_FIRST_MARGIN, 0.0, 0.0, _LAST_MARGIN), (1.0, 1.0, 0.0, 0.0), _STEP_STYLE
    )
    names = [name for name in MARGIN_LOSSES if name != SmoothHinge.name]
    series = tuple(_series(name, style) for style, name in enumerate(names))
    chart = Chart("", "margin y f(x)", "loss, divided by its value at 0", (*series, step))
    return Figure(
        "Losses of the margin, and the number of errors",
        "Each loss is divided by its value at the margin 0 (ln 2 for the logistic loss, 1 for the others). "
        "So scaled, each lies above the step of the zero-one loss: its mean bounds the share of errors.",
        (chart,),
        width=720.0,
        height=380.0,
    ).svg()


def _series(name: str, style: int) -> Series:
    """A loss, as far as it fits into the figure."""
    loss = MARGIN_LOSSES[name]
    z = np.linspace(_FIRST_MARGIN, _LAST_MARGIN, _POINTS)
    value = loss.rows(z) * loss.surrogate_factor
    shown = value <= _HIGHEST_LOSS
    return Series(name.replace("_", " "), tuple(z[shown].tolist()), tuple(value[shown].tolist()), style)


if __name__ == "__main__":
    print(loss_figure(), end="")

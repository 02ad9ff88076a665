"""The picture in the documents is the one that the code draws."""

from __future__ import annotations

import runpy
from pathlib import Path

STORED = Path(__file__).parents[2] / "docs" / "figures" / "losses.svg"
loss_figure = runpy.run_path(str(STORED.with_suffix(".py")))["loss_figure"]


def test_the_stored_picture_is_the_one_that_is_drawn():
    assert STORED.read_text(encoding="utf-8") == loss_figure()


def test_every_loss_has_a_line():
    drawn = loss_figure()
    for name in ("exponential", "logistic", "squared hinge", ">hinge<", "errors (zero-one)"):
        assert name in drawn

"""Reading the lines of a printed card as a person would."""

from __future__ import annotations

import math
import re


def read_rows(card: str) -> dict[str, list[tuple[str, float]]]:
    """The lines of every feature: interval text and points."""
    blocks: dict[str, list[tuple[str, float]]] = {}
    for block in card.split("\n\nHow to read")[0].split("\n\n")[2:]:
        name, *rows = block.splitlines()
        found = [re.fullmatch(r" {4}(\S.*?) {2,}([-+]?[\d.]+(?:e[-+]\d+)?)( +[#|]+)?", row) for row in rows]
        assert all(found), rows
        blocks[name] = [(match[1], float(match[2])) for match in found if match]
    return blocks


def look_up(rows: list[tuple[str, float]], x: float) -> float:
    """The points of a value, as a reader of the card would find them."""
    for text, points in rows:
        if math.isnan(x):
            if "missing" in text:
                return points
            continue
        bounds = re.findall(r"(<=|>) +([-+.e\d]+)", text)
        if text != "missing" and all(x <= float(b) if op == "<=" else x > float(b) for op, b in bounds):
            return points
    raise AssertionError((rows, x))

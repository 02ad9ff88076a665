"""Draws which room of the package imports which, as docs/figures/imports.svg.

Rooms stand in layers: a room imports only rooms of lower layers. An arrow that follows from others is left
out. Run it as `python scripts/import_graph.py`.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, FIGURE = ROOT / "src" / "cardboost", ROOT / "docs" / "figures" / "imports.svg"
WIDTH, HEIGHT, GAP, LAYER = 104, 30, 22, 74  # of a box, between boxes, and from layer to layer


def imports() -> dict[str, set[str]]:
    """For every room the rooms that it imports."""
    rooms = {path.parent.name: set() for path in PACKAGE.glob("*/__init__.py")}
    for room, needs in rooms.items():
        for path in (PACKAGE / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cardboost."):
                    needs.add(str(node.module).split(".")[1])
        needs &= set(rooms) - {room}
    return rooms


def layers(graph: dict[str, set[str]]) -> list[list[str]]:
    """The rooms from the ground floor up; a ValueError names those of a circle."""
    floors: list[list[str]] = []
    below: set[str] = set()
    while len(below) < len(graph):
        floor = sorted(room for room, needs in graph.items() if room not in below and needs <= below)
        if not floor:
            raise ValueError(f"these rooms import each other: {sorted(set(graph) - below)}")
        floors.append(floor)
        below |= set(floor)
    return floors


def reachable(graph: dict[str, set[str]], room: str) -> set[str]:
    """All rooms below a room."""
    return graph[room].union(*(reachable(graph, need) for need in graph[room]))


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without the imports that follow from others."""
    return {
        room: {need for need in needs if not any(need in reachable(graph, other) for other in needs - {need})}
        for room, needs in graph.items()
    }


def draw(graph: dict[str, set[str]]) -> str:
    """The graph as SVG."""
    floors = layers(graph)
    widest = max(map(len, floors))
    width, height = widest * (WIDTH + GAP) + GAP, len(floors) * LAYER + GAP
    centre = {}
    for level, floor in enumerate(reversed(floors)):
        left = (width - len(floor) * (WIDTH + GAP) + GAP) / 2
        for k, room in enumerate(floor):
            centre[room] = left + k * (WIDTH + GAP) + WIDTH / 2, GAP + level * LAYER + HEIGHT / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="13" role="img" aria-label="Which room imports which">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>',
    ]
    for room, needs in sorted(reduced(graph).items()):
        for need in sorted(needs):
            (x0, y0), (x1, y1) = centre[room], centre[need]
            top, bottom = y0 + HEIGHT / 2, y1 - HEIGHT / 2
            bend = (bottom - top) / 2
            parts.append(
                f'<path d="M{x0:g} {top:g}C{x0:g} {top + bend:g} {x1:g} {bottom - bend:g} {x1:g} {bottom:g}" '
                'fill="none" stroke="#99a" marker-end="url(#tip)"/>'
            )
    for room, (x, y) in sorted(centre.items()):
        box = f'x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}"'
        parts.append(f'<rect {box} rx="5" fill="#eef3fb" stroke="#456"/>')
        parts.append(f'<text x="{x:g}" y="{y + 4.5:g}" text-anchor="middle" fill="#123">{room}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    FIGURE.write_text(draw(imports()), encoding="utf-8")
    sys.stdout.write(f"wrote {FIGURE.relative_to(ROOT)}\n")

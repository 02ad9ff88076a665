"""Reports as plain text: paragraphs and tables that fit a screen of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

WIDTH = 79


def filled(words: str, indent: int = 0) -> list[str]:
    """A paragraph as lines."""
    margin = " " * indent
    return textwrap.wrap(words, WIDTH, initial_indent=margin, subsequent_indent=margin)


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> list[str]:
    """A table as lines: cells at the right, those of the columns ``left`` at the left."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = [
            c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        return ("  " + "  ".join(cells)).rstrip()

    return [line(header), *map(line, rows)]

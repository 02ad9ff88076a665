"""Tables on stdout: by rich on a terminal, as plain text elsewhere.

Cells may come from a file: they are shown as they are, with escapes for what would be obeyed.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from cardboost.model.printable import printable

_WIDTH = 79


def is_terminal() -> bool:
    """Whether stdout is a terminal that can do more than write one line after the other."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> list[str]:
    """A table within the width of the screen. ``left``: columns that are aligned at the left."""
    rows = [[printable(" ".join(cell.split())) for cell in row] for row in rows]
    if is_terminal():
        return _rich_lines(header, rows, left)
    from cardboost.report.document import table_lines

    lines = table_lines(header, rows, left, indent="")
    return [line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..." for line in lines]


def _rich_lines(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold cyan")
    for k, name in enumerate(header):
        table.add_column(name, justify="left" if k in left else "right", no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(force_terminal=True, highlight=False)
    # rendered here and printed by the caller, as everything is: rich would end the program with its reader
    console.file = io.StringIO()
    console.print(table)
    return console.file.getvalue().rstrip("\n").split("\n")

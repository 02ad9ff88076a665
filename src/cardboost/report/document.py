"""Reports of paragraphs, tables, figures and check points, as plain text and as one offline page.

A report is a title and a list of blocks. The text fits a screen of 80 columns and leaves figures out; the
page fetches nothing, and reads well on a screen and on paper.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from cardboost.model.printable import printable_html
from cardboost.report.figures import Figure

WIDTH = 79  # characters of a line of text

_STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #222; line-height: 1.5;
  font: 16px/1.5 'Segoe UI', 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif; }
main { max-width: 54rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; }
p { max-width: 44rem; margin: .5rem 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .75rem 0 1.25rem; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #e2e2e2; vertical-align: top; }
th { border-bottom: 1.5px solid #5a5a5a; font-weight: 600; }
th, td { white-space: nowrap; }
th.left, td.left { text-align: left; white-space: normal; }
.holds { color: #00694c; font-weight: 600; white-space: nowrap; }
.fails { color: #a33c00; font-weight: 700; white-space: nowrap; }
pre { margin: .75rem 0; font: .85rem/1.35 'DejaVu Sans Mono', Consolas, Menlo, monospace; }
figure { margin: 1.25rem 0; overflow-x: auto; }
svg { width: 100%; min-width: 40rem; max-width: 60rem; height: auto; display: block; }
@media print { main { max-width: none; padding: 0; } figure, tr { break-inside: avoid; }
  svg { min-width: 0; } }
"""


@dataclass(frozen=True)
class ReportBlock:
    """A part of a report: its lines of text and its HTML, empty where it is not shown in that form."""

    kind: Literal["paragraph", "heading", "caption", "table", "figure"]
    lines: Sequence[str]
    html: str

    def needs_gap_after(self, previous: ReportBlock) -> bool:
        """Whether an empty line of text stands between two blocks."""
        if self.kind == "paragraph":
            return previous.kind == "table"
        return self.kind != "table" or previous.kind != "caption"


def paragraph(words: str) -> ReportBlock:
    return ReportBlock("paragraph", filled(words), f"<p>{printable_html(words)}</p>")


def heading(words: str) -> ReportBlock:
    return ReportBlock("heading", [words, "-" * WIDTH], f"<h2>{printable_html(words)}</h2>")


def caption(words: str) -> ReportBlock:
    """A few words right above a table."""
    return ReportBlock("caption", filled(words), f"<p>{printable_html(words[0].upper() + words[1:])}:</p>")


def figure(drawing: Figure) -> ReportBlock:
    return ReportBlock("figure", [], f"<figure>\n{drawing.svg()}</figure>")


def preformatted(text: str) -> ReportBlock:
    """Text whose lines stay as they are; pages only."""
    return ReportBlock("figure", [], f'<div class="wide"><pre>{printable_html(text)}</pre></div>')


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> ReportBlock:
    """A table: cells are aligned at the right, those of the columns ``left`` at the left."""
    body = "\n".join(_html_row("td", row, left) for row in rows)
    head = _html_row("th", header, left)
    html = f'<div class="wide"><table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody></table></div>'
    return ReportBlock("table", table_lines(header, rows, left), html)


def table_lines(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (), indent: str = "  "
) -> list[str]:
    """A table as lines of text."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [
        [c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths, strict=True))]
        for line in lines
    ]
    return [(indent + "  ".join(cells)).rstrip() for cells in aligned]


def _html_row(tag: str, row: Sequence[str], left: Sequence[int]) -> str:
    cells = []
    for k, cell in enumerate(row):
        names = ["left"] if k in left else []
        names += [cell.lower()] if cell in ("holds", "FAILS") else []
        kind = f' class="{" ".join(names)}"' if names else ""
        cells.append(f"<{tag}{kind}>{printable_html(cell)}</{tag}>")
    return f"<tr>{''.join(cells)}</tr>"


def check_list(checks: Sequence[Mapping[str, Any]]) -> ReportBlock:
    """Check points: each has its ``letter``, a ``claim``, what was ``measured``, and whether it ``holds``."""
    lines, rows = [], []
    for check in checks:
        verdict = "holds" if check["holds"] else "FAILS"
        lines += [f"  ({check['letter']}) {verdict}  {check['claim']}", *filled(check["measured"], indent=6)]
        rows.append([f"({check['letter']})", check["claim"], check["measured"], verdict])
    return replace(table(["", "check point", "measured", ""], rows, left=(0, 1, 2, 3)), lines=lines)


def text_only(block: ReportBlock) -> ReportBlock:
    return replace(block, html="")


def page_only(block: ReportBlock) -> ReportBlock:
    return replace(block, lines=[])


def filled(words: str, indent: int = 0) -> list[str]:
    """Wrap a paragraph into lines."""
    margin = " " * indent
    return textwrap.wrap(words, WIDTH, initial_indent=margin, subsequent_indent=margin)


def text_report(title: str, blocks: Sequence[ReportBlock]) -> str:
    """The report as plain text."""
    shown = [block for block in blocks if block.lines]
    lines = [title, "=" * WIDTH, "", *shown[0].lines]
    for previous, block in pairwise(shown):
        lines += [""] if block.needs_gap_after(previous) else []
        lines += block.lines
    return "\n".join(lines) + "\n"


def html_blocks(blocks: Sequence[ReportBlock]) -> list[str]:
    """The blocks of a page."""
    return [block.html for block in blocks if block.html]


def html_page(title: str, blocks: Sequence[ReportBlock]) -> str:
    """The report as a page of its own; nothing in it is fetched from anywhere."""
    name, content = printable_html(title), "\n".join(html_blocks(blocks))
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title>
<style>{_STYLE}</style>
</head>
<body><main>
<h1>{name}</h1>
{content}
</main></body>
</html>
"""


def report_files(
    title: str, blocks: Sequence[ReportBlock], figures: Mapping[str, Figure], data: Any, compact: bool = False
) -> dict[str, bytes]:
    """Every file of a report by its name: text, plain data, figures and page."""
    layout: dict[str, Any] = {"separators": (",", ":")} if compact else {"indent": 1}
    texts = {
        "report.txt": text_report(title, blocks),
        "results.json": json.dumps(data, allow_nan=False, **layout) + "\n",
        **{name: drawing.svg() for name, drawing in figures.items()},
        "index.html": html_page(title, blocks),
    }
    return {name: text.encode() for name, text in texts.items()}

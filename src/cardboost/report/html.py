"""One offline page: headings, paragraphs, tables and figures, readable on a screen and on paper."""

from __future__ import annotations

from collections.abc import Sequence

from cardboost.model.printable import printable_html

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


def page(title: str, blocks: Sequence[str]) -> str:
    """The whole file; nothing in it is fetched from anywhere."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{printable_html(title)}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body><main>",
            f"<h1>{printable_html(title)}</h1>",
            *blocks,
            "</main></body>",
            "</html>\n",
        ]
    )


def heading(words: str) -> str:
    return f"<h2>{printable_html(words)}</h2>"


def paragraph(words: str) -> str:
    return f"<p>{printable_html(words)}</p>"


def preformatted(text: str) -> str:
    """Text whose lines stay as they are."""
    return f'<div class="wide"><pre>{printable_html(text)}</pre></div>'


def figure(svg: str) -> str:
    return f"<figure>\n{svg}</figure>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> str:
    """Cells at the right, those of the columns ``left`` at the left."""

    def cells(tag: str, row: Sequence[str]) -> str:
        parts = []
        for k, cell in enumerate(row):
            names = [
                *(["left"] if k in left else []),
                *({"holds": ["holds"], "FAILS": ["fails"]}.get(cell, [])),
            ]
            kind = f' class="{" ".join(names)}"' if names else ""
            parts.append(f"<{tag}{kind}>{printable_html(cell)}</{tag}>")
        return f"<tr>{''.join(parts)}</tr>"

    body = "\n".join(cells("td", row) for row in rows)
    head = cells("th", header)
    return f'<div class="wide"><table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody></table></div>'

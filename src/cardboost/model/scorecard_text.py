"""A scorecard as text, Markdown, HTML and LaTeX."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from cardboost.model import card_text
from cardboost.model.card_text import INDENT, MEANING, class_names, missing_sentences, pack, paragraph
from cardboost.model.ensemble import LOG_ODDS
from cardboost.model.printable import printable

if TYPE_CHECKING:
    from cardboost.model.scorecard import Scorecard, Section

_LONGEST_BAR = 20
_TOTALS_IN_COLUMN = 12
_TITLE = "Scorecard"


# ------------------------------------------------------------------------------------------------ content


def facts(card: Scorecard) -> str:
    """One line about the card."""
    return f"{card_text.size_of(card.ensemble)}, totals from {card.lowest} to {card.highest}"


def reading(card: Scorecard) -> list[str]:
    """How to use the card, in sentences."""
    negative, positive = class_names(card.classes)
    start = f"begin with {card.start} and " if card.start else ""
    odds = math.exp(LOG_ODDS[card.ensemble.loss] * card.point)
    if card.threshold > card.highest:
        means = f"every total means class {negative}"
    elif card.threshold <= card.lowest:
        means = f"every total means class {positive}"
    else:
        means = f"a total of {card.threshold} or more means class {positive}, a lower one class {negative}"
    if card.ensemble.operating_point is not None:
        means += f" ({card.ensemble.operating_point})"
    words = {word for section in card.sections for line in section.lines for word in line.words}
    return [
        f"{start}add the points of one line per feature",
        means,
        f"every point multiplies the odds of {positive} by {odds:.4g}",
        *(text for word, text in MEANING.items() if word in words),
        *missing_sentences(card.ensemble, [(part.feature, str(part.missing)) for part in card.sections]),
    ]


def percent(probability: float) -> str:
    """Digits that tell small probabilities, and those near 1, from 0 and 1."""
    near = min(probability, 1.0 - probability)
    digits = 1 if near >= 0.001 or near == 0 else min(6, 1 - math.floor(math.log10(near)) - 3)
    return f"{100 * probability:.{digits}f} %"


def _plain(text: str) -> str:
    """On one line, with single spaces."""
    return " ".join(printable(text).split())


def _proof(card: Scorecard) -> list[str]:
    return [] if card.certificate is None else list(card.certificate.lines())


def _heading(card: Scorecard) -> str:
    return f"probability of {class_names(card.classes)[1]}"


# ------------------------------------------------------------------------------------------------ text


def as_text(card: Scorecard, title: str | None, width: int) -> str:
    card_text.check_width(width)
    largest = max((abs(line.points) for section in card.sections for line in section.lines), default=0)
    digits = max(len(str(value)) for value in (largest, -largest if card.negative else 0, card.start))
    room = width - INDENT - 2 - digits
    texts = [line.text for section in card.sections for line in section.lines]
    column = min(max([24, *map(len, texts)]), max(24, room - 2 - _LONGEST_BAR))
    column = min(column, room)
    bars = min(_LONGEST_BAR, room - column - 2)
    blocks = [[f"{'start':<{INDENT + column}}  {card.start:>{digits}}"]] if card.start else []
    for section in card.sections:
        rows = []
        for line in section.lines:
            bar = "#" * round(bars * abs(line.points) / largest) if largest and bars >= 3 else ""
            rows.append((pack(line.text.split(" "), 3, column), f"{line.points:>{digits}}", bar))
        blocks.append(card_text.feature_block(section.name, rows, column, width))
    if not card.sections:
        blocks.append(["No feature is used: every case has the same total."])
    blocks.append(["How to use this card", *paragraph(reading(card), width), "", *_text_table(card, width)])
    return card_text.page(title or _TITLE, facts(card), blocks, _proof(card), width)


def _text_table(card: Scorecard, width: int) -> list[str]:
    """Totals and probabilities, as many beside each other as fit."""
    entries = [(str(total), percent(p).replace(" %", "%")) for total, p in card.table()]
    wide = max(len(text) for pair in entries for text in pair) + 2
    head = max(len("total"), len("probability")) + 2
    each = max(1, (width - head) // wide)
    lines = []
    for k in range(0, len(entries), each):
        part = entries[k : k + each]
        lines += [""] if k else []
        lines.append(f"  {'total':<{head - 2}}" + "".join(f"{total:>{wide}}" for total, _ in part))
        lines.append(f"  {'probability':<{head - 2}}" + "".join(f"{p:>{wide}}" for _, p in part))
    return lines


# ------------------------------------------------------------------------------------------------ Markdown


def as_markdown(card: Scorecard, title: str | None) -> str:
    def cell(text: str) -> str:
        return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", _plain(text))

    out = [
        f"# {cell(title or _TITLE)}",
        "",
        cell(facts(card)),
        "",
        "| feature | value | points |",
        "|---|---|---:|",
    ]
    if card.start:
        out.append(f"| *start* | | {card.start} |")
    for section in card.sections:
        for k, line in enumerate(section.lines):
            name = f"**{cell(section.name)}**" if k == 0 and section.name else ""
            out.append(f"| {name} | {cell(line.text)} | {line.points} |")
    out += ["", *(f"* {cell(text)}" for text in reading(card)), ""]
    out += [f"| total | {cell(_heading(card))} |", "|---:|---:|"]
    out += [f"| {total} | {percent(p)} |" for total, p in card.table()]
    if _proof(card):
        out += ["", "```text", *map(printable, _proof(card)), "```"]
    return "\n".join([*out, ""])


# ------------------------------------------------------------------------------------------------ HTML

_STYLE = """\
.scorecard{font:15px/1.4 system-ui,sans-serif;color:#1b1f24;max-width:46rem;margin:0 auto;padding:1rem}
.scorecard h1{font-size:1.4rem;margin:0 0 .2rem}
.scorecard p.facts{color:#57606a;margin:.2rem 0 1rem}
.scorecard table{border-collapse:collapse;width:100%;margin:0 0 1.2rem}
.scorecard th,.scorecard td{padding:.25rem .5rem;text-align:left;vertical-align:top}
.scorecard thead th{border-bottom:2px solid #57606a;font-weight:600}
.scorecard tbody{border-bottom:1px solid #d0d7de}
.scorecard tbody th{font-weight:600;width:28%}
.scorecard td.n,.scorecard th.n{text-align:right;white-space:nowrap;width:4rem}
.scorecard td.n{font-variant-numeric:tabular-nums}
.scorecard td.b{width:22%}
.scorecard td.b span{display:block;height:.8rem;margin-top:.25rem;background:#2f6f9f;border-radius:2px}
.scorecard .totals{display:flex;flex-wrap:wrap;align-items:flex-start;gap:0 1.5rem}
.scorecard .totals table{width:auto}
.scorecard tr.over td{font-weight:600}
.scorecard pre{background:#f6f8fa;padding:.7rem;overflow-x:auto;font-size:.8rem}
@media print{.scorecard td.b span{print-color-adjust:exact;-webkit-print-color-adjust:exact}}"""


def as_html(card: Scorecard, title: str | None, page: bool) -> str:
    def text(value: str) -> str:
        return html.escape(_plain(value))

    def signs(value: str) -> str:
        return text(value).replace("&lt;=", "≤")

    largest = max((abs(line.points) for section in card.sections for line in section.lines), default=0)
    out = [f"<style>{_STYLE}</style>", '<div class="scorecard">', f"<h1>{text(title or _TITLE)}</h1>"]
    out.append(f'<p class="facts">{text(facts(card))}</p>')
    out.append(
        '<table><thead><tr><th>feature</th><th>value</th><th class="n">points</th><th></th></tr></thead>'
    )
    if card.start:
        out.append(f'<tbody><tr><th>start</th><td></td><td class="n">{card.start}</td><td></td></tr></tbody>')
    for section in card.sections:
        out.append("<tbody>")
        for k, line in enumerate(section.lines):
            name = f'<th rowspan="{len(section.lines)}">{text(section.name)}</th>' if k == 0 else ""
            share = 100 * abs(line.points) / largest if largest else 0
            bar = f'<span style="width:{share:.0f}%"></span>' if share else ""
            value = f'<td>{signs(line.text)}</td><td class="n">{line.points}</td><td class="b">{bar}</td>'
            out.append(f"<tr>{name}{value}</tr>")
        out.append("</tbody>")
    out.append("</table>")
    out.append("<ul>" + "".join(f"<li>{text(sentence)}</li>" for sentence in reading(card)) + "</ul>")
    out += ['<div class="totals">', *_html_totals(card, text(_heading(card))), "</div>"]
    if _proof(card):
        out.append("<pre>" + _text_lines(_proof(card)) + "</pre>")
    out.append("</div>")
    body = "\n".join(out) + "\n"
    if not page:
        return body
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<title>{text(title or _TITLE)}</title></head>\n'
        f"<body>\n{body}</body></html>\n"
    )


def _html_totals(card: Scorecard, heading: str) -> list[str]:
    """Totals and probabilities, in columns beside each other."""
    entries, out = card.table(), []
    head = f'<thead><tr><th class="n">total</th><th class="n">{heading}</th></tr></thead>'
    for k in range(0, len(entries), _TOTALS_IN_COLUMN):
        out.append(f"<table>{head}<tbody>")
        for total, p in entries[k : k + _TOTALS_IN_COLUMN]:
            row = ' class="over"' if total >= card.threshold else ""
            out.append(f'<tr{row}><td class="n">{total}</td><td class="n">{percent(p)}</td></tr>')
        out.append("</tbody></table>")
    return out


def _text_lines(lines: list[str]) -> str:
    return html.escape("\n".join(printable(line) for line in lines))


# ------------------------------------------------------------------------------------------------ LaTeX

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$",
    "|": r"$|$", '"': r"\textquotedbl{}",
}  # fmt: skip


def as_latex(card: Scorecard, title: str | None) -> str:
    def text(value: str) -> str:
        whole = "".join(_LATEX.get(c, c) for c in _plain(value))
        return whole.replace("$<$=", r"$\le$")

    out = [f"% {printable(title or _TITLE)}: {printable(facts(card))}", r"\begin{tabular}{llr}", r"\hline"]
    out += [r"feature & value & points \\", r"\hline"]
    if card.start:
        out += [rf"start & & {card.start} \\", r"\hline"]
    for section in card.sections:
        out += [*_latex_section(section, text), r"\hline"]
    out += [r"\end{tabular}", "", r"\begin{itemize}"]
    out += [rf"\item {text(line)}" for line in reading(card)]
    out += [r"\end{itemize}", "", r"\begin{tabular}{rr}", r"\hline"]
    out += [rf"total & {text(_heading(card))} \\", r"\hline"]
    out += [rf"{total} & {text(percent(p))} \\" for total, p in card.table()]
    return "\n".join([*out, r"\hline", r"\end{tabular}", ""])


def _latex_section(section: Section, text: Callable[[str], str]) -> list[str]:
    names = [section.name, *[""] * (len(section.lines) - 1)]
    return [
        rf"{text(name)} & {text(line.text)} & {line.points} \\"
        for name, line in zip(names, section.lines, strict=True)
    ]

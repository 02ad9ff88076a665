"""A front as something to look at: a table of text, a figure, a page, comma-separated values."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from cardboost.pareto.stability import term_rows
from cardboost.report import html
from cardboost.report.figures import Chart, Figure, Line

if TYPE_CHECKING:
    from cardboost.pareto.front import ParetoFront, SizePoint

HEADER = ("terms", "used", "features", "score", "std. error", "guarantee", "stability", "picked by")
_WORDS = {"1se": "within one standard error of the best", "knee": "the bend of the curve", "best": "the best"}


def rows_of_text(front: ParetoFront) -> list[list[str]]:
    """The table in words, one list per size."""
    means = [row["mean"] for row in front.table()]
    digits = _digits(means, [row["standard_error"] for row in front.table()])
    return [
        [
            str(row["terms"]),
            str(row["used"]),
            str(row["features"]),
            f"{row['mean']:.{digits}f}",
            "" if row["standard_error"] is None else f"{row['standard_error']:.{digits}f}",
            _percent(row["guarantee"], 1),
            "" if row["stability"] is None else _percent(row["stability"], 0),
            row["picked"],
        ]
        for row in front.table()
    ]


def _digits(means: list[float], errors: list[float | None]) -> int:
    """Decimals that show the scores, and two figures of the least standard error."""
    largest = max(map(abs, means)) or 1.0
    known = [own for own in errors if own]
    finest = min([1e-3 * largest, *known])
    return max(0, min(10, 1 - math.floor(math.log10(finest))))


def _percent(share: float, decimals: int) -> str:
    """Rounded down, so that nothing is promised that does not hold."""
    unit = 10**decimals
    return f"{math.floor(100 * unit * share + 1e-6) / unit:.{decimals}f} %"


def headline(front: ParetoFront) -> str:
    folds = f"{front.n_folds_done} folds" if front.n_folds_done > 1 else "one fold"
    if front.n_folds_done < front.n_folds:
        folds = f"{front.n_folds_done} of {front.n_folds} folds"
    return f"{front.scoring} on held-out rows (higher is better), mean of {folds}"


def text_table(front: ParetoFront) -> str:
    """For a terminal, within 79 characters unless a score is very long."""
    lines = [list(HEADER), *rows_of_text(front)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEADER))]
    body = [
        "  ".join(
            [*(cell.rjust(width) for cell, width in zip(line[:-1], widths, strict=False)), line[-1]]
        ).rstrip()
        for line in lines
    ]
    note = [] if front.status == "complete" else ["", f"Not complete: {front.message}."]
    return "\n".join([headline(front), "", *body, *note])


def csv_table(front: ParetoFront) -> str:
    """For spreadsheets: numbers as they are; cells that are not known are empty."""
    rows = front.table()
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def figure(front: ParetoFront) -> Figure:
    """Scores with their standard errors against sizes; the rules' picks have marks of their own."""
    errors = tuple(point.standard_error or 0.0 for point in front)
    sizes = tuple(float(size) for size in front.sizes)
    lines = [Line("mean score", sizes, tuple(point.mean for point in front), 0, spread=errors)]
    for style, (size, rules) in enumerate(sorted(front.marks().items()), start=1):
        lines.append(Line(rules, (float(size),), (front.at(size).mean,), style, size=6.0))
    picked = "; ".join(f"{rule}: {_WORDS[rule]}" for rule in _WORDS)
    return Figure(
        "Score against number of terms",
        f"{headline(front)}. Bars are one standard error to each side. {picked}.",
        (Chart("", "terms at most", front.scoring, tuple(lines)),),
        height=320.0,
    )


def fragment(front: ParetoFront) -> str:
    """A table and a figure for a notebook."""
    note = [] if front.status == "complete" else [html.paragraph(f"Not complete: {front.message}.")]
    return "\n".join(
        [
            '<div style="max-width: 54rem">',
            html.paragraph(f"{headline(front)}."),
            *note,
            html.table(HEADER, rows_of_text(front), left=(7,)),
            html.figure(figure(front).svg()),
            "</div>",
        ]
    )


def page(front: ParetoFront, point: SizePoint, data: str) -> str:
    """One offline page: the table, the figure, and the model of one size with its stability and its card.

    ``data``: a sentence on what was learned from.
    """
    blocks = [html.paragraph(data)]
    if front.status != "complete":
        blocks.append(html.paragraph(f"Not complete: {front.message}."))
    blocks += [
        html.figure(figure(front).svg()),
        html.table(HEADER, rows_of_text(front), left=(7,)),
        html.paragraph(
            "Used and features: of the model fitted to all rows. Guarantee: at least this share of the "
            "improvement over the empty model that any model of so many terms could make on these rows, of "
            "all stumps or, where no more is proven, of the candidate terms. Stability: in what share of the "
            "folds a term is chosen again, the mean of the terms."
        ),
        html.heading(f"The model with at most {point.size} terms"),
        html.table(
            ("term", "weight", "in folds"),
            [
                [
                    (f"{row['class']}: " if "class" in row else "") + row["term"],
                    f"{row['weight']:+.4f}",
                    _percent(row["frequency"], 0),
                ]
                for row in term_rows(point)
            ],
            left=(0,),
        ),
        html.paragraph("The weight is added where the term holds, and taken off where it does not."),
        html.heading("Its card"),
        html.preformatted(point.model.card()),
    ]
    return html.page("How small can the model be?", blocks)

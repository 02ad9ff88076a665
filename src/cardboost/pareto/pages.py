"""A front to look at: a table of text, a figure, a page, comma-separated values, a plot by matplotlib."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any

from cardboost.pareto.picking import RULES
from cardboost.pareto.stability import term_rows
from cardboost.report import document as doc
from cardboost.report.figures import Chart, Figure, Series

if TYPE_CHECKING:
    from cardboost.pareto.front import ParetoFront, SizePoint

HEADER = ("terms", "used", "features", "score", "std. error", "guarantee", "stability", "picked by")
LAST = (len(HEADER) - 1,)  # the column that is aligned at the left


def rows_of_text(front: ParetoFront) -> list[list[str]]:
    """The table as text, one list per size."""
    table = front.table()
    digits = _digits([row["mean"] for row in table], [row["standard_error"] for row in table])
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
        for row in table
    ]


def _digits(means: list[float], errors: list[float | None]) -> int:
    """Decimals that show the scores, and two figures of the least standard error."""
    largest = max(map(abs, means)) or 1.0
    finest = min([1e-3 * largest, *(error for error in errors if error)])
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


def _notes(front: ParetoFront) -> list[str]:
    """A sentence where the front is not complete."""
    return [] if front.status == "complete" else [f"Not complete: {front.message}."]


def text_table(front: ParetoFront, body: list[str] | None = None) -> str:
    """For a terminal, within 79 characters unless a score is very long. ``body``: the table otherwise."""
    if body is None:
        body = doc.table_lines(HEADER, rows_of_text(front), left=LAST, indent="")
    notes = [line for note in _notes(front) for line in ("", note)]
    return "\n".join([headline(front), "", *body, *notes])


def csv_table(front: ParetoFront) -> str:
    """For spreadsheets: numbers with all their digits; undefined cells are empty."""
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
    series = [Series("mean score", sizes, tuple(point.mean for point in front), 0, spread=errors)]
    for style, (size, rules) in enumerate(sorted(front.marks().items()), start=1):
        series.append(Series(rules, (float(size),), (front.at(size).mean,), style, size=6.0))
    rules = "; ".join(f"{rule}: {words}" for rule, words in RULES.items())
    return Figure(
        "Score against number of terms",
        f"{headline(front)}. Bars are one standard error to each side. {rules}.",
        (Chart("", "terms at most", front.scoring, tuple(series)),),
        height=320.0,
    )


def fragment(front: ParetoFront) -> str:
    """A table and a figure for a notebook."""
    blocks = [
        *map(doc.paragraph, [f"{headline(front)}.", *_notes(front)]),
        doc.table(HEADER, rows_of_text(front), left=LAST),
        doc.figure(figure(front)),
    ]
    return "\n".join(['<div style="max-width: 54rem">', *doc.html_blocks(blocks), "</div>"])


def page(front: ParetoFront, point: SizePoint, data: str) -> str:
    """One offline page: the table, the figure, and the model of one size with its stability and its card.

    ``data``: a sentence on the training data.
    """
    terms = [
        [
            (f"{row['class']}: " if "class" in row else "") + row["term"],
            f"{row['weight']:+.4f}",
            _percent(row["frequency"], 0),
        ]
        for row in term_rows(point)
    ]
    blocks = [
        *map(doc.paragraph, [data, *_notes(front)]),
        doc.figure(figure(front)),
        doc.table(HEADER, rows_of_text(front), left=LAST),
        doc.paragraph(
            "Used and features: of the model fitted to all rows. Guarantee: at least this share of the "
            "improvement over the empty model that any model of so many terms could make on these rows, of "
            "all stumps or, where no more is proven, of the candidate terms. Stability: in what share of the "
            "folds a term is chosen again, the mean of the terms."
        ),
        doc.heading(f"The model with at most {point.size} terms"),
        doc.table(("term", "weight", "in folds"), terms, left=(0,)),
        doc.paragraph("The weight is added where the term holds, and taken off where it does not."),
        doc.heading("Its card"),
        doc.preformatted(point.model.card()),
    ]
    return doc.html_page("How small can the model be?", blocks)


def plot(front: ParetoFront, ax: Any = None) -> Any:
    """Mean scores with their standard errors by matplotlib, an extra; the rules' picks are marked."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError(
                "ParetoFront.plot needs matplotlib: pip install 'cardboost[plot]'. Without it, "
                "ParetoFront shows itself in notebooks, and `cardboost pareto` draws SVG."
            ) from error
        _, ax = plt.subplots()
    means = [point.mean for point in front]
    errors = [point.standard_error or 0.0 for point in front]
    ax.errorbar(list(front.sizes), means, yerr=errors, marker="o", markersize=4, capsize=3, linewidth=1.5)
    for size, rules in front.marks().items():
        ax.annotate(
            rules, (size, front.at(size).mean), xytext=(0, 12), textcoords="offset points", ha="center"
        )
    ax.margins(y=0.15)  # room for the names above the points
    ax.set_xlabel("terms at most")
    ax.set_ylabel(f"{front.scoring}, mean of {front.n_folds_done} folds")
    ax.xaxis.get_major_locator().set_params(integer=True)
    return ax

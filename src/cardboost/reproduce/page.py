"""From the records of an experiment to its files: text, page, figures and plain data.

An experiment is kept as plain records: dicts and lists of numbers and words, as a JSON file holds them. Its
report is a template, ``NAME.md`` in this folder. The parts of a template, between empty lines, are:

    # The title
    ## A heading
    A paragraph, with fields such as {games[rows]} for :meth:`str.format`.
    ?field A paragraph that is left out where the field is empty or false.
    : A caption, right above the table that follows.

    [name]
    | header of a column | of another |
    |:---|---:|
    | {entry} of every record of this name | {another:.2f} |

    [name.svg] Title of the figure of this name
    and its caption.

    [name] (check points by name)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files as package_files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.report import document as doc
from cardboost.report.figures import Figure, Panel, Series

Record = dict[str, Any]
Array = NDArray[np.float64]

_KINDS = {"##": doc.heading, ":": doc.caption}


def report_files(
    paper: str,
    fields: Mapping[str, Any],
    records: Mapping[str, Sequence[Record]],
    figures: dict[str, Figure],
    data: Record,
    compact: bool = False,
) -> dict[str, bytes]:
    """Every file of a report by its name.

    Parameters
    ----------
    paper : str
        Name of the template.
    fields : mapping
        Values for the fields of paragraphs.
    records : mapping
        Rows of tables, and check points, by the name that the template has for them.
    figures : dict
        Figures by file name, as :func:`panels` makes them; the template adds title and caption here.
    data : dict
        All numbers, for a script. ``holds`` says whether all check points hold.
    compact : bool
        Whether the file of the numbers is one line.
    """
    template = package_files(__package__).joinpath(f"{paper}.md").read_text(encoding="utf-8")
    words = {**fields, "holds": data["holds"], "fails": not data["holds"]}
    title, *parts = template.strip().split("\n\n")
    document = []
    for part in parts:
        head, _, rest = part.partition("\n")
        if head.startswith("["):
            name, _, caption = head[1:].partition("]")
            if name in figures:
                texts = [" ".join(text.format(**words).split()) for text in (caption, rest)]
                figures[name] = replace(figures[name], title=texts[0], caption=texts[1])
                document.append(doc.figure(figures[name]))
            elif name in records:
                document.append(_table(records[name], rest) if rest else doc.check_list(records[name]))
            continue
        mark, _, text = part.partition(" ")
        kind = _KINDS.get(mark, doc.paragraph)
        if mark.startswith("?") and not words[mark[1:]]:
            continue
        text = (text if mark in _KINDS or mark.startswith("?") else part).format(**words)
        document += [kind(" ".join(paragraph.split())) for paragraph in text.split("\n\n") if paragraph]
    return doc.report_files(title.removeprefix("# "), document, figures, data, compact)


def _table(records: Sequence[Record], columns: str) -> doc.ReportBlock:
    """A table of records; ``columns``: a line each of headers, alignments and format strings for cells."""
    header, alignment, cells = (
        [cell.strip() for cell in line[1:-1].split("|")] for line in columns.splitlines()
    )
    left = [k for k, dashes in enumerate(alignment) if dashes.startswith(":")]
    return doc.table(header, [[_cell(cell, record) for cell in cells] for record in records], left)


def _cell(cell: str, record: Record) -> str:
    """Empty where the record lacks the entry, or has None for it."""
    try:
        return cell.format(**record)
    except (KeyError, TypeError):
        return ""


def check_point(letter: str, claim: str, measured: str, holds: bool, **numbers: float) -> Record:
    """A claim, what was measured (with fields for the numbers), and whether the claim holds."""
    words = measured.format(**numbers)
    return {"letter": letter, "claim": claim, "measured": words, "holds": bool(holds), "numbers": numbers}


def column(records: Sequence[Record], name: str) -> Array:
    """One entry of every record."""
    return np.array([record[name] for record in records], dtype=np.float64)


def standard_error(values: Sequence[float] | Array) -> float | None:
    """The standard error of the mean of independent values; None where there is one only."""
    return float(np.std(values, ddof=1)) / float(np.sqrt(len(values))) if len(values) > 1 else None


def milestones(last: int, few: int) -> list[int]:
    """The numbers 0 to ``last`` where they are few; else 0, 1, 2, 5, 10, 20, ... and the last."""
    if last <= few:
        return list(range(last + 1))
    numbers = {0, last, *(digit * 10**power for power in range(7) for digit in (1, 2, 5))}
    return sorted(k for k in numbers if k <= last)


def line(name: str, x: Any, y: Any, style: int | None = None) -> Series:
    """A line of a chart; a single y is a level line."""
    heights = np.broadcast_to(y, np.shape(x))
    return Series(name, tuple(map(float, x)), tuple(map(float, heights)), style)


def panels(*drawings: Panel, **size: Any) -> Figure:
    """A figure whose title and caption are in the template."""
    return Figure("", "", drawings, **size)

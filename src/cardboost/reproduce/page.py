"""From the records of an experiment to its files: text, page, figures and plain data.

An experiment is kept as plain records: dicts and lists of numbers and words, as a JSON file holds them. The
words of its report are a template, ``NAME.md`` in this folder. Its parts, between empty lines, are:

    # The title
    ## A heading
    A paragraph, with fields such as {games[rows]} for :meth:`str.format`.
    ?field A paragraph that is left out where the field is empty or false.
    : A caption, right above the table that follows.
    [name]           A table, or any other blocks, by name.
    [name.svg] Title of the figure of this name
    and its caption.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files as package_files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.report import document as doc
from cardboost.report.figures import Figure, Panel, Series

Record = dict[str, Any]
Array = NDArray[np.float64]

_KINDS = {"##": doc.heading, ":": doc.caption, "": doc.paragraph}


def report_files(
    paper: str,
    fields: Mapping[str, Any],
    blocks: Mapping[str, doc.ReportBlock],
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
        Values for the fields of the template.
    blocks : mapping
        Blocks by the name that the template has for them.
    figures : dict
        Figures by file name, as :func:`panels` makes them; the template adds title and caption here.
    data : dict
        All numbers, for a script. ``holds`` says whether all check points hold.
    compact : bool
        Whether the file of the numbers is one line.
    """
    template = package_files(__package__).joinpath(f"{paper}.md").read_text(encoding="utf-8")
    words = {**fields, "holds": data["holds"], "fails": not data["holds"]}
    title, *parts = template.format(**words).strip().split("\n\n")
    document = []
    for part in filter(None, parts):
        mark, text = re.fullmatch(r"(\[.*?\]|\?\w+|##|:|)\s*(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        name, (first, _, rest) = mark[1:].rstrip("]"), text.partition("\n")
        text = " ".join(text.split())
        if mark in _KINDS:
            document.append(_KINDS[mark](text))
        elif mark.startswith("?"):
            document += [doc.paragraph(text)] if words[name] else []
        elif name in blocks:
            document.append(blocks[name])
        elif name in figures:
            figures[name] = replace(figures[name], title=first, caption=" ".join(rest.split()))
            document.append(doc.figure(figures[name]))
    return doc.report_files(title.removeprefix("# "), document, figures, data, compact)


def check_point(letter: str, claim: str, measured: str, holds: bool, **numbers: float) -> Record:
    """A claim, what was measured (with fields for the numbers), and whether the claim holds."""
    words = measured.format(**numbers)
    return {"letter": letter, "claim": claim, "measured": words, "holds": bool(holds), "numbers": numbers}


def check_list(checks: Sequence[Record]) -> doc.ReportBlock:
    entries = ("letter", "claim", "measured", "holds", "numbers")
    return doc.check_list([doc.CheckPoint(*(check[entry] for entry in entries)) for check in checks])


def table(
    records: Sequence[Record], *columns: tuple[str, str | Callable[[Record], str]], left: Sequence[int] = ()
) -> doc.ReportBlock:
    """A table of records: of every column the header, and a format string or a function for its cells."""
    rows = [[_cell(record, cell) for _, cell in columns] for record in records]
    return doc.table([header for header, _ in columns], rows, left)


def _cell(record: Record, cell: str | Callable[[Record], str]) -> str:
    """Empty where a format string is for an entry that the record lacks, or that is None."""
    try:
        return cell.format(**record) if isinstance(cell, str) else cell(record)
    except (KeyError, TypeError):
        return ""


def column(records: Sequence[Record], name: str) -> Array:
    """One entry of every record."""
    return np.array([record[name] for record in records], dtype=np.float64)


def line(name: str, x: Any, y: Any, style: int | None = None) -> Series:
    """A line of a chart; a single y is a level line."""
    heights = np.broadcast_to(y, np.shape(x))
    return Series(name, tuple(map(float, x)), tuple(map(float, heights)), style)


def panels(*drawings: Panel, **size: Any) -> Figure:
    """A figure whose title and caption are in the template."""
    return Figure("", "", drawings, **size)

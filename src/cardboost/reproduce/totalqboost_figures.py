"""The twelve panels of the paper's Figure 3: validation error against the number of terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cardboost.report.figures import Figure
from cardboost.report.frontiers import FrontierPanel, Side
from cardboost.reproduce.totalqboost import Point
from cardboost.reproduce.totalqboost_gains import (
    CHOSEN,
    CONVEX,
    WITH_SIZES,
    SplitResult,
    frontier,
    least_error,
    representatives,
    table_entries,
)

_SHOWN_FROM = 3  # terms: with fewer the error is so large that nothing else could be seen
_SIDES = {"A and B: L1CG, UCG": CONVEX, "C to E: chosen": CHOSEN}
_ALL_SIDES = {**_SIDES, "C to F: chosen": WITH_SIZES}


def figures_of(by_set: Mapping[str, Sequence[SplitResult]]) -> dict[str, Figure]:
    """The panels of all sets on the first split; with several splits also their means."""
    panels = [_panel(name, splits[0]) for name, splits in by_set.items()]
    across = min(3, len(panels))
    number = max(map(len, by_set.values()))
    figures = {
        "figure-3": Figure(
            "Validation error against the number of terms",
            "Like the paper's Figure 3, on split 1. Dots: for every number of terms the best ensemble of A "
            "and B (blue circles) and of C to E (red squares). Lines: the least error with so many terms or "
            "fewer, A and B drawn through, C to E dashed. Tags are those of the table. Errors far above the "
            "least are left out.",
            tuple(panels),
            width=320.0 * across + 32.0,
            height=220.0,
            per_row=across,
        )
    }
    if number > 1:
        figures["mean"] = Figure(
            "The least validation error with at most so many terms, mean over splits",
            f"Means over {number} splits, from the first number of terms that both sides have in "
            "every split. A and B drawn through, C to E dashed, with F dotted. The least of many errors on "
            "few rows is lower than that of any one ensemble on new rows; all sides have this in common.",
            tuple(_mean_panel(name, splits) for name, splits in by_set.items()),
            width=320.0 * across + 32.0,
            height=220.0,
            per_row=across,
        )
    return figures


def _panel(name: str, split: SplitResult) -> FrontierPanel:
    sides = []
    for label, experiments in _SIDES.items():
        points = split.side(experiments)
        sides.append(Side(label, _places(representatives(points)), _places(frontier(points))))
    errors = sorted(y for side in sides for _, y in side.steps)
    middle = errors[len(errors) // 2] if errors else 0.0
    least = errors[0] if errors else 0.0
    tags = tuple((own.entry.tag, (float(own.entry.terms), own.entry.error)) for own in table_entries(split))
    top = max([least + 3.0 * max(middle - least, 0.5), *(at[1] for _, at in tags)])
    return FrontierPanel(name.replace("_", " "), "terms", "error in %", tuple(sides), tags, top)


def _places(points: Sequence[Point]) -> tuple[tuple[float, float], ...]:
    return tuple((float(own.terms), 100.0 * own.validation_error) for own in points)


def _mean_panel(name: str, splits: Sequence[SplitResult]) -> FrontierPanel:
    both = [{label: own.side(names) for label, names in _ALL_SIDES.items()} for own in splits]
    first = max(min((own.terms for own in side), default=1) for own in both for side in own.values())
    last = max(point.terms for own in both for side in own.values() for point in side)
    sides = []
    for label in _ALL_SIDES:
        steps = []
        for terms in range(first, last + 1):
            errors = [least_error(own[label], terms) for own in both]
            known = [error for error in errors if error is not None]
            steps.append((float(terms), 100.0 * sum(known) / len(known)))
        sides.append(Side(label, (), tuple(steps)))
    top = max(y for side in sides for x, y in side.steps if x >= min(_SHOWN_FROM, last))
    return FrontierPanel(name.replace("_", " "), "terms at most", "error in %", tuple(sides), (), top)

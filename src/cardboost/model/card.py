"""The card: a model as one page of plain text that a person can read, check and add up by hand."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from cardboost.losses import get_loss
from cardboost.model.ensemble import Ensemble, StepFunction

MIN_WIDTH = 50
_INDENT = 4
_LONGEST_BAR = 10  # characters on one side of the axis
_SHORTEST_BAR = 3  # with less room than this there are no bars
_PROBABILITY = {"logistic": (1, "1 / (1 + exp(-score))"), "exponential": (2, "1 / (1 + exp(-2 score))")}


@dataclass(frozen=True)
class _Row:
    """One line of a feature: an interval, or missing values, and what it adds to the score."""

    text: str
    note: str
    level: float


def render_card(
    ensemble: Ensemble, *, title: str | None = None, certificate_lines: Sequence[str] = (), width: int = 78
) -> str:
    """The card as text, with the features that move the score most on top."""
    if width < MIN_WIDTH:
        raise ValueError(f"width must be at least {MIN_WIDTH}; got {width}.")
    blocks = [_header(ensemble, title, width), *_features(ensemble, width), _reading(ensemble, width)]
    if certificate_lines:
        blocks.append(["Certificate", *_paragraph(certificate_lines, width)])
    return "\n".join(line.rstrip() for block in blocks for line in [*block, ""])


# ------------------------------------------------------------------------------------------------ parts


def _header(ensemble: Ensemble, title: str | None, width: int) -> list[str]:
    used = len(ensemble.features_used)
    terms = f"{ensemble.n_terms} term{'' if ensemble.n_terms == 1 else 's'}"
    features = f"{used} of {ensemble.n_features} feature{'' if ensemble.n_features == 1 else 's'}"
    facts = f"{terms} on {features}, {ensemble.loss} loss"
    return [*_wrapped(title if title else "Scorecard", 0, width), "=" * width, facts]


def _features(ensemble: Ensemble, width: int) -> list[list[str]]:
    """The intercept and one block per feature, with the values of the whole card in one column."""
    steps = sorted(ensemble.step_functions(), key=lambda step: (-step.spread, step.feature))
    values = [level for step in steps for level in (*step.levels, step.missing)]
    points = _Points([ensemble.intercept, *values])
    tables = [_rows(step) for step in steps]
    room = width - _INDENT - 2 - points.width
    room_with_bars = room - 2 - (2 * _SHORTEST_BAR + 1)
    longest = max((len(row.text) for rows in tables for row in rows), default=0)
    bars = longest <= room_with_bars
    tables = [_fit_notes(rows, room_with_bars if bars else room) for rows in tables]
    column = max((len(row.text + row.note) for rows in tables for row in rows), default=0)
    column = max(column, min(28, room_with_bars))
    half = min(_LONGEST_BAR, (room - column - 3) // 2) if bars else 0
    largest = max((abs(row.level) for rows in tables for row in rows), default=0.0)

    start = "intercept" + " " * (_INDENT + column - len("intercept"))
    blocks = [[f"{start}  {points.show(ensemble.intercept)}"]]
    if not steps:
        blocks.append(["No feature is used: every row gets the intercept."])
    for step, rows in zip(steps, tables, strict=True):
        lines = _wrapped(step.name, 0, width) or ["(a feature without a name)"]
        for row in rows:
            line = f"{'':{_INDENT}}{row.text + row.note:<{column}}  {points.show(row.level)}"
            lines.append(f"{line}  {_bar(row.level, largest, half)}" if half else line)
        blocks.append(lines)
    return blocks


def _rows(step: StepFunction) -> list[_Row]:
    """Intervals with their values; neighbours of equal value are one interval."""
    ends = [*(k for k in range(len(step.cuts)) if step.levels[k] != step.levels[k + 1]), len(step.cuts)]
    lower = ["", *(_number(step.cuts[k]) for k in ends[:-1])]
    upper = [*(_number(step.cuts[k]) for k in ends[:-1]), ""]
    aligned = max(len(text) for text in lower[:-1]) if len(lower) > 1 else 0  # the last has no second bound
    rows = []
    noted = False
    for above, up_to, end in zip(lower, upper, ends, strict=True):
        if above and up_to:
            text = f">  {above + ',':<{aligned + 1}} <= {up_to}"
        else:
            text = f">  {above}" if above else f"<= {up_to}" if up_to else "any value"
        level = step.levels[end]
        note = "" if noted or level != step.missing else " (also missing)"
        noted = noted or bool(note)
        rows.append(_Row(text, note, level))
    return rows if noted else [*rows, _Row("missing", "", step.missing)]


def _fit_notes(rows: Sequence[_Row], room: int) -> list[_Row]:
    """A note that does not fit beside its interval becomes a row of its own."""
    fitted: list[_Row] = []
    moved: list[_Row] = []
    for row in rows:
        if row.note and len(row.text + row.note) > room:
            fitted.append(_Row(row.text, "", row.level))
            moved.append(_Row("missing", "", row.level))
        else:
            fitted.append(row)
    return fitted + moved


def _reading(ensemble: Ensemble, width: int) -> list[str]:
    """How to get from the card to a class and a probability."""
    factor, formula = _PROBABILITY[ensemble.loss]
    negative, positive = (_label(label) for label in ensemble.classes)
    steps = ensemble.step_functions()
    lowest = ensemble.intercept + sum(min(*step.levels, step.missing) for step in steps)
    highest = ensemble.intercept + sum(max(*step.levels, step.missing) for step in steps)
    points = _Points([lowest, highest])
    span = f"scores run from {points.show(lowest).strip()} to {points.show(highest).strip()}"
    sentences = [
        "score = intercept + the value of one line per feature",
        f"score above 0 means class {positive}, otherwise class {negative}",
        f"probability of {positive} = {formula}",
        span if steps else f"every score is {points.show(lowest).strip()}",
    ]
    lines = ["How to read this card", *_paragraph(sentences, width)]

    reach = min(max(abs(lowest), abs(highest)) * factor, 4.0)
    step_size = next(s for s in (0.05, 0.1, 0.2, 0.5, 1.0) if 4 * s >= reach) / factor
    count = 4 if width >= 72 else 3 if width >= 58 else 2
    scores = [k * step_size for k in range(-count, count + 1)]
    decimals = max(len(f"{score:.3f}".rstrip("0").split(".")[1]) for score in scores)
    probabilities = get_loss(ensemble.loss).probability(scores)
    lines += [
        "",
        "  score      " + "".join(f"{s:>+7.{decimals}f}" if s else f"{0:>7}" for s in scores),
        "  probability" + "".join(f"{100 * p:>6.1f}%" for p in probabilities),
    ]
    return lines


# ------------------------------------------------------------------------------------------------ text


class _Points:
    """Numbers with a sign, all in one format: three decimals, or as many as the largest one needs."""

    def __init__(self, values: Sequence[float]) -> None:
        largest = max((abs(value) for value in values), default=0.0)
        scale = math.floor(math.log10(largest)) if largest else 0
        if -6 < scale < 7:
            self.format = f"+.{max(0, 3 - max(scale - 2, 0)) if scale >= -1 else 2 - scale}f"
        else:
            self.format = "+.3e"
        self.width = max((len(self._text(value)) for value in values), default=0)

    def _text(self, value: float) -> str:
        text = format(value, self.format)
        return text if float(text) else text[1:]  # zero has no sign, nor has what rounds to it

    def show(self, value: float) -> str:
        return f"{self._text(value):>{self.width}}"


def _number(value: float) -> str:
    """The shortest decimals that mean this number."""
    return repr(value).removesuffix(".0")


def _bar(level: float, largest: float, half: int) -> str:
    size = round(half * (abs(level) / largest)) if largest else 0
    left, right = ("#" * size, "") if level < 0 else ("", "#" * size)
    return f"{left:>{half}}|{right}"


def _label(label: object) -> str:
    text = _printable(label) if isinstance(label, str) else _printable(repr(label))
    if len(text) > 24:
        text = text[:21] + "..."
    return f'"{text}"' if isinstance(label, str) else text


def _printable(text: str) -> str:
    """Line breaks and other characters without a shape, as escapes: a name stays on its line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _paragraph(sentences: Sequence[str], width: int) -> list[str]:
    return [part for sentence in sentences for part in _wrapped(sentence, 2, width)]


def _wrapped(text: str, indent: int, width: int) -> list[str]:
    """Lines of at most ``width`` characters; those after the first are indented a little more."""
    text = " " * indent + _printable(text)
    if len(text) <= width:
        return [text] if text.strip() else []
    return textwrap.wrap(text, width, subsequent_indent=" " * (indent + 2), break_on_hyphens=False)

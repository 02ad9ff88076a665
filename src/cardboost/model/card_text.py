"""The parts of a card: numbers, labels and lines of text, and the rows of one feature.

A row is an interval of numbers or a group of labels, and what it adds to the score.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cardboost.data.categories import Categories, Label, Other
from cardboost.model.printable import printable
from cardboost.model.terms import StepFunction

if TYPE_CHECKING:
    from cardboost.model.ensemble import Ensemble

INDENT = 4  # characters in front of the rows of a feature
MIN_WIDTH = 50  # characters of a page
MOST_LINES = 12  # of a feature with labels, unless it has more values than that
_FEW = 2  # labels that are always named

# words on the card that its last part explains
UNSEEN, KNOWN, OTHERS, MORE = "unseen", "known", "other", "more"
MEANING = {
    UNSEEN: "unseen: a label that the training data did not have; it counts as missing",
    KNOWN: "known: a label that the training data had; the model file lists all of them",
    OTHERS: "other: rare labels, which share one value; the model file lists them",
    MORE: "more: there was no room for these labels; the model file lists them",
}
_LONGEST_LABEL = 48
_WIDEST = 18  # characters of a number that is written out
# words that mean something on a card: a label that is one of them stands in quotes
_RESERVED = frozenset({"", "missing", "unseen", "other", "any", "is"})


class AlignedNumbers:
    """Numbers with a sign, all in one format that suits the largest step.

    The steps are what a reader compares; the others (an intercept) take the same decimals, however large they
    are, so that all can be added up.
    """

    def __init__(self, steps: Sequence[float], others: Sequence[float] = ()) -> None:
        values = [*steps, *others]
        largest = max((abs(value) for value in steps), default=0.0) or max(map(abs, values), default=0.0)
        scale = math.floor(math.log10(largest)) if largest else 0
        decimals = max(0, 3 - max(scale - 2, 0)) if scale >= -1 else 2 - scale
        self._format = f"+.{decimals}f"
        if not -6 < scale < 12 or max(len(self.text(value)) for value in values) > _WIDEST:
            self._format = "+.3e"
        self.width = max((len(self.text(value)) for value in values), default=0)

    def text(self, value: float) -> str:
        """A number; those of a column go through ``show``, which aligns them."""
        text = format(value, self._format)
        return text if float(text) else text[1:]  # zero has no sign, nor has what rounds to it

    def show(self, value: float) -> str:
        return f"{self.text(value):>{self.width}}"


def number(value: float) -> str:
    """The shortest decimals that mean this number."""
    return repr(value).removesuffix(".0")


def bar(level: float, largest: float, half: int) -> str:
    """A bar on its side of an axis; none where there is no room on a side."""
    if not half:
        return ""
    size = round(half * (abs(level) / largest)) if largest else 0
    left, right = ("#" * size, "") if level < 0 else ("", "#" * size)
    return f"{left:>{half}}|{right}"


def class_names(classes: Sequence[object]) -> list[str]:
    """Labels of classes: text in quotes, long ones cut where that leaves them different."""
    texts = [quoted(name) if isinstance(name, str) else printable(repr(name)) for name in classes]
    return shortened(texts)


def category_names(labels: Sequence[object]) -> list[str]:
    """Labels of categories: text as it is where that cannot be misread, in quotes elsewhere."""
    return shortened([_bare(label) if isinstance(label, str) else number_label(label) for label in labels])


def number_label(label: object) -> str:
    return number(label) if isinstance(label, float) else repr(label)


def _bare(label: str) -> str:
    plain = label.strip() == label and label.isprintable() and not set(label) & set(',"()')
    plain = plain and not label.lower().startswith("one of ")
    return label if plain and label.lower() not in _RESERVED else quoted(label)


def quoted(text: str) -> str:
    return '"' + printable(text).replace('"', '\\"') + '"'


def shortened(texts: Sequence[str]) -> list[str]:
    """Long texts without their middle; those that would then look like another one stay as they are."""
    tail = 12
    short = [
        text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 3 - tail]}...{text[-tail:]}"
        for text in texts
    ]
    seen = Counter(short)
    return [cut if seen[cut] == 1 else text for text, cut in zip(texts, short, strict=True)]


def pack(words: Sequence[str], indent: int, room: int) -> list[str]:
    """Words joined by spaces in lines of at most ``room`` characters, all but the first line indented.

    Words are broken only where they are longer than a line.
    """
    lines: list[str] = []
    line = ""
    left = list(reversed(words))
    while left:
        word = left.pop()
        start = line + " " if line.strip() else line
        if len(start + word) <= room:
            line = start + word
        elif line.strip():
            lines.append(line)
            line = " " * indent
            left.append(word)
        else:
            most = room - len(line)
            space = word.rfind(" ", most // 2, most)
            end = space + 1 if space > 0 else most
            lines.append(line + word[:end])
            line = " " * indent
            left.append(word[end:])
    return [*lines, line]


def paragraph(sentences: Sequence[str], width: int) -> list[str]:
    return [part for sentence in sentences for part in wrapped(sentence, 2, width)]


def wrapped(text: str, indent: int, width: int) -> list[str]:
    """Lines of at most ``width`` characters; those after the first are indented a little more."""
    text = " " * indent + printable(text)
    if len(text) <= width:
        return [text] if text.strip() else []
    return textwrap.wrap(text, width, subsequent_indent=" " * (indent + 2), break_on_hyphens=False)


def page(
    title: str, facts: str, blocks: Sequence[Sequence[str]], certificate_lines: Sequence[str], width: int
) -> str:
    """A whole card: the heading, blocks of lines, and the certificate if there is one."""
    heading = [*wrapped(title, 0, width), "=" * width, *wrapped(facts, 0, width)]
    certificate = ["Certificate", *paragraph(certificate_lines, width)]
    every = [heading, *blocks, *([certificate] if certificate_lines else [])]
    return "\n".join(line.rstrip() for block in every for line in [*block, ""])


def feature_block(
    name: str, rows: Iterable[tuple[Sequence[str], str, str]], column: int, width: int
) -> list[str]:
    """The name of a feature and its rows: the lines of each, its value and a bar beside the first line."""
    lines = wrapped(name, 0, width) or ["(a feature without a name)"]
    for (first, *others), value, bar in rows:
        lines.append(f"{'':{INDENT}}{first:<{column}}  {value}  {bar}")
        lines += [f"{'':{INDENT}}{part}" for part in others]
    return lines


def check_width(width: int) -> None:
    """Refuse pages that are too narrow for numbers and bars."""
    if width < MIN_WIDTH:
        raise ValueError(f"width must be at least {MIN_WIDTH}; got {width}.")


def size_of(ensemble: Any) -> str:
    """How large a model is: "3 terms on 2 of 8 features"."""
    return f"{counted(ensemble.n_terms, 'term')} on {features_of(ensemble)}"


def features_of(model: Any) -> str:
    """How many features a model uses: "2 of 8 features"."""
    return f"{len(model.features_used)} of {counted(model.n_features, 'feature')}"


def counted(count: int, thing: str) -> str:
    """A number of things: "1 term", "2 terms"."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Row:
    """What adds a value to the score: a text with a note that may go elsewhere, or lines broken already.

    ``words`` need an explanation at the end of the card.
    """

    text: str
    note: str
    level: float
    lines: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()

    def broken(self, room: int) -> tuple[str, ...]:
        return self.lines or tuple(pack((self.text + self.note).split(" "), 3, room))


# ------------------------------------------------------------------------------------- missing values


def notes_missing(ensemble: Ensemble, feature: int) -> bool:
    """Whether the rows of a feature say what a missing value adds: it had some in training, or may have."""
    return ensemble.missing_in_training is None or feature in ensemble.missing_in_training


def missing_sentences(ensemble: Ensemble, values: Sequence[tuple[int, str]]) -> list[str]:
    """What missing values add of the features whose rows do not say so, in one sentence; or none.

    ``values`` has features in the order of the card, each with what a missing value adds.
    """
    silent = [(feature, value) for feature, value in values if not notes_missing(ensemble, feature)]
    if not silent:
        return []
    unseen = any(feature in ensemble.categories for feature, _ in silent)
    what = "a missing value or a new label" if unseen else "a missing value"
    parts = ", ".join(f"{ensemble.feature_name(feature)} {value}" for feature, value in silent)
    return [f"training had no missing values of these; {what} adds: {parts}"]


# ------------------------------------------------------------------------------------- rows of numbers


def interval_rows(step: StepFunction, note_missing: bool = True) -> list[Row]:
    """Intervals with their values; neighbours of equal value are one interval.

    With ``note_missing`` one of them, or a row more, says what a missing value adds.
    """
    cuts, levels = step.distinct()
    lower = ["", *map(number, cuts)]
    upper = [*map(number, cuts), ""]
    aligned = max(len(text) for text in lower[:-1]) if cuts else 0  # the last has no second bound
    rows = []
    noted = not note_missing
    for above, up_to, level in zip(lower, upper, levels, strict=True):
        if above and up_to:
            text = f">  {above + ',':<{aligned + 1}} <= {up_to}"
        else:
            text = f">  {above}" if above else f"<= {up_to}" if up_to else "any value"
        note = "" if noted or level != step.missing else " (also missing)"
        noted = noted or bool(note)
        rows.append(Row(text, note, level))
    return rows if noted else [*rows, Row("missing", "", step.missing)]


def fit_notes(rows: Sequence[Row], room: int) -> list[Row]:
    """A note that does not fit beside its interval becomes a row of its own."""
    fitted: list[Row] = []
    moved: list[Row] = []
    for row in rows:
        if row.note and len(row.text + row.note) > room:
            fitted.append(Row(row.text, "", row.level))
            moved.append(Row("missing", "", row.level))
        else:
            fitted.append(row)
    return fitted + moved


# ------------------------------------------------------------------------------------- rows of labels


@dataclass
class _Group:
    """Labels of one value. With missing values in it, also all labels that were not seen in training."""

    level: float
    kept: list[str] = field(default_factory=list)
    rare: list[str] = field(default_factory=list)
    missing: bool = False
    note_missing: bool = True

    @property
    def size(self) -> int:
        return len(self.kept) + len(self.rare)

    def listed(self, room: int, limit: int) -> Row | None:
        """All labels by name, or the rare ones by their number; None if that takes too many lines."""
        row = self._row([*self.kept, *self.rare], room)
        if self.size <= _FEW:
            return row
        if len(row.lines) > limit and self.rare:
            rare = f"other ({len(self.rare)} rare labels)"
            row = self._row([*self.kept, rare], room, OTHERS)
        return row if len(row.lines) <= limit else None

    def cut_off(self, room: int, limit: int) -> Row:
        """As many labels as the lines can take, and the number of those left out."""
        names = [*self.kept, *self.rare]
        shown = min(len(names), limit * room // 2)
        while True:
            shown -= 1
            row = self._row(names[:shown], room, MORE, left_out=len(names) - shown)
            if len(row.lines) <= limit or shown == 1:
                return row

    def rest(self, room: int, alone: bool) -> Row:
        """The labels that no other row has, if all other rows say which labels they have."""
        if self.missing:
            text = ["any label" if alone else "any other label"]
            text += ["(also missing)"] if self.note_missing else []
            return Row("", "", self.level, tuple(pack(text, 3, room)))
        text = [f"any other known label ({self.size})"]
        return Row("", "", self.level, tuple(pack(text, 3, room)), frozenset({KNOWN}))

    def _row(self, names: list[str], room: int, *explained: str, left_out: int = 0) -> Row:
        noted = self.missing and self.note_missing
        note = ["(also missing", "or unseen)"] if noted else []
        words = frozenset(explained) | ({UNSEEN} if noted else set())
        bare = not self.kept and OTHERS in explained  # "other (5 rare labels)"
        lines = tuple(pack([*names, *note], 3, room)) if bare else _packed(names, left_out, note, room)
        return Row("", "", self.level, lines, words)


def label_rows(
    step: StepFunction,
    categories: Categories,
    points: AlignedNumbers,
    room: int,
    note_missing: bool = True,
) -> list[Row]:
    """Groups of labels with the same value, highest first; then the rest, and what is missing.

    With ``note_missing`` a row says what missing values and unseen labels add.

    The largest group that its labels would make too long is "any other label", or "any other known label" if
    labels not seen in training have another value. A reader can do without its list, as all others have one.
    """
    groups = _groups(step, categories, points)
    if not note_missing:
        groups = [replace(group, note_missing=False) for group in groups if group.size]
    limit = max(1, MOST_LINES // len(groups))
    named = [(group, group.listed(room, limit)) for group in groups if group.size]
    long = [group for group, row in named if row is None]
    if len(long) == 1 and not long[0].missing:  # it may have the lines that the others leave
        taken = sum(len(row.lines) for _, row in named if row) + sum(not group.size for group in groups)
        named = [(group, row or group.listed(room, MOST_LINES - taken)) for group, row in named]
        long = [group for group, row in named if row is None]
    rest: _Group | None = None
    for group, row in named:
        brief = row is not None and (len(row.lines) == 1 or group.size <= _FEW)
        if (row is None or (group.missing and not brief)) and all(other is group for other in long):
            rest = group
    rows = [row or group.cut_off(room, limit) for group, row in named if group is not rest]
    rows.sort(key=lambda row: -row.level)
    if rest is not None:
        rows.append(rest.rest(room, alone=len(groups) == 1))
    for group in groups:
        if not group.size:
            rows.append(Row("missing or unseen", "", group.level, words=frozenset({UNSEEN})))
    return rows


def _groups(step: StepFunction, categories: Categories, points: AlignedNumbers) -> list[_Group]:
    """Labels, and missing values, that show the same value."""
    labels: list[Label] = [*categories.kept, *categories.rare]
    name = dict(zip(labels, category_names(labels), strict=True))
    groups: dict[str, _Group] = {}
    for category, level in zip(step.categories or (), step.levels, strict=True):
        group = groups.setdefault(points.show(level), _Group(level))
        if isinstance(category, Other):
            group.rare = [name[label] for label in categories.rare]
        else:
            group.kept.append(name[category])
    groups.setdefault(points.show(step.missing), _Group(step.missing)).missing = True
    return list(groups.values())


def _packed(names: Sequence[str], left_out: int, note: Sequence[str], room: int) -> tuple[str, ...]:
    """The lines of "is a" or "is one of a, b, c"; "is a, b, c" if that takes fewer."""
    words = [f"{name}," for name in names[:-1]] + list(names[-1:])
    words += [f"and {left_out} more"] if left_out else []
    forms = [pack([f"{start} {words[0]}", *words[1:], *note], 3, room) for start in ("is one of", "is")]
    long = len(words) > 1 and len(forms[0]) <= len(forms[1])
    return tuple(forms[0] if long else forms[1])

"""The lines of one feature on a card: intervals of numbers, or groups of labels, and what they add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cardboost.data.categories import Categories, Label, Other
from cardboost.model.card_text import Points, category_names, number, pack
from cardboost.model.terms import StepFunction

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


# ------------------------------------------------------------------------------------------------ numbers


def interval_rows(step: StepFunction) -> list[Row]:
    """Intervals with their values; neighbours of equal value are one interval."""
    cuts, levels = step.distinct()
    lower = ["", *map(number, cuts)]
    upper = [*map(number, cuts), ""]
    aligned = max(len(text) for text in lower[:-1]) if cuts else 0  # the last has no second bound
    rows = []
    noted = False
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


# ------------------------------------------------------------------------------------------------ labels


@dataclass
class _Group:
    """Labels of one value. With missing values in it, also all labels that were not seen in training."""

    level: float
    kept: list[str] = field(default_factory=list)
    rare: list[str] = field(default_factory=list)
    missing: bool = False

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
            row = self._row(names[:shown], room, MORE, more=len(names) - shown)
            if len(row.lines) <= limit or shown == 1:
                return row

    def rest(self, room: int, alone: bool) -> Row:
        """The labels that no other row has, if all other rows say which labels they have."""
        if self.missing:
            text = ["any label" if alone else "any other label", "(also missing)"]
            return Row("", "", self.level, tuple(pack(text, 3, room)))
        text = [f"any other known label ({self.size})"]
        return Row("", "", self.level, tuple(pack(text, 3, room)), frozenset({KNOWN}))

    def _row(self, names: list[str], room: int, *explained: str, more: int = 0) -> Row:
        note = ["(also missing", "or unseen)"] if self.missing else []
        found = frozenset(explained) | ({UNSEEN} if self.missing else set())
        bare = not self.kept and OTHERS in explained  # "other (5 rare labels)"
        lines = tuple(pack([*names, *note], 3, room)) if bare else _packed(names, more, note, room)
        return Row("", "", self.level, lines, found)


def label_rows(step: StepFunction, categories: Categories, points: Points, room: int) -> list[Row]:
    """Groups of labels with the same value, highest first; then the rest, and what is missing.

    The largest group that its labels would make too long is "any other label", or "any other known label" if
    labels not seen in training have another value. A reader can do without its list, as all others have one.
    """
    groups = _groups(step, categories, points)
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
        if (row is None or (group.missing and not brief)) and not [own for own in long if own is not group]:
            rest = group
    rows = [row or group.cut_off(room, limit) for group, row in named if group is not rest]
    rows.sort(key=lambda row: -row.level)
    if rest is not None:
        rows.append(rest.rest(room, alone=len(groups) == 1))
    for group in groups:
        if not group.size:
            rows.append(Row("missing or unseen", "", group.level, words=frozenset({UNSEEN})))
    return rows


def _groups(step: StepFunction, categories: Categories, points: Points) -> list[_Group]:
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


def _packed(names: Sequence[str], more: int, note: Sequence[str], room: int) -> tuple[str, ...]:
    """The lines of "is a" or "is one of a, b, c"; "is a, b, c" if that takes fewer."""
    words = [f"{name}," for name in names[:-1]] + list(names[-1:])
    words += [f"and {more} more"] if more else []
    forms = [pack([f"{start} {words[0]}", *words[1:], *note], 3, room) for start in ("is one of", "is")]
    long = len(words) > 1 and len(forms[0]) <= len(forms[1])
    return tuple(forms[0] if long else forms[1])

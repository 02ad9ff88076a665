"""Facts as lines of text for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cardboost.model.printable import printable
from cardboost.report.document import WIDTH, filled, table_lines

if TYPE_CHECKING:
    from cardboost.report.facts import ClassFacts, Confusion, Estimate, Facts, GroupFacts

NAMES = {
    "event_share": "share of events",
    "auc": "AUC",
    "gini": "Gini",
    "ks": "KS",
    "log_loss": "log loss",
    "brier": "Brier score",
    "calibration_in_the_large": "calibration in the large",
    "accuracy": "accuracy",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "precision": "precision",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "median_absolute_error": "median absolute error",
    "r2": "R2",
    "bias": "bias",
}
#: what a line of a subgroup shows: the first with its interval
_OF_GROUP = {
    "binary": ("auc", "event_share", "accuracy"),
    "multiclass": ("accuracy", "auc"),
    "regression": ("rmse", "bias"),
}
_SIGNED = ("calibration_in_the_large", "bias")
_LONGEST = 24  # characters of a label
_LONGEST_GROUP = 16
_BAR = {"binary": 24, "regression": 12}  # characters, beside numbers that can be long


def lines(facts: Facts) -> list[str]:
    """The facts for a terminal of 80 columns.

    Parameters
    ----------
    facts : Facts
        What is known.

    Returns
    -------
    list of str
        Lines of text.
    """
    out = [_headline(facts), "", *_measures(facts)]
    if facts.classes:
        out += ["", "Every class against the others", "", *_classes(facts.classes)]
    if facts.confusion is not None:
        out += ["", *_confusion(facts, facts.confusion)]
    if facts.calibration:
        out += ["", *_calibration(facts)]
    if facts.groups:
        out += ["", *_groups(facts)]
    return [*out, *_method(facts)]


def _headline(facts: Facts) -> str:
    rows = f"{facts.rows:,} row{'' if facts.rows == 1 else 's'}"
    weight = "" if facts.weight == facts.rows else f" of weight {facts.weight:,.6g}"
    events = "" if facts.events is None else f", {facts.events:,} of them {_event(facts)}"
    return f"{rows}{weight}{events}"


def _event(facts: Facts) -> str:
    return "events" if facts.confusion is None else _label(facts.confusion.labels[1])


def _measures(facts: Facts) -> list[str]:
    shown = []
    for name, estimate in facts.measures.items():
        where = f" (at {facts.ks_at:.4g})" if name == "ks" and facts.ks_at is not None else ""
        number = _numbers(facts, signed=name in _SIGNED)
        shown.append([NAMES[name] + where, number(estimate.value), _interval(estimate, number)])
    return table_lines(["measure", "value", _interval_name(facts)], shown, left=(0,))


def _classes(classes: Sequence[ClassFacts]) -> list[str]:
    header = ["class", "rows", "share", "recall", "precision", "AUC"]
    cells = [
        [_label(c.label), f"{c.rows:,}", *(_four(e.value) for e in (c.share, c.recall, c.precision, c.auc))]
        for c in classes
    ]
    return table_lines(header, cells, left=(0,))


def _confusion(facts: Facts, confusion: Confusion) -> list[str]:
    weighted = facts.weight != facts.rows
    title = f"Confusion{_at(facts)}: {'weight' if weighted else 'rows'} by class and predicted class"
    labels = [_label(label, _LONGEST if len(confusion.labels) == 2 else 7) for label in confusion.labels]
    held = confusion.weight if weighted else confusion.rows
    body = [
        [label, *(f"{cell:,.4g}" if weighted else f"{cell:,}" for cell in line)]
        for label, line in zip(labels, held, strict=True)
    ]
    table = table_lines(["class", *labels], body, left=(0,))
    if max(map(len, table)) > WIDTH:
        return [f"The confusion table of {len(labels)} classes is too wide to be shown."]
    return [title, "", *table]


def _at(facts: Facts) -> str:
    threshold = facts.threshold
    if threshold is None:
        return ""
    if threshold.on == "points":
        return f" from {threshold.value:g} points on"
    preposition = "above a score" if threshold.on == "score" else "from a probability"
    return f" {preposition} of {threshold.value:g}{'' if threshold.on == 'score' else ' on'}"


def _calibration(facts: Facts) -> list[str]:
    """A bar up to what was observed, with a mark at the prediction."""
    number = _numbers(facts)
    seen = [group.observed.value for group in facts.calibration if group.observed.value is not None]
    both = [*seen, *(group.predicted for group in facts.calibration)]
    low, high = min(both), max(both)
    if facts.task == "binary":
        low = 0.0
    rows = [
        [
            f"{group.rows:,}",
            number(group.predicted),
            number(group.observed.value),
            _interval(group.observed, number),
            _bar(group.predicted, group.observed.value, low, high, _BAR[facts.task]),
        ]
        for group in facts.calibration
    ]
    header = ["rows", "predicted", "observed", _interval_name(facts), ""]
    title = "Calibration by predicted value (# observed, | predicted)"
    return [title, "", *table_lines(header, rows, left=(4,))]


def _bar(predicted: float, observed: float | None, low: float, high: float, width: int) -> str:
    def position(value: float) -> int:
        return round((value - low) / (high - low) * (width - 1)) if high > low else 0

    bar = list("#" * (0 if observed is None or observed == low else position(observed) + 1))
    bar += " " * (width - len(bar))
    bar[position(predicted)] = "|"
    return "".join(bar)


def _groups(facts: Facts) -> list[str]:
    number, measures = _numbers(facts), _OF_GROUP[facts.task]
    header = [_label(facts.by, _LONGEST_GROUP), "rows", NAMES[measures[0]], _interval_name(facts)]
    header += [NAMES[name] for name in measures[1:]]

    def cells(group: GroupFacts) -> list[str]:
        if group.facts is None:
            return [_label(group.label, _LONGEST_GROUP), "few", *[""] * (len(header) - 2)]
        first, *others = (group.facts.measures[name] for name in measures)
        shown = [number(first.value), _interval(first, number), *(number(e.value) for e in others)]
        return [_label(group.label, _LONGEST_GROUP), f"{group.rows:,}", *shown]

    notes = "Of many groups some differ by chance alone."
    if any(group.facts is None for group in facts.groups):
        notes += " Groups of fewer than five rows are not shown."
    table = table_lines(header, [cells(group) for group in facts.groups], left=(0,))
    return [f"By {_label(facts.by)}", "", *table, "", *filled(notes, indent=2)]


def _method(facts: Facts) -> list[str]:
    bootstrap = facts.bootstrap
    if bootstrap is None:
        return []
    of_rows = "" if bootstrap.rows == facts.rows else f" of {bootstrap.rows:,} rows drawn at random"
    resamples = f"{bootstrap.resamples:,} bootstrap resamples{of_rows} (seed {bootstrap.seed})"
    return ["", *filled(f"Intervals: percentiles of {resamples}.")]


def _interval_name(facts: Facts) -> str:
    return "" if facts.bootstrap is None else f"{facts.bootstrap.level:.0%} interval".replace("%", " %")


def _interval(estimate: Estimate, number: Any) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{number(estimate.low)} to {number(estimate.high)}"


def _numbers(facts: Facts, signed: bool = False) -> Any:
    """How numbers are written: shares with four decimals, amounts with five digits."""
    form = "#.5g" if facts.task == "regression" else ".4f"

    def text(value: float | None) -> str:
        return "-" if value is None else format(value, f"+{form}" if signed else form)

    return text


def _four(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _label(label: Any, longest: int = _LONGEST) -> str:
    text = printable(str(label))
    return text if len(text) <= longest else f"{text[: longest - 3]}..."

"""The experiments on cardinality penalisation as files: text, the twelve panels, a page and plain data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from cardboost.report import html
from cardboost.report.figures import Figure
from cardboost.report.png import png_of
from cardboost.report.text import WIDTH, columns, filled
from cardboost.reproduce.totalqboost import HOT_START, Settings
from cardboost.reproduce.totalqboost_figures import figures_of
from cardboost.reproduce.totalqboost_gains import (
    SIZES,
    WITH_SIZES,
    Count,
    Mean,
    MeanDifferences,
    SetSummary,
    SplitResult,
    law_d,
    law_e,
    law_f,
    mean_of,
    single_difference,
    summarise,
    table_entries,
    total,
    worse_count,
)
from cardboost.reproduce.totalqboost_paper import GENERALISATION_GAINS, TABLE_1, WORSE, Entry

TITLE = "Boosting with a price on cardinality: the experiments again"
_SHOWN = 0  # the split of the table

Rows = list[list[str]]


@dataclass(frozen=True)
class Law:
    """What must hold, and how often it does not."""

    letter: str
    claim: str
    count: Count

    @property
    def holds(self) -> bool:
        return self.count.worse == 0


@dataclass(frozen=True)
class Study:
    """All that was found, and where the data are from. ``missing``: a sentence for every set left out."""

    settings: Settings
    sources: dict[str, str]
    missing: tuple[str, ...]
    results: tuple[SplitResult, ...]

    @cached_property
    def by_set(self) -> dict[str, list[SplitResult]]:
        found: dict[str, list[SplitResult]] = {}
        for own in self.results:
            found.setdefault(own.dataset, []).append(own)
        return found

    @property
    def n_splits(self) -> int:
        return max(len(own) for own in self.by_set.values())

    @cached_property
    def summaries(self) -> list[SetSummary]:
        """Of the paper's experiments."""
        return [summarise(own) for own in self.by_set.values()]

    @cached_property
    def with_sizes(self) -> list[SetSummary]:
        """With F among those that choose."""
        return [summarise(own, WITH_SIZES) for own in self.by_set.values()]

    @cached_property
    def single(self) -> dict[str, Mean | None]:
        """F less B, one ensemble each, for every set."""
        return {name: mean_of(map(single_difference, own)) for name, own in self.by_set.items()}

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        return (
            Law("a", "E is never worse than B's ensembles of at most T' columns", self._all(law_e)),
            Law("b", "D is never worse than E", self._all(law_d)),
            Law("c", "F is never worse than E and those ensembles of B", self._all(law_f)),
        )

    @property
    def holds(self) -> bool:
        return all(law.holds for law in self.laws)

    def counts(self, ours: str, theirs: str, measure: str) -> Count:
        return total(worse_count(own.points, ours, theirs, measure) for own in self.results)

    def proved(self, name: str) -> Count:
        """As ``worse`` those that are proved."""
        return total(Count(*own.proved[name]) for own in self.with_sizes)

    def _all(self, law: Any) -> Count:
        return total(law(own) for own in self.results)


def files(found: Study) -> dict[str, bytes | None]:
    """Every file by its name; None for a picture that nothing here can draw."""
    figures = figures_of(found.by_set)
    contents: dict[str, bytes | None] = {
        "report.txt": report(found).encode(),
        "results.json": (json.dumps(plain(found), separators=(",", ":"), allow_nan=False) + "\n").encode(),
        "index.html": web_page(found, figures).encode(),
    }
    for name in ("figure-3", "mean"):
        figure = figures.get(name)
        contents[f"{name}.svg"] = None if figure is None else figure.svg().encode()
        contents[f"{name}.png"] = None if figure is None else png_of(figure.svg(), *figure.size)
    return contents


# what is said, once for the text and for the page


def _intro(found: Study) -> list[str]:
    own = found.settings
    said = [
        f"Five experiments on {_number(len(found.by_set), 'set')}, {_number(found.n_splits, 'split')} into "
        f"80 % for training and 20 % for validation: A ({own.prices} prices nu), B (up to {own.columns} "
        f"columns, every ensemble), C, D and E ({own.prices} prices lambda). Exponential loss, stumps, "
        f"columns by largest edge, no intercept, {own.bits} bits, epsilon {own.epsilon:g} on summed losses. "
        "A sixth, F, is not the paper's: E with a limit on terms in place of a price, for every number of "
        "terms.",
        "All check points hold." if found.holds else "NOT ALL CHECK POINTS HOLD.",
    ]
    return said + [f"MISSING: {own}" for own in found.missing]


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


_TABLE_WORDS = (
    "In the form of the paper's Table 1, split 1: validation error in %, terms, and sparsity gain in % over "
    "the sparsest ensemble of A and B that is no worse. *: better than all of A and B, with the gain in "
    "error. Some of the paper's sets are other versions and its split is another one: compare shapes."
)


def _table(found: Study) -> tuple[list[str], Rows]:
    header = ["set", "", "paper", "terms", "gain", "here", "terms", "gain", "by"]
    rows: Rows = []
    for name, splits in found.by_set.items():
        printed = {own.tag: own for own in TABLE_1.get(name, ())}
        ours = {own.entry.tag: own for own in table_entries(splits[_SHOWN])}
        tags = [tag for tag in "*12345" if tag in printed or tag in ours] or [""]
        for k, tag in enumerate(tags):
            theirs = printed.get(tag)
            own = ours.get(tag)
            gain = GENERALISATION_GAINS.get(name) if tag == "*" else theirs.gain if theirs else None
            cells = [*_cells(theirs, gain)]
            if own is None:
                cells += ["", "", "", ""]
            else:
                better = own.generalisation if tag == "*" else own.entry.gain
                cells += [*_cells(own.entry, better), own.point.experiment]
            rows.append([name if k == 0 else "", tag or "none", *cells])
    return header, rows


def _cells(entry: Entry | None, gain: float | None) -> list[str]:
    if entry is None:
        return ["", "", ""]
    return [f"{entry.error:.2f}", str(entry.terms), "" if gain is None else f"{gain:.2f}"]


_GAIN_WORDS = (
    "Those that choose against A and B, both on the same rows of every split, means over splits with "
    "standard errors. Sparsity gain in %: the mean of 1 - k/k', with k terms chosen and k' in the sparsest "
    "of A and B that is no worse; first over the frontier of those that choose, as the paper defines it, "
    "then over the validation errors of both frontiers that both sides reach, which favours neither. A "
    "star: positive beyond two standard errors. Beside it how many such errors there are, and how many "
    "only one side reaches. Then the validation error of those that choose less that of A and B, in "
    f"percentage points: the least with no more than {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]} "
    "terms, and that of the best with equally many, so many or the next fewer that both sides have. First "
    "C to E; then with F, as a price reaches only some numbers of terms."
)


def _gain_blocks(found: Study) -> list[tuple[str, str, list[SetSummary]]]:
    """The title, what is seen, and the sets, for the paper's experiments and with F."""
    parts = [("C to E", found.summaries), ("C to F", found.with_sizes)]
    return [(f"{name} against A and B", _seen(found, own), own) for name, own in parts]


def _seen(found: Study, sets: list[SetSummary]) -> str:
    at_most, equal = sum(own.at_most.lower for own in sets), sum(own.equal.lower for own in sets)
    errors = (
        f"averaged over the three sizes, is lower on {at_most} of {len(sets)} with at most so many terms, "
        f"and on {equal} with equally many."
    )
    if found.n_splits < 2:
        return f"One split has no standard error. The error, {errors}"
    frontier = sum(own.own is not None and own.own.positive for own in sets)
    both = sum(own.sparsity is not None and own.sparsity.positive for own in sets)
    return (
        f"The sparsity gain is positive beyond two standard errors on {frontier} of {len(sets)} sets over "
        f"the frontier of those that choose, and on {both} over both; the error, {errors}"
    )


def _gains(sets: list[SetSummary]) -> tuple[list[str], Rows]:
    header = ["set", "frontier", "both", "errors", "choices only", "A-B only"]
    rows = []
    for own in sets:
        rows.append([own.dataset, _starred(own.own), _starred(own.sparsity), *map(str, own.reached)])
    return header, rows


_SINGLE_WORDS = (
    "One ensemble a side: the validation error of F less that of B with as many terms, in percentage points, "
    "mean over all numbers of terms that F has. The gains above are between the best of several on either "
    "side, and C to F have more of them at a given number of terms; here nothing is picked by its error. A "
    "star: lower beyond two standard errors."
)


def _single(found: Study) -> tuple[list[str], Rows]:
    rows = []
    for name, own in found.single.items():
        lower = own is not None and own.error is not None and own.mean < -2.0 * own.error
        rows.append([name, _mean(own, 2) + (" *" if lower else "  ")])
    return ["set", "F less B"], rows


def _starred(own: Mean | None) -> str:
    return _mean(own, 1) + (" *" if own is not None and own.positive else "  ")


def _differences(sets: list[SetSummary]) -> list[tuple[list[str], Rows]]:
    at_most = [(own.dataset, own.at_most) for own in sets]
    equal = [(own.dataset, own.equal) for own in sets]
    return [_difference_table("<= {} terms", at_most), _difference_table("as many, {}", equal)]


def _difference_table(title: str, sets: list[tuple[str, MeanDifferences]]) -> tuple[list[str], Rows]:
    header = ["set", *(title.format(size) for size in SIZES), "all three"]
    rows = []
    for name, own in sets:
        rows.append([name, *(_mean(own.sizes[size], 2) for size in SIZES), _mean(own.all, 2)])
    return header, rows


def _mean(own: Mean | None, decimals: int) -> str:
    """In percent, with the standard error."""
    if own is None:
        return ""
    text = f"{100 * own.mean:+.{decimals}f}"
    return text if own.error is None else f"{text} ± {100 * own.error:.{decimals}f}"


def _proof_words(found: Study) -> str:
    counts = [(name, found.proved(name)) for name in WITH_SIZES]
    parts = [f"{own.worse} of {own.compared} in {name}" for name, own in counts]
    return (
        f"Choices proved optimal among the columns they were made from: {', '.join(parts[:-1])} and "
        f"{parts[-1]}. "
        "Exact search has a budget of work, not of time, so that the numbers are the same everywhere."
    )


def _proofs(found: Study) -> tuple[list[str], Rows]:
    header = ["set", "T'", *WITH_SIZES]
    rows = [
        [own.dataset, str(HOT_START[own.dataset]), *(f"{a} of {b}" for a, b in own.proved.values())]
        for own in found.with_sizes
    ]
    return header, rows


_COUNT_WORDS = (
    "How often one experiment is worse than another with as many terms on the training rows, in % of the "
    "numbers of terms that both have; the best ensemble of each counts. Risk is the mean loss with nu times "
    "the weights."
)


def _counts(found: Study) -> tuple[list[str], Rows]:
    header = ["", "on", "paper", "here", "worse", "compared"]
    rows = []
    for (ours, theirs, measure), printed in WORSE.items():
        own = found.counts(ours, theirs, measure)
        on = "risk" if measure == "risk" else "training error"
        rows.append(
            [f"{ours} worse than {theirs}", on, f"{printed:.2f}", f"{100 * own.share:.2f}", str(own.worse),
             str(own.compared)]
        )  # fmt: skip
    return header, rows


_WHICH = {
    "a": "; choices of E proved optimal only",
    "b": "; choices proved optimal only",
    "c": "; all choices of F",
}


def _law_words(law: Law) -> str:
    return (
        f"{law.count.worse} of {law.count.compared} pairs of equal cardinality are worse in regularised "
        f"risk, at equal nu and box{_WHICH[law.letter]}"
    )


def _verdict(holds: bool) -> str:
    return "holds" if holds else "FAILS"


# text


def report(found: Study) -> str:
    lines = [TITLE, "=" * WIDTH, ""]
    for sentence in _intro(found):
        lines += filled(sentence)
    lines += ["", "data", *columns(["set", "source"], [[*own] for own in found.sources.items()], (0, 1))]
    lines += ["", "Table 1", "-" * WIDTH, *filled(_TABLE_WORDS), "", *columns(*_table(found), (0, 1, 8))]
    lines += ["", "Gains", "-" * WIDTH, *filled(_GAIN_WORDS)]
    for title, seen, sets in _gain_blocks(found):
        lines += ["", title, *filled(seen)]
        for table in (_gains(sets), *_differences(sets)):
            lines += ["", *columns(*table, (0,))]
    lines += ["", *filled(_SINGLE_WORDS), "", *columns(*_single(found), (0,))]
    lines += ["", "Proofs", "-" * WIDTH, *filled(_proof_words(found)), "", *columns(*_proofs(found), (0,))]
    lines += ["", "Counts of section 5.1", "-" * WIDTH, *filled(_COUNT_WORDS), ""]
    lines += [*columns(*_counts(found), (0, 1)), "", "check points"]
    for law in found.laws:
        lines.append(f"  ({law.letter}) {_verdict(law.holds)}  {law.claim}")
        lines += filled(_law_words(law), 6)
    return "\n".join(lines) + "\n"


def web_page(found: Study, figures: dict[str, Figure]) -> str:
    blocks = [html.paragraph(words) for words in _intro(found)]
    blocks += [html.figure(figure.svg()) for figure in figures.values()]
    blocks += [html.heading("Table 1"), html.paragraph(_TABLE_WORDS), html.table(*_table(found), (0, 1, 8))]
    blocks += [html.heading("Gains"), html.paragraph(_GAIN_WORDS)]
    for title, seen, sets in _gain_blocks(found):
        blocks.append(html.paragraph(f"{title}. {seen}"))
        blocks += [html.table(*table, (0,)) for table in (_gains(sets), *_differences(sets))]
    blocks += [html.paragraph(_SINGLE_WORDS), html.table(*_single(found), (0,))]
    blocks += [html.heading("Proofs"), html.paragraph(_proof_words(found)), html.table(*_proofs(found), (0,))]
    blocks += [html.heading("Counts of section 5.1"), html.paragraph(_COUNT_WORDS)]
    blocks += [html.table(*_counts(found), (0, 1))]
    laws = [[f"({law.letter})", law.claim, _law_words(law), _verdict(law.holds)] for law in found.laws]
    blocks.append(html.table(["", "check point", "measured", ""], laws, (0, 1, 2, 3)))
    sources = [[*own] for own in found.sources.items()]
    blocks += [html.heading("Data"), html.table(["set", "source"], sources, (0, 1))]
    return html.page(TITLE, blocks)


# plain data


def plain(found: Study) -> dict[str, Any]:
    """All numbers, for a script."""
    return {
        "experiment": "totalqboost",
        "holds": found.holds,
        "settings": asdict(found.settings),
        "data": found.sources,
        "missing": list(found.missing),
        "check_points": [
            {"letter": law.letter, "claim": law.claim, "holds": law.holds, **asdict(law.count)}
            for law in found.laws
        ],
        "worse": [
            {"ours": ours, "theirs": theirs, "on": on, "paper_percent": printed,
             **asdict(found.counts(ours, theirs, on))}
            for (ours, theirs, on), printed in WORSE.items()
        ],
        "proved": {name: list(asdict(found.proved(name)).values()) for name in WITH_SIZES},
        "summaries": [asdict(own) for own in found.summaries],
        "with_sizes": [asdict(own) for own in found.with_sizes],
        "single": {name: None if own is None else asdict(own) for name, own in found.single.items()},
        "table_1": {
            name: {
                "paper": [asdict(own) for own in TABLE_1.get(name, ())],
                "here": [
                    asdict(own.entry)
                    | {"experiment": own.point.experiment, "generalisation": own.generalisation}
                    for own in table_entries(splits[_SHOWN])
                ],
            }
            for name, splits in found.by_set.items()
        },
        "splits": [
            {"set": own.dataset, "split": own.split, "points": [asdict(point) for point in own.points]}
            for own in found.results
        ],
    }  # fmt: skip

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
    CHOSEN,
    SIZES,
    Count,
    Mean,
    SetSummary,
    SplitResult,
    law_d,
    law_e,
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
        return [summarise(own) for own in self.by_set.values()]

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        return (
            Law("a", "E is never worse than B's ensembles of at most T' columns", self._all(law_e)),
            Law("b", "D is never worse than E", self._all(law_d)),
        )

    @property
    def holds(self) -> bool:
        return all(law.holds for law in self.laws)

    def counts(self, ours: str, theirs: str, measure: str) -> Count:
        return total(worse_count(own.points, ours, theirs, measure) for own in self.results)

    def proved(self, name: str) -> Count:
        """As ``worse`` those that are proved."""
        return total(Count(*own.proved[name]) for own in self.summaries)

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
        f"columns by largest edge, no intercept, {own.bits} bits, epsilon {own.epsilon:g} on summed losses.",
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


def _gain_words(found: Study) -> list[str]:
    frontier = sum(own.own is not None and own.own.positive for own in found.summaries)
    both = sum(own.sparsity is not None and own.sparsity.positive for own in found.summaries)
    lower = sum(own.lower is not None and own.lower.mean < 0.0 for own in found.summaries)
    sets = len(found.summaries)
    said = [
        "C to E against A and B, both on the same rows of every split, means over splits with standard "
        "errors. Sparsity gain in %: the mean of 1 - k/k', with k terms in C to E and k' in the sparsest of "
        "A and B that is no worse; first over the frontier of C to E, as the paper defines it, then over the "
        "validation errors of both frontiers that both sides reach, which favours neither. A star: positive "
        "beyond two standard errors. Beside it how many such errors there are, and how many only C to E or "
        "only A and B reach. Then the validation error of C to E less "
        f"that of A and B, in percentage points, at no more than {', '.join(map(str, SIZES[:-1]))} or "
        f"{SIZES[-1]} terms.",
    ]
    if found.n_splits > 1:
        said.append(
            f"The sparsity gain is positive beyond two standard errors on {frontier} of {sets} sets over "
            f"the frontier of C to E, and on {both} over both; the error, averaged over the three sizes, is "
            f"lower on {lower} of {sets}."
        )
    else:
        said.append(
            f"One split has no standard error. The error, averaged over the three sizes, is lower on {lower} "
            f"of {sets} sets."
        )
    return said


def _gains(found: Study) -> tuple[list[str], Rows]:
    header = ["set", "frontier", "both", "errors", "C-E only", "A-B only"]
    rows = []
    for own in found.summaries:
        rows.append([own.dataset, _starred(own.own), _starred(own.sparsity), *map(str, own.reached)])
    return header, rows


def _starred(own: Mean | None) -> str:
    return _mean(own, 1) + (" *" if own is not None and own.positive else "  ")


def _differences(found: Study) -> tuple[list[str], Rows]:
    header = ["set", *(f"<= {size} terms" for size in SIZES), "all three"]
    rows = []
    for own in found.summaries:
        apart = [_mean(own.differences[size], 2) for size in SIZES]
        rows.append([own.dataset, *apart, _mean(own.lower, 2)])
    return header, rows


def _mean(own: Mean | None, decimals: int) -> str:
    """In percent, with the standard error."""
    if own is None:
        return ""
    text = f"{100 * own.mean:+.{decimals}f}"
    return text if own.error is None else f"{text} ± {100 * own.error:.{decimals}f}"


def _proof_words(found: Study) -> str:
    parts = [f"{own.worse} of {own.compared} in {name}" for name in CHOSEN for own in [found.proved(name)]]
    return (
        f"Choices proved optimal among the columns they were made from: {', '.join(parts[:-1])} and "
        f"{parts[-1]}. "
        "Exact search has a budget of work, not of time, so that the numbers are the same everywhere."
    )


def _proofs(found: Study) -> tuple[list[str], Rows]:
    header = ["set", "T'", *CHOSEN]
    rows = [
        [own.dataset, str(HOT_START[own.dataset]), *(f"{a} of {b}" for a, b in own.proved.values())]
        for own in found.summaries
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


def _law_words(law: Law) -> str:
    what = "choices of E proved optimal" if law.letter == "a" else "choices proved optimal"
    return (
        f"{law.count.worse} of {law.count.compared} pairs of equal cardinality are worse in regularised "
        f"risk, at equal nu and box; {what} only"
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
    lines += ["", "Gains", "-" * WIDTH]
    for sentence in _gain_words(found):
        lines += filled(sentence)
    lines += ["", *columns(*_gains(found), (0,)), "", *columns(*_differences(found), (0,))]
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
    blocks += [
        html.heading("Gains"),
        *map(html.paragraph, _gain_words(found)),
        html.table(*_gains(found), (0,)),
        html.table(*_differences(found), (0,)),
    ]
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
        "proved": {name: list(asdict(found.proved(name)).values()) for name in CHOSEN},
        "summaries": [asdict(own) for own in found.summaries],
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

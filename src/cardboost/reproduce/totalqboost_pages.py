"""The experiments on cardinality penalisation as files: text, the twelve panels, a page and plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from cardboost.report import document as doc
from cardboost.report.figures import Figure
from cardboost.report.panels import FrontierPanel, Side
from cardboost.report.png import png_of
from cardboost.reproduce import totalqboost_gains as gains
from cardboost.reproduce.totalqboost import HOT_START, Point, Settings

TITLE = "Boosting with a price on cardinality: the experiments again"
_TABLE_SPLIT = 0  # the split of Table 1
_FEWEST_TERMS_SHOWN = 3  # with fewer the error is so large that nothing else could be seen
_SIDES = {"A and B: L1CG, UCG": gains.CONVEX, "C to E: chosen": gains.CHOSEN}
_ALL_SIDES = {**_SIDES, "C to F: chosen": gains.WITH_SIZES}

_TABLE_WORDS = (
    "In the form of the paper's Table 1, split 1: validation error in %, terms, and sparsity gain in % over "
    "the sparsest ensemble of A and B that is no worse. *: better than all of A and B, with the gain in "
    "error. Some of the paper's sets are other versions and its split is another one: compare shapes."
)
_GAIN_WORDS = (
    "Those that choose against A and B, both on the same rows of every split, means over splits with "
    "standard errors. Sparsity gain in %: the mean of 1 - k/k', with k terms chosen and k' in the sparsest "
    "of A and B that is no worse; first over the frontier of those that choose, as the paper defines it, "
    "then over the validation errors of both frontiers that both sides reach, which favours neither. A "
    "star: positive beyond two standard errors. Beside it how many such errors there are, and how many "
    "only one side reaches. Then the validation error of those that choose less that of A and B, in "
    f"percentage points: the least with no more than {', '.join(map(str, gains.SIZES[:-1]))} or "
    f"{gains.SIZES[-1]} terms, and that of the best with equally many, so many or the next fewer that both "
    "sides have. First C to E; then with F, as a price reaches only some numbers of terms."
)
_SINGLE_WORDS = (
    "One ensemble a side: the validation error of F less that of B with as many terms, in percentage points, "
    "mean over all numbers of terms that F has. The gains above are between the best of several on either "
    "side, and C to F have more of them at a given number of terms; here nothing is picked by its error. A "
    "star: lower beyond two standard errors."
)
_COUNT_WORDS = (
    "How often one experiment is worse than another with as many terms on the training rows, in % of the "
    "numbers of terms that both have; the best ensemble of each counts. Risk is the mean loss with nu times "
    "the weights."
)


@dataclass(frozen=True)
class Study:
    """All results, and where the data are from. ``missing``: a sentence for every set left out."""

    settings: Settings
    sources: dict[str, str]
    missing: tuple[str, ...]
    results: tuple[gains.SplitResult, ...]

    @cached_property
    def by_set(self) -> dict[str, list[gains.SplitResult]]:
        sets: dict[str, list[gains.SplitResult]] = {}
        for result in self.results:
            sets.setdefault(result.dataset, []).append(result)
        return sets

    @property
    def n_splits(self) -> int:
        return max(len(splits) for splits in self.by_set.values())

    @cached_property
    def summaries(self) -> list[gains.SetSummary]:
        """Summaries of the paper's experiments, one per set."""
        return [gains.summarise(splits) for splits in self.by_set.values()]

    @cached_property
    def with_sizes(self) -> list[gains.SetSummary]:
        """Summaries with F among those that choose, one per set."""
        return [gains.summarise(splits, gains.WITH_SIZES) for splits in self.by_set.values()]

    @cached_property
    def single(self) -> dict[str, gains.Mean | None]:
        """F less B, one ensemble each, for every set."""
        return {
            name: gains.mean_of(map(gains.single_difference, splits)) for name, splits in self.by_set.items()
        }

    @cached_property
    def checks(self) -> tuple[doc.CheckPoint, ...]:
        """The laws that must hold between the experiments."""
        return (
            self._check(
                "a", "E is never worse than B's ensembles of at most T' columns", gains.law_e,
                "choices of E proved optimal only",
            ),
            self._check("b", "D is never worse than E", gains.law_d, "choices proved optimal only"),
            self._check(
                "c", "F is never worse than E and those ensembles of B", gains.law_f, "all choices of F"
            ),
        )  # fmt: skip

    def _check(
        self, letter: str, claim: str, law: Callable[[gains.SplitResult], gains.Count], which: str
    ) -> doc.CheckPoint:
        count = gains.total(map(law, self.results))
        measured = (
            f"{count.worse} of {count.compared} pairs of equal cardinality are worse in regularised risk, at "
            f"equal nu and box; {which}"
        )
        return doc.CheckPoint(letter, claim, measured, count.worse == 0, asdict(count))

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    def counts(self, first: str, second: str, measure: str) -> gains.Count:
        return gains.total(
            gains.worse_count(result.points, first, second, measure) for result in self.results
        )

    def proved(self, name: str) -> tuple[int, int]:
        """The number of choices of an experiment that are proved optimal, and of all."""
        counts = [summary.proved[name] for summary in self.with_sizes]
        return sum(proved for proved, _ in counts), sum(number for _, number in counts)


def files(study: Study) -> dict[str, bytes | None]:
    """Every file by its name; None for a picture that no program here can draw."""
    figures = figures_of(study.by_set)
    drawings = {f"{name}.svg": figure for name, figure in figures.items()}
    blocks = _blocks(study, list(figures.values()))
    contents: dict[str, bytes | None] = {
        **doc.report_files(TITLE, blocks, drawings, plain(study), compact=True),
        **{f"{name}.png": png_of(figure.svg(), *figure.size) for name, figure in figures.items()},
    }
    return {"mean.svg": None, "mean.png": None} | contents


def _blocks(study: Study, figures: Sequence[Figure]) -> list[doc.ReportBlock]:
    sources = doc.table(["set", "source"], [[*source] for source in study.sources.items()], left=(0, 1))
    return [
        *map(doc.paragraph, _intro(study)),
        *map(doc.figure, figures),
        doc.text_only(doc.caption("data")),
        doc.text_only(sources),
        doc.heading("Table 1"),
        doc.paragraph(_TABLE_WORDS),
        _table(study),
        doc.heading("Gains"),
        doc.paragraph(_GAIN_WORDS),
        *_gain_blocks(study, "C to E against A and B", study.summaries),
        *_gain_blocks(study, "C to F against A and B", study.with_sizes),
        doc.paragraph(_SINGLE_WORDS),
        _single(study),
        doc.heading("Proofs"),
        doc.paragraph(_proof_words(study)),
        _proofs(study),
        doc.heading("Counts of section 5.1"),
        doc.paragraph(_COUNT_WORDS),
        _counts(study),
        doc.text_only(doc.caption("check points")),
        doc.check_list(study.checks),
        doc.page_only(doc.heading("Data")),
        doc.page_only(sources),
    ]


def _intro(study: Study) -> list[str]:
    settings = study.settings
    return [
        f"Five experiments on {_number(len(study.by_set), 'set')}, {_number(study.n_splits, 'split')} into "
        f"80 % for training and 20 % for validation: A ({settings.prices} prices nu), B (up to "
        f"{settings.columns} columns, every ensemble), C, D and E ({settings.prices} prices lambda). "
        f"Exponential loss, stumps, columns by largest edge, no intercept, {settings.bits} bits, epsilon "
        f"{settings.epsilon:g} on summed losses. A sixth, F, is not the paper's: E with a limit on terms in "
        "place of a price, for every number of terms.",
        "All check points hold." if study.holds else "NOT ALL CHECK POINTS HOLD.",
        *(f"MISSING: {sentence}" for sentence in study.missing),
    ]


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _table(study: Study) -> doc.ReportBlock:
    rows: list[list[str]] = []
    for name, splits in study.by_set.items():
        printed = {entry.tag: entry for entry in gains.TABLE_1.get(name, ())}
        computed = {entry.tag: entry for entry in gains.table_entries(splits[_TABLE_SPLIT])}
        tags = [tag for tag in "*12345" if tag in printed or tag in computed] or [""]
        for k, tag in enumerate(tags):
            entry = computed.get(tag)
            rows.append(
                [
                    name if k == 0 else "", tag or "none",
                    *_cells(printed.get(tag), gains.GENERALISATION_GAINS.get(name)),
                    *_cells(entry, entry.generalisation if entry else None),
                    entry.experiment if entry else "",
                ]
            )  # fmt: skip
    header = ["set", "", "paper", "terms", "gain", "here", "terms", "gain", "by"]
    return doc.table(header, rows, left=(0, 1, 8))


def _cells(entry: gains.TableEntry | None, generalisation: float | None) -> list[str]:
    if entry is None:
        return ["", "", ""]
    gain = generalisation if entry.tag == "*" else entry.gain
    return [f"{entry.error:.2f}", str(entry.terms), "" if gain is None else f"{gain:.2f}"]


def _gain_blocks(study: Study, title: str, sets: list[gains.SetSummary]) -> list[doc.ReportBlock]:
    """Conclusions and tables for some experiments that choose against A and B."""
    words = _gain_summary(study, sets)
    rows = [
        [one.dataset, _starred(one.frontier), _starred(one.sparsity), *map(str, one.reached)] for one in sets
    ]
    blocks = [
        doc.text_only(doc.caption(title)),
        doc.text_only(doc.paragraph(words)),
        doc.page_only(doc.paragraph(f"{title}. {words}")),
        doc.table(["set", "frontier", "both", "errors", "choices only", "A-B only"], rows, left=(0,)),
    ]
    for label, name in (("<= {} terms", "at_most"), ("as many, {}", "equal")):
        rows = []
        for one in sets:
            differences = getattr(one, name)
            means = [*(differences.sizes[size] for size in gains.SIZES), differences.all]
            rows.append([one.dataset, *(_mean(mean, 2) for mean in means)])
        header = ["set", *(label.format(size) for size in gains.SIZES), "all three"]
        blocks.append(doc.table(header, rows, left=(0,)))
    return blocks


def _gain_summary(study: Study, sets: list[gains.SetSummary]) -> str:
    at_most, equal = sum(one.at_most.lower for one in sets), sum(one.equal.lower for one in sets)
    errors = (
        f"averaged over the three sizes, is lower on {at_most} of {len(sets)} with at most so many terms, "
        f"and on {equal} with equally many."
    )
    if study.n_splits < 2:
        return f"One split has no standard error. The error, {errors}"
    frontiers = sum(one.frontier is not None and one.frontier.positive for one in sets)
    both = sum(one.sparsity is not None and one.sparsity.positive for one in sets)
    return (
        f"The sparsity gain is positive beyond two standard errors on {frontiers} of {len(sets)} sets over "
        f"the frontier of those that choose, and on {both} over both; the error, {errors}"
    )


def _single(study: Study) -> doc.ReportBlock:
    rows = []
    for name, mean in study.single.items():
        lower = mean is not None and mean.error is not None and mean.mean < -2.0 * mean.error
        rows.append([name, _mean(mean, 2) + (" *" if lower else "  ")])
    return doc.table(["set", "F less B"], rows, left=(0,))


def _starred(mean: gains.Mean | None) -> str:
    return _mean(mean, 1) + (" *" if mean is not None and mean.positive else "  ")


def _mean(mean: gains.Mean | None, decimals: int) -> str:
    """A mean in percent, with its standard error."""
    if mean is None:
        return ""
    text = f"{100 * mean.mean:+.{decimals}f}"
    return text if mean.error is None else f"{text} ± {100 * mean.error:.{decimals}f}"


def _proof_words(study: Study) -> str:
    counts = [(name, *study.proved(name)) for name in gains.WITH_SIZES]
    parts = [f"{proved} of {number} in {name}" for name, proved, number in counts]
    return (
        f"Choices proved optimal among the columns they were made from: {', '.join(parts[:-1])} and "
        f"{parts[-1]}. "
        "Exact search has a budget of work, not of time, so that the numbers are the same everywhere."
    )


def _proofs(study: Study) -> doc.ReportBlock:
    rows = [
        [one.dataset, str(HOT_START[one.dataset]), *(f"{a} of {b}" for a, b in one.proved.values())]
        for one in study.with_sizes
    ]
    return doc.table(["set", "T'", *gains.WITH_SIZES], rows, left=(0,))


def _counts(study: Study) -> doc.ReportBlock:
    rows = []
    for (first, second, measure), printed in gains.WORSE.items():
        count = study.counts(first, second, measure)
        measured = "risk" if measure == "risk" else "training error"
        shares = [f"{printed:.2f}", f"{100 * count.share:.2f}"]
        rows.append(
            [f"{first} worse than {second}", measured, *shares, str(count.worse), str(count.compared)]
        )
    return doc.table(["", "on", "paper", "here", "worse", "compared"], rows, left=(0, 1))


# figures


def figures_of(by_set: Mapping[str, Sequence[gains.SplitResult]]) -> dict[str, Figure]:
    """The panels of all sets on the first split; with several splits also their means."""
    number, across = max(map(len, by_set.values())), min(3, len(by_set))
    size: dict[str, Any] = {"width": 320.0 * across + 32.0, "height": 220.0, "per_row": across}
    figures = {
        "figure-3": Figure(
            "Validation error against the number of terms",
            "Like the paper's Figure 3, on split 1. Dots: for every number of terms the best ensemble of A "
            "and B (blue circles) and of C to E (red squares). Lines: the least error with so many terms or "
            "fewer, A and B drawn through, C to E dashed. Tags are those of the table. Errors far above the "
            "least are left out.",
            tuple(_split_panel(name, splits[0]) for name, splits in by_set.items()),
            **size,
        )
    }
    if number > 1:
        figures["mean"] = Figure(
            "The least validation error with at most so many terms, mean over splits",
            f"Means over {number} splits, from the first number of terms that both sides have in "
            "every split. A and B drawn through, C to E dashed, with F dotted. The least of many errors on "
            "few rows is lower than that of any one ensemble on new rows; all sides have this in common.",
            tuple(_mean_panel(name, splits) for name, splits in by_set.items()),
            **size,
        )
    return figures


def _split_panel(name: str, split: gains.SplitResult) -> FrontierPanel:
    sides = []
    for label, experiments in _SIDES.items():
        points = split.side(experiments)
        sides.append(
            Side(label, _positions(gains.representatives(points)), _positions(gains.frontier(points)))
        )
    errors = sorted(y for side in sides for _, y in side.steps) or [0.0]
    spread = errors[len(errors) // 2] - errors[0]
    tags = tuple((entry.tag, (float(entry.terms), entry.error)) for entry in gains.table_entries(split))
    top = max([errors[0] + 3.0 * max(spread, 0.5), *(error for _, (_, error) in tags)])
    return FrontierPanel(name.replace("_", " "), "terms", "error in %", tuple(sides), tags, top)


def _positions(points: Sequence[Point]) -> tuple[tuple[float, float], ...]:
    return tuple((float(point.terms), 100.0 * point.validation_error) for point in points)


def _mean_panel(name: str, splits: Sequence[gains.SplitResult]) -> FrontierPanel:
    points = {label: [split.side(names) for split in splits] for label, names in _ALL_SIDES.items()}
    everywhere = [side for sides in points.values() for side in sides]
    first = max(min((point.terms for point in side), default=1) for side in everywhere)
    last = max(point.terms for side in everywhere for point in side)
    sides = []
    for label in _ALL_SIDES:
        steps = []
        for terms in range(first, last + 1):
            errors = [gains.least_error(side, terms) for side in points[label]]
            defined = [error for error in errors if error is not None]
            steps.append((float(terms), 100.0 * sum(defined) / len(defined)))
        sides.append(Side(label, (), tuple(steps)))
    top = max(y for side in sides for x, y in side.steps if x >= min(_FEWEST_TERMS_SHOWN, last))
    return FrontierPanel(name.replace("_", " "), "terms at most", "error in %", tuple(sides), (), top)


# plain data


def plain(study: Study) -> dict[str, Any]:
    """All numbers, for a script."""
    return {
        "experiment": "totalqboost",
        "holds": study.holds,
        "settings": asdict(study.settings),
        "data": study.sources,
        "missing": list(study.missing),
        "check_points": [
            {"letter": check.letter, "claim": check.claim, "holds": check.holds, **check.numbers}
            for check in study.checks
        ],
        "worse": [
            {"ours": first, "theirs": second, "on": measure, "paper_percent": printed,
             **asdict(study.counts(first, second, measure))}
            for (first, second, measure), printed in gains.WORSE.items()
        ],
        "proved": {name: study.proved(name) for name in gains.WITH_SIZES},
        "summaries": [_plain_summary(summary) for summary in study.summaries],
        "with_sizes": [_plain_summary(summary) for summary in study.with_sizes],
        "single": {name: None if mean is None else asdict(mean) for name, mean in study.single.items()},
        "table_1": {
            name: {
                "paper": [asdict(entry) for entry in gains.TABLE_1.get(name, ())],
                "here": [asdict(entry) for entry in gains.table_entries(splits[_TABLE_SPLIT])],
            }
            for name, splits in study.by_set.items()
        },
        "splits": [
            {"set": one.dataset, "split": one.split, "points": [asdict(point) for point in one.points]}
            for one in study.results
        ],
    }  # fmt: skip


def _plain_summary(summary: gains.SetSummary) -> dict[str, Any]:
    """The file says ``own`` for the gain over the frontier of the side that chooses."""
    return {"own" if name == "frontier" else name: value for name, value in asdict(summary).items()}

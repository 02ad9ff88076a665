"""Comparisons of the experiments as in section 5.1: representatives, frontiers, gains, counts; the report.

Two sides are compared on every split: A and B against C, D and E, the paper's, or against these with F. Of
the ensembles of a side with the same number of terms the one with the least validation error stands for all
(Pareto efficiency). The *sparsity gain* of an ensemble is 1 - k / k', where k' is the number of terms of the
sparsest ensemble of the other side that is no worse on the validation rows. Where there is none it has a
*generalisation gain*: 1 - e / e', where e' is the least error of the other side.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files as package_files
from operator import attrgetter
from statistics import fmean

import numpy as np

from cardboost.report.figures import Figure
from cardboost.report.panels import FrontierPanel, Side
from cardboost.report.png import png_of
from cardboost.reproduce import page
from cardboost.reproduce.jobs import Job
from cardboost.reproduce.page import Record, check_point, standard_error
from cardboost.reproduce.totalqboost import HOT_START, Point, Result, Settings

CONVEX, CHOSEN = ("A", "B"), ("C", "D", "E")
WITH_SIZES = (*CHOSEN, "F")
SIZES = (5, 10, 20)
ROUNDING = 1e-8  # share of a risk up to which two count as the same
_MOST_ENTRIES = 5  # of a set in the table, as the paper has
_TABLE_SPLIT = 0  # the split of Table 1
_FEWEST_TERMS_SHOWN = 3  # with fewer the error is so large that nothing else could be seen
_SIDES = {"A and B: L1CG, UCG": CONVEX, "C to E: chosen": CHOSEN, "C to F: chosen": WITH_SIZES}

Differences = dict[int, float | None]
Count = tuple[int, int]  # worse, of how many compared


@dataclass(frozen=True)
class TableEntry:
    """A tagged ensemble of Table 1: validation error and gain in percent.

    The gain of "*" is a ``generalisation`` gain, that of the others is in sparsity.
    """

    tag: str
    error: float
    terms: int
    gain: float | None = None
    generalisation: float | None = None
    experiment: str = "paper"


@dataclass(frozen=True)
class SplitResult:
    """All ensembles of one split of a set."""

    dataset: str
    split: int
    points: tuple[Point, ...]

    def side(self, experiments: Sequence[str], proved: bool = False) -> list[Point]:
        """The ensembles of some experiments that have a term at least; only proved ones, or all."""
        ensembles = [point for point in self.points if point.experiment in experiments and point.terms > 0]
        return [point for point in ensembles if point.proved] if proved else ensembles

    @property
    def prefixes(self) -> list[Point]:
        """The ensembles of B of at most T' columns."""
        return [point for point in self.side("B") if point.columns <= HOT_START[self.dataset]]


def split_results(results: Mapping[Job, Result]) -> list[SplitResult]:
    """Collect the results of all experiments of a split."""
    points: dict[tuple[str, int], list[Point]] = {}
    for job, result in results.items():
        points.setdefault((job.dataset, job.split), []).extend(Point(**plain) for plain in result["points"])
    return [SplitResult(*key, tuple(ensembles)) for key, ensembles in points.items()]


# one split


def best_by_terms(points: Iterable[Point], *measures: str) -> dict[int, Point]:
    """For every number of terms the ensemble of least measure, of equals by the next measure, ascending."""
    best: dict[int, Point] = {}
    for point in sorted(points, key=attrgetter("terms", *measures)):
        best.setdefault(point.terms, point)
    return best


def representatives(points: Iterable[Point]) -> list[Point]:
    """For every number of terms the ensemble of least validation error (then training error), ascending."""
    return list(best_by_terms(points, "validation_error", "train_error").values())


def frontier(points: Iterable[Point]) -> list[Point]:
    """Representatives that are better than every one with fewer terms."""
    better: list[Point] = []
    for point in representatives(points):
        if not better or point.validation_error < better[-1].validation_error:
            better.append(point)
    return better


def sparsest(points: Iterable[Point], error: float) -> int | None:
    """The least number of terms with which this validation error, or a lower one, was reached."""
    return min((point.terms for point in points if point.validation_error <= error), default=None)


def least_error(points: Iterable[Point], terms: float = math.inf) -> float | None:
    """The least validation error of ensembles with so many terms or fewer."""
    return min((point.validation_error for point in points if point.terms <= terms), default=None)


def sparsity_gain(point: Point, others: Sequence[Point]) -> float | None:
    """None where no other is as good."""
    terms = sparsest(others, point.validation_error)
    return None if terms is None else 1.0 - point.terms / terms


def generalisation_gain(point: Point, others: Sequence[Point]) -> float | None:
    """None where another is as good, or there is none."""
    least = least_error(others)
    if least is None or least <= point.validation_error:
        return None
    return 1.0 - point.validation_error / least


def table_entries(split: SplitResult) -> list[TableEntry]:
    """Entries as in Table 1: the best choice that beats all of A and B, then the five best sparser ones."""
    others = split.side(CONVEX)
    chosen = sorted(
        representatives(split.side(CHOSEN)), key=lambda point: (point.validation_error, point.terms)
    )
    gains = [(point, sparsity_gain(point, others)) for point in chosen]
    sparser = [(point, 100.0 * gain) for point, gain in gains if gain is not None and gain > 0.0]
    entries = [
        TableEntry(str(k), 100.0 * point.validation_error, point.terms, gain, None, point.experiment)
        for k, (point, gain) in enumerate(sparser[:_MOST_ENTRIES], 1)
    ]
    for point in chosen[:1]:
        better = generalisation_gain(point, others)
        if better is not None:
            error = 100.0 * point.validation_error
            entries.insert(0, TableEntry("*", error, point.terms, None, 100.0 * better, point.experiment))
    return entries


def matched_sparsity(split: SplitResult, choosing: Sequence[str] = CHOSEN) -> Record:
    """Sparsity at equal validation error, as means of 1 - k / k' for k terms chosen and k' of A and B.

    ``frontier``: the mean gain over the frontier of the side that chooses. ``gain``: the mean over the errors
    of both frontiers that both sides reach, which favours neither. ``reached``: how many errors both sides
    reach, the choices alone, and A and B alone.
    """
    convex, chosen = split.side(CONVEX), split.side(choosing)
    levels = sorted({point.validation_error for side in (convex, chosen) for point in frontier(side)})
    pairs = [(sparsest(chosen, level), sparsest(convex, level)) for level in levels]
    gains = [1.0 - k / other for k, other in pairs if k is not None and other is not None]
    alone = [sum(pair[side] is None for pair in pairs) for side in (1, 0)]
    over_frontier = _average(sparsity_gain(point, convex) for point in frontier(chosen))
    return {"frontier": over_frontier, "gain": _average(gains), "reached": [len(gains), *alone]}


def _average(values: Iterable[float | None]) -> float | None:
    """The mean of those that are not None."""
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None


def error_differences(split: SplitResult, choosing: Sequence[str] = CHOSEN) -> Differences:
    """The least error of the side that chooses less that of A and B, with at most so many terms."""
    convex, chosen = split.side(CONVEX), split.side(choosing)
    errors = {size: (least_error(chosen, size), least_error(convex, size)) for size in SIZES}
    return {size: None if a is None or b is None else a - b for size, (a, b) in errors.items()}


def equal_differences(split: SplitResult, choosing: Sequence[str] = CHOSEN) -> Differences:
    """The same between representatives of equally many terms: so many, or the next fewer that both have."""
    convex, chosen = (
        {point.terms: point.validation_error for point in representatives(split.side(side))}
        for side in (CONVEX, choosing)
    )
    common = {terms: chosen[terms] - convex[terms] for terms in chosen.keys() & convex.keys()}
    return {size: common.get(max((k for k in common if k <= size), default=0)) for size in SIZES}


def single_difference(split: SplitResult) -> float | None:
    """The mean error of F less that of B with as many terms, one ensemble each: nothing is picked by error.

    Where B has several with as many terms, the one of least risk on the training rows counts.
    """
    prefixes = best_by_terms(split.side("B"), "regularised")
    return _average(
        point.validation_error - prefixes[point.terms].validation_error
        for point in split.side("F")
        if point.terms in prefixes
    )


# several splits


def mean_of(values: Iterable[float | None]) -> Record | None:
    """The mean of those that are not None, with its standard error; None where there are fewer than two."""
    defined = [value for value in values if value is not None]
    if not defined:
        return None
    return {"mean": fmean(defined), "error": standard_error(defined), "number": len(defined)}


def clearly_positive(mean: Record | None, sign: int = 1) -> bool:
    """Whether a mean is positive (or negative, by ``sign``) beyond two standard errors."""
    return mean is not None and mean["error"] is not None and sign * mean["mean"] > 2.0 * mean["error"]


def mean_differences(splits: Iterable[Differences]) -> Record:
    """Mean differences of errors for every size; ``all``: the mean over the sizes, whose sign decides."""
    differences = list(splits)
    return {
        "sizes": {size: mean_of(split[size] for split in differences) for size in SIZES},
        "all": mean_of(_average(split.values()) for split in differences),
    }


def summarise(splits: Sequence[SplitResult], choosing: Sequence[str] = CHOSEN) -> Record:
    """One set over its splits: some experiments that choose against A and B, both on the same rows.

    ``own`` is the sparsity gain over the frontier of the side that chooses, ``sparsity`` that over both;
    ``proved`` the number of choices that are proved optimal, and of all.
    """
    matched = [matched_sparsity(split, choosing) for split in splits]
    points = [point for split in splits for point in split.points]
    proofs = {name: [bool(point.proved) for point in points if point.experiment == name] for name in choosing}
    return {
        "dataset": splits[0].dataset,
        "splits": len(splits),
        "own": mean_of(one["frontier"] for one in matched),
        "sparsity": mean_of(one["gain"] for one in matched),
        "reached": np.sum([one["reached"] for one in matched], axis=0).tolist(),
        "at_most": mean_differences(error_differences(split, choosing) for split in splits),
        "equal": mean_differences(equal_differences(split, choosing) for split in splits),
        "proved": {name: (sum(proved), len(proved)) for name, proved in proofs.items()},
    }


# how often one experiment is worse than another with as many terms

#: the field of an ensemble, and its name in the report
MEASURES = {"risk": ("regularised", "risk"), "error": ("train_error", "training error")}


def worse_count(split: SplitResult, first: str, second: str, measure: str) -> Count:
    """Compare the best of each experiment at every number of terms that both have, as the paper does."""
    field, _ = MEASURES[measure]
    one, other = (best_by_terms(split.side(name), field) for name in (first, second))
    common = one.keys() & other.keys()
    return sum(_worse(one[terms], other[terms], field) for terms in common), len(common)


def _worse(point: Point, other: Point, field: str = "regularised") -> bool:
    value, least = getattr(point, field), getattr(other, field)
    return value > least + ROUNDING * max(abs(least), 1e-12)


def law_e(split: SplitResult) -> Count:
    """Compare every proved choice of E with the ensembles of B of as many terms and at most T' columns."""
    return _all_pairs(split.side("E", proved=True), split.prefixes)


def law_d(split: SplitResult) -> Count:
    """Compare every proved choice of D with the proved ones of E of as many terms."""
    return _all_pairs(split.side("D", proved=True), split.side("E", proved=True))


def law_f(split: SplitResult) -> Count:
    """Compare every choice of F, proved or not, with those of E and B's ensembles of at most T' columns."""
    return _all_pairs(split.side("F"), [*split.prefixes, *split.side("E")])


def _all_pairs(points: Sequence[Point], others: Sequence[Point]) -> Count:
    pairs = [(point, other) for point in points for other in others if point.terms == other.terms]
    return sum(_worse(point, other) for point, other in pairs), len(pairs)


def _total(counts: Iterable[Count]) -> Record:
    worse, compared = map(sum, zip(*counts, strict=True))
    return {"worse": worse, "compared": compared}


#: letter, claim, count, which choices count
LAWS: tuple[tuple[str, str, Callable[[SplitResult], Count], str], ...] = (
    (
        "a",
        "E is never worse than B's ensembles of at most T' columns",
        law_e,
        "choices of E proved optimal only",
    ),
    ("b", "D is never worse than E", law_d, "choices proved optimal only"),
    ("c", "F is never worse than E and those ensembles of B", law_f, "all choices of F"),
)


# the numbers that the paper prints: entries of Table 1, and counts of section 5.1


def _printed_table() -> dict[str, list[TableEntry]]:
    table: dict[str, list[TableEntry]] = {}
    lines = package_files(__package__).joinpath("totalqboost_table_1.csv").read_text("utf-8").splitlines()
    for row in csv.DictReader(lines):
        gain: Record = {"generalisation" if row["tag"] == "*" else "gain": float(row["gain"])}
        entry = TableEntry(row["tag"], float(row["error"]), int(row["terms"]), **gain)
        table.setdefault(row["set"], []).append(entry)
    return table


TABLE_1 = _printed_table()
#: how often, in percent of coinciding cardinalities: E worse than B, D worse than E
WORSE = {
    ("E", "B", "risk"): 1.61,
    ("E", "B", "error"): 2.05,
    ("D", "E", "risk"): 23.81,
    ("D", "E", "error"): 13.01,
}


# all sets


def study(
    settings: Settings, sources: dict[str, str], missing: Sequence[str], results: Sequence[SplitResult]
) -> Record:
    """All results and comparisons as plain data; ``missing``: a sentence for every set left out."""
    by_set = _by_set(results)
    checks = []
    for letter, claim, law, which in LAWS:
        count = _total(map(law, results))
        measured = (
            "{worse} of {compared} pairs of equal cardinality are worse in regularised risk, at equal nu and "
            f"box; {which}"
        )
        checks.append(check_point(letter, claim, measured, count["worse"] == 0, **count) | count)
    worse = []
    for (first, second, measure), printed in WORSE.items():
        count = _total(worse_count(result, first, second, measure) for result in results)
        worse.append({"ours": first, "theirs": second, "on": measure, "paper_percent": printed, **count})
    with_sizes = [summarise(splits, WITH_SIZES) for splits in by_set.values()]
    proofs = {name: [summary["proved"][name] for summary in with_sizes] for name in WITH_SIZES}
    return {
        "experiment": "totalqboost",
        "holds": all(check["holds"] for check in checks),
        "settings": asdict(settings),
        "data": sources,
        "missing": list(missing),
        "check_points": checks,
        "worse": worse,
        "proved": {name: np.sum(counts, axis=0).tolist() for name, counts in proofs.items()},
        "summaries": [summarise(splits) for splits in by_set.values()],
        "with_sizes": with_sizes,
        "single": {name: mean_of(map(single_difference, splits)) for name, splits in by_set.items()},
        "table_1": {
            name: {
                "paper": [asdict(entry) for entry in TABLE_1.get(name, ())],
                "here": [asdict(entry) for entry in table_entries(splits[_TABLE_SPLIT])],
            }
            for name, splits in by_set.items()
        },
        "splits": [
            {"set": one.dataset, "split": one.split, "points": [asdict(point) for point in one.points]}
            for one in results
        ],
    }


def _by_set(results: Sequence[SplitResult]) -> dict[str, list[SplitResult]]:
    sets: dict[str, list[SplitResult]] = {}
    for result in results:
        sets.setdefault(result.dataset, []).append(result)
    return sets


# report


def files(record: Record, results: Sequence[SplitResult]) -> dict[str, bytes | None]:
    """Every file of the report on a study by its name; None for a picture that no program here can draw."""
    by_set = _by_set(results)
    splits = max(map(len, by_set.values()))
    fields = {
        **record["settings"],
        "n_sets": len(by_set),
        "sets": _number(len(by_set), "set"),
        "splits": _number(splits, "split"),
        "one_split": splits == 1,
        "several": splits > 1,
        "absent": "\n\n".join(f"MISSING: {sentence}" for sentence in record["missing"]),
        "proofs": ", ".join(
            f"{proved} of {all_} in {name}" for name, (proved, all_) in record["proved"].items()
        ),
    }
    records = {
        "sources": [{"set": name, "source": source} for name, source in record["data"].items()],
        "table 1": _table_1(record["table_1"]),
        "single": [{"set": name, "mean": _mean(mean, 2, -1)} for name, mean in record["single"].items()],
        "proofs": [one | {"hot_start": HOT_START[one["dataset"]]} for one in record["with_sizes"]],
        "counts": [
            one | {"here": 100 * one["worse"] / max(one["compared"], 1), "on": MEASURES[one["on"]][1]}
            for one in record["worse"]
        ],
        "checks": record["check_points"],
    }
    for name in ("summaries", "with_sizes"):
        summaries = record[name]
        fields[name] = {
            "own": sum(clearly_positive(one["own"]) for one in summaries),
            "sparsity": sum(clearly_positive(one["sparsity"]) for one in summaries),
            **{kind: sum((one[kind]["all"] or {"mean": 0})["mean"] < 0 for one in summaries)
               for kind in ("at_most", "equal")},
        }  # fmt: skip
        rows = [one | {gain: _mean(one[gain], 1, 1) for gain in ("own", "sparsity")} for one in summaries]
        records |= {f"{name} {kind}": rows for kind in ("gains", "at_most", "equal")}
        for row in rows:
            for kind in ("at_most", "equal"):
                means = [*row[kind]["sizes"].values(), row[kind]["all"]]
                row[kind] = [_mean(mean, 2) for mean in means]
    figures = _figures(by_set, splits)
    contents = page.report_files("totalqboost", fields, records, figures, record, compact=True)
    pictures = {
        name.replace(".svg", ".png"): png_of(figure.svg(), *figure.size) for name, figure in figures.items()
    }
    return {"mean.svg": None, "mean.png": None} | contents | pictures


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _table_1(sets: Record) -> list[Record]:
    """Rows with the entries of the paper and those computed here that have the same tag."""
    rows: list[Record] = []
    for name, sides in sets.items():
        entries = {side: {entry["tag"]: entry for entry in sides[side]} for side in ("paper", "here")}
        tags = [tag for tag in "*12345" if any(tag in side for side in entries.values())]
        for k, tag in enumerate(tags or ["none"]):
            row = {side: by_tag[tag] for side, by_tag in entries.items() if tag in by_tag}
            gain = "generalisation" if tag == "*" else "gain"
            gains = {f"{side}_gain": entry[gain] for side, entry in row.items()}
            rows.append({"set": "" if k else name, "tag": tag, **row, **gains})
    return rows


def _mean(mean: Record | None, decimals: int, sign: int = 0) -> str:
    """A mean in percent, with its standard error, and a star if it clearly has the sign (0: no star)."""
    if mean is None:
        return "  " if sign else ""
    star = (" *" if clearly_positive(mean, sign) else "  ") if sign else ""
    error = "" if mean["error"] is None else f" ± {100 * mean['error']:.{decimals}f}"
    return f"{100 * mean['mean']:+.{decimals}f}{error}{star}"


def _figures(by_set: Mapping[str, Sequence[SplitResult]], splits: int) -> dict[str, Figure]:
    """The panels of all sets on the first split; with several splits also their means."""
    across = min(3, len(by_set))
    size = {"width": 320.0 * across + 32.0, "height": 220.0, "per_row": across}
    drawings = [_split_panel(name, results[0]) for name, results in by_set.items()]
    figures = {"figure-3.svg": page.panels(*drawings, **size)}
    if splits > 1:
        drawings = [_mean_panel(name, results) for name, results in by_set.items()]
        figures["mean.svg"] = page.panels(*drawings, **size)
    return figures


def _split_panel(name: str, split: SplitResult) -> FrontierPanel:
    sides = []
    for label in list(_SIDES)[:2]:
        points = split.side(_SIDES[label])
        sides.append(Side(label, _positions(representatives(points)), _positions(frontier(points))))
    errors = sorted(y for side in sides for _, y in side.steps) or [0.0]
    spread = errors[len(errors) // 2] - errors[0]
    tags = tuple((entry.tag, (float(entry.terms), entry.error)) for entry in table_entries(split))
    top = max([errors[0] + 3.0 * max(spread, 0.5), *(error for _, (_, error) in tags)])
    return FrontierPanel(name.replace("_", " "), "terms", "error in %", tuple(sides), tags, top)


def _positions(points: Sequence[Point]) -> tuple[tuple[float, float], ...]:
    return tuple((float(point.terms), 100.0 * point.validation_error) for point in points)


def _mean_panel(name: str, splits: Sequence[SplitResult]) -> FrontierPanel:
    points = {label: [split.side(names) for split in splits] for label, names in _SIDES.items()}
    terms = [[point.terms for point in side] for sides in points.values() for side in sides]
    first, last = max(min(side, default=1) for side in terms), max(max(side, default=0) for side in terms)
    sides = []
    for label, ensembles in points.items():
        means = [(k, _average(least_error(side, k) for side in ensembles)) for k in range(first, last + 1)]
        sides.append(Side(label, (), tuple((float(k), 100.0 * (mean or 0.0)) for k, mean in means)))
    top = max(y for side in sides for x, y in side.steps if x >= min(_FEWEST_TERMS_SHOWN, last))
    return FrontierPanel(name.replace("_", " "), "terms at most", "error in %", tuple(sides), (), top)

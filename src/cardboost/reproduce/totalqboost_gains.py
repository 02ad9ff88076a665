"""Comparisons of the experiments: representatives, frontiers, gains and counts, as in section 5.1.

Two sides are compared on every split: A and B against C, D and E, the paper's, or against these with F. Of
the ensembles of a side with the same number of terms the one with the least validation error stands for all
(Pareto efficiency). The *sparsity gain* of an ensemble is 1 - k / k', where k' is the number of terms of the
sparsest ensemble of the other side that is no worse on the validation rows. Where there is none it has a
*generalisation gain*: 1 - e / e', where e' is the least error of the other side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cardboost.reproduce.totalqboost import HOT_START, Point, Result
from cardboost.reproduce.totalqboost_store import Job

CONVEX, CHOSEN = ("A", "B"), ("C", "D", "E")
WITH_SIZES = (*CHOSEN, "F")
SIZES = (5, 10, 20)
ROUNDING = 1e-8  # share of a risk up to which two count as the same
_MOST_ENTRIES = 5  # of a set in the table, as the paper has

Differences = dict[int, float | None]


@dataclass(frozen=True)
class TableEntry:
    """A tagged ensemble of Table 1: validation error and sparsity gain in percent; "*" has no gain."""

    tag: str
    error: float
    terms: int
    gain: float | None


@dataclass(frozen=True)
class SplitEntry(TableEntry):
    """An entry computed here; ``generalisation`` gain of "*", in percent."""

    experiment: str
    generalisation: float | None = None


@dataclass(frozen=True)
class SplitResult:
    """All ensembles of one split of a set."""

    dataset: str
    split: int
    points: tuple[Point, ...]

    def side(self, experiments: Sequence[str]) -> list[Point]:
        """The ensembles of some experiments that have a term at least."""
        return [point for point in self.points if point.experiment in experiments and point.terms > 0]


def split_results(results: Mapping[Job, Result]) -> list[SplitResult]:
    """Collect the results of all experiments of a split."""
    points: dict[tuple[str, int], list[Point]] = {}
    for job, result in results.items():
        points.setdefault((job.dataset, job.split), []).extend(Point(**plain) for plain in result["points"])
    return [SplitResult(*key, tuple(ensembles)) for key, ensembles in points.items()]


# one split


def representatives(points: Iterable[Point]) -> list[Point]:
    """For every number of terms the ensemble of least validation error (then training error), ascending."""
    ranked = sorted(points, key=lambda point: (point.validation_error, point.train_error))
    best: dict[int, Point] = {}
    for point in ranked:
        best.setdefault(point.terms, point)
    return [best[terms] for terms in sorted(best)]


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


def least_error(points: Iterable[Point], terms: int) -> float | None:
    """The least validation error of ensembles with so many terms or fewer."""
    return min((point.validation_error for point in points if point.terms <= terms), default=None)


def sparsity_gain(point: Point, others: Sequence[Point]) -> float | None:
    """None where no other is as good."""
    terms = sparsest(others, point.validation_error)
    return None if terms is None else 1.0 - point.terms / terms


def generalisation_gain(point: Point, others: Sequence[Point]) -> float | None:
    """None where another is as good."""
    least = min((other.validation_error for other in others), default=math.inf)
    if least <= point.validation_error or not math.isfinite(least):
        return None
    return 1.0 - point.validation_error / least


def table_entries(split: SplitResult) -> list[SplitEntry]:
    """Entries as in Table 1: the best choice that beats all of A and B, then the five best sparser ones."""
    others, entries = split.side(CONVEX), []
    chosen = sorted(
        representatives(split.side(CHOSEN)), key=lambda point: (point.validation_error, point.terms)
    )
    better = generalisation_gain(chosen[0], others) if chosen else None
    if better is not None:
        entries.append(_entry("*", chosen[0], None, 100.0 * better))
    gains = [(point, sparsity_gain(point, others)) for point in chosen]
    sparser = [(point, gain) for point, gain in gains if gain is not None and gain > 0.0]
    for k, (point, gain) in enumerate(sparser[:_MOST_ENTRIES], 1):
        entries.append(_entry(str(k), point, 100.0 * gain))
    return entries


def _entry(tag: str, point: Point, gain: float | None, generalisation: float | None = None) -> SplitEntry:
    error = 100.0 * point.validation_error
    return SplitEntry(tag, error, point.terms, gain, point.experiment, generalisation)


@dataclass(frozen=True)
class MatchedSparsity:
    """Sparsity at equal validation error.

    ``frontier``: the mean gain over the frontier of the side that chooses. ``gain``: the mean over the errors
    of both frontiers that both sides reach, which favours neither. ``only_chosen``, ``only_convex``: errors
    that one side alone reaches, for which no gain is defined.
    """

    frontier: float | None
    gain: float | None
    levels: int
    only_chosen: int
    only_convex: int


def matched_sparsity(split: SplitResult, choosing: Sequence[str] = CHOSEN) -> MatchedSparsity:
    """The means of 1 - k / k': with k terms chosen and k' of A and B a level is reached."""
    convex, chosen = split.side(CONVEX), split.side(choosing)
    levels = sorted({point.validation_error for side in (convex, chosen) for point in frontier(side)})
    pairs = [(sparsest(chosen, level), sparsest(convex, level)) for level in levels]
    gains = [1.0 - k / other for k, other in pairs if k is not None and other is not None]
    return MatchedSparsity(
        _average(sparsity_gain(point, convex) for point in frontier(chosen)),
        _average(gains),
        len(gains),
        sum(k is not None and other is None for k, other in pairs),
        sum(k is None and other is not None for k, other in pairs),
    )


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
    differences: Differences = {}
    for size in SIZES:
        terms = max((k for k in chosen.keys() & convex.keys() if k <= size), default=None)
        differences[size] = None if terms is None else chosen[terms] - convex[terms]
    return differences


def single_difference(split: SplitResult) -> float | None:
    """The mean error of F less that of B with as many terms, one ensemble each: nothing is picked by error.

    Where B has several with as many terms, the one of least risk on the training rows counts.
    """
    prefixes: dict[int, Point] = {}
    for point in sorted(split.side("B"), key=lambda point: point.regularised):
        prefixes.setdefault(point.terms, point)
    return _average(
        point.validation_error - prefixes[point.terms].validation_error
        for point in split.side("F")
        if point.terms in prefixes
    )


# several splits


@dataclass(frozen=True)
class Mean:
    """A mean over splits with its standard error; None where there are fewer than two."""

    mean: float
    error: float | None
    number: int

    @property
    def positive(self) -> bool:
        """Whether the mean is positive beyond two standard errors."""
        return self.error is not None and self.mean > 2.0 * self.error


def mean_of(values: Iterable[float | None]) -> Mean | None:
    """The mean of those that are not None."""
    defined = [value for value in values if value is not None]
    if not defined:
        return None
    mean, n = math.fsum(defined) / len(defined), len(defined)
    if n < 2:
        return Mean(mean, None, n)
    variance = math.fsum((value - mean) ** 2 for value in defined) / (n - 1)
    return Mean(mean, math.sqrt(variance / n), n)


@dataclass(frozen=True)
class MeanDifferences:
    """Mean differences of errors for every size; ``all``: the mean over the sizes, whose sign decides."""

    sizes: dict[int, Mean | None]
    all: Mean | None

    @property
    def lower(self) -> bool:
        return self.all is not None and self.all.mean < 0.0


def mean_differences(splits: Iterable[Differences]) -> MeanDifferences:
    differences = list(splits)
    return MeanDifferences(
        {size: mean_of(split[size] for split in differences) for size in SIZES},
        mean_of(_average(split.values()) for split in differences),
    )


@dataclass(frozen=True)
class SetSummary:
    """One set over its splits: some experiments that choose against A and B."""

    dataset: str
    splits: int
    frontier: Mean | None  # sparsity gain over the frontier of the side that chooses
    sparsity: Mean | None  # over both frontiers
    reached: tuple[int, int, int]  # errors that both sides reach, the choices alone, A and B alone
    at_most: MeanDifferences
    equal: MeanDifferences
    proved: dict[str, tuple[int, int]]  # of how many choices


def summarise(splits: Sequence[SplitResult], choosing: Sequence[str] = CHOSEN) -> SetSummary:
    """Summarise the splits of one set, each with both sides on the same rows."""
    matched = [matched_sparsity(split, choosing) for split in splits]
    proved = {}
    for name in choosing:
        points = [point for split in splits for point in split.points if point.experiment == name]
        proved[name] = (sum(bool(point.proved) for point in points), len(points))
    return SetSummary(
        splits[0].dataset,
        len(splits),
        mean_of(one.frontier for one in matched),
        mean_of(one.gain for one in matched),
        (
            sum(one.levels for one in matched),
            sum(one.only_chosen for one in matched),
            sum(one.only_convex for one in matched),
        ),
        mean_differences(error_differences(split, choosing) for split in splits),
        mean_differences(equal_differences(split, choosing) for split in splits),
        proved,
    )


# how often one experiment is worse than another with as many terms


@dataclass(frozen=True)
class Count:
    """``worse`` of ``compared`` coinciding numbers of terms."""

    worse: int
    compared: int

    @property
    def share(self) -> float:
        return self.worse / self.compared if self.compared else 0.0

    def __add__(self, other: Count) -> Count:
        return Count(self.worse + other.worse, self.compared + other.compared)


MEASURES: dict[str, Callable[[Point], float]] = {
    "risk": lambda point: point.regularised,
    "error": lambda point: point.train_error,
}


def worse_count(points: Sequence[Point], first: str, second: str, measure: str) -> Count:
    """Compare the best of each experiment at every number of terms that both have, as the paper does."""
    best: dict[str, dict[int, float]] = {first: {}, second: {}}
    for point in points:
        if point.experiment in best and point.terms > 0:
            by_terms = best[point.experiment]
            by_terms[point.terms] = min(by_terms.get(point.terms, math.inf), MEASURES[measure](point))
    common = best[first].keys() & best[second].keys()
    return Count(sum(_worse(best[first][k], best[second][k]) for k in common), len(common))


def _worse(value: float, other: float) -> bool:
    return value > other + ROUNDING * max(abs(other), 1e-12)


def law_e(split: SplitResult) -> Count:
    """Compare every proved choice of E with the ensembles of B of as many terms and at most T' columns."""
    return _all_pairs(_of(split, "E", True), _prefixes(split))


def law_d(split: SplitResult, proved: bool = True) -> Count:
    """Compare every choice of D with those of E of as many terms; only proved ones, or all."""
    return _all_pairs(_of(split, "D", proved), _of(split, "E", proved))


def law_f(split: SplitResult) -> Count:
    """Compare every choice of F, proved or not, with those of E and B's ensembles of at most T' columns."""
    return _all_pairs(_of(split, "F"), [*_prefixes(split), *_of(split, "E")])


def _of(split: SplitResult, name: str, proved: bool = False) -> list[Point]:
    """The ensembles of an experiment that have a term; only proved ones, or all."""
    return [point for point in split.side(name) if point.proved or not proved]


def _prefixes(split: SplitResult) -> list[Point]:
    """The ensembles of B of at most T' columns."""
    return [point for point in split.side("B") if point.columns <= HOT_START[split.dataset]]


def _all_pairs(points: Sequence[Point], others: Sequence[Point]) -> Count:
    pairs = [(point, other) for point in points for other in others if point.terms == other.terms]
    return Count(sum(_worse(point.regularised, other.regularised) for point, other in pairs), len(pairs))


def total(counts: Iterable[Count]) -> Count:
    return sum(counts, Count(0, 0))


# the numbers that the paper prints: entries of Table 1, and counts of section 5.1


def _entries(best: tuple[float, int] | None, *numbered: tuple[float, int, float]) -> tuple[TableEntry, ...]:
    first = () if best is None else (TableEntry("*", best[0], best[1], None),)
    return first + tuple(TableEntry(str(k), *entry) for k, entry in enumerate(numbered, 1))


TABLE_1 = {
    "banana": _entries(
        (25.85, 33), (26.79, 31, 18.42), (26.89, 12, 67.57), (27.17, 21, 40.00), (27.26, 11, 67.65),
        (27.36, 23, 32.35),
    ),
    "image": _entries(
        None, (2.75, 28, 61.64), (3.25, 29, 17.14), (3.50, 26, 23.53), (3.75, 15, 55.88), (4.50, 17, 5.56)
    ),
    "ringnorm": _entries(
        None, (3.26, 51, 31.08), (3.60, 60, 16.67), (3.67, 46, 35.21), (3.74, 55, 20.29), (3.87, 58, 3.33)
    ),
    "twonorm": _entries(
        (3.10, 52), (3.67, 34, 20.93), (3.81, 36, 16.28), (3.87, 39, 2.50), (3.94, 38, 2.56),
        (4.01, 35, 10.26),
    ),
    "waveform": _entries(
        (10.47, 42), (10.67, 38, 28.30), (10.78, 37, 30.19), (10.98, 35, 20.45), (11.28, 32, 20.00),
        (11.38, 33, 2.94),
    ),
    "diabetes": _entries(None, (16.00, 14, 41.67), (18.67, 5, 16.67)),
    "german": _entries(None, (25.91, 2, 60.00)),
    "splice": _entries(None, (6.73, 13, 7.14)),
    "flare_solar": _entries((20.95, 3)),
}  # fmt: skip

#: by how much, in percent, "*" is better than the best ensemble of A and B
GENERALISATION_GAINS = {"banana": 3.52, "twonorm": 9.8, "waveform": 0.95, "flare_solar": 25.0}

#: how often, in percent of coinciding cardinalities: E worse than B, D worse than E
WORSE = {
    ("E", "B", "risk"): 1.61,
    ("E", "B", "error"): 2.05,
    ("D", "E", "risk"): 23.81,
    ("D", "E", "error"): 13.01,
}

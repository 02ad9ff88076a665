"""What the experiments show: representatives, frontiers, gains and counts, as in section 5.1 of the paper.

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

from cardboost.reproduce.totalqboost import HOT_START, Point
from cardboost.reproduce.totalqboost_paper import Entry
from cardboost.reproduce.totalqboost_store import Job, Result

CONVEX, CHOSEN = ("A", "B"), ("C", "D", "E")
WITH_SIZES = (*CHOSEN, "F")
SIZES = (5, 10, 20)
SAME = 1e-8  # share of a risk up to which it is the same
_ENTRIES = 5

Differences = dict[int, float | None]


@dataclass(frozen=True)
class SplitResult:
    """All ensembles of one split of a set."""

    dataset: str
    split: int
    points: tuple[Point, ...]

    def side(self, experiments: Sequence[str]) -> list[Point]:
        """Those of some experiments that have a term at least."""
        return [own for own in self.points if own.experiment in experiments and own.terms > 0]


def split_results(results: Mapping[Job, Result]) -> list[SplitResult]:
    found: dict[tuple[str, int], list[Point]] = {}
    for job, result in results.items():
        points = [Point(**own) for own in result["points"]]
        found.setdefault((job.dataset, job.split), []).extend(points)
    return [SplitResult(name, split, tuple(points)) for (name, split), points in found.items()]


# one split


def representatives(points: Iterable[Point]) -> list[Point]:
    """For every number of terms the ensemble of least validation error (then training error), ascending."""
    best: dict[int, Point] = {}
    for own in points:
        known = best.get(own.terms)
        if known is None or _rank(own) < _rank(known):
            best[own.terms] = own
    return [best[terms] for terms in sorted(best)]


def _rank(own: Point) -> tuple[float, float]:
    return own.validation_error, own.train_error


def frontier(points: Iterable[Point]) -> list[Point]:
    """Representatives that are better than every one with fewer terms."""
    found: list[Point] = []
    for own in representatives(points):
        if not found or own.validation_error < found[-1].validation_error:
            found.append(own)
    return found


def sparsest(points: Iterable[Point], error: float) -> int | None:
    """The least number of terms with which this validation error, or a lower one, was reached."""
    return min((own.terms for own in points if own.validation_error <= error), default=None)


def least_error(points: Iterable[Point], terms: int) -> float | None:
    """The least validation error of ensembles with so many terms or fewer."""
    return min((own.validation_error for own in points if own.terms <= terms), default=None)


def sparsity_gain(own: Point, others: Sequence[Point]) -> float | None:
    """None where no other is as good."""
    terms = sparsest(others, own.validation_error)
    return None if terms is None else 1.0 - own.terms / terms


def generalisation_gain(own: Point, others: Sequence[Point]) -> float | None:
    """None where another is as good."""
    least = min((other.validation_error for other in others), default=math.inf)
    if least <= own.validation_error or not math.isfinite(least):
        return None
    return 1.0 - own.validation_error / least


@dataclass(frozen=True)
class OwnEntry:
    """An entry of the table as it is here."""

    entry: Entry
    point: Point
    generalisation: float | None = None  # of "*", in percent


def table_entries(split: SplitResult) -> list[OwnEntry]:
    """As Table 1 has them: the best choice that beats all of A and B, then the five best that are sparser."""
    others, found = split.side(CONVEX), []
    chosen = sorted(representatives(split.side(CHOSEN)), key=lambda own: (own.validation_error, own.terms))
    for own in chosen[:1]:
        gain = generalisation_gain(own, others)
        if gain is not None:
            found.append(OwnEntry(_entry("*", own, None), own, 100.0 * gain))
    sparser = [(own, sparsity_gain(own, others)) for own in chosen]
    kept = [(own, gain) for own, gain in sparser if gain is not None and gain > 0.0]
    for k, (own, gain) in enumerate(kept[:_ENTRIES], 1):
        found.append(OwnEntry(_entry(str(k), own, 100.0 * gain), own))
    return found


def _entry(tag: str, own: Point, gain: float | None) -> Entry:
    return Entry(tag, 100.0 * own.validation_error, own.terms, gain)


@dataclass(frozen=True)
class Matched:
    """Sparsity at equal validation error. ``own``: the mean gain of the frontier of those that choose.

    ``gain``: the mean over the errors of both frontiers that both sides reach, which favours neither.
    ``only_chosen``, ``only_convex``: errors that one side alone reaches, which no gain is defined for.
    """

    own: float | None
    gain: float | None
    levels: int
    only_chosen: int
    only_convex: int


def matched_sparsity(split: SplitResult, choosing: Sequence[str] = CHOSEN) -> Matched:
    """The means of 1 - k / k': with k terms chosen and k' of A and B a level is reached."""
    convex, chosen = split.side(CONVEX), split.side(choosing)
    levels = sorted({own.validation_error for side in (convex, chosen) for own in frontier(side)})
    pairs = [(sparsest(chosen, level), sparsest(convex, level)) for level in levels]
    gains = [1.0 - k / other for k, other in pairs if k is not None and other is not None]
    edge = [sparsity_gain(point, convex) for point in frontier(chosen)]
    held = [gain for gain in edge if gain is not None]
    return Matched(
        sum(held) / len(held) if held else None,
        sum(gains) / len(gains) if gains else None,
        len(gains),
        sum(k is not None and other is None for k, other in pairs),
        sum(k is None and other is not None for k, other in pairs),
    )


def error_differences(split: SplitResult, choosing: Sequence[str] = CHOSEN) -> Differences:
    """At most so many terms: the least error of those that choose less that of A and B."""
    convex, chosen = split.side(CONVEX), split.side(choosing)
    found: Differences = {}
    for size in SIZES:
        ours, theirs = least_error(chosen, size), least_error(convex, size)
        found[size] = None if ours is None or theirs is None else ours - theirs
    return found


def equal_differences(split: SplitResult, choosing: Sequence[str] = CHOSEN) -> Differences:
    """The same between representatives of equally many terms: so many, or the next fewer that both have."""
    theirs, ours = (
        {own.terms: own.validation_error for own in representatives(split.side(side))}
        for side in (CONVEX, choosing)
    )
    found: Differences = {}
    for size in SIZES:
        terms = max((k for k in ours.keys() & theirs.keys() if k <= size), default=None)
        found[size] = None if terms is None else ours[terms] - theirs[terms]
    return found


def single_difference(split: SplitResult) -> float | None:
    """The mean error of F less that of B with as many terms, one ensemble each: nothing is picked by error.

    Where B has several with as many terms, the one of least risk on the training rows counts.
    """
    theirs: dict[int, Point] = {}
    for own in split.side("B"):
        known = theirs.get(own.terms)
        if known is None or own.regularised < known.regularised:
            theirs[own.terms] = own
    apart = [
        own.validation_error - theirs[own.terms].validation_error
        for own in split.side("F")
        if own.terms in theirs
    ]
    return sum(apart) / len(apart) if apart else None


# several splits


@dataclass(frozen=True)
class Mean:
    """A mean over splits with its standard error; None where there are fewer than two."""

    mean: float
    error: float | None
    number: int

    @property
    def positive(self) -> bool:
        """Beyond two standard errors."""
        return self.error is not None and self.mean > 2.0 * self.error


def mean_of(values: Iterable[float | None]) -> Mean | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean, n = math.fsum(known) / len(known), len(known)
    if n < 2:
        return Mean(mean, None, n)
    variance = math.fsum((value - mean) ** 2 for value in known) / (n - 1)
    return Mean(mean, math.sqrt(variance / n), n)


@dataclass(frozen=True)
class MeanDifferences:
    """Of errors, for every size; ``all``: the mean over the sizes, whose sign decides."""

    sizes: dict[int, Mean | None]
    all: Mean | None

    @property
    def lower(self) -> bool:
        return self.all is not None and self.all.mean < 0.0


def mean_differences(splits: Iterable[Differences]) -> MeanDifferences:
    known = list(splits)
    whole = [[value for value in own.values() if value is not None] for own in known]
    return MeanDifferences(
        {size: mean_of(own[size] for own in known) for size in SIZES},
        mean_of(sum(own) / len(own) if own else None for own in whole),
    )


@dataclass(frozen=True)
class SetSummary:
    """One set over its splits: some experiments that choose against A and B."""

    dataset: str
    splits: int
    own: Mean | None  # sparsity gain of the frontier of those that choose
    sparsity: Mean | None  # over both frontiers
    reached: tuple[int, int, int]  # levels both sides reach, the choices alone, A and B alone
    at_most: MeanDifferences
    equal: MeanDifferences
    proved: dict[str, tuple[int, int]]  # of how many choices


def summarise(splits: Sequence[SplitResult], choosing: Sequence[str] = CHOSEN) -> SetSummary:
    """What the splits of one set show, each with both sides on the same rows."""
    matched = [matched_sparsity(own, choosing) for own in splits]
    proved = {}
    for name in choosing:
        points = [point for own in splits for point in own.points if point.experiment == name]
        proved[name] = (sum(bool(point.proved) for point in points), len(points))
    return SetSummary(
        splits[0].dataset,
        len(splits),
        mean_of(own.own for own in matched),
        mean_of(own.gain for own in matched),
        (
            sum(own.levels for own in matched),
            sum(own.only_chosen for own in matched),
            sum(own.only_convex for own in matched),
        ),
        mean_differences(error_differences(own, choosing) for own in splits),
        mean_differences(equal_differences(own, choosing) for own in splits),
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
    "risk": lambda own: own.regularised,
    "error": lambda own: own.train_error,
}


def worse_count(points: Sequence[Point], ours: str, theirs: str, measure: str) -> Count:
    """As the paper counts: the best of each experiment at every number of terms that both have."""
    value = MEASURES[measure]
    best: dict[str, dict[int, float]] = {ours: {}, theirs: {}}
    for own in points:
        if own.experiment in best and own.terms > 0:
            held = best[own.experiment]
            held[own.terms] = min(held.get(own.terms, math.inf), value(own))
    common = best[ours].keys() & best[theirs].keys()
    return Count(sum(_worse(best[ours][k], best[theirs][k]) for k in common), len(common))


def _worse(value: float, other: float) -> bool:
    return value > other + SAME * max(abs(other), 1e-12)


def law_e(split: SplitResult) -> Count:
    """Every proved choice of E with every ensemble of B that has as many terms, of at most T' columns."""
    return _all_pairs(_of(split, "E", True), _prefixes(split))


def law_d(split: SplitResult, proved: bool = True) -> Count:
    """Every choice of D with every one of E that has as many terms; only proved ones, or all."""
    return _all_pairs(_of(split, "D", proved), _of(split, "E", proved))


def law_f(split: SplitResult) -> Count:
    """Every choice of F, proved or not, with those of E and ensembles of B of at most T' columns."""
    return _all_pairs(_of(split, "F"), [*_prefixes(split), *_of(split, "E")])


def _of(split: SplitResult, name: str, proved: bool = False) -> list[Point]:
    """The ensembles of an experiment that have a term; only proved ones, or all."""
    return [own for own in split.side(name) if own.proved or not proved]


def _prefixes(split: SplitResult) -> list[Point]:
    """The ensembles of B of at most T' columns."""
    return [own for own in split.side("B") if own.columns <= HOT_START[split.dataset]]


def _all_pairs(ours: Sequence[Point], theirs: Sequence[Point]) -> Count:
    pairs = [(own, other) for own in ours for other in theirs if own.terms == other.terms]
    return Count(sum(_worse(own.regularised, other.regularised) for own, other in pairs), len(pairs))


def total(counts: Iterable[Count]) -> Count:
    return sum(counts, Count(0, 0))

"""The experiments of the paper on totally corrective boosting with cardinality penalisation (section 4).

    A  L1-regularised column generation (L1CG) to the paper's tolerance, for 20 prices nu
    B  unregularised column generation (UCG), nu next to nothing, up to T columns: every ensemble on the way
    C  TotalQBoost (CPCG): columns chosen again after every new one, for 20 prices lambda of a term
    D  the same from the first T' columns of B
    E  the same T' columns, chosen from once
    F  the same with a limit in place of a price: the best choice of every number of terms

F is not the paper's. A price reaches only numbers of terms on the lower convex hull of risk against size; a
limit reaches them all, as the estimators do with ``max_terms``. B to F share nu and one box for the weights:
twice the largest weight of B's ensembles of at most T' columns. So the ensembles of B are choices that the
others could have made. Every experiment is a function of plain data, which returns plain data: it can run in
any process.

All have exponential loss and stumps without an intercept. Equal rows of the training part are merged, with
their number as the weight: all sums are those of the rows one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.loop import StopRule
from cardboost.boosting.reselecting import ReselectRule, reselect
from cardboost.boosting.totally_corrective import Pace, generate
from cardboost.data.binning import apply_cuts, bin_table
from cardboost.data.table import read_table
from cardboost.data.threads import blas_threads
from cardboost.data.weights import RowWeights
from cardboost.dictionary.base import Scoring
from cardboost.dictionary.stump_arrays import Stumps
from cardboost.dictionary.stump_pool import StumpPool
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.master.newton import Master
from cardboost.problem.losses import Exponential
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk
from cardboost.problem.trace import Record
from cardboost.selection.exact import CLOSED, exact_search
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import Polisher
from cardboost.selection.select import SearchOptions
from cardboost.selection.selection_problem import Incumbent, Selection, SelectionProblem, best_of
from cardboost.selection.tabu import tabu_search

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Result = dict[str, Any]

EXPERIMENTS = ("A", "B", "C", "D", "E", "F")
#: the experiments whose results an experiment starts from
NEEDS = {"A": (), "B": (), "C": ("B",), "D": ("B", "E"), "E": ("B",), "F": ("B", "E")}
#: T', the hot-start columns of the paper's appendix C
HOT_START = {
    "banana": 40, "breast_cancer": 20, "diabetes": 20, "flare_solar": 10, "german": 40, "heart": 15,
    "image": 30, "ringnorm": 40, "splice": 30, "thyroid": 5, "twonorm": 40, "waveform": 40,
}  # fmt: skip

VALIDATION_SHARE = 0.2  # of the rows
_PACE = Pace(newton_steps=60, step_tol=1e-10, certified=False)
_POLISH_ROUNDS = 4  # of local search for every size, from which prices follow
_ALL_MOVES_EVERY = 10  # rounds of C and D between two searches of all moves
_QUICK_NODES = 60  # of a first exact search: many choices are proved by then


@dataclass(frozen=True)
class Settings:
    """The paper's settings of all experiments, and those that it leaves open.

    ``columns``: T. ``epsilon``: by how much an edge may exceed nu at the end, on losses that are summed as in
    the paper. ``small``: nu of B to F. ``work`` of exact search per choice: nodes times the approximate cost
    of each, the entries of the table and the cube of its columns.
    """

    columns: int = 100
    prices: int = 20
    epsilon: float = 5e-4
    bits: int = 6
    max_bins: int = 255
    small: float = 1e-6
    tabu_starts: int = 4
    tabu_moves: int = 200
    work: float = 2e7


@dataclass(frozen=True)
class Point:
    """One ensemble. ``price``: nu of A and lambda of C to E, of mean losses; None in B and F.

    ``regularised``: the mean loss with nu times the sum of the weights. ``lower_bound``: below which no
    choice from the same columns has ``regularised + price * terms``; in F no choice of as many terms or fewer
    has ``regularised``.
    """

    experiment: str
    price: float | None
    columns: int
    terms: int
    risk: float
    regularised: float
    train_error: float
    validation_error: float
    proved: bool | None = None
    lower_bound: float | None = None
    nodes: int = 0


@blas_threads(1)
def run_experiment(
    experiment: str,
    X: Array,
    y: NDArray[np.int8],
    split: int,
    hot_start: int,
    settings: Settings,
    needs: dict[str, Result],
) -> Result:
    """Run one experiment on one split, from the results that it starts from, as plain data.

    One BLAS thread: sums in another order would give other last digits.
    """
    problem = SplitProblem.make(X, y, split, settings.max_bins)
    if experiment == "A":
        return l1_path(problem, settings)
    if experiment == "B":
        return unregularised(problem, settings, hot_start)
    choosing = _Choosing(problem, settings, needs["B"])
    columns = needs["B"]["columns"][:hot_start]
    if experiment == "C":
        return choosing.reselected("C", [], [])
    if experiment == "D":
        return choosing.reselected("D", columns, needs["E"]["choices"])
    if experiment == "E":
        return choosing.selected_once(columns)
    return choosing.selected_by_size(columns, needs["E"]["choices"])


# the problem of one split


def split_rows(X: Array, number: int, share: float = VALIDATION_SHARE) -> tuple[Indices, Indices]:
    """Split rows at random into training and validation; equal rows are on the same side.

    Groups of equal rows are taken in a random order, and each goes to the validation part if that still has
    room. ``number``: which of the random splits.
    """
    _, group = np.unique(X, axis=0, return_inverse=True)
    group = group.reshape(-1)
    sizes = np.bincount(group)
    room = round(share * len(X))
    held = np.zeros(len(sizes), dtype=bool)
    for g in np.random.default_rng([20_14, number]).permutation(len(sizes)):
        if sizes[g] <= room:
            held[g] = True
            room -= int(sizes[g])
    validation = held[group]
    return np.flatnonzero(~validation), np.flatnonzero(validation)


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Rows on which errors are counted: their bins, labels, and how often each occurs."""

    bins: NDArray[np.uint8]
    positive: NDArray[np.bool_]
    count: NDArray[np.int64]

    def error(self, stumps: Stumps, weights: Array) -> float:
        """The share of rows on the wrong side; a score of 0 is negative."""
        score = np.zeros(len(self.positive))
        signs = stumps.signs()
        for j in np.flatnonzero(weights):
            score += weights[j] * signs[j][self.bins[stumps.feature[j]]]
        wrong = (score > 0.0) != self.positive
        return int(self.count[wrong].sum()) / int(self.count.sum())


@dataclass(frozen=True, eq=False)
class SplitProblem:
    """The stumps over the training rows, the risk there, and the rows of both parts."""

    dictionary: StumpDictionary
    risk: EmpiricalRisk
    training: JudgedRows
    validation: JudgedRows

    @classmethod
    def make(cls, X: Array, y: NDArray[np.int8], number: int, max_bins: int) -> SplitProblem:
        """The problem of one split."""
        train, held = split_rows(X, number)
        rows, count = np.unique(np.column_stack([X[train], y[train]]), axis=0, return_counts=True)
        inner, sign = np.ascontiguousarray(rows[:, :-1]), rows[:, -1].astype(np.int8)
        if len(np.unique(sign)) < 2:
            raise ValueError(f"split {number} has training rows of one class only: there are too few rows.")
        weights = RowWeights.make(len(sign), count.astype(np.float64))
        matrix = bin_table(read_table(inner), weights, max_bins, 1)
        bins = apply_cuts(read_table(np.ascontiguousarray(X[held])), matrix.cuts, 1)
        return cls(
            StumpDictionary(matrix, sign, 1, intercept=False),
            EmpiricalRisk(Exponential(), weights, sign, 1),
            JudgedRows(matrix.bins, sign > 0, count.astype(np.int64)),
            JudgedRows(bins, y[held] > 0, np.ones(len(held), dtype=np.int64)),
        )

    @property
    def rows(self) -> int:
        """Training rows, equal ones counted one by one."""
        return int(self.training.count.sum())

    def pool(self, columns: list[list[int]]) -> StumpPool:
        """A pool of columns as plain lists: feature, cut, polarity, side of missing values."""
        pool = self.dictionary.pool()
        if columns:
            feature, cut, polarity, missing_left = np.array(columns).T
            pool.append(self.dictionary.stumps(feature, cut, polarity, missing_left.astype(bool)))
        return pool


# convex weights


def l1_path(problem: SplitProblem, settings: Settings) -> Result:
    """A: one run for every price, from one with nearly no column down."""
    empty = problem.dictionary.pool()
    start = problem.risk.evaluate(empty.margins(np.zeros(0)))
    largest = problem.dictionary.best_columns(start, 1, empty).bound
    points = []
    for nu in (np.geomspace(0.95, 0.02, settings.prices) * largest).tolist():
        pool, stages = _generated(problem, settings, nu)
        points.append(_point("A", problem, pool, stages[-1], nu, nu))
    return {"points": points}


def unregularised(problem: SplitProblem, settings: Settings, hot_start: int) -> Result:
    """B: every ensemble on the way, the columns, and the box and prices for the other experiments.

    The prices lambda are those at which the best choices have many different sizes, by local search for every
    size among the first T' columns, down to half of what a column beyond T' is worth.
    """
    pool, stages = _generated(problem, settings, settings.small)
    points = [_point("B", problem, pool, w, None, settings.small) for w in stages[1:]]
    prefixes = [w for w in stages if 0 < len(w) <= hot_start]
    if not prefixes:
        raise ValueError(
            "no stump is better than chance on the training rows: there is nothing to choose from."
        )
    box = 2.0 * max(float(w.max()) for w in prefixes)
    hot_pool = pool.subset(np.arange(len(prefixes[-1])))
    sizes = _best_of_sizes(_Choosing(problem, settings, {"box": box}).merged(hot_pool, 0.0))
    hot, last = points[len(prefixes) - 1], points[-1]
    least = 0.5 * (hot["regularised"] - last["regularised"]) / max(last["columns"] - hot["columns"], 1)
    stumps = pool.stumps
    columns: list[Any] = [stumps.feature, stumps.cut, stumps.polarity, stumps.missing_left]
    return {
        "points": points,
        "columns": np.column_stack(columns).tolist(),
        "prices": spread_prices([choice.objective for choice in sizes], least, settings.prices),
        "box": box,
        "starts": [w.tolist() for w in prefixes] + [choice.weights.tolist() for choice in sizes],
    }


def _best_of_sizes(merged: SelectionProblem) -> list[Incumbent]:
    """For 0, 1, ... terms the best choice that local search reaches, from the largest number down."""
    incumbent = Polisher(merged).refit(np.flatnonzero(merged.prices.charged))
    by_size = {len(incumbent.support): incumbent}
    for size in range(len(incumbent.support) - 1, -1, -1):
        polisher = Polisher(replace(merged, max_terms=size))
        incumbent = polisher.improve(polisher.thin(incumbent, size), _POLISH_ROUNDS)
        by_size.setdefault(len(incumbent.support), incumbent)
    return [best_of(by_size[k] for k in by_size if k <= size) for size in range(max(by_size) + 1)]


def _generated(problem: SplitProblem, settings: Settings, nu: float) -> tuple[StumpPool, list[Array]]:
    """Generate columns one by one, with all weights optimal after each, until the paper's rule (8) or T.

    Returns the pool, and the weights after every column, beginning with none.
    """
    pool = problem.dictionary.pool()
    rule = PriceRule(nu, 0.0)
    master = Master(pool, problem.risk, lambda pool: rule.prices(pool.n_columns, pool.n_free))
    stages: dict[int, Array] = {}
    slack = settings.epsilon / problem.rows

    def after(record: Record) -> bool:
        stages[record.n_columns] = master.weights.copy()
        return record.edge <= nu + slack

    solution, _ = generate(
        problem.dictionary,
        master,
        StopRule(settings.columns),
        observers=(after,),
        scoring=Scoring(l1=nu),
        pace=_PACE,
    )
    stages[len(solution.weights)] = solution.weights
    return pool, [stages[k] for k in sorted(stages)]


# prices


def hull(risks: Sequence[float]) -> list[int]:
    """The sizes on the lower convex hull of ``risks[k]``, k = 0, 1, ..., down to the least risk."""
    end = min(range(len(risks)), key=lambda k: risks[k])
    sizes: list[int] = []
    for k in range(end + 1):
        while len(sizes) > 1 and _slope(risks, sizes[-2], sizes[-1]) <= _slope(risks, sizes[-1], k):
            sizes.pop()
        sizes.append(k)
    return sizes


def _slope(risks: Sequence[float], first: int, second: int) -> float:
    """The drop of the risk per term between two sizes."""
    return (risks[first] - risks[second]) / (second - first)


def spread_prices(risks: Sequence[float], least: float, count: int) -> list[float]:
    """``count`` prices of a term, falling to ``least``, at which ensembles of many sizes are the best.

    The paper takes "a variety" of prices. With a price lambda the best ensemble has the size k that minimises
    r(k) + lambda k, where r(k) is the least risk of k terms: only sizes on the lower convex hull of r are
    ever the best, each between the slopes of the hull on its two sides. Sizes are spread by the ratio of
    neighbours. Where there are fewer sizes than prices, the widest gaps between prices get more.
    """
    sizes = hull(risks)
    slopes = [_slope(risks, a, b) for a, b in pairwise(sizes)]
    if not slopes or count < 1:
        raise ValueError("no column lowers the risk: there is nothing to choose from.")
    least = min(max(least, 1e-9 * slopes[0]), 0.5 * slopes[0])
    lower = [*slopes[1:], 0.0]
    priced = [
        (math.sqrt(above * max(below, least)), float(size))
        for above, below, size in zip(slopes, lower, sizes[1:], strict=True)
        if above > least
    ]
    last = priced[-1][1]
    for price, size in ((2.0 * least, 1.25 * last), (least, 1.5 * last)):  # for sizes beyond the last
        if priced[-1][0] > price:
            priced.append((price, size))
    while len(priced) > max(count, 2):
        gaps = [priced[k + 1][1] / priced[k - 1][1] for k in range(1, len(priced) - 1)]
        del priced[1 + gaps.index(min(gaps))]
    prices = [price for price, _ in priced[:count]]
    while len(prices) < count:
        ratios = [a / b for a, b in pairwise(prices)]
        widest = ratios.index(max(ratios))
        prices.insert(widest + 1, math.sqrt(prices[widest] * prices[widest + 1]))
    return prices


# choices


@dataclass(frozen=True, eq=False)
class _Choosing:
    """The experiments that choose among columns, with the box and the prices of B's result ``first``."""

    problem: SplitProblem
    settings: Settings
    first: Result

    def selected_once(self, columns: list[list[int]]) -> Result:
        """E: a choice from the first T' columns for every price.

        Each begins at the best for its price among B's ensembles, the choices of every size that B's result
        has, and the choices before it. At the end the best choice of all is taken for every price, so that
        none is worse at its price than another one.
        """
        pool = self.problem.pool(columns)
        merged = self.merged(pool, 0.0)
        incumbents = _incumbents(merged, self.first["starts"])
        prices = self.first["prices"]
        choices = []
        for price in prices:
            priced = replace(merged, prices=self._rule(price).prices(pool.n_columns, 0))
            choices.append(self._choose(priced, _best(incumbents, price)))
            incumbents.append(_priced(choices[-1].incumbent, -price))
        for k, price in enumerate(prices):
            best = best_of([choices[k].incumbent, _best(incumbents, price)])
            choices[k] = replace(choices[k], incumbent=best)
        points = [self._point("E", pool, *pair) for pair in zip(choices, prices, strict=True)]
        return {"points": points, "choices": [choice.incumbent.weights.tolist() for choice in choices]}

    def selected_by_size(self, columns: list[list[int]], choices: Sequence[list[float]]) -> Result:
        """F: the best choice from the first T' columns for 1, 2, ... terms, while more terms lower the risk.

        Each begins at the best of its size or fewer among B's ensembles, the choices of every size that B's
        result has, the choices of E and the one before it.
        """
        pool = self.problem.pool(columns)
        merged = self.merged(pool, 0.0)
        incumbents = _incumbents(merged, [*self.first["starts"], *choices])
        points = []
        for size in range(1, pool.n_columns + 1):
            start = best_of(choice for choice in incumbents if len(choice.support) <= size)
            choice = self._choose(replace(merged, max_terms=size), start)
            incumbents.append(choice.incumbent)
            if len(choice.incumbent.support) == size:
                points.append(self._point("F", pool, choice, None))
        return {"points": points}

    def reselected(self, name: str, columns: list[list[int]], choices: Sequence[list[float]]) -> Result:
        """C and D: TotalQBoost for every price, from no column or from a hot start with the choices of E."""
        settings, points = self.settings, []
        for k, price in enumerate(self.first["prices"]):
            pool = self.problem.pool(columns)
            start = np.array(choices[k]) if choices else np.zeros(pool.n_columns)
            rule = ReselectRule(
                self._rule(price), None, settings.columns, "edge",
                SearchOptions("auto", bits=settings.bits), all_moves_every=_ALL_MOVES_EVERY,
            )  # fmt: skip
            weights = reselect(self.problem.dictionary, pool, self.problem.risk, rule, start)
            merged = self.merged(pool, price)
            points.append(self._point(name, pool, self._prove(merged, _incumbent(merged, weights)), price))
        return {"points": points}

    def merged(self, pool: StumpPool, price: float) -> SelectionProblem:
        """The selection among the columns of a pool, with equal rows merged."""
        prices = self._rule(price).prices(pool.n_columns, 0)
        return merge_rows(SelectionProblem(pool, self.problem.risk, prices, None))

    def _rule(self, price: float) -> PriceRule:
        return PriceRule(self.settings.small, 0.0, price, self.first["box"])

    def _choose(self, selection: SelectionProblem, start: Incumbent) -> Selection:
        """Search a few nodes, and where they prove nothing by local search, tabu search and more nodes."""
        quick = self._prove(selection, start, _QUICK_NODES)
        if quick.status == "optimal":
            return quick
        polisher, best = Polisher(selection), quick.incumbent
        local = polisher.improve(polisher.refit(best.support, best.weights))
        tabu = tabu_search(
            selection, local.weights, bits=self.settings.bits, starts=self.settings.tabu_starts,
            moves=self.settings.tabu_moves,
        )  # fmt: skip
        return self._prove(selection, best_of([best, local, tabu.incumbent]))

    def _prove(self, selection: SelectionProblem, incumbent: Incumbent, most: float = math.inf) -> Selection:
        """Bound a choice, and improve it, by exact search within the budget of work and ``most`` nodes."""
        rows, columns = selection.pool.dense().shape
        if columns == 0:
            return Selection(selection, incumbent, incumbent.objective)
        nodes = max(1, int(self.settings.work / (rows * columns + columns**3)))
        return exact_search(selection, incumbent, max_nodes=int(min(nodes, most)), most_leaves=1)

    def _point(self, name: str, pool: StumpPool, choice: Selection, price: float | None) -> Result:
        best, bound = choice.incumbent, choice.lower_bound
        point = _point(name, self.problem, pool, best.weights, price, self.settings.small)
        proved = best.objective - bound <= CLOSED * max(1.0, abs(best.objective))
        return point | {"proved": proved, "lower_bound": bound, "nodes": choice.nodes}


def _incumbents(merged: SelectionProblem, starts: Sequence[list[float]]) -> list[Incumbent]:
    """The empty choice and these weights, of the first columns or of all, without a price of terms."""
    n = merged.pool.n_columns
    return [_incumbent(merged, np.pad(np.array(w), (0, n - len(w)))) for w in ([0.0] * n, *starts)]


def _incumbent(merged: SelectionProblem, weights: Array) -> Incumbent:
    return Incumbent(np.flatnonzero(weights), weights, merged.objective_of(weights))


def _priced(choice: Incumbent, price: float) -> Incumbent:
    """A choice whose objective has this price of a term added."""
    objective = choice.objective + price * len(choice.support)
    return Incumbent(choice.support, choice.weights, objective)


def _best(incumbents: list[Incumbent], price: float) -> Incumbent:
    """The best at a price of choices whose objectives have no price of terms."""
    return best_of(_priced(choice, price) for choice in incumbents)


def _point(
    name: str, problem: SplitProblem, pool: StumpPool, weights: Array, price: float | None, nu: float
) -> Result:
    """Evaluate an ensemble; ``weights`` may be over the first columns only."""
    whole = np.pad(weights, (0, pool.n_columns - len(weights)))
    risk = problem.risk.evaluate(pool.margins(whole)).value
    point = Point(
        name,
        price,
        len(weights),
        int(np.count_nonzero(whole)),
        risk,
        risk + nu * float(whole.sum()),
        problem.training.error(pool.stumps, whole),
        problem.validation.error(pool.stumps, whole),
    )
    return asdict(point)

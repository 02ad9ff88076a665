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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.loop import StopRule
from cardboost.boosting.reselecting import ReselectRule, reselect
from cardboost.boosting.totally_corrective import Pace, generate
from cardboost.data.threads import blas_threads
from cardboost.dictionary.base import Scoring
from cardboost.dictionary.stumps import StumpPool
from cardboost.master.newton import Master
from cardboost.problem.prices import PriceRule
from cardboost.problem.trace import Record
from cardboost.reproduce.totalqboost_problem import SplitProblem, plain_columns, spread_prices
from cardboost.selection.exact import CLOSED, exact_search
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import Polisher
from cardboost.selection.select import SearchOptions
from cardboost.selection.selection_problem import Incumbent, SelectionProblem
from cardboost.selection.tabu import tabu_search

Array = NDArray[np.float64]
Result = dict[str, Any]

EXPERIMENTS = ("A", "B", "C", "D", "E", "F")
#: the experiments whose results an experiment starts from
NEEDS = {"A": (), "B": (), "C": ("B",), "D": ("B", "E"), "E": ("B",), "F": ("B", "E")}
#: T', the hot-start columns of the paper's appendix C
HOT_START = {
    "banana": 40, "breast_cancer": 20, "diabetes": 20, "flare_solar": 10, "german": 40, "heart": 15,
    "image": 30, "ringnorm": 40, "splice": 30, "thyroid": 5, "twonorm": 40, "waveform": 40,
}  # fmt: skip

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
    if experiment == "C":
        return choosing.reselected("C", [], [])
    columns = needs["B"]["columns"][:hot_start]
    if experiment == "E":
        return choosing.selected_once(columns)
    choices = needs["E"]["choices"]
    if experiment == "D":
        return choosing.reselected("D", columns, choices)
    return choosing.selected_by_size(columns, choices)


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
    return {"points": [asdict(point) for point in points]}


def unregularised(problem: SplitProblem, settings: Settings, hot_start: int) -> Result:
    """B: every ensemble on the way, the columns, and the box and prices for the other experiments.

    The prices lambda are those at which the best choices have many different sizes, by local search for every
    size among the first T' columns, down to half of what a column beyond T' is worth.
    """
    pool, stages = _generated(problem, settings, settings.small)
    points = [_point("B", problem, pool, w, None, settings.small, len(w)) for w in stages[1:]]
    prefixes = [w for w in stages if 0 < len(w) <= hot_start]
    if not prefixes:
        raise ValueError(
            "no stump is better than chance on the training rows: there is nothing to choose from."
        )
    box = 2.0 * max(float(w.max()) for w in prefixes)
    hot_pool = pool.subset(np.arange(len(prefixes[-1])))
    sizes = _best_of_sizes(merge_rows(_selection_problem(problem, settings, hot_pool, 0.0, box)))
    hot, last = points[len(prefixes) - 1], points[-1]
    least = 0.5 * (hot.regularised - last.regularised) / max(last.columns - hot.columns, 1)
    return {
        "points": [asdict(point) for point in points],
        "columns": plain_columns(pool.stumps),
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
    return [
        min((by_size[k] for k in by_size if k <= size), key=lambda choice: choice.objective)
        for size in range(max(by_size) + 1)
    ]


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


# choices


@dataclass(frozen=True, eq=False)
class _Choice:
    """Weights over columns, and the bound that was proved for the choice."""

    weights: Array
    objective: float
    lower_bound: float
    nodes: int

    @property
    def proved(self) -> bool:
        return self.objective - self.lower_bound <= CLOSED * max(1.0, abs(self.objective))


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
        merged = self._merged(pool, 0.0)
        incumbents = _incumbents(merged, self.first["starts"])
        prices = self.first["prices"]
        choices = []
        for price in prices:
            priced = replace(merged, prices=self._rule(price).prices(pool.n_columns, 0))
            choice = self._choose(priced, _best(incumbents, price))
            choices.append(choice)
            support = np.flatnonzero(choice.weights)
            incumbents.append(Incumbent(support, choice.weights, choice.objective - price * len(support)))
        points = []
        for k, price in enumerate(prices):
            best = _best(incumbents, price)
            if best.objective < choices[k].objective:
                choices[k] = replace(choices[k], weights=best.weights, objective=best.objective)
            points.append(self._judged("E", pool, choices[k], price))
        return {"points": points, "choices": [choice.weights.tolist() for choice in choices]}

    def selected_by_size(self, columns: list[list[int]], choices: Sequence[list[float]]) -> Result:
        """F: the best choice from the first T' columns for 1, 2, ... terms, while more terms lower the risk.

        Each begins at the best of its size or fewer among B's ensembles, the choices of every size that B's
        result has, the choices of E and the one before it.
        """
        pool = self.problem.pool(columns)
        merged = self._merged(pool, 0.0)
        incumbents = _incumbents(merged, [*self.first["starts"], *choices])
        points = []
        for size in range(1, pool.n_columns + 1):
            start = _best([choice for choice in incumbents if len(choice.support) <= size], 0.0)
            choice = self._choose(replace(merged, max_terms=size), start)
            support = np.flatnonzero(choice.weights)
            incumbents.append(Incumbent(support, choice.weights, choice.objective))
            if len(support) == size:
                points.append(self._judged("F", pool, choice, None))
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
            merged = self._merged(pool, price)
            risk = merged.risk.evaluate(merged.pool.margins(weights)).value
            incumbent = Incumbent(np.flatnonzero(weights), weights, merged.objective(risk, weights))
            points.append(self._judged(name, pool, self._prove(merged, incumbent), price))
        return {"points": points}

    def _rule(self, price: float) -> PriceRule:
        return PriceRule(self.settings.small, 0.0, price, self.first["box"])

    def _merged(self, pool: StumpPool, price: float) -> SelectionProblem:
        """The selection among the columns of a pool, with equal rows merged."""
        return merge_rows(_selection_problem(self.problem, self.settings, pool, price, self.first["box"]))

    def _choose(self, selection: SelectionProblem, start: Incumbent) -> _Choice:
        """Search a few nodes, and where they prove nothing by local search, tabu search and more nodes."""
        nodes = min(_QUICK_NODES, self._max_nodes(selection))
        quick = exact_search(selection, start, max_nodes=nodes, most_leaves=1)
        best = quick.incumbent
        if quick.status == "optimal":
            return _Choice(best.weights, best.objective, quick.lower_bound, quick.nodes)
        polisher = Polisher(selection)
        local = polisher.improve(polisher.refit(best.support, best.weights))
        tabu = tabu_search(
            selection, local.weights, bits=self.settings.bits, starts=self.settings.tabu_starts,
            moves=self.settings.tabu_moves,
        )  # fmt: skip
        return self._prove(selection, min(best, local, tabu.incumbent, key=lambda one: one.objective))

    def _max_nodes(self, selection: SelectionProblem) -> int:
        """The nodes of exact search that the budget of work allows."""
        rows, columns = selection.pool.dense().shape
        return max(1, int(self.settings.work / (rows * columns + columns**3)))

    def _prove(self, selection: SelectionProblem, incumbent: Incumbent) -> _Choice:
        """Bound a choice, and improve it, by exact search within its budget."""
        if selection.pool.n_columns == 0:
            return _Choice(incumbent.weights, incumbent.objective, incumbent.objective, 0)
        exact = exact_search(selection, incumbent, max_nodes=self._max_nodes(selection), most_leaves=1)
        best = min(incumbent, exact.incumbent, key=lambda one: one.objective)
        return _Choice(best.weights, best.objective, min(exact.lower_bound, best.objective), exact.nodes)

    def _judged(self, name: str, pool: StumpPool, choice: _Choice, price: float | None) -> Result:
        point = _point(name, self.problem, pool, choice.weights, price, self.settings.small)
        proof = {"proved": choice.proved, "lower_bound": choice.lower_bound, "nodes": choice.nodes}
        return asdict(point) | proof


def _selection_problem(
    problem: SplitProblem, settings: Settings, pool: StumpPool, price: float, box: float
) -> SelectionProblem:
    prices = PriceRule(settings.small, 0.0, price, box).prices(pool.n_columns, pool.n_free)
    return SelectionProblem(pool, problem.risk, prices, None)


def _incumbents(merged: SelectionProblem, starts: Sequence[list[float]]) -> list[Incumbent]:
    """The empty choice and these weights, of the first columns or of all, without a price of terms."""
    n, master, incumbents = merged.pool.n_columns, merged.master(), []
    for weights in (np.zeros(n), *(np.pad(np.array(w), (0, n - len(w))) for w in starts)):
        master.move_to(weights)
        incumbents.append(Incumbent(np.flatnonzero(weights), weights, master.objective))
    return incumbents


def _best(incumbents: list[Incumbent], price: float) -> Incumbent:
    """The best at a price of choices whose objectives have no price of terms."""
    best = min(incumbents, key=lambda one: one.objective + price * len(one.support))
    return replace(best, objective=best.objective + price * len(best.support))


def _point(
    name: str,
    problem: SplitProblem,
    pool: StumpPool,
    weights: Array,
    price: float | None,
    nu: float,
    columns: int | None = None,
) -> Point:
    """Evaluate an ensemble; ``weights`` may be over the first columns only."""
    whole = np.pad(weights, (0, pool.n_columns - len(weights)))
    risk = problem.risk.evaluate(pool.margins(whole)).value
    return Point(
        name,
        price,
        pool.n_columns if columns is None else columns,
        int(np.count_nonzero(whole)),
        risk,
        risk + nu * float(whole.sum()),
        problem.training.error(pool.stumps, whole),
        problem.validation.error(pool.stumps, whole),
    )

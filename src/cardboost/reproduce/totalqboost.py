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
others could have made. Every experiment is a function of plain data, which gives plain data: it can run in
any process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.column_generation import Pace, StopRule, TraceRecord, generate
from cardboost.boosting.totalqboost import ReselectRule, reselect
from cardboost.data.threads import blas_threads
from cardboost.dictionary.stumps import StumpPool
from cardboost.master.newton import Master
from cardboost.problem.prices import PriceRule
from cardboost.reproduce.totalqboost_prices import spread_prices
from cardboost.reproduce.totalqboost_problem import Problem, plain_columns
from cardboost.selection.exact import CLOSED, exact_search
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import Polisher
from cardboost.selection.select import SearchOptions
from cardboost.selection.selection_problem import Incumbent, SelectionProblem
from cardboost.selection.tabu import tabu_search

Array = NDArray[np.float64]

EXPERIMENTS = ("A", "B", "C", "D", "E", "F")
#: whose results an experiment begins from
NEEDS = {"A": (), "B": (), "C": ("B",), "D": ("B", "E"), "E": ("B",), "F": ("B", "E")}
#: T', the hot-start columns of the paper's appendix C
HOT_START = {
    "banana": 40, "breast_cancer": 20, "diabetes": 20, "flare_solar": 10, "german": 40, "heart": 15,
    "image": 30, "ringnorm": 40, "splice": 30, "thyroid": 5, "twonorm": 40, "waveform": 40,
}  # fmt: skip

_SOLVE = Pace(newton_steps=60, step_tol=1e-10, certified=False)
_SIZE_ROUNDS = 4  # of local search for every size, where prices are looked for
_ALL_MOVES = 10  # rounds of C and D between two searches of all moves
_FEW_NODES = 60  # of exact search after a first look: many choices are proved by then


@dataclass(frozen=True)
class Settings:
    """What the paper says of all experiments, and what it leaves open.

    ``epsilon``: by how much an edge may exceed nu at the end, on losses that are summed as in the paper.
    ``small``: nu of B to F. ``work`` of exact search per choice: nodes times about what each of them costs,
    the entries of the table and the cube of its columns.
    """

    columns: int = 100  # T
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
    needs: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """One experiment on one split, from the results of those that it begins from, as plain data.

    One BLAS thread: sums in another order would give other last digits.
    """
    problem = Problem.make(X, y, split, settings.max_bins)
    if experiment == "A":
        return l1_path(problem, settings)
    if experiment == "B":
        return unregularised(problem, settings, hot_start)
    first = needs["B"]
    if experiment == "C":
        return reselected("C", problem, settings, first, first["columns"][:0], [])
    hot = first["columns"][:hot_start]
    if experiment == "D":
        return reselected("D", problem, settings, first, hot, needs["E"]["choices"])
    if experiment == "E":
        return selected_once(problem, settings, first, hot)
    return selected_by_size(problem, settings, first, hot, needs["E"]["choices"])


# convex weights


def l1_path(problem: Problem, settings: Settings) -> dict[str, Any]:
    """A: one run for every price, from that of nearly no column down."""
    empty = problem.dictionary.pool()
    start = problem.risk.evaluate(empty.margins(np.zeros(0)))
    largest = problem.dictionary.best_columns(start, 1, empty).bound
    points = []
    for nu in np.geomspace(0.95, 0.02, settings.prices) * largest:
        pool, stages = _generated(problem, settings, float(nu))
        points.append(_point("A", problem, pool, stages[-1], float(nu), float(nu)))
    return {"points": [asdict(own) for own in points]}


def unregularised(problem: Problem, settings: Settings, hot_start: int) -> dict[str, Any]:
    """B: every ensemble on the way, the columns, and what the other experiments take from here.

    That is the box, and the prices lambda: those at which the best choices have many different sizes, by what
    local search finds for every size among the first T' columns, down to half of what a column beyond T' is
    worth.
    """
    pool, stages = _generated(problem, settings, settings.small)
    points = [_point("B", problem, pool, w, None, settings.small, len(w)) for w in stages[1:]]
    prefixes = [w for w in stages if 0 < len(w) <= hot_start]
    if not prefixes:
        raise ValueError(
            "no stump is better than chance on the training rows: there is nothing to choose from."
        )
    box = 2.0 * max(float(w.max()) for w in prefixes)
    sizes = _best_of_sizes(problem, settings, pool.subset(np.arange(len(prefixes[-1]))), box)
    hot, last = points[len(prefixes) - 1], points[-1]
    least = 0.5 * (hot.regularised - last.regularised) / max(last.columns - hot.columns, 1)
    return {
        "points": [asdict(own) for own in points],
        "columns": plain_columns(pool.stumps),
        "prices": spread_prices([at.objective for at in sizes], least, settings.prices),
        "box": box,
        "starts": [w.tolist() for w in prefixes] + [at.weights.tolist() for at in sizes],
    }


def _best_of_sizes(problem: Problem, settings: Settings, pool: StumpPool, box: float) -> list[Incumbent]:
    """For 0, 1, ... terms the best choice that local search finds, from the largest number down."""
    merged = merge_rows(_cardinality(problem, settings, pool, 0.0, box))
    at = Polisher(merged).refit(np.flatnonzero(merged.prices.charged))
    found = {len(at.support): at}
    for size in range(len(at.support) - 1, -1, -1):
        polisher = Polisher(replace(merged, max_terms=size))
        at = polisher.improve(polisher.thin(at, size), _SIZE_ROUNDS)
        found.setdefault(len(at.support), at)
    return [
        min((found[k] for k in found if k <= size), key=lambda one: one.objective)
        for size in range(max(found) + 1)
    ]


def _generated(problem: Problem, settings: Settings, nu: float) -> tuple[StumpPool, list[Array]]:
    """Columns one by one, all weights made optimal after each, until the paper's rule (8) holds or T is met.

    Returns the weights after every column, beginning with none.
    """
    pool = problem.dictionary.pool()
    rule = PriceRule(nu, 0.0)
    master = Master(pool, problem.risk, lambda own: rule.prices(own.n_columns, own.n_free))
    stages: dict[int, Array] = {}
    slack = settings.epsilon / problem.rows

    def after(record: TraceRecord) -> bool:
        stages[record.n_columns] = master.weights.copy()
        return record.edge <= nu + slack

    _, solution, _ = generate(
        problem.dictionary, master, StopRule(settings.columns), l1=nu, pace=_SOLVE, callback=after
    )
    stages[len(solution.weights)] = solution.weights
    return pool, [stages[k] for k in sorted(stages)]


# choices


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Weights over columns, and what is proved of the choice."""

    weights: Array
    objective: float
    lower_bound: float
    nodes: int

    @property
    def proved(self) -> bool:
        return self.objective - self.lower_bound <= CLOSED * max(1.0, abs(self.objective))


def selected_once(
    problem: Problem, settings: Settings, first: dict[str, Any], columns: list[list[int]]
) -> dict[str, Any]:
    """E: a choice from the first T' columns for every price.

    Each begins at the best for its price among B's ensembles, the choices of every size that B's result has,
    and the choices before it. At the end the best choice of all is taken for every price, so that none is
    worse at its price than another one.
    """
    pool = problem.pool(columns)
    merged = merge_rows(_cardinality(problem, settings, pool, 0.0, first["box"]))
    known = _known(merged, first["starts"])
    prices = first["prices"]
    found = []
    for price in prices:
        own = replace(merged, prices=_rule(settings, price, first["box"]).prices(pool.n_columns, 0))
        chosen = _choice(own, _best(known, price), settings)
        found.append(chosen)
        support = np.flatnonzero(chosen.weights)
        known.append(Incumbent(support, chosen.weights, chosen.objective - price * len(support)))
    points, choices = [], []
    for price, chosen in zip(prices, found, strict=True):
        best = _best(known, price)
        if best.objective < chosen.objective:
            chosen = replace(chosen, weights=best.weights, objective=best.objective)
        points.append(_judged("E", problem, pool, chosen, price, settings.small))
        choices.append(chosen.weights.tolist())
    return {"points": [asdict(one) for one in points], "choices": choices}


def selected_by_size(
    problem: Problem,
    settings: Settings,
    first: dict[str, Any],
    columns: list[list[int]],
    choices: Sequence[list[float]],
) -> dict[str, Any]:
    """F: the best choice from the first T' columns for 1, 2, ... terms, while more terms lower the risk.

    Each begins at the best of its size or fewer among B's ensembles, the choices of every size that B's
    result has, the choices of E and the one before it.
    """
    pool = problem.pool(columns)
    merged = merge_rows(_cardinality(problem, settings, pool, 0.0, first["box"]))
    known = _known(merged, [*first["starts"], *choices])
    points = []
    for size in range(1, pool.n_columns + 1):
        start = _best([at for at in known if len(at.support) <= size], 0.0)
        chosen = _choice(replace(merged, max_terms=size), start, settings)
        support = np.flatnonzero(chosen.weights)
        known.append(Incumbent(support, chosen.weights, chosen.objective))
        if len(support) == size:
            points.append(_judged("F", problem, pool, chosen, None, settings.small))
    return {"points": [asdict(one) for one in points]}


def _known(merged: SelectionProblem, starts: Sequence[list[float]]) -> list[Incumbent]:
    """The empty choice and these weights, of the first columns or of all, without a price of terms."""
    n, master, found = merged.pool.n_columns, merged.master(), []
    for weights in (np.zeros(n), *(np.pad(np.array(w), (0, n - len(w))) for w in starts)):
        master.move_to(weights)
        found.append(Incumbent(np.flatnonzero(weights), weights, master.objective))
    return found


def reselected(
    name: str,
    problem: Problem,
    settings: Settings,
    first: dict[str, Any],
    columns: list[list[int]],
    choices: Sequence[list[float]],
) -> dict[str, Any]:
    """C and D: TotalQBoost for every price, from no column or from a hot start with the choices of E."""
    points = []
    for k, price in enumerate(first["prices"]):
        pool = problem.pool(columns)
        start = np.array(choices[k]) if choices else np.zeros(pool.n_columns)
        rule = ReselectRule(
            _rule(settings, price, first["box"]), None, settings.columns, "edge",
            SearchOptions("auto", bits=settings.bits), all_moves_every=_ALL_MOVES,
        )  # fmt: skip
        weights, _ = reselect(problem.dictionary, pool, problem.risk, rule, start)
        own = merge_rows(_cardinality(problem, settings, pool, price, first["box"]))
        point = own.risk.evaluate(own.pool.margins(weights))
        at = Incumbent(np.flatnonzero(weights), weights, own.objective(point.value, weights))
        points.append(_judged(name, problem, pool, _proof(own, at, settings), price, settings.small))
    return {"points": [asdict(own) for own in points]}


def _rule(settings: Settings, price: float, box: float) -> PriceRule:
    return PriceRule(settings.small, 0.0, price, box)


def _cardinality(
    problem: Problem, settings: Settings, pool: StumpPool, price: float, box: float
) -> SelectionProblem:
    prices = _rule(settings, price, box).prices(pool.n_columns, pool.n_free)
    return SelectionProblem(pool, problem.risk, prices, None)


def _best(known: list[Incumbent], price: float) -> Incumbent:
    """The best of choices that are known without a price of terms, where there is one."""
    at = min(known, key=lambda one: one.objective + price * len(one.support))
    return replace(at, objective=at.objective + price * len(at.support))


def _choice(own: SelectionProblem, start: Incumbent, settings: Settings) -> _Chosen:
    """A choice and its bound: a few nodes, and where they prove nothing local search, tabu search, more."""
    few = min(_FEW_NODES, _nodes(own, settings))
    quick = exact_search(own, start, max_nodes=few, most_leaves=1)
    if quick.status == "optimal":
        at = quick.incumbent
        return _Chosen(at.weights, at.objective, quick.lower_bound, quick.nodes)
    polisher = Polisher(own)
    local = polisher.improve(polisher.refit(quick.incumbent.support, quick.incumbent.weights))
    walk = tabu_search(
        own, local.weights, bits=settings.bits, starts=settings.tabu_starts, moves=settings.tabu_moves
    )
    return _proof(own, min(quick.incumbent, local, walk.incumbent, key=lambda at: at.objective), settings)


def _nodes(own: SelectionProblem, settings: Settings) -> int:
    """How many nodes of exact search the budget allows."""
    rows, columns = own.pool.dense().shape
    return max(1, int(settings.work / (rows * columns + columns**3)))


def _proof(own: SelectionProblem, at: Incumbent, settings: Settings) -> _Chosen:
    """What exact search makes of a choice within its budget."""
    if own.pool.n_columns == 0:
        return _Chosen(at.weights, at.objective, at.objective, 0)
    proven = exact_search(own, at, max_nodes=_nodes(own, settings), most_leaves=1)
    best = min(at, proven.incumbent, key=lambda one: one.objective)
    return _Chosen(best.weights, best.objective, min(proven.lower_bound, best.objective), proven.nodes)


# what is said of an ensemble


def _judged(
    name: str, problem: Problem, pool: StumpPool, own: _Chosen, price: float | None, nu: float
) -> Point:
    point = _point(name, problem, pool, own.weights, price, nu)
    return replace(point, proved=own.proved, lower_bound=own.lower_bound, nodes=own.nodes)


def _point(
    name: str,
    problem: Problem,
    pool: StumpPool,
    weights: Array,
    price: float | None,
    nu: float,
    columns: int | None = None,
) -> Point:
    """``weights`` may be over the first columns only."""
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

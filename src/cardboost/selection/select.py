"""One way through the selectors: local search, the box, more search, and the proof.

    problem -> polish -> tabu, sampler -> box -> relaxation -> exact search within its budget

Every selector works on the same problem and hands on the best choice so far; what is returned is the best of
all, with leaves that bound any choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cardboost.problem.bound import Leaf
from cardboost.problem.budget import Budget, Stage
from cardboost.selection import exact, tabu
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import Incumbent, Polisher, polish
from cardboost.selection.qubo import QuboResult, anneal, is_sampler
from cardboost.selection.relaxation import Relaxation, pool_relaxation
from cardboost.selection.selection_problem import SelectionProblem
from cardboost.selection.tabu import TabuResult, tabu_search

Array = NDArray[np.float64]


METHODS = ("auto", "exact", "tabu", "polish", "qubo")
#: nanoseconds that "auto" gives to exact search where nothing else says how many, about
_AUTO_WORK = 4e9
_FEW = 300  # nodes after a first, quick choice: many problems are closed by then
_WORTH = 1e-8  # share of the objective
MOST_BYTES = 4_000_000  # that the leaves of a proof may take in a certificate
_FIT_BYTES = 200_000  # the same of the proof that goes with a fit
_FIT_CHECK = 1e9  # nanoseconds that checking it may take, about


def fit_proof(rows: int, columns: int) -> tuple[float, int]:
    """How much proof goes with a fit: nanoseconds of exact search, about, and leaves.

    As much work as generation and local search take on so many distinct rows (benchmarks/guarantees.py), and
    leaves of about 200 kB that are checked in about a second.
    """
    check = 6e5 + 1.7 * rows * columns**2  # nanoseconds for a leaf
    return 1e8 + 4e4 * rows, int(max(8, min(_FIT_BYTES // _leaf_bytes(columns), _FIT_CHECK // check)))


@dataclass(frozen=True)
class SearchOptions:
    """Which selector, and how much work it may do. ``max_nodes`` None: as many as it takes."""

    method: Any = "auto"
    max_nodes: int | None = 20_000
    bits: int | Literal["auto"] = 6
    seed: int = 0
    n_jobs: int | None = 1
    progress: exact.Progress | None = None  # told how far the exact search is
    #: what "auto" gives to exact search, in nanoseconds; None: as much as goes with a fit
    auto_work: float | None = _AUTO_WORK


def check_method(name: str, method: Any) -> None:
    """Refuse what is neither the name of a selector nor a sampler."""
    if method not in METHODS if isinstance(method, str) else not is_sampler(method):
        names = ", ".join(map(repr, METHODS))
        raise ValueError(f"{name} must be one of {names}, or a sampler of dimod; got {method!r}.")


@dataclass(frozen=True, eq=False)
class Selection:
    """The choice, the problem with its box, the relaxation of the root and the leaves of the proof.

    ``status``: "optimal", or why the search ended before that ("feasible" where there was none).
    """

    problem: SelectionProblem
    incumbent: Incumbent
    root: Relaxation | None  # None where a few nodes after a quick choice were enough
    leaves: tuple[Leaf, ...]
    centre: Array | None  # from which the caps follow that leaves with a curve rely on
    lower_bound: float
    status: str
    nodes: int
    sampling: QuboResult | None = None
    tabu: TabuResult | None = None


EMPTY_BOX = 1.0  # of weights, where the model has none to take it from


def with_default_box(problem: SelectionProblem, found: Incumbent) -> SelectionProblem:
    """No charged weight above twice the largest that was found."""
    charged = problem.prices.charged
    largest = float(np.max(found.weights[charged], initial=0.0))
    return problem.with_box(2.0 * largest if largest > 0 else EMPTY_BOX)


def _leaf_bytes(columns: int) -> int:
    """About what a leaf takes in a file: with curvature, three numbers to a column."""
    return 250 + 18 * columns


def most_leaves(problem: SelectionProblem) -> int:
    """As many as a certificate has room for."""
    return max(1, MOST_BYTES // _leaf_bytes(problem.pool.n_columns))


def time_for_nodes(problem: SelectionProblem, budget: Budget, stage: Stage) -> bool:
    """Whether a stage has the time for some nodes of exact search over the distinct rows of a problem."""
    return not budget.late(stage) and budget.left_in(stage) >= exact.first_seconds(problem)


def _quick_search(
    problem: SelectionProblem, options: SearchOptions, budget: Budget, boxed: bool
) -> Selection | None:
    """What a few nodes of exact search make of the convex solution thinned out; None where it is refused.

    ``problem``: over distinct rows.
    """
    polisher = Polisher(problem, budget.end_of(Stage.FIRST_CHOICE))
    first = polisher.shed(polisher.all_columns(), polisher.most_terms)
    if not problem.allows(first.support) or not time_for_nodes(problem, budget, Stage.FIRST_NODES):
        return None
    problem = problem if boxed else with_default_box(problem, first)
    if exact.accepts(problem) is not None:
        return None
    found = exact.exact_search(
        problem, first, max_nodes=_FEW, late=budget.end_of(Stage.FIRST_NODES),
        most_leaves=most_leaves(problem), progress=options.progress, proof_late=budget.end_of(Stage.CHOICE),
    )  # fmt: skip
    return Selection(
        problem,
        found.incumbent,
        None,
        found.leaves,
        found.centre,
        found.lower_bound,
        found.status,
        found.nodes,
    )


def select(
    problem: SelectionProblem,
    start: Incumbent | None,
    options: SearchOptions,
    budget: Budget | None = None,
    boxed: bool = True,
) -> Selection:
    """Choose columns. ``start``: what local search has found already. The problem of the result is over
    distinct rows.

    ``boxed=False``: no box was given, and twice the largest weight found becomes one.
    """
    sampling, method = None, options.method
    budget = Budget() if budget is None else budget
    quick, problem = None, merge_rows(problem)
    refused = exact.accepts(problem.with_box(1.0)) if method == "exact" else None
    if refused is not None:
        raise ValueError(refused)
    many_nodes = (options.max_nodes or np.inf) > 2 * _FEW
    if method == "exact" and start is None and many_nodes and not budget.late(Stage.FIRST_CHOICE):
        quick = _quick_search(problem, options, budget, boxed)
        if quick is not None and quick.status == "optimal":
            return quick
    if method == "qubo" or not isinstance(method, str):
        sampling = anneal(
            problem, "tabu" if method == "qubo" else method, None if start is None else start.weights,
            bits=6 if options.bits == "auto" else options.bits, seed=options.seed,
            late=budget.end_of(Stage.CHOICE),
        )  # fmt: skip
        found = sampling.incumbent
    else:
        known = None if quick is None else quick.incumbent.weights
        found = start if start is not None else polish(problem, known, budget.end_of(Stage.CHOICE))[0]
    if start is not None and start.objective < found.objective:
        found = start
    walk = None
    refused = tabu.accepts(problem)
    if method == "tabu" and refused is not None:
        raise ValueError(refused)
    if method == "tabu" or (method == "auto" and refused is None and not budget.late(Stage.CHOICE)):
        walk = tabu_search(
            problem, found.weights, bits=options.bits, seed=options.seed, n_jobs=options.n_jobs,
            late=budget.end_of(Stage.TABU),
        )  # fmt: skip
        found = min(found, walk.incumbent, key=lambda at: at.objective)
    if not boxed:
        problem = with_default_box(problem, found)
    root = pool_relaxation(problem, found.weights, budget.end_of(Stage.RELAXATION))
    leaves: tuple[Leaf, ...] = (root.leaf,)
    centre: Array | None = None
    bound, status, nodes = root.leaf.bound, "feasible", 0
    wanted = method in ("auto", "exact")
    refused = exact.accepts(problem) if wanted else None
    if refused is not None and method == "exact":
        raise ValueError(refused)
    in_time = not budget.late(Stage.SEARCH_BEGINS) and time_for_nodes(problem, budget, Stage.SEARCH)
    if wanted and refused is None and not in_time:
        status = "time limit"
    elif wanted and refused is None:
        work, leaves_at_most = options.auto_work if method == "auto" else None, most_leaves(problem)
        if method == "auto" and work is None:
            work, leaves_at_most = fit_proof(len(problem.pool.dense()), problem.pool.n_columns)
        proven = exact.exact_search(
            problem,
            found,
            max_nodes=options.max_nodes,
            most_work=work,
            late=budget.end_of(Stage.SEARCH),
            most_leaves=leaves_at_most,
            progress=options.progress,
            proof_late=budget.end_of(Stage.LEAVES),
        )
        found, status, nodes = proven.incumbent, proven.status, proven.nodes
        # leaves that prove hardly more than the relaxation of the root are not worth their room
        more = bound + _WORTH * max(1.0, abs(found.objective))
        if min(leaf.bound for leaf in proven.leaves) > more:
            leaves, centre = proven.leaves, proven.centre
        if proven.lower_bound > more:
            bound = proven.lower_bound
    objective = found.objective
    if objective - bound <= exact.CLOSED * max(1.0, abs(objective)):
        status = "optimal"
    return Selection(
        problem, found, root, leaves, centre, min(bound, objective), status, nodes, sampling, walk
    )

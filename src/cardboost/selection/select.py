"""One way through the selectors: local search, the box, more search, and the proof.

    problem -> polish -> tabu, sampler -> box -> relaxation -> exact search within its budget

Every selector works on the same problem and hands on the best choice so far; the result is the best of all,
with leaves that bound any choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardboost.problem.budget import Budget, Stage
from cardboost.selection import exact, nodes, tabu
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import Polisher, polish
from cardboost.selection.qubo import anneal, is_sampler
from cardboost.selection.relaxation import pool_relaxation
from cardboost.selection.selection_problem import Incumbent, Selection, SelectionProblem, best_of, require
from cardboost.selection.tabu import Bits, tabu_search

METHODS = ("auto", "exact", "tabu", "polish", "qubo")
EMPTY_BOX = 1.0  # of weights, where the model has none to take it from

#: nanoseconds that "auto" gives to exact search where nothing else says how many, about
_AUTO_WORK = 4e9
_QUICK_NODES = 300  # after a first, quick choice: many problems are closed by then
_WORTH = 1e-8  # share of the objective by which leaves must prove more than the root to be kept
_MOST_BYTES = 4_000_000  # that the leaves of a proof may take in a certificate
_FIT_BYTES = 200_000  # the same of the proof that goes with a fit
_FIT_CHECK = 1e9  # nanoseconds that checking it may take, about


@dataclass(frozen=True)
class SearchOptions:
    """Which selector, and how much work it may do.

    Parameters
    ----------
    method : str or sampler
        One of :data:`METHODS`, or a sampler of dimod.
    max_nodes : int or None
        Nodes of exact search; None: as many as it takes.
    bits : int or "auto"
        Bits per weight of tabu search and of samplers.
    seed : int
        Equal seeds give equal results.
    n_jobs : int or None
        Starts of tabu search that run at the same time.
    progress : callable or None
        Called after every batch of nodes, see :func:`.exact.exact_search`.
    auto_work : float or None
        Nanoseconds that "auto" gives to exact search, about; None: as much as goes with a fit.
    """

    method: Any = "auto"
    max_nodes: int | None = 20_000
    bits: Bits = 6
    seed: int = 0
    n_jobs: int | None = 1
    progress: exact.Progress | None = None
    auto_work: float | None = _AUTO_WORK

    @property
    def sampler(self) -> Any:
        """The sampler that chooses, or None."""
        if isinstance(self.method, str):
            return "tabu" if self.method == "qubo" else None
        return self.method


def check_method(name: str, method: Any) -> None:
    """Refuse what is neither the name of a selector nor a sampler."""
    if method not in METHODS if isinstance(method, str) else not is_sampler(method):
        names = ", ".join(map(repr, METHODS))
        raise ValueError(f"{name} must be one of {names}, or a sampler of dimod; got {method!r}.")


def with_default_box(problem: SelectionProblem, incumbent: Incumbent) -> SelectionProblem:
    """No charged weight above twice the largest of the incumbent."""
    largest = float(np.max(incumbent.weights[problem.prices.charged], initial=0.0))
    return problem.with_box(2.0 * largest if largest > 0 else EMPTY_BOX)


def _leaf_bytes(columns: int) -> int:
    """About what a leaf takes in a file: with curvature, three numbers to a column."""
    return 250 + 18 * columns


def most_leaves(problem: SelectionProblem) -> int:
    """As many as a certificate has room for."""
    return max(1, _MOST_BYTES // _leaf_bytes(problem.pool.n_columns))


def fit_proof(rows: int, columns: int) -> tuple[float, int]:
    """How much proof goes with a fit: nanoseconds of exact search, about, and leaves.

    As much work as generation and local search take on so many distinct rows (benchmarks/guarantees.py), and
    leaves of about 200 kB that are checked in about a second.
    """
    check = 6e5 + 1.7 * rows * columns**2  # nanoseconds for a leaf
    return 1e8 + 4e4 * rows, int(max(8, min(_FIT_BYTES // _leaf_bytes(columns), _FIT_CHECK // check)))


def time_for_nodes(problem: SelectionProblem, budget: Budget, stage: Stage) -> bool:
    """Whether a stage has the time for some nodes of exact search over the distinct rows of a problem."""
    return not budget.late(stage) and budget.left_in(stage) >= nodes.first_seconds(problem)


def select(
    problem: SelectionProblem, start: Incumbent | None, options: SearchOptions,
    budget: Budget | None = None, boxed: bool = True,
) -> Selection:  # fmt: skip
    """Choose columns, and bound how much better any choice can be.

    Parameters
    ----------
    problem : SelectionProblem
        What to choose from.
    start : Incumbent or None
        The result of a local search; there is then no other.
    options : SearchOptions
        Which selector, and its work.
    budget : Budget, optional
        The time; its stages are those of a selection.
    boxed : bool
        False: weights have no box, and twice the largest weight of the best choice becomes one.

    Returns
    -------
    Selection
        Its problem is over distinct rows and has the box.

    Raises
    ------
    ValueError
        Where the selector does not take the problem; the message is the sentence of its ``accepts``.
    """
    method, quick = options.method, None
    budget, problem = budget or Budget(), merge_rows(problem)
    if method == "exact":
        require(exact.accepts(problem.with_box(1.0)))
    many_nodes = (options.max_nodes or np.inf) > 2 * _QUICK_NODES
    if method == "exact" and start is None and many_nodes and not budget.late(Stage.FIRST_CHOICE):
        quick = _quick_search(problem, options, budget, boxed)
        if quick is not None and quick.status == "optimal":
            return quick
    choice = _choose(problem, start, quick, options, budget)
    best = choice.incumbent
    problem = problem if boxed else with_default_box(problem, best)
    root = pool_relaxation(problem, best.weights, budget.end_of(Stage.RELAXATION))
    choice = replace(choice, problem=problem, root=root, leaves=(root.leaf,), lower_bound=root.leaf.bound)
    if method in ("auto", "exact"):
        choice = _prove(choice, options, budget)
    bound, objective = choice.lower_bound, choice.incumbent.objective
    closed = objective - bound <= exact.CLOSED * max(1.0, abs(objective))
    status = "optimal" if closed else choice.status
    return replace(choice, lower_bound=min(bound, objective), status=status)


def _quick_search(
    problem: SelectionProblem, options: SearchOptions, budget: Budget, boxed: bool
) -> Selection | None:
    """What a few nodes of exact search make of the convex solution thinned out; None where it is refused."""
    polisher = Polisher(problem, budget.end_of(Stage.FIRST_CHOICE))
    first = polisher.shed(polisher.all_columns(), polisher.most_terms)
    if not problem.allows(first.support) or not time_for_nodes(problem, budget, Stage.FIRST_NODES):
        return None
    problem = problem if boxed else with_default_box(problem, first)
    if exact.accepts(problem) is not None:
        return None
    return exact.exact_search(
        problem, first, max_nodes=_QUICK_NODES, late=budget.end_of(Stage.FIRST_NODES),
        most_leaves=most_leaves(problem), progress=options.progress, proof_late=budget.end_of(Stage.CHOICE),
    )  # fmt: skip


def _choose(
    problem: SelectionProblem, start: Incumbent | None, quick: Selection | None, options: SearchOptions,
    budget: Budget,
) -> Selection:  # fmt: skip
    """The best choice of local search or a sampler, then of tabu search."""
    late = budget.end_of(Stage.CHOICE)
    if options.sampler is not None:
        choice = anneal(
            problem, options.sampler, None if start is None else start.weights,
            bits=6 if options.bits == "auto" else options.bits, seed=options.seed, late=late,
        )  # fmt: skip
        best = choice.incumbent if start is None else best_of([choice.incumbent, start])
    else:
        weights = None if quick is None else quick.incumbent.weights
        best = start if start is not None else polish(problem, weights, late)[0]
        choice = Selection(problem, best)
    suited = options.method == "auto" and tabu.accepts(problem) is None
    if options.method == "tabu" or (suited and not late()):
        walk = tabu_search(
            problem, best.weights, bits=options.bits, seed=options.seed, n_jobs=options.n_jobs,
            late=budget.end_of(Stage.TABU),
        )  # fmt: skip
        choice, best = replace(choice, tabu=walk.tabu), best_of([best, walk.incumbent])
    return replace(choice, incumbent=best)


def _prove(choice: Selection, options: SearchOptions, budget: Budget) -> Selection:
    """Exact search from a choice with the bound of the root, where it takes the problem and time is left."""
    problem, work, room = choice.problem, None, most_leaves(choice.problem)
    refusal = exact.accepts(problem)
    if refusal is not None:
        require(refusal if options.method == "exact" else None)
        return choice
    if budget.late(Stage.SEARCH_BEGINS) or not time_for_nodes(problem, budget, Stage.SEARCH):
        return replace(choice, status="time limit")
    if options.method == "auto":
        work = options.auto_work
        if work is None:
            work, room = fit_proof(len(problem.pool.dense()), problem.pool.n_columns)
    proven = exact.exact_search(
        problem, choice.incumbent, max_nodes=options.max_nodes, most_work=work,
        late=budget.end_of(Stage.SEARCH), most_leaves=room, progress=options.progress,
        proof_late=budget.end_of(Stage.LEAVES),
    )  # fmt: skip
    # leaves that prove hardly more than the relaxation of the root are not worth their room
    more = choice.lower_bound + _WORTH * max(1.0, abs(proven.incumbent.objective))
    if min(leaf.bound for leaf in proven.leaves) > more:
        choice = replace(choice, leaves=proven.leaves, centre=proven.centre)
    return replace(
        choice, incumbent=proven.incumbent, status=proven.status, nodes=proven.nodes,
        open_nodes=proven.open_nodes,
        lower_bound=proven.lower_bound if proven.lower_bound > more else choice.lower_bound,
    )  # fmt: skip

"""Regularisation by cross-validation inside a fit: one ``l2``, and where it is asked for one number of terms.

In every fold columns are generated once, at one ``l2``; models are then chosen among them for every ``l2`` of
a grid, by local search that goes on from the choice for its neighbour, and none is proved. All folds share
the cuts of all rows, which see no labels.

Folds hold out groups of rows that are equal in all bins, dealt in the order of a seeded hash of their
content. So neither the order of the rows nor the number of threads matters, and weight 2 is the row twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.stump_task import StumpTask
from cardboost.boosting.task import HeldOutBins, TrainingSettings
from cardboost.boosting.training import grow, selection_problem
from cardboost.data.folds import deal_rows, fewest_distinct
from cardboost.data.sentences import counted
from cardboost.master.newton import Master
from cardboost.problem.budget import Budget
from cardboost.problem.losses import get_loss
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import choose_sizes, improve_sizes

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Split = tuple[Indices, Indices]  # rows to train on, rows that are held out

L2_GRID = (0.003, 0.01, 0.03, 0.1, 0.3)
FIXED_L2 = 0.03  # where there is no cross-validation: columns of the folds are generated with it too
AUTO_SIZES = (1, 2, 3, 4, 5, 7, 10, 14, 20)  # numbers of terms that are compared
FIXED_SIZE = 10  # terms where there is no cross-validation
FEWEST_COLUMNS = 40  # generated in a fold where a fit would begin to select without any
N_FOLDS = 3
N_FOLDS_OF_ALL = 2  # where nothing is selected: generating columns is then the whole fit
MOST_GROUPS = 8192  # of equal rows that take part: beyond, l2 hardly changes what a small model does
FEWEST_GROUPS = 20  # of a class, below which held-out losses say nothing
_CONVEX_TOL = 1e-3  # relative gap of the convex weights of all columns, where nothing is selected
_CONVEX_STEPS = 10  # of these weights, from those for a neighbouring l2


@dataclass(frozen=True, eq=False)
class Regularisation:
    """The regularisation of a fit, and how it was decided.

    Attributes
    ----------
    l2 : float
        Regularisation per half squared weight.
    max_terms : int or None
        Limit on terms.
    reason : str
        "chosen by cross-validation", or why it was not.
    l2_grid, sizes : tuple
        What was compared; empty without cross-validation.
    losses : array of shape (folds, l2, sizes)
        Mean losses on held-out rows.
    """

    l2: float
    max_terms: int | None
    reason: str = "given"
    l2_grid: tuple[float, ...] = ()
    sizes: tuple[int | None, ...] = ()
    losses: Array | None = None

    def __str__(self) -> str:
        """In words, for people."""
        terms = (
            "no limit on terms" if self.max_terms is None else f"at most {counted(self.max_terms, 'term')}"
        )
        if len(self.sizes) > 1:
            return f"l2 {self.l2:g}, {terms}, {self.reason}"
        return f"l2 {self.l2:g}, {self.reason}; {terms}"

    def to_dict(self) -> dict[str, Any]:
        """For files: what was decided, and how."""
        return {"l2": self.l2, "max_terms": self.max_terms, "reason": self.reason}


@dataclass(frozen=True)
class RegularisationSearch:
    """What cross-validation is to choose.

    Parameters
    ----------
    l2 : bool
        Whether ``l2``, and not only the number of terms.
    sizes : tuple of int, or (None,)
        Limits on terms to compare, ascending; (None,) without one.
    pick_size : bool
        Whether one of the sizes is picked; otherwise ``l2`` is to suit all of them.
    seed : int
        Which rows are in which fold.
    """

    l2: bool
    sizes: tuple[int | None, ...]
    pick_size: bool
    seed: int


def choose_regularisation(
    tasks: Sequence[Any],
    codes: NDArray[np.intp] | None,
    settings: TrainingSettings,
    search: RegularisationSearch,
    budget: Budget,
    splits: Sequence[Split] | None = None,
) -> Regularisation:
    """Cross-validate a fit over ``l2`` and the number of terms.

    Parameters
    ----------
    tasks : sequence of TrainingTask
        One for two classes or a number, else one for every class; they share one ``l2``.
    codes : array or None
        The class of every row; None for regression.
    settings : TrainingSettings
        Of the fit; where ``l2`` is not chosen, it is theirs.
    search : RegularisationSearch
        What to choose.
    budget : Budget
        The time for all folds. Where it is not enough nothing is chosen.
    splits : sequence of (rows to train on, rows to hold out), optional
        The folds; without them they are dealt by :func:`deal_rows`.
    """
    fixed = Regularisation(
        FIXED_L2 if search.l2 else settings.l2, FIXED_SIZE if search.pick_size else settings.max_terms
    )
    if not all(isinstance(task, StumpTask) for task in tasks):
        return replace(fixed, reason="fixed: cross-validation is for stumps")
    if splits is None:
        hashes = tasks[0].dictionary.matrix.content_hashes(tasks[0].risk.threads)
        n_folds = N_FOLDS if settings.selects else N_FOLDS_OF_ALL
        fold = deal_rows(hashes, codes, n_folds, search.seed, MOST_GROUPS)
        if fewest_distinct(hashes, codes, fold >= 0) < FEWEST_GROUPS:
            few = "distinct rows" if codes is None else "distinct rows of a class"
            return replace(fixed, reason=f"fixed: fewer than {FEWEST_GROUPS} {few}")
        splits = [
            (np.flatnonzero((fold >= 0) & (fold != k)), np.flatnonzero(fold == k)) for k in range(n_folds)
        ]
    grid = L2_GRID if search.l2 else (settings.l2,)
    settings = replace(
        settings, l2=FIXED_L2 if search.l2 else settings.l2, max_terms=search.sizes[-1], reselect=False,
        hot_start=settings.hot_start or FEWEST_COLUMNS, callback=None, tol=max(settings.tol, _CONVEX_TOL),
    )  # fmt: skip
    losses = []
    for k, (kept, held) in enumerate(splits):
        part = budget.part(k, len(splits))
        at = replace(settings, budget=part)
        by_task = [_held_out_losses(task, kept, held, at, grid, search.sizes) for task in tasks]
        losses.append(np.mean(by_task, axis=0))
        if part.late():
            return replace(fixed, reason="fixed: cross-validation was cut short")
    return _picked(np.array(losses), grid, search)


def _picked(losses: Array, grid: tuple[float, ...], search: RegularisationSearch) -> Regularisation:
    """The ``l2`` of the least mean loss; with sizes to pick from, that of the smallest nearly best size."""
    means = losses.mean(axis=0)
    if search.pick_size:
        column = smallest_within_error(losses[:, means.argmin(axis=0), np.arange(len(search.sizes))])
        best, size = int(np.argmin(means[:, column])), search.sizes[column]
    else:
        best, size = int(np.argmin(means.mean(axis=1))), search.sizes[-1]
    return Regularisation(grid[best], size, "chosen by cross-validation", grid, search.sizes, losses)


def smallest_within_error(losses: Array) -> int:
    """The first of the columns whose mean is at most one standard error above the least.

    ``losses``: (folds, columns). The error is that of the mean of the folds in the best column.
    """
    means = losses.mean(axis=0)
    best = int(np.argmin(means))
    error = losses[:, best].std(ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else 0.0
    return int(np.flatnonzero(means <= means[best] + error)[0])


# ---------------------------------------------------------------------------------------------- one fold


def _held_out_losses(
    task: StumpTask, kept: Indices, held: Indices, settings: TrainingSettings, grid: tuple[float, ...],
    sizes: tuple[int | None, ...],
) -> Array:  # fmt: skip
    """The mean loss on held-out rows for every ``l2`` and size. Columns are generated with ``settings``."""
    bins = np.ascontiguousarray(task.dictionary.matrix.bins[:, held])
    aside, task = HeldOutBins(bins, task.risk.over(held)), task.over(kept)
    pool, models = _models(task, settings, grid, sizes)
    return np.array([[_loss(aside, pool, weights) for weights in by_size] for by_size in models])


def _models(
    task: StumpTask, settings: TrainingSettings, grid: tuple[float, ...], sizes: tuple[int | None, ...]
) -> tuple[Any, list[list[Array]]]:
    """The columns of a fold, and for every ``l2`` the weights of every size."""
    grown, late = grow(task, settings), settings.budget.late
    pool, middle = grown.pool, grid.index(settings.l2)
    by_l2: dict[int, Any] = {}
    if settings.selects:
        problem = merge_rows(selection_problem(task, settings, pool))
        limits = [problem.pool.n_columns if size is None else size for size in sizes]
        by_l2[middle] = choose_sizes(problem, limits, grown.weights, late)
    else:
        by_l2[middle] = grown.weights
    for i in [*range(middle + 1, len(grid)), *range(middle - 1, -1, -1)]:
        before, other = by_l2[i - 1 if i > middle else i + 1], replace(settings, l2=grid[i])
        if settings.selects:
            repriced = replace(problem, prices=other.selection_rule.over(pool))
            by_l2[i] = improve_sizes(repriced, limits, before, late)
        else:
            master = Master(pool, task.risk, other.price_rule.over, before)
            master.solve(_CONVEX_TOL, _CONVEX_STEPS, certified=False, late=late)
            by_l2[i] = master.weights
    if not settings.selects:
        return pool, [[by_l2[i]] for i in range(len(grid))]
    return pool, [[choice.weights for choice in by_l2[i]] for i in range(len(grid))]


def _loss(held_out: HeldOutBins, pool: Any, weights: Array) -> float:
    """The mean loss on held-out rows.

    That of training, but for the exponential loss, which a few rows far on the wrong side decide: instead of
    it the log loss of its probabilities 1 / (1 + exp(-2 F)).
    """
    margins, risk = held_out.margins(pool, weights), held_out.risk
    if risk.loss.name == "exponential":
        margins, risk = 2.0 * margins, replace(risk, loss=get_loss("logistic"))
    return risk.evaluate(margins).value

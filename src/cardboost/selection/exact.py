"""Branch and bound over which columns are in use: the best choice, or how far from it the search is.

A node says of every charged column that it is in, out or open. A node whose bound
(:mod:`cardboost.selection.nodes`) reaches the objective of the incumbent is closed, any other is split on one
open column. Nodes are split lowest bound first, in batches of a fixed size, so that the result depends on
neither threads nor time, unless time runs out. Every node keeps the weights that prove its bound: closed
nodes, open ones and columns fixed by their reduced cost are the leaves of the proof.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.dictionary.columns import column_lines, largest_entries
from cardboost.problem.bound import EDGE_ROUNDING, Curve, Leaf
from cardboost.problem.budget import Late, never
from cardboost.selection.merge import merge_rows
from cardboost.selection.nodes import CLOSED, NodeBounds, States, cutoff_below
from cardboost.selection.polish import Polisher
from cardboost.selection.refits import FREE, IN, OUT
from cardboost.selection.selection_problem import Array, Incumbent, Selection, SelectionProblem, require

#: called with nodes, open nodes, lower bound and objective of a search
Progress = Callable[[int, int, float, float], object]

_BATCH = 32  # nodes split at a time
_MOST_COLUMNS = 512  # of a problem
_FARTHEST_MARGIN = 1e6  # of a column: beyond it, the rounding of an edge would show in the bound
_CURVED_SHARE = 0.25  # part of the gap that curvature must close for the children to use it too
_CURVED_WORK = 3  # times the work of a plain node
_RETRY = 5  # columns decided before curvature that did not help is used again
_EAGER_BATCHES = 50  # first batches that all refit their most promising node; later every eighth does


def accepts(problem: SelectionProblem) -> str | None:
    """Why exact search cannot take a problem, in a sentence; None where it can."""
    if problem.limits is not None:
        return "exact search does not take limits or costs of features; use selector='polish'."
    if problem.risk.loss.name not in ("exponential", "logistic"):
        return f"exact search takes exponential and logistic loss, not {problem.risk.loss.name}."
    if problem.pool.n_columns > _MOST_COLUMNS:
        return (
            f"exact search takes at most {_MOST_COLUMNS} columns, and there are {problem.pool.n_columns}: "
            "use fewer of them, or 'auto', which bounds so many by their convex relaxation alone."
        )
    if not np.isfinite(problem.prices.max_weight).all():
        return "exact search needs a finite max_weight for every column."
    reach = largest_entries(column_lines(problem.pool.dense())) * problem.prices.max_weight
    if (reach > _FARTHEST_MARGIN).any():
        return (
            "exact search needs boxes that keep a column's entries times its weight below "
            f"{_FARTHEST_MARGIN:g}."
        )
    return None


def exact_search(
    problem: SelectionProblem, incumbent: Incumbent, *, max_nodes: int | None = None,
    most_work: float | None = None, late: Late = never, most_leaves: int = 15_000,
    progress: Progress | None = None, proof_late: Late = never, begin_at: Sequence[Leaf] = (),
) -> Selection:  # fmt: skip
    """Search until the incumbent is proved, or nodes or time run out.

    Parameters
    ----------
    problem : SelectionProblem
        One that :func:`accepts` does not refuse.
    incumbent : Incumbent
        A choice to improve on.
    max_nodes : int, optional
        Nodes at which the search ends.
    most_work : float, optional
        The same in nanoseconds of a single thread, by :func:`node_work`.
    late, proof_late : callable
        Whether to end the search, and whether to give up proving its leaves: the proof is then the root, or
        the leaves of ``begin_at``.
    most_leaves : int
        The most leaves of the proof.
    progress : callable, optional
        Called with nodes, open nodes, lower bound and objective after every batch.
    begin_at : sequence of Leaf
        Leaves of an earlier search of the same problem, from which this one goes on.

    Returns
    -------
    Selection
        Its incumbent is no worse than the first.

    Raises
    ------
    ValueError
        Where :func:`accepts` refuses the problem.
    """
    require(accepts(problem))
    search = _TreeSearch(merge_rows(problem), incumbent, late)
    tree = search.tree
    search.begin(begin_at)
    limit = np.inf if max_nodes is None else max_nodes + tree.size - 1
    if most_work is not None:
        rows, columns = search.problem.pool.dense().shape
        limit = min(limit, max(1.0, most_work // node_work(rows, columns, search.bounds.curved)))
    status = "optimal"
    while len(search.live):
        if tree.size + 2 > limit or late():
            status = "node limit" if tree.size + 2 > limit else "time limit"
            break
        search.advance(int(min(_BATCH, (limit - tree.size) // 2)))
        if progress is not None:
            progress(tree.size, len(search.live), search.lower_bound, search.incumbent.objective)
    search.bounds.late = proof_late
    leaves, complete = search.leaves(most_leaves)
    bound = search.lower_bound
    if leaves is None:  # an earlier search has proved its own; the root is one leaf, for which there is time
        leaves = tuple(begin_at) or search.leaves(1)[0]
        assert leaves is not None
        bound, status = min(leaf.bound for leaf in leaves), "time limit"
    elif complete:
        bound = min(search.incumbent.objective, *(leaf.bound for leaf in leaves))
    return Selection(
        search.problem, search.incumbent, bound, status, leaves, search.bounds.centre, nodes=tree.size,
        open_nodes=len(search.live),
    )  # fmt: skip


def node_work(rows: int, columns: int, curved: bool) -> float:
    """About how many nanoseconds a node takes a single thread (benchmarks/guarantees.py)."""
    work = 9.0 * columns**3 + 12.0 * rows * columns
    return max(1.0, work / (1 if curved else _CURVED_WORK))


class _Tree:
    """All nodes so far, as growing arrays; entries are never moved."""

    def __init__(self, n: int) -> None:
        self.size = 0
        self.state = np.zeros((64, n), dtype=np.int8)
        self.fixed = np.zeros((64, n), dtype=np.int8)  # columns that the bound decides
        self.weights, self.centre, self.curve = np.zeros((3, 64, n), dtype=np.float32)
        self.bound, self.tau = np.zeros((2, 64))
        self.worth = np.zeros(64, dtype=np.float32)  # which part of the gap curvature closed
        self.least = np.zeros(64, dtype=np.int32)  # open columns at which curvature was last used
        self.branch = np.zeros(64, dtype=np.int32)  # the column to split on, -1: all are decided
        self.created = np.zeros(64, dtype=np.int64)  # in which batch
        self.split = np.zeros(64, dtype=np.int64)  # in which batch, -1: not

    def add(self, **rows: NDArray[Any]) -> NDArray[np.intp]:
        """Append nodes that are not split; returns their numbers."""
        count = len(rows["state"])
        while self.size + count > len(self.bound):
            for name, array in vars(self).items():
                if isinstance(array, np.ndarray):
                    setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        nodes = np.arange(self.size, self.size + count)
        self.split[nodes] = -1
        for name, values in rows.items():
            getattr(self, name)[nodes] = values
        self.size += count
        return nodes

    def after(self, batches: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which nodes there were after so many batches, and which of them had been split."""
        created, split = self.created[: self.size], self.split[: self.size]
        return created <= batches, (created <= batches) & (split >= 0) & (split <= batches)

    def decided(self, nodes: NDArray[np.intp]) -> States:
        """States of nodes, with the columns that their bounds fix."""
        state, fixed = self.state[nodes], self.fixed[nodes]
        return np.where((state == FREE) & (fixed != FREE), fixed, state)


class _TreeSearch:
    """The tree, the incumbent and the nodes that are open."""

    def __init__(self, merged: SelectionProblem, incumbent: Incumbent, late: Late) -> None:
        self.problem, self.incumbent = merged, incumbent
        self.bounds = NodeBounds(merged, late)
        self.polisher = Polisher(merged, late)
        self.tree = _Tree(merged.pool.n_columns)
        self.live = np.zeros(0, dtype=np.intp)  # nodes that are open
        self.batches = 0
        self._least_closed = np.inf  # the least bound that a node was closed with
        self._refitted: set[bytes] = set()

    @property
    def cutoff(self) -> float:
        """The bound from which on a node is closed."""
        return cutoff_below(self.incumbent.objective)

    @property
    def lower_bound(self) -> float:
        """The least bound of a node that is open; without any, of those that were closed."""
        closed = min(self.incumbent.objective, self._least_closed)
        return float(self.tree.bound[self.live].min(initial=closed))

    def begin(self, leaves: Sequence[Leaf] = ()) -> None:
        """Bound the root, and open it or the ``leaves`` of an earlier search."""
        n = self.problem.pool.n_columns
        state, start = np.zeros((1, n), dtype=np.int8), self.incumbent.weights[None, :].copy()
        root = self.bounds.solve(state, start, np.zeros(1), self.incumbent.objective)
        if root.bound[0] < self.cutoff:
            self.bounds.use_curvature(root.weights[0], self.incumbent.objective)
        if not leaves or not self._add_leaves(leaves):
            self._add(state, root.weights, root.tau, np.zeros((1, n)), np.full(1, n))

    def _add_leaves(self, leaves: Sequence[Leaf]) -> bool:
        n, count = self.problem.pool.n_columns, len(leaves)
        state = np.zeros((count, n), dtype=np.int8)
        for node, leaf in zip(state, leaves, strict=True):
            node[list(leaf.forced_in)], node[list(leaf.forced_out)] = IN, OUT
        start = np.stack([leaf.weights[:n] for leaf in leaves])
        curve = np.stack([np.zeros(n) if leaf.curve is None else leaf.curve.aside for leaf in leaves])
        return self._add(state, start, np.zeros(count), curve, np.full(count, n))

    def _add(self, state: States, start: Array, tau: Array, curve: Array, least: NDArray[np.int_]) -> bool:
        """Bound new nodes and keep those open that the bound does not close; False if time ran out.

        Nodes with no more open columns than ``least`` may use curvature.
        """
        n_open = np.count_nonzero((state == FREE) & self.problem.prices.charged, axis=1)
        curved = n_open <= least
        nodes = self.bounds.solve(state, start, tau, self.incumbent.objective, curve, curved)
        bound = nodes.bound
        if len(bound) < len(state):  # no time: the split is undone
            return False
        bound[self._too_many_in(state)] = self.incumbent.objective  # there is no choice in such a node
        gap = np.maximum(self.cutoff - nodes.plain, 1e-300)
        numbers = self.tree.add(
            state=state, weights=nodes.weights, bound=bound, tau=nodes.tau, fixed=nodes.fixed,
            branch=nodes.branch, centre=nodes.centre, curve=nodes.curve,
            worth=np.clip((bound - nodes.plain) / gap, 0.0, 1.0),
            least=np.where(curved, n_open, least + _RETRY), created=np.full(len(state), self.batches),
        )  # fmt: skip
        self._improve(state, nodes.weights, nodes.value, nodes.branch < 0)
        live = bound < self.cutoff
        # all columns decided: the refit of such a node is its optimum, and the incumbent now is no worse
        decided = live & (nodes.branch < 0)
        self._least_closed = float(min(self._least_closed, bound[~live | decided].min(initial=np.inf)))
        self.live = np.concatenate([self.live, numbers[live & ~decided]])
        self.live = self.live[self.tree.bound[self.live] < self.cutoff]
        return True

    def _improve(self, state: States, weights: Array, value: Array, decided: NDArray[np.bool_]) -> None:
        """Refit what some nodes suggest: those that are decided, and the most promising one of a batch."""
        best = self.incumbent.objective
        charged, k = self.problem.prices.charged, self.problem.max_terms
        order = np.argsort(value, kind="stable")
        nodes = [int(i) for i in order if decided[i] and value[i] < best]
        if self.batches < _EAGER_BATCHES or self.batches % 8 == 0:
            nodes += [int(i) for i in order[:1] if not decided[i]]
        for i in nodes:
            w = np.where(charged, weights[i], 0.0)
            likely = np.flatnonzero((state[i] == IN) & charged | (w > 0.3 * w.max(initial=0.0)) & (w > 0))
            if k is not None and len(likely) > k:
                rank = np.where(state[i, likely] == IN, np.inf, w[likely])
                likely = np.sort(likely[np.argsort(-rank, kind="stable")[:k]])
            key = likely.tobytes()
            if key in self._refitted:
                continue
            self._refitted.add(key)
            refit = self.polisher.refit(likely.tolist(), weights[i])
            if refit.objective < self.incumbent.objective - 1e-12 * max(1.0, abs(best)):
                self.incumbent = self.polisher.improve(refit)

    def advance(self, count: int) -> None:
        """Split the open nodes with the lowest bounds."""
        tree, live = self.tree, self.live
        order = np.lexsort((live, tree.bound[live]))
        chosen, self.live = live[order[:count]], live[order[count:]]
        self.batches += 1
        tree.split[chosen] = self.batches
        state, column = tree.decided(chosen), tree.branch[chosen]
        inside, outside = state.copy(), state.copy()
        # a bound may fix the column to branch on: then there is one child
        both = np.flatnonzero(state[np.arange(len(chosen)), column] == FREE)
        inside[both, column[both]], outside[both, column[both]] = IN, OUT
        parents = np.concatenate([chosen, chosen[both]])
        in_time = self._add(
            np.concatenate([inside, outside[both]]),
            tree.weights[parents].astype(np.float64),
            tree.tau[parents],
            tree.curve[parents].astype(np.float64),
            tree.least[parents] - np.where(tree.worth[parents] >= _CURVED_SHARE, 0, _RETRY),
        )
        if not in_time:
            tree.split[chosen] = -1
            self.live = live

    def _too_many_in(self, state: States) -> NDArray[np.bool_]:
        """Where more columns are in than ``max_terms`` allows."""
        k = self.problem.max_terms
        inside = np.count_nonzero((state == IN) & self.problem.prices.charged, axis=1)
        return np.asarray(inside > (inside if k is None else k))

    # ------------------------------------------------------------------------------------ the proof

    def leaves(self, most: int) -> tuple[tuple[Leaf, ...] | None, bool]:
        """The leaves after as many batches as leave no more than ``most``, and whether these are all batches.

        None where there is no time to prove all of them.
        """
        tree = self.tree
        batches = bisect_right(range(1, self.batches + 1), most, key=self._count_leaves)
        present, inner = tree.after(batches)
        outer = np.flatnonzero(present & ~inner & ~self._too_many_in(tree.state[: tree.size]))
        states, nodes, expected = [tree.state[outer]], [outer], [tree.bound[outer]]
        for i in np.flatnonzero(inner & (tree.fixed[: tree.size] != FREE).any(axis=1)):
            state = self._opposite_of_fixed(int(i))
            states.append(state)
            nodes.append(np.full(len(state), i))
            expected.append(np.full(len(state), np.inf))
        which = np.concatenate(nodes)
        weights, centre, curve = (
            array[which].astype(np.float64) for array in (tree.weights, tree.centre, tree.curve)
        )
        leaves = self._proven(np.concatenate(states), weights, centre, curve, np.concatenate(expected))
        return leaves, batches == self.batches

    def _count_leaves(self, batches: int) -> int:
        present, inner = self.tree.after(batches)
        fixed = np.count_nonzero(self.tree.fixed[: self.tree.size][inner] != FREE)
        return int(np.count_nonzero(present & ~inner)) + int(fixed)

    def _opposite_of_fixed(self, node: int) -> States:
        """One leaf for every column that the node's bound fixes: the other way, earlier ones as fixed.

        Where a limit on terms leaves no choice with it, there is none.
        """
        state, fixed = self.tree.state[node].copy(), self.tree.fixed[node]
        leaves = []
        for j in np.flatnonzero(fixed != FREE):
            leaves.append(state.copy())
            leaves[-1][j] = OUT if fixed[j] == IN else IN
            state[j] = fixed[j]
        states = np.array(leaves, dtype=np.int8)
        return states[~self._too_many_in(states)]

    def _rounding(self) -> float:
        """By how much the rounding of edges may lower a bound: that of every column that a choice may use,
        times its box. The row weights of a bound add up to no more than the loss without columns."""
        problem, p = self.problem, self.problem.prices
        reach = problem.pool.sizes * p.max_weight
        most = float(np.sum(np.sort(reach[p.charged])[::-1][: problem.max_terms]) + np.sum(reach[~p.charged]))
        return EDGE_ROUNDING * math.sqrt(problem.risk.weights.n_rows) * most

    def _proven(
        self, state: States, weights: Array, centre: Array, curve: Array, expected: Array
    ) -> tuple[Leaf, ...] | None:
        """Leaves with the bounds that their weights prove as kept; those that fall short are solved anew.

        None where there is no time for all of them.
        """
        tau, objective = np.zeros(len(state)), self.incumbent.objective
        curve[(state == OUT) & (weights == 0.0) & (centre == 0.0)] = 0.0  # these columns stay where they are
        curved = np.asarray(curve.any(axis=1))
        bound, weights, *_ = self.bounds.solve(state, weights, tau, objective, curve, curved, steps=0)
        if len(bound) < len(state):
            return None
        expected = np.minimum(expected, self.cutoff)
        short = np.flatnonzero(bound < expected - CLOSED * np.maximum(1.0, expected))
        if len(short) and not self.bounds.late():
            again = self.bounds.solve(
                state[short], weights[short], tau[short], objective, curve[short], curved[short]
            )
            short = short[: len(again.bound)]  # those that there was time for
            better = again.bound > bound[short]
            for old, new in ((weights, again.weights), (centre, again.centre), (curve, again.curve)):
                old[short[better]] = new[better]
            bound[short[better]] = again.bound[better]
        bound = np.maximum(0.0, bound - self._rounding())
        charged = self.problem.prices.charged
        return tuple(
            Leaf(
                w, 1.0 if b > 0.0 else 0.0, float(b),
                tuple(np.flatnonzero((s == IN) & charged).tolist()),
                tuple(np.flatnonzero((s == OUT) & charged).tolist()),
                Curve(c, d) if d.any() else None,
            )
            for s, w, b, c, d in zip(state, weights, bound, centre, curve, strict=True)
        )  # fmt: skip

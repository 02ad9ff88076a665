"""Branch and bound over which columns are in use: the best choice, or how far from it the search is.

A node says of every charged column that it is in, out or open. Its bound is that of the convex relaxation
(kernels/nodes.cpp); a node whose bound reaches the best objective known is closed, any other is split on one
open column. Nodes are split lowest bound first, in batches of a fixed size, so that the result depends on
neither threads nor time, unless time runs out. Every node keeps the weights that prove its bound: closed
nodes, open ones and columns fixed by their reduced cost are the leaves of the proof.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.dictionary.columns import column_lines, largest_entries
from cardboost.problem.bound import EDGE_ROUNDING, Curve, Leaf
from cardboost.selection.curvature import ColumnRoles, column_roles, margin_limits
from cardboost.selection.merge import merge_rows
from cardboost.selection.polish import Incumbent, Polisher
from cardboost.selection.refits import FREE, IN, OUT, kernel_columns
from cardboost.selection.selection_problem import SelectionProblem

Array = NDArray[np.float64]
#: told of nodes, open nodes, lower bound and objective of a search
Progress = Callable[[int, int, float, float], object]

#: a node is closed when its bound is within this share of the best objective
CLOSED = 1e-9
_BATCH = 32  # nodes split at a time
_STEPS = 60  # Newton steps per node at most
_MOST_COLUMNS = 512
_FARTHEST = 1e6  # margin of a column: beyond it, the rounding of an edge would show in the bound
_CURVED = 0.25  # part of the gap that curvature must close for the children to use it too
_CURVED_WORK = 3  # times the work of a plain node
_MOST_CURVED = 4e7  # multiplications of a Hessian, beyond which plain nodes come further in the time there is
_HEAVY = 4e8  # multiplications of a Hessian, beyond which a node is solved a few steps at a time
_FEW_STEPS = 4
_RETRY = 5  # columns decided before it is tried again
_WAIT = 0.02  # seconds between two looks at the clock, about
_FIRST_CHUNK = 4


@dataclass(frozen=True, eq=False)
class ExactResult:
    """The best choice, a bound under every choice, and the leaves that prove it.

    ``leaves`` are those of the whole search, or of its first nodes where there would be more than asked for;
    then ``lower_bound``, that of the whole search, is more than they prove.
    """

    incumbent: Incumbent
    lower_bound: float
    root_bound: float
    leaves: tuple[Leaf, ...]
    centre: Array | None  # weights from which the caps follow that leaves with a curve rely on
    nodes: int
    open_nodes: int
    status: str  # "optimal", "node limit" or "time limit"


def accepts(problem: SelectionProblem) -> str | None:
    """Why exact search cannot take a problem, in a sentence, or None."""
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
    if (reach > _FARTHEST).any():
        return f"exact search needs boxes that keep a column's entries times its weight below {_FARTHEST:g}."
    return None


def exact_search(
    problem: SelectionProblem,
    incumbent: Incumbent,
    *,
    max_nodes: int | None = None,
    most_work: float | None = None,
    late: Callable[[], bool] = lambda: False,
    most_leaves: int = 15_000,
    progress: Progress | None = None,
    proof_late: Callable[[], bool] = lambda: False,
    begin_at: Sequence[Leaf] = (),
) -> ExactResult:
    """Search until the incumbent is proved, or nodes or time run out.

    ``most_work`` limits nodes times :func:`node_work`.
    ``progress(nodes, open, bound, objective)`` is called after every batch. ``proof_late``: whether there is
    no time left to prove the leaves of the search; the root alone is the proof then. ``begin_at``: leaves of
    an earlier search of the same problem, which this one goes on from.
    """
    reason = accepts(problem)
    if reason is not None:
        raise ValueError(reason)
    search = _Search(merge_rows(problem), incumbent, late)
    search.begin(begin_at)
    limit = np.inf if max_nodes is None else max_nodes + search.tree.size - 1
    if most_work is not None:
        rows, columns = search.problem.pool.dense().shape
        limit = min(limit, max(1.0, most_work // node_work(rows, columns, search.bends)))
    status = "optimal"
    while len(search.open):
        if search.tree.size + 2 > limit:
            status = "node limit"
            break
        if late():
            status = "time limit"
            break
        search.advance(int(min(_BATCH, (limit - search.tree.size) // 2)))
        if progress is not None:
            progress(search.tree.size, len(search.open), search.lower_bound, search.incumbent.objective)
    search.late = proof_late
    leaves, all_of_them = search.leaves(most_leaves)
    bound = search.lower_bound
    if search.cut_short:
        bound, status = leaves[0].bound, "time limit"
    elif all_of_them:
        bound = min(search.incumbent.objective, *(leaf.bound for leaf in leaves))
    root = float(search.tree.bound[0])
    return ExactResult(
        search.incumbent, bound, root, leaves, search.root, search.tree.size, len(search.open), status
    )  # fmt: skip


def first_seconds(problem: SelectionProblem) -> float:
    """About how long the first nodes of a search take, at least: less time is not worth beginning with."""
    n = problem.pool.n_columns
    return 3 * _FEW_STEPS * (6e-11 * problem.pool.dense().size * n + 1.3e-9 * n**3)


def node_work(rows: int, columns: int, curved: bool) -> float:
    """About how many nanoseconds a node takes a single thread (benchmarks/guarantees.py)."""
    work = 9.0 * columns**3 + 12.0 * rows * columns
    return max(1.0, work / (1 if curved else _CURVED_WORK))


class _Tree:
    """All nodes made so far, as growing arrays; rows are never moved."""

    def __init__(self, n: int) -> None:
        self.size = 0
        self.state = np.zeros((64, n), dtype=np.int8)
        self.fixed = np.zeros((64, n), dtype=np.int8)
        self.weights = np.zeros((64, n), dtype=np.float32)
        self.centre = np.zeros((64, n), dtype=np.float32)
        self.curve = np.zeros((64, n), dtype=np.float32)
        self.bound, self.tau = np.zeros(64), np.zeros(64)
        self.worth = np.zeros(64, dtype=np.float32)  # which part of the gap curvature closed
        self.least = np.zeros(64, dtype=np.int32)  # open columns at which curvature was last used
        self.branch = np.full(64, -1, dtype=np.int32)
        self.made_at = np.zeros(64, dtype=np.int64)  # in which batch
        self.split_at = np.full(64, -1, dtype=np.int64)  # in which batch, -1: not

    def add(self, **rows: NDArray[Any]) -> NDArray[np.intp]:
        count = len(rows["state"])
        while self.size + count > len(self.bound):
            for name, array in vars(self).items():
                if isinstance(array, np.ndarray):
                    setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        own = np.arange(self.size, self.size + count)
        self.branch[own] = self.split_at[own] = -1
        for name, values in rows.items():
            getattr(self, name)[own] = values
        self.size += count
        return own


class _Search:
    """The tree, the best choice so far and the nodes that are open."""

    def __init__(self, merged: SelectionProblem, incumbent: Incumbent, late: Callable[[], bool]) -> None:
        self.problem, self.incumbent, self.late = merged, incumbent, late
        self._pace = _FIRST_CHUNK  # nodes that take about as long as one may wait to look at the clock
        self.polisher = Polisher(merged, late)
        self.limits: tuple[Array, Array] | None = None  # of margins in a better choice
        self.roles: ColumnRoles | None = None
        self.root: Array | None = None
        self._columns = kernel_columns(merged)
        self.tree = _Tree(merged.pool.n_columns)
        self.open = np.zeros(0, dtype=np.intp)
        self.batches = 0
        self.cut_short = False  # whether there was no time to prove the leaves
        self._closed_at = np.inf  # the least bound that a node was closed with
        self._tried: set[bytes] = set()

    @property
    def bends(self) -> bool:
        """Whether bounds use curvature."""
        return self.limits is not None

    @property
    def cutoff(self) -> float:
        best = self.incumbent.objective
        return best - CLOSED * max(1.0, abs(best))

    @property
    def lower_bound(self) -> float:
        """The least bound of a node that is still open; without any, what closing a node takes."""
        closed = min(self.incumbent.objective, self._closed_at)
        return float(self.tree.bound[self.open].min(initial=closed))

    def _bounds(
        self,
        state: NDArray[np.int8],
        start: Array,
        tau: Array,
        curve: Array | None = None,
        curved: NDArray[np.bool_] | None = None,
        steps: int = _STEPS,
    ) -> list[Any]:
        """What the kernel finds for these nodes, or for the first of them when time runs out."""
        parts, done = [], 0
        floors, caps = self.limits or (None, None)
        role, twin = self.roles or (None, None)
        while done < len(state) and not (done and self.late()):
            own = slice(done, done + self._pace)
            started = time.perf_counter()
            options = {
                "cutoff": self.cutoff, "threads": self.problem.risk.threads, "floors": floors, "caps": caps,
                "role": role, "twin": twin, "objective": self.incumbent.objective,
                "curve": None if curve is None else curve[own],
                "curved": None if curved is None else curved[own].astype(np.uint8),
            }  # fmt: skip
            parts.append(self._solve(state[own], start[own], tau[own], steps, options))
            # how nodes are handed over in parts makes no difference to any of them
            seconds = (time.perf_counter() - started) / len(parts[-1][0])
            self._pace = int(np.clip(_WAIT / max(seconds, 1e-9), 1, 4096))
            done += len(parts[-1][0])
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _solve(
        self, state: NDArray[np.int8], start: Array, tau: Array, steps: int, options: dict[str, Any]
    ) -> Any:
        """What the kernel finds; where its steps take long, a few at a time with a look at the clock."""
        heavy = self.problem.pool.dense().size * self.problem.pool.n_columns > _HEAVY
        found, done, before = None, 0, None
        while found is None or done < steps:
            few = min(_FEW_STEPS, steps - done) if heavy else steps
            found = _kernels.bound_nodes(
                **self._columns, state=state, start=start, tau=tau, max_steps=few, **options
            )
            done += few
            bound, start, tau = found[:3]
            settled = before is not None and (bound <= before + CLOSED * np.abs(before)).all()
            if settled or (bound >= options["cutoff"]).all() or self.late():
                break
            before = bound
        return found

    def begin(self, leaves: Sequence[Leaf] = ()) -> None:
        """Bound the root, and open it or the ``leaves`` of an earlier search."""
        n = self.problem.pool.n_columns
        state, start, tau = (
            np.zeros((1, n), dtype=np.int8),
            self.incumbent.weights[None, :].copy(),
            np.zeros(1),
        )
        bound, start, tau, *_ = self._bounds(state, start, tau)
        entries = self.problem.pool.dense().size
        if bound[0] < self.cutoff and entries * n <= _MOST_CURVED and not self.late():
            centre = start[0].astype(np.float32).astype(np.float64)
            roles = column_roles(self.problem)
            self.limits = margin_limits(self.problem, roles, centre, self.incumbent.objective)
            if self.limits is not None:
                self.roles, self.root = roles, centre
        if not leaves or not self._add_leaves(leaves):
            self._add(state, start, tau, np.zeros((1, n)), np.full(1, n))

    def _add_leaves(self, leaves: Sequence[Leaf]) -> bool:
        n = self.problem.pool.n_columns
        state = np.zeros((len(leaves), n), dtype=np.int8)
        for line, leaf in zip(state, leaves, strict=True):
            line[list(leaf.forced_in)], line[list(leaf.forced_out)] = IN, OUT
        start = np.stack([leaf.weights[:n] for leaf in leaves])
        curve = np.stack([np.zeros(n) if leaf.curve is None else leaf.curve.aside for leaf in leaves])
        return self._add(state, start, np.zeros(len(leaves)), curve, np.full(len(leaves), n))

    def _add(
        self, state: NDArray[np.int8], start: Array, tau: Array, curve: Array, least: NDArray[np.int_]
    ) -> bool:
        """Bound new nodes and keep those open that the bound does not close; False if time ran out.

        Nodes with no more open columns than ``least`` may use curvature.
        """
        n_open = np.count_nonzero((state == FREE) & self.problem.prices.charged, axis=1)
        curved = n_open <= least
        bound, weights, tau, value, fixed, branch, centre, curve, plain = self._bounds(
            state, start, tau, curve if self.bends else None, curved if self.bends else None
        )
        if len(bound) < len(state):  # no time: the split is undone
            return False
        bound[self._crowded(state)] = self.incumbent.objective  # there is no choice in such a node
        own = self.tree.add(
            state=state, weights=weights, bound=bound, tau=tau, fixed=fixed, branch=branch, centre=centre,
            curve=curve, worth=np.clip((bound - plain) / np.maximum(self.cutoff - plain, 1e-300), 0.0, 1.0),
            least=np.where(curved, n_open, least + _RETRY), made_at=np.full(len(state), self.batches),
        )  # fmt: skip
        self._improve(state, weights, value, branch < 0)
        live = bound < self.cutoff
        # all columns decided: the refit of such a node is its optimum, and the incumbent now is no worse
        decided = live & (branch < 0)
        self._closed_at = float(min(self._closed_at, bound[~live | decided].min(initial=np.inf)))
        self.open = np.concatenate([self.open, own[live & ~decided]])
        self.open = self.open[self.tree.bound[self.open] < self.cutoff]
        return True

    def _improve(
        self, state: NDArray[np.int8], weights: Array, value: Array, decided: NDArray[np.bool_]
    ) -> None:
        """Refit what some nodes suggest: those that are decided, and the most promising one of a batch."""
        best = self.incumbent.objective
        charged, k = self.problem.prices.charged, self.problem.max_terms
        order = np.argsort(value, kind="stable")
        chosen = [int(i) for i in order if decided[i] and value[i] < best]
        if self.batches < 50 or self.batches % 8 == 0:
            chosen += [int(i) for i in order[:1] if not decided[i]]
        for i in chosen:
            w = np.where(charged, weights[i], 0.0)
            likely = np.flatnonzero((state[i] == IN) & charged | (w > 0.3 * w.max(initial=0.0)) & (w > 0))
            if k is not None and len(likely) > k:
                rank = np.where(state[i, likely] == IN, np.inf, w[likely])
                likely = np.sort(likely[np.argsort(-rank, kind="stable")[:k]])
            key = likely.tobytes()
            if key in self._tried:
                continue
            self._tried.add(key)
            found = self.polisher.refit(likely.tolist(), weights[i])
            if found.objective < self.incumbent.objective - 1e-12 * max(1.0, abs(best)):
                self.incumbent = self.polisher.improve(found)

    def advance(self, count: int) -> None:
        """Split the open nodes with the lowest bounds."""
        tree, live = self.tree, self.open
        order = np.lexsort((live, tree.bound[live]))
        chosen, self.open = live[order[:count]], live[order[count:]]
        self.batches += 1
        tree.split_at[chosen] = self.batches
        state, column = self._decided(chosen), tree.branch[chosen]
        inside, outside = state.copy(), state.copy()
        # a bound may fix the column to branch on: then there is one child
        both = np.flatnonzero(state[np.arange(len(chosen)), column] == FREE)
        inside[both, column[both]], outside[both, column[both]] = IN, OUT
        parents = np.concatenate([chosen, chosen[both]])
        done = self._add(
            np.concatenate([inside, outside[both]]),
            tree.weights[parents].astype(np.float64),
            tree.tau[parents],
            tree.curve[parents].astype(np.float64),
            tree.least[parents] - np.where(tree.worth[parents] >= _CURVED, 0, _RETRY),
        )
        if not done:
            tree.split_at[chosen] = -1
            self.open = live

    def _crowded(self, state: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Where more columns are in than may be."""
        k = self.problem.max_terms
        if k is None:
            return np.zeros(len(state), dtype=bool)
        inside = (state == IN) & self.problem.prices.charged
        return np.asarray(np.count_nonzero(inside, axis=1) > k)

    def _decided(self, nodes: NDArray[np.intp]) -> NDArray[np.int8]:
        """Their states, with the columns that their bounds fix."""
        state, fixed = self.tree.state[nodes], self.tree.fixed[nodes]
        return np.where((state == FREE) & (fixed != FREE), fixed, state)

    # --- the proof ---

    def leaves(self, most: int) -> tuple[tuple[Leaf, ...], bool]:
        """Those of the search after as many batches as leave no more than ``most``, and if that is all."""
        low, high = 0, self.batches
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._count(middle) <= most else (low, middle - 1)
        tree = self.tree
        shown, inner = self._shown(low)
        outer = np.flatnonzero(shown & ~inner & ~self._crowded(tree.state[: tree.size]))
        states, points, expected = [tree.state[outer]], [outer], [tree.bound[outer]]
        for i in np.flatnonzero(inner & (tree.fixed[: tree.size] != FREE).any(axis=1)):
            own = self._fixings(int(i))
            states.append(own)
            points.append(np.full(len(own), i))
            expected.append(np.full(len(own), np.inf))
        at = np.concatenate(points)
        weights, centre, curve = (
            own[at].astype(np.float64) for own in (tree.weights, tree.centre, tree.curve)
        )
        found = self._proven(np.concatenate(states), weights, centre, curve, np.concatenate(expected))
        if found is None:  # the root is one leaf, for which there is always time
            self.cut_short = True
            return self.leaves(1)
        return found, low == self.batches

    def _shown(self, batches: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which nodes there were after so many batches, and which of them had been split."""
        made, split = self.tree.made_at[: self.tree.size], self.tree.split_at[: self.tree.size]
        return made <= batches, (made <= batches) & (split >= 0) & (split <= batches)

    def _count(self, batches: int) -> int:
        shown, inner = self._shown(batches)
        fixed = np.count_nonzero(self.tree.fixed[: self.tree.size][inner] != FREE)
        return int(np.count_nonzero(shown & ~inner)) + int(fixed)

    def _fixings(self, node: int) -> NDArray[np.int8]:
        """One leaf for every column that the node's bound fixes: the other way, earlier ones as fixed.

        Where a size limit leaves no choice with it, there is none.
        """
        state, fixed = self.tree.state[node].copy(), self.tree.fixed[node]
        charged, k = self.problem.prices.charged, self.problem.max_terms
        found = []
        for j in np.flatnonzero(fixed != FREE):
            other = state.copy()
            other[j] = OUT if fixed[j] == IN else IN
            if k is None or np.count_nonzero((other == IN) & charged) <= k:
                found.append(other)
            state[j] = fixed[j]
        return np.array(found, dtype=np.int8).reshape(-1, len(state))

    def _rounding(self) -> float:
        """By how much the rounding of edges may lower a bound: that of every column that a choice may use,
        times its box. The row weights of a bound add up to no more than the loss without columns."""
        problem, p = self.problem, self.problem.prices
        reach = problem.pool.sizes * p.max_weight
        most = float(np.sum(np.sort(reach[p.charged])[::-1][: problem.max_terms]) + np.sum(reach[~p.charged]))
        return EDGE_ROUNDING * math.sqrt(problem.risk.weights.n_rows) * most

    def _proven(
        self, state: NDArray[np.int8], weights: Array, centre: Array, curve: Array, expected: Array
    ) -> tuple[Leaf, ...] | None:
        """Leaves with the bounds that their weights prove as kept; those that fall short are solved anew.

        None where there is no time for all of them.
        """
        none = np.zeros(len(state))
        curve[(state == OUT) & (weights == 0.0) & (centre == 0.0)] = 0.0  # these columns stay where they are
        curved = np.asarray(curve.any(axis=1))
        if self.limits is None:
            found = self._bounds(state, weights, none, steps=0)
        else:
            found = self._bounds(state, weights, none, curve, curved, steps=0)
        bound, weights = found[:2]
        if len(bound) < len(state):
            return None
        wanted = np.minimum(expected, self.cutoff)
        short = np.flatnonzero(bound < wanted - CLOSED * np.maximum(1.0, wanted))
        if len(short) and not self.late():
            again, exact, *_, exact_centre, exact_curve, _ = self._bounds(
                state[short],
                weights[short],
                none[short],
                *((curve[short], curved[short]) if self.bends else (None, None)),
            )
            short = short[: len(again)]  # those that there was time for
            better = again > bound[short]
            for old, new in ((weights, exact), (centre, exact_centre), (curve, exact_curve)):
                old[short[better]] = new[better]
            bound[short[better]] = again[better]
        bound = np.maximum(0.0, bound - self._rounding())
        charged = self.problem.prices.charged
        return tuple(
            Leaf(
                w,
                1.0 if b > 0.0 else 0.0,
                float(b),
                tuple(np.flatnonzero((s == IN) & charged).tolist()),
                tuple(np.flatnonzero((s == OUT) & charged).tolist()),
                Curve(c, d) if d.any() else None,
            )
            for s, w, b, c, d in zip(state, weights, bound, centre, curve, strict=True)
        )

"""Lower bounds of the nodes of branch and bound: the convex relaxation, and the curvature it leaves unused.

A node says of every charged column that it is in, out or open; kernels/nodes.cpp bounds it by the relaxation.
Its bound can use how far margins can be from a point in a choice better than the incumbent: at weights w with
row weights u the loss is its tangent plus sum s_i b_i(a_i (v - w)), where b_i(x) is
loss(F_i + x) - loss(F_i) - loss'(F_i) x, and the tangent with the regularisation is at least the bound D(u).
So every better v has sum s_i b_i below the gap. Where margins stay between floors and caps, b_i(x) is at
least k_i x^2 / 2 with the curvature k_i that is left there, which makes that set an ellipsoid around w; its
width in the direction of a row narrows the row's floor and cap, and narrower ones leave more curvature. The
first floors and caps are those of the box.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.data.threads import blas_threads
from cardboost.problem.bound import gain_terms
from cardboost.problem.budget import Late, clock
from cardboost.selection.merge import equal_columns
from cardboost.selection.refits import kernel_columns
from cardboost.selection.selection_problem import Array, SelectionProblem

States = NDArray[np.int8]

ZERO, PLAIN, ASIDE = 0, 1, 2  # what curvature may do with a column (kernels/nodes.h)
#: a node is closed when its bound is within this share of the best objective
CLOSED = 1e-9

_NARROWINGS = 4  # rounds of floors and caps
_ROOM = 1e-9  # for rounding
_WIDER = 1e-6  # the same, for widths that come from an inverse
_PIVOT = 1e-8  # share of a column's curvature that no others make up, at least
_STEPS = 60  # Newton steps per node at most
_MOST_CURVED = 4e7  # multiplications of a Hessian, beyond which plain nodes come further in the time there is
_HEAVY = 4e8  # multiplications of a Hessian, beyond which a node is solved a few steps at a time
_FEW_STEPS = 4  # of such a node between two looks at the clock
_CALL_SECONDS = 0.02  # between two looks at the clock, about
_FIRST_CALL = 4  # nodes of the first call, before it is known how long one takes


def cutoff_below(objective: float) -> float:
    """The bound from which on a node holds nothing better than this objective."""
    return objective - CLOSED * max(1.0, abs(objective))


def first_seconds(problem: SelectionProblem) -> float:
    """About how long the first nodes of a search take, at least: less time is not worth beginning with."""
    n = problem.pool.n_columns
    return 3 * _FEW_STEPS * (6e-11 * problem.pool.dense().size * n + 1.3e-9 * n**3)


class BoundedNodes(NamedTuple):
    """What the kernel says of nodes, one entry per node.

    ``bound`` with curvature and ``plain`` without; ``value`` of the relaxed ``weights``, a multiplier ``tau``
    of the limit on terms; ``fixed`` by reduced cost; ``branch``, the column to split on or -1; ``centre`` and
    ``curve``, from which the bound with curvature follows.
    """

    bound: Array
    weights: Array
    tau: Array
    value: Array
    fixed: States
    branch: NDArray[np.int32]
    centre: Array
    curve: Array
    plain: Array


class NodeBounds:
    """Bounds nodes of one problem over distinct rows."""

    def __init__(self, merged: SelectionProblem, late: Late) -> None:
        self.problem, self.late = merged, late
        self.centre: Array | None = None  # weights from which the limits of margins follow
        self._limits: tuple[Array, Array] | None = None  # floors and caps of margins in a better choice
        self._roles: ColumnRoles | None = None
        self._columns = kernel_columns(merged)
        self._nodes_per_call = _FIRST_CALL
        self._hessian_work = merged.pool.dense().size * merged.pool.n_columns

    @property
    def curved(self) -> bool:
        """Whether bounds use curvature."""
        return self._limits is not None

    def use_curvature(self, weights: Array, objective: float) -> None:
        """Limit margins around these weights, where that is possible and pays."""
        if self._hessian_work > _MOST_CURVED or self.late():
            return
        centre = weights.astype(np.float32).astype(np.float64)
        roles = column_roles(self.problem)
        self._limits = margin_limits(self.problem, roles, centre, objective)
        if self._limits is not None:
            self._roles, self.centre = roles, centre

    def solve(
        self, state: States, start: Array, tau: Array, objective: float,
        curve: Array | None = None, curved: NDArray[np.bool_] | None = None, steps: int = _STEPS,
    ) -> BoundedNodes:  # fmt: skip
        """Bounds of these nodes, or of the first of them when time runs out.

        ``objective`` is that of the incumbent; ``curve`` and ``curved``: the curvature to begin with, and
        which nodes may use it.
        """
        parts: list[Any] = []
        done = 0
        floors, caps = self._limits or (None, None)
        role, twin = self._roles or (None, None)
        if not self.curved:
            curve = curved = None
        while done < len(state) and not (done and self.late()):
            part = slice(done, done + self._nodes_per_call)
            started = clock()
            options = {
                "cutoff": cutoff_below(objective), "threads": self.problem.risk.threads, "floors": floors,
                "caps": caps, "role": role, "twin": twin, "objective": objective,
                "curve": None if curve is None else curve[part],
                "curved": None if curved is None else curved[part].astype(np.uint8),
            }  # fmt: skip
            parts.append(self._solve(state[part], start[part], tau[part], steps, options))
            # how nodes are handed over in parts makes no difference to any of them
            seconds = (clock() - started) / len(parts[-1][0])
            self._nodes_per_call = int(np.clip(_CALL_SECONDS / max(seconds, 1e-9), 1, 4096))
            done += len(parts[-1][0])
        return BoundedNodes(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _solve(self, state: States, start: Array, tau: Array, steps: int, options: dict[str, Any]) -> Any:
        """One call of the kernel; where its steps take long, a few at a time with a look at the clock."""
        result, done, before = None, 0, None
        while result is None or done < steps:
            few = min(_FEW_STEPS, steps - done) if self._hessian_work > _HEAVY else steps
            result = _kernels.bound_nodes(
                **self._columns, state=state, start=start, tau=tau, max_steps=few, **options
            )
            done += few
            bound, start, tau = result[:3]
            settled = before is not None and (bound <= before + CLOSED * np.abs(before)).all()
            if settled or (bound >= options["cutoff"]).all() or self.late():
                break
            before = bound
        return result


# ------------------------------------------------------------------------------------------ limits of margins


class ColumnRoles(NamedTuple):
    """What curvature may do with each column, and its twin: the first column equal or opposite to it.

    Twins share one direction, so nothing can be set aside for any of them. Which of them stands for the
    direction depends on the node: one that is not forced out.
    """

    role: NDArray[np.uint8]
    twin: NDArray[np.int32]

    @property
    def basis(self) -> NDArray[np.bool_]:
        """One column for every direction, where no column is out."""
        return (self.role != ZERO) & (self.twin == np.arange(len(self.twin)))


def column_roles(problem: SelectionProblem) -> ColumnRoles:
    """Roles and twins of the columns of a problem."""
    A = problem.pool.dense()
    signs = np.sign(A[np.argmax(A != 0, axis=0), np.arange(A.shape[1])])
    twin = equal_columns(A * signs)
    count = np.bincount(twin, minlength=len(twin))
    role = np.where(problem.prices.charged & (count[twin] == 1), ASIDE, PLAIN)
    role[~A.any(axis=0)] = ZERO
    return ColumnRoles(role.astype(np.uint8), twin.astype(np.int32))


@blas_threads(1)  # for equal bits with any number of threads
def margin_limits(
    problem: SelectionProblem, roles: ColumnRoles, centre: Array, objective: float
) -> tuple[Array, Array] | None:
    """A floor and a cap for every row's margin, from the ellipsoid around ``centre``; None without one."""
    if not problem.curved:
        return None
    A, p, share = problem.pool.dense().astype(np.float64), problem.prices, problem.risk.weights.normalised
    F = A @ centre
    point = problem.risk.evaluate(F)
    # as in the check: row weights as they are, also where scaled ones would prove more
    bound = point.dual(1.0) - gain_terms(problem.pool.edges(point), p, problem.max_terms)
    room = objective - bound + _ROOM * (1.0 + abs(objective))
    floors, caps = np.minimum(A, 0.0) @ p.max_weight, np.maximum(A, 0.0) @ p.max_weight
    if not (np.isfinite(F).all() and np.isfinite(caps - floors).all() and room > 0.0):
        return None
    basis = A[:, roles.basis]
    for _ in range(_NARROWINGS):
        left = share * curvature_left(problem.risk.loss.name, F, floors, caps)
        H = (basis * left[:, None]).T @ basis
        try:
            factor = np.linalg.cholesky(H)
        except np.linalg.LinAlgError:
            return None
        if not (np.diag(factor) ** 2 > _PIVOT * np.diag(H)).all():
            return None
        width = np.sqrt(2.0 * room * np.sum(np.linalg.solve(factor, basis.T) ** 2, axis=0)) * (1.0 + _WIDER)
        floors, caps = np.maximum(floors, F - width), np.minimum(caps, F + width)
    return floors, caps


def curvature_left(loss: str, F: Array, floors: Array, caps: Array) -> Array:
    """The most k with loss(z) >= loss(F) + loss'(F) (z - F) + k (z - F)^2 / 2 for z from floor to cap."""
    with np.errstate(over="ignore"):
        if loss == "exponential":
            return np.asarray(np.exp(-F) * _exponential_share(caps - F))
        p = 1.0 / (1.0 + np.exp(F))
    at_point = p * (1.0 - p)
    to_ends = (_logistic_curvature(F, p, at_point, end) for end in (floors, caps))
    return np.minimum(at_point, np.minimum(*to_ends))


def _exponential_share(x: Array) -> Array:
    """The share of the curvature at F that a parabola below the exponential loss has up to F + x."""
    near = np.abs(x) < 1e-2
    y = np.where(near, 1.0, x)
    far = 2.0 * (np.expm1(-y) + y) / (y * y)
    return np.where(near, 1.0 - x * (1.0 / 3.0 - x * (1.0 / 12.0 - x / 60.0)), far)


def _logistic_curvature(F: Array, p: Array, at_point: Array, end: Array) -> Array:
    """The curvature of the parabola that meets the logistic loss at ``end``."""
    x = end - F
    near = np.abs(x) < 1e-2
    y = np.where(near, 1.0, x)
    far = 2.0 * (np.logaddexp(0.0, -F - y) - np.logaddexp(0.0, -F) + p * y) / (y * y)
    return np.where(near, at_point * (1.0 - np.abs(x) / 3.0), far)

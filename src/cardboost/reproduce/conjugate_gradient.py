"""The experiments of the paper on boosting by nonlinear conjugate gradients (docs/reproduce.md).

Two examples, a matrix of 4 x 3 and basketball games, each solved by ``minimize_on_simplex`` with
``method="mprp"``; the paper's four check points for both; and what the temperature T = 1/R decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost.data.threads import blas_threads
from cardboost.datasets.box_scores import COLUMNS, BoxScores
from cardboost.reproduce.independent import (
    Reference,
    by_cone,
    by_slsqp,
    dual_value,
    hard_margin,
    kkt,
    soft_margin,
)
from cardboost.solvers import SimplexResult, minimize_on_simplex

Array = NDArray[np.float64]

EPSILON = 1e-14  # of the paper's criterion (-g)^f . d
SAME = 1e-6  # up to which two values are the same, and a residual is none
LEVELS = (1e-4, 1e-8, EPSILON)  # of the criterion, for which iterations are counted

SMALL_MATRIX = ((-1, 1, 1), (-1, 1, 1), (-1, 1, -1), (1, -1, -1))
SMALL_RADIUS = 0.5
SMALL_TEMPERATURES = (10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)

GAMES = 538
GAMES_RADIUS = 10.0
PARTS = 10  # into which the cuts of a statistic divide the training games
TEMPERATURES = (2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)


@dataclass(frozen=True)
class Iteration:
    """A point of the way; ``weights`` only for the small example."""

    number: int
    objective: float
    criterion: float
    gap: float
    support: int
    weights: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Check:
    """What is claimed, what was measured, and whether it holds: a to d are the paper's, e is not."""

    letter: str
    claim: str
    measured: str
    holds: bool
    numbers: dict[str, float]


@dataclass(frozen=True)
class Temperature:
    """The optimum at one temperature: the least margin is that of weights with sum 1."""

    temperature: float
    objective: float
    gap: float
    least_margin: float
    support: int
    train_error: float
    test_error: float | None


@dataclass(frozen=True)
class Example:
    name: str
    rows: int
    columns: int
    radius: float
    iterations: tuple[Iteration, ...]
    weights: tuple[float, ...]
    references: tuple[Reference, ...]
    checks: tuple[Check, ...]
    hard_margin: float
    temperatures: tuple[Temperature, ...]

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    @property
    def minimum(self) -> float:
        """The lowest value that any solver found."""
        return min(self.iterations[-1].objective, *(own.value for own in self.references))


@dataclass(frozen=True)
class Stump:
    """Says 1 where the statistic is above the cut, or where it is not."""

    column: str
    cut: float
    above: bool

    def __str__(self) -> str:
        return f"{self.column} {'>' if self.above else '<='} {self.cut:g}"


@dataclass(frozen=True)
class Experiment:
    small: Example
    games: Example
    stumps: tuple[Stump, ...]
    source: str
    made_up: bool
    train_wins: float
    test_wins: float

    @property
    def holds(self) -> bool:
        return self.small.holds and self.games.holds


@blas_threads(1)
def run(data: BoxScores) -> Experiment:
    """Both examples. One BLAS thread: on matrices of this size more of them only wait for each other."""
    train = np.arange(len(data.y)) % 2 == 0
    stumps, H = stump_outputs(data, train)
    small = _example("4 x 3", np.array(SMALL_MATRIX, dtype=float), SMALL_RADIUS, SMALL_TEMPERATURES)
    games = _example(
        "basketball", H[train] * data.y[train, None], GAMES_RADIUS, TEMPERATURES,
        H[~train] * data.y[~train, None],
    )  # fmt: skip
    wins = [float(np.mean(data.y[part] > 0)) for part in (train, ~train)]
    return Experiment(small, games, stumps, data.source, data.made_up, wins[0], wins[1])


def stump_outputs(data: BoxScores, train: NDArray[np.bool_]) -> tuple[tuple[Stump, ...], Array]:
    """Two stumps, one the opposite of the other, at every decile of every statistic of the training games.

    A cut is a value that occurs. Equal ones are taken once, and none that leaves all training games on one
    side.
    """
    stumps, outputs = [], []
    for column, values in zip(COLUMNS, data.X.T, strict=True):
        shares = np.arange(1, PARTS) / PARTS
        cuts = np.unique(np.quantile(values[train], shares, method="inverted_cdf"))
        for cut in cuts[cuts < values[train].max()]:
            signs = np.where(values > cut, 1.0, -1.0)
            stumps += [Stump(column, float(cut), True), Stump(column, float(cut), False)]
            outputs += [signs, -signs]
    return tuple(stumps), np.column_stack(outputs)


def _example(
    name: str, A: Array, radius: float, temperatures: tuple[float, ...], test: Array | None = None
) -> Example:
    """The iterations from the centre of the simplex, the check points, and the way of the temperature."""
    m, n = A.shape
    result = _mprp(A, radius)
    iterations = [
        Iteration(k, own.objective, own.criterion, own.gap, own.support)
        for k, own in enumerate(result.history)
    ]
    looks = _looks(result.nit)
    points = {k: _mprp(A, radius, k).x for k in looks}
    if n <= 3:
        iterations = [
            Iteration(k, own.objective, own.criterion, own.gap, own.support, tuple(points[k].tolist()))
            for k, own in enumerate(iterations)
        ]
    references = [by_slsqp(A, radius)]
    cone = by_cone(A, radius)
    if cone is not None:
        references.append(cone)
    hard = hard_margin(A)
    path = tuple(_at_temperature(A, T, test) for T in temperatures)
    checks = (
        check_decrease(A, iterations, points),
        check_criterion(iterations),
        check_kkt(A, result.x, radius),
        check_minimum(A, result.x, radius, references),
        check_margins(path, hard, m),
    )
    return Example(
        name, m, n, radius, tuple(iterations), tuple(result.x.tolist()), tuple(references), checks, hard, path
    )


def _mprp(A: Array, radius: float, steps: int | None = None) -> SimplexResult:
    """From the centre, until the paper's criterion is at most epsilon; or only so many steps of it."""
    centre = np.full(A.shape[1], radius / A.shape[1])
    return minimize_on_simplex(A, radius, method="mprp", x0=centre, tol=0.0, epsilon=EPSILON, max_iter=steps)


def _looks(last: int) -> list[int]:
    """Iterations whose point is looked at: all of few, else 0, 1, 2, 5, 10, ... and the last."""
    if last <= 10:
        return list(range(last + 1))
    wanted = [0, *(digit * 10**power for power in range(7) for digit in (1, 2, 5)), last]
    return sorted({k for k in wanted if k <= last})


def check_decrease(A: Array, iterations: list[Iteration], points: dict[int, Array]) -> Check:
    """No iteration raises the value, and the values are those that NumPy computes from the weights."""
    values = np.array([own.objective for own in iterations])
    largest = float(np.diff(values).max(initial=-np.inf))
    again = np.array([soft_margin(A, points[k])[0] for k in sorted(points)])
    off = float(np.abs(again - values[sorted(points)]).max())
    rises = int(np.count_nonzero(np.diff(values) > 0))
    holds = rises == 0 and off <= 1e-9 * max(1.0, float(np.abs(values).max()))
    measured = (
        f"{rises} of {len(values) - 1} iterations raise it; the smallest drop is {-largest:.2g}; "
        f"values recomputed at {len(points)} points differ by {off:.1g} at most"
    )
    numbers = {"iterations": len(values) - 1, "rises": rises, "smallest_drop": -largest, "difference": off}
    return Check("a", "the objective falls in every iteration", measured, holds, numbers)


def check_criterion(iterations: list[Iteration]) -> Check:
    """The criterion of the paper gets below epsilon."""
    last = iterations[-1].criterion
    first = [next((own.number for own in iterations if own.criterion <= level), None) for level in LEVELS]
    counts = ", ".join(
        f"{level:g} after {k}" if k is not None else f"{level:g} never"
        for level, k in zip(LEVELS, first, strict=True)
    )
    holds = first[-1] is not None
    numbers = {"last": last, **{f"{v:g}": k for v, k in zip(LEVELS, first, strict=True) if k is not None}}
    return Check(
        "b", "(-g)^f.d gets below epsilon in finitely many iterations",
        f"{counts} iterations; at the end {last:.2g}", holds, numbers,
    )  # fmt: skip


def check_kkt(A: Array, w: Array, radius: float) -> Check:
    """The conditions of Karush, Kuhn and Tucker at the end, with NumPy's gradient."""
    own = kkt(A, w, radius)
    measured = (
        f"slopes of the weights in use differ by {own.spread:.2g} from their mean, others are below it by "
        f"{own.below:.2g} at most; w < 0 by {own.negative:.2g}, sum off by {own.sum_error:.2g}"
    )
    numbers = {
        "spread": own.spread, "below": own.below, "negative": own.negative, "sum_error": own.sum_error,
    }  # fmt: skip
    return Check("c", "the end is a KKT point", measured, own.residual <= SAME, numbers)


def check_minimum(A: Array, w: Array, radius: float, references: list[Reference]) -> Check:
    """The value is the least: a dual bound, and other solvers."""
    value, p = soft_margin(A, w)
    bound = dual_value(A, p, radius)
    apart = {own.name: value - own.value for own in references}
    allowed = SAME * max(1.0, abs(value))
    holds = value - bound <= allowed and all(abs(own) <= allowed for own in apart.values())
    others = ", ".join(f"{own:.1g} from {name}'s" for name, own in apart.items())
    measured = f"{value:.9f} is above the dual bound by {value - bound:.1g}, and differs by {others}"
    if "Clarabel" not in apart:
        measured += "; no conic solver: cvxpy and clarabel are not installed, or gave no answer"
    numbers = {"value": value, "dual_bound": bound, **{f"minus_{name}": d for name, d in apart.items()}}
    return Check("d", "the end is the global minimum", measured, holds, numbers)


def check_margins(path: tuple[Temperature, ...], hard: float, rows: int) -> Check:
    """No least margin is above the hard one, nor below it by more than T ln m.

    With the weights of the hard margin the soft one is at most ln m - R hard, and it is never below the
    largest loss of a row.
    """
    short = [hard - own.least_margin for own in path]
    allowed = [own.temperature * (float(np.log(rows)) + own.gap) + SAME for own in path]
    holds = all(-SAME <= s <= most for s, most in zip(short, allowed, strict=True))
    first, last = path[0], path[-1]
    measured = (
        f"short of the hard margin by {short[0]:.2g} at T = {first.temperature:g}, by {short[-1]:.2g} at "
        f"T = {last.temperature:g}, and by more than T ln m nowhere"
        if holds
        else "short of the hard margin by " + ", ".join(f"{s:.2g}" for s in short)
    )
    return Check(
        "e", "the soft margin tends to the hard one as T goes to 0", measured, holds,
        {"first": short[0], "last": short[-1], "T_ln_m": last.temperature * float(np.log(rows))},
    )  # fmt: skip


def _at_temperature(A: Array, temperature: float, test: Array | None) -> Temperature:
    radius = 1.0 / temperature
    result = minimize_on_simplex(A, radius, tol=1e-9 * max(1.0, radius))
    return Temperature(
        temperature,
        result.fun,
        result.gap,
        float(np.min(A @ result.x)) / radius,
        int(np.count_nonzero(result.x)),
        float(np.mean(A @ result.x <= 0)),
        None if test is None else float(np.mean(test @ result.x <= 0)),
    )

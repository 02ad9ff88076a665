"""The experiments of the paper on boosting by nonlinear conjugate gradients (docs/reproduce.md).

Two examples, a matrix of 4 x 3 and basketball games, each solved by ``minimize_on_simplex`` with
``method="mprp"``; the paper's check points a to d for both, and e, which is not the paper's: the
effect of the temperature T = 1/R.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from cardboost.data.threads import blas_threads
from cardboost.datasets.box_scores import COLUMNS, BoxScores
from cardboost.report.document import CheckPoint
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
TOLERANCE = 1e-6  # up to which two values count as the same, and a residual as none
LEVELS = (1e-4, 1e-8, EPSILON)  # of the criterion, for which iterations are counted

# section 4.1 of the paper
SMALL_MATRIX = ((-1, 1, 1), (-1, 1, 1), (-1, 1, -1), (1, -1, -1))
SMALL_RADIUS = 0.5
SMALL_TEMPERATURES = (10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)

# section 4.2 of the paper
GAMES = 538
GAMES_RADIUS = 10.0
PARTS = 10  # into which the cuts of a statistic divide the training games
TEMPERATURES = (2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)


@dataclass(frozen=True)
class Iteration:
    """One iteration of the solver; ``weights`` only for the small example."""

    number: int
    objective: float
    criterion: float
    gap: float
    support: int
    weights: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Temperature:
    """The optimum at one temperature; ``least_margin`` is that of the weights divided by their sum."""

    temperature: float
    objective: float
    gap: float
    least_margin: float
    support: int
    train_error: float
    test_error: float | None


@dataclass(frozen=True)
class Example:
    """A solved problem: its iterations, its check points, and its optimum at several temperatures."""

    name: str
    rows: int
    columns: int
    radius: float
    iterations: tuple[Iteration, ...]
    weights: tuple[float, ...]
    references: tuple[Reference, ...]
    checks: tuple[CheckPoint, ...]
    hard_margin: float
    temperatures: tuple[Temperature, ...]

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    @property
    def minimum(self) -> float:
        """The lowest value of any solver."""
        return min(self.iterations[-1].objective, *(reference.value for reference in self.references))


@dataclass(frozen=True)
class GameStump:
    """A weak learner: 1 where the statistic is above the cut, or where it is not."""

    column: str
    cut: float
    above: bool

    def __str__(self) -> str:
        return f"{self.column} {'>' if self.above else '<='} {self.cut:g}"


@dataclass(frozen=True)
class SimplexExperiment:
    """Both examples, with the stumps and the data of the games."""

    small: Example
    games: Example
    stumps: tuple[GameStump, ...]
    source: str
    made_up: bool
    train_wins: float
    test_wins: float

    @property
    def holds(self) -> bool:
        return self.small.holds and self.games.holds


@blas_threads(1)
def run(data: BoxScores) -> SimplexExperiment:
    """Solve both examples, on one BLAS thread: on matrices of this size more only wait for each other."""
    train = np.arange(len(data.y)) % 2 == 0
    stumps, H = stump_outputs(data, train)
    A = H * data.y[:, None]
    small = _example("4 x 3", np.array(SMALL_MATRIX, dtype=float), SMALL_RADIUS, SMALL_TEMPERATURES)
    games = _example("basketball", A[train], GAMES_RADIUS, TEMPERATURES, A[~train])
    wins = [float(np.mean(data.y[part] > 0)) for part in (train, ~train)]
    return SimplexExperiment(small, games, stumps, data.source, data.made_up, wins[0], wins[1])


def stump_outputs(data: BoxScores, train: NDArray[np.bool_]) -> tuple[tuple[GameStump, ...], Array]:
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
            stumps += [GameStump(column, float(cut), above) for above in (True, False)]
            outputs += [signs, -signs]
    return tuple(stumps), np.column_stack(outputs)


def _example(
    name: str, A: Array, radius: float, temperatures: tuple[float, ...], test: Array | None = None
) -> Example:
    """Iterate from the centre of the simplex, check the end, and solve again at every temperature."""
    m, n = A.shape
    result = _mprp(A, radius)
    points = {k: _mprp(A, radius, k).x for k in milestones(result.nit, 10)}
    iterations = [
        Iteration(
            k, record.objective, record.criterion or 0.0, record.gap, record.n_terms,
            tuple(points[k].tolist()) if n <= 3 else None,
        )
        for k, record in enumerate(result.history)
    ]  # fmt: skip
    references = [ref for ref in (by_slsqp(A, radius), by_cone(A, radius)) if ref is not None]
    hard = hard_margin(A)
    path = tuple(_optimum(A, T, test) for T in temperatures)
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
    """Iterate from the centre until the paper's criterion is at most epsilon, or for so many steps."""
    centre = np.full(A.shape[1], radius / A.shape[1])
    return minimize_on_simplex(A, radius, method="mprp", x0=centre, tol=0.0, epsilon=EPSILON, max_iter=steps)


def milestones(last: int, few: int) -> list[int]:
    """The numbers 0 to ``last`` where they are few; else 0, 1, 2, 5, 10, 20, ... and the last."""
    if last <= few:
        return list(range(last + 1))
    numbers = {0, last, *(digit * 10**power for power in range(7) for digit in (1, 2, 5))}
    return sorted(k for k in numbers if k <= last)


def check_decrease(A: Array, iterations: list[Iteration], points: dict[int, Array]) -> CheckPoint:
    """No iteration raises the objective, and NumPy computes the same values from the weights."""
    values = np.array([iteration.objective for iteration in iterations])
    largest = float(np.diff(values).max(initial=-np.inf))
    recomputed = np.array([soft_margin(A, points[k])[0] for k in sorted(points)])
    difference = float(np.abs(recomputed - values[sorted(points)]).max())
    rises = int(np.count_nonzero(np.diff(values) > 0))
    return CheckPoint(
        "a", "the objective falls in every iteration",
        f"{rises} of {len(values) - 1} iterations raise it; the smallest drop is {-largest:.2g}; "
        f"values recomputed at {len(points)} points differ by {difference:.1g} at most",
        rises == 0 and difference <= 1e-9 * max(1.0, float(np.abs(values).max())),
        {"iterations": len(values) - 1, "rises": rises, "smallest_drop": -largest, "difference": difference},
    )  # fmt: skip


def check_criterion(iterations: list[Iteration]) -> CheckPoint:
    """The criterion of the paper gets below epsilon."""
    last = iterations[-1].criterion
    first = {level: next((i.number for i in iterations if i.criterion <= level), None) for level in LEVELS}
    reached = {f"{level:g}": k for level, k in first.items() if k is not None}
    counts = [f"{level:g} never" if k is None else f"{level:g} after {k}" for level, k in first.items()]
    return CheckPoint(
        "b", "(-g)^f.d gets below epsilon in finitely many iterations",
        f"{', '.join(counts)} iterations; at the end {last:.2g}",
        first[EPSILON] is not None, {"last": last, **reached},
    )  # fmt: skip


def check_kkt(A: Array, w: Array, radius: float) -> CheckPoint:
    """The conditions of Karush, Kuhn and Tucker hold at the end, with NumPy's gradient."""
    faults = kkt(A, w, radius)
    measured = (
        f"slopes of the weights in use differ by {faults.spread:.2g} from their mean, others are below it by "
        f"{faults.below:.2g} at most; w < 0 by {faults.negative:.2g}, sum off by {faults.sum_error:.2g}"
    )
    return CheckPoint("c", "the end is a KKT point", measured, faults.residual <= TOLERANCE, asdict(faults))


def check_minimum(A: Array, w: Array, radius: float, references: list[Reference]) -> CheckPoint:
    """The value is the least, by a dual bound and by other solvers."""
    value, p = soft_margin(A, w)
    bound = dual_value(A, p, radius)
    differences = {reference.name: value - reference.value for reference in references}
    allowed = TOLERANCE * max(1.0, abs(value))
    others = ", ".join(f"{difference:.1g} from {name}'s" for name, difference in differences.items())
    measured = f"{value:.9f} is above the dual bound by {value - bound:.1g}, and differs by {others}"
    if "Clarabel" not in differences:
        measured += "; no conic solver: cvxpy and clarabel are not installed, or gave no answer"
    return CheckPoint(
        "d", "the end is the global minimum", measured,
        value - bound <= allowed and all(abs(difference) <= allowed for difference in differences.values()),
        {"value": value, "dual_bound": bound, **{f"minus_{name}": d for name, d in differences.items()}},
    )  # fmt: skip


def check_margins(path: tuple[Temperature, ...], hard: float, rows: int) -> CheckPoint:
    """No least margin is above the hard one, nor below it by more than T ln m.

    With the weights of the hard margin the soft one is at most ln m - R hard, and it is never below the
    largest loss of a row.
    """
    log_rows = float(np.log(rows))
    short = [hard - optimum.least_margin for optimum in path]
    allowed = [optimum.temperature * (log_rows + optimum.gap) + TOLERANCE for optimum in path]
    holds = all(-TOLERANCE <= s <= most for s, most in zip(short, allowed, strict=True))
    first, last = path[0], path[-1]
    measured = (
        f"short of the hard margin by {short[0]:.2g} at T = {first.temperature:g}, by {short[-1]:.2g} at "
        f"T = {last.temperature:g}, and by more than T ln m nowhere"
        if holds
        else "short of the hard margin by " + ", ".join(f"{s:.2g}" for s in short)
    )
    return CheckPoint(
        "e", "the soft margin tends to the hard one as T goes to 0", measured, holds,
        {"first": short[0], "last": short[-1], "T_ln_m": last.temperature * log_rows},
    )  # fmt: skip


def _optimum(A: Array, temperature: float, test: Array | None) -> Temperature:
    radius = 1.0 / temperature
    result = minimize_on_simplex(A, radius, tol=1e-9 * max(1.0, radius))
    margins = A @ result.x
    return Temperature(
        temperature, result.fun, result.gap, float(np.min(margins)) / radius,
        int(np.count_nonzero(result.x)), float(np.mean(margins <= 0)),
        None if test is None else float(np.mean(test @ result.x <= 0)),
    )  # fmt: skip

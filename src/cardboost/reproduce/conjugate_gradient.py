"""The experiments of the paper on boosting by nonlinear conjugate gradients (docs/reproduce.md).

Two examples, a matrix of 4 x 3 and basketball games, each solved by ``minimize_on_simplex`` with
``method="mprp"``; the paper's check points a to d for both, and e, which is not the paper's: the
effect of the temperature T = 1/R.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.threads import blas_threads
from cardboost.datasets.box_scores import COLUMNS, BoxScores
from cardboost.report.figures import Chart, Figure, Series
from cardboost.report.panels import SimplexPath, ThreeWeights
from cardboost.reproduce import page
from cardboost.reproduce.independent import by_cone, by_slsqp, dual_value, hard_margin, kkt, soft_margin
from cardboost.reproduce.page import Array, Record, check_point, column, line, milestones
from cardboost.solvers import SolverResult, minimize_on_simplex

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

_MOST_STUMPS = 10  # in the table of the heaviest ones
_LOWEST_DRAWN_BOUND = -1.5  # margins are above -1
_OBJECTIVE_ROUNDING = 1e-12  # smaller differences of objectives are rounding


@blas_threads(1)
def run(data: BoxScores) -> Record:
    """Solve both examples, on one BLAS thread: on matrices of this size more only wait for each other."""
    train = np.arange(len(data.y)) % 2 == 0
    stumps, H = stump_outputs(data, train)
    A = H * data.y[:, None]
    small = example("4 x 3", np.array(SMALL_MATRIX, dtype=float), SMALL_RADIUS, SMALL_TEMPERATURES)
    games = example("basketball", A[train], GAMES_RADIUS, TEMPERATURES, A[~train])
    weights = zip(stumps, games["weights"], strict=True)
    games["weights"] = [{"stump": stump, "weight": weight} for stump, weight in weights if weight > 0]
    wins = {
        f"{name}_wins": float(np.mean(data.y[part] > 0))
        for name, part in (("train", train), ("test", ~train))
    }
    return {
        "experiment": "conjugate-gradient",
        "holds": small["holds"] and games["holds"],
        "epsilon": EPSILON,
        "data": {"source": data.source, "made_up": data.made_up, **wins},
        "small": small,
        "games": games,
    }


def stump_outputs(data: BoxScores, train: NDArray[np.bool_]) -> tuple[list[str], Array]:
    """Two stumps, one the opposite of the other, at every decile of every statistic of the training games.

    A cut is a value that occurs. Equal ones are taken once, and none that leaves all training games on one
    side. Returns the stumps in words and their outputs.
    """
    stumps, outputs = [], []
    for name, values in zip(COLUMNS, data.X.T, strict=True):
        shares = np.arange(1, PARTS) / PARTS
        cuts = np.unique(np.quantile(values[train], shares, method="inverted_cdf"))
        for cut in cuts[cuts < values[train].max()]:
            signs = np.where(values > cut, 1.0, -1.0)
            stumps += [f"{name} {side} {cut:g}" for side in (">", "<=")]
            outputs += [signs, -signs]
    return stumps, np.column_stack(outputs)


def example(
    name: str, A: Array, radius: float, temperatures: tuple[float, ...], test: Array | None = None
) -> Record:
    """Iterate from the centre of the simplex, check the end, and solve again at every temperature.

    Points of every iteration are recorded where there are three weights at most.
    """
    m, n = A.shape
    result = _mprp(A, radius)
    points = {k: _mprp(A, radius, k).x for k in milestones(result.nit, 10)}
    iterations = [
        {"number": k, "objective": record.objective, "criterion": record.criterion or 0.0, "gap": record.gap,
         "support": record.n_terms, **({"weights": points[k].tolist()} if n <= 3 else {})}
        for k, record in enumerate(result.history)
    ]  # fmt: skip
    solvers = {"SLSQP": by_slsqp(A, radius), "Clarabel": by_cone(A, radius)}
    references = [{"name": name, "value": value} for name, value in solvers.items() if value is not None]
    hard = hard_margin(A)
    path = [_optimum(A, T, test) for T in temperatures]
    checks = [
        check_decrease(A, iterations, points),
        check_criterion(iterations),
        check_kkt(A, result.x, radius),
        check_minimum(A, result.x, radius, references),
        check_margins(path, hard, m),
    ]
    return {
        "name": name, "rows": m, "columns": n, "radius": radius, "iterations": iterations,
        "weights": result.x.tolist(), "references": references, "checks": checks, "hard_margin": hard,
        "temperatures": path, "holds": all(check["holds"] for check in checks),
    }  # fmt: skip


def _mprp(A: Array, radius: float, steps: int | None = None) -> SolverResult:
    """Iterate from the centre until the paper's criterion is at most epsilon, or for so many steps."""
    centre = np.full(A.shape[1], radius / A.shape[1])
    return minimize_on_simplex(A, radius, method="mprp", x0=centre, tol=0.0, epsilon=EPSILON, max_iter=steps)


def _optimum(A: Array, temperature: float, test: Array | None) -> Record:
    """The optimum at one temperature; the least margin is that of the weights divided by their sum."""
    radius = 1.0 / temperature
    result = minimize_on_simplex(A, radius, tol=1e-9 * max(1.0, radius))
    margins = A @ result.x
    return {
        "temperature": temperature, "objective": result.fun, "gap": result.gap,
        "least_margin": float(np.min(margins)) / radius, "support": int(np.count_nonzero(result.x)),
        "train_error": float(np.mean(margins <= 0)),
        "test_error": None if test is None else float(np.mean(test @ result.x <= 0)),
    }  # fmt: skip


# check points


def check_decrease(A: Array, iterations: list[Record], points: dict[int, Array]) -> Record:
    """No iteration raises the objective, and NumPy computes the same values from the weights."""
    values = column(iterations, "objective")
    steps = np.diff(values)
    recomputed = np.array([soft_margin(A, points[k])[0] for k in sorted(points)])
    difference = float(np.abs(recomputed - values[sorted(points)]).max())
    rises = int(np.count_nonzero(steps > 0))
    return check_point(
        "a",
        "the objective falls in every iteration",
        "{rises} of {iterations} iterations raise it; the smallest drop is {smallest_drop:.2g}; "
        f"values recomputed at {len(points)} points differ by {{difference:.1g}} at most",
        rises == 0 and difference <= 1e-9 * max(1.0, float(np.abs(values).max())),
        iterations=len(steps), rises=rises, smallest_drop=-float(steps.max(initial=-np.inf)),
        difference=difference,
    )  # fmt: skip


def check_criterion(iterations: list[Record]) -> Record:
    """The criterion of the paper gets below epsilon."""
    criteria = column(iterations, "criterion")
    reached = {f"{level:g}": int(np.argmax(criteria <= level)) for level in LEVELS if criteria.min() <= level}
    never = [f"{level:g} never" for level in LEVELS if f"{level:g}" not in reached]
    counts = [*(f"{level} after {k}" for level, k in reached.items()), *never]
    return check_point(
        "b", "(-g)^f.d gets below epsilon in finitely many iterations",
        f"{', '.join(counts)} iterations; at the end {{last:.2g}}",
        f"{EPSILON:g}" in reached, last=float(criteria[-1]), **reached,
    )  # fmt: skip


def check_kkt(A: Array, w: Array, radius: float) -> Record:
    """The conditions of Karush, Kuhn and Tucker hold at the end, with NumPy's gradient."""
    faults = kkt(A, w, radius)
    return check_point(
        "c",
        "the end is a KKT point",
        "slopes of the weights in use differ by {spread:.2g} from their mean, others are below it by "
        "{below:.2g} at most; w < 0 by {negative:.2g}, sum off by {sum_error:.2g}",
        max(faults.values()) <= TOLERANCE,
        **faults,
    )


def check_minimum(A: Array, w: Array, radius: float, references: list[Record]) -> Record:
    """The value is the least, by a dual bound and by other solvers."""
    value, p = soft_margin(A, w)
    bound = dual_value(A, p, radius)
    differences = {other["name"]: value - other["value"] for other in references}
    others = ", ".join(f"{difference:.1g} from {name}'s" for name, difference in differences.items())
    measured = f"{{value:.9f}} is above the dual bound by {value - bound:.1g}, and differs by {others}"
    if "Clarabel" not in differences:
        measured += "; no conic solver: cvxpy and clarabel are not installed, or gave no answer"
    faults = [value - bound, *map(abs, differences.values())]
    return check_point(
        "d", "the end is the global minimum", measured, max(faults) <= TOLERANCE * max(1.0, abs(value)),
        value=value, dual_bound=bound, **{f"minus_{name}": one for name, one in differences.items()},
    )  # fmt: skip


def check_margins(path: list[Record], hard: float, rows: int) -> Record:
    """No least margin is above the hard one, nor below it by more than T ln m.

    With the weights of the hard margin the soft one is at most ln m - R hard, and it is never below the
    largest loss of a row.
    """
    T, short = column(path, "temperature"), hard - column(path, "least_margin")
    most = T * (np.log(rows) + column(path, "gap")) + TOLERANCE
    holds = bool(((short >= -TOLERANCE) & (short <= most)).all())
    measured = "short of the hard margin by " + ", ".join(f"{lack:.2g}" for lack in short)
    if holds:
        measured = (
            f"short of the hard margin by {{first:.2g}} at T = {T[0]:g}, by {{last:.2g}} at T = {T[-1]:g}, "
            "and by more than T ln m nowhere"
        )
    return check_point(
        "e", "the soft margin tends to the hard one as T goes to 0", measured, holds,
        first=float(short[0]), last=float(short[-1]), T_ln_m=float(T[-1] * np.log(rows)),
    )  # fmt: skip


# report


def files(experiment: Record) -> dict[str, bytes]:
    """Every file of the report by its name."""
    small, games, data = experiment["small"], experiment["games"], experiment["data"]
    made_up = data["made_up"]
    supports = column(games["iterations"], "support")
    fields = {
        **experiment,
        **data,
        "parts": PARTS,
        "matrix": ", ".join(map(str, SMALL_MATRIX)),
        "real": not made_up,
        "stand_in": " (a stand-in)" if made_up else "",
        "played": "stand-in games" if made_up else "basketball games",
        "kind": "made-up games, a stand-in" if made_up else "basketball games",
        "steps": len(supports) - 1,
        "shrinking": int(np.count_nonzero(np.diff(supports) < 0)),
    }
    records = {"heaviest": sorted(games["weights"], key=lambda stump: -stump["weight"])[:_MOST_STUMPS]}
    for name, one in (("small", small), ("games", games)):
        iterations = one["iterations"]
        records[f"{name} iterations"] = [iterations[k] for k in milestones(len(iterations) - 1, 12)]
        records[f"{name} checks"] = one["checks"]
        records[f"{name} temperatures"] = _to_hard_margin(one)
    return page.report_files(
        "conjugate_gradient", fields, records, _figures(small, games, made_up), experiment
    )


def _to_hard_margin(one: Record) -> list[Record]:
    """The optimum at every temperature, with what it lacks to the hard margin, and the most it may lack."""
    hard, log_rows = one["hard_margin"], np.log(one["rows"])
    return [
        {**optimum, "radius": 1 / T, "to_hard": hard - optimum["least_margin"], "bound": T * log_rows}
        for optimum in one["temperatures"]
        for T in (optimum["temperature"],)
    ]


def _figures(small: Record, games: Record, made_up: bool) -> dict[str, Figure]:
    charts = _by_temperature("4 × 3 example", small)
    other_charts = _by_temperature("Stand-in games" if made_up else "Basketball", games)
    return {
        "figure-2.svg": page.panels(_triangle(small), *_convergence(small), width=960.0),
        "figure-3.svg": page.panels(*_convergence(games, to_minimum=True)),
        **{name: page.panels(chart, other_charts[name]) for name, chart in charts.items()},
        "error.svg": page.panels(other_charts["error.svg"]),
    }


def _triangle(one: Record) -> SimplexPath:
    A = np.array(SMALL_MATRIX, dtype=float)

    def value(point: ThreeWeights) -> float:
        return soft_margin(A, SMALL_RADIUS * np.array(point))[0]

    points: Any = tuple(tuple(w / one["radius"] for w in record["weights"]) for record in one["iterations"])
    return SimplexPath("Points", points, ("w₁ = ½", "w₂ = ½", "w₃ = ½"), value)


def _convergence(one: Record, to_minimum: bool = False) -> tuple[Chart, Chart]:
    """Objective and criterion by iteration; ``to_minimum``: also what is left to the least of any solver."""
    k, objective, criterion, gap = (
        column(one["iterations"], name) for name in ("number", "objective", "criterion", "gap")
    )
    series = [line("criterion (−g)^f · d", k, criterion), line("Frank-Wolfe gap", k, gap)]
    if to_minimum:
        rest = objective - min(objective[-1], *column(one["references"], "value"))
        drawn = rest > _OBJECTIVE_ROUNDING
        series.append(line("left to the minimum", k[drawn], rest[drawn], style=4))
    return (
        Chart("Soft margin", "iteration", "ln Σ exp(−A w)", (line("objective", k, objective),)),
        Chart("Criterion and gap", "iteration", "value (log scale)", tuple(series), y_scale="log"),
    )


def _by_temperature(title: str, one: Record) -> dict[str, Chart]:
    """The optimum at every temperature; errors where there are games for a test."""
    path, hard = _to_hard_margin(one), one["hard_margin"]
    names = ("temperature", "least_margin", "support", "to_hard", "bound")
    T, margin, support, to_hard, most = (column(path, name) for name in names)
    bounds = hard - most
    drawn = bounds >= _LOWEST_DRAWN_BOUND

    def chart(title: str, y_label: str, *series: Series, **scales: Any) -> Chart:
        return Chart(title, "temperature T (log scale)", y_label, series, x_scale="log", **scales)

    charts = {
        "margin.svg": chart(
            title,
            "least margin / R",
            line("soft margin's least margin", T, margin),
            line(f"hard margin {hard:.4f}", (T.min(), T.max()), hard, style=4),
            line("hard margin − T ln m", T[drawn], bounds[drawn], style=2),
        ),
        "distance.svg": chart(
            title,
            "log scale",
            line("to the hard margin", T, np.maximum(to_hard, 0.0)),
            line("T ln m", T, most, style=2),
            y_scale="log",
        ),
        "support.svg": chart(title, "weights above 0", line("support", T, support), counts=True),
    }
    if path[0]["test_error"] is not None:
        train, test = (100 * column(path, f"{rows}_error") for rows in ("train", "test"))
        charts["error.svg"] = chart("", "error in %", line("training", T, train), line("test", T, test))
    return charts

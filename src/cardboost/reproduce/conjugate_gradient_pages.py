"""The experiments on conjugate gradients as files: text, figures, a page and plain data."""

from __future__ import annotations

import math
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from cardboost.report import document as doc
from cardboost.report.figures import Chart, Figure, Series
from cardboost.report.panels import SimplexPath, ThreeWeights
from cardboost.reproduce.conjugate_gradient import (
    EPSILON,
    PARTS,
    SMALL_MATRIX,
    SMALL_RADIUS,
    Example,
    SimplexExperiment,
    milestones,
)
from cardboost.reproduce.independent import soft_margin

TITLE = "Boosting by nonlinear conjugate gradients"
_MOST_STUMPS = 10  # in the table of the heaviest ones
_FEW_ITERATIONS = 12  # up to which the table has all of them
_LOWEST_DRAWN_BOUND = -1.5  # margins are above -1
_OBJECTIVE_ROUNDING = 1e-12  # smaller differences of objectives are rounding


def files(experiment: SimplexExperiment) -> dict[str, bytes]:
    """Every file by its name."""
    figures = figures_of(experiment)
    contents = doc.report_files(TITLE, _blocks(experiment, figures), figures, plain(experiment))
    page = contents["index.html"].decode()
    # plain signs in the text; on the page a true minus, which does not end a line, and a true times
    contents["index.html"] = page.replace("(-g)", "(−g)").replace("4 x 3", "4 × 3").encode()
    return contents


def _blocks(experiment: SimplexExperiment, figures: dict[str, Figure]) -> list[doc.ReportBlock]:
    small, games = experiment.small, experiment.games
    stumps = doc.table(["home team wins", "weight"], _heaviest(experiment), left=(0,))
    return [
        doc.paragraph(
            "Soft-margin boosting: least ln(sum of exp(-A w)) over w >= 0 with sum w = R = 1/T, by "
            'minimize_on_simplex(A, R, method="mprp") from the centre of the simplex, until the criterion '
            f"(-g)^f.d is at most epsilon = {EPSILON:g}."
        ),
        doc.paragraph("All check points hold." if experiment.holds else "NOT ALL CHECK POINTS HOLD."),
        doc.heading("Example 4 x 3"),
        doc.paragraph(_small_words(small)),
        *_example_blocks(small, figures["figure-2.svg"]),
        doc.heading("Example basketball" + (" (a stand-in)" if experiment.made_up else "")),
        *map(doc.paragraph, _games_words(experiment)),
        *_example_blocks(games, figures["figure-3.svg"]),
        doc.text_only(doc.caption("the heaviest stumps of the basketball example")),
        doc.page_only(doc.paragraph("The heaviest stumps:")),
        stumps,
        doc.page_only(doc.heading("Hard and soft margin")),
        *(doc.figure(figures[name]) for name in ("margin.svg", "distance.svg", "support.svg", "error.svg")),
        doc.page_only(doc.paragraph("Example 4 x 3. " + _margin_words(small))),
        doc.page_only(_temperatures(small)),
        doc.page_only(doc.paragraph("Example basketball. " + _margin_words(games))),
        doc.page_only(_temperatures(games)),
    ]


def _example_blocks(example: Example, convergence: Figure) -> list[doc.ReportBlock]:
    return [
        doc.figure(convergence),
        _iterations(example),
        doc.text_only(doc.caption("check points")),
        doc.check_list(example.checks),
        doc.text_only(doc.caption(_margin_words(example))),
        doc.text_only(_temperatures(example)),
    ]


def _small_words(example: Example) -> str:
    rows = ", ".join("(" + ", ".join(map(str, row)) + ")" for row in SMALL_MATRIX)
    return f"Section 4.1 of the paper: A has the rows {rows}; R = {example.radius:g}."


def _games_words(experiment: SimplexExperiment) -> list[str]:
    games = experiment.games
    note = "Of its 34 statistics home_blk and road_blk are left out: the paper's table has no blocks."
    if experiment.made_up:
        note = (
            "STAND-IN: these games are made up; their numbers say nothing about basketball. "
            "Give --data for a file of real ones."
        )
    return [
        f"Section 4.2 of the paper. Data: {experiment.source}.",
        note,
        "32 statistics, 16 of each team, as in the paper's table. "
        f"{games.rows} games for training (1st, 3rd, 5th, ...), as many for the test (2nd, 4th, ...). The "
        f"home team won {experiment.train_wins:.1%} and {experiment.test_wins:.1%} of them. Weak learners: "
        f"{games.columns} stumps, one and its opposite at every cut of a statistic into {PARTS} parts of the "
        f"training games. R = {games.radius:g}.",
    ]


def _margin_words(example: Example) -> str:
    return (
        f"The hard margin, the largest least margin of weights with sum 1, is {example.hard_margin:.6f} "
        "(linear programme). At every T: the least margin of the soft margin's weights divided by their sum; "
        "what it lacks to the hard margin; what it may lack at most, T ln m; and the share of rows on the "
        "wrong side."
    )


def _iterations(example: Example) -> doc.ReportBlock:
    iterations = [example.iterations[k] for k in milestones(len(example.iterations) - 1, _FEW_ITERATIONS)]
    header = ["k", "w", "objective", "(-g)^f.d", "gap", "support"]
    rows = [
        [
            str(iteration.number), " ".join(f"{w:.4f}" for w in iteration.weights or ()),
            f"{iteration.objective:.9f}", _short(iteration.criterion), _short(iteration.gap),
            str(iteration.support),
        ]
        for iteration in iterations
    ]  # fmt: skip
    if iterations[0].weights is None:
        header, rows = header[:1] + header[2:], [row[:1] + row[2:] for row in rows]
    return doc.table(header, rows)


def _temperatures(example: Example) -> doc.ReportBlock:
    header = ["T", "R", "least margin", "to hard", "T ln m", "support", "train", "test"]
    rows = [
        [
            f"{optimum.temperature:g}", f"{1 / optimum.temperature:g}", f"{optimum.least_margin:.6f}",
            f"{example.hard_margin - optimum.least_margin:.6f}",
            f"{optimum.temperature * math.log(example.rows):.6f}", str(optimum.support),
            *(f"{error:.1%}" for error in (optimum.train_error, optimum.test_error) if error is not None),
        ]
        for optimum in example.temperatures
    ]  # fmt: skip
    return doc.table(header[: len(rows[0])], rows)


def _heaviest(experiment: SimplexExperiment) -> list[list[str]]:
    weights = experiment.games.weights
    order = np.argsort(-np.array(weights), kind="stable")[:_MOST_STUMPS].tolist()
    return [[str(experiment.stumps[j]), f"{weights[j]:.4f}"] for j in order if weights[j] > 0]


def _short(value: float) -> str:
    return f"{value:.2e}" if value else "0"


# figures


def figures_of(experiment: SimplexExperiment) -> dict[str, Figure]:
    small, games = experiment.small, experiment.games
    what = "made-up games, a stand-in" if experiment.made_up else "basketball games"
    name = "Stand-in games" if experiment.made_up else "Basketball"
    both = (("4 × 3 example", small), (name, games))
    shrinking = sum(after.support < before.support for before, after in pairwise(games.iterations))
    return {
        "figure-2.svg": _small_figure(small),
        "figure-3.svg": Figure(
            f"Convergence on {name.lower()}{'' if experiment.made_up else ' games'}",
            f"Like the paper's Figure 3, on {games.rows} {what}, with {games.columns} stumps and R = "
            f"{games.radius:g}. Left: the soft margin falls in every iteration. Right: criterion and gap "
            "fall below any bound, and the gap is never below what is left to the minimum. In "
            f"{shrinking} of the {len(games.iterations) - 1} iterations a stump goes out of use.",
            (_objective(games), _criterion(games)),
        ),
        "margin.svg": Figure(
            "The soft margin tends to the hard margin as T goes to 0",
            "Least margin of the soft margin's weights, divided by their sum, at every temperature; the "
            "hard margin of the linear programme; and the hard margin less T ln m (m rows), below which it "
            f"cannot be (drawn down to -1.5). Right: {what}.",
            tuple(_margins(example, title) for title, example in both),
        ),
        "distance.svg": Figure(
            "What the soft margin lacks to the hard margin",
            "The hard margin less the least margin of the soft margin's weights, with the most that it can "
            f"be, T ln m (m rows). Both go to 0 with T. Right: {what}.",
            tuple(_distance(example, title) for title, example in both),
        ),
        "support.svg": Figure(
            "How many learners are used",
            f"Weights above 0 at every temperature. Right: {what}, of {games.columns} stumps.",
            tuple(_support(example, title) for title, example in both),
        ),
        "error.svg": Figure(
            "Training and test error",
            f"Share of games on the wrong side, at every temperature; {what}, {games.rows} for training and "
            "as many for the test.",
            (_errors(games),),
        ),
    }


def _small_figure(example: Example) -> Figure:
    A = np.array(SMALL_MATRIX, dtype=float)

    def value(point: ThreeWeights) -> float:
        return soft_margin(A, SMALL_RADIUS * np.array(point))[0]

    path = []
    for iteration in example.iterations:
        a, b, c = (w / example.radius for w in iteration.weights or ())
        path.append((a, b, c))
    points = SimplexPath("Points", tuple(path), ("w₁ = ½", "w₂ = ½", "w₃ = ½"), value)
    return Figure(
        "Convergence on the 4 × 3 example",
        "Like the paper's Figure 2, from the centre of the simplex, sum w = 1/2. Left: the points, with "
        "lines of equal soft margin. Middle: the soft margin. Right: criterion and Frank-Wolfe gap, which "
        "end at 0 exactly, in the corner (0, 1/2, 0).",
        (points, _objective(example), _criterion(example, with_distance=False)),
        width=960.0,
    )


def _objective(example: Example) -> Chart:
    numbers = tuple(float(iteration.number) for iteration in example.iterations)
    series = Series("objective", numbers, tuple(iteration.objective for iteration in example.iterations))
    return Chart("Soft margin", "iteration", "ln Σ exp(−A w)", (series,))


def _criterion(example: Example, with_distance: bool = True) -> Chart:
    k = tuple(float(iteration.number) for iteration in example.iterations)
    series = [
        Series("criterion (−g)^f · d", k, tuple(iteration.criterion for iteration in example.iterations)),
        Series("Frank-Wolfe gap", k, tuple(iteration.gap for iteration in example.iterations)),
    ]
    if with_distance:
        left = [(float(i.number), i.objective - example.minimum) for i in example.iterations]
        numbers, values = zip(*(pair for pair in left if pair[1] > _OBJECTIVE_ROUNDING), strict=True)
        series.append(Series("left to the minimum", numbers, values, style=4))
    return Chart("Criterion and gap", "iteration", "value (log scale)", tuple(series), y_scale="log")


def _by_temperature(title: str, y_label: str, *series: Series, **scales: Any) -> Chart:
    return Chart(title, "temperature T (log scale)", y_label, series, x_scale="log", **scales)


def _margins(example: Example, title: str) -> Chart:
    hard, T = example.hard_margin, tuple(optimum.temperature for optimum in example.temperatures)
    bounds = [(t, hard - t * math.log(example.rows)) for t in T]
    drawn, values = zip(*(pair for pair in bounds if pair[1] >= _LOWEST_DRAWN_BOUND), strict=True)
    return _by_temperature(
        title,
        "least margin / R",
        Series("soft margin's least margin", T, tuple(o.least_margin for o in example.temperatures)),
        Series(f"hard margin {hard:.4f}", (min(T), max(T)), (hard, hard), style=4),
        Series("hard margin − T ln m", drawn, values, style=2),
    )


def _distance(example: Example, title: str) -> Chart:
    T = tuple(optimum.temperature for optimum in example.temperatures)
    distances = tuple(max(example.hard_margin - o.least_margin, 0.0) for o in example.temperatures)
    bounds = Series("T ln m", T, tuple(t * math.log(example.rows) for t in T), style=2)
    return _by_temperature(
        title, "log scale", Series("to the hard margin", T, distances), bounds, y_scale="log"
    )


def _support(example: Example, title: str) -> Chart:
    T = tuple(optimum.temperature for optimum in example.temperatures)
    series = Series("support", T, tuple(float(optimum.support) for optimum in example.temperatures))
    return _by_temperature(title, "weights above 0", series, counts=True)


def _errors(example: Example) -> Chart:
    T = tuple(optimum.temperature for optimum in example.temperatures)
    training = Series("training", T, tuple(100 * o.train_error for o in example.temperatures))
    test = Series("test", T, tuple(100 * (o.test_error or 0.0) for o in example.temperatures))
    return _by_temperature("", "error in %", training, test)


# plain data


def plain(experiment: SimplexExperiment) -> dict[str, Any]:
    """All numbers, for a script: weights by their stump."""
    small, games = ({**asdict(e), "holds": e.holds} for e in (experiment.small, experiment.games))
    games["weights"] = [
        {"stump": str(stump), "weight": weight}
        for stump, weight in zip(experiment.stumps, experiment.games.weights, strict=True)
        if weight > 0
    ]
    for iteration in games["iterations"]:
        del iteration["weights"]
    return {
        "experiment": "conjugate-gradient",
        "holds": experiment.holds,
        "epsilon": EPSILON,
        "data": {"source": experiment.source, "made_up": experiment.made_up},
        "small": small,
        "games": games,
    }

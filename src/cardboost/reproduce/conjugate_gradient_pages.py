"""The experiments on conjugate gradients as files: text, figures, a page and plain data."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from cardboost.report import html
from cardboost.report.figures import Chart, Figure, Line
from cardboost.report.simplex_path import SimplexPath
from cardboost.report.text import WIDTH, columns, filled
from cardboost.reproduce.conjugate_gradient import (
    EPSILON,
    PARTS,
    SMALL_MATRIX,
    SMALL_RADIUS,
    Example,
    Experiment,
    Iteration,
)
from cardboost.reproduce.independent import soft_margin

TITLE = "Boosting by nonlinear conjugate gradients"
_HEAVY = 10
_BY_TEMPERATURE = ("margin.svg", "distance.svg", "support.svg", "error.svg")

Rows = list[list[str]]


def files(found: Experiment) -> dict[str, bytes]:
    """Every file by its name."""
    figures = figures_of(found)
    texts = {
        "report.txt": report(found),
        "results.json": json.dumps(plain(found), indent=1, allow_nan=False) + "\n",
        **{name: figure.svg() for name, figure in figures.items()},
        "index.html": web_page(found, figures),
    }
    return {name: text.encode() for name, text in texts.items()}


# what is said, once for the text and for the page


def _intro(found: Experiment) -> list[str]:
    return [
        "Soft-margin boosting: least ln(sum of exp(-A w)) over w >= 0 with sum w = R = 1/T, by "
        'minimize_on_simplex(A, R, method="mprp") from the centre of the simplex, until the criterion '
        f"(-g)^f.d is at most epsilon = {EPSILON:g}.",
        "All check points hold." if found.holds else "NOT ALL CHECK POINTS HOLD.",
    ]


def _small_words(own: Example) -> str:
    rows = ", ".join("(" + ", ".join(map(str, row)) + ")" for row in SMALL_MATRIX)
    return f"Section 4.1 of the paper: A has the rows {rows}; R = {own.radius:g}."


def _games_title(found: Experiment) -> str:
    return "Example basketball" + (" (a stand-in)" if found.made_up else "")


def _games_words(found: Experiment) -> list[str]:
    own = found.games
    said = [f"Section 4.2 of the paper. Data: {found.source}."]
    if found.made_up:
        said.append(
            "STAND-IN: these games are made up; their numbers say nothing about basketball. "
            "Give --data for a file of real ones."
        )
    else:
        said.append(
            "Of its 34 statistics home_blk and road_blk are left out: the paper's table has no blocks."
        )
    said.append(
        "32 statistics, 16 of each team, as in the paper's table. "
        f"{own.rows} games for training (1st, 3rd, 5th, ...), as many for the test (2nd, 4th, ...). The home "
        f"team won {found.train_wins:.1%} and {found.test_wins:.1%} of them. Weak learners: {own.columns} "
        f"stumps, one and its opposite at every cut of a statistic into {PARTS} parts of the training games. "
        f"R = {own.radius:g}."
    )
    return said


def _margin_words(own: Example) -> str:
    return (
        f"The hard margin, the largest least margin of weights with sum 1, is {own.hard_margin:.6f} (linear "
        "programme). At every T: the least margin of the soft margin's weights divided by their sum; what it "
        "lacks to the hard margin; what it may lack at most, T ln m; and the share of rows on the wrong side."
    )


def _shown(own: Example) -> list[Iteration]:
    """All of few iterations, else 0, 1, 2, 5, 10, 20, 50, ... and the last."""
    last = len(own.iterations) - 1
    if last <= 12:
        return list(own.iterations)
    wanted = {0, last, *(digit * 10**power for power in range(7) for digit in (1, 2, 5))}
    return [row for row in own.iterations if row.number in wanted]


def _iterations(own: Example) -> tuple[list[str], Rows]:
    weighted = own.iterations[0].weights is not None
    header = ["k", *(["w"] if weighted else []), "objective", "(-g)^f.d", "gap", "support"]
    rows = []
    for row in _shown(own):
        weights = [" ".join(f"{w:.4f}" for w in row.weights)] if row.weights is not None else []
        rows.append(
            [str(row.number), *weights, f"{row.objective:.9f}", _short(row.criterion), _short(row.gap),
             str(row.support)]
        )  # fmt: skip
    return header, rows


def _temperatures(own: Example) -> tuple[list[str], Rows]:
    tested = own.temperatures[0].test_error is not None
    header = ["T", "R", "least margin", "to hard", "T ln m", "support", "train"]
    header += ["test"] if tested else []
    rows: Rows = []
    for row in own.temperatures:
        short = own.hard_margin - row.least_margin
        cells = [f"{row.temperature:g}", f"{1 / row.temperature:g}", f"{row.least_margin:.6f}"]
        cells += [f"{short:.6f}", f"{row.temperature * math.log(own.rows):.6f}", str(row.support)]
        cells.append(f"{row.train_error:.1%}")
        rows.append(cells + ([f"{row.test_error:.1%}"] if row.test_error is not None else []))
    return header, rows


def _heaviest(found: Experiment) -> Rows:
    order = np.argsort(-np.array(found.games.weights), kind="stable")[:_HEAVY]
    rows = [(found.stumps[j], found.games.weights[j]) for j in order.tolist() if found.games.weights[j] > 0]
    return [[str(stump), f"{weight:.4f}"] for stump, weight in rows]


def _short(value: float) -> str:
    return f"{value:.2e}" if value else "0"


def _verdict(holds: bool) -> str:
    return "holds" if holds else "FAILS"


# text


def report(found: Experiment) -> str:
    lines = [TITLE, "=" * WIDTH, ""]
    for sentence in _intro(found):
        lines += filled(sentence)
    for title, words, own in (
        ("Example 4 x 3", [_small_words(found.small)], found.small),
        (_games_title(found), _games_words(found), found.games),
    ):
        lines += ["", title, "-" * WIDTH]
        for sentence in words:
            lines += filled(sentence)
        lines += ["", *columns(*_iterations(own)), "", "check points"]
        for check in own.checks:
            lines.append(f"  ({check.letter}) {_verdict(check.holds)}  {check.claim}")
            lines += filled(check.measured, indent=6)
        lines += ["", *filled(_margin_words(own)), *columns(*_temperatures(own))]
    lines += ["", "the heaviest stumps of the basketball example"]
    lines += columns(["home team wins", "weight"], _heaviest(found), left=(0,))
    return "\n".join(lines) + "\n"


# page


def web_page(found: Experiment, figures: dict[str, Figure]) -> str:
    svg = {name: html.figure(figure.svg()) for name, figure in figures.items()}
    blocks = [html.paragraph(words) for words in _intro(found)]
    for title, words, own, name in (
        ("Example 4 × 3", [_small_words(found.small)], found.small, "figure-2.svg"),
        (_games_title(found), _games_words(found), found.games, "figure-3.svg"),
    ):
        header, rows = _iterations(own)
        blocks += [html.heading(title), *map(html.paragraph, words), svg[name], html.table(header, rows)]
        checks = [[f"({c.letter})", c.claim, c.measured, _verdict(c.holds)] for c in own.checks]
        blocks.append(html.table(["", "check point", "measured", ""], checks, left=(0, 1, 2, 3)))
    stumps = html.table(["home team wins", "weight"], _heaviest(found), left=(0,))
    blocks += [html.paragraph("The heaviest stumps:"), stumps]
    blocks += [html.heading("Hard and soft margin"), *(svg[name] for name in _BY_TEMPERATURE)]
    for title, own in (("Example 4 × 3. ", found.small), ("Example basketball. ", found.games)):
        blocks += [html.paragraph(title + _margin_words(own)), html.table(*_temperatures(own))]
    # a true minus does not end a line
    return html.page(TITLE, [block.replace("(-g)", "(−g)") for block in blocks])


# figures


def figures_of(found: Experiment) -> dict[str, Figure]:
    small, games = found.small, found.games
    what = "made-up games, a stand-in" if found.made_up else "basketball games"
    name = "Stand-in games" if found.made_up else "Basketball"
    return {
        "figure-2.svg": _small_figure(small),
        "figure-3.svg": Figure(
            f"Convergence on {name.lower()}{'' if found.made_up else ' games'}",
            f"Like the paper's Figure 3, on {games.rows} {what}, with {games.columns} stumps and R = "
            f"{games.radius:g}. Left: the soft margin falls in every iteration. Right: criterion and gap "
            "fall below any bound, and the gap is never below what is left to the minimum. In "
            f"{_goes_out(games)} of the {len(games.iterations) - 1} iterations a stump goes out of use.",
            (_objective(games), _criterion(games)),
        ),
        "margin.svg": Figure(
            "The soft margin tends to the hard margin as T goes to 0",
            "Least margin of the soft margin's weights, divided by their sum, at every temperature; the "
            "hard margin of the linear programme; and the hard margin less T ln m (m rows), below which it "
            f"cannot be (drawn down to -1.5). Right: {what}.",
            (_margins(small, "4 × 3 example"), _margins(games, name)),
        ),
        "distance.svg": Figure(
            "What the soft margin lacks to the hard margin",
            "The hard margin less the least margin of the soft margin's weights, with the most that it can "
            f"be, T ln m (m rows). Both go to 0 with T. Right: {what}.",
            (_distance(small, "4 × 3 example"), _distance(games, name)),
        ),
        "support.svg": Figure(
            "How many learners are used",
            f"Weights above 0 at every temperature. Right: {what}, of {games.columns} stumps.",
            (_support(small, "4 × 3 example"), _support(games, name)),
        ),
        "error.svg": Figure(
            "Training and test error",
            f"Share of games on the wrong side, at every temperature; {what}, {games.rows} for training and "
            "as many for the test.",
            (_errors(games),),
        ),
    }


def _goes_out(own: Example) -> int:
    """Iterations after which fewer weights are above 0."""
    return sum(then.support < now.support for now, then in pairwise(own.iterations))


def _small_figure(own: Example) -> Figure:
    A = np.array(SMALL_MATRIX, dtype=float)

    def value(point: tuple[float, float, float]) -> float:
        return soft_margin(A, SMALL_RADIUS * np.array(point))[0]

    path = []
    for row in own.iterations:
        a, b, c = (w / own.radius for w in row.weights or ())
        path.append((a, b, c))
    corners = ("w₁ = ½", "w₂ = ½", "w₃ = ½")
    return Figure(
        "Convergence on the 4 × 3 example",
        "Like the paper's Figure 2, from the centre of the simplex, sum w = 1/2. Left: the points, with "
        "lines of equal soft margin. Middle: the soft margin. Right: criterion and Frank-Wolfe gap, which "
        "end at 0 exactly, in the corner (0, 1/2, 0).",
        (SimplexPath("Points", tuple(path), corners, value), _objective(own), _criterion(own, left=False)),
        width=960.0,
    )


def _numbers(own: Example) -> tuple[float, ...]:
    return tuple(float(row.number) for row in own.iterations)


def _objective(own: Example) -> Chart:
    line = Line("objective", _numbers(own), tuple(row.objective for row in own.iterations))
    return Chart("Soft margin", "iteration", "ln Σ exp(−A w)", (line,))


def _criterion(own: Example, left: bool = True) -> Chart:
    k = _numbers(own)
    lines = [
        Line("criterion (−g)^f · d", k, tuple(row.criterion for row in own.iterations)),
        Line("Frank-Wolfe gap", k, tuple(row.gap for row in own.iterations)),
    ]
    if left:  # differences of about 1e-13 are rounding
        kept = [row for row in own.iterations if row.objective - own.minimum > 1e-12]
        more = tuple(row.objective - own.minimum for row in kept)
        lines.append(Line("left to the minimum", tuple(float(row.number) for row in kept), more, style=4))
    return Chart("Criterion and gap", "iteration", "value (log scale)", tuple(lines), y_scale="log")


def _margins(own: Example, title: str) -> Chart:
    T = tuple(row.temperature for row in own.temperatures)
    bound = [own.hard_margin - t * math.log(own.rows) for t in T]
    kept = [(t, b) for t, b in zip(T, bound, strict=True) if b >= -1.5]
    lines = (
        Line("soft margin's least margin", T, tuple(row.least_margin for row in own.temperatures)),
        Line(
            f"hard margin {own.hard_margin:.4f}",
            (min(T), max(T)),
            (own.hard_margin, own.hard_margin),
            style=4,
        ),
        Line("hard margin − T ln m", tuple(t for t, _ in kept), tuple(b for _, b in kept), style=2),
    )
    return Chart(title, "temperature T (log scale)", "least margin / R", lines, x_scale="log")


def _distance(own: Example, title: str) -> Chart:
    T = tuple(row.temperature for row in own.temperatures)
    lines = (
        Line(
            "to the hard margin",
            T,
            tuple(max(own.hard_margin - r.least_margin, 0.0) for r in own.temperatures),
        ),
        Line("T ln m", T, tuple(t * math.log(own.rows) for t in T), style=2),
    )
    return Chart(title, "temperature T (log scale)", "log scale", lines, x_scale="log", y_scale="log")


def _support(own: Example, title: str) -> Chart:
    T = tuple(row.temperature for row in own.temperatures)
    line = Line("support", T, tuple(float(row.support) for row in own.temperatures))
    return Chart(title, "temperature T (log scale)", "weights above 0", (line,), x_scale="log", counts=True)


def _errors(own: Example) -> Chart:
    T = tuple(row.temperature for row in own.temperatures)
    lines = (
        Line("training", T, tuple(100 * row.train_error for row in own.temperatures)),
        Line("test", T, tuple(100 * (row.test_error or 0.0) for row in own.temperatures)),
    )
    return Chart("", "temperature T (log scale)", "error in %", lines, x_scale="log")


# plain data


def plain(found: Experiment) -> dict[str, Any]:
    """What was found, for a script: numbers as they are, weights by their stump."""

    def example(own: Example) -> dict[str, Any]:
        content = asdict(own)
        content["holds"] = own.holds
        return content

    games = example(found.games)
    games["weights"] = [
        {"stump": str(stump), "weight": weight}
        for stump, weight in zip(found.stumps, found.games.weights, strict=True)
        if weight > 0
    ]
    for row in games["iterations"]:
        del row["weights"]
    return {
        "experiment": "conjugate-gradient",
        "holds": found.holds,
        "epsilon": EPSILON,
        "data": {"source": found.source, "made_up": found.made_up},
        "small": example(found.small),
        "games": games,
    }

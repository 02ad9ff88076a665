"""Basketball box scores: a reader for a file of games, and a stand-in that is made up.

A game has the statistics of the home team and of the road team, and a label: 1 where the home team won.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FILE = "nba_home_road_2014_2018.csv.gz"
#: the sixteen statistics of a team in the paper's table, in its order
STATISTICS = (
    "fgm", "fga", "fg_pct", "fg3m", "fg3a", "fg3_pct", "ftm", "fta", "ft_pct",
    "oreb", "dreb", "treb", "ast", "pf", "stl", "tov",
)  # fmt: skip
COLUMNS = tuple(f"{team}_{name}" for team in ("home", "road") for name in STATISTICS)
LABEL = "y"


@dataclass(frozen=True, eq=False)
class BoxScores:
    """One row per game; ``y`` is 1 where the home team won and -1 where it lost."""

    X: Array
    y: Array
    source: str
    made_up: bool


def read_box_scores(folder: Path, games: int) -> BoxScores:
    """Read the first games of the file in a folder; OSError or ValueError name its fault."""
    rows: list[list[float]] = []
    names = [*COLUMNS, LABEL]
    try:
        with gzip.open(folder / FILE, "rt", encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in names if name not in (reader.fieldnames or ())]
            if missing:
                more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
                raise ValueError(f"{FILE} has no column {missing[0]!r}{more}.")
            for row in islice(reader, games):
                rows.append([_cell(row[name], name, reader.line_num) for name in names])
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{FILE} is not a whole gzip file: {error}.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{FILE} is not a CSV file in UTF-8: {error}.") from None
    if len(rows) < games:
        raise ValueError(f"{FILE} has {len(rows)} games; {games} are needed.")
    table = np.array(rows)
    return BoxScores(table[:, :-1], table[:, -1], f"the first {games} games of {FILE}", made_up=False)


def _cell(cell: str | None, name: str, line: int) -> float:
    try:
        value = float(cell or "")
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(f"{FILE}, line {line}, column {name!r}: expected a number, found {cell or ''!r}.")
    if name == LABEL and abs(value) != 1:
        raise ValueError(f"{FILE}, line {line}, column {name!r}: expected 1 or -1, found {cell!r}.")
    return value


def made_up_box_scores(games: int, seed: int = 0) -> BoxScores:
    """Draw games that were never played: shots, rebounds and fouls, and a winner by points with noise.

    Shots are drawn one by one, so that no team makes more than it attempts; percentages and total rebounds
    follow from the rest. The home team shoots a little better. The label is the sign of the difference in
    points plus noise of four points: no rule over the statistics is without errors.
    """
    rng = np.random.default_rng(seed)
    pace = rng.normal(0.0, 3.0, games)
    teams = [_team(rng, pace, advantage) for advantage in (0.02, 0.0)]
    points = [2 * team["fgm"] + team["fg3m"] + team["ftm"] for team in teams]
    lead = points[0] - points[1] + rng.normal(0.0, 4.0, games)
    X = np.column_stack([team[name] for team in teams for name in STATISTICS])
    source = f"{games} made-up games (seed {seed}), a stand-in for the box scores"
    return BoxScores(X, np.where(lead > 0, 1.0, -1.0), source, made_up=True)


def _team(rng: np.random.Generator, pace: Array, advantage: float) -> dict[str, Array]:
    """The statistics of one team; ``advantage`` is added to its shares of field goals."""
    games = len(pace)
    fga = np.rint(84 + pace + rng.normal(0.0, 6.0, games)).astype(int)
    fg3a = rng.binomial(fga, 0.28)
    fg3m = rng.binomial(fg3a, 0.345 + advantage)
    fg2m = rng.binomial(fga - fg3a, 0.49 + advantage)
    fta = rng.poisson(22.0, games) + 1
    ftm = rng.binomial(fta, 0.755)
    fgm = fg2m + fg3m
    oreb = rng.binomial(fga - fgm, 0.24)
    dreb = rng.poisson(32.5, games)
    counts = {
        "fgm": fgm, "fga": fga, "fg3m": fg3m, "fg3a": fg3a, "ftm": ftm, "fta": fta,
        "oreb": oreb, "dreb": dreb, "treb": oreb + dreb, "ast": rng.binomial(fgm, 0.58),
        "pf": rng.poisson(20.0, games), "stl": rng.poisson(7.7, games), "tov": rng.poisson(14.0, games),
    }  # fmt: skip
    shares = {"fg_pct": (fgm, fga), "fg3_pct": (fg3m, fg3a), "ft_pct": (ftm, fta)}
    statistics = {name: values.astype(np.float64) for name, values in counts.items()}
    for name, (hits, attempts) in shares.items():
        statistics[name] = np.round(hits / np.maximum(attempts, 1), 3)
    return statistics

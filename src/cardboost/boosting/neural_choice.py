"""How many networks, and how much decay inside them: by rows that are held out.

The decay given is the least of those tried: a net of eight units can learn a few hundred rows by heart, and
then no number of rounds is few enough. From the least on, a larger decay is tried as long as it helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from cardboost.boosting.neural import NeuralPath

FACTORS = (1.0, 10.0, 100.0, 300.0, 1000.0)  # of the decay given
FOLDS = 5

Split = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Choice:
    """Rounds and decay; ``curve``: held-out losses round by round, the first without any net.

    ``path``: the fit itself, where the one that held rows out is to be the model.
    """

    rounds: int
    l2: float
    curve: tuple[float, ...] = ()
    path: NeuralPath | None = None


def _decays(l2: float, several: bool) -> tuple[float, ...]:
    if not several:
        return (l2,)
    return tuple(l2 * factor for factor in FACTORS) if l2 > 0.0 else (0.0, 1e-3, 1e-2, 1e-1)


def choose_by_folds(
    fit: Callable[[Split, Split, float], NeuralPath],
    rows: int,
    codes: Split | None,
    seed: int,
    l2: float,
    several: bool,
) -> Choice:
    """The rounds and the decay with the least mean loss over the folds."""
    parts = list(_folds(rows, codes, seed))
    best: Choice | None = None
    for decay in _decays(l2, several):
        curve = _mean_curve([fit(kept, aside, decay).held_out for kept, aside in parts])
        rounds = int(np.argmin(curve))
        if best is None or curve[rounds] < min(best.curve):
            best = Choice(max(1, rounds), decay, tuple(float(loss) for loss in curve))
    assert best is not None
    return best


def choose_by_rows(fit: Callable[[float], NeuralPath], l2: float, several: bool) -> Choice:
    """The same by one set of rows; larger decays are tried while they help."""
    best: Choice | None = None
    for decay in _decays(l2, several):
        path = fit(decay)
        curve = path.held_out
        if best is not None and min(curve) >= min(best.curve):
            break
        best = Choice(path.best_round, decay, curve, path)
    assert best is not None
    return best


def _mean_curve(curves: list[tuple[float, ...]]) -> NDArray[np.float64]:
    """A fold that has stopped stays where it was."""
    longest = max(map(len, curves))
    filled = [curve + (curve[-1],) * (longest - len(curve)) for curve in curves]
    return np.asarray(np.mean(np.array(filled), axis=0))


def _folds(rows: int, codes: Split | None, seed: int) -> list[tuple[Split, Split]]:
    """Rows in a random order, dealt out class by class."""
    order = check_random_state(seed).permutation(rows)
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
    folds = min(FOLDS, rows)
    fold = np.empty(rows, dtype=np.intp)
    fold[order] = np.arange(rows) % folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(folds)]

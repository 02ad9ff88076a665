"""Breiman's artificial sets: twonorm, ringnorm and waveform ("Bias, variance and arcing classifiers", 1996).

* twonorm: 20 normal variables with unit variances; all means are a in one class and -a in the other.
* ringnorm: 20 normal variables; means 0 and variances 4 in the positive class, means a and unit variances in
  the other one.
* waveform: 21 points of a mixture of two of three triangular waves, with a random share and unit noise. Which
  two makes three classes; the positive one here mixes the first and the third wave.

a is 2 / sqrt(20) in both normal sets.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cardboost.datasets.dataset import Dataset

Array = NDArray[np.float64]

#: rows by default, as many as the common files have
ROWS = {"twonorm": 7400, "ringnorm": 7400, "waveform": 5000}
LEAST_ROWS = 50  # fewer might lack a class
FEATURES = 20
SHIFT = 2.0 / np.sqrt(FEATURES)

WAVES = np.stack([np.maximum(6.0 - np.abs(np.arange(1, 22) - peak), 0.0) for peak in (11, 15, 7)])
_PAIRS = np.array([(0, 1), (0, 2), (1, 2)])
_POSITIVE = 1  # the pair that is the positive class


def generate(name: str, n_rows: int | None = None, seed: int = 0) -> Dataset:
    """Generate ``n_rows`` rows of one of the three sets; equal seeds give equal rows."""
    if name not in GENERATORS:
        raise ValueError(f"name must be one of {', '.join(GENERATORS)}; got {name!r}.")
    rows = ROWS[name] if n_rows is None else n_rows
    if rows < LEAST_ROWS:
        raise ValueError(f"n_rows must be at least {LEAST_ROWS}; got {n_rows}.")
    X, y = GENERATORS[name](np.random.default_rng([seed, *name.encode()]), rows)
    return Dataset(name, X, y, "generated", f"{rows} generated rows (seed {seed})")


def _halves(rng: np.random.Generator, rows: int) -> NDArray[np.int8]:
    return np.where(rng.random(rows) < 0.5, 1, -1).astype(np.int8)


def _twonorm(rng: np.random.Generator, rows: int) -> tuple[Array, NDArray[np.int8]]:
    y = _halves(rng, rows)
    return rng.normal(size=(rows, FEATURES)) + SHIFT * y[:, None], y


def _ringnorm(rng: np.random.Generator, rows: int) -> tuple[Array, NDArray[np.int8]]:
    y = _halves(rng, rows)
    noise = rng.normal(size=(rows, FEATURES))
    return np.where(y[:, None] > 0, 2.0 * noise, SHIFT + noise), y


def _waveform(rng: np.random.Generator, rows: int) -> tuple[Array, NDArray[np.int8]]:
    kind = rng.integers(3, size=rows)
    share = rng.random(rows)[:, None]
    first, second = WAVES[_PAIRS[kind].T]
    X = share * first + (1.0 - share) * second + rng.normal(size=(rows, WAVES.shape[1]))
    return X, np.where(kind == _POSITIVE, 1, -1).astype(np.int8)


GENERATORS: dict[str, Callable[[np.random.Generator, int], tuple[Array, NDArray[np.int8]]]] = {
    "twonorm": _twonorm,
    "ringnorm": _ringnorm,
    "waveform": _waveform,
}
